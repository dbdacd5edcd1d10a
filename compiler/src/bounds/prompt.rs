//! Counts the tokens that an agent receives in a turn, as one number or by part: its system text, its prompt and packs,
//! its inbox, the texts of swarmc itself, the schema of its answer, and the additions of the agent's program.

use std::rc::Rc;

use swarmc_plan::{
    Agent, Body, Command, DirectiveKind, Origin, PromptBody, Provider, SUMMED_BYTES, SUMMED_FILES, Segment, Step,
    Template, prompt_text,
};

use super::amount::{Amount, Cause, directive_source};
use super::meter::Meter;
use super::schema::Types;
use super::text::measure_logic;
use super::value::{ERROR, Scope};
use crate::tokens::{Family, prompt_overhead};

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
    pub(crate) fn count_turn(&mut self, step: &'p Step, body: &'p PromptBody, agent: &'p Agent) -> Amount<'p> {
        let Some(provider) = self.scope.plan.provider(&agent.provider) else { return Amount::ZERO };
        let family = Family::for_agent(agent, provider);
        let sum = self.count_template(&body.prompt, Some(step), family);
        let waits = body.prompt.reads_kind(DirectiveKind::Inbox);
        let sum = sum.plus(self.count_additions(step, (waits, &body.context), agent)).plus(count_overhead(provider));
        match &step.session {
            Some(_) => sum.plus(self.scope.estimate.limit_text(Amount::unbounded(Cause::Session(step)))),
            None => sum,
        }
    }

    /// The tokens of a turn that sums up files, of an agent with this system text; a token has a byte at least.
    pub(crate) fn count_summary_turn(&mut self, agent: &'p Agent) -> Amount<'p> {
        let Some(provider) = self.scope.plan.provider(&agent.provider) else { return Amount::ZERO };
        let mut sum = Amount::at_most((SUMMED_FILES * SUMMED_BYTES) as u64 + 2 * INSTRUCTIONS);
        if let Some(system) = &agent.system {
            sum = sum.plus(self.count_template(system, None, Family::for_agent(agent, provider)));
        }
        sum.plus(count_overhead(provider))
    }

    /// The tokens of the turn in which an agent mends what made a step fail: it is told the error, and how the step was
    /// asked.
    pub(crate) fn count_fix_turn(&mut self, step: &'p Step, agent: &'p Agent) -> Amount<'p> {
        let Some(provider) = self.scope.plan.provider(&agent.provider) else { return Amount::ZERO };
        let family = Family::for_agent(agent, provider);
        let asked = match &step.body {
            Body::Run(Command::Shell(line)) => prompt_text::describe_command(line),
            Body::Run(Command::Argv(argv) | Command::Script { argv, .. }) => {
                prompt_text::describe_command(&argv.join(" "))
            }
            // Without the prompt, which is counted as a text below.
            Body::Prompt(_) => prompt_text::describe_prompt(""),
            _ => String::new(),
        };
        let told = self.meter.count_text(&prompt_text::repair_request(&step.name, "", &asked), family);
        let mut sum = Amount::at_most(told + ERROR)
            .plus(self.count_additions(step, (false, &[]), agent))
            .plus(count_overhead(provider));
        if let Some(body) = prompt_body(step) {
            sum = sum.plus(self.count_template(&body.prompt, Some(step), family));
        }
        if self.scope.plan.files_of(step).is_some() {
            let told = self.meter.count_text(&prompt_text::files_to_mend(""), family) + 2 * self.scope.path_limit();
            sum = sum.plus(add_separator(Amount::at_most(told)));
        }
        match &step.session {
            Some(_) => sum.plus(Amount::unbounded(Cause::Session(step))),
            None => sum,
        }
    }

    /// The tokens of what stands beside the prompt; `shown` says whether that shows the inbox, and the packs beside it.
    fn count_additions(&mut self, step: &'p Step, shown: (bool, &[String]), agent: &'p Agent) -> Amount<'p> {
        let (parts, packs) = (self.added_parts(step, shown.0, agent), shown.1);
        let parts = parts.into_iter().map(|part| part.tokens).chain(packs.iter().map(|pack| self.count_pack(pack)));
        let mut sum = parts.fold(Amount::ZERO, |sum, tokens| sum.plus(add_separator(tokens)));
        if let (Some(system), Some(provider)) = (&agent.system, self.scope.plan.provider(&agent.provider)) {
            sum = sum.plus(add_separator(self.count_template(system, Some(step), Family::for_agent(agent, provider))));
        }
        sum
    }

    /// What swarmc itself adds to a prompt: the inbox where the prompt does not show it, and how to take part.
    fn added_parts(&mut self, step: &'p Step, shows_inbox: bool, agent: &'p Agent) -> [Part<'p>; 6] {
        let provider = self.scope.plan.provider(&agent.provider);
        let family = provider.map_or(Family::Unknown, |provider| Family::for_agent(agent, provider));
        let part = |what: &str, origin: &'p Origin, tokens| Part { what: what.to_owned(), origin, tokens };
        // Where the prompt shows it, it is counted there.
        let inbox = if shows_inbox { Amount::ZERO } else { self.scope.measure_inbox(step) };
        let stdin = step.stdin.as_ref().map_or(Amount::ZERO, |stdin| self.count_template(stdin, Some(step), family));
        let reach = Rc::clone(&self.scope.reach);
        let handing = prompt_text::handing_over(&reach.receivers(&step.name), &reach.spawn_targets(&step.name));
        let handing = handing.map_or(0, |told| self.meter.count_text(&told, family));
        let files = self.scope.plan.files_of(step).map_or(0, |_| {
            let told = prompt_text::describe_folder("", &step.name, reach.has_edges(&step.name));
            self.meter.count_text(&told, family) + self.scope.path_limit()
        });
        [
            part("its inbox", &step.origin, inbox),
            part("its standard input", &step.origin, stdin),
            part("the instructions on handoffs", &step.origin, Amount::at_most(handing)),
            part("the instructions on its folder", &step.origin, Amount::at_most(files)),
            part("the instructions on its mode", &agent.origin, self.count_mode(agent)),
            part("the schema of its answer", &step.origin, self.count_schema(step)),
        ]
    }

    /// The tokens that a further turn adds which mends an answer.
    pub(crate) fn count_repair(&mut self, step: &'p Step) -> Amount<'p> {
        self.count_schema(step).plus(Amount::at_most(step.output.max_bytes.saturating_add(VIOLATIONS)))
    }

    /// The tokens of a text with interpolations.
    pub(crate) fn count_template(
        &mut self,
        text: &'p Template,
        reader: Option<&'p Step>,
        family: Family,
    ) -> Amount<'p> {
        let mut sum = Amount::at_most(self.meter.count_fixed(text, family));
        for segment in &text.segments {
            if let Segment::Directive(directive) = segment {
                sum = sum.plus(self.scope.measure_directive(directive, reader, self.types));
            }
        }
        sum.plus(self.scope.estimate.limit_text(measure_logic(self.scope, text, reader, self.types, self.meter)))
    }

    /// The parts of what a turn is given, the greatest first.
    pub(crate) fn list_parts(&mut self, step: &'p Step, body: &'p PromptBody, agent: &'p Agent) -> Vec<Part<'p>> {
        let Some(provider) = self.scope.plan.provider(&agent.provider) else { return Vec::new() };
        let family = Family::for_agent(agent, provider);
        let mut parts = Vec::new();
        let texts = [("its fixed text", Some(&body.prompt)), ("the system text of its agent", agent.system.as_ref())];
        for (what, text) in texts {
            let Some(text) = text else { continue };
            let tokens = Amount::at_most(self.meter.count_fixed(text, family));
            let origin = if what.starts_with("its") { &step.origin } else { &agent.origin };
            parts.push(Part { what: what.to_owned(), origin, tokens });
            for segment in &text.segments {
                if let Segment::Directive(directive) = segment {
                    let tokens = self.scope.measure_directive(directive, Some(step), self.types);
                    parts.push(Part {
                        what: format!("`{}`", directive_source(directive)),
                        origin: &directive.origin,
                        tokens,
                    });
                }
            }
            // `measure_logic` measures all of them together, so they are one part, at the place of the first.
            let first = text.segments.iter().find_map(|segment| match segment {
                Segment::Logic(expression) => Some(expression),
                _ => None,
            });
            if let Some(first) = first {
                let tokens = measure_logic(self.scope, text, Some(step), self.types, self.meter);
                parts.push(Part { what: "the values of its `{{ … }}`".to_owned(), origin: &first.origin, tokens });
            }
        }
        for pack in &body.context {
            let tokens = self.count_pack(pack);
            parts.push(Part { what: format!("the context pack `{pack}`"), origin: &step.origin, tokens });
        }
        parts.extend(self.added_parts(step, body.prompt.reads_kind(DirectiveKind::Inbox), agent));
        let what = format!("the text that provider `{}` adds", provider.name);
        parts.push(Part { what, origin: &provider.origin, tokens: count_overhead(provider) });
        parts.retain(|part| !part.tokens.is_zero());
        parts.sort_by_key(|part| std::cmp::Reverse(part.tokens.known));
        parts
    }

    fn count_pack(&self, name: &str) -> Amount<'p> {
        let pack = self.scope.plan.packs.iter().find(|pack| pack.name == name);
        // A budget says how much is meant to come.
        let open = |pack| self.scope.estimate.limit_text(Amount::unbounded(Cause::Pack(pack)));
        pack.map_or(Amount::ZERO, |pack| pack.tokens.map_or(open(pack), Amount::at_most))
    }

    /// What a turn is told of the mode of its agent.
    fn count_mode(&self, agent: &Agent) -> Amount<'p> {
        let mode = agent.mode.or(self.scope.plan.mode);
        Amount::at_most(mode.map_or(0, |mode| mode.describe().len() as u64))
    }

    /// The instructions for a typed answer, with its schema and the types that it refers to.
    fn count_schema(&self, step: &Step) -> Amount<'p> {
        let Some(schema) = &step.output.schema else { return Amount::ZERO };
        let text = schema.0.to_string();
        // Only behind a reference do the declared types stand in it.
        let types: u64 = match text.contains("\"$ref\"") {
            true => self.types.declared_bytes(),
            false => 0,
        };
        // The types stand in it as `"$defs":{…}`.
        let around = prompt_text::answer_instructions("").len() as u64 + DEFINITIONS;
        Amount::at_most(around.saturating_add(text.len() as u64).saturating_add(types))
    }
}

/// A part of a prompt beside others, where it is there.
fn add_separator(part: Amount<'_>) -> Amount<'_> {
    match part.is_zero() {
        true => part,
        false => part.plus(Amount::at_most(prompt_text::BETWEEN.len() as u64)),
    }
}

/// What the agent's program adds.
fn count_overhead(provider: &Provider) -> Amount<'_> {
    prompt_overhead(provider).map_or(Amount::unbounded(Cause::Program(provider)), Amount::at_most)
}

/// The agents that may take a turn: the one asked, and those that stand in for it, each once.
pub(crate) fn fallback_chain<'p>(plan: &'p swarmc_plan::Plan, agent: &'p Agent) -> Vec<&'p Agent> {
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
    let kind = provider.connection.kind();
    // A program brings tools of its own unless the list is empty; a model has only those that are listed.
    kind.is_program() && !none || kind.is_model() && agent.tools.as_ref().is_some_and(|tools| !tools.is_empty())
}

/// The turn that a step's body is, if it is one.
pub(crate) fn prompt_body(step: &Step) -> Option<&PromptBody> {
    match &step.body {
        Body::Prompt(body) => Some(body),
        _ => None,
    }
}
