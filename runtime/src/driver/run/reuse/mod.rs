//! Reuse in the driver: before an attempt starts it is decided whether an earlier result takes its place, and when one
//! has ended its result is kept for later runs.
//!
//! In: a job, ready to start. Out: an earlier outcome, or the key under which that of the job will lie in the cache.
//! Invariants: a result is taken only where everything that it depends on is equal, by digest; what is taken is an end
//! of an attempt in the journal like any other; and no failure of the cache makes a step fail.

mod parts;
mod plan;
mod written;

pub(super) use plan::Planning;
pub use plan::{Fate, PlannedStep, plan_reuse};

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::driver::Driver;
use crate::core::graph::Key as At;
use crate::io::cache::{Cache, Entry, Manifest, ManifestLine, Unfit};
use crate::io::executor::{Job, ObserverHandle, Role};
use crate::io::file_digests::{FileDigest, FileDigests};
use crate::io::home::{Home, RunFolder};
use crate::types::error::RunError;
use crate::types::event::{self, Content, Event, Outcome, Reused, StepId};
use crate::types::reuse::{Key, Reuse, ReuseFrom};

/// Why a swarm runs.
pub(super) const SWARM: &str = "it is a swarm, whose agents talk to each other";

/// The bytes of lines without a result that wait in memory at most.
const WAITING: usize = 16 * 1024;

/// What a run takes from earlier runs, and leaves for later ones.
#[derive(Default)]
pub(super) struct Reuser {
    /// Where results come from; none where the run takes none.
    sources: Option<Sources>,
    /// Where its results go; none where it leaves none, as in replays and rehearsals.
    target: Option<Target>,
    pub(super) digests: FileDigests,
    /// What is known of programs, by name, search path and folder.
    pub(super) programs: RefCell<HashMap<(OsString, OsString, PathBuf), String>>,
    /// The attempts whose results will be kept.
    pending: HashMap<(StepId, u32), Pending>,
    /// Why results will not be kept, by step.
    marred: HashMap<StepId, String>,
}

/// Where results come from.
struct Sources {
    from: ReuseFrom,
    /// The results of the run that is named, or of the last one of the workflow.
    base: Manifest,
    /// The steps that run in any case.
    anew: BTreeSet<String>,
    cache: Cache,
}

/// Where results go.
struct Target {
    cache: Cache,
    folder: RunFolder,
    /// The manifest, open once it has a line.
    manifest: Option<File>,
    /// Lines for the manifest, not yet written.
    lines: String,
    /// Whether one of them is a result. The others say why there is none, and may wait.
    has_result: bool,
    /// Whether people know that something could not be written.
    failed: Arc<AtomicBool>,
}

/// An attempt that runs, and whose result will be kept.
struct Pending {
    key: Key,
    /// The files that it is declared to read and to write, as they were when it began.
    files: Files,
}

/// The declared files of a step, by path.
pub(super) struct Files {
    reads: BTreeMap<String, FileDigest>,
    writes: BTreeMap<String, FileDigest>,
}

/// What becomes of a job.
pub(super) enum Decision {
    /// An earlier result takes its place.
    Take(Box<Taken>),
    /// It runs; with a reason where the run looks for earlier results.
    Run(Option<String>),
}

/// An earlier result, with the texts that its outcome refers to.
pub(super) struct Taken {
    entry: Arc<Entry>,
    output: Option<String>,
    log: Option<String>,
}

