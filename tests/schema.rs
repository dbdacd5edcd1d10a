//! Documents for programs, held against the schemas that `swarmc schema` prints: every one that a test of this binary has
//! printed, and those of `docs/json.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;
use swarmc_view::documents::{DOCUMENTS, find_document};

use crate::cli::Place;
use crate::specs::Project;

/// Specs that between them have everything a problem can have: labels elsewhere, flows, certain and likely fixes.
const SPECS: &[&str] = &[
    "pipeline p {\n    task a { run echo true }\n    task b { depends-on c; run echo 1 2 }\n}\n",
    "provider m { exec cat }\nagent a provider=m { can private-data untrusted-input network }\n\
     pipeline p { task t { prompt \"x {{output:u}} <<output:zz>>\" }; task u { run echo; iterations 3 } }\n",
    "pipeline p { task a { run echo true }\n",
    "workflow fine\npipeline p { task a { run echo } }\n",
    "/* ",
];

/// Which document a command prints, and whether each line is one.
fn printed_document(arguments: &[&str]) -> Option<(&'static str, bool)> {
    let has = |option: &str| arguments.contains(&option);
    let is_json = has("--json") || arguments.windows(2).any(|pair| *pair == ["--format", "json"]);
    let names: Vec<&str> = arguments.iter().skip(1).copied().filter(|word| !word.starts_with('-')).collect();
    Some(match (*arguments.first()?, names.as_slice()) {
        ("run" | "resume", _) if has("--events") => ("events", true),
        _ if !is_json => return None,
        ("run" | "resume", _) => ("run", true),
        ("check", _) => ("check", false),
        ("test", _) => ("test", false),
        ("ps", _) => ("ps", false),
        ("doctor", []) => ("doctor", false),
        ("doctor", _) => ("doctor-spec", false),
        ("inspect", [] | [_]) => ("inspect", false),
        ("inspect", [_, named]) if named.contains("://") => ("inspect-artifact", false),
        ("inspect", [_, _]) => ("inspect-step", false),
        ("inspect", _) => ("inspect-agent", false),
        _ => return None,
    })
}

/// Fails unless the output of a command is as its schema says.
pub(crate) fn assert_documented(arguments: &[&str], out: &str) {
    match printed_document(arguments) {
        Some((name, true)) => out.lines().for_each(|line| _ = fits(name, line)),
        Some((name, false)) if !out.is_empty() => _ = fits(name, out),
        _ => {}
    }
}

/// Fails unless a document is as the schema of this name says, and has no other fields; the document.
pub(crate) fn fits(name: &str, document: &str) -> Value {
    let value: Value = serde_json::from_str(document).unwrap_or_else(|error| panic!("{name}: {error}: {document}"));
    let wrong: Vec<String> = validators()[name].iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{name}: {wrong:#?}\n{value:#}");
    value
}

fn validators() -> &'static BTreeMap<&'static str, Validator> {
    static VALIDATORS: OnceLock<BTreeMap<&str, Validator>> = OnceLock::new();
    VALIDATORS.get_or_init(|| {
        let validator = |schema: Value| jsonschema::draft202012::new(&strict(schema)).expect("it is a schema");
        let schema = |text| serde_json::from_str(text).expect("a schema is JSON");
        let schemas = DOCUMENTS.iter().map(|document| (document.name, schema(document.schema)));
        schemas.map(|(name, schema)| (name, validator(schema))).collect()
    })
}

/// The schema, with every field that it does not name forbidden: the outputs have no others.
fn strict(mut schema: Value) -> Value {
    let mut parts = BTreeSet::new();
    collect_parts(&schema, false, &mut parts);
    let definitions = schema.as_object_mut().and_then(|fields| fields.remove("$defs"));
    close(&mut schema, true);
    if let Some(Value::Object(mut definitions)) = definitions {
        definitions.iter_mut().for_each(|(name, definition)| close(definition, !parts.contains(name)));
        schema["$defs"] = Value::Object(definitions);
    }
    schema
}

/// The definitions that are parts of objects which have further fields.
fn collect_parts(schema: &Value, is_part: bool, parts: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            let is_part = is_part || fields.contains_key("properties");
            if let Some(name) = fields.get("$ref").and_then(Value::as_str).filter(|_| is_part) {
                parts.insert(name.rsplit('/').next().unwrap_or_default().to_owned());
            }
            for (key, field) in fields {
                collect_parts(field, is_part && matches!(key.as_str(), "oneOf" | "anyOf" | "allOf"), parts);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_parts(item, is_part, parts)),
        _ => {}
    }
}

