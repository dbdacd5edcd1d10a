//! Holds a syntax tree against the table of the language: in goes a node, out comes an [`Element`] in which everything
//! that fits has its type. What does not fit is reported (SW003 to SW006) and left out.

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lower::value;
use crate::schema::{self, Kind, Node, Property};
use crate::source::Span;
use crate::suggest;
use crate::syntax::{self, Name, Text, ValueKind};

/// A node that the table knows.
#[derive(Debug)]
pub(crate) struct Element {
    /// What the table says of it.
    pub schema: &'static Node,
    /// Its name as written: its own for the fields of a record.
    pub name: Name,
    /// From the name to the end of its block.
    pub span: Span,
    /// The arguments that fit, each with its position.
    pub arguments: Vec<(usize, Datum)>,
    /// The properties that fit.
    pub properties: Vec<(Name, Datum)>,
    /// The block.
    pub children: Vec<Element>,
}

/// A value that fits.
#[derive(Clone, Debug)]
pub(crate) struct Datum {
    /// Where it stands.
    pub span: Span,
    /// Its text: decoded for strings, as written for everything else.
    pub text: Text,
    /// A count, a number of milliseconds or of bytes, a whole number as a literal; else 0.
    pub number: i64,
}

impl Element {
    /// The argument at `position`, from 0.
    pub(crate) fn argument(&self, position: usize) -> Option<&Datum> {
        self.arguments.iter().find(|(at, _)| *at == position).map(|(_, datum)| datum)
    }

    /// The property called `name`.
    pub(crate) fn property(&self, name: &str) -> Option<&Datum> {
        self.properties.iter().find(|(key, _)| &*key.text == name).map(|(_, datum)| datum)
    }

    /// The first child called `name`.
    pub(crate) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.schema.name == name)
    }

    /// The children called `name`.
    pub(crate) fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.schema.name == name)
    }
}

