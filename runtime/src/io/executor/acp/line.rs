//! The line to an agent: carries its program's output to the dialogue, and the dialogue's messages to the program.
//!
//! The dialogue is a future that nothing but this thread runs: it is polled whenever something has happened, and wakes
//! the thread when it has something to do. Updates are taken as they come, so that none waits anywhere. Invariant:
//! whatever comes in, no more is kept than [`LONGEST`] of a message, [`UNREAD`] of what it does not read, an answer,
//! and what [`permission`] and [`client_fs`] bound of requests that wait.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    CancelNotification, RequestPermissionRequest, RequestPermissionResponse, SessionNotification,
};
use agent_client_protocol::{Channel, RawJsonRpcMessage, RawJsonRpcNotification, TransportFrame};
use futures_core::Stream as _;

use super::bell::ThreadWaker;
use super::client_fs::{self, Service, TurnContext};
use super::dialogue::{self, DialogueState, Opening, Shared, Told};
use super::former::{Former, Incoming, Outgoing};
use super::permission::{self, Asker, Pending};
use super::requests::{self, Dialogue, Request};
use super::turn_log::Account;
use crate::io::executor::capture::Capture;
use crate::io::executor::pool::Services;
use crate::io::input::{Input, SwarmInput};
use crate::io::process::{Sink, StdinDialogue};
use crate::io::steering::{Steered, Steering};
use crate::io::stream::{Item, Lines};
use crate::types::cancel::Cancel;
use crate::types::event::{Failure, Process, StepId, Usage};
use crate::types::swarm::TurnId;
use crate::types::user_request::StopLevel;

/// The longest message of an agent, in bytes: some hold pictures and whole files.
const LONGEST: usize = 16 << 20;

/// The bytes that an agent may leave unread, beyond its prompt: the longest answer, and what is small.
const UNREAD: usize = 8 << 20;

/// The bytes of what it has not read beyond which it is told nothing long.
const ENOUGH: usize = 64 << 10;

/// How long an agent may take for everything before its turn: on a busy machine some take a minute to start.
const OPENING: Duration = Duration::from_secs(180);

/// How long its clients may take to list the tools of the run: as long as the presets allow a client that connects. A turn
/// that begins without the tools is lost, and on a busy machine two agents that start at once took more than 10 seconds.
const LISTING: Duration = Duration::from_secs(60);

/// After how long people hear that the turn waits for that. A busy machine takes as long without a fault.
const LISTING_NOTICE: Duration = Duration::from_secs(10);

/// The notification that is no business of the dialogue's.
const UPDATE: &str = "session/update";

/// How often the dialogue is asked to go on before something else has its turn.
const ROUNDS: usize = 64;

/// How a turn is gone about.
pub(super) struct TurnOptions {
    /// What its conversation has used before.
    pub earlier: Usage,
    /// How long the agent may take to end its turn when it is asked to.
    pub parting: Duration,
    /// What a former runner has said to the program, which goes on.
    pub former: Option<Former>,
    /// Woken when the dialogue has something to do.
    pub wake: Waker,
    /// Ends the attempt early.
    pub cancel: Arc<Cancel>,
    /// The turn of a swarm that it is.
    pub member: Option<(StepId, u32, TurnId)>,
}

/// The line, with all that hangs on it.
pub(super) struct Line<'p, 'c> {
    services: &'p Services,
    capture: &'p mut Capture<'c>,
    asker: Asker,
    service: Service,
    account: Account,
    shared: Arc<Shared>,
    /// None once it has ended.
    dialogue: Option<Dialogue>,
    /// Our end of the dialogue's channel; none once the program writes and reads nothing more.
    channel: Option<Channel>,
    requests: Receiver<Request>,
    pending: Vec<Pending>,
    /// Ends the attempt early, where a person writes to the agent.
    cancel: Arc<Cancel>,
    /// The turn of a swarm that it is, and what its agent is to read while it goes on.
    member: Option<(StepId, u32, TurnId)>,
    steering: Option<Arc<Steering>>,
    /// Whether others know that the turn is under way.
    announced: bool,
    /// The requests for leave so far.
    asked: usize,
    lines: Lines,
    /// What a former runner has said, and whether the new dialogue went another way.
    former: Option<Former>,
    /// Whether all is read that the program said to former runners.
    has_caught_up: bool,
    differs: bool,
    /// What the program is still to read.
    unread: Vec<u8>,
    /// What it may leave unread at most.
    patience: usize,
    /// How long it may take to end its turn when it is asked to.
    parting: Duration,
    is_parting: bool,
    /// When everything before the turn, and the listing of tools in it, has taken too long.
    opening: Instant,
    listing: Option<Instant>,
    /// Since when it waits for the listing of tools.
    listing_began: Option<Instant>,
    bell: Arc<ThreadWaker>,
    waker: Waker,
}

