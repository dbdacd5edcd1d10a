//! What editors are given as data: tree-sitter queries, run over the grammars that they are for, and settings in TOML.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use toml::{Table, Value};
use tree_sitter::{Language, Parser, Query, QueryCursor, StreamingIterator};

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn kdl() -> Language {
    tree_sitter_kdl::LANGUAGE.into()
}

fn markdown() -> Language {
    tree_sitter_md::LANGUAGE.into()
}

/// What a query finds in a text: `CAPTURE: TEXT`, by place.
fn found(language: &Language, query: &str, source: &str) -> Vec<String> {
    let query = Query::new(language, &text(query)).unwrap_or_else(|error| panic!("{query}: {error}"));
    let mut parser = Parser::new();
    parser.set_language(language).expect("the grammar is one of this tree-sitter");
    let tree = parser.parse(source, None).expect("a tree");
    assert!(!tree.root_node().has_error(), "{}", tree.root_node());
    let mut cursor = QueryCursor::new();
    let mut matches = cursor.matches(&query, tree.root_node(), source.as_bytes());
    let mut found = Vec::new();
    while let Some(one) = matches.next() {
        found.extend(one.captures().iter().map(|capture| {
            let name = query.capture_names()[capture.index as usize];
            (capture.node.start_byte(), format!("{name}: {}", &source[capture.node.byte_range()]))
        }));
    }
    found.sort();
    found.dedup();
    found.into_iter().map(|(_, found)| found).collect()
}

const SPEC: &str = r##"workflow flow
// A comment.
pipeline build {
    task plan agent="coder" {
        prompt "Do {% if x %}it\nnow{% endif %}"
        timeout 5
    }
    task make {
        prompt #"Use "{{ y }}""#
        run "echo { }" shell=#true
        /-note "old"
    }
    description """
        For {{ z }}.
        """
}
"##;

#[test]
fn expressions_of_a_spec_are_injected_whole() {
    let jinja = |query: &str| found(&kdl(), query, SPEC);
    assert_eq!(
        jinja("editors/neovim/queries/kdl/injections.scm"),
        [
            "injection.content: \"Do {% if x %}it\\nnow{% endif %}\"",
            "injection.content: #\"Use \"{{ y }}\"\"#",
            "injection.content: \"\"\"\n        For {{ z }}.\n        \"\"\"",
        ]
    );
    let zed = jinja("editors/zed/languages/kdl/injections.scm");
    // Zed takes no children in: an escape ends a piece.
    assert_eq!(zed.len(), 4, "{zed:?}");
    assert_eq!(zed[2], "injection.content: Use \"{{ y }}\"");
}

#[test]
fn expressions_of_a_prompt_are_injected() {
    let prompt = "# Judge {{ a }}\n\nPlain, with {brace}.\n\n- {% if b %}\n\n| x | {{ c }} |\n|---|---|\n| y | z |\n\n\
                  Use <<output:plan>> {% endif %}\nhere.\n";
    assert_eq!(
        found(&markdown(), "editors/neovim/queries/markdown/injections.scm", prompt),
        [
            "injection.content: Judge {{ a }}",
            "injection.content: {% if b %}",
            "injection.content: {{ c }} ",
            "injection.content: Use <<output:plan>> {% endif %}\nhere.",
        ]
    );
}

