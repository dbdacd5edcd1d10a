//! The same plan on this machine and on an engine: the same records, undisturbed and whatever is killed while a command
//! of it is under way.
//!
//! Records are compared one by one, in their order, with all their fields but these:
//!
//! - `crc`, `seq` and `at` of each: two runs differ in time, and where a record is left out the numbers behind it do
//! - `run`, `concurrency` and `commit` of `run_started`: an id of its own, the processors of a machine or the window of an
//!   engine, and the commit that only runs of an engine work on
//! - `process_started`, which has process, boot and host: whether a process has lived for 20 ms depends on how fast the
//!   machine is, and a process that starts again on another worker has one for each start
//!
//! A killed worker adds nothing: its processes go on or start again within their attempt, so the run is compared with an
//! undisturbed one of this machine. A killed engine is compared with a killed and resumed runner of this machine, whose
//! records of that (`run_resumed`, `attempt_rejoined`) are compared as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::cluster::{Cluster, Person, Program, Setup, wait};
use super::proxy::Proxy;

const SPECS: [(&str, &str); 9] = [
    (
        "loops",
        r#"loop rounds max=3 {
            task inside { run "PAUSE echo round" }
            until "output.inside == 'never'"
        }"#,
    ),
    (
        "items",
        r#"task each { for-each "range(3)"; run "PAUSE echo item" }
        task after { depends-on each; run "PAUSE echo after" }"#,
    ),
    (
        "skipped",
        r#"task a { run "PAUSE echo a" }
        task b { when "output.a == 'b'"; run "PAUSE echo b" }
        task c { depends-on b; run "PAUSE echo c" }"#,
    ),
    (
        "flaky",
        r#"task a { retry 2 backoff="1ms"; run "PAUSE echo $SWARM_ATTEMPT; echo said >&2; test $SWARM_ATTEMPT = 3" }"#,
    ),
    (
        "exhausted",
        r#"task a { retry 1 backoff="1ms"; run "PAUSE exit 9" }; task b { depends-on a; run "PAUSE echo b" }"#,
    ),
    ("handled", r#"task a { on-failure skip; run "PAUSE exit 4" }; task b { run "PAUSE echo b" }"#),
    (
        "gates",
        r#"gate go { message "Go?"; options yes no; headless yes }
        task a { when "output.go.choice == 'yes'"; run "PAUSE echo a" }"#,
    ),
    ("calls", r#"task a { call other }; task b { stdin "<<output:a>>"; run cat }"#),
    ("limits", r#"budget time="1h"; task a { timeout "300ms"; run "sleep 60" }; task b { run "PAUSE seq 3000" }"#),
];

/// A workflow of one of these.
fn build_spec(name: &str, body: &str, pause: &str) -> String {
    let spec = format!(
        "workflow {name} {{ survive all; default main }}\npipeline main {{\n    pool same\n    concurrency 1\n    {body}\n}}\n\
         pipeline other {{\n    pool same\n    task inner {{ run \"PAUSE echo inner\" }}\n    result inner\n}}\n"
    );
    spec.replace("PAUSE ", pause)
}

const RUN: [&str; 3] = ["run", "flow.kdl", "--headless"];

#[test]
fn records_are_those_of_a_run_of_one_machine() {
    let cluster = Cluster::shared();
    let _worker = cluster.worker("conformance-worker", "same", &["--slots", "2"], &[]);
    for (name, body) in SPECS {
        let spec = build_spec(name, body, "");
        let at = |place: &str| cluster.person(&format!("{name}-{place}"), &spec);
        let (here, there) = (at("here"), at("there"));
        let local = here.local(&RUN).output().expect("swarmc starts");
        let remote = there.swarmc(&RUN);
        assert_eq!(remote.code, local.status.code(), "{name}: {remote:#?}");
        assert_eq!(remote.out, String::from_utf8_lossy(&local.stdout), "{name}");
        let expected = here.records();
        assert_eq!(find_differences(&expected, &there.records()), [""; 0], "{name}");
        assert!(expected.len() > 2, "{name}: {expected:#?}");
        // What the engine did twice would be seen.
        let mut twice = there.records();
        twice.push(twice[twice.len() - 2].clone());
        assert_ne!(find_differences(&expected, &twice), [""; 0], "{name}");
    }
}

/// What differs between two runs, but for what differs by design.
fn find_differences(expected: &[Value], found: &[Value]) -> Vec<String> {
    let (expected, found) = (normalize(expected), normalize(found));
    let length = expected.len().max(found.len());
    let pairs = (0..length).map(|at| (expected.get(at), found.get(at)));
    let show = |record: Option<&Value>| record.map_or_else(|| "nothing".to_owned(), Value::to_string);
    pairs
        .filter(|(expected, found)| expected != found)
        .map(|(expected, found)| format!("{} in the place of {}", show(found), show(expected)))
        .collect()
}

/// Records without what differs by design.
fn normalize(records: &[Value]) -> Vec<Value> {
    let without = |record: &Value| {
        let mut record = record.clone();
        let fields = record.as_object_mut().expect("a record is an object");
        let is_first = fields["event"] == "run_started";
        let of_first: &[&str] = if is_first { &["run", "concurrency", "commit"] } else { &[] };
        for name in ["crc", "seq", "at"].iter().chain(of_first) {
            fields.remove(*name);
        }
        record
    };
    records.iter().filter(|record| record["event"] != "process_started").map(without).collect()
}

/// Where commands of a run wait: each writes `begun-WORKER`, and goes on once there is `go-WORKER`. On this machine the
/// name is empty.
struct Pause(PathBuf);

impl Pause {
    /// One that the `count`th command of a machine waits at.
    fn new(cluster: &Cluster, name: &str, count: u32) -> Pause {
        let pause = Pause(cluster.path(&format!("pause-{name}")));
        let folder = pause.0.to_string_lossy().into_owned();
        pause.reset();
        let script = r#"
            worker=$(pwd | sed -n 's|.*/\([a-z]*\)-home/.*|\1|p')
            echo >> FOLDER/count-$worker
            if [ $(wc -l < FOLDER/count-$worker) = COUNT ]; then
                touch FOLDER/begun-$worker
                until [ -e FOLDER/go-$worker ]; do sleep 0.02; done
            fi
        "#;
        let script = script.replace("FOLDER", &folder).replace("COUNT", &count.to_string());
        fs::write(cluster.path(&format!("pause-{name}.sh")), script).expect("a file can be written");
        pause
    }

    /// What a command begins with.
    fn command(&self) -> String {
        format!(". {}.sh; ", self.0.display())
    }

    /// Nothing waits, and nothing has.
    fn reset(&self) {
        let _ = fs::remove_dir_all(&self.0);
        fs::create_dir(&self.0).expect("a folder can be made");
    }

    fn await_begun(&self, worker: &str) {
        let path = self.0.join(format!("begun-{worker}"));
        wait("the command has begun", || path.exists().then_some(()));
    }

    fn go(&self, worker: &str) {
        fs::write(self.0.join(format!("go-{worker}")), "").expect("a file can be written");
    }

    /// The records of an undisturbed run of this machine.
    fn run_local(&self, person: &Person) -> Vec<Value> {
        self.reset();
        self.go("");
        person.local(&RUN).output().expect("swarmc starts");
        person.records()
    }

    /// The same of one whose runner is killed while the command is under way, and that is resumed.
    fn kill_local(&self, person: &Person) -> Vec<Value> {
        self.reset();
        let mut child = person.local(&RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("swarmc starts");
        self.await_begun("");
        child.kill().expect("it goes on");
        child.wait().expect("it can be waited for");
        self.go("");
        person.local(&["resume", "last", "--headless"]).output().expect("swarmc starts");
        person.records()
    }
}

#[test]
fn records_after_kills_of_a_worker_or_the_engine_are_those_after_kills_of_a_runner() {
    // The command of each that is under way then.
    const PLANS: [(&str, u32); 6] =
        [("loops", 2), ("items", 2), ("flaky", 2), ("exhausted", 1), ("calls", 1), ("limits", 1)];
    let cluster = Cluster::start(&Setup::default());
    let worker = cluster.worker("killed", "same", &["--slots", "2"], &[]);
    let restart = |program: &Program| {
        program.kill();
        program.start();
    };
    for (name, count) in PLANS {
        let pause = Pause::new(&cluster, name, count);
        let body = SPECS.iter().find(|(known, _)| *known == name).expect("it is one of them").1;
        let spec = build_spec(name, body, &pause.command());
        let at = |place: &str| cluster.person(&format!("{name}-{place}"), &spec);
        for (what, program, expected) in [
            ("worker", &worker, pause.run_local(&at("undisturbed"))),
            ("engine", &cluster.endpoint, pause.kill_local(&at("killed-runner"))),
        ] {
            let has_resumed = expected.iter().any(|record| record["event"] == "attempt_rejoined");
            assert_eq!(has_resumed, what == "engine", "{name}: {expected:#?}");
            pause.reset();
            let person = at(what);
            let run = person.start(&RUN);
            pause.await_begun("killed");
            restart(program);
            pause.go("killed");
            run.end();
            assert_eq!(find_differences(&expected, &person.records()), [""; 0], "{name}, {what}");
        }
    }
}

/// The second step says something, waits, and says something more.
const LATE: &str = r#"
    task before { run "echo before" }
    task slow { depends-on before; run "echo begun; PAUSE echo done" }
    task after { stdin "<<output:slow>>"; run cat }
"#;

/// What becomes of the first worker while the command is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// It is killed.
    Killed,
    /// What it reports comes too late.
    Held,
    /// The same, and looks like what the worker reports that has the command by then. Reports have numbers, and one that
    /// comes twice counts once: so the number is rewritten too.
    Rewritten,
}

#[test]
fn records_are_the_same_if_late_reports_are_refused_and_differ_if_they_count() {
    let cluster = Cluster::start(&Setup { lease: Some(3), ..Setup::default() });
    for (loss, name) in [(Loss::Killed, "killed"), (Loss::Held, "held"), (Loss::Rewritten, "rewritten")] {
        let pause = Pause::new(&cluster, name, 1);
        let spec = build_spec(name, LATE, &pause.command()).replace("pool same", &format!("pool {name}"));
        let expected = pause.run_local(&cluster.person(&format!("{name}-here"), &spec));
        pause.reset();
        let proxy = Proxy::start(cluster.port());
        proxy.hold_from("/slow.");
        let url = if loss == Loss::Killed { cluster.url() } else { proxy.url() };
        let (first, second) = (format!("{name}first"), format!("{name}second"));
        let worker = cluster.worker_by(&[], &url, &first, name, &[], &[]);
        let person = cluster.person(&format!("{name}-there"), &spec);
        let run = person.start(&RUN);
        pause.await_begun(&first);
        match loss {
            Loss::Killed => worker.kill(),
            _ => wait("its reports are held", || proxy.holds().then_some(())),
        }
        let _other = cluster.worker(&second, name, &[], &[]);
        pause.await_begun(&second);
        if loss != Loss::Killed {
            pause.go(&first);
            let start = find_start(&cluster.path(&format!("{second}-home/worker/{name}")));
            proxy.release((loss == Loss::Rewritten).then_some(start));
            wait("they are through", || proxy.is_open().then_some(()));
            assert_eq!(proxy.has_refused(), loss == Loss::Held, "{loss:?}");
        }
        pause.go(&second);
        run.end().expect(0, &[], &[]);
        let differences = find_differences(&expected, &person.records());
        match loss {
            Loss::Rewritten => {
                assert!(differences.iter().any(|line| line.contains("begun\\nbegun\\ndone")), "{differences:#?}");
            }
            _ => assert_eq!(differences, [""; 0], "{loss:?}"),
        }
    }
}

/// The number of the start that a worker has, by the folder of its pool.
fn find_start(folder: &Path) -> u64 {
    let orders = fs::read_dir(folder).expect("it has one").flatten().map(|entry| entry.path().join("order.json"));
    let starts: Vec<u64> = orders
        .filter_map(|order| serde_json::from_slice::<Value>(&fs::read(order).ok()?).ok()?["start"].as_u64())
        .collect();
    assert_eq!(starts.len(), 1, "it has one process: {starts:?}");
    starts[0]
}
