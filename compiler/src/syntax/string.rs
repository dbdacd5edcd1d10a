//! Strings: a token in, its value and the way back to the source out.
//!
//! Knows escapes, raw strings and the indentation of multi-line strings. What is wrong in a string is reported, and its value
//! is then as near to what was meant as can be told.

use super::chars::{self, CLASSES, Class, STOPS};
use super::lex::escape_end;
use super::problem::{Problem, ProblemKind, Problems};
use super::text::{Form, Piece, Text};
use super::token::TokenKind;
use crate::source::{FileId, Span};

/// Reads strings of one text.
pub(super) struct Strings<'t> {
    pub(super) text: &'t str,
    pub(super) file: FileId,
}

/// A value in the making.
struct Builder<'t> {
    text: &'t str,
    /// Where the string starts.
    start: usize,
    value: String,
    pieces: Vec<Piece>,
}

/// A line of a multi-line string, escaped line breaks taken as part of it.
struct Line {
    start: usize,
    /// The offset before its line break.
    end: usize,
    /// The length of the line break.
    newline: usize,
    /// Whether white space in it is escaped.
    folded: bool,
}

impl<'t> Strings<'t> {
    /// Reads the string from `start` to `end`, a token of one of the kinds of strings.
    pub(super) fn read_string(
        &self,
        kind: TokenKind,
        plain: bool,
        start: usize,
        end: usize,
        problems: &mut Problems,
    ) -> Text {
        let span = self.make_span(start, end);
        match kind {
            // Without escapes and forbidden characters, the value is the text as it stands.
            TokenKind::Quoted if plain => Text::verbatim(&self.text[start + 1..end - 1], Form::Quoted, span, 1),
            TokenKind::Quoted | TokenKind::BrokenLines => self.read_quoted(kind, start, end, problems),
            TokenKind::Raw => self.read_raw(start, end, problems),
            TokenKind::Lines => self.read_lines(start, end, 3, Form::Lines, problems),
            TokenKind::RawLines => self.read_lines(start, end, 3 + self.count_hashes(start), Form::RawLines, problems),
            TokenKind::LegacyRaw => self.legacy_raw(start, end, problems),
            _ => self.read_unclosed(start, end, problems),
        }
    }

