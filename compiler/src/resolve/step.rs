//! Steps: who does them, what they say, what they read.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::files::lies_in;
use super::params::Params;
use super::pipeline::{PlacedStep, Within};
use super::text::{Has, Scope};
use super::{Resolver, needs, text};
use crate::ast::{self, Name};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::files::Entry;
use crate::mapped_text::MappedText;
use crate::model::{Agent, Body, Condition, Files, Made, Read, Step, TemplateText, Variable};
use crate::source::Span;
use crate::symbols::NameKind;
use crate::symbols::names::Names;
use crate::syntax::Text;
use crate::types::Type;

/// The ports of a step: what they are called, and the step behind them where it is known.
type Ports = [(String, Option<usize>)];

impl<'a> Resolver<'_, 'a, '_, '_> {
    pub(super) fn resolve_step(
        &mut self,
        listed: &PlacedStep<'a>,
        within: &Within<'_>,
        agents: &[Agent<'a>],
    ) -> Step<'a> {
        let step = listed.ast;
        self.diagnostics.set_home(Some(step.name.span));
        let mut ports: Vec<(String, Option<usize>)> = Vec::new();
        Names::new("input", step.inputs.iter().map(|input| &input.name), self.diagnostics);
        for input in &step.inputs {
            let source = match listed.partial && within.left_out.contains(input.from.value.as_str()) {
                true => None,
                false => self.step_named(&input.from, within, Some(&step.name.value)),
            };
            ports.push((input.name.value.clone(), source));
        }
        let agent = match &step.body {
            Some(ast::Body::Prompt(_)) => self.step_agent(step, agents),
            _ => None,
        };
        let fixer = match &step.on_failure {
            ast::OnFailure::Fix(name) => self.agent_named(name, agents),
            _ => None,
        };
        let context = step.context.iter().filter_map(|name| self.pack_named(name)).collect();
        let body = self.resolve_body(step, within);
        let files = step.files.as_ref().map(|files| self.resolve_files(files));
        let stdin = step.stdin.as_ref().map(|stdin| text::scan_inline(stdin, self.loader, self.diagnostics));
        let env = self.resolve_variables(&step.env);
        let when = step.when.as_ref().map(|when| text::parse_condition(when, self.diagnostics));
        let list = step.for_each.as_ref().and_then(|each| match &each.list {
            ast::EachList::Expression(list) => Some(text::parse_condition(list, self.diagnostics)),
            ast::EachList::File(path) => self.read_list(path),
        });
        let list = list.map(Box::new);
        let (mut reads, mut made) = (Vec::new(), Vec::new());
        let of_env = env.iter().filter_map(|variable| match variable {
            Variable::Set(_, prose) => Some(prose),
            Variable::Pass(_) | Variable::Secret(_) => None,
        });
        // The system text and the files of an agent are rendered for the step of each turn, so they read what that step
        // may.
        let system = agent.and_then(|agent| agents[agent].system.as_ref());
        let of_agent = || agents[agent?].files.as_ref();
        let of_files = files.as_ref().or_else(of_agent).into_iter().flat_map(Files::template_texts);
        let has = Has {
            item: step.for_each.is_some(),
            inbox: within.receivers.contains(step.name.value.as_str()),
            team: false,
        };
        let task = Some(step.name.value.as_str());
        for prose in body.template_texts().into_iter().chain(system).chain(&stdin).chain(of_env).chain(of_files) {
            reads.extend(self.resolve_reads(
                &prose.template.reads,
                &prose.passage,
                (within, task),
                &ports,
                "this",
                has,
            ));
            made.extend(self.file_reads(prose, Some(within)));
        }
        if let Body::Prompt(prose) = &body {
            text::report_shell_reads(prose, within, &self.tables, self.diagnostics);
        }
        // A run decides both before the first item, so neither sees `item`.
        for (condition, place) in [(when.as_ref(), "a `when`"), (list.as_deref(), "a `for-each`")] {
            let Some(condition) = condition else { continue };
            let passage = MappedText::from_string(&condition.text);
            let found = self.resolve_reads(
                &condition.expression.reads,
                &passage,
                (within, task),
                &ports,
                place,
                Has::default(),
            );
            reads.extend(found.into_iter().map(|read| Read { in_when: place == "a `when`", ..read }));
        }
        let inputs = ports.into_iter().filter_map(|(name, target)| Some((name, target?))).collect();
        self.diagnostics.set_home(None);
        Step {
            ast: step,
            within: listed.within,
            agent,
            fixer,
            context,
            body,
            when,
            list,
            stdin,
            env,
            inputs,
            reads,
            needs: Vec::new(),
            written: 0,
            awaits: Vec::new(),
            files,
            made,
            declared: None,
            output: Type::ANY,
        }
    }

    /// What a step says that it depends on.
    pub(super) fn resolve_dependencies(
        &mut self,
        index: usize,
        listed: &PlacedStep<'a>,
        within: &Within<'_>,
    ) -> Vec<needs::Declared> {
        let mut declared = Vec::new();
        for dependency in &listed.ast.needs {
            let name = &dependency.step;
            if listed.partial && within.left_out.contains(name.value.as_str()) {
                continue;
            }
            if let Some(target) = self.step_named(name, within, Some(&listed.ast.name.value)) {
                declared.push(needs::Declared { step: index, target, when: dependency.when, span: name.span });
            }
        }
        declared
    }

    /// The list in a JSON file, as the expression that it is in the plan: so its items have types as any others.
    fn read_list(&mut self, path: &Text) -> Option<Condition> {
        let span = path.span(0..path.as_str().len());
        let file = self.loader.resolve_file(path.as_str(), span, self.diagnostics)?;
        let list = match serde_json::from_str::<Value>(self.loader.sources.text(file)) {
            Ok(list @ Value::Array(_)) => list,
            Ok(_) => {
                self.diagnostics.push(
                    Diagnostic::new(Code::WrongValue, format!("`{}` does not hold a list", path.as_str()))
                        .label(span, "no list")
                        .help("put the items in brackets: `[ … ]`"),
                );
                return None;
            }
            Err(error) => {
                let message = format!("`{}` is no JSON: {error}", path.as_str());
                let mend = "mend the file; a list is written `[\"a\", \"b\"]`";
                self.diagnostics.push(Diagnostic::new(Code::WrongValue, message).label(span, "not JSON").help(mend));
                return None;
            }
        };
        let mut expression = String::new();
        write_literal(&list, &mut expression);
        Some(text::parse_condition(&Arc::new(Text::from_made(expression, span)), self.diagnostics))
    }

    fn step_agent(&mut self, step: &ast::Step, agents: &[Agent<'a>]) -> Option<usize> {
        if let Some(name) = &step.agent {
            return self.agent_named(name, agents);
        }
        let message = format!("task `{}` has a prompt and no agent", step.name.value);
        let agent = self.sole_agent(&message, "no agent", step.name.span, agents)?;
        if let Some(model) = &step.model {
            let name = &agents[agent].ast.name.value;
            self.diagnostics.push(
                Diagnostic::new(Code::WrongValue, format!("`model=` of task `{}` needs an agent", step.name.value))
                    .label(model.span, "whose model?")
                    .help(format!("write `agent={name} model={}`", model.value)),
            );
        }
        Some(agent)
    }

    /// The agent that is meant where none is named, or the report that there is none.
    pub(super) fn sole_agent(
        &mut self,
        message: &str,
        label: &str,
        place: Span,
        agents: &[Agent<'a>],
    ) -> Option<usize> {
        let home = place.file;
        let Some(agent) = self.tables.find_sole(NameKind::Agent, home) else {
            let none = self.tables.visible_names(NameKind::Agent, home).is_empty();
            let code = if none { Code::UnknownReference } else { Code::WrongValue };
            let diagnostic = Diagnostic::new(code, message).label(place, label);
            self.diagnostics.push(diagnostic.help(self.name_one(NameKind::Agent, home)));
            return None;
        };
        let name = Name { value: agents[agent].ast.name.value.clone(), span: place };
        Some(self.takes_turns(agent, &name, agents))
    }

    /// An agent that is named where one takes a turn.
    pub(super) fn agent_named(&mut self, name: &Name, agents: &[Agent<'a>]) -> Option<usize> {
        let agent = self.tables.resolve_name(NameKind::Agent, name, self.diagnostics)?;
        Some(self.takes_turns(agent, name, agents))
    }

    /// Marks an agent as one that takes turns; one that is there to start from cannot.
    pub(super) fn takes_turns(&mut self, agent: usize, name: &Name, agents: &[Agent<'a>]) -> usize {
        self.uses.agents[agent] = true;
        let declared = agents[agent].ast;
        if agents[agent].provider.is_none() && declared.provider.is_none() && self.is_template(agent) {
            let help = format!(
                "declare one that starts from it, and name that: `agent NAME template={} provider=…`",
                name.value
            );
            self.diagnostics.push(
                Diagnostic::new(Code::WrongValue, format!("agent `{}` has no provider", declared.name.value))
                    .label(name.span, "takes a turn here")
                    .label(declared.name.span, "declared here as a template")
                    .help(help),
            );
        }
        agent
    }

    fn pack_named(&mut self, name: &Name) -> Option<usize> {
        let pack = self.tables.resolve_name(NameKind::Pack, name, self.diagnostics)?;
        self.uses.packs[pack] = true;
        Some(pack)
    }

    fn resolve_body(&mut self, step: &'a ast::Step, within: &Within<'_>) -> Body<'a> {
        let Some(body) = &step.body else { return Body::Missing };
        match body {
            ast::Body::Prompt(source) => self.resolve_prompt(step, source).map_or(Body::Missing, Body::Prompt),
            ast::Body::Run(line) => Body::Run(line),
            ast::Body::Script(path) => {
                let span = path.span(0..path.as_str().len());
                self.loader.resolve_file(path.as_str(), span, self.diagnostics).map_or(Body::Missing, Body::Script)
            }
            ast::Body::Value(text) => Body::Value(text::scan_inline(text, self.loader, self.diagnostics)),
            ast::Body::Fields(fields) => Body::Fields(self.named_texts(fields)),
            ast::Body::Stop { status, message } => {
                let message = message.as_ref().map(|message| text::scan_inline(message, self.loader, self.diagnostics));
                Body::Stop { status: *status, message }
            }
            ast::Body::Call { pipeline, args } => {
                let target = self.tables.resolve_name(NameKind::Pipeline, pipeline, self.diagnostics);
                Body::Call { name: pipeline, pipeline: target, args: self.named_texts(args) }
            }
            ast::Body::Swarm { swarm, goal } => {
                let target = self.tables.resolve_name(NameKind::Swarm, swarm, self.diagnostics);
                if let Some(target) = target {
                    self.uses.swarms[target] = true;
                }
                let goal = goal.as_ref().map(|goal| text::scan_inline(goal, self.loader, self.diagnostics));
                Body::Swarm { name: swarm, swarm: target, goal }
            }
            ast::Body::Gate(gate) => {
                let message = gate.message.as_ref();
                let message = message.map(|message| text::scan_inline(message, self.loader, self.diagnostics));
                Body::Gate { gate, message }
            }
            ast::Body::Loop(body) => {
                let (until, until_reads) = self.resolve_untils(&body.until, within);
                Body::Loop { body, until, until_reads }
            }
        }
    }

    fn named_texts(&mut self, texts: &'a [(Name, crate::syntax::Text)]) -> Vec<(&'a Name, TemplateText)> {
        let inline = |(name, text): &'a (Name, _)| (name, text::scan_inline(text, self.loader, self.diagnostics));
        texts.iter().map(inline).collect()
    }

    /// Prefix, prompt and suffix as one text, so that logic and narrowing see what will be rendered.
    fn resolve_prompt(&mut self, step: &'a ast::Step, source: &'a ast::Source) -> Option<TemplateText> {
        let prefix = step.prefix.as_ref().map(|prefix| self.resolve_passage(prefix));
        let prompt = self.resolve_passage(source);
        let suffix = step.suffix.as_ref().map(|suffix| self.resolve_passage(suffix));
        // A part that is not there has been reported; the others are read all the same.
        let mut parts: Vec<MappedText> = [prefix, Some(prompt), suffix].into_iter().flatten().flatten().collect();
        if parts.len() > 1 {
            let mut whole = MappedText::empty(step.name.span);
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    whole.append_made("\n\n", step.name.span);
                }
                // The line break that a file ends with would widen the gap.
                let part = part.trim_line_breaks();
                whole.append(&part, 0..part.text().len());
            }
            return Some(text::scan_prose(whole, true, self.diagnostics));
        }
        parts.pop().map(|whole| text::scan_prose(whole, true, self.diagnostics))
    }

    pub(super) fn resolve_reads(
        &mut self,
        found: &[crate::template::Read],
        passage: &MappedText,
        (within, task): (&Within<'_>, Option<&str>),
        ports: &Ports,
        place: &str,
        has: Has,
    ) -> Vec<Read> {
        let (spec, inner) = (self.spec, Some((within.params, within.file)));
        let params =
            Params { tables: &self.tables, inner, outer: &spec.params, packs: &spec.packs, uses: &mut self.uses };
        let mut scope = Scope { steps: Some(within), ports, params, renames: &mut self.renames, task, place, has };
        text::resolve_reads(found, passage, &mut scope, self.diagnostics)
    }

    /// `<<file:PATH>>`: it must be there, unless a step says that it writes it; those are given.
    pub(super) fn file_reads(&mut self, prose: &TemplateText, within: Option<&Within<'_>>) -> Vec<Made> {
        let mut made = Vec::new();
        for part in &prose.template.parts {
            let crate::template::Part::Directive(directive) = part else { continue };
            let (crate::template::Kind::File, Some(name)) = (directive.kind, &directive.name) else { continue };
            let span = prose.passage.span(name.range.clone());
            let written = |path: &str| {
                within.is_some_and(|within| {
                    within.writes.iter().any(|glob| fast_glob::glob_match(glob, path))
                        || within.copies.iter().any(|place| lies_in(path, place))
                })
            };
            let written = within.map(|_| &written as &dyn Fn(&str) -> bool);
            let path = self.loader.find_entry(&name.value, Entry::File, span, written, self.diagnostics);
            made.extend(path.map(|path| Made { path, span }));
        }
        made
    }

    /// The step of this name; `own` is the step that refers to it, where one does.
    pub(super) fn step_named(&mut self, name: &Name, within: &Within<'_>, own: Option<&str>) -> Option<usize> {
        let step = within.steps.find_exact(&name.value);
        if step.is_none() {
            self.diagnostics.push(text::unknown_step(&name.value, within, own, name.span, &str::to_owned));
        }
        step
    }
}

/// Writes a JSON value as an expression. It is as deep as the JSON reader lets values nest.
fn write_literal(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("none"),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_literal(item, out);
                out.push_str(", ");
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (name, field) in fields {
                let _ = write!(out, "{}: ", Value::String(name.clone()));
                write_literal(field, out);
                out.push_str(", ");
            }
            out.push('}');
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(out, "{value}");
        }
    }
}
