//! `swarmc test`: the tests of the examples hold, each expectation can fail and says why, and every fake is used.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cli::{Ended, Place};

/// A plan is judged up to three times by an agent, and a person decides.
const SPEC: &str = r#"
workflow w
param goal default="Win"
provider model { exec model; price input="$3" output="$15" }
provider free { exec other }
agent planner provider=model { system "You plan." }
agent judge provider=free
type Verdict { good bool; why string }
pipeline main {
    result published held
    task plan agent=planner { prompt "Plan <<param:goal>>"; retry 1 backoff="10s"; timeout "1m" }
    loop rounds max=3 exhausted=success {
        task build { run make; stdin "<<output:plan>>"; check "test -s out"; check "test -s log" }
        task judge agent=judge { prompt "Judge <<output:build>>, round <<iteration>>"; output Verdict }
        until "output.judge.good"
    }
    gate go {
        message "Publish? <<output:judge.why>>"
        options yes no
        ask reason string?
        on-timeout no after="1h"
        headless no
    }
    task published { when "output.go.choice == 'yes'"; value "Published: <<output:go.reason | default:\"-\">>" }
    task held { when "output.go.choice == 'no'"; value "Held" }
}
"#;

/// The fakes of a run in two rounds.
const FAKES: &str = r##"
    fake plan "1. Win"
    fake build "built"
    fake judge iteration=1 #"{"good": false, "why": "too long"}"#
    fake judge #"{"good": true, "why": "short"}"#
    fake go choice=yes { reason "It is good" }
"##;

fn place(tests: &str) -> Place {
    Place::new(&format!("{SPEC}{tests}\n"))
}

/// A place with one test of these fakes and expectations.
fn one(fakes: &str, expect: &str) -> Place {
    place(&format!("test one {{\n{fakes}\n    expect {{\n        {expect}\n    }}\n}}"))
}

#[track_caller]
fn fails(fakes: &str, expect: &str, said: &[&str]) {
    let ended = one(fakes, expect).swarmc(&["test"]);
    assert_eq!(ended.code, Some(3), "{expect}: {ended:#?}");
    for part in said {
        assert!(ended.out.contains(part), "{expect}: lacks `{part}`: {ended:#?}");
    }
}

#[track_caller]
fn holds(fakes: &str, expect: &str) {
    one(fakes, expect).swarmc(&["test"]).expect(0, &["passed  flow.kdl one", "1 test passed in 1 spec"], &[]);
}

