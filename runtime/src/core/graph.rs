//! The graph of a plan that the scheduler runs: steps by number, the edges between them, the limits.
//!
//! In: a plan and the name of a pipeline. Out: a [`Graph`] that never changes: a scope for each pipeline that runs or
//! is called, and in it a region for the pipeline itself, for each loop, and for the item of each for-each. Invariant:
//! every number in it is in range, so the core never looks a name up except for the step of an event.

mod build;
mod edges;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use swarmc_plan::{Budget, EachJoin, Exhausted, Join, Plan, Price, RequestTimeout, RoundFailure, StopStatus, When};
use thiserror::Error;

use crate::types::content::Content;

pub(crate) use build::AGENTS;
pub(crate) use edges::{Group, HandoffEdge, Ways};

/// The steps of all instances together at most: what the state holds in memory is proportional to it.
pub const MAX_STEPS: u64 = 10_000_000;

/// Values by the names of steps. A plan names its steps itself: nothing from outside chooses them, so that a hash without a
/// secret is enough.
pub(crate) type StepMap<V> = FxHashMap<Arc<str>, V>;

/// A pipeline, ready to be scheduled, and the pipelines that it calls.
#[derive(Debug)]
pub struct Graph {
    pub(crate) scopes: Vec<Scope>,
    pub(crate) regions: Vec<Region>,
    pub(crate) instances: u32,
    pub(crate) concurrency: u32,
    /// The pipeline that sets `concurrency`; none where none does, and only lanes have limits.
    pub(crate) declared_by: Option<Arc<str>>,
    pub(crate) fail_fast: bool,
    /// The budgets of the whole run, with what they are called.
    pub(crate) budgets: Vec<(String, Budget)>,
    /// The agents that have a budget or a price, by name.
    pub(crate) agents: BTreeMap<Arc<str>, Budgets>,
    /// Whether anything has a budget, so that it must be counted.
    pub(crate) has_budgets: bool,
    /// What becomes of a request that no person answers in time.
    pub(crate) on_timeout: Option<RequestTimeout>,
    /// What limits how many of some steps run at once.
    pub(crate) lanes: Vec<Limit>,
}

/// How many of some steps run at once.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) most: u32,
    pub(crate) of: LimitOf,
}

/// Which steps a limit is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LimitOf {
    /// The steps of one name.
    Step,
    /// Those of a called pipeline.
    Pipeline(Arc<str>),
    /// Commands, where the plan does not limit how many steps run at once.
    Commands,
    /// The same of agents.
    Agents,
    /// Those whose agents this provider reaches.
    Provider(Arc<str>),
}

/// What an agent may use, and what that costs.
#[derive(Clone, Debug)]
pub(crate) struct Budgets {
    pub(crate) budget: Option<Budget>,
    pub(crate) price: Option<Price>,
}

/// A pipeline: in it names are unique.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) pipeline: Arc<str>,
    /// The region of the pipeline itself.
    pub(crate) region: u32,
    pub(crate) result: Vec<StepRef>,
    pub(crate) fail_fast: bool,
    /// What a call of it may use.
    pub(crate) budget: Option<Budget>,
    pub(crate) ways: Ways,
    names: StepMap<StepRef>,
    order: Vec<Arc<str>>,
}

/// A list of steps that start and settle together.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) scope: u32,
    pub(crate) nodes: Vec<Node>,
    pub(crate) rounds: Rounds,
    /// The step that it is the inside of, in another region of its scope; none for a pipeline.
    pub(crate) parent: Option<StepRef>,
    /// Whether it is the item of a for-each: one step, which has the name of the for-each.
    pub(crate) is_item: bool,
    index: StepMap<u32>,
}

/// A step by its region and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub(crate) struct StepRef {
    pub(crate) region: u32,
    pub(crate) step: u32,
}

/// How a region repeats.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    pub(crate) max: u32,
    pub(crate) until: bool,
    pub(crate) on_failure: RoundFailure,
    pub(crate) exhausted: Exhausted,
}

