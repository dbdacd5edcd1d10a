//! Unix sockets, as the control socket of a run and the door of scripts use them: a line asks, and a line answers.
//!
//! Invariant: whoever is at the other end, what is begun here ends at a moment that was known before.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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

/// Says a line to whoever listens at `socket`, and reads a line of so many bytes at most; all of it within `patience`.
///
/// # Errors
/// Nobody listens, or nobody answers in time: says so.
pub(crate) fn ask(socket: &Path, line: &str, longest: u64, patience: Duration) -> io::Result<String> {
    let until = Instant::now() + patience;
    let asked = || {
        // Where more wait than a socket has room for, it is the time-out for sending that ends the wait.
        let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&stream, Timeout::Send, Some(patience))?;
        through(socket, |path| Ok(connect(&stream, &SocketAddrUnix::new(path)?)?))?;
        let stream = UnixStream::from(stream);
        let mut timed = Timed { stream: &stream, until };
        timed.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(timed.take(longest)).read_line(&mut answer)?;
        Ok(answer)
    };
    asked().map_err(|error: io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, format!("it has not answered within {} s", patience.as_secs()))
        }
        _ => error,
    })
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
