//! Two workers in two network namespaces, behind links that can be cut: the files of a run, and a partition.
//!
//! ```text
//!  namespace of the test                 namespace `one`
//!  Restate, engine, client  10.77.1.1 ── 10.77.1.2  worker
//!                           10.77.2.1 ── 10.77.2.2  worker
//!                                        namespace `two`
//! ```
//!
//! Each test starts itself again in a network namespace of its own, so nothing of it listens at an address of the machine.
//! Namespaces have no names: each is gone with its last process.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::cluster::{Cluster, Program, Setup, git, installed, wait};

/// Set in the namespace of a test: the namespace of the machine.
const OUTSIDE: &str = "SWARMC_TEST_OUTSIDE";

/// Runs a test in a network namespace of its own.
fn in_namespace(name: &str, test: impl FnOnce()) {
    let own = fs::read_link("/proc/self/ns/net").expect("the system has network namespaces");
    if let Some(outside) = std::env::var_os(OUTSIDE) {
        assert_ne!(own, PathBuf::from(outside), "only the test itself sets {OUTSIDE}");
        call("ip", &["link", "set", "lo", "up"]);
        return test();
    }
    // It installs `ip` as well.
    installed();
    let ways: [&[&str]; 2] = [&["--net", "--uts"], &["--net", "--uts", "--user", "--map-root-user"]];
    let make = ["sh", "-c", "ip link add near type veth peer name far && echo name > /proc/sys/kernel/hostname"];
    let outputs =
        ways.map(|way| Command::new("unshare").args(way).args(make).output().expect("unshare can be started"));
    let Some(at) = outputs.iter().position(|output| output.status.success()) else {
        let said = outputs.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned());
        panic!(
            "this machine lets no test make network namespaces with links between them (CAP_SYS_ADMIN and CAP_NET_ADMIN, \
             or user namespaces, and the kernel module veth): {said:?}"
        );
    };
    crate::patience::begin();
    let this = std::env::current_exe().expect("this program is known");
    let full = format!("{}::{name}", module_path!().split_once("::").expect("it is a module").1);
    let mut command = Command::new("unshare");
    command.args(ways[at]).arg(this).args(["--exact", &full, "--nocapture"]).env(OUTSIDE, own);
    let output = command.stdin(Stdio::null()).output().expect("unshare can be started");
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

