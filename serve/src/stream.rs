//! Server-sent events: the records of a run, or the runs that change.
//!
//! In: where a stream begins. Out: text for the client, until it goes away or the run is over. Invariants: a client that
//! reads slowly loses no record, since the journal is read at its pace; the `data` of a record is the line that
//! `swarmc run --json` prints; an id names the record and its checksum, so that a journal that took the place of another
//! one is not taken for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use hyper::body::{Body, Bytes, Frame};
use swarmc_runtime::{Event, Home, JournalError, JournalFollower, Record, RunFolder};
use swarmc_view::documents::{RunLine, RunLineKind, Version, encode};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, sleep};

use crate::Service;

/// How often a journal is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How often a process that runs it is looked for, and how often all runs are.
const TICK: Duration = Duration::from_secs(1);
const CHANGES: Duration = Duration::from_millis(250);

/// How long a stream is silent at most: proxies close silent connections.
const SILENCE: Duration = Duration::from_secs(15);

/// The bytes of one piece for the client, and the pieces that wait for it.
const PIECE: usize = 64 * 1024;
const PIECES: usize = 4;

/// The event streams at once, and the runs of one stream.
pub(crate) const MOST: usize = 64;
pub(crate) const RUNS: usize = 16;

/// The name of a record: its number, and the checksum of its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventId {
    pub seq: u64,
    pub sum: u32,
}

impl EventId {
    /// How it is written, in words.
    pub(crate) const FORM: &str = "an event, written as `SEQ-CRC`, as in `4112-5d0c0d6f`; `0` means all";

    /// The same, as a pattern of JSON Schema.
    pub(crate) const PATTERN: &str = "^(0|[0-9]{1,19}-[0-9a-f]{8})$";

    /// Ahead of the first record.
    pub(crate) const BEGINNING: EventId = EventId { seq: 0, sum: 0 };
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{:08x}", self.seq, self.sum)
    }
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<EventId, ()> {
        if text == "0" {
            return Ok(EventId::BEGINNING);
        }
        let (seq, sum) = text.split_once('-').ok_or(())?;
        // The parsers of numbers take a sign as well.
        let is_digits = |text: &str, digit: fn(&u8) -> bool| text.bytes().all(|byte| digit(&byte));
        if sum.len() != 8 || !is_digits(sum, u8::is_ascii_hexdigit) || !is_digits(seq, u8::is_ascii_digit) {
            return Err(());
        }
        Ok(EventId { seq: seq.parse().map_err(drop)?, sum: u32::from_str_radix(sum, 16).map_err(drop)? })
    }
}

/// What a stream sends.
#[derive(Debug)]
pub(crate) enum Subscription {
    /// The records of a run behind this one; without it those that come from now on.
    Run(RunFolder, Option<EventId>),
    /// The same of several runs, in one stream.
    Many(Vec<(RunFolder, Option<EventId>)>),
    /// The runs that change.
    Runs,
}

/// How far a client is in each run of a stream: `RUN=SEQ-CRC`, with commas between.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Positions(pub BTreeMap<String, EventId>);

