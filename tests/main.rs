//! The integration tests, one module a topic.

mod cases;
mod hostile;
mod judge;
mod properties;
mod specs;
mod tidy;
