//! Carries out one attempt: its body, then its checks; and combines their outcomes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use swarmc_plan::{Command, LOG};

use super::capture::Capture;
use super::pool::Services;
use super::replay_boundary::{ask_or_replay, begin_attempt, collect_folder, stated_variables};
use super::{Candidate, Job, Survival, Work, turn, turn_artifacts};
use crate::io::artifact::Watch;
use crate::io::files::{Collected, FileWorkspace, FileWorkspaceSpec};
use crate::io::input::Input;
use crate::io::process::{Cause, End, Launch, Limits, Poller, argv, decode_text, describe_command, run_process};
use crate::io::recording::{Answer, Part, Question};
use crate::io::shim::{Hold, run_held_process};
use crate::types::chat::{Fault, Reply};
use crate::types::error::RunError;
use crate::types::event::{Content, Failure, INLINE, NOT_STARTED, Outcome};
use crate::types::handoff::Operation;

/// Beside the processes of an attempt: how the files were that it changes, and what was put into its folder.
const BEFORE: &str = "before";
const LAID: &str = "laid.json";

/// How an attempt ended, its text not yet stored.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub outcome: Outcome,
    /// What it put out, for `outcome.output`.
    pub output: Option<String>,
    /// What it put out, for the file that people read; none where it put out nothing.
    pub captured: Option<Vec<u8>>,
    /// Whether logs wait to be written.
    pub logs: bool,
}

impl Ended {
    pub(super) fn from_failure(failure: Failure) -> Ended {
        Ended { outcome: Outcome { failure: Some(failure), ..Outcome::default() }, ..Ended::default() }
    }
}

/// What one attempt is carried out with.
pub(super) struct Place<'p, 'c> {
    pub services: &'p Services,
    pub poller: &'p Poller,
    pub limits: Limits,
    pub capture: &'p mut Capture<'c>,
    /// The processes of the attempt so far that are held by shims.
    pub held: u32,
}

impl Place<'_, '_> {
    /// Where the next process of the attempt is held, where it is to outlive the runner.
    pub(super) fn next_hold(&mut self, job: &Job) -> Option<Hold> {
        let Survival { run, folder, orphan_limit, epoch, rejoins, remote } = job.survival.as_ref()?;
        let folder = folder.join(self.held.to_string());
        self.held += 1;
        let (run, remote) = (run.clone(), remote.clone());
        Some(Hold { run, folder, orphan_limit: *orphan_limit, epoch: *epoch, rejoins: *rejoins, remote })
    }

    /// Whether the next process of the attempt was started by a former runner.
    pub(super) fn rejoins_next(&self, job: &Job) -> bool {
        let survival = job.survival.as_ref().filter(|survival| survival.rejoins);
        survival.is_some_and(|survival| {
            let folder = survival.folder.join(self.held.to_string());
            survival
                .remote
                .as_ref()
                .map_or_else(|| folder.exists(), |remote| remote.holder.find_held(&folder).is_some())
        })
    }
}

