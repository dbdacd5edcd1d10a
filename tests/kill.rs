//! `kill -9` of the runner at fifty random moments of a run of forty tasks, each followed by `resume`.
//!
//! Every task notes when it starts and ends, with its process, so that side effects can be counted: what finished never
//! runs again, what was open runs again once, and nothing that outlived the runner goes on beside its successor.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const KILLS: u32 = 50;
const LAYERS: usize = 8;
const WIDTH: usize = 5;

#[test]
fn a_killed_runner_loses_nothing_and_repeats_nothing_that_ended() {
    let undisturbed = Place::new();
    let started = Instant::now();
    undisturbed.swarmc(&["run", "flow.kdl"], "the undisturbed run succeeds");
    let duration = started.elapsed();
    let expected = undisturbed.outputs();
    assert_eq!(expected.len(), LAYERS * WIDTH);
    let mut interrupted = 0;
    // A kill before the run has a name, or after its end, interrupts nothing and is not counted.
    for kill in 0.. {
        assert!(kill < KILLS * 8, "only {interrupted} of {kill} kills hit a run in progress");
        let place = Place::new();
        let delay = duration.mul_f64(fraction());
        place.kill_after(delay);
        let Some(run) = place.run() else { continue };
        let ended = ended(&run.join("journal.jsonl"));
        let finished = fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default().contains("run_finished");
        let before = place.effects();
        if !finished {
            place.swarmc(&["resume", "last"], &format!("kill after {delay:?}: the resumed run succeeds"));
            interrupted += 1;
        }
        assert_eq!(place.outputs(), expected, "kill after {delay:?}: the outputs are those of the undisturbed run");
        for (task, attempts) in place.effects() {
            let most = if ended.contains(&task) { 1 } else { 2 };
            assert!(
                (1..=most).contains(&attempts.len()),
                "kill after {delay:?}: {task} ran {} times: {attempts:?}, {before:?}",
                attempts.len()
            );
            let repeated = attempts.get(1).is_some();
            assert!(
                !repeated || !attempts[0].outlived,
                "kill after {delay:?}: a survivor of {task} went on beside its successor"
            );
        }
        if interrupted == KILLS {
            break;
        }
    }
}

#[test]
fn a_killed_runner_of_a_run_that_went_on_after_its_end_repeats_nothing_that_stays() {
    const LEAST: u32 = 5;
    let mut interrupted = 0;
    // What is left of such a run takes few kills, so there are some runs.
    for run in 0.. {
        assert!(run < LEAST * 8, "only {interrupted} kills hit one of {run} runs in progress");
        interrupted += kills_of_a_run_that_goes_on();
        if interrupted >= LEAST {
            break;
        }
    }
}

/// A run that fails, is mended, goes on and is killed until it has ended; the kills that hit it in progress.
fn kills_of_a_run_that_goes_on() -> u32 {
    let place = Place::new();
    let fails = |line: &str| match line.contains("task t4-2 ") {
        true => line.replace("; sleep", "; test -e fixed || exit 1; sleep"),
        false => line.to_owned(),
    };
    let spec: Vec<String> = spec().lines().map(fails).collect();
    place.write("flow.kdl", &spec.join("\n"));
    assert_eq!(place.command(&["run", "flow.kdl"]).status().expect("swarmc starts").code(), Some(3));
    place.write("fixed", "");
    let journal = place.run().expect("it has run").join("journal.jsonl");
    let text = fs::read_to_string(&journal).expect("the journal is text");
    let succeeded = |line: &str| {
        let record: Value = serde_json::from_str(line.trim_end_matches('\0')).ok()?;
        let ended = record["event"] == "attempt_ended" && record["failure"].is_null();
        ended.then(|| record["step"]["name"].as_str().map(str::to_owned)).flatten()
    };
    let stays: BTreeSet<String> = text.lines().filter_map(succeeded).collect();
    let written = || String::from_utf8_lossy(&fs::read(&journal).unwrap_or_default()).into_owned();
    let mut interrupted = 0;
    for kill in 0.. {
        assert!(kill < 500, "it never ends");
        let mut goes_on = place.command(&["resume", "last"]);
        if !written().contains("run_reopened") {
            goes_on.arg("--retry-failed");
        }
        let mut runner = goes_on.spawn().expect("swarmc starts");
        // Later where many came too early: a machine that is busy takes longer to begin.
        std::thread::sleep(Duration::from_millis(30 + kill / 4).mul_f64(1.0 + 2.0 * fraction()));
        runner.kill().expect("a child can be killed");
        let code = runner.wait().expect("a child can be waited for").code();
        if written().matches("run_finished").count() == 2 {
            break;
        }
        assert_eq!(code, None, "nothing but the kill ends it");
        interrupted += 1;
    }
    assert_eq!(place.outputs().len(), LAYERS * WIDTH);
    for (task, attempts) in place.effects() {
        let is_again = !stays.contains(&task);
        assert!(is_again || attempts.len() == 1, "{task} stays, and ran {} times", attempts.len());
    }
    interrupted
}

