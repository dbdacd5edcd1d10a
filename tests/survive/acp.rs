//! Agents over ACP whose runner is killed: the next one goes on with their dialogue, or starts them again where it cannot.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{count, count_kills, journal, kill_at_random, kill_runner, processes, run_folder, wait_until};
use crate::acp::{methods, place, spec};
use crate::cli::{Place, signal};

/// An agent over ACP waits for permission when its runner is killed: the next runner asks the same, and the agent hears
/// nothing twice.
#[test]
fn an_agent_over_acp_goes_on_with_its_dialogue() {
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acp/agent.py");
    let place = Place::new(&format!(
        "provider acp {{ acp python3 \"{agent}\" asks }}\nagent a provider=acp\npipeline main {{ task one agent=a {{ prompt \"Begin.\" }}; result one }}\n"
    ));
    for (rejoined, arguments) in
        [&["run", "flow.kdl"][..], &["resume", "last"], &["resume", "last"]].into_iter().enumerate()
    {
        let (mut child, _) = place.until(arguments, "swarmc approve");
        wait_until("it has asked", || count(&place, "approval_asked") == 1);
        wait_until("it is rejoined", || count(&place, "attempt_rejoined") == rejoined);
        signal(&child, "KILL");
        child.wait().expect("it ends");
    }
    let (mut child, rest) = place.until(&["resume", "last"], "swarmc approve");
    place.swarmc(&["approve", "last", "1", "allow"]).expect(0, &[], &[]);
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    let heard = fs::read_to_string(place.work().join("heard")).expect("it was written");
    let methods: Vec<&str> =
        heard.lines().filter_map(|line| line.split("\"method\":\"").nth(1)?.split('"').next()).collect();
    assert_eq!(methods, ["initialize", "session/new", "session/prompt"], "{heard}");
    assert_eq!((count(&place, "attempt_rejoined"), count(&place, "approval_asked")), (3, 1));
    assert_eq!(processes(&place), Vec::<i32>::new());
}

/// The runner is killed in a check after the turn: the turn of the agent over ACP is read from what it said, and the agent
/// starts no second time.
#[test]
fn a_dialogue_that_has_ended_is_read() {
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acp/agent.py");
    let place = Place::new(&format!(
        "provider acp {{ acp python3 \"{agent}\" plain }}\nagent a provider=acp\npipeline main {{\n task one agent=a {{ prompt \"Begin.\"; check \"echo start >> effects; until [ -e go ]; do sleep 0.02; done\" }}\n result one\n}}\n"
    ));
    kill_runner(&place, &["run", "flow.kdl"]);
    place.write("go", "");
    place.swarmc(&["resume", "last"]).expect(0, &["Heard: Begin."], &["ended meanwhile, and read"]);
    let heard = fs::read_to_string(place.work().join("heard")).expect("it was written");
    assert_eq!(heard.matches("session/prompt").count(), 1, "{heard}");
}

/// What the runner of an agent that waits for permission has left, and what the agent was told before it was killed.
const BEGUN: [&str; 3] = ["initialize", "session/new", "session/prompt"];

fn killed_while_it_asks(kind: &str) -> (Place, PathBuf) {
    let place = place(&spec(kind, "", ""));
    let (mut child, _) = place.until(&["run", "flow.kdl"], "swarmc approve");
    wait_until("it has asked, and its session is known", || {
        count(&place, "approval_asked") == 1 && count(&place, "session_known") == 1
    });
    signal(&child, "KILL");
    child.wait().expect("it ends");
    let folder = run_folder(&place).join("attempts/go.1/0");
    (place, folder)
}

