//! One piece of logic: `{{…}}`, `{%…%}`, `{#…#}` or a raw region.
//!
//! Goes in: a text and where logic starts. Comes out: where it ends, and what is wrong that minijinja would not say
//! well, or could not say without recursing too deeply. Ends where minijinja's own lexer ends it.

use std::collections::BTreeSet;
use std::ops::Range;

use memchr::memmem;
use minijinja::machinery::{Span, Token, Tokenizer, ast, parse_expr};

use super::directive::{Found, clip_word, parse_directive};
use super::tree::Expr;
use super::{Kind, Problem, Root, Spanned, lower};
use crate::code::Code;

/// The most tokens of one `{{…}}` or `{%…%}`.
const MAX_TOKENS: usize = 10_000;
/// How deep brackets may nest in an expression.
const MAX_BRACKETS: usize = 32;
/// How many operators may follow each other, brackets around them included; minijinja recurses on each.
const MAX_CHAIN: usize = 200;

/// A piece of logic.
pub(super) struct Region<'a> {
    /// Where it ends.
    pub(super) end: usize,
    /// The first word of a `{%…%}`.
    pub(super) word: Option<Spanned<&'a str>>,
    /// Whether a `{% set %}` assigns at once, without a body.
    pub(super) assigns: bool,
    /// Offsets of `-` in names, which are to be read as `_`.
    pub(super) dashes: Vec<usize>,
    /// Whether it may go to minijinja.
    pub(super) usable: bool,
    /// Whether looking for its end may have cost a look at the whole text.
    pub(super) lost: bool,
}

impl<'a> Region<'a> {
    fn with_end(end: usize) -> Region<'a> {
        Region { end, word: None, assigns: false, dashes: Vec::new(), usable: true, lost: false }
    }
}

type Tokens<'a> = Vec<(Token<'a>, Span)>;

/// Reads the region at `start`, where the text says `{{`, `{%` or `{#`. `bound` gains the names that it binds.
pub(super) fn parse_region<'a>(
    text: &'a str,
    start: usize,
    bound: &mut BTreeSet<&'a str>,
    problems: &mut Vec<Problem>,
) -> Region<'a> {
    let rest = &text.as_bytes()[start + 2..];
    if text.as_bytes()[start + 1] == b'#' {
        return match memmem::find(rest, b"#}") {
            Some(index) => Region::with_end(start + 2 + index + 2),
            None => {
                let help = format!("write `#}}` where the comment ends; for the text itself, {}", as_text("{#"));
                report_lost(start, start..start + 2, "`{#` is not closed", &help, problems)
            }
        };
    }
    let block = text.as_bytes()[start + 1] == b'%';
    if let Some(length) = raw_tag_length(rest, b"raw").filter(|_| block) {
        return parse_raw(text, start, start + 2 + length, problems);
    }
    let (tokens, end) = match read_tokens(text, start) {
        Ok(tokens) => tokens,
        Err(fault) => return report_fault(text, start, fault, problems),
    };
    let mut region = Region::with_end(end);
    if let (true, Some((Token::Ident(word), span))) = (block, tokens.first()) {
        region.word = Some(Spanned { value: word, range: shift_span(*span, start) });
        region.assigns = tokens.iter().any(|(token, _)| matches!(token, Token::Assign));
        collect_bindings(word, &tokens[1..], bound);
    }
    if check_nested(text, start, &tokens, problems) || too_deep(&tokens, start..end, problems) {
        region.usable = false;
        return region;
    }
    region.dashes = check_dashes(text, start, &tokens, bound, problems);
    let expression = match (block, region.word.as_ref().map(|word| word.value)) {
        (false, _) => Some(inner_range(text, start, end)),
        (true, Some("if" | "elif")) => {
            region.word.as_ref().map(|word| word.range.end..inner_range(text, start, end).end)
        }
        _ => None,
    };
    if let Some(expression) = expression {
        region.usable = parse_checked(text, expression, start..end, &region.dashes, problems, |_| ()).is_some();
    }
    region
}

