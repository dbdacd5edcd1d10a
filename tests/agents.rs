//! Real agent programs, from npm, against a scripted endpoint: what the presets say is true of them.
//!
//! `tests/install-agents` puts the programs into a cache outside the checkout; these tests call it, and fail without.

mod survive;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use swarmc_compiler::compile;
use swarmc_endpoint::{Answer, Endpoint, Protocol, Request, Script, Usage};
use swarmc_plan::{Connection, EnvValue, Format, PromptDelivery, Provider, Segment};
use swarmc_runtime::{Decoder, Item, Report};
use tempfile::TempDir;

/// Nothing takes as long on the slowest machine; only a program that hangs waits for it.
const PATIENCE: Duration = Duration::from_secs(240);

/// The folder with the programs, installed the first time that anyone asks.
pub(crate) fn programs() -> PathBuf {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/install-agents");
        let output =
            Command::new(script).stderr(Stdio::inherit()).output().expect("tests/install-agents can be started");
        assert!(output.status.success(), "tests/install-agents failed: it says why above");
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end()).join("bin")
    });
    FOLDER.clone()
}

/// A place where an agent lives alone: its own home, its own folder to work in, and the endpoint for a model.
pub(crate) struct Place {
    folder: TempDir,
    programs: PathBuf,
    pub(crate) endpoint: Endpoint,
}

impl Place {
    pub(crate) fn new(programs: PathBuf, script: Script) -> Place {
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
        // Without its notes, to which it gives turns of its own.
        let config = json!({
            "security": { "auth": { "selectedType": "openai", "apiKey": "none", "baseUrl": format!("{url}/v1") } },
            "model": { "name": "scripted" },
            "memory": { "enableManagedAutoMemory": false },
        });
        let folder = place.folder.path().join("home/.qwen");
        fs::create_dir(&folder).expect("a folder can be made");
        fs::write(folder.join("settings.json"), config.to_string()).expect("a file can be written");
        place
    }

