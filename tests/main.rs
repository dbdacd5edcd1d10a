//! The integration tests, one module a topic.

mod cases;
mod cli;
mod properties;
mod specs;
mod tidy;