    fn make_span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, span_offset(start), span_offset(end))
    }

    fn count_hashes(&self, start: usize) -> usize {
        self.text.as_bytes()[start..].iter().take_while(|&&byte| byte == b'#').count()
    }

    fn make_builder(&self, start: usize, capacity: usize) -> Builder<'t> {
        Builder { text: self.text, start, value: String::with_capacity(capacity), pieces: Vec::new() }
    }

    fn read_quoted(&self, kind: TokenKind, start: usize, end: usize, problems: &mut Problems) -> Text {
        let hashes = self.count_hashes(start);
        let (from, to) = (start + hashes + 1, end - hashes - 1);
        if kind == TokenKind::BrokenLines {
            problems.add(|| self.broken_lines(start, end, hashes));
        }
        let mut builder = self.make_builder(start, to - from);
        self.read_content(from, to, hashes == 0, &mut builder, problems);
        builder.finish(if hashes == 0 { Form::Quoted } else { Form::Raw }, self.make_span(start, end))
    }

    fn broken_lines(&self, start: usize, end: usize, hashes: usize) -> Problem {
        let line_end = chars::line_end(self.text, start);
        let quotes = &self.text[start..=start + hashes];
        let marks = &self.text[start..start + hashes];
        let body = &self.text[start + hashes + 1..end - hashes - 1];
        let several = format!("{marks}\"\"\"");
        Problem::new(
            self.make_span(start, line_end),
            "a string between single quotes ends on its line",
            "this one goes on",
        )
        .second_label(self.make_span(end - hashes - 1, end), "up to here")
        .help(format!(
            "write `{several}`, then the text on lines of its own, then `\"\"\"{marks}` on a line of its own"
        ))
        .unsafe_fix(
            format!("write `{several}` instead of `{quotes}`"),
            self.make_span(start, end),
            format!("{several}\n{body}\n\"\"\"{marks}"),
        )
    }

    fn read_raw(&self, start: usize, end: usize, problems: &mut Problems) -> Text {
        let hashes = self.count_hashes(start);
        let (from, to) = (start + hashes + 1, end - hashes - 1);
        let body = &self.text[from..to];
        if body == "\"" || body.starts_with("\"\"") {
            problems.add(|| {
                let marks = &self.text[start..start + hashes];
                Problem::new(
                    self.make_span(start, end),
                    format!("after `{marks}\"\"\"` the text starts on the next line"),
                    "this opens a string of several lines",
                )
                .help("break the line after `\"\"\"`, or write a quoted string with `\\\"` for each quote")
            });
        }
        self.report_forbidden(from, to, problems);
        let span = self.make_span(start, end);
        // `#"""one line"""#` means the line.
        match body.strip_prefix("\"\"").and_then(|rest| rest.strip_suffix("\"\"")) {
            Some(inner) => Text::verbatim(inner, Form::Raw, span, span_offset(hashes + 3)),
            None => Text::verbatim(body, Form::Raw, span, span_offset(hashes + 1)),
        }
    }

    fn legacy_raw(&self, start: usize, end: usize, problems: &mut Problems) -> Text {
        let hashes = self.count_hashes(start + 1);
        let (from, to) = (start + hashes + 2, end - hashes - 1);
        let body = &self.text[from..to];
        let span = self.make_span(start, end);
        let marks = "#".repeat(hashes.max(1));
        let several = chars::line_end(body, 0) < body.len();
        let written =
            if several { format!("{marks}\"\"\"\n{body}\n\"\"\"{marks}") } else { format!("{marks}\"{body}\"{marks}") };
        problems.add(|| {
            let shape = if several { "#\"\"\"" } else { "#\"…\"#" };
            Problem::new(self.make_span(start, from), "`r\"…\"` is a raw string of KDL 1", "KDL 1")
                .kind(ProblemKind::V1Literal)
                .help(format!("write `{shape}`"))
                .fix("write it as a raw string of KDL 2", span, written)
        });
        self.report_forbidden(from, to, problems);
        Text::verbatim(body, Form::Raw, span, span_offset(from - start))
    }

    /// A string without its end.
    fn read_unclosed(&self, start: usize, end: usize, problems: &mut Problems) -> Text {
        let legacy = usize::from(self.text.as_bytes()[start] == b'r');
        let hashes = self.count_hashes(start + legacy);
        let quotes = start + legacy + hashes;
        let several = self.text[quotes..end].starts_with("\"\"\"");
        let from = quotes + if several { 3 } else { 1 };
        let close = format!("{}{}", if several { "\"\"\"" } else { "\"" }, "#".repeat(hashes));
        problems.add(|| {
            let problem = Problem::new(
                self.make_span(start, from),
                format!("this string has no closing `{close}`"),
                format!("no `{close}` follows"),
            );
            if several {
                problem.help(format!("write `{close}` on a line of its own behind the text"))
            } else {
                problem.help(format!("write `{close}` where the text ends")).unsafe_fix(
                    format!("write `{close}` at the end"),
                    self.make_span(end, end),
                    close.clone(),
                )
            }
        });
        let mut builder = self.make_builder(start, end - from);
        builder.copy(from, end);
        let form = match (several, hashes + legacy) {
            (false, 0) => Form::Quoted,
            (false, _) => Form::Raw,
            (true, 0) => Form::Lines,
            (true, _) => Form::RawLines,
        };
        builder.finish(form, self.make_span(start, end))
    }

    /// Adds the text from `from` to `to`, its escapes resolved.
    fn read_content(&self, from: usize, to: usize, escapes: bool, builder: &mut Builder<'t>, problems: &mut Problems) {
        let bytes = self.text.as_bytes();
        let (mut copied, mut at) = (from, from);
        while at < to {
            let byte = bytes[at];
            if !STOPS[byte as usize] {
                at += 1;
            } else if byte == b'\\' && escapes {
                builder.copy(copied, at);
                at = self.read_escape(at, builder, problems).min(to);
                copied = at;
            // A quote is plain in a string of several lines, and a backslash in a raw one.
            } else if byte == b'"' || byte == b'\\' {
                at += 1;
            } else {
                let (class, length) = chars::class_at(self.text, at).unwrap_or((Class::Word, 1));
                if class == Class::Forbidden {
                    problems.add(|| forbidden_character(self.text, self.make_span(at, at + length)));
                }
                at += length;
            }
        }
        builder.copy(copied, to);
    }

    /// Resolves the escape at a backslash and gives the offset after it.
    fn read_escape(&self, backslash: usize, builder: &mut Builder<'t>, problems: &mut Problems) -> usize {
        let end = escape_end(self.text, backslash);
        let character = match &self.text[backslash + 1..end] {
            "n" => '\n',
            "t" => '\t',
            "r" => '\r',
            "s" => ' ',
            "b" => '\u{8}',
            "f" => '\u{C}',
            "\\" => '\\',
            "\"" => '"',
            "u" => return self.read_unicode(backslash, builder, problems),
            white
                if white
                    .chars()
                    .all(|character| matches!(chars::classify_char(character), Class::Space | Class::Newline)) =>
            {
                return end;
            }
            _ => {
                problems.add(|| self.bad_escape(backslash, end));
                builder.copy(backslash, end);
                return end;
            }
        };
        builder.push_char(character, backslash, end);
        end
    }

    /// `\u{…}`
    fn read_unicode(&self, backslash: usize, builder: &mut Builder<'t>, problems: &mut Problems) -> usize {
        let bytes = self.text.as_bytes();
        let open = backslash + 2;
        // A seventh digit is one too many, whatever comes behind it.
        let digits = bytes[open..].iter().skip(1).take(7).take_while(|byte| byte.is_ascii_hexdigit()).count();
        let close = open + 1 + digits;
        // The closing quotes follow at the latest, so `open` lies in the text.
        let shaped = bytes[open] == b'{' && (1..=6).contains(&digits) && bytes.get(close) == Some(&b'}');
        if !shaped {
            problems.add(|| {
                let sample = if bytes[open] == b'{' { "\\u{1F41D}" } else { "\\u{E9}" };
                Problem::new(self.make_span(backslash, open), "`\\u` needs a code in braces", "an unfinished escape")
                    .help(format!("write one to six hexadecimal digits: `{sample}`"))
            });
            builder.copy(backslash, open);
            return open;
        }
        let end = close + 1;
        match u32::from_str_radix(&self.text[open + 1..close], 16).ok().and_then(char::from_u32) {
            Some(character) => builder.push_char(character, backslash, end),
            None => {
                problems.add(|| {
                    let written = &self.text[backslash..end];
                    Problem::new(
                        self.make_span(backslash, end),
                        format!("`{written}` is no character"),
                        "no such character",
                    )
                    .help("write a Unicode code up to `10FFFF`, without `D800` to `DFFF`")
                });
                builder.copy(backslash, end);
            }
        }
        end
    }

    fn bad_escape(&self, backslash: usize, end: usize) -> Problem {
        let span = self.make_span(backslash, end);
        let place = self.make_span(backslash, backslash + 1);
        let written = &self.text[backslash..end];
        if self.text[backslash..].starts_with("\\<<") {
            let span = self.make_span(backslash, backslash + 3);
            return Problem::new(span, "`\\<<` is not an escape in a quoted string", "no such escape")
                .help("write `\\\\<<`, or a raw string `#\"…\"#` with `\\<<` in it")
                .fix("write `\\\\<<`", place, "\\\\");
        }
        let problem = Problem::new(span, format!("`{written}` is not an escape"), "no such escape");
        match written {
            "\\/" | "\\'" | "\\`" | "\\$" => {
                let bare = &written[1..];
                problem.help(format!("write `{bare}`: it needs no backslash")).fix(
                    format!("write `{bare}`"),
                    span,
                    bare,
                )
            }
            "\\0" => problem.help("write `\\u{0}`").unsafe_fix("write `\\u{0}`", span, "\\u{0}"),
            _ => problem.help(format!("write `\\{written}` for a backslash, or a raw string `#\"…\"#`")).unsafe_fix(
                format!("write `\\{written}`"),
                place,
                "\\\\",
            ),
        }
    }

    /// Reports forbidden characters between two places.
    fn report_forbidden(&self, from: usize, to: usize, problems: &mut Problems) {
        for (index, &byte) in self.text.as_bytes()[from..to].iter().enumerate() {
            // Only first bytes of characters are of these classes, so that `at` is no place within one.
            if !matches!(CLASSES[byte as usize], Class::Forbidden | Class::Unsure) {
                continue;
            }
            let at = from + index;
            if let Some((Class::Forbidden, length)) = chars::class_at(self.text, at) {
                problems.add(|| forbidden_character(self.text, self.make_span(at, at + length)));
            }
        }
    }

    /// A multi-line string; `marks` is the length of its opening quotes with the `#`.
    fn read_lines(&self, start: usize, end: usize, marks: usize, form: Form, problems: &mut Problems) -> Text {
        let (from, to) = (start + marks, end - marks);
        let span = self.make_span(start, end);
        let escapes = form == Form::Lines;
        let mut builder = self.make_builder(start, to - from);
        let first = match chars::class_at(self.text, from) {
            Some((Class::Newline, length)) if from < to => from + length,
            _ => {
                problems.add(|| self.not_on_next_line(start, from, to, end));
                if chars::line_end(&self.text[from..to], 0) == to - from {
                    self.read_content(from, to, escapes, &mut builder, problems);
                    return builder.finish(form, span);
                }
                from
            }
        };
        let mut lines = self.split_lines(first, to, escapes);
        let last = lines.pop().unwrap_or(Line { start: first, end: to, newline: 0, folded: false });
        let closing = self.unfold_line(&last);
        let prefix = if chars::is_blank(&closing) {
            closing
        } else {
            problems.add(|| self.not_on_own_line(&last, marks, end));
            let blank = chars::skip_class(&closing, 0, Class::Space);
            lines.push(last);
            closing[..blank].to_owned()
        };
        self.dedent_lines(&lines, &prefix, end - marks, escapes, &mut builder, problems);
        builder.finish(form, span)
    }

    /// The lines between two places, one at least; a line break that is escaped ends none.
    fn split_lines(&self, from: usize, to: usize, escapes: bool) -> Vec<Line> {
        let bytes = self.text.as_bytes();
        let mut lines = Vec::new();
        let (mut start, mut at, mut folded) = (from, from, false);
        while at < to {
            let byte = bytes[at];
            if !STOPS[byte as usize] || byte == b'"' {
                at += 1;
            } else if byte == b'\\' {
                let end = if escapes { escape_end(self.text, at).min(to) } else { at + 1 };
                folded |=
                    escapes && matches!(chars::class_at(self.text, at + 1), Some((Class::Space | Class::Newline, _)));
                at = end;
            } else {
                match chars::class_at(self.text, at) {
                    Some((Class::Newline, newline)) => {
                        lines.push(Line { start, end: at, newline, folded });
                        at += newline;
                        (start, folded) = (at, false);
                    }
                    Some((_, length)) => at += length,
                    None => at += 1,
                }
            }
        }
        lines.push(Line { start, end: to, newline: 0, folded });
        lines
    }

    /// A line without the white space that is escaped in it.
    fn unfold_line(&self, line: &Line) -> String {
        if !line.folded {
            return self.text[line.start..line.end].to_owned();
        }
        let mut unfolded = String::new();
        let (mut copied, mut at) = (line.start, line.start);
        while let Some(found) = self.text[at..line.end].find('\\') {
            let backslash = at + found;
            at = escape_end(self.text, backslash).min(line.end);
            if matches!(chars::class_at(self.text, backslash + 1), Some((Class::Space | Class::Newline, _))) {
                unfolded.push_str(&self.text[copied..backslash]);
                copied = at;
            }
        }
        unfolded.push_str(&self.text[copied..line.end]);
        unfolded
    }

    /// Adds the lines without the indentation that the closing quotes have.
    fn dedent_lines(
        &self,
        lines: &[Line],
        prefix: &str,
        close: usize,
        escapes: bool,
        builder: &mut Builder<'t>,
        problems: &mut Problems,
    ) {
        let mut complained = false;
        for (index, line) in lines.iter().enumerate() {
            let written = &self.text[line.start..line.end];
            let blank = if line.folded { chars::is_blank(&self.unfold_line(line)) } else { chars::is_blank(written) };
            if !blank {
                let from = self.after_prefix(line, prefix).unwrap_or_else(|common| {
                    if !complained {
                        problems.add(|| self.bad_indent(line, prefix, close));
                    }
                    complained = true;
                    common
                });
                self.read_content(from, line.end, escapes, builder, problems);
            }
            if index + 1 == lines.len() {
                break;
            }
            // A `\r\n` is one character of the value and two bytes of the source.
            if &self.text[line.end..line.end + line.newline] == "\n" {
                builder.copy(line.end, line.end + 1);
            } else {
                builder.push_char('\n', line.end, line.end + line.newline);
            }
        }
    }

    /// The offset in a line after its prefix, or after what it has of the prefix when it lacks the rest.
    fn after_prefix(&self, line: &Line, prefix: &str) -> Result<usize, usize> {
        if self.text[line.start..line.end].starts_with(prefix) {
            return Ok(line.start + prefix.len());
        }
        let mut at = line.start;
        for wanted in prefix.chars() {
            while self.text[at..line.end].starts_with('\\')
                && matches!(chars::class_at(self.text, at + 1), Some((Class::Space | Class::Newline, _)))
            {
                at = escape_end(self.text, at).min(line.end);
            }
            if !self.text[at..line.end].starts_with(wanted) {
                return Err(at);
            }
            at += wanted.len_utf8();
        }
        Ok(at)
    }

    fn bad_indent(&self, line: &Line, prefix: &str, close: usize) -> Problem {
        let word = chars::skip_class(self.text, line.start, Class::Space);
        let indent = &self.text[line.start..word];
        let mixed = indent.chars().count() >= prefix.chars().count();
        let message = if mixed {
            "this line is not indented with the same characters as the closing quotes"
        } else {
            "this line is indented less than the closing quotes"
        };
        let next = self.text[word..line.end].chars().next().map_or(0, char::len_utf8);
        let span = if indent.is_empty() { self.make_span(word, word + next) } else { self.make_span(line.start, word) };
        // Quotes that share their line have something else before them: the offset may split a character.
        let from = close - prefix.len().min(close);
        Problem::new(span, message, if mixed { "other spaces or tabs" } else { "too few spaces" })
            .second_label(
                self.make_span(if self.text.is_char_boundary(from) { from } else { close }, close + 3),
                "the indentation here counts",
            )
            .help("indent every line at least as deep as the closing quotes, with the same characters")
            .unsafe_fix("indent this line like the closing quotes", self.make_span(line.start, word), prefix)
    }

    fn not_on_next_line(&self, start: usize, from: usize, to: usize, end: usize) -> Problem {
        let line_end = chars::line_end(&self.text[from..to], 0) + from;
        let quotes = &self.text[start..from];
        let span = if line_end > from { self.make_span(from, line_end) } else { self.make_span(start, end) };
        let problem =
            Problem::new(span, format!("after `{quotes}` the text starts on the next line"), "on the same line");
        let body = &self.text[from..to];
        if line_end < to || body.contains('"') {
            return problem.help(format!("break the line after `{quotes}`"));
        }
        let marks = quotes.trim_end_matches('"');
        let written = format!("{marks}\"{body}\"{marks}");
        problem
            .help(format!("break the line after `{quotes}`, or write `{marks}\"…\"{marks}` for text on one line"))
            .fix(format!("write `{marks}\"…\"{marks}`"), self.make_span(start, end), written)
    }

    fn not_on_own_line(&self, last: &Line, marks: usize, end: usize) -> Problem {
        let close = self.make_span(end - marks, end);
        let quotes = &self.text[close.range()];
        let problem = Problem::new(close, format!("the closing `{quotes}` stands on a line of its own"), "behind text");
        if last.folded {
            problem.help("remove the `\\` that joins this line to the text above")
        } else {
            problem.help(format!("break the line before `{quotes}`")).unsafe_fix(
                format!("break the line before `{quotes}`"),
                self.make_span(end - marks, end - marks),
                "\n",
            )
        }
    }
}

