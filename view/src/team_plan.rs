//! What people see of a team with a coordinator: its plan, and the states of its agents.
//!
//! In: the events of the swarm. Out: the plan as the run itself folds it, a state for each agent, and both in lines. Text of
//! agents is hostile: [`sanitize_line`] makes one short line of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swarmc_plan::{Body, Plan, Swarm};
use swarmc_runtime::swarm::plan::{Item, TeamPlan};
use swarmc_runtime::swarm::{LifeFacts, derive_life};
use swarmc_runtime::team::{ItemState, Life, MergeState};
use swarmc_runtime::{Event, Record, StepId, TeamFact};

use crate::documents::{ConflictDocument, PlanItem, TeamPlanDocument, WorktreeDocument};
use crate::printable::sanitize_line;
use crate::team::{Team, TeamAgent};
use crate::units::format_count;

/// What a swarm with a coordinator has besides its agents.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Coordination {
    /// The name of the coordinator.
    pub coordinator: Arc<str>,
    /// The plan.
    pub plan: TeamPlan,
    /// Who takes part in each channel.
    pub channels: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Who takes part in each channel by the spec.
    declared: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// The pairs of agents that changed the same lines of a file, each once.
    pub conflicts: Vec<Conflict>,
    /// The worktrees, by name.
    pub worktrees: BTreeMap<Arc<str>, TeamTree>,
    /// What each agent is about to do, as it said.
    pub intents: BTreeMap<Arc<str>, String>,
    /// The agents whose turn goes on.
    open: BTreeSet<Arc<str>>,
    /// The agents that wait for work or a message.
    idle: BTreeSet<Arc<str>>,
    /// The agents that have ended a task of their own.
    completed: BTreeSet<Arc<str>>,
}

/// A worktree of a team.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TeamTree {
    /// Who merges it.
    pub manager: Arc<str>,
    /// Who works in it.
    pub members: BTreeSet<Arc<str>>,
    /// The branch that is moved on to what was merged.
    pub into: Option<Arc<str>>,
    /// How far its last merge is, its commit, and what came of it; none before the first.
    pub merge: Option<(MergeState, Option<String>, String)>,
}

impl TeamTree {
    fn new(declared: &swarmc_plan::Worktree) -> TeamTree {
        TeamTree {
            manager: Arc::from(&*declared.manager),
            members: declared.members.iter().map(|name| Arc::from(&**name)).collect(),
            into: declared.into.as_deref().map(Arc::from),
            merge: None,
        }
    }

    fn replace(&mut self, former: &Arc<str>, agent: &Arc<str>) {
        if self.members.remove(former) {
            self.members.insert(Arc::clone(agent));
        }
        if self.manager == *former {
            self.manager = Arc::clone(agent);
        }
    }

    fn format_line(&self, name: &str) -> String {
        let members: Vec<&str> = self.members.iter().map(|member| &**member).collect();
        let into = self.into.as_deref().map_or_else(String::new, |branch| format!(" into {}", sanitize_line(branch)));
        let (name, members, manager) = (sanitize_line(name), members.join(", "), sanitize_line(&self.manager));
        let mut line = format!("  worktree {name}: {}; {manager} merges it{into}", sanitize_line(&members));
        if let Some((state, commit, note)) = &self.merge {
            let commit = commit.as_deref().map(|commit| format!(" {}", &commit[..commit.floor_char_boundary(10)]));
            let _ = write!(line, " [{}{}] {}", state.as_str(), commit.unwrap_or_default(), sanitize_line(note));
        }
        line
    }

    fn to_document(&self, name: &str) -> WorktreeDocument {
        let merge = self.merge.as_ref();
        WorktreeDocument {
            worktree: name.to_owned(),
            manager: self.manager.to_string(),
            members: self.members.iter().map(|member| member.to_string()).collect(),
            into: self.into.as_deref().map(str::to_owned),
            merge: merge.map(|(state, ..)| *state),
            commit: merge.and_then(|(_, commit, _)| commit.clone()),
            note: merge.map(|(.., note)| note.clone()),
        }
    }
}

/// Two agents that changed the same lines of a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Conflict {
    /// The agents, in the order of their names.
    pub agents: [Arc<str>; 2],
    /// The path of the file.
    pub path: Arc<str>,
    /// Whether it is known that the lines are the same.
    pub certain: bool,
}

