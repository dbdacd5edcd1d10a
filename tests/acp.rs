//! Agents that speak the Agent Client Protocol (issue 7, ACP): what a turn is, sessions, leave, ends, and agents that
//! are out of order. The agent is a script that does as it is told; real ones are in `real`.

mod client;
mod ends;
pub(crate) mod real;

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::approvals::await_request;
use crate::cli::{Ended, Place, signal};

/// A spec of one task `go`, played by the script as `kind` says; `agent` and `task` are what they say beside.
pub(crate) fn spec(kind: &str, agent: &str, task: &str) -> String {
    format!(
        "workflow w {{ default main }}\nprovider p {{ acp python3 \"agent.py\" {kind} }}\nagent a provider=p {agent}\n\
         pipeline main {{ task go agent=a {{ prompt \"Say hello.\"; {task} }} }}\n"
    )
}

/// A place with the script in it.
pub(crate) fn place(spec: &str) -> Place {
    let place = Place::new(spec);
    place.write("agent.py", include_str!("acp/agent.py"));
    place
}

/// What becomes of the one task.
fn run(kind: &str, agent: &str, task: &str) -> (Place, Ended) {
    let place = place(&spec(kind, agent, task));
    let ended = place.swarmc(&["run", "flow.kdl", "--headless"]);
    (place, ended)
}

/// What the agent heard, message by message.
fn heard(place: &Place) -> Vec<Value> {
    let heard = fs::read_to_string(place.work().join("heard")).unwrap_or_default();
    heard.lines().map(|line| serde_json::from_str(line).expect("it is told JSON")).collect()
}

/// The methods that it was asked for, in order.
pub(crate) fn methods(place: &Place) -> Vec<String> {
    heard(place).iter().filter_map(|message| Some(message["method"].as_str()?.to_owned())).collect()
}

fn inspected(place: &Place) -> Value {
    let step = place.swarmc(&["inspect", "last", "go", "--json"]).expect(0, &[], &[]).out;
    serde_json::from_str(&step).expect("it is JSON")
}

#[test]
fn a_turn_is_taken_and_told_of_as_any_other() {
    let place = place(&spec("load", "{ system \"You are polite.\" }", ""));
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &["go │ [Look around]\n", "go │ Heard: Say hello.\n"]);
    assert_eq!(methods(&place), ["initialize", "session/new", "session/prompt"]);
    let heard = heard(&place);
    // What we cannot do safely is not offered.
    let able = &heard[0]["params"]["clientCapabilities"];
    assert_eq!((&able["fs"]["writeTextFile"], &able["terminal"]), (&json!(false), &json!(false)));
    let work = place.work().canonicalize().expect("it is there");
    assert_eq!(heard[1]["params"]["cwd"], json!(work));
    assert_eq!(heard[1]["params"]["mcpServers"], json!([]));
    let prompt = heard[2]["params"]["prompt"][0]["text"].as_str().expect("it is a text");
    assert!(prompt.starts_with("You are polite.") && prompt.ends_with("Say hello."), "{prompt}");
    let step = inspected(&place);
    assert_eq!(
        (&step["usage"]["input"], &step["usage"]["output"], &step["session"]),
        (&json!(20), &json!(10), &json!("s1"))
    );
    let told = "    usage   20 tokens in, 10 out\n    session s1\n";
    place.swarmc(&["inspect", "last", "go"]).expect(0, &[told], &[]);
}

#[test]
fn the_mode_and_the_model_are_those_of_the_plan() {
    let (place, ended) = run("plain", "model=large { mode planning }", "");
    ended.expect(0, &[], &[]);
    let heard = heard(&place);
    let asked = |method: &str| heard.iter().find(|message| message["method"] == method).map(|it| it["params"].clone());
    assert_eq!(asked("session/set_mode").expect("it is set")["modeId"], "plan");
    let model = asked("session/set_config_option").expect("it is set");
    assert_eq!((&model["configId"], &model["value"]), (&json!("model"), &json!("large")));
    // One that begins where it decides by itself is brought to ask.
    let modes = [
        ("auto", "", "default"),
        ("auto", "{ mode implementation }", "default"),
        ("auto", "{ mode planning }", "plan"),
        ("planless", "{ mode planning }", "default"),
    ];
    for (kind, agent, mode) in modes {
        let (place, ended) = run(kind, agent, "");
        ended.expect(0, &[], &[]);
        assert_eq!(methods(&place), ["initialize", "session/new", "session/set_mode", "session/prompt"]);
        assert_eq!(self::heard(&place)[2]["params"]["modeId"], mode);
    }
    run("auto", "model=large", "").1.expect(
        3,
        &[],
        &["does not support choosing `large`: leave `model` out, and set it in `args`"],
    );
    // Those that hold already are not set, and one that there is not is not passed over.
    let (place, ended) = run("plain", "model=small { mode implementation }", "");
    ended.expect(0, &[], &[]);
    assert_eq!(methods(&place), ["initialize", "session/new", "session/prompt"]);
    let (place, ended) = run("plain", "model=huge", "");
    ended.expect(3, &[], &["go failed: the agent has no model `huge`: it has `small`, `large`"]);
    assert!(!methods(&place).contains(&"session/prompt".to_owned()));
}

