//! What an action offers, and the files after it.

use super::super::fixture::{apply_edits, parse_fixture};
use super::*;

/// The action with this title at the cursor, and what the files are after it.
fn done(text: &str, title: &str) -> (Action, String) {
    let (snapshot, path, offset) = parse_fixture(text);
    let all = list_actions(&snapshot, &path, offset..offset);
    let titles: Vec<&str> = all.iter().map(|action| action.title.as_str()).collect();
    let action = all.iter().find(|action| action.title == title).unwrap_or_else(|| panic!("{titles:?}"));
    (action.clone(), apply_edits(&snapshot, &action.edits))
}

const HEAD: &str = "workflow w\nprovider p { exec cat }\nagent a provider=p\n";

#[test]
fn a_fix_of_the_compiler_is_an_action() {
    let text = format!(
        "//- a.kdl\n{HEAD}pipeline m {{ task extract {{ run ls }}; task y {{ depends-on $0extrct; run ls }} }}\n"
    );
    let (action, text) = done(&text, "write `extract`");
    assert!(text.contains("depends-on extract;"), "{text}");
    assert_eq!((action.kind, action.preferred), (ActionKind::Fix, true));
}

#[test]
fn a_prompt_file_that_is_not_there_is_made() {
    let text = format!("//- a.kdl\n{HEAD}pipeline m {{ task x {{ prompt file=\"prompts/$0new.md\" }} }}\n");
    let (action, _) = done(&text, "create `prompts/new.md`");
    assert_eq!(action.files, [("prompts/new.md".to_owned(), String::new())]);
}

#[test]
fn a_text_goes_into_a_file_and_comes_back() {
    let text = format!("//- a.kdl\n{HEAD}pipeline m {{\n    task x {{ prompt \"Do $0it:\\nnow\" }}\n}}\n");
    let (action, spec) = done(&text, "move the text to `prompts/x.md`");
    assert_eq!(action.files, [("prompts/x.md".to_owned(), "Do it:\nnow\n".to_owned())]);
    assert!(spec.contains("task x { prompt file=\"prompts/x.md\" }"), "{spec}");
    let text = format!(
        "//- a.kdl\n{HEAD}pipeline m {{\n    task x {{\n        prompt file=\"$0x.md\"\n    }}\n}}\n//- x.md\nDo \"it\"#:\n\n<<param:a>> now\n"
    );
    let (_, spec) = done(&text, "put the text of `x.md` here");
    let written = "prompt ##\"\"\"\n            Do \"it\"#:\n\n            <<param:a>> now\n            \"\"\"##\n";
    assert!(spec.contains(written), "{spec}");
    assert!(
        swarmc_compiler::syntax::parse(&spec.replace("//- a.kdl\n", ""), swarmc_compiler::FileId::new(0))
            .problems
            .is_empty()
    );
}

#[test]
fn what_may_be_missing_gets_a_default() {
    let spec = format!(
        "//- a.kdl\n{HEAD}pipeline m {{\n    task x {{ run ls; when \"param.a\" }}\n    task y {{ depends-on x when=always; prompt file=\"y.md\" }}\n}}\nparam a type=bool\n//- y.md\n"
    );
    let (_, prompt) = done(&format!("{spec}See <<output:$0x>>.\n"), "add a default");
    assert_eq!(prompt, "//- y.md\nSee <<output:x | default:\"\">>.\n");
}

#[test]
fn a_suppression_stands_above_the_line() {
    let text = format!("//- a.kdl\n{HEAD}agent $0b provider=p\npipeline m {{ task x agent=a {{ prompt \"a\" }} }}\n");
    let (_, spec) = done(&text, "allow SW103 here, with a reason");
    assert!(spec.contains("// swarmc: allow(SW103) why\nagent b"), "{spec}");
}

#[test]
fn every_certain_fix_is_made_at_once() {
    let text = format!(
        "//- a.kdl\n$0{HEAD}pipeline m {{ fail-fast true; task x {{ run ls }}; task y {{ depends_on x; run ls }} }}\n"
    );
    let (action, spec) = done(&text, "make every certain fix");
    assert!(spec.contains("fail-fast #true") && spec.contains("depends-on x"), "{spec}");
    assert_eq!(action.kind, ActionKind::FixAll);
}

#[test]
fn another_programs_file_gets_nothing() {
    let (snapshot, path, offset) = parse_fixture("//- config.kdl\nlayout { pane $0size=true }\n");
    assert_eq!(list_actions(&snapshot, &path, offset..offset), []);
}

#[test]
fn a_default_is_escaped_as_its_string_needs() {
    let spec = |string: &str| {
        format!(
            "//- a.kdl\n{HEAD}pipeline m {{\n    task x {{ run ls; when \"param.a\" }}\n    task y {{ depends-on x when=always; prompt {string} }}\n}}\nparam a type=bool\n"
        )
    };
    let written = |string: &str, wanted: &str| {
        let (_, text) = done(&spec(string), "add a default");
        assert!(text.contains(wanted), "{text}");
    };
    written("\"<<output:$0x>>\"", "\"<<output:x | default:\\\"\\\">>\"");
    written("#\"<<output:$0x>>\"#", "#\"<<output:x | default:\"\">>\"#");
}

#[test]
fn an_agent_that_is_not_there_is_declared() {
    let spec = |head: &str, agent: &str| {
        format!("//- a.kdl\nworkflow w\n{head}pipeline m {{ task x agent={agent} {{ prompt \"x\" }} }}\n")
    };
    let check = |head: &str, title: &str, wanted: &str| {
        let (_, text) = done(&spec(head, "$0writer"), title);
        assert!(text.contains(wanted), "{text}");
    };
    let agents = "provider p { exec cat }\nagent a provider=p {\n    can write-files\n}\nprovider q { exec cat }\n";
    check(agents, "declare `agent writer provider=p`", "\n}\nagent writer provider=p\nprovider q");
    check("provider q { exec cat }\n", "declare `agent writer provider=q`", "cat }\nagent writer provider=q\npipe");
    check("", "declare `agent writer provider=claude-code`", "workflow w\nagent writer provider=claude-code\n");
    // What no agent can be called is not declared.
    let (snapshot, path, offset) = parse_fixture(&spec("", "\"$0Big Writer\""));
    let titles: Vec<String> = list_actions(&snapshot, &path, offset..offset).into_iter().map(|one| one.title).collect();
    assert!(titles.iter().all(|title| !title.starts_with("declare")), "{titles:?}");
}

#[test]
fn a_text_is_moved_from_anywhere_in_its_node() {
    let text = |prompt: &str| format!("//- a.kdl\n{HEAD}pipeline m {{\n    task x {{ {prompt} }}\n}}\n");
    let many = "prompt \"\"\"\n        Do it:\n        now$0\n        \"\"\"";
    for prompt in ["pro$0mpt \"Do it\"", "prompt $0 \"Do it\"", "prompt \"Do it\"$0", many] {
        let (action, spec) = done(&text(prompt), "move the text to `prompts/x.md`");
        assert!(spec.contains("{ prompt ") && spec.contains("file=\"prompts/x.md\" }"), "{spec}");
        assert!(action.files[0].1.starts_with("Do it"), "{:?}", action.files);
    }
    let (_, spec) = done(&(text("pro$0mpt file=\"x.md\"") + "//- x.md\nhello\n"), "put the text of `x.md` here");
    assert!(spec.contains("prompt #\"hello\"#"), "{spec}");
}
