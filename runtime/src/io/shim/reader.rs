//! Reads the streams of a process that is held, from the files in which its shim keeps them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{SeekFrom, seek};

use super::open_plain;
use crate::io::process::Sink;

/// What is read of a file at once.
const PIECE: usize = 256 * 1024;

/// What is read of the streams.
pub(super) struct Reader {
    files: [File; 2],
    /// The bytes of both that were read.
    pub read: [u64; 2],
    /// Of a stream whose beginning was given back to the disk: the rest of a line comes first.
    is_cut: [bool; 2],
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens the streams, which have at least these lengths.
    pub(super) fn open(folder: &Path, came: [u64; 2]) -> io::Result<Reader> {
        let open = |name: &str| open_plain(&folder.join(name));
        let files = [open("out")?, open("err")?];
        // Ahead of the first byte: what comes before a gap would be taken for all of it.
        for (file, came) in files.iter().zip(came) {
            if file.metadata()?.len() < came {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        // What was given back reads as zeros.
        let first = |file: &File| seek(file, SeekFrom::Data(0)).unwrap_or(0);
        let read = [first(&files[0]), first(&files[1])];
        Ok(Reader { files, is_cut: read.map(|first| first > 0), read, buffer: Vec::new() })
    }

    /// Reads one piece of one of the streams, which have these lengths. None where all is read; else whether the process
    /// has reported its result, where it was standard output.
    pub(super) fn read_piece(&mut self, came: [u64; 2], sink: &mut dyn Sink) -> io::Result<Option<Option<bool>>> {
        let Some(number) = (0..2).find(|&number| self.read[number] < came[number]) else { return Ok(None) };
        let room = usize::try_from(came[number] - self.read[number]).map_or(PIECE, |left| left.min(PIECE));
        // Most programs put out little, and memory that was never used is slow at first.
        self.buffer.resize(self.buffer.len().max(room), 0);
        let count = self.files[number].read_at(&mut self.buffer[..room], self.read[number])?;
        if count == 0 {
            // Only a file that was cut from outside is shorter than it was said to be.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read[number] += count as u64;
        let mut bytes = &self.buffer[..count];
        if self.is_cut[number] {
            let end = bytes.iter().position(|&byte| byte == b'\n');
            self.is_cut[number] = end.is_none();
            bytes = end.map_or(&[][..], |end| &bytes[end + 1..]);
        }
        Ok(Some(match number {
            0 => Some(sink.stdout(bytes)),
            _ => {
                sink.stderr(bytes);
                None
            }
        }))
    }
}

/// Whether a stream is shorter than it was: only a file that was cut from outside is.
pub(super) fn is_cut(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}