/// Two tasks of one conversation.
fn talk(kind: &str) -> Place {
    place(&format!(
        "provider p {{ acp python3 \"agent.py\" {kind} }}\nagent a provider=p\npipeline main {{\n\
         task first {{ session talk; prompt \"Name a ship.\" }}\n\
         task second {{ session talk; depends-on first; prompt \"Name its captain.\" }}\n}}\n"
    ))
}

#[test]
fn a_session_is_loaded_and_what_was_said_in_it_is_not_said_again() {
    let place = talk("load");
    let ended = place.swarmc(&["run", "flow.kdl"]).expect(0, &["Heard: Name its captain."], &[]);
    assert!(!ended.out.contains("What I said before"), "{ended:?}");
    let methods = methods(&place);
    assert_eq!(methods[3..], ["initialize", "session/load", "session/prompt"]);
    assert_eq!(heard(&place)[4]["params"]["sessionId"], "s1");
}

#[test]
fn an_agent_that_loads_no_sessions_cannot_go_on_with_one() {
    let place = talk("forgetful");
    place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &["first failed: the agent cannot continue a session"]);
    assert_eq!(methods(&place), ["initialize"]);
}

#[test]
fn an_answer_of_the_wrong_type_is_mended_in_its_session() {
    for (kind, opening) in [("load", "session/load"), ("forgetful", "session/new")] {
        let spec = format!(
            "type Verdict {{ ok bool }}\nprovider p {{ acp python3 \"agent.py\" {kind} }}\nagent a provider=p\n\
             pipeline main {{ task go {{ prompt \"Judge.\"; output Verdict repair=1 }} }}\n"
        );
        let place = place(&spec);
        place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &["asked again, 1 of 1"]);
        assert_eq!(methods(&place)[4], opening);
    }
}

/// A relay in which the first task is played by the script.
fn relay_spec(kind: &str) -> String {
    format!(
        "provider p {{ acp python3 \"agent.py\" {kind} }}\nagent a provider=p\npipeline main {{\n\
         edges {{ first -> second }}\n task first agent=a {{ prompt \"Hand over.\" }}\n\
         task second {{ stdin \"<<inbox>>\"; run \"cat\" }}\n result second\n}}\n"
    )
}

fn relay(kind: &str) -> Ended {
    let place = place(&relay_spec(kind));
    let ended = place.swarmc(&["run", "flow.kdl"]);
    assert!(!ended.err.contains("not listed in time"), "whoever has listed the tools is not waited for: {ended:?}");
    let servers = &heard(&place)[1]["params"]["mcpServers"];
    assert_eq!((servers.as_array().map(Vec::len), &servers[0]["name"]), (Some(1), &json!("swarm")));
    ended
}

#[test]
fn the_tools_of_the_run_are_handed_over_by_http_or_by_a_pipe() {
    relay("relay").expect(0, &["From an agent"], &["handed over: False"]);
    relay("stdio").expect(0, &["Over a pipe"], &["handed over: False"]);
}

/// Where a provider says how its program gets the server of the run, the session does not name it.
#[test]
fn the_tools_of_the_run_are_handed_over_by_the_settings_of_the_provider_alone() {
    let place = place(&relay_spec(
        "configured; mcp-args --tools \"{url}\"; \
         mcp-env AGENT_TOOLS #\"{\"url\":\"{url}\",\"headers\":[{\"name\":\"Authorization\",\"value\":\"Bearer {token}\"}]}\"#",
    ));
    let ended = place.swarmc(&["run", "flow.kdl"]).expect(0, &["From an agent"], &["handed over: False"]);
    assert!(!ended.err.contains("not listed in time"), "{ended:?}");
    assert_eq!(heard(&place)[1]["params"]["mcpServers"], json!([]));
}

