//! A run that an engine has: its driver is here, its processes are with workers, its records and files in the engine.
//!
//! In: a submission. Out: how the run ended. A driver begins with what former drivers have left in the engine, and works in
//! a home of its own, so that it shares nothing with a former driver that does not know yet that it is one.
//!
//! Invariant: a record is in the engine before anything that depends on it starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use swarmc_plan::{Body, Plan};

use super::resume::go_on;
use super::{Ended, Options, Outcome, start_in};
use crate::core::graph::Graph;
use crate::io::control::Control;
use crate::io::engine::{Client, Copied, Holder, Keeper, Notices, Objects, Place, RunHolder, RunTree, copy_new};
use crate::io::home::{Home, RunConfig, RunFolder};
use crate::io::reactor::Reactor;
use crate::io::shim::RemoteHolder;
use crate::types::engine::Submission;
use crate::types::error::RunError;
use crate::types::event::{Record, StepId};
use crate::types::observer::{Observer, Stream};

/// How long the driver tries to reach the engine before it gives up the run, which another driver then goes on with.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often logs and outputs are passed on.
const PASS_ON: Duration = Duration::from_secs(1);

/// The processes of a run that are with workers, or wait for them, at most, where its pipeline does not say: more at once
/// make each slower (5,000 took 38 times as long as in windows of 256).
pub(super) const WINDOW: u32 = 256;

/// In the folder of a run that could not begin: why.
pub(crate) const REFUSED: &str = "refused.txt";

/// What the drivers of one process have.
#[derive(Clone, Debug)]
pub struct EngineRun {
    client: Client,
    objects: Objects,
    /// A clone of the repository.
    workspace: Option<PathBuf>,
    home: PathBuf,
    environment: BTreeMap<OsString, OsString>,
}

impl EngineRun {
    /// Drivers of the engine at `ingress` with this object store, which have their folders in `home`.
    ///
    /// # Errors
    /// An address is none: says what to type.
    pub fn new(
        ingress: &str,
        store: &str,
        workspace: Option<PathBuf>,
        home: PathBuf,
        environment: BTreeMap<OsString, OsString>,
    ) -> Result<EngineRun, String> {
        let client = Client::new(ingress, PATIENCE)?;
        Ok(EngineRun { client, objects: Objects::open(store)?, workspace, home, environment })
    }
}

/// What makes a run one of an engine.
pub(super) struct EngineContext {
    pub run: String,
    pub commit: Option<String>,
    pub keeper: Arc<Keeper>,
    pub holder: Arc<dyn RemoteHolder>,
}

/// Carries a run on to its end, or until it is stopped: how it ended, in words.
///
/// # Errors
/// This driver cannot go on, and another one may: why.
pub fn drive_run(setup: &EngineRun, run: &str, submission: &Submission) -> Result<String, String> {
    let reactor = Reactor::default();
    let handle = reactor.handle()?.clone();
    let (client, objects) = (&setup.client, &setup.objects);
    let driver = handle.block_on(client.begin(run)).map_err(|error| error.to_string())?;
    let name = format!("{run}.{driver}");
    let root = setup.home.join("drivers").join(&name);
    let _ = std::fs::remove_dir_all(&root);
    let home = Home::new(root.clone());
    let folder = home.create_named(run).map_err(|error| error.to_string())?;
    let mut copied = Copied::default();
    handle.block_on(copy_new(client, objects, &folder, &mut copied, &mut Vec::new()))?;
    let keeper = Arc::new(Keeper::new(
        (client.clone(), objects.clone()),
        folder.clone(),
        driver,
        handle.clone(),
        (copied.journal, copied.records),
    ));
    let log = Log::open(&folder)?;
    let control = Control::new();
    let refuse = |problem: String| -> Result<String, String> {
        std::fs::write(folder.path.join(REFUSED), &problem).map_err(|error| error.to_string())?;
        keeper.keep_all(false, true).map_err(|error| error.to_string())?;
        Ok(problem)
    };
    let tree = handle.block_on(open_tree(setup, submission, &folder, &name));
    let tree = match tree {
        Ok(tree) => Arc::new(tree),
        Err(problem) => return refuse(problem),
    };
    let place =
        Place { client: client.clone(), objects: objects.clone(), run: run.to_owned(), driver, handle: handle.clone() };
    let notices = Box::new(RunNotices { log: log.clone(), control: control.clone() });
    let holder = Holder::begin(place, folder.path.clone(), Arc::clone(&tree), control.clone(), notices);
    let holder = handle.block_on(holder).map_err(|error| error.to_string())?;
    let passing_on = handle.spawn(pass_on(Arc::clone(&keeper)));
    let context = EngineContext {
        run: run.to_owned(),
        commit: submission.commit.clone(),
        keeper: Arc::clone(&keeper),
        holder: Arc::new(RunHolder(Arc::clone(&holder))),
    };
    let outcome =
        carry_on(setup, submission, (&home, &folder, &tree), &context, copied.records, (control, log, &handle));
    passing_on.abort();
    let answer = match outcome {
        Ok(outcome) => {
            handle.block_on(holder.forget_all());
            keeper.keep_all(false, true).map_err(|error| error.to_string())?;
            Ok(describe_end(&outcome))
        }
        Err(error @ (RunError::Interrupted { .. } | RunError::Busy { .. })) => Err(error.to_string()),
        Err(RunError::Ended { .. }) => {
            keeper.keep_all(false, true).map_err(|error| error.to_string())?;
            Ok("it has ended".to_owned())
        }
        Err(error) => refuse(error.to_string()),
    };
    tree.clear();
    drop(context);
    let _ = std::fs::remove_dir_all(&root);
    answer
}

