//! Tests of the whole front end: text in, a tree in short form and annotated problems out.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::source::{FileId, Span};

const FILE: FileId = FileId::new(0);

fn read(text: &str) -> Tree {
    parse(text, FILE)
}

/// A tree on one line: `name arg key=value { child }`, with `!` behind what is broken.
fn short(nodes: &[Node]) -> String {
    nodes.iter().map(short_node).collect::<Vec<_>>().join("; ")
}

fn short_node(node: &Node) -> String {
    let annotation = |name: &Option<Box<Name>>| name.as_ref().map_or(String::new(), |name| format!("({})", name.text));
    let mut line = annotation(&node.annotation) + &node.name.text;
    for entry in &node.entries {
        let key = entry.name.as_ref().map_or(String::new(), |name| format!("{}=", name.text));
        line += &format!(" {key}{}{}", annotation(&entry.annotation), short_value(&entry.value.kind));
    }
    if let Some(block) = &node.children {
        line += &format!(" {{{}{}", short(&block.nodes), if block.close.is_some() { "}" } else { "" });
    }
    line + if node.broken { "!" } else { "" }
}

fn short_value(kind: &ValueKind) -> String {
    match kind {
        ValueKind::String(text) if text.is_bare() => text.as_str().to_owned(),
        ValueKind::String(text) => format!("{:?}", text.as_str()),
        ValueKind::Number(number) => format!("n{}", number.as_str()),
        ValueKind::Bool(value) => format!("#{value}"),
        ValueKind::Null => "#null".to_owned(),
        ValueKind::Missing => "?".to_owned(),
    }
}

/// Each problem as `text it points at: message | help | fix`.
fn told(text: &str) -> Vec<String> {
    let at = |span: Span| text[span.range()].replace('\n', "⏎");
    read(text)
        .problems
        .iter()
        .map(|problem| {
            let help = problem.help.as_ref().map_or(String::new(), |help| format!(" | {help}"));
            let fix = problem.fix.as_ref().map_or(String::new(), |fix| {
                let (before, after) = (&text[..fix.span.start as usize], &text[fix.span.end as usize..]);
                let mark = if fix.certain { "=>" } else { "~>" };
                format!(" {mark} {}", format!("{before}{}{after}", fix.replacement).replace('\n', "⏎"))
            });
            let second =
                problem.second.as_ref().map_or(String::new(), |(span, label)| format!(" | `{}`: {label}", at(*span)));
            format!("`{}`: {}{second}{help}{fix}", at(problem.span), problem.message)
        })
        .collect()
}

fn check(text: &str, tree: &str, problems: &[&str]) {
    assert_eq!(short(&read(text).nodes), tree, "the tree of {text:?}");
    assert_eq!(told(text), problems, "the problems of {text:?}");
}

