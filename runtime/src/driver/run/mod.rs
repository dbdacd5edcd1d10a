//! Starts and resumes runs: from a plan and a home to the driver, and from its end to an outcome.

use crate::io::input::{Input, Inputs};
use crate::io::orphan_processes;
mod agent;
pub(crate) mod approvals;
mod attempts;
mod budget;
mod driver;
mod effective;
pub(crate) mod engine;
pub(crate) mod engine_client;
pub(crate) mod eval;
mod file_workspace;
mod gates;
mod handoffs;
mod hooks;
mod imagined;
mod input_queue;
mod limits;
mod mcp_config;
mod messages;
mod notices;
mod open_attempts;
mod outputs;
mod prepare;
mod process_env;
mod programs;
mod records;
pub(crate) mod rehearsal;
mod replay;
mod replay_effects;
mod replies;
mod requests;
mod resume;
mod reuse;
mod services;
mod snapshots;
mod spawns;
mod status_and_help;
pub(crate) mod swarms;
#[cfg(test)]
mod tests;
mod text_store;
mod threads;
mod tool_servers;
mod unsupported;
mod values;
mod worktree_names;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;

use swarmc_plan::{Pipeline, Plan, Step};

use crate::core::graph::Graph;
use crate::core::reopen::digest_of;
use crate::core::state::{End, State};
use crate::io::agent_api::AgentServer;
use crate::io::artifact::Watches;
use crate::io::children;
use crate::io::control::Control;
use crate::io::engine::keeping;
use crate::io::executor::{self, FileWriter, ObserverHandle, Pool, WritingThread};
use crate::io::home::{ATTEMPTS, Home, Lock, RunConfig, RunFolder, SnapshotWriter};
use crate::io::journal::{FileJournal, Journal};
use crate::io::llm::Models;
use crate::io::process::Poller;
use crate::io::reactor::Reactor;
use crate::io::recording::{self, Recorder, Recording, Redactions, Replay, Source};
use crate::io::shim::RemoteHolder;
use crate::io::socket::Socket;
use crate::io::socket_peer::Processes;
use crate::io::worktree::{Repository, Worktrees};
use crate::types::activity::Activities;
use crate::types::error::RunError;
use crate::types::event::{self, Content, Event, Record, StepId, VERSION};
use crate::types::observer::Observer;
use crate::types::reuse::Reuse;
use crate::types::secrets::{self, Secrets};
use driver::Driver;
use engine::EngineContext;
use eval::Evaluator;
use input_queue::InputQueue;
use notices::Notices;
use open_attempts::{Attempts, HeldAttempts};
use outputs::Outputs;
use process_env::ProcessEnv;
pub use programs::{Program, find_programs};
use records::{Records, Time};
use requests::Requests;
pub use resume::{resume_run, retry_run};
use reuse::Reuser;
pub use reuse::{Fate, PlannedStep, plan_reuse};
use services::Services;
use text_store::{TextStore, store_content};

/// What to run, and with what.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The pipeline; the plan's default when none is named.
    pub pipeline: Option<String>,
    /// Only this step of it, outside its pipeline.
    pub task: Option<String>,
    /// Parameters in their textual form; defaults are filled in.
    pub params: BTreeMap<String, String>,
    /// What was piped into `swarmc run`.
    pub stdin: Option<Vec<u8>>,
    /// Where processes run: an absolute path.
    pub workspace: PathBuf,
    /// Whether no person can answer. Gates with `headless` then take that default, and `unattended` of the policy
    /// answers requests for approvals.
    pub headless: bool,
    /// The caller's environment, of which processes get what the plan lets through.
    pub environment: BTreeMap<OsString, OsString>,
    /// Where the run is recorded: an absolute path, of nothing, an empty folder, or a recording.
    pub record: Option<PathBuf>,
    /// The recording that answers, in the place of agents, programs and people.
    pub replay: Option<Arc<Recording>>,
    /// What it takes from earlier runs; nothing, when left out.
    pub reuse: Option<Reuse>,
}

/// How this process's part of a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The run's id.
    pub run: String,
    /// How it ended.
    pub ended: Ended,
    /// The value of the pipeline's `result`, of every instance that has one, in order.
    pub values: Vec<String>,
    /// How every instance of the pipeline ended that did, in order.
    pub ends: Vec<End>,
    /// The steps whose failure nothing handled, in declaration order.
    pub failed: Vec<StepId>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It did what it should.
    Succeeded,
    /// The workflow failed.
    Failed,
    /// A person stopped it; it can be resumed.
    Stopped,
    /// Its budget was spent, or its time over.
    OverBudget,
}

