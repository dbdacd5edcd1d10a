//! Typed answers: reads the JSON value of the declared type from a text, or explains what is wrong with it in sentences
//! that a model and a person can act on.
//!
//! The types come from the plan, but the texts are untrusted: nothing here recurses on a text, and reading one takes
//! time in proportion to its length.

mod extract;
mod schema;
mod violation;
mod words;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;
use swarmc_plan::{Plan, Schema, build_validator};

pub(crate) use extract::find_candidates;
pub(crate) use words::{
    append_instruction, render_instruction, render_refusal_message, render_refusal_prompt, render_repair_message,
    render_repair_prompt,
};

/// The violations that are told at most.
pub(crate) const TOLD: usize = 10;

/// Of values longer than this, in bytes, only the first violation is looked for.
const LARGE: usize = 1 << 20;

/// A type of the plan, ready to hold answers against.
#[derive(Debug)]
pub(crate) struct OutputValidator {
    validator: Validator,
    /// The schema in one line, complete in itself.
    text: String,
    /// The same as providers take it that see to it themselves; none where they cannot.
    native: Option<String>,
    /// The schema again, where it has whole numbers.
    whole: Option<Value>,
}

/// What a text that is not of the type has wrong.
struct Misfit {
    violations: Vec<String>,
    /// Whether it is another kind of value altogether, a list for a record say.
    other_kind: bool,
}

/// Whether `value` fits a schema that is not of the plan; a schema that cannot be read accepts all values.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_value(schema: &Value, value: &Value) -> Result<(), Vec<String>> {
    let Ok(validator) = build_validator(schema) else { return Ok(()) };
    let misfit = violation::find_violations(&validator, value, false);
    if misfit.violations.is_empty() { Ok(()) } else { Err(misfit.violations) }
}

impl OutputValidator {
    /// The shape that `schema` describes, its references leading into `types`.
    ///
    /// # Errors
    /// It is no schema: says why.
    pub(crate) fn new(schema: &Schema, types: &BTreeMap<String, Schema>) -> Result<OutputValidator, String> {
        let document = schema::bundle_schema(schema, types);
        let validator = build_validator(&document).map_err(|error| format!("its type is no JSON Schema: {error}"))?;
        let native = schema::make_strict(&document).map(|strict| strict.to_string());
        let text = document.to_string();
        let whole = text.contains("\"integer\"").then_some(document);
        Ok(OutputValidator { validator, text, native, whole })
    }

    /// The schema in one line, for prompts.
    pub(crate) fn schema_text(&self) -> &str {
        &self.text
    }

    /// The schema for a provider that has the model keep to it. What such a schema cannot say is still checked.
    pub(crate) fn native(&self) -> Option<&str> {
        self.native.as_deref()
    }

    /// The value in `text`, as compact JSON: the whole text, its last fenced block or its last `{…}` or `[…]`,
    /// whichever is the first of the kind that the type asks for. A type of texts also takes the bare words.
    ///
    /// # Errors
    /// What is wrong with it, at most [`TOLD`] sentences and one that says that there are more.
    pub(crate) fn parse_answer(&self, text: &str) -> Result<String, Vec<String>> {
        let mut told: Option<Vec<String>> = None;
        let mut fault = None;
        for piece in extract::find_candidates(text) {
            let value = match serde_json::from_str::<Value>(piece) {
                Ok(value) => value,
                Err(error) => {
                    fault.get_or_insert(error.to_string());
                    continue;
                }
            };
            match self.fit_value(value, piece.len()) {
                Ok(value) => return Ok(self.store_value(value)),
                Err(misfit) if misfit.other_kind => _ = told.get_or_insert(misfit.violations),
                Err(misfit) => return Err(misfit.violations),
            }
        }
        let bare = Value::String(text.trim().to_owned());
        match self.fit_value(bare, text.len()) {
            Ok(value) => return Ok(self.store_value(value)),
            Err(misfit) if !misfit.other_kind => return Err(misfit.violations),
            Err(_) => {}
        }
        Err(told.unwrap_or_else(|| vec![describe_missing(text, fault)]))
    }

    /// A value that a command printed or a template computed, as compact JSON: itself where it is of the type. Else a
    /// text is read as an answer is, and a text within a record counts as what it says, a number say.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse_computed(&self, mut value: Value) -> Result<String, Vec<String>> {
        value.sort_all_objects();
        if self.validator.is_valid(&value) {
            return Ok(self.store_value(value));
        }
        if let Value::String(text) = &value {
            return self.parse_answer(text);
        }
        let misfit = match self.fit_value(value.clone(), 0) {
            Ok(value) => return Ok(self.store_value(value)),
            Err(misfit) => misfit,
        };
        let said = violation::parse_text_fields(&self.validator, value);
        match self.fit_value(said, 0) {
            Ok(value) => Ok(self.store_value(value)),
            Err(_) => Err(misfit.violations),
        }
    }

    /// A value of the type as compact JSON: a whole number is written without a fraction.
    fn store_value(&self, mut value: Value) -> String {
        if let Some(document) = &self.whole {
            schema::write_whole(document, document, &mut value);
        }
        value.to_string()
    }

    fn fit_value(&self, mut value: Value, length: usize) -> Result<Value, Misfit> {
        value.sort_all_objects();
        if self.validator.is_valid(&value) {
            return Ok(value);
        }
        let value = violation::without_nulls(&self.validator, value);
        match self.validator.is_valid(&value) {
            true => Ok(value),
            false => Err(violation::find_violations(&self.validator, &value, length > LARGE)),
        }
    }
}

/// A value as it is stored: compact JSON, the fields of records in the order of their names.
pub(crate) fn compact_json(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
}

/// The value of the type `schema` that `text` says, as compact JSON; references lead into `types`.
///
/// # Errors
/// What is wrong with it.
pub fn parse_typed(schema: &Schema, types: &BTreeMap<String, Schema>, text: &str) -> Result<String, Vec<String>> {
    let shape = OutputValidator::new(schema, types).map_err(|problem| vec![problem])?;
    shape.parse_computed(Value::String(text.to_owned()))
}

/// What to say of a text without a value in it.
fn describe_missing(text: &str, fault: Option<String>) -> String {
    match fault {
        _ if text.trim().is_empty() => "the answer is empty".to_owned(),
        Some(fault) => format!("there is no JSON value in the answer ({fault})"),
        None => "there is no JSON value in the answer".to_owned(),
    }
}

/// The shapes of a plan, each made when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Shapes(RefCell<BTreeMap<String, Arc<OutputValidator>>>);

impl Shapes {
    /// The shape of `schema`, a schema of `plan`.
    ///
    /// # Errors
    /// It is no schema: says why.
    pub(crate) fn validator_for(&self, schema: &Schema, plan: &Plan) -> Result<Arc<OutputValidator>, String> {
        // Steps with one type share its shape.
        let key = schema.0.to_string();
        if let Some(shape) = self.0.borrow().get(&key) {
            return Ok(Arc::clone(shape));
        }
        let shape = Arc::new(OutputValidator::new(schema, &plan.types)?);
        self.0.borrow_mut().insert(key, Arc::clone(&shape));
        Ok(shape)
    }
}

#[cfg(test)]
mod tests;
