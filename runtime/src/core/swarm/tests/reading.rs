//! What agents of a team read of each other: summaries, and a few times all that one of them did.

use super::team::{coordinated, done, interrupted, list_events, op, script};
use super::touch::touched;
use super::world::run;
use crate::core::swarm::rules::Rules;

fn summary(of: &str) -> String {
    op(&format!("\"read_summary\", \"agent\": {of}"))
}

fn transcript(of: &str) -> String {
    op(&format!("\"read_transcript\", \"agent\": \"{of}\""))
}

#[test]
fn a_summary_holds_what_happened_last_with_all_or_with_one() {
    let (api, tool, all, one) = (done("api"), "tool a @2000", summary("null"), summary("\"a1\""));
    let script = script(&[
        ("chief", &["idle", &all, &one, "idle", "done good"]),
        ("a1", &[tool, &api]),
        ("a2", &["tool b @9000", &done("docs")]),
    ]);
    let over = interrupted(|| coordinated("a1? a2?", "api:a1 docs:a2"), &script);
    assert_eq!(
        list_events(&over, &["chief reads"]),
        "chief reads read_summary: - chief: was added, plays planner \
         - a1: was added, plays coder \
         - a2: was added, plays coder \
         - a1: item api is running \
         - a2: item docs is running \
         - a1: calls a {} \
         - a1: its call gave: found \
         - a1: item api is done: api stands\n\
         chief reads read_summary: - a1: was added, plays coder \
         - a1: item api is running \
         - a1: calls a {} \
         - a1: its call gave: found \
         - a1: item api is done: api stands"
    );
    // The agent reads it, and goes on.
    assert_eq!(over.agent("chief").history.len(), 4);
    let mut short = coordinated("a1? a2?", "api:a1 docs:a2");
    short.limits.summary_feed = 1;
    assert!(list_events(&run(short, &script), &["chief reads"]).contains("read_summary: - a1: item api is done"));
}

#[test]
fn transcripts_are_read_a_few_times_and_of_agents_that_are_there() {
    let (api, unknown, all) = (done("api"), transcript("nara"), transcript("a1"));
    let script = script(&[
        ("chief", &["idle", "done good"]),
        ("a1", &["tool a @20000", &api]),
        ("a2", &[&unknown, &all, &all, "tool b", &all, "tool b", &done("docs")]),
    ]);
    let mut rules = coordinated("a1? a2?", "api:a1 docs:a2");
    rules.limits.context_reads = 2;
    let over = run(rules, &script);
    assert_eq!(over.count("a2 reads read_transcript"), 2);
    assert_eq!(
        list_events(&over, &["a2 refused"]),
        "a2 refused: there is no agent `nara`: there are chief, a1, a2\n\
         a2 refused: you have read 2 transcripts, and 2 is the limit: use `read_summary`, or ask a1 by `send_message`"
    );
}

#[test]
fn a_person_agrees_that_a_transcript_is_read_where_the_policy_says_so() {
    let (api, all) = (done("api"), transcript("a1"));
    let script = script(&[
        ("chief", &["idle", "done good"]),
        ("a1", &["tool a @80000", &api]),
        ("a2", &[&all, &all, &done("docs")]),
    ]);
    let rules = || Rules { asks_transcripts: true, ..coordinated("a1? a2?", "api:a1 docs:a2") };
    let over = interrupted(rules, &script);
    // The first turn is allowed, the second one denied.
    let told = list_events(&over, &["a2 refused", "a2 reads"]);
    let told: Vec<&str> = told.lines().map(|line| line.split(": -").next().unwrap()).collect();
    assert_eq!(told, ["a2 reads read_transcript", "a2 refused: not done: a person said no"]);
}

#[test]
fn changes_of_files_count_as_the_spec_says() {
    let mut world = super::within::working();
    let mut rules = coordinated("a1? a2?", "api:a1 parser:a2<api");
    rules.conflicts = swarmc_plan::Conflicts { notices: 1, window_ms: 1_000 };
    world.swarm.rules = std::sync::Arc::new(rules).into();
    let files = ["a", "b", "c"].into_iter().flat_map(|file| ["a1", "a2"].map(|agent| touched(agent, file, None)));
    let told = super::touch::list_notices(&mut world, &files.collect::<Vec<_>>());
    assert_eq!((told.matches("a1 (request)").count(), told.matches("a2 (request)").count()), (1, 1));
    world.record(touched("a1", "d", None));
    world.clock += 1_001;
    assert!(!super::touch::list_notices(&mut world, &[touched("a2", "d", None)]).contains("conflict"));
}
