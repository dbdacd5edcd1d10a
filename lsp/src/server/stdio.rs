//! Standard input and output as messages.
//!
//! In: bytes. Out: messages in the order of the bytes; two threads, so that neither side waits for the other. A frame that
//! is no frame, and one whose contents are not JSON, end the stream with a word on why: nothing after them can be trusted.
//! JSON that is no message is told to the editor and left out. Nothing is held before it has come, whatever a length says.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Sender, bounded, unbounded};
use gen_lsp_types as lsp;
use gen_lsp_types::Notification as _;
use lsp_server::{Connection, Message, Notification};

/// The longest message, in bytes: a text of the largest size that is read, every character of it escaped.
const LONGEST: u64 = 128 << 20;

/// The longest line of a header, in bytes.
const HEADER: u64 = 8 << 10;

/// Messages that wait for the loop: enough that a burst of edits is taken as one.
const WAITING: usize = 512;

/// The two ends, and what went wrong with the first.
pub(super) struct Stdio {
    pub(super) connection: Connection,
    writer: JoinHandle<()>,
    failure: Arc<Mutex<Option<String>>>,
}

/// What came.
#[derive(Debug)]
enum Frame {
    Message(Message),
    /// JSON, but no message: why not.
    Strange(String),
    End,
}

impl Stdio {
    /// Starts to read and to write.
    pub(super) fn start() -> io::Result<Stdio> {
        // With a bound the loop could wait for an editor that itself waits until the loop reads on.
        let (to_editor, outgoing) = unbounded::<Message>();
        let (to_loop, incoming) = bounded::<Message>(WAITING);
        let failure: Arc<Mutex<Option<String>>> = Arc::default();
        let (found, teller) = (Arc::clone(&failure), to_editor.clone());
        let read = move || {
            if let Err(error) = forward_messages(&mut BufReader::new(io::stdin()), &to_loop, &teller) {
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            }
        };
        // It ends with the editor's end of the pipe, or with the process.
        Builder::new().name("reader".to_owned()).spawn(read)?;
        let write = move || {
            let mut output = io::stdout().lock();
            // An editor that is gone is seen by the loop.
            let _ =
                outgoing.into_iter().try_for_each(|message| message.write(&mut output).and_then(|()| output.flush()));
        };
        let writer = Builder::new().name("writer".to_owned()).spawn(write)?;
        let connection = Connection { sender: to_editor, receiver: incoming };
        Ok(Stdio { connection, writer, failure })
    }

    /// The channels, and the thread that ends when they are dropped.
    pub(super) fn close(self) -> (Connection, JoinHandle<()>) {
        (self.connection, self.writer)
    }

    /// Why nothing more can be read, where that is not the end.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Hands on what comes until the end, or until `exit`.
fn forward_messages(input: &mut impl BufRead, to_loop: &Sender<Message>, teller: &Sender<Message>) -> io::Result<()> {
    loop {
        match read_frame(input)? {
            Frame::End => return Ok(()),
            Frame::Strange(why) => {
                let kind = lsp::MessageType::Warning;
                let message = format!("the editor sent an invalid message: {why}");
                let params = lsp::LogMessageParams { kind, message };
                let method = lsp::LogMessageNotification::METHOD.as_str().to_owned();
                let _ = teller.send(Notification::new(method, params).into());
            }
            Frame::Message(message) => {
                let last = matches!(&message, Message::Notification(last) if last.method == "exit");
                if to_loop.send(message).is_err() || last {
                    return Ok(());
                }
            }
        }
    }
}

/// Reads one message. An end in the middle of one is an end.
fn read_frame(input: &mut impl BufRead) -> io::Result<Frame> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        input.by_ref().take(HEADER).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            // A shorter line without its end is where the pipe has ended.
            return if line.len() as u64 == HEADER {
                Err(invalid_data("a header without an end"))
            } else {
                Ok(Frame::End)
            };
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let header = line.split_once(':');
        let (name, value) = header.ok_or_else(|| invalid_data(format!("`{}` is not a header", shorten_text(line))))?;
        if name.trim().eq_ignore_ascii_case("content-length") {
            let value = value.trim();
            let number = value.parse::<u64>().ok().filter(|length| *length <= LONGEST);
            let refusal =
                || invalid_data(format!("`{}` bytes is not a valid length of a message", shorten_text(value)));
            length = Some(number.ok_or_else(refusal)?);
        }
    }
    let length = length.ok_or_else(|| invalid_data("a message without `Content-Length`"))?;
    let mut body = Vec::new();
    if input.by_ref().take(length).read_to_end(&mut body)? as u64 != length {
        return Ok(Frame::End);
    }
    // JSON that is no message leaves the frames in step, other bytes do not: the two are different errors.
    let value: serde_json::Value =
        serde_json::from_slice(&body).map_err(|error| invalid_data(format!("a message that is not JSON: {error}")))?;
    Ok(serde_json::from_value(value).map_or_else(|error| Frame::Strange(error.to_string()), Frame::Message))
}

fn invalid_data(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

/// As much of a text as a message shows.
fn shorten_text(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(input: &[u8]) -> String {
        match read_frame(&mut &*input) {
            Ok(Frame::Message(Message::Request(request))) => format!("request {}", request.method),
            Ok(Frame::Message(message)) => format!("{message:?}"),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn frames_are_read_and_others_are_told_from_them() {
        let body = br#"{"jsonrpc":"2.0","id":1,"method":"a"}"#;
        let with = |header: &str| {
            let mut bytes = header.as_bytes().to_vec();
            bytes.extend_from_slice(body);
            shown(&bytes)
        };
        assert_eq!(with("Content-Length: 37\r\n\r\n"), "request a");
        assert_eq!(with("content-length:37\nContent-Type: x\n\n"), "request a");
        assert_eq!(with("Content-Length: 38\r\n\r\n"), "End");
        assert_eq!(
            with("Content-Length: 36\r\n\r\n"),
            "a message that is not JSON: EOF while parsing an object at line 1 column 36"
        );
        assert_eq!(with("\r\n"), "a message without `Content-Length`");
        assert_eq!(
            with("Content-Length: 18446744073709551615\r\n\r\n"),
            "`18446744073709551615` bytes is not a valid length of a message"
        );
        assert_eq!(with("Content-Length: -1\r\n\r\n"), "`-1` bytes is not a valid length of a message");
        assert_eq!(with("hello\r\n"), "`hello` is not a header");
        assert_eq!(shown(b""), "End");
        assert_eq!(shown(&[b'x'; 10_000]), "a header without an end");
        assert!(shown(b"Content-Length: 2\r\n\r\n[]").starts_with("Strange"));
        assert!(shown(b"Content-Length: 2\r\n\r\n\xFF\xFF").starts_with("a message that is not JSON"));
    }

    #[test]
    fn a_length_reserves_nothing() {
        // It would take 128 MiB.
        assert_eq!(shown(b"Content-Length: 134217728\r\n\r\n{"), "End");
    }
}
