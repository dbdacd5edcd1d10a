//! Reparsing after an edit: an old tree, the new text and what was edited in, the new tree out.
//!
//! When the edit lies inside lines that belong to some nodes of a block alone, only these are read again, and what follows is
//! moved; the innermost such block is taken. The result is always the tree that a full parse gives.

use std::ops::Range;
use std::sync::Arc;

use super::lex::MAX_DEPTH;
use super::parse::{MAX_BYTES, empty_node, parse, parse_part};
use super::problem::{MAX_PROBLEMS, Problem};
use super::token::TokenKind;
use super::tree::{Block, Entry, Name, Node, Tree, Value, ValueKind};
use crate::source::{FileId, Span};

/// Reads a text that came about by replacing the bytes `old` of the text of `tree` with others, `inserted` of them; `text` is
/// the whole new text.
pub fn reparse(tree: Arc<Tree>, text: &str, file: FileId, old: Range<usize>, inserted: usize) -> Tree {
    match reparse_region(&tree, text, file, &old, inserted) {
        Some((part, read)) => {
            // What is read again needs no copy where others still look at the old tree.
            let kept = Arc::try_unwrap(tree).unwrap_or_else(|tree| Tree {
                nodes: clear_nodes(&tree.nodes, &part.lines),
                problems: tree.problems.clone(),
                tokens: tree.tokens.clone(),
                cuts: tree.cuts.clone(),
                ..*tree
            });
            put_together(kept, part, read)
        }
        None => parse(text, file),
    }
}

/// What is read again.
struct Part {
    lines: Lines,
    /// How far what follows moves.
    shift: i32,
}

/// Lines that hold an edit, and that belong to some nodes of one block alone.
struct Lines {
    /// The nodes whose blocks lead there, outermost first, each by its index; none at the top level.
    path: Vec<usize>,
    /// The nodes.
    nodes: Range<usize>,
    /// The bytes of the lines in the old text.
    old: Range<u32>,
}

/// Reads the part of the text around an edit; none when that could differ from a full parse.
fn reparse_region(tree: &Tree, text: &str, file: FileId, old: &Range<usize>, inserted: usize) -> Option<(Part, Tree)> {
    if !tree.local || tree.problems.len() >= MAX_PROBLEMS || text.len() > MAX_BYTES {
        // A full list may have been cut, and then it cannot be put together from parts.
        return None;
    }
    let edit = u32::try_from(old.start).ok()?..u32::try_from(old.end).ok()?;
    let shift = i64::try_from(inserted).ok()? - i64::from(edit.end - edit.start);
    let shift = i32::try_from(shift).ok()?;
    let read = |lines: Lines| Some((parse_lines(tree, text, file, &lines, shift)?, lines));
    // Where the inner lines cannot be read alone, the lines of the whole node may.
    let (tree, lines) = inner_lines(tree, &edit).and_then(read).or_else(|| read(outer_lines(tree, &edit)?))?;
    Some((Part { lines, shift }, tree))
}

/// The lines of top-level nodes around an edit.
fn outer_lines(tree: &Tree, edit: &Range<u32>) -> Option<Lines> {
    // The cuts are in order, and each lies behind its node. Those of nodes that share a line are missing, and passed over.
    let passed = tree.nodes.partition_point(|node| node.span.end <= edit.start);
    let before = |node: usize| tree.cuts[node].filter(|&cut| cut <= edit.start);
    let (first, start) = (0..passed).rev().find_map(|node| Some((node + 1, before(node)?))).unwrap_or((0, 0));
    // Strictly behind: the line break that ends the part must outlive the edit.
    let behind = |node: usize| tree.cuts[node].filter(|&cut| cut > edit.end);
    let (last, end) = (first..tree.cuts.len()).find_map(|node| Some((node, behind(node)?)))?;
    Some(Lines { path: Vec::new(), nodes: first..last + 1, old: start..end })
}

