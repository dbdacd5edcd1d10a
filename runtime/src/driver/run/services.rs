//! What a run calls that is not a process of a step: models, tools, tasks, and the server on which agents call it.

use std::sync::Arc;

use super::Inputs;
use super::process_env::ProcessEnv;
use crate::io::agent_api::AgentServer;
use crate::io::llm::Models;
use crate::io::reactor::Reactor;
use crate::io::shim::RemoteHolder;
use crate::io::tools::Toolbox;

/// The services of a run.
pub(super) struct Services {
    pub process_env: ProcessEnv,
    pub models: Arc<Models>,
    pub tools: Arc<Toolbox>,
    pub reactor: Arc<Reactor>,
    /// The server on which agents call the run.
    pub agent_server: AgentServer,
    /// What holds processes on other machines, where the run is one of an engine.
    pub remote: Option<Arc<dyn RemoteHolder>>,
    /// Where tasks of the reactor report.
    pub inputs: Inputs,
}
