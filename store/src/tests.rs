//! Tests over folders; those over S3 are in `tests/store.rs`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Digest, ObjectStore, StoreError};

const PLENTY: u64 = 1 << 20;

fn open(folder: &Path) -> ObjectStore {
    ObjectStore::open(&format!("file://{}", folder.display())).expect("the folder is there")
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(work)
}

/// Where an object lies in a folder.
fn path(folder: &Path, digest: Digest) -> PathBuf {
    folder.join(digest.key())
}

/// The files below a folder, the temporary ones of writers too.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found
}

#[test]
fn what_is_put_is_read_from_the_key_of_its_digest() {
    let folder = TempDir::with_prefix("a store ").unwrap();
    let address = format!("file://{}", folder.path().display()).replace(' ', "%20");
    let store = ObjectStore::open(&address).unwrap();
    for bytes in [&b""[..], b"abc", &[0xff; 100_000]] {
        let digest = run(store.put(bytes)).unwrap();
        assert_eq!(run(store.get(digest, PLENTY)).unwrap(), bytes);
        assert_eq!(fs::read(path(folder.path(), digest)).unwrap(), bytes);
        assert!(run(store.has(digest)).unwrap());
    }
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert!(folder.path().join("sha256/ba").join(abc).is_file());
    assert_eq!(abc.parse(), Ok(Digest::of(b"abc")));
    assert_eq!(format!("sha256:{abc}").parse(), Ok(Digest::of(b"abc")));
}

#[test]
fn what_is_no_digest_is_none() {
    let wrong = ["", "sha256:", "../../etc/passwd", &"A".repeat(64), &"a".repeat(63), &"a".repeat(65), &"é".repeat(32)];
    for text in wrong {
        assert!(text.parse::<Digest>().is_err(), "{text}");
    }
}

#[test]
fn an_object_that_is_not_there_is_absent() {
    let folder = TempDir::new().unwrap();
    let (store, digest) = (open(folder.path()), Digest::of(b"never put"));
    assert_eq!(run(store.has(digest)), Ok(false));
    let error = run(store.get(digest, PLENTY)).unwrap_err();
    assert!(matches!(error, StoreError::Absent { .. }), "{error}");
    assert!(error.to_string().contains(&digest.to_string()) && error.to_string().contains("file:///"), "{error}");
}

#[test]
fn a_forged_object_is_refused_and_never_replaced() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    let digest = run(store.put(b"true")).unwrap();
    let object = path(folder.path(), digest);
    for forged in ["lies", "", "true and more"] {
        fs::write(&object, forged).unwrap();
        let error = run(store.get(digest, PLENTY)).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        let found = Digest::of(forged.as_bytes()).to_string();
        for part in [digest.key(), digest.to_string(), found] {
            assert!(error.to_string().contains(&part), "{error}");
        }
        // Of another size it is seen by a writer as well; it stays what it is.
        let put = run(store.put(b"true"));
        assert_eq!(put.is_ok(), forged.len() == 4, "{forged}: {put:?}");
        assert_eq!(fs::read_to_string(&object).unwrap(), forged);
    }
}

