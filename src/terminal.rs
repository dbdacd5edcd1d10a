//! Standard output and standard error: whether they are terminals, their colours and width, and writing to them
//! without a buffer.
//!
//! A reader that went away (`| head`) is no error. Text from outside passes through [`swarmc_view::make_printable`] on its
//! way to a terminal, so that only this program sends control characters there.

use std::io::{IsTerminal, Write};

use miette::IntoDiagnostic;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One of the two streams we write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

impl Stream {
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Stream::Out => std::io::stdout().is_terminal(),
            Stream::Err => std::io::stderr().is_terminal(),
        }
    }

    /// Whether a live display can be drawn: a terminal that knows how to move its cursor.
    pub(crate) fn is_live(self) -> bool {
        self.is_terminal() && !is_dumb()
    }

    /// Whether a person sits at this terminal: no CI does, and it is the one that keys come from, not one that another program
    /// made to capture what this one prints.
    pub(crate) fn is_watched(self) -> bool {
        let group = match self {
            Stream::Out => rustix::termios::tcgetpgrp(std::io::stdout()),
            Stream::Err => rustix::termios::tcgetpgrp(std::io::stderr()),
        };
        let has_keys = std::io::stdin().is_terminal() || group.is_ok();
        self.is_live() && has_keys && std::env::var_os("CI").is_none()
    }

    pub(crate) fn paint(self) -> Paint {
        Paint { colour: wants_colour(self.is_terminal() && !is_dumb(), |name| std::env::var(name).ok()) }
    }

    /// Columns and rows; 80 by 24 where the size is unknown.
    pub(crate) fn size(self) -> (usize, usize) {
        let size = match self {
            Stream::Out => rustix::termios::tcgetwinsize(std::io::stdout()),
            Stream::Err => rustix::termios::tcgetwinsize(std::io::stderr()),
        };
        match size {
            // A pseudo terminal whose size was never set reports 0 by 0.
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => (80, 24),
        }
    }

    fn wait_writable(self) -> std::io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let mut fds = match self {
            Stream::Out => [PollFd::new(&stdout, PollFlags::OUT)],
            Stream::Err => [PollFd::new(&stderr, PollFlags::OUT)],
        };
        match poll(&mut fds, None) {
            // The caller writes again, and waits again if that is too early.
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        loop {
            let written = match self {
                Stream::Out => rustix::io::write(std::io::stdout(), bytes),
                Stream::Err => rustix::io::write(std::io::stderr(), bytes),
            };
            match written {
                Ok(count) => return Ok(count),
                Err(rustix::io::Errno::INTR) => {}
                // Another program may have made our terminal non-blocking.
                Err(rustix::io::Errno::AGAIN) => self.wait_writable()?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// There is no buffer.
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Prints to standard output.
pub(crate) fn print(text: impl AsRef<[u8]>) -> miette::Result<()> {
    match Stream::Out.write_all(text.as_ref()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).into_diagnostic().map_err(|error| error.wrap_err("cannot write to standard output"))
        }
        _ => Ok(()),
    }
}

/// Prints to standard error; ignores a failure, as there is no other place to report it.
pub(crate) fn eprint(text: impl AsRef<[u8]>) {
    let _ = Stream::Err.write_all(text.as_ref());
}

/// Puts colours on text, or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    pub(crate) colour: bool,
}

impl Paint {
    /// No colours, for what goes into files.
    pub(crate) const NONE: Paint = Paint { colour: false };

    fn wrap_code(self, code: &str, text: &str) -> String {
        match self.colour && !text.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap_code("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap_code("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.wrap_code("1;31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.wrap_code("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.wrap_code("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.wrap_code("36", text)
    }

    /// One of six colours that tell neighbours apart, the same for the same index.
    pub(crate) fn nth_colour(self, index: usize, text: &str) -> String {
        self.wrap_code(["36", "33", "35", "32", "34", "96"][index % 6], text)
    }
}

/// Waits until the reader of standard output is gone; false when that cannot be known.
fn out_is_gone() -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdout = std::io::stdout();
    // `poll` reports the end of the pipe without being asked for it.
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    loop {
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => return outcome.is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
        }
    }
}

/// Ends the process as soon as its standard output has no reader any more: a write would tell, but none may come.
pub(crate) fn exit_without_reader() {
    std::thread::spawn(|| {
        if out_is_gone() {
            std::process::exit(crate::exit::Exit::Done as i32);
        }
    });
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// <https://no-color.org> and <https://bixense.com/clicolors>.
fn wants_colour(terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if set("NO_COLOR").is_some() {
        return false;
    }
    if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return true;
    }
    terminal && set("CLICOLOR").is_none_or(|value| value != "0")
}

/// The text in this many columns; the last one says that it goes on, where it does.
pub(crate) fn cut_text(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = take_columns(text, width.saturating_sub(1)).to_owned();
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// As much of the beginning as fits so many columns.
pub(crate) fn take_columns(text: &str, width: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, sign)| {
        used += sign.width().unwrap_or(0);
        used > width
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_says_that_it_goes_on() {
        for (text, width, expected) in
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("界界", 3, "界…"), ("界界", 2, "…"), ("ab", 1, "…"), ("ab", 0, "")]
        {
            assert_eq!(cut_text(text, width), expected, "{text} {width}");
        }
    }

    #[test]
    fn colours_follow_the_environment() {
        let check = |terminal, variables: &[(&str, &str)]| {
            wants_colour(terminal, |name| variables.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned()))
        };
        assert!(check(true, &[]));
        assert!(!check(false, &[]));
        assert!(!check(true, &[("NO_COLOR", "1")]));
        assert!(check(true, &[("NO_COLOR", "")]));
        assert!(!check(true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]));
        assert!(check(false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!check(false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!check(true, &[("CLICOLOR", "0")]));
        assert!(check(true, &[("CLICOLOR", "1")]));
    }
}