/// Starts a run of `plan` and sees it through to its end.
///
/// # Errors
/// The request does not fit the plan, or the environment failed. What had begun can be resumed.
pub fn start_run(
    home: &Home,
    plan: &Plan,
    options: Options,
    control: Control,
    observer: Box<dyn Observer>,
) -> Result<Outcome, RunError> {
    start_in(home, (plan, &swarmc_plan::encode_plan(plan)), options, control, observer, None)
}

/// The same with the plan's text, for an engine where there is a `context`.
fn start_in(
    home: &Home,
    (plan, text): (&Plan, &str),
    mut options: Options,
    control: Control,
    observer: Box<dyn Observer>,
    context: Option<&EngineContext>,
) -> Result<Outcome, RunError> {
    limits::survive_full_files();
    let pipeline = find_pipeline(plan, options.pipeline.as_deref())?;
    let params = resolve_params(plan, pipeline, options.params)?;
    let facts = RunConfig {
        workspace: options.workspace,
        concurrency: None,
        commit: None,
        record: options.record,
        replay: options.replay.as_ref().map(|recording| recording.folder().to_owned()),
        reuse: options.reuse,
    };
    // Before anything starts: a run must not learn at its end that it cannot be recorded.
    facts.record.as_deref().map_or(Ok(()), recording::may_replace)?;
    if options.replay.is_some() {
        blank_secrets(plan, &mut options.environment);
    }
    let concurrency = if context.is_some() { engine::WINDOW } else { count_processors() };
    let graph = build_graph(plan, pipeline, options.task.as_deref(), concurrency)?;
    unsupported::check_supported(plan, &graph)?;
    let mut process_env = ProcessEnv::new(reachable_pipelines(plan, &graph), &facts.workspace, options.environment)?;
    if context.is_some() {
        engine::check_remote(plan, &graph)?;
        process_env = process_env.remote();
    }
    let is_local = context.is_none() && options.replay.is_none();
    let repository = match is_local {
        false => None,
        true => worktree_names::find_repository(plan, &graph, &process_env)?,
    };
    let notices = match is_local {
        // Programs are where workers are.
        false => Vec::new(),
        true => {
            let runs = |pipeline: &Pipeline, step: &Step| is_part(&graph, pipeline, step);
            programs::look_up(plan, &reachable_pipelines(plan, &graph), runs, &process_env)?
        }
    };
    let commit = match context {
        Some(context) => context.commit.clone(),
        None => repository.as_ref().map(Repository::commit).transpose().map_err(RunError::Request)?,
    };

    let folder = context.map_or_else(|| home.create(), |context| home.create_named(&context.run))?;
    // Before others can see the run, so that none of them takes it for one without a runner.
    let lock = Lock::acquire_lock(&folder)?;
    std::fs::write(folder.plan_path(), text).map_err(RunError::io("write", folder.plan_path()))?;
    folder.write_facts(&facts)?;
    let stdin = options.stdin.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let stdin = stdin.map(|text| store_content(&folder, text)).transpose()?;
    let stored_params = serde_json::to_string(&params).expect("a map of texts is JSON");
    let stored_params = (!event::can_inline(&stored_params)).then(|| folder.store_text(&stored_params)).transpose()?;

    let poller = create_poller()?;
    let (inputs, receiver) = Inputs::new(poller.inbox());
    let path = folder.journal_path();
    let failed = sync_error_handler(&inputs);
    let journal = match context {
        None => FileJournal::create(&path, failed),
        Some(context) => FileJournal::create_kept(&path, Box::new(keeping(&context.keeper)), failed),
    };
    let mut journal = journal.map_err(RunError::io("create", &path))?;
    let event = Event::RunStarted {
        version: VERSION,
        run: folder.id.clone(),
        plan: digest_of(text),
        pipeline: pipeline.name.clone(),
        task: options.task,
        params: if stored_params.is_none() { params.clone() } else { BTreeMap::new() },
        stored_params,
        stdin: stdin.clone(),
        concurrency: Some(concurrency),
        commit: commit.clone(),
    };
    let started = Record { seq: 1, at: records::now_millis(), event };
    journal.append(&started);
    // A run that others can see has its first record.
    journal.flush().map_err(RunError::io("write", &path))?;
    let folder = if context.is_some() { folder } else { home.publish(folder)? };
    let redactions = build_redactions(plan, &folder, &process_env);
    let source = match options.replay {
        Some(recording) => Source::Replayed(Arc::new(Replay::new(recording, redactions.clone(), &folder.id))),
        None => open_recorder(&folder, &facts, &redactions)?,
    };
    let begin = RunSetup {
        source,
        record: facts.record.map(|target| (target, redactions)),
        trees: repository.zip(commit).map(|(repository, commit)| Worktrees::new(repository, commit, &folder)),
        folder,
        pipeline,
        plan,
        params,
        stdin,
        process_env,
        state: State::new(Arc::new(graph)),
        folded: 0,
        last: 0,
        clock: 0,
        first: FirstRecord::Recorded(Box::new(started)),
        headless: options.headless,
        held: BTreeMap::new(),
        notices,
        journal: Box::new(journal),
        reuse: facts.reuse,
        remote: context.map(|context| Arc::clone(&context.holder)),
    };
    begin.run(lock, control, observer, (&inputs, receiver, &poller))
}

