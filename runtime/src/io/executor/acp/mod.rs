//! One turn of an agent that speaks the Agent Client Protocol: its program is started, talked with, and ended as any
//! other, within the time of its attempt.
//!
//! In: a prompt, and what a session begins with. Out: the answer of the turn, as programs with a stream format give it.
//! The protocol is spoken by a library that knows neither processes nor clocks: it is asked to go on whenever something
//! has happened. Invariant: whatever the program says, and however much, the turn ends with a reason.

mod begun;
mod bell;
mod client_fs;
mod dialogue;
mod former;
mod line;
mod permission;
mod requests;
mod steer;
mod terminals;
mod turn_log;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use swarmc_plan::Mode;

use super::attempt::{self, Place, to_millis};
use super::{Candidate, Job, Session};
use crate::io::agent_api::{ToolSpec, ToolsListed};
use crate::io::process::{Cause, End, Launch, Limits, Sink as _, decode_text, keep_last, run_process};
use crate::io::recording::Answer;
use crate::io::shim::{Hold, run_held_process};
use crate::io::steering::Steering;
use crate::io::tools::Grant;
use crate::types::event::{Failure, INLINE, Usage};
use begun::Begun;
use client_fs::Service;
use dialogue::{Opening, Told};
use former::Former;
use line::{Line, TurnOptions};

/// How long a program may stay once its turn is over and its input is closed.
const LEAVING: Duration = Duration::from_secs(2);

/// How long a program that is to end its turn may take to say that it did, before it is ended itself.
const PARTING: Duration = Duration::from_secs(5);

/// A program that speaks the Agent Client Protocol.
#[derive(Debug)]
pub(crate) struct Acp {
    /// What is started.
    pub argv: Vec<OsString>,
    /// How to install it.
    pub install: Option<String>,
    /// The model that it is to use.
    pub model: Option<String>,
    /// What the turn is for.
    pub mode: Option<Mode>,
    /// What it may use beside its own tools; the folder is that of the attempt.
    pub grant: Grant,
    /// The MCP server of the run, for those who take part in it.
    pub tools: Option<Tools>,
    /// The conversation that it goes on with.
    pub session: Option<Session>,
    /// Whether others are to go on with its conversation.
    pub keeps: bool,
    /// What the agent is to read while its turn goes on.
    pub steering: Option<Arc<Steering>>,
}

/// The MCP server of a run, as one attempt reaches it.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    /// Its address.
    pub url: String,
    /// The token of the attempt.
    pub token: String,
    /// The socket, for those who know no HTTP.
    pub socket: String,
    /// Its tools.
    pub offers: Arc<[ToolSpec]>,
    /// Whether a client has listed them.
    pub listed: Arc<ToolsListed>,
    /// Whether the agent's arguments or variables name the server: the session does not name it then.
    pub is_configured: bool,
}

/// Whether a failure of a turn says that the program went away on its own.
pub(super) fn went_away(message: &str) -> bool {
    message.contains(dialogue::GONE)
}

