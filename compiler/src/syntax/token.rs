//! The tokens of a document. They lie side by side and cover the whole text, broken parts included.

/// A stretch of the text; it starts where the token before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Offset after its last byte.
    pub end: u32,
    /// Of a string: that its value stands between the quotes as it is. Of a word: that it cannot be a number.
    pub(super) plain: bool,
}

/// The kinds of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// The byte order mark at the start of a file.
    Bom,
    /// A run of spaces, tabs and their Unicode relatives.
    Space,
    /// One line break.
    Newline,
    /// `// …` up to the line break.
    LineComment,
    /// `/* … */`, nested ones included.
    BlockComment,
    /// A block comment that never ends.
    OpenComment,
    /// `/-`
    Slashdash,
    /// `\` before a line break or in a wrong place.
    Backslash,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// `(`
    OpenParen,
    /// `)`
    CloseParen,
    /// `=`
    Equals,
    /// `;`
    Semicolon,
    /// A word or a number.
    Bare,
    /// `#true` and whatever else starts with one `#`.
    Keyword,
    /// `"…"`
    Quoted,
    /// `#"…"#`
    Raw,
    /// `"""…"""`
    Lines,
    /// `#"""…"""#`
    RawLines,
    /// `r"…"` of KDL 1.
    LegacyRaw,
    /// A string without its end, up to where it seems to stop.
    OpenString,
    /// `"…"` over several lines, which only `"""` may do.
    BrokenLines,
    /// Characters that may stand nowhere in a document.
    Forbidden,
    /// `[`, `]`, `/` and `#` in places that mean nothing.
    Stray,
}
