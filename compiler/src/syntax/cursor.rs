//! Moving through the tokens: looking at them, taking them, and skipping the space between them.

use super::parse::Parser;
use super::problem::Problem;
use super::token::TokenKind;
use crate::source::Span;

impl<'t> Parser<'t> {
    pub(super) fn kind(&self) -> Option<TokenKind> {
        self.tokens.get(self.index).map(|token| token.kind)
    }

    pub(super) fn kind_after(&self, ahead: usize) -> Option<TokenKind> {
        self.tokens.get(self.index + ahead).map(|token| token.kind)
    }

    /// The current token as text; nothing at the end.
    pub(super) fn token_text(&self) -> &'t str {
        self.tokens.get(self.index).map_or("", |token| &self.text[self.at..token.end as usize])
    }

    /// The place of the current token; the end of the text when there is none.
    pub(super) fn token_span(&self) -> Span {
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
    pub(super) fn escline(&self, backslash: usize) -> Option<usize> {
        let mut index = backslash + 1;
        loop {
            match self.tokens.get(index).map(|token| token.kind) {
                Some(TokenKind::Space | TokenKind::BlockComment) => index += 1,
                // KDL takes the end of the text for the line break here.
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
    pub(super) fn parse_backslash(&mut self) {
        match self.escline(self.index) {
            Some(end) => {
                while self.index < end {
                    self.bump();
                }
            }
            None => {
                let here = self.token_span();
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
    pub(super) fn skip_space(&mut self) -> Option<Span> {
        let mut comment = None;
        loop {
            match self.kind() {
                Some(TokenKind::Space) => {}
                Some(TokenKind::BlockComment) => comment = Some(self.token_span()),
                Some(TokenKind::Backslash) if self.escline(self.index).is_some() => {
                    self.parse_backslash();
                    continue;
                }
                _ => return comment,
            }
            self.bump();
        }
    }

    /// Takes the space that may follow `/-`, line breaks included.
    pub(super) fn wide_space(&mut self) {
        loop {
            self.skip_space();
            match self.kind() {
                Some(TokenKind::Newline | TokenKind::LineComment) => self.bump(),
                Some(TokenKind::OpenComment) => self.open_comment(),
                _ => return,
            }
        }
    }

    pub(super) fn open_comment(&mut self) {
        let here = self.token_span();
        let mark = self.span(self.at, self.at + 2);
        self.problems.add(|| {
            let end = Span { start: here.end, ..here };
            Problem::new(mark, "this comment has no closing `*/`", "no `*/` follows")
                .help("write `*/` where the comment ends; a pattern of files such as `\"src/*\"` needs quotes")
                .unsafe_fix("write `*/` at the end", end, " */")
        });
        self.bump();
    }
}
