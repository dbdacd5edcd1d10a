//! Rendering as the documents show it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use swarmc_plan::{Directive, DirectiveKind, Filter};

use super::*;

/// A small world: outputs by step, and a workspace.
#[derive(Default)]
struct World {
    outputs: BTreeMap<&'static str, &'static str>,
    previous: BTreeMap<&'static str, &'static str>,
    workspace: PathBuf,
}

impl Values for World {
    fn output(&self, step: &str) -> Result<Option<String>, String> {
        Ok(self.outputs.get(step).map(|text| (*text).to_owned()))
    }
    fn previous(&self, step: &str) -> Result<Option<String>, String> {
        Ok(self.previous.get(step).map(|text| (*text).to_owned()))
    }
    fn status(&self, step: &str) -> Option<Status> {
        Some(if self.outputs.contains_key(step) { Status::Succeeded } else { Status::Failed })
    }
    fn exit(&self, _: &str) -> Option<i32> {
        Some(101)
    }
    fn log(&self, _: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn error(&self, _: &str) -> Result<Option<Value>, String> {
        Ok(Some(Value::from("stack overflow")))
    }
    fn item(&self) -> Result<Option<(Value, u32)>, String> {
        Ok(Some((serde_json::json!({ "title": "fix it", "tags": ["a", "b"] }), 3)))
    }
    fn is_record(&self, step: &str) -> bool {
        step == "record"
    }
    fn steps(&self) -> Vec<&str> {
        vec!["planner", "topic-finder", "record", "evil", "unit-tests"]
    }
    fn inputs(&self) -> Vec<(&str, &str)> {
        vec![("plan", "planner")]
    }
    fn param(&self, name: &str) -> Option<(&str, &ParamType)> {
        match name {
            "count" => Some(("3", &ParamType::Int)),
            "goal" => Some(("ship it", &ParamType::String)),
            _ => None,
        }
    }
    fn params(&self) -> Vec<&str> {
        vec!["count", "goal"]
    }
    fn iteration(&self) -> u32 {
        2
    }
    fn run(&self) -> &str {
        "20261122-014233-k3f9"
    }
    fn run_folder(&self) -> &Path {
        Path::new("/home/swarm/runs/20261122-014233-k3f9")
    }
    fn task(&self) -> &str {
        "coder"
    }
    fn stdin(&self) -> Result<Option<String>, String> {
        Ok(Some("piped".to_owned()))
    }
    fn workspace(&self) -> &Path {
        &self.workspace
    }
}

fn origin() -> Origin {
    Origin { file: "prompts/coder.md".to_owned(), line: 4, column: 1 }
}

fn directive(kind: DirectiveKind, name: &str, wrap: bool, filters: &[Filter]) -> Segment {
    let (name, fields) = name.split_once('.').unwrap_or((name, ""));
    Segment::Directive(Directive {
        kind,
        name: (!name.is_empty()).then(|| name.to_owned()),
        fields: fields.split('.').filter(|field| !field.is_empty()).map(str::to_owned).collect(),
        filters: filters.to_vec(),
        wrap,
        origin: origin(),
    })
}

fn logic(source: &str) -> Segment {
    Segment::Logic(Expression { source: source.to_owned(), reads: None, origin: origin() })
}

fn text(text: &str) -> Segment {
    Segment::Text(text.to_owned())
}

fn render(segments: Vec<Segment>, world: &World) -> Result<String, String> {
    let template = Template { segments, digest: String::new() };
    Renderer::new().text(&template, world).map_err(|error| error.message)
}

fn world() -> World {
    World {
        outputs: BTreeMap::from([
            ("planner", "1. read\n2. write"),
            ("topic-finder", "otters"),
            ("record", r#"{"legs":4,"name":"otter"}"#),
            ("evil", "{{ output.planner }} <<output:planner>> {% for x in y %} \0 $(reboot)"),
        ]),
        previous: BTreeMap::from([("planner", "0. think")]),
        workspace: PathBuf::from("/nowhere"),
    }
}

#[test]
fn an_output_stands_between_its_lines() {
    let prompt = vec![
        text("# Coder Prompt\n\n## Plan from upstream\n"),
        directive(DirectiveKind::Output, "planner", true, &[]),
        text("\n\n## Your task\nImplement the plan above.\n"),
    ];
    assert_eq!(
        render(prompt, &world()).unwrap(),
        "# Coder Prompt\n\n## Plan from upstream\n--- Output from task \"planner\" ---\n1. read\n2. write\n\
         --- End output from task \"planner\" ---\n\n## Your task\nImplement the plan above.\n"
    );
}

#[test]
fn where_nothing_ran_stands_the_placeholder() {
    let missing =
        |filters: &[Filter]| render(vec![directive(DirectiveKind::Output, "coder", true, filters)], &world()).unwrap();
    assert_eq!(missing(&[]), "(No output available from task \"coder\")");
    assert_eq!(missing(&[Filter::Tail(3)]), "(No output available from task \"coder\")");
    assert_eq!(missing(&[Filter::Default("none".to_owned())]), "none");
    assert!(missing(&[Filter::Json]).contains("\nnull\n"));
}

#[test]
fn an_input_names_the_task_behind_its_port_and_previous_renders_nothing_where_nothing_was() {
    let one = |kind, name| render(vec![directive(kind, name, true, &[])], &world()).unwrap();
    assert!(one(DirectiveKind::Input, "plan").starts_with("--- Output from task \"planner\" ---\n1. read"));
    assert!(one(DirectiveKind::Previous, "planner").contains("\n0. think\n"));
    assert_eq!(one(DirectiveKind::Previous, "coder"), "");
    assert!(render(vec![directive(DirectiveKind::Input, "nope", false, &[])], &world()).is_err());
}

#[test]
fn filters_apply_in_order() {
    let filtered = |filters: &[Filter]| {
        let mut world = world();
        world.outputs.insert("planner", "a\nb\nç d\ne\n");
        render(vec![directive(DirectiveKind::Output, "planner", false, filters)], &world).unwrap()
    };
    assert_eq!(filtered(&[Filter::Tail(2)]), "ç d\ne\n");
    assert_eq!(filtered(&[Filter::Tail(9)]), "a\nb\nç d\ne\n");
    assert_eq!(filtered(&[Filter::Tail(0)]), "");
    assert_eq!(filtered(&[Filter::Head(2)]), "a\nb");
    assert_eq!(filtered(&[Filter::Lines(2, 3)]), "b\nç d");
    assert_eq!(filtered(&[Filter::Lines(3, 2)]), "");
    assert_eq!(filtered(&[Filter::Lines(4, 90)]), "e\n");
    assert_eq!(filtered(&[Filter::Lines(7, 90)]), "");
    assert_eq!(filtered(&[Filter::Tail(2), Filter::Head(1), Filter::Chars(1)]), "ç");
    assert_eq!(filtered(&[Filter::Head(1), Filter::Json]), "\"a\"");
}

#[test]
fn json_keeps_the_type_of_a_value() {
    let json = |kind, name| render(vec![directive(kind, name, false, &[Filter::Json])], &world()).unwrap();
    assert_eq!(json(DirectiveKind::Param, "count"), "3");
    assert_eq!(json(DirectiveKind::Param, "goal"), "\"ship it\"");
    assert_eq!(json(DirectiveKind::Exit, "planner"), "101");
    assert_eq!(json(DirectiveKind::Output, "record.legs"), "4");
    assert_eq!(json(DirectiveKind::Output, "record"), r#"{"legs":4,"name":"otter"}"#);
}

#[test]
fn one_expression_and_nothing_else_keeps_its_type_in_a_field() {
    let value = |segments: Vec<Segment>| {
        let template = Template { segments, digest: String::new() };
        Renderer::new().value(&template, &world()).map_err(|error| error.message)
    };
    let check = |source: &str, expected: serde_json::Value| assert_eq!(value(vec![logic(source)]), Ok(expected));
    check("{{ 1 + 2 }}", 3.into());
    check("{{- param.count > 2 -}}", true.into());
    check("{{ [param.goal, output.record.legs] }}", serde_json::json!(["ship it", 4]));
    check("{{ output.record }}", serde_json::json!({"legs": 4, "name": "otter"}));
    check("{% if true %}3{% endif %}", "3".into());
    assert_eq!(value(vec![logic("{{ 1 + 2 }}"), text(" ")]), Ok("3 ".into()));
    let error = value(vec![logic("{{ output.record.wings }}")]).unwrap_err();
    assert!(error.starts_with("prompts/coder.md:4:1: "), "{error}");
}

#[test]
fn a_field_that_is_not_there_is_an_error_with_its_place() {
    let error = render(vec![directive(DirectiveKind::Output, "record.wings", false, &[])], &world()).unwrap_err();
    assert_eq!(error, "prompts/coder.md:4:1: `record` has no field `wings`");
}

#[test]
fn what_an_agent_wrote_is_never_read_as_a_template() {
    let hostile = world().outputs["evil"];
    let plain = vec![directive(DirectiveKind::Output, "evil", false, &[])];
    assert_eq!(render(plain, &world()).unwrap(), hostile);
    let logical = vec![
        logic("{% if true %}"),
        directive(DirectiveKind::Output, "evil", false, &[]),
        logic("{% endif %}"),
        logic("{{ output.evil }}"),
    ];
    assert_eq!(render(logical, &world()).unwrap(), format!("{hostile}{hostile}"));
}

#[test]
fn logic_reads_the_same_values_with_underscores_for_dashes() {
    let rendered = render(
        vec![
            logic("{{ output.topic_finder }} {{ output.record.legs + param.count }} "),
            logic("{% for line in output.planner|lines %}[{{ line }}]{% endfor %} {{ iteration }} {{ task.name }} "),
            logic("{{ input.plan|length }} {{ stdin }} {{ run.id }} {{ output['topic-finder'] }}\n"),
        ],
        &world(),
    );
    assert_eq!(rendered.unwrap(), "otters 7 [1. read][2. write] 2 coder 16 piped 20261122-014233-k3f9 otters\n");
}

#[test]
fn values_look_the_same_in_logic_and_in_directives() {
    let check = |source: &str, expected: &str| {
        assert_eq!(render(vec![text("= "), logic(source)], &world()).as_deref(), Ok(format!("= {expected}").as_str()));
    };
    check("{{ param.count == 3 }}", "true");
    check("{{ none }}", "null");
    check("{{ [param.count, true, 'a\"b'] }}", r#"[3,true,"a\"b"]"#);
    check("{{ output.record }}", r#"{"legs":4,"name":"otter"}"#);
    check("{{ range(3) }}", "[0,1,2]");
    check("{{ param.count * 1.5 }}", "4.5");
    check("{{ 'text' if param.count > 5 }}", "");
    check("{{ output.record | json }} {{ 'a<b' | tojson }}", r#"{"legs":4,"name":"otter"} "a<b""#);
    check("{{ output.record | tojson(indent=2) }}", "{\n  \"legs\": 4,\n  \"name\": \"otter\"\n}");
    check("{{ [1] | json(1) }} {{ none | json }}", "[\n 1\n] null");
}

#[test]
fn one_directive_or_expression_keeps_its_type() {
    let check = |segments: Vec<Segment>, expected: &str| {
        let template = Template { segments, digest: String::new() };
        let value = Renderer::new().value(&template, &world()).map_err(|error| error.message);
        assert_eq!(value.map(|value| value.to_string()).as_deref(), Ok(expected));
    };
    check(vec![directive(DirectiveKind::Param, "count", false, &[])], "3");
    check(vec![logic("{{ param.count + 1 }}")], "4");
    check(vec![logic("{{- output.record.legs > 3 -}}")], "true");
    check(vec![logic("{{ output.record }}")], r#"{"legs":4,"name":"otter"}"#);
    check(vec![logic("{{ output.planner }}")], r#""1. read\n2. write""#);
    check(vec![logic("{{ 'text' if param.count > 5 }}")], r#""""#);
    check(vec![logic("{{ param.count }}"), text(" times")], r#""3 times""#);
    check(vec![logic("{% if true %}"), text("3"), logic("{% endif %}")], r#""3""#);
}

#[test]
fn braces_around_a_directive_stay_text() {
    let segments = vec![
        logic("{% if true %}"),
        text("{\"plan\": {"),
        directive(DirectiveKind::Output, "record.legs", false, &[]),
        text("}}"),
        logic("{% endif %}"),
    ];
    assert_eq!(render(segments, &world()).unwrap(), "{\"plan\": {4}}");
}

#[test]
fn undefined_is_an_error_at_its_place_and_a_directive_in_a_dead_branch_is_none() {
    let error = render(vec![text("one\ntwo "), logic("{{ output.unit_tests }}")], &world()).unwrap_err();
    assert!(error.starts_with("prompts/coder.md:4:1: "), "{error}");
    let guarded = vec![
        logic("{% if false %}"),
        directive(DirectiveKind::File, "missing.md", false, &[]),
        logic("{% endif %}fine"),
    ];
    assert_eq!(render(guarded, &world()).unwrap(), "fine");
    let guard = vec![logic("{{ 'yes' if output.unit_tests is defined else 'no' }}")];
    assert_eq!(render(guard, &world()).unwrap(), "no");
}

#[test]
fn a_template_cannot_run_for_ever() {
    let endless =
        vec![logic("{% for a in range(9999) %}{% for b in range(9999) %}{{ a * b }}{% endfor %}{% endfor %}")];
    assert!(render(endless, &world()).unwrap_err().contains("too many steps"));
}

#[test]
fn fields_with_dashes_are_read_with_underscores() {
    let mut world = world();
    world.outputs.insert("record", r#"{"open-points":[{"found-by":"x","n":1}],"a_b":1,"a-b":2}"#);
    let check = |source: &str, expected: &str| {
        assert_eq!(render(vec![text("= "), logic(source)], &world).as_deref(), Ok(format!("= {expected}").as_str()));
    };
    check("{{ output.record.open_points[0].found_by }}{{ output.record['open-points'][0]['found-by'] }}", "xx");
    check("{{ output.record.open_points | map(attribute='found_by') | join }}", "x");
    check("{{ output.record.a_b }}{{ output.record['a-b'] }} {{ output.record | length }}", "12 3");
    check("{{ output.record }}", r#"{"a-b":2,"a_b":1,"open-points":[{"found-by":"x","n":1}]}"#);
    check("{% for name, value in output.record | items %}{{ name }} {% endfor %}", "a-b a_b open-points ");
    check("{{ output.record.b_c is defined }} {{ output.record == output.record }}", "false true");
}

#[test]
fn nothing_that_an_expression_says_stops_the_runner() {
    let sources = [
        "6 is divisibleby(0)",
        "6.0 is divisibleby(output.record.legs - 4)",
        "[6] | select('divisibleby', 0) | list",
        "6 % (output.record.legs - 4)",
        "'a' | indent(99999999999, true)",
        "'a' | indent(width=99999999999, first=true)",
        "'%99999999999d' | format(1)",
        "'%*d' | format(99999999999, 1)",
        "'%.99999999999f' | format(1.5)",
        "('x' * param.count * 999999) ~ ('x' * param.count * 999999)",
        "('x' * param.count * 33333) | replace('x', 'abcdefgh' * param.count * 9)",
        "('x' * param.count * 99999) | list",
        "('x' * param.count * 99999) | split('')",
        "[1] | batch(99999999999, 0) | list",
        "[1] | slice(99999999999) | list",
        "range(100000) | join('x' * 99999)",
        "range(99999999999)",
        "([[0] * 10000] * 10000) | map('sum') | list",
        "(['x' * 99999] * 999) | sum(start='')",
        "170141183460469231731687303715884105727 * param.count",
    ];
    // Less than it is: what is near the limit takes a debug build seconds.
    let renderer = Renderer { logic: Logic::new(4 * 1024 * 1024) };
    for source in sources {
        let expression = Expression { source: source.to_owned(), reads: None, origin: origin() };
        let error = renderer.evaluate(&expression, &world()).map(|_| ()).expect_err(source);
        assert!(error.message.starts_with("prompts/coder.md:4:1: ") && !error.missing, "{source}: {}", error.message);
    }
    // What it was asked before is forgotten.
    let list = Expression { source: "([0] * 99999) | length".to_owned(), reads: None, origin: origin() };
    assert_eq!(renderer.evaluate(&list, &world()).unwrap(), 99_999);
}

#[test]
fn a_text_cannot_grow_for_ever() {
    let renderer = Renderer { logic: Logic::new(4 * 1024 * 1024) };
    let check = |renderer: &Renderer, source: &str, message: &str| {
        let template = Template { segments: vec![logic(source)], digest: String::new() };
        let error = renderer.text(&template, &world()).unwrap_err().message;
        assert!(error.contains(message), "{source}: {error}");
    };
    let doubled = "{% set ns = namespace(a='x') %}{% for i in range(99) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}";
    check(&renderer, doubled, "needs more than 4 MiB");
    check(&renderer, &doubled.replace('~', "+"), "needs more than 4 MiB");
    let lists = doubled.replace("'x'", "[0]").replace('~', "+");
    check(&renderer, &format!("{lists}{{{{ ns.a | length }}}}"), "needs more than 4 MiB");
    let loops = format!("{{% for i in range(999) %}}{}{{% endfor %}}", "x".repeat(9999));
    check(&renderer, &format!("{{% set text %}}{loops}{{% endset %}}{{{{ text | length }}}}"), "needs more than 4 MiB");
    check(&Renderer::new(), &loops.replace("999", "9999"), "longer than 64 MiB");
}

#[test]
fn operators_compute_as_before_where_they_are_metered() {
    let check = |source: &str, expected: &str| {
        assert_eq!(render(vec![text("= "), logic(source)], &world()).as_deref(), Ok(format!("= {expected}").as_str()));
    };
    check("{{ param.count + 1 }} {{ param.count * 2 }} {{ param.count ~ 'x' }}", "4 6 3x");
    check(
        "{{ param.goal + '!' }} {{ param.goal * 2 }} {{ [param.count] + [4] }} {{ [param.count] * 2 }}",
        "ship it! ship itship it [3,4] [3,3]",
    );
    check(
        "{% for i in [param.count, 1] %}{% if i > 2 and i + 1 == 4 %}a{{ i }}{% else %}b{% endif %}-{% endfor %}",
        "a3-b-",
    );
    check("{% for i in [] %}x{% else %}none{% endfor %}{{ 'y' if param.count + 1 > 3 else 'n' }}", "noney");
    check(
        "{% for i in [1, [2, [3]]] recursive %}{% if i is sequence %}({{ loop(i) }}){% else %}{{ i }}{% endif %}{% endfor %}",
        "1(2(3))",
    );
    check(
        "{{ 6 is divisibleby(param.count) }} {{ 7 is divisibleby(param.count) }} {{ 'a' is divisibleby(2) }}",
        "true false false",
    );
    check("{{ '%5d|%-5s|' | format(param.count, 'x') }}{{ 'a\nb' | indent(2) }}", "    3|x    |a\n  b");
}

#[test]
fn only_what_is_read_is_asked_for() {
    struct RecordingValues(World, std::cell::RefCell<Vec<String>>);
    impl Values for RecordingValues {
        fn output(&self, step: &str) -> Result<Option<String>, String> {
            self.1.borrow_mut().push(step.to_owned());
            self.0.output(step)
        }
        fn previous(&self, step: &str) -> Result<Option<String>, String> {
            self.0.previous(step)
        }
        fn status(&self, step: &str) -> Option<Status> {
            self.0.status(step)
        }
        fn exit(&self, step: &str) -> Option<i32> {
            self.0.exit(step)
        }
        fn log(&self, step: &str) -> Result<Option<String>, String> {
            self.0.log(step)
        }
        fn error(&self, step: &str) -> Result<Option<Value>, String> {
            self.0.error(step)
        }
        fn item(&self) -> Result<Option<(Value, u32)>, String> {
            self.0.item()
        }
        fn is_record(&self, step: &str) -> bool {
            self.0.is_record(step)
        }
        fn steps(&self) -> Vec<&str> {
            self.0.steps()
        }
        fn inputs(&self) -> Vec<(&str, &str)> {
            self.0.inputs()
        }
        fn param(&self, name: &str) -> Option<(&str, &ParamType)> {
            self.0.param(name)
        }
        fn params(&self) -> Vec<&str> {
            self.0.params()
        }
        fn iteration(&self) -> u32 {
            self.0.iteration()
        }
        fn run(&self) -> &str {
            self.0.run()
        }
        fn run_folder(&self) -> &Path {
            self.0.run_folder()
        }
        fn task(&self) -> &str {
            self.0.task()
        }
        fn stdin(&self) -> Result<Option<String>, String> {
            self.0.stdin()
        }
        fn workspace(&self) -> &Path {
            self.0.workspace()
        }
    }
    let world = RecordingValues(world(), std::cell::RefCell::default());
    let names = std::collections::BTreeSet::from(["topic_finder".to_owned()]);
    let reads = Some(swarmc_plan::Reads::from([(DirectiveKind::Output, names)]));
    let expression = Expression { source: "output.topic_finder[:3]".to_owned(), reads, origin: origin() };
    assert_eq!(Renderer::new().evaluate(&expression, &world).unwrap(), "ott");
    assert_eq!(*world.1.borrow(), ["topic-finder"]);
}

#[test]
fn conditions_hold_or_not_and_say_when_a_value_is_missing() {
    let holds = |source: &str| {
        Renderer::new().holds(&Expression { source: source.to_owned(), reads: None, origin: origin() }, &world())
    };
    assert!(holds("status.planner == 'succeeded' and exit.planner == 101").unwrap());
    assert!(!holds("output.record.legs > param.count + 1").unwrap());
    assert!(holds("output.unit_tests").unwrap_err().missing);
    assert!(holds("output.unit_tests.approved").unwrap_err().missing);
    assert!(!holds("1 +").unwrap_err().missing);
}

#[test]
fn files_are_read_inside_the_workspace_only() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("work");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(folder.path().join("secret"), "s3cret").unwrap();
    std::fs::write(workspace.join("notes.md"), b"caf\xc3\xa9 \xff {{ x }}").unwrap();
    std::os::unix::fs::symlink("../secret", workspace.join("link")).unwrap();
    let world = World { workspace, ..world() };
    let read = |path| {
        let Segment::Directive(mut directive) = directive(DirectiveKind::File, "x", false, &[]) else { unreachable!() };
        directive.name = Some(String::from(path));
        render(vec![Segment::Directive(directive)], &world)
    };
    assert_eq!(read("notes.md").unwrap(), "café \u{fffd} {{ x }}");
    for outside in ["../secret", "link", "/etc/passwd"] {
        assert!(read(outside).unwrap_err().contains("outside the workspace"), "{outside}");
    }
    assert!(read(".").unwrap_err().contains("not a file"));
}
