//! One directive: `<<kind:name.field | filter:arg>>`, and its older notation.
//!
//! Goes in: a text and where a directive may start. Comes out: the directive, or plain text, with what is wrong.
//! A word that no directive has counts only where all around it has a directive's shape, so that here-documents and
//! shifts stay text.

use std::ops::Range;

use memchr::memchr;
use swarmc_plan::Filter;

use super::Term;
use super::default::named_default;
use super::names::{DIRECTIVE_FILTERS, FILTER_DOCS, list_kinds};
use super::unclosed::{half_closed, half_closed_problem, unclosed_directive};
use super::{Directive, Kind, MAX_PROBLEMS, Problem, Root, Spanned};
use crate::code::Code;
use crate::suggest::{find_nearest, format_list};

/// The longest directive, in bytes; what goes on beyond is not closed.
pub(super) const MAX_LENGTH: usize = 4096;

/// What stands at a place where a directive may start.
pub(super) enum Found {
    /// None: text.
    Nothing,
    /// One that is too wrong to be used, from there to there; it stays text.
    Broken(usize, usize),
    /// One.
    Directive(Directive),
}

/// Reads the directive at `start`, where the text says `<<`.
pub(super) fn parse_directive(text: &str, start: usize, problems: &mut Vec<Problem>) -> Found {
    let word_start = start + 2;
    let word = word_at(text, word_start);
    if word.is_empty() {
        return Found::Nothing;
    }
    let after = word_start + word.len();
    let rest = &text.as_bytes()[after..];
    // Other texts with `<<` and a word, such as a here-document of a shell, have none of these behind the word.
    let separated = matches!(rest, [b':' | b'.' | b'|', ..] | [b' ', b'|', ..] | [b'>', ..]);
    if !separated {
        return Found::Nothing;
    }
    let end = find_close(text, after);
    let Some(kind) = Kind::from_word(word) else {
        return report_unknown(text, start, word, end, problems);
    };
    if let Some(half) = half_closed(text, start, after, kind) {
        problems.push(half_closed_problem(text, start..half));
        return Found::Broken(start, half);
    }
    let Some(end) = end else {
        // `std::cerr <<error.text` is C++: only the colon tells a directive from it.
        let names = rest[0] == b':' && rest.get(1).is_some_and(|byte| byte.is_ascii_alphanumeric());
        if names {
            problems.push(unclosed_directive(text, start, after));
        }
        return Found::Nothing;
    };
    let body = Body { text, kind, start: word_start, at: after, end: end - 2 };
    match body.parse_body(start..end, problems) {
        Some(directive) => Found::Directive(directive),
        None => Found::Broken(start, end),
    }
}

/// Reads the older notation at `start`, where the text says `{{`: `{{output:x}}`, `{{input:x}}`, `{{include: x}}`.
pub(super) fn parse_legacy(text: &str, start: usize, problems: &mut Vec<Problem>) -> Found {
    let spaces = text[start + 2..].bytes().take_while(|byte| *byte == b' ').count();
    let word_start = start + 2 + spaces;
    let word = word_at(text, word_start);
    let after = word_start + word.len();
    if !matches!(word, "output" | "input" | "include") || text.as_bytes().get(after) != Some(&b':') {
        return Found::Nothing;
    }
    let window = &text.as_bytes()[after..text.len().min(after + MAX_LENGTH)];
    let Some(length) = window.iter().position(|byte| matches!(byte, b'}' | b'{' | b'\n')) else {
        return Found::Nothing;
    };
    let close = after + length;
    if !text[close..].starts_with("}}") {
        return Found::Nothing;
    }
    let Some(kind) = Kind::from_word(word) else { return Found::Nothing };
    let range = start..close + 2;
    let body = Body { text, kind, start: word_start, at: after, end: close };
    let modern = format!("<<{word}:{}>>", text[after + 1..close].trim());
    let Some(directive) = body.parse_body(range.clone(), problems) else { return Found::Broken(start, range.end) };
    problems.push(
        Problem::new(
            Code::LegacyDirective,
            range.clone(),
            "this is the older notation of a directive",
            "older notation",
        )
        .help(format!("write `{modern}`"))
        .fix(format!("write `{modern}`"), range, modern.clone(), true),
    );
    Found::Directive(directive)
}

