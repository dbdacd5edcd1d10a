//! Records which files a check reads, so that `--watch` repeats the check only when one of them changes.
//!
//! In: the reads of the check. Out: which reads would give another result now, for `--watch`, and whether one of them
//! gave another at a Git ref, for `--since`. The result of a check depends only on its arguments and on these reads.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use swarmc_compiler::{Entry, FileError, Files};

use crate::files::Workspace;
use crate::find;
use crate::since::Changes;

/// The questions of one check, with their answers.
#[derive(Debug, Default)]
pub(crate) struct FileDependencies {
    notes: RefCell<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    /// What was named on the command line, and the specs that were found there.
    named: Vec<PathBuf>,
    specs: Vec<PathBuf>,
    /// The root of the workspace of each spec.
    roots: BTreeMap<PathBuf, PathBuf>,
    /// What is known of paths, by root and path.
    told: BTreeMap<(PathBuf, String), Told>,
}

/// What is known of a path, as far as it was requested.
#[derive(Debug, Default)]
struct Told {
    text: Option<Result<Arc<str>, FileError>>,
    entry: Option<Result<Entry, FileError>>,
    starts: Option<Result<bool, FileError>>,
    names: Option<Vec<String>>,
}

/// What has become of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Became {
    Changed,
    Gone,
    New,
}

/// Something to keep an eye on.
pub(crate) enum Subject {
    /// What lies at a path beneath a root, or does not.
    Path { root: PathBuf, path: PathBuf },
    /// The names in a folder.
    Names(PathBuf),
    /// The specs beneath a folder.
    Specs(PathBuf),
}

impl FileDependencies {
    /// The specs that are meant, as [`find::find_specs`].
    ///
    /// # Errors
    /// Says where there is none.
    pub(crate) fn find_specs(&self, named: &[PathBuf]) -> miette::Result<Vec<PathBuf>> {
        let found = find::find_specs(named);
        let mut notes = self.notes.borrow_mut();
        notes.named = if named.is_empty() { vec![PathBuf::from(".")] } else { named.to_vec() };
        // That there is none is an answer, too: the first spec that comes changes it.
        notes.specs = found.as_ref().map(Vec::clone).unwrap_or_default();
        found
    }

    /// The workspace of a spec, as [`Workspace::discover`].
    ///
    /// # Errors
    /// Says what cannot be found.
    pub(crate) fn find_workspace(&self, spec: &Path) -> miette::Result<(Workspace, String)> {
        let (workspace, name) = Workspace::discover(spec)?;
        self.notes.borrow_mut().roots.insert(spec.to_owned(), workspace.root.clone());
        Ok((workspace, name))
    }

    /// Notes a folder that has to be there.
    pub(crate) fn note_folder(&self, folder: &Path) {
        let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else { return };
        let above = Workspace { root: above.to_owned() };
        // Why it is not is told by who needs it.
        let _ = self.track_files(&above).find(&name.to_string_lossy());
    }

    /// The files of a workspace, noting what they are asked for.
    pub(crate) fn track_files<'a>(&'a self, workspace: &'a Workspace) -> Noting<'a> {
        Noting { workspace, asked: self }
    }

    /// Takes over what was noted elsewhere.
    pub(crate) fn absorb(&self, other: FileDependencies) {
        let mut notes = self.notes.borrow_mut();
        for (place, told) in other.notes.into_inner().told {
            let known = notes.told.entry(place).or_default();
            // Where both know, the later answer counts.
            known.text = told.text.or(known.text.take());
            known.entry = told.entry.or(known.entry.take());
            known.starts = told.starts.or(known.starts.take());
            known.names = told.names.or(known.names.take());
        }
    }

    /// Whether these changes can have given other answers.
    pub(crate) fn is_affected_by(&self, changes: &Changes) -> bool {
        self.notes.borrow().told.iter().any(|((root, name), told)| {
            let path = root.join(name);
            // What a link leads to is what was read.
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            // A folder comes and goes with what is in it.
            let is_folder = told.names.is_some() || matches!(told.entry, Some(Ok(Entry::Folder))) || !told.was_there();
            let has_changed = |path: &Path| changes.has_changed(path) || is_folder && changes.has_moved_beneath(path);
            has_changed(&path) || real != path && has_changed(&real)
        })
    }

    /// How many files there are among what was asked for.
    pub(crate) fn count_files(&self) -> usize {
        let there = |told: &&Told| matches!(told.text, Some(Ok(_))) || matches!(told.entry, Some(Ok(Entry::File)));
        self.notes.borrow().told.values().filter(there).count()
    }

    /// Where answers come from.
    pub(crate) fn list_subjects(&self) -> Vec<Subject> {
        let notes = self.notes.borrow();
        let mut subjects = Vec::new();
        for ((root, name), told) in &notes.told {
            let path = root.join(name);
            if told.names.is_some() {
                subjects.push(Subject::Names(path.clone()));
            }
            subjects.push(Subject::Path { root: root.clone(), path });
        }
        for named in notes.named.iter().filter_map(|named| std::path::absolute(named).ok()) {
            // Without the `.` that stands for the current folder.
            let path: PathBuf = named.components().collect();
            if let (true, Some(root)) = (path.is_dir(), path.parent()) {
                subjects.push(Subject::Path { root: root.to_owned(), path: path.clone() });
                subjects.push(Subject::Specs(path));
            }
        }
        subjects
    }

