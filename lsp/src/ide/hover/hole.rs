//! Hover inside directives and expressions: their words, the type of what they give, and what it was in the last run.

use std::ops::Range;
use std::sync::Arc;

use swarmc_compiler::index::{Index, Occurrence, Role, ShapeId, SymbolKind, TextUse};
use swarmc_compiler::interpolation::{self, HoleKind, Interpolation, Term};

use super::{Hover, RULE, block, code, slice, symbol};
use crate::ide::{Analysis, Document, flow, names};
use crate::runs::{LastRun, Runs};

/// The hover of a part of an interpolation that is no name.
pub(super) fn hover(
    about: &[Arc<Analysis>],
    path: &str,
    document: &Document,
    hole: &Interpolation,
    offset: usize,
    runs: &dyn Runs,
) -> Option<Hover> {
    let touches = |range: &&Range<usize>| range.start <= offset && offset <= range.end;
    let HoleKind::Directive { word, filters, .. } = &hole.kind else {
        return logic(document, hole, offset);
    };
    if let Some(filter) = filters.iter().find(touches) {
        let written = slice(document, filter);
        let name = written.split(':').next().unwrap_or_default().trim();
        let known =
            interpolation::directive_filters(slice(document, word)).into_iter().find(|term| term.word == name)?;
        return Some(Hover { range: filter.clone(), markdown: shown(&known.usage, known.doc) });
    }
    let parts = [title(document, hole), value(about, path, document, hole, runs)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| Hover { range: hole.range.clone(), markdown: parts.join(RULE) })
}

/// What the word of a directive gives.
pub(super) fn title(document: &Document, hole: &Interpolation) -> Option<String> {
    let HoleKind::Directive { word, .. } = &hole.kind else { return None };
    let word = slice(document, word);
    directive(word).map(|known| shown(&known.usage, known.doc))
}

/// The type of what a directive gives, and what that was in the last run.
pub(super) fn value(
    about: &[Arc<Analysis>],
    path: &str,
    document: &Document,
    hole: &Interpolation,
    runs: &dyn Runs,
) -> Option<String> {
    let HoleKind::Directive { word, .. } = &hole.kind else { return None };
    let mut parts: Vec<String> = Vec::new();
    for analysis in about {
        let kind = kind(analysis, path, slice(document, word), hole);
        parts.extend(kind.map(|kind| format!("Gives {kind}")).filter(|kind| !parts.contains(kind)));
        let last = last(analysis, path, document, hole, runs)
            .map(|(run, text)| format!("Last run, {}:\n\n{}", symbol::age(run.age), block("text", &text)));
        parts.extend(last.filter(|last| !parts.contains(last)));
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// The names that an interpolation reads, outermost first.
fn read<'a>(analysis: &'a Analysis, path: &str, hole: &Interpolation) -> impl Iterator<Item = &'a Occurrence> {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let range = number(hole.range.start)..number(hole.range.end);
    let found = analysis.file(path).map_or(&[] as &[Occurrence], |file| analysis.index.within(file, range));
    found.iter().filter(|found| found.role == Role::Directive)
}

/// The type of what a directive gives.
fn kind(analysis: &Analysis, path: &str, word: &str, hole: &Interpolation) -> Option<String> {
    let index = &analysis.index;
    match word {
        "status" => return Some(code("enum succeeded failed skipped")),
        "exit" | "index" | "iteration" => return Some(code("int")),
        "item" => {
            let file = analysis.file(path)?;
            let owners = index.speakers(file, names::byte(hole.range.start));
            let item = flow::says(index, &owners).find_map(|step| step.item)?;
            return Some(symbol::value(analysis, item));
        }
        _ => {}
    }
    match word {
        "error" => None,
        _ => Some(symbol::value(analysis, shape(analysis, path, word, hole)?)),
    }
}

/// The shape of what a directive reads.
pub(in crate::ide) fn shape(analysis: &Analysis, path: &str, word: &str, hole: &Interpolation) -> Option<ShapeId> {
    let index = &analysis.index;
    let last = read(analysis, path, hole).last()?;
    let known = index.symbol(last.symbol);
    match known.kind {
        // A port is what the step behind it says.
        SymbolKind::Port => behind(index, last),
        kind if kind.is_step() && !matches!(word, "output" | "previous") => None,
        _ => known.shape,
    }
}

