//! How long the value of a directive or an expression can be, in bytes; tokens are never more.
//!
//! In: a reference and the steps around it. Out: an [`Amount`], from the limits that the spec declares: the size of an
//! output, its type, the type of a parameter, a filter that cuts.

use std::collections::HashMap;
use std::rc::Rc;

use swarmc_plan::{
    Body, Directive, DirectiveKind, Filter, ForEach, Likely, Param, ParamType, Pipeline, Plan, Reach, Step, prompt_text,
};

use super::amount::{Amount, Cause, Times};
use super::schema::Types;
use super::text::Writer;
use crate::template::{self, Const, Expr, ExprKind, Root, is_default};

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
/// The braces, names and quotes of `{"item":"","output":}`.
const RECORD: u64 = 21;

/// The names around a step.
#[derive(Clone)]
pub(crate) struct Scope<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) pipeline: &'p Pipeline,
    /// The steps of the pipeline by name, `_` for `-`.
    steps: Rc<HashMap<String, &'p Step>>,
    pub(super) reach: Rc<Reach<'p>>,
    pub(super) estimate: Estimate,
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

/// What a number is: one that holds, or one that is usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Estimate {
    /// The highest that is possible: a bound must hold. Lines and envelopes are as long as they like.
    Highest,
    /// The highest, but lines, envelopes and paths have at most [`LINE`] bytes on average: who reads fifty lines has chosen
    /// how much that is.
    Usual,
    /// What is likely: nothing fails or repeats, and texts have their usual length; see [`Likely`].
    Likely,
}

/// The bytes of a line, of an envelope and of a path where they count as usual ones.
const LINE: u64 = 400;

impl Estimate {
    /// The length of a text that only a run makes.
    pub(super) fn limit_text(self, most: Amount<'_>) -> Amount<'_> {
        match self {
            Estimate::Highest | Estimate::Usual => most,
            Estimate::Likely => most.limit_to(Some(Likely::TEXT_TOKENS)),
        }
    }

    /// How often something happens that happens once where all goes well.
    pub(super) fn repeat(self, most: u64) -> u64 {
        match self {
            Estimate::Highest | Estimate::Usual => most,
            Estimate::Likely => most.min(1),
        }
    }

    /// How many items a list has that only a run makes.
    pub(super) fn limit_items(self, most: Times<'_>) -> Times<'_> {
        match (self, most) {
            (Estimate::Likely, Times::Most(most)) => Times::Most(most.min(Likely::ITEMS)),
            (Estimate::Likely, Times::Open(_)) => Times::Most(Likely::ITEMS),
            (_, most) => most,
        }
    }
}

impl<'p> Scope<'p> {
    pub(crate) fn for_pipeline(plan: &'p Plan, pipeline: &'p Pipeline, estimate: Estimate) -> Scope<'p> {
        let steps = Rc::new(pipeline.all_steps().map(|step| (normalize_name(&step.name), step)).collect());
        Scope {
            plan,
            pipeline,
            steps,
            reach: Rc::new(Reach::from_pipeline(pipeline)),
            estimate,
            letters: Letters::OneTurn,
        }
    }

    /// The same for a turn that reads these envelopes.
    pub(crate) fn with_letters(&self, letters: Letters) -> Scope<'p> {
        Scope { letters, ..self.clone() }
    }

