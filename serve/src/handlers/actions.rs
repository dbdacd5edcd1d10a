//! The routes that change something: they start, end and resume runs, answer questions, and write to agents.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::HeaderName;
use swarmc_runtime::{
    GateAnswer, RunError, RunFolder, RunStatus, UserMessage, answer_gate as send_answer, request_stop,
    send_message as send, single_header,
};
use swarmc_view::documents::{Version, encode};
use swarmc_view::{check_receiver, check_running, resolve_answer};

use super::reply;
use super::tasks::task_address;
use crate::Service;
use crate::documents::{AnswerGate, AnswerRequest, Done, ResumeRun, SendMessage, Specs, StopRun, SubmitRun, Submitted};
use crate::problem::Problem;
use crate::queue::{Place, Refused};
use crate::routes::{Call, Reply};
use crate::store::find_folder;

/// How often, and after how long each, the journal is read for the answer that was faster than a refused one.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn submit_run(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let wants: SubmitRun = call.read_body()?;
    let key = single_header(&call.headers, &HeaderName::from_static("idempotency-key"));
    let number = service.queue.submit(wants, key)?;
    let (run, queued) = match service.queue.find(number) {
        Some(Place::Run(run)) => (Some(run), None),
        Some(Place::Waiting) => (None, Some(number)),
        Some(Place::Failed(why)) => return Err(Problem::conflict(why)),
        None => return Err(Problem::internal("the submission is gone")),
    };
    let url = run.as_ref().map(|run| format!("/api/v1/runs/{run}"));
    let events = url.as_ref().map(|url| format!("{url}/events?from=0"));
    let document = Submitted { version: Version, run, queued, url: url.clone(), events };
    // One that waits has no address of its own yet; as a task it has.
    let location = url.or_else(|| queued.map(task_address));
    Ok(Reply::Accepted { json: encode(&document), location })
}

pub(crate) fn list_specs(service: &Service, _: &Call) -> Result<Reply, Problem> {
    reply(&Specs { version: Version, specs: service.queue.list_specs() })
}

pub(crate) fn plan_spec(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let spec = call.query("spec").ok_or_else(|| Problem::bad_request("name the spec: `?spec=PATH`"))?;
    Ok(Reply::Json(service.queue.plan_spec(spec)?))
}

pub(crate) fn stop_run(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let StopRun {} = call.read_body()?;
    let folder = find_folder(&service.home, call.part(0))?;
    request_stop(&folder)?;
    say(format!("run `{}` ends, and can be resumed", folder.id))
}

pub(crate) fn resume_run(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let ResumeRun { retry_failed } = call.read_body()?;
    let folder = find_folder(&service.home, call.part(0))?;
    if folder.is_running() {
        return Err(Problem::conflict(format!("run `{}` is running", folder.id)));
    }
    let finished = service.store.with_run(&service.home, call.part(0), |run| Ok(run.report.finished))?;
    match finished {
        Some(RunStatus::Succeeded) => return Err(Problem::conflict(format!("run `{}` has succeeded", folder.id))),
        Some(_) if !retry_failed => {
            let words = format!("run `{}` has failed: `retry_failed` runs its failed steps once more", folder.id);
            return Err(Problem::conflict(words));
        }
        _ => {}
    }
    service.queue.resume(&folder, retry_failed).map_err(|refused| Problem::conflict(refused.describe()))?;
    say(format!("run `{}` goes on", folder.id))
}

pub(crate) fn answer_request(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let AnswerRequest { choice, because, arguments } = call.read_body()?;
    if call.part(1).parse::<u32>().is_err() {
        return Err(Problem::not_found(format!("`{}` is no number of a request", call.part(1))));
    }
    answer(service, call, GateAnswer { choice, because, arguments, ..GateAnswer::default() })
}

pub(crate) fn answer_gate(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let AnswerGate { choice, fields } = call.read_body()?;
    answer(service, call, GateAnswer { choice, fields: fields.into_iter().collect(), ..GateAnswer::default() })
}

/// Sends an answer to the process of a run, and waits until it is on disk.
fn answer(service: &Service, call: &Call, answer: GateAnswer) -> Result<Reply, Problem> {
    let typed = GateAnswer { gate: call.part(1).to_owned(), ..answer };
    let (folder, answer, name) = service.store.with_run(&service.home, call.part(0), |run| {
        let (answer, asked) = resolve_answer(&run.past, &run.report, typed).map_err(refuse)?;
        check_running(&run.folder).map_err(refuse)?;
        Ok((run.folder.clone(), answer, asked.describe()))
    })?;
    if let Err(error) = send_answer(&folder, &answer) {
        // Where another answer was faster, its words say more; they come to the journal in a moment.
        for _ in 0..LOOKS {
            service.store.with_run(&service.home, &folder.id, |run| {
                resolve_answer(&run.past, &run.report, answer.clone()).map(drop).map_err(refuse)
            })?;
            std::thread::sleep(LOOK);
        }
        return Err(error.into());
    }
    say(format!("{name} of run {}: {}", folder.id, answer.choice))
}

pub(crate) fn send_message(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let SendMessage { to, text, interrupt } = call.read_body()?;
    let folder: RunFolder = service.store.with_run(&service.home, call.part(0), |run| {
        check_receiver(&run.folder, &run.report).map_err(refuse)?;
        Ok(run.folder.clone())
    })?;
    say(send(&folder, &UserMessage { to, text, interrupt })?)
}

fn say(said: impl Into<String>) -> Result<Reply, Problem> {
    reply(&Done { version: Version, said: said.into() })
}

/// An answer that a run does not take is a conflict, and no wrong address.
fn refuse(problem: swarmc_view::Problem) -> Problem {
    Problem::conflict(Problem::from(problem).detail)
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Problem {
        Problem::conflict(error.to_string())
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Problem {
        let words = refused.describe();
        match refused {
            Refused::Unknown(_) => Problem::not_found(words),
            Refused::Impossible(_) => Problem::conflict(words),
            Refused::Mistakes(document) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, words).with_diagnostics(document)
            }
        }
    }
}
