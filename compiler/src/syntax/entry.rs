//! The parts of a node: names, type annotations, arguments and properties.
//!
//! Always takes at least one token where it is asked to read an entry or a name, so the parser makes progress on every input.

use super::habit;
use super::list::{describe_list, write_expression};
use super::parse::Parser;
use super::problem::{Problem, ProblemKind};
use super::text::{Form, Text};
use super::token::TokenKind;
use super::tree::{Entry, Name, Number, Value, ValueKind};
use super::word::{self, Word};
use crate::source::Span;

/// What a string-like value is read from.
enum Read {
    /// A string, which may be a name.
    Text(Text),
    /// Another value.
    Other(ValueKind),
}

impl Parser<'_> {
    /// Reads the name of a node.
    pub(super) fn node_name(&mut self) -> Name {
        let here = self.token_span();
        let written = self.token_text();
        if self.kind() == Some(TokenKind::Bare) && self.is_single() {
            if let Some(name) = habit::node_name(self) {
                return name;
            }
            let class = word::classify_word(written);
            if class != Word::Name {
                self.bad_node_name(here, written);
            }
            self.bump();
            return Name { text: written.into(), span: here, quoted: false };
        }
        match self.parse_value() {
            Some((Read::Text(text), span)) => {
                let quoted = !text.is_bare();
                Name { text: text.value, span, quoted }
            }
            Some((Read::Other(_), span)) => {
                let written = &self.text[span.range()];
                self.bad_node_name(span, written);
                Name { text: written.into(), span, quoted: false }
            }
            None => {
                self.now.broken = true;
                let empty = Span { end: here.start, ..here };
                self.problems.add(|| {
                    Problem::new(here, "a node starts with its name", "no name")
                        .help("write a name here; a text with special characters needs quotes")
                });
                // A brace keeps its meaning, so that the blocks around stay whole.
                if self.kind() != Some(TokenKind::CloseBrace) && self.kind() != Some(TokenKind::OpenBrace) {
                    self.bump();
                }
                Name { text: "".into(), span: empty, quoted: false }
            }
        }
    }

    fn bad_node_name(&mut self, span: Span, written: &str) {
        self.now.broken = true;
        self.problems.add(|| {
            let quoted = word::quote_text(written);
            Problem::new(span, format!("a node starts with its name, and `{written}` is none"), "not a name")
                .help(format!("write the name of a node before it, or `{quoted}` when this is the name"))
        });
    }

    /// A type annotation and the space behind it, where one stands before a value.
    fn annotation_of_value(&mut self) -> Option<Box<Name>> {
        if self.kind() != Some(TokenKind::OpenParen) {
            return None;
        }
        let annotation = self.parse_annotation();
        self.skip_space();
        annotation
    }

    /// Reads `(type)`.
    pub(super) fn parse_annotation(&mut self) -> Option<Box<Name>> {
        let open = self.token_span();
        self.bump();
        self.skip_space();
        let name = match self.kind() {
            Some(kind) if is_string(kind) => self.parse_value().and_then(|(read, span)| match read {
                Read::Text(text) => {
                    let quoted = !text.is_bare();
                    Some(Box::new(Name { text: text.value, span, quoted }))
                }
                Read::Other(_) => None,
            }),
            _ => None,
        };
        self.skip_space();
        if self.kind() == Some(TokenKind::CloseParen) && name.is_some() {
            self.bump();
            return name;
        }
        self.now.broken = true;
        let forbidden = self.kind() == Some(TokenKind::Forbidden);
        if forbidden {
            self.skip_forbidden();
        }
        // Parentheses end with their line at the latest, so that one mistake does not take the lines below.
        let ends = |kind: Option<TokenKind>| {
            use TokenKind::{CloseBrace, LineComment, Newline, OpenBrace, Semicolon};
            matches!(kind, None | Some(Newline | LineComment | Semicolon | OpenBrace | CloseBrace))
        };
        while !ends(self.kind()) && self.kind() != Some(TokenKind::CloseParen) {
            self.bump();
        }
        let closed = self.kind() == Some(TokenKind::CloseParen);
        if closed {
            self.bump();
        }
        // The forbidden character was reported, and is the cause.
        if forbidden {
            return name;
        }
        let span = if closed { self.span(open.start as usize, self.at) } else { open };
        self.problems.add(|| {
            let label = if closed { "not one type" } else { "no `)` follows" };
            Problem::new(span, "parentheses hold the name of one type, as in `(date)\"2026-01-31\"`", label)
                .help("put text with parentheses in quotes")
        });
        name
    }

    /// Reads an argument or a property, or complains about what is neither.
    pub(super) fn parse_entry(&mut self, spaced: bool, node: &Name) {
        let start = self.at;
        if !spaced && !self.now.glue && !self.now.list {
            self.lacking_space();
        }
        self.now.glue = false;
        if self.take_json() {
            return;
        }
        match self.kind() {
            Some(TokenKind::Equals) => return self.lone_equals(node),
            Some(TokenKind::Stray) if self.token_text() == "[" => return self.open_list(),
            Some(TokenKind::Stray) if self.token_text() == "]" => return self.close_list(),
            Some(TokenKind::Bare) if self.token_text().starts_with(',') && self.parse_comma(spaced) => return,
            _ => {}
        }
        let annotation = self.annotation_of_value();
        let first = self.token_span();
        let Some((read, span)) = self.parse_value() else { return self.no_value(annotation.is_some(), start) };
        let equals = self.take_equals();
        let Some(equals) = equals else {
            let kind = match read {
                Read::Text(text) => ValueKind::String(text),
                Read::Other(kind) => kind,
            };
            let span_of_entry = self.span(start, span.end as usize);
            let value = Value { kind, span };
            self.entries.push(Entry { name: None, equals: None, annotation, value, span: span_of_entry });
            return;
        };
        if annotation.is_some() {
            self.annotated_key(start, first);
        }
        if self.take_comparison(start, span, equals) {
            return;
        }
        let name = match read {
            Read::Text(text) => {
                let quoted = !text.is_bare();
                Name { text: text.value, span, quoted }
            }
            Read::Other(_) => self.bad_key(span),
        };
        self.parse_property(start, name, equals);
    }

    /// Takes the `=` of a property, spaces before it included.
    fn take_equals(&mut self) -> Option<Span> {
        // KDL 2 allows space around the `=`.
        if self.kind() != Some(TokenKind::Equals) {
            let index = self.after_space();
            if self.tokens.get(index).is_none_or(|token| token.kind != TokenKind::Equals) {
                return None;
            }
            self.skip_space();
        }
        let equals = self.token_span();
        self.bump();
        Some(equals)
    }

    /// Reads the value of a property.
    fn parse_property(&mut self, start: usize, name: Name, equals: Span) {
        if !matches!(self.kind(), Some(TokenKind::Newline)) {
            self.skip_space();
        }
        if self.kind() == Some(TokenKind::Equals) {
            let here = self.token_span();
            self.problems.add(|| {
                Problem::new(here, "one `=` stands between a name and its value", "a second `=`")
                    .help("remove it")
                    .unsafe_fix("remove it", here, "")
            });
            while matches!(self.kind(), Some(TokenKind::Equals | TokenKind::Space)) {
                self.bump();
            }
        }
        if self.kind() == Some(TokenKind::Slashdash) {
            let here = self.token_span();
            self.problems.add(|| {
                Problem::new(here, "`/-` cannot hide the value of a property alone", "between `=` and the value")
                    .help(format!("write it before `{}` to hide the property", name.text))
            });
            self.now.broken = true;
            self.bump();
        }
        let annotation = self.annotation_of_value();
        let read = self.parse_value();
        let (kind, span) = match read {
            Some((Read::Text(text), span)) => (ValueKind::String(text), span),
            Some((Read::Other(kind), span)) => (kind, span),
            None => {
                let place = self.span(self.last, self.last);
                self.now.broken = true;
                self.problems.add(|| {
                    let key = &name.text;
                    Problem::new(equals, format!("`{key}=` has no value"), "nothing follows")
                        .help(format!("write `{key}=VALUE`; an empty text is `\"\"`"))
                });
                (ValueKind::Missing, place)
            }
        };
        let entry_span = self.span(start, (span.end).max(equals.end) as usize);
        let value = Value { kind, span };
        self.entries.push(Entry { name: Some(name), equals: Some(equals), annotation, value, span: entry_span });
    }

    /// Reads a value without its annotation; none when no value starts here.
    fn parse_value(&mut self) -> Option<(Read, Span)> {
        let start = self.at;
        match self.kind()? {
            TokenKind::Bare if self.is_single() => Some(self.parse_bare()),
            TokenKind::Keyword if self.is_single() => {
                let here = self.token_span();
                let kind = self.parse_keyword();
                self.bump();
                Some((Read::Other(kind), here))
            }
            TokenKind::Stray if self.token_text() == "]" => None,
            TokenKind::Bare | TokenKind::Keyword | TokenKind::Stray => Some(self.parse_joined()),
            kind if is_string(kind) => {
                let token = self.tokens[self.index];
                let end = token.end as usize;
                let text = self.strings.read_string(kind, token.plain, start, end, &mut self.problems);
                self.now.broken |= kind == TokenKind::OpenString;
                self.bump();
                Some((Read::Text(text), self.span(start, end)))
            }
            _ => None,
        }
    }

    /// Whether the word or keyword here stands alone, with nothing directly behind it that would belong to it.
    fn is_single(&self) -> bool {
        !self.is_continuation(self.index + 1)
    }

    /// Whether the token belongs to the word directly before it.
    fn is_continuation(&self, index: usize) -> bool {
        use TokenKind::{Backslash, Bare, Keyword, Newline, Slashdash, Space, Stray};
        let kind = |index: usize| self.tokens.get(index).map(|token| token.kind);
        match kind(index) {
            // In a list, `]` closes the list and is no part of the word before it.
            Some(Stray) => !(self.now.list && self.text[..self.tokens[index].end as usize].ends_with(']')),
            Some(Bare | Keyword | Slashdash) => true,
            // A backslash before space or a line break continues the line; elsewhere it is part of a path.
            Some(Backslash) => !matches!(kind(index + 1), None | Some(Newline | Space)),
            _ => false,
        }
    }

    /// A word.
    fn parse_bare(&mut self) -> (Read, Span) {
        let here = self.token_span();
        let written = self.token_text();
        let plain = self.tokens[self.index].plain;
        if let Some((from, to)) = habit::detect_habit(self) {
            self.bump();
            let offset = u32::try_from(from).unwrap_or(0);
            if word::classify_word(&written[from..to]) == Word::Number {
                return (Read::Other(ValueKind::Number(Number::new(&written[from..to]))), here);
            }
            return (Read::Text(Text::verbatim(&written[from..to], Form::Bare, here, offset)), here);
        }
        self.bump();
        // A plain word is no number, and `true` and its like have three to five letters.
        let class = if plain && !(3..=5).contains(&written.len()) { Word::Name } else { word::classify_word(written) };
        let text = || Read::Text(Text::verbatim(written, Form::Bare, here, 0));
        let read = match class {
            Word::Name => text(),
            Word::Number => Read::Other(ValueKind::Number(Number::new(written))),
            // Before `=` it is a key, which is to be quoted and not to be written with `#`.
            Word::Literal if self.after_is_equals() => text(),
            Word::Literal => {
                self.problems.add(|| word::literal_problem(written, here));
                Read::Other(match written {
                    "true" => ValueKind::Bool(true),
                    "false" => ValueKind::Bool(false),
                    _ => ValueKind::Null,
                })
            }
            Word::Float => {
                self.problems.add(|| word::float_problem(written, here));
                text()
            }
            Word::NumberLike => {
                self.problems.add(|| word::number_like(written, here));
                text()
            }
        };
        if class == Word::Literal && matches!(read, Read::Text(_)) {
            self.literal_key(here, written);
        }
        (read, here)
    }

    fn after_is_equals(&self) -> bool {
        self.tokens.get(self.after_space()).is_some_and(|token| token.kind == TokenKind::Equals)
    }

    /// `true=` and its like.
    fn literal_key(&mut self, here: Span, written: &str) {
        let quoted = word::quote_text(written);
        self.problems.add(|| {
            Problem::new(here, format!("a property named `{written}` needs quotes"), "needs quotes")
                .help(format!("write `{quoted}`"))
                .fix(format!("write `{quoted}`"), here, quoted.clone())
        });
    }

    /// What `#…` is.
    fn parse_keyword(&mut self) -> ValueKind {
        let (written, here) = (self.token_text(), self.token_span());
        match written {
            "#true" => ValueKind::Bool(true),
            "#false" => ValueKind::Bool(false),
            "#null" => ValueKind::Null,
            "#inf" | "#-inf" | "#nan" => ValueKind::Number(Number::new(written)),
            _ => {
                self.now.broken = true;
                self.problems.add(|| word::keyword_problem(written, here));
                ValueKind::Missing
            }
        }
    }

    /// Tokens side by side that were meant as one text, such as a path.
    fn parse_joined(&mut self) -> (Read, Span) {
        let start = self.at;
        self.bump();
        while self.is_continuation(self.index) {
            self.bump();
        }
        let span = self.span(start, self.at);
        let written = &self.text[start..self.at];
        self.problems.add(|| word::unquoted_problem(written, span));
        (Read::Text(Text::verbatim(written, Form::Bare, span, 0)), span)
    }

    /// Nothing that could be a value stands here.
    fn no_value(&mut self, annotated: bool, start: usize) {
        self.now.broken = true;
        let here = self.token_span();
        if self.kind() == Some(TokenKind::Forbidden) {
            self.now.glue = true;
            return self.skip_forbidden();
        }
        if annotated {
            let span = self.span(start, self.last.max(start));
            self.problems.add(|| {
                Problem::new(span, "a type stands directly before a value", "no value follows")
                    .help("write the value behind it")
            });
            return;
        }
        match self.kind() {
            Some(TokenKind::CloseParen | TokenKind::Backslash) => {
                let mark = self.token_text();
                self.problems.add(|| {
                    Problem::new(here, format!("this `{mark}` belongs to nothing"), "stands alone")
                        .help("remove it, or put the text that has it in quotes")
                });
                self.bump();
            }
            // `parse_node` takes these itself, so the parser makes progress although nothing is taken here.
            Some(
                TokenKind::Newline
                | TokenKind::CloseBrace
                | TokenKind::OpenBrace
                | TokenKind::Semicolon
                | TokenKind::Slashdash
                | TokenKind::LineComment
                | TokenKind::OpenComment,
            )
            | None => {}
            Some(_) => {
                self.problems
                    .add(|| Problem::new(here, "this is no value", "not understood").help("put text in quotes"));
                self.bump();
            }
        }
    }

    fn lacking_space(&mut self) {
        // An unclosed string, a comma and a lone `=` are complained about anyway.
        let told = match self.kind() {
            Some(TokenKind::OpenString | TokenKind::Equals | TokenKind::CloseParen | TokenKind::Backslash) => true,
            Some(TokenKind::Forbidden) => true,
            Some(TokenKind::Bare) => self.token_text().starts_with(','),
            Some(TokenKind::Stray) => matches!(self.token_text(), "[" | "]"),
            _ => false,
        };
        if told {
            return;
        }
        let here = self.token_span();
        let place = Span { end: here.start, ..here };
        self.problems.add(|| {
            Problem::new(here, "values are separated by a space", "no space before this")
                .help("write a space before it, or put the whole text in quotes")
                .unsafe_fix("write a space", place, " ")
        });
    }

    /// `name = value` and `key==value`: an `=` without a property name before it.
    fn lone_equals(&mut self, node: &Name) {
        let start = self.at;
        while self.kind() == Some(TokenKind::Equals) {
            self.bump();
        }
        let here = self.span(start, self.at);
        let first = self.entries.is_empty();
        let name = &node.text;
        self.problems.add(|| {
            if first {
                let spaced = self.text.as_bytes().get(here.end as usize).is_some_and(u8::is_ascii_whitespace);
                Problem::new(
                    here,
                    format!("the values of `{name}` follow it without `=`"),
                    "no `=` after the name of a node",
                )
                .help(format!("write `{name} VALUE`"))
                .fix("remove `=`", here, if spaced { "" } else { " " })
            } else {
                Problem::new(here, "no property name stands before this `=`", "belongs to no property")
                    .help("write `NAME=VALUE`, and put text that has `=` in quotes")
            }
        });
        self.now.glue = true;
        if !first {
            self.now.broken = true;
        }
    }

    /// A number or keyword before `=`.
    fn bad_key(&mut self, span: Span) -> Name {
        let written = &self.text[span.range()];
        let quoted = word::quote_text(written);
        self.problems.add(|| {
            Problem::new(span, format!("a property named `{written}` needs quotes"), "not a name")
                .help(format!("write `{quoted}`"))
                .fix(format!("write `{quoted}`"), span, quoted.clone())
        });
        Name { text: written.into(), span, quoted: false }
    }

    fn annotated_key(&mut self, start: usize, key: Span) {
        self.now.broken = true;
        let span = self.span(start, key.start as usize);
        self.problems.add(|| {
            let annotation = self.text[span.range()].trim_end();
            let name = &self.text[key.range()];
            Problem::new(span, "the type of a property stands before its value", "before the name")
                .help(format!("write `{name}={annotation}VALUE`"))
        });
    }

    /// `[a, b]`: the brackets are complained about once, and what is in them is read.
    fn open_list(&mut self) {
        let start = self.at;
        let here = self.token_span();
        let told = self.now.list;
        self.bump();
        self.now.list = true;
        if told {
            return;
        }
        if self.take_command_word(start) {
            return;
        }
        // The end is looked for on this line and in a bounded stretch, so that many brackets stay linear.
        let stretch = &self.text[start..self.text.floor_char_boundary(start + 400)];
        let stretch = &stretch[..super::chars::line_end(stretch, 0)];
        let close = stretch.find(']').map(|found| start + found + 1);
        let span = close.map_or(here, |close| self.span(start, close));
        let inner = close.map(|close| &self.text[start + 1..close - 1]);
        let expression = self.text[..start].trim_end().ends_with("for-each");
        if let Some(made) = inner.filter(|_| expression).and_then(write_expression) {
            self.problems.add(|| {
                Problem::new(span, "a list is written as an expression, in quotes", "not in quotes")
                    .rewrite(span, format!("\"{made}\""))
            });
            return self.push_made(Text::from_made(made, span));
        }
        self.problems.add(|| describe_list(span, inner));
    }

    fn close_list(&mut self) {
        let here = self.token_span();
        if !self.now.list {
            self.problems.add(|| {
                Problem::new(here, "this `]` closes nothing", "nothing is open")
                    .help("remove it, or put the text that has it in quotes")
                    .unsafe_fix("remove it", here, "")
            });
            self.now.broken = true;
        }
        self.now.list = false;
        self.now.glue = true;
        self.bump();
    }

    /// A comma between values, perhaps with the next value directly behind it; whether that was all of the word.
    fn parse_comma(&mut self, spaced: bool) -> bool {
        let here = self.token_span();
        if spaced {
            return self.spaced_comma(here);
        }
        let mark = Span { end: here.start + 1, ..here };
        if self.token_text() != "," {
            // `"a",b`: the rest of the word is a value.
            self.tell_comma(mark, " ");
            let from = self.at + 1;
            let written = &self.text[from..here.end as usize];
            self.bump();
            let span = Span { start: here.start + 1, ..here };
            let kind = match word::classify_word(written) {
                Word::Number => ValueKind::Number(Number::new(written)),
                _ => ValueKind::String(Text::verbatim(written, Form::Bare, span, 0)),
            };
            let value = Value { kind, span };
            self.entries.push(Entry { name: None, equals: None, annotation: None, value, span });
            return true;
        }
        self.bump();
        let space = matches!(self.kind(), Some(TokenKind::Space));
        self.tell_comma(mark, if space { "" } else { " " });
        self.now.glue = true;
        true
    }

    /// A comma between spaces is a word in KDL.
    fn spaced_comma(&mut self, here: Span) -> bool {
        let alone = self.token_text() == ",";
        if alone && !self.now.list && !self.now.comma {
            self.now.comma = true;
            self.problems.add(|| {
                Problem::new(here, "values are separated by spaces, not by commas", "a comma")
                    .kind(ProblemKind::Habit)
                    .help("remove the comma, or write `\",\"` when it is a value")
                    .unsafe_fix("remove the comma", here, "")
            });
        }
        if alone {
            self.bump();
        }
        alone
    }

    fn tell_comma(&mut self, mark: Span, replacement: &str) {
        if !self.now.list && !self.now.comma {
            self.now.comma = true;
            self.problems.add(|| {
                Problem::new(mark, "values are separated by spaces, not by commas", "a comma")
                    .help("remove the comma")
                    .fix("remove the comma", mark, replacement)
            });
        }
    }
}

/// Whether a token is a string other than a word.
fn is_string(kind: TokenKind) -> bool {
    use TokenKind::{Bare, BrokenLines, LegacyRaw, Lines, OpenString, Quoted, Raw, RawLines};
    matches!(kind, Bare | Quoted | Raw | Lines | RawLines | LegacyRaw | OpenString | BrokenLines)
}
