//! Finds the programs that a run starts, and checks before the start that they are there.
//!
//! In: the pipelines that run, and the environment that their processes get. Out: each program with the steps that
//! start it. Invariant: a program is missing only if the run surely starts it, and no step can install it. A program
//! named by a path, one that another step may install, or one that conditions, routes and defaults may avoid, is only a
//! note.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use swarmc_plan::{
    Agent, Body, Command, Effect, EnvValue, Environment, Join, Need, OnFailure, Pipeline, Plan, Segment, Step, When,
};

use super::process_env::ProcessEnv;
use crate::io::process::find_program;
use crate::types::error::RunError;

/// A program that steps start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// As it is named.
    pub name: String,
    /// Where it is; none where it is not there.
    pub path: Option<PathBuf>,
    /// The steps that start it, by name.
    pub steps: Vec<String>,
    /// The agent whose turns it takes, where it takes any.
    pub agent: Option<String>,
    /// How it is installed.
    pub install: Option<String>,
    /// Whether the run fails without it, as far as the plan tells.
    pub is_needed: bool,
    /// Whether another agent takes the turns of this one where it cannot be reached.
    pub has_fallback: bool,
}

impl Program {
    /// What is said of one that is not there.
    pub fn describe_missing(&self) -> String {
        let names: Vec<String> = self.steps.iter().take(3).map(|step| format!("`{step}`")).collect();
        let more = self.steps.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let agent = self.agent.as_ref().map(|agent| format!(" for agent `{agent}`")).unwrap_or_default();
        let install = self.install.as_ref().map(|install| format!("; install it with `{install}`")).unwrap_or_default();
        format!(
            "`{}`: not found, which {}{more} {}{agent}{install}",
            self.name,
            names.join(", "),
            match self.steps.len() {
                1 => "starts",
                _ => "start",
            }
        )
    }
}

/// The programs of every pipeline of a plan, as a run in `workspace` with the caller's environment would find them.
///
/// # Errors
/// A working folder is not there.
pub fn find_programs(
    plan: &Plan,
    workspace: &Path,
    environment: BTreeMap<OsString, OsString>,
) -> Result<Vec<Program>, RunError> {
    let process_env = ProcessEnv::new(&plan.pipelines, workspace, environment)?;
    let main = plan.pipelines.iter().filter(|pipeline| pipeline.name == plan.default);
    let others = plan.pipelines.iter().filter(|pipeline| pipeline.name != plan.default);
    let pipelines: Vec<&Pipeline> = main.chain(others).collect();
    Ok(required_programs(plan, &pipelines, |_, _| true, &process_env))
}

/// The programs of the pipelines that run, of which the first is the one that is asked for.
pub(super) fn required_programs(
    plan: &Plan,
    pipelines: &[&Pipeline],
    runs: impl Fn(&Pipeline, &Step) -> bool,
    process_env: &ProcessEnv,
) -> Vec<Program> {
    let mut found: BTreeMap<(OsString, String, Option<String>), Program> = BTreeMap::new();
    let mut files: BTreeMap<(OsString, &str, Arc<PathBuf>), Option<PathBuf>> = BTreeMap::new();
    let commands: Vec<(&str, &str, String)> = pipelines.iter().flat_map(|pipeline| list_commands(pipeline)).collect();
    let mut begins: BTreeSet<&str> = pipelines.first().map(|pipeline| pipeline.name.as_str()).into_iter().collect();
    for pipeline in pipelines {
        let sure = if begins.contains(pipeline.name.as_str()) { certain_steps(pipeline) } else { BTreeSet::new() };
        let handled = find_handled_steps(pipeline);
        for step in pipeline.all_steps().filter(|step| runs(pipeline, step)) {
            let is_sure = sure.contains(step.name.as_str());
            if let Body::Call(call) = &step.body
                && is_sure
            {
                begins.insert(&call.pipeline);
            }
            let fails = is_sure && !handled.contains(step.name.as_str());
            for start in initial_programs(plan, step) {
                let Some(path) = search_path(&[&pipeline.env, start.env, &step.env], process_env) else { continue };
                let directory = process_env.pipeline_directory(&pipeline.name);
                // In a tree of its own the workspace's files are there as well.
                let file = files
                    .entry((path.clone(), start.program, Arc::clone(&directory)))
                    .or_insert_with(|| find_program(OsStr::new(start.program), &path, &directory).ok())
                    .clone();
                let before = if file.is_none() { find_predecessors(pipeline, step) } else { BTreeSet::new() };
                let installs = |(of, by, text): &(&str, &str, String)| {
                    // What another pipeline does may come first, if it is called.
                    (*of != pipeline.name || before.contains(by))
                        && may_install(text, start.program, start.agent.is_some())
                };
                let brought = start.program.contains('/') || file.is_none() && commands.iter().any(installs);
                let key = (path, start.program.to_owned(), start.agent.map(str::to_owned));
                let program = found.entry(key).or_insert_with(|| Program {
                    name: start.program.to_owned(),
                    path: file,
                    steps: Vec::new(),
                    agent: start.agent.map(str::to_owned),
                    install: start.install.map(str::to_owned),
                    is_needed: false,
                    has_fallback: start.has_fallback,
                });
                program.is_needed |= fails && !brought && !start.has_fallback;
                // A step may start one program several times, as in its checks.
                if program.steps.last() != Some(&step.name) {
                    program.steps.push(step.name.clone());
                }
            }
        }
    }
    found.into_values().collect()
}

