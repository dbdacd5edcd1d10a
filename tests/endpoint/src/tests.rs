//! The endpoint as a client sees it: plain HTTP/1.0 over a socket, so that nothing is hidden by a library.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Answer, Endpoint, Protocol, Script, Usage};

/// Long enough for a busy machine; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(endpoint: &Endpoint, path: &str, body: &Value) -> TcpStream {
    let address = endpoint.url().replace("http://", "");
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = body.to_string();
    let head = format!("POST {path}?beta=1 HTTP/1.0\r\nX-Who: tests\r\nContent-Length: {}\r\n\r\n", body.len());
    socket.write_all((head + &body).as_bytes()).unwrap();
    socket
}

/// Sends a request; gives the status and the body.
fn post(endpoint: &Endpoint, path: &str, body: &Value) -> (u16, String) {
    let mut answer = String::new();
    connect(endpoint, path, body).read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

fn whole(endpoint: &Endpoint, path: &str, body: &Value) -> Value {
    let (status, body) = post(endpoint, path, body);
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// The data of the events of a streamed answer; `[DONE]` is null.
fn events(endpoint: &Endpoint, path: &str, mut body: Value) -> Vec<Value> {
    body["stream"] = json!(true);
    let (status, answer) = post(endpoint, path, &body);
    assert_eq!(status, 200, "{answer}");
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_default()).collect()
}

/// The texts at `pointer` of every event that has one there, joined.
fn joined(events: &[Value], pointer: &str) -> String {
    events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
}

/// A body that any of the protocols understands.
fn ask(text: &str) -> Value {
    json!({ "model": "m", "messages": [{ "role": "user", "content": text }], "input": text })
}

const LONG: &str = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.";
const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/responses", "/v1/messages"];

#[test]
fn each_protocol_gives_the_whole_text_and_its_usage() {
    let usage = Usage { input: 100, cached: 30, written: 0, output: 7 };
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::text(LONG).usage(usage)));
    let chat = whole(&endpoint, PATHS[0], &ask("x"));
    assert_eq!(chat["choices"][0]["message"]["content"], LONG);
    assert_eq!(chat["choices"][0]["finish_reason"], "stop");
    assert_eq!(chat["usage"]["prompt_tokens"], 100);
    assert_eq!(chat["usage"]["prompt_tokens_details"]["cached_tokens"], 30);
    let responses = whole(&endpoint, PATHS[1], &ask("x"));
    assert_eq!(responses["output"][0]["content"][0]["text"], LONG);
    assert_eq!(responses["usage"]["input_tokens"], 100);
    assert_eq!(responses["usage"]["output_tokens"], 7);
    let messages = whole(&endpoint, PATHS[2], &ask("x"));
    assert_eq!(messages["content"][0]["text"], LONG);
    assert_eq!(messages["stop_reason"], "end_turn");
    assert_eq!(messages["usage"]["input_tokens"], 70, "this protocol counts cached tokens apart");
    assert_eq!(messages["usage"]["cache_read_input_tokens"], 30);
}

#[test]
fn each_protocol_streams_the_text_in_pieces() {
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::text(LONG)));
    let chat = events(&endpoint, PATHS[0], ask("x"));
    assert_eq!(joined(&chat, "/choices/0/delta/content"), LONG);
    assert_eq!(chat.last(), Some(&Value::Null));
    assert!(chat.iter().all(|event| event["usage"].is_null()), "usage is only for those who ask for it");
    let mut asked = ask("x");
    asked["stream_options"] = json!({ "include_usage": true });
    let chat = events(&endpoint, PATHS[0], asked);
    assert!(chat.iter().any(|event| event["usage"]["completion_tokens"].is_u64()));
    let responses = events(&endpoint, PATHS[1], ask("x"));
    assert_eq!(joined(&responses, "/delta"), LONG);
    let last = responses.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], LONG);
    let messages = events(&endpoint, PATHS[2], ask("x"));
    assert_eq!(joined(&messages, "/delta/text"), LONG);
    assert_eq!(messages.last().unwrap()["type"], "message_stop");
}

