//! The tools around the compiler, as a shell starts them: the process, its files and its output
//! included. `fmt` and `check --fix` of a thousand tasks may take three times a `check` of them, the difference of two such
//! plans 50 ms, and a picture of three hundred steps 200 ms.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use divan::Bencher;

fn main() {
    divan::main();
}

/// Tasks that read each other, some in a notation that has a fix, and none quite formatted.
fn spec(count: usize, said: &str) -> String {
    let mut spec = String::from(
        "provider local { exec cat }\nagent coder provider=local\npipeline build {\n  task t0 { run ls }\n",
    );
    for index in 1..count {
        let before = index - 1 - index % 3 % index;
        let _ = match index % 100 {
            50 => writeln!(spec, "  task t{index} {{ prompt \"{said}: {{{{output:t{before}}}}}\" }}"),
            _ if index % 4 == 0 => {
                writeln!(spec, "  task t{index} {{ depends-on t{before} when=any // in order\n   run ls }}")
            }
            _ => writeln!(
                spec,
                "    task t{index} {{\n        prompt \"{said}: <<output:t{before}>>\"\n        timeout \"10m\"\n    }}"
            ),
        };
    }
    spec.push_str("}\n");
    spec
}

fn swarmc(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swarmc"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Differences and problems that are left are no failures here.
    let status = command.status().expect("swarmc starts");
    assert!(matches!(status.code(), Some(0 | 1)), "{arguments:?} ended with {status}");
}

/// Times a command in a folder with two specs, which are as they were before each time.
fn bench(bencher: Bencher<'_, '_>, count: usize, arguments: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("flow.kdl", spec(count, "Go on with")), ("old.kdl", spec(count, "Take up"))];
    let fresh =
        || files.iter().for_each(|(name, text)| std::fs::write(folder.path().join(name), text).expect("a spec"));
    fresh();
    for name in ["flow", "old"] {
        swarmc(folder.path(), &["plan", &format!("{name}.kdl"), "-o", &format!("{name}.json")]);
    }
    bencher.with_inputs(fresh).bench_values(|()| swarmc(folder.path(), arguments));
}

#[divan::bench]
fn check(bencher: Bencher<'_, '_>) {
    bench(bencher, 1_000, &["check", "flow.kdl"]);
}

#[divan::bench]
fn check_fix(bencher: Bencher<'_, '_>) {
    bench(bencher, 1_000, &["check", "--fix", "flow.kdl"]);
}

#[divan::bench]
fn fmt(bencher: Bencher<'_, '_>) {
    bench(bencher, 1_000, &["fmt", "flow.kdl"]);
}

#[divan::bench]
fn plan_diff(bencher: Bencher<'_, '_>) {
    bench(bencher, 1_000, &["plan", "flow.json", "--diff", "old.json"]);
}

#[divan::bench(args = ["svg", "text"])]
fn graph(bencher: Bencher<'_, '_>, format: &str) {
    bench(bencher, 300, &["graph", "flow.json", "--format", format]);
}
