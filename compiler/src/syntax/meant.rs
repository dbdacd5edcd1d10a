//! Reads texts whose quotes are missing or wrong: JSON with quotes in it, and expressions without quotes. Each is
//! reported once, and read as the text that its author meant.

use super::parse::Parser;
use super::problem::Problem;
use super::text::{Form, Text};
use super::token::TokenKind;
use super::tree::{Entry, Value, ValueKind};
use crate::source::Span;

/// The bytes of a text that are looked at, and the ends that are tried: every text takes linear time.
const STRETCH: usize = 400;
const TRIES: usize = 4;

impl Parser<'_> {
    /// Reads JSON with quotes in it, where it begins here and is no text by itself. False where it does not.
    pub(super) fn take_json(&mut self) -> bool {
        let Some(end) = self.find_json() else { return false };
        let (start, text) = (self.at, self.text);
        let (span, json) = (self.span(start, end), &text[start + 1..end - 1]);
        self.problems.add(|| describe_json(span, json, text[start..].starts_with('\'')));
        self.push_made(Text::verbatim(json, Form::Raw, span, 1));
        true
    }

    /// Reads an expression that compares what was read as the key of a property, from `start` on. False where it does not.
    pub(super) fn take_comparison(&mut self, start: usize, key: Span, equals: Span) -> bool {
        let Some(start) = self.find_comparison(start, key, equals) else { return false };
        let written = find_expression(&self.text[start..]);
        let span = self.span(start, start + written.len());
        let quoted = write_quoted(written);
        let text = match written.contains('"') {
            true => Text::from_made(written.replace('"', "'"), span),
            false => Text::verbatim(written, Form::Quoted, span, 0),
        };
        self.problems
            .add(|| Problem::new(span, "an expression is written in quotes", "not in quotes").rewrite(span, quoted));
        self.push_made(text);
        true
    }

    /// The end of JSON that begins here and has quotes in it, where it is no text by itself.
    fn find_json(&self) -> Option<usize> {
        let end = self.tokens.get(self.index)?.end as usize;
        let is_text = self.text[self.at..].starts_with('"')
            && self.text[end..]
                .chars()
                .next()
                .is_none_or(|next| next.is_whitespace() || matches!(next, ';' | '}' | '{'));
        let found = if is_text { None } else { find_json_end(&self.text[self.at..]) };
        found.map(|length| self.at + length)
    }

    /// Where an expression begins that compares what was read as the key of a property: `a == b`, or `a != b`.
    fn find_comparison(&mut self, start: usize, key: Span, equals: Span) -> Option<usize> {
        if self.kind() == Some(TokenKind::Equals) && self.at == equals.end as usize {
            return Some(start);
        }
        let is_sign = matches!(&self.text[key.range()], "!" | "<" | ">") && key.end == equals.start;
        let left = self.entries.last().filter(|left| is_sign && left.name.is_none())?.span;
        let begin = left.start as usize;
        if !self.text.get(left.end as usize..start)?.chars().all(|between| matches!(between, ' ' | '\t')) {
            return None;
        }
        // The left side was read as an argument before the sign came.
        self.entries.pop();
        Some(begin)
    }

    /// Goes on behind a text that was meant, and takes it as an argument.
    pub(super) fn push_made(&mut self, text: Text) {
        let span = text.outer_span();
        while self.at < span.end as usize {
            self.bump();
        }
        self.now.list = false;
        let value = Value { kind: ValueKind::String(text), span };
        self.entries.push(Entry { name: None, equals: None, annotation: None, value, span });
    }
}

/// The end of JSON that stands at the beginning of `text` in quotes which it has in itself, or in single ones: `"{"a": 1}"`.
fn find_json_end(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let stretch = &text[..text.floor_char_boundary(STRETCH)];
    let stretch = &stretch[..super::chars::line_end(stretch, 0)];
    if !stretch[1..].starts_with(['{', '[']) {
        return None;
    }
    let is_end = |at: usize| {
        let behind = text[at + 1..].chars().next();
        behind.is_none_or(|next| next.is_whitespace() || matches!(next, ';' | '}'))
            && serde_json::from_str::<serde_json::Value>(&text[1..at]).is_ok()
    };
    let mut ends = stretch[1..].rmatch_indices(quote).map(|(at, _)| at + 1).take(TRIES);
    ends.find(|&at| is_end(at)).map(|at| at + 1)
}

/// The problem of such JSON.
fn describe_json(span: Span, json: &str, is_single: bool) -> Problem {
    let (message, label) = match is_single {
        true => ("a text is quoted with `\"`, not with single quotes", "JSON in single quotes"),
        false => ("a text that has quotes in it is written between `#\"` and `\"#`", "JSON with quotes in it"),
    };
    Problem::new(span, message, label).rewrite(span, format!("#\"{json}\"#"))
}

/// The expression at the beginning of `text`, which goes on to the end of its node on this line.
fn find_expression(text: &str) -> &str {
    let line = &text[..super::chars::line_end(text, 0)];
    let mut quoted = None;
    let end = line.char_indices().find(|&(at, found)| match quoted {
        Some(quote) => {
            if found == quote {
                quoted = None;
            }
            false
        }
        None if matches!(found, '"' | '\'') => {
            quoted = Some(found);
            false
        }
        None => matches!(found, ';' | '{' | '}') || line[at..].starts_with("//"),
    });
    line[..end.map_or(line.len(), |(at, _)| at)].trim_end()
}

/// An expression in quotes: its own become single ones, where it has none of these.
fn write_quoted(expression: &str) -> String {
    match expression.contains('"') && expression.contains('\'') {
        true => format!("#\"{expression}\"#"),
        false => format!("\"{}\"", expression.replace('"', "'")),
    }
}
