//! Objects by digest: what is too long for the queues of an engine.
//!
//! Invariant: what comes back has the digest that it was asked for.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use swarmc_store::ObjectStore;

use crate::types::engine::{Bytes, INLINE_BYTES};

/// The longest object that is read: larger than any text of a run.
const LONGEST: u64 = 1 << 30;

/// A store of objects. Clones have the same.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    store: ObjectStore,
}

impl Objects {
    /// The store at `url`: `file:///FOLDER`, which must be there, or `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// There is no such store: says what to type.
    pub(crate) fn open(url: &str) -> Result<Objects, String> {
        Ok(Objects { store: ObjectStore::open(url).map_err(|error| error.to_string())? })
    }

    /// Keeps `bytes`: their digest.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) async fn put(&self, bytes: &[u8]) -> Result<String, String> {
        self.store.put(bytes).await.map(|digest| digest.to_string()).map_err(|error| error.to_string())
    }

    /// The object with this digest.
    ///
    /// # Errors
    /// It is not there, or is another one.
    pub(crate) async fn get(&self, digest: &str) -> Result<Vec<u8>, String> {
        let digest = digest.parse().map_err(|error| format!("`{digest}` is no digest: {error}"))?;
        self.store.get(digest, LONGEST).await.map_err(|error| error.to_string())
    }

    /// Bytes for the engine: in place, or as an object where they are long.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) async fn pack(&self, bytes: &[u8]) -> Result<Bytes, String> {
        if bytes.len() > INLINE_BYTES {
            return Ok(Bytes::Object { digest: self.put(bytes).await?, length: bytes.len() as u64 });
        }
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => Bytes::Text(text.to_owned()),
            Err(_) => Bytes::Base64(BASE64.encode(bytes)),
        })
    }

    /// The bytes themselves.
    ///
    /// # Errors
    /// They are not there, or are other ones.
    pub(crate) async fn unpack(&self, bytes: Bytes) -> Result<Vec<u8>, String> {
        match bytes {
            Bytes::Text(text) => Ok(text.into_bytes()),
            Bytes::Base64(text) => BASE64.decode(text).map_err(|error| format!("bytes are damaged: {error}")),
            Bytes::Object { digest, .. } => self.get(&digest).await,
        }
    }
}
