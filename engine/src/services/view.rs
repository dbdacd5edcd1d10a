//! `swarmc.View/RUN`: records and files of a run, in pages. The records are the run: a driver that begins reads them.

use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use swarmc_runtime::engine::{Append, KeptFile, Page, Read};

use super::fenced;

const META: &str = "meta";

/// The records of one page, and the files: the last page is written again with each call that adds to it.
const RECORDS: u64 = 32;
const FILES: u64 = 8;

/// The pages that are read at once.
const PAGES: u64 = 32;

/// How much there is of a run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Meta {
    driver: u64,
    records: u64,
    files: u64,
    is_over: bool,
}

/// Records and files of a run.
pub(crate) struct ViewObject;

#[object(
    name = "swarmc.View",
    lazy_state = true,
    journal_retention = "0s",
    invocation_retry_policy(initial_interval = "50ms", factor = 2.0, max_interval = "1s", max_attempts = 1000000)
)]
impl ViewObject {
    /// A new driver: its number. From now on no former one writes.
    #[handler]
    async fn begin(&self, ctx: ObjectContext<'_>, _: Json<()>) -> HandlerResult<Json<u64>> {
        let mut meta = load(&ctx).await?;
        meta.driver += 1;
        meta.is_over = false;
        ctx.set(META, Json(meta));
        Ok(Json(meta.driver))
    }

    /// Keeps records and files. What is there already comes from the same call, made again.
    #[handler]
    async fn append(&self, ctx: ObjectContext<'_>, append: Json<Append>) -> HandlerResult<()> {
        let append = append.into_inner();
        let mut meta = load(&ctx).await?;
        if append.driver != meta.driver {
            return Err(fenced());
        }
        if append.from > meta.records + 1 {
            let message = format!("record {} is missing before {}", meta.records + 1, append.from);
            return Err(TerminalError::new_with_code(422, message).into());
        }
        let known = usize::try_from(meta.records + 1 - append.from).unwrap_or(usize::MAX);
        let lines: Vec<String> = append.lines.into_iter().skip(known).collect();
        meta.records = add(&ctx, "records", RECORDS, meta.records, lines).await?;
        meta.files = add(&ctx, "files", FILES, meta.files, append.files).await?;
        meta.is_over |= append.is_over;
        ctx.set(META, Json(meta));
        Ok(())
    }

    /// A part of the run.
    #[handler]
    async fn read(&self, ctx: SharedObjectContext<'_>, read: Json<Read>) -> HandlerResult<Json<Page>> {
        let read = read.into_inner();
        let meta = ctx.get::<Json<Meta>>(META).await?.map(Json::into_inner).unwrap_or_default();
        let lines = part(&ctx, "records", RECORDS, read.after, meta.records).await?;
        let files: Vec<KeptFile> = part(&ctx, "files", FILES, read.files_after, meta.files).await?;
        Ok(Json(Page { lines, files, records: meta.records, all_files: meta.files, is_over: meta.is_over }))
    }
}

async fn load(ctx: &ObjectContext<'_>) -> Result<Meta, TerminalError> {
    Ok(ctx.get::<Json<Meta>>(META).await?.map(Json::into_inner).unwrap_or_default())
}

fn page_key(name: &str, page: u64) -> String {
    format!("{name}:{page}")
}

/// Adds items to the pages of a list that has `count`: how many it has then.
async fn add<T>(ctx: &ObjectContext<'_>, name: &str, size: u64, mut count: u64, items: Vec<T>) -> HandlerResult<u64>
where
    T: Serialize + for<'de> Deserialize<'de> + 'static,
{
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        let key = page_key(name, count / size);
        let mut page = match count % size {
            0 => Vec::new(),
            _ => ctx.get::<Json<Vec<T>>>(&key).await?.map(Json::into_inner).unwrap_or_default(),
        };
        let room = usize::try_from(size - count % size).unwrap_or(usize::MAX);
        let before = page.len();
        page.extend(items.by_ref().take(room));
        count += (page.len() - before) as u64;
        ctx.set(&key, Json(page));
    }
    Ok(count)
}

/// The items of a list that has `count`, behind `after`, as far as a few pages have them.
async fn part<T>(ctx: &SharedObjectContext<'_>, name: &str, size: u64, after: u64, count: u64) -> HandlerResult<Vec<T>>
where
    T: for<'de> Deserialize<'de> + 'static,
{
    let mut items = Vec::new();
    let first = after / size;
    for page in first..(first + PAGES).min(count.div_ceil(size)) {
        let found = ctx.get::<Json<Vec<T>>>(&page_key(name, page)).await?.map(Json::into_inner).unwrap_or_default();
        let skipped = if page == first { usize::try_from(after % size).unwrap_or(usize::MAX) } else { 0 };
        items.extend(found.into_iter().skip(skipped));
    }
    Ok(items)
}
