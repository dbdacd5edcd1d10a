//! People at other machines: what they see of a run of an engine, and what they do to it.

use super::cluster::Cluster;

const GATE: &str = r#"
workflow gates
pipeline main {
    pool POOL
    task build { run "echo built; echo warned >&2" }
    gate release { message "Release it?"; options yes no; on-timeout no after="1h"; depends-on build }
    task publish { when "output.release.choice == 'yes'"; depends-on release; run "echo published" }
    result publish
}
"#;

#[test]
fn a_run_is_seen_and_answered_from_another_machine() {
    let cluster = Cluster::shared();
    let runner = cluster.person("runner", &GATE.replace("POOL", "seen"));
    let other = cluster.person("onlooker", "workflow none\n");
    let _worker = cluster.worker("seen-worker", "seen", &[], &[]);
    let run = runner.start(&["run", "flow.kdl"]);
    let id = cluster.wait("the gate is open", || {
        let err = run.err();
        let id = err.strip_prefix("run ")?.split(':').next()?.to_owned();
        err.contains("Release it?").then_some(id)
    });
    other.swarmc(&["ps"]).expect(0, &[&id, "gates"], &[]);
    other.swarmc(&["inspect", &id]).expect(0, &["build", "succeeded", "release"], &[]);
    other.swarmc(&["events", &id]).expect(0, &["run_started", "gate_opened"], &[]);
    let logs = cluster.wait("the logs are there", || {
        let logs = other.swarmc(&["logs", &id]);
        logs.out.contains("warned").then_some(logs)
    });
    logs.expect(0, &["built", "warned"], &[]);
    let refused = other.swarmc(&["send", &id, "build", "hello"]);
    assert_ne!(refused.code, Some(0), "`build` has no agent: {refused:#?}");
    other.swarmc(&["approve", &id, "release", "maybe"]).expect(2, &[], &["maybe"]);
    other.swarmc(&["approve", &id, "release", "yes"]).expect(0, &[], &[]);
    let ended = run.end().expect(0, &[], &[]);
    assert_eq!(ended.out, "published\n");
    // A later look shows the same.
    let late = cluster.person("late", "workflow none\n");
    late.swarmc(&["ps", "--all"]).expect(0, &[&id, "succeeded"], &[]);
    late.swarmc(&["logs", &id]).expect(0, &["built", "published"], &[]);
}

#[test]
fn a_run_is_stopped_from_another_machine_and_resumed_on_none() {
    let cluster = Cluster::shared();
    let runner = cluster.person("stopped", &GATE.replace("POOL", "stopped"));
    let other = cluster.person("stopper", "workflow none\n");
    let _worker = cluster.worker("stopped-worker", "stopped", &[], &[]);
    let run = runner.start(&["run", "flow.kdl"]);
    let id = cluster.wait("the gate is open", || {
        let err = run.err();
        let id = err.strip_prefix("run ")?.split(':').next()?.to_owned();
        err.contains("Release it?").then_some(id)
    });
    // Other tests have runs of the same engine.
    let told = other.swarmc(&["stop", &id]).expect(0, &[], &["is stopping"]);
    assert!(!told.err.contains("resume"), "{told:#?}");
    let ended = run.end().expect(4, &[], &["stopped"]);
    assert!(!ended.err.contains("swarmc resume"), "{ended:#?}");
    // A copy has no runner: here it would go on without its workers.
    let refused = runner.local(&["resume", "last"]).output().expect("swarmc starts");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("one of an engine"), "{refused:?}");
}
