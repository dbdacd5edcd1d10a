//! Tests of the core of swarms: a file for each section of seed 001, with tables of what agents answer and of the
//! events that follow; then properties of every swarm, however it is interrupted.

mod actions;
mod approvals;
mod convergence;
mod dynamic_spawn;
mod lifecycle;
mod limits;
mod lines;
mod merge;
mod p2p_messaging;
mod properties;
mod reading;
mod resume;
mod shared_workspace;
mod sizes;
mod smart_retry;
mod team;
mod timeouts;
mod touch;
mod within;
mod world;
