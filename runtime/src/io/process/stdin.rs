//! Writes to the standard input of a process while it runs.

use std::process::ChildStdin;

use crate::io::event_loop::Registered;

/// How a talk with a process goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StdinDialogue<'s> {
    /// What it is to read next.
    pub words: &'s [u8],
    /// Whether its work is done: nothing follows, and it may go.
    pub over: bool,
    /// Whether it waits for others, so that its silence means nothing.
    pub waits: bool,
}

/// The standard input of a process that is talked with, which never waits for it.
pub(crate) struct StdinWriter<'e> {
    pub pipe: Registered<'e, ChildStdin>,
}

impl StdinWriter<'_> {
    /// Writes as much as there is room for; returns how much that was, and whether the process still reads.
    pub(crate) fn write_available(&mut self, mut words: &[u8]) -> (usize, bool) {
        let mut told = 0;
        while !words.is_empty() {
            match rustix::io::write(&self.pipe, words) {
                Ok(count) => {
                    told += count;
                    words = &words[count..];
                }
                // Its thread is woken when there is room again.
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return (told, false),
            }
        }
        (told, true)
    }
}