/// Has `acp` take a turn, its process held where there is a `hold`; else says why the process of a former runner cannot go
/// on with the turn, and has ended it.
pub(super) async fn ask_agent(
    job: &Job,
    (taker, acp): (&Candidate, &Acp),
    prompt: &str,
    session: Option<&Session>,
    hold: Option<&Hold>,
    place: &mut Place<'_, '_>,
) -> Result<Answer, &'static str> {
    let directory = job.working_folder();
    let mut argv = acp.argv.clone();
    // A program of the project is named as it counts from there, wherever its agent works.
    if let Some(program) = argv.first_mut()
        && program.to_string_lossy().contains('/')
    {
        *program = job.directory.join(&*program).into_os_string();
    }
    place.capture.begin_turn(None);
    let (servers, withheld) = place.services.tools.handed(&acp.grant.allow, acp.grant.permissions);
    for why in withheld {
        place.capture.stderr(format!("swarmc: {why}\n").as_bytes());
    }
    let grant = Grant { folder: directory.to_owned(), ..acp.grant.clone() };
    let opening = Opening {
        servers,
        able: Service::offered_capabilities(&grant, place.services),
        session: session.map(|session| session.id.clone()),
        keeps: acp.keeps,
        directory: absolute_path(directory),
        mode: acp.mode,
        model: acp.model.clone(),
        tools: acp.tools.clone(),
        steering: acp.steering.clone(),
        prompt: prompt.to_owned(),
    };
    let asker = permission::Asker {
        agent: taker.agent.as_str().into(),
        permissions: acp.grant.permissions,
        own: acp.tools.as_ref().map(|tools| Arc::clone(&tools.offers)).unwrap_or_default(),
        step: job.step.clone(),
        attempt: job.attempt,
    };
    let limits = Limits { grace: job.grace.min(LEAVING), ..place.limits };
    let former = hold.filter(|hold| hold.rejoins && hold.folder.exists()).map(|hold| Former::read(&hold.input_path()));
    let begun = Begun::new(hold.map(|hold| hold.folder.join("begun")), former.is_some());
    let manner = TurnOptions {
        former,
        earlier: session.map_or_else(Usage::default, |session| session.used),
        parting: job.grace.min(PARTING),
        wake: place.poller.events.current_waker(),
        cancel: Arc::clone(&job.cancel),
        member: job.member_turn().map(|turn| (job.step.clone(), job.attempt, turn.clone())),
    };
    let service = Service::new(grant, (job.step.clone(), job.attempt), &absolute_path(directory), begun);
    let launch = Launch {
        argv: &argv,
        environment: &taker.environment,
        directory,
        // Empty at first, and open: the line writes to it.
        stdin: Some(&[]),
        install: acp.install.as_deref(),
    };
    let (services, capture, poller) = (place.services, &mut *place.capture, place.poller);
    let mut line = Line::new(opening, (asker, service), manner, services, capture);
    let end = match hold {
        None => run_process(poller, &launch, limits, &job.cancel, &mut line).await,
        Some(hold) => run_held_process(poller, &launch, limits, &job.cancel, &mut line, hold).await,
    };
    let differs = line.differs().then_some("it cannot go on with the dialogue of the last runner");
    let told = line.finish();
    let end = match end {
        Ok(end) => end,
        Err(message) => return Ok(Answer::failed(Failure::Spawn { message })),
    };
    match end.starts_again().or(differs) {
        Some(why) if job.cancel.requested_level().is_none() => Err(why),
        _ => Ok(build_answer(job, end, told, place)),
    }
}

/// What the protocol wants: a folder from the root.
fn absolute_path(directory: &Path) -> std::path::PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

/// What a turn came to.
fn build_answer(job: &Job, end: End, told: Told, place: &mut Place<'_, '_>) -> Answer {
    let (_, stderr) = place.capture.begin_check();
    let Told { failure, usage, session, text: said } = told;
    // An end that we brought about says more than what was cut short by it.
    let failure = match end.cause {
        Cause::Timeout => Some(Failure::Timeout { after_ms: to_millis(job.timeout) }),
        Cause::Idle => Some(Failure::Idle { after_ms: to_millis(job.idle) }),
        Cause::Cancelled | Cause::Orphaned | Cause::Cut | Cause::WorkerLost => Some(Failure::Cancelled),
        Cause::Lost(why) => Some(Failure::Agent { message: why.to_owned() }),
        Cause::Exit | Cause::Reported => failure.map(|failure| with_exit(failure, end)),
    };
    let said = said.filter(|said| !said.is_empty()).map(attempt::without_newline);
    // Only what is read as a value needs the beginning, too.
    let whole = said.clone().filter(|said| job.shape.is_some() && said.len() > job.max_output);
    let captured = said.map(|mut said| {
        keep_last(&mut said, job.max_output);
        said.into_bytes()
    });
    Answer {
        failure,
        // A program that we ended when its turn was over says nothing by its exit code.
        exit: (end.cause == Cause::Exit).then_some(end.exit),
        stderr: decode_text(stderr.into_bytes(), INLINE),
        usage,
        session,
        text: captured,
        whole,
        used_tool: place.capture.used_tool(),
        ..Answer::default()
    }
}

/// The words for a program that went away, with how it did.
fn with_exit(failure: Failure, end: End) -> Failure {
    let gone = |message: String| match message.ends_with(dialogue::GONE) && end.cause == Cause::Exit {
        true => format!("{message} (it exited with {})", end.exit),
        false => message,
    };
    match failure {
        Failure::Spawn { message } => Failure::Spawn { message: gone(message) },
        Failure::Agent { message } => Failure::Agent { message: gone(message) },
        failure => failure,
    }
}
