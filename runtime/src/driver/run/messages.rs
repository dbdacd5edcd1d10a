//! Messages of people to the agents of a run: an agent reads one in its next turn, or at once.
//!
//! In: a task's name and a text. Out: a message in that task's inbox, durable before its author receives the reply,
//! which says when the agent reads it. The driver interrupts a running turn only if its agent can go on from there;
//! every other agent reads the message at the next point at which nothing is lost.

use std::sync::Arc;

use swarmc_plan::Priority;

use super::driver::Driver;
use crate::core::graph::{Key, StepRef};
use crate::io::input::{Reply, ReplyTo};
use crate::types::event::{Content, Event, INPUTS, InboxMessage, StepId};
use crate::types::handoff::{ENVELOPE_LIMIT, EnvelopeKind, INBOX, MESSAGE_LIMIT};
use crate::types::user_request::{CONTEXT, UserMessage};

/// The tasks that a message names at most.
pub(super) const LISTED: usize = 20;

/// The texts that people append to one context pack at most.
const APPENDED: usize = 20;

/// An inbox that a person may mean.
struct Addressee {
    /// The activation of the pipeline.
    scope: u32,
    spot: StepRef,
    name: Arc<str>,
    /// The step that reads it, where one is under way.
    reader: Option<Key>,
}

