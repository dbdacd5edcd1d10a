//! Finds the changes in a tree while a turn goes on, whatever its agent says of them.
//!
//! In: the folder that a turn works in, before and after. Out: a diff with its counts, and whose other turns went on in
//! the same tree meanwhile. Invariant: nothing in the tree, its index or its repository is changed by looking.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::git::Git;
use super::snapshot::Snapshot;
use crate::types::artifact::{ArtifactKind, ArtifactMeta};
use crate::types::event::Content;
use crate::types::secrets::Secrets;

/// The bytes of a diff that are kept.
const LARGEST: usize = 4 << 20;

/// What changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) text: String,
    pub(super) files: u32,
    pub(super) added: u32,
    pub(super) removed: u32,
    /// What is not in it, in words.
    pub(super) omitted: Vec<String>,
    pub(super) cut: u32,
}

impl Changes {
    /// Takes in the difference of one file.
    pub(super) fn push(&mut self, diff: &str) {
        self.files += 1;
        for line in diff.lines() {
            self.added += u32::from(line.starts_with('+') && !line.starts_with("+++ "));
            self.removed += u32::from(line.starts_with('-') && !line.starts_with("--- "));
        }
        match self.text.len() + diff.len() <= LARGEST {
            true => self.text.push_str(diff),
            false => self.cut += 1,
        }
    }

    fn is_empty(&self) -> bool {
        self.files == 0
    }
}

/// The turns that go on, by the tree in which they do.
#[derive(Clone, Debug)]
pub(crate) struct Watches {
    turns: Arc<Mutex<BTreeMap<PathBuf, Vec<Turn>>>>,
    /// Where what is needed to compare lies meanwhile.
    pub(super) scratch: PathBuf,
    /// The folder of the runs: what they write counts as no change.
    home: PathBuf,
    /// The variables whose values no diff may hold.
    hidden: BTreeSet<String>,
}

#[derive(Debug)]
struct Turn {
    label: String,
    number: u64,
    /// Whose turns it has met.
    met: Vec<String>,
}

/// A turn whose tree is watched.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(super) folder: PathBuf,
    pub(super) before: Before,
    /// What is not looked at.
    pub(super) apart: Option<PathBuf>,
    secrets: Secrets,
    number: u64,
    watches: Watches,
}

#[derive(Debug)]
pub(super) enum Before {
    Git(Box<Git>),
    Snapshot(Snapshot),
}

/// A diff that was taken: its text, and what the journal says of it once it is stored.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) text: String,
    kept: ArtifactMeta,
}

impl Taken {
    /// What the journal says of it, now that it lies at `content`.
    pub(crate) fn into_meta(self, content: Content) -> ArtifactMeta {
        ArtifactMeta { content, ..self.kept }.truncate_texts()
    }
}

impl Watches {
    /// No turns yet, for the run in this folder; no diff holds the values of the variables in `hidden`.
    pub(crate) fn new(run: &Path, hidden: BTreeSet<String>) -> Watches {
        let home = run.ancestors().nth(2).unwrap_or(run);
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        Watches { turns: Arc::default(), scratch: run.join("scratch"), home, hidden }
    }

    /// Looks at a tree, before the turn of `label` begins in it; `environment` is that of the processes that look.
    pub(crate) fn begin_watch(&self, label: &str, folder: &Path, environment: &[(OsString, OsString)]) -> Watch {
        self.watch_since(label, folder, environment, |folder, apart| {
            match Git::open_checkout(folder, environment, (&self.scratch, apart)) {
                Some(git) => Some(Before::Git(Box::new(git))),
                None => Some(Before::Snapshot(Snapshot::take(folder, apart))),
            }
        })
        .expect("every folder can be looked at")
    }

