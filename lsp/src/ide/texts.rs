//! Finds the template texts of a file: strings of a spec, and prompts that a spec reads.

use std::ops::Range;

use swarmc_compiler::interpolation::{self, Interpolation};
use swarmc_compiler::schema::Kind as Value;

use super::document::{Document, Kind};
use super::{Snapshot, element};

/// A template text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// Its range, without quotes.
    pub(super) range: Range<usize>,
    /// Whether all of it is one expression.
    pub(super) expression: bool,
}

/// The texts of a file, by place; none where the file is nothing of ours.
pub(super) fn list_texts(snapshot: &Snapshot, path: &str, document: &Document) -> Vec<Said> {
    let Some(_) = document.tree() else {
        let whole = Said { range: 0..document.text().len(), expression: false };
        return if is_prompt(snapshot, path) { vec![whole] } else { Vec::new() };
    };
    let mut found = Vec::new();
    if document.kind() == Kind::Foreign {
        return found;
    }
    element::visit_nodes(document, &mut |node, known| {
        for (entry, slot) in element::list_entries(node, known) {
            let (Some(slot), Some(_)) = (slot, element::entry_text(entry)) else { continue };
            if let Value::Template | Value::Expression = slot.kind() {
                let expression = matches!(slot.kind(), Value::Expression);
                found.push(Said { range: unquoted_range(document.text(), entry.value.span.range()), expression });
            }
        }
    });
    found.sort_by_key(|said| said.range.start);
    found
}

/// Whether a text is one that a spec reads as a prompt.
pub(super) fn is_prompt(snapshot: &Snapshot, path: &str) -> bool {
    let reads = |spec: &str| {
        let analysis = snapshot.analysis(spec)?;
        Some(analysis.index.text_uses_in(analysis.file(path)?).next().is_some())
    };
    snapshot.specs().any(|spec| reads(spec) == Some(true))
}

/// The interpolations of a text of a file, with ranges in the file.
pub(super) fn list_holes(document: &Document, said: &Said) -> Vec<Interpolation> {
    if said.expression {
        return Vec::new();
    }
    let mut found = interpolation::find_interpolations(&document.text()[said.range.clone()]);
    for hole in &mut found {
        shift_hole(hole, said.range.start);
    }
    found
}

/// The interpolation around an offset of a file.
pub(super) fn hole_at(snapshot: &Snapshot, path: &str, document: &Document, offset: usize) -> Option<Interpolation> {
    let texts = list_texts(snapshot, path, document);
    let said = texts.iter().rev().find(|said| said.range.start <= offset && offset <= said.range.end)?;
    list_holes(document, said).into_iter().find(|hole| hole.range.start <= offset && offset < hole.range.end)
}

/// What stands between the quotes of a string.
pub(super) fn unquoted_range(text: &str, span: Range<usize>) -> Range<usize> {
    let written = &text[span.clone()];
    let hashes = written.len() - written.trim_start_matches('#').len();
    let quotes =
        if written[hashes..].starts_with("\"\"\"") { 3 } else { usize::from(written[hashes..].starts_with('"')) };
    let around = hashes + quotes;
    let end = format!("{}{}", &"\"\"\""[..quotes], &written[..hashes]);
    // A bare word has nothing around it, and a string without its end only a beginning.
    let closed = written.get(around..).is_some_and(|rest| rest.ends_with(&end));
    match quotes {
        0 => span,
        _ => span.start + around..if closed { span.end - around } else { span.end },
    }
}

fn shift_hole(hole: &mut Interpolation, by: usize) {
    let shift = |range: &mut Range<usize>| *range = range.start + by..range.end + by;
    shift(&mut hole.range);
    if let interpolation::HoleKind::Directive { word, name, fields, filters } = &mut hole.kind {
        shift(word);
        name.iter_mut().chain(fields).chain(filters).for_each(shift);
    }
}
