//! Tasks whose agent is a model behind HTTP, against the scripted endpoint, through the binary.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use swarmc_endpoint::{Answer, Endpoint, Script, Usage};

use crate::cli::{Ended, Place, signal};

/// A workflow of one agent, whose model is the endpoint by the protocol `kind`.
fn flow(kind: &str, endpoint: &Endpoint, provider: &str, agent: &str, steps: &str) -> Place {
    let url = endpoint.url();
    Place::new(&format!(
        "workflow w\nsecret key env=SECRET_TOKEN\n\
         provider p {{ llm {kind} base-url=\"{url}\" model=scripted; auth key; {provider} }}\n\
         agent a provider=p {{ {agent} }}\n\
         type Verdict {{ severity enum low high; note string? }}\n\
         pipeline q {{\n{steps}\n}}\n"
    ))
}

fn run(place: &Place, arguments: &[&str]) -> Ended {
    let output = place.command(arguments).env("SECRET_TOKEN", "sk-very-secret-4711").output();
    Ended::from(output.expect("swarmc starts"))
}

fn inspected(place: &Place) -> Value {
    serde_json::from_str(&place.swarmc(&["inspect", "--json"]).out).expect("inspect writes JSON")
}

/// Every file below the home of runs, as one text.
fn everything(place: &Place) -> String {
    let mut all = String::new();
    let mut open = vec![place.home()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder can be read").flatten() {
            match entry.path() {
                path if path.is_dir() => open.push(path),
                path => all.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap_or_default())),
            }
        }
    }
    all
}

const KINDS: [&str; 4] = ["openai", "openai-responses", "anthropic", "gemini"];

#[test]
fn a_model_of_every_protocol_takes_a_task() {
    for kind in KINDS {
        let usage = Usage { input: 1_000_000, cached: 400_000, written: 0, output: 500_000 };
        let script = Script::new().otherwise(Answer::text("A lamp, briefly lit.").usage(usage));
        let endpoint = Endpoint::start(script);
        let price = "price input=\"$2\" output=\"$4\" cache-read=\"$1\"";
        let agent = "system \"You write.\"; temperature 0.5; max-output 64";
        let steps = "task tell { prompt \"Tell of <<param:x>>.\"; stdin \"The lamp is green.\" }\nresult tell";
        let place = flow(kind, &endpoint, price, agent, &format!("param x type=string default=lamps\n{steps}"));
        run(&place, &["run", "flow.kdl"]).expect(0, &["A lamp, briefly lit.\n"], &["tell │ A lamp, briefly lit."]);
        let requests = endpoint.prompts();
        assert_eq!(requests.len(), 1, "{kind}");
        assert_eq!(requests[0].system, "You write.", "{kind}");
        assert_eq!(requests[0].user, ["Tell of lamps.\n\nThe lamp is green."], "{kind}");
        let body = requests[0].body.to_string();
        assert!(body.contains("64") && body.contains("0.5"), "{kind}: {body}");
        let run = inspected(&place);
        let used = &run["steps"][0]["usage"];
        assert_eq!((&used["input"], &used["output"]), (&json!(1_000_000), &json!(500_000)), "{kind}: {used}");
        assert_eq!(used["cache_read"], 400_000, "{kind}");
        // 600,000 at 2, 400,000 at 1, 500,000 at 4 dollars a million.
        assert_eq!(used["cost"], 3.6, "{kind}: {used}");
        assert!(!everything(&place).contains("sk-very-secret"), "{kind}: the key is in the run's files");
    }
}

#[test]
fn a_missing_key_is_told_before_anything_starts() {
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::text("ok")));
    let place = flow("openai", &endpoint, "", "", "task t { prompt \"x\" }");
    let said = "the variable SECRET_TOKEN, which holds secret `key`, is empty or not set";
    place.swarmc(&["run", "flow.kdl"]).expect(2, &[], &[said]);
    assert_eq!(endpoint.requests().len(), 0);
}

