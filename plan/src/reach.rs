//! The steps that each step of a pipeline can reach along its edges.
//!
//! In: a pipeline. Out: the steps that a step may send to or spawn, and how many envelopes it may receive. The compiler
//! and the run both use it.

use std::collections::HashMap;

use crate::{Body, Edge, EdgeKind, Join, Pipeline, Response, Step, When};

/// The edges of a pipeline, and what its steps wait for.
#[derive(Clone, Debug)]
pub struct Reach<'p> {
    pipeline: &'p Pipeline,
    /// The path of each step: the steps around it, the outermost first, and itself.
    ways: HashMap<&'p str, Vec<&'p Step>>,
    /// The edges of each step, in their order.
    edges: HashMap<&'p str, Vec<&'p Edge>>,
    /// The number of each step.
    numbers: HashMap<&'p str, usize>,
    /// What each step needs, by number, and whether that has certainly run where the step does.
    needs: Vec<Vec<(usize, bool)>>,
}

impl<'p> Reach<'p> {
    /// Builds it for a pipeline. It costs nothing if the pipeline has no edges.
    pub fn from_pipeline(pipeline: &'p Pipeline) -> Reach<'p> {
        let (mut ways, mut edges, mut numbers) = (HashMap::new(), HashMap::<_, Vec<_>>::new(), HashMap::new());
        let mut steps = Vec::new();
        if !pipeline.edges.is_empty() {
            let mut open: Vec<Vec<&'p Step>> = pipeline.steps.iter().map(|step| vec![step]).collect();
            while let Some(way) = open.pop() {
                // A way begins with a step, and only grows.
                let last = way[way.len() - 1];
                open.extend(last.body.loop_steps().iter().map(|step| [way.as_slice(), &[step]].concat()));
                ways.insert(last.name.as_str(), way);
                numbers.insert(last.name.as_str(), steps.len());
                steps.push(last);
            }
        }
        for edge in &pipeline.edges {
            edges.entry(edge.from.as_str()).or_default().push(edge);
            // An edge from a step to itself would stand in its list twice, and count twice.
            if edge.to != edge.from {
                edges.entry(edge.to.as_str()).or_default().push(edge);
            }
        }
        let needs = steps.iter().map(|step| {
            // A step that runs has waited for all its needs. A skipped one may have settled before its own needs ended.
            let needs = step.needs.iter().filter_map(|need| {
                let ran = need.when == When::Success && (step.join == Join::All || !need.declared);
                Some((*numbers.get(need.step.as_str())?, ran))
            });
            needs.collect()
        });
        let needs = needs.collect();
        Reach { pipeline, ways, edges, numbers, needs }
    }

    /// The steps that a step may send to, sorted by name, without those that have ended by then.
    pub fn receivers(&self, step: &str) -> Vec<String> {
        self.collect_names(step, |edge| {
            let back = edge.to == step && (edge.both || edge.response != Response::None && self.is_one(&edge.from));
            match edge.kind {
                EdgeKind::Handoff | EdgeKind::Signal if edge.from == step => Some(&edge.to),
                EdgeKind::Handoff | EdgeKind::Signal if back => Some(&edge.from),
                EdgeKind::Spawn if back && !edge.both => Some(&edge.from),
                EdgeKind::Handoff | EdgeKind::Signal | EdgeKind::Spawn => None,
            }
        })
    }

    /// The steps that a step may spawn, sorted by name.
    pub fn spawn_targets(&self, step: &str) -> Vec<String> {
        self.collect_names(step, |edge| (edge.kind == EdgeKind::Spawn && edge.from == step).then_some(&edge.to))
    }

    /// Whether an edge leads to a step or away from it.
    pub fn has_edges(&self, step: &str) -> bool {
        self.edges.contains_key(step)
    }

    /// The envelopes that a step may receive at most, refusals of its spawn requests included. Messages of people come
    /// on top.
    pub fn max_envelopes(&self, step: &str) -> u64 {
        let leads = |edge: &&Edge| edge.leads_to(step) || edge.kind == EdgeKind::Spawn && edge.from == step;
        self.of_step(step).filter(leads).map(|edge| u64::from(edge.max_envelopes())).sum()
    }

    /// Whether a step begins only after another one has ended for good, so that it cannot send to it: it waits for it,
    /// and no later round runs both again.
    pub fn is_late(&self, step: &str, receiver: &str) -> bool {
        let (Some(from), Some(to)) = (self.ways.get(step), self.ways.get(receiver)) else { return false };
        let shared = from.iter().zip(to).take_while(|(one, other)| one.name == other.name).count();
        let (Some(&waiting), Some(&awaited)) = (from.get(shared), to.get(shared)) else { return false };
        let repeats = |step: &&Step| matches!(&step.body, Body::Loop(body) if body.iteration.max > 1);
        if self.pipeline.iteration.max > 1 || from[..shared].iter().any(repeats) {
            return false;
        }
        let [waiting, awaited] = [waiting, awaited].map(|step| self.numbers[step.name.as_str()]);
        let (mut open, mut seen) = (vec![waiting], vec![false; self.needs.len()]);
        while let Some(step) = open.pop() {
            for &(need, ran) in &self.needs[step] {
                if need == awaited {
                    return true;
                }
                if ran && !std::mem::replace(&mut seen[need], true) {
                    open.push(need);
                }
            }
        }
        false
    }

    /// The edges that lead to a step or away from it.
    fn of_step(&self, step: &str) -> impl Iterator<Item = &'p Edge> + '_ {
        self.edges.get(step).into_iter().flatten().copied()
    }

    fn collect_names(&self, step: &str, other: impl Fn(&'p Edge) -> Option<&'p String>) -> Vec<String> {
        let found = self.of_step(step).filter_map(other);
        let mut names: Vec<String> =
            found.filter(|name| self.ways.contains_key(name.as_str()) && !self.is_late(step, name)).cloned().collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn is_one(&self, step: &str) -> bool {
        self.ways.get(step).and_then(|way| way.last()).is_some_and(|step| step.for_each.is_none())
    }
}
