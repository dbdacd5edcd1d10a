//! Where the texts of a run lie: short ones in events, long ones as artifacts, under their digests.
//!
//! A run keeps its artifacts as files of its folder, a rehearsal in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::eval::TextReader;
use crate::io::home::{Part, RunFolder, cut_part};
use crate::types::digest::digest_bytes;
use crate::types::error::RunError;
use crate::types::event::{self, Content};

/// Reads and stores texts.
pub(super) trait TextStore: TextReader {
    /// Stores a text as an artifact.
    ///
    /// # Errors
    /// It cannot be written.
    fn store_text(&self, text: &str) -> Result<Content, RunError>;

    /// At most so many bytes of the text of `content` from one of them on, whole characters only.
    ///
    /// # Errors
    /// It cannot be read.
    fn load_part(&self, content: &Content, from: u64, most: usize) -> Result<Part, String>;
}

/// A text as an event holds it: in place, or as an artifact.
///
/// # Errors
/// It cannot be written.
pub(super) fn store_content(texts: &dyn TextStore, text: String) -> Result<Content, RunError> {
    if event::can_inline(&text) { Ok(Content::Text(text)) } else { texts.store_text(&text) }
}

impl TextReader for RunFolder {
    fn load_text(&self, content: &Content) -> Result<String, String> {
        RunFolder::read_text(self, content).map_err(|error| error.to_string())
    }
}

impl TextStore for RunFolder {
    fn store_text(&self, text: &str) -> Result<Content, RunError> {
        RunFolder::store_text(self, text)
    }

    fn load_part(&self, content: &Content, from: u64, most: usize) -> Result<Part, String> {
        self.read_part(content, from, most).map_err(|error| error.to_string())
    }
}

/// The artifacts of a rehearsal, by their digests. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryStore(Arc<Mutex<BTreeMap<String, String>>>);

impl MemoryStore {
    /// Takes the artifacts, by their digests.
    pub(super) fn take(&self) -> BTreeMap<String, String> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TextReader for MemoryStore {
    fn load_text(&self, content: &Content) -> Result<String, String> {
        match content {
            Content::Text(text) => Ok(text.clone()),
            Content::Artifact { digest, .. } => {
                let found = self.lock().get(digest).cloned();
                found.ok_or_else(|| format!("there is no text {digest}"))
            }
        }
    }
}

impl TextStore for MemoryStore {
    fn store_text(&self, text: &str) -> Result<Content, RunError> {
        let digest = digest_bytes(text.as_bytes());
        self.lock().entry(digest.clone()).or_insert_with(|| text.to_owned());
        Ok(Content::Artifact { digest, bytes: text.len() as u64 })
    }

    fn load_part(&self, content: &Content, from: u64, most: usize) -> Result<Part, String> {
        let text = self.load_text(content)?;
        let start = usize::try_from(from).unwrap_or(usize::MAX).min(text.len());
        let end = start.saturating_add(most).min(text.len());
        Ok(cut_part(&text.as_bytes()[start..end], start as u64))
    }
}
