//! `kill -9` of each part while a run goes on: nothing that has finished runs again, and the run ends as if undisturbed.

use std::fs;
use std::path::{Path, PathBuf};

use super::cluster::{Cluster, Person, Program, Running, Setup, wait};

/// The script finds by its folder which worker it is with, and waits for a file of that name.
const SLOW: &str = r##"
workflow slow { survive all }
pipeline main {
    pool slow
    task before { run "echo before >> FOLDER/effects; echo before" }
    task slow {
        stdin "<<output:before>>"
        run "sh" "-c" #"""
            worker=$(pwd | sed 's|.*/\([a-z]*\)-home/.*|\1|')
            echo "start $worker" >> FOLDER/effects
            echo $$ > FOLDER/process-$worker
            until [ -e FOLDER/go-$worker ]; do sleep 0.02; done
            echo "done $worker" >> FOLDER/effects
            cat; echo $worker
            """#
    }
    task after { run "echo after >> FOLDER/effects; cat"; stdin "<<output:slow>>" }
    result after
}
"##;

/// What the steps of a run note, and wait for.
struct Notes(PathBuf);

impl Notes {
    fn effects(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.join("effects")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The worker that has the slow step, of these.
    fn holder<'a>(&self, workers: &[&'a str]) -> &'a str {
        wait("the slow step has begun", || {
            let begun = |worker: &&&str| fs::read_to_string(self.process(worker)).is_ok_and(|id| id.ends_with('\n'));
            workers.iter().find(begun).copied()
        })
    }

    fn process(&self, worker: &str) -> PathBuf {
        self.0.join(format!("process-{worker}"))
    }

    /// Whether its process at this worker goes on.
    fn lives(&self, worker: &str) -> bool {
        let id = fs::read_to_string(self.process(worker)).expect("it has begun");
        let stat = fs::read_to_string(Path::new("/proc").join(id.trim()).join("stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    fn go(&self, worker: &str) {
        fs::write(self.0.join(format!("go-{worker}")), "").expect("a file can be written");
    }
}

/// A run whose slow step has begun.
struct Bench {
    run: Running,
    notes: Notes,
    workers: Vec<(&'static str, Program)>,
    person: Person,
    cluster: Cluster,
}

impl Bench {
    fn start(lease: Option<u64>, names: &[&'static str]) -> Bench {
        let cluster = Cluster::start(&Setup { lease, ..Setup::default() });
        let notes = Notes(cluster.path("notes"));
        fs::create_dir(&notes.0).expect("a folder can be made");
        let person = cluster.person("person", &SLOW.replace("FOLDER", &notes.0.to_string_lossy()));
        let worker = |name: &&'static str| (*name, cluster.worker(name, "slow", &["--slots", "2"], &[]));
        let workers = names.iter().map(worker).collect();
        let run = person.start(&["run", "flow.kdl"]);
        notes.holder(names);
        Bench { run, notes, workers, person, cluster }
    }

    fn worker(&self, name: &str) -> &Program {
        &self.workers.iter().find(|(known, _)| *known == name).expect("it is one of them").1
    }

    /// The run ends with what the slow step has said at this worker, after these effects.
    #[track_caller]
    fn ends_by(self, worker: &str, effects: &[&str]) {
        let ended = self.run.end().expect(0, &[], &[]);
        assert_eq!(ended.out, format!("before{worker}\n"));
        assert_eq!(self.notes.effects(), effects);
        let records = self.person.records();
        let ends = records.iter().filter(|record| record["event"] == "attempt_ended");
        let ends: Vec<_> = ends.map(|record| record["step"]["name"].as_str().unwrap_or_default()).collect();
        assert_eq!(ends, ["before", "slow", "after"]);
    }
}

#[test]
fn a_worker_that_starts_again_goes_on_with_what_it_had() {
    let bench = Bench::start(None, &["one"]);
    let worker = bench.worker("one");
    worker.kill();
    assert!(bench.notes.lives("one"), "its shim goes on without it");
    worker.start();
    wait("it has taken over", || worker.read_log().contains("goes on with 1 process").then_some(()));
    bench.notes.go("one");
    bench.ends_by("one", &["before", "start one", "done one", "after"]);
}

#[test]
fn what_a_lost_worker_had_runs_at_another_one_and_nothing_else_again() {
    let bench = Bench::start(Some(3), &["one", "two"]);
    let lost = bench.notes.holder(&["one", "two"]);
    let other = if lost == "one" { "two" } else { "one" };
    bench.worker(lost).kill();
    bench.notes.holder(&[other]);
    bench.notes.go(other);
    let effects = ["before".to_owned(), format!("start {lost}"), format!("start {other}"), format!("done {other}")];
    let effects: Vec<&str> = effects.iter().map(String::as_str).chain(["after"]).collect();
    bench.ends_by(other, &effects);
}

#[test]
fn a_worker_that_comes_back_too_late_ends_what_is_not_its_any_more() {
    let bench = Bench::start(Some(3), &["one", "two"]);
    let late = bench.notes.holder(&["one", "two"]);
    let other = if late == "one" { "two" } else { "one" };
    bench.worker(late).signal("STOP");
    bench.notes.holder(&[other]);
    assert!(bench.notes.lives(late), "its shim goes on without it");
    bench.worker(late).signal("CONT");
    wait("the process of the late one is ended", || (!bench.notes.lives(late)).then_some(()));
    // Nothing of it counts.
    bench.notes.go(late);
    bench.notes.go(other);
    let effects = ["before".to_owned(), format!("start {late}"), format!("start {other}"), format!("done {other}")];
    let effects: Vec<&str> = effects.iter().map(String::as_str).chain(["after"]).collect();
    bench.ends_by(other, &effects);
}

#[test]
fn a_report_that_comes_too_late_is_refused() {
    let bench = Bench::start(Some(3), &["one", "two"]);
    let late = bench.notes.holder(&["one", "two"]);
    let other = if late == "one" { "two" } else { "one" };
    bench.worker(late).signal("STOP");
    bench.notes.go(late);
    wait("it has ended", || (!bench.notes.lives(late)).then_some(()));
    bench.notes.holder(&[other]);
    bench.worker(late).signal("CONT");
    // It has reported, and holds nothing any more.
    let folder = bench.cluster.path(&format!("{late}-home")).join("worker/slow");
    wait("the late one has let go of it", || held(&folder).is_empty().then_some(()));
    assert_eq!(bench.person.records().iter().filter(|record| record["event"] == "attempt_ended").count(), 1);
    bench.notes.go(other);
    let both = [format!("start {late}"), format!("done {late}"), format!("start {other}"), format!("done {other}")];
    let effects: Vec<&str> = ["before"].into_iter().chain(both.iter().map(String::as_str)).chain(["after"]).collect();
    bench.ends_by(other, &effects);
}

/// What a worker has, by its folder.
fn held(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().len() == 32).map(|entry| entry.path()).collect()
}

#[test]
fn an_endpoint_that_starts_again_goes_on_with_its_runs() {
    let bench = Bench::start(None, &["one"]);
    for _ in 0..2 {
        bench.cluster.endpoint.kill();
        bench.cluster.endpoint.start();
        bench.cluster.await_answer();
    }
    bench.cluster.endpoint.kill();
    bench.notes.go("one");
    // It ends while no endpoint is there.
    wait("the step has ended", || (!bench.notes.lives("one")).then_some(()));
    bench.cluster.endpoint.start();
    bench.ends_by("one", &["before", "start one", "done one", "after"]);
}

#[test]
fn a_server_of_restate_that_starts_again_has_lost_nothing() {
    let bench = Bench::start(None, &["one"]);
    bench.cluster.nodes[0].program.kill();
    bench.cluster.nodes[0].program.start();
    bench.cluster.await_answer();
    bench.cluster.nodes[0].program.kill();
    bench.notes.go("one");
    wait("the step has ended", || (!bench.notes.lives("one")).then_some(()));
    bench.cluster.nodes[0].program.start();
    bench.ends_by("one", &["before", "start one", "done one", "after"]);
}
