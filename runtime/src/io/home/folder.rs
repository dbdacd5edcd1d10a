//! The folder of one run: what lies in it, and who holds it.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use swarmc_plan::{Pipeline, Plan};

use crate::core::reopen;
use crate::io::home::Layout;
use crate::io::journal::{self, JournalFollower};
use crate::io::proc_status::{is_ending, is_gone, is_stopped};
use crate::types::digest::{digest_bytes, file_name};
use crate::types::error::RunError;
use crate::types::event::{Content, Event, Record};
use crate::types::reuse::Reuse;

/// How long a runner that was killed may take to let go of its run: the system clears its memory first.
const ENDING: Duration = Duration::from_secs(5);

/// How long the lock of a runner that is gone may be held: a process that it was just starting has a copy until its
/// program runs.
const STARTING: Duration = Duration::from_secs(1);

/// How long the lock of a run may be held by those who only look.
const LOOKING: Duration = Duration::from_millis(100);

/// Between two looks at a lock.
const PAUSE: Duration = Duration::from_millis(5);

/// The file that the runner of a run has locked.
const LOCK: &str = "lock";

/// A part of a text.
pub(crate) struct Part {
    pub text: String,
    /// The byte of the whole text behind it.
    pub end: u64,
}

/// The whole characters of `bytes`, which begin at byte `from` of a text.
pub(crate) fn cut_part(bytes: &[u8], from: u64) -> Part {
    // Who asks for the middle of a character gets the next one.
    let inside = bytes.iter().take_while(|&&byte| byte & 0b1100_0000 == 0b1000_0000).count();
    let valid = bytes[inside..].utf8_chunks().next().map_or("", |chunk| chunk.valid());
    Part { end: from + (inside + valid.len()) as u64, text: valid.to_owned() }
}

/// One run on disk.
#[derive(Clone, Debug)]
pub struct RunFolder {
    /// The run's id.
    pub id: String,
    /// `runs/RUN`: the plan, the journal, logs, prompts and artifacts.
    pub path: PathBuf,
    /// `outputs/RUN`: the captured tail of every task.
    pub outputs: PathBuf,
}

impl RunFolder {
    /// `plan.json`.
    pub fn plan_path(&self) -> PathBuf {
        self.path.join("plan.json")
    }

