//! Limits the connections of the agent server. Where all places are taken, the oldest connection without a token is
//! closed for the next one.
//!
//! Invariant: a connection without a token holds up none that has one, and keeps its place for seconds at most.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a connection may take to show a token.
const STRANGER: Duration = Duration::from_secs(5);

/// The places of an agent server.
#[derive(Debug)]
pub struct Places {
    room: Arc<Semaphore>,
    /// The connections that have shown no token, in the order in which they came.
    strangers: Mutex<Unauthenticated>,
}

#[derive(Debug, Default)]
struct Unauthenticated {
    come: u64,
    waiting: BTreeMap<u64, Arc<Notify>>,
}

/// A place that a connection holds.
#[derive(Debug)]
pub struct Place {
    of: Arc<Places>,
    number: u64,
    /// Its holder is to go.
    goes: Arc<Notify>,
    /// Its holder has shown a token.
    shown: Notify,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    /// So many places.
    pub fn new(most: usize) -> Arc<Places> {
        Arc::new(Places { room: Arc::new(Semaphore::new(most)), strangers: Mutex::default() })
    }

    /// A place for a connection that has come. Where all have shown a token it waits for one of them.
    pub async fn acquire_place(self: &Arc<Self>) -> Place {
        let permit = match Arc::clone(&self.room).try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => {
                let oldest = self.lock_strangers().waiting.pop_first();
                oldest.inspect(|(_, stranger)| stranger.notify_one());
                // No code closes the semaphore.
                Arc::clone(&self.room).acquire_owned().await.ok()
            }
        };
        let goes = Arc::new(Notify::new());
        let mut strangers = self.lock_strangers();
        strangers.come += 1;
        let number = strangers.come;
        strangers.waiting.insert(number, Arc::clone(&goes));
        drop(strangers);
        Place { of: Arc::clone(self), number, goes, shown: Notify::new(), _permit: permit }
    }

    fn lock_strangers(&self) -> MutexGuard<'_, Unauthenticated> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Its holder has shown a token, and may stay.
    pub fn mark_authenticated(&self) {
        if self.of.lock_strangers().waiting.remove(&self.number).is_some() {
            self.shown.notify_one();
        }
    }

    /// Ends when its holder has to go, who has shown no token.
    pub async fn wait_for_eviction(&self) {
        let late = async {
            if timeout(STRANGER, self.shown.notified()).await.is_ok() {
                pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.goes.notified() => {}
            () = late => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.lock_strangers().waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a future ends by itself, in the time of the test.
    async fn ends(future: impl Future<Output = ()>, within: Duration) -> bool {
        timeout(within, future).await.is_ok()
    }

    const MOMENT: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn the_stranger_that_came_first_makes_way() {
        let places = Places::new(2);
        let (known, first) = (places.acquire_place().await, places.acquire_place().await);
        known.mark_authenticated();
        let next = tokio::join!(places.acquire_place(), async {
            first.wait_for_eviction().await;
            drop(first);
        });
        assert!(!ends(known.wait_for_eviction(), 10 * STRANGER).await, "who has shown a token stays");
        // A connection that has shown one makes way for no other.
        next.0.mark_authenticated();
        assert!(timeout(10 * STRANGER, places.acquire_place()).await.is_err());
        assert!(!ends(next.0.wait_for_eviction(), MOMENT).await);
        drop(known);
        assert!(timeout(MOMENT, places.acquire_place()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_has_to_show_a_token_soon() {
        let places = Places::new(2);
        let place = places.acquire_place().await;
        assert!(!ends(place.wait_for_eviction(), STRANGER - MOMENT).await);
        assert!(ends(place.wait_for_eviction(), STRANGER + MOMENT).await);
    }
}