impl Reuser {
    /// That of a run in `folder`, which takes what `reuse` says.
    ///
    /// # Errors
    /// There is no such run, or what it left cannot be read.
    pub(super) fn open(
        folder: &RunFolder,
        workflow: &str,
        reuse: Option<&Reuse>,
        observer: &ObserverHandle,
    ) -> Result<Reuser, RunError> {
        let home = Home::of_run(folder);
        let mut lines = String::new();
        if !folder.reuse_path().exists() {
            lines = ManifestLine::Head { workflow: workflow.to_owned() }.format_line();
        }
        let cache = Cache::new(&home);
        let target =
            Target { cache, folder: folder.clone(), manifest: None, lines, has_result: false, failed: Arc::default() };
        let sources = reuse.map(|reuse| Sources::open(&home, workflow, reuse, &folder.id)).transpose()?;
        if let Some(sources) = &sources {
            sources.list_notices(workflow).into_iter().for_each(|notice| observer.send_notice(notice));
        }
        Ok(Reuser { sources, target: Some(target), ..Reuser::default() })
    }

    /// That of a look at what a run would take, which leaves nothing.
    ///
    /// # Errors
    /// There is no such run, or what it left cannot be read.
    fn look(home: &Home, workflow: &str, reuse: &Reuse) -> Result<Reuser, RunError> {
        let sources = Sources::open(home, workflow, reuse, "")?;
        Ok(Reuser { sources: Some(sources), ..Reuser::default() })
    }

    /// What became of a step in the run whose results come first.
    fn earlier_outcome(&self, step: &StepId) -> Option<Outcome> {
        let entry = self.sources.as_ref()?.base.find_step(step)?;
        Some(Outcome { usage: None, ..entry.outcome.clone() })
    }

    /// Whether anything is to be decided or kept.
    fn is_active(&self) -> bool {
        self.sources.is_some() || self.target.is_some()
    }

    /// Notes what keeps a result from being kept.
    pub(super) fn note_event(&mut self, event: &Event) {
        let reason = match event {
            Event::ApprovalAsked { .. } => "a person or the policy decided on what its agent wanted",
            Event::InputsTaken { .. } => "it read messages",
            _ => return,
        };
        if let Some(step) = event.step() {
            self.mar(step, reason);
        }
    }

    /// Notes why the result of what a step does now is not kept.
    pub(super) fn mar(&mut self, step: &StepId, reason: &str) {
        self.marred.entry(step.clone()).or_insert_with(|| reason.to_owned());
    }
}

impl Sources {
    fn open(home: &Home, workflow: &str, reuse: &Reuse, own: &str) -> Result<Sources, RunError> {
        let base = match &reuse.from {
            ReuseFrom::Run(run) => Manifest::load(&home.find(run)?)?,
            ReuseFrom::Any | ReuseFrom::Last => Manifest::load_last(home, workflow, own)?.unwrap_or_default(),
        };
        Ok(Sources {
            from: reuse.from.clone(),
            base,
            anew: reuse.anew.iter().cloned().collect(),
            cache: Cache::new(home),
        })
    }

    /// What people should know before the run begins.
    fn list_notices(&self, workflow: &str) -> Vec<String> {
        let mut notices = Vec::new();
        if let Some((lines, problem)) = &self.base.damaged {
            notices.push(format!("{lines} results of run `{}` are damaged and not reused: {problem}", self.base.run));
        }
        match &self.from {
            ReuseFrom::Run(_) if self.base.is_empty() => {
                notices.push(format!("run `{}` has no result that can be reused", self.base.run));
            }
            ReuseFrom::Last if self.base.run.is_empty() => {
                notices.push(format!("no run of `{workflow}` has a result that can be reused"));
            }
            _ => {}
        }
        notices
    }

    /// The earlier result of this key; and what is wrong with one that is damaged.
    fn find_entry(&self, key: &Key, own: &str) -> (Option<Arc<Entry>>, Option<String>) {
        if let Some(entry) = self.base.find_entry(&key.digest) {
            return (Some(Arc::clone(entry)), None);
        }
        if self.from != ReuseFrom::Any {
            return (None, None);
        }
        match self.cache.find_entry(&key.digest) {
            // What this run has done itself is no earlier result.
            Ok(entry) => (entry.filter(|entry| entry.run != own).map(Arc::new), None),
            Err(problem) => (None, Some(problem)),
        }
    }

