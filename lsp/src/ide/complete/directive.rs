//! Completes inside `<<…`: the words that the text can use, then names, fields and filters.

use swarmc_compiler::index::{Index, ShapeId, SymbolKind};
use swarmc_compiler::interpolation;

use super::super::Edit;
use super::super::hole::{Directive, Part};
use super::scope::Scope;
use super::steps::{Candidate, list_candidates};
use super::{Ask, Completion, Item, ItemKind, file, name};

pub(super) fn complete_directive(
    ask: &Ask<'_>,
    scopes: &[Scope],
    hole: &Directive<'_>,
    quote: Option<&str>,
) -> Completion {
    let items = match hole.part {
        Part::Word => list_words(scopes, hole),
        Part::Name => list_names(ask, scopes, hole),
        Part::Field => list_fields(scopes, hole),
        Part::Filter => list_filters(hole, quote),
        Part::Argument => list_arguments(hole),
    };
    Completion { range: hole.range.clone(), items, incomplete: false }
}

/// The words that the owners of the text can use.
fn list_words(scopes: &[Scope], hole: &Directive<'_>) -> Vec<Item> {
    let usable = |word: &str| scopes.iter().any(|scope| is_usable(scope, word));
    let item = |term: interpolation::Term| {
        let item = Item::new(term.word, ItemKind::Word).detail(term.usage.clone()).doc(term.doc);
        if hole.followed {
            return item;
        }
        if !term.usage.contains(':') {
            return item.text(format!("{}{}", term.word, hole.missing));
        }
        let snippet = format!("{}:$0{}", term.word, hole.missing);
        item.text(format!("{}:", term.word)).snippet(snippet).suggest_next()
    };
    interpolation::directive_terms().filter(|term| usable(term.word)).map(item).collect()
}

pub(super) fn is_usable(scope: &Scope, word: &str) -> bool {
    let index = &scope.analysis.index;
    scope.readers.iter().any(|reader| {
        let step = reader.step.map(|step| &index.steps[step]);
        let owner = reader.owner.map(|owner| index.symbol(owner).kind);
        let turns = matches!(owner, Some(SymbolKind::Member | SymbolKind::Agent));
        match word {
            "output" | "status" | "exit" | "error" | "iteration" => reader.pipeline.is_some(),
            "previous" => step.is_some_and(|step| step.rounds || step.within.is_some()),
            "input" => step.is_some_and(|step| !step.ports.is_empty()),
            "item" | "index" => reader.body && step.is_some_and(|step| step.item.is_some()),
            "param" => !list_params(scope).is_empty(),
            "context" => index.symbols.iter().any(|symbol| symbol.kind == SymbolKind::Pack),
            "inbox" => turns || step.is_some_and(|step| step.receives),
            "shared" | "team" | "plan" => turns,
            "task" => step.is_some() || turns,
            _ => true,
        }
    })
}

/// The parameters that a text can read: those of its pipeline, then the workflow's.
pub(super) fn list_params(scope: &Scope) -> Vec<Item> {
    let index = &scope.analysis.index;
    let mut items: Vec<Item> = Vec::new();
    for pipeline in scope.readers.iter().filter_map(|reader| reader.pipeline) {
        let own =
            index.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Param && symbol.within == Some(pipeline));
        items.extend(own.map(|symbol| name::symbol_item(index, symbol, symbol.name.clone())));
    }
    items.extend(name::list_visible(scope, SymbolKind::Param));
    each_once(items)
}

fn each_once(mut items: Vec<Item>) -> Vec<Item> {
    let mut seen = std::collections::BTreeSet::new();
    items.retain(|item| seen.insert(item.label.clone()));
    items
}