#[test]
fn each_protocol_calls_tools_whole_and_streamed() {
    let arguments = json!({ "path": "a b.txt" });
    let call = Answer::call("read", arguments.clone()).and_call("list", json!({}));
    let endpoint = Endpoint::start(Script::new().otherwise(call));
    let chat = whole(&endpoint, PATHS[0], &ask("x"));
    let calls = &chat["choices"][0]["message"]["tool_calls"];
    assert_eq!(calls[0]["function"]["name"], "read");
    assert_eq!(calls[0]["function"]["arguments"], arguments.to_string());
    assert_eq!(calls[1]["function"]["name"], "list");
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    assert_eq!(chat["choices"][0]["finish_reason"], "tool_calls");
    let chat = events(&endpoint, PATHS[0], ask("x"));
    let pieces = joined(&chat, "/choices/0/delta/tool_calls/0/function/arguments");
    assert_eq!(pieces, format!("{arguments}{{}}"));
    let responses = events(&endpoint, PATHS[1], ask("x"));
    let output = &responses.last().unwrap()["response"]["output"];
    assert_eq!(output.as_array().unwrap().len(), 2, "no empty message beside the calls");
    assert_eq!(output[0]["type"], "function_call");
    assert_eq!(output[0]["arguments"], arguments.to_string());
    let messages = events(&endpoint, PATHS[2], ask("x"));
    assert_eq!(joined(&messages, "/content_block/name"), "readlist");
    assert_eq!(joined(&messages, "/delta/partial_json"), format!("{arguments}{{}}"));
    assert_eq!(joined(&messages, "/delta/stop_reason"), "tool_use");
    assert_eq!(whole(&endpoint, PATHS[2], &ask("x"))["content"][0]["input"], arguments);
}

#[test]
fn responses_calls_take_the_form_in_which_the_tool_was_offered() {
    let call = Answer::call("patch", json!("*** free text")).and_call("send", json!({}));
    let endpoint = Endpoint::start(Script::new().otherwise(call));
    let mut asked = ask("x");
    asked["tools"] = json!([
        { "type": "custom", "name": "patch" },
        { "type": "namespace", "name": "mcp__swarm", "tools": [{ "type": "function", "name": "send" }] },
    ]);
    let output = &whole(&endpoint, PATHS[1], &asked)["output"];
    assert_eq!(output[0]["type"], "custom_tool_call");
    assert_eq!(output[0]["input"], "*** free text");
    assert_eq!(output[1]["type"], "function_call");
    assert_eq!(output[1]["namespace"], "mcp__swarm");
    assert_eq!(endpoint.prompts()[0].tools, ["patch", "send"]);
}

#[test]
fn rules_answer_in_order_and_each_gives_its_answers_one_after_the_other() {
    let script = Script::new()
        .on_system("make a title", Answer::text("title"))
        .on("plan", [Answer::text("first"), Answer::text("second")])
        .when(|request| request.model() == "other", Answer::text("other model"));
    let endpoint = Endpoint::start(script);
    let said = |body: &Value| whole(&endpoint, PATHS[0], body)["choices"][0]["message"]["content"].clone();
    let answers = [said(&ask("plan")), said(&ask("the plan")), said(&ask("plan"))];
    assert_eq!(answers, ["first", "second", "second"]);
    let mut other = ask("nothing");
    other["model"] = json!("other");
    assert_eq!(said(&other), "other model");
    let mut title = ask("plan");
    title["messages"].as_array_mut().unwrap().push(json!({ "role": "system", "content": "You make a title." }));
    assert_eq!(said(&title), "title");
    let (status, body) = post(&endpoint, PATHS[0], &ask("unforeseen"));
    assert_eq!(status, 400);
    assert!(body.contains("no rule of the script answers: unforeseen"), "{body}");
}

