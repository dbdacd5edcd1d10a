//! Cuts a stream into lines, none longer than a limit: what is longer is counted and dropped.

use memchr::memchr;

/// A line buffer of this size is kept for the next line; a larger one is given back.
const KEPT: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Lines {
    limit: usize,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    /// Whether the line that has not ended is too long already.
    too_long: bool,
    skipped: u64,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Lines {
        Lines { limit, partial: Vec::new(), too_long: false, skipped: 0 }
    }

    /// Hands out every line that ends in `bytes`, without its newline.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(&[u8])) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.partial.is_empty() && !self.too_long && line.len() <= self.limit {
                each(line);
            } else {
                self.keep(line);
                self.finish(each);
            }
        }
        self.keep(bytes);
    }

    /// Hands out the line that has not ended, if there is one.
    pub(crate) fn finish(&mut self, each: &mut dyn FnMut(&[u8])) {
        if std::mem::take(&mut self.too_long) {
            self.skipped += 1;
        } else if !self.partial.is_empty() {
            each(&self.partial);
        }
        self.partial.clear();
        self.partial.shrink_to(KEPT);
    }

    /// The lines that were too long.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether the line that has not ended is too long.
    pub(crate) fn is_too_long(&self) -> bool {
        self.too_long
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.partial.len() + bytes.len() > self.limit {
            self.too_long = true;
            self.partial = Vec::new();
        }
        if !self.too_long {
            self.partial.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(limit: usize, chunks: &[&str]) -> (Vec<String>, u64) {
        let mut lines = Lines::new(limit);
        let mut seen = Vec::new();
        let mut each = |line: &[u8]| seen.push(String::from_utf8_lossy(line).into_owned());
        for chunk in chunks {
            lines.feed(chunk.as_bytes(), &mut each);
        }
        lines.finish(&mut each);
        (seen, lines.skipped())
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let expected = (vec!["one".to_owned(), "two".to_owned(), "three".to_owned()], 0);
        assert_eq!(cut(9, &["one\ntwo\nthree"]), expected);
        assert_eq!(cut(9, &["o", "ne", "\n", "two\nth", "", "ree\n"]), expected);
    }

    #[test]
    fn a_line_over_the_limit_is_dropped_and_counted_and_the_next_one_is_read() {
        let expected = (vec!["short".to_owned()], 2);
        assert_eq!(cut(5, &["longer\nshort\nlonger"]), expected);
        assert_eq!(cut(5, &["lon", "ger\nsh", "ort\nlong", "er"]), expected);
    }
}
