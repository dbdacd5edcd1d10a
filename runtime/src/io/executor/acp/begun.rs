//! Which commands runners have begun for an agent whose process outlives them: none of these runs twice.
//!
//! In: the requests for commands, by their ids. Out: a file beside the streams of the process, with one id a line. It is
//! written before a command starts, so that a command may be in there that never started, and none is missing.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// The error for a command that had begun when the last runner ended.
pub(super) const UNKNOWN: &str = "swarmc was ended when it had begun this command, and does not know how far the command \
came: look at what it has done before you run it again";

/// The commands that were begun.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// Where they are noted; none where the process ends with its runner.
    path: Option<PathBuf>,
    /// The requests for those that former runners have begun and not answered, as far as is known.
    open: Vec<String>,
}

impl Begun {
    /// Notes commands in the file at `path`, where there is one. Where `goes_on` says so, it holds those of former runners.
    pub(super) fn new(path: Option<PathBuf>, goes_on: bool) -> Begun {
        let noted = path.as_ref().filter(|_| goes_on).and_then(|path| fs::read_to_string(path).ok());
        Begun { open: noted.iter().flat_map(|noted| noted.lines()).map(str::to_owned).collect(), path }
    }

    /// Whether a former runner has begun what the request `id` asks for. Forgets it: an agent may use an id again.
    pub(super) fn take(&mut self, id: &str) -> bool {
        let place = self.open.iter().position(|open| open == id);
        place.map(|place| self.open.swap_remove(place)).is_some()
    }

    /// Notes that what the request `id` asks for is about to begin.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn note(&self, id: &str) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        file.write_all(format!("{id}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_former_runner_has_begun_and_not_answered_is_known_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().join("begun"));
        let first = Begun::new(path.clone(), false);
        ["1", "\"a\"", "1"].into_iter().for_each(|id| first.note(id).unwrap());
        let mut next = Begun::new(path.clone(), true);
        let taken = ["1", "1", "1", "\"a\"", "2"].map(|id| next.take(id));
        assert_eq!(taken, [true, true, false, true, false]);
        assert!(!Begun::new(path, false).take("1"), "the process is another one");
        assert!(Begun::default().note("1").is_ok());
    }
}
