//! The OpenAPI document: made from the table of routes, and from the schemas of the types that it names.
//!
//! The schemas are a file that a test makes from the types, so that the binary has no code that makes them.

use serde_json::{Map, Value, json};

use crate::routes::{Answer, Method, Query, QueryKind, ROUTES, Route};
use crate::stream::EventId;

/// The schemas of all types, by name.
const SCHEMAS: &str = include_str!("../schemas.json");

/// The schema of a type that the table names.
fn refer(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn describe_query(query: &Query) -> Value {
    let (schema, explode) = match query.kind {
        QueryKind::Text => (json!({ "type": "string" }), true),
        QueryKind::Event => (json!({ "type": "string", "pattern": EventId::PATTERN }), true),
        QueryKind::Number(least, most) => (json!({ "type": "integer", "minimum": least, "maximum": most }), true),
        QueryKind::Words(words) => {
            (json!({ "type": "array", "minItems": 1, "items": { "type": "string", "enum": words } }), false)
        }
    };
    json!({
        "name": query.name, "in": "query", "description": query.about, "required": query.is_required,
        "schema": schema, "explode": explode
    })
}

fn describe_route(route: &Route) -> Value {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let part = |name: &str| {
        json!({
            "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 }
        })
    };
    let mut parameters: Vec<Value> = names.map(part).collect();
    parameters.extend(route.query.iter().map(describe_query));
    if matches!(route.answer, Answer::Events) && route.path.contains("{run}") {
        parameters.push(json!({
            "name": "Last-Event-ID", "in": "header", "description": "The event behind which the stream begins.",
            "schema": { "type": "string", "pattern": EventId::PATTERN }
        }));
    }
    if route.id == "submitRun" {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "description": "What makes a repeated request the same.",
            "schema": { "type": "string" }
        }));
    }
    let json_of = |name: &str| json!({ "application/json": { "schema": refer(name) } });
    let mut answers = Map::new();
    match route.answer {
        Answer::Json(name) => {
            answers.insert("200".to_owned(), json!({ "description": "It.", "content": json_of(name) }));
            if route.id == "getGraph" {
                answers.insert("304".to_owned(), json!({ "description": "It has not changed." }));
            }
        }
        Answer::Description => {
            let content = json!({ "application/json": { "schema": { "type": "object" } } });
            answers.insert("200".to_owned(), json!({ "description": "It.", "content": content }));
        }
        Answer::Accepted(name) => {
            let headers = json!({ "Location": { "description": "Where it is.", "schema": { "type": "string" } } });
            answers.insert(
                "202".to_owned(),
                json!({
                    "description": "It is accepted.", "headers": headers, "content": json_of(name)
                }),
            );
        }
        Answer::Bytes => {
            let content = json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } });
            answers.insert(
                "200".to_owned(),
                json!({ "description": "Bytes of it: which ones, `Content-Range` says.", "content": content }),
            );
        }
        Answer::Archive => {
            let content = json!({ "application/x-tar": { "schema": { "type": "string", "format": "binary" } } });
            answers.insert("200".to_owned(), json!({ "description": "The archive.", "content": content }));
        }
        Answer::Events => {
            let content = json!({ "text/event-stream": {} });
            answers.insert("200".to_owned(), json!({ "description": "Events.", "content": content }));
            if route.path.contains("{run}") || !route.query.is_empty() {
                answers.insert("204".to_owned(), json!({ "description": "Nothing is left of the run." }));
            }
            answers.insert("503".to_owned(), problem("Too many streams are open."));
        }
        Answer::Text => {
            let content = json!({ "text/plain": { "schema": { "type": "string" } } });
            answers.insert("200".to_owned(), json!({ "description": "Counts.", "content": content }));
        }
    }
    let mut failures = vec![
        ("400", "The request does not fit."),
        ("401", "The token is missing."),
        ("403", "The request comes from another site, or from an agent."),
        ("500", "A run, or this machine, does not work."),
    ];
    if route.path.contains('{') || matches!(route.id, "planSpec" | "followRuns") || route.method == Method::Post {
        failures.push(("404", "There is no such thing."));
    }
    if route.method == Method::Post {
        failures.extend([
            ("408", "The body took too long."),
            ("409", "It cannot be done now, or with this run or spec."),
            ("413", "The body is too long."),
            ("415", "The body is no JSON."),
        ]);
    }
    if route.id == "planSpec" {
        failures.push(("409", "It cannot be done with this spec."));
    }
    if matches!(route.id, "submitRun" | "postTask" | "planSpec") {
        failures.push(("422", "The spec has mistakes."));
    }
    for (status, about) in failures {
        answers.insert(status.to_owned(), problem(about));
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.about.split_once(". ").map_or(route.about.trim_end_matches('.'), |(first, _)| first),
        "description": route.about,
        "responses": answers
    });
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = route.body {
        operation["requestBody"] = json!({ "required": true, "content": json_of(body) });
    }
    operation
}