/// Carries `job` out; its tree is watched already where `watch` is there.
///
/// # Errors
/// The run cannot go on: a log or a prompt could not be written.
pub(super) async fn carry_out(
    job: &Job,
    watch: Option<Watch>,
    poller: &Poller,
    services: &Services,
) -> Result<Ended, RunError> {
    if job.cancel.requested_level().is_some() {
        return Ok(Ended::from_failure(Failure::Cancelled));
    }
    let started = Instant::now();
    let limits = Limits { deadline: job.timeout.map(|timeout| started + timeout), idle: job.idle, grace: job.grace };
    let mut capture = Capture::new(services, job);
    let place = &mut Place { services, poller, limits, capture: &mut capture, held: 0 };
    if let Some(failure) = begin_attempt(job, place).await {
        return Ok(Ended::from_failure(failure));
    }
    let live = job.file_workspace.as_deref().filter(|_| services.source.is_real());
    let laid = live.map(|file_workspace| lay_out_folder(job, file_workspace));
    let laid = match laid.transpose() {
        Err(message) => {
            let message = format!("its folder cannot be created: {message}");
            return Ok(Ended::from_failure(Failure::Files { message, lasting: false }));
        }
        Ok(laid) => laid,
    };
    let watch = watch.or_else(|| watch_tree(job, services));
    let mut ended = match &job.work {
        Work::Command { command, stdin } => {
            let question = || Question {
                command: Some(describe_command(command)),
                stdin: stdin.as_deref().map(|stdin| String::from_utf8_lossy(stdin).into_owned()),
                env: stated_variables(job, &job.environment),
                ..Question::default()
            };
            let live = async |place: &mut Place<'_, '_>| {
                let hold = place.next_hold(job);
                Ok(run_command(job, command, (stdin.as_deref(), hold), place).await)
            };
            let answer = ask_or_replay(job, Part::Command, question, place, live).await?;
            command_ended(job, answer)
        }
        Work::Agent(asked) => Box::pin(turn::run_agent_turn(job, asked, place)).await?,
        Work::Text(text) => Ended { output: Some(text.clone()), ..Ended::default() },
        Work::Member(member) => {
            // The pool has such a turn carried out on its own.
            let failure = Failure::Spawn { message: format!("`{}` takes turns of a swarm alone", member.taker.agent) };
            Ended::from_failure(failure)
        }
    };
    keep_changes(job, watch, services)?;
    let transcript = place.capture.take_transcript();
    let asked = match collect_folder(job, laid, &mut ended.outcome.failure, services)? {
        Some(collected) => collect_files(job, collected, &mut ended, services)?,
        None => Vec::new(),
    };
    if ended.outcome.failure.is_none() {
        ended.outcome.failure = Box::pin(run_checks(job, place, &mut ended.outcome.stderr)).await?;
    }
    // What a failed attempt left to be sent, the next one sends.
    for operation in asked.into_iter().filter(|_| ended.outcome.failure.is_none()) {
        let (step, attempt) = (job.step.clone(), job.attempt);
        services.report(Input::Said { step, attempt, operation, hearer: None });
    }
    // A failed command keeps its text, but what is no value of its type, or no longer to be trusted, is missing.
    let keeps_text = matches!(job.work, Work::Command { .. } | Work::Text(_)) && job.shape.is_none();
    if ended.outcome.failure.is_some() && !keeps_text {
        ended.output = None;
    }
    turn_artifacts::store_artifacts(job, &mut ended, (transcript, capture.list_logs()), services)?;
    ended.logs = capture.finish()?;
    Ok(ended)
}

/// Takes the turn of a swarm's member.
///
/// # Errors
/// The run cannot go on: a log or a prompt could not be written.
pub(super) async fn carry_out_member(
    job: &Job,
    taker: &Candidate,
    poller: &Poller,
    services: &Services,
) -> Result<Result<Reply, Fault>, RunError> {
    let deadline = job.timeout.map(|timeout| Instant::now() + timeout);
    let limits = Limits { deadline, idle: job.idle, grace: job.grace };
    let mut capture = Capture::new(services, job);
    let place = &mut Place { services, poller, limits, capture: &mut capture, held: 0 };
    let reply = Box::pin(turn::take_member_turn(job, taker, place)).await?;
    capture.finish()?;
    Ok(reply)
}

/// Looks at the tree that a turn is about to work in, where agents start.
pub(super) fn watch_tree(job: &Job, services: &Services) -> Option<Watch> {
    let is_live = services.source.is_real() && job.cancel.requested_level().is_none();
    if !job.watched || !is_live {
        return None;
    }
    let (label, environment) = (job.step.label(), &job.environment);
    let Some(survival) = &job.survival else {
        return Some(services.watches.begin_watch(&label, &job.directory, environment));
    };
    let kept = survival.folder.join(BEFORE);
    let former = survival.rejoins.then(|| services.watches.resume_watch(&label, &job.directory, environment, &kept));
    Some(former.flatten().unwrap_or_else(|| {
        let watch = services.watches.begin_watch(&label, &job.directory, environment);
        // Without it a later runner shows what changes from then on.
        if let Err(error) = watch.keep(&kept) {
            services.observer_handle.send_notice(format!("`{label}`: how its files were cannot be kept: {error}"));
        }
        watch
    }))
}

/// Lays out the folder of an agent that works by files; where a former runner did, takes that.
fn lay_out_folder(job: &Job, file_workspace: &FileWorkspaceSpec) -> Result<FileWorkspace, String> {
    let workspace = workspace_path(job, file_workspace);
    let Some(survival) = &job.survival else {
        return FileWorkspace::lay_out(file_workspace, workspace, &job.cancel);
    };
    let kept = survival.folder.join(LAID);
    match survival.rejoins && kept.exists() {
        true => FileWorkspace::come_back(file_workspace, workspace, &job.cancel, &kept),
        false => {
            let laid = FileWorkspace::lay_out(file_workspace, workspace, &job.cancel)?;
            laid.keep(&kept)?;
            Ok(laid)
        }
    }
}