#[test]
fn a_read_takes_no_more_than_it_may() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    let digest = run(store.put(&[7; 1000])).unwrap();
    assert_eq!(run(store.get(digest, 1000)).unwrap().len(), 1000);
    let error = run(store.get(digest, 999)).unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { bytes: 1000, max: 999, .. }), "{error}");
    // A file without an end says that it has no bytes.
    let endless = Digest::of(b"endless");
    fs::create_dir_all(path(folder.path(), endless).parent().unwrap()).unwrap();
    symlink("/dev/zero", path(folder.path(), endless)).unwrap();
    let error = run(store.get(endless, PLENTY)).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(matches!(run(store.has(endless)), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_fifo_in_the_place_of_an_object_holds_no_reader_up() {
    let folder = TempDir::new().unwrap();
    let (store, digest) = (open(folder.path()), Digest::of(b"fifo"));
    let object = path(folder.path(), digest);
    fs::create_dir_all(object.parent().unwrap()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&object).status().unwrap().success());
    let error = run(store.get(digest, PLENTY)).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn writers_at_once_leave_one_whole_object() {
    let folder = TempDir::new().unwrap();
    let bytes: Vec<u8> = (0..300_000u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let digest = Digest::of(&bytes);
    run(async {
        let mut writers = Vec::new();
        for _ in 0..16 {
            let (store, bytes) = (open(folder.path()), bytes.clone());
            writers.push(tokio::spawn(async move { store.put(&bytes).await }));
        }
        for writer in writers {
            assert_eq!(writer.await.unwrap(), Ok(digest));
        }
    });
    assert_eq!(files(folder.path()), [path(folder.path(), digest)]);
    assert_eq!(run(open(folder.path()).get(digest, PLENTY)).unwrap(), bytes);
}

#[test]
fn a_folder_that_is_missing_or_goes_away_is_named() {
    let folder = TempDir::new().unwrap();
    let missing = format!("file://{}/none", folder.path().display());
    let error = ObjectStore::open(&missing).unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }) && error.to_string().contains(&missing), "{error}");
    let store = open(folder.path());
    folder.close().unwrap();
    let digest = Digest::of(b"x");
    assert!(matches!(run(store.has(digest)), Err(StoreError::Missing { .. })));
    assert!(matches!(run(store.get(digest, PLENTY)), Err(StoreError::Missing { .. })));
}

#[test]
fn a_folder_that_may_not_be_written_says_so() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    // A file where the folder of the keys would be: that stops every user, root too.
    fs::write(folder.path().join("sha256"), "").unwrap();
    let error = run(store.put(b"x")).unwrap_err();
    assert!(error.to_string().contains("store an object") && error.to_string().contains("file:///"), "{error}");
    fs::remove_file(folder.path().join("sha256")).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let probe = fs::write(folder.path().join("probe"), "");
    let put = run(store.put(b"x"));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    match probe {
        Err(_) => assert!(matches!(put, Err(StoreError::Denied { .. })), "{put:?}"),
        // Root may write everywhere.
        Ok(()) => assert!(put.is_ok(), "{put:?}"),
    }
}

#[test]
fn addresses_that_are_none_are_refused() {
    let key = || [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_REGION", "eu-central-1")];
    let open = |url: &str, more: &[(&str, &str)]| {
        let variables = key().into_iter().chain(more.iter().copied());
        ObjectStore::open_with(url, variables.map(|(name, value)| (name.to_owned(), value.to_owned())))
    };
    let wrong = [
        "",
        "/tmp",
        "http://x/y",
        "file://tmp",
        "file:///tmp?x",
        "file:///%ff",
        "file:///%00",
        "s3://",
        "s3://ab",
        "s3://Up",
        "s3://user:key@bucket",
        "s3://bucket/a//b",
        "s3://bucket/../b",
        "s3://bucket/a#b",
    ];
    for url in wrong {
        let error = open(url, &[]).unwrap_err();
        assert!(matches!(error, StoreError::Address { .. }), "{url}: {error}");
    }
    assert!(open("s3://bucket", &[]).is_ok() && open("s3://bucket/a/b/", &[]).is_ok());
    let error = open("s3://bucket", &[("AWS_ENDPOINT_URL", "http://user:hidden@host:1")]).unwrap_err();
    assert!(error.to_string().contains("AWS_ALLOW_HTTP") && !error.to_string().contains("hidden"), "{error}");
    let none = ObjectStore::open_with("s3://bucket", []).unwrap_err();
    assert!(matches!(none, StoreError::NoCredentials { .. }), "{none}");
    assert!(none.to_string().contains("AWS_ACCESS_KEY_ID"), "{none}");
}
