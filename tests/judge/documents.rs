//! Documents to compare parsers with: generated ones with every kind of white space, string, number and comment, and mutations.

use proptest::prelude::*;
use proptest::sample::select;

/// A document.
pub(super) fn document() -> impl Strategy<Value = String> {
    (select(vec!["", "\u{FEFF}", "\n", "// first\n", "/* a */ "]), nodes(2))
        .prop_map(|(start, nodes)| start.to_owned() + &nodes)
}

fn nodes(depth: u32) -> BoxedStrategy<String> {
    prop::collection::vec((between(), node(depth), terminator()), 0..3)
        .prop_map(|nodes| {
            // The crate takes no `;` behind a node that is commented out.
            let end = |node: &str, after: String| if node.starts_with("/-") { "\n".to_owned() } else { after };
            nodes.into_iter().map(|(before, node, after)| format!("{before}{node}{}", end(&node, after))).collect()
        })
        .boxed()
}

fn node(depth: u32) -> BoxedStrategy<String> {
    let dash = prop_oneof![12 => Just(""), 1 => Just("/-"), 1 => Just("/- \n")];
    let block = if depth == 0 {
        Just(String::new()).boxed()
    } else {
        let full = nodes(depth - 1).prop_map(|inner| format!(" {{\n{inner}}}"));
        let hidden = nodes(depth - 1).prop_map(|inner| format!(" /-{{\n{inner}}} {{ }}"));
        prop_oneof![4 => Just(String::new()), 4 => full, 1 => hidden].boxed()
    };
    let entries = prop::collection::vec((space(), entry()), 0..3)
        .prop_map(|entries| entries.into_iter().map(|(space, entry)| space + &entry).collect::<String>());
    (dash, annotation(), string(), entries, block)
        .prop_map(|(dash, annotation, name, entries, block)| format!("{dash}{annotation}{name}{entries}{block}"))
        .boxed()
}

fn entry() -> impl Strategy<Value = String> {
    let dash = prop_oneof![12 => Just(""), 1 => Just("/-"), 1 => Just("/-\n ")];
    let equals = select(vec!["=", "=", "=", " =", "= ", " /* e */ = "]);
    let key = prop_oneof![2 => Just(String::new()), 1 => (string(), equals).prop_map(|(key, equals)| key + equals)];
    (dash, key, annotation(), value())
        .prop_map(|(dash, key, annotation, value)| format!("{dash}{key}{annotation}{value}"))
}

fn annotation() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just(String::new()),
        1 => string().prop_map(|name| format!("({name})")),
        1 => string().prop_map(|name| format!("( {name} /* t */) ")),
    ]
}

fn value() -> impl Strategy<Value = String> {
    let keywords = select(vec!["#true", "#false", "#null", "#inf", "#-inf", "#nan"]).prop_map(str::to_owned);
    let numbers = prop_oneof![
        "[-+]?[0-9][0-9_]{0,6}",
        "[-+]?[0-9][0-9_]{0,3}\\.[0-9][0-9_]{0,3}([eE][-+]?[0-9]{1,2})?",
        "[-+]?0x[0-9a-fA-F][0-9a-fA-F_]{0,6}",
        "[-+]?0o[0-7][0-7_]{0,6}",
        "[-+]?0b[01][01_]{0,6}",
    ];
    prop_oneof![4 => string(), 2 => numbers, 1 => keywords]
}