#[test]
fn an_answer_of_the_wrong_type_is_mended_in_the_same_conversation() {
    for kind in KINDS {
        let script = Script::new()
            .on("does not fit", Answer::text("{\"severity\":\"high\",\"note\":null}"))
            .otherwise(Answer::text("{\"severity\":\"hgih\",\"note\":null}"));
        let endpoint = Endpoint::start(script);
        let steps = "task judge { prompt \"Judge.\"; output Verdict repair=1 }\nresult judge";
        let place = flow(kind, &endpoint, "provides schema", "system \"You judge.\"", steps);
        run(&place, &["run", "flow.kdl"]).expect(0, &["{\"severity\":\"high\"}\n"], &["asked again, 1 of 1"]);
        let requests = endpoint.prompts();
        assert_eq!(requests.len(), 2, "{kind}");
        assert_eq!(requests[0].user, ["Judge."], "{kind}: the schema goes its own way");
        let required = requests[0].body.to_string().contains("\"required\":[\"severity\"");
        assert!(required && requests[1].system == "You judge.", "{kind}: {}", requests[0].body);
        assert_eq!(requests[1].user.len(), 2, "{kind}");
        assert!(requests[1].user[1].contains("\"hgih\" is none of low, high"), "{kind}: {:?}", requests[1].user);
        assert!(requests[1].body.to_string().contains("hgih"), "{kind}: it sees its own answer");
    }
}

#[test]
fn without_a_schema_of_its_own_the_model_is_told_it() {
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::text("Well: {\"severity\": \"low\"}")));
    let place = flow("openai", &endpoint, "", "", "task judge { prompt \"Judge.\"; output Verdict }\nresult judge");
    run(&place, &["run", "flow.kdl"]).expect(0, &["{\"severity\":\"low\"}\n"], &[]);
    let request = &endpoint.prompts()[0];
    assert!(request.user[0].starts_with("Judge.\n\nAnswer with one JSON value"), "{:?}", request.user);
    assert!(request.body["response_format"].is_null());
}

#[test]
fn what_passes_is_asked_again_and_told_and_what_does_not_fails_at_once() {
    let busy = |code| Answer::status(code, "busy now").header("Retry-After", "0");
    let script = Script::new()
        .on("flaky", [busy(429), busy(503), busy(500), Answer::text("there")])
        .on("down", busy(503))
        .on("wrong", Answer::status(400, "no such model"))
        .otherwise(Answer::text("x"));
    let endpoint = Endpoint::start(script);
    let place = flow("anthropic", &endpoint, "", "", "task t { prompt \"flaky\" }\nresult t");
    let ended = run(&place, &["run", "flow.kdl"]);
    let again = "status 500 Internal Server Error: busy now; asked again in 0ns, 3 of 3";
    ended.expect(0, &["there\n"], &["status 429", "1 of 3", again]);
    assert_eq!(endpoint.prompts().len(), 4);
    assert!(everything(&place).contains(again), "it is in the log");
    let place = flow("openai", &endpoint, "", "", "task t { prompt \"down\" }");
    run(&place, &["run", "flow.kdl"]).expect(3, &[], &["status 503 Service Unavailable: busy now"]);
    assert_eq!(endpoint.prompts().len(), 8, "once, and three times more");
    let place = flow("openai", &endpoint, "", "", "task t { prompt \"wrong\" }");
    run(&place, &["run", "flow.kdl"]).expect(3, &[], &["status 400 Bad Request: no such model"]);
    assert_eq!(endpoint.prompts().len(), 9);
}

#[test]
fn a_model_that_cannot_be_reached_leaves_its_turn_to_the_fallback() {
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::status(401, "who are you")));
    let other = Endpoint::start(Script::new().otherwise(Answer::text("I can.")));
    let place = flow("openai", &endpoint, "", "fallback b", "task t { agent a; prompt \"x\" }\nresult t");
    let spec = fs::read_to_string(place.work().join("flow.kdl")).expect("there is a spec");
    let url = other.url();
    let more = format!("provider o {{ llm anthropic base-url=\"{url}\" model=m }}\nagent b provider=o\n");
    place.write(
        "flow.kdl",
        &spec.replace("type Verdict", &format!("{more}type Verdict")).replace("{ agent a;", "agent=a {"),
    );
    run(&place, &["run", "flow.kdl"]).expect(0, &["I can.\n"], &["agent `a` cannot be reached", "`b` takes its turn"]);
    assert!(!other.prompts()[0].headers.contains_key("x-api-key"), "no key is declared for it");
}

