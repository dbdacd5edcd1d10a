//! Which agent of a team changed which file, and who hears of it: table T4 of the design. There are no locks.
//!
//! In: changes of files in the worktrees of the team and beside them, intents and finished items. Out: notices for agents,
//! and conflicts for `decide` to record. A change counts for the `window` of the spec, and no longer than until its agent has
//! done an item. Invariant: an agent hears of changes in one turn as often as the spec says at most, and of one file and one
//! other agent once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::merge::WorkPlace;
use super::state::Swarm;
use crate::types::team::{ItemState, Touch};

/// The files that are remembered at most; the one that was changed longest ago is forgotten first.
const FILES: usize = 10_000;
/// The changes of one file that are remembered at most.
const CHANGES: usize = 20;

/// What an agent hears of: another agent, and the path of a file.
type About = (Arc<str>, Arc<str>);

/// What the agents of a team have changed, and are about to.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Touches {
    /// The latest changes of each file, by its path.
    files: BTreeMap<Arc<str>, VecDeque<Change>>,
    /// When each agent did its last item.
    finished: BTreeMap<Arc<str>, u64>,
    /// What each agent is about to do, with patterns of paths.
    pub(crate) intents: BTreeMap<Arc<str>, (String, Vec<String>)>,
    /// The turn of each agent in which it heard of changes last, and of which files of whom.
    noticed: BTreeMap<Arc<str>, (u32, BTreeSet<About>)>,
    /// Conflicts that are to be recorded.
    pub(super) conflicts: VecDeque<Conflict>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Change {
    agent: Arc<str>,
    /// The worktree of the team in which it was made.
    tree: Option<Arc<str>>,
    at: u64,
    touch: Touch,
}

/// Two agents that changed the same file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Conflict {
    pub agent: Arc<str>,
    pub with: Arc<str>,
    pub path: Arc<str>,
    /// Whether it is known that the lines are the same.
    pub certain: bool,
}

impl Touches {
    /// An agent has done an item: others may change what it changed.
    pub(super) fn finish_item(&mut self, agent: &Arc<str>, at: u64) {
        self.finished.insert(Arc::clone(agent), at);
        self.intents.remove(agent);
    }

    fn add(&mut self, change: Change) {
        let path = &change.touch.path;
        if self.files.len() >= FILES && !self.files.contains_key(path) {
            let oldest = self.files.iter().min_by_key(|(_, changes)| changes.back().map(|change| change.at));
            if let Some(oldest) = oldest.map(|(path, _)| Arc::clone(path)) {
                self.files.remove(&oldest);
            }
        }
        let changes = self.files.entry(Arc::clone(path)).or_default();
        changes.push_back(change);
        if changes.len() > CHANGES {
            changes.pop_front();
        }
    }

    /// The changes of a file by others that still count.
    fn list_others(&self, agent: &str, path: &str, (at, window_ms): (u64, u64)) -> impl Iterator<Item = &Change> {
        self.files.get(path).into_iter().flatten().filter(move |change| {
            *change.agent != *agent
                && at.saturating_sub(change.at) <= window_ms
                && self.finished.get(&change.agent).is_none_or(|finished| *finished <= change.at)
        })
    }

    /// The agents whose changes of a file in the same tree still count, and whether one of them overlaps; none: unknown.
    fn find_others(
        &self,
        (agent, tree): (&str, Option<&Arc<str>>),
        touch: &Touch,
        when: (u64, u64),
    ) -> BTreeMap<Arc<str>, Option<bool>> {
        let mut others: BTreeMap<Arc<str>, Option<bool>> = BTreeMap::new();
        for change in self.list_others(agent, &touch.path, when).filter(|change| change.tree.as_ref() == tree) {
            let overlaps = touch.overlaps(&change.touch);
            let known = others.entry(Arc::clone(&change.agent)).or_insert(overlaps);
            // Certain is more than unknown, and that more than apart.
            let rank = |overlaps: Option<bool>| overlaps.map_or(1, |yes| if yes { 2 } else { 0 });
            if rank(overlaps) > rank(*known) {
                *known = overlaps;
            }
        }
        others
    }

    /// The agents that have changed a file, as far as it is remembered.
    pub(super) fn list_authors(&self, path: &str) -> BTreeSet<Arc<str>> {
        self.files.get(path).into_iter().flatten().map(|change| Arc::clone(&change.agent)).collect()
    }

    /// The last change of a file by an agent.
    fn last_change(&self, path: &str, agent: &str) -> Option<&Touch> {
        let mut changes = self.files.get(path)?.iter().rev();
        changes.find(|change| *change.agent == *agent).map(|change| &change.touch)
    }

    /// Whether an agent may hear of a file of another one in this turn; from then on it has heard of it.
    fn count_notice(&mut self, receiver: &Arc<str>, (turn, most): (u32, u32), about: (&Arc<str>, &Arc<str>)) -> bool {
        let (last, noticed) = self.noticed.entry(Arc::clone(receiver)).or_default();
        if *last != turn {
            (*last, *noticed) = (turn, BTreeSet::new());
        }
        noticed.len() < most as usize && noticed.insert((Arc::clone(about.0), Arc::clone(about.1)))
    }
}

