//! The index of a compiled spec, for editors: its names and their spans, the needs of each step, the texts that it
//! reads, and the shapes of their values.
//!
//! In: the model and the trees of its files. Out: plain data, with spans in the sources of the same compilation. It is
//! complete as far as the compiler could read the spec: a broken part is missing, never wrong.

mod build;
mod count;
mod order;
mod place;
mod shapes;
mod swarms;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::BTreeMap;
use std::ops::Range;

use swarmc_plan::When;

use crate::source::{FileId, Span};
use crate::trust::Trust;

pub(crate) use build::build_index;
pub(crate) use count::count_names;

/// The names, texts and types of a spec and of what it imports.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// What the workflow is called.
    pub workflow: String,
    /// Everything that has a name, in no particular order.
    pub symbols: Vec<Symbol>,
    /// Where the names stand, by place: definitions and references.
    pub occurrences: Vec<Occurrence>,
    /// The steps of the pipelines, pipeline by pipeline, in declaration order; shared tasks once in each pipeline.
    pub steps: Vec<Step>,
    /// The plan items of the swarms, in declaration order.
    pub items: Vec<PlanItem>,
    /// The template texts and their owners, by place. A prompt file has one entry for each of its users.
    pub texts: Vec<TextUse>,
    /// The paths that the spec and its prompts name, by place.
    pub paths: Vec<PathUse>,
    /// What the files of the spec take in, in the order in which they are searched.
    pub imports: Vec<Import>,
    /// What values are.
    pub shapes: Vec<Shape>,
    /// What may have reached steps and members, as far as anything has.
    pub trust: BTreeMap<SymbolId, Trust>,
}

/// A symbol, by its position in [`Index::symbols`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(u32);

/// A shape, by its position in [`Index::shapes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeId(u32);

/// Something that has a name.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// What it is.
    pub kind: SymbolKind,
    /// Its name as it is declared.
    pub name: String,
    /// Where the name is declared.
    pub span: Span,
    /// The whole node that declares it; the name alone where that is not a node.
    pub whole: Span,
    /// What it stands in: the pipeline of a step, the type of a field.
    pub within: Option<SymbolId>,
    /// Its description.
    pub doc: Option<String>,
    /// What its value is.
    pub shape: Option<ShapeId>,
}

/// What a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolKind {
    /// A parameter of the workflow or of a pipeline.
    Param,
    /// A secret.
    Secret,
    /// A declared type.
    Type,
    /// A field of a type, of an output, or of what a gate asks.
    Field,
    /// A provider.
    Provider,
    /// A tier.
    Tier,
    /// An agent.
    Agent,
    /// A server of tools.
    ToolServer,
    /// A shared prompt.
    Prompt,
    /// A context pack.
    Pack,
    /// A task, shared or of a pipeline.
    Task,
    /// A gate.
    Gate,
    /// A loop.
    Loop,
    /// A stop.
    Stop,
    /// A port of a step.
    Port,
    /// An option of a gate.
    Option,
    /// A pipeline.
    Pipeline,
    /// A swarm.
    Swarm,
    /// A member or leader of a swarm.
    Member,
    /// A plan item of a swarm.
    Item,
    /// A channel of a swarm.
    Channel,
    /// A worktree that members of a swarm share.
    Worktree,
    /// What stands before the names of an import.
    Alias,
}