/// Resumes the run: the runner must start the agent again at once, and say why. Returns the methods it sent to that agent.
#[track_caller]
fn told_again(place: &Place, why: &str) -> Vec<String> {
    let began = Instant::now();
    let (mut child, rest) = place.until(&["resume", "last"], why);
    wait_until("it asks again", || methods(place).iter().filter(|method| *method == "session/prompt").count() == 2);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    wait_until("its request is known", || place.swarmc(&["approve", "last", "1", "allow"]).code == Some(0));
    assert!(child.wait().expect("it ends").success(), "{}", rest());
    assert_eq!(processes(place), Vec::<i32>::new());
    methods(place)[BEGUN.len()..].to_vec()
}

const CUT: &str = "its process starts again: what it had put out was cut off";
const DIFFERS: &str = "its process starts again: it cannot go on with the dialogue of the last runner";
const LOADED: [&str; 3] = ["initialize", "session/load", "session/prompt"];

/// Half of what a living agent has said is lost.
#[test]
fn an_agent_whose_words_are_cut_off_starts_again_in_its_session() {
    let (place, folder) = killed_while_it_asks("asks");
    let out = fs::OpenOptions::new().write(true).open(folder.join("out")).expect("it is kept");
    out.set_len(out.metadata().expect("it has a length").len() / 2).expect("it can be cut");
    assert_eq!(told_again(&place, CUT), LOADED);
    let heard = fs::read_to_string(place.work().join("heard")).expect("it was written");
    assert_eq!(heard.matches("The program that runs you was ended").count(), 1, "{heard}");
}

/// What it has said is there, and holds nothing that it can have said: no answer is waited for.
#[test]
fn an_agent_whose_answers_are_gone_starts_again_at_once() {
    let (place, folder) = killed_while_it_asks("asks");
    let out = folder.join("out");
    let length = fs::metadata(&out).expect("it is kept").len();
    fs::write(&out, "\n".repeat(usize::try_from(length).expect("it is short"))).expect("it can be written");
    assert_eq!(told_again(&place, DIFFERS), LOADED);
}

/// The former runner has said something else than this one would.
#[test]
fn a_dialogue_that_goes_another_way_begins_again_in_its_session() {
    let (place, folder) = killed_while_it_asks("asks");
    let said = fs::read_to_string(folder.join("in")).expect("it is kept");
    fs::write(folder.join("in"), said.replace("session/new", "session/old")).expect("it can be written");
    assert_eq!(told_again(&place, DIFFERS), LOADED);
}

/// The same, and the agent does not know its session any more.
#[test]
fn where_a_session_is_lost_too_the_whole_prompt_follows_in_a_new_one() {
    let (place, folder) = killed_while_it_asks("asks-lost");
    fs::write(folder.join("in"), "{\"id\":1,\"method\":\"session/old\"}\n").expect("it can be written");
    let told = told_again(&place, DIFFERS);
    assert_eq!(told, ["initialize", "session/load", "initialize", "session/new", "session/prompt"]);
    let heard = fs::read_to_string(place.work().join("heard")).expect("it was written");
    assert_eq!(heard.matches("Say hello.").count(), 2, "{heard}");
}

/// The end of what an agent had said before it ended is lost.
#[test]
fn an_agent_that_has_ended_starts_again_where_its_last_words_are_lost() {
    let place = place(&spec("plain", "", "check \"echo start >> effects; until [ -e go ]; do sleep 0.02; done\""));
    kill_runner(&place, &["run", "flow.kdl"]);
    place.write("go", "");
    let out = run_folder(&place).join("attempts/go.1/0/out");
    let out = fs::OpenOptions::new().write(true).open(out).expect("it is kept");
    out.set_len(out.metadata().expect("it has a length").len() - 10).expect("it can be cut");
    place.swarmc(&["resume", "last"]).expect(0, &["Heard: Say hello."], &[CUT]);
    assert_eq!(methods(&place)[BEGUN.len()..], BEGUN);
}

