//! Where steps go: to workers of their pool that have their secrets. And where nothing of a secret goes.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::cluster::{Cluster, Setup};

const POOLS: &str = r#"
workflow pools
pipeline main {
    pool left
    task one { run pwd }
    task two pool=right { run pwd }
    task three { depends-on two; run pwd }
    task all { value "<<output:one>> <<output:two>> <<output:three>>" }
    result all
}
"#;

#[test]
fn steps_go_to_workers_of_their_pool_alone() {
    let cluster = Cluster::shared();
    let person = cluster.person("pools", POOLS);
    let _left = cluster.worker("left-worker", "left", &[], &[]);
    let _right = cluster.worker("right-worker", "right", &[], &[]);
    let ended = person.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    let places: Vec<&str> = ended.out.split_whitespace().collect();
    let expected = ["left", "right", "left"];
    assert_eq!(places.len(), expected.len(), "{places:?}");
    for (place, expected) in places.iter().zip(expected) {
        assert!(place.contains(&format!("/{expected}-worker-home/")), "{places:?}");
    }
}

const SECRET: &str = r#"
workflow secrets
secret token env=TEST_TOKEN
pipeline main {
    pool secrets
    task plain { run "pwd" }
    task knows { env token; depends-on plain; run "pwd; printf %s \"$TEST_TOKEN\" | sha256sum" }
    result knows
}
"#;

#[test]
fn a_secret_is_with_its_worker_and_nowhere_else() {
    const VALUE: &str = "value-of-a-secret-0123456789abcdef";
    let cluster = Cluster::start(&Setup::default());
    let person = cluster.person("secretive", SECRET);
    let _without = cluster.worker("without", "secrets", &["--slots", "4"], &[]);
    let run = person.start(&["run", "flow.kdl"]);
    cluster.wait("it is said that a worker lacks it", || run.err().contains("TEST_TOKEN").then_some(()));
    let _with = cluster.worker("with", "secrets", &[], &[("TEST_TOKEN", VALUE)]);
    let ended = run.end().expect(0, &[], &[]);
    let sum = Command::new("sh").args(["-c", &format!("printf %s {VALUE} | sha256sum")]).output().expect("sh starts");
    assert!(ended.out.contains(&*String::from_utf8_lossy(&sum.stdout)), "{ended:#?}");
    assert!(ended.out.contains("/with-home/"), "{ended:#?}");
    for name in ["restate", "store", "engine-home", "secretive-home", "with-home", "without-home", "logs"] {
        let found = find(&cluster.path(name), VALUE.as_bytes());
        assert!(found.is_empty(), "the value is in {found:?}");
    }
    // What is looked for is found where it is.
    fs::write(cluster.path("logs").join("here"), format!("x{VALUE}")).expect("a file can be written");
    assert_eq!(find(&cluster.path("logs"), VALUE.as_bytes()), ["here"]);
}

/// The files below a folder that hold these bytes.
fn find(folder: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    let text = fs::read(entry.path()).unwrap_or_default();
                    if text.windows(bytes.len()).any(|part| part == bytes) {
                        found.push(entry.file_name().to_string_lossy().into_owned());
                    }
                }
                _ => {}
            }
        }
    }
    found
}
