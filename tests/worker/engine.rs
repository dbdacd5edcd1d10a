//! An engine of a test, in this process: it gives what it is told to one worker, as the real one does, and keeps reports.
//!
//! It checks of all that is pushed that numbers have no gaps, and that a report that comes again is the same one.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use swarmc_runtime::engine::{
    Ask, Bytes, Delivery, HttpRequest, HttpResponse, Order, Patch, QueuedStart, Report, ReportEvent, Say, Started,
};
use tempfile::TempDir;

/// How long a question waits for something to do.
const WAIT: Duration = Duration::from_secs(25);

/// What a process reported, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub reports: Vec<Report>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// What the worker is to have: the order, and the lines that it has not heard, from the number of the first.
    leases: BTreeMap<Started, (Order, u64, Vec<Bytes>)>,
    /// Reports of these are refused.
    pub fenced: Vec<Started>,
    pub refused: Vec<(Started, String)>,
    pub over: Vec<Started>,
    pub asks: Vec<Ask>,
    pub seen: BTreeMap<Started, Seen>,
    /// When each report came, and each start was given.
    pub times: Vec<(Instant, &'static str)>,
    /// What processes asked their run, and whether it answers nothing.
    pub requests: Vec<(Started, HttpRequest)>,
    pub is_down: bool,
    pub pushes: usize,
}

pub(crate) struct Engine {
    pub url: String,
    store: TempDir,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Engine {
    pub(crate) fn start() -> Engine {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let store = TempDir::new().expect("a folder");
        let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let (shared, place) = (Arc::clone(&state), format!("file://{}", store.path().display()));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, place) = (Arc::clone(&shared), place.clone());
                std::thread::spawn(move || while answer(&stream, &shared, &place).is_some() {});
            }
        });
        Engine { url, store, state }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().expect("no test has failed with it")
    }

    /// Changes something, and has questions that wait answered.
    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.state.1.notify_all();
    }

    pub(crate) fn offer(&self, process: &str, start: u64, order: Order) -> Started {
        let of = Started { process: process.to_owned(), start };
        self.change(|state| {
            state.times.push((Instant::now(), "offer"));
            state.leases.insert(of.clone(), (order, 0, Vec::new()));
        });
        of
    }

    pub(crate) fn say(&self, of: &Started, lines: &[Value]) {
        let lines = lines.iter().map(|line| Bytes::Text(line.to_string()));
        self.change(|state| state.leases.get_mut(of).expect("it is leased").2.extend(lines));
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn wait<T>(&self, what: &str, holds: impl Fn(&State) -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut state = self.lock();
        loop {
            if let Some(found) = holds(&state) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "in vain: {what}: {state:#?}");
            state = self.state.1.wait_timeout(state, left).expect("no test has failed with it").0;
        }
    }

    /// The line that says how a process ended, and its patch.
    #[track_caller]
    pub(crate) fn wait_end(&self, of: &Started) -> (Value, Option<Patch>) {
        let (line, patch) = self.wait("it ends", |state| {
            state.seen.get(of)?.reports.iter().find_map(|report| match &report.fact {
                ReportEvent::Ended { line, patch } => Some((line.clone(), patch.clone())),
                _ => None,
            })
        });
        (serde_json::from_str(&line).expect("it is JSON"), patch)
    }

    /// The bytes of a stream that were reported.
    pub(crate) fn output(&self, of: &Started, stream: u8) -> Vec<u8> {
        let reports = self.lock().seen.get(of).cloned().unwrap_or_default().reports;
        let bytes = |report: Report| match report.fact {
            ReportEvent::Output { stream: found, bytes } if found == stream => self.unpack(bytes),
            _ => Vec::new(),
        };
        reports.into_iter().flat_map(bytes).collect()
    }

    pub(crate) fn unpack(&self, bytes: Bytes) -> Vec<u8> {
        match bytes {
            Bytes::Text(text) => text.into_bytes(),
            Bytes::Base64(text) => base64::engine::general_purpose::STANDARD.decode(text).expect("it is Base64"),
            Bytes::Object { digest, .. } => self.object(&digest),
        }
    }

    fn path(&self, digest: &str) -> std::path::PathBuf {
        self.store.path().join("sha256").join(&digest[..2]).join(digest)
    }

    pub(crate) fn object(&self, digest: &str) -> Vec<u8> {
        std::fs::read(self.path(digest)).expect("the object is there")
    }
}

