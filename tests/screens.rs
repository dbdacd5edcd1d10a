//! `swarmc top` on the terminals of others: tmux, pyte, SSH without a terminal, and a hook of pre-commit.
//!
//! `tests/install-screens` installs them; these tests call it, and fail without. All of them run on this machine alone.

mod answered;
mod hostile;
mod plain;
mod survives;
mod views;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::cli::Place;
use crate::top::SPEC;

/// The folder of the programs that come from a registry.
fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/install-screens");
        let output = Command::new(script).stderr(Stdio::inherit()).output().expect("it can be started");
        assert!(output.status.success(), "tests/install-screens failed: it says why above");
        PathBuf::from(String::from_utf8(output.stdout).expect("a path is UTF-8").trim())
    })
}

/// A tmux with one window, which ends with this. Its socket lies beside the work of the place.
struct Tmux {
    socket: PathBuf,
    work: PathBuf,
}

impl Tmux {
    /// A window of this size with a shell command, in which `swarmc` is the binary.
    fn open(place: &Place, columns: u16, rows: u16, line: &str) -> Tmux {
        programs();
        let tmux = Tmux { socket: place.home().with_file_name("tmux"), work: place.work() };
        let line = line.replace("swarmc", env!("CARGO_BIN_EXE_swarmc"));
        let mut command = tmux.command(&["-f", "/dev/null", "new-session", "-d"]);
        command.args(["-x", &columns.to_string(), "-y", &rows.to_string(), &line]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        // What the test itself runs in must not be seen by what runs in the window.
        command.env_clear().env("PATH", path).env("HOME", place.work()).env("SHELL", "/bin/sh");
        command.env("TERM", "screen").env("LANG", "C.UTF-8").env("SWARM_HOME", place.home());
        command.env("PS1", "$ ");
        assert!(command.status().expect("tmux starts").success(), "no window");
        tmux
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(arguments).current_dir(&self.work).stdin(Stdio::null());
        command
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("tmux starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it is UTF-8")
    }

    fn press(&self, key: &str) {
        self.ask(&["send-keys", key]);
    }

    /// What the window shows.
    fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p"])
    }

    /// The screen, once it shows this.
    fn wait(&self, text: &str) -> String {
        self.wait_for(text, |screen| screen.contains(text))
    }

    fn wait_for(&self, what: &str, shows: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let screen = self.screen();
            if shows(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "it never shows {what}:\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Presses a key that answers, once the question has stood for long enough to count.
    fn answer(&self, key: &str) {
        std::thread::sleep(Duration::from_millis(700));
        self.press(key);
    }

    /// The process that the window began with.
    fn pid(&self) -> u32 {
        self.ask(&["display-message", "-p", "#{pane_pid}"]).trim().parse().expect("it is a number")
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).stderr(Stdio::null()).status();
    }
}

/// With `M` a click selects a row and the wheel moves; without, the terminal keeps its mouse. `s` saves the log once.
#[test]
fn the_mouse_selects_where_a_person_wants_it_and_the_log_is_saved() {
    let place = Place::new(SPEC);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "human waits");
    let tmux = Tmux::open(&place, 120, 24, "exec swarmc top last");
    tmux.wait("● build");
    tmux.press("j");
    tmux.wait("Steps: 3 of 4");
    // A press of the left button in column 3 of line 3, the first row of the list.
    let click = |line: u32| tmux.ask(&["send-keys", "-l", &format!("\u{1b}[<0;3;{line}M")]);
    tmux.press("M");
    let screen = tmux.wait("clicks select");
    let build = screen.lines().position(|line| line.starts_with("● build")).expect("it is listed") as u32 + 1;
    click(3);
    tmux.wait("Steps: 1 of 4");
    click(4);
    tmux.wait("Steps: 2 of 4");
    tmux.ask(&["send-keys", "-l", "\u{1b}[<65;3;4M"]);
    tmux.wait("Steps: 4 of 4");
    click(20);
    click(build);
    tmux.wait("Log of build");
    // What is not in the log so far cannot be saved.
    tmux.wait_for("both lines of the log", |screen| screen.contains("Log of build") && screen.contains("two"));
    tmux.press("M");
    tmux.wait("the terminal has the mouse");
    click(3);
    tmux.press("s");
    let screen = tmux.wait("saved as ");
    let name = screen.split("saved as ").nth(1).and_then(|rest| rest.split(',').next()).expect("it has a name");
    let saved = std::fs::read_to_string(place.work().join(name)).expect("it is in the current folder");
    assert!(saved.contains("two\n"), "{saved:?}");
    tmux.press("s");
    tmux.wait("cannot save the log");
    place.write("go", "");
    tmux.press("!");
    tmux.answer("1");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
}

