//! Calls that block a thread: run beside the others, timed, ended with the caller.
//!
//! Invariant: dropping the future of a call asks its work to end; after [`Calls::close`] none runs and none begins.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::types::cancel::Cancel;
use crate::types::user_request::StopLevel;

/// How many calls block a thread at once; others wait.
const AT_ONCE: usize = 16;

/// How long [`Calls::close`] waits for work that it asked to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The blocking calls of a run.
#[derive(Debug)]
pub(super) struct Calls {
    room: Arc<Semaphore>,
    open: Mutex<Vec<Weak<Cancel>>>,
    closed: AtomicBool,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls { room: Arc::new(Semaphore::new(AT_ONCE)), open: Mutex::default(), closed: AtomicBool::new(false) }
    }
}

impl Calls {
    /// Does `work` on a thread of its own, within `most` once there is room.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        most: Duration,
        work: impl FnOnce(&Cancel) -> T + Send + 'static,
    ) -> Result<T, String> {
        let room = Arc::clone(&self.room).acquire_owned().await.ok();
        let room = room.filter(|_| !self.closed.load(Ordering::SeqCst)).ok_or("the run is ending")?;
        let cancel = Arc::new(Cancel::default());
        let ender = Ender(Arc::clone(&cancel));
        {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|call| call.strong_count() > 0);
            open.push(Arc::downgrade(&cancel));
        }
        let working = tokio::task::spawn_blocking(move || {
            let done = work(&cancel);
            drop(room);
            done
        });
        let done = timeout(most, working).await;
        drop(ender);
        match done {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => Err("the tool broke down".to_owned()),
            Err(_) => Err(format!("the tool took longer than {} seconds", most.as_secs())),
        }
    }

    /// Ends what runs, and lets nothing begin.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let open: Vec<Arc<Cancel>> = {
            let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.iter().filter_map(Weak::upgrade).collect()
        };
        open.iter().for_each(|cancel| cancel.request_stop(StopLevel::Stop));
        drop(open);
        let all = u32::try_from(AT_ONCE).unwrap_or(u32::MAX);
        // A call that does not end in this time is stuck in the system, and is not waited for.
        let _ = timeout(PATIENCE, self.room.acquire_many(all)).await;
        self.room.close();
    }
}

/// Asks the work to end when its caller is gone.
struct Ender(Arc<Cancel>);

impl Drop for Ender {
    fn drop(&mut self) {
        self.0.request_stop(StopLevel::Stop);
    }
}
