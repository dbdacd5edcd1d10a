//! Expressions, statements and conditions: what they read, guard and prove, and what is wrong with them.

use super::*;

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
fn a_text_may_use_the_word_of_a_root_for_a_name_of_its_own() {
    check_reads("{{ item.id }} {{ index + 1 }}", "item.id, index");
    check_reads("{% for item in output.a %}{{ item.id }}{% endfor %}{{ item }}", "output.a, item");
    check_reads("{% for item in item.parts %}{{ item.id }}{% endfor %}", "item.parts");
    check_reads("{% set plan = output.a %}{{ plan.steps }}", "output.a");
    check_problems("{% set output = 1 %}", &["SW209 at \"output\": `output` is taken"]);
    check_reads("{{ output.work_plan }}", "output.work_plan");
    check_problems(
        "{{ output.work-plan }}",
        &["SW209 at \"work-plan\": `output.work-plan` is a subtraction -> {{ output.work_plan }}"],
    );
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
    check_reads("{{ output.x.f | default('none') }}", "output.x.f?");
    check_reads("{% if output.x.f is defined %}<<output:x>>{% endif %}", "output.x.f?, output.x? if output.x.f");
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
    for later in ["iteration > 1", "1 < iteration", "iteration >= 2", "iteration != 1", "not (iteration <= 1)"] {
        check_condition(later, "iteration proves repeated");
    }
    check_condition("iteration % 2 == 0", "iteration proves repeated");
    for any in ["iteration > 0", "iteration >= 1", "iteration < 3", "iteration == 1", "iteration % 2 == 1"] {
        check_condition(any, "iteration proves ");
    }
    check_condition("iteration in [2, 4] or iteration == 3", "iteration, iteration? if iteration proves repeated");
    check_condition("iteration in [1, 4] or iteration == 3", "iteration, iteration? if iteration + repeated proves ");
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
    check_problems("{{ entry }}", &["SW209 at \"entry\": unknown name `entry`"]);
    check_problems("{{ output.x // 0 }}", &["SW209 at \"0\": a division by zero has no value"]);
    check_problems("{{ output.x % -0.0 }}", &["SW209 at \"-0.0\": a division by zero has no value"]);
    check_problems("{{ 0 / output.x }} {{ output.x * 0 }}", &[]);
    check_problems("{{ output.x | json }} {{ output.x | tojson(indent=2) }} <<output:x | tojson>>", &[]);
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
        &["SW209 at \"a\": `a` is not set on every way here -> \
           {% if param.x %}{% set a = 1 %}{% endif %}{{ a | default('') }}"],
    );
    check_problems("{% set output = 1 %}", &["SW209 at \"output\": `output` is taken"]);
    check_problems("{% set directive = 1 %}", &["SW209 at \"directive\": `directive` is taken"]);
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
    check_condition_problems("output.x = 1", &["SW209 at \"=\": unexpected input after expression -> output.x == 1"]);
    check_condition_problems("param.a && param.b", &["SW209 at \"&\": unexpected character -> param.a and param.b"]);
    check_condition_problems(
        "param.a || param.b",
        &["SW209 at \"|\": unexpected `|`, expected identifier -> param.a or param.b"],
    );
    check_condition_problems("!param.a", &["SW209 at \"!\": unexpected character -> not param.a"]);
    check_condition_problems("output.x }} a", &["SW209 at \"}}\": `}}` does not belong here"]);
}

#[test]
fn what_broken_logic_guards_is_not_held_against_the_text() {
    assert_eq!(reads(&scan("{% if %}<<output:x>>{% endif %}").reads), "output.x?");
    assert_eq!(reads(&scan("{{ y <<output:x>>").reads), "output.x?");
}

#[test]
fn what_constants_alone_make_too_large_is_reported() {
    let huge = "SW204 at \"'ab' * 1000000\": a constant of more than 1000000 characters or items";
    check_condition_problems("'ab' * 1000000 == output.x", &[&huge.replace("SW204", Code::TemplateError.id())]);
    for source in
        ["[0] * 1000 * 1000 * 1000", "2 ** 40 * 'x'", "['x' * 500000, 'y' * 500001]", "'x' * 999999 ~ 'x' * 2"]
    {
        assert_eq!(parse_expression(source).problems.len(), 1, "{source}");
    }
    for source in ["'-' * 80 * output.x", "'x' * 999 * 999", "[0] * 1000 + [1]", "'x' * (0 - 5)", "2 ** 100"] {
        assert_eq!(problems(source, &parse_expression(source).problems), Vec::<String>::new(), "{source}");
    }
    for source in ["output.x is divisibleby(0)", "[1, 2] | select('divisibleby', 0) | list == output.x"] {
        let zero = format!("{} at \"0\": a division by zero has no value", Code::TemplateError.id());
        check_condition_problems(source, &[&zero]);
    }
}

#[test]
fn conditions_say_which_numbers_are_not_zero() {
    let nonzero = |condition: &str| {
        let facts = parse_expression(condition).proves.into_iter().filter_map(|fact| match fact {
            Fact::NonZero(spelling) => Some(spelling.to_string()),
            _ => None,
        });
        facts.collect::<Vec<_>>().join(" ")
    };
    for (condition, expected) in [
        ("output.n != 0", "output.n"),
        ("0 < output.n", "output.n"),
        ("output.n < 0 and param.m == 3", "output.n param.m"),
        ("output.n >= 0", ""),
        ("output.n > 0 or output.m > 0", ""),
        ("not (output.n == 0 or output.m == 0)", "output.n output.m"),
        ("output.l | length > 0", "output.l|length"),
        ("output.n in [1, 2]", "output.n"),
        ("output.n not in [0, 1]", "output.n"),
        ("output.n in [0, 1]", ""),
        ("1 <= output.n < 9", "output.n"),
        ("output.n != 1", ""),
    ] {
        assert_eq!(nonzero(condition), expected, "{condition}");
    }
}