fn problem(about: &str) -> Value {
    let schema = refer("Problem");
    json!({ "description": about, "content": { "application/problem+json": { "schema": schema } } })
}

/// The document; without what changes something where the server does not.
pub(crate) fn build_description(read_only: bool) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES.iter().filter(|route| !read_only || route.method == Method::Get) {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = describe_route(route);
    }
    let schemas: Value = serde_json::from_str(SCHEMAS).unwrap_or_default();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "swarmc serve",
            "version": "1",
            "description": "Runs of multi-agent workflows: what they do, and how to steer them.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" }
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } }
        }
    })
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;
    use swarmc_plan::Plan;
    use swarmc_view::documents::{AgentDetails, ArtifactText};

    use super::*;
    use crate::documents::*;
    use crate::problem::Problem;

    /// The schemas of all types that the table names, and of those within.
    fn build_schemas() -> Value {
        let begin = |settings: SchemaSettings| {
            let settings = settings.with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            });
            settings.into_generator()
        };
        macro_rules! add {
            ($generator:ident: $($known:ident),*) => { $($generator.subschema_for::<$known>();)* };
        }
        let mut answers = begin(SchemaSettings::draft2020_12().for_serialize());
        add!(
            answers: Health, RunPage, RunSnapshot, StepPage, StepDocument, AgentDetails, GraphDocument, GraphStates,
            Timeline, ArtifactText, Waits, Specs, Plan, Done, Submitted, TaskDocument, Problem
        );
        // A client may leave out what has a default.
        let mut bodies = begin(SchemaSettings::draft2020_12().for_deserialize());
        add!(bodies: SubmitRun, StopRun, ResumeRun, AnswerRequest, AnswerGate, SendMessage, PostTask);
        let mut schemas = answers.take_definitions(true);
        let mut bodies = bodies.take_definitions(true);
        bodies.values_mut().for_each(remove_defaults);
        schemas.append(&mut bodies);
        Value::Object(schemas)
    }

    /// Programs that make types take what has a default for what is always there.
    fn remove_defaults(schema: &mut Value) {
        match schema {
            Value::Object(fields) => {
                fields.remove("default");
                fields.values_mut().for_each(remove_defaults);
            }
            Value::Array(all) => all.iter_mut().for_each(remove_defaults),
            _ => {}
        }
    }

    #[test]
    fn the_schemas_are_those_of_the_types() {
        let expected = serde_json::to_string_pretty(&build_schemas()).expect("it is JSON") + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas.json");
        if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
            std::fs::write(path, &expected).expect("it can be written");
            return;
        }
        assert_eq!(SCHEMAS, expected, "it is stale: run `tests/run bless`");
    }

    #[test]
    fn the_document_refers_to_what_it_has() {
        for read_only in [false, true] {
            let document = build_description(read_only);
            let text = document.to_string();
            for name in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(document["components"]["schemas"][name].is_object(), "there is no {name}");
            }
            assert_eq!(text.contains("\"post\":"), !read_only);
        }
    }
}
