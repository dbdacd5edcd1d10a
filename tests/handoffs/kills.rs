//! `kill -9` of the runner at many random moments of the handoffs, each followed by `resume`: the same result, and no
//! envelope lost or doubled.

use std::collections::BTreeSet;
use std::time::Instant;

use super::{SPEC, records, sent};
use crate::specs::Project;
use crate::swarm_kills::{fraction, journal, kill_after};

const KILLS: u32 = 100;
/// How often one run is killed at most.
const EACH: u32 = 4;

#[test]
fn killed_handoffs_lose_and_double_nothing() {
    let undisturbed = Project::new();
    let started = Instant::now();
    undisturbed.done(&["run", SPEC]);
    let duration = started.elapsed();
    let expected = told(&undisturbed);
    let mut interrupted = 0;
    for round in 0.. {
        assert!(round < KILLS * 4, "only {interrupted} kills hit a run in progress");
        let project = Project::new();
        let mut arguments = vec!["run", SPEC];
        let mut moments = Vec::new();
        for _ in 0..EACH {
            let moment = duration.mul_f64(fraction());
            kill_after(&project, &arguments, moment);
            match journal(&project) {
                // It was killed before its run had a name.
                None => continue,
                Some(facts) if facts.iter().any(|record| record["event"] == "run_finished") => break,
                Some(_) => {}
            }
            interrupted += 1;
            moments.push(moment);
            arguments = vec!["resume", "last"];
        }
        if moments.is_empty() {
            continue;
        }
        if !journal(&project).is_some_and(|records| records.iter().any(|record| record["event"] == "run_finished")) {
            project.done(&arguments);
        }
        assert_eq!(told(&project), expected, "killed after {moments:?}");
        if interrupted >= KILLS {
            break;
        }
    }
}

/// The outputs and the envelopes, whatever order they came in.
fn told(project: &Project) -> (Vec<String>, Vec<String>) {
    let outputs = ["architect", "parser", "printer", "reviewer"].map(|task| project.output(task)).to_vec();
    let mut taken = BTreeSet::new();
    for record in records(project, "inputs_taken") {
        for id in record["inputs"].as_array().expect("a list") {
            assert!(taken.insert(id.to_string()), "taken twice: {id}");
        }
    }
    let mut sent = sent(project);
    assert_eq!(taken.len(), sent.len(), "each is read");
    assert!(records(project, "node_closed").iter().all(|record| record["owes"].is_null()));
    sent.sort();
    (outputs, sent)
}
