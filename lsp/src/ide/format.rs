//! Formatting: what `swarmc fmt` would change, as edits of whole lines. A text that is broken is left alone.

use std::ops::Range;

use similar::{Algorithm, DiffOp, TextDiff};

use super::Edit;
use super::document::{Document, Kind};

/// The edits that format a document; those of a range of bytes, where one is given.
pub fn format_document(document: &Document, within: Option<Range<usize>>) -> Vec<Edit> {
    if !matches!(document.kind(), Kind::Spec | Kind::Part | Kind::Settings) {
        return Vec::new();
    }
    let old = document.text();
    let Ok(new) = swarmc_compiler::format_document(old) else { return Vec::new() };
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(old, &new);
    let starts = |text: &str| -> Vec<usize> {
        let lines = text.split_inclusive('\n').scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        });
        std::iter::once(0).chain(lines).collect()
    };
    let (of_old, of_new) = (starts(old), starts(&new));
    let at = |starts: &[usize], line: usize| starts.get(line).or(starts.last()).copied().unwrap_or(0);
    let edit = |op: &DiffOp| {
        let (before, after) = (op.old_range(), op.new_range());
        let range = at(&of_old, before.start)..at(&of_old, before.end);
        let text = new[at(&of_new, after.start)..at(&of_new, after.end)].to_owned();
        Edit { range, text }
    };
    let changes = diff.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. })).map(edit);
    let wanted = |edit: &Edit| {
        within.as_ref().is_none_or(|within| edit.range.start <= within.end && within.start <= edit.range.end)
    };
    changes.filter(wanted).collect()
}

/// The edits that put the node around an offset in order, once it is closed.
pub fn format_typed(document: &Document, offset: usize) -> Vec<Edit> {
    let Some(tree) = document.tree() else { return Vec::new() };
    let around = |span: swarmc_compiler::Span| span.range().start <= offset && offset <= span.range().end;
    let node = tree.nodes.iter().find(|node| around(node.span) && !node.broken);
    node.map_or(Vec::new(), |node| format_document(document, Some(node.span.range())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSY: &str = "pipeline  main {\n  task a { run  echo }\n}\n\npipeline  other {\n  task b { run echo }\n}\n";

    fn formatted(text: &str, edits: &[Edit]) -> String {
        let mut text = text.to_owned();
        edits.iter().rev().for_each(|edit| text.replace_range(edit.range.clone(), &edit.text));
        text
    }

    #[test]
    fn a_document_becomes_what_fmt_makes_of_it() {
        let document = Document::new("a.kdl", MESSY);
        assert_eq!(
            formatted(MESSY, &format_document(&document, None)),
            swarmc_compiler::format_document(MESSY).unwrap()
        );
        let tidy = Document::new("a.kdl", &swarmc_compiler::format_document(MESSY).unwrap());
        assert_eq!(format_document(&tidy, None), []);
    }

    #[test]
    fn a_range_and_a_typed_brace_change_their_part_only() {
        let document = Document::new("a.kdl", MESSY);
        let second = MESSY.find("pipeline  other").unwrap();
        let part = formatted(MESSY, &format_document(&document, Some(second..MESSY.len())));
        assert!(part.starts_with("pipeline  main") && part.contains("pipeline other {\n    task b"), "{part}");
        let first = formatted(MESSY, &format_typed(&document, MESSY.find("}\n\n").unwrap() + 1));
        assert!(
            first.starts_with("pipeline main {\n    task a { run echo }") && first.contains("pipeline  other"),
            "{first}"
        );
    }

    #[test]
    fn what_is_broken_or_no_spec_is_left_alone() {
        assert_eq!(format_document(&Document::new("a.kdl", "pipeline main {  task"), None), []);
        assert_eq!(format_document(&Document::new("zellij.kdl", "layout   {   pane }"), None), []);
        assert_eq!(format_document(&Document::new("a.md", "a   b"), None), []);
    }
}
