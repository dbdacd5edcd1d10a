//! `swarmc.Run/RUN` and `swarmc.Runs/all`.

use std::sync::Arc;

use restate_sdk::prelude::*;
use swarmc_runtime::engine::Submission;

use crate::host::Host;

/// A run: it has the driver of this process carry it on. Where this process ends, Restate calls another one, whose driver
/// goes on from the records.
pub(crate) struct RunWorkflow {
    /// What has the drivers of this process.
    pub(crate) host: Arc<Host>,
}

#[workflow(
    name = "swarmc.Run",
    journal_retention = "1 day",
    inactivity_timeout = "5m",
    abort_timeout = "5m",
    invocation_retry_policy(initial_interval = "50ms", factor = 2.0, max_interval = "1s", max_attempts = 1000000)
)]
impl RunWorkflow {
    /// Carries it on until it has ended or was stopped: how it ended, in words.
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, submission: Json<Submission>) -> HandlerResult<String> {
        let (run, submission) = (ctx.key().to_owned(), submission.into_inner());
        loop {
            // Each look is an entry of its journal: that shows Restate that the handler goes on.
            let look = || async {
                let host = Arc::clone(&self.host);
                Ok(Json(host.attend(&run, &submission).await))
            };
            let Json(ended) = ctx.run(look).name("driver").await?;
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }
}

/// The ids of all runs.
pub(crate) struct RunsObject;

const RUNS: &str = "runs";

/// The runs that are listed at most: the newest.
const MOST: usize = 10_000;

#[object(
    name = "swarmc.Runs",
    journal_retention = "0s",
    invocation_retry_policy(initial_interval = "50ms", factor = 2.0, max_interval = "1s", max_attempts = 1000000)
)]
impl RunsObject {
    /// One more.
    #[handler]
    async fn add(&self, ctx: ObjectContext<'_>, run: String) -> HandlerResult<()> {
        let mut runs = ctx.get::<Json<Vec<String>>>(RUNS).await?.map(Json::into_inner).unwrap_or_default();
        if !runs.contains(&run) {
            runs.push(run);
            runs.drain(..runs.len().saturating_sub(MOST));
            ctx.set(RUNS, Json(runs));
        }
        Ok(())
    }

    /// All of them, the newest last.
    #[handler]
    async fn list(&self, ctx: SharedObjectContext<'_>, _: Json<()>) -> HandlerResult<Json<Vec<String>>> {
        Ok(Json(ctx.get::<Json<Vec<String>>>(RUNS).await?.map(Json::into_inner).unwrap_or_default()))
    }
}
