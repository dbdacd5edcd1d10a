//! The JSON form of a plan: written with a version, read with every check that the types cannot express.

use std::collections::BTreeSet;
use std::fmt;

use schemars::Schema;
use serde::Deserialize;

use crate::{Body, Pipeline, Plan};

/// The version of the format that this build writes, and the newest it reads.
pub const VERSION: u32 = 1;

/// The longest name of a step or pipeline, in bytes: files are named after them, and events hold two.
pub const LONGEST_NAME: usize = 100;

/// The plan as JSON: two-space indentation, one final newline, the same bytes for the same plan.
pub fn write(plan: &Plan) -> String {
    let mut text = serde_json::to_string_pretty(plan).expect("a plan has string keys only");
    text.push('\n');
    text
}

/// Reads a plan.
///
/// # Errors
/// Says what is wrong and where: not JSON, a newer version, a field that does not fit, a name that nothing declares.
pub fn read(text: &str) -> Result<Plan, ReadError> {
    #[derive(Deserialize)]
    struct Head {
        version: u32,
    }
    let head: Head = serde_json::from_str(text).map_err(ReadError::Malformed)?;
    if head.version > VERSION {
        return Err(ReadError::Newer { found: head.version });
    }
    let plan: Plan = serde_json::from_str(text).map_err(ReadError::Malformed)?;
    validate(&plan)?;
    Ok(plan)
}

/// The JSON Schema (draft 2020-12) that every written plan satisfies.
pub fn schema() -> Schema {
    schemars::schema_for!(Plan)
}

/// Why a text is not a plan that this build can run.
#[derive(Debug)]
pub enum ReadError {
    /// Not JSON, or not of a plan's shape.
    Malformed(serde_json::Error),
    /// Written by a newer swarmc.
    Newer {
        /// The version found.
        found: u32,
    },
    /// A name that nothing in the plan declares, or one declared twice.
    Inconsistent(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Malformed(error) => write!(f, "the plan is malformed: {error}"),
            ReadError::Newer { found } => {
                write!(f, "the plan has version {found}, and this swarmc reads up to {VERSION}: update swarmc")
            }
            ReadError::Inconsistent(problem) => write!(f, "the plan is inconsistent: {problem}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Malformed(error) => Some(error),
            ReadError::Newer { .. } | ReadError::Inconsistent(_) => None,
        }
    }
}

fn validate(plan: &Plan) -> Result<(), ReadError> {
    unique("pipeline", plan.pipelines.iter().map(|pipeline| &pipeline.name))?;
    short("pipeline", plan.pipelines.iter().map(|pipeline| &pipeline.name))?;
    unique("agent", plan.agents.iter().map(|agent| &agent.name))?;
    unique("provider", plan.providers.iter().map(|provider| &provider.name))?;
    if plan.pipeline(&plan.default).is_none() {
        return inconsistent(format!("the default pipeline `{}` is not in it", plan.default));
    }
    for agent in &plan.agents {
        if plan.provider(&agent.provider).is_none() {
            return inconsistent(format!(
                "agent `{}` uses provider `{}`, which is not in it",
                agent.name, agent.provider
            ));
        }
    }
    plan.pipelines.iter().try_for_each(|pipeline| validate_pipeline(plan, pipeline))
}

fn validate_pipeline(plan: &Plan, pipeline: &Pipeline) -> Result<(), ReadError> {
    unique("step", pipeline.steps.iter().map(|step| &step.name))?;
    short("step", pipeline.steps.iter().map(|step| &step.name))?;
    let names: BTreeSet<&str> = pipeline.steps.iter().map(|step| step.name.as_str()).collect();
    let known = |step: &str, from: &str| match names.contains(step) {
        true => Ok(()),
        false => {
            inconsistent(format!("`{from}` of pipeline `{}` names step `{step}`, which is not in it", pipeline.name))
        }
    };
    if pipeline.iteration.max == 0 || pipeline.parallelism == 0 || pipeline.concurrency == Some(0) {
        return inconsistent(format!("pipeline `{}` has a count of 0", pipeline.name));
    }
    for step in &pipeline.steps {
        if step.concurrency == Some(0) {
            return inconsistent(format!("step `{}` has a count of 0", step.name));
        }
        for need in &step.needs {
            known(&need.step, &step.name)?;
        }
        for source in step.inputs.values() {
            known(source, &step.name)?;
        }
        if let Body::Prompt(body) = &step.body
            && plan.agent(&body.agent).is_none()
        {
            return inconsistent(format!("step `{}` uses agent `{}`, which is not in it", step.name, body.agent));
        }
    }
    pipeline.iteration.handles.iter().try_for_each(|step| known(step, "until"))?;
    pipeline.result.iter().try_for_each(|step| known(step, "result"))?;
    acyclic(pipeline)
}

