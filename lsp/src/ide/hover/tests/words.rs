//! The words of the language: choices, presets, tools and statements of texts.

use swarmc_compiler::schema::{Kind, Node, SPEC};

use super::super::find_hover;
use super::parse_fixture;
use crate::runs::NoRuns;

/// What is shown at the cursor.
fn hover_text(text: &str) -> String {
    let (snapshot, path, offset) = parse_fixture(&format!("//- flow.kdl\n{text}\n"));
    find_hover(&snapshot, &path, offset, &NoRuns).map_or("nothing".to_owned(), |hover| hover.markdown)
}

/// Every line that gives one of the words of the table, with what the table says of it; `around` are the nodes above.
fn list_choices(home: &'static Node, around: &mut Vec<&'static Node>, found: &mut Vec<(String, String)>) {
    for known in home.children.iter().copied() {
        if around.iter().any(|node| std::ptr::eq(*node, known)) {
            continue;
        }
        let opened: String = around.iter().map(|node| format!("{} {{ ", node.name)).collect();
        let closed = " }".repeat(around.len());
        let mut add = |kind: Kind, before: &str| {
            if let Kind::Choice(words) = kind {
                for word in words {
                    let line = format!("{opened}{} {before}$0{}{closed}", known.name, word.word);
                    found.push((line, format!("`{}`: {}", word.word, word.doc)));
                }
            }
        };
        let mut before = String::new();
        for argument in known.arguments.iter().chain(&known.rest) {
            add(argument.kind, &before);
            before.push_str("x ");
        }
        known.properties.iter().for_each(|property| add(property.kind, &format!("{}=", property.name)));
        around.push(known);
        list_choices(known, around, found);
        around.pop();
    }
}

#[test]
fn every_word_that_the_table_lists_is_explained() {
    let mut found = Vec::new();
    list_choices(&SPEC, &mut Vec::new(), &mut found);
    assert!(found.len() > 150, "{}", found.len());
    for (line, doc) in found {
        let markdown = hover_text(&line);
        assert!(markdown.starts_with(&doc), "{line}: {markdown}");
    }
}

#[test]
fn presets_say_what_they_start() {
    for line in ["agent a provider=$0codex", "provider p preset=$0codex", "pipeline m { task x agent=$0codex }"] {
        let markdown = hover_text(&format!("workflow w\n{line}"));
        assert!(markdown.starts_with("```kdl\nprovider codex {"), "{line}: {markdown}");
        assert!(markdown.contains("Codex CLI (OpenAI)"), "{line}: {markdown}");
    }
}

#[test]
fn tools_say_what_they_do() {
    let tools = |tool: &str| hover_text(&format!("tool-server web url=\"http://x\"\nagent a {{ tools {tool} }}"));
    assert!(tools("file_$0list").starts_with("`file_list`: a tool of swarmc. Lists files"), "{}", tools("file_$0list"));
    assert!(tools("web $0Bash").starts_with("`Bash`: a tool that agent programs bring along."));
    assert!(tools("\"$0Bash(git:*)\"").starts_with("`Bash`: a tool"), "{}", tools("\"$0Bash(git:*)\""));
    assert!(tools("$0web").contains("tool-server web"), "{}", tools("$0web"));
    assert!(hover_text("policy { tool $0shell human }").starts_with("`shell`: a tool of swarmc."));
    assert_eq!(tools("$0mine"), "nothing");
}

#[test]
fn statements_of_texts_say_what_they_do() {
    let text =
        |text: &str| hover_text(&format!("workflow w\npipeline m {{ task x agent=codex {{ prompt #\"{text}\"# }} }}"));
    let check = |written: &str, usage: &str| {
        let markdown = text(written);
        assert!(markdown.starts_with(usage), "{written}: {markdown}");
    };
    check("{% f$0or x in [1] %}{{ x }}{% endfor %}", "`{% for ITEM in LIST %} … {% endfor %}`\n\nWrites the text once");
    check("{% for x in [1] %}{{ x }}{%- end$0for %}", "`{% for ITEM");
    check("{% if 1 %}{% el$0se %}{% endif %}", "`{% else %}`");
    check("{% $0set x = 1 %}", "`{% set NAME = VALUE %}`");
    // A name that is called so is none.
    assert_eq!(text("{{ $0raw }}"), "nothing");
}