#[test]
fn zed_sees_what_a_spec_is_made_of() {
    let zed = |query: &str| found(&kdl(), &format!("editors/zed/languages/kdl/{query}.scm"), SPEC);
    let highlights = zed("highlights");
    for expected in [
        "keyword: workflow",
        "keyword: task",
        "property: agent",
        "string: \"coder\"",
        "string.escape: \\n",
        "number: 5",
        "boolean: #true",
        "punctuation.bracket: {",
        "comment: // A comment.\n",
        "comment: /-note \"old\"",
    ] {
        assert!(highlights.iter().any(|found| found.trim_end() == expected.trim_end()), "{expected}: {highlights:#?}");
    }
    let names: Vec<String> = zed("outline").into_iter().filter(|found| !found.starts_with("item")).collect();
    let expected = ["pipeline", "build", "task", "plan", "task", "make"];
    assert_eq!(
        names.iter().filter_map(|found| found.split_once(": ")).map(|found| found.1).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(zed("brackets").len(), 6);
    assert_eq!(zed("indents").iter().filter(|found| found.starts_with("indent")).count(), 3);
}

/// The examples, all of them, are read by the grammar that Zed is told to take.
#[test]
fn the_grammar_reads_the_examples() {
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs");
    let mut read = 0;
    for folder in fs::read_dir(specs).expect("the examples can be read") {
        for file in fs::read_dir(folder.expect("an entry can be read").path()).into_iter().flatten() {
            let path = file.expect("an entry can be read").path();
            if path.extension().is_some_and(|extension| extension == "kdl") {
                let mut parser = Parser::new();
                parser.set_language(&kdl()).expect("the grammar is one of this tree-sitter");
                let source = fs::read_to_string(&path).expect("an example can be read");
                let tree = parser.parse(&source, None).expect("a tree");
                assert!(!tree.root_node().has_error(), "{}", path.display());
                read += 1;
            }
        }
    }
    assert!(read >= 5, "{read}");
}

fn table(path: &str) -> Table {
    text(path).parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|word| word.as_str().expect("a word")).collect()
}

#[test]
fn the_extension_for_zed_hangs_together() {
    let manifest = table("editors/zed/extension.toml");
    let package = table("editors/zed/Cargo.toml");
    assert_eq!(manifest["schema_version"].as_integer(), Some(1));
    assert_eq!(manifest["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(package["package"]["version"], manifest["version"], "the extension and its crate have one version");
    assert_eq!(words(&package["lib"]["crate-type"]), ["cdylib"]);
    let language = table("editors/zed/languages/kdl/config.toml");
    let grammar = &manifest["grammars"][language["grammar"].as_str().expect("a name")];
    let revision = grammar["rev"].as_str().expect("a revision");
    assert!(revision.len() == 40 && revision.chars().all(|sign| sign.is_ascii_hexdigit()), "{revision}");
    assert_eq!(words(&language["path_suffixes"]), ["kdl"]);
    let server = &manifest["language_servers"]["swarmc"];
    let known = BTreeSet::from([language["name"].as_str().expect("a name"), "Markdown"]);
    assert_eq!(BTreeSet::from_iter(words(&server["languages"])), known);
    let ids = server["language_ids"].as_table().expect("a table");
    assert_eq!(ids.keys().map(String::as_str).collect::<BTreeSet<_>>(), known);
}

#[test]
fn helix_knows_the_server_that_its_languages_name() {
    let settings = table("editors/helix/languages.toml");
    let server = &settings["language-server"]["swarmc"];
    assert_eq!((server["command"].as_str(), words(&server["args"])), (Some("swarmc"), vec!["lsp"]));
    let languages = settings["language"].as_array().expect("languages");
    let served = languages.iter().map(|language| {
        assert!(words(&language["language-servers"]).contains(&"swarmc"), "{language:?}");
        language["name"].as_str().expect("a name")
    });
    assert_eq!(served.collect::<Vec<_>>(), ["kdl", "markdown"]);
}

/// The template that LSP4IJ imports: its files are those that the plugin reads, and the server knows what they say.
#[test]
fn the_template_for_jetbrains_starts_the_server() {
    let json = |file: &str| -> serde_json::Value {
        serde_json::from_str(&text(&format!("editors/jetbrains/{file}.json")))
            .unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let template = json("template");
    assert_eq!(template["programArgs"]["default"], "swarmc lsp");
    let mappings = template["fileTypeMappings"].as_array().expect("mappings");
    let languages: Vec<&str> = mappings.iter().filter_map(|mapping| mapping["languageId"].as_str()).collect();
    assert_eq!(languages, ["kdl", "markdown", "plaintext"]);
    assert!(mappings.iter().all(|mapping| mapping["fileType"]["patterns"].is_array()), "{template}");
    let installer = json("installer");
    assert_eq!(installer["run"]["exec"]["onSuccess"]["configureServer"]["command"], template["programArgs"]);
    let (settings, initial) = (json("settings"), json("initializationOptions"));
    assert_eq!(settings["swarmc"], initial, "both say the same");
    let schema = jsonschema::validator_for(&json("settings.schema")).expect("it is a schema");
    assert!(schema.is_valid(&settings));
    assert!(
        !schema.is_valid(&serde_json::json!({ "swarmc": { "inlayHint": true } })),
        "the schema reports a misspelt setting"
    );
}
