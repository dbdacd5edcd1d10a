//! Snapshots of the journals of real runs, and of files of swarms.

use std::fs;
use std::path::Path;

use super::super::snapshots::{Former, keep_state};
use super::super::swarms::files::{FileLengths, restore_files};
use super::*;
use crate::types::event::{AttemptId, Event, Record, StepId};

/// The folder of a run, without a journal.
struct Place {
    folder: RunFolder,
    _root: tempfile::TempDir,
}

impl Place {
    fn new(plan: Option<&Path>) -> Place {
        let root = tempfile::tempdir().unwrap();
        let home = Home::new(root.path().to_owned());
        let folder = home.publish(home.create().unwrap()).unwrap();
        if let Some(plan) = plan {
            fs::copy(plan, folder.plan_path()).unwrap();
        }
        Place { folder, _root: root }
    }

    fn write(&self, lines: &[&str]) {
        fs::write(self.folder.journal_path(), lines.concat()).unwrap();
    }

    /// The state, the last record with its time, and how many records were folded.
    fn read(&self) -> (String, (u64, u64), usize) {
        let former = Former::read(&self.folder).unwrap();
        (former.state.snapshot(), former.read.last(), former.read.records.len())
    }

    fn snapshot(&self) -> PathBuf {
        self.folder.path.join("snapshots/state")
    }
}

#[test]
fn a_run_is_the_same_from_any_snapshot_on() {
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journals")).unwrap() {
        let path = entry.unwrap().path();
        let place = Place::new(Some(&path.join("plan.json")));
        let text = fs::read_to_string(path.join("journal.jsonl")).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        place.write(&lines);
        let (state, last, all) = place.read();
        assert_eq!(all, lines.len());
        let takes_back = lines.iter().any(|line| line.contains("\"run_reopened\""));
        // Each begins with the one before.
        for cut in 1..=lines.len() {
            place.write(&lines[..cut]);
            assert!(keep_state(&place.folder) || takes_back, "{}: {cut}", path.display());
            place.write(&lines);
            let rest = if takes_back { all } else { all - cut };
            assert_eq!(place.read(), (state.clone(), last, rest), "{}: {cut}", path.display());
        }
    }
}

/// A journal of ten records, and what reads of it after a snapshot behind the fifth fold.
fn folded_after(change: impl FnOnce(&Place, &[&str])) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals/rounds");
    let place = Place::new(Some(&path.join("plan.json")));
    let text = fs::read_to_string(path.join("journal.jsonl")).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').take(10).collect();
    place.write(&lines);
    let expected = place.read();
    place.write(&lines[..5]);
    assert!(keep_state(&place.folder));
    place.write(&lines);
    change(&place, &lines);
    let (state, last, folded) = place.read();
    assert_eq!((state, last), (expected.0, expected.1));
    folded
}

#[test]
fn a_snapshot_that_does_not_fit_counts_as_none() {
    assert_eq!(folded_after(|_, _| {}), 5);
    let damage = |at: fn(usize) -> usize| {
        folded_after(|place, _| {
            let mut bytes = fs::read(place.snapshot()).unwrap();
            let at = at(bytes.len());
            bytes[at] ^= 1;
            fs::write(place.snapshot(), bytes).unwrap();
        })
    };
    assert_eq!([damage(|_| 3), damage(|length| length / 2), damage(|length| length - 2)], [10; 3]);
    let cut = folded_after(|place, _| {
        let bytes = fs::read(place.snapshot()).unwrap();
        fs::write(place.snapshot(), &bytes[..bytes.len() / 2]).unwrap();
    });
    assert_eq!(cut, 10);
    // Another run's, of the same plan.
    let other = folded_after(|place, lines| {
        let other = Place::new(Some(&place.folder.plan_path()));
        other.write(&lines[..7]);
        assert!(keep_state(&other.folder));
        let mut bytes = fs::read(other.snapshot()).unwrap();
        // Its journal is one byte longer.
        let end = bytes.windows(6).position(|bytes| bytes == b"\"end\":").unwrap() + 6;
        bytes.insert(end, b'1');
        fs::write(place.snapshot(), bytes).unwrap();
    });
    assert_eq!(other, 10);
}

#[test]
fn what_is_behind_a_snapshot_is_read_as_strictly_as_a_whole_journal() {
    folded_after(|place, lines| {
        let mut damaged: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        damaged[7] = damaged[7].replacen("\"at\":1", "\"at\":2", 1);
        place.write(&damaged.iter().map(String::as_str).collect::<Vec<_>>());
        let error = Former::read(&place.folder).err().expect("it is damaged").to_string();
        let byte: usize = lines[..7].iter().map(|line| line.len()).sum();
        assert!(error.contains(&format!("line 8 (byte {byte})")), "{error}");
        let torn = [lines[..9].concat().as_str(), "{\"crc\":\"12"].concat();
        place.write(&[&torn]);
        let former = Former::read(&place.folder).unwrap();
        assert_eq!((former.read.last().0, former.read.torn), (9, 10));
        place.write(lines);
    });
}

#[test]
fn files_of_swarms_are_as_they_were_and_go_on() {
    let place = Place::new(None);
    let mut plan = super::world::plan(Vec::new());
    let layout = place.folder.layout(&plan.pipelines.remove(0));
    let swarm = AttemptId { step: StepId::new("team", 1, 1), attempt: 1 };
    let message = |number: u64| -> Record {
        let text = format!(
            r#"{{"seq":{number},"at":{number},"event":"message_sent","step":{{"name":"team","iteration":1,"instance":1}},"attempt":1,"id":"e{number}","number":{number},"from":"a","to":"b","message_type":"info","payload":{{"text":"{}"}}}}"#,
            "x".repeat(number as usize)
        );
        serde_json::from_str(&text).unwrap()
    };
    let started = Event::SwarmStarted { swarm, run: "r".to_owned(), goal: Content::Text("go".to_owned()) };
    let mut records = vec![Record { seq: 1, at: 1, event: started }];
    records.extend((2..12).map(message));
    let path = layout.mailbox_path(&StepId::new("team", 1, 1), "b");
    restore_files(&place.folder, &layout, BTreeMap::new(), &records).unwrap();
    let whole = fs::read(&path).unwrap();
    for cut in 0..=records.len() {
        let mut lengths = FileLengths::default();
        lengths.add(&place.folder, &layout, &records[..cut]).unwrap();
        let files = lengths.read(&place.folder).unwrap();
        restore_files(&place.folder, &layout, files, &records[cut..]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole, "{cut}");
    }
    let mut lengths = FileLengths::default();
    lengths.add(&place.folder, &layout, &records).unwrap();
    fs::write(&path, &whole[1..]).unwrap();
    assert!(lengths.read(&place.folder).is_none(), "a file that lost something is made from all records");
}