impl SymbolKind {
    /// What it is called: "agent".
    pub fn as_str(self) -> &'static str {
        match self {
            SymbolKind::Param => "parameter",
            SymbolKind::Secret => "secret",
            SymbolKind::Type => "type",
            SymbolKind::Field => "field",
            SymbolKind::Provider => "provider",
            SymbolKind::Tier => "tier",
            SymbolKind::Agent => "agent",
            SymbolKind::ToolServer => "tool server",
            SymbolKind::Prompt => "prompt",
            SymbolKind::Pack => "context pack",
            SymbolKind::Task => "task",
            SymbolKind::Gate => "gate",
            SymbolKind::Loop => "loop",
            SymbolKind::Stop => "stop",
            SymbolKind::Port => "input",
            SymbolKind::Option => "option",
            SymbolKind::Pipeline => "pipeline",
            SymbolKind::Swarm => "swarm",
            SymbolKind::Member => "member",
            SymbolKind::Item => "plan item",
            SymbolKind::Channel => "channel",
            SymbolKind::Worktree => "worktree",
            SymbolKind::Alias => "import",
        }
    }

    /// Whether it is a step of a pipeline.
    pub fn is_step(self) -> bool {
        matches!(self, SymbolKind::Task | SymbolKind::Gate | SymbolKind::Loop | SymbolKind::Stop)
    }
}

/// One place where a name stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// The name alone, without quotes or qualifier.
    pub span: Span,
    /// What is named.
    pub symbol: SymbolId,
    /// What the place does.
    pub role: Role,
}

/// What a place does with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It declares it.
    Definition,
    /// It refers to it in the spec itself.
    Reference,
    /// A directive reads its value, or how it ended.
    Directive,
    /// An expression reads it; `-` is written `_` there.
    Expression,
}

/// A step in its pipeline.
#[derive(Clone, Debug)]
pub struct Step {
    /// The step.
    pub symbol: SymbolId,
    /// The pipeline.
    pub pipeline: SymbolId,
    /// The loop that it stands in.
    pub within: Option<SymbolId>,
    /// The agent that takes its turn.
    pub agent: Option<SymbolId>,
    /// What it waits for.
    pub needs: Vec<Need>,
    /// What its output is.
    pub output: ShapeId,
    /// The item of its `for-each`.
    pub item: Option<ShapeId>,
    /// Its ports: what they are called, and the step behind them by its position in [`Index::steps`].
    pub ports: Vec<(String, usize)>,
    /// Its position among the steps of the pipeline in an order in which they can run, from 1.
    pub position: usize,
    /// Whether its pipeline as a whole has more than one round.
    pub rounds: bool,
    /// Whether an edge leads to it, so that it can be sent messages.
    pub receives: bool,
}

/// One step that another waits for.
#[derive(Clone, Debug)]
pub struct Need {
    /// The step, by its position in [`Index::steps`].
    pub step: usize,
    /// How it must have ended.
    pub when: When,
    /// Whether a `depends-on` says so; a reference implies it otherwise.
    pub declared: bool,
    /// The `depends-on`, or the first read.
    pub span: Span,
}

/// An item of the plan of a swarm; its text is the description of its symbol.
#[derive(Clone, Debug)]
pub struct PlanItem {
    /// The item.
    pub symbol: SymbolId,
    /// The member that does it.
    pub owner: Option<SymbolId>,
    /// The items that it depends on.
    pub needs: Vec<SymbolId>,
}

/// A template text or an expression, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextUse {
    /// All of it, quotes included; of a file, all of the file.
    pub span: Span,
    /// The step, agent, pack, member, swarm, provider or pipeline that contains it.
    pub owner: SymbolId,
    /// The pipeline whose steps it can read, where there is one.
    pub pipeline: Option<SymbolId>,
}

/// A path, and the file that it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathUse {
    /// The path as it is written, without quotes.
    pub span: Span,
    /// The file.
    pub file: FileId,
}

/// What a file takes in from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The file that says so.
    pub from: FileId,
    /// The file whose names it can use.
    pub file: FileId,
    /// What stands before these names; none where they stand as they are.
    pub alias: Option<String>,
}

/// What a value is.
#[derive(Clone, Debug)]
pub struct Shape {
    /// As the language writes it.
    pub text: String,
    /// What it is made of.
    pub kind: ShapeKind,
    /// Whether the value may be missing.
    pub optional: bool,
    /// The declared type that it is.
    pub declared: Option<SymbolId>,
}

