//! What texts and conditions say, as tables; and that no text does harm.

use proptest::prelude::*;
use swarmc_plan::Filter;

use super::*;

/// The parts, reads and problems of a text, a line each.
fn check_parts(text: &str, expected: &str) {
    assert_eq!(parts(text), expected, "parts of {text:?}");
}

fn check_reads(text: &str, expected: &str) {
    let template = scan(text);
    assert_eq!(problems(text, &template.problems), Vec::<String>::new(), "problems of {text:?}");
    assert_eq!(reads(&template.reads), expected, "reads of {text:?}");
}

/// The text at each problem, its message, and the text after its fix.
fn check_problems(text: &str, expected: &[&str]) {
    assert_eq!(problems(text, &scan(text).problems), expected, "problems of {text:?}");
}

/// What holds when a condition does, after what it reads.
fn check_condition(text: &str, expected: &str) {
    let expression = expression(text);
    assert_eq!(problems(text, &expression.problems), Vec::<String>::new(), "problems of {text:?}");
    let constant = expression.constant.map_or(String::new(), |truth| format!(" always {truth}"));
    let said = format!("{} proves {}{constant}", reads(&expression.reads), facts(&expression.proves));
    assert_eq!(said, expected, "condition {text:?}");
}

fn check_condition_problems(text: &str, expected: &[&str]) {
    assert_eq!(problems(text, &expression(text).problems), expected, "problems of {text:?}");
}

