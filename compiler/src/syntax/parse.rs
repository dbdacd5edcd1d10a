//! The parser: tokens in, tree and problems out.
//!
//! Keeps its own stack, takes every token at most a fixed number of times, and goes on after everything that is wrong.

use super::chars;
use super::lex::{self, Lexed, Limit};
use super::problem::{Problem, ProblemKind, Problems};
use super::string::Strings;
use super::token::{Token, TokenKind};
use super::tree::{Entry, Name, Node, Tree};
use crate::source::{FileId, Span};

/// The most bytes that a file may have.
pub(super) const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Reads a document.
pub fn parse(text: &str, file: FileId) -> Tree {
    parse_part(text, file, true).0
}

/// Reads a document, or the part of one that starts on a line of its own at the top level; says too whether what follows the
/// part could not change what was read.
pub(super) fn parse_part(text: &str, file: FileId, from_start: bool) -> (Tree, bool) {
    if text.len() > MAX_BYTES {
        return (problem_tree(text, too_large(text, file)), false);
    }
    if let Some(problem) = other_encoding(text, file) {
        return (problem_tree(text, problem), false);
    }
    let lexed = lex::lex(text, from_start);
    if let Some(limit) = lexed.limit {
        let problem = too_deep(limit, file);
        let tree =
            Tree { nodes: Vec::new(), problems: vec![problem], tokens: lexed.tokens, cuts: Vec::new(), local: false };
        return (tree, false);
    }
    let mut parser = Parser::new(text, file, lexed);
    parser.parse_nodes();
    let ends_whole = parser.cuts.last().is_some_and(|cut| cut.is_some_and(|cut| cut as usize == text.len()));
    let tree = Tree {
        nodes: parser.nodes,
        problems: parser.problems.into_sorted(),
        tokens: parser.tokens,
        cuts: parser.cuts,
        local: parser.local,
    };
    let independent = ends_whole && tree.local;
    (tree, independent)
}

/// A tree of nothing but a problem.
fn problem_tree(text: &str, problem: Problem) -> Tree {
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let token = Token { kind: TokenKind::Forbidden, end, plain: false };
    let tokens = if text.is_empty() { Vec::new() } else { vec![token] };
    Tree { nodes: Vec::new(), problems: vec![problem], tokens, cuts: Vec::new(), local: false }
}

fn too_large(text: &str, file: FileId) -> Problem {
    let size = text.len().div_ceil(1024 * 1024);
    Problem::new(Span::new(file, 0, 0), format!("this file has {size} MiB; at most 16 MiB are read"), "too large")
        .kind(ProblemKind::Limit)
        .help("move texts into files of their own and say `file=`, or split the spec with `import`")
}

fn too_deep(limit: Limit, file: FileId) -> Problem {
    let (at, length, what, most) = match limit {
        Limit::Depth(at) => (at, 1, "blocks", lex::MAX_DEPTH),
        Limit::CommentDepth(at) => (at, 2, "comments", lex::MAX_COMMENT_DEPTH),
    };
    Problem::new(Span::new(file, at, at + length), format!("{what} nest deeper than {most}"), "too deep")
        .kind(ProblemKind::Limit)
        .help(match limit {
            Limit::Depth(_) => "close blocks with `}` before opening further ones",
            Limit::CommentDepth(_) => "end comments with `*/`, or put a pattern such as `\"src/*\"` in quotes",
        })
}

/// Text that was UTF-16 and was read as if it were not.
fn other_encoding(text: &str, file: FileId) -> Option<Problem> {
    let start = text.trim_start_matches(['\u{FEFF}', '\u{FFFD}']).as_bytes();
    // ASCII in UTF-16 has a NUL in every other byte; the byte order decides in which.
    let wide = start.len() >= 4 && (0..4).all(|at| (start[at] == 0) == (at % 2 == usize::from(start[0] != 0)));
    wide.then(|| {
        Problem::new(Span::new(file, 0, 0), "this file is not UTF-8: it looks like UTF-16", "every other byte is NUL")
            .help("save it as UTF-8")
    })
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) file: FileId,
    pub(super) tokens: Vec<Token>,
    /// The index of the current token.
    pub(super) index: usize,
    /// The offset of the current token.
    pub(super) at: usize,
    /// The end of the last token that is not space.
    pub(super) last: usize,
    /// Where the current line starts, while nothing but space has been passed on it.
    pub(super) line: Option<usize>,
    /// The indentation of the last line that a node or `}` starts.
    pub(super) indent: usize,
    pub(super) strings: Strings<'t>,
    pub(super) problems: Problems,
    /// The entries of the node being read.
    pub(super) entries: Vec<Entry>,
    /// The nodes read so far on the current level.
    pub(super) nodes: Vec<Node>,
    pub(super) stack: Vec<Frame>,
    pub(super) cuts: Vec<Option<u32>>,
    /// The comments above what comes next.
    pub(super) comments: Vec<Span>,
    /// How many line breaks came after the last comment.
    pub(super) breaks: u32,
    /// How many `{` without `}` and `}` without `{` are still to be found.
    pub(super) unclosed: u32,
    pub(super) surplus: u32,
    /// Whether nothing so far depends on what stands far away.
    pub(super) local: bool,
    /// What is known of the node being read.
    pub(super) now: Now,
}