impl Rounds {
    const ONCE: Rounds = Rounds { max: 1, until: false, on_failure: RoundFailure::Stop, exhausted: Exhausted::Success };
}

/// A step of a region.
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
    /// A failure is handled whatever runs after it: an `until` reads it, or a default replaces the output.
    pub(crate) forgiven: bool,
    /// It says `depends-on … when=always`, so that it runs also where a failure ends its loop or call.
    pub(crate) is_finally: bool,
    pub(crate) default: Option<Content>,
    pub(crate) retry: swarmc_plan::Retry,
    /// The agent that gets a turn to mend what failed, before the step runs once more.
    pub(crate) fix: Option<Arc<str>>,
    /// A person decides what becomes of its failure.
    pub(crate) escalates: bool,
    /// The agent of a prompt.
    pub(crate) agent: Option<Arc<str>>,
    /// The swarm that it runs.
    pub(crate) swarm: Option<Arc<crate::core::swarm::Rules>>,
    /// What it may use over all its attempts.
    pub(crate) budget: Option<Box<Budget>>,
    /// The conversation that its turns belong to.
    pub(crate) talk: Option<Box<SessionGroup>>,
    /// Its numbers in [`Graph::lanes`].
    pub(crate) lanes: [Option<u32>; 4],
    /// Envelopes may come to it, so that it can have further turns.
    pub(crate) wired: bool,
    /// It is only there when another step asks for it.
    pub(crate) spawned: bool,
    /// Its prompt reads its inbox, so that its first turn waits for an envelope.
    pub(crate) heeds: bool,
    /// So many turns in a row that come to the same hold it up; 0 is never.
    pub(crate) stall: u32,
    /// Its turns read what is sent to it, so that it wakes them.
    pub(crate) reads_inbox: bool,
    /// Its number among the [`Group`]s of its pipeline's ways, where any leads from it or to it: of an item, the
    /// for-each's.
    pub(crate) group: Option<u32>,
}

/// A conversation that several steps of a pipeline go on with.
#[derive(Clone, Debug)]
pub(crate) struct SessionGroup {
    /// The agent that is asked.
    pub(crate) agent: Arc<str>,
    /// The session's name.
    pub(crate) session: Arc<str>,
}

impl Node {
    /// The number of the attempt in which an agent mends what failed; the one after it is the step's last.
    pub(crate) fn fix_attempt(&self) -> Option<u32> {
        // Behind the first attempt and its retries.
        self.fix.as_ref().map(|_| self.retry.times.saturating_add(2))
    }

    /// The number of the attempt after which a person is asked: once, so that the attempt after it is the last.
    pub(crate) fn asks_after(&self) -> Option<u32> {
        self.escalates.then(|| self.retry.times.saturating_add(1))
    }
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
    /// It waits for an answer, so many milliseconds at most.
    Gate(Option<u64>),
    /// It holds the rounds of a region.
    Loop(u32),
    /// It holds one frame of a region for each item.
    Each {
        /// The region of one item.
        region: u32,
        /// How many at once.
        parallel: Option<u32>,
        /// What it needs of them.
        join: EachJoin,
    },
    /// It holds the rounds of another scope.
    Call(u32),
}

impl Kind {
    /// Whether other steps are inside of it.
    pub(crate) fn is_container(self) -> bool {
        matches!(self, Kind::Loop(_) | Kind::Each { .. } | Kind::Call(_))
    }
}

/// A need, seen from either end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) other: u32,
    pub(crate) when: When,
    pub(crate) declared: bool,
    pub(crate) handles: bool,
}

