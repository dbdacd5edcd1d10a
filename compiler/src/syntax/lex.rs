//! The lexer: text in, tokens that cover every byte out.
//!
//! Iterative and linear: what is looked at twice is bounded, and a string or comment without its end stops where it seems
//! to. Braces are counted here, so that the parser knows beforehand whether one is missing or one too many.

use memchr::{memchr, memchr2, memrchr2};

use super::chars::{self, CLASSES, Class, STOPS};
use super::token::{Token, TokenKind};

/// How deep blocks may nest.
pub(super) const MAX_DEPTH: u32 = 128;
/// How deep block comments may nest.
pub(super) const MAX_COMMENT_DEPTH: u32 = 64;
/// How many multi-line raw strings may turn out to have no end before no further end is looked for: their different numbers
/// of `#` would make every search go through the whole rest of the text.
const MAX_OPEN_RAW: u32 = 8;

/// The tokens of a text and what was learnt on the way.
pub(super) struct Lexed {
    /// Every byte of the text, in order.
    pub(super) tokens: Vec<Token>,
    /// How many `{` have no `}`.
    pub(super) unclosed: u32,
    /// How many `}` have no `{`.
    pub(super) surplus: u32,
    /// A limit that is passed: nothing after it is split into tokens.
    pub(super) limit: Option<Limit>,
    /// Whether the extent of a token depends on what stands behind the end that it should have.
    pub(super) looked_far: bool,
}

/// A limit that a text passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// Blocks nest too deep; the `{`.
    Depth(u32),
    /// Comments nest too deep; the `/*`.
    CommentDepth(u32),
}

/// Splits a text into tokens; `from_start` says whether a byte order mark may come first.
pub(super) fn lex(text: &str, from_start: bool) -> Lexed {
    let mut lexer = Lexer {
        text,
        bytes: text.as_bytes(),
        at: 0,
        tokens: Vec::with_capacity(text.len() / 5 + 8),
        depth: 0,
        surplus: 0,
        limit: None,
        looked_far: false,
        lines_open: false,
        raw_open: 0,
        raw_open_hashes: usize::MAX,
    };
    if from_start && text.starts_with('\u{FEFF}') {
        lexer.push(TokenKind::Bom, 3);
    }
    // Every call takes a byte at least or sets the limit, so the loop ends.
    while lexer.at < text.len() && lexer.limit.is_none() {
        lexer.lex_token();
    }
    // Behind a limit, one token takes the rest, as every byte belongs to a token.
    if lexer.at < text.len() {
        lexer.push(TokenKind::Stray, text.len());
    }
    let Lexer { tokens, depth, surplus, limit, looked_far, .. } = lexer;
    Lexed { tokens, unclosed: depth, surplus, limit, looked_far }
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    tokens: Vec<Token>,
    depth: u32,
    surplus: u32,
    limit: Option<Limit>,
    looked_far: bool,
    /// A `"""` without end was met: no later one has an end either.
    lines_open: bool,
    /// The number of `#"""` without end.
    raw_open: u32,
    /// The fewest `#` of one without end: none with as many has an end either.
    raw_open_hashes: usize,
}

