//! Finds the part of an interpolation (`<<…>>`, `{{ … }}` or `{% … %}`, closed or not) at a cursor.
//!
//! In: a text, the part of it that is a prompt, and the cursor. Out: the part of the interpolation that the cursor is
//! in. This module reads only the text around the cursor, so half a directive works as well as a whole one.

use std::ops::Range;

use swarmc_compiler::interpolation;

/// How far back the beginning of a piece of logic is looked for, in bytes.
const LOOK_BACK: usize = 2000;

/// The interpolation that a cursor is in.
#[derive(Debug)]
pub(super) enum Interpolation<'t> {
    /// `<<…`
    Directive(Directive<'t>),
    /// `{{ …` or `{% …`
    Logic(Logic<'t>),
}

/// A directive, up to the cursor.
#[derive(Debug)]
pub(super) struct Directive<'t> {
    /// Its word, and where that stands.
    pub(super) word: &'t str,
    /// Where the word stands.
    pub(super) at: Range<usize>,
    /// The step, parameter or path after it; the fields after that; the filters so far.
    pub(super) name: &'t str,
    /// The fields before the cursor's.
    pub(super) fields: Vec<&'t str>,
    /// The part that the cursor is in.
    pub(super) part: Part,
    /// The word under the cursor.
    pub(super) range: Range<usize>,
    /// What its end lacks: `>>`, `>`, or nothing.
    pub(super) missing: &'static str,
    /// Whether anything of it follows the word under the cursor.
    pub(super) followed: bool,
}

/// A part of a [`Directive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// `output`
    Word,
    /// `planner`, or a path.
    Name,
    /// A field.
    Field,
    /// The name of a filter.
    Filter,
    /// Its argument.
    Argument,
}

/// A piece of logic, or an expression of the spec.
#[derive(Debug)]
pub(super) struct Logic<'t> {
    /// From its beginning to the cursor.
    pub(super) before: &'t str,
    /// Where it begins.
    pub(super) start: usize,
    /// Whether it is `{% … %}`.
    pub(super) statement: bool,
    /// Where the text around it begins.
    pub(super) text: usize,
}

/// The interpolation at an offset of a text, of which `region` is a prompt.
pub(super) fn find_hole(text: &str, region: Range<usize>, offset: usize) -> Option<Interpolation<'_>> {
    let offset = offset.clamp(region.start, region.end);
    parse_directive(text, &region, offset)
        .map(Interpolation::Directive)
        .or_else(|| parse_logic(text, &region, offset).map(Interpolation::Logic))
}

