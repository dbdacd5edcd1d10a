//! What bad input gets in a swarm, through the binary: each agent of a swarm meets another failure, of its model, of what
//! that answers, or of its tools, and ends as docs/swarms.md, docs/models.md and docs/tools.md say.

mod answers;
mod limits;
mod models;
mod servers;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use swarmc_endpoint::{Answer, Endpoint, Script};

use crate::cli::{Ended, Place};
use crate::swarms::members::asks;

/// The value of the key; it must not stand anywhere.
const KEY: &str = "sk-very-secret-4711";

/// A swarm whose models are an endpoint.
struct Team<'t> {
    /// The kind of the model, and what stands behind it.
    kind: &'t str,
    /// What the agent `a` has, which every member without another one plays.
    agent: &'t str,
    /// The members, as the spec has them.
    members: String,
    /// What else stands in the swarm.
    rules: &'t str,
    /// What else stands in the spec.
    more: String,
}

impl Team<'_> {
    fn place(&self, endpoint: &Endpoint) -> Place {
        let Team { kind, agent, members, rules, more } = self;
        let url = endpoint.url();
        Place::new(&format!(
            "workflow w {{ default team }}\nsecret key env=SECRET_TOKEN\n{more}\n\
             provider p {{ llm {kind} base-url=\"{url}\" model=scripted; auth key; provides tools schema }}\n\
             agent a provider=p {{ {agent} }}\n\
             swarm team {{\n    goal \"Light the lamps\"\n{members}    {rules}\n    synthesize agent=a\n}}\n"
        ))
    }
}

fn members<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().map(|name| format!("    member {name} \"Light lamp {name}\"\n")).collect()
}

/// A model that answers an agent by how often it was asked before.
fn answering(answer: impl Fn(&str, usize) -> Answer + Send + Sync + 'static) -> Endpoint {
    let asked: Mutex<BTreeMap<String, usize>> = Mutex::default();
    Endpoint::start(Script::new().decide(move |request| {
        let Some((name, _)) = asks(request) else { return Some(Answer::text("merged")) };
        let mut asked = asked.lock().expect("nobody panics with it");
        let count = asked.entry(name.clone()).or_default();
        *count += 1;
        Some(answer(&name, *count - 1))
    }))
}

fn says(action: &Value) -> Answer {
    Answer::text(action.to_string())
}

fn done(name: &str) -> Answer {
    says(&json!({ "action": "done", "response": format!("{name} is done") }))
}

fn calls(tool: &str, parameters: &Value) -> Answer {
    says(&json!({ "action": "tool_call", "tool": tool, "tool_params": parameters }))
}

/// What the members were asked, each in order.
fn prompts(endpoint: &Endpoint) -> BTreeMap<String, Vec<String>> {
    let mut prompts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for request in endpoint.prompts() {
        if let Some((name, _)) = asks(&request) {
            prompts.entry(name).or_default().extend(request.user.last().cloned());
        }
    }
    prompts
}

/// Runs the swarm, and says how much memory it took at most, in MiB.
fn watched(place: &Place) -> (Ended, u64) {
    let mut command = place.command(&["run", "flow.kdl", "--events"]);
    command.env("SECRET_TOKEN", KEY).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("swarmc starts");
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let (ended, peak) = std::thread::scope(|scope| {
        let ended = scope.spawn(|| child.wait_with_output().expect("it ends"));
        let mut peak = 0;
        while !ended.is_finished() {
            let known = fs::read_to_string(&status).unwrap_or_default();
            let line = known.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
            peak = peak.max(kilobytes.unwrap_or(0) / 1024);
            std::thread::sleep(Duration::from_millis(10));
        }
        (ended.join().expect("nobody panics"), peak)
    });
    (Ended::from(ended), peak)
}

fn run(place: &Place) -> Ended {
    watched(place).0
}

/// The events about an agent.
fn about<'e>(events: &'e [Value], kind: &'e str, name: &'e str) -> impl Iterator<Item = &'e Value> {
    events.iter().filter(move |event| event["type"] == kind && event["agent_id"] == name)
}

/// Why an agent ended without a result.
fn error<'e>(events: &'e [Value], name: &'e str) -> &'e str {
    about(events, "agent_completed", name).find_map(|event| event["error"].as_str()).unwrap_or_default()
}

/// Every file below the home of runs and the working folder, as one text.
fn everything(place: &Place) -> String {
    let mut all = String::new();
    let mut open = vec![place.home(), place.work()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder can be read").flatten() {
            let kind = entry.file_type().expect("a kind of file");
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() && entry.metadata().is_ok_and(|file| file.len() < 100 << 20) {
                all.push_str(&String::from_utf8_lossy(&fs::read(entry.path()).unwrap_or_default()));
            }
        }
    }
    all
}
