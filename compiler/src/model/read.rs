//! What texts and conditions read: the place, and the declaration behind the name.

use std::sync::Arc;

use crate::ast::Name;
use crate::source::Span;
use crate::template::{Fact, Root};

/// A parameter, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParamRef {
    /// Of the pipeline.
    Pipeline(usize),
    /// Of the whole spec.
    Spec(usize),
}

/// What a text or condition reads, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadTarget {
    /// A step, also where a port leads to it.
    Step(usize),
    Param(ParamRef),
    /// A context pack.
    Pack(usize),
}

/// A place that reads a value of the run.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub root: Root,
    /// What is read, where that has a declaration.
    pub target: Option<ReadTarget>,
    /// The step, port or parameter as written; `_` may stand for `-`.
    pub name: Option<String>,
    /// Fields of the value, outermost first, each with its place.
    pub fields: Vec<Name>,
    /// The smallest place to point at.
    pub span: Span,
    /// The whole directive or reference.
    pub whole: Span,
    /// Whether a missing value does no harm.
    pub guarded: bool,
    /// Whether the guard is not for the value itself: it is for a field that the type lets be missing, or stands only
    /// behind a read that has none.
    pub leans: bool,
    /// Whether that is because the field may be missing: its guard covers the value as well where a step runs without it.
    pub optional: bool,
    /// Whether it is a directive rather than part of an expression.
    pub directive: bool,
    /// Whether the `when` of the step reads it, before anything else of the step is read.
    pub in_when: bool,
    /// What holds where it stands.
    pub assumes: Arc<[Fact]>,
}

impl Read {
    /// The step read.
    pub(crate) fn step(&self) -> Option<usize> {
        match self.target {
            Some(ReadTarget::Step(step)) => Some(step),
            _ => None,
        }
    }

    /// The parameter read.
    pub(crate) fn param(&self) -> Option<ParamRef> {
        match self.target {
            Some(ReadTarget::Param(param)) => Some(param),
            _ => None,
        }
    }

    /// The context pack read.
    pub(crate) fn pack(&self) -> Option<usize> {
        match self.target {
            Some(ReadTarget::Pack(pack)) => Some(pack),
            _ => None,
        }
    }

    /// Whether the place says what holds without the value, so that its step runs also where the value is missing.
    pub(crate) fn guards_step(&self) -> bool {
        self.guarded && !self.leans
    }
}
