//! Starts what was submitted: each run in a process of its own that outlives the server, some at once, the others in turn.
//!
//! In: what a client wants run. Out: runs. The folder of the queue holds a file for each submission: `N.json` while it
//! waits, `N.run` with the id of its run once that has begun, `N.failed` with the reason where it did not. Invariants: what
//! was accepted survives the end of the server, and begins once, in the order in which it came; every child is reaped.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use swarmc_view::now_ms;

use crate::digest::short_digest;
use crate::documents::{QueuedRun, SubmitRun};

/// How long a run may take to begin.
const BEGINS: Duration = Duration::from_secs(30);

/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(5);

/// A message quotes so many bytes of what a program wrote, from its end.
const TOLD: u64 = 4 * 1024;

/// Why a submission did not begin that was taken back.
pub(crate) const CANCELLED: &str = "it was taken back before it began";

/// The kind of file that holds the plan of a submission while it begins.
const PLAN: &str = "plan.json";

/// The submissions that wait at most.
const WAITING: usize = 1_000;

/// What the queue needs to know.
#[derive(Debug)]
pub(crate) struct Config {
    /// The folder of the queue.
    pub folder: PathBuf,
    /// The home whose runs are started.
    pub home: PathBuf,
    /// The program that runs them.
    pub program: PathBuf,
    /// The folders whose specs may be run; absolute.
    pub specs: Vec<PathBuf>,
    /// The spec that runs what is posted as a task.
    pub tasks: Option<PathBuf>,
    /// Whether a plan may be run that comes with its submission.
    pub allows_plans: bool,
    /// How many go on at once; none where nothing is started.
    pub most: Option<usize>,
}

/// What was submitted.
#[derive(Debug)]
pub(crate) struct Queue {
    config: Config,
    state: Mutex<State>,
    /// Held for as long as the server lives: two servers would start what waits twice.
    lock: Option<File>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<u64, Submission>,
    /// The number of the last submission.
    last: u64,
    /// How many runs of this server go on.
    running: usize,
    /// Whether waiting submissions may begin.
    started: bool,
}

/// A submission.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Submission {
    /// When it came, in milliseconds since 1970.
    at: u64,
    /// What is wanted.
    wants: SubmitRun,
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    Waiting,
    /// Its run, by id.
    Run(String),
    /// It did not begin.
    Failed(String),
}

/// Why something is not accepted.
#[derive(Debug)]
pub(crate) enum Refused {
    /// What it names is not there, or may not be run.
    Unknown(String),
    /// The spec has mistakes: what `swarmc check` says, as JSON.
    Mistakes(Value),
    /// It cannot be run now.
    Impossible(String),
}

