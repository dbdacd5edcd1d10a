//! The files that an analysis reads: the open texts, then those on disk.
//!
//! In: the open texts and the disk. Out: [`Files`] for the compiler, and the list of what it asked for.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use swarmc_compiler::syntax::Tree;
use swarmc_compiler::{Entry, FileError, Files};

use super::document::Document;

/// Texts on disk, or why there are none, by path.
pub(super) type Cache = BTreeMap<String, Result<DiskText, FileError>>;

/// A text on disk, cheap to clone.
#[derive(Clone)]
pub(super) struct DiskText {
    pub(super) text: Arc<str>,
    /// Its tree, as long as an open document or an analysis holds it.
    tree: Arc<Mutex<Weak<Tree>>>,
}

impl DiskText {
    fn new(text: Arc<str>) -> DiskText {
        DiskText { text, tree: Arc::default() }
    }

    /// The document of this text, with the tree that others have of it where there is one.
    pub(super) fn document(&self, path: &str) -> Document {
        // The lock stays while the text is parsed: the next who asks would need as much time and memory again.
        let mut tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        let document = Document::with_tree(path, Arc::clone(&self.text), tree.upgrade());
        *tree = document.tree().map_or_else(Weak::new, Arc::downgrade);
        document
    }
}

/// Open texts before those on disk.
pub(super) struct Texts {
    pub(super) open: BTreeMap<String, Document>,
    pub(super) disk: Arc<dyn Files + Send + Sync>,
    pub(super) cache: Arc<Mutex<Cache>>,
}

/// Files that record what the compiler asks for.
pub(super) struct TrackedFiles<'f> {
    pub(super) files: &'f Texts,
    /// The spec with its tree, which the compiler takes in place of one of its own.
    pub(super) document: Option<Document>,
    pub(super) paths: Mutex<HashSet<String>>,
    pub(super) folders: Mutex<BTreeSet<String>>,
}

impl Texts {
    /// The text of a path, open or on disk.
    pub(super) fn document(&self, path: &str) -> Option<Document> {
        match self.open.get(path) {
            Some(document) => Some(document.clone()),
            None => self.read_disk(path).ok().map(|known| known.document(path)),
        }
    }

    /// What the disk has at a path, or had when it was read first.
    fn read_disk(&self, path: &str) -> Result<DiskText, FileError> {
        // The lock stays while the disk is read, so that all who ask see the same text.
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cache.get(path) {
            return known.clone();
        }
        cache.entry(path.to_owned()).or_insert_with(|| self.disk.read(path).map(DiskText::new)).clone()
    }
}

impl Files for Texts {
    fn read(&self, path: &str) -> Result<Arc<str>, FileError> {
        match self.open.get(path) {
            Some(document) => Ok(document.source().shared_text()),
            None => self.read_disk(path).map(|known| known.text),
        }
    }

    fn find(&self, path: &str) -> Result<Entry, FileError> {
        match self.open.contains_key(path) {
            true => Ok(Entry::File),
            false => self.disk.find(path),
        }
    }

    fn is_executable(&self, path: &str) -> Result<bool, FileError> {
        self.disk.is_executable(path)
    }

    fn list(&self, path: &str) -> Vec<String> {
        self.disk.list(path)
    }

    fn tree(&self, path: &str) -> Option<Arc<Tree>> {
        self.open.get(path)?.tree().cloned()
    }
}

impl Files for TrackedFiles<'_> {
    fn read(&self, path: &str) -> Result<Arc<str>, FileError> {
        self.record_path(path);
        // Of the text that the tree is of, whatever the disk has by now.
        match self.own_document(path) {
            Some(document) => Ok(document.source().shared_text()),
            None => self.files.read(path),
        }
    }

    fn find(&self, path: &str) -> Result<Entry, FileError> {
        self.record_path(path);
        self.files.find(path)
    }

    fn is_executable(&self, path: &str) -> Result<bool, FileError> {
        self.record_path(path);
        self.files.is_executable(path)
    }

    fn list(&self, path: &str) -> Vec<String> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        self.files.list(path)
    }

    fn tree(&self, path: &str) -> Option<Arc<Tree>> {
        self.own_document(path)?.tree().cloned()
    }
}

impl TrackedFiles<'_> {
    fn own_document(&self, path: &str) -> Option<&Document> {
        self.document.as_ref().filter(|document| document.source().name() == path)
    }

    fn record_path(&self, path: &str) {
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        // A path that is asked for again must not cost a new string.
        if !paths.contains(path) {
            paths.insert(path.to_owned());
        }
    }
}