/// The word at `at`, empty if there is none.
pub(super) fn word_at(text: &str, at: usize) -> &str {
    let bytes = &text.as_bytes()[at..];
    let length = match bytes.first() {
        Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => {
            bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count()
        }
        _ => 0,
    };
    &text[at..at + length]
}

/// The end of the directive whose word ends at `at`: after `>>` on the same line, before any other `<<`.
fn find_close(text: &str, at: usize) -> Option<usize> {
    let bytes = &text.as_bytes()[..text.len().min(at + MAX_LENGTH)];
    let (mut filters, mut quoted) = (false, false);
    let mut index = at;
    while index < bytes.len() {
        match bytes[index] {
            b'\n' | b'\r' => return None,
            b'\\' if quoted => index += 1,
            b'"' if quoted => quoted = false,
            b'"' if filters => quoted = true,
            b'|' => filters = true,
            b'>' if !quoted && bytes.get(index + 1) == Some(&b'>') => return Some(index + 2),
            b'<' if !quoted && bytes.get(index + 1) == Some(&b'<') => return None,
            _ => {}
        }
        index += 1;
    }
    None
}

fn report_unknown(text: &str, start: usize, word: &str, end: Option<usize>, problems: &mut Vec<Problem>) -> Found {
    let Some(end) = end else { return Found::Nothing };
    // `<<<word` is a here-string of a shell, and no slip in a directive.
    let here_string = start > 0 && text.as_bytes()[start - 1] == b'<';
    if here_string || !has_directive_shape(&text[start + 2 + word.len()..end - 2]) {
        return Found::Nothing;
    }
    if problems.len() == MAX_PROBLEMS {
        return Found::Broken(start, end);
    }
    let range = start + 2..start + 2 + word.len();
    let mut problem = Problem::new(
        Code::BadDirective,
        range.clone(),
        format!("unknown directive `{}`", clip_word(word)),
        "no directive has this name",
    );
    let escape = format!("for the text itself, write `\\<<{}`", clip_word(word));
    if matches!(word, "secret" | "env") {
        problems.push(
            problem.help(format!(
                "no prompt holds a secret: give it to a command or a provider with `env NAME`; {escape}"
            )),
        );
        return Found::Broken(start, end);
    }
    problem = match (word.len() <= 40).then(|| find_nearest(word, list_kinds())).flatten() {
        Some(near) => problem.help(format!("did you mean `{near}`? {escape}")).fix(
            format!("write `{near}`"),
            range,
            near.name,
            near.certain,
        ),
        None => problem.help(format!(
            "`<<output:{0}>>` reads the output of a step `{0}`; the directives are {1}; {escape}",
            clip_word(word),
            format_list(list_kinds(), "and")
        )),
    };
    problems.push(problem);
    Found::Broken(start, end)
}

/// Whether what follows an unknown word has the shape of a directive's rest.
pub(super) fn has_directive_shape(rest: &str) -> bool {
    let (path, filters) = match rest.split_once('|') {
        Some((path, filters)) => (path.strip_suffix(' ').unwrap_or(path), Some(filters)),
        None => (rest, None),
    };
    let named = match path.strip_prefix([':', '.']) {
        Some(name) => {
            name.starts_with(|first: char| first.is_ascii_alphanumeric() || matches!(first, '.' | '/' | '~' | '_'))
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/:~*".contains(&byte))
        }
        None => path.is_empty(),
    };
    let filtered = filters.is_none_or(|filters| {
        let filter = filters.trim_start_matches(' ');
        let word = word_at(filter, 0);
        let next = filter[word.len()..].trim_start_matches(' ').chars().next();
        DIRECTIVE_FILTERS.contains(&canonical_filter(word)) && matches!(next, None | Some(':' | '|'))
    });
    named && filtered
}

