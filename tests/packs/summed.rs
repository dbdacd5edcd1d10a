//! Files of context packs that an agent sums up (`summary=agent`).

use std::fs;

use super::{Project, folder, packed, plain, write};
use crate::specs::texts;

/// Tasks that read files which an agent sums up.
const SUMMED: &str = r##"
workflow packed { default main }
provider told {
    script { answer #"{"files": [{"path": "src/a.rs", "summary": "Reads\n dates."}, {"path": "x", "summary": "y"}]}"# }
}
provider echo { exec cat; prompt stdin }
agent scout provider=told
agent coder provider=echo
context-pack impl { files "src/**/*.rs" summary=agent agent=scout }
pipeline main {
    task one agent=coder { prompt "First" context=impl }
    task two agent=coder { depends-on one; prompt "Second:\n<<context:impl>>" }
    task change { depends-on two; run "echo '// Another text' > src/a.rs" }
    task three agent=coder { depends-on change; prompt "Third" context=impl }
    task four { depends-on three; run cat; stdin "<<context:impl>>" }
}
"##;

fn summed_project(spec: &str) -> Project {
    let project = plain(spec);
    write(&project.root(), "src/a.rs", "//! By the rule.\nfn a() {}\n");
    write(&project.root(), "src/b.rs", "//! Reads times. Well.\nfn b() {}\n");
    project
}

/// The prompts in which files were to be summed up, by the file that they lie in.
fn asked_to_sum_up(project: &Project) -> Vec<(String, String)> {
    let prompts = texts(&folder(project).join("prompts"));
    let asked = prompts.into_iter().filter(|(_, prompt)| prompt.starts_with("Sum up each of these files"));
    asked.collect()
}

#[test]
fn context_pack_file_summaries_are_made_by_an_agent_once_a_text() {
    let project = summed_project(SUMMED);
    project.done(&["run", "spec.kdl"]);
    let files = |step: &str| packed(&project.output(step))["relevantFiles"].clone();
    let both = serde_json::json!([
        { "path": "src/a.rs", "summary": "Reads dates." },
        { "path": "src/b.rs", "summary": "Reads times; declares b" },
    ]);
    assert_eq!((files("one"), files("two")), (both.clone(), both));
    let omitted = packed(&project.output("one"))["meta"]["omitted"].clone();
    assert_eq!(omitted, serde_json::json!(["`files src/**/*.rs`: `scout` summed up 1 of 2 files, a rule the others"]));
    // A text that has changed is summed up anew, and alone; a command is given what is known.
    assert_eq!((files("three")[0]["summary"].clone(), files("four")), ("Reads dates.".into(), files("three")));
    let asked = asked_to_sum_up(&project);
    let [(first, both), (second, changed)] = &asked[..] else { panic!("{asked:?}") };
    assert!(first.ends_with("one.1.txt") && second.ends_with("three.1.txt"), "{first} {second}");
    assert!(both.contains("--- File \"src/a.rs\" ---\n//! By the rule.\nfn a() {}\n--- End of file ---"), "{both}");
    assert!(changed.contains("// Another text\n--- End") && !changed.contains("src/b.rs"), "{changed}");
    let recorded = project.swarmc(&["run", "spec.kdl", "--record", "recorded"]);
    let printed = String::from_utf8_lossy(&recorded.stderr);
    assert!(printed.contains("  one: agent `scout` sums up files for its context\n"), "{printed}");
    write(&project.root(), "src/b.rs", "//! Another file.\n");
    project.done(&["run", "spec.kdl", "--replay", "recorded"]);
}

#[test]
fn context_pack_file_summaries_follow_the_rule_where_the_agent_fails() {
    let check = |provider: &str, said: &str| {
        let spec = SUMMED
            .replace("provider=told", "provider=other")
            .replace("agent scout", &format!("provider other {{ {provider} }}\nagent scout"));
        let project = summed_project(&spec);
        let output = project.swarmc(&["run", "spec.kdl"]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && printed.contains(said), "{printed}");
        let pack = packed(&project.output("one"));
        assert_eq!(pack["relevantFiles"][0]["summary"], "By the rule; declares a");
        assert_eq!(
            pack["meta"]["omitted"][0],
            "`files src/**/*.rs`: `scout` summed up 0 of 2 files, a rule the others"
        );
        // Each turn asks once, and what it says is no output of the task.
        assert_eq!(asked_to_sum_up(&project).len(), 3);
    };
    check("exec sh -c \"exit 3\"", "`one`: a rule sums up the files of its context: ");
    check("script { answer \"no JSON\" }", "`one`: a rule sums up the files of its context: ");
    check("exec no-such-program", "`one`: a rule sums up the files of its context: ");
}

#[test]
fn context_pack_file_summaries_count_for_the_budget() {
    let allowing = |calls: u32| {
        summed_project(&SUMMED.replace("workflow packed {", &format!("budget calls={calls}\nworkflow packed {{")))
    };
    // Each of three tasks may have its files summed up before its turn.
    let output = allowing(5).swarmc(&["check", "spec.kdl"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("pipeline `main` can take 6 agent turns, and its budget allows 5"), "{printed}");
    allowing(6).done(&["run", "spec.kdl"]);
    // One for which the budget of its agent has no room is not taken, and the task goes on.
    let project =
        summed_project(&SUMMED.replace("agent scout provider=told", "agent scout provider=told { budget calls=1 }"));
    project.done(&["run", "spec.kdl"]);
    assert_eq!(asked_to_sum_up(&project).len(), 1);
    assert_eq!(packed(&project.output("three"))["relevantFiles"][0]["summary"], "Another text");
}

#[test]
fn context_pack_file_summaries_come_before_the_turn_that_reads_the_inbox() {
    let nodes = r##"provider hands {
    script { answer "{\"swarm\": \"send_handoff\", \"to\": \"two\", \"message\": \"Over\"}" }
}
agent handing provider=hands
pipeline main {
    edges { one -> two }
    task one agent=handing { prompt "First" }
    task two agent=coder { prompt "Go on:\n<<inbox>>" context=impl }
}
"##;
    let spec = SUMMED.split("pipeline main").next().expect("there is a beginning").to_owned() + nodes;
    let project = summed_project(&spec);
    project.done(&["run", "spec.kdl", "--record", "recorded"]);
    let output = project.output("two");
    assert!(output.contains("Reads dates.") && output.contains("\"message\":\"Over\""), "{output}");
    let asked = asked_to_sum_up(&project);
    assert!(
        matches!(&asked[..], [(file, prompt)] if file.ends_with("two.1.txt") && !prompt.contains("Over")),
        "{asked:?}"
    );
    // Whoever sums up has no door to the run.
    let journal = fs::read_to_string(folder(&project).join("journal.jsonl")).expect("a journal can be read");
    let of_two =
        |event: &str| journal.lines().filter(|line| line.contains(event) && line.contains("\"name\":\"two\"")).count();
    assert_eq!((of_two("attempt_started"), of_two("inputs_taken")), (2, 1), "{journal}");
    write(&project.root(), "src/b.rs", "//! Another file.\n");
    project.done(&["run", "spec.kdl", "--replay", "recorded"]);
}

#[test]
fn context_pack_file_summaries_are_no_try_of_the_task() {
    let spec = SUMMED.split("pipeline main").next().expect("there is a beginning").to_owned()
        + r#"provider shaky { exec sh -c "test -e seen || { touch seen; exit 1; }; cat"; prompt stdin }
agent weak provider=shaky
pipeline main { task one agent=weak { prompt "First" context=impl; retry 1 } }
"#;
    let project = summed_project(&spec);
    project.done(&["run", "spec.kdl"]);
    assert_eq!(packed(&project.output("one"))["relevantFiles"][0]["summary"], "Reads dates.");
    let prompts = texts(&folder(&project).join("prompts"));
    assert_eq!(prompts.keys().filter(|name| name.ends_with(".txt")).count(), 3, "{prompts:?}");
    let inspected = project.done(&["inspect", "last", "one"]);
    assert!(inspected.contains("prompt  prompts/one.1.txt") && inspected.contains("prompts/one.3.txt"), "{inspected}");
}

#[test]
fn context_pack_file_summaries_end_where_files_change_for_ever() {
    // Whoever sums up changes what it was asked about.
    let told = r##"provider told {
    exec sh -c "cat >/dev/null; echo seen >>src/a.rs; echo '{\"files\": []}'"; prompt stdin
}"##;
    let check = |files: usize, asked: usize| {
        let spec = format!(
            "budget calls={}\nworkflow packed {{ default main }}\n{told}\nprovider echo {{ exec cat; prompt stdin }}\n\
             agent scout provider=told\nagent coder provider=echo\n\
             context-pack impl {{ files \"src/**/*.rs\" summary=agent agent=scout max=40 }}\n\
             pipeline main {{ task one agent=coder {{ prompt \"First\" context=impl }} }}\n",
            asked + 1
        );
        let project = summed_project(&spec);
        (2..files).for_each(|number| write(&project.root(), &format!("src/f{number}.rs"), "fn f() {}\n"));
        project.done(&["run", "spec.kdl"]);
        assert_eq!(asked_to_sum_up(&project).len(), asked);
        let omitted = packed(&project.output("one"))["meta"]["omitted"][0].to_string();
        assert!(omitted.contains(&format!("`scout` summed up 0 of {files} files, a rule the others")), "{omitted}");
    };
    check(2, 2);
    check(40, 2);
}

