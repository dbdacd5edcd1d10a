//! The protocol: reads messages, keeps the open documents, has a pool answer questions, and tells what is wrong.
//!
//! Notifications are taken in order by the one loop; each request is answered over the snapshot of the moment in which it
//! came, and refused when the text has changed meanwhile. One panic answers one request with an error, and no more.

mod capabilities;
mod convert;
mod dispatch;
mod handlers;
mod main_loop;
mod options;
mod pool;
mod world;

use std::sync::Arc;

use lsp_server::Connection;

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
    let (connection, threads) = Connection::stdio();
    let ended = main_loop::run(&connection, disk);
    // The thread that writes ends with its channel.
    drop(connection);
    match (ended, threads.join()) {
        (Ok(exit), Ok(())) => Ok(exit),
        (Err(error), _) => Err(error),
        (_, Err(error)) => Err(error.to_string()),
    }
}
