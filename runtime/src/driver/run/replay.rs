//! Replay in the driver: it takes the recorded ends and answers one by one, in the order in which they were recorded.
//!
//! Pauses are over at once, and the run ends at the first question that differs from the recording. Invariant: the
//! journal does not depend on which thread was faster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::driver::Driver;
use super::{Input, Outcome};
use crate::io::input::SwarmInput;
use crate::io::recording::{At, GateTake, Replay, ReplayInput, requests, words};
use crate::types::divergence::{Difference, Divergence};
use crate::types::error::RunError;
use crate::types::event::{self, AnsweredBy, Content, Event, Failure, RunStatus, StepId};
use crate::types::user_request::StopLevel;

/// A replay, in the loop.
#[derive(Debug)]
pub(super) struct Replaying {
    pub replay: Arc<Replay>,
    /// What is to be taken next, by its place in the recording.
    ready: BTreeMap<(usize, StepId, u32), Input>,
    /// The attempts that wait to be ended from outside.
    parked: BTreeSet<(StepId, u32)>,
    /// The attempts that have ended.
    taken: BTreeSet<(StepId, u32)>,
    /// The first recorded end that has not been.
    next: usize,
    /// The attempts that were told to begin.
    pub known: BTreeSet<(StepId, u32)>,
    /// The first recorded beginning that has not been.
    beginning: usize,
    /// The ids of the inbox messages that report decisions of people, by the id of the request that they answer.
    pub letters: BTreeMap<Arc<str>, Arc<str>>,
    /// How many answers of each swarm were taken.
    answers: BTreeMap<(StepId, u32), u32>,
    /// How many approvals each agent of a swarm has requested.
    requests: BTreeMap<(StepId, u32, Arc<str>), u32>,
    /// What was asked in swarms and never answered in the recording.
    left: BTreeMap<(StepId, u32), RunError>,
    /// How often each gate has asked.
    gates: BTreeMap<StepId, u32>,
    /// Where the replay and its recording part.
    diverged: Option<Box<Divergence>>,
}

impl Replaying {
    /// # Errors
    /// The recording cannot be read.
    pub(super) fn new(replay: Arc<Replay>) -> Result<Replaying, RunError> {
        // Messages of people belong to no attempt.
        let no_step = StepId { name: "".into(), iteration: 0, instance: 0, within: None };
        let written = replay.written()?.into_iter();
        let ready =
            written.map(|(rank, it)| ((rank, no_step.clone(), 0), ReplayInput::Written(it).into_input())).collect();
        Ok(Replaying {
            replay,
            ready,
            parked: BTreeSet::new(),
            taken: BTreeSet::new(),
            next: 0,
            known: BTreeSet::new(),
            beginning: 0,
            letters: BTreeMap::new(),
            answers: BTreeMap::new(),
            requests: BTreeMap::new(),
            left: BTreeMap::new(),
            gates: BTreeMap::new(),
            diverged: None,
        })
    }

    /// A swarm has begun: it ends by itself, so the replay does not wait for its recorded end.
    pub(super) fn mark_swarm_begun(&mut self, step: &StepId, attempt: u32) {
        self.taken.insert((step.clone(), attempt));
    }

    /// A swarm was ended from outside.
    pub(super) fn park(&mut self, step: &StepId, attempt: u32) {
        self.parked.insert((step.clone(), attempt));
    }

    /// Something of a swarm is to be taken when its turn comes.
    pub(super) fn queue_swarm_input(&mut self, rank: usize, step: &StepId, attempt: u32, word: SwarmInput) {
        self.ready.insert((rank, step.clone(), attempt), word.into_input(step, attempt));
    }

    /// Something of an attempt is to be taken when its turn comes.
    pub(super) fn queue_input(&mut self, rank: usize, step: &StepId, attempt: u32, input: Input) {
        self.ready.insert((rank, step.clone(), attempt), input);
    }