/// Stores what a turn has changed.
fn keep_changes(job: &Job, watch: Option<Watch>, services: &Services) -> Result<(), RunError> {
    match watch.map(Watch::end) {
        Some(Ok(Some(taken))) => {
            let content = services.folder.store_text(&taken.text)?;
            let (step, attempt) = (job.step.clone(), job.attempt);
            services.report(Input::Left { step, attempt, artifact: Box::new(taken.into_meta(content)) });
        }
        Some(Err(problem)) => {
            services.observer_handle.send_notice(format!("`{}`: its changes are unknown: {problem}", job.step.label()));
            services.report(Input::ChangesUnknown { step: job.step.clone() });
        }
        Some(Ok(None)) | None => {}
    }
    Ok(())
}

/// Where the files of the workspace lie for a job.
fn workspace_path(job: &Job, file_workspace: &FileWorkspaceSpec) -> PathBuf {
    let tree = job.tree.as_ref().and_then(|tree| tree.trees.workspace_path(&tree.name));
    tree.unwrap_or_else(|| file_workspace.workspace.clone())
}

/// Collects what an agent left in its folder, and what its messages ask for. Its output is the file there, unless
/// its answer has a type.
fn collect_files(
    job: &Job,
    collected: Collected,
    ended: &mut Ended,
    services: &Services,
) -> Result<Vec<Result<Operation, String>>, RunError> {
    ended.outcome.failure = collected.failure;
    if let (Some(output), None, None) = (collected.output, &job.shape, &ended.outcome.failure) {
        let output = decode_text(without_newline(output).into_bytes(), job.max_output);
        ended.captured = Some(output.clone().into_bytes());
        ended.output = Some(output);
    }
    if let Some(left) = collected.left {
        let left = serde_json::to_string(&left).expect("paths and numbers are JSON");
        ended.outcome.files = Some(Box::new(services.folder.store_text(&left)?));
    }
    Ok(collected.asked)
}

/// Runs a process of the attempt; by a shim where there is a `hold`.
pub(super) async fn run_job_process(
    job: &Job,
    launch: &Launch<'_>,
    hold: Option<&Hold>,
    place: &mut Place<'_, '_>,
) -> Result<End, String> {
    match hold {
        None => run_process(place.poller, launch, place.limits, &job.cancel, place.capture).await,
        // Boxed, as every attempt would otherwise be as large in memory as one that is held.
        Some(hold) => {
            let sink = &mut *place.capture;
            Box::pin(run_held_process(place.poller, launch, place.limits, &job.cancel, sink, hold)).await
        }
    }
}

/// Says that the process of a former runner cannot go on, and why.
pub(super) fn report_restart(job: &Job, why: &str, place: &Place<'_, '_>) {
    let notice = format!("`{}`: its process starts again: {why}", job.step.label());
    place.services.observer_handle.send_notice(notice);
}

/// Runs a command, and says what came of it.
async fn run_command(
    job: &Job,
    command: &Command,
    (stdin, hold): (Option<&[u8]>, Option<Hold>),
    place: &mut Place<'_, '_>,
) -> Answer {
    let (argv, environment) = (argv(command), &job.environment);
    let launch = Launch { argv: &argv, environment, directory: &job.directory, stdin, install: None };
    let mut end = run_job_process(job, &launch, hold.as_ref(), place).await;
    let again = hold.map(Hold::anew);
    while let (Ok(Some(why)), Some(again)) = (end.as_ref().map(End::starts_again), &again) {
        report_restart(job, why, place);
        place.capture.begin_check();
        end = run_job_process(job, &launch, Some(again), place).await;
    }
    match end {
        Err(message) => Answer::failed(Failure::Spawn { message }),
        Ok(end) => {
            let failure = classify_end(job, end);
            // Programs often explain a failure on stderr: a reader of the output sees both, as a person would.
            let seen = (failure.is_some() && !place.capture.stderr.is_empty()).then(|| place.capture.combined_output());
            let log = job.keeps_log.then(|| decode_text(place.capture.last_of_both(), LOG));
            let (output, stderr) = place.capture.begin_check();
            Answer {
                log,
                failure,
                exit: Some(end.exit),
                stderr: decode_text(stderr.into_bytes(), INLINE),
                is_cut: output.is_cut(),
                text: seen.or_else(|| (!output.is_empty()).then(|| output.into_bytes())),
                ..Answer::default()
            }
        }
    }
}