/// Refuses a run that would fail for want of a program; says of the others that they are not there.
pub(super) fn look_up(
    plan: &Plan,
    pipelines: &[&Pipeline],
    runs: impl Fn(&Pipeline, &Step) -> bool,
    process_env: &ProcessEnv,
) -> Result<Vec<String>, RunError> {
    let missing =
        required_programs(plan, pipelines, runs, process_env).into_iter().filter(|program| program.path.is_none());
    let (needed, noted): (Vec<Program>, Vec<Program>) = missing.partition(|program| program.is_needed);
    if !needed.is_empty() {
        let mut problems: Vec<String> = needed.iter().map(Program::describe_missing).collect();
        problems.dedup();
        return Err(RunError::Request(format!("nothing was started: {}", problems.join("\n  "))));
    }
    // What is named by a path is made by a step more often than not, and a fallback is said when it takes its turn.
    let said = |program: &&Program| !program.name.contains('/') && !program.has_fallback;
    Ok(noted.iter().filter(said).map(Program::describe_missing).collect())
}

/// Something that is started.
struct Start<'a> {
    program: &'a str,
    env: &'a Environment,
    agent: Option<&'a str>,
    install: Option<&'a str>,
    /// Another agent takes the turn where this one cannot be reached.
    has_fallback: bool,
}

const NOTHING: &Environment = &Vec::new();

/// What the attempts of a step start first.
fn initial_programs<'a>(plan: &'a Plan, step: &'a Step) -> Vec<Start<'a>> {
    let command = |command: &'a Command| Start {
        program: match command {
            Command::Argv(argv) | Command::Script { argv, .. } => argv.first().map_or("", String::as_str),
            Command::Shell(_) => "sh",
        },
        env: NOTHING,
        agent: None,
        install: None,
        has_fallback: false,
    };
    let mut all: Vec<Start<'a>> = step.checks.iter().map(command).collect();
    match &step.body {
        Body::Run(line) => all.push(command(line)),
        Body::Prompt(body) => all.extend(plan.agent(&body.agent).and_then(|agent| of_agent(plan, agent))),
        _ => {}
    }
    all.retain(|start| !start.program.is_empty());
    all
}

fn of_agent<'a>(plan: &'a Plan, agent: &'a Agent) -> Option<Start<'a>> {
    let provider = plan.provider(&agent.provider)?;
    let argv = provider.connection.program()?;
    Some(Start {
        program: argv.first()?,
        env: &provider.env,
        agent: Some(&agent.name),
        install: provider.install.as_deref(),
        has_fallback: agent.fallback.is_some(),
    })
}

