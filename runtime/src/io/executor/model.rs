//! One turn of a model over HTTP, within the time of its attempt: request, answer, and retries of transient failures.
//!
//! Invariant: a cancellation or a limit of time ends the request itself, not only the wait for it.

use std::time::Instant;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::Job;
use super::attempt::{Place, to_millis};
use super::tool_loop::{Step, TURNS, ToolGrant, ToolLoop};
use crate::io::input::Input;
use crate::io::process::{Sink, decode_text, keep_last};
use crate::io::recording::Answer;
use crate::types::chat::{Fault, Message, Question, Reply};
use crate::types::event::{Failure, INLINE, Usage};
use crate::types::retry::{RETRIES, backoff};
use crate::types::usage::sum;

/// A model, and what every question for it says.
#[derive(Debug)]
pub(crate) struct Model {
    /// What is asked, but for the messages.
    pub question: Question,
    /// The tools that it may call.
    pub lending: Option<ToolGrant>,
}

/// Why a request ended without a reply, or a call without a result.
pub(super) enum Stop {
    Cancelled,
    Timeout,
    Idle,
    Fault(Fault),
    Failed(Failure),
}

/// Asks `model` to go on with `messages`, and does what it calls for until it answers. Beside the answer, what was said
/// on the way there, to go on from.
pub(super) fn ask_model(
    job: &Job,
    provider: &str,
    model: &Model,
    messages: &[Message],
    place: &mut Place<'_, '_>,
) -> (Answer, Vec<Message>) {
    place.capture.begin_turn(None);
    let mut said = Vec::new();
    let reply = run_tool_turns(job, provider, model, messages, &mut said, place);
    let (_, stderr) = place.capture.begin_check();
    let stderr = decode_text(stderr.into_bytes(), INLINE);
    let used_tool = place.capture.used_tool();
    match reply {
        Ok(reply) => {
            let (answer, message) = build_answer(job, reply, stderr);
            said.push(message);
            (Answer { used_tool, ..answer }, said)
        }
        Err(stop) => (Answer { stderr, used_tool, ..Answer::failed(classify_stop(job, stop)) }, said),
    }
}

fn run_tool_turns(
    job: &Job,
    provider: &str,
    model: &Model,
    messages: &[Message],
    said: &mut Vec<Message>,
    place: &mut Place<'_, '_>,
) -> Result<Reply, Stop> {
    let lent = model.lending.as_ref().map(|lending| ToolLoop::open(job, lending, place)).transpose()?;
    // Unknown in part is unknown.
    let mut used = Some(Usage { cost: Some(0.0), ..Usage::default() });
    for number in 1..=TURNS {
        let mut question = model.question.clone();
        if number > 1 && job.cancel.take_urgent() {
            said.extend(read_user_messages(job, place)?);
        }
        question.messages = messages.iter().chain(said.iter()).cloned().collect();
        if let Some(lent) = &lent {
            lent.offer(&mut question, number == TURNS);
        }
        let reply = request_with_retries(job, provider, &question, place)?;
        used = used.zip(reply.usage).map(|(one, other)| sum(one, other));
        let reply = Reply { usage: used, ..reply };
        let Some(lent) = &lent else { return Ok(reply) };
        match lent.run_step(job, reply, place)? {
            Step::Answer(reply) => return Ok(reply),
            Step::Further(messages) => said.extend(messages),
        }
    }
    let message = format!("the model went on using tools for {TURNS} requests, and gave no answer");
    Err(Stop::Failed(Failure::Agent { message }))
}

/// What people have written meanwhile: it is said between two requests.
fn read_user_messages(job: &Job, place: &Place<'_, '_>) -> Result<Vec<Message>, Stop> {
    let services = place.services;
    let (hearer, heard) = oneshot::channel();
    services.report(Input::Overhears { step: job.step.clone(), attempt: job.attempt, hearer });
    let heard = services.reactor.wait(async {
        tokio::select! {
            biased;
            () = job.cancel.wait() => Err(Stop::Cancelled),
            // A driver that ends sends no answer.
            heard = heard => heard.map_err(|_| Stop::Cancelled),
        }
    });
    let failed = |message: String| Stop::Failed(Failure::Agent { message });
    let texts = heard.map_err(failed)??.map_err(failed)?;
    let texts = texts.as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(texts.map(|text| Message::User(text.to_owned())).collect())
}