fn parse_directive<'t>(text: &'t str, region: &Range<usize>, offset: usize) -> Option<Directive<'t>> {
    let before = &text[region.start..offset];
    let line = region.start + before.rfind('\n').map_or(0, |newline| newline + 1);
    let start = line + text[line..offset].rfind("<<")?;
    let body = &text[start + 2..offset];
    let last = text[line..start].chars().next_back();
    if matches!(last, Some('\\' | '<')) || is_closed(body) {
        return None;
    }
    let length = body.len() - body.trim_start_matches(is_name).len();
    let word = &body[..length];
    let rest = &text[offset..region.end];
    let rest = &rest[..rest.find('\n').unwrap_or(rest.len())];
    if length == body.len() {
        // `1<<2` and `cat <<EOF` are no beginnings.
        // In a string of the spec, `\n` before one is a line break.
        let escape = ["\\n", "\\t", "\\r"].into_iter().any(|escape| text[line..start].ends_with(escape));
        let stuck = last.is_some_and(|last| last.is_alphanumeric() || matches!(last, ')' | ']'));
        let shift = word.is_empty() && stuck && !escape;
        let after = rest.len() - rest.trim_start_matches(is_name).len();
        let whole = &text[start + 2..offset + after];
        let possible = interpolation::directive_terms().any(|term| is_like(word, term.word));
        if shift || !possible {
            return None;
        }
        let (missing, followed) = missing_end(&rest[after..]);
        let at = start + 2..offset + after;
        let (fields, range) = (Vec::new(), at.clone());
        return Some(Directive { word: whole, at, name: "", fields, part: Part::Word, range, missing, followed });
    }
    if !interpolation::directive_terms().any(|term| term.word == word) {
        return None;
    }
    let at = start + 2..start + 2 + length;
    let mut found = Directive {
        word,
        at,
        name: "",
        fields: Vec::new(),
        part: Part::Name,
        range: 0..0,
        missing: "",
        followed: false,
    };
    let tail = &body[length..];
    let is_file = matches!(word, "include" | "file");
    let after;
    match tail.split_once('|') {
        Some((path, filters)) => {
            (found.name, found.fields) = path_of(path, is_file)?;
            let filter = filters.rsplit('|').next().unwrap_or(filters);
            let trimmed = filter.trim_start();
            let (from, part) = match trimmed.split_once(':') {
                Some((name, argument)) => {
                    found.fields = vec![name.trim()];
                    (offset - argument.len(), Part::Argument)
                }
                None => (offset - trimmed.len(), Part::Filter),
            };
            if part == Part::Filter && !trimmed.chars().all(is_name) {
                return None;
            }
            found.part = part;
            after = rest.len() - rest.trim_start_matches(is_name).len();
            found.range = from..offset + after;
        }
        None => {
            let path = tail.strip_prefix(':').or_else(|| tail.strip_prefix('.').filter(|_| word == "item"))?;
            if path.contains(char::is_whitespace) {
                return None;
            }
            let (from, sign): (usize, fn(char) -> bool) = if is_file {
                found.name = path;
                (offset - path.len(), |sign| is_name(sign) || matches!(sign, '/' | '.' | '~' | '*'))
            } else if tail.starts_with('.') {
                let last = path.rfind('.').map_or(path, |dot| &path[dot + 1..]);
                found.fields = path[..path.len() - last.len()].split('.').filter(|part| !part.is_empty()).collect();
                found.part = Part::Field;
                (offset - last.len(), is_name)
            } else if let Some(dot) = path.rfind('.') {
                let mut parts = path[..dot].split('.');
                found.name = parts.next().unwrap_or_default();
                found.fields = parts.collect();
                found.part = Part::Field;
                (offset - (path.len() - dot - 1), is_name)
            } else {
                found.name = path;
                (offset - path.len(), is_name)
            };
            after = rest.len() - rest.trim_start_matches(sign).len();
            found.range = from..offset + after;
        }
    }
    (found.missing, found.followed) = missing_end(&rest[after..]);
    Some(found)
}

/// The name and the fields of `:name.field`.
fn path_of(path: &str, is_file: bool) -> Option<(&str, Vec<&str>)> {
    let path = path.trim_end();
    let body = path.trim_start_matches([':', '.']);
    if body.contains(char::is_whitespace) {
        return None;
    }
    if is_file {
        return Some((body, Vec::new()));
    }
    let mut parts = body.split('.');
    let name = if path.starts_with('.') { "" } else { parts.next().unwrap_or_default() };
    Some((name, parts.filter(|part| !part.is_empty()).collect()))
}

/// Whether a directive has ended: `>>` outside the quotes of its filters.
fn is_closed(body: &str) -> bool {
    let (mut filters, mut quoted) = (false, false);
    let bytes = body.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'|' if !quoted => filters = true,
            b'"' if filters => quoted = !quoted,
            b'>' if !quoted && bytes.get(index + 1) == Some(&b'>') => return true,
            _ => {}
        }
    }
    false
}

/// What the end of a directive lacks, and whether more of it follows; `rest` is what stands behind the word, up to the
/// end of the line.
fn missing_end(rest: &str) -> (&'static str, bool) {
    if rest.starts_with(">>") {
        return ("", false);
    }
    if rest.starts_with('>') {
        return (">", false);
    }
    let shaped = |sign: char| is_name(sign) || matches!(sign, ':' | '.' | '/' | '~' | '*');
    let tail = rest.trim_start_matches(shaped);
    let filtered = tail.trim_start_matches(' ').starts_with('|');
    let closed =
        if filtered { tail.find(">>").is_some_and(|at| !tail[..at].contains("<<")) } else { tail.starts_with(">>") };
    match closed {
        true => ("", true),
        false => (">>", false),
    }
}

