//! Whom the steps of a pipeline can reach along its edges.
//!
//! In: a pipeline. Out: to whom a step may hand over, whom it may have started, and how much may come to it. The run and
//! what is said before it ask the same.

use std::collections::HashMap;

use crate::{Body, Edge, EdgeKind, Join, Pipeline, Response, Step, When};

/// The edges of a pipeline, and what its steps wait for.
#[derive(Clone, Debug)]
pub struct Reach<'p> {
    pipeline: &'p Pipeline,
    /// Where each step stands: the steps around it, the outermost first, and itself.
    ways: HashMap<&'p str, Vec<&'p Step>>,
    /// The edges of each step, in their order.
    edges: HashMap<&'p str, Vec<&'p Edge>>,
    /// The number of each step.
    numbers: HashMap<&'p str, usize>,
    /// What each step needs, by number, and whether that has certainly run where the step does.
    needs: Vec<Vec<(usize, bool)>>,
}

impl<'p> Reach<'p> {
    /// Of a pipeline. It costs nothing where that has no edges.
    pub fn of(pipeline: &'p Pipeline) -> Reach<'p> {
        let (mut ways, mut edges, mut numbers) = (HashMap::new(), HashMap::<_, Vec<_>>::new(), HashMap::new());
        let mut steps = Vec::new();
        if !pipeline.edges.is_empty() {
            let mut open: Vec<Vec<&'p Step>> = pipeline.steps.iter().map(|step| vec![step]).collect();
            while let Some(way) = open.pop() {
                let last = way[way.len() - 1];
                open.extend(last.body.steps().iter().map(|step| [way.as_slice(), &[step]].concat()));
                ways.insert(last.name.as_str(), way);
                numbers.insert(last.name.as_str(), steps.len());
                steps.push(last);
            }
        }
        for edge in &pipeline.edges {
            edges.entry(edge.from.as_str()).or_default().push(edge);
            if edge.to != edge.from {
                edges.entry(edge.to.as_str()).or_default().push(edge);
            }
        }
        let needs = steps.iter().map(|step| {
            // Whatever runs waited for all its needs. What was skipped may have been so before its own needs had ended.
            let needs = step.needs.iter().filter_map(|need| {
                let ran = need.when == When::Success && (step.join == Join::All || !need.declared);
                Some((*numbers.get(need.step.as_str())?, ran))
            });
            needs.collect()
        });
        let needs = needs.collect();
        Reach { pipeline, ways, edges, numbers, needs }
    }

    /// Whom a step may hand over to, in the order of their names. Who has ended by then is not among them.
    pub fn receivers(&self, step: &str) -> Vec<String> {
        self.named(step, |edge| {
            let back = edge.to == step && (edge.both || edge.response != Response::None && self.is_one(&edge.from));
            match edge.kind {
                EdgeKind::Handoff | EdgeKind::Signal if edge.from == step => Some(&edge.to),
                EdgeKind::Handoff | EdgeKind::Signal if back => Some(&edge.from),
                EdgeKind::Spawn if back && !edge.both => Some(&edge.from),
                EdgeKind::Handoff | EdgeKind::Signal | EdgeKind::Spawn => None,
            }
        })
    }

    /// Whom a step may have started, in the order of their names.
    pub fn spawns(&self, step: &str) -> Vec<String> {
        self.named(step, |edge| (edge.kind == EdgeKind::Spawn && edge.from == step).then_some(&edge.to))
    }

    /// Whether an edge leads to a step or away from it.
    pub fn talks(&self, step: &str) -> bool {
        self.edges.contains_key(step)
    }

    /// The envelopes that may come to a step at most, refusals of whom it wanted to be started included. What people
    /// write comes on top.
    pub fn letters(&self, step: &str) -> u64 {
        let leads = |edge: &&Edge| edge.leads_to(step) || edge.kind == EdgeKind::Spawn && edge.from == step;
        self.of_step(step).filter(leads).map(|edge| u64::from(edge.most())).sum()
    }

    /// Whether a step begins only when another one has ended for good, so that it can hand nothing to it: it waits for
    /// it, and no round comes after in which both run again.
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

    fn named(&self, step: &str, other: impl Fn(&'p Edge) -> Option<&'p String>) -> Vec<String> {
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