/// What a value is made of.
#[derive(Clone, Debug)]
pub enum ShapeKind {
    /// A value without parts: a text, a number, or an unknown value.
    Plain,
    /// One of these words.
    Words(Vec<String>),
    /// `#true` or `#false`.
    Bool,
    /// A list of these.
    List(ShapeId),
    /// Texts to these.
    Map(ShapeId),
    /// Fields, each a symbol with a shape; in declaration order.
    Record(Vec<SymbolId>),
}

impl Index {
    /// A symbol.
    pub fn symbol(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.0 as usize]
    }

    /// A shape.
    pub fn shape(&self, id: ShapeId) -> &Shape {
        &self.shapes[id.0 as usize]
    }

    /// Every symbol with its id.
    pub fn list_symbols(&self) -> impl Iterator<Item = (SymbolId, &Symbol)> {
        self.symbols.iter().zip(0..).map(|(symbol, id)| (SymbolId(id), symbol))
    }

    /// The names that stand at an offset or end there.
    pub fn occurrences_at(&self, file: FileId, offset: u32) -> impl Iterator<Item = &Occurrence> {
        let until = self.occurrences.partition_point(|found| (found.span.file, found.span.start) <= (file, offset));
        // Names are short, and few stand in one place.
        let touches = move |found: &&Occurrence| found.span.file == file && found.span.touches_offset(offset);
        self.occurrences[..until].iter().rev().take(64).filter(touches)
    }

    /// Every place where a symbol stands, its definition included; by place.
    pub fn occurrences_of(&self, symbol: SymbolId) -> impl Iterator<Item = &Occurrence> {
        self.occurrences.iter().filter(move |found| found.symbol == symbol)
    }

    /// The names in a range of a file.
    pub fn occurrences_in(&self, file: FileId, range: Range<u32>) -> &[Occurrence] {
        let from = self.occurrences.partition_point(|found| (found.span.file, found.span.start) < (file, range.start));
        let to = self.occurrences.partition_point(|found| (found.span.file, found.span.start) < (file, range.end));
        &self.occurrences[from..to.max(from)]
    }

    /// Who says the text that stands at an offset: the innermost text, and everybody who says it.
    pub fn text_uses_at(&self, file: FileId, offset: u32) -> Vec<TextUse> {
        let around = self.texts.iter().filter(|text| text.span.file == file && text.span.touches_offset(offset));
        let mut around: Vec<TextUse> = around.copied().collect();
        if let Some(least) = around.iter().map(|text| text.span.len()).min() {
            around.retain(|text| text.span.len() == least);
        }
        around
    }

    /// Everybody who says something in a file that is a prompt.
    pub fn text_uses_in(&self, file: FileId) -> impl Iterator<Item = &TextUse> {
        self.texts.iter().filter(move |text| text.span.file == file)
    }

    /// The steps of a pipeline, by their positions in [`Index::steps`].
    pub fn steps_of(&self, pipeline: SymbolId) -> impl Iterator<Item = (usize, &Step)> {
        self.steps.iter().enumerate().filter(move |(_, step)| step.pipeline == pipeline)
    }

    /// How far above a step others run: for each that it waits for, directly or not, the fewest needs in between, from 1.
    pub fn upstream_steps(&self, step: usize) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = vec![(step, 0)];
        let mut seen = vec![false; self.steps.len()];
        seen[step] = true;
        let mut next = 0;
        // The list is a queue: what is nearer comes first, so the first way to a step is the shortest.
        while let Some(&(at, distance)) = found.get(next) {
            next += 1;
            for need in &self.steps[at].needs {
                if !std::mem::replace(&mut seen[need.step], true) {
                    found.push((need.step, distance + 1));
                }
            }
        }
        found.split_off(1)
    }

    /// The fields of a value, of the items of a list or map that it is included.
    pub fn shape_fields(&self, shape: ShapeId) -> &[SymbolId] {
        match &self.shape(shape).kind {
            ShapeKind::Record(fields) => fields,
            _ => &[],
        }
    }
}