    /// Why there is no earlier result of this step and key.
    fn describe_miss(&self, step: &StepId, key: &Key) -> String {
        let run = &self.base.run;
        if let Some(earlier) = self.base.find_step(step) {
            // Equal parts have equal keys, so that something differs.
            return key.describe_difference(&earlier.parts).unwrap_or_else(|| "its inputs changed".to_owned());
        }
        match self.base.find_unfit(step) {
            Some(reason) => format!("its result in run `{run}` cannot be reused: {reason}"),
            None if run.is_empty() => "there is no earlier result".to_owned(),
            None => format!("run `{run}` has no result of it"),
        }
    }
}

impl Driver<'_> {
    /// Decides whether an earlier result takes the place of `job`. Where none does, the result of the job will be kept,
    /// if that is possible.
    pub(super) fn weigh_reuse(&mut self, job: &Job) -> Decision {
        let run = |reason: String| Decision::Run(Some(reason));
        if !self.attempts.reuse.is_active() {
            return Decision::Run(None);
        }
        let Some(at) = self.state.find_step(&job.step).filter(|_| job.role == Role::Turn) else {
            return Decision::Run(None);
        };
        self.attempts.reuse.marred.remove(&job.step);
        if let Some(obstacle) = self.find_obstacle(at, job) {
            self.attempts.reuse.mar(&job.step, &obstacle);
            return run(obstacle);
        }
        let found = self.digest_files(at).and_then(|files| Ok((self.build_key(at, job, &files.reads)?, files)));
        let (key, files) = match found {
            Ok(found) => found,
            Err(problem) => {
                self.attempts.reuse.mar(&job.step, &problem);
                return run(problem);
            }
        };
        let decision = self.look_up(job, &key, &files);
        if let Decision::Run(_) = decision {
            self.attempts.reuse.pending.insert((job.step.clone(), job.attempt), Pending { key, files });
        }
        decision
    }

    /// The declared files of a step as they are now.
    fn digest_files(&self, at: At) -> Result<Files, String> {
        let step = self.evaluator.step_definition(&self.state, at);
        let find = |globs| self.attempts.reuse.digests.match_files(&self.services.process_env.workspace, globs);
        Ok(Files { reads: find(&step.reads)?, writes: find(&step.writes)? })
    }

    fn look_up(&mut self, job: &Job, key: &Key, files: &Files) -> Decision {
        let Some(sources) = &self.attempts.reuse.sources else { return Decision::Run(None) };
        let outermost = job.step.within.as_ref().and_then(|within| within.split(['/', '[', '.', '~']).next());
        if let Some(name) =
            [Some(&*job.step.name), outermost].into_iter().flatten().find(|name| sources.anew.contains(*name))
        {
            return Decision::Run(Some(format!("`{name}` is run anew")));
        }
        let (entry, problem) = sources.find_entry(key, &self.outputs.folder.id);
        let taken = match (entry, problem) {
            (Some(entry), _) => self.load_taken(entry, &files.writes),
            (None, Some(problem)) => Err(format!("its entry in the cache is damaged: {problem}")),
            (None, None) => return Decision::Run(Some(sources.describe_miss(&job.step, key))),
        };
        match taken {
            Ok(taken) => Decision::Take(Box::new(taken)),
            Err(problem) => {
                self.notices.send(format!("`{}` runs: {problem}", job.step.label()));
                Decision::Run(Some(problem))
            }
        }
    }

    /// An entry with all that belongs to it; its files are put back where they changed.
    fn load_taken(&self, entry: Arc<Entry>, before: &BTreeMap<String, FileDigest>) -> Result<Taken, String> {
        let load = |content: &Option<Content>| {
            let text = match content {
                None => return Ok(None),
                Some(Content::Text(text)) => text.clone(),
                Some(Content::Artifact { digest, bytes }) => {
                    let bytes = self.read_content(&entry.run, digest, *bytes);
                    let bytes = bytes.map_err(|problem| format!("its earlier output cannot be read: {problem}"))?;
                    String::from_utf8(bytes).map_err(|_| "its earlier output is no text".to_owned())?
                }
            };
            Ok::<_, String>(Some(text))
        };
        let (output, log) = (load(&entry.outcome.output)?, load(&entry.outcome.log)?);
        if !self.world.is_planned() {
            self.restore_files(&entry, before)?;
        }
        Ok(Taken { entry, output, log })
    }

    /// A content that an entry of `run` names: from that run, else from the cache.
    fn read_content(&self, run: &str, digest: &str, bytes: u64) -> Result<Vec<u8>, String> {
        let home = Home::of_run(&self.outputs.folder);
        let path = home.run_folder(run.to_owned()).artifact_path(digest);
        crate::io::cache::read_checked(&path, digest, bytes).or_else(|_| Cache::new(&home).read_content(digest, bytes))
    }

    /// The prompt that the agent of a step was sent before, where it is still there.
    fn earlier_prompt(&self, step: &StepId) -> Option<String> {
        let entry = self.attempts.reuse.sources.as_ref()?.base.find_step(step)?;
        let part = entry.parts.iter().find(|part| part.name == "prompt")?;
        let home = Home::of_run(&self.outputs.folder);
        let text = std::fs::read(home.run_folder(entry.run.clone()).artifact_path(&part.digest)).ok()?;
        String::from_utf8(text).ok()
    }

    /// Ends an attempt with an earlier result.
    pub(super) fn take_result(&mut self, step: StepId, attempt: u32, taken: Taken) {
        let Taken { entry, output, log } = taken;
        if let Some(text) = output.as_ref().filter(|text| !text.is_empty()) {
            self.outputs.write_output(&step, text);
        }
        let log = match log.map(|log| self.outputs.store_content(Content::Text(log))).transpose() {
            Ok(log) => log,
            Err(error) => return self.give_up(error.to_string()),
        };
        let reused = Reused {
            run: entry.run.clone(),
            attempt: entry.attempt,
            key: entry.key.clone(),
            usage: entry.outcome.usage,
        };
        let outcome = Outcome {
            output: output.map(Content::Text),
            log,
            usage: None,
            reused: Some(Box::new(reused)),
            ..entry.outcome.clone()
        };
        if let Some(target) = &mut self.attempts.reuse.target {
            // It stays among the results of the last run, without the run that made it.
            target.add_result(&entry.format_line());
        }
        self.end_attempt(step, attempt, outcome);
    }

    /// Keeps the result of an attempt that is about to be recorded as ended.
    pub(super) fn keep_result(&mut self, step: &StepId, attempt: u32, outcome: &Outcome) {
        if !self.attempts.reuse.is_active() {
            return;
        }
        let pending = self.attempts.reuse.pending.remove(&(step.clone(), attempt));
        let marred = self.attempts.reuse.marred.remove(step);
        if outcome.reused.is_some() || self.attempts.reuse.target.is_none() {
            return;
        }
        let at = self.state.find_step(step);
        // What is computed anew in any case needs no reason.
        let counts = at.is_some_and(|at| self.evaluator.step_definition(&self.state, at).body.kind().takes_turn());
        let kept = match (marred, pending, at) {
            _ if outcome.failure.is_some() => Err("it failed".to_owned()),
            (Some(reason), ..) => Err(reason),
            (None, Some(pending), Some(at)) => self.make_entry(step, attempt, outcome, (pending, at)),
            (None, ..) => return,
        };
        let Some(target) = &mut self.attempts.reuse.target else { return };
        match kept {
            Ok(entry) => {
                let line = entry.format_line();
                target.add_result(&line);
                let (cache, folder, failed) = (target.cache.clone(), target.folder.clone(), Arc::clone(&target.failed));
                let observer = self.notices.observer();
                self.outputs.run_behind_files(move || {
                    if let Err(error) = store_entry(&cache, &folder, &entry, &line)
                        && !failed.swap(true, Ordering::Relaxed)
                    {
                        observer.send_notice(format_failure(&error));
                    }
                });
            }
            Err(reason) if counts => {
                let unfit = Unfit { step: step.clone(), reason: reason.into() };
                target.lines += &ManifestLine::Unfit(unfit).format_line();
            }
            Err(_) => {}
        }
    }

    fn make_entry(
        &mut self,
        step: &StepId,
        attempt: u32,
        outcome: &Outcome,
        (pending, at): (Pending, At),
    ) -> Result<Entry, String> {
        if outcome.fallback.is_some() {
            return Err("a fallback took its turn".to_owned());
        }
        let reads = self.digest_files(at)?.reads;
        let (now, then) = (reads.keys().chain(pending.files.reads.keys()), |path| pending.files.reads.get(path));
        if let Some(path) = now.clone().find(|path| reads.get(*path) != then(*path)) {
            return Err(format!("the file `{path}`, which it reads, changed while it ran"));
        }
        let writes = self.keep_written(at, &pending.files.writes)?;
        // What is of the attempt alone, and not of its result.
        let outcome = Outcome {
            session: None,
            errors: None,
            files: None,
            artifacts: Vec::new(),
            failure: None,
            fallback: None,
            reused: None,
            ..outcome.clone()
        };
        let run = self.outputs.folder.id.clone();
        Ok(Entry {
            key: pending.key.digest,
            run,
            step: step.clone(),
            attempt,
            parts: pending.key.parts,
            outcome,
            writes,
        })
    }

    /// Writes the lines of the manifest so far, at the end of a run or where they are due. This thread does it, as it
    /// writes the journal: to wake another one for each step takes longer.
    pub(super) fn write_results(&mut self, ends: bool) {
        if let Some(target) = &mut self.attempts.reuse.target
            && (ends || target.is_due())
            && let Err(error) = target.write_lines()
            && !target.failed.swap(true, Ordering::Relaxed)
        {
            self.notices.send(format_failure(&error));
        }
    }

    /// Records why an attempt runs in a run that looks for earlier results.
    pub(super) fn record_miss(&mut self, step: &StepId, attempt: u32, mut reason: String) {
        if self.attempts.reuse.sources.is_some() {
            event::truncate_message(&mut reason);
            self.record(Event::ReuseMissed { step: step.clone(), attempt, reason });
        }
    }
}

