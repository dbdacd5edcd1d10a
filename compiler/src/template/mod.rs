//! Parses prompts, other texts with interpolations, and conditions.
//!
//! In: a text. Out: its parts, its reads of the run's values, and its problems. Ranges are bytes of that text; the
//! parts cover it without gaps. The parser resolves no names: the caller does. It accepts any text, in linear time and
//! bounded depth.

mod applied;
mod blocks;
mod condition;
mod constant;
mod default;
mod directive;
mod divisor;
mod fact;
mod logic;
mod lower;
mod names;
mod path;
mod region;
mod scan;
#[cfg(test)]
mod tests;
mod tree;
mod unclosed;

use std::ops::Range;
use std::sync::Arc;

use swarmc_plan::Filter;

use crate::code::Code;

#[cfg(test)]
pub(crate) use applied::Applied;
pub(crate) use applied::{FILTERS, TESTS, list_terms as applied_terms};
pub(crate) use condition::{parse_expression, parse_tree};
pub(crate) use constant::constant_number;
pub(crate) use directive::{clip_word, filter_terms};
pub(crate) use divisor::{Divisor, Risks};
pub(crate) use fact::{Fact, Status, same_name, suggest_status};
pub(crate) use names::{OPENING, PLAIN, STATEMENTS, list_roots, list_terms};
pub(crate) use path::Path;
pub(crate) use scan::scan;
pub(crate) use tree::{Argument, Comparison, Const, Expr, ExprKind, Operator, Statement, Target, is_default};

/// How many problems of one text are reported.
pub(crate) const MAX_PROBLEMS: usize = 100;

/// A word of the language of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The word.
    pub word: &'static str,
    /// How it is written: `tail:N`.
    pub usage: String,
    /// What it gives.
    pub doc: &'static str,
    /// An example: of a directive within the task `show` of [`EXAMPLE_SPEC`](crate::interpolation::EXAMPLE_SPEC).
    pub example: &'static str,
    /// What the example becomes; a code where this version cannot run it.
    pub result: &'static str,
}

/// A text with interpolations.
#[derive(Debug, Default)]
pub(crate) struct Template {
    /// The pieces, in order, covering the text.
    pub(crate) parts: Vec<Part>,
    /// What the text reads, by place.
    pub(crate) reads: Vec<Read>,
    /// Where it may have no value although what it reads is there.
    pub(crate) risks: Risks,
    /// What is wrong with it, by place.
    pub(crate) problems: Vec<Problem>,
    /// Its logic, directives in place; empty where there is none, or none that could be read.
    pub(crate) logic: Vec<Statement>,
}

impl Template {
    /// The directive that is all of it, without filters.
    pub(crate) fn as_directive(&self) -> Option<&Directive> {
        match self.parts.as_slice() {
            [Part::Directive(directive)] if directive.filters.is_empty() => Some(directive),
            _ => None,
        }
    }
}

/// A piece of a [`Template`].
#[derive(Debug)]
pub(crate) enum Part {
    /// Text as it stands.
    Text(Range<usize>),
    /// The `\` of `\<<`, one byte: gives nothing.
    Escape,
    /// `<<…>>`, or its older notation.
    Directive(Directive),
    /// `{{…}}`, `{%…%}`, `{#…#}` or a whole raw region, delimiters included.
    Logic(Range<usize>),
}

/// `<<kind:name.field | filter>>`.
#[derive(Debug)]
pub(crate) struct Directive {
    /// What is read.
    pub(crate) kind: Kind,
    /// Of which step, port, parameter, pack, topic or path; none where nothing is named, as for `iteration`.
    pub(crate) name: Option<Spanned<String>>,
    /// Fields of the value, outermost first.
    pub(crate) fields: Vec<Spanned<String>>,
    /// What the value passes through, in order.
    pub(crate) filters: Vec<Spanned<Filter>>,
    /// All of it, delimiters included.
    pub(crate) range: Range<usize>,
    /// What holds where it stands, because of the logic around it.
    pub(crate) assumes: Arc<[Fact]>,
}

/// The word of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A value of the run.
    Read(Root),
    /// Template text from another file.
    Include,
    /// A file's contents.
    File,
}

/// What can be read of a run, in directives and expressions alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Root {
    /// A step's output in this round.
    Output,
    /// A step's output in the round before.
    Previous,
    /// How a step ended.
    Status,
    /// A step's exit code.
    Exit,
    /// Why a step failed.
    Error,
    /// What the last attempt of a step wrote to both of its streams.
    Log,
    /// The output of the step behind a port.
    Input,
    /// A parameter.
    Param,
    /// The number of the round.
    Iteration,
    /// `id` or `dir` of the run.
    Run,
    /// `name` of the task.
    Task,
    /// What was piped into the runner.
    Stdin,
    /// The item of a for-each.
    Item,
    /// The position of the item, from 0.
    Index,
    /// A context pack.
    Context,
    /// The messages for an agent.
    Inbox,
    /// A topic of a swarm's workspace.
    Shared,
    /// The roster of a swarm.
    Team,
    /// The plan items of a swarm.
    Plan,
}

