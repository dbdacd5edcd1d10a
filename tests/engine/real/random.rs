//! `kill -9` of workers, of the endpoint and of Restate at random moments of runs of forty steps.
//!
//! `SWARMC_ENGINE_KILLS` is how many there are of each: a few by default, 60 for a long trial.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use super::cluster::{Cluster, Program, Running, Setup};

const ROUNDS: usize = 8;
const WIDTH: usize = 5;

/// Each step notes when it starts and ends, and passes on what those before it said.
fn spec(folder: &str) -> String {
    let mut spec = String::from("workflow random { survive all }\npipeline main {\n    pool random\n");
    for round in 0..ROUNDS {
        for at in 0..WIDTH {
            let name = format!("r{round}-{at}");
            let reads = match round {
                0 => String::new(),
                _ => format!("stdin \"<<output:r{}-{at}>>\\n\"; ", round - 1),
            };
            let script = format!(
                "echo start {name} >> {folder}/effects; sleep 0.3; cat; echo {name}; echo done {name} >> {folder}/effects"
            );
            spec.push_str(&format!("    task {name} {{ {reads}run \"{script}\" }}\n"));
        }
    }
    let last: Vec<String> = (0..WIDTH).map(|at| format!("<<output:r{}-{at}>>", ROUNDS - 1)).collect();
    let last = last.join("\\n");
    spec + &format!("    task all {{ value \"{last}\" }}\n    result all\n}}\n")
}

fn expected() -> String {
    let line = |at: usize| (0..ROUNDS).map(move |round| format!("r{round}-{at}\n"));
    (0..WIDTH).flat_map(line).collect()
}

/// Kills at random moments: how many are left of each kind, and which there were.
pub(super) struct Kills {
    left: [usize; 3],
    pub done: Vec<&'static str>,
}

impl Kills {
    /// So many of each kind, unless `SWARMC_ENGINE_KILLS` says another number.
    pub(super) fn new(count: usize) -> Kills {
        let count = std::env::var("SWARMC_ENGINE_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(count);
        Kills { left: [count; 3], done: Vec::new() }
    }

    pub(super) fn are_over(&self) -> bool {
        self.left == [0; 3]
    }

    /// Kills what is there, and starts it again, until the run is over or no kill is left: `pause` milliseconds at most
    /// lie between two looks.
    pub(super) fn disturb(&mut self, run: &mut Running, cluster: &Cluster, workers: &[Program], pause: u64) {
        while !self.are_over() && !run.is_over() {
            std::thread::sleep(Duration::from_millis(random(pause)));
            let which = usize::try_from(random(3)).expect("it is small");
            if self.left[which] == 0 || run.is_over() {
                continue;
            }
            self.left[which] -= 1;
            let program = match which {
                0 => &workers[usize::try_from(random(workers.len() as u64)).expect("it is small")],
                1 => &cluster.endpoint,
                _ => &cluster.restate,
            };
            program.kill();
            std::thread::sleep(Duration::from_millis(random(300)));
            program.start();
            self.done.push(["worker", "endpoint", "restate"][which]);
        }
    }
}

#[test]
fn nothing_that_has_finished_runs_again_whatever_is_killed_when() {
    let mut kills = Kills::new(4);
    let cluster = Cluster::start(&Setup::default());
    let workers = ["one", "two"].map(|name| cluster.worker(name, "random", &["--slots", "4"], &[]));
    for number in 0.. {
        let folder = cluster.path(&format!("notes-{number}"));
        fs::create_dir(&folder).expect("a folder can be made");
        let person = cluster.person(&format!("person-{number}"), &spec(&folder.to_string_lossy()));
        let mut run = person.start(&["run", "flow.kdl"]);
        kills.disturb(&mut run, &cluster, &workers, 600);
        let (ended, killed) = (run.end(), &kills.done);
        assert_eq!((ended.code, &*ended.out), (Some(0), &*expected()), "after {killed:?}: {ended:#?}");
        let effects = fs::read_to_string(folder.join("effects")).expect("steps have run");
        let mut counts = BTreeMap::<&str, usize>::new();
        effects.lines().for_each(|line| *counts.entry(line).or_default() += 1);
        let again: Vec<_> = counts.iter().filter(|(line, count)| line.starts_with("done") && **count > 1).collect();
        assert!(again.is_empty(), "after {killed:?}: {again:?}");
        assert_eq!(counts.keys().filter(|line| line.starts_with("done")).count(), ROUNDS * WIDTH);
        if kills.are_over() {
            break;
        }
    }
}

/// A number below `end`.
fn random(end: u64) -> u64 {
    RandomState::new().build_hasher().finish() % end
}
