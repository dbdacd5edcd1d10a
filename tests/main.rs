//! The integration tests, one module a topic.

mod agents;
mod baseline;
mod cases;
mod cli;
mod editors;
mod examples;
mod graph;
mod hostile;
mod import;
mod judge;
mod kill;
mod lsp;
mod modules;
mod mutants;
mod properties;
mod record;
mod runs;
mod schema;
mod specs;
mod stats;
mod swarms;
mod testing;
mod tidy;
mod tools;
mod tutorial;
mod watch;