    /// What a turn reads of its inbox: what agents sent, with the words around it. What people write comes on top.
    pub(super) fn measure_inbox(&self, step: &Step) -> Amount<'p> {
        let letters = self.reach.max_envelopes(&step.name);
        if letters == 0 {
            return Amount::ZERO;
        }
        let read = match self.letters {
            Letters::OneTurn => letters.min(prompt_text::INPUTS as u64),
            Letters::All => letters,
            Letters::None => 0,
        };
        // A refusal of swarmc stands by itself, with words around it.
        let around = (prompt_text::format_message(false, "").len() + prompt_text::BETWEEN.len()) as u64;
        let each = match self.estimate {
            Estimate::Highest => prompt_text::ENVELOPE_BYTES as u64 + around,
            Estimate::Usual | Estimate::Likely => LINE,
        };
        let frame = prompt_text::inbox_heading(prompt_text::INPUTS).len() + prompt_text::INBOX_END.len();
        self.estimate.limit_text(Amount::at_most(frame as u64).plus(Amount::at_most(each).times(read)))
    }

    /// The path of a folder of the run.
    pub(super) fn path_limit(&self) -> u64 {
        match self.estimate {
            Estimate::Highest => PATH,
            Estimate::Usual | Estimate::Likely => LINE,
        }
    }

    pub(crate) fn find_step(&self, name: &str) -> Option<&'p Step> {
        self.steps.get(&normalize_name(name)).copied()
    }

    fn find_param(&self, name: &str) -> Option<&'p Param> {
        let mut all = self.pipeline.params.iter().chain(&self.plan.params);
        all.find(|param| template::same_name(&param.name, name))
    }

    /// The step whose output a directive of `reader` inlines.
    pub(crate) fn source_step(&self, directive: &Directive, reader: Option<&'p Step>) -> Option<&'p Step> {
        let name = directive.name.as_deref()?;
        match directive.kind {
            DirectiveKind::Output | DirectiveKind::Previous => self.find_step(name),
            DirectiveKind::Input => self.find_step(reader?.inputs.get(name)?),
            _ => None,
        }
    }

    /// What a directive in a text of `reader` puts there.
    pub(crate) fn measure_directive(
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
                match self.source_step(directive, reader) {
                    Some(step) => self.measure_output(step, &fields, types),
                    None => Amount::unbounded(open),
                }
            }
            // `succeeded` is the longest word for it.
            DirectiveKind::Status => Amount::at_most(9),
            DirectiveKind::Exit | DirectiveKind::Iteration | DirectiveKind::Index => Amount::at_most(NUMBER),
            DirectiveKind::Error => self.measure_error(name, open),
            DirectiveKind::Log => Amount::at_most(LOG),
            DirectiveKind::Param => self.param_value(name, &fields, open, types),
            DirectiveKind::Run => Amount::at_most(PATH),
            DirectiveKind::Task => Amount::at_most(swarmc_plan::LONGEST_NAME as u64),
            DirectiveKind::Item => self.measure_item(reader, &fields, open, types),
            DirectiveKind::Context => match self.plan.packs.iter().find(|pack| pack.name == name) {
                Some(pack) => pack.tokens.map_or(Amount::unbounded(Cause::Pack(pack)), Amount::at_most),
                None => Amount::unbounded(open),
            },
            DirectiveKind::Inbox => reader.map_or(Amount::unbounded(open), |step| self.measure_inbox(step)),
            DirectiveKind::File
            | DirectiveKind::Stdin
            | DirectiveKind::Shared
            | DirectiveKind::Team
            | DirectiveKind::Plan => Amount::unbounded(open),
        };
        let filtered = directive.filters.iter().fold(value, |value, filter| match filter {
            Filter::Chars(count) => value.limit_to(Some(count.saturating_mul(CHARACTER))),
            Filter::Json => value.times(ESCAPED).plus(Amount::at_most(2)),
            Filter::Default(text) => value.maximum(Amount::at_most(text.len() as u64)),
            Filter::Tail(count) | Filter::Head(count) => self.limit_lines(value, *count),
            Filter::Lines(first, last) => self.limit_lines(value, last.saturating_sub(*first).saturating_add(1)),
            Filter::Raw => value,
        });
        // `--- Output from task "x" ---` before it and its like behind it; or the placeholder of what is missing.
        let framed = match self.source_step(directive, reader) {
            Some(step) => filtered.plus(Amount::at_most(64 + 2 * step.name.len() as u64)),
            None => filtered,
        };
        self.estimate.limit_text(framed)
    }

    /// So many lines of a value.
    fn limit_lines(&self, value: Amount<'p>, lines: u64) -> Amount<'p> {
        match self.estimate {
            Estimate::Highest => value,
            Estimate::Usual | Estimate::Likely => value.limit_to(Some(lines.saturating_mul(LINE))),
        }
    }

    /// A step's output, or a field of it.
    pub(crate) fn measure_output(&self, step: &'p Step, fields: &[&str], types: &mut Types<'p>) -> Amount<'p> {
        let each = match (&step.for_each, fields) {
            // A position in the list, or a method of it.
            (Some(each), [_, rest @ ..]) => {
                return match (each.record.is_some(), rest) {
                    (false, _) => self.measure_run_output(step, rest, types),
                    (true, ["output", rest @ ..]) => self.measure_run_output(step, rest, types),
                    (true, ["item", rest @ ..]) => self.measure_held_item(step, each, rest, types),
                    (true, _) => self.measure_result(step, types),
                };
            }
            (Some(each), []) => each,
            (None, _) => return self.measure_run_output(step, fields, types),
        };
        let one = self.measure_result(step, types);
        // A comma for each item, and the brackets.
        one.plus(Amount::at_most(1)).times(self.count_items(step, &each.list.source, types)).plus(Amount::at_most(2))
    }

    /// What one item adds to the list of a for-each: as JSON, in which a plain text has quotes and escapes.
    fn measure_result(&self, step: &'p Step, types: &mut Types<'p>) -> Amount<'p> {
        let output = self.measure_run_output(step, &[], types);
        let output = match step.output.schema {
            Some(_) => output,
            None => output.times(ESCAPED).plus(Amount::at_most(2)),
        };
        let Some(each) = step.for_each.as_ref().filter(|each| each.record.is_some()) else { return output };
        let item = self.measure_held_item(step, each, &[], types);
        // Of an item that is a text, its quotes are not counted yet, nor its escapes.
        output.plus(item.times(ESCAPED)).plus(Amount::at_most(RECORD))
    }

    /// The item in a result, or a field of it: as long as its words in the list, or as its type lets it be. What the list
    /// reads is not measured, as that can be this result, or a long chain of such results.
    fn measure_held_item(
        &self,
        step: &'p Step,
        each: &'p ForEach,
        fields: &[&str],
        types: &mut Types<'p>,
    ) -> Amount<'p> {
        let open = Cause::Logic(&each.list);
        let list = template::parse_tree(&each.list.source);
        let is_const = |item: &Expr| matches!(item.kind, ExprKind::Const(_));
        if list.as_ref().and_then(Expr::as_items).is_some_and(|items| items.iter().all(is_const)) {
            return self.measure_item(Some(step), fields, open, types);
        }
        let record = each.record.as_ref().and_then(|record| types.field_schema(&record.0, "item"));
        let item =
            record.and_then(|item| fields.iter().try_fold(item, |schema, field| types.field_schema(schema, field)));
        item.and_then(|schema| types.longest_json(schema)).map_or(Amount::unbounded(open), Amount::at_most)
    }

    /// The output of one run of a step.
    fn measure_run_output(&self, step: &'p Step, fields: &[&str], types: &mut Types<'p>) -> Amount<'p> {
        let mut limit = step.output.max_bytes;
        if let Some(schema) = &step.output.schema {
            let found = fields.iter().try_fold(&schema.0, |schema, field| types.field_schema(schema, field));
            limit = limit.min(found.and_then(|schema| types.longest_json(schema)).unwrap_or(u64::MAX));
        } else if let Body::Prompt(body) = &step.body
            && let Some(agent) = self.plan.agent(&body.agent)
            && let Some(provider) = self.plan.provider(&agent.provider)
        {
            // The run sends the limit to an endpoint; a program has no way to receive it.
            if provider.connection.kind().is_model() {
                limit = limit.min(agent.max_output.unwrap_or(u64::MAX));
            }
            if let Some(answers) = provider.connection.answers() {
                limit = limit.min(answers.iter().map(|answer| answer.text.len() as u64).max().unwrap_or(0));
            }
        }
        let default = step.output.default.as_ref().map_or(0, |default| default.len() as u64);
        Amount::at_most(limit.max(default))
    }

    pub(super) fn measure_error(&self, name: &str, open: Cause<'p>) -> Amount<'p> {
        match self.find_step(name) {
            // A list of `{index item message}`.
            Some(step) if step.for_each.is_some() => Amount::unbounded(open),
            _ => Amount::at_most(ERROR),
        }
    }

    pub(super) fn param_value(
        &self,
        name: &str,
        fields: &[&str],
        open: Cause<'p>,
        types: &mut Types<'p>,
    ) -> Amount<'p> {
        let Some(param) = self.find_param(name) else { return Amount::unbounded(open) };
        match &param.kind {
            ParamType::Int | ParamType::Float => Amount::at_most(NUMBER),
            // `false` is the longer word.
            ParamType::Bool => Amount::at_most(5),
            ParamType::File | ParamType::Dir => Amount::at_most(PATH),
            ParamType::String => Amount::unbounded(open),
            ParamType::Json(schema) => {
                let found = fields.iter().try_fold(&schema.0, |schema, field| types.field_schema(schema, field));
                found.and_then(|schema| types.longest_json(schema)).map_or(Amount::unbounded(open), Amount::at_most)
            }
        }
    }

    /// The item of the for-each that `reader` is.
    pub(super) fn measure_item(
        &self,
        reader: Option<&'p Step>,
        fields: &[&str],
        open: Cause<'p>,
        types: &mut Types<'p>,
    ) -> Amount<'p> {
        let list = reader.and_then(|step| step.for_each.as_ref()).map(|each| each.list.source.as_str());
        let Some(list) = list.and_then(template::parse_tree) else { return Amount::unbounded(open) };
        if let Some(items) = list.as_items() {
            let mut text = Writer::new(self, reader, open, types);
            return items.iter().map(|item| text.measure_expression(item)).fold(Amount::ZERO, Amount::maximum);
        }
        let Some((source, limit)) = self.item_schema(&list, types) else { return Amount::unbounded(open) };
        let item = fields.iter().try_fold(source, |schema, field| types.field_schema(schema, field));
        match (item.and_then(|schema| types.longest_json(schema)), limit) {
            (Some(bytes), limit) => Amount::at_most(bytes.min(limit.unwrap_or(u64::MAX))),
            (None, Some(limit)) => Amount::at_most(limit),
            (None, None) => Amount::unbounded(open),
        }
    }

    /// The schema of the items of a list that an expression reads, and the bytes of the output that it stands in.
    pub(super) fn item_schema(
        &self,
        list: &Expr,
        types: &mut Types<'p>,
    ) -> Option<(&'p serde_json::Value, Option<u64>)> {
        let path = list.as_path()?;
        if let (Root::Output | Root::Previous, []) = (path.root, path.fields())
            && let Some(step) = self.find_step(path.name()?).filter(|step| step.for_each.is_some())
        {
            let record = step.for_each.as_ref().and_then(|each| each.record.as_ref());
            let Some(record) = record else {
                return Some((&step.output.schema.as_ref()?.0, Some(step.output.max_bytes)));
            };
            let bytes = self.measure_result(step, types);
            return Some((&record.0, bytes.open.is_none().then_some(bytes.known)));
        }
        let (schema, limit) = self.path_schema(path, types)?;
        Some((types.item_schema(schema)?.0, limit))
    }

    /// The schema of what a path reads, and the bytes of the output that it stands in; none of a list of successes.
    fn path_schema(
        &self,
        path: &template::Path,
        types: &mut Types<'p>,
    ) -> Option<(&'p serde_json::Value, Option<u64>)> {
        let (schema, limit) = match path.root {
            Root::Output | Root::Previous => {
                let step = self.find_step(path.name()?).filter(|step| step.for_each.is_none())?;
                (step.output.schema.as_ref()?, Some(step.output.max_bytes))
            }
            Root::Param => match &self.find_param(path.name()?)?.kind {
                ParamType::Json(schema) => (schema, None),
                _ => return None,
            },
            _ => return None,
        };
        Some((
            path.fields().iter().try_fold(&schema.0, |schema, field| types.field_schema(schema, &field.text))?,
            limit,
        ))
    }

    /// How many items the list of a for-each can have.
    pub(crate) fn count_items(&self, step: &'p Step, list: &str, types: &mut Types<'p>) -> Times<'p> {
        let list = template::parse_tree(list);
        let items = match list.as_ref().and_then(|list| self.list_length(list, types)) {
            Some(items) => Times::Most(items),
            None => Times::Open(Cause::Items(step)),
        };
        match list.as_ref().and_then(Expr::as_items) {
            // A list that is written out has all its items in every run.
            Some(_) => items,
            None => self.estimate.limit_items(items),
        }
    }

    pub(super) fn list_length(&self, list: &Expr, types: &mut Types<'p>) -> Option<u64> {
        match &list.kind {
            ExprKind::List(items) => Some(items.len() as u64),
            ExprKind::Path(path) => {
                let schema = match path.root {
                    Root::Output | Root::Previous => {
                        let step = self.find_step(path.name()?)?;
                        if let (Some(each), []) = (&step.for_each, path.fields()) {
                            // One item for each success. The other list may read this one only in a cycle, which is refused.
                            return self.static_length(&each.list.source);
                        }
                        step.output.schema.as_ref()?
                    }
                    Root::Param => match &self.find_param(path.name()?)?.kind {
                        ParamType::Json(schema) => schema,
                        _ => return None,
                    },
                    _ => return None,
                };
                let schema = path
                    .fields()
                    .iter()
                    .try_fold(&schema.0, |schema, field| types.field_schema(schema, &field.text))?;
                types.item_schema(schema)?.1
            }
            ExprKind::Slice { of, bounds: [None, Some(stop), None] } => {
                let stop = match stop.kind {
                    ExprKind::Const(Const::Int(stop)) => u64::try_from(stop).ok(),
                    _ => None,
                };
                match (stop, self.list_length(of, types)) {
                    (Some(stop), Some(items)) => Some(stop.min(items)),
                    // The `stop` of a slice bounds also a list of unknown length.
                    (stop, items) => stop.or(items),
                }
            }
            ExprKind::Slice { of, .. } => self.list_length(of, types),
            ExprKind::Filter { of: Some(of), name, .. }
                if matches!(
                    &*name.value,
                    "unique" | "sort" | "reverse" | "select" | "reject" | "selectattr" | "rejectattr" | "map" | "list"
                ) =>
            {
                self.list_length(of, types)
            }
            ExprKind::Filter { of: Some(of), name, arguments } if is_default(&name.value) => {
                let otherwise =
                    arguments.first().map_or(Some(0), |argument| self.list_length(&argument.value, types))?;
                Some(self.list_length(of, types)?.max(otherwise))
            }
            ExprKind::Choice { then, otherwise, .. } => {
                let otherwise = otherwise.as_ref().map_or(Some(0), |otherwise| self.list_length(otherwise, types))?;
                Some(self.list_length(then, types)?.max(otherwise))
            }
            _ => None,
        }
    }

    /// The length of a list that is written out.
    fn static_length(&self, list: &str) -> Option<u64> {
        Some(template::parse_tree(list)?.as_items()?.len() as u64)
    }
}

/// A name as expressions write it.
fn normalize_name(name: &str) -> String {
    name.replace('-', "_")
}