/// What stands between a directive's word and its end.
struct Body<'a> {
    text: &'a str,
    kind: Kind,
    /// Where its word starts.
    start: usize,
    /// Where its word ends.
    at: usize,
    /// Where its closing delimiter starts.
    end: usize,
}

/// A name and its fields.
type Names = (Option<Spanned<String>>, Vec<Spanned<String>>);

impl Body<'_> {
    fn parse_body(&self, range: Range<usize>, problems: &mut Vec<Problem>) -> Option<Directive> {
        let bar = memchr(b'|', &self.text.as_bytes()[self.at..self.end]).map_or(self.end, |index| self.at + index);
        let (name, fields) = self.parse_path(bar, problems)?;
        let filters = if bar < self.end { self.parse_filters(bar + 1, problems) } else { Vec::new() };
        Some(Directive { kind: self.kind, name, fields, filters, range, assumes: Vec::new().into() })
    }

    /// The name and the fields, which end at `bar`.
    fn parse_path(&self, bar: usize, problems: &mut Vec<Problem>) -> Option<Names> {
        let path = trim_range(self.text, self.at..bar);
        let word = self.kind.as_str();
        let Kind::Read(root) = self.kind else {
            return self.parse_file_path(path, problems).map(|file| (Some(file), Vec::new()));
        };
        let Some(of) = root.required_name() else {
            if path.is_empty() {
                return Some((None, Vec::new()));
            }
            if root.has_fields() {
                return self.unnamed_fields(path, problems).map(|fields| (None, fields));
            }
            problems.push(
                self.make_problem(path.clone(), format!("`{word}` takes no name"), "surplus")
                    .help(format!("write `<<{word}>>`"))
                    .fix(format!("write `<<{word}>>`"), path, "", true),
            );
            return None;
        };
        let path = match self.text.as_bytes().get(path.start) {
            Some(b':') if !path.is_empty() => trim_range(self.text, path.start + 1..path.end),
            _ => {
                problems.push(self.missing_name(root, of, path));
                return None;
            }
        };
        if split_range(self.text, path.clone(), b'.').first().is_none_or(Range::is_empty) {
            problems.push(self.missing_name(root, of, path));
            return None;
        }
        let mut fields = self.parse_names(path, problems)?;
        let name = fields.remove(0);
        self.check_names(root, &name, &fields, problems).then_some((Some(name), fields))
    }

    /// The fields of a value that has no name: `<<item.title>>`.
    fn unnamed_fields(&self, path: Range<usize>, problems: &mut Vec<Problem>) -> Option<Vec<Spanned<String>>> {
        let word = self.kind.as_str();
        if self.text[path.clone()].starts_with('.') {
            return self.parse_names(path.start + 1..path.end, problems);
        }
        let field = self.text[path.start + 1..path.end].trim();
        problems.push(
            self.make_problem(path.start..path.start + 1, format!("`{word}` takes no name"), "not here")
                .help(format!("write `<<{word}.{}>>` for a field of it", clip_word(field)))
                .fix("write `.`", path.start..path.start + 1, ".", true),
        );
        None
    }

    /// Names between dots.
    fn parse_names(&self, path: Range<usize>, problems: &mut Vec<Problem>) -> Option<Vec<Spanned<String>>> {
        let mut names = Vec::new();
        for segment in split_range(self.text, path, b'.') {
            let value = &self.text[segment.clone()];
            if value.is_empty() || !value.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-')) {
                problems.push(self.invalid_name(segment, value));
                return None;
            }
            names.push(Spanned { value: value.to_owned(), range: segment });
        }
        Some(names)
    }

    /// The path of `include` and `file`, as written.
    fn parse_file_path(&self, path: Range<usize>, problems: &mut Vec<Problem>) -> Option<Spanned<String>> {
        let word = self.kind.as_str();
        let name = match self.text.as_bytes().get(path.start) {
            Some(b':') if !path.is_empty() => trim_range(self.text, path.start + 1..path.end),
            _ => path.end..path.end,
        };
        if name.is_empty() {
            let place = self.start..self.at;
            problems.push(
                self.make_problem(place, format!("`{word}` needs the path of a file"), "which file?")
                    .help(format!("write `<<{word}:PATH>>`")),
            );
            return None;
        }
        Some(Spanned { value: self.text[name.clone()].to_owned(), range: name })
    }

    fn check_names(
        &self,
        root: Root,
        name: &Spanned<String>,
        fields: &[Spanned<String>],
        problems: &mut Vec<Problem>,
    ) -> bool {
        let word = root.as_str();
        if let Some(known) = root.properties().filter(|known| !known.contains(&name.value.as_str())) {
            let message = format!("`{word}` has no `{}`", clip_word(&name.value));
            let write: Vec<String> = known.iter().map(|known| format!("<<{word}:{known}>>")).collect();
            problems.push(
                self.make_problem(name.range.clone(), message, "no such property")
                    .help(format!("write {}", format_list(write.iter().map(String::as_str), "or"))),
            );
            return false;
        }
        match fields {
            // A pack of an import: `<<context:lib.facts>>`.
            [_] if root == Root::Context => true,
            [first, .., last] | [first @ last] if !root.has_fields() => {
                let surplus = first.range.start - 1..last.range.end;
                problems.push(
                    self.make_problem(surplus.clone(), format!("`{word}` has no fields"), "surplus")
                        .help(format!("write `<<{word}:{}>>`", clip_word(&name.value)))
                        .fix("leave the fields out", surplus, "", false),
                );
                false
            }
            _ => true,
        }
    }

    fn parse_filters(&self, at: usize, problems: &mut Vec<Problem>) -> Vec<Spanned<Filter>> {
        let mut filters = Vec::new();
        for part in split_filters(self.text, at..self.end) {
            let range = trim_range(self.text, part.clone());
            if range.is_empty() {
                problems.push(
                    self.make_problem(part.start - 1..part.start, "a filter is missing after `|`", "nothing follows")
                        .help(format!("the filters are {}", format_list(DIRECTIVE_FILTERS.into_iter(), "and"))),
                );
                continue;
            }
            match self.parse_filter(range.clone()) {
                Ok(value) => filters.push(Spanned { value, range }),
                Err(problem) => problems.push(*problem),
            }
        }
        filters
    }

    fn parse_filter(&self, range: Range<usize>) -> Result<Filter, Box<Problem>> {
        let text = &self.text[range.clone()];
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name.trim_end(), Some(argument.trim_start())),
            None => (text, None),
        };
        let name_range = range.start..range.start + name.len();
        let name = canonical_filter(name);
        if !DIRECTIVE_FILTERS.contains(&name) {
            return Err(Box::new(self.unknown_filter(name, name_range)));
        }
        if !is_allowed_filter(self.kind, name) {
            let word = self.kind.as_str();
            let problem = self
                .make_problem(name_range, format!("`{name}` makes no sense on `{word}`"), "no such filter here")
                .help(match allowed_filters(self.kind) {
                    [] => format!("`{word}` takes no filters"),
                    some => format!("`{word}` takes {}", format_list(some.iter().copied(), "and")),
                });
            return Err(Box::new(problem));
        }
        if let ("default", Some(argument)) = (name, argument)
            && let Some(problem) = named_default(self.text, self.start..self.end, argument, range.clone())
        {
            return Err(Box::new(problem));
        }
        let value = match (name, argument) {
            ("json", None) => Some(Filter::Json),
            ("raw", None) => Some(Filter::Raw),
            ("tail", Some(number)) => parse_count(number).map(Filter::Tail),
            ("head", Some(number)) => parse_count(number).map(Filter::Head),
            ("chars", Some(number)) => parse_count(number).map(Filter::Chars),
            ("lines", Some(span)) => parse_lines(span),
            ("default", Some(argument)) => parse_quoted(argument).map(Filter::Default),
            _ => None,
        };
        value.ok_or_else(|| Box::new(self.bad_argument(name, argument, range)))
    }

    fn unknown_filter(&self, name: &str, range: Range<usize>) -> Problem {
        let problem = self.make_problem(
            range.clone(),
            format!("unknown filter `{}`", clip_word(name)),
            "no filter has this name",
        );
        match (name.len() <= 40).then(|| find_nearest(name, DIRECTIVE_FILTERS)).flatten() {
            Some(near) => problem.help(format!("did you mean `{near}`?")).fix(
                format!("write `{near}`"),
                range,
                near.name,
                near.certain,
            ),
            None => problem.help(format!("the filters are {}", format_list(DIRECTIVE_FILTERS.into_iter(), "and"))),
        }
    }

    fn bad_argument(&self, name: &str, argument: Option<&str>, range: Range<usize>) -> Problem {
        let (message, help) = match name {
            "json" | "raw" => (format!("`{name}` takes no argument"), format!("write `{name}`")),
            "lines" => ("`lines` needs two line numbers, the first from 1".to_owned(), "write `lines:1-40`".to_owned()),
            "default" => ("`default` needs a text".to_owned(), "write `default:\"none\"`".to_owned()),
            _ => {
                let unit = if name == "chars" { "characters" } else { "lines" };
                (format!("`{name}` needs a number of {unit}, from 1"), format!("write `{name}:50`"))
            }
        };
        let label = if argument.is_some() { "not that" } else { "no argument" };
        let problem = self.make_problem(range.clone(), message, label).help(help);
        // `lines:9-3` is the wrong way round.
        let turned = argument.filter(|_| name == "lines").and_then(|argument| argument.split_once('-'));
        match turned.map(|(from, to)| (parse_count(from), parse_count(to))) {
            Some((Some(from), Some(to))) => {
                let turned = format!("lines:{to}-{from}");
                problem.help(format!("write `{turned}`")).fix(format!("write `{turned}`"), range, turned.clone(), true)
            }
            _ => problem,
        }
    }

    fn missing_name(&self, root: Root, of: &str, path: Range<usize>) -> Problem {
        let word = root.as_str();
        let message = match root.properties() {
            Some(_) => format!("`{word}` needs {of}"),
            None => format!("`{word}` needs the name of {of}"),
        };
        let problem = self.make_problem(self.start..self.at, message, format!("{of} is missing"));
        let dotted = &self.text[path];
        match (dotted.strip_prefix('.'), root.properties()) {
            (Some(name), _) if !name.is_empty() => problem.help(format!("write `<<{word}:{}>>`", clip_word(name))).fix(
                "write `:`",
                self.at..self.at + 1,
                ":",
                true,
            ),
            (_, Some([first, ..])) => problem.help(format!("write `<<{word}:{first}>>`")),
            _ => problem.help(format!("write `<<{word}:NAME>>`")),
        }
    }

    fn invalid_name(&self, segment: Range<usize>, value: &str) -> Problem {
        let message = match value.is_empty() {
            true => "a field is missing after `.`".to_owned(),
            false => format!("`{}` is not a name", clip_word(value)),
        };
        self.make_problem(segment, message, "letters, digits, `_` and `-` only")
            .help(format!("write `<<{}:NAME.FIELD | FILTER>>`", self.kind.as_str()))
    }

    fn make_problem(&self, range: Range<usize>, message: impl Into<String>, label: impl Into<String>) -> Problem {
        Problem::new(Code::BadDirective, range, message, label)
    }
}