impl Target {
    fn add_result(&mut self, line: &str) {
        self.lines += line;
        self.lines.push('\n');
        self.has_result = true;
    }

    /// Whether lines are to be written in the middle of a run.
    fn is_due(&self) -> bool {
        self.has_result || self.lines.len() > WAITING
    }

    fn write_lines(&mut self) -> std::io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        self.has_result = false;
        let lines = std::mem::take(&mut self.lines);
        let manifest = match &mut self.manifest {
            Some(manifest) => manifest,
            none => none.insert(File::options().append(true).create(true).open(self.folder.reuse_path())?),
        };
        manifest.write_all(lines.as_bytes())
    }
}

/// What people see where results cannot be written.
fn format_failure(error: &std::io::Error) -> String {
    format!("results are not kept for later runs: {error}")
}

/// Stores an entry with the texts that it names.
fn store_entry(cache: &Cache, folder: &RunFolder, entry: &Entry, line: &str) -> std::io::Result<()> {
    for text in [&entry.outcome.output, &entry.outcome.log].into_iter().flatten() {
        if let Content::Artifact { digest, .. } = text {
            let path = folder.artifact_path(digest);
            cache.store_content(digest, Some(&path), &std::fs::read(&path)?)?;
        }
    }
    cache.store_entry(entry, line)
}
