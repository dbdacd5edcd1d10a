//! When the turns of swarms were asked and answered, restored from drafts and a journal.
//!
//! In: the lines that were written while a run went on, and its facts in order. Out: the lines of its recording.
//! Invariant: a line is where its answer came, and of a turn that was asked twice only the last counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::line::{Line, Place};
use super::member::Member;
use crate::types::approval::{Request, Verdict};
use crate::types::event::AnsweredBy;
use crate::types::swarm_event::{Answer, End, SwarmEvent, TurnId};

/// The swarms of a run, while its recording is put together.
#[derive(Default)]
pub(super) struct Chronicle {
    /// What was asked last of each turn and call, by attempt.
    drafts: BTreeMap<Place, BTreeMap<(u8, Member), Line>>,
    told: BTreeMap<Place, Told>,
}

/// The content of the journal on a swarm so far.
#[derive(Default)]
struct Told {
    answers: u32,
    /// How many answers there were when each turn and call began, and how often it did.
    begun: BTreeMap<(u8, Member), (u32, u32)>,
    failed: BTreeSet<(u8, Member)>,
    /// How often each agent asked for an approval.
    asked: BTreeMap<Arc<str>, u32>,
    /// The requests without an answer so far, by their numbers.
    open: BTreeMap<u32, Line>,
}

const TOOLS: u8 = 0;
const TURN: u8 = 1;
const CALL: u8 = 2;

impl Chronicle {
    /// Takes a line that was written while the run went on: the last of a turn or call counts.
    pub(super) fn draft(&mut self, line: Line) {
        let (place, key) = match &line {
            Line::Tools { place, turn, .. } => (place, (TOOLS, turn.clone())),
            Line::Member { place, turn, .. } => (place, (TURN, turn.clone())),
            Line::Call { place, turn, .. } => (place, (CALL, turn.clone())),
            _ => return,
        };
        self.drafts.entry(place.clone()).or_default().insert(key, line);
    }

    /// The lines that a fact adds.
    pub(super) fn happened(&mut self, place: Place, fact: &SwarmEvent) -> Vec<Line> {
        let told = self.told.entry(place.clone()).or_default();
        let drafts = self.drafts.entry(place.clone()).or_default();
        match fact {
            SwarmEvent::TurnStarted { turn, .. } => told.begin(TURN, turn),
            SwarmEvent::ToolStarted { turn, .. } => told.begin(CALL, turn),
            SwarmEvent::TurnEnded { turn, answer, .. } => {
                let member = Member::of(turn);
                let listed = drafts.remove(&(TOOLS, member.clone()));
                let turn = drafts.remove(&(TURN, member.clone()));
                let turn = turn.map(|line| told.placed(line, &member, listed.is_some()));
                // Without a question its tools could not be listed, or a budget refused it.
                let failed = matches!(&listed, Some(Line::Tools { answer, .. }) if answer.fault.is_some());
                told.answers += u32::from(failed || turn.is_some());
                if matches!(answer, Answer::Failed { .. }) {
                    told.failed.insert((TURN, member));
                }
                return listed.into_iter().chain(turn).collect();
            }
            SwarmEvent::ToolEnded { turn, fault, .. } => {
                let member = Member::of(turn);
                let call = drafts.remove(&(CALL, member.clone()));
                let call = call.map(|line| told.placed(line, &member, false));
                told.answers += u32::from(call.is_some());
                if fault.is_some() {
                    told.failed.insert((CALL, member));
                }
                return call.into_iter().collect();
            }
            SwarmEvent::AgentCompleted { agent, how: End::TimedOut, .. } => {
                told.answers += 1;
                return vec![Line::Late { place, member: Arc::clone(agent) }];
            }
            _ => {}
        }
        Vec::new()
    }

    /// An agent asks for an approval.
    pub(super) fn wants(&mut self, place: Place, request: &Request) {
        // Tasks ask within a turn, which is one answer.
        let Some(told) = self.told.get_mut(&place) else { return };
        let asked = told.asked.entry(Arc::clone(&request.agent)).or_default();
        *asked += 1;
        let (member, asked, wants) = (Arc::clone(&request.agent), *asked, request.wants.describe());
        let by = AnsweredBy::Person;
        let line = Line::Approval { place, member, asked, wants, by, choice: None, because: None, arguments: None };
        told.open.insert(request.id, line);
    }

    /// A person or a policy decides: returns the line where a decision was awaited. What the policy decides at once, it
    /// decides in a replay as well.
    pub(super) fn agreed(&mut self, place: &Place, verdict: &Verdict) -> Option<Line> {
        let told = self.told.get_mut(place)?;
        let mut line = told.open.remove(&verdict.id).filter(|_| verdict.was_awaited())?;
        if let Line::Approval { by, choice, .. } = &mut line {
            (*by, *choice) = (verdict.by, Some(verdict.choice));
        }
        told.answers += 1;
        Some(line)
    }

