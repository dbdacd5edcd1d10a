//! How far a run is, for people: the steps that do something, wherever they are.
//!
//! Loops, for-eaches and calls count as what is inside of them, a loop with one round of it, an item that is not there
//! yet as one. So the whole grows when a list turns out to be long, and is all done when the run has ended.

use super::State;
use super::frame::{Inner, Phase};
use crate::core::graph::{Graph, Key, Kind};

/// How many steps have settled in the current rounds, and how many there are, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Those that have settled.
    pub done: u64,
    /// All of them.
    pub total: u64,
}

impl State {
    /// How far the run is.
    pub fn progress(&self) -> Progress {
        let sizes = region_sizes(&self.graph);
        let mut progress = Progress::default();
        // Frames inside of frames, not nested calls: how deep they lie is up to the plan.
        let mut open: Vec<u32> = (0..self.graph.instances).collect();
        while let Some(frame) = open.pop() {
            if self.frame(frame).steps.is_empty() {
                progress.add(0, sizes[self.frame(frame).region as usize]);
            }
            for step in (0..).take(self.frame(frame).steps.len()) {
                self.count_step(Key { frame, step }, &sizes, &mut progress, &mut open);
            }
        }
        progress
    }

    fn count_step(&self, key: Key, sizes: &[u64], progress: &mut Progress, open: &mut Vec<u32>) {
        let settled = matches!(self.step(key).phase, Phase::Settled(_));
        let (done, total) = match (self.node(key).kind, self.step(key).inner.as_deref()) {
            (_, Some(Inner::Frame(frame))) => {
                open.push(*frame);
                (0, 0)
            }
            (_, Some(Inner::Closed(size))) => (0, *size),
            (Kind::Each { region, .. }, Some(Inner::Each(each))) => {
                open.extend(each.open.values());
                let begun = u64::from(each.count_ended()) + each.open.len() as u64;
                let waiting = u64::from(each.count).saturating_sub(begun);
                (each.size, each.size.saturating_add(waiting.saturating_mul(sizes[region as usize])))
            }
            (kind, _) => (0, kind_size(kind, &self.graph, sizes)),
        };
        progress.add(if settled { total } else { done }, total);
    }

    /// How many steps one that is about to be closed had.
    pub(super) fn size(&self, key: Key) -> u64 {
        match self.step(key).inner.as_deref() {
            Some(Inner::Frame(frame)) => {
                let steps = (0..).take(self.frame(*frame).steps.len());
                steps.fold(0, |sum: u64, step| sum.saturating_add(self.size(Key { frame: *frame, step })))
            }
            // A for-each over nothing is a step all the same.
            Some(Inner::Each(each)) => each.size.max(1),
            Some(Inner::Closed(size)) => *size,
            None => 1,
        }
    }
}

impl Progress {
    fn add(&mut self, done: u64, total: u64) {
        self.done = self.done.saturating_add(done);
        self.total = self.total.saturating_add(total);
    }
}

/// The steps of each region, what is inside of them included.
fn region_sizes(graph: &Graph) -> Vec<u64> {
    let mut sizes = vec![0; graph.regions.len()];
    // A region comes before those inside of it, and mostly before those that it calls. Calls never go in a circle.
    for _ in 0..=graph.scopes.len() {
        let before = sizes.clone();
        for (number, region) in graph.regions.iter().enumerate().rev() {
            sizes[number] =
                region.nodes.iter().fold(0, |sum: u64, node| sum.saturating_add(kind_size(node.kind, graph, &sizes)));
        }
        if sizes == before {
            break;
        }
    }
    sizes
}

fn kind_size(kind: Kind, graph: &Graph, sizes: &[u64]) -> u64 {
    match kind {
        Kind::Task | Kind::Value | Kind::Stop(_) | Kind::Gate(_) => 1,
        Kind::Loop(region) | Kind::Each { region, .. } => sizes[region as usize],
        Kind::Call(scope) => sizes[graph.scope(scope).region as usize],
    }
}
