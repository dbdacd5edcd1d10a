//! A file at some moment, and what is different at another one, as Git writes it.
//!
//! In: two versions of one file, each of which may be none. Out: their difference, which programs that apply such can
//! apply, unless it is of bytes that are no text.

use std::time::Duration;

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::kept::base64_bytes;

/// How long one file may be compared exactly.
const PATIENCE: Duration = Duration::from_secs(2);

/// The bytes that say whether a file is text.
const HEAD: usize = 8000;

/// A file at some moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    pub kind: Kind,
    /// What it holds; of a link, where that leads.
    #[serde(with = "base64_bytes")]
    pub bytes: Vec<u8>,
}

impl Version {
    /// Whether its difference can be told to the byte.
    pub(super) fn is_text(&self) -> bool {
        has_no_nul(&self.bytes) && std::str::from_utf8(&self.bytes).is_ok()
    }
}

/// What Git goes by.
fn has_no_nul(bytes: &[u8]) -> bool {
    !bytes[..bytes.len().min(HEAD)].contains(&0)
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Plain,
    Program,
    Link,
}

impl Kind {
    /// By what Git calls it; none for what is no file.
    pub(super) fn from_git_mode(mode: &str) -> Option<Kind> {
        [Kind::Plain, Kind::Program, Kind::Link].into_iter().find(|kind| kind.mode() == mode)
    }

    /// By the mode that the system gives it, or Git in an index; none for what is no file.
    pub(super) fn from_mode(mode: u32) -> Option<Kind> {
        match FileType::from_raw_mode(mode) {
            FileType::RegularFile if mode & 0o100 == 0 => Some(Kind::Plain),
            FileType::RegularFile => Some(Kind::Program),
            FileType::Symlink => Some(Kind::Link),
            _ => None,
        }
    }

    fn mode(self) -> &'static str {
        match self {
            Kind::Plain => "100644",
            Kind::Program => "100755",
            Kind::Link => "120000",
        }
    }
}

/// The difference of a file; none where there is none.
pub(super) fn diff_versions(path: &str, old: Option<&Version>, new: Option<&Version>) -> Option<String> {
    let mode = |version: &Version| version.kind.mode();
    let name = |side: char| quote_name(&format!("{side}/{path}"));
    let head = format!("diff --git {} {}\n", name('a'), name('b'));
    let head = match (old, new) {
        (None, None) => return None,
        (Some(old), Some(new)) if old == new => return None,
        // A link takes the place of a file, or a file that of a link.
        (Some(before), Some(after)) if (before.kind == Kind::Link) != (after.kind == Kind::Link) => {
            return Some(diff_versions(path, old, None)? + &diff_versions(path, None, new)?);
        }
        (None, Some(new)) => format!("{head}new file mode {}\n", mode(new)),
        (Some(old), None) => format!("{head}deleted file mode {}\n", mode(old)),
        (Some(old), Some(new)) if old.kind != new.kind => {
            format!("{head}old mode {}\nnew mode {}\n", mode(old), mode(new))
        }
        (Some(_), Some(_)) => head,
    };
    let bytes = |version: Option<&Version>| version.map(|version| version.bytes.clone()).unwrap_or_default();
    let (before, after) = (bytes(old), bytes(new));
    if before == after {
        return Some(head);
    }
    let side = |side: char, version: Option<&Version>| version.map_or("/dev/null".to_owned(), |_| name(side));
    let (from, to) = (side('a', old), side('b', new));
    Some(match has_no_nul(&before) && has_no_nul(&after) {
        true => {
            head + &render_unified((&from, &to), &String::from_utf8_lossy(&before), &String::from_utf8_lossy(&after))
        }
        false => format!("{head}Binary files {from} and {to} differ\n"),
    })
}

/// The lines that are different, below the names of both sides.
fn render_unified((from, to): (&str, &str), old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    diff.unified_diff().context_radius(3).header(from, to).to_string()
}

/// A name as Git writes it: in quotes where it would not be one word otherwise.
fn quote_name(name: &str) -> String {
    let is_plain = |found: char| !found.is_control() && found != '"' && found != '\\';
    if name.chars().all(is_plain) {
        return name.to_owned();
    }
    let mut quoted = String::from("\"");
    for found in name.chars() {
        match found {
            '"' | '\\' => quoted.extend(['\\', found]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            found if found.is_control() => {
                let mut bytes = [0; 4];
                found.encode_utf8(&mut bytes).bytes().for_each(|byte| quoted.push_str(&format!("\\{byte:03o}")));
            }
            found => quoted.push(found),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(kind: Kind, text: &str) -> Version {
        Version { kind, bytes: text.as_bytes().to_vec() }
    }

    #[test]
    fn what_is_different_is_told_as_git_does() {
        let plain = |text: &str| version(Kind::Plain, text);
        let told = |old: Option<&Version>, new: Option<&Version>| diff_versions("a.txt", old, new);
        let (one, two) = (plain("1\n"), plain("2"));
        assert_eq!(told(None, None), None);
        assert_eq!(told(Some(&one), Some(&one.clone())), None);
        assert_eq!(
            told(Some(&one), Some(&two)).as_deref(),
            Some(
                "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+2\n\\ No newline at end of file\n"
            )
        );
        assert_eq!(
            told(None, Some(&one)).as_deref(),
            Some("diff --git a/a.txt b/a.txt\nnew file mode 100644\n--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+1\n")
        );
        assert_eq!(
            told(Some(&one), Some(&version(Kind::Program, "1\n"))).as_deref(),
            Some("diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n")
        );
        let linked = told(Some(&one), Some(&version(Kind::Link, "b"))).expect("it is different");
        assert!(linked.contains("deleted file mode 100644") && linked.contains("new file mode 120000"), "{linked}");
        assert_eq!(
            told(Some(&plain("\0")), None).as_deref(),
            Some("diff --git a/a.txt b/a.txt\ndeleted file mode 100644\nBinary files a/a.txt and /dev/null differ\n")
        );
    }

    #[test]
    fn a_name_is_one_word() {
        assert_eq!(quote_name("a/é b"), "a/é b");
        assert_eq!(quote_name("a/\"\\\n\u{1b}"), "\"a/\\\"\\\\\\n\\033\"");
    }
}