/// Answers one request; none where the connection is over.
fn answer(stream: &TcpStream, state: &(Mutex<State>, Condvar), store: &str) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut path = String::new();
    reader.read_line(&mut path).ok().filter(|count| *count > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        length = line.strip_prefix("content-length: ").map_or(length, |length| length.parse().expect("a number"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = path.split(' ').nth(1)?.trim_start_matches('/').to_owned();
    let is_down = state.0.lock().expect("no test has failed with it").is_down;
    let (status, answer) = match is_down {
        true => (503, json!({ "message": "it is down" })),
        false => act(&path, &body, state, store),
    };
    let answer = answer.to_string();
    let head =
        format!("HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
    let mut stream = stream;
    stream.set_nodelay(true).ok()?;
    stream.write_all((head + &answer).as_bytes()).ok()
}

fn act(path: &str, body: &[u8], (state, changed): &(Mutex<State>, Condvar), store: &str) -> (u16, Value) {
    let lock = || state.lock().expect("no test has failed with it");
    match path.split('/').collect::<Vec<_>>()[..] {
        ["swarmc.Pull", "store"] => (200, json!(store)),
        ["swarmc.Pull", "deliveries"] => {
            let ask: Ask = serde_json::from_slice(body).expect("a question");
            let mut state = lock();
            state.asks.push(ask.clone());
            let number = state.asks.len();
            let until = Instant::now() + WAIT;
            loop {
                let deliveries = state.hand_out(&ask);
                changed.notify_all();
                let left = until.saturating_duration_since(Instant::now());
                if !deliveries.is_empty() || state.asks.len() > number || left.is_zero() || state.is_down {
                    return (200, json!(deliveries));
                }
                state = changed.wait_timeout(state, left).expect("no test has failed with it").0;
            }
        }
        ["swarmc.Inbox", run, "push"] => {
            let reports: Vec<Report> = serde_json::from_slice(body).expect("reports");
            let mut state = lock();
            state.pushes += 1;
            if run == "over" {
                return (409, json!({ "message": "the run is over" }));
            }
            let over = reports.into_iter().filter_map(|report| state.take(report)).collect::<Vec<_>>();
            state.times.push((Instant::now(), "push"));
            changed.notify_all();
            (200, json!(over))
        }
        ["swarmc.Pull", "request"] => {
            let asked: (Started, HttpRequest) = serde_json::from_slice(body).expect("a request");
            let headers = BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]);
            let answer = json!({ "ok": asked.1.path });
            let response = HttpResponse { status: 200, headers, body: Bytes::Text(answer.to_string()) };
            lock().requests.push(asked);
            changed.notify_all();
            (200, json!(response))
        }
        _ => (404, json!({ "message": format!("there is no {path}") })),
    }
}

impl State {
    /// Has no worker have a process any more.
    pub(crate) fn end(&mut self, of: &Started) {
        self.leases.remove(of);
    }

    /// What the queue of a pool says to a question.
    fn hand_out(&mut self, ask: &Ask) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        for (of, refusal) in &ask.done {
            if self.leases.remove(of).is_some() {
                match refusal {
                    Some(why) => self.refused.push((of.clone(), why.clone())),
                    None => self.over.push(of.clone()),
                }
            }
        }
        let has: BTreeMap<_, _> = ask.has.iter().cloned().collect();
        let ends = has.keys().filter(|of| !self.leases.contains_key(of));
        deliveries.extend(ends.map(|of| Delivery::End(of.clone())));
        let mut free = ask.free;
        for (of, (order, from, lines)) in &mut self.leases {
            let heard = has.get(of).copied();
            if heard.is_none() {
                if free == 0 {
                    continue;
                }
                free -= 1;
                let order = Bytes::Text(json!(order).to_string());
                deliveries.push(Delivery::Start(QueuedStart { of: of.clone(), order }));
            }
            while *from < heard.unwrap_or(0) {
                lines.remove(0);
                *from += 1;
            }
            if !lines.is_empty() {
                deliveries.push(Delivery::Say(Say { of: of.clone(), from: *from, lines: lines.clone() }));
            }
        }
        deliveries
    }

    /// Keeps a report; the start that counts no more.
    fn take(&mut self, report: Report) -> Option<Started> {
        if self.fenced.contains(&report.of) {
            self.leases.remove(&report.of);
            return Some(report.of);
        }
        let seen = self.seen.entry(report.of.clone()).or_default();
        let known = seen.reports.len() as u64;
        match report.number <= known {
            true => {
                let at = usize::try_from(report.number - 1).expect("it is small");
                assert_eq!(seen.reports[at], report, "a report that comes again is another one");
            }
            false => {
                assert_eq!(report.number, known + 1, "a report is missing");
                seen.reports.push(report);
            }
        }
        None
    }
}
