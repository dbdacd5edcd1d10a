//! `pool=`: the workers that carry a step out, from the spec to the plan. Without an engine it changes nothing.

use std::fs;

use serde_json::Value;

use crate::cli::Place;

const SPEC: &str = r#"
provider local { exec cat }
agent plain provider=local
agent heavy provider=local pool=gpu
agent heavier template=heavy
agent light template=heavy pool=small
task shared agent=plain { prompt "Shared" }
pipeline main {
    pool builders
    use shared
    task of-task agent=heavy pool=A_1 { prompt "One" }
    task of-agent agent=heavier { prompt "Two" }
    task of-model agent=light model=m { prompt "Three" }
    task of-pipeline agent=plain { prompt "Four" }
    task command { run echo built }
    task command-in-pool pool=gpu { run echo built }
    loop rounds max=2 {
        task inside { run echo round }
    }
    task words { value "{{ output.command | length }}" }
    task checked { value "<<output:command>>"; check "true" }
    task called { call other }
    task teamwork { swarm team }
    gate go { message "Go?"; options yes no; headless yes }
    task after { when "output.go.choice == 'yes'"; run echo after }
    result command
}
pipeline other {
    task once { run echo once }
    task twice agent=heavy { prompt "Twice" }
}
swarm team {
    goal "Think"
    member one "Think" agent=heavy
    member two "Think" agent=plain
}
"#;

/// The pools of the declarations of a plan that have a name: pipelines, steps and agents.
fn pools(plan: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![plan];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                if let (Some(Value::String(name)), Some(Value::String(pool))) = (fields.get("name"), fields.get("pool"))
                {
                    found.push((name.clone(), pool.clone()));
                }
                open.extend(fields.values());
            }
            Value::Array(values) => open.extend(values),
            _ => {}
        }
    }
    found.sort();
    found
}

fn plan(place: &Place) -> (String, Value) {
    let written = place.swarmc(&["plan", "flow.kdl", "-o", "-"]).expect(0, &[], &[]).out;
    let read = serde_json::from_str(&written).expect("a plan is JSON");
    (written, read)
}

#[test]
fn a_step_has_the_pool_of_its_task_then_its_agent_then_its_pipeline() {
    let place = Place::new(SPEC);
    let (_, plan) = plan(&place);
    let found = pools(&plan);
    let found: Vec<(&str, &str)> = found.iter().map(|(name, pool)| (name.as_str(), pool.as_str())).collect();
    assert_eq!(
        found,
        [
            ("after", "builders"),
            ("checked", "builders"),
            ("command", "builders"),
            ("command-in-pool", "gpu"),
            ("heavier", "gpu"),
            ("heavy", "gpu"),
            ("inside", "builders"),
            ("light-m", "small"),
            ("of-agent", "gpu"),
            ("of-model", "small"),
            ("of-pipeline", "builders"),
            ("of-task", "A_1"),
            ("shared", "builders"),
            ("teamwork", "builders"),
            ("twice", "gpu"),
        ]
    );
    let shown = ["by workers of pool A_1", "by workers of pool builders", "by workers of pool gpu"];
    place.swarmc(&["plan", "flow.kdl"]).expect(0, &shown, &[]);
}

#[test]
fn a_spec_without_pools_has_a_plan_without_them() {
    let spec: String = SPEC.lines().filter(|line| !line.starts_with("    pool ")).collect::<Vec<_>>().join("\n");
    let spec = [" pool=gpu", " pool=small", " pool=A_1"].iter().fold(spec, |spec, pool| spec.replace(pool, ""));
    let place = Place::new(&spec);
    let (written, _) = plan(&place);
    assert!(!written.contains("\"pool\""), "{written}");
}

#[test]
fn a_run_without_an_engine_carries_every_pool_out_itself() {
    let place = Place::new("pipeline main {\n    pool far-away\n    task one pool=farther { run echo here }\n}\n");
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["here"], &[]);
}

#[test]
fn a_plan_is_stale_when_a_pool_changes_and_refused_when_its_name_is_none() {
    let place = Place::new("pipeline main { task one pool=gpu { run echo one } }\n");
    let (written, _) = plan(&place);
    place.write("plan.json", &written);
    place.swarmc(&["plan", "flow.kdl", "--check", "plan.json"]).expect(0, &[], &[]);
    for wrong in ["", "a/b", "../up", "a b", "é", &"x".repeat(65)] {
        let edited = written.replacen("\"pool\": \"gpu\"", &format!("\"pool\": \"{wrong}\""), 1);
        assert_ne!(edited, written);
        place.write("edited.json", &edited);
        place.swarmc(&["run", "edited.json"]).expect(2, &[], &["`/pipelines/0/steps/0/pool`: not the name of a pool"]);
    }
    let longest = written.replacen("\"gpu\"", &format!("\"{}\"", "x".repeat(64)), 1);
    place.write("edited.json", &longest);
    place.swarmc(&["run", "edited.json"]).expect(0, &["one"], &[]);
    place.write("flow.kdl", "pipeline main { task one pool=cpu { run echo one } }\n");
    let stale = place.swarmc(&["plan", "flow.kdl", "--check", "plan.json"]);
    stale.expect(1, &[], &["pool was `gpu`, and is `cpu`"]);
}

#[test]
fn formatting_keeps_pools() {
    let place = Place::new(SPEC);
    place.swarmc(&["fmt", "flow.kdl"]).expect(0, &[], &[]);
    let formatted = fs::read_to_string(place.work().join("flow.kdl")).expect("the spec is there");
    let count = |text: &str| text.matches("pool").count();
    assert_eq!(count(&formatted), count(SPEC));
}