fn list_names(ask: &Ask<'_>, scopes: &[Scope], hole: &Directive<'_>) -> Vec<Item> {
    let closed = |item: Item| Item { text: format!("{}{}", item.text, hole.missing), ..item };
    match hole.word {
        "output" | "previous" | "status" | "exit" | "error" => {
            list_candidates(scopes, hole.word).iter().map(|candidate| step_item(candidate, hole)).collect()
        }
        "input" => each_once(scopes.iter().flat_map(list_ports).collect()).into_iter().map(closed).collect(),
        "param" => each_once(scopes.iter().flat_map(list_params).collect()).into_iter().map(closed).collect(),
        "context" => {
            let packs = scopes.iter().flat_map(|scope| name::list_visible(scope, SymbolKind::Pack));
            each_once(packs.collect()).into_iter().map(closed).collect()
        }
        "run" => {
            let property = |(word, doc)| closed(Item::new(word, ItemKind::Word).detail("string").doc(doc));
            [("id", "The id of this run."), ("dir", "The folder of this run.")].map(property).into()
        }
        "task" => vec![closed(Item::new("name", ItemKind::Word).detail("string").doc("The name of this task."))],
        "include" | "file" => {
            let path = |item: Item| if item.kind == ItemKind::Folder { item } else { closed(item) };
            let wanted = |item: &Item| hole.word == "file" || !item.label.ends_with(".kdl");
            let found = file::in_directive(ask, hole.name).into_iter().filter(wanted);
            found.map(path).map(|item| prepend_folder(item, hole)).collect()
        }
        _ => Vec::new(),
    }
}

/// A path takes the place of all of it: what stands before its last `/` stays.
fn prepend_folder(item: Item, hole: &Directive<'_>) -> Item {
    match hole.name.rfind('/') {
        Some(slash) => Item {
            text: format!("{}{}", &hole.name[..=slash], item.text),
            label: format!("{}{}", &hole.name[..=slash], item.label),
            ..item
        },
        None => item,
    }
}

/// A step as it is completed; one that runs later is read from the round before.
fn step_item(candidate: &Candidate<'_>, hole: &Directive<'_>) -> Item {
    let mut item = candidate.item(hole.word);
    let has_fields =
        matches!(hole.word, "output" | "previous") && !candidate.index.shape_fields(candidate.shape()).is_empty();
    if has_fields && !hole.missing.is_empty() {
        item.snippet = Some(format!("{}$0{}", item.text, hole.missing));
    }
    item.text.push_str(hole.missing);
    if candidate.earlier && hole.word == "output" {
        item.edits.push(Edit { range: hole.at.clone(), text: "previous".to_owned() });
    }
    item
}

/// The ports of the steps that say the text.
pub(super) fn list_ports(scope: &Scope) -> Vec<Item> {
    let index = &scope.analysis.index;
    let steps = scope.readers.iter().filter_map(|reader| reader.step);
    let ports = steps.flat_map(|step| &index.steps[step].ports);
    let item = |(port, step): &(String, usize)| {
        let behind = &index.steps[*step];
        let detail = format!("{} · of `{}`", index.shape(behind.output).text, index.symbol(behind.symbol).name);
        Item::new(port, ItemKind::Name(SymbolKind::Port)).detail(detail)
    };
    ports.map(item).collect()
}

fn list_fields(scopes: &[Scope], hole: &Directive<'_>) -> Vec<Item> {
    let mut items = Vec::new();
    for (index, shape) in resolve_shapes(scopes, hole.word, hole.name) {
        let Some(shape) = resolve_fields(index, shape, &hole.fields) else { continue };
        items.extend(of_shape(index, shape));
    }
    if hole.fields.is_empty() {
        items.extend(scopes.iter().flat_map(|scope| list_qualified(scope, hole)));
    }
    let closed = |item: Item| Item { text: format!("{}{}", item.text, hole.missing), ..item };
    each_once(items).into_iter().map(closed).collect()
}

/// What is imported under the qualifier that stands where a name could.
fn list_qualified(scope: &Scope, hole: &Directive<'_>) -> Vec<Item> {
    let kind = match hole.word {
        "context" => SymbolKind::Pack,
        "param" => SymbolKind::Param,
        _ => return Vec::new(),
    };
    let behind = |item: Item| {
        let name = item.label.strip_prefix(hole.name)?.strip_prefix('.')?.to_owned();
        Some(Item { text: name.clone(), label: name, ..item })
    };
    name::list_visible(scope, kind).into_iter().filter_map(behind).collect()
}

/// The fields of a value as they are completed.
pub(super) fn of_shape(index: &Index, shape: ShapeId) -> Vec<Item> {
    let item = |field: &swarmc_compiler::index::SymbolId| {
        let symbol = index.symbol(*field);
        let detail = symbol.shape.map_or_else(String::new, |shape| index.shape(shape).text.clone());
        Item::new(&symbol.name, ItemKind::Field).detail(detail).doc_maybe(symbol.doc.as_ref())
    };
    index.shape_fields(shape).iter().map(item).collect()
}

