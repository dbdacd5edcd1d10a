//! Handoffs: checks what an agent may hand over, and shows it in the prompt of the receiver's next turn.
//!
//! In: an operation of an agent, in any turn. Out: the event to record and a receipt, or the reason for a refusal,
//! which tells the agent what to do. No text of an agent becomes a line of a prompt: prompts show envelopes as JSON.

use std::fmt::Write as _;

use swarmc_plan::{Body, DirectiveKind, Edge, EdgeKind, PromptBody, Response, prompt_text};

use super::{Evaluator, Made};
use crate::core::graph::{HandoffEdge, Key, StepRef};
use crate::core::state::State;
use crate::types::artifact::ArtifactMeta;
use crate::types::digest::digest_bytes;
use crate::types::event::{Event, InboxMessage};
use crate::types::handoff::{
    ENVELOPE_LIMIT, Envelope, EnvelopeKind, Handoff, INBOX, MESSAGE_LIMIT, Meta, Payload, Reach, Receivers, Reply,
};

/// The characters of a text of an agent that a message shows.
const SHOWN: usize = 64;

impl Evaluator<'_> {
    /// The inbox of a step's turn without the first `heard` messages, as its prompt shows it: messages of people and
    /// the run, then the envelopes. None if no edge leads to the step, and neither a person nor the run wrote to it.
    pub(crate) fn render_inbox(&self, state: &State, key: Key, heard: usize) -> Result<Option<String>, String> {
        let inputs = state.inputs(key).skip(heard);
        let (told, envelopes): (Vec<&InboxMessage>, Vec<&InboxMessage>) =
            inputs.partition(|letter| letter.author().is_some());
        if !state.node(key).wired && told.is_empty() {
            return Ok(None);
        }
        let mut blocks = Vec::new();
        for letter in &told {
            let said = self.texts.load_text(&letter.content)?;
            blocks.push(prompt_text::format_message(letter.person, &said));
        }
        let mut text = match envelopes.len() {
            0 if told.is_empty() => return Ok(Some(prompt_text::EMPTY_INBOX.to_owned())),
            0 => return Ok(Some(blocks.join(prompt_text::BETWEEN))),
            count => prompt_text::inbox_heading(count),
        };
        for letter in envelopes {
            let _ = write!(text, "\n{}", self.texts.load_text(&letter.content)?);
        }
        text.push_str(prompt_text::INBOX_END);
        blocks.push(text);
        Ok(Some(blocks.join(prompt_text::BETWEEN)))
    }

    /// What waits in the inbox of a step, where its prompt does not say where that is to stand.
    pub(crate) fn inputs_block(&self, state: &State, key: Key, body: &PromptBody) -> Result<Option<String>, String> {
        match !body.prompt.reads_kind(DirectiveKind::Inbox) && state.inputs(key).next().is_some() {
            true => self.render_inbox(state, key, 0),
            false => Ok(None),
        }
    }

    /// The part of a prompt that explains to a step how to hand something over.
    pub(crate) fn explain_handoffs(&self, state: &State, key: Key) -> Option<String> {
        let Reach { receivers, spawns, .. } = self.resolve_reach(state, key);
        prompt_text::handing_over(&receivers, &spawns)
    }

    /// Whether an edge leads to a step or away from it.
    pub(crate) fn is_node(&self, state: &State, key: Key) -> bool {
        let (scope, spot) = state.address(key);
        let mut leading = state.graph.scope(state.region(scope).scope).ways.edges_from(spot);
        state.node(key).wired || leading.next().is_some()
    }

    /// Whether the run reads operations in its answer: an agent answers, and an edge leads to the step or away from it.
    pub(crate) fn can_operate(&self, state: &State, key: Key) -> bool {
        matches!(self.step_definition(state, key).body, Body::Prompt(_)) && self.is_node(state, key)
    }

    /// Whether a step reads messages of people: for-each items cannot receive them.
    pub(crate) fn hears_persons(&self, state: &State, key: Key) -> bool {
        let (scope, spot) = state.address(key);
        state.node(key).reads_inbox && state.receiver(scope, spot) == Some(key)
    }

    /// Whom a step can write to, as far as that decides what its messages are.
    pub(crate) fn message_receivers(&self, state: &State, key: Key) -> Receivers {
        Receivers {
            unasked: self.led_to(state, key, |edge| edge.response == Response::None),
            signals: self.led_to(state, key, |edge| edge.kind == EdgeKind::Signal),
        }
    }

    fn led_to(&self, state: &State, key: Key, fits: impl Fn(&swarmc_plan::Edge) -> bool) -> Vec<String> {
        let (scope, spot) = state.address(key);
        let sender = self.name_of(state, spot);
        let edges = self.pipeline(state, scope).edges.iter();
        let others = edges.filter(|edge| fits(edge)).filter_map(|edge| {
            let both = edge.both && edge.to == sender;
            if edge.from == sender { Some(edge.to.clone()) } else { both.then(|| edge.from.clone()) }
        });
        others.collect()
    }

    /// To whom a step may hand something over, and whom it may have started. Who has ended before the step begins gets
    /// nothing any more, and is not offered.
    pub(crate) fn resolve_reach(&self, state: &State, key: Key) -> Reach {
        let (scope, spot) = state.address(key);
        let ways = &state.graph.scope(state.region(scope).scope).ways;
        let names = |spawns: bool| {
            let meant = ways.edges_from(spot).filter(|(_, way)| (way.kind == EdgeKind::Spawn) == spawns && !way.late);
            let mut names: Vec<String> = meant.map(|(_, way)| self.name_of(state, way.to).to_owned()).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        Reach { receivers: names(false), spawns: names(true), asks: self.hears_persons(state, key) }
    }

    /// Whether what a step sends to a name has the receiver started.
    pub(crate) fn is_spawn_target(&self, state: &State, key: Key, to: &str) -> bool {
        let (scope, _) = state.address(key);
        let spot = state.graph.scope(state.region(scope).scope).find(to);
        spot.is_some_and(|spot| state.is_dormant(scope, spot))
    }

    /// The agent that takes the turns of the step of this name, where it has one.
    pub(crate) fn agent_of(&self, state: &State, scope: u32, name: &str) -> Option<&str> {
        let spot = state.graph.scope(state.region(scope).scope).find(name)?;
        match &self.definitions[spot.region as usize][spot.step as usize].body {
            Body::Prompt(body) => Some(&body.agent),
            _ => None,
        }
    }

    fn name_of<'a>(&'a self, _: &State, spot: StepRef) -> &'a str {
        &self.definitions[spot.region as usize][spot.step as usize].name
    }

    /// The event to record when the step sends a handoff, or spawns another step with it, with the
    /// envelope: `seq` is the record's number, `at` its time.
    ///
    /// # Errors
    /// Says why nothing is sent, and what to do instead.
    pub(crate) fn hand_over(
        &self,
        state: &State,
        key: Key,
        (handoff, spawns): (Handoff, bool),
        (seq, at): (u64, u64),
        made: &Made,
    ) -> Result<(Event, Envelope), String> {
        let (scope, spot) = state.address(key);
        let sender = self.name_of(state, spot);
        let (number, way) = self.find_edge(state, (scope, spot), &handoff, spawns)?;
        let edge = &self.pipeline(state, scope).edges[way.edge];
        let to = self.name_of(state, way.to);
        let asked = handoff.reply_to.as_deref();
        match (spawns, state.is_dormant(scope, way.to)) {
            (true, false) => return Err(format!("task `{to}` is already running: use `send_handoff`")),
            (true, true) if state.is_asked_for(scope, to) => {
                return Err(format!("`{to}` has been requested, and waits for approval"));
            }
            (false, true) => return Err(format!("`{to}` has not started: no task has spawned it (`spawn_node`)")),
            _ => {}
        }
        let owed = state.find_unanswered(scope, spot, way.to, asked);
        // `reply_to` names the envelope that is answered, or else the step that is to receive the answer.
        let target = match asked.filter(|_| owed.is_none()) {
            Some(name) => self.resolve_reply_to(state, scope, way, name)?,
            None => None,
        };
        let asked = asked.filter(|_| target.is_none());
        let owed = if target.is_some() { state.find_unanswered(scope, spot, way.to, None) } else { owed };
        let answers = owed.clone().filter(|_| asked.is_some() || target.is_none() && !handoff.answers_by_name);
        match (&answers, asked) {
            (None, Some(id)) => {
                return Err(format!("no envelope `{}` from `{to}` waits for your answer", clean_excerpt(id)));
            }
            (None, None) if way.answers && owed.is_some() => {
                return Err(format!("you may only answer `{to}`, but a question or an update is not an answer"));
            }
            (None, None) if way.answers => {
                return Err(format!("you may only answer `{to}`, but no envelope from `{to}` waits for your answer"));
            }
            _ => {}
        }
        let response = handoff.response.unwrap_or(if answers.is_some() { Response::None } else { way.response });
        if let (Response::None, Some(target)) = (response, target) {
            return Err(format!(
                "`reply_to` names `{}` for the answer, but no answer is expected: set `response` to `optional` or `required`",
                self.name_of(state, target)
            ));
        }
        if response == Response::Required && target.is_none() && !state.leads_to(scope, way.to, way.from) {
            return Err(format!("`{to}` cannot answer: no edge leads back; leave `response` out"));
        }
        let kind = handoff.kind.unwrap_or(word_of(way));
        if response == Response::Required {
            // A receiver that gets no turn from the envelope cannot answer it.
            let reads = state.graph.region(way.to.region).nodes[way.to.step as usize].reads_inbox;
            let why = match kind {
                EnvelopeKind::Signal => "a signal gives it no turn",
                EnvelopeKind::Handoff if !reads => "it reads no inbox",
                EnvelopeKind::Handoff => "",
            };
            if !why.is_empty() {
                return Err(format!(
                    "`{to}` cannot be required to answer: {why}; set `response` to `none` or `optional`"
                ));
            }
        }
        if state.sent_along(scope, number) >= way.max {
            return Err(format!("you have sent `{to}` {} envelopes, which is the limit", way.max));
        }
        if !state.may_receive(scope, way.to) {
            return Err(format!("`{to}` has ended, and takes no further turn"));
        }
        if state.waiting_for(scope, way.to) >= INBOX {
            return Err(format!("the inbox of `{to}` is full: {INBOX} envelopes wait in it"));
        }
        self.check_handoff(&handoff, way, edge)?;
        self.check_references(state, key, &handoff)?;
        // By the number of the record that it will be in: no id comes twice.
        let id = format!("e{seq}");
        let priority = handoff.priority.unwrap_or_default();
        let target_name = target.map(|target| self.name_of(state, target).to_owned());
        let reply_to = answers.as_deref().map(str::to_owned).or(target_name);
        let given = || state.pack_of(key, state.step(key).attempt).map(ArtifactMeta::reference);
        let envelope = Envelope {
            kind,
            id: id.clone(),
            from_node_id: sender.to_owned(),
            to_node_id: to.to_owned(),
            created_at: format_timestamp(at),
            payload: Payload {
                message: handoff.message,
                structured: handoff.structured,
                artifacts: handoff.artifacts,
                status: handoff.status,
                response: (response != Response::None || reply_to.is_some())
                    .then_some(Reply { expectation: response, reply_to }),
            },
            context_ref: handoff.context_ref.or_else(given),
            meta: Some(Meta { priority, message_kind: handoff.message_kind }),
        };
        let said = digest_envelope(&envelope)?;
        let text = serde_json::to_string(&envelope).map_err(|error| error.to_string())?;
        if text.len() > ENVELOPE_LIMIT {
            return Err(format!(
                "the envelope has {} bytes, but at most {ENVELOPE_LIMIT} are allowed: write long content into a file, and \
                 name it in `artifacts`",
                text.len()
            ));
        }
        let content = made.content(text);
        let letter = InboxMessage {
            id: id.into(),
            kind,
            priority,
            response,
            answers,
            answered_to: target.filter(|&target| target != spot).map(|target| self.name_of(state, target).into()),
            person: false,
            run: false,
            interrupts: false,
            said: Some(said),
            content,
        };
        let activation = state.frame(scope);
        let event = Event::Sent {
            from: Some(state.id(key)),
            to: to.into(),
            instance: activation.instance,
            within: activation.path.clone(),
            way: Some(number),
            letter,
        };
        Ok((event, envelope))
    }

    /// The step of this name, to which the receiver of an edge should send its answer; none if there is no such step.
    fn resolve_reply_to(
        &self,
        state: &State,
        scope: u32,
        way: &HandoffEdge,
        name: &str,
    ) -> Result<Option<StepRef>, String> {
        let Some(target) = state.graph.scope(state.region(scope).scope).find(name) else { return Ok(None) };
        match state.leads_to(scope, way.to, target) {
            true => Ok(Some(target)),
            false => {
                let by = self.name_of(state, way.to);
                Err(format!("`{by}` cannot answer to `{name}`: no edge leads there; leave `reply_to` out"))
            }
        }
    }

    /// The edge from a step to the receiver that it names.
    fn find_edge<'s>(
        &self,
        state: &'s State,
        (scope, spot): (u32, StepRef),
        handoff: &Handoff,
        spawns: bool,
    ) -> Result<(usize, &'s HandoffEdge), String> {
        let sender = self.name_of(state, spot);
        if handoff.to == sender {
            return Err("you cannot send a handoff to yourself".to_owned());
        }
        let graph = state.graph.scope(state.region(scope).scope);
        let (ways, to) = (&graph.ways, graph.find(&handoff.to));
        let leading = || ways.edges_from(spot).filter(|(_, way)| (way.kind == EdgeKind::Spawn) == spawns);
        let mut fitting: Vec<(usize, &HandoffEdge)> = leading().filter(|(_, way)| Some(way.to) == to).collect();
        if let Some(kind) = handoff.kind {
            let first = fitting.first().map(|(_, way)| word_of(way));
            fitting.retain(|(_, way)| word_of(way) == kind);
            if let (true, Some(only)) = (fitting.is_empty(), first) {
                let only = serde_json::to_string(&only).unwrap_or_default();
                return Err(format!("the edge to `{}` accepts only kind {only}", handoff.to));
            }
        }
        // An answer takes the edge that only answers may take if there is no other.
        fitting.sort_by_key(|(_, way)| way.answers);
        fitting.first().copied().ok_or_else(|| {
            let mut names: Vec<String> =
                leading().map(|(_, way)| format!("`{}`", self.name_of(state, way.to))).collect();
            names.sort();
            names.dedup();
            let to = clean_excerpt(&handoff.to);
            if spawns {
                return match names.is_empty() {
                    true => format!("no edge lets `{sender}` spawn `{to}`: it has no edges with `kind=spawn`"),
                    false => format!("no edge lets `{sender}` spawn `{to}`: you can spawn {}", names.join(", ")),
                };
            }
            match names.is_empty() {
                true => format!("no edge leads from `{sender}` to `{to}`: `{sender}` has no outgoing edges"),
                false => format!("no edge leads from `{sender}` to `{to}`: you can send to {}", names.join(", ")),
            }
        })
    }

    /// Checks that the handoff fits the type and the limits of its edge.
    fn check_handoff(&self, handoff: &Handoff, way: &HandoffEdge, edge: &Edge) -> Result<(), String> {
        let chars = handoff.message.chars().count();
        match chars {
            _ if handoff.message.trim().is_empty() => {
                return Err("`message` is empty: describe the handoff in a sentence".to_owned());
            }
            _ if chars > MESSAGE_LIMIT => {
                return Err(format!(
                    "`message` has {chars} characters, but at most {MESSAGE_LIMIT} are allowed: write long content into \
                     a file, and name it in `artifacts`"
                ));
            }
            _ => {}
        }
        match (&handoff.structured, edge.carries.as_ref().filter(|_| !way.answers)) {
            (None, Some(_)) => return Err("this edge carries a type: give its fields in `structured`".to_owned()),
            (Some(value), _) if !value.is_object() => return Err("`structured` is not a JSON object".to_owned()),
            (Some(value), Some(schema)) => {
                let shape = self.shapes.validator_for(schema, self.plan)?;
                shape.parse_answer(&value.to_string()).map_err(|problems| {
                    format!("`structured` does not fit the type that this edge carries: {}", problems.join("; "))
                })?;
            }
            (None | Some(_), None) => {}
        }
        Ok(())
    }
}

/// The digest of an envelope's content, without its id, its time and the envelope that it answers.
fn digest_envelope(envelope: &Envelope) -> Result<std::sync::Arc<str>, String> {
    let Payload { message, structured, artifacts, status, response: _ } = &envelope.payload;
    let words = serde_json::to_string(&(&envelope.to_node_id, envelope.kind, message, structured, artifacts, status));
    let digest = digest_bytes(words.map_err(|error| error.to_string())?.as_bytes());
    Ok(digest[..16].into())
}

fn word_of(way: &HandoffEdge) -> EnvelopeKind {
    match way.kind {
        swarmc_plan::EdgeKind::Handoff | swarmc_plan::EdgeKind::Spawn => EnvelopeKind::Handoff,
        swarmc_plan::EdgeKind::Signal => EnvelopeKind::Signal,
    }
}

/// A text of an agent, as a message may show it.
pub(super) fn clean_excerpt(text: &str) -> String {
    text.chars().filter(|found| !found.is_control()).take(SHOWN).collect()
}

/// A time as envelopes say it.
pub(super) fn format_timestamp(at: u64) -> String {
    let at = i64::try_from(at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.unwrap_or_default().to_string()
}
