//! The streams of real programs, recorded against a scripted endpoint: a turn with a tool, and a turn that was refused.

use proptest::prelude::*;

use super::*;

const FORMATS: [Format; 9] = [
    Format::Text,
    Format::Json,
    Format::ClaudeStreamJson,
    Format::CodexJsonl,
    Format::OpencodeJson,
    Format::GeminiStreamJson,
    Format::PiJson,
    Format::CopilotJsonl,
    Format::AiderText,
];

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("samples/", $name, ".jsonl"))
    };
}

/// What a stream tells, one item a line, and what it comes to.
fn decode<'a>(decoder: Decoder, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, Report) {
    let mut decoder = decoder;
    let mut items = Vec::new();
    let mut emit = |item: Item<'_>| items.push(format!("{item:?}"));
    for chunk in chunks {
        decoder.feed(chunk, &mut emit);
    }
    let report = decoder.finish(&mut emit);
    (items, report)
}

fn read(format: Format, text: &str) -> (Vec<String>, Report) {
    decode(Decoder::new(format), [text.as_bytes()])
}

/// A turn that used `tool` and answered `answer`.
#[track_caller]
fn check(format: Format, sample: &str, tool: &str, answer: &str, usage: Usage) {
    let (items, report) = read(format, sample);
    assert_eq!(report.text.as_deref(), Some(answer));
    assert_eq!(report.usage, Some(usage));
    assert_eq!(report.failure, None);
    let session = report.session.expect("every program names its session");
    assert_eq!(items.iter().filter(|item| **item == format!("Session({session:?})")).count(), 1);
    let uses: Vec<&String> = items.iter().filter(|item| item.starts_with("Tool(")).collect();
    assert_eq!(uses.len(), 1, "{items:?}");
    assert!(uses[0].contains(&format!("name: {tool:?}")) && uses[0].contains("echo hi there"), "{uses:?}");
    let came: Vec<&String> = items.iter().filter(|item| item.starts_with("Came(")).collect();
    assert_eq!(came.len(), 1, "{items:?}");
    assert!(came[0].contains("failed: false, text: \"hi there"), "{came:?}");
    let id = |item: &str| item.split("id: ").nth(1).and_then(|rest| rest.split(',').next()).map(str::to_owned);
    assert!(id(uses[0]) == id(came[0]) && id(came[0]).is_some_and(|id| id.len() > 2), "{uses:?} {came:?}");
    assert!(items.last().is_some_and(|last| last == "Reported"), "{items:?}");
}

/// A turn that failed with `message`, whatever the exit code was.
#[track_caller]
fn check_refused(format: Format, sample: &str, message: &str) {
    let (items, report) = read(format, sample);
    assert_eq!(report.failure.as_deref(), Some(message));
    assert_eq!(report.usage, None, "no tokens were reported, which is not zero tokens");
    assert!(items.contains(&format!("Failed({message:?})")), "{items:?}");
    assert_eq!(items.iter().filter(|item| *item == "Reported").count(), 1, "{items:?}");
}

fn tokens(input: u64, output: u64, cost: Option<f64>) -> Usage {
    Usage { input, output, cost, ..Usage::default() }
}

#[test]
fn claude_code() {
    let usage = tokens(6156, 8, Some(0.03098));
    check(Format::ClaudeStreamJson, sample!("claude"), "Bash", "You said 349 bytes; all is well.", usage);
    // The subtype of its result is `success`.
    check_refused(Format::ClaudeStreamJson, sample!("claude-refused"), "API Error: 400 told to fail");
}

#[test]
fn qwen_code() {
    let usage = tokens(19082, 7, None);
    check(Format::ClaudeStreamJson, sample!("qwen"), "run_shell_command", "You said 79 bytes; all is well.", usage);
    // Its result says that it is no error, and it exits with 0.
    check_refused(Format::ClaudeStreamJson, sample!("qwen-refused"), "[API Error: 400 told to fail]");
}

#[test]
fn codex() {
    let usage = tokens(10342, 7, None);
    check(Format::CodexJsonl, sample!("codex"), "command_execution", "You said 46 bytes; all is well.", usage);
    let message = "unexpected status 401 Unauthorized: told to fail, url: http://127.0.0.1:8000/v1/responses";
    check_refused(Format::CodexJsonl, sample!("codex-refused"), message);
}

#[test]
fn opencode() {
    let usage = tokens(4805, 7, Some(0.002401 + 0.002418));
    check(Format::OpencodeJson, sample!("opencode"), "bash", "You said 60 bytes; all is well.", usage);
    check_refused(Format::OpencodeJson, sample!("opencode-refused"), "told to fail");
}