#[test]
fn every_form_of_value_is_read() {
    check(r##"a b c=1 (t)"q\n" #"r\"# { d #true; e #null }"##, r##"a b c=n1 (t)"q\n" "r\\" {d #true; e #null}"##, &[]);
}

#[test]
fn nodes_know_their_comments() {
    let text = "// far\n\n// one\n/* two */\na 1 // behind\nb { // of b\n  // above c\n  c\n}\n// of nothing\n\nd";
    let tree = read(text);
    let comments = |node: &Node| node.comments.iter().map(|&span| text[span.range()].to_owned()).collect::<Vec<_>>();
    let trailing = |node: &Node| node.trailing.map(|span| text[span.range()].to_owned());
    let [a, b, d] = &tree.nodes[..] else { panic!("three nodes: {tree:?}") };
    assert_eq!(comments(a), ["// one", "/* two */"]);
    assert_eq!(trailing(a).as_deref(), Some("// behind"));
    assert_eq!((comments(b).len(), trailing(b).as_deref()), (0, Some("// of b")));
    assert_eq!(comments(&b.children()[0]), ["// above c"]);
    assert_eq!((comments(d).len(), trailing(d)), (0, None));
}

#[test]
fn what_is_written_for_kdl_1_is_read_and_rewritten() {
    check(
        r##"a true x=false null r"b\" r#"c"d"#"##,
        r##"a #true x=#false #null "b\\" "c\"d""##,
        &[
            r##"`true`: `true` is written `#true` | write `#true`, or `"true"` for the word => a #true x=false null r"b\" r#"c"d"#"##,
            r##"`false`: `false` is written `#false` | write `#false`, or `"false"` for the word => a true x=#false null r"b\" r#"c"d"#"##,
            r##"`null`: `null` is written `#null` | write `#null`, or `"null"` for the word => a true x=false #null r"b\" r#"c"d"#"##,
            r##"`r"`: `r"…"` is a raw string of KDL 1 | write `#"…"#` => a true x=false null #"b\"# r#"c"d"#"##,
            r##"`r#"`: `r"…"` is a raw string of KDL 1 | write `#"…"#` => a true x=false null r"b\" #"c"d"#"##,
        ],
    );
    assert!(read("a true").problems.iter().all(|problem| problem.kind == ProblemKind::V1Literal));
}

#[test]
fn texts_that_need_quotes_get_them() {
    check(
        "timeout 20m lines=1-40",
        "timeout 20m lines=1-40",
        &[
            "`20m`: `20m` is not a number, and as a text it needs quotes | write `\"20m\"` => timeout \"20m\" lines=1-40",
            "`1-40`: `1-40` is not a number, and as a text it needs quotes | write `\"1-40\"` => timeout 20m lines=\"1-40\"",
        ],
    );
    check(
        "files ./x src/** file=a/b.md",
        "files ./x src/** file=a/b.md",
        &[
            "`./x`: `./x` has a `/`, and so it needs quotes | write `\"./x\"` => files \"./x\" src/** file=a/b.md",
            "`src/**`: `src/**` has a `/`, and so it needs quotes | write `\"src/**\"` => files ./x \"src/**\" file=a/b.md",
            "`a/b.md`: `a/b.md` has a `/`, and so it needs quotes | write `\"a/b.md\"` => files ./x src/** file=\"a/b.md\"",
        ],
    );
    check(
        r#"a C:\x"#,
        r#"a C:\x"#,
        &[r##"`C:\x`: `\` may not stand in a bare word: `C:\x` needs quotes | write `#"C:\x"#` => a #"C:\x"#"##],
    );
}

#[test]
fn directives_that_are_escaped_for_another_notation_are_told() {
    check(
        r#"prompt "say \<<x>> and \d""#,
        r#"prompt "say \\<<x>> and \\d""#,
        &[
            r##"`\<<`: `\<<` is not an escape in a quoted string | write `\\<<`, or a raw string `#"…"#` with `\<<` in it => prompt "say \\<<x>> and \d""##,
            r##"`\d`: `\d` is not an escape | write `\\d` for a backslash, or a raw string `#"…"#` ~> prompt "say \<<x>> and \\d""##,
        ],
    );
}

#[test]
fn an_equals_sign_behind_the_name_of_a_node_is_removed() {
    for text in ["x = 3", "x=3", "x= 3"] {
        let told = told(text);
        assert_eq!(short(&read(text).nodes), "x n3");
        assert!(
            matches!(&told[..], [one] if one.starts_with("`=`: the values of `x` follow it without `=` | write `x VALUE` =>")),
            "{told:?}"
        );
    }
}

#[test]
fn a_missing_brace_is_found_by_indentation() {
    let help = "write `}` where the block ends ~> ";
    check(
        "p {\n    a {\n        x\n    b {\n        y\n    }\n}\nz",
        "p {a {x; b {y}}; z",
        &[&format!(
            "``: the block of `a` has no closing `}}` | `{{`: the block starts here | {help}p {{⏎    a {{⏎        x⏎    }}⏎    b {{⏎        y⏎    }}⏎}}⏎z"
        )],
    );
    check(
        "p {\n    a {\n        x\n}\nz",
        "p {a {x}; z",
        &[&format!(
            "``: the block of `a` has no closing `}}` | `{{`: the block starts here | {help}p {{⏎    a {{⏎        x⏎    }}⏎}}⏎z"
        )],
    );
}

#[test]
fn a_brace_too_many_is_found_by_indentation() {
    check(
        "p {\n    a {\n    }\n    }\n    b\n}\nz",
        "p {a {}; b}; z",
        &["`}`: this `}` closes nothing | remove it, or add the `{` it belongs to ~> p {⏎    a {⏎    }⏎    ⏎    b⏎}⏎z"],
    );
}

#[test]
fn a_string_without_end_stops_at_its_line() {
    check(
        "task x { prompt \"abc }\ny",
        "task x {prompt \"abc\"!}; y",
        &["`\"`: this string has no closing `\"` | write `\"` where the text ends ~> task x { prompt \"abc\" }⏎y"],
    );
    check(
        "a \"\"\"\n  one\n  two\nb",
        "a \"\\n  one\\n  two\"!; b",
        &["`\"\"\"`: this string has no closing `\"\"\"` | write `\"\"\"` on a line of its own behind the text"],
    );
    check(
        "a \"one\ntwo\" b",
        "a \"one\\ntwo\" b",
        &[
            "`\"one`: a string between single quotes ends on its line | `\"`: up to here | write `\"\"\"`, then the text on lines of its own, then `\"\"\"` on a line of its own ~> a \"\"\"⏎one⏎two⏎\"\"\" b",
        ],
    );
}

#[test]
fn habits_of_other_notations_are_told_once() {
    let one = |text: &str, tree: &str, start: &str| {
        let told = told(text);
        assert!(matches!(&told[..], [one] if one.starts_with(start)), "{text}: {told:#?}");
        assert_eq!(short(&read(text).nodes), tree, "{text}");
    };
    one("name: x", "name x", "`:`: `name` is written without `:` | write `name VALUE`");
    one("agent a provider: b", "agent a provider: b", "`:`: a property is written `provider=VALUE`");
    one("- item", "- item!", "`-`: a list is not written with `-`");
    one("a 'b'", "a b", "`'b'`: a text is quoted with `\"`, not with single quotes | write `\"b\"` => a \"b\"");
    one(
        "a 'b c' d",
        "a 'b c' d",
        "`'b c'`: a text is quoted with `\"`, not with single quotes | write `\"b c\"` => a \"b c\" d",
    );
    one("a “b c”", "a “b c”", "`“b c”`: a text is quoted with `\"`, not with typographic quotes | write `\"b c\"`");
    one("a b, c, d", "a b c d", "`,`: values are separated by spaces, not by commas");
    one("a 1, 2", "a n1 n2", "`,`: values are separated by spaces, not by commas");
    one(
        "a \"b\", c",
        "a \"b\" c",
        "`,`: values are separated by spaces, not by commas | remove the comma => a \"b\" c",
    );
    one("a [b, \"c\", 1]", "a b \"c\" n1", "`[b, \"c\", 1]`: a list is written without brackets and commas");
    one("run b [cd]*", "run b \"[cd]*\"", "`[cd]*`: `[cd]*` has brackets, and so it needs quotes | write `\"[cd]*\"`");
    one("run b [c, d]", "run b c d", "`[c, d]`: a list is written without brackets and commas");
    one("run [ c ]", "run c", "`[`: a bracket needs quotes where it is a word of a command");
    let list = "`[\"b c\" \"d\"]`: a list is written as an expression, in quotes | write `\"['b c', 'd']\"` ~> \
                for-each \"['b c', 'd']\"";
    one("for-each [\"b c\" \"d\"]", "for-each \"['b c', 'd']\"", list);
    let list = "`[b, 1]`: a list is written as an expression, in quotes | write `\"['b', 1]\"`";
    one("for-each [b, 1]", "for-each \"['b', 1]\"", list);
    one("a http://x.y/z", "a http:", "`http://x.y/z`: an address needs quotes: `//` starts a comment");
    one("a src/**/*.rs", "a src *.rs", "`src/**/*.rs`: `src/**/*.rs` needs quotes");
    one("# note\na", "a", "`#`: a comment starts with `//` | write `//` => // note⏎a");
    one("a\n{\n}", "a {}", "`{`: the block of `a` starts on another line");
}

#[test]
fn one_mistake_is_one_problem() {
    for text in [
        ")",
        "a )",
        "]",
        "a ]",
        "a {\n}}",
        "a;;b",
        "a k=",
        "a k=\nb",
        "a {} b",
        "a {} {}",
        "(x y)a",
        "()a",
        "a ()1",
        "a \"b",
        "a #yes",
        "a\u{0}b",
        "a \u{200E}b",
        "a /*",
        "a /-",
        "/-",
        "a { b /- }",
        "a {",
        "{ a }",
        "a \"x\"\"y\"",
        "a b\"c\"",
        "a #\"b",
        "a #\"\"\"\nb",
        "a \"\\u{110000}\"",
        "a \"\\u{zz}\"",
        "a true=1",
        "a 1=2",
        "a (t)b=1",
        "a \"\"\"b\"\"\"",
        "a \"\"\"\n b\"\"\"",
        "a \"\"\"\n b\n  \"\"\"",
        "a b=/-c",
        "a/-b",
        "a 0x",
        "a 1.",
        "a .5",
        "a inf",
        "#true",
        "true",
        "1",
        "a /- /- b",
        "\\ a",
        "a \\ b",
        "a==b",
        "a b==c",
        "a b = = c",
    ] {
        assert_eq!(told(text).len(), 1, "{text:?}: {:#?}", told(text));
    }
}

#[test]
fn text_in_another_encoding_is_told_in_one_problem() {
    let wide: String = "task a {\n}\n".chars().flat_map(|character| [character, '\0']).collect();
    assert_eq!(told(&wide), ["``: this file is not UTF-8: it looks like UTF-16 | save it as UTF-8"]);
    let wide: String = "\u{FEFF}task".chars().flat_map(|character| ['\0', character]).skip(1).collect();
    assert_eq!(told(&wide).len(), 1);
}

#[test]
fn limits_stop_the_reading() {
    let limited = |text: &str, message: &str| {
        let tree = read(text);
        assert!(tree.nodes.is_empty());
        assert_eq!(tree.problems.len(), 1);
        assert_eq!((tree.problems[0].kind, &*tree.problems[0].message), (ProblemKind::Limit, message));
        assert_eq!(tree.tokens.last().map(|token| token.end as usize), Some(text.len()));
    };
    limited(&"a{".repeat(20_000), "blocks nest deeper than 128");
    limited(&"/*".repeat(30_000), "comments nest deeper than 64");
    limited(&" ".repeat(16 * 1024 * 1024 + 1), "this file has 17 MiB; at most 16 MiB are read");
    assert!(read(&("a{".repeat(128) + &"}".repeat(128))).problems.is_empty());
    assert!(read(&("/*".repeat(64) + &"*/".repeat(64))).problems.is_empty());
    let end = read(&"}".repeat(20_000));
    assert_eq!((end.problems.len(), &*end.problems[0].message), (1, "these `}` close nothing"));
}

/// Texts of the characters and words that mean something, in which most mistakes occur.
fn texts() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "a",
        "b ",
        " ",
        "\n",
        "\n  ",
        "{",
        "}",
        "\"",
        "\"\"\"",
        "\\",
        "#",
        "/-",
        "/*",
        "*/",
        "//",
        "=",
        ";",
        "(",
        ")",
        "[",
        "]",
        "1",
        ".",
        ",",
        "'",
        "é",
        "\u{A0}",
        "\u{2028}",
        "\u{0}",
        "\r\n",
        "\r",
        "true",
        "r\"",
        "x=1 ",
        "\"s\" ",
        "\\u{41}",
        "\\n",
        "a {\n  b 1\n}\n",
        "c \"\"\"\n  x\n  \"\"\"\n",
        "d \"\\t<<é\"\n",
        "# ",
        "-",
        ": ",
        "\u{FEFF}",
        "😀",
    ]);
    prop::collection::vec(parts, 0..40).prop_map(|parts| parts.concat())
}

