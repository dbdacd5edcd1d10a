//! `kill -9` of nodes of Restate while a run of two hundred steps goes on: nothing runs again, and where there are others,
//! the run does not wait for the node.

use std::cmp::Reverse;
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::cluster::{Cluster, Node, Setup, wait};
use super::rounds::{Rounds, effects, ended};

const ROUNDS: Rounds = Rounds { count: 10, width: 20 };

/// The first round that waits until the node that was killed first is back.
const LATE: usize = 7;

/// How long those who use the first node may be without an answer: several times what was measured on a busy machine, and
/// less than a lease.
const GAP: Duration = Duration::from_secs(30);

/// A run of two hundred steps that goes on while nodes are killed, of several not the one that all use: one in its middle,
/// another near its end, when the first is back.
fn run_through(nodes: usize) {
    let cluster = Cluster::start(&Setup { nodes: Some(nodes), ..Setup::default() });
    let folder = cluster.path("notes");
    fs::create_dir(&folder).expect("a folder can be made");
    let back = folder.join("back");
    let does = |round| match round {
        LATE.. => format!("until [ -e {} ]; do sleep 0.05; done", back.display()),
        _ => "sleep 0.2".to_owned(),
    };
    let person = cluster.person("person", &ROUNDS.spec("nodes", &folder, does));
    let _workers = ["one", "two"].map(|name| cluster.worker(name, "nodes", &["--slots", "8"], &[]));
    let await_steps = |count| wait("steps end", || (ended(&effects(&folder)) >= count).then_some(()));
    let mut run = person.start(&["run", "flow.kdl"]);
    let gap = std::thread::scope(|scope| {
        // It is dropped when a wait is in vain, too.
        let (is_on, is_over) = channel::<()>();
        let used = &cluster.nodes[0];
        let gap = scope.spawn(move || longest_gap(used, &is_over));
        await_steps(60);
        let mut others: Vec<&Node> = cluster.nodes.iter().skip(usize::from(nodes > 1)).collect();
        others.sort_by_key(|node| Reverse(node.count_led()));
        let (first, second) = (others[0], others[others.len() - 1]);
        first.program.kill();
        if nodes > 1 {
            await_steps(100);
        }
        first.program.start();
        first.await_all(nodes);
        fs::write(&back, "").expect("a file can be written");
        await_steps(150);
        assert!(!run.is_over() && ended(&effects(&folder)) < ROUNDS.steps());
        second.program.kill();
        if nodes == 1 {
            second.program.start();
        }
        wait("the run ends", || run.is_over().then_some(()));
        drop(is_on);
        gap.join().expect("it looks on")
    });
    let end = run.end().expect(0, &[], &[]);
    assert_eq!(end.out, ROUNDS.result());
    let effects = effects(&folder);
    let again: Vec<_> = effects.iter().filter(|(_, count)| **count > 1).collect();
    assert!(again.is_empty(), "{again:?}");
    assert_eq!(ended(&effects), ROUNDS.steps());
    let sql = "select target_service_key, status, completion_result from sys_invocation \
               where target_service_name = 'swarmc.Run'";
    let id = person.run_folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let completed = serde_json::json!([{
        "target_service_key": id, "status": "completed", "completion_result": "success",
    }]);
    assert_eq!(serde_json::Value::from(cluster.nodes[0].query(sql)), completed);
    assert!(gap < GAP, "nothing answered for {gap:?}");
}

/// The longest time without an answer of the engine by this node, until `is_over` has no sender.
fn longest_gap(node: &Node, is_over: &Receiver<()>) -> Duration {
    let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
    while is_over.recv_timeout(Duration::from_millis(10)) == Err(RecvTimeoutError::Timeout) {
        if node.answers() {
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
    }
    longest.max(last.elapsed())
}

#[test]
fn a_run_does_not_wait_for_one_of_three_nodes_that_ends() {
    run_through(3);
}

#[test]
fn a_run_of_two_hundred_steps_goes_on_when_its_only_node_starts_again() {
    run_through(1);
}
