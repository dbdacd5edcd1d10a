//! The characters of KDL: what may stand in words, what is space, what breaks a line, what is forbidden.
//!
//! Bytes are told apart by tables; only the few lead bytes that may start a special character need the character itself.

/// What a byte starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A character of words.
    Word,
    /// A space or tab.
    Space,
    /// A line break.
    Newline,
    /// A control character that may stand nowhere.
    Forbidden,
    /// One of `"#/\(){}[];=`.
    Mark,
    /// A character outside ASCII that is perhaps special: see [`classify`].
    Unsure,
}

/// What each byte starts.
pub(super) static CLASSES: [Class; 256] = build_classes();

/// The bytes that end the plain part of a quoted string: quotes, backslashes, controls, and the lead bytes of characters
/// outside ASCII that break lines or are forbidden.
pub(super) static STOPS: [bool; 256] = build_stops();

const fn build_classes() -> [Class; 256] {
    let mut table = [Class::Word; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t' => Class::Space,
            b'\n' | b'\r' | 0x0B | 0x0C => Class::Newline,
            0..=0x1F | 0x7F => Class::Forbidden,
            b'"' | b'#' | b'/' | b'\\' | b'(' | b')' | b'{' | b'}' | b'[' | b']' | b';' | b'=' => Class::Mark,
            // The first bytes of the special characters in `classify_char`.
            0xC2 | 0xE1 | 0xE2 | 0xE3 | 0xEF => Class::Unsure,
            _ => Class::Word,
        };
        byte += 1;
    }
    table
}

const fn build_stops() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let byte_value = byte as u8;
        table[byte] =
            // 0xE1 and 0xE3 begin spaces alone, which a string may hold.
            matches!(byte_value, b'"' | b'\\' | 0x7F | 0xC2 | 0xE2 | 0xEF) || byte < 0x20 && byte_value != b'\t';
        byte += 1;
    }
    table
}

/// What a character is; the byte order mark is forbidden, except that the lexer takes it at the start.
pub(super) fn classify_char(character: char) -> Class {
    match character {
        '\u{85}' | '\u{2028}' | '\u{2029}' => Class::Newline,
        '\u{A0}' | '\u{1680}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => Class::Space,
        '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}' => Class::Forbidden,
        character if character.is_ascii() => CLASSES[character as usize],
        // The further bytes of a character belong here too: `word_end` passes them without decoding.
        _ => Class::Word,
    }
}

/// What stands at an offset that is a character boundary, and its length in bytes; a CRLF is one line break. None at the end.
pub(super) fn class_at(text: &str, offset: usize) -> Option<(Class, usize)> {
    let byte = *text.as_bytes().get(offset)?;
    match CLASSES[byte as usize] {
        Class::Newline if byte == b'\r' && text.as_bytes().get(offset + 1) == Some(&b'\n') => Some((Class::Newline, 2)),
        class if byte < 0x80 => Some((class, 1)),
        _ => text[offset..].chars().next().map(|character| (classify_char(character), character.len_utf8())),
    }
}

/// The offset after the run of a class that starts at `offset`.
pub(super) fn skip_class(text: &str, mut offset: usize, class: Class) -> usize {
    while let Some((found, length)) = class_at(text, offset)
        && found == class
    {
        offset += length;
    }
    offset
}

/// The offset after the run of spaces and line breaks that starts at `offset`.
pub(super) fn skip_white(text: &str, mut offset: usize) -> usize {
    while let Some((Class::Space | Class::Newline, length)) = class_at(text, offset) {
        offset += length;
    }
    offset
}

/// Whether a text has nothing but spaces.
pub(super) fn is_blank(text: &str) -> bool {
    skip_class(text, 0, Class::Space) == text.len()
}

/// The offset of the next line break at or after `offset`, or the end.
pub(super) fn line_end(text: &str, offset: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = offset;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte < 0x80 {
            if CLASSES[byte as usize] == Class::Newline {
                return at;
            }
            at += 1;
        } else if byte == 0xC2 && bytes.get(at + 1) == Some(&0x85)
            || byte == 0xE2 && bytes.get(at + 1) == Some(&0x80) && matches!(bytes.get(at + 2), Some(0xA8 | 0xA9))
        {
            return at;
        } else {
            at += 1;
        }
    }
    bytes.len()
}
