//! Where steps go: to workers of their pool that have their secrets. And where nothing of a secret goes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

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

/// The second step goes on until a file is there. The command is in the plan, and the parameter is a value of the run: what
/// is looked for as the secret is, and found.
const SECRET: &str = r#"
workflow secrets
param word
secret token env=TEST_TOKEN
pipeline main {
    pool secrets
    task plain { run "pwd" }
    task knows {
        env token
        depends-on plain
        stdin "<<param:word>>"
        run "pwd; printf %s \"$TEST_TOKEN\" | sha256sum; echo word-of-a-command-0123; cat; echo; until [ -e FOLDER/go ]; do sleep 0.02; done"
    }
    result knows
}
"#;
const IN_COMMAND: &str = "word-of-a-command-0123";
const IN_PARAMETER: &str = "word-of-a-parameter-0123";

#[test]
fn a_secret_is_with_its_worker_and_nowhere_else() {
    const VALUE: &str = "value-of-a-secret-0123456789abcdef";
    let cluster = Cluster::start(&Setup::default());
    let folder = cluster.path("notes");
    fs::create_dir(&folder).expect("a folder can be made");
    let person = cluster.person("secretive", &SECRET.replace("FOLDER", &folder.to_string_lossy()));
    let _without = cluster.worker("without", "secrets", &["--slots", "4"], &[]);
    let run = person.start(&["run", "flow.kdl", "--param", &format!("word={IN_PARAMETER}")]);
    cluster.wait("it is said that a worker lacks it", || run.err().contains("TEST_TOKEN").then_some(()));
    let _with = cluster.worker("with", "secrets", &[], &[("TEST_TOKEN", VALUE)]);
    cluster.wait("the step that has it goes on", || run.err().contains(IN_PARAMETER).then_some(()));
    // While its process lives, the search finds what is no secret in every place that has something of the step.
    let shared = ["restate", "table state", "engine-home", "secretive-home", "with-home"];
    for (word, more) in [(IN_COMMAND, "store"), (IN_PARAMETER, "table sys_journal")] {
        let found = find_places(&cluster, word);
        let missed: Vec<_> = shared.iter().chain([&more]).filter(|&&place| !found.contains(place)).collect();
        assert!(missed.is_empty(), "`{word}` is not in {missed:?}, but in {found:?}");
    }
    let of_shim = find(&cluster.path("with-home"), IN_PARAMETER);
    assert!(of_shim.iter().any(|path| path.contains("/shim/")), "{of_shim:?}");
    assert_eq!(find_places(&cluster, VALUE), BTreeSet::new());
    fs::write(folder.join("go"), "").expect("a file can be written");
    let ended = run.end().expect(0, &[], &[]);
    let sum = Command::new("sh").args(["-c", &format!("printf %s {VALUE} | sha256sum")]).output().expect("sh starts");
    assert!(ended.out.contains(&*String::from_utf8_lossy(&sum.stdout)), "{ended:#?}");
    assert!(ended.out.contains("/with-home/"), "{ended:#?}");
    assert_eq!(find_places(&cluster, VALUE), BTreeSet::new());
    // In each of its forms, it is found where it is.
    let form = |before: &str| BASE64.encode(format!("{before}{VALUE}y"));
    let hexadecimal: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    for text in [format!("x{VALUE}"), form(""), form("x"), form("xx"), hexadecimal] {
        fs::write(cluster.path("logs").join("here"), text).expect("a file can be written");
        assert_eq!(find_places(&cluster, VALUE), BTreeSet::from(["logs".to_owned()]));
    }
}

/// The folders of the parts of an engine, and the tables of Restate, that hold a text.
fn find_places(cluster: &Cluster, text: &str) -> BTreeSet<String> {
    let folders = ["restate", "store", "engine-home", "secretive-home", "with-home", "without-home", "logs"];
    let mut found: BTreeSet<String> = folders
        .iter()
        .filter(|name| !find(&cluster.path(name), text).is_empty())
        .map(|&name| name.to_owned())
        .collect();
    let node = &cluster.nodes[0];
    let tables = node.query("select table_name from information_schema.tables where table_schema = 'public'");
    let tables: Vec<&str> = tables.iter().filter_map(|row| row["table_name"].as_str()).collect();
    for table in ["state", "sys_journal", "sys_invocation", "sys_inbox"] {
        assert!(tables.contains(&table), "{tables:?}");
    }
    for table in tables {
        let rows = serde_json::Value::from(node.query(&format!("select * from {table}"))).to_string();
        if forms(text).iter().any(|form| has(rows.as_bytes(), form)) {
            found.insert(format!("table {table}"));
        }
    }
    found
}

/// The paths of the files below a folder that hold a text.
fn find(folder: &Path, text: &str) -> Vec<String> {
    let forms = forms(text);
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    let bytes = fs::read(entry.path()).unwrap_or_default();
                    if forms.iter().any(|form| has(&bytes, form)) {
                        found.push(entry.path().to_string_lossy().into_owned());
                    }
                }
                _ => {}
            }
        }
    }
    found
}

fn has(bytes: &[u8], part: &str) -> bool {
    memchr::memmem::find(bytes, part.as_bytes()).is_some()
}

/// A text as it is, in hexadecimal digits as Restate shows bytes, and in Base64 behind any number of bytes.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned(), text.bytes().map(|byte| format!("{byte:02x}")).collect()];
    for before in 0..3_usize {
        let encoded = BASE64.encode("\0".repeat(before) + text);
        // Its first and its last digit may also have bits of what is beside it.
        forms.push(encoded[(before * 4).div_ceil(3)..(before + text.len()) * 4 / 3].to_owned());
    }
    forms
}
