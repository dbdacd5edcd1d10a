//! What happens when an agent fails: its report, and the four things that a spec can say then.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{DONE, ends, folder, parsed, project, read, task};

/// The error of the seed's example.
const FAILED: &str = r#"cat >status.json <<'END'
{
  "state": "failed",
  "error": {
    "type": "ValidationError",
    "message": "Input file format invalid",
    "details": "Expected CSV, got JSON",
    "recoverable": true
  }
}
END
"#;

/// And its report.
const REPORT: &str = "# Error Report

## Error Type
ValidationError

## Description
Input file format was invalid. Expected CSV format but received JSON.

## Attempted Recovery
Tried to convert JSON to CSV but data structure incompatible.

## Suggested Resolution
Provide input as CSV with columns: id, name, value

## Partial Work
Any completed work before failure is in outbox/partial/
";

/// A script that fails as the example does.
fn failing() -> String {
    format!(
        "mkdir outbox/partial; echo half >outbox/partial/half.csv\ncat >outbox/error_report.md <<'END'\n{REPORT}END\n{FAILED}"
    )
}

/// The events of the run.
fn events(project: &crate::specs::Project, kind: &str) -> Vec<Value> {
    let journal = crate::specs::only(&project.home().join("runs")).join("journal.jsonl");
    let text = fs::read_to_string(journal).expect("a journal can be read");
    // Zeros lie ahead of it while the run goes on.
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines.map(parsed).filter(|record| record["event"] == kind).collect()
}

#[test]
fn a_report_has_the_sections_of_the_instructions_and_a_missing_one_is_told() {
    let script = format!("cat SKILL.md >workspace/told\n{FAILED}");
    let project = project(&task("worker", &script, "files"));
    let said = ends(&project, 3);
    assert!(said.contains("(Expected CSV, got JSON); it left no report in `outbox/error_report.md`"), "{said}");
    let told = read(&project, "worker", "workspace/told");
    let headings =
        |text: &str| text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    let (_, outline) = told.split_once("```markdown\n").expect("the instructions have an outline");
    assert_eq!(headings(outline), headings(REPORT));
}

#[test]
fn failure_protocol() {
    let project = project(&task("worker", &failing(), "files { output \"sum.csv\" }"));
    let said = ends(&project, 3);
    assert!(
        said.contains("ValidationError: Input file format invalid (Expected CSV, got JSON); its report: "),
        "{said}"
    );
    // Report and partial work are kept, as they were written.
    assert_eq!(read(&project, "worker", "outbox/error_report.md"), REPORT);
    assert_eq!(read(&project, "worker", "outbox/partial/half.csv"), "half\n");
    let shown = parsed(&project.done(&["inspect", "--json", "last", "worker"]));
    let files = &shown["tries"][0]["files"];
    assert_eq!(files["status"]["error"]["recoverable"], true);
    let kept: Vec<&Value> = files["outbox"].as_array().expect("a list").iter().map(|kept| &kept["path"]).collect();
    assert_eq!(kept, ["error_report.md", "partial/half.csv"]);
}

#[test]
fn recovery_by_retry() {
    let script = format!("if [ $SWARM_ATTEMPT = 1 ]; then {}\nelse cat inbox/a.txt >outbox/sum; {DONE}; fi", failing());
    let project = project(&task("worker", &script, "retry 2 backoff=\"1ms\"; files { input \"a.txt\"; output sum }"));
    fs::write(project.root().join("a.txt"), "the same").expect("a file can be written");
    ends(&project, 0);
    // With the same inputs, in a folder of its own.
    assert!(folder(&project, "worker", 1).join("outbox/error_report.md").exists());
    let sum = fs::read_to_string(folder(&project, "worker", 2).join("outbox/sum")).expect("it is there");
    assert_eq!(sum, "the same");
}

#[test]
fn what_the_agent_calls_unrecoverable_is_not_repeated() {
    let failing = failing().replace("\"recoverable\": true", "\"recoverable\": false");
    let project = project(&task("worker", &failing, "retry 5 backoff=\"1ms\"; files"));
    ends(&project, 3);
    assert_eq!(events(&project, "attempt_started").len(), 1);
}

