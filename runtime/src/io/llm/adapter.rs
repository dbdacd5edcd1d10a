//! The one module that uses genai: turns our questions into its requests, its streams into replies, its errors into
//! faults.
//!
//! Everything that comes from an endpoint is counted before it is kept. What genai would guess, it is told: the
//! address, the headers and the model are ours, to the letter.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_core::Stream;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatFrameSink, ChatMessage, ChatOptions, ChatRequest, ChatStream, ChatStreamEvent, ContentPart, FrameCtx, JsonSpec,
    MessageContent, RawFrameRef, ReasoningEffort, StopReason, StreamEnd, ToolCall, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint as Address};
use genai::{Client, Headers, ModelIden, ServiceTarget};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use swarmc_plan::LlmKind;
use tokio::sync::mpsc::UnboundedSender;

use super::calls::{Gathered, parse_arguments};
use super::echo::Echo;
use super::endpoint::{Endpoint, STATUS};
use super::names::Names;
use super::{Patience, fault};
use crate::io::stream::ANSWER_LIMIT;
use crate::types::chat::{Call, Fault, Message, Question, Reply};
use crate::types::usage::Usage;

/// What may come in frames for one answer, in bytes: every word of it comes in a frame of its own, with names around
/// it.
const FRAMES_LIMIT: usize = 16 * ANSWER_LIMIT;

/// How many pieces may come of which no frame becomes whole: our code sees none of their bytes before that. A piece is
/// what one read of the connection gives, 400 KiB at most and mostly much less.
const PIECES: usize = 2_048;

/// How long it may take to put such pieces together: genai begins anew with each.
const PUTTING_TOGETHER: Duration = Duration::from_secs(5);

/// How many pieces may come for what a refusal says, of which a line is told.
const REFUSAL_PIECES: usize = 64;

/// How long a refusal may take to say what it has to.
const REFUSAL: Duration = Duration::from_secs(10);

/// The longest frame in which the model's name is looked for.
const NAMING_FRAME: usize = 64 << 10;

/// Asks once. The text is sent to `heard` as it comes.
pub(super) async fn send_question(
    endpoint: &Endpoint,
    question: Question,
    patience: Patience,
    heard: UnboundedSender<String>,
) -> Result<Reply, Fault> {
    let names = Names::of(&question);
    let model = question.model.clone().or_else(|| endpoint.model.clone());
    let model = model.ok_or_else(|| Fault::permanent("no model is named, by the agent or its provider"))?;
    // The beginning of an answer that a schema holds is not for us to say.
    let is_held = question.schema.is_some() && endpoint.provides_schema;
    let prefill = question.prefill.clone().filter(|_| endpoint.kind == LlmKind::Anthropic && !is_held);
    let frames = Arc::new(Frames::default());
    let options = chat_options(endpoint, &question, &model, patience).with_raw_frame_sink_arc(frames.clone());
    let target = ServiceTarget {
        // Not used: the override below says where to.
        endpoint: Address::from_static("http://localhost/"),
        auth: AuthData::RequestOverride { url: endpoint.url(&model), headers: Headers::from(endpoint.headers()) },
        model: ModelIden::new(adapter_kind(endpoint.kind), model.clone()),
    };
    let request = build_request(question, prefill.as_deref(), &names);
    let client = Client::builder().with_reqwest(endpoint.client.clone()).build();
    let client = client.map_err(|error| Fault::permanent(format!("no client can be made: {error}")))?;
    let asked = client.exec_chat_stream(target, request, Some(&options)).await;
    let stream = asked.map_err(|error| fault::of(error, endpoint, patience))?.stream;
    let (reply, gathered, echo) = (Reply::default(), Gathered::default(), Echo::new(endpoint.key()));
    let mut answer = Answer { endpoint, patience, frames, heard, reply, gathered, echo };
    if let Some(prefill) = &prefill {
        answer.append_text(prefill)?;
    }
    let end = STATUS.scope(Cell::new(0), answer.read_stream(stream)).await?;
    answer.finish(end, &names)
}

fn adapter_kind(kind: LlmKind) -> AdapterKind {
    match kind {
        LlmKind::Openai => AdapterKind::OpenAI,
        LlmKind::OpenaiResponses => AdapterKind::OpenAIResp,
        LlmKind::Anthropic => AdapterKind::Anthropic,
        LlmKind::Gemini => AdapterKind::Gemini,
    }
}