/// The filters that a directive of this word may have.
pub(crate) fn filter_terms(word: &str) -> Vec<Term> {
    let allowed = Kind::from_word(word).map_or(&[] as &[&str], allowed_filters);
    let all = DIRECTIVE_FILTERS.into_iter().zip(FILTER_DOCS);
    all.filter(|(word, _)| allowed.contains(word))
        .map(|(word, (usage, doc, example, result))| Term { word, usage: usage.to_owned(), doc, example, result })
        .collect()
}

/// The filters that make sense on a directive.
fn allowed_filters(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Read(Root::Output | Root::Previous | Root::Input) => &DIRECTIVE_FILTERS,
        Kind::Read(
            Root::Error
            | Root::Log
            | Root::Param
            | Root::Stdin
            | Root::Item
            | Root::Inbox
            | Root::Shared
            | Root::Team
            | Root::Plan,
        )
        | Kind::File => &["tail", "head", "lines", "chars", "json", "default"],
        Kind::Read(Root::Exit) => &["json", "default"],
        Kind::Read(Root::Status | Root::Iteration | Root::Index | Root::Run | Root::Task) => &["json"],
        Kind::Read(Root::Context) | Kind::Include => &[],
    }
}

/// What a filter is called here: `tojson` is what others call it.
fn canonical_filter(name: &str) -> &str {
    if name == "tojson" { "json" } else { name }
}