    /// A turn or a call was ended before it was answered.
    pub(super) fn note_unended(&mut self, at: At<'_>, tool: Option<&str>) {
        let place = (at.step.clone(), at.attempt);
        let parts = self.replay.parts(at, tool, Difference::Unended);
        // The first is kept: those after it may follow from it.
        self.left.entry(place).or_insert(parts);
    }

    /// Counts a request of an agent for an approval. Returns how many it has made.
    pub(super) fn count_request(&mut self, step: &StepId, attempt: u32, agent: &Arc<str>) -> u32 {
        let asked = self.requests.entry((step.clone(), attempt, Arc::clone(agent))).or_default();
        *asked += 1;
        *asked
    }

    /// Notes that the recording has no answer to a request.
    pub(super) fn leave_request(&mut self, (step, attempt): (&StepId, u32), agent: &str, asked: u32) {
        let place = requests((step, attempt), agent, asked);
        let parts = self.replay.diverged(step, attempt, place, Difference::Unanswered);
        self.left.entry((step.clone(), attempt)).or_insert(parts);
    }

    /// How many answers of a swarm were taken.
    pub(super) fn count_answers(&self, step: &StepId, attempt: u32) -> u32 {
        self.answers.get(&(step.clone(), attempt)).copied().unwrap_or(0)
    }

    fn stage(&mut self, input: Input) -> Option<Input> {
        let (step, attempt) = match &input {
            Input::Ended { step, attempt, .. } => (step.clone(), *attempt),
            Input::Replay(told) => match &**told {
                ReplayInput::Diverged { step, attempt, .. } => (step.clone(), *attempt),
                ReplayInput::Parked { step, attempt } => {
                    self.parked.insert((step.clone(), *attempt));
                    return None;
                }
                _ => return Some(input),
            },
            _ => return Some(input),
        };
        self.ready.insert((self.replay.rank(&step, attempt), step, attempt), input);
        None
    }

    /// Whether what ended next is a further attempt of a step that has failed, and pauses before that.
    fn waits_for_a_pause(&mut self) -> bool {
        let (from, next) = self.replay.next(self.next, &self.taken);
        self.next = from;
        let Some((rank, step, attempt)) = next else { return false };
        let first = self.ready.first_key_value().map(|((rank, ..), _)| *rank);
        let failed = attempt > 1 && self.taken.contains(&(step, attempt - 1));
        failed && first.is_some_and(|first| rank < first)
    }

    /// The same of what began next, of the steps that others write to.
    fn waits_to_begin(&mut self) -> bool {
        let (from, next) = self.replay.next_beginning(self.beginning, &self.known);
        self.beginning = from;
        let Some((rank, step, attempt)) = next else { return false };
        let first = self.ready.first_key_value().map(|((rank, ..), _)| *rank);
        attempt > 1 && self.taken.contains(&(step, attempt - 1)) && first.is_some_and(|first| rank < first)
    }

    fn is_ready(&self, step: &StepId, attempt: u32) -> bool {
        self.ready.contains_key(&(self.replay.rank(step, attempt), step.clone(), attempt))
    }
}

