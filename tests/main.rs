//! The integration tests, one module a topic.

mod agents;
mod cases;
mod judge;
mod properties;
mod specs;
mod tidy;
