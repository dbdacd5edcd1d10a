//! A run as an archive, for a report about it: its folder below `runs/RUN`, and its outputs below `outputs/RUN`.
//!
//! In: the folder of a run, which may still grow. Out: the bytes of a tar archive (POSIX.1-2001), as a body that is made
//! while the client reads it. Invariants: nothing outside of both folders is read, whatever an agent put there: no link is
//! followed; a file has in the archive as many bytes as its head says. swarmc writes no value of a secret to these folders;
//! a program that prints one does.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use swarmc_runtime::{RunFolder, SNAPSHOTS};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::handlers::files::open_beneath;

/// Everything in an archive comes in blocks of so many bytes.
const BLOCK: usize = 512;

/// The bytes of one piece for the client, and the pieces that wait for it.
const PIECE: usize = 64 * 1024;
const PIECES: usize = 4;

/// The bytes of a path in the head of a file; a longer one has a head of its own.
const NAME: usize = 100;

/// The folders below one another that are looked into.
const DEEPEST: usize = 16;

/// The lock and the socket of a run mean nothing elsewhere.
const LEFT_OUT: &[&str] = &["lock", "control.sock"];

/// The body of an archive.
#[derive(Debug)]
pub(crate) struct Archive {
    pieces: Receiver<Bytes>,
}

impl Archive {
    /// Begins to make the archive of a run.
    pub(crate) fn open(folder: RunFolder) -> Archive {
        let (sender, pieces) = mpsc::channel(PIECES);
        tokio::task::spawn_blocking(move || {
            let mut writer = Writer { sender, buffer: Vec::with_capacity(PIECE) };
            // It ends with the client.
            let _ = writer.write_run(&folder);
        });
        Archive { pieces }
    }
}

impl Body for Archive {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// The client has gone.
struct Gone;

/// Where the archive goes.
struct Writer {
    sender: Sender<Bytes>,
    buffer: Vec<u8>,
}

impl Writer {
    fn write_run(&mut self, folder: &RunFolder) -> Result<(), Gone> {
        for (root, top) in [(&folder.path, "runs"), (&folder.outputs, "outputs")] {
            for path in list_files(root) {
                let name = format!("{top}/{}/{}", folder.id, path.display());
                // What cannot be read, or went meanwhile, is left out.
                if let Ok(file) = open_beneath(root, &path) {
                    self.write_file(&name, file)?;
                }
            }
        }
        // The end is two empty blocks.
        self.push(&[0; 2 * BLOCK])?;
        self.flush()
    }

    fn write_file(&mut self, name: &str, file: File) -> Result<(), Gone> {
        let Some(metadata) = file.metadata().ok().filter(|metadata| metadata.is_file()) else { return Ok(()) };
        let (size, mtime) = (metadata.len(), metadata.mtime().max(0).unsigned_abs());
        if name.len() > NAME {
            let record = build_record("path", name);
            self.push(&build_head("pax", record.len() as u64, mtime, b'x'))?;
            self.push(record.as_bytes())?;
            self.pad(record.len() as u64)?;
        }
        self.push(&build_head(name, size, mtime, b'0'))?;
        let (mut from, mut left) = (file, size);
        let mut bytes = vec![0; PIECE];
        while left > 0 {
            let most = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = match from.read(&mut bytes[..most]) {
                Ok(read) if read > 0 => read,
                // It got shorter meanwhile: its head has been sent.
                _ => {
                    bytes[..most].fill(0);
                    most
                }
            };
            self.push(&bytes[..read])?;
            left -= read as u64;
        }
        self.pad(size)
    }

    /// Fills the last block of something of so many bytes.
    fn pad(&mut self, size: u64) -> Result<(), Gone> {
        let over = (size % BLOCK as u64) as usize;
        if over == 0 { Ok(()) } else { self.push(&[0; BLOCK][over..]) }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Gone> {
        self.sender.blocking_send(Bytes::from(std::mem::take(&mut self.buffer))).map_err(|_| Gone)
    }
}

/// The files below a folder, by their paths in it, in order.
fn list_files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for entry in std::fs::read_dir(root.join(&folder)).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), folder.join(entry.file_name()));
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && (depth >= DEEPEST || path == Path::new(SNAPSHOTS)) {
                continue;
            } else if kind.is_dir() {
                open.push((path, depth + 1));
            } else if kind.is_file() && !LEFT_OUT.iter().any(|left| name.as_os_str() == *left) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The head of a file of so many bytes.
fn build_head(name: &str, size: u64, mtime: u64, kind: u8) -> [u8; BLOCK] {
    let mut head = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name.as_bytes()[..name.len().min(NAME)]);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, &format_number(size));
    put(136, &format_number(mtime));
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    head
}

/// A number of twelve bytes: octal digits, and binary where they have no room.
fn format_number(number: u64) -> [u8; 12] {
    let mut field = [0; 12];
    let digits = format!("{number:011o}");
    if digits.len() <= 11 {
        field[..11].copy_from_slice(digits.as_bytes());
    } else {
        field[0] = 0x80;
        field[4..].copy_from_slice(&number.to_be_bytes());
    }
    field
}

/// A record of an extended head: its own length, the key and the value.
fn build_record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    // The digits of the length count as well.
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_those_of_the_standard() {
        let head = build_head("runs/r/journal.jsonl", 1_000, 0, b'0');
        assert_eq!(&head[..21], b"runs/r/journal.jsonl\0");
        assert_eq!(&head[124..136], b"00000001750\0");
        let byte = |(at, byte): (usize, &u8)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) };
        let blank: u32 = head.iter().enumerate().map(byte).sum();
        assert_eq!(&head[148..156], format!("{blank:06o}\0 ").as_bytes());
        assert_eq!(format_number(8 << 30)[..4], [0x80, 0, 0, 0]);
        assert_eq!(build_record("path", "a"), "9 path=a\n");
        // Its own digits count: one more letter makes it two longer.
        for (letters, length) in [(90, 99), (91, 101)] {
            let record = build_record("path", &"a".repeat(letters));
            assert!(record.len() == length && record.starts_with(&format!("{length} ")), "{record}");
        }
    }
}
