//! The texts of a run in its folder: short ones in events, long ones as artifacts, under their digests.

use super::eval::BlobStore;
use crate::io::home::RunFolder;
use crate::types::error::RunError;
use crate::types::event::{self, Content};

impl BlobStore for RunFolder {
    fn text(&self, content: &Content) -> Result<String, String> {
        RunFolder::text(self, content).map_err(|error| error.to_string())
    }

    fn keep(&self, text: String) -> Result<Content, String> {
        content(self, text).map_err(|error| error.to_string())
    }

    fn store(&self, text: &str) -> Result<Content, String> {
        RunFolder::store(self, text).map_err(|error| error.to_string())
    }

    fn keep_within(&self, text: String, room: usize) -> Result<Content, String> {
        match event::escaped(&text) <= room {
            true => self.keep(text),
            false => BlobStore::store(self, &text),
        }
    }
}

/// A text as an event holds it: in place, or as an artifact.
pub(super) fn content(folder: &RunFolder, text: String) -> Result<Content, RunError> {
    if event::fits(&text) { Ok(Content::Text(text)) } else { folder.store(&text) }
}
