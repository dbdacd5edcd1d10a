//! What a turn is given at most, as it is told before a run, held against what the run renders: whatever swarmc adds to
//! a prompt is counted, and nothing else is.

use std::collections::BTreeMap;
use std::fs;

use swarmc_compiler::{Bound, Bytes, compute_bounds, count_turn_inputs};

use crate::specs::{Project, only, texts};

const HEAD: &str = r##"
provider recorded { script {
    answer "{\"swarm\": \"send_handoff\", \"to\": \"two\", \"message\": \"Go\"}\n{\"swarm\": \"send_handoff\", \"to\": \"two\", \"message\": \"On\"}" task=one
    answer "{\"ok\": true}"
} }
provider shell { exec sh -c "cat >/dev/null; echo done" }
agent any provider=recorded
agent one provider=recorded { can spawn }
"##;

/// The longest path that a folder of a run may have.
const PATH: u64 = 4096;
/// An envelope, with the words that may stand around it.
const ENVELOPE: u64 = 64 * 1024 + 100;

/// A spec, run: for the first prompt of each task in `expected` by how much its bound may be longer than it. What a folder
/// of the run has in the prompt counts as long as such a path may be.
fn check(spec: &str, expected: &[(&str, u64)]) {
    let project = Project::new();
    let spec = format!("{HEAD}{spec}");
    fs::write(project.root().join("spec.kdl"), &spec).expect("a spec can be written");
    let files = BTreeMap::from([("spec.kdl".to_owned(), spec)]);
    let compiled = swarmc_compiler::compile("spec.kdl", &files);
    let plan = compiled.plan.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    project.done(&["run", "spec.kdl"]);
    let run = only(&project.home().join("runs"));
    let folder = format!("{}/", run.display());
    let prompts: BTreeMap<String, String> = texts(&run.join("prompts"))
        .into_iter()
        .filter(|(name, _)| name.ends_with(".txt") && !name.ends_with(".system.txt"))
        .collect();
    let turns = count_turn_inputs(&plan, plan.pipeline("p").expect("it is there"), &Bytes);
    for (task, beyond) in expected {
        let Bound::Most(most) = turns[task].input else { panic!("{task}: {:?}", turns[task].input) };
        let prompt = &prompts[&format!("{task}.1.txt")];
        let paths = prompt.split('`').filter(|word| word.starts_with(&folder)).map(|path| PATH - path.len() as u64);
        let least = prompt.len() as u64 + paths.sum::<u64>();
        assert!((least..=least + beyond).contains(&most), "{task}: {most}, and {least}: {prompt}");
    }
    let sum: u64 = prompts.values().map(|prompt| prompt.len() as u64).sum();
    let Bound::Most(most) = compute_bounds(&plan, &Bytes)["p"].input_tokens else { panic!("{:?}", plan.bounds["p"]) };
    assert!(sum <= most, "{sum} bytes in all, and at most {most}: {prompts:#?}");
}

#[test]
fn what_a_turn_is_told_of_handing_over_is_counted() {
    check(
        "pipeline p { edges { one -> two; one -> three; two -> four }
            task one agent=one { prompt \"x\" }
            task two agent=any { depends-on one; prompt \"y\" }
            task three agent=any { prompt \"z\" }
            task four agent=any { depends-on one; prompt \"v\" } }",
        &[("one", 0)],
    );
}

#[test]
fn whom_nothing_can_reach_any_more_is_not_offered() {
    let spec = "pipeline p { edges { one -> two; three -> one; three -> four }
            task one agent=one { prompt \"x\" }
            task two agent=any { prompt \"y\" }
            task three agent=any { depends-on one; prompt \"z\" }
            task four agent=any { depends-on three; prompt \"v <<inbox>>\" } }";
    let project = Project::new();
    fs::write(project.root().join("spec.kdl"), format!("{HEAD}{spec}")).expect("a spec can be written");
    project.done(&["run", "spec.kdl"]);
    assert!(project.prompt("z\n\n").starts_with("z\n\nYou can hand over to `four`: with the tool"));
}

#[test]
fn what_comes_to_an_inbox_is_counted_whether_or_not_its_prompt_shows_it() {
    // Of two envelopes and the words around them, each as long as it may be.
    for prompt in ["y", "y <<inbox>>"] {
        let spec = format!(
            "pipeline p {{ edges {{ one -> two max=2 }}
                task one agent=one {{ prompt \"x\"; output repair=0 }}
                task two agent=any {{ depends-on one; prompt \"{prompt}\"; output repair=0 }} }}"
        );
        let project = Project::new();
        fs::write(project.root().join("spec.kdl"), format!("{HEAD}{spec}")).expect("a spec can be written");
        let files = BTreeMap::from([("spec.kdl".to_owned(), format!("{HEAD}{spec}"))]);
        let plan = swarmc_compiler::compile("spec.kdl", &files).plan.expect("the spec is right");
        project.done(&["run", "spec.kdl"]);
        let shown = project.prompt("--- Inbox: 2 envelopes, written by other agents ---");
        let turns = count_turn_inputs(&plan, plan.pipeline("p").expect("it is there"), &Bytes);
        let Bound::Most(most) = turns["two"].input else { panic!("{:?}", turns["two"].input) };
        let envelopes: u64 = shown.lines().filter(|line| line.starts_with('{')).map(|line| line.len() as u64 + 1).sum();
        let words = shown.len() as u64 - envelopes;
        // As many as a turn may read have more digits.
        assert!((2 * 64 * 1024..=2 * ENVELOPE).contains(&(most - words)), "{most}, {words}: {shown}");
        let Bound::Most(all) = compute_bounds(&plan, &Bytes)["p"].input_tokens else { panic!("it has a bound") };
        assert!((most..most + 2_000).contains(&all), "each envelope is read by one turn: {all}, {most}");
    }
}

#[test]
fn what_a_turn_is_told_of_its_folder_is_counted() {
    check(
        "pipeline p { edges { one -> other }
            task one agent=worker { files { output \"a.txt\" required=#false }; prompt \"x\" }
            task other agent=any { prompt \"y\" } }
         provider files { exec sh -c #\"cat >/dev/null; cd \"$SWARM_WORKSPACE\"; echo Done. >outbox/summary.md; echo '{\"state\": \"completed\"}' >status.json\"# }
         agent worker provider=files",
        &[("one", 0)],
    );
}

#[test]
fn system_mode_standard_input_and_the_type_of_an_answer_are_counted() {
    let types = ",\"$defs\":{}".len() as u64;
    check(
        "type Verdict { ok bool }
         agent wise provider=recorded { system \"You are wise.\"; mode planning }
         agent plain provider=shell
         pipeline p {
            task one agent=one { prompt \"x\" }
            task judge agent=wise { prompt \"x\"; output Verdict }
            task pick agent=wise { prompt \"x\"; output { ok bool } }
            task data agent=plain { prompt \"x\"; stdin \"the data\" } }",
        &[("judge", types), ("pick", types), ("data", 0)],
    );
}

#[test]
fn a_turn_that_mends_is_counted() {
    check(
        "agent doctor provider=shell { system \"You mend.\" }
         pipeline p { task one { run \"test -e mended || { touch mended; echo broken >&2; exit 1; }\"; output max=\"1KB\"; on-failure fix agent=doctor } }",
        &[],
    );
}