#[test]
fn context_pack_file_summaries_are_not_counted_by_what_people_write() {
    let spec = r##"
workflow packed { default main }
provider told { exec sh -c "cat >/dev/null; echo $SWARM_ATTEMPT >>attempts; echo '{\"files\": []}'"; prompt stdin }
provider shaky { exec sh -c "cat >/dev/null; echo $SWARM_ATTEMPT >>attempts; test $SWARM_ATTEMPT = 2"; prompt stdin }
provider recorded { script { answer "first try" attempt=1; answer "second try" attempt=2 } }
agent scout provider=told
agent weak provider=shaky
agent coder provider=recorded
context-pack impl { files "src/a.rs" summary=agent agent=scout }
context-pack more { files "src/b.rs" summary=agent agent=scout }
pipeline main {
    task one agent=weak { prompt "First" context=impl; retry 1 backoff="1ms" }
    task two agent=coder { depends-on one; prompt "Second" context=more }
}
test counts { fake one "done"; expect { output two equals="first try"; prompt two attempt=1 contains="Second" } }
"##;
    let project = summed_project(spec);
    project.done(&["run", "spec.kdl"]);
    assert_eq!(project.output("two"), "first try");
    assert_eq!(fs::read_to_string(project.root().join("attempts")).expect("it is there"), "1\n1\n2\n1\n");
    project.done(&["test", "spec.kdl"]);
}

