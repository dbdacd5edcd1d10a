//! Real agents in a team: opencode has no way to take texts within its turn, so it reads with the result of its next call.

use std::fs;

use serde_json::json;
use swarmc_endpoint::{Answer, Script};

use crate::agents::{Place, programs};

const SPEC: &str = r##"
workflow w
provider plans {
    script {
        answer task=lead turn=1 #"{"action":"idle"}"#
        answer task=lead turn=2 #"{"action":"plan_decide","proposal":1,"approve":true,"because":"yes"}"#
        answer task=lead turn=3 #"{"action":"idle"}"#
        answer task=lead #"{"action":"done","response":"both stand"}"#
    }
}
provider client preset=opencode-acp
agent planner provider=plans
agent coder provider=client model="scripted/scripted" { permissions skip }
swarm split {
    goal "Split it"
    coordinator lead agent=planner
    member a1 agent=coder
    member a2 agent=coder
    item api "Define it" owner=a1
    item parser "Move it" owner=a2
    limits { agents 3; iterations 25; timeout "4m" }
}
pipeline p { task team { swarm split; timeout "4m" }; result team }
"##;

/// The models of both: a2 proposes an item, and a1 calls tools until it has read of it.
fn models() -> Script {
    Script::new().decide(|request| {
        let body = request.body.to_string();
        let is = |name: &str| body.contains(&format!("You are {name}, an autonomous"));
        let did = |name: &str| body.contains(&format!("{{\\\"done\\\":\\\"{name}\\\""));
        let call = |tool: &str, arguments| {
            let offered = request.tools.iter().find(|known| known.ends_with(tool)).cloned();
            Some(offered.map_or_else(|| Answer::text("There is no tool."), |tool| Answer::call(tool, arguments)))
        };
        match () {
            () if is("a1") && did("item_done") => Some(Answer::text("All is done.")),
            () if is("a1") && body.contains("version 2 by lead") => {
                call("item_done", json!({ "item": "api", "summary": "read v2" }))
            }
            () if is("a1") => {
                std::thread::sleep(std::time::Duration::from_millis(200));
                call("publish_data", json!({ "topic": "waits", "data": format!("{} times", request.results.len()) }))
            }
            () if is("a2") && !did("plan_propose") => {
                let op = json!({ "op": "add", "item": "tests", "text": "Test it" });
                call("plan_propose", json!({ "ops": [op], "why": "none" }))
            }
            () if is("a2") && !did("item_done") => call("item_done", json!({ "item": "parser", "summary": "moved" })),
            () if is("a2") => Some(Answer::text("Nothing is left.")),
            () => Some(Answer::text("Good.")),
        }
    })
}

#[test]
fn opencode_over_acp_hears_of_a_further_version_within_its_turn() {
    let place = Place::new(programs(), models());
    place.prepare_opencode();
    // The coordinator removes the item that no agent owns, so that it can end the team.
    let end = r##"answer task=lead turn=3 #"{"action":"idle"}"#"##;
    let remove = r##"answer task=lead turn=3 #"{"action":"plan_update","ops":[{"op":"remove","item":"tests"}],"why":"later"}"#"##;
    fs::write(place.work().join("w.kdl"), SPEC.replace(end, remove)).expect("a file can be written");
    let ended = place.swarmc(&["run", "w.kdl"]);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}");
    assert!(out.contains("both stand") && err.contains("a1 has done api: read v2"), "{out}\n{err}");
    let files = crate::specs::texts(&place.home().join("runs"));
    let (_, journal) = files.iter().find(|(path, _)| path.ends_with("journal.jsonl")).expect("there is a journal");
    let turns = journal.lines().filter(|line| line.contains("\"turn_started\"") && line.contains("\"agent\":\"a1\""));
    assert_eq!(turns.count(), 1, "{journal}");
    assert!(journal.contains("\"fact\":\"noticed\",\"agent\":\"a1\""), "{journal}");
}