fn string() -> impl Strategy<Value = String> {
    let words =
        prop_oneof!["[a-z_][a-z0-9_.?-]{0,6}", "[-+]", "[-+.][a-z][a-z0-9]{0,3}", "[a-z<>|~&é漢😀]{1,4}[0-9]{0,2}"]
            .prop_filter("words of the language", |word| {
                !matches!(&**word, "true" | "false" | "null" | "inf" | "-inf" | "nan" | "r")
            });
    let escapes = select(vec![
        "\\n",
        "\\t",
        "\\r",
        "\\s",
        "\\b",
        "\\f",
        "\\\\",
        "\\\"",
        "\\u{e9}",
        "\\u{1F600}",
        "\\   ",
        "\\\n  ",
        "a",
        " ",
        "é",
        "#",
        "'",
        "{",
        "}",
    ]);
    let quoted = prop::collection::vec(escapes, 0..6).prop_map(|parts| format!("\"{}\"", parts.concat()));
    let raw = "[a-z\\\\ é#{}]{0,6}".prop_map(|body| format!("##\"{body}\"##"));
    let line = select(vec![
        "",
        "text",
        "  deeper",
        "\\n x",
        "a \\\n   b",
        "two words",
        "\"",
        "\"\" q",
        "é\\u{e9}",
        "\\s",
        "   ",
    ]);
    let indent = select(vec!["", "  ", "\t", "    "]);
    let newline = select(vec!["\n", "\n", "\n", "\r\n"]);
    let lines = (prop::collection::vec(line, 0..4), indent, newline).prop_map(|(lines, indent, newline)| {
        let lines = lines.iter().map(|line| format!("{indent}{line}{newline}")).collect::<String>();
        format!("\"\"\"{newline}{lines}{indent}\"\"\"")
    });
    let raw_line = select(vec!["", "text", "  deeper", "\\n", "\"\"\"", "\"", "\"#", "é"]);
    let raw_lines =
        (prop::collection::vec(raw_line, 0..4), select(vec!["", "  ", "\t"])).prop_map(|(lines, indent)| {
            let lines = lines.iter().map(|line| format!("{indent}{line}\n")).collect::<String>();
            format!("##\"\"\"\n{lines}{indent}\"\"\"##")
        });
    prop_oneof![6 => words, 2 => quoted, 1 => raw, 1 => lines, 1 => raw_lines]
}

fn space() -> impl Strategy<Value = String> {
    select(vec![
        " ",
        " ",
        " ",
        " ",
        "\t",
        "  ",
        " /* c */ ",
        "/* /* n */ */",
        " \\\n  ",
        " \\ // c\n",
        "\u{A0}",
        "\u{3000}",
    ])
    .prop_map(str::to_owned)
}

fn between() -> impl Strategy<Value = String> {
    select(vec!["", "", "  ", "\n", "// c\n", "/* c */", "\\\n", "\r\n", "\u{85}", "\u{2028}", "\t"])
        .prop_map(str::to_owned)
}

fn terminator() -> impl Strategy<Value = String> {
    select(vec!["\n", "\n", "\n", ";", " ;", "// end\n", "\r\n", " /* c */\n", "\u{2029}", "\u{C}"])
        .prop_map(str::to_owned)
}

/// Some texts that differ from a text in one place: a character is missing, doubled, put in, replaced, or the end is missing.
pub(super) fn mutations(text: &str, count: usize) -> Vec<String> {
    const MARKS: &[&str] = &[
        "\"", "\\", "\n", " ", "{", "}", "(", ")", "=", "/", "-", "#", ";", "*", "1", ".", "a", ",", "'", "\u{7F}",
        "\u{FEFF}", "\"\"\"", "/-", "/*", "*/", "//", "_", "é", "\u{2028}", "[", "]", "r", "0x", "true", "\t", ":",
    ];
    // A generator of numbers that depends on the text alone, so that every run sees the same mutations.
    let mut state = text
        .bytes()
        .fold(0x9E37_79B9_7F4A_7C15_u64, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
    let mut below = move |limit: usize| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        usize::try_from(state >> 33).unwrap_or(0) % limit.max(1)
    };
    let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut mutations = Vec::new();
    for _ in 0..count {
        let at = boundaries[below(boundaries.len())];
        let (before, after) = text.split_at(at);
        let first = after.chars().next().map_or("", |first| &after[..first.len_utf8()]);
        let rest = &after[first.len()..];
        let mark = MARKS[below(MARKS.len())];
        mutations.push(match below(6) {
            0 => format!("{before}{rest}"),
            1 => format!("{before}{first}{after}"),
            2 => before.to_owned(),
            3 => format!("{before}{mark}{rest}"),
            _ => format!("{before}{mark}{after}"),
        });
    }
    mutations
}