/// The `PATH` of processes with these layers; none where only the run can tell.
fn search_path(layers: &[&Environment], process_env: &ProcessEnv) -> Option<OsString> {
    // From the end: of two variables with one name, a process sees the last.
    let set = layers.iter().copied().flatten().rev().find_map(|entry| match entry {
        EnvValue::Set { name, value } if name == "PATH" => Some(match value.segments.as_slice() {
            [Segment::Text(text)] => Some(OsString::from(text)),
            _ => None,
        }),
        _ => None,
    });
    match set {
        Some(path) => path,
        None => {
            let path = process_env.caller().get(OsStr::new("PATH")).cloned();
            Some(path.unwrap_or_else(|| crate::io::process::DEFAULT_PATH.into()))
        }
    }
}

/// The steps that a step waits for, directly or through others, and those in them.
fn find_predecessors<'a>(pipeline: &'a Pipeline, step: &'a Step) -> BTreeSet<&'a str> {
    let steps: BTreeMap<&str, &Step> = pipeline.all_steps().map(|step| (step.name.as_str(), step)).collect();
    let inner = |step: &'a Step| step.body.loop_steps().iter().map(move |inner| (inner.name.as_str(), step));
    let around: BTreeMap<&str, &Step> = pipeline.all_steps().flat_map(inner).collect();
    let mut earlier = BTreeSet::new();
    let mut open: Vec<&str> = vec![&step.name];
    while let Some(step) = open.pop().and_then(|name| steps.get(name).copied()) {
        let needs = step.needs.iter().map(|need| need.step.as_str());
        let inside = step.body.loop_steps().iter().map(|step| step.name.as_str());
        // What a loop around it waits for comes before it as well.
        let of_loop =
            around.get(step.name.as_str()).into_iter().flat_map(|step| &step.needs).map(|need| need.step.as_str());
        let more: Vec<&str> = needs.chain(inside).chain(of_loop).filter(|name| earlier.insert(*name)).collect();
        open.extend(more);
    }
    earlier
}

