//! Writes down what people changed by requests, and who was refused.
//!
//! In: requests. Out: a line of `people.jsonl` in the folder of the run, and lines for the log of the server. What was
//! changed itself stands in the journal, as ever. Invariant: a flood of requests floods no log.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use serde_json::json;
use swarmc_runtime::RunFolder;
use swarmc_view::{make_printable, now_ms};

use crate::peer::Client;
use crate::problem::Problem;

/// The lines of a second at most.
const LINES: u32 = 10;

/// The characters of a path, or of the name of a client, that are written.
const SHOWN: usize = 200;

/// The log of requests that are refused.
#[derive(Debug)]
pub(crate) struct RefusalLog {
    lines: SyncSender<String>,
    /// When the current second began, and how many lines it has.
    second: Mutex<(Instant, u32)>,
}

impl RefusalLog {
    pub(crate) fn new(write: fn(&str)) -> RefusalLog {
        let (lines, written) = mpsc::sync_channel::<String>(LINES as usize);
        // A terminal that is stopped takes no line, and must stop no request.
        std::thread::spawn(move || written.iter().for_each(|line| write(&line)));
        RefusalLog { lines, second: Mutex::new((Instant::now(), 0)) }
    }

    /// Writes a line about a request that was refused.
    pub(crate) fn note(&self, request: &str, peer: Client, problem: &Problem) {
        {
            let mut second = self.second.lock().unwrap_or_else(PoisonError::into_inner);
            if second.0.elapsed() > Duration::from_secs(1) {
                *second = (Instant::now(), 0);
            }
            second.1 += 1;
            if second.1 > LINES {
                return;
            }
        }
        let request: String = request.chars().take(SHOWN).collect();
        let detail = problem.detail.split(':').next().unwrap_or_default();
        let line = format!("refused ({}) {} from {peer}: {detail}", problem.status, make_printable(&request));
        let _ = self.lines.try_send(line);
    }
}

/// Writes down that a person changed something of a run. Without the line the change counts all the same.
pub(crate) fn note_change(folder: &RunFolder, route: &str, peer: Client, client: &str) {
    let client: String = client.chars().take(SHOWN).collect();
    let line = json!({ "at": now_ms(), "route": route, "remote": peer.to_string(), "client": client });
    // An agent may have put a link there.
    let flags = OFlags::NOFOLLOW.bits() as i32;
    let file = File::options().create(true).append(true).custom_flags(flags).open(folder.path.join("people.jsonl"));
    // In one piece: requests come at the same time.
    let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
}
