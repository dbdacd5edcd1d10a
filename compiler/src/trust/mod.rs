//! Where text comes from, what it may do, and where it can go.

pub(crate) mod command;
pub(crate) mod shell;
