//! Services that refuse, break off, fall silent, or send what is no answer, in all three protocols.

use super::*;
use crate::swarms::members::{ends, events};

/// The member, how often it asks, how it ends, and what is said of that.
type Row = (&'static str, usize, &'static str, &'static str);

const KINDS: [&str; 3] = ["openai", "openai-responses", "anthropic"];

/// A time that no honest answer needs, even on a machine with much to do.
const RULES: &str = "limits { agents 30; iterations 4 }; timeouts { turn \"3s\" retries=2 }; \
                     retry { transient \"50ms\" max=\"200ms\" }";

const ROWS: [Row; 16] = [
    ("refused", 1, "unreachable", "status 401 Unauthorized: no"),
    ("wrong", 1, "unreachable", "status 400 Bad Request: no"),
    ("moved", 1, "unreachable", "which is not followed"),
    ("limited", 2, "done", ""),
    ("patient", 2, "done", ""),
    ("hurried", 2, "done", ""),
    ("broken", 2, "done", ""),
    ("flaky", 3, "done", ""),
    ("gone", 3, "unreachable", "status 503 Service Unavailable: no"),
    ("cut", 2, "done", ""),
    ("silent", 2, "done", ""),
    ("stalled", 2, "done", ""),
    ("page", 2, "done", ""),
    ("echo", 1, "unreachable", "the key [key] is wrong"),
    ("parrot", 2, "done", ""),
    ("thief", 2, "done", ""),
];

fn answer(name: &str, asked: usize) -> Answer {
    let long = || says(&json!({ "action": "done", "response": "a long word ".repeat(20) }));
    match (name, asked) {
        ("refused", _) => Answer::status(401, "no"),
        ("wrong", _) => Answer::status(400, "no"),
        ("moved", _) => Answer::status(307, "no").header("location", "http://127.0.0.1:9/v1/chat/completions"),
        ("limited", 0) => Answer::status(429, "no"),
        ("patient", 0) => Answer::status(429, "no").header("retry-after", "1"),
        ("hurried", 0) => Answer::status(503, "no").header("retry-after-ms", "1"),
        ("broken", 0) => Answer::status(500, "no"),
        ("flaky", 0) => Answer::status(500, "no"),
        ("flaky", 1) => long().cut(),
        ("gone", _) => Answer::status(503, "no"),
        ("cut", 0) => long().cut(),
        ("silent", 0) => Answer::hang(),
        ("stalled", 0) => long().stalled(),
        ("page", 0) => Answer::raw("<html>\n\n<p>Down for repair.\n\n</html>").header("content-type", "text/html"),
        ("parrot", 0) => Answer::text(format!("I was sent {KEY}.")),
        ("thief", 0) => says(&json!({ "action": "done", "response": "stolen".repeat(100), "key": KEY })),
        ("thief", 1) => says(&json!({ "action": "done", "response": format!("It is {KEY}.") })),
        ("echo", _) => Answer::status(401, format!("the key {KEY} is wrong")),
        _ => done(name),
    }
}

/// The milliseconds between the end of an agent's first attempt and the beginning of its second.
fn waited(events: &[Value], name: &str) -> u64 {
    let at = |kind: &'static str, attempt: u64| {
        let of = about(events, kind, name).find(|event| event["turn_attempt"] == attempt);
        of.and_then(|event| event["at"].as_u64()).unwrap_or_else(|| panic!("{name}: no {kind} of attempt {attempt}"))
    };
    at("turn_started", 2) - at("turn_ended", 1)
}

fn fails(kind: &str) {
    let endpoint = answering(answer);
    let members = members(ROWS.iter().map(|row| row.0).chain(["garbage"]));
    let team = Team { kind: &format!("{kind} tools=schema"), agent: "", members, rules: RULES, more: String::new() };
    let place = team.place(&endpoint);
    let started = Instant::now();
    let ended = run(&place).expect(0, &[], &[]);
    assert!(started.elapsed() < Duration::from_secs(40), "{kind}: {:?}", started.elapsed());
    let events = events(&ended);
    let (ends, prompts) = (ends(&events), prompts(&endpoint));
    for (name, asked, how, said) in ROWS {
        assert_eq!((prompts[name].len(), ends[name]), (asked, how), "{kind} {name}: {}", error(&events, name));
        assert!(error(&events, name).contains(said), "{kind} {name}: {}", error(&events, name));
        assert!(prompts[name].iter().all(|prompt| prompt.contains("Iteration 1 of 4")), "{kind} {name}");
    }
    // As long as it was asked for, and no longer; the journal says how long that was.
    assert!((50..1_000).contains(&waited(&events, "limited")), "{kind}: {}", waited(&events, "limited"));
    assert!((1_000..2_500).contains(&waited(&events, "patient")), "{kind}: {}", waited(&events, "patient"));
    assert!((50..1_000).contains(&waited(&events, "hurried")), "{kind}: {}", waited(&events, "hurried"));
    let asked = about(&events, "turn_ended", "patient").next().expect("its first attempt ended");
    assert_eq!(asked["answer"]["failed"]["fault"]["transient"]["after_ms"], 1_000, "{asked}");
    assert!(!everything(&place).contains(KEY) && !ended.err.contains(KEY) && !ended.out.contains(KEY), "{kind}");
    let shown = place.swarmc(&["inspect", "last", "team", "gone"]).expect(0, &["unreachable", "status 503"], &[]);
    assert!(shown.out.matches("status 503").count() >= 3, "each attempt is told: {}", shown.out);
}

