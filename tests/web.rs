//! `swarmc serve` and its page, held by programs of others: schemathesis, redocly, openapi-typescript, clients of
//! server-sent events, Chromium with axe, and Firefox.
//!
//! `live` has runs that go on meanwhile, `agents` a real agent, `curl` what that program gets. `tests/install-web` puts the
//! programs into a cache outside the checkout; these tests call it, and fail without. Servers listen on this machine alone.

mod agents;
mod curl;
mod live;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cli::Place;
use crate::serve::Server;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the programs.
fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let script = root().join("tests/install-web");
        let output = Command::new(script).stderr(Stdio::inherit()).output().expect("tests/install-web can be started");
        assert!(output.status.success(), "tests/install-web failed: it says why above");
        PathBuf::from(String::from_utf8(output.stdout).expect("a path is UTF-8").trim())
    })
}

/// A folder for scripts, in which they find their packages.
fn workshop() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let packages = programs().join("node_modules");
    std::os::unix::fs::symlink(packages, folder.path().join("node_modules")).expect("a link can be made");
    for file in fs::read_dir(root().join("tests/web")).expect("there are scripts") {
        let file = file.expect("it can be read");
        fs::copy(file.path(), folder.path().join(file.file_name())).expect("it can be copied");
    }
    fs::write(folder.path().join("package.json"), r#"{"type":"module"}"#).expect("it can be written");
    folder
}

fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    out
}

/// Waits until something is so.
fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "it never comes to this: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Has Node.js run a script of `tests/web` against a run; what the script prints.
pub(crate) fn run_script(script: &str, server: &Server, run: &str, more: &[(&str, &str)]) -> String {
    let folder = workshop();
    let mut command = Command::new("node");
    command.arg(script).current_dir(folder.path()).envs(more.iter().copied());
    command.env("SERVER", server.url()).env("TOKEN", server.token()).env("RUN", run);
    self::run(&mut command)
}

fn npx(folder: &TempDir, program: &str) -> Command {
    let mut command = Command::new(programs().join("node_modules/.bin").join(program));
    command.current_dir(folder.path()).env("REDOCLY_TELEMETRY", "off").env("CI", "true");
    command
}

/// A run with envelopes, a swarm and a diff, and a server over its home.
fn served() -> (Place, Server, String) {
    let place = Place::new("");
    fs::create_dir(place.work().join("specs")).expect("a folder can be made");
    crate::specs::copy(&root().join("specs/refactor-swarm"), &place.work().join("specs/refactor-swarm"));
    place.swarmc(&["run", "specs/refactor-swarm/refactor-swarm.kdl"]).expect(0, &[], &[]);
    let server = Server::start(&place, &[]);
    let run = server.last_run();
    (place, server, run)
}

#[test]
fn the_api_does_what_its_description_says() {
    let (place, server, name) = served();
    let settings = format!(
        "[parameters]\n\"path.run\" = \"{name}\"\n\"path.label\" = \"refactor\"\n\"path.agent\" = \"a1\"\n\
         \"path.path\" = \"journal.jsonl\"\n"
    );
    place.write("schemathesis.toml", &settings);
    let mut command = Command::new(programs().join("python/bin/python"));
    command.args(["-m", "schemathesis.cli"]);
    let url = format!("{}/api/v1/openapi.json", server.url());
    command.args(["run", &url, "--checks", "all", "--max-examples", "15", "--seed", "1"]);
    command.args(["-H", &format!("Authorization: Bearer {}", server.token())]).current_dir(place.work());
    let told = run(&mut command);
    assert!(told.contains("No issues found") || told.contains("passed"), "{told}");
}

#[test]
fn the_description_is_sound_and_gives_a_typed_client() {
    let place = Place::new("");
    let server = Server::start(&place, &[]);
    let folder = workshop();
    let description = server.read("/api/v1/openapi.json");
    fs::write(folder.path().join("openapi.json"), description.to_string()).expect("it can be written");
    run(npx(&folder, "redocly").args(["lint", "openapi.json", "--skip-rule=operation-4xx-response"]));
    run(npx(&folder, "openapi-typescript").args(["openapi.json", "-o", "schema.d.ts"]));
    run(npx(&folder, "tsc").args(["--noEmit", "--strict", "--module", "nodenext", "--skipLibCheck", "client.ts"]));
}

