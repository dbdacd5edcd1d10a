//! What a mended plan changes, and whether a run that has come so far can go on with it.
//!
//! In: the plan of a run and the one in its place. Out: what of it has changed, step by step, and a refusal that names
//! each step that has finished and is another one now. What has not finished may change, come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swarmc_plan::{Change, Part, Plan, compare_plans};

use super::Running;
use super::retry::Again;
use crate::core::reopened_records::Mark;
use crate::types::event::{Event, Record};

/// What of a step may change when it has finished: nothing that it came to depends on these.
const LIMITS: [&str; 6] = ["description", "timeout_ms", "idle_ms", "grace_ms", "budget", "concurrency"];

/// Steps that are named in a refusal.
const NAMED: usize = 20;

/// What is different.
pub(super) struct Changes<'a> {
    old: Running<'a>,
    new: Running<'a>,
    /// The fields of steps that are not the same, by pipeline and name; none where a step is gone.
    steps: BTreeMap<(String, String), Option<Vec<String>>>,
    types: BTreeSet<String>,
    agents: BTreeSet<String>,
}

pub(super) fn changes<'a>(old: Running<'a>, new: Running<'a>) -> Changes<'a> {
    let mut changes = Changes { old, new, steps: BTreeMap::new(), types: BTreeSet::new(), agents: BTreeSet::new() };
    if std::ptr::eq(old.plan, new.plan) {
        return changes;
    }
    let mut providers = BTreeSet::new();
    for difference in compare_plans(old.plan, new.plan) {
        let fields = match difference.change {
            Change::Changed(fields) => Some(fields.into_iter().map(|field| field.path).collect()),
            Change::Removed => None,
            Change::Added | Change::Moved(_) => continue,
        };
        match (difference.part, difference.pipeline) {
            (Part::Step, Some(pipeline)) => drop(changes.steps.insert((pipeline, difference.name), fields)),
            (Part::Type, _) => drop(changes.types.insert(difference.name)),
            (Part::Agent, _) => drop(changes.agents.insert(difference.name)),
            (Part::Provider, _) => drop(providers.insert(difference.name)),
            _ => {}
        }
    }
    let plays = old.plan.agents.iter().filter(|agent| providers.contains(&agent.provider));
    changes.agents.extend(plays.map(|agent| agent.name.clone()));
    changes.spread_types();
    changes
}

