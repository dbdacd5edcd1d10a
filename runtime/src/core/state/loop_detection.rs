//! Steps that go in circles: turns that put out, send and change the same, or attempts that fail the same check, so many
//! times in a row (`stall N`), also from round to round.
//!
//! In: how attempts end, what they sent and changed. Out: whether a step is held up before it goes on, and the evidence
//! for the person who decides. Invariant: a step is held up only where it would go on, and a turn that puts out,
//! sends or changes something else begins to count anew.

use serde::{Deserialize, Serialize};

use super::State;
use super::frame::Phase;
use crate::core::graph::Key;
use crate::types::approval::{Choice, RequestKind, Same, Verdict};
use crate::types::artifact::{ArtifactKind, ArtifactMeta};
use crate::types::digest::digest_bytes;
use crate::types::event::{Content, Failure, InboxMessage, Outcome};

/// What the last turns and attempts of a step have in common.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct RepeatCounter {
    /// What the open attempt has changed, as a diff.
    changed: Option<Content>,
    /// What the last turn put out and sent, by digest, and what it changed; and how many in a row did.
    turn: Option<(String, Option<Content>)>,
    turns: u32,
    output: Option<Content>,
    /// How many turns in a row changed the same, whatever they put out.
    diffs: u32,
    /// The check that the last attempt failed, and how many in a row did.
    failed: Option<Failed>,
    fails: u32,
    /// A person said that the run does not ask about it again.
    silent: bool,
}

/// How an attempt failed a check.
#[derive(Debug, Deserialize, Serialize)]
struct Failed {
    check: Failure,
    told: String,
    changed: Option<Content>,
}

impl RepeatCounter {
    fn turn_ended(&mut self, said: String, output: Option<Content>) {
        let changed = self.changed.take();
        let same_diff = changed.is_some() && self.turn.as_ref().is_some_and(|(_, before)| *before == changed);
        // A turn that changed nothing has no diff in common with another one.
        self.diffs = if same_diff { self.diffs + 1 } else { u32::from(changed.is_some()) };
        let turn = Some((said, changed));
        self.turns = if self.turn == turn { self.turns + 1 } else { 1 };
        self.turn = turn;
        self.output = output;
        (self.failed, self.fails) = (None, 0);
    }

    fn attempt_failed(&mut self, check: &Failure, told: &str) {
        let changed = self.changed.take();
        // Where something else was changed and the words are other ones, it is on its way.
        let same = |before: &Failed| before.check == *check && (before.told == told || before.changed == changed);
        self.fails = if self.failed.as_ref().is_some_and(same) { self.fails + 1 } else { 1 };
        self.failed = Some(Failed { check: check.clone(), told: told.to_owned(), changed });
    }
}

impl State {
    pub(super) fn note_change(&mut self, key: Key, kept: &ArtifactMeta) {
        if kept.kind == ArtifactKind::Diff && self.node(key).stall > 0 {
            self.step_mut(key).streak.get_or_insert_default().changed = Some(kept.content.clone());
        }
    }

    /// An attempt of a step has ended, which had sent these.
    pub(super) fn note_attempt(&mut self, key: Key, outcome: &Outcome, sent: &[InboxMessage]) {
        if self.node(key).stall == 0 {
            return;
        }
        let streak = self.step_mut(key).streak.get_or_insert_default();
        match &outcome.failure {
            None => {
                // As JSON, an output that is missing differs from one that is empty.
                let mut said = serde_json::to_string(&outcome.output).unwrap_or_default();
                for letter in sent {
                    // One of which that is not known is like no other.
                    said.push_str(letter.said.as_ref().unwrap_or(&letter.id));
                }
                streak.turn_ended(digest_bytes(said.as_bytes()), outcome.output.clone());
            }
            Some(check @ Failure::Check { .. }) => streak.attempt_failed(check, &outcome.stderr),
            // A time limit or a crash says nothing of what the agent does.
            Some(_) => (streak.changed, streak.failed, streak.fails) = (None, None, 0),
        }
    }

    /// What the turns of a step have in common, where they go in circles.
    pub(super) fn find_repetition(&self, key: Key) -> Option<Same> {
        let most = self.node(key).stall;
        let streak = self.step(key).streak.as_deref().filter(|streak| most > 0 && !streak.silent)?;
        match streak {
            RepeatCounter { fails, .. } if *fails >= most => Some(Same::Check),
            RepeatCounter { turns, .. } if *turns >= most => Some(Same::Output),
            RepeatCounter { diffs, .. } if *diffs >= most => Some(Same::Diff),
            _ => None,
        }
    }

    /// The question to a person about a step that is held up.
    pub(crate) fn go_on_wish(&self, key: Key) -> Option<RequestKind> {
        let same = self.find_repetition(key).filter(|_| self.step(key).phase == Phase::Stalled)?;
        let streak = self.step(key).streak.as_deref()?;
        let (times, evidence) = match same {
            Same::Output => (streak.turns, streak.output.clone()),
            Same::Diff => (streak.diffs, streak.turn.as_ref().and_then(|(_, changed)| changed.clone())),
            Same::Check => {
                let failed = streak.failed.as_ref()?;
                (streak.fails, Some(Content::Text(format!("{}\n{}", failed.check, failed.told))))
            }
        };
        Some(RequestKind::GoOn { same, times, evidence: evidence.unwrap_or(Content::Text(String::new())) })
    }

    /// A person or a policy has decided whether a step that was held up goes on.
    pub(super) fn went_on(&mut self, key: Key, wants: &RequestKind, verdict: &Verdict, at: u64) {
        if self.step(key).phase != Phase::Stalled {
            return;
        }
        if !verdict.is_allowed() {
            let mut detail = self.step_mut(key).detail.take().unwrap_or_default();
            detail.error = Some(wants.describe_denial(verdict).into());
            self.step_mut(key).detail = Some(detail);
            return self.fail_step(key);
        }
        self.go_on(key, verdict.choice == Choice::Always, at);
    }

    /// A person has written to a step that is held up: it goes on with that, without a decision.
    pub(super) fn circle_broken(&mut self, key: Key) {
        self.approvals_over(key);
        self.go_on(key, false, self.at);
    }

    fn go_on(&mut self, key: Key, silent: bool, at: u64) {
        let failed = self.step(key).detail.as_deref().is_some_and(|detail| detail.error.is_some());
        self.step_mut(key).streak = Some(Box::new(RepeatCounter { silent, ..RepeatCounter::default() }));
        match failed {
            // It was held up before its first attempt of the round, for what earlier rounds had in common.
            _ if !self.step(key).started => self.make_ready(key),
            true => self.try_again(key, at),
            false => self.turn_over(key),
        }
    }
}
