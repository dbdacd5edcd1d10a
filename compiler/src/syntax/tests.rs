//! Tests of the whole front end: text in, a tree in short form and annotated problems out.

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
        ValueKind::Number(number) => format!("n{}", number.written()),
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

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in "[a\" \n{};/*#=(\\\\)r1-]{0,30}") {
        read(&text);
    }
}
