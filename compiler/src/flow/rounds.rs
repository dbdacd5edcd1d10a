//! Rounds of a loop or of the pipeline: whether the round before has left a value.

use swarmc_plan::RoundFailure;

use super::diagram::{ALWAYS, Formula, NEVER, Sized};
use super::values::{Class, Key, Of};
use super::{Answer, Flow};
use crate::model::Body;
use crate::template::Root;

/// The rounds that are looked at one by one.
const MOST_ROUNDS: u32 = 8;

impl Flow<'_, '_> {
    /// Whether the step never starts in the first round. Of a read in its `when`, that `when` says nothing.
    pub(crate) fn starts_later(&mut self, reader: usize, in_when: bool) -> bool {
        self.diagram.begin_question();
        let starts = self.start_formula(reader, in_when);
        let first = self.round_formula(reader, 1);
        starts.and_then(|starts| self.diagram.and(starts, first)) == Ok(NEVER)
    }

    /// Whether each round before one in which `reader` starts leaves a value of the step: a round in which nothing failed
    /// that nothing handles, and no `stop` ran.
    pub(crate) fn leaves_round_before(&mut self, reader: usize, in_when: bool, target: usize) -> Answer {
        let pipeline = self.pipeline;
        let holder = pipeline.steps[reader].within;
        // Kept, as many reads ask about the same rounds.
        let followed = match self.rounds.get(&holder) {
            Some(&known) => known,
            None => {
                let followed = self.repeat_formula(holder);
                self.rounds.insert(holder, followed);
                followed
            }
        };
        self.diagram.begin_question();
        let without = followed.and_then(|followed| {
            let there = self.value_formula(None, target, Root::Output)?;
            let reached = self.reached_in_rounds(holder, target)?;
            let there = self.diagram.and(there, reached)?;
            self.diagram.and_not(followed, there)
        });
        let rounds = match holder.map(|holder| &pipeline.steps[holder].body) {
            Some(Body::Loop { body, .. }) => body.max.as_ref().map(|max| max.value),
            _ => Some(pipeline.ast.iterations),
        };
        let all = self.prove_never(without);
        let (Ok(without), Some(last), false) =
            (without, rounds.filter(|last| *last <= MOST_ROUNDS), all == Answer::Yes)
        else {
            return all;
        };
        let starts = self.start_formula(reader, in_when);
        for round in 1..last {
            self.diagram.begin_question();
            let next = self.round_formula(reader, round + 1);
            if starts.and_then(|starts| self.diagram.and(starts, next)) == Ok(NEVER) {
                continue;
            }
            let this = self.round_formula(reader, round);
            let without = self.diagram.and(without, this);
            match self.prove_never(without) {
                Answer::Yes => {}
                answer => return answer,
            }
        }
        Answer::Yes
    }

    /// Holds where the step starts, as far as its needs and its `when` tell.
    fn start_formula(&mut self, reader: usize, in_when: bool) -> Sized {
        if in_when { self.needs_hold(reader) } else { self.run_formula(reader) }
    }

    /// Holds where the step may be in this round.
    fn round_formula(&mut self, reader: usize, round: u32) -> Formula {
        let holder = self.pipeline.steps[reader].within;
        let key = Key { root: Root::Iteration, of: Of::Round(holder, None), fields: Vec::new() };
        let value = self.intern_value(Some(reader), key);
        let number = f64::from(round);
        self.diagram.literal(value.variable, |class| match value.classes[class] {
            Class::Number(other) => other == number,
            Class::Between(below, above) => {
                below.is_none_or(|below| below < number) && above.is_none_or(|above| number < above)
            }
            // Rounds count from 1.
            Class::Other(truth) => truth,
            Class::Bool(_) | Class::None | Class::Text(_) => true,
        })
    }

    /// Holds where another round follows.
    fn repeat_formula(&mut self, holder: Option<usize>) -> Sized {
        self.diagram.begin_question();
        let pipeline = self.pipeline;
        let stops = (0..pipeline.steps.len()).filter(|&step| matches!(pipeline.steps[step].body, Body::Stop { .. }));
        let followed = match holder.map(|holder| &pipeline.steps[holder].body) {
            Some(Body::Loop { until_reads, .. }) => self.handled_formula(holder, until_reads),
            _ if pipeline.ast.on_failure == RoundFailure::Continue => Ok(ALWAYS),
            _ => self.handled_formula(None, &pipeline.until_reads),
        };
        let followed = followed.and_then(|followed| match holder {
            Some(holder) => {
                let runs = self.run_formula(holder)?;
                self.diagram.and(followed, runs)
            }
            None => Ok(followed),
        });
        followed.and_then(|followed| {
            stops.into_iter().try_fold(followed, |followed, stop| {
                self.diagram.begin_question();
                let runs = self.run_formula(stop)?;
                self.diagram.and_not(followed, runs)
            })
        })
    }
}
