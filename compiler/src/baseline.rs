//! Baselines: problems that are known, by file, code and message, and how often each. No lines: what moved stays known.
//!
//! In: the text of a baseline, and the problems of a check. Out: which of them are known, which entries are gone, and the
//! text of a new one.

use std::collections::BTreeMap;

use kdl::{KdlDocument, KdlEntry, KdlNode};

use crate::code::Code;
use crate::config;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::import::escape_entry;
use crate::lower;
use crate::schema::KNOWN;
use crate::source::Sources;

/// What stands at the top of a baseline.
const HEAD: &str = "// Problems that were known when this was written: `swarmc check` does not show them, and does not fail \
because of\n// them. `swarmc check --update-baseline` writes this file anew.\n";

/// Problems that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    entries: BTreeMap<Entry, u32>,
}

/// A kind of problem: its file, its code, its message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    file: String,
    code: Code,
    message: String,
}

impl Baseline {
    /// Reads a baseline, the first and only file of `sources`; what is wrong in it is reported, and left out.
    pub fn read(sources: &Sources) -> (Baseline, Vec<Diagnostic>) {
        let mut diagnostics = Diagnostics::default();
        let mut baseline = Baseline::default();
        let mut seen = BTreeMap::new();
        for file in lower::lower_document(sources, &KNOWN, &mut diagnostics) {
            let Some(path) = file.argument(0) else { continue };
            for known in file.children("known") {
                let (Some(code), Some(message)) = (known.argument(0), known.argument(1)) else { continue };
                let found = match config::find_code(code.text.as_str(), code.span) {
                    Ok(found) => found,
                    Err(diagnostic) => {
                        diagnostics.push(*diagnostic);
                        continue;
                    }
                };
                let (file, message) = (path.text.as_str().to_owned(), message.text.as_str().to_owned());
                let entry = Entry { file, code: found, message };
                if let Some(first) = seen.insert(entry.clone(), known.name.span) {
                    let diagnostic = Diagnostic::new(Code::Duplicate, "this problem stands twice")
                        .label(known.name.span, "the second one")
                        .label(first, "the first one")
                        .help("remove one, and say `count=` in the other");
                    diagnostics.push(diagnostic);
                }
                let count = known.property("count").map_or(1, |count| u32::try_from(count.number).unwrap_or(u32::MAX));
                baseline.entries.insert(entry, count);
            }
        }
        (baseline, diagnostics.into_sorted())
    }

    /// Takes in a problem.
    pub fn add(&mut self, file: &str, code: Code, message: &str) {
        let entry = Entry { file: file.to_owned(), code, message: message.to_owned() };
        let count = self.entries.entry(entry).or_default();
        *count = count.saturating_add(1);
    }

    /// Takes a problem out, once; whether it was in.
    pub fn take(&mut self, file: &str, code: Code, message: &str) -> bool {
        let entry = Entry { file: file.to_owned(), code, message: message.to_owned() };
        match self.entries.get_mut(&entry) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) => _ = self.entries.remove(&entry),
            None => return false,
        }
        true
    }

    /// Keeps what is known of the files for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.entries.retain(|entry, _| keep(&entry.file));
    }

    /// Takes in everything of another one.
    pub fn extend(&mut self, other: Baseline) {
        self.entries.extend(other.entries);
    }

    /// How many kinds of problems are in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Its text: by file, in order, the same for the same problems.
    pub fn render_text(&self) -> String {
        let mut document = KdlDocument::new();
        let mut open: Option<KdlNode> = None;
        for (entry, &count) in &self.entries {
            // Entries are ordered by file first, so that each file opens once.
            let same = open.as_ref().is_some_and(|node| node[0].as_string() == Some(&entry.file));
            if !same {
                document.nodes_mut().extend(open.take());
            }
            let file = open.get_or_insert_with(|| {
                let mut node = KdlNode::new("file");
                node.push(escape_entry(KdlEntry::new(entry.file.as_str()), &entry.file));
                node
            });
            let mut known = KdlNode::new("known");
            known.push(entry.code.id());
            known.push(escape_entry(KdlEntry::new(entry.message.as_str()), &entry.message));
            if count > 1 {
                known.push(KdlEntry::new_prop("count", i128::from(count)));
            }
            file.ensure_children().nodes_mut().push(known);
        }
        document.nodes_mut().extend(open);
        let text = format!("{HEAD}\n{document}");
        crate::format_document(&text).unwrap_or(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Baseline, Vec<String>) {
        let mut sources = Sources::new();
        sources.add("known.kdl", text);
        let (baseline, found) = Baseline::read(&sources);
        let found = found.into_iter().map(|found| format!("{}: {}", found.labels[0].span.start, found.message));
        (baseline, found.collect())
    }

    #[test]
    fn what_is_written_is_read_and_counts() {
        let mut baseline = Baseline::default();
        for (file, message) in
            [("b.md", "x"), ("a.kdl", "the \"second\"\nline"), ("a.kdl", "\u{202e}"), ("a.kdl", "x"), ("a.kdl", "x")]
        {
            baseline.add(file, Code::UnusedDefinition, message);
        }
        let text = baseline.render_text();
        let expected = "file a.kdl {\n    known SW103 \"the \\\"second\\\"\\nline\"\n    known SW103 x count=2\n    known SW103 \"\\u{202e}\"\n}\nfile b.md {\n    \
                        known SW103 x\n}\n";
        assert_eq!(text.split_once("\n\n").map(|(_, rest)| rest), Some(expected));
        let (mut again, found) = read(&text);
        assert_eq!((&again, found), (&baseline, Vec::new()));
        let taken = (0..3).map(|_| again.take("a.kdl", Code::UnusedDefinition, "x")).collect::<Vec<_>>();
        assert_eq!((taken, again.len()), (vec![true, true, false], 3));
        assert!(!again.take("a.kdl", Code::Cycle, "x"));
        again.retain(|file| file == "b.md");
        assert_eq!(again.len(), 1);
    }

    #[test]
    fn what_is_wrong_in_it_is_told_at_its_place() {
        let (baseline, found) =
            read("file a {\n  known SW999 x\n  known SW103 y\n  known SW103 y\n  known SW103 z count=0\n}\nfiel b\n");
        assert_eq!(
            found,
            [
                "17: there is no problem called `SW999`",
                "43: this problem stands twice",
                "79: `count=` takes a whole number from 1 to 4294967295, not `0`",
                "83: there is no `fiel` at the top level",
            ]
        );
        assert_eq!(baseline.len(), 2);
    }
}
