//! Where no person sits at a terminal: a pipe, a dumb terminal, SSH without a terminal, a hook of pre-commit. No escape
//! sequence comes, and nothing waits for a key.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use super::programs;
use crate::cli::Place;
use crate::top::{Terminal, until};

const SHORT: &str = "workflow short\npipeline p { task greet { run echo hello } }\n";

const SWARMC: &str = env!("CARGO_BIN_EXE_swarmc");

fn assert_plain(what: &str, written: &str, parts: &[&str]) {
    assert!(!written.contains('\u{1b}'), "{what}: {written:?}");
    for part in parts {
        assert!(written.contains(part), "{what}: no `{part}` in {written}");
    }
}

#[test]
fn a_pipe_and_a_dumb_terminal_get_text() {
    let place = Place::new(SHORT);
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["hello"], &[]);
    for line in [
        "swarmc top last | cat",
        "TERM=dumb swarmc top last",
        "CI=1 swarmc top last",
        "TERM=dumb swarmc run flow.kdl --tui",
        "CI=1 NO_COLOR=1 swarmc run flow.kdl --tui",
        "swarmc run flow.kdl --tui 2>&1 | cat",
    ] {
        // The exit code of a pipe is that of its first program.
        let (written, ended) = Terminal::open(&place, &format!("bash -c 'set -o pipefail; {line}'")).end();
        assert!(ended, "{line}: {written}");
        assert_plain(line, &written, &["greet"]);
    }
}

/// A server of SSH on this machine, with keys of its own, which ends with this.
struct Ssh {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Ssh {
    fn start(place: &Place) -> Ssh {
        programs();
        let folder = tempfile::TempDir::new().expect("a folder can be made");
        let path = |name: &str| folder.path().join(name);
        for key in ["host", "person"] {
            let mut command = Command::new("ssh-keygen");
            let made = command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path(key)).status();
            assert!(made.expect("ssh-keygen starts").success(), "no key");
        }
        // It listens on a port that is free now; another program hardly takes it meanwhile.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port is free").port();
        let settings = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\nSetEnv SWARM_HOME={} LANG=C.UTF-8\n",
            path("host").display(),
            path("person.pub").display(),
            place.home().display(),
        );
        fs::write(path("settings"), settings).expect("it can be written");
        let log = fs::File::create(path("log")).expect("a file can be made");
        let mut command = Command::new("/usr/sbin/sshd");
        let child = command.args(["-D", "-e", "-f"]).arg(path("settings")).stdin(Stdio::null()).stderr(log).spawn();
        let ssh = Ssh { child: child.expect("sshd starts"), folder, port };
        until("a server of SSH", || ssh.log().contains("Server listening"));
        ssh
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// What a command prints there, and says; it must end well.
    fn run(&self, line: &str) -> (String, String) {
        let mut command = Command::new("ssh");
        command.args(["-T", "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"]);
        command.args([
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "LogLevel=ERROR",
            "-p",
            &self.port.to_string(),
            "-i",
        ]);
        command.arg(self.folder.path().join("person")).args(["localhost", line]).stdin(Stdio::null());
        let output = command.output().expect("ssh starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is UTF-8");
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(output.status.success(), "{line}: {out}\n{err}\n{}", self.log());
        (out, err)
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn ssh_without_a_terminal_gets_text() {
    let place = Place::new(SHORT);
    let ssh = Ssh::start(&place);
    let work = place.work();
    let (out, err) = ssh.run(&format!("cd {} && {SWARMC} run flow.kdl --tui", work.display()));
    assert_plain("run --tui", &(out + &err), &["hello", "without a terminal the run prints lines", "greet: started"]);
    let (out, err) = ssh.run(&format!("{SWARMC} top last"));
    assert_plain("top", &(out + &err), &["succeeded", "✓ greet"]);
}

/// pre-commit runs a hook on a terminal of its own where a person sits at one: nothing there presses keys.
#[test]
fn a_hook_of_pre_commit_runs_a_spec() {
    let place = Place::new(SHORT);
    place.write(
        ".pre-commit-config.yaml",
        &format!(
            "repos:\n- repo: local\n  hooks:\n  - id: flow\n    name: flow\n    language: system\n    entry: {SWARMC} run flow.kdl --tui\n    \
             pass_filenames: false\n    always_run: true\n    verbose: true\n    log_file: hook.log\n"
        ),
    );
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        let done = command.args(arguments).current_dir(place.work()).stdout(Stdio::null()).status();
        assert!(done.expect("git starts").success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "flow.kdl", ".pre-commit-config.yaml"]);
    let hook = |color: &str| {
        let _ = fs::remove_file(place.work().join("hook.log"));
        let program = programs().join("bin/pre-commit");
        let home = place.home().with_file_name("pre-commit");
        let program = program.display().to_string();
        place.write("commit.sh", &format!("PRE_COMMIT_HOME={} exec {program} run --color {color}", home.display()));
        let (written, ended) = Terminal::open(&place, "sh commit.sh").end();
        assert!(ended && written.contains("Passed"), "{color}: {written}");
        (written, fs::read_to_string(place.work().join("hook.log")).expect("the hook wrote something"))
    };
    let (written, log) = hook("never");
    assert_plain("pre-commit", &(written + &log), &["hello", "without a terminal the run prints lines"]);
    let (_, log) = hook("always");
    assert!(log.contains("hello") && !log.contains("\u{1b}[?"), "{log:?}");
}
