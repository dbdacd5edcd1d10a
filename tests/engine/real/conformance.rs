//! The same plan on this machine and on an engine: the same records, but for what differs by design.

use serde_json::Value;

use super::cluster::Cluster;

/// Names, and what each is about; `concurrency 1`, so that the order of records is the same each time.
const SPECS: [(&str, &str); 9] = [
    (
        "loops",
        r#"loop rounds max=3 {
            task inside { run "echo round" }
            until "output.inside == 'never'"
        }"#,
    ),
    (
        "items",
        r#"task each { for-each "range(3)"; run "echo item" }; task after { depends-on each; run "echo after" }"#,
    ),
    (
        "skipped",
        r#"task a { run "echo a" }; task b { when "output.a == 'b'"; run "echo b" }; task c { depends-on b; run "echo c" }"#,
    ),
    ("flaky", r#"task a { retry 2 backoff="1ms"; run "echo $SWARM_ATTEMPT; echo said >&2; test $SWARM_ATTEMPT = 3" }"#),
    ("exhausted", r#"task a { retry 1 backoff="1ms"; run "exit 9" }; task b { depends-on a; run "echo b" }"#),
    ("handled", r#"task a { on-failure skip; run "exit 4" }; task b { run "echo b" }"#),
    (
        "gates",
        r#"gate go { message "Go?"; options yes no; headless yes }; task a { when "output.go.choice == 'yes'"; run "echo a" }"#,
    ),
    ("calls", r#"task a { call other }; task b { stdin "<<output:a>>"; run cat }"#),
    ("limits", r#"budget time="1h"; task a { timeout "300ms"; run "sleep 60" }; task b { run "seq 3000" }"#),
];

#[test]
fn records_are_those_of_a_run_of_one_machine() {
    let cluster = Cluster::shared();
    let _worker = cluster.worker("conformance-worker", "same", &["--slots", "2"], &[]);
    for (name, body) in SPECS {
        let spec = format!(
            "workflow {name} {{ default main }}\npipeline main {{\n    pool same\n    concurrency 1\n    {body}\n}}\n\
             pipeline other {{\n    pool same\n    task inner {{ run \"echo inner\" }}\n    result inner\n}}\n"
        );
        let at = |place: &str| cluster.person(&format!("{name}-{place}"), &spec);
        let (here, there) = (at("here"), at("there"));
        let arguments = ["run", "flow.kdl", "--headless"];
        let local = here.local(&arguments).output().expect("swarmc starts");
        let remote = there.swarmc(&arguments);
        assert_eq!(remote.code, local.status.code(), "{name}: {remote:#?}");
        assert_eq!(remote.out, String::from_utf8_lossy(&local.stdout), "{name}");
        let (expected, found) = (normalize(here.records()), normalize(there.records()));
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(found.len(), expected.len(), "{name}: {found:#?}");
        assert!(expected.len() > 2, "{name}: {expected:#?}");
        // What the engine did twice would be seen.
        let mut twice = there.records();
        twice.push(twice[twice.len() - 2].clone());
        assert_ne!(normalize(twice), expected, "{name}");
    }
}

/// Records without what differs by design.
fn normalize(records: Vec<Value>) -> Vec<Value> {
    let is_same = |record: &Value| {
        // Whether a process has lived for 20 ms depends on how fast the machine is.
        record["event"] != "process_started"
    };
    records
        .into_iter()
        .filter(is_same)
        .map(|mut record| {
            let fields = record.as_object_mut().expect("a record is an object");
            for name in ["crc", "seq", "at", "process", "epoch"] {
                fields.remove(name);
            }
            if fields["event"] == "run_started" {
                // Each run has an id of its own.
                fields.remove("run");
                // One machine has as many processors; an engine has a window.
                fields.remove("concurrency");
                // A run of an engine works on a commit; one of this machine on the folder as it is.
                fields.remove("commit");
            }
            record
        })
        .collect()
}
