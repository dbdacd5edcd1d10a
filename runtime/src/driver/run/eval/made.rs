//! What evaluations make beside their results: packs, texts to store, and notes of what is missing.
//!
//! In: what the functions of the evaluator add. Out: what their caller takes from it. The evaluator itself keeps and
//! writes nothing: the caller stores the texts before it records an event that refers to them.

use std::cell::RefCell;
use std::sync::Arc;

use super::Packed;
use super::file_summaries::Wanted;
use crate::types::artifact::ArtifactMeta;
use crate::types::digest::digest_bytes;
use crate::types::event::{self, Content, Event, StepId};

/// The missing values that are noted at most: a run never takes them.
const MISSING: usize = 1000;

/// What evaluations made, until their caller takes it.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// Whether agents may sum up files before the attempt that is being prepared; in a rehearsal they never do.
    sums_up: bool,
    /// The files that are to be summed up before it.
    wanted: RefCell<Vec<Wanted>>,
    /// The packs that were built and are not yet recorded.
    packs: RefCell<Vec<Arc<Packed>>>,
    /// The texts that are not yet stored, with what events hold instead.
    texts: RefCell<Vec<(Content, String)>>,
    /// Missing values that were read.
    missing: RefCell<Vec<String>>,
}

impl Made {
    /// Lets agents sum up files before the attempt that is prepared next, or not.
    pub(crate) fn allow_summaries(&mut self, sums_up: bool) {
        self.sums_up = sums_up;
    }

    /// Whether agents may sum up files first.
    pub(super) fn sums_up(&self) -> bool {
        self.sums_up
    }

    /// Notes the files that are to be summed up first.
    pub(super) fn want_summaries(&self, wanted: Vec<Wanted>) {
        self.wanted.replace(wanted);
    }

    /// Takes the files that are to be summed up first.
    pub(crate) fn take_wanted(&mut self) -> Vec<Wanted> {
        self.wanted.take()
    }

    /// The pack of an attempt that was built already.
    pub(super) fn find_pack(&self, step: &StepId, attempt: u32, name: &str) -> Option<Arc<Packed>> {
        let packs = self.packs.borrow();
        packs.iter().find(|it| it.step == *step && it.attempt == attempt && it.name == name).cloned()
    }

    /// Adds a pack.
    pub(super) fn add_pack(&self, packed: Packed) -> Arc<Packed> {
        let packed = Arc::new(packed);
        self.packs.borrow_mut().push(Arc::clone(&packed));
        packed
    }

    /// Takes the events to record for the packs that were built since the last call.
    pub(crate) fn take_packs(&mut self) -> Vec<Event> {
        let packs = self.packs.take();
        let events = packs.iter().flat_map(|packed| {
            let event = |kept: &ArtifactMeta| Event::ArtifactStored {
                step: packed.step.clone(),
                attempt: packed.attempt,
                artifact: Box::new(kept.clone()),
            };
            packed.kept.iter().map(event)
        });
        events.collect()
    }

    /// A text as an event holds it: in place, or as an artifact.
    pub(super) fn content(&self, text: String) -> Content {
        if event::can_inline(&text) { Content::Text(text) } else { self.blob(text) }
    }

    /// A text of an answer, as an event holds it.
    pub(super) fn stored(&self, text: Content) -> Content {
        match text {
            Content::Text(text) => self.content(text),
            artifact => artifact,
        }
    }

    /// The same with so much room for it as JSON in its event.
    pub(super) fn content_within(&self, text: String, room: usize) -> Content {
        // By the escaped length: as JSON a text may be several times longer.
        if event::escaped_length(&text) <= room { self.content(text) } else { self.blob(text) }
    }

    /// A text as an artifact, which can be referred to.
    pub(super) fn blob(&self, text: String) -> Content {
        let content = Content::Artifact { digest: digest_bytes(text.as_bytes()), bytes: text.len() as u64 };
        self.texts.borrow_mut().push((content.clone(), text));
        content
    }

    /// Takes the texts that are to be stored before the next record.
    pub(crate) fn take_texts(&mut self) -> Vec<(Content, String)> {
        self.texts.take()
    }

    /// Notes a missing value that was read.
    pub(crate) fn note_missing(&self, what: &str) {
        let mut missing = self.missing.borrow_mut();
        if missing.len() < MISSING {
            missing.push(what.to_owned());
        }
    }

    /// Takes the missing values that were read since the last call.
    pub(crate) fn take_missing(&mut self) -> Vec<String> {
        self.missing.take()
    }
}