impl std::fmt::Display for Positions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (run, id)) in self.0.iter().enumerate() {
            write!(f, "{}{run}={id}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Positions {
    type Err = ();

    fn from_str(text: &str) -> Result<Positions, ()> {
        let read = |part: &str| {
            let (run, id) = part.split_once('=').ok_or(())?;
            Ok((run.to_owned(), id.parse()?))
        };
        text.split(',').map(read).collect::<Result<_, _>>().map(Positions)
    }
}

/// The body of a stream.
#[derive(Debug)]
pub(crate) struct EventBody {
    pieces: Receiver<Bytes>,
    service: Arc<Service>,
}

impl EventBody {
    /// Begins a stream; none where too many are open.
    pub(crate) fn open(service: &Arc<Service>, subscription: Subscription) -> Option<EventBody> {
        let open = &service.streams;
        let take = |streams| (streams < MOST).then_some(streams + 1);
        open.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok()?;
        let (sender, pieces) = mpsc::channel(PIECES);
        let home = service.home.clone();
        tokio::spawn(async move {
            let mut out = Outlet::new(sender);
            // It ends with the client.
            let _ = match subscription {
                Subscription::Run(folder, from) => send_records(&mut out, folder, from).await,
                Subscription::Many(runs) => send_many(out, runs).await,
                Subscription::Runs => send_changes(&mut out, &home).await,
            };
        });
        Some(EventBody { pieces, service: Arc::clone(service) })
    }
}

impl Drop for EventBody {
    fn drop(&mut self) {
        self.service.streams.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// The client has gone.
struct Gone;

/// Where events go.
struct Outlet {
    sender: Sender<Bytes>,
    text: String,
    sent: Instant,
    shared: Option<Shared>,
}

/// What the events of one run need in a stream of several.
struct Shared {
    run: String,
    /// How far the client is in each run. Who sends holds it, so that an id names what the client has and nothing more.
    positions: Arc<Mutex<Positions>>,
    /// The events that wait to be sent.
    pending: Vec<(String, Option<EventId>, String)>,
}

impl Outlet {
    fn new(sender: Sender<Bytes>) -> Outlet {
        Outlet { sender, text: "retry: 1000\n\n".to_owned(), sent: Instant::now(), shared: None }
    }

    /// The same place, for the events of one run among several.
    fn share(&self, run: &str, positions: &Arc<Mutex<Positions>>) -> Outlet {
        let shared = Shared { run: run.to_owned(), positions: Arc::clone(positions), pending: Vec::new() };
        Outlet { sender: self.sender.clone(), text: String::new(), sent: Instant::now(), shared: Some(shared) }
    }

    /// Adds an event; what comes together goes together.
    async fn push(&mut self, name: &str, id: Option<EventId>, data: &str) -> Result<(), Gone> {
        if let Some(shared) = &mut self.shared {
            shared.pending.push((name.to_owned(), id, data.to_owned()));
            let bytes: usize = shared.pending.iter().map(|(.., data)| data.len()).sum();
            return if bytes >= PIECE { self.flush().await } else { Ok(()) };
        }
        if let Some(id) = id {
            let _ = writeln!(self.text, "id: {id}");
        }
        let _ = write!(self.text, "event: {name}\ndata: {data}\n\n");
        if self.text.len() >= PIECE { self.flush().await } else { Ok(()) }
    }

    /// Sends what there is; a sign of life where there has been nothing for long.
    async fn flush(&mut self) -> Result<(), Gone> {
        let pending = self.shared.as_mut().map(|shared| std::mem::take(&mut shared.pending)).unwrap_or_default();
        if let Some(Shared { run, positions, .. }) = self.shared.as_ref().filter(|_| !pending.is_empty()) {
            let mut positions = positions.lock().await;
            let mut text = String::new();
            for (name, id, data) in pending {
                if let Some(id) = id {
                    positions.0.insert(run.clone(), id);
                    let _ = writeln!(text, "id: {positions}");
                }
                // The data is JSON, and the run an id.
                let _ = write!(text, "event: {name}\ndata: {{\"run\":\"{run}\",\"data\":{data}}}\n\n");
            }
            self.sent = Instant::now();
            return self.sender.send(Bytes::from(text)).await.map_err(|_| Gone);
        }
        if self.text.is_empty() {
            if self.sent.elapsed() < SILENCE {
                return if self.sender.is_closed() { Err(Gone) } else { Ok(()) };
            }
            self.text.push_str(":\n\n");
        }
        self.sent = Instant::now();
        self.sender.send(Bytes::from(std::mem::take(&mut self.text))).await.map_err(|_| Gone)
    }
}

/// Sends the records of several runs, each at its own pace, until all of them are over.
async fn send_many(mut out: Outlet, runs: Vec<(RunFolder, Option<EventId>)>) -> Result<(), Gone> {
    out.flush().await?;
    let known = runs.iter().filter_map(|(folder, from)| Some((folder.id.clone(), (*from)?)));
    let positions = Arc::new(Mutex::new(Positions(known.collect())));
    let mut all = tokio::task::JoinSet::new();
    for (folder, from) in runs {
        let mut own = out.share(&folder.id, &positions);
        all.spawn(async move { send_records(&mut own, folder, from).await });
    }
    while all.join_next().await.is_some() {}
    Ok(())
}

/// Sends the records of a run behind `from`, and those that come, until the run is over.
async fn send_records(out: &mut Outlet, folder: RunFolder, from: Option<EventId>) -> Result<(), Gone> {
    let mut journal = folder.follow_journal();
    let (mut begins, mut over, mut last) = (true, false, 0);
    let (mut runs, mut looked) = (None, Instant::now());
    loop {
        if runs.is_none() || looked.elapsed() >= TICK {
            (looked, runs) = (Instant::now(), Some(tell_runner(out, &folder, runs).await?));
        }
        let Ok((records, next)) = read_more(journal).await else {
            // Another journal took its place, or it is damaged: the client reads all anew, and learns that there.
            out.push("reset", Some(EventId::BEGINNING), "{}").await?;
            return out.flush().await;
        };
        journal = next;
        let is_quiet = records.is_empty();
        for (record, sum) in records {
            let id = EventId { seq: record.seq, sum };
            if from.is_some_and(|from| from.seq == id.seq && from != id) {
                out.push("reset", Some(EventId::BEGINNING), "{}").await?;
                return out.flush().await;
            }
            last = id.seq;
            over = match &record.event {
                Event::RunFinished { .. } => true,
                Event::RunReopened { .. } | Event::RunResumed => false,
                _ => over,
            };
            // Without a beginning, what is there already counts as seen.
            if from.map_or(!begins, |from| id.seq > from.seq) {
                let line = RunLine { version: Version, line: RunLineKind::Record(Box::new(record)) };
                out.push("record", Some(id), &encode(&line)).await?;
            }
        }
        out.flush().await?;
        if is_quiet {
            // The client has seen more than there is: a crash of the machine took it back.
            if std::mem::take(&mut begins) && from.is_some_and(|from| from.seq > last) {
                out.push("reset", Some(EventId::BEGINNING), "{}").await?;
                return out.flush().await;
            }
            // Asked anew: a runner that was alive before the last look may have written since.
            if over && !is_running(&folder).await {
                out.push("end", None, "{}").await?;
                return out.flush().await;
            }
            sleep(LOOK).await;
        }
    }
}

/// Says whether a process runs the run, at first and where that has changed; whether one does.
async fn tell_runner(out: &mut Outlet, folder: &RunFolder, before: Option<bool>) -> Result<bool, Gone> {
    let runs = is_running(folder).await;
    if before != Some(runs) {
        let state = if runs { "running" } else { "gone" };
        out.push("runner", None, &format!("{{\"state\":\"{state}\"}}")).await?;
    }
    Ok(runs)
}

/// Whether a process runs the run. It waits for one that is just ending, and so where it holds up no other client.
async fn is_running(folder: &RunFolder) -> bool {
    let folder = folder.clone();
    tokio::task::spawn_blocking(move || folder.is_running()).await.unwrap_or(false)
}

/// What is new in a journal. A long one is read where it holds up no other client.
async fn read_more(mut journal: JournalFollower) -> Result<(Vec<(Record, u32)>, JournalFollower), JournalError> {
    if !journal.has_more()? {
        return Ok((Vec::new(), journal));
    }
    let read = tokio::task::spawn_blocking(move || Ok((journal.poll_sums()?, journal)));
    read.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Says which runs begin, change and end.
async fn send_changes(out: &mut Outlet, home: &Home) -> Result<(), Gone> {
    let mut known: Option<BTreeMap<String, RunStamp>> = None;
    loop {
        let home = home.clone();
        let found = tokio::task::spawn_blocking(move || list_states(&home)).await.unwrap_or_default();
        if let Some(known) = &known {
            let gone = known.keys().filter(|run| !found.contains_key(*run));
            let changed = found.iter().filter(|(run, state)| known.get(*run) != Some(state)).map(|(run, _)| run);
            for run in changed.chain(gone) {
                out.push("changed", None, &format!("{{\"run\":{}}}", serde_json::json!(run))).await?;
            }
        }
        known = Some(found);
        out.flush().await?;
        sleep(CHANGES).await;
    }
}

/// When the journal of a run was written last, and whether a process runs it. Its length says little: the runner allocates
/// ahead of what it writes.
type RunStamp = (Option<SystemTime>, bool);

/// The runs, each with what tells whether it has changed.
fn list_states(home: &Home) -> BTreeMap<String, RunStamp> {
    let folders = home.list_folders().unwrap_or_default();
    let state = |folder: RunFolder| {
        let written = std::fs::metadata(folder.journal_path()).and_then(|metadata| metadata.modified()).ok();
        let runs = folder.is_running();
        (folder.id, (written, runs))
    };
    folders.into_iter().map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_is_read_as_it_is_written() {
        let id = EventId { seq: 4112, sum: 0x5d0c_0d6f };
        assert_eq!(id.to_string(), "4112-5d0c0d6f");
        assert_eq!("4112-5d0c0d6f".parse(), Ok(id));
        assert_eq!("0".parse(), Ok(EventId::BEGINNING));
        for wrong in ["", "4112", "4112-", "4112-5d0c0d6", "x-5d0c0d6f", "4112-5d0c0d6g", "+1-5d0c0d6f", "1-+d0c0d6f"] {
            assert!(wrong.parse::<EventId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn positions_are_read_as_they_are_written() {
        let text = "20261122-021131-d73nt7=4112-5d0c0d6f,20261122-021547-4vjf3r=0-00000000";
        let positions: Positions = text.parse().expect("positions");
        assert_eq!((positions.to_string().as_str(), positions.0.len()), (text, 2));
        for wrong in ["", "a", "a=", "a=4112", "a=0-00000000,"] {
            assert!(wrong.parse::<Positions>().is_err(), "{wrong}");
        }
    }
}
