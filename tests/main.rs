//! The integration tests, one module a topic.

mod cases;
mod properties;
mod specs;
mod tidy;
