//! What can be folded, and what is selected step by step around a place.

use std::ops::Range;

use swarmc_compiler::interpolation::HoleKind;
use swarmc_compiler::syntax::{Node, TokenKind};

use super::document::Kind;
use super::{Document, Snapshot, texts};

/// Something that can be folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    /// From its beginning to its end; it stands on several lines.
    pub range: Range<usize>,
    /// What it is.
    pub kind: FoldKind,
}

/// What a [`Fold`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldKind {
    /// A block, a text, or a section.
    Region,
    /// Comments.
    Comment,
    /// Imports that follow each other.
    Imports,
}

/// What can be folded in a file: blocks, texts over several lines, comments, imports; in prompts the sections.
pub fn list_folds(snapshot: &Snapshot, path: &str) -> Vec<Fold> {
    let Some(document) = snapshot.document(path) else { return Vec::new() };
    let mut found = match document.kind() {
        Kind::Foreign => Vec::new(),
        Kind::Text if !texts::is_prompt(snapshot, path) => Vec::new(),
        Kind::Text => list_sections(document.text()),
        Kind::Spec | Kind::Part | Kind::Settings => of_spec(&document),
    };
    let lines = |range: &Range<usize>| {
        let source = document.source();
        (source.position(range.start).line, source.position(range.end).line)
    };
    found.retain(|fold| {
        let (first, last) = lines(&fold.range);
        first < last
    });
    found.sort_by_key(|fold| (fold.range.start, std::cmp::Reverse(fold.range.end)));
    found.dedup();
    found
}

fn of_spec(document: &Document) -> Vec<Fold> {
    let (mut found, mut start) = (Vec::new(), 0);
    let Some(tree) = document.tree() else { return found };
    let text = document.text();
    // Line comments on lines that follow each other are one.
    let mut comments: Option<Range<usize>> = None;
    for token in &tree.tokens {
        let range = start..token.end as usize;
        start = range.end;
        match token.kind {
            TokenKind::LineComment => match &mut comments {
                Some(comments) => comments.end = range.end,
                None => comments = Some(range),
            },
            TokenKind::BlockComment => found.push(Fold { range, kind: FoldKind::Comment }),
            TokenKind::Lines | TokenKind::RawLines => found.push(Fold { range, kind: FoldKind::Region }),
            TokenKind::Space => {}
            // Only an empty line parts two comments.
            TokenKind::Newline if !text[..range.start].ends_with('\n') => {}
            _ => found.extend(comments.take().map(|range| Fold { range, kind: FoldKind::Comment })),
        }
    }
    found.extend(comments.map(|range| Fold { range, kind: FoldKind::Comment }));
    collect_blocks(text, &tree.nodes, &mut found);
    let mut imports = tree.nodes.split(|node| &*node.name.text != "import");
    found.extend(imports.by_ref().filter_map(|imports| {
        let (first, last) = (imports.first()?, imports.last()?);
        Some(Fold { range: first.span.to(last.span).range(), kind: FoldKind::Imports })
    }));
    found
}

/// Recursion is bounded by how deep a document nests.
fn collect_blocks(text: &str, nodes: &[Node], found: &mut Vec<Fold>) {
    for node in nodes {
        if let Some(block) = &node.children {
            // What closes it stays to be seen where it has a line of its own.
            let start = block.open.range().end;
            let end = block.close.map_or(node.span.range().end, |close| close.range().start).max(start);
            let inside = &text[start..end];
            found.push(Fold { range: start..start + inside.trim_end().len(), kind: FoldKind::Region });
            collect_blocks(text, &block.nodes, found);
        }
    }
}

/// The sections beneath the headings of Markdown, code blocks left out of account.
fn list_sections(text: &str) -> Vec<Fold> {
    let (mut found, mut open): (Vec<Fold>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    let (mut at, mut fenced, mut last) = (0, false, 0);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            fenced = !fenced;
        }
        let level = line.len() - line.trim_start_matches('#').len();
        if !fenced && (1..=6).contains(&level) && line[level..].starts_with(' ') {
            while let Some((start, _)) = open.pop_if(|(_, above)| *above >= level) {
                found.push(Fold { range: start..last, kind: FoldKind::Region });
            }
            open.push((at, level));
        }
        at += line.len();
        if !line.trim().is_empty() {
            last = at - (line.len() - line.trim_end().len());
        }
    }
    found.extend(open.into_iter().map(|(start, _)| Fold { range: start..last, kind: FoldKind::Region }));
    found
}

