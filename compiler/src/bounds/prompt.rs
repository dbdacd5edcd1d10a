//! What a turn of an agent is given: its system text, its prompt and packs, the schema of its answer, and what the
//! agent's own program adds. As one number, or part by part for people.

use swarmc_plan::{
    Agent, Body, Connection, Origin, PromptBody, Provider, SUMMED_BYTES, SUMMED_FILES, Segment, Step, Template,
};

use super::amount::{Amount, Cause, written};
use super::schema::Types;
use super::text::logic;
use super::value::Scope;
use crate::tokens::{Family, Meter, overhead};

/// The words around the schema of an answer, and around what was wrong with one.
const INSTRUCTIONS: u64 = 500;
/// What is told of an answer's mistakes: ten of them, a few lines each.
const VIOLATIONS: u64 = 4096;

/// What agents are given, in tokens.
pub(crate) struct Reader<'p, 's, 't> {
    pub(crate) scope: &'s Scope<'p>,
    pub(crate) types: &'s mut Types<'p>,
    pub(crate) meter: &'s mut Meter<'t>,
}

/// A part of what a turn is given.
pub(crate) struct Part<'p> {
    pub(crate) what: String,
    pub(crate) origin: &'p Origin,
    pub(crate) tokens: Amount<'p>,
}

impl<'p> Reader<'p, '_, '_> {
    /// The tokens that the first turn of a step is given.
    pub(crate) fn turn(&mut self, step: &'p Step, body: &'p PromptBody, agent: &'p Agent) -> Amount<'p> {
        let Some(provider) = self.scope.plan.provider(&agent.provider) else { return Amount::ZERO };
        let family = Family::of(agent, provider);
        let mut sum = self.template(&body.prompt, Some(step), family);
        if let Some(system) = &agent.system {
            sum = sum.plus(self.template(system, Some(step), family));
        }
        for pack in &body.context {
            sum = sum.plus(self.pack(pack));
        }
        sum = sum.plus(self.mode(agent)).plus(self.schema(step)).plus(program(provider));
        match &step.session {
            Some(_) => sum.plus(Amount::open(Cause::Session(step))),
            None => sum,
        }
    }

    /// The tokens of a turn that sums up files, of an agent with this system text; a token has a byte at least.
    pub(crate) fn summing(&mut self, agent: &'p Agent) -> Amount<'p> {
        let Some(provider) = self.scope.plan.provider(&agent.provider) else { return Amount::ZERO };
        let mut sum = Amount::most((SUMMED_FILES * SUMMED_BYTES) as u64 + 2 * INSTRUCTIONS);
        if let Some(system) = &agent.system {
            sum = sum.plus(self.template(system, None, Family::of(agent, provider)));
        }
        sum.plus(program(provider))
    }

    /// The tokens that a further turn adds which mends an answer.
    pub(crate) fn repair(&mut self, step: &'p Step) -> Amount<'p> {
        self.schema(step).plus(Amount::most(step.output.max_bytes.saturating_add(VIOLATIONS)))
    }

    /// The tokens of a text with holes.
    pub(crate) fn template(&mut self, text: &'p Template, reader: Option<&'p Step>, family: Family) -> Amount<'p> {
        let mut sum = Amount::most(self.meter.fixed(text, family));
        for segment in &text.segments {
            if let Segment::Directive(directive) = segment {
                sum = sum.plus(self.scope.directive(directive, reader, self.types));
            }
        }
        sum.plus(logic(self.scope, text, reader, self.types))
    }

    /// The parts of what a turn is given, the greatest first.
    pub(crate) fn parts(&mut self, step: &'p Step, body: &'p PromptBody, agent: &'p Agent) -> Vec<Part<'p>> {
        let Some(provider) = self.scope.plan.provider(&agent.provider) else { return Vec::new() };
        let family = Family::of(agent, provider);
        let mut parts = Vec::new();
        let texts = [("its fixed text", Some(&body.prompt)), ("the system text of its agent", agent.system.as_ref())];
        for (what, text) in texts {
            let Some(text) = text else { continue };
            let tokens = Amount::most(self.meter.fixed(text, family));
            let origin = if what.starts_with("its") { &step.origin } else { &agent.origin };
            parts.push(Part { what: what.to_owned(), origin, tokens });
            for segment in &text.segments {
                if let Segment::Directive(directive) = segment {
                    let tokens = self.scope.directive(directive, Some(step), self.types);
                    parts.push(Part { what: format!("`{}`", written(directive)), origin: &directive.origin, tokens });
                }
            }
            let first = text.segments.iter().find_map(|segment| match segment {
                Segment::Logic(expression) => Some(expression),
                _ => None,
            });
            if let Some(first) = first {
                let tokens = logic(self.scope, text, Some(step), self.types);
                parts.push(Part { what: "what its `{{ … }}` give".to_owned(), origin: &first.origin, tokens });
            }
        }
        for pack in &body.context {
            let tokens = self.pack(pack);
            parts.push(Part { what: format!("the context pack `{pack}`"), origin: &step.origin, tokens });
        }
        let tokens = self.mode(agent);
        parts.push(Part { what: "what it is told of its mode".to_owned(), origin: &agent.origin, tokens });
        let tokens = self.schema(step);
        parts.push(Part { what: "the schema of its answer".to_owned(), origin: &step.origin, tokens });
        let what = format!("what the program of provider `{}` adds", provider.name);
        parts.push(Part { what, origin: &provider.origin, tokens: program(provider) });
        parts.retain(|part| !part.tokens.is_zero());
        parts.sort_by_key(|part| std::cmp::Reverse(part.tokens.known));
        parts
    }

    fn pack(&self, name: &str) -> Amount<'p> {
        let pack = self.scope.plan.packs.iter().find(|pack| pack.name == name);
        pack.map_or(Amount::ZERO, |pack| pack.tokens.map_or(Amount::open(Cause::Pack(pack)), Amount::most))
    }

    /// What a turn is told of the mode of its agent.
    fn mode(&self, agent: &Agent) -> Amount<'p> {
        let mode = agent.mode.or(self.scope.plan.mode);
        Amount::most(mode.map_or(0, |mode| mode.words().len() as u64))
    }

    /// The instructions for a typed answer, with its schema and the types that it refers to.
    fn schema(&self, step: &Step) -> Amount<'p> {
        let Some(schema) = &step.output.schema else { return Amount::ZERO };
        let text = schema.0.to_string();
        let types: u64 = match text.contains("\"$ref\"") {
            true => self.types.bytes(),
            false => 0,
        };
        Amount::most(INSTRUCTIONS.saturating_add(text.len() as u64).saturating_add(types))
    }
}

