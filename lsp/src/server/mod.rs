//! The language server's protocol: reads messages, keeps the open documents, answers requests in a pool of threads, and
//! publishes diagnostics.
//!
//! The main loop handles notifications in order. A pool thread answers each request over the snapshot of its arrival,
//! and refuses it when the text has changed meanwhile. A panic fails only its own request.

mod capabilities;
mod convert;
mod dispatch;
mod handlers;
mod handshake;
mod main_loop;
mod options;
mod pages;
mod pool;
mod stdio;
mod watched;
mod workspaces;

use std::sync::Arc;

use crate::disk::Disk;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The editor said `shutdown`, then `exit`.
    Clean,
    /// It left without.
    Abrupt,
}

/// Serves an editor on standard input and output until it leaves.
///
/// # Errors
/// What came was not the protocol, or could not be read.
pub fn serve(disk: Arc<dyn Disk>) -> Result<Exit, String> {
    let stdio = stdio::Stdio::start().map_err(|error| error.to_string())?;
    let exit = main_loop::run(&stdio.connection, disk);
    let failure = stdio.failure();
    // The thread that writes ends with its channel; of one that reads nothing more is wanted.
    let (connection, writer) = stdio.close();
    drop(connection);
    let _ = writer.join();
    match failure {
        Some(error) => Err(error),
        None => Ok(exit),
    }
}
