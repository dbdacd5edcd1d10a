//! Reparsing after an edit: an old tree, the new text and what was edited in, the new tree out.
//!
//! When the edit lies inside lines that belong to some top-level nodes alone, only these are read again, and what follows is
//! moved. The result is always the tree that a full parse gives.

use std::ops::Range;
use std::sync::Arc;

use super::parse::{MAX_BYTES, parse, parse_part};
use super::problem::{MAX_PROBLEMS, Problem};
use super::tree::{Entry, Name, Node, Tree, Value, ValueKind};
use crate::source::{FileId, Span};

/// Reads a text that came about by replacing the bytes `old` of the text of `tree` with others, `inserted` of them; `text` is
/// the whole new text.
pub fn reparse(tree: Arc<Tree>, text: &str, file: FileId, old: Range<usize>, inserted: usize) -> Tree {
    match part(&tree, text, file, &old, inserted) {
        Some((part, read)) => {
            // What is read again needs no copy where others still look at the old tree.
            let kept = Arc::try_unwrap(tree).unwrap_or_else(|tree| without(&tree, &part.nodes));
            put_together(kept, part, read)
        }
        None => parse(text, file),
    }
}

/// What is read again.
struct Part {
    /// The nodes that are replaced.
    nodes: Range<usize>,
    /// The bytes of the old text that are replaced.
    old: Range<u32>,
    /// How far what follows moves.
    shift: i64,
}

/// Reads the part of the text around an edit; none when that could differ from a full parse.
fn part(tree: &Tree, text: &str, file: FileId, old: &Range<usize>, inserted: usize) -> Option<(Part, Tree)> {
    if !tree.local || tree.problems.len() >= MAX_PROBLEMS || text.len() > MAX_BYTES {
        // A full list may have been cut, and then it cannot be put together from parts.
        return None;
    }
    let (from, to) = (u32::try_from(old.start).ok()?, u32::try_from(old.end).ok()?);
    // The cuts are in order, but those of nodes that share a line are missing: a missing one is passed over.
    let first = (0..tree.cuts.len()).rev().find(|&node| tree.cuts[node].is_some_and(|cut| cut <= from));
    let start = first.and_then(|node| tree.cuts[node]).unwrap_or(0);
    let last = (0..tree.cuts.len()).find(|&node| tree.cuts[node].is_some_and(|cut| cut > to))?;
    let end = tree.cuts[last]?;
    let shift = i64::try_from(inserted).ok()? - i64::from(to - from);
    let new_end = u32::try_from(i64::from(end) + shift).ok()?;
    let piece = text.get(start as usize..new_end as usize)?;
    // A `\r` could join a `\n` that follows.
    if piece.ends_with('\r') || text[..start as usize].ends_with('\r') && piece.starts_with('\n') {
        return None;
    }
    let (mut read, independent) = parse_part(piece, file, start == 0);
    if !independent || read.problems.len() + tree.problems.len() >= MAX_PROBLEMS {
        return None;
    }
    move_tree(&mut read, i64::from(start));
    Some((Part { nodes: first.map_or(0, |first| first + 1)..last + 1, old: start..end, shift }, read))
}

/// A copy of a tree in which some top-level nodes are empty.
fn without(tree: &Tree, emptied: &Range<usize>) -> Tree {
    let copy = |(index, node): (usize, &Node)| match emptied.contains(&index) {
        true => Node {
            name: node.name.clone(),
            annotation: None,
            entries: Vec::new(),
            children: None,
            span: node.span,
            broken: node.broken,
            comments: Vec::new(),
            trailing: None,
        },
        false => node.clone(),
    };
    Tree {
        nodes: tree.nodes.iter().enumerate().map(copy).collect(),
        problems: tree.problems.clone(),
        tokens: tree.tokens.clone(),
        cuts: tree.cuts.clone(),
        ..*tree
    }
}

fn put_together(mut tree: Tree, part: Part, read: Tree) -> Tree {
    let Part { nodes, old, shift } = part;
    for node in &mut tree.nodes[nodes.end..] {
        move_node(node, shift);
    }
    for cut in tree.cuts[nodes.end..].iter_mut().flatten() {
        *cut = moved(*cut, shift);
    }
    tree.problems.retain(|problem| problem.span.start < old.start || problem.span.start >= old.end);
    let later = tree.problems.partition_point(|problem| problem.span.start < old.start);
    for problem in &mut tree.problems[later..] {
        move_problem(problem, shift);
    }
    let first = tree.tokens.partition_point(|token| token.end <= old.start);
    let last = tree.tokens.partition_point(|token| token.end <= old.end);
    for token in &mut tree.tokens[last..] {
        token.end = moved(token.end, shift);
    }
    tree.tokens.splice(first..last, read.tokens);
    tree.problems.splice(later..later, read.problems);
    tree.nodes.splice(nodes.clone(), read.nodes);
    tree.cuts.splice(nodes, read.cuts);
    tree
}

fn moved(offset: u32, shift: i64) -> u32 {
    u32::try_from(i64::from(offset) + shift).expect("what follows an edit stays in the text")
}

fn move_tree(tree: &mut Tree, shift: i64) {
    tree.nodes.iter_mut().for_each(|node| move_node(node, shift));
    tree.problems.iter_mut().for_each(|problem| move_problem(problem, shift));
    tree.tokens.iter_mut().for_each(|token| token.end = moved(token.end, shift));
    tree.cuts.iter_mut().flatten().for_each(|cut| *cut = moved(*cut, shift));
}

fn move_span(span: &mut Span, shift: i64) {
    *span = Span { start: moved(span.start, shift), end: moved(span.end, shift), ..*span };
}

/// Moves a node; it recurses as deep as blocks may nest.
fn move_node(node: &mut Node, shift: i64) {
    move_name(&mut node.name, shift);
    node.annotation.iter_mut().for_each(|name| move_name(name, shift));
    node.entries.iter_mut().for_each(|entry| move_entry(entry, shift));
    move_span(&mut node.span, shift);
    node.comments.iter_mut().chain(&mut node.trailing).for_each(|span| move_span(span, shift));
    if let Some(block) = &mut node.children {
        move_span(&mut block.open, shift);
        block.close.iter_mut().for_each(|span| move_span(span, shift));
        block.nodes.iter_mut().for_each(|node| move_node(node, shift));
    }
}

fn move_entry(entry: &mut Entry, shift: i64) {
    let Entry { name, equals, annotation, value, span } = entry;
    name.iter_mut().for_each(|name| move_name(name, shift));
    annotation.iter_mut().for_each(|name| move_name(name, shift));
    equals.iter_mut().for_each(|span| move_span(span, shift));
    move_span(span, shift);
    let Value { kind, span } = value;
    move_span(span, shift);
    if let ValueKind::String(text) = kind {
        text.move_by(|span| move_span(span, shift));
    }
}

fn move_name(name: &mut Name, shift: i64) {
    move_span(&mut name.span, shift);
}

fn move_problem(problem: &mut Problem, shift: i64) {
    move_span(&mut problem.span, shift);
    problem.second.iter_mut().for_each(|(span, _)| move_span(span, shift));
    problem.fix.iter_mut().for_each(|fix| move_span(&mut fix.span, shift));
}
