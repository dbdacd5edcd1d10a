//! `kill -9` of the runner at many random moments of the research swarm, each followed by `resume`: the same report, no
//! message lost or doubled, and nothing asked or called again whose answer is in the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::specs::Project;

const SPEC: &str = "specs/research-swarm/research-swarm.kdl";
const KILLS: u32 = 100;
/// How often one run is killed at most.
const EACH: u32 = 4;

#[test]
fn a_killed_swarm_loses_doubles_and_repeats_nothing() {
    let undisturbed = project();
    let started = Instant::now();
    undisturbed.done(&["run", SPEC]);
    let duration = started.elapsed();
    let (report, expected) = (undisturbed.output("research"), Told::of(&undisturbed));
    assert_eq!(expected.messages.len(), 3, "a question, its answer, and the name of the helper: {expected:?}");
    assert_eq!(expected.tools.len(), 5, "each reads once, and one looks around: {expected:?}");
    interrupt(&["run", SPEC], duration, project, |project, moments| {
        assert_eq!(project.output("research"), report, "killed after {moments:?}");
        assert_eq!(Told::of(project), expected, "killed after {moments:?}");
    });
}

/// Kills the runner of a run at [`KILLS`] random moments of its duration, resumes it, and has what came of it judged.
pub(crate) fn interrupt(
    run: &[&str],
    duration: Duration,
    project: impl Fn() -> Project,
    judge: impl Fn(&Project, &[Duration]),
) {
    let is_finished =
        |project: &Project| journal(project).map(|records| records.iter().any(|it| it["event"] == "run_finished"));
    let mut interrupted = 0;
    for round in 0.. {
        assert!(round < KILLS * 4, "only {interrupted} kills hit a run in progress");
        let project = project();
        let mut arguments = run;
        let mut moments = Vec::new();
        for _ in 0..EACH {
            let moment = duration.mul_f64(fraction());
            kill_after(&project, arguments, moment);
            match is_finished(&project) {
                // It was killed before its run had a name.
                None => continue,
                Some(true) => break,
                Some(false) => {}
            }
            interrupted += 1;
            moments.push(moment);
            arguments = &["resume", "last"];
        }
        if moments.is_empty() {
            continue;
        }
        if is_finished(&project) != Some(true) {
            project.done(arguments);
        }
        judge(&project, &moments);
        if interrupted >= KILLS {
            break;
        }
    }
}

/// The examples, in which nobody takes as long to answer as a model would.
fn project() -> Project {
    let project = Project::new();
    let path = project.root().join(SPEC);
    let spec = fs::read_to_string(&path).expect("the spec can be read");
    let quick = spec.replace("delay=\"200ms\"", "delay=\"30ms\"").replace("delay=\"700ms\"", "delay=\"80ms\"");
    assert_ne!(quick, spec);
    fs::write(path, quick).expect("the spec can be written");
    project
}

fn kill_after(project: &Project, arguments: &[&str], delay: Duration) {
    let mut command = project.command(arguments);
    let mut runner = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("swarmc starts");
    std::thread::sleep(delay);
    runner.kill().expect("a child can be killed");
    runner.wait().expect("a child can be waited for");
}

/// A random number from 0 to 1, another one at each call.
fn fraction() -> f64 {
    f64::from(RandomState::new().build_hasher().finish() as u32) / f64::from(u32::MAX)
}

/// The records of the only run, once it has a name; a torn tail left out.
pub(crate) fn journal(project: &Project) -> Option<Vec<Value>> {
    let runs = fs::read_dir(project.home().join("runs")).ok()?;
    let has_name = |run: &PathBuf| run.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'));
    let run = runs.filter_map(|entry| Some(entry.ok()?.path())).find(has_name)?;
    let bytes = fs::read(run.join("journal.jsonl")).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// What a journal tells, whatever order it happened in.
#[derive(Debug, PartialEq)]
struct Told {
    /// Who wrote to whom, and what.
    messages: Vec<String>,
    /// Who called which tool in which iteration, and what came of it.
    tools: BTreeMap<String, String>,
    entries: BTreeSet<String>,
    /// How each agent of the roster ended.
    ends: BTreeMap<String, String>,
}

impl Told {
    /// What the journal tells; it must keep to what holds for every swarm.
    fn of(project: &Project) -> Told {
        let records = journal(project).expect("there is a run");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let helper = records.iter().find(|event| event["event"] == "agent_spawned" && event["by"].is_string());
        let helper = helper.map(|event| text(&event["agent"])).unwrap_or_default();
        // A station, another one in each run.
        let plain = |words: String| words.replace(&helper, "helper");
        let mut told =
            Told { messages: Vec::new(), tools: BTreeMap::new(), entries: BTreeSet::new(), ends: BTreeMap::new() };
        let mut boxes: BTreeMap<String, u64> = BTreeMap::new();
        let (mut taken, mut answered) = (BTreeSet::new(), BTreeSet::new());
        let mut seq = 0;
        for event in &records {
            let turn = |kind: &str| {
                plain(format!("{kind} {} {} {}", event["agent"], event["iteration"], event["turn_attempt"]))
            };
            match event["event"].as_str().unwrap_or_default() {
                "message_sent" => {
                    let last = boxes.entry(text(&event["to"])).or_default();
                    *last += 1;
                    assert_eq!(event["number"], *last, "mailboxes have no gaps: {event}");
                    let words = format!(
                        "{} {} {} {}",
                        event["from"], event["to"], event["message_type"], event["payload"]["text"]
                    );
                    told.messages.push(plain(words));
                }
                "message_received" => {
                    assert!(taken.insert((text(&event["agent"]), event["number"].to_string())), "taken twice: {event}");
                }
                "data_published" => {
                    seq += 1;
                    assert_eq!(event["number"], seq, "the workspace has no gaps: {event}");
                    told.entries
                        .insert(plain(format!("{} {} {}", event["author"], event["topic"], event["data"]["text"])));
                }
                kind @ ("turn_started" | "tool_started") => {
                    let of = turn(&kind[..4]) + &text(&event["purpose"]);
                    assert!(!answered.contains(&of), "asked again what is answered: {event}");
                }
                kind @ ("turn_ended" | "tool_ended") => {
                    let of = turn(&kind[..4]) + &text(&event["purpose"]);
                    assert!(answered.insert(of.clone()), "answered twice: {event}");
                    if kind == "tool_ended" {
                        assert!(event["fault"].is_null(), "{event}");
                        told.tools.insert(of, event["result"].to_string());
                    }
                }
                "agent_finished" => {
                    let twice = told.ends.insert(plain(text(&event["agent"])), event["how"].to_string());
                    assert_eq!(twice, None, "it ends once: {event}");
                }
                _ => {}
            }
        }
        told.messages.sort();
        told
    }
}
