//! One pipeline of a plan as the scheduler sees it: steps by number, the edges between them, the limits.
//!
//! In: a plan and the name of a pipeline. Out: a [`Graph`] that never changes. Invariant: every number in it is in
//! range, so the core never looks a name up except for the step of an event.

use std::collections::HashMap;
use std::sync::Arc;

use swarmc_plan::{
    Body, Effect, Exhausted, Join, Need, OnFailure, Pipeline, Plan, RoundFailure, Step, StopStatus, When,
};
use thiserror::Error;

use crate::{Content, StepId};

/// The steps of all instances together at most: what the state holds in memory is proportional to it.
pub const MAX_STEPS: u64 = 10_000_000;

/// A pipeline, ready to be scheduled.
#[derive(Debug)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) instances: u32,
    pub(crate) rounds: Rounds,
    pub(crate) concurrency: u32,
    pub(crate) fail_fast: bool,
    /// The steps with a concurrency of their own: their limits, in declaration order.
    pub(crate) lanes: Vec<u32>,
    result: Vec<u32>,
    index: HashMap<Arc<str>, u32>,
}

/// How the pipeline repeats.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub(crate) max: u32,
    pub(crate) until: bool,
    pub(crate) on_failure: RoundFailure,
    pub(crate) exhausted: Exhausted,
}

/// A step of the pipeline.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: Arc<str>,
    pub(crate) needs: Vec<Edge>,
    /// How many of the needs are declared ones.
    pub(crate) declared: u32,
    /// The steps that need this one; `other` is the dependant.
    pub(crate) dependants: Vec<Edge>,
    pub(crate) join: Join,
    pub(crate) conditional: bool,
    pub(crate) kind: Kind,
    /// A failure counts as a skip.
    pub(crate) lenient: bool,
    /// A failure is handled whatever runs after it: an `until` reads it, or a default stands in for the output.
    pub(crate) forgiven: bool,
    pub(crate) default: Option<Content>,
    pub(crate) retry: swarmc_plan::Retry,
    /// Its number in [`Graph::lanes`].
    pub(crate) lane: Option<u32>,
}

/// What starting a step means for the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It takes a slot.
    Task,
    /// It is computed at once.
    Value,
    /// It ends the pipeline.
    Stop(StopStatus),
}

/// A need, seen from either end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) other: u32,
    pub(crate) when: When,
    pub(crate) declared: bool,
    pub(crate) handles: bool,
}

/// A step of one instance, by number; both count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) instance: u32,
    pub(crate) step: u32,
}

/// Why a plan cannot be scheduled as asked.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum GraphError {
    /// The plan has no such pipeline.
    #[error("the plan has no pipeline `{0}`")]
    NoPipeline(String),
    /// The pipeline has no such step.
    #[error("pipeline `{pipeline}` has no step `{step}`")]
    NoStep {
        /// The pipeline.
        pipeline: String,
        /// The step asked for, or needed.
        step: String,
    },
    /// More steps than [`MAX_STEPS`].
    #[error("pipeline `{pipeline}` has {steps} steps in all its instances, and {MAX_STEPS} are the most")]
    TooLarge {
        /// The pipeline.
        pipeline: String,
        /// The steps of all instances.
        steps: u64,
    },
}

impl Graph {
    /// The graph of `pipeline`; with `task`, of that one step outside its pipeline: no needs, no `when`, one round.
    ///
    /// `processors` is the concurrency of a pipeline that declares none, at least 1.
    ///
    /// # Errors
    /// Names what is not in the plan, or says that the pipeline is too large.
    pub fn new(plan: &Plan, pipeline: &str, task: Option<&str>, processors: u32) -> Result<Graph, GraphError> {
        let pipeline = plan.pipeline(pipeline).ok_or_else(|| GraphError::NoPipeline(pipeline.to_owned()))?;
        match task {
            Some(task) => single(pipeline, task, processors),
            None => whole(pipeline, processors),
        }
    }

    /// How many steps the pipeline has, in one instance and round.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the pipeline has no step.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many instances of the pipeline run.
    pub fn instances(&self) -> u32 {
        self.instances
    }

    /// How many steps run at once at most.
    pub fn concurrency(&self) -> u32 {
        self.concurrency
    }

    /// The names of the steps, in declaration order.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.nodes.iter().map(|node| &node.name)
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    pub(crate) fn node(&self, step: u32) -> &Node {
        &self.nodes[step as usize]
    }

    pub(crate) fn result(&self) -> &[u32] {
        &self.result
    }

    pub(crate) fn id(&self, key: Key, iteration: u32) -> StepId {
        StepId { name: Arc::clone(&self.node(key.step).name), iteration, instance: key.instance + 1 }
    }
}