impl<'p, 'c> Line<'p, 'c> {
    /// A line to a program that is about to start.
    pub(super) fn new(
        opening: Opening,
        (asker, service): (Asker, Service),
        manner: TurnOptions,
        services: &'p Services,
        capture: &'p mut Capture<'c>,
    ) -> Line<'p, 'c> {
        let TurnOptions { earlier, parting, former, wake, cancel, member } = manner;
        let steering = opening.steering.clone();
        let shared = Arc::new(Shared::default());
        if former.as_ref().is_some_and(Former::was_prompted) {
            // Its clients have listed the tools of the run before the turn began.
            shared.enough.notify_one();
        }
        // Rung from the beginning: the first poll has the dialogue send its first message.
        let bell = Arc::new(ThreadWaker::new(wake));
        let (sender, requests) = mpsc::channel();
        let (channel, ours) = Channel::duplex();
        // Escaped as JSON, a prompt is longer than it is.
        let patience = UNREAD + 2 * opening.prompt.len();
        let dialogue = requests::start_dialogue(channel, opening, Arc::clone(&shared), sender);
        Line {
            services,
            capture,
            asker,
            service,
            account: Account::new(earlier),
            shared,
            dialogue: Some(dialogue),
            channel: Some(ours),
            requests,
            pending: Vec::new(),
            cancel,
            member,
            steering,
            announced: false,
            asked: 0,
            lines: Lines::new(LONGEST),
            former,
            has_caught_up: false,
            differs: false,
            unread: Vec::new(),
            patience,
            parting,
            is_parting: false,
            opening: Instant::now() + OPENING,
            listing: None,
            listing_began: None,
            waker: Waker::from(Arc::clone(&bell)),
            bell,
        }
    }

    /// Whether the program cannot go on with the dialogue of a former runner: it has to start again.
    pub(super) fn differs(&self) -> bool {
        self.differs
    }

    /// What the turn came to.
    pub(super) fn finish(mut self) -> Told {
        // What it said last may still have to be heard.
        self.hung_up();
        self.go_on();
        let is_urgent = || self.cancel.requested_level() == Some(StopLevel::Kill);
        self.service.close(self.services, self.capture, is_urgent);
        self.capture.show_item(None);
        let mut progress = self.shared.lock_progress();
        // The id of a session that cannot be loaded again is of no use to later turns.
        let session = progress.session.as_ref().filter(|_| progress.resumes).map(|session| session.0.to_string());
        let (failure, response) = match progress.ended.take() {
            Some(Ok(response)) => {
                let stopped = dialogue::describe_stop(response.stop_reason);
                (stopped.map(|why| Failure::Agent { message: why.to_owned() }), Some(response))
            }
            Some(Err(failure)) => (Some(failure), None),
            None => {
                let message = format!("the agent did not finish its turn: {}", dialogue::GONE);
                (Some(Failure::Agent { message }), None)
            }
        };
        drop(progress);
        let report = self.account.into_report(response.as_ref());
        Told { failure, usage: report.usage, session, text: report.text }
    }

    fn is_over(&self) -> bool {
        self.shared.lock_progress().ended.is_some()
    }

    /// Has the dialogue go on as far as it can.
    fn go_on(&mut self) {
        for _ in 0..ROUNDS {
            if !self.bell.take_ring() {
                return;
            }
            let mut context = Context::from_waker(&self.waker);
            if let Some(dialogue) = &mut self.dialogue
                && let std::task::Poll::Ready(ended) = dialogue.as_mut().poll(&mut context)
            {
                self.dialogue = None;
                if let Err(error) = ended {
                    self.shared.record_end(Err(Failure::Agent { message: error.message }));
                }
            }
            self.take_requests();
            self.report_steered();
            self.take_words();
            self.answer_requests();
            self.serve_requests();
        }
        // There is more to do, after others have had their turn.
        if self.bell.take_ring() {
            self.waker.wake_by_ref();
        }
    }

