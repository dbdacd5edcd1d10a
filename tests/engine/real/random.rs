//! `kill -9` of workers, of the endpoint and of Restate at random moments of runs of forty steps.
//!
//! `SWARMC_ENGINE_KILLS` is how many there are of each: a few by default, 60 for a long trial.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use super::cluster::{Cluster, Program, Running, Setup};
use super::rounds::{Rounds, effects, ended};

const ROUNDS: Rounds = Rounds { count: 8, width: 5 };

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
                _ => &cluster.nodes[0].program,
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
        let spec = ROUNDS.spec("random", &folder, |_| "sleep 0.3".to_owned());
        let person = cluster.person(&format!("person-{number}"), &spec);
        let mut run = person.start(&["run", "flow.kdl"]);
        kills.disturb(&mut run, &cluster, &workers, 600);
        let (end, killed) = (run.end(), &kills.done);
        assert_eq!((end.code, &*end.out), (Some(0), &*ROUNDS.result()), "after {killed:?}: {end:#?}");
        let effects = effects(&folder);
        let again: Vec<_> = effects.iter().filter(|(line, count)| line.starts_with("done") && **count > 1).collect();
        let told = || format!("{}\n{:#?}", end.err, person.records());
        assert!(again.is_empty(), "after {killed:?}: {again:?}\n{}", told());
        assert_eq!(ended(&effects), ROUNDS.steps());
        if kills.are_over() {
            break;
        }
    }
}

/// A number below `end`.
fn random(end: u64) -> u64 {
    RandomState::new().build_hasher().finish() % end
}
