//! Seed 004 as a user runs it: a coordinator, its plan, and what `run`, `inspect` and a replay show of it.

use serde_json::{Value, json};

use crate::specs::Project;

const SPEC: &str = "specs/refactor-swarm/refactor-swarm.kdl";

#[test]
fn the_refactor_swarm_runs_offline_by_its_plan() {
    let project = Project::new();
    assert_eq!(project.done(&["run", SPEC]), "The parser is a crate of its own, with tests.\n");
    assert_eq!(
        project.done(&["inspect", "last", "refactor", "--plan"]),
        "plan v2: 3 of 3 items done\n\
         \x20 api     done     a1  Define the API of the parser  [1 of 1 checkpoints]  {src/api.rs}\n\
         \x20         → Parse and Error are public; the types compile.\n\
         \x20 parser  done     a2  Move the parser behind it  {src/parse/**}\n\
         \x20         → It lies in its own crate; the core calls it.\n\
         \x20 tests   done     a1  Test the parser alone\n\
         \x20         → Twelve cases, all pass.\n"
    );
    let files = crate::specs::texts(&project.home().join("runs"));
    let (_, posts) =
        files.iter().find(|(path, _)| path.ends_with("refactor/posts.jsonl")).expect("the channel is a file");
    assert!(
        posts.contains(r#""from":"a2","channel":"parser""#) && posts.contains("parse() takes bytes now"),
        "{posts}"
    );
    let team = project.done(&["inspect", "last", "refactor", "--swarm"]);
    for line in
        ["  lead  completed  coordinator (planner), 5 iterations", "  a1    completed  agent (coder), 4 iterations"]
    {
        assert!(team.contains(line), "{team}");
    }
    let document: Value =
        serde_json::from_str(&project.done(&["inspect", "last", "refactor", "--json"])).expect("JSON");
    let plan = &document["swarm"]["plan"];
    assert_eq!(
        (&plan["coordinator"], &plan["version"], &plan["open_proposals"]),
        (&json!("lead"), &json!(2), &json!([]))
    );
    assert_eq!(plan["items"][2]["depends_on"], json!(["parser"]));
    assert_eq!(document["swarm"]["agents"][0]["state"], "completed");
}

#[test]
fn what_happens_in_a_team_is_told_while_it_happens() {
    let project = Project::new();
    let output = project.swarmc(&["run", SPEC]);
    let told = String::from_utf8_lossy(&output.stderr);
    for line in [
        "refactor: a1 works on api",
        "refactor: a1 proposes change 1: add tests (nothing tests it alone)",
        "refactor: swarmc to lead (request): a1 proposes change 1 of the plan: add tests; nothing tests it alone",
        "refactor: lead makes plan v2: add tests (nothing tests it alone)",
        "refactor: swarmc to a1 (request): your proposal 1 is accepted: the plan is at version 2",
        "refactor: a1 has done api: Parse and Error are public; the types compile.",
        "refactor: a2 to parser: parse() takes bytes now, not a &str.",
        "refactor: lead done after 5 iterations",
        "refactor: a1 released after 4 iterations",
        "plan v2: 3 of 3 items done",
    ] {
        assert!(told.contains(line), "no `{line}` in:\n{told}");
    }
}

#[test]
fn the_prompts_of_a_team_hold_its_plan_and_what_changed() {
    let project = Project::new();
    project.done(&["run", SPEC]);
    let prompt = |agent: &str, turn: u32, system: bool| {
        let document = project.done(&["inspect", "last", "refactor", agent, "--json"]);
        let document: Value = serde_json::from_str(&document).expect("JSON");
        let path = &document["turns"][turn as usize - 1]["paths"][if system { "system" } else { "prompt" }];
        std::fs::read_to_string(path.as_str().unwrap_or_else(|| panic!("a path in {document:#}"))).expect("a prompt")
    };
    let first = prompt("a1", 1, false);
    for part in [
        "## Task\nThe items of the plan that are yours.\n",
        "- a2: \"its items of the plan\" (spawned)\n",
        "## Plan, Version 1 (0 of 2 items done)\n",
        "- api [running] (yours; checkpoint 0 of 1, next: the types compile; touches src/api.rs): Define the API",
        "- parser [queued] (owner a2; waits for api; touches src/parse/**): Move the parser behind it\n",
        "## Channels\n- parser: a1, a2\n",
        "- lead: \"coordinates the others",
    ] {
        assert!(first.contains(part), "no `{part}` in:\n{first}");
    }
    let decides = prompt("lead", 2, false);
    assert!(
        decides
            .contains("## Proposals\nDecide each by `plan_decide`.\n- 1 by a1, based on version 1: [{\"op\":\"add\""),
        "{decides}"
    );
    let later = prompt("a1", 3, false);
    assert!(
        later.contains("You last saw version 1. Since then:\n- version 2 by lead: add tests; nothing tests it alone\n"),
        "{later}"
    );
    // The system text offers an agent the actions of its own part alone.
    let (lead, coder) = (prompt("lead", 1, true), prompt("a1", 1, true));
    for action in ["### plan_update", "### spawn_agent", "### stop_agent", "### tell_user"] {
        assert!(lead.contains(action) && !coder.contains(action), "{action}");
    }
    assert!(coder.contains("### plan_propose") && !lead.contains("### plan_propose"));
    assert!(lead.contains("You may add agents that play: coder.") && coder.contains("lead coordinates the team"));
    assert!(!coder.contains("request_help"), "only the coordinator adds agents");
}

#[test]
fn a_team_is_recorded_and_replayed() {
    let project = Project::new();
    let recorded = project.done(&["run", SPEC, "--record", "tape"]);
    assert_eq!(project.done(&["run", SPEC, "--replay", "tape"]), recorded);
}

/// The specs of a team whose coordinator takes longer to decide than a proposal waits.
fn slow_coordinator(project: &Project, then: &str) {
    let path = project.root().join(SPEC);
    let spec = std::fs::read_to_string(&path).expect("there is a spec");
    let slow = spec
        .replace("spawns coder max=1", "")
        .replace("policy { spawn human }", &format!("policy {{ spawn human; on-timeout {then} after=\"700ms\" }}"))
        .replace("task=lead turn=2", "task=lead turn=2 delay=\"3s\"");
    std::fs::write(path, slow).expect("it can be written");
}

#[test]
fn a_proposal_that_is_not_decided_in_time_becomes_what_the_policy_says_also_in_a_replay() {
    let project = Project::new();
    slow_coordinator(&project, "deny");
    project.done(&["run", SPEC, "--record", "denied"]);
    let plan = project.done(&["inspect", "last", "refactor", "--plan"]);
    assert!(plan.starts_with("plan v1: 2 of 2 items done\n"), "{plan}");
    let told = String::from_utf8(project.swarmc(&["run", SPEC, "--replay", "denied"]).stderr).expect("text");
    for line in ["timed out", "lead did not decide within 700ms", "plan v1: 2 of 2 items done"] {
        assert!(told.contains(line), "no `{line}` in:\n{told}");
    }

    let project = Project::new();
    slow_coordinator(&project, "approve");
    let recorded = project.done(&["run", SPEC, "--record", "accepted"]);
    assert_eq!(project.done(&["run", SPEC, "--replay", "accepted"]), recorded);
    let plan = project.done(&["inspect", "last", "refactor", "--plan"]);
    assert!(plan.starts_with("plan v2: 3 of 3 items done\n"), "{plan}");

    let project = Project::new();
    slow_coordinator(&project, "fail");
    let failed = project.swarmc(&["run", SPEC, "--record", "failed"]);
    let told = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && told.contains("proposal 1 of a1: lead did not decide within"), "{told}");
    let again = project.swarmc(&["run", SPEC, "--replay", "failed"]);
    let told = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && told.contains("proposal 1 of a1: lead did not decide within"), "{told}");
}

