//! Arguments and properties: what the language says may stand there.

use std::ops::Range;

use swarmc_compiler::index::{ShapeKind, SymbolKind};
use swarmc_compiler::schema::{Argument, Kind, TYPES, Word};
use swarmc_compiler::syntax::{self, ValueKind};

use super::super::cursor::{CursorContext, Entry, Written};
use super::{Ask, Item, ItemKind, codes, file, name, node, scope};

const DURATIONS: &[&str] = &["10s", "30s", "1m", "5m", "10m", "30m", "1h", "24h"];
const SIZES: &[&str] = &["10KB", "100KB", "1MB", "10MB"];
const AMOUNTS: &[&str] = &["$1", "$5", "$20"];

/// Whether a value is a path.
pub(super) fn is_path(kind: Option<Kind>) -> bool {
    matches!(kind, Some(Kind::Path | Kind::Glob))
}

/// Where the word begins that a value of a kind replaces: after the last `/` of a path in quotes, the last `<` of a type.
pub(super) fn start(kind: Kind, text: &str, range: &Range<usize>, offset: usize, quote: Option<&str>) -> usize {
    let before = &text[range.start..offset];
    let signs: &[char] = match kind {
        Kind::Path | Kind::Glob if quote.is_some() => &['/'],
        Kind::Type => &['<', ' '],
        _ => return range.start,
    };
    before.rfind(signs).map_or(range.start, |at| range.start + at + 1)
}

/// The values that could stand at an entry.
pub(super) fn values(ask: &Ask<'_>, spot: &CursorContext<'_>, entry: &Entry<'_>) -> Vec<Item> {
    if entry.is_arrow() {
        let arrow = |arrow: &'static str, doc: &'static str| {
            Item::new(arrow, ItemKind::Word).text(format!("{arrow} ")).doc(doc).again()
        };
        return vec![arrow("->", "One way: from the first to the second."), arrow("<->", "Both ways.")];
    }
    let Some(kind) = entry.kind() else { return Vec::new() };
    let default = match entry.key {
        Some(key) => entry.node.known.and_then(|known| known.property(key)).and_then(|property| property.default),
        None => entry.argument().and_then(|argument| argument.default),
    };
    let written = |item: Item| quoted(ask, entry, item);
    let examples = |list: &[&str]| {
        let fallback = default.filter(|default| !list.contains(default));
        let all = fallback.into_iter().chain(list.iter().copied());
        all.map(|example| {
            let item = Item::new(example, ItemKind::Value);
            written(if Some(example) == default { item.detail("default") } else { item })
        })
        .collect()
    };
    match kind {
        Kind::Choice(words) => words.iter().map(|word| written(choice(word, default))).collect(),
        Kind::Bool if entry.quote.is_none() => ["#true", "#false"]
            .into_iter()
            .map(|word| {
                let item = Item::new(word, ItemKind::Word);
                if Some(word) == default { item.detail("default") } else { item }
            })
            .collect(),
        Kind::Duration => examples(DURATIONS),
        Kind::Size => examples(SIZES),
        Kind::Money => examples(AMOUNTS),
        Kind::Lines => examples(&["1-40"]),
        Kind::Count(..) | Kind::Number | Kind::Ratio(..) => examples(&[]),
        Kind::Reference(target) => name::names(ask, spot, Some(entry), target).into_iter().map(written).collect(),
        Kind::Path => file::paths(ask, entry),
        Kind::Glob => file::globs(ask, entry),
        Kind::Type => types(ask, spot),
        Kind::Variable => variables(ask, spot, entry).into_iter().map(written).collect(),
        Kind::Text if ["allow", "deny", "warn"].into_iter().any(|name| entry.node.is(name)) && entry.key.is_none() => {
            codes().map(written).collect()
        }
        Kind::Text if entry.key.is_none() && (entry.node.is("tools") || entry.node.is("tool")) => {
            tools(ask, spot).into_iter().map(written).collect()
        }
        Kind::Literal if entry.key == Some("default") && entry.node.is("param") => of_type(ask, spot, entry)
            .into_iter()
            .map(|item| if item.label.starts_with('#') { item } else { written(item) })
            .collect(),
        Kind::Scalar if entry.key == Some("model") => models(ask).into_iter().map(written).collect(),
        Kind::Name if matches!(entry.node.name, "session" | "worktree") && spot.around.iter().any(Written::is_step) => {
            shared_names(ask, entry.node.name).into_iter().map(written).collect()
        }
        _ => Vec::new(),
    }
}