/// The tree of a standalone expression, whose tokens are checked as those of a region are; none when it must not go to
/// minijinja, or is no expression.
pub(super) fn parse_alone(text: &str, problems: &mut Vec<Problem>) -> Option<Expr> {
    let mut tokenizer = Tokenizer::new(text, "", true, Default::default());
    let mut tokens = Vec::new();
    loop {
        match tokenizer.next_token() {
            Ok(Some(_)) if tokens.len() == MAX_TOKENS => {
                problems.push(too_long(0..text.len()));
                return None;
            }
            Ok(Some((Token::VariableEnd, span))) => {
                problems.push(
                    template_error(
                        shift_span(span, 0),
                        "`}}` does not belong here",
                        "a condition is an expression alone",
                    )
                    .help("leave it out"),
                );
                return None;
            }
            Ok(Some(token)) => tokens.push(token),
            Ok(None) => break,
            Err(error) => {
                problems.push(syntax_error(&error, 0, 0..text.len(), text));
                return None;
            }
        }
    }
    if check_nested(text, 0, &tokens, problems) || too_deep(&tokens, 0..text.len(), problems) {
        return None;
    }
    let dashes = check_dashes(text, 0, &tokens, &BTreeSet::new(), problems);
    parse_checked(text, 0..text.len(), 0..text.len(), &dashes, problems, lower::lower_expression)
}

/// Why the end of a region could not be found.
enum Fault {
    Unclosed,
    TooLong,
    Syntax(minijinja::Error),
}

/// The tokens between the delimiters, and where the region ends.
fn read_tokens(text: &str, start: usize) -> Result<(Tokens<'_>, usize), Fault> {
    let mut tokenizer = Tokenizer::new(&text[start..], "", false, Default::default());
    let mut tokens = Vec::new();
    loop {
        match tokenizer.next_token() {
            Ok(Some((Token::VariableStart | Token::BlockStart, _))) => {}
            Ok(Some((Token::VariableEnd | Token::BlockEnd, span))) => {
                return Ok((tokens, start + span.end_offset as usize));
            }
            Ok(Some(_)) if tokens.len() == MAX_TOKENS => return Err(Fault::TooLong),
            Ok(Some(token)) => tokens.push(token),
            Ok(None) => return Err(Fault::Unclosed),
            Err(error) => return Err(Fault::Syntax(error)),
        }
    }
}

fn report_fault<'a>(text: &'a str, start: usize, fault: Fault, problems: &mut Vec<Problem>) -> Region<'a> {
    let delimiter = &text[start..start + 2];
    let close = if delimiter == "{{" { "}}" } else { "%}" };
    let line = memchr::memchr(b'\n', &text.as_bytes()[start..]).map_or(text.len(), |index| start + index);
    let closed = memmem::find(&text.as_bytes()[start..line], close.as_bytes()).map(|index| start + index + 2);
    match fault {
        Fault::TooLong => problems.push(too_long(start..start + 2)),
        Fault::Syntax(error) => problems.push(syntax_error(&error, start, start..closed.unwrap_or(line), text)),
        Fault::Unclosed if closed.is_some() => problems.push(
            template_error(start..closed.unwrap_or(line), "brackets do not match", "in this piece of logic")
                .help(format!("close every bracket before `{close}`")),
        ),
        Fault::Unclosed => {
            let help = format!("write `{close}` where it ends; for the text itself, {}", as_text(delimiter));
            return report_lost(start, start..start + 2, &format!("`{delimiter}` is not closed"), &help, problems);
        }
    }
    Region { usable: false, lost: true, ..Region::with_end(closed.unwrap_or(start + 2)) }
}

fn report_lost<'a>(
    start: usize,
    range: Range<usize>,
    message: &str,
    help: &str,
    problems: &mut Vec<Problem>,
) -> Region<'a> {
    problems.push(template_error(range, message, "opened here").help(help));
    Region { usable: false, lost: true, ..Region::with_end(start + 2) }
}

/// The length of `- raw -%}` and the like at the start of `rest`, which follows `{%`.
fn raw_tag_length(rest: &[u8], word: &[u8]) -> Option<usize> {
    let blanks = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let sign = |bytes: &[u8]| usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let mut at = sign(rest);
    at += blanks(&rest[at..]);
    if !rest[at..].starts_with(word) {
        return None;
    }
    at += word.len();
    at += blanks(&rest[at..]);
    at += sign(&rest[at..]);
    rest[at..].starts_with(b"%}").then_some(at + 2)
}