fn chat_options(endpoint: &Endpoint, question: &Question, model: &str, patience: Patience) -> ChatOptions {
    // We gather chat calls ourselves: genai allocates as many as an endpoint says there are.
    let mut options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(endpoint.kind != LlmKind::Openai)
        .with_stream_header_timeout(patience.first)
        .with_stream_read_timeout(patience.silence);
    options.temperature = question.temperature;
    options.max_tokens = question.max_output.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
    let schema = question.schema.as_ref().filter(|_| endpoint.provides_schema);
    if matches!(endpoint.kind, LlmKind::Openai | LlmKind::OpenaiResponses) {
        // Otherwise the ending of a model's name would be taken for an effort, and taken off; a budget is not sent.
        options.reasoning_effort = Some(ReasoningEffort::Budget(0));
    }
    let mut body = serde_json::Map::new();
    if endpoint.kind != LlmKind::Gemini {
        body.insert("model".to_owned(), json!(model));
    }
    match (endpoint.kind, schema) {
        (_, None) => {}
        // Unchanged: it is in the strict form already.
        (LlmKind::Openai, Some(schema)) => {
            let format = json!({ "name": "answer", "strict": true, "schema": schema });
            body.insert("response_format".to_owned(), json!({ "type": "json_schema", "json_schema": format }));
        }
        (LlmKind::OpenaiResponses, Some(schema)) => {
            let format = json!({ "type": "json_schema", "name": "answer", "strict": true, "schema": schema });
            body.insert("text".to_owned(), json!({ "format": format }));
        }
        (LlmKind::Anthropic | LlmKind::Gemini, Some(schema)) => {
            options.response_format = Some(JsonSpec::new("answer", schema.clone()).into());
        }
    }
    options.extra_body = (!body.is_empty()).then_some(Value::Object(body));
    options
}

fn build_request(question: Question, prefill: Option<&str>, names: &Names) -> ChatRequest {
    let mut messages: Vec<ChatMessage> = Vec::with_capacity(question.messages.len() + 1);
    for message in question.messages {
        messages.push(match message {
            Message::User(text) => ChatMessage::user(text),
            Message::Assistant { text, calls } => {
                let text = (!text.is_empty()).then_some(ContentPart::Text(text));
                let calls = calls.into_iter().map(|call| {
                    ContentPart::ToolCall(ToolCall {
                        call_id: call.id,
                        fn_name: names.wire(&call.tool),
                        fn_arguments: call.arguments,
                        thought_signatures: None,
                    })
                });
                ChatMessage::assistant(MessageContent::from_parts(text.into_iter().chain(calls).collect::<Vec<_>>()))
            }
            Message::Results(results) => {
                let results = results.into_iter().map(|result| {
                    let text = if result.failed { format!("error: {}", result.text) } else { result.text };
                    let mut response = ToolResponse::new(result.id, text);
                    response.fn_name = Some(names.wire(&result.tool));
                    ContentPart::ToolResponse(response)
                });
                ChatMessage::tool(MessageContent::from_parts(results.collect::<Vec<_>>()))
            }
        });
    }
    messages.extend(prefill.map(ChatMessage::assistant));
    let mut request = ChatRequest::from_messages(messages);
    request.system = Some(question.system).filter(|system| !system.is_empty());
    if !question.tools.is_empty() {
        request = request.with_tools(question.tools.into_iter().map(|tool| {
            genai::chat::Tool::new(names.wire(&tool.name))
                .with_description(tool.description)
                .with_schema(tool.parameters)
        }));
    }
    request
}

/// An answer while it comes.
struct Answer<'a> {
    endpoint: &'a Endpoint,
    patience: Patience,
    frames: Arc<Frames>,
    heard: UnboundedSender<String>,
    reply: Reply,
    gathered: Gathered,
    echo: Echo<'a>,
}

impl Answer<'_> {
    /// Reads the stream to its end.
    async fn read_stream(&mut self, stream: ChatStream) -> Result<StreamEnd, Fault> {
        let mut stream = std::pin::pin!(stream);
        // Bytes alone are no answer: a server that sends some for ever, and never a whole event, is cut off as well.
        let patience = self.patience.first + self.patience.silence;
        loop {
            let mut pieces = Pieces::default();
            let event = std::future::poll_fn(|context| {
                if let Some(fault) = pieces.too_many(&self.frames) {
                    return Poll::Ready(Err(fault));
                }
                let started = Instant::now();
                let event = stream.as_mut().poll_next(context).map(Ok);
                pieces.took += started.elapsed();
                event
            });
            let event = tokio::time::timeout(patience, event).await;
            let event = event.map_err(|_| fault::nothing_whole(self.endpoint, patience))??;
            if self.frames.bytes.load(Ordering::Relaxed) > FRAMES_LIMIT {
                return Err(too_long());
            }
            match event {
                None => return Err(broken_off()),
                Some(Err(error)) => return Err(fault::of(error, self.endpoint, self.patience)),
                Some(Ok(ChatStreamEvent::Chunk(chunk))) => self.append_text(&chunk.content)?,
                Some(Ok(ChatStreamEvent::ToolCallChunk(chunk))) => self.gathered.add(chunk.tool_call)?,
                Some(Ok(ChatStreamEvent::End(end))) => return Ok(end),
                Some(Ok(_)) => {}
            }
        }
    }

    fn append_text(&mut self, text: &str) -> Result<(), Fault> {
        if self.reply.text.len() + text.len() > ANSWER_LIMIT {
            return Err(too_long());
        }
        let known = self.echo.redact_piece(text);
        self.emit_text(known);
        Ok(())
    }

    fn emit_text(&mut self, text: String) {
        self.reply.text.push_str(&text);
        // The task that asked may have gone; the end of this task is near then.
        let _ = self.heard.send(text);
    }

    fn finish(mut self, end: StreamEnd, names: &Names) -> Result<Reply, Fault> {
        match self.echo.take_held() {
            rest if rest.is_empty() => {}
            rest => self.emit_text(rest),
        }
        let Answer { endpoint, frames, mut reply, gathered, echo, .. } = self;
        reply.usage = end.captured_usage.as_ref().and_then(convert_usage);
        reply.cut = match &end.captured_stop_reason {
            Some(StopReason::MaxTokens(_)) => true,
            Some(StopReason::ContentFilter(reason)) => {
                return Err(Fault::permanent(format!("the model's service stopped the answer: {reason}")));
            }
            // These kinds say why an answer ends; genai makes up an end where the stream just stopped.
            None if matches!(endpoint.kind, LlmKind::OpenaiResponses | LlmKind::Gemini) => return Err(broken_off()),
            _ => false,
        };
        reply.calls = match endpoint.kind {
            LlmKind::Openai => gathered.into_calls(),
            _ => end.captured_into_tool_calls().unwrap_or_default().into_iter().map(convert_call).collect(),
        };
        for call in &mut reply.calls {
            call.tool = names.own(&call.tool);
            let written = call.arguments.to_string();
            if let Cow::Owned(harmless) = echo.redact_text(&written) {
                call.arguments = serde_json::from_str(&harmless).unwrap_or_default();
            }
        }
        reply.model = frames.model().map(|model| echo.redact_text(&model).into_owned());
        Ok(reply)
    }
}

