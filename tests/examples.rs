//! The examples that branch, fan out, go round and wait for a person: each route of each, run offline through the
//! binary, and never beyond the bounds that `swarmc plan` printed.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::specs::{Project, only, specs, texts, wrapped};

const REVIEW: &str = "specs/review/review.kdl";
const TRIAGE: &str = "specs/triage/triage.kdl";
const FIX: &str = "specs/fix/fix.kdl";
const RELEASE: &str = "specs/release/release.kdl";

/// A run that somebody else has to let go on.
struct Waiting {
    child: Child,
    seen: String,
    rest: BufReader<std::process::ChildStderr>,
}

impl Waiting {
    /// Starts a run, and comes back when a gate of it waits.
    fn start(project: &Project, arguments: &[&str]) -> Waiting {
        let mut command = project.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("swarmc starts");
        let mut rest = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let mut seen = String::new();
        while !seen.contains("--ask") {
            assert_ne!(rest.read_line(&mut seen).expect("stderr is text"), 0, "no gate waits: {seen}");
        }
        Waiting { child, seen, rest }
    }

    /// Waits for the end: the exit code, stdout and stderr.
    fn end(mut self) -> (Option<i32>, String, String) {
        let mut out = String::new();
        self.rest.read_to_string(&mut self.seen).expect("stderr is text");
        self.child.stdout.take().expect("stdout is piped").read_to_string(&mut out).expect("stdout is text");
        (self.child.wait().expect("it ends").code(), out, self.seen)
    }
}

/// Runs a spec up to its gate, answers it from another process, and gives how the run ended.
pub(crate) fn answered(project: &Project, run: &[&str], answer: &[&str]) -> (Option<i32>, String, String) {
    let waiting = Waiting::start(project, run);
    project.done(&[&["approve", "last"], answer].concat());
    waiting.end()
}

/// Changes a text of the project; what is replaced has to be there.
pub(crate) fn edit(project: &Project, path: &str, from: &str, to: &str) {
    let path = project.root().join(path);
    let text = fs::read_to_string(&path).expect("the file is there");
    assert!(text.contains(from), "`{from}` is not in {}", path.display());
    fs::write(path, text.replace(from, to)).expect("it can be written");
}

/// The events of the only run.
fn events(project: &Project) -> Vec<Value> {
    let journal = fs::read_to_string(only(&project.home().join("runs")).join("journal.jsonl")).expect("a journal");
    let lines = journal.trim_end_matches('\0').lines();
    lines.map(|line| serde_json::from_str(line).expect("an event is JSON")).collect()
}

