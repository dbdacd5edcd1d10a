//! A text put together from several places, with the way back to them: a prompt with its includes, prefix and suffix.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::source::{FileId, Span};
use crate::syntax::Text;
use crate::template::{self, Problem, Template};
use crate::text_cache::{CachedText, Derived};

/// A text whose every byte knows where it was written.
#[derive(Clone, Debug)]
pub(crate) struct MappedText {
    text: Held,
    pieces: Vec<Piece>,
    /// The files that were put in place of an include, and where that stood.
    includes: Vec<(FileId, Span)>,
}

/// A text: that of a file as it is, or one of our own.
#[derive(Clone, Debug)]
enum Held {
    File(Arc<CachedText>),
    Own(String),
}

impl Derived for Arc<Template> {
    fn from_text(text: &str) -> Arc<Template> {
        Arc::new(template::scan(text))
    }
}

/// Whether a scan of a text for includes would be worth its time.
struct MentionsInclude(bool);

impl Derived for MentionsInclude {
    fn from_text(text: &str) -> MentionsInclude {
        MentionsInclude(memchr::memmem::find(text.as_bytes(), b"include").is_some())
    }
}

/// Whether a text holds `${`, as shells write variables.
struct MentionsShell(bool);

impl Derived for MentionsShell {
    fn from_text(text: &str) -> MentionsShell {
        MentionsShell(memchr::memmem::find(text.as_bytes(), b"${").is_some())
    }
}

/// A run of bytes from one place.
#[derive(Clone, Debug)]
struct Piece {
    /// Where it starts in the text.
    at: usize,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    /// A file's bytes from this offset, and the spec that names the file.
    File(FileId, usize, FileId),
    /// A string's bytes from this offset of its value.
    Text(Box<Text>, usize),
    /// Made by us, on behalf of this place.
    Made(Span),
}

impl MappedText {
    /// An empty text on behalf of `span`.
    pub(crate) fn empty(span: Span) -> MappedText {
        MappedText {
            text: Held::Own(String::new()),
            pieces: vec![Piece { at: 0, origin: Origin::Made(span) }],
            includes: Vec::new(),
        }
    }

    /// The whole text of a file that the spec `home` names, or that such a file includes.
    pub(crate) fn from_file(file: FileId, facts: &Arc<CachedText>, home: FileId) -> MappedText {
        MappedText {
            text: Held::File(Arc::clone(facts)),
            pieces: vec![Piece { at: 0, origin: Origin::File(file, 0, home) }],
            includes: Vec::new(),
        }
    }

