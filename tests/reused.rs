//! `run --reuse`, `--from`, `--until` and `plan --reuse` through the binary, and what the cache makes of bad input.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::Place;
use crate::specs::Project;

/// The steps that ran and those that were reused, as a run says.
fn fates(err: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let name = |line: &str| line.split(':').next().unwrap_or_default().trim_matches(['✓', ' ']).to_owned();
    let lines =
        |what: &str| err.lines().filter(|line| line.starts_with('✓') && line.contains(what)).map(name).collect();
    (lines("succeeded in"), lines("reused from"))
}

fn set(names: &str) -> BTreeSet<String> {
    names.split_whitespace().map(str::to_owned).collect()
}

/// A step of each kind that reuse knows, on recorded answers.
const FLOW: &str = r#"
workflow flow
param word default="one"
provider team {
    script {
        answer "a plan" task=plan
        answer "a review" task=review
        answer "a note" task=note
    }
}
agent writer provider=team model=small { system "Write." }
agent other provider=team
pipeline main {
    result review
    task plan agent=writer { prompt "Plan <<param:word>>." }
    task note agent=other { prompt "Note." }
    task build {
        run "cat in.txt; cp in.txt out.txt"
        stdin "<<output:plan>>"
        reads in.txt
        writes out.txt
    }
    task review agent=other { prompt "Review <<output:build>> and <<output:plan>>." }
}
"#;

fn flow() -> Place {
    let place = Place::new(FLOW);
    place.write("in.txt", "input\n");
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["a review"], &[]);
    place
}

/// Runs with reuse; says which steps ran.
fn reuse(place: &Place, arguments: &[&str]) -> (BTreeSet<String>, BTreeSet<String>, String) {
    let ended = place.swarmc(&[&["run", "flow.kdl", "--reuse"], arguments].concat()).expect(0, &["a review"], &[]);
    let (ran, reused) = fates(&ended.err);
    (ran, reused, ended.err)
}

fn edit(place: &Place, from: &str, to: &str) {
    let spec = fs::read_to_string(place.work().join("flow.kdl")).expect("the spec");
    assert!(spec.contains(from), "{from}");
    place.write("flow.kdl", &spec.replacen(from, to, 1));
}