/// The lines around an edit in the innermost block that has some.
fn inner_lines(tree: &Tree, edit: &Range<u32>) -> Option<Lines> {
    let (mut nodes, mut path, mut found) = (tree.nodes.as_slice(), Vec::new(), None);
    loop {
        let index = nodes.partition_point(|node| node.span.end <= edit.start);
        let Some(block) = nodes.get(index).and_then(|node| node.children.as_ref()) else { return found };
        // An edit that touches a brace may change where blocks end.
        if edit.start < block.open.end || block.close.is_none_or(|close| close.start < edit.end) {
            return found;
        }
        path.push(index);
        if let Some((nodes, old)) = find_lines(tree, block, edit) {
            found = Some(Lines { path: path.clone(), nodes, old });
        }
        nodes = &block.nodes;
    }
}

/// The nodes of a block around an edit that have whole lines for themselves, and these lines.
fn find_lines(tree: &Tree, block: &Block, edit: &Range<u32>) -> Option<(Range<usize>, Range<u32>)> {
    let before = |end: u32| line_break_end(tree, end).filter(|&cut| cut <= edit.start);
    let passed = block.nodes.partition_point(|node| node.span.end <= edit.start);
    let first = (0..passed).rev().find_map(|node| Some((node + 1, before(block.nodes[node].span.end)?)));
    let (first, start) = first.or_else(|| Some((0, before(block.open.end)?)))?;
    let behind = |node: usize| line_break_end(tree, block.nodes[node].span.end).filter(|&cut| cut > edit.end);
    let (last, end) = (first..block.nodes.len()).find_map(|node| Some((node, behind(node)?)))?;
    Some((first..last + 1, start..end))
}

/// The offset after the line break that follows what ends at `end`, if nothing but a comment stands before it.
fn line_break_end(tree: &Tree, end: u32) -> Option<u32> {
    let next = tree.tokens.partition_point(|token| token.end <= end);
    let mut tokens = tree.tokens[next..].iter().peekable();
    tokens.next_if(|token| token.kind == TokenKind::Space);
    tokens.next_if(|token| token.kind == TokenKind::LineComment);
    tokens.next().filter(|token| token.kind == TokenKind::Newline).map(|token| token.end)
}

/// Reads lines again; none when that could differ from a full parse.
fn parse_lines(tree: &Tree, text: &str, file: FileId, lines: &Lines, shift: i32) -> Option<Tree> {
    let Lines { path, old: Range { start, end }, .. } = lines;
    let new_end = end.checked_add_signed(shift)?;
    let piece = text.get(*start as usize..new_end as usize)?;
    // A `\r` could join a `\n` that follows.
    if piece.ends_with('\r') || text[..*start as usize].ends_with('\r') && piece.starts_with('\n') {
        return None;
    }
    if let Some(&top) = path.first() {
        // What is wrong with the nodes around may be told at one place and be about another.
        let span = tree.nodes[top].span;
        let around = |at: u32| span.touches_offset(at) && !(*start..*end).contains(&at);
        if tree.problems.iter().any(|problem| around(problem.span.start)) {
            return None;
        }
    }
    let (mut read, independent) = parse_part(piece, file, *start == 0);
    // Read alone, a piece does not know how deep it lies.
    let opened = read.tokens.iter().filter(|token| token.kind == TokenKind::OpenBrace).count();
    if !independent
        || read.problems.len() + tree.problems.len() >= MAX_PROBLEMS
        || !path.is_empty() && path.len() + opened > MAX_DEPTH as usize
    {
        return None;
    }
    move_tree(&mut read, i32::try_from(*start).ok()?);
    Some(read)
}

