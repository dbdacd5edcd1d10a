//! The language as a page of Markdown, from the table.

use std::fmt::Write as _;

use super::{Kind, Node, SPEC};

/// Every node, in the order in which a reader meets it.
pub(crate) fn page() -> String {
    let mut page = String::from(
        "# The language\n\nEvery node of a spec, from the table that the compiler itself uses. A name is `[a-z][a-z0-9_-]*`; \
         a duration has a unit of `ms`, `s`, `m`, `h` or `d` (`\"10m\"`), a size one of `B`, `KB`, `MB` or `GB` \
         (`\"100KB\"` is 102,400 bytes).\n",
    );
    let mut seen: Vec<*const Node> = Vec::new();
    for node in SPEC.children {
        section(node, node.name, 2, &mut seen, &mut page);
    }
    page
}

/// A node and what may stand in its block; nodes nest as deep as the table does.
fn section(node: &'static Node, path: &str, level: usize, seen: &mut Vec<*const Node>, page: &mut String) {
    let known = seen.contains(&std::ptr::from_ref(node));
    let _ = writeln!(page, "\n{} `{path}`\n\n{}", "#".repeat(level), node.doc);
    if known && !node.children.is_empty() {
        return;
    }
    seen.push(std::ptr::from_ref(node));
    let _ = writeln!(page, "\n```text\n{}{}\n```", node.usage(), if node.children.is_empty() { "" } else { " { … }" });
    let mut rows = Vec::new();
    for argument in node.arguments.iter().chain(&node.rest) {
        let default = argument.default.map_or(String::new(), |default| format!(" Without the node: `{default}`."));
        rows.push(format!("- `{}`: {}.{default}", argument.name, meaning(argument.kind)));
    }
    for property in node.properties {
        let default = property.default.map_or(String::new(), |default| format!(" Default: `{default}`."));
        rows.push(format!("- `{}=`: {} {}.{default}", property.name, property.doc, capital(&meaning(property.kind))));
    }
    if let Some(kind) = node.open_properties {
        rows.push(format!("- `NAME=`: {}.", meaning(kind)));
    }
    if !rows.is_empty() {
        let _ = writeln!(page, "\n{}", rows.join("\n"));
    }
    for child in node.children {
        section(child, &format!("{path} / {}", child.name), (level + 1).min(4), seen, page);
    }
}

fn meaning(kind: Kind) -> String {
    match kind {
        Kind::Choice(words) => {
            words.iter().map(|word| format!("`{}` ({})", word.word, word.doc)).collect::<Vec<_>>().join(", ")
        }
        Kind::Template => "a text with directives".into(),
        Kind::Reference => "the name of a declared thing".into(),
        kind => kind.noun(),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
