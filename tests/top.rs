//! `swarmc top` on a pseudo-terminal, in a pipe, and at every size; `swarmc events`.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::Place;

/// One step works until the file `go` exists, and a gate waits. The log and the message of the gate contain escape
/// sequences.
pub(crate) const SPEC: &str = r##"
provider slow { exec "sh" "-c" "cat >/dev/null; printf 'one\\033[2J\\033]52;c;eA==\\007\\ntwo\\n'; until [ -e go ]; do sleep 0.02; done; echo done" }
provider quick { exec "cat" }
agent slow provider=slow
agent quick provider=quick
pipeline main {
    task plan agent=quick { prompt "Plan" }
    task build agent=slow { depends-on plan; prompt "Build" }
    gate human { depends-on plan; message "Publish\u{1b}[2J it?"; options approve hold; on-timeout hold after="24h" }
    task review agent=quick { depends-on build; when "output.human.choice == 'approve'"; prompt "Review" }
    result review
}
"##;

/// A program on a terminal of its own, which another program, `script`, makes.
pub(crate) struct Terminal {
    child: Child,
    output: JoinHandle<String>,
}

impl Terminal {
    pub(crate) fn open(place: &Place, line: &str) -> Terminal {
        let line = line.replace("swarmc", env!("CARGO_BIN_EXE_swarmc"));
        let mut command = Command::new("script");
        command.args(["-qefc", &line, "/dev/null"]).current_dir(place.work()).env("SWARM_HOME", place.home());
        command.env_remove("CI").env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("`script` starts: it is part of util-linux");
        let mut stdout = child.stdout.take().expect("it is a pipe");
        let output = thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).expect("it can be read");
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Terminal { child, output }
    }

    /// Presses keys once the picture has stood for a while, as for a person.
    fn press(&mut self, keys: &str) {
        self.press_after(900, keys);
    }

    fn press_after(&mut self, milliseconds: u64, keys: &str) {
        thread::sleep(Duration::from_millis(milliseconds));
        let stdin = self.child.stdin.as_mut().expect("it is a pipe");
        stdin.write_all(keys.as_bytes()).and_then(|()| stdin.flush()).expect("the program reads keys");
    }

    /// What it wrote, once it has ended, and whether it ended well.
    pub(crate) fn end(mut self) -> (String, bool) {
        let ended = self.child.wait().expect("it ends");
        (self.output.join().expect("it is read"), ended.success())
    }
}

pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_of_another_process_is_shown_and_its_gate_answered() {
    let place = Place::new(SPEC);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "human waits");
    let mut top = Terminal::open(&place, "stty rows 40 cols 120; swarmc top last");
    top.press("j");
    top.press("!");
    top.press("1");
    top.press("q");
    let (screen, ended) = top.end();
    assert!(ended, "{screen:?}");
    // The alternate screen is entered and left, and the run goes on.
    assert!(screen.contains("\x1b[?1049h") && screen.contains("\x1b[?1049l"), "{screen:?}");
    assert!(screen.contains("goes on: "), "{screen:?}");
    for part in ["build", "human", "waits for you", "[1] approve", "two"] {
        assert!(screen.contains(part), "no `{part}` in {screen:?}");
    }
    // What a task printed, and what the gate says, moves nothing.
    assert!(
        !screen.contains("\x1b]52") && !screen.contains("one\x1b[2J") && !screen.contains("Publish\x1b"),
        "{screen:?}"
    );
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    place.swarmc(&["inspect", "last", "human"]).expect(0, &["approve"], &[]);
}

#[test]
fn without_a_terminal_it_prints_a_frame() {
    let place = Place::new(SPEC);
    place.write("go", "");
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "human waits");
    let top = place.swarmc(&["top"]).expect(0, &["running", "◆ human", "waits for you", "✓ plan"], &[]);
    assert!(!top.out.contains('\x1b') && top.out.lines().all(|line| line.chars().count() <= 120), "{}", top.out);
    place.swarmc(&["approve", "last", "human", "approve"]).expect(0, &[], &[]);
    // Frames until the run ends.
    let frames = place.swarmc(&["top", "-n", "0", "-d", "0.1"]).expect(0, &["succeeded", "✓ review"], &[]);
    assert!(!frames.out.contains('\x1b'), "{}", frames.out);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    place.swarmc(&["top", "-d", "0"]).expect(2, &[], &["0.1 to 3600"]);
}

#[test]
fn no_size_of_the_terminal_is_a_problem() {
    let place = Place::new(SPEC);
    place.write("go", "");
    place.swarmc(&["run", "flow.kdl", "--headless"]).expect(0, &[], &[]);
    for (rows, columns) in [(1, 1), (2, 3), (3, 1), (4, 200), (8, 40), (24, 80), (50, 200)] {
        let mut top = Terminal::open(&place, &format!("stty rows {rows} cols {columns}; swarmc top last"));
        for keys in ["2", "\x1b[B?3!1\tfw", "\x1b", "q"] {
            top.press_after(250, keys);
        }
        let (screen, ended) = top.end();
        assert!(ended && !screen.contains("panicked"), "{rows} × {columns}: {screen:?}");
    }
}

