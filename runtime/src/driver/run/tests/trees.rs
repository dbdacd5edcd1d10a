//! Pipelines and tasks in worktrees of their own, with a real repository.

use std::path::Path;

use swarmc_plan::{Body, Call, EachJoin, ForEach, Retry, Step};

use super::world::*;
use super::*;

/// A world whose workspace is a repository with one commit.
fn world() -> World {
    let world = World::new();
    std::fs::write(world.workspace().join("readme"), "as committed\n").unwrap();
    git(&world.workspace(), "git init -q -b main && git add -A");
    git(&world.workspace(), &format!("{COMMIT} -m one"));
    world
}

/// Commits the staged changes, as a made-up author.
const COMMIT: &str = "git -c user.name=Ada -c user.email=ada@example.org commit -q";

fn git(folder: &Path, line: &str) -> String {
    let done = std::process::Command::new("sh").args(["-c", line]).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn treed(steps: Vec<Step>) -> Plan {
    let mut plan = plan(steps);
    plan.pipelines[0].worktree = true;
    plan
}

fn own(tree: &str, step: Step) -> Step {
    Step { worktree: Some(tree.to_owned()), ..step }
}

/// The notices about trees, without what is different in every run.
fn kept(world: &World, run: &str) -> Vec<String> {
    let folder = world.in_run("worktrees");
    let notices = world.notices().into_iter().filter(|notice| notice.starts_with("worktree"));
    notices.map(|notice| notice.replace(&*folder.to_string_lossy(), "TREES").replace(run, "RUN")).collect()
}

#[test]
fn every_instance_works_in_a_tree_of_its_own_and_work_is_kept() {
    let world = world();
    std::fs::write(world.workspace().join("readme"), "changed since\n").unwrap();
    std::fs::write(world.workspace().join(".git/info/exclude"), "built\n").unwrap();
    let line = format!(
        "echo >built; cat readme; case $SWARM_INSTANCE in 1) echo one >new;; 2) echo two >new; git add new; {COMMIT} -m two;; esac"
    );
    let mut plan = treed(vec![step("work", sh(&line), &[]), step("look", sh("cat new || true"), &["work"])]);
    plan.pipelines[0].parallelism = 3;
    let outcome = world.start(&plan);
    assert_eq!(
        (outcome.ended, outcome.values.as_slice()),
        (Ended::Succeeded, &["one", "two", ""].map(String::from)[..])
    );
    assert_eq!(world.read(world.output("main.3/work.txt")), "as committed\n");
    assert!(!world.workspace().join("new").exists() && world.workspace().join("readme").exists());
    assert_eq!(
        kept(&world, &outcome.run),
        [
            "worktree `main.1` is kept, with changes that are not committed: branch `swarm/RUN/main.1`, in TREES/main.1",
            "worktree `main.2` is kept, with commits: branch `swarm/RUN/main.2`, in TREES/main.2",
        ]
    );
    let branches = git(&world.workspace(), "git branch --list --format='%(refname:short)'");
    let run = &outcome.run;
    assert_eq!(branches, format!("main\nswarm/{run}/main.1\nswarm/{run}/main.2\n"), "the third has no branch left");
    assert!(!world.in_run("worktrees/main.3").exists());
    let later = std::time::SystemTime::now() + Duration::from_secs(60);
    let all = crate::Prune { runs: Vec::new(), older_than: Duration::ZERO, outputs: false, dry_run: false };
    let age = |_: &crate::RunFolder| crate::RunAge { changed_ms: 0, has_ended: true };
    assert_eq!(world.home().prune(&all, later, age).unwrap().kept, std::slice::from_ref(run), "work goes by name only");
    let named = crate::Prune { runs: vec![run.clone()], ..all };
    assert_eq!(world.home().prune(&named, later, age).unwrap().runs.len(), 1);
}

#[test]
fn a_task_tries_again_where_it_was_and_items_and_calls_have_trees_of_their_own() {
    let world = world();
    let folder = "basename \"$PWD\"; echo x >>tries; wc -l <tries";
    let mut again = own("again", step("again", sh(&format!("{folder}; test $(wc -l <tries) = 2")), &[]));
    again.retry = Retry { times: 1, ..Retry::default() };
    let list = Expression { source: "['a', 'b']".to_owned(), reads: None, origin: origin() };
    let for_each = ForEach { list, parallel: None, join: EachJoin::All, record: None };
    let mut items = own("items", step("items", sh(folder), &[]));
    items.for_each = Some(for_each.clone());
    let mut shared = own("team", step("shared", sh(folder), &["after"]));
    shared.for_each = Some(ForEach { parallel: Some(1), ..for_each });
    let call = step("call", Body::Call(Call { pipeline: "sub".to_owned(), params: BTreeMap::new() }), &[]);
    let after = own("team", step("after", sh(folder), &["again"]));
    let mut plan = plan(vec![again, items, after, shared, call]);
    let mut sub = plan.pipelines[0].clone();
    sub.name = "sub".to_owned();
    sub.steps = vec![step("inner", sh(folder), &[]), own("apart", step("apart", sh(folder), &["inner"]))];
    sub.result = vec!["inner".to_owned()];
    sub.worktree = true;
    plan.pipelines.push(sub);
    let outcome = world.start(&plan);
    assert_eq!(outcome.ended, Ended::Succeeded, "{:?}", world.ends());
    let said = |name: &str| world.read(world.output(name)).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said("again.txt"), "main+again 2");
    assert_eq!([said("items[0]/items.txt"), said("items[1]/items.txt")], ["main+items@0 1", "main+items@1 1"]);
    assert_eq!(said("after.txt"), "main+team 1");
    assert_eq!([said("shared[0]/shared.txt"), said("shared[1]/shared.txt")], ["main+team 2", "main+team 3"]);
    assert_eq!(said("call/inner.txt"), "main+call=sub 1");
    assert_eq!(said("call/apart.txt"), "main+call+apart 1");
    assert!(!world.workspace().join("tries").exists());
}