/// Every text of a tree.
fn strings<'t>(nodes: &'t [Node], found: &mut Vec<&'t Text>) {
    for node in nodes {
        for entry in &node.entries {
            if let ValueKind::String(text) = &entry.value.kind {
                found.push(text);
            }
        }
        strings(node.children(), found);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn tokens_cover_every_text(text in texts()) {
        let tree = read(&text);
        let mut end = 0;
        for token in &tree.tokens {
            prop_assert!(token.end > end, "tokens are not empty");
            prop_assert!(text.is_char_boundary(token.end as usize));
            end = token.end;
        }
        prop_assert_eq!(end as usize, text.len());
        prop_assert!(tree.problems.is_sorted_by_key(|problem| problem.span.start));
        for problem in &tree.problems {
            prop_assert!(text.get(problem.span.range()).is_some(), "{:?}", problem);
            prop_assert!(problem.second.iter().all(|(span, _)| text.get(span.range()).is_some()), "{:?}", problem);
            prop_assert!(problem.fix.iter().all(|fix| text.get(fix.span.range()).is_some()), "{:?}", problem);
        }
    }

    #[test]
    fn every_stretch_of_a_string_has_its_place(text in texts()) {
        let tree = read(&text);
        let mut found = Vec::new();
        strings(&tree.nodes, &mut found);
        for string in found {
            let ends: Vec<usize> = string.as_str().char_indices().map(|(at, _)| at).chain([string.as_str().len()]).collect();
            for (index, &start) in ends.iter().enumerate() {
                for &end in &ends[index..] {
                    let span = string.span(start..end);
                    prop_assert!(span.start <= span.end && text.get(span.range()).is_some(), "{:?} {}..{}", string, start, end);
                }
                if let Some(&next) = ends.get(index + 1) {
                    let (value, source) = (&string.as_str()[start..next], &text[string.span(start..next).range()]);
                    // What was made of the whole leads back to it.
                    let is_made = *source == text[string.outer_span().range()];
                    prop_assert!(is_made || source == value || source.starts_with('\\') || value == "\n", "{:?} is {:?}", value, source);
                }
            }
        }
    }

    #[test]
    fn certain_fixes_mend_what_they_are_for(text in texts()) {
        for problem in read(&text).problems {
            let Some(fix) = problem.fix.filter(|fix| fix.certain) else { continue };
            let mended = format!("{}{}{}", &text[..fix.span.start as usize], fix.replacement, &text[fix.span.end as usize..]);
            let again = read(&mended).problems.iter().any(|other| {
                other.span.start == problem.span.start && other.message == problem.message && other.span == problem.span
            });
            prop_assert!(!again || mended.len() < text.len(), "{:?} stays in {:?}", problem.message, mended);
        }
    }

    #[test]
    fn reading_a_part_again_is_reading_all_again(text in texts(), at in any::<prop::sample::Index>(), length in 0..6usize, new in texts()) {
        edit(&text, at, length, &new)?;
    }

    #[test]
    fn so_it_is_within_blocks(text in blocks(), at in any::<prop::sample::Index>(), length in 0..6usize, new in texts()) {
        edit(&text, at, length, &new)?;
        edit(&text, at, 0, "x")?;
    }
}

