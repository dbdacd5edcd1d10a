//! Turns of agents, end to end: typed outputs and their repair, native schemas, sessions, fallbacks.

use serde_json::json;
use swarmc_plan::{
    Agent, Body, Connection, Format, PromptBody, PromptDelivery, Provider, Recorded, Retry, Schema, SchemaFlag,
    Segment, Step,
};

use super::world::*;
use super::*;
use crate::types::event::{Failure, Usage};

/// What a fake agent prints as its events, for `sh`.
const SAY: &str = r#"say() { printf '{"type":"item.completed","item":{"type":"agent_message","text":"%s"}}\n' "$1"; }
done_with() { printf '{"type":"turn.completed","usage":{"input_tokens":%s,"output_tokens":%s}}\n' "$1" "$2"; }
failed() { printf '{"type":"turn.failed","error":{"message":"%s"}}\n' "$1"; exit 1; }
"#;

fn verdict() -> Schema {
    Schema(json!({
        "type": "object",
        "properties": { "severity": { "$ref": "#/$defs/Severity" }, "note": { "type": "string" } },
        "required": ["severity"],
        "additionalProperties": false,
    }))
}

/// A plan of these steps, its types, and these agents, each with the provider of its name.
pub(super) fn with_agents(steps: Vec<Step>, providers: Vec<(&str, Connection)>) -> swarmc_plan::Plan {
    let mut plan = plan(steps);
    let severity = Schema(json!({ "type": "string", "enum": ["low", "medium", "high"] }));
    plan.types = BTreeMap::from([("Severity".to_owned(), severity)]);
    for (name, connection) in providers {
        plan.agents.push(Agent { name: name.to_owned(), provider: name.to_owned(), ..Agent::default() });
        plan.providers.push(Provider { name: name.to_owned(), connection, ..Provider::default() });
    }
    plan
}

pub(super) fn ask(name: &str, agent: &str, needs: &[&str]) -> Step {
    let prompt = template(vec![Segment::Text(format!("Do {name}."))]);
    step(name, Body::Prompt(PromptBody { agent: agent.to_owned(), prompt, context: Vec::new() }), needs)
}

fn typed(mut step: Step, schema: Schema, repair: u32) -> Step {
    step.output.schema = Some(schema);
    step.output.repair = repair;
    step
}

pub(super) fn said(text: &str, attempt: Option<u32>, turn: Option<u32>) -> Recorded {
    Recorded { task: None, iteration: None, attempt, index: None, turn, text: text.to_owned(), exit: 0, delay_ms: 0 }
}

pub(super) fn script(answers: Vec<Recorded>) -> Connection {
    Connection::Script { answers }
}

/// A program of a few lines of shell, which prints events.
fn program(lines: &str) -> Connection {
    Connection::Exec {
        argv: vec!["sh".to_owned(), "-c".to_owned(), format!("{SAY}{lines}"), "fake".to_owned()],
        prompt: PromptDelivery::Stdin,
        reads: Format::CodexJsonl,
        model_flag: None,
        system_flag: None,
        resume: None,
        schema: None,
        mcp: swarmc_plan::McpConfig::default(),
    }
}

#[test]
fn a_typed_answer_is_the_value_in_it_and_flows_on_as_such() {
    let world = World::new();
    let text = "I think so.\n```json\n{ \"severity\": \"high\",\n  \"note\": \"<<output:x>> {{ 1 }}\" }\n```\n";
    let mut echo = step("echo", argv(&["cat"]), &["review"]);
    let Segment::Directive(mut severity) = output_of("review", false) else { unreachable!() };
    severity.fields = vec!["severity".to_owned()];
    echo.stdin = Some(template(vec![Segment::Directive(severity), output_of("review", false)]));
    let plan = with_agents(
        vec![typed(ask("review", "critic", &[]), verdict(), 1), echo],
        vec![("critic", script(vec![said(text, None, None)]))],
    );
    let outcome = world.start(&plan);
    let value = r#"{"note":"<<output:x>> {{ 1 }}","severity":"high"}"#;
    assert_eq!((outcome.ended, outcome.values), (Ended::Succeeded, vec![format!("high{value}")]));
    assert_eq!(world.read(world.output("review.txt")), value);
    let prompt = world.read(world.in_run("prompts/review.1.txt"));
    let (asked, schema) = prompt.rsplit_once('\n').unwrap();
    let expected = "Do review.\n\nAnswer with one JSON value that satisfies this JSON Schema, and nothing else:";
    assert_eq!(asked, expected);
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    assert_eq!(schema["$defs"]["Severity"]["enum"], json!(["low", "medium", "high"]));
}

