//! What a plan from a file must satisfy beyond the shape of its JSON: everything that the compiler guarantees of a plan
//! that it writes, and that the runtime relies on.
//!
//! In: a plan whose types fit. Out: the first thing that is wrong, with the place in the JSON that it stands at. What
//! needs another library to judge (expressions, JSON Schemas) is handed out as a [`Piece`]. Nothing here recurses on
//! names: how deep the plan nests is bounded before anything walks it.

mod declarations;
mod place;
mod steps;
mod swarm;
mod texts;

use serde_json::Value;

use crate::json::ReadError;
use crate::{Body, Expression, Param, ParamType, Pipeline, Plan, Schema, Step, Template};
use place::{Place, ROOT, find_cycle};

/// The longest name of a step or pipeline, in bytes: files are named after them, and events hold two.
pub const LONGEST_NAME: usize = 100;

/// The longest name of a pool of workers, in bytes: it is a part of keys and addresses.
pub const LONGEST_POOL: usize = 64;
/// The pool of what names none.
pub const DEFAULT_POOL: &str = "default";

/// Whether a pool may have this name: `[A-Za-z0-9_-]{1,64}`.
pub fn is_pool_name(text: &str) -> bool {
    (1..=LONGEST_POOL).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// The further attempts, agents of a swarm, and whatever else is counted in these at most.
const THOUSAND: u32 = 1000;
/// The repairs of one answer at most.
const MOST_REPAIRS: u32 = 10;
/// The longest time, in milliseconds, and the largest amount of anything else: sums of some of them still fit.
const MOST: u64 = i64::MAX as u64;
/// Keywords of a schema whose schemas hold for the same value, so that a circle of references through them never ends.
const SAME_VALUE: [&str; 7] = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else"];

/// A part of a plan that has a language of its own.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'p> {
    /// A minijinja expression.
    Expression(&'p Expression),
    /// A text with minijinja in it.
    Template(&'p Template),
    /// A JSON Schema; its references lead into the types of the plan.
    Schema(&'p Schema),
    /// A value as JSON, and what it must satisfy.
    Literal(&'p str, &'p Schema),
}

/// Says what is wrong with a piece.
pub type Judge<'p> = &'p dyn Fn(&Plan, Piece<'_>) -> Result<(), String>;

type Checked = Result<(), ReadError>;

/// The first thing that is wrong with `plan`.
pub(crate) fn validate_plan(plan: &Plan, judge: Judge<'_>) -> Checked {
    Validator { plan, judge }.check_plan()
}

struct Validator<'p> {
    plan: &'p Plan,
    judge: Judge<'p>,
}

/// Where a template is rendered.
#[derive(Clone, Copy)]
struct Reader<'p> {
    /// The pipeline, of a text of one.
    pipeline: Option<&'p Pipeline>,
    /// The step, of a text of one.
    step: Option<&'p Step>,
}

/// A text that no pipeline alone reads.
const ANYWHERE: Reader<'static> = Reader { pipeline: None, step: None };

impl Validator<'_> {
    fn check_plan(&self) -> Checked {
        let plan = self.plan;
        ROOT.field("version").ensure_holds(plan.version > 0, || "versions count from 1".to_owned())?;
        ROOT.field("pipelines").check_names("pipeline", plan.pipelines.iter().map(|pipeline| &pipeline.name))?;
        ROOT.field("swarms").check_names("swarm", plan.swarms.iter().map(|swarm| &swarm.name))?;
        for (index, pipeline) in plan.pipelines.iter().enumerate() {
            // A swarm that runs by itself is a pipeline too ([`Plan::with_swarms`]).
            let alone = plan.swarm(&pipeline.name).map(crate::swarm::wrap_swarm);
            ROOT.field("pipelines").index(index).ensure_holds(alone.is_none_or(|alone| alone == *pipeline), || {
                format!("pipeline or swarm `{}` is declared twice", pipeline.name)
            })?;
        }
        ROOT.field("packs").check_names("context pack", plan.packs.iter().map(|pack| &pack.name))?;
        ROOT.field("agents").check_names("agent", plan.agents.iter().map(|agent| &agent.name))?;
        ROOT.field("providers").check_names("provider", plan.providers.iter().map(|provider| &provider.name))?;
        ROOT.field("tool_servers").check_names("tool server", plan.tool_servers.iter().map(|server| &server.name))?;
        let known = plan.pipeline(&plan.default).is_some() || plan.swarm(&plan.default).is_some();
        ROOT.field("default")
            .ensure_holds(known, || format!("the plan does not declare the default pipeline `{}`", plan.default))?;
        if let Some(path) = &plan.docs_root {
            ROOT.field("docs_root").check_path(path)?;
        }
        self.check_types()?;
        self.check_params(&ROOT.field("params"), &plan.params)?;
        self.check_declarations()?;
        for (index, pipeline) in plan.pipelines.iter().enumerate() {
            self.check_pipeline(&ROOT.field("pipelines").index(index), pipeline)?;
        }
        for (index, swarm) in plan.swarms.iter().enumerate() {
            self.check_swarm(&ROOT.field("swarms").index(index), swarm)?;
        }
        self.check_packs()?;
        self.check_calls()
    }

    fn check_types(&self) -> Checked {
        let place = ROOT.field("$defs");
        for (name, schema) in &self.plan.types {
            self.check_schema(&place.field(name), schema)?;
        }
        let same = |schema: &Schema| {
            let (mut found, mut open) = (Vec::new(), vec![&schema.0]);
            while let Some(Value::Object(fields)) = open.pop() {
                let name = fields.get("$ref").and_then(Value::as_str).and_then(referenced_type);
                found.extend(name.map(str::to_owned));
                for inner in SAME_VALUE.iter().filter_map(|word| fields.get(*word)) {
                    open.extend(inner.as_array().map_or(std::slice::from_ref(inner), Vec::as_slice));
                }
            }
            found
        };
        match find_cycle(self.plan.types.iter().map(|(name, schema)| (name.as_str(), same(schema)))) {
            Some(name) => place.field(name).fail_with(format!("type `{name}` refers only to itself")),
            None => Ok(()),
        }
    }

    fn check_schema(&self, place: &Place<'_>, schema: &Schema) -> Checked {
        let mut open = vec![&schema.0];
        while let Some(value) = open.pop() {
            match value {
                Value::Array(items) => open.extend(items),
                Value::Object(fields) => {
                    if let Some(Value::String(path)) = fields.get("$ref") {
                        let known = referenced_type(path).is_some_and(|name| self.plan.types.contains_key(name));
                        place.ensure_holds(known, || format!("refers to `{path}`, which is no type of the plan"))?;
                    }
                    open.extend(fields.values());
                }
                _ => {}
            }
        }
        self.check_piece(place, Piece::Schema(schema))
    }

    fn check_piece(&self, place: &Place<'_>, piece: Piece<'_>) -> Checked {
        (self.judge)(self.plan, piece).or_else(|problem| place.fail_with(problem))
    }

    fn check_params(&self, place: &Place<'_>, params: &[Param]) -> Checked {
        place.check_names("parameter", params.iter().map(|param| &param.name))?;
        for (index, param) in params.iter().enumerate() {
            let place = place.index(index);
            if let ParamType::Json(schema) = &param.kind {
                self.check_schema(&place.field("type").field("json"), schema)?;
            }
            let Some(default) = &param.default else { continue };
            let place = place.field("default");
            let (fits, noun) = match &param.kind {
                ParamType::Int => (default.parse::<i64>().is_ok(), "whole number"),
                // Rust reads `inf` and `NaN` as well.
                ParamType::Float => (default.parse::<f64>().is_ok_and(f64::is_finite), "number"),
                ParamType::Bool => (default.parse::<bool>().is_ok(), "boolean"),
                ParamType::Json(schema) => {
                    self.check_piece(&place, Piece::Literal(default, schema))?;
                    continue;
                }
                ParamType::String | ParamType::File | ParamType::Dir => continue,
            };
            place.ensure_holds(fits, || format!("`{default}` is not a {noun}"))?;
        }
        Ok(())
    }

    /// A pipeline that calls itself, directly or through others, could never end.
    fn check_calls(&self) -> Checked {
        let called = |pipeline: &Pipeline| {
            let calls = pipeline.all_steps().filter_map(|step| match &step.body {
                Body::Call(call) => Some(call.pipeline.clone()),
                _ => None,
            });
            calls.collect()
        };
        match find_cycle(self.plan.pipelines.iter().map(|pipeline| (&*pipeline.name, called(pipeline)))) {
            Some(name) => ROOT.field("pipelines").fail_with(format!("pipeline `{name}` calls itself")),
            None => Ok(()),
        }
    }
}

/// The type that a reference leads to.
fn referenced_type(path: &str) -> Option<&str> {
    path.strip_prefix("#/$defs/")
}
