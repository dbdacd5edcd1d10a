//! Hover inside directives and expressions: their words, the type of what they give, and what it was in the last run.

use std::ops::Range;
use std::sync::Arc;

use swarmc_compiler::index::{Index, Occurrence, Role, ShapeId, SymbolKind, TextUse};
use swarmc_compiler::interpolation::{self, HoleKind, Interpolation, Term};

use super::{Hover, RULE, quote_block, quote_code, slice_text, symbol};
use crate::ide::{Analysis, Document, flow, names};
use crate::runs::{LastRun, Runs};

/// The hover of a part of an interpolation that is no name.
pub(super) fn hover_hole(
    about: &[Arc<Analysis>],
    path: &str,
    document: &Document,
    hole: &Interpolation,
    offset: usize,
    runs: &dyn Runs,
) -> Option<Hover> {
    let touches = |range: &&Range<usize>| range.start <= offset && offset <= range.end;
    let HoleKind::Directive { word, filters, .. } = &hole.kind else {
        return hover_logic(document, hole, offset);
    };
    if let Some(filter) = filters.iter().find(touches) {
        let written = slice_text(document, filter);
        let name = written.split(':').next().unwrap_or_default().trim();
        let known =
            interpolation::directive_filters(slice_text(document, word)).into_iter().find(|term| term.word == name)?;
        return Some(Hover { range: filter.clone(), markdown: format_usage(&known.usage, known.doc) });
    }
    let parts = [hole_title(document, hole), describe_value(about, path, document, hole, runs)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| Hover { range: hole.range.clone(), markdown: parts.join(RULE) })
}

/// What the word of a directive gives.
pub(super) fn hole_title(document: &Document, hole: &Interpolation) -> Option<String> {
    let HoleKind::Directive { word, .. } = &hole.kind else { return None };
    let word = slice_text(document, word);
    find_directive(word).map(|known| format_usage(&known.usage, known.doc))
}

/// The type of what a directive gives, and what that was in the last run.
pub(super) fn describe_value(
    about: &[Arc<Analysis>],
    path: &str,
    document: &Document,
    hole: &Interpolation,
    runs: &dyn Runs,
) -> Option<String> {
    let HoleKind::Directive { word, .. } = &hole.kind else { return None };
    let mut parts: Vec<String> = Vec::new();
    for analysis in about {
        let kind = describe_type(analysis, path, slice_text(document, word), hole);
        parts.extend(kind.map(|kind| format!("Gives {kind}")).filter(|kind| !parts.contains(kind)));
        let last = find_last_value(analysis, path, document, hole, runs)
            .map(|(run, text)| format!("Last run, {}:\n\n{}", symbol::format_age(run.age), quote_block("text", &text)));
        parts.extend(last.filter(|last| !parts.contains(last)));
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// The names that an interpolation reads, outermost first.
fn list_reads<'a>(analysis: &'a Analysis, path: &str, hole: &Interpolation) -> impl Iterator<Item = &'a Occurrence> {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let range = number(hole.range.start)..number(hole.range.end);
    let found = analysis.file(path).map_or(&[] as &[Occurrence], |file| analysis.index.occurrences_in(file, range));
    found.iter().filter(|found| found.role == Role::Directive)
}

/// The type of what a directive gives.
fn describe_type(analysis: &Analysis, path: &str, word: &str, hole: &Interpolation) -> Option<String> {
    let index = &analysis.index;
    match word {
        "status" => return Some(quote_code("enum succeeded failed skipped")),
        "exit" | "index" | "iteration" => return Some(quote_code("int")),
        "item" => {
            let file = analysis.file(path)?;
            let owners = index.text_uses_at(file, names::byte_offset(hole.range.start));
            let item = flow::list_speaking_steps(index, &owners).find_map(|step| step.item)?;
            return Some(symbol::describe_value(analysis, item));
        }
        _ => {}
    }
    match word {
        "error" => None,
        _ => Some(symbol::describe_value(analysis, resolve_shape(analysis, path, word, hole)?)),
    }
}