/// The reply to a question, asked again where a failure passes.
fn request_with_retries(
    job: &Job,
    provider: &str,
    question: &Question,
    place: &mut Place<'_, '_>,
) -> Result<Reply, Stop> {
    let mut retries = 0;
    loop {
        let fault = match send_request(job, provider, question, place) {
            Err(Stop::Fault(fault)) => fault,
            outcome => return outcome,
        };
        let wait = fault.retry_after.unwrap_or_else(|| backoff(retries + 1));
        let again = Instant::now() + wait;
        let is_late = place.limits.deadline.is_some_and(|deadline| deadline <= again);
        if !fault.transient || retries == RETRIES || is_late {
            return Err(Stop::Fault(fault));
        }
        retries += 1;
        let note = format!("{}; asked again in {wait:?}, {retries} of {RETRIES}\n", fault.message);
        place.capture.stderr(note.as_bytes());
        let waited = place.services.reactor.wait(async {
            tokio::select! {
                biased;
                () = job.cancel.wait() => false,
                () = wait_until(Some(again)) => true,
            }
        });
        if waited != Ok(true) {
            return Err(Stop::Cancelled);
        }
        // What came of the answer before is no part of this one.
        place.capture.begin_turn(None);
    }
}

/// What a reply comes to.
fn build_answer(job: &Job, reply: Reply, stderr: String) -> (Answer, Message) {
    let Reply { text: mut said, calls, usage, cut, .. } = reply;
    let message = Message::Assistant { text: said.clone(), calls };
    // A value that is cut off is none, which its type will say.
    let failure = (cut && job.shape.is_none()).then(|| Failure::Agent {
        message: "the model's answer was cut off at the limit of its tokens: raise `max-output`".to_owned(),
    });
    let whole = (job.shape.is_some() && said.len() > job.max_output).then(|| said.clone());
    let is_cut = said.len() > job.max_output;
    keep_last(&mut said, job.max_output);
    let text = (!said.is_empty()).then(|| said.into_bytes());
    (Answer { failure, stderr, usage, text, whole, is_cut, ..Answer::default() }, message)
}

fn classify_stop(job: &Job, stop: Stop) -> Failure {
    match stop {
        Stop::Cancelled => Failure::Cancelled,
        Stop::Timeout => Failure::Timeout { after_ms: to_millis(job.timeout) },
        Stop::Idle => Failure::Idle { after_ms: to_millis(job.idle) },
        Stop::Fault(fault) => Failure::Agent { message: fault.message },
        Stop::Failed(failure) => failure,
    }
}

/// One request, shown and logged while its answer comes.
fn send_request(job: &Job, provider: &str, question: &Question, place: &mut Place<'_, '_>) -> Result<Reply, Stop> {
    let services = place.services;
    place.capture.report_reading();
    let asked = services.reactor.wait(async {
        let (sender, mut heard) = mpsc::unbounded_channel();
        let hear = |text: &str| _ = sender.send(text.to_owned());
        let mut asked = std::pin::pin!(services.models.ask(provider, question, &hear));
        let mut last_heard = Instant::now();
        loop {
            let idle = place.limits.idle.map(|idle| last_heard + idle);
            tokio::select! {
                biased;
                () = job.cancel.wait() => return Err(Stop::Cancelled),
                () = wait_until(place.limits.deadline) => return Err(Stop::Timeout),
                () = wait_until(idle) => return Err(Stop::Idle),
                Some(text) = heard.recv() => {
                    place.capture.stdout(text.as_bytes());
                    last_heard = Instant::now();
                }
                reply = &mut asked => {
                    while let Ok(text) = heard.try_recv() {
                        place.capture.stdout(text.as_bytes());
                    }
                    return reply.map_err(Stop::Fault);
                }
                () = wait_until(place.capture.due()) => place.capture.tick(Instant::now()),
            }
        }
    });
    let local = |message: String| Stop::Fault(Fault { message, transient: false, retry_after: None, crashed: false });
    asked.map_err(local)?
}

/// Waits until a moment; for ever, where there is none.
pub(super) async fn wait_until(moment: Option<Instant>) {
    match moment {
        Some(moment) if moment <= Instant::now() => {}
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}