/// A runner is killed while it ends a turn that takes too long: the turn has failed for that, and the agent is gone.
#[test]
fn a_turn_whose_runner_is_killed_while_it_ends_it_has_ended() {
    let place = place(&spec("hesitant", "", "timeout \"3s\""));
    let (mut child, _) = place.until(&["run", "flow.kdl"], "go: started");
    wait_until("it is asked to end", || methods(&place).contains(&"session/cancel".to_owned()));
    signal(&child, "KILL");
    child.wait().expect("it ends");
    wait_until("its shim ends it", || processes(&place).is_empty());
    place.swarmc(&["resume", "last"]).expect(3, &[], &["took longer than 3s"]);
    assert_eq!(methods(&place).last().map(String::as_str), Some("session/cancel"));
}

/// A command that a former runner had begun, and whose start its agent was not told, is not run again.
#[test]
fn a_command_that_was_begun_is_not_run_again() {
    let place = place(&spec("works", "{ tools file_write shell; can write-files run-commands }", ""));
    let (mut child, _) = place.until(&["run", "flow.kdl"], "go: started");
    let read = |name: &str| -> String {
        let runs = fs::read_dir(place.home().join("runs")).into_iter().flatten().flatten();
        runs.map(|run| fs::read_to_string(run.path().join("attempts/go.1/0").join(name)).unwrap_or_default()).collect()
    };
    wait_until("commands have begun", || read("begun").lines().count() > 2);
    signal(&child, "KILL");
    child.wait().expect("it ends");
    // As if the first answer had not been sent: its request is open again.
    let (begun, said) = (read("begun"), read("in"));
    let answer = begun.lines().next().map(|id| format!("{{\"id\":{id},\"method\":null}}\n")).expect("one has begun");
    assert!(said.contains(&answer), "{said}");
    let unsaid = run_folder(&place).join("attempts/go.1/0/in");
    fs::write(unsaid, said.replace(&answer, "")).expect("it can be written");
    place.swarmc(&["resume", "last"]).expect(0, &["over"], &["does not know how far the command came"]);
    let ran = fs::read_to_string(place.work().join("ran")).expect("it was written");
    assert_eq!(ran.lines().filter(|step| *step == "0").count(), 1, "{ran}");
    assert_eq!(methods(&place), BEGUN);
}

/// A turn of many steps, its runner killed at random moments: every effect is there once, and no process is left.
#[test]
fn an_agent_over_acp_does_its_work_once_however_often_its_runner_is_killed() {
    let (kills, mut rejoined, mut again, mut unsure) = (count_kills(20), 0, 0, 0);
    let text = spec("works", "{ tools file_write shell; can write-files run-commands }", "");
    // A run is killed until it ends.
    kill_at_random(
        kills,
        || place(&text),
        (700, kills),
        "over",
        |place, moment| {
            let read = |name: &str| fs::read_to_string(place.work().join(name)).unwrap_or_default();
            let lines = |name: &str| read(name).lines().map(str::to_owned).collect::<Vec<_>>();
            let steps: Vec<String> = (0..12).map(|number| number.to_string()).collect();
            assert_eq!(lines("own"), steps, "moment {moment}: {}", journal(place));
            assert_eq!(lines("starts").len(), 1, "moment {moment}");
            // A command was run once, or its agent was told that this is not known.
            let told = lines("unsure");
            for step in &steps {
                let ran = lines("ran").iter().filter(|ran| *ran == step).count();
                let is_unsure =
                    told.iter().any(|line| line.starts_with(&format!("{step} swarmc was ended when it had begun")));
                assert!(ran == 1 || ran == 0 && is_unsure, "step {step} ran {ran} times, moment {moment}: {told:?}");
                assert_eq!(read(&format!("file-{step}")), *step, "moment {moment}");
            }
            assert_eq!(methods(place), BEGUN, "moment {moment}");
            rejoined += count(place, "attempt_rejoined");
            again += count(place, "attempt_started") - 1;
            unsure += told.len();
        },
    );
    println!("{kills} kills: {rejoined} times rejoined, {again} times started again, {unsure} commands unsure");
}
