//! Models behind HTTP: one question, one request, one reply.
//!
//! In: a [`Question`] for a provider of the plan. Out: a [`Reply`], its text told while it comes, or a [`Fault`] that
//! says whether asking again makes sense. Invariants: nothing is retried in here, every request ends within its time
//! limits, no answer outgrows [`crate::ANSWER_LIMIT`], and a key leaves only in a header to its own host.

use crate::types::chat::{Fault, Message, Question, Reply, Tool};
mod adapter;
mod calls;
mod echo;
mod endpoint;
mod fault;
mod limits;
mod names;
mod reader;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use swarmc_plan::{Plan, Price};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::endpoint::Endpoint;
pub(crate) use self::endpoint::build_client;
use self::limits::Limits;
use self::reader::Reader;
use crate::types::usage::compute_cost;

/// How long a service may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Patience {
    /// From the request to the beginning of the answer.
    pub first: Duration,
    /// Between two pieces of the answer.
    pub silence: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { first: Duration::from_secs(120), silence: Duration::from_secs(60) }
    }
}

/// The models of a run, by the names of their providers.
#[derive(Debug)]
pub(crate) struct Models {
    models: BTreeMap<String, Model>,
    patience: Patience,
    reader: Reader,
}

#[derive(Debug)]
struct Model {
    /// Or why it cannot be asked.
    endpoint: Result<Arc<Endpoint>, String>,
    limits: Limits,
    price: Option<Price>,
}

impl Models {
    /// The models of `plan`, whose keys are in `environment`.
    pub(crate) fn new(plan: &Plan, environment: &BTreeMap<OsString, OsString>) -> Models {
        let models = plan.providers.iter().filter(|provider| provider.connection.kind().is_model());
        let models = models.map(|provider| {
            let rate = provider.rate.unwrap_or_default();
            let endpoint = Endpoint::new(provider, environment).map(Arc::new);
            let limits = Limits::new(rate.requests, rate.tokens);
            (provider.name.clone(), Model { endpoint, limits, price: provider.price })
        });
        Models { models: models.collect(), patience: Patience::default(), reader: Reader::default() }
    }

    /// No models: nothing is asked.
    pub(crate) fn none() -> Models {
        Models { models: BTreeMap::new(), patience: Patience::default(), reader: Reader::default() }
    }

    /// The same, with other limits of time.
    #[cfg(test)]
    pub(crate) fn with_patience(self, patience: Patience) -> Models {
        Models { patience, ..self }
    }

    /// Asks the model of `provider` once, when its limits allow; `heard` gets the text as it comes. Dropping the future
    /// ends the request.
    ///
    /// # Errors
    /// There is no reply: why, and whether asking again may help.
    pub(crate) async fn ask(
        &self,
        provider: &str,
        question: &Question,
        heard: &(dyn Fn(&str) + Sync),
    ) -> Result<Reply, Fault> {
        let (model, endpoint) = self.model(provider)?;
        let estimated = question.tokens();
        model.limits.enter(estimated).await;
        self.begin(model, endpoint, question, estimated, heard).await
    }

    /// The same, for at most `longest` from when its limits allow it: who waits for others is not late.
    ///
    /// # Errors
    /// There is no reply, or not in time.
    pub(crate) async fn ask_within(
        &self,
        longest: Duration,
        provider: &str,
        question: &Question,
    ) -> Result<Reply, Fault> {
        let (model, endpoint) = self.model(provider)?;
        let estimated = question.tokens();
        model.limits.enter(estimated).await;
        let asked = self.begin(model, endpoint, question, estimated, &|_| ());
        tokio::time::timeout(longest, asked).await.unwrap_or_else(|_| Err(Fault::late(longest)))
    }

    fn model(&self, provider: &str) -> Result<(&Model, Arc<Endpoint>), Fault> {
        let model = self.models.get(provider);
        let model = model.ok_or_else(|| Fault::permanent(format!("provider `{provider}` is no model")))?;
        let endpoint = model.endpoint.as_ref().map_err(|problem| Fault::permanent(problem.clone()))?.clone();
        Ok((model, endpoint))
    }

    /// Asks, now that the limits allow it.
    async fn begin(
        &self,
        model: &Model,
        endpoint: Arc<Endpoint>,
        question: &Question,
        estimated: u64,
        heard: &(dyn Fn(&str) + Sync),
    ) -> Result<Reply, Fault> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let (question, patience) = (question.clone(), self.patience);
        // On its own: the task that reads an untrusted stream neither holds up the caller that waits for it, nor ends
        // it.
        let asked = async move { adapter::send_question(&endpoint, question, patience, sender).await };
        let mut task = Ended(self.reader.spawn(asked).map_err(Fault::permanent)?);
        while let Some(text) = receiver.recv().await {
            heard(&text);
        }
        let reply = (&mut task.0).await;
        let mut reply =
            reply.unwrap_or_else(|_| Err(Fault::permanent("the answer of the model's service could not be read")));
        let used = match &reply {
            Ok(reply) => reply.usage.map_or(estimated, |usage| usage.input.saturating_add(usage.output)),
            Err(_) => 0,
        };
        model.limits.correct(estimated, used);
        if let Ok(Reply { usage: Some(usage), .. }) = &mut reply {
            // Services count tokens; what they cost is for the spec to say.
            usage.cost = compute_cost(usage, model.price).map(|millionths| millionths as f64 / 1e6);
        }
        reply
    }
}

/// A task that ends when its caller no longer waits for it.
struct Ended<T>(JoinHandle<T>);

impl<T> Drop for Ended<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The tokens that an answer is expected to have where nothing bounds it.
const EXPECTED: u64 = 1_000;

impl Question {
    /// About how many tokens it takes, its answer included: four bytes make one.
    fn tokens(&self) -> u64 {
        let of_message = |message: &Message| match message {
            Message::User(text) => text.len(),
            Message::Assistant { text, calls } => {
                text.len() + calls.iter().map(|call| call.tool.len() + length(&call.arguments)).sum::<usize>()
            }
            Message::Results(results) => results.iter().map(|result| result.text.len()).sum(),
        };
        let of_tool = |tool: &Tool| tool.name.len() + tool.description.len() + length(&tool.parameters);
        let bytes = self.system.len()
            + self.messages.iter().map(of_message).sum::<usize>()
            + self.tools.iter().map(of_tool).sum::<usize>()
            + self.schema.as_ref().map_or(0, length);
        bytes as u64 / 4 + self.max_output.unwrap_or(EXPECTED).min(EXPECTED)
    }
}

/// About how many bytes a value has as text: its words, and a few for what surrounds each.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 3,
        Value::Array(items) => items.iter().map(length).sum::<usize>() + 2,
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + 4 + length(value)).sum::<usize>() + 2,
        _ => 5,
    }
}
