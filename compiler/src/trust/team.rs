//! Adds swarms to the taint graph: messages, channels, folders, the goal and the result.

use std::collections::HashMap;

use super::build::Builder;
use super::graph::{Kind, Via};
use super::paths;
use crate::model::{Swarm, TemplateText};
use crate::source::Span;

impl Builder<'_, '_> {
    /// The nodes of a swarm; gives the one that its goal goes to. `caller` is the step that starts it, if one does.
    pub(super) fn add_swarm(&mut self, index: usize, caller: Option<(usize, Span)>) -> usize {
        let found = &self.model.swarms[index];
        let swarm = found.ast;
        // What one caller of a shared swarm gives may come out at another: that reports too much, and misses nothing.
        if let (false, Some(&team)) = (self.has_room(), self.teams.get(&index)) {
            self.connect_result(team, caller);
            return team;
        }
        let name = &swarm.name;
        let team = self.graph.add_node(&*name.value, Kind::Team, name.span);
        self.teams.insert(index, team);
        let mut nodes: HashMap<&str, usize> = HashMap::new();
        let leader = swarm.leader.as_ref().map(|leader| {
            let node = self.add_member(&leader.name.value, found.leader, leader.name.span);
            nodes.insert(&leader.name.value, node);
            node
        });
        let mut members = Vec::new();
        for (member, resolved) in swarm.members.iter().zip(&found.members) {
            let node = self.add_member(&member.name.value, resolved.agent, member.name.span);
            nodes.insert(&member.name.value, node);
            members.push((node, member.name.span));
        }
        for (group, &agent) in swarm.groups.iter().zip(&found.groups) {
            let called = group.agent.as_ref().map_or("members", |agent| agent.value.as_str());
            members.push((self.add_member(called, agent, group.span), group.span));
        }
        // Those that the coordinator adds are members from then on.
        for (name, &agent) in swarm.spawns.iter().flat_map(|spawns| &spawns.agents).zip(&found.spawns) {
            members.push((self.add_member(&name.value, agent, name.span), name.span));
        }
        // The groups and the others stand behind them in the list, and have no tasks.
        for (task, &(node, _)) in found.members.iter().zip(&members) {
            task.task.iter().for_each(|task| self.connect_member_texts(found, task, node, team, &nodes));
        }
        self.connect_messages(found, &nodes, leader, &members, team);
        // The goal goes to the leader, who hands it out; without one, to everybody.
        match leader {
            Some(leader) => {
                self.graph.add_edge(team, leader, name.span, Via::Reads);
                for &(member, span) in &members {
                    self.graph.add_edge(member, leader, span, Via::Sends);
                    // A coordinator assigns the items and tells of the plan, whatever edges there are.
                    if swarm.decompose.is_some() || swarm.edges.is_none() || swarm.coordinator().is_some() {
                        self.graph.add_edge(leader, member, span, Via::Sends);
                    }
                }
            }
            None => members.iter().for_each(|&(member, span)| self.graph.add_edge(team, member, span, Via::Reads)),
        }
        self.add_result(found, leader, &members, team, caller);
        team
    }

    fn add_member(&mut self, name: &str, agent: Option<usize>, span: Span) -> usize {
        let node = self.graph.add_node(name, Kind::Member, span);
        if let Some(agent) = agent {
            let mut marks = self.agents[agent].clone();
            for fallback in self.model.list_fallbacks(agent) {
                marks.merge(&self.agents[fallback]);
            }
            self.graph.nodes[node].marks = marks;
            for (path, place) in self.model.agents[agent].system.iter().flat_map(|it| paths::in_prose(it, self.sources))
            {
                self.files.add_read(node, &path, place);
            }
        }
        node
    }

    /// The packs and files in the text of a member.
    fn connect_member_texts(
        &mut self,
        found: &Swarm<'_>,
        task: &TemplateText,
        node: usize,
        team: usize,
        nodes: &HashMap<&str, usize>,
    ) {
        for (path, place) in paths::in_prose(task, self.sources) {
            self.files.add_read(node, &path, place);
        }
        let places: Vec<Span> = task.template.reads.iter().map(|read| task.passage.span(read.whole.clone())).collect();
        let given: Vec<(usize, Span)> = found
            .reads
            .iter()
            .filter(|read| places.contains(&read.whole))
            .filter_map(|read| Some((read.pack()?, read.span)))
            .collect();
        for (pack, span) in given {
            let from = self.add_pack(team, pack, &|_, name, _| nodes.get(name).copied());
            self.graph.add_edge(from, node, span, Via::Reads);
        }
    }

    /// Who can write to whom: along edges, in channels and folders; without edges, everybody to everybody.
    fn connect_messages(
        &mut self,
        found: &Swarm<'_>,
        nodes: &HashMap<&str, usize>,
        leader: Option<usize>,
        members: &[(usize, Span)],
        team: usize,
    ) {
        let swarm = found.ast;
        match &swarm.edges {
            Some(edges) => self.connect_edges(edges, nodes),
            None => {
                let leader = leader.map(|leader| (leader, swarm.name.span));
                for (member, span) in members.iter().copied().chain(leader) {
                    self.graph.add_edge(member, team, span, Via::Joins);
                    self.graph.add_edge(team, member, span, Via::Reads);
                }
            }
        }
        for channel in &swarm.channels {
            let room = self.graph.add_node(&*channel.name.value, Kind::Team, channel.name.span);
            let named = channel.members.iter().filter_map(|name| Some((*nodes.get(name.value.as_str())?, name.span)));
            // The other agents may join an open one.
            let others = members.iter().copied().filter(|_| channel.open);
            for (member, span) in named.chain(others) {
                self.graph.add_edge(member, room, span, Via::Joins);
                self.graph.add_edge(room, member, span, Via::Reads);
            }
        }
        for (managed, &agent) in swarm.worktrees.iter().zip(&found.managers) {
            let folder = self.worktree_node(&managed.name);
            if let (Some(agent), Some(name)) = (agent, &managed.manager) {
                let manager = self.add_member(&name.value, Some(agent), name.span);
                self.works_in(manager, folder, name.span, true);
            }
            for name in managed.members.iter().chain(&managed.manager) {
                if let Some(&member) = nodes.get(name.value.as_str()) {
                    let writes = self.graph.nodes[member].marks.privileged.is_some();
                    self.works_in(member, folder, name.span, writes);
                }
            }
        }
    }

    /// Adds the result of a swarm: it comes from the summarizing agent, else from the leader, else from all members.
    fn add_result(
        &mut self,
        found: &Swarm<'_>,
        leader: Option<usize>,
        members: &[(usize, Span)],
        team: usize,
        caller: Option<(usize, Span)>,
    ) {
        let last = match (&found.ast.synthesize, leader) {
            (Some(synthesize), _) => {
                let called = synthesize.agent.as_ref().map_or("synthesize", |agent| &agent.value);
                let node = self.add_member(called, found.synthesize, synthesize.span);
                let leader = leader.map(|leader| (leader, synthesize.span));
                for (member, span) in members.iter().copied().chain(leader) {
                    self.graph.add_edge(member, node, span, Via::Sends);
                }
                vec![node]
            }
            (None, Some(leader)) => vec![leader],
            (None, None) => members.iter().map(|&(member, _)| member).collect(),
        };
        self.results.insert(team, last);
        self.connect_result(team, caller);
    }

    fn connect_result(&mut self, team: usize, caller: Option<(usize, Span)>) {
        let Some((step, span)) = caller else { return };
        for node in self.results.get(&team).cloned().unwrap_or_default() {
            self.graph.add_edge(node, step, span, Via::Returns);
        }
    }
}
