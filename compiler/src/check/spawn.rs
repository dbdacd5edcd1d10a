//! SW504: an agent spawns agents that can do more than itself, or spawns without the permission to.
//!
//! Text that steers the spawning agent also controls the abilities of the spawned one. The check reports nothing if a
//! person or the coordinator approves each new agent, and no policy approves in their place.

use std::collections::{BTreeMap, BTreeSet};

use swarmc_plan::{Approval, Capability, EdgeKind, Unattended};

use crate::ast::{Agent, Leader, Name, Policy, Spanned, Swarm};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{self, Model, Step};
use crate::source::Span;
use crate::suggest;
use crate::symbols::NameKind;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let policy = model.spec.policy.as_ref();
    let usual = policy.and_then(|policy| policy.spawn.as_ref()).map_or(Approval::Auto, |approval| approval.value);
    check_pipelines(model, find_grant(usual, policy, "`policy { spawn human }`").as_ref(), diagnostics);
    for resolved in &model.swarms {
        let swarm = resolved.ast;
        let members = list_members(model, swarm);
        if let Some(coordinator) = swarm.coordinator() {
            check_coordinator(model, resolved, coordinator, (usual, policy), diagnostics);
            let others = members.iter().filter(|member| member.place != coordinator.name.span);
            others.for_each(|member| diagnostics.extend(report_spawning_member(swarm, coordinator, member)));
            continue;
        }
        let approval = swarm.spawn.approval.as_ref().map_or(usual, |approval| approval.value);
        let granted = find_grant(approval, policy, "`spawn approval=human`");
        let mut told = BTreeSet::new();
        for member in &members {
            let Some(spawn) = member.find_capability(Capability::Spawn) else { continue };
            if let Some(granted) = &granted
                && swarm.spawn.per_agent > 0
                && told.insert(member.agent.name.span)
            {
                check_escalations((swarm, granted), member, spawn, &members, diagnostics);
            }
        }
    }
}

/// A member that is to spawn where only the coordinator does.
fn report_spawning_member(swarm: &Swarm, coordinator: &Leader, member: &Member<'_>) -> Option<Diagnostic> {
    let spawn = member.find_capability(Capability::Spawn)?;
    Some(
        Diagnostic::new(
            Code::SpawnEscalation,
            format!("`{}` may not spawn in `{}`: only its coordinator does", member.name, swarm.name.value),
        )
        .label(spawn, format!("agent `{}` can spawn", member.agent.name.value))
        .label(coordinator.name.span, "the coordinator")
        .help("take `spawn` out of its `can`; it can ask the coordinator for help"),
    )
}

/// The agents that a coordinator may add, and that can do more than itself.
fn check_coordinator(
    model: &Model<'_>,
    swarm: &model::Swarm<'_>,
    coordinator: &Leader,
    (usual, policy): (Approval, Option<&Policy>),
    diagnostics: &mut Diagnostics,
) {
    let Some(spawns) = &swarm.ast.spawns else { return };
    // The coordinator is the one who spawns: its own approval is none.
    let approval = if usual == Approval::Coordinator { Approval::Auto } else { usual };
    let Some(granted) = find_grant(approval, policy, "`policy { spawn human }`") else { return };
    let leaders = list_candidates(model, swarm.leader);
    let mut seen = BTreeSet::new();
    for (name, &agent) in spawns.agents.iter().zip(&swarm.spawns) {
        let spawned = list_candidates(model, agent);
        let pairs = leaders.iter().flat_map(|leader| spawned.iter().map(move |spawned| (*leader, *spawned)));
        let mut found = pairs.map(|(leader, spawned)| (leader, extra_capabilities(leader, spawned)));
        let Some((leader, more)) = found.find(|(_, more)| !more.is_empty()) else { continue };
        if !seen.insert(agent) {
            continue;
        }
        let (who, own) = (&coordinator.name.value, &leader.name.value);
        let words = suggest::format_list(more.iter().map(|can| capability_name(can.value)), "and");
        let diagnostic = Diagnostic::new(
            Code::SpawnEscalation,
            format!("coordinator `{who}` may add `{}`, which can do more than its agent `{own}`: {words}", name.value),
        )
        .label(name.span, format!("`{who}` may add it"))
        .label(more[0].span, format!("`{own}` cannot do this itself"));
        diagnostics.push(granted.label_grant(diagnostic));
    }
}