/// A raw region, whose opening tag ends at `body`.
fn parse_raw<'a>(text: &'a str, start: usize, body: usize, problems: &mut Vec<Problem>) -> Region<'a> {
    // Minijinja ends a raw region at `endraw` only, whatever other tags stand in it.
    for index in memmem::find_iter(&text.as_bytes()[body..], b"{%") {
        let after = body + index + 2;
        if let Some(length) = raw_tag_length(&text.as_bytes()[after..], b"endraw") {
            return Region::with_end(after + length);
        }
    }
    let help = "write `{% endraw %}` where the raw text ends";
    report_lost(start, start..body, "`{% raw %}` is not closed", help, problems)
}

/// Notes the names that a statement binds.
fn collect_bindings<'a>(word: &str, tokens: &[(Token<'a>, Span)], bound: &mut BTreeSet<&'a str>) {
    let ends = |token: &Token<'_>| match word {
        "set" => matches!(token, Token::Assign | Token::Pipe),
        "for" => matches!(token, Token::Ident("in")),
        _ => false,
    };
    match word {
        "set" | "for" => {
            let targets = tokens.iter().take_while(|(token, _)| !ends(token));
            bound.extend(targets.filter_map(|(token, _)| match token {
                Token::Ident(name) => Some(*name),
                _ => None,
            }));
        }
        "with" => bound.extend(tokens.windows(2).filter_map(|pair| match pair {
            [(Token::Ident(name), _), (Token::Assign, _)] => Some(*name),
            _ => None,
        })),
        _ => {}
    }
}

/// Reports directives that stand inside the logic.
fn check_nested(text: &str, start: usize, tokens: &Tokens<'_>, problems: &mut Vec<Problem>) -> bool {
    let mut found = false;
    for window in tokens.windows(3) {
        let [(Token::Lt, first), (Token::Lt, second), (Token::Ident(word), third)] = window else { continue };
        let adjacent = first.end_offset == second.start_offset && second.end_offset == third.start_offset;
        let Some(kind) = Kind::from_word(word).filter(|_| adjacent) else { continue };
        let at = start + first.start_offset as usize;
        // Its own problems are dropped: it may not stand here, however it is written.
        let (range, path) = match parse_directive(text, at, &mut Vec::new()) {
            Found::Directive(directive) => {
                let names = directive.name.iter().chain(&directive.fields).map(|name| name.value.replace('-', "_"));
                let path: Vec<String> = std::iter::once(kind.as_str().to_owned()).chain(names).collect();
                let plain = directive.filters.is_empty() && matches!(kind, Kind::Read(_));
                (directive.range, plain.then(|| path.join(".")))
            }
            Found::Broken(start, end) => (start..end, None),
            Found::Nothing => (at..start + third.end_offset as usize, None),
        };
        found = true;
        let problem = template_error(range.clone(), "a directive inside an expression", "only values can stand here");
        problems.push(match path {
            Some(path) => {
                problem.help(format!("write `{path}`")).fix(format!("write `{path}`"), range, path.clone(), true)
            }
            None => problem.help(format!("write it without `<<` and `>>`, as in `{}.NAME`", kind.as_str())),
        });
    }
    found
}

/// Reports an expression on which minijinja would recurse too deeply.
fn too_deep(tokens: &Tokens<'_>, range: Range<usize>, problems: &mut Vec<Problem>) -> bool {
    // Per open bracket: the operators of its list so far, and those of its current item.
    let mut open: Vec<(usize, usize)> = vec![(0, 0)];
    let (mut outside, mut deepest, mut brackets) = (0, 0, 0);
    for (token, _) in tokens {
        let nested = open.len() > 1;
        // Never empty: only nested lists are taken off.
        let Some((chain, item)) = open.last_mut() else { break };
        match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                *item += 1;
                outside += *chain + *item;
                open.push((0, 0));
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose if nested => {
                open.pop();
                // The counts of the list outside are those that were added when this bracket opened.
                outside -= open.last().map_or(0, |(chain, item)| chain + item);
            }
            Token::Comma | Token::Colon => (*chain, *item) = (0, 0),
            Token::Ident("and" | "or" | "if" | "else") => {
                *chain += 1;
                *item = 0;
            }
            Token::Ident("not" | "in" | "is") => *item += 1,
            Token::Ident(_) | Token::Str(_) | Token::String(_) | Token::Int(_) | Token::Int128(_) | Token::Float(_) => {
            }
            _ => *item += 1,
        }
        let here = open.last().map_or(0, |(chain, item)| chain + item);
        deepest = deepest.max(outside + here);
        brackets = brackets.max(open.len() - 1);
    }
    if deepest <= MAX_CHAIN && brackets <= MAX_BRACKETS {
        return false;
    }
    let message = match brackets > MAX_BRACKETS {
        true => format!("brackets nest more than {MAX_BRACKETS} deep"),
        false => format!("more than {MAX_CHAIN} operators in one expression"),
    };
    problems.push(template_error(range, message, "too deep").help("compute it in steps, with `{% set name = … %}`"));
    true
}

