//! Agents that do with their folder what they should not.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{DONE, ends, project, read, task};

/// What is said of an agent that does `script`.
fn said(script: &str, more: &str) -> String {
    let project = project(&task("worker", script, more));
    fs::write(project.root().join("a.txt"), "given").expect("a file can be written");
    ends(&project, 3)
}

#[test]
fn inboxes_are_read_only() {
    for (script, expected) in [
        ("chmod u+w inbox/a.txt; echo x >inbox/a.txt", "the agent changed `inbox/a.txt`, which is read-only"),
        ("chmod u+w inbox; rm -f inbox/a.txt", "the agent changed its inputs: in `inbox/`, there is no `a.txt`"),
        ("chmod u+w inbox; echo x >inbox/b.txt", "the agent wrote `inbox/b.txt`: its inbox is read-only"),
        ("chmod u+w inbox; rm -f inbox/a.txt; ln -s /etc/passwd inbox/a.txt", "`a.txt` is a link"),
        ("chmod u+w inbox; mv inbox gone; ln -s gone inbox", "`inbox/` was replaced by something that is no folder"),
        ("chmod u+w SKILL.md; echo x >SKILL.md", "the agent changed `SKILL.md`, which is read-only"),
    ] {
        // Whatever else it did right, and whatever its process came to.
        for end in ["", "; exit 4"] {
            let said = said(&format!("{DONE}; {script}{end}"), "files { input \"a.txt\" }");
            assert!(said.contains(expected), "{script}: {said}");
        }
    }
}

#[test]
fn no_link_and_no_device_is_collected() {
    for (script, expected) in [
        ("rm -rf outbox; ln -s /etc outbox", "`outbox/` was replaced by something that is no folder"),
        ("rm -rf outbox", "`outbox/` is gone"),
        ("ln -s /etc/passwd outbox/sum", "`outbox/sum` is a link"),
        ("mkdir outbox/d; ln -s ../../.. outbox/d/up", "`outbox/d/up` is a link"),
        ("mkfifo outbox/pipe", "`outbox/pipe` is no regular file"),
        ("ln inbox/a.txt outbox/second", "has a second name elsewhere"),
        ("touch \"outbox/$(printf 'a\\nb')\"", "holds control characters"),
        ("touch 'outbox/..\\..\\x'", "holds a `\\`"),
        ("rm status.json; ln -s /etc/passwd status.json", "`status.json` is a link"),
        ("rm status.json; mkfifo status.json", "`status.json` is no regular file"),
    ] {
        let said = said(&format!("{DONE}; {script}"), "files { input \"a.txt\"; output sum required=#false }");
        assert!(said.contains(expected), "{script}: {said}");
        assert!(!said.contains("root:"), "{said}");
    }
}

#[test]
fn nothing_is_copied_out_of_the_project_or_before_all_is_there() {
    let project = project(&task(
        "worker",
        &format!("echo new >outbox/a; {DONE}"),
        "files { output a copy-to=\"out/a\"; output b copy-to=\"b\" }",
    ));
    let said = ends(&project, 3);
    assert!(said.contains("there is no `outbox/b`"), "{said}");
    assert!(!project.root().join("out").exists() && !project.root().join("b").exists());
    let project = self::project(&task(
        "worker",
        &format!("echo new >outbox/a; ln -s \"$OUTSIDE\" \"$ROOT/out\"; {DONE}"),
        "env ROOT OUTSIDE; files { output a copy-to=\"out/a\" }",
    ));
    let outside = tempfile::tempdir().expect("a folder");
    let output = project
        .command(&["run", "spec.kdl"])
        .env("ROOT", project.root())
        .env("OUTSIDE", outside.path())
        .output()
        .expect("swarmc starts");
    let said = super::err(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(fs::symlink_metadata(project.root().join("out")).is_ok_and(|out| out.is_symlink()));
    assert_eq!(fs::read_dir(outside.path()).expect("it is there").count(), 0);
    assert!(said.contains("leads out of the working folder") || said.contains("is not followed"), "{said}");
}

#[test]
fn a_status_that_is_half_written_is_none() {
    let half = "printf '{\"state\": \"comp' >status.json; echo x >outbox/summary.md";
    assert!(said(half, "files").contains("`status.json` cannot be read at the end: it is no JSON"));
    // While the turn goes on, it is nothing at all.
    let script = format!("printf '{{\"state\": \"comp' >status.json; sleep 0.5; {DONE}");
    ends(&project(&task("worker", &script, "files")), 0);
    // A crash is told as one.
    assert!(said(&format!("{half}; exit 9"), "files").contains("exit 9"));
    assert!(said("printf 'x%.0s' $(seq 70000) >status.json", "files").contains("longer than 65536 bytes"));
}

#[test]
fn whoever_fills_the_disk_is_ended() {
    let script = "seq 1 100002 | (cd workspace; xargs touch); sleep 60";
    let project = project(&task("worker", script, "timeout \"50s\"; files"));
    let full = "worker failed: it filled its folder with more than 100000 files";
    for mode in ["--record", "--replay"] {
        let ended = project.swarmc(&["run", "spec.kdl", mode, "recording"]);
        let said = super::err(&ended);
        assert!(ended.status.code() == Some(3) && said.contains(full), "{mode}: {said}");
    }
}

#[test]
fn too_many_outputs_are_refused() {
    let said = said(&format!("seq 1 10001 | (cd outbox; xargs touch); {DONE}"), "files");
    assert!(said.contains("`outbox/` holds more than 10000 files and folders"), "{said}");
}

#[test]
fn what_was_collected_is_what_is_handed_on() {
    let forge = "chmod -R u+w \"$SWARM_WORKSPACE/../../first\"; echo forged >\"$SWARM_WORKSPACE/../../first/attempt-1/outbox/a\"";
    let tasks = [
        task("first", &format!("echo right >outbox/a; {DONE}"), "files { output a }"),
        task("forger", &format!("{forge}; {DONE}"), "depends-on first; files"),
        task("second", DONE, "depends-on forger; files { input a from=first }"),
    ];
    let project = project(&tasks.concat());
    let said = ends(&project, 3);
    assert!(said.contains("`a` of `first` has changed since it was collected"), "{said}");
    assert_eq!(read(&project, "first", "outbox/a"), "forged\n");
}

#[test]
fn holes_of_any_size_are_not_read() {
    for (script, expected) in [
        ("truncate -s 3G outbox/hole", "`outbox/` holds more than 1024 MiB"),
        ("chmod -R u+w inbox; truncate -s 3G inbox/a.txt", "the agent changed `inbox/a.txt`, which is read-only"),
    ] {
        let said = said(&format!("{DONE}; {script}"), "files { input \"a.txt\" }");
        assert!(said.contains(expected), "{script}: {said}");
    }
}

#[test]
fn nothing_outside_of_the_folder_is_made_read_only() {
    let script = format!("ln \"$ROOT/spec.kdl\" workspace/second; echo x >workspace/own; {DONE}");
    let project = project(&task("worker", &script, "env ROOT; files"));
    let spec = project.root().join("spec.kdl");
    fs::set_permissions(&spec, fs::Permissions::from_mode(0o640)).expect("it can be changed");
    let output = project.command(&["run", "spec.kdl"]).env("ROOT", project.root()).output().expect("swarmc starts");
    assert_eq!(output.status.code(), Some(0), "{}", super::err(&output));
    let mode = |path: &std::path::Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    let own = super::folder(&project, "worker", 1).join("workspace/own");
    assert_eq!((mode(&spec), mode(&own)), (0o640, 0o400));
}
