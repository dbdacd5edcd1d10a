//! Swarms: their members, limits and edges.

use std::collections::BTreeSet;

use super::place::{Place, check_budget, check_optional_count, find_cycle};
use super::{ANYWHERE, Checked, MOST, THOUSAND, Validator};
use crate::json::ReadError;
use crate::{Edge, Swarm};

impl<'p> Validator<'p> {
    pub(super) fn check_swarm(&self, place: &Place<'_>, swarm: &'p Swarm) -> Checked {
        let plan = self.plan;
        let agent = |place: &Place<'_>, name: &str| {
            place.ensure_holds(plan.agent(name).is_some(), || {
                format!("swarm `{}` uses agent `{name}`, which the plan does not declare", swarm.name)
            })
        };
        let limits = &swarm.limits;
        let numbers = place.field("limits");
        numbers.field("agents").check_count(limits.agents, 1, THOUSAND)?;
        numbers.field("iterations").check_count(limits.iterations, 1, u32::MAX)?;
        numbers.field("messages").check_count(limits.messages, 1, u32::MAX)?;
        numbers.field("timeout_ms").check_amount(Some(limits.timeout_ms), 1)?;
        let everyone = self.check_roster(place, swarm)?;
        if let Some(lead) = &swarm.lead {
            agent(&place.field("lead").field("agent"), &lead.agent)?;
        }
        for (index, member) in swarm.members.iter().enumerate() {
            let place = place.field("members");
            let place = place.index(index);
            agent(&place.field("agent"), &member.agent)?;
            if let Some(task) = &member.task {
                self.check_template(&place.field("task"), task, ANYWHERE)?;
            }
        }
        if let Some(parts) = swarm.decompose {
            place.field("decompose").check_count(parts, 1, THOUSAND)?;
            place.field("decompose").ensure_holds(swarm.lead.is_some(), || {
                format!("swarm `{}` has no leader to split the goal", swarm.name)
            })?;
        }
        if let Some(goal) = &swarm.goal {
            self.check_template(&place.field("goal"), goal, ANYWHERE)?;
        }
        let times = &swarm.timeouts;
        for (field, limit) in [("turn", times.turn), ("decompose", times.decompose), ("synthesize", times.synthesize)] {
            let place = place.field("timeouts");
            let place = place.field(field);
            place.field("after_ms").check_amount(Some(limit.after_ms), 0)?;
            place.field("retries").check_count(limit.retries, 0, THOUSAND)?;
        }
        let (history, view, converges) = (&swarm.history, &swarm.workspace, &swarm.convergence);
        let counts: [(&str, &str, u64); 10] = [
            ("history", "recent", history.recent.into()),
            ("history", "recent_chars", history.recent_chars),
            ("history", "older_chars", history.older_chars),
            ("history", "prompt_chars", history.prompt_chars),
            ("history", "keep", history.keep.into()),
            ("workspace", "per_topic", view.per_topic.into()),
            ("workspace", "entries", view.entries.into()),
            ("workspace", "snippet", view.snippet),
            ("convergence", "no_progress", converges.no_progress.into()),
            ("convergence", "errors", converges.errors.into()),
        ];
        counts
            .into_iter()
            .try_for_each(|(part, field, count)| place.field(part).field(field).check_count(count, 1, MOST))?;
        let retry = place.field("retry");
        retry.field("backoff_ms").check_amount(Some(swarm.retry.backoff_ms), 0)?;
        retry.field("max_backoff_ms").check_amount(Some(swarm.retry.max_backoff_ms), 0)?;
        place.field("ttl_ms").check_amount(Some(swarm.ttl_ms), 0)?;
        place.field("spawn").field("per_agent").check_count(swarm.spawn.per_agent, 0, THOUSAND)?;
        if let Some(synthesize) = &swarm.synthesize {
            agent(&place.field("synthesize").field("agent"), &synthesize.agent)?;
        }
        let member = |name: &str| everyone.contains(name);
        place.field("channels").check_names("channel", swarm.channels.iter().map(|channel| &channel.name))?;
        for (index, channel) in swarm.channels.iter().enumerate() {
            place.field("channels").index(index).field("members").check_references(
                "member",
                channel.members.iter(),
                member,
            )?;
        }
        place.field("worktrees").check_names("worktree", swarm.worktrees.iter().map(|tree| &tree.name))?;
        for (index, tree) in swarm.worktrees.iter().enumerate() {
            let place = place.field("worktrees");
            let place = place.index(index);
            place.field("members").check_references("member", tree.members.iter(), member)?;
            place.field("manager").ensure_holds(member(&tree.manager), || {
                format!("names member `{}`, which the swarm does not declare", tree.manager)
            })?;
            if let Some(branch) = &tree.into {
                place.field("into").ensure_holds(crate::Worktree::is_branch_name(branch), || {
                    format!("names `{branch}`, which no branch can be called")
                })?;
            }
            for (number, command) in tree.checks.iter().enumerate() {
                place.field("checks").index(number).check_command(command)?;
            }
        }
        self.check_items(&place.field("items"), swarm, member)?;
        check_edges(&place.field("edges"), &swarm.edges, member, "member")?;
        self.check_edge_schemas(&place.field("edges"), &swarm.edges)?;
        check_budget(place, swarm.budget.as_ref())
    }

    /// The names of a swarm's agents. Names must be unique, and `limits.agents` must cover all members, or the swarm
    /// never starts them all.
    fn check_roster(&self, place: &Place<'_>, swarm: &'p Swarm) -> Result<BTreeSet<&'p str>, ReadError> {
        let mut everyone = BTreeSet::new();
        if let Some(lead) = &swarm.lead {
            place.field("lead").field("name").check_name(&lead.name)?;
            everyone.insert(lead.name.as_str());
        }
        let list = place.field("members");
        // A coordinator may begin alone, and add all the others.
        let adds = swarm.spawns.is_some() && swarm.lead.as_ref().is_some_and(|lead| lead.coordinator);
        list.ensure_holds(!swarm.members.is_empty() || adds, || format!("swarm `{}` has no member", swarm.name))?;
        // In 64 bits, as the counts of the members have 32 each.
        let mut agents = 0u64;
        for (index, member) in swarm.members.iter().enumerate() {
            let place = list.index(index);
            agents += u64::from(member.count);
            match (&member.name, &member.names) {
                (Some(name), None) => {
                    place.field("name").check_name(name)?;
                    place
                        .field("name")
                        .ensure_holds(everyone.insert(name), || format!("member `{name}` is declared twice"))?;
                    place.field("count").check_count(member.count, 1, 1u64)?;
                }
                (None, Some(list)) => {
                    place
                        .field("names")
                        .ensure_holds(list == "stations", || format!("there is no list of names `{list}`"))?;
                    place.field("count").check_count(member.count, 1, THOUSAND)?;
                }
                _ => return place.fail_with("a member has either a name or a list of names"),
            }
        }
        list.ensure_holds(agents <= u64::from(swarm.limits.agents), || {
            format!("swarm `{}` has {agents} members, but allows {} agents at most", swarm.name, swarm.limits.agents)
        })?;
        Ok(everyone)
    }

    fn check_items(&self, place: &Place<'_>, swarm: &Swarm, member: impl Fn(&str) -> bool) -> Checked {
        place.check_names("item", swarm.items.iter().map(|item| &item.name))?;
        let known = |name: &str| swarm.items.iter().any(|item| item.name == name);
        for (index, item) in swarm.items.iter().enumerate() {
            let place = place.index(index);
            place.field("depends_on").check_references("item", item.depends_on.iter(), known)?;
            if let Some(owner) = &item.owner {
                place.field("owner").ensure_holds(member(owner), || {
                    format!("names member `{owner}`, which the swarm does not declare")
                })?;
            }
        }
        match find_cycle(swarm.items.iter().map(|item| (item.name.as_str(), item.depends_on.clone()))) {
            Some(name) => place.fail_with(format!("item `{name}` of swarm `{}` waits for itself", swarm.name)),
            None => Ok(()),
        }
    }

    pub(super) fn check_edge_schemas(&self, place: &Place<'_>, edges: &[Edge]) -> Checked {
        let carried = edges.iter().enumerate().filter_map(|(index, edge)| Some((index, edge.carries.as_ref()?)));
        carried
            .into_iter()
            .try_for_each(|(index, schema)| self.check_schema(&place.index(index).field("carries"), schema))
    }
}

pub(super) fn check_edges(place: &Place<'_>, edges: &[Edge], known: impl Fn(&str) -> bool, what: &str) -> Checked {
    for (index, edge) in edges.iter().enumerate() {
        let place = place.index(index);
        for (field, name) in [("from", &edge.from), ("to", &edge.to)] {
            place.field(field).ensure_holds(known(name), || format!("names {what} `{name}`, which is not declared"))?;
        }
        place.ensure_holds(edge.from != edge.to, || format!("leads from `{}` to itself", edge.from))?;
        check_optional_count(&place.field("max"), edge.max)?;
    }
    Ok(())
}
