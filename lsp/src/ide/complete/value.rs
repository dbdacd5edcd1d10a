//! Arguments and properties: what the language says may stand there.

use std::ops::Range;

use swarmc_compiler::index::{ShapeKind, SymbolKind};
use swarmc_compiler::schema::{Argument, Kind, TYPES, Word};
use swarmc_compiler::syntax::{self, ValueKind};
use swarmc_compiler::{BUILT_IN_TOOLS, DEFAULT_POOL, PROGRAM_TOOLS, ProviderKind};

use super::super::cursor::{CursorContext, Entry, Written};
use super::{Ask, Item, ItemKind, file, list_codes, name, node, scope};

const DURATIONS: &[&str] = &["10s", "30s", "1m", "5m", "10m", "30m", "1h", "24h"];
const SIZES: &[&str] = &["10KB", "100KB", "1MB", "10MB"];
const AMOUNTS: &[&str] = &["$1", "$5", "$20"];

/// Whether a value is a path.
pub(super) fn is_path(kind: Option<Kind>) -> bool {
    matches!(kind, Some(Kind::Path | Kind::Glob))
}

/// Where the word begins that a value of a kind replaces: after the last `/` of a path in quotes, the last `<` of a type.
pub(super) fn find_word_start(
    kind: Kind,
    text: &str,
    range: &Range<usize>,
    offset: usize,
    quote: Option<&str>,
) -> usize {
    let before = &text[range.start..offset];
    let signs: &[char] = match kind {
        Kind::Path | Kind::Glob if quote.is_some() => &['/'],
        Kind::Type => &['<', ' '],
        _ => return range.start,
    };
    before.rfind(signs).map_or(range.start, |at| range.start + at + 1)
}

/// The values that could stand at an entry.
pub(super) fn list_values(ask: &Ask<'_>, spot: &CursorContext<'_>, entry: &Entry<'_>) -> Vec<Item> {
    if entry.is_arrow() {
        let arrow = |arrow: &'static str, doc: &'static str| {
            Item::new(arrow, ItemKind::Word).text(format!("{arrow} ")).doc(doc).suggest_next()
        };
        return vec![arrow("->", "One way: from the first to the second."), arrow("<->", "Both ways.")];
    }
    let Some(kind) = entry.kind() else { return Vec::new() };
    let default = match entry.key {
        Some(key) => entry.node.known.and_then(|known| known.find_property(key)).and_then(|property| property.default),
        None => entry.argument().and_then(|argument| argument.default),
    };
    let written = |item: Item| quote_value(ask, entry, item);
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
        Kind::Choice(words) => words.iter().map(|word| written(choice_item(word, default))).collect(),
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
        Kind::Reference(target) => name::list_names(ask, spot, Some(entry), target).into_iter().map(written).collect(),
        Kind::Path => file::list_paths(ask, entry),
        Kind::Glob => file::list_globs(ask, entry),
        Kind::Type => list_types(ask, spot),
        Kind::Variable => list_variables(ask, spot, entry).into_iter().map(written).collect(),
        Kind::Pool => list_pools(ask).into_iter().map(written).collect(),
        Kind::Text
            if ["allow", "deny", "warn"].into_iter().any(|name| entry.node.is_named(name)) && entry.key.is_none() =>
        {
            list_codes().map(written).collect()
        }
        Kind::Text if entry.key.is_none() && (entry.node.is_named("tools") || entry.node.is_named("tool")) => {
            list_tools(ask, spot, entry).into_iter().map(written).collect()
        }
        Kind::Literal if entry.key == Some("default") && entry.node.is_named("param") => of_type(ask, spot, entry)
            .into_iter()
            .map(|item| if item.label.starts_with('#') { item } else { written(item) })
            .collect(),
        Kind::Scalar if entry.key == Some("model") => list_models(ask).into_iter().map(written).collect(),
        Kind::Name if matches!(entry.node.name, "session" | "worktree") && spot.around.iter().any(Written::is_step) => {
            shared_names(ask, entry.node.name).into_iter().map(written).collect()
        }
        Kind::Name if spot.around.iter().any(|around| around.is_named("expect")) => {
            let wanted = match (entry.key, entry.node.name) {
                (Some("owner" | "to"), _) => SymbolKind::Member,
                (None, "item") => SymbolKind::Item,
                (None, "worktree") => SymbolKind::Worktree,
                _ => return Vec::new(),
            };
            name::list_declared(ask, spot, wanted).into_iter().map(written).collect()
        }
        _ => Vec::new(),
    }
}

