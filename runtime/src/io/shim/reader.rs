//! Reads the streams of a process that is held, from the files in which its shim keeps them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::open_plain;
use super::spool::{RING, Ring};
use crate::io::process::Sink;

/// What is read of a file at once.
const PIECE: usize = 256 * 1024;

/// What is read of the streams.
pub(super) struct Reader {
    files: [File; 2],
    ring: Ring,
    /// The bytes of both that were read, with those that are kept no more.
    pub read: [u64; 2],
    /// Of a stream whose beginning is kept no more: the rest of a line comes first.
    is_cut: [bool; 2],
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens the streams, which have these lengths, or longer ones by what their shim lets the process put out meanwhile.
    ///
    /// # Errors
    /// A file cannot be opened, or is shorter than what is kept of its stream.
    pub(super) fn open(folder: &Path, came: [u64; 2]) -> io::Result<Reader> {
        Reader::open_ring(folder, came, RING)
    }

    fn open_ring(folder: &Path, came: [u64; 2], ring: Ring) -> io::Result<Reader> {
        let open = |name: &str| open_plain(&folder.join(name));
        let files = [open("out")?, open("err")?];
        // Ahead of the first byte: what comes before a gap would be taken for all of it.
        for (file, came) in files.iter().zip(came) {
            if file.metadata()?.len() < ring.length(came) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let read = came.map(|came| ring.first(came));
        Ok(Reader { files, ring, is_cut: read.map(|first| first > 0), read, buffer: Vec::new() })
    }

    /// Opens the streams as [`Reader::open`] does, and goes on behind the bytes that were read of them before.
    ///
    /// # Errors
    /// As there.
    pub(super) fn open_behind(folder: &Path, came: [u64; 2], read: [u64; 2]) -> io::Result<Reader> {
        let mut reader = Reader::open(folder, came)?;
        for number in 0..2 {
            if read[number] >= reader.read[number] {
                (reader.read[number], reader.is_cut[number]) = (read[number].min(came[number]), false);
            }
        }
        Ok(reader)
    }

    /// Reads one piece of one of the streams, which have these lengths. None where all is read; else whether the process
    /// has reported its result, where it was standard output.
    pub(super) fn read_piece(&mut self, came: [u64; 2], sink: &mut dyn Sink) -> io::Result<Option<Option<bool>>> {
        Ok(self.next_piece(came)?.map(|(number, bytes)| match number {
            0 => Some(sink.stdout(bytes)),
            _ => {
                sink.stderr(bytes);
                None
            }
        }))
    }

    /// The next piece, and which of the streams has it; none where all is read.
    pub(super) fn next_piece(&mut self, came: [u64; 2]) -> io::Result<Option<(usize, &[u8])>> {
        let Some(number) = (0..2).find(|&number| self.read[number] < came[number]) else { return Ok(None) };
        let left = usize::try_from(came[number] - self.read[number]).map_or(PIECE, |left| left.min(PIECE));
        let (offset, room) = self.ring.place(self.read[number], left);
        // Most programs put out little, and memory that was never used is slow at first.
        self.buffer.resize(self.buffer.len().max(room), 0);
        let count = self.files[number].read_at(&mut self.buffer[..room], offset)?;
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
        Ok(Some((number, bytes)))
    }

    /// Gives the memory back that pieces were read in.
    pub(super) fn rest(&mut self) {
        self.buffer = Vec::new();
    }
}

/// Whether a stream is shorter than it was: only a file that was cut from outside is.
pub(super) fn is_cut(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::time::Instant;

    use tempfile::TempDir;

    use super::super::spool::Spool;
    use super::*;
    use crate::types::event::Process;

    const SMALL: Ring = Ring { kept: 16, spare: 4 };

    /// What is read of standard output, and whether that was said to be all that came before.
    #[derive(Default)]
    pub(in crate::io::shim) struct Seen {
        pub text: String,
        pub has_caught_up: bool,
    }

    impl Sink for Seen {
        fn stdout(&mut self, bytes: &[u8]) -> bool {
            self.text.push_str(std::str::from_utf8(bytes).expect("it is text"));
            false
        }
        fn stderr(&mut self, _: &[u8]) {}
        fn report_alive(&mut self, _: Process) {}
        fn due(&self) -> Option<Instant> {
            None
        }
        fn tick(&mut self, _: Instant) {}
        fn caught_up(&mut self) {
            self.has_caught_up = true;
        }
    }

    /// A folder with two streams, and the spool of the first.
    fn spool() -> (TempDir, Spool) {
        let folder = tempfile::tempdir().expect("a folder");
        let [out, _] = ["out", "err"].map(|name| File::create(folder.path().join(name)).expect("it can be created"));
        (folder, Spool::new(out, SMALL))
    }

    /// Moves all of `text` through a pipe.
    fn move_text(spool: &mut Spool, text: &str) {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(text.as_bytes()).expect("the pipe has room");
        drop(writer);
        while spool.move_from(reader.as_fd()).expect("the disk takes it") > 0 {}
    }

    /// What a runner reads that knows so many bytes.
    fn read_rest(reader: &mut Reader, came: u64) -> io::Result<String> {
        let mut seen = Seen::default();
        while reader.read_piece([came, 0], &mut seen)?.is_some() {}
        Ok(seen.text)
    }

    #[test]
    fn a_runner_that_keeps_up_reads_every_byte_of_a_stream_longer_than_its_file() {
        let (folder, mut spool) = spool();
        let mut reader = Reader::open_ring(folder.path(), [0; 2], SMALL).expect("it can be read");
        let (mut written, mut read) = (String::new(), String::new());
        for round in 0..50 {
            // Each piece begins elsewhere in the ring, and some go across its end.
            let piece: String = "abcdefghijklmno".chars().cycle().skip(round).take(round % 17).collect();
            match round % 2 {
                0 => move_text(&mut spool, &piece),
                _ => assert_eq!(spool.write(piece.as_bytes()), (piece.len(), true)),
            }
            written += &piece;
            read += &read_rest(&mut reader, spool.came).expect("it can be read");
        }
        assert_eq!(read, written);
        assert_eq!(std::fs::metadata(folder.path().join("out")).expect("it is there").len(), 20);
    }

    #[test]
    fn what_a_file_does_not_take_from_a_pipe_is_written_first() {
        let (folder, _) = spool();
        // A file that is only appended to takes nothing from a pipe.
        let out = File::options().append(true).open(folder.path().join("out")).expect("it can be opened");
        let mut spool = Spool::new(out, SMALL);
        let (pipe, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"first").expect("the pipe has room");
        assert_eq!(spool.move_from(pipe.as_fd()).expect("it is taken"), 5);
        assert_eq!((spool.came, spool.is_written()), (0, false));
        assert_eq!(spool.write(b" and more"), (14, true));
        assert!(spool.is_written());
        let mut reader = Reader::open_ring(folder.path(), [0; 2], SMALL).expect("it can be read");
        assert_eq!(read_rest(&mut reader, spool.came).expect("it can be read"), "first and more");
    }

    #[test]
    fn a_runner_that_comes_back_reads_the_last_whole_lines() {
        let (folder, mut spool) = spool();
        // Not yet written over, and with the end of the ring among what is kept.
        for (text, kept) in
            [("0\n23\n", "0\n23\n"), ("56789\n1234567\n9abcdef\n123", "9abcdef\n123"), ("4\n", "9abcdef\n1234\n")]
        {
            move_text(&mut spool, text);
            spool.read_again();
            let mut reader = Reader::open_ring(folder.path(), [spool.came, 0], SMALL).expect("it can be read");
            assert_eq!(reader.read, [spool.read, 0]);
            // What is spared for that may be written before the runner has read anything.
            let came = spool.came;
            assert_eq!(read_rest(&mut reader, came).expect("it can be read"), kept);
        }
        let mut reader = Reader::open_ring(folder.path(), [spool.came, 0], SMALL).expect("it can be read");
        spool.write(b"next");
        assert_eq!(read_rest(&mut reader, spool.came).expect("it can be read"), "9abcdef\n1234\nnext");
    }

    #[test]
    fn a_file_that_is_shorter_than_what_is_kept_is_cut() {
        for came in [10, 20, 50] {
            let (folder, mut spool) = spool();
            move_text(&mut spool, &"x".repeat(came));
            let came = spool.came;
            let mut reader = Reader::open_ring(folder.path(), [came, 0], SMALL).expect("it is whole");
            let out = File::options().write(true).open(folder.path().join("out")).expect("it can be opened");
            let whole = out.metadata().expect("it has a length").len();
            assert_eq!(whole, came.min(20));
            out.set_len(whole - 1).expect("it can be cut");
            let opened = Reader::open_ring(folder.path(), [came, 0], SMALL).map(|_| ());
            assert!(is_cut(&opened.expect_err("it is cut")), "{came}");
            out.set_len(0).expect("it can be cut");
            assert!(is_cut(&read_rest(&mut reader, came).expect_err("it is cut")), "{came}");
        }
    }
}
