//! The parser: tokens in, tree and problems out.
//!
//! Keeps its own stack, takes every token at most a fixed number of times, and goes on after everything that is wrong. Where
//! braces do not match, indentation tells which one is missing or too many.

use super::chars;
use super::lex::{self, Lexed, Limit};
use super::problem::{Problem, ProblemKind, Problems};
use super::string::{Strings, forbidden};
use super::token::{Token, TokenKind};
use super::tree::{Block, Entry, Name, Node, Tree, ValueKind};
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
        return (unread(text, too_large(text, file)), false);
    }
    if let Some(problem) = other_encoding(text, file) {
        return (unread(text, problem), false);
    }
    let lexed = lex::lex(text, from_start);
    if let Some(limit) = lexed.limit {
        let problem = too_deep(limit, file);
        let tree =
            Tree { nodes: Vec::new(), problems: vec![problem], tokens: lexed.tokens, cuts: Vec::new(), local: false };
        return (tree, false);
    }
    let mut parser = Parser::new(text, file, lexed);
    parser.run();
    let ends_whole = parser.cuts.last().is_some_and(|cut| cut.is_some_and(|cut| cut as usize == text.len()));
    let tree = Tree {
        nodes: parser.nodes,
        problems: parser.problems.sorted(),
        tokens: parser.tokens,
        cuts: parser.cuts,
        local: parser.local,
    };
    let independent = ends_whole && tree.local;
    (tree, independent)
}

