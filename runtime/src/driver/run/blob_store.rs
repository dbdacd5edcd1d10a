//! The texts of a run in its folder: short ones in events, long ones as artifacts, under their digests.

use super::eval::TextReader;
use crate::io::home::RunFolder;
use crate::types::error::RunError;
use crate::types::event::{self, Content};

impl TextReader for RunFolder {
    fn load_text(&self, content: &Content) -> Result<String, String> {
        RunFolder::read_text(self, content).map_err(|error| error.to_string())
    }
}

/// A text as an event holds it: in place, or as an artifact.
pub(super) fn store_content(folder: &RunFolder, text: String) -> Result<Content, RunError> {
    if event::can_inline(&text) { Ok(Content::Text(text)) } else { folder.store_text(&text) }
}
