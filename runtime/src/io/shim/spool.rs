//! One stream of a process that is held, in a file of limited length: a ring, whose space is used again and again.
//!
//! A process that puts out much costs no more of the disk than what is kept, and the system writes over pages in memory
//! that it need not find new blocks for.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};

use crate::io::home::create_private;

/// The bytes that are moved at once: as many as the largest pipe holds.
const MOVED: usize = 1 << 20;

/// The bytes that a pipe holds at first.
const PIPE: usize = 64 << 10;

/// The file of each stream. What is kept is as much as a log has of a stream.
pub(super) const RING: Ring = Ring { kept: 256 << 20, spare: MOVED as u64 };

/// Where the bytes of a stream lie: byte `n` at `n` modulo the length of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    /// The last bytes of the stream that can be read.
    pub kept: u64,
    /// The bytes beside them that may be written over meanwhile.
    pub spare: u64,
}

impl Ring {
    /// The first byte that can be read of a stream with so many.
    pub(super) fn first(self, came: u64) -> u64 {
        came.saturating_sub(self.kept)
    }

    /// How long the file is at least.
    pub(super) fn length(self, came: u64) -> u64 {
        came.min(self.kept + self.spare)
    }

    /// Where a byte lies in the file, and how many of the next `most` bytes follow it there.
    pub(super) fn place(self, byte: u64, most: usize) -> (u64, usize) {
        let length = self.kept + self.spare;
        let offset = byte % length;
        (offset, usize::try_from(length - offset).map_or(most, |room| room.min(most)))
    }
}

/// The end of the shim, which writes.
pub(crate) struct Spool {
    file: File,
    ring: Ring,
    /// The bytes of the stream so far, and those of them that the runner has read.
    pub came: u64,
    pub read: u64,
    /// What was read of the program, and is still to be written: no more than is read at once.
    pending: Vec<u8>,
    /// A pipe through which bytes go to the file. The system locks the pipe that it writes to a file from: from the pipe of
    /// the program, the program would wait for each write.
    between: Option<(PipeReader, PipeWriter)>,
}

/// The files of both streams of a process, in its folder: empty.
pub(crate) fn create_spools(folder: &Path) -> io::Result<[Spool; 2]> {
    create_private(folder, true)?;
    let create = |name: &str| {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(folder.join(name))?;
        Ok::<_, io::Error>(Spool::new(file, RING))
    };
    Ok([create("out")?, create("err")?])
}

impl Spool {
    pub(super) fn new(file: File, ring: Ring) -> Spool {
        Spool { file, ring, came: 0, read: 0, pending: Vec::new(), between: None }
    }

    /// The bytes that the runner may still read.
    pub(super) fn unread(&self) -> u64 {
        self.came.saturating_sub(self.read)
    }

    /// Another runner reads from the first byte that is kept.
    pub(super) fn read_again(&mut self) {
        self.read = self.ring.first(self.came);
    }

    /// Moves what a pipe holds into the file, up to the end of the ring: how many bytes, and zero at the end of the stream.
    /// What the file does not take is pending then.
    ///
    /// # Errors
    /// Nothing was moved.
    pub(super) fn move_from(&mut self, pipe: BorrowedFd<'_>) -> io::Result<usize> {
        let (mut offset, room) = self.ring.place(self.came, MOVED);
        if self.between.is_none() {
            self.between = Some(io::pipe()?);
        }
        let Some((reader, writer)) = &mut self.between else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let count = splice(pipe, None, &*writer, None, room, SpliceFlags::NONBLOCK)?;
        let mut left = count;
        while left > 0 {
            match splice(&*reader, None, &self.file, Some(&mut offset), left, SpliceFlags::empty()) {
                Ok(written) if written > 0 => left -= written,
                Err(Errno::INTR) => {}
                _ => break,
            }
        }
        self.came += (count - left) as u64;
        if left > 0 {
            self.pending.resize(left, 0);
            reader.read_exact(&mut self.pending)?;
        } else if count == PIPE {
            // Beyond what this user may have, the pipe stays as it is.
            let _ = fcntl_setpipe_size(&*writer, MOVED);
        }
        Ok(count)
    }

    /// Whether what was taken of the program is all in the file.
    pub(super) fn is_written(&self) -> bool {
        self.pending.is_empty()
    }

    /// Writes what was read, as far as the disk takes it: how many bytes, and whether that is all.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> (usize, bool) {
        self.pending.extend_from_slice(bytes);
        let mut written = 0;
        while written < self.pending.len() {
            let rest = &self.pending[written..];
            let (offset, room) = self.ring.place(self.came, rest.len());
            match self.file.write_at(&rest[..room], offset) {
                Ok(count) if count > 0 => {
                    self.came += count as u64;
                    written += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        self.pending.drain(..written);
        (written, self.pending.is_empty())
    }

    /// Drops what the disk did not take.
    pub(super) fn drop_pending(&mut self) {
        self.pending.clear();
    }
}