impl Queue {
    /// The queue of a folder, with what it holds.
    ///
    /// # Errors
    /// The folder cannot be made or read, or another server has it.
    pub(crate) fn open(config: Config) -> io::Result<Arc<Queue>> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&config.folder)?;
        let lock = config.most.map(|_| {
            let file = File::options().create(true).truncate(false).write(true).open(config.folder.join("lock"))?;
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            io::Result::Ok(file)
        });
        let lock = lock.transpose()?;
        let queue = Queue { config, state: Mutex::default(), lock };
        let (waiting, last) = queue.load()?;
        let state = State { waiting, last, ..State::default() };
        Ok(Arc::new(Queue { state: Mutex::new(state), ..queue }))
    }

    /// What the folder holds: the submissions that wait, and the number of the last one.
    fn load(&self) -> io::Result<(BTreeMap<u64, Submission>, u64)> {
        let (mut waiting, mut last) = (BTreeMap::new(), 0);
        for entry in std::fs::read_dir(&self.config.folder)? {
            let path = entry?.path();
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
            let Some(number) = number else { continue };
            last = last.max(number);
            let is_settled = ["run", "failed"].iter().any(|kind| self.path(number, kind).exists());
            if path != self.path(number, "json") || is_settled || self.lock.is_some() && self.promote(number) {
                continue;
            }
            if let Some(submission) = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()) {
                waiting.insert(number, submission);
            }
        }
        Ok((waiting, last))
    }

    /// Notes the run of a submission that a former server began, and had not noted when it ended; whether there is one.
    fn promote(&self, number: u64) -> bool {
        let id = self.path(number, "id");
        // A child holds the lock of its log for as long as it lives: it may be about to write its id.
        let log = File::open(self.path(number, "log"));
        let begins = |log: &File| rustix::fs::flock(log, FlockOperation::NonBlockingLockShared).is_err();
        let begun = Instant::now();
        while !id.exists() && log.as_ref().is_ok_and(begins) && begun.elapsed() < BEGINS {
            std::thread::sleep(LOOK);
        }
        let has_run = std::fs::rename(&id, self.path(number, "run")).is_ok();
        if has_run {
            let _ = std::fs::remove_file(self.path(number, "json"));
        }
        has_run
    }

    /// Lets what waits begin.
    pub(crate) fn start(self: &Arc<Self>) {
        self.lock().started = true;
        self.start_waiting();
    }

    /// What waits, in order.
    pub(crate) fn list(&self) -> Vec<QueuedRun> {
        let mut state = self.lock();
        // Another server starts them.
        if self.lock.is_none() {
            state.waiting = self.load().map_or_else(|_| BTreeMap::new(), |(waiting, _)| waiting);
        }
        let queued = |(&id, submission): (&u64, &Submission)| QueuedRun {
            id,
            spec: submission.wants.describe_source(),
            pipeline: submission.wants.pipeline.clone(),
            at: submission.at,
        };
        state.waiting.iter().map(queued).collect()
    }

    /// The specs that may be run, relative to their folders.
    pub(crate) fn list_specs(&self) -> Vec<String> {
        let mut specs = Vec::new();
        for root in &self.config.specs {
            collect_specs(root, root, &mut specs);
        }
        specs.sort();
        specs
    }

    /// The spec that runs tasks; the only one there is, where none was named.
    pub(crate) fn task_spec(&self) -> Option<String> {
        if let Some(spec) = &self.config.tasks {
            return Some(spec.to_string_lossy().into_owned());
        }
        let specs = self.list_specs();
        (specs.len() == 1).then(|| specs[0].clone())
    }

    /// Takes a submission; its number. It begins at once where there is room. One with a key that came before is the same.
    ///
    /// # Errors
    /// It is not accepted.
    pub(crate) fn submit(self: &Arc<Self>, wants: SubmitRun, key: Option<&str>) -> Result<u64, Refused> {
        let key_file = key.map(|key| self.config.folder.join(format!("key-{}", short_digest(key.as_bytes()))));
        let find_known = || key_file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()?.parse().ok());
        if let Some(known) = find_known() {
            return Ok(known);
        }
        match &wants.plan {
            Some(_) => self.check_plan(&wants)?,
            None => self.check_spec(&self.find_spec(&wants.spec)?)?,
        }
        let number = {
            let mut state = self.lock();
            // The same request may have come meanwhile.
            if let Some(known) = find_known() {
                return Ok(known);
            }
            if state.waiting.len() >= WAITING {
                return Err(Refused::Impossible(format!("{WAITING} runs wait to begin, which is the limit")));
            }
            state.last += 1;
            let submission = Submission { at: now_ms(), wants };
            let text = serde_json::to_vec(&submission).map_err(|error| Refused::Impossible(error.to_string()))?;
            self.write(state.last, "json", &text).map_err(|error| Refused::Impossible(error.to_string()))?;
            let number = state.last;
            state.waiting.insert(number, submission);
            if let Some(file) = &key_file {
                // Without the file a repeated request is a run of its own.
                let _ = std::fs::write(file, number.to_string());
            }
            number
        };
        let queue = Arc::clone(self);
        std::thread::spawn(move || queue.start_waiting());
        self.await_begin(number);
        Ok(number)
    }

    /// Waits until a submission has begun, where there is room for it.
    fn await_begin(&self, number: u64) {
        let begun = Instant::now();
        while begun.elapsed() < BEGINS && self.find(number) == Some(Place::Waiting) {
            {
                let state = self.lock();
                let is_full = self.config.most.is_some_and(|most| state.running >= most);
                if is_full && state.waiting.contains_key(&number) {
                    return;
                }
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What became of a submission; none where there is none.
    pub(crate) fn find(&self, number: u64) -> Option<Place> {
        // Looked for first: this file stays until one of the others is written.
        let waits = self.path(number, "json").exists();
        let read = |kind: &str| std::fs::read_to_string(self.path(number, kind)).ok();
        let settled = read("run").map(Place::Run).or_else(|| read("failed").map(Place::Failed));
        settled.or(waits.then_some(Place::Waiting))
    }

    /// Takes a submission back that waits; one that is just beginning begins first. What became of it.
    pub(crate) fn cancel(&self, number: u64) -> Option<Place> {
        if self.lock().waiting.remove(&number).is_some() {
            let _ = self.write(number, "failed", CANCELLED.as_bytes());
            let _ = std::fs::remove_file(self.path(number, "json"));
        }
        let begun = Instant::now();
        while begun.elapsed() < BEGINS && self.find(number) == Some(Place::Waiting) {
            std::thread::sleep(LOOK);
        }
        self.find(number)
    }

    /// The plan of a spec, as JSON.
    ///
    /// # Errors
    /// There is no such spec, or it has mistakes.
    pub(crate) fn plan_spec(&self, spec: &str) -> Result<String, Refused> {
        let path = self.find_spec(spec)?;
        self.check_spec(&path)?;
        let done = self.command(&path).arg("plan").arg(&path).args(["-o", "-"]).output();
        let done = done.map_err(|error| Refused::Impossible(error.to_string()))?;
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
            false => Err(Refused::Impossible(String::from_utf8_lossy(&done.stderr).into_owned())),
        }
    }

    /// Goes on with a run, in a process of its own; returns when that has taken the run over.
    ///
    /// # Errors
    /// It ends before.
    pub(crate) fn resume(&self, run: &swarmc_runtime::RunFolder, retry_failed: bool) -> Result<(), Refused> {
        let failed = |error: io::Error| Refused::Impossible(error.to_string());
        let mut log =
            File::options().create(true).append(true).read(true).open(run.path.join("runner.log")).map_err(failed)?;
        let before = log.metadata().map_err(failed)?.len();
        let mut command = self.command(&run.path);
        command.args(["resume", &run.id, "--detach"]).args(retry_failed.then_some("--retry-failed"));
        let mut child = start(command, &log).map_err(failed)?;
        let begun = Instant::now();
        while !run.is_running() {
            if let Some(status) = child.try_wait().map_err(failed)? {
                // A short rest of a run is over at once.
                return match status.code() {
                    Some(0 | 3..=5) => Ok(()),
                    _ => Err(Refused::Impossible(read_end(&mut log, before))),
                };
            }
            if begun.elapsed() > BEGINS {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Refused::Impossible(format!("it has not begun within {} seconds", BEGINS.as_secs())));
            }
            std::thread::sleep(LOOK);
        }
        std::thread::spawn(move || child.wait());
        Ok(())
    }

    /// Begins what waits, as far as there is room.
    fn start_waiting(self: &Arc<Self>) {
        loop {
            let (number, submission) = {
                let mut state = self.lock();
                if !state.started || self.config.most.is_none_or(|most| state.running >= most) {
                    return;
                }
                let Some(next) = state.waiting.pop_first() else { return };
                state.running += 1;
                next
            };
            let begun = self.begin(number, &submission.wants);
            let queue = Arc::clone(self);
            match begun {
                Ok(mut child) => {
                    std::thread::spawn(move || {
                        let _ = child.wait();
                        queue.lock().running -= 1;
                        queue.start_waiting();
                    });
                }
                Err(why) => {
                    self.lock().running -= 1;
                    let _ = self.write(number, "failed", why.as_bytes());
                }
            }
            let _ = std::fs::remove_file(self.path(number, "json"));
            // A run that has begun has its plan in its folder.
            let _ = std::fs::remove_file(self.path(number, PLAN));
        }
    }

    /// Starts a run, and waits until it has begun.
    fn begin(&self, number: u64, wants: &SubmitRun) -> Result<Child, String> {
        let words = |error: io::Error| error.to_string();
        let spec = self.find_source(number, wants)?;
        let (id_file, log_path) = (self.path(number, "id"), self.path(number, "log"));
        let log = File::options().create(true).truncate(true).write(true).read(true).open(&log_path);
        let mut log = log.map_err(words)?;
        // The child has the same open file, so that the lock lives as long as it.
        rustix::fs::flock(&log, FlockOperation::NonBlockingLockExclusive).map_err(|error| error.to_string())?;
        // A plan lies in no workspace: its commands run in the first one that the server knows.
        let workspace = self.config.specs.first().filter(|_| wants.plan.is_some());
        let mut command = self.command(workspace.unwrap_or(&spec));
        command.arg("run").arg(&spec).arg("--quiet").arg("--id-file").arg(&id_file);
        if let Some(workspace) = workspace {
            command.arg("--workspace").arg(workspace);
        }
        command.args(wants.headless.then_some("--headless"));
        for (option, value) in [("--pipeline", &wants.pipeline), ("--task", &wants.task)] {
            // One word: a value that begins with a dash is no option.
            command.args(value.as_ref().map(|value| format!("{option}={value}")));
        }
        command.args(wants.params.iter().map(|(name, value)| format!("--param={name}={}", format_param(value))));
        command.args(wants.providers.iter().map(|(name, other)| format!("--provider={name}={other}")));
        let mut child = start(command, &log).map_err(words)?;
        let begun = Instant::now();
        let run = loop {
            if let Ok(run) = std::fs::read_to_string(&id_file) {
                break run;
            }
            let ended = child.try_wait().ok().flatten();
            // It may have written its id just before it ended.
            if ended.is_some() && !id_file.exists() {
                let said = read_end(&mut log, 0);
                let _ = std::fs::remove_file(&log_path);
                return Err(said);
            }
            if begun.elapsed() > BEGINS {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it has not begun within {} seconds", BEGINS.as_secs()));
            }
            std::thread::sleep(LOOK);
        };
        // The run goes on, whatever cannot be written: this needs no room on the disk.
        let _ = std::fs::rename(&id_file, self.path(number, "run"));
        let _ = std::fs::rename(&log_path, self.config.home.join("runs").join(&run).join("runner.log"));
        Ok(child)
    }

    fn command(&self, near: &Path) -> Command {
        let mut command = Command::new(&self.config.program);
        let folder = if near.is_dir() { near } else { near.parent().unwrap_or(near) };
        command.current_dir(folder).env("SWARM_HOME", &self.config.home).env_remove("CI").stdin(Stdio::null());
        command
    }

    /// A spec below one of the folders; it is none where a link leads out of them.
    fn find_spec(&self, spec: &str) -> Result<PathBuf, Refused> {
        let unknown = || Refused::Unknown(format!("there is no spec `{spec}` below the folders of `--specs`"));
        if self.config.tasks.as_deref().is_some_and(|tasks| tasks == Path::new(spec)) {
            return Ok(PathBuf::from(spec));
        }
        let is_plain =
            Path::new(spec).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if spec.is_empty() || !is_plain {
            return Err(unknown());
        }
        let found = self.config.specs.iter().find_map(|root| {
            let path = root.join(spec).canonicalize().ok()?;
            (path.starts_with(root) && path.is_file()).then_some(path)
        });
        found.ok_or_else(unknown)
    }

    /// Whether a plan may be run that comes with its submission. What is wrong in it, the run says when it begins.
    fn check_plan(&self, wants: &SubmitRun) -> Result<(), Refused> {
        if !self.config.allows_plans {
            let words = "a plan holds commands, and this server runs none that is sent to it: `swarmc serve --allow-plans` does";
            return Err(Refused::Impossible(words.to_owned()));
        }
        if !wants.spec.is_empty() {
            return Err(Refused::Impossible("name a spec, or send a plan: not both".to_owned()));
        }
        Ok(())
    }

    /// The file that a submission runs: its spec, or its plan in a file of the queue.
    fn find_source(&self, number: u64, wants: &SubmitRun) -> Result<PathBuf, String> {
        let Some(plan) = &wants.plan else { return self.find_spec(&wants.spec).map_err(|refused| refused.describe()) };
        self.check_plan(wants).map_err(|refused| refused.describe())?;
        let text = serde_json::to_vec(plan).map_err(|error| error.to_string())?;
        self.write(number, PLAN, &text).map_err(|error| error.to_string())?;
        Ok(self.path(number, PLAN))
    }

    fn check_spec(&self, spec: &Path) -> Result<(), Refused> {
        let done = self.command(spec).arg("check").arg(spec).args(["--format", "json"]).output();
        let done = done.map_err(|error| Refused::Impossible(error.to_string()))?;
        match done.status.code() {
            Some(0) => Ok(()),
            Some(1) => Err(Refused::Mistakes(serde_json::from_slice(&done.stdout).unwrap_or_default())),
            _ => Err(Refused::Impossible(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
        }
    }

    fn path(&self, number: u64, kind: &str) -> PathBuf {
        self.config.folder.join(format!("{number}.{kind}"))
    }

    fn write(&self, number: u64, kind: &str, text: &[u8]) -> io::Result<()> {
        let mut file =
            tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o600)).tempfile_in(&self.config.folder)?;
        file.write_all(text)?;
        file.as_file().sync_data()?;
        file.persist(self.path(number, kind)).map(drop).map_err(|error| error.error)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Refused {
    /// In words.
    pub(crate) fn describe(&self) -> String {
        match self {
            Refused::Unknown(words) | Refused::Impossible(words) => words.clone(),
            Refused::Mistakes(_) => "the spec has mistakes".to_owned(),
        }
    }
}

/// Starts a program that writes to `log`.
fn start(mut command: Command, log: &File) -> io::Result<Child> {
    command.stdout(log.try_clone()?).stderr(log.try_clone()?).spawn()
}

/// The end of what a program wrote, from a place on.
fn read_end(log: &mut File, from: u64) -> String {
    let length = log.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = Vec::new();
    let from = from.max(length.saturating_sub(TOLD));
    if log.seek(io::SeekFrom::Start(from)).is_err() || log.take(TOLD).read_to_end(&mut bytes).is_err() {
        return "it ended before it began".to_owned();
    }
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// A parameter as the command line takes it.
fn format_param(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The files below a folder that may be specs: those that say what they run.
fn collect_specs(root: &Path, folder: &Path, specs: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        // A link could lead back up.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir()
            && !name.to_string_lossy().starts_with('.')
            && !["target", "node_modules"].contains(&&*name.to_string_lossy())
        {
            collect_specs(root, &path, specs);
        } else if kind.is_file() && path.extension().is_some_and(|kind| kind == "kdl") {
            let declares = std::fs::read_to_string(&path).is_ok_and(|text| {
                text.lines()
                    .any(|line| ["pipeline ", "workflow "].iter().any(|word| line.trim_start().starts_with(word)))
            });
            if let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str).filter(|_| declares) {
                specs.push(name.to_owned());
            }
        }
    }
}
