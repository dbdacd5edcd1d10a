//! What goes on in the attempts that this process has open: whether their agents read or write, and since when.
//!
//! In: signs of life, from the code that carries an attempt out. Out: an [`Activity`] for each open attempt, on
//! request. The runner journals none of it: it is true for a moment, and a sign costs a look at the clock and two
//! stores.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::event::StepId;

/// What goes on in an open attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The step.
    pub step: StepId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// What its agent is doing.
    pub stream: Flow,
    /// When it last did something, in milliseconds since 1970 (UTC).
    pub active_ms: u64,
}

/// What an agent is doing, as far as can be seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// It was sent something, and has put nothing out since.
    Reading,
    /// It puts something out.
    Writing,
}

impl Flow {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Flow::Reading => "reading",
            Flow::Writing => "writing",
        }
    }
}

/// The activities of a run. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activities(Arc<Mutex<Open>>);

type Open = BTreeMap<(StepId, u32), Arc<Signs>>;

#[derive(Debug)]
struct Signs {
    active_ms: AtomicU64,
    writing: AtomicBool,
}

/// Reports what one attempt does. Without a reporter the runner knows nothing of the attempt.
#[derive(Debug)]
pub(crate) struct ActivityReporter {
    of: Activities,
    key: (StepId, u32),
    signs: Arc<Signs>,
}

impl Activities {
    /// An attempt begins, and is about to be sent what it is asked.
    pub(crate) fn open(&self, step: &StepId, attempt: u32) -> ActivityReporter {
        let signs = Arc::new(Signs { active_ms: AtomicU64::new(now_ms()), writing: AtomicBool::new(false) });
        let key = (step.clone(), attempt);
        self.lock().insert(key.clone(), Arc::clone(&signs));
        ActivityReporter { of: self.clone(), key, signs }
    }

    /// Those of the attempts that are open now, in the order of their steps.
    pub(crate) fn list_open(&self) -> Vec<Activity> {
        let open = self.lock();
        let pulse = |((step, attempt), signs): (&(StepId, u32), &Arc<Signs>)| Activity {
            step: step.clone(),
            attempt: *attempt,
            stream: if signs.writing.load(Ordering::Relaxed) { Flow::Writing } else { Flow::Reading },
            active_ms: signs.active_ms.load(Ordering::Relaxed),
        };
        open.iter().map(pulse).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActivityReporter {
    /// It was sent something; whether it did something else before.
    pub(crate) fn mark_reading(&self) -> bool {
        self.record_sign(false)
    }

    /// It put something out; whether it did something else before.
    pub(crate) fn mark_writing(&self) -> bool {
        self.record_sign(true)
    }

    fn record_sign(&self, writing: bool) -> bool {
        self.signs.active_ms.store(now_ms(), Ordering::Relaxed);
        self.signs.writing.swap(writing, Ordering::Relaxed) != writing
    }
}

impl Drop for ActivityReporter {
    fn drop(&mut self) {
        let mut open = self.of.lock();
        // The same attempt may have begun again meanwhile.
        if open.get(&self.key).is_some_and(|signs| Arc::ptr_eq(signs, &self.signs)) {
            open.remove(&self.key);
        }
    }
}

/// The time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_reads_until_it_puts_something_out_and_is_forgotten_when_it_ends() {
        let activities = Activities::default();
        let step = StepId::new("coder", 1, 1);
        let hand = activities.open(&step, 2);
        let first = activities.list_open();
        assert_eq!((first.len(), &first[0].step, first[0].attempt), (1, &step, 2));
        assert_eq!(first[0].stream, Flow::Reading);
        assert!(hand.mark_writing(), "that is a change");
        assert!(!hand.mark_writing());
        let later = activities.list_open();
        assert_eq!(later[0].stream, Flow::Writing);
        assert!(later[0].active_ms >= first[0].active_ms && first[0].active_ms > 0);
        assert!(hand.mark_reading());
        assert_eq!(activities.list_open()[0].stream, Flow::Reading);
        let again = activities.open(&step, 2);
        drop(hand);
        assert_eq!(activities.list_open().len(), 1, "the one that began again goes on");
        drop(again);
        assert_eq!(activities.list_open(), []);
    }
}