#[test]
fn one_edited_prompt_of_an_example_runs_alone() {
    let project = Project::new();
    let run = |arguments: &[&str]| {
        let output = project.swarmc(&[&["run", "specs/feature/feature.kdl"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        fates(&String::from_utf8_lossy(&output.stderr))
    };
    let all = set("planner coder evaluator unit-tests tester");
    assert_eq!(run(&[]), (all.clone(), set("")));
    assert_eq!(run(&["--reuse"]), (set(""), all.clone()));
    let prompt = project.root().join("specs/feature/prompts/tester.md");
    let text = fs::read_to_string(&prompt).expect("the prompt");
    fs::write(&prompt, text + "\nBe brief.\n").expect("the prompt");
    assert_eq!(run(&["--reuse"]), (set("tester"), set("planner coder evaluator unit-tests")));
    assert_eq!(run(&["--reuse"]), (set(""), all.clone()));
    // The planner reads the goal, and what it answers is the same.
    assert_eq!(run(&["--reuse", "--param", "goal=Wave"]).0, set("planner"));
    fs::create_dir(project.root().join("src")).expect("a folder");
    fs::write(project.root().join("src/a.rs"), "fn a() {}\n").expect("a file");
    assert_eq!(run(&["--reuse"]), (set("unit-tests"), set("planner coder evaluator tester")));
}

#[test]
fn each_kind_of_edit_runs_what_depends_on_it() {
    let check = |from: &str, to: &str, ran: &str, reason: &str| {
        let place = flow();
        edit(&place, from, to);
        let (now, _, err) = reuse(&place, &[]);
        assert_eq!(now, set(ran), "{to}: {err}");
        assert!(err.contains(reason), "{to}: {err}");
        assert_eq!(reuse(&place, &[]).0, set(""), "{to}");
    };
    check("Note.", "Note it.", "note", "note: started: its prompt changed");
    check("model=small", "model=large", "plan", "plan: started: its model changed");
    check("Write.", "Write well.", "plan", "plan: started: its prompt changed");
    check("a note", "a longer note", "note", "note: started: its recorded answers changed");
    check("Plan <<param:word>>.", "Plan.", "plan", "plan: started: its prompt changed");
    check("cat in.txt;", "cat ./in.txt;", "build", "build: started: its command changed");
    check("reads in.txt", "reads in.txt; check \"true\"", "build", "build: started: its check 1 is new");
    check("reads in.txt", "reads in.txt; env LEVEL=high", "build", "build: started: its environment changed");
    check("prompt \"Note.\"", "prompt \"Note.\"; output max=\"9KB\"", "note", "its output limit changed");
    // A type is in the prompt as well: its answer is then JSON.
    check("a plan", "a plan for you", "plan build review", "review: started: its prompt changed");
    let place = flow();
    assert_eq!(reuse(&place, &["--param", "word=two"]).0, set("plan"));
    place.write("in.txt", "changed\n");
    let (ran, reused, err) = reuse(&place, &[]);
    assert_eq!((ran, reused), (set("build review"), set("plan note")), "{err}");
    assert!(err.contains("build: started: the file `in.txt` changed"), "{err}");
}

#[test]
fn a_changed_type_is_no_hit() {
    let place = Place::new("pipeline p {\n    result n\n    task n { run printf 7; reads none.txt; output int }\n}\n");
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["7"], &[]);
    let spec = "pipeline p {\n    result n\n    task n { run printf 7; reads none.txt; output string }\n}\n";
    place.write("flow.kdl", spec);
    place.swarmc(&["run", "flow.kdl", "--reuse"]).expect(0, &[], &["n: started: its type changed"]);
    place.swarmc(&["run", "flow.kdl", "--reuse"]).expect(0, &[], &["n: reused from"]);
}

#[test]
fn files_that_a_step_writes_are_put_back() {
    let place = flow();
    let written = place.work().join("out.txt");
    for change in [None, Some("tampered")] {
        match change {
            None => fs::remove_file(&written).expect("it was written"),
            Some(text) => fs::write(&written, text).expect("it can be written"),
        }
        assert_eq!(reuse(&place, &[]).0, set(""));
        assert_eq!(fs::read_to_string(&written).expect("it is back"), "input\n");
    }
    // Its content is gone from the cache as well: the step runs.
    fs::remove_file(&written).expect("it was written");
    fs::remove_dir_all(place.home().join("cache/content")).expect("there are contents");
    let (ran, _, err) = reuse(&place, &[]);
    assert_eq!(ran, set("build"), "{err}");
    assert!(err.contains("`build` runs: its file `out.txt` cannot be put back: it is gone"), "{err}");
    assert_eq!(fs::read_to_string(&written).expect("it is back"), "input\n");
}

#[test]
fn what_may_depend_on_more_is_never_reused() {
    let spec = "pipeline p {\n    task a { run echo a }\n    task b { run echo b; reads x.txt; reuse #false }\n    \
                task c { run echo c; reuse #true }\n    gate d { message \"Go on?\"; options yes; headless yes }\n}\n";
    let place = Place::new(spec);
    place.write("x.txt", "");
    place.swarmc(&["run", "flow.kdl", "--headless"]).expect(0, &[], &[]);
    let ended = place.swarmc(&["run", "flow.kdl", "--headless", "--reuse"]).expect(
        0,
        &[],
        &[
            "a: started: its command may read any file: name its files with `reads`, or write `reuse #true`",
            "b: started: it says `reuse #false`",
            "c: reused from",
        ],
    );
    assert_eq!(fates(&ended.err).1, set("c"));
}

/// The files of the cache with this extension.
fn cache_files(place: &Place) -> Vec<PathBuf> {
    let shards = fs::read_dir(place.home().join("cache")).expect("a cache").map(|entry| entry.expect("a shard").path());
    let files =
        shards.flat_map(|shard| fs::read_dir(shard).expect("a shard").map(|entry| entry.expect("a file").path()));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

/// Leaves the cache alone to reuse from.
fn remove_manifests(place: &Place) {
    for run in fs::read_dir(place.home().join("runs")).expect("runs") {
        let _ = fs::remove_file(run.expect("a run").path().join("reuse.jsonl"));
    }
}

/// What a file holds after a person or a crash had it.
type Damage = fn(String) -> String;

fn damage(path: &Path, how: Damage) {
    let text = fs::read_to_string(path).expect("an entry");
    fs::write(path, how(text)).expect("an entry");
}

#[test]
fn damaged_and_forged_entries_are_misses_that_are_reported() {
    let cuts: [(&str, Damage); 3] = [
        ("it is cut off", |text| text[..text.len() / 2].to_owned()),
        ("its digest is that of another text", |text| text.replace("a plan", "a plot")),
        ("it does not begin as an entry does", |_| "{}\n".to_owned()),
    ];
    for (problem, cut) in cuts {
        let place = flow();
        remove_manifests(&place);
        assert_eq!(cache_files(&place).len(), 4);
        for path in cache_files(&place) {
            damage(&path, cut);
        }
        let (_, reused, err) = reuse(&place, &[]);
        assert!(reused.len() < 4 && err.contains(&format!("its entry in the cache is damaged: {problem}")), "{err}");
        assert!(!err.contains("a plot"), "{err}");
        remove_manifests(&place);
        assert_eq!(reuse(&place, &[]).0, set(""), "what ran has mended the cache");
        // The same in the manifest of a run, which is then of no use.
        let runs = fs::read_dir(place.home().join("runs")).expect("runs").map(|run| run.expect("a run").path());
        let last = runs.max().expect("a run").join("reuse.jsonl");
        damage(&last, |text| text.replace("a plan", "a plot"));
        let ended = place.swarmc(&["run", "flow.kdl", "--reuse", "last"]).expect(0, &["a review"], &[]);
        assert!(
            ended.err.contains("results of run") && ended.err.contains("are damaged and not reused"),
            "{}",
            ended.err
        );
        assert_eq!(fates(&ended.err).0, set("plan"), "{}", ended.err);
    }
}

#[test]
fn runs_that_fill_the_cache_at_once_leave_whole_entries() {
    // Two programs that copy to one name at once see each other's file.
    let place = Place::new(&FLOW.replace("cp in.txt out.txt", "cp in.txt $$.new; mv $$.new out.txt"));
    place.write("in.txt", "input\n");
    let start = || place.command(&["run", "flow.kdl", "--quiet"]).spawn().expect("swarmc starts");
    let runs: Vec<_> = (0..4).map(|_| start()).collect();
    for mut run in runs {
        assert!(run.wait().expect("it ends").success());
    }
    remove_manifests(&place);
    let (ran, reused, err) = reuse(&place, &[]);
    assert_eq!((ran, reused), (set(""), set("plan note build review")), "{err}");
}

#[test]
fn results_are_those_of_the_run_that_is_named() {
    let place = flow();
    let first = place.swarmc(&["ps", "--all", "--json"]).expect(0, &[], &[]);
    let first: Value = serde_json::from_str(&first.out).expect("JSON");
    let first = first["runs"][0]["run"].as_str().expect("an id").to_owned();
    edit(&place, "Note.", "Note it.");
    assert_eq!(reuse(&place, &[]).0, set("note"));
    assert_eq!(reuse(&place, &[&first]).0, set("note"), "that run has no such note");
    assert_eq!(reuse(&place, &["last"]).0, set(""));
    edit(&place, "Note it.", "Note.");
    assert_eq!(reuse(&place, &["last"]).0, set("note"));
    edit(&place, "Note.", "Note it.");
    assert_eq!(reuse(&place, &[]).0, set(""), "any run");
    place.swarmc(&["run", "flow.kdl", "--reuse", "gone"]).expect(2, &[], &["no run"]);
    place.swarmc(&["run", "--reuse", "flow.kdl"]).expect(2, &[], &["swarmc run flow.kdl --reuse"]);
}

#[test]
fn a_plan_says_what_would_run_and_why() {
    let place = flow();
    place.swarmc(&["plan", "flow.kdl", "--reuse"]).expect(0, &["4 of 4 steps reused"], &[]);
    edit(&place, "Plan <<param:word>>.", "Plan\\n<<param:word>>\\nwell.");
    let runs = fs::read_dir(place.home().join("runs")).expect("runs").count();
    let planned = place.swarmc(&["plan", "flow.kdl", "--reuse"]).expect(
        0,
        &[
            "plan    runs because its prompt changed",
            "    + well.",
            "note    reused from",
            "build   depends on `plan`, whose result may change",
            "review  depends on `build`, whose result may change",
            "1 of 4 steps reused",
        ],
        &[],
    );
    assert!(planned.out.contains("    - Plan one."), "{}", planned.out);
    assert_eq!(fs::read_dir(place.home().join("runs")).expect("runs").count(), runs, "nothing was started");
    place.swarmc(&["plan", "flow.kdl", "--reuse", "--param", "word=two"]).expect(0, &["+ two"], &[]);
}

#[test]
fn a_person_works_on_the_middle() {
    let place = flow();
    let ended = place.swarmc(&["run", "flow.kdl", "--from", "build"]).expect(0, &["a review"], &[]);
    assert_eq!(fates(&ended.err), (set("build review"), set("plan note")), "{}", ended.err);
    assert!(ended.err.contains("build: started: `build` is run anew"), "{}", ended.err);
    edit(&place, "Note.", "Note it.");
    let ended = place.swarmc(&["run", "flow.kdl", "--from", "build"]);
    ended.expect(2, &[], &["`note` would run: its prompt changed", "run without `--from`, or from an earlier step"]);
    let ended = place.swarmc(&["run", "flow.kdl", "--until", "build", "--reuse"]).expect(0, &["input"], &[]);
    assert_eq!(fates(&ended.err), (set(""), set("plan build")), "{}", ended.err);
    place.swarmc(&["run", "flow.kdl", "--until", "biuld"]).expect(2, &[], &["did you mean `build`"]);
}

#[test]
fn a_reused_result_is_an_end_like_any_other() {
    let place = flow();
    let before: Value = {
        let ended = place.swarmc(&["inspect", "--json"]).expect(0, &[], &[]);
        serde_json::from_str(&ended.out).expect("JSON")
    };
    let run = before["run"].as_str().expect("an id");
    edit(&place, "Note.", "Note it.");
    reuse(&place, &[]);
    let ended = place.swarmc(&["inspect", "--json"]).expect(0, &[], &[]);
    let now: Value = serde_json::from_str(&ended.out).expect("JSON");
    let step = |name: &str| {
        let steps = now["steps"].as_array().expect("steps");
        steps.iter().find(|step| step["step"] == name).unwrap_or_else(|| panic!("{now:#}")).clone()
    };
    assert_eq!(
        (&step("plan")["reused"]["run"], &step("plan")["status"]),
        (&Value::from(run), &Value::from("succeeded"))
    );
    assert_eq!((&step("note")["reused"], &step("note")["missed"]), (&Value::Null, &Value::from("its prompt changed")));
    place.swarmc(&["inspect"]).expect(0, &[&format!("reused from {run}")], &[]);
    let events = place.swarmc(&["events", "last"]).expect(0, &["reuse_missed", "\"reused\""], &[]);
    assert!(events.out.contains("its prompt changed"), "{}", events.out);
    // The output lies where those of other steps lie.
    let outputs = fs::read_dir(place.home().join("outputs")).expect("outputs").map(|it| it.expect("a run").path());
    let last = outputs.max().expect("a run");
    assert_eq!(fs::read_to_string(last.join("plan.txt")).expect("an output").trim_end(), "a plan");
    place.swarmc(&["prune", "--older-than", "0s"]).expect(0, &["deleted 5 results for `--reuse`"], &[]);
    assert_eq!(reuse(&place, &[]).1, set(""), "nothing is left");
}

#[test]
fn a_long_output_is_reused_and_checked() {
    let place = Place::new(
        "pipeline p {\n    result b\n    task a { run \"yes 0123456789 | head -c 50000\"; reuse #true }\n    \
         task b { run \"wc -c\"; stdin \"<<output:a>>\"; reuse #true }\n}\n",
    );
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["50000"], &[]);
    let ended = place.swarmc(&["run", "flow.kdl", "--reuse"]).expect(0, &["50000"], &[]);
    assert_eq!(fates(&ended.err).1, set("a b"), "{}", ended.err);
    // The artifacts of the runs and the cache hold another text.
    let mut open = vec![place.home()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let is_content =
                path.to_string_lossy().contains("/artifacts/") || path.to_string_lossy().contains("/content/");
            match path.is_dir() {
                true => open.push(path),
                false if is_content => fs::write(&path, "forged").expect("a file"),
                false => {}
            }
        }
    }
    let ended = place.swarmc(&["run", "flow.kdl", "--reuse"]).expect(0, &["50000"], &["`a` runs: its earlier output"]);
    assert_eq!(fates(&ended.err), (set("a"), set("b")), "{}", ended.err);
}

/// A page for each item of a list: of equal prompts, the items alone tell them apart.
const PAGES: &str = r#"
workflow flow
provider team { script { answer "a page" } }
agent writer provider=team
pipeline main {
    result pages
    task pages agent=writer { for-each file="list.json"; prompt "Write on <<item>>." }
}
"#;

fn pages(spec: &str, before: &str, after: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let place = Place::new(spec);
    place.write("list.json", before);
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    place.write("list.json", after);
    fates(&place.swarmc(&["run", "flow.kdl", "--reuse"]).expect(0, &[], &[]).err)
}

/// Of both, the items alone.
fn items((ran, reused): (BTreeSet<String>, BTreeSet<String>)) -> (BTreeSet<String>, BTreeSet<String>) {
    let items = |names: BTreeSet<String>| names.into_iter().filter(|name| name.ends_with(']')).collect();
    (items(ran), items(reused))
}

#[test]
fn an_item_that_moves_in_its_list_is_reused() {
    let fates = items(pages(PAGES, r#"["a", "b"]"#, r#"["new", "a", "b"]"#));
    assert_eq!(fates, (set("pages[0]"), set("pages[1] pages[2]")));
    // Of three equal ones, two have a result.
    let fates = items(pages(PAGES, r#"["a", "a", "b"]"#, r#"["b", "a", "a", "a"]"#));
    assert_eq!(fates, (set("pages[3]"), set("pages[0] pages[1] pages[2]")));
}

#[test]
fn an_item_whose_position_counts_runs_where_it_has_moved() {
    let told = PAGES.replace("on <<item>>", "on <<item>>, which is <<index>>");
    let fates = items(pages(&told, r#"["a", "b"]"#, r#"["new", "a", "b"]"#));
    assert_eq!(fates, (set("pages[0] pages[1] pages[2]"), set("")));
    let program = PAGES.replace("{ script { answer \"a page\" } }", "{ exec cat }");
    assert_ne!(program, PAGES);
    let fates = items(pages(&program, r#"["a", "b"]"#, r#"["new", "a"]"#));
    assert_eq!(fates, (set("pages[0] pages[1]"), set("")));
    let command = PAGES.replace(
        r#"pages agent=writer { for-each file="list.json"; prompt "Write on <<item>>." }"#,
        r#"pages { for-each file="list.json"; run "echo $SWARM_WITHIN"; stdin "<<item>>"; reuse #true }"#,
    );
    let fates = items(pages(&command, r#"["a", "b"]"#, r#"["new", "a"]"#));
    assert_eq!(fates, (set("pages[0] pages[1]"), set("")));
}

#[test]
fn reuse_is_refused_in_recordings_with_what_to_type() {
    let place = flow();
    place.swarmc(&["run", "flow.kdl", "--reuse", "--record", "tape"]).expect(
        2,
        &[],
        &["a recording needs every answer", "leave out `--reuse`"],
    );
    place.swarmc(&["run", "flow.kdl", "--from", "plan", "--record", "tape"]).expect(2, &[], &["leave out `--from`"]);
    place.swarmc(&["run", "flow.kdl", "--record", "tape"]).expect(0, &["a review"], &[]);
    place.swarmc(&["run", "flow.kdl", "--reuse", "--replay", "tape"]).expect(
        2,
        &[],
        &["a replay takes every answer from its recording", "leave out `--reuse`"],
    );
}