impl Driver<'_> {
    /// Keeps back what a replay takes in order; anything else comes back.
    pub(super) fn stage(&mut self, input: Input) -> Option<Input> {
        match self.world.recording_mut() {
            Some(replaying) => replaying.stage(input),
            None => Some(input),
        }
    }

    /// The next thing that happens in a replay.
    pub(super) fn wait_recorded(&mut self) -> Option<Input> {
        // All attempts come to their answers first: then the earliest is taken, whichever thread was faster.
        while self.is_working() {
            let input = self.queue.wait_input()?;
            if let Some(input) = self.stage(input) {
                return Some(input);
            }
        }
        let replaying = self.world.recording_mut()?;
        let pauses = replaying.waits_to_begin() || replaying.waits_for_a_pause();
        // The alarm may be for the end of a pause or of a time budget. A replay does not wait for a time budget here.
        let is_pause = self.queue.alarm.is_some_and(|alarm| self.state.next_pause() == Some(alarm.due));
        if self.begin_paused() || pauses && is_pause && self.fire_alarm() {
            return None;
        }
        let replaying = self.world.recording_mut()?;
        if let Some(((_, step, attempt), input)) = replaying.ready.pop_first() {
            match &input {
                // By this count the turns begin that paused in the recording.
                Input::Swarm { word, .. } if !word.is_answer() => {}
                Input::Swarm { .. } => *replaying.answers.entry((step, attempt)).or_default() += 1,
                // Such an input leaves its attempt open.
                Input::Replay(told) if !told.ends_attempt() => {}
                _ => _ = replaying.taken.insert((step, attempt)),
            }
            return Some(input);
        }
        // No recorded input is left, so that only the time can go on.
        if self.fire_alarm() || self.end_pause() {
            return None;
        }
        match self.find_deadlock() {
            Some(divergence) => self.diverge(divergence),
            None => return self.queue.wait_input(),
        }
        None
    }

    /// Whether some attempt has neither ended nor waits to be ended.
    fn is_working(&self) -> bool {
        let Some(replaying) = self.world.recording() else { return false };
        self.attempts.open.iter().any(|((step, attempt), cancel)| {
            // One that was asked to end is about to report that.
            let waits = cancel.requested_level().is_none() && replaying.parked.contains(&(step.clone(), *attempt));
            !waits && !replaying.is_ready(step, *attempt)
        })
    }

    /// Why nothing would ever happen again.
    fn find_deadlock(&self) -> Option<Box<Divergence>> {
        let replaying = self.world.recording()?;
        let gates =
            self.state.open_steps().filter(|open| open.asking).map(|open| (open.step, 1, Difference::Unanswered));
        let goes_on = |(step, attempt): &(StepId, u32)| (step.clone(), *attempt, Difference::GoesOn);
        let open = |key: &&(StepId, u32)| self.attempts.is_open(key) || self.teams.is_running(key);
        let parked = replaying.parked.iter().filter(open).map(goes_on);
        let swarms = self.teams.list_running();
        let waits = |asker: &&(StepId, u32)| {
            swarms.contains(asker)
                || self.state.open_requests().any(|waiting| (&waiting.step, waiting.attempt) == (&asker.0, asker.1))
        };
        let left = replaying.left.iter().find(|(asker, _)| waits(asker)).map(|(_, left)| left);
        // It names what was asked, and so says more than which step waits.
        if let Some(RunError::Diverged(left)) = left {
            return Some(left.clone());
        }
        let (step, attempt, difference) = gates.chain(parked).chain(swarms.iter().map(goes_on)).next()?;
        match replaying.replay.diverged(&step, attempt, words(&step, attempt), difference) {
            RunError::Diverged(divergence) => Some(divergence),
            _ => None,
        }
    }

    /// The replay and its recording part here: whatever is under way is ended, and nothing starts any more.
    pub(super) fn diverge(&mut self, divergence: Box<Divergence>) {
        let Some(replaying) = self.world.recording_mut() else { return };
        // The first divergence causes those behind it.
        replaying.diverged.get_or_insert(divergence);
        self.attempts.stop_all(StopLevel::Kill);
        // No thread would report the end of a swarm.
        for (step, attempt) in self.teams.list_running() {
            let outcome = event::Outcome { failure: Some(Failure::Cancelled), ..event::Outcome::default() };
            self.record(Event::AttemptEnded { step, attempt, outcome });
        }
        self.teams.clear();
    }

    pub(super) fn has_diverged(&self) -> bool {
        self.world.recording().is_some_and(|replaying| replaying.diverged.is_some())
    }

    /// An attempt asked something that the recording does not hold.
    fn end_diverged(&mut self, step: StepId, attempt: u32, divergence: Box<Divergence>) {
        self.attempts.close(&step, attempt);
        let outcome = event::Outcome { failure: Some(Failure::Cancelled), ..event::Outcome::default() };
        self.record(Event::AttemptEnded { step, attempt, outcome });
        self.diverge(divergence);
    }

    /// Records the end of a run that has diverged.
    pub(super) fn close_diverged(&mut self) {
        if self.has_diverged() && self.state.final_status().is_none() && self.records.broken.is_none() {
            self.record(Event::RunFinished { status: RunStatus::Failed });
            // No later turn would hand the record over.
            self.run_turn();
        }
    }

    /// A gate asks in a replay: it is answered as it was, when its turn comes.
    pub(super) fn ask_recording(&mut self, step: &StepId, message: &Content) {
        let message = self.outputs.folder.read_text(message);
        let Some(replaying) = self.world.recording_mut() else { return };
        let asked = replaying.gates.entry(step.clone()).or_default();
        *asked += 1;
        let taken = message.and_then(|message| replaying.replay.gate(step, *asked, &message));
        match taken {
            Ok(Some((rank, take))) => {
                let input = ReplayInput::Gate { step: step.clone(), take }.into_input();
                replaying.ready.insert((rank, step.clone(), 0), input);
            }
            Ok(None) => {}
            Err(RunError::Diverged(divergence)) => self.diverge(divergence),
            Err(error) => self.give_up(error.to_string()),
        }
    }

    /// Something of the recording happens again.
    pub(super) fn take_recorded(&mut self, input: ReplayInput) {
        match input {
            ReplayInput::Begin { step, attempt } => self.begin_replayed(step, attempt),
            ReplayInput::Effect { step, attempt, effect } => self.apply_effect(&step, attempt, effect),
            ReplayInput::Written(written) => self.write_again(&written),
            ReplayInput::Verdict(verdict) => self.agree_replayed(verdict),
            ReplayInput::Gate { step, take } => self.answer_gate(step, take),
            ReplayInput::Diverged { step, attempt, divergence } => self.end_diverged(step, attempt, divergence),
            // It was noted when it came.
            ReplayInput::Parked { .. } => {}
        }
    }

    /// The recorded answer of a gate.
    fn answer_gate(&mut self, step: StepId, take: GateTake) {
        // It was ended meanwhile.
        if !self.state.open_steps().any(|open| open.asking && open.step == step) {
            return;
        }
        let problem = match take {
            GateTake::Person(answer) => self.take_answer(answer).err().map(Difference::Unfit),
            GateTake::Default(AnsweredBy::Timeout) => {
                self.time_out(step.clone());
                None
            }
            GateTake::Default(_) => (!self.take_headless(&step)).then_some(Difference::Unanswered),
        };
        let replay = self.world.recording().map(|replaying| Arc::clone(&replaying.replay));
        if let (Some(difference), Some(replay)) = (problem, replay)
            && let RunError::Diverged(divergence) = replay.diverged(&step, 1, words(&step, 1), difference)
        {
            self.diverge(divergence);
        }
    }

    /// Compares the end of a replay with that of the recording, and reports answers that it never requested.
    ///
    /// # Errors
    /// They part, or the recording cannot be read.
    pub(super) fn judge_replay(&self, outcome: &Outcome) -> Result<(), RunError> {
        let Some(replaying) = self.world.recording() else { return Ok(()) };
        // A run that was stopped has no end that could be compared.
        let Some(status) = self.state.final_status() else { return Ok(()) };
        let (given, rest) = replaying.replay.rest();
        if !rest.is_empty() {
            self.notices
                .send(format!("the recording contains answers that the run never requested: {}", rest.join(", ")));
        }
        replaying.replay.ended(status, &outcome.values)?;
        let answers = if given == 1 { "answer" } else { "answers" };
        let same = if rest.is_empty() { ", and everything is as recorded" } else { "" };
        self.notices.send(format!("replayed {given} {answers}{same}"));
        Ok(())
    }

    /// The divergence that the run ended with.
    pub(super) fn divergence(&mut self) -> Option<Box<Divergence>> {
        self.world.recording_mut()?.diverged.take()
    }
}

impl ReplayInput {
    /// As an input of the driver.
    pub(super) fn into_input(self) -> Input {
        Input::Replay(Box::new(self))
    }

    /// Whether the attempt that it is queued for has ended with it, or what it is queued for is a gate.
    fn ends_attempt(&self) -> bool {
        matches!(self, ReplayInput::Gate { .. } | ReplayInput::Diverged { .. })
    }
}
