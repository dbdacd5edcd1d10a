//! Digests of bytes as names: equal bytes have equal names.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The beginning of the SHA-256 of some bytes: 128 bits, as hexadecimal digits.
pub(crate) fn short_digest(bytes: &[u8]) -> String {
    format_hex(&Sha256::digest(bytes)[..16])
}

/// Two lowercase digits for each byte.
pub(crate) fn format_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
