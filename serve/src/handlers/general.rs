//! The server itself: its health, its description, its counts, and streams of events.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use swarmc_runtime::{Event, single_header};
use swarmc_view::documents::Version;

use super::reply;
use crate::Service;
use crate::documents::Health;
use crate::openapi::build_description;
use crate::problem::Problem;
use crate::routes::{Call, Reply};
use crate::store::find_folder;
use crate::stream::{EventId, Subscription};

pub(crate) fn get_health(service: &Service, _: &Call) -> Result<Reply, Problem> {
    let runs = service.home.list_folders().map_or(0, |folders| folders.len());
    let streams = service.streams.load(Ordering::Acquire);
    reply(&Health { version: Version, read_only: service.read_only, runs, streams })
}

pub(crate) fn get_description(service: &Service, _: &Call) -> Result<Reply, Problem> {
    reply(&build_description(service.read_only))
}

pub(crate) fn get_metrics(service: &Service, _: &Call) -> Result<Reply, Problem> {
    let folders = service.home.list_folders().map_err(|error| Problem::internal(error.to_string()))?;
    let running = folders.iter().filter(|folder| folder.is_running()).count();
    let mut text = String::new();
    for (name, about, number) in [
        ("swarmc_runs", "Runs of the home.", folders.len()),
        ("swarmc_runs_running", "Runs that a process runs.", running),
        ("swarmc_runs_queued", "Runs that wait to begin.", service.queue.list().len()),
        ("swarmc_streams", "Open event streams.", service.streams.load(Ordering::Acquire)),
    ] {
        let _ = writeln!(text, "# HELP {name} {about}\n# TYPE {name} gauge\n{name} {number}");
    }
    Ok(Reply::Text(text))
}

pub(crate) fn follow_run(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let folder = find_folder(&service.home, call.part(0))?;
    let header = single_header(&call.headers, &hyper::header::HeaderName::from_static("last-event-id"));
    let from = match header.or_else(|| call.query("from")) {
        None => None,
        Some(text) => {
            let wrong = || Problem::bad_request(format!("`Last-Event-ID` is {}", EventId::FORM));
            Some(text.parse::<EventId>().map_err(|()| wrong())?)
        }
    };
    // A client that has the end of a run that is over must not come back for ever.
    if let Some(from) = from.filter(|_| !folder.is_running()) {
        let is_at_end = service.store.with_run(&service.home, call.part(0), |run| {
            let ended = run.past.records.iter().rev().find(|record| {
                matches!(record.event, Event::RunFinished { .. } | Event::RunReopened { .. } | Event::RunResumed)
            });
            let is_over = ended.is_some_and(|record| matches!(record.event, Event::RunFinished { .. }));
            Ok(is_over && run.last_line() == Some((from.seq, from.sum)))
        });
        if is_at_end.unwrap_or(false) {
            return Ok(Reply::Nothing);
        }
    }
    Ok(Reply::Events(Subscription::Run(folder, from)))
}

pub(crate) fn follow_runs(_: &Service, _: &Call) -> Result<Reply, Problem> {
    Ok(Reply::Events(Subscription::Runs))
}