/// Whether a step is part of what runs.
fn is_part(graph: &Graph, pipeline: &Pipeline, step: &Step) -> bool {
    graph.scopes.iter().any(|scope| *scope.pipeline == *pipeline.name && scope.find(&step.name).is_some())
}

/// Everything that a run begins with in this process.
struct RunSetup<'a> {
    folder: RunFolder,
    plan: &'a Plan,
    pipeline: &'a Pipeline,
    params: BTreeMap<String, String>,
    stdin: Option<Content>,
    process_env: ProcessEnv,
    trees: Option<Worktrees>,
    state: State,
    /// How many records the last snapshot of the run holds.
    folded: u64,
    /// The number of the journal's last record.
    last: u64,
    /// The time of that record: time never goes back, even if the system clock does.
    clock: u64,
    /// What this process records first.
    first: FirstRecord,
    notices: Vec<String>,
    journal: Box<dyn Journal>,
    headless: bool,
    /// The attempts of a former runner that go on.
    held: HeldAttempts,
    /// Where answers come from.
    source: Source,
    /// Where the recording goes when the run has ended.
    record: Option<(PathBuf, Redactions)>,
    /// What it takes from earlier runs.
    reuse: Option<Reuse>,
    /// What holds its processes on other machines.
    remote: Option<Arc<dyn RemoteHolder>>,
}

/// What a process's part of a run begins with.
enum FirstRecord {
    /// In the journal already.
    Recorded(Box<Record>),
    /// Still to be recorded, in this order.
    New(Vec<Event>),
}