fn whole(pipeline: &Pipeline, processors: u32) -> Result<Graph, GraphError> {
    let steps = pipeline.steps.len() as u64 * u64::from(pipeline.parallelism.max(1));
    if steps.max(u64::from(pipeline.parallelism)) > MAX_STEPS {
        return Err(GraphError::TooLarge { pipeline: pipeline.name.clone(), steps });
    }
    let index = (0..).zip(&pipeline.steps).map(|(number, step)| (Arc::from(step.name.as_str()), number)).collect();
    let find = |name: &str| find(&index, pipeline, name);
    let mut lanes = Vec::new();
    let mut nodes = Vec::with_capacity(pipeline.steps.len());
    for step in &pipeline.steps {
        let needs = step.needs.iter().map(|need| Ok(edge(find(&need.step)?, need))).collect::<Result<_, _>>()?;
        nodes.push(node(step, needs, &mut lanes));
    }
    for step in 0..nodes.len() {
        for need in nodes[step].needs.clone() {
            nodes[need.other as usize].dependants.push(Edge { other: step as u32, ..need });
        }
    }
    for name in &pipeline.iteration.handles {
        nodes[find(name)? as usize].forgiven = true;
    }
    let result = pipeline.result.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
    Ok(Graph {
        nodes,
        instances: pipeline.parallelism.max(1),
        rounds: Rounds {
            max: pipeline.iteration.max.max(1),
            until: !pipeline.iteration.until.is_empty(),
            on_failure: pipeline.iteration.on_failure,
            exhausted: pipeline.iteration.exhausted,
        },
        concurrency: pipeline.concurrency.unwrap_or(processors).max(1),
        fail_fast: pipeline.fail_fast,
        lanes,
        result,
        index,
    })
}

fn single(pipeline: &Pipeline, task: &str, processors: u32) -> Result<Graph, GraphError> {
    let step = pipeline.steps.iter().find(|step| step.name == task);
    let step = step.ok_or_else(|| no_step(pipeline, task))?;
    let mut lanes = Vec::new();
    let mut node = node(step, Vec::new(), &mut lanes);
    node.conditional = false;
    Ok(Graph {
        index: HashMap::from([(Arc::clone(&node.name), 0)]),
        nodes: vec![node],
        instances: 1,
        rounds: Rounds { max: 1, until: false, on_failure: RoundFailure::Stop, exhausted: Exhausted::Fail },
        concurrency: processors.max(1),
        fail_fast: false,
        lanes,
        result: vec![0],
    })
}

fn node(step: &Step, needs: Vec<Edge>, lanes: &mut Vec<u32>) -> Node {
    let lane = step.concurrency.map(|limit| {
        lanes.push(limit.max(1));
        lanes.len() as u32 - 1
    });
    Node {
        name: Arc::from(step.name.as_str()),
        declared: needs.iter().filter(|need| need.declared).count() as u32,
        needs,
        dependants: Vec::new(),
        join: step.join,
        conditional: step.when.is_some(),
        kind: match &step.body {
            Body::Prompt(_) | Body::Run(_) | Body::Call(_) | Body::Swarm(_) | Body::Gate(_) | Body::Loop(_) => {
                Kind::Task
            }
            Body::Value(_) | Body::Fields(_) => Kind::Value,
            Body::Stop { status, .. } => Kind::Stop(*status),
        },
        lenient: step.on_failure == OnFailure::Skip,
        forgiven: step.output.default.is_some(),
        default: step.output.default.clone().map(Content::Text),
        retry: step.retry.clone(),
        lane,
    }
}

fn edge(other: u32, need: &Need) -> Edge {
    Edge { other, when: need.when, declared: need.declared, handles: need.effect == Effect::Handles }
}

fn find(index: &HashMap<Arc<str>, u32>, pipeline: &Pipeline, name: &str) -> Result<u32, GraphError> {
    index.get(name).copied().ok_or_else(|| no_step(pipeline, name))
}

fn no_step(pipeline: &Pipeline, step: &str) -> GraphError {
    GraphError::NoStep { pipeline: pipeline.name.clone(), step: step.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::build;

    #[test]
    fn a_step_outside_its_pipeline_needs_nothing_and_runs_once() {
        let mut pipeline = build::repeated("a \n b when retry=2 < a", 5);
        pipeline.parallelism = 3;
        pipeline.result = vec!["a".to_owned()];
        let graph = Graph::new(&build::plan(pipeline), "main", Some("b"), 2).unwrap();
        assert_eq!(graph.names().map(|name| &**name).collect::<Vec<_>>(), ["b"]);
        assert_eq!((graph.instances, graph.rounds.max, graph.rounds.until), (1, 1, false));
        let node = graph.node(0);
        assert_eq!((node.needs.len(), node.conditional, node.retry.times, graph.result()), (0, false, 2, &[0][..]));
    }

    #[test]
    fn what_the_plan_does_not_have_is_named() {
        let error = |name: &str, task: Option<&str>| {
            Graph::new(&build::plan(build::pipeline("a")), name, task, 1).unwrap_err().to_string()
        };
        assert_eq!(error("other", None), "the plan has no pipeline `other`");
        assert_eq!(error("main", Some("b")), "pipeline `main` has no step `b`");
        let dangling = Graph::new(&build::plan(build::pipeline("a < b")), "main", None, 1).unwrap_err();
        assert_eq!(dangling.to_string(), "pipeline `main` has no step `b`");
    }

    #[test]
    fn a_plan_that_no_memory_could_hold_is_refused() {
        let mut pipeline = build::pipeline("a \n b");
        pipeline.parallelism = u32::MAX;
        assert!(matches!(Graph::new(&build::plan(pipeline), "main", None, 1), Err(GraphError::TooLarge { .. })));
    }

    #[test]
    fn the_driver_s_processors_are_the_limit_where_none_is_declared() {
        let mut pipeline = build::pipeline("a");
        pipeline.concurrency = None;
        assert_eq!(Graph::new(&build::plan(pipeline), "main", None, 6).unwrap().concurrency(), 6);
    }
}
