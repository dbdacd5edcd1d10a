//! The integration tests, one module a topic.

mod cases;
mod judge;
mod properties;
mod specs;
mod tidy;
