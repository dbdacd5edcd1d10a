//! What templates and people read of the state: steps by name, as a step of some frame sees them.
//!
//! A name means the step of that name in the same pipeline. From inside of a loop the steps around it are seen, from
//! outside those of its last round; of a for-each only the whole, except by the item itself.

use super::State;
use super::frame::{Detail, Each, Inner, Past, Phase, Step};
use crate::core::graph::{Key, Node, StepRef};
use crate::types::event::{Content, Status, StepId};

/// What a step of one round left for others to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading<'a> {
    /// How it ended; none while it has not.
    pub status: Option<Status>,
    /// Its output; where it failed or was skipped, the default it declares.
    pub output: Option<&'a Content>,
    /// The exit code of its last attempt.
    pub exit: Option<i32>,
    /// Why its last attempt failed: the tail of its stderr, or the runner's words.
    pub error: Option<&'a str>,
    /// Of a for-each: the items that failed.
    pub errors: Option<&'a Content>,
    /// What its last attempt wrote to both streams, where something reads that.
    pub log: Option<&'a Content>,
    /// What its agent left in its folder.
    pub files: Option<&'a Content>,
}

impl State {
    /// What a step left in a round; none for rounds other than the current one and the one before, and for unknown
    /// names.
    pub fn read_step(&self, name: &str, instance: u32, iteration: u32) -> Option<Reading<'_>> {
        let number = self.frame_of(instance, None)?;
        let current = self.frame(number).iteration;
        if iteration == 0 || current == 0 {
            None
        } else if iteration == current {
            self.read_from_frame(number, name)
        } else if iteration + 1 == current {
            self.look_back(number, name)
        } else {
            None
        }
    }

    /// The value of an instance (from 1): the output of the first step of the `result` that succeeded in the last round.
    pub fn instance_value(&self, instance: u32) -> Option<&Content> {
        self.value_of(self.frame_of(instance, None)?)
    }

    /// The same of the frame of any pipeline.
    pub(crate) fn value_of(&self, frame: u32) -> Option<&Content> {
        let scope = self.graph.scope(self.region(frame).scope);
        let readings = scope.result.iter().filter_map(|&spot| self.read_below(frame, spot));
        readings.into_iter().find(|reading| reading.status == Some(Status::Succeeded))?.output
    }

    /// The outputs of all steps that succeeded in the rounds that are there.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (StepId, &Content)> {
        (0..).zip(&self.frames).flat_map(move |(number, frame)| {
            (0..).zip(&frame.steps).filter_map(move |(step, settled)| {
                let succeeded = settled.status() == Some(Status::Succeeded);
                let output = settled.detail.as_ref().filter(|_| succeeded)?.output.as_ref()?;
                Some((self.id(Key { frame: number, step }), output))
            })
        })
    }

    /// What a step of a frame sees of the step called `name`.
    pub(crate) fn read_from_frame(&self, mut frame: u32, name: &str) -> Option<Reading<'_>> {
        let spot = self.graph.scope(self.region(frame).scope).find(name)?;
        loop {
            let region = self.region(frame);
            if region.is_item && *region.nodes[0].name == *name {
                return self.read_below(frame, StepRef { region: self.frame(frame).region, step: 0 });
            }
            if self.graph.contains_region(self.frame(frame).region, spot.region) {
                return self.read_below(frame, spot);
            }
            frame = self.frame(frame).parent?.frame;
        }
    }

    /// What it sees of that step in the round before: of the innermost loop or pipeline that holds both.
    pub(crate) fn look_back(&self, mut frame: u32, name: &str) -> Option<Reading<'_>> {
        let spot = self.graph.scope(self.region(frame).scope).find(name)?;
        while self.region(frame).is_item || !self.graph.contains_region(self.frame(frame).region, spot.region) {
            frame = self.frame(frame).parent?.frame;
        }
        let way = self.path_to_step(self.frame(frame).region, spot);
        let mut round = &self.frame(frame).previous;
        for &StepRef { step, .. } in &way[..way.len() - 1] {
            round = &round.get(step as usize)?.inside;
        }
        let past = round.get(spot.step as usize)?;
        let node = &self.graph.region(spot.region).nodes[spot.step as usize];
        Some(make_reading(node, Some(past.status), past.detail.as_deref()))
    }

    /// The for-each that an item of it, or something inside the item, belongs to, and the item's position.
    pub(crate) fn enclosing_item(&self, mut frame: u32) -> Option<(Key, &Each, u32)> {
        loop {
            let found = self.frame(frame);
            match (found.item, found.parent) {
                (Some(item), Some(parent)) => return Some((parent, self.step(parent).each()?, item)),
                // A called pipeline sees its parameters, not the item that it is called for.
                (None, Some(parent)) if found.scope != frame => frame = parent.frame,
                _ => return None,
            }
        }
    }

    /// The items around a frame, the innermost first, also those for which a pipeline is called: each with its for-each.
    pub(crate) fn items_around(&self, mut frame: u32) -> Vec<(&Each, u32)> {
        let mut items = Vec::new();
        while let Some(parent) = self.frame(frame).parent {
            items.extend(self.frame(frame).item.and_then(|item| Some((self.step(parent).each()?, item))));
            frame = parent.frame;
        }
        items
    }

    /// The steps from a region down to `spot`.
    fn path_to_step(&self, region: u32, spot: StepRef) -> Vec<StepRef> {
        let mut way = vec![spot];
        let mut at = spot;
        while at.region != region
            && let Some(parent) = self.graph.region(at.region).parent
        {
            at = parent;
            way.push(at);
        }
        way.reverse();
        way
    }

    /// Reads a step at or below a frame.
    fn read_below(&self, mut frame: u32, spot: StepRef) -> Option<Reading<'_>> {
        let node = &self.graph.region(spot.region).nodes[spot.step as usize];
        let way = self.path_to_step(self.frame(frame).region, spot);
        for &StepRef { step, .. } in &way[..way.len() - 1] {
            let around: &Step = self.frame(frame).steps.get(step as usize)?;
            match (around.inner.as_deref(), around.phase) {
                (Some(Inner::Frame(inner)), _) => frame = *inner,
                (Some(Inner::Each(_) | Inner::Closed(_)), _) => return None,
                // What is inside of a step that did not run did not run either.
                (None, Phase::Settled(_)) => return Some(make_reading(node, Some(Status::Skipped), None)),
                (None, _) => return Some(make_reading(node, None, None)),
            }
        }
        let step = self.frame(frame).steps.get(spot.step as usize)?;
        Some(make_reading(node, step.status(), step.detail.as_deref()))
    }
}

fn make_reading<'a>(node: &'a Node, status: Option<Status>, detail: Option<&'a Detail>) -> Reading<'a> {
    let default = node.default.as_ref();
    let output = detail.and_then(|detail| detail.output.as_ref());
    Reading {
        status,
        output: match status {
            Some(Status::Failed) => default.or(output),
            Some(Status::Skipped) => default,
            // A call may succeed without a value.
            Some(Status::Succeeded) => output.or(default),
            None => output,
        },
        exit: detail.and_then(|detail| detail.exit),
        error: detail.and_then(|detail| detail.error.as_deref()),
        errors: detail.and_then(|detail| detail.errors.as_ref()),
        log: detail.and_then(|detail| detail.log.as_ref()),
        files: detail.and_then(|detail| detail.files.as_deref()),
    }
}

impl Past {
    /// What is left of a step when its round is over.
    pub(crate) fn from_step(step: Step, inside: Vec<Past>) -> Past {
        Past { status: step.status().unwrap_or(Status::Skipped), detail: step.detail, inside }
    }
}
