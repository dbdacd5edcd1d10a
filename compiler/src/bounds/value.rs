//! How long the value of a directive or an expression can be, in bytes; tokens are never more.
//!
//! In: a reference and the steps around it. Out: an [`Amount`], from the limits that the spec declares: the size of an
//! output, its type, the type of a parameter, a filter that cuts.

use std::collections::HashMap;
use std::rc::Rc;

use swarmc_plan::{
    Body, Connection, Directive, DirectiveKind, Filter, Param, ParamType, Pipeline, Plan, Reach, Step, prompt_text,
};

use super::amount::{Amount, Cause, Times};
use super::schema::Types;
use super::text::Writer;
use crate::template::{self, Const, Expr, ExprKind, Root};

/// What the runner keeps of the error of a step.
pub(super) const ERROR: u64 = 4096;
/// What the runner keeps of the log of a step.
pub(super) const LOG: u64 = swarmc_plan::LOG as u64;
/// The longest path of a file.
pub(super) const PATH: u64 = 4096;
/// A number in any notation.
pub(super) const NUMBER: u64 = 25;
/// The most bytes that a byte of text becomes in a JSON string.
pub(super) const ESCAPED: u64 = 6;
/// The most bytes of a character.
const CHARACTER: u64 = 4;

/// The names around a step.
#[derive(Clone)]
pub(crate) struct Scope<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) pipeline: &'p Pipeline,
    /// The steps of the pipeline by name, `_` for `-`.
    steps: Rc<HashMap<String, &'p Step>>,
    pub(super) reach: Rc<Reach<'p>>,
    lines: Lines,
    letters: Letters,
}

/// Which of the envelopes that may come to a step a turn of it reads: each of them is read by one turn alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    /// As many as one turn takes.
    OneTurn,
    /// Those of all its turns.
    All,
    /// None: another turn has read them.
    None,
}

/// How long the lines are that a filter counts, and the envelopes of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// As long as they like: a bound must hold.
    Endless,
    /// At most [`LINE`] bytes on average: who reads fifty lines has chosen how much that is.
    Usual,
}

/// The bytes of a line, of an envelope and of a path where they count as usual ones.
const LINE: u64 = 400;