/// The directives and expressions in a text that nothing renders, each with the word of what it reads. Only what surely
/// reads the run is one: `{{.Names}}` of another tool's templates, `<<EOF` and `<<` are not.
pub(crate) fn list_placeholders(text: &str) -> Vec<(Range<usize>, &'static str)> {
    // Few texts hold any of these, and a scan costs far more.
    if !text.contains("<<") && !text.contains("{{") && !text.contains("{%") {
        return Vec::new();
    }
    let template = scan(text);
    let directives = template.parts.iter().filter_map(|part| match part {
        Part::Directive(directive) => Some((directive.range.clone(), directive.kind.as_str())),
        Part::Text(_) | Part::Escape | Part::Logic(_) => None,
    });
    let expressions = template.parts.iter().filter_map(|part| match part {
        Part::Logic(range) => {
            let inside =
                |read: &&Read| !read.via_directive && range.start <= read.whole.start && read.whole.end <= range.end;
            let read = template.reads.iter().filter(inside).find(|read| read.name.is_some())?;
            Some((range.clone(), Kind::Read(read.root).as_str()))
        }
        Part::Text(_) | Part::Escape | Part::Directive(_) => None,
    });
    directives.chain(expressions).collect()
}

/// One place that reads a value of the run.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// What is read.
    pub(crate) root: Root,
    /// Of which step, port or parameter, as written: in expressions `_` may stand for `-` ([`same_name`]).
    pub(crate) name: Option<String>,
    /// Fields of the value, outermost first.
    pub(crate) fields: Box<[String]>,
    /// The name's place, or the root's where there is none.
    pub(crate) range: Range<usize>,
    /// The whole reference or directive.
    pub(crate) whole: Range<usize>,
    /// Whether a missing value does no harm here: a default, a test for being there, or a condition around it that
    /// proves it.
    pub(crate) guarded: bool,
    /// Whether it is guarded only because something before it read the same value without a guard.
    pub(crate) follows: bool,
    /// Whether the guard stands for an item that a computed key names, and not for the value itself.
    pub(crate) keyed: bool,
    /// Whether a directive reads; an expression otherwise.
    pub(crate) via_directive: bool,
    /// What holds where it stands, because of the logic around it.
    pub(crate) assumes: Arc<[Fact]>,
    /// Where each part of an expression ends whose fields follow, when a default or a test stands in for those as well:
    /// of `output.x.a.b | default(1)` behind `x` and behind `a`.
    pub(crate) steps: Box<[usize]>,
}

/// Something wrong with a text.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// What it is about: `BadDirective`, `TemplateError` or `LegacyDirective`.
    pub(crate) code: Code,
    /// The place.
    pub(crate) range: Range<usize>,
    /// What is wrong.
    pub(crate) message: String,
    /// What this place is.
    pub(crate) label: String,
    /// What to type.
    pub(crate) help: Option<String>,
    /// An edit that mends it.
    pub(crate) fix: Option<Fix>,
}

/// An edit that mends a [`Problem`].
#[derive(Clone, Debug)]
pub(crate) struct Fix {
    /// What it does, as an order.
    pub(crate) title: String,
    /// What is replaced.
    pub(crate) range: Range<usize>,
    /// By what.
    pub(crate) text: String,
    /// Whether that is certainly what was meant.
    pub(crate) certain: bool,
}

/// The condition of a `when` or an `until`.
#[derive(Debug, Default)]
pub(crate) struct Expression {
    /// What it reads, by place.
    pub(crate) reads: Vec<Read>,
    /// Where it may be without a result.
    pub(crate) risks: Risks,
    /// What is wrong with it, by place.
    pub(crate) problems: Vec<Problem>,
    /// Its truth, where that is the same whatever the run does.
    pub(crate) constant: Option<bool>,
    /// What its holding implies.
    pub(crate) proves: Vec<Fact>,
    /// The expression itself; none where it could not be read.
    pub(crate) tree: Option<Expr>,
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spanned<T> {
    /// The value.
    pub(crate) value: T,
    /// Its place.
    pub(crate) range: Range<usize>,
}

impl Problem {
    fn new(code: Code, range: Range<usize>, message: impl Into<String>, label: impl Into<String>) -> Problem {
        Problem { code, range, message: message.into(), label: label.into(), help: None, fix: None }
    }

    fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    fn fix(mut self, title: impl Into<String>, range: Range<usize>, text: impl Into<String>, certain: bool) -> Problem {
        self.fix = Some(Fix { title: title.into(), range, text: text.into(), certain });
        self
    }
}
