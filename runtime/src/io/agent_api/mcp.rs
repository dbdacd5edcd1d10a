//! Serves the tools of one node to MCP clients, whatever carries their messages.
//!
//! In: tool calls of a client that holds a token. Out: the answers of the run. Invariant: a refusal is a result that a
//! model can read and fix, never an error of the protocol.

use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use super::client::{Client, IDLE};
use super::{Sessions, ToolSpec};

/// By which Claude Code knows that a tool is to be in sight from the start, and not behind a search.
const ALWAYS: &str = "anthropic/alwaysLoad";

/// The MCP server of one node.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    offers: Arc<[ToolSpec]>,
    token: Arc<str>,
    run: Run,
}

/// Where the run is that is asked.
#[derive(Clone, Debug)]
pub(super) enum Run {
    /// In this process.
    Here(Arc<Sessions>),
    /// In another process.
    Behind(Arc<Client>),
}

impl Tools {
    /// The tools `offers` of the attempt that has this token.
    pub(super) fn new(offers: Arc<[ToolSpec]>, token: &str, run: Run) -> Tools {
        Tools { offers, token: token.into(), run }
    }

    async fn send_call(&self, name: &str, arguments: JsonObject) -> Result<Value, String> {
        match &self.run {
            Run::Here(reception) => reception.send_call(&self.token, name, arguments).await,
            Run::Behind(client) => {
                let name = name.to_owned();
                run_blocking(client, move |client| client.send_operation(&name, arguments)).await
            }
        }
    }

    /// Tells the run that its tools are known.
    async fn note_listed(&self) {
        match &self.run {
            Run::Here(reception) => reception.note_listed(&self.token),
            // A run that cannot be told waits no longer than it would anyway.
            Run::Behind(client) => _ = run_blocking(client, Client::note_listed).await,
        }
    }

    async fn handle_call(&self, request: CallToolRequestParams) -> CallToolResult {
        match self.send_call(&request.name, request.arguments.unwrap_or_default()).await {
            Ok(receipt) => CallToolResult::structured(receipt),
            Err(problem) => CallToolResult::error(vec![ContentBlock::text(problem)]),
        }
    }
}

/// Asks the run on a thread that may wait, and closes the connection for it where no other request needs it soon.
async fn run_blocking<T: Send + 'static>(
    client: &Arc<Client>,
    ask: impl FnOnce(&Client) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let asking = Arc::clone(client);
    let told = tokio::task::spawn_blocking(move || ask(&asking)).await;
    let client = Arc::clone(client);
    tokio::spawn(async move {
        tokio::time::sleep(IDLE).await;
        client.close_idle();
    });
    told.map_err(|error| error.to_string())?
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("swarm", env!("CARGO_PKG_VERSION")))
            .with_instructions("Hand work over to the other agents of this run, read what they handed to you, say how far you are, and \
                 ask a person for help.")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, rmcp::ErrorData> {
        self.note_listed().await;
        Ok(ListToolsResult::with_all_items(self.offers.iter().map(to_mcp_tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, rmcp::ErrorData> {
        Ok(self.handle_call(request).await.into())
    }
}

fn to_mcp_tool(offer: &ToolSpec) -> Tool {
    let parameters: JsonObject = offer.parameters.as_object().cloned().unwrap_or_default();
    let mut meta = MetaObject::new();
    meta.0.insert(ALWAYS.to_owned(), json!(true));
    let annotations = ToolAnnotations::new().read_only(offer.reads).destructive(false).open_world(false);
    Tool::new(offer.name.clone(), offer.description.clone(), Arc::new(parameters))
        .with_annotations(annotations)
        .with_meta(meta)
}
