//! The pictures of a swarm: its agents as a tree of who works for whom, and its plan from left to right.
//!
//! In: what the journal says of the swarm. Out: lines for a screen of so many columns.

use std::sync::Arc;
use std::time::Duration;

use swarmc_runtime::team::Life;
use swarmc_view::{Coordination, Team, TeamAgent, Traffic, format_count, format_duration, sanitize_line};

use super::layers::draw_layers;
use crate::terminal::cut_text;

/// The items of a plan that are drawn at most; beyond, lines alone tell more.
const DRAWN: usize = 60;

/// The columns of an item at most.
const ITEM: usize = 36;

/// The pairs of agents whose messages are counted on the screen.
const PAIRS: usize = 12;

/// For how long a message is new, in milliseconds.
const FRESH: u64 = 10_000;

/// What the signs mean.
const AGENTS: &str = "● running  ○ ready  ◐ blocked  ◌ spawned  ✓ completed  ✗ failed  ■ stopped  1/2 its items that are done  ━ message in the last 10 s";
const ITEMS: &str = "● running  ○ ready  ◌ queued  ◐ blocked  ✓ done  ✗ failed";

/// The sign of an agent.
pub(super) fn agent_sign(team: &Team, mate: &TeamAgent) -> &'static str {
    use swarmc_runtime::swarm::End;
    match team.life(mate) {
        Some(Life::Spawned) => "◌",
        Some(Life::Ready) => "○",
        Some(Life::Running) => "●",
        Some(Life::Blocked) => "◐",
        Some(Life::Completed) => "✓",
        Some(Life::Failed | Life::Crashed) => "✗",
        Some(Life::Stopped) => "■",
        // A swarm without a coordinator has no states but these.
        None => match mate.how {
            Some(End::Done | End::Converged | End::Released) => "✓",
            Some(_) => "✗",
            None if mate.asks => "◐",
            None if mate.started => "●",
            None => "◌",
        },
    }
}

/// The agents of a swarm, below those that they work for; who wrote to whom; and conflicts, worktrees and channels where
/// it has a coordinator.
pub(super) fn draw_team(team: &Team, now: u64) -> Vec<String> {
    let coordinator = team.coordination.as_ref().map(|coordination| &coordination.coordinator);
    let has_coordinator = coordinator.is_some_and(|name| team.find_mate(name).is_some());
    let parent = |mate: &TeamAgent| -> Option<Arc<str>> {
        // An agent below itself, or below one that the team does not have, would be drawn nowhere.
        let by = mate.by.clone().filter(|by| *by != mate.name && team.find_mate(by).is_some());
        by.or_else(|| coordinator.filter(|name| has_coordinator && **name != mate.name).cloned())
    };
    let mut lines = Vec::new();
    let tree = Tree { team, children: team.mates.iter().map(|mate| (parent(mate), mate)).collect() };
    tree.draw_below(None, "", &mut lines);
    // Names are lined up, whatever stands before them.
    let width = lines.iter().map(|(head, _)| head.chars().count()).max().unwrap_or(0).min(40);
    let mut lines: Vec<String> = lines.into_iter().map(|(head, says)| format!("{head:<width$}  {says}")).collect();
    lines.extend(team.coordination.iter().flat_map(Coordination::place_lines));
    lines.extend(draw_messages(team, now));
    if !team.mates.is_empty() {
        lines.extend([String::new(), AGENTS.to_owned()]);
    }
    lines
}

/// Who wrote to whom, the last ones first.
fn draw_messages(team: &Team, now: u64) -> Vec<String> {
    let mut traffic: Vec<_> = team.traffic.iter().collect();
    traffic.sort_by_key(|(_, traffic)| std::cmp::Reverse(traffic.last_ms));
    let line = |((from, to), traffic): &(&(Arc<str>, Arc<str>), &Traffic)| {
        let age = now.saturating_sub(traffic.last_ms);
        let sign = if age < FRESH { "━━▸" } else { "──▸" };
        let count = format_count(traffic.count, "message");
        let age = format_duration(Duration::from_millis(age));
        format!("{} {sign} {}  {count}, the last {age} ago", sanitize_line(from), sanitize_line(to))
    };
    let mut lines: Vec<String> = traffic.iter().take(PAIRS).map(line).collect();
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    if let Some(left @ 1..) = traffic.len().checked_sub(PAIRS) {
        lines.push(format!("and {left} more"));
    }
    lines
}

