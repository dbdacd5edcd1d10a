//! What every test that starts programs needs: the signals as a terminal has them, and an end to waiting.
//!
//! A program that a test waits for is named on stderr when it takes long, and ended when it takes too long: the test then
//! fails by what it expected of the program.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// After so long a program is named.
const LONG: Duration = Duration::from_secs(100);
/// After so long it is ended. Real agents and models take their time.
const TOO_LONG: Duration = Duration::from_secs(400);
/// How often the programs are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// swarmc, without arguments, as a program that is not waited for without end.
pub(crate) fn swarmc() -> Command {
    begin();
    Command::new(env!("CARGO_BIN_EXE_swarmc"))
}

/// Sees to the signals and begins to watch, once.
pub(crate) fn begin() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        heed_signals();
        std::thread::spawn(watch);
    });
}

/// A shell starts what runs in the background with SIGINT ignored, and `nohup` with SIGHUP: programs inherit that, and
/// swarmc leaves it so. A signal that is handled here is a program's own again, while for this process nothing changes.
fn heed_signals() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    for signal in [SIGINT, SIGHUP, SIGQUIT, SIGTERM] {
        if mask >> (signal - 1) & 1 == 1 {
            let seen = std::sync::Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, seen).expect("a signal that can be ignored can be handled");
        }
    }
}

/// Looks at the programs that this process started, for as long as it lives.
fn watch() {
    let mut first_seen: BTreeMap<u32, (Instant, bool)> = BTreeMap::new();
    loop {
        std::thread::sleep(LOOK);
        // What has ended and was not asked how has no command line: nothing waits for it.
        let now: Vec<u32> = children().into_iter().filter(|&id| !command_line(id).is_empty()).collect();
        first_seen.retain(|id, _| now.contains(id));
        for id in now {
            let (since, named) = first_seen.entry(id).or_insert((Instant::now(), false));
            let took = since.elapsed();
            if took >= LONG && !*named {
                *named = true;
                // Past what the harness captures of tests.
                let line = format!("\nstill waiting for `{}` after {} s\n", command_line(id), took.as_secs());
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
            if took >= TOO_LONG {
                let line = format!("\nended `{}`: it took {} s\n", command_line(id), took.as_secs());
                let _ = std::io::stderr().write_all(line.as_bytes());
                // It is our child still, so that the number is nobody else's.
                let _ = Command::new("kill").args(["-s", "KILL", &id.to_string()]).status();
            }
        }
    }
}

/// The programs that this process started and has not waited for.
fn children() -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()).collect()
}

fn command_line(id: u32) -> String {
    let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let line: String = String::from_utf8_lossy(&line).replace('\0', " ");
    line.chars().take(200).collect::<String>().trim_end().to_owned()
}

#[test]
fn tests_that_interrupt_pass_where_the_interrupt_is_ignored() {
    let tests = [
        "cli::the_first_interrupt_stops_and_the_run_can_be_resumed",
        "record::a_run_that_is_stopped_and_resumed_has_one_recording",
    ];
    begin();
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT HUP QUIT; exec \"$@\"", "sh"]);
    shell.arg(std::env::current_exe().expect("this program has a path")).args(tests).arg("--exact");
    let output = shell.output().expect("sh starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("2 passed"), "{said}");
}

#[test]
fn what_this_process_started_is_known() {
    begin();
    let mut program = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat starts");
    let (mut input, mut line) = (program.stdin.take().expect("it is piped"), [0; 3]);
    input.write_all(b"on\n").expect("cat reads");
    // What it has answered, it is.
    program.stdout.take().expect("it is piped").read_exact(&mut line).expect("cat writes");
    assert!(children().contains(&program.id()));
    assert_eq!(command_line(program.id()), "cat");
    drop(input);
    program.wait().expect("it ends");
    assert!(!children().contains(&program.id()));
}