/// The shape of what a directive reads.
pub(in crate::ide) fn resolve_shape(
    analysis: &Analysis,
    path: &str,
    word: &str,
    hole: &Interpolation,
) -> Option<ShapeId> {
    let index = &analysis.index;
    let last = list_reads(analysis, path, hole).last()?;
    let known = index.symbol(last.symbol);
    match known.kind {
        // A port is what the step behind it says.
        SymbolKind::Port => port_shape(index, last),
        kind if kind.is_step() && !matches!(word, "output" | "previous") => None,
        _ => known.shape,
    }
}

/// What a port reads.
fn port_shape(index: &Index, port: &Occurrence) -> Option<ShapeId> {
    let port = index.symbol(port.symbol);
    let step = index.steps.iter().find(|step| Some(step.symbol) == port.within)?;
    let (_, behind) = step.ports.iter().find(|(name, _)| *name == port.name)?;
    Some(index.steps[*behind].output)
}

/// What a directive gave in the last run of the pipeline in which it stands.
pub(in crate::ide) fn find_last_value(
    analysis: &Analysis,
    path: &str,
    document: &Document,
    hole: &Interpolation,
    runs: &dyn Runs,
) -> Option<(Arc<LastRun>, String)> {
    let HoleKind::Directive { word, name, fields, .. } = &hole.kind else { return None };
    let (word, index) = (slice_text(document, word), &analysis.index);
    let owners: Vec<TextUse> = index.text_uses_at(analysis.file(path)?, names::byte_offset(hole.range.start));
    let pipeline = index.symbol(owners.iter().find_map(|owner| owner.pipeline)?);
    let run = runs.last_run(&index.workflow, &pipeline.name)?;
    let name = slice_text(document, name.as_ref()?);
    let name = match word {
        "input" => {
            let step = flow::list_speaking_steps(index, &owners).next()?;
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
                false => extract_field(&output, fields.iter().map(|field| slice_text(document, field))),
            }
        }
        "status" => run.steps.get(name).map(|step| step.status.to_owned()),
        _ => None,
    }?;
    Some((run, text))
}

/// A field of a text that is JSON.
fn extract_field<'f>(text: &str, fields: impl Iterator<Item = &'f str>) -> Option<String> {
    let mut value = serde_json::from_str::<serde_json::Value>(text).ok()?;
    for field in fields {
        // Taken out of the whole, which may be large, in place of a copy.
        value = value.get_mut(field)?.take();
    }
    Some(match value {
        serde_json::Value::String(text) => text,
        value => value.to_string(),
    })
}

fn hover_logic(document: &Document, hole: &Interpolation, offset: usize) -> Option<Hover> {
    (hole.kind == HoleKind::Logic).then(|| hover_word(document, &hole.range, offset)).flatten()
}

/// A word of an expression that the language knows: a filter behind `|`, a test behind `is`, else what a path begins with.
pub(super) fn hover_word(document: &Document, expression: &Range<usize>, offset: usize) -> Option<Hover> {
    let text = document.text();
    let is_word = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let start = text[..offset].rfind(|sign| !is_word(sign)).map_or(0, |at| at + 1);
    let end = text[offset..].find(|sign| !is_word(sign)).map_or(text.len(), |at| offset + at);
    let word = text.get(start..end).filter(|word| !word.is_empty())?;
    let before = text.get(expression.start..start)?.trim_end();
    let behind = |word: &str| before.strip_suffix(word).is_some_and(|rest| !rest.ends_with(is_word));
    let is = behind("is") || behind("not") && before.trim_end_matches("not").trim_end().ends_with(" is");
    // The first word of `{% … %}`.
    if before.strip_prefix("{%").is_some_and(|rest| matches!(rest, "" | "-" | "+")) {
        let (usage, doc) = interpolation::describe_statement(word)?;
        return Some(Hover { range: start..end, markdown: format_usage(usage, doc) });
    }
    let known = match () {
        () if before.ends_with('|') => interpolation::expression_filters().find(|term| term.word == word),
        () if is => interpolation::expression_tests().find(|term| term.word == word),
        () => {
            return find_directive(word)
                .map(|known| Hover { range: start..end, markdown: format_usage(word, known.doc) });
        }
    };
    known.map(|known| Hover { range: start..end, markdown: format_usage(&known.usage, known.doc) })
}

fn find_directive(word: &str) -> Option<Term> {
    interpolation::directive_terms().find(|term| term.word == word)
}

fn format_usage(usage: &str, doc: &str) -> String {
    format!("{}\n\n{doc}", quote_code(usage))
}