    /// The watch of a turn that began with the tree as `look` finds it; none where that finds nothing.
    pub(super) fn watch_since(
        &self,
        label: &str,
        folder: &Path,
        environment: &[(OsString, OsString)],
        look: impl FnOnce(&Path, Option<&Path>) -> Option<Before>,
    ) -> Option<Watch> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let number = {
            let mut trees = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            let turns = trees.entry(folder.clone()).or_default();
            let number = turns.iter().map(|turn| turn.number).max().unwrap_or(0) + 1;
            turns.iter_mut().for_each(|turn| turn.met.push(label.to_owned()));
            let met = turns.iter().map(|turn| turn.label.clone()).collect();
            turns.push(Turn { label: label.to_owned(), number, met });
            number
        };
        // Working trees of runs lie in there, too, and maybe the whole project: those are looked at.
        let apart = [self.home.clone(), self.home.join("runs")].into_iter().find(|apart| !folder.starts_with(apart));
        let before = look(&folder, apart.as_deref())?;
        let known = environment.iter().cloned().collect();
        let secrets = Secrets::new(&known, &self.hidden.iter().map(String::as_str).collect());
        Some(Watch { folder, before, apart, secrets, number, watches: self.clone() })
    }
}

impl Watch {
    /// What has changed since; none where nothing has.
    ///
    /// # Errors
    /// Says why that is not known.
    pub(crate) fn end(mut self) -> Result<Option<Taken>, String> {
        let changes = match &mut self.before {
            Before::Git(git) => git.changes()?,
            Before::Snapshot(before) => before.changes(&Snapshot::take(&self.folder, self.apart.as_deref())),
        };
        let mut met = self.concurrent_turns();
        met.sort_unstable();
        met.dedup();
        Ok((!changes.is_empty()).then(|| render_diff(changes, met, &self.secrets)))
    }

    fn concurrent_turns(&self) -> Vec<String> {
        let trees = self.watches.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = trees.get(&self.folder).map_or(&[][..], Vec::as_slice);
        turns.iter().find(|turn| turn.number == self.number).map(|turn| turn.met.clone()).unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut trees = self.watches.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = trees.get_mut(&self.folder) {
            turns.retain(|turn| turn.number != self.number);
            if turns.is_empty() {
                trees.remove(&self.folder);
            }
        }
    }
}

fn render_diff(mut changes: Changes, with: Vec<String>, secrets: &Secrets) -> Taken {
    if changes.cut > 0 {
        changes.omitted.push(format!("{} files, whose changes are longer than {} MiB", changes.cut, LARGEST >> 20));
    }
    // Programs that apply diffs skip what comes first.
    let mut text = String::new();
    if !with.is_empty() {
        text.push_str(&format!("Changes in the tree while other turns went on in it: {}\n", with.join(", ")));
    }
    for omitted in &changes.omitted {
        text.push_str(&format!("Left out: {omitted}\n"));
    }
    text.push_str(&secrets.redact(&changes.text));
    let kept = ArtifactMeta::new(ArtifactKind::Diff, &text, Content::Text(String::new()));
    let (files, added, removed) = (Some(changes.files), Some(changes.added), Some(changes.removed));
    Taken { text, kept: ArtifactMeta { files, added, removed, with, omitted: changes.omitted, ..kept } }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_runs_write_is_no_change_wherever_the_tree_lies() {
        for (tree, told) in [("project", 1), ("home/runs/r1/worktrees/w", 1), ("home", 1), ("", 1), ("home/project", 1)]
        {
            let place = tempfile::tempdir().expect("a folder");
            let (tree, run) = (place.path().join(tree), place.path().join("home/runs/r1"));
            fs::create_dir_all(&tree).expect("a folder");
            fs::create_dir_all(&run).expect("a folder");
            let watch = Watches::new(&run, BTreeSet::new()).begin_watch("work", &tree, &[]);
            fs::write(tree.join("made"), "by the turn\n").expect("a file");
            fs::write(run.join("journal"), "of the run\n").expect("a file");
            let taken = watch.end().expect("it is known").expect("something changed");
            assert_eq!(taken.kept.files, Some(told), "{}: {}", tree.display(), taken.text);
            assert!(!taken.text.contains("of the run"), "{}", taken.text);
        }
    }
}
