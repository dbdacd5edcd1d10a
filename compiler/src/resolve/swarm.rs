//! Swarms: who plays whom, what they are told, and the names that they call each other.
//!
//! In goes a swarm as written, out comes one whose agents are indices and whose texts are scanned. What stands in it by
//! name (members, items, channels) is looked up and reported here, and stays a name.

use super::text::{GOAL, Has, TURN};
use super::{Resolver, order, text};
use crate::ast::{self, Name};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::model::{Agent, Member, Start, Swarm};
use crate::source::Span;
use crate::suggest;
use crate::symbols::NameKind;
use crate::symbols::names::Names;

impl<'a> Resolver<'_, 'a, '_, '_> {
    /// The swarms. Those of imports that no run comes to are checked, and use nothing.
    pub(super) fn resolve_swarms(&mut self, agents: &[Agent<'a>], default: Option<Start>) -> Vec<Swarm<'a>> {
        let spec = self.spec;
        let wanted: Vec<bool> = spec
            .swarms
            .iter()
            .enumerate()
            .map(|(index, swarm)| {
                let own = self.tables.modules.is_own(swarm.name.span);
                own || self.uses.swarms[index] || default == Some(Start::Swarm(index))
            })
            .collect();
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        // The wanted ones first, so that what the others use can be taken back.
        order.sort_by_key(|&index| !wanted[index]);
        let mut kept = None;
        let mut swarms = Vec::with_capacity(order.len());
        for index in order {
            if !wanted[index] && kept.is_none() {
                kept = Some(self.uses.clone());
            }
            let swarm = self.resolve_swarm(&spec.swarms[index], agents);
            swarms.push((index, Swarm { wanted: wanted[index], ..swarm }));
        }
        if let Some(kept) = kept {
            self.uses = kept;
        }
        swarms.sort_by_key(|(index, _)| *index);
        swarms.into_iter().map(|(_, swarm)| swarm).collect()
    }

    fn resolve_swarm(&mut self, swarm: &'a ast::Swarm, agents: &[Agent<'a>]) -> Swarm<'a> {
        let leader = swarm.leader.as_ref();
        let names =
            leader.map(|leader| &leader.name).into_iter().chain(swarm.members.iter().map(|member| &member.name));
        let everyone = Names::new("member", names, self.diagnostics);
        let mut reads = Vec::new();
        let goal = swarm.goal.as_ref().map(|goal| text::scan_inline(goal, self.loader, self.diagnostics));
        if let Some(goal) = &goal {
            self.file_reads(goal, None);
            reads.extend(self.free_reads(goal, None, GOAL, Has::default()));
        }
        let name = &swarm.name.value;
        let leader_agent = leader.and_then(|leader| {
            let who = format!("`{}`, the leader of swarm `{name}`, has no agent", leader.name.value);
            self.select_agent(leader.agent.as_ref(), &who, leader.name.span, agents)
        });
        let members: Vec<Member> =
            swarm.members.iter().map(|member| self.resolve_member(swarm, member, agents)).collect();
        let group = |resolver: &mut Self, group: &ast::Group| {
            let who = format!("the {} members of swarm `{name}` have no agent", group.count.value);
            resolver.select_agent(group.agent.as_ref(), &who, group.count.span, agents)
        };
        let groups: Vec<Option<usize>> = swarm.groups.iter().map(|it| group(self, it)).collect();
        let managers: Vec<Option<usize>> =
            swarm.worktrees.iter().map(|tree| self.resolve_manager(swarm, tree, &everyone, agents)).collect();
        let spawns = self.resolve_spawns(swarm, agents);
        let synthesize = self.resolve_synthesizer(swarm, leader_agent, agents);
        self.check_swarm_names(swarm, &everyone);
        for (written, member) in swarm.members.iter().zip(&members) {
            let Some(task) = &member.task else { continue };
            self.diagnostics.set_home(Some(written.name.span));
            self.file_reads(task, None);
            reads.extend(self.free_reads(task, None, TURN, Has::TURNS));
        }
        self.diagnostics.set_home(Some(swarm.name.span));
        let mut resolved = Swarm {
            ast: swarm,
            wanted: true,
            goal,
            leader: leader_agent,
            members,
            groups,
            managers,
            spawns,
            synthesize,
            carries: Vec::new(),
            reads,
        };
        // Several may play one agent, whose mistakes are reported once.
        for prose in resolved.list_players().into_iter().flat_map(|agent| agents[agent].template_texts()) {
            resolved.reads.extend(self.free_reads(prose, None, TURN, Has::TURNS));
        }
        self.diagnostics.set_home(None);
        resolved
    }

    fn resolve_member(&mut self, swarm: &ast::Swarm, member: &ast::Member, agents: &[Agent<'a>]) -> Member {
        let who = format!("member `{}` of swarm `{}` has no agent", member.name.value, swarm.name.value);
        let agent = self.select_agent(member.agent.as_ref(), &who, member.name.span, agents);
        self.diagnostics.set_home(Some(member.name.span));
        let task = member.task.as_ref().and_then(|task| self.resolve_passage(task));
        let task = task.map(|task| text::scan_prose(task, true, self.diagnostics));
        self.diagnostics.set_home(None);
        Member { agent, task }
    }

    /// The agent that is named, or the only one.
    fn select_agent(
        &mut self,
        named: Option<&Name>,
        without: &str,
        place: Span,
        agents: &[Agent<'a>],
    ) -> Option<usize> {
        match named {
            Some(name) => self.agent_named(name, agents),
            None => self.sole_agent(without, "no agent", place, agents),
        }
    }

    /// The agent of a manager who is no member.
    fn resolve_manager(
        &mut self,
        swarm: &ast::Swarm,
        tree: &ast::Managed,
        everyone: &Names,
        agents: &[Agent<'a>],
    ) -> Option<usize> {
        let name = tree.manager.as_ref().filter(|name| everyone.find_exact(&name.value).is_none())?;
        if let Some(agent) = self.tables.find_name(NameKind::Agent, &name.value, true, name.span.file) {
            return Some(self.takes_turns(agent, name, agents));
        }
        let known = self.tables.visible_names(NameKind::Agent, name.span.file);
        let unknown = unknown_member(swarm, name, everyone, &known);
        self.diagnostics.push(unknown);
        None
    }

    /// The agents that the coordinator may add.
    fn resolve_spawns(&mut self, swarm: &ast::Swarm, agents: &[Agent<'a>]) -> Vec<Option<usize>> {
        let named = swarm.spawns.as_ref().map_or(&[] as &[Name], |spawns| &spawns.agents);
        let found: Vec<Option<usize>> = named.iter().map(|name| self.agent_named(name, agents)).collect();
        self.report_repeated(named.iter().zip(&found).filter(|(_, agent)| agent.is_some()).map(|(name, _)| name));
        found
    }

    /// The agent that sums up.
    fn resolve_synthesizer(
        &mut self,
        swarm: &ast::Swarm,
        leader: Option<usize>,
        agents: &[Agent<'a>],
    ) -> Option<usize> {
        let synthesize = swarm.synthesize.as_ref()?;
        match (&synthesize.agent, leader) {
            (Some(name), _) => self.agent_named(name, agents),
            (None, Some(leader)) => Some(leader),
            (None, None) => {
                let who = format!("swarm `{}` has no agent for `synthesize`", swarm.name.value);
                self.select_agent(None, &who, synthesize.span, agents)
            }
        }
    }

    /// Channels, items, worktrees and edges name who and what there is.
    fn check_swarm_names(&mut self, swarm: &'a ast::Swarm, everyone: &Names) {
        // Only to report names that stand twice.
        Names::new("channel", swarm.channels.iter().map(|channel| &channel.name), self.diagnostics);
        Names::new("worktree", swarm.worktrees.iter().map(|tree| &tree.name), self.diagnostics);
        let lists = swarm.channels.iter().map(|channel| &channel.members);
        for list in lists.chain(swarm.worktrees.iter().map(|tree| &tree.members)) {
            self.members_named(swarm, list, everyone);
        }
        let items = Names::new("item", swarm.items.iter().map(|item| &item.name), self.diagnostics);
        let mut needs = Vec::with_capacity(swarm.items.len());
        for item in &swarm.items {
            if let Some(owner) = item.owner.as_ref().filter(|owner| !is_party(swarm, &owner.value, everyone)) {
                self.diagnostics.push(unknown_member(swarm, owner, everyone, &[]));
            }
            let mut found = Vec::new();
            for need in &item.needs {
                match items.find_exact(&need.value) {
                    Some(index) => found.push(index),
                    None => self.diagnostics.push(unknown_item(swarm, need, &items)),
                }
            }
            needs.push(found);
        }
        for circle in order::find_cycles(&needs) {
            self.diagnostics.push(items_in_circle(swarm, &circle));
        }
        if let Some(edges) = &swarm.edges {
            self.resolve_edges(edges, everyone, &|name| unknown_member(swarm, name, everyone, &[]));
        }
    }

    fn members_named(&mut self, swarm: &ast::Swarm, list: &[Name], everyone: &Names) {
        let is_known = |name: &&Name| is_party(swarm, &name.value, everyone);
        for name in list.iter().filter(|name| !is_known(name)) {
            self.diagnostics.push(unknown_member(swarm, name, everyone, &[]));
        }
        self.report_repeated(list.iter().filter(is_known));
    }

    /// Names that stand in one list twice.
    fn report_repeated<'n>(&mut self, list: impl Iterator<Item = &'n Name>) {
        let mut seen = std::collections::BTreeMap::new();
        for name in list {
            if let Some(first) = seen.insert(name.value.as_str(), name.span) {
                self.diagnostics.push(
                    Diagnostic::new(Code::Duplicate, format!("`{}` is listed twice", name.value))
                        .label(name.span, "again here")
                        .label(first, "first here")
                        .help("remove one of them"),
                );
            }
        }
    }
}

/// Whether an agent of the swarm has this name: a manager that is no member is called as its agent.
fn is_party(swarm: &ast::Swarm, name: &str, everyone: &Names) -> bool {
    let mut managers = swarm.worktrees.iter().filter_map(|tree| tree.manager.as_ref());
    everyone.find_exact(name).is_some() || managers.any(|manager| manager.value == name)
}

/// A member that the swarm does not have; `also` are agents that could be meant.
fn unknown_member(swarm: &ast::Swarm, name: &Name, everyone: &Names, also: &[String]) -> Diagnostic {
    let known: Vec<&str> = everyone.iter().chain(also.iter().map(String::as_str)).collect();
    let (close, help) = suggest::did_you_mean(&name.value, &known, "its members are ");
    let help = match swarm.groups.first().filter(|_| close.is_none()) {
        Some(group) => Some(format!(
            "those of `members {}` get their names when the swarm starts; to name one, write `member {} …`",
            group.count.value, name.value
        )),
        None => help,
    };
    let diagnostic = Diagnostic::new(
        Code::UnknownReference,
        format!("there is no member `{}` in swarm `{}`", name.value, swarm.name.value),
    )
    .label(name.span, "not a member of this swarm")
    .help_maybe(help);
    match close {
        Some(close) => diagnostic.write_near(name.span, close),
        None => diagnostic,
    }
}

fn unknown_item(swarm: &ast::Swarm, name: &Name, items: &Names) -> Diagnostic {
    let known: Vec<&str> = items.iter().collect();
    let (close, help) = suggest::did_you_mean(&name.value, &known, "its items are ");
    let diagnostic = Diagnostic::new(
        Code::UnknownReference,
        format!("there is no item `{}` in swarm `{}`", name.value, swarm.name.value),
    )
    .label(name.span, "not an item of this swarm")
    .help_maybe(help);
    match close {
        Some(close) => diagnostic.write_near(name.span, close),
        None => diagnostic,
    }
}

/// Items that wait for each other, drawn.
fn items_in_circle(swarm: &ast::Swarm, circle: &[usize]) -> Diagnostic {
    const DRAWN: usize = 6;
    let name = |item: usize| swarm.items[item].name.value.as_str();
    let message = match circle {
        [only] => format!("item `{}` waits for itself", name(*only)),
        _ => {
            let mut way: Vec<String> = circle.iter().take(DRAWN).map(|&item| format!("`{}`", name(item))).collect();
            if circle.len() > DRAWN {
                way.push(format!("{} more", circle.len() - DRAWN));
            }
            way.push(format!("`{}`", name(circle[0])));
            format!("these items wait for each other: {}", way.join(" → "))
        }
    };
    let diagnostic = Diagnostic::new(Code::Cycle, message);
    let steps = circle.iter().zip(circle.iter().cycle().skip(1)).take(DRAWN);
    steps
        .fold(diagnostic, |diagnostic, (&item, &next)| {
            let need = swarm.items[item].needs.iter().find(|need| need.value == name(next));
            match need {
                Some(need) => diagnostic.label(need.span, format!("`{}` depends on `{}`", name(item), name(next))),
                None => diagnostic,
            }
        })
        .help("take one of these `depends-on` out")
}
