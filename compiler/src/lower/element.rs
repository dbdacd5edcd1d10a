//! Holds a syntax tree against the table of the language: in goes a node, out comes an [`Element`] in which everything
//! that fits has its type. What does not fit is reported (SW003 to SW006) and left out.

use std::collections::BTreeMap;

use super::datum::{Datum, Place, lower_datum};
use super::unknown::{
    opens_block, report_annotation, report_block, report_default, report_deprecated, report_duplicate, report_unknown,
    too_many, unknown_property,
};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lower::value;
use crate::schema::{self, Kind, Node};
use crate::source::Span;
use crate::syntax::{self, Name};

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
    /// The comments on the lines directly above.
    pub comments: Vec<Span>,
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

/// Holds the nodes of a block against what `parent` may hold, which is called so in messages.
pub(super) fn lower_block(
    nodes: &[syntax::Node],
    parent: &'static Node,
    called: &str,
    diagnostics: &mut Diagnostics,
) -> Vec<Element> {
    let mut elements: Vec<Element> = Vec::with_capacity(nodes.len());
    // Nodes that may stand once are few and named in the table, so this list stays short.
    let mut once: Vec<(&'static str, Span)> = Vec::new();
    // Whether lines of a text stand here as nodes.
    let mut in_text = false;
    for node in nodes {
        let schema = match parent.find_child(&node.name.text).or(parent.open_children) {
            Some(schema) => schema,
            None => {
                // What is no name at all, such as `-`, has been reported.
                if !in_text && !diagnostics.has_report_at(node.name.span) {
                    diagnostics.push(report_unknown(node, parent, called));
                }
                continue;
            }
        };
        if !schema.many {
            match once.iter().find(|(name, _)| *name == schema.name) {
                Some((_, first)) => {
                    diagnostics.push(report_duplicate(&format!("`{}`", schema.name), node.name.span, *first));
                    continue;
                }
                None => once.push((schema.name, node.name.span)),
            }
        }
        if let Some(older) = schema::find_older(schema.older, &node.name.text) {
            diagnostics.push(report_deprecated(older, schema.name, node.name.span));
        }
        let block = node.entries.first().filter(|entry| node.entries.len() == 1 && opens_block(entry));
        in_text = block.is_some();
        if let Some(sign) = block {
            diagnostics.push(report_block(&node.name.text, sign.span));
        }
        elements.push(lower_element(node, schema, diagnostics));
    }
    elements
}

fn lower_element(node: &syntax::Node, schema: &'static Node, diagnostics: &mut Diagnostics) -> Element {
    let span = node.span;
    let called = schema.display_name(&node.name.text);
    if let Some(annotation) = &node.annotation {
        diagnostics.push(report_annotation(annotation));
    }
    let mut arguments = Vec::new();
    let mut properties: Vec<(Name, Datum)> = Vec::new();
    // Every key that stands there, fitting or not.
    let mut keys: BTreeMap<&str, Span> = BTreeMap::new();
    let mut surplus: Vec<&syntax::Entry> = Vec::new();
    let mut position = 0;
    for entry in &node.entries {
        if let Some(annotation) = &entry.annotation {
            diagnostics.push(report_annotation(annotation));
        }
        match &entry.name {
            None => {
                let known = schema.arguments.get(position).or(schema.rest.as_ref());
                match known {
                    Some(known) => {
                        if let Some(wrong) = report_default(entry, &arguments, schema, called) {
                            diagnostics.push(wrong);
                        } else if let Some(datum) =
                            lower_datum(&entry.value, known.kind, Place::Node(called), diagnostics)
                        {
                            arguments.push((position, datum));
                        }
                    }
                    None => surplus.push(entry),
                }
                // A value that does not fit still takes its place: the next one must not count as the first.
                position += 1;
            }
            Some(written) => {
                let mut name = written.clone();
                let property = schema.find_property(&name.text);
                let older = property.and_then(|property| schema::find_older(property.older, &name.text));
                if let Some(property) = property {
                    name.text = property.name.into();
                }
                // An older spelling and the present one are the same property, so both together are a duplicate.
                let key = property.map_or(&*written.text, |property| property.name);
                if let Some(first) = keys.get(key) {
                    diagnostics.push(report_duplicate(&format!("property `{}`", name.text), name.span, *first));
                    continue;
                }
                keys.insert(key, name.span);
                if let Some(older) = older {
                    diagnostics.push(report_deprecated(older, &name.text, name.span));
                }
                let known = property.map(|property| property.kind);
                let Some(kind) = known.or(schema.open_properties.map(|(_, kind)| kind)) else {
                    diagnostics.push(unknown_property(&name, entry, schema, called));
                    continue;
                };
                if let (None, Some((key, _))) = (known, schema.open_properties)
                    && let Some(wrong) = wrong_key(&name, key)
                {
                    diagnostics.push(wrong);
                    continue;
                }
                if let Some(datum) = lower_datum(&entry.value, kind, Place::Property(key), diagnostics) {
                    properties.push((name, datum));
                }
            }
        }
    }
    if let (Some(first), Some(last)) = (node.entries.first(), surplus.last())
        // What is wrong with the quotes of a text makes words of it.
        && !diagnostics.has_report_at(first.span.to(last.span))
    {
        diagnostics.push(too_many(&surplus, &arguments, schema, called));
    }
    // What is missing from a broken node may stand behind the mistake that the syntax reported.
    if !node.broken {
        let missing = schema.arguments.iter().skip(position).filter(|argument| argument.required);
        // Half an edge is one mistake, and edges tell it themselves.
        for argument in missing.filter(|_| !std::ptr::eq(schema, &schema::EDGE)) {
            let message = format!("`{called}` needs {}", argument.kind.describe());
            let diagnostic = Diagnostic::new(Code::WrongValue, message)
                .label(node.name.span, format!("{} is missing", argument.name))
                .help(format!("write `{}`", write_usage(schema, called, argument)));
            diagnostics.push(diagnostic);
        }
        for property in schema.properties.iter().filter(|property| property.required) {
            if !keys.contains_key(property.name) {
                let message = format!("`{called}` needs `{}=`", property.name);
                let diagnostic = Diagnostic::new(Code::WrongValue, message)
                    .label(node.name.span, format!("`{}=` is missing", property.name))
                    .help(format!("write `{}`", schema.usage_as(called)));
                diagnostics.push(diagnostic);
            }
        }
    }
    for child in node.children() {
        take_property(child, schema, &mut properties, diagnostics);
    }
    let children = lower_block(node.children(), schema, called, diagnostics);
    let (name, comments) = (node.name.clone(), node.comments.clone());
    Element { schema, name, span, arguments, properties, children, comments }
}

/// Takes a property that stands in the block as a node: its place is reported, and what it says still counts.
fn take_property(
    child: &syntax::Node,
    schema: &'static Node,
    properties: &mut Vec<(Name, Datum)>,
    diagnostics: &mut Diagnostics,
) {
    let name = &child.name;
    let is_taken = properties.iter().any(|(key, _)| key.text == name.text);
    let Some(property) = schema.find_property(&name.text).filter(|_| !is_taken) else { return };
    if schema.find_child(&name.text).is_some() || schema.open_children.is_some() {
        return;
    }
    // `agent=coder` and `agent: coder` are no nodes: that it is a property says what is wrong with both.
    let end = child.entries.first().map_or(child.span.end, |first| first.span.start);
    let sign = Span { start: name.span.end, end: end + 1, ..name.span };
    if diagnostics.has_report_at(sign) {
        let is_inside = |span: Span| span.file == sign.file && (sign.start..sign.end).contains(&span.start);
        diagnostics.suppress(|known| known.code == Code::Syntax && known.span().is_some_and(is_inside));
    }
    if let [entry] = child.entries.as_slice()
        && entry.name.is_none()
        && let Some(datum) = lower_datum(&entry.value, property.kind, Place::Property(&name.text), diagnostics)
    {
        properties.push((name.clone(), datum));
    }
}

/// A report of a property whose name is not what such names are.
fn wrong_key(name: &Name, key: Kind) -> Option<Diagnostic> {
    let (fits, what, label, help) = match key {
        Kind::Variable => (
            value::is_variable(&name.text),
            "the name of an environment variable",
            "not a variable",
            "letters, digits and `_`, and no digit first",
        ),
        _ => (
            value::is_name(&name.text),
            "a name",
            "not a name",
            "a name is a lowercase letter, then lowercase letters, digits, `-` and `_`",
        ),
    };
    let message = format!("`{}` is not {what}", name.text);
    (!fits).then(|| Diagnostic::new(Code::WrongValue, message).label(name.span, label).help(help))
}

/// How a node is written, with the quotes of an expression that is missing.
fn write_usage(schema: &Node, called: &str, missing: &schema::Argument) -> String {
    let usage = schema.usage_as(called);
    match missing.kind {
        Kind::Expression => usage.replacen(missing.name, &format!("\"{}\"", missing.name), 1),
        _ => usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Older, Property, Word};
    use crate::source::FileId;

    const ONCE: &[Older] = &[Older { name: "colour_of", since: "2026" }];
    const WORDS: &[Word] = &[Word { word: "light-blue", doc: "as the sky", older: ONCE }];
    const COLOUR: Property = Property {
        name: "colour",
        kind: Kind::Choice(WORDS),
        default: None,
        required: true,
        doc: "Its colour.",
        since: "2026",
        older: ONCE,
    };
    static PEN: Node = Node { properties: &[COLOUR], older: ONCE, ..schema::bare_node("pen") };
    static DESK: Node = Node { children: &[&PEN], ..schema::bare_node("desk") };

    /// What is said of a text: each message with the text that its fix makes of it.
    fn check(text: &str, expected: &[&str]) -> Vec<Element> {
        let mut diagnostics = Diagnostics::default();
        let elements = lower_block(&syntax::parse(text, FileId::new(0)).nodes, &DESK, "desk", &mut diagnostics);
        let said = |diagnostic: Diagnostic| match diagnostic.fix {
            Some(fix) => {
                let mut text = text.to_owned();
                fix.edits.iter().for_each(|edit| text.replace_range(edit.span.range(), &edit.text));
                format!("{} {} => {text}", diagnostic.code.id(), diagnostic.message)
            }
            None => format!("{} {}", diagnostic.code.id(), diagnostic.message),
        };
        let found: Vec<String> = diagnostics.into_sorted().into_iter().map(said).collect();
        assert_eq!(found, expected);
        elements
    }

    #[test]
    fn older_spellings_of_nodes_properties_and_words_mean_the_newer_ones() {
        check("pen colour=light-blue", &[]);
        let deprecated = "SW704 `colour_of` is deprecated since edition 2026 =>";
        let elements = check("colour_of colour=light-blue", &[&format!("{deprecated} pen colour=light-blue")]);
        assert_eq!(elements[0].schema.name, "pen");
        let elements = check("pen colour_of=light-blue", &[&format!("{deprecated} pen colour=light-blue")]);
        assert_eq!(elements[0].property("colour").map(|datum| datum.text.as_str()), Some("light-blue"));
        let elements = check("pen colour=\"colour_of\"", &[&format!("{deprecated} pen colour=light-blue")]);
        assert_eq!(elements[0].property("colour").map(|datum| datum.text.as_str()), Some("light-blue"));
    }

    #[test]
    fn an_older_spelling_beside_the_newer_one_is_the_same_twice() {
        check("pen colour=light-blue colour_of=light-blue", &["SW006 property `colour` is given twice"]);
        check("pen colour=light-blue\ncolour_of colour=light-blue", &["SW006 `pen` is given twice"]);
    }
}
