//! Worktrees of a team: who works in which one, and how far the merge of each is.
//!
//! In: operations of managers, and the results of Git, which the driver runs. Out: commands as `decide` gives them, and
//! notices. A worktree is due once a member has done something in it; its manager is woken when no member has more to do.
//! Invariant: the worktrees that go into one branch are merged one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swarmc_plan::Approval;

use super::action;
use super::decide::{SwarmCommand, record};
use super::state::{AgentStage, Swarm, Team};
use crate::types::approval::RequestKind;
use crate::types::event::{Content, Event};
use crate::types::swarm::TurnId;
use crate::types::team::{ItemState, MergeState, TeamOp};
use crate::types::team_fact::TeamFact;

/// The worktrees of a team at most.
const TREES: usize = 50;
/// The characters of a commit's hash that people read.
const SHORT: usize = 10;

/// A worktree that agents share.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Worktree {
    /// The agent that merges it.
    pub(crate) manager: Arc<str>,
    /// The agents that work in it.
    pub(crate) members: BTreeSet<Arc<str>>,
    /// The branch of the repository that is moved on to what was merged.
    pub(crate) into: Option<Arc<str>>,
    pub(crate) stage: TreeStage,
}

/// How far a worktree is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) enum TreeStage {
    /// There is nothing to merge.
    #[default]
    Quiet,
    /// Something was done in it, and whether its manager was woken to merge it.
    Due(bool),
    /// Its merge is open: these files conflict, or a check failed.
    Open(Vec<String>),
    /// It is merged; its branch is to be moved on to this commit.
    Committed(String),
}

/// Where an agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkPlace<'a> {
    /// Where its step works.
    Workspace,
    /// In the worktree of this name.
    Worktree(&'a str),
    /// Where the worktrees are merged that go into this branch, or into none.
    Merges(Option<&'a str>),
}

impl Worktree {
    /// As the spec declares it.
    pub(crate) fn new(declared: &swarmc_plan::Worktree) -> Worktree {
        Worktree {
            manager: Arc::from(&*declared.manager),
            members: declared.members.iter().map(|name| Arc::from(&**name)).collect(),
            into: declared.into.as_deref().map(Arc::from),
            stage: TreeStage::Quiet,
        }
    }

    /// How far it is, in words for agents.
    pub(crate) fn describe_stage(&self) -> String {
        match &self.stage {
            TreeStage::Quiet => "nothing to merge".to_owned(),
            TreeStage::Due(_) => "not merged yet".to_owned(),
            TreeStage::Open(files) if files.is_empty() => "its merge is open".to_owned(),
            TreeStage::Open(files) => format!("its merge is open: {}", files.join(", ")),
            TreeStage::Committed(commit) => format!("merged as {}", shorten_hash(commit)),
        }
    }
}

/// Where an agent of a team with these worktrees works.
fn find_place<'t>(trees: &'t BTreeMap<Arc<str>, Worktree>, agent: &str) -> WorkPlace<'t> {
    for (name, tree) in trees {
        if *tree.manager == *agent {
            return WorkPlace::Merges(tree.into.as_deref());
        }
        if tree.members.contains(agent) {
            return WorkPlace::Worktree(name);
        }
    }
    WorkPlace::Workspace
}

fn shorten_hash(commit: &str) -> &str {
    &commit[..commit.floor_char_boundary(SHORT)]
}

