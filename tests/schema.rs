//! What `check --format json` prints, held against the schema that `swarmc schema check` prints.

use serde_json::Value;

use crate::cli::Place;

/// Specs that between them have everything a problem can have: labels elsewhere, flows, certain and likely fixes.
const SPECS: &[&str] = &[
    "pipeline p {\n    task a { run echo true }\n    task b { depends-on c; run echo 1 2 }\n}\n",
    "provider m { exec cat }\nagent a provider=m { can private-data untrusted-input network }\n\
     pipeline p { task t { prompt \"x {{output:u}} <<output:zz>>\" }; task u { run echo; iterations 3 } }\n",
    "pipeline p { task a { run echo true }\n",
    "workflow fine\npipeline p { task a { run echo } }\n",
    "/* ",
];

/// The schema, with every field that it does not name forbidden: the output has no others.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(strict);
            if fields.get("type") == Some(&Value::from("object")) && fields.contains_key("properties") {
                fields.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strict),
        _ => {}
    }
}

/// Fails unless a document is as the schema says.
pub(crate) fn fits(place: &Place, document: &str) -> Value {
    let schema = place.swarmc(&["schema", "check"]).expect(0, &[], &[]);
    let mut schema: Value = serde_json::from_str(&schema.out).expect("the schema is JSON");
    strict(&mut schema);
    let validator = jsonschema::draft202012::new(&schema).expect("it is a schema");
    let document: Value = serde_json::from_str(document).expect("the output is JSON");
    let wrong: Vec<String> = validator.iter_errors(&document).map(|error| format!("{error}")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{document:#}");
    document
}

#[test]
fn problems_are_as_their_schema_says() {
    let place = Place::new(SPECS[0]);
    let (mut fixes, mut flows, mut seen) = (0, 0, 0);
    for (index, spec) in SPECS.iter().enumerate() {
        place.write("flow.kdl", spec);
        let checked = place.swarmc(&["check", "flow.kdl", "--format", "json", "--profile", "audit"]);
        assert!(matches!(checked.code, Some(0 | 1)), "{index}: {checked:?}");
        let document = fits(&place, &checked.out);
        for problem in document["diagnostics"].as_array().expect("a list") {
            seen += 1;
            fixes += usize::from(!problem["fix"].is_null());
            flows += usize::from(problem["flow"].as_array().is_some_and(|flow| !flow.is_empty()));
        }
    }
    assert!(seen > 8 && fixes > 1 && flows > 0, "{seen} problems, {fixes} fixes, {flows} flows");
    fits(&place, &place.swarmc(&["check", "none.kdl", "--format", "json"]).out);
}
