//! The store of objects over S3, against a server of it (moto). Each test has a server of its own, which ends with it.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use swarmc_store::{Digest, ObjectStore, StoreError};
use tempfile::TempDir;

const PLENTY: u64 = 16 << 20;

/// Serves on a port that the system chooses, says which, and ends with its standard input.
const SERVER: &str = "
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
print(port, flush=True)
sys.stdin.read()
";

/// Makes a bucket, as the client that the maker of S3 ships.
const MAKE: &str = "s3.create_bucket(Bucket='artifacts')";
/// Lays every object of the bucket into a folder, under the last part of its key, and prints the keys.
const FETCH: &str = "
import os
for item in s3.list_objects_v2(Bucket='artifacts').get('Contents', []):
    print(item['Key'])
    s3.download_file('artifacts', item['Key'], os.path.join(sys.argv[2], item['Key'].split('/')[-1]))
";
/// Puts an object under the key of another one.
const FORGE: &str = "s3.put_object(Bucket='artifacts', Key=sys.argv[2], Body=b'forged')";

/// A server of S3 with Python of its own.
pub(crate) struct Server {
    python: PathBuf,
    child: Child,
    /// The server ends when this does.
    _stdin: ChildStdin,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folders of what `tests/install-s3` has installed: moto, SeaweedFS, and the AWS command line.
pub(crate) fn installed() -> [PathBuf; 3] {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/install-s3");
    let installed = Command::new(script).stderr(Stdio::inherit()).output().expect("tests/install-s3 can be started");
    assert!(installed.status.success(), "tests/install-s3 failed: it says why above");
    let folders = String::from_utf8(installed.stdout).expect("a path is UTF-8");
    let folders: Vec<PathBuf> = folders.lines().map(PathBuf::from).collect();
    folders.try_into().expect("it prints three folders")
}

impl Server {
    /// Starts it; after `free` requests it checks who asks.
    pub(crate) fn start(free: Option<u32>) -> Server {
        let [moto, ..] = installed();
        let python = moto.join("bin/python");
        let mut command = Command::new(&python);
        command.args(["-c", SERVER]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(free) = free {
            command.env("INITIAL_NO_AUTH_ACTION_COUNT", free.to_string());
        }
        let mut child = command.spawn().expect("Python starts");
        let (stdin, stdout) = (child.stdin.take().expect("it is piped"), child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("the server says its port");
        let port = line.trim().parse().unwrap_or_else(|_| panic!("the server says its port, not {line:?}"));
        Server { python, child, _stdin: stdin, port }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Runs a script with the client `s3`, and gives what it prints.
    fn script(&self, text: &str, argument: &str) -> String {
        let client = "import boto3, sys\ns3 = boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1', \
                      aws_access_key_id='id', aws_secret_access_key='secret')\n";
        let output = Command::new(&self.python)
            .args(["-c", &format!("{client}{text}"), &self.endpoint(), argument])
            .env("NO_PROXY", "127.0.0.1")
            .output()
            .expect("Python starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("keys are UTF-8")
    }

    fn open(&self, url: &str, secret: &str) -> ObjectStore {
        let endpoint = self.endpoint();
        let variables = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", secret),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        ObjectStore::open_with(url, variables).expect("the address and the settings are right")
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(work)
}

mod real {
    use super::*;

    #[test]
    fn objects_of_s3_are_read_as_they_were_put() {
        let server = Server::start(None);
        server.script(MAKE, "");
        let store = server.open("s3://artifacts/runs/one", "secret");
        let large: Vec<u8> = (0..9_000_000u32).map(|at| u8::try_from(at % 253).expect("it fits")).collect();
        let texts = [&b""[..], b"abc", &large];
        let digests = texts.map(|bytes| run(store.put(bytes)).expect("it is stored"));
        for (bytes, digest) in texts.iter().zip(digests) {
            assert!(run(store.get(digest, PLENTY)).expect("it is there") == **bytes);
            assert_eq!(run(store.has(digest)), Ok(true));
            // A second time it is there already.
            assert_eq!(run(store.put(bytes)), Ok(digest));
        }
        assert!(matches!(run(store.get(digests[2], 8_999_999)), Err(StoreError::TooLarge { .. })));
        let absent = Digest::of(b"never put");
        assert_eq!(run(store.has(absent)), Ok(false));
        assert!(matches!(run(store.get(absent, PLENTY)), Err(StoreError::Absent { .. })));
        // Another prefix is another store.
        assert_eq!(run(server.open("s3://artifacts", "secret").has(digests[1])), Ok(false));
        // What another client finds, and what another program says of its contents.
        let folder = TempDir::new().expect("a folder can be made");
        let keys = server.script(FETCH, &folder.path().to_string_lossy());
        let mut expected = digests.map(|digest| format!("runs/one/{}", digest.key()));
        expected.sort();
        assert_eq!(keys.lines().collect::<Vec<_>>(), expected);
        let files = digests.map(|digest| folder.path().join(digest.to_string()));
        let sums = Command::new("sha256sum").args(&files).output().expect("sha256sum starts");
        let sums = String::from_utf8(sums.stdout).expect("sha256sum writes UTF-8");
        let sums: Vec<&str> = sums.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(sums, digests.map(|digest| digest.to_string()));
    }

    #[test]
    fn a_forged_object_of_s3_is_refused_and_never_replaced() {
        let server = Server::start(None);
        server.script(MAKE, "");
        let store = server.open("s3://artifacts", "secret");
        let digest = Digest::of(b"honest");
        server.script(FORGE, &digest.key());
        let error = run(store.get(digest, PLENTY)).expect_err("it is forged");
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        let said = error.to_string();
        for part in [digest.key(), Digest::of(b"forged").to_string(), server.endpoint()] {
            assert!(said.contains(&part), "{said}");
        }
        // Both have six bytes: what is there stays, and a reader sees that it is forged.
        assert_eq!(run(store.put(b"honest")), Ok(digest));
        assert!(matches!(run(store.get(digest, PLENTY)), Err(StoreError::Damaged { .. })));
    }

    #[test]
    fn a_bucket_that_is_missing_is_named() {
        let server = Server::start(None);
        let store = server.open("s3://nowhere", "secret");
        let digest = Digest::of(b"x");
        let found =
            [run(store.put(b"x")).map(drop), run(store.get(digest, 9)).map(drop), run(store.has(digest)).map(drop)];
        for error in found.map(|result| result.expect_err("there is no bucket")) {
            assert!(matches!(error, StoreError::Missing { .. }), "{error}");
            assert!(error.to_string().contains("s3://nowhere"), "{error}");
        }
    }

    #[test]
    fn credentials_that_are_wrong_are_refused() {
        // Making the bucket is free.
        let server = Server::start(Some(1));
        server.script(MAKE, "");
        let store = server.open("s3://artifacts", "not-the-secret");
        let digest = Digest::of(b"x");
        let found =
            [run(store.put(b"x")).map(drop), run(store.get(digest, 9)).map(drop), run(store.has(digest)).map(drop)];
        for error in found.map(|result| result.expect_err("the key is wrong")) {
            assert!(matches!(error, StoreError::Denied { .. }), "{error}");
            assert!(!error.to_string().contains("not-the-secret"), "{error}");
        }
    }

    #[test]
    fn a_server_that_is_gone_is_given_up_in_bounded_time() {
        let server = Server::start(None);
        server.script(MAKE, "");
        let store = server.open("s3://artifacts", "secret");
        drop(server);
        let began = Instant::now();
        let error = run(store.put(b"x")).expect_err("the server is gone");
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
}