struct Tree<'t> {
    team: &'t Team,
    children: Vec<(Option<Arc<str>>, &'t TeamAgent)>,
}

impl Tree<'_> {
    /// The lines of those that work for an agent: the branch with the sign and the name, and what is said of it.
    fn draw_below(&self, of: Option<&Arc<str>>, left: &str, lines: &mut Vec<(String, String)>) {
        let below: Vec<&TeamAgent> =
            self.children.iter().filter(|(parent, _)| parent.as_ref() == of).map(|(_, mate)| *mate).collect();
        for (index, mate) in below.iter().enumerate() {
            let is_last = index + 1 == below.len();
            let (branch, further) = match (of, is_last) {
                (None, _) => ("", ""),
                (_, false) => ("├─ ", "│  "),
                (_, true) => ("└─ ", "   "),
            };
            let head = format!("{left}{branch}{} {}", agent_sign(self.team, mate), sanitize_line(&mate.name));
            lines.push((head, self.describe(mate)));
            let left = format!("{left}{further}");
            if let Some(intent) = self.team.coordination.as_ref().and_then(|team| team.intents.get(&mate.name)) {
                let has_children = self.children.iter().any(|(parent, _)| parent.as_ref() == Some(&mate.name));
                let stem = if has_children { "│" } else { "" };
                lines.push((format!("{left}{stem}"), format!("is about to: {}", sanitize_line(intent))));
            }
            self.draw_below(Some(&mate.name), &left, lines);
        }
    }

    fn describe(&self, mate: &TeamAgent) -> String {
        let Some(coordination) = &self.team.coordination else {
            return format!("({})  {}  {}", mate.plays, mate.came_to(), mate.doing());
        };
        let own = coordination.plan.items.iter().filter(|item| item.owner.as_ref() == Some(&mate.name)).count();
        let open = coordination.plan.open_items(&mate.name).count();
        let items = if own > 0 { format!("{}/{own}", own - open) } else { String::new() };
        format!("{items:>5}  {}", coordination.describe_mate(mate))
    }
}

/// The plan of a team: its items from left to right, where they fit, and all that is said of each.
pub(super) fn draw_plan(coordination: &Coordination, width: usize) -> Vec<String> {
    let items = &coordination.plan.items;
    let mut lines = Vec::new();
    if items.len() <= DRAWN && items.iter().any(|item| !item.depends_on.is_empty()) {
        let texts: Vec<String> = items
            .iter()
            .map(|item| {
                let sign = match coordination.plan.describe_state(item) {
                    "done" => "✓",
                    "running" => "●",
                    "ready" => "○",
                    "blocked" => "◐",
                    "failed" => "✗",
                    _ => "◌",
                };
                let owner = item.owner.as_deref().map(|owner| format!(" {}", sanitize_line(owner))).unwrap_or_default();
                let reached = match item.checkpoints.len() {
                    0 => String::new(),
                    all => format!(" {}/{all}", item.reached),
                };
                cut_text(&format!("{sign} {}{owner}{reached}", sanitize_line(&item.name)), ITEM)
            })
            .collect();
        let place = |name: &Arc<str>| items.iter().position(|item| item.name == *name);
        let needs: Vec<Vec<usize>> =
            items.iter().map(|item| item.depends_on.iter().filter_map(place).collect()).collect();
        if let Some(drawn) = draw_layers(&texts, &needs, width) {
            lines.extend(drawn);
            lines.extend([String::new(), ITEMS.to_owned(), String::new()]);
        }
    }
    lines.extend(coordination.plan_lines());
    lines
}