/// What a port reads.
fn behind(index: &Index, port: &Occurrence) -> Option<ShapeId> {
    let port = index.symbol(port.symbol);
    let step = index.steps.iter().find(|step| Some(step.symbol) == port.within)?;
    let (_, behind) = step.ports.iter().find(|(name, _)| *name == port.name)?;
    Some(index.steps[*behind].output)
}

/// What a directive gave in the last run of the pipeline in which it stands.
pub(in crate::ide) fn last(
    analysis: &Analysis,
    path: &str,
    document: &Document,
    hole: &Interpolation,
    runs: &dyn Runs,
) -> Option<(Arc<LastRun>, String)> {
    let HoleKind::Directive { word, name, fields, .. } = &hole.kind else { return None };
    let (word, index) = (slice(document, word), &analysis.index);
    let owners: Vec<TextUse> = index.speakers(analysis.file(path)?, names::byte(hole.range.start));
    let pipeline = index.symbol(owners.iter().find_map(|owner| owner.pipeline)?);
    let run = runs.last(&index.workflow, &pipeline.name)?;
    let name = slice(document, name.as_ref()?);
    let name = match word {
        "input" => {
            let step = flow::says(index, &owners).next()?;
            let (_, behind) = step.ports.iter().find(|(port, _)| port == name)?;
            &index.symbol(index.steps[*behind].symbol).name
        }
        _ => name,
    };
    let text = match word {
        "param" => run.params.get(name).cloned(),
        "output" | "input" => {
            let output = run.steps.get(name)?.output.clone()?;
            match fields.is_empty() {
                true => Some(output),
                false => field(&output, fields.iter().map(|field| slice(document, field))),
            }
        }
        "status" => run.steps.get(name).map(|step| step.status.to_owned()),
        _ => None,
    }?;
    Some((run, text))
}

/// A field of a text that is JSON.
fn field<'f>(text: &str, fields: impl Iterator<Item = &'f str>) -> Option<String> {
    let mut value = serde_json::from_str::<serde_json::Value>(text).ok()?;
    for field in fields {
        value = value.get_mut(field)?.take();
    }
    Some(match value {
        serde_json::Value::String(text) => text,
        value => value.to_string(),
    })
}

fn logic(document: &Document, hole: &Interpolation, offset: usize) -> Option<Hover> {
    (hole.kind == HoleKind::Logic).then(|| word(document, &hole.range, offset)).flatten()
}

/// A word of an expression that the language knows: a filter behind `|`, a test behind `is`, else what a path begins with.
pub(super) fn word(document: &Document, expression: &Range<usize>, offset: usize) -> Option<Hover> {
    let text = document.text();
    let is_word = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let start = text[..offset].rfind(|sign| !is_word(sign)).map_or(0, |at| at + 1);
    let end = text[offset..].find(|sign| !is_word(sign)).map_or(text.len(), |at| offset + at);
    let word = text.get(start..end).filter(|word| !word.is_empty())?;
    let before = text.get(expression.start..start)?.trim_end();
    let behind = |word: &str| before.strip_suffix(word).is_some_and(|rest| !rest.ends_with(is_word));
    let is = behind("is") || behind("not") && before.trim_end_matches("not").trim_end().ends_with(" is");
    let known = match () {
        () if before.ends_with('|') => interpolation::expression_filters().find(|term| term.word == word),
        () if is => interpolation::expression_tests().find(|term| term.word == word),
        () => return directive(word).map(|known| Hover { range: start..end, markdown: shown(word, known.doc) }),
    };
    known.map(|known| Hover { range: start..end, markdown: shown(&known.usage, known.doc) })
}

fn directive(word: &str) -> Option<Term> {
    interpolation::directives().find(|term| term.word == word)
}

fn shown(usage: &str, doc: &str) -> String {
    format!("{}\n\n{doc}", code(usage))
}
