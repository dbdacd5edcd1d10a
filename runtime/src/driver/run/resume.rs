//! Resumes a run: after a stop or a kill it goes on where it was, after its end it runs again what failed.
//!
//! In: the folder of a run. Out: the run, which goes on as one of [`start`](super::start). Invariant: a finished step
//! that stays valid runs no second time, and the runner records nothing before every check that can refuse the run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::sync::Arc;

use swarmc_plan::{Pipeline, Plan, Step};

use super::engine::EngineContext;
use super::snapshots::{Former, report_other};
use super::{
    FirstRecord, HeldAttempts, Outcome, ProcessEnv, RunSetup, Worktrees, build_graph, build_redactions, create_poller,
    find_pipeline, is_part, limits, open_recorder, programs, reachable_pipelines, resolve_params, swarms,
    sync_error_handler, unsupported, worktree_names,
};
use crate::core::reopen::{self, Retry};
use crate::core::reopened_records::effective;
use crate::core::state::State;
use crate::io::control::Control;
use crate::io::engine::keeping;
use crate::io::home::{Home, Layout, Lock, RunFolder};
use crate::io::input::Inputs;
use crate::io::journal::FileJournal;
use crate::io::shim::find_held;
use crate::io::{orphan_processes, recording};
use crate::types::error::RunError;
use crate::types::event::{self, Content, Event, StepId};
use crate::types::observer::Observer;
use crate::types::swarm::TurnId;

/// Goes on with a run that was stopped or killed; `headless` as in [`Options`](crate::Options).
///
/// # Errors
/// No such run, it has ended, another process has it, its journal is damaged, or the environment failed.
pub fn resume_run(
    home: &Home,
    run: &str,
    environment: BTreeMap<OsString, OsString>,
    headless: bool,
    control: Control,
    observer: Box<dyn Observer>,
) -> Result<Outcome, RunError> {
    go_on(home, run, None, (environment, headless), control, observer, None)
}

/// Goes on with a run that has ended, was stopped or killed: what failed runs again, and what depends on that.
///
/// # Errors
/// As [`resume_run`]; or there is nothing to run again, or steps that have finished are not the same in the mended plan.
pub fn retry_run(
    home: &Home,
    run: &str,
    retry: &Retry,
    (environment, headless): (BTreeMap<OsString, OsString>, bool),
    control: Control,
    observer: Box<dyn Observer>,
) -> Result<Outcome, RunError> {
    go_on(home, run, Some(retry), (environment, headless), control, observer, None)
}