/// Lines within blocks within blocks, most of them right.
fn blocks() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "a 1\n",
        "  b \"s\" // c\n",
        "// above\n",
        "\n",
        "/-c 1\n",
        "d; e\n",
        "f \"\"\"\n  x\n  \"\"\"\n",
        "g \\\n  1\n",
        "h { i 1 }\r\n",
        "j /* k */\n",
        "l { // m\n}\n",
        "n 'x'\n",
    ]);
    let lines = prop::collection::vec(line, 0..6).prop_map(|lines| lines.concat());
    lines.clone().prop_recursive(3, 24, 4, move |inner| {
        let open = prop::sample::select(vec!["o {\n", "  p 1 { // q\n", "r {; s\n", "/-t {\n", "u /- {\n} {\n"]);
        let close = prop::sample::select(vec!["}\n", "  } // v\n", "}; w\n"]);
        let block = (lines.clone(), open, inner, close);
        prop::collection::vec(block, 0..4).prop_map(|blocks| {
            blocks.iter().map(|(lines, open, inner, close)| format!("{lines}{open}{inner}{close}")).collect()
        })
    })
}

#[test]
fn single_quotes_end_at_every_line_break() {
    for line_break in ["\n", "\r", "\u{85}", "\u{b}", "\u{c}", "\u{2028}", "\u{2029}"] {
        let text = format!("a 'b{line_break}c'\n");
        assert!(read(&text).problems.iter().all(|problem| problem.span.end <= 4), "{line_break:?}");
    }
}

/// Makes an edit, and holds the tree that comes of the old one against that of the new text.
fn edit(text: &str, at: prop::sample::Index, length: usize, new: &str) -> Result<(), TestCaseError> {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let first = at.index(ends.len());
    let (start, end) = (ends[first], ends[(first + length).min(ends.len() - 1)]);
    let new = new.chars().take(12).collect::<String>();
    let edited = format!("{}{new}{}", &text[..start], &text[end..]);
    let (old, range) = (Arc::new(read(text)), start..end);
    let shared = Arc::clone(&old);
    prop_assert_eq!(reparse(shared, &edited, FILE, range.clone(), new.len()), read(&edited));
    prop_assert_eq!(&*old, &read(text), "the old tree does not change");
    prop_assert_eq!(reparse(old, &edited, FILE, range, new.len()), read(&edited));
    Ok(())
}
