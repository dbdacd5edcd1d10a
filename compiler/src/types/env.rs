//! What a place can read, and of which type it is.

use std::collections::HashMap;

use super::{Kind, Lack, Type, Types, Typing};
use crate::ast::{self, Name};
use crate::source::{FileId, Span};
use crate::symbols::{NameKind, Tables};
use crate::template::{Path, Root, Status};

/// What every text of a file can read.
#[derive(Clone, Copy)]
pub(crate) struct Workflow<'e> {
    pub(crate) types: &'e Types,
    tables: &'e Tables,
    params: &'e [ast::Param],
    kinds: &'e [Type],
    file: FileId,
}

/// What the texts and conditions of a step can read.
pub(crate) struct Env<'e> {
    pub(crate) whole: Workflow<'e>,
    pub(crate) steps: &'e StepTypes,
    pub(crate) params: &'e ParamTypes,
    /// The ports of the step, each with the step behind it.
    pub(crate) inputs: &'e [(String, usize)],
    /// The item of a for-each; any where there is none.
    pub(crate) item: Type,
    /// The places of the lists that have an item at its `index`.
    pub(crate) counted: &'e [String],
    pub(crate) sizes: &'e ListSizes,
}

/// What is known of how many items lists have, as expressions name them.
#[derive(Debug, Default)]
pub(crate) struct ListSizes {
    /// How many items they have at least.
    pub(crate) least: Vec<(String, u64)>,
    /// A list, and one that has as many items.
    pub(crate) equal: Vec<(String, String)>,
}

/// Nothing is known of any list.
pub(super) const NO_SIZES: &ListSizes = &ListSizes { least: Vec::new(), equal: Vec::new() };

/// What a value is called in messages, and where its type comes from.
pub(crate) struct Origin {
    /// "the output of `x`".
    pub(crate) noun: String,
    /// A place, and what it is.
    pub(crate) label: Option<(Span, &'static str)>,
}

/// What the steps of a pipeline put out.
#[derive(Debug, Default)]
pub(crate) struct StepTypes {
    by_plain: HashMap<String, usize>,
    list: Vec<StepType>,
}

#[derive(Debug)]
struct StepType {
    name: String,
    span: Span,
    output: Type,
    /// Whether it runs once for each item of a list.
    each: bool,
    /// Whether its output is whatever an agent says.
    is_free: bool,
    /// The pipeline that it calls: the type of its output is that of the result of that.
    called: Option<String>,
}

/// The types of a pipeline's own parameters, by name.
#[derive(Debug, Default)]
pub(crate) struct ParamTypes {
    by_plain: HashMap<String, (Type, Span)>,
}

impl StepTypes {
    /// Adds a step, in the order of the model's indices; `is_free` says that its output is whatever an agent says.
    pub(crate) fn push(&mut self, name: &Name, output: Type, each: bool, is_free: bool) {
        // Expressions cannot tell names apart that differ in `-` and `_` only: the first one is meant.
        self.by_plain.entry(normalize_name(&name.value)).or_insert(self.list.len());
        self.list.push(StepType { name: name.value.clone(), span: name.span, output, each, is_free, called: None });
    }

    /// The last step calls this pipeline.
    pub(crate) fn set_called(&mut self, pipeline: &str) {
        self.list.last_mut().expect("a step was added").called = Some(pipeline.to_owned());
    }

    pub(crate) fn set(&mut self, step: usize, output: Type) {
        self.list[step].output = output;
    }

    /// What the step at this index puts out.
    pub(crate) fn output(&self, step: usize) -> &Type {
        &self.list[step].output
    }

    fn find(&self, name: &str) -> Option<&StepType> {
        self.by_plain.get(&normalize_name(name)).map(|&index| &self.list[index])
    }
}

impl ParamTypes {
    /// Takes the types of parameters; a later one hides an earlier one of its name.
    pub(crate) fn new<'a>(params: impl IntoIterator<Item = (&'a ast::Param, Type)>) -> ParamTypes {
        let params = params.into_iter();
        let known = params.map(|(param, kind)| {
            (normalize_name(&param.name.value), (kind.with_lack(infer_lack(param)), param.name.span))
        });
        ParamTypes { by_plain: known.collect() }
    }
}

/// Whether the caller may leave a parameter out, so that it has no value.
fn infer_lack(param: &ast::Param) -> Lack {
    if param.kind.optional && param.default.is_none() { Lack::ABSENT } else { Lack::NEVER }
}

impl<'e> Workflow<'e> {
    /// What the texts of a file can read: what names mean depends on it.
    pub(crate) fn new(tables: &'e Tables, params: &'e [ast::Param], typing: &'e Typing, file: FileId) -> Workflow<'e> {
        Workflow { types: &typing.types, tables, params, kinds: &typing.params, file }
    }

    fn find_param(&self, name: &str) -> Option<(Type, Span)> {
        let index = self.tables.find_name(NameKind::Param, name, false, self.file)?;
        let param = self.params.get(index)?;
        Some((self.kinds.get(index)?.clone().with_lack(infer_lack(param)), param.name.span))
    }
}

impl Env<'_> {
    /// The whole name of a parameter whose first part is what its module is imported as: `lib.goal`, and its field of
    /// that name is not one.
    pub(crate) fn qualified_name(&self, root: Root, name: Option<&str>, field: Option<&str>) -> Option<String> {
        let (name, field) = (name?, field?);
        let is_alias = root == Root::Param
            && self.find_param(Some(name)).is_none()
            && self.whole.tables.is_alias(name, false, self.whole.file);
        is_alias.then(|| format!("{name}.{field}"))
    }