/// The command that an operation of a manager gives.
///
/// # Errors
/// The agent manages no worktree, or the operation does not fit how far the merge is: says what to do.
pub(super) fn merge_worktree(swarm: &Swarm, team: &Team, index: u32, op: &TeamOp) -> Result<SwarmCommand, String> {
    let agent = &swarm.agents[index as usize];
    let Some((name, tree)) = swarm.find_managed(&agent.name) else {
        let managers = team.worktrees.iter().map(|(name, tree)| format!("{} (`{name}`)", tree.manager));
        let managers: Vec<String> = managers.take(action::TOLD).collect();
        return Err(match managers.is_empty() {
            true => format!("`{}` is for managers of worktrees, and your team has none", op.name()),
            false => format!("only the manager of a worktree may use `{}`: {}", op.name(), managers.join(", ")),
        });
    };
    match (op, &tree.stage) {
        (TeamOp::IntegrateAbort { .. }, TreeStage::Committed(_)) => {
            return Err("your merge is committed: `integrate` moves its branch on to it".to_owned());
        }
        (_, TreeStage::Committed(commit)) => {
            if swarm.rules.integrate == Approval::Human && agent.agreed.is_none() {
                let branch = tree.into.as_deref().unwrap_or_default();
                let words =
                    format!("move branch {branch} on to {}, the merge of worktree {name}", shorten_hash(commit));
                let wants = RequestKind::Merge { change: Content::Text(words) };
                return Ok(SwarmCommand::Agree { agent: index, wants });
            }
        }
        (TeamOp::Integrate { .. }, TreeStage::Open(_)) => {
            return Err("your merge is open: resolve it and use `integrate_continue`, or drop it by `integrate_abort`"
                .to_owned());
        }
        (TeamOp::Integrate { although_open, .. }, _) => {
            if let Some((other, busy)) = find_busy(swarm, team, name, tree) {
                let manager = &busy.manager;
                return Err(format!(
                    "{manager} merges `{other}` into the same branch: return `idle`; a message says when it is done"
                ));
            }
            let open = list_open_items(team, tree);
            if although_open.is_none() && !open.is_empty() {
                return Err(format!(
                    "not merged: members of `{name}` have open items: {}; wait for them, or say why not in `although_open`",
                    open.join(", ")
                ));
            }
        }
        (_, TreeStage::Open(_)) => {}
        _ => return Err("you have no open merge: begin one by `integrate`".to_owned()),
    }
    Ok(SwarmCommand::Call(swarm.turn(index)))
}

/// The worktree of this name.
///
/// # Errors
/// There is none: says which there are.
pub(super) fn find_worktree<'t>(team: &'t Team, name: &str) -> Result<&'t Worktree, String> {
    team.worktrees.get(name).ok_or_else(|| {
        let name: String = name.chars().take(action::RECEIVER_CHARS).collect();
        let trees: Vec<&str> = team.worktrees.keys().map(|tree| &**tree).take(action::TOLD).collect();
        match trees.is_empty() {
            true => format!("there is no worktree `{name}`: open it by `worktree_open`"),
            false => format!("there is no worktree `{name}`; there are {}", trees.join(", ")),
        }
    })
}

/// Opens a worktree, once Git has made it.
///
/// # Errors
/// The name is taken, or one of the agents cannot work there: says why.
pub(super) fn open_worktree(
    swarm: &Swarm,
    team: &Team,
    index: u32,
    (name, manager, members): (&Arc<str>, &Arc<str>, &[Arc<str>]),
) -> Result<SwarmCommand, String> {
    if team.worktrees.contains_key(name) {
        return Err(format!("there is a worktree `{name}` already: move agents to it by `worktree_move`"));
    }
    if team.worktrees.len() >= TREES {
        return Err(format!("the team has {TREES} worktrees, which is the limit"));
    }
    if members.is_empty() {
        return Err("name the `members` that work in it".to_owned());
    }
    if members.contains(manager) {
        return Err(format!("{manager} cannot merge `{name}` and work in it: name another `manager`"));
    }
    if let Some(item) = team.plan.current_item(manager) {
        return Err(format!("{manager} works on `{}`: name a `manager` without items", item.name));
    }
    for agent in members.iter().chain([manager]) {
        check_movable(swarm, agent)?;
        match find_place(&team.worktrees, agent) {
            WorkPlace::Workspace => {}
            WorkPlace::Worktree(tree) => return Err(format!("{agent} works in worktree `{tree}`: move it first")),
            WorkPlace::Merges(_) => return Err(format!("{agent} merges another worktree")),
        }
    }
    Ok(SwarmCommand::Call(swarm.turn(index)))
}

