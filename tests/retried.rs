//! Runs that failed and go on: what finished stays, what failed runs again, and a mended spec takes the place of the
//! old.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::cli::Place;

fn effects(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(place.work().join("effects")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn run(place: &Place) -> PathBuf {
    let runs = fs::read_dir(place.home().join("runs")).expect("there are runs");
    runs.map(|entry| entry.expect("an entry can be read").path()).next().expect("there is a run")
}

fn records(place: &Place) -> Vec<Value> {
    let text = fs::read_to_string(run(place).join("journal.jsonl")).expect("the journal is text");
    let lines = text.trim_end_matches('\0').lines();
    lines.map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

const CHAIN: &str = r#"
pipeline p {
    task plan { run "echo plan >>effects; echo the plan" }
    task build { depends-on plan; run "echo build >>effects; test -e fixed && echo built" }
    task docs { depends-on plan; run "echo docs >>effects" }
    task ship { depends-on build; run cat; stdin "<<output:plan>>, <<output:build>>" }
    task tidy { depends-on ship when=always; run "echo tidy >>effects" }
    result ship
}
"#;

#[test]
fn what_failed_runs_again_with_what_waited_for_it_and_nothing_else_does() {
    let place = Place::new(CHAIN);
    let failed = place.swarmc(&["run", "flow.kdl"]);
    failed.expect(3, &[], &["run the failed steps again with: swarmc resume", "--retry-failed"]);
    place.swarmc(&["resume", "last"]).expect(2, &[], &["--retry-failed` runs the failed steps again"]);
    // It fails once more: the attempts go on from there.
    let again = place.swarmc(&["resume", "last", "--retry-failed"]);
    again.expect(3, &[], &["runs again: `build`", "`ship`, `tidy`", "2 of 5 steps stay as they ended"]);
    place.write("fixed", "");
    let mended = place.swarmc(&["resume", "last", "--retry-failed"]);
    mended.expect(0, &["the plan, built"], &["succeeded"]);
    let effects = effects(&place);
    let count = |name: &str| effects.iter().filter(|line| *line == name).count();
    assert_eq!((count("plan"), count("docs"), count("build"), count("tidy")), (1, 1, 3, 3), "{effects:?}");
    let attempts: Vec<u64> = records(&place)
        .iter()
        .filter(|record| record["event"] == "attempt_started" && record["step"]["name"] == "build")
        .filter_map(|record| record["attempt"].as_u64())
        .collect();
    assert_eq!(attempts, [1, 2, 3]);
    place.swarmc(&["ps", "last"]).expect(0, &["succeeded"], &[]);
    place.swarmc(&["resume", "last", "--retry-failed"]).expect(2, &[], &["nothing to run again", "it succeeded"]);
}

#[test]
fn one_step_runs_again_on_demand_with_what_depends_on_it() {
    let place = Place::new(CHAIN);
    place.write("fixed", "");
    place.swarmc(&["run", "flow.kdl", "-q"]).expect(0, &["the plan, built"], &[]);
    place.swarmc(&["resume", "last", "--retry", "docs"]).expect(0, &[], &["runs again: `docs`"]);
    place.swarmc(&["resume", "last", "--retry", "build", "-q"]).expect(0, &["the plan, built"], &[]);
    let mut effects = effects(&place);
    effects.sort();
    assert_eq!(effects, ["build", "build", "docs", "docs", "plan", "tidy", "tidy"]);
    place.swarmc(&["resume", "last", "--retry", "bild"]).expect(2, &[], &["has not reached a step `bild`"]);
}

#[test]
fn a_mended_spec_takes_over_where_what_finished_is_the_same_and_outlasts_a_kill() {
    let place = Place::new(CHAIN);
    place.swarmc(&["run", "flow.kdl", "-q"]).expect(3, &[], &[]);
    let changed = CHAIN.replace("echo the plan", "echo another plan").replace("test -e fixed", "test -d .");
    place.write("changed.kdl", &changed);
    let refused = place.swarmc(&["resume", "last", "--with", "changed.kdl"]);
    refused.expect(
        2,
        &[],
        &["because it changes finished steps", "`plan` at changed.kdl:3:10: body.run", "--retry STEP"],
    );
    let gone = CHAIN.replace("task docs { depends-on plan; run \"echo docs >>effects\" }", "");
    place.write("gone.kdl", &gone);
    place.swarmc(&["resume", "last", "--with", "gone.kdl"]).expect(2, &[], &["`docs` is gone"]);
    place.write("broken.kdl", "pipeline p { task a { depends-on b; run x } }");
    place.swarmc(&["resume", "last", "--with", "broken.kdl"]).expect(1, &[], &["SW101"]);
    assert_eq!(effects(&place).len(), 4, "nothing has run");

    // The runner is killed after it has taken the mended spec over, which is gone by then.
    let killed =
        CHAIN.replace("test -e fixed && echo built", "test -e killed || { touch killed; kill -9 $PPID; }; echo mended");
    let killed =
        killed.replace("task tidy", "task extra { depends-on build; run \"echo extra >>effects\" }\n    task tidy");
    place.write("mended.kdl", &killed);
    let ended = place.swarmc(&["resume", "last", "--with", "mended.kdl", "-q"]);
    assert!(ended.out.is_empty() && place.work().join("killed").exists(), "{ended:#?}");
    fs::remove_file(place.work().join("mended.kdl")).expect("a file can be removed");
    place.swarmc(&["resume", "last", "-q"]).expect(0, &["the plan, mended"], &[]);
    let effects = effects(&place);
    let count = |name: &str| effects.iter().filter(|line| *line == name).count();
    assert_eq!((count("plan"), count("docs"), count("build"), count("extra")), (1, 1, 3, 1), "{effects:?}");
    place.swarmc(&["inspect", "last"]).expect(0, &["extra"], &[]);
}

#[test]
fn rounds_items_and_gates_that_finished_stay() {
    let place = Place::new(
        r#"
pipeline p {
    loop polish max=3 exhausted=success {
        until "output.draft == 'never'"
        task draft { run "echo draft >>effects; echo $SWARM_ITERATION" }
        task judge { depends-on draft; run "echo judge >>effects; test $SWARM_ITERATION = 1 -o -e fixed && echo bad" }
    }
    task each { for-each "[1, 2, 3]" parallel=1; run "echo each >>effects; test $N != 2 -o -e fixed"; env N="<<item>>" }
    gate ask { message "?"; options yes; on-timeout fail after="1ms" }
    task last { depends-on polish each; run "echo last >>effects" }
}
"#,
    );
    place.swarmc(&["run", "flow.kdl", "-q"]).expect(3, &[], &["judge", "each"]);
    place.write("fixed", "");
    let before = effects(&place);
    let again = place.swarmc(&["resume", "last", "--retry-failed"]);
    again.expect(3, &[], &["runs again: ", "`each[1]`", "`polish/judge`", "`ask`", "ask failed"]);
    let effects = effects(&place);
    let count = |effects: &[String], name: &str| effects.iter().filter(|line| *line == name).count();
    // One more round follows the one that failed; the items that finished stay.
    assert_eq!((count(&before, "draft"), count(&effects, "draft")), (2, 3), "{effects:?}");
    assert_eq!((count(&before, "judge"), count(&effects, "judge")), (2, 4), "{effects:?}");
    assert_eq!((count(&before, "each"), count(&effects, "each")), (3, 4), "{effects:?}");
    assert_eq!(count(&effects, "last"), 1, "{effects:?}");
}

#[test]
fn a_budget_counts_what_was_used_before_and_a_mended_spec_gives_more() {
    let spec = |cost: &str| {
        format!(
            r#"
provider p {{ exec sh agent.sh; reads codex-jsonl; price input="$2" output="$4" }}
agent a provider=p
pipeline p {{
    budget cost="{cost}"
    task one agent=a {{ prompt "one" }}
    task two agent=a {{ depends-on one; prompt "two" }}
    task three agent=a {{ depends-on two; prompt "three" }}
    result three
}}
"#
        )
    };
    let place = Place::new(&spec("$0.60"));
    place.write(
        "agent.sh",
        "cat >/dev/null\necho '{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"ok\"}}'\n\
         echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":100000,\"output_tokens\":50000}}'\n",
    );
    place.swarmc(&["run", "flow.kdl"]).expect(5, &[], &["has a larger budget with: swarmc resume", "--with SPEC"]);
    let again = place.swarmc(&["resume", "last", "--retry-failed"]);
    again.expect(5, &[], &["runs again, because it was ended or skipped: `three`", "$0.8000 are used"]);
    place.write("flow.kdl", &spec("$2"));
    place.swarmc(&["resume", "last", "--with", "flow.kdl"]).expect(0, &["ok"], &["450,000 tokens, $1.2000 in all"]);
}

#[test]
fn a_recording_holds_the_run_up_to_its_first_end() {
    let place = Place::new(CHAIN);
    place.swarmc(&["run", "flow.kdl", "-q", "--record", "tape"]).expect(3, &[], &[]);
    let tape = fs::read(place.work().join("tape/recording.jsonl")).expect("it is recorded");
    place.write("fixed", "");
    let again = place.swarmc(&["resume", "last", "--retry-failed"]);
    again.expect(0, &[], &["is not recorded: the recording `", "ends at the first end of the run"]);
    assert_eq!(fs::read(place.work().join("tape/recording.jsonl")).expect("it is there"), tape);
}

#[test]
fn items_that_failed_run_again_where_their_list_goes_on_without_them() {
    let place = Place::new(
        "pipeline p {\n    task file { for-each \"['a', 'b', 'c']\" join=settled; env F=\"<<item>>\"\n        \
         run \"echo $F >>effects; test $F != b -o -e fixed && echo $F\" }\n    \
         task report { value \"{{ output.file | length }}\" }\n    result report\n}\n",
    );
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["2"], &["file[1] failed"]);
    place.write("fixed", "");
    let again = place.swarmc(&["resume", "last", "--retry-failed"]);
    again.expect(0, &["3"], &["runs again: `file[1]`", "`report`"]);
    let mut effects = effects(&place);
    effects.sort();
    assert_eq!(effects, ["a", "b", "b", "c"]);
    place.swarmc(&["resume", "last", "--retry-failed"]).expect(2, &[], &["nothing to run again", "it succeeded"]);
}
