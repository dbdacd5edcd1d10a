//! The integration tests, one module a topic.

mod cases;
mod specs;
mod tidy;
