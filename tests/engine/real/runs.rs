//! What a run of an engine gives, and what its workers find.

use std::collections::BTreeSet;
use std::fs;

use super::cluster::{Cluster, git};

const THREE: &str = r#"
workflow three
param fails default="no"
pipeline main {
    pool three
    task first { run "echo one; echo noise >&2" }
    task second { run cat; stdin "got <<output:first>>" }
    task third { run "echo third $(cat)"; stdin "<<output:second>>" }
    task last { when "param.fails == 'yes'"; depends-on third; run "echo because >&2; exit 7" }
    result third
}
"#;

#[test]
fn a_run_gives_its_result_alone_and_its_exit_code() {
    let cluster = Cluster::shared();
    let person = cluster.person("three", THREE);
    let _worker = cluster.worker("three-worker", "three", &[], &[]);
    let ended = person.swarmc(&["run", "flow.kdl"]).expect(0, &[], &["first  │ one\n", "noise", "third: succeeded"]);
    assert_eq!(ended.out, "third got one\n");
    let failed = person.swarmc(&["run", "flow.kdl", "--param", "fails=yes"]);
    let failed = failed.expect(3, &[], &["last", "because", "7"]);
    let local = person.local(&["run", "flow.kdl", "--param", "fails=yes"]).output().expect("swarmc starts");
    assert_eq!((local.status.code(), String::from_utf8_lossy(&local.stdout)), (failed.code, failed.out.into()));
}

/// Sixty steps in five rounds: each writes a file of its own and reads those of the round before.
fn wide() -> String {
    let mut spec = String::from("workflow wide\npipeline main {\n    pool wide\n    concurrency 12\n");
    for round in 0..5 {
        for at in 0..12 {
            let name = format!("r{round}-{at}");
            let needs = match round {
                0 => String::new(),
                _ => (0..12).map(|at| format!(" r{}-{at}", round - 1)).collect(),
            };
            let needs = if needs.is_empty() { needs } else { format!("depends-on{needs}; ") };
            let read = format!("cat r{}-*.txt 2>/dev/null", round - 1_i32);
            let script = format!("pwd; sleep 0.05; (echo {name}; {read} | sort) > {name}.txt");
            spec.push_str(&format!("    task {name} {{ {needs}run \"{script}\" }}\n"));
        }
    }
    let needs: String = (0..12).map(|at| format!(" r4-{at}")).collect();
    spec + &format!(
        "    task sum {{ depends-on{needs}; run \"sha256sum r?-*.txt; cat shared.txt\" }}\n    result sum\n}}\n"
    )
}

#[test]
fn steps_of_two_workers_see_the_files_of_each_other_as_those_of_one_machine() {
    let cluster = Cluster::shared();
    let person = cluster.person("wide", &wide());
    let names = ["wide-one", "wide-two"];
    let _workers = names.map(|name| cluster.worker(name, "wide", &["--slots", "4"], &[]));
    let ended = person.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    // Each has the name of its worker in the folder that it works in.
    let took_part: BTreeSet<&str> =
        names.into_iter().filter(|name| ended.err.contains(&format!("/{name}-home/"))).collect();
    assert_eq!(took_part.len(), 2, "{took_part:?}");
    assert_eq!(ended.err.matches("-home/").count(), 60, "{}", ended.err);
    let local = person.local(&["run", "flow.kdl"]).output().expect("swarmc starts");
    assert!(local.status.success(), "{}", String::from_utf8_lossy(&local.stderr));
    assert_eq!(ended.out, String::from_utf8_lossy(&local.stdout), "the same changes");
    let written = git(&person.work, &["status", "--porcelain", "--", "r?-*.txt"]);
    assert_eq!(written.lines().count(), 60, "the local run has written as many");
    assert!(fs::read_to_string(person.work.join("r4-0.txt")).expect("it is there").contains("r0-11"));
}

const CONFLICT: &str = r#"
workflow conflict
pipeline main {
    pool conflict
    task one { run "until [ -e FOLDER/two ]; do sleep 0.01; done; sed -i s/two/ONE/ shared.txt" }
    task two { run "touch FOLDER/two; until [ -e FOLDER/one ]; do sleep 0.01; done; sed -i s/two/TWO/ shared.txt" }
    result one
}
"#;

#[test]
fn a_change_of_what_another_step_has_changed_meanwhile_fails_with_both_names() {
    let cluster = Cluster::shared();
    let folder = cluster.path("conflict-files");
    fs::create_dir(&folder).expect("a folder can be made");
    let person = cluster.person("conflict", &CONFLICT.replace("FOLDER", &folder.to_string_lossy()));
    let _worker = cluster.worker("conflict-worker", "conflict", &["--slots", "2"], &[]);
    let run = person.start(&["run", "flow.kdl"]);
    cluster.wait("the first has ended", || run.err().contains("one: succeeded").then_some(()));
    fs::write(folder.join("one"), "").expect("a file can be written");
    let ended = run.end();
    let said = "the changes of `two` do not fit: it changes `shared.txt`, which `one` has changed";
    ended.expect(3, &[], &[said]);
}
