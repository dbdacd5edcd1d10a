//! `swarmc mcp`: an MCP server on standard input and output, which asks the run that started its client.

use std::path::Path;
use std::sync::Arc;

use rmcp::ServiceExt as _;

use super::client::Client;
use super::mcp::{Run, Tools};

/// Serves MCP on standard input and output for the attempt that has this token, until the input ends.
///
/// # Errors
/// The run at `socket` cannot be reached or knows no such token, or the client speaks no MCP.
pub fn serve_stdio(socket: &Path, token: &str) -> Result<(), String> {
    let client = Client::new(socket, token);
    let tools = Tools::new(client.list_tools()?.into(), token, Run::Behind(Arc::new(client)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no event loop can be started: {error}"))?;
    let served = runtime.block_on(async {
        let service = tools.serve(rmcp::transport::stdio()).await.map_err(|error| error.to_string())?;
        service.waiting().await.map_err(|error| error.to_string())
    });
    // A thread that still reads standard input would be waited for.
    runtime.shutdown_background();
    match served {
        Ok(_) => Ok(()),
        Err(problem) => Err(format!("the client does not speak MCP: {problem}")),
    }
}
