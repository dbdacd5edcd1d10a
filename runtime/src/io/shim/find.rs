//! What shims of a run are there: for a runner that comes back, and to end what a run has left.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::attach::read_exit;
use super::{FromRunner, FromShim, Living, socket_path};
use crate::io::children::list_below;
use crate::io::home::{ATTEMPTS, list_folder_names};
use crate::io::unix::{Timed, through};

/// How long a shim may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a shim may take to end its process: longer than between TERM and KILL.
const ENDING: Duration = Duration::from_secs(15);

/// The longest answer.
const LONGEST: u64 = 64 * 1024;

/// What a former runner has left of an attempt, where another one can go on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldAttempt {
    /// The process that lives; none where it has ended meanwhile.
    pub living: Option<Living>,
}

/// What is held of the attempt whose processes have their folders in `folder`; none where nothing is, or it cannot go on.
pub(crate) fn find_held(folder: &Path) -> Option<HeldAttempt> {
    let names = list_folder_names(folder).ok()?;
    let place = |number: &u32| folder.join(number.to_string());
    // Where no shim listened, nothing was started: that one begins as if no runner had been.
    let begun = |number: &u32| {
        let place = place(number);
        fs::symlink_metadata(socket_path(&place)).is_ok() || place.join("out").exists()
    };
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).filter(begun).collect();
    numbers.sort_unstable();
    let last = numbers.pop()?;
    let ended = |number: &u32| read_exit(&place(number)).is_some_and(|exit| exit.cause.as_cause().is_some());
    // Its processes run one after another.
    if !numbers.iter().all(ended) {
        return None;
    }
    match ask_shim(&place(&last)) {
        Some(living) => Some(HeldAttempt { living: Some(living) }),
        None => ended(&last).then_some(HeldAttempt { living: None }),
    }
}

/// What the shim says whose folder that is; none where there is none.
fn ask_shim(folder: &Path) -> Option<Living> {
    let stream = say_once(folder, &FromRunner::Ask).ok()?;
    let timed = Timed { stream: &stream, until: Instant::now() + PATIENCE };
    let mut line = String::new();
    BufReader::new(timed.take(LONGEST)).read_line(&mut line).ok()?;
    match serde_json::from_str(&line).ok()? {
        FromShim::Lives(living) => Some(living),
        _ => None,
    }
}

fn say_once(folder: &Path, line: &FromRunner) -> io::Result<UnixStream> {
    let stream = through(&socket_path(folder), UnixStream::connect)?;
    let mut timed = Timed { stream: &stream, until: Instant::now() + PATIENCE };
    timed.write_all((serde_json::to_string(line)? + "\n").as_bytes())?;
    Ok(stream)
}

/// Ends all processes that shims hold for the run in `run`, and waits for that. How many there were.
pub(crate) fn stop_all_shims(run: &Path) -> usize {
    stop_shims(&run.join(ATTEMPTS))
}

/// Ends all processes that are held in `folder`, and waits for that. How many there were.
pub(crate) fn stop_shims(folder: &Path) -> usize {
    let told = list_sockets(folder).iter().filter(|folder| say_once(folder, &FromRunner::Stop).is_ok()).count();
    let until = Instant::now() + ENDING;
    // The socket of a shim that has ended answers no more.
    while told > 0 && Instant::now() < until && !list_sockets(folder).is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    told
}

/// The folders in `top` whose socket answers.
fn list_sockets(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = vec![top.to_owned()];
    while let Some(folder) = next.pop() {
        let socket = socket_path(&folder);
        if fs::symlink_metadata(&socket).is_ok() && through(&socket, UnixStream::connect).is_ok() {
            found.push(folder.clone());
        }
        next.extend(list_folder_names(&folder).unwrap_or_default().into_iter().map(|name| folder.join(name)));
    }
    found
}

/// These shims, and every process below them.
pub(crate) fn list_below_shims(shims: &BTreeSet<i32>) -> BTreeSet<i32> {
    match shims.is_empty() {
        true => BTreeSet::new(),
        false => list_below(shims),
    }
}
