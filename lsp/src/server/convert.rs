//! Between the protocol's terms and ours: addresses and paths, positions and offsets.

use std::ops;
use std::path::{Path, PathBuf};

use gen_lsp_types::{Position, Range, Uri};
use swarmc_compiler::SourceFile;

/// What the `character` of a position counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Bytes.
    Utf8,
    /// Code units of UTF-16: what every client knows.
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// The units of a text.
    pub(super) fn count_units(self, text: &str) -> u32 {
        u32::try_from(text.chars().map(|sign| self.char_width(sign)).sum::<usize>()).unwrap_or(u32::MAX)
    }

    /// The units of a character.
    fn char_width(self, sign: char) -> usize {
        match self {
            Encoding::Utf8 => sign.len_utf8(),
            Encoding::Utf16 => sign.len_utf16(),
            Encoding::Utf32 => 1,
        }
    }
}

/// The path that a `file:` address names; none of another scheme or host.
pub(super) fn to_path(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_ref().strip_prefix("file://")?;
    // RFC 8089 lets an address name its own machine.
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        return None;
    }
    let decoded = percent_encoding::percent_decode_str(rest).decode_utf8().ok()?;
    // `/C:/flow.kdl` of a system with drives.
    let drive = decoded.as_bytes().get(2) == Some(&b':') && cfg!(windows);
    Some(PathBuf::from(if drive { &decoded[1..] } else { &*decoded }))
}

/// The address of a file.
pub(super) fn to_uri(path: &Path) -> Uri {
    /// What a path keeps as it is: the unreserved characters of RFC 3986, and `/`.
    const KEPT: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
    let shown = path.to_string_lossy().replace('\\', if cfg!(windows) { "/" } else { "\\" });
    let slash = if shown.starts_with('/') { "" } else { "/" };
    Uri(format!("file://{slash}{}", percent_encoding::utf8_percent_encode(&shown, KEPT)))
}

/// The offset of a position; one past the end of a line or of the text is that end, as the protocol has it.
pub(super) fn to_offset(source: &SourceFile, position: Position, encoding: Encoding) -> usize {
    let line = position.line as usize + 1;
    let start = source.offset(line, 1);
    let wanted = position.character as usize;
    let mut units = 0;
    for (at, sign) in source.line(line).char_indices() {
        // A position inside a character, such as between two surrogates, means its start.
        if units + encoding.char_width(sign) > wanted {
            return start + at;
        }
        units += encoding.char_width(sign);
    }
    start + source.line(line).len()
}

/// The position of an offset.
pub(super) fn to_position(source: &SourceFile, at: usize, encoding: Encoding) -> Position {
    let at = source.text().floor_char_boundary(at);
    let line = source.position(at).line;
    let start = source.offset(line, 1);
    let units: usize = source.text()[start..at].chars().map(|sign| encoding.char_width(sign)).sum();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Position { line: number(line - 1), character: number(units) }
}

/// The range of some bytes.
pub(super) fn to_range(source: &SourceFile, bytes: &ops::Range<usize>, encoding: Encoding) -> Range {
    Range { start: to_position(source, bytes.start, encoding), end: to_position(source, bytes.end, encoding) }
}

/// The bytes of a range; one whose end comes first is empty.
pub(super) fn to_bytes(source: &SourceFile, range: Range, encoding: Encoding) -> ops::Range<usize> {
    let start = to_offset(source, range.start, encoding);
    start..to_offset(source, range.end, encoding).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_what_the_client_counts() {
        let source = SourceFile::new("a.md".to_owned(), "a\n😀é<<x\r\nlast".into());
        let check = |encoding: Encoding, line: u32, character: u32, rest: &str| {
            let at = to_offset(&source, Position { line, character }, encoding);
            assert!(source.text()[at..].starts_with(rest), "{encoding:?} {line}:{character} is {at}");
            let back = to_position(&source, at, encoding);
            assert_eq!(to_offset(&source, back, encoding), at);
        };
        check(Encoding::Utf8, 1, 6, "<<x");
        check(Encoding::Utf16, 1, 3, "<<x");
        check(Encoding::Utf32, 1, 2, "<<x");
        // Inside a character is before it; past the end of a line is its end, past the text its end.
        check(Encoding::Utf16, 1, 1, "😀");
        check(Encoding::Utf16, 1, 999, "\r\nlast");
        check(Encoding::Utf16, 999, 0, "");
        assert_eq!(to_offset(&source, Position { line: 999, character: 7 }, Encoding::Utf16), source.text().len());
    }

    #[test]
    fn addresses_are_paths() {
        let there_and_back = |path: &str| self::to_path(&to_uri(Path::new(path)));
        for path in ["/a/b.kdl", "/with space/ü#?%.md", "/a:b"] {
            assert_eq!(there_and_back(path).as_deref(), Some(Path::new(path)), "{path}");
        }
        assert_eq!(to_path(&Uri("file:///a%20b".to_owned())), Some(PathBuf::from("/a b")));
        for other in ["untitled:one", "http://x/a.kdl", "file://host/a.kdl", "", "file:///%FF"] {
            assert_eq!(to_path(&Uri(other.to_owned())), None, "{other}");
        }
    }
}
