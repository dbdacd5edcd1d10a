//! Where names lead: definition, references, highlights and renaming, in specs and prompts alike.
//!
//! Specs that share a file each know its names; one thing is what is declared in one place.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use swarmc_compiler::index::{Occurrence, Role, Symbol, SymbolId, SymbolKind};
use swarmc_compiler::{Overlay, Settings, Severity, Span};

use super::{Analysis, Edit, Place, Snapshot, words};

/// Where something leads, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What stands at the cursor.
    pub origin: Range<usize>,
    /// The name that it leads to; of a file its beginning.
    pub name: Place,
    /// The whole node that declares it.
    pub whole: Place,
}

/// What renaming changes, by file.
pub type Rename = BTreeMap<String, Vec<Edit>>;

/// Where the name or path at an offset is declared.
pub fn find_definition(snapshot: &Snapshot, path: &str, offset: usize) -> Vec<Target> {
    let mut found = Vec::new();
    for analysis in snapshot.find_analyses(path) {
        for (place, symbol) in find_names(&analysis, path, offset) {
            let symbol = analysis.index.symbol(symbol);
            push(&mut found, make_target(&analysis, place, symbol));
        }
        let Some(file) = analysis.file(path) else { continue };
        let paths = analysis
            .index
            .paths
            .iter()
            .filter(|path| path.span.file == file && path.span.touches_offset(byte_offset(offset)));
        for path in paths {
            let start = Place { path: analysis.compilation.sources.name(path.file).to_owned(), range: 0..0 };
            push(&mut found, Target { origin: path.span.range(), name: start.clone(), whole: start });
        }
    }
    found
}

/// Where the type of what stands at an offset is declared.
pub fn type_definition(snapshot: &Snapshot, path: &str, offset: usize) -> Vec<Target> {
    let mut found = Vec::new();
    for analysis in snapshot.find_analyses(path) {
        for (place, symbol) in find_names(&analysis, path, offset) {
            let index = &analysis.index;
            let declared = index.symbol(symbol).shape.and_then(|shape| index.shape(shape).declared);
            if let Some(declared) = declared {
                push(&mut found, make_target(&analysis, place, index.symbol(declared)));
            }
        }
    }
    found
}

/// Every place where the name at an offset stands, by file and place.
pub fn find_references(snapshot: &Snapshot, path: &str, offset: usize, with_definition: bool) -> Vec<Place> {
    let wanted = |(_, role): &(Place, Role)| with_definition || *role != Role::Definition;
    find_occurrences(snapshot, &find_declared(snapshot, path, offset))
        .into_iter()
        .filter(wanted)
        .map(|(place, _)| place)
        .collect()
}

/// The places in the same file where the name at an offset stands, and whether each declares it.
pub fn highlight_name(snapshot: &Snapshot, path: &str, offset: usize) -> Vec<(Range<usize>, bool)> {
    let places = find_occurrences(snapshot, &find_declared(snapshot, path, offset)).into_iter();
    places
        .filter(|(place, _)| place.path == path)
        .map(|(place, role)| (place.range, role == Role::Definition))
        .collect()
}

/// The name at an offset, when it can be renamed.
///
/// # Errors
/// Says why it cannot.
pub fn prepare_rename(snapshot: &Snapshot, path: &str, offset: usize) -> Result<Range<usize>, String> {
    let about = snapshot.find_analyses(path);
    let found = about
        .iter()
        .flat_map(|analysis| find_names(analysis, path, offset).into_iter().map(move |found| (analysis, found)));
    let Some((analysis, (place, symbol))) = found.into_iter().next() else {
        return words::find_word(snapshot, path, offset).ok_or_else(|| "there is no name here".to_owned());
    };
    let symbol = analysis.index.symbol(symbol);
    let sources = &analysis.compilation.sources;
    if sources.name(symbol.span.file).starts_with("std:") {
        return Err(format!("`{}` is a name of the library", symbol.name));
    }
    match symbol.kind {
        SymbolKind::Option => Err("conditions name an option of a gate as text, too".to_owned()),
        _ => Ok(name_range(sources.slice(place.span), place.span)),
    }
}

/// What changes when the name at an offset becomes another. What is declared keeps its meaning: a name that is taken, or
/// that the language does not allow, is refused.
///
/// # Errors
/// Says why it cannot be called so.
pub fn rename_symbol(snapshot: &Snapshot, path: &str, offset: usize, to: &str) -> Result<Rename, String> {
    prepare_rename(snapshot, path, offset)?;
    let meant = find_declared(snapshot, path, offset);
    if meant.is_empty() {
        words::check_word(to)?;
        let edits = words::rename_word(snapshot, path, offset, to).unwrap_or_default();
        check_edits(snapshot, &edits, to)?;
        return Ok(edits);
    }
    for analysis in list_analyses(snapshot) {
        for (_, symbol) in list_symbols(&analysis, &meant) {
            check_name(symbol.kind, to)?;
        }
    }
    // Specs that share a file know the same places, and the set keeps one edit of each.
    let mut edits: BTreeMap<String, BTreeSet<Edit>> = BTreeMap::new();
    for (place, role) in find_occurrences(snapshot, &meant) {
        let text = match role {
            // In an expression, a `-` in a name would subtract.
            Role::Expression => to.replace('-', "_"),
            Role::Definition | Role::Reference | Role::Directive => to.to_owned(),
        };
        edits.entry(place.path).or_default().insert(Edit { range: place.range, text });
    }
    let edits: Rename = edits.into_iter().map(|(path, edits)| (path, edits.into_iter().collect())).collect();
    check_edits(snapshot, &edits, to)?;
    Ok(edits)
}