/// The reason why a run grants a spawn without the approval of a person or a coordinator.
struct Granted {
    /// The policy entry that grants it; none where the approval is `auto`.
    place: Option<(Span, &'static str)>,
    /// The help that tells how to change this.
    help: String,
}

/// What grants a spawn with this approval without a person or a coordinator; `human` is spec text that asks a person.
fn find_grant(approval: Approval, policy: Option<&Policy>, human: &str) -> Option<Granted> {
    let (place, instead) = match (approval, policy) {
        (Approval::Auto, _) => (None, format!("let a person approve it, {human}")),
        // In a pipeline there is no coordinator to ask, either.
        (Approval::Human | Approval::Coordinator, Some(policy)) if policy.unattended.value == Unattended::Approve => {
            let place = (policy.unattended.span, "granted in unattended runs");
            (Some(place), "refuse it there, `unattended deny`".to_owned())
        }
        (Approval::Human, Some(Policy { on_timeout: Some(timeout), .. }))
            if timeout.value.then == Unattended::Approve =>
        {
            let place = (timeout.span, "granted if no person answers in time");
            (Some(place), "refuse it then, `on-timeout deny`".to_owned())
        }
        (Approval::Human | Approval::Coordinator, _) => return None,
    };
    Some(Granted { place, help: format!("{instead}, or give both the same `can`") })
}

impl Granted {
    /// Adds the policy entry as a label, and the help.
    fn label_grant(&self, diagnostic: Diagnostic) -> Diagnostic {
        let places = self.place.iter();
        places.fold(diagnostic, |told, (span, words)| told.label(*span, *words)).help(self.help.clone())
    }
}

/// The edges of pipelines by which one task has another one started.
fn check_pipelines(model: &Model<'_>, granted: Option<&Granted>, diagnostics: &mut Diagnostics) {
    for pipeline in &model.pipelines {
        let steps: BTreeMap<&str, &Step<'_>> = pipeline.steps.iter().map(|step| (step.name(), step)).collect();
        let played = |name: &Name| list_candidates(model, steps.get(name.value.as_str()).and_then(|step| step.agent));
        let edges = pipeline.ast.edges.iter().flat_map(|edges| &edges.list);
        for edge in edges.filter(|edge| edge.kind == EdgeKind::Spawn) {
            let (spawners, spawned) = (played(&edge.from), played(&edge.to));
            if spawners.is_empty() || spawned.is_empty() {
                continue;
            }
            let can_spawn =
                |agent: &Agent| agent.can.iter().find(|can| can.value == Capability::Spawn).map(|can| can.span);
            if let Some(spawner) = spawners.iter().find(|agent| can_spawn(agent).is_none()) {
                diagnostics.push(
                    Diagnostic::new(
                        Code::SpawnEscalation,
                        format!("agent `{}` of `{}` may not spawn", spawner.name.value, edge.from.value),
                    )
                    .label(edge.span, format!("`{}` spawns `{}`", edge.from.value, edge.to.value))
                    .label(spawner.name.span, "without `can spawn`")
                    .help(format!("write `can spawn` in agent `{}`", spawner.name.value)),
                );
                continue;
            }
            let Some(granted) = granted else { continue };
            let pairs = spawners.iter().flat_map(|spawner| spawned.iter().map(move |spawned| (*spawner, *spawned)));
            let mut found = pairs.map(|(spawner, spawned)| (spawner, spawned, extra_capabilities(spawner, spawned)));
            let escalation = found.find(|(.., more)| !more.is_empty());
            let Some((spawner, spawned, more)) = escalation else { continue };
            let Some(spawn) = can_spawn(spawner) else { continue };
            let (own, others) = (&spawner.name.value, &spawned.name.value);
            let words = suggest::format_list(more.iter().map(|can| capability_name(can.value)), "and");
            let diagnostic = Diagnostic::new(
                Code::SpawnEscalation,
                format!(
                    "`{}` can spawn `{}`, whose agent `{others}` can do more: {words}",
                    edge.from.value, edge.to.value
                ),
            )
            .label(spawn, format!("`{own}` can have others started"))
            .label(more[0].span, format!("`{own}` cannot do this itself"));
            diagnostics.push(granted.label_grant(diagnostic));
        }
    }
}

/// An agent, and those who take its turns where it cannot.
fn list_candidates<'a>(model: &Model<'a>, agent: Option<usize>) -> Vec<&'a Agent> {
    let all = agent.into_iter().flat_map(|agent| [agent].into_iter().chain(model.list_fallbacks(agent)));
    all.map(|agent| model.agents[agent].ast).collect()
}

