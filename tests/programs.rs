//! Programs through the binary: what is said of them as they lie on disk, before a run and by `doctor`; what their
//! turns cost, and what they refuse.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::cli::Place;
use crate::specs::Project;

/// What `check` says of a program of `flows/spec.kdl`, and how it ends.
fn check(project: &Project, program: &str) -> (Option<i32>, String) {
    let spec = format!("provider p {{ exec \"{program}\" }}\nagent a\npipeline m {{ task t {{ prompt \"x\" }} }}\n");
    fs::create_dir_all(project.root().join("flows/agents")).expect("a folder can be made");
    fs::write(project.root().join("flows/spec.kdl"), spec).expect("a spec can be written");
    let output = project.swarmc(&["check", "flows/spec.kdl"]);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), said)
}

#[test]
fn a_program_that_cannot_be_started_is_told_with_what_to_type() {
    let project = Project::new();
    let (code, said) = check(&project, "agents/w.sh");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("error[SW107]") && said.contains("program paths are relative to the workspace"), "{said}");
    let program = project.root().join("flows/agents/w.sh");
    fs::write(&program, "#!/bin/sh\ncat\n").expect("a program can be written");
    let (_, said) = check(&project, "agents/w.sh");
    assert!(said.contains("`flows/agents/w.sh` lies beside the spec"), "{said}");
    assert!(said.contains("write `flows/agents/w.sh`"), "{said}");
    let (_, said) = check(&project, "flows/agents/w.sh");
    assert!(said.contains("type `chmod +x flows/agents/w.sh`"), "{said}");
    // What was found before is not taken from memory.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode can be changed");
    let (code, said) = check(&project, "flows/agents/w.sh");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_program_that_has_gone_is_found_before_a_run_goes_on() {
    let place =
        Place::new("pipeline p {\n task first { run begin-it }\n task second { depends-on first; run end-it }\n}");
    let bin = place.work().join("bin");
    fs::create_dir(&bin).expect("a folder can be made");
    let program = |name: &str, text: &str| {
        fs::write(bin.join(name), text).expect("a program can be written");
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("its mode can be changed");
    };
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let swarmc = |arguments: &[&str]| {
        let ended = place.command(arguments).env("PATH", &path).output().expect("it starts");
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    program("begin-it", "#!/bin/sh\necho first >>effects\n");
    program("end-it", "#!/bin/sh\nexit 1\n");
    assert_eq!(swarmc(&["run", "flow.kdl"]).0, Some(3));
    fs::remove_dir_all(&bin).expect("it is there");
    let (code, said) = swarmc(&["resume", "--retry-failed"]);
    assert!(code == Some(2) && said.contains("`end-it`"), "{code:?} {said}");
    assert!(!said.contains("begin-it"), "what has succeeded needs no program: {said}");
    fs::create_dir(&bin).expect("a folder can be made");
    program("end-it", "#!/bin/sh\necho second >>effects\n");
    assert_eq!(swarmc(&["resume", "--retry-failed"]).0, Some(0));
    assert_eq!(fs::read_to_string(place.work().join("effects")).expect("both ran"), "first\nsecond\n");
}

#[test]
fn a_program_that_is_missing_is_found_before_the_first_task_starts() {
    let place = Place::new(
        r#"
provider agent { exec no-such-agent; install "get agent" }
agent a provider=agent
pipeline p {
    task first { run "echo ran >effects" }
    task second agent=a { depends-on first; prompt "x" }
    task third { depends-on second; run no-such-program --flag }
    task maybe { when "output.first == 'x'"; run no-such-tool }
    task made { depends-on first; run "./made-by-first" now }
}
"#,
    );
    let refused = place.swarmc(&["run", "flow.kdl"]);
    let refused = refused.expect(
        2,
        &[],
        &[
            "nothing was started: `no-such-agent`: not found, which `second` starts for agent `a`; install it with `get agent`",
            "`no-such-program`: not found, which `third` starts",
        ],
    );
    assert!(
        !refused.err.contains("no-such-tool") && !refused.err.contains("`./made-by-first`: not found"),
        "{refused:#?}"
    );
    assert!(!place.work().join("effects").exists(), "nothing ran");
    assert!(fs::read_dir(place.home().join("runs")).map_or(true, |mut runs| runs.next().is_none()), "no run is there");
    let said = place.swarmc(&["doctor", "flow.kdl"]);
    said.expect(
        2,
        &["`no-such-agent`: not found", "get agent", "`no-such-tool`: not found", "a step may install it"],
        &[],
    );
    let json: Value = serde_json::from_str(&place.swarmc(&["doctor", "flow.kdl", "--json"]).out).expect("it is JSON");
    let needed = json["programs"].as_array().expect("a list").iter().filter(|program| program["needed"] == true);
    let missing: Vec<&str> =
        needed.filter(|program| program["path"].is_null()).filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(missing, ["no-such-agent", "no-such-program"], "{json}");
    place.write("flow.kdl", "pipeline p { task t { run sh -c \"echo done\" } }");
    place.swarmc(&["doctor", "flow.kdl"]).expect(0, &["sh: /"], &[]);
}

#[test]
fn a_command_that_cannot_be_started_has_an_exit_code_and_says_why() {
    let project = Project::new();
    let spec = r#"pipeline p {
    task made { run "true" }
    task gone { depends-on made; run "./gone" now }
    task told { depends-on gone when=failure; run cat; stdin "{{ exit.gone }}: {{ output.gone }}{{ log.gone }}" }
    task unread { depends-on made; run cat; stdin "{{ output.made | int }}" }
    task ended { depends-on unread when=failure; value "{{ exit.unread + 1 }}" }
}
"#;
    fs::write(project.root().join("spec.kdl"), spec).expect("a spec can be written");
    assert_eq!(project.swarmc(&["check", "spec.kdl"]).status.code(), Some(0));
    project.swarmc(&["run", "spec.kdl"]);
    let told = project.output("told");
    assert!(told.starts_with("127: ") && told.contains("./gone"), "{told}");
    // Its text could not be computed, so that no process began.
    assert_eq!(project.output("ended"), "128");
}

