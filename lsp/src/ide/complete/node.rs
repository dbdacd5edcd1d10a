//! The nodes that a block may hold, with what belongs to each.

use std::ops::Range;

use swarmc_compiler::schema::{ALLOW, Argument, EDGE, Kind, Node, Property, SEQUENCE_STEP, Target};
use swarmc_compiler::{ProviderKind, StepKind};

use super::super::cursor::CursorContext;
use super::{Ask, Completion, Item, ItemKind, name};

/// Nodes of which a block holds one.
fn exclusive_nodes(home: &str) -> Vec<&'static str> {
    match home {
        "task" => StepKind::in_tasks().map(StepKind::name).collect(),
        "provider" => ProviderKind::all().map(ProviderKind::name).collect(),
        "swarm" => vec!["supervisor", "coordinator"],
        _ => Vec::new(),
    }
}

/// Whether most blocks of a kind begin with the node: these come first.
fn comes_first(node: &str) -> bool {
    matches!(node, "task" | "pipeline" | "agent" | "provider")
        || node == ProviderKind::Exec.name()
        || StepKind::all().any(|kind| kind.is_common() && kind.name() == node)
}

pub(super) fn complete_node(
    ask: &Ask<'_>,
    spot: &CursorContext<'_>,
    range: &Range<usize>,
    siblings: &[&str],
    followed: bool,
) -> Completion {
    let home = match spot.around.last() {
        Some(node) => node.known,
        None => Some(ask.document.language()),
    };
    let Some(home) = home else { return Completion::default() };
    let mut items = Vec::new();
    if let Some(open) = home.open_children {
        items.extend(open_names(ask, spot, home, open, siblings, followed));
    }
    let mut children: Vec<&'static Node> =
        home.children.iter().copied().filter(|child| !is_taken(home, child, siblings)).collect();
    children.sort_by_key(|child| match child.name {
        name if comes_first(name) => 0,
        "description" => 2,
        _ => 1,
    });
    let own = home.find_child(ALLOW.name).is_some();
    let allow = (!own && !home.children.is_empty() || home.name == "fake").then_some(&ALLOW);
    for child in children.into_iter().chain(allow) {
        items.push(node_item(child, followed));
        let text = child.arguments.iter().any(|argument| matches!(argument.kind, Kind::Template) && !argument.required);
        if let Some(file) = child.find_property("file").filter(|_| text && !followed) {
            items.push(with_file(child, file));
        }
    }
    Completion { range: range.clone(), items, incomplete: false }
}

/// Whether a block holds what may stand in it once only, or what excludes it.
fn is_taken(home: &Node, child: &Node, siblings: &[&str]) -> bool {
    let stands =
        |node: &Node| siblings.iter().any(|name| *name == node.name || node.older.iter().any(|old| old.name == *name));
    let list = exclusive_nodes(home.name);
    !child.many && stands(child) || list.contains(&child.name) && siblings.iter().any(|name| list.contains(name))
}

/// The names that nodes of a block without fixed ones can have.
fn open_names(
    ask: &Ask<'_>,
    spot: &CursorContext<'_>,
    home: &Node,
    open: &'static Node,
    siblings: &[&str],
    followed: bool,
) -> Vec<Item> {
    if std::ptr::eq(open, &raw const EDGE) {
        let mut names = name::list_names(ask, spot, None, Target::Party);
        if !followed {
            for item in &mut names {
                item.text.push_str(" -> ");
                item.again = true;
            }
        }
        return names;
    }
    if std::ptr::eq(open, &raw const SEQUENCE_STEP) {
        let names = name::list_names(ask, spot, None, Target::Step);
        return names.into_iter().filter(|item| !siblings.contains(&item.label.as_str())).collect();
    }
    if home.name == "tiers" {
        let tier = |tier: &&str| !siblings.contains(tier);
        let item = |tier| {
            let item = Item::new(tier, ItemKind::Node).detail(open.usage_as(tier)).doc(open.doc);
            if followed { item } else { item.text(format!("{tier} ")).suggest_next() }
        };
        return ["small", "medium", "large"].into_iter().filter(tier).map(item).collect();
    }
    if home.name == "fake" {
        let gate = spot.around.last().and_then(|node| node.declared_name());
        let fields = gate.map_or_else(Vec::new, |gate| name::list_gate_fields(ask, spot, gate));
        let fields = fields.into_iter().filter(|field| !siblings.contains(&field.label.as_str()));
        return fields
            .map(|item| if followed { item } else { Item { text: format!("{} ", item.label), ..item } })
            .collect();
    }
    Vec::new()
}

