//! Compose files in, specs out, held to the compiler itself.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::compile;

fn files(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn run(yaml: &str, files: &BTreeMap<String, String>) -> Import {
    import_compose(yaml, Route { from: "compose.yaml", to: "compose.kdl", preset: "claude-code" }, files)
}

/// The spec, which must check, and what was said about the way.
fn imported(yaml: &str, list: &[(&str, &str)]) -> (String, Vec<String>) {
    let mut files = files(list);
    let import = run(yaml, &files);
    let spec = import.spec.unwrap_or_default();
    files.insert("compose.kdl".to_owned(), spec.clone());
    if !spec.is_empty() {
        let problems: Vec<String> = compile("compose.kdl", &files)
            .diagnostics
            .iter()
            .filter(|found| found.severity() == Severity::Error)
            .map(|found| format!("{} {}", found.code.id(), found.message))
            .collect();
        assert!(problems.is_empty(), "{problems:#?}\n{spec}");
    }
    let said = import.diagnostics.iter().map(|said| {
        let at = said.span().map_or(0, |span| import.sources.position(span.file, span.start).line);
        format!("{at} {}: {}", said.severity().as_str(), said.message)
    });
    let said = said.collect();
    (spec, said)
}

const THREE: &str = r#"
tasks:
  # Thinks first.
  planner:
    prompt: planner
    model: opus
  coder:
    prompt-file: prompts/coder.md
    depends_on: [planner]
    inputs: {plan: planner}
    concurrency: 2
  tester:
    prompt-string: |
      Test what {{output:coder}} wrote.
      Say {{ what }} is <<missing>>.
    prefix: "Be short."
    suffix: "{{include: rules}}"
    depends_on: [{task: coder, condition: success}]
pipelines:
  main: {iterations: 3, parallelism: 2, tasks: [planner, coder, tester]}
  quick: {tasks: [coder]}
  look: [planner]
"#;

#[test]
fn three_pipelines_over_one_set_of_tasks() {
    let files = [("prompts/planner.md", "Plan."), ("prompts/coder.md", "Do <<input:plan>>"), ("prompts/rules.md", "!")];
    let (spec, said) = imported(THREE, &files);
    assert_eq!(said, [""; 0]);
    let expected = r##"workflow compose {
    default main
}

provider claude-code preset=claude-code
agent opus provider=claude-code model=opus
agent agent provider=claude-code

// Thinks first.
task planner agent=opus {
    prompt file="prompts/planner.md"
    output default="(No output available from task \"planner\")"
}

task coder agent=agent {
    depends-on planner when=any
    input plan from=planner
    prompt file="prompts/coder.md"
    concurrency 2
}

task tester agent=agent {
    depends-on coder
    prefix "Be short."
    prompt #"""
        Test what <<output:coder>> wrote.
        Say {{ "{{" }} what }} is \<<missing>>.
        """#
    suffix "<<include:prompts/rules.md>>"
}

pipeline main {
    iterations 3
    parallelism 2
    use planner coder tester
}

pipeline quick {
    use coder partial=#true
}

pipeline look {
    use planner
}
"##;
    assert_eq!(spec, expected);
}

#[test]
fn whatever_is_lost_is_told_and_the_rest_checks() {
    let (spec, said) = imported(
        r#"
task: {}
tasks:
  a: {prompt-string: "A {{output:b}} {{output:zz}} {{input:no}}", depends_on: [c, aa], timeout: 5m}
  b: {prompt-string: B, depends_on: [{task: a, condition: sucess}, {condition: any}]}
  c: {prompt-string: C, prompt: x y, depends_on: b, iterations: 3, parallelism: 0, concurrency: many}
  d: {}
  e: {prompt-file: none.md, inputs: {x: missing}}
  f: {prompt: typo, model: gpt-5}
  F: !custom {prompt-string: F}
  a: {prompt-string: again}
pipelines:
  main: {iterations: 2, tasks: [a, b, c, d, e, f, F]}
  none: {tasks: [nothing]}
"#,
        &[],
    );
    let expected = [
        "2 error: unknown key `task` in a compose file",
        "4 error: there is no input `no`",
        "4 error: there is no task `zz` whose output could be read",
        "4 error: there is no task `aa`",
        "4 error: unknown key `timeout` in task `a`",
        "5 error: unknown condition `sucess`",
        "5 error: this dependency names no task",
        "6 error: task `c` has several prompts",
        "6 error: these tasks wait for each other: `c` → `b` → `a` → `c`",
        "6 error: `iterations: 3` of a task inside of a pipeline, as `c` is",
        "6 error: `parallelism: 0`",
        "6 error: `concurrency` must be a whole number from 1",
        "7 error: task `d` has no prompt",
        "8 error: there is no prompt file `none.md`",
        "8 error: there is no task `missing`",
        "9 error: there is no prompt `typo`",
        "9 hint: `gpt-5` is taken for a model of codex",
        "10 hint: task `F` is called `f-2` from now on",
        "10 error: a tag: the value is read without it",
        "11 error: there are two tasks `a`",
        "14 error: no task is left in pipeline `none`",
        "14 error: there is no task `nothing`",
    ];
    assert_eq!(said, expected);
    assert!(spec.contains("\n// not carried over (compose.yaml:4): unknown key `timeout` in task `a`\n"), "{spec}");
    assert!(spec.contains("provider codex preset=codex") && spec.contains("<<previous:b>>"), "{spec}");
}

#[test]
fn names_of_tasks_that_are_not_there_are_no_directives() {
    let (spec, said) = imported("tasks:\n  a: {prompt-string: \"Go {{output:<<{{}}\"}\n", &[]);
    assert_eq!(said, ["2 error: there is no task `<<{{` whose output could be read"]);
    assert!(spec.contains(r#"No output available from task \"<<{{ \"{{\" }}\""#), "{spec}");
}

#[test]
fn tasks_come_as_a_list_too_and_may_be_in_no_pipeline() {
    let (spec, said) = imported(
        "tasks:\n- name: one\n  prompt-string: 1\n  iterations: 5\n  parallelism: 2\n- {name: two, prompt: do it}\n",
        &[],
    );
    assert_eq!(said, [""; 0]);
    assert!(spec.contains("pipeline one {\n    iterations 5\n    parallelism 2\n    use one\n}"), "{spec}");
    assert!(spec.contains("pipeline main {\n    use two\n}"), "{spec}");
}

#[test]
fn merge_keys_and_aliases_say_what_they_stand_for() {
    let yaml =
        "x: &x {model: opus}\ntasks:\n  a: {<<: *x, prompt-string: &p hi there}\n  b: {prompt-string: *p, <<: [*x]}\n";
    let (spec, said) = imported(yaml, &[]);
    assert_eq!(said, ["1 error: unknown key `x` in a compose file"]);
    assert!(spec.matches("prompt \"hi there\"").count() == 2 && spec.contains("model=opus"), "{spec}");
}

#[test]
fn what_is_no_compose_file_gives_no_spec() {
    let nested = |open: &str, count: usize| open.repeat(count);
    let bomb = (1..40).fold("a0: &a0 [x,x]\n".to_owned(), |text, n| {
        text + &format!("a{n}: &a{n} [*a{0},*a{0},*a{0},*a{0},*a{0},*a{0},*a{0},*a{0}]\n", n - 1)
    });
    let chain = (1..4000).fold("a0: &a0 x\n".to_owned(), |text, n| text + &format!("a{n}: &a{n} [[[*a{}]]]\n", n - 1));
    let cases: [(String, &str); 12] = [
        (String::new(), "1 error: this file is empty"),
        ("tasks:\n".to_owned(), "1 error: there is no task here"),
        ("tasks: 5\n".to_owned(), "1 error: `tasks` must be a map by name"),
        ("[1, 2]".to_owned(), "1 error: a compose file must be a map of keys"),
        ("tasks:\n\ta: b\n".to_owned(), "2 error: tabs disallowed within this context (block indentation)"),
        ("a: \0".to_owned(), "1 error: found unprintable character"),
        ("a: [".to_owned(), "1 error: while parsing a node, did not find expected node content"),
        (nested("[", 10_000), "1 error: lists and maps are nested more than 128 deep"),
        (nested("- ", 10_000), "1 error: lists and maps are nested more than 128 deep"),
        (bomb, "9 error: with its aliases written out this would be too large"),
        (chain, "44 error: lists and maps are nested more than 128 deep"),
        ("a: &a [*a]\n".to_owned(), "1 error: this alias refers to a value that contains it"),
    ];
    for (yaml, expected) in cases {
        let (spec, said) = imported(&yaml, &[]);
        assert_eq!((spec.as_str(), said.first().map(String::as_str)), ("", Some(expected)), "{:.80}", yaml);
    }
}

#[test]
fn a_spec_checks_whatever_its_prompts_say() {
    for text in
        ["a\r\nb\n", "\u{202e}x\ny\n", "\"\"\"#\n\"\"\"##\n", "  \n x\n", "{{{{%<<a \\<<b\n}}", "\\n\"", "é\n\t\n"]
    {
        let yaml = format!("tasks: {{a: {{prompt-string: {}}}}}", serde_json::to_string(text).unwrap());
        let mut files = files(&[]);
        let import = run(&yaml, &files);
        files.insert("compose.kdl".to_owned(), import.spec.unwrap());
        assert!(compile("compose.kdl", &files).plan.is_some(), "{text:?} {files:?}");
    }
}

/// What takes more than a step for each byte of these does not end.
#[test]
fn sixteen_mebibytes_are_read_or_refused() {
    const SIZE: usize = 16 << 20;
    let fill = |text: &str, bytes: usize| text.repeat(bytes / text.len());
    let names: String = (0..1999).map(|task| format!("  t{task}: {{prompt-string: go}}\n")).collect();
    let prompt = (0..500).map(|marks| format!("\"\"\"{}\n", fill("#", marks + 1))).collect::<String>();
    let prompt = serde_json::to_string(&prompt).unwrap();
    let cases = [
        (format!("tasks: {{a: {{prompt-string: '{}'}}}}", fill("x y ", 1 << 20)), None),
        (format!("# {}\ntasks: {{a: {{prompt-string: x}}}}", fill("#", SIZE)), None),
        (format!("tasks: {{a: {{prompt-string: {prompt}}}}}"), None),
        (format!("tasks: [{}]", fill("a,", SIZE)), Some("1 error: this file has more than 1000000 values")),
        (
            format!("tasks:\n{names}  a: {{prompt-string: x, depends_on: [{}]}}\n", fill("t-1, ", 1 << 18)),
            Some("2001 error: there is no task `t-1`"),
        ),
    ];
    for (yaml, expected) in cases {
        let import = run(&yaml, &BTreeMap::new());
        let said = import.diagnostics.iter().find(|said| said.severity() == Severity::Error).map(|said| {
            let line = said.span().map_or(0, |span| import.sources.position(span.file, span.start).line);
            format!("{line} error: {}", said.message)
        });
        assert_eq!(said.as_deref(), expected, "{:.60}", yaml);
    }
}

/// Documents that look like compose files, and break off anywhere.
fn composed() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("tasks"),
        Just("pipelines"),
        Just("prompt"),
        Just("prompt-file"),
        Just("depends_on"),
        Just("inputs"),
        Just("iterations"),
        Just("a"),
        Just("B"),
        Just("true"),
        Just("-"),
        Just("0"),
        Just("~"),
        Just("<<"),
        Just("*x"),
        Just("&x"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just("?"),
        Just("|"),
        Just("\n"),
        Just("\n  "),
        Just("\n    "),
        Just("'"),
        Just("\""),
        Just("{{output:a}}"),
        Just("!t"),
        Just("#"),
        Just("---"),
    ];
    prop::collection::vec((word, prop_oneof![Just(""), Just(" "), Just(": ")]), 0..60)
        .prop_map(|parts| parts.into_iter().flat_map(|(word, space)| [word, space]).collect())
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(?s).{0,200}") {
        run(&text, &BTreeMap::new());
    }

    #[test]
    fn no_document_makes_it_panic(text in composed()) {
        run(&text, &BTreeMap::new());
    }

    #[test]
    fn whatever_the_names_the_spec_checks(
        names in prop::collection::btree_set("(?s)[^\\\\\"]{1,8}|true|null|loop|a-b|a_b|A|inf|-1", 1..6),
        prompt in "(?s).{0,60}",
        links in prop::collection::vec((0usize..6, 0usize..6), 0..8),
    ) {
        let names: Vec<&String> = names.iter().collect();
        let mut tasks = serde_json::Map::new();
        for (index, name) in names.iter().enumerate() {
            let needs: Vec<&String> = links.iter().filter(|(from, to)| *from == index && *to < names.len()).map(|(_, to)| names[*to]).collect();
            let text = format!("go on {prompt} {{{{output:{}}}}}", names[links.first().map_or(0, |link| link.0) % names.len()]);
            tasks.insert((*name).clone(), serde_json::json!({ "prompt-string": text, "depends_on": needs }));
        }
        let pipelines = serde_json::json!({ "all": { "iterations": 2, "tasks": names }, "one": [names[0]] });
        let yaml = serde_json::json!({ "tasks": tasks, "pipelines": pipelines }).to_string();
        // JSON is YAML, but for characters that it must not hold.
        let mut files = files(&[]);
        let import = run(&yaml, &files);
        if let Some(spec) = import.spec {
            files.insert("compose.kdl".to_owned(), spec.clone());
            let errors: Vec<_> = compile("compose.kdl", &files).diagnostics.into_iter().filter(|found| found.severity() == Severity::Error).collect();
            prop_assert!(errors.is_empty(), "{errors:#?}\n{spec}");
        }
    }
}
