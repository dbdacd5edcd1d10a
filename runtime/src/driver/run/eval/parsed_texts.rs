//! Parsed texts, from a few that are kept: the same list or parameters are read often.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::TextReader;
use crate::types::digest::digest_bytes;
use crate::types::event::Content;

/// The texts that are kept parsed.
const KEPT: usize = 8;

/// What tells the items of a list apart wherever they stand in it: the digest of each, and how many equal ones stand
/// before it.
#[derive(Debug, Deserialize)]
#[serde(from = "Vec<Value>")]
pub(super) struct ItemIds(pub Vec<(String, u32)>);

impl From<Vec<Value>> for ItemIds {
    fn from(list: Vec<Value>) -> ItemIds {
        let mut counts: HashMap<String, u32> = HashMap::new();
        let identify = |value: Value| {
            let digest = digest_bytes(value.to_string().as_bytes());
            let count = counts.entry(digest.clone()).or_default();
            *count += 1;
            (digest, *count - 1)
        };
        ItemIds(list.into_iter().map(identify).collect())
    }
}

/// The texts of one kind that were parsed last.
#[derive(Debug)]
pub(super) struct ParsedTexts<T>(RefCell<Vec<(Content, Arc<T>)>>);

impl<T> Default for ParsedTexts<T> {
    fn default() -> ParsedTexts<T> {
        ParsedTexts(RefCell::default())
    }
}

impl<T: serde::de::DeserializeOwned> ParsedTexts<T> {
    /// A text of `store`, parsed.
    ///
    /// # Errors
    /// It cannot be read, or is not what it should be.
    pub(super) fn parse(&self, store: &dyn TextReader, content: &Content) -> Result<Arc<T>, String> {
        if let Some((_, value)) = self.0.borrow().iter().find(|(known, _)| known == content) {
            return Ok(Arc::clone(value));
        }
        let text = store.load_text(content)?;
        let value: Arc<T> = Arc::new(serde_json::from_str(&text).map_err(|error| error.to_string())?);
        let mut kept = self.0.borrow_mut();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((content.clone(), Arc::clone(&value)));
        Ok(value)
    }
}
