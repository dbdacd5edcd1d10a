//! Any text at all: covered, bounded in depth and time; and the lists that follow minijinja.

use proptest::prelude::*;

use super::*;

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
    let many = 5_000;
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
            assert!(!parse_expression(&condition).problems.is_empty());
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
    let own = |(name, ..): &&applied::Applied| applied::OWN_FILTERS.contains(name);
    for (name, usage, doc, ..) in applied::FILTERS.iter().chain(applied::TESTS) {
        assert!(usage.split(['(', '[']).next() == Some(*name) && doc.ends_with('.'), "{usage}: {doc}");
    }
    for (name, ..) in applied::FILTERS.iter().filter(|filter| !own(filter)) {
        assert!(holds(format!("'{name}' is filter")), "filter {name}");
    }
    for (name, ..) in applied::TESTS {
        assert!(holds(format!("'{name}' is test")), "test {name}");
    }
    let globals: Vec<&str> = environment.globals().map(|(name, _)| name).collect();
    assert_eq!(globals, names::FUNCTIONS);
}

#[test]
fn arguments_are_needed_where_minijinja_needs_them() {
    let environment = minijinja::Environment::new();
    let lacks = |source: &str| {
        let result = environment.compile_expression(source).and_then(|compiled| compiled.eval(()));
        result.is_err_and(|error| error.kind() == minijinja::ErrorKind::MissingArgument)
    };
    let check = |what: &str, name: &str, needs: usize| {
        for given in 0..=2 {
            let arguments = vec!["1"; given].join(", ");
            let source =
                format!("[1] {what} {name}{}", if given == 0 { String::new() } else { format!("({arguments})") });
            assert_eq!(lacks(&source), given < needs, "{source}");
        }
    };
    let own = |(name, ..): &&applied::Applied| applied::OWN_FILTERS.contains(name);
    let theirs = applied::FILTERS.iter().filter(|filter| !own(filter));
    theirs.for_each(|filter| check("|", filter.0, applied::count_required(filter)));
    applied::TESTS.iter().for_each(|test| check("is", test.0, applied::count_required(test)));
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
                Part::Text(range) | Part::Logic(range) => range.clone(),
                Part::Escape => at..at + 1,
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
                Part::Escape => "",
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
        let expression = parse_expression(&text);
        for problem in &expression.problems {
            prop_assert!(text.get(problem.range.clone()).is_some());
        }
        if expression.problems.is_empty() {
            prop_assert!(minijinja::Environment::new().compile_expression(&text).is_ok());
        }
    }
}