/// Forbids further fields, where the schema is not that of a part of an object.
fn close(schema: &mut Value, is_whole: bool) {
    match schema {
        Value::Object(fields) => {
            let is_object = fields.contains_key("properties");
            for (key, field) in fields.iter_mut() {
                close(field, !matches!(key.as_str(), "oneOf" | "anyOf" | "allOf") || is_whole && !is_object);
            }
            if is_whole && is_object {
                fields.entry("unevaluatedProperties").or_insert(Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| close(item, is_whole)),
        _ => {}
    }
}

#[test]
fn problems_are_as_their_schema_says() {
    let place = Place::new(SPECS[0]);
    let (mut fixes, mut flows, mut seen) = (0, 0, 0);
    for (index, spec) in SPECS.iter().enumerate() {
        place.write("flow.kdl", spec);
        let checked = place.swarmc(&["check", "flow.kdl", "--format", "json", "--profile", "audit"]);
        assert!(matches!(checked.code, Some(0 | 1)), "{index}: {checked:?}");
        let document = fits("check", &checked.out);
        for problem in document["diagnostics"].as_array().expect("a list") {
            seen += 1;
            fixes += usize::from(!problem["fix"].is_null());
            flows += usize::from(problem["flow"].as_array().is_some_and(|flow| !flow.is_empty()));
        }
    }
    assert!(seen > 8 && fixes > 1 && flows > 0, "{seen} problems, {fixes} fixes, {flows} flows");
    fits("check", &place.swarmc(&["check", "none.kdl", "--format", "json"]).out);
}

#[test]
fn an_output_with_another_field_is_refused() {
    let fails = |name: &str, document: &str| std::panic::catch_unwind(|| fits(name, document)).is_err();
    assert!(!fails("ps", r#"{"version":1,"runs":[]}"#));
    assert!(fails("ps", r#"{"version":1,"runs":[],"more":1}"#));
    assert!(fails("ps", r#"{"version":2,"runs":[]}"#));
    assert!(fails("run", r#"{"version":1,"type":"notice","text":"x","more":1}"#));
    assert!(fails("run", r#"{"version":1,"type":"record","seq":1,"at":1,"event":"run_resumed","more":1}"#));
    assert!(!fails("run", r#"{"version":1,"type":"record","seq":1,"at":1,"event":"run_resumed"}"#));
}

#[test]
fn every_command_prints_what_its_schema_says() {
    let place = Place::new(
        "workflow w\npipeline main { task a { run echo hi }; task b { run \"exit 1\"; on-failure skip } }\ntest ok { fake a \"x\"; fake b \"y\"; expect { status success } }\n",
    );
    place.swarmc(&["run", "flow.kdl", "--json"]).expect(0, &["\"type\":\"result\"", "\"type\":\"output\""], &[]);
    place.swarmc(&["run", "flow.kdl", "--events"]).expect(0, &["\"attempt_started\""], &[]);
    for command in [&["ps", "--all"][..], &["inspect"], &["inspect", "last", "a"], &["doctor"], &["doctor", "flow.kdl"]]
    {
        place.swarmc(&[command, &["--json"]].concat()).expect(0, &["\"version\":1"], &[]);
    }
    for command in ["check", "test"] {
        place.swarmc(&[command, "flow.kdl", "--format", "json"]).expect(0, &["\"version\":1"], &[]);
    }
}

#[test]
fn what_agents_of_a_swarm_did_is_as_its_schema_says() {
    let policy = "unattended approve";
    let place = Place::new(&crate::approvals::spec(policy));
    place.swarmc(&["run", "flow.kdl", "--headless", "--events"]).expect(0, &["agent_id"], &[]);
    place.swarmc(&["inspect", "last", "go", "--json"]).expect(0, &["\"swarm\":{"], &[]);
    for agent in ["takao", "mitaka", "swarm-supervisor"] {
        place.swarmc(&["inspect", "last", "go", agent, "--json"]).expect(0, &["\"mailbox\""], &[]);
    }
}

#[test]
fn every_format_has_a_schema_and_the_manual_names_it() {
    let project = Project::new();
    let manual = crate::tidy::text("docs/json.md");
    for document in DOCUMENTS {
        let printed = project.done(&["schema", document.name]);
        let schema: Value = serde_json::from_str(&printed).expect("a schema is JSON");
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{}", document.name);
        let command = format!("`swarmc schema {}`", document.name);
        assert!(manual.contains(&command), "docs/json.md does not name {command}");
    }
    assert_eq!(find_document("nothing").map(|document| document.name), None);
}

#[test]
fn the_examples_of_the_manual_are_as_their_schemas_say() {
    let manual = crate::tidy::text("docs/json.md");
    let mut name = "";
    let mut seen = BTreeSet::new();
    for (index, part) in manual.split("```").enumerate() {
        if index % 2 == 0 {
            // The last schema that the text names is that of the example below it.
            let named = part.rsplit("`swarmc schema ").next().filter(|_| part.contains("`swarmc schema "));
            name = named.and_then(|rest| rest.split('`').next()).unwrap_or(name);
        } else {
            fits(name, part.trim_start_matches("json"));
            seen.insert(name);
        }
    }
    assert!(seen.len() > 5, "{seen:?}");
}
