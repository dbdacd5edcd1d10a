//! What changes in a folder while a turn goes on: a [`Watch`] compares it before and after, by Git or by its own index.
//!
//! In: a folder, and the turns that work in it. Out: a diff as an [`ArtifactMeta`](crate::types::artifact::ArtifactMeta).

mod diff;
mod git;
mod index;
mod kept;
mod read_budget;
mod snapshot;
mod version;

pub(crate) use diff::{Watch, Watches};
