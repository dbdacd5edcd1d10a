//! The edges of a pipeline: which step may send handoffs to which, by the numbers of its steps.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::kosaraju_scc;
use petgraph::graphmap::DiGraphMap;
use swarmc_plan::{EdgeKind, Pipeline, Reach, Response};

use super::{StepMap, StepRef};

/// A way that envelopes take from one step to another.
#[derive(Clone, Debug)]
pub(crate) struct HandoffEdge {
    pub(crate) from: StepRef,
    pub(crate) to: StepRef,
    pub(crate) kind: EdgeKind,
    pub(crate) response: Response,
    /// The envelopes at most, in one activation of the pipeline.
    pub(crate) max: u32,
    /// The edge in the plan that it comes from.
    pub(crate) edge: usize,
    /// It leads against its edge: only answers take it.
    pub(crate) answers: bool,
    /// Its receiver has ended for good before its sender begins.
    pub(crate) late: bool,
}

/// The ways of a pipeline.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    pub(crate) list: Vec<HandoffEdge>,
    /// The numbers of those that lead away from each step.
    away: BTreeMap<StepRef, Vec<usize>>,
    pub(crate) groups: Vec<Group>,
}

/// Steps that all reach each other, or one that does not reach itself. Between groups ways lead in one direction only.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) steps: Vec<StepRef>,
    /// The groups that a way leads to from this one, each once.
    pub(crate) next: Vec<u32>,
}

impl Ways {
    /// The ways of a pipeline, whose steps are one each, or `is_one` says that they run for each item.
    pub(super) fn new(pipeline: &Pipeline, names: &StepMap<StepRef>, is_one: impl Fn(StepRef) -> bool) -> Ways {
        let reach = Reach::from_pipeline(pipeline);
        let mut list = Vec::new();
        for (number, edge) in pipeline.edges.iter().enumerate() {
            let ends = [&edge.from, &edge.to].map(|name| names.get(name.as_str()).copied());
            let [Some(from), Some(to)] = ends else { continue };
            let max = edge.max_envelopes();
            let (kind, response) = (edge.kind, edge.response);
            let late = reach.is_late(&edge.from, &edge.to);
            let way = HandoffEdge { from, to, kind, response, max, edge: number, answers: false, late };
            let back = || HandoffEdge { from: to, to: from, late: reach.is_late(&edge.to, &edge.from), ..way.clone() };
            match (edge.both, response) {
                (true, _) => list.extend([way.clone(), back()]),
                // A for-each receives no envelopes, and so no answers.
                (false, _) if response == Response::None || !is_one(from) => list.push(way),
                (false, _) => {
                    // What answers the first payload of a task is no first payload.
                    let kind = if kind == EdgeKind::Spawn { EdgeKind::Handoff } else { kind };
                    list.extend([way.clone(), HandoffEdge { kind, response: Response::None, answers: true, ..back() }]);
                }
            }
        }
        let mut away: BTreeMap<StepRef, Vec<usize>> = BTreeMap::new();
        for (number, way) in list.iter().enumerate() {
            away.entry(way.from).or_default().push(number);
        }
        let groups = build_groups(&list);
        Ways { list, away, groups }
    }

    /// Whether no step may send a handoff.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The edges that lead away from a step, with their numbers.
    pub(crate) fn edges_from(&self, spot: StepRef) -> impl Iterator<Item = (usize, &HandoffEdge)> {
        self.away.get(&spot).into_iter().flatten().map(|&number| (number, &self.list[number]))
    }
}

fn build_groups(list: &[HandoffEdge]) -> Vec<Group> {
    let graph: DiGraphMap<StepRef, ()> = list.iter().map(|way| (way.from, way.to)).collect();
    let mut groups: Vec<Group> =
        // No `tarjan_scc`: it recurses, and a long chain of steps would overflow the stack.
        kosaraju_scc(&graph).into_iter().map(|steps| Group { steps, next: Vec::new() }).collect();
    let mut of = BTreeMap::new();
    for (group, number) in groups.iter().zip(0u32..) {
        of.extend(group.steps.iter().map(|&spot| (spot, number)));
    }
    for (group, number) in groups.iter_mut().zip(0..) {
        let reached = group.steps.iter().flat_map(|&spot| graph.neighbors(spot)).filter_map(|to| of.get(&to).copied());
        group.next = reached.filter(|&other| other != number).collect::<BTreeSet<u32>>().into_iter().collect();
    }
    groups
}
