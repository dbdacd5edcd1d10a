//! A language-model endpoint that says what a test tells it to.
//!
//! Real agent CLIs and model clients are pointed at [`Endpoint::url`] and cannot tell it from a
//! model: it speaks OpenAI chat completions (`/v1/chat/completions`), OpenAI responses
//! (`/v1/responses`), Anthropic messages (`/v1/messages`), streamed or whole, and Gemini's stream
//! (`/v1beta/models/MODEL:streamGenerateContent`), with tool calls and usage. A [`Script`] decides each answer, failures and silences included; every request is
//! kept for the test to look at. It listens on 127.0.0.1 only and ends when it is dropped.

mod answer;
mod chat;
mod gemini;
mod messages;
mod request;
mod responses;
mod script;
mod server;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Call, Usage};
pub use request::{Protocol, Request};
pub use script::Script;
pub use server::Endpoint;
