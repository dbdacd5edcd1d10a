//! What stands at a cursor in a spec: the name of a node, an entry of one, a value, or the inside of a text.
//!
//! In: the tokens of the tree, which cover every byte, and the language as a table. Out: the nodes around and what may be
//! typed. Nothing is taken from how the broken parts of a tree were read, so half a line says as much as a whole one.

use std::ops::Range;

use swarmc_compiler::StepKind;
use swarmc_compiler::schema::{Argument, EDGE, Kind, Node};
use swarmc_compiler::syntax::{Token, TokenKind, Tree};

/// What stands at a cursor.
#[derive(Debug)]
pub(super) struct CursorContext<'t> {
    /// The nodes in whose blocks it is, outermost first.
    pub(super) around: Vec<Written<'t>>,
    /// What it is.
    pub(super) what: CursorKind<'t>,
}

/// What a [`CursorContext`] is.
#[derive(Debug)]
pub(super) enum CursorKind<'t> {
    /// The name of a node, or where one may begin.
    Name {
        /// The word; empty where there is none yet.
        range: Range<usize>,
        /// The other nodes of the block.
        siblings: Vec<&'t str>,
        /// Whether entries or a block follow.
        followed: bool,
    },
    /// An argument or a property, key or value.
    Entry(Entry<'t>),
    /// A comment, from its beginning on.
    Comment(Range<usize>),
    /// Nothing that could be completed.
    Nothing,
}

/// An argument or a property of a node.
#[derive(Debug)]
pub(super) struct Entry<'t> {
    /// The node, with its other entries.
    pub(super) node: Written<'t>,
    /// Its key, where it has one already.
    pub(super) key: Option<&'t str>,
    /// How many arguments stand before it.
    pub(super) position: usize,
    /// The word, or what stands between the quotes.
    pub(super) range: Range<usize>,
    /// What stands before the text, where it is in quotes.
    pub(super) quote: Option<&'t str>,
    /// Whether it is a key that an `=` follows.
    pub(super) is_key: bool,
}

/// A node as it is written.
#[derive(Clone, Debug)]
pub(super) struct Written<'t> {
    /// Its name.
    pub(super) name: &'t str,
    /// What the language says of it.
    pub(super) known: Option<&'static Node>,
    /// Its arguments, without quotes.
    pub(super) arguments: Vec<&'t str>,
    /// Its properties.
    pub(super) properties: Vec<(&'t str, &'t str)>,
}

impl Written<'_> {
    /// What its first argument calls it.
    pub(super) fn declared_name(&self) -> Option<&str> {
        self.arguments.first().copied()
    }

    /// The language's word for it; what a field or an edge is.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.known.is_some_and(|known| known.name == name)
    }

    /// Whether it is a step of a pipeline.
    pub(super) fn is_step(&self) -> bool {
        self.known.is_some_and(|known| StepKind::is_step_node(known.name))
    }

    /// What stands after `KEY=`.
    pub(super) fn property(&self, key: &str) -> Option<&str> {
        self.properties.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }
}

impl Entry<'_> {
    /// What the value is by the language, and what it is called.
    pub(super) fn kind(&self) -> Option<Kind> {
        let known = self.node.known?;
        match self.key {
            Some(key) => match known.find_property(key) {
                Some(property) => Some(property.kind),
                None => known.open_properties.map(|(_, kind)| kind),
            },
            None => self.argument().map(|argument| argument.kind),
        }
    }

    /// The argument that it is by the language.
    pub(super) fn argument(&self) -> Option<Argument> {
        let known = self.node.known?;
        known.arguments.get(self.position).copied().or(known.rest)
    }

    /// Whether it is the arrow of an edge.
    pub(super) fn is_arrow(&self) -> bool {
        self.node.known.is_some_and(|known| std::ptr::eq(known, &raw const EDGE))
            && self.key.is_none()
            && self.position == 0
    }
}

