//! What the two sides of a merge added to a file, and what of it the result has lost.
//!
//! In: a file as both sides began with it, as each has it, and as it was merged. Out: the parts that are missing. A part is a
//! run of lines that a side added or changed; it is there when each of its lines is, wherever that stands. A file that is no
//! text, or is too large to compare, is one part. A side that deleted the file has one part, its deletion.

use std::collections::HashSet;
use std::path::Path;

use similar::{DiffOp, TextDiff};

use crate::io::workspace_file::read_file_bytes;

/// The bytes of a file that is compared by lines at most.
pub(super) const LARGEST: usize = 1024 * 1024;
/// The lines of a part that are shown, and the characters of each.
const LINES: usize = 3;
const CHARS: usize = 120;

/// Something that a side added, and that the result does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The path of the file, and its number among the parts of the file.
    pub name: String,
    /// Whose it is.
    side: &'static str,
    /// Its beginning.
    lines: Vec<String>,
}

impl Part {
    /// In a line or a few.
    pub(super) fn describe(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(|line| format!("\n  +{line}")).collect();
        format!("- {} (of {}){}", self.name, self.side, lines.concat())
    }
}

/// A file of the tree as it was merged; none where it is not there.
pub(super) fn read_result(tree: &Path, path: &str) -> Option<Vec<u8>> {
    read_file_bytes(tree, path, LARGEST as u64).ok()
}

/// Whether a merged file holds markers of conflicts that neither side had.
pub(super) fn has_markers(result: Option<&[u8]>, sides: [Option<&[u8]>; 2]) -> bool {
    let marked =
        |line: &&[u8]| [b"<<<<<<< ".as_slice(), b">>>>>>> ", b"||||||| "].iter().any(|mark| line.starts_with(mark));
    let lines = |text: &[u8]| text.split(|byte| *byte == b'\n').filter(marked).count();
    let had = sides.into_iter().flatten().map(lines).max().unwrap_or(0);
    result.is_some_and(|result| lines(result) > had)
}

/// The parts that the result does not have. They are numbered in the order of the sides, and of the file.
pub(super) fn find_missing(
    path: &str,
    base: Option<&[u8]>,
    sides: &[(Option<Vec<u8>>, &'static str); 2],
    result: Option<&[u8]>,
) -> Vec<Part> {
    let kept = result.and_then(as_text).map(|text| text.lines().map(str::trim).collect::<HashSet<_>>());
    let (mut found, mut number) = (Vec::new(), 0);
    for (text, side) in sides {
        let mut add = |is_kept: bool, lines: Vec<String>| {
            number += 1;
            if !is_kept {
                found.push(Part { name: format!("{path}#{number}"), side, lines });
            }
        };
        let Some(text) = text else {
            add(result.is_none(), vec!["(deletes the file)".to_owned()]);
            continue;
        };
        let (Some(new), Some(old)) = (as_text(text), as_text(base.unwrap_or_default())) else {
            add(result == Some(text), vec!["(its version of the whole file)".to_owned()]);
            continue;
        };
        for lines in list_added(old, new) {
            let is_kept = kept.as_ref().is_some_and(|kept| lines.iter().all(|line| kept.contains(line.trim())));
            add(is_kept, lines.iter().take(LINES).map(|line| line.chars().take(CHARS).collect()).collect());
        }
    }
    found
}

fn as_text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| text.len() < LARGEST && !text.contains('\0'))
}

/// The runs of lines that are new, without empty ones.
fn list_added<'t>(old: &'t str, new: &'t str) -> Vec<Vec<&'t str>> {
    let diff = TextDiff::from_lines(old, new);
    let lines: Vec<&str> = new.lines().collect();
    let mut added = Vec::new();
    for op in diff.ops() {
        let (DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. }) = *op else {
            continue;
        };
        let run = lines.iter().skip(new_index).take(new_len).copied();
        let run: Vec<&str> = run.filter(|line| !line.trim().is_empty()).collect();
        if !run.is_empty() {
            added.push(run);
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(base: &str, ours: Option<&str>, theirs: Option<&str>, result: Option<&str>) -> Vec<String> {
        let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        let sides = [(bytes(ours), "ours"), (bytes(theirs), "theirs")];
        let found = find_missing("a", Some(base.as_bytes()), &sides, bytes(result).as_deref());
        found.iter().map(|part| format!("{} {} {}", part.name, part.side, part.lines.join("|"))).collect()
    }

    #[test]
    fn what_either_side_added_is_in_the_result_or_named() {
        let base = "one\ntwo\nthree\n";
        let (ours, theirs) = (Some("one\nOURS\nthree\n"), Some("one\nTHEIRS\nthree\nfour\n"));
        let both = Some("one\nTHEIRS\n    OURS\nthree\nfour\n");
        assert_eq!(missing(base, ours, theirs, both), [""; 0], "the place and the indentation are free");
        assert_eq!(missing(base, ours, theirs, ours), ["a#2 theirs THEIRS", "a#3 theirs four"]);
        assert_eq!(missing(base, ours, theirs, Some(base)), ["a#1 ours OURS", "a#2 theirs THEIRS", "a#3 theirs four"]);
        assert_eq!(missing(base, ours, theirs, None).len(), 3);
        assert_eq!(missing(base, None, theirs, theirs), ["a#1 ours (deletes the file)"]);
        assert_eq!(missing(base, None, theirs, None), ["a#2 theirs THEIRS", "a#3 theirs four"]);
        assert_eq!(missing(base, Some("1\0"), theirs, theirs), ["a#1 ours (its version of the whole file)"]);
    }

    #[test]
    fn markers_of_conflicts_count_where_no_side_had_them() {
        let marked = b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\n".as_slice();
        assert!(has_markers(Some(marked), [Some(b"a"), Some(b"c")]));
        assert!(!has_markers(Some(marked), [Some(marked), None]));
        assert!(!has_markers(Some(b"=======\n"), [None, None]), "a line below a heading");
        assert!(!has_markers(None, [None, None]));
    }
}
