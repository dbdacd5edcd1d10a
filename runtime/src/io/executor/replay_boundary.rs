//! The one place where a run asks agents and programs, or in a replay the recording.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use super::attempt::{Place, sleep_until};
use super::pool::Services;
use super::{Job, capture::Capture};
use crate::io::files::{Collected, FileWorkspace};
use crate::io::input::Input;
use crate::io::process::Sink;
use crate::io::recording::{Answer, Part, Question, Replay, ReplayInput, Source};
use crate::types::divergence::Divergence;
use crate::types::error::RunError;
use crate::types::event::Failure;
use crate::types::user_request::StopLevel;

/// How long one wait of an attempt that is ended from outside lasts: it begins another one then.
const WHILE: Duration = Duration::from_secs(3600);

/// Has `question` answered: `live`, which is written down where the run is recorded; or from a recording.
///
/// # Errors
/// The run cannot go on: something could not be written, or the recording holds another question.
pub(super) async fn ask_or_replay<'p, 'c>(
    job: &Job,
    part: Part,
    question: impl FnOnce() -> Question,
    place: &mut Place<'p, 'c>,
    live: impl AsyncFnOnce(&mut Place<'p, 'c>) -> Result<Answer, RunError>,
) -> Result<Answer, RunError> {
    let key = (&job.step, job.attempt, part);
    match &place.services.source {
        Source::Live => live(place).await,
        Source::Recorded(recorder) => {
            let question = question();
            let answer = live(place).await?;
            match answer.failure == Some(Failure::Cancelled)
                && job.cancel.requested_level() == Some(StopLevel::Interrupt)
            {
                // A person ended it, and its agent went on with what that person wrote.
                true => {
                    let failure = Some(Failure::Interrupted);
                    recorder.record(key, &question, &Answer { failure, ..answer.clone() })?;
                }
                false => recorder.record(key, &question, &answer)?,
            }
            Ok(answer)
        }
        Source::Replayed(replay) => {
            let answer = replay.answer(key, &question())?;
            show_answer(&answer, place.capture);
            if answer.failure == Some(Failure::Cancelled) && !is_overfilled(job, replay)? {
                park_attempt(job, place).await;
            }
            Ok(answer)
        }
    }
}

/// Why a replayed attempt failed before it asked for anything.
pub(super) async fn begin_attempt(job: &Job, place: &Place<'_, '_>) -> Option<Failure> {
    match &place.services.source {
        Source::Live | Source::Recorded(_) => None,
        Source::Replayed(replay) => {
            let failure = replay.failed(&job.step, job.attempt);
            if failure == Some(Failure::Cancelled) {
                park_attempt(job, place).await;
            }
            failure
        }
    }
}

/// Collects what an agent left in its folder; in a replay, what it had left then. None where it has none.
///
/// # Errors
/// The run cannot go on: something could not be written, or the prompt differs from the recorded one.
pub(super) fn collect_folder(
    job: &Job,
    laid: Option<FileWorkspace>,
    failure: &mut Option<Failure>,
    services: &Services,
) -> Result<Option<Collected>, RunError> {
    let Some(file_workspace) = job.file_workspace.as_deref() else { return Ok(None) };
    if let Source::Replayed(replay) = &services.source {
        let remains = replay.folder(&job.step, job.attempt)?;
        let told = remains.rebuild_texts(file_workspace);
        replay.tells((&job.step, job.attempt), &remains.given.told, told.as_ref())?;
        let collected = remains.collect(file_workspace, &told.unwrap_or_default(), failure.take());
        let failed =
            |message| RunError::Request(format!("the folder of a recorded attempt cannot be created: {message}"));
        // What was sent is in the recording beside it.
        return Ok(Some(Collected { asked: Vec::new(), ..collected.map_err(failed)? }));
    }
    let Some(laid) = laid else { return Ok(None) };
    let given = laid.given.clone();
    let collected = laid.collect(file_workspace, failure.take(), services.source.is_recorded());
    if let Source::Recorded(recorder) = &services.source {
        recorder.folder((&job.step, job.attempt), &given, &collected)?;
    }
    Ok(Some(collected))
}

/// A replayed attempt asked something that the recording does not hold.
pub(super) fn report_divergence(job: Job, divergence: Box<Divergence>, services: &Services) {
    let diverged = ReplayInput::Diverged { step: job.step, attempt: job.attempt, divergence };
    services.report(Input::Replay(Box::new(diverged)));
}

/// Whether a recorded turn was ended for what lay in its folder, and not from outside: what it left was collected then.
fn is_overfilled(job: &Job, replay: &Replay) -> Result<bool, RunError> {
    if job.file_workspace.is_none() {
        return Ok(false);
    }
    match replay.folder(&job.step, job.attempt) {
        Ok(remains) => Ok(remains.left.is_some()),
        Err(RunError::Diverged(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The variables that the step and its pipeline set, with their values.
pub(super) fn stated_variables(job: &Job, environment: &[(OsString, OsString)]) -> BTreeMap<String, String> {
    let value = |name: &String| {
        let (_, value) = environment.iter().rev().find(|(other, _)| other.to_str() == Some(name))?;
        Some((name.clone(), value.to_string_lossy().into_owned()))
    };
    job.stated.iter().filter_map(value).collect()
}

/// Shows and logs a recorded answer as if it were put out now.
fn show_answer(answer: &Answer, capture: &mut Capture<'_>) {
    capture.begin_turn(None);
    answer.session.iter().for_each(|id| capture.report_session(id));
    if let Some(text) = &answer.text {
        capture.stdout(text);
    }
    if !answer.stderr.is_empty() {
        capture.stderr(answer.stderr.as_bytes());
    }
    capture.begin_check();
    if answer.used_tool {
        capture.note_tool();
    }
}

/// Waits to be ended, as the recorded attempt was.
async fn park_attempt(job: &Job, place: &Place<'_, '_>) {
    let parked = ReplayInput::Parked { step: job.step.clone(), attempt: job.attempt };
    place.services.report(Input::Replay(Box::new(parked)));
    while sleep_until(job, Instant::now() + WHILE, place.poller).await {}
}