    /// What the dialogue says is written down for the program.
    fn take_words(&mut self) {
        let Some(channel) = &mut self.channel else { return };
        let mut context = Context::from_waker(&self.waker);
        while let std::task::Poll::Ready(Some(frame)) = Pin::new(&mut channel.rx).poll_next(&mut context) {
            if let Ok(line) = frame.to_json() {
                match self.former.as_mut().map_or(Outgoing::New, |former| former.take_outgoing(&line)) {
                    Outgoing::Known => continue,
                    Outgoing::New => {}
                    Outgoing::Differs => return self.give_up_former(),
                }
                self.unread.extend_from_slice(line.as_bytes());
                self.unread.push(b'\n');
            }
        }
        if self.unread.len() > self.patience {
            self.fail("the agent does not read its input".to_owned());
        }
    }

    /// The program cannot go on with the dialogue of a former runner.
    fn give_up_former(&mut self) {
        self.differs = true;
        let message = "its program cannot go on with the dialogue of the last runner".to_owned();
        self.shared.record_end(Err(Failure::Spawn { message }));
    }

    /// Whether the dialogue waits for an answer that a former runner has had, and that cannot be read any more.
    fn lacks_answer(&self) -> bool {
        self.has_caught_up
            && !self.is_over()
            && !self.bell.has_rung()
            && self.former.as_ref().is_some_and(Former::has_unrepeated)
    }

    /// Takes the agent's requests.
    fn take_requests(&mut self) {
        while let Ok(request) = self.requests.try_recv() {
            let session = self.shared.lock_progress().session.clone();
            // A program may have other sessions open, which have no part in the turn.
            let is_ours = |of| session.as_ref() == Some(of);
            let is_late = self.is_parting || self.is_over();
            match request {
                // An agent that ends its turn waits for the answers to its requests: all of them get one.
                Request::Leave(asked, responder) if !is_ours(&asked.session_id) || is_late => {
                    permission::cancel_request(responder)
                }
                Request::Leave(asked, responder) => self.take_leave(&asked, responder),
                Request::Errand(errand) if is_late => errand.refuse(client_fs::request_cancelled()),
                Request::Errand(errand) if !is_ours(errand.session_id()) => {
                    errand.refuse(client_fs::invalid_params("this is not the session of the turn".to_owned()));
                }
                Request::Errand(errand) => self.service.take_request(errand),
            }
        }
    }

    /// Reports what became of texts for the turn.
    fn report_steered(&self) {
        let steered = std::mem::take(&mut self.shared.lock_progress().steered);
        let Some((step, attempt, turn)) = &self.member else { return };
        for steered in steered {
            let word = Box::new(SwarmInput::Steered(turn.clone(), steered));
            self.services.report(Input::Swarm { step: step.clone(), attempt: *attempt, word });
        }
    }

    /// Passes on the agent's request for permission.
    fn take_leave(&mut self, asked: &RequestPermissionRequest, responder: Responder<RequestPermissionResponse>) {
        self.asked += 1;
        if self.asked > permission::MOST {
            permission::cancel_request(responder);
            return self
                .fail(format!("the agent requested permission more than {} times in one turn", permission::MOST));
        }
        let (shown, pending) = self.asker.take_request(asked, responder, self.services);
        if pending.is_some() {
            self.capture.show_item(Some(Item::Said(&format!("[requests permission: {shown}]\n"))));
        }
        self.pending.extend(pending);
        if self.pending.iter().map(Pending::held_bytes).sum::<usize>() > permission::HELD {
            self.fail(format!(
                "the agent requests permission with options of more than {} MiB at once",
                permission::HELD >> 20
            ));
        }
    }

    /// Does what the agent has asked for.
    fn serve_requests(&mut self) {
        if self.is_over() {
            return self.service.stop();
        }
        let mut context = Context::from_waker(&self.waker);
        // A program that does not read what it asked for would fill our memory with files.
        let reads = self.unread.len() < ENOUGH;
        let mut poller =
            TurnContext { services: self.services, capture: &mut *self.capture, context: &mut context, reads };
        if let Err(message) = self.service.go_on(&mut poller) {
            self.fail(message);
        }
    }

