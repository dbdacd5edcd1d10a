//! Operations in lines of an answer that are refused: the agent gets a further turn of the attempt to mend them.

use std::fs;

use super::{err, records, run, run_in, scripted, sent};

/// `first` sends one envelope that is accepted, and one to a task that no edge leads to, and ends with `Done.`.
const SPEC: &str = r##"
workflow refused { default main }
provider recorded {
    script {
        answer "{\"swarm\": \"send_handoff\", \"to\": \"second\", \"message\": \"Look\"}\n{\"swarm\": \"send_handoff\", \"to\": \"third\", \"message\": \"Lost\"}\nDone." task=firstTURN1
        answer "{\"swarm\": \"send_handoff\", \"to\": \"second\", \"message\": \"Look\"}\n{\"swarm\": \"send_handoff\", \"to\": \"second\", \"message\": \"Mended\"}\nSorry." task=first turn=2
        answer "Noted."
    }
}
agent any provider=recorded
pipeline main {
    edges { first -> second }
    task first agent=any {
        prompt "Ask"
        OUTPUT
    }
    task second agent=any { prompt "Look:\n<<inbox>>" }
    result first
}
"##;

fn out(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn spec(turn: &str, output: &str) -> String {
    SPEC.replace("TURN1", turn).replace("OUTPUT", output)
}

#[test]
fn a_refused_line_gets_the_agent_a_repair_turn() {
    let project = scripted(&spec(" turn=1", ""));
    let output = run_in(&project, &["run", "spec.kdl", "--record", "recorded"]);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    // What it repeats of its first answer is not sent again, and its output is that answer.
    assert_eq!(sent(&project), ["first → second: Look", "first → second: Mended"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Done.\n");
    assert!(said.contains("`first`: operations in its answer were refused (1); asked again, 1 of 1"), "{said}");
    let ended = records(&project, "attempt_ended");
    let first = ended.iter().find(|record| record["step"]["name"] == "first").expect("it ended");
    assert_eq!(first["repairs"], 1, "{first}");
    let asked = project.prompt("Write each of them again");
    for part in [
        "\"to\": \"third\"",
        "no edge leads from `first` to `third`",
        "Write each of them again",
        "and so are the operations",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    // A replay asks the same, though nothing is sent to be refused.
    let replayed = run_in(&project, &["run", "spec.kdl", "--replay", "recorded", "-q"]);
    assert_eq!(replayed.status.code(), Some(0), "{}", err(&replayed));
}

/// What it cannot mend is lost, and people hear of that; its answer counts.
#[test]
fn what_is_not_mended_does_not_fail_the_attempt() {
    for (turn, output, repairs) in [("", "output repair=0", 0), (" turn=1", "output repair=3", 1)] {
        let text = spec(turn, output);
        // Its second turn fails.
        let text = text.replace("task=first turn=2", "task=first turn=2 exit=1");
        let project = scripted(&text);
        let run = run(&project);
        let said = err(&run);
        assert_eq!(run.status.code(), Some(0), "{output}: {said}");
        assert_eq!(sent(&project), ["first → second: Look"], "{output}");
        assert!(said.contains("`first`: a request of its agent was refused"), "{output}: {said}");
        assert_eq!(said.contains("asked again"), repairs > 0, "{output}: {said}");
    }
}

/// `swarmc plan` counts the turn that mends, and a budget without room for it is reported.
#[test]
fn the_worst_case_counts_the_repair_turn() {
    let text =
        spec(" turn=1", "").replace("agent any provider=recorded", "agent any provider=recorded { budget calls=1 }");
    let project = scripted(&text);
    let checked = project.swarmc(&["check", "spec.kdl"]);
    assert!(out(&checked).contains("SW404"), "{}", out(&checked));
    fs::write(
        project.root().join("spec.kdl"),
        text.replace("prompt \"Ask\"\n", "prompt \"Ask\"\n        output repair=0\n"),
    )
    .expect("a spec can be written");
    let checked = project.swarmc(&["check", "spec.kdl"]);
    assert!(!out(&checked).contains("`first` can take"), "{}", out(&checked));
}
