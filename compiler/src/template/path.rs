//! Paths in minijinja's tree: `output.planner.steps` is a root and its segments.
//!
//! An expression goes in; what it names comes out with its places, or nothing where it is computed.

use std::borrow::Cow;
use std::ops::Range;

use minijinja::machinery::Span;
use minijinja::machinery::ast::Expr;

use super::Root;

/// A reference that is written out: a root and its segments.
pub(super) struct Path<'a> {
    /// What is read.
    pub(super) root: Root,
    /// The name, if the root takes one, and fields.
    pub(super) segments: Vec<Segment<'a>>,
    /// From the root's start to the last segment's end.
    pub(super) whole: Range<usize>,
}

/// A part of a path behind its root.
pub(super) struct Segment<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) range: Range<usize>,
}

impl Path<'_> {
    /// The name of the step, port or parameter.
    pub(super) fn name(&self) -> Option<&str> {
        self.root.of().and(self.segments.first()).map(|segment| &*segment.text)
    }

    /// The fields, outermost first.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().skip(usize::from(self.root.of().is_some())).map(|segment| &*segment.text)
    }
}

/// The expression as a path, if it is one of a root.
pub(super) fn path<'a>(expr: &'a Expr<'_>) -> Option<Path<'a>> {
    let mut segments = Vec::new();
    let mut expr = expr;
    let end = range(expr.span()).end;
    loop {
        match expr {
            Expr::Var(var) => {
                segments.reverse();
                let root = Root::find(var.id)?;
                return Some(Path { root, segments, whole: range(var.span()).start..end });
            }
            Expr::GetAttr(attr) => {
                let end = range(attr.span()).end;
                segments.push(Segment { text: attr.name.into(), range: end - attr.name.len()..end });
                expr = &attr.expr;
            }
            Expr::GetItem(item) => {
                let Expr::Const(constant) = &item.subscript_expr else { return None };
                let text = match constant.value.as_str() {
                    Some(text) => text.to_owned(),
                    None => constant.value.as_i64()?.to_string(),
                };
                segments.push(Segment { text: text.into(), range: range(constant.span()) });
                expr = &item.expr;
            }
            _ => return None,
        }
    }
}

/// A span of minijinja as a range of bytes.
pub(super) fn range(span: Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}