fn parse_logic<'t>(text: &'t str, region: &Range<usize>, offset: usize) -> Option<Logic<'t>> {
    let from = text.floor_char_boundary(region.start.max(offset.saturating_sub(LOOK_BACK)));
    let window = &text[from..offset];
    let window = window.rfind("\n\n").map_or(window, |blank| &window[blank..]);
    let opening = ["{{", "{%", "{#"].into_iter().filter_map(|opening| Some((window.rfind(opening)?, opening))).max()?;
    let (at, opening) = opening;
    let before = window[at + 2..].strip_prefix('-').unwrap_or(&window[at + 2..]);
    let closing = match opening {
        "{{" => "}}",
        "{%" => "%}",
        _ => return None,
    };
    let commented = window.rfind("{#").is_some_and(|comment| !window[comment..].contains("#}"));
    if before.contains(closing) || commented {
        return None;
    }
    Some(Logic { before, start: offset - before.len(), statement: opening == "{%", text: region.start })
}

/// Whether what was typed could become a word: its letters stand in it, in this order.
pub(super) fn is_like(typed: &str, word: &str) -> bool {
    let mut letters = word.chars();
    typed.chars().all(|sign| letters.any(|letter| letter.eq_ignore_ascii_case(&sign)))
}

fn is_name(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(marked: &str) -> String {
        let offset = marked.find("$0").expect("a cursor");
        let text = marked.replacen("$0", "", 1);
        match find_hole(&text, 0..text.len(), offset) {
            None => "nothing".to_owned(),
            Some(Interpolation::Logic(logic)) => format!("logic {:?} {}", logic.before, logic.statement),
            Some(Interpolation::Directive(found)) => {
                let Directive { word, name, fields, part, range, missing, .. } = found;
                format!("{part:?} {word}·{name}·{} [{}] {missing}", fields.join("."), &text[range])
            }
        }
    }

    #[test]
    fn half_a_directive_is_understood() {
        let check = |marked: &str, wanted: &str| assert_eq!(shown(marked), wanted, "{marked}");
        check("Say <<$0", "Word ·· [] >>");
        check("Say <<out$0", "Word out·· [out] >>");
        check("Say <<o$0ut>> more", "Word out·· [out] ");
        check("Say <<out$0>", "Word out·· [out] >");
        check("Say <<output:$0", "Name output·· [] >>");
        check("Say <<output:pl$0an>>", "Name output·pl· [plan] ");
        check("Say <<output:plan.$0", "Field output·plan· [] >>");
        check("Say <<output:plan.steps.ti$0 and >> more", "Field output·plan·steps [ti] >>");
        check("Say <<output:pl$0.steps | tail:3>>", "Name output·pl· [pl] ");
        check("Say <<output:plan | ta$0>>", "Filter output·plan· [ta] ");
        check("Say <<output:plan.steps|$0", "Filter output·plan·steps [] >>");
        check("Say <<output:plan | tail:$0", "Argument output·plan·tail [] >>");
        check("Say <<include:parts/in$0", "Name include·parts/in· [parts/in] >>");
        check("Say <<item.na$0>>", "Field item·· [na] ");
        check("<<output:a>> <<output:$0", "Name output·· [] >>");
        check("x<<out$0", "Word out·· [out] >>");
        check(r"x:\n<<$0", "Word ·· [] >>");
    }

    #[test]
    fn prose_and_code_are_no_holes() {
        for text in [
            "a << $0b",
            "1<<$0",
            "x <<< $0",
            "cat <<EOF$0",
            "cat <<<$0",
            r"\<<out$0",
            "a $0",
            "<<output:a>> $0",
            "<<output:a> and $0",
            "cout <<zebra.$0",
            "<<output:a b$0",
            "{# {{ $0",
            "{{ a }} $0",
            "{% if a %} $0",
        ] {
            assert_eq!(shown(text), "nothing", "{text}");
        }
    }

    #[test]
    fn logic_reaches_back_to_its_opening() {
        assert_eq!(shown("a {{ output.$0"), "logic \" output.\" false");
        assert_eq!(shown("a {{ output.$0 }}"), "logic \" output.\" false");
        assert_eq!(shown("{%- if a\n and $0 %}"), "logic \" if a\\n and \" true");
        assert_eq!(shown("{{ a\n\nb $0"), "nothing");
    }
}