/// The same, for an engine where there is a `context`.
pub(super) fn go_on(
    home: &Home,
    run: &str,
    retry: Option<&Retry>,
    (environment, headless): (BTreeMap<OsString, OsString>, bool),
    control: Control,
    observer: Box<dyn Observer>,
    context: Option<&EngineContext>,
) -> Result<Outcome, RunError> {
    limits::survive_full_files();
    let folder = home.find(run)?;
    if context.is_none() && folder.is_copy() {
        return Err(RunError::Request(format!(
            "run `{}` is one of an engine, where this version resumes no run: start it again with `swarmc run … --engine`",
            folder.id
        )));
    }
    // Ahead of reading: from here on no other process writes into the journal.
    let lock = Lock::acquire_lock(&folder)?;
    let path = folder.journal_path();
    // Every record of a run that is reopened, and of one whose driver has nothing but its records.
    let has_snapshots = retry.is_none() && context.is_none();
    let mut former = if has_snapshots { Former::read(&folder)? } else { Former::read_all(&folder)? };
    let mut folded = former.read.folded_records();
    // The run goes on without it as well; one that has ended does not go on here.
    let pays = has_snapshots && former.state.final_status().is_none() && former.read.is_long();
    if pays && former.keep(&folder).is_ok_and(|is_kept| is_kept) {
        folded = former.read.last().0;
    }
    let Former { read, plan: former, graph: former_graph, mut state, files, .. } = former;
    let Event::RunStarted { pipeline: name, task, params: given, stored_params, stdin, commit, .. } = &read.first.event
    else {
        return Err(report_other(&folder));
    };
    let given = match stored_params {
        None => given.clone(),
        Some(stored) => read_params(&folder, stored)?,
    };
    let mut facts = folder.read_config()?;
    if let Some(recording) = &facts.replay {
        return Err(RunError::Request(format!(
            "run `{}` is a replay and cannot be resumed: run it again with `--replay {}`",
            folder.id,
            recording.display()
        )));
    }
    let former_pipeline = find_pipeline(&former, Some(name))?;
    let concurrency = folder.concurrency(read.headers());
    let commit = commit.clone().or(facts.commit.take());
    let plan = retry.and_then(|retry| retry.plan.as_ref()).unwrap_or(&former);
    let is_mended = !std::ptr::eq(plan, &former);
    let pipeline = find_pipeline(plan, Some(name))?;
    let graph = match is_mended {
        true => Arc::new(build_graph(plan, pipeline, task.as_deref(), concurrency)?),
        false => Arc::clone(&former_graph),
    };
    if is_mended {
        unsupported::check_supported(plan, &graph)?;
    }
    let params = match is_mended {
        true => mended_params(plan, pipeline, given)?,
        false => given,
    };
    let mut process_env = ProcessEnv::new(reachable_pipelines(plan, &graph), &facts.workspace, environment)?;
    if context.is_some() {
        process_env = process_env.remote();
    }
    let repository = match context {
        Some(_) => None,
        None => worktree_names::find_repository(plan, &graph, &process_env)?,
    };
    let was_reopened = reopen::is_reopened(&read.records);
    if let Some(status) = state.final_status() {
        if let Some(target) = facts.record.as_ref().filter(|_| !was_reopened && recording::is_kept(&folder)) {
            // Its runner was killed when it had recorded the end, and not yet put the recording where it belongs.
            let values = super::load_values(&state, &folder)?;
            let redactions = build_redactions(&former, &folder, &process_env);
            recording::publish(&folder, target, &former.workflow, &redactions, &values)?;
        }
        if retry.is_none() {
            return Err(RunError::Ended { run: folder.id, status });
        }
    }
    let mut notices = Vec::new();
    let processes: Vec<event::Process> = state.open_steps().flat_map(|open| open.processes).collect();
    let first = match retry {
        None => FirstRecord::New(vec![Event::RunResumed]),
        Some(retry) => {
            let former = reopen::Running { plan: &former, pipeline: former_pipeline, graph: &former_graph };
            let new = reopen::Running { plan, pipeline, graph: &graph };
            let reopened =
                reopen::reopen(&folder.id, &read.records, (former, new), retry).map_err(RunError::Request)?;
            if is_mended {
                // The event that names it comes after it.
                folder.store_text(&swarmc_plan::encode_plan(plan))?;
            }
            state = reopened.state;
            notices.extend(reopened.notices);
            FirstRecord::New(reopened.events)
        }
    };
    // What has succeeded needs its program no more.
    let done: BTreeSet<Arc<str>> = state.outputs().map(|(step, _)| step.name).collect();
    let runs = |pipeline: &Pipeline, step: &Step| !done.contains(step.name.as_str()) && is_part(&graph, pipeline, step);
    if context.is_none() {
        notices.extend(programs::look_up(plan, &reachable_pipelines(plan, &graph), runs, &process_env)?);
    }
    if let Some(target) = facts.record.take_if(|_| was_reopened || retry.is_some()) {
        notices.push(format!(
            "this part of the run is not recorded: the recording `{}` ends at the first end of the run",
            target.display()
        ));
    }

    let (last, clock) = read.last();
    swarms::files::restore_files(&folder, &folder.layout(pipeline), files, &effective(&read.records))?;
    if read.torn > 0 {
        notices.push(format!(
            "the journal ended in {} damaged bytes, which are ignored: it continues after record {last}",
            read.torn
        ));
    }
    let layout = folder.layout(pipeline);
    let held = match retry {
        None => find_held_attempts(&layout, &state, context),
        // What has begun may not be what the mended plan says.
        Some(_) => HeldAttempts::new(),
    };
    let living: BTreeSet<i32> = held.values().filter_map(|held| Some(held.living.as_ref()?.shim)).collect();
    // Before anything starts: they may still be writing into the workspace.
    let survivors = match context {
        // Workers end theirs.
        Some(_) => None,
        None => orphan_processes::end_orphans(&folder.id, processes, &living),
    };
    notices.extend(describe_held(&held));
    notices.extend(survivors.map(|survivors| format!("{survivors} left by the last runner: ended")));

    let poller = create_poller()?;
    let (inputs, receiver) = Inputs::new(poller.inbox());
    let (failed, end) = (sync_error_handler(&inputs), read.end);
    let journal =
        match context {
            None => FileJournal::append_to(&path, end, last, failed),
            Some(context) => File::options().read(true).write(true).open(&path).and_then(|file| {
                FileJournal::append_kept(file, (end, last), Box::new(keeping(&context.keeper)), failed)
            }),
        };
    let journal = journal.map_err(RunError::io("write", &path))?;
    let redactions = build_redactions(plan, &folder, &process_env);
    let begin = RunSetup {
        source: open_recorder(&folder, &facts, &redactions)?,
        record: facts.record.map(|target| (target, redactions)),
        params,
        stdin: stdin.clone(),
        trees: repository.zip(commit).map(|(repository, commit)| Worktrees::new(repository, commit, &folder)),
        folder,
        pipeline,
        plan,
        process_env,
        state,
        folded,
        last,
        clock,
        first,
        headless,
        held,
        notices,
        journal: Box::new(journal),
        reuse: facts.reuse,
        remote: context.map(|context| Arc::clone(&context.holder)),
    };
    begin.run(lock, control, observer, (&inputs, receiver, &poller))
}

