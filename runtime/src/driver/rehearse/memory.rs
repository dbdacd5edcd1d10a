//! The texts of a rehearsal that are too long for a record: kept in memory.

use std::cell::RefCell;
use std::rc::Rc;

use crate::driver::run::eval::BlobStore;
use crate::types::event::{self, Content};

/// Long texts, named by their number.
#[derive(Clone, Default)]
pub(super) struct Memory(Rc<RefCell<Vec<String>>>);

impl Memory {
    pub(super) fn content(&self, text: String) -> Content {
        match event::can_inline(&text) {
            true => Content::Text(text),
            false => self.put(text),
        }
    }

    fn put(&self, text: String) -> Content {
        let mut texts = self.0.borrow_mut();
        let (digest, bytes) = (texts.len().to_string(), text.len() as u64);
        texts.push(text);
        Content::Artifact { digest, bytes }
    }

    /// The texts, in the order of their numbers.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.borrow_mut())
    }
}

impl BlobStore for Memory {
    fn load_text(&self, content: &Content) -> Result<String, String> {
        match content {
            Content::Text(text) => Ok(text.clone()),
            Content::Artifact { digest, .. } => {
                let found = digest.parse::<usize>().ok().and_then(|number| self.0.borrow().get(number).cloned());
                found.ok_or_else(|| format!("there is no text {digest}"))
            }
        }
    }

    fn store_content(&self, text: String) -> Result<Content, String> {
        Ok(self.content(text))
    }

    fn store_blob(&self, text: &str) -> Result<Content, String> {
        Ok(self.put(text.to_owned()))
    }

    fn keep_within(&self, text: String, _: usize) -> Result<Content, String> {
        self.store_content(text)
    }
}