/// Runs a program that has to succeed.
fn call(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect("it can be started");
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A machine of its own, as far as its network and its name go.
struct Machine {
    /// What keeps its namespaces: ends with its standard input, and so with the test.
    keeper: Child,
    name: &'static str,
    number: u8,
}

impl Machine {
    fn new(name: &'static str, number: u8) -> Machine {
        let script = format!("echo {name} > /proc/sys/kernel/hostname && echo ready && read line");
        let mut command = Command::new("unshare");
        command.args(["--net", "--uts", "sh", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().expect("unshare can be started");
        let mut line = String::new();
        let out = keeper.stdout.take().expect("it has an output");
        BufReader::new(out).read_line(&mut line).expect("it can be read");
        assert_eq!(line, "ready\n");
        let machine = Machine { keeper, name, number };
        let (near, id) = (machine.link(), machine.keeper.id().to_string());
        call("ip", &["link", "add", &near, "type", "veth", "peer", "name", "far", "netns", &id]);
        call("ip", &["address", "add", &format!("10.77.{number}.1/24"), "dev", &near]);
        machine.set_link("up");
        let there = format!("10.77.{number}.2/24");
        for arguments in
            [&["link", "set", "lo", "up"][..], &["address", "add", &there, "dev", "far"], &["link", "set", "far", "up"]]
        {
            let prefix = machine.prefix();
            let all: Vec<&str> =
                prefix[1..].iter().map(|word| &**word).chain(["ip"]).chain(arguments.to_vec()).collect();
            call(&prefix[0], &all);
        }
        machine
    }

    fn link(&self) -> String {
        format!("near{}", self.number)
    }

    fn set_link(&self, state: &str) {
        call("ip", &["link", "set", &self.link(), state]);
    }

    /// What runs a command there.
    fn prefix(&self) -> [String; 3] {
        let namespaces = format!("/proc/{}/ns", self.keeper.id());
        ["nsenter".to_owned(), format!("--net={namespaces}/net"), format!("--uts={namespaces}/uts")]
    }

    fn worker(&self, cluster: &Cluster, pool: &str, more: &[&str]) -> Program {
        let prefix = self.prefix();
        let url = format!("http://10.77.{}.1:{}", self.number, cluster.port());
        cluster.worker_by(&prefix.each_ref().map(|word| &**word), &url, self.name, pool, more, &[])
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

const ROUNDS: usize = 10;
const WIDTH: usize = 20;

/// Each of 200 steps writes a file of its own, from that of the step before it.
fn wide() -> String {
    let mut spec = String::from("workflow wide\npipeline main {\n    pool wide\n    concurrency 16\n");
    for round in 0..ROUNDS {
        for at in 0..WIDTH {
            let name = format!("r{round}-{at}");
            let (needs, from) = match round {
                0 => (String::new(), "other.txt".to_owned()),
                _ => (format!("depends-on r{}-{at}; ", round - 1), format!("r{}-{at}.txt", round - 1)),
            };
            // Long enough to be in the journal as a process, with its host.
            let script = format!("sleep 0.03; (cat {from}; echo {name}) > {name}.txt");
            spec.push_str(&format!("    task {name} {{ {needs}run \"{script}\" }}\n"));
        }
    }
    spec + "}\n"
}

#[test]
fn two_hundred_steps_on_two_machines_leave_the_files_of_one_machine() {
    in_namespace("two_hundred_steps_on_two_machines_leave_the_files_of_one_machine", || {
        let cluster = Cluster::start(&Setup { ingress: Some("0.0.0.0"), ..Setup::default() });
        let machines = [Machine::new("one", 1), Machine::new("two", 2)];
        let _workers = machines.each_ref().map(|machine| machine.worker(&cluster, "wide", &["--slots", "8"]));
        let person = cluster.person("person", &wide());
        person.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
        let records = person.records();
        let of = |event: &str| records.iter().filter(|record| record["event"] == event).cloned().collect::<Vec<_>>();
        let hosts: BTreeSet<String> =
            of("process_started").iter().map(|record| record["process"]["host"].to_string()).collect();
        assert_eq!(hosts.iter().collect::<Vec<_>>(), ["\"one\"", "\"two\""]);
        assert_eq!(of("attempt_ended").len(), ROUNDS * WIDTH);
        // The files of the run, as its patches make them.
        let applied = cluster.person("applied", &wide());
        let run =
            fs::read_dir(person.home.join("runs")).expect("there are runs").flatten().next().expect("there is one");
        let patches = fs::read(run.path().join("patches.json")).expect("it has patches");
        let patches: Vec<Value> = serde_json::from_slice(&patches).expect("they are JSON");
        assert_eq!(patches.len(), ROUNDS * WIDTH);
        for patch in &patches {
            let digest = patch["digest"].as_str().expect("it has one");
            let path = cluster.path("store/sha256").join(&digest[..2]).join(digest);
            git(&applied.work, &["apply", "--binary", &path.to_string_lossy()]);
        }
        let local = cluster.person("local", &wide());
        let ended = local.local(&["run", "flow.kdl"]).output().expect("swarmc starts");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        for person in [&applied, &local] {
            git(&person.work, &["add", "-A"]);
            git(&person.work, &["commit", "--quiet", "-m", "all of it"]);
        }
        git(&applied.work, &["fetch", "--quiet", &local.work.to_string_lossy(), "HEAD"]);
        assert_eq!(git(&applied.work, &["diff", "HEAD", "FETCH_HEAD"]), "");
        let changed = git(&applied.work, &["diff", "--name-only", "HEAD~"]);
        assert_eq!(changed.lines().count(), ROUNDS * WIDTH + 1, "the files of all steps, and the spec: {changed}");
    });
}

/// Of two steps at once, one ends while its worker is cut off, and one goes on.
const CUT: &str = r##"
workflow cut { survive all }
pipeline main {
    pool cut
    task before { run "echo before >> FOLDER/effects; echo before" }
    task ends { depends-on before; run "SCRIPT" }
    task stays { depends-on before; run "SCRIPT" }
    task after { run "echo after >> FOLDER/effects; cat"; stdin "<<output:ends>> <<output:stays>>" }
    result after
}
"##;

/// By the folder that it runs in, it knows which worker it is with.
const SCRIPT: &str = r"
worker=$(pwd | sed 's|.*/\\([a-z]*\\)-home/.*|\\1|')
echo start $SWARM_TASK $worker >> FOLDER/effects
echo $$ > FOLDER/process-$SWARM_TASK-$worker
until [ -e FOLDER/go-$SWARM_TASK-$worker ]; do sleep 0.02; done
echo done $SWARM_TASK $worker >> FOLDER/effects
echo $worker";

#[test]
fn a_machine_that_was_cut_off_changes_nothing_and_ends_what_others_have() {
    in_namespace("a_machine_that_was_cut_off_changes_nothing_and_ends_what_others_have", || {
        let cluster = Cluster::start(&Setup { ingress: Some("0.0.0.0"), lease: Some(3), ..Setup::default() });
        let folder = cluster.path("notes");
        fs::create_dir(&folder).expect("a folder can be made");
        let script = SCRIPT.trim().replace('\n', "; ");
        let spec = CUT.replace("SCRIPT", &script).replace("FOLDER", &folder.to_string_lossy());
        let effects = || fs::read_to_string(folder.join("effects")).unwrap_or_default();
        let await_start = |step: &str, worker: &str| {
            let line = format!("start {step} {worker}\n");
            wait(&line, || effects().contains(&line).then_some(()));
            let path = folder.join(format!("process-{step}-{worker}"));
            wait("it has an id", || fs::read_to_string(&path).ok().filter(|id| id.ends_with('\n')))
        };
        let go = |step: &str, worker: &str| {
            fs::write(folder.join(format!("go-{step}-{worker}")), "").expect("a file can be written");
        };
        let machines = [Machine::new("one", 1), Machine::new("two", 2)];
        let _one = machines[0].worker(&cluster, "cut", &["--slots", "2"]);
        let person = cluster.person("person", &spec);
        let run = person.start(&["run", "flow.kdl"]);
        let [ends, stays] = ["ends", "stays"].map(|step| await_start(step, "one"));
        machines[0].set_link("down");
        go("ends", "one");
        wait("its command has ended", || (!lives(&ends)).then_some(()));
        let _two = machines[1].worker(&cluster, "cut", &["--slots", "2"]);
        for step in ["ends", "stays"] {
            await_start(step, "two");
        }
        assert!(lives(&stays), "it goes on without its worker's link");
        let held = cluster.path("one-home").join("worker/cut");
        let count =
            || fs::read_dir(&held).expect("it has one").flatten().filter(|it| it.file_name().len() == 32).count();
        assert_eq!(count(), 2, "the first worker knows nothing of this");
        machines[0].set_link("up");
        wait("the process of the first one is ended", || (!lives(&stays)).then_some(()));
        wait("the first one has let go of both", || (count() == 0).then_some(()));
        // What it had to say late is refused: both steps go on at the other one.
        let ended = || {
            let records = person.records();
            let ends = records.iter().filter(|record| record["event"] == "attempt_ended");
            ends.map(|record| record["step"]["name"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ended(), ["before"]);
        go("ends", "two");
        go("stays", "two");
        // It would write if it went on.
        go("stays", "one");
        assert_eq!(run.end().expect(0, &[], &[]).out, "two two\n");
        assert_eq!(ended().iter().collect::<BTreeSet<_>>().len(), ended().len(), "{:?}", ended());
        let effects = effects();
        let mut lines: Vec<&str> = effects.lines().collect();
        assert_eq!((lines.remove(0), lines.pop()), ("before", Some("after")), "{effects}");
        lines.sort_unstable();
        let done = ["done ends one", "done ends two", "done stays two"];
        let starts = ["start ends one", "start ends two", "start stays one", "start stays two"];
        assert_eq!(lines, [&done[..], &starts].concat());
    });
}

/// Whether a process goes on, by what a file says of its id.
fn lives(id: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id.trim()).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
