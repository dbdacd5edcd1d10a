//! Counts the tokens that an agent receives in a turn, as one number or by part: its system text, its prompt and packs,
//! its inbox, the texts of swarmc itself, the schema of its answer, and the additions of the agent's program.

use std::rc::Rc;

use swarmc_plan::{
    Agent, Body, Command, Connection, DirectiveKind, Origin, PromptBody, Provider, SUMMED_BYTES, SUMMED_FILES, Segment,
    Step, Template, prompt_text,
};

use super::amount::{Amount, Cause, written};
use super::schema::Types;
use super::text::logic;
use super::value::{ERROR, Scope};
use crate::tokens::{Family, Meter, overhead};

/// The words around what was wrong with an answer, and around what is to be summed up.
const INSTRUCTIONS: u64 = 500;
/// The name of the types that a schema refers to, where it has them in itself.
const DEFINITIONS: u64 = ",\"$defs\":{}".len() as u64;
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
        let sum = self.template(&body.prompt, Some(step), family);
        let waits = body.prompt.reads(DirectiveKind::Inbox);
        let sum = sum.plus(self.beside(step, (waits, &body.context), agent)).plus(program(provider));
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

    /// The tokens of the turn in which an agent mends what made a step fail: it is told the error, and how the step was
    /// asked.
    pub(crate) fn mending(&mut self, step: &'p Step, agent: &'p Agent) -> Amount<'p> {
        let Some(provider) = self.scope.plan.provider(&agent.provider) else { return Amount::ZERO };
        let family = Family::of(agent, provider);
        let asked = match &step.body {
            Body::Run(Command::Shell(line)) => prompt_text::command(line),
            Body::Run(Command::Argv(argv) | Command::Script { argv, .. }) => prompt_text::command(&argv.join(" ")),
            Body::Prompt(_) => prompt_text::prompt(""),
            _ => String::new(),
        };
        let told = self.meter.text(&prompt_text::mend(&step.name, "", &asked), family);
        let mut sum = Amount::most(told + ERROR).plus(self.beside(step, (false, &[]), agent)).plus(program(provider));
        if let Some(body) = turn(step) {
            sum = sum.plus(self.template(&body.prompt, Some(step), family));
        }
        if self.scope.plan.files_of(step).is_some() {
            let told = self.meter.text(&prompt_text::files_to_mend(""), family) + 2 * self.scope.path();
            sum = sum.plus(beside(Amount::most(told)));
        }
        match &step.session {
            Some(_) => sum.plus(Amount::open(Cause::Session(step))),
            None => sum,
        }
    }

    /// The tokens of what stands beside the prompt; `shown` says whether that shows the inbox, and the packs beside it.
    fn beside(&mut self, step: &'p Step, shown: (bool, &[String]), agent: &'p Agent) -> Amount<'p> {
        let (parts, packs) = (self.added(step, shown.0, agent), shown.1);
        let parts = parts.into_iter().map(|part| part.tokens).chain(packs.iter().map(|pack| self.pack(pack)));
        let mut sum = parts.fold(Amount::ZERO, |sum, tokens| sum.plus(beside(tokens)));
        if let (Some(system), Some(provider)) = (&agent.system, self.scope.plan.provider(&agent.provider)) {
            sum = sum.plus(beside(self.template(system, Some(step), Family::of(agent, provider))));
        }
        sum
    }

    /// What swarmc itself adds to a prompt: the inbox where the prompt does not show it, and how to take part.
    fn added(&mut self, step: &'p Step, shows_inbox: bool, agent: &'p Agent) -> [Part<'p>; 6] {
        let provider = self.scope.plan.provider(&agent.provider);
        let family = provider.map_or(Family::Unknown, |provider| Family::of(agent, provider));
        let part = |what: &str, origin: &'p Origin, tokens| Part { what: what.to_owned(), origin, tokens };
        let inbox = if shows_inbox { Amount::ZERO } else { self.scope.inbox(step) };
        let stdin = step.stdin.as_ref().map_or(Amount::ZERO, |stdin| self.template(stdin, Some(step), family));
        let reach = Rc::clone(&self.scope.reach);
        let handing = prompt_text::handing_over(&reach.receivers(&step.name), &reach.spawns(&step.name));
        let handing = handing.map_or(0, |told| self.meter.text(&told, family));
        let files = self.scope.plan.files_of(step).map_or(0, |_| {
            let told = prompt_text::files("", &step.name, reach.talks(&step.name));
            self.meter.text(&told, family) + self.scope.path()
        });
        [
            part("its inbox", &step.origin, inbox),
            part("its standard input", &step.origin, stdin),
            part("what it is told of handing over", &step.origin, Amount::most(handing)),
            part("what it is told of its folder", &step.origin, Amount::most(files)),
            part("what it is told of its mode", &agent.origin, self.mode(agent)),
            part("the schema of its answer", &step.origin, self.schema(step)),
        ]
    }

    /// The tokens that a further turn adds which mends an answer.
    pub(crate) fn repair(&mut self, step: &'p Step) -> Amount<'p> {
        self.schema(step).plus(Amount::most(step.output.max_bytes.saturating_add(VIOLATIONS)))
    }

    /// The tokens of a text with interpolations.
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
        parts.extend(self.added(step, body.prompt.reads(DirectiveKind::Inbox), agent));
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
        // The types stand in it as `"$defs":{…}`.
        let around = prompt_text::answer("").len() as u64 + DEFINITIONS;
        Amount::most(around.saturating_add(text.len() as u64).saturating_add(types))
    }
}

/// A part of a prompt beside others, where it is there.
fn beside(part: Amount<'_>) -> Amount<'_> {
    match part.is_zero() {
        true => part,
        false => part.plus(Amount::most(prompt_text::BETWEEN.len() as u64)),
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