    fn find_param(&self, name: Option<&str>) -> Option<(Type, Span)> {
        let name = name?;
        self.params.by_plain.get(&normalize_name(name)).cloned().or_else(|| self.whole.find_param(name))
    }

    /// Whether a run may have no value for the parameter.
    pub(crate) fn may_leave_out(&self, param: Option<&str>) -> bool {
        self.find_param(param).is_some_and(|(kind, _)| kind.lack != Lack::NEVER)
    }

    /// The type of what a root and a name give.
    pub(crate) fn root_type(&self, root: Root, name: Option<&str>) -> Type {
        let step = || self.find_step(root, name);
        match root {
            Root::Output | Root::Previous | Root::Input => step().map_or(Type::ANY, |step| step.output.clone()),
            Root::Status => match step() {
                Some(step) => Type::words(Status::ALL.map(Status::as_str), step.span),
                None => Type::ANY,
            },
            Root::Exit => step().filter(|step| !step.each).map_or(Type::ANY, |_| Type::INT),
            Root::Log => step().filter(|step| !step.each).map_or(Type::ANY, |_| Type::TEXT),
            Root::Error => step().map_or(Type::ANY, |step| match step.each {
                false => Type::STRING,
                true => {
                    let fields = [("index", Type::INT), ("item", Type::ANY), ("message", Type::STRING)];
                    let fields = fields.map(|(name, kind)| (name, kind, step.span));
                    Type::list(Type::record(fields, step.span))
                }
            }),
            // Whether one is given is for another check.
            Root::Param => self.find_param(name).map_or(Type::ANY, |(kind, _)| kind.with_lack(Lack::NEVER)),
            Root::Iteration | Root::Index => Type::INT,
            Root::Run | Root::Task if name.is_some() => Type::STRING,
            Root::Stdin => Type::TEXT,
            Root::Item => self.item.clone(),
            _ => Type::ANY,
        }
    }

    /// The type of a path, as its declarations say: whether it lacks a value is that of its last part.
    pub(crate) fn path_type(&self, path: &Path) -> Type {
        let mut fields = path.fields();
        let qualified = self.qualified_name(path.root, path.name(), fields.first().map(|field| field.text.as_str()));
        if qualified.is_some() {
            fields = &fields[1..];
        }
        let mut kind = self.root_type(path.root, qualified.as_deref().or(path.name()));
        for segment in fields {
            let next = match self.whole.types.underlying_kind(&kind.kind) {
                Kind::Record(record) => {
                    record.find_field(&segment.text, true).map_or(Type::ANY, |field| field.kind.clone())
                }
                Kind::List(item) if segment.index.is_some() => (**item).clone().with_lack(Lack::ABSENT),
                Kind::Map(item) => (**item).clone().with_lack(Lack::ABSENT),
                _ => Type::ANY,
            };
            kind = next;
        }
        kind
    }

    /// How the output of a step is given a type.
    pub(crate) fn suggest_type(&self, step: &str, written: &str) -> String {
        match self.steps.find(step).and_then(|step| step.called.as_deref()) {
            Some(called) => format!("give the result of `{called}` a type: `output {written}` in the task that has it"),
            None => format!("give the output of `{step}` a type: `output {written}`"),
        }
    }

    /// What messages say about it.
    pub(crate) fn origin(&self, root: Root, name: Option<&str>) -> Origin {
        let bare = |noun: &str| Origin { noun: noun.to_owned(), label: None };
        match root {
            Root::Output | Root::Previous | Root::Input => match self.find_step(root, name) {
                Some(step) => {
                    let text = if matches!(step.output.kind, Kind::Text) { "puts out text" } else { "puts it out" };
                    Origin { noun: format!("the output of `{}`", step.name), label: Some((step.span, text)) }
                }
                None => bare("this"),
            },
            Root::Status => bare("a status"),
            Root::Exit => bare("an exit code"),
            Root::Error => bare("an error"),
            Root::Log => bare("a log"),
            Root::Param => {
                let noun = format!("parameter `{}`", name.unwrap_or_default());
                Origin { noun, label: self.find_param(name).map(|(_, span)| (span, "declared here")) }
            }
            Root::Item => bare("the item"),
            Root::Index | Root::Iteration => bare("a number"),
            Root::Run | Root::Task | Root::Stdin => bare("text"),
            Root::Context | Root::Inbox | Root::Shared | Root::Team | Root::Plan => bare("this"),
        }
    }

    /// The step of which a path reads whatever an agent says: its name and place.
    pub(crate) fn find_free(&self, path: &Path) -> Option<(&str, Span)> {
        let is_output = matches!(path.root, Root::Output | Root::Previous | Root::Input) && path.fields().is_empty();
        let step = self.find_step(path.root, path.name()).filter(|step| is_output && step.is_free && !step.each)?;
        Some((&step.name, step.span))
    }

    /// Whether a step puts it out that runs once for each item of a list.
    pub(crate) fn is_each(&self, root: Root, name: Option<&str>) -> bool {
        matches!(root, Root::Output | Root::Previous | Root::Input)
            && self.find_step(root, name).is_some_and(|step| step.each)
    }

    fn find_step(&self, root: Root, name: Option<&str>) -> Option<&StepType> {
        let name = name?;
        match root {
            Root::Input => {
                let (_, step) = self.inputs.iter().find(|(port, _)| crate::template::same_name(port, name))?;
                self.steps.list.get(*step)
            }
            _ => self.steps.find(name),
        }
    }
}

/// A name as expressions write it.
pub(super) fn normalize_name(name: &str) -> String {
    name.replace('-', "_")
}
