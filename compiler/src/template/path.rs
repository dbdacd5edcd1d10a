//! Paths in expressions: `output.planner.steps` is a root and its segments.

use std::ops::Range;

use super::Root;

/// A reference that is written out: a root and its segments.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// What is read.
    pub(crate) root: Root,
    /// The name, if the root takes one, and fields.
    pub(crate) segments: Vec<Segment>,
}

/// A part of a path behind its root.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// As written, without quotes; the digits of a number.
    pub(crate) text: String,
    /// The number of an item, where it is one.
    pub(crate) index: Option<i64>,
    /// Its place, quotes included.
    pub(crate) range: Range<usize>,
}

impl Path {
    /// The name of the step, port or parameter.
    pub(crate) fn name(&self) -> Option<&str> {
        self.root.required_name().and(self.segments.first()).map(|segment| segment.text.as_str())
    }

    /// The fields, outermost first.
    pub(crate) fn fields(&self) -> &[Segment] {
        let named = usize::from(self.root.required_name().is_some()).min(self.segments.len());
        &self.segments[named..]
    }

    /// The texts of the fields.
    pub(super) fn field_names(&self) -> Vec<String> {
        self.fields().iter().map(|field| field.text.clone()).collect()
    }
}
