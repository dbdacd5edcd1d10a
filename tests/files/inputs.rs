//! Inputs that are given by reference, and those that may be absent (seed 003, file transfer rules and manifest file).

use std::fs;

use serde_json::json;

use super::{DONE, ends, err, folder, parsed, project, read, task};

#[test]
fn file_transfer_rules_the_size_above_which_inputs_go_by_reference_is_declared() {
    let files = |most: &str| format!("files {most} {{ input \"a.txt\"; input \"b.txt\" }}");
    let project = project(&[task("small", DONE, &files("copy-max=\"1KB\"")), task("usual", DONE, &files(""))].concat());
    fs::write(project.root().join("a.txt"), vec![b'a'; 1024]).expect("a file can be written");
    fs::write(project.root().join("b.txt"), vec![b'b'; 1025]).expect("a file can be written");
    ends(&project, 0);
    let inbox = |task: &str, name: &str| folder(&project, task, 1).join("inbox").join(name).exists();
    assert!(inbox("small", "a.txt") && !inbox("small", "b.txt"));
    assert!(inbox("usual", "a.txt") && inbox("usual", "b.txt"));
    let references = parsed(&read(&project, "small", "inbox/references.json"));
    assert_eq!(references["references"][0]["bytes"], 1025);
    assert_eq!(references["references"].as_array().map(Vec::len), Some(1));
}

#[test]
fn manifest_file_says_which_inputs_are_absent() {
    let tasks = [
        task(
            "maker",
            &format!("echo 1 >outbox/sure.md; {DONE}"),
            r#"files { output "sure.md"; output "more.md" required=#false }"#,
        ),
        task(
            "user",
            DONE,
            r#"files {
                input "sure.md" "What there is" from=maker
                input "more.md" "What there may be" from=maker required=#false
                input "issues.md" from=maker copy-to="theirs" required=#false
                input "partial/" from=maker required=#false
                input "docs/notes.md" required=#false
            }"#,
        ),
    ];
    let project = project(&tasks.concat());
    ends(&project, 0);
    let expected = json!({
        "depends_on": [
            {
                "agent": "maker", "outputs": ["outbox/sure.md"], "copy_to": "inbox/",
                "absent": ["outbox/more.md", "outbox/partial/"]
            },
            { "agent": "maker", "outputs": [], "copy_to": "inbox/theirs/", "absent": ["outbox/issues.md"] },
        ],
        "wait_for": ["maker"]
    });
    assert_eq!(parsed(&read(&project, "user", "inbox/dependencies.json")), expected);
    let told = read(&project, "user", "inbox/instructions.md");
    for line in [
        "- `sure.md` - What there is\n",
        "- `more.md` - What there may be (absent: it may be, so do without it)\n",
        "- `issues.md` - `issues.md` of `maker` (absent: it may be, so do without it)\n",
        "- `docs/notes.md` - `docs/notes.md` of the project (absent: it may be, so do without it)\n",
    ] {
        assert!(told.contains(line), "{told}");
    }
    assert!(!folder(&project, "user", 1).join("inbox/references.json").exists());
    let again = project.swarmc(&["run", "spec.kdl", "--record", "recorded"]);
    assert_eq!(again.status.code(), Some(0), "{}", err(&again));
    let replayed = project.swarmc(&["run", "spec.kdl", "--replay", "recorded"]);
    assert_eq!(replayed.status.code(), Some(0), "{}", err(&replayed));
    // What is there is given.
    let tasks = tasks.concat().replace("echo 1 >outbox/sure.md", "echo 1 | tee outbox/more.md >outbox/sure.md");
    let project = super::project(&tasks);
    ends(&project, 0);
    assert_eq!(read(&project, "user", "inbox/more.md"), "1\n");
}
