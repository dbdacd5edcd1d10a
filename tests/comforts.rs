//! What saves a first workflow its declarations: presets that need none, a model for one task, an order without
//! `depends-on`, and lists from files.

use serde_json::Value;

use crate::specs::Project;

fn write(project: &Project, name: &str, text: &str) {
    std::fs::write(project.root().join(name), text).expect("the project can be written");
}

#[test]
fn presets_need_no_declaration_and_a_task_may_choose_a_model() {
    let project = Project::new();
    let spec = "agent coder provider=codex { description \"Codes\" }\n\
                pipeline p {\n    task plan agent=claude-code model=\"opus 4.1\" { prompt \"Plan.\" }\n    \
                task code model=gpt-5 { prompt \"Do <<output:plan>>\" }\n    task again { prompt \"Once more\" }\n}\n";
    write(&project, "w.kdl", spec);
    let plan: Value = serde_json::from_str(&project.done(&["plan", "w.kdl", "-o", "-"])).expect("a plan is JSON");
    let agents = plan["agents"].as_array().expect("agents");
    let told = |name: &str| {
        let agent = agents.iter().find(|agent| agent["name"] == name).unwrap_or_else(|| panic!("{name}: {agents:?}"));
        (agent["provider"].as_str().unwrap_or_default(), agent["model"].as_str(), agent["description"].as_str())
    };
    assert_eq!(told("claude-code-opus-4-1"), ("claude-code", Some("opus 4.1"), None));
    assert_eq!(told("coder-gpt-5"), ("codex", Some("gpt-5"), Some("Codes")));
    assert_eq!(told("coder"), ("codex", None, Some("Codes")));
}

#[test]
fn a_sequence_runs_its_steps_one_after_another() {
    let project = Project::new();
    let spec = "pipeline p {\n    result c\n    sequence {\n        task a { run \"printf a >> log\" }\n        \
                task b { run \"sleep 0.1; printf b >> log\" }\n        c\n    }\n    task c { run \"cat log\" }\n}\n";
    write(&project, "w.kdl", spec);
    assert!(project.done(&["run", "w.kdl"]).contains("ab"));
    let plan: Value = serde_json::from_str(&project.done(&["plan", "w.kdl", "-o", "-"])).expect("a plan is JSON");
    let steps = plan["pipelines"][0]["steps"].as_array().expect("steps");
    let needs: Vec<String> = steps.iter().map(|step| step["needs"].to_string()).collect();
    assert!(!needs[0].contains("\"step\"") && needs[1].contains("\"a\"") && needs[2].contains("\"b\""), "{needs:?}");
}

#[test]
fn a_list_from_a_file_is_data() {
    let project = Project::new();
    write(&project, "list.json", r#"[{"title": "{{ param.x }} \"q\"\n$(touch made)"}, {"title": "two"}]"#);
    let spec =
        "pipeline p {\n    task each { for-each file=\"list.json\"; run \"cat\"; stdin \"<<item.title>>;\" }\n}\n";
    write(&project, "w.kdl", spec);
    let shown = project.done(&["run", "w.kdl"]);
    assert!(shown.contains("{{ param.x }}") && shown.contains("$(touch made);") && shown.contains("two;"), "{shown}");
    assert!(!project.root().join("made").exists());
}