/// An agent that corrects the input of whoever failed.
const FIXER: &str = r##"
provider fixers {
    exec "sh" "-c" #"""
        cat >prompt
        chmod u+w $SWARM_WORKSPACE/inbox/a.txt
        printf 'id,name,value\n' >$SWARM_WORKSPACE/inbox/a.txt
        echo corrected
        """#
}
agent fixer provider=fixers { can write-files }
"##;

#[test]
fn recovery_by_fix_and_retry() {
    for lasting in [false, true] {
        let failing = failing().replace("\"recoverable\": true", &format!("\"recoverable\": {}", !lasting));
        let script = format!(
            "if grep -q '^id,name,value$' inbox/a.txt; then cp inbox/a.txt inbox/b.txt outbox/; {DONE}; else {failing}\nfi"
        );
        let files = "files { input \"a.txt\"; input \"b.txt\"; output \"a.txt\" }";
        let more = format!("retry 1 backoff=\"1ms\"; on-failure fix agent=fixer; {files}");
        let project = project(&task("worker", &script, &more));
        let spec = project.root().join("spec.kdl");
        let text = fs::read_to_string(&spec).expect("it is there");
        fs::write(&spec, format!("{text}{FIXER}")).expect("a spec can be written");
        fs::write(project.root().join("a.txt"), "{}").expect("a file can be written");
        fs::write(project.root().join("b.txt"), "b").expect("a file can be written");
        let output = super::run(&project);
        assert_eq!(output.status.code(), Some(0), "{}", super::err(&output));
        let attempts: Vec<Value> =
            events(&project, "attempt_started").into_iter().map(|it| it["attempt"].clone()).collect();
        let expected =
            if lasting { vec![json!(1), json!(3), json!(4)] } else { vec![json!(1), json!(2), json!(3), json!(4)] };
        assert_eq!(attempts, expected);
        // The last attempt has what was corrected, and the rest as it was; the project's own file is as it was, too.
        let outbox = folder(&project, "worker", 4).join("outbox");
        assert_eq!(fs::read_to_string(outbox.join("a.txt")).expect("it is there"), "id,name,value\n");
        assert_eq!(fs::read_to_string(outbox.join("b.txt")).expect("it is there"), "b");
        assert_eq!(fs::read_to_string(project.root().join("a.txt")).expect("it is there"), "{}");
        let prompt = fs::read_to_string(project.root().join("prompt")).expect("it was asked in the project");
        assert!(prompt.contains("ValidationError") && prompt.contains("error_report.md"), "{prompt}");
    }
}

#[test]
fn recovery_by_skip() {
    let tasks = [
        task("worker", &failing(), "on-failure skip; files"),
        task("other", DONE, "depends-on worker when=always; files"),
    ];
    let project = project(&tasks.concat());
    let said = ends(&project, 0);
    assert!(said.contains("worker: skipped"), "{said}");
    assert!(said.contains("✓ other"), "{said}");
}

#[test]
fn recovery_by_escalation() {
    let project = project(&task("worker", &failing(), "retry 2 backoff=\"1ms\"; on-failure escalate; files"));
    // Nobody is there to be asked.
    let output = project.swarmc(&["run", "spec.kdl", "--headless"]);
    assert_eq!(output.status.code(), Some(3), "{}", super::err(&output));
    assert_eq!(events(&project, "attempt_started").len(), 3);
    let asked = events(&project, "gate_opened");
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0]["message"].to_string().contains("ValidationError"), "{asked:?}");
}

#[test]
fn who_is_asked_may_have_it_repeated_or_skipped() {
    // What cannot succeed is asked about at once.
    let failing = failing().replace("\"recoverable\": true", "\"recoverable\": false");
    for (answer, code, ends) in [("retry", 0, "✓ worker"), ("skip", 0, "worker: skipped"), ("fail", 3, "✗ worker")]
    {
        let script = format!("if [ -e $ROOT/mended ]; then cp inbox/a.txt outbox/; {DONE}; else {failing}\nfi");
        let more = r#"env ROOT="<<run:dir>>"; retry 5 backoff="1ms"; on-failure escalate; files { input "a.txt"; output "a.txt" }"#;
        let project = project(&task("worker", &script, more));
        fs::write(project.root().join("a.txt"), "given").expect("a file can be written");
        let mut command = project.command(&["run", "spec.kdl"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("swarmc starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        while parsed(&project.done(&["ps", "--json"]))["runs"][0]["gates"] != json!(["worker"]) {
            assert!(Instant::now() < deadline, "nobody is asked");
            std::thread::yield_now();
        }
        assert_eq!(events(&project, "attempt_started").len(), 1);
        fs::write(crate::specs::only(&project.home().join("runs")).join("mended"), "").expect("a file can be written");
        project.done(&["approve", "last", "worker", answer]);
        let output = child.wait_with_output().expect("swarmc ends");
        let said = super::err(&output);
        assert!(output.status.code() == Some(code) && said.contains(ends), "{answer}: {said}");
        // Once more is in a folder of its own, with the same inputs; what was left before is kept.
        assert_eq!(fs::read_to_string(folder(&project, "worker", 2).join("outbox/a.txt")).is_ok(), answer == "retry");
        assert_eq!(read(&project, "worker", "outbox/partial/half.csv"), "half\n");
    }
}
