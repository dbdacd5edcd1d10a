//! Where names lead from and to, with cursors in specs and in prompts.

use super::super::fixture::{apply_edits, parse_fixture};
use super::*;

const FLOW: &str = "//- flow.kdl
workflow w
param goal type=string default=\"all\"
provider p { exec cat }
agent a provider=p
type Verdict { ok bool; issues list<string> }
pipeline main {
    task find-it agent=a { prompt \"look for <<param:goal>>\"; output Verdict }
    task judge agent=a { prompt file=\"prompts/judge.md\" }
    task again agent=a { prompt file=\"prompts/again.md\" }
    task last agent=a { depends-on judge; prompt \"end\"; when \"output.find_it.ok and status.find_it == 'succeeded'\" }
}
test one {
    fake find-it \"x\" unchecked=#true
    fake judge answer
    fake again answer
    expect { step find-it succeeded; order find-it judge }
}
//- prompts/judge.md
Judge <<output:find-it>> and <<output:find-it.ok>>.
//- prompts/again.md
{% if output.find_it.ok %}Fine: {{ output.find_it.issues | length }}{% endif %}
";

/// The fixture with the cursor before the `n`th `what`, from 0.
fn at(what: &str, n: usize) -> (Snapshot, String, usize) {
    let at = FLOW.match_indices(what).nth(n).expect("it stands there").0;
    parse_fixture(&format!("{}$0{}", &FLOW[..at], &FLOW[at..]))
}

fn renamed(what: &str, n: usize, to: &str) -> String {
    let (snapshot, path, offset) = at(what, n);
    match rename_symbol(&snapshot, &path, offset, to) {
        Ok(edits) => {
            let old = parse_fixture(FLOW).0;
            let text = apply_edits(&snapshot, &edits);
            let changed = |line: &&str| {
                line.starts_with("//- ")
                    || !["flow.kdl", "prompts/judge.md", "prompts/again.md", "lib.kdl"]
                        .iter()
                        .filter_map(|path| old.document(path))
                        .any(|document| document.text().lines().any(|known| known == *line))
            };
            text.lines().filter(changed).map(str::trim).collect::<Vec<_>>().join("\n")
        }
        Err(why) => format!("refused: {why}"),
    }
}

#[test]
fn a_task_is_renamed_in_specs_prompts_expressions_and_tests() {
    let expected = renamed("find-it", 0, "seek-all");
    insta::assert_snapshot!(expected, @r#"
    //- flow.kdl
    task seek-all agent=a { prompt "look for <<param:goal>>"; output Verdict }
    task last agent=a { depends-on judge; prompt "end"; when "output.seek_all.ok and status.seek_all == 'succeeded'" }
    fake seek-all "x" unchecked=#true
    expect { step seek-all succeeded; order seek-all judge }
    //- prompts/again.md
    {% if output.seek_all.ok %}Fine: {{ output.seek_all.issues | length }}{% endif %}
    //- prompts/judge.md
    Judge <<output:seek-all>> and <<output:seek-all.ok>>.
    "#);
    // From any place where it stands.
    let places = FLOW.matches("find-it").count();
    for place in 1..places {
        assert_eq!(renamed("find-it", place, "seek-all"), expected, "place {place}");
    }
    assert_eq!(renamed("find_it", 0, "seek-all"), expected);
    assert_eq!(renamed("find_it", 3, "seek-all"), expected);
}

#[test]
fn types_params_and_fields_are_renamed() {
    insta::assert_snapshot!(renamed("Verdict", 1, "Judgement"), @r#"
    //- flow.kdl
    type Judgement { ok bool; issues list<string> }
    task find-it agent=a { prompt "look for <<param:goal>>"; output Judgement }
    "#);
    insta::assert_snapshot!(renamed("goal", 1, "aim"), @r#"
    //- flow.kdl
    param aim type=string default="all"
    task find-it agent=a { prompt "look for <<param:aim>>"; output Verdict }
    "#);
    insta::assert_snapshot!(renamed("issues", 0, "problems"), @"
    //- flow.kdl
    type Verdict { ok bool; problems list<string> }
    //- prompts/again.md
    {% if output.find_it.ok %}Fine: {{ output.find_it.problems | length }}{% endif %}
    ");
}

#[test]
fn refused_renames_say_why() {
    insta::assert_snapshot!(renamed("find-it", 0, "judge"), @"refused: with the name `judge`, `flow.kdl` would have errors that it does not have now: step `judge` is defined twice");
    insta::assert_snapshot!(renamed("find-it", 0, "Find It"), @"refused: `Find It` cannot be the name of a task: one starts with a small letter, and goes on with small letters, digits, `-` and `_`");
    insta::assert_snapshot!(renamed("Verdict", 0, "verdict"), @"refused: `verdict` cannot be the name of a type: one starts with a capital letter, and goes on with letters and digits");
    insta::assert_snapshot!(renamed("workflow", 0, "x"), @"refused: there is no name here");
    insta::assert_snapshot!(renamed("bool", 0, "x"), @"refused: there is no name here");
}

#[test]
fn an_agent_of_an_imported_file_is_renamed_for_all_who_import_it() {
    let (snapshot, path, offset) = parse_fixture(
        "//- one.kdl
import \"lib.kdl\" as=lib
pipeline main { task t agent=lib.hel$0per { prompt \"x\" } }
workflow one
//- two.kdl
import \"lib.kdl\"
pipeline main { task t agent=helper { prompt \"y\" } }
workflow two
//- lib.kdl
provider q { exec cat }
agent helper provider=q
",
    );
    let edits = rename_symbol(&snapshot, &path, offset, "aide").expect("it can be renamed");
    insta::assert_snapshot!(apply_edits(&snapshot, &edits), @r#"
    //- lib.kdl
    provider q { exec cat }
    agent aide provider=q
    //- one.kdl
    import "lib.kdl" as=lib
    pipeline main { task t agent=lib.aide { prompt "x" } }
    workflow one
    //- two.kdl
    import "lib.kdl"
    pipeline main { task t agent=aide { prompt "y" } }
    workflow two
    "#);
    let shown: Vec<String> = find_definition(&snapshot, &path, offset)
        .into_iter()
        .map(|target| format!("{} {:?} {:?}", target.name.path, target.name.range, target.whole.range))
        .collect();
    assert_eq!(shown, ["lib.kdl 30..36 24..47"]);
}

#[test]
fn agents_with_a_model_of_a_task_and_steps_of_sequences_keep_one_name() {
    let rename = |spec: &str, to: &str| {
        let (snapshot, path, offset) = parse_fixture(&format!("//- flow.kdl\n{spec}"));
        match rename_symbol(&snapshot, &path, offset, to) {
            Ok(edits) => apply_edits(&snapshot, &edits),
            Err(why) => format!("refused: {why}"),
        }
    };
    let models = "agent coder provider=codex
pipeline main {
    task a agent=co$0der model=fast { prompt \"x\" }
    task b agent=coder { prompt \"y\" }
}
";
    insta::assert_snapshot!(rename(models, "maker"), @r#"
    //- flow.kdl
    agent maker provider=codex
    pipeline main {
        task a agent=maker model=fast { prompt "x" }
        task b agent=maker { prompt "y" }
    }
    "#);
    let model = models.replace("co$0der", "coder").replace("fast", "fa$0st");
    insta::assert_snapshot!(rename(&model, "slow"), @"refused: there is no name here");
    let preset = "pipeline main { task a agent=claude$0-code { prompt \"x\" } }\n";
    insta::assert_snapshot!(rename(preset, "claude"), @"refused: `claude-code` is a name of the library");
    let sequence = "pipeline main {
    sequence { tes$0ts; task build { run make } }
    task tests { run make tests }
}
";
    insta::assert_snapshot!(rename(sequence, "checks"), @r"
    //- flow.kdl
    pipeline main {
        sequence { checks; task build { run make } }
        task checks { run make tests }
    }
    ");
}

#[test]
fn references_and_highlights_are_the_places_of_a_name() {
    let (snapshot, path, offset) = at("find-it", 4);
    assert_eq!(path, "prompts/judge.md");
    let shown = |place: &Place| {
        let document = snapshot.document(&place.path).expect("the file is there");
        let position = document.source().position(place.range.start);
        format!("{}:{}:{}", place.path, position.line, position.column)
    };
    let all: Vec<String> = find_references(&snapshot, &path, offset, true).iter().map(shown).collect();
    insta::assert_snapshot!(all.join("\n"), @"
    flow.kdl:7:10
    flow.kdl:10:70
    flow.kdl:10:92
    flow.kdl:13:10
    flow.kdl:16:19
    flow.kdl:16:44
    prompts/again.md:1:14
    prompts/again.md:1:43
    prompts/judge.md:1:16
    prompts/judge.md:1:39
    ");
    assert_eq!(find_references(&snapshot, &path, offset, false).len(), all.len() - 1);
    let here = highlight_name(&snapshot, &path, offset);
    assert_eq!(
        here.iter().map(|(range, declares)| (range.start, *declares)).collect::<Vec<_>>(),
        [(15, false), (38, false)]
    );
}

#[test]
fn the_type_of_a_value_is_where_it_is_declared() {
    let leads = |what: &str, n: usize| {
        let (snapshot, path, offset) = at(what, n);
        type_definition(&snapshot, &path, offset).into_iter().map(|target| target.name).collect::<Vec<_>>()
    };
    let verdict = FLOW.find("Verdict").expect("it stands there") - "//- flow.kdl\n".len();
    let there = Place { path: "flow.kdl".to_owned(), range: verdict..verdict + "Verdict".len() };
    assert_eq!(leads("find-it", 4), leads("find-it", 0));
    assert_eq!(leads("find-it", 0), [there]);
    assert_eq!(leads("goal", 0), []);
}

#[test]
fn broken_texts_still_know_their_names() {
    let (snapshot, path, offset) = parse_fixture(
        "//- a.kdl\nworkflow w\npipeline p {\n    task one { run echo }\n    task two { depends-on o$0ne; run \"x\n",
    );
    let found = find_definition(&snapshot, &path, offset);
    assert_eq!(found.first().map(|target| target.name.range.start), Some(33));
    assert_eq!(find_definition(&snapshot, "nowhere.md", 3), []);
}
