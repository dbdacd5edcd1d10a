//! What stands between nodes: space, comments, braces and what has no place there.
//!
//! Where braces do not match, indentation tells which one is missing or too many.

use super::parse::{Frame, Now, Parser, Reading, Stage, Step, empty_node};
use super::problem::Problem;
use super::string::forbidden_character;
use super::token::TokenKind;
use super::tree::{Block, Name, Node, ValueKind};
use crate::source::Span;

impl Parser<'_> {
    /// Takes what stands between nodes and starts the next one, or goes back to the node whose block ends.
    pub(super) fn parse_between_nodes(&mut self) -> Step {
        let mut dash: Option<Span> = None;
        loop {
            let Some(kind) = self.kind() else {
                self.nothing_hidden(dash);
                let Some(frame) = self.stack.pop() else { return Step::End };
                self.unclosed = self.unclosed.saturating_sub(1);
                return Step::Within(self.close_block(frame, None));
            };
            match kind {
                TokenKind::Space | TokenKind::Bom => self.bump(),
                TokenKind::Newline => {
                    self.breaks += 1;
                    // A comment above a blank line belongs to no node.
                    if self.breaks > 1 {
                        self.comments.clear();
                    }
                    self.bump();
                }
                TokenKind::LineComment | TokenKind::BlockComment => {
                    self.comments.push(self.token_span());
                    self.breaks = 0;
                    self.bump();
                }
                TokenKind::OpenComment => self.open_comment(),
                TokenKind::Backslash => self.parse_backslash(),
                TokenKind::Slashdash => {
                    self.double_dash(dash);
                    dash = Some(self.token_span());
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
                TokenKind::Stray if self.token_text() == "]" => self.stray_between(),
                TokenKind::Forbidden => self.skip_forbidden(),
                TokenKind::Keyword if self.is_hash_comment() => self.hash_comment(),
                _ => {
                    if let Some(step) = self.missing_close(dash) {
                        return step;
                    }
                    if let Some(line) = self.line {
                        self.indent = self.at - line;
                    }
                    return Step::Within(self.start_node(dash.is_some()));
                }
            }
        }
    }

    pub(super) fn nothing_hidden(&mut self, dash: Option<Span>) {
        if let Some(dash) = dash {
            self.problems.add(|| {
                Problem::new(dash, "nothing follows this `/-`", "comments out nothing")
                    .help("put it before a node, an argument, a property or a block, or remove it")
                    .unsafe_fix("remove it", dash, "")
            });
        }
    }

    pub(super) fn double_dash(&mut self, dash: Option<Span>) {
        if dash.is_some() {
            let here = self.token_span();
            self.problems.add(|| {
                Problem::new(here, "one `/-` comments out what follows; a second one means nothing", "a second `/-`")
                    .help("remove it")
                    .fix("remove it", here, "")
            });
        }
    }

    pub(super) fn skip_forbidden(&mut self) {
        let here = self.token_span();
        let text = self.text;
        self.problems.add(|| forbidden_character(text, here));
        self.bump();
    }

    /// A mark that means nothing between nodes.
    pub(super) fn stray_between(&mut self) {
        let here = self.token_span();
        let mark = self.token_text();
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
    pub(super) fn is_hash_comment(&self) -> bool {
        let word = self.token_text();
        word.bytes().all(|byte| byte == b'#')
            || self.line.is_some()
                && !matches!(word, "#true" | "#false" | "#null")
                && !matches!(self.kind_after(1), Some(TokenKind::OpenBrace | TokenKind::Equals))
    }

    pub(super) fn hash_comment(&mut self) {
        // Braces on this line were counted, and are not braces here.
        self.local = false;
        let here = self.token_span();
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
    pub(super) fn own_indent(&self) -> Option<usize> {
        self.line.map(|line| self.at - line)
    }

    pub(super) fn close_brace(&mut self) -> Option<Step> {
        let own = self.own_indent();
        let Some(frame) = self.stack.last() else {
            self.stray_close();
            return None;
        };
        // A `}` further left than this block closes one around it: this block lacks its own.
        if self.unclosed > 0 && own.is_some_and(|own| own < frame.indent) {
            return self.cut_off();
        }
        // A `}` further right than this block is the one too many.
        if self.surplus > 0 && own.is_some_and(|own| own > frame.indent) {
            self.stray_close();
            return None;
        }
        let frame = self.stack.pop()?;
        if let Some(own) = own {
            self.indent = own;
        }
        let close = self.token_span();
        self.bump();
        Some(Step::Within(self.close_block(frame, Some(close))))
    }

    /// A run of `}` that close nothing.
    pub(super) fn stray_close(&mut self) {
        self.local = false;
        let start = self.at;
        let mut count = 0;
        // Inside a block, the next `}` may be the one that closes it.
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
    pub(super) fn missing_close(&mut self, dash: Option<Span>) -> Option<Step> {
        if self.unclosed == 0 || dash.is_some() {
            return None;
        }
        let own = self.own_indent()?;
        if own > self.stack.last()?.indent { None } else { self.cut_off() }
    }

    /// Ends the innermost block, whose `}` is missing, before the current token.
    pub(super) fn cut_off(&mut self) -> Option<Step> {
        let frame = self.stack.pop()?;
        self.unclosed -= 1;
        Some(Step::Within(self.close_block(frame, None)))
    }

    /// Gives the read nodes to the node of the block that ends.
    pub(super) fn close_block(&mut self, frame: Frame, close: Option<Span>) -> Reading {
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

    pub(super) fn unclosed_block(&mut self, node: &Node, open: Span, indent: usize) {
        // How far the block goes depends on the lines behind it: no part of the file is read alone.
        self.local = false;
        let place = self.span(self.last, self.last);
        let name = format_headline(node);
        self.problems.add(|| {
            Problem::new(place, format!("the block of `{name}` has no closing `}}`"), "`}` is missing after this")
                .second_label(open, "the block starts here")
                .help("write `}` where the block ends")
                .unsafe_fix("write `}`", place, format!("\n{}}}", " ".repeat(indent.min(80))))
        });
    }

    /// A `{` where a node should start: the block of the node on the line before, or of none.
    pub(super) fn orphan_block(&mut self, hidden: bool) {
        self.local = false;
        let here = self.token_span();
        let earlier = self.nodes.last().is_some_and(|node| node.children.is_none() && !node.broken) && !hidden;
        let before = self.tokens[..self.index].iter().rev().map(|token| token.kind);
        let directly = before
            // Behind a `;` the node does not go on.
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
            // The node goes on, and gets its cut when it ends.
            if self.stack.is_empty() {
                self.cuts.pop();
            }
            let gap = Span { start: node.span.end, end: here.start, ..here };
            let name = node.name.text.clone();
            self.problems.add(|| {
                Problem::new(here, format!("the block of `{name}` starts on another line"), "belongs to no node here")
                    .second_label(node.name.span, "the node ends with its line")
                    .help(format!("write `{{` at the end of the line of `{name}`"))
                    .unsafe_fix("join the lines", gap, " ")
            });
            self.open_block(Reading { node, hidden: false, stage: Stage::Entries }, false);
            return;
        }
        self.problems.add(|| {
            Problem::new(here, "this block belongs to no node", "a name is missing before `{`")
                .help("write the name of a node before `{`")
        });
        let name = Name { text: "".into(), span: Span { end: here.start, ..here }, quoted: false };
        // Hidden, so that a block without a name becomes no node.
        self.open_block(Reading { node: empty_node(name, None), hidden: true, stage: Stage::Entries }, false);
    }

    /// Enters the block whose `{` is the current token.
    pub(super) fn open_block(&mut self, mut parent: Reading, hides: bool) {
        let open = self.token_span();
        self.flush_entries(&mut parent.node);
        let siblings = std::mem::take(&mut self.nodes);
        self.stack.push(Frame { parent, siblings, open, indent: self.indent, hides });
        self.bump();
        self.now = Now::default();
        self.comments.clear();
        self.breaks = 0;
        self.attach_open_comment();
    }

    /// A comment right behind `{` belongs to the node of the block.
    pub(super) fn attach_open_comment(&mut self) {
        if self.kind() == Some(TokenKind::Space) {
            self.bump();
        }
        let first = match self.kind() {
            Some(TokenKind::LineComment) => true,
            Some(TokenKind::BlockComment) => {
                // With more on its line, it belongs to the node that follows.
                let next = self.kind_after(1);
                next == Some(TokenKind::Newline)
                    || next == Some(TokenKind::Space) && self.kind_after(2) == Some(TokenKind::Newline)
            }
            _ => false,
        };
        if first {
            let here = self.token_span();
            if let Some(frame) = self.stack.last_mut() {
                frame.parent.node.trailing.get_or_insert(here);
            }
            self.bump();
        }
    }
}

/// The name of a node with its first argument, when that is short.
fn format_headline(node: &Node) -> String {
    let name = &node.name.text;
    match node.entries.first().map(|entry| (&entry.name, &entry.value.kind)) {
        Some((None, ValueKind::String(text))) if text.value.len() <= 40 && !text.value.contains(char::is_control) => {
            format!("{name} {}", text.value)
        }
        _ => name.to_string(),
    }
}