impl Driver<'_> {
    /// Takes a person's message to an agent, and replies with the result.
    pub(super) fn take_message(&mut self, message: &UserMessage, reply: Reply) {
        match self.deliver_message(message) {
            Ok(words) => self.requests.replies.confirm(reply, words),
            // The author may have stopped waiting.
            Err(problem) => drop(reply.send(Err(problem))),
        }
    }

    fn deliver_message(&mut self, message: &UserMessage) -> Result<String, String> {
        let text = message.text.trim();
        if self.state.is_stopping() || self.state.final_status().is_some() {
            return Err("the run is ending: resume it, and send the message again".to_owned());
        }
        self.world.admit_people()?;
        if text.is_empty() {
            return Err("the message is empty".to_owned());
        }
        if text.len() > ENVELOPE_LIMIT {
            return Err(format!("the message has {} bytes, but at most {ENVELOPE_LIMIT} are allowed", text.len()));
        }
        if let Some(pack) = message.to.strip_prefix(CONTEXT) {
            return self.append_to_pack(pack, text);
        }
        if let Some((step, attempt, member)) = self.team_meant(&message.to)? {
            return self.write_to_member((&step, attempt), &member, text, message.interrupt);
        }
        let to = self.resolve_addressee(&message.to)?;
        if self.state.waiting_for(to.scope, to.spot) >= INBOX {
            return Err(format!("the inbox of `{}` is full: {INBOX} messages wait in it", to.name));
        }
        let under_way = to.reader.filter(|&key| self.state.is_running(key));
        let content = self.outputs.keep_text(text.to_owned()).map_err(|failure| failure.to_string())?;
        // Another agent mends what failed: there is nothing to interrupt of this one.
        let interrupt = message.interrupt && !under_way.is_some_and(|key| self.state.is_being_mended(key));
        self.send_message(&to, content, interrupt);
        let Some(key) = under_way else { return Ok(format!("the next turn of `{}` reads it", to.name)) };
        if !interrupt {
            return Ok(format!("`{}` is working: its next turn reads it", to.name));
        }
        let attempt = (self.state.id(key), self.state.step(key).attempt);
        let interrupted = self.attempts.interrupt(&attempt);
        Ok(match interrupted {
            true => format!("`{}` is interrupted, and goes on with it", to.name),
            false => format!("`{}` reads it as soon as it can be interrupted, or else in its next turn", to.name),
        })
    }

    /// A turn that goes on reads what people and the run have written meanwhile.
    pub(super) fn relay_messages(&mut self, step: &StepId, attempt: u32, hearer: ReplyTo) {
        let key = self.state.find_step(step).filter(|&key| self.state.takes_turn(key, attempt));
        let written =
            key.map(|key| self.state.inbox(key).iter().filter(|letter| letter.author().is_some()).take(INPUTS));
        let written: Vec<InboxMessage> = written.into_iter().flatten().cloned().collect();
        let texts: Result<Vec<String>, String> =
            written.iter().map(|letter| self.evaluator.texts.load_text(&letter.content)).collect();
        match texts {
            Ok(texts) => {
                if !written.is_empty() {
                    let inputs = written.into_iter().map(|letter| letter.id).collect();
                    self.record(Event::InputsTaken { step: step.clone(), inputs });
                }
                self.requests.replies.receipt(hearer, texts.into());
            }
            // The turn may have stopped waiting.
            Err(problem) => drop(hearer.send(Err(problem))),
        }
    }

    fn send_message(&mut self, to: &Addressee, content: Content, interrupts: bool) {
        let activation = self.state.frame(to.scope);
        let (instance, within) = (activation.instance, activation.path.clone());
        let letter = make_person_message(format!("e{}", self.records.seq + 1).into(), content, interrupts);
        self.record(Event::Sent { from: None, to: Arc::clone(&to.name), instance, within, way: None, letter });
    }

    /// Appends a text to a context pack: every attempt that begins from then on and reads the pack reads it.
    pub(super) fn append_to_pack(&mut self, pack: &str, text: &str) -> Result<String, String> {
        let packs = self.evaluator.plan.packs.iter();
        let Some(declared) = packs.clone().find(|declared| declared.name == pack) else {
            let names: Vec<String> = packs.take(LISTED).map(|pack| format!("`{CONTEXT}{}`", pack.name)).collect();
            return Err(match names.is_empty() {
                true => "the workflow has no context packs".to_owned(),
                false => format!("the workflow has no such context pack: it has {}", names.join(", ")),
            });
        };
        let name: Arc<str> = declared.name.as_str().into();
        let appended = self.state.appended.get(&name).map_or(0, Vec::len);
        if appended >= APPENDED {
            return Err(format!("`{pack}` has {APPENDED} appended texts, which is the limit"));
        }
        if text.chars().count() > MESSAGE_LIMIT {
            return Err(format!(
                "a text for a context pack may have {MESSAGE_LIMIT} characters: refer to a file for more"
            ));
        }
        let text = self.outputs.keep_text(text.to_owned()).map_err(|failure| failure.to_string())?;
        self.record(Event::PackAppended { pack: name, text });
        Ok(format!("each attempt that begins from now on and reads `{pack}` reads it"))
    }

    /// The inbox that a person means.
    fn resolve_addressee(&self, word: &str) -> Result<Addressee, String> {
        let mut meant: Vec<Addressee> = Vec::new();
        for scope in self.state.activations() {
            let found = self.state.graph().scope(self.state.region(scope).scope);
            for name in found.names() {
                let Some(spot) = found.find(name) else { continue };
                let reader = self.state.receiver(scope, spot);
                let is_called = |id: StepId| id.label() == word || id.to_string() == word;
                if **name == *word || reader.is_some_and(|key| is_called(self.state.id(key))) {
                    meant.push(Addressee { scope, spot, name: Arc::clone(name), reader });
                }
            }
        }
        let mut able = Vec::new();
        let mut problem = None;
        // Several activations may have a task of this name, and often only one of them still reads.
        for addressee in meant {
            match self.check_addressee(&addressee) {
                Ok(()) => able.push(addressee),
                Err(why) => problem = Some(why),
            }
        }
        match (able.len(), problem) {
            (1, _) => Ok(able.remove(0)),
            (0, Some(problem)) => Err(problem),
            (0, None) => Err(self.describe_unknown(word)),
            _ => {
                let ids = able.iter().filter_map(|to| to.reader).map(|key| format!("`{}`", self.state.id(key)));
                let ids: Vec<String> = ids.take(LISTED).collect();
                Err(format!("several tasks are called `{word}`: name one of {}", ids.join(", ")))
            }
        }
    }

    /// Whether a turn will read what is written there.
    fn check_addressee(&self, to: &Addressee) -> Result<(), String> {
        let node = &self.state.graph().region(to.spot.region).nodes[to.spot.step as usize];
        if node.swarm.is_some() {
            let words = format!("`{}` is a swarm: write to one of its members", to.name);
            return Err(match self.members().as_slice() {
                [] => format!("{words}, but none of them is working"),
                members => format!("{words}: {}", members.join(", ")),
            });
        }
        if node.kind.is_container() {
            return Err(format!("`{}` is not a single agent: it contains other steps", to.name));
        }
        if !node.reads_inbox {
            return Err(format!("`{}` reads no messages: it has no agent", to.name));
        }
        if self.state.is_dormant(to.scope, to.spot) {
            return Err(format!("`{}` has not started: no task has spawned it", to.name));
        }
        if !self.state.may_receive(to.scope, to.spot) {
            return Err(format!("`{}` has ended, and takes no further turn", to.name));
        }
        Ok(())
    }

    fn describe_unknown(&self, word: &str) -> String {
        let word: String = word.chars().filter(|found| !found.is_control()).take(64).collect();
        let mut names: Vec<String> = Vec::new();
        for scope in self.state.activations() {
            let found = self.state.graph().scope(self.state.region(scope).scope);
            let spots = found.names().filter_map(|name| Some((name, found.find(name)?)));
            let heard = spots.map(|(name, spot)| Addressee { scope, spot, name: Arc::clone(name), reader: None });
            names.extend(heard.filter(|to| self.check_addressee(to).is_ok()).map(|to| format!("`{}`", to.name)));
        }
        names.sort();
        names.dedup();
        names.extend(self.members());
        names.truncate(LISTED);
        match names.is_empty() {
            true => format!("there is no `{word}`, and no other task reads messages any more"),
            false => format!("there is no `{word}`: you can write to {}", names.join(", ")),
        }
    }
}

/// What a person wrote, as it lies in an inbox.
pub(super) fn make_person_message(id: Arc<str>, content: Content, interrupts: bool) -> InboxMessage {
    InboxMessage {
        said: None,
        id,
        kind: EnvelopeKind::Handoff,
        priority: Priority::High,
        response: swarmc_plan::Response::None,
        answers: None,
        answered_to: None,
        person: true,
        run: false,
        interrupts,
        content,
    }
}