/// What stands at an offset of a text in a language.
pub(super) fn find_context<'t>(
    text: &'t str,
    tree: &Tree,
    language: &'static Node,
    offset: usize,
) -> CursorContext<'t> {
    // What stands before the top-level node around, or before the cursor, says nothing.
    let nodes = tree.nodes.partition_point(|node| (node.span.start as usize) < offset);
    let start = nodes.checked_sub(1).map_or(0, |node| tree.nodes[node].span.start as usize);
    let first = tree.tokens.partition_point(|token| token.end as usize <= start);
    let mut reader = Reader {
        text,
        tokens: &tree.tokens,
        offset,
        next: first,
        at: start,
        open: Vec::new(),
        node: None,
        unclosed: count_unclosed(tree),
        indent: 0,
    };
    let what = reader.read_context();
    let mut around: Vec<Written<'_>> = reader.open.into_iter().map(|(node, _)| node).collect();
    resolve_schemas(language, &mut around);
    let home = around.last().map_or(Some(language), |node| node.known);
    let mut what = what;
    match &mut what {
        CursorKind::Entry(entry) => entry.node.known = home.and_then(|home| find_schema(home, entry.node.name)),
        CursorKind::Name { range, siblings, .. } if around.is_empty() => {
            let others = tree.nodes.iter().filter(|node| node.name.span.start as usize != range.start);
            *siblings = others.filter_map(|node| text.get(node.name.span.range())).collect();
        }
        _ => {}
    }
    CursorContext { around, what }
}

fn resolve_schemas(language: &'static Node, around: &mut [Written<'_>]) {
    let mut home = Some(language);
    for node in around {
        node.known = home.and_then(|home| find_schema(home, node.name));
        home = node.known;
    }
}