#[test]
fn a_recorded_answer_of_the_wrong_type_is_mended_by_the_next_turn() {
    let world = World::new();
    let answers = vec![said("{\"severity\":\"hgih\"}", None, Some(1)), said("{\"severity\":\"high\"}", None, Some(2))];
    let plan = with_agents(vec![typed(ask("review", "critic", &[]), verdict(), 1)], vec![("critic", script(answers))]);
    let outcome = world.start(&plan);
    assert_eq!((outcome.ended, outcome.values[0].as_str()), (Ended::Succeeded, r#"{"severity":"high"}"#));
    let (_, end) = &world.ends()[0];
    assert_eq!((end.repairs, &end.failure, &end.fallback), (1, &None, &None));
    let mended = world.read(world.in_run("prompts/review.1.repair-1.txt"));
    let expected = "\n\n--- Your last answer to this ---\n{\"severity\":\"hgih\"}\n--- End of your last answer ---\n\n\
                    That answer does not fit what was asked for:\n\
                    - at /severity: \"hgih\" is none of low, medium, high\n\nAnswer again";
    assert!(mended.starts_with("Do review.\n\nAnswer with one") && mended.contains(expected), "{mended}");
    let told = "`review`: the answer is not of the declared type (at /severity: \"hgih\" is none of low, medium, high); \
                asked again, 1 of 1";
    assert_eq!(world.notices(), [told]);
}

#[test]
fn an_answer_that_stays_wrong_fails_the_attempt_and_retry_repeats_it() {
    let world = World::new();
    let answers = vec![said("no", Some(1), None), said("{}", Some(2), None)];
    let mut review = typed(ask("review", "critic", &[]), verdict(), 2);
    review.retry = Retry { times: 1, backoff_ms: 0, max_backoff_ms: 0, fresh: false };
    let outcome = world.start(&with_agents(vec![review], vec![("critic", script(answers))]));
    assert_eq!((outcome.ended, outcome.values.len()), (Ended::Failed, 0));
    let ends = world.ends();
    let failures: Vec<_> = ends.iter().map(|(_, end)| (end.failure.clone(), end.repairs, &end.output)).collect();
    let invalid = |violation: &str| Some(Failure::Invalid { violations: vec![violation.to_owned()] });
    let nothing = invalid("there is no JSON value in the answer (expected ident at line 1 column 2)");
    assert_eq!(failures, [(nothing, 2, &None), (invalid("the field \"severity\" is missing"), 2, &None)]);
    let error = ends[1].1.error().unwrap();
    assert_eq!(error, "its output is not of the declared type: the field \"severity\" is missing");
    assert_eq!(world.read(world.output("review.txt")), "{}", "people see what it said");
    assert!(world.in_run("prompts/review.2.repair-2.txt").exists());
    assert!(!world.in_run("prompts/review.2.repair-3.txt").exists());
}

#[test]
fn commands_and_computed_values_are_held_against_their_types_without_a_repair() {
    let world = World::new();
    let number = || Schema(json!({ "type": "integer" }));
    let good = typed(step("good", sh("echo; echo ' 5 '"), &[]), number(), 3);
    let wrong = typed(step("wrong", sh("echo five"), &[]), number(), 3);
    let failed = typed(step("failed", sh("echo 5; exit 3"), &[]), number(), 0);
    let long = typed(step("long", sh("printf '{\"severity\":\"low\",\"note\":\"%0200000d\"}' 1"), &[]), verdict(), 0);
    let value = |text: &str| Body::Value(template(vec![Segment::Text(text.to_owned())]));
    let computed = typed(step("computed", value("7"), &[]), number(), 0);
    let odd = typed(step("odd", value("x"), &[]), number(), 0);
    let fields = ["severity", "note"].map(|name| (name.to_owned(), template(vec![Segment::Text("low".to_owned())])));
    let record = typed(step("record", Body::Fields(fields.into()), &[]), verdict(), 0);
    world.start(&with_agents(vec![good, wrong, failed, long, computed, odd, record], Vec::new()));
    let ends: BTreeMap<String, event::Outcome> = world.ends().into_iter().collect();
    let text = |name: &str| match &ends[name].output {
        Some(Content::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    assert_eq!((text("good"), text("computed")), (Some("5"), Some("7")));
    assert_eq!(text("record"), Some(r#"{"note":"low","severity":"low"}"#));
    let told = |name: &str| ends[name].failure.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(told("wrong").contains("there is no JSON value in the answer"), "{}", told("wrong"));
    assert!(told("odd").contains("there is no JSON value in the answer"), "{}", told("odd"));
    assert!(told("long").contains("is longer than the 102400 bytes of `output max=`"), "{}", told("long"));
    assert_eq!((&ends["failed"].failure, text("failed")), (&Some(Failure::Exit), None), "a typed output is missing");
    assert_eq!(text("wrong"), None);
}

#[test]
fn a_cli_that_can_resume_is_told_in_its_session_what_is_wrong() {
    let world = World::new();
    let lines = r#"cat >>heard; echo "[$*]" >>calls
case "$1" in
resume) say '{\"severity\":\"low\"}'; done_with 30 7 ;;
*) echo '{"type":"thread.started","thread_id":"t-1"}'; say '{\"severity\":\"lwo\"}'; done_with 10 2 ;;
esac"#;
    let mut connection = program(lines);
    let Connection::Exec { argv, resume, .. } = &mut connection else { unreachable!() };
    *resume =
        Some([argv.as_slice(), &["resume".to_owned(), "{session}".to_owned(), "--id={session}".to_owned()]].concat());
    let plan = with_agents(vec![typed(ask("review", "critic", &[]), verdict(), 1)], vec![("critic", connection)]);
    let outcome = world.start(&plan);
    assert_eq!((outcome.ended, outcome.values[0].as_str()), (Ended::Succeeded, r#"{"severity":"low"}"#));
    assert_eq!(world.read(world.workspace().join("calls")), "[]\n[resume t-1 --id=t-1]\n");
    let heard = world.read(world.workspace().join("heard"));
    assert_eq!(heard.matches("Do review.").count(), 1, "the session knows the prompt: {heard}");
    assert!(heard.contains("- at /severity: \"lwo\" is none of low, medium, high"), "{heard}");
    let (_, end) = &world.ends()[0];
    // Codex counts over the whole thread: 30 and 7 are what both turns took together.
    let usage = Usage { input: 30, output: 7, ..Usage::default() };
    assert_eq!((end.usage, end.session.as_deref(), end.repairs), (Some(usage), Some("t-1"), 1));
}

#[test]
fn an_id_of_a_session_that_could_be_an_option_is_not_passed_on() {
    let world = World::new();
    let lines = r#"cat >/dev/null; echo "[$*]" >>calls
echo '{"type":"thread.started","thread_id":"--last"}'; say 5; done_with 1 1"#;
    let mut connection = program(lines);
    let Connection::Exec { argv, resume, .. } = &mut connection else { unreachable!() };
    *resume = Some([argv.as_slice(), &["{session}".to_owned()]].concat());
    let plan = with_agents(vec![typed(ask("review", "critic", &[]), verdict(), 1)], vec![("critic", connection)]);
    assert_eq!(world.start(&plan).ended, Ended::Failed);
    assert_eq!(world.read(world.workspace().join("calls")), "[]\n[]\n");
}

#[test]
fn a_native_schema_goes_to_the_program_and_not_into_the_prompt() {
    for (name, flag) in
        [("inline", SchemaFlag::Inline("--json-schema".to_owned())), ("file", SchemaFlag::File("--schema".to_owned()))]
    {
        let world = World::new();
        let lines = r#"cat >prompt; test "$1" = --schema && cat "$2" >schema || printf %s "$2" >schema
say '{\"severity\":\"low\",\"note\":null}'; done_with 1 1"#;
        let mut connection = program(lines);
        let Connection::Exec { schema, .. } = &mut connection else { unreachable!() };
        *schema = Some(flag);
        let plan = with_agents(vec![typed(ask("review", "critic", &[]), verdict(), 0)], vec![("critic", connection)]);
        let outcome = world.start(&plan);
        assert_eq!(outcome.values, [r#"{"severity":"low"}"#], "{name}: a null field counts as left out");
        assert_eq!(world.read(world.workspace().join("prompt")), "Do review.");
        let given: serde_json::Value = serde_json::from_str(&world.read(world.workspace().join("schema"))).unwrap();
        assert_eq!(given["required"], json!(["severity", "note"]));
        assert_eq!(given["$defs"]["Severity"]["enum"][0], "low");
        assert_eq!(world.in_run("prompts/review.1.schema.json").exists(), name == "file");
    }
}

/// Agents `one`, `two` and `three`, each the fallback of the one before; `three` falls back to `one`.
fn in_turn(mut plan: swarmc_plan::Plan) -> swarmc_plan::Plan {
    for (agent, next) in [(0, "two"), (1, "three"), (2, "one")] {
        plan.agents[agent].fallback = Some(next.to_owned());
    }
    plan
}

#[test]
fn a_turn_whose_agent_cannot_be_reached_is_taken_by_the_fallbacks_in_order() {
    let world = World::new();
    let mut missing = program("");
    let Connection::Exec { argv, .. } = &mut missing else { unreachable!() };
    *argv = vec!["no-such-agent".to_owned()];
    let refused = program("failed 'unexpected status 429 Too Many Requests'");
    let answers = program("cat >heard; say 'Done.'; done_with 3 1");
    let plan = in_turn(with_agents(
        vec![ask("work", "one", &[])],
        vec![("one", missing), ("two", refused), ("three", answers)],
    ));
    let outcome = world.start(&plan);
    assert_eq!((outcome.ended, outcome.values[0].as_str()), (Ended::Succeeded, "Done."));
    assert_eq!(world.ends()[0].1.fallback.as_deref(), Some("three"));
    assert_eq!(world.read(world.workspace().join("heard")), "Do work.");
    assert!(world.in_run("prompts/work.1.fallback-2.txt").exists());
    let told = world.notices();
    assert_eq!(
        told,
        [
            "`work`: agent `one` cannot be reached (`no-such-agent`: not found); `two` takes its turn",
            "`work`: agent `two` cannot be reached (unexpected status 429 Too Many Requests); `three` takes its turn",
        ]
    );
}

#[test]
fn no_fallback_takes_a_turn_that_went_wrong_or_began_to_work() {
    let tool = r#"echo '{"type":"item.started","item":{"id":"1","type":"command_execution"}}'; "#;
    for lines in ["failed 'told to fail'", &format!("{tool}failed 'status 429'"), "exit 1"] {
        let world = World::new();
        let plan = in_turn(with_agents(
            vec![ask("work", "one", &[])],
            vec![("one", program(lines)), ("two", program("touch here")), ("three", program("touch here"))],
        ));
        assert_eq!(world.start(&plan).ended, Ended::Failed, "{lines}");
        assert_eq!(world.ends()[0].1.fallback, None);
        assert!(!world.workspace().join("here").exists(), "{lines}");
    }
}

#[test]
fn when_no_agent_can_be_reached_the_last_one_says_why_and_the_chain_ends() {
    let world = World::new();
    let mut plan = in_turn(with_agents(
        vec![ask("work", "one", &[])],
        ["one", "two", "three"].map(|name| (name, program("failed 'connection refused'"))).into(),
    ));
    plan.providers[0].env = vec![swarmc_plan::EnvValue::Secret("NOPE".to_owned())];
    assert_eq!(world.start(&plan).ended, Ended::Failed);
    let (_, end) = &world.ends()[0];
    assert_eq!(end.failure, Some(Failure::Agent { message: "connection refused".to_owned() }));
    assert_eq!(end.fallback.as_deref(), Some("three"));
    assert!(world.notices()[0].contains("the secret variable `NOPE` is not set"));
}

#[test]
fn checks_have_the_environment_of_the_agent_that_can_be_reached() {
    let world = World::new();
    let mut work = ask("work", "one", &[]);
    work.env = vec![swarmc_plan::EnvValue::Set {
        name: "LEVEL".to_owned(),
        value: template(vec![Segment::Text("7".to_owned())]),
    }];
    work.checks = vec![Command::Shell("test \"$LEVEL\" = 7 && command -v sh".to_owned())];
    let mut plan = in_turn(with_agents(
        vec![work],
        ["one", "two", "three"].map(|name| (name, program("cat >/dev/null; say 'Done.'; done_with 3 1"))).into(),
    ));
    plan.providers[0].env = vec![swarmc_plan::EnvValue::Secret("NOPE".to_owned())];
    let outcome = world.start(&plan);
    assert_eq!((outcome.ended, world.ends()[0].1.fallback.as_deref()), (Ended::Succeeded, Some("two")));
}

/// An agent that says in which session it is, and what it was told with.
fn talker() -> Connection {
    let lines = r#"cat >/dev/null; test -e count || echo 0 >count
case "$1" in
resume) id=$2; was=$2 ;;
*) id=s$(cat count); was=fresh; echo $(($(cat count) + 1)) >count ;;
esac
printf '{"type":"thread.started","thread_id":"%s"}\n' $id; say "$was"; done_with $((100 * $(cat count))) 1"#;
    let mut connection = program(lines);
    let Connection::Exec { argv, resume, .. } = &mut connection else { unreachable!() };
    *resume = Some([argv.as_slice(), &["resume".to_owned(), "{session}".to_owned()]].concat());
    connection
}

fn in_session(mut step: Step, name: &str) -> Step {
    step.session = Some(name.to_owned());
    step
}

/// What each agent's turn said, in the order of the journal.
fn spoken(world: &World) -> Vec<String> {
    let text = |(_, end): (String, event::Outcome)| match end.output {
        Some(Content::Text(text)) => Some(text),
        _ => None,
    };
    world.ends().into_iter().filter_map(text).collect()
}

#[test]
fn tasks_of_one_session_go_on_with_one_conversation_across_rounds_and_resumes() {
    let world = World::new();
    let mut plan = with_agents(
        vec![
            in_session(ask("draft", "one", &[]), "work"),
            in_session(ask("alone", "one", &["draft"]), "other"),
            in_session(ask("review", "one", &["alone"]), "work"),
            ask("fresh", "one", &["review"]),
            in_session(ask("stranger", "two", &["fresh"]), "work"),
        ],
        vec![("one", talker()), ("two", talker())],
    );
    plan.pipelines[0].iteration.max = 2;
    let outcome = world.start(&plan);
    assert_eq!(outcome.ended, Ended::Succeeded);
    let first = ["fresh", "fresh", "s0", "fresh", "fresh"];
    let second = ["s0", "s1", "s0", "fresh", "s3"];
    assert_eq!(spoken(&world), [first, second].concat());

    // The session is in the journal: a run that is cut off behind its fifth end goes on with it.
    let folder = world.home().find("last").unwrap();
    let journal = world.read(folder.journal_path());
    let cut: Vec<&str> = journal.lines().collect();
    let fifth = cut.iter().enumerate().filter(|(_, line)| line.contains("\"attempt_ended\"")).nth(4).unwrap().0;
    std::fs::write(folder.journal_path(), cut[..=fifth].join("\n") + "\n").unwrap();
    assert_eq!(world.resume(&outcome.run).unwrap().ended, Ended::Succeeded);
    assert_eq!(spoken(&world), [first, ["s0", "s1", "s0", "fresh", "s3"]].concat());
}

#[test]
fn a_session_ends_with_its_call_or_item_and_outlives_the_rounds_of_a_loop() {
    let world = World::new();
    let mut each = in_session(ask("each", "one", &[]), "work");
    each.for_each = Some(swarmc_plan::ForEach {
        list: Expression { source: "[1, 2]".to_owned(), reads: None, origin: origin() },
        parallel: Some(1),
        join: swarmc_plan::EachJoin::All,
        record: None,
    });
    let again = swarmc_plan::Loop {
        iteration: Iteration { max: 2, exhausted: Exhausted::Success, ..Iteration::default() },
        steps: vec![in_session(ask("inner", "one", &[]), "work")],
    };
    let rounds = step("rounds", Body::Loop(again), &["each"]);
    let after = in_session(ask("after", "one", &["rounds"]), "work");
    let call = swarmc_plan::Call { pipeline: "other".to_owned(), params: BTreeMap::new() };
    let mut plan =
        with_agents(vec![each, rounds, after, step("call", Body::Call(call), &["after"])], vec![("one", talker())]);
    let called = in_session(ask("called", "one", &[]), "work");
    plan.pipelines.push(Pipeline { name: "other".to_owned(), ..self::plan(vec![called]).pipelines.remove(0) });
    assert_eq!(world.start(&plan).ended, Ended::Succeeded);
    let agents = spoken(&world).into_iter().filter(|text| !text.starts_with('['));
    let expected = ["fresh", "fresh", "fresh", "s2", "s2", "fresh", "fresh"];
    assert_eq!(agents.collect::<Vec<_>>(), expected, "the last is the call's own output");
}

#[test]
fn a_provider_that_cannot_resume_is_named_and_a_fallback_has_its_own_session() {
    let world = World::new();
    let Connection::Exec { argv, .. } = talker() else { unreachable!() };
    let mut cannot = program("");
    let Connection::Exec { argv: words, .. } = &mut cannot else { unreachable!() };
    *words = argv;
    let steps = || {
        let first = in_session(ask("first", "one", &[]), "work");
        vec![first, in_session(ask("second", "one", &["first"]), "work")]
    };
    let mut plan = with_agents(steps(), vec![("one", cannot)]);
    assert_eq!(world.start(&plan).ended, Ended::Failed);
    let message = "provider `one` cannot go on with a session: give it `resume-args`".to_owned();
    assert_eq!(world.ends()[1].1.failure, Some(Failure::Spawn { message }));

    let world = World::new();
    plan = with_agents(steps(), vec![("one", program("failed 'status 503'")), ("two", talker())]);
    plan.agents[0].fallback = Some("two".to_owned());
    assert_eq!(world.start(&plan).ended, Ended::Succeeded);
    assert_eq!(spoken(&world), ["fresh", "s0"]);
}
