//! Swarms as a way for text: messages, channels, folders, the goal and the result.

use std::collections::HashMap;

use super::build::Builder;
use super::graph::{Kind, Via};
use crate::ast::{self, Name};
use crate::source::Span;

impl Builder<'_, '_> {
    /// The nodes of a swarm; gives the one that its goal goes to. `caller` is the step that starts it, if one does.
    pub(super) fn swarm(&mut self, index: usize, caller: Option<(usize, Span)>) -> usize {
        let swarm = &self.model.spec.swarms[index];
        if let (false, Some(&team)) = (self.spares(), self.teams.get(&index)) {
            self.returns(team, caller);
            return team;
        }
        let name = &swarm.name;
        let team = self.graph.node(&*name.value, Kind::Team, name.span);
        self.teams.insert(index, team);
        let mut nodes: HashMap<&str, usize> = HashMap::new();
        let leader = swarm.leader.as_ref().map(|leader| {
            let node = self.member(&leader.name.value, leader.agent.as_ref(), leader.name.span);
            nodes.insert(&leader.name.value, node);
            node
        });
        let mut members = Vec::new();
        for member in &swarm.members {
            let node = self.member(&member.name.value, member.agent.as_ref(), member.name.span);
            nodes.insert(&member.name.value, node);
            members.push((node, member.name.span));
        }
        for group in &swarm.groups {
            let agent = group.agent.as_ref();
            let called = agent.map_or("members", |agent| agent.value.as_str());
            members.push((self.member(called, agent, group.span), group.span));
        }
        self.messages(swarm, &nodes, leader, &members, team);
        // The goal goes to the leader, who hands it out; without one, to everybody.
        match leader {
            Some(leader) => {
                self.graph.edge(team, leader, name.span, Via::Reads);
                for &(member, span) in &members {
                    self.graph.edge(member, leader, span, Via::Sends);
                    if swarm.decompose.is_some() || swarm.edges.is_none() {
                        self.graph.edge(leader, member, span, Via::Sends);
                    }
                }
            }
            None => members.iter().for_each(|&(member, span)| self.graph.edge(team, member, span, Via::Reads)),
        }
        self.result(swarm, leader, &members, team, caller);
        team
    }

    fn member(&mut self, name: &str, agent: Option<&Name>, span: Span) -> usize {
        let node = self.graph.node(name, Kind::Member, span);
        if let Some(agent) = self.agent_named(agent, span) {
            self.graph.nodes[node].marks = self.agents[agent].clone();
        }
        node
    }

    /// Who can write to whom: along edges, in channels and folders; without edges, everybody to everybody.
    fn messages(
        &mut self,
        swarm: &ast::Swarm,
        nodes: &HashMap<&str, usize>,
        leader: Option<usize>,
        members: &[(usize, Span)],
        team: usize,
    ) {
        match &swarm.edges {
            Some(edges) => self.edges(edges, nodes),
            None => {
                let leader = leader.map(|leader| (leader, swarm.name.span));
                for (member, span) in members.iter().copied().chain(leader) {
                    self.graph.edge(member, team, span, Via::Joins);
                    self.graph.edge(team, member, span, Via::Reads);
                }
            }
        }
        for channel in &swarm.channels {
            let room = self.graph.node(&*channel.name.value, Kind::Team, channel.name.span);
            for name in &channel.members {
                if let Some(&member) = nodes.get(name.value.as_str()) {
                    self.graph.edge(member, room, name.span, Via::Joins);
                    self.graph.edge(room, member, name.span, Via::Reads);
                }
            }
        }
        for managed in &swarm.worktrees {
            let folder = self.worktree(&managed.name);
            for name in managed.members.iter().chain(&managed.manager) {
                if let Some(&member) = nodes.get(name.value.as_str()) {
                    let writes = self.graph.nodes[member].marks.privileged.is_some();
                    self.works_in(member, folder, name.span, writes);
                }
            }
        }
    }

    /// What comes of it: of whoever sums up, else of the leader, else of everybody.
    fn result(
        &mut self,
        swarm: &ast::Swarm,
        leader: Option<usize>,
        members: &[(usize, Span)],
        team: usize,
        caller: Option<(usize, Span)>,
    ) {
        let last = match (&swarm.synthesize, leader) {
            (Some(synthesize), _) => {
                let agent = synthesize.agent.as_ref();
                let node = self.member(agent.map_or("synthesize", |agent| &agent.value), agent, synthesize.span);
                let leader = leader.map(|leader| (leader, synthesize.span));
                for (member, span) in members.iter().copied().chain(leader) {
                    self.graph.edge(member, node, span, Via::Sends);
                }
                vec![node]
            }
            (None, Some(leader)) => vec![leader],
            (None, None) => members.iter().map(|&(member, _)| member).collect(),
        };
        self.results.insert(team, last);
        self.returns(team, caller);
    }

    fn returns(&mut self, team: usize, caller: Option<(usize, Span)>) {
        let Some((step, span)) = caller else { return };
        for node in self.results.get(&team).cloned().unwrap_or_default() {
            self.graph.edge(node, step, span, Via::Returns);
        }
    }
}
