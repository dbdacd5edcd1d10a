//! Reads a plan that may come from anywhere: refuses whatever would crash a run and no compiler writes.
//!
//! In: the JSON of a plan. Out: the plan, or the first thing that is wrong with it and where. `swarmc_plan` judges all but
//! expressions, templates and JSON Schemas, which are judged here by the libraries that run them.

use std::collections::BTreeMap;

use swarmc_plan::{Piece, Plan, ReadError, Schema, read_with};

use crate::eval::render::Renderer;
use crate::types::answer::OutputValidator;

/// Reads a plan, and parses every expression, template and schema in it.
///
/// # Errors
/// Says what is wrong and where.
pub fn load_plan(text: &str) -> Result<Plan, ReadError> {
    let renderer = Renderer::new();
    read_with(text, &|plan, piece| match piece {
        Piece::Expression(expression) => renderer.check_expression(expression).map_err(|error| error.message),
        Piece::Template(template) => renderer.check_template(template).map_err(|error| error.message),
        Piece::Schema(schema) => OutputValidator::new(schema, &plan.types).map(drop),
        Piece::Literal(text, schema) => check_literal(text, schema, &plan.types),
    })
}

/// Whether a text is JSON of a type.
fn check_literal(text: &str, schema: &Schema, types: &BTreeMap<String, Schema>) -> Result<(), String> {
    let value = serde_json::from_str(text).map_err(|error| format!("its value is not JSON: {error}"))?;
    let fits = OutputValidator::new(schema, types)?.parse_computed(value);
    fits.map(drop).map_err(|violations| violations.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::samples;

    /// What is said of a plan of two steps, the second of which has been edited.
    fn refused(edit: impl FnOnce(&mut swarmc_plan::Step)) -> String {
        let mut pipeline = samples::pipeline("a \n b");
        edit(&mut pipeline.steps[1]);
        load_plan(&swarmc_plan::write_plan(&samples::plan(pipeline))).expect_err("the plan is wrong").to_string()
    }

    #[test]
    fn expressions_templates_and_schemas_are_parsed() {
        use swarmc_plan::{Body, Expression, Origin, Segment, Template};
        let expression =
            |source: &str| Expression { source: source.to_owned(), reads: None, origin: Origin::default() };
        assert!(load_plan(&swarmc_plan::write_plan(&samples::plan(samples::pipeline("a \n b")))).is_ok());
        let said = refused(|step| step.when = Some(expression("output.a ==")));
        assert!(said.contains("at `/pipelines/0/steps/1/when`"), "{said}");
        let segments = vec![Segment::Text("x ".to_owned()), Segment::Logic(expression("{% if a %}"))];
        let text = Template { segments, digest: String::new() };
        let said = refused(|step| step.body = Body::Value(text));
        assert!(said.contains("at `/pipelines/0/steps/1/body/value`"), "{said}");
        let schema = |json: serde_json::Value| Some(Schema(json));
        let said = refused(|step| step.output.schema = schema(serde_json::json!({ "type": 3 })));
        assert!(said.contains("at `/pipelines/0/steps/1/output/schema`: its type is no JSON Schema"), "{said}");
        let said = refused(|step| step.output.schema = schema(serde_json::json!({ "$ref": "#/$defs/None" })));
        assert!(said.contains("`#/$defs/None`, which is no type of the plan"), "{said}");
        for (default, problem) in [("{", "not JSON"), ("\"x\"", "")] {
            let said = refused(|step| {
                step.output.schema = schema(serde_json::json!({ "type": "object" }));
                step.output.default = Some(default.to_owned());
            });
            assert!(said.contains("/steps/1/output/default`") && said.contains(problem), "{said}");
        }
    }
}