impl Changes<'_> {
    /// A type that holds one that has changed has changed as well.
    fn spread_types(&mut self) {
        loop {
            let holds = |(name, schema): &(&String, &swarmc_plan::Schema)| {
                !self.types.contains(*name) && self.types.iter().any(|inner| refers(&schema.0, inner))
            };
            let more: Vec<String> = self.old.plan.types.iter().filter(holds).map(|(name, _)| name.clone()).collect();
            if self.types.is_empty() || more.is_empty() {
                return;
            }
            self.types.extend(more);
        }
    }

    /// Whether a step is another one, or gone.
    pub(super) fn has(&self, pipeline: &str, step: &str) -> bool {
        self.fields(pipeline, step).is_some()
    }

    /// Whether a step that others are inside of is so much another one that it cannot go on with what they left.
    pub(super) fn restarts(&self, pipeline: &str, step: &str) -> bool {
        let stays = |field: &String| {
            let first = field.split(['.', '[']).next().unwrap_or_default();
            LIMITS.contains(&first)
                || first == "on_failure"
                || field.starts_with("body.loop")
                || first == "body" && self.is_each(pipeline, step)
        };
        match self.fields(pipeline, step) {
            None => false,
            Some(None) => true,
            Some(Some(fields)) => !fields.iter().all(stays),
        }
    }

    fn is_each(&self, pipeline: &str, name: &str) -> bool {
        let pipeline = self.old.plan.pipeline(pipeline);
        pipeline.is_some_and(|pipeline| pipeline.all_steps().any(|step| step.name == name && step.for_each.is_some()))
    }

    fn fields(&self, pipeline: &str, step: &str) -> Option<&Option<Vec<String>>> {
        self.steps.get(&(pipeline.to_owned(), step.to_owned()))
    }

    /// Refuses a plan that changes finished steps.
    pub(super) fn refuse(&self, run: &str, again: &Again) -> Result<(), String> {
        let found = again.finished.iter().filter_map(|(pipeline, step)| self.problem(pipeline, step));
        let mut problems: Vec<String> = found.collect();
        if problems.is_empty() {
            return Ok(());
        }
        if problems.len() > NAMED {
            let more = problems.len() - NAMED;
            problems.truncate(NAMED);
            problems.push(format!("and {more} more"));
        }
        Err(format!(
            "run `{run}` cannot continue with that spec, because it changes finished steps:\n  {}\nundo these changes, run these \
             steps again with `--retry STEP`, or start a new run with `swarmc run`",
            problems.join("\n  ")
        ))
    }

    /// How a finished step changed.
    fn problem(&self, pipeline: &str, name: &str) -> Option<String> {
        let place = |plan: &Plan| {
            let step = plan.pipeline(pipeline)?.all_steps().find(|step| step.name == name)?;
            Some(step.origin.to_string())
        };
        match self.fields(pipeline, name) {
            Some(None) => return Some(format!("`{name}` is gone (it was at {})", place(self.old.plan)?)),
            Some(Some(fields)) => {
                let is_meant = |field: &&String| !LIMITS.contains(&field.split(['.', '[']).next().unwrap_or_default());
                let fields: Vec<&str> = fields.iter().filter(is_meant).map(String::as_str).collect();
                if !fields.is_empty() {
                    return Some(format!("`{name}` at {}: {}", place(self.new.plan)?, fields.join(", ")));
                }
            }
            None => {}
        }
        let step = self.old.plan.pipeline(pipeline)?.all_steps().find(|step| step.name == name)?;
        let schema = step.output.schema.as_ref()?;
        let changed = self.types.iter().find(|name| refers(&schema.0, name))?;
        Some(format!("`{name}` at {}: its type `{changed}`", place(self.new.plan)?))
    }

    /// Refuses a plan that changes edges along which envelopes were sent.
    pub(super) fn refuse_letters(&self, kept: &[Record]) -> Result<(), String> {
        let sent = kept.iter().any(|record| matches!(record.event, Event::Sent { way: Some(_), .. }));
        let edges = |plan: &Plan| -> Vec<(String, serde_json::Value)> {
            let edge = |edge: &swarmc_plan::Edge| {
                let mut value = serde_json::to_value(edge).unwrap_or_default();
                // Its place in the spec does not matter.
                value.as_object_mut().and_then(|edge| edge.remove("origin"));
                value
            };
            let of =
                |pipeline: &swarmc_plan::Pipeline| (pipeline.name.clone(), pipeline.edges.iter().map(edge).collect());
            plan.pipelines.iter().map(of).collect()
        };
        match sent && edges(self.old.plan) != edges(self.new.plan) {
            false => Ok(()),
            true => Err(
                "that spec changes edges along which finished steps have sent: restore them, or start a new run with \
                         `swarmc run`"
                    .to_owned(),
            ),
        }
    }

    /// The results that stay although their definitions changed.
    pub(super) fn notices(&self, marks: &[Mark], finished: &BTreeSet<(Arc<str>, Arc<str>)>) -> Vec<String> {
        let mut notices = Vec::new();
        for agent in &self.agents {
            let plays = |(pipeline, name): &&(Arc<str>, Arc<str>)| {
                let pipeline = self.old.plan.pipeline(pipeline);
                let step = pipeline.and_then(|pipeline| pipeline.all_steps().find(|step| *step.name == **name));
                step.is_some_and(|step| matches!(&step.body, swarmc_plan::Body::Prompt(body) if body.agent == *agent))
            };
            let steps: Vec<String> = finished.iter().filter(plays).map(|(_, step)| format!("`{step}`")).collect();
            if !steps.is_empty() {
                notices.push(format!(
                    "that spec changes agent `{agent}`, whose earlier answers stay: {}",
                    steps.join(", ")
                ));
            }
        }
        let changed = self.new.pipeline.name.clone();
        let kept: BTreeSet<&str> = marks
            .iter()
            .filter(|mark| mark.inside && self.has(&changed, &mark.step.name))
            .map(|mark| &*mark.step.name)
            .collect();
        if !kept.is_empty() {
            let kept: Vec<String> = kept.into_iter().map(|name| format!("`{name}`")).collect();
            notices.push(format!("finished steps inside {} keep the definitions of the earlier spec", kept.join(", ")));
        }
        notices
    }
}

/// Whether a schema refers to a type.
fn refers(schema: &serde_json::Value, name: &str) -> bool {
    let wanted = format!("#/$defs/{name}");
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                if fields.get("$ref").and_then(|target| target.as_str()) == Some(&wanted) {
                    return true;
                }
                open.extend(fields.values());
            }
            serde_json::Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    false
}