/// What stands around an offset, from the innermost to the whole text.
pub fn list_selections(snapshot: &Snapshot, path: &str, offset: usize) -> Vec<Range<usize>> {
    let Some(document) = snapshot.document(path) else { return Vec::new() };
    if document.kind() == Kind::Foreign {
        return Vec::new();
    }
    let whole = 0..document.text().len();
    let mut found = Vec::from([whole]);
    if let Some(tree) = document.tree() {
        collect_enclosing(&document, &tree.nodes, offset, &mut found);
    }
    if let Some(hole) = texts::hole_at(snapshot, path, &document, offset) {
        found.push(hole.range.clone());
        if let HoleKind::Directive { word, name, fields, filters } = &hole.kind {
            let end = filters.last().or(fields.last()).or(name.as_ref()).unwrap_or(word).end;
            let read = fields.last().or(name.as_ref()).unwrap_or(word).end;
            found.extend([word.start..end, word.start..read]);
            found.extend(name.iter().map(|name| name.start..read));
            found.extend([word.clone()].into_iter().chain(name.clone()).chain(fields.clone()).chain(filters.clone()));
        }
    }
    found.extend(line_and_word(document.text(), offset, document.tree().is_none()));
    let holds = |outer: &Range<usize>, inner: &Range<usize>| outer.start <= inner.start && inner.end <= outer.end;
    found.retain(|range| range.start <= offset && offset <= range.end && !range.is_empty());
    found.sort_by_key(|range| range.end - range.start);
    // Each holds the one before it: what only crosses it is left out.
    let mut nested: Vec<Range<usize>> = Vec::new();
    for range in found {
        if nested.last().is_none_or(|last| *last != range && holds(&range, last)) {
            nested.push(range);
        }
    }
    nested
}

/// Recursion is bounded by how deep a document nests.
fn collect_enclosing(document: &Document, nodes: &[Node], offset: usize, found: &mut Vec<Range<usize>>) {
    let covers = |node: &&Node| node.span.range().start <= offset && offset <= node.span.range().end;
    // Where two nodes touch at the cursor, the later one begins there.
    let Some(node) = nodes.iter().rev().find(covers) else { return };
    found.push(node.span.range());
    found.push(node.name.span.range());
    for entry in &node.entries {
        found.extend([entry.span.range(), entry.value.span.range()]);
        found.extend(entry.name.as_ref().map(|name| name.span.range()));
        found.push(texts::unquoted_range(document.text(), entry.value.span.range()));
    }
    if let Some(block) = &node.children {
        let close = block.close.map_or(node.span.end as usize, |close| close.range().end);
        found.push(block.open.range().start..close.max(block.open.range().end));
        if let (Some(first), Some(last)) = (block.nodes.first(), block.nodes.last()) {
            found.push(first.span.range().start..last.span.range().end);
        }
        collect_enclosing(document, &block.nodes, offset, found);
    }
}

