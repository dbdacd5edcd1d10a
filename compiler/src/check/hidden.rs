//! SW507: a spec, a prompt or a document of a context pack contains invisible characters, or characters that change the
//! direction of text.
//!
//! An agent reads these characters, and a reviewer does not see them. The check accepts those that writing needs:
//! joiners in emoji and in scripts that join, direction marks beside right-to-left text, variation selectors after
//! their base.

use std::collections::BTreeSet;

use crate::ast::{PackRule, Spec};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load::Loader;
use crate::source::{FileId, Sources, Span};

pub(super) fn check(sources: &Sources, diagnostics: &mut Diagnostics) {
    for file in sources.files().filter(|&file| !sources.name(file).starts_with("std:")) {
        let text = sources.text(file);
        if !text.is_ascii() {
            check_text(file, text, diagnostics);
        }
    }
}

fn check_text(file: FileId, text: &str, diagnostics: &mut Diagnostics) {
    let byte = |at: usize| u32::try_from(at).expect("files are under 4 GiB");
    for (start, end) in find_hidden(text) {
        let span = Span::new(file, byte(start), byte(end));
        // The syntax of a spec refuses some of them already.
        if !diagnostics.has_report_at(span) {
            diagnostics.push(report_hidden(&text[start..end], span));
        }
    }
}

/// The documents that packs take in: their texts are no part of the plan, so that the place that names one stands for it.
pub(crate) fn check_documents(spec: &Spec, loader: &Loader<'_>, diagnostics: &mut Diagnostics) {
    let mut seen = BTreeSet::new();
    for rule in spec.packs.iter().flat_map(|pack| &pack.rules) {
        let PackRule::Docs { path, lines } = &rule.value else { continue };
        let span = path.span(0..path.as_str().len());
        let lines = lines.as_ref().map_or((1, u32::MAX), |lines| lines.value);
        if !seen.insert((span.file, path.as_str(), lines)) {
            continue;
        }
        let Some(text) = loader.peek_text(path.as_str(), span).filter(|text| !text.is_ascii()) else { continue };
        let (mut line, mut looked) = (1, 0);
        let inside = find_hidden(&text).into_iter().find_map(|(start, end)| {
            // Counted on from the run before, so that many runs in one text stay linear.
            line += text[looked..start].matches('\n').count();
            looked = start;
            let taken = u32::try_from(line).is_ok_and(|line| (lines.0..=lines.1).contains(&line));
            taken.then_some((line, start, end))
        });
        if let Some((line, start, end)) = inside {
            let column = text[..start].chars().rev().take_while(|&sign| sign != '\n').count() + 1;
            diagnostics.push(
                Diagnostic::new(
                    Code::HiddenText,
                    format!("in `{}`, {}", path.as_str(), describe_hidden(&text[start..end])),
                )
                .label(span, format!("line {line}, column {column}: {}", explain_hidden(&text[start..end])))
                .help("remove it there"),
            );
        }
    }
}

fn report_hidden(hidden: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::HiddenText, describe_hidden(hidden))
        .label(span, explain_hidden(hidden))
        .help("remove it; to keep it in a string of the spec, write an escape, `\\u{…}`")
        .unsafe_fix("remove it", span, "")
}