#[test]
fn a_resumed_run_goes_on_in_its_trees_and_mends_one_that_was_half_made() {
    let world = world();
    std::fs::create_dir(world.workspace().join("sub")).unwrap();
    std::fs::write(world.workspace().join("sub/file"), "").unwrap();
    git(&world.workspace(), &format!("git add -A; {COMMIT} -m two"));
    let mut plan = treed(vec![
        step("first", sh("echo done >first; pwd -P; touch ../started"), &[]),
        own("late", step("second", sh("cat ../file; test -e ../../main/go || sleep 100"), &["first"])),
        step("third", argv(&["cat"]), &["second"]),
    ]);
    plan.pipelines[0].working_dir = Some("sub".to_owned());
    let file = Directive {
        kind: DirectiveKind::File,
        name: Some("sub/first".to_owned()),
        fields: Vec::new(),
        filters: Vec::new(),
        wrap: false,
        origin: origin(),
    };
    plan.pipelines[0].steps[2].stdin = Some(template(vec![Segment::Directive(file)]));
    plan.pipelines[0].steps[1].body = sh("test -e file && test -e ../../main/go || sleep 100");
    let control = Control::new();
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| world.start_with(&plan, world.options(), control.clone()).unwrap());
        let events = world.events.lock().unwrap();
        let started = |seen: &Seen| matches!(seen, Seen::Record(record) if matches!(&record.event, Event::ProcessStarted { step, .. } if &*step.name == "second"));
        while !started(&events.recv().unwrap()) {}
        control.stop();
        run.join().unwrap()
    });
    assert_eq!(run.ended, Ended::Stopped);
    let tree = world.in_run("worktrees/main").canonicalize().unwrap();
    assert_eq!(world.read(world.output("first.txt")), format!("{}\n", tree.join("sub").display()));
    assert!(tree.join("sub/first").exists(), "a stopped run keeps its trees");
    // As if the runner had been killed while it made the second one.
    std::fs::remove_file(world.in_run("worktrees/.main+late")).unwrap();
    std::fs::remove_file(world.in_run("worktrees/main+late/sub/file")).unwrap();
    std::fs::write(tree.join("go"), "").unwrap();
    let outcome = world.resume(&run.run).unwrap();
    assert_eq!((outcome.ended, outcome.values), (Ended::Succeeded, vec!["done".to_owned()]));
    let kept = kept(&world, &run.run);
    assert!(kept.len() == 1 && kept[0].starts_with("worktree `main` is kept, with changes"), "{kept:?}");
}

#[test]
fn without_a_repository_or_a_commit_nothing_starts() {
    let world = World::new();
    let refused = || {
        let plan = treed(vec![step("task", sh("true"), &[])]);
        let error = world.start_with(&plan, world.options(), Control::new()).unwrap_err();
        assert!(matches!(error, RunError::Request(_)) && world.home().list_folders().unwrap().is_empty());
        error.to_string()
    };
    let error = refused();
    assert!(error.contains("needs a Git repository") && error.contains("type `git init`"), "{error}");
    git(&world.workspace(), "git init -q");
    let error = refused();
    assert!(error.contains("begins at the last commit") && error.contains("type `git add -A`"), "{error}");
    let mut options = world.options();
    options.environment.insert("PATH".into(), "/nonexistent".into());
    let plan = plan(vec![own("task", step("task", sh("true"), &[]))]);
    let error = world.start_with(&plan, options, Control::new()).unwrap_err().to_string();
    assert_eq!(error, "`worktree` needs Git: `git`: not found");
}
