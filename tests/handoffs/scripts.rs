//! Scripts as nodes of `specs/handoffs`: a bash script takes part by `swarmc agent`, another one by files.

use std::fs;

use super::{EXAMPLE, SPEC, err, run_in, sent};
use crate::specs::{Project, only};

/// One that is told its part by its prompt and hands over by commands; and one that reads and writes files, and knows
/// nothing else of the run.
const SCRIPTS: &str = r###"
provider by-commands {
    exec "bash" "-c" ##"""
        set -e
        case $(cat) in
            *"The parser has no tests"*)
                swarmc agent send-handoff --to reviewer --message "The tests are there" --artifact src/parse.rs --ok tests-pass >&2
                echo "Seven tests more."
                ;;
            *)
                swarmc agent read-inbox >read.json
                mkdir -p src; echo "fn parse() {}" >src/parse.rs
                swarmc agent send-handoff --to reviewer --message "The parser is ready" --artifact src/parse.rs >&2
                swarmc agent send-handoff --to architect --message "The parser is as planned" --ok tests-pass >&2
                echo "The parser stands."
                ;;
        esac
        """##
}
provider by-files {
    exec "bash" "-c" ##"""
        set -e
        cat >workspace/prompt
        cp messages/architect_to_printer_001.json outbox/given.json
        echo '{"to": "reviewer", "type": "data_ready", "content": "The printer is ready"}' >messages/printer_to_reviewer_001.json
        echo '{"to": "architect", "type": "answer", "content": "The printer is as planned"}' >messages/printer_to_architect_002.json
        echo "The printer stands, with tests." >outbox/summary.md
        echo '{"state": "completed"}' >status.json
        """##
}
agent commander provider=by-commands
agent clerk provider=by-files { can write-files }
"###;

#[test]
fn scripts_take_part_in_the_example_by_commands_and_by_files() {
    let project = Project::new();
    let path = project.root().join(SPEC);
    let mut spec = fs::read_to_string(&path).expect("the example is there");
    for (task, agent, more) in [("parser", "commander", ""), ("printer", "clerk", "; files")] {
        let from = format!("task {task} agent=coder {{ prompt file=\"prompts/coder.md\" context=part }}");
        let to = format!("task {task} agent={agent} {{ prompt file=\"prompts/coder.md\" context=part{more} }}");
        assert!(spec.contains(&from), "the example has changed");
        spec = spec.replace(&from, &to);
    }
    fs::write(&path, spec + SCRIPTS).expect("a spec can be written");
    let output = run_in(&project, &["run", SPEC]);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("a request of its agent was refused"), "{said}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.ends_with("Approved: parser and printer agree, and both have tests.\n"), "{printed}");
    let mut sent = sent(&project);
    sent.sort();
    assert_eq!(sent, EXAMPLE);
    assert_eq!(project.output("parser").trim(), "Seven tests more.");
    assert_eq!(project.output("printer").trim(), "The printer stands, with tests.");
    // What the architect handed over reached both as it was.
    let read = |path: std::path::PathBuf| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(path).expect("it was read")).expect("it is JSON")
    };
    let inbox = read(project.root().join("read.json"));
    assert_eq!(inbox["inputs"][0]["payload"]["structured"]["files"][0], "src/parse.rs", "{inbox}");
    let given = only(&project.home().join("runs")).join("agents/printer/attempt-1/outbox/given.json");
    let given = read(given);
    assert_eq!((&given["from"], &given["type"]), (&"architect".into(), &"question".into()), "{given}");
    assert_eq!(given["content"]["files"][0], "src/print.rs", "{given}");
}