#[test]
fn a_request_is_kept_with_its_texts_whatever_its_protocol() {
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::text("ok")));
    let chat = json!({ "model": "m", "tools": [{ "type": "function", "function": { "name": "read" } }], "messages": [
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": [{ "type": "text", "text": "one" }, { "type": "text", "text": "two" }] },
        { "role": "assistant", "content": "not the user's" },
        { "role": "tool", "content": "result" },
    ] });
    let responses = json!({ "model": "m", "tools": [{ "type": "function", "name": "read" }], "instructions": "be",
        "input": [
            { "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "brief" }] },
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "one\ntwo" }] },
            { "type": "function_call_output", "output": "result" },
        ] });
    let result = json!({ "type": "tool_result", "content": [{ "type": "text", "text": "result" }] });
    let messages = json!({ "model": "m", "tools": [{ "name": "read" }],
        "system": [{ "type": "text", "text": "be brief" }],
        "messages": [{ "role": "user", "content": "one\ntwo" }, { "role": "user", "content": [result] }] });
    for (path, body) in PATHS.iter().zip([chat, responses, messages]) {
        whole(&endpoint, path, &body);
    }
    let requests = endpoint.prompts();
    let protocols: Vec<_> = requests.iter().map(|request| request.protocol.unwrap()).collect();
    assert_eq!(protocols, [Protocol::Chat, Protocol::Responses, Protocol::Messages]);
    for request in &requests {
        assert_eq!(request.system.replace('\n', " "), "be brief");
        assert_eq!(request.user, ["one\ntwo"]);
        assert_eq!(request.results, ["result"]);
        assert_eq!(request.tools, ["read"]);
        assert_eq!(request.headers["x-who"], "tests");
        assert!(!request.streams());
    }
}

#[test]
fn refusals_have_the_form_of_their_protocol() {
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::status(429, "slow down")));
    for path in PATHS {
        let (status, body) = post(&endpoint, path, &ask("x"));
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status, 429);
        assert_eq!(body["error"]["message"], "slow down");
        assert_eq!(body["type"] == "error", path == "/v1/messages");
    }
}

#[test]
fn a_cut_answer_breaks_off_and_garbage_is_no_json() {
    let script = Script::new().on("cut", Answer::text(LONG).cut()).on("garbage", Answer::garbage());
    let endpoint = Endpoint::start(script);
    for path in PATHS {
        let mut asked = ask("cut");
        asked["stream"] = json!(true);
        let mut answer = Vec::new();
        // The connection may end with an error; what came before it is a part of the answer.
        let _ = connect(&endpoint, path, &asked).read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains("data: "), "{answer}");
        for end in ["[DONE]", "response.completed", "message_stop"] {
            assert!(!answer.contains(end), "{answer}");
        }
        let (status, body) = post(&endpoint, path, &ask("garbage"));
        assert_eq!(status, 200);
        assert!(serde_json::from_str::<Value>(&body).is_err());
    }
}

#[test]
fn a_silent_endpoint_records_the_request_and_lets_go_when_it_is_dropped() {
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::hang()));
    let asked = json!({ "messages": [{ "role": "user", "content": "anybody there?" }] });
    let mut socket = connect(&endpoint, PATHS[0], &asked);
    assert!(endpoint.wait_for(1, PATIENCE));
    assert!(!endpoint.wait_for(2, Duration::ZERO));
    assert_eq!(endpoint.prompts()[0].user, ["anybody there?"]);
    drop(endpoint);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    assert!(answer.is_empty());
}

#[test]
fn what_asks_no_model_is_answered_and_is_no_prompt() {
    let endpoint = Endpoint::start(Script::new());
    assert!(whole(&endpoint, "/v1/messages/count_tokens", &ask("12345678"))["input_tokens"].is_u64());
    assert_eq!(post(&endpoint, "/v1/nothing", &ask("x")).0, 404);
    assert_eq!(endpoint.requests().len(), 2);
    assert!(endpoint.prompts().is_empty());
}
