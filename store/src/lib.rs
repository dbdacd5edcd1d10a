//! Keeps the artifacts of runs under their digests, in a folder or in a bucket of S3, for workers on other machines.
//!
//! ```text
//!   bytes ──put──► Digest          Digest ──get──► bytes        Digest ──has──► yes or no
//!
//!   file:///DIR          DIR/sha256/ab/abcdef…
//!   s3://BUCKET/PREFIX   BUCKET: PREFIX/sha256/ab/abcdef…
//! ```
//!
//! What holds:
//!
//! - **Addressed by content.** The key of an object is `sha256/`, the first two digits of its SHA-256 digest, `/`, and the
//!   whole digest in hexadecimal. A key comes from a digest alone, so that nothing that an agent wrote is ever a path.
//! - **Never overwritten.** [`ObjectStore::put`] creates an object or leaves the one that is there. Two writers of the same
//!   bytes both succeed.
//! - **Verified on read.** [`ObjectStore::get`] computes the digest of what it read. An object with other contents is an
//!   error that names the object, its digest and what was found; its bytes go nowhere.
//! - **Bounded.** A read says how many bytes it takes at most. Each call ends: failures of the network that may pass are
//!   tried again for 30 seconds, and a store that moves no data ends the call.
//!
//! The functions are async and need a tokio runtime with I/O and time: the callers wait for many objects at once.

mod client;
mod digest;
mod error;
mod place;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{GetOptions, GetResult, ObjectMeta, ObjectStoreExt as _, PutMode, PutOptions, PutPayload};

pub use digest::{Digest, ParseDigestError};
pub use error::StoreError;
use place::Place;

/// How long a call may take besides moving its bytes: twice the time of retries.
const PATIENCE: Duration = Duration::from_secs(60);
/// The slowest transfer that counts as one, in bytes a second.
const SLOWEST: u64 = 16 * 1024;

/// A store of objects.
#[derive(Clone, Debug)]
pub struct ObjectStore {
    backend: Arc<dyn object_store::ObjectStore>,
    /// What people call it: its address, and the endpoint where one is set.
    name: String,
    /// Before each key.
    prefix: Path,
    /// The folder, where it is one.
    folder: Option<PathBuf>,
}

