//! The object store in S3: what the records of a run name is there, as the client says that the maker of S3 ships.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::cluster::{Cluster, Program, Setup, free_ports, request, wait};
use crate::store::{Server, installed};

/// Outputs and a prompt that are too long for a record, one of them longer than what goes through Restate in one piece.
const LONG: &str = r#"
workflow long
provider echo { exec cat }
agent echo provider=echo
pipeline main {
    task writes { run "seq 10000; echo changed >> shared.txt" }
    task some { run "seq 1000" }
    task most { run "seq 300000"; output max="4MB" }
    task asks agent=echo { prompt "<<output:some>>" }
    task reads { depends-on most asks; stdin "<<output:writes>>"; run "wc -l; tail -n 1 shared.txt" }
    result reads
}
"#;

const KEY: (&str, &str) = ("id", "secret");

/// The variables of those who use this server.
fn variables(endpoint: &str) -> [(&str, &str); 5] {
    [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", KEY.0),
        ("AWS_SECRET_ACCESS_KEY", KEY.1),
    ]
}

/// What the AWS command line says.
#[track_caller]
fn aws(endpoint: &str, arguments: &[&str]) -> String {
    let [.., awscli] = installed();
    let mut command = Command::new(awscli.join("bin/python"));
    command.args(["-m", "awscli"]).args(arguments).envs(variables(endpoint));
    // Its files of settings and keys are those of the person at this machine.
    command.env("AWS_CONFIG_FILE", "/dev/null").env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    let output = command.env("NO_PROXY", "127.0.0.1").output().expect("Python starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("keys are UTF-8")
}

/// A run whose objects are at this server: each digest that its records name is that of an object there.
fn objects_are_at(endpoint: &str) {
    aws(endpoint, &["s3", "mb", "s3://artifacts"]);
    let variables = variables(endpoint);
    let setup = Setup { store: Some("s3://artifacts/runs"), variables: &variables, ..Setup::default() };
    let cluster = Cluster::start(&setup);
    let person = cluster.person("person", LONG);
    let _worker = cluster.worker("worker", "default", &[], &[]);
    let ended = person.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    // The last end of line is no part of an output.
    assert_eq!(ended.out, "9999\nchanged\n");
    let listed = aws(endpoint, &["s3", "ls", "--recursive", "s3://artifacts"]);
    let keys: BTreeSet<&str> = listed.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let key = |digest: &str| format!("runs/sha256/{}/{digest}", &digest[..2]);
    let folder = person.run_folder();
    let mut named = find_digests(&fs::read_to_string(folder.join("journal.jsonl")).expect("there is a journal"));
    // The plan, the outputs of three steps, and a prompt.
    assert!(named.len() >= 5, "{named:?}");
    named.extend(find_digests(&fs::read_to_string(folder.join("patches.json")).expect("there are changes")));
    let absent: Vec<_> = named.iter().filter(|digest| !keys.contains(&*key(digest))).collect();
    assert!(absent.is_empty(), "{absent:?} of {named:?} are not among {keys:?}");
    // A second client reads what the first says.
    let copies = cluster.path("copies");
    aws(endpoint, &["s3", "cp", "--quiet", "--recursive", "s3://artifacts", &copies.to_string_lossy()]);
    for key in &keys {
        assert_eq!(Some(&*sum(&copies.join(key))), key.rsplit('/').next());
    }
    // What it puts is there already.
    person.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
}

/// What has the form of a digest.
fn find_digests(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    words.filter(|word| word.len() == 64 && word.bytes().all(is_digit)).map(str::to_owned).collect()
}

fn sum(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().expect("sha256sum starts");
    String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn what_records_name_is_in_moto_and_has_its_digest() {
    let server = Server::start(None);
    objects_are_at(&server.endpoint());
}

/// A server of SeaweedFS, all of whose parts are one process.
struct SeaweedFs {
    program: Program,
    /// For its parts: that of its HTTP, and that of its gRPC.
    ports: [[u16; 2]; 4],
    /// The last, so that it has ended that writes there.
    _folder: TempDir,
}

impl SeaweedFs {
    const PARTS: [&str; 4] = ["master", "volume", "filer", "s3"];

    fn start() -> SeaweedFs {
        let folder = TempDir::new().expect("a folder can be made");
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let data = at("data");
        fs::create_dir(&data).expect("a folder can be made");
        let keys = serde_json::json!([{ "accessKey": KEY.0, "secretKey": KEY.1 }]);
        let people = serde_json::json!([{ "name": "person", "credentials": keys, "actions": ["Admin"] }]);
        fs::write(at("s3.json"), serde_json::json!({ "identities": people }).to_string()).expect("it can be written");
        let ports: [[u16; 2]; 4] = free_ports(8).as_chunks().0.try_into().expect("there are eight");
        let [_, installed, _] = installed();
        let mut command = vec![installed.join("bin/weed").to_string_lossy().into_owned()];
        command.extend(["server", "-filer", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"].map(str::to_owned));
        // What is off is what nothing here uses, on ports that others may have.
        command.extend(["-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"].map(str::to_owned));
        command.extend([format!("-dir={data}"), format!("-s3.config={}", at("s3.json"))]);
        command.extend(["filer", "s3"].map(|part| format!("-{part}.localSocket={}", at(part))));
        for (part, [http, grpc]) in SeaweedFs::PARTS.iter().zip(ports) {
            command.extend([format!("-{part}.port={http}"), format!("-{part}.port.grpc={grpc}")]);
        }
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let program = Program::new(folder.path().to_owned(), folder.path().join("seaweedfs"), &command, &[]);
        program.start();
        let server = SeaweedFs { program, ports, _folder: folder };
        // Who has no key is refused.
        wait("it answers", || request(server.port(), "GET", "/", "").filter(|(status, _)| *status == 403));
        server
    }

    fn port(&self) -> u16 {
        self.ports[3][0]
    }
}

impl Drop for SeaweedFs {
    fn drop(&mut self) {
        self.program.kill();
        // It has these where it likes, and leaves them.
        for (part, [_, grpc]) in SeaweedFs::PARTS.iter().zip(self.ports) {
            let _ = fs::remove_file(format!("/tmp/seaweedfs-{part}-grpc-{grpc}.sock"));
        }
    }
}

#[test]
fn what_records_name_is_in_seaweedfs_and_has_its_digest() {
    let server = SeaweedFs::start();
    objects_are_at(&format!("http://127.0.0.1:{}", server.port()));
}
