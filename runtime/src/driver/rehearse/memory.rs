//! The texts of a rehearsal that are too long for a record: kept in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::driver::run::eval::TextReader;
use crate::types::digest::digest_bytes;
use crate::types::event::{self, Content};

/// Long texts, by their digests.
#[derive(Clone, Default)]
pub(super) struct Memory(Rc<RefCell<BTreeMap<String, String>>>);

impl Memory {
    /// A text as an event holds it.
    pub(super) fn content(&self, text: String) -> Content {
        if event::can_inline(&text) {
            return Content::Text(text);
        }
        let content = Content::Artifact { digest: digest_bytes(text.as_bytes()), bytes: text.len() as u64 };
        self.store_texts(vec![(content.clone(), text)]);
        content
    }

    /// Stores the texts of artifacts.
    pub(super) fn store_texts(&self, made: Vec<(Content, String)>) {
        let mut texts = self.0.borrow_mut();
        for (content, text) in made {
            if let Content::Artifact { digest, .. } = content {
                texts.insert(digest, text);
            }
        }
    }

    /// The texts, by their digests.
    pub(super) fn take(&self) -> BTreeMap<String, String> {
        self.0.take()
    }
}

impl TextReader for Memory {
    fn load_text(&self, content: &Content) -> Result<String, String> {
        match content {
            Content::Text(text) => Ok(text.clone()),
            Content::Artifact { digest, .. } => {
                let found = self.0.borrow().get(digest).cloned();
                found.ok_or_else(|| format!("there is no text {digest}"))
            }
        }
    }
}
