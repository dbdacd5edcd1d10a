//! What the other layers share: ids, events, requests and messages. Data, with no behaviour beyond itself.
//!
//! Nothing here reads a file or a clock, starts a process or waits.

pub(crate) mod activity;
pub(crate) mod agent_status;
pub(crate) mod answer;
pub(crate) mod approval;
pub mod artifact;
pub(crate) mod cancel;
pub(crate) mod chat;
pub(crate) mod content;
pub(crate) mod digest;
pub(crate) mod divergence;
pub(crate) mod effective_prompt;
pub mod engine;
pub(crate) mod error;
pub(crate) mod event;
pub mod handoff;
pub(crate) mod inbox_message;
pub(crate) mod observer;
pub(crate) mod recording_error;
pub(crate) mod retry;
pub(crate) mod reuse;
pub(crate) mod secrets;
pub(crate) mod step_id;
pub(crate) mod swarm;
pub mod team;
pub(crate) mod team_fact;
pub(crate) mod telemetry;
pub(crate) mod usage;
pub(crate) mod user_request;
pub(crate) mod visible_text;