    /// The paths whose answers would be others now, without those beneath another one that came or went.
    pub(crate) fn find_changes(&self) -> BTreeMap<PathBuf, Became> {
        let notes = self.notes.borrow();
        let mut paths: Vec<(PathBuf, bool)> = Vec::new();
        for ((root, name), told) in &notes.told {
            let workspace = Workspace { root: root.clone() };
            if told.has_changed(&workspace, name) {
                paths.push((root.join(name), told.was_there()));
            }
            paths.extend(told.names_that_differ(&workspace, name));
        }
        let now = find::find_specs(&notes.named).unwrap_or_default();
        let (before, now) = (BTreeSet::from_iter(&notes.specs), BTreeSet::from_iter(&now));
        paths.extend(now.difference(&before).map(|spec| (absolute_path(spec), false)));
        paths.extend(before.difference(&now).map(|spec| (absolute_path(spec), true)));
        for (spec, root) in &notes.roots {
            // A `.git` that came or went makes another folder the root, without a change of any file.
            if Workspace::discover(spec).is_ok_and(|(workspace, _)| workspace.root != *root) {
                paths.push((root.join(".git"), root.join(".git").exists()));
            }
        }
        let mut changes = BTreeMap::new();
        for (path, was_there) in paths {
            let became = match path.exists() {
                true if was_there => Became::Changed,
                true => Became::New,
                false => Became::Gone,
            };
            changes.entry(topmost_missing(path)).or_insert(became);
        }
        let came: BTreeSet<PathBuf> =
            changes.iter().filter(|(_, became)| **became == Became::New).map(|(path, _)| path.clone()).collect();
        changes.retain(|path, _| !path.ancestors().skip(1).any(|above| came.contains(above)));
        changes
    }
}

impl Told {
    fn has_changed(&self, workspace: &Workspace, name: &str) -> bool {
        self.text.as_ref().is_some_and(|text| *text != workspace.read(name))
            || self.entry.as_ref().is_some_and(|entry| *entry != workspace.find(name))
            || self.starts.as_ref().is_some_and(|starts| *starts != workspace.is_executable(name))
    }

    /// The names that a folder gained or lost, and whether each was there before.
    fn names_that_differ(&self, workspace: &Workspace, folder: &str) -> Vec<(PathBuf, bool)> {
        let Some(before) = &self.names else { return Vec::new() };
        let after = workspace.list(folder);
        let path = |name: &String| workspace.root.join(folder).join(name.trim_end_matches('/'));
        // Hidden files do not count; editors create and remove them all the time.
        let seen = |name: &&String| !name.starts_with('.');
        let gone = before.iter().filter(seen).filter(|name| after.binary_search(name).is_err());
        let come = after.iter().filter(seen).filter(|name| before.binary_search(name).is_err());
        gone.map(|name| (path(name), true)).chain(come.map(|name| (path(name), false))).collect()
    }

    fn was_there(&self) -> bool {
        let nothing = |error: &FileError| matches!(error, FileError::Missing | FileError::Case { .. });
        let text = self.text.as_ref().map(|text| !text.as_ref().is_err_and(nothing));
        let entry = self.entry.as_ref().map(|entry| !entry.as_ref().is_err_and(nothing));
        let starts = self.starts.as_ref().map(|starts| !starts.as_ref().is_err_and(nothing));
        text.or(entry).or(starts).unwrap_or(true)
    }
}

/// A path as a workspace would name it; one whose folder is gone as it was named.
fn absolute_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (Some(folder), Some(name)) = (absolute.parent(), absolute.file_name()) else { return absolute };
    folder.canonicalize().map(|folder| folder.join(name)).unwrap_or(absolute.clone())
}

/// The topmost part of a path that is not there; the path itself where it is.
fn topmost_missing(path: PathBuf) -> PathBuf {
    let topmost = path.ancestors().take_while(|above| !above.exists()).last().map(Path::to_owned);
    topmost.unwrap_or(path)
}

/// Files on disk that note what they are asked for.
pub(crate) struct Noting<'a> {
    workspace: &'a Workspace,
    asked: &'a FileDependencies,
}

impl Noting<'_> {
    fn note_path(&self, path: &str, note: impl FnOnce(&mut Told)) {
        let mut notes = self.asked.notes.borrow_mut();
        note(notes.told.entry((self.workspace.root.clone(), path.to_owned())).or_default());
    }
}

impl Files for Noting<'_> {
    fn read(&self, path: &str) -> Result<Arc<str>, FileError> {
        let text = self.workspace.read(path);
        self.note_path(path, |told| told.text = Some(text.clone()));
        text
    }

    fn find(&self, path: &str) -> Result<Entry, FileError> {
        let entry = self.workspace.find(path);
        self.note_path(path, |told| told.entry = Some(entry.clone()));
        entry
    }

    fn is_executable(&self, path: &str) -> Result<bool, FileError> {
        let starts = self.workspace.is_executable(path);
        self.note_path(path, |told| told.starts = Some(starts.clone()));
        starts
    }

    fn list(&self, path: &str) -> Vec<String> {
        let names = self.workspace.list(path);
        self.note_path(path, |told| told.names = Some(names.clone()));
        names
    }
}
