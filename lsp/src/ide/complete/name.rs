//! Names that are declared elsewhere, by what the language says that they lead to.

use swarmc_compiler::FileId;
use swarmc_compiler::index::{Index, Symbol, SymbolId, SymbolKind};
use swarmc_compiler::schema::Target;

use super::super::cursor::{CursorContext, Entry};
use super::scope::{Other, Relation, Scope};
use super::{Ask, Item, ItemKind, scope};

/// The names that a reference could be.
pub(super) fn list_names(
    ask: &Ask<'_>,
    spot: &CursorContext<'_>,
    entry: Option<&Entry<'_>>,
    target: Target,
) -> Vec<Item> {
    let scopes = scope::of_spot(ask.snapshot, ask.path, spot);
    let Some(scope) = scopes.first() else { return Vec::new() };
    let index = &scope.analysis.index;
    let top = |kind: SymbolKind| list_visible(scope, kind);
    let swarm = || {
        let swarm = spot.around.iter().find(|node| node.is_named("swarm")).and_then(|node| node.declared_name());
        swarm.and_then(|name| scope::find_top_level(index, SymbolKind::Swarm, name, scope.home))
    };
    let mut items = match target {
        Target::Agent => {
            let own = entry.filter(|entry| entry.node.is_named("agent")).and_then(|entry| entry.node.declared_name());
            let own =
                own.or(spot.around.last().filter(|node| node.is_named("agent")).and_then(|node| node.declared_name()));
            let agents = with_presets(top(SymbolKind::Agent), SymbolKind::Agent);
            agents.into_iter().filter(|item| Some(item.label.as_str()) != own).collect()
        }
        Target::Provider => with_presets(top(SymbolKind::Provider), SymbolKind::Provider),
        Target::Preset => list_presets(SymbolKind::Provider).collect(),
        Target::Tier => top(SymbolKind::Tier),
        Target::Prompt => top(SymbolKind::Prompt),
        Target::Pack => {
            let own =
                spot.around.iter().find(|node| node.is_named("context-pack")).and_then(|node| node.declared_name());
            top(SymbolKind::Pack).into_iter().filter(|item| Some(item.label.as_str()) != own).collect()
        }
        Target::Pipeline => top(SymbolKind::Pipeline),
        Target::Swarm => top(SymbolKind::Swarm),
        Target::Runnable => [top(SymbolKind::Pipeline), top(SymbolKind::Swarm)].concat(),
        Target::Shared => top(SymbolKind::Task),
        Target::Step => of_steps(scope, entry),
        Target::AnyStep => list_nested(index, |kind, _| kind.is_step()),
        Target::Maker => list_nested(index, |kind, _| kind.is_step() || kind == SymbolKind::Member),
        Target::Party => match (swarm(), scope.readers.first().and_then(|reader| reader.pipeline)) {
            (Some(swarm), _) => list_nested(index, |kind, home| kind == SymbolKind::Member && home == Some(swarm)),
            (None, Some(pipeline)) => {
                let tasks = index.steps_of(pipeline).map(|(_, step)| index.symbol(step.symbol));
                tasks
                    .filter(|task| task.kind == SymbolKind::Task)
                    .map(|task| symbol_item(index, task, task.name.clone()))
                    .collect()
            }
            (None, None) => Vec::new(),
        },
        Target::Member => {
            let swarm = swarm();
            list_nested(index, |kind, home| kind == SymbolKind::Member && home == swarm)
        }
        Target::Item => {
            let swarm = swarm();
            let own = spot.around.last().and_then(|node| node.declared_name());
            let items = list_nested(index, |kind, home| kind == SymbolKind::Item && home == swarm);
            items.into_iter().filter(|item| Some(item.label.as_str()) != own).collect()
        }
        Target::Option => list_options(scope, entry),
    };
    // What is named already is not named twice.
    if let Some(entry) =
        entry.filter(|entry| entry.key.is_none() && entry.node.known.is_some_and(|known| known.rest.is_some()))
    {
        items.retain(|item| !entry.node.arguments.contains(&item.label.as_str()));
    }
    items
}

/// Everything of one kind that a spec can name.
pub(super) fn of_kind(ask: &Ask<'_>, spot: &CursorContext<'_>, kind: SymbolKind) -> Vec<Item> {
    let scopes = scope::of_spot(ask.snapshot, ask.path, spot);
    scopes.first().map_or_else(Vec::new, |scope| list_visible(scope, kind))
}

/// What the swarms of a spec declare of this kind, each name once.
pub(super) fn list_declared(ask: &Ask<'_>, spot: &CursorContext<'_>, wanted: SymbolKind) -> Vec<Item> {
    let scopes = scope::of_spot(ask.snapshot, ask.path, spot);
    let Some(scope) = scopes.first() else { return Vec::new() };
    let mut items = list_nested(&scope.analysis.index, |kind, _| kind == wanted);
    let mut seen = std::collections::BTreeSet::new();
    items.retain(|item| seen.insert(item.label.clone()));
    items
}

/// What the top level of a spec, and of what it imports, declares.
pub(super) fn list_visible(scope: &Scope, kind: SymbolKind) -> Vec<Item> {
    let index = &scope.analysis.index;
    let mut items = Vec::new();
    for (qualifier, file) in list_files(scope) {
        let declared = index
            .symbols
            .iter()
            .filter(|symbol| symbol.kind == kind && symbol.within.is_none() && symbol.span.file == file);
        for symbol in declared {
            let name = match qualifier {
                Some(qualifier) => format!("{qualifier}.{}", symbol.name),
                None => symbol.name.clone(),
            };
            items.push(symbol_item(index, symbol, name));
        }
    }
    items
}

