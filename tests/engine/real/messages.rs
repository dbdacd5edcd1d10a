//! `kill -9` of workers, of the endpoint and of Restate at random moments, while three agents and a person write to each
//! other: no message is lost, none is doubled, and each is read once.
//!
//! A message counts as acknowledged if the command that sent it has succeeded. One that was not acknowledged may be there
//! or not: its sender cannot know. `SWARMC_ENGINE_KILLS` is how many kills there are of each kind: two by default.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::cluster::{Cluster, Person, Setup, wait};
use super::random::Kills;

const TASKS: [&str; 3] = ["ada", "bob", "eve"];

/// Between two kills at most, in milliseconds: enough for some messages in between.
const PAUSE: u64 = 3000;

/// The turns of each agent in which it writes, and the messages to each other one in such a turn.
const TURNS: u32 = 4;
const EACH: u32 = 10;

/// Each agent notes what it reads, and each message whose command has succeeded. No command waits for an answer that
/// was lost with its driver.
const SCRIPT: &str = r#"
cat >> FOLDER/read-$SWARM_TASK
[ $SWARM_ATTEMPT -gt TURNS ] || for number in $(seq EACH); do
    for to in TASKS; do
        [ $to != $SWARM_TASK ] || continue
        message=msg-$SWARM_TASK-$SWARM_ATTEMPT-$number-$to
        timeout 5 PROGRAM agent send-handoff --to $to --message $message >> FOLDER/said-$SWARM_TASK 2>&1 &&
            echo $message >> FOLDER/sent-$SWARM_TASK
    done
done
echo turn $SWARM_ATTEMPT
"#;

fn build_spec(script: &Path) -> String {
    let tasks: String =
        TASKS.map(|task| format!("    task {task} {{ stall 0; prompt \"Write to the others.\" }}\n")).concat();
    format!(
        "workflow messages\nprovider shell {{ exec \"sh\" \"{}\"; prompt stdin }}\nagent any provider=shell\n\
         pipeline main {{\n    pool messages\n    edges {{\n        ada <-> bob max=1000\n        ada <-> eve max=1000\n        \
         bob <-> eve max=1000\n    }}\n{tasks}    task last {{ depends-on ada bob eve; run \"echo all have ended\" }}\n    \
         result last\n}}\n",
        script.display()
    )
}

#[test]
fn no_message_is_lost_or_doubled_whatever_is_killed_when() {
    let mut kills = Kills::new(2);
    let cluster = Cluster::start(&Setup::default());
    let workers = ["one", "two"].map(|name| cluster.worker(name, "messages", &["--slots", "3"], &[]));
    for number in 0.. {
        let folder = cluster.path(&format!("notes-{number}"));
        fs::create_dir(&folder).expect("a folder can be made");
        let script = SCRIPT.replace("FOLDER", &folder.to_string_lossy()).replace("TASKS", &TASKS.join(" "));
        let script = script.replace("TURNS", &TURNS.to_string()).replace("EACH", &EACH.to_string());
        let script = script.replace("PROGRAM", env!("CARGO_BIN_EXE_swarmc"));
        let path = folder.join("write.sh");
        fs::write(&path, script).expect("a file can be written");
        let person = cluster.person(&format!("person-{number}"), &build_spec(&path));
        let writers = TASKS.map(|task| (task, cluster.person(&format!("{task}-writer-{number}"), "workflow none\n")));
        let mut run = person.start(&["run", "flow.kdl"]);
        let id = wait("the run has an id", || {
            let err = run.err();
            Some(err.strip_prefix("run ")?.split_once(':')?.0.to_owned())
        });
        let is_over = AtomicBool::new(false);
        let of_person = std::thread::scope(|scope| {
            let (id, is_over) = (&*id, &is_over);
            let writing =
                writers.each_ref().map(|(task, writer)| scope.spawn(move || write_messages(writer, id, task, is_over)));
            kills.disturb(&mut run, &cluster, &workers, PAUSE);
            is_over.store(true, Ordering::Relaxed);
            writing.map(|writing| writing.join().expect("it has written"))
        });
        let killed = &kills.done;
        let goes_on = !run.is_over();
        let ended = run.end();
        assert_eq!((ended.code, &*ended.out), (Some(0), "all have ended\n"), "after {killed:?}: {ended:#?}");
        let when = format!("after {killed:?}");
        let (acknowledged, problems): (Vec<_>, Vec<_>) = of_person.into_iter().unzip();
        check_messages(&folder, &person.records(), &acknowledged.concat(), &when);
        // What comes while a driver or a worker starts waits for it. A connection that breaks later ends its call.
        let said =
            TASKS.map(|task| fs::read_to_string(folder.join(format!("said-{task}"))).unwrap_or_default()).concat();
        assert!(!said.contains("Connection refused") && !said.contains("cannot be reached"), "{when}: {said}");
        let problems = problems.concat();
        assert!(!goes_on || !problems.contains("about to begin"), "{when}: {problems}");
        if kills.are_over() {
            break;
        }
    }
}