#[test]
fn silence_ends_with_the_attempt_and_a_stop_ends_the_request() {
    let script = Script::new().on("hang", Answer::hang()).otherwise(Answer::text("a long tale ".repeat(20)).stalled());
    let endpoint = Endpoint::start(script);
    let place = flow("openai", &endpoint, "", "", "task t { timeout \"1s\"; prompt \"hang\" }");
    run(&place, &["run", "flow.kdl"]).expect(3, &[], &["1s"]);
    let place = flow("anthropic", &endpoint, "", "", "task t { timeout \"60s\" idle=\"1s\"; prompt \"stall\" }");
    let started = Instant::now();
    run(&place, &["run", "flow.kdl"]).expect(3, &[], &["a long tale", "1s"]);
    assert!(started.elapsed() < Duration::from_secs(30));
    // A person who stops the run waits for nobody.
    let place = flow("openai", &endpoint, "", "", "task t { prompt \"hang\" }");
    let mut command = place.command(&["run", "flow.kdl"]);
    let mut child = command.env("SECRET_TOKEN", "sk-very-secret-4711").spawn().expect("swarmc starts");
    assert!(endpoint.wait_for(3, Duration::from_secs(60)), "it asks");
    signal(&child, "INT");
    let started = Instant::now();
    assert_eq!(child.wait().expect("it ends").code(), Some(4));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn an_answer_that_is_cut_off_is_no_answer() {
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::text("Once upon a").limited()));
    let place = flow("openai", &endpoint, "", "max-output 3", "task t { prompt \"x\" }");
    run(&place, &["run", "flow.kdl"]).expect(3, &[], &["cut off at the limit of its tokens: raise `max-output`"]);
}

#[test]
fn a_budget_counts_what_models_use() {
    let usage = Usage { input: 900, output: 200, ..Usage::default() };
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::text("ok").usage(usage)));
    let steps = "task one { prompt \"x\" }\ntask two { depends-on one; prompt \"y\" }\nresult two";
    let place = flow("openai", &endpoint, "", "max-output 50", steps);
    let spec = fs::read_to_string(place.work().join("flow.kdl")).expect("there is a spec");
    place.write("flow.kdl", &spec.replace("workflow w\n", "workflow w\nbudget tokens=1100\n"));
    run(&place, &["run", "flow.kdl"]).expect(5, &[], &["1100 are used or reserved", "two: skipped"]);
    assert_eq!(endpoint.prompts().len(), 1);
    assert_eq!(inspected(&place)["steps"][0]["usage"]["input"], 900);
}

#[test]
fn a_recorded_run_replays_without_the_model_or_its_key() {
    let script = Script::new()
        .on("does not fit", Answer::text("{\"severity\":\"high\"}"))
        .otherwise(Answer::text("it is sk-very-secret-4711 bad"));
    let endpoint = Endpoint::start(script);
    let steps = "task judge { prompt \"Judge.\"; output Verdict repair=1 }\nresult judge";
    let place = flow("anthropic", &endpoint, "", "", steps);
    run(&place, &["run", "flow.kdl", "--record", "recorded"]).expect(0, &["{\"severity\":\"high\"}"], &[]);
    drop(endpoint);
    let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "recorded"]);
    replayed.expect(0, &["{\"severity\":\"high\"}"], &["everything is as recorded"]);
    let recorded = fs::read_dir(place.work().join("recorded")).expect("there is a recording").flatten();
    for file in recorded.filter(|file| file.path().is_file()) {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        assert!(!text.contains("sk-very-secret"), "{} holds the key", file.path().display());
    }
}

#[test]
fn limits_of_a_provider_hold_over_its_agents_and_are_checked() {
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::text("ok")));
    let steps = "concurrency 13\n\
                 task t { prompt \"x <<item>>\"; for-each \"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]\" parallel=13 }";
    let place = flow("openai", &endpoint, "rate requests=120 tokens=1000000", "", steps);
    let started = Instant::now();
    run(&place, &["run", "flow.kdl"]).expect(0, &[], &[]);
    // Twelve at once, the next half a second later.
    assert!(started.elapsed() >= Duration::from_millis(500), "{:?}", started.elapsed());
    assert_eq!(endpoint.prompts().len(), 13);
    place.write("flow.kdl", "workflow w\nprovider p { exec cat; rate requests=1 }\nagent a provider=p\npipeline q { task t { prompt x } }\n");
    place.swarmc(&["check", "flow.kdl"]).expect(1, &["`rate` is for models"], &[]);
}
