//! Standard output and standard error: whether they are terminals, their colours and width, and writing to them
//! without a buffer.
//!
//! A reader that went away (`| head`) is no error. Text from outside passes through [`make_printable`] on its way to a
//! terminal, so that only this program sends control characters there.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

use miette::IntoDiagnostic;

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

/// The text without anything that a terminal would obey: escape sequences are cut out, other control characters and
/// marks that reorder text become `\u{FFFD}`. Tabs stay. A carriage return becomes a sign, since a terminal would hide what
/// stands before it; one at the end of the line goes.
pub(crate) fn make_printable(line: &str) -> Cow<'_, str> {
    if !line.chars().any(is_control) {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut chars = line.trim_end_matches('\r').chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_escape(&mut chars),
            '\r' => out.push('␍'),
            c if is_control(c) => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Replaces what a terminal would obey by as many bytes, so that offsets stay right. Line breaks and tabs stay.
pub(crate) fn same_length(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_control(c) && !matches!(c, '\n' | '\r')) {
        return Cow::Borrowed(text);
    }
    let replace = |c: char| match c {
        '\n' | '\r' => c,
        c if !is_control(c) => c,
        c if c.len_utf8() == 1 => '?',
        c if c.len_utf8() == 2 => '\u{B7}',
        _ => '\u{FFFD}',
    };
    Cow::Owned(text.chars().map(replace).collect())
}

fn is_control(c: char) -> bool {
    let reorders = matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\t') || reorders
}

/// Skips what follows an escape character: a control sequence, a string up to its terminator, or one character.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next_if(|c| (' '..='~').contains(c)) {
        Some('[') => {
            while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
            chars.next_if(|c| ('@'..='~').contains(c));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next() {
                if c == '\x07' || (c == '\x1b' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        _ => {}
    }
}

/// Whether standard output is a pipe, whose reader (`| tee log`) may write to our terminal at any time.
pub(crate) fn out_is_pipe() -> bool {
    let kind = |stat: rustix::fs::Stat| rustix::fs::FileType::from_raw_mode(stat.st_mode);
    rustix::fs::fstat(std::io::stdout()).is_ok_and(|stat| kind(stat).is_fifo())
}

/// Waits until the reader of standard output is gone; false when that cannot be known.
pub(crate) fn out_is_gone() -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_cut_out() {
        assert_eq!(make_printable("plain\ttext é"), "plain\ttext é");
        assert_eq!(make_printable("\x1b[31mred\x1b[0m"), "red");
        assert_eq!(make_printable("\x1b]0;title\x07text\x1b]8;;u\x1b\\x"), "textx");
        assert_eq!(make_printable("a\x1b[2J\x1b[Hb\x08\x07"), "ab\u{FFFD}\u{FFFD}");
        assert_eq!(make_printable("\u{9b}31m\u{202e}x"), "\u{FFFD}31m\u{FFFD}x");
        assert_eq!(make_printable("unfinished \x1b[12"), "unfinished ");
        assert_eq!(make_printable("unfinished \x1b]0;never"), "unfinished ");
        assert_eq!(make_printable("\x1b\x1b[31mx"), "x");
    }

    #[test]
    fn a_carriage_return_hides_nothing() {
        assert_eq!(make_printable("10%\r50%\r100%"), "10%␍50%␍100%");
        assert_eq!(make_printable("rm -rf /\r\x1b[2Kls"), "rm -rf /␍ls");
        assert_eq!(make_printable("text\r"), "text");
    }

    #[test]
    fn replacing_keeps_every_offset() {
        for text in ["a\x1bb", "a\u{9b}b", "a\u{202e}b\r\n\tc", "plain"] {
            let same = same_length(text);
            assert_eq!(same.len(), text.len());
            assert!(!same.chars().any(|c| is_control(c) && !matches!(c, '\n' | '\r')));
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
