//! Habits of other notations that are valid KDL and mean something else than they seem to: `key: value`, `- item`, `'text'`,
//! `a, b`, `http://…` and `src/**/*.rs` without quotes.
//!
//! Each is told once, as a problem of its own kind, and the value is read as it was surely meant.

use super::chars::{Class, classify_char};
use super::parse::Parser;
use super::problem::{Problem, ProblemKind};
use super::token::TokenKind;
use super::tree::Name;
use super::word::{self, Word};
use crate::source::Span;

/// Quotes that are characters of words in KDL, and what closes them.
const QUOTES: [(char, &[char]); 6] = [
    ('\'', &['\'']),
    ('“', &['”', '“', '"']),
    ('”', &['”', '“']),
    ('„', &['“', '”']),
    ('‘', &['’', '‘']),
    ('«', &['»']),
];

/// Looks at the word that names a node, and takes it when it is a habit.
pub(super) fn node_name(parser: &mut Parser<'_>) -> Option<Name> {
    let (written, here) = (parser.token_text(), parser.token_span());
    let next = next_on_line(parser);
    if written == "-" && next {
        parser.now.broken = true;
        parser.problems.add(|| {
            habit_problem(here, "a list is not written with `-`", "not an item")
                .help("write a node for each item, or the items one after another behind the name of their node")
        });
    } else if written.len() > 1
        && let Some(name) = written.strip_suffix(':')
        && word::classify_word(written) == Word::Name
    {
        let colon = Span { start: here.end - 1, ..here };
        let name: Box<str> = name.into();
        parser.problems.add(|| {
            habit_problem(colon, format!("`{name}` is written without `:`"), "a colon")
                .help(format!("write `{name} VALUE`, or `{name} {{ … }}` for a block"))
                .fix("remove the colon", colon, "")
        });
        let span = Span { end: colon.start, ..here };
        parser.bump();
        return Some(Name { text: name, span, quoted: false });
    } else {
        return None;
    }
    parser.bump();
    Some(Name { text: written.into(), span: here, quoted: false })
}

/// Looks at a word that is a value; gives the range of it that was meant when it is a habit.
pub(super) fn detect_habit(parser: &mut Parser<'_>) -> Option<(usize, usize)> {
    let written = parser.token_text();
    let bytes = written.as_bytes();
    // A token has a byte at least.
    let (first, last) = (bytes[0], bytes[bytes.len() - 1]);
    let glob = parser.kind_after(1) == Some(TokenKind::BlockComment) && parser.kind_after(2) == Some(TokenKind::Bare);
    // Each word is asked: nearly all of them end here.
    if first < 0x80 && first != b'\'' && last != b',' && last != b':' && !glob {
        return None;
    }
    // The problem of the first word covers the whole quoted text.
    if parser.at < parser.now.quoted_until {
        return None;
    }
    if first == b'\'' || first >= 0x80 {
        return detect_quotes(parser);
    }
    if glob {
        return detect_glob(parser);
    }
    match last {
        b',' if written.len() > 1 && (parser.now.list || next_on_line(parser)) => detect_comma(parser),
        b':' if parser.kind_after(1) == Some(TokenKind::LineComment) => detect_url(parser),
        b':' if written.len() > 1 && next_on_line(parser) => detect_colon(parser),
        _ => None,
    }
}

fn habit_problem(span: Span, message: impl Into<String>, label: &str) -> Problem {
    Problem::new(span, message, label).kind(ProblemKind::Habit)
}

/// Whether a value follows on the same line.
fn next_on_line(parser: &Parser<'_>) -> bool {
    use TokenKind::{Bare, Keyword, Lines, OpenParen, Quoted, Raw, RawLines, Space};
    parser.kind_after(1) == Some(Space)
        && matches!(parser.kind_after(2), Some(Bare | Keyword | Quoted | Raw | Lines | RawLines | OpenParen))
}