/// Has a member work elsewhere, once Git says that nothing of it is left.
///
/// # Errors
/// The agent cannot be moved, or the place is not there: says why.
pub(super) fn move_agent(
    swarm: &Swarm,
    team: &Team,
    index: u32,
    (agent, to): (&str, Option<&str>),
) -> Result<SwarmCommand, String> {
    to.map_or(Ok(()), |tree| find_worktree(team, tree).map(drop))?;
    check_movable(swarm, agent)?;
    match find_place(&team.worktrees, agent) {
        WorkPlace::Merges(_) => Err(format!("{agent} merges a worktree, and works in none")),
        WorkPlace::Workspace if to.is_none() => Err(format!("{agent} works in the workspace already")),
        WorkPlace::Worktree(tree) if Some(tree) == to => Err(format!("{agent} works in `{tree}` already")),
        WorkPlace::Workspace | WorkPlace::Worktree(_) => Ok(SwarmCommand::Call(swarm.turn(index))),
    }
}

/// Whether an agent can work elsewhere from now on: it takes no turn, and coordinates nothing.
fn check_movable(swarm: &Swarm, name: &str) -> Result<(), String> {
    let shown: String = name.chars().take(action::RECEIVER_CHARS).collect();
    let Some(agent) = swarm.agent(name).filter(|agent| !agent.is_done()) else {
        return Err(format!("there is no agent `{shown}` that works"));
    };
    if swarm.is_coordinator(name) {
        return Err(format!("{shown} coordinates the team, and works in no worktree"));
    }
    match agent.stage {
        AgentStage::Waiting | AgentStage::Idle | AgentStage::Ready => Ok(()),
        _ => Err(format!("{shown} takes a turn: wait until it is over, or stop {shown}")),
    }
}

/// The worktree whose merge another one has to wait for.
fn find_busy<'t>(swarm: &Swarm, team: &'t Team, name: &str, tree: &Worktree) -> Option<(&'t Arc<str>, &'t Worktree)> {
    team.worktrees.iter().find(|(other, busy)| {
        let runs =
            swarm.agent(&busy.manager).is_some_and(|manager| manager.stage.git_call().is_some_and(TeamOp::merges));
        let is_open = matches!(busy.stage, TreeStage::Open(_) | TreeStage::Committed(_));
        ***other != *name && busy.into == tree.into && (runs || is_open)
    })
}

/// The items of the members that are not done.
fn list_open_items(team: &Team, tree: &Worktree) -> Vec<String> {
    let is_member = |owner: &Option<Arc<str>>| owner.as_ref().is_some_and(|owner| tree.members.contains(owner));
    let open = team.plan.items.iter().filter(|item| item.state != ItemState::Done && is_member(&item.owner));
    open.take(action::TOLD).map(|item| format!("`{}`", item.name)).collect()
}

/// A person does not agree that the branch is moved: the merge is at its end without it.
pub(super) fn leave_branch(swarm: &Swarm, index: u32, why: &str) -> Option<SwarmCommand> {
    let agent = Arc::clone(&swarm.agents[index as usize].name);
    let (name, tree) = swarm.find_managed(&agent)?;
    let TreeStage::Committed(commit) = &tree.stage else { return None };
    let branch = tree.into.as_deref().unwrap_or_default();
    let note = format!("merged, and branch `{branch}` stays as it is: {why}");
    let (worktree, commit) = (Arc::clone(name), Some(commit.clone()));
    let fact = TeamFact::Integrated { agent, worktree, to: MergeState::Merged, commit, files: Vec::new(), note };
    Some(record(Event::Team { swarm: swarm.id.clone(), fact }))
}

/// The worktrees that are not merged although their managers are there, in words for the coordinator.
pub(super) fn list_unmerged(swarm: &Swarm, team: &Team) -> Vec<String> {
    let is_there = |name: &Arc<str>| swarm.agent(name).is_some_and(|agent| !agent.is_done());
    let due = team.worktrees.iter().filter(|(_, tree)| tree.stage != TreeStage::Quiet && is_there(&tree.manager));
    due.take(action::TOLD)
        .map(|(name, tree)| format!("worktree `{name}` of manager {}: {}", tree.manager, tree.describe_stage()))
        .collect()
}