#[test]
fn the_tests_of_the_examples_hold() {
    let mut command = crate::patience::swarmc();
    command.args(["test", "specs"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let ended = Ended::from(command.output().expect("swarmc starts"));
    let ended = ended.expect(0, &["specs/fix/fix.kdl approved-in-the-second-round"], &[]);
    assert!(!ended.out.contains("FAILED"), "{ended:#?}");
    // Every example has some.
    for folder in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("specs")).expect("there are examples") {
        let name = folder.expect("an entry can be read").file_name().into_string().expect("a name in UTF-8");
        assert!(ended.out.contains(&format!("passed  specs/{name}/")), "{name}: {ended:#?}");
    }
}

#[test]
fn what_holds_passes() {
    holds(
        FAKES,
        r#"status success
        step plan succeeded
        step judge iteration=1 succeeded
        step held skipped
        order plan build judge build judge go published
        prompt plan equals="Plan Win"
        prompt build contains="1. Win"
        prompt judge iteration=2 contains="round 2" lacks="round 1" matches="^Judge \"?"
        prompt go equals="Publish? short"
        output judge iteration=1 equals="{\"why\": \"too long\", \"good\": false}"
        output judge contains="short"
        result equals="Published: It is good"
        rounds 1
        rounds 2 of=rounds
        launches 9
        turns 3
        tokens max=300"#,
    );
}

#[test]
fn every_expectation_can_fail_and_says_what_was_found() {
    let red = format!("    fake build iteration=2 exit=2 \"no rule to make it\"\n{FAKES}");
    fails(
        &red,
        "status success",
        &[
            "flow.kdl:37:9: failed: the run failed",
            "37 |         status success",
            "^^^^^^^^^^^^^^ expected success",
            "`rounds/build` failed in round 2: it exited with an error: no rule to make it",
        ],
    );
    fails(FAKES, "status failure", &["failed: the run succeeded"]);
    fails(FAKES, "step held succeeded", &["`held` was skipped", "in round 1", "its `when` is false"]);
    fails(FAKES, "step judge iteration=3 succeeded", &["`judge` was not reached in round 3", "round 1; round 2"]);
    fails(FAKES, "order judge plan", &["`plan` did not begin after `judge` had ended", "in this order: plan"]);
    fails(FAKES, "order rounds judge", &["`judge` began while `rounds` was running: nothing makes it wait"]);
    fails(FAKES, "order build judge build judge build", &["`build` did not begin after `judge` had ended"]);
    fails(
        FAKES,
        "prompt plan contains=Lose",
        &["what `plan` is asked in round 1 does not contain `Lose`", "| Plan Win"],
    );
    fails(FAKES, "prompt plan lacks=Win", &["contains `Win`"]);
    fails(FAKES, "prompt judge matches=\"round 1$\"", &["asked in round 2 does not match `round 1$`"]);
    fails(FAKES, "prompt judge iteration=3 contains=x", &["`judge` was not asked in round 3", "asked 2 times"]);
    fails(FAKES, "prompt plan equals=\"Plan\\nthis\"", &["--- expected", "-Plan\n", "-this", "+Plan Win"]);
    fails(
        FAKES,
        "output build equals=bulit",
        &["the value of `build` is different", "expected: bulit", "found: built"],
    );
    fails(FAKES, "output held contains=x", &["`held` has no value: it was skipped", "its `when` is false"]);
    fails(FAKES, "result contains=Held", &["the value of the pipeline does not contain `Held`", "| Published"]);
    fails(FAKES, "rounds 3 of=rounds", &["`rounds` had 2 rounds, not 3"]);
    fails(FAKES, "rounds 2", &["the pipeline had 1 round, not 2"]);
    fails(FAKES, "launches 4", &["there are 9 launches, but 4 expected"]);
    fails(FAKES, "turns max=2", &["there are 3 turns, but at most 2 expected"]);
    fails(FAKES, "tokens max=3", &["tokens, but at most 3 expected"]);
    fails(
        FAKES,
        "cost max=\"$1\"",
        &["the cost is unknown: provider `free` declares no price", "help: declare what its tokens cost"],
    );
}

#[test]
fn a_run_that_failed_without_a_failed_step_says_why() {
    let spec = "pipeline p { iterations 2; until \"output.a == 'x'\"; task a { run echo } }\n\
                pipeline q { stop no status=failure { message \"No.\" } }\n\
                test rounds { fake a; expect { status success } }\n\
                test stopped { pipeline q; expect { status success } }\n";
    let said = ["no `until` of the pipeline held in any round", "`no` stopped it"];
    Place::new(spec).swarmc(&["test"]).expect(3, &said, &[]);
}

#[test]
fn cost_is_that_of_the_faked_texts() {
    let spec = "provider model { exec model; price input=\"$10\" output=\"$100\" }\nagent ada provider=model\n\
                pipeline p { task t { prompt \"hello world\" } }\n";
    // Two tokens are read and three written: 2 * 10 + 3 * 100 millionths of a dollar.
    let test = |most: &str| format!("{spec}test t {{ fake t \"one two three\"; expect {{ cost max=\"{most}\" }} }}\n");
    Place::new(&test("$0.00032")).swarmc(&["test"]).expect(0, &[], &[]);
    Place::new(&test("$0.000319")).swarmc(&["test"]).expect(3, &["the turns cost $0.000320"], &[]);
}

#[test]
fn who_is_asked_and_has_no_fake_is_told_with_what_to_type() {
    let expect = "status success";
    fails(
        "",
        expect,
        &["failed: `plan` ran and has no fake", "asked in round 1", "help: add `fake plan \"…\"` to the test"],
    );
    let only = "fake plan\n fake build\n fake judge iteration=1 #\"{\"good\": false, \"why\": \"\"}\"#";
    fails(only, expect, &["`judge` ran and has no fake", "no `fake judge` is for round 2", "`fake judge #\"{…}\"#`"]);
    // A gate does without a person what it says about that.
    holds("fake plan\n fake build\n fake judge #\"{\"good\": true, \"why\": \"\"}\"#", "result equals=Held");
}

#[test]
fn a_fake_that_never_answers_fails_the_test() {
    let expect = "status success";
    let twice = format!("{FAKES}    fake plan \"again\"\n");
    fails(
        &twice,
        expect,
        &["this fake of `plan` never answered", "an earlier fake answers first", "put the more specific one first"],
    );
    let typo = format!("    fake build iteration=7 \"x\"\n{FAKES}");
    fails(&typo, expect, &["this fake of `build` never answered", "no request fits it", "asked in round 1; round 2"]);
    let more = FAKES.replace("\"built\"", "\"one\" \"two\" \"three\"");
    fails(&more, expect, &["this answer of `build` was never given", "the fake answered 2 times"]);
    holds(&more.replace(" \"three\"", ""), "prompt judge iteration=2 contains=two");
    let unasked = format!("    fake plan attempt=2 fix=#true \"x\"\n{FAKES}");
    one(&unasked, expect).swarmc(&["test"]).expect(1, &[], &["step `plan` has no agent that mends its failure"]);
}

#[test]
fn what_a_false_condition_skips_is_said_where_its_fake_and_its_value_are_missed() {
    let spec = r#"
workflow w
pipeline main {
    task review agent=codex { prompt "Review" }
    task release { when "output.review == 'APPROVED'"; run echo released }
    result release
}
test one {
    fake review "APPROVED: it is small"
    fake release "released"
    expect { result equals=released }
}
"#;
    let skipped = "`release` was skipped: its `when` is false";
    let ended = Place::new(spec).swarmc(&["test"]).expect(3, &["this fake of `release` never answered", skipped], &[]);
    assert_eq!(ended.out.matches(skipped).count(), 2, "{ended:#?}");
}

#[test]
fn time_passes_for_nobody_and_timeouts_fire() {
    let late = format!("    fake plan attempt=1 delay=\"2m\" \"late\"\n{FAKES}");
    holds(&late, "step plan succeeded\n prompt build contains=\"1. Win\" lacks=late");
    let always = format!("    fake plan delay=\"61s\"\n{}", FAKES.replace("    fake plan \"1. Win\"\n", ""));
    fails(&always, "status success", &["`plan` failed in round 1: it took longer than 1m"]);
    let nobody = FAKES.replace("choice=yes {", "choice=yes delay=\"2h\" {");
    holds(&nobody, "result equals=Held");
    holds(&nobody.replace("2h", "59m"), "result contains=Published");
}

#[test]
fn checks_and_repairs_can_be_faked() {
    let red = format!("    fake build check=2 iteration=1 exit=3 \"the log is empty\"\n{FAKES}");
    let red = red.replace("    fake judge iteration=1 #\"{\"good\": false, \"why\": \"too long\"}\"#\n", "");
    let unused = "this fake of";
    fails(&red, "status success", &["`rounds/build` failed in round 1: the check `test -s log` exited with 3", unused]);
    let wrong = format!("    fake judge iteration=1 turn=1 unchecked=#true \"Good!\"\n{FAKES}");
    holds(&wrong, "turns 4\n prompt judge iteration=1 turn=2 contains=\"Good!\" matches=\"Answer again\"");
}

#[test]
fn who_mends_and_who_decides_about_a_failure_is_faked() {
    let spec = "provider p { exec cat }\nagent mender provider=p\npipeline main {\n\
                task build { run make; on-failure fix agent=mender }\n\
                task ship { depends-on build; run ship; on-failure escalate }\n}\n";
    let test = |fakes: &str, expect: &str| format!("{spec}test one {{\n{fakes}\nexpect {{ {expect} }}\n}}\n");
    let mended = "fake build attempt=1 exit=2 \"no rule\"\nfake build\nfake build fix=#true \"mended\"";
    let shipped = format!("{mended}\nfake ship attempt=1 exit=1 \"refused\"\nfake ship\nfake ship choice=retry");
    // Two builds, a mender, and two attempts to ship.
    Place::new(&test(&shipped, "status success; launches 5")).swarmc(&["test"]).expect(0, &[], &[]);
    let skipped = format!("{mended}\nfake ship exit=1\nfake ship choice=skip");
    Place::new(&test(&skipped, "status success; step ship skipped")).swarmc(&["test"]).expect(0, &[], &[]);
    let late = format!(
        "policy {{ on-timeout approve after=\"1h\" }}\n{}",
        test(&skipped.replace("choice=skip", "choice=skip delay=\"2h\""), "status failure")
    );
    Place::new(&late).swarmc(&["test"]).expect(0, &[], &[]);
    Place::new(&late.replace("1h", "3h")).swarmc(&["test"]).expect(3, &[], &[]);
    // Without anybody there it has failed.
    let failed = format!("{mended}\nfake ship exit=1");
    Place::new(&test(&failed, "status failure; step ship failed")).swarmc(&["test"]).expect(0, &[], &[]);
    let alone = "fake build exit=2\nfake ship";
    let said = ["the agent that mends `build` ran and has no fake", "add `fake build fix=#true \"…\"`"];
    Place::new(&test(alone, "status failure")).swarmc(&["test"]).expect(3, &said, &[]);
}

#[test]
fn exit_codes_filters_and_what_is_no_test() {
    let test = |name: &str, status: &str| format!("test {name} {{\n{FAKES}    expect {{ status {status} }}\n}}\n");
    let both = place(&format!("{}{}", test("good-one", "success"), test("bad-one", "failure")));
    both.swarmc(&["test"]).expect(
        3,
        &["passed  flow.kdl good-one", "FAILED  flow.kdl bad-one", "1 of 2 tests failed"],
        &[],
    );
    both.swarmc(&["test", "--filter", "good"]).expect(0, &["1 test passed"], &[]);
    both.swarmc(&["test", "flow.kdl", "--filter", "good-two"]).expect(2, &[], &["did you mean `good-one`?"]);
    place("").swarmc(&["test"]).expect(2, &[], &["there is no test in the spec", "help: write one: `test NAME"]);
    place("test x { fake nobody; expect { status success } }").swarmc(&["test"]).expect(
        1,
        &[],
        &["error[SW101]", "1 error"],
    );
    let plan = both.swarmc(&["plan", "flow.kdl", "-o", "plan.json"]);
    plan.expect(0, &[], &[]);
    both.swarmc(&["test", "plan.json"]).expect(2, &[], &["a plan has no tests"]);
    // A spec with errors does not hide how the tests of others went.
    both.write("other.kdl", "pipeline p { task t { run echo; depends-on x } }\n");
    both.swarmc(&["test"]).expect(1, &["1 of 2 tests failed in 2 specs, 1 spec with errors"], &["error[SW101]"]);
}

#[test]
fn snapshots_are_written_when_asked_for_and_compared_otherwise() {
    let spec = |prompt: &str, more: &str| {
        let spec = SPEC.replace("Plan <<param:goal>>", prompt);
        let tests = format!(
            "test shot {{\n{FAKES}    expect {{ prompt judge snapshot=#true; result snapshot=#true{more} }}\n}}\n"
        );
        format!("{spec}{tests}test other {{\n{FAKES}    expect {{ prompt plan snapshot=#true }}\n}}\n")
    };
    let place = Place::new(&spec("Plan <<param:goal>>", ""));
    let files = || {
        let folder = fs::read_dir(place.work().join("snapshots"));
        let names = folder.into_iter().flatten().map(|file| file.expect("a file is listed").file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().expect("a name in UTF-8")).collect();
        names.sort();
        names
    };
    let missing = ["there is no snapshot of what `judge` is asked", "no `snapshots/flow.shot.judge.2.txt`", "--update"];
    place.swarmc(&["test"]).expect(3, &missing, &[]);
    assert!(files().is_empty());
    place.swarmc(&["test", "--update", "--filter", "shot"]).expect(0, &["3 snapshots written"], &[]);
    assert_eq!(files(), ["flow.shot.judge.2.txt", "flow.shot.judge.txt", "flow.shot.txt"]);
    place.swarmc(&["test", "--update"]).expect(0, &["2 tests passed in 1 spec, 1 snapshot written"], &[]);
    place.swarmc(&["test"]).expect(0, &["2 tests passed in 1 spec\n"], &[]);
    let text = fs::read_to_string(place.work().join("snapshots/flow.other.plan.txt")).expect("it is written");
    assert_eq!(text, "Plan Win\n");

    place.write("flow.kdl", &spec("Plan the <<param:goal>>", ""));
    place.swarmc(&["test"]).expect(3, &["differs from its snapshot", "-Plan Win", "+Plan the Win"], &[]);
    // What does not hold otherwise is not written down as what should be.
    place.write("flow.kdl", &spec("Plan the <<param:goal>>", "; status failure"));
    place.write("snapshots/flow.shot.gone.txt", "old\n");
    place.swarmc(&["test", "--update"]).expect(3, &["1 of 2 tests failed in 1 spec, 1 snapshot written"], &[]);
    assert!(files().contains(&"flow.shot.gone.txt".to_owned()));
    place.write("flow.kdl", &spec("Plan the <<param:goal>>", ""));
    place.swarmc(&["test", "--update"]).expect(0, &["1 snapshot removed"], &[]);
    assert!(!files().contains(&"flow.shot.gone.txt".to_owned()));
}

#[test]
fn machines_read_json_and_junit() {
    let test = |name: &str, more: &str| format!("test {name} {{\n{FAKES}    expect {{ status success{more} }}\n}}\n");
    let place = place(&format!("{}{}", test("good", ""), test("bad", "; result equals=Lost")));
    let json = place.swarmc(&["test", "--format", "json"]).expect(3, &[], &["1 of 2 tests failed"]);
    let json: Value = serde_json::from_str(&json.out).expect("the output is JSON");
    assert_eq!((&json["version"], &json["passed"], &json["failed"]), (&1.into(), &1.into(), &1.into()));
    let bad = &json["tests"][1];
    assert_eq!((&bad["test"], &bad["status"], &bad["turns"]), (&"bad".into(), &"failed".into(), &3.into()));
    assert_eq!(bad["failures"][0]["message"], "the value of the pipeline is different");
    assert_eq!(bad["failures"][0]["at"]["file"], "flow.kdl");

    let junit = place.swarmc(&["test", "--format", "junit"]).expect(3, &[], &[]);
    let report = junit_parser::from_reader(junit.out.as_bytes()).expect("another program reads the report");
    assert_eq!((report.name.as_str(), report.tests, report.failures), ("swarmc test", 2, 1));
    let cases: Vec<(&str, bool)> =
        report.suites[0].cases.iter().map(|case| (case.name.as_str(), case.status.is_failure())).collect();
    assert_eq!(
        (report.suites[0].name.as_str(), cases),
        ("flow.kdl", vec![("flow.kdl::good", false), ("flow.kdl::bad", true)])
    );
    let failure = report.suites[0].cases[1].status.failure_as_ref();
    assert!(failure.text.contains("expected: Lost") && failure.message.contains("is different"), "{failure:?}");
}

#[test]
fn tests_are_no_part_of_the_plan() {
    let test = |text: &str| format!("test one {{\n    fake plan file=\"answer.md\"\n{FAKES}{text}\n}}\n");
    let plan = |tests: &str| {
        let place = place(tests);
        place.write("answer.md", "An answer\n");
        place.swarmc(&["plan", "flow.kdl", "-o", "-"]).expect(0, &["\"version\""], &[]).out
    };
    let without = plan("");
    let with = plan(&test("    expect { status success }"));
    let others = plan(&test("    expect { status failure; turns 7 }"));
    assert!(!with.contains("answer.md"), "{with}");
    assert_eq!(with, others);
    assert_eq!(with, without);
}

#[test]
fn what_init_writes_has_a_test_that_holds() {
    let place = place("");
    place.swarmc(&["init", "new"]).expect(0, &["swarmc test new/workflow.kdl"], &[]);
    place.swarmc(&["test", "new"]).expect(0, &["1 test passed"], &[]);
}

#[test]
fn a_test_says_what_is_piped_in_and_which_pipeline_runs() {
    let spec = "pipeline first { task a { run echo } }\n\
                pipeline second { param times type=int; task b { run cat; stdin \"<<stdin>> <<param:times>>\" } }\n\
                test piped { pipeline second; param times=3; stdin \"from outside\"; fake b \"ok\"\n\
                expect { prompt b equals=\"from outside 3\"; result equals=ok } }\n";
    Place::new(spec).swarmc(&["test"]).expect(0, &["1 test passed"], &[]);
}

#[test]
fn the_listings_of_the_chapter_hold() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/testing.md");
    let page = fs::read_to_string(path).expect("the chapter can be read");
    let listings = page.split("```kdl\n").skip(1).filter_map(|rest| rest.split_once("```"));
    // The first is the workflow, the others are tests of it.
    let spec: String = listings.map(|(listing, _)| listing).collect();
    let place = Place::new(&spec);
    place.swarmc(&["check"]).expect(0, &["no problems"], &[]);
    place.swarmc(&["test"]).expect(0, &["5 tests passed"], &[]);
    place.swarmc(&["fmt", "--check"]).expect(0, &[], &[]);
}