/// Whether something of this kind can be called so.
pub(super) fn check_name(kind: SymbolKind, name: &str) -> Result<(), String> {
    let mut signs = name.chars();
    let first = signs.next();
    let (fits, rule) = match kind {
        SymbolKind::Type => (
            first.is_some_and(|first| first.is_ascii_uppercase()) && signs.all(|sign| sign.is_ascii_alphanumeric()),
            "starts with a capital letter, and goes on with letters and digits",
        ),
        SymbolKind::Field => (
            first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
                && signs.all(|sign| sign.is_ascii_alphanumeric() || sign == '_'),
            "has letters, digits and `_` only",
        ),
        _ => (
            first.is_some_and(|first| first.is_ascii_lowercase())
                && signs.all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || matches!(sign, '-' | '_')),
            "starts with a small letter, and goes on with small letters, digits, `-` and `_`",
        ),
    };
    match fits {
        true => Ok(()),
        false => Err(format!("`{name}` cannot be the name of a {}: one {rule}", kind.as_str())),
    }
}

/// Whether no spec has more errors with the edits than without.
fn check_edits(snapshot: &Snapshot, edits: &Rename, to: &str) -> Result<(), String> {
    let mut overlay = Overlay::new(snapshot.files());
    for (path, edits) in edits {
        let Some(document) = snapshot.document(path) else { continue };
        let mut text = document.text().to_owned();
        // From the end on, so that the places of the others stay true.
        for edit in edits.iter().rev() {
            text.replace_range(edit.range.clone(), &edit.text);
        }
        overlay.texts.insert(path.clone(), text.into());
    }
    for spec in snapshot.specs() {
        let Some(analysis) = snapshot.analysis(spec) else { continue };
        if !edits.keys().any(|path| analysis.file(path).is_some()) {
            continue;
        }
        let before =
            analysis.compilation.diagnostics.iter().filter(|found| found.severity() == Severity::Error).count();
        let after = swarmc_compiler::compile_with(spec, &overlay, &Settings::default());
        let mut errors = after.diagnostics.iter().filter(|found| found.severity() == Severity::Error);
        // Errors that are there already need not stop a rename: only more of them show that it broke something.
        if errors.clone().count() > before {
            let why = errors.next().map_or(String::new(), |found| format!(": {}", found.message));
            return Err(format!("with the name `{to}`, `{spec}` would have errors that it does not have now{why}"));
        }
    }
    Ok(())
}

/// What is declared where: symbols as all specs know them.
type Declared = BTreeSet<(Place, SymbolKind)>;

/// What the name at an offset means.
fn find_declared(snapshot: &Snapshot, path: &str, offset: usize) -> Declared {
    let mut meant = Declared::new();
    for analysis in snapshot.find_analyses(path) {
        for (_, symbol) in find_names(&analysis, path, offset) {
            meant.insert(declaration_key(&analysis, analysis.index.symbol(symbol)));
        }
    }
    meant
}

/// Every place where these stand, in all specs.
fn find_occurrences(snapshot: &Snapshot, meant: &Declared) -> BTreeSet<(Place, Role)> {
    let mut places = BTreeSet::new();
    for analysis in list_analyses(snapshot) {
        for (id, _) in list_symbols(&analysis, meant) {
            for found in analysis.index.occurrences_of(id) {
                let sources = &analysis.compilation.sources;
                let name = sources.name(found.span.file);
                // The library has no file that an editor could change.
                if !name.starts_with("std:") {
                    let range = name_range(sources.slice(found.span), found.span);
                    places.insert((Place { path: name.to_owned(), range }, found.role));
                }
            }
        }
    }
    places
}

fn list_analyses(snapshot: &Snapshot) -> impl Iterator<Item = std::sync::Arc<Analysis>> {
    snapshot.specs().filter_map(|spec| snapshot.analysis(spec))
}

fn list_symbols<'a>(analysis: &'a Analysis, meant: &'a Declared) -> impl Iterator<Item = (SymbolId, &'a Symbol)> {
    analysis.index.list_symbols().filter(|(_, symbol)| meant.contains(&declaration_key(analysis, symbol)))
}

fn declaration_key(analysis: &Analysis, symbol: &Symbol) -> (Place, SymbolKind) {
    (make_place(analysis, symbol.span), symbol.kind)
}

/// The names at an offset, the shortest first.
pub(super) fn find_names(analysis: &Analysis, path: &str, offset: usize) -> Vec<(Occurrence, SymbolId)> {
    let Some(file) = analysis.file(path) else { return Vec::new() };
    let mut found: Vec<(Occurrence, SymbolId)> =
        analysis.index.occurrences_at(file, byte_offset(offset)).map(|found| (*found, found.symbol)).collect();
    found.sort_by_key(|(found, _)| (found.span.len(), found.span.start));
    found
}

fn make_target(analysis: &Analysis, found: Occurrence, symbol: &Symbol) -> Target {
    let origin = name_range(analysis.compilation.sources.slice(found.span), found.span);
    Target { origin, name: make_place(analysis, symbol.span), whole: make_place(analysis, symbol.whole) }
}

fn push(found: &mut Vec<Target>, target: Target) {
    if !target.name.path.starts_with("std:") && !found.contains(&target) {
        found.push(target);
    }
}

pub(super) fn make_place(analysis: &Analysis, span: Span) -> Place {
    Place { path: analysis.compilation.sources.name(span.file).to_owned(), range: span.range() }
}

/// The place of a name without the quotes around it.
pub(super) fn name_range(written: &str, span: Span) -> Range<usize> {
    let range = span.range();
    match written.len() > 1 && written.starts_with('"') && written.ends_with('"') {
        true => range.start + 1..range.end - 1,
        false => range,
    }
}

pub(super) fn byte_offset(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
