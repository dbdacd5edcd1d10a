//! The text of a type, `list<list<Plan?>>?`, to [`TypeExpr`]: read once from left to right, at most sixteen deep, each part
//! with its place. What is not a type is reported (SW005), with what other languages call it in mind.

use super::datum::Datum;
use super::value;
use crate::ast::{Name, Spanned, TypeExpr, TypeKind};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::schema::TYPES;
use crate::source::Span;
use crate::suggest::{self, Near};
use crate::syntax::Text;

/// How deep types nest.
const DEEPEST: usize = 16;

/// Reads a type and the words behind it, which only an `enum` has. `paths` says whether `file` and `dir` are types here.
pub(super) fn type_expr(datum: &Datum, words: &[&Datum], paths: bool, diagnostics: &mut Diagnostics) -> TypeExpr {
    let mut reader = Reader { text: &datum.text, rest: datum.text.as_str(), paths };
    let read = match reader.parse_type(0, words) {
        Ok(expression) => reader.expect_end(words).map(|()| expression),
        Err(diagnostic) => Err(diagnostic),
    };
    let unknown = |span| TypeExpr { kind: TypeKind::Unknown, optional: false, span };
    match read {
        Ok(expression) => match report_repeated_word(&expression.kind) {
            Some(diagnostic) => {
                diagnostics.push(diagnostic);
                unknown(expression.span)
            }
            None => expression,
        },
        Err(diagnostic) => {
            diagnostics.push(report_foreign(datum, words).unwrap_or(*diagnostic));
            unknown(datum.span)
        }
    }
}

/// What a type is here that is written as in another language.
fn report_foreign(datum: &Datum, words: &[&Datum]) -> Option<Diagnostic> {
    let text = datum.text.as_str();
    // A plain word, and a list with brackets behind it, have messages of their own.
    let composed = text.trim_end_matches("[]").contains(['<', '[', '|']) && words.is_empty();
    let kind = super::foreign::translate_type(text).filter(|kind| composed && kind != text)?;
    let whole = datum.text.span(0..text.len());
    let diagnostic =
        make_diagnostic(format!("`{text}` is written `{kind}` here"), whole, "the notation of another language");
    Some(diagnostic.help(format!("write `{kind}`")).fix(format!("write `{kind}`"), whole, kind))
}

/// A report is large, and most types are right.
type Read<T> = Result<T, Box<Diagnostic>>;

struct Reader<'t> {
    text: &'t Text,
    rest: &'t str,
    paths: bool,
}

impl<'t> Reader<'t> {
    /// One type; `words` are what follows the whole text.
    fn parse_type(&mut self, depth: usize, words: &[&Datum]) -> Read<TypeExpr> {
        self.skip_space();
        let start = self.current_offset();
        let name = self.read_word();
        if name.is_empty() {
            return Err(self.no_type());
        }
        let place = self.text.span(start..self.current_offset());
        // The reader calls itself for each level, so without a limit a long text could exhaust the stack.
        if depth > DEEPEST {
            let message = format!("a type nests {DEEPEST} deep at most");
            return Err(make_diagnostic(message, place, "too deep")
                .help("give the inner part a name: `type NAME { … }`")
                .into());
        }
        let mut optional = false;
        let kind = match name {
            "string" => TypeKind::String,
            "int" => TypeKind::Int,
            "float" => TypeKind::Float,
            "bool" => TypeKind::Bool,
            "file" if self.paths && depth == 0 => TypeKind::File,
            "dir" if self.paths && depth == 0 => TypeKind::Dir,
            "list" => TypeKind::List(Box::new(self.parse_inner(name, place, depth)?)),
            "map" => TypeKind::Map(Box::new(self.parse_inner(name, place, depth)?)),
            "enum" => {
                optional = self.take('?');
                return self.parse_enum(start, optional, depth, words);
            }
            _ if is_qualified_type(name) => TypeKind::Named(Spanned { value: name.to_owned(), span: place }),
            _ => return Err(self.report_unknown(name, place).into()),
        };
        optional |= self.take('?');
        self.check_suffix(name, start)?;
        Ok(TypeExpr { kind, optional, span: self.text.span(start..self.current_offset()) })
    }

