//! The protocol: reads messages, keeps the open documents, has a pool answer questions, and tells what is wrong.
//!
//! Notifications are taken in order by the one loop; each request is answered over the snapshot of the moment in which it
//! came, and refused when the text has changed meanwhile. One panic answers one request with an error, and no more.

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
