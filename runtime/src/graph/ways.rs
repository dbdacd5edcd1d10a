//! Who may hand over to whom in a pipeline: its edges, by the numbers of its steps.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use swarmc_plan::{EdgeKind, Pipeline, Response};

use super::Spot;

/// A way that envelopes take from one step to another.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) from: Spot,
    pub(crate) to: Spot,
    pub(crate) kind: EdgeKind,
    pub(crate) response: Response,
    /// The envelopes at most, in one activation of the pipeline.
    pub(crate) max: u32,
    /// The edge in the plan that it comes from.
    pub(crate) edge: usize,
    /// It leads against its edge: only answers take it.
    pub(crate) answers: bool,
}

/// The ways of a pipeline.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    pub(crate) list: Vec<Way>,
    /// The numbers of those that lead away from each step.
    away: BTreeMap<Spot, Vec<usize>>,
}

impl Ways {
    pub(super) fn new(pipeline: &Pipeline, names: &HashMap<Arc<str>, Spot>) -> Ways {
        let mut list = Vec::new();
        for (number, edge) in pipeline.edges.iter().enumerate() {
            let ends = [&edge.from, &edge.to].map(|name| names.get(name.as_str()).copied());
            let [Some(from), Some(to)] = ends else { continue };
            let max = edge.most();
            let (kind, response) = (edge.kind, edge.response);
            list.push(Way { from, to, kind, response, max, edge: number, answers: false });
            match (edge.both, response) {
                (true, _) => list.push(Way { from: to, to: from, kind, response, max, edge: number, answers: false }),
                (false, Response::None) => {}
                (false, _) => {
                    let response = Response::None;
                    // What answers the first payload of a task is no first payload.
                    let kind = if kind == EdgeKind::Spawn { EdgeKind::Handoff } else { kind };
                    list.push(Way { from: to, to: from, kind, response, max, edge: number, answers: true });
                }
            }
        }
        let mut away: BTreeMap<Spot, Vec<usize>> = BTreeMap::new();
        for (number, way) in list.iter().enumerate() {
            away.entry(way.from).or_default().push(number);
        }
        Ways { list, away }
    }

    /// Whether anybody may hand over anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The ways that lead away from a step, with their numbers.
    pub(crate) fn from(&self, spot: Spot) -> impl Iterator<Item = (usize, &Way)> {
        self.away.get(&spot).into_iter().flatten().map(|&number| (number, &self.list[number]))
    }
}
