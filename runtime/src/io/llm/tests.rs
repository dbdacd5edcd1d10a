//! Every protocol against the scripted endpoint: what is sent, what comes back, and how each failure ends.

use std::sync::Mutex;
use std::time::Instant;

use serde_json::json;
use swarmc_endpoint::{Answer, Endpoint as Server, Request, Script, Usage as Tokens};
use swarmc_plan::{Ability, Connection, LlmKind, Provider, Rate};

use super::*;
use crate::types::chat::{Call, CallResult};
use crate::types::usage::Usage;

const KINDS: [LlmKind; 4] = [LlmKind::Openai, LlmKind::OpenaiResponses, LlmKind::Anthropic, LlmKind::Gemini];

/// Far more than a loopback connection needs, far less than a test may take.
const SOON: Patience = Patience { first: Duration::from_millis(1500), silence: Duration::from_millis(500) };

fn provider(kind: LlmKind, url: &str) -> Provider {
    let connection = Connection::Llm {
        kind,
        base_url: Some(url.to_owned()),
        model: Some("scripted".to_owned()),
        auth: Some("KEY".to_owned()),
        tools: None,
    };
    Provider { name: "p".to_owned(), connection, provides: vec![Ability::Schema], ..Provider::default() }
}

fn models(provider: Provider) -> Models {
    let environment = [(OsString::from("KEY"), OsString::from("sk-secret-4711"))].into_iter().collect();
    Models::new(&Plan { providers: vec![provider], ..Plan::default() }, &environment).with_patience(SOON)
}

fn question(text: &str) -> Question {
    Question { messages: vec![Message::User(text.to_owned())], ..Question::default() }
}

/// Asks once, with the pieces that were heard and what the endpoint saw.
async fn asked(
    kind: LlmKind,
    answer: Answer,
    question: &Question,
) -> (Result<Reply, Fault>, Vec<String>, Vec<Request>) {
    let server = Server::start(Script::new().otherwise(answer));
    let heard = Mutex::new(Vec::new());
    let hear = |text: &str| heard.lock().unwrap().push(text.to_owned());
    let reply = models(provider(kind, &server.url())).ask("p", question, &hear).await;
    (reply, heard.into_inner().unwrap(), server.prompts())
}

async fn fault(kind: LlmKind, answer: Answer) -> Fault {
    let started = Instant::now();
    let (reply, _, _) = asked(kind, answer, &question("x")).await;
    assert!(started.elapsed() < Duration::from_secs(20), "{kind:?} took {:?}", started.elapsed());
    let fault = reply.expect_err("it cannot have answered");
    assert!(!fault.message.contains("sk-secret-4711") && !fault.message.contains('\n'), "{}", fault.message);
    fault
}

#[tokio::test]
async fn each_protocol_streams_a_text_with_its_usage() {
    let text = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. ".repeat(3);
    for kind in KINDS {
        let usage = Tokens { input: 100, cached: 30, written: 20, output: 7 };
        let question = Question {
            system: "You are brief.".to_owned(),
            temperature: Some(0.25),
            max_output: Some(99),
            ..question("Say it.")
        };
        let (reply, heard, requests) = asked(kind, Answer::text(text.as_str()).usage(usage), &question).await;
        let reply = reply.unwrap_or_else(|fault| panic!("{kind:?}: {fault:?}"));
        assert_eq!(reply.text, text, "{kind:?}");
        assert!(heard.len() > 3 && heard.concat() == text, "{kind:?}: {heard:?}");
        assert_eq!((reply.calls.len(), reply.cut, reply.model.as_deref()), (0, false, Some("scripted")), "{kind:?}");
        let cache_write = if kind == LlmKind::Anthropic { 20 } else { 0 };
        assert_eq!(
            reply.usage,
            Some(Usage { input: 100, output: 7, cache_read: 30, cache_write, cost: None, at_least: false }),
            "{kind:?}"
        );
        let request = &requests[0];
        assert_eq!((request.system.as_str(), request.user.as_slice()), ("You are brief.", &["Say it.".to_owned()][..]));
        assert!(request.streams() && request.model() == "scripted", "{kind:?}");
        let (limit, temperature) = match kind {
            LlmKind::Openai | LlmKind::Anthropic => (&request.body["max_tokens"], &request.body["temperature"]),
            LlmKind::OpenaiResponses => (&request.body["max_output_tokens"], &request.body["temperature"]),
            LlmKind::Gemini => {
                let config = &request.body["generationConfig"];
                (&config["maxOutputTokens"], &config["temperature"])
            }
        };
        assert_eq!((limit, temperature), (&json!(99), &json!(0.25)), "{kind:?}: {}", request.body);
    }
}

