//! Runs that are long or deep. One of tens of thousands of records keeps snapshots while it goes on, a runner that comes
//! back begins with them, and its end needs none. Calls that never end fail.

use std::fs;
use std::path::PathBuf;

use crate::cli::Place;

const SPEC: &str = r#"
workflow long
pipeline main {
    task list { run "cat list.json"; output "list<int>" max="1MB" }
    task each { for-each "output.list"; value "<<item>>" }
    task hold { depends-on each; run "echo held >> held; test -e go" }
    task after { depends-on hold; run "echo went" }
    result after
}
"#;

/// Two records for each.
const ITEMS: usize = 25_100;

fn begin() -> (Place, PathBuf) {
    let place = Place::new(SPEC);
    let items: Vec<String> = (0..ITEMS).map(|item| item.to_string()).collect();
    place.write("list.json", &format!("[{}]", items.join(", ")));
    let spec = SPEC.replace("test -e go", "until test -e go; do sleep 0.05; done");
    place.write("flow.kdl", &spec);
    let mut child = place.command(&["run", "flow.kdl", "--quiet"]).spawn().expect("swarmc starts");
    crate::survive::wait_until("all items are done", || place.work().join("held").exists());
    let run = fs::read_dir(place.home().join("runs")).expect("there are runs").next().expect("it has begun");
    let folder = run.expect("it can be listed").path();
    let made = || ["state", "report"].iter().all(|name| folder.join("snapshots").join(name).exists());
    crate::survive::wait_until("snapshots are made", made);
    crate::cli::signal(&child, "KILL");
    child.wait().expect("it can be waited for");
    (place, folder)
}

#[test]
fn a_long_run_goes_on_from_its_snapshots() {
    let (place, folder) = begin();
    let journal = folder.join("journal.jsonl");
    let text = fs::read_to_string(&journal).expect("there is a journal");
    // Zeros lie ahead of what a runner writes.
    let text = text.trim_end_matches('\0');
    // Ahead of the snapshot nothing is read but the first record: damage there is not even seen.
    let at = text.find("\"seq\":500,").expect("it has so many");
    let mut damaged = text.as_bytes().to_vec();
    damaged[at + 7] ^= 1;
    fs::write(&journal, &damaged).expect("it can be written");
    fs::write(place.work().join("go"), "").expect("a file can be written");
    let resumed = place.swarmc(&["resume"]).expect(0, &["went"], &["25,104 steps", "succeeded"]);
    assert!(!folder.join("snapshots").exists(), "{resumed:#?}");
    // The rest as it would have been.
    let mut whole = fs::read(&journal).expect("there is a journal");
    whole[..text.len()].copy_from_slice(text.as_bytes());
    fs::write(&journal, &whole).expect("it can be written");
    place.swarmc(&["inspect"]).expect(0, &["succeeded"], &[]);
    let run = folder.file_name().and_then(|name| name.to_str()).expect("its name is its id");
    place.swarmc(&["resume"]).expect(2, &[], &["no run can be resumed"]);
    place.swarmc(&["resume", run]).expect(2, &[], &["has ended"]);
    assert!(!folder.join("snapshots").exists(), "a run that has ended needs none");
}

#[test]
fn a_long_run_goes_on_without_its_snapshots() {
    let (place, folder) = begin();
    for name in ["state", "report"] {
        let path = folder.join("snapshots").join(name);
        let mut bytes = fs::read(&path).expect("it is there");
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        fs::write(path, bytes).expect("it can be written");
    }
    fs::write(place.work().join("go"), "").expect("a file can be written");
    place.swarmc(&["resume"]).expect(0, &["went"], &["succeeded"]);
}

/// Whether calls end that a `when` decides about is for the run to see: it ends with a message, and not with the memory.
#[test]
fn calls_without_an_end_are_told_of() {
    let place = Place::new(
        "budget calls=100\npipeline main { param left type=int default=3\n    \
         task again { when \"param.left > 0\"; call main left=\"{{ param.left + 1 }}\" }\n}\n",
    );
    place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &["`main` is called more than 1000 levels deep"]);
}