#[test]
fn context_pack_file_summaries_show_no_end_of_a_secret() {
    let spec = SUMMED.replace("workflow packed", "secret token env=\"TOKEN\"\nworkflow packed");
    let project = summed_project(&spec);
    let secret = "s3cr3t-t0ken-value";
    // It stands where a summing turn is shown the end of a file, and where the rule ends a summary.
    let text = format!("// {}\n{}{secret}\n", "a".repeat(60), "x".repeat(4096 - 64 - 8 - 64 - 12));
    write(&project.root(), "src/a.rs", &text);
    write(&project.root(), "src/b.rs", &format!("// {} {secret}\n", "b".repeat(145)));
    let output = project.command(&["run", "spec.kdl", "--record", "recorded"]).env("TOKEN", secret).output();
    assert!(output.expect("swarmc starts").status.success());
    let mut shown = texts(&project.root().join("recorded"));
    shown.extend(texts(&folder(&project).join("prompts")));
    assert!(shown.values().any(|text| text.contains("⟦secret:TOKEN⟧")), "{shown:?}");
    for (path, text) in &shown {
        assert!(!text.contains("s3cr3t"), "{path}: {text}");
    }
}

#[test]
fn context_pack_file_summaries_are_told_from_turns_by_inspect() {
    let tool = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Read","input":{}}]}}"#;
    let answer = r#"{"type":"result","subtype":"success","is_error":false,"result":"{\"files\": []}"}"#;
    let spec = SUMMED.split("pipeline main").next().expect("there is a beginning").to_owned()
        + r#"provider claude { exec sh "claude.sh"; prompt stdin; reads claude-stream-json }
agent reader provider=claude
pipeline main { task one agent=coder { prompt "First" context=impl } }
"#;
    let project = summed_project(&spec.replace("agent=scout", "agent=reader"));
    write(&project.root(), "claude.sh", &format!("cat >/dev/null\necho '{tool}'\necho '{answer}'\n"));
    project.done(&["run", "spec.kdl"]);
    let text = project.done(&["inspect", "last", "one"]);
    assert!(text.contains("attempt 1: `reader` sums up files\n") && !text.contains("attempt 2:"), "{text}");
    assert!(text.contains("tool    turn 1: Read {}\n"), "{text}");
    let tries = super::inspected(&project, "one")["tries"].clone();
    assert_eq!((&tries[0]["summarizer"], &tries[1]["summarizer"]), (&"reader".into(), &serde_json::Value::Null));
}