#[test]
fn copilot() {
    let (items, report) = read(Format::CopilotJsonl, sample!("copilot"));
    assert_eq!(report.text.as_deref(), Some("All is well.\nSecond line."));
    assert_eq!((report.failure, report.usage), (None, None), "it tells of no tokens, which is not zero tokens");
    assert_eq!(report.session.as_deref(), Some("dc3edb49-6d2a-4093-9199-4fb7fb84646f"));
    assert!(items.iter().any(|item| item.starts_with("Tool(") && item.contains("name: \"bash\"")), "{items:?}");
    assert!(items.iter().any(|item| item.starts_with("Came(") && item.contains("failed: false, text: \"hello")));
    let (items, report) = read(Format::CopilotJsonl, sample!("copilot-denied"));
    assert_eq!(report.failure, None);
    assert!(items.contains(&"Denied(\"c1\", \"bash\")".to_owned()), "{items:?}");
    let message = "Authentication failed with provider at http://127.0.0.1:18765/v1 (HTTP 401).\n  Check your \
                   COPILOT_PROVIDER_API_KEY, COPILOT_PROVIDER_API_KEY_COMMAND, or COPILOT_PROVIDER_BEARER_TOKEN.";
    check_refused(Format::CopilotJsonl, sample!("copilot-refused"), message);
}

#[test]
fn aider() {
    let (items, report) = read(Format::AiderText, include_str!("samples/aider.txt"));
    assert_eq!(report.text.as_deref(), Some("I make it.\n\nnote.txt\n```\nhello\n```"));
    assert_eq!((report.failure, report.usage, report.session), (None, Some(tokens(593, 13, None)), None));
    assert!(items.contains(&"Said(\"Applied edit to note.txt\")".to_owned()), "{items:?}");
    assert!(
        items.last().is_some_and(|last| last == "Reported"),
        "what aider does with an answer comes before: {items:?}"
    );
    let refused = include_str!("samples/aider-refused.txt");
    check_refused(Format::AiderText, refused, "litellm.BadRequestError: OpenAIException - told to fail");
}

#[test]
fn aider_that_asks_its_model_again() {
    let turns = "Repo-map: using 1024 tokens, auto refresh\nAdded a.py to the chat.\n\nTry one.\n\
                 Tokens: 12k sent, 1.5k cache write, 2k cache hit, 310 received. Cost: $0.04 message, $0.09 session.\n\
                 a.py: E1 wrong\nTry two.\nTokens: 1.0k sent, 9 received. Cost: $0.01 message, $0.10 session.\n";
    let (_, report) = read(Format::AiderText, turns);
    assert_eq!(report.text.as_deref(), Some("Try one.\na.py: E1 wrong\nTry two."));
    let usage = Usage { cache_write: 1500, cache_read: 2000, ..tokens(13_000, 319, Some(0.05)) };
    assert_eq!((report.failure, report.usage), (None, Some(usage)));
    let (_, report) = read(Format::AiderText, &format!("{turns}litellm.APIError: gone\nwith a reason\n"));
    assert_eq!(report.failure.as_deref(), Some("litellm.APIError: gone\nwith a reason"));
}

#[test]
fn gemini() {
    // The ten tokens of its thoughts are in the total only.
    let usage = Usage { cache_read: 60, ..tokens(200, 50, None) };
    check(Format::GeminiStreamJson, sample!("gemini"), "run_shell_command", "All is well.", usage);
    let message = r#"[API Error: {"error":{"code":400,"message":"told to fail","status":"INVALID_ARGUMENT"}}]"#;
    check_refused(Format::GeminiStreamJson, sample!("gemini-refused"), message);
}

#[test]
fn pi() {
    let usage = tokens(1182, 7, Some(0.00059 + 0.000606));
    let (_, report) = read(Format::PiJson, sample!("pi"));
    let cost = report.usage.and_then(|usage| usage.cost).expect("pi knows the price");
    assert!((cost - 0.001196).abs() < 1e-9);
    let usage = Usage { cost: Some(cost), ..usage };
    check(Format::PiJson, sample!("pi"), "bash", "You said 41 bytes; all is well.", usage);
    // It exits with 0.
    check_refused(Format::PiJson, sample!("pi-refused"), "400 told to fail");
}

#[test]
fn a_resumed_codex_thread_counts_on_from_the_turn_before() {
    let earlier = tokens(10000, 3, None);
    let (_, report) = decode(Decoder::new(Format::CodexJsonl).resuming(earlier), [sample!("codex").as_bytes()]);
    assert_eq!(report.usage, Some(tokens(342, 4, None)));
}