#[test]
fn what_may_be_the_end_of_a_longer_value_is_not_taken_and_a_list_of_items_has_no_exit_code() {
    let project = Project::new();
    let spec = r#"pipeline p {
    task number { run printf 123456789; output int max="3B" }
    task told { depends-on number when=failure; value "{{ error.number }}" }
    task items { for-each "[1, 2]"; run "exit 3" }
    task code { depends-on items when=failure; value "<<exit:items | default:\"none\">>" }
    task some { for-each "[1, 2]"; run "exit 3"; output int default="[]" }
    task sum { depends-on some when=always; value "{{ output.some | sum }}" }
}
"#;
    fs::write(project.root().join("spec.kdl"), spec).expect("a spec can be written");
    assert_eq!(project.swarmc(&["check", "spec.kdl"]).status.code(), Some(0));
    project.swarmc(&["run", "spec.kdl"]);
    assert!(project.output("told").contains("the output is longer than the 3 bytes of `output max=`, and was cut"));
    assert_eq!((project.output("code").as_str(), project.output("sum").as_str()), ("none", "0"));
}

#[test]
fn the_price_of_a_program_s_tokens_is_shown_and_counted() {
    let place = Place::new(
        r#"
provider p { exec sh agent.sh; reads codex-jsonl; price input="$2" output="$4" }
agent a provider=p
pipeline p { task t agent=a { prompt "x" }; task u agent=a { prompt "x" } }
"#,
    );
    place.write(
        "agent.sh",
        "cat >/dev/null\necho '{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"ok\"}}'\n\
         echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":100000,\"output_tokens\":50000}}'\n",
    );
    let ended = place.swarmc(&["run", "flow.kdl"]);
    ended.expect(0, &[], &["150,000 tokens, $0.4000", "300,000 tokens, $0.8000 in all"]);
    let run: Value = serde_json::from_str(&place.swarmc(&["inspect", "last", "--json"]).out).expect("it is JSON");
    assert_eq!(run["steps"][0]["usage"]["cost"], 0.4, "{run}");
}

#[test]
fn what_a_program_refuses_its_agent_is_said_when_it_happens() {
    let place = Place::new(
        "provider program { exec sh \"-c\" \"cat >/dev/null; cat stream\"; reads claude-stream-json }\n\
         agent a provider=program\npipeline p { task t agent=a { prompt \"x\" } }\n",
    );
    let why = "Claude requested permissions to use Bash, but you haven't granted it yet.";
    let stream = [
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"git push"}}]}}"#.to_owned(),
        format!(r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"1","is_error":true,"content":"{why}"}}]}}}}"#),
        r#"{"type":"result","subtype":"success","is_error":false,"result":"I could not.","permission_denials":[{"tool_name":"Bash","tool_use_id":"1"},{"tool_name":"Write","tool_use_id":"2"}]}"#.to_owned(),
    ];
    place.write("stream", &(stream.join("\n") + "\n"));
    let ended = place.swarmc(&["run", "flow.kdl"]);
    let ended = ended.expect(
        0,
        &[],
        &[&format!("`t`: its agent was refused the tool `Bash`: {why}"), "refused the tool `Write`"],
    );
    assert_eq!(ended.err.matches("was refused the tool `Bash`").count(), 1, "each is said once: {ended:#?}");
}