impl Lexer<'_> {
    fn push(&mut self, kind: TokenKind, end: usize) {
        self.push_plain(kind, end, false);
    }

    fn push_plain(&mut self, kind: TokenKind, end: usize, plain: bool) {
        debug_assert!(end > self.at, "tokens are never empty");
        self.tokens.push(Token { kind, end: span_offset(end), plain });
        self.at = end;
    }

    fn byte_at(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn lex_token(&mut self) {
        let byte = self.bytes[self.at];
        match CLASSES[byte as usize] {
            Class::Word => self.lex_word(self.at + 1, byte.is_ascii_alphabetic() || byte == b'_'),
            Class::Space => self.lex_space(self.at + 1),
            Class::Newline => {
                let crlf = byte == b'\r' && self.byte_at(self.at + 1) == Some(b'\n');
                self.push(TokenKind::Newline, self.at + if crlf { 2 } else { 1 });
            }
            Class::Mark => self.lex_mark(byte),
            Class::Forbidden => self.lex_forbidden(),
            Class::Unsure => match chars::class_at(self.text, self.at) {
                Some((Class::Space, length)) => self.lex_space(self.at + length),
                Some((Class::Newline, length)) => self.push(TokenKind::Newline, self.at + length),
                Some((Class::Forbidden, _)) => self.lex_forbidden(),
                Some((_, length)) => self.lex_word(self.at + length, true),
                // Not reached: `at` lies in the text, and a character starts there.
                None => {}
            },
        }
    }

    fn lex_mark(&mut self, byte: u8) {
        let next = self.byte_at(self.at + 1);
        let kind = match byte {
            b'"' => return self.lex_quoted(),
            b'#' => return self.lex_hash(),
            b'/' if next == Some(b'/') => {
                return self.push(TokenKind::LineComment, chars::line_end(self.text, self.at));
            }
            b'/' if next == Some(b'*') => return self.block_comment(),
            b'/' if next == Some(b'-') => return self.push(TokenKind::Slashdash, self.at + 2),
            b'{' => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    self.limit = Some(Limit::Depth(span_offset(self.at)));
                }
                TokenKind::OpenBrace
            }
            b'}' => {
                match self.depth.checked_sub(1) {
                    Some(depth) => self.depth = depth,
                    None => self.surplus += 1,
                }
                TokenKind::CloseBrace
            }
            b'\\' => TokenKind::Backslash,
            b'(' => TokenKind::OpenParen,
            b')' => TokenKind::CloseParen,
            b'=' => TokenKind::Equals,
            b';' => TokenKind::Semicolon,
            _ => TokenKind::Stray,
        };
        self.push(kind, self.at + 1);
    }

    fn lex_space(&mut self, from: usize) {
        let mut at = from;
        while let Some(b' ' | b'\t') = self.byte_at(at) {
            at += 1;
        }
        // Nearly all white space is ASCII: the slower search is for the rest.
        if self.byte_at(at).is_some_and(|byte| byte >= 0x80) {
            at = chars::skip_class(self.text, at, Class::Space);
        }
        self.push(TokenKind::Space, at);
    }

    fn lex_forbidden(&mut self) {
        let end = chars::skip_class(self.text, self.at, Class::Forbidden);
        self.push(TokenKind::Forbidden, end);
    }

    fn lex_word(&mut self, from: usize, plain: bool) {
        let start = self.at;
        let end = self.word_end(from);
        let legacy = end == start + 1 && self.bytes[start] == b'r';
        if legacy && matches!(self.byte_at(end), Some(b'"' | b'#')) && self.legacy_raw(end) {
            return;
        }
        self.push_plain(TokenKind::Bare, end, plain);
    }

    fn word_end(&self, mut at: usize) -> usize {
        loop {
            while let Some(byte) = self.byte_at(at)
                && CLASSES[byte as usize] == Class::Word
            {
                at += 1;
            }
            match self.byte_at(at).map(|byte| CLASSES[byte as usize]) {
                Some(Class::Unsure) => match chars::class_at(self.text, at) {
                    Some((Class::Word, length)) => at += length,
                    _ => return at,
                },
                _ => return at,
            }
        }
    }

    // A raw string or a keyword.
    fn lex_hash(&mut self) {
        let start = self.at;
        let quote = start + self.bytes[start..].iter().take_while(|&&byte| byte == b'#').count();
        if self.byte_at(quote) == Some(b'"') {
            self.lex_raw(quote, quote - start);
        } else {
            self.push(TokenKind::Keyword, self.word_end(quote));
        }
    }

    fn lex_quoted(&mut self) {
        let start = self.at;
        if self.bytes[start..].starts_with(b"\"\"\"") {
            return self.lex_lines();
        }
        let mut at = start + 1;
        let mut plain = true;
        loop {
            while let Some(byte) = self.byte_at(at)
                && !STOPS[byte as usize]
            {
                at += 1;
            }
            match self.byte_at(at) {
                None => return self.without_end(at),
                Some(b'"') => return self.push_plain(TokenKind::Quoted, at + 1, plain),
                Some(b'\\') => {
                    plain = false;
                    at = escape_end(self.text, at);
                }
                Some(_) => match chars::class_at(self.text, at) {
                    Some((Class::Newline, _)) => return self.without_end(at),
                    Some((class, length)) => {
                        plain &= class != Class::Forbidden;
                        at += length;
                    }
                    None => at += 1,
                },
            }
        }
    }

    /// A string that must end on its line and does not; `line_end` is the line's. When the next quote looks like its end, it
    /// was meant to have several lines.
    fn without_end(&mut self, line_end: usize) {
        let hashes = self.bytes[self.at..].iter().take_while(|&&byte| byte == b'#').count();
        self.looked_far = true;
        // No other string starts before this quote, so each stretch of the text is searched once.
        let Some(quote) = memchr(b'"', &self.bytes[line_end..]).map(|found| line_end + found) else {
            return self.open_string(line_end);
        };
        let line = &self.text[line_end..quote];
        let line = &line[line.rfind(['\n', '\r']).map_or(0, |newline| newline + 1)..];
        // A quote behind these begins another string.
        let opens = line.ends_with([' ', '\t', '=', '(', '{', '#', '\\', ';']) && !chars::is_blank(line);
        let closes = self.bytes[quote + 1..].iter().take_while(|&&byte| byte == b'#').count() == hashes;
        let end = quote + 1 + if closes { hashes } else { 0 };
        let ends = matches!(chars::class_at(self.text, end), None | Some((Class::Space | Class::Newline, _)))
            || matches!(self.byte_at(end), Some(b';' | b'}' | b')'));
        if closes && ends && !opens {
            self.push(TokenKind::BrokenLines, end);
        } else {
            self.open_string(line_end);
        }
    }

    /// An unclosed string up to the end of its line, without the braces that stand there.
    fn open_string(&mut self, line_end: usize) {
        let line = self.text[self.at..line_end].trim_end();
        let kept = line.trim_end_matches(['{', '}', ';', ' ', '\t']);
        let tail = &line[kept.len()..];
        let braces = tail.starts_with([' ', '\t']) && tail.contains(['{', '}']);
        let length = if braces && kept.len() > 1 { kept.len() } else { line.len() };
        self.push(TokenKind::OpenString, self.at + length);
    }

    fn lex_lines(&mut self) {
        // An escape may lead behind the text or into a character: from here on only bytes are looked at.
        let mut at = self.at + 3;
        while !self.lines_open
            && let Some(found) = self.bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest))
        {
            at += found;
            if self.bytes[at] == b'\\' {
                at += 2;
            } else if self.bytes[at..].starts_with(b"\"\"\"") {
                return self.push(TokenKind::Lines, at + 3);
            } else {
                at += 1;
            }
        }
        self.lines_open = true;
        self.open_lines();
    }

    fn lex_raw(&mut self, quote: usize, hashes: usize) {
        let triple = self.bytes[quote..].starts_with(b"\"\"\"");
        if triple && matches!(chars::class_at(self.text, quote + 3), Some((Class::Newline, _))) {
            return match self.raw_end(quote + 3, b"\"\"\"", hashes) {
                Some(end) => self.push(TokenKind::RawLines, end),
                None => self.open_lines(),
            };
        }
        let mut at = quote + 1;
        loop {
            // Only up to the next quote, as a line may hold any number of strings.
            let found = memchr(b'"', &self.bytes[at..]).map(|found| at + found);
            let stretch = found.unwrap_or(self.bytes.len());
            let line_end = chars::line_end(&self.text[..stretch], at);
            let Some(found) = found.filter(|_| line_end == stretch) else { return self.without_end(line_end) };
            at = found + 1;
            let count = self.bytes[at..].iter().take(hashes).take_while(|&&byte| byte == b'#').count();
            if count == hashes {
                return self.push(TokenKind::Raw, at + hashes);
            }
            at += count;
        }
    }

    /// The offset after the first `quotes` with `hashes` times `#` behind.
    fn raw_end(&mut self, from: usize, quotes: &[u8], hashes: usize) -> Option<usize> {
        if hashes >= self.raw_open_hashes || self.raw_open >= MAX_OPEN_RAW {
            return None;
        }
        let mut at = from;
        while let Some(found) = self.bytes.get(at..).and_then(|rest| memchr(b'"', rest)) {
            at += found;
            if !self.bytes[at..].starts_with(quotes) {
                at += 1;
                continue;
            }
            let tail = &self.bytes[at + quotes.len()..];
            let count = tail.iter().take(hashes).take_while(|&&byte| byte == b'#').count();
            if count == hashes {
                return Some(at + quotes.len() + hashes);
            }
            at += 1;
        }
        self.raw_open_hashes = hashes;
        self.raw_open += 1;
        None
    }

    /// A multi-line string without its end: it stops before the first line that is indented no deeper than its own.
    fn open_lines(&mut self) {
        self.looked_far = true;
        // The token takes its line to the end, so no line is searched back twice.
        let line = memrchr2(b'\n', b'\r', &self.bytes[..self.at]).map_or(0, |newline| newline + 1);
        let indent = chars::skip_class(self.text, line, Class::Space) - line;
        let mut end = chars::line_end(self.text, self.at);
        let mut last = end;
        while let Some((Class::Newline, length)) = chars::class_at(self.text, end) {
            let start = end + length;
            let word = chars::skip_class(self.text, start, Class::Space);
            end = chars::line_end(self.text, word);
            if word == end {
                continue;
            }
            if word - start <= indent {
                break;
            }
            last = end;
        }
        self.push(TokenKind::OpenString, last);
    }

    /// `r"…"` and `r#"…"#`; whether it is one.
    fn legacy_raw(&mut self, from: usize) -> bool {
        let hashes = self.bytes[from..].iter().take_while(|&&byte| byte == b'#').count();
        if self.byte_at(from + hashes) != Some(b'"') {
            return false;
        }
        match self.raw_end(from + hashes + 1, b"\"", hashes) {
            Some(end) => self.push(TokenKind::LegacyRaw, end),
            None => {
                self.looked_far = true;
                self.open_string(chars::line_end(self.text, from));
            }
        }
        true
    }

    fn block_comment(&mut self) {
        let start = self.at;
        let mut at = start + 2;
        let mut depth = 1;
        // Comments without an end nest in each other: the limit of depth bounds how many search the rest of the text.
        while let Some(found) = self.bytes.get(at..).and_then(|rest| memchr2(b'*', b'/', rest)) {
            at += found;
            match (self.bytes[at], self.byte_at(at + 1)) {
                (b'*', Some(b'/')) => {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        return self.push(TokenKind::BlockComment, at);
                    }
                }
                (b'/', Some(b'*')) => {
                    depth += 1;
                    if depth > MAX_COMMENT_DEPTH {
                        self.limit = Some(Limit::CommentDepth(span_offset(at)));
                        return;
                    }
                    at += 2;
                }
                _ => at += 1,
            }
        }
        self.open_comment();
    }

    /// A comment without its end: it stops at the first blank line. Behind a word it is no comment but a pattern of paths, as
    /// in `src/**`.
    fn open_comment(&mut self) {
        self.looked_far = true;
        if self.tokens.last().is_some_and(|token| matches!(token.kind, TokenKind::Bare | TokenKind::Stray)) {
            return self.push(TokenKind::Stray, self.word_end(self.at + 1));
        }
        let mut end = chars::line_end(self.text, self.at);
        while let Some((Class::Newline, length)) = chars::class_at(self.text, end) {
            let word = chars::skip_class(self.text, end + length, Class::Space);
            let next = chars::line_end(self.text, word);
            if word == next {
                break;
            }
            end = next;
        }
        self.push(TokenKind::OpenComment, end);
    }
}

/// The offset after the escape that starts at a backslash: a run of white space, or one character.
pub(super) fn escape_end(text: &str, backslash: usize) -> usize {
    match chars::class_at(text, backslash + 1) {
        None => backslash + 1,
        Some((Class::Space | Class::Newline, length)) => chars::skip_white(text, backslash + 1 + length),
        // An escaped `\r` before `\n` never comes here, as both are white.
        Some((_, length)) => backslash + 1 + length,
    }
}

fn span_offset(at: usize) -> u32 {
    u32::try_from(at).expect("files are under 16 MiB")
}