#[test]
fn services_that_fail_end_those_who_ask_them_as_documented() {
    std::thread::scope(|scope| {
        for kind in KINDS {
            scope.spawn(move || fails(kind));
        }
    });
}

/// A frame with a mebibyte of text, as the protocol has it.
fn frame(kind: &str) -> String {
    let text = "x".repeat(1 << 20);
    let data = match kind {
        "openai" => json!({ "choices": [{ "delta": { "content": text } }] }),
        "openai-responses" => json!({ "type": "response.output_text.delta", "delta": text }),
        _ => json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } }),
    };
    let name = data["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
    format!("{name}data: {data}\n\n")
}

fn floods(kind: &'static str) {
    let frames = frame(kind);
    let endpoint = answering(move |name, _| match name {
        "endless" => Answer::flood(frames.clone()),
        "shapeless" => Answer::flood("x".repeat(1 << 16)),
        "barred" => Answer::refuse_for_ever(401, "x".repeat(1 << 16)),
        "broken" => Answer::refuse_for_ever(500, "x".repeat(1 << 16)),
        name => done(name),
    });
    let members = members(["endless", "shapeless", "barred", "broken", "calm"]);
    let rules = "timeouts { turn \"20s\" retries=1 }; retry { transient \"50ms\" max=\"50ms\" }";
    let team = Team { kind: &format!("{kind} tools=schema"), agent: "", members, rules, more: String::new() };
    let place = team.place(&endpoint);
    let (ended, peak) = watched(&place);
    let events = events(&ended.expect(0, &["calm is done"], &[]));
    let (ends, prompts) = (ends(&events), prompts(&endpoint));
    for (name, asked, said) in [
        ("endless", 1, "the answer is longer than 16 MiB"),
        ("barred", 1, "status 401 Unauthorized"),
        ("broken", 2, "status 500 Internal Server Error"),
    ] {
        assert_eq!((ends[name], prompts[name].len()), ("unreachable", asked), "{kind} {name}");
        assert!(error(&events, name).contains(said), "{kind} {name}: {}", error(&events, name));
    }
    // By how much it sent, or by its time, whichever is over first.
    assert_eq!(ends["shapeless"], "unreachable", "{kind}");
    assert!(peak < 700, "{kind}: it took {peak} MiB");
}

#[test]
fn services_that_never_stop_are_stopped() {
    std::thread::scope(|scope| {
        for kind in KINDS {
            scope.spawn(move || floods(kind));
        }
    });
}

#[test]
fn who_waits_for_the_rate_of_a_provider_is_not_late() {
    let endpoint = answering(|name, _| done(name));
    let names = ["one", "two", "three", "four", "five", "six"];
    let rules = "timeouts { turn \"1s\" retries=1 }; retry { transient \"20ms\" max=\"20ms\" }";
    let members = members(names);
    let team = Team { kind: "openai tools=schema", agent: "", members, rules, more: String::new() };
    let place = team.place(&endpoint);
    let spec = fs::read_to_string(place.work().join("flow.kdl")).expect("there is a spec");
    place.write("flow.kdl", &spec.replace("auth key;", "auth key; rate requests=40;"));
    let ended = run(&place).expect(0, &[], &[]);
    // Four at once, the others 1.6 seconds apart.
    assert_eq!(ends(&events(&ended)), names.map(|name| (name, "done")).into());
    assert_eq!(endpoint.prompts().len(), 7);
}

#[test]
fn the_rate_of_a_provider_is_shared_by_a_swarm() {
    let action = json!({ "action": "publish_data", "topic": "lamps", "data": "lit" });
    let endpoint = answering(move |_, _| says(&action));
    let rules = "limits { iterations 10 }; convergence { no-progress 20 }";
    let members = members(["one", "two", "three"]);
    let team = Team { kind: "openai tools=schema", agent: "", members, rules, more: String::new() };
    let place = team.place(&endpoint);
    let spec = fs::read_to_string(place.work().join("flow.kdl")).expect("there is a spec");
    place.write("flow.kdl", &spec.replace("auth key;", "auth key; rate requests=240;"));
    let started = Instant::now();
    run(&place).expect(0, &[], &[]);
    assert_eq!(endpoint.prompts().len(), 31);
    // Twenty-four at once, then not quite four a second.
    assert!(started.elapsed() >= Duration::from_millis(1_500), "{:?}", started.elapsed());
}
