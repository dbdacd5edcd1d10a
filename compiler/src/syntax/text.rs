//! String values that know where each of their bytes came from.
//!
//! A decoded string is a row of pieces: runs copied from the source as they stand, and escapes. The pieces lead from any
//! range of the value back to the characters in the file, through escapes, line breaks and stripped indentation.

use std::ops::Range;

use crate::source::Span;

/// A string value with the way back to its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// The decoded value.
    pub value: Box<str>,
    /// How it is written.
    pub form: Form,
    /// Where it stands, quotes included.
    span: Span,
    /// Offset of the value's first byte from the start of the span, when the whole value is copied as it stands.
    offset: u32,
    /// Otherwise the pieces in order.
    pieces: Option<Box<[Piece]>>,
}

/// How a string is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A bare word.
    Bare,
    /// `"…"`
    Quoted,
    /// `#"…"#`
    Raw,
    /// `"""` over several lines.
    Lines,
    /// `#"""` over several lines.
    RawLines,
}

/// A stretch of a value and its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it starts in the value.
    pub(super) decoded: u32,
    /// Where it starts in the source, from the start of the string.
    pub(super) source: u32,
    /// The length in the source of an escape or line break, which is read as one; 0 for text copied as it stands.
    pub(super) escape: u32,
}

impl Text {
    /// A value that stands in the source as it is, `offset` bytes into its span.
    pub(super) fn verbatim(value: &str, form: Form, span: Span, offset: u32) -> Self {
        Self { value: value.into(), form, span, offset, pieces: None }
    }

    /// A value put together from pieces.
    pub(super) fn from_pieces(value: String, form: Form, span: Span, pieces: Vec<Piece>) -> Self {
        let (value, pieces) = (value.into_boxed_str(), Some(pieces.into_boxed_slice()));
        Self { value, form, span, offset: 0, pieces }
    }

    /// What stands at `span` as it is, without quotes.
    pub(crate) fn from_bare(value: &str, span: Span) -> Self {
        Self::verbatim(value, Form::Bare, span, 0)
    }

    /// A value that was made from what stands at `span`: every part of it leads back to the whole.
    pub(crate) fn from_made(value: String, span: Span) -> Self {
        let whole = Piece { decoded: 0, source: 0, escape: span.end - span.start };
        Self::from_pieces(value, Form::Quoted, span, vec![whole])
    }

    /// The decoded value.
    pub fn as_str(&self) -> &str {
        &self.value
    }

    /// Whether it is a bare word.
    pub fn is_bare(&self) -> bool {
        self.form == Form::Bare
    }

    /// The place in the file of a range of bytes of the value; a range inside an escape gives the whole escape.
    pub fn span(&self, range: Range<usize>) -> Span {
        let start = self.origin(range.start).0;
        let end = if range.end > range.start { self.origin(range.end - 1).1 } else { start };
        Span { start: self.span.start + start, end: self.span.start + end, ..self.span }
    }

    /// Where it stands, quotes included.
    pub fn outer_span(&self) -> Span {
        self.span
    }

    /// Moves the text within its file.
    pub(super) fn move_by(&mut self, shift: impl FnOnce(&mut Span)) {
        shift(&mut self.span);
    }

    /// Where a byte of the value comes from, and where the source goes on after it.
    fn origin(&self, at: usize) -> (u32, u32) {
        let at = u32::try_from(at.min(self.value.len())).expect("files are under 4 GiB");
        let Some(pieces) = &self.pieces else { return (self.offset + at, self.offset + at + 1) };
        let index = pieces.partition_point(|piece| piece.decoded <= at);
        // The first piece starts at 0, so only an empty value has no piece here.
        let Some(piece) = index.checked_sub(1).map(|index| pieces[index]) else { return (0, 0) };
        if piece.escape > 0 && at as usize == self.value.len() {
            // The end of a value that ends in an escape.
            (piece.source + piece.escape, piece.source + piece.escape)
        } else if piece.escape > 0 {
            (piece.source, piece.source + piece.escape)
        } else {
            let source = piece.source + (at - piece.decoded);
            (source, source + 1)
        }
    }
}