/// Reports names with `-`, which minijinja would subtract, and says where the `-` stand.
fn check_dashes(
    text: &str,
    start: usize,
    tokens: &Tokens<'_>,
    bound: &BTreeSet<&str>,
    problems: &mut Vec<Problem>,
) -> Vec<usize> {
    let mut dashes = Vec::new();
    for index in 0..tokens.len().saturating_sub(2) {
        let [(Token::Ident(root), root_span), (Token::Dot, _), (Token::Ident(_), name)] = &tokens[index..index + 3]
        else {
            continue;
        };
        let named =
            Root::from_word(root).is_some_and(|root| root.required_name().is_some() && root.properties().is_none());
        // Behind a dot, the word is a field and no root.
        if !named || bound.contains(root) || (index > 0 && matches!(tokens[index - 1].0, Token::Dot)) {
            continue;
        }
        let (found, end) = scan_name_tail(&tokens[index + 3..], name.end_offset, bound);
        if found.is_empty() {
            continue;
        }
        let range = start + root_span.start_offset as usize..start + end as usize;
        let name_range = start + name.start_offset as usize..range.end;
        let written = &text[range.clone()];
        let (root_text, name_text) = written.split_once('.').unwrap_or((written, ""));
        let right = format!("{}.{}", root_text, name_text.trim().replace('-', "_"));
        problems.push(
            template_error(name_range, format!("`{}` is a subtraction", clip_word(written)), "`-` is minus here")
                .help(format!("in an expression write `_` for the `-` of a name: `{}`", clip_word(&right)))
                .fix(format!("write `{}`", clip_word(&right)), range, right, true),
        );
        dashes.extend(found.iter().map(|offset| start + *offset as usize));
    }
    dashes
}

