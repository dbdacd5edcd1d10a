//! The command line of `swarmc serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::Engine;

/// Serves the runs of this home over HTTP: a page that shows and steers them, an API, and streams of events.
///
/// Prints the address for a browser, which holds the token that every request needs. It shows runs that were started
/// anywhere; its end ends no run. `GET /api/v1/openapi.json` describes the API.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where it listens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4983")]
    pub(crate) listen: SocketAddr,
    /// Listens on a Unix socket as well, which only you can use.
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: Option<PathBuf>,
    /// The specs that may be run: those in this folder. May be repeated; by default the nearest folder with `.git`.
    #[arg(long, value_name = "DIR")]
    pub(crate) specs: Vec<PathBuf>,
    /// The spec that runs what is posted as a task (`POST /api/v1/tasks`); by default the only one that may be run.
    #[arg(long, value_name = "SPEC")]
    pub(crate) tasks: Option<PathBuf>,
    /// Runs plans that are submitted in place of a spec. A plan holds commands: who has the token then runs anything.
    #[arg(long)]
    pub(crate) allow_plans: bool,
    /// How many submitted runs go on at once, further ones wait; by default one for each processor.
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) runs: Option<usize>,
    /// A name of this server besides those of this machine, as `NAME` or `NAME:PORT`. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// Answers no request that changes something.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Opens the page in a browser.
    #[arg(long)]
    pub(crate) open: bool,
    /// Takes the token from this file, in place of a new one.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Listens where other machines reach it, since a proxy that speaks TLS stands in front of it.
    #[arg(long)]
    pub(crate) behind_tls: bool,
    /// Serves the files of this folder as the page, for work on the page.
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) page: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) engine: Engine,
}