/// What a field of a field of a value is.
pub(super) fn resolve_fields(index: &Index, shape: ShapeId, fields: &[&str]) -> Option<ShapeId> {
    fields.iter().try_fold(shape, |shape, field| {
        let found = index.shape_fields(shape).iter().find(|known| index.symbol(**known).name == *field)?;
        index.symbol(*found).shape
    })
}

/// What the value is that a word and a name mean to each who says the text.
pub(super) fn resolve_shapes<'s>(scopes: &'s [Scope], word: &str, name: &str) -> Vec<(&'s Index, ShapeId)> {
    let same = |one: &str| one.replace('_', "-") == name.replace('_', "-");
    let mut found = Vec::new();
    for scope in scopes {
        let index = &scope.analysis.index;
        for reader in &scope.readers {
            let step = reader.step.map(|step| &index.steps[step]);
            let shape = match word {
                "output" | "previous" => reader.pipeline.and_then(|pipeline| {
                    let named =
                        |(_, step): &(usize, &swarmc_compiler::index::Step)| same(&index.symbol(step.symbol).name);
                    index.steps_of(pipeline).find(named).map(|(_, step)| step.output)
                }),
                "input" => step
                    .and_then(|step| step.ports.iter().find(|(port, _)| same(port)))
                    .map(|(_, behind)| index.steps[*behind].output),
                "item" => step.and_then(|step| step.item),
                "param" => {
                    let param = |home: Option<_>| {
                        let fits = |symbol: &&swarmc_compiler::index::Symbol| {
                            symbol.kind == SymbolKind::Param && symbol.within == home && same(&symbol.name)
                        };
                        index.symbols.iter().find(fits).and_then(|symbol| symbol.shape)
                    };
                    reader.pipeline.and_then(|pipeline| param(Some(pipeline))).or_else(|| param(None))
                }
                _ => None,
            };
            let known = |shape| {
                found.iter().any(|(other, known): &(&Index, ShapeId)| std::ptr::eq(*other, index) && *known == shape)
            };
            if let Some(shape) = shape.filter(|shape| !known(*shape)) {
                found.push((index, shape));
            }
        }
    }
    found
}

fn list_filters(hole: &Directive<'_>, quote: Option<&str>) -> Vec<Item> {
    // In a string of the spec that is neither raw nor of several lines, quotes are escaped.
    let mark = if quote == Some("\"") { "\\\"" } else { "\"" };
    let item = |term: interpolation::Term| {
        let item = Item::new(term.word, ItemKind::Filter).detail(term.usage.clone()).doc(term.doc);
        let (plain, snippet) = match term.word {
            "tail" | "head" => (format!("{}:50", term.word), format!("{}:${{1:50}}", term.word)),
            "chars" => ("chars:1000".to_owned(), "chars:${1:1000}".to_owned()),
            "lines" => ("lines:1-40".to_owned(), "lines:${1:1}-${2:40}".to_owned()),
            "default" => {
                // A snippet has escapes of its own, for which the backslash is escaped.
                let escaped = mark.replace('\\', "\\\\");
                (format!("default:{mark}{mark}"), format!("default:{escaped}$1{escaped}"))
            }
            word => (word.to_owned(), word.to_owned()),
        };
        let item = if hole.followed { item } else { item.text(format!("{plain}{}", hole.missing)) };
        match hole.followed || plain == snippet {
            true => item,
            false => item.snippet(format!("{snippet}{}", hole.missing)),
        }
    };
    interpolation::directive_filters(hole.word).into_iter().map(item).collect()
}

fn list_arguments(hole: &Directive<'_>) -> Vec<Item> {
    let examples: &[&str] = match hole.fields.first().copied() {
        Some("tail" | "head") => &["10", "50", "200"],
        Some("chars") => &["500", "1000", "4000"],
        Some("lines") => &["1-40"],
        _ => &[],
    };
    examples
        .iter()
        .map(|example| Item::new(*example, ItemKind::Value).text(format!("{example}{}", hole.missing)))
        .collect()
}
