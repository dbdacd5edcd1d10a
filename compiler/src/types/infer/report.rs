//! The messages of typing.

use std::ops::Range;

use super::super::{Kind, Lack, Record, Type, Words};
use super::call::Found;
use super::expr::Walk;
use super::{Checker, Notation, Use};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Edit, Fix};
use crate::source::Span;
use crate::suggest::{self, Near};
use crate::template::{Expr, ExprKind, Operator, Root, clip_word, suggest_status};

/// What values of a type are, with an article.
pub(super) fn describe_kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Any | Kind::Named(..) | Kind::Union(_) => "a value",
        Kind::None => "`null`",
        Kind::Text => "text without a type",
        Kind::String => "a text",
        Kind::Int => "a whole number",
        Kind::Float => "a number",
        Kind::Bool => "true or false",
        Kind::File | Kind::Dir => "a path",
        Kind::Enum(_) => "a word",
        Kind::List(_) | Kind::Tuple(_) => "a list",
        Kind::Iter { sized: true, .. } => "a list",
        Kind::Iter { sized: false, .. } => "a list of unknown length",
        Kind::Map(_) => "a map",
        Kind::Record(_) => "a record",
    }
}

impl Checker<'_> {
    /// SW204.
    pub(super) fn may_be_missing(&mut self, walk: &Walk) {
        let written = self.format_walk(walk);
        let last = clip_word(self.passage.text()[walk.place.clone()].trim_matches(['"', '\'']));
        let message = match walk.kind.lack {
            Lack::NULL => format!("`{written}` may be `null`"),
            _ if walk.unanswered.is_some() => format!("`{last}` is missing when its gate answers without a person"),
            _ if let Some(kind) = &walk.without => {
                format!("`{written}` may be missing: its parent may be {}, which does not have it", describe_kind(kind))
            }
            _ if walk.declared.is_some() => format!("`{last}` is optional, and may be missing here"),
            Lack::SILENT => format!("`{written}` has no value when its condition does not hold"),
            _ => format!("`{written}` may be missing"),
        };
        let label = if walk.kind.lack == Lack::NULL { "may be `null`" } else { "may be missing" };
        let mut diagnostic =
            Diagnostic::new(Code::OptionalFieldUnguarded, message).label(self.span(&walk.place), label);
        diagnostic = match (walk.declared, walk.unanswered) {
            (Some(asked), Some(choice)) => {
                diagnostic.label(choice, "no person fills it in then").label(asked, "asked for here")
            }
            (Some(declared), None) => diagnostic.label(declared, "declared optional here"),
            (None, _) => diagnostic,
        };
        let test = if walk.kind.lack == Lack::NULL { "is not none" } else { "is defined" };
        let default = self.propose_default(&walk.kind);
        // What is put together stands in brackets before a filter.
        let bracketed = written.contains(' ');
        let written = if bracketed { format!("({written})") } else { written };
        // A question helps where the place has a name of its own, and no list.
        let must_default = self.usage == Use::List || walk.key.is_none();
        let default = if must_default { format!("{default}, true") } else { default.to_owned() };
        let is_text = self.usage == Use::Text && walk.kind.lack != Lack::NULL;
        if walk.notation == Notation::Expression && walk.kind.lack != Lack::SILENT && (is_text || must_default) {
            diagnostic = self.give_default(diagnostic, &self.walk_range(walk), bracketed, &default);
        }
        self.push(diagnostic.help(match (walk.notation, self.usage) {
            _ if walk.kind.lack == Lack::SILENT => "add the other case: `… else \"…\"`".to_owned(),
            (Notation::Directive, _) => {
                format!("give a default: `<<{written} | default:\"…\">>`")
            }
            _ if must_default => format!("write `{written} | default({default})`"),
            (_, Use::Condition | Use::List) => format!("ask first: `{written} {test} and …`"),
            (_, Use::Text) if walk.kind.lack == Lack::NULL => format!("ask first: `{{% if {written} {test} %}}`"),
            (_, Use::Text) => {
                format!("write `{written} | default({default})`, or ask first: `{{% if {written} {test} %}}`")
            }
        }));
    }

    /// A default of the type.
    fn propose_default(&self, kind: &Type) -> &'static str {
        match self.env.whole.types.underlying_kind(&kind.kind) {
            Kind::List(_) => "[]",
            Kind::Map(_) => "{}",
            Kind::Int | Kind::Float => "0",
            Kind::Bool => "false",
            _ => "\"…\"",
        }
    }

    /// SW204: the first of a list that may be empty; it is of type `kind`.
    pub(super) fn may_be_empty(&mut self, whole: &Expr, kind: &Type) {
        let default = self.propose_default(kind);
        let shown = self.clip_source(whole);
        let diagnostic = Diagnostic::new(Code::OptionalFieldUnguarded, format!("`{shown}` may be missing"))
            .label(self.span(&whole.range), "nothing, where the list is empty")
            .help(format!("write `{shown} | default({default})`, or ask first whether the list has items"));
        let diagnostic = self.give_default(diagnostic, &whole.range, false, default);
        self.push(diagnostic);
    }

    /// Attaches the edit that gives an expression a default.
    fn give_default(&self, diagnostic: Diagnostic, whole: &Range<usize>, bracketed: bool, value: &str) -> Diagnostic {
        let (opening, closing) = if bracketed { ("(", ")") } else { ("", "") };
        // A string of the spec may stand around it, in which `"` would end it.
        let value = value.replace("\"…\"", "''");
        let text = format!("{closing} | default({value})");
        let mut edits = vec![Edit { span: self.span(&(whole.end..whole.end)), text }];
        if bracketed {
            edits.insert(0, Edit { span: self.span(&(whole.start..whole.start)), text: opening.to_owned() });
        }
        Diagnostic { fix: Some(Fix { title: "add a default".to_owned(), edits, certain: false }), ..diagnostic }
    }

    /// SW203: a record has no such field.
    pub(super) fn no_such_field(&mut self, walk: &Walk, record: &Record, name: &str, range: &Range<usize>) {
        let known: Vec<&str> = record.fields.iter().map(|field| field.name.as_str()).collect();
        let (close, help) = suggest::did_you_mean(name, &known, "its fields are ");
        let (noun, _) = self.describe_walk(walk);
        let diagnostic = Diagnostic::new(Code::UnknownField, format!("{noun} has no field `{}`", clip_word(name)))
            .label(self.span(range), format!("no `{}` there", clip_word(name)))
            .label(
                self.env.whole.types.declaration_span(&walk.kind.kind).unwrap_or(record.span),
                if record.written { "its fields are written here" } else { "its fields are declared here" },
            )
            .help_maybe(help);
        let Some(close) = close else { return self.push(diagnostic) };
        let plain = close.name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
        let dotted = range.start > 0 && self.passage.text().as_bytes()[range.start - 1] == b'.';
        self.push(match (walk.notation, plain, dotted) {
            (Notation::Directive, ..) | (_, true, true) => diagnostic.write_near(self.span(range), close),
            // In an expression `-` is minus.
            (_, false, true) => {
                let text = format!("['{close}']");
                let place = range.start - 1..range.end;
                diagnostic.help(format!("did you mean `{text}`?")).edit(
                    format!("write `{text}`"),
                    self.span(&place),
                    text,
                    close.certain,
                )
            }
            // A key in brackets, in quotes or not.
            (_, _, false) => self.write_word(diagnostic, range, close),
        });
    }

    /// Attaches the edit that writes a word of a text in the quotes that it has.
    pub(super) fn write_word(&self, diagnostic: Diagnostic, range: &Range<usize>, near: Near<'_>) -> Diagnostic {
        match self.passage.text()[range.clone()].starts_with(['"', '\'']) {
            // A string of the spec may stand around it, in which `"` would end it.
            true => diagnostic.edit(format!("write `{near}`"), self.span(range), format!("'{near}'"), near.certain),
            false => diagnostic.write_near(self.span(range), near),
        }
    }

    /// SW206 for what has no type, SW203 for what has one without fields.
    pub(super) fn has_no_fields(
        &mut self,
        walk: &Walk,
        kind: &Kind,
        name: &str,
        index: Option<i64>,
        range: &Range<usize>,
    ) {
        let (called, label) = self.describe_walk(walk);
        let name = clip_word(name);
        let step = match &walk.root {
            Some((Root::Output | Root::Previous | Root::Input, Some(step))) => Some(step),
            _ => None,
        };
        let what = if index.is_some() { format!("item {name}") } else { format!("field `{name}`") };
        let typeless =
            *kind == Kind::Text || matches!(&walk.root, Some((root, _)) if *root != Root::Param && step.is_none());
        let code = if typeless { Code::UntypedFieldAccess } else { Code::UnknownField };
        let is = if *kind == Kind::Text { "text" } else { describe_kind(kind) };
        let mut diagnostic = Diagnostic::new(code, format!("{called} is {is}, and has no {what}"))
            .label(self.span(range), if index.is_some() { "has no items" } else { "has no fields" });
        if let Some(label) = label {
            diagnostic = diagnostic.label(label.0, label.1);
        }
        let length = matches!(name.as_str(), "length" | "len" | "size" | "count");
        self.push(diagnostic.help(match (kind, step) {
            (Kind::List(_), _) if length => format!("write `{} | length`", self.format_walk(walk)),
            (Kind::List(_), _) => "go through it: `{% for item in … %}`, or pick one, as in `[0]`".to_owned(),
            (Kind::Text, Some(step)) => {
                let field = if index.is_some() { "FIELD" } else { name.as_str() };
                let typed = self.env.suggest_type(step, &format!("{{ {field} … }}"));
                format!("{typed}, or read it as a whole")
            }
            (_, _) if length && kind.is_text() => format!("write `{} | length`", self.format_walk(walk)),
            _ if index.is_some() => "read it as a whole".to_owned(),
            _ => format!("read it as a whole, without `.{name}`"),
        }));
    }

    /// SW205: a comparison with a word that the enum does not have.
    pub(super) fn not_a_word(&mut self, side: &Expr, word: &Expr, text: &str, words: &Words, differs: bool) {
        let known: Vec<&str> = words.words.iter().map(String::as_str).collect();
        let is_status = side.as_path().is_some_and(|path| path.root == Root::Status);
        let meant = suggest_status(text).filter(|_| is_status);
        let (close, help) = match meant {
            Some(meant) => (Some(Near { name: meant, certain: false }), Some(format!("did you mean `{meant}`?"))),
            None => suggest::did_you_mean(text, &known, "its words are "),
        };
        let outcome = if differs { "always holds" } else { "never holds" };
        let holds = matches!(self.env.whole.types.underlying_kind(&self.peek_type(side).kind), Kind::List(_));
        let says = if holds { "never holds" } else { "is never" };
        let shown = self.clip_source(side);
        let message = format!("`{}` {says} `{}`: this {outcome}", shown.trim_matches(['"', '\'']), clip_word(text));
        let mut diagnostic =
            Diagnostic::new(Code::TypeMismatch, message).label(self.span(&word.range), "not one of its words");
        if !is_status {
            diagnostic = diagnostic.label(words.span, "its words are declared here");
        }
        diagnostic = diagnostic.help_maybe(help);
        self.push(match close {
            Some(close) => self.write_word(diagnostic, &word.range, close),
            None => diagnostic,
        });
    }

    /// SW214: the free text of an agent, compared with a text.
    pub(super) fn seldom_equal(
        &mut self,
        side: &Expr,
        word: &Expr,
        (step, place, text): (&str, Span, &str),
        differs: bool,
    ) {
        let shown = self.clip_source(side);
        let is =
            if differs { "differs from WORD if it says anything else" } else { "is WORD only if it says nothing else" };
        let is = is.replace("WORD", &format!("`{}`", clip_word(text)));
        let message = format!("`{step}` answers in its own words, and {is}");
        // KDL takes it for a name: no number, and no older spelling of a value.
        let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            && !["true", "false", "null", "inf", "nan"].contains(&text)
            && clip_word(text) == text;
        let help = match is_name {
            true => format!(
                "write `output enum {text} OTHER` in `{step}`: it then answers with one of these words; or ask how it begins: `{shown} is startingwith('{text}')`"
            ),
            false => format!(
                "give `{step}` a type, as in `output {{ done bool }}`; or ask how it begins, as in `{shown} is startingwith('WORD')`"
            ),
        };
        let diagnostic = Diagnostic::new(Code::FreeTextCompared, message)
            .label(self.span(&word.range), "all that it says must be this")
            .label(place, "has no type")
            .help(help);
        self.push(diagnostic);
    }

    /// SW205: a comparison whose outcome is the same whatever is read.
    pub(super) fn never_equal(&mut self, whole: &Expr, left: (&Expr, &Kind), right: (&Expr, &Kind), says: &str) {
        let message = format!(
            "`{}` is {}, and {says} {}",
            self.clip_source(left.0),
            describe_kind(left.1),
            match right.1 {
                Kind::Enum(_) if matches!(left.1, Kind::Enum(_)) => "any of these words",
                kind => describe_kind(kind),
            }
        );
        let mut diagnostic = Diagnostic::new(Code::TypeMismatch, message);
        for (side, kind) in [left, right] {
            if side.range != whole.range {
                diagnostic = diagnostic.label(self.span(&side.range), describe_kind(kind));
            }
        }
        if diagnostic.labels.is_empty() {
            diagnostic = diagnostic.label(self.span(&whole.range), "compared here");
        }
        for ((value, kind), (literal, _)) in [(left, right), (right, left)] {
            if let Kind::Record(record) = kind
                && let Some(first) = record.fields.first().map(|field| &field.name)
            {
                let shown = self.clip_source(value);
                let names = suggest::format_list(record.fields.iter().map(|field| field.name.as_str()), "and");
                return self
                    .push(diagnostic.help(format!("compare a field of it, as `{shown}.{first}`; it has {names}")));
            }
            if let Some(text) = literal.as_text() {
                let plain = match kind {
                    Kind::Int | Kind::Float => text.parse::<f64>().is_ok(),
                    Kind::Bool => matches!(text, "true" | "false"),
                    _ => false,
                };
                let help = match kind {
                    _ if plain => format!("write `{text}` without quotes"),
                    Kind::Bool => format!("it is `true` or `false`: write `{}` alone", self.clip_source(value)),
                    Kind::Int | Kind::Float => "compare it with a number, as in `== 0`".to_owned(),
                    Kind::List(_) => format!("write `\"{}\" in {}`", clip_word(text), self.clip_source(value)),
                    _ => continue,
                };
                diagnostic = diagnostic.help(help);
                if plain {
                    let place = self.span(&literal.range);
                    diagnostic = diagnostic.fix(format!("write `{text}`"), place, text);
                }
                return self.push(diagnostic);
            }
            if *kind == Kind::Bool && matches!(literal.kind, ExprKind::Const(_)) {
                let shown = self.clip_source(value);
                return self.push(diagnostic.help(format!("it is `true` or `false`: write `{shown}` alone")));
            }
            if let (Kind::Text, Some(_), Some(step)) =
                (kind, literal.as_items(), value.as_path().and_then(|path| path.name()))
            {
                let typed = self.env.suggest_type(step, "\"list<string>\"");
                return self.push(diagnostic.help(format!("{typed}, or compare it with a text")));
            }
            if let (Kind::Text, true, Some(step)) = (
                kind,
                matches!(literal.kind, ExprKind::Const(_)) && literal.as_text().is_none(),
                value.as_path().and_then(|path| path.name()),
            ) && !super::expr::is_number(literal)
            {
                let typed = self.env.suggest_type(step, "bool");
                return self.push(diagnostic.help(format!("{typed}, or compare it with a text")));
            }
            if matches!(kind, Kind::Text | Kind::String) && super::expr::is_number(literal) {
                let help = format!("write `{} | int`, or put the number in quotes", self.clip_source(value));
                return self.push(diagnostic.help(help));
            }
        }
        self.push(diagnostic.help("compare values of one type"));
    }

    /// SW205: a condition that is not true or false.
    pub(super) fn not_a_condition(&mut self, expr: &Expr, kind: &Kind) {
        let shown = self.clip_source(expr);
        let help = match kind {
            Kind::Enum(words) => {
                format!(
                    "say which word it must be: `{shown} == \"{}\"`",
                    words.words.first().map_or("…", String::as_str)
                )
            }
            Kind::List(_) | Kind::Map(_) => format!("write `{shown} | length > 0`"),
            Kind::Int | Kind::Float => format!("write `{shown} > 0`, or another comparison"),
            Kind::Record(record) => match record.fields.iter().find(|field| field.kind.kind == Kind::Bool) {
                Some(field) => format!("a record always holds; did you mean `{shown}.{}`?", field.name),
                None => format!("a record always holds; ask for one of its fields, as in `{shown}.FIELD == …`"),
            },
            _ => format!("say what it must be: `{shown} != \"\"`, or `\"TEXT\" in {shown}`"),
        };
        let diagnostic =
            Diagnostic::new(Code::TypeMismatch, format!("`{shown}` is {}, not true or false", describe_kind(kind)))
                .label(self.span(&expr.range), "not a condition")
                .help(help);
        let diagnostic = self.take_field(diagnostic, expr, kind, |kind| *kind == Kind::Bool);
        self.push(diagnostic);
    }

    /// Attaches the edit that reads the first field of a fitting kind instead of the whole record.
    fn take_field(&self, diagnostic: Diagnostic, of: &Expr, kind: &Kind, fits: fn(&Kind) -> bool) -> Diagnostic {
        let Kind::Record(record) = kind else { return diagnostic };
        match record.fields.iter().find(|field| fits(&field.kind.kind)) {
            Some(field) if of.as_path().is_some() => {
                let end = self.span(&(of.range.end..of.range.end));
                diagnostic.unsafe_fix(format!("read `.{}`", field.name), end, format!(".{}", field.name))
            }
            _ => diagnostic,
        }
    }

    /// SW205: something to go through that has no items.
    pub(super) fn not_a_list(&mut self, list: &Expr, found: &Found) {
        let kind = &found.kind;
        let shown = self.clip_source(list);
        let step = list
            .as_path()
            .filter(|path| path.fields().is_empty() && path.root == Root::Output)
            .and_then(|path| path.name());
        let help = match (kind, step) {
            _ if found.one_of => self.ask_first(list, kind),
            (Kind::Text, Some(step)) => {
                let typed = self.env.suggest_type(step, "\"list<string>\"");
                format!("{typed}; or go through its lines: `{shown} | lines`")
            }
            (Kind::Text | Kind::String, _) => format!("go through its lines: `{shown} | lines`"),
            (Kind::Map(_), _) => format!("go through its values: `{shown} | items | map(attribute=1) | list`"),
            (Kind::Record(record), _) => {
                match record.fields.iter().find(|field| matches!(field.kind.kind, Kind::List(_))) {
                    Some(field) => format!("did you mean `{shown}.{}`?", field.name),
                    None => "name a field that is a list".to_owned(),
                }
            }
            (Kind::Int, _) => format!("to count, write `range({shown})`"),
            _ => "name a value that is a list".to_owned(),
        };
        let mut diagnostic = Diagnostic::new(
            Code::TypeMismatch,
            format!("`{shown}` {} {}, not a list", found.verb(), describe_kind(kind)),
        )
        .label(self.span(&list.range), "has no items")
        .help(help);
        if !found.one_of {
            diagnostic = self.take_field(diagnostic, list, kind, |kind| matches!(kind, Kind::List(_)));
        }
        if let Some(path) = list.as_path().filter(|path| path.fields().is_empty())
            && let Some((span, text)) = self.env.origin(path.root, path.name()).label
        {
            diagnostic = diagnostic.label(span, text);
        }
        self.push(diagnostic);
    }

    /// SW205: a key that a record never has.
    pub(super) fn no_such_key(&mut self, of: &Expr, key: &Expr, name: &str, record: &Record) {
        let known: Vec<&str> = record.fields.iter().map(|field| field.name.as_str()).collect();
        let (close, help) = suggest::did_you_mean(name, &known, "its fields are ");
        let message = format!("`{}` has no field `{}`: this never holds", self.clip_source(of), clip_word(name));
        let diagnostic = Diagnostic::new(Code::TypeMismatch, message)
            .label(self.span(&key.range), "never one of its fields")
            .label(record.span, "its fields are declared here")
            .help_maybe(help);
        self.push(match close {
            Some(close) => self.write_word(diagnostic, &key.range, close),
            None => diagnostic,
        });
    }

    /// SW205: `in` of something that holds nothing.
    pub(super) fn holds_nothing(&mut self, of: &Expr, found: &Found) {
        let shown = self.clip_source(of);
        let diagnostic =
            Diagnostic::new(Code::TypeMismatch, format!("`{shown}` {}, and nothing is in it", found.describe()))
                .label(self.span(&of.range), "neither a list nor a text")
                .help(match found.one_of {
                    true => self.ask_first(of, &found.kind),
                    false => format!("compare it: `== {shown}`"),
                });
        self.push(diagnostic);
    }

    /// SW205: arithmetic on what are no numbers.
    pub(super) fn not_numbers(&mut self, whole: &Expr, left: (&Expr, &Found), right: (&Expr, &Found), op: Operator) {
        let (side, found) = if left.1.kind.is_number() { right } else { left };
        let kind = &found.kind;
        let shown = self.clip_source(side);
        let help = match kind {
            _ if found.one_of => self.ask_first(side, kind),
            kind if kind.is_text() && op == Operator::Add => {
                format!("to join texts, write `~`; for a number, `{shown} | int`")
            }
            kind if kind.is_text() => format!("write `({shown} | int)`"),
            Kind::List(_) => format!("write `({shown} | length)`"),
            _ => "compute with numbers".to_owned(),
        };
        let verb = if found.one_of { "may compute" } else { "computes" };
        let diagnostic = Diagnostic::new(
            Code::TypeMismatch,
            format!("`{}` {verb} with {}", self.clip_source(whole), describe_kind(kind)),
        )
        .label(self.span(&side.range), "not a number")
        .help(help);
        self.push(diagnostic);
    }

    /// What a value is called, and where it comes from.
    pub(super) fn describe_walk(&self, walk: &Walk) -> (String, Option<(crate::source::Span, &'static str)>) {
        match &walk.root {
            Some((root, name)) => {
                let origin = self.env.origin(*root, name.as_deref());
                (origin.noun, origin.label)
            }
            None => {
                let declared = walk.declared.map(|span| (span, "declared here"));
                match walk.of_item {
                    true => (format!("an item of `{}`", self.format_walk(walk)), declared),
                    false => (format!("`{}`", self.format_walk(walk)), declared),
                }
            }
        }
    }

    /// The way so far, as it is written.
    fn format_walk(&self, walk: &Walk) -> String {
        clip_word(&self.passage.text()[self.walk_range(walk)])
    }

    fn walk_range(&self, walk: &Walk) -> Range<usize> {
        super::balance_brackets(self.passage.text(), walk.start..walk.place.end.max(walk.start))
    }
}