#[test]
fn cached_tokens_are_part_of_the_input() {
    let line = r#"{"type":"result","subtype":"success","is_error":false,"result":"x","usage":
        {"input_tokens":5,"cache_read_input_tokens":20,"cache_creation_input_tokens":300,"output_tokens":7}}"#;
    let (_, report) = read(Format::ClaudeStreamJson, &line.replace('\n', ""));
    assert_eq!(report.usage, Some(Usage { cache_read: 20, cache_write: 300, ..tokens(325, 7, None) }));
    let line = r#"{"type":"step_finish","part":{"reason":"stop","cost":0,"tokens":
        {"input":90,"output":20,"reasoning":4,"cache":{"read":10,"write":0}}}}"#;
    let (_, report) = read(Format::OpencodeJson, &line.replace('\n', ""));
    let usage = Usage { cache_read: 10, ..tokens(100, 24, None) };
    assert_eq!(report.usage, Some(usage), "a price of 0 is one that opencode does not know");
}

#[test]
fn a_stream_that_breaks_off_is_a_failure_and_says_what_went_wrong_last() {
    let whole = sample!("codex-refused");
    let cut = whole.split_inclusive('\n').filter(|line| !line.contains("turn.failed")).collect::<String>();
    let (items, report) = read(Format::CodexJsonl, &cut);
    let failure = report.failure.expect("nothing said how the turn ended");
    assert!(failure.starts_with("the stream ended without a result: unexpected status 401"), "{failure}");
    assert!(!items.contains(&"Reported".to_owned()));
    let (_, report) = read(Format::AiderText, "Not logged in\n");
    assert_eq!(report.failure.as_deref(), Some("Not logged in"), "all that it prints is text");
    for format in FORMATS[2..].iter().filter(|format| **format != Format::AiderText) {
        let (_, report) = read(*format, "Not logged in\n");
        assert_eq!(report.failure.as_deref(), Some("the stream ended without a result"));
        assert_eq!(report.text, None);
    }
}

#[test]
fn what_a_program_gets_over_by_itself_is_no_failure() {
    let refused = sample!("pi-refused").to_owned();
    let waiting = refused + "{\"type\":\"auto_retry_start\",\"attempt\":1,\"maxAttempts\":3,\"delayMs\":2000}\n";
    let (items, report) = read(Format::PiJson, &waiting);
    assert_eq!(items.last().map(String::as_str), Some("Continued"), "it waits for its next attempt");
    assert_eq!(report.failure.as_deref(), Some("the stream ended without a result: 400 told to fail"));
    let retry = "{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":1,\"error_status\":503}\n";
    let (_, report) = read(Format::ClaudeStreamJson, retry);
    let expected = "the stream ended without a result: the model's server answered with status 503";
    assert_eq!(report.failure.as_deref(), Some(expected));
    let (_, report) = read(Format::ClaudeStreamJson, &(retry.to_owned() + sample!("claude")));
    assert_eq!(report.failure, None);
}

#[test]
fn work_after_a_result_takes_the_result_back() {
    let whole = sample!("pi-refused").to_owned() + sample!("pi");
    let (items, report) = read(Format::PiJson, &whole);
    assert_eq!(report.failure, None, "pi tried again by itself");
    let ends: Vec<&str> = items.iter().map(String::as_str).filter(|item| item.len() < 10 && *item != "Said").collect();
    assert_eq!(ends, ["Reported", "Continued", "Reported"]);
}

#[test]
fn an_answer_that_the_model_did_not_finish_is_a_failure() {
    let cut = sample!("opencode").replace("\"reason\":\"stop\"", "\"reason\":\"length\"");
    let (_, report) = read(Format::OpencodeJson, &cut);
    let expected = "the model's answer was cut off: it stopped with `length`";
    assert_eq!(report.failure.as_deref(), Some(expected));
}