    /// `<T>`, after `list` or `map`.
    fn parse_inner(&mut self, name: &str, place: Span, depth: usize) -> Read<TypeExpr> {
        self.skip_space();
        if !self.take('<') {
            let entries = if name == "list" { "items" } else { "values" };
            let diagnostic =
                make_diagnostic(format!("`{name}` does not say the type of its {entries}"), place, "of what?")
                    .help(format!("write `{name}<string>`, or another type in its brackets"));
            return Err(match self.rest.is_empty() {
                true => diagnostic.unsafe_fix(format!("write `{name}<string>`"), place, format!("{name}<string>")),
                false => diagnostic,
            }
            .into());
        }
        let inner = self.parse_type(depth + 1, &[])?;
        self.skip_space();
        if self.rest.starts_with(',') {
            let at = self.current_offset();
            let comma = self.text.span(at..at + 1);
            let diagnostic = make_diagnostic(format!("`{name}` takes one type"), comma, "a second type");
            return Err(match name {
                "map" => diagnostic.help("the keys of a map are always texts: write `map<T>`"),
                _ => diagnostic.help("write `list<T>`"),
            }
            .into());
        }
        if !self.take('>') {
            let at = self.current_offset();
            let here = self.text.span(at..at);
            let diagnostic = make_diagnostic(format!("`{name}<` is not closed"), place, "opened here")
                .help("write `>` after its type");
            return Err(match self.rest.is_empty() && self.text.form != crate::syntax::Form::Lines {
                true => diagnostic.fix("close it", here, ">"),
                false => diagnostic,
            }
            .into());
        }
        Ok(inner)
    }

