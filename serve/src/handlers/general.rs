//! The server itself: its health, its description, its counts, and streams of events.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use swarmc_runtime::{Event, RunFolder, single_header};
use swarmc_view::documents::Version;

use super::reply;
use crate::Service;
use crate::documents::Health;
use crate::openapi::build_description;
use crate::problem::Problem;
use crate::routes::{Call, Reply};
use crate::store::find_folder;
use crate::stream::{EventId, Positions, RUNS, Subscription};

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
    let from = match last_event_id(call) {
        None => None,
        Some(text) => {
            let wrong = || Problem::bad_request(format!("`Last-Event-ID` is {}", EventId::FORM));
            Some(text.parse::<EventId>().map_err(|()| wrong())?)
        }
    };
    // A client that has the end of a run that is over must not come back for ever.
    if is_at_end(service, &folder, from) {
        return Ok(Reply::Nothing);
    }
    Ok(Reply::Events(Subscription::Run(folder, from)))
}

pub(crate) fn follow_runs(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let Some(runs) = call.query("runs") else { return Ok(Reply::Events(Subscription::Runs)) };
    let mut folders: Vec<RunFolder> = Vec::new();
    for run in runs.split(',') {
        let folder = find_folder(&service.home, run)?;
        if folders.iter().all(|known| known.id != folder.id) {
            folders.push(folder);
        }
    }
    if folders.len() > RUNS {
        return Err(Problem::bad_request(format!("one stream has {RUNS} runs at most")));
    }
    let (positions, all) = match last_event_id(call) {
        None => (Positions::default(), None),
        Some("0") => (Positions::default(), Some(EventId::BEGINNING)),
        Some(text) => {
            let wrong =
                || Problem::bad_request("`Last-Event-ID` is the id of an event of such a stream; `0` means all");
            // Of a run that had no event yet, all are new.
            (text.parse().map_err(|()| wrong())?, Some(EventId::BEGINNING))
        }
    };
    let begin = |folder: RunFolder| {
        let from = positions.0.get(&folder.id).copied().or(all);
        (folder, from)
    };
    let runs: Vec<_> = folders.into_iter().map(begin).collect();
    if runs.iter().all(|(folder, from)| is_at_end(service, folder, *from)) {
        return Ok(Reply::Nothing);
    }
    Ok(Reply::Events(Subscription::Many(runs)))
}

/// Behind which event a stream begins, where the client says so.
fn last_event_id(call: &Call) -> Option<&str> {
    let header = single_header(&call.headers, &hyper::header::HeaderName::from_static("last-event-id"));
    header.or_else(|| call.query("from"))
}

/// Whether a client that has the events up to `from` has all of a run that is over.
fn is_at_end(service: &Service, folder: &RunFolder, from: Option<EventId>) -> bool {
    let Some(from) = from.filter(|_| !folder.is_running()) else { return false };
    let is_at_end = service.store.with_run(&service.home, &folder.id, |run| {
        let ended = run.past.records.iter().rev().find(|record| {
            matches!(record.event, Event::RunFinished { .. } | Event::RunReopened { .. } | Event::RunResumed)
        });
        let is_over = ended.is_some_and(|record| matches!(record.event, Event::RunFinished { .. }));
        Ok(is_over && run.last_line() == Some((from.seq, from.sum)))
    });
    is_at_end.unwrap_or(false)
}
