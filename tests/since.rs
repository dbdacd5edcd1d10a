//! `swarmc check --since` through the binary: which specs it checks after which change, and what it says of a ref or a folder
//! that Git does not know.

use std::fs;
use std::process::Command;

use crate::cli::{Ended, Place};

/// Two specs that share a library, each with a mistake in its prompt; a third that reads nothing; a folder of other files.
fn place() -> Place {
    let place = Place::new("workflow a\nimport \"lib.kdl\"\npipeline p { task t { prompt file=\"a.md\" } }\n");
    for folder in ["prompts", "sub", "docs"] {
        fs::create_dir(place.work().join(folder)).expect("a folder can be made");
    }
    place.write("lib.kdl", "provider team { script { answer \"yes\" } }\nagent coder provider=team\n");
    place.write("a.md", "Say {{ yes }}.\n");
    place.write("b.kdl", "workflow b\nimport \"lib.kdl\"\npipeline p { task t { prompt file=\"prompts/b.md\" } }\n");
    place.write("prompts/b.md", "Say {{ no }}.\n");
    place.write("sub/c.kdl", "workflow c\npipeline p { task t { run echo } }\n");
    git(&place, &["init", "--quiet", "--initial-branch", "main"]);
    commit(&place);
    git(&place, &["checkout", "--quiet", "-b", "work"]);
    place
}

