//! A flag with which the caller cancels a compilation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says to an analysis that its text is no longer the newest. Clones are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels the compilation: the compiler stops where it is.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the caller has cancelled the compilation.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;
    use crate::{Analysis, Cache, Entry, FileError, Files, Settings, Trees, analyze};

    /// Files that cancel the compilation after `most` reads.
    struct Cancelling {
        files: BTreeMap<String, String>,
        most: usize,
        cancel: Cancel,
        read: Mutex<usize>,
    }

    impl Files for Cancelling {
        fn read(&self, path: &str) -> Result<Arc<str>, FileError> {
            let mut read = self.read.lock().expect("nothing panics");
            *read += 1;
            if *read == self.most {
                self.cancel.cancel();
            }
            self.files.read(path)
        }

        fn find(&self, path: &str) -> Result<Entry, FileError> {
            self.files.find(path)
        }

        fn list(&self, path: &str) -> Vec<String> {
            self.files.list(path)
        }
    }

    /// Reads so many files of 21 before it is cancelled: how many were read, whether problems were told, and whether
    /// anything came of it.
    fn cancelled(most: usize) -> (usize, bool, bool) {
        let tasks: String = (0..20).map(|task| format!("task t{task} {{ prompt file=\"p{task}.md\" }}\n")).collect();
        let spec = format!("provider p {{ exec cat }}\nagent a provider=p\npipeline main {{\n{tasks}}}\n");
        let prompts = (0..20).map(|task| (format!("p{task}.md"), "Do it.".to_owned()));
        let files = std::iter::once(("flow.kdl".to_owned(), spec)).chain(prompts).collect();
        let cancel = Cancel::default();
        let files = Cancelling { files, most, cancel: cancel.clone(), read: Mutex::default() };
        let (mut trees, settings, cache) = (Trees::default(), Settings::default(), Cache::default());
        let analysis = analyze(&mut trees, "flow.kdl", &files, &settings, &cache, &cancel);
        let told = analysis.is_some();
        let finished = analysis.and_then(Analysis::finish);
        let read = *files.read.lock().expect("nothing panics");
        (read, told, finished.is_some())
    }

    #[test]
    fn what_is_cancelled_reads_nothing_more_and_says_nothing() {
        assert_eq!(cancelled(5), (5, false, false));
        assert_eq!(cancelled(1), (1, false, false));
        assert_eq!(cancelled(usize::MAX), (21, true, true), "no one cancels it");
    }

    #[test]
    fn what_is_cancelled_once_its_problems_are_known_is_left_all_the_same() {
        let files = BTreeMap::from([("flow.kdl".to_owned(), "pipeline main { task t { run ls } }\n".to_owned())]);
        let cancel = Cancel::default();
        let (mut trees, settings, cache) = (Trees::default(), Settings::default(), Cache::default());
        let analysis = analyze(&mut trees, "flow.kdl", &files, &settings, &cache, &cancel).expect("not yet cancelled");
        cancel.cancel();
        assert!(analysis.finish().is_none());
    }
}