    /// The words of an `enum`: those of this text, and those behind it.
    fn parse_enum(&mut self, start: usize, optional: bool, depth: usize, words: &[&Datum]) -> Read<TypeExpr> {
        let mut members: Vec<Name> = Vec::new();
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '|', ',']);
            let from = self.current_offset();
            let word = self.rest.split([' ', '\t', '\n', '|', ',', '<', '>']).next().unwrap_or_default();
            if word.is_empty() {
                break;
            }
            self.rest = &self.rest[word.len()..];
            members.push(Spanned { value: word.to_owned(), span: self.text.span(from..self.current_offset()) });
        }
        let whole = self.text.span(start..self.current_offset());
        let behind = words.iter().map(|word| Spanned { value: word.text.as_str().to_owned(), span: word.span });
        members.extend(behind.filter(|_| depth == 0));
        let Some(last) = members.last() else {
            let diagnostic = make_diagnostic("`enum` names no words".into(), whole, "one of what?")
                .help("write `enum low medium high`");
            return Err(diagnostic.into());
        };
        if let Some(empty) = members.iter().find(|member| member.value.trim().is_empty()) {
            return Err(make_diagnostic("an empty text is no word of an `enum`".into(), empty.span, "empty").into());
        }
        if let Some(word) = last.value.strip_suffix('?') {
            let diagnostic = make_diagnostic(
                format!("`{}` is a word of the `enum`, `?` included", last.value),
                last.span,
                "not optional by this",
            )
            .label(whole, "the type")
            .help(format!("for a value that may be missing, write `enum? … {word}`"));
            return Err(diagnostic.into());
        }
        let span = if depth == 0 && !words.is_empty() { whole.to(last.span) } else { whole };
        Ok(TypeExpr { kind: TypeKind::Enum(members), optional, span })
    }

    /// Nothing follows the whole type.
    fn expect_end(&mut self, words: &[&Datum]) -> Read<()> {
        self.skip_space();
        if !self.rest.is_empty() {
            let at = self.current_offset();
            let here = self.text.span(at..self.text.as_str().len());
            return Err(
                make_diagnostic(format!("`{}` belongs to no type", self.rest), here, "one type stands here").into()
            );
        }
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return Ok(()) };
        // `parse_enum` has taken these words.
        if self.text.as_str().trim_start().starts_with("enum") {
            return Ok(());
        }
        let written = self.text.as_str();
        let surplus = first.span.to(last.span);
        let diagnostic = make_diagnostic(format!("`{written}` takes no further words"), surplus, "belongs to no type");
        Err(match first.text.as_str() {
            "optional" | "?" | "nullable" => diagnostic.help(format!("write `{written}?`")),
            "required" => diagnostic.help("a field is there unless its type ends in `?`: remove it"),
            _ => diagnostic
                .help("put the words of a choice after `enum`: `enum low high`; a description is a `//` comment above"),
        }
        .into())
    }

    /// What stands behind a type in other languages.
    fn check_suffix(&mut self, name: &str, start: usize) -> Read<()> {
        let at = self.current_offset();
        let here = |length: usize| self.text.span(at..at + length);
        if self.rest.starts_with("[]") {
            let fixed = format!("list<{}>", &self.text.as_str()[start..at]);
            let whole = self.text.span(start..at + 2);
            let diagnostic = make_diagnostic(format!("a list of `{name}` is written `{fixed}`"), whole, "a list")
                .help(format!("write `{fixed}`"));
            return Err(diagnostic.fix(format!("write `{fixed}`"), whole, fixed).into());
        }
        if self.rest.starts_with('?') {
            let diagnostic =
                make_diagnostic("a type has one `?` at most".into(), here(1), "a second `?`").help("remove it");
            return Err(diagnostic.fix("remove it", here(1), "").into());
        }
        if self.rest.trim_start().starts_with('|') {
            let diagnostic = make_diagnostic("a value has one type".into(), here(self.rest.len()), "a second type")
                .help(
                    "for one of several words, write `enum A B`; for a value that may be missing, `?` after its type",
                );
            return Err(diagnostic.into());
        }
        if self.rest.starts_with('<') {
            let diagnostic = make_diagnostic(
                format!("`{name}` takes no type in brackets"),
                here(self.rest.len()),
                "of no meaning here",
            )
            .help("`list<T>` and `map<T>` do");
            return Err(diagnostic.into());
        }
        Ok(())
    }

    fn no_type(&self) -> Box<Diagnostic> {
        let (text, at) = (self.text.as_str(), self.current_offset());
        let next = self.rest.chars().next();
        let place = self.text.span(at..at + next.map_or(0, char::len_utf8));
        let diagnostic = make_diagnostic("a type is missing".into(), place, "no type");
        match next {
            None if text.is_empty() => diagnostic.help(built_in(self.paths)),
            None => diagnostic.help("write a type in its brackets, as in `list<string>`"),
            Some('[') => diagnostic.help("a list is written `list<string>`"),
            Some('{') => diagnostic.help("fields stand in a block: `NAME { FIELD TYPE }`"),
            Some('?') => diagnostic.help("`?` follows a type, as in `string?`"),
            Some(_) => diagnostic.help(built_in(self.paths)),
        }
        .into()
    }

    fn report_unknown(&self, name: &str, place: Span) -> Diagnostic {
        let diagnostic = make_diagnostic(format!("there is no type `{name}`"), place, "not a type");
        if matches!(name, "file" | "dir") {
            return diagnostic
                .help(format!("`{name}` is the whole type of a parameter; elsewhere a path is a `string`"))
                .unsafe_fix("write `string`", place, "string");
        }
        if matches!(name.to_lowercase().as_str(), "json" | "any" | "struct") {
            return diagnostic.help(format!(
                "say what is in it: fields in a block, `{{ title string; done bool }}`, or {}",
                suggest::format_list(["map<T>", "list<T>"].into_iter(), "or")
            ));
        }
        let names: Vec<&str> = TYPES.iter().map(|word| word.word).filter(|word| self.paths || !is_path(word)).collect();
        // A type that another language calls so is that type.
        let meant = suggest_type(name, self.rest).map(|name| Near { name, certain: !matches!(name, "list" | "map") });
        let close = meant.or_else(|| suggest::find_nearest(name, names));
        match (close, value::type_name(name)) {
            // A list without its brackets has a message of its own.
            (Some(close), _) => {
                let shown =
                    if matches!(close.name, "list" | "map") { format!("{close}<…>") } else { close.to_string() };
                diagnostic.help(format!("did you mean `{shown}`?")).write_near(place, close)
            }
            (None, Err(Some(capital))) => diagnostic
                .help(format!("{}; a declared type has a capital, as in `{capital}`", built_in(self.paths)))
                .unsafe_fix(format!("write `{capital}`"), place, capital),
            _ => diagnostic.help(built_in(self.paths)),
        }
    }

    fn current_offset(&self) -> usize {
        self.text.as_str().len() - self.rest.len()
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, mark: char) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A name, also one with the name of an import before it.
    fn read_word(&mut self) -> &'t str {
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let length = self.rest.find(|c: char| !inside(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        word
    }
}