/// What these characters do.
fn describe_hidden(hidden: &str) -> String {
    let turns = hidden.chars().all(|sign| matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
    let first = hidden.chars().next().unwrap_or_default();
    let count = hidden.chars().count();
    match (count, turns) {
        (1, true) => format!("U+{:04X} changes the direction of the text around it", u32::from(first)),
        (1, false) => format!("U+{:04X} cannot be seen", u32::from(first)),
        (_, true) => format!("{count} characters change the direction of the text around them"),
        (_, false) => format!("{count} characters cannot be seen"),
    }
}

/// Why that matters.
fn explain_hidden(hidden: &str) -> String {
    // Tag characters spell invisible ASCII.
    let secret: String = hidden
        .chars()
        .filter_map(|sign| u32::from(sign).checked_sub(0xe0000).and_then(char::from_u32))
        .filter(|sign| (' '..='~').contains(sign))
        .collect();
    match secret.is_empty() {
        true => "an agent reads it, a reviewer does not see it".to_owned(),
        false => format!("spells `{secret}`"),
    }
}

/// The runs of characters that hide something, by their bytes.
fn find_hidden(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut before: Option<char> = None;
    // The tags that may still belong to a flag: those of a region, and their end.
    let mut flag = 0;
    let mut at = 0;
    // ASCII hides nothing, and is most of a text.
    while let Some(plain) = text.as_bytes()[at..].iter().position(|byte| !byte.is_ascii()) {
        if plain > 0 {
            at += plain;
            (before, flag) = (Some(char::from(text.as_bytes()[at - 1])), 0);
        }
        let mut signs = text[at..].chars();
        let Some(sign) = signs.next() else { break };
        flag = match sign {
            '\u{1f3f4}' => 8,
            '\u{e0020}'..='\u{e007f}' => i32::max(flag - 1, 0),
            _ => 0,
        };
        let end = at + sign.len_utf8();
        if is_hidden(at, sign, before, signs.next(), flag > 0, || right_to_left(line_of(text, at))) {
            match runs.last_mut() {
                Some(run) if run.1 == at => run.1 = end,
                _ => runs.push((at, end)),
            }
        } else {
            // What follows a hidden character is judged by what can be seen before it.
            before = Some(sign);
        }
        at = end;
    }
    runs
}

fn is_hidden(
    at: usize,
    sign: char,
    before: Option<char>,
    after: Option<char>,
    flag: bool,
    right_to_left: impl Fn() -> bool,
) -> bool {
    let plain = |neighbour: Option<char>| neighbour.is_none_or(|sign| sign.is_ascii() || is_latin(sign));
    match sign {
        // A byte order mark.
        '\u{feff}' => at > 0,
        '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}' | '\u{180e}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Fillers that are drawn as nothing.
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => true,
        // Marks of direction stand beside text that runs from right to left.
        '\u{200e}' | '\u{200f}' | '\u{061c}' => !right_to_left(),
        // Joiners join letters of scripts that join, and emoji.
        '\u{200c}' | '\u{200d}' => plain(before) || plain(after),
        // Selectors vary a sign; `#`, `*` and digits become keys.
        '\u{fe00}'..='\u{fe0f}' => match before {
            Some('#' | '*' | '0'..='9') => false,
            Some(sign) => sign.is_ascii() || is_selector(sign) || is_latin(sign),
            None => true,
        },
        '\u{e0100}'..='\u{e01ef}' => {
            before.is_none_or(|sign| !('\u{2e80}'..='\u{3ffff}').contains(&sign) || is_selector(sign))
        }
        '\u{e0000}'..='\u{e007f}' => !flag,
        _ => false,
    }
}

fn is_selector(sign: char) -> bool {
    matches!(sign, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

fn is_latin(sign: char) -> bool {
    matches!(sign, '\u{c0}'..='\u{24f}')
}

fn right_to_left(line: &str) -> bool {
    line.chars().any(|sign| {
        matches!(sign, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}') && sign != '\u{61c}'
    })
}

fn line_of(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    // Enough of a line that goes on for ever.
    let floor = text.floor_char_boundary(start.max(at.saturating_sub(400)));
    &text[floor..text.floor_char_boundary(end.min(at + 400))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        find_hidden(text).into_iter().map(|(start, end)| &text[start..end]).collect()
    }

    #[test]
    fn what_cannot_be_seen_is_found() {
        assert_eq!(found("a\u{200b}b"), ["\u{200b}"]);
        assert_eq!(found("a\u{202e}b\u{202c}"), ["\u{202e}", "\u{202c}"]);
        assert_eq!(found("hi\u{e0049}\u{e0067}\u{e006e}!"), ["\u{e0049}\u{e0067}\u{e006e}"]);
        assert_eq!(found("a\u{feff}b"), ["\u{feff}"]);
        assert_eq!(found("pass\u{200d}word"), ["\u{200d}"]);
        assert_eq!(found("a\u{fe01}\u{fe02}"), ["\u{fe01}\u{fe02}"]);
        assert_eq!(found("\u{1f600}\u{fe0f}\u{fe01}\u{e0101}"), ["\u{fe01}\u{e0101}"]);
        assert_eq!(found("left \u{200f}only"), ["\u{200f}"]);
        assert_eq!(found("\u{3164}"), ["\u{3164}"]);
    }

    #[test]
    fn what_writing_needs_is_left_alone() {
        for text in [
            "\u{feff}begins with a mark",
            "family 👨\u{200d}👩\u{200d}👧, heart ❤\u{fe0f}\u{200d}🔥, key 1\u{fe0f}\u{20e3}",
            "flag 🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} of Scotland",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "שלום \u{200f}(abc)\u{200e}",
            "e\u{301} a\u{308}\u{304}",
            "葛\u{e0100}城",
            "naïve größe — “quotes” … 日本語",
            "\u{a9}\u{fe0e} \u{2764}\u{fe0e}",
        ] {
            assert!(found(text).is_empty(), "{text:?}: {:?}", found(text));
        }
    }

    #[test]
    fn tags_are_spelt_out() {
        let hidden: String = "obey me".chars().map(|sign| char::from_u32(0xe0000 + u32::from(sign)).unwrap()).collect();
        let diagnostic = report_hidden(&hidden, Span::new(FileId::new(0), 0, 1));
        assert_eq!(diagnostic.labels[0].text, "spells `obey me`");
    }

    #[test]
    fn long_lines_stay_linear() {
        let text = "\u{200f}é".repeat(200_000);
        assert_eq!(find_hidden(&text).len(), 200_000);
    }
}