/// Holds the nodes of a block against what `parent` may hold.
pub(super) fn block(nodes: Vec<syntax::Node>, parent: &'static Node, diagnostics: &mut Diagnostics) -> Vec<Element> {
    let mut elements: Vec<Element> = Vec::with_capacity(nodes.len());
    // Nodes that may stand once are few and named in the table, so this list stays short.
    let mut once: Vec<(&'static str, Span)> = Vec::new();
    for node in nodes {
        let schema = match parent.child(&node.name.text) {
            Some(schema) => schema,
            None if parent.open_children => &RECORD_FIELD,
            None => {
                // What is no name at all, such as `-`, has been reported.
                if !diagnostics.covers(node.name.span) {
                    diagnostics.push(unknown(&node, parent));
                }
                continue;
            }
        };
        if !schema.many {
            match once.iter().find(|(name, _)| *name == schema.name) {
                Some((_, first)) => {
                    diagnostics.push(twice(&format!("`{}`", schema.name), node.name.span, *first));
                    continue;
                }
                None => once.push((schema.name, node.name.span)),
            }
        }
        elements.push(element(node, schema, diagnostics));
    }
    elements
}

/// A field of a computed record.
static RECORD_FIELD: Node = Node {
    name: "FIELD",
    doc: "A field of the record.",
    arguments: &[schema::Argument { name: "TEXT", kind: Kind::Template, required: true, default: None }],
    rest: None,
    properties: &[],
    open_properties: None,
    children: &[],
    open_children: false,
    many: true,
};

fn element(node: syntax::Node, schema: &'static Node, diagnostics: &mut Diagnostics) -> Element {
    let span = node.span;
    if let Some(annotation) = &node.annotation {
        diagnostics.push(annotated(annotation));
    }
    let mut arguments = Vec::new();
    let mut properties: Vec<(Name, Datum)> = Vec::new();
    // Every key that stands there, fitting or not.
    let mut keys: Vec<Name> = Vec::new();
    let mut surplus: Vec<syntax::Entry> = Vec::new();
    let mut position = 0;
    for entry in node.entries {
        if let Some(annotation) = &entry.annotation {
            diagnostics.push(annotated(annotation));
        }
        match &entry.name {
            None => {
                let known = schema.arguments.get(position).or(schema.rest.as_ref());
                match known {
                    Some(known) => {
                        let place = format!("`{}`", schema.name);
                        if let Some(datum) = datum(entry.value, known.kind, &place, diagnostics) {
                            arguments.push((position, datum));
                        }
                    }
                    None => surplus.push(entry),
                }
                position += 1;
            }
            Some(name) => {
                let name = name.clone();
                if let Some(first) = keys.iter().find(|key| key.text == name.text) {
                    diagnostics.push(twice(&format!("property `{}`", name.text), name.span, first.span));
                    continue;
                }
                keys.push(name.clone());
                let kind = schema.property(&name.text).map(|property| property.kind).or(schema.open_properties);
                let Some(kind) = kind else {
                    diagnostics.push(unknown_property(&name, &entry, schema));
                    continue;
                };
                if schema.open_properties.is_some() && !value::is_variable(&name.text) {
                    let message = format!("`{}` is not the name of an environment variable", name.text);
                    let diagnostic = Diagnostic::new(Code::WrongValue, message)
                        .label(name.span, "not a variable")
                        .help("letters, digits and `_`, and no digit first");
                    diagnostics.push(diagnostic);
                    continue;
                }
                let place = format!("`{}=`", name.text);
                if let Some(datum) = datum(entry.value, kind, &place, diagnostics) {
                    properties.push((name, datum));
                }
            }
        }
    }
    if !surplus.is_empty() {
        diagnostics.push(too_many(&surplus, &arguments, schema));
    }
    if !node.broken {
        for argument in schema.arguments.iter().skip(position).filter(|argument| argument.required) {
            let message = format!("`{}` needs {}", schema.name, argument.kind.noun());
            let diagnostic = Diagnostic::new(Code::WrongValue, message)
                .label(node.name.span, format!("{} is missing", argument.name))
                .help(format!("write `{}`", schema.usage()));
            diagnostics.push(diagnostic);
        }
        for property in schema.properties.iter().filter(|property| property.required) {
            if !keys.iter().any(|key| &*key.text == property.name) {
                let message = format!("`{}` needs `{}=`", schema.name, property.name);
                let diagnostic = Diagnostic::new(Code::WrongValue, message)
                    .label(node.name.span, format!("`{}=` is missing", property.name))
                    .help(format!("write `{}`", schema.usage()));
                diagnostics.push(diagnostic);
            }
        }
    }
    let children = match node.children {
        Some(children) => block(children.nodes, schema, diagnostics),
        None => Vec::new(),
    };
    Element { schema, name: node.name, span, arguments, properties, children }
}

/// A value as its kind, or a report.
fn datum(value: syntax::Value, kind: Kind, place: &str, diagnostics: &mut Diagnostics) -> Option<Datum> {
    let span = value.span;
    let wrong = |found: &str, help: Option<String>| {
        Diagnostic::new(Code::WrongValue, format!("{place} takes {}, not {found}", kind.noun()))
            .label(span, format!("not {}", kind.noun()))
            .help_maybe(help)
    };
    let diagnostic = match (value.kind, kind) {
        (ValueKind::Missing, _) => return None,
        (ValueKind::Null, Kind::Scalar | Kind::Text | Kind::Template) => {
            let help = "leave it out, or write `\"null\"` for the word";
            wrong("`#null`", Some(help.into())).unsafe_fix("put it in quotes", span, "\"null\"")
        }
        (ValueKind::Null, _) => wrong("`#null`", Some("leave it out instead".into())),
        (ValueKind::Bool(on), Kind::Bool | Kind::Literal) => {
            return Some(Datum {
                span,
                text: Text::plain(if on { "true" } else { "false" }, span),
                number: i64::from(on),
            });
        }
        (ValueKind::Bool(on), Kind::Scalar | Kind::Text | Kind::Template | Kind::Expression) => {
            let quoted = format!("\"{on}\"");
            wrong(&format!("`#{on}`"), Some(format!("write `{quoted}`"))).unsafe_fix("put it in quotes", span, quoted)
        }
        (ValueKind::Bool(on), _) => wrong(&format!("`#{on}`"), None),
        (ValueKind::Number(number), Kind::Count(min, max)) => {
            match number
                .as_i128()
                .and_then(|count| u64::try_from(count).ok())
                .filter(|count| (min..=max).contains(count))
            {
                Some(count) => {
                    let number_text = Text::plain(number.written(), span);
                    return Some(Datum { span, text: number_text, number: i64::try_from(count).unwrap_or(i64::MAX) });
                }
                None => wrong(&format!("`{}`", number.written()), None),
            }
        }
        (ValueKind::Number(number), Kind::Literal) => {
            let whole = number.as_i128().and_then(|whole| i64::try_from(whole).ok());
            return Some(Datum { span, text: Text::plain(number.written(), span), number: whole.unwrap_or_default() });
        }
        (ValueKind::Number(number), Kind::Scalar) => {
            return Some(Datum { span, text: Text::plain(number.written(), span), number: 0 });
        }
        (ValueKind::Number(number), Kind::Duration) => {
            let written = number.written();
            wrong("a bare number", Some(format!("say the unit: `\"{written}s\"` or `\"{written}m\"`")))
        }
        (ValueKind::Number(number), Kind::Size) => {
            let written = number.written();
            wrong("a bare number", Some(format!("say the unit: `\"{written}KB\"` or `\"{written}B\"`")))
        }
        (ValueKind::Number(number), _) => {
            let quoted = format!("\"{}\"", number.written());
            match kind {
                Kind::Text | Kind::Template | Kind::Expression => {
                    wrong("a number", Some(format!("write `{quoted}`"))).unsafe_fix("put it in quotes", span, quoted)
                }
                _ => wrong("a number", None),
            }
        }
        (ValueKind::String(text), kind) => return string(text, kind, span, place, diagnostics),
    };
    // A literal of KDL 1 has been reported; here it is the word that was meant, or nothing.
    match diagnostics.covers(span) {
        true => diagnostics.amend(Code::V1Literal, span, diagnostic),
        false => diagnostics.push(diagnostic),
    }
    None
}

fn string(text: Text, kind: Kind, span: Span, place: &str, diagnostics: &mut Diagnostics) -> Option<Datum> {
    let wrong = |message: String, help: Option<String>| {
        Diagnostic::new(Code::WrongValue, message).label(span, format!("not {}", kind.noun())).help_maybe(help)
    };
    let value = text.as_str();
    let mut number = 0;
    let diagnostic = match kind {
        Kind::Scalar if value.contains('\0') => Some(wrong(
            format!("{place} holds a NUL"),
            Some("no argument of a process can hold one: leave it out".into()),
        )),
        Kind::Text | Kind::Template | Kind::Expression | Kind::Scalar | Kind::Literal | Kind::Reference => None,
        Kind::Path | Kind::Glob if value.is_empty() => Some(wrong(format!("{place} names no file"), None)),
        Kind::Path | Kind::Glob => None,
        Kind::Name if value.len() > swarmc_plan::LONGEST_NAME => {
            let beginning: String = value.chars().take(20).collect();
            let longest = swarmc_plan::LONGEST_NAME;
            Some(wrong(format!("the name `{beginning}…` is too long"), Some(format!("{longest} characters at most"))))
        }
        Kind::Name if value::is_name(value) => None,
        Kind::Name => {
            let lower = value.to_lowercase().replace([' ', '.'], "-");
            let help = "a name is a lowercase letter, then lowercase letters, digits, `-` and `_`";
            let diagnostic = wrong(format!("`{value}` cannot be a name"), Some(help.into()));
            Some(match value::is_name(&lower) {
                true => diagnostic.unsafe_fix(format!("write `{lower}`"), span, lower),
                false => diagnostic,
            })
        }
        Kind::Variable if value::is_variable(value) => None,
        Kind::Variable => Some(wrong(
            format!("`{value}` is not the name of an environment variable"),
            Some("letters, digits and `_`, and no digit first".into()),
        )),
        Kind::Duration => match value::duration(value) {
            Ok(millis) => {
                number = i64::try_from(millis).unwrap_or(i64::MAX);
                None
            }
            Err(help) => Some(wrong(format!("`{value}` is not a duration"), Some(help))),
        },
        Kind::Size => match value::size(value) {
            Ok(bytes) => {
                number = i64::try_from(bytes).unwrap_or(i64::MAX);
                None
            }
            Err(help) => Some(wrong(format!("`{value}` is not a size"), Some(help))),
        },
        Kind::Choice(words) => match words.iter().any(|word| word.word == value) {
            true => None,
            false => {
                let names: Vec<&str> = words.iter().map(|word| word.word).collect();
                let close = suggest::closest(value, names);
                let help = format!("write {}", kind.noun());
                let diagnostic = wrong(
                    format!("{place} cannot be `{value}`"),
                    Some(close.map_or(help, |close| format!("did you mean `{close}`?"))),
                );
                Some(match close {
                    Some(close) => diagnostic.unsafe_fix(format!("write `{close}`"), span, close),
                    None => diagnostic,
                })
            }
        },
        Kind::Type => match value::param_type(value) {
            Some(_) => None,
            None => {
                let names: Vec<&str> = schema::PARAM_TYPES.iter().map(|word| word.word).collect();
                let (close, help) = suggest::did_you_mean(value, &names, "the types are ");
                let diagnostic = wrong(format!("there is no type `{value}`"), help);
                Some(match close {
                    Some(close) => diagnostic.unsafe_fix(format!("write `{close}`"), span, close),
                    None => diagnostic,
                })
            }
        },
        Kind::Count(..) => {
            let diagnostic = wrong(format!("{place} takes {}, not a text", kind.noun()), None);
            Some(match value.parse::<u64>() {
                Ok(plain) => {
                    diagnostic.help(format!("write `{plain}` without quotes")).fix("remove the quotes", span, value)
                }
                Err(_) => diagnostic,
            })
        }
        Kind::Bool => {
            let keyword = match value.to_lowercase().as_str() {
                "true" | "yes" | "on" => Some("#true"),
                "false" | "no" | "off" => Some("#false"),
                _ => None,
            };
            let help = keyword.map(|keyword| format!("write `{keyword}`"));
            let diagnostic = wrong(format!("{place} takes {}, not a text", kind.noun()), help);
            Some(match keyword {
                Some(keyword) => diagnostic.fix("write the keyword", span, keyword),
                None => diagnostic,
            })
        }
    };
    match diagnostic {
        // A name that cannot be one is still what it declares: its references hold.
        Some(diagnostic) if matches!(kind, Kind::Name) => {
            diagnostics.push(diagnostic);
            Some(Datum { span, text, number })
        }
        Some(diagnostic) => {
            diagnostics.push(diagnostic);
            None
        }
        None => Some(Datum { span, text, number }),
    }
}

fn unknown(node: &syntax::Node, parent: &'static Node) -> Diagnostic {
    let name = &*node.name.text;
    let place = match parent.name {
        "" => "at the top level".to_owned(),
        parent => format!("in `{parent}`"),
    };
    if parent.property(name).is_some() {
        let value = match node.entries.first().map(|entry| &entry.value.kind) {
            Some(ValueKind::String(text)) if text.is_bare() => text.as_str(),
            _ => "…",
        };
        return Diagnostic::new(
            Code::MisplacedNode,
            format!("`{name}` is a property of `{}`, not a node in its block", parent.name),
        )
        .label(node.name.span, "a property stands on the line of its node")
        .help(format!("write `{name}={value}` before the braces: `{} … {name}={value} {{ … }}`", parent.name));
    }
    let allowed: Vec<&str> = parent.children.iter().map(|child| child.name).collect();
    let takes = match (parent.name, allowed.is_empty()) {
        (parent_name, true) => format!("`{parent_name}` takes no block: write `{}`", parent.usage()),
        ("", false) => format!("the top level takes {}", suggest::list(allowed.iter().copied(), "and")),
        (parent, false) => format!("`{parent}` takes {}", suggest::list(allowed.iter().copied(), "and")),
    };
    let parents = schema::parents(name);
    if !parents.is_empty() {
        let home = match parents.as_slice() {
            [""] => "at the top level".to_owned(),
            [..] => {
                let inside = parents.iter().copied().filter(|parent| !parent.is_empty());
                let top = if parents.contains(&"") { "the top level, or in " } else { "" };
                format!("in {top}{}", suggest::list(inside, "or"))
            }
        };
        return Diagnostic::new(Code::MisplacedNode, format!("`{name}` is not allowed {place}"))
            .label(node.name.span, format!("belongs {home}"))
            .help(takes);
    }
    let diagnostic = Diagnostic::new(Code::UnknownNode, format!("there is no `{name}` {place}"));
    match suggest::habit(name, &allowed).or_else(|| suggest::closest(name, allowed.iter().copied())) {
        Some(close) => diagnostic
            .label(node.name.span, "not known here")
            .help(format!("did you mean `{close}`? {takes}"))
            .unsafe_fix(format!("write `{close}`"), node.name.span, close),
        None => diagnostic.label(node.name.span, "not known here").help(takes),
    }
}

fn unknown_property(name: &Name, entry: &syntax::Entry, schema: &'static Node) -> Diagnostic {
    let key = &*name.text;
    let node = schema.name;
    if schema.rest.is_some_and(|rest| matches!(rest.kind, Kind::Scalar)) {
        let word = match &entry.value.kind {
            ValueKind::String(text) => format!("\"{key}={}\"", text.as_str().escape_debug()),
            ValueKind::Number(number) => format!("\"{key}={}\"", number.written()),
            _ => format!("\"{key}=…\""),
        };
        return Diagnostic::new(
            Code::UnknownNode,
            format!("`{key}=` reads as a property, and `{node}` has none of that name"),
        )
        .label(entry.span, "a word with `=` needs quotes")
        .help(format!("write `{word}`"))
        .fix("put the word in quotes", entry.span, word);
    }
    if schema.children.iter().any(|child| child.name == key) {
        return Diagnostic::new(
            Code::MisplacedNode,
            format!("`{key}` is a node in the block of `{node}`, not a property"),
        )
        .label(entry.span, "belongs inside the braces")
        .help(format!("write `{node} … {{ {key} … }}`"));
    }
    let known: Vec<&str> = schema.properties.iter().map(|property: &Property| property.name).collect();
    let diagnostic = Diagnostic::new(Code::UnknownNode, format!("`{node}` has no property `{key}`"))
        .label(name.span, "not known here");
    match suggest::closest(key, known.iter().copied()) {
        Some(close) => diagnostic.help(format!("did you mean `{close}=`?")).unsafe_fix(
            format!("write `{close}`"),
            name.span,
            close,
        ),
        None if known.is_empty() => diagnostic.help(format!("it takes no properties: `{}`", schema.usage())),
        None => diagnostic.help(format!("its properties are {}", suggest::list(known.into_iter(), "and"))),
    }
}

fn too_many(surplus: &[syntax::Entry], arguments: &[(usize, Datum)], schema: &'static Node) -> Diagnostic {
    let (first, last) = (&surplus[0], &surplus[surplus.len() - 1]);
    let count = match schema.arguments.len() {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        count => format!("{count} arguments"),
    };
    let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{}` takes {count}", schema.name))
        .label(first.span.to(last.span), if surplus.len() == 1 { "one too many" } else { "too many" });
    let is_text = matches!(schema.arguments.last(), Some(argument) if matches!(argument.kind, Kind::Text | Kind::Template | Kind::Expression));
    let bare = |entry: &syntax::Entry| matches!(&entry.value.kind, ValueKind::String(text) if text.is_bare());
    match arguments.last() {
        Some((_, text)) if is_text && text.text.is_bare() && surplus.iter().all(bare) => {
            diagnostic.help("put the whole text in quotes")
        }
        _ => diagnostic.help(format!("write `{}`", schema.usage())),
    }
}

pub(super) fn twice(what: &str, again: Span, first: Span) -> Diagnostic {
    Diagnostic::new(Code::Duplicate, format!("{what} is given twice"))
        .label(again, "again here")
        .label(first, "first here")
        .help("remove one of them")
}

fn annotated(annotation: &Name) -> Diagnostic {
    Diagnostic::new(Code::WrongValue, format!("the annotation `({})` means nothing here", annotation.text))
        .label(annotation.span, "a KDL type annotation")
        .help("remove it")
}
