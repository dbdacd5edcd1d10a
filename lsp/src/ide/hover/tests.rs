//! What is shown, with the pointer in specs and in prompts.

use std::collections::BTreeMap;
use std::time::Duration;

mod words;

use super::super::fixture::parse_fixture;
use super::*;
use crate::runs::{LastRun, LastStep, NoRuns, RunState};

const FLOW: &str = "//- flow.kdl
workflow w { default main }
param goal type=string default=\"all\"
provider p { exec cat }
agent a provider=p
// The outcome.
type Verdict {
    // Whether it holds.
    ok bool
    issues list<string>
}
pipeline main {
    description \"Everything\"
    task find-it agent=a {
        description \"Looks for it\"
        prompt \"look for <<param:goal>>\"
        output Verdict
    }
    task judge agent=a { prompt file=\"judge.md\"; timeout \"5m\" }
    task last agent=a { depends-on judge when=any; prompt \"<<status:judge>>\"; allow SW202 reason=\"x\" }
}
//- judge.md
Judge <<output:find-it | tail:5>> and <<output:find-it.issues>>, `{{ output.find_it.ok }}`, <<run:id>>.
";

struct Ran;

impl Runs for Ran {
    fn last_run(&self, workflow: &str, pipeline: &str) -> Option<Arc<LastRun>> {
        assert_eq!((workflow, pipeline), ("w", "main"));
        let found = LastStep {
            status: "succeeded",
            output: Some("{\"ok\": true, \"issues\": [\"```\", \"b\"]}".to_owned()),
            took: Some(Duration::from_secs(12)),
        };
        Some(Arc::new(LastRun {
            id: "1".to_owned(),
            state: RunState::Succeeded,
            age: Duration::from_secs(200),
            params: BTreeMap::from([("goal".to_owned(), "one\ntwo\nthree\nfour\nfive\nsix\nseven".to_owned())]),
            steps: BTreeMap::from([("find-it".to_owned(), found)]),
        }))
    }
}

/// What is shown at the `n`th `what`, from 0.
fn shown(what: &str, n: usize, runs: &dyn Runs) -> String {
    let at = FLOW.match_indices(what).nth(n).expect("it stands there").0;
    let (snapshot, path, offset) = parse_fixture(&format!("{}$0{}", &FLOW[..at], &FLOW[at..]));
    let Some(hover) = find_hover(&snapshot, &path, offset, runs) else { return "nothing".to_owned() };
    let text = snapshot.document(&path).expect("the file is there").text()[hover.range].to_owned();
    format!("[{text}]\n{}", hover.markdown)
}

#[test]
fn the_example_has_a_plan() {
    let snapshot = parse_fixture(FLOW).0;
    let analysis = snapshot.analysis("flow.kdl").expect("it is a spec");
    assert!(analysis.compilation.plan.is_some(), "{:?}", analysis.compilation.diagnostics);
}

#[test]
fn a_step_says_where_it_stands() {
    insta::assert_snapshot!(shown("find-it", 0, &NoRuns), @"
    [find-it]
    ```kdl
    task find-it agent=a
    ```

    Task of pipeline `main`

    Looks for it

    Value: `Verdict`

    ```kdl
    type Verdict {
        ok bool
        issues list<string>
    }
    ```

    Step 1 of 3 of `main`, agent `a`  
    feeds `judge`

    A turn is given any number of tokens: `<<param:goal>>` can be of any length
    ");
    insta::assert_snapshot!(shown("last agent", 0, &NoRuns), @"
    [last]
    ```kdl
    task last agent=a
    ```

    Task of pipeline `main`

    Value: `text`

    Step 3 of 3 of `main`, agent `a`  
    waits for `judge` (any)

    A turn is given at most 9 tokens, as other vocabularies count
    ");
}

#[test]
fn names_say_what_they_are() {
    insta::assert_snapshot!(shown("Verdict", 1, &NoRuns), @"
    [Verdict]
    ```kdl
    type Verdict {
        ok bool
        issues list<string>
    }
    ```

    Type

    The outcome.
    ");
    insta::assert_snapshot!(shown("a provider", 0, &NoRuns), @"
    [a]
    ```kdl
    agent a provider=p
    ```

    Agent

    Takes the turns of `find-it`, `judge`, `last`
    ");
    insta::assert_snapshot!(shown("main", 0, &Ran), @"
    [main]
    ```kdl
    pipeline main
    ```

    Pipeline

    Everything

    Value: `text`

    Likely: launches 3, turns 3, tokens in 4,390, tokens out 3,000, cost unknown  
    At most: launches 4, turns 4, tokens in without limit, tokens out without limit, cost unknown

    Last run: ok 3m ago
    ");
    insta::assert_snapshot!(shown("ok bool", 0, &NoRuns), @"
    [ok]
    ```kdl
    ok bool
    ```

    Field of type `Verdict`

    Whether it holds.
    ");
    insta::assert_snapshot!(shown("goal>>", 0, &Ran), @r#"
    [goal]
    Gives `string`

    Last run, 3m ago:

    ```text
    one
    two
    three
    four
    five
    six
    …
    ```

    ---

    ```kdl
    param goal type=string default="all"
    ```

    Parameter

    ---

    `<<param:NAME>>`

    A parameter of the workflow or of this pipeline.
    "#);
}

#[test]
fn directives_say_what_they_give_and_what_they_gave() {
    insta::assert_snapshot!(shown("find-it |", 0, &Ran), @r#"
    [find-it]
    Gives `Verdict`

    ```kdl
    type Verdict {
        ok bool
        issues list<string>
    }
    ```

    Last run, 3m ago:

    ````text
    {"ok": true, "issues": ["```", "b"]}
    ````

    ---

    ```kdl
    task find-it agent=a
    ```

    Task of pipeline `main`

    Looks for it

    Step 1 of 3 of `main`, agent `a`  
    feeds `judge`

    A turn is given any number of tokens: `<<param:goal>>` can be of any length

    ---

    `<<output:STEP>>`

    The output of a step in this round; a field of it after a `.`.
    "#);
    insta::assert_snapshot!(shown("issues>>", 0, &Ran), @r#"
    [issues]
    Gives `list<string>`

    Last run, 3m ago:

    ````text
    ["```","b"]
    ````

    ---

    ```kdl
    issues list<string>
    ```

    Field of type `Verdict`

    ---

    `<<output:STEP>>`

    The output of a step in this round; a field of it after a `.`.
    "#);
    insta::assert_snapshot!(shown("tail:5", 0, &Ran), @"
    [tail:5]
    `tail:N`

    The last N lines.
    ");
    insta::assert_snapshot!(shown("status:", 0, &Ran), @"
    [<<status:judge>>]
    `<<status:STEP>>`

    How a step ended: `succeeded`, `failed` or `skipped`.

    ---

    Gives `enum succeeded failed skipped`
    ");
    insta::assert_snapshot!(shown("run:id", 0, &NoRuns), @"
    [<<run:id>>]
    `<<run:id>>`

    `run:id` is the id of this run, `run:dir` its folder.
    ");
    insta::assert_snapshot!(shown("output.find_it", 0, &NoRuns), @"
    [output]
    `output`

    The output of a step in this round; a field of it after a `.`.
    ");
}

#[test]
fn the_language_explains_itself() {
    insta::assert_snapshot!(shown("timeout", 0, &NoRuns), @r#"
    [timeout]
    ```text
    timeout [TIME] [idle=…]
    ```

    The time of one attempt at most; no limit, when left out.

    - `TIME`: a duration such as `"10m"`.
    - `idle=`: The time without a byte of output at most.
    "#);
    insta::assert_snapshot!(shown("when=", 0, &NoRuns), @"
    [when]
    ```text
    when=
    ```

    How they must have ended. `success`, `failure`, `any` or `always`. Default: `success`.

    - `success`: it succeeded
    - `failure`: it failed
    - `any`: it succeeded or failed
    - `always`: it ended in any way, skipped included
    ");
    insta::assert_snapshot!(shown("any;", 0, &NoRuns), @"
    [any]
    `any`: it succeeded or failed.

    How they must have ended.
    ");
    insta::assert_snapshot!(shown("bool", 0, &NoRuns), @"
    [bool]
    `bool`: `true` or `false`.

    A field: its name, then its type.
    ");
    insta::assert_snapshot!(shown("\"5m\"", 0, &NoRuns), @r#"
    ["5m"]
    The time of one attempt at most; no limit, when left out. A duration such as `"10m"`.
    "#);
    assert!(shown("SW202", 0, &NoRuns).starts_with("[SW202]\n# SW202"));
    assert_eq!(shown("Judge", 0, &NoRuns), "nothing");
}

#[test]
fn a_step_says_what_may_have_reached_it() {
    let text = "//- a.kdl
workflow w
provider p { exec cat }
agent reader provider=p { can untrusted-input }
agent writer provider=p
pipeline main {
    task fetch agent=reader { prompt \"read\" }
    task tell agent=writer { prompt \"<<output:fetch>>\" }
    task apart agent=writer { prompt \"x\" }
}
";
    let reached = |step: &str| {
        let (snapshot, path, offset) = parse_fixture(&text.replace(&format!("task {step}"), &format!("task $0{step}")));
        let hover = find_hover(&snapshot, &path, offset, &NoRuns).expect("it is a name");
        hover.markdown.contains("Trust: reached by text of strangers")
    };
    assert_eq!([reached("fetch"), reached("tell"), reached("apart")], [true, true, false]);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let check = |text: &str| {
        let (snapshot, path, offset) = parse_fixture(text);
        assert_eq!(find_hover(&snapshot, &path, offset, &NoRuns), None, "{text}");
    };
    check("//- layout.kdl\nlayout { pa$0ne }\n");
    check("//- a.kdl\nworkflow w\n//- README.md\nSee <<out$0put:x>>.\n");
}

#[test]
fn broken_texts_are_explained_as_far_as_they_go() {
    let check = |text: &str, wanted: &str| {
        let (snapshot, path, offset) = parse_fixture(text);
        let found = find_hover(&snapshot, &path, offset, &NoRuns);
        assert!(found.as_ref().is_some_and(|hover| hover.markdown.contains(wanted)), "{text}: {found:?}");
    };
    check("//- a.kdl\nworkflow w\npipeline p {\n    ta$0sk one { run \"echo", "task NAME");
    check("//- a.kdl\nworkflow w\npipeline p {\n    task one { retry ba$0ckoff=", "The wait before");
}

#[test]
fn hostile_texts_stay_in_their_blocks() {
    let text = quote_block("text", "a\n````\n# no heading\u{1b}[31m\n");
    assert_eq!(text, "`````text\na\n````\n# no heading[31m\n`````");
    assert_eq!(quote_code("a`b"), "`` a`b ``");
    let long = "x".repeat(2000);
    assert!(quote_block("text", &long).len() < 700);
}

#[test]
fn settings_of_a_workspace_are_explained() {
    let shown = |text: &str| {
        let (snapshot, path, offset) = parse_fixture(text);
        find_hover(&snapshot, &path, offset, &NoRuns).expect("something is known").markdown
    };
    assert!(shown("//- swarmc.kdl\npro$0file strict\n").contains("How much is shown."));
    assert!(shown("//- swarmc.kdl\nprofile str$0ict\n").contains("careful team"));
    assert!(shown("//- swarmc.kdl\ndeny SW2$002\n").starts_with("# SW202"));
    assert!(shown("//- swarmc.kdl\nallow unused-$0definition\n").starts_with("# SW103"));
}

#[test]
fn filters_and_tests_of_expressions_say_what_they_give() {
    let spec = "//- flow.kdl\nworkflow w\nparam goal type=string default=\"all\"\nprovider p { exec cat }\nagent a provider=p\n\
        pipeline m {\n    task x { when \"param.goal is startingwith('a')\"; prompt \"{{ param.goal | trim | replace('a', 'b') }}\" }\n\
        task y { prompt \"{% if param.goal is not none and is %}{{ param.goal }}{% endif %}\" }\n}\n";
    let shown = |word: &str| {
        let at = spec.find(word).expect("the word is there") + 1;
        let (snapshot, path, offset) = parse_fixture(&format!("{}$0{}", &spec[..at], &spec[at..]));
        let hover = find_hover(&snapshot, &path, offset, &NoRuns).expect("something is known");
        hover.markdown.split("\n\n").map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        shown("trim"),
        ["`trim[(CHARACTERS)]`", "A text without blanks at its ends, or without these characters."]
    );
    assert_eq!(shown("replace")[0], "`replace(FROM, TO)`");
    assert_eq!(shown("startingwith"), ["`startingwith(TEXT)`", "Whether a text begins with another."]);
    assert_eq!(shown("none"), ["`none`", "Whether it is null."]);
}

#[test]
fn an_item_of_a_plan_says_what_is_to_be_done_by_whom_and_after_what() {
    let shown = |item: &str| {
        let spec = "//- flow.kdl
provider p { exec cat }
agent a provider=p
swarm s {
    goal \"g\"
    coordinator lead
    member one
    item api \"Define the API\" owner=one { checkpoint \"it compiles\" }
    item docs \"Write the docs\" priority=low { depends-on api }
    item tests \"Test it\" owner=lead { depends-on api docs }
}
";
        let at = spec.find(&format!("item {item}")).expect("it stands there") + 6;
        let (snapshot, path, offset) = parse_fixture(&format!("{}$0{}", &spec[..at], &spec[at..]));
        let shown = find_hover(&snapshot, &path, offset, &NoRuns).expect("it is shown").markdown;
        shown.split("\n\n").skip(1).collect::<Vec<_>>().join(" | ")
    };
    let head = "Plan item of swarm `s` | ";
    assert_eq!(shown("api"), format!("{head}Define the API | Owner `one`  \n`docs`, `tests` wait for it"));
    let docs = "No owner: the coordinator assigns it  \nwaits for `api`  \n`tests` waits for it";
    assert_eq!(shown("docs"), format!("{head}Write the docs | {docs}"));
    assert_eq!(shown("tests"), format!("{head}Test it | Owner `lead`  \nwaits for `api`, `docs`"));
}

#[test]
fn a_worktree_and_a_channel_say_who_shares_them_and_a_manager_is_an_agent() {
    let spec = "//- flow.kdl
provider p { exec cat }
agent a provider=p
agent merger provider=p
swarm s {
    goal \"g\"
    coordinator lead agent=a
    member one agent=a
    member two agent=a
    channel parser { members one two; open #true }
    worktree tree manager=merger into=main { members one two; check make }
}
";
    let shown = |word: &str| {
        let at = spec.find(word).expect("it stands there") + word.len() - 1;
        let (snapshot, path, offset) = parse_fixture(&format!("{}$0{}", &spec[..at], &spec[at..]));
        let shown = find_hover(&snapshot, &path, offset, &NoRuns).expect("it is shown").markdown;
        shown.split("\n\n").skip(1).collect::<Vec<_>>().join(" | ")
    };
    assert_eq!(shown("channel parser"), "Channel of swarm `s` | Members `one`, `two`; other agents may join");
    let tree = "Worktree of swarm `s` | Members `one`, `two` | `merger` merges it into `main` when its checks pass";
    assert_eq!(shown("worktree tree"), tree);
    assert!(shown("manager=merger").starts_with("Agent"), "{}", shown("manager=merger"));
}
