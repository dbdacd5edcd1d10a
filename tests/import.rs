//! `swarmc import` through the binary: a compose file becomes a spec that runs, and nothing is lost in silence.

use std::fs;

use crate::cli::Place;

const COMPOSE: &str = r#"
version: "1"
tasks:
  planner:
    prompt: planner
    model: opus
  coder:
    prompt-file: prompts/coder.md
    inputs: {plan: planner}
    depends_on: [planner]
  tester:
    prompt-string: |
      Test this:
      {{output:coder}}
    depends_on:
      - {task: coder, condition: success}
pipelines:
  build: {iterations: 2, tasks: [planner, coder, tester]}
  plan: {tasks: [planner]}
  fix: {parallelism: 2, tasks: [coder, tester]}
"#;

fn place(compose: &str) -> Place {
    let place = Place::new("");
    fs::remove_file(place.work().join("flow.kdl")).expect("it was just written");
    fs::create_dir(place.work().join("prompts")).expect("a folder can be made");
    place.write("compose.yaml", compose);
    place.write("prompts/planner.md", "Plan it.\n");
    place.write("prompts/coder.md", "Do what this says: {{input:plan}}\n");
    place
}

#[test]
fn three_pipelines_over_one_set_of_tasks_check_and_run() {
    let place = place(COMPOSE);
    place.swarmc(&["import", "compose.yaml"]).expect(
        0,
        &[],
        &["wrote compose.kdl: 3 tasks, 3 pipelines\n", "everything was carried over\n", "check --fix compose.kdl"],
    );
    place.swarmc(&["check", "--fix", "compose.kdl"]).expect(0, &["no problems left"], &[]);
    let prompt = fs::read_to_string(place.work().join("prompts/coder.md")).expect("it can be read");
    assert_eq!(prompt, "Do what this says: <<input:plan>>\n");
    // Offline: an agent that answers with its prompt.
    let spec = fs::read_to_string(place.work().join("compose.kdl")).expect("it was written");
    let offline = spec.replace("provider claude-code preset=claude-code", "provider claude-code { exec cat }");
    place.write("compose.kdl", &offline);
    let ran = place.swarmc(&["run", "compose.kdl", "--quiet", "--pipeline", "build"]).expect(0, &[], &[]);
    assert!(ran.out.contains("Test this:") && ran.out.contains("Do what this says:"), "{ran:?}");
    assert!(ran.out.contains("Plan it."), "{ran:?}");
    place.swarmc(&["run", "compose.kdl", "--quiet", "--pipeline", "plan"]).expect(0, &["Plan it."], &[]);
    let fixed = place.swarmc(&["run", "compose.kdl", "--quiet", "--pipeline", "fix"]);
    let fixed = fixed.expect(0, &["(No output available from task \"planner\")"], &[]);
    assert!(!fixed.out.contains("Plan it."), "{fixed:?}");
}

#[test]
fn any_text_in_a_prompt_comes_out_as_it_went_in() {
    let place = Place::new("");
    for text in [
        "a\r\nb\n",
        "\u{202e}x\ny\n",
        "\"\"\"#\n\"\"\"\"##\n",
        "  \n x\n",
        "{{{{%<<a \\<<b\n}}{#",
        "\\n\"",
        "é\n\t\n",
        "one\n\n  two\n",
    ] {
        let yaml = format!("tasks: {{a: {{prompt-string: {}}}}}", serde_json::json!(text));
        place.write("compose.yaml", &yaml);
        let spec = place.swarmc(&["import", "compose.yaml", "-o", "-"]).expect(0, &[], &[]).out;
        // Offline: an agent that answers with its prompt.
        place.write(
            "flow.kdl",
            &spec.replace("provider claude-code preset=claude-code", "provider claude-code { exec cat }"),
        );
        let ran = place.swarmc(&["run", "flow.kdl", "--quiet"]).expect(0, &[], &[]);
        // Of a text over lines, the last line break is not part of the string.
        assert_eq!(ran.out.trim_end_matches('\n'), text.trim_end_matches('\n'), "{spec}");
    }
}

#[test]
fn what_is_there_is_not_overwritten_and_a_spec_can_go_elsewhere() {
    let place = place(COMPOSE);
    place.write("compose.kdl", "mine");
    let help = ["`compose.kdl` is there already", "--force"];
    place.swarmc(&["import", "compose.yaml"]).expect(2, &[], &help);
    place.swarmc(&["import", "compose.yaml", "-o", "-"]).expect(0, &["workflow compose"], &["printed the spec"]);
    assert_eq!(fs::read_to_string(place.work().join("compose.kdl")).expect("it is there"), "mine");
    place.swarmc(&["import", "compose.yaml", "--force"]).expect(0, &[], &["wrote compose.kdl"]);
    fs::create_dir(place.work().join(".git")).expect("a folder can be made");
    fs::create_dir(place.work().join("flows")).expect("a folder can be made");
    place.swarmc(&["import", "compose.yaml", "-o", "flows/build.kdl"]).expect(0, &[], &["wrote flows/build.kdl"]);
    let spec = fs::read_to_string(place.work().join("flows/build.kdl")).expect("it was written");
    assert!(spec.contains("prompt file=\"../prompts/coder.md\""), "{spec}");
    place.swarmc(&["check", "flows/build.kdl"]).expect(0, &[], &[]);
}

#[test]
fn what_is_lost_is_shown_in_the_yaml_and_in_the_spec() {
    let place = place(&COMPOSE.replace("[planner]\n", "[planer]\n    timeout: 5m\n"));
    let lost = place.swarmc(&["import", "compose.yaml"]).expect(
        1,
        &[],
        &["unknown key `timeout` in task `coder`", "did you mean `planner`?", "2 things not carried over"],
    );
    assert!(lost.err.contains("compose.yaml:10:18: error[SW705]: there is no task `planer`"), "{}", lost.err);
    let spec = fs::read_to_string(place.work().join("compose.kdl")).expect("it was written");
    assert!(spec.contains("// not carried over (compose.yaml:11): unknown key `timeout` in task `coder`"), "{spec}");
    place.write("none.yaml", "\ttasks:");
    place.swarmc(&["import", "none.yaml"]).expect(1, &[], &["error[SW705]", "nothing to write"]);
    place.swarmc(&["import", "missing.yaml"]).expect(2, &[], &["there is no file `missing.yaml`"]);
    place.swarmc(&["import", "compose.yaml", "--preset", "codx", "-o", "-"]).expect(2, &[], &["did you mean `codex`?"]);
    fs::write(place.work().join("none.yaml"), b"\xFF\xFEt\0a\0s\0k\0").expect("a file can be written");
    place.swarmc(&["import", "none.yaml"]).expect(2, &[], &["UTF-16"]);
}