#[tokio::test]
async fn a_key_is_sent_in_the_header_of_its_protocol_alone() {
    for kind in KINDS {
        let (reply, _, requests) = asked(kind, Answer::text("ok"), &question("x")).await;
        reply.unwrap();
        let with_key: Vec<&String> = requests[0]
            .headers
            .iter()
            .filter(|(_, value)| value.contains("sk-secret-4711"))
            .map(|(name, _)| name)
            .collect();
        let expected = match kind {
            LlmKind::Openai | LlmKind::OpenaiResponses => "authorization",
            LlmKind::Anthropic => "x-api-key",
            LlmKind::Gemini => "x-goog-api-key",
        };
        assert_eq!(with_key, [expected], "{kind:?}");
        assert!(!requests[0].body.to_string().contains("4711") && !requests[0].path.contains("4711"));
    }
}

#[tokio::test]
async fn without_a_key_none_is_sent_and_a_missing_one_is_told() {
    for kind in KINDS {
        let server = Server::start(Script::new().otherwise(Answer::text("ok")));
        let mut open = provider(kind, &server.url());
        let Connection::Llm { auth, .. } = &mut open.connection else { panic!("it is a model") };
        *auth = None;
        models(open).ask("p", &question("x"), &|_| {}).await.unwrap();
        let headers = &server.prompts()[0].headers;
        for name in ["authorization", "x-api-key", "x-goog-api-key"] {
            assert!(!headers.contains_key(name), "{kind:?}: {name}");
        }
        let plan = Plan { providers: vec![provider(kind, &server.url())], ..Plan::default() };
        let fault = Models::new(&plan, &BTreeMap::new()).ask("p", &question("x"), &|_| {}).await.unwrap_err();
        assert_eq!((fault.message.as_str(), fault.transient), ("the secret variable `KEY` is not set", false));
        assert_eq!(server.prompts().len(), 1);
    }
}

#[tokio::test]
async fn each_protocol_calls_tools_and_takes_their_results() {
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    let tool = |name: &str| Tool {
        name: name.to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: parameters.clone(),
    };
    for kind in KINDS {
        let mut question = Question { tools: vec![tool("files.read"), tool("list")], ..question("Read it.") };
        let arguments = json!({ "path": "a \"b\".txt" });
        let answer = Answer::call("files_read", arguments.clone()).and_call("list", json!({}));
        let (reply, _, requests) = asked(kind, answer, &question).await;
        let reply = reply.unwrap_or_else(|fault| panic!("{kind:?}: {fault:?}"));
        assert_eq!(requests[0].tools, ["files_read", "list"], "{kind:?}");
        let calls: Vec<(&str, &Value)> = reply.calls.iter().map(|call| (call.tool.as_str(), &call.arguments)).collect();
        assert_eq!(calls, [("files.read", &arguments), ("list", &json!({}))], "{kind:?}");
        assert!(reply.text.is_empty() && reply.calls.iter().all(|call| !call.id.is_empty()), "{kind:?}");
        let result = |call: &Call, text: &str, failed| CallResult {
            id: call.id.clone(),
            tool: call.tool.clone(),
            text: text.to_owned(),
            failed,
        };
        let results =
            vec![result(&reply.calls[0], "the contents", false), result(&reply.calls[1], "no such folder", true)];
        question.messages.push(Message::Assistant { text: reply.text, calls: reply.calls });
        question.messages.push(Message::Results(results));
        let (reply, _, requests) = asked(kind, Answer::text("Done."), &question).await;
        assert_eq!(reply.unwrap().text, "Done.", "{kind:?}");
        let told = requests[0].results.join("|");
        assert!(told.contains("the contents") && told.contains("error: no such folder"), "{kind:?}: {told}");
        assert!(requests[0].body.to_string().contains("files_read"), "{kind:?}: the call is told again");
    }
}

