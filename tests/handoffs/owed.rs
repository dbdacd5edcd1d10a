//! What counts as an answer that is owed, and who can owe one (seed 002, handoffs).

use super::{err, run, scripted, sent};

/// What asks back, or tells news, is no answer: whoever owes one owes it still.
#[test]
fn only_an_answer_is_what_is_owed() {
    for (kind, edge, answers) in
        [("answer", "", true), ("data_ready", "", true), ("question", "", false), ("update", " kind=signal", false)]
    {
        let project = scripted(
            &r##"
workflow owing { default main }
provider recorded {
    script {
        answer "{\"swarm\": \"send_handoff\", \"to\": \"two\", \"message\": \"Look\"}" task=one attempt=1
        answer "{\"swarm\": \"send_message\", \"to\": \"one\", \"type\": \"KIND\", \"content\": \"Well\"}" task=two
        answer "Noted."
    }
}
agent any provider=recorded
pipeline main {
    edges { one -> two response=required; two -> oneEDGE }
    task one agent=any { prompt "Ask" }
    task two agent=any { prompt "Look:\n<<inbox>>" }
    result one
}
"##
            .replace("KIND", kind)
            .replace("EDGE", edge),
        );
        let output = run(&project);
        let said = err(&output);
        assert_eq!(output.status.code(), Some(if answers { 0 } else { 3 }), "{kind}{edge}: {said}");
        assert_eq!(
            said.contains("from `one`") && said.contains("it never answered e"),
            !answers,
            "{kind}{edge}: {said}"
        );
        assert_eq!(sent(&project), ["one → two: Look", "two → one: Well"], "{kind}{edge}");
    }
}

/// Nobody fails for want of an answer to what gives it no turn.
#[test]
fn nobody_has_to_answer_what_gives_it_no_turn() {
    let project = scripted(
        r##"
workflow unheard { default main }
provider recorded {
    script {
        answer "{\"swarm\": \"send_handoff\", \"to\": \"two\", \"message\": \"News\", \"response\": \"required\"}\n{\"swarm\": \"send_handoff\", \"to\": \"three\", \"message\": \"Look\", \"response\": \"required\"}\n{\"swarm\": \"send_handoff\", \"to\": \"two\", \"message\": \"More\", \"response\": \"optional\"}" task=one
        answer "Noted."
    }
}
agent any provider=recorded
pipeline main {
    edges { one -> two kind=signal; two -> one kind=signal; one <-> three }
    task one agent=any { prompt "Tell" }
    task two agent=any { prompt "Do" }
    task three { run "true" }
    result two
}
"##,
    );
    let output = run(&project);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for why in [
        "`two` cannot be required to answer: a signal gives it no turn; set `response` to `none` or `optional`",
        "`three` cannot be required to answer: it reads no inbox; set",
    ] {
        assert!(said.contains(why), "{why}: {said}");
    }
    assert_eq!(sent(&project), ["one → two: More"]);
}

/// Whoever cannot be answered any more is named with the reason, and is nobody to hand over to.
#[test]
fn an_answer_that_is_refused_is_told_as_such() {
    let project = scripted(
        r##"
workflow late { default main }
provider recorded {
    script {
        answer "{\"swarm\": \"send_handoff\", \"to\": \"two\", \"message\": \"Look\"}" task=one
        answer "{\"swarm\": \"send_handoff\", \"to\": \"one\", \"message\": \"Well\"}" task=two
    }
}
agent any provider=recorded
pipeline main {
    allow SW307 reason="this is what is tried"
    edges { one -> two response=required }
    task one agent=any { prompt "Ask" }
    task two agent=any { depends-on one; prompt "Look:\n<<inbox>>" }
}
"##,
    );
    let output = run(&project);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let why = "from `one`, which ended first, so every answer was refused";
    assert!(said.contains("it never answered e") && said.contains(why), "{said}");
    assert_eq!(sent(&project), ["one → two: Look"]);
    let of_two = project.prompts().into_iter().filter(|prompt| prompt.starts_with("Look:"));
    assert!(of_two.into_iter().all(|prompt| !prompt.contains("You can hand over")));
}