/// An agent that never starts the server of the run's tools gets its prompt late. People hear of it while it waits.
#[test]
fn an_agent_that_starts_no_tools_is_reported_while_its_prompt_waits() {
    let place = place(&relay_spec("forgetful"));
    let (mut child, _) = place.until(&["run", "flow.kdl"], "its agent has not started the MCP server `swarm` yet");
    assert!(!methods(&place).contains(&"session/prompt".to_owned()), "the prompt waits");
    let read_step = || {
        let step = place.swarmc(&["inspect", "last", "first", "--json"]).expect(0, &[], &[]).out;
        serde_json::from_str::<Value>(&step).expect("it is JSON")
    };
    let is_noticed =
        |step: &Value| step["notices"][0]["text"].as_str().is_some_and(|text| text.contains("its prompt waits"));
    crate::top::until("the notice is in the step", || is_noticed(&read_step()));
    place.swarmc(&["inspect", "last", "first"]).expect(0, &["notice  turn 1: its agent has not started"], &[]);
    let shown = place.swarmc(&["top", "last"]).expect(0, &["● first", "its agent has not started the MCP server"], &[]);
    assert!(shown.err.is_empty(), "{shown:?}");
    signal(&child, "TERM");
    child.wait().expect("it ends");
}

#[test]
fn tool_servers_of_the_plan_are_handed_over_where_the_run_has_no_more_to_say_about_them() {
    for (policy, tools, handed, why) in [
        ("", "notes web", &["notes", "web"][..], ""),
        ("", "\"*\"", &["notes", "web"][..], "tool server `safe` is not passed to the agent: it needs a secret"),
        (
            "",
            "notes.read",
            &[][..],
            "tool server `notes` is not passed to the agent: the agent may use only some of its tools",
        ),
        ("policy { tool notes human }", "notes", &[][..], "the policy requires approval for its tools"),
    ] {
        let servers = "secret key env=SAFE_KEY\ntool-server notes { exec \"bin/notes\" serve; env LEVEL=\"7\" }\n\
                       tool-server web url=\"http://127.0.0.1:1/mcp\"\n\
                       tool-server safe url=\"http://127.0.0.1:1/safe\" { auth key }\n";
        let agent = format!("{{ tools {tools}; can network }}");
        let place = place(&format!("{policy}\n{servers}{}", spec("plain", &agent, "")));
        let ended = place.command(&["run", "flow.kdl"]).env("SAFE_KEY", "k").output().expect("swarmc starts");
        Ended::from(ended).expect(0, &[], &[why]);
        let servers = heard(&place)[1]["params"]["mcpServers"].clone();
        let names: Vec<&str> =
            servers.as_array().expect("a list").iter().filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(names, handed, "{tools}");
        if names == ["notes", "web"] {
            let program = place.work().canonicalize().expect("it is there").join("bin/notes");
            assert_eq!((&servers[0]["command"], &servers[0]["args"]), (&json!(program), &json!(["serve"])));
            assert!(
                servers[0]["env"].as_array().is_some_and(|env| env.contains(&json!({ "name": "LEVEL", "value": "7" })))
            );
            assert_eq!((&servers[1]["type"], &servers[1]["url"]), (&json!("http"), &json!("http://127.0.0.1:1/mcp")));
        }
    }
}

#[test]
fn leave_is_given_by_the_kind_of_an_option() {
    for (kind, policy, agent, chosen) in [
        ("asks", "", "{ permissions skip }", "chosen: id-allow_once"),
        ("asks", "policy { tool edit auto }", "", "chosen: id-allow_once"),
        ("asks", "policy { tool \"*\" auto }", "", "chosen: id-allow_once"),
        ("asks", "policy { tool edit human; unattended approve }", "", "chosen: id-allow_once"),
        // Whoever is gated asks, and nobody is there.
        ("asks", "", "", "chosen: id-reject_once"),
        ("asks", "policy { tool execute auto }", "", "chosen: id-reject_once"),
    ] {
        let place = place(&format!("{policy}\n{}", spec(kind, agent, "")));
        place.swarmc(&["run", "flow.kdl", "--headless"]).expect(0, &[chosen], &[]);
    }
    let place = place(&format!("policy {{ unattended fail }}\n{}", spec("asks", "", "")));
    place.swarmc(&["run", "flow.kdl", "--headless"]).expect(3, &[], &["`a` wants tool edit, which needs approval"]);
}