#[tokio::test]
async fn a_schema_goes_out_as_the_protocol_has_it_or_not_at_all() {
    let schema = json!({
        "type": "object",
        "properties": { "b": { "type": "string", "enum": ["x", "y"] }, "a": { "type": "integer" } },
        "required": ["b", "a"],
        "additionalProperties": false,
    });
    for kind in KINDS {
        let question = Question { schema: Some(schema.clone()), prefill: Some("{".to_owned()), ..question("x") };
        let (reply, _, requests) = asked(kind, Answer::text("{}"), &question).await;
        assert_eq!(reply.unwrap().text, "{}", "{kind:?}: nothing stands before an answer that a schema holds");
        let body = &requests[0].body;
        let sent = match kind {
            LlmKind::Openai => &body["response_format"]["json_schema"]["schema"],
            LlmKind::OpenaiResponses => &body["text"]["format"]["schema"],
            LlmKind::Anthropic => &body["output_config"]["format"]["schema"],
            LlmKind::Gemini => &body["generationConfig"]["responseJsonSchema"],
        };
        assert_eq!(sent, &schema, "{kind:?}: {body}");
        let server = Server::start(Script::new().otherwise(Answer::text("{}")));
        let plain = Provider { provides: Vec::new(), ..provider(kind, &server.url()) };
        models(plain).ask("p", &question, &|_| {}).await.unwrap();
        assert!(!server.prompts()[0].body.to_string().contains("additionalProperties"), "{kind:?}");
    }
}