    /// `journal.jsonl`, described in `docs/journal.md`.
    pub fn journal_path(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// `control.sock`: where a running run takes orders.
    pub fn socket_path(&self) -> PathBuf {
        self.path.join("control.sock")
    }

    /// `reuse.jsonl`: the results that later runs may take.
    pub(crate) fn reuse_path(&self) -> PathBuf {
        self.path.join("reuse.jsonl")
    }

    /// The file of the artifact with this digest.
    pub fn artifact_path(&self, digest: &str) -> PathBuf {
        self.path.join("artifacts").join(file_name(digest))
    }

    /// Where the files of a run of `pipeline` lie.
    pub fn layout(&self, pipeline: &Pipeline) -> Layout {
        Layout::new(self, pipeline)
    }

    /// The plan that the run began with.
    ///
    /// # Errors
    /// It cannot be read, or not by this build.
    pub fn read_plan(&self) -> Result<Plan, RunError> {
        self.plan_text().and_then(|text| self.parse_plan(&text))
    }

    /// The plan that a run of these records has now.
    ///
    /// # Errors
    /// It cannot be read, not by this build, or is another one than they say.
    pub fn plan_now(&self, records: &[Record]) -> Result<Plan, RunError> {
        self.plan_now_or(records, || self.read_plan())
    }

    /// The same, where the plan that the run was started with is read already, or is read by `first`.
    ///
    /// # Errors
    /// As [`plan_now`](RunFolder::plan_now).
    pub fn plan_now_or(
        &self,
        records: &[Record],
        first: impl FnOnce() -> Result<Plan, RunError>,
    ) -> Result<Plan, RunError> {
        match reopen::plan_of(records) {
            Some((_, true)) => Ok(self.plan_of(records)?.1),
            Some((_, false)) | None => first(),
        }
    }

    /// The same with its text.
    pub(crate) fn plan_of(&self, records: &[Record]) -> Result<(String, Plan), RunError> {
        let (digest, is_mended) = reopen::plan_of(records).unwrap_or_default();
        let text = match digest.strip_prefix("sha256:").filter(|_| is_mended) {
            Some(digest) => {
                let path = self.artifact_path(digest);
                std::fs::read_to_string(&path).map_err(RunError::io("read", path))?
            }
            None => self.plan_text()?,
        };
        if reopen::digest_of(&text) != digest {
            let reason = match is_mended {
                true => "it is not the plan that the run went on with".to_owned(),
                false => "it is not the plan that the run started with".to_owned(),
            };
            return Err(RunError::Plan { run: self.id.clone(), reason });
        }
        let plan = self.parse_plan(&text)?;
        Ok((text, plan))
    }

    /// Where its processes run.
    ///
    /// # Errors
    /// That was not written down, or cannot be read.
    pub fn read_workspace(&self) -> Result<PathBuf, RunError> {
        Ok(self.read_config()?.workspace)
    }

    /// Every whole record of the journal; what is torn at its end is left out.
    ///
    /// # Errors
    /// The journal is missing, damaged, or newer than this build.
    pub fn read_records(&self) -> Result<Vec<Record>, RunError> {
        Ok(journal::read_journal(&self.journal_path())?.records)
    }

    /// Its journal, to be followed while the run goes on.
    pub fn follow_journal(&self) -> JournalFollower {
        JournalFollower::new(self.journal_path())
    }

    /// The text of `content`.
    ///
    /// # Errors
    /// It is an artifact, and cannot be read.
    pub fn read_text(&self, content: &Content) -> Result<String, RunError> {
        match content {
            Content::Text(text) => Ok(text.clone()),
            Content::Artifact { digest, .. } => {
                let path = self.artifact_path(digest);
                std::fs::read_to_string(&path).map_err(RunError::io("read", path))
            }
        }
    }

    /// At most so many bytes of the text of `content` from one of them on, whole characters only.
    pub(crate) fn read_part(&self, content: &Content, from: u64, most: usize) -> Result<Part, RunError> {
        let mut bytes = Vec::new();
        let from = from.min(content.bytes());
        match content {
            Content::Text(text) => bytes.extend(text.bytes().skip(from as usize).take(most)),
            Content::Artifact { digest, .. } => {
                let path = self.artifact_path(digest);
                let read = File::open(&path).and_then(|mut file| {
                    file.seek(SeekFrom::Start(from))?;
                    file.take(most as u64).read_to_end(&mut bytes)
                });
                read.map_err(RunError::io("read", path))?;
            }
        }
        Ok(cut_part(&bytes, from))
    }

    /// `engine.json`: in the copy of a run that an engine has, where it is from.
    pub(crate) fn engine_path(&self) -> PathBuf {
        self.path.join("engine.json")
    }

    /// Whether an engine has the run, and this is a copy: then nothing here goes on with it.
    pub fn is_copy(&self) -> bool {
        self.engine_path().exists()
    }

    /// Whether a process is running it now. One that is being killed is not, and is waited for.
    pub fn is_running(&self) -> bool {
        let began = Instant::now();
        // A run without a lock file was never started.
        let Ok(file) = File::open(self.lock_path()) else { return false };
        while let Err(TryLockError::WouldBlock) = file.try_lock_shared() {
            if self.lock_patience().is_none_or(|patience| began.elapsed() >= patience) {
                return true;
            }
            std::thread::sleep(PAUSE);
        }
        false
    }

    /// The process that is running it now.
    pub fn find_runner(&self) -> Option<Runner> {
        let pid = self.lock_holder().filter(|_| self.is_running())?;
        Some(Runner { pid, stopped: is_stopped(pid) })
    }

    /// How long its lock may be held by what a killed runner left behind; none where its runner lives.
    fn lock_patience(&self) -> Option<Duration> {
        match self.lock_holder()? {
            pid if is_ending(pid) => Some(ENDING),
            pid if is_gone(pid) => Some(STARTING),
            _ => None,
        }
    }

    /// The process that took its lock last.
    fn lock_holder(&self) -> Option<i32> {
        std::fs::read_to_string(self.lock_path()).ok()?.trim().parse().ok()
    }

    pub(crate) fn plan_text(&self) -> Result<String, RunError> {
        let path = self.plan_path();
        std::fs::read_to_string(&path).map_err(RunError::io("read", path))
    }

    pub(crate) fn parse_plan(&self, text: &str) -> Result<Plan, RunError> {
        swarmc_plan::read_plan(text).map_err(|error| RunError::Plan { run: self.id.clone(), reason: error.to_string() })
    }

    /// Writes the facts that no event holds.
    pub(crate) fn write_facts(&self, facts: &RunConfig) -> Result<(), RunError> {
        let text = serde_json::to_string(facts).expect("facts have string keys only");
        let path = self.facts_path();
        std::fs::write(&path, text).map_err(RunError::io("write", path))
    }

    /// How many of its steps run at once where its pipeline does not say, by its records; 1 where that is not known.
    pub fn concurrency(&self, records: &[Record]) -> u32 {
        let told = match records.first().map(|record| &record.event) {
            Some(Event::RunStarted { concurrency, .. }) => *concurrency,
            _ => None,
        };
        told.or_else(|| self.read_config().ok()?.concurrency).unwrap_or(1)
    }

    /// Reads the facts that no event holds.
    pub(crate) fn read_config(&self) -> Result<RunConfig, RunError> {
        let path = self.facts_path();
        let text = std::fs::read_to_string(&path).map_err(RunError::io("read", &path))?;
        serde_json::from_str(&text).map_err(|error| RunError::io("read", path)(io::Error::other(error)))
    }

    /// Stores `text` under its digest, durably, and says where it is. Texts are stored once.
    pub(crate) fn store_text(&self, text: &str) -> Result<Content, RunError> {
        let digest = digest_bytes(text.as_bytes());
        let content = Content::Artifact { digest: digest.clone(), bytes: text.len() as u64 };
        if !self.has_content(&content) {
            let path = self.artifact_path(&digest);
            write_durably(&path, text.as_bytes()).map_err(RunError::io("write", path))?;
        }
        Ok(content)
    }

    /// Whether a text is stored in full: a runner may have been killed while it wrote it.
    pub(crate) fn has_content(&self, content: &Content) -> bool {
        match content {
            Content::Text(_) => true,
            Content::Artifact { digest, bytes } => {
                std::fs::metadata(self.artifact_path(digest)).is_ok_and(|found| found.len() == *bytes)
            }
        }
    }

    pub(super) fn lock_path(&self) -> PathBuf {
        self.path.join(LOCK)
    }

    fn facts_path(&self) -> PathBuf {
        self.path.join("run.json")
    }
}

/// The process that runs a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runner {
    /// Its number.
    pub pid: i32,
    /// Whether it was stopped, by `SIGSTOP` or a terminal, and does nothing until it gets `SIGCONT`.
    pub stopped: bool,
}

