//! The artifacts of steps: what packs name, and what envelopes refer to.
//!
//! Kept by activation, like inboxes, so that steps of one call never see those of another. Bounded: the oldest are
//! forgotten first, and stay on disk.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::State;
use crate::core::graph::{Key, StepRef};
use crate::types::artifact::{ArtifactKind, ArtifactMeta, REMEMBERED, Stored};

/// The artifacts that are known.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct ArtifactIndex(VecDeque<Entry>);

#[derive(Debug, Deserialize, Serialize)]
struct Entry {
    /// The activation and the step that it is of.
    scope: u32,
    spot: StepRef,
    kept: ArtifactMeta,
}

impl State {
    /// The artifacts of one kind that a step of an activation left, the oldest first.
    pub(crate) fn artifacts(
        &self,
        scope: u32,
        spot: StepRef,
        kind: ArtifactKind,
    ) -> impl Iterator<Item = &ArtifactMeta> {
        let fits = move |thing: &&Entry| thing.scope == scope && thing.spot == spot && thing.kept.kind == kind;
        self.artifact_index.0.iter().filter(fits).map(|thing| &thing.kept)
    }

    /// The first context pack that an attempt of a step was given.
    pub(crate) fn pack_of(&self, key: Key, attempt: u32) -> Option<&ArtifactMeta> {
        let (of, pack) = self.step(key).pack.as_deref()?;
        (*of == attempt).then_some(pack)
    }

    /// Whether what the attempt of a step changed, since it last began, is recorded.
    pub(crate) fn has_changes(&self, key: Key, attempt: u32) -> bool {
        let step = self.step(key);
        step.attempt == attempt && step.has_changes
    }

    /// What a reference means in an activation.
    pub(crate) fn find_artifact(&self, scope: u32, to: Stored<'_>) -> Option<&ArtifactMeta> {
        let fits = |thing: &&Entry| thing.scope == scope && thing.kept.kind == to.kind && *thing.kept.id == *to.id;
        self.artifact_index.0.iter().rev().find(fits).map(|thing| &thing.kept)
    }

    pub(super) fn artifact_stored(&mut self, key: Key, attempt: u32, kept: &ArtifactMeta) {
        self.note_change(key, kept);
        if kept.kind == ArtifactKind::Diff && self.step(key).attempt == attempt {
            self.step_mut(key).has_changes = true;
        }
        if kept.kind == ArtifactKind::ContextPack {
            let pack = &mut self.step_mut(key).pack;
            // An attempt that begins again after a kill is given its packs anew.
            if pack.as_deref().is_none_or(|(of, first)| *of != attempt || first.pack == kept.pack) {
                *pack = Some(Box::new((attempt, kept.clone())));
            }
        }
        let (scope, spot) = self.address(key);
        if self.artifact_index.0.len() == REMEMBERED {
            self.artifact_index.0.pop_front();
        }
        self.artifact_index.0.push_back(Entry { scope, spot, kept: kept.clone() });
    }

    /// The place of an activation is free for another one.
    pub(super) fn clear_shelf(&mut self, scope: u32) {
        self.artifact_index.0.retain(|thing| thing.scope != scope);
    }
}
