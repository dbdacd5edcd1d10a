//! The text of a compilation: files, places in them, and lines.
//!
//! Files come in as text under a workspace-relative name; nothing here reads a disk. A line index built when a file is added
//! answers every question about lines in O(log n), so showing a diagnostic never scans a whole file.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

/// A file of a compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

impl FileId {
    /// The file that was added as number `index`, from 0.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The number of the file, from 0, in the order of adding.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A range of bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub const fn new(file: FileId, start: u32, end: u32) -> Self {
        Self { file, start, end }
    }

    /// The number of bytes.
    pub const fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether this is a place between two bytes.
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The bytes as a range that slices text.
    pub const fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Everything from the start of this span to the end of `last`.
    pub const fn to(self, last: Span) -> Self {
        Self { end: last.end, ..self }
    }

    /// Whether the byte at `offset` lies in this span, or the span ends there.
    pub const fn touches_offset(self, offset: u32) -> bool {
        self.start <= offset && offset <= self.end
    }
}

/// A line and a column, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// The text of every file of a compilation.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// No files yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file under its workspace-relative name, written with `/`.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<Arc<str>>) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).expect("a compilation has fewer than 2^32 files"));
        self.files.push(SourceFile::new(name.into(), text.into()));
        id
    }

    /// The text of a file.
    pub fn text(&self, file: FileId) -> &str {
        &self.file(file).text
    }

    /// The text of a place.
    pub fn slice(&self, span: Span) -> &str {
        &self.text(span.file)[span.range()]
    }

    /// The name that a file was added under.
    pub fn name(&self, file: FileId) -> &str {
        &self.file(file).name
    }

    /// The file itself, cheap to clone and to show.
    pub fn file(&self, file: FileId) -> &SourceFile {
        &self.files[file.index()]
    }

    /// The file of that name.
    pub fn find(&self, name: &str) -> Option<FileId> {
        let index = self.files.iter().position(|file| &*file.name == name)?;
        Some(FileId(u32::try_from(index).expect("a compilation has fewer than 2^32 files")))
    }

    /// Every file in the order of adding.
    pub fn files(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.files.len())
            .map(|index| FileId(u32::try_from(index).expect("a compilation has fewer than 2^32 files")))
    }

    /// Line and column of a byte.
    pub fn position(&self, file: FileId, offset: u32) -> Position {
        self.file(file).position(offset as usize)
    }
}

/// One file: its name, its text and where its lines start.
#[derive(Debug, Clone)]
pub struct SourceFile {
    name: Arc<str>,
    text: Arc<str>,
    /// Offset of the first byte of every line, so never empty.
    /// Looked for by the first who asks.
    lines: Arc<OnceLock<Vec<u32>>>,
}

impl SourceFile {
    /// A text under a name.
    pub fn new(name: String, text: Arc<str>) -> Self {
        Self { name: name.into(), text, lines: Arc::default() }
    }

    fn line_starts(&self) -> &[u32] {
        self.lines.get_or_init(|| {
            let starts = memchr::memchr_iter(b'\n', self.text.as_bytes()).map(|newline| span_offset(newline + 1));
            std::iter::once(0).chain(starts).collect()
        })
    }

    /// The name that it was added under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whole text, cheap to keep.
    pub fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// Line and column of a byte; an offset past the end is the end.
    pub fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.line_at(offset);
        let before = &self.text[self.line_starts()[line] as usize..offset];
        Position { line: line + 1, column: before.chars().count() + 1 }
    }

    /// The offset of a line and a column, both from 1; of one that is not there, the end of the line or of the text.
    pub fn offset(&self, line: usize, column: usize) -> usize {
        let Some(&start) = self.line_starts().get(line.saturating_sub(1)) else { return self.text.len() };
        let rest = self.line(line);
        let inside = rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at);
        start as usize + inside
    }

    /// The text of a line, from 1, without its line break; empty when there is no such line.
    pub fn line(&self, number: usize) -> &str {
        let Some(line) = number.checked_sub(1).filter(|&line| line < self.line_starts().len()) else { return "" };
        self.text[self.line_starts()[line] as usize..self.line_end(line)].trim_end_matches(['\n', '\r'])
    }

    /// The index of the line that holds a byte, from 0.
    fn line_at(&self, offset: usize) -> usize {
        // The first line starts at 0, so at least one start is not behind the offset.
        self.line_starts().partition_point(|&start| start as usize <= offset) - 1
    }

    /// The offset after a line and its line break.
    fn line_end(&self, line: usize) -> usize {
        self.line_starts().get(line + 1).map_or(self.text.len(), |&start| start as usize)
    }
}

