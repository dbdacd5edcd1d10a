//! `swarmc check --watch` through the binary: what makes it check again, and how it ends. Its own lines say when.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use crate::cli::{Place, signal};

/// A spec that is right once `ask.md` is there.
const FLOW: &str = "workflow w\nprovider team { script { answer \"yes\" } }\nagent coder provider=team\n\
                    prompt ask file=\"ask.md\"\npipeline p { task t { prompt ref=ask } }\n";

/// A watch, and the lines that it prints.
struct Watch {
    child: Child,
    lines: Option<BufReader<ChildStdout>>,
}

impl Watch {
    fn new(place: &Place, arguments: &[&str]) -> Watch {
        let mut command = place.command(&[&["check", "--watch"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("swarmc starts");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Watch { child, lines: Some(lines) }
    }

    /// What is printed until it waits.
    fn next(&mut self) -> String {
        let mut seen = String::new();
        loop {
            let start = seen.len();
            let lines = self.lines.as_mut().expect("stdout is still read");
            assert_ne!(lines.read_line(&mut seen).expect("stdout can be read"), 0, "it ended: {seen}");
            if seen[start..].starts_with("--- watching ") || seen[start..].starts_with("--- waiting ") {
                return seen;
            }
        }
    }

    /// Fails unless the next check says all of these.
    #[track_caller]
    fn expect(&mut self, parts: &[&str]) {
        let seen = self.next();
        for part in parts {
            assert!(seen.contains(part), "it lacks `{part}`: {seen}");
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Saves a file as editors do: whole, in the place of the one before.
fn save(place: &Place, name: &str, text: &str) {
    let beside = place.work().with_file_name("beside");
    fs::write(&beside, text).expect("a file can be written");
    fs::rename(beside, place.work().join(name)).expect("a file can be renamed");
}

#[test]
fn a_check_is_done_again_when_what_it_read_or_looked_for_changes() {
    let place = Place::new(FLOW);
    let mut watch = Watch::new(&place, &["flow.kdl"]);
    watch.expect(&["there is no file `ask.md`", "1 error in 1 spec\n--- watching 1 file\n"]);
    save(&place, "ask.md", "Is it so?\n");
    watch.expect(&["--- ask.md is new\n", "no problems in 1 spec\n--- watching 2 files\n"]);
    save(&place, "ask.md", "Is it {{ so }}?\n");
    watch.expect(&["--- ask.md changed\n", "unknown name `so`"]);
    save(&place, "ask.md", "Is it not?\n");
    watch.expect(&["--- ask.md changed\n", "no problems"]);
    save(&place, "swarmc.kdl", "deny \"SW1O3\"\n");
    watch.expect(&["--- swarmc.kdl is new\n--- watching"]);
    fs::remove_file(place.work().join("swarmc.kdl")).expect("a file can be removed");
    watch.expect(&["--- swarmc.kdl is gone\n", "no problems"]);
    // What says the same is no change; the next check is about the one after it.
    save(&place, "ask.md", "Is it not?\n");
    save(&place, "unrelated.md", "");
    save(&place, "flow.kdl", "workflow w\npipeline p { task t { run echo } }\n");
    watch.expect(&["--- flow.kdl changed\nno problems in 1 spec\n--- watching 1 file\n"]);
}

#[test]
fn specs_that_come_and_go_beneath_a_folder_are_seen() {
    let spec = "workflow w\npipeline p { task t { run echo } }\n";
    let place = Place::new(spec);
    fs::create_dir(place.work().join("flows")).expect("a folder can be made");
    let mut watch = Watch::new(&place, &["flows"]);
    watch.expect(&["--- waiting for a spec\n"]);
    fs::create_dir_all(place.work().join("flows/deep/er")).expect("a folder can be made");
    save(&place, "flows/deep/er/new.kdl", spec);
    watch.expect(&["--- flows/deep/er/new.kdl is new\nno problems in 1 spec\n"]);
    save(&place, "flows/other.kdl", spec);
    watch.expect(&["--- flows/other.kdl is new\nno problems in 2 specs\n"]);
    fs::rename(place.work().join("flows/deep"), place.home()).expect("a folder can be renamed");
    watch.expect(&["--- flows/deep is gone\nno problems in 1 spec\n"]);
    fs::rename(place.work().join("flows"), place.work().join("away")).expect("a folder can be renamed");
    watch.expect(&["--- flows is gone\n", "error[", "--- waiting for a spec\n"]);
    fs::rename(place.work().join("away"), place.work().join("flows")).expect("a folder can be renamed");
    watch.expect(&["flows is new\n", "no problems in 1 spec\n"]);
    save(&place, "flows/.ignore", "other.kdl\n");
    watch.expect(&["--- flows/other.kdl changed\n--- waiting for a spec\n"]);
}

#[test]
fn programs_get_a_document_on_a_line_for_each_check() {
    let place = Place::new(FLOW);
    place.write("known.kdl", "");
    let mut watch = Watch::new(&place, &["flow.kdl", "--format", "json", "--baseline", "known.kdl"]);
    let mut document = || {
        let mut line = String::new();
        watch.lines.as_mut().expect("stdout is read").read_line(&mut line).expect("stdout can be read");
        serde_json::from_str::<Value>(&line).expect("a line is JSON")
    };
    assert_eq!(document()["errors"], 1);
    place.swarmc(&["check", "flow.kdl", "--baseline", "known.kdl", "--update-baseline"]).expect(0, &[], &["wrote"]);
    let known = document();
    assert_eq!((&known["errors"], &known["known"]), (&0.into(), &1.into()));
    save(&place, "ask.md", "Is it so?\n");
    assert_eq!(document()["known"], 0);
}

#[test]
fn a_baseline_is_waited_for_with_its_folder() {
    let place = Place::new(FLOW);
    let mut watch = Watch::new(&place, &["flow.kdl", "--baseline", "known/now.kdl"]);
    watch.next();
    fs::create_dir(place.home()).expect("a folder can be made");
    fs::write(place.home().join("now.kdl"), "").expect("a file can be written");
    fs::rename(place.home(), place.work().join("known")).expect("a folder can be renamed");
    watch.expect(&["known is new\n", "there is no file `ask.md`"]);
}

#[test]
fn what_makes_no_sense_with_it_is_refused() {
    let place = Place::new(FLOW);
    place.swarmc(&["check", "--watch", "--fix"]).expect(2, &[], &["'--watch' cannot be used with '--fix'"]);
    place.swarmc(&["check", "--watch", "--diff"]).expect(2, &[], &["'--diff'"]);
    place.swarmc(&["check", "--watch", "--update-baseline"]).expect(2, &[], &["'--update-baseline'"]);
    place.swarmc(&["check", "--watch", "--format", "junit"]).expect(2, &[], &["`--format junit`", "`--format json`"]);
    place.swarmc(&["check", "--watch", "--deny", "SW1O3"]).expect(2, &[], &["did you mean `SW103`?"]);
}

#[test]
fn ctrl_c_ends_a_watch_and_so_does_a_reader_that_goes_away() {
    use std::os::unix::process::ExitStatusExt;
    let place = Place::new(FLOW);
    let mut watch = Watch::new(&place, &[]);
    watch.next();
    signal(&watch.child, "INT");
    assert_eq!(watch.child.wait().expect("swarmc ends").signal(), Some(2));
    let mut watch = Watch::new(&place, &[]);
    watch.next();
    watch.lines = None;
    assert!(watch.child.wait().expect("swarmc ends").success());
}

#[test]
fn links_are_followed_and_folders_that_were_replaced_are_watched_anew() {
    let place = Place::new("");
    let work = place.work();
    for folder in ["flows/.git", "flows/shared"] {
        fs::create_dir_all(work.join(folder)).expect("a folder can be made");
    }
    save(&place, "flows/flow.kdl", FLOW);
    save(&place, "flows/shared/real.md", "Is it so?\n");
    std::os::unix::fs::symlink("shared/real.md", work.join("flows/ask.md")).expect("a link can be made");
    let mut watch = Watch::new(&place, &["flows/flow.kdl"]);
    watch.expect(&["no problems", "--- watching 2 files"]);
    save(&place, "flows/shared/real.md", "Is it {{ so }}?\n");
    watch.expect(&["--- flows/ask.md changed\n", "unknown name `so`"]);
    fs::remove_file(work.join("flows/shared/real.md")).expect("a file can be removed");
    watch.expect(&["--- flows/ask.md is gone\n", "there is no file `ask.md`"]);
    save(&place, "flows/shared/real.md", "Is it so?\n");
    watch.expect(&["flows/ask.md is new", "no problems"]);
    // Everything goes, the current folder too, and comes back.
    fs::remove_dir_all(&work).expect("a folder can be removed");
    while !watch.next().contains("--- the current folder is gone\n--- waiting for a spec\n") {}
    fs::create_dir_all(work.join("flows")).expect("a folder can be made");
    save(&place, "flows/flow.kdl", "workflow w\npipeline p { task t { run echo } }\n");
    while !watch.next().contains("no problems in 1 spec\n") {}
    save(&place, "flows/flow.kdl", FLOW);
    watch.expect(&["--- flows/flow.kdl changed\n", "there is no file `ask.md`"]);
}
