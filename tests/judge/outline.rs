//! The values of a document as lines of text, the same from our tree and from the `kdl` crate's document.

use std::fmt::Write;

use swarmc_compiler::syntax::{Entry, Node, Number, Tree, ValueKind};

/// The outline of our tree.
pub(super) fn of_tree(tree: &Tree) -> String {
    let mut outline = String::new();
    nodes(&tree.nodes, 0, &|node| node.entries.iter().collect(), &mut outline);
    outline
}

/// The outline of our tree as the compliance cases print documents: arguments first, then properties by name, of repeated
/// ones the last, and no empty blocks.
pub(super) fn normal(tree: &Tree) -> String {
    let mut outline = String::new();
    nodes(&tree.nodes, 0, &sorted, &mut outline);
    outline.replace(" {}\n", "\n")
}

fn sorted(node: &Node) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = node.arguments().collect();
    let mut properties: Vec<&Entry> = Vec::new();
    for (name, entry) in node.properties() {
        properties.retain(|other| other.name.as_ref().is_some_and(|other| other.text != name.text));
        properties.push(entry);
    }
    properties.sort_by_key(|entry| entry.name.as_ref().map(|name| name.text.clone()));
    entries.extend(properties);
    entries
}

fn nodes<'t>(list: &'t [Node], depth: usize, order: &dyn Fn(&'t Node) -> Vec<&'t Entry>, outline: &mut String) {
    for node in list {
        line(depth, node.annotation.as_ref().map(|name| &*name.text), &node.name.text, outline);
        for entry in order(node) {
            let name = entry.name.as_ref().map(|name| &*name.text);
            let annotation = entry.annotation.as_ref().map(|name| &*name.text);
            item(name, annotation, &value(&entry.value.kind), outline);
        }
        outline.push_str(if node.children.as_ref().is_some_and(|block| block.nodes.is_empty()) {
            " {}\n"
        } else {
            "\n"
        });
        nodes(node.children(), depth + 1, order, outline);
    }
}

fn line(depth: usize, annotation: Option<&str>, name: &str, outline: &mut String) {
    let _ = write!(outline, "{:depth$}", "");
    if let Some(annotation) = annotation {
        let _ = write!(outline, "({annotation:?})");
    }
    let _ = write!(outline, "{name:?}");
}

fn item(name: Option<&str>, annotation: Option<&str>, value: &str, outline: &mut String) {
    outline.push(' ');
    if let Some(name) = name {
        let _ = write!(outline, "{name:?}=");
    }
    if let Some(annotation) = annotation {
        let _ = write!(outline, "({annotation:?})");
    }
    outline.push_str(value);
}

fn value(kind: &ValueKind) -> String {
    match kind {
        ValueKind::String(text) => format!("{:?}", text.as_str()),
        ValueKind::Number(number) => self::number(number),
        ValueKind::Bool(value) => format!("#{value}"),
        ValueKind::Null => "#null".to_owned(),
        ValueKind::Missing => "missing".to_owned(),
    }
}

fn number(number: &Number) -> String {
    number.as_i128().map_or_else(|| float(number.as_f64()), |whole| whole.to_string())
}

fn float(value: f64) -> String {
    format!("{value:e}f")
}

/// The outline of a document of the `kdl` crate.
pub(super) fn of_document(document: &kdl::KdlDocument) -> String {
    let mut outline = String::new();
    document_nodes(document, 0, &mut outline);
    outline
}

fn document_nodes(document: &kdl::KdlDocument, depth: usize, outline: &mut String) {
    for node in document.nodes() {
        line(depth, node.ty().map(kdl::KdlIdentifier::value), node.name().value(), outline);
        for entry in node.entries() {
            let value = match entry.value() {
                kdl::KdlValue::String(text) => format!("{text:?}"),
                kdl::KdlValue::Integer(whole) => whole.to_string(),
                kdl::KdlValue::Float(value) => float(*value),
                kdl::KdlValue::Bool(value) => format!("#{value}"),
                kdl::KdlValue::Null => "#null".to_owned(),
            };
            let name = entry.name().map(kdl::KdlIdentifier::value);
            item(name, entry.ty().map(kdl::KdlIdentifier::value), &value, outline);
        }
        outline.push_str(if node.children().is_some_and(|block| block.nodes().is_empty()) { " {}\n" } else { "\n" });
        if let Some(children) = node.children() {
            document_nodes(children, depth + 1, outline);
        }
    }
}
