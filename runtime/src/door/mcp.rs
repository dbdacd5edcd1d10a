//! The door of MCP clients, whatever carries their messages: the tools of one node.
//!
//! In: calls of tools by whoever holds a token. Out: what the run says to them. Invariant: what the run refuses is a
//! result that a model can read and mend, never an error of the protocol.

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use super::{Offer, Reception, client, operation};
use crate::handoff::Operation;

/// By which Claude Code knows that a tool is to be in sight from the start, and not behind a search.
const ALWAYS: &str = "anthropic/alwaysLoad";

/// The MCP server of one node.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    offers: Arc<[Offer]>,
    token: Arc<str>,
    run: Run,
}

/// Where the run is that is asked.
#[derive(Clone, Debug)]
pub(super) enum Run {
    /// In this process.
    Here(Arc<Reception>),
    /// Behind this socket.
    Behind(Arc<PathBuf>),
}

impl Tools {
    /// The tools `offers` of whoever has this token.
    pub(super) fn new(offers: Arc<[Offer]>, token: &str, run: Run) -> Tools {
        Tools { offers, token: token.into(), run }
    }

    async fn ask(&self, operation: Operation) -> Result<Value, String> {
        match &self.run {
            Run::Here(reception) => reception.ask(&self.token, Ok(operation)).await,
            Run::Behind(socket) => {
                let (socket, token) = (Arc::clone(socket), Arc::clone(&self.token));
                let asking = tokio::task::spawn_blocking(move || client::ask(&socket, &token, &operation));
                asking.await.map_err(|error| error.to_string())?
            }
        }
    }

    /// Tells the run that its tools are known.
    async fn note_listed(&self) {
        match &self.run {
            Run::Here(reception) => reception.note_listed(&self.token),
            Run::Behind(socket) => {
                let (socket, token) = (Arc::clone(socket), Arc::clone(&self.token));
                // Whoever cannot be told waits no longer than it would anyway.
                let _ = tokio::task::spawn_blocking(move || client::note_listed(&socket, &token)).await;
            }
        }
    }

    async fn call(&self, request: CallToolRequestParams) -> CallToolResult {
        let told = match operation(&request.name, request.arguments.unwrap_or_default()) {
            Ok(operation) => self.ask(operation).await,
            Err(problem) => Err(problem),
        };
        match told {
            Ok(receipt) => CallToolResult::structured(receipt),
            Err(problem) => CallToolResult::error(vec![ContentBlock::text(problem)]),
        }
    }
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
        Ok(ListToolsResult::with_all_items(self.offers.iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, rmcp::ErrorData> {
        Ok(self.call(request).await.into())
    }
}

fn tool(offer: &Offer) -> Tool {
    let parameters: JsonObject = offer.parameters.as_object().cloned().unwrap_or_default();
    let mut meta = MetaObject::new();
    meta.0.insert(ALWAYS.to_owned(), json!(true));
    let annotations = ToolAnnotations::new().read_only(offer.reads).destructive(false).open_world(false);
    Tool::new(offer.name.clone(), offer.description.clone(), Arc::new(parameters))
        .with_annotations(annotations)
        .with_meta(meta)
}
