//! Worktrees of a team, with real Git: members commit in them, and managers merge.
//!
//! The agents are shell scripts: the turns of each are files, `NAME.N` for its n-th turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::Place;

/// Takes the turn of an agent: runs the file of it, or waits. The coordinator ends the team once its file `enough` agrees.
const AGENT: &str = r#"
turns=$1
prompt=$(cat)
name=$(printf '%s' "$prompt" | sed -n 's/^You are \([a-z0-9]*\),.*/\1/p' | head -n 1)
number=$(($(cat "$turns/$name.count" 2>/dev/null || echo 0) + 1))
echo "$number" >"$turns/$name.count"
printf '%s' "$prompt" >"$turns/$name.$number.prompt"
commit() { git -c user.name="$name" -c user.email="$name@example.org" commit -qam "$1"; }
replace() { sed -i "s/$1/$2/" lib.rs; }
item() { printf '{"action":"item_done","item":"%s","summary":"%s"}' "$1" "$2"; }
if [ -f "$turns/$name.$number" ]; then
    . "$turns/$name.$number"
elif [ "$name" = lead ] && . "$turns/enough"; then
    echo '{"action":"done","response":"all merged"}'
else
    echo '{"action":"idle"}'
fi
"#;

/// A repository with a team in it.
struct Repository {
    place: Place,
    turns: PathBuf,
}

impl Repository {
    fn new(spec: &str) -> Repository {
        let place = Place::new("");
        let turns = place.work().parent().expect("a parent").join("turns");
        fs::create_dir(&turns).expect("a folder");
        fs::write(turns.join("agent.sh"), AGENT).expect("it can be written");
        let spec = format!(
            "provider local {{ exec sh \"{0}/agent.sh\" \"{0}\" }}\nagent coder provider=local\n{spec}\n\
             pipeline main {{ task team {{ swarm refactor }}; result team }}\n",
            turns.display()
        );
        place.write("flow.kdl", &spec);
        place.write("lib.rs", "fn one() {}\n\nfn two() {}\n");
        let repository = Repository { place, turns };
        repository.turn("enough", "printf '%s' \"$prompt\" | grep -q 'merged worktree'");
        repository.git("init -q -b main");
        repository.git("add -A");
        repository.git("-c user.name=Ada -c user.email=ada@example.org commit -qm beginning");
        repository
    }

    fn turn(&self, name: &str, lines: &str) {
        fs::write(self.turns.join(name), lines).expect("it can be written");
    }