/// The `-` of a name that goes on after `end`, and where it really ends.
fn scan_name_tail(tokens: &[(Token<'_>, Span)], mut end: u32, bound: &BTreeSet<&str>) -> (Vec<u32>, u32) {
    let mut dashes = Vec::new();
    let mut words = false;
    let mut rest = tokens;
    while let [(Token::Minus, minus), (part, span), more @ ..] = rest {
        // With a space beside it, a `-` subtracts.
        if minus.start_offset != end || span.start_offset != minus.end_offset {
            break;
        }
        match part {
            Token::Ident(word) => {
                let root = Root::from_word(word);
                let dotted = matches!(more.first(), Some((Token::Dot, _)));
                // `plan` and `item` are likelier parts of a name.
                let read = root.is_some_and(|root| dotted || (root.required_name().is_none() && !root.is_free()));
                if read || bound.contains(word) {
                    break;
                }
                words = true;
            }
            Token::Int(_) => {}
            _ => break,
        }
        dashes.push(minus.start_offset);
        end = span.end_offset;
        rest = more;
    }
    // `output.count-1` subtracts.
    if words { (dashes, end) } else { (Vec::new(), end) }
}

/// Parses the expression at `inner` and passes its tree to `read`, whose result it returns; reports what does not parse.
fn parse_checked<T>(
    text: &str,
    inner: Range<usize>,
    region: Range<usize>,
    dashes: &[usize],
    problems: &mut Vec<Problem>,
    read: impl FnOnce(&ast::Expr<'_>) -> T,
) -> Option<T> {
    let source = replace_dashes(text, inner.clone(), dashes);
    if source.trim().is_empty() {
        problems.push(
            template_error(region, "an empty expression", "nothing stands here")
                .help("write a value, as in `output.NAME`"),
        );
        return None;
    }
    match parse_expr(&source) {
        Ok(tree) => Some(read(&tree)),
        Err(error) => {
            problems.push(syntax_error(&error, inner.start, inner, text));
            None
        }
    }
}

/// The text at `range` with `_` for the given `-`.
pub(super) fn replace_dashes(text: &str, range: Range<usize>, dashes: &[usize]) -> String {
    let mut patched = String::with_capacity(range.len());
    let mut at = range.start;
    // They come in the order of the text, so `at` never goes back.
    for dash in dashes.iter().filter(|dash| range.contains(dash)) {
        patched.push_str(&text[at..*dash]);
        patched.push('_');
        at = dash + 1;
    }
    patched.push_str(&text[at..range.end]);
    patched
}

/// What stands between the delimiters, their signs left out.
fn inner_range(text: &str, start: usize, end: usize) -> Range<usize> {
    let sign = |at: usize| usize::from(matches!(text.as_bytes()[at], b'-' | b'+'));
    let from = start + 2 + sign(start + 2);
    // In `{{-}}` one sign is both the first and the last.
    from..(end - 2 - sign(end - 3)).max(from)
}

/// A syntax error of minijinja whose offsets count from `base`.
pub(super) fn syntax_error(error: &minijinja::Error, base: usize, region: Range<usize>, text: &str) -> Problem {
    let detail = error.detail().unwrap_or("not an expression");
    let range = error.range().map_or(region.clone(), |range| base + range.start..base + range.end);
    let range = whole_chars(text, range.start.clamp(region.start, region.end)..range.end.min(region.end));
    let message = detail.replace("variable block", "`{{`").replace("end of block", "`%}`");
    let problem = template_error(range.clone(), message, "not understood here");
    if [range.start, range.start.saturating_sub(1)]
        .iter()
        .any(|&at| text.get(at..).is_some_and(|rest| rest.starts_with("=~")))
    {
        return problem.help("there are no patterns: write `'TEXT' in VALUE`, or `VALUE is startingwith('TEXT')`");
    }
    match foreign_operator(text, range.start, detail) {
        Some((place, word)) => problem.help(format!("write `{}`, not `{}`", word.trim(), &text[place.clone()])).fix(
            format!("write `{}`", word.trim()),
            place.clone(),
            word,
            // A single `&` may be anything.
            &text[place] != "&",
        ),
        None if text[range].starts_with("contains") => problem.help("write `'TEXT' in VALUE`"),
        None if !text.contains('{') => problem.help("write an expression, as in `output.NAME.FIELD == \"text\"`"),
        None => problem.help(format!("mend it, or, for the text itself, {}", as_text("{{"))),
    }
}

/// An operator of another language at `at`, and what it is called here.
fn foreign_operator(text: &str, at: usize, detail: &str) -> Option<(Range<usize>, &'static str)> {
    let sign = |byte: &u8| b"&|=!".contains(byte);
    let start = at - text.as_bytes()[..at].iter().rev().take(4).take_while(|byte| sign(byte)).count();
    let length = text.as_bytes()[start..].iter().take(8).take_while(|byte| sign(byte)).count();
    let word = match &text[start..start + length] {
        "&&" | "&" => "and",
        "||" => "or",
        "=" if detail.contains("after expression") => "==",
        "===" => "==",
        "!==" => "!=",
        "!" => "not ",
        _ => return None,
    };
    Some((start..start + length, word))
}

/// A range that a message may point at: between characters, and not empty where something follows.
fn whole_chars(text: &str, range: Range<usize>) -> Range<usize> {
    let mut start = range.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = range.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// How to write something that looks like logic and is none.
pub(super) fn as_text(delimiter: &str) -> String {
    format!("put `{{% raw %}}` before and `{{% endraw %}}` after `{delimiter}`")
}

fn too_long(range: Range<usize>) -> Problem {
    template_error(range, format!("an expression of more than {MAX_TOKENS} words"), "too long")
        .help("compute it in steps, with `{% set name = … %}`")
}

pub(super) fn template_error(range: Range<usize>, message: impl Into<String>, label: impl Into<String>) -> Problem {
    Problem::new(Code::TemplateError, range, message, label)
}

fn shift_span(span: Span, start: usize) -> Range<usize> {
    start + span.start_offset as usize..start + span.end_offset as usize
}
