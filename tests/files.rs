//! The file protocol (seed 003) through the binary, a test for each of its sections, with its own examples.
//!
//! The agents are shell scripts: what they do to their folder is what any agent could do.

mod agents;
mod hostile;
mod inputs;
mod recovery;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::specs::{Project, only};

const SPEC: &str = "specs/files/files.kdl";

/// How a script that is done ends: with a summary, and a status that says so.
const DONE: &str = r#"echo Done. >outbox/summary.md; echo '{"state": "completed"}' >status.json"#;

/// A project with one pipeline of these tasks.
fn project(tasks: &str) -> Project {
    let project = Project::new();
    let spec = format!(
        "workflow files {{ description \"The shop's numbers\"; default main }}\n\
         type Sum {{ total int }}\npipeline main {{\n{tasks}\n}}\n"
    );
    fs::write(project.root().join("spec.kdl"), spec).expect("a spec can be written");
    project
}

/// A task that runs a script in its folder.
fn task(name: &str, script: &str, more: &str) -> String {
    format!("task {name} {{\n run \"sh\" \"-c\" ##\"\"\"\ncd \"$SWARM_WORKSPACE\"\n{script}\n\"\"\"##\n {more}\n}}\n")
}

fn run(project: &Project) -> Output {
    project.swarmc(&["run", "spec.kdl"])
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs it, which must come to this exit code; what was said meanwhile.
fn ends(project: &Project, code: i32) -> String {
    let output = run(project);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// The folder of a task's attempt.
fn folder(project: &Project, task: &str, attempt: u32) -> PathBuf {
    only(&project.home().join("runs")).join(format!("agents/{task}/attempt-{attempt}"))
}

fn read(project: &Project, task: &str, path: &str) -> String {
    let path = folder(project, task, 1).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn directory_structure() {
    let list =
        r#"ls -p | tr '\n' ' ' >outbox/listing; cat status.json >outbox/status; ls -A outbox workspace >workspace/x"#;
    let project = project(&task("worker", &format!("{list}; {DONE}"), "files { output listing }"));
    ends(&project, 0);
    assert_eq!(read(&project, "worker", "outbox/listing"), "SKILL.md inbox/ outbox/ status.json workspace/ ");
    assert!(read(&project, "worker", "SKILL.md").starts_with("# worker\n"));
    // The skill of the spec is the file, unchanged.
    let project = self::project(&task("worker", DONE, "files { skill \"specs/files/skills/collector.md\" }"));
    ends(&project, 0);
    let skill = fs::read_to_string(project.root().join("specs/files/skills/collector.md")).expect("it is there");
    assert_eq!(read(&project, "worker", "SKILL.md"), skill);
}

#[test]
fn status_file_specification() {
    // The example, as it stands, in each of its states; it is found again as it was written.
    let example = json!({
        "state": "completed", "started": "2024-01-15T10:30:00Z", "completed": "2024-01-15T11:45:00Z", "error": null,
        "progress": { "current_step": "analyzing_data", "steps_completed": 3, "total_steps": 5 },
        "metrics": { "files_processed": 12, "outputs_generated": 4 }
    });
    let script = format!("echo x >outbox/summary.md; cat >status.json <<'END'\n{example:#}\nEND");
    let project = project(&task("worker", &script, "files"));
    ends(&project, 0);
    assert_eq!(parsed(&read(&project, "worker", "status.json")), example);
    let shown = parsed(&project.done(&["inspect", "--json", "last", "worker"]));
    assert_eq!(shown["tries"][0]["files"]["status"], example, "{shown:#}");
    let shown = project.done(&["inspect", "last", "worker"]);
    assert!(shown.contains("completed 3/5 analyzing_data (files_processed 12, outputs_generated 4)"), "{shown}");
}

#[test]
fn the_times_of_states_are_kept_for_an_agent_that_says_none() {
    let script = "echo x >outbox/summary.md; echo '{\"state\": \"completed\", \"started\": null}' >status.json";
    let project = project(&task("worker", script, "files"));
    ends(&project, 0);
    let shown = parsed(&project.done(&["inspect", "--json", "last", "worker"]));
    let status = &shown["tries"][0]["files"]["status"];
    for name in ["started", "completed"] {
        let time = status[name].as_str().expect("it is a text");
        assert!(time.len() == "2024-01-15T10:30:00Z".len() && time.starts_with("20") && time.ends_with('Z'), "{time}");
    }
}

#[test]
fn state_transitions() {
    let pause = "sleep 0.5";
    let state = |state: &str| format!("echo '{{\"state\": \"{state}\"}}' >status.json");
    let way = |states: &[&str]| states.iter().map(|it| state(it)).collect::<Vec<_>>().join(&format!("; {pause}; "));
    let project = project(
        &[
            task("right", &format!("echo x >outbox/summary.md; {}", way(&["running", "completed"])), "files"),
            task("back", &format!("echo x >outbox/summary.md; {}", way(&["completed", "running"])), "files"),
            task(
                "again",
                &format!("echo x >outbox/summary.md; {}", way(&["running", "pending", "completed"])),
                "files",
            ),
            task("never", "echo x >outbox/summary.md", "files"),
            task("odd", &format!("echo x >outbox/summary.md; {}", state("done")), "files"),
        ]
        .concat(),
    );
    let said = ends(&project, 3);
    assert!(said.contains("✓ right"), "{said}");
    assert!(said.contains("`status.json` went from `completed` to `running`"), "{said}");
    assert!(said.contains("`status.json` went from `running` to `pending`"), "{said}");
    assert!(said.contains("the turn is over, but `status.json` says `pending`"), "{said}");
    assert!(
        said.contains("its `state` is \"done\", and none of `pending`, `running`, `completed` and `failed`"),
        "{said}"
    );
}

#[test]
fn update_protocol() {
    // The runner sets it to `pending` first; the agent to `running`, and to `completed` or `failed` when it is done.
    let begin =
        "cp status.json outbox/before; echo '{\"state\": \"running\"}' >status.json; cp status.json outbox/during";
    let fail = "echo '{\"state\": \"failed\", \"error\": {\"message\": \"no\"}}' >status.json";
    let tasks = [
        task("worker", &format!("{begin}; {DONE}"), "files"),
        task("loser", &format!("{begin}; {fail}"), "files"),
        // By that the runner determines what comes next.
        task("next", DONE, "depends-on worker; files"),
        task("never", DONE, "depends-on loser; files"),
    ];
    let project = project(&tasks.concat());
    let said = ends(&project, 3);
    let state = |task: &str, path: &str| parsed(&read(&project, task, path))["state"].clone();
    for (task, last) in [("worker", "completed"), ("loser", "failed")] {
        let states = ["outbox/before", "outbox/during", "status.json"].map(|path| state(task, path));
        assert_eq!(states, [json!("pending"), json!("running"), json!(last)]);
        let shown = parsed(&project.done(&["inspect", "--json", "last", task]));
        assert_eq!(shown["tries"][0]["files"]["status"]["state"], last, "{shown:#}");
    }
    let before = parsed(&read(&project, "worker", "outbox/before"));
    assert_eq!(before.get("error"), Some(&Value::Null));
    assert!(said.contains("✓ next") && said.contains("loser failed: no") && said.contains("never: skipped"), "{said}");
}

#[test]
fn instructions_md_format() {
    let project = project(&task(
        "worker",
        DONE,
        r#"description "Sum the numbers up"
        files {
            input "data/a.txt" "The numbers"
            input "data/"
            input "data/huge.bin" "All there is"
            output "sum.json" "The sum" type=Sum required=#false
            output "notes/" required=#false
            requirement "Sum in task {{ task.name }}"
            requirement "Round nothing"
            criterion "The sum is right"
            constraint "Take no more than a minute"
        }"#,
    ));
    fs::create_dir(project.root().join("data")).expect("a folder can be made");
    fs::write(project.root().join("data/a.txt"), "1\n2\n").expect("a file can be written");
    fs::write(project.root().join("data/huge.bin"), vec![b'x'; 1024 * 1024 + 1]).expect("a file can be written");
    ends(&project, 0);
    let huge = project.root().join("data/huge.bin").canonicalize().expect("it is there");
    let data = huge.parent().expect("it lies in a folder").display();
    let text = read(&project, "worker", "inbox/instructions.md");
    let (before, outputs) = text.split_once("## Output Expectations\n").expect("it says what is expected");
    let (before, inputs) = before.split_once("## Context\n").expect("there is a context");
    assert_eq!(before, "# Task: worker\n\n## Objective\nSum the numbers up\n\n");
    let (context, inputs) = inputs.split_once("## Inputs Provided\n").expect("there are inputs");
    assert!(context.starts_with("Run `sh -c "), "{context}");
    assert_eq!(
        inputs,
        format!(
            "- `a.txt` - The numbers\n\
             - `{data}/` - `data/` of the project (by reference, 1048581 bytes: read it there, it is not copied)\n\
             - `{}` - All there is (by reference, 1048577 bytes: read it there, it is not copied)\n\n\
             ## Requirements\n1. Sum in task worker\n2. Round nothing\n\n\
             ## Success Criteria\n- [ ] The sum is right\n\n\
             ## Constraints\n- Take no more than a minute\n\n",
            huge.display()
        )
    );
    let mut lines = outputs.lines();
    let first = lines.next().expect("there is a line");
    assert!(
        first.starts_with("- Place main deliverable in `outbox/sum.json`: The sum (optional). It is JSON"),
        "{first}"
    );
    assert!(first.contains("\"total\""), "{first}");
    assert_eq!(lines.next(), Some("- Place further deliverable in `outbox/notes/` (optional)"));
    assert_eq!(lines.next(), Some("- Include summary in `outbox/summary.md`"));
    assert_eq!(lines.next(), None);
}

#[test]
fn file_transfer_rules() {
    // Copies, read-only; originals stay with the project; large ones by path; both where the spec wants them.
    let script = format!(
        "cp inbox/numbers/a.txt outbox/copy; cp inbox/references.json outbox/; stat -c %a inbox inbox/numbers/a.txt \
         >outbox/modes; {DONE}"
    );
    let files = r#"files {
        input "a.txt" copy-to="numbers"
        input "a.txt" reference=#true
        input "large.bin"
        input "linked/"
        input "twice/" reference=#true
    }"#;
    let project = project(&task("worker", &script, files));
    fs::write(project.root().join("a.txt"), "1\n").expect("a file can be written");
    fs::write(project.root().join("large.bin"), vec![0; 2 * 1024 * 1024]).expect("a file can be written");
    for name in ["linked", "twice"] {
        fs::create_dir(project.root().join(name)).expect("a folder can be made");
    }
    symlink("../a.txt", project.root().join("linked/a.txt")).expect("a link can be made");
    fs::write(project.root().join("twice/one"), "1\n").expect("a file can be written");
    fs::hard_link(project.root().join("twice/one"), project.root().join("twice/two")).expect("a link can be made");
    ends(&project, 0);
    assert_eq!(read(&project, "worker", "outbox/copy"), "1\n");
    assert_eq!(read(&project, "worker", "outbox/modes"), "500\n400\n");
    assert_eq!(fs::read_to_string(project.root().join("a.txt")).expect("it is there"), "1\n");
    let references = parsed(&read(&project, "worker", "outbox/references.json"));
    let root = project.root().canonicalize().expect("it is there");
    let expected = json!({ "references": [
        { "name": "a.txt", "path": root.join("a.txt"), "bytes": 2 },
        { "name": "large.bin", "path": root.join("large.bin"), "bytes": 2_097_152 },
        { "name": "linked", "path": root.join("linked/"), "bytes": 0 },
        { "name": "twice", "path": root.join("twice/"), "bytes": 0 },
    ] });
    assert_eq!(references, expected);
    assert!(!folder(&project, "worker", 1).join("inbox/large.bin").exists());
}

#[test]
fn required_outputs() {
    let tasks = [
        task("all", &format!("echo 3 >outbox/sum; {DONE}"), "files { output sum }"),
        task("none", DONE, "files { output sum; output \"notes/\" }"),
        task("silent", "echo 3 >outbox/sum; echo '{\"state\": \"completed\"}' >status.json", "files { output sum }"),
        task(
            "typed",
            &format!("echo '{{\"total\": 3}}' >outbox/sum.json; {DONE}"),
            "output Sum; files { output \"sum.json\" }",
        ),
        task(
            "wrong",
            &format!("echo '{{\"total\": \"three\"}}' >outbox/sum.json; {DONE}"),
            "files { output \"sum.json\" type=Sum }",
        ),
        task("reader", &format!("cat >outbox/read; {DONE}"), "stdin \"<<output:typed.total>>\"; files { output read }"),
    ];
    let project = project(&tasks.concat());
    let said = ends(&project, 3);
    assert!(said.contains("✓ all") && said.contains("✓ typed") && said.contains("✓ reader"), "{said}");
    assert!(
        said.contains("there is no `outbox/sum`, which is required; there is no file in `outbox/notes/`"),
        "{said}"
    );
    assert!(said.contains("there is no `outbox/summary.md`, which is required"), "{said}");
    assert!(said.contains("`outbox/sum.json` is not of its type: at /total: "), "{said}");
    // The output of a task is the summary; of a typed one, its main deliverable.
    assert_eq!(project.output("all"), "Done.");
    assert_eq!(project.output("typed"), "{\"total\":3}");
    assert_eq!(read(&project, "reader", "outbox/read"), "3");
}

#[test]
fn optional_outputs_and_output_naming_convention() {
    let script = format!(
        "mkdir outbox/data; echo a,b >outbox/data/file1.csv; echo '[]' >outbox/data/file2.json; echo '{{}}' \
         >outbox/metadata.json; echo log >outbox/changelog.md; echo none >outbox/issues.md; echo x >outbox/main.txt; {DONE}"
    );
    let broken = format!("echo '{{' >outbox/metadata.json; {DONE}");
    let files = r#"files { output "main.txt" copy-to="target/main.txt"; output "data/" copy-to="target/all" }"#;
    let project = project(&[task("worker", &script, files), task("broken", &broken, "files")].concat());
    let said = ends(&project, 3);
    assert!(said.contains("`outbox/metadata.json`: it is no JSON"), "{said}");
    let shown = parsed(&project.done(&["inspect", "--json", "last", "worker"]));
    let kept: Vec<&str> = shown["tries"][0]["files"]["outbox"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["path"].as_str())
        .collect();
    let expected =
        ["changelog.md", "issues.md", "main.txt", "metadata.json", "summary.md", "data/file1.csv", "data/file2.json"];
    let (mut kept, mut expected) = (kept, expected.to_vec());
    kept.sort_unstable();
    expected.sort_unstable();
    assert_eq!(kept, expected);
    // What is to be in the project is there.
    let copied = |path: &str| fs::read_to_string(project.root().join("target").join(path)).expect("it was copied");
    assert_eq!((copied("main.txt"), copied("all/file1.csv")), ("x\n".to_owned(), "a,b\n".to_owned()));
}

#[test]
fn workspace_protocol() {
    // Whatever lies there, nobody looks at it.
    let script = format!("ln -s /etc/passwd workspace/link; mkfifo workspace/pipe; echo x >workspace/x; {DONE}");
    let project = project(&task("worker", &script, "files"));
    ends(&project, 0);
    assert_eq!(read(&project, "worker", "workspace/x"), "x\n");
}

#[test]
fn manifest_file() {
    let make = format!("echo '[1]' >outbox/data.json; echo web >outbox/sources.md; {DONE}");
    let tasks = [
        task("data-collector", &make, "files { output \"data.json\"; output \"sources.md\" }"),
        task("schema-validator", DONE, "files"),
        task(
            "analyst",
            &format!("cat inbox/source_data/data.json inbox/source_data/sources.md >outbox/both; {DONE}"),
            r#"files {
                input "data.json" from=data-collector copy-to="source_data"
                input "sources.md" from=data-collector copy-to="source_data"
                wait-for data-collector schema-validator
                output both
            }"#,
        ),
    ];
    let project = project(&tasks.concat());
    ends(&project, 0);
    // The example of the seed, word by word.
    let expected = json!({
        "depends_on": [
            {
                "agent": "data-collector",
                "outputs": ["outbox/data.json", "outbox/sources.md"],
                "copy_to": "inbox/source_data/"
            }
        ],
        "wait_for": ["data-collector", "schema-validator"]
    });
    assert_eq!(parsed(&read(&project, "analyst", "inbox/dependencies.json")), expected);
    assert_eq!(read(&project, "analyst", "outbox/both"), "[1]\nweb\n");
    assert!(!folder(&project, "schema-validator", 1).join("inbox/dependencies.json").exists());
}

#[test]
fn sequential_execution() {
    // Who depends on a failed one does not begin.
    let tasks = [
        task(
            "first",
            "echo '{\"state\": \"failed\", \"error\": {\"message\": \"no\"}}' >status.json",
            "files { output a }",
        ),
        task("second", DONE, "files { input a from=first }"),
    ];
    let project = project(&tasks.concat());
    let said = ends(&project, 3);
    assert!(said.contains("first failed: no") && said.contains("second: skipped"), "{said}");
    assert!(!folder(&project, "second", 1).exists());
}

#[test]
fn parallel_execution() {
    // Each waits until the other one has begun.
    let wait = |mine: &str, other: &str| {
        format!("touch $ROOT/{mine}; until [ -e $ROOT/{other} ]; do sleep 0.01; done; {DONE}")
    };
    let more = r#"env { ROOT "<<run:dir>>" }; timeout "30s"; files"#;
    let more = more.replace("env { ROOT \"<<run:dir>>\" }", "env ROOT=\"<<run:dir>>\"");
    let project = project(&[task("one", &wait("one", "two"), &more), task("two", &wait("two", "one"), &more)].concat());
    ends(&project, 0);
}

#[test]
fn the_example_comes_to_a_report() {
    let project = Project::new();
    let printed = project.done(&["run", SPEC]);
    assert_eq!(printed, "Sales of 3 regions, from `orders.csv`: 5 orders, all of them kept.\n");
    let report = fs::read_to_string(project.root().join("target/files/report.md")).expect("there is a report");
    assert!(report.contains("- north: 165.75\n- south: 99.90\n- west: 230.10\n"), "{report}");
    // The folders are kept, and nobody changes them any more.
    let mode = |path: &str| folder(&project, "collector", 1).join(path).metadata().expect("it is there").permissions();
    assert_eq!(mode("outbox/data.json").mode() & 0o777, 0o400);
    assert_eq!(mode("outbox").mode() & 0o777, 0o500);
    // Until the run is pruned.
    project.done(&["prune", "last"]);
    assert_eq!(fs::read_dir(project.home().join("runs")).expect("it is there").count(), 0);
}

#[test]
fn message_passing_pattern() {
    // The message of the seed, with its types, along an edge and back; what goes nowhere is told to people.
    let ask = r#"cat >messages/agent-a_to_agent-b_001.json <<'END'
{
  "from": "agent-a",
  "to": "agent-b",
  "timestamp": "2024-01-15T10:30:00Z",
  "type": "question",
  "content": { "rows": 3, "message": "Are these enough?" }
}
END
cat messages/agent-b_to_agent-a_001.json >outbox/answer 2>/dev/null || true
echo '{"to": "nobody", "type": "update"}' >messages/agent-a_to_nobody_002.json
echo '{"from": "agent-b", "to": "agent-a", "type": "update"}' >messages/agent-a_to_agent-a_003.json
echo '{"to": "agent-b", "type": "shout"}' >messages/agent-a_to_agent-b_004.json
[ $SWARM_ATTEMPT = 1 ] || rm messages/agent-a_to_agent-b_001.json
"#;
    let reply = "cp messages/agent-a_to_agent-b_001.json outbox/question\n\
                 echo '{\"to\": \"agent-a\", \"type\": \"answer\", \"content\": \"They are.\"}' >messages/agent-b_to_agent-a_001.json\n";
    let tasks = [
        "edges { agent-a -> agent-b response=required }\n".to_owned(),
        task("agent-a", &format!("{ask}{DONE}"), "files"),
        task("agent-b", &format!("{reply}{DONE}"), "files; stdin \"<<inbox>>\""),
    ];
    let project = project(&tasks.concat());
    let said = ends(&project, 0);
    let question = parsed(&read(&project, "agent-b", "outbox/question"));
    assert_eq!(
        (&question["from"], &question["to"], &question["type"], &question["content"]),
        (
            &json!("agent-a"),
            &json!("agent-b"),
            &json!("question"),
            &json!({ "rows": 3, "message": "Are these enough?" })
        )
    );
    assert!(question["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{question}");
    let answer = fs::read_to_string(folder(&project, "agent-a", 2).join("outbox/answer")).expect("it is there");
    let answer = parsed(&answer);
    assert_eq!((&answer["type"], &answer["content"]["message"]), (&json!("answer"), &json!("They are.")));
    for refused in
        ["no edge leads from `agent-a` to `nobody`", "but this folder belongs to `agent-a`", "unknown variant `shout`"]
    {
        assert!(said.contains(refused), "{refused}: {said}");
    }
}

#[test]
fn message_passing_pattern_sends_nothing_of_an_attempt_that_fails_its_check() {
    let tell = "echo '{\"to\": \"b\", \"type\": \"data_ready\", \"content\": \"There\"}' >messages/a_to_b_001.json\n";
    let check = "files; retry 1; check \"test -e passes || { touch passes; exit 1; }\"";
    let tasks = [
        "edges { a -> b }\n".to_owned(),
        task("a", &format!("{tell}{DONE}"), check),
        task("b", &format!("ls messages >outbox/read; {DONE}"), "files; stdin \"<<inbox>>\""),
    ];
    let project = project(&tasks.concat());
    ends(&project, 0);
    assert!(folder(&project, "a", 2).join("messages").exists(), "it was tried again");
    assert_eq!(read(&project, "b", "outbox/read"), "a_to_b_001.json\n");
    assert!(!folder(&project, "b", 2).exists(), "it was sent once");
}

#[test]
fn message_passing_pattern_updates_go_along_any_edge() {
    let update = |to: &str| {
        format!(
            "echo '{{\"to\": \"{to}\", \"type\": \"update\", \"content\": \"Halfway\"}}' >messages/a_to_{to}_001.json\n"
        )
    };
    let tasks = [
        "edges { a -> b; a -> c kind=signal }\n".to_owned(),
        task("a", &[update("b"), update("c"), DONE.to_owned()].concat(), "files"),
        task("b", &format!("cp messages/a_to_b_001.json outbox/it; {DONE}"), "files; stdin \"<<inbox>>\""),
        task(
            "c",
            &format!("cp messages/a_to_c_001.json outbox/it; {DONE}"),
            "depends-on a; files; stdin \"<<inbox>>\"",
        ),
    ];
    let project = project(&tasks.concat());
    let said = ends(&project, 0);
    for reader in ["b", "c"] {
        let it = parsed(&read(&project, reader, "outbox/it"));
        assert_eq!((&it["type"], &it["content"]["message"]), (&json!("update"), &json!("Halfway")), "{it}\n{said}");
    }
}

#[test]
fn real_agents_work_in_their_folder() {
    // A program of the project, with a relative path to it, that writes where it stands.
    let project = project(
        r##"task worker agent=coder {
            prompt "Count to three."
            check "test -f spec.kdl"
            files { output "count" }
        }
        }
        provider programs { exec "./agent.sh" }
        agent coder provider=programs { can write-files }
        pipeline other { task x { value "1" }"##,
    );
    let script = project.root().join("agent.sh");
    fs::write(&script, format!("#!/bin/sh\ncat >outbox/prompt; echo 1 2 3 >outbox/count; {DONE}; echo answered\n"))
        .expect("a script can be written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
    ends(&project, 0);
    let prompt = read(&project, "worker", "outbox/prompt");
    let place = folder(&project, "worker", 1);
    assert!(prompt.starts_with("Count to three.\n\nYou work in the folder `"), "{prompt}");
    assert!(prompt.contains(&format!("`{}`", place.display())) && prompt.contains("inbox/instructions.md"), "{prompt}");
    assert_eq!(project.output("worker"), "Done.");
}

#[test]
fn status_is_shown_while_the_turn_goes_on() {
    let script = format!(
        "echo '{{\"state\": \"running\", \"progress\": {{\"current_step\": \"counting\", \"steps_completed\": 1, \"total_steps\": 4}}, \
         \"metrics\": {{\"rows\": 12}}}}' >status.json; until [ -e workspace/go ]; do sleep 0.01; done; {DONE}"
    );
    let project = project(&task("worker", &script, "files; timeout \"60s\""));
    let mut running = project
        .command(&["run", "spec.kdl"])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("swarmc starts");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let shown = loop {
        let shown = project.done(&["ps"]);
        if shown.contains("counting") || std::time::Instant::now() > deadline {
            break shown;
        }
        std::thread::yield_now();
    };
    let inspected = project.done(&["inspect", "last", "worker"]);
    let json = parsed(&project.done(&["ps", "--json"]));
    fs::write(folder(&project, "worker", 1).join("workspace/go"), "").expect("a file can be written");
    assert!(running.wait().expect("it ends").success());
    assert!(shown.contains("worker: running 1/4 counting (rows 12)"), "{shown}");
    assert!(inspected.contains("status  running 1/4 counting (rows 12)"), "{inspected}");
    assert_eq!(json["runs"][0]["agents"][0]["status"]["progress"]["current_step"], "counting", "{json}");
    assert!(!project.done(&["ps", "--all"]).contains("counting"));
}

#[test]
fn the_folder_of_a_killed_runner_is_kept_aside() {
    // The first time the agent kills the runner of its turn, and leaves half of its work.
    let script = format!(
        "echo x >>$ROOT/turns; if [ $(wc -l <$ROOT/turns) = 1 ]; then echo half >outbox/sum; printf '{{\"state' >status.json; \
         kill -9 $PPID; sleep 60; fi; ls outbox >outbox/before; {DONE}"
    );
    let project = project(&task("worker", &script, "env ROOT=\"<<run:dir>>\"; files { output before }"));
    let output = run(&project);
    assert_eq!(output.status.code(), None, "{}", err(&output));
    project.done(&["resume", "last"]);
    // What was left is neither found nor lost.
    assert_eq!(read(&project, "worker", "outbox/before"), "before\n");
    let aside = folder(&project, "worker", 1).with_file_name("attempt-1.before");
    assert_eq!(fs::read_to_string(aside.join("outbox/sum")).expect("it is there"), "half\n");
}