    fn prompt(&self, name: &str) -> String {
        fs::read_to_string(self.turns.join(format!("{name}.prompt"))).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn git(&self, words: &str) -> String {
        git(&self.place.work(), words)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.place.work().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The merges of the run, as its journal has them.
    fn merges(&self) -> Vec<(String, String)> {
        let files = crate::specs::texts(&self.place.home().join("runs"));
        let (_, text) = files.iter().find(|(path, _)| path.ends_with("journal.jsonl")).expect("there is a journal");
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let merges = events.filter(|event| event["fact"] == "integrated");
        merges.map(|it| (it["to"].as_str().unwrap_or_default().to_owned(), it["note"].to_string())).collect()
    }
}

fn git(folder: &Path, words: &str) -> String {
    let done = Command::new("git").args(words.split(' ')).current_dir(folder).output().expect("git is installed");
    assert!(done.status.success(), "git {words}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("it is text")
}

const ONE_TREE: &str = r#"
policy { integrate auto }
swarm refactor {
    goal "Split the parser"
    coordinator lead agent=coder
    member a1 agent=coder
    member a2 agent=coder
    member wtm agent=coder
    item api "Define it" owner=a1
    item parser "Move it" owner=a2 { depends-on api }
    worktree split manager=wtm into=main { members a1 a2; check "grep -q api lib.rs" }
}
"#;

/// The turns in which `a1` and `a2` change a function each, and `wtm` merges.
fn one_tree(spec: &str) -> Repository {
    let repository = Repository::new(spec);
    repository.turn("a1.1", "replace 'one() {}' 'one() { api() }'; commit one; item api defined");
    repository.turn("a2.1", "replace 'two() {}' 'two() { parse() }'; commit two; item parser moved");
    repository.turn("wtm.1", r#"echo '{"action":"integrate","summary":"API and parser"}'"#);
    repository
}

#[test]
fn a_manager_merges_what_the_members_commit_and_moves_the_branch() {
    let repository = one_tree(ONE_TREE);
    repository.place.swarmc(&["run", "flow.kdl"]).expect(
        0,
        &["all merged"],
        &["wtm merged split: branch `main` is moved"],
    );
    assert_eq!(repository.read("lib.rs"), "fn one() { api() }\n\nfn two() { parse() }\n");
    assert_eq!(
        repository.git("log --topo-order --format=%an:%s:%b main").replace("\n\n", "\n"),
        "wtm:Merge worktree split:API and parser\na2:two:\na1:one:\nAda:beginning:\n"
    );
    assert_eq!(repository.git("rev-list --merges --count main"), "1\n");
    assert_eq!(repository.git("branch --format=%(refname:short)"), "main\n", "all of it is on main");
    assert_eq!(repository.git("worktree list").lines().count(), 1);
    assert_eq!(repository.git("status --porcelain"), "");
    let shown = repository.place.swarmc(&["inspect", "last", "team", "--swarm"]);
    shown.expect(0, &["worktree split: a1, a2; wtm merges it into main [merged ", "wtm   completed  manager"], &[]);
    let prompt = repository.prompt("a1.1");
    for part in ["Your working folder is worktree `split`", "## Worktrees", "- split: a1, a2; wtm merges it into main"]
    {
        assert!(prompt.contains(part), "no `{part}` in {prompt}");
    }
    assert!(repository.prompt("wtm.1").contains("you alone merge it"), "{}", repository.prompt("wtm.1"));
}

#[test]
fn a_recorded_merge_is_replayed_without_a_repository() {
    let repository = one_tree(ONE_TREE);
    let place = &repository.place;
    place.swarmc(&["run", "flow.kdl", "--record", "tape"]).expect(0, &["all merged"], &[]);
    fs::remove_dir_all(place.work().join(".git")).expect("it is there");
    let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "tape"]);
    replayed.expect(0, &["all merged"], &["everything is as recorded"]);
}

#[test]
fn a_person_agrees_before_a_branch_is_moved_and_unattended_runs_leave_it() {
    let repository = one_tree(&ONE_TREE.replace("policy { integrate auto }", ""));
    let kept = ["wtm merged split: merged, and branch `main` stays as it is", "branch `swarm/"];
    repository.place.swarmc(&["run", "flow.kdl", "--headless"]).expect(0, &["all merged"], &kept);
    assert_eq!(repository.git("rev-list --count main"), "1\n");
    let branch = repository.git("branch --list --format=%(refname:short) swarm/*");
    assert_eq!(branch.lines().count(), 1, "the members' branch is in it: {branch}");
    assert_eq!(
        repository.git(&format!("show {}:lib.rs", branch.trim())),
        "fn one() { api() }\n\nfn two() { parse() }\n"
    );
}

#[test]
fn a_branch_with_work_that_is_not_committed_stays_as_it_is() {
    let repository = one_tree(ONE_TREE);
    fs::write(repository.place.work().join("lib.rs"), "mine\n").expect("it can be written");
    let told = ["branch `main` stays as it is: its checkout has changes; commit them, then type `git -C "];
    repository.place.swarmc(&["run", "flow.kdl"]).expect(0, &["all merged"], &told);
    assert_eq!(
        (repository.read("lib.rs").as_str(), repository.git("rev-list --count main").as_str()),
        ("mine\n", "1\n")
    );
}

/// Waits until the first merge is recorded: the next one is refused before.
const UNTIL_MERGED: &str =
    r#"until grep -q '"fact":"integrated"' "$SWARM_HOME"/runs/*/journal.jsonl; do sleep 0.05; done"#;

const TWO_TREES: &str = r#"
swarm refactor {
    goal "Split the parser"
    coordinator lead agent=coder
    member a1 agent=coder
    member a2 agent=coder
    member wtm1 agent=coder
    member wtm2 agent=coder
    item api "Define it" owner=a1
    item parser "Move it" owner=a2 { depends-on api }
    worktree left manager=wtm1 { members a1 }
    worktree right manager=wtm2 { members a2; check "test ! -e ../bad" }
}
"#;

/// `a1` and `a2` change the same function, each in a worktree of its own, and `wtm1` merges the first.
fn two_trees() -> Repository {
    let repository = Repository::new(TWO_TREES);
    repository.turn("enough", "printf '%s' \"$prompt\" | grep -q 'merged worktree `right`'");
    repository.turn("a1.1", "replace 'one() {}' 'one() { left() }'; commit one; item api defined");
    repository.turn(
        "a2.1",
        &format!("{UNTIL_MERGED}; replace 'one() {{}}' 'one() {{ right() }}'; commit two; item parser moved"),
    );
    repository.turn("wtm1.1", r#"echo '{"action":"integrate","summary":"left"}'"#);
    repository.turn("wtm2.1", r#"echo '{"action":"integrate","summary":"right"}'"#);
    repository
}

#[test]
fn conflicts_are_resolved_with_both_sides_or_with_reasons() {
    let repository = two_trees();
    let resume = |dropped: &str| format!(r#"echo '{{"action":"integrate_continue","dropped":[{dropped}]}}'"#);
    repository.turn("wtm2.2", &resume(""));
    let drop_left = "grep -v -e '<<<' -e '===' -e '>>>' -e left lib.rs >x; mv x lib.rs; touch ../bad;";
    repository.turn("wtm2.3", &format!("{drop_left} {}", resume("")));
    let reason = r##"{"part":"lib.rs#1","why":"right() calls it"}"##;
    repository.turn("wtm2.4", &resume(reason));
    repository.turn("wtm2.5", &format!("rm ../bad; {}", resume(reason)));
    let run = repository.place.swarmc(&["run", "flow.kdl"]);
    run.expect(0, &["all merged"], &["wtm2 merges right: 1 file is in conflict: lib.rs", "wtm2 merged right"]);
    let merges = repository.merges();
    let states: Vec<&str> = merges.iter().map(|(state, _)| state.as_str()).collect();
    assert_eq!(states, ["merged", "open", "open", "merged"], "{merges:?}");
    assert!(merges[2].1.contains("check `test ! -e ../bad` exited with 1"), "{merges:?}");
    let seen = |number: u32, part: &str| {
        let prompt = repository.prompt(&format!("wtm2.{number}"));
        assert!(prompt.contains(part), "no `{part}` in {prompt}");
    };
    seen(3, "markers of conflicts are left in lib.rs");
    seen(4, "1 part of what was added would be lost");
    seen(4, "lib.rs#1 (of what was merged before)");
    let branch = repository.git("branch --list --format=%(refname:short) swarm/*");
    let [branch] = branch.lines().collect::<Vec<_>>()[..] else { panic!("{branch}") };
    assert_eq!(repository.git(&format!("show {branch}:lib.rs")), "fn one() { right() }\n\nfn two() {}\n");
    let message = repository.git(&format!("log -1 --format=%an%n%B {branch}"));
    assert_eq!(message.trim(), "wtm2\nMerge worktree right\n\nright\n\nLeft out:\n- lib.rs#1: right() calls it");
    assert_eq!(repository.git(&format!("rev-list --merges --count {branch}")), "2\n");
}

#[test]
fn what_members_left_is_named_and_committed_when_the_manager_says_what_it_is() {
    let repository = one_tree(ONE_TREE);
    repository.turn("a2.1", "replace 'two() {}' 'two() { parse() }'; item parser moved");
    repository.turn("wtm.2", r#"echo '{"action":"integrate","summary":"x","commit_rest":"what a2 left"}'"#);
    repository.place.swarmc(&["run", "flow.kdl"]).expect(0, &["all merged"], &["wtm merged split"]);
    let prompt = repository.prompt("wtm.2");
    assert!(prompt.contains("changes that are not committed: lib.rs"), "{prompt}");
    assert_eq!(
        repository.git("log --topo-order --format=%an:%s --no-merges main"),
        "wtm:what a2 left\na1:one\nAda:beginning\n"
    );
    assert!(repository.read("lib.rs").contains("parse()"));
}

#[test]
fn trees_at_other_branches_are_not_merged() {
    let repository = one_tree(ONE_TREE);
    repository
        .turn("a2.1", "git switch -qc other; replace 'two() {}' 'two() { parse() }'; commit two; item parser moved");
    let back = r#"(cd "$SWARM_HOME"/runs/*/worktrees/main+team+split && git switch -q - && git merge -q other)"#;
    repository.turn("wtm.2", &format!(r#"{back}; git switch -qc mine; echo '{{"action":"integrate","summary":"x"}}'"#));
    repository.turn("wtm.3", r#"git switch -q -; echo '{"action":"integrate","summary":"x"}'"#);
    repository.place.swarmc(&["run", "flow.kdl"]).expect(
        0,
        &["all merged"],
        &["wtm merged split: branch `main` is moved"],
    );
    for (turn, part) in [
        ("wtm.2", "not merged: the worktree is not at its branch: have its members switch back by `git switch swarm/"),
        ("wtm.3", "not merged: your folder is not at its branch: switch back by `git switch swarm/"),
    ] {
        assert!(repository.prompt(turn).contains(part), "{}", repository.prompt(turn));
    }
    assert_eq!(repository.read("lib.rs"), "fn one() { api() }\n\nfn two() { parse() }\n");
}

#[test]
fn a_merge_that_its_manager_commits_itself_is_checked_all_the_same() {
    let repository = two_trees();
    let resume = r#"echo '{"action":"integrate_continue","dropped":[]}'"#;
    let strip = |also: &str| format!("grep -v -e '<<<' -e '===' -e '>>>' {also} lib.rs >x; mv x lib.rs");
    repository.turn("wtm2.2", &format!("{}; commit mine; {resume}", strip("-e left")));
    repository.turn(
        "wtm2.3",
        &format!("printf 'fn one() {{ left() }}\\nfn one() {{ right() }}\\n\\nfn two() {{}}\\n' >lib.rs; {resume}"),
    );
    repository.place.swarmc(&["run", "flow.kdl"]).expect(0, &["all merged"], &["wtm2 merged right"]);
    let prompt = repository.prompt("wtm2.3");
    assert!(prompt.contains("1 part of what was added would be lost"), "{prompt}");
    let branch = repository.git("branch --list --format=%(refname:short) swarm/*");
    assert_eq!(repository.git(&format!("rev-list --merges --count {}", branch.trim())), "2\n");
}

#[test]
fn a_run_that_is_killed_while_it_merges_merges_once() {
    let slow = ONE_TREE.replace("grep -q api lib.rs", "touch ../checking; test -e ../go || sleep 60");
    let repository = one_tree(&slow);
    let mut run = repository.place.command(&["run", "flow.kdl"]).stderr(Stdio::null()).spawn().expect("swarmc starts");
    let started = Instant::now();
    let trees = loop {
        let runs = fs::read_dir(repository.place.home().join("runs")).into_iter().flatten().flatten();
        let mut trees = runs.map(|run| run.path().join("worktrees"));
        match trees.find(|trees| trees.join("checking").exists()) {
            Some(trees) => break trees,
            None => assert!(started.elapsed() < Duration::from_secs(60), "the check never began"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    fs::write(trees.join("go"), "").expect("it can be written");
    repository.place.swarmc(&["resume"]).expect(0, &["all merged"], &["branch `main` is moved"]);
    assert_eq!(repository.git("rev-list --merges --count main"), "1\n");
    assert_eq!(repository.read("lib.rs"), "fn one() { api() }\n\nfn two() { parse() }\n");
}

const NO_TREE: &str = r#"
swarm refactor {
    goal "Split the parser"
    coordinator lead agent=coder
    member a1 agent=coder
    member wtm agent=coder
    item api "Define it"
}
"#;

#[test]
fn a_coordinator_opens_a_worktree_where_it_is_needed() {
    let turns = |repository: &Repository| {
        let open =
            r#"{"action":"worktree_open","worktree":"split","manager":"wtm","members":["a1"],"why":"it breaks much"}"#;
        repository.turn("lead.1", &format!("echo '{open}'"));
        repository.turn("lead.2", r#"echo '{"action":"assign","item":"api","to":"a1"}'"#);
        repository.turn("a1.1", "replace 'one() {}' 'one() { api() }'; commit one; item api defined");
        repository.turn("wtm.1", r#"echo '{"action":"integrate","summary":"API"}'"#);
    };
    let repository = Repository::new(NO_TREE);
    turns(&repository);
    let shown =
        ["worktree split for a1; wtm merges it", "wtm merged split: merged without conflicts, on branch `swarm/"];
    repository.place.swarmc(&["run", "flow.kdl"]).expect(0, &["all merged"], &shown);
    assert_eq!(repository.git("rev-list --count main"), "1\n", "no branch was named");
    assert!(repository.prompt("a1.1").contains("Your working folder is worktree `split`"));
    assert!(repository.read("lib.rs").starts_with("fn one() {}"), "the workspace stays as it is");
    // Where there is no repository, all work in the workspace.
    let repository = Repository::new(NO_TREE);
    turns(&repository);
    fs::remove_dir_all(repository.place.work().join(".git")).expect("it is there");
    repository.turn("a1.1", "item api defined");
    repository.turn("enough", "printf '%s' \"$prompt\" | grep -q 'has done `api`'");
    repository.place.swarmc(&["run", "flow.kdl"]).expect(0, &["all merged"], &[]);
    assert!(repository.prompt("lead.2").contains("the workspace is in no Git repository with a commit"));
}
