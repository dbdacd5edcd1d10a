//! Swarms by the shape of what is around them: items, and an output of a type.

use crate::cli::{Ended, Place};

/// A run of a swarm whose members are done with `R`, and whose merger says `merged`, as a step that says `step`.
fn run(members: &[&str], merged: &str, swarm: &str, step: &str) -> Ended {
    let done = |name: &&str| format!("answer #\"{{\"action\":\"done\",\"response\":\"R\"}}\"# task={name}; ");
    let answers: String = members.iter().map(done).collect();
    let members: String = members.iter().map(|name| format!("member {name} \"Do\"; ")).collect();
    Place::new(&format!(
        "provider p {{ script {{ {answers} answer #\"{merged}\"# }} }}\nagent w provider=p\ntype R {{ x int }}\n\
         swarm s {{ goal \"G\"; {members} {swarm} }}\npipeline main {{ concurrency 1; task t {{ swarm s; {step} }} }}\n"
    ))
    .swarmc(&["run", "flow.kdl"])
}

/// A swarm that is over when its item is leaves nothing behind that is looked at.
#[test]
fn a_swarm_runs_for_each_item() {
    let ended = run(&["a"], "never said", "", "for-each \"['1', '2', '3']\"");
    ended.expect(0, &["[\"R\",\"R\",\"R\"]"], &["t[2]"]);
}

#[test]
fn the_only_result_is_brought_into_the_form_of_the_output() {
    for members in [&["a"][..], &["a", "b"]] {
        let ended = run(members, "{\"x\": 1}", "synthesize agent=w", "output R");
        ended.expect(0, &["{\"x\":1}"], &["t: synthesizing"]);
    }
}

#[test]
fn a_result_that_cannot_be_brought_into_the_form_fails_the_swarm() {
    let swarm = "timeouts { synthesize \"9s\" retries=1 }; synthesize agent=w";
    run(&["a"], "no record", swarm, "output R").expect(3, &[], &["its results cannot be merged"]);
}
