//! What is left when a screen ends without warning, and what one costs that shows nothing new.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::Value;

use super::Tmux;
use crate::cli::Place;
use crate::top::{SPEC, until};

/// Steps follow each other for as long as the file `end` is missing.
const LONG: &str = r#"
workflow long
pipeline main {
    iterations 10000
    task step { run sh "-c" "sleep 0.05; if [ -e end ]; then echo yes; else echo no; fi" }
    until "output.step == 'yes'"
}
"#;

/// The folder of the only run.
fn run_folder(place: &Place) -> PathBuf {
    let listed: Value = serde_json::from_str(&place.swarmc(&["ps", "--all", "--json"]).out).expect("it is JSON");
    place.home().join("runs").join(listed["runs"][0]["run"].as_str().expect("there is a run"))
}

/// The records of its journal, as far as they are whole.
fn count_records(place: &Place) -> usize {
    fs::read_to_string(run_folder(place).join("journal.jsonl")).map_or(0, |text| text.lines().count())
}

fn assert_grows(place: &Place) {
    let before = count_records(place);
    until("more records", || count_records(place) > before + 4);
}

/// Sends a signal to a screen, and waits for its end. That tmux takes note of it does not matter.
fn end_screen(pid: u32, signal: &str) {
    let sent = Command::new("kill").args(["-s", signal, &pid.to_string()]).status();
    assert!(sent.expect("kill starts").success());
    let state = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    until("the end of the screen", || state().is_empty() || state().contains(") Z "));
}

fn end_run(place: &Place, child: &mut Child) {
    place.write("end", "");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_run_goes_on_when_its_screen_or_its_terminal_is_killed() {
    let place = Place::new(LONG);
    let (mut child, _) = place.until(&["run", "flow.kdl"], "step: started");
    // The other window keeps tmux.
    let tmux = Tmux::open(&place, 100, 30, "exec sleep 1000");
    for ends in ["KILL", "kill-pane", "HUP", "TERM"] {
        let line = format!("exec {} top last", env!("CARGO_BIN_EXE_swarmc"));
        tmux.ask(&["new-window", &line]);
        tmux.wait("● step");
        match ends {
            "kill-pane" => _ = tmux.ask(&["kill-pane"]),
            signal => end_screen(tmux.pid(), signal),
        }
        until("one window", || tmux.ask(&["list-windows"]).lines().count() == 1);
        assert_grows(&place);
    }
    end_run(&place, &mut child);
}

/// The runner of a run that was started on a screen is a process of its own.
#[test]
fn a_run_that_was_started_on_a_screen_outlives_its_terminal() {
    let place = Place::new(LONG);
    let tmux = Tmux::open(&place, 100, 30, "exec sleep 1000");
    tmux.ask(&["new-window", &format!("exec {} run flow.kdl --tui", env!("CARGO_BIN_EXE_swarmc"))]);
    tmux.wait("● step");
    tmux.ask(&["kill-pane"]);
    until("one window", || tmux.ask(&["list-windows"]).lines().count() == 1);
    assert_grows(&place);
    place.write("end", "");
    until("its end", || place.swarmc(&["ps", "--all"]).out.contains("succeeded"));
}

// Only debug builds panic on demand.
#[cfg(debug_assertions)]
#[test]
fn a_panic_leaves_a_terminal_that_can_be_used() {
    let place = Place::new("workflow short\npipeline p { task greet { run echo hello } }\n");
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    let tmux = Tmux::open(&place, 100, 30, "sh");
    let type_line = |line: &str, done: &str| {
        tmux.ask(&["send-keys", "-l", &line.replace("swarmc", env!("CARGO_BIN_EXE_swarmc"))]);
        tmux.press("Enter");
        until(done, || place.work().join(done).exists());
    };
    type_line("stty -a >before; touch first", "first");
    type_line("SWARMC_TOP_PANIC=1 swarmc top last; echo \"code $?\" >code; touch second", "second");
    type_line("stty -a >after; touch third", "third");
    let read = |name: &str| fs::read_to_string(place.work().join(name)).expect("it was written");
    assert_eq!(read("before"), read("after"), "the settings of the terminal");
    assert!(read("before").contains(" icanon") && read("before").contains(" echo "), "{}", read("before"));
    assert_eq!(read("code"), "code 101\n", "it has panicked");
    // The screen of before is back, with its cursor, and says what went wrong.
    assert_eq!(
        tmux.ask(&["display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"]).trim(),
        "0 1 0"
    );
    let screen = tmux.wait("SWARMC_TOP_PANIC is set");
    assert!(screen.contains("stty -a >after"), "{screen}");
}

/// The calls that a process made to write.
fn count_writes(pid: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).expect("the system counts");
    let line = io.lines().find_map(|line| line.strip_prefix("syscw: ")).expect("calls are counted");
    line.trim().parse().expect("it is a number")
}

/// Counted, not timed: on a slow machine there are fewer.
#[test]
fn a_screen_without_news_writes_little_and_none_when_the_run_is_over() {
    let tasks: String = (0..300).map(|number| format!("    task t{number} {{ run \"true\" }}\n")).collect();
    let place = Place::new(&format!(
        "workflow many\npipeline p {{\n{tasks}    gate human {{ message \"Go on?\"; options yes no; on-timeout no after=\"24h\" }}\n    task last {{ when \"output.human.choice == 'yes'\"; run echo }}\n}}\n"
    ));
    let (mut child, _) = place.until(&["run", "flow.kdl"], "human waits");
    let tmux = Tmux::open(&place, 200, 50, "exec swarmc top last");
    tmux.wait_for("all of its steps", |screen| screen.contains("300 done"));
    let during = |seconds: u64| {
        let before = count_writes(tmux.pid());
        std::thread::sleep(Duration::from_secs(seconds));
        count_writes(tmux.pid()) - before
    };
    // The clock of the head alone.
    let running = during(4);
    assert!((1..4 * 30).contains(&running), "{running} writes in 4 seconds");
    place.swarmc(&["approve", "last", "human", "yes"]).expect(0, &[], &[]);
    assert!(child.wait().expect("it ends").success());
    tmux.wait("succeeded");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(during(2), 0);
    tmux.press("j");
    tmux.wait("succeeded");
}

/// A suspended screen gives the terminal back to the shell, and draws itself anew when it goes on.
#[test]
fn a_screen_is_suspended_and_goes_on() {
    let place = Place::new(SPEC);
    let (mut child, _) = place.until(&["run", "flow.kdl"], "human waits");
    let tmux = Tmux::open(&place, 100, 30, "bash --norc -i");
    tmux.ask(&["send-keys", "-l", &format!("{} top last", env!("CARGO_BIN_EXE_swarmc"))]);
    tmux.press("Enter");
    tmux.wait("● build");
    tmux.press("C-z");
    tmux.wait("Stopped");
    assert_eq!(tmux.ask(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).trim(), "0 1");
    tmux.ask(&["send-keys", "-l", "fg"]);
    tmux.press("Enter");
    tmux.wait("● build");
    assert_eq!(tmux.ask(&["display-message", "-p", "#{alternate_on}"]).trim(), "1");
    tmux.press("q");
    tmux.wait("goes on: swarmc top");
    // A runner that is killed would leave its agent.
    place.swarmc(&["stop", "last"]).expect(0, &[], &[]);
    assert_eq!(child.wait().expect("it ends").code(), Some(4));
}