#[tokio::test]
async fn only_anthropic_is_told_how_the_answer_begins() {
    for kind in KINDS {
        let question = Question { prefill: Some("{".to_owned()), ..question("x") };
        let (reply, heard, requests) = asked(kind, Answer::text("\"a\":1}"), &question).await;
        let body = &requests[0].body;
        let told = body.to_string().contains(r#""{""#);
        match kind {
            LlmKind::Anthropic => {
                assert_eq!(reply.unwrap().text, r#"{"a":1}"#);
                assert_eq!(heard.concat(), r#"{"a":1}"#);
                assert_eq!(body["messages"][1], json!({ "role": "assistant", "content": "{" }));
            }
            _ => assert_eq!((reply.unwrap().text.as_str(), told), ("\"a\":1}", false), "{kind:?}"),
        }
    }
}

#[tokio::test]
async fn an_answer_at_its_limit_says_so() {
    for kind in KINDS {
        let (reply, _, _) = asked(kind, Answer::text("half an ans").limited(), &question("x")).await;
        let reply = reply.unwrap_or_else(|fault| panic!("{kind:?}: {fault:?}"));
        assert_eq!((reply.text.as_str(), reply.cut), ("half an ans", true), "{kind:?}");
    }
}

#[tokio::test]
async fn the_name_of_a_model_stays_what_it_is() {
    for kind in [LlmKind::Openai, LlmKind::OpenaiResponses, LlmKind::Anthropic] {
        for name in ["qwen-max", "org::model-high", "claude-x-low"] {
            let question = Question { model: Some(name.to_owned()), ..question("x") };
            let (reply, _, requests) = asked(kind, Answer::text("ok"), &question).await;
            reply.unwrap();
            assert_eq!(requests[0].body["model"], name, "{kind:?}");
            assert!(
                kind == LlmKind::Anthropic || !requests[0].body.to_string().contains("effort"),
                "{}",
                requests[0].body
            );
        }
    }
}

#[tokio::test]
async fn a_refusal_has_its_class_and_says_when_to_ask_again() {
    for kind in KINDS {
        for (code, transient) in [
            (400, false),
            (401, false),
            (403, false),
            (404, false),
            (408, true),
            (429, true),
            (500, true),
            (503, true),
            (529, true),
        ] {
            let fault = fault(kind, Answer::status(code, "told to")).await;
            assert_eq!((fault.transient, fault.retry_after), (transient, None), "{kind:?} {code}: {fault:?}");
            assert!(
                fault.message.contains(&format!("status {code}")) && fault.message.ends_with("told to"),
                "{fault:?}"
            );
        }
        let seconds = fault(kind, Answer::status(429, "slow down").header("Retry-After", "7")).await;
        assert_eq!(seconds.retry_after, Some(Duration::from_secs(7)), "{kind:?}");
        let date =
            fault(kind, Answer::status(503, "later").header("Retry-After", "Fri, 31 Dec 2100 23:59:59 GMT")).await;
        assert_eq!(date.retry_after, Some(crate::types::retry::LONGEST_WAIT), "{kind:?}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_passes_and_so_does_silence() {
    let long = "a text of some length that comes in many pieces ".repeat(8);
    for kind in KINDS {
        let cut = fault(kind, Answer::text(long.as_str()).cut()).await;
        assert!(cut.transient && cut.message.contains("the connection closed before"), "{kind:?}: {cut:?}");
        let stalled = fault(kind, Answer::text(long.as_str()).stalled()).await;
        assert!(stalled.transient && stalled.message.contains("500ms of silence"), "{kind:?}: {stalled:?}");
        let hanging = fault(kind, Answer::hang()).await;
        assert!(hanging.transient && hanging.message.contains("timed out after 1.5s"), "{kind:?}: {hanging:?}");
        let empty = fault(kind, Answer::raw("")).await;
        assert!(empty.transient, "{kind:?}: {empty:?}");
    }
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let gone = models(provider(LlmKind::Openai, &format!("http://127.0.0.1:{port}")));
    let fault = gone.ask("p", &question("x"), &|_| {}).await.unwrap_err();
    assert!(fault.transient && fault.message.contains("connection refused"), "{fault:?}");
}

#[tokio::test]
async fn nonsense_ends_the_request_with_a_class() {
    for kind in KINDS {
        let fault = fault(kind, Answer::garbage()).await;
        // Two kinds skip events that they do not know, and then the stream is over.
        let skips = matches!(kind, LlmKind::OpenaiResponses | LlmKind::Anthropic);
        assert_eq!(fault.transient, skips, "{kind:?}: {fault:?}");
        for body in [
            "<html>\n\nnot a model\n\n",
            "data: [1,2]\n\ndata: null\n\n",
            "event: message_start\ndata: {}\n\nevent: content_block_delta\ndata: {\"delta\":7}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":4294967295,\"function\":{\"name\":\"x\"}}]}}]}\n\n",
            "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":2147483647,\"cache_read_input_tokens\":2147483647}}}\n\n",
            "data: {\"usageMetadata\":{\"promptTokenCount\":2147483647,\"candidatesTokenCount\":2147483647,\"thoughtsTokenCount\":2147483647}}\n\n",
        ] {
            self::fault(kind, Answer::raw(body)).await;
        }
        let deep = format!("data: {}\n\n", "[".repeat(100_000));
        self::fault(kind, Answer::raw(deep)).await;
    }
}

#[tokio::test]
async fn an_error_in_the_stream_has_a_class() {
    let check = async |kind, body: &str, transient: bool, part: &str| {
        let fault = fault(kind, Answer::raw(body)).await;
        assert!(fault.transient == transient && fault.message.contains(part), "{kind:?}: {fault:?}");
    };
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    check(LlmKind::Anthropic, overloaded, true, "Overloaded").await;
    check(
        LlmKind::Openai,
        "data: {\"error\":{\"message\":\"it broke\",\"type\":\"server_error\"}}\n\n",
        true,
        "it broke",
    )
    .await;
    check(LlmKind::Openai, "data: {\"error\":{\"message\":\"bad model\",\"code\":400}}\n\n", false, "bad model").await;
}

#[tokio::test]
async fn an_answer_of_many_mebibytes_ends() {
    // One delta of a mebibyte, again and again.
    let piece = "x".repeat(1 << 20);
    let frames = [
        (LlmKind::Openai, format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": piece } }] }))),
        (
            LlmKind::Gemini,
            format!("data: {}\n\n", json!({ "candidates": [{ "content": { "parts": [{ "text": piece }] } }] })),
        ),
        (
            LlmKind::OpenaiResponses,
            format!("data: {}\n\n", json!({ "type": "response.output_text.delta", "delta": piece })),
        ),
    ];
    for (kind, frame) in frames {
        let server = Server::start(Script::new().otherwise(Answer::flood(frame)));
        let patient = models(provider(kind, &server.url())).with_patience(Patience::default());
        let fault = patient.ask("p", &question("x"), &|_| {}).await.unwrap_err();
        assert_eq!((fault.message.as_str(), fault.transient), ("the answer is longer than 16 MiB", false), "{kind:?}");
    }
}

#[tokio::test]
async fn bytes_without_end_and_without_sense_end() {
    for kind in KINDS {
        for piece in [": still there\n".repeat(100), "x".repeat(1000)] {
            let flooded = fault(kind, Answer::flood(piece)).await;
            assert!(flooded.transient && flooded.message.contains("timed out after 2s"), "{kind:?}: {flooded:?}");
        }
    }
}

#[tokio::test]
async fn a_refusal_without_end_is_told_by_its_status() {
    for kind in KINDS {
        for (code, transient) in [(401, false), (429, true), (500, true)] {
            let server = Server::start(Script::new().otherwise(Answer::refuse_for_ever(code, "x".repeat(1 << 16))));
            let patient = models(provider(kind, &server.url())).with_patience(Patience::default());
            let started = Instant::now();
            let fault = patient.ask("p", &question("x"), &|_| {}).await.unwrap_err();
            assert!(started.elapsed() < Duration::from_secs(30), "{kind:?} {code}: {:?}", started.elapsed());
            let told = fault.message.starts_with(&format!("the model's service answered with status {code} "));
            assert!(told && fault.message.len() < 100 && fault.transient == transient, "{kind:?}: {fault:?}");
        }
    }
}

#[tokio::test]
async fn bytes_that_never_become_an_event_end_before_their_time() {
    let server = Server::start(Script::new().otherwise(Answer::flood("x".repeat(1 << 16))));
    let patient = models(provider(LlmKind::Openai, &server.url())).with_patience(Patience::default());
    let fault = patient.ask("p", &question("x"), &|_| {}).await.unwrap_err();
    assert_eq!((fault.message.as_str(), fault.transient), ("the answer is longer than 16 MiB", false));
}

#[tokio::test]
async fn a_redirect_is_followed_at_home_and_nowhere_else() {
    let elsewhere = Server::start(Script::new().otherwise(Answer::text("caught")));
    for (code, target) in [(307, elsewhere.url()), (308, elsewhere.url()), (302, elsewhere.url())] {
        let answer = Answer::status(code, "moved").header("Location", format!("{target}/v1/chat/completions"));
        let fault = fault(LlmKind::Openai, answer).await;
        assert!(!fault.transient && fault.message.contains("is not followed"), "{fault:?}");
    }
    assert_eq!(elsewhere.requests().len(), 0);
    let answers =
        [Answer::status(307, "moved").header("Location", "/v1/chat/completions?again=1"), Answer::text("here")];
    let server = Server::start(Script::new().otherwise(answers));
    let reply = models(provider(LlmKind::Openai, &server.url())).ask("p", &question("x"), &|_| {}).await.unwrap();
    assert_eq!((reply.text.as_str(), server.prompts()[1].user.len()), ("here", 1));
}

#[tokio::test]
async fn a_caller_that_no_longer_waits_ends_the_request() {
    let server = Server::start(Script::new().otherwise(Answer::hang()));
    let models = models(provider(LlmKind::Openai, &server.url()));
    let question = question("x");
    let asked = models.ask("p", &question, &|_| {});
    let given_up = tokio::time::timeout(Duration::from_millis(200), asked).await;
    assert!(given_up.is_err());
    assert_eq!(server.prompts().len(), 1);
}

#[tokio::test]
async fn the_limits_of_a_provider_hold_over_all_who_ask() {
    let server = Server::start(Script::new().otherwise(Answer::text("ok")));
    let rate = Some(Rate { requests: Some(600), tokens: None });
    let models = models(Provider { rate, ..provider(LlmKind::Openai, &server.url()) });
    let question = question("x");
    let started = Instant::now();
    for _ in 0..65 {
        models.ask("p", &question, &|_| {}).await.unwrap();
    }
    // 60 at once, the others a tenth of a second apart.
    assert!(started.elapsed() >= Duration::from_millis(400), "{:?}", started.elapsed());
}