impl<'p> Scope<'p> {
    pub(crate) fn of(plan: &'p Plan, pipeline: &'p Pipeline, lines: Lines) -> Scope<'p> {
        let steps = Rc::new(pipeline.all_steps().map(|step| (plain(&step.name), step)).collect());
        Scope { plan, pipeline, steps, reach: Rc::new(Reach::of(pipeline)), lines, letters: Letters::OneTurn }
    }

    /// The same for a turn that reads these envelopes.
    pub(crate) fn reading(&self, letters: Letters) -> Scope<'p> {
        Scope { letters, ..self.clone() }
    }

    /// What a turn reads of its inbox: what agents sent, with the words around it. What people write comes on top.
    pub(super) fn inbox(&self, step: &Step) -> Amount<'p> {
        let letters = self.reach.letters(&step.name);
        if letters == 0 {
            return Amount::ZERO;
        }
        let read = match self.letters {
            Letters::OneTurn => letters.min(prompt_text::INPUTS as u64),
            Letters::All => letters,
            Letters::None => 0,
        };
        // A refusal of swarmc stands by itself, with words around it.
        let around = (prompt_text::message(false, "").len() + prompt_text::BETWEEN.len()) as u64;
        let each = match self.lines {
            Lines::Endless => prompt_text::ENVELOPE_BYTES as u64 + around,
            Lines::Usual => LINE,
        };
        let frame = prompt_text::inbox(prompt_text::INPUTS).len() + prompt_text::INBOX_END.len();
        Amount::most(frame as u64).plus(Amount::most(each).times(read))
    }

    /// The path of a folder of the run.
    pub(super) fn path(&self) -> u64 {
        match self.lines {
            Lines::Endless => PATH,
            Lines::Usual => LINE,
        }
    }

    pub(crate) fn step(&self, name: &str) -> Option<&'p Step> {
        self.steps.get(&plain(name)).copied()
    }

    fn param(&self, name: &str) -> Option<&'p Param> {
        let mut all = self.pipeline.params.iter().chain(&self.plan.params);
        all.find(|param| template::same_name(&param.name, name))
    }

    /// The step whose output a directive of `reader` inlines.
    pub(crate) fn source(&self, directive: &Directive, reader: Option<&'p Step>) -> Option<&'p Step> {
        let name = directive.name.as_deref()?;
        match directive.kind {
            DirectiveKind::Output | DirectiveKind::Previous => self.step(name),
            DirectiveKind::Input => self.step(reader?.inputs.get(name)?),
            _ => None,
        }
    }

    /// What a directive in a text of `reader` puts there.
    pub(crate) fn directive(
        &self,
        directive: &'p Directive,
        reader: Option<&'p Step>,
        types: &mut Types<'p>,
    ) -> Amount<'p> {
        let name = directive.name.as_deref().unwrap_or_default();
        let open = Cause::Hole(directive);
        let fields: Vec<&str> = directive.fields.iter().map(String::as_str).collect();
        let value = match directive.kind {
            DirectiveKind::Output | DirectiveKind::Previous | DirectiveKind::Input => {
                match self.source(directive, reader) {
                    Some(step) => self.output(step, &fields, types),
                    None => Amount::open(open),
                }
            }
            DirectiveKind::Status => Amount::most(9),
            DirectiveKind::Exit | DirectiveKind::Iteration | DirectiveKind::Index => Amount::most(NUMBER),
            DirectiveKind::Error => self.error(name, open),
            DirectiveKind::Log => Amount::most(LOG),
            DirectiveKind::Param => self.param_value(name, &fields, open, types),
            DirectiveKind::Run => Amount::most(PATH),
            DirectiveKind::Task => Amount::most(swarmc_plan::LONGEST_NAME as u64),
            DirectiveKind::Item => self.item(reader, &fields, open, types),
            DirectiveKind::Context => match self.plan.packs.iter().find(|pack| pack.name == name) {
                Some(pack) => pack.tokens.map_or(Amount::open(Cause::Pack(pack)), Amount::most),
                None => Amount::open(open),
            },
            DirectiveKind::Inbox => reader.map_or(Amount::open(open), |step| self.inbox(step)),
            DirectiveKind::File
            | DirectiveKind::Stdin
            | DirectiveKind::Shared
            | DirectiveKind::Team
            | DirectiveKind::Plan => Amount::open(open),
        };
        let filtered = directive.filters.iter().fold(value, |value, filter| match filter {
            Filter::Chars(count) => value.within(Some(count.saturating_mul(CHARACTER))),
            Filter::Json => value.times(ESCAPED).plus(Amount::most(2)),
            Filter::Default(text) => value.or(Amount::most(text.len() as u64)),
            Filter::Tail(count) | Filter::Head(count) => self.cut(value, *count),
            Filter::Lines(first, last) => self.cut(value, last.saturating_sub(*first).saturating_add(1)),
            Filter::Raw => value,
        });
        // `--- Output from task "x" ---` before it and its like behind it; or the placeholder of what is missing.
        match self.source(directive, reader) {
            Some(step) => filtered.plus(Amount::most(64 + 2 * step.name.len() as u64)),
            None => filtered,
        }
    }

    /// So many lines of a value.
    fn cut(&self, value: Amount<'p>, lines: u64) -> Amount<'p> {
        match self.lines {
            Lines::Endless => value,
            Lines::Usual => value.within(Some(lines.saturating_mul(LINE))),
        }
    }

    /// A step's output, or a field of it.
    pub(crate) fn output(&self, step: &'p Step, fields: &[&str], types: &mut Types<'p>) -> Amount<'p> {
        let each = match (&step.for_each, fields) {
            // A position in the list, or a method of it.
            (Some(_), [_, rest @ ..]) => return self.one(step, rest, types),
            (Some(each), []) => each,
            (None, _) => return self.one(step, fields, types),
        };
        let one = self.one(step, &[], types);
        let one = if step.output.schema.is_some() { one } else { one.times(ESCAPED).plus(Amount::most(2)) };
        one.plus(Amount::most(1)).times(self.items(step, &each.list.source, types)).plus(Amount::most(2))
    }

    /// The output of one run of a step.
    fn one(&self, step: &'p Step, fields: &[&str], types: &mut Types<'p>) -> Amount<'p> {
        let mut limit = step.output.max_bytes;
        if let Some(schema) = &step.output.schema {
            let found = fields.iter().try_fold(&schema.0, |schema, field| types.field(schema, field));
            limit = limit.min(found.and_then(|schema| types.longest(schema)).unwrap_or(u64::MAX));
        } else if let Body::Prompt(body) = &step.body
            && let Some(agent) = self.plan.agent(&body.agent)
            && let Some(provider) = self.plan.provider(&agent.provider)
        {
            // The run sends the limit to an endpoint; a program has no way to receive it.
            match &provider.connection {
                Connection::Llm { .. } => limit = limit.min(agent.max_output.unwrap_or(u64::MAX)),
                Connection::Script { answers } => {
                    limit = limit.min(answers.iter().map(|answer| answer.text.len() as u64).max().unwrap_or(0));
                }
                Connection::Exec { .. } | Connection::Acp { .. } => {}
            }
        }
        let default = step.output.default.as_ref().map_or(0, |default| default.len() as u64);
        Amount::most(limit.max(default))
    }

    pub(super) fn error(&self, name: &str, open: Cause<'p>) -> Amount<'p> {
        match self.step(name) {
            // A list of `{index item message}`.
            Some(step) if step.for_each.is_some() => Amount::open(open),
            _ => Amount::most(ERROR),
        }
    }

    pub(super) fn param_value(
        &self,
        name: &str,
        fields: &[&str],
        open: Cause<'p>,
        types: &mut Types<'p>,
    ) -> Amount<'p> {
        let Some(param) = self.param(name) else { return Amount::open(open) };
        match &param.kind {
            ParamType::Int | ParamType::Float => Amount::most(NUMBER),
            ParamType::Bool => Amount::most(5),
            ParamType::File | ParamType::Dir => Amount::most(PATH),
            ParamType::String => Amount::open(open),
            ParamType::Json(schema) => {
                let found = fields.iter().try_fold(&schema.0, |schema, field| types.field(schema, field));
                found.and_then(|schema| types.longest(schema)).map_or(Amount::open(open), Amount::most)
            }
        }
    }

    /// The item of the for-each that `reader` is.
    pub(super) fn item(
        &self,
        reader: Option<&'p Step>,
        fields: &[&str],
        open: Cause<'p>,
        types: &mut Types<'p>,
    ) -> Amount<'p> {
        let list = reader.and_then(|step| step.for_each.as_ref()).map(|each| each.list.source.as_str());
        let Some(list) = list.map(template::expression) else { return Amount::open(open) };
        let Some(list) = &list.tree else { return Amount::open(open) };
        if let Some(items) = list.items() {
            let mut text = Writer::new(self, reader, open, types);
            return items.iter().map(|item| text.expression(item)).fold(Amount::ZERO, Amount::or);
        }
        let Some((source, limit)) = self.list(list, types) else { return Amount::open(open) };
        let item = fields.iter().try_fold(source, |schema, field| types.field(schema, field));
        match (item.and_then(|schema| types.longest(schema)), limit) {
            (Some(bytes), limit) => Amount::most(bytes.min(limit.unwrap_or(u64::MAX))),
            (None, Some(limit)) => Amount::most(limit),
            (None, None) => Amount::open(open),
        }
    }

    /// The schema of the items of a list that an expression reads, and the bytes of the output that it stands in.
    pub(super) fn list(&self, list: &Expr, types: &mut Types<'p>) -> Option<(&'p serde_json::Value, Option<u64>)> {
        let path = list.path()?;
        if let (Root::Output | Root::Previous, []) = (path.root, path.fields())
            && let Some(step) = self.step(path.name()?).filter(|step| step.for_each.is_some())
        {
            return Some((&step.output.schema.as_ref()?.0, Some(step.output.max_bytes)));
        }
        let (schema, limit) = self.schema(path, types)?;
        Some((types.items(schema)?.0, limit))
    }

    /// The schema of what a path reads, and the bytes of the output that it stands in; none of a list of successes.
    fn schema(&self, path: &template::Path, types: &mut Types<'p>) -> Option<(&'p serde_json::Value, Option<u64>)> {
        let (schema, limit) = match path.root {
            Root::Output | Root::Previous => {
                let step = self.step(path.name()?).filter(|step| step.for_each.is_none())?;
                (step.output.schema.as_ref()?, Some(step.output.max_bytes))
            }
            Root::Param => match &self.param(path.name()?)?.kind {
                ParamType::Json(schema) => (schema, None),
                _ => return None,
            },
            _ => return None,
        };
        Some((path.fields().iter().try_fold(&schema.0, |schema, field| types.field(schema, &field.text))?, limit))
    }

    /// How many items the list of a for-each can have.
    pub(crate) fn items(&self, step: &'p Step, list: &str, types: &mut Types<'p>) -> Times<'p> {
        let parsed = template::expression(list);
        match parsed.tree.as_ref().and_then(|list| self.length(list, types)) {
            Some(items) => Times::Most(items),
            None => Times::Open(Cause::Items(step)),
        }
    }

    pub(super) fn length(&self, list: &Expr, types: &mut Types<'p>) -> Option<u64> {
        match &list.kind {
            ExprKind::List(items) => Some(items.len() as u64),
            ExprKind::Path(path) => {
                let schema = match path.root {
                    Root::Output | Root::Previous => {
                        let step = self.step(path.name()?)?;
                        if let (Some(each), []) = (&step.for_each, path.fields()) {
                            // One item for each success. The other list may read this one only in a cycle, which is refused.
                            return self.static_length(&each.list.source);
                        }
                        step.output.schema.as_ref()?
                    }
                    Root::Param => match &self.param(path.name()?)?.kind {
                        ParamType::Json(schema) => schema,
                        _ => return None,
                    },
                    _ => return None,
                };
                let schema =
                    path.fields().iter().try_fold(&schema.0, |schema, field| types.field(schema, &field.text))?;
                types.items(schema)?.1
            }
            ExprKind::Slice { of, bounds: [None, Some(stop), None] } => {
                let stop = match stop.kind {
                    ExprKind::Const(Const::Int(stop)) => u64::try_from(stop).ok(),
                    _ => None,
                };
                match (stop, self.length(of, types)) {
                    (Some(stop), Some(items)) => Some(stop.min(items)),
                    (stop, items) => stop.or(items),
                }
            }
            ExprKind::Slice { of, .. } => self.length(of, types),
            ExprKind::Filter { of: Some(of), name, .. }
                if matches!(
                    &*name.value,
                    "unique" | "sort" | "reverse" | "select" | "reject" | "selectattr" | "rejectattr" | "map" | "list"
                ) =>
            {
                self.length(of, types)
            }
            ExprKind::Filter { of: Some(of), name, arguments } if matches!(&*name.value, "default" | "d") => {
                let otherwise = arguments.first().map_or(Some(0), |argument| self.length(&argument.value, types))?;
                Some(self.length(of, types)?.max(otherwise))
            }
            ExprKind::Choice { then, otherwise, .. } => {
                let otherwise = otherwise.as_ref().map_or(Some(0), |otherwise| self.length(otherwise, types))?;
                Some(self.length(then, types)?.max(otherwise))
            }
            _ => None,
        }
    }

    /// The length of a list that is written out.
    fn static_length(&self, list: &str) -> Option<u64> {
        Some(template::expression(list).tree.as_ref()?.items()?.len() as u64)
    }
}

/// A name as expressions write it.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}
