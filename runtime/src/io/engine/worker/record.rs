//! The folder of a process that a worker has: what another worker needs that goes on with it.
//!
//! - `order.json`: the offer, as it came
//! - `place.json`: the files that were made for it
//! - `said`: the lines for its shim, of which a worker has told the engine that they came
//! - `reported`: the reports that the engine was sent last, and how far the streams were read for them
//! - `shim/`: the folder of its shim
//! - `over`: it has ended, and the engine has all its reports; only the queue may not know so far
//!
//! Invariant: a file is written before the engine learns what it says. None need survive a crash of the machine, which ends
//! all that they are about.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::io::home::create_private;
use crate::types::digest::digest_bytes;
use crate::types::engine::{Bytes, QueuedStart, Report, Started};

/// What says that a process has ended, and is reported.
const OVER: &str = "over";

/// The length of the lines that were passed on beyond which they are dropped from their file.
const LONGEST: u64 = 256 * 1024;

/// The folder of a process.
#[derive(Clone, Debug)]
pub(super) struct Record {
    folder: PathBuf,
}

/// The files of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The number of its working tree; none where its folder is its own.
    pub tree: Option<u32>,
    /// The commit of the files that it found.
    pub base: Option<String>,
    /// Where it runs.
    pub directory: PathBuf,
}

/// How far a process is reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reported {
    /// The number of the last report that the engine was sent.
    pub number: u64,
    /// The bytes of both streams that these reports hold.
    pub read: [u64; 2],
    /// Whether one of them says that it lives.
    pub lives: bool,
    /// The reports that the engine was sent last, and may not have.
    pub pending: Vec<Report>,
}

/// Lines for the shim of a process.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The lines before the first of these, and the bytes for the program in them.
    pub before: u64,
    pub bytes_before: u64,
    /// How many of these there are.
    pub count: u64,
    /// Those that are to be passed on.
    pub waiting: VecDeque<Bytes>,
    file: Option<File>,
    length: u64,
}

/// The first line of the file of lines.
#[derive(Serialize, Deserialize)]
struct Head {
    before: u64,
    bytes_before: u64,
}

impl Record {
    /// That of a process in the folder of a pool.
    pub(super) fn new(pool: &Path, of: &Started) -> Record {
        let digest = digest_bytes(format!("{} {}", of.process, of.start).as_bytes());
        Record { folder: pool.join(&digest[..32]) }
    }