/// The symbol that a name means in a spec.
pub(super) fn find_symbol(scope: &Scope, kind: SymbolKind, name: &str) -> Option<SymbolId> {
    let index = &scope.analysis.index;
    list_files(scope).find_map(|(qualifier, file)| {
        let name = match qualifier {
            Some(qualifier) => name.strip_prefix(qualifier)?.strip_prefix('.')?,
            None => name,
        };
        scope::find_top_level(index, kind, name, file)
    })
}

/// The file itself and what it imports, each with what stands before its names.
fn list_files(scope: &Scope) -> impl Iterator<Item = (Option<&str>, FileId)> {
    let imports = scope.analysis.index.imports.iter().filter(|import| import.from == scope.home);
    std::iter::once((None, scope.home)).chain(imports.map(|import| (import.alias.as_deref(), import.file)))
}

/// A symbol as it is completed.
pub(super) fn symbol_item(index: &Index, symbol: &Symbol, name: String) -> Item {
    let detail = match symbol.shape {
        Some(shape) if symbol.kind != SymbolKind::Type => index.shape(shape).text.clone(),
        _ => symbol.kind.as_str().to_owned(),
    };
    Item::new(name, ItemKind::Name(symbol.kind)).detail(detail).doc_maybe(symbol.doc.as_ref())
}

/// Names that stand inside something, each once.
fn list_nested(index: &Index, wanted: impl Fn(SymbolKind, Option<SymbolId>) -> bool) -> Vec<Item> {
    let mut seen = std::collections::BTreeSet::new();
    let symbols = index.symbols.iter().filter(|symbol| wanted(symbol.kind, symbol.within));
    symbols
        .filter(|symbol| seen.insert(symbol.name.as_str()))
        .map(|symbol| symbol_item(index, symbol, symbol.name.clone()))
        .collect()
}

/// The steps of the pipeline: for one that would wait for it, without those that wait already.
fn of_steps(scope: &Scope, entry: Option<&Entry<'_>>) -> Vec<Item> {
    let index = &scope.analysis.index;
    let waits = !entry.is_some_and(|entry| entry.node.is_named("result"));
    let mut steps: Vec<(usize, Relation)> = Vec::new();
    for reader in &scope.readers {
        for Other { step, relation, .. } in scope::list_other_steps(index, reader) {
            if !steps.iter().any(|(known, _)| index.steps[*known].symbol == index.steps[step].symbol) {
                steps.push((step, relation));
            }
        }
    }
    if waits {
        steps.retain(|(_, relation)| *relation != Relation::After);
        steps.sort_by_key(|(_, relation)| *relation);
    }
    let item = |(step, _): (usize, Relation)| {
        let symbol = index.symbol(index.steps[step].symbol);
        let detail = format!("{} · {}", symbol.kind.as_str(), index.shape(index.steps[step].output).text);
        Item::new(&symbol.name, ItemKind::Name(symbol.kind)).detail(detail).doc_maybe(symbol.doc.as_ref())
    };
    steps.into_iter().map(item).collect()
}

/// The options of the gate around, or of the step that is named.
fn list_options(scope: &Scope, entry: Option<&Entry<'_>>) -> Vec<Item> {
    let index = &scope.analysis.index;
    let gate = scope.readers.iter().find_map(|reader| reader.step).map(|step| index.steps[step].symbol);
    let named = entry.filter(|entry| entry.key == Some("choice")).and_then(|entry| entry.node.declared_name());
    let of_gate = |home: Option<SymbolId>| match (named, home) {
        (Some(named), Some(home)) => index.symbol(home).name == named,
        (None, home) => home == gate && gate.is_some(),
        (Some(_), None) => false,
    };
    let mut items = list_nested(index, |kind, home| kind == SymbolKind::Option && of_gate(home));
    items.push(Item::new("fail", ItemKind::Word).doc("The step fails."));
    items
}

/// The fields that a gate asks for besides the choice.
pub(super) fn list_gate_fields(ask: &Ask<'_>, spot: &CursorContext<'_>, gate: &str) -> Vec<Item> {
    let scopes = scope::of_spot(ask.snapshot, ask.path, spot);
    let Some(scope) = scopes.first() else { return Vec::new() };
    let index = &scope.analysis.index;
    let named = |symbol: &&Symbol| symbol.kind == SymbolKind::Gate && symbol.name == gate;
    let shape = index.symbols.iter().find(named).and_then(|gate| gate.shape);
    let fields = shape.map_or_else(Vec::new, |shape| super::directive::of_shape(index, shape));
    fields.into_iter().filter(|field| field.label != "choice").collect()
}

/// What a spec declares, and behind it the presets of the library, which need no declaration.
fn with_presets(mut declared: Vec<Item>, kind: SymbolKind) -> Vec<Item> {
    let more: Vec<Item> =
        list_presets(kind).filter(|preset| declared.iter().all(|item| item.label != preset.label)).collect();
    declared.extend(more);
    declared
}

/// The presets of the library, as providers or as agents.
fn list_presets(kind: SymbolKind) -> impl Iterator<Item = Item> {
    let item = move |name: &&str| {
        let doc = describe_preset(name);
        Item::new((*name).to_owned(), ItemKind::Name(kind)).detail("preset").doc_maybe(doc.as_ref())
    };
    swarmc_compiler::preset_names().iter().map(item)
}

/// What the library says of a preset.
pub(in crate::ide) fn describe_preset(name: &str) -> Option<String> {
    let block = swarmc_compiler::find_preset(name)?;
    let line = block.lines().find_map(|line| line.trim().strip_prefix("description "))?;
    Some(line.trim_matches('"').to_owned())
}
