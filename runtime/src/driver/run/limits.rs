//! Prepares the system limits of this process before it runs anything.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::io::children;

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

/// Raises the limit on open files where so many processes at once need it; otherwise it stays as it is: processes
/// inherit it. Says what follows where it cannot be raised so far, and then no more run at once than there are files
/// for.
pub(super) fn allow_files(concurrency: u32) -> Option<String> {
    let needed = u64::from(concurrency) * FILES_EACH + FILES_BESIDES;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = Some(limit.maximum.map_or(needed, |maximum| needed.min(maximum)));
        // Where it cannot be raised, it stays as it is.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    let files = getrlimit(Resource::Nofile).current.filter(|&files| files < needed)?;
    let most = process_capacity(files);
    children::set_limit(usize::try_from(most).unwrap_or(usize::MAX));
    (most < u64::from(concurrency)).then(|| {
        let processes = if most == 1 { "1 process runs".to_owned() } else { format!("{most} processes run") };
        format!("{processes} at once, not {concurrency}: the limit on open files is {files} (`ulimit -n`)")
    })
}

/// The processes for which there are files.
fn process_capacity(files: u64) -> u64 {
    let besides = FILES_BESIDES.min(files / 2);
    ((files - besides) / FILES_EACH).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_processes_run_at_once_as_there_are_files_for() {
        assert_eq!([0, 16, 64, 256, 1024].map(process_capacity), [1, 1, 4, 16, 112]);
    }
}