/// A tree of nothing but a problem.
fn unread(text: &str, problem: Problem) -> Tree {
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
    line: Option<usize>,
    /// The indentation of the last line that a node or `}` starts.
    indent: usize,
    pub(super) strings: Strings<'t>,
    pub(super) problems: Problems,
    /// The entries of the node being read.
    pub(super) entries: Vec<Entry>,
    /// The nodes read so far on the current level.
    nodes: Vec<Node>,
    stack: Vec<Frame>,
    cuts: Vec<Option<u32>>,
    /// The comments above what comes next.
    comments: Vec<Span>,
    /// How many line breaks came after the last comment.
    breaks: u32,
    /// How many `{` without `}` and `}` without `{` are still to be found.
    unclosed: u32,
    surplus: u32,
    /// Whether nothing so far depends on what stands far away.
    local: bool,
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
struct Frame {
    parent: Reading,
    siblings: Vec<Node>,
    open: Span,
    /// The indentation of the line of the node.
    indent: usize,
    /// Whether the block is commented out.
    hides: bool,
}

/// A node being read.
struct Reading {
    node: Node,
    /// Whether the node is commented out.
    hidden: bool,
    stage: Stage,
}

/// How far a node is read.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Stage {
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
enum Step {
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

    fn run(&mut self) {
        while let Step::Within(reading) = self.between() {
            self.within(reading);
        }
    }

    pub(super) fn kind(&self) -> Option<TokenKind> {
        self.tokens.get(self.index).map(|token| token.kind)
    }

    pub(super) fn kind_after(&self, ahead: usize) -> Option<TokenKind> {
        self.tokens.get(self.index + ahead).map(|token| token.kind)
    }

    /// The current token as text; nothing at the end.
    pub(super) fn written(&self) -> &'t str {
        self.tokens.get(self.index).map_or("", |token| &self.text[self.at..token.end as usize])
    }

    /// The place of the current token; the end of the text when there is none.
    pub(super) fn here(&self) -> Span {
        self.span(self.at, self.tokens.get(self.index).map_or(self.at, |token| token.end as usize))
    }

    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        let offset = |at| u32::try_from(at).expect("files are under 16 MiB");
        Span::new(self.file, offset(start), offset(end))
    }

    /// Takes the current token.
    pub(super) fn bump(&mut self) {
        let Some(token) = self.tokens.get(self.index) else { return };
        let end = token.end as usize;
        match token.kind {
            TokenKind::Newline => self.line = Some(end),
            TokenKind::Space | TokenKind::Bom => {}
            TokenKind::LineComment | TokenKind::BlockComment | TokenKind::OpenComment => self.line = None,
            _ => {
                self.line = None;
                self.last = end;
            }
        }
        self.at = end;
        self.index += 1;
    }

    /// The index after the escaped line break that starts at a backslash.
    fn escline(&self, backslash: usize) -> Option<usize> {
        let mut index = backslash + 1;
        loop {
            match self.tokens.get(index).map(|token| token.kind) {
                Some(TokenKind::Space | TokenKind::BlockComment) => index += 1,
                None => return Some(index),
                Some(TokenKind::Newline) => return Some(index + 1),
                Some(TokenKind::LineComment) => {
                    let newline = self.tokens.get(index + 1).is_some_and(|token| token.kind == TokenKind::Newline);
                    return Some(index + 1 + usize::from(newline));
                }
                _ => return None,
            }
        }
    }

    /// Takes an escaped line break, or complains about the backslash.
    fn backslash(&mut self) {
        match self.escline(self.index) {
            Some(end) => {
                while self.index < end {
                    self.bump();
                }
            }
            None => {
                let here = self.here();
                self.problems.add(|| {
                    Problem::new(here, "a `\\` between values only continues a line", "no line break follows")
                        .help("remove it, or put the text that has it in quotes")
                });
                self.now.broken = true;
                self.bump();
            }
        }
    }

    /// The index of the next token after space within a node.
    pub(super) fn after_space(&self) -> usize {
        let mut index = self.index;
        loop {
            match self.tokens.get(index).map(|token| token.kind) {
                Some(TokenKind::Space | TokenKind::BlockComment) => index += 1,
                Some(TokenKind::Backslash) => match self.escline(index) {
                    Some(end) => index = end,
                    None => return index,
                },
                _ => return index,
            }
        }
    }

    /// Takes the space within a node; gives the last comment in it.
    pub(super) fn space(&mut self) -> Option<Span> {
        let mut comment = None;
        loop {
            match self.kind() {
                Some(TokenKind::Space) => {}
                Some(TokenKind::BlockComment) => comment = Some(self.here()),
                Some(TokenKind::Backslash) if self.escline(self.index).is_some() => {
                    self.backslash();
                    continue;
                }
                _ => return comment,
            }
            self.bump();
        }
    }

    /// Takes the space that may follow `/-`, line breaks included.
    fn wide_space(&mut self) {
        loop {
            self.space();
            match self.kind() {
                Some(TokenKind::Newline | TokenKind::LineComment) => self.bump(),
                Some(TokenKind::OpenComment) => self.open_comment(),
                _ => return,
            }
        }
    }

    fn open_comment(&mut self) {
        let here = self.here();
        let mark = self.span(self.at, self.at + 2);
        self.problems.add(|| {
            let end = Span { start: here.end, ..here };
            Problem::new(mark, "this comment has no closing `*/`", "no `*/` follows")
                .help("write `*/` where the comment ends; a pattern of files such as `\"src/*\"` needs quotes")
                .unsafe_fix("write `*/` at the end", end, " */")
        });
        self.bump();
    }

    /// Takes what stands between nodes and starts the next one, or goes back to the node whose block ends.
    fn between(&mut self) -> Step {
        let mut dash: Option<Span> = None;
        loop {
            let Some(kind) = self.kind() else {
                self.nothing_hidden(dash);
                let Some(frame) = self.stack.pop() else { return Step::End };
                self.unclosed = self.unclosed.saturating_sub(1);
                return Step::Within(self.close(frame, None));
            };
            match kind {
                TokenKind::Space | TokenKind::Bom => self.bump(),
                TokenKind::Newline => {
                    self.breaks += 1;
                    if self.breaks > 1 {
                        self.comments.clear();
                    }
                    self.bump();
                }
                TokenKind::LineComment | TokenKind::BlockComment => {
                    self.comments.push(self.here());
                    self.breaks = 0;
                    self.bump();
                }
                TokenKind::OpenComment => self.open_comment(),
                TokenKind::Backslash => self.backslash(),
                TokenKind::Slashdash => {
                    self.double_dash(dash);
                    dash = Some(self.here());
                    self.comments.clear();
                    self.bump();
                }
                TokenKind::CloseBrace => {
                    self.nothing_hidden(dash.take());
                    if let Some(step) = self.close_brace() {
                        return step;
                    }
                }
                TokenKind::OpenBrace => {
                    self.orphan_block(dash.take().is_some());
                }
                TokenKind::Semicolon | TokenKind::CloseParen | TokenKind::Equals => self.stray_between(),
                TokenKind::Stray if self.written() == "]" => self.stray_between(),
                TokenKind::Forbidden => self.forbidden(),
                TokenKind::Keyword if self.is_hash_comment() => self.hash_comment(),
                _ => {
                    if let Some(step) = self.missing_close(dash) {
                        return step;
                    }
                    if let Some(line) = self.line {
                        self.indent = self.at - line;
                    }
                    return Step::Within(self.node(dash.is_some()));
                }
            }
        }
    }

    fn nothing_hidden(&mut self, dash: Option<Span>) {
        if let Some(dash) = dash {
            self.problems.add(|| {
                Problem::new(dash, "nothing follows this `/-`", "comments out nothing")
                    .help("put it before a node, an argument, a property or a block, or remove it")
                    .unsafe_fix("remove it", dash, "")
            });
        }
    }

    fn double_dash(&mut self, dash: Option<Span>) {
        if dash.is_some() {
            let here = self.here();
            self.problems.add(|| {
                Problem::new(here, "one `/-` comments out what follows; a second one means nothing", "a second `/-`")
                    .help("remove it")
                    .fix("remove it", here, "")
            });
        }
    }

    pub(super) fn forbidden(&mut self) {
        let here = self.here();
        let text = self.text;
        self.problems.add(|| forbidden(text, here));
        self.bump();
    }

    /// A mark that means nothing between nodes.
    fn stray_between(&mut self) {
        let here = self.here();
        let mark = self.written();
        self.problems.add(|| {
            let problem = match mark {
                ";" => Problem::new(here, "no node stands before this `;`", "ends nothing"),
                "=" => Problem::new(here, "no name stands before this `=`", "belongs to no property"),
                _ => Problem::new(here, format!("this `{mark}` closes nothing"), "nothing is open"),
            };
            problem.help("remove it").unsafe_fix("remove it", here, "")
        });
        self.bump();
    }

    /// `# …`, a comment in other languages.
    fn is_hash_comment(&self) -> bool {
        let word = self.written();
        word.bytes().all(|byte| byte == b'#')
            || self.line.is_some()
                && !matches!(word, "#true" | "#false" | "#null")
                && !matches!(self.kind_after(1), Some(TokenKind::OpenBrace | TokenKind::Equals))
    }

    fn hash_comment(&mut self) {
        // Braces on this line were counted, and are not braces here.
        self.local = false;
        let here = self.here();
        self.problems.add(|| {
            let mark = Span { end: here.start + 1, ..here };
            Problem::new(mark, "a comment starts with `//`", "not with `#`").help("write `//`").fix(
                "write `//`",
                mark,
                "//",
            )
        });
        while !matches!(self.kind(), None | Some(TokenKind::Newline)) {
            self.bump();
        }
    }

    /// The indentation of the current token, when it is the first of its line.
    fn own_indent(&self) -> Option<usize> {
        self.line.map(|line| self.at - line)
    }

    fn close_brace(&mut self) -> Option<Step> {
        let own = self.own_indent();
        let Some(frame) = self.stack.last() else {
            self.stray_close();
            return None;
        };
        if self.unclosed > 0 && own.is_some_and(|own| own < frame.indent) {
            return self.cut_off();
        }
        if self.surplus > 0 && own.is_some_and(|own| own > frame.indent) {
            self.stray_close();
            return None;
        }
        let frame = self.stack.pop()?;
        if let Some(own) = own {
            self.indent = own;
        }
        let close = self.here();
        self.bump();
        Some(Step::Within(self.close(frame, Some(close))))
    }

    /// A run of `}` that close nothing.
    fn stray_close(&mut self) {
        self.local = false;
        let start = self.at;
        let mut count = 0;
        while self.kind() == Some(TokenKind::CloseBrace) && (count == 0 || self.stack.is_empty()) {
            self.surplus = self.surplus.saturating_sub(1);
            count += 1;
            self.bump();
        }
        let span = self.span(start, self.at);
        self.problems.add(|| {
            let message = if count == 1 { "this `}` closes nothing" } else { "these `}` close nothing" };
            Problem::new(span, message, "no `{` is open").help("remove it, or add the `{` it belongs to").unsafe_fix(
                "remove it",
                span,
                "",
            )
        });
        // A stray brace takes a line of its own or the end of one: what follows starts a node.
        self.comments.clear();
    }

    /// Whether the node that starts here stands too far left to belong to the innermost block, while a `}` is missing.
    fn missing_close(&mut self, dash: Option<Span>) -> Option<Step> {
        if self.unclosed == 0 || dash.is_some() {
            return None;
        }
        let own = self.own_indent()?;
        if own > self.stack.last()?.indent { None } else { self.cut_off() }
    }

    /// Ends the innermost block, whose `}` is missing, before the current token.
    fn cut_off(&mut self) -> Option<Step> {
        let frame = self.stack.pop()?;
        self.unclosed -= 1;
        Some(Step::Within(self.close(frame, None)))
    }

    /// Gives the read nodes to the node of the block that ends.
    fn close(&mut self, frame: Frame, close: Option<Span>) -> Reading {
        let Frame { mut parent, siblings, open, indent, hides } = frame;
        let nodes = std::mem::replace(&mut self.nodes, siblings);
        if close.is_none() {
            self.unclosed_block(&parent.node, open, indent);
        } else {
            self.comments.clear();
        }
        let end = close.map_or(self.last.max(open.end as usize), |close| close.end as usize);
        if hides {
            parent.stage = if parent.stage == Stage::Entries { Stage::Hidden } else { parent.stage };
        } else {
            parent.node.span.end = self.span(end, end).end;
            parent.node.children = Some(Block { nodes, open, close });
            parent.stage = Stage::Block;
        }
        if close.is_none() {
            parent.stage = Stage::Cut;
        }
        self.now = Now::default();
        parent
    }

    fn unclosed_block(&mut self, node: &Node, open: Span, indent: usize) {
        self.local = false;
        let place = self.span(self.last, self.last);
        let name = headline(node);
        self.problems.add(|| {
            Problem::new(place, format!("the block of `{name}` has no closing `}}`"), "`}` is missing after this")
                .second(open, "the block starts here")
                .help("write `}` where the block ends")
                .unsafe_fix("write `}`", place, format!("\n{}}}", " ".repeat(indent.min(80))))
        });
    }

    /// A `{` where a node should start: the block of the node on the line before, or of none.
    fn orphan_block(&mut self, hidden: bool) {
        self.local = false;
        let here = self.here();
        let earlier = self.nodes.last().is_some_and(|node| node.children.is_none() && !node.broken) && !hidden;
        let before = self.tokens[..self.index].iter().rev().map(|token| token.kind);
        let directly = before
            .take_while(|kind| *kind != TokenKind::Semicolon)
            .find(|kind| !matches!(kind, TokenKind::Space | TokenKind::Newline))
            .is_some_and(|kind| {
                !matches!(kind, TokenKind::LineComment | TokenKind::BlockComment | TokenKind::CloseBrace)
            });
        if earlier
            && directly
            && self.comments.is_empty()
            && self.line.is_some()
            && let Some(node) = self.nodes.pop()
        {
            if self.stack.is_empty() {
                self.cuts.pop();
            }
            let gap = Span { start: node.span.end, end: here.start, ..here };
            let name = node.name.text.clone();
            self.problems.add(|| {
                Problem::new(here, format!("the block of `{name}` starts on another line"), "belongs to no node here")
                    .second(node.name.span, "the node ends with its line")
                    .help(format!("write `{{` at the end of the line of `{name}`"))
                    .unsafe_fix("join the lines", gap, " ")
            });
            self.open(Reading { node, hidden: false, stage: Stage::Entries }, false);
            return;
        }
        self.problems.add(|| {
            Problem::new(here, "this block belongs to no node", "a name is missing before `{`")
                .help("write the name of a node before `{`")
        });
        let name = Name { text: "".into(), span: Span { end: here.start, ..here }, quoted: false };
        self.open(Reading { node: empty_node(name, None), hidden: true, stage: Stage::Entries }, false);
    }

    /// Enters the block whose `{` is the current token.
    fn open(&mut self, mut parent: Reading, hides: bool) {
        let open = self.here();
        self.flush(&mut parent.node);
        let siblings = std::mem::take(&mut self.nodes);
        self.stack.push(Frame { parent, siblings, open, indent: self.indent, hides });
        self.bump();
        self.now = Now::default();
        self.comments.clear();
        self.breaks = 0;
        self.opened();
    }

    /// A comment right behind `{` belongs to the node of the block.
    fn opened(&mut self) {
        if self.kind() == Some(TokenKind::Space) {
            self.bump();
        }
        let first = match self.kind() {
            Some(TokenKind::LineComment) => true,
            Some(TokenKind::BlockComment) => {
                let next = self.kind_after(1);
                next == Some(TokenKind::Newline)
                    || next == Some(TokenKind::Space) && self.kind_after(2) == Some(TokenKind::Newline)
            }
            _ => false,
        };
        if first {
            let here = self.here();
            if let Some(frame) = self.stack.last_mut() {
                frame.parent.node.trailing.get_or_insert(here);
            }
            self.bump();
        }
    }

    /// Reads on in a node to its end or into its block.
    fn within(&mut self, mut reading: Reading) {
        if reading.stage == Stage::Cut {
            return self.finish(reading, None, None);
        }
        loop {
            let before = self.index;
            let comment = self.space();
            let spaced = self.index > before;
            match self.kind() {
                None | Some(TokenKind::CloseBrace) => return self.finish(reading, comment, None),
                Some(TokenKind::Newline) => {
                    self.bump();
                    return self.finish(reading, comment, Some(self.at));
                }
                Some(TokenKind::Semicolon) => {
                    self.bump();
                    return self.finish(reading, None, None);
                }
                Some(TokenKind::LineComment) => {
                    let comment = self.here();
                    self.bump();
                    let newline = self.kind() == Some(TokenKind::Newline);
                    if newline {
                        self.bump();
                    }
                    return self.finish(reading, Some(comment), newline.then_some(self.at));
                }
                Some(TokenKind::OpenComment) => self.open_comment(),
                Some(TokenKind::OpenBrace) if reading.stage == Stage::Block => return self.finish(reading, None, None),
                Some(TokenKind::OpenBrace) => return self.open(reading, false),
                Some(TokenKind::Slashdash) => match self.hide(reading, spaced) {
                    Some(back) => reading = back,
                    None => return,
                },
                Some(_) if reading.stage == Stage::Block => {
                    self.after_block(&reading.node);
                    return self.finish(reading, None, None);
                }
                Some(_) => {
                    if reading.stage == Stage::Hidden {
                        self.after_hidden();
                    }
                    self.entry(spaced, &reading.node.name);
                }
            }
        }
    }

    /// Something stands behind the block of a node.
    fn after_block(&mut self, node: &Node) {
        let here = self.here();
        let name = &node.name.text;
        let between = self.span(node.span.end as usize, self.at);
        self.problems.add(|| {
            Problem::new(here, format!("the block of `{name}` ends the node"), "behind the block")
                .help("start the next node on a line of its own, or write `;` before it")
                .unsafe_fix("start a new line", between, "\n")
        });
    }

    /// Something other than a block stands behind a commented-out one; told once for a node.
    fn after_hidden(&mut self) {
        let here = self.here();
        if !std::mem::replace(&mut self.now.misplaced, true) {
            self.problems.add(|| {
                Problem::new(here, "arguments and properties stand before every block", "behind a commented-out block")
                    .help("move it before the block, the commented-out one included")
            });
        }
    }

    /// Reads `/-` and what it hides; nothing is given back when that is a block, whose reading then goes on.
    fn hide(&mut self, reading: Reading, spaced: bool) -> Option<Reading> {
        let dash = self.here();
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
                self.open(reading, true);
                return None;
            }
            Some(_) => {
                match reading.stage {
                    Stage::Block => self.after_block(&reading.node),
                    Stage::Hidden => self.after_hidden(),
                    _ => {}
                }
                let count = self.entries.len();
                let broken = self.now.broken;
                self.entry(true, &reading.node.name);
                self.entries.truncate(count);
                self.now.broken = broken;
            }
        }
        Some(reading)
    }

    /// Gives the entries read so far to their node.
    fn flush(&mut self, node: &mut Node) {
        if let Some(last) = self.entries.last() {
            node.span.end = last.span.end;
            node.entries.reserve_exact(self.entries.len());
            node.entries.append(&mut self.entries);
        }
        node.broken |= self.now.broken;
    }

    /// Ends a node; `cut` is the offset after the line break that ended it.
    fn finish(&mut self, mut reading: Reading, comment: Option<Span>, cut: Option<usize>) {
        self.flush(&mut reading.node);
        if let Some(comment) = comment
            && reading.node.trailing.is_none()
            && self.is_one_line(&reading.node)
        {
            reading.node.trailing = Some(comment);
        }
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
    fn node(&mut self, hidden: bool) -> Reading {
        self.now = Now::default();
        let comments = std::mem::take(&mut self.comments);
        let start = self.at;
        let annotation = if self.kind() == Some(TokenKind::OpenParen) { self.annotation() } else { None };
        self.space();
        let name = self.node_name();
        let mut node = empty_node(name, annotation);
        node.span.start = self.span(start, start).start;
        node.comments = comments;
        Reading { node, hidden, stage: Stage::Entries }
    }
}

/// The name of a node with its first argument, when that is short.
fn headline(node: &Node) -> String {
    let name = &node.name.text;
    match node.entries.first().map(|entry| (&entry.name, &entry.value.kind)) {
        Some((None, ValueKind::String(text))) if text.value.len() <= 40 && !text.value.contains(char::is_control) => {
            format!("{name} {}", text.value)
        }
        _ => name.to_string(),
    }
}

/// A node with nothing but its name.
fn empty_node(name: Name, annotation: Option<Box<Name>>) -> Node {
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