#[test]
fn what_is_expected_of_a_team_can_fail_and_says_what_was_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let spec = fs::read_to_string(root.join("specs/refactor-swarm/refactor-swarm.kdl")).expect("there is a spec");
    for (holds, fails, said) in [
        ("plan version=2", "plan version=7", "the plan of `refactor` is at version 2, not 7"),
        ("item tests done owner=a1", "item tests running", "item `tests` is done, not running"),
        ("item tests done owner=a1", "item tests done owner=a2", "item `tests` belongs to a1, not to a2"),
        ("item tests done owner=a1", "item docs done", "the plan of `refactor` has no item `docs`"),
        (
            r#"notice to=a1 contains="parse() takes bytes now""#,
            r#"notice to=a1 contains="strings""#,
            "no message to a1 contains `strings`",
        ),
        ("plan version=2", "plan version=2 of=refactr", "there is no step `refactr`"),
    ] {
        let place = Place::new(&spec.replacen(holds, fails, 1));
        let ended = place.swarmc(&["test"]);
        assert!(ended.code != Some(0), "{fails}: {ended:#?}");
        assert!(ended.out.contains(said) || ended.err.contains(said), "{fails}: lacks `{said}`: {ended:#?}");
    }
}

/// A member works in a worktree, and its manager merges it.
#[test]
fn what_becomes_of_a_worktree_can_be_expected() {
    let spec = r##"
workflow w
provider p { script { answer "x" } }
agent a provider=p
swarm team {
    goal "Win"
    coordinator lead agent=a
    member one agent=a
    item api "Define it" owner=one
    worktree tree manager=merger { members one; check make }
}
agent merger provider=p
pipeline main { task work { swarm team }; result work }
test merges {
    fake lead turn=1 #"{"action": "idle"}"#
    fake lead #"{"action": "done", "response": "all of it"}"#
    fake one #"{"action": "item_done", "item": "api", "summary": "defined"}"#
    fake merger turn=1 #"{"action": "integrate", "summary": "the API"}"#
    expect { item api done; worktree tree merged; result equals="all of it" }
}
"##;
    let place = Place::new(spec);
    place.swarmc(&["test"]).expect(0, &["1 test passed"], &[]);
    for (fails, said) in [
        ("worktree tree unmerged", "worktree `tree` is merged, not unmerged"),
        ("worktree bush merged", "the swarm of `work` has no worktree `bush`"),
    ] {
        let place = Place::new(&spec.replace("worktree tree merged", fails));
        let ended = place.swarmc(&["test"]);
        assert!(ended.code == Some(3) && ended.out.contains(said), "{fails}: {ended:#?}");
    }
}
