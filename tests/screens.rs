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
