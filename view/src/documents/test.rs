//! What `swarmc test --format json` prints.

use schemars::JsonSchema;
use serde::Serialize;

use super::Version;
use super::check::Span;

/// What `swarmc test --format json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Tests {
    /// The version of this form.
    pub version: Version,
    /// The tests, spec by spec.
    pub tests: Vec<TestCase>,
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// The specs whose tests did not take place, as they have errors.
    pub specs_with_errors: usize,
}

/// A test.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TestCase {
    /// Its spec, as one would type it in the folder that swarmc ran in.
    pub spec: String,
    /// Its name.
    pub test: String,
    /// How it went.
    pub status: TestStatus,
    /// The processes and turns that it would have started.
    pub launches: u64,
    /// The turns of agents among these.
    pub turns: u64,
    /// What does not hold.
    pub failures: Vec<Failure>,
}

/// How a test went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestStatus {
    /// Everything holds that it expects.
    Passed,
    /// Something does not.
    Failed,
}

/// Something that does not hold.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Failure {
    /// What does not hold.
    pub message: String,
    /// The expectation, or the fake.
    pub at: Span,
    /// What that place is.
    pub label: String,
    /// What was found instead, in lines; may be empty.
    pub details: String,
    /// What to type.
    pub help: Option<String>,
}
