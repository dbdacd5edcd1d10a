//! The formatter: a document with its white space put in order, and nothing else changed.
//!
//! In: a text. Out: the same tokens, byte for byte and in the same order, with other spaces and line breaks between them;
//! or what is wrong, when the text is not KDL. Four spaces for each block around a line; a block that stands on one line
//! stays there; at most one blank line; one space between words; comments keep their distance. Formatting what is
//! formatted changes nothing.

use crate::source::FileId;
use crate::syntax::{self, Problem, Token, TokenKind};

/// The spaces of a level.
const INDENT: &str = "    ";

/// Puts the white space of a document in order.
///
/// # Errors
/// What is wrong with the syntax: a broken text is left alone.
pub fn format_document(text: &str) -> Result<String, Vec<Problem>> {
    let tree = syntax::parse(text, FileId::new(0));
    match tree.problems.is_empty() {
        true => Ok(Writer::new(text, &tree.tokens).write_document()),
        false => Err(tree.problems),
    }
}

/// A token that is no space and no line break, with what stands before it.
#[derive(Clone, Copy)]
struct Word<'t> {
    kind: TokenKind,
    text: &'t str,
    /// The spaces directly before it.
    gap: &'t str,
    /// The line breaks since the word before it.
    breaks: usize,
    /// Of a brace: whether its block stands on several lines.
    tall: bool,
}

struct Writer<'t> {
    words: Vec<Word<'t>>,
    newline: &'static str,
    out: String,
    depth: usize,
}