fn git(place: &Place, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(place.work()).output();
    let output = output.expect("git starts");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn commit(place: &Place) {
    git(place, &["add", "--all"]);
    git(place, &["commit", "--quiet", "--message", "One"]);
}

fn check(place: &Place, more: &[&str]) -> Ended {
    place.swarmc(&[&["check", "--since", "main", "--format", "short"], more].concat())
}

/// Fails unless exactly these files have problems, and so many specs were left out.
#[track_caller]
fn expect(place: &Place, files: &[&str], line: &str) {
    let ended = check(place, &[]);
    let found: Vec<&str> = ended.out.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(found, files, "{ended:#?}");
    assert!(ended.err.ends_with(&format!("{line}\n")), "{ended:#?}");
    assert_eq!(ended.code, Some(i32::from(!files.is_empty())));
}

#[test]
fn only_specs_that_read_what_changed_are_checked() {
    let place = place();
    expect(&place, &[], "no problems in 0 specs (3 specs are unchanged since `main`)");
    place.write("unrelated.md", "New.\n");
    place.write("docs/more.md", "New.\n");
    expect(&place, &[], "no problems in 0 specs (3 specs are unchanged since `main`)");
    // Not committed, committed, and what is committed on the other branch since.
    place.write("a.md", "Say {{ yes }} now.\n");
    expect(&place, &["a.md"], "1 error in 1 spec (2 specs are unchanged since `main`)");
    commit(&place);
    expect(&place, &["a.md"], "1 error in 1 spec (2 specs are unchanged since `main`)");
    git(&place, &["checkout", "--quiet", "main"]);
    place.write("prompts/b.md", "Say {{ no }} later.\n");
    commit(&place);
    git(&place, &["checkout", "--quiet", "work"]);
    expect(&place, &["a.md"], "1 error in 1 spec (2 specs are unchanged since `main`)");
    // What both import.
    place.write("lib.kdl", "provider team { script { answer \"no\" } }\nagent coder provider=team\n");
    expect(&place, &["prompts/b.md", "a.md"], "2 errors in 2 specs (1 spec is unchanged since `main`)");
    let json = place.swarmc(&["check", "--since", "main", "--format", "json"]);
    let document = crate::schema::fits("check", &json.out);
    assert_eq!((&document["errors"], &document["unchanged"]), (&2.into(), &1.into()));
    // Their settings.
    git(&place, &["checkout", "--quiet", "lib.kdl"]);
    place.write("swarmc.kdl", "profile strict\n");
    let all = check(&place, &[]);
    assert!(all.err.ends_with(" in 3 specs\n"), "{all:#?}");
}

#[test]
fn files_that_came_and_went_are_changes() {
    let place = place();
    fs::remove_file(place.work().join("prompts/b.md")).expect("it is there");
    let gone = check(&place, &[]).expect(1, &["b.kdl", "there is no file `prompts/b.md`"], &["in 1 spec ("]);
    assert!(!gone.out.contains("a.md"), "{gone:#?}");
    git(&place, &["checkout", "--quiet", "prompts/b.md"]);
    place.write("sub/d.kdl", "workflow d\npipeline p { task t { depends-on u; run echo } }\n");
    expect(&place, &["sub/d.kdl"], "1 error in 1 spec (3 specs are unchanged since `main`)");
    // From a folder below, as a person there types it.
    let mut below = place.command(&["check", "--since", "main", "--format", "short"]);
    let below = Ended::from(below.current_dir(place.work().join("sub")).output().expect("swarmc starts"));
    below.expect(1, &["d.kdl:2:"], &["1 error in 1 spec (1 spec is unchanged since `main`)"]);
    // A file that a link leads to is what is read.
    place.write("docs/real.md", "Say {{ yes }}.\n");
    fs::remove_file(place.work().join("a.md")).expect("it is there");
    std::os::unix::fs::symlink("docs/real.md", place.work().join("a.md")).expect("a link can be made");
    fs::remove_file(place.work().join("sub/d.kdl")).expect("it is there");
    commit(&place);
    git(&place, &["branch", "--force", "main"]);
    expect(&place, &[], "no problems in 0 specs (3 specs are unchanged since `main`)");
    place.write("docs/real.md", "Say {{ yes }} again.\n");
    assert!(check(&place, &[]).err.contains("1 error in 1 spec ("));
}

#[test]
fn fixes_and_baselines_keep_to_what_changed() {
    let place = place();
    place.write("a.md", "Say it: {{output:t}}\n");
    place.write("prompts/b.md", "Say it: {{output:t}}\n");
    commit(&place);
    git(&place, &["branch", "--force", "main"]);
    place.write("prompts/b.md", "Say that: {{output:t}}\n");
    check(&place, &["--fix"]);
    assert_eq!(text(&place, "prompts/b.md"), "Say that: <<output:t>>\n");
    assert_eq!(text(&place, "a.md"), "Say it: {{output:t}}\n");
    place.write("known.kdl", "");
    commit(&place);
    git(&place, &["branch", "--force", "main"]);
    place.write("known.kdl", "// More.\n");
    let all = check(&place, &["--baseline", "known.kdl"]);
    assert!(all.err.contains(" in 3 specs"), "{all:#?}");
    let refused = check(&place, &["--baseline", "known.kdl", "--update-baseline"]);
    refused.expect(2, &[], &["cannot be used with"]);
}

fn text(place: &Place, name: &str) -> String {
    fs::read_to_string(place.work().join(name)).expect("a file can be read")
}

#[test]
fn a_ref_or_folder_that_git_does_not_know_is_told() {
    let place = place();
    let check = |reference: &str| place.swarmc(&["check", "--since", reference]);
    check("origin/mian").expect(2, &[], &["there is no commit `origin/mian` in the Git repository of", "git branch"]);
    check("HEAD:a.md").expect(2, &[], &["there is no commit `HEAD:a.md`"]);
    let option = place.swarmc(&["check", "--since=--output=a.md"]);
    option.expect(2, &[], &["there is no commit `--output=a.md`"]);
    assert_eq!(text(&place, "a.md"), "Say {{ yes }}.\n");
    fs::remove_dir_all(place.work().join(".git")).expect("a folder can be removed");
    check("main").expect(2, &[], &["`--since` needs a Git repository", "leave `--since` out"]);
}

#[test]
fn without_a_common_commit_the_ref_itself_is_compared() {
    let place = place();
    git(&place, &["checkout", "--quiet", "--orphan", "other"]);
    place.write("prompts/b.md", "Say {{ no }} alone.\n");
    commit(&place);
    expect(&place, &["prompts/b.md"], "1 error in 1 spec (2 specs are unchanged since `main`)");
    // A hook of another repository says which one it means by its environment.
    let mut hooked = place.command(&["check", "--since", "main", "--format", "short"]);
    let hooked = Ended::from(hooked.env("GIT_DIR", "/nowhere").output().expect("swarmc starts"));
    hooked.expect(1, &["prompts/b.md:"], &["1 error in 1 spec"]);
}