    /// Has opencode make its database: of several first starts at once in one home, some fail at that.
    pub(crate) fn prepare_opencode(&self) {
        let mut command = Command::new(self.programs.join("opencode"));
        self.environment(&mut command);
        let output = command.args(["session", "list"]).current_dir(self.work()).stdin(Stdio::null()).output();
        let output = output.expect("opencode starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Leaves the lock behind that a process of opencode holds while it reads the logins to MCP servers.
    pub(crate) fn lock_logins_of_opencode(&self) {
        let home = self.folder.path().join("home/.local");
        let key = format!("mcp-auth:{}", home.join("share/opencode/mcp-auth.json").display());
        let sum = Command::new("sh").args(["-c", "printf %s \"$1\" | sha1sum", "sh", &key]).output();
        let sum = String::from_utf8(sum.expect("sha1sum starts").stdout).expect("a digest is text");
        let lock = home.join("state/opencode/locks").join(format!("{}.lock", &sum[..40]));
        fs::create_dir_all(&lock).expect("a folder can be made");
        for file in ["heartbeat", "meta.json"] {
            fs::write(lock.join(file), "{}").expect("a file can be written");
        }
    }

    fn codex_home(&self) -> PathBuf {
        self.folder.path().join("home/.codex")
    }

    /// Where the runs of swarmc lie.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("swarm")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The caller's environment: what a person would have set, and nothing of this process but its programs.
    pub(crate) fn environment(&self, command: &mut Command) {
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

    /// swarmc as a person starts it here.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = crate::patience::swarmc();
        self.environment(&mut command);
        command.args(arguments).current_dir(self.work()).env("SWARM_HOME", self.home());
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn swarmc(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("swarmc starts")
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
            if let Item::Tool(used) = item {
                tools.push(used.name.to_owned());
            }
        };
        let mut stdout = child.stdout.take().expect("stdout is a pipe");
        let (sender, chunks) = mpsc::channel();
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        loop {
            match chunks.recv_timeout(PATIENCE) {
                Ok(chunk) => decoder.feed(&chunk, &mut emit),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    child.kill().expect("the program can be ended");
                    panic!("{preset} said nothing for {PATIENCE:?}");
                }
            }
        }
        reader.join().expect("the reader ends with the stream");
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
        other => panic!("presets are programs, not {other:?}"),
    }
}

#[test]
fn each_preset_names_a_format_and_takes_its_prompt_from_standard_input() {
    for preset in ["claude-code", "codex", "opencode", "gemini", "qwen", "pi", "copilot", "amp", "aider"] {
        let provider = provider(preset);
        let (argv, prompt, format) = exec(&provider);
        let install = provider.install.as_deref().unwrap_or_default();
        assert!(["npm install -g ", "uv tool install "].iter().any(|words| install.starts_with(words)), "{preset}");
        assert!(argv[0].chars().all(|c| c.is_ascii_lowercase()), "{preset}");
        assert_eq!(prompt, PromptDelivery::Stdin, "{preset}");
        assert!(!matches!(format, Format::Text | Format::Json), "{preset}");
    }
}

/// A call that has a command run, by the tool that the program has for commands.
pub(crate) fn command(request: &Request, line: &str) -> Option<Answer> {
    let offered = |name: &str| request.tools.iter().any(|tool| tool == name);
    match () {
        () if offered("bash") => Some(Answer::call("bash", json!({ "command": line, "description": "does it" }))),
        () if offered("exec_command") => Some(Answer::call("exec_command", json!({ "cmd": line }))),
        () => None,
    }
}

/// A turn with a tool, and a turn that the endpoint refuses.
fn check_turns(preset: &str, tool: &str) {
    let programs = programs();
    let prompt = "Run a command, please; \"quoted\" @words and\nlines included.";
    let script = Script::new()
        .on("Refuse this", Answer::status(400, "told to fail"))
        .decide(|request| request.results.is_empty().then(|| command(request, "echo sea-cow")).flatten())
        .otherwise(Answer::text("All is well."));
    let place = Place::new(programs, script);
    let (report, tools) = place.turn(preset, prompt);
    assert_eq!(report.failure, None);
    assert_eq!(report.text.as_deref(), Some("All is well."));
    assert_eq!(tools, [tool]);
    assert!(report.session.is_some());
    assert!(report.usage.is_some_and(|usage| usage.input > 1000 && usage.output > 0), "{report:?}");
    let requests = place.endpoint.prompts();
    assert_eq!(requests.len(), 2, "a request with the prompt, one with the tool's result, none for a title");
    let heard = requests[0].user.last().expect("there was a prompt");
    assert!(heard.contains(prompt), "{heard}");
    assert!(requests[1].results[0].contains("sea-cow"), "{:?}", requests[1].results);

    let (report, _) = place.turn(preset, "Refuse this.");
    let failure = report.failure.expect("it was refused");
    assert!(failure.contains("told to fail"), "{failure}");
}

#[test]
fn codex_answers_uses_tools_and_fails_as_its_preset_is_read() {
    check_turns("codex", "command_execution");
}

#[test]
fn opencode_answers_uses_tools_and_fails_as_its_preset_is_read() {
    check_turns("opencode", "bash");
}

/// Two tasks, once each way round.
const RELAY: &str = r#"
workflow relay

provider codex preset=codex
provider opencode preset=opencode

agent scribe provider=codex { system "You are the scribe of the lighthouse." }
agent keeper provider=opencode model="scripted/scripted"

pipeline forth {
    task draft agent=scribe { timeout "4m"; prompt "Draft a plan for the night." }
    task review agent=keeper { timeout "4m"; prompt "Review what the other wrote:\n<<output:draft>>" }
}

pipeline back {
    task draft agent=keeper { timeout "4m"; prompt "Draft a plan for the night." }
    task review agent=scribe { timeout "4m"; prompt "Review what the other wrote:\n<<output:draft>>" }
}
"#;

/// What an agent says is data: none of this is ever expanded.
const DRAFT: &str =
    "1. Light the lamp.\n2. <<output:review>> {{ 6 * 7 }} $(touch here) `touch here` \"quoted\" ''\n3. Sleep.";

fn check_relay(pipeline: &str, protocol: Protocol) {
    let programs = programs();
    let script = Script::new()
        .on("Review what the other wrote", Answer::text("The lamp is right."))
        .on("Draft a plan", Answer::text(DRAFT));
    let place = Place::new(programs, script);
    fs::write(place.work().join("relay.kdl"), RELAY).expect("a file can be written");
    let ended = place.swarmc(&["run", "relay.kdl", "--pipeline", pipeline]);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}");
    assert!(out.contains("The lamp is right."), "the result is printed: {out}");

    let handed = format!("--- Output from task \"draft\" ---\n{DRAFT}\n--- End output from task \"draft\" ---");
    let reviews = place.endpoint.prompts();
    let reviews: Vec<_> =
        reviews.iter().filter(|request| request.user.iter().any(|text| text.contains(&handed))).collect();
    assert_eq!(reviews.len(), 1, "the second agent's model was asked once, with the first one's words");
    assert_eq!(reviews[0].protocol, Some(protocol));
    assert!(!place.work().join("here").exists());