/// The command lines of a pipeline, with its name and the step.
fn list_commands(pipeline: &Pipeline) -> Vec<(&str, &str, String)> {
    let text = |command: &Command| match command {
        Command::Argv(argv) | Command::Script { argv, .. } => argv.join(" "),
        Command::Shell(line) => line.clone(),
    };
    let of = |step: &Step| {
        let body = match &step.body {
            Body::Run(command) => Some(text(command)),
            _ => None,
        };
        body.into_iter().chain(step.checks.iter().map(text)).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for step in pipeline.all_steps() {
        all.extend(of(step).into_iter().map(|text| (pipeline.name.as_str(), step.name.as_str(), text)));
    }
    all
}

/// Whether a command may put a program where it is found: it names it, installs something, or runs a script of which
/// nothing is known. The programs of agents come by their name alone.
fn may_install(command: &str, program: &str, of_agent: bool) -> bool {
    let mut words = command.split(|character: char| !(character.is_alphanumeric() || "_-./+".contains(character)));
    words.any(|word| {
        let is_named = word == program || word.rsplit('/').next() == Some(program);
        let installs = ["install", "add", "curl", "wget", "make", "just", "setup"].contains(&word);
        let is_script = word.starts_with("./") || [".sh", ".py", ".js"].iter().any(|end| word.ends_with(end));
        is_named || !of_agent && (installs || is_script)
    })
}

/// The steps of a pipeline that begins which begin as well, unless one before them fails.
fn certain_steps(pipeline: &Pipeline) -> BTreeSet<&str> {
    let around: BTreeMap<&str, &str> = pipeline
        .all_steps()
        .flat_map(|step| step.body.loop_steps().iter().map(|inner| (inner.name.as_str(), step.name.as_str())))
        .collect();
    let spawned: BTreeSet<&str> = pipeline
        .edges
        .iter()
        .filter(|edge| edge.kind == swarmc_plan::EdgeKind::Spawn)
        .flat_map(|edge| edge.receivers())
        .collect();
    let ends_early = pipeline.all_steps().any(|step| matches!(step.body, Body::Stop { .. }));
    let mut sure = BTreeSet::new();
    // A `stop` may come before any other step.
    if ends_early {
        return sure;
    }
    let is_plain = |step: &&Step| {
        let succeeds = step.needs.iter().all(|need| need.when == When::Success);
        step.when.is_none()
            && step.for_each.is_none()
            && step.join == Join::All
            && succeeds
            && !spawned.contains(step.name.as_str())
    };
    let plain: BTreeMap<&str, &Step> =
        pipeline.all_steps().filter(is_plain).map(|step| (step.name.as_str(), step)).collect();
    // From those that need nothing to those that need them.
    let mut waiting: FxHashMap<&str, usize> = FxHashMap::default();
    let mut needed: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    let mut ready: Vec<&str> = Vec::new();
    for (&name, step) in &plain {
        let needs = step.needs.iter().map(|need| need.step.as_str()).chain(around.get(name).copied());
        let mut count = 0;
        for need in needs {
            needed.entry(need).or_default().push(name);
            count += 1;
        }
        waiting.insert(name, count);
        if count == 0 {
            ready.push(name);
        }
    }
    // What needs a step that may be left out keeps a need that nothing counts down.
    while let Some(name) = ready.pop() {
        sure.insert(name);
        for dependant in needed.remove(name).unwrap_or_default() {
            let left = waiting.entry(dependant).or_default();
            *left = left.saturating_sub(1);
            if *left == 0 {
                ready.push(dependant);
            }
        }
    }
    sure
}

/// The steps of a pipeline that may fail: the plan does without them.
fn find_handled_steps(pipeline: &Pipeline) -> BTreeSet<&str> {
    let routes = |need: &&Need| need.when != When::Success || need.effect != Effect::default();
    let mut handled: BTreeSet<&str> = pipeline.iteration.handles.iter().map(String::as_str).collect();
    for step in pipeline.all_steps() {
        if let Body::Loop(body) = &step.body {
            handled.extend(body.iteration.handles.iter().map(String::as_str));
        }
        handled.extend(step.needs.iter().filter(routes).map(|need| need.step.as_str()));
        if step.on_failure != OnFailure::Fail || step.output.default.is_some() {
            handled.insert(&step.name);
        }
    }
    handled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::samples::{line, pipeline, plan};

    /// The programs that are missing of these steps, each with a command: those that are refused, and the others.
    fn missing(steps: &[(&str, &[&str])]) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let mut main = pipeline("");
        for (head, argv) in steps {
            let mut step = line(head);
            step.body = Body::Run(Command::Argv(argv.iter().map(|word| (*word).to_owned()).collect()));
            main.steps.push(step);
        }
        let environment = BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]);
        let all = find_programs(&plan(main), folder.path(), environment).unwrap();
        let missing = all.into_iter().filter(|program| program.path.is_none());
        let (needed, noted): (Vec<Program>, Vec<Program>) = missing.partition(|program| program.is_needed);
        let names = |list: Vec<Program>| list.into_iter().map(|program| program.name).collect();
        (names(needed), names(noted))
    }

    #[track_caller]
    fn check(steps: &[(&str, &[&str])], needed: &[&str], noted: &[&str]) {
        let (one, other) = missing(steps);
        assert_eq!((one.as_slice(), other.as_slice()), (strings(needed).as_slice(), strings(noted).as_slice()));
    }

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn only_what_the_run_cannot_do_without_is_missing() {
        check(&[("a", &["sh"]), ("b < a", &["no-such"])], &["no-such"], &[]);
        check(&[("a", &["./made-later"]), ("b < a", &["bin/no-such"])], &[], &["./made-later", "bin/no-such"]);
        for brings in [["sh", "install", "it"], ["sh", "./setup.sh", ""], ["cp", "x", "/usr/bin/no-such"]] {
            check(&[("a", &brings), ("b < a", &["no-such"])], &[], &["no-such"]);
        }
    }

    #[test]
    fn what_may_not_begin_or_is_made_up_for_is_a_note() {
        check(&[("a when", &["no-such"])], &[], &["no-such"]);
        check(&[("a when", &["sh"]), ("b < a", &["no-such"])], &[], &["no-such"]);
        check(&[("a skip", &["no-such"])], &[], &["no-such"]);
        check(&[("a default=x", &["no-such"])], &[], &["no-such"]);
        check(&[("a", &["no-such"]), ("b < a:failure!", &["sh"])], &[], &["no-such"]);
        check(&[("a", &["sh"]), ("b < a:failure!", &["no-such"])], &[], &["no-such"]);
    }
}
