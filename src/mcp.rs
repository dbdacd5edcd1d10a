//! `swarmc mcp`: the operations of a run as an MCP server on standard input and output.

use std::path::Path;

use miette::miette;
use swarmc_runtime::{SOCKET, TOKEN, serve_stdio};

use crate::agent::require_variable;
use crate::args;
use crate::exit::Exit;

pub(crate) fn exec(args::Mcp {}: &args::Mcp) -> miette::Result<Exit> {
    let (socket, token) = (require_variable(SOCKET)?, require_variable(TOKEN)?);
    serve_stdio(Path::new(&socket), &token.to_string_lossy()).map_err(|problem| miette!("{problem}"))?;
    Ok(Exit::Done)
}
