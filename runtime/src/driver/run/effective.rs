//! The effective prompt of a turn, block by block: its full text, even if the agent receives only a part of it.
//!
//! In: the blocks, in their order. Out: the prompt, and what the run stores beside it for audit. Invariant: the prompt
//! is its blocks with an empty line between them, and nothing else.

use swarmc_plan::{Mode, PromptBody};

use super::eval::{Evaluator, from_render_error, render_failure};
use super::values::View;
use crate::core::graph::Key;
use crate::core::state::State;
use crate::types::effective_prompt::{Block, Effective};
use crate::types::event::Failure;

impl Evaluator<'_> {
    /// The blocks of a step's turn: its mode, its packs, its task, its inputs, and how to take part.
    pub(crate) fn build_prompt_blocks(
        &self,
        (state, key): (&State, Key),
        body: &PromptBody,
        view: &View<'_>,
    ) -> Result<Effective, Failure> {
        let mut blocks = Vec::new();
        let mode = self.plan.agent(&body.agent).and_then(|agent| agent.mode).or(self.plan.mode);
        blocks.extend(mode.map(|mode| Block::new("mode", Mode::describe(mode).to_owned())));
        for name in &body.context {
            let packed = self.build_pack((state, key), view.attempt, name, view.made).map_err(render_failure)?;
            blocks.push(Block::new("pack", packed.text.clone()));
        }
        blocks.push(Block::new("task", self.renderer.text(&body.prompt, view).map_err(from_render_error)?));
        blocks.extend(
            self.inputs_block(state, key, body).map_err(render_failure)?.map(|text| Block::new("inputs", text)),
        );
        blocks.extend(self.explain_handoffs(state, key).map(|text| Block::new("system", text)));
        Ok(Effective(blocks))
    }
}