fn is_allowed_filter(kind: Kind, filter: &str) -> bool {
    allowed_filters(kind).contains(&filter)
}

/// A number from 1.
fn parse_count(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|count| digits && *count > 0)
}

/// `1-40`.
fn parse_lines(text: &str) -> Option<Filter> {
    let (from, to) = text.split_once('-')?;
    let (from, to) = (parse_count(from)?, parse_count(to)?);
    (from <= to).then_some(Filter::Lines(from, to))
}

/// A text in quotes with `\"` and `\\`, or a bare word.
fn parse_quoted(text: &str) -> Option<String> {
    let Some(inner) = text.strip_prefix('"') else {
        let bare = !text.is_empty() && !text.contains(|char: char| char == '"' || char.is_whitespace());
        return bare.then(|| text.to_owned());
    };
    let mut value = String::new();
    let mut chars = inner.chars();
    loop {
        match chars.next()? {
            '"' => return chars.next().is_none().then_some(value),
            '\\' => match chars.next()? {
                escaped @ ('"' | '\\') => value.push(escaped),
                'n' => value.push('\n'),
                't' => value.push('\t'),
                other => value.extend(['\\', other]),
            },
            char => value.push(char),
        }
    }
}

/// The range without the blanks at its ends.
fn trim_range(text: &str, range: Range<usize>) -> Range<usize> {
    let inner = &text[range.clone()];
    let start = range.start + (inner.len() - inner.trim_start().len());
    start..(start + inner.trim().len())
}

/// The ranges between separators.
fn split_range(text: &str, range: Range<usize>, separator: u8) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    for (index, byte) in text.as_bytes()[range.clone()].iter().enumerate() {
        if *byte == separator {
            parts.push(start..range.start + index);
            start = range.start + index + 1;
        }
    }
    parts.push(start..range.end);
    parts
}

/// The ranges between bars outside quotes.
fn split_filters(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let (mut start, mut index, mut quoted) = (range.start, range.start, false);
    while index < range.end {
        match bytes[index] {
            b'\\' if quoted => index += 1,
            b'"' if quoted => quoted = false,
            b'"' => quoted = true,
            b'|' if !quoted => {
                parts.push(start..index);
                start = index + 1;
            }
            _ => {}
        }
        index += 1;
    }
    parts.push(start..range.end);
    parts
}

/// A word of the user's, cut to what a message can hold.
pub(crate) fn clip_word(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