impl<'t> Writer<'t> {
    fn new(text: &'t str, tokens: &[Token]) -> Writer<'t> {
        let mut words: Vec<Word<'t>> = Vec::new();
        let (mut start, mut gap, mut breaks) = (0, "", 0);
        for token in tokens {
            let piece = &text[start..token.end as usize];
            start = token.end as usize;
            match token.kind {
                TokenKind::Space => gap = piece,
                TokenKind::Newline => (gap, breaks) = ("", breaks + 1),
                kind => {
                    words.push(Word { kind, text: piece, gap, breaks, tall: false });
                    (gap, breaks) = ("", 0);
                }
            }
        }
        mark_tall(&mut words);
        let first = tokens.iter().position(|token| token.kind == TokenKind::Newline);
        let is_windows = first.is_some_and(|index| {
            let start = index.checked_sub(1).map_or(0, |before| tokens[before].end as usize);
            &text[start..tokens[index].end as usize] == "\r\n"
        });
        Writer {
            words,
            newline: if is_windows { "\r\n" } else { "\n" },
            out: String::with_capacity(text.len() + 64),
            depth: 0,
        }
    }

    fn write_document(mut self) -> String {
        let words = std::mem::take(&mut self.words);
        let mut before: Option<Word<'_>> = None;
        // The last word that is no comment.
        let mut told: Option<TokenKind> = None;
        for &word in &words {
            if word.kind == TokenKind::CloseBrace && word.tall {
                // Only a text without problems is written, so its braces match.
                self.depth -= 1;
            }
            match before {
                Some(before) if before.kind != TokenKind::Bom => self.write_gap(before, word, told),
                _ => {}
            }
            self.out.push_str(word.text);
            if word.kind == TokenKind::OpenBrace && word.tall {
                self.depth += 1;
            }
            before = Some(word);
            match word.kind {
                // On a line of its own it ends what the line before went on with.
                TokenKind::LineComment | TokenKind::BlockComment if word.breaks > 0 => told = None,
                TokenKind::LineComment | TokenKind::BlockComment => {}
                kind => told = Some(kind),
            }
        }
        if before.is_some_and(|last| last.kind != TokenKind::Bom) {
            self.out.push_str(self.newline);
        }
        self.out
    }

    /// The white space between two words; `told` is the last word that is no comment.
    fn write_gap(&mut self, before: Word<'_>, word: Word<'_>, told: Option<TokenKind>) {
        let opened = before.kind == TokenKind::OpenBrace && before.tall;
        let closes = word.kind == TokenKind::CloseBrace && word.tall;
        let own_line = (opened && word.kind != TokenKind::LineComment || closes) && word.breaks == 0;
        if !own_line && word.breaks == 0 {
            self.out.push_str(word_separator(before, word));
            return;
        }
        let lines = if opened || closes { 1 } else { word.breaks.min(2) };
        (0..lines).for_each(|_| self.out.push_str(self.newline));
        let continues = word.breaks == 1 && told == Some(TokenKind::Backslash) && !closes;
        (0..self.depth + usize::from(continues)).for_each(|_| self.out.push_str(INDENT));
    }
}

/// What separates two words of a line.
fn word_separator<'t>(before: Word<'t>, word: Word<'t>) -> &'t str {
    use TokenKind::{
        BlockComment, CloseBrace, CloseParen, Equals, LineComment, OpenBrace, OpenParen, Semicolon, Slashdash,
    };
    let as_it_was = if word.gap.is_empty() { "" } else { " " };
    match (before.kind, word.kind) {
        (_, LineComment) if !word.gap.is_empty() => word.gap,
        (_, LineComment) => " ",
        (BlockComment | Slashdash, _) | (_, BlockComment) => as_it_was,
        (_, Semicolon | Equals | CloseParen) | (Equals | OpenParen | CloseParen, _) | (OpenBrace, CloseBrace) => "",
        _ => " ",
    }
}

/// Finds the blocks that stand on several lines.
fn mark_tall(words: &mut [Word<'_>]) {
    let mut open: Vec<usize> = Vec::new();
    // A block is tall when something in it is, which its own words tell as soon as they come.
    for index in 0..words.len() {
        let word = words[index];
        if word.breaks > 0 || matches!(word.kind, TokenKind::LineComment | TokenKind::Backslash) {
            // The blocks further out were marked with the first such word inside them.
            for &outer in open.iter().rev().take_while(|&&outer| !words[outer].tall).collect::<Vec<_>>() {
                words[outer].tall = true;
            }
        }
        match word.kind {
            TokenKind::OpenBrace => open.push(index),
            TokenKind::CloseBrace => {
                if let Some(opened) = open.pop() {
                    words[index].tall = words[opened].tall;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn formatted(text: &str) -> String {
        let once = format_document(text).expect("it is KDL");
        assert_eq!(format_document(&once).as_ref(), Ok(&once), "formatting is stable");
        once
    }

    #[test]
    fn white_space_is_put_in_order() {
        let text = "\n\nworkflow   w{description \"x\"  ;default  p}\n\n\n\npipeline p {\n\n  task a { prompt \"x\" }\n\
                    \ttask b {\n prompt file = \"x.md\"   // why\n    }\n\n\n\n}  ";
        let expected = "workflow w { description \"x\"; default p }\n\npipeline p {\n    task a { prompt \"x\" }\n    \
                        task b {\n        prompt file=\"x.md\"   // why\n    }\n}\n";
        assert_eq!(formatted(text), expected);
    }

    #[test]
    fn what_has_a_meaning_of_its_own_stays() {
        for text in [
            "",
            "// only a comment\n",
            "/- kdl-version 2\nnode {}\n",
            "/-node 1\nnode /-a /-b=1 /-{ c } { d }\n",
            "(type)node (a)1 c=(d)\"e\"\n",
            "a \\\n    b \\ // why\n    c\nd\n",
            "a \"\"\"\n   lines\n     stay\n   \"\"\"\nb #\"raw \\ {\"#\n",
            "a { // about the block\n    b; c\n}\n",
            "a /* inside */ b /*c*/\n",
            "\u{feff}a\n",
        ] {
            assert_eq!(formatted(text), text);
        }
    }

    #[test]
    fn blocks_are_broken_where_they_are_broken_once() {
        assert_eq!(formatted("a { b { c\n} }\n"), "a {\n    b {\n        c\n    }\n}\n");
        assert_eq!(formatted("a { b; c // why\n}"), "a {\n    b; c // why\n}\n");
        assert_eq!(formatted("a {\n}\n"), "a {\n}\n");
        assert_eq!(formatted("a { \\\n\n}"), "a {\n    \\\n}\n");
    }

    #[test]
    fn line_breaks_stay_those_of_the_file() {
        assert_eq!(formatted("a {\r\nb\r\n}"), "a {\r\n    b\r\n}\r\n");
    }

    #[test]
    fn a_broken_text_is_left_alone() {
        assert!(format_document("a {").is_err());
        assert!(format_document("a \"b").is_err());
    }

    #[test]
    fn deep_and_long_texts_take_no_time() {
        let deep = "a { ".repeat(100) + &"}".repeat(100);
        assert_eq!(formatted(&deep).lines().count(), 1);
        let tall = "a {\n".repeat(100) + &"}".repeat(100);
        assert_eq!(formatted(&tall).lines().count(), 200);
        let wide = "a { b; c }\n".repeat(20_000);
        assert_eq!(formatted(&wide), wide);
    }

    /// Everything but white space.
    fn words(text: &str) -> Vec<(TokenKind, String)> {
        let tree = syntax::parse(text, FileId::new(0));
        let mut start = 0;
        let mut words = Vec::new();
        for token in tree.tokens {
            let piece = text[start..token.end as usize].to_owned();
            start = token.end as usize;
            if !matches!(token.kind, TokenKind::Space | TokenKind::Newline) {
                words.push((token.kind, piece));
            }
        }
        words
    }

    /// The nodes without places.
    fn meaning(text: &str) -> String {
        fn write(nodes: &[syntax::Node], out: &mut String) {
            for node in nodes {
                out.push_str(&format!("({:?}{:?}", node.annotation.as_ref().map(|name| &name.text), node.name.text));
                for entry in &node.entries {
                    let kind = match &entry.value.kind {
                        syntax::ValueKind::String(text) => format!("{:?}", text.as_str()),
                        syntax::ValueKind::Number(number) => number.as_str().to_owned(),
                        other => format!("{other:?}"),
                    };
                    let note = entry.annotation.as_ref().map(|name| &name.text);
                    out.push_str(&format!(" {:?}={note:?}{kind}", entry.name.as_ref().map(|name| &name.text)));
                }
                if let Some(block) = &node.children {
                    out.push('{');
                    write(&block.nodes, out);
                    out.push('}');
                }
                out.push(')');
            }
        }
        let mut out = String::new();
        write(&syntax::parse(text, FileId::new(0)).nodes, &mut out);
        out
    }

    fn document() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[ab] ?",
            2 => Just("{".to_owned()), 3 => Just("}".to_owned()),
            3 => Just("\n".to_owned()), 1 => Just("\n\n\n".to_owned()), 1 => Just("\r\n".to_owned()),
            2 => Just(";".to_owned()), 2 => "  ?\t?",
            1 => Just("// why\n".to_owned()), 1 => Just("/* a\nb */".to_owned()), 1 => Just("/-".to_owned()),
            1 => Just(" \\\n".to_owned()), 1 => Just("(t)".to_owned()), 1 => Just("k = ".to_owned()),
            1 => Just("k=".to_owned()), 1 => Just(" 1_0.5 ".to_owned()), 1 => Just(" #true ".to_owned()),
            1 => Just("\"a b\" ".to_owned()), 1 => Just("#\"x\"y\"# ".to_owned()),
            1 => Just("\"\"\"\n  a\n   b\n  \"\"\" ".to_owned()),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| {
            let text: String = pieces.concat();
            // Most braces match.
            let open = text.matches('{').count();
            let close = text.matches('}').count();
            text + &"}".repeat(open.saturating_sub(close))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 5_000, ..ProptestConfig::default() })]

        #[test]
        fn no_word_is_lost(text in document()) {
            if let Ok(formatted) = format_document(&text) {
                prop_assert_eq!(words(&formatted), words(&text));
                prop_assert_eq!(meaning(&formatted), meaning(&text));
                prop_assert_eq!(format_document(&formatted), Ok(formatted));
            }
        }
    }
}
