//! Further turns of an attempt, in which its agent mends its answer: one that is not of the declared type, or in which
//! operations were refused.

use super::super::attempt::{Ended, Place};
use super::super::{Session, Transport};
use super::{Conversation, Turn};
use crate::types::answer::{
    OutputValidator, render_refusal_message, render_refusal_prompt, render_repair_message, render_repair_prompt,
};
use crate::types::error::RunError;
use crate::types::event::Failure;
use crate::types::usage::sum;

impl Conversation<'_> {
    /// Notes for later runners whether the attempt goes on in a conversation that a crash cut off.
    pub(super) fn mark_resumed(&self, is_resumed: bool) -> Result<(), RunError> {
        let Some(survival) = &self.job.survival else { return Ok(()) };
        survival.mark_resumed(is_resumed).map_err(RunError::io("write into", &survival.folder))
    }

    /// Holds the answer against its type, and has it mended while there are turns left.
    pub(super) async fn repair_answer(
        &mut self,
        shape: &OutputValidator,
        repair: u32,
        mut turn: Turn,
        place: &mut Place<'_, '_>,
    ) -> Result<Turn, RunError> {
        let mut repairs = 0;
        let mut usage = turn.ended.outcome.usage;
        loop {
            turn.ended.outcome.usage = usage;
            turn.ended.outcome.repairs = repairs;
            if turn.ended.outcome.failure.is_some() {
                return Ok(turn);
            }
            let read = |said: &str| shape.parse_answer(said);
            let violations = match read_value(&turn.said, read, turn.is_cut, self.job.max_output) {
                Ok(value) => {
                    turn.ended.captured = Some(value.clone().into_bytes());
                    turn.ended.output = Some(value);
                    return Ok(turn);
                }
                Err(violations) => violations,
            };
            if repairs == repair {
                turn.ended.output = None;
                turn.ended.outcome.failure = Some(Failure::Invalid { violations });
                return Ok(turn);
            }
            repairs += 1;
            place.services.observer_handle.send_notice(format!(
                "`{}`: the answer is not of the declared type ({}); asked again, {repairs} of {repair}",
                self.job.step.name,
                violations.join("; ")
            ));
            let session = self.resumable_session(turn.ended.outcome.session.as_deref());
            let prompt = match self.keeps_answer(session.as_ref()) {
                true => render_repair_message(&violations, shape),
                false => render_repair_prompt(&self.taker.prompt, &turn.said, &violations, shape),
            };
            let before = turn.ended.outcome.session.take();
            let mut refused = std::mem::take(&mut turn.refused);
            turn = self.run_turn(repairs + 1, &prompt, session, place).await?;
            refused.append(&mut turn.refused);
            turn.refused = refused;
            // Not every program names its conversation again when it goes on with it.
            turn.ended.outcome.session = turn.ended.outcome.session.take().or(before);
            // Unknown in part is unknown.
            usage = usage.zip(turn.ended.outcome.usage).map(|(one, other)| sum(one, other));
        }
    }

    /// Whether the agent still has its prompt and its last answer in a repair turn: a conversation that goes on has, and a
    /// new process gets both again.
    fn keeps_answer(&self, session: Option<&Session>) -> bool {
        session.is_some() || matches!(self.taker.door, Transport::Llm(_))
    }

    /// Has operations that were refused written again while there are turns left. The answer stays what it was.
    pub(super) async fn repair_operations(
        &mut self,
        repair: u32,
        turn: Turn,
        place: &mut Place<'_, '_>,
    ) -> Result<Ended, RunError> {
        let Turn { mut ended, said, mut refused, .. } = turn;
        while ended.outcome.failure.is_none() && !refused.is_empty() && ended.outcome.repairs < repair {
            ended.outcome.repairs += 1;
            let repairs = ended.outcome.repairs;
            place.services.observer_handle.send_notice(format!(
                "`{}`: operations in its answer were refused ({}); asked again, {repairs} of {repair}",
                self.job.step.name,
                refused.len()
            ));
            let session = self.resumable_session(ended.outcome.session.as_deref());
            let prompt = match self.keeps_answer(session.as_ref()) {
                true => render_refusal_message(&refused),
                false => render_refusal_prompt(&self.taker.prompt, &said, &refused),
            };
            let next = self.run_turn(repairs + 1, &prompt, session, place).await?;
            let outcome = next.ended.outcome;
            ended.outcome.session = outcome.session.or(ended.outcome.session);
            ended.outcome.usage = ended.outcome.usage.zip(outcome.usage).map(|(one, other)| sum(one, other));
            match outcome.failure {
                None => refused = next.refused,
                // The attempt itself was to end.
                Some(failure @ (Failure::Cancelled | Failure::Timeout { .. })) => ended.outcome.failure = Some(failure),
                // It has answered already: what it could not mend is lost, as people have read.
                Some(_) => break,
            }
        }
        Ok(ended)
    }
}

/// The value that `read` finds in a text, or what is wrong with that. `is_cut` says that the beginning of the text was
/// dropped.
pub(in crate::io::executor) fn read_value(
    text: &str,
    read: impl Fn(&str) -> Result<String, Vec<String>>,
    is_cut: bool,
    max_output: usize,
) -> Result<String, Vec<String>> {
    // The first line of a text that was cut is the end of a longer one, and so may be a value that begins there. Of a text
    // the end is what is wanted.
    let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
    let may_be_cut = |value: &str| is_cut && !value.starts_with('"') && read(rest).as_deref() != Ok(value);
    match read(text) {
        Ok(value) if value.len() > max_output => {
            let bytes = value.len();
            Err(vec![format!("the value has {bytes} bytes, more than the {max_output} of `output max=`")])
        }
        Ok(value) if !may_be_cut(&value) => Ok(value),
        Err(violations) if !is_cut => Err(violations),
        Ok(_) | Err(_) => {
            Err(vec![format!("the output is longer than the {max_output} bytes of `output max=`, and was cut")])
        }
    }
}
