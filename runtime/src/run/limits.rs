//! What this process asks of the system before it runs anything.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use rustix::process::{Resource, getrlimit, setrlimit};

/// Pipes, a process handle and a log for each process that runs at once.
const FILES_EACH: u64 = 8;
const FILES_BESIDES: u64 = 128;

/// Has a write beyond the file size limit fail like any other instead of killing this process. The signal is handled
/// rather than ignored, since what is ignored would be ignored in every process we start.
pub(super) fn survive_full_files() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where it cannot be handled, such a write ends this process; the run can be resumed then, too.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
    });
}

/// Raises the limit on open files where so many processes at once need it. Otherwise it stays as it is: processes
/// inherit it.
pub(super) fn allow_files(concurrency: u32) {
    let needed = u64::from(concurrency) * FILES_EACH + FILES_BESIDES;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = Some(limit.maximum.map_or(needed, |maximum| needed.min(maximum)));
        // Where it cannot be raised, the attempt that finds no file handle left says so.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