impl Conflict {
    fn to_document(&self) -> ConflictDocument {
        let agents = self.agents.iter().map(|agent| agent.to_string()).collect();
        ConflictDocument { agents, path: self.path.to_string(), certain: self.certain }
    }
}

/// The conflicts that are kept at most.
const CONFLICTS: usize = 100;

impl Coordination {
    /// The beginning of a declared swarm; none where it has no coordinator.
    pub fn new(swarm: &Swarm) -> Option<Coordination> {
        let lead = swarm.lead.as_ref().filter(|lead| lead.coordinator)?;
        let channels = swarm.channels.iter().map(|channel| {
            (Arc::from(&*channel.name), channel.members.iter().map(|name| Arc::from(&**name)).collect())
        });
        let channels: BTreeMap<Arc<str>, BTreeSet<Arc<str>>> = channels.collect();
        Some(Coordination {
            coordinator: Arc::from(&*lead.name),
            plan: TeamPlan::from_spec(&swarm.items),
            declared: channels.clone(),
            channels,
            conflicts: Vec::new(),
            worktrees: swarm.worktrees.iter().map(|tree| (Arc::from(&*tree.name), TeamTree::new(tree))).collect(),
            intents: BTreeMap::new(),
            open: BTreeSet::new(),
            idle: BTreeSet::new(),
            completed: BTreeSet::new(),
        })
    }