impl Builder<'_> {
    /// Adds a stretch of the source as it stands.
    fn copy(&mut self, from: usize, to: usize) {
        if from >= to {
            return;
        }
        let (decoded, source) = (span_offset(self.value.len()), span_offset(from - self.start));
        // Stretches that follow each other in both texts are one piece: most strings need no list then.
        let goes_on =
            self.pieces.last().is_some_and(|last| last.escape == 0 && decoded - last.decoded == source - last.source);
        if !goes_on {
            self.pieces.push(Piece { decoded, source, escape: 0 });
        }
        self.value.push_str(&self.text[from..to]);
    }

    /// Adds a character that the source writes in another way.
    fn push_char(&mut self, character: char, from: usize, to: usize) {
        let (decoded, source) = (span_offset(self.value.len()), span_offset(from - self.start));
        self.pieces.push(Piece { decoded, source, escape: span_offset(to - from) });
        self.value.push(character);
    }

    fn finish(self, form: Form, span: Span) -> Text {
        match self.pieces[..] {
            [Piece { source, escape: 0, .. }] => Text::verbatim(&self.value, form, span, source),
            _ => Text::from_pieces(self.value, form, span, self.pieces),
        }
    }
}

/// A character that may stand nowhere.
pub(super) fn forbidden_character(text: &str, span: Span) -> Problem {
    let mut characters = text[span.range()].chars();
    let first = characters.next().unwrap_or('\0');
    let code = format!("U+{:04X}", u32::from(first));
    let label = match first {
        '\0' => "a NUL byte",
        '\u{FEFF}' => "a byte order mark",
        '\u{200E}'..='\u{206F}' => "an invisible mark of writing direction",
        _ => "a control character",
    };
    let several = if characters.next().is_some() { " and others beside it" } else { "" };
    Problem::new(span, format!("the character {code}{several} may not stand in a spec"), label)
        .help(format!("remove it; in a quoted string write `\\u{{{:X}}}`", u32::from(first)))
        .unsafe_fix("remove it", span, "")
}

fn span_offset(at: usize) -> u32 {
    u32::try_from(at).expect("files are under 16 MiB")
}
