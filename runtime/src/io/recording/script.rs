//! Reads the events of a recording as a script: what a replay is answered, what it does again, and when.
//!
//! In: the records and exchanges, in the order of the journal. Out: for each question the number of the record with its
//! answer. Invariant: a number is a place among all that happened, so whatever has the lower one comes first in a replay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::exchange::{Attempt, CALL, Exchange, Key, TOOLS, TURN};
use super::read::Recording;
use super::swarm_turns::Member;
use super::{requests, words};
use crate::core::swarm::within::find_action;
use crate::types::approval::{Request, RequestKind, Verdict};
use crate::types::content::Content;
use crate::types::event::{Event, Failure, InboxMessage, StepId};
use crate::types::handoff::{ENVELOPE_LIMIT, Envelope, MESSAGE_LIMIT};
use crate::types::swarm::{Answer, End, TurnId};
use crate::types::team_fact::TeamFact;

/// How many times longer than its limit a text with placeholders may be.
const BLANKED: usize = 8;

/// The characters of an id.
const LONGEST_ID: usize = 20;

/// Which of the requests of an attempt: the agent that makes it, and its number from 1.
pub(super) type RequestKey = (Attempt, Arc<str>, u32);

/// A recording as a replay asks for it.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// What was asked of agents, programs and people, by the number of its record.
    pub asked: BTreeMap<usize, Question>,
    pub exchanges: BTreeMap<(Attempt, Key), usize>,
    /// Where attempts ended. A swarm is taken answer by answer, from its first.
    pub ranks: BTreeMap<Attempt, usize>,
    /// The same of those that asked something, or failed before, in order.
    pub ends: Vec<(usize, Attempt)>,
    /// The attempts that failed for a reason from outside.
    pub failures: BTreeMap<Attempt, usize>,
    /// Where a gate asked for this time, and was answered.
    pub gates: BTreeMap<(StepId, u32), (usize, Option<usize>)>,
    /// The same of an attempt's requests for approval; the name is that of an agent of a swarm, or empty.
    pub requests: BTreeMap<RequestKey, (usize, Option<usize>)>,
    /// What attempts did beside answering.
    pub effects: BTreeMap<Attempt, Vec<(usize, Effect)>>,
    /// Where attempts began that read an inbox, or may read what people appended to a context pack; and the envelopes that they read.
    pub begins: BTreeMap<Attempt, (usize, Vec<Arc<str>>)>,
    /// Where attempts did something at first, in order.
    pub beginnings: Vec<(usize, Attempt)>,
    /// What people wrote to agents.
    pub messages: Vec<usize>,
    /// The agents of swarms whose time was over.
    pub late: BTreeMap<Attempt, Vec<(usize, Arc<str>)>>,
    /// The proposals that the coordinators of teams did not decide in time.
    pub overdue: BTreeMap<Attempt, Vec<(usize, u32)>>,
    /// What agents of teams did and read while their turns went on.
    pub within: BTreeMap<(Attempt, Member), Vec<usize>>,
    /// How many answers its swarm had when a turn or call began, where that was not at once; and the other way round.
    pub after: BTreeMap<(Attempt, Key), u32>,
    pub paused: BTreeMap<(Attempt, u32), Vec<TurnId>>,
}

/// Something that was asked.
#[derive(Debug)]
pub(super) struct Question {
    /// For people.
    pub words: String,
    pub is_answered: bool,
}

/// Something that an attempt did, by its record.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// It handed something over; and whether that needed an approval first, and the id of the message of its refusal.
    Sent {
        asks: bool,
        refusal: Option<Arc<str>>,
    },
    Left,
    Reported,
    /// It asked for help; and the id of the message with the answer.
    Pleaded {
        answer: Option<Arc<str>>,
    },
    /// It read what people wrote while its turn went on.
    Overheard,
    /// It was told of a decision.
    Agreed,
}