async fn open_tree(
    setup: &EngineRun,
    submission: &Submission,
    folder: &RunFolder,
    name: &str,
) -> Result<RunTree, String> {
    let repository = match (&setup.workspace, &submission.commit) {
        (Some(workspace), Some(commit)) => Some((workspace.clone(), commit.clone())),
        (None, Some(_)) => {
            return Err(
                "the engine has no repository: start it with `swarmc-engine serve --workspace FOLDER`".to_owned()
            );
        }
        (_, None) => None,
    };
    RunTree::open(&folder.path, setup.home.join("trees").join(name), repository, &setup.objects).await
}

/// Starts the run, or goes on with it.
fn carry_on(
    setup: &EngineRun,
    submission: &Submission,
    (home, folder, tree): (&Home, &RunFolder, &RunTree),
    context: &EngineContext,
    records: u64,
    (control, log, handle): (Control, Log, &tokio::runtime::Handle),
) -> Result<Outcome, RunError> {
    let environment = setup.environment.clone();
    let observer = Box::new(log);
    if records > 0 {
        let facts = RunConfig {
            workspace: tree.folder.clone(),
            concurrency: None,
            commit: None,
            record: None,
            replay: None,
            reuse: None,
        };
        folder.write_facts(&facts)?;
        let headless = submission.headless;
        return go_on(home, &context.run, None, (environment, headless), control, observer, Some(context));
    }
    let object = |digest: &str| handle.block_on(setup.objects.get(digest)).map_err(RunError::Request);
    let refused = |reason: String| RunError::Plan { run: context.run.clone(), reason };
    // As it was submitted, so that the digest in the journal names the object also where another build wrote it.
    let text = String::from_utf8(object(&submission.plan)?).map_err(|error| refused(error.to_string()))?;
    let plan = swarmc_plan::read_plan(&text).map_err(|error| refused(error.to_string()))?;
    let options = Options {
        pipeline: submission.pipeline.clone(),
        task: submission.task.clone(),
        params: submission.params.clone(),
        stdin: submission.stdin.as_deref().map(object).transpose()?,
        workspace: tree.folder.clone(),
        headless: submission.headless,
        environment,
        ..Options::default()
    };
    start_in(home, (&plan, &text), options, control, observer, Some(context))
}

/// Refuses what workers cannot carry out.
pub(super) fn check_remote(plan: &Plan, graph: &Graph) -> Result<(), RunError> {
    let refuse = |what: String| Err(RunError::Request(format!("a run of an engine has no {what}")));
    for scope in &graph.scopes {
        let Some(pipeline) = plan.pipeline(&scope.pipeline) else { continue };
        if pipeline.worktree {
            return refuse(format!("`worktree` (pipeline `{}`): each process has a tree of its own", pipeline.name));
        }
        for step in pipeline.all_steps().filter(|step| scope.find(&step.name).is_some()) {
            let name = &step.name;
            if step.worktree.is_some() {
                return refuse(format!("`worktree` (step `{name}`): each process has a tree of its own"));
            }
            if plan.files_of(step).is_some() {
                return refuse(format!("`files` (step `{name}`): its folder is not where its agent is"));
            }
            let trees = match &step.body {
                Body::Swarm(call) => plan.swarm(&call.swarm).is_some_and(|swarm| !swarm.worktrees.is_empty()),
                _ => false,
            };
            if trees {
                return refuse(format!("swarm with `worktree` (step `{name}`)"));
            }
        }
    }
    Ok(())
}

/// Passes on logs and outputs while the run goes on.
async fn pass_on(keeper: Arc<Keeper>) {
    loop {
        tokio::time::sleep(PASS_ON).await;
        let keeper = Arc::clone(&keeper);
        // Where it fails, the journal fails as well, and says so.
        let _ = tokio::task::spawn_blocking(move || keeper.keep_all(false, false)).await;
    }
}

fn describe_end(outcome: &Outcome) -> String {
    match outcome.ended {
        Ended::Succeeded => "succeeded",
        Ended::Failed => "failed",
        Ended::Stopped => "stopped",
        Ended::OverBudget => "over its budget",
    }
    .to_owned()
}

/// What a driver says: in `notices.log`, which is kept like logs.
#[derive(Clone, Debug)]
struct Log {
    file: Arc<Mutex<File>>,
}

impl Log {
    fn open(folder: &RunFolder) -> Result<Log, String> {
        let path: PathBuf = folder.path.join("notices.log");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(|error| format!("{} cannot be written: {error}", Path::display(&path)))?;
        Ok(Log { file: Arc::new(Mutex::new(file)) })
    }

    fn write(&self, text: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written has no other place for that problem.
        let _ = writeln!(file, "{text}");
    }
}

impl Observer for Log {
    fn recorded(&mut self, _: &Record) {}

    fn output(&mut self, _: &StepId, _: u32, _: Stream, _: &[u8]) {}

    fn wants_output(&self) -> bool {
        false
    }

    fn notice(&mut self, text: &str) {
        self.write(text);
    }
}

#[derive(Debug)]
struct RunNotices {
    log: Log,
    control: Control,
}

impl Notices for RunNotices {
    fn notice(&self, text: String) {
        self.log.write(&text);
    }

    fn give_up(&self, why: String) {
        self.control.give_up(why);
    }
}
