//! The protocol itself, and the only file that names its crate: tools listed and called, over
//! stdio and streamable HTTP, in both eras (the `initialize` handshake up to 2025-11-25, and
//! requests that carry all themselves from 2026-07-28 on).
//!
//! What a tool can't do is said in its text with `isError`, since hosts drop everything else
//! of a failed call. Only an unknown tool is an error of the protocol.

use std::sync::Arc;

use axum::Router;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SubscribeRequestParams, Tool,
    ToolAnnotations, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use super::stdio::Lines;
use super::{Answer, Definition, Tools};

/// What a host may pass on to its model about the tools as a whole.
const INSTRUCTIONS: &str = "Judges answers with a panel of independent judges. Call `score` with the task and your finished answer before you hand it in; on `reject` change what `feedback` says and call it again; `undecided` means that it could not be measured, which is neither a pass nor a fail. `explain` says more about a ruling, `gate_status` how the last judgements ended.";

/// Why a conversation over stdio could not be led.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdioError {
    /// The client began with something else than the protocol begins with.
    #[error("the client did not begin as the Model Context Protocol does: {message}")]
    Beginning {
        /// What it was.
        message: String,
    },
    /// The service broke off.
    #[error("the conversation broke off: {message}")]
    BrokenOff {
        /// Why.
        message: String,
    },
}

/// Serves the tools over standard input and output until the input ends or `stop` fires.
/// Nothing but lines of the protocol is written to standard output; a line that is not JSON is
/// answered with -32700 and the id null, and the conversation goes on.
///
/// # Errors
/// When the client speaks another protocol, or the service breaks off.
pub async fn serve_stdio(tools: Arc<Tools>, stop: CancellationToken) -> Result<(), StdioError> {
    let (input, output) = stdio_pipes();
    let (lines, streams) = Lines::between(input, output);
    let served = converse(Handler { tools }, streams, stop).await;
    lines.end().await;
    served
}

async fn converse(
    handler: Handler,
    streams: (DuplexStream, DuplexStream),
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let beginning = rmcp::service::serve_server_with_ct(handler, streams, stop.clone());
    let service = tokio::select! {
        begun = beginning => match begun {
            Ok(service) => service,
            // A client that went away before it said anything has asked for nothing.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                return Ok(());
            }
            Err(error) => return Err(StdioError::Beginning { message: error.to_string() }),
        },
        () = stop.cancelled() => return Ok(()),
    };
    match service.waiting().await {
        Ok(_) => Ok(()),
        Err(error) => Err(StdioError::BrokenOff { message: error.to_string() }),
    }
}

/// The endpoint `/mcp`, for requests under one of the names in `hosts`. It keeps no sessions,
/// so a client outlives a restart of the server; a client that hangs up cancels its call.
pub(super) fn router(tools: Arc<Tools>, hosts: &[String], stop: CancellationToken) -> Router {
    let handler = Handler { tools };
    let origins = hosts.iter().flat_map(|host| {
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        [format!("http://{host}:*"), format!("https://{host}:*")]
    });
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_legacy_session_mode(false)
        .with_cancellation_token(stop);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    Router::new().route_service("/mcp", service)
}

#[derive(Clone, Debug)]
struct Handler {
    tools: Arc<Tools>,
}

/// Methods that the protocol knows and this server has not: the crate's own answer is their
/// name alone.
macro_rules! lacking {
    ($($name:ident($request:ty) -> $answer:ty, $method:literal;)+) => {
        $(async fn $name(
            &self,
            _: $request,
            _: RequestContext<RoleServer>,
        ) -> Result<$answer, ErrorData> {
            Err(unknown_method($method))
        })+
    };
}

fn unknown_method(method: &str) -> ErrorData {
    let message = format!(
        "unknown method `{method}`: this server has tools alone, `tools/list` and `tools/call`"
    );
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

#[expect(deprecated, reason = "clients of the older era may still ask for what was deprecated")]
impl ServerHandler for Handler {
    lacking! {
        complete(CompleteRequestParams) -> CompleteResult, "completion/complete";
        set_level(rmcp::model::SetLevelRequestParams) -> (), "logging/setLevel";
        get_prompt(GetPromptRequestParams) -> GetPromptResponse, "prompts/get";
        list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult, "prompts/list";
        list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult, "resources/list";
        list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult,
            "resources/templates/list";
        read_resource(ReadResourceRequestParams) -> ReadResourceResponse, "resources/read";
        subscribe(SubscribeRequestParams) -> (), "resources/subscribe";
        unsubscribe(UnsubscribeRequestParams) -> (), "resources/unsubscribe";
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unknown_method(&request.method))
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("venire", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.definitions().into_iter().map(tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let answer = self.tools.call(&request.name, arguments, context.ct).await;
        match answer {
            Some(Answer::Structured(value)) => Ok(CallToolResult::structured(value).into()),
            Some(Answer::Refused(why)) => {
                Ok(CallToolResult::error(vec![ContentBlock::text(why)]).into())
            }
            None => {
                let names: Vec<_> = self
                    .tools
                    .definitions()
                    .iter()
                    .map(|tool| format!("`{}`", tool.name))
                    .collect();
                let message = format!("no tool `{}`: expected {}", request.name, names.join(", "));
                Err(ErrorData::invalid_params(message, None))
            }
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.definitions().into_iter().find(|tool| tool.name == name).map(tool)
    }
}

fn tool(definition: Definition) -> Tool {
    let annotations = ToolAnnotations::new()
        .read_only(definition.reads_only)
        .destructive(false)
        .idempotent(true)
        .open_world(definition.open_world);
    Tool::new(definition.name, definition.description, definition.input_schema)
        .with_title(definition.title)
        .with_raw_output_schema(Arc::new(definition.output_schema))
        .with_annotations(annotations)
}
