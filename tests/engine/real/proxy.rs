//! A proxy between one worker and the ingress of Restate. It can hold what passes, and make late reports look like those
//! of the start that counts.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// What the proxy does with a request, and with its answer.
#[derive(Clone, Debug)]
enum Mode {
    /// Passes it on.
    Open,
    /// Passes it on, until a report of a process comes whose name holds this.
    Until(String),
    /// Holds it.
    Held,
    /// Passes reports on, and holds the rest until the last report is through; sets their start to this one.
    Late(Option<u64>),
    /// The proxy is gone.
    Over,
}

/// The proxy of one worker.
pub(super) struct Proxy {
    port: u16,
    gate: Arc<Gate>,
}

struct Gate {
    mode: Mutex<Mode>,
    changed: Condvar,
    /// Whether the engine has refused a late report.
    has_refused: AtomicBool,
}

impl Proxy {
    /// One before the server at a port of this machine.
    pub(super) fn start(target: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let gate = Arc::new(Gate {
            mode: Mutex::new(Mode::Open),
            changed: Condvar::new(),
            has_refused: AtomicBool::new(false),
        });
        let shared = Arc::clone(&gate);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if matches!(*shared.lock(), Mode::Over) {
                    return;
                }
                let gate = Arc::clone(&shared);
                // A connection that breaks is made again by the worker.
                std::thread::spawn(move || drop(serve(stream, target, &gate)));
            }
        });
        Proxy { port, gate }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Holds everything from the first report of a process on whose name holds this.
    pub(super) fn hold_from(&self, process: &str) {
        self.gate.set(Mode::Until(process.to_owned()));
    }

    pub(super) fn holds(&self) -> bool {
        matches!(*self.gate.lock(), Mode::Held)
    }

    /// Passes on what it holds. With `start`, reports say that they are of this start, and have no number: otherwise the
    /// engine would take them for reports that it has already.
    pub(super) fn release(&self, start: Option<u64>) {
        self.gate.set(Mode::Late(start));
    }

    /// Whether the engine has refused a late report.
    pub(super) fn has_refused(&self) -> bool {
        self.gate.has_refused.load(Ordering::Relaxed)
    }

    /// Whether everything passes again.
    pub(super) fn is_open(&self) -> bool {
        matches!(*self.gate.lock(), Mode::Open)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.gate.set(Mode::Over);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Mode> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, mode: Mode) {
        *self.lock() = mode;
        self.changed.notify_all();
    }

    /// Waits until something may pass: how.
    fn pass(&self, reports: Option<&Vec<Value>>) -> io::Result<Mode> {
        let mut mode = self.lock();
        let is_named = |name: &String| reports.is_some_and(|reports| reports.iter().any(|it| is_of(it, name)));
        if matches!(&*mode, Mode::Until(name) if is_named(name)) {
            *mode = Mode::Held;
            self.changed.notify_all();
        }
        loop {
            match &*mode {
                Mode::Open | Mode::Until(_) => return Ok(mode.clone()),
                Mode::Late(_) if reports.is_some() => return Ok(mode.clone()),
                Mode::Over => return Err(io::ErrorKind::ConnectionAborted.into()),
                Mode::Held | Mode::Late(_) => {
                    mode = self.changed.wait(mode).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

fn is_of(report: &Value, name: &str) -> bool {
    report["process"].as_str().is_some_and(|process| process.contains(name))
}

/// Passes one request on, and its answer: each connection has one.
fn serve(client: TcpStream, target: u16, gate: &Gate) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut head, mut length, mut first) = (String::new(), 0, String::new());
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let (name, value) = line.split_once(':').unwrap_or_default();
        match &*name.to_ascii_lowercase() {
            "content-length" => length = value.trim().parse().map_err(io::Error::other)?,
            "connection" => {}
            "" => break,
            _ => head.push_str(&line),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let is_push = first.contains("/swarmc.Inbox/") && first.contains("/push ");
    let mut reports: Option<Vec<Value>> = if is_push { Some(serde_json::from_slice(&body)?) } else { None };
    let mode = gate.pass(reports.as_ref())?;
    if let (Mode::Late(Some(start)), Some(reports)) = (&mode, &mut reports) {
        for report in reports.iter_mut() {
            report["start"] = json!(start);
            report["number"] = json!(0);
        }
        body = serde_json::to_vec(reports)?;
    }
    let mut server = TcpStream::connect(("127.0.0.1", target))?;
    let length = body.len();
    server.write_all(format!("{first}{head}connection: close\r\ncontent-length: {length}\r\n\r\n").as_bytes())?;
    server.write_all(&body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    if let (Mode::Late(_), Some(reports)) = (&mode, &reports) {
        let is_last = reports.iter().any(|report| report["fact"].get("ended").is_some());
        let is_accepted = String::from_utf8_lossy(&answer).ends_with("\r\n\r\n[]");
        gate.has_refused.fetch_or(!is_accepted, Ordering::Relaxed);
        if is_last || !is_accepted {
            gate.set(Mode::Open);
        }
    }
    gate.pass(reports.as_ref())?;
    (&client).write_all(&answer)
}
