//! The integration tests, one module a topic.

mod agents;
mod cases;
mod judge;
mod cli;
mod properties;
mod specs;
mod tidy;
