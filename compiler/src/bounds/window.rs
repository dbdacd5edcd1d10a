//! SW401: a prompt that may be longer than its model's window.
//!
//! Bytes settle most of it, as there are never more tokens than bytes; only where they go beyond the window is the text
//! counted.

use swarmc_plan::{Agent, Pipeline, Plan, PromptBody, Step};

use super::meter::Meter;
use super::place;
use super::prompt::{Part, Reader, fallback_chain, prompt_body};
use super::schema::Types;
use super::value::{Estimate, Scope};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Sources;
use crate::tokens::{Bytes, Family, O200k};

/// How many of the parts of a prompt are named.
const NAMED: usize = 3;
/// A part that is smaller than one in so many is not what is too large.
const NOTABLE: u64 = 20;

pub(crate) fn check_windows(plan: &Plan, sources: &Sources, diagnostics: &mut Diagnostics) {
    if plan.providers.iter().all(|provider| provider.context_window.is_none()) {
        return;
    }
    let mut types = Types::new(&plan.types);
    let (mut bytes, mut tokens) = (Meter::new(&Bytes), Meter::new(&O200k));
    for pipeline in &plan.pipelines {
        let scope = Scope::for_pipeline(plan, pipeline, Estimate::Usual);
        for step in pipeline.all_steps() {
            let Some(body) = prompt_body(step) else { continue };
            let Some(asked) = plan.agent(&body.agent) else { continue };
            for agent in fallback_chain(plan, asked) {
                let window = plan.provider(&agent.provider).and_then(|provider| provider.context_window);
                let Some(window) = window else { continue };
                let room = window.saturating_sub(agent.max_output.unwrap_or(0));
                let mut reader = Reader { scope: &scope, types: &mut types, meter: &mut bytes };
                if reader.count_turn(step, body, agent).known <= room {
                    continue;
                }
                let mut reader = Reader { scope: &scope, types: &mut types, meter: &mut tokens };
                let given = reader.count_turn(step, body, agent).known;
                if given > room {
                    let parts = reader.list_parts(step, body, agent);
                    let turn = Overflow { plan, pipeline, step, body, agent, window, given, parts };
                    diagnostics.set_home(place::find_span(&step.origin, sources));
                    diagnostics.extend(turn.to_diagnostic(sources));
                    // Another agent of the chain would only repeat this report about the same turn.
                    break;
                }
            }
        }
    }
    diagnostics.set_home(None);
}

/// A turn that is given too much.
struct Overflow<'p> {
    plan: &'p Plan,
    pipeline: &'p Pipeline,
    step: &'p Step,
    body: &'p PromptBody,
    agent: &'p Agent,
    window: u64,
    given: u64,
    parts: Vec<Part<'p>>,
}

impl Overflow<'_> {
    fn to_diagnostic(&self, sources: &Sources) -> Option<Diagnostic> {
        let Overflow { step, agent, window, given, .. } = self;
        let about = match self.plan.provider(&agent.provider) {
            Some(provider) if Family::for_agent(agent, provider).is_exact() => "",
            _ => "about ",
        };
        let answer = agent.max_output.map(|most| format!(" with an answer of {most}")).unwrap_or_default();
        let message = format!(
            "the prompt of `{}` can have {about}{given} tokens, and the window of provider `{}` has {window}{answer}",
            step.name, agent.provider
        );
        let place = place::find_span(&step.origin, sources)?;
        let own = if self.body.agent == agent.name { String::new() } else { format!(" by `{}`", agent.name) };
        let mut diagnostic = Diagnostic::new(Code::ContextOverflow, message)
            .label(place, format!("asked in pipeline `{}`{own}", self.pipeline.name));
        for part in self.parts.iter().take(NAMED).filter(|part| part.tokens.known >= given / NOTABLE) {
            if let Some(span) = place::find_span(part.origin, sources) {
                diagnostic = diagnostic.label(span, format!("{}: up to {} tokens", part.what, part.tokens.known));
            }
        }
        Some(diagnostic.help(
            "keep the outputs that it reads short (`output max=\"20KB\"` in their tasks, or `| chars:4000` where they \
             are read), or name a model with a larger `context-window`",
        ))
    }
}
