//! Completion as a person at an editor sees it: the labels in order, and the text after one was chosen.

mod loops;
mod pools;
mod tools;
mod unclosed;

use super::super::fixture::parse_fixture;
use super::{Completion, list_completions};

fn at(files: &str) -> Completion {
    let (snapshot, path, offset) = parse_fixture(files);
    list_completions(&snapshot, &path, offset, None)
}

/// The labels in order.
fn labels(files: &str) -> Vec<String> {
    at(files).items.into_iter().map(|item| item.label).collect()
}

/// The first few labels.
fn first(files: &str, count: usize) -> Vec<String> {
    let mut labels = labels(files);
    labels.truncate(count);
    labels
}

/// Each label with its detail.
fn detailed(files: &str) -> String {
    let line = |item: super::Item| format!("{}: {}", item.label, item.detail.unwrap_or_default());
    at(files).items.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The line of the cursor after the item of this label was chosen in an editor that knows no snippets.
fn chosen(files: &str, label: &str) -> String {
    line(files, label, false)
}

/// The same in one that knows them.
fn filled(files: &str, label: &str) -> String {
    line(files, label, true)
}

fn line(files: &str, label: &str, snippets: bool) -> String {
    let (snapshot, path, offset) = parse_fixture(files);
    let found = list_completions(&snapshot, &path, offset, None);
    let all: Vec<&str> = found.items.iter().map(|item| item.label.as_str()).collect();
    let item = found.items.iter().find(|item| item.label == label).unwrap_or_else(|| panic!("no `{label}` in {all:?}"));
    let text = item.snippet.as_ref().filter(|_| snippets).unwrap_or(&item.text);
    let mut whole = snapshot.document(&path).expect("the file").text().to_owned();
    whole.replace_range(found.range.clone(), text);
    for edit in &item.edits {
        assert!(edit.range.end < found.range.start, "edits elsewhere stand before");
        whole.replace_range(edit.range.clone(), &edit.text);
    }
    let line = whole[..found.range.start.min(whole.len())].rfind('\n').map_or(0, |newline| newline + 1);
    let text = &whole[line..];
    let shown = text
        .split('\n')
        .take(1 + item.snippet.as_ref().filter(|_| snippets).map_or(0, |text| text.matches('\n').count()));
    shown.collect::<Vec<_>>().join("\n").trim().to_owned()
}

const FLOW: &str = r#"//- flow.kdl
workflow w { default main }
param goal type=string
param deep-dive type=bool default=#false
provider p { exec cat }
agent coder provider=p
agent writer provider=p { description "Writes" }
type Verdict { approved bool; severity enum low medium high; points list<Point> }
type Point { text string; line int? }
context-pack known { fact language rust }
pipeline main {
    task plan agent=coder { prompt "Plan"; output Verdict }
    task build agent=coder { prompt "Build <<output:plan>>" }
    task lint agent=coder { prompt "Lint" }
    task judge-it agent=coder { prompt file="judge.md" }
    task report agent=writer { prompt "Report <<output:judge-it>>" }
    task each agent=coder { for-each "output.plan.points"; prompt file="each.md" }
}
"#;

/// The flow, with a prompt of `judge-it`.
fn judge(prompt: &str) -> String {
    format!("{FLOW}//- judge.md\nUse <<output:build>>.\n{prompt}\n//- each.md\n")
}

/// The flow, with a prompt of `each`.
fn each(prompt: &str) -> String {
    format!("{FLOW}//- judge.md\n//- each.md\n{prompt}\n")
}

#[test]
fn typing_in_a_prompt_offers_the_words_that_mean_something_there() {
    assert_eq!(first(&judge("Judge <<out$0"), 1), ["output"]);
    assert_eq!(
        labels(&judge("<<$0")),
        [
            "output",
            "status",
            "exit",
            "error",
            "log",
            "param",
            "iteration",
            "include",
            "file",
            "context",
            "run",
            "task",
            "stdin"
        ]
    );
    let words = labels(&each("<<$0"));
    assert!(words.contains(&"item".to_owned()) && words.contains(&"index".to_owned()), "{words:?}");
}

#[test]
fn prose_gets_nothing() {
    for prompt in ["a << $0b", "1 <<$0 2 or x<<$0", "Just text.$0", "cat <<EOF$0", "a | $0", "{ $0", "see http://$0"] {
        assert_eq!(labels(&judge(&prompt.replacen("1 <<$0 2 or ", "", 1))), [""; 0], "{prompt}");
    }
}

#[test]
fn a_word_brings_its_colon_and_its_end() {
    assert_eq!(chosen(&judge("Judge <<out$0"), "output"), "Judge <<output:");
    assert_eq!(filled(&judge("Judge <<out$0"), "output"), "Judge <<output:$0>>");
    assert_eq!(filled(&judge("Judge <<out$0>>"), "output"), "Judge <<output:$0>>");
    assert_eq!(filled(&judge("Judge <<out$0>"), "output"), "Judge <<output:$0>>");
    assert_eq!(filled(&judge("Judge <<out$0:plan>>"), "output"), "Judge <<output:plan>>");
    assert_eq!(chosen(&judge("Judge <<iter$0"), "iteration"), "Judge <<iteration>>");
    assert_eq!(chosen(&judge("Judge <<iter$0>>"), "iteration"), "Judge <<iteration>>");
}

#[test]
fn steps_upstream_come_first_then_those_that_would_be_waited_for() {
    insta::assert_snapshot!(detailed(&judge("<<output:$0")), @"
    build: text · 1 step before
    plan: Verdict · 2 steps before
    lint: text · `judge-it` will wait for it
    each: list<text> · `judge-it` will wait for it
    ");
    assert_eq!(chosen(&judge("<<output:$0 and"), "build"), "<<output:build>> and");
    assert_eq!(chosen(&judge("<<output:bu$0il>> and"), "build"), "<<output:build>> and");
    assert_eq!(filled(&judge("<<output:pl$0"), "plan"), "<<output:plan$0>>");
    assert_eq!(chosen(&judge("<<output:pl$0 | tail:3>>"), "plan"), "<<output:plan | tail:3>>");
    assert_eq!(first(&judge("<<status:$0"), 1), ["build"]);
}

#[test]
fn what_runs_later_is_read_from_the_round_before() {
    let flow = r#"//- flow.kdl
provider p { exec cat }
agent a provider=p
pipeline main {
    task before { prompt "B" }
    loop again max=3 {
        task write { prompt "Write <<output:before>> <<output:$0" }
        task review { prompt "Review <<output:write>>" }
        until "status.review == 'succeeded'"
    }
    task after { prompt "After <<output:review>>" }
}
"#;
    insta::assert_snapshot!(detailed(flow), @"
    before: text · 1 step before
    write: text · `previous:`, of the round before
    review: text · `previous:`, of the round before
    ");
    assert!(chosen(flow, "review").contains("<<previous:review>>"), "{}", chosen(flow, "review"));
    assert_eq!(labels(&flow.replace("<<output:$0", "<<previous:$0")), ["write", "review"]);
}

#[test]
fn fields_lead_through_types() {
    assert_eq!(labels(&judge("<<output:plan.$0>>")), ["approved", "severity", "points"]);
    assert_eq!(chosen(&judge("<<output:plan.ap$0"), "approved"), "<<output:plan.approved>>");
    assert_eq!(labels(&each("<<item.$0")), ["text", "line"]);
    assert_eq!(labels(&judge("{{ output.plan.points[0].$0 }}")), ["text", "line"]);
    assert_eq!(labels(&judge("{% for point in output.plan.points %}{{ point.$0")), ["text", "line"]);
    assert_eq!(labels(&judge("<<output:build.$0")), [""; 0]);
}

#[test]
fn parameters_packs_and_fixed_names() {
    insta::assert_snapshot!(detailed(&judge("<<param:$0")), @"
    goal: string
    deep-dive: bool
    ");
    assert_eq!(labels(&judge("<<context:$0")), ["known"]);
    assert_eq!(labels(&judge("<<run:$0")), ["id", "dir"]);
    assert_eq!(labels(&judge("<<task:$0")), ["name"]);
}

#[test]
fn filters_come_with_their_arguments() {
    assert_eq!(labels(&judge("<<output:plan | $0")), ["tail", "head", "lines", "chars", "json", "raw", "default"]);
    assert_eq!(labels(&judge("<<status:plan | $0>>")), ["json"]);
    assert_eq!(filled(&judge("<<output:plan | ta$0>>"), "tail"), "<<output:plan | tail:${1:50}>>");
    assert_eq!(chosen(&judge("<<output:plan|ta$0"), "tail"), "<<output:plan|tail:50>>");
    let inline = FLOW.replace("\"Lint\"", "\"<<output:plan | de$0>>\"") + "//- judge.md\n//- each.md\n";
    assert!(chosen(&inline, "default").contains(r#"<<output:plan | default:\"\">>"#), "{}", chosen(&inline, "default"));
}

#[test]
fn expressions_know_names_values_filters_and_tests() {
    let when = |text: &str| FLOW.replace("prompt \"Lint\"", &format!("when \"{text}")) + "//- judge.md\n//- each.md\n";
    assert_eq!(first(&when("out$0\""), 1), ["output"]);
    assert_eq!(labels(&when("output.plan.$0")), ["approved", "severity", "points"]);
    assert_eq!(labels(&when("output.$0\"")), ["plan", "build", "judge_it", "report", "each"]);
    assert_eq!(labels(&when("output.plan.severity == '$0")), ["low", "medium", "high"]);
    assert_eq!(
        chosen(&when("output.plan.severity == $0\""), "low"),
        "task lint agent=coder { when \"output.plan.severity == 'low'\" }"
    );
    assert_eq!(labels(&when("status.plan != '$0'\"")), ["succeeded", "failed", "skipped"]);
    assert!(labels(&when("output.plan | le$0\"")).contains(&"length".to_owned()));
    let filters = at(&when("output.plan | re$0\"")).items;
    let replace = filters.iter().find(|item| item.label == "replace").expect("a filter");
    assert_eq!(replace.detail.as_deref(), Some("filter replace(FROM, TO)"));
    assert_eq!(replace.doc.as_deref(), Some("A text with another for each part that is `FROM`."));
    assert!(labels(&when("output.plan is $0\"")).contains(&"defined".to_owned()));
    assert_eq!(first(&judge("{% $0"), 2), ["for", "if"]);
    assert_eq!(first(&judge("{% if output.plan.approved %}yes{% $0"), 3), ["endif", "else", "elif"]);
    assert_eq!(filled(&judge("{% i$0"), "if"), "{% if $1 %}$0{% endif %}");
    assert_eq!(filled(&judge("{% i$0 %}"), "if"), "{% if %}");
    assert_eq!(first(&judge("{{ output.plan.points | $0 }}"), 2), ["default", "length"]);
    assert_eq!(first(&judge("{{ pa$0 }}"), 1), ["output"]);
    assert_eq!(labels(&judge("{{ param.$0")), ["goal", "deep_dive"]);
}

#[test]
fn files_are_offered_folder_by_folder() {
    let files = "//- specs/flow.kdl\nprovider p { exec cat }\npipeline main { task a { prompt file=$0 } }\n//- specs/prompts/a.md\n\n//- specs/b.md\n\n//- specs/lib.kdl\n\n";
    assert_eq!(labels(files), ["b.md", "prompts/"]);
    assert!(chosen(files, "b.md").contains("file=\"b.md\" }"), "{}", chosen(files, "b.md"));
    assert!(filled(files, "prompts/").contains("file=\"prompts/$0\""), "{}", filled(files, "prompts/"));
    assert_eq!(labels(&files.replace("file=$0", "file=\"prompts/$0\"")), ["a.md"]);
    let import = files.replace("provider p", "import \"$0\"\nprovider p").replace("file=$0", "\"x\"");
    assert_eq!(labels(&import), ["std:agents", "std:providers", "std:types", "lib.kdl", "prompts/"]);
    assert_eq!(labels(&judge("<<include:$0")), ["each.md"]);
    assert_eq!(chosen(&judge("<<file:ea$0"), "each.md"), "<<file:each.md>>");
}

fn spec(text: &str) -> String {
    format!("//- flow.kdl\n{text}\n")
}

#[test]
fn blocks_offer_what_they_may_hold() {
    let pipeline = first(&spec("pipeline main {\n    $0\n}"), 3);
    assert_eq!(pipeline, ["task", "gate", "loop"]);
    let task = labels(&spec("pipeline main { task a {\n  timeout \"1m\"\n  $0\n} }"));
    assert_eq!(task[..4], ["prompt", "prompt file=", "run", "value"]);
    assert!(!task.contains(&"timeout".to_owned()), "{task:?}");
    let told = labels(&spec("pipeline main { task a {\n  $0\n  run ls\n} }"));
    assert!(!told.contains(&"prompt".to_owned()) && told.contains(&"retry".to_owned()), "{told:?}");
    assert!(labels(&spec("pip$0")).contains(&"pipeline".to_owned()));
    assert_eq!(labels(&spec("pipeline main { task a { prompt \"x\" } $0")), [""; 0]);
    assert_eq!(labels(&spec("// pip$0")), [""; 0]);
}

#[test]
fn nodes_bring_what_they_must_say() {
    let top = |label: &str| filled(&spec("workflow w\n$0"), label);
    assert_eq!(top("pipeline"), "pipeline ${1:name} {\n    $0\n}");
    assert_eq!(top("secret"), "secret ${1:name} env=${2:VARIABLE}");
    let task = |label: &str| filled(&spec("pipeline main { task a {\n$0\n} }"), label);
    assert_eq!(task("prompt"), "prompt \"$1\"");
    assert_eq!(task("prompt file="), "prompt file=\"$1\"");
    assert_eq!(task("timeout"), "timeout \"${1:10m}\"");
    assert_eq!(task("join"), "join ${1|all,any,none-failed|}");
    assert_eq!(chosen(&spec("pipeline main { task a {\nti$0m \"1m\"\n} }"), "timeout"), "timeout \"1m\"");
}

#[test]
fn arguments_and_properties_follow_the_table() {
    let task = |line: &str| {
        spec(&format!(
            "agent a\nagent b-c\npipeline main {{\n task one {{ run ls }}\n task two {{ run ls }}\n task t {{\n{line}\n}}\n}}"
        ))
    };
    assert_eq!(labels(&task("depends-on $0")), ["one", "two", "when"]);
    assert_eq!(labels(&task("depends-on one $0")), ["two", "when"]);
    assert_eq!(labels(&task("depends-on one when=$0")), ["success", "failure", "any", "always"]);
    assert_eq!(labels(&task("depends-on one when=al$0")), ["success", "failure", "any", "always"]);
    assert_eq!(first(&task("timeout $0"), 2), ["10s", "30s"]);
    assert_eq!(chosen(&task("timeout $0"), "10s"), "timeout \"10s\"");
    assert_eq!(chosen(&task("timeout \"1$0\""), "10s"), "timeout \"10s\"");
    assert_eq!(chosen(&task("timeout \"1$0"), "10s"), "timeout \"10s\"");
    assert_eq!(first(&task("on-failure fix agent=$0"), 4), ["a", "b-c", "claude-code", "codex"]);
    assert_eq!(labels(&task("retry 2 $0")), ["backoff", "max", "fresh"]);
    assert_eq!(labels(&task("fail-fast $0")), [""; 0]);
    let flag = spec("pipeline main {\nfail-fast $0\n}");
    assert_eq!(labels(&flag), ["#true", "#false"]);
    assert_eq!(labels(&spec("provider x preset=$0"))[..2], ["claude-code", "codex"]);
    assert_eq!(
        labels(&spec("workflow w { default $0 }\npipeline one { task a { run ls } }\nswarm two { goal \"g\" }")),
        ["one", "two"]
    );
}

#[test]
fn types_are_built_in_and_declared() {
    let types = "type Verdict { ok bool }\npipeline main { task t { run ls; output $0 } }";
    let found = labels(&spec(types));
    assert_eq!(found[..2], ["Verdict", "string"]);
    assert!(chosen(&spec(&types.replace("$0", "list<Ver$0")), "Verdict").contains("output list<Verdict }"));
    assert!(!found.contains(&"file".to_owned()));
    assert!(labels(&spec("param x type=$0")).contains(&"file".to_owned()));
}

#[test]
fn imports_qualify_their_names() {
    let files = "//- flow.kdl\nimport \"lib.kdl\" as=lib\nimport \"more.kdl\"\nagent own\npipeline main { task t agent=$0 { prompt \"x\" } }\n//- lib.kdl\nagent helper\n//- more.kdl\nagent open\n";
    assert_eq!(first(files, 4), ["own", "lib.helper", "open", "claude-code"]);
}

#[test]
fn edges_gates_and_swarms_know_who_takes_part() {
    let swarm = |line: &str| {
        spec(&format!(
            "agent a\nswarm s {{\n goal \"g\"\n supervisor lead agent=a\n member one agent=a \"x\"\n item first \"f\" owner=one\n item second \"s\" {{ {} }}\n {line}\n}}",
            if line.is_empty() { "depends-on $0" } else { "" }
        ))
    };
    assert_eq!(labels(&swarm("edges {\n $0\n}")), ["lead", "one"]);
    assert_eq!(labels(&swarm("edges {\n one $0\n}"))[..2], ["->", "<->"]);
    assert_eq!(first(&swarm("edges {\n one -> $0\n}"), 2), ["lead", "one"]);
    assert_eq!(labels(&swarm("")), ["first"]);
    assert_eq!(first(&swarm("spawns $0"), 1), ["a"]);
    assert_eq!(labels(&swarm("item third \"t\" owner=$0")), ["lead", "one"]);
    assert_eq!(labels(&swarm("item third \"t\" { depends-on first $0 }")), ["second"]);
    assert_eq!(labels(&swarm("channel c { members one $0 }")), ["lead"]);
    let test = |line: &str| {
        let swarm = "swarm s {\n coordinator lead agent=a\n member one agent=a\n item first \"f\"\n}\nagent a\n";
        spec(&format!("{swarm}test t {{\n expect {{\n {line}\n }}\n}}"))
    };
    assert_eq!(first(&test("item $0"), 1), ["first"]);
    assert_eq!(labels(&test("item first done owner=$0")), ["lead", "one"]);
    assert_eq!(labels(&test("notice to=$0")), ["lead", "one"]);
    let gate = spec("pipeline main {\n gate ask {\n message \"?\"\n options yes no\n headless $0\n }\n}");
    assert_eq!(labels(&gate), ["yes", "no", "fail"]);
}

#[test]
fn a_call_offers_the_parameters_of_its_pipeline() {
    let spec = spec(
        "pipeline main {\n task t { call inner $0 }\n}\npipeline inner {\n param text type=string\n param n type=int\n task a { run ls }\n}",
    );
    assert_eq!(labels(&spec), ["text", "n"]);
    assert_eq!(labels(&spec.replace("inner $0", "inner text=\"<<$0\""))[..2], ["output", "status"]);
}

#[test]
fn suppressions_know_the_rules() {
    let found = labels(&spec("pipeline main {\n allow $0\n}"));
    assert!(found.iter().any(|label| label == "SW202") && !found.iter().any(|label| label == "SW001"), "{found:?}");
    assert_eq!(chosen(&spec("// swarmc: allow(SW2$0"), "SW202"), "// swarmc: allow(SW202)");
    assert_eq!(chosen(&judge("<!-- swarmc: allow($0) why -->"), "SW202"), "<!-- swarmc: allow(SW202) why -->");
}

#[test]
fn secrets_are_offered_to_environments() {
    let files = spec("secret key env=KEY\nprovider p { exec cat\nenv $0\n}");
    assert_eq!(labels(&files), ["key"]);
    assert_eq!(labels(&spec("secret api-key env=$0")), ["API_KEY"]);
}

#[test]
fn files_that_are_none_of_ours_get_nothing() {
    assert_eq!(labels("//- other.kdl\nlayout { pane }\n$0\n"), [""; 0]);
    assert_eq!(labels("//- flow.kdl\nworkflow w\n//- README.md\nSee <<out$0\n"), [""; 0]);
}

#[test]
fn a_shared_task_sees_the_steps_of_every_pipeline_that_uses_it() {
    let files = "//- flow.kdl\nprovider p { exec cat }\nagent a provider=p\ntask shared { prompt \"<<output:$0\" }\npipeline one { use shared; task x { prompt \"x\" } }\npipeline two { use shared; task y { prompt \"y\" } }\n";
    assert_eq!(labels(files), ["x", "y"]);
}

#[test]
fn what_tasks_and_agents_share_by_naming_it_is_offered() {
    let spec = spec(
        "tool-server web url=\"http://x\"\nagent a model=big { tools Read web }\nagent b model=$0\npipeline main {\n task one { prompt \"x\"; session talk }\n task two { prompt \"x\"; session }\n}",
    );
    assert_eq!(labels(&spec), ["big"]);
    assert_eq!(first(&spec.replace("model=$0", "{ tools $0 }"), 3), ["web", "Read", "shell"]);
    assert_eq!(labels(&spec.replace("model=$0", "").replace("session }", "session $0 }")), ["talk"]);
}

#[test]
fn names_that_lead_to_themselves_end() {
    assert_eq!(labels(&judge("{% set x = x %}{% set y = x %}{{ y.$0 }}")), [""; 0]);
    assert_eq!(
        labels(&judge("{% set x = output.plan %}{% set x = x %}{{ x.$0 }}")),
        ["approved", "severity", "points"]
    );
}

#[test]
fn a_list_too_long_to_be_read_holds_what_fits() {
    let tasks: String = (0..1000).map(|n| format!(" task t{n} {{ run ls }}\n")).collect();
    let files = |typed: &str| spec(&format!("pipeline main {{\n{tasks} task last {{ depends-on {typed}$0 }}\n}}"));
    let found = at(&files("t"));
    assert!(found.incomplete && found.items.len() == super::MOST, "{}", found.items.len());
    let found = at(&files("t99"));
    assert!(found.incomplete);
    assert_eq!(found.items[0].label, "t99");
    assert!(!at(&spec("pipeline main {\n task a { depends-on $0 }\n task b { run ls }\n}")).incomplete);
}

#[test]
fn an_until_means_the_steps_of_its_rounds_first() {
    let files = spec(
        "provider p { exec cat }\nagent a provider=p\npipeline main {\n task first { prompt \"x\" }\n loop again max=2 {\n  task inner { prompt \"y\" }\n  until \"status.$0\"\n }\n}",
    );
    assert_eq!(labels(&files), ["inner", "first", "again"]);
}

#[test]
fn texts_of_every_form_have_holes() {
    let flow = |text: &str| {
        spec(&format!(
            "provider p {{ exec cat }}\nagent a provider=p\npipeline main {{\n task one {{ prompt \"x\" }}\n task two {{ prompt {text} }}\n}}"
        ))
    };
    for text in [
        "\"<<output:$0\"",
        "#\"say \"hi\" <<output:$0\"#",
        "\"\"\"\n    Say\n    <<output:$0\n    \"\"\"",
        "\"a\\n<<output:$0>> b\"",
        "\"<<output:$0",
    ] {
        assert_eq!(labels(&flow(text)), ["one"], "{text}");
    }
}

/// Every example, asked at many places, whole and cut off there.
#[test]
fn any_place_of_any_text_can_be_asked() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
    let mut files: Vec<(String, String)> = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        for entry in
            std::fs::read_dir(folder).expect("the examples are there").map(|entry| entry.expect("an entry").path())
        {
            if entry.is_dir() {
                open.push(entry);
            } else if let (Ok(text), Ok(path)) = (std::fs::read_to_string(&entry), entry.strip_prefix(&root)) {
                files.push((path.to_string_lossy().replace('\\', "/"), text));
            }
        }
    }
    files.sort();
    let (mut asked, mut offered) = (0, 0);
    for (number, (path, text)) in files.iter().enumerate() {
        if !(path.ends_with(".kdl") || path.ends_with(".md")) {
            continue;
        }
        let others = || files.iter().filter(|(other, _)| other != path);
        let mut disk: std::collections::BTreeMap<String, String> = others().cloned().collect();
        disk.insert(path.clone(), text.clone());
        let workspace = |text: &str| {
            let mut workspace = super::super::Workspace::new(std::sync::Arc::new(disk.clone()));
            let folder = path.split('/').next().unwrap_or_default();
            for spec in disk.keys().filter(|spec| spec.ends_with(".kdl") && spec.starts_with(folder)) {
                workspace.invalidate_path(spec);
            }
            workspace.open(path, text);
            workspace.snapshot()
        };
        let mut check = |snapshot: &super::super::Snapshot, text: &str, offset: usize| {
            for trigger in [None, Some(' '), Some('.'), Some('"')] {
                let found = list_completions(snapshot, path, offset, trigger);
                asked += 1;
                offered += found.items.len();
                if !found.items.is_empty() {
                    assert!(
                        found.range.start <= offset && offset <= found.range.end,
                        "{path} at {offset}: {:?}",
                        found.range
                    );
                    assert!(!text[found.range.clone()].contains('\n'), "{path} at {offset}");
                }
            }
            super::super::find_signature(snapshot, path, offset);
        };
        let whole = workspace(text);
        for offset in (number % 7..text.len()).step_by(53).filter(|offset| text.is_char_boundary(*offset)) {
            check(&whole, text, offset);
        }
        for offset in (number % 5..text.len()).step_by(701).filter(|offset| text.is_char_boundary(*offset)) {
            check(&workspace(&text[..offset]), &text[..offset], offset);
        }
    }
    assert!(asked > 1000 && offered > asked, "{asked} {offered}");
}

#[test]
fn what_the_type_of_a_parameter_allows_is_its_default() {
    assert_eq!(labels(&spec("param x type=bool default=$0")), ["#true", "#false"]);
    assert_eq!(labels(&spec("param x type=\"enum red blue\" default=$0")), ["red", "blue"]);
    assert_eq!(labels(&spec("type Colour enum red blue\nparam x type=Colour default=\"$0\"")), ["red", "blue"]);
}

#[test]
fn texts_outside_of_pipelines_know_who_says_them() {
    let flow = |top: &str| {
        spec(&format!("provider p {{ exec cat }}\nagent a provider=p\n{top}\npipeline main {{\n task one agent=a {{ prompt \"x\" }}\n task two agent=a {{ prompt ref=said }}\n}}\nswarm s {{\n supervisor lead agent=a\n member m agent=a \"{}\"\n goal \"{}\"\n}}", if top == "member" { "<<$0" } else { "x" }, if top == "goal" { "<<$0" } else { "x" })).replace("\nmember\n", "\n").replace("\ngoal\n", "\n")
    };
    assert_eq!(labels(&flow("prompt said \"<<output:$0\"")), ["one"]);
    assert_eq!(labels(&flow("prompt other \"<<output:$0\"")), [""; 0]);
    let member = labels(&flow("member"));
    assert!(member.contains(&"inbox".to_owned()) && !member.contains(&"output".to_owned()), "{member:?}");
    assert!(!labels(&flow("goal")).contains(&"inbox".to_owned()));
}

#[test]
fn an_answer_does_not_wait_for_a_compilation() {
    let (snapshot, path, offset) = parse_fixture(&judge("<<output:$0"));
    let mut workspace = copied(&snapshot, &path);
    let known = workspace.snapshot().analysis("flow.kdl").expect("a spec");
    // The next key is pressed before anything is known of the text that it makes.
    workspace.edit(&path, |document| document.apply_edit(offset..offset, "b"));
    let now = workspace.snapshot();
    let found = list_completions(&now, &path, offset + 1, None);
    assert_eq!(found.items[0].label, "build");
    assert!(std::sync::Arc::ptr_eq(&now.recent_analysis("flow.kdl").expect("a spec"), &known));
}

/// A workspace of the same files.
fn copied(snapshot: &super::super::Snapshot, open: &str) -> super::super::Workspace {
    let paths = ["flow.kdl", "judge.md", "each.md"];
    let text = |path: &str| snapshot.document(path).expect("the file is there").text().to_owned();
    let files: std::collections::BTreeMap<String, String> = paths.map(|path| (path.to_owned(), text(path))).into();
    let mut workspace = super::super::Workspace::new(std::sync::Arc::new(files));
    workspace.invalidate_path("flow.kdl");
    workspace.open(open, &text(open));
    workspace
}

#[test]
fn names_of_imports_follow_their_qualifier() {
    let files = "//- flow.kdl\nimport \"lib.kdl\" as=lib\nprovider p { exec cat }\nagent a provider=p\npipeline main { task t { prompt \"<<context:$0\" } }\n//- lib.kdl\nparam depth type=int\ncontext-pack facts { fact language rust }\n";
    assert_eq!(labels(files), ["lib.facts"]);
    assert_eq!(
        chosen(&files.replace("context:$0", "context:lib.$0"), "facts"),
        "pipeline main { task t { prompt \"<<context:lib.facts>>\" } }"
    );
    assert_eq!(labels(&files.replace("context:$0", "param:lib.$0")), ["depth"]);
}

#[test]
fn a_faked_gate_is_asked_for_its_fields() {
    let gate = "pipeline main {\n gate ask {\n message \"?\"\n options yes no\n ask why string?\n }\n}\ntest t {\n fake ask choice=yes {\n $0\n }\n}";
    assert_eq!(labels(&spec(gate)), ["why", "allow"]);
    assert_eq!(labels(&spec(&gate.replace("choice=yes {\n $0\n }", "choice=$0"))), ["yes", "no", "fail"]);
}

#[test]
fn what_was_just_typed_opens_only_what_it_begins() {
    let after = |files: &str, trigger: char| {
        let (snapshot, path, offset) = parse_fixture(files);
        list_completions(&snapshot, &path, offset, Some(trigger)).items.len()
    };
    assert_eq!(after(&spec("pipeline main {\n    $0\n}"), ' '), 0);
    assert_eq!(after(&spec("pipeline main {$0"), '{'), 0);
    assert_eq!(after(&spec("agent a\npipeline main {\n task t {\n prompt \"a: $0\"\n }\n}"), ' '), 0);
    assert_eq!(after(&spec("pipeline main {\n description \"a:$0\"\n}"), ':'), 0);
    assert_eq!(after(&judge("Say: {$0"), '{'), 0);
    assert_ne!(after(&judge("Say: {{$0"), '{'), 0);
    assert_ne!(after(&judge("Say: {%$0"), '%'), 0);
    assert_eq!(after(&judge("a <$0"), '<'), 0);
    assert_ne!(after(&judge("a <<$0"), '<'), 0);
    assert_eq!(after(&judge("see /etc/$0"), '/'), 0);
    assert_ne!(after(&judge("<<include:./$0"), '/'), 0);
}

#[test]
fn a_text_made_to_be_slow_does_not_hide_what_follows() {
    for piece in ["{%", "{{", "<<output:", "<<output:plan | default:\"", "{% set x = x %}", "]", "{% for x in x %}"] {
        let text = piece.repeat((100 << 10) / piece.len());
        assert_eq!(labels(&judge(&format!("{text}\n\n<<output:plan.$0")))[..2], ["approved", "severity"], "{piece}");
        labels(&judge(&format!("{text}\n\n{{{{ x.$0")));
    }
}

#[test]
fn settings_of_a_workspace_are_completed() {
    let known = ["profile", "deny", "warn", "allow", "baseline"];
    assert_eq!(labels("//- swarmc.kdl\n$0\n"), known);
    assert_eq!(labels("//- swarmc.kdl\ndeny SW103\nprof$0\n"), known);
    assert_eq!(labels("//- swarmc.kdl\nprofile $0\n"), ["default", "strict", "audit"]);
    assert!(labels("//- swarmc.kdl\ndeny SW103 unus$0\n").contains(&"unused-definition".to_owned()));
    assert_eq!(labels("//- swarmc.kdl\nbaseline \"$0\"\n//- known.kdl\n"), ["known.kdl"]);
}
