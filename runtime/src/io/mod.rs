//! What a run needs of the world: the journal, the home, processes, agents, models, tools, Git, and sockets.

pub(crate) mod agent_api;
pub(crate) mod artifact;
pub(crate) mod children;
pub(crate) mod confine;
pub(crate) mod control;
pub(crate) mod event_loop;
pub(crate) mod executor;
pub(crate) mod files;
pub(crate) mod home;
pub(crate) mod ignored;
pub(crate) mod input;
pub(crate) mod journal;
pub(crate) mod llm;
pub(crate) mod orphan_processes;
pub(crate) mod proc_status;
pub(crate) mod process;
pub(crate) mod reactor;
pub(crate) mod recording;
pub(crate) mod socket;
pub(crate) mod socket_peer;
pub(crate) mod steering;
pub(crate) mod stream;
pub(crate) mod tools;
pub(crate) mod unix;
pub(crate) mod workspace_file;
pub(crate) mod worktree;
