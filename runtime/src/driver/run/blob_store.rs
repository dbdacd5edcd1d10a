//! The texts of a run in its folder: short ones in events, long ones as artifacts, under their digests.

use super::eval::BlobStore;
use crate::io::home::RunFolder;
use crate::types::error::RunError;
use crate::types::event::{self, Content};

impl BlobStore for RunFolder {
    fn load_text(&self, content: &Content) -> Result<String, String> {
        RunFolder::read_text(self, content).map_err(|error| error.to_string())
    }

    fn store_content(&self, text: String) -> Result<Content, String> {
        store_content(self, text).map_err(|error| error.to_string())
    }

    fn store_blob(&self, text: &str) -> Result<Content, String> {
        RunFolder::store_text(self, text).map_err(|error| error.to_string())
    }

    fn keep_within(&self, text: String, room: usize) -> Result<Content, String> {
        match event::escaped_length(&text) <= room {
            true => self.store_content(text),
            false => BlobStore::store_blob(self, &text),
        }
    }
}

/// A text as an event holds it: in place, or as an artifact.
pub(super) fn store_content(folder: &RunFolder, text: String) -> Result<Content, RunError> {
    if event::can_inline(&text) { Ok(Content::Text(text)) } else { folder.store_text(&text) }
}