    /// The value of a string.
    pub(crate) fn from_string(text: &Text) -> MappedText {
        let origin = Origin::Text(Box::new(text.clone()), 0);
        MappedText {
            text: Held::Own(text.as_str().to_owned()),
            pieces: vec![Piece { at: 0, origin }],
            includes: Vec::new(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        match &self.text {
            Held::File(facts) => facts.text(),
            Held::Own(text) => text,
        }
    }

    /// What it says.
    pub(crate) fn template(&self) -> Arc<Template> {
        match &self.text {
            Held::File(facts) => Arc::clone(facts.derived()),
            Held::Own(text) => Derived::from_text(text),
        }
    }

    /// Whether a scan for includes would be worth its time.
    pub(crate) fn mentions_include(&self) -> bool {
        match &self.text {
            Held::File(facts) => facts.derived::<MentionsInclude>().0,
            Held::Own(text) => MentionsInclude::from_text(text).0,
        }
    }

    /// Whether a look for variables of a shell would be worth its time.
    pub(crate) fn mentions_shell(&self) -> bool {
        match &self.text {
            Held::File(facts) => facts.derived::<MentionsShell>().0,
            Held::Own(text) => MentionsShell::from_text(text).0,
        }
    }

    /// What is known of its text, when it is that of a file as it is.
    pub(crate) fn facts(&self) -> Option<&Arc<CachedText>> {
        match &self.text {
            Held::File(facts) => Some(facts),
            Held::Own(_) => None,
        }
    }

    /// The text, to be changed.
    fn make_owned(&mut self) -> &mut String {
        if let Held::File(facts) = &self.text {
            self.text = Held::Own(facts.text().to_owned());
        }
        match &mut self.text {
            Held::Own(text) => text,
            Held::File(_) => unreachable!("it has been made our own"),
        }
    }

    /// A problem of the text, at its place.
    pub(crate) fn report_problem(&self, problem: &Problem) -> Diagnostic {
        let place = |range: &Range<usize>| self.span(range.clone());
        let diagnostic = Diagnostic::new(problem.code, problem.message.clone())
            .label(place(&problem.range), problem.label.clone())
            .help_maybe(problem.help.clone());
        match &problem.fix {
            Some(fix) if fix.certain => diagnostic.fix(fix.title.clone(), place(&fix.range), fix.text.clone()),
            Some(fix) => diagnostic.unsafe_fix(fix.title.clone(), place(&fix.range), fix.text.clone()),
            None => diagnostic,
        }
    }

    /// The place of a range of the text. One that runs over several places is given by its first.
    pub(crate) fn span(&self, range: Range<usize>) -> Span {
        let index = self.piece_at(range.start);
        let piece = &self.pieces[index];
        let end = self.pieces.get(index + 1).map_or(self.text().len(), |next| next.at).max(range.start);
        let range = range.start..range.end.min(end);
        let inside = |offset: usize| range.start - piece.at + offset..range.end - piece.at + offset;
        match &piece.origin {
            Origin::File(file, offset, _) => {
                let inside = inside(*offset);
                let byte = |at: usize| u32::try_from(at).expect("files are under 4 GiB");
                Span::new(*file, byte(inside.start), byte(inside.end))
            }
            Origin::Text(text, offset) => text.span(inside(*offset)),
            Origin::Made(span) => *span,
        }
    }

    /// The spec in which a byte stands, or which names the file that it stands in: names mean what they mean there.
    pub(crate) fn home(&self, at: usize) -> FileId {
        match &self.pieces[self.piece_at(at)].origin {
            Origin::File(_, _, home) => *home,
            Origin::Text(text, _) => text.span(0..0).file,
            Origin::Made(span) => span.file,
        }
    }

    /// The index of the piece that holds a byte.
    fn piece_at(&self, at: usize) -> usize {
        // The first piece begins at 0, and of several that begin in one place all but the last are empty.
        self.pieces.partition_point(|piece| piece.at <= at).saturating_sub(1)
    }

    /// Appends a range of another text.
    pub(crate) fn append(&mut self, other: &MappedText, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        // A part of a text may lack what its includes stand for.
        if range == (0..other.text().len()) {
            self.includes.extend_from_slice(&other.includes);
        }
        let (first, end) = (other.piece_at(range.start), self.text().len());
        for piece in other.pieces[first..].iter().take_while(|piece| piece.at < range.end) {
            let skipped = range.start.saturating_sub(piece.at);
            let origin = match &piece.origin {
                Origin::File(file, offset, home) => Origin::File(*file, offset + skipped, *home),
                Origin::Text(text, offset) => Origin::Text(text.clone(), offset + skipped),
                Origin::Made(span) => Origin::Made(*span),
            };
            let at = end + piece.at.max(range.start) - range.start;
            self.pieces.push(Piece { at, origin });
        }
        self.make_owned().push_str(&other.text()[range]);
    }

    /// Notes that a file was put in place of an include that stood at `span`.
    pub(crate) fn add_include(&mut self, file: FileId, span: Span) {
        self.includes.push((file, span));
    }

    /// The files that were put in place of an include, and where that stood.
    pub(crate) fn includes(&self) -> &[(FileId, Span)] {
        &self.includes
    }

    /// The files whose text it holds, each once.
    pub(crate) fn files(&self) -> BTreeSet<FileId> {
        let file = |piece: &Piece| match piece.origin {
            Origin::File(file, ..) => Some(file),
            Origin::Text(..) | Origin::Made(_) => None,
        };
        // An included file that is empty has left no piece.
        self.pieces.iter().filter_map(file).chain(self.includes.iter().map(|(file, _)| *file)).collect()
    }

    /// Appends text of our own on behalf of `span`.
    pub(crate) fn append_made(&mut self, text: &str, span: Span) {
        self.pieces.push(Piece { at: self.text().len(), origin: Origin::Made(span) });
        self.make_owned().push_str(text);
    }

    /// This text without the line breaks at its end.
    pub(crate) fn trim_line_breaks(&self) -> MappedText {
        let mut trimmed = self.clone();
        let end = self.text().trim_end_matches(['\n', '\r']).len();
        if end < self.text().len() {
            // Pieces beyond the end may stay: no byte leads to them.
            trimmed.make_owned().truncate(end);
        }
        trimmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_leads_back_to_its_place() {
        let (one, two) = (FileId::new(0), FileId::new(1));
        let facts = |text: &str| Arc::new(CachedText::new(text.into()));
        let outer = MappedText::from_file(one, &facts("before<<include:x>>after"), one);
        let inner = MappedText::from_file(two, &facts("INSIDE"), one);
        let mut passage = MappedText::empty(Span::new(one, 0, 0));
        passage.append(&outer, 0..6);
        passage.append(&inner, 0..6);
        passage.append(&outer, 19..24);
        assert_eq!(passage.text(), "beforeINSIDEafter");
        assert_eq!(passage.span(2..4), Span::new(one, 2, 4));
        assert_eq!(passage.span(6..12), Span::new(two, 0, 6));
        assert_eq!(passage.span(13..17), Span::new(one, 20, 24));
        assert_eq!(passage.span(10..15), Span::new(two, 4, 6));
        assert_eq!(passage.home(8), one);
    }
}