/// `'text'` and typographic quotes.
fn detect_quotes(parser: &mut Parser<'_>) -> Option<(usize, usize)> {
    let written = parser.token_text();
    let first = written.chars().next()?;
    let (_, closers) = QUOTES.iter().find(|(open, _)| *open == first)?;
    let from = first.len_utf8();
    if written.len() == from {
        return None;
    }
    let start = parser.at;
    // The end is looked for on this line and in a bounded stretch, so that many quotes stay linear.
    let stretch = parser.text[start + from..]
        .chars()
        .take(400)
        .take_while(|&character| classify_char(character) != Class::Newline);
    let mut length = from;
    let mut close = None;
    for character in stretch {
        if closers.contains(&character) {
            close = Some((start + length, start + length + character.len_utf8()));
            break;
        }
        length += character.len_utf8();
    }
    let here = parser.token_span();
    let Some((text_end, end)) = close else {
        parser.now.quoted_until = start + length;
        if first == '\'' {
            // An apostrophe.
            return None;
        }
        let mark = Span { end: here.start + u32::try_from(from).unwrap_or(1), ..here };
        parser
            .problems
            .add(|| habit_problem(mark, format!("`{first}` is not a quote"), "a typographic quote").help("write `\"`"));
        return None;
    };
    let span = parser.span(start, end);
    let text = &parser.text[start + from..text_end];
    parser.now.quoted_until = end;
    parser.problems.add(|| {
        let quoted = word::quote_text(text);
        let label = if first == '\'' { "single quotes" } else { "typographic quotes" };
        habit_problem(span, format!("a text is quoted with `\"`, not with {label}"), label)
            .help(format!("write `{quoted}`"))
            .fix(format!("write `{quoted}`"), span, quoted.clone())
    });
    // Quoted text with spaces is several words here, which are read as they stand.
    (end == here.end as usize).then_some((from, text_end - start))
}

/// `src/**/*.rs`, which KDL takes as a comment between two words.
fn detect_glob(parser: &mut Parser<'_>) -> Option<(usize, usize)> {
    let start = parser.at;
    let mut index = parser.index;
    let kind = |index: usize| parser.tokens.get(index).map(|token| token.kind);
    // Bounded, so that many patterns stay linear.
    let near = |index: usize| parser.tokens[index].end as usize <= start + 200;
    while matches!(kind(index), Some(TokenKind::Bare | TokenKind::BlockComment | TokenKind::Stray)) && near(index) {
        index += 1;
    }
    let end = parser.tokens[..index].last().map_or(start, |token| token.end as usize).max(start);
    let written = &parser.text[start..end];
    let plausible = index > parser.index + 2 && !written.contains([' ', '\t', '\n', '\r']);
    if !plausible || start < parser.now.quoted_until {
        return None;
    }
    let span = parser.span(start, end);
    parser.now.quoted_until = end;
    parser.problems.add(|| {
        let quoted = word::quote_text(written);
        habit_problem(span, format!("`{written}` needs quotes: it has a comment, from `/*` to `*/`"), "needs quotes")
            .help(format!("write `{quoted}`"))
            .fix(format!("write `{quoted}`"), span, quoted.clone())
    });
    None
}

/// `a, b`
fn detect_comma(parser: &mut Parser<'_>) -> Option<(usize, usize)> {
    let (written, here) = (parser.token_text(), parser.token_span());
    // One problem for a node: its other commas are the same mistake.
    if !parser.now.list && !parser.now.comma {
        parser.now.comma = true;
        let mark = Span { start: here.end - 1, ..here };
        parser.problems.add(|| {
            let quoted = word::quote_text(written);
            let kind =
                if word::classify_word(written) == Word::Name { ProblemKind::Habit } else { ProblemKind::Syntax };
            habit_problem(mark, "values are separated by spaces, not by commas", "a comma")
                .kind(kind)
                .help(format!("remove the comma, or write `{quoted}` when it belongs to the text"))
                .unsafe_fix("remove the comma", mark, "")
        });
    }
    Some((0, written.len() - 1))
}

/// `http://…`, which KDL takes as a word and a comment.
fn detect_url(parser: &mut Parser<'_>) -> Option<(usize, usize)> {
    let here = parser.token_span();
    let rest = &parser.text[here.end as usize..];
    let length = rest.find([' ', '\t', '\n', '\r', ';', '{', '}']).unwrap_or(rest.len());
    let span = Span { end: here.end + u32::try_from(length).unwrap_or(0), ..here };
    parser.problems.add(|| {
        let quoted = word::quote_text(&parser.text[span.range()]);
        habit_problem(span, "an address needs quotes: `//` starts a comment", "needs quotes")
            .help(format!("write `{quoted}`"))
            .fix(format!("write `{quoted}`"), span, quoted.clone())
    });
    None
}

/// `key: value` behind the name of a node.
fn detect_colon(parser: &mut Parser<'_>) -> Option<(usize, usize)> {
    let (written, here) = (parser.token_text(), parser.token_span());
    let name = &written[..written.len() - 1];
    let gap = Span { start: here.end - 1, end: here.end, ..here };
    let after = parser.tokens.get(parser.index + 1).map_or(here.end, |token| token.end);
    parser.problems.add(|| {
        let quoted = word::quote_text(written);
        habit_problem(gap, format!("a property is written `{name}=VALUE`, without `:`"), "a colon")
            .help(format!("write `{name}=` directly before its value, or `{quoted}` for the text"))
            .unsafe_fix(format!("write `{name}=`"), Span { end: after, ..gap }, "=")
    });
    None
}