/// Names of the steps that something of this kind happened to, in order.
fn steps(project: &Project, event: &str) -> Vec<String> {
    let events = events(project).into_iter().filter(|found| found["event"] == event);
    events.map(|found| found["step"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// Fails if the only run launched or asked more than the bounds of its spec allow.
fn stays_within_its_bounds(project: &Project, spec: &str, pipeline: &str) {
    let plan: Value = serde_json::from_str(&project.done(&["plan", spec, "-o", "-"])).expect("a plan is JSON");
    let bounds = &plan["bounds"][pipeline];
    let launches = events(project).iter().filter(|event| event.get("exit").is_some()).count() as u64;
    assert!(launches > 0, "something was launched");
    // A bound that is none says why.
    let most = |name: &str| match bounds[name]["most"].as_u64() {
        Some(most) => most,
        None => {
            assert!(bounds[name]["unbounded"]["because"].is_string(), "{name} in {bounds:#}");
            u64::MAX
        }
    };
    assert!(launches <= most("launches"), "{launches} launches, and at most {bounds:#}");
    let turns = project.prompts().len() as u64;
    assert!(turns <= most("turns"), "{turns} turns, and at most {bounds:#}");
}

#[test]
fn plans_print_the_bounds_of_every_example() {
    let project = Project::new();
    for spec in specs(&project) {
        let printed = project.done(&["plan", &spec]);
        let (_, bounds) = printed.split_once("one run uses at most\n").unwrap_or_else(|| panic!("{spec}: {printed}"));
        let mut lines = bounds.lines();
        let columns = lines.next().expect("it has columns");
        for column in ["launches", "turns", "tokens in", "tokens out", "cost", "time"] {
            assert!(columns.contains(column), "{spec}: {bounds}");
        }
        let row = lines.next().expect("it has a row");
        assert_eq!(row.contains("unbounded"), bounds.contains("unbounded because"), "{spec}: {bounds}");
    }
}

#[test]
fn a_review_asks_who_is_needed_and_a_person_in_another_terminal_decides() {
    let project = Project::new();
    let remark = "remark=Ship it, but <<output:patch>> and {{ param.change }} stay out";
    let (code, out, err) = answered(&project, &["run", REVIEW], &["decision", "approve", "--ask", remark]);
    assert_eq!(code, Some(0), "{out}\n{err}");
    assert!(out.ends_with("the open point stays for the next change.\n"), "{out}");
    assert!(err.contains("decision approve|revise|reject"), "it says what to type\n{err}");
    assert!(err.contains("To decide: whether `expires`"), "it shows what is decided on\n{err}");

    let skipped = steps(&project, "step_skipped");
    assert_eq!(skipped, ["performance", "nothing-to-decide", "rejected"]);
    let security = project.prompt("who could misuse it");
    assert!(security.contains(&wrapped("patch", &project.output("patch"))), "{security}");
    let summary = project.prompt("into a few lines");
    assert!(summary.contains("Security says approve:\n- (medium) src/session.rs:17: `SameSite`"), "{summary}");
    assert!(summary.contains("- (low) CHANGELOG.md: Nothing says"), "a remark without a line\n{summary}");
    assert!(summary.contains("Interface says revise:") && !summary.contains("Performance says"), "{summary}");
    let note = project.prompt("The change is accepted.");
    assert!(note.contains("Ship it, but <<output:patch>> and {{ param.change }} stay out"), "data stays data\n{note}");
    assert!(!note.contains("goes back"), "{note}");
    stays_within_its_bounds(&project, REVIEW, "review");
}

#[test]
fn a_wrong_answer_is_refused_with_what_would_be_right_and_the_gate_still_waits() {
    let project = Project::new();
    let waiting = Waiting::start(&project, &["run", REVIEW]);
    let asked: Value =
        serde_json::from_str(&project.done(&["inspect", "last", "decision", "--json"])).expect("it is JSON");
    let gate = &asked["gate"];
    assert!(gate["message"].as_str().is_some_and(|message| !message.is_empty()), "{gate}");
    assert_eq!(gate["options"], serde_json::json!(["approve", "revise", "reject"]));
    assert_eq!((&gate["asks"][0]["name"], &gate["asks"][0]["optional"]), (&"remark".into(), &true.into()));
    for (answer, said) in [
        (&["decision", "aprove"][..], "did you mean `approve`?"),
        (&["decison", "approve"], "did you mean `decision`?"),
        (&["decision", "approve", "--ask", "remrk=x"], "did you mean `remark`?"),
    ] {
        let refused = project.swarmc(&[&["approve", "last"], answer].concat());
        let err = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{err}");
        assert!(err.contains(said), "{err}");
    }
    project.done(&["approve", "last", "decision", "reject", "--ask", "remark=Not now."]);
    let (code, out, err) = waiting.end();
    assert_eq!(code, Some(3), "a rejected change fails the workflow\n{err}");
    let asked = project.done(&["inspect", "last", "decision", "--json"]);
    assert!(asked.contains("\"gate\":null"), "{asked}");
    assert_eq!(project.output("rejected").trim_end(), "The change was rejected. Not now.", "{out}\n{err}");
    assert!(!steps(&project, "attempt_started").contains(&"note".to_owned()));
}

#[test]
fn a_review_that_nobody_attends_asks_for_a_revision() {
    let project = Project::new();
    project.done(&["run", REVIEW, "--headless"]);
    let note = project.prompt("The change goes back.");
    assert!(!note.contains("The person who decided adds"), "nobody added anything\n{note}");
    let answers: Vec<Value> = events(&project).into_iter().filter(|event| event["event"] == "gate_answered").collect();
    assert_eq!((answers[0]["choice"].as_str(), answers[0]["by"].as_str()), (Some("revise"), Some("headless")));
}

#[test]
fn a_change_that_concerns_nobody_is_done_without_a_decision() {
    let project = Project::new();
    let scope = r#"{"summary": "A comment is mended.", "security": false, "api": false, "performance": false}"#;
    fs::write(project.root().join("specs/review/recorded/scope.json"), scope).expect("it can be written");
    let printed = project.done(&["run", REVIEW]);
    assert!(printed.ends_with("Nobody has to look at this: A comment is mended.\n"), "{printed}");
    assert_eq!(project.prompts().len(), 1, "one agent was asked, for the scope");
}

#[test]
fn issues_are_classified_each_on_its_own_and_sorted_into_one_list() {
    let project = Project::new();
    let printed = project.done(&["run", TRIAGE]);
    let report = "3 issues, 3 of them sorted\n- high bug: Data is lost when the disk is full.\n\
                  - medium question: Asks how to resume a run.\n- low feature: A wish for a dark theme.\n";
    assert!(printed.ends_with(report), "{printed}");
    let prompts = project.prompts();
    assert_eq!(prompts.len(), 3);
    let dark = project.prompt("Title: Dark theme");
    assert!(dark.contains("Issue 42 of") && !dark.contains("Journal is gone"), "one issue a prompt\n{dark}");
    stays_within_its_bounds(&project, TRIAGE, "triage");
}

#[test]
fn an_issue_that_cannot_be_classified_costs_the_others_nothing() {
    let project = Project::new();
    edit(&project, TRIAGE, r#"{"kind": "feature", "priority": "low", "#, r#"{"kind": "wish", "#);
    edit(&project, TRIAGE, "backoff=\"1s\"", "backoff=\"1ms\"");
    let printed = project.done(&["run", TRIAGE]);
    assert!(printed.contains("3 issues, 2 of them sorted\n- high bug"), "{printed}");
    // One attempt more, each with one more turn that says what was wrong.
    let repairs: Vec<String> = project.prompts().into_iter().filter(|prompt| prompt.contains("wish")).collect();
    assert!(!repairs.is_empty(), "{:#?}", project.prompts());
    stays_within_its_bounds(&project, TRIAGE, "triage");
}

#[test]
fn no_issues_are_no_work() {
    let project = Project::new();
    fs::write(project.root().join("none.json"), "[]").expect("it can be written");
    let printed = project.done(&["run", TRIAGE, "--param", "issues=none.json"]);
    assert!(printed.ends_with("No new issues.\n"), "{printed}");
    assert_eq!(steps(&project, "attempt_started"), ["list", "nothing-new"], "no agent was asked");
}

#[test]
fn a_fix_goes_round_until_the_judge_approves() {
    let project = Project::new();
    let printed = project.done(&["run", FIX]);
    assert!(printed.ends_with("Tests read `1..2`, `1.` and `.5`.\n"), "{printed}");
    assert_eq!(steps(&project, "step_skipped"), ["hand-over", "report"], "the other route");
    let again = project.prompt("Your last attempt was not enough");
    assert!(again.contains("- add a test that fails without the fix"), "{again}");
    let judged = project.prompt("What was done in round 2");
    assert!(judged.contains("The checks ended with 0:") && !judged.contains("They are red"), "{judged}");
    stays_within_its_bounds(&project, FIX, "fix");
}

#[test]
fn a_fix_that_is_blocked_is_handed_over() {
    let project = Project::new();
    edit(&project, FIX, r#"{"verdict": "approved", "points": []}"#, r#"{"verdict": "blocked", "points": ["ask Ada"]}"#);
    let printed = project.done(&["run", FIX, "--param", "checks=echo 3 failed; exit 7"]);
    assert!(printed.ends_with("Not mended:\nNot needed in this recording.\n"), "{printed}");
    let judged = project.prompt("What was done in round 2");
    assert!(judged.contains("The checks ended with 7:") && judged.contains("They are red"), "{judged}");
    assert!(project.prompt("Nobody could mend this").contains("- ask Ada"));
    assert_eq!(steps(&project, "step_skipped"), ["describe", "commit-message"]);
    stays_within_its_bounds(&project, FIX, "fix");
}

#[test]
fn a_fix_that_never_comes_stops_after_its_rounds() {
    let project = Project::new();
    edit(&project, FIX, r#""verdict": "approved", "points": []"#, r#""verdict": "changes", "points": ["once more"]"#);
    let printed = project.done(&["run", FIX]);
    assert!(printed.ends_with("Not mended:\nNot needed in this recording.\n"), "{printed}");
    let rounds = steps(&project, "attempt_started").iter().filter(|name| *name == "implement").count();
    assert_eq!(rounds, 4);
    stays_within_its_bounds(&project, FIX, "fix");
}

#[test]
fn a_release_is_published_once_somebody_says_so() {
    let project = Project::new();
    let run = ["run", RELEASE, "--param", "version=1.4.0", "--param", "publish=echo $VERSION >>published; echo sent"];
    let waiting = Waiting::start(&project, &run);
    assert!(!project.root().join("published").exists(), "nothing is published before");
    project.done(&["approve", "last", "go", "publish"]);
    let (code, out, err) = waiting.end();
    assert_eq!(code, Some(0), "{err}");
    assert!(out.ends_with("Published 1.4.0:\nsent\n"), "{out}");
    assert_eq!(fs::read_to_string(project.root().join("published")).expect("it is published"), "1.4.0\n");
    assert!(project.prompt("ready to be published?").contains(&wrapped("build", "built")));
    stays_within_its_bounds(&project, RELEASE, "release");
}

#[test]
fn a_publication_that_fails_is_taken_back() {
    let project = Project::new();
    let run = ["run", RELEASE, "--param", "publish=exit 9", "--param", "rollback=echo back >taken-back"];
    let (code, out, err) = answered(&project, &run, &["go", "publish"]);
    assert_eq!(code, Some(0), "the failure is handled\n{out}\n{err}");
    assert!(project.root().join("taken-back").exists());
    assert!(!out.contains("Published"), "{out}");
}

#[test]
fn a_release_that_nobody_attends_is_held_back() {
    let project = Project::new();
    let printed = project.done(&["run", RELEASE, "--headless", "--param", "publish=touch published"]);
    assert!(printed.ends_with("Held back.\n"), "{printed}");
    assert!(!project.root().join("published").exists());
    assert!(texts(&project.root()).keys().all(|path| !path.contains("published")));
}

#[test]
fn a_run_that_is_stopped_at_a_gate_asks_again_when_it_goes_on() {
    let project = Project::new();
    let waiting = Waiting::start(&project, &["run", RELEASE]);
    crate::cli::signal(&waiting.child, "TERM");
    let (code, _, err) = waiting.end();
    assert_eq!(code, Some(4), "{err}");
    let refused = project.swarmc(&["approve", "last", "go", "hold"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("swarmc resume"), "{refused:?}");
    let (code, out, err) = answered(&project, &["resume"], &["go", "hold", "--ask", "reason=Not on a Friday."]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.ends_with("Held back. Not on a Friday.\n"), "{out}");
    let builds = steps(&project, "attempt_started").iter().filter(|name| *name == "build").count();
    assert_eq!(builds, 1, "what finished does not run again");
}