impl SourceCode for SourceFile {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        context_lines_before: usize,
        context_lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let (start, end) = (span.offset(), span.offset().saturating_add(span.len()));
        if end > self.text.len() {
            return Err(MietteError::OutOfBounds);
        }
        let line = self.line_at(start);
        // A span that ends with a line break does not reach the next line; an empty one stays in its own.
        let last = self.line_at(end.saturating_sub(1).max(start));
        let first = line.saturating_sub(context_lines_before);
        // Asked for no context, miette wants the place of the span itself rather than its line.
        let (from, column) = if context_lines_before == 0 {
            (start, self.position(start).column - 1)
        } else {
            (self.line_starts()[first] as usize, 0)
        };
        let until = self.line_end((last + context_lines_after).min(self.line_starts().len() - 1)).max(end);
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.to_string(),
            &self.text.as_bytes()[from..until],
            (from, until - from).into(),
            first,
            column,
            self.line_starts().len(),
        )))
    }
}

/// An offset as spans store it; files past 4 GiB are refused long before their spans matter.
fn span_offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// What a spec without a `workflow` is called: its file, without folder and ending.
pub(crate) fn file_stem(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name.strip_suffix(".kdl").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile::new("flow.kdl".to_owned(), text.into())
    }

    #[test]
    fn columns_count_characters() {
        let file = file("task é\n  größe x\n");
        assert_eq!(file.position(0), Position { line: 1, column: 1 });
        assert_eq!(file.position(7), Position { line: 1, column: 7 });
        assert_eq!(file.position(file.text().find('x').unwrap()), Position { line: 2, column: 9 });
        assert_eq!(file.position(9999), Position { line: 3, column: 1 });
        let there_and_back = |offset: usize| {
            let Position { line, column } = file.position(offset);
            file.offset(line, column)
        };
        assert_eq!([0, 5, 7, 9].map(there_and_back), [0, 5, 7, 9]);
        assert_eq!([file.offset(1, 99), file.offset(99, 1)], ["task é".len(), file.text().len()]);
    }

    #[test]
    fn files_are_found_by_name() {
        let mut sources = Sources::new();
        let first = sources.add("a.kdl", "one");
        let second = sources.add("dir/b.kdl", "two");
        assert_eq!(sources.find("dir/b.kdl"), Some(second));
        assert_eq!(sources.find("b.kdl"), None);
        assert_eq!(sources.files().collect::<Vec<_>>(), [first, second]);
        assert_eq!(sources.slice(Span::new(second, 1, 3)), "wo");
    }

    #[test]
    fn lines_are_shown_without_their_breaks() {
        let file = file("a\r\nb\n\nc");
        let lines: Vec<_> = (0..6).map(|number| file.line(number)).collect();
        assert_eq!(lines, ["", "a", "b", "", "c", ""]);
    }

    #[test]
    fn a_span_is_read_with_the_lines_around_it() {
        let file = file("one\ntwo\nthree\nfour\nfive\n");
        let read = |offset: usize, len: usize, context: usize| {
            let contents = file.read_span(&(offset, len).into(), context, context).unwrap();
            (String::from_utf8(contents.data().to_vec()).unwrap(), contents.line(), contents.column())
        };
        assert_eq!(read(9, 2, 1), ("two\nthree\nfour\n".to_owned(), 1, 0));
        assert_eq!(read(0, 3, 1), ("one\ntwo\n".to_owned(), 0, 0));
        assert_eq!(read(9, 2, 0), ("hree\n".to_owned(), 2, 1));
        assert_eq!(read(24, 0, 2), ("four\nfive\n".to_owned(), 3, 0));
        assert!(file.read_span(&(24, 1).into(), 1, 1).is_err());
    }
}
