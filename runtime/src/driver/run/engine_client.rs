//! Has an engine carry a run out, and follows it here as if it were a run of this process.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use swarmc_plan::Plan;

use super::engine::{REFUSED, WINDOW, check_remote};
use super::{Ended, Options, Outcome, build_graph, find_pipeline, load_values, resolve_params, unsupported};
use crate::core::state::State;
use crate::io::control::Control;
use crate::io::engine::{Engine, LocalRun, pass_orders_on};
use crate::io::executor::Ticks;
use crate::io::home::{Home, RunFolder};
use crate::types::engine::Submission;
use crate::types::error::RunError;
use crate::types::event::{Event, Record, RunStatus, StepId};
use crate::types::observer::{Observer, Stream};

/// How often the engine is asked for what is new.
const PAUSE: Duration = Duration::from_millis(100);

/// Has `engine` carry out a run of `plan` on `commit`, and follows it to its end.
///
/// # Errors
/// The request does not fit the plan, or the engine does not answer.
pub fn run_on_engine(
    (engine, home): (&Engine, &Home),
    plan: &Plan,
    options: Options,
    commit: Option<String>,
    (control, mut observer): (Control, Box<dyn Observer>),
) -> Result<Outcome, RunError> {
    let request = RunError::Request;
    let pipeline = find_pipeline(plan, options.pipeline.as_deref())?;
    let params = resolve_params(plan, pipeline, options.params)?;
    let graph = Arc::new(build_graph(plan, pipeline, options.task.as_deref(), WINDOW)?);
    unsupported::check_supported(plan, &graph)?;
    check_remote(plan, &graph)?;
    let handle = engine.handle().map_err(request)?;
    let keep = |bytes: &[u8]| handle.block_on(engine.objects.put(bytes)).map_err(request);
    let submission = Submission {
        plan: keep(swarmc_plan::encode_plan(plan).as_bytes())?,
        pipeline: Some(pipeline.name.clone()),
        task: options.task,
        params,
        stdin: options.stdin.as_deref().map(keep).transpose()?,
        headless: options.headless,
        commit,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let run = Home::make_id()?;
    let called = |error: crate::io::engine::CallError| RunError::Request(error.to_string());
    let Some(mut copy) = LocalRun::open(engine, home, &run, control.clone()).map_err(request)? else {
        return Err(RunError::Busy { run });
    };
    handle.block_on(engine.client.submit(&run, &submission)).map_err(called)?;
    let is_in_vain = pass_orders_on(engine, &run, &control).map_err(request)?;
    let mut follower = Follower::new(copy.folder.clone(), copy.folder.layout(pipeline));
    let mut is_away = false;
    let mut ticks = Ticks::new(&*observer);
    loop {
        let is_over = match handle.block_on(copy.copy()) {
            Ok(is_over) => is_over,
            Err(problem) => {
                if !std::mem::replace(&mut is_away, true) {
                    observer.notice(&format!("{problem}; the run goes on without this process"));
                }
                if is_in_vain.load(Ordering::Relaxed) {
                    return Err(request(format!(
                        "{problem}; run {run} was not stopped: stop it when the engine answers"
                    )));
                }
                false
            }
        };
        follower.show(&mut *observer, std::mem::take(&mut copy.changed))?;
        if is_over {
            break;
        }
        std::thread::sleep(PAUSE);
        ticks.advance(&mut *observer);
    }
    let refused = copy.folder.path.join(REFUSED);
    if let Ok(why) = std::fs::read_to_string(refused) {
        return Err(RunError::Request(why));
    }
    let records = follower.records;
    let state = State::replay(graph, &records);
    let ended = match state.final_status() {
        Some(RunStatus::Succeeded) => Ended::Succeeded,
        Some(RunStatus::Failed) => Ended::Failed,
        Some(RunStatus::OverBudget) => Ended::OverBudget,
        None => Ended::Stopped,
    };
    let values = load_values(&state, &copy.folder)?;
    let ends = (1..=state.graph().instances()).filter_map(|instance| state.instance_end(instance)).collect();
    Ok(Outcome { run, ended, values, ends, failed: state.unhandled_steps().collect() })
}

/// Shows what is new in the copy of a run.
struct Follower {
    folder: RunFolder,
    layout: crate::io::home::Layout,
    journal: crate::io::journal::JournalFollower,
    records: Vec<Record>,
    /// The logs of attempts by their paths.
    logs: HashMap<PathBuf, Log>,
    /// Those that have more than was shown. The engine has the end of a log after that of its attempt.
    changed: HashSet<PathBuf>,
    notices: u64,
}

/// The log of an attempt.
struct Log {
    step: StepId,
    attempt: u32,
    stream: Stream,
    /// The bytes that were shown.
    shown: u64,
}

impl Follower {
    fn new(folder: RunFolder, layout: crate::io::home::Layout) -> Follower {
        let journal = folder.follow_journal();
        let (logs, changed) = (HashMap::new(), HashSet::new());
        Follower { folder, layout, journal, records: Vec::new(), logs, changed, notices: 0 }
    }

    /// `changed` are the files that grew.
    fn show(&mut self, observer: &mut dyn Observer, changed: Vec<PathBuf>) -> Result<(), RunError> {
        let logs = self.folder.path.join("logs");
        let notices = read_behind(&self.folder.path.join("notices.log"), &mut self.notices);
        String::from_utf8_lossy(&notices).lines().for_each(|line| observer.notice(line));
        if observer.wants_output() {
            self.changed.extend(changed.into_iter().filter(|path| path.starts_with(&logs)));
        }
        loop {
            let fresh = if self.folder.journal_path().exists() { self.journal.poll()? } else { Vec::new() };
            if fresh.is_empty() {
                break;
            }
            for record in fresh {
                match &record.event {
                    Event::AttemptStarted { step, attempt, .. } => {
                        for stream in STREAMS {
                            let log = Log { step: step.clone(), attempt: *attempt, stream, shown: 0 };
                            self.logs.insert(self.layout.log_path(step, *attempt, stream), log);
                        }
                    }
                    Event::AttemptEnded { step, attempt, .. } => {
                        let paths = STREAMS.map(|stream| self.layout.log_path(step, *attempt, stream));
                        paths.iter().for_each(|path| self.show_log(observer, path));
                    }
                    _ => {}
                }
                observer.recorded(&record);
                self.records.push(record);
            }
        }
        let mut known: Vec<PathBuf> =
            self.changed.iter().filter(|path| self.logs.contains_key(*path)).cloned().collect();
        known.sort_unstable();
        known.iter().for_each(|path| self.show_log(observer, path));
        Ok(())
    }

    /// Shows what is new in a log.
    fn show_log(&mut self, observer: &mut dyn Observer, path: &Path) {
        if !self.changed.remove(path) {
            return;
        }
        let Some(Log { step, attempt, stream, shown }) = self.logs.get_mut(path) else { return };
        let bytes = read_behind(path, shown);
        if !bytes.is_empty() {
            observer.output(step, *attempt, *stream, &bytes);
        }
    }
}

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

/// The bytes of a file behind those that were read; none where there is none.
fn read_behind(path: &Path, read: &mut u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(mut file) = File::open(path) else { return bytes };
    if file.seek(SeekFrom::Start(*read)).is_ok() && file.read_to_end(&mut bytes).is_ok() {
        *read += bytes.len() as u64;
    }
    bytes
}