impl RunSetup<'_> {
    /// Starts the threads, runs the loop, ends the threads.
    fn run(
        self,
        lock: Lock,
        control: Control,
        observer: Box<dyn Observer>,
        input_queue: (&Inputs, Receiver<Input>, &Poller),
    ) -> Result<Outcome, RunError> {
        let concurrency = self.state.graph().concurrency();
        let fewer = limits::allow_files(concurrency);
        let activities = Activities::default();
        let processes = Processes::new(&self.folder.id);
        let socket = Socket::listen(&self.folder, control.clone(), activities.clone(), processes.clone())?;
        let (observer_handle, watching) = ObserverHandle::start(observer);
        self.notices.iter().chain(&fewer).for_each(|notice| observer_handle.send_notice(notice));
        let outcome = self.drive(&observer_handle, input_queue, (&control, activities, processes));
        drop(socket);
        drop(observer_handle);
        watching.thread().unpark();
        let watched = watching.join();
        drop(lock);
        let outcome = outcome?;
        if watched.is_err() {
            return Err(RunError::Request(format!("the display of run `{}` failed", outcome.run)));
        }
        Ok(outcome)
    }

    fn drive(
        self,
        observer_handle: &ObserverHandle,
        (inputs, receiver, poller): (&Inputs, Receiver<Input>, &Poller),
        (control, activities, processes): (&Control, Activities, Processes),
    ) -> Result<Outcome, RunError> {
        let RunSetup { folder, plan, pipeline, params, stdin, process_env, mut state, last, clock, first, .. } = self;
        let trees = self.trees.map(Arc::new);
        let (journal, headless, record, held) = (self.journal, self.headless, self.record, self.held);
        let is_remote = self.remote.is_some();
        let world = match &self.source {
            Source::Replayed(replay) => world::World::Recorded(Box::new(replay::Replaying::new(Arc::clone(replay))?)),
            Source::Live | Source::Recorded(_) => world::World::Real,
        };
        state.paced = !world.is_real();
        let hands_over = state.graph().scopes.iter().any(|scope| !scope.ways.is_empty());
        let stepwise = hands_over && !matches!(self.source, Source::Live);
        let reuse = match world.is_real() {
            true => Reuser::open(&folder, &plan.workflow, self.reuse.as_ref(), observer_handle)?,
            false => Reuser::default(),
        };
        let (file_writer, writing_thread) = build_file_writer(inputs);
        let layout = folder.layout(pipeline);
        let durability = journal.durability();
        let names = (folder.id.clone(), folder.path.clone(), process_env.workspace.clone());
        let mut evaluator = Evaluator::new(plan, state.graph(), params, stdin, names, Box::new(folder.clone()));
        evaluator.trees.clone_from(&trees);
        evaluator.layout = Some(layout.clone());
        evaluator.source = self.source.clone();
        evaluator.secrets = Secrets::new(process_env.caller(), &secrets::variables(plan));
        let tools = Arc::new(tool_servers::build_toolbox(&evaluator, &process_env, observer_handle));
        let reactor = Arc::new(Reactor::default());
        let models = Arc::new(Models::new(plan, process_env.caller()));
        let pool_services = executor::Services {
            folder: folder.clone(),
            layout: layout.clone(),
            observer_handle: observer_handle.clone(),
            file_writer: file_writer.clone(),
            durability: Arc::clone(&durability),
            source: self.source.clone(),
            watches: Watches::new(&folder.path, hidden_variables(plan)),
            models: Arc::clone(&models),
            reactor: Arc::clone(&reactor),
            activities,
            tools: Arc::clone(&tools),
            inputs: inputs.clone(),
            is_crowded: AtomicBool::new(false),
        };
        let pool = Pool::new(pool_services, children::at_most(state.graph().concurrency()));
        let jobs = pool.jobs();
        control.attach(inputs.clone());
        let agent_server = AgentServer::new(&folder.path, inputs.clone(), Arc::clone(&reactor), processes);
        let has_former = !held.is_empty();
        for (of, held) in &held {
            // Ahead of every session: the first one opens the port.
            if let Some(living) = &held.living {
                agent_server.expect_former(of, living.token.as_deref(), living.tools.as_deref());
            }
        }
        let mut records = Records::new(journal, last, clock, Time::System);
        if world.is_real() && !is_remote {
            let folder = folder.clone();
            records.snapshots = Some(SnapshotWriter::new(self.folded, move || snapshots::keep_state(&folder)));
        }
        let run_loop = Driver {
            evaluator,
            state,
            records,
            queue: InputQueue::new(receiver, stepwise),
            attempts: Attempts::new(Some(pool), held, reuse),
            requests: Requests::new(headless),
            teams: swarms::RunningSwarms::default(),
            outputs: Outputs::new(folder.clone(), layout, Box::new(folder), Some((file_writer, writing_thread))),
            notices: Notices::new(observer_handle.clone()),
            services: Services {
                process_env,
                models,
                tools: Arc::clone(&tools),
                reactor: Arc::clone(&reactor),
                agent_server,
                remote: self.remote,
                inputs: inputs.clone(),
            },
            world,
        };
        let mut run_loop = threads::run_driver(run_loop, jobs, first, poller);
        run_loop.notices.await_hooks();
        if reactor.is_started()
            && let Err(problem) = reactor.wait(tools.close())
        {
            observer_handle.send_notice(problem);
        }
        // Nothing else would end a process that left its group to stay.
        if !is_remote && let Some(survivors) = orphan_processes::end_own(&run_loop.outputs.folder, has_former) {
            observer_handle.send_notice(format!("{survivors} left by the run: ended"));
        }
        if run_loop.state.final_status().is_some() {
            run_loop.records.snapshots = None;
            run_loop.outputs.folder.remove_snapshots();
            // It fails where no process was held, and then there is nothing to remove.
            let _ = std::fs::remove_dir_all(run_loop.outputs.folder.path.join(ATTEMPTS));
        }
        // A run that can be resumed still needs them.
        if let (Some(trees), Some(_)) = (trees, run_loop.state.final_status()) {
            trees.clear().into_iter().for_each(|kept| observer_handle.send_notice(kept));
        }
        let (folder, finished) = (run_loop.outputs.folder.clone(), run_loop.state.final_status().is_some());
        let outcome = run_loop.outcome()?;
        match record {
            Some((target, _)) if !finished => {
                observer_handle.send_notice(format!(
                    "the recording `{}` is written when the run is resumed and ends",
                    target.display()
                ));
            }
            Some((target, redactions)) => {
                let answers = recording::publish(&folder, &target, &plan.workflow, &redactions, &outcome.values)
                    .map_err(|error| RunError::Unrecorded { run: folder.id.clone(), source: Box::new(error) })?;
                let answers = if answers == 1 { "1 answer".to_owned() } else { format!("{answers} answers") };
                observer_handle.send_notice(format!("recorded {answers} in `{}`", target.display()));
            }
            None => {}
        }
        Ok(outcome)
    }
}

