//! `kill -9` of workers, of the endpoint and of Restate at random moments of runs of forty steps.
//!
//! `SWARMC_ENGINE_KILLS` is how many there are of each: a few by default, 60 for a long trial.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use super::cluster::{Cluster, Setup};

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

#[test]
fn nothing_that_has_finished_runs_again_whatever_is_killed_when() {
    let count = std::env::var("SWARMC_ENGINE_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(4);
    let mut left = [count; 3];
    let cluster = Cluster::start(&Setup::default());
    let workers = ["one", "two"].map(|name| cluster.worker(name, "random", &["--slots", "4"], &[]));
    let mut killed = Vec::new();
    for number in 0.. {
        let folder = cluster.path(&format!("notes-{number}"));
        fs::create_dir(&folder).expect("a folder can be made");
        let person = cluster.person(&format!("person-{number}"), &spec(&folder.to_string_lossy()));
        let mut run = person.start(&["run", "flow.kdl"]);
        while !run.is_over() {
            std::thread::sleep(Duration::from_millis(random(600)));
            let which = usize::try_from(random(3)).expect("it is small");
            if left[which] == 0 || run.is_over() {
                if left == [0; 3] {
                    break;
                }
                continue;
            }
            left[which] -= 1;
            let program = match which {
                0 => &workers[usize::try_from(random(2)).expect("it is small")],
                1 => &cluster.endpoint,
                _ => &cluster.restate,
            };
            program.kill();
            std::thread::sleep(Duration::from_millis(random(300)));
            program.start();
            killed.push(["worker", "endpoint", "restate"][which]);
        }
        let ended = run.end();
        assert_eq!((ended.code, &*ended.out), (Some(0), &*expected()), "after {killed:?}: {ended:#?}");
        let effects = fs::read_to_string(folder.join("effects")).expect("steps have run");
        let mut counts = BTreeMap::<&str, usize>::new();
        effects.lines().for_each(|line| *counts.entry(line).or_default() += 1);
        let again: Vec<_> = counts.iter().filter(|(line, count)| line.starts_with("done") && **count > 1).collect();
        assert!(again.is_empty(), "after {killed:?}: {again:?}");
        assert_eq!(counts.keys().filter(|line| line.starts_with("done")).count(), ROUNDS * WIDTH);
        if left == [0; 3] {
            break;
        }
    }
}

/// A number below `end`.
fn random(end: u64) -> u64 {
    RandomState::new().build_hasher().finish() % end
}
