//! `swarmc.Queue/POOL`.

use restate_sdk::prelude::*;
use swarmc_runtime::engine::{Ask, Bytes, Delivery, QueuedStart, Report, ReportEvent, Say, Started};

use super::Times;
use super::inbox::InboxObjectClient;
use crate::queue::{Answer, Gift, LOOKS, Queue};

/// The key of the queue without its orders.
const QUEUE: &str = "queue";

/// The processes of a pool that wait, and the workers that have some.
pub(crate) struct QueueObject {
    /// How long a worker may be silent.
    pub(crate) times: Times,
}

#[object(
    name = "swarmc.Queue",
    lazy_state = true,
    journal_retention = "0s",
    invocation_retry_policy(initial_interval = "50ms", factor = 2.0, max_interval = "1s", max_attempts = 1000000)
)]
impl QueueObject {
    /// Takes offers.
    #[handler]
    async fn offer(&self, ctx: ObjectContext<'_>, offers: Json<Vec<QueuedStart>>) -> HandlerResult<()> {
        let mut queue = load(&ctx).await?;
        let mut starts = Vec::new();
        for offer in offers.into_inner() {
            ctx.set(&order_key(&offer.of), Json(offer.order));
            starts.push(offer.of);
        }
        let answers = queue.offer(starts);
        store(&ctx, queue);
        deliver(&ctx, answers).await
    }

    /// Passes lines on to workers.
    #[handler]
    async fn say(&self, ctx: ObjectContext<'_>, says: Json<Vec<Say>>) -> HandlerResult<()> {
        let mut queue = load(&ctx).await?;
        let answers = queue.say(says.into_inner());
        store(&ctx, queue);
        deliver(&ctx, answers).await
    }

    /// Forgets these processes; their workers end them.
    #[handler]
    async fn cancel(&self, ctx: ObjectContext<'_>, processes: Json<Vec<String>>) -> HandlerResult<()> {
        let mut queue = load(&ctx).await?;
        let (over, answers) = queue.cancel(&processes.into_inner());
        store(&ctx, queue);
        over.iter().for_each(|of| ctx.clear(&order_key(of)));
        deliver(&ctx, answers).await
    }

    /// A worker asks: what it is given at once, or nothing, and then it waits at `answer`.
    #[handler]
    async fn ask(&self, ctx: ObjectContext<'_>, question: Json<(Ask, String)>) -> HandlerResult<Json<Vec<Delivery>>> {
        let (ask, answer) = question.into_inner();
        let mut queue = load(&ctx).await?;
        let asked = queue.ask(&ask, answer);
        store(&ctx, queue);
        asked.over.iter().for_each(|of| ctx.clear(&order_key(of)));
        if let Some(former) = asked.former {
            // It waits for nothing any more: its connection is gone, or a later question has its place.
            ctx.resolve_awakeable(&former, Json(Vec::<Delivery>::new()));
        }
        if let Some(number) = asked.number {
            self.look_later(&ctx, (ask.worker.clone(), number, 0));
        }
        for (of, why) in asked.refused {
            let fact = ReportEvent::Refused { worker: ask.worker.clone(), why };
            tell_inbox(&ctx, of, fact);
        }
        let deliveries = fill(&ctx, asked.deliveries).await?;
        deliver(&ctx, asked.others).await?;
        Ok(Json(deliveries))
    }

    /// The worker may have asked since.
    #[handler]
    async fn expire(&self, ctx: ObjectContext<'_>, question: Json<(String, u64, u32)>) -> HandlerResult<()> {
        let (worker, number, silent) = question.into_inner();
        let mut queue = load(&ctx).await?;
        match queue.expire(&worker, number, silent) {
            Ok(lost) => {
                store(&ctx, queue);
                for of in lost {
                    ctx.clear(&order_key(&of));
                    tell_inbox(&ctx, of, ReportEvent::Lost);
                }
            }
            Err((number, silent)) => {
                store(&ctx, queue);
                self.look_later(&ctx, (worker, number, silent));
            }
        }
        Ok(())
    }

    fn look_later(&self, ctx: &ObjectContext<'_>, question: (String, u64, u32)) {
        let queue = ctx.object_client::<QueueObjectClient>(ctx.key());
        queue.expire(Json(question)).send_after(self.times.lease / LOOKS);
    }
}

const ORDER: &str = "order:";

fn order_key(of: &Started) -> String {
    format!("{ORDER}{}#{}", of.process, of.start)
}

async fn load(ctx: &ObjectContext<'_>) -> Result<Queue, TerminalError> {
    Ok(ctx.get::<Json<Queue>>(QUEUE).await?.map(Json::into_inner).unwrap_or_default())
}

fn store(ctx: &ObjectContext<'_>, queue: Queue) {
    ctx.set(QUEUE, Json(queue));
}

fn tell_inbox(ctx: &ObjectContext<'_>, of: Started, fact: ReportEvent) {
    let run = of.run().to_owned();
    let report = Report { of, number: 0, fact };
    ctx.object_client::<InboxObjectClient>(run).push(Json(vec![report])).send();
}

async fn fill(ctx: &ObjectContext<'_>, gifts: Vec<Gift>) -> HandlerResult<Vec<Delivery>> {
    let mut deliveries = Vec::new();
    for gift in gifts {
        let order = async |of: &Started| -> Result<Option<Bytes>, TerminalError> {
            Ok(ctx.get::<Json<Bytes>>(&order_key(of)).await?.map(Json::into_inner))
        };
        deliveries.extend(gift.fill(order).await?);
    }
    Ok(deliveries)
}

async fn deliver(ctx: &ObjectContext<'_>, answers: Vec<Answer>) -> HandlerResult<()> {
    for answer in answers {
        let deliveries = fill(ctx, answer.deliveries).await?;
        ctx.resolve_awakeable(&answer.to, Json(deliveries));
    }
    Ok(())
}
