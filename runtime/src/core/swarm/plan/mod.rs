//! The plan of a team: items with owners and dependencies, in versions.
//!
//! In: changes that the coordinator made, and what owners report of their items. Out: the items, which of them are
//! ready, and why a change is refused. Pure, without an event of its own: `state/team.rs` applies the events, and
//! [`crate::team`] shows the same plan to people.
//!
//! Invariants: a version is applied as a whole or not at all; no item waits for itself, directly or by others; an item
//! has one owner at most; a change costs no more than the items that wait for the changed one.

mod check;
mod proposal;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swarmc_plan::{PlanItem, Priority};

use crate::types::team::{ItemState, PlanOp};
use crate::types::team_fact::TeamFact;

pub use proposal::Proposal;

/// The changes of one update at most.
pub(crate) const OPS: usize = 50;
/// The bytes of the changes of one update at most, as JSON: an event contains them.
pub(crate) const OPS_BYTES: usize = 5_000;
/// The versions of which the plan keeps what changed: older proposals are stale, whatever they change.
const KEPT: usize = 50;

/// The plan of a team.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct TeamPlan {
    /// Its version; 0 before the coordinator has made one.
    pub version: u32,
    /// Its items, in the order in which they were added; removed ones are gone.
    pub items: Vec<Item>,
    /// The proposals that wait for an answer, by number.
    pub proposals: BTreeMap<u32, Proposal>,
    /// The number of the last proposal.
    pub last_proposal: u32,
    places: BTreeMap<Arc<str>, usize>,
    /// The places of the items that an agent owns: with many agents, each owns few of many.
    owned: BTreeMap<Arc<str>, BTreeSet<usize>>,
    /// What the last versions changed, the newest last.
    changes: Vec<Change>,
}

/// An item.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Item {
    /// Its name.
    pub name: Arc<str>,
    /// What is to be done.
    pub text: String,
    /// The agent that does it.
    pub owner: Option<Arc<str>>,
    /// Its place among those that are ready.
    pub priority: Priority,
    /// The items that must be done first.
    pub depends_on: Vec<Arc<str>>,
    /// What is to be reached on the way, in order.
    pub checkpoints: Vec<String>,
    /// How many of them are reached.
    pub reached: usize,
    /// Patterns of the paths that it touches.
    pub scope: Vec<String>,
    /// How far it is.
    pub state: ItemState,
    /// What its owner said last of it: what came of it, or why it does not go on.
    pub note: Option<String>,
}

/// What a version changed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Change {
    /// The version.
    pub version: u32,
    /// Who made it.
    pub by: Arc<str>,
    /// How.
    pub ops: Vec<PlanOp>,
    /// Why.
    pub why: String,
}

impl TeamPlan {
    /// The first version of a plan whose items the spec declares; version 0 without items.
    pub fn from_spec(items: &[PlanItem]) -> TeamPlan {
        let arcs = |names: &[String]| names.iter().map(|name| Arc::from(&**name)).collect();
        let mut plan = TeamPlan { version: u32::from(!items.is_empty()), ..TeamPlan::default() };
        for item in items {
            plan.push(Item {
                name: Arc::from(&*item.name),
                text: item.text.clone(),
                owner: item.owner.as_deref().map(Arc::from),
                priority: item.priority,
                depends_on: arcs(&item.depends_on),
                checkpoints: item.checkpoints.clone(),
                reached: 0,
                scope: item.scope.clone(),
                state: ItemState::Open,
                note: None,
            });
        }
        plan
    }

    /// The item of this name.
    pub fn item(&self, name: &str) -> Option<&Item> {
        self.places.get(name).map(|&place| &self.items[place])
    }

    /// Applies a version that [`TeamPlan::check_ops`] allows; one that is not the next changes nothing.
    fn update(&mut self, version: u32, by: &Arc<str>, ops: &[PlanOp], why: &str) {
        if version != self.version + 1 {
            return;
        }
        self.version = version;
        ops.iter().for_each(|op| self.apply_op(op));
        self.changes.push(Change { version, by: Arc::clone(by), ops: ops.to_vec(), why: why.to_owned() });
        if self.changes.len() > KEPT {
            self.changes.remove(0);
        }
    }