/// What an agent can do that its spawner cannot.
fn extra_capabilities<'a>(spawner: &Agent, spawned: &'a Agent) -> Vec<&'a Spanned<Capability>> {
    let is_power =
        |can: &&Spanned<Capability>| can.value != Capability::Spawn && can.value != Capability::UntrustedInput;
    let has = |wanted: Capability| spawner.can.iter().any(|can| can.value == wanted);
    spawned.can.iter().filter(is_power).filter(|can| !has(can.value)).collect()
}

/// Who takes part, and as which agent.
struct Member<'a> {
    name: String,
    place: Span,
    agent: &'a Agent,
}

impl Member<'_> {
    fn find_capability(&self, wanted: Capability) -> Option<Span> {
        self.agent.can.iter().find(|can| can.value == wanted).map(|can| can.span)
    }
}

fn list_members<'a>(model: &Model<'a>, swarm: &Swarm) -> Vec<Member<'a>> {
    let member = |name: &str, place: Span, agent: Option<&Name>| {
        let agent = match agent {
            Some(agent) => model.tables.find_name(NameKind::Agent, &agent.value, true, agent.span.file),
            None => model.tables.find_sole(NameKind::Agent, place.file),
        };
        let agent = model.agents.get(agent?)?.ast;
        Some(Member { name: name.to_owned(), place, agent })
    };
    let leader =
        swarm.leader.iter().filter_map(|leader| member(&leader.name.value, leader.name.span, leader.agent.as_ref()));
    let named = swarm.members.iter().filter_map(|own| member(&own.name.value, own.name.span, own.agent.as_ref()));
    let groups = swarm.groups.iter().filter_map(|group| member("members", group.span, group.agent.as_ref()));
    leader.chain(named).chain(groups).collect()
}

/// What those that a member can start are able to do, and itself is not.
fn check_escalations(
    (swarm, granted): (&Swarm, &Granted),
    spawner: &Member<'_>,
    spawn: Span,
    members: &[Member<'_>],
    diagnostics: &mut Diagnostics,
) {
    let mut seen = BTreeSet::new();
    for other in members.iter().filter(|other| seen.insert(other.agent.name.span)) {
        let more = extra_capabilities(spawner.agent, other.agent);
        let Some(place) = more.first() else { continue };
        let (own, others) = (&spawner.agent.name.value, &other.agent.name.value);
        let more = suggest::format_list(more.iter().map(|can| capability_name(can.value)), "and");
        let diagnostic = Diagnostic::new(
            Code::SpawnEscalation,
            format!("agent `{own}` can spawn `{others}` in `{}`, which can do more: {more}", swarm.name.value),
        )
        .label(spawn, format!("`{own}` can have others started"))
        .label(place.span, format!("`{own}` cannot do this itself"));
        diagnostics.push(granted.label_grant(diagnostic));
    }
}

fn capability_name(capability: Capability) -> &'static str {
    match capability {
        Capability::WriteFiles => "write-files",
        Capability::RunCommands => "run-commands",
        Capability::Network => "network",
        Capability::PrivateData => "private-data",
        Capability::UntrustedInput => "untrusted-input",
        Capability::Spawn => "spawn",
    }
}