#[test]
fn words_of_sub_agents_are_not_the_answer() {
    let lines = concat!(
        r#"{"type":"assistant","parent_tool_use_id":null,"message":{"content":[{"type":"text","text":"mine"}]}}"#,
        "\n",
        r#"{"type":"assistant","parent_tool_use_id":"t1","message":{"content":[{"type":"text","text":"other"}]}}"#,
        "\n",
        r#"{"type":"result","subtype":"success","is_error":false}"#,
    );
    let (items, report) = read(Format::ClaudeStreamJson, lines);
    assert_eq!(report.text.as_deref(), Some("mine"));
    assert_eq!(items, [r#"Said("mine\n")"#, "Reported"]);
}

#[test]
fn what_an_agent_says_is_shown_in_whole_lines() {
    let said = |format, sample: &str| {
        let mut said = String::new();
        let mut decoder = Decoder::new(format);
        decoder.feed(sample.as_bytes(), &mut |item| match item {
            Item::Said(text) => said.push_str(text),
            Item::Tool(used) => said.push_str(&format!("[{}]\n", used.name)),
            _ => {}
        });
        said
    };
    let gemini = said(Format::GeminiStreamJson, sample!("gemini"));
    assert_eq!(gemini, "I will look. \n[run_shell_command]\nAll is well.\n");
    assert_eq!(said(Format::PiJson, sample!("pi")), "[bash]\nYou said 41 bytes; all is well.\n");
    assert_eq!(said(Format::OpencodeJson, sample!("opencode")), "[bash]\nYou said 60 bytes; all is well.\n");
}

#[test]
fn texts_of_one_message_are_one_answer() {
    let part = |message: &str, text: &str| {
        format!("{{\"type\":\"text\",\"part\":{{\"messageID\":\"{message}\",\"text\":\"{text}\"}}}}\n")
    };
    let lines = part("m1", "On it.") + &part("m2", "One.") + &part("m2", "Two.");
    let (_, report) = read(Format::OpencodeJson, &lines);
    assert_eq!(report.text.as_deref(), Some("One.\nTwo."));
}

#[test]
fn what_is_no_event_is_skipped_and_bytes_that_are_no_text_are_replaced() {
    let mut bytes = b"YOLO mode is enabled.\n[1,2]\n{\"type\":\"later\"}\n{\"type\":17}\n\xff\xfe\r\n".to_vec();
    bytes.extend(b"{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"a\xffb\"}}\r\n");
    bytes.extend(b"{\"type\":\"turn.completed\"}");
    let (items, report) = decode(Decoder::new(Format::CodexJsonl), [&*bytes]);
    assert_eq!(items, ["Said(\"a\u{fffd}b\\n\")", "Reported"]);
    assert_eq!(report, Report { text: Some("a\u{fffd}b".to_owned()), ..Report::default() });
}

#[test]
fn text_and_json_are_handed_on_as_they_come() {
    let (items, report) = decode(Decoder::new(Format::Text), [&b"a\xff"[..], b"", b"\n"]);
    assert_eq!(items, ["Output([97, 255])", "Output([10])"]);
    assert_eq!(report, Report::default());
    let (items, report) = decode(Decoder::new(Format::Json), [&b"{\"a\""[..], b":1}\n"]);
    assert_eq!(items.len(), 2);
    assert_eq!(report, Report::default());
    for bad in ["", "{\"a\"", "{} {}", "hello"] {
        let failure = read(Format::Json, bad).1.failure.expect("that is no document");
        assert!(failure.starts_with("the output is not one JSON document"), "{failure}");
    }
}

#[test]
fn a_line_that_is_too_long_is_skipped_and_a_result_lost_in_it_is_no_success() {
    let mut decoder = Decoder::new(Format::PiJson);
    decoder.lines = Lines::new(1000);
    let (_, report) = decode(decoder, [sample!("pi").as_bytes()]);
    let failure = report.failure.expect("`agent_end` is longer than 1000 bytes");
    assert!(failure.contains("were skipped"), "{failure}");
}

#[test]
fn an_answer_in_pieces_keeps_its_end() {
    let piece = "x".repeat(1 << 20);
    let line = format!("{{\"type\":\"message\",\"role\":\"assistant\",\"delta\":true,\"content\":\"{piece}\"}}\n");
    let end = "{\"type\":\"message\",\"role\":\"assistant\",\"delta\":true,\"content\":\"end\"}\n";
    let mut chunks = vec![line.as_bytes(); 40];
    chunks.push(end.as_bytes());
    let (_, report) = decode(Decoder::new(Format::GeminiStreamJson), chunks);
    let text = report.text.expect("it spoke");
    assert_eq!(text.len(), ANSWER_LIMIT);
    assert!(text.ends_with("xend"));
}

/// Streams that begin like real ones.
fn streams() -> impl Strategy<Value = (Format, Vec<u8>)> {
    let samples = prop::sample::select(vec![
        (Format::ClaudeStreamJson, sample!("claude")),
        (Format::ClaudeStreamJson, sample!("qwen-refused")),
        (Format::CodexJsonl, sample!("codex")),
        (Format::CodexJsonl, sample!("codex-refused")),
        (Format::OpencodeJson, sample!("opencode")),
        (Format::GeminiStreamJson, sample!("gemini")),
        (Format::PiJson, sample!("pi")),
        (Format::Text, sample!("pi")),
        (Format::Json, sample!("pi")),
    ]);
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (samples, damage).prop_map(|((format, sample), damage)| {
        let mut bytes = sample.as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        (format, bytes)
    })
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same(
        (format, bytes) in streams(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        let (pieces, report) = decode(Decoder::new(format), chunks);
        let (whole, expected) = decode(Decoder::new(format), [&*bytes]);
        prop_assert_eq!(report, expected);
        if !matches!(format, Format::Text | Format::Json) {
            prop_assert_eq!(pieces, whole);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), which in 0..FORMATS.len()) {
        let (items, report) = decode(Decoder::new(FORMATS[which]), [&*bytes]);
        let reported = items.contains(&"Reported".to_owned());
        prop_assert!(reported || report.failure.is_some() || matches!(FORMATS[which], Format::Text | Format::Json));
    }

    #[test]
    fn no_event_makes_it_panic(
        kind in prop::sample::select(vec![
            "assistant", "result", "system", "item.started", "item.completed", "turn.completed", "turn.failed", "error",
            "text", "step_finish", "tool_use", "message", "message_end", "agent_end", "session", "init",
        ]),
        key in prop::sample::select(vec!["message", "item", "part", "usage", "stats", "result", "error", "modelUsage"]),
        value in prop::sample::select(vec![
            "null", "true", "-1", "1e999", r#""\ud800""#, "[]", "[[{}]]", r#"{"content":[1]}"#, "18446744073709551616",
        ]),
        which in 2..FORMATS.len(),
    ) {
        let line = format!("{{\"type\":\"{kind}\",\"{key}\":{value}}}\n");
        read(FORMATS[which], &line);
    }
}

/// What a line tells of a tool that failed.
#[track_caller]
fn check_failed_tool(format: Format, lines: &str, expected: &[&str]) {
    let (items, _) = read(format, lines);
    let told: Vec<&String> =
        items.iter().filter(|item| item.starts_with("Tool(") || item.starts_with("Came(")).collect();
    assert_eq!(told, expected);
}

#[test]
fn tools_that_fail_are_told_with_the_reason() {
    check_failed_tool(
        Format::ClaudeStreamJson,
        r#"{"type":"assistant","message":{"content":[{"id":"t1","input":{"path":"a"},"name":"Read","type":"tool_use"}]}}
{"type":"user","message":{"content":[{"tool_use_id":"t1","type":"tool_result","content":[{"type":"text","text":"no such"},{"type":"text","text":"file"}],"is_error":true}]}}"#,
        &[
            r#"Tool(ToolUse { id: "t1", name: "Read", arguments: "{\"path\":\"a\"}" })"#,
            r#"Came(ToolResult { id: "t1", failed: true, text: "no such\nfile" })"#,
        ],
    );
    check_failed_tool(
        Format::CodexJsonl,
        r#"{"type":"item.completed","item":{"id":"i1","type":"mcp_tool_call","server":"swarm","tool":"send_handoff","arguments":{"to":"b"},"result":null,"error":{"message":"no edge"},"status":"failed"}}"#,
        &[
            r#"Tool(ToolUse { id: "i1", name: "send_handoff", arguments: "{\"to\":\"b\"}" })"#,
            r#"Came(ToolResult { id: "i1", failed: true, text: "no edge" })"#,
        ],
    );
    check_failed_tool(
        Format::OpencodeJson,
        r#"{"type":"tool_use","part":{"tool":"read","callID":"c1","state":{"status":"error","input":{},"error":"gone"}}}"#,
        &[
            r#"Tool(ToolUse { id: "c1", name: "read", arguments: "{}" })"#,
            r#"Came(ToolResult { id: "c1", failed: true, text: "gone" })"#,
        ],
    );
    check_failed_tool(
        Format::GeminiStreamJson,
        r#"{"type":"tool_result","tool_id":"g1","status":"error","output":"","error":{"type":"x","message":"denied"}}"#,
        &[r#"Came(ToolResult { id: "g1", failed: true, text: "denied" })"#],
    );
    check_failed_tool(
        Format::PiJson,
        r#"{"type":"tool_execution_end","toolCallId":"p1","toolName":"bash","result":{"content":[{"type":"text","text":"exit 1"}]},"isError":true}"#,
        &[r#"Came(ToolResult { id: "p1", failed: true, text: "exit 1" })"#],
    );
}
