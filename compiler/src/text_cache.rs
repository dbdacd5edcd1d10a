//! Caches the results that depend on one text alone, for as long as the text lives.
//!
//! In: a shared text that never changes. Out: its [`CachedText`], which holds values of types that it does not know.
//! [`Cache`] keeps these results from one compilation to
//! the next. It identifies a text by its address and holds it, so that no other text can get the same address.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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
        self.lock_texts().retain(|_, cached| Arc::strong_count(&cached.text) > 1);
    }

    fn lock_texts(&self) -> MutexGuard<'_, HashMap<usize, Arc<CachedText>>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A value that depends on one text alone. The module that needs the value declares it.
pub(crate) trait Derived: Any + Send + Sync {
    /// Works the value out.
    fn from_text(text: &str) -> Self;
}

/// A text, and the values that were derived from it so far.
pub(crate) struct CachedText {
    text: Arc<str>,
    first: Link,
}

/// The values of a text form a list, each of another type. A link never changes once it is set, so that references to
/// values stay valid without a lock.
type Link = OnceLock<Box<Entry<dyn Any + Send + Sync>>>;

struct Entry<T: ?Sized> {
    next: Link,
    value: T,
}

impl CachedText {
    pub(crate) fn new(text: Arc<str>) -> CachedText {
        CachedText { text, first: Link::new() }
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The value of this type, worked out when it is first asked for.
    pub(crate) fn derived<T: Derived>(&self) -> &T {
        let mut link = &self.first;
        loop {
            // Where another thread adds a value in the meantime, that comes first.
            let entry = link.get_or_init(|| {
                let (next, value) = (Link::new(), T::from_text(&self.text));
                Box::new(Entry { next, value })
            });
            match entry.value.downcast_ref() {
                Some(value) => return value,
                None => link = &entry.next,
            }
        }
    }
}

impl fmt::Debug for CachedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedText").field("text", &self.text).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Length(usize);

    impl Derived for Length {
        fn from_text(text: &str) -> Length {
            Length(text.len())
        }
    }

    struct FirstByte(Option<u8>);

    impl Derived for FirstByte {
        fn from_text(text: &str) -> FirstByte {
            FirstByte(text.bytes().next())
        }
    }

    #[test]
    fn a_value_is_worked_out_once() {
        let text = CachedText::new("abc".into());
        let length = text.derived::<Length>();
        assert_eq!((length.0, text.derived::<FirstByte>().0), (3, Some(b'a')));
        assert!(std::ptr::eq(length, text.derived::<Length>()));
    }

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
        assert_eq!((cache.lock_texts().len(), first.derived::<Length>().0), (0, 12));
    }
}