/// A node as it is completed.
fn node_item(node: &'static Node, followed: bool) -> Item {
    let item = Item::new(node.name, ItemKind::Node).detail(node.usage()).doc(node.doc);
    if followed {
        return item;
    }
    let (snippet, again) = build_snippet(node);
    let space = node.arguments.iter().any(|argument| argument.required) || node.rest.is_some() || again;
    let text = if space { format!("{} ", node.name) } else { node.name.to_owned() };
    let item = item.text(text).snippet(snippet);
    if again { item.suggest_next() } else { item }
}

/// A node whose text stands in a file.
fn with_file(node: &'static Node, file: &Property) -> Item {
    let mut head = node.name.to_owned();
    for (index, argument) in node.arguments.iter().filter(|argument| argument.required).enumerate() {
        head += &format!(" {}", format_placeholder(argument, index + 1));
    }
    let next = node.arguments.iter().filter(|argument| argument.required).count() + 1;
    Item::new(format!("{} file=", node.name), ItemKind::Node)
        .detail(node.usage())
        .doc(format!("{} {}", node.doc, file.doc))
        .text(format!("{} file=", node.name))
        .snippet(format!("{head} file=\"${next}\""))
        .suggest_next()
}

/// A node with places for what it must say, and whether there is something to choose at the cursor then.
fn build_snippet(node: &Node) -> (String, bool) {
    let mut text = node.name.to_owned();
    let mut stop = 0;
    let mut again = false;
    let block = has_block(node);
    let useful = |argument: &Argument| {
        matches!(argument.kind, Kind::Template | Kind::Text | Kind::Duration | Kind::Type | Kind::Expression)
    };
    for (index, argument) in node.arguments.iter().enumerate() {
        if argument.required || index == 0 && !block && useful(argument) {
            stop += 1;
            again |= stop == 1 && matches!(argument.kind, Kind::Reference(_) | Kind::Path | Kind::Type);
            text += &format!(" {}", format_placeholder(argument, stop));
        }
    }
    for property in node.properties.iter().filter(|property| property.required) {
        stop += 1;
        let argument = Argument { name: "value", kind: property.kind, required: true, default: property.default };
        text += &format!(" {}={}", property.name, format_placeholder(&argument, stop));
    }
    if let (0, Some(rest)) = (stop, node.rest) {
        text += " ";
        match rest.kind {
            Kind::Glob => text += "\"$1\"",
            Kind::Choice(_) => text += &format_placeholder(&rest, 1),
            _ => text += "$0",
        }
        again = matches!(rest.kind, Kind::Glob | Kind::Variable | Kind::Text);
    } else if block {
        text += " {\n    $0\n}";
    } else if stop == 0 && !node.properties.is_empty() {
        text += " $0";
        again = true;
    }
    (text, again)
}

/// Whether it is nothing without its block.
fn has_block(node: &Node) -> bool {
    let told = node.arguments.iter().any(|argument| matches!(argument.kind, Kind::Template));
    let children = node.children.iter().any(|child| child.name != "description");
    let fields = node.open_children.is_some()
        && (node.arguments.first().is_none_or(|first| matches!(first.kind, Kind::TypeName)) && !told);
    children && !told || fields
}

/// A place to fill in, with what it could be.
pub(super) fn format_placeholder(argument: &Argument, stop: usize) -> String {
    let lower = || argument.name.to_lowercase();
    let or = |example: &str| argument.default.unwrap_or(example).to_owned();
    match argument.kind {
        Kind::Choice(words) => {
            let mut list: Vec<&str> = words.iter().map(|word| word.word).collect();
            // An editor writes the first of the choices.
            list.sort_by_key(|word| Some(*word) != argument.default);
            format!("${{{stop}|{}|}}", list.join(","))
        }
        Kind::Bool => format!("${{{stop}|#true,#false|}}"),
        Kind::TypeName => format!("${{{stop}:Name}}"),
        Kind::Name => format!("${{{stop}:{}}}", or(&lower())),
        Kind::Reference(_) | Kind::Scalar | Kind::Pool => format!("${{{stop}}}"),
        Kind::Count(least, _) => format!("${{{stop}:{}}}", or(&least.max(1).to_string())),
        Kind::Number | Kind::Ratio(..) => format!("${{{stop}:{}}}", or("1")),
        Kind::Type => format!("${{{stop}:{}}}", or("string")),
        Kind::Variable => format!("${{{stop}:VARIABLE}}"),
        Kind::Duration => format!("\"${{{stop}:{}}}\"", or("10m")),
        Kind::Size => format!("\"${{{stop}:{}}}\"", or("100KB")),
        // A `$` begins a place to fill in, unless it is escaped.
        Kind::Money => format!("\"${{{stop}:{}}}\"", or("\\$5")),
        Kind::Lines => format!("\"${{{stop}:1-40}}\""),
        Kind::Text | Kind::Template | Kind::Expression | Kind::Literal | Kind::Path | Kind::Glob => {
            format!("\"${stop}\"")
        }
    }
}