/// A copy of nodes in which those that are read again are empty.
fn clear_nodes(nodes: &[Node], lines: &Lines) -> Vec<Node> {
    fn copy_nodes(nodes: &[Node], path: &[usize], emptied: &Range<usize>) -> Vec<Node> {
        let copy = |(index, node): (usize, &Node)| match path.split_first() {
            None if emptied.contains(&index) => empty_node(node.name.clone(), None),
            Some((&next, path)) if next == index => Node {
                name: node.name.clone(),
                annotation: node.annotation.clone(),
                entries: node.entries.clone(),
                children: node
                    .children
                    .as_ref()
                    .map(|block| Block { nodes: copy_nodes(&block.nodes, path, emptied), ..*block }),
                comments: node.comments.clone(),
                ..*node
            },
            _ => node.clone(),
        };
        nodes.iter().enumerate().map(copy).collect()
    }
    copy_nodes(nodes, &lines.path, &lines.nodes)
}

fn put_together(mut tree: Tree, part: Part, read: Tree) -> Tree {
    let Part { lines: Lines { path, nodes, old }, shift } = part;
    let mut list = &mut tree.nodes;
    for &index in &path {
        list[index + 1..].iter_mut().for_each(|node| move_node(node, shift));
        let Node { span, children, .. } = &mut list[index];
        span.end = shift_offset(span.end, shift);
        let block = children.as_mut().expect("a path leads through blocks");
        block.close.iter_mut().for_each(|span| move_span(span, shift));
        list = &mut block.nodes;
    }
    list[nodes.end..].iter_mut().for_each(|node| move_node(node, shift));
    list.splice(nodes.clone(), read.nodes);
    // With the outermost node around the edit: its end moves as well.
    let later = path.first().map_or(nodes.end, |&top| top);
    tree.cuts[later..].iter_mut().flatten().for_each(|cut| *cut = shift_offset(*cut, shift));
    if path.is_empty() {
        tree.cuts.splice(nodes, read.cuts);
    }
    tree.problems.retain(|problem| problem.span.start < old.start || problem.span.start >= old.end);
    let later = tree.problems.partition_point(|problem| problem.span.start < old.start);
    for problem in &mut tree.problems[later..] {
        move_problem(problem, shift);
    }
    let first = tree.tokens.partition_point(|token| token.end <= old.start);
    let last = tree.tokens.partition_point(|token| token.end <= old.end);
    for token in &mut tree.tokens[last..] {
        token.end = shift_offset(token.end, shift);
    }
    tree.tokens.splice(first..last, read.tokens);
    // In between, as the list is in the order of places.
    tree.problems.splice(later..later, read.problems);
    tree
}

/// Where an offset behind an edit is afterwards. It stays in the text, so it cannot overflow; a check would cost more
/// than the addition, as this is done for each token that follows.
fn shift_offset(offset: u32, shift: i32) -> u32 {
    debug_assert!(offset.checked_add_signed(shift).is_some(), "what follows an edit stays in the text");
    offset.wrapping_add_signed(shift)
}

fn move_tree(tree: &mut Tree, shift: i32) {
    tree.nodes.iter_mut().for_each(|node| move_node(node, shift));
    tree.problems.iter_mut().for_each(|problem| move_problem(problem, shift));
    tree.tokens.iter_mut().for_each(|token| token.end = shift_offset(token.end, shift));
    tree.cuts.iter_mut().flatten().for_each(|cut| *cut = shift_offset(*cut, shift));
}

fn move_span(span: &mut Span, shift: i32) {
    *span = Span { start: shift_offset(span.start, shift), end: shift_offset(span.end, shift), ..*span };
}

/// Moves a node; it recurses as deep as blocks may nest.
fn move_node(node: &mut Node, shift: i32) {
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

fn move_entry(entry: &mut Entry, shift: i32) {
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

fn move_name(name: &mut Name, shift: i32) {
    move_span(&mut name.span, shift);
}

fn move_problem(problem: &mut Problem, shift: i32) {
    move_span(&mut problem.span, shift);
    problem.second.iter_mut().for_each(|(span, _)| move_span(span, shift));
    problem.fix.iter_mut().for_each(|fix| move_span(&mut fix.span, shift));
}
