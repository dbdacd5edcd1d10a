//! `swarmc test` of swarms: members, tools, helpers and the merger are faked, and the core, its numbers and prompts are
//! those of a run. Runs with swarms are neither recorded nor replayed.

use crate::cli::Place;

const SPEC: &str = r#"
workflow w
provider local preset=llama-server { context-window 8192 }
agent scout provider=local { tools file_read }
swarm team {
    goal "Win"
    member ada agent=scout "Look"
    member bob agent=scout "Compare"
    limits { agents 3; iterations 4; messages 2 }
    synthesize agent=scout
}
"#;

/// The fakes of whoever is not what a test is about.
const REST: &str = r##"
    fake bob #"{"action": "done", "response": "B"}"#
    fake swarm-supervisor "All of it."
"##;

fn place(fakes: &str, expect: &str) -> Place {
    Place::new(&format!("{SPEC}test one {{\n{fakes}\n    expect {{\n{expect}\n    }}\n}}\n"))
}

#[track_caller]
fn holds(fakes: &str, expect: &str) {
    place(fakes, expect).swarmc(&["test"]).expect(0, &["passed  flow.kdl one"], &[]);
}

#[test]
fn tools_say_what_their_fakes_say_and_are_never_called() {
    holds(
        r##"
    fake ada turn=1 #"{"action": "tool_call", "tool": "file_read", "tool_params": {"path": "us.txt"}}"#
    fake ada tool=file_read turn=1 "NVIDIA leads."
    fake ada turn=2 #"{"action": "done", "response": "A"}"#
    fake bob turn=1 #"{"action": "tool_call", "tool": "shell", "tool_params": {"command": "touch made"}}"#
    fake bob turn=2 #"{"action": "tool_call", "tool": "file_read", "tool_params": {"path": "flow.kdl"}}"#
    fake bob turn=3 #"{"action": "done", "response": "B"}"#
    fake swarm-supervisor "All of it."
"##,
        r#"status success
        step team succeeded
        prompt ada turn=2 contains="tool_call:file_read → <data>NVIDIA leads.</data>"
        prompt bob turn=2 contains="the tool `shell` is not yours to use"
        prompt bob turn=3 contains="was not called: this is a test"
        prompt swarm-supervisor contains="Win"
        result equals="All of it."
        turns 6"#,
    );
}

#[test]
fn a_model_that_is_slow_or_overloaded_is_asked_again_in_no_time() {
    holds(
        &format!(
            r##"
    fake ada turn=1 attempt=1 delay="91s" "too late"
    fake ada turn=1 attempt=2 exit=1 "429: rate limit"
    fake ada turn=1 #"{{"action": "done", "response": "A"}}"#{REST}"##
        ),
        r#"status success
        prompt ada attempt=3 contains="Iteration 1 of 4"
        turns 5"#,
    );
}

#[test]
fn one_that_cannot_be_reached_leaves_the_others_their_result() {
    holds(
        r##"
    fake ada exit=1 "401: no such key"
    fake bob #"{"action": "done", "response": "B alone"}"#
"##,
        r#"status success
        result equals="B alone"
        turns 2"#,
    );
}

#[test]
fn a_helper_is_faked_by_the_name_that_it_always_has() {
    let asks = format!(
        r##"
    fake ada turn=1 #"{{"action": "request_help", "help_description": "Read it", "help_skills": ["file_read"]}}"#
    fake ada turn=2 #"{{"action": "done", "response": "A"}}"#{REST}"##
    );
    let ended = place(&asks, "status success").swarmc(&["test"]);
    let ended = ended.expect(3, &["ran and has no fake", "turn=1 #\"{\"action\": \"done\""], &[]);
    let (_, rest) = ended.out.split_once("member `").expect("it says who");
    let (name, _) = rest.split_once('`').expect("a name ends");
    let fake = format!("{asks}\n    fake {name} \"{{\\\"action\\\": \\\"done\\\", \\\"response\\\": \\\"H\\\"}}\"");
    holds(&fake, &format!("status success\nprompt {name} contains=\"## Task\\nRead it\"\nturns 5"));
}

#[test]
fn a_swarm_ends_with_the_time_of_its_step() {
    let place = Place::new(&format!(
        r#"{SPEC}
pipeline main {{ task work {{ swarm team; timeout "1m" }}; result work }}
test one {{
    pipeline main
    fake ada delay="80s" "x"
    fake bob delay="80s" "x"
    expect {{ status failure; step work failed; turns 2 }}
}}
"#
    ));
    place.swarmc(&["test"]).expect(0, &["passed  flow.kdl one"], &[]);
}