fn choice_item(word: &Word, default: Option<&str>) -> Item {
    let item = Item::new(word.word, ItemKind::Word).doc(word.doc);
    if Some(word.word) == default { item.detail("default") } else { item }
}

/// The item with the quotes that its value needs where it stands.
pub(super) fn quote_value(ask: &Ask<'_>, entry: &Entry<'_>, mut item: Item) -> Item {
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
    // KDL 2 takes these words without `#` for a mistake.
    let keyword = matches!(text, "true" | "false" | "null" | "inf" | "-inf" | "nan");
    let word = |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_' | '.');
    let number = text.parse::<f64>().is_ok();
    !keyword
        && !text.is_empty()
        && text.chars().all(word)
        && (number || !text.starts_with(|first: char| first.is_ascii_digit() || first == '.'))
}

/// The types, built in and declared.
fn list_types(ask: &Ask<'_>, spot: &CursorContext<'_>) -> Vec<Item> {
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
fn list_variables(ask: &Ask<'_>, spot: &CursorContext<'_>, entry: &Entry<'_>) -> Vec<Item> {
    if entry.node.is_named("secret") {
        let name = entry.node.declared_name().unwrap_or_default().to_uppercase().replace('-', "_");
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
    let shape = name::find_symbol(scope, SymbolKind::Type, written).and_then(|found| index.symbol(found).shape);
    match shape.map(|shape| &index.shape(shape).kind) {
        Some(ShapeKind::Words(words)) => {
            words.iter().map(|word| Item::new(word, ItemKind::Word).detail(written)).collect()
        }
        _ => Vec::new(),
    }
}

/// What the spec says in other places of a kind: models, tools, sessions; each once.
fn collect_texts<'t>(ask: &'t Ask<'_>, wanted: impl Fn(&'t syntax::Node, &'t syntax::Entry) -> bool) -> Vec<&'t str> {
    let offset = u32::try_from(ask.offset).unwrap_or(u32::MAX);
    let mut found: Vec<&str> = Vec::new();
    let mut open: Vec<&syntax::Node> = ask.document.tree().map_or(Vec::new(), |tree| tree.nodes.iter().collect());
    while let Some(node) = open.pop() {
        open.extend(node.children());
        // The word under the cursor is no example for itself.
        for entry in node.entries.iter().filter(|entry| wanted(node, entry) && !entry.span.touches_offset(offset)) {
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
fn list_models(ask: &Ask<'_>) -> Vec<Item> {
    let is_model =
        |_: &syntax::Node, entry: &syntax::Entry| entry.name.as_ref().is_some_and(|key| &*key.text == "model");
    collect_texts(ask, is_model).into_iter().map(|model| Item::new(model, ItemKind::Value).detail("model")).collect()
}

/// The pools that the spec names, and the one of what names none.
fn list_pools(ask: &Ask<'_>) -> Vec<Item> {
    let is_pool = |node: &syntax::Node, entry: &syntax::Entry| match &entry.name {
        Some(key) => &*key.text == "pool",
        None => &*node.name.text == "pool",
    };
    let named = collect_texts(ask, is_pool).into_iter().filter(|name| *name != DEFAULT_POOL);
    let item = |name: &str| Item::new(name, ItemKind::Value).detail("pool");
    named.chain([DEFAULT_POOL]).map(item).collect()
}

/// The servers of tools, then the tools that the spec names, those that come with the runner and those of programs.
fn list_tools(ask: &Ask<'_>, spot: &CursorContext<'_>, entry: &Entry<'_>) -> Vec<Item> {
    let mut items = name::of_kind(ask, spot, SymbolKind::ToolServer);
    let is_tool = |node: &syntax::Node, entry: &syntax::Entry| {
        entry.name.is_none() && matches!(&*node.name.text, "tools" | "tool") && !APPROVALS.contains(&said_by(entry))
    };
    let built_in =
        BUILT_IN_TOOLS.iter().map(|tool| Item::new(tool.name, ItemKind::Value).detail("built-in tool").doc(tool.does));
    // A model has no tools of its own.
    let agent = spot.around.iter().rev().find(|node| node.is_named("agent"));
    let provider = agent.and_then(|agent| agent.property("provider"));
    let is_model = provider.and_then(|name| find_provider_kind(ask, name)).is_some_and(ProviderKind::is_model);
    let programs = PROGRAM_TOOLS.iter().filter(|_| !is_model);
    let more = collect_texts(ask, is_tool)
        .into_iter()
        .map(|tool| Item::new(tool, ItemKind::Value).detail("tool"))
        .filter(|item| BUILT_IN_TOOLS.iter().all(|tool| tool.name != item.label))
        .chain(built_in)
        .chain(programs.map(|tool| Item::new(*tool, ItemKind::Value).detail("tool of a program")));
    for item in more {
        if items.iter().all(|known| known.label != item.label) {
            items.push(item);
        }
    }
    items.retain(|item| !entry.node.arguments.contains(&item.label.as_str()));
    items
}

/// What the provider of this name starts or calls, where the file declares it.
fn find_provider_kind(ask: &Ask<'_>, name: &str) -> Option<ProviderKind> {
    let declares =
        |node: &&syntax::Node| &*node.name.text == "provider" && node.entries.first().map(said_by) == Some(name);
    let provider = ask.document.tree()?.nodes.iter().find(declares)?;
    ProviderKind::all().find(|kind| provider.children().iter().any(|child| &*child.name.text == kind.name()))
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
    collect_texts(ask, same).into_iter().map(|name| Item::new(name, ItemKind::Value).detail(node)).collect()
}

/// The properties that a node may have besides those that it has.
pub(super) fn list_properties(ask: &Ask<'_>, spot: &CursorContext<'_>, entry: &Entry<'_>) -> Vec<Item> {
    let Some(known) = entry.node.known else { return Vec::new() };
    let has = |name: &str| entry.node.property(name).is_some();
    let mut items = Vec::new();
    for property in known.properties.iter().filter(|property| !has(property.name)) {
        let mut detail = property.kind.describe();
        if let Some(default) = property.default {
            detail += &format!(", `{default}` when left out");
        }
        items.push(
            key_item(property.name, property.kind, property.default, entry.is_key).detail(detail).doc(property.doc),
        );
    }
    if known.name == "call" || known.name == "param" && known.open_properties.is_some() {
        for param in list_callee_params(ask, spot, entry).into_iter().filter(|param| !has(&param.label)) {
            let made = key_item(&param.label, Kind::Template, None, entry.is_key);
            items.push(Item { kind: param.kind, detail: param.detail, doc: param.doc, ..made });
        }
    }
    items
}

/// A key with a place for its value.
fn key_item(name: &str, kind: Kind, default: Option<&'static str>, is_key: bool) -> Item {
    let item = Item::new(name, ItemKind::Property);
    if is_key {
        return item;
    }
    let value = node::format_placeholder(&Argument { name: "value", kind, required: true, default }, 1);
    let item = item.text(format!("{name}=")).snippet(format!("{name}={value}"));
    match kind {
        Kind::Reference(_) | Kind::Path | Kind::Scalar | Kind::Type | Kind::Variable | Kind::Pool => {
            item.suggest_next()
        }
        _ => item,
    }
}

/// The parameters of the pipeline that is called or tested.
fn list_callee_params(ask: &Ask<'_>, spot: &CursorContext<'_>, entry: &Entry<'_>) -> Vec<Item> {
    let scopes = scope::of_spot(ask.snapshot, ask.path, spot);
    let Some(scope) = scopes.first() else { return Vec::new() };
    let index = &scope.analysis.index;
    let of_test = entry.node.is_named("param");
    let pipeline = match of_test {
        true => None,
        false => entry.node.declared_name().and_then(|name| name::find_symbol(scope, SymbolKind::Pipeline, name)),
    };
    let own = |symbol: &swarmc_compiler::index::Symbol| match pipeline {
        Some(pipeline) => symbol.within == Some(pipeline),
        None => of_test,
    };
    let params = index.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Param && own(symbol));
    params.map(|symbol| name::symbol_item(index, symbol, symbol.name.clone())).collect()
}