    /// Applies what a fact says of the plan; the proposal that it answers.
    pub fn apply(&mut self, fact: &TeamFact) -> Option<Proposal> {
        match fact {
            TeamFact::PlanUpdated { version, agent, ops, why, proposal } => {
                self.update(*version, agent, ops, why);
                return proposal.and_then(|id| self.proposals.remove(&id));
            }
            TeamFact::PlanProposed { proposal, agent, base, ops, why } => {
                let wanted = Proposal { by: Arc::clone(agent), base: *base, ops: ops.clone(), why: why.clone() };
                self.propose(*proposal, wanted);
            }
            TeamFact::ProposalRefused { proposal, .. } => return self.proposals.remove(proposal),
            TeamFact::ItemMoved { item, to, note, .. } => self.move_item(item, *to, note.as_deref()),
            TeamFact::ItemChecked { item, .. } => self.reach_checkpoint(item),
            TeamFact::ItemAssigned { item, to, .. } => self.assign(item, to.as_ref()),
            _ => {}
        }
        None
    }

    /// A further agent owns these items, and the open ones of the agent that it replaces.
    pub fn add_owner(&mut self, agent: &Arc<str>, items: &[Arc<str>], replaces: Option<&Arc<str>>) {
        let former = replaces.into_iter().flat_map(|former| self.open_items(former));
        let former: Vec<Arc<str>> = former.map(|item| Arc::clone(&item.name)).collect();
        items.iter().chain(&former).for_each(|item| self.assign(item, Some(agent)));
    }

    /// What changed since `version`, the oldest change first; none where it is not known any more.
    pub fn changes_since(&self, version: u32) -> Option<&[Change]> {
        let newer = self.changes.iter().position(|change| change.version > version).unwrap_or(self.changes.len());
        let known = self.version <= version || self.changes.get(newer).is_some_and(|it| it.version == version + 1);
        known.then(|| &self.changes[newer..])
    }

    /// Sets the state of an item, with what its owner says of it.
    fn move_item(&mut self, name: &str, to: ItemState, note: Option<&str>) {
        if let Some(item) = self.item_mut(name) {
            (item.state, item.note) = (to, note.map(str::to_owned));
        }
    }

    /// An item has another owner; its work begins anew.
    fn assign(&mut self, name: &str, to: Option<&Arc<str>>) {
        let Some(&place) = self.places.get(name) else { return };
        if let Some(former) = &self.items[place].owner {
            self.owned.get_mut(former).map(|places| places.remove(&place));
        }
        self.note_owner(place, to);
        if let Some(item) = self.item_mut(name) {
            item.owner = to.cloned();
            if item.state != ItemState::Done {
                (item.state, item.note) = (ItemState::Open, None);
            }
        }
    }

    /// The next checkpoint of an item is reached.
    fn reach_checkpoint(&mut self, name: &str) {
        if let Some(item) = self.item_mut(name) {
            item.reached = (item.reached + 1).min(item.checkpoints.len());
        }
    }

    /// An agent works no longer: what it had begun is open again.
    pub fn release_items(&mut self, owner: &str) {
        let begun = |item: &&mut Item| {
            item.owner.as_deref() == Some(owner) && matches!(item.state, ItemState::Running | ItemState::Blocked)
        };
        self.items.iter_mut().filter(begun).for_each(|item| item.state = ItemState::Open);
    }

    /// The items of an agent that are not done, in the order of the plan.
    pub fn open_items(&self, owner: &str) -> impl Iterator<Item = &Item> {
        let own = self.owned.get(owner).into_iter().flatten().map(|&place| &self.items[place]);
        own.filter(|item| item.state != ItemState::Done)
    }

    /// The item that an agent works on, or has to begin: the one that runs, else the most urgent ready one.
    pub fn current_item(&self, owner: &str) -> Option<&Item> {
        let running = self.open_items(owner).find(|item| item.state == ItemState::Running);
        // The first of the most urgent ones: `max_by_key` would return the last.
        let ready = || {
            self.open_items(owner)
                .filter(|item| self.is_ready(item))
                .min_by_key(|item| std::cmp::Reverse(item.priority))
        };
        running.or_else(ready)
    }

    /// Whether its owner may begin it: it is open, and what it waits for is done.
    pub fn is_ready(&self, item: &Item) -> bool {
        item.state == ItemState::Open && self.waits_for(item).next().is_none()
    }

    /// The items that an item still waits for.
    pub fn waits_for<'p>(&'p self, item: &'p Item) -> impl Iterator<Item = &'p Item> {
        item.depends_on.iter().filter_map(|name| self.item(name)).filter(|on| on.state != ItemState::Done)
    }