    fn answer_requests(&mut self) {
        let mut context = Context::from_waker(&self.waker);
        let mut problem = None;
        let waiting = std::mem::take(&mut self.pending).into_iter();
        self.pending = waiting
            .filter_map(|pending| {
                pending.poll(&mut context).unwrap_or_else(|message| {
                    problem = Some(message);
                    None
                })
            })
            .collect();
        if let Some(message) = problem {
            self.fail(message);
        }
    }

    /// Says once in which session the turn is, where the agent loads sessions: from then on it can be interrupted.
    fn announce(&mut self) {
        let progress = self.shared.lock_progress();
        if progress.stage != DialogueState::Prompted || std::mem::replace(&mut self.announced, true) {
            return;
        }
        // A session that cannot be resumed is not announced to others.
        let session = progress.session.clone().filter(|_| progress.resumes);
        drop(progress);
        self.capture.report_reading();
        if let Some(session) = session {
            self.capture.yield_with_session(&self.cancel);
            self.capture.report_session(&session.0);
        }
    }

    /// The turn has failed, whatever the agent says to that.
    fn fail(&mut self, message: String) {
        self.cancel();
        self.shared.record_end(Err(Failure::Agent { message }));
    }

    /// Asks the agent to end its turn; whether it takes one.
    fn cancel(&mut self) -> bool {
        // The protocol has the client answer open requests when it cancels a turn: agents wait for that.
        self.pending.drain(..).for_each(Pending::cancel);
        self.service.stop();
        let progress = self.shared.lock_progress();
        let (DialogueState::Prompted, Some(session), Some(connection)) =
            (progress.stage, progress.session.clone(), progress.connection.clone())
        else {
            return false;
        };
        drop(progress);
        connection.send_notification(CancelNotification::new(session)).is_ok()
    }

    /// One line of the program's output.
    fn handle_line(&mut self, line: &[u8]) {
        match &mut self.former {
            None => self.handle_message(line),
            Some(former) => {
                former.waiting.push_back(line.to_vec());
                self.handle_waiting();
            }
        }
    }

    /// The lines of a program that goes on, as far as the new dialogue is.
    fn handle_waiting(&mut self) {
        while let Some(former) = &mut self.former
            && !former.is_early
            && let Some(line) = former.waiting.pop_front()
        {
            match former.take_incoming(&line) {
                Incoming::Plain => self.handle_message(&line),
                Incoming::Renamed(line) => self.handle_message(&line),
                Incoming::Done(id) => self.service.forget_request(&id),
                Incoming::Early => return former.waiting.push_front(line),
            }
        }
    }

    fn handle_message(&mut self, line: &[u8]) {
        // Programs print warnings too; a message is an object.
        if line.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return;
        }
        // A message with a broken character is still a message: only a text in it differs.
        let frame = TransportFrame::parse_json(&String::from_utf8_lossy(line));
        match frame {
            TransportFrame::Single(RawJsonRpcMessage::Notification(update)) if &*update.method == UPDATE => {
                self.handle_update(update);
            }
            TransportFrame::Single(message) => {
                let is_answer = matches!(message, RawJsonRpcMessage::Response(_));
                if let Some(channel) = &self.channel {
                    // Where the dialogue has ended no task receives it.
                    let _ = channel.tx.unbounded_send(TransportFrame::Single(message));
                }
                // What follows an answer may depend on it: the turn may be over.
                if is_answer {
                    self.go_on();
                }
            }
            _ => {}
        }
    }

    /// A notification of the agent. One of another session, or of an unknown kind, is skipped.
    fn handle_update(&mut self, update: RawJsonRpcNotification) {
        let Some(params) = update.params else { return };
        let Ok(told) = serde_json::from_value::<SessionNotification>(params.into_value()) else { return };
        let progress = self.shared.lock_progress();
        let (is_ours, stage) = (progress.session.as_ref() == Some(&told.session_id), progress.stage);
        let is_over = progress.ended.is_some();
        drop(progress);
        match stage {
            // Of a session that is loaded all that was ever said in it is told again.
            DialogueState::Opening | DialogueState::Listing => self.account.note_earlier_usage(&told.update),
            DialogueState::Prompted if is_ours && !is_over => {
                // The agent has begun the turn.
                self.open_steering();
                self.account.apply_update(told.update, &mut |item| self.capture.show_item(Some(item)));
            }
            DialogueState::Prompted => {}
        }
    }
}