/// Kahn's algorithm: a plan with a cycle in it could never end.
fn acyclic(pipeline: &Pipeline) -> Result<(), ReadError> {
    let index: std::collections::BTreeMap<&str, usize> =
        pipeline.steps.iter().enumerate().map(|(index, step)| (step.name.as_str(), index)).collect();
    let mut dependants = vec![Vec::new(); pipeline.steps.len()];
    let mut open: Vec<usize> = pipeline.steps.iter().map(|step| step.needs.len()).collect();
    for (position, step) in pipeline.steps.iter().enumerate() {
        for need in &step.needs {
            dependants[index[need.step.as_str()]].push(position);
        }
    }
    let mut ready: Vec<usize> = (0..open.len()).filter(|&position| open[position] == 0).collect();
    let mut settled = 0;
    while let Some(position) = ready.pop() {
        settled += 1;
        for &dependant in &dependants[position] {
            open[dependant] -= 1;
            if open[dependant] == 0 {
                ready.push(dependant);
            }
        }
    }
    match settled == pipeline.steps.len() {
        true => Ok(()),
        false => inconsistent(format!("steps of pipeline `{}` wait for each other", pipeline.name)),
    }
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), ReadError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return inconsistent(format!("{what} `{name}` stands twice"));
        }
    }
    Ok(())
}

fn short<'a>(what: &str, mut names: impl Iterator<Item = &'a String>) -> Result<(), ReadError> {
    match names.find(|name| name.len() > LONGEST_NAME) {
        Some(name) => {
            let beginning: String = name.chars().take(20).collect();
            inconsistent(format!("the name of {what} `{beginning}…` is longer than {LONGEST_NAME} bytes"))
        }
        None => Ok(()),
    }
}

fn inconsistent<T>(problem: String) -> Result<T, ReadError> {
    Err(ReadError::Inconsistent(problem))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A plan of two steps, the second needing the first.
    fn plan() -> Value {
        let origin = json!({ "file": "flow.kdl", "line": 1, "column": 1 });
        let step = |name: &str, needs: Value| {
            json!({
                "name": name, "needs": needs, "body": { "run": { "argv": ["echo", name] } },
                "output": { "max_bytes": 102_400 }, "grace_ms": 30_000, "origin": origin,
                "concurrency": 1, "retry": { "times": 0, "backoff_ms": 1000, "max_backoff_ms": 300_000 },
            })
        };
        let need = json!([{ "step": "draft", "when": "success", "origin": origin }]);
        json!({
            "version": VERSION, "workflow": "flow", "default": "main", "sources": [],
            "pipelines": [{
                "name": "main", "parallelism": 1, "result": ["review"], "origin": origin,
                "iteration": { "max": 1, "on_failure": "stop", "exhausted": "fail" },
                "steps": [step("draft", json!([])), step("review", need)],
            }],
        })
    }

    /// What reading says of the plan with `value` at `place`.
    fn refused(place: &str, value: Value) -> String {
        let mut plan = plan();
        *plan.pointer_mut(place).expect("the plan has this place") = value;
        read(&plan.to_string()).expect_err("the plan is wrong").to_string()
    }

    #[test]
    fn what_is_written_is_read_and_written_alike() {
        let first = write(&read(&plan().to_string()).unwrap());
        assert_eq!(write(&read(&first).unwrap()), first);
    }

    #[test]
    fn a_newer_plan_is_refused_whatever_else_is_in_it() {
        let error = read(r#"{ "version": 2, "shape": "unknown" }"#).unwrap_err().to_string();
        assert_eq!(error, "the plan has version 2, and this swarmc reads up to 1: update swarmc");
    }

    #[test]
    fn names_must_hold_and_waiting_must_end() {
        let need = |step: &str| {
            let origin = json!({ "file": "flow.kdl", "line": 1, "column": 1 });
            json!([{ "step": step, "when": "success", "origin": origin }])
        };
        assert!(refused("/default", json!("other")).contains("the default pipeline `other` is not in it"));
        assert!(refused("/pipelines/0/result/0", json!("gone")).contains("names step `gone`"));
        assert!(refused("/pipelines/0/steps/1/needs", need("gone")).contains("names step `gone`"));
        assert!(refused("/pipelines/0/steps/0/name", json!("review")).contains("step `review` stands twice"));
        assert!(refused("/pipelines/0/steps/0/needs", need("review")).contains("wait for each other"));
        assert!(refused("/pipelines/0/parallelism", json!(0)).contains("a count of 0"));
        assert!(refused("/pipelines/0/steps/0/concurrency", json!(0)).contains("a count of 0"));
        assert!(refused("/workflow", json!(1)).contains("the plan is malformed"));
        assert!(read("{").unwrap_err().to_string().contains("the plan is malformed"));
    }
}
