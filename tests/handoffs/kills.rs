//! `kill -9` of the runner at many random moments of the handoffs, each followed by `resume`: the same result, and no
//! envelope lost or doubled.

use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

use super::{SPEC, records, sent};
use crate::specs::Project;
use crate::swarm_kills::interrupt;

#[test]
fn killed_handoffs_lose_and_double_nothing() {
    let undisturbed = project();
    let started = Instant::now();
    undisturbed.done(&["run", SPEC]);
    let duration = started.elapsed();
    let expected = told(&undisturbed);
    interrupt(&["run", SPEC], duration, project, |project, moments| {
        assert_eq!(told(project), expected, "killed after {moments:?}");
    });
}

/// The example, in which nobody reviews while both coders are at work: a turn that begins again reads all that has come by
/// then, and one that a coder began before would read the review in another.
fn project() -> Project {
    let project = Project::new();
    let path = project.root().join(SPEC);
    let spec = fs::read_to_string(&path).expect("the spec can be read");
    let limited = spec.replace("pipeline build {", "pipeline build {\n    concurrency 2");
    assert_ne!(limited, spec, "the pipeline is there");
    fs::write(path, limited).expect("the spec can be written");
    project
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