/// A swarm so far.
#[derive(Default)]
struct SwarmSoFar {
    answers: u32,
    /// How many answers there were when each turn and call began, and how often it did.
    begun: BTreeMap<(u8, Member), (u32, u32)>,
    failed: BTreeSet<(u8, Member)>,
    /// The turn of each agent that goes on.
    open: BTreeMap<Arc<str>, Member>,
    /// How often each agent asked for an approval.
    asked: BTreeMap<Arc<str>, u32>,
}

/// What the reader of the records knows so far.
struct Reader<'r> {
    recording: &'r Recording,
    script: Script,
    swarms: BTreeMap<Attempt, SwarmSoFar>,
    /// The steps that are sent something, whatever they are within.
    receivers: BTreeSet<(Arc<str>, u32)>,
    /// Whether people appended to context packs: any attempt may then have read more or less.
    has_appended: bool,
    /// The attempt of each step that began last, with what it took in.
    attempts: BTreeMap<StepId, (u32, Vec<Arc<str>>)>,
    /// Those whose attempt goes on.
    running: BTreeSet<StepId>,
    /// What was taken in since.
    taken: BTreeMap<StepId, Vec<Arc<str>>>,
    gates: BTreeMap<StepId, u32>,
    /// How often each attempt of a task asked.
    asked: BTreeMap<Attempt, u32>,
    /// The requests without an answer, by their numbers: as the swarm asked, and as the task did.
    open: BTreeMap<u32, Vec<RequestKey>>,
    /// The handoffs and requests that wait for a decision, by the name that the message about it uses.
    payloads: BTreeMap<Arc<str>, (Attempt, usize)>,
    left: BTreeSet<(Attempt, Arc<str>)>,
    envelopes: BTreeSet<Arc<str>>,
}

impl Script {
    /// # Errors
    /// The number of a record that no recording can hold, and why.
    pub(super) fn new(recording: &Recording) -> Result<Script, (usize, String)> {
        // Known beforehand: an attempt may begin before the first message for its step is sent.
        let receives = recording.records.iter().filter_map(|record| match &record.event {
            Event::Sent { to, instance, .. } => Some((Arc::clone(to), *instance)),
            _ => None,
        });
        let mut reader = Reader {
            recording,
            script: Script::default(),
            swarms: BTreeMap::new(),
            receivers: receives.collect(),
            has_appended: recording.records.iter().any(|record| matches!(record.event, Event::PackAppended { .. })),
            attempts: BTreeMap::new(),
            running: BTreeSet::new(),
            taken: BTreeMap::new(),
            gates: BTreeMap::new(),
            asked: BTreeMap::new(),
            open: BTreeMap::new(),
            payloads: BTreeMap::new(),
            left: BTreeSet::new(),
            envelopes: BTreeSet::new(),
        };
        for (number, record) in recording.records.iter().enumerate() {
            reader.read_event(number, &record.event).map_err(|problem| (number, problem))?;
        }
        Ok(reader.finish())
    }
}