fn find_schema(home: &'static Node, name: &str) -> Option<&'static Node> {
    home.find_child(name).or(home.open_children)
}

/// Reads tokens up to the cursor.
struct Reader<'t, 'k> {
    text: &'t str,
    tokens: &'k [Token],
    offset: usize,
    /// The token to be read next, and where it starts.
    next: usize,
    at: usize,
    /// The nodes whose blocks are open, each with the indentation of its line.
    open: Vec<(Written<'t>, usize)>,
    /// The node that is being read.
    node: Option<Reading<'t>>,
    /// The `}` that are missing: indentation says where, as it does to the parser.
    unclosed: usize,
    /// The indentation of the last line that a node or `}` starts.
    indent: usize,
}

/// How many `}` a text lacks.
fn count_unclosed(tree: &Tree) -> usize {
    if tree.problems.is_empty() {
        return 0;
    }
    tree.tokens.iter().fold(0, |depth: usize, token| match token.kind {
        TokenKind::OpenBrace => depth + 1,
        TokenKind::CloseBrace => depth.saturating_sub(1),
        _ => depth,
    })
}

struct Reading<'t> {
    node: Written<'t>,
    /// The key whose value comes next.
    key: Option<&'t str>,
    /// Whether its block has ended.
    ended: bool,
    /// Whether the last entry may yet turn out to be a key.
    last: bool,
}

/// What is read at once: a token, or a word with the stray characters in it.
#[derive(Clone, Copy)]
struct Piece {
    kind: TokenKind,
    start: usize,
    end: usize,
}

impl<'t> Reader<'t, '_> {
    fn read_context(&mut self) -> CursorKind<'t> {
        let (mut annotated, mut escaped) = (false, false);
        while let Some(piece) = self.next_piece() {
            let Piece { kind, start, end } = piece;
            // A piece that begins at the cursor stands behind it, unless it is a word, which the cursor touches.
            if start > self.offset || start == self.offset && !starts_word(kind) {
                // `read_entries` must see this piece again.
                self.next = self.tokens.partition_point(|token| (token.end as usize) <= start);
                self.at = start;
                break;
            }
            if annotated {
                // An annotation that nothing closes ends with its line, so that the lines below keep their meaning.
                annotated = !matches!(kind, TokenKind::CloseParen | TokenKind::Newline);
                if annotated && self.offset <= end {
                    return CursorKind::Nothing;
                }
                continue;
            }
            match kind {
                TokenKind::LineComment if self.offset <= end => return CursorKind::Comment(start..end),
                // A cursor right behind `*/` stands outside; a comment without an end has no outside.
                TokenKind::BlockComment | TokenKind::OpenComment
                    if self.offset < end || kind == TokenKind::OpenComment =>
                {
                    return CursorKind::Comment(start..end);
                }
                TokenKind::OpenParen => annotated = true,
                TokenKind::Backslash => escaped = true,
                // A backslash continues the node on the next line.
                TokenKind::Newline if std::mem::take(&mut escaped) => {}
                TokenKind::Newline | TokenKind::Semicolon => self.node = None,
                TokenKind::OpenBrace => {
                    let node = self.node.take().map(|reading| reading.node);
                    self.open.push((node.unwrap_or_else(empty_node), self.indent));
                }
                TokenKind::CloseBrace => {
                    // A `}` further left than the block closes one around it.
                    self.cut_off(start, |own, indent| own < indent);
                    let node = self.open.pop().map_or_else(empty_node, |(node, _)| node);
                    self.node = Some(Reading { node, key: None, ended: true, last: false });
                }
                TokenKind::Equals => {
                    // Only its `=` shows that the last argument is a key.
                    if let Some(reading) = &mut self.node
                        && std::mem::take(&mut reading.last)
                    {
                        reading.key = reading.node.arguments.pop();
                    }
                }
                kind if is_value(kind) => {
                    if let Some(what) = self.read_value(piece) {
                        return what;
                    }
                }
                _ => {}
            }
        }
        self.read_gap()
    }

    /// The next piece.
    fn next_piece(&mut self) -> Option<Piece> {
        let token = self.tokens.get(self.next)?;
        let (kind, start) = (token.kind, self.at);
        let mut end = token.end as usize;
        self.next += 1;
        let wordy = |kind| matches!(kind, TokenKind::Bare | TokenKind::Stray);
        if wordy(kind) {
            while let Some(more) = self.tokens.get(self.next).filter(|more| wordy(more.kind)) {
                end = more.end as usize;
                self.next += 1;
            }
        }
        if kind == TokenKind::OpenString {
            // Blanks behind what has no end are a part of it while they are typed.
            let blank = self.text[end..].bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            if end < self.offset && self.offset <= end + blank {
                end = self.offset;
                while self.tokens.get(self.next).is_some_and(|token| token.end as usize <= end) {
                    self.next += 1;
                }
            }
        }
        self.at = end;
        let kind = if wordy(kind) { TokenKind::Bare } else { kind };
        Some(Piece { kind, start, end })
    }

    /// Takes a word or a string in; what it is, when the cursor is there.
    fn read_value(&mut self, piece: Piece) -> Option<CursorKind<'t>> {
        let Piece { kind, start, end } = piece;
        let inside = unquoted_range(self.text, kind, start, end);
        let bare = matches!(kind, TokenKind::Bare | TokenKind::Keyword);
        let here = match bare {
            true => start <= self.offset && self.offset <= end,
            false => inside.contains(&self.offset) || self.offset == inside.end,
        };
        let content = &self.text[inside.clone()];
        if self.node.is_none() {
            // A node that stands no deeper than the line of the block is not inside of it.
            self.cut_off(start, |own, indent| own <= indent);
        }
        let Some(reading) = &mut self.node else {
            if here && bare {
                let (siblings, followed) = self.list_siblings(start);
                return Some(CursorKind::Name { range: start..end, siblings, followed });
            }
            let node = Written { name: content, known: None, arguments: Vec::new(), properties: Vec::new() };
            self.node = Some(Reading { node, key: None, ended: false, last: false });
            return here.then_some(CursorKind::Nothing);
        };
        if reading.ended || !bare && self.offset <= end && !here {
            return (self.offset <= end).then_some(CursorKind::Nothing);
        }
        if here {
            let is_key = bare && self.tokens.get(self.next).is_some_and(|token| token.kind == TokenKind::Equals);
            let quote = (!bare).then(|| &self.text[start..inside.start]);
            return Some(self.finish_entry(inside, quote, is_key));
        }
        match reading.key.take() {
            Some(key) => reading.node.properties.push((key, content)),
            None => {
                reading.node.arguments.push(content);
                reading.last = true;
            }
        }
        None
    }

    /// Ends the blocks that lack their `}` before what starts here, where that is the first of its line.
    fn cut_off(&mut self, start: usize, outside: impl Fn(usize, usize) -> bool) {
        let line = self.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        if !self.text[line..start].bytes().all(|byte| matches!(byte, b' ' | b'\t')) {
            return;
        }
        let own = start - line;
        while self.unclosed > 0 && self.open.last().is_some_and(|(_, indent)| outside(own, *indent)) {
            self.open.pop();
            self.unclosed -= 1;
        }
        self.indent = own;
    }

    fn finish_entry(&mut self, range: Range<usize>, quote: Option<&'t str>, is_key: bool) -> CursorKind<'t> {
        let Some(Reading { mut node, key, .. }) = self.node.take() else { return CursorKind::Nothing };
        let position = node.arguments.len();
        self.read_entries(&mut node);
        CursorKind::Entry(Entry { node, key, position, range, quote, is_key })
    }

    /// What a cursor between the tokens could begin.
    fn read_gap(&mut self) -> CursorKind<'t> {
        let empty = self.offset..self.offset;
        let before = self.text[..self.offset].chars().next_back();
        match &self.node {
            None => {
                let (siblings, followed) = self.list_siblings(self.offset);
                CursorKind::Name { range: empty, siblings, followed }
            }
            Some(reading) if reading.ended => CursorKind::Nothing,
            Some(reading) => match before {
                Some('=') if reading.key.is_some() => self.finish_entry(empty, None, false),
                Some(' ' | '\t' | '\n' | '\r') => self.finish_entry(empty, None, false),
                _ => CursorKind::Nothing,
            },
        }
    }

    /// Takes in the entries that follow on a node's line.
    fn read_entries(&mut self, node: &mut Written<'t>) {
        let (mut key, mut last) = (None, false);
        while let Some(Piece { kind, start, end }) = self.next_piece() {
            match kind {
                TokenKind::Newline
                | TokenKind::Semicolon
                | TokenKind::OpenBrace
                | TokenKind::CloseBrace
                | TokenKind::LineComment => break,
                TokenKind::Equals if last => key = node.arguments.pop(),
                kind if is_value(kind) => {
                    let content = &self.text[unquoted_range(self.text, kind, start, end)];
                    last = key.is_none();
                    match key.take() {
                        Some(key) => node.properties.push((key, content)),
                        None => node.arguments.push(content),
                    }
                }
                _ => {}
            }
        }
    }

    /// The other nodes of the block that the cursor is in, and whether something follows it on its line. The top level has
    /// none here: the tree knows them.
    fn list_siblings(&self, start: usize) -> (Vec<&'t str>, bool) {
        let line = &self.text[self.offset..];
        let line = &line[..line.find('\n').unwrap_or(line.len())];
        let rest = line.trim_start_matches(|sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_'));
        let followed = !matches!(rest.trim_start().chars().next(), None | Some(';' | '}' | '/'));
        if self.open.is_empty() {
            return (Vec::new(), followed);
        }
        // From the brace that opens the block to the one that closes it.
        let here = self.tokens.partition_point(|token| (token.end as usize) <= start);
        let (mut depth, mut opening) = (0_usize, here);
        while opening > 0 {
            opening -= 1;
            match self.tokens[opening].kind {
                TokenKind::CloseBrace => depth += 1,
                TokenKind::OpenBrace if depth == 0 => break,
                TokenKind::OpenBrace => depth -= 1,
                _ => {}
            }
        }
        let (mut names, mut depth, mut fresh) = (Vec::new(), 0_usize, true);
        for (index, token) in self.tokens.iter().enumerate().skip(opening + 1) {
            match token.kind {
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace if depth == 0 => break,
                TokenKind::CloseBrace => depth -= 1,
                TokenKind::Newline | TokenKind::Semicolon => fresh = true,
                // A node that is commented out may be written again.
                TokenKind::Slashdash => fresh = false,
                kind if depth == 0 && fresh && is_value(kind) => {
                    // The loop begins behind the opening brace, so there is a token before.
                    let from = self.tokens[index - 1].end as usize;
                    fresh = false;
                    if from != start {
                        names.push(&self.text[from..token.end as usize]);
                    }
                }
                _ => {}
            }
        }
        (names, followed)
    }
}

