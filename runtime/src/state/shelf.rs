//! The artifacts of steps: what packs name, and what envelopes refer to.
//!
//! Kept by activation, like inboxes, so that steps of one call never see those of another. Bounded: the oldest are
//! forgotten first, and stay on disk.

use std::collections::VecDeque;

use super::State;
use crate::artifact::{ArtifactKind, Kept, REMEMBERED, Stored};
use crate::graph::{Key, Spot};

/// The artifacts that are known.
#[derive(Debug, Default)]
pub(crate) struct Shelf(VecDeque<Thing>);

#[derive(Debug)]
struct Thing {
    /// The activation and the step that it is of.
    scope: u32,
    spot: Spot,
    kept: Kept,
}

impl State {
    /// The artifacts of one kind that a step of an activation left, the oldest first.
    pub(crate) fn artifacts(&self, scope: u32, spot: Spot, kind: ArtifactKind) -> impl Iterator<Item = &Kept> {
        let fits = move |thing: &&Thing| thing.scope == scope && thing.spot == spot && thing.kept.kind == kind;
        self.shelf.0.iter().filter(fits).map(|thing| &thing.kept)
    }

    /// The first context pack that an attempt of a step was given.
    pub(crate) fn pack_of(&self, key: Key, attempt: u32) -> Option<&Kept> {
        let (of, pack) = self.step(key).pack.as_deref()?;
        (*of == attempt).then_some(pack)
    }

    /// What a reference means in an activation.
    pub(crate) fn referred(&self, scope: u32, to: Stored<'_>) -> Option<&Kept> {
        let fits = |thing: &&Thing| thing.scope == scope && thing.kept.kind == to.kind && *thing.kept.id == *to.id;
        self.shelf.0.iter().rev().find(fits).map(|thing| &thing.kept)
    }

    pub(super) fn artifact_stored(&mut self, key: Key, attempt: u32, kept: &Kept) {
        self.note_change(key, kept);
        if kept.kind == ArtifactKind::ContextPack {
            let pack = &mut self.step_mut(key).pack;
            // An attempt that begins again after a kill is given its packs anew.
            if pack.as_deref().is_none_or(|(of, first)| *of != attempt || first.pack == kept.pack) {
                *pack = Some(Box::new((attempt, kept.clone())));
            }
        }
        let (scope, spot) = self.address(key);
        if self.shelf.0.len() == REMEMBERED {
            self.shelf.0.pop_front();
        }
        self.shelf.0.push_back(Thing { scope, spot, kept: kept.clone() });
    }

    /// The place of an activation is free for another one.
    pub(super) fn clear_shelf(&mut self, scope: u32) {
        self.shelf.0.retain(|thing| thing.scope != scope);
    }
}