fn make_diagnostic(message: String, span: Span, label: &str) -> Diagnostic {
    Diagnostic::new(Code::WrongValue, message).label(span, label)
}

/// Whether it may be a declared type: `Verdict`, or `library.Verdict`.
pub(super) fn is_qualified_type(name: &str) -> bool {
    match name.rsplit_once('.') {
        Some((alias, name)) => value::is_name(alias) && value::type_name(name).is_ok(),
        None => value::type_name(name).is_ok(),
    }
}

/// Whether a word can be meant as a type, and not as a name: `int`, `list<string>?`, `Verdict`.
pub(super) fn begins_type(word: &str) -> bool {
    let name = word.split(['<', '?']).next().unwrap_or(word);
    TYPES.iter().any(|known| known.word == name && name != "enum") || is_qualified_type(name)
}

fn is_path(word: &str) -> bool {
    matches!(word, "file" | "dir")
}

fn built_in(paths: bool) -> String {
    let names = TYPES.iter().map(|word| word.word).filter(|word| paths || !is_path(word));
    let shown: Vec<String> =
        names.map(|name| if matches!(name, "list" | "map") { format!("{name}<T>") } else { name.into() }).collect();
    format!("the types are {}", suggest::format_list(shown.iter().map(String::as_str), "and"))
}

/// What other languages call a type; `rest` is what follows it.
pub(super) fn suggest_type(name: &str, rest: &str) -> Option<&'static str> {
    let bracket = rest.starts_with('<');
    match name.to_lowercase().as_str() {
        "string" | "str" | "text" | "char" | "varchar" | "uuid" | "date" | "datetime" | "url" => Some("string"),
        "bool" | "boolean" | "flag" => Some("bool"),
        "int" | "integer" | "long" | "short" | "i32" | "i64" | "u32" | "u64" | "usize" | "uint" | "int32" | "int64"
        | "uint32" | "uint64" | "bigint" => Some("int"),
        "float" | "number" | "double" | "decimal" | "real" | "f32" | "f64" | "num" | "float32" | "float64" => {
            Some("float")
        }
        "list" | "array" | "vec" | "vector" | "sequence" | "set" if bracket => Some("list"),
        "list" | "array" | "vec" | "vector" | "sequence" | "set" => Some("list<string>"),
        "map" | "dict" | "dictionary" | "hashmap" | "record" | "object" if bracket => Some("map"),
        "map" | "dict" | "dictionary" | "hashmap" | "record" | "object" => Some("map<string>"),
        "enum" | "choice" | "oneof" => Some("enum"),
        _ => None,
    }
}

/// A word that an `enum` says twice, at any depth.
fn report_repeated_word(kind: &TypeKind) -> Option<Diagnostic> {
    let mut kind = kind;
    loop {
        match kind {
            TypeKind::List(inner) | TypeKind::Map(inner) => kind = &inner.kind,
            TypeKind::Enum(words) => {
                let mut known = std::collections::BTreeMap::new();
                return words.iter().find_map(|word| {
                    let first = known.insert(word.value.as_str(), word.span)?;
                    Some(
                        Diagnostic::new(Code::Duplicate, format!("the word `{}` stands twice", word.value))
                            .label(word.span, "again here")
                            .label(first, "first here")
                            .help("remove one of them"),
                    )
                });
            }
            _ => return None,
        }
    }
}
