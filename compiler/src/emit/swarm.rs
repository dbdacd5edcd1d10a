//! Swarms and edges.

use swarmc_plan as plan;

use super::Emitter;
use super::command::emit_command;
use crate::ast;
use crate::model::{Swarm, TemplateText};
use crate::types::Type;

impl Emitter<'_, '_, '_> {
    pub(super) fn emit_swarm(&self, swarm: &Swarm<'_>) -> plan::Swarm {
        let ast = swarm.ast;
        plan::Swarm {
            name: ast.name.value.clone(),
            description: ast.description.clone(),
            goal: swarm.goal.as_ref().map(|goal| self.emit_current_text(goal)),
            lead: ast.leader.as_ref().map(|leader| plan::Lead {
                name: leader.name.value.clone(),
                agent: self.agent_name(swarm.leader),
                coordinator: leader.kind == ast::LeaderKind::Coordinator,
            }),
            members: self.emit_members(swarm),
            decompose: ast.decompose.as_ref().map(|decompose| decompose.max),
            limits: plan::SwarmLimits {
                agents: ast.limits.agents,
                iterations: ast.limits.iterations,
                timeout_ms: ast.limits.timeout_ms,
                messages: ast.limits.messages,
                proposals: ast.limits.proposals,
                items: ast.limits.items,
                summary_feed: ast.limits.summary_feed,
                context_reads: ast.limits.context_reads,
            },
            timeouts: plan::SwarmTimeouts {
                turn: emit_turn_limit(ast.timeouts.turn),
                decompose: emit_turn_limit(ast.timeouts.decompose),
                synthesize: emit_turn_limit(ast.timeouts.synthesize),
            },
            history: plan::History {
                recent: ast.history.recent,
                recent_chars: ast.history.recent_chars.into(),
                older_chars: ast.history.older_chars.into(),
                prompt_chars: ast.history.prompt_chars.into(),
                keep: ast.history.keep,
            },
            workspace: plan::WorkspaceView {
                per_topic: ast.workspace.per_topic,
                entries: ast.workspace.entries,
                snippet: ast.workspace.snippet.into(),
            },
            ttl_ms: ast.ttl_ms,
            convergence: plan::Convergence {
                no_progress: ast.convergence.no_progress,
                counts: ast.convergence.counts,
                errors: ast.convergence.errors,
            },
            retry: plan::TransientRetry { backoff_ms: ast.retry.transient_ms, max_backoff_ms: ast.retry.max_ms },
            spawn: plan::Spawn { approval: self.spawn_approval(ast), per_agent: ast.spawn.per_agent },
            spawns: ast.spawns.as_ref().map(|spawns| plan::Spawns {
                agents: swarm.spawns.iter().map(|agent| self.agent_name(*agent)).collect(),
                max: spawns.max.value,
            }),
            channels: ast
                .channels
                .iter()
                .map(|channel| plan::Group {
                    name: channel.name.value.clone(),
                    members: name_values(&channel.members),
                    open: channel.open,
                })
                .collect(),
            items: ast.items.iter().map(emit_item).collect(),
            worktrees: ast
                .worktrees
                .iter()
                .map(|tree| plan::Worktree {
                    name: tree.name.value.clone(),
                    manager: tree.manager.as_ref().map(|manager| manager.value.clone()).unwrap_or_default(),
                    members: name_values(&tree.members),
                    into: tree.into.as_ref().map(|branch| branch.value.clone()),
                    checks: tree.checks.iter().map(emit_command).collect(),
                })
                .collect(),
            conflicts: plan::Conflicts { notices: ast.conflicts.notices, window_ms: ast.conflicts.window_ms },
            edges: self.emit_edges(ast.edges.as_ref(), &swarm.carries),
            synthesize: ast.synthesize.as_ref().map(|_| plan::Synthesize { agent: self.agent_name(swarm.synthesize) }),
            budget: ast.budget.as_ref().map(|budget| self.emit_budget(budget)),
            origin: self.to_origin(ast.name.span),
        }
    }

    /// Those with a name in the order of the spec, then those that are named from a list.
    fn emit_members(&self, swarm: &Swarm<'_>) -> Vec<plan::Member> {
        let named = swarm.ast.members.iter().zip(&swarm.members).map(|(ast, member)| plan::Member {
            name: Some(ast.name.value.clone()),
            names: None,
            count: 1,
            agent: self.agent_name(member.agent),
            task: member.task.as_ref().map(|task| self.emit_current_text(task)),
            origin: self.to_origin(ast.name.span),
        });
        let groups = swarm.ast.groups.iter().zip(&swarm.groups).map(|(group, agent)| plan::Member {
            name: None,
            names: Some(match group.names {
                ast::NameList::Stations => "stations".to_owned(),
            }),
            count: group.count.value,
            agent: self.agent_name(*agent),
            task: None,
            origin: self.to_origin(group.span),
        });
        // A manager that is an agent and no member becomes one.
        let managers = swarm.ast.worktrees.iter().zip(&swarm.managers).filter_map(|(tree, agent)| {
            let name = tree.manager.as_ref()?;
            Some(plan::Member {
                name: Some(name.value.clone()),
                names: None,
                count: 1,
                agent: self.agent_name(Some((*agent)?)),
                task: None,
                origin: self.to_origin(name.span),
            })
        });
        named.chain(managers).chain(groups).collect()
    }

    /// What it says itself, else what the policy of the workflow says.
    fn spawn_approval(&self, swarm: &ast::Swarm) -> plan::Approval {
        let policy = self.model.spec.policy.as_ref().and_then(|policy| policy.spawn.as_ref());
        swarm.spawn.approval.as_ref().or(policy).map(|approval| approval.value).unwrap_or_default()
    }

    fn agent_name(&self, agent: Option<usize>) -> String {
        let agent = agent.expect("a model without errors has an agent for each member");
        self.model.agents[agent].ast.name.value.clone()
    }

    /// A text in which no round before can be read.
    pub(super) fn emit_current_text(&self, prose: &TemplateText) -> plan::Template {
        self.emit_text(prose, &|_| false)
    }

    pub(super) fn emit_edges(&self, edges: Option<&ast::Edges>, carries: &[Option<Type>]) -> Vec<plan::Edge> {
        let edges = edges.into_iter().flat_map(|edges| &edges.list).zip(carries);
        let edge = |(edge, carries): (&ast::Edge, &Option<Type>)| plan::Edge {
            from: edge.from.value.clone(),
            to: edge.to.value.clone(),
            both: edge.both,
            kind: edge.kind,
            carries: carries.as_ref().map(|kind| plan::Schema(self.model.typing.types.schema(kind))),
            response: edge.response.value,
            max: edge.max.as_ref().map(|max| max.value),
            origin: self.to_origin(edge.from.span),
        };
        edges.map(edge).collect()
    }
}

fn emit_turn_limit(limit: ast::TurnTimeout) -> plan::TurnLimit {
    plan::TurnLimit { after_ms: limit.time_ms, retries: limit.retries }
}

fn name_values(names: &[ast::Name]) -> Vec<String> {
    names.iter().map(|name| name.value.clone()).collect()
}

fn emit_item(item: &ast::Item) -> plan::PlanItem {
    plan::PlanItem {
        name: item.name.value.clone(),
        text: item.text.as_ref().map_or_else(|| item.name.value.clone(), |text| text.as_str().to_owned()),
        owner: item.owner.as_ref().map(|owner| owner.value.clone()),
        priority: item.priority,
        depends_on: name_values(&item.needs),
        checkpoints: item.checkpoints.iter().map(|text| text.as_str().to_owned()).collect(),
        scope: item.scope.iter().map(|glob| glob.value.clone()).collect(),
    }
}