/// The word around an offset, and in a template text its line and its paragraph.
fn line_and_word(text: &str, offset: usize, prose: bool) -> Vec<Range<usize>> {
    let Some((before, after)) = text.split_at_checked(offset) else { return Vec::new() };
    let is_word = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '-');
    let start = before.trim_end_matches(is_word).len();
    let end = text.len() - after.trim_start_matches(is_word).len();
    let word = start..end;
    let mut found = Vec::from([word]);
    if prose {
        let line = before.rfind('\n').map_or(0, |at| at + 1)..after.find('\n').map_or(text.len(), |at| offset + at);
        let paragraph =
            before.rfind("\n\n").map_or(0, |at| at + 2)..after.find("\n\n").map_or(text.len(), |at| offset + at);
        found.extend([line, paragraph]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::fixture::parse_fixture;
    use super::*;

    fn folded(text: &str) -> String {
        let (snapshot, path, _) = parse_fixture(text);
        let document = snapshot.document(&path).expect("the file is there");
        let line = |at: usize| document.source().position(at).line;
        let shown = |fold: Fold| format!("{}-{} {:?}", line(fold.range.start), line(fold.range.end), fold.kind);
        list_folds(&snapshot, &path).into_iter().map(shown).collect::<Vec<_>>().join("\n")
    }

    fn selected(text: &str) -> String {
        let (snapshot, path, offset) = parse_fixture(text);
        let document = snapshot.document(&path).expect("the file is there");
        let ranges = list_selections(&snapshot, &path, offset);
        ranges.into_iter().map(|range| document.text()[range].replace('\n', "⏎")).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn blocks_texts_comments_and_imports_fold() {
        insta::assert_snapshot!(folded("//- a.kdl
import \"a.kdl\"
import \"b.kdl\"
// one
// two

// three
workflow w {
    description \"x\"
}
/* a
 * b */
pipeline p {
    task t {
        prompt \"\"\"
            long
            \"\"\"
    }
    task u { run echo }
"), @"
        1-2 Imports
        3-4 Comment
        7-8 Region
        10-11 Comment
        12-18 Region
        13-16 Region
        14-16 Region
        ");
    }

    #[test]
    fn prompts_fold_by_section() {
        insta::assert_snapshot!(folded("//- p.md
# One
a

## Two
b
```
# no heading
```
# Three
c
//- a.kdl
workflow w
provider p { exec cat }
agent a provider=p
pipeline m { task t { prompt file=\"p.md\" } }
"), @"
        1-8 Region
        4-8 Region
        9-10 Region
        ");
        assert_eq!(folded("//- README.md\n# One\na\n# Two\n"), "");
        assert_eq!(folded("//- a.kdl\nlayout {\n    pane\n}\n"), "");
    }

    #[test]
    fn a_selection_grows_along_the_tree() {
        insta::assert_snapshot!(selected("//- a.kdl
workflow w
pipeline p {
    task t { prompt \"Say <<output:o$0ther.field | tail:3>> now\"; }
    task other { run echo }
}
"), @r#"
        other
        other.field
        output:other.field
        output:other.field | tail:3
        <<output:other.field | tail:3>>
        Say <<output:other.field | tail:3>> now
        "Say <<output:other.field | tail:3>> now"
        prompt "Say <<output:other.field | tail:3>> now"
        { prompt "Say <<output:other.field | tail:3>> now"; }
        task t { prompt "Say <<output:other.field | tail:3>> now"; }
        task t { prompt "Say <<output:other.field | tail:3>> now"; }⏎    task other { run echo }
        {⏎    task t { prompt "Say <<output:other.field | tail:3>> now"; }⏎    task other { run echo }⏎}
        pipeline p {⏎    task t { prompt "Say <<output:other.field | tail:3>> now"; }⏎    task other { run echo }⏎}
        workflow w⏎pipeline p {⏎    task t { prompt "Say <<output:other.field | tail:3>> now"; }⏎    task other { run echo }⏎}⏎
        "#);
    }

    #[test]
    fn a_selection_grows_in_prompts_and_in_broken_texts() {
        insta::assert_snapshot!(selected("//- p.md
One line.
Read <<out$0put:t>> well.

Another.
//- a.kdl
workflow w
provider p { exec cat }
agent a provider=p
pipeline m { task t { run echo }; task u { prompt file=\"p.md\" } }
"), @"
        output
        output:t
        <<output:t>>
        Read <<output:t>> well.
        One line.⏎Read <<output:t>> well.
        One line.⏎Read <<output:t>> well.⏎⏎Another.⏎
        ");
        insta::assert_snapshot!(selected("//- a.kdl\nworkflow w\npipeline p {\n    task t { prompt \"x $0y"), @r#"
        y
        x y
        "x y
        prompt "x y
        { prompt "x y
        task t { prompt "x y
        {⏎    task t { prompt "x y
        pipeline p {⏎    task t { prompt "x y
        workflow w⏎pipeline p {⏎    task t { prompt "x y
        "#);
    }
}