/// A command's output is what it printed, without the final newline, or the value in that; of one that failed, what it
/// wrote to stderr is part of it.
fn command_ended(job: &Job, answer: Answer) -> Ended {
    let Answer { failure, exit, stderr, is_cut, text: captured, log, .. } = answer;
    if let Some(Failure::Spawn { message }) = failure {
        // Those that read how it failed find it as a shell leaves it.
        let output = job.shape.is_none().then(|| message.clone());
        let outcome = Outcome { exit: Some(NOT_STARTED), ..Ended::from_failure(Failure::Spawn { message }).outcome };
        return Ended { outcome, output, ..Ended::default() };
    }
    let log = log.filter(|log| !log.is_empty()).map(Content::Text);
    let outcome = Outcome { failure, exit, stderr, log, ..Outcome::default() };
    let output = without_newline(decode_text(captured.clone().unwrap_or_default(), job.max_output));
    let mut ended = Ended { outcome, output: Some(output), captured, logs: false };
    if let (Some(shape), None, Some(output)) = (&job.shape, &ended.outcome.failure, &ended.output) {
        let read = |printed: &str| shape.parse_computed(printed.into());
        match turn::repair::read_value(output, read, is_cut, job.max_output) {
            Ok(value) => {
                ended.captured = Some(value.clone().into_bytes());
                ended.output = Some(value);
            }
            Err(violations) => ended.outcome.failure = Some(Failure::Invalid { violations }),
        }
    }
    ended
}

/// Runs the checks until one fails.
async fn run_checks(job: &Job, place: &mut Place<'_, '_>, stderr: &mut String) -> Result<Option<Failure>, RunError> {
    for (number, command) in (1..).zip(&job.checks) {
        let line = match command {
            Command::Shell(line) => line.clone(),
            Command::Argv(words) | Command::Script { argv: words, .. } => words.join(" "),
        };
        let question = || Question {
            command: Some(describe_command(command)),
            env: if matches!(job.work, Work::Text(_)) {
                stated_variables(job, &job.environment)
            } else {
                BTreeMap::new()
            },
            ..Question::default()
        };
        let live = async |place: &mut Place<'_, '_>| {
            place.capture.begin_check();
            // A check has its place where the step has: elsewhere only where that one is.
            let is_remote = job.survival.as_ref().is_some_and(|survival| survival.remote.is_some());
            let hold = if is_remote { place.next_hold(job) } else { None };
            Ok(run_command(job, command, (None, hold), place).await)
        };
        let answer = ask_or_replay(job, Part::Check(number), question, place, live).await?;
        let failure = match answer.failure {
            None => continue,
            Some(failure @ Failure::Spawn { .. }) => return Ok(Some(failure)),
            Some(Failure::Exit) => Failure::Check { line, exit: answer.exit },
            Some(failure) => failure,
        };
        // Many checkers complain on their standard output.
        *stderr = match answer.stderr.is_empty() {
            true => decode_text(answer.text.unwrap_or_default(), INLINE),
            false => answer.stderr,
        };
        return Ok(Some(failure));
    }
    Ok(None)
}

pub(super) fn classify_end(job: &Job, end: End) -> Option<Failure> {
    match end.cause {
        Cause::Exit if end.exit == 0 => None,
        Cause::Exit => Some(Failure::Exit),
        Cause::Reported => None,
        Cause::Timeout => Some(Failure::Timeout { after_ms: to_millis(job.timeout) }),
        Cause::Idle => Some(Failure::Idle { after_ms: to_millis(job.idle) }),
        // What is orphaned starts again before this.
        Cause::Cancelled | Cause::Orphaned | Cause::Cut | Cause::WorkerLost => Some(Failure::Cancelled),
        Cause::Lost(why) => Some(Failure::Agent { message: why.to_owned() }),
    }
}

pub(super) fn without_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

pub(super) fn to_millis(duration: Option<Duration>) -> u64 {
    u64::try_from(duration.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// Waits until `end`; false when the job was cancelled first.
pub(super) async fn sleep_until(job: &Job, end: Instant, poller: &Poller) -> bool {
    job.cancel.set_waker(Some(poller.events.current_waker()));
    let slept = loop {
        if job.cancel.requested_level().is_some() {
            break false;
        }
        if end <= Instant::now() {
            break true;
        }
        // Woken or not, the loop looks at the time and the stop level again.
        poller.events.next(Some(end)).await;
    };
    job.cancel.set_waker(None);
    slept
}