#[test]
fn a_killed_team_has_the_plan_of_the_undisturbed_one() {
    let undisturbed = Project::new();
    let started = std::time::Instant::now();
    undisturbed.done(&["run", SPEC]);
    let plan = undisturbed.done(&["inspect", "last", "refactor", "--plan"]);
    crate::swarm_kills::interrupt(&["run", SPEC], started.elapsed(), Project::new, |project, moments| {
        assert_eq!(project.done(&["inspect", "last", "refactor", "--plan"]), plan, "killed after {moments:?}");
    });
}

#[test]
fn a_coordinator_may_begin_alone_and_add_all_the_others() {
    let spec = r##"
provider local {
    script {
        answer #"{"action":"spawn_agent","plays":"coder","name":"a1","task":"Write it","items":["api"]}"# task=lead turn=1
        answer #"{"action":"idle"}"# task=lead turn=2
        answer #"{"action":"done","response":"written"}"# task=lead
        answer #"{"action":"item_done","item":"api","summary":"it stands"}"#
    }
}
agent coder provider=local
swarm alone {
    goal "Write it"
    coordinator lead agent=coder
    spawns coder max=1
    item api "Define it"
}
pipeline p { task team { swarm alone }; result team }
"##;
    let place = crate::cli::Place::new(spec);
    place.swarmc(&["check", "flow.kdl"]).expect(0, &["no problems"], &[]);
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["written"], &["a1 has done api: it stands"]);
    // Without `spawns` no agent could do anything.
    place.write("flow.kdl", &spec.replace("    spawns coder max=1\n", ""));
    place.swarmc(&["check", "flow.kdl"]).expect(1, &["swarm `alone` has no member"], &[]);
}