/// What is known of the node being read, apart from its parts.
#[derive(Default)]
pub(super) struct Now {
    /// Something in it could not be read.
    pub(super) broken: bool,
    /// A comma was complained about.
    pub(super) comma: bool,
    /// An entry behind a commented-out block was complained about.
    pub(super) misplaced: bool,
    /// Within `[…]`, which was complained about.
    pub(super) list: bool,
    /// Habits are not looked for before this offset.
    pub(super) quoted_until: usize,
    /// No space is needed before the next entry: its lack was complained about, or belongs to a complaint.
    pub(super) glue: bool,
}

/// A node whose block is being read.
pub(super) struct Frame {
    pub(super) parent: Reading,
    pub(super) siblings: Vec<Node>,
    pub(super) open: Span,
    /// The indentation of the line of the node.
    pub(super) indent: usize,
    /// Whether the block is commented out.
    pub(super) hides: bool,
}

/// A node being read.
pub(super) struct Reading {
    pub(super) node: Node,
    /// Whether the node is commented out.
    pub(super) hidden: bool,
    pub(super) stage: Stage,
}

/// How far a node is read.
#[derive(PartialEq, Eq, Clone, Copy)]
pub(super) enum Stage {
    /// Entries may come.
    Entries,
    /// A commented-out block came: only blocks may follow.
    Hidden,
    /// The block came: only commented-out blocks may follow.
    Block,
    /// The `}` of its block is missing: nothing more belongs to it.
    Cut,
}