/// What the agent's program adds.
fn program(provider: &Provider) -> Amount<'_> {
    overhead(provider).map_or(Amount::open(Cause::Program(provider)), Amount::most)
}

/// The agents that may take a turn: the one asked, and those that stand in for it, each once.
pub(crate) fn chain<'p>(plan: &'p swarmc_plan::Plan, agent: &'p Agent) -> Vec<&'p Agent> {
    let mut chain = vec![agent];
    while let Some(next) = chain.last().and_then(|last| last.fallback.as_ref()).and_then(|name| plan.agent(name)) {
        if chain.iter().any(|known| known.name == next.name) {
            break;
        }
        chain.push(next);
    }
    chain
}

/// Whether an agent's program may use tools, and so ask its model more than once a turn.
pub(crate) fn may_use_tools(agent: &Agent, provider: &Provider) -> bool {
    let none = agent.tools.as_ref().is_some_and(Vec::is_empty);
    match provider.connection {
        Connection::Exec { .. } | Connection::Acp { .. } => !none,
        Connection::Llm { .. } => agent.tools.as_ref().is_some_and(|tools| !tools.is_empty()),
        Connection::Script { .. } => false,
    }
}

/// The turn that a step's body is, if it is one.
pub(crate) fn turn(step: &Step) -> Option<&PromptBody> {
    match &step.body {
        Body::Prompt(body) => Some(body),
        _ => None,
    }
}