/// What an earlier runner has left of open attempts and turns, where another runner can go on with that.
fn find_held_attempts(layout: &Layout, state: &State, context: Option<&EngineContext>) -> HeldAttempts {
    let attempts = state.open_steps().map(|open| (open.step, open.attempt, None));
    let turns = state.open_turns().map(|(step, attempt, turn)| (step, attempt, Some(turn)));
    let find = |of: (StepId, u32, Option<TurnId>)| {
        let folder = match &of.2 {
            None => layout.processes_folder(&of.0, of.1),
            Some(turn) => layout.turn_processes_folder(&of.0, of.1, turn),
        };
        let held = match context {
            None => find_held(&folder),
            Some(context) => context.holder.find_held(&folder),
        };
        held.map(|held| (of, held))
    };
    attempts.chain(turns).filter_map(find).collect()
}

/// What people hear of the attempts that go on.
fn describe_held(held: &HeldAttempts) -> Option<String> {
    let living = held.values().filter(|held| held.living.is_some()).count();
    let count = |count: usize| if count == 1 { "1 attempt".to_owned() } else { format!("{count} attempts") };
    match (living, held.len() - living) {
        (0, 0) => None,
        (living, 0) => Some(format!("{} of the last runner: still under way, and rejoined", count(living))),
        (0, ended) => Some(format!("{} of the last runner: ended meanwhile, and read", count(ended))),
        (living, ended) => Some(format!(
            "{} of the last runner: still under way, and rejoined; {}: ended meanwhile, and read",
            count(living),
            count(ended)
        )),
    }
}

/// The parameters that a run was given, as a mended plan takes them: those that it has no more are left out.
fn mended_params(
    plan: &Plan,
    pipeline: &Pipeline,
    mut given: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, RunError> {
    let has = |name: &str| plan.params.iter().chain(&pipeline.params).any(|param| param.name == name);
    given.retain(|name, _| has(name));
    resolve_params(plan, pipeline, given)
}

/// Parameters that were too long for an event.
fn read_params(folder: &RunFolder, stored: &Content) -> Result<BTreeMap<String, String>, RunError> {
    serde_json::from_str(&folder.read_text(stored)?).map_err(|error| {
        let reason = format!("its parameters are damaged: {error}");
        RunError::Plan { run: folder.id.clone(), reason }
    })
}