#[test]
fn leave_that_nobody_gives_in_time_is_the_policy_s() {
    let place = |then| place(&format!("policy {{ on-timeout {then} after=\"300ms\" }}\n{}", spec("asks", "", "")));
    for (then, chosen) in [("deny", "chosen: id-reject_once"), ("approve", "chosen: id-allow_once")] {
        place(then).swarmc(&["run", "flow.kdl"]).expect(
            0,
            &[chosen],
            &["by the policy, as no person answered in time"],
        );
    }
    let failed = place("fail").swarmc(&["run", "flow.kdl"]);
    failed.expect(3, &[], &["`a` wants tool edit, which needs approval, but no person answered in time"]);
}

#[test]
fn leave_is_given_from_another_terminal() {
    let place = place(&spec("asks-twice", "", "timeout \"4m\" idle=\"2s\""));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "swarmc approve");
    let listed = await_request(&place, 1);
    assert!(listed.contains("a wants tool edit") && listed.contains("Write file 1"), "{listed}");
    let other = ["approve", "last", "1", "allow", "--arguments", r#"{"path": "other.txt"}"#];
    place.swarmc(&other).expect(2, &[], &["approval 1 takes no other arguments: its agent makes the call itself"]);
    // While somebody is waited for, silence is none.
    std::thread::sleep(Duration::from_secs(3));
    place.swarmc(&["approve", "last", "1", "deny"]).expect(0, &[], &[]);
    await_request(&place, 2);
    place.swarmc(&["approve", "last", "2", "always"]).expect(0, &[], &[]);
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{}", rest());
    assert_eq!(inspected(&place)["approvals"][1]["answer"]["choice"], "always");
    place.swarmc(&["inspect", "last", "go"]).expect(0, &["1 a wants tool edit: deny, by a person"], &[]);
    assert_eq!(output(&place).trim_end(), "chosen: id-reject_once, id-allow_always");
}

#[test]
fn what_was_always_allowed_in_one_task_is_no_question_in_another() {
    let place = place(
        &spec("asks", "", "").replace(" } }\n", " }\n task after agent=a { depends-on go; prompt \"Say more.\" } }\n"),
    );
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "swarmc approve");
    await_request(&place, 1);
    place.swarmc(&["approve", "last", "1", "always"]).expect(0, &[], &[]);
    let status = child.wait().expect("it ends");
    let said = rest();
    assert!(status.success() && said.matches("a wants tool edit").count() == 2, "{said}");
    assert!(said.contains("? go: ") && !said.contains("? after: "), "{said}");
}

#[test]
fn a_call_takes_no_other_arguments_before_its_agent_asks_again_either() {
    let place = place(&spec("asks-late", "", ""));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "swarmc approve");
    await_request(&place, 1);
    signal(&child, "KILL");
    assert_eq!(child.wait().expect("it ends").code(), None, "{}", rest());
    let (mut child, rest) = place.until(&["resume", "last"], "swarmc approve");
    let other = ["approve", "last", "1", "allow", "--arguments", "{}"];
    place.swarmc(&other).expect(2, &[], &["approval 1 takes no other arguments: its agent makes the call itself"]);
    place.swarmc(&["approve", "last", "1", "allow"]).expect(0, &[], &[]);
    place.write("go", "");
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    assert_eq!(output(&place).trim_end(), "chosen: id-allow_once");
}

/// What the task put out in the only run of a place.
fn output(place: &Place) -> String {
    let runs = fs::read_dir(place.home().join("outputs")).expect("there are runs");
    let run = runs.flatten().next().expect("there is one").path();
    fs::read_to_string(run.join("go.txt")).expect("it answered")
}

#[test]
fn what_was_always_allowed_is_not_asked_again() {
    let place = place(&spec("asks-twice", "", ""));
    let (mut child, rest) = place.until(&["run", "flow.kdl"], "swarmc approve");
    await_request(&place, 1);
    place.swarmc(&["approve", "last", "1", "always"]).expect(0, &[], &[]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    assert_eq!(output(&place).trim_end(), "chosen: id-allow_always, id-allow_once");
}

#[test]
fn a_turn_is_recorded_and_replayed_without_its_agent() {
    let place = place(&spec("plain", "", ""));
    place.swarmc(&["run", "flow.kdl", "--record", "recording"]).expect(0, &["Heard: Say hello."], &[]);
    fs::remove_file(place.work().join("agent.py")).expect("it was there");
    fs::remove_file(place.work().join("heard")).expect("it was there");
    place.swarmc(&["run", "flow.kdl", "--replay", "recording"]).expect(0, &["Heard: Say hello."], &[]);
    assert_eq!(methods(&place), Vec::<String>::new());
}