impl Line<'_, '_> {
    /// Takes texts for the turn from now on, where the agent does.
    fn open_steering(&self) {
        let mut progress = self.shared.lock_progress();
        if progress.steers && self.steering.as_ref().is_some_and(|steering| steering.open()) {
            progress.steered.push(Steered::Open);
            drop(progress);
            self.report_steered();
        }
    }
}

impl Sink for Line<'_, '_> {
    fn stdout(&mut self, bytes: &[u8]) -> bool {
        self.capture.log_output(bytes);
        // Taken out, as a line that is read may change anything of `self`.
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(LONGEST));
        lines.feed(bytes, &mut |line| self.handle_line(line));
        if lines.skipped() > 0 || lines.is_too_long() {
            self.fail(format!("the agent sent a message of more than {} MiB", LONGEST >> 20));
        }
        self.lines = lines;
        self.is_over()
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.capture.stderr(bytes);
    }

    fn report_alive(&mut self, process: Process) {
        self.capture.report_alive(process);
    }

    fn due(&self) -> Option<Instant> {
        let stage = self.shared.lock_progress().stage;
        let own = match stage {
            _ if self.is_over() => None,
            DialogueState::Opening => Some(self.opening),
            DialogueState::Listing => self.listing,
            DialogueState::Prompted => None,
        };
        [self.capture.due(), own].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Instant) {
        self.capture.tick(now);
        let stage = self.shared.lock_progress().stage;
        if stage == DialogueState::Opening && self.opening <= now {
            let message = format!("the agent did not begin its turn within {} seconds", OPENING.as_secs());
            self.shared.record_end(Err(Failure::Spawn { message }));
        }
        let Some(due) = self.listing.filter(|due| *due <= now) else { return };
        let last = self.listing_began.map(|began| began + LISTING).filter(|last| *last > due);
        self.listing = last;
        if stage != DialogueState::Listing {
            return;
        }
        let seconds = LISTING.as_secs();
        if last.is_some() {
            return self.capture.report_notice(&format!(
                "its agent has not started the MCP server `swarm` yet, so it has no tools of the run; its prompt waits \
                 for that, {seconds} seconds at most"
            ));
        }
        self.capture.stderr(b"swarmc: the tools of the run were not listed in time; the turn begins without\n");
        self.capture.report_notice(&format!(
            "its agent did not start the MCP server `swarm` within {seconds} seconds: it got its prompt now, and has no \
             tools of the run"
        ));
        self.shared.enough.notify_one();
    }

    fn has_dialogue(&self) -> bool {
        true
    }

    fn next_input(&mut self) -> StdinDialogue<'_> {
        self.go_on();
        self.handle_waiting();
        if self.lacks_answer() {
            self.give_up_former();
        }
        self.announce();
        let stage = self.shared.lock_progress().stage;
        if stage == DialogueState::Listing && self.listing_began.is_none() {
            let now = Instant::now();
            (self.listing_began, self.listing) = (Some(now), Some(now + LISTING_NOTICE));
        }
        let waits = !self.pending.is_empty() || self.service.is_waiting();
        StdinDialogue { words: &self.unread, over: self.is_over(), waits }
    }

    fn note_written(&mut self, count: usize) {
        self.unread.drain(..count);
        if self.service.is_held_up() && self.unread.len() < ENOUGH {
            self.waker.wake_by_ref();
        }
    }

    fn caught_up(&mut self) {
        self.has_caught_up = true;
        self.waker.wake_by_ref();
    }

    fn hung_up(&mut self) {
        self.channel = None;
        self.unread = Vec::new();
        self.waker.wake_by_ref();
    }

    fn request_exit(&mut self) -> Option<Duration> {
        // From now on it gets no permission and no service: it would only go on.
        self.is_parting = true;
        let asked = !self.is_over() && self.cancel();
        asked.then_some(self.parting)
    }
}