    /// An attempt has ended: what was never answered. None where it is no swarm.
    pub(super) fn ended(&mut self, place: &Place) -> Option<Vec<Line>> {
        let told = self.told.remove(place)?;
        let drafts = self.drafts.remove(place).unwrap_or_default();
        let listed: BTreeSet<Member> =
            drafts.keys().filter(|(kind, _)| *kind == TOOLS).map(|(_, turn)| turn.clone()).collect();
        let rest = drafts.into_iter().filter_map(|((_, member), line)| {
            let mut line = told.placed(line, &member, listed.contains(&member));
            match &mut line {
                Line::Tools { answer, .. } if answer.fault.is_some() => return None,
                // It came too late to count.
                Line::Member { answer, .. } => *answer = None,
                Line::Call { answer, .. } => *answer = None,
                _ => {}
            }
            Some(line)
        });
        let open = told.open.values().cloned();
        Some(rest.chain(open).collect())
    }
}

impl Told {
    fn begin(&mut self, kind: u8, turn: &TurnId) {
        let begun = self.begun.entry((kind, Member::of(turn))).or_default();
        *begun = (self.answers, begun.1 + 1);
    }

    /// The line with when it began, where that was not at once: after a pause, when its tools were known, or when a
    /// killed run went on.
    fn placed(&self, mut line: Line, turn: &Member, listed: bool) -> Line {
        let of = |kind, turn: Member| self.begun.get(&(kind, turn)).copied().unwrap_or_default();
        let before = Member { attempt: turn.attempt.saturating_sub(1), ..turn.clone() };
        match &mut line {
            Line::Call { after, .. } => {
                *after = self.failed.contains(&(CALL, before)).then(|| of(CALL, turn.clone()).0);
            }
            Line::Member { after, .. } => {
                let (answers, times) = of(TURN, turn.clone());
                let waited = listed || times > 1 || self.failed.contains(&(TURN, before));
                *after = waited.then_some(answers);
            }
            _ => {}
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Asked;
    use super::super::member::Said;
    use super::*;
    use crate::types::event::{Content, StepId};
    use crate::types::swarm_event::{Action, Fault, Purpose};

    fn place() -> Place {
        Place::of(&StepId { name: "team".into(), iteration: 1, instance: 1, within: None }, 1)
    }

    fn turn(agent: &str, iteration: u32, attempt: u32) -> TurnId {
        TurnId { agent: agent.into(), purpose: Purpose::Act, iteration, attempt }
    }

    fn asked(turn: &TurnId, answer: Option<Said>) -> Line {
        let asked = Asked::default();
        Line::Member { place: place(), turn: Member::of(turn), after: None, asked, answer }
    }

    fn started(turn: &TurnId) -> SwarmEvent {
        SwarmEvent::TurnStarted { turn: turn.clone(), reserved: None }
    }

    fn ended(turn: &TurnId, fails: bool) -> SwarmEvent {
        let failed = Answer::Failed { message: "busy".to_owned(), fault: Fault::Transient { after_ms: 0 } };
        let answer = if fails { failed } else { Answer::Acts(Action::Idle) };
        SwarmEvent::TurnEnded { turn: turn.clone(), answer, usage: None, cost: None, model: None, session: None }
    }

    fn said(line: &Line) -> String {
        match line {
            Line::Member { turn, after, answer, .. } => {
                let mark = if answer.is_some() { "" } else { "?" };
                format!("{} {}.{}{mark} {after:?}", turn.member, turn.turn, turn.attempt)
            }
            Line::Late { member, .. } => format!("{member} is late"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_turn_says_when_it_began_where_that_was_not_at_once() {
        let mut swarms = Chronicle::default();
        let (one, again, two, next, open) =
            (turn("one", 0, 1), turn("one", 0, 2), turn("two", 0, 1), turn("two", 1, 1), turn("one", 1, 1));
        for turn in [&one, &again, &two, &next, &open] {
            swarms.draft(asked(turn, None));
            swarms.draft(asked(turn, Some(Said::default())));
        }
        // A killed run asks again: what was asked last counts, and begins later.
        swarms.draft(asked(&next, Some(Said::default())));
        swarms.draft(asked(&open, None));
        let facts = [
            SwarmEvent::WorkflowStarted { run: String::new(), goal: Content::Text(String::new()) },
            started(&one),
            started(&two),
            ended(&one, true),
            ended(&two, false),
            started(&next),
            started(&again),
            ended(&again, false),
            started(&open),
            started(&next),
            ended(&next, false),
            SwarmEvent::AgentCompleted { agent: "two".into(), how: End::TimedOut, response: None, error: None },
            // No model was asked: a budget refused it.
            ended(&turn("two", 2, 1), true),
        ];
        let lines: Vec<String> =
            facts.iter().flat_map(|fact| swarms.happened(place(), fact)).map(|line| said(&line)).collect();
        assert_eq!(lines, ["one 1.1 None", "two 1.1 None", "one 1.2 Some(2)", "two 2.1 Some(3)", "two is late"]);
        let rest: Vec<String> = swarms.ended(&place()).unwrap().iter().map(said).collect();
        assert_eq!(rest, ["one 2.1? None"]);
        assert_eq!(swarms.ended(&place()), None);
    }
}
