//! What it costs that a process may outlive its runner: the same work held by shims and not, in turn, in the same minute.
//!
//! `cargo bench --profile dist --bench shims [-- NAME]`. Each figure has its limit beside it, from the design: 2 ms for an
//! attempt, 1.15 times as long for a gibibyte, nothing for short commands, a second to rejoin a hundred, and 3,000 kB of
//! memory for a shim. A figure above its limit ends the bench with an error. On a machine that does other work meanwhile,
//! start it by `chrt -f 10`: all that it measures then comes first.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SWARMC: &str = env!("CARGO_BIN_EXE_swarmc");

/// How many processes are rejoined, and are looked at for their memory.
const HELD: usize = 100;

fn main() {
    let filter = std::env::args().skip(1).find(|word| !word.starts_with("--")).unwrap_or_default();
    let cases = [("attempt", attempt as fn() -> bool), ("gigabyte", gigabyte), ("short", short), ("rejoin", rejoin)];
    let mut is_good = true;
    for (name, case) in cases.iter().filter(|(name, _)| name.contains(&filter)) {
        print(format_args!("{name:<16}"));
        is_good &= case();
    }
    if !is_good {
        std::process::exit(1);
    }
}

/// Two hundred commands one after another.
fn attempt() -> bool {
    const TASKS: usize = 200;
    let spec = |survive| chain(survive, TASKS, 1);
    let [bare, held] = compare(9, [&spec("none"), &spec("all")]);
    let added = |at: fn(&[f64]) -> f64| (at(&held) - at(&bare)) * 1000.0 / TASKS as f64;
    report("ms more an attempt", added(median), added(least), 2.0)
}

/// A gibibyte through one task.
fn gigabyte() -> bool {
    let task = "    task t { run \"/usr/bin/head\" \"-c\" \"1073741824\" \"/dev/zero\" }\n";
    let spec = |survive| format!("workflow w {{ survive {survive} }}\npipeline main {{\n{task}}}\n");
    let [bare, held] = compare(7, [&spec("none"), &spec("all")]);
    report("times as long", median(&held) / median(&bare), least(&held) / least(&bare), 1.15)
}

/// A thousand short commands, as a spec has them that says nothing of it, and where nothing may survive.
fn short() -> bool {
    let [bare, usual] = compare(9, [&chain("none", 1000, 2), &chain("agents", 1000, 2)]);
    report("times as long", median(&usual) / median(&bare), least(&usual) / least(&bare), 1.02)
}

/// So many commands, of which so many run at once.
fn chain(survive: &str, tasks: usize, at_once: usize) -> String {
    let tasks: String = (0..tasks).map(|number| format!("    task t{number} {{ run \"/usr/bin/true\" }}\n")).collect();
    format!("workflow w {{ survive {survive} }}\npipeline main {{\n    concurrency {at_once}\n{tasks}}}\n")
}

/// A hundred agents whose runner is killed, and that the next one goes on with.
fn rejoin() -> bool {
    clear();
    let tasks: String =
        (0..HELD).map(|number| format!("    task t{number} agent=a {{ prompt \"Begin.\" }}\n")).collect();
    // Each waits until the other end of the pipe is opened.
    let provider = "provider waits { exec \"sh\" \"-c\" \"cat >/dev/null; read go <go; echo over\" }";
    let spec = format!("{provider}\nagent a provider=waits\npipeline main {{\n    concurrency {HELD}\n{tasks}}}\n");
    std::fs::write(folder().join("w.kdl"), spec).expect("the folder can be written");
    assert!(Command::new("mkfifo").arg(folder().join("go")).status().expect("mkfifo can be started").success());
    let mut times = Vec::new();
    let mut runner = start(&["run", "w.kdl"]);
    // Recorded are each shim and its agent.
    wait_until("all have begun", || count_events("process_started") >= 2 * HELD);
    let sizes = shim_sizes();
    assert_eq!(sizes.len(), HELD, "each is held by one");
    for round in 1..=5 {
        runner.kill().and_then(|()| runner.wait()).expect("the runner can be killed");
        let began = Instant::now();
        runner = start(&["resume", "last"]);
        wait_until("all are rejoined", || count_events("attempt_rejoined") >= HELD * round);
        times.push(began.elapsed().as_secs_f64());
    }
    // All of them wait for this.
    std::fs::OpenOptions::new().write(true).open(folder().join("go")).expect("they read the pipe");
    assert!(runner.wait().expect("the runner ends").success());
    let joined = report(&format!("s to rejoin {HELD}"), median(&times), least(&times), 1.0);
    print(format_args!("{:<16}", "memory"));
    let most = sizes.iter().copied().fold(0.0, f64::max);
    report("kB a shim (the largest, the smallest)", most, least(&sizes), 3000.0) && joined
}

/// The memory of each shim of the run, in kB.
fn shim_sizes() -> Vec<f64> {
    let home = folder().display().to_string();
    let size = |process: PathBuf| {
        let line = std::fs::read(process.join("cmdline")).ok()?;
        let mut words = line.split(|&byte| byte == 0).skip(1).map(String::from_utf8_lossy);
        let is_ours = words.next()? == "shim" && words.next()?.starts_with(&home);
        let status = std::fs::read_to_string(process.join("status")).ok().filter(|_| is_ours)?;
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok())
    };
    std::fs::read_dir("/proc").expect("it is there").flatten().filter_map(|entry| size(entry.path())).collect()
}

/// How often an event is in the journals.
fn count_events(event: &str) -> usize {
    let runs = std::fs::read_dir(folder().join("home/runs")).into_iter().flatten().flatten();
    let journals = runs.map(|run| std::fs::read_to_string(run.path().join("journal.jsonl")).unwrap_or_default());
    journals.map(|journal| journal.matches(&format!("\"event\":\"{event}\"")).count()).sum()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs both specs in turn so often; how long each took, in seconds.
fn compare(rounds: usize, specs: [&str; 2]) -> [Vec<f64>; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (spec, times) in specs.iter().zip(&mut times) {
            clear();
            std::fs::write(folder().join("w.kdl"), spec).expect("the folder can be written");
            let began = Instant::now();
            assert!(start(&["run", "w.kdl"]).wait().expect("the run ends").success());
            times.push(began.elapsed().as_secs_f64());
        }
    }
    times
}

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(SWARMC);
    command.args(arguments).current_dir(folder()).env("SWARM_HOME", folder().join("home")).env_remove("CI");
    // Cargo's own would make every process slow to link.
    command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("swarmc can be started")
}

/// Prints a figure of which less is better: the median and the least of it. Whether the median is within its limit.
fn report(unit: &str, median: f64, least: f64, limit: f64) -> bool {
    print(format_args!("{median:.2} {unit}, least {least:.2}, limit {limit}\n"));
    median <= limit
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// A folder beside the build's other files, on a real disk.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("shims")
}

/// Empties that folder, and waits until the disk has nothing left to do for what came before.
fn clear() {
    let _ = std::fs::remove_dir_all(folder());
    std::fs::create_dir_all(folder()).expect("the target folder can be written");
    let synced = Command::new("/usr/bin/sync").status().expect("sync can be started");
    assert!(synced.success(), "the disk can be synced");
}

fn print(text: std::fmt::Arguments<'_>) {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.to_string().as_bytes()).and_then(|()| stdout.flush()).expect("stdout can be written");
}
