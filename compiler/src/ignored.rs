//! What version control leaves out: the patterns of the `.gitignore` files of a workspace.
//!
//! In goes a path, out comes whether it is ignored, as `gitignore(5)` says: the last pattern that matches decides, those
//! of a deeper folder after those above it, and what lies in an ignored folder is ignored. Each file is read once, when a
//! path first needs it.

use std::collections::BTreeMap;

use crate::files::Files;

/// The lines of one file that are read.
const LINES: usize = 2_000;

/// The patterns that were read so far.
pub(crate) struct Ignored<'f> {
    files: &'f dyn Files,
    /// By folder.
    rules: BTreeMap<String, Vec<Rule>>,
}

struct Rule {
    glob: String,
    /// Whether it counts from the folder of its file, rather than for a name at any depth.
    anchored: bool,
    folders_only: bool,
    /// Whether it takes back what an earlier one ignores.
    negated: bool,
}

impl<'f> Ignored<'f> {
    pub(crate) fn new(files: &'f dyn Files) -> Ignored<'f> {
        Ignored { files, rules: BTreeMap::new() }
    }

    /// Whether the path, or a folder that it lies in, is left out.
    pub(crate) fn is_ignored(&mut self, path: &str, folder: bool) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| (at, true)).chain([(path.len(), folder)]);
        ends.filter(|(at, _)| *at > 0).any(|(at, folder)| self.is_ignored_itself(&path[..at], folder))
    }

    /// Whether a pattern leaves this very path out.
    fn is_ignored_itself(&mut self, path: &str, folder: bool) -> bool {
        let above = path.rmatch_indices('/').map(|(at, _)| &path[..at]).chain([""]);
        for home in above {
            let inside = if home.is_empty() { path } else { &path[home.len() + 1..] };
            let name = inside.rsplit_once('/').map_or(inside, |(_, name)| name);
            let says = |rule: &&Rule| {
                (folder || !rule.folders_only)
                    && fast_glob::glob_match(&rule.glob, if rule.anchored { inside } else { name })
            };
            if let Some(rule) = self.folder_rules(home).iter().rev().find(says) {
                return !rule.negated;
            }
        }
        false
    }

    fn folder_rules(&mut self, folder: &str) -> &[Rule] {
        if !self.rules.contains_key(folder) {
            let path = if folder.is_empty() { ".gitignore".to_owned() } else { format!("{folder}/.gitignore") };
            let text = self.files.read(&path).unwrap_or_default();
            self.rules.insert(folder.to_owned(), text.lines().take(LINES).filter_map(parse_rule).collect());
        }
        &self.rules[folder]
    }
}

fn parse_rule(line: &str) -> Option<Rule> {
    let line = line.trim_end_matches([' ', '\t', '\r']);
    let (negated, line) = line.strip_prefix('!').map_or((false, line), |line| (true, line));
    let (folders_only, pattern) = line.strip_suffix('/').map_or((false, line), |line| (true, line));
    let anchored = pattern.contains('/');
    let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
    if pattern.is_empty() || line.starts_with('#') {
        return None;
    }
    // Braces are signs like others here.
    let glob = pattern.replace('{', "\\{").replace('}', "\\}");
    Some(Rule { glob, anchored, folders_only, negated })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_to_git() {
        let files: BTreeMap<String, String> = [
            (".gitignore", "# made\n/target\n*.log\n!keep.log\nbuild/\ndocs/*.html\n**/cache/**\n\\#x\na{b}\n"),
            ("sub/.gitignore", "!trace.log\n/only-here\n"),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into();
        let mut ignored = Ignored::new(&files);
        for path in [
            "target/debug/a",
            "a.log",
            "deep/down/a.log",
            "build/x",
            "deep/build/x",
            "docs/a.html",
            "a/cache/b",
            "sub/only-here",
            "#x",
            "a{b}",
        ] {
            assert!(ignored.is_ignored(path, false), "{path}");
        }
        for path in [
            "sub/target/a",
            "keep.log",
            "sub/trace.log",
            "build",
            "docs/deep/a.html",
            "deep/docs/a.html",
            "only-here",
            "sub/deep/only-here",
            "ab",
            "# made",
        ] {
            assert!(!ignored.is_ignored(path, false), "{path}");
        }
        assert!(ignored.is_ignored("build", true) && ignored.is_ignored("target", true));
    }
}
