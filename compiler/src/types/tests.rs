//! Types as the language and as JSON Schema write them, and what does no harm.

use std::collections::BTreeMap;

use serde_json::json;

use crate::compile;

fn compiled(spec: &str) -> crate::Compilation {
    compile("spec.kdl", &BTreeMap::from([("spec.kdl".to_owned(), spec.to_owned())]))
}

fn codes(spec: &str) -> Vec<&'static str> {
    compiled(spec).diagnostics.iter().map(|diagnostic| diagnostic.code.id()).collect()
}

#[test]
fn declared_types_are_schemas_that_refer_to_each_other() {
    let spec = r#"
// What a review found.
type Review {
    approved bool
    // How bad it is.
    severity enum low high
    score float? min=0 max=1.5
    notes string min=1 max=80 pattern="^[a-z]"
    issues list<Issue> min=1
    votes list<int?>
    by-file map<list<string>>
}
type Issue { title string; parent Issue? }
pipeline build {
    task review { run cat review.json; output Review }
    task each { for-each "output.review.issues"; run echo x; output "list<Issue?>" }
}
"#;
    let plan = compiled(spec).plan.expect("the spec is right");
    let review = json!({
        "type": "object",
        "description": "What a review found.",
        "properties": {
            "approved": { "type": "boolean" },
            "severity": { "enum": ["low", "high"], "description": "How bad it is." },
            "score": { "type": "number", "minimum": 0, "maximum": 1.5 },
            "notes": { "type": "string", "minLength": 1, "maxLength": 80, "pattern": "^[a-z]" },
            "issues": { "type": "array", "items": { "$ref": "#/$defs/Issue" }, "minItems": 1 },
            "votes": { "type": "array", "items": { "anyOf": [{ "type": "integer" }, { "type": "null" }] } },
            "by-file": {
                "type": "object",
                "additionalProperties": { "type": "array", "items": { "type": "string" } }
            }
        },
        "required": ["approved", "severity", "notes", "issues", "votes", "by-file"],
        "additionalProperties": false
    });
    assert_eq!(plan.types["Review"].0, review);
    assert_eq!(plan.types["Issue"].0["required"], json!(["title"]));
    let schemas: Vec<_> = plan.pipelines[0].steps.iter().map(|step| step.output.schema.clone()).collect();
    let [Some(whole), Some(each)] = schemas.as_slice() else { panic!("both outputs have a type: {schemas:?}") };
    assert_eq!(whole.0, json!({ "$ref": "#/$defs/Review" }));
    let item = json!({ "anyOf": [{ "$ref": "#/$defs/Issue" }, { "type": "null" }] });
    assert_eq!(each.0, json!({ "type": "array", "items": item }));
}

#[test]
fn types_that_grow_from_step_to_step_stay_small() {
    let mut spec = String::from("pipeline build {\n    task s0 { run cat a.json; output { a string } }\n");
    for step in 1..2000 {
        let before = step - 1;
        spec.push_str(&format!(
            "    task s{step} {{ value {{ a \"<<output:s{before}>>\"; b \"<<output:s{before}>>\" }} }}\n"
        ));
    }
    spec.push_str("    task last { run cat; stdin \"<<output:s1999.a.b.c>>\" }\n}\n");
    assert_eq!(codes(&spec), ["SW203"]);
    let mut spec = String::from("pipeline build {\n    task s0 { run cat a.json; output \"list<string>\" }\n");
    for step in 1..2000 {
        let before = step - 1;
        spec.push_str(&format!("    task s{step} {{ for-each \"[output.s{before}]\"; value \"<<item>>\" }}\n"));
    }
    spec.push_str("}\n");
    assert_eq!(codes(&spec), Vec::<&str>::new());
}

#[test]
fn values_of_many_kinds_stay_small() {
    let nested = "{% set x = [x, {'a': x}] if x else [x, [x]] %}".repeat(300);
    let all: Vec<String> = (0..500).map(|index| format!("{{'k{index}': [{index}, 'a']}}")).collect();
    let all = all.join(", ");
    let spec = format!(
        "pipeline build {{ task a {{ value \"{{% set x = 1 %}}{nested}{{{{ x }}}} {{% for y in [{all}] %}}{{{{ y }}}}{{% endfor %}}\" }} }}\n"
    );
    assert_eq!(codes(&spec), Vec::<&str>::new());
}

#[test]
fn a_thousand_types_in_a_circle_are_one_report() {
    let mut spec = String::new();
    for index in 0..1000 {
        spec.push_str(&format!("type T{index} {{ next T{} }}\n", (index + 1) % 1000));
    }
    spec.push_str("pipeline build { task a { run cat a.json; output T0 } }\n");
    assert_eq!(codes(&spec), ["SW301"]);
}

#[test]
fn expressions_a_thousand_deep_are_refused() {
    for deep in [
        format!("{}output.a{}", "(".repeat(1000), ")".repeat(1000)),
        format!("{}true", "not ".repeat(1000)),
        format!("output.a{}", ".b".repeat(1000)),
        format!("{}1{}", "[".repeat(1000), "]".repeat(1000)),
    ] {
        let spec = format!("pipeline build {{ task a {{ run echo a }}; task b {{ when \"{deep}\"; run echo b }} }}\n");
        assert_eq!(codes(&spec), ["SW209"]);
    }
}