impl Reader<'_> {
    fn read_event(&mut self, number: usize, event: &Event) -> Result<(), String> {
        if let Some(swarm) = event.swarm() {
            self.read_swarm(number, &(swarm.step.clone(), swarm.attempt), event);
            return Ok(());
        }
        match event {
            Event::Exchanged { step, attempt, .. } => return self.read_exchange(number, (step, *attempt)),
            // What went on then ended with its runner, and no event says so.
            Event::RunResumed => self.running.clear(),
            Event::AttemptStarted { step, attempt, .. } | Event::AttemptRejoined { step, attempt } => {
                self.begin(number, step, *attempt);
            }
            Event::AttemptEnded { step, attempt, outcome } => {
                self.running.remove(step);
                self.end(number, (step.clone(), *attempt), outcome.failure.as_ref());
            }
            Event::GateOpened { step, .. } => {
                let asked = self.gates.entry(step.clone()).or_default();
                *asked += 1;
                self.script.gates.insert((step.clone(), *asked), (number, None));
                self.script.asked.insert(number, Question { words: words(step, 1), is_answered: false });
            }
            Event::GateAnswered { step, .. } => {
                let asked = self.gates.get(step).copied().unwrap_or_default();
                if let Some((opened, answered)) = self.script.gates.get_mut(&(step.clone(), asked)) {
                    answered.get_or_insert(number);
                    self.script.asked.entry(*opened).and_modify(|asked| asked.is_answered = true);
                }
            }
            Event::ApprovalAsked { step, attempt, request } => {
                return self.read_request(number, (step.clone(), *attempt), request);
            }
            Event::ApprovalAnswered { step, attempt, verdict } => {
                self.read_verdict(number, &(step.clone(), *attempt), verdict);
            }
            Event::Sent { from, way, letter, .. } => return self.read_letter(number, (from.as_ref(), *way), letter),
            // Inputs are taken before the attempt begins that reads them; later ones were read within its turn.
            Event::InputsTaken { step, inputs } => match self.running.contains(step) {
                true => self.add_effect(number, self.last_attempt(step), Effect::Overheard),
                false => self.taken.entry(step.clone()).or_default().extend(inputs.iter().cloned()),
            },
            Event::PackAppended { .. } => self.script.messages.push(number),
            Event::StatusReported { step, attempt, .. } => {
                self.add_effect(number, (step.clone(), *attempt), Effect::Reported);
            }
            Event::ArtifactStored { step, attempt, artifact } if artifact.kind.is_recorded() => {
                let plain = (1..=LONGEST_ID).contains(&artifact.id.len());
                if !plain || !artifact.id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    return Err("the id of an artifact is a digest".to_owned());
                }
                let attempt = (step.clone(), *attempt);
                if self.left.insert((attempt.clone(), Arc::clone(&artifact.id))) {
                    self.add_effect(number, attempt, Effect::Left);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn read_exchange(&mut self, number: usize, (step, attempt): (&StepId, u32)) -> Result<(), String> {
        let Some(exchange) = self.recording.exchanges.get(&number) else { return Ok(()) };
        // A person may have edited the recording: its paths must not lead out of the agent's folder.
        if let Exchange::Files { told, left, files, .. } = exchange
            && let Some(problem) = crate::io::files::find_path_problem(told.keys(), left.as_deref(), files.keys())
        {
            return Err(problem);
        }
        let of = (step.clone(), attempt);
        if self.script.exchanges.insert((of.clone(), exchange.key()), number).is_some() {
            return Err("it is there twice".to_owned());
        }
        if let Some(is_answered) = exchange.answers() {
            let words = exchange.describe((step, attempt));
            self.script.asked.insert(number, Question { words, is_answered });
        }
        if exchange.is_of_swarm() {
            self.script.ranks.entry(of.clone()).or_insert(number);
        }
        let answers = match exchange {
            Exchange::Member { answer, .. } => answer.is_some(),
            Exchange::Call { answer, .. } => answer.is_some(),
            // Where its tools are unknown, a model is not asked.
            Exchange::Tools { answer, .. } => answer.fault.is_some(),
            _ => false,
        };
        if let Exchange::Member { turn, .. } | Exchange::Call { turn, .. } = exchange {
            self.note_pause(&of, exchange, turn);
        }
        self.swarms.entry(of).and_modify(|swarm| swarm.answers += u32::from(answers));
        Ok(())
    }

    /// Notes when a turn or a call began, where that was not at once: after a pause, when its tools were known, or when a
    /// killed run went on.
    fn note_pause(&mut self, of: &Attempt, exchange: &Exchange, turn: &Member) {
        let Some(swarm) = self.swarms.get(of) else { return };
        let is_call = matches!(exchange, Exchange::Call { .. });
        let kind = if is_call { CALL } else { TURN };
        let (answers, times) = swarm.begun.get(&(kind, turn.clone())).copied().unwrap_or_default();
        // Only after a failure of the try before does a turn or a call pause.
        let before = Member { attempt: turn.attempt.saturating_sub(1), ..turn.clone() };
        let listed = self.script.exchanges.contains_key(&(of.clone(), turn.key(TOOLS)));
        let waited = swarm.failed.contains(&(kind, before)) || !is_call && (listed || times > 1);
        if waited {
            self.script.after.insert((of.clone(), exchange.key()), answers);
            self.script.paused.entry((of.clone(), answers)).or_default().push(turn.id());
        }
    }

    fn read_swarm(&mut self, number: usize, of: &Attempt, event: &Event) {
        let swarm = self.swarms.entry(of.clone()).or_default();
        let reader = match event {
            Event::Team { fact: TeamFact::Noticed { agent, .. } | TeamFact::Touched { agent, .. }, .. } => Some(agent),
            event => find_action(event).map(|(agent, _)| agent),
        };
        if let Some(turn) = reader.and_then(|agent| swarm.open.get(agent)) {
            self.script.within.entry((of.clone(), turn.clone())).or_default().push(number);
        }
        match event {
            Event::TurnStarted { turn, .. } => swarm.open.insert(Arc::clone(&turn.agent), Member::of(turn)),
            Event::TurnEnded { turn, .. } => swarm.open.remove(&turn.agent),
            Event::AgentFinished { agent, .. } => swarm.open.remove(agent),
            _ => None,
        };
        match event {
            Event::TurnStarted { turn, .. } => swarm.begin(TURN, turn),
            Event::ToolStarted { turn, .. } => swarm.begin(CALL, turn),
            Event::TurnEnded { turn, answer: Answer::Failed { .. }, .. } => {
                swarm.failed.insert((TURN, Member::of(turn)));
            }
            Event::ToolEnded { turn, fault: Some(_), .. } => {
                swarm.failed.insert((CALL, Member::of(turn)));
            }
            Event::AgentFinished { agent, how: End::TimedOut, .. } => {
                swarm.answers += 1;
                self.script.late.entry(of.clone()).or_default().push((number, Arc::clone(agent)));
            }
            Event::Team { fact, .. } => {
                if let Some(proposal) = fact.overdue_proposal() {
                    swarm.answers += 1;
                    self.script.overdue.entry(of.clone()).or_default().push((number, proposal));
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, number: usize, step: &StepId, attempt: u32) {
        self.running.insert(step.clone());
        let fresh = self.taken.remove(step).unwrap_or_default();
        let known = self.attempts.entry(step.clone()).or_default();
        // The same attempt begins again after a crash, and still knows what it read before that.
        if known.0 != attempt {
            *known = (attempt, Vec::new());
        }
        known.1.extend(fresh);
        // One that was ended with its runner has not ended.
        let of = (step.clone(), attempt);
        self.script.failures.remove(&of);
        if !self.swarms.contains_key(&of) && self.script.ranks.remove(&of).is_some() {
            self.script.ends.retain(|(_, ended)| *ended != of);
        }
        if self.has_appended || self.receivers.contains(&(Arc::clone(&step.name), step.instance)) {
            // One that a killed runner had begun begins when it did once more.
            self.script.begins.insert(of, (number, known.1.clone()));
        }
    }

    fn end(&mut self, number: usize, of: Attempt, failure: Option<&Failure>) {
        // What comes from within comes again by itself.
        let is_outside = match self.swarms.contains_key(&of) {
            true => matches!(failure, Some(Failure::Cancelled | Failure::Timeout { .. } | Failure::Spawn { .. })),
            false => {
                let fails = matches!(failure, Some(Failure::Cancelled | Failure::Spawn { .. }))
                    || matches!(failure, Some(Failure::Agent { .. } | Failure::Files { .. }));
                // One that asked something fails once more by the recorded answer.
                fails && !self.has_exchange(&of, |exchange| exchange.answers().is_some())
            }
        };
        if is_outside {
            self.script.failures.insert(of.clone(), number);
        }
        let asked = self.has_exchange(&of, |exchange| !matches!(exchange, Exchange::File { .. }));
        let rank = *self.script.ranks.entry(of.clone()).or_insert(number);
        if is_outside || asked {
            self.script.ends.push((rank, of));
        }
    }

    fn has_exchange(&self, of: &Attempt, fits: impl Fn(&Exchange) -> bool) -> bool {
        // The least key of the attempt: the map holds its exchanges side by side.
        let first = (of.clone(), (0, 0, 0, String::new()));
        let all = self.script.exchanges.range(first..).take_while(|((other, _), _)| other == of);
        all.filter_map(|(_, number)| self.recording.exchanges.get(number)).any(fits)
    }

    fn read_request(&mut self, number: usize, of: Attempt, request: &Request) -> Result<(), String> {
        let mut open = Vec::new();
        if let Some(swarm) = self.swarms.get_mut(&of) {
            let asked = swarm.asked.entry(Arc::clone(&request.agent)).or_default();
            *asked += 1;
            open.push((of.clone(), Arc::clone(&request.agent), *asked));
        }
        match &request.wants {
            RequestKind::Node { letter, .. } => {
                self.check_envelope(&of.0, letter)?;
                self.payloads.insert(Arc::clone(&letter.id), (of.clone(), number));
                self.add_effect(number, of.clone(), Effect::Sent { asks: true, refusal: None });
            }
            RequestKind::Help { .. } => {
                self.payloads.insert(request.name().into(), (of.clone(), number));
                self.add_effect(number, of.clone(), Effect::Pleaded { answer: None });
            }
            RequestKind::GoOn { .. }
            | RequestKind::Tool { .. }
            | RequestKind::Spawn { .. }
            | RequestKind::Plan { .. }
            | RequestKind::Merge { .. } => {}
        }
        if matches!(request.wants, RequestKind::Node { .. } | RequestKind::GoOn { .. } | RequestKind::Help { .. }) {
            let asked = self.asked.entry(of.clone()).or_default();
            *asked += 1;
            open.push((of, Arc::from(""), *asked));
        }
        for key in &open {
            if !key.1.is_empty() {
                let words = requests((&key.0.0, key.0.1), &key.1, key.2);
                self.script.asked.insert(number, Question { words, is_answered: false });
            }
            self.script.requests.insert(key.clone(), (number, None));
        }
        self.open.insert(request.id, open);
        Ok(())
    }

    fn read_verdict(&mut self, number: usize, of: &Attempt, verdict: &Verdict) {
        for key in self.open.remove(&verdict.id).unwrap_or_default() {
            let Some((asked, answered)) = self.script.requests.get_mut(&key) else { continue };
            let (asked, is_task) = (*asked, key.1.is_empty());
            let outlasts = match &self.recording.records[asked].event {
                Event::ApprovalAsked { request, .. } => request.wants.outlasts_attempt(),
                _ => false,
            };
            // What the policy says at once, it says in a replay as well.
            if !(verdict.was_awaited() || is_task && !outlasts) {
                self.script.requests.remove(&key);
                if !is_task {
                    self.script.asked.remove(&asked);
                }
                continue;
            }
            *answered = Some(number);
            match is_task {
                true => self.add_effect(number, of.clone(), Effect::Agreed),
                false => {
                    self.script.asked.entry(asked).and_modify(|asked| asked.is_answered = true);
                    self.swarms.entry(of.clone()).and_modify(|swarm| swarm.answers += 1);
                }
            }
        }
    }

    fn read_letter(
        &mut self,
        number: usize,
        (from, way): (Option<&StepId>, Option<usize>),
        letter: &InboxMessage,
    ) -> Result<(), String> {
        if let Some(step) = from {
            // One that waited for a decision has its place where that was asked for, and is known from there.
            if !self.payloads.contains_key(&letter.id) {
                self.check_envelope(step, letter)?;
                let effect = Effect::Sent { asks: false, refusal: None };
                self.add_effect(number, self.last_attempt(step), effect);
            }
            return Ok(());
        }
        if parse_id(&letter.id).is_none() {
            return Err("an id of a message is `e` and a number".to_owned());
        }
        if let (None, None) = (&letter.answers, way) {
            if !self.envelopes.insert(Arc::clone(&letter.id)) {
                return Err(format!("message `{}` is there twice", letter.id));
            }
            self.script.messages.push(number);
            return Ok(());
        }
        // Its sender receives the decision as a message.
        let payload = letter.answers.as_ref().and_then(|answers| self.payloads.get(answers));
        let effects = payload.and_then(|(of, asked)| Some((self.script.effects.get_mut(of)?, *asked)));
        for (_, effect) in effects
            .into_iter()
            .flat_map(|(effects, asked)| effects.iter_mut().filter(move |(number, _)| *number == asked))
        {
            if let Effect::Sent { refusal: told, .. } | Effect::Pleaded { answer: told } = effect {
                *told = Some(Arc::clone(&letter.id));
            }
        }
        Ok(())
    }

    fn check_envelope(&mut self, step: &StepId, letter: &InboxMessage) -> Result<(), String> {
        let Content::Text(text) = &letter.content else { return Err("its envelope is no JSON".to_owned()) };
        let envelope: Envelope = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let Envelope { id, from_node_id, created_at, payload, .. } = &envelope;
        if parse_id(id).is_none() || *letter.id != **id {
            return Err("an id of an envelope is `e` and a number".to_owned());
        }
        if !self.envelopes.insert(Arc::clone(&letter.id)) {
            return Err(format!("envelope `{id}` is there twice"));
        }
        if **from_node_id != *step.name {
            return Err(format!("envelope `{id}` does not name its sender `{}`", step.name));
        }
        if parse_moment(created_at).is_none() {
            return Err(format!("envelope `{id}` has no valid time"));
        }
        let chars = payload.message.chars().count();
        if chars == 0 {
            return Err(format!("envelope `{id}` is empty"));
        }
        match chars > MESSAGE_LIMIT * BLANKED || text.len() > ENVELOPE_LIMIT * BLANKED {
            true => Err(format!("envelope `{id}` is too long")),
            false => Ok(()),
        }
    }

    /// The attempt of a step that began last.
    fn last_attempt(&self, step: &StepId) -> Attempt {
        (step.clone(), self.attempts.get(step).map_or(1, |(attempt, _)| *attempt))
    }

    fn add_effect(&mut self, number: usize, of: Attempt, effect: Effect) {
        self.script.effects.entry(of).or_default().push((number, effect));
    }

    fn finish(self) -> Script {
        let mut script = self.script;
        let firsts = script.effects.iter().filter_map(|(of, effects)| Some((effects.first()?.0, of.clone())));
        let begins = script.begins.iter().map(|(of, (number, _))| (*number, of.clone()));
        let mut first: BTreeMap<Attempt, usize> = BTreeMap::new();
        for (number, of) in firsts.chain(begins) {
            let known = first.entry(of).or_insert(number);
            *known = number.min(*known);
        }
        script.beginnings = first.into_iter().map(|(of, number)| (number, of)).collect();
        script.beginnings.sort_unstable();
        script.ends.sort_unstable();
        script
    }
}

impl SwarmSoFar {
    fn begin(&mut self, kind: u8, turn: &TurnId) {
        let begun = self.begun.entry((kind, Member::of(turn))).or_default();
        *begun = (self.answers, begun.1 + 1);
    }
}

/// The number of an envelope's id.
pub(super) fn parse_id(id: &str) -> Option<u64> {
    let digits = id.strip_prefix('e').filter(|digits| digits.len() < LONGEST_ID)?;
    // With leading zeros, one number would have several ids.
    digits.parse().ok().filter(|number: &u64| number.to_string() == digits)
}

/// A time as envelopes say it, in milliseconds since 1970.
pub(super) fn parse_moment(stamp: &str) -> Option<u64> {
    let stamp: jiff::Timestamp = stamp.parse().ok()?;
    u64::try_from(stamp.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_number_and_a_time_a_moment() {
        assert_eq!(parse_id("e14"), Some(14));
        for id in ["e", "e014", "e-1", "14", "f1", "e1 ", "e99999999999999999999", "../e1"] {
            assert_eq!(parse_id(id), None, "{id}");
        }
        assert_eq!(parse_moment("2026-11-22T16:26:08.25Z"), Some(1_795_364_768_250));
        assert_eq!(parse_moment("yesterday"), None);
    }
}
