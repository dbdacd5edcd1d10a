//! Unix sockets, as the control socket of a run and the agent server use them: a line asks, and a line answers.
//!
//! Invariant: every exchange ends at a moment that is known before, whatever the other end does.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Does something with a socket however long its path is: an address holds about 100 bytes, so that both ends go
/// through `/proc/self/fd`.
pub(crate) fn through<T>(socket: &Path, act: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    let parts = socket.parent().zip(socket.file_name());
    let (folder, name) = parts.ok_or_else(|| io::Error::other("it is no path of a socket"))?;
    let directory = File::open(folder)?;
    act(PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name))
}

/// Says a line to the process that listens at `socket`, and reads a line of so many bytes at most; all of it within
/// `patience`.
///
/// # Errors
/// Nothing listens, or no answer comes in time: says so.
pub(crate) fn ask(socket: &Path, line: &str, longest: u64, patience: Duration) -> io::Result<String> {
    let until = Instant::now() + patience;
    let asked = Connection::open(socket, until).and_then(|mut connection| connection.ask(line, longest, until));
    asked.map_err(|error| late(error, patience))
}

/// An error as people read it, after so much patience.
pub(crate) fn late(error: io::Error, patience: Duration) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, format!("it has not answered within {} s", patience.as_secs()))
        }
        _ => error,
    }
}

/// A connection on which lines ask and lines answer.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Connects to the process that listens at `socket`.
    ///
    /// # Errors
    /// Nothing listens, or it takes no connection until then.
    pub(crate) fn open(socket: &Path, until: Instant) -> io::Result<Connection> {
        // Where more wait than a socket holds, the time-out for sending ends the wait.
        let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&stream, Timeout::Send, Some(until.saturating_duration_since(Instant::now())))?;
        through(socket, |path| Ok(connect(&stream, &SocketAddrUnix::new(path)?)?))?;
        Ok(Connection { stream: UnixStream::from(stream) })
    }

    /// Says a line, and reads a line of so many bytes at most.
    ///
    /// # Errors
    /// The other end is gone, or no answer comes until then.
    pub(crate) fn ask(&mut self, line: &str, longest: u64, until: Instant) -> io::Result<String> {
        Timed { stream: &self.stream, until }.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(Timed { stream: &self.stream, until }.take(longest)).read_line(&mut answer)?;
        Ok(answer)
    }

    /// Whether the other end has neither closed it nor said anything that was not asked for.
    pub(crate) fn is_open(&self) -> bool {
        poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&Timespec::default())) == Ok(0)
    }
}

/// A connection that is read and written until a moment, however slow its other end is.
pub(crate) struct Timed<'s> {
    pub stream: &'s UnixStream,
    pub until: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        let mut stream = self.stream;
        stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        let mut stream = self.stream;
        stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
