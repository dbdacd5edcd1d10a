//! Snapshots: the state of a run as JSON, so that a reader of a long run needs the records behind it alone.
//!
//! In: a state, at any record. Out: a text, and from it and the graph of the plan the same state again. Invariant:
//! `fold(a ++ b)` equals `restore(snapshot(fold(a)))` folded with `b`, for every cut of a run's records. What the plan says
//! is not in it ([`FromPlan`]). A snapshot is read by the build that wrote it: what it holds is no format to keep.

use std::ops::Deref;
use std::sync::Arc;

use super::graph::{Graph, Key};
use super::state::State;

/// What the plan says: a snapshot leaves it out, and [`State::restore`] puts it back.
#[derive(Debug)]
pub(crate) struct FromPlan<T>(Option<Arc<T>>);

impl<T> Default for FromPlan<T> {
    fn default() -> FromPlan<T> {
        FromPlan(None)
    }
}

impl<T> From<Arc<T>> for FromPlan<T> {
    fn from(said: Arc<T>) -> FromPlan<T> {
        FromPlan(Some(said))
    }
}

impl<T> Deref for FromPlan<T> {
    type Target = Arc<T>;

    fn deref(&self) -> &Arc<T> {
        self.0.as_ref().expect("a state has its plan before others see it")
    }
}

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// It is not the JSON that this build writes.
    #[error("it is damaged or of another build: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// It is of another plan.
    #[error("it does not fit the plan: {0}")]
    OtherPlan(&'static str),
}

impl State {
    /// The state as JSON.
    pub fn snapshot(&self) -> String {
        serde_json::to_string(self).expect("every map in it has texts, numbers or pairs as keys")
    }

    /// The state of a [`snapshot`](State::snapshot) of a run of `graph`.
    ///
    /// # Errors
    /// It is damaged, of another build, or of another plan.
    pub fn restore(graph: Arc<Graph>, snapshot: &str) -> Result<State, SnapshotError> {
        let mut state: State = serde_json::from_str(snapshot)?;
        state.graph = graph.into();
        state.check_fit().map_err(SnapshotError::OtherPlan)?;
        for (key, swarm_state) in &mut state.swarms {
            let region = state.frames[key.frame as usize].region;
            let rules = state.graph.region(region).nodes[key.step as usize].swarm.clone();
            swarm_state.swarm.rules = rules.ok_or(SnapshotError::OtherPlan("a step runs no swarm"))?.into();
        }
        Ok(state)
    }

    /// Whether the frames are those of the plan, and every step that is named is in one of them.
    fn check_fit(&self) -> Result<(), &'static str> {
        if self.frames.len() < self.graph.instances as usize {
            return Err("it has fewer instances");
        }
        for frame in &self.frames {
            let Some(region) = self.graph.regions.get(frame.region as usize) else {
                return Err("it has another region");
            };
            if !frame.steps.is_empty() && frame.steps.len() != region.nodes.len() {
                return Err("a region has other steps");
            }
        }
        let is_there = |key: &Key| {
            let frame = self.frames.get(key.frame as usize);
            frame.is_some_and(|frame| (key.step as usize) < frame.steps.len())
        };
        self.swarms.keys().all(is_there).then_some(()).ok_or("a swarm has no step")
    }
}

/// Maps whose keys are no texts, as lists of pairs in the order of the keys.
pub mod pairs {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the pairs.
    ///
    /// # Errors
    /// One of them cannot be written.
    pub fn serialize<M, K, V, S>(map: &M, serializer: S) -> Result<S::Ok, S::Error>
    where
        for<'a> &'a M: IntoIterator<Item = (&'a K, &'a V)>,
        K: Ord + Serialize,
        V: Serialize,
        S: Serializer,
    {
        let mut pairs: Vec<(&K, &V)> = map.into_iter().collect();
        pairs.sort_by_key(|&(key, _)| key);
        pairs.serialize(serializer)
    }

    /// Reads the pairs.
    ///
    /// # Errors
    /// They are no such list.
    pub fn deserialize<'de, M, K, V, D>(deserializer: D) -> Result<M, D::Error>
    where
        M: FromIterator<(K, V)>,
        K: Deserialize<'de>,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?.into_iter().collect())
    }
}
