//! Runs in memory: the look of `plan --reuse`, and rehearsals.
//!
//! In: a plan, options, and what answers in the place of agents and people. Out: the driver after the last record. The
//! driver is the one of every run. Invariants: no process starts, and no file is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use swarmc_plan::Plan;

use super::driver::Driver;
use super::eval::Evaluator;
use super::input_queue::InputQueue;
use super::notices::Notices;
use super::open_attempts::Attempts;
use super::outputs::Outputs;
use super::process_env::ProcessEnv;
use super::records::{Records, Time};
use super::requests::Requests;
use super::reuse::Reuser;
use super::services::Services;
use super::swarms::RunningSwarms;
use super::text_store::MemoryStore;
use super::world::World;
use super::{
    FirstRecord, Options, build_graph, create_poller, find_pipeline, resolve_params, tool_servers, unsupported,
};
use crate::core::graph::Graph;
use crate::core::state::State;
use crate::io::agent_api::AgentServer;
use crate::io::executor::ObserverHandle;
use crate::io::home::RunFolder;
use crate::io::input::Inputs;
use crate::io::journal::CountingJournal;
use crate::io::llm::Models;
use crate::io::reactor::Reactor;
use crate::io::socket_peer::Processes;
use crate::types::error::RunError;
use crate::types::event::{Content, Event};

/// What stands around a run in memory.
pub(super) struct Imagined<'a> {
    /// Where its files would be; nothing is there.
    pub folder: RunFolder,
    pub reuse: Reuser,
    /// Who answers.
    pub world: World<'a>,
    /// The agents and commands that run at once.
    pub concurrency: u32,
    /// Its records at most: a run that needs more goes round without end.
    pub records: usize,
}

/// Runs `plan` to its end in memory. The driver after that, and the texts of the run.
///
/// # Errors
/// The request does not fit the plan, or the plan has what this version cannot run. `process_env` fails. The system has no
/// file descriptor left.
pub(super) fn run_in_memory<'a>(
    plan: &'a Plan,
    options: &Options,
    imagined: Imagined<'a>,
    process_env: impl FnOnce(&Graph) -> Result<ProcessEnv, RunError>,
) -> Result<(Driver<'a>, MemoryStore), RunError> {
    let Imagined { folder, reuse, world, concurrency, records } = imagined;
    let pipeline = find_pipeline(plan, options.pipeline.as_deref())?;
    let params = resolve_params(plan, pipeline, options.params.clone())?;
    let graph = build_graph(plan, pipeline, options.task.as_deref(), concurrency)?;
    unsupported::check_supported(plan, &graph)?;
    let process_env = process_env(&graph)?;
    let stdin = options.stdin.as_ref().map(|bytes| Content::Text(String::from_utf8_lossy(bytes).into_owned()));
    let layout = folder.layout(pipeline);
    let texts = MemoryStore::default();
    let names = (folder.id.clone(), folder.path.clone(), process_env.workspace.clone());
    let evaluator = Evaluator::new(plan, &graph, params, stdin, names, Box::new(texts.clone()));
    let poller = create_poller()?;
    let (inputs, receiver) = Inputs::new(poller.inbox());
    let (observer_handle, reactor) = (ObserverHandle::unobserved(), Arc::new(Reactor::default()));
    let agent_server = AgentServer::new(&folder.path, inputs.clone(), Arc::clone(&reactor), Processes::new(&folder.id));
    let services = Services {
        tools: Arc::new(tool_servers::build_toolbox(&evaluator, &process_env, &observer_handle)),
        process_env,
        models: Arc::new(Models::none()),
        reactor,
        agent_server,
        remote: None,
        inputs,
    };
    let mut started = Event::run_started(&folder.id, &pipeline.name);
    if let Event::RunStarted { task, .. } = &mut started {
        task.clone_from(&options.task);
    }
    let mut driver = Driver {
        evaluator,
        state: State::new(Arc::new(graph)),
        records: Records::new(Box::new(CountingJournal::new(records)), 0, 0, Time::Virtual),
        queue: InputQueue::new(receiver, false),
        attempts: Attempts::new(None, BTreeMap::new(), reuse),
        // No person can answer a look.
        requests: Requests::new(world.is_planned()),
        teams: RunningSwarms::default(),
        outputs: Outputs::new(folder, layout, Box::new(texts.clone()), None),
        notices: Notices::new(observer_handle),
        services,
        world,
    };
    driver.run(FirstRecord::New(vec![started]));
    Ok((driver, texts))
}
