//! `swarmc.Inbox/RUN`.

use std::collections::BTreeMap;

use restate_sdk::prelude::*;
use swarmc_runtime::engine::{Forget, Item, QueuedStart, Report, Says, Start, Started, Take};

use super::fenced;
use super::queue::QueueObjectClient;
use crate::inbox::Inbox;

/// The key of the inbox without its items.
const INBOX: &str = "inbox";

/// What the driver of a run still has to take.
pub(crate) struct InboxObject;

#[object(
    name = "swarmc.Inbox",
    lazy_state = true,
    journal_retention = "0s",
    invocation_retry_policy(initial_interval = "50ms", factor = 2.0, max_interval = "1s", max_attempts = 1000000)
)]
impl InboxObject {
    /// Offers processes to their pools: the number of each start.
    #[handler]
    async fn start(&self, ctx: ObjectContext<'_>, start: Json<Start>) -> HandlerResult<Json<Vec<u64>>> {
        let Start { driver, processes } = start.into_inner();
        let mut inbox = admit(&ctx, driver).await?;
        let (mut numbers, mut offers) = (Vec::new(), BTreeMap::<String, Vec<QueuedStart>>::new());
        for new in processes {
            let (of, former) = inbox.start(&new.process, &new.pool, new.talks);
            former.into_iter().for_each(|item| ctx.clear(&item_key(item)));
            numbers.push(of.start);
            offers.entry(new.pool).or_default().push(QueuedStart { of, order: new.order });
        }
        store(&ctx, inbox);
        for (pool, offers) in offers {
            ctx.object_client::<QueueObjectClient>(pool).offer(Json(offers)).send();
        }
        Ok(Json(numbers))
    }

    /// All processes that a driver has had started and not forgotten.
    #[handler]
    async fn list(&self, ctx: ObjectContext<'_>, driver: Json<u64>) -> HandlerResult<Json<Vec<(Started, bool)>>> {
        let inbox = admit(&ctx, driver.into_inner()).await?;
        let processes = inbox.list();
        store(&ctx, inbox);
        Ok(Json(processes))
    }

    /// Passes lines on to shims.
    #[handler]
    async fn say(&self, ctx: ObjectContext<'_>, says: Json<Says>) -> HandlerResult<()> {
        let Says { driver, says } = says.into_inner();
        let inbox = admit(&ctx, driver).await?;
        let mut pools = BTreeMap::<String, Vec<_>>::new();
        for say in says {
            if let Some(pool) = inbox.pool(&say.of) {
                pools.entry(pool.to_owned()).or_default().push(say);
            }
        }
        store(&ctx, inbox);
        for (pool, says) in pools {
            ctx.object_client::<QueueObjectClient>(pool).say(Json(says)).send();
        }
        Ok(())
    }

    /// Takes reports of workers: the starts that count no more.
    #[handler]
    async fn push(&self, ctx: ObjectContext<'_>, reports: Json<Vec<Report>>) -> HandlerResult<Json<Vec<Started>>> {
        let mut inbox = load(&ctx).await?;
        let (mut refused, mut items) = (Vec::new(), Vec::new());
        for report in reports.into_inner() {
            match inbox.report(&report) {
                Ok(Some(number)) => items.push((number, Item::Report(report))),
                Ok(None) => {}
                Err(_) if refused.contains(&report.of) => {}
                Err(_) => refused.push(report.of),
            }
        }
        hand_over(&ctx, &mut inbox, items);
        store(&ctx, inbox);
        Ok(Json(refused))
    }

    /// Takes what a person or a process wants.
    #[handler]
    async fn add(&self, ctx: ObjectContext<'_>, item: Json<Item>) -> HandlerResult<()> {
        let mut inbox = load(&ctx).await?;
        let number = inbox.add();
        hand_over(&ctx, &mut inbox, vec![(number, item.into_inner())]);
        store(&ctx, inbox);
        Ok(())
    }

    /// What the driver has to take; where there is nothing, it waits at the second.
    #[handler]
    async fn take(&self, ctx: ObjectContext<'_>, take: Json<(Take, String)>) -> HandlerResult<Json<Vec<(u64, Item)>>> {
        let (take, answer) = take.into_inner();
        let mut inbox = admit(&ctx, take.driver).await?;
        let mut items = Vec::new();
        let mut bytes = 0;
        for number in inbox.take(take.after, answer) {
            // It comes back for the rest.
            if bytes > LONGEST_ANSWER {
                break;
            }
            if let Some(Json(item)) = ctx.get::<Json<Item>>(&item_key(number)).await? {
                bytes += serde_json::to_string(&item).map_or(0, |text| text.len());
                items.push((number, item));
            }
        }
        store(&ctx, inbox);
        Ok(Json(items))
    }

    /// Forgets what the driver needs no more.
    #[handler]
    async fn forget(&self, ctx: ObjectContext<'_>, forget: Json<Forget>) -> HandlerResult<()> {
        let mut inbox = load(&ctx).await?;
        let (items, pools) = inbox.forget(&forget.into_inner());
        items.into_iter().for_each(|item| ctx.clear(&item_key(item)));
        store(&ctx, inbox);
        for (pool, processes) in pools {
            ctx.object_client::<QueueObjectClient>(pool).cancel(Json(processes)).send();
        }
        Ok(())
    }
}

/// The bytes of items that a driver is given at once, about.
const LONGEST_ANSWER: usize = 4 << 20;

fn item_key(number: u64) -> String {
    format!("item:{number}")
}

async fn load(ctx: &ObjectContext<'_>) -> Result<Inbox, TerminalError> {
    Ok(ctx.get::<Json<Inbox>>(INBOX).await?.map(Json::into_inner).unwrap_or_default())
}

fn store(ctx: &ObjectContext<'_>, inbox: Inbox) {
    ctx.set(INBOX, Json(inbox));
}

async fn admit(ctx: &ObjectContext<'_>, driver: u64) -> HandlerResult<Inbox> {
    let mut inbox = load(ctx).await?;
    inbox.admit(driver).map_err(|_| fenced())?;
    Ok(inbox)
}

/// Keeps items, and gives them to the driver that waits.
fn hand_over(ctx: &ObjectContext<'_>, inbox: &mut Inbox, items: Vec<(u64, Item)>) {
    if items.is_empty() {
        return;
    }
    for (number, item) in &items {
        ctx.set(&item_key(*number), Json(item.clone()));
    }
    if let Some(answer) = inbox.take_answer() {
        ctx.resolve_awakeable(&answer, Json(items));
    }
}
