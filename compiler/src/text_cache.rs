//! Caches the results that depend on one text alone, for as long as the text lives.
//!
//! In: a shared text that never changes. Out: its [`CachedText`]. [`Cache`] keeps these results from one compilation to
//! the next. It identifies a text by its address and holds it, so that no other text can get the same address.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::check::secrets::{self, Key};
use crate::emit::Emitted;
use crate::suppress;
use crate::template::{self, Template};

/// The cached results of texts, for later compilations. The cache keeps the results of a text only while another owner
/// holds the text, too.
#[derive(Debug, Default)]
pub struct Cache {
    texts: Mutex<HashMap<usize, Arc<CachedText>>>,
}

impl Cache {
    /// The cached results of a text.
    pub(crate) fn cached_text(&self, text: Arc<str>) -> Arc<CachedText> {
        let mut texts = self.lock_texts();
        Arc::clone(texts.entry(text.as_ptr().addr()).or_insert_with(|| Arc::new(CachedText::new(text))))
    }

    /// Removes the texts that have no other owner.
    pub(crate) fn prune(&self) {
        self.lock_texts().retain(|_, facts| Arc::strong_count(&facts.text) > 1);
    }

    fn lock_texts(&self) -> MutexGuard<'_, HashMap<usize, Arc<CachedText>>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text, and what is known of it so far.
#[derive(Debug)]
pub(crate) struct CachedText {
    text: Arc<str>,
    template: OnceLock<Arc<Template>>,
    mentions_include: OnceLock<bool>,
    mentions_allow: OnceLock<bool>,
    keys: OnceLock<Vec<Key>>,
    digest: OnceLock<String>,
    /// The template of a plan that it was last.
    pub(crate) emitted: Mutex<Option<Emitted>>,
}

impl CachedText {
    pub(crate) fn new(text: Arc<str>) -> CachedText {
        CachedText {
            text,
            template: OnceLock::new(),
            mentions_include: OnceLock::new(),
            mentions_allow: OnceLock::new(),
            keys: OnceLock::new(),
            digest: OnceLock::new(),
            emitted: Mutex::default(),
        }
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text as a template.
    pub(crate) fn template(&self) -> &Arc<Template> {
        self.template.get_or_init(|| Arc::new(template::scan(&self.text)))
    }

    /// Whether a scan for includes would be worth its time.
    pub(crate) fn mentions_include(&self) -> bool {
        *self.mentions_include.get_or_init(|| crate::load::mentions_include(&self.text))
    }

    /// Whether there may be suppressions in its comments.
    pub(crate) fn mentions_allow(&self) -> bool {
        *self
            .mentions_allow
            .get_or_init(|| memchr::memmem::find(self.text.as_bytes(), suppress::MARK.as_bytes()).is_some())
    }

    /// What looks like keys in it.
    pub(crate) fn keys(&self) -> &[Key] {
        self.keys.get_or_init(|| secrets::find_keys(&self.text))
    }

    /// Its digest.
    pub(crate) fn digest(&self) -> &str {
        self.digest.get_or_init(|| crate::emit::compute_digest(self.text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_by_itself_while_it_is_held() {
        let cache = Cache::default();
        let (one, same): (Arc<str>, Arc<str>) = ("<<output:a>>".into(), "<<output:a>>".into());
        let first = cache.cached_text(Arc::clone(&one));
        assert!(Arc::ptr_eq(&first, &cache.cached_text(Arc::clone(&one))));
        assert!(!Arc::ptr_eq(&first, &cache.cached_text(Arc::clone(&same))));
        drop(same);
        cache.prune();
        assert_eq!(cache.lock_texts().len(), 1);
        drop(one);
        cache.prune();
        assert_eq!((cache.lock_texts().len(), first.template().parts.len()), (0, 1));
    }
}
