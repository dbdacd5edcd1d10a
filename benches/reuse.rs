//! What it costs to run again what has not changed: `--reuse` of a thousand steps, and `make` with a thousand stamp files, in
//! turn, in the same minute.
//!
//! `cargo bench --profile dist --bench reuse`. Both look at the same thousand files, and find that nothing is to do. The goal
//! beside the figure is from the design; nothing fails for a figure above it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const SWARMC: &str = env!("CARGO_BIN_EXE_swarmc");

/// The steps, and the targets of `make`.
const STEPS: usize = 1000;

/// How often both are measured.
const ROUNDS: usize = 11;

/// The times of `make` that `--reuse` may take.
const GOAL: f64 = 3.0;

fn main() {
    lay_out();
    // What is there to be reused.
    start(SWARMC, &["run", "w.kdl"]);
    start("make", &["-s", "all"]);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        times[0].push(measure("make", &["-s", "all"]));
        times[1].push(measure(SWARMC, &["run", "w.kdl", "--reuse", "-q"]));
    }
    for name in ["ran", "made"] {
        let lines = std::fs::read_to_string(folder().join(name)).expect("the steps wrote it").lines().count();
        assert_eq!(lines, STEPS, "each step ran once: {name}");
    }
    let [made, reused] = times.map(median);
    let figure = format!(
        "reuse           {:.2} times as long as make ({:.1} ms, {:.1} ms), goal {GOAL}\n",
        reused / made,
        reused * 1000.0,
        made * 1000.0
    );
    std::io::stdout().write_all(figure.as_bytes()).expect("stdout can be written");
}

/// Writes the files, the spec and the makefile.
fn lay_out() {
    let _ = std::fs::remove_dir_all(folder());
    for part in ["in", "out", "stamps"] {
        std::fs::create_dir_all(folder().join(part)).expect("the target folder can be written");
    }
    let mut spec = "workflow w\npipeline main {\n    concurrency 2\n".to_owned();
    for number in 0..STEPS {
        write(&format!("in/{number}"), &number.to_string());
        let run = format!("run \"sh\" \"-c\" \"echo {number} >> ran; cp in/{number} out/{number}\"");
        let files = format!("reads \"in/{number}\"; writes \"out/{number}\"");
        writeln!(spec, "    task t{number} {{ {run}; {files} }}").expect("a string takes it");
    }
    write("w.kdl", &(spec + "}\n"));
    let stamps: String = (0..STEPS).map(|number| format!(" stamps/{number}")).collect();
    write("Makefile", &format!("all:{stamps}\nstamps/%: in/%\n\techo $* >> made; touch $@\n"));
}

fn write(name: &str, text: &str) {
    std::fs::write(folder().join(name), text).expect("the folder can be written");
}

/// How long a command takes, in seconds.
fn measure(program: &str, arguments: &[&str]) -> f64 {
    let began = Instant::now();
    start(program, arguments);
    began.elapsed().as_secs_f64()
}

/// Runs a command to its end, which is a good one.
fn start(program: &str, arguments: &[&str]) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder()).env("SWARM_HOME", folder().join("home")).env_remove("CI");
    // Cargo's own would make every process slow to link.
    command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("it can be started").success(), "{program} {arguments:?}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A folder beside the build's other files, on a real disk.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("reuse")
}