fn convert_call(call: ToolCall) -> Call {
    Call { id: call.call_id, tool: call.fn_name, arguments: parse_arguments(call.fn_arguments) }
}

/// The tokens, where the endpoint counts them: genai's input holds the cached ones, as ours does.
fn convert_usage(usage: &genai::chat::Usage) -> Option<Usage> {
    let tokens = |tokens: Option<i32>| tokens.map_or(0, |tokens| u64::try_from(tokens).unwrap_or(0));
    if usage.prompt_tokens.is_none() && usage.completion_tokens.is_none() {
        return None;
    }
    let details = usage.prompt_tokens_details.as_ref();
    Some(Usage {
        input: tokens(usage.prompt_tokens),
        output: tokens(usage.completion_tokens),
        cache_read: tokens(details.and_then(|details| details.cached_tokens)),
        cache_write: tokens(details.and_then(|details| details.cache_creation_tokens)),
        cost: None,
        at_least: false,
    })
}

fn too_long() -> Fault {
    Fault::permanent(format!("the answer is longer than {} MiB", ANSWER_LIMIT >> 20))
}

fn broken_off() -> Fault {
    Fault { transient: true, ..Fault::permanent("the connection closed before the answer was complete") }
}

/// What was read without an event.
#[derive(Default)]
struct Pieces {
    /// How often something came, since the last frame.
    count: usize,
    /// How long that was looked at.
    took: Duration,
    /// How many frames there were then.
    frames: usize,
    /// Since when a refusal is being read.
    refused: Option<Instant>,
}

impl Pieces {
    /// Counts one more, and says why it is one too many.
    fn too_many(&mut self, frames: &Frames) -> Option<Fault> {
        let seen = frames.count.load(Ordering::Relaxed);
        if std::mem::replace(&mut self.frames, seen) != seen {
            (self.count, self.took) = (0, Duration::ZERO);
        }
        self.count += 1;
        let status = StatusCode::from_u16(STATUS.with(Cell::get)).ok().filter(|status| !status.is_success());
        let Some(status) = status else { return (self.count > PIECES || self.took > PUTTING_TOGETHER).then(too_long) };
        let refused = *self.refused.get_or_insert_with(|| {
            self.count = 0;
            Instant::now()
        });
        let is_over = self.count > REFUSAL_PIECES || refused.elapsed() > REFUSAL;
        is_over.then(|| fault::refused(status, "", &HeaderMap::new()))
    }
}

/// Sees every frame of a stream before it is read.
#[derive(Default)]
struct Frames {
    count: AtomicUsize,
    bytes: AtomicUsize,
    model: Mutex<Option<String>>,
}

impl Frames {
    fn model(&self) -> Option<String> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ChatFrameSink for Frames {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(frame.data.len(), Ordering::Relaxed);
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        if model.is_none() && frame.data.len() <= NAMING_FRAME {
            *model = parse_model(frame.data);
        }
    }
}

/// The model that a frame names: at the top, or in the message or response that it begins.
fn parse_model(frame: &str) -> Option<String> {
    let fields: BTreeMap<String, Value> = serde_json::from_str(frame).ok()?;
    let within = ["message", "response"].into_iter().filter_map(|key| fields.get(key)?.get("model"));
    let mut found = ["model", "modelVersion"].into_iter().filter_map(|key| fields.get(key)).chain(within);
    let model = found.find_map(Value::as_str)?;
    Some(model.chars().filter(|character| !character.is_control()).take(200).collect())
}
