//! Watches an agent's folder while its turn goes on: the states in `status.json` one after the other, and the size of
//! the folder.
//!
//! In: the folder, opened before the turn. Out: what was seen, when the turn is over. A folder that grows beyond its
//! bounds ends the turn. Invariant: what the agent does to its folder neither stops nor ends the watching thread.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::{Timestamp, Unit};

use super::status::read_status;
use super::tree;
use crate::types::agent_status::{AgentState, AgentStatus};
use crate::types::cancel::Cancel;
use crate::types::user_request::StopLevel;

/// How often `status.json` is read.
const GLANCE: Duration = Duration::from_millis(200);

/// How often the folder is weighed; more seldom where that takes long.
const WEIGH: Duration = Duration::from_secs(1);

/// What an agent may leave in its folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct SizeLimit {
    pub(super) bytes: u64,
    /// Files and folders.
    pub(super) files: usize,
}

pub(super) const MOST: SizeLimit = SizeLimit { bytes: 1024 * 1024 * 1024, files: 100_000 };

/// What the thread needs of the stack.
const STACK: usize = 256 * 1024;

/// The thread that watches a folder, if there is one.
#[derive(Debug, Default)]
pub(super) struct Watch {
    over: Arc<(Mutex<bool>, Condvar)>,
    looking: Option<JoinHandle<Seen>>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    state: AgentState,
    /// When it was seen to be at work, and to be over with that.
    started: Option<Timestamp>,
    completed: Option<Timestamp>,
    /// A state that followed one which it may not follow.
    pub(super) wrong: Option<String>,
    /// The folder has grown too large, in words; the turn was ended for it.
    pub(super) overflow: Option<String>,
}

/// To the second, as seed 003 writes it.
fn now() -> Timestamp {
    let now = Timestamp::now();
    now.round(Unit::Second).unwrap_or(now)
}

impl Seen {
    /// The agent says that it is in this state now.
    pub(super) fn note_state(&mut self, state: AgentState) {
        if !self.state.may_become(state) {
            let (from, to) = (self.state.as_str(), state.as_str());
            self.wrong.get_or_insert(format!("`status.json` went from `{from}` to `{to}`"));
        }
        self.state = state;
        if state != AgentState::Pending {
            self.started.get_or_insert_with(now);
        }
        if matches!(state, AgentState::Completed | AgentState::Failed) {
            self.completed.get_or_insert_with(now);
        }
    }

    /// Puts the times at which the states were seen into a status that says none: agents need no clock.
    pub(super) fn set_times(&self, status: &mut AgentStatus) {
        for (name, said, seen) in
            [("started", &mut status.started, self.started), ("completed", &mut status.completed, self.completed)]
        {
            if said.is_none() {
                // Where it says `null`.
                status.more.remove(name);
                *said = seen.map(|time| time.to_string());
            }
        }
    }

    /// Weighs the folder.
    pub(super) fn check_size(&mut self, root: &OwnedFd, most: SizeLimit) {
        let weight = tree::measure_folder(root.as_fd(), most.files);
        let filled = if weight.bytes > most.bytes {
            format!("it filled its folder with more than {} MiB", most.bytes / (1024 * 1024))
        } else if weight.files > most.files {
            format!("it filled its folder with more than {} files", most.files)
        } else if weight.is_deep {
            format!("it made folders in its folder that are more than {} deep", tree::DEEPEST)
        } else {
            return;
        };
        self.overflow.get_or_insert(filled);
    }
}

impl Watch {
    /// Begins to look.
    pub(super) fn start(root: &OwnedFd, cancel: &Arc<Cancel>) -> Result<Watch, String> {
        // By descriptor: the agent can rename the folder, or put another one in its place.
        let root = root.try_clone().map_err(|error| format!("the folder cannot be watched: {error}"))?;
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let (told, cancel) = (Arc::clone(&over), Arc::clone(cancel));
        let looking = std::thread::Builder::new()
            .name("files".to_owned())
            .stack_size(STACK)
            .spawn(move || watch_folder(&root, &told, &cancel))
            .map_err(|error| format!("the folder cannot be watched: {error}"))?;
        Ok(Watch { over, looking: Some(looking) })
    }

    /// Ends it, and says what was seen.
    pub(super) fn end(mut self) -> Seen {
        self.signal_end();
        self.looking.take().and_then(|looking| looking.join().ok()).unwrap_or_default()
    }

    fn signal_end(&self) {
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.1.notify_all();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.signal_end();
    }
}

fn watch_folder(root: &OwnedFd, (over, bell): &(Mutex<bool>, Condvar), cancel: &Cancel) -> Seen {
    let mut seen = Seen::default();
    let mut next = Instant::now() + WEIGH;
    let mut is_over = over.lock().unwrap_or_else(PoisonError::into_inner);
    while !*is_over {
        let waited = bell.wait_timeout(is_over, GLANCE).unwrap_or_else(PoisonError::into_inner);
        if *waited.0 {
            break;
        }
        drop(waited);
        // What cannot be read now is being written, or will be found when the turn is over.
        if let Ok(status) = read_status(root.as_fd()) {
            seen.note_state(status.state);
        }
        if Instant::now() >= next && seen.overflow.is_none() {
            let began = Instant::now();
            seen.check_size(root, MOST);
            // A large folder takes at most a tenth of the thread's time.
            next = Instant::now() + WEIGH.max(began.elapsed() * 10);
            if seen.overflow.is_some() {
                // Each second of patience would fill the disk further.
                cancel.request_stop(StopLevel::Kill);
            }
        }
        is_over = over.lock().unwrap_or_else(PoisonError::into_inner);
    }
    seen
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_fills_a_disk_is_weighed_and_holes_are_not() {
        let place = tempfile::tempdir().expect("a folder");
        let root = tree::open_root(place.path()).expect("it is there");
        let most = SizeLimit { bytes: 1024 * 1024, files: 5 };
        let overflow = || {
            let mut seen = Seen::default();
            seen.check_size(&root, most);
            seen.overflow
        };
        fs::create_dir(place.path().join("workspace")).expect("a folder");
        let hole = fs::File::create(place.path().join("workspace/hole")).expect("a file");
        hole.set_len(1 << 40).expect("a hole");
        assert_eq!(overflow(), None);
        fs::write(place.path().join("workspace/data"), vec![1; 2 * 1024 * 1024]).expect("a file");
        hole.sync_all().expect("it is written");
        fs::File::open(place.path().join("workspace/data")).and_then(|file| file.sync_all()).expect("it is written");
        assert_eq!(overflow().as_deref(), Some("it filled its folder with more than 1 MiB"));
        fs::remove_file(place.path().join("workspace/data")).expect("it is there");
        (0..4).for_each(|number| fs::write(place.path().join(format!("{number}")), "").expect("a file"));
        assert_eq!(overflow().as_deref(), Some("it filled its folder with more than 5 files"));
    }

    #[test]
    fn nothing_hides_in_the_depths() {
        let place = tempfile::tempdir().expect("a folder");
        let root = tree::open_root(place.path()).expect("it is there");
        fs::create_dir_all(place.path().join("d/".repeat(tree::DEEPEST + 2))).expect("folders");
        let mut seen = Seen::default();
        seen.check_size(&root, MOST);
        assert!(seen.overflow.is_some_and(|said| said.contains("deep")));
    }
}