    /// Those that a former worker has left in the folder of a pool, and their offers. What was not begun in full goes.
    pub(super) fn list(pool: &Path) -> Vec<(Record, QueuedStart)> {
        let names = crate::io::home::list_folder_names(pool).unwrap_or_default();
        let names =
            names.into_iter().filter(|name| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()));
        names
            .filter_map(|name| {
                let record = Record { folder: pool.join(name) };
                let offer = record.read("order.json");
                if offer.is_none() {
                    record.remove();
                }
                Some((record, offer?))
            })
            .collect()
    }

    /// Begins one.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn create(&self, offer: &QueuedStart) -> Result<(), String> {
        self.remove();
        create_private(&self.folder, true).map_err(|error| self.describe(&error))?;
        self.write("order.json", offer)
    }

    /// Keeps no more of it than that it has ended, until [`Record::remove`].
    pub(super) fn close(&self) {
        // Where that cannot be written, its reports say the same.
        if private().create(true).truncate(true).open(self.folder.join(OVER)).is_ok() {
            let _ = fs::remove_dir_all(self.shim());
            let _ = fs::remove_dir_all(self.empty_folder());
            let _ = fs::remove_file(self.folder.join("place.json"));
        }
    }

    /// Whether it has ended, and the engine has all its reports.
    pub(super) fn is_closed(&self) -> bool {
        self.folder.join(OVER).exists()
    }

    pub(super) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// The folder of its shim.
    pub(super) fn shim(&self) -> PathBuf {
        self.folder.join("shim")
    }

    /// Where it runs that has no files.
    pub(super) fn empty_folder(&self) -> PathBuf {
        self.folder.join("files")
    }

    pub(super) fn place(&self) -> Option<Place> {
        self.read("place.json")
    }

    pub(super) fn write_place(&self, place: &Place) -> Result<(), String> {
        self.write("place.json", place)
    }

    pub(super) fn reported(&self) -> Reported {
        self.read("reported").unwrap_or_default()
    }

    pub(super) fn write_reported(&self, reported: &Reported) -> Result<(), String> {
        self.write("reported", reported)
    }

    /// The lines for its shim that came so far.
    pub(super) fn lines(&self) -> Lines {
        let Some(mut lines) = self.read_lines() else { return Lines::default() };
        // Without what was being written when a worker was killed.
        let _ = self.rewrite_lines(&mut lines);
        lines
    }

    fn read_lines(&self) -> Option<Lines> {
        let file = File::open(self.folder.join("said")).ok()?;
        let mut texts = BufReader::new(file).split(b'\n').map_while(Result::ok);
        let Head { before, bytes_before } = serde_json::from_slice(&texts.next()?).ok()?;
        let waiting: VecDeque<Bytes> = texts.map_while(|text| serde_json::from_slice(&text).ok()).collect();
        Some(Lines { before, bytes_before, count: waiting.len() as u64, waiting, file: None, length: 0 })
    }

    /// Keeps lines of which the first has the number `from`; those that came before are dropped.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn add_lines(&self, lines: &mut Lines, from: u64, new: Vec<Bytes>) -> Result<(), String> {
        let next = lines.before + lines.count;
        if from > next {
            // What lies between never came: the engine says all of it again.
            return Ok(());
        }
        let known = usize::try_from(next - from).unwrap_or(usize::MAX);
        let new: Vec<Bytes> = new.into_iter().skip(known).collect();
        if new.is_empty() {
            return Ok(());
        }
        if lines.file.is_none() && lines.count == 0 {
            self.rewrite_lines(lines).map_err(|error| self.describe(&error))?;
        }
        let mut text = Vec::new();
        for line in &new {
            serde_json::to_writer(&mut text, line).map_err(|error| error.to_string())?;
            text.push(b'\n');
        }
        let Some(file) = &mut lines.file else { return Err(self.describe(&io::ErrorKind::NotFound.into())) };
        if let Err(error) = file.write_all(&text) {
            // What there was room for is no line.
            let _ = file.set_len(lines.length).and_then(|()| file.seek(io::SeekFrom::Start(lines.length)));
            return Err(self.describe(&error));
        }
        lines.length += text.len() as u64;
        lines.count += new.len() as u64;
        lines.waiting.extend(new);
        Ok(())
    }

    /// All lines were passed on, with so many bytes for the program in those of this worker: a long file begins anew.
    pub(super) fn drop_lines(&self, lines: &mut Lines, bytes: u64) -> u64 {
        if lines.length < LONGEST || !lines.waiting.is_empty() {
            return bytes;
        }
        let former = (lines.before, lines.bytes_before, lines.count);
        lines.before += lines.count;
        (lines.bytes_before, lines.count) = (lines.bytes_before + bytes, 0);
        if self.rewrite_lines(lines).is_err() {
            // The former file is still whole.
            (lines.before, lines.bytes_before, lines.count) = former;
            return bytes;
        }
        0
    }

    /// Writes the whole file of the lines that wait, and those before as their number.
    fn rewrite_lines(&self, lines: &mut Lines) -> io::Result<()> {
        let mut text = serde_json::to_vec(&Head { before: lines.before, bytes_before: lines.bytes_before })?;
        text.push(b'\n');
        for line in &lines.waiting {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        let draft = self.folder.join("said.draft");
        let mut file = private().create(true).truncate(true).open(&draft)?;
        file.write_all(&text)?;
        fs::rename(&draft, self.folder.join("said"))?;
        (lines.length, lines.file) = (text.len() as u64, Some(file));
        Ok(())
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.folder.join(name)).ok()?).ok()
    }

    /// Writes a file: the whole of it, or none.
    fn write(&self, name: &str, what: &impl Serialize) -> Result<(), String> {
        let write = || -> io::Result<()> {
            let draft = self.folder.join(format!("{name}.draft"));
            private().create(true).truncate(true).open(&draft)?.write_all(&serde_json::to_vec(what)?)?;
            fs::rename(&draft, self.folder.join(name))
        };
        write().map_err(|error| self.describe(&error))
    }

    fn describe(&self, error: &io::Error) -> String {
        format!("{} cannot be written: {error}", self.folder.display())
    }
}

fn private() -> fs::OpenOptions {
    let mut options = File::options();
    std::os::unix::fs::OpenOptionsExt::mode(options.write(true), 0o600);
    options
}
