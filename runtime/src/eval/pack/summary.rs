//! Summarizes a file in a line, by a fixed rule without a model.
//!
//! In: a path and a text. Out: the first sentence of the first comment (of Markdown, the first heading and the first
//! sentence), then the names that the file declares at the beginning of a line. No language is parsed.

/// The lines that are looked at.
const LINES: usize = 2_000;

/// The characters of what a file says of itself, and the names of what it declares.
const SAID: usize = 160;
const NAMES: usize = 10;

/// Words in front of a declaration that say nothing of its name.
const BEFORE: &[&str] = &[
    "pub",
    "pub(crate)",
    "pub(super)",
    "export",
    "default",
    "async",
    "public",
    "private",
    "protected",
    "internal",
    "static",
    "final",
    "abstract",
    "sealed",
    "unsafe",
    "const",
    "open",
    "data",
    "declare",
];

/// Words that a declared name follows.
const DECLARES: &[&str] = &[
    "fn",
    "struct",
    "enum",
    "trait",
    "type",
    "mod",
    "def",
    "class",
    "function",
    "interface",
    "func",
    "module",
    "object",
    "record",
    "protocol",
    "defmodule",
    "namespace",
    "union",
    "macro_rules!",
];

/// The lines from `first` to `last` of a text, from 1, both included.
pub(crate) fn excerpt(text: &str, lines: Option<(u64, u64)>) -> String {
    let Some((first, last)) = lines else { return text.to_owned() };
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let taken = text.split_inclusive('\n').skip(size(first.saturating_sub(1)));
    taken.take(size((last + 1).saturating_sub(first))).collect()
}

/// What a file is about; none where it does not say.
pub(crate) fn line_of(path: &str, text: &str) -> Option<String> {
    let said = match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("md" | "markdown") => heading(text),
        _ => comment(text),
    };
    let said = said.map(|said| sentence(&said)).filter(|said| !said.is_empty());
    let names = names(text);
    let names = (!names.is_empty()).then(|| format!("declares {}", names.join(", ")));
    match (said, names) {
        (Some(said), Some(names)) => Some(format!("{}; {names}", said.trim_end_matches('.'))),
        (said, names) => said.or(names),
    }
}

/// The first heading, and the line below it that says something.
fn heading(text: &str) -> Option<String> {
    let mut lines = text.lines().take(LINES).map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    let heading = first.trim_start_matches('#').trim().to_owned();
    match lines.find(|line| !line.starts_with(['#', '-', '*', '`', '|', '<', '!', '>', '='])) {
        Some(line) if first.starts_with('#') => Some(format!("{heading}: {line}")),
        _ => Some(heading),
    }
}

/// The text of the first comment, where the file begins with one, apart from licences.
fn comment(text: &str) -> Option<String> {
    let mut words = String::new();
    let mut inside = false;
    for line in text.lines().take(LINES).map(str::trim) {
        if words.is_empty() && (line.is_empty() || line.starts_with("#!")) {
            continue;
        }
        let begins = ["//!", "///", "//", "/**", "/*", "\"\"\"", "'''", "#", "--", ";;"];
        let mark = begins.iter().find(|mark| line.starts_with(**mark));
        let is_code = line.starts_with("#[") || line.starts_with("#include") || line.starts_with("#define");
        let body = match mark {
            _ if inside => line,
            Some(mark) if !is_code => {
                inside = matches!(*mark, "/**" | "/*" | "\"\"\"" | "'''");
                line[mark.len()..].trim_start_matches(['/', '!', '#', '-', ';'])
            }
            _ => break,
        };
        let ends = inside && ["*/", "\"\"\"", "'''"].iter().any(|mark| body.contains(mark));
        let body =
            body.split("*/").next().unwrap_or_default().trim_end_matches(['"', '\'']).trim_start_matches('*').trim();
        let is_licence = ["Copyright", "SPDX", "Licensed", "-*-"].iter().any(|word| body.contains(word));
        if body.is_empty() && !words.is_empty() {
            break;
        }
        if !is_licence && !body.is_empty() {
            words.push_str(if words.is_empty() { "" } else { " " });
            words.push_str(body);
        }
        inside &= !ends;
        if words.len() > 4 * SAID {
            break;
        }
    }
    (!words.is_empty()).then_some(words)
}

/// The first sentence, so long at most.
fn sentence(text: &str) -> String {
    // With a space, as a point within a name ends no sentence.
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    let sentence = &text[..end];
    match sentence.char_indices().nth(SAID) {
        Some((cut, _)) => format!("{}…", sentence[..cut].trim_end()),
        None => sentence.to_owned(),
    }
}

/// The names that are declared at the beginning of a line, each once.
fn names(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in text.lines().take(LINES).filter(|line| line.starts_with(|first: char| first.is_ascii_alphabetic())) {
        let mut words = line.split_whitespace().skip_while(|word| BEFORE.contains(word));
        let Some(kind) = words.next().filter(|word| DECLARES.contains(word)) else { continue };
        let Some(word) = words.next() else { continue };
        // `export default function () {}` has none.
        let name: String = word.chars().take_while(|found| found.is_alphanumeric() || *found == '_').collect();
        if name.is_empty() || kind == "mod" && line.contains("tests") || names.contains(&name) {
            continue;
        }
        names.push(name);
        if names.len() == NAMES {
            break;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: &str) {
        assert_eq!(line_of(path, text).as_deref().unwrap_or_default(), expected, "{text}");
    }

    #[test]
    fn summaries_are_the_first_comment_and_what_is_declared() {
        check(
            "a.rs",
            "//! Reads dates. And more.\n//! Much more.\n\nuse x;\n\npub fn parse() {}\nstruct Date;\nimpl Date {\n    fn in() {}\n}\n#[cfg(test)]\nmod tests {}\n",
            "Reads dates; declares parse, Date",
        );
        check(
            "a.py",
            "#!/usr/bin/env python\n\"\"\"Sends mail.\"\"\"\nimport os\n\nclass Sender:\n    def go(self): ...\nasync def main(): ...\n",
            "Sends mail; declares Sender, main",
        );
        check(
            "a.ts",
            "/**\n * The entry point\n * of all.\n */\nexport default function start() {}\nexport interface Options {}\n",
            "The entry point of all; declares start, Options",
        );
        check(
            "a.go",
            "// Copyright 2026 Us\n// Package x serves files.\npackage x\nfunc Serve() {}\n",
            "Package x serves files; declares Serve",
        );
        check("PLAN.md", "# The plan\n\n- one\n\nWe build it. Then more.\n", "The plan: We build it.");
        check("a.c", "#include <stdio.h>\nint main() {}\n", "");
        check("empty", "", "");
    }

    #[test]
    fn a_summary_of_anything_is_short_and_never_panics() {
        for text in ["/*", "\"\"\"", "//", "#", "é".repeat(5000).as_str(), "// é".repeat(3000).as_str(), "fn \nfn 漢"]
        {
            let line = line_of("x.rs", text).unwrap_or_default();
            assert!(line.chars().count() < 600, "{line}");
        }
    }

    #[test]
    fn excerpts_are_lines() {
        let text = "a\nb\nc\nd";
        assert_eq!(excerpt(text, None), text);
        assert_eq!(excerpt(text, Some((2, 3))), "b\nc\n");
        assert_eq!(excerpt(text, Some((4, 900))), "d");
        assert_eq!(excerpt(text, Some((9, 3))), "");
    }
}