fn choice(word: &Word, default: Option<&str>) -> Item {
    let item = Item::new(word.word, ItemKind::Word).doc(word.doc);
    if Some(word.word) == default { item.detail("default") } else { item }
}

/// The item with the quotes that its value needs where it stands.
pub(super) fn quoted(ask: &Ask<'_>, entry: &Entry<'_>, mut item: Item) -> Item {
    let Some(quote) = entry.quote else {
        if !is_bare(&item.text) {
            item.text = format!("\"{}\"", item.text);
        }
        return item;
    };
    let closing: String = quote.chars().rev().filter(|sign| *sign != 'r').collect();
    if quote.len() == 1 && !ask.text()[entry.range.end..].starts_with(&closing) {
        item.text.push('"');
    }
    item
}

/// Whether a value may stand without quotes.
fn is_bare(text: &str) -> bool {
    let keyword = matches!(text, "true" | "false" | "null" | "inf" | "-inf" | "nan");
    let word = |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_' | '.');
    let number = text.parse::<f64>().is_ok();
    !keyword
        && !text.is_empty()
        && text.chars().all(word)
        && (number || !text.starts_with(|first: char| first.is_ascii_digit() || first == '.'))
}

/// The types, built in and declared.
fn types(ask: &Ask<'_>, spot: &CursorContext<'_>) -> Vec<Item> {
    let in_param = spot.around.is_empty();
    let mut items = name::of_kind(ask, spot, SymbolKind::Type);
    for word in TYPES.iter().filter(|word| in_param || !matches!(word.word, "file" | "dir")) {
        let item = Item::new(word.word, ItemKind::Word).detail("type").doc(word.doc);
        items.push(match word.word {
            "list" | "map" => {
                item.text(format!("{}<string>", word.word)).snippet(format!("{}<${{1:string}}>", word.word))
            }
            "enum" => item.text("enum "),
            _ => item,
        });
    }
    items
}

/// The secrets, and for a secret the variable that it is likely to be in.
fn variables(ask: &Ask<'_>, spot: &CursorContext<'_>, entry: &Entry<'_>) -> Vec<Item> {
    if entry.node.is("secret") {
        let name = entry.node.called().unwrap_or_default().to_uppercase().replace('-', "_");
        let known = !name.is_empty();
        return known.then(|| Item::new(name, ItemKind::Variable)).into_iter().collect();
    }
    let given = |item: &Item| !entry.node.arguments.contains(&item.label.as_str());
    name::of_kind(ask, spot, SymbolKind::Secret).into_iter().filter(given).collect()
}

/// The values of the type that a parameter has, where these can be counted.
fn of_type(ask: &Ask<'_>, spot: &CursorContext<'_>, entry: &Entry<'_>) -> Vec<Item> {
    let written = entry.node.property("type").unwrap_or_default().trim_end_matches('?');
    let bools = || ["#true", "#false"].map(|word| Item::new(word, ItemKind::Word)).to_vec();
    if written == "bool" {
        return if entry.quote.is_none() { bools() } else { Vec::new() };
    }
    if let Some(words) = written.strip_prefix("enum ") {
        return words.split_whitespace().map(|word| Item::new(word, ItemKind::Word).detail(written)).collect();
    }
    let scopes = scope::of_spot(ask.snapshot, ask.path, spot);
    let Some(scope) = scopes.first() else { return Vec::new() };
    let index = &scope.analysis.index;
    let shape = name::find(scope, SymbolKind::Type, written).and_then(|found| index.symbol(found).shape);
    match shape.map(|shape| &index.shape(shape).kind) {
        Some(ShapeKind::Words(words)) => {
            words.iter().map(|word| Item::new(word, ItemKind::Word).detail(written)).collect()
        }
        _ => Vec::new(),
    }
}

