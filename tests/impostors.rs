//! Processes of a run that answer its gate in the place of a person: each way is refused, and the person is asked on.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::Place;

const ATTACK: &str = include_str!("impostors/attack.py");

/// Each with what is said to it.
const WAYS: [(&str, &[&str]); 19] = [
    ("cleared", &["cannot approve"]),
    ("unmarked", &["cannot approve"]),
    ("background", &["cannot approve"]),
    ("daemon", &["cannot approve"]),
    ("nested", &["see orphan.txt"]),
    ("keystroke", &["/dev/tty: [Errno 6]", "/dev/pts/", "Operation not permitted", "/fd/0: [Errno 13]"]),
    ("escapes", &["[Errno 6]"]),
    ("memory", &["mem: Permission denied", "/fd/0: Permission denied", "environ: Permission denied"]),
    ("traced", &["['Operation not permitted', 'Operation not permitted']"]),
    ("disguised", &["cannot approve"]),
    ("socketed", &["cannot approve"]),
    ("handed", &["has ended, or cannot be traced"]),
    ("reaper", &["cannot approve"]),
    ("terminal", &["cannot approve"]),
    ("multiplexed", &["cannot approve"]),
    ("namespaced", &["cannot approve"]),
    ("resumed", &["is being run by another process"]),
    ("journaled", &["written"]),
    // They are begun by the way before and by the gate.
    ("hook", &["cannot approve"]),
];

#[test]
fn no_process_of_a_run_answers_its_gate() {
    let tasks: Vec<&str> = WAYS.iter().map(|(way, _)| *way).filter(|way| *way != "hook").collect();
    let declared: String = tasks
        .iter()
        .map(|way| {
            // Nothing else is recorded while it forges a record; it is found when the next one is written.
            let after = match *way {
                "journaled" => format!("depends-on {};", tasks.join(" ").replace(" journaled", "")),
                _ => String::new(),
            };
            format!("    task {} {{ {after} run \"./attack\" \"{way}\"; timeout \"2m\" }}\n", way)
        })
        .collect();
    let place = Place::new(&format!(
        "workflow w\nhook gate {{ run \"./attack\" \"hook\" }}\npipeline main {{\n    concurrency 4\n\
         gate ship {{ message \"Ship it?\"; options yes no; headless no }}\n{declared}\
         task finished {{ depends-on {}; run touch finished }}\n    \
         task shipped {{ when \"output.ship.choice == 'yes'\"; run touch shipped }}\n    result ship\n}}\n",
        tasks.join(" ")
    ));
    place.write("attack.py", ATTACK);
    let swarmc = env!("CARGO_BIN_EXE_swarmc");
    let script = format!(
        "#!/bin/sh\nexport SWARMC='{swarmc}' RUNS_HOME='{}'\nexec python3 attack.py \"$1\"\n",
        place.home().display()
    );
    place.write("attack", &script);
    fs::set_permissions(place.work().join("attack"), fs::Permissions::from_mode(0o755)).expect("it is ours");

    // At a terminal, at which a person could answer, and without what only root may do.
    let mut command = Command::new("script");
    let line = format!("exec setpriv --bounding-set=-all --inh-caps=-all '{swarmc}' run flow.kdl");
    command.args(["-qefc", &line, "/dev/null"]).current_dir(place.work()).env("SWARM_HOME", place.home());
    command.env_remove("CI").env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut run = command.spawn().expect("script starts");
    let stdin = run.stdin.take();
    let mut stdout = run.stdout.take().expect("it is piped");
    let shown = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).expect("it can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let deadline = Instant::now() + Duration::from_secs(110);
    let is_there = |name: &str| place.work().join(name).exists();
    while !is_there("finished") || !is_there("hook.txt") {
        let journal = || place.swarmc(&["ps", "last"]);
        assert!(Instant::now() < deadline, "the ways do not end: {:#?}", journal());
        std::thread::sleep(Duration::from_millis(20));
    }
    place.swarmc(&["approve", "last", "ship", "no"]).expect(0, &[], &["gate ship of run"]);
    drop(stdin);
    assert!(run.wait().expect("it ends").success());
    let shown = shown.join().expect("it is read");

    let said = |way: &str| fs::read_to_string(place.work().join(format!("{way}.txt"))).unwrap_or_default();
    for (way, expected) in WAYS.into_iter().chain([("orphan", &["cannot approve"][..])]) {
        let said = said(way);
        expected.iter().for_each(|part| assert!(said.contains(part), "{way} lacks `{part}`: {said}"));
        assert!(!said.contains(": yes") && !said.starts_with("ok"), "{way}: {said}");
    }
    assert!(!said("keystroke").contains("typed"), "{}", said("keystroke"));
    assert!(shown.contains("another process wrote into the journal of this run"), "{shown}");
    assert!(!shown.contains("FORGED"), "{shown}");
    assert!(!is_there("shipped"), "{shown}");
    let journal = fs::read_dir(place.home().join("runs")).expect("there is a run").flatten().next().expect("one");
    let journal = fs::read_to_string(journal.path().join("journal.jsonl")).expect("it has a journal");
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let answers: Vec<Value> = records.filter(|record| record["event"] == "gate_answered").collect();
    let answers: Vec<_> = answers.iter().map(|answer| (answer["choice"].as_str(), answer["by"].as_str())).collect();
    assert_eq!(answers, [(Some("no"), Some("person"))]);
}