/// A person writes to an agent: the messages whose commands have succeeded, and what the others said.
fn write_messages(writer: &Person, run: &str, task: &str, is_over: &AtomicBool) -> (Vec<String>, String) {
    let (mut acknowledged, mut problems) = (Vec::new(), String::new());
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let message = format!("msg-person-0-{number}-{task}");
        let command = writer.command(&["send", run, task, &message]);
        let mut limited = Command::new("timeout");
        limited.arg("5").arg(command.get_program()).args(command.get_args()).current_dir(&writer.work);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        let output = limited.stdin(Stdio::null()).output().expect("timeout can be started");
        match output.status.code() {
            Some(0) => acknowledged.push(message),
            _ => problems.push_str(&String::from_utf8_lossy(&output.stderr)),
        }
    }
    (acknowledged, problems)
}

fn check_messages(folder: &Path, records: &[Value], of_person: &[String], when: &str) {
    let of = |event: &'static str| records.iter().filter(move |record| record["event"] == event);
    // In the journal: each at most once, and each that was acknowledged.
    let mut sent = BTreeMap::<String, Vec<String>>::new();
    let mut receivers = BTreeMap::<String, String>::new();
    for record in of("sent") {
        let names = find_messages(&record["letter"].to_string());
        assert_eq!(names.len(), 1, "{when}: {record}");
        let id = record["letter"]["id"].to_string();
        sent.entry(names[0].clone()).or_default().push(id.clone());
        let former = receivers.insert(id, record["to"].as_str().expect("it has a receiver").to_owned());
        assert_eq!(former, None, "{when}: {record}");
    }
    let twice: Vec<_> = sent.iter().filter(|(_, ids)| ids.len() > 1).collect();
    assert!(twice.is_empty(), "{when}: sent twice: {twice:?}");
    let mut acknowledged = of_person.to_vec();
    for task in TASKS {
        let text = fs::read_to_string(folder.join(format!("sent-{task}"))).unwrap_or_default();
        acknowledged.extend(text.lines().map(str::to_owned));
    }
    let lost: Vec<_> = acknowledged.iter().filter(|message| !sent.contains_key(*message)).collect();
    assert!(lost.is_empty(), "{when}: acknowledged, and lost: {lost:?}");
    // Each is taken by one turn of its receiver.
    for record in of("inputs_taken") {
        for input in record["inputs"].as_array().expect("a list") {
            let receiver = receivers.remove(&input.to_string());
            assert_eq!(receiver.as_deref(), record["step"]["name"].as_str(), "{when}: {record}");
        }
    }
    assert!(receivers.is_empty(), "{when}: not taken: {receivers:?}");
    // And its program has read it, once.
    let mut read: Vec<String> = Vec::new();
    for task in TASKS {
        let text = fs::read_to_string(folder.join(format!("read-{task}"))).expect("it has begun");
        let messages = find_messages(&text);
        assert!(messages.iter().all(|message| message.ends_with(task)), "{when}: `{task}` reads {messages:?}");
        read.extend(messages);
    }
    read.sort();
    assert_eq!(read, sent.into_keys().collect::<Vec<_>>(), "{when}");
    assert!(acknowledged.len() > 20, "{when}: {acknowledged:?}");
}

/// The messages in a text, by their names.
fn find_messages(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    words.filter(|word| word.starts_with("msg-")).map(str::to_owned).collect()
}
