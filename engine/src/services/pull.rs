//! `swarmc.Pull`: what waits, for work, for items, or for an answer.

use restate_sdk::prelude::*;
use serde_json::Value;
use swarmc_runtime::engine::{Ask, Delivery, HttpRequest, HttpResponse, Item, Started, Submission, Take, UserOrder};

use super::Times;
use super::inbox::InboxObjectClient;
use super::queue::QueueObjectClient;
use super::run::{RunWorkflowClient, RunsObjectClient};

/// How long a process or a person waits for the driver.
const ANSWER: std::time::Duration = std::time::Duration::from_secs(50);

/// Long polls, and what waits for an answer.
pub(crate) struct PullService {
    /// The address of the object store.
    pub(crate) store: String,
    /// How long a question waits.
    pub(crate) times: Times,
}

#[service(
    name = "swarmc.Pull",
    journal_retention = "0s",
    idempotency_retention = "5m",
    invocation_retry_policy(initial_interval = "50ms", factor = 2.0, max_interval = "1s", max_attempts = 1000000)
)]
impl PullService {
    /// A worker asks for work.
    #[handler]
    async fn deliveries(&self, ctx: Context<'_>, ask: Json<Ask>) -> HandlerResult<Json<Vec<Delivery>>> {
        let ask = ask.into_inner();
        let (answer, answered) = ctx.awakeable::<Json<Vec<Delivery>>>();
        let queue = ctx.object_client::<QueueObjectClient>(&ask.pool);
        let now = queue.ask(Json((ask, answer))).call().await?.into_inner();
        if !now.is_empty() {
            return Ok(Json(now));
        }
        restate_sdk::select! {
            deliveries = answered => { Ok(deliveries?) },
            _ = ctx.sleep(self.times.poll()) => { Ok(Json(Vec::new())) }
        }
    }

    /// A driver takes items.
    #[handler]
    async fn items(&self, ctx: Context<'_>, take: Json<Take>) -> HandlerResult<Json<Vec<(u64, Item)>>> {
        let take = take.into_inner();
        let at_once = take.at_once;
        let (answer, answered) = ctx.awakeable::<Json<Vec<(u64, Item)>>>();
        let inbox = ctx.object_client::<InboxObjectClient>(&take.run);
        let now = inbox.take(Json((take, answer))).call().await?.into_inner();
        if !now.is_empty() || at_once {
            return Ok(Json(now));
        }
        restate_sdk::select! {
            items = answered => { Ok(items?) },
            _ = ctx.sleep(self.times.poll()) => { Ok(Json(Vec::new())) }
        }
    }

    /// A process calls its run.
    #[handler]
    async fn request(&self, ctx: Context<'_>, call: Json<(Started, HttpRequest)>) -> HandlerResult<Json<HttpResponse>> {
        let (of, request) = call.into_inner();
        let (reply, answered) = ctx.awakeable::<Json<HttpResponse>>();
        let run = of.run().to_owned();
        ctx.object_client::<InboxObjectClient>(run).add(Json(Item::Call { of, request, reply })).send();
        restate_sdk::select! {
            response = answered => { Ok(response?) },
            _ = ctx.sleep(ANSWER) => { Err(no_driver()) }
        }
    }

    /// A person wants something of a run.
    #[handler]
    async fn order(
        &self,
        ctx: Context<'_>,
        order: Json<(String, UserOrder)>,
    ) -> HandlerResult<Json<Result<String, String>>> {
        let (run, order) = order.into_inner();
        let (reply, answered) = ctx.awakeable::<Json<Result<String, String>>>();
        ctx.object_client::<InboxObjectClient>(run).add(Json(Item::User { order, reply })).send();
        restate_sdk::select! {
            answer = answered => { Ok(answer?) },
            _ = ctx.sleep(ANSWER) => { Err(no_driver()) }
        }
    }

    /// The driver answers.
    #[handler]
    async fn answer(&self, ctx: Context<'_>, answer: Json<(String, Value)>) -> HandlerResult<()> {
        let (reply, answer) = answer.into_inner();
        ctx.resolve_awakeable(&reply, Json(answer));
        Ok(())
    }

    /// Has a run carried out.
    #[handler]
    async fn submit(&self, ctx: Context<'_>, submission: Json<(String, Submission)>) -> HandlerResult<()> {
        let (run, submission) = submission.into_inner();
        ctx.object_client::<RunsObjectClient>("all").add(run.clone()).call().await?;
        ctx.workflow_client::<RunWorkflowClient>(run).run(Json(submission)).send();
        Ok(())
    }

    /// The address of the object store.
    #[handler]
    async fn store(&self, _: Context<'_>, _: Json<()>) -> HandlerResult<Json<String>> {
        Ok(Json(self.store.clone()))
    }
}

fn no_driver() -> HandlerError {
    TerminalError::new_with_code(504, "no driver of this run answers: it has ended, or none is there now").into()
}