    let run = place.swarmc(&["inspect", "--json"]);
    let run: Value = serde_json::from_slice(&run.stdout).expect("inspect writes JSON");
    let read = |path: &Value| fs::read_to_string(path.as_str().expect("there is such a file")).expect("it is a text");
    for (step, answer) in [(&run["steps"][0], DRAFT), (&run["steps"][1], "The lamp is right.")] {
        assert_eq!(step["status"], "succeeded");
        assert_eq!(read(&step["paths"]["output"]).trim_end(), answer);
        assert!(step["usage"]["input"].as_u64() > Some(1000), "{step}");
        assert!(step["session"].as_str().is_some_and(|session| session.len() > 10), "{step}");
    }
    assert!(read(&run["steps"][1]["paths"]["prompt"]).contains(&handed));
}

#[test]
fn what_codex_writes_reaches_opencode() {
    check_relay("forth", Protocol::Chat);
}

#[test]
fn what_opencode_writes_reaches_codex() {
    check_relay("back", Protocol::Responses);
}

#[test]
fn a_refused_turn_fails_its_task_with_the_words_of_the_stream() {
    let programs = programs();
    let place = Place::new(programs, Script::new().otherwise(Answer::status(400, "told to fail")));
    fs::write(place.work().join("relay.kdl"), RELAY).expect("a file can be written");
    let ended = place.swarmc(&["run", "relay.kdl"]);
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{err}");
    assert!(err.contains("told to fail"), "{err}");
    assert!(place.endpoint.prompts().iter().all(|request| !request.user.iter().any(|text| text.contains("Review"))));
}

#[test]
fn a_program_that_is_not_installed_is_named_with_what_to_type() {
    let place = Place::new(PathBuf::from("/nonexistent"), Script::new());
    let spec = "workflow w\nprovider p preset=pi\nagent a provider=p\npipeline p { task t { prompt \"Go.\" } }\n";
    fs::write(place.work().join("w.kdl"), spec).expect("a file can be written");
    let mut command = place.command(&["run", "w.kdl"]);
    let ended = command.env("PATH", "/nonexistent").output().expect("swarmc starts");
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{err}");
    assert!(err.contains("nothing was started: `pi`: not found, which `t` starts for agent `a`"), "{err}");
    assert!(err.contains("`pi`") && err.contains("npm install -g @mariozechner/pi-coding-agent"), "{err}");
}

#[test]
fn a_program_that_hangs_after_its_result_is_ended_and_done() {
    let place = Place::new(PathBuf::from("/nonexistent"), Script::new());
    let spec = r#"
workflow w
provider p { exec sh "hang.sh"; reads codex-jsonl }
agent a provider=p
pipeline p { task t { prompt "Go."; grace "50ms" } }
"#;
    let script = r#"cat >/dev/null
echo '{"type":"item.completed","item":{"type":"agent_message","text":"Done, in a way."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":1}}'
exec sleep 1000
"#;
    fs::write(place.work().join("w.kdl"), spec).expect("a file can be written");
    fs::write(place.work().join("hang.sh"), script).expect("a file can be written");
    let ended = place.swarmc(&["run", "w.kdl"]);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}");
    assert!(err.contains("t │ Done, in a way.\n"), "what the agent says as it says it: {err}");
    assert_eq!(out, "Done, in a way.\n", "then the result");
}

/// A task with a typed output, of an agent by `preset`.
fn typed_run(place: &Place, preset: &str, agent: &str) -> Value {
    let spec = format!(
        "workflow w\nprovider p preset={preset}\nagent a provider=p {agent}\n\
         pipeline q {{ task judge {{ timeout \"4m\"; prompt \"Judge the lamp.\" }} }}\n"
    );
    fs::write(place.work().join("w.kdl"), spec).expect("a file can be written");
    let planned = place.swarmc(&["plan", "w.kdl", "-o", "plan.json"]);
    assert_eq!(planned.status.code(), Some(0), "{}", String::from_utf8_lossy(&planned.stderr));
    let path = place.work().join("plan.json");
    let mut plan: Value = serde_json::from_str(&fs::read_to_string(&path).expect("there is a plan")).expect("JSON");
    let output = &mut plan["pipelines"][0]["steps"][0]["output"];
    output["schema"] = json!({ "$ref": "#/$defs/Verdict" });
    output["repair"] = json!(1);
    plan["$defs"] = json!({ "Verdict": {
        "type": "object",
        "properties": {
            "severity": { "type": "string", "enum": ["low", "high"] },
            "note": { "type": "string", "maxLength": 80 },
        },
        "required": ["severity"],
        "additionalProperties": false,
    } });
    fs::write(&path, plan.to_string()).expect("a file can be written");
    let ended = place.swarmc(&["run", "plan.json"]);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}");
    assert!(err.contains("asked again, 1 of 1"), "{err}");
    assert!(out.ends_with("{\"severity\":\"high\"}\n"), "{out}");
    let run = place.swarmc(&["inspect", "--json"]);
    serde_json::from_slice(&run.stdout).expect("inspect writes JSON")
}