impl Swarm {
    /// An agent has changed a file.
    pub(super) fn file_touched(&mut self, agent: &Arc<str>, touch: &Touch, at: u64) {
        let tree: Option<Arc<str>> = match self.place_of(agent) {
            WorkPlace::Workspace => None,
            WorkPlace::Worktree(tree) => Some(Arc::from(tree)),
            // The manager changes what others made, to resolve a merge.
            WorkPlace::Merges(_) => return,
        };
        let when = (at, self.rules.conflicts.window_ms);
        let Some(team) = &mut self.team else { return };
        let others = team.touches.find_others((agent, tree.as_ref()), touch, when);
        let elsewhere = team.touches.list_others(agent, &touch.path, when).filter(|change| change.tree != tree);
        let elsewhere: BTreeMap<Arc<str>, Option<Arc<str>>> =
            elsewhere.map(|change| (Arc::clone(&change.agent), change.tree.clone())).collect();
        let agent_tree = tree.clone();
        team.touches.add(Change { agent: Arc::clone(agent), tree, at, touch: touch.clone() });
        for (other, other_tree) in &elsewhere {
            self.tell_managers((agent, agent_tree.as_ref()), (other, other_tree.as_ref()), touch);
        }
        for (other, overlaps) in &others {
            if self.agent(other).is_none_or(|other| other.is_done()) {
                continue;
            }
            match overlaps {
                Some(false) => {
                    let words = format!("{agent} changed {}, apart from your lines", describe_touch(touch));
                    self.tell_of_file(other, agent, &touch.path, (false, words));
                }
                known => {
                    let (agent, with, path) = (Arc::clone(agent), Arc::clone(other), Arc::clone(&touch.path));
                    let conflict = Conflict { agent, with, path, certain: known.is_some() };
                    let queue = self.team.as_mut().map(|team| &mut team.touches.conflicts);
                    queue.into_iter().for_each(|queue| queue.push_back(conflict.clone()));
                }
            }
        }
        for watcher in self.list_watchers(agent, &touch.path) {
            if !others.contains_key(&watcher) {
                let words = format!("{agent} changed {}, which you are to change too", describe_touch(touch));
                self.tell_of_file(&watcher, agent, &touch.path, (false, words));
                let words = format!("{watcher} is to change {}, too", touch.path);
                self.tell_of_file(agent, &watcher, &touch.path, (false, words));
            }
        }
    }

    /// Two agents changed the same lines, or it is unknown which: both hear of it at once.
    pub(super) fn conflict_found(&mut self, conflict: &Conflict) {
        let Some(team) = &mut self.team else { return };
        if team.touches.conflicts.front() == Some(conflict) {
            team.touches.conflicts.pop_front();
        }
        let Conflict { agent, with, path, certain } = conflict;
        for (receiver, other) in [(agent, with), (with, agent)] {
            let change = self.team.as_ref().and_then(|team| team.touches.last_change(path, other));
            let what = change.map_or_else(|| path.to_string(), describe_touch);
            let diff = change.map(|change| change.diff.as_str()).filter(|diff| !diff.is_empty());
            let diff = diff.map_or_else(String::new, |diff| format!("\n{diff}"));
            let sure = if *certain { "the same lines as you" } else { "perhaps the same lines as you" };
            let words = format!("{other} changed {what}, {sure}: talk to {other}, not to the coordinator.{diff}");
            self.tell_of_file(receiver, other, path, (true, words));
        }
    }

    /// Two agents changed one file in two trees: the managers of both hear of it.
    fn tell_managers(
        &mut self,
        (agent, tree): (&Arc<str>, Option<&Arc<str>>),
        (other, other_tree): (&Arc<str>, Option<&Arc<str>>),
        touch: &Touch,
    ) {
        let trees = self.team.as_ref().map(|team| &team.worktrees);
        let manager = |tree: Option<&Arc<str>>| trees?.get(tree?).map(|tree| Arc::clone(&tree.manager));
        let managers: BTreeSet<Arc<str>> = [tree, other_tree].into_iter().filter_map(manager).collect();
        let place =
            |tree: Option<&Arc<str>>| tree.map_or("the workspace".to_owned(), |tree| format!("worktree `{tree}`"));
        let words = format!(
            "{agent} changed {} in {}, and {other} changed the file in {}: the changes meet when they are merged",
            describe_touch(touch),
            place(tree),
            place(other_tree)
        );
        for manager in managers {
            self.tell_of_file(&manager, agent, &touch.path, (false, words.clone()));
        }
    }

    /// The agents that are to change a file by their open items or by what they said.
    fn list_watchers(&self, agent: &Arc<str>, path: &str) -> Vec<Arc<str>> {
        let Some(team) = &self.team else { return Vec::new() };
        let covers = |pattern: &String| fast_glob::glob_match(pattern.trim_start_matches("./"), path);
        let items =
            team.plan.items.iter().filter(|item| item.state != ItemState::Done && item.scope.iter().any(covers));
        let owners = items.filter_map(|item| item.owner.clone());
        let intents = team.touches.intents.iter().filter(|(_, (_, paths))| paths.iter().any(covers));
        let all: BTreeSet<Arc<str>> = owners.chain(intents.map(|(agent, _)| Arc::clone(agent))).collect();
        let is_there = |name: &Arc<str>| self.agent(name).is_some_and(|agent| !agent.is_done());
        all.into_iter().filter(|name| name != agent && is_there(name)).collect()
    }

    fn tell_of_file(&mut self, receiver: &Arc<str>, other: &Arc<str>, path: &Arc<str>, (wakes, words): (bool, String)) {
        let Some(turn) = self.agent(receiver).map(|agent| agent.iteration) else { return };
        let turn = (turn, self.rules.conflicts.notices);
        let may = self.team.as_mut().is_some_and(|team| team.touches.count_notice(receiver, turn, (other, path)));
        if may {
            self.notify(receiver, wakes, words);
        }
    }
}

/// A change, such as `src/api.rs, lines 3 to 9 (+5 -2)`.
fn describe_touch(touch: &Touch) -> String {
    let lines = match touch.lines {
        Some((first, last)) if first == last => format!(", line {first}"),
        Some((first, last)) => format!(", lines {first} to {last}"),
        None => String::new(),
    };
    format!("{}{lines} (+{} -{})", touch.path, touch.added, touch.removed)
}