    /// How far an item is, in a word: `queued`, `ready`, `running`, `blocked`, `done` or `failed`.
    pub fn describe_state(&self, item: &Item) -> &'static str {
        match item.state {
            ItemState::Open if item.owner.is_some() && self.is_ready(item) => "ready",
            ItemState::Open => "queued",
            ItemState::Running => "running",
            ItemState::Blocked => "blocked",
            ItemState::Done => "done",
            ItemState::Failed => "failed",
        }
    }

    /// How many items are done.
    pub fn count_done(&self) -> usize {
        self.items.iter().filter(|item| item.state == ItemState::Done).count()
    }

    /// The names of the items on the longest chain of items that are not done, the first to be done first. Each item
    /// counts once; items have no durations.
    pub fn critical_path(&self) -> Vec<Arc<str>> {
        let mut longest: BTreeMap<&str, (usize, Option<&str>)> = BTreeMap::new();
        let open: Vec<&Item> = self.items.iter().filter(|item| item.state != ItemState::Done).collect();
        let mut waiting: BTreeMap<&str, usize> =
            open.iter().map(|item| (&*item.name, self.waits_for(item).count())).collect();
        let mut users: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
        open.iter().for_each(|item| self.waits_for(item).for_each(|on| users.entry(&on.name).or_default().push(item)));
        let mut ready: Vec<&str> = open.iter().map(|item| &*item.name).filter(|name| waiting[name] == 0).collect();
        while let Some(name) = ready.pop() {
            let length = longest.get(name).map_or(0, |(length, _)| *length);
            longest.entry(name).or_insert((0, None));
            for user in users.get(name).into_iter().flatten() {
                let best = longest.entry(&user.name).or_insert((0, None));
                if length + 1 > best.0 {
                    *best = (length + 1, Some(name));
                }
                let left = waiting.get_mut(&*user.name).expect("it is open");
                *left -= 1;
                if *left == 0 {
                    ready.push(&user.name);
                }
            }
        }
        let end = longest
            .iter()
            .max_by_key(|(name, (length, _))| (*length, std::cmp::Reverse(**name)))
            .map(|(name, _)| *name);
        let mut path: Vec<Arc<str>> = std::iter::successors(end, |name| longest[name].1).map(Arc::from).collect();
        path.reverse();
        path
    }

    fn item_mut(&mut self, name: &str) -> Option<&mut Item> {
        self.places.get(name).map(|&place| &mut self.items[place])
    }

    fn push(&mut self, item: Item) {
        self.places.insert(Arc::clone(&item.name), self.items.len());
        self.note_owner(self.items.len(), item.owner.as_ref());
        self.items.push(item);
    }

    fn note_owner(&mut self, place: usize, owner: Option<&Arc<str>>) {
        if let Some(owner) = owner {
            self.owned.entry(Arc::clone(owner)).or_default().insert(place);
        }
    }

    fn apply_op(&mut self, op: &PlanOp) {
        match op {
            PlanOp::Add { item, text, owner, priority, depends_on, checkpoints, scope } => self.push(Item {
                name: Arc::clone(item),
                text: text.clone(),
                owner: owner.clone(),
                priority: *priority,
                depends_on: depends_on.clone(),
                checkpoints: checkpoints.clone(),
                reached: 0,
                scope: scope.clone(),
                state: ItemState::Open,
                note: None,
            }),
            PlanOp::Edit { item, text, priority, checkpoints, scope } => {
                let Some(item) = self.item_mut(item) else { return };
                item.text = text.clone().unwrap_or_else(|| std::mem::take(&mut item.text));
                item.priority = priority.unwrap_or(item.priority);
                item.scope = scope.clone().unwrap_or_else(|| std::mem::take(&mut item.scope));
                if let Some(checkpoints) = checkpoints {
                    (item.checkpoints, item.reached) = (checkpoints.clone(), 0);
                }
            }
            PlanOp::Remove { item } => {
                if let Some(place) = self.places.remove(item) {
                    self.items.remove(place);
                    self.places.values_mut().filter(|other| **other > place).for_each(|other| *other -= 1);
                    self.owned.clear();
                    for place in 0..self.items.len() {
                        let owner = self.items[place].owner.clone();
                        self.note_owner(place, owner.as_ref());
                    }
                }
            }
            PlanOp::Link { item, on } => {
                if let Some(item) = self.item_mut(item).filter(|item| !item.depends_on.contains(on)) {
                    item.depends_on.push(Arc::clone(on));
                }
            }
            PlanOp::Unlink { item, on } => {
                if let Some(item) = self.item_mut(item) {
                    item.depends_on.retain(|other| other != on);
                }
            }
        }
    }

    /// The items that these changes read or write.
    fn touched<'o>(ops: impl IntoIterator<Item = &'o PlanOp>) -> BTreeSet<&'o str> {
        let mut touched = BTreeSet::new();
        for op in ops {
            touched.insert(&**op.item());
            match op {
                PlanOp::Link { on, .. } | PlanOp::Unlink { on, .. } => _ = touched.insert(on),
                PlanOp::Add { depends_on, .. } => touched.extend(depends_on.iter().map(|on| &**on)),
                PlanOp::Edit { .. } | PlanOp::Remove { .. } => {}
            }
        }
        touched
    }
}
