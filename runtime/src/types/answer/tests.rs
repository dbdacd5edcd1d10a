//! Texts against types: what comes out, or what is said about them.

use serde_json::json;

use super::*;

fn shape(schema: Value) -> OutputValidator {
    let types = json!({
        "Severity": { "type": "string", "enum": ["low", "medium", "high"] },
        "Tree": {
            "type": "object",
            "properties": { "child": { "$ref": "#/$defs/Tree" }, "list": { "type": "array", "items": { "$ref": "#/$defs/Tree" } } },
            "additionalProperties": false,
        },
        "Verdict": {
            "type": "object",
            "properties": {
                "approved": { "type": "boolean" },
                "severity": { "$ref": "#/$defs/Severity" },
                "issues": { "type": "array", "items": { "type": "string", "maxLength": 5 }, "maxItems": 12 },
                "score": { "type": "integer", "minimum": 1, "maximum": 10 },
                "id": { "type": "string", "pattern": "^[a-z]+$" },
                "note": { "anyOf": [{ "type": "string", "minLength": 2 }, { "type": "null" }] },
            },
            "required": ["approved", "severity"],
            "additionalProperties": false,
        },
    });
    OutputValidator::new(&Schema(schema), &serde_json::from_value(types).unwrap()).unwrap()
}

fn verdict() -> OutputValidator {
    shape(json!({ "$ref": "#/$defs/Verdict" }))
}

const GOOD: &str = r#"{"approved":true,"severity":"low"}"#;