fn empty_node<'t>() -> Written<'t> {
    Written { name: "", known: None, arguments: Vec::new(), properties: Vec::new() }
}

fn starts_word(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Bare | TokenKind::Keyword)
}

fn is_value(kind: TokenKind) -> bool {
    use TokenKind::{Bare, BrokenLines, Keyword, LegacyRaw, Lines, OpenString, Quoted, Raw, RawLines};
    matches!(kind, Bare | Keyword | Quoted | Raw | Lines | RawLines | LegacyRaw | OpenString | BrokenLines)
}

/// What stands between the quotes of a value; all of a bare one.
fn unquoted_range(text: &str, kind: TokenKind, start: usize, end: usize) -> Range<usize> {
    let whole = &text[start..end];
    if matches!(kind, TokenKind::Bare | TokenKind::Keyword) {
        return start..end;
    }
    let opening = whole.trim_start_matches('r').trim_start_matches('#');
    let hashes = whole.len() - opening.len();
    let quotes = match opening.starts_with("\"\"\"") && !(kind == TokenKind::Quoted) {
        true => 3,
        false => 1,
    };
    // While a string is typed it may be shorter than the quotes that it begins and ends with.
    let from = (start + hashes + quotes).min(end);
    let closing = if kind == TokenKind::OpenString { 0 } else { hashes + quotes };
    from..end.saturating_sub(closing).max(from)
}

