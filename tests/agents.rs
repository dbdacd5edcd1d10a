//! Real agent programs, from npm, against a scripted endpoint: what the presets say is true of them.
//!
//! `tests/run` installs the programs and says where they are in `SWARMC_AGENTS`. Without that variable these tests do
//! nothing; with it, a program that is missing is a failure.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;
use swarmc_compiler::compile;
use swarmc_endpoint::{Answer, Endpoint, Script};
use swarmc_plan::{Connection, EnvValue, Format, PromptDelivery, Provider, Segment};
use swarmc_runtime::{Decoder, Item, Report};
use tempfile::TempDir;

/// The folder with the programs; none when these tests were not asked for.
fn programs() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("SWARMC_AGENTS")?).join("bin");
    for program in ["codex", "opencode"] {
        assert!(folder.join(program).is_file(), "`{program}` is not in SWARMC_AGENTS; type `tests/run agents`");
    }
    Some(folder)
}

/// A place where an agent lives alone: its own home, its own folder to work in, and the endpoint for a model.
struct Place {
    folder: TempDir,
    programs: PathBuf,
    endpoint: Endpoint,
}

impl Place {
    fn new(programs: PathBuf, script: Script) -> Place {
        let place = Place {
            folder: TempDir::new().expect("a temporary folder can be made"),
            programs,
            endpoint: Endpoint::start(script),
        };
        fs::create_dir_all(place.codex_home()).expect("a folder can be made");
        fs::create_dir_all(place.work()).expect("a folder can be made");
        let url = place.endpoint.url();
        let config = format!(
            "model = \"scripted\"\nmodel_provider = \"scripted\"\n\n[model_providers.scripted]\nname = \"scripted\"\n\
             base_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n"
        );
        fs::write(place.codex_home().join("config.toml"), config).expect("a file can be written");
        place
    }

    fn codex_home(&self) -> PathBuf {
        self.folder.path().join("home/.codex")
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The caller's environment: what a person would have set, and nothing of this process but its programs.
    fn environment(&self, command: &mut Command) {
        let path = std::env::var("PATH").expect("there is a PATH");
        let config = json!({
            "provider": { "scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "options": { "baseURL": format!("{}/v1", self.endpoint.url()), "apiKey": "none" },
                "models": { "scripted": { "tool_call": true, "limit": { "context": 200_000, "output": 8_000 } } },
            } },
            "model": "scripted/scripted",
        });
        command
            .env_clear()
            .env("PATH", format!("{}:{path}", self.programs.display()))
            .env("HOME", self.folder.path().join("home"))
            .env("OPENAI_API_KEY", "none")
            .env("OPENCODE_CONFIG_CONTENT", config.to_string());
    }

    /// One turn of the program that a preset names, as the preset names it.
    fn turn(&self, preset: &str, prompt: &str) -> (Report, Vec<String>) {
        let provider = provider(preset);
        let (argv, _, format) = exec(&provider);
        let mut command = Command::new(&argv[0]);
        self.environment(&mut command);
        command.args(&argv[1..]).current_dir(self.work());
        for variable in &provider.env {
            if let EnvValue::Set { name, value } = variable {
                let [Segment::Text(value)] = value.segments.as_slice() else { panic!("presets set plain texts") };
                command.env(name, value);
            }
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        stdin.write_all(prompt.as_bytes()).expect("the prompt is read");
        drop(stdin);
        let mut decoder = Decoder::new(format);
        let mut tools = Vec::new();
        let mut emit = |item: Item<'_>| {
            if let Item::Tool(name) = item {
                tools.push(name.to_owned());
            }
        };
        let mut stdout = child.stdout.take().expect("stdout is a pipe");
        let mut buffer = [0; 4096];
        loop {
            match stdout.read(&mut buffer).expect("stdout can be read") {
                0 => break,
                read => decoder.feed(&buffer[..read], &mut emit),
            }
        }
        let report = decoder.finish(&mut emit);
        child.wait().expect("the program ends");
        (report, tools)
    }
}

/// The provider that a preset of the compiler makes.
fn provider(preset: &str) -> Provider {
    let spec = format!(
        "workflow agents\nprovider a preset={preset}\nagent a provider=a\npipeline p {{ task t {{ prompt \"Go.\" }} }}\n"
    );
    let files = BTreeMap::from([("agents.kdl".to_owned(), spec)]);
    let compilation = compile("agents.kdl", &files);
    assert_eq!(compilation.diagnostics, [], "{preset}");
    compilation.plan.expect("there is a plan").providers.remove(0)
}

/// How a provider is started: its argument vector, how it gets its prompt, and what it prints.
fn exec(provider: &Provider) -> (&[String], PromptDelivery, Format) {
    match &provider.connection {
        Connection::Exec { argv, prompt, reads, .. } => (argv, *prompt, *reads),
        Connection::Script { .. } => panic!("presets are programs"),
    }
}

#[test]
fn each_preset_names_a_format_and_takes_its_prompt_from_standard_input() {
    for preset in ["claude-code", "codex", "opencode", "gemini", "qwen", "pi"] {
        let provider = provider(preset);
        let (argv, prompt, format) = exec(&provider);
        assert!(provider.install.as_ref().is_some_and(|install| install.starts_with("npm install -g ")), "{preset}");
        assert!(argv[0].chars().all(|c| c.is_ascii_lowercase()), "{preset}");
        assert_eq!(prompt, PromptDelivery::Stdin, "{preset}");
        assert!(!matches!(format, Format::Text | Format::Json), "{preset}");
    }
}

#[test]
fn agents_answer_use_tools_and_fail_as_their_presets_are_read() {
    let Some(programs) = programs() else { return };
    let script = Script::new()
        .on("Refuse this", Answer::status(400, "told to fail"))
        .decide(|request| {
            // Each program has its own tool for commands.
            let offered = |name: &str| request.tools.iter().any(|tool| tool == name);
            let asked = request.user.iter().any(|text| text.contains("Run a command"));
            let first = asked && request.results.is_empty();
            match first {
                true if offered("bash") => {
                    Some(Answer::call("bash", json!({ "command": "echo sea-cow", "description": "says it" })))
                }
                true if offered("exec_command") => Some(Answer::call("exec_command", json!({ "cmd": "echo sea-cow" }))),
                _ => None,
            }
        })
        .otherwise(Answer::text("All is well."));
    let place = Place::new(programs, script);
    for (preset, tool) in [("codex", "command_execution"), ("opencode", "bash")] {
        let (report, tools) = place.turn(preset, "Run a command, please; \"quoted\" @words and\nlines included.");
        assert_eq!(report.failure, None, "{preset}");
        assert_eq!(report.text.as_deref(), Some("All is well."), "{preset}");
        assert_eq!(tools, [tool], "{preset}");
        assert!(report.session.is_some(), "{preset}");
        assert!(report.usage.is_some_and(|usage| usage.input > 1000 && usage.output > 0), "{preset}: {report:?}");
        let prompts = place.endpoint.prompts();
        let last = prompts.last().expect("the model was asked");
        assert!(last.results[0].contains("sea-cow"), "{preset}: {:?}", last.results);
        let heard = last.user.last().expect("there was a prompt");
        assert!(heard.contains("Run a command, please; \"quoted\" @words and\nlines included."), "{preset}: {heard}");

        let (report, _) = place.turn(preset, "Refuse this.");
        let failure = report.failure.unwrap_or_else(|| panic!("{preset} was refused"));
        assert!(failure.contains("told to fail"), "{preset}: {failure}");
    }
}
