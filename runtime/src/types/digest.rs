//! Digests, and names that are safe as names of files.

use sha2::{Digest, Sha256};

/// The SHA-256 of `bytes` in hexadecimal.
pub(crate) fn digest_bytes(bytes: &[u8]) -> String {
    format_hex(&Sha256::digest(bytes))
}

/// Two lowercase digits for each byte.
pub(crate) fn format_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for half in bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
        text.push(char::from(DIGITS[usize::from(half)]));
    }
    text
}

/// A part of a step's path as the name of a folder.
pub(crate) fn folder_name(part: &str) -> String {
    escape_name(part, "-_~[]%")
}

/// `name` as the name of a file: itself, unless it holds what could lead elsewhere, which becomes `%` and two digits.
pub(crate) fn file_name(name: &str) -> String {
    escape_name(name, "-_")
}

fn escape_name(name: &str, allowed: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for (position, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => safe.push(char::from(byte)),
            _ if allowed.as_bytes().contains(&byte) => safe.push(char::from(byte)),
            b'.' if position > 0 => safe.push('.'),
            _ => safe.push_str(&format!("%{byte:02x}")),
        }
    }
    // An empty name would be the folder itself.
    if safe.is_empty() {
        safe.push('%');
    }
    safe
}