    /// The swarm that a step of this name runs.
    pub fn find_swarm<'p>(plan: &'p Plan, step: &str) -> Option<&'p Swarm> {
        let mut steps = plan.pipelines.iter().flat_map(|pipeline| pipeline.all_steps());
        steps.find_map(|known| match &known.body {
            Body::Swarm(call) if known.name == step => plan.swarm(&call.swarm),
            _ => None,
        })
    }

    /// The swarms with a coordinator that ran, each in its last attempt, in the order of their steps.
    pub fn collect(plan: &Plan, records: &[Record]) -> Vec<(StepId, Coordination)> {
        let mut teams: BTreeMap<StepId, Coordination> = BTreeMap::new();
        for event in records.iter().map(|record| &record.event) {
            let Some(id) = event.swarm() else { continue };
            if let Event::SwarmStarted { .. } = event {
                let declared = Coordination::find_swarm(plan, &id.step.name);
                teams.extend(declared.and_then(Coordination::new).map(|team| (id.step.clone(), team)));
            }
            if let Some(team) = teams.get_mut(&id.step) {
                team.apply(event);
            }
        }
        teams.into_iter().collect()
    }

    /// Applies an event of the swarm.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Team { fact, .. } => self.apply_fact(fact),
            Event::AgentSpawned { agent, items, replaces, worktree, .. } => {
                self.plan.add_owner(agent, items, replaces.as_ref());
                let takes_over =
                    |members: &&BTreeSet<Arc<str>>| replaces.as_ref().is_some_and(|former| members.contains(former));
                let taken = self.declared.iter().filter(|(_, members)| takes_over(members)).map(|(name, _)| name);
                for channel in taken {
                    self.channels.entry(Arc::clone(channel)).or_default().insert(Arc::clone(agent));
                }
                if let Some(former) = replaces {
                    self.worktrees.values_mut().for_each(|tree| tree.replace(former, agent));
                }
                if worktree.is_some() {
                    self.place_agent(agent, worktree.as_ref());
                }
                self.idle.insert(Arc::clone(agent));
            }
            Event::AgentIdled { agent, .. } => _ = self.idle.insert(Arc::clone(agent)),
            Event::TurnStarted { turn, .. } => {
                self.idle.remove(&turn.agent);
                self.open.insert(Arc::clone(&turn.agent));
            }
            Event::TurnEnded { turn, .. } => _ = self.open.remove(&turn.agent),
            Event::AgentFinished { agent, .. } => {
                self.intents.remove(agent);
                self.plan.release_items(agent);
                self.channels.values_mut().for_each(|members| _ = members.remove(agent));
            }
            _ => {}
        }
    }

    fn apply_fact(&mut self, fact: &TeamFact) {
        self.plan.apply(fact);
        match fact {
            TeamFact::ItemMoved { agent, to, .. }
                if *to != ItemState::Running && self.plan.current_item(agent).is_none() =>
            {
                self.idle.insert(Arc::clone(agent));
            }
            TeamFact::AgentCompleted { agent, .. } => {
                self.completed.insert(Arc::clone(agent));
                self.idle.insert(Arc::clone(agent));
            }
            TeamFact::WorktreeOpened { worktree, manager, members, .. } => {
                let (manager, members) = (Arc::clone(manager), members.iter().cloned().collect());
                let tree = TeamTree { manager, members, into: None, merge: None };
                self.worktrees.insert(Arc::clone(worktree), tree);
            }
            TeamFact::AgentMoved { agent, to, .. } => self.place_agent(agent, to.as_ref()),
            TeamFact::Integrated { worktree, to, commit, note, .. } => {
                if let Some(tree) = self.worktrees.get_mut(worktree) {
                    tree.merge = Some((*to, commit.clone(), note.clone()));
                }
            }
            TeamFact::Intended { agent, text, .. } => _ = self.intents.insert(Arc::clone(agent), text.clone()),
            TeamFact::Conflict { agent, with, path, certain } => {
                let mut agents = [Arc::clone(agent), Arc::clone(with)];
                agents.sort();
                let conflict = Conflict { agents, path: Arc::clone(path), certain: *certain };
                if self.conflicts.len() < CONFLICTS && !self.conflicts.contains(&conflict) {
                    self.conflicts.push(conflict);
                }
            }
            TeamFact::ChannelChanged { agent, channel, joined } => {
                let members = self.channels.entry(Arc::clone(channel)).or_default();
                if *joined {
                    members.insert(Arc::clone(agent))
                } else {
                    members.remove(agent)
                };
            }
            _ => {}
        }
    }

    fn place_agent(&mut self, agent: &Arc<str>, to: Option<&Arc<str>>) {
        for (name, tree) in &mut self.worktrees {
            match to == Some(name) {
                true => _ = tree.members.insert(Arc::clone(agent)),
                false => _ = tree.members.remove(agent),
            }
        }
    }

    /// The state of an agent.
    pub fn life(&self, mate: &TeamAgent) -> Life {
        derive_life(&LifeFacts {
            plan: &self.plan,
            name: &mate.name,
            end: mate.how,
            began: mate.started,
            waits: self.idle.contains(&mate.name) && !self.open.contains(&mate.name),
            asks: mate.asks,
            completed: self.completed.contains(&mate.name),
        })
    }

    /// The plan in a few words, such as `plan v3: 2 of 5 items done`.
    pub fn summarize(&self) -> String {
        match self.plan.version {
            0 => "no plan yet".to_owned(),
            version => {
                let items = format_count(self.plan.items.len() as u64, "item");
                format!("plan v{version}: {} of {items} done", self.plan.count_done())
            }
        }
    }

    /// The plan, item by item, in the order in which the items can be done.
    pub fn plan_lines(&self) -> Vec<String> {
        let plan = &self.plan;
        let width = plan.items.iter().map(|item| item.name.chars().count()).max().unwrap_or(0).min(32);
        let owners = plan.items.iter().map(|item| item.owner.as_deref().unwrap_or("-").chars().count());
        let owner_width = owners.max().unwrap_or(0).min(24);
        let mut lines = vec![self.summarize()];
        for item in sort_items(plan) {
            let owner = sanitize_line(item.owner.as_deref().unwrap_or("-"));
            let mut line = format!(
                "  {:<width$}  {:<7}  {owner:<owner_width$}  {}",
                sanitize_line(&item.name),
                plan.describe_state(item),
                sanitize_line(&item.text)
            );
            let waits: Vec<&str> = plan.waits_for(item).map(|on| &*on.name).collect();
            if !waits.is_empty() {
                let _ = write!(line, "  (waits for {})", sanitize_line(&waits.join(", ")));
            }
            if !item.checkpoints.is_empty() {
                let _ = write!(line, "  [{} of {} checkpoints]", item.reached, item.checkpoints.len());
            }
            if !item.scope.is_empty() {
                let _ = write!(line, "  {{{}}}", sanitize_line(&item.scope.join(" ")));
            }
            lines.push(line);
            if let Some(note) = item.note.as_deref().filter(|note| !note.is_empty()) {
                lines.push(format!("  {:<width$}  → {}", "", sanitize_line(note)));
            }
        }
        let path = plan.critical_path();
        if path.len() > 1 {
            lines.push(format!("longest chain: {}", sanitize_line(&path.join(" → "))));
        }
        for (id, proposal) in &plan.proposals {
            let ops: Vec<String> = proposal.ops.iter().map(swarmc_runtime::team::PlanOp::describe).collect();
            let (by, ops) = (sanitize_line(&proposal.by), sanitize_line(&ops.join(", ")));
            lines.push(format!("proposal {id} of {by}: {ops} ({})", sanitize_line(&proposal.why)));
        }
        lines
    }

    /// The team, agent by agent, and its channels.
    pub fn team_lines(&self, team: &Team) -> Vec<String> {
        let width = team.mates.iter().map(|mate| mate.name.chars().count()).max().unwrap_or(0).min(24);
        let mut lines = Vec::new();
        for mate in &team.mates {
            lines.push(format!("  {:<width$}  {}", sanitize_line(&mate.name), self.describe_mate(mate)));
            if let Some(intent) = self.intents.get(&mate.name) {
                lines.push(format!("  {:<width$}  is about to: {}", "", sanitize_line(intent)));
            }
        }
        lines.extend(self.place_lines());
        lines
    }

    /// What is said of an agent behind its name: its state, its role, how far it came, and what it is at.
    pub fn describe_mate(&self, mate: &TeamAgent) -> String {
        let merges = self.worktrees.values().any(|tree| tree.manager == mate.name);
        let role = match mate.name == self.coordinator {
            true => "coordinator",
            false if merges => "manager",
            false => "agent",
        };
        let at = self
            .plan
            .current_item(&mate.name)
            .map_or_else(|| mate.doing().to_owned(), |item| format!("{}: {}", item.name, item.text));
        let by = mate.by.as_deref().map(|by| format!(", spawned by {by}")).unwrap_or_default();
        format!(
            "{:<9}  {role} ({}{by}), {}  {}",
            self.life(mate).as_str(),
            sanitize_line(&mate.plays),
            mate.came_to(),
            sanitize_line(&at)
        )
    }

    /// The conflicts, worktrees and channels, each in a line.
    pub fn place_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Conflict { agents: [one, other], path, certain } in &self.conflicts {
            let sure = if *certain { "" } else { "perhaps " };
            let [one, other, path] = [one, other, path].map(|text| sanitize_line(text));
            lines.push(format!("  ! {one} and {other} changed {sure}the same lines of {path}"));
        }
        lines.extend(self.worktrees.iter().map(|(name, tree)| tree.format_line(name)));
        for (name, members) in self.channels.iter().filter(|(_, members)| !members.is_empty()) {
            let members: Vec<&str> = members.iter().map(|member| &**member).collect();
            lines.push(format!("  #{}: {}", sanitize_line(name), sanitize_line(&members.join(", "))));
        }
        lines
    }

    /// The plan as `inspect` prints it.
    pub(crate) fn to_document(&self) -> TeamPlanDocument {
        let names = |names: &[Arc<str>]| names.iter().map(|name| name.to_string()).collect();
        let item = |item: &Item| PlanItem {
            item: item.name.to_string(),
            text: item.text.clone(),
            state: self.plan.describe_state(item).to_owned(),
            owner: item.owner.as_deref().map(str::to_owned),
            depends_on: names(&item.depends_on),
            checkpoints: item.checkpoints.clone(),
            reached: item.reached,
            scope: item.scope.clone(),
            note: item.note.clone(),
        };
        TeamPlanDocument {
            coordinator: self.coordinator.to_string(),
            version: self.plan.version,
            items: self.plan.items.iter().map(item).collect(),
            critical_path: names(&self.plan.critical_path()),
            conflicts: self.conflicts.iter().map(Conflict::to_document).collect(),
            worktrees: self.worktrees.iter().map(|(name, tree)| tree.to_document(name)).collect(),
            open_proposals: self.plan.proposals.keys().copied().collect(),
        }
    }
}

/// The items, those first on which others wait; the order of the plan decides otherwise.
fn sort_items(plan: &TeamPlan) -> Vec<&Item> {
    let (mut sorted, mut placed) = (Vec::new(), BTreeSet::new());
    while sorted.len() < plan.items.len() {
        let ready = |item: &&Item| {
            !placed.contains(&item.name)
                && item.depends_on.iter().all(|on| plan.item(on).is_none() || placed.contains(on))
        };
        let next: Vec<&Item> = plan.items.iter().filter(ready).collect();
        // No plan has a circle; one from a damaged journal must not hang.
        if next.is_empty() {
            break;
        }
        placed.extend(next.iter().map(|item| Arc::clone(&item.name)));
        sorted.extend(next);
    }
    sorted
}