fn parts(text: &str) -> String {
    let show = |part: &Part| match part {
        Part::Text(range) => format!("{:?}", &text[range.clone()]),
        Part::Escape(range) => text[range.clone()].to_owned(),
        Part::Logic(range) => text[range.clone()].to_owned(),
        Part::Directive(directive) => {
            let fields = directive.fields.iter().map(|field| format!(".{}", field.value)).collect::<String>();
            let filters = directive.filters.iter().map(|filter| format!(" | {}", filter_text(&filter.value)));
            let name = directive.name.as_ref().map_or(String::new(), |name| format!(" {}", name.value));
            format!("<{}{name}{fields}{}>", directive.kind.word(), filters.collect::<String>())
        }
    };
    scan(text).parts.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn filter_text(filter: &Filter) -> String {
    match filter {
        Filter::Tail(count) => format!("tail {count}"),
        Filter::Head(count) => format!("head {count}"),
        Filter::Lines(from, to) => format!("lines {from} {to}"),
        Filter::Chars(count) => format!("chars {count}"),
        Filter::Json => "json".to_owned(),
        Filter::Raw => "raw".to_owned(),
        Filter::Default(text) => format!("default {text:?}"),
    }
}

/// `output.x.f`, with `?` where a missing value does no harm, and what is assumed.
fn reads(reads: &[Read]) -> String {
    let show = |read: &Read| {
        let names = read.name.iter().chain(&read.fields).map(|name| format!(".{name}")).collect::<String>();
        let guarded = if read.guarded { "?" } else { "" };
        let assumes = if read.assumes.is_empty() { String::new() } else { format!(" if {}", facts(&read.assumes)) };
        format!("{}{names}{guarded}{assumes}", read.root.word())
    };
    reads.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn facts(facts: &[Fact]) -> String {
    let show = |fact: &Fact| match fact {
        Fact::Defined { root, name, fields } => {
            let names = name.iter().chain(fields).map(|name| format!(".{name}")).collect::<String>();
            format!("{}{names}", root.word())
        }
        Fact::Ended { step, any_of } => {
            let words: Vec<&str> = any_of.iter().map(|status| status.word()).collect();
            format!("{step} {}", words.join("/"))
        }
    };
    facts.iter().map(show).collect::<Vec<_>>().join(" + ")
}

fn problems(text: &str, problems: &[Problem]) -> Vec<String> {
    let show = |problem: &Problem| {
        let at = &text[problem.range.clone()];
        let mut fixed = text.to_owned();
        let fixed = problem.fix.as_ref().map_or(String::new(), |fix| {
            fixed.replace_range(fix.range.clone(), &fix.text);
            format!(" -> {fixed}")
        });
        format!("{} at {at:?}: {}{fixed}", problem.code.id(), problem.message)
    };
    problems.iter().map(show).collect()
}

#[test]
fn directives_have_a_kind_a_name_fields_and_filters() {
    check_parts("a <<output:plan>> b", r#""a " <output plan> " b""#);
    check_parts("<<output:unit-tests.score.min | tail:50>>", "<output unit-tests.score.min | tail 50>");
    check_parts("<<output:x|raw|json>>", "<output x | raw | json>");
    check_parts("<<input:report | head:3 | chars:80>>", "<input report | head 3 | chars 80>");
    check_parts("<<param:goal | default:none>>", r#"<param goal | default "none">"#);
    check_parts(r#"<<param:g | default: "a \"b\" >> | c">>!"#, r#"<param g | default "a \"b\" >> | c"> "!""#);
    check_parts("<<file:docs/a b.md | lines:1-40>>", "<file docs/a b.md | lines 1 40>");
    check_parts("<<include: roles/coder.v2.md>>", "<include roles/coder.v2.md>");
    check_parts("<<iteration>><<stdin | tail:2>>", "<iteration> <stdin | tail 2>");
    check_parts("<<run:id>> <<run:dir>> <<task:name>>", r#"<run id> " " <run dir> " " <task name>"#);
    check_parts("<<status:x>><<exit:x | default:1>><<error:x>>", r#"<status x> <exit x | default "1"> <error x>"#);
    check_parts("<<<output:x>>>", r#""<" <output x> ">""#);
    check_parts("é<<output:x>>é", r#""é" <output x> "é""#);
}

#[test]
fn every_other_pair_of_angles_is_text() {
    for text in [
        "cat <<EOF\nhello\nEOF",
        "cat <<-EOF",
        "cat <<'EOF' >> log",
        "cat <<EOF | sort >> log",
        "cat <<EOF | head -5 >> log",
        "cat <<EOF >> log",
        "1 << 2",
        "a<<b",
        "x <<y.z >> 3",
        "1<<n.bits >> 2",
        "std::cout <<std::endl; x >> y;",
        "std::cerr <<error.what();",
        "cout <<status.code | x",
        "cat <<<word.x>>file",
        "<<<<<<< HEAD",
        "a << output:x >>",
        "<<",
        "<<>>",
        "<<1>>",
        "List<<T>>::new",
    ] {
        match text {
            // The rule is a word and `>>`: this one has to be escaped.
            "List<<T>>::new" => check_problems(text, &["SW208 at \"T\": unknown directive `T`"]),
            _ => check_parts(text, &format!("{text:?}")),
        }
        assert!(text.contains("<T>") || scan(text).problems.is_empty(), "problems of {text:?}");
    }
}

#[test]
fn a_backslash_makes_text_of_a_directive() {
    check_parts(r"a \<<output:x>>", r#""a " \ "<<output:x>>""#);
    check_parts(r"\\<<output:x>>", r#""\\" \ "<<output:x>>""#);
    check_parts(r"\<<EOF", r#"\ "<<EOF""#);
    check_parts(r"<<output:x>>\<<output:y>>", r#"<output x> \ "<<output:y>>""#);
    check_reads(r"\<<output:x>>", "");
}

#[test]
fn unknown_directives_are_told_apart_from_text() {
    check_problems("see <<outptu:plan>>", &["SW208 at \"outptu\": unknown directive `outptu` -> see <<output:plan>>"]);
    check_problems("<<outptu | tail:5>>", &["SW208 at \"outptu\": unknown directive `outptu` -> <<output | tail:5>>"]);
    check_problems("<<Output:x>>", &["SW208 at \"Output\": unknown directive `Output` -> <<output:x>>"]);
    check_problems("<<item.name>>", &["SW208 at \"item\": unknown directive `item`"]);
    check_problems("<<whatever>>", &["SW208 at \"whatever\": unknown directive `whatever`"]);
}

#[test]
fn directives_that_do_not_fit_the_notation_are_reported() {
    check_problems("<<output:x\n>>", &["SW208 at \"<<output:x\": `<<output:x` is not closed -> <<output:x>>\n>>"]);
    check_problems(
        "<<output:a and <<output:b>>",
        &["SW208 at \"<<output:a\": `<<output:a` is not closed -> <<output:a>> and <<output:b>>"],
    );
    check_problems("<<output>>", &["SW208 at \"output\": `output` needs the name of a step"]);
    check_problems("<<output:>>", &["SW208 at \"output\": `output` needs the name of a step"]);
    check_problems("<<output.x>>", &["SW208 at \"output\": `output` needs the name of a step -> <<output:x>>"]);
    check_problems("<<param>>", &["SW208 at \"param\": `param` needs the name of a parameter"]);
    check_problems("<<iteration:x>>", &["SW208 at \":x\": `iteration` takes no name -> <<iteration>>"]);
    check_problems("<<run:time>>", &["SW208 at \"time\": `run` has no `time`"]);
    check_problems("<<task:id>>", &["SW208 at \"id\": `task` has no `id`"]);
    check_problems("<<run>>", &["SW208 at \"run\": `run` needs a property"]);
    check_problems("<<include>>", &["SW208 at \"include\": `include` needs the path of a file"]);
    check_problems("<<file: >>", &["SW208 at \"file\": `file` needs the path of a file"]);
    check_problems("<<status:x.code>>", &["SW208 at \".code\": `status` has no fields -> <<status:x>>"]);
    check_problems("<<output:a b>>", &["SW208 at \"a b\": `a b` is not a name"]);
    check_problems("<<output:a.>>", &["SW208 at \"\": a field is missing after `.`"]);
}

#[test]
fn filters_that_do_not_fit_are_reported() {
    check_problems("<<output:x | tial:3>>", &["SW208 at \"tial\": unknown filter `tial` -> <<output:x | tail:3>>"]);
    check_problems("<<output:x | upper>>", &["SW208 at \"upper\": unknown filter `upper`"]);
    check_problems("<<output:x | >>", &["SW208 at \"|\": a filter is missing after `|`"]);
    for argument in ["", ":", ":x", ":0", ":-1", ":1.5", ":99999999999999999999"] {
        let filter = format!("tail{argument}");
        let found = format!("SW208 at {filter:?}: `tail` needs a number of lines, from 1");
        check_problems(&format!("<<output:x | {filter}>>"), &[&found]);
    }
    check_problems(
        "<<output:x | lines:9-3>>",
        &["SW208 at \"lines:9-3\": `lines` needs two line numbers, the first from 1 -> <<output:x | lines:3-9>>"],
    );
    check_problems("<<output:x | json:1>>", &["SW208 at \"json:1\": `json` takes no argument"]);
    check_problems("<<output:x | default>>", &["SW208 at \"default\": `default` needs a text"]);
    check_problems("<<output:x | default:a b>>", &["SW208 at \"default:a b\": `default` needs a text"]);
    check_problems("<<iteration | tail:3>>", &["SW208 at \"tail\": `tail` makes no sense on `iteration`"]);
    check_problems("<<include:a | raw>>", &["SW208 at \"raw\": `raw` makes no sense on `include`"]);
}

#[test]
fn the_older_notation_works_and_is_rewritten() {
    check_parts("{{output:plan}} {{ input: x }}", r#"<output plan> " " <input x>"#);
    check_parts("{{include: a/b.md}}", "<include a/b.md>");
    check_parts("{{{output:x}}}", r#""{" <output x> "}""#);
    let older = "this is the older notation of a directive";
    check_problems("a {{output: x}}", &[&format!("SW213 at \"{{{{output: x}}}}\": {older} -> a <<output:x>>")]);
    check_problems("{{output:}}", &["SW208 at \"output\": `output` needs the name of a step"]);
    assert_eq!(reads(&scan("{{output:x}}").reads), "output.x");
}

#[test]
fn logic_is_whole_and_may_hold_anything() {
    check_parts("a {{ output.x }} b", r#""a " {{ output.x }} " b""#);
    check_parts(r#"{{ "}}" }}{{ {"a": {"b": 1}} }}"#, r#"{{ "}}" }} {{ {"a": {"b": 1}} }}"#);
    check_parts("{# <<output:x>> {{ #} b", r#"{# <<output:x>> {{ #} " b""#);
    check_parts("{% raw %}{{ <<output:x>> {% endraw %}b", r#"{% raw %}{{ <<output:x>> {% endraw %} "b""#);
    check_parts("{%- raw -%} {% {%- endraw +%}b", r#"{%- raw -%} {% {%- endraw +%} "b""#);
    check_parts(r#"{"a": 1} {a} { {"#, r#""{\"a\": 1} {a} { {""#);
    check_reads("{% raw %}<<output:x>>{{ y }}{% endraw %}{# {{ z }} #}", "");
}

#[test]
fn expressions_read_the_same_names() {
    check_reads("{{ output.plan.steps }}", "output.plan.steps");
    check_reads("{{ output['topic-finder'].score }}", "output.topic-finder.score");
    check_reads("{{ output.plan.items[0].id }}", "output.plan.items.0.id");
    check_reads("{{ output.plan[param.field] }}", "output.plan, param.field");
    check_reads("{{ iteration + 1 }} {{ stdin }} {{ run.id }} {{ task.name }}", "iteration, stdin, run.id, task.name");
    check_reads(
        "{% for step in output.plan.steps if step.open %}{{ loop.index }} {{ step.id }}{% endfor %}",
        "output.plan.steps",
    );
    check_reads("{% set n = output.a.n %}{% with m = n %}{{ n - m }}{% endwith %}", "output.a.n");
    check_reads("{% for i in range(3) %}{{ loop.cycle('a', 'b') }}{% else %}{{ param.x }}{% endfor %}", "param.x");
    check_reads("{% set ns = namespace(n=0) %}{% set ns.n = output.a %}{{ ns.n }}", "output.a");
    check_reads("{% filter upper %}{{ output.a }}<<output:b>>{% endfilter %}", "output.a, output.b");
    check_reads(
        "{{ output.count-1 }} {{ output.a-output.b }} {{ output.a - iteration }}",
        "output.count, output.a, output.b, output.a, iteration",
    );
    check_reads("{% set total = 3 %}{{ output.count-total }}", "output.count");
}

#[test]
fn conditions_around_a_place_guard_it() {
    check_reads("{% if output.x is defined %}<<output:x>>{% endif %}", "output.x?, output.x? if output.x");
    check_reads("{% if output.a_b is defined %}<<output:a-b>>{% endif %}", "output.a_b?, output.a-b? if output.a_b");
    check_reads("{% if output.x is defined %}{% else %}<<output:x>>{% endif %}", "output.x?, output.x");
    check_reads("{% if output.x is undefined %}{% else %}<<output:x>>{% endif %}", "output.x?, output.x? if output.x");
    check_reads(
        "{% if not output.x is defined %}a{% elif iteration %}<<output:x>>{% endif %}",
        "output.x?, iteration if output.x, output.x? if output.x",
    );
    check_reads("{{ output.x is defined and output.x.ok }}", "output.x?, output.x.ok? if output.x");
    check_reads("{{ output.x is undefined or output.x.ok }}", "output.x?, output.x.ok? if output.x");
    check_reads("{{ output.x if output.x is defined else 'none' }}", "output.x? if output.x, output.x?");
    check_reads("{{ output.x | default('none') }} {{ output.y | d }}", "output.x?, output.y?");
    check_reads("<<output:x.f | default:none>> <<output:x.f>>", "output.x.f?, output.x.f");
    // A field of a missing value fails before the default applies.
    check_reads("{{ output.x.f | default('none') }}", "output.x.f");
    check_reads("{{ output.x or 'none' }}", "output.x");
    check_reads("{% if output.x %}<<output:x>>{% endif %}", "output.x, output.x? if output.x");
    check_reads("{% if output.x.ok == 'yes' %}<<output:x>>{% endif %}", "output.x.ok, output.x? if output.x.ok");
    check_reads("{% if a is defined %}{% endif %}".replace('a', "param.a").as_str(), "param.a?");
}

#[test]
fn statuses_are_facts_where_they_hold() {
    let one = |condition: &str| format!("{{% if {condition} %}}<<output:x>>{{% else %}}<<output:y>>{{% endif %}}");
    check_reads(&one("status.x == 'succeeded'"), "status.x, output.x if x succeeded, output.y if x failed/skipped");
    check_reads(&one("'failed' != status.x"), "status.x, output.x if x succeeded/skipped, output.y if x failed");
    check_reads(
        &one("status.x in ['failed', 'skipped']"),
        "status.x, output.x if x failed/skipped, output.y if x succeeded",
    );
    check_reads(
        &one("status.x not in ['failed', 'skipped']"),
        "status.x, output.x if x succeeded, output.y if x failed/skipped",
    );
    check_reads(
        &one("status.x == 'failed' or status.x == 'skipped'"),
        "status.x, status.x if x succeeded/skipped, output.x if x failed/skipped, output.y if x succeeded",
    );
    check_reads(
        &one("exit.x == 0"),
        "exit.x, output.x if exit.x + x succeeded/failed, output.y if exit.x + x succeeded/failed",
    );
}

#[test]
fn conditions_say_what_they_prove() {
    check_condition("status.x == 'succeeded'", "status.x proves x succeeded");
    check_condition(
        "status.x != 'skipped' and exit.y > 0",
        "status.x, exit.y if x succeeded/failed proves x succeeded/failed + y succeeded/failed + exit.y",
    );
    check_condition("output.x is defined", "output.x? proves output.x");
    check_condition("output.x is defined and output.x.ok", "output.x?, output.x.ok? if output.x proves output.x");
    check_condition("output.x.ok", "output.x.ok proves ");
    check_condition("output.x.n > 3", "output.x.n proves ");
    check_condition("not (output.x is undefined or param.y)", "output.x?, param.y if output.x proves output.x");
    check_condition(
        "status.x == 'failed' or status.y == 'failed'",
        "status.x, status.y if x succeeded/skipped proves ",
    );
    check_condition("output.find == []", "output.find proves ");
}

#[test]
fn conditions_that_cannot_change_are_constant() {
    check_condition("true", " proves  always true");
    check_condition("1 == 2", " proves  always false");
    check_condition("not 'a' or []", " proves  always false");
    check_condition("false and output.x", "output.x proves  always false");
    check_condition("param.x or true", "param.x proves  always true");
    check_condition(
        "status.x == 'failed' and status.x == 'skipped'",
        "status.x, status.x if x failed proves x  always false",
    );
    check_condition(
        "status.x == 'failed' or status.x != 'failed'",
        "status.x, status.x if x succeeded/skipped proves  always true",
    );
    check_condition("status.x in []", "status.x proves x  always false");
}

#[test]
fn names_that_nothing_defines_are_reported() {
    check_problems("{{ outptu.x }}", &["SW209 at \"outptu\": unknown name `outptu` -> {{ output.x }}"]);
    check_problems("{{ planner }}", &["SW209 at \"planner\": unknown name `planner`"]);
    check_problems("{{ item }}", &["SW209 at \"item\": unknown name `item`"]);
    check_problems("{{ output.x | uper }}", &["SW209 at \"uper\": unknown filter `uper` -> {{ output.x | upper }}"]);
    check_problems(
        "{{ output.x is defned }}",
        &["SW209 at \"defned\": unknown test `defned` -> {{ output.x is defined }}"],
    );
    check_problems("{{ ragne(3) }}", &["SW209 at \"ragne\": unknown function `ragne` -> {{ range(3) }}"]);
    check_problems("{{ directive(0) }}", &["SW209 at \"directive\": unknown function `directive`"]);
    check_problems("{{ output.x.upper() }}", &["SW209 at \"upper\": values have no method `upper`"]);
    check_problems("{{ output }}", &["SW209 at \"output\": `output` needs the name of a step"]);
    check_problems("{{ status.x.y }}", &["SW209 at \"y\": `status` has no fields"]);
    check_problems("{{ run.time }}", &["SW209 at \"time\": `run` has no `time`"]);
    check_problems("{% for a in output.x %}{% endfor %}{{ a }}", &["SW209 at \"a\": unknown name `a`"]);
    check_problems("{{ loop.index }}", &["SW209 at \"loop\": unknown name `loop`"]);
    check_problems(
        "{% for a in output.x %}{{ loop.idnex }}{% endfor %}",
        &[
            "SW209 at \"idnex\": unknown attribute of `loop` `idnex` -> {% for a in output.x %}{{ loop.index }}{% endfor %}",
        ],
    );
    check_problems(
        "{% if param.x %}{% set a = 1 %}{% endif %}{{ a }}",
        &["SW209 at \"a\": `a` is not set on every way here"],
    );
    check_problems("{% set output = 1 %}", &["SW209 at \"output\": `output` is taken"]);
    check_reads("{% if param.x %}{% set a = 1 %}{% else %}{% set a = 2 %}{% endif %}{{ a }}", "param.x");
}

#[test]
fn names_with_dashes_are_no_subtractions() {
    check_problems(
        "{{ output.topic-finder }}",
        &["SW209 at \"topic-finder\": `output.topic-finder` is a subtraction -> {{ output.topic_finder }}"],
    );
    check_problems(
        "{{ output.a-b-2.score | upper }}",
        &["SW209 at \"a-b-2\": `output.a-b-2` is a subtraction -> {{ output.a_b_2.score | upper }}"],
    );
    check_problems(
        "{% if status.a-in-b == 'failed' %}{% endif %}",
        &["SW209 at \"a-in-b\": `status.a-in-b` is a subtraction -> {% if status.a_in_b == 'failed' %}{% endif %}"],
    );
    check_condition_problems("output.a-b.ok", &["SW209 at \"a-b\": `output.a-b` is a subtraction -> output.a_b.ok"]);
    assert_eq!(reads(&scan("{{ output.a-b.c }}").reads), "output.a_b.c");
}

#[test]
fn comparisons_that_never_hold_are_reported() {
    let never = |word: &str| format!("no step ends as `\"{word}\"`: this never holds");
    check_condition_problems(
        "status.x == \"success\"",
        &[&format!("SW209 at \"\\\"success\\\"\": {} -> status.x == \"succeeded\"", never("success"))],
    );
    check_condition_problems(
        "status.x in [\"failed\", \"skiped\"]",
        &[&format!("SW209 at \"\\\"skiped\\\"\": {} -> status.x in [\"failed\", \"skipped\"]", never("skiped"))],
    );
    check_condition_problems("status.x == \"blue\"", &[&format!("SW209 at \"\\\"blue\\\"\": {}", never("blue"))]);
    check_condition_problems(
        "status.x == failed",
        &["SW209 at \"failed\": unknown name `failed` -> status.x == \"failed\""],
    );
    check_condition_problems(
        "exit.x == \"0\"",
        &["SW209 at \"\\\"0\\\"\": `exit` is a number, never a text: this never holds -> exit.x == 0"],
    );
}

#[test]
fn directives_inside_logic_are_reported() {
    let inside = "a directive inside an expression";
    check_problems(
        "{% if <<output:a-b.ok>> %}x{% endif %}",
        &[&format!("SW209 at \"<<output:a-b.ok>>\": {inside} -> {{% if output.a_b.ok %}}x{{% endif %}}")],
    );
    check_problems("{{ <<file:a.md>> }}", &[&format!("SW209 at \"<<file:a.md>>\": {inside}")]);
    check_condition_problems(
        "<<output:x>> == 'a'",
        &[&format!("SW209 at \"<<output:x>>\": {inside} -> output.x == 'a'")],
    );
    check_condition_problems(
        "{{ output.x }}",
        &["SW209 at \"{{ output.x }}\": a condition is an expression, without `{{` and `}}` -> output.x"],
    );
    check_reads("{{ '<<output:x>>' }}", "");
}

#[test]
fn broken_logic_is_reported_at_its_place_and_the_rest_goes_on() {
    check_problems(
        "{{ output.x | }} and {{ foo }}",
        &["SW209 at \"|\": unexpected end of input, expected identifier", "SW209 at \"foo\": unknown name `foo`"],
    );
    check_problems(
        "{{ a ? b }} {{ foo }}",
        &["SW209 at \"?\": unexpected character", "SW209 at \"foo\": unknown name `foo`"],
    );
    check_problems("x {{ output.x", &["SW209 at \"{{\": `{{` is not closed"]);
    check_problems("{{ (output.x }} b", &["SW209 at \"{{ (output.x }}\": brackets do not match"]);
    check_problems("{{ }}", &["SW209 at \"{{ }}\": an empty expression"]);
    check_problems("{# a", &["SW209 at \"{#\": `{#` is not closed"]);
    check_problems("{% raw %} a", &["SW209 at \"{% raw %}\": `{% raw %}` is not closed"]);
    check_problems("{% if iteration %}a", &["SW209 at \"{% if iteration %}\": `{% if %}` is not closed"]);
    check_problems("a{% endif %}", &["SW209 at \"{% endif %}\": `{% endif %}` closes nothing"]);
    check_problems("a{% else %}", &["SW209 at \"{% else %}\": `{% else %}` has no `{% if %}`"]);
    check_problems(
        "{% for a in output.x %}{% if a %}b{% endfor %}",
        &["SW209 at \"{% if a %}\": `{% if %}` is not closed"],
    );
    check_problems("{% fi iteration %}", &["SW209 at \"fi\": unknown statement `fi` -> {% if iteration %}"]);
    check_problems(
        "{% include 'a' %}",
        &["SW209 at \"include\": `include` is not available: there are no other templates"],
    );
    check_problems(
        "{% macro a() %}b{% endmacro %}",
        &["SW209 at \"macro\": `macro` is not available", "SW209 at \"endmacro\": `endmacro` is not available"],
    );
    check_problems("{% for x output.y %}{% endfor %}", &["SW209 at \"output\": unexpected identifier, expected in"]);
    check_problems("{% %}", &["SW209 at \"%}\": unknown `%}`, expected statement"]);
    check_condition_problems("", &["SW209 at \"\": an empty expression"]);
    check_condition_problems("output.x ==", &["SW209 at \"==\": unexpected end of input, expected expression"]);
    check_condition_problems("output.x = 1", &["SW209 at \"=\": unexpected input after expression"]);
    check_condition_problems("output.x }} a", &["SW209 at \"}}\": `}}` does not belong here"]);
}

#[test]
fn what_broken_logic_guards_is_not_held_against_the_text() {
    assert_eq!(reads(&scan("{% if %}<<output:x>>{% endif %}").reads), "output.x?");
    assert_eq!(reads(&scan("{{ y <<output:x>>").reads), "output.x?");
}

#[test]
fn nothing_is_too_deep_for_the_stack() {
    let deep = format!("{}{}1{}", "(".repeat(32), "not ".repeat(160), ")".repeat(32));
    let at_the_limit = [
        format!("{}{{{{ {deep} }}}}{}", "{% if iteration %}".repeat(47), "{% endif %}".repeat(47)),
        format!("{{{{ {}1{} }}}}", "[1][".repeat(32), "]".repeat(32)),
        format!("{{{{ {}1 }}}}", "1 if 2 else ".repeat(100)),
        format!("{{{{ {}1 }}}}", "-".repeat(199)),
        format!("{{{{ 1{} }}}}", "|abs".repeat(199)),
        format!("{{{{ {}1{} }}}}", "range(".repeat(32), ")".repeat(32)),
        format!("{{{{ 1{} }}}}", " + 1".repeat(199)),
        format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(46)),
    ];
    // Half of what a test's thread has, in a debug build.
    std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || {
            for text in at_the_limit {
                assert_eq!(problems(&text, &scan(&text).problems), Vec::<String>::new());
                minijinja::Environment::new().template_from_str(&text).expect("minijinja compiles it");
            }
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn hostile_texts_are_refused_in_linear_time() {
    let many = 20_000;
    for (unit, end) in [
        ("{{ (", ""),
        ("{{ a.", ""),
        ("{{ ' }}", ""),
        ("{{", ""),
        ("{#", ""),
        ("{% raw %}", ""),
        ("{% if 1 %}", ""),
        ("{% if 1 %}{% elif 1 %}", ""),
        ("{% set x %}", ""),
        ("{{ output.x }}", ""),
        ("{{ x }}", ""),
        ("{% set x = 1 %}{{ y }}", ""),
        ("<<output:x", ""),
        ("<<output:x|default:\"", ""),
        ("<<x>>", ""),
        ("{{output:", ""),
        ("{{output:x}}", ""),
        ("<<", ">>"),
        ("\\<<", ""),
    ] {
        let template = scan(&format!("{}{end}", unit.repeat(many)));
        assert!(template.problems.len() <= MAX_PROBLEMS);
    }
    for (open, inner, close) in [
        ("", "(", ""),
        ("", ".a", ""),
        ("", "not ", "a"),
        ("", "-", "a"),
        ("a", "|f", ""),
        ("a", "[0]", ""),
        ("a", " if b else c", ""),
        ("a", "()", ""),
    ] {
        for many in [300, 9_000, 100_000] {
            let condition = format!("{open}{}{close}", inner.repeat(many));
            assert!(!expression(&condition).problems.is_empty());
            assert!(!scan(&format!("{{{{ {condition} }}}}")).problems.is_empty());
        }
    }
}

#[test]
fn the_lists_are_what_minijinja_has() {
    let environment = minijinja::Environment::new();
    let holds = |source: String| {
        let compiled = environment.compile_expression(&source).expect("an expression");
        compiled.eval(()).expect("a value").is_true()
    };
    for name in names::FILTERS {
        assert!(holds(format!("'{name}' is filter")), "filter {name}");
    }
    for name in names::TESTS {
        assert!(holds(format!("'{name}' is test")), "test {name}");
    }
    let globals: Vec<&str> = environment.globals().map(|(name, _)| name).collect();
    assert_eq!(globals, names::FUNCTIONS);
}

fn piece() -> impl Strategy<Value = String> {
    let words = [
        "<<",
        ">>",
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "output",
        "status",
        ":",
        ".",
        "|",
        "x",
        "-",
        "\"",
        "'",
        "\\",
        " ",
        "\n",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "if",
        "endif",
        "for",
        "in",
        "set",
        "=",
        "==",
        "is defined",
        "default",
        "raw",
        "endraw",
        "not",
        "and",
        "é",
        "1",
        "<<output:x>>",
        "{{ output.x }}",
        "{% if output.x is defined %}",
        "{% endif %}",
    ];
    prop_oneof![8 => prop::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

proptest! {
    #[test]
    fn any_text_is_covered_by_its_parts(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = pieces.concat();
        let template = scan(&text);
        let mut at = 0;
        for part in &template.parts {
            let range = match part {
                Part::Text(range) | Part::Escape(range) | Part::Logic(range) => range.clone(),
                Part::Directive(directive) => directive.range.clone(),
            };
            prop_assert_eq!(range.start, at);
            prop_assert!(range.start < range.end);
            at = range.end;
        }
        prop_assert_eq!(at, text.len());
        for range in template.problems.iter().map(|problem| &problem.range).chain(template.reads.iter().map(|read| &read.range)) {
            prop_assert!(text.get(range.clone()).is_some());
        }
        for fix in template.problems.iter().filter_map(|problem| problem.fix.as_ref()) {
            prop_assert!(text.get(fix.range.clone()).is_some());
        }
        // What is found good is what minijinja compiles.
        if template.problems.is_empty() {
            let source: String = template.parts.iter().map(|part| match part {
                Part::Text(range) | Part::Logic(range) => &text[range.clone()],
                Part::Escape(_) => "",
                Part::Directive(_) => "{{ directive(0) }}",
            }).collect();
            if !source.contains("{{{") {
                prop_assert!(minijinja::Environment::new().template_from_str(&source).is_ok(), "{}", source);
            }
        }
    }

    #[test]
    fn any_condition_is_read(pieces in prop::collection::vec(piece(), 0..30)) {
        let text = pieces.concat();
        let expression = expression(&text);
        for problem in &expression.problems {
            prop_assert!(text.get(problem.range.clone()).is_some());
        }
        if expression.problems.is_empty() {
            prop_assert!(minijinja::Environment::new().compile_expression(&text).is_ok());
        }
    }
}
