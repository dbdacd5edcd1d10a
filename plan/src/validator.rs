//! What holds values against a JSON Schema, for the checks and for the run: one engine with one set of settings.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A validator of draft 2020-12 that fetches nothing and checks formats. Texts of agents meet its patterns, so their
/// engine never goes back over a text, and takes time in proportion to it.
///
/// # Errors
/// `schema` is no schema: says why.
pub fn build_validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::draft202012::options()
        .offline()
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| error.to_string())
}