/// A gate that asks for fields is answered on the screen: one that is required, and one that stays empty.
#[test]
fn the_fields_of_a_gate_are_typed_on_the_screen() {
    let place = Place::new(
        r#"
        pipeline p {
            gate human {
                message "Ship it?"
                options approve reject
                ask version string
                ask remark string?
                on-timeout reject after="24h"
            }
            task tell {
                when "output.human.choice == 'approve'"
                run cat
                stdin "<<output:human.version | default:\"none\">> <<output:human.remark | default:\"nothing\">>"
            }
            result tell
        }
        "#,
    );
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "human waits");
    let tmux = Tmux::open(&place, 80, 24, "exec swarmc top last");
    tmux.wait("◆ human");
    tmux.press("!");
    tmux.wait("[1] approve");
    tmux.answer("1");
    tmux.wait("approve, with version: _");
    // A field that is required does not stay empty, and letters that are keys elsewhere are text here.
    tmux.press("Enter");
    tmux.ask(&["send-keys", "-l", "1.2 q!x"]);
    tmux.press("BSpace");
    tmux.wait("approve, with version: 1.2 q!_");
    tmux.press("Enter");
    tmux.wait("approve, with remark (optional): _");
    tmux.press("Escape");
    tmux.wait("[1] approve");
    tmux.answer("1");
    tmux.wait("approve, with version: _");
    tmux.ask(&["send-keys", "-l", "2.0"]);
    tmux.press("Enter");
    tmux.wait("approve, with remark (optional): _");
    tmux.press("Enter");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let told = place.swarmc(&["inspect", "last", "tell", "--json"]).expect(0, &[], &[]).out;
    let run = std::fs::read_dir(place.home().join("outputs")).expect("there are outputs").next();
    let output = run.expect("there is a run").expect("it can be read").path().join("tell.txt");
    assert_eq!(std::fs::read_to_string(output).expect("it has an output").trim(), "2.0 nothing", "{told}");
}

/// A person looks at a run of another process in windows of three sizes, and answers its gate.
#[test]
fn a_gate_is_answered_in_a_window_of_tmux_of_any_size() {
    let place = Place::new(SPEC);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "human waits");
    let tmux = Tmux::open(&place, 200, 50, "exec swarmc top last");
    let screen = tmux.wait("● build");
    assert!(screen.contains("◆ human") && screen.contains("waits for you"), "{screen}");
    for (columns, rows) in [(200, 50), (80, 24), (40, 8)] {
        let (width, height) = (columns.to_string(), rows.to_string());
        tmux.ask(&["resize-window", "-x", &width, "-y", &height]);
        // The last line is drawn at the new size: before, it was wider, and its end is cut.
        for (key, text) in [("Tab", "? keys"), ("Tab", "● build"), ("?", "Keys"), ("Escape", "● build"), ("!", "human")]
        {
            tmux.press(key);
            let screen = tmux.wait(text);
            let lines: Vec<&str> = screen.lines().collect();
            assert!(lines.len() <= rows, "{columns} × {rows}: {screen}");
            for line in lines {
                assert!(line.chars().count() <= columns && !line.contains('\u{fffd}'), "{columns} × {rows}: {screen}");
            }
        }
        tmux.press("Escape");
        tmux.wait("● build");
    }
    tmux.press("!");
    tmux.wait("[1] approve");
    tmux.answer("1");
    tmux.wait("answered: approve");
    place.swarmc(&["inspect", "last", "human"]).expect(0, &["approve"], &[]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    tmux.wait("succeeded");
}