/// What comes next between nodes.
pub(super) enum Step {
    /// A node starts, or goes on after its block.
    Within(Reading),
    /// The text ends.
    End,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, file: FileId, lexed: Lexed) -> Self {
        let Lexed { tokens, unclosed, surplus, looked_far, .. } = lexed;
        Self {
            text,
            file,
            tokens,
            index: 0,
            at: 0,
            last: 0,
            line: Some(0),
            indent: 0,
            strings: Strings { text, file },
            problems: Problems::default(),
            entries: Vec::new(),
            nodes: Vec::new(),
            stack: Vec::new(),
            cuts: Vec::new(),
            comments: Vec::new(),
            breaks: 0,
            unclosed,
            surplus,
            local: unclosed == 0 && surplus == 0 && !looked_far,
            now: Now::default(),
        }
    }

    fn parse_nodes(&mut self) {
        while let Step::Within(reading) = self.parse_between_nodes() {
            self.parse_node(reading);
        }
    }

    /// Reads on in a node to its end or into its block.
    fn parse_node(&mut self, mut reading: Reading) {
        if reading.stage == Stage::Cut {
            return self.finish_node(reading, None, None);
        }
        loop {
            let before = self.index;
            let comment = self.skip_space();
            let spaced = self.index > before;
            match self.kind() {
                None | Some(TokenKind::CloseBrace) => return self.finish_node(reading, comment, None),
                Some(TokenKind::Newline) => {
                    self.bump();
                    return self.finish_node(reading, comment, Some(self.at));
                }
                Some(TokenKind::Semicolon) => {
                    self.bump();
                    return self.finish_node(reading, None, None);
                }
                Some(TokenKind::LineComment) => {
                    let comment = self.token_span();
                    self.bump();
                    let newline = self.kind() == Some(TokenKind::Newline);
                    if newline {
                        self.bump();
                    }
                    return self.finish_node(reading, Some(comment), newline.then_some(self.at));
                }
                Some(TokenKind::OpenComment) => self.open_comment(),
                // A second block belongs to no node, which `orphan_block` tells.
                Some(TokenKind::OpenBrace) if reading.stage == Stage::Block => {
                    return self.finish_node(reading, None, None);
                }
                Some(TokenKind::OpenBrace) => return self.open_block(reading, false),
                Some(TokenKind::Slashdash) => match self.parse_slashdash(reading, spaced) {
                    Some(back) => reading = back,
                    None => return,
                },
                Some(_) if reading.stage == Stage::Block => {
                    self.after_block(&reading.node);
                    return self.finish_node(reading, None, None);
                }
                Some(_) => {
                    if reading.stage == Stage::Hidden {
                        self.after_hidden();
                    }
                    self.parse_entry(spaced, &reading.node.name);
                }
            }
        }
    }

    /// Something stands behind the block of a node.
    fn after_block(&mut self, node: &Node) {
        let here = self.token_span();
        let name = &node.name.text;
        let between = self.span(node.span.end as usize, self.at);
        if self.token_text() == "," {
            self.problems.add(|| {
                Problem::new(here, "nodes are separated by line breaks, not by commas", "a comma")
                    .help("remove the comma")
                    .fix("remove the comma", here, "")
            });
            return;
        }
        self.problems.add(|| {
            Problem::new(here, format!("the block of `{name}` ends the node"), "behind the block")
                .help("start the next node on a line of its own, or write `;` before it")
                .unsafe_fix("start a new line", between, "\n")
        });
    }

    /// Something other than a block stands behind a commented-out one; told once for a node.
    fn after_hidden(&mut self) {
        let here = self.token_span();
        if !std::mem::replace(&mut self.now.misplaced, true) {
            self.problems.add(|| {
                Problem::new(here, "arguments and properties stand before every block", "behind a commented-out block")
                    .help("move it before the block, the commented-out one included")
            });
        }
    }

    /// Reads `/-` and what it hides; nothing is given back when that is a block, whose reading then goes on.
    fn parse_slashdash(&mut self, reading: Reading, spaced: bool) -> Option<Reading> {
        let dash = self.token_span();
        if !spaced && reading.stage != Stage::Block && !std::mem::take(&mut self.now.glue) {
            self.problems.add(|| {
                let place = Span { end: dash.start, ..dash };
                Problem::new(dash, "a space is needed before `/-`", "directly behind another value")
                    .help("write a space before it")
                    .fix("write a space", place, " ")
            });
        }
        self.bump();
        self.wide_space();
        match self.kind() {
            None | Some(TokenKind::CloseBrace | TokenKind::Semicolon) => self.nothing_hidden(Some(dash)),
            Some(TokenKind::Slashdash) => {
                self.double_dash(Some(dash));
                self.now.glue = true;
            }
            Some(TokenKind::OpenBrace) => {
                self.open_block(reading, true);
                return None;
            }
            Some(_) => {
                match reading.stage {
                    Stage::Block => self.after_block(&reading.node),
                    Stage::Hidden => self.after_hidden(),
                    _ => {}
                }
                // The parser reads it like any other, so that it reports mistakes in it, and then drops it.
                let count = self.entries.len();
                let broken = self.now.broken;
                self.parse_entry(true, &reading.node.name);
                self.entries.truncate(count);
                self.now.broken = broken;
            }
        }
        Some(reading)
    }

    /// Gives the entries read so far to their node.
    pub(super) fn flush_entries(&mut self, node: &mut Node) {
        if let Some(last) = self.entries.last() {
            node.span.end = last.span.end;
            // The tree lives long, and has very many such lists: none keeps room that it does not need.
            node.entries.reserve_exact(self.entries.len());
            node.entries.append(&mut self.entries);
        }
        node.broken |= self.now.broken;
    }

    /// Ends a node; `cut` is the offset after the line break that ended it.
    fn finish_node(&mut self, mut reading: Reading, comment: Option<Span>, cut: Option<usize>) {
        self.flush_entries(&mut reading.node);
        if let Some(comment) = comment
            && reading.node.trailing.is_none()
            && self.is_one_line(&reading.node)
        {
            reading.node.trailing = Some(comment);
        }
        // A missing `}` is found at the node behind it: the comments read so far belong to that node.
        if reading.stage != Stage::Cut {
            self.comments.clear();
            self.breaks = u32::from(cut.is_some());
        }
        self.now = Now::default();
        if reading.hidden {
            return;
        }
        self.nodes.push(reading.node);
        if self.stack.is_empty() {
            self.cuts.push(cut.map(|cut| self.span(cut, cut).end));
        }
    }

    /// Whether the block of a node, if any, is on one line; other nodes count as one line, however long.
    fn is_one_line(&self, node: &Node) -> bool {
        let Some(block) = &node.children else { return true };
        let close = block.close.map_or(block.open.end, |close| close.start);
        block.nodes.len() < 2
            && chars::line_end(&self.text[..close as usize], block.open.end as usize) == close as usize
    }

    /// Starts the node at the current token.
    pub(super) fn start_node(&mut self, hidden: bool) -> Reading {
        self.now = Now::default();
        let comments = std::mem::take(&mut self.comments);
        let start = self.at;
        let annotation = if self.kind() == Some(TokenKind::OpenParen) { self.parse_annotation() } else { None };
        self.skip_space();
        let name = self.node_name();
        let mut node = empty_node(name, annotation);
        node.span.start = self.span(start, start).start;
        node.comments = comments;
        Reading { node, hidden, stage: Stage::Entries }
    }
}

/// A node with nothing but its name.
pub(super) fn empty_node(name: Name, annotation: Option<Box<Name>>) -> Node {
    let span = name.span;
    Node {
        name,
        annotation,
        entries: Vec::new(),
        children: None,
        span,
        broken: false,
        comments: Vec::new(),
        trailing: None,
    }
}