/// A random number from 0 to 1, another one at each call.
fn fraction() -> f64 {
    f64::from(RandomState::new().build_hasher().finish() as u32) / f64::from(u32::MAX)
}

/// One start of a task.
#[derive(Debug)]
struct Attempt {
    process: String,
    /// Whether it noted its end after another attempt of the same task had started.
    outlived: bool,
}

/// The tasks whose end is in the journal, torn tail left out.
fn ended(journal: &Path) -> BTreeSet<String> {
    let text = fs::read(journal).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records
        .filter(|record| record["event"] == "attempt_ended")
        .filter_map(|record| Some(record["step"]["name"].as_str()?.to_owned()))
        .collect()
}

/// A workspace with the spec, and a home for its run.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = TempDir::new().expect("a temporary folder can be made");
        fs::write(folder.path().join("flow.kdl"), spec()).expect("a file can be written");
        fs::write(folder.path().join("effects"), "").expect("a file can be written");
        Place { folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = crate::patience::swarmc();
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("SWARM_HOME", self.folder.path().join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("a file can be written");
    }

    /// Runs swarmc, which succeeds as `what` says.
    fn swarmc(&self, arguments: &[&str], what: &str) {
        let output = self.command(arguments).stderr(Stdio::piped()).output().expect("swarmc starts");
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn kill_after(&self, delay: Duration) {
        let mut runner = self.command(&["run", "flow.kdl"]).spawn().expect("swarmc starts");
        std::thread::sleep(delay);
        runner.kill().expect("a child can be killed");
        runner.wait().expect("a child can be waited for");
    }

    /// The folder of the only run, once it has a journal.
    fn run(&self) -> Option<PathBuf> {
        let runs = fs::read_dir(self.folder.path().join("home/runs")).ok()?;
        // A run that has not begun has no name yet.
        let has_name = |run: &PathBuf| run.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'));
        let run = runs.filter_map(|entry| Some(entry.ok()?.path())).find(has_name)?;
        run.join("journal.jsonl").exists().then_some(run)
    }

    fn outputs(&self) -> BTreeMap<String, String> {
        let Some(run) = self.run() else { return BTreeMap::new() };
        let folder = self.folder.path().join("home/outputs").join(run.file_name().expect("a run has a name"));
        let files = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        files
            .map(|file| {
                (
                    file.file_name().to_string_lossy().into_owned(),
                    fs::read_to_string(file.path()).expect("an output can be read"),
                )
            })
            .collect()
    }

    /// The starts of each task, in order.
    fn effects(&self) -> BTreeMap<String, Vec<Attempt>> {
        let mut tasks: BTreeMap<String, Vec<Attempt>> = BTreeMap::new();
        for line in fs::read_to_string(self.folder.path().join("effects")).expect("the effects can be read").lines() {
            let [what, task, process] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("a torn line: {line}") };
            let attempts = tasks.entry(task.to_owned()).or_default();
            match what {
                "start" => attempts.push(Attempt { process: process.to_owned(), outlived: false }),
                _ => {
                    let last = attempts.len() - 1;
                    for attempt in attempts[..last].iter_mut().filter(|attempt| attempt.process == process) {
                        attempt.outlived = true;
                    }
                }
            }
        }
        tasks
    }
}

/// Layers of tasks, each of which needs two of the layer before.
fn spec() -> String {
    let mut spec = String::from("pipeline forty {\n    concurrency 4\n");
    for layer in 0..LAYERS {
        for column in 0..WIDTH {
            let name = format!("t{layer}-{column}");
            let needs = match layer {
                0 => String::new(),
                _ => format!("depends-on t{0}-{column} t{0}-{1}; ", layer - 1, (column + 1) % WIDTH),
            };
            let line = format!(
                "echo start {name} $$ >> effects; sleep 0.03; echo end {name} $$ >> effects; echo {name} is done"
            );
            let _ = writeln!(spec, "    task {name} {{ {needs}run \"{line}\" }}");
        }
    }
    spec.push('}');
    spec
}