/// A step of a frame, by number; both count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(crate) struct Key {
    pub(crate) frame: u32,
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
    #[error("pipeline `{pipeline}` has {steps} steps in all its instances, but at most {MAX_STEPS} are allowed")]
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
        build::build_graph(plan, pipeline, task, processors)
    }

    /// How many steps the pipeline has, in one instance and round. What is inside of a step does not count.
    pub fn len(&self) -> usize {
        self.root().nodes.len()
    }

    /// Whether the pipeline has no step.
    pub fn is_empty(&self) -> bool {
        self.root().nodes.is_empty()
    }

    /// How many instances of the pipeline run.
    pub fn instances(&self) -> u32 {
        self.instances
    }

    /// How many steps run at once at most.
    pub fn concurrency(&self) -> u32 {
        self.concurrency
    }

    /// The names of the pipeline's own steps, in declaration order.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.root().nodes.iter().map(|node| &node.name)
    }

    pub(crate) fn region(&self, region: u32) -> &Region {
        &self.regions[region as usize]
    }

    pub(crate) fn scope(&self, scope: u32) -> &Scope {
        &self.scopes[scope as usize]
    }

    /// Whether `inner` lies in `outer`, or is it.
    pub(crate) fn contains_region(&self, outer: u32, mut inner: u32) -> bool {
        while inner != outer {
            match self.region(inner).parent {
                Some(parent) => inner = parent.region,
                None => return false,
            }
        }
        true
    }

    fn root(&self) -> &Region {
        self.region(self.scopes[0].region)
    }
}

impl Scope {
    /// The step of this name: of a for-each, the whole of it.
    pub(crate) fn find(&self, name: &str) -> Option<StepRef> {
        self.names.get(name).copied()
    }

    /// The name of every step, in declaration order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.order.iter()
    }
}

impl Region {
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::samples;

    #[test]
    fn a_step_outside_its_pipeline_needs_nothing_and_runs_once() {
        let mut pipeline = samples::repeated("a \n b when retry=2 < a", 5);
        pipeline.parallelism = 3;
        pipeline.result = vec!["a".to_owned()];
        let graph = Graph::new(&samples::plan(pipeline), "main", Some("b"), 2).unwrap();
        assert_eq!(graph.names().map(|name| &**name).collect::<Vec<_>>(), ["b"]);
        assert_eq!((graph.instances, graph.root().rounds.max, graph.root().rounds.until), (1, 1, false));
        let node = &graph.root().nodes[0];
        assert_eq!((node.needs.len(), node.conditional, node.retry.times), (0, false, 2));
        assert_eq!(graph.scopes[0].result, [StepRef { region: 0, step: 0 }]);
    }

    #[test]
    fn what_the_plan_does_not_have_is_named() {
        let error = |name: &str, task: Option<&str>| {
            Graph::new(&samples::plan(samples::pipeline("a")), name, task, 1).unwrap_err().to_string()
        };
        assert_eq!(error("other", None), "the plan has no pipeline `other`");
        assert_eq!(error("main", Some("b")), "pipeline `main` has no step `b`");
        let dangling = Graph::new(&samples::plan(samples::pipeline("a < b")), "main", None, 1).unwrap_err();
        assert_eq!(dangling.to_string(), "pipeline `main` has no step `b`");
    }

    #[test]
    fn a_plan_that_no_memory_could_hold_is_refused() {
        let mut pipeline = samples::pipeline("a \n b");
        pipeline.parallelism = u32::MAX;
        assert!(matches!(Graph::new(&samples::plan(pipeline), "main", None, 1), Err(GraphError::TooLarge { .. })));
    }

    #[test]
    fn the_driver_s_processors_limit_commands_where_nothing_is_declared() {
        let mut pipeline = samples::pipeline("a");
        let declared = Graph::new(&samples::plan(pipeline.clone()), "main", None, 6).unwrap();
        assert_eq!((declared.concurrency(), declared.lanes.len()), (4, 0));
        pipeline.concurrency = None;
        let graph = Graph::new(&samples::plan(pipeline), "main", None, 6).unwrap();
        assert_eq!(graph.concurrency(), 6 + 16, "agents beside commands");
        let lanes: Vec<(u32, &LimitOf)> = graph.lanes.iter().map(|limit| (limit.most, &limit.of)).collect();
        assert_eq!(lanes, [(6, &LimitOf::Commands), (16, &LimitOf::Agents)]);
    }
}