/// A model that answers with the wrong word first, and mends it when told.
fn careless() -> Script {
    let says = |severity: &str, input, output| {
        let answer = Answer::text(json!({ "severity": severity, "note": null }).to_string());
        answer.usage(Usage { input, output, ..Usage::default() })
    };
    Script::new()
        .on("Your last answer does not fit", says("high", 1500, 20))
        .on("Judge the lamp.", says("hgih", 1000, 10))
}

#[test]
fn codex_is_given_the_schema_and_mends_its_answer_in_its_session() {
    let place = Place::new(programs(), careless());
    let run = typed_run(&place, "codex", "");
    let requests = place.endpoint.prompts();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        let format = &request.body["text"]["format"];
        assert_eq!((&format["type"], &format["strict"]), (&json!("json_schema"), &json!(true)), "{format}");
        assert_eq!(format["schema"]["required"], json!(["severity", "note"]), "{format}");
        assert_eq!(request.user.iter().filter(|text| text.contains("Judge the lamp.")).count(), 1);
    }
    let told = requests[1].user.last().expect("there was a prompt");
    assert!(told.contains("- at /severity: \"hgih\" is none of low, high"), "{told}");
    assert!(!told.contains("/note"), "a null that was asked for is no fault: {told}");
    let input = requests[1].body["input"].as_array().expect("there is a conversation");
    let own: Vec<&Value> = input.iter().filter(|message| message["role"] == "assistant").collect();
    assert!(own.len() == 1 && own[0].to_string().contains("hgih"), "the model sees its own answer: {own:?}");
    // Codex counts over all turns of the thread; each counts once here.
    let usage = &run["steps"][0]["usage"];
    assert_eq!((&usage["input"], &usage["output"]), (&json!(2500), &json!(30)));
}

#[test]
fn opencode_is_told_the_schema_and_mends_its_answer_in_its_session() {
    let place = Place::new(programs(), careless());
    let run = typed_run(&place, "opencode", "model=\"scripted/scripted\"");
    let requests = place.endpoint.prompts();
    assert_eq!(requests.len(), 2);
    let asked = requests[0].user.last().expect("there was a prompt");
    assert!(asked.contains("Judge the lamp.\n\nAnswer with one JSON value that satisfies this JSON Schema"), "{asked}");
    assert!(requests[1].user.iter().any(|text| text == asked), "the session goes on: {:?}", requests[1].user);
    let told = requests[1].user.last().expect("there was a prompt");
    assert!(told.contains("- at /severity: \"hgih\" is none of low, high"), "{told}");
    assert!(run["steps"][0]["session"].as_str().is_some_and(|session| session.starts_with("ses_")), "{run}");
    let usage = &run["steps"][0]["usage"];
    assert_eq!((&usage["input"], &usage["output"]), (&json!(2500), &json!(30)));
}

/// Two tasks of one conversation, and one outside of it.
const TALK: &str = r#"
workflow talk
provider p preset=opencode
agent keeper provider=p model="scripted/scripted"
pipeline p {
    task first { session watch; timeout "4m"; prompt "Name a ship." }
    task second { session watch; depends-on first; timeout "4m"; prompt "Name its captain." }
    task third { depends-on second; timeout "4m"; prompt "Name a harbour." }
}
"#;

#[test]
fn opencode_goes_on_with_its_session_in_the_next_task() {
    let script = Script::new()
        .on("Name a harbour", Answer::text("Oban."))
        .on("Name its captain", Answer::text("Ada."))
        .on("Name a ship", Answer::text("Terra Nova."));
    let place = Place::new(programs(), script);
    fs::write(place.work().join("talk.kdl"), TALK).expect("a file can be written");
    let ended = place.swarmc(&["run", "talk.kdl"]);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}");
    let requests = place.endpoint.prompts();
    let heard = |number: usize, text: &str| requests[number].user.iter().any(|said: &String| said.contains(text));
    assert_eq!(requests.len(), 3, "one request a turn");
    assert!(heard(1, "Name a ship.") && heard(1, "Name its captain."), "{:?}", requests[1].user);
    assert!(requests[1].body["messages"].to_string().contains("Terra Nova."), "it knows what it answered");
    assert!(heard(2, "Name a harbour.") && !heard(2, "Name a ship."), "{:?}", requests[2].user);
    let run = place.swarmc(&["inspect", "--json"]);
    let run: Value = serde_json::from_slice(&run.stdout).expect("inspect writes JSON");
    let session = |step: usize| run["steps"][step]["session"].as_str().expect("it has one").to_owned();
    assert_eq!(session(0), session(1));
    assert_ne!(session(1), session(2));
}
