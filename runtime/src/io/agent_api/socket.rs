//! Serves scripts: a Unix socket on which a line of JSON asks and a line answers.
//!
//! A line in is `{"token": "…", "operation": {"swarm": "send_handoff", …}}`, a line out `{"ok": …}` or `{"error":
//! "…"}`; a connection may ask again and again. A line without an operation asks for the tools that there are; with
//! `"listed": true` it says as well that a client knows them.
//!
//! The kernel tells which process asks here: the server refuses a token from a process of another attempt.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use super::connection_limit::{Place, Places};
use super::{PAUSE, Sessions, describe_unknown_token};
use crate::io::socket_peer::PeerCredentials;
use crate::types::handoff::ENVELOPE_LIMIT;

/// The longest line: an envelope whose every character is escaped, and what is around it.
const LONGEST: u64 = ENVELOPE_LIMIT as u64 * 6 + 1024;

/// The connections at once.
const CONNECTIONS: usize = 64;

/// How long a connection may say nothing.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    token: String,
    #[serde(default)]
    operation: Option<Value>,
    #[serde(default)]
    listed: bool,
}

/// Takes what agents ask for, until the run has ended.
pub(super) async fn serve(listener: UnixListener, reception: Arc<Sessions>) {
    let places = Places::new(CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many files are open: one has to be closed first.
            sleep(PAUSE).await;
            continue;
        };
        let (place, reception) = (places.acquire_place().await, Arc::clone(&reception));
        tokio::spawn(async move {
            tokio::select! {
                // A client that goes away early reads no error.
                _ = serve_connection(stream, &reception, &place) => {}
                () = place.wait_for_eviction() => {}
            }
        });
    }
}

async fn serve_connection(stream: UnixStream, reception: &Sessions, place: &Place) -> std::io::Result<()> {
    let peer = reception.processes.peer(&stream);
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(LONGEST);
        let Ok(count) = timeout(PATIENCE, limited.read_until(b'\n', &mut line)).await else { return Ok(()) };
        let count = count?;
        if count == 0 {
            return Ok(());
        }
        let is_whole = line.ends_with(b"\n");
        let told = match serde_json::from_slice::<Line>(&line) {
            _ if !is_whole && count as u64 >= LONGEST => Err(format!("the line is longer than {} KB", LONGEST / 1024)),
            Ok(line) => answer_line(line, &peer, reception, place).await,
            Err(error) => Err(format!("not an operation: {error}")),
        };
        let answer = match told {
            Ok(receipt) => json!({ "ok": receipt }),
            Err(problem) => json!({ "error": problem }),
        };
        let answer = format!("{answer}\n");
        match timeout(PATIENCE, writer.write_all(answer.as_bytes())).await {
            Ok(written) if is_whole => written?,
            _ => return Ok(()),
        }
    }
}

/// What one line gets.
async fn answer_line(line: Line, peer: &PeerCredentials, reception: &Sessions, place: &Place) -> Result<Value, String> {
    let Line { token, operation, listed } = line;
    let guest = reception.find_session(&token).ok_or_else(describe_unknown_token)?;
    if let PeerCredentials::Within(Some(owner)) = peer
        && *owner != (guest.step.clone(), guest.attempt)
    {
        return Err(reception.reject_foreign_token(owner, &guest));
    }
    place.mark_authenticated();
    if let Some(operation) = operation {
        return reception.send_operation(&token, operation).await;
    }
    if listed {
        guest.listed.mark_listed();
    }
    Ok(json!(*guest.offers))
}