impl Swarm {
    /// Where an agent works.
    pub(crate) fn place_of(&self, agent: &str) -> WorkPlace<'_> {
        self.team.as_ref().map_or(WorkPlace::Workspace, |team| find_place(&team.worktrees, agent))
    }

    /// What an agent asked for that Git carries out.
    pub(crate) fn find_git_call(&self, turn: &TurnId) -> Option<&TeamOp> {
        self.agent(&turn.agent)?.stage.git_call()
    }

    /// The worktree that an agent merges.
    pub(crate) fn find_managed(&self, agent: &str) -> Option<(&Arc<str>, &Worktree)> {
        self.team.as_ref()?.worktrees.iter().find(|(_, tree)| *tree.manager == *agent)
    }

    /// A worktree is open.
    pub(super) fn worktree_opened(&mut self, name: &Arc<str>, manager: &Arc<str>, members: &[Arc<str>]) {
        let Some(team) = &mut self.team else { return };
        let (manager, into, stage) = (Arc::clone(manager), None, TreeStage::Quiet);
        let tree = Worktree { manager, members: BTreeSet::new(), into, stage };
        let manager = Arc::clone(&team.worktrees.entry(Arc::clone(name)).or_insert(tree).manager);
        members.iter().for_each(|member| self.place_agent(member, Some(name)));
        self.notify(&manager, false, format!("you are the manager of worktree `{name}`"));
    }

    /// An agent works elsewhere from now on: its program begins a conversation there.
    pub(super) fn place_agent(&mut self, agent: &Arc<str>, to: Option<&Arc<str>>) {
        let trees = self.team.iter_mut().flat_map(|team| &mut team.worktrees);
        for (name, tree) in trees {
            if to == Some(name) {
                tree.members.insert(Arc::clone(agent));
            } else {
                tree.members.remove(agent);
            }
        }
        if let Some(&index) = self.names.get(agent) {
            self.agents[index as usize].conversation = None;
        }
        self.wake_managers();
    }

    /// Whether an agent has a merge to resolve.
    pub(super) fn has_open_merge(&self, agent: &str) -> bool {
        self.find_managed(agent).is_some_and(|(_, tree)| matches!(tree.stage, TreeStage::Open(_)))
    }

    /// A member of a worktree has done something, or has something to do.
    pub(super) fn worktree_changed(&mut self, agent: &str, is_done: bool) {
        let Some(team) = &mut self.team else { return };
        for tree in team.worktrees.values_mut().filter(|tree| tree.members.contains(agent)) {
            match (&tree.stage, is_done) {
                (TreeStage::Quiet, true) | (TreeStage::Due(true), false) => tree.stage = TreeStage::Due(false),
                _ => {}
            }
        }
        self.wake_managers();
    }

    /// Wakes the managers of worktrees in which nothing more is to be done.
    pub(super) fn wake_managers(&mut self) {
        let Some(team) = &self.team else { return };
        let is_busy = |member: &Arc<str>| self.names.get(member).is_some_and(|&index| self.has_work(index));
        let is_ready = |tree: &Worktree| tree.stage == TreeStage::Due(false) && !tree.members.iter().any(is_busy);
        let ready: Vec<Arc<str>> =
            team.worktrees.iter().filter(|(_, tree)| is_ready(tree)).map(|(name, _)| Arc::clone(name)).collect();
        for name in ready {
            let Some(tree) = self.team.as_mut().and_then(|team| team.worktrees.get_mut(&name)) else { continue };
            tree.stage = TreeStage::Due(true);
            let manager = Arc::clone(&tree.manager);
            let words = format!("the members of worktree `{name}` have nothing more to do: merge it by `integrate`");
            self.notify(&manager, true, words);
        }
    }

    /// The merge of a worktree is further.
    pub(super) fn worktree_integrated(
        &mut self,
        (agent, name): (&Arc<str>, &Arc<str>),
        (to, commit): (MergeState, Option<&str>),
        files: &[String],
        note: &str,
    ) {
        let Some(team) = &mut self.team else { return };
        let Some(tree) = team.worktrees.get_mut(name) else { return };
        let commit = commit.unwrap_or_default();
        tree.stage = match to {
            MergeState::Open => TreeStage::Open(files.to_vec()),
            MergeState::Committed => TreeStage::Committed(commit.to_owned()),
            MergeState::Merged | MergeState::Aborted => TreeStage::Quiet,
        };
        let result = format!("{note}{}", self.describe_authors(files));
        if to == MergeState::Committed {
            // The same operation goes on: its branch is to be moved.
            let at_work = |stage: &AgentStage| stage.git_call().is_some();
            if let Some(index) = self.find_in_stage(agent, at_work)
                && let AgentStage::Calling(act, _) = self.agents[index as usize].stage.clone()
            {
                self.enter_stage(index, AgentStage::Acting(act));
            }
            return;
        }
        let words = match to {
            MergeState::Merged if commit.is_empty() => Some(format!("{agent} merged worktree `{name}`: {note}")),
            MergeState::Merged => Some(format!("{agent} merged worktree `{name}` as {}: {note}", shorten_hash(commit))),
            MergeState::Aborted => Some(format!("{agent} dropped the merge of worktree `{name}`: {note}")),
            MergeState::Open | MergeState::Committed => None,
        };
        if let Some(words) = words {
            self.notify_coordinator(true, words);
            self.free_branch(agent);
        }
        self.finish_operation(agent, Some(result));
    }

    /// Who changed these files, a line for each of which that is known.
    pub(crate) fn describe_authors(&self, files: &[String]) -> String {
        let Some(team) = &self.team else { return String::new() };
        let authors = files.iter().map(|file| (file, team.touches.list_authors(file)));
        let known = authors.filter(|(_, authors)| !authors.is_empty());
        known
            .map(|(file, authors)| {
                format!("\n{file} was changed by {}", authors.into_iter().collect::<Vec<_>>().join(", "))
            })
            .collect()
    }

    /// Git does nothing more for a manager. Where it has no merge open, others may be merged into its branch: their
    /// managers hear of it.
    pub(super) fn free_branch(&mut self, agent: &Arc<str>) {
        let Some((_, own)) = self.find_managed(agent) else { return };
        if matches!(own.stage, TreeStage::Open(_) | TreeStage::Committed(_)) {
            return;
        }
        let trees = self.team.iter().flat_map(|team| &team.worktrees);
        let waits = |tree: &Worktree| {
            tree.manager != *agent && tree.into == own.into && matches!(tree.stage, TreeStage::Due(true))
        };
        let waiting = trees.filter(|(_, tree)| waits(tree));
        let waiting: Vec<(Arc<str>, Arc<str>)> =
            waiting.map(|(name, tree)| (Arc::clone(name), Arc::clone(&tree.manager))).collect();
        for (name, manager) in waiting {
            self.notify(&manager, true, format!("{agent} is done: merge worktree `{name}` by `integrate`"));
        }
    }

    /// An agent takes the place of another one.
    pub(super) fn replace_in_worktrees(&mut self, former: &Arc<str>, name: &Arc<str>) {
        let trees = self.team.iter_mut().flat_map(|team| &mut team.worktrees);
        let mut open = Vec::new();
        for (tree_name, tree) in trees {
            if tree.members.remove(former) {
                tree.members.insert(Arc::clone(name));
            }
            if tree.manager == *former {
                tree.manager = Arc::clone(name);
                match &tree.stage {
                    TreeStage::Quiet => {}
                    TreeStage::Due(_) => tree.stage = TreeStage::Due(false),
                    TreeStage::Open(_) | TreeStage::Committed(_) => {
                        open.push(format!("worktree `{tree_name}` is yours to merge: {}", tree.describe_stage()));
                    }
                }
            }
        }
        open.into_iter().for_each(|words| self.notify(name, true, words));
        self.wake_managers();
    }

    /// The worktrees that an agent that has ended merged, in words.
    pub(super) fn describe_unmanaged(&self, agent: &str) -> String {
        let trees = self.team.iter().flat_map(|team| &team.worktrees);
        let names: Vec<String> =
            trees.filter(|(_, tree)| *tree.manager == *agent).map(|(name, _)| format!("`{name}`")).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!("; worktree {} has no manager: spawn an agent that replaces it", names.join(", ")),
        }
    }
}