#[cfg(test)]
mod tests {
    use swarmc_compiler::FileId;
    use swarmc_compiler::schema::SPEC;
    use swarmc_compiler::syntax::parse;

    use super::*;

    fn shown(marked: &str) -> String {
        let offset = marked.find("$0").expect("a cursor");
        let text = marked.replacen("$0", "", 1);
        let tree = parse(&text, FileId::new(0));
        let CursorContext { around, what } = find_context(&text, &tree, &SPEC, offset);
        let around: Vec<&str> = around.iter().map(|node| node.name).collect();
        let what = match what {
            CursorKind::Name { range, siblings, followed } => {
                format!("name [{}] beside {siblings:?}{}", &text[range], if followed { " followed" } else { "" })
            }
            CursorKind::Entry(entry) => {
                let Entry { node, key, position, range, quote, is_key } = entry;
                let key = key.map_or_else(|| format!("#{position}"), |key| format!("{key}="));
                let quoted = quote.map_or(String::new(), |quote| format!(" in {quote}"));
                let of = node.known.map_or("nothing", |known| known.name);
                format!("{} ({of}) {key}[{}]{quoted}{}", node.name, &text[range], if is_key { " key" } else { "" })
            }
            CursorKind::Comment(range) => format!("comment {}", &text[range]),
            CursorKind::Nothing => "nothing".to_owned(),
        };
        format!("{}: {what}", around.join("/"))
    }

    fn check(marked: &str, wanted: &str) {
        assert_eq!(shown(marked), wanted, "{marked}");
    }

    #[test]
    fn names_of_nodes() {
        check("$0", ": name [] beside []");
        check("work$0\nagent a", ": name [work] beside [\"agent\"]");
        check("pipeline p {\n  ta$0\n  use a\n}", "pipeline: name [ta] beside [\"use\"]");
        check("pipeline p {$0}", "pipeline: name [] beside []");
        check("pipeline p { task a { } ; $0 }", "pipeline: name [] beside [\"task\"]");
        check("pipeline p { ta$0sk a { run ls } }", "pipeline: name [task] beside [] followed");
        check("pipeline p { /-task a; $0 }", "pipeline: name [] beside []");
        check("pipeline p { task a { run ls }$0 }", "pipeline: nothing");
    }

    #[test]
    fn entries_and_values() {
        check("agent a $0", ": agent (agent) #1[]");
        check("agent a prov$0 tier=b", ": agent (agent) #1[prov]");
        check("agent a provider=$0", ": agent (agent) provider=[]");
        check("agent a provider=cl$0au tier=x", ": agent (agent) provider=[clau]");
        check("agent a pro$0vider=x", ": agent (agent) #1[provider] key");
        check("import \"std:$0\" as=x", ": import (import) #0[std:] in \"");
        check("agent a {\n tools x $0\n}", "agent: tools (tools) #1[]");
        check("agent a {\n system #\"a $0 b\"#\n}", "agent: system (system) #0[a  b] in #\"");
        check("task a {\n depends-on b \\\n  $0\n}", "task: depends-on (depends-on) #1[]");
        check("swarm s { edges { a -> $0 } }", "swarm/edges: a (SENDER) #1[]");
        check("task a {\n run file=a/$0\n}", "task: run (run) file=[a/]");
        check("task a \"x\"$0", ": nothing");
    }

    #[test]
    fn broken_texts() {
        check("task a {\n prompt \"say $0\n timeout \"1m\"\n}", "task: prompt (prompt) #0[say ] in \"");
        check("task a {\n prompt \"\"\"\n  say $0\n", "task: prompt (prompt) #0[\n  say ] in \"\"\"");
        check("pipeline p {\n task a {\n  ti$0\n", "pipeline/task: name [ti] beside []");
        check("pipeline p {\n } }\n agent a tier=$0", ": agent (agent) tier=[]");
        check("unknown {\n x $0", "unknown: x (nothing) #0[]");
    }

    #[test]
    fn comments_are_left_alone() {
        check("agent a // prov$0", ": comment // prov");
        check("/* a $0 */ agent b", ": comment /* a  */");
        check("agent a /* x */ $0", ": agent (agent) #1[]");
        check("agent (str$0ing)a", ": nothing");
    }
}