/// The values of the instances that have one.
fn load_values(state: &State, texts: &dyn TextStore) -> Result<Vec<String>, RunError> {
    let instances = 1..=state.graph().instances();
    instances
        .filter_map(|instance| state.instance_value(instance))
        .map(|value| texts.load_text(value).map_err(RunError::Request))
        .collect()
}

/// What is left blank in a recording of this run.
fn build_redactions(plan: &Plan, folder: &RunFolder, process_env: &ProcessEnv) -> Redactions {
    let names = (folder.id.as_str(), folder.path.as_path(), process_env.workspace.as_path());
    Redactions::new(names, process_env.caller(), &secrets::variables(plan))
}

/// A replay needs no secret: it uses the placeholders of the recording.
fn blank_secrets(plan: &Plan, environment: &mut BTreeMap<OsString, OsString>) {
    let blank = |name| (OsString::from(name), OsString::from(secrets::blank(name)));
    environment.extend(secrets::variables(plan).into_iter().map(blank));
}

/// The variables whose values nothing that is kept may hold.
fn hidden_variables(plan: &Plan) -> BTreeSet<String> {
    secrets::variables(plan).into_iter().chain([crate::io::agent_api::TOKEN]).map(str::to_owned).collect()
}

fn open_recorder(folder: &RunFolder, facts: &RunConfig, redactions: &Redactions) -> Result<Source, RunError> {
    match &facts.record {
        Some(_) => Ok(Source::Recorded(Arc::new(Recorder::new(folder, redactions.clone())?))),
        None => Ok(Source::Live),
    }
}

/// What the run's own thread carries attempts out with.
fn create_poller() -> Result<Poller, RunError> {
    Poller::new().map_err(|error| RunError::Request(format!("the system has no room for the files of a run: {error}")))
}

fn build_file_writer(inputs: &Inputs) -> (FileWriter, WritingThread) {
    let inputs = inputs.clone();
    FileWriter::new(move |error| {
        // A loop that has ended has counted its files already.
        let _ = inputs.send(Input::Broken(error.to_string()));
    })
}

/// Tells the loop that its records do not reach the disk.
fn sync_error_handler(inputs: &Inputs) -> impl FnOnce(std::io::Error) + Send + 'static {
    let inputs = inputs.clone();
    move |error| {
        // A loop that has ended learns it from closing the journal.
        let _ = inputs.send(Input::Broken(format!("the journal cannot be made durable: {error}")));
    }
}

fn find_pipeline<'a>(plan: &'a Plan, name: Option<&str>) -> Result<&'a Pipeline, RunError> {
    let name = name.unwrap_or(&plan.default);
    plan.pipeline(name).ok_or_else(|| RunError::Request(format!("the plan has no pipeline `{name}`")))
}

/// The pipelines that a run may reach.
fn reachable_pipelines<'a>(plan: &'a Plan, graph: &Graph) -> Vec<&'a Pipeline> {
    graph.scopes.iter().filter_map(|scope| plan.pipeline(&scope.pipeline)).collect()
}

fn build_graph(plan: &Plan, pipeline: &Pipeline, task: Option<&str>, concurrency: u32) -> Result<Graph, RunError> {
    Graph::new(plan, &pipeline.name, task, concurrency).map_err(|error| RunError::Request(error.to_string()))
}

/// The given parameters, and the defaults of the others. Their types were checked where they were given.
fn resolve_params(
    plan: &Plan,
    pipeline: &Pipeline,
    mut given: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, RunError> {
    let mut params = BTreeMap::new();
    for param in plan.params.iter().chain(&pipeline.params) {
        match given.remove(&param.name).or_else(|| param.default.clone()) {
            Some(value) => {
                params.insert(param.name.clone(), value);
            }
            None if param.optional => {}
            None => {
                let name = &param.name;
                return Err(RunError::Request(format!("parameter `{name}` has no value: add `--param {name}=…`")));
            }
        }
    }
    match given.into_keys().next() {
        Some(name) => Err(RunError::Request(format!("the plan has no parameter `{name}`"))),
        None => Ok(params),
    }
}

fn count_processors() -> u32 {
    u32::try_from(std::thread::available_parallelism().map_or(1, NonZero::get)).unwrap_or(u32::MAX)
}