/// What the spec says in other places of a kind: models, tools, sessions; each once.
fn said<'t>(ask: &'t Ask<'_>, wanted: impl Fn(&'t syntax::Node, &'t syntax::Entry) -> bool) -> Vec<&'t str> {
    let offset = u32::try_from(ask.offset).unwrap_or(u32::MAX);
    let mut found: Vec<&str> = Vec::new();
    let mut open: Vec<&syntax::Node> = ask.document.tree().map_or(Vec::new(), |tree| tree.nodes.iter().collect());
    while let Some(node) = open.pop() {
        open.extend(node.children());
        for entry in node.entries.iter().filter(|entry| wanted(node, entry) && !entry.span.touches(offset)) {
            if let ValueKind::String(text) = &entry.value.kind {
                found.push(text.as_str());
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The models that the spec names.
fn models(ask: &Ask<'_>) -> Vec<Item> {
    let is_model =
        |_: &syntax::Node, entry: &syntax::Entry| entry.name.as_ref().is_some_and(|key| &*key.text == "model");
    said(ask, is_model).into_iter().map(|model| Item::new(model, ItemKind::Value).detail("model")).collect()
}

/// The servers of tools, then the tools that the spec names.
fn tools(ask: &Ask<'_>, spot: &CursorContext<'_>) -> Vec<Item> {
    let mut items = name::of_kind(ask, spot, SymbolKind::ToolServer);
    let is_tool = |node: &syntax::Node, entry: &syntax::Entry| {
        entry.name.is_none() && matches!(&*node.name.text, "tools" | "tool") && !APPROVALS.contains(&said_by(entry))
    };
    for tool in said(ask, is_tool) {
        if !items.iter().any(|item| item.label == tool) {
            items.push(Item::new(tool, ItemKind::Value).detail("tool"));
        }
    }
    items
}

/// What stands after the name of a tool in a policy.
const APPROVALS: &[&str] = &["auto", "human", "coordinator"];

fn said_by(entry: &syntax::Entry) -> &str {
    match &entry.value.kind {
        ValueKind::String(text) => text.as_str(),
        _ => "",
    }
}

/// The names of the same kind that other tasks say: one conversation or one worktree belongs to all that name it.
fn shared_names(ask: &Ask<'_>, node: &str) -> Vec<Item> {
    let same = |other: &syntax::Node, entry: &syntax::Entry| &*other.name.text == node && entry.name.is_none();
    said(ask, same).into_iter().map(|name| Item::new(name, ItemKind::Value).detail(node)).collect()
}

/// The properties that a node may have besides those that it has.
pub(super) fn properties(ask: &Ask<'_>, spot: &CursorContext<'_>, entry: &Entry<'_>) -> Vec<Item> {
    let Some(known) = entry.node.known else { return Vec::new() };
    let has = |name: &str| entry.node.property(name).is_some();
    let mut items = Vec::new();
    for property in known.properties.iter().filter(|property| !has(property.name)) {
        let mut detail = property.kind.noun();
        if let Some(default) = property.default {
            detail += &format!(", `{default}` when left out");
        }
        items.push(key(property.name, property.kind, property.default, entry.is_key).detail(detail).doc(property.doc));
    }
    if known.name == "call" || known.name == "param" && known.open_properties.is_some() {
        for param in callee(ask, spot, entry).into_iter().filter(|param| !has(&param.label)) {
            let made = key(&param.label, Kind::Template, None, entry.is_key);
            items.push(Item { kind: param.kind, detail: param.detail, doc: param.doc, ..made });
        }
    }
    items
}

/// A key with a place for its value.
fn key(name: &str, kind: Kind, default: Option<&'static str>, is_key: bool) -> Item {
    let item = Item::new(name, ItemKind::Property);
    if is_key {
        return item;
    }
    let value = node::placeholder(&Argument { name: "value", kind, required: true, default }, 1);
    let item = item.text(format!("{name}=")).snippet(format!("{name}={value}"));
    match kind {
        Kind::Reference(_) | Kind::Path | Kind::Scalar | Kind::Type | Kind::Variable => item.again(),
        _ => item,
    }
}

/// The parameters of the pipeline that is called or tested.
fn callee(ask: &Ask<'_>, spot: &CursorContext<'_>, entry: &Entry<'_>) -> Vec<Item> {
    let scopes = scope::of_spot(ask.snapshot, ask.path, spot);
    let Some(scope) = scopes.first() else { return Vec::new() };
    let index = &scope.analysis.index;
    let of_test = entry.node.is("param");
    let pipeline = match of_test {
        true => None,
        false => entry.node.called().and_then(|name| name::find(scope, SymbolKind::Pipeline, name)),
    };
    let own = |symbol: &swarmc_compiler::index::Symbol| match pipeline {
        Some(pipeline) => symbol.within == Some(pipeline),
        None => of_test,
    };
    let params = index.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Param && own(symbol));
    params.map(|symbol| name::item(index, symbol, symbol.name.clone())).collect()
}
