//! The object store in S3.

use super::cluster::{Cluster, Setup};
use crate::store::{MAKE, Server};

const LONG: &str = r#"
workflow long
pipeline main {
    task writes { run "seq 10000; echo changed >> shared.txt" }
    task reads { stdin "<<output:writes>>"; run "wc -l; tail -n 1 shared.txt" }
    result reads
}
"#;

#[test]
fn outputs_and_changes_go_through_s3() {
    let server = Server::start(None);
    server.script(MAKE, "");
    let endpoint = server.endpoint();
    let variables = [
        ("AWS_ENDPOINT_URL", &*endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    let setup = Setup { store: Some("s3://artifacts/runs"), variables: &variables, ..Setup::default() };
    let cluster = Cluster::start(&setup);
    let person = cluster.person("person", LONG);
    let _worker = cluster.worker("worker", "default", &[], &[]);
    let ended = person.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    // The last end of line is no part of an output.
    assert_eq!(ended.out, "9999\nchanged\n");
    let keys = server.script("for item in s3.list_objects_v2(Bucket='artifacts')['Contents']: print(item['Key'])", "");
    assert!(keys.lines().count() >= 3 && keys.lines().all(|key| key.starts_with("runs/sha256/")), "{keys}");
}