#[test]
fn clients_of_others_read_each_record_once_through_twenty_cuts() {
    let (place, server, name) = served();
    let printed = place.swarmc(&["events", &name]).out;
    let folder = workshop();
    let with_server = |command: &mut Command| {
        command.env("SERVER", server.url()).env("TOKEN", server.token()).env("RUN", &name);
        run(command.current_dir(folder.path()))
    };
    assert_eq!(with_server(Command::new("node").arg("events.mjs")), printed);
    assert_eq!(with_server(Command::new(programs().join("python/bin/python")).arg("events.py")), printed);
}

/// What is committed of the page is what its sources give: `npm run build` makes the same bytes.
#[test]
fn the_page_is_what_its_sources_give() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let copy = |name: &str| {
        let mut command = Command::new("cp");
        run(command.arg("-r").arg(root().join("web").join(name)).arg(folder.path().join("web").join(name)));
    };
    fs::create_dir_all(folder.path().join("web")).expect("a folder can be made");
    programs();
    for name in ["src", "test", "package.json", "package-lock.json", "tsconfig.json", "build.mjs"] {
        copy(name);
    }
    let npm = |arguments: &[&str]| {
        run(Command::new("npm").args(arguments).current_dir(folder.path().join("web")));
    };
    npm(&["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]);
    npm(&["test"]);
    npm(&["run", "build"]);
    for name in ["index.html", "app.js", "app.css"] {
        let built = fs::read(folder.path().join("serve/page").join(name)).expect("it is built");
        let kept = fs::read(root().join("serve/page").join(name)).expect("it is kept");
        assert!(built == kept, "{name} is stale: run `npm ci && npm run build` in web/");
        // The zipped twin may be packed by another release of zlib.
        let zipped = Command::new("gzip").arg("-dc").arg(root().join("serve/page").join(format!("{name}.gz"))).output();
        assert!(zipped.expect("gzip starts").stdout == kept, "{name}.gz is another file");
    }
}

/// A gate, a tool that a person must allow, and an agent that reads messages.
const ASKS: &str = r##"
policy { tool shell human }
provider recorded {
    script {
        answer #"{"action": "tool_call", "tool": "shell", "tool_params": {"command": "echo ran"}}"# task=one turn=1
        answer #"{"action": "done", "response": "over"}"#
    }
}
provider slow { exec "sh" "-c" "cat >/dev/null; until [ -e go ]; do sleep 0.02; done; echo done" }
agent coder provider=recorded { tools shell; can run-commands }
agent slow provider=slow
swarm team {
    goal "Do it"
    member one agent=coder "Call it"
}
pipeline main {
    task go { swarm team }
    task build agent=slow { prompt "Build" }
    gate human { message "Publish it?"; options approve hold; on-timeout hold after="24h" }
    task review agent=slow { depends-on build; when "output.human.choice == 'approve'"; prompt "Review" }
    result review
}
"##;

#[test]
fn a_person_answers_in_the_page_and_a_page_of_another_site_reaches_nothing() {
    let place = Place::new(ASKS);
    let (mut child, _) = place.until(&["run", "flow.kdl"], "wants tool shell");
    let server = Server::start(&place, &[]);
    let name = server.last_run();
    run_script("page.mjs", &server, &name, &[]);
    run_script("steer.mjs", &server, &name, &[]);
    let shown = |arguments: &[&str]| place.swarmc(&[&["inspect", &name], arguments].concat()).out;
    assert!(shown(&["go"]).contains("allow, by a person"), "{}", shown(&["go"]));
    assert!(shown(&["build", "--raw"]).contains("Mind the gap"));
    place.write("go", "");
    assert!(child.wait().expect("it ends").success());
    assert!(shown(&["human", "--json"]).contains("succeeded"));
}

#[test]
fn two_emulators_of_others_show_the_same_screen_at_every_size() {
    let tasks: String = (0..500).map(|number| format!("    task t{number} {{ run echo line{number} }}\n")).collect();
    let place = Place::new("");
    place.write("big.kdl", &format!("workflow big\npipeline p {{\n{tasks}}}\n"));
    place.swarmc(&["run", "big.kdl", "--quiet"]).expect(0, &[], &[]);
    let mut command = Command::new(programs().join("python/bin/python"));
    command.env("SWARMC", env!("CARGO_BIN_EXE_swarmc")).env("SWARM_HOME", place.home());
    run(command.arg(root().join("tests/web/screen.py")).current_dir(place.work()));
}
