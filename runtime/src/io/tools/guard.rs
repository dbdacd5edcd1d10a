//! Checks what a tool server prints before the client parses it: lines of bounded length that can be JSON.
//!
//! In: the server's standard output. Out: the same bytes, until they are not what a server may print; then an end, and
//! the reason for people.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// The bytes of one message at most.
pub(super) const MESSAGE: usize = 16 * 1024 * 1024;

/// The bytes of other lines that are passed over: some servers greet.
const GREETING: usize = 64 * 1024;

/// What is kept of them, and of what it says on standard error.
const SAMPLE: usize = 200;
const COMPLAINT: usize = 1_000;

/// What is known of a server's words.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Mutex<Words>>);

#[derive(Debug, Default)]
struct Words {
    /// Why it is not listened to any more.
    problem: Option<String>,
    /// The beginning of what is no message.
    sample: Vec<u8>,
    /// The end of its standard error.
    complaint: Vec<u8>,
}

impl Heard {
    /// It wrote this on its standard error.
    pub(super) fn complains(&self, bytes: &[u8]) {
        let complaint = &mut self.words().complaint;
        complaint.extend_from_slice(&bytes[bytes.len().saturating_sub(COMPLAINT)..]);
        let cut = complaint.len().saturating_sub(COMPLAINT);
        complaint.drain(..cut);
    }

    /// Why nothing more is read of it, if it is its own fault.
    pub(super) fn problem(&self) -> Option<String> {
        self.words().problem.clone()
    }

    /// What it said apart from messages: what we stopped listening for, else the end of its standard error.
    pub(super) fn said(&self) -> Option<String> {
        let words = self.words();
        let sampled = words.complaint.is_empty() || words.problem.is_some() && !words.sample.is_empty();
        let said = if sampled { &words.sample } else { &words.complaint };
        let said = String::from_utf8_lossy(said).trim().to_owned();
        (!said.is_empty()).then_some(said)
    }

    fn words(&self) -> std::sync::MutexGuard<'_, Words> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A standard output that is looked at on its way.
pub(super) struct Guard<R> {
    inner: R,
    heard: Heard,
    /// The bytes of this line so far.
    line: usize,
    /// Whether this line can be a message; none before its first sign.
    message: Option<bool>,
    /// The bytes of lines that are none.
    other: usize,
}

impl<R> Guard<R> {
    pub(super) fn new(inner: R, heard: Heard) -> Guard<R> {
        Guard { inner, heard, line: 0, message: None, other: 0 }
    }

    fn look(&mut self, bytes: &[u8]) -> Result<(), String> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.message.is_none() {
                self.message = part.iter().find(|byte| !byte.is_ascii_whitespace()).map(|byte| b"{[".contains(byte));
            }
            self.line += part.len();
            if self.line > MESSAGE {
                return Err(format!("it sent a message of more than {} MiB", MESSAGE / 1024 / 1024));
            }
            if self.message == Some(false) {
                self.other += part.len();
                let sample = &mut self.heard.words().sample;
                let room = SAMPLE.saturating_sub(sample.len());
                sample.extend_from_slice(&part[..part.len().min(room)]);
            }
            if self.other > GREETING {
                return Err("it prints something other than messages of the protocol".to_owned());
            }
            if part.ends_with(b"\n") {
                (self.line, self.message) = (0, None);
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Guard<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = read
            && let Err(problem) = self.look(&buffer.filled()[before..])
        {
            self.heard.words().problem = Some(problem.clone());
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, problem)));
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(chunks: &[&[u8]]) -> (Result<(), String>, Option<String>) {
        let heard = Heard::default();
        let mut guard = Guard::new(tokio::io::empty(), heard.clone());
        (chunks.iter().try_for_each(|chunk| guard.look(chunk)), heard.said())
    }

    #[test]
    fn messages_pass_however_they_come_and_a_greeting_does_too() {
        assert_eq!(looks(&[b"{\"a\":", b"1}\n", b"\n  [", b"]\n"]), (Ok(()), None));
        assert_eq!(looks(&[b"hel", b"lo\n{}\n"]), (Ok(()), Some("hello".to_owned())));
    }

    #[test]
    fn what_is_no_message_is_not_listened_to_for_ever() {
        let line = [b'x'; 1000];
        let (end, said) = looks(&vec![&line[..]; 100]);
        assert_eq!(end.unwrap_err(), "it prints something other than messages of the protocol");
        assert_eq!(said.unwrap(), "x".repeat(SAMPLE));
        let part = vec![b'{'; 1024 * 1024];
        assert_eq!(looks(&vec![&part[..]; 17]).0.unwrap_err(), "it sent a message of more than 16 MiB");
    }
}
