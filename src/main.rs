//! The command line of swarmc: parses arguments, calls the compiler and the runtime, and prints what they say.
//!
//! Everything a person or another program sees comes from here; what it means is decided in the other crates.

mod agent;
mod agent_log;
mod approve;
mod args;
mod baselines;
mod bounds;
mod change;
mod check;
mod compare;
mod config;
mod display;
#[cfg(test)]
mod docs;
mod doctor;
mod engine;
mod events;
mod exit;
mod explain;
mod file_deps;
mod files;
mod find;
mod fmt;
mod graph;
mod home;
mod import;
mod init;
mod inspect;
mod last_run;
mod live;
mod load;
mod logs;
mod lsp;
mod mcp;
mod nodes;
mod pages;
mod params;
mod plan;
mod problem;
mod prompt_preview;
mod render;
mod replay;
mod reuse;
mod run;
mod runs;
mod send;
mod serve;
mod shell;
mod signals;
mod since;
mod stale;
mod stats;
mod summary;
mod swarm;
mod target;
mod terminal;
mod test;
mod top;
mod watch;
mod worker;

use std::process::ExitCode;

use args::{Command, CommandLine};
use exit::Exit;
use swarmc_runtime::serve_shim;

/// A compile makes and drops hundreds of thousands of small values, on the threads of a language server as well.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Ahead of everything that would make it larger: there is one of these processes for each agent.
    if std::env::args_os().nth(1).is_some_and(|word| word == "shim") {
        let Err(problem) = serve_shim() else { return ExitCode::SUCCESS };
        terminal::eprint(format!("{problem}\n"));
        return ExitCode::FAILURE;
    }
    let command = CommandLine::read().command;
    let mirror = match command.engine().map(engine::mirror).transpose() {
        Ok(mirror) => mirror.flatten(),
        Err(problem) => return report_error(&problem).into(),
    };
    let outcome = match command {
        Command::Check(args) => check::exec(&args),
        Command::Fmt(args) => fmt::exec(&args),
        Command::Plan(args) => plan::exec(&args),
        Command::Graph(args) => graph::exec(&args),
        Command::Test(args) => test::exec(&args),
        Command::Run(args) => run::run_pipeline(&args),
        Command::Resume(args) => run::resume_run(&args),
        Command::Stop(args) => runs::stop_runs(&args),
        Command::Approve(args) => approve::exec(&args),
        Command::Send(args) => send::exec(&args),
        Command::Ps(args) => runs::list_runs(&args),
        Command::Top(args) => top::exec(&args),
        Command::Serve(args) => serve::exec(&args),
        Command::Worker(args) => worker::exec(&args),
        Command::Logs(args) => logs::exec(&args),
        Command::Events(args) => events::exec(&args),
        Command::Inspect(args) => inspect::exec(&args),
        Command::Agent(args) => agent::exec(&args),
        Command::Mcp(args) => mcp::exec(&args),
        Command::Prune(args) => runs::prune_runs(&args),
        Command::Explain(args) => explain::exec(&args),
        Command::Schema(args) => shell::print_schema(&args),
        Command::Import(args) => import::exec(&args),
        Command::Init(args) => init::exec(&args),
        Command::Lsp(args) => lsp::exec(&args),
        Command::Doctor(args) => doctor::exec(&args),
        Command::Completions(args) => shell::print_completions(&args),
        Command::Man(args) => shell::print_manual(&args),
    };
    let exit = outcome.unwrap_or_else(|error| report_error(&error));
    // Waits for the orders that are still on their way to the engine.
    drop(mirror);
    exit.into()
}

/// Says what went wrong with the environment or the arguments.
fn report_error(error: &miette::Report) -> Exit {
    let paint = terminal::Stream::Err.paint();
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Some errors tell their cause themselves.
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    let mut text = format!("{} {}", paint.red("error:"), summary::printable_lines(&message));
    if let Some(help) = error.help() {
        text.push_str(&format!("  {} {help}\n", paint.cyan("help:")));
    }
    terminal::eprint(text);
    Exit::Usage
}
