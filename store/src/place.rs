//! The address of a store, read: a folder, or a bucket and a prefix in it.

use std::path::PathBuf;

use object_store::path::Path;
use percent_encoding::percent_decode_str;

use crate::StoreError;

/// The shortest and the longest name of a bucket, as S3 has them.
const BUCKET: std::ops::RangeInclusive<usize> = 3..=63;

/// Where a store is.
pub(crate) enum Place {
    Folder(PathBuf),
    Bucket { bucket: String, prefix: Path },
}

impl Place {
    /// `file:///DIR` or `s3://BUCKET/PREFIX`; `%20` and the like in either path are decoded.
    pub(crate) fn parse(url: &str) -> Result<Place, StoreError> {
        let wrong = |problem: &str| StoreError::Address { url: url.to_owned(), problem: problem.to_owned() };
        if url.contains(['?', '#']) {
            return Err(wrong("it has a `?` or a `#`; write them as `%3F` and `%23` in a path"));
        }
        let decode = |text: &str| {
            let decoded = percent_decode_str(text).decode_utf8().map_err(|_| wrong("its path is not UTF-8"))?;
            match decoded.contains('\0') {
                true => Err(wrong("its path holds a NUL")),
                false => Ok(decoded.into_owned()),
            }
        };
        if let Some(path) = url.strip_prefix("file://") {
            return match path.starts_with('/') {
                true => Ok(Place::Folder(PathBuf::from(decode(path)?))),
                false => Err(wrong("write an absolute path: `file:///DIR`")),
            };
        }
        let Some(rest) = url.strip_prefix("s3://") else {
            return Err(wrong("write `file:///DIR` or `s3://BUCKET/PREFIX`"));
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        if !BUCKET.contains(&bucket.len()) || !bucket.bytes().all(plain) {
            return Err(wrong(
                "a bucket has 3 to 63 lowercase letters, digits, `-` and `.`; keys stand in the environment",
            ));
        }
        let prefix = Path::parse(decode(prefix)?.trim_matches('/'))
            .map_err(|_| wrong("its prefix has an empty part, `.` or `..`"))?;
        Ok(Place::Bucket { bucket: bucket.to_owned(), prefix })
    }
}