#[test]
fn the_value_is_found_in_what_models_write_around_it() {
    let check = |text: &str| assert_eq!(verdict().parse_answer(text).as_deref(), Ok(GOOD), "{text}");
    check(GOOD);
    check(" {\n  \"severity\": \"low\",\n  \"approved\": true\n}\n");
    check("Here it is:\n```json\n{\"approved\": true, \"severity\": \"low\"}\n```\nSee [1] and {this}.");
    check("My verdict is {\"approved\": true, \"severity\": \"low\"} as of [2], see [3].");
    check("First {\"approved\": false, \"severity\": \"high\"}, but then {\"approved\": true, \"severity\": \"low\"}");
    check("\u{feff}{\"approved\":false,\"approved\":true,\"severity\":\"low\"}");
    check("{\"approved\":true,\"severity\":\"low\",\"score\":null}");
    check("[{\"approved\":true}]\n```\n{\"approved\":true,\"severity\":\"low\"}\n```");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let check = |text: &str, expected: &[&str]| {
        assert_eq!(verdict().parse_answer(text).unwrap_err(), expected, "{text}");
    };
    check(r#"{"approved":true,"severity":"hgih"}"#, &[r#"at /severity: "hgih" is none of low, medium, high"#]);
    check(r#"{"approved":"yes","severity":"low"}"#, &[r#"at /approved: "yes" is not true or false"#]);
    check(r#"{"approved":true}"#, &[r#"the field "severity" is missing"#]);
    check(r#"{"approved":null,"severity":"low"}"#, &["at /approved: null is not true or false"]);
    check(r#"{"approved":true,"severity":"low","colour":"red"}"#, &[r#"there is no field "colour" in this type"#]);
    check(
        r#"{"approved":true,"severity":"low","score":11,"id":"A b"}"#,
        &[r#"at /id: "A b" does not match the pattern ^[a-z]+$"#, "at /score: 11 is more than 10"],
    );
    check(
        r#"{"approved":true,"severity":"low","note":"x"}"#,
        &[r#"at /note: "x" has 1 characters, at least 2 are needed"#],
    );
    check(
        r#"{"approved":true,"severity":"low","issues":["longer"]}"#,
        &[r#"at /issues/0: "longer" has 6 characters, at most 5 are allowed"#],
    );
    check("I approve.", &["there is no JSON value in the answer (expected value at line 1 column 1)"]);
    check(" \n", &["the answer is empty"]);
    check("[1, 2]", &["a list is not an object"]);
    check("{\"approved\": NaN}", &["there is no JSON value in the answer (expected value at line 1 column 14)"]);
}

#[test]
fn no_more_than_ten_things_are_told_and_none_at_length() {
    let issues: Vec<String> = (0..12).map(|number| format!("{number}{}", "x".repeat(1000))).collect();
    let told = verdict()
        .parse_answer(&json!({ "approved": true, "severity": "low", "issues": issues }).to_string())
        .unwrap_err();
    assert_eq!((told.len(), told[10].as_str()), (11, "there is more that does not fit"));
    assert!(told.iter().all(|sentence| sentence.len() < 400), "{told:?}");
    let text = format!("{{\"{}\":1}}", "k".repeat(5000));
    assert!(verdict().parse_answer(&text).unwrap_err().iter().all(|sentence| sentence.len() < 400));
}

#[test]
fn a_type_of_words_takes_them_bare_or_quoted() {
    let severity = shape(json!({ "$ref": "#/$defs/Severity" }));
    assert_eq!(severity.parse_answer("high\n").as_deref(), Ok("\"high\""));
    assert_eq!(severity.parse_answer(" \"high\"").as_deref(), Ok("\"high\""));
    assert_eq!(severity.parse_answer("hgih").unwrap_err(), [r#""hgih" is none of low, medium, high"#]);
    let text = shape(json!({ "type": "string" }));
    assert_eq!(text.parse_answer("Say [1].").as_deref(), Ok("\"Say [1].\""));
    assert_eq!(text.parse_answer("5").as_deref(), Ok("\"5\""));
    let number = shape(json!({ "type": "integer" }));
    assert_eq!(number.parse_answer("5\n").as_deref(), Ok("5"));
    assert_eq!(
        number.parse_answer("five").unwrap_err(),
        ["there is no JSON value in the answer (expected ident at line 1 column 2)"]
    );
    let list = shape(json!({ "type": "array", "items": { "type": "string" } }));
    assert_eq!(list.parse_answer("Topics: [\"a\", \"b\"]\n{\"sources\": 2}").as_deref(), Ok(r#"["a","b"]"#));
}

#[test]
fn a_computed_record_may_say_its_numbers_in_words() {
    let record = json!({ "approved": "true", "severity": "low", "score": "7", "id": "x" });
    let expected = r#"{"approved":true,"id":"x","score":7,"severity":"low"}"#;
    assert_eq!(verdict().parse_computed(record).as_deref(), Ok(expected));
    let wrong = verdict().parse_computed(json!({ "approved": "maybe", "severity": "low" })).unwrap_err();
    assert_eq!(wrong, [r#"at /approved: "maybe" is not true or false"#]);
    let text = shape(json!({ "type": "string" }));
    assert_eq!(text.parse_computed(json!("\"quoted\"")).as_deref(), Ok(r#""\"quoted\"""#), "a text stays what it is");
    assert_eq!(shape(json!({ "type": "integer" })).parse_computed(json!(" 7")).as_deref(), Ok("7"));
    assert_eq!(verdict().parse_computed(json!(format!("see\n```\n{GOOD}\n```"))).as_deref(), Ok(GOOD));
}

#[test]
fn values_as_deep_as_json_may_be_fit_a_small_stack() {
    let tree = Arc::new(shape(json!({ "$ref": "#/$defs/Tree" })));
    for (open, close, levels) in [("{\"child\":", "}", 125), ("{\"list\":[", "]}", 62)] {
        let good = format!("{}{{}}{}", open.repeat(levels), close.repeat(levels));
        let bad = format!("{}5{}", open.repeat(levels), close.repeat(levels));
        let deeper = format!("{}{{}}{}", open.repeat(1 << 18), close.repeat(1 << 18));
        let tree = Arc::clone(&tree);
        // As much as the threads of attempts have.
        let thread = std::thread::Builder::new().stack_size(crate::io::executor::STACK);
        let read = move || {
            assert_eq!(tree.parse_answer(&good).as_deref(), Ok(good.as_str()));
            assert_eq!(tree.parse_answer(&bad).unwrap_err().len(), 1);
            assert!(tree.parse_answer(&deeper).unwrap_err()[0].contains("recursion limit"));
        };
        thread.spawn(read).unwrap().join().unwrap();
    }
}

#[test]
fn a_schema_that_is_none_is_refused_and_nothing_is_fetched() {
    let new = |schema: Value| OutputValidator::new(&Schema(schema), &BTreeMap::new()).unwrap_err();
    assert!(new(json!({ "type": "strng" })).starts_with("its type is no JSON Schema: "));
    assert!(new(json!({ "$ref": "#/$defs/Missing" })).starts_with("its type is no JSON Schema: "));
    for elsewhere in ["http://127.0.0.1:9/schema", "file:///etc/hostname"] {
        assert!(new(json!({ "$ref": elsewhere })).starts_with("its type is no JSON Schema: "), "{elsewhere}");
    }
}

#[test]
fn a_shape_is_made_once_for_a_type() {
    let (shapes, plan) = (Shapes::default(), Plan::default());
    let one = shapes.validator_for(&Schema(json!({ "type": "integer" })), &plan).unwrap();
    let other = shapes.validator_for(&Schema(json!({ "type": "integer" })), &plan).unwrap();
    assert!(Arc::ptr_eq(&one, &other));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in r#"(\PC|[\[\]{}":,0-9\\`\n ]){0,80}"#) {
        for shape in [verdict(), shape(json!({ "type": "string" }))] {
            if let Err(told) = shape.parse_answer(&text) {
                proptest::prop_assert!(!told.is_empty() && told.len() <= TOLD + 1);
            }
        }
    }
}

#[test]
fn whole_numbers_are_stored_without_a_fraction() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": { "type": "integer" },
            "f": { "type": "number" },
            "l": { "type": "array", "items": { "anyOf": [{ "type": "integer" }, { "type": "null" }] } },
            "m": { "type": "object", "additionalProperties": { "type": "integer" } },
            "v": { "$ref": "#/$defs/Verdict" },
        },
        "additionalProperties": false,
    });
    let given =
        r#"{"f":2.0,"l":[1.0,null,3],"m":{"a":-4.0},"n":1e3,"v":{"approved":true,"score":7.0,"severity":"low"}}"#;
    let stored = r#"{"f":2.0,"l":[1,null,3],"m":{"a":-4},"n":1000,"v":{"approved":true,"score":7,"severity":"low"}}"#;
    assert_eq!(shape(schema.clone()).parse_answer(given).as_deref(), Ok(stored));
    assert_eq!(shape(schema).parse_computed(serde_json::from_str(given).unwrap()).as_deref(), Ok(stored));
    let number = || shape(json!({ "type": "integer" }));
    assert_eq!(number().parse_computed(json!("2.0")).as_deref(), Ok("2"));
    assert_eq!(number().parse_computed(json!(1e300)).as_deref(), Ok("1e+300"));
    assert!(number().parse_computed(json!(2.5)).is_err());
}