/// What is true of a run in every process that runs it, and in no event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunConfig {
    /// Where its processes run.
    pub workspace: PathBuf,
    /// What the first record of a journal has today, in the folder of an older run.
    #[serde(default, skip_serializing)]
    pub concurrency: Option<u32>,
    #[serde(default, skip_serializing)]
    pub commit: Option<String>,
    /// Where the run is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// The recording that the run gets its answers from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<PathBuf>,
    /// What the run takes from earlier ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse: Option<Reuse>,
}

/// The right to run a run, until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would not do: a process that another thread is just starting holds a copy until its program runs.
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Takes the lock of `folder`. A process that only looks holds it for a moment, and a killed runner until it is
    /// gone: this waits for both.
    pub(crate) fn acquire_lock(folder: &RunFolder) -> Result<Lock, RunError> {
        let path = folder.lock_path();
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(RunError::io("create", &path))?;
        let began = Instant::now();
        loop {
            let patience = folder.lock_patience().unwrap_or(LOOKING);
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if began.elapsed() < patience => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(RunError::Busy { run: folder.id.clone() }),
                Err(TryLockError::Error(error)) => return Err(RunError::io("lock", path)(error)),
            }
        }
        // It says no more than whom to look at.
        let _ = write_holder(&file);
        Ok(Lock { file })
    }
}

/// Writes down that this process has the lock.
fn write_holder(file: &File) -> std::io::Result<()> {
    // Some file systems send a file to the disk as it is closed, once it was cut: that of a new run is left as it is.
    if file.metadata()?.len() > 0 {
        file.set_len(0)?;
    }
    file.write_all_at(std::process::id().to_string().as_bytes(), 0)
}

/// Whether a process has the lock of the run in `run`: the kernel says so.
pub(crate) fn holds_lock(process: i32, run: &Path) -> bool {
    let Ok(inode) = std::fs::metadata(run.join(LOCK)).map(|lock| lock.ino().to_string()) else { return false };
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    // `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`
    locks.lines().any(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let place = fields.get(5).and_then(|place| place.rsplit(':').next());
        fields.get(1) == Some(&"FLOCK") && fields.get(4) == Some(&&*process.to_string()) && place == Some(&*inode)
    })
}

/// Writes a file so that it is there in full, or not at all, whatever happens to this machine.
fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().expect("an artifact lies in a folder");
    super::create_private(folder, true)?;
    // Two threads may store the same text at once.
    let draft = path.with_extension(format!("{:?}", std::thread::current().id()));
    let written = std::fs::write(&draft, bytes)
        .and_then(|()| File::open(&draft)?.sync_all())
        .and_then(|()| std::fs::rename(&draft, path))
        .and_then(|()| File::open(folder)?.sync_all());
    if written.is_err() {
        // The draft is useless; the reason why the write failed counts.
        let _ = std::fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::home::Home;

    #[test]
    fn a_lock_that_outlives_its_holder_is_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let folder = Home::new(root.path().to_owned()).create().unwrap();
        let held = Lock::acquire_lock(&folder).unwrap();
        // A process that has ended, whose child still holds a copy of its lock.
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        std::fs::write(folder.lock_path(), gone.id().to_string()).unwrap();
        let copy = std::thread::spawn(move || {
            std::thread::sleep(LOOKING * 3);
            drop(held);
        });
        assert!(!folder.is_running());
        Lock::acquire_lock(&folder).unwrap();
        copy.join().unwrap();
    }

    #[test]
    fn a_run_that_a_process_holds_is_busy() {
        let root = tempfile::tempdir().unwrap();
        let folder = Home::new(root.path().to_owned()).create().unwrap();
        let _held = Lock::acquire_lock(&folder).unwrap();
        assert!(folder.is_running());
        assert!(matches!(Lock::acquire_lock(&folder), Err(RunError::Busy { .. })));
    }
}