/// Both Ctrl-C within two seconds stop the run, which can be resumed.
#[test]
fn a_second_interrupt_stops_the_run() {
    let place = Place::new(SPEC);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "human waits");
    let mut top = Terminal::open(&place, "stty rows 40 cols 120; swarmc top last");
    top.press("\x03");
    top.press("\x03");
    top.press("q");
    let (screen, ended) = top.end();
    assert!(ended && screen.contains("stop the run; it can be resumed"), "{screen:?}");
    assert_eq!(child.wait().expect("it ends").code(), Some(4), "{}", rest());
}

#[test]
fn events_are_the_records_of_run_json() {
    let place = Place::new(SPEC);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "human waits");
    let follower = place.command(&["events", "--follow"]).stdout(Stdio::piped()).spawn().expect("it starts");
    place.swarmc(&["approve", "last", "human", "approve"]).expect(0, &[], &[]);
    until("an answer", || place.swarmc(&["events"]).out.contains("gate_answered"));
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let followed = follower.wait_with_output().expect("it ends with the run");
    let all = place.swarmc(&["events", "last"]).expect(0, &[], &[]).out;
    assert_eq!(String::from_utf8_lossy(&followed.stdout), all, "following prints each record once");
    let lines: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&lines[0]["type"], &lines[0]["event"]), (&"record".into(), &"run_started".into()));
    assert!(lines.iter().zip(1_u64..).all(|(line, seq)| line["seq"] == seq), "{all}");
    let last = lines.len() - 1;
    let rest = place.swarmc(&["events", "last", "--from", &last.to_string()]).expect(0, &["run_finished"], &[]).out;
    assert_eq!(rest.lines().count(), 1, "{rest}");
}

/// Closing the window ends the screen at once, and not the run.
#[test]
fn a_terminal_that_is_gone_ends_the_screen_alone() {
    let place = Place::new(SPEC);
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "human waits");
    let run = place.swarmc(&["ps", "--json"]).out;
    let run: Value = serde_json::from_str(&run).expect("JSON");
    let line = format!("swarmc top {}", run["runs"][0]["run"].as_str().expect("an id"));
    let mut top = Terminal::open(&place, &format!("stty rows 40 cols 120; {line}"));
    let shown = line.replace("swarmc", env!("CARGO_BIN_EXE_swarmc")).replace(' ', "\0") + "\0";
    let is_there = || {
        let processes = fs::read_dir("/proc").expect("there is a /proc").flatten();
        processes
            .into_iter()
            .any(|process| fs::read(process.path().join("cmdline")).is_ok_and(|it| it == shown.as_bytes()))
    };
    until("a screen", is_there);
    thread::sleep(Duration::from_millis(500));
    top.child.kill().expect("it can be killed");
    until("an end", || !is_there());
    let _ = top.end();
    place.swarmc(&["approve", "last", "human", "approve"]).expect(0, &[], &[]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
}

/// The run goes on in a process of its own, and leaving the screen ends nothing.
#[test]
fn a_run_is_started_on_the_screen_and_outlives_it() {
    let place = Place::new(SPEC);
    let mut screen = Terminal::open(&place, "stty rows 40 cols 120; swarmc run flow.kdl --tui");
    screen.press("j");
    screen.press("q");
    let (shown, ended) = screen.end();
    assert!(ended && shown.contains("\x1b[?1049h") && shown.contains("goes on: swarmc top"), "{shown:?}");
    // What stays on the terminal is how each step stands.
    let rest = shown.rsplit("\x1b[?1049l").next().unwrap_or_default();
    assert!(rest.contains("build") && rest.contains("human"), "{rest:?}");
    place.swarmc(&["approve", "last", "human", "approve"]).expect(0, &[], &[]);
    place.write("go", "");
    until("an end", || place.swarmc(&["ps", "--all"]).out.contains("succeeded"));
    // A spec with mistakes says so, and without a terminal there are lines.
    place.write("wrong.kdl", "workflow w\npipeline p { task a { depends-on b; run echo } }\n");
    let (shown, ended) = Terminal::open(&place, "swarmc run wrong.kdl --tui").end();
    assert!(!ended && shown.contains("SW101"), "{shown:?}");
    let plain = place.swarmc(&["run", "flow.kdl", "--tui", "--headless"]);
    plain.expect(0, &[], &["note: without a terminal the run prints lines", "plan: started"]);
}

/// A run whose runner was killed goes on by a key; the end of a log goes to the clipboard.
#[test]
fn a_key_resumes_a_run_whose_runner_is_gone() {
    let place = Place::new(SPEC);
    let (mut child, _) = place.until(&["run", "flow.kdl"], "human waits");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let mut top = Terminal::open(&place, "stty rows 40 cols 120; swarmc top last");
    top.press("y");
    top.press("r");
    until("a runner", || place.swarmc(&["ps"]).out.contains("running"));
    top.press("q");
    let (shown, ended) = top.end();
    assert!(ended && shown.contains("runner gone: r resumes") && shown.contains("\x1b]52;c;"), "{shown:?}");
    place.write("go", "");
    place.swarmc(&["approve", "last", "human", "approve"]).expect(0, &[], &[]);
    until("an end", || place.swarmc(&["ps", "--all"]).out.contains("succeeded"));
}
