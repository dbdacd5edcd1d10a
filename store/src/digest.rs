//! The digest of an object, and the key that it gives.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// The length of a digest, in bytes.
const BYTES: usize = 32;

/// A SHA-256 digest. It is written as 64 lowercase hexadecimal digits, and read with or without `sha256:` before them, as
/// plans and journals write it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; BYTES]);

/// What is no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a digest: 64 digits of `0` to `9` and `a` to `f`, with or without `sha256:` before them")]
pub struct ParseDigestError;

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// The key of an object below the prefix of its store: `sha256/ab/abcdef…`.
    pub fn key(self) -> String {
        let digits = self.to_string();
        format!("sha256/{}/{digits}", &digits[..2])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{self}")
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Digest, ParseDigestError> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text).as_bytes();
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(ParseDigestError),
        };
        let mut bytes = [0; BYTES];
        if digits.len() != 2 * BYTES {
            return Err(ParseDigestError);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Ok(Digest(bytes))
    }
}
