//! Tests of reading actions: what models write, and the action or error that it gives.

use serde_json::json;

use super::*;
use crate::types::chat::{Call, Tool};

fn tool(name: &str) -> Tool {
    let query = json!({ "type": "string", "description": "What to look for." });
    let parameters = json!({ "type": "object", "properties": { "query": query, "n": { "type": "integer" } }, "required": ["query"] });
    Tool { name: name.to_owned(), description: "Searches.".to_owned(), parameters }
}

#[test]
fn the_forms_that_models_are_told_are_read() {
    let check = |form: usize, expected: RawAction| {
        assert_eq!(parse_action(ACTIONS[form].json, None, TeamPart::None), Ok(expected))
    };
    check(0, RawAction::ToolCall { tool: "NAME".into(), params: json!({ "PARAMETER": "..." }) });
    check(1, RawAction::PublishData { topic: "findings".into(), data: "...".into() });
    let payload = json!({ "message": "..." });
    check(2, RawAction::SendMessage { to: "NAME".into(), kind: MessageType::Info, payload });
    check(3, RawAction::RequestHelp { description: "...".into(), skills: vec!["TOOL".into()] });
    check(4, RawAction::Done { response: "...".into() });
    check(5, RawAction::Idle);
}

/// The five actions of the seed, as it writes them.
#[test]
fn the_actions_of_the_seed_are_read_and_written_in_its_words() {
    for text in [
        r#"{"action": "tool_call", "tool": "web_search", "tool_params": {"query": "NVIDIA H100 market share 2025"}}"#,
        r#"{"action": "publish_data", "topic": "findings", "data": "US market dominated by NVIDIA with 80% share"}"#,
        r#"{"action": "send_message", "to": "mitaka", "message_type": "info", "payload": {"message": "Can you check Japan domestic chip vendors?"}}"#,
        r#"{"action": "request_help", "help_description": "Need help analyzing EU regulatory impact", "help_skills": ["web_search"]}"#,
        r#"{"action": "done", "response": "US leads with NVIDIA dominance. Full report in takao-report.md"}"#,
    ] {
        let action = parse_action(text, None, TeamPart::None).unwrap();
        let written: Value = serde_json::to_value(&action).unwrap();
        assert_eq!(written, serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(serde_json::from_value::<RawAction>(written).unwrap(), action);
    }
}

#[test]
fn an_action_is_found_in_what_stands_around_it() {
    let check = |text: &str, prefill: Option<&str>| {
        assert_eq!(parse_action(text, prefill, TeamPart::None), Ok(RawAction::Idle), "{text}")
    };
    check("{\"action\": \"idle\"}", None);
    check("{\"action\": \"idle\"}", Some("{"));
    check("\"action\": \"idle\"}", Some("{"));
    check("\u{feff} {\"action\":\"idle\"}\n", None);
    check("I will wait.\n```json\n{\"action\": \"idle\"}\n```\nThat is all.", None);
    check("So I return: {\"action\": \"idle\"}.", None);
    check("Set {a} and [b]: {\"action\": \"idle\"}", None);
    check("[{\"action\": \"idle\"}]", None);
    check("{\"step\": {\"action\": \"idle\"}}", None);
    check("{\"action\": \"idle\", \"thought\": \"nothing to do\", \"tool\": null}", None);
    check("<think>Maybe {\"action\": \"done\", \"response\": \"x\"}?</think>{\"action\": \"idle\"}", None);
    // Said twice, it is still one.
    check("{\"action\": \"idle\"}\n\n```json\n{\"action\":\"idle\"}\n```", None);
}

#[test]
fn what_is_no_action_says_what_to_return() {
    let check = |text: &str, expected: &str| {
        assert_eq!(parse_action(text, None, TeamPart::None).unwrap_err(), expected, "{text}")
    };
    const ONE: &str = "return exactly one action, as one JSON object and nothing else";
    check("", &format!("it holds no JSON object: {ONE}, such as {{\"action\": \"idle\"}}"));
    check("I think we should wait.", &format!("it holds no JSON object: {ONE}, such as {{\"action\": \"idle\"}}"));
    check("{\"act\": 1}", &format!("its JSON object has no field `action`: {ONE}, such as {{\"action\": \"idle\"}}"));
    check(
        "{\"action\": \"done\", \"response\": \"NVID",
        &format!("its JSON cannot be read (EOF while parsing a string at line 1 column 36): {ONE}"),
    );
    check("{\"action\":\"idle\"} {\"action\":\"done\",\"response\":\"x\"}", &format!("it holds 2 actions: {ONE}"));
    check("[{\"action\":\"idle\"},{\"action\":\"done\",\"response\":\"x\"}]", &format!("it holds 2 actions: {ONE}"));
    check(
        "{\"action\":\"idle\",\"action\":\"done\",\"response\":\"x\"}",
        &format!("`action` stands in it twice: {ONE}"),
    );
    check(
        "{\"action\": 1}",
        "`action` is no text: it is one of tool_call, publish_data, send_message, request_help, done, idle",
    );
    check(
        "{\"action\": \"send_mesage\"}",
        "there is no action `send_mesage`: did you mean {\"action\": \"send_message\", \"to\": \"NAME\", \
         \"message_type\": \"info\", \"payload\": {\"message\": \"...\"}}",
    );
    check(
        "{\"action\": \"web_search\"}",
        "there is no action `web_search`: it is one of tool_call, publish_data, send_message, request_help, done, idle; a \
         tool is called by {\"action\": \"tool_call\", \"tool\": \"NAME\", \"tool_params\": {\"PARAMETER\": \"...\"}}",
    );
}

/// A part of something unfinished is never taken for the whole.
#[test]
fn an_action_within_half_an_action_is_none() {
    let half = "{\"action\":\"send_message\",\"to\":\"mitaka\",\"payload\":{\"action\":\"idle\"}";
    assert!(parse_action(half, None, TeamPart::None).unwrap_err().starts_with("its JSON cannot be read"));
    let list = "{\"action\":\"publish_data\",\"data\":[{\"action\":\"done\",\"response\":\"x\"}";
    assert!(parse_action(list, None, TeamPart::None).unwrap_err().starts_with("its JSON cannot be read"));
}

#[test]
fn fields_that_are_missing_wrong_or_too_long_are_told() {
    let check = |fields: Value, expected: &str| {
        let problem = parse_action(&fields.to_string(), None, TeamPart::None).unwrap_err();
        let form = ACTIONS.iter().find(|form| fields["action"] == form.name).unwrap();
        assert_eq!(problem, format!("{expected}: return {}", form.json));
    };
    check(json!({ "action": "tool_call" }), "`tool` is missing");
    check(json!({ "action": "tool_call", "tool": 7 }), "`tool` is no text");
    check(json!({ "action": "tool_call", "tool": "a\nb" }), "`tool` holds a line break or another control character");
    check(json!({ "action": "tool_call", "tool": "x", "tool_params": [] }), "`tool_params` is no JSON object");
    check(json!({ "action": "tool_call", "tool": "x", "tool_params": "{" }), "`tool_params` is no JSON object");
    check(
        json!({ "action": "tool_call", "tool": "x", "params": { "query": "y" } }),
        "`tool_params` is missing, and `params` is no field of it",
    );
    let long = "x".repeat(PARAMS_BYTES);
    let params = json!({ "text": long });
    check(
        json!({ "action": "tool_call", "tool": "x", "tool_params": params }),
        "`tool_params` has 131083 bytes and may have 131072",
    );
    check(json!({ "action": "publish_data", "topic": " ", "data": "x" }), "`topic` is empty");
    check(json!({ "action": "publish_data", "topic": "x", "data": null }), "`data` is missing");
    check(json!({ "action": "publish_data", "topic": "x", "data": 1 }), "`data` is no text");
    let long = "é".repeat(DATA_CHARS + 1);
    check(
        json!({ "action": "publish_data", "topic": "x", "data": long }),
        "`data` has 16001 characters and may have 16000",
    );
    let message = json!({ "action": "send_message", "to": "mitaka", "message_type": "news", "payload": {} });
    check(message, "`message_type` is `news`, which is none of request, offer, accept, delegation, info");
    let message = json!({ "action": "send_message", "to": "mitaka", "message_type": "info", "payload": [1] });
    check(message, "`payload` is no JSON object");
    let mut deep = json!({});
    (0..=NESTING).for_each(|_| deep = json!({ "in": deep }));
    let message = json!({ "action": "send_message", "to": "mitaka", "message_type": "info", "payload": deep });
    check(message, "`payload` nests deeper than 32");
    check(json!({ "action": "request_help", "help_skills": [] }), "`help_description` is missing");
    check(json!({ "action": "request_help", "help_description": "x", "help_skills": "y" }), "`help_skills` is no list");
    let skills = vec!["x"; SKILLS + 1];
    check(
        json!({ "action": "request_help", "help_description": "x", "help_skills": skills }),
        "`help_skills` has 21 items and may have 20",
    );
    check(json!({ "action": "done" }), "`response` is missing");
}

#[test]
fn what_can_be_understood_is_not_asked_for_again() {
    let check = |fields: Value, expected: RawAction| {
        assert_eq!(parse_action(&fields.to_string(), None, TeamPart::None), Ok(expected))
    };
    let params = json!({ "query": "x" });
    let call = RawAction::ToolCall { tool: "x".into(), params: params.clone() };
    check(json!({ "action": "tool_call", "tool": " x ", "tool_params": params.to_string() }), call);
    check(json!({ "action": "tool_call", "tool": "x" }), RawAction::ToolCall { tool: "x".into(), params: json!({}) });
    let kind = MessageType::Request;
    let sent = RawAction::SendMessage { to: "mitaka".into(), kind, payload: json!({ "message": "hello" }) };
    check(json!({ "action": "send_message", "to": "mitaka", "message_type": "request", "payload": "hello" }), sent);
    let done = RawAction::Done { response: "{\"share\":80}".into() };
    check(json!({ "action": "done", "response": { "share": 80 } }), done);
}

#[test]
fn long_and_nested_answers_end_at_once() {
    for piece in [
        "[",
        "{\"action\":",
        "{\"action\":\"idle\"} ",
        "x",
        "{\"a\":[",
        "```json\n{\"action\":\"idle\",\"n\":1}\n```\n",
    ] {
        let text = piece.repeat(ANSWER_BYTES / piece.len());
        let started = std::time::Instant::now();
        let _ = parse_action(&text, Some("{"), TeamPart::None);
        // What is not linear takes hours.
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{piece}");
    }
    let text = "x".repeat(1 << 20);
    let problem = "it is longer than 256 KiB: return exactly one action, as one JSON object and nothing else";
    assert_eq!(parse_action(&text, None, TeamPart::None).unwrap_err(), problem);
}

#[test]
fn a_final_answer_of_more_than_500_characters_is_told_so_and_then_cut() {
    assert_eq!(too_long(&"é".repeat(500)), None);
    let problem = too_long(&"é".repeat(501)).unwrap();
    assert!(problem.starts_with("the response of `done` has 501 characters and may have 500: save"), "{problem}");
    assert_eq!(cut_response(&"é".repeat(502)), format!("{}… (2 more characters)", "é".repeat(500)));
}

#[test]
fn one_tool_is_called_in_a_turn() {
    let call = |tool: &str, arguments: Value| Call { id: "1".into(), tool: tool.into(), arguments };
    let check = |calls: &[Call], expected: Result<RawAction, &str>| {
        assert_eq!(from_calls("", calls, TeamPart::None), expected.map_err(str::to_owned));
    };
    check(&[call("idle", json!(null))], Ok(RawAction::Idle));
    check(&[call("done", json!({ "response": "x" }))], Ok(RawAction::Done { response: "x".into() }));
    let params = json!({ "query": "x" });
    check(
        &[call("web.search", params.clone())],
        Ok(RawAction::ToolCall { tool: "web.search".into(), params: params.clone() }),
    );
    // The toolbox refuses a tool that was not offered.
    check(&[call("rm", json!({}))], Ok(RawAction::ToolCall { tool: "rm".into(), params: json!({}) }));
    check(&[call("idle", json!([]))], Err("its arguments are no JSON object: give the parameters by name"));
    check(
        &[call("idle", json!({})), call("idle", json!({}))],
        Err("it calls 2 tools, and none was run: call exactly one in a turn"),
    );
    check(&[], Err("it calls no tool: call exactly one; `done` ends your work"));
    let text = "{\"action\": \"idle\"}";
    assert_eq!(from_calls(text, &[], TeamPart::None), Ok(RawAction::Idle));
    let smuggled = [call("publish_data", json!({ "action": "done", "response": "x", "topic": "a", "data": "b" }))];
    check(&smuggled, Ok(RawAction::PublishData { topic: "a".into(), data: "b".into() }));
}

#[test]
fn only_what_an_agent_may_do_is_offered() {
    let tools = [tool("web.search"), tool("shell"), tool("idle")];
    let names =
        |options: &TurnOptions<'_>| super::list_tools(options).into_iter().map(|tool| tool.name).collect::<Vec<_>>();
    let options = TurnOptions {
        tools: &tools,
        receivers: &["mitaka"],
        help: true,
        part: TeamPart::None,
        spawns: &[],
        channels: &[],
    };
    let all = ["web.search", "shell", "publish_data", "send_message", "request_help", "done", "idle"];
    assert_eq!(names(&options), all);
    let nothing =
        TurnOptions { tools: &[], receivers: &[], help: false, part: TeamPart::None, spawns: &[], channels: &[] };
    assert_eq!(names(&nothing), ["publish_data", "done", "idle"]);
}

/// Every step that the schema allows is one that [`read`] takes.
#[test]
fn a_step_held_to_the_schema_is_an_action() {
    let mut tools = vec![tool("web.search")];
    tools.push(Tool {
        name: "any".into(),
        description: String::new(),
        parameters: json!({ "type": "object", "additionalProperties": true }),
    });
    let options = TurnOptions {
        tools: &tools,
        receivers: &["mitaka", "takao"],
        help: true,
        part: TeamPart::None,
        spawns: &[],
        channels: &[],
    };
    let schema = step_schema(&options);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let check = |step: Value, expected: Option<&str>| {
        let step = json!({ "step": step });
        assert_eq!(validator.is_valid(&step), expected.is_some(), "{step}");
        if let Some(label) = expected {
            let action = serde_json::to_value(parse_action(&step.to_string(), None, TeamPart::None).unwrap()).unwrap();
            let tool = action["tool"].as_str().map(|tool| format!(":{tool}")).unwrap_or_default();
            assert_eq!(format!("{}{tool}", action["action"].as_str().unwrap()), label);
        }
    };
    check(json!({ "action": "idle" }), Some("idle"));
    check(json!({ "action": "done", "response": "x" }), Some("done"));
    check(json!({ "action": "done" }), None);
    check(json!({ "action": "done", "response": "x".repeat(501) }), None);
    let params = json!({ "query": "x", "n": null });
    check(json!({ "action": "tool_call", "tool": "web.search", "tool_params": params }), Some("tool_call:web.search"));
    check(json!({ "action": "tool_call", "tool": "web.search", "tool_params": { "n": 1 } }), None);
    check(json!({ "action": "tool_call", "tool": "any", "tool_params": "{\"a\": 1}" }), Some("tool_call:any"));
    check(json!({ "action": "tool_call", "tool": "other", "tool_params": params }), None);
    let sent =
        |to: &str| json!({ "action": "send_message", "to": to, "message_type": "info", "payload": { "message": "x" } });
    check(sent("mitaka"), Some("send_message"));
    check(sent("absent"), None);
    check(json!({ "action": "request_help", "help_description": "x", "help_skills": ["any"] }), Some("request_help"));
    check(json!({ "action": "publish_data", "topic": "x", "data": "y" }), Some("publish_data"));
}

/// Grammars and strict modes take objects that are closed and whose fields are all required, and no alternatives at the
/// top.
#[test]
fn the_schema_of_a_step_is_one_that_strict_modes_take() {
    let odd = json!({ "type": "object", "properties": { "map": { "type": "object", "additionalProperties": { "type": "string" } } } });
    let mut tools: Vec<Tool> = (0..5).map(|number| tool(&format!("t{number}"))).collect();
    tools.push(Tool { name: "odd".into(), description: String::new(), parameters: odd });
    for count in [0, 6, 500] {
        tools.extend((tools.len()..count).map(|number| tool(&format!("t{number}"))));
        let options = TurnOptions {
            tools: &tools[..count],
            receivers: &["mitaka"],
            help: true,
            part: TeamPart::None,
            spawns: &[],
            channels: &[],
        };
        let schema = step_schema(&options);
        assert_eq!(schema["type"], "object");
        let mut waiting = vec![&schema];
        while let Some(part) = waiting.pop() {
            let Some(fields) = part.as_object() else { continue };
            if fields.get("type") == Some(&json!("object")) {
                assert_eq!(fields["additionalProperties"], json!(false));
                assert_eq!(
                    fields["required"].as_array().unwrap().len(),
                    fields["properties"].as_object().unwrap().len()
                );
            }
            if fields.get("type") == Some(&json!("string")) {
                // llama.cpp refuses a grammar with 2,000.
                let is_bound = fields.get("maxLength").and_then(Value::as_u64).is_some_and(|most| most < 2_000);
                assert!(is_bound || fields.contains_key("enum"), "{part}");
            }
            waiting
                .extend(fields.get("properties").and_then(Value::as_object).into_iter().flat_map(|all| all.values()));
            waiting.extend(fields.get("anyOf").and_then(Value::as_array).into_iter().flatten());
            waiting.extend(fields.get("items"));
        }
        assert!(schema.to_string().len() < 40_000, "{}", schema.to_string().len());
    }
}

#[test]
fn skills_are_tools_of_the_asker() {
    let tools = [tool("file_read"), tool("web.web_search"), tool("a.get"), tool("b.get")];
    let matched = |skill: &str| match_skills(&[skill.to_owned()], &tools);
    assert_eq!(matched("file_read"), Ok(vec!["file_read".to_owned()]));
    assert_eq!(matched("web_search"), Ok(vec!["web.web_search".to_owned()]), "seed 001 names it so");
    assert_eq!(
        matched("get").unwrap_err(),
        "`help_skills` has `get`, which several of your tools fit: `a.get`, `b.get`"
    );
    let wrong =
        "`help_skills` has `search`, which is none of your tools: `file_read`, `web.web_search`, `a.get`, `b.get`";
    assert_eq!(matched("search").unwrap_err(), wrong);
    let some = ["search".to_owned(), "file_read".to_owned()];
    assert_eq!(match_skills(&some, &tools), Ok(vec!["file_read".to_owned()]), "as far as the asker has it");
    assert_eq!(match_skills(&[], &[]), Ok(Vec::new()));
    let wrong = "`help_skills` names tools, and you have none to pass on: return an empty list";
    assert_eq!(match_skills(&["file_read".to_owned()], &[]).unwrap_err(), wrong);
}
