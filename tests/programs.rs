//! SW107 through the binary: what is said of programs as they lie on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;

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
    assert!(said.contains("error[SW107]") && said.contains("programs count from the workspace"), "{said}");
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