impl ObjectStore {
    /// The store at `file:///DIR` or `s3://BUCKET/PREFIX`. The folder or the bucket must exist; nothing is sent yet.
    ///
    /// For S3, the variables of the environment hold the rest: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` (or
    /// `AWS_WEB_IDENTITY_TOKEN_FILE`, `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI`, `AWS_CONTAINER_CREDENTIALS_FULL_URI`,
    /// `AWS_METADATA_ENDPOINT`, or `AWS_SKIP_SIGNATURE=true` for none), `AWS_SESSION_TOKEN`, `AWS_REGION`,
    /// `AWS_ENDPOINT_URL`, and `AWS_ALLOW_HTTP=true` for an endpoint without TLS. Files of profiles are not read.
    ///
    /// # Errors
    /// The address is none of these, the folder does not exist, or the credentials or settings are missing or wrong.
    pub fn open(url: &str) -> Result<ObjectStore, StoreError> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with("AWS_"))?;
            Some((name, value.into_string().ok()?))
        });
        ObjectStore::open_with(url, variables)
    }

    /// As [`ObjectStore::open`], with these variables in the place of the environment.
    ///
    /// # Errors
    /// As [`ObjectStore::open`].
    pub fn open_with(
        url: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<ObjectStore, StoreError> {
        match Place::parse(url)? {
            Place::Folder(folder) => {
                let backend = client::open_folder(url, &folder)?;
                Ok(ObjectStore { backend, name: url.to_owned(), prefix: Path::default(), folder: Some(folder) })
            }
            Place::Bucket { bucket, prefix } => {
                let (backend, name) = client::open_bucket(url, &bucket, variables.into_iter().collect())?;
                Ok(ObjectStore { backend, name, prefix, folder: None })
            }
        }
    }

    /// Stores bytes, and gives their digest. An object that is there already stays.
    ///
    /// # Errors
    /// The store refuses, cannot be reached or is too slow, or an object of this digest is there that has another size.
    pub async fn put(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of(bytes);
        let key = self.key(digest);
        let size = bytes.len() as u64;
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.backend.put_opts(&key, PutPayload::from(bytes.to_vec()), options);
        match self.within("store an object", size, put).await? {
            Ok(_) => Ok(digest),
            // A machine that lost its power may have left a part of it.
            Err(object_store::Error::AlreadyExists { .. }) => match self.head(digest).await? {
                Some(meta) if meta.size == size => Ok(digest),
                Some(meta) => Err(self.damaged(digest, format!("{} bytes, not {size}", meta.size))),
                None => Err(self.absent(digest)),
            },
            Err(error) => Err(self.describe(error, "store an object", digest)),
        }
    }

    /// The bytes of this digest, at most `max_bytes` of them.
    ///
    /// # Errors
    /// The store has no such object, the object is larger than `max_bytes`, its contents have another digest, or the store
    /// refuses, cannot be reached or is too slow.
    pub async fn get(&self, digest: Digest, max_bytes: u64) -> Result<Vec<u8>, StoreError> {
        const DOING: &str = "read an object";
        self.check_kind(digest).await?;
        let key = self.key(digest);
        let begun = self.within(DOING, 0, self.backend.get_opts(&key, GetOptions::default())).await?;
        let begun = begun.map_err(|error| self.describe(error, DOING, digest))?;
        let size = begun.meta.size;
        let too_large =
            |bytes| StoreError::TooLarge { place: self.name.clone(), key: key.to_string(), bytes, max: max_bytes };
        if size > max_bytes {
            return Err(too_large(size));
        }
        // What the store says of the size bounds no memory: the bytes are counted as they come.
        let Some(bytes) = self
            .within(DOING, size, collect(begun, max_bytes))
            .await?
            .map_err(|error| self.describe(error, DOING, digest))?
        else {
            return Err(too_large(max_bytes.saturating_add(1)));
        };
        let found = Digest::of(&bytes);
        match found == digest {
            true => Ok(bytes),
            false => Err(self.damaged(digest, format!("{found} over {} bytes", bytes.len()))),
        }
    }

    /// Whether the store has an object of this digest. Its contents are not read.
    ///
    /// # Errors
    /// The store refuses, cannot be reached or is too slow, or its bucket or folder does not exist.
    pub async fn has(&self, digest: Digest) -> Result<bool, StoreError> {
        self.check_kind(digest).await.or_else(ignore_absence)?;
        Ok(self.head(digest).await?.is_some())
    }

    /// What the store says of an object without its contents; none where it has none.
    async fn head(&self, digest: Digest) -> Result<Option<ObjectMeta>, StoreError> {
        const DOING: &str = "look for an object";
        let key = self.key(digest);
        let error = match self.within(DOING, 0, self.backend.head(&key)).await? {
            Ok(meta) => return Ok(Some(meta)),
            Err(error) => self.describe(error, DOING, digest),
        };
        if !matches!(error, StoreError::Absent { .. }) {
            return Err(error);
        }
        // An answer to HEAD has no body, so it does not tell a bucket that is missing from an object that is.
        match self.within(DOING, 0, self.backend.get_opts(&key, GetOptions::default())).await? {
            Ok(found) => Ok(Some(found.meta)),
            Err(error) => ignore_absence(self.describe(error, DOING, digest)).map(|()| None),
        }
    }

    /// Refuses what is no regular file in a folder: to open a FIFO waits for a writer without an end.
    async fn check_kind(&self, digest: Digest) -> Result<(), StoreError> {
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        let path = folder.join(self.key(digest).as_ref());
        let look = tokio::task::spawn_blocking(move || (std::fs::metadata(&path), folder.is_dir()));
        match self.within("look for an object", 0, look).await? {
            Ok((Ok(found), _)) if found.is_file() => Ok(()),
            Ok((Ok(_), _)) => Err(self.damaged(digest, "something that is no regular file".to_owned())),
            Ok((Err(error), true)) if error.kind() == std::io::ErrorKind::NotFound => Err(self.absent(digest)),
            Ok((Err(error), false)) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(StoreError::Missing { place: self.name.clone() })
            }
            // What else is wrong is said by the attempt to read it.
            Ok((Err(_), _)) | Err(_) => Ok(()),
        }
    }

    fn key(&self, digest: Digest) -> Path {
        digest.key().split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Waits for a call that moves `bytes`, and no longer than the slowest transfer takes.
    async fn within<T>(&self, doing: &'static str, bytes: u64, call: impl Future<Output = T>) -> Result<T, StoreError> {
        let limit = PATIENCE.saturating_add(Duration::from_secs(bytes / SLOWEST));
        tokio::time::timeout(limit, call).await.map_err(|_| StoreError::Unreachable {
            place: self.name.clone(),
            doing,
            detail: format!("no answer within {} s", limit.as_secs()),
        })
    }

    fn absent(&self, digest: Digest) -> StoreError {
        StoreError::Absent { place: self.name.clone(), digest }
    }

    fn damaged(&self, digest: Digest, found: String) -> StoreError {
        StoreError::Damaged { place: self.name.clone(), key: self.key(digest).to_string(), digest, found }
    }

    fn describe(&self, error: object_store::Error, doing: &'static str, digest: Digest) -> StoreError {
        StoreError::describe(error, &self.name, doing, digest)
    }
}

/// That an object is not there is an answer, not a failure.
fn ignore_absence(error: StoreError) -> Result<(), StoreError> {
    match error {
        StoreError::Absent { .. } => Ok(()),
        error => Err(error),
    }
}

/// The bytes of an object as they come; none where there are more than `max`.
async fn collect(begun: GetResult, max: u64) -> object_store::Result<Option<Vec<u8>>> {
    let mut stream = begun.into_stream();
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() as u64 > max {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}
