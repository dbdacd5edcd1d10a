//! `format`: whether the arguments fit the text that they are put in (SW205).

use std::ops::Range;

use super::super::{Classes, Kind, Lack};
use super::Checker;
use super::call::Applied;
use crate::template::Expr;

/// The directives of one text that are read.
const MOST: usize = 100;

/// `%d` and the like.
struct Placeholder {
    /// Its place in the text.
    range: Range<usize>,
    /// The name of a field of the first argument, as in `%(name)s`.
    key: Option<String>,
    /// The letter at its end; none where there is no such letter.
    letter: Option<char>,
}

impl Checker<'_> {
    /// Holds the arguments of `format` against the text, where that is written out.
    pub(super) fn check_format(&mut self, applied: &Applied<'_>, right: bool) {
        let Some((of, text)) = applied.of.and_then(|of| Some((of, of.as_text()?))).filter(|_| right) else { return };
        if applied.arguments.iter().any(|argument| argument.spread) {
            return;
        }
        let mut next = 0;
        for placeholder in parse_placeholders(text) {
            let written = text[placeholder.range.clone()].to_owned();
            let Some(letter) = placeholder.letter else { return self.unreadable_placeholder(of, &written) };
            let index = match &placeholder.key {
                Some(_) => 0,
                None => {
                    next += 1;
                    next - 1
                }
            };
            let Some((argument, kind)) = applied.arguments.get(index).zip(applied.given.get(index)) else {
                return self.missing_value(of, &written);
            };
            let kind = match &placeholder.key {
                Some(_) if argument.name.is_some() => continue,
                Some(key) => match self.infer_key(of, &argument.value, kind, key) {
                    Some(kind) => kind,
                    None => return,
                },
                // Arguments with names are one map.
                None if argument.name.is_some() => super::Type::map(super::Type::ANY),
                None => kind.clone(),
            };
            let numbers = Classes::NUMBER.union(Classes::BOOL);
            let takes = match letter {
                'd' | 'i' | 'o' | 'x' | 'X' => Classes::INT.union(Classes::BOOL),
                'e' | 'E' | 'f' | 'F' | 'g' | 'G' => numbers,
                'c' => Classes::INT.union(Classes::BOOL).union(Classes::TEXT),
                _ => Classes::ALL,
            };
            if let Some(found) = self.find_misfit(&kind, takes) {
                return self.wrong_placeholder(of, &argument.value, &written, &found);
            }
            if letter == 'c' && argument.value.as_text().is_some_and(|text| text.chars().count() != 1) {
                return self.missing_value(of, &written);
            }
        }
    }

    /// The type of the field that `%(key)s` reads of the first argument.
    fn infer_key(&mut self, of: &Expr, argument: &Expr, kind: &super::Type, key: &str) -> Option<super::Type> {
        if let Some(found) = self.find_misfit(kind, Classes::OBJECT) {
            self.wrong_placeholder(of, argument, &format!("%({key})"), &found);
            return None;
        }
        let known = self.env.whole.types.possible_kinds(&kind.kind).into_iter().find_map(|kind| match kind {
            Kind::Record(record) => Some(record.find_field(key, true).map(|field| field.kind.clone())),
            Kind::Map(_) => Some(None),
            _ => None,
        });
        match known {
            Some(Some(kind)) if !kind.lack.has(Lack::ABSENT) => Some(kind),
            Some(_) => {
                self.missing_value(of, &format!("%({key})"));
                None
            }
            None => Some(super::Type::ANY),
        }
    }
}

/// The placeholders of a text, in order; the last one may be none that can be read.
fn parse_placeholders(text: &str) -> Vec<Placeholder> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = bytes[at..].iter().position(|byte| *byte == b'%').map(|offset| at + offset) {
        at = start + 1;
        if bytes.get(at) == Some(&b'%') {
            at += 1;
            continue;
        }
        let mut key = None;
        if bytes.get(at) == Some(&b'(') {
            let end = bytes[at..].iter().position(|byte| *byte == b')').map_or(bytes.len(), |offset| at + offset);
            key = text.get(at + 1..end).map(str::to_owned);
            at = (end + 1).min(bytes.len());
        }
        let digits = |mut at: usize, signs: &[u8]| {
            while bytes.get(at).is_some_and(|byte| signs.contains(byte)) {
                at += 1;
            }
            at
        };
        at = digits(at, b"#0- +");
        at = digits(at, b"0123456789");
        if bytes.get(at) == Some(&b'.') {
            at = digits(at + 1, b"0123456789");
        }
        if bytes.get(at).is_some_and(|byte| b"hlL".contains(byte)) {
            at += 1;
        }
        let letter = text.get(at..).and_then(|rest| rest.chars().next());
        let end = at + letter.map_or(0, char::len_utf8);
        let letter = letter.filter(|letter| "dieEfFgGoxXcs".contains(*letter));
        found.push(Placeholder { range: start..end, key, letter });
        if letter.is_none() || found.len() == MOST {
            return found;
        }
        at = end;
    }
    found
}
