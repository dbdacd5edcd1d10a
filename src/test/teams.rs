//! Whether what a test expects of a swarm with a coordinator holds: its plan, its items, and messages to its agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use swarmc_compiler::TeamExpected;
use swarmc_runtime::swarm::{MemberMessage, Rules, Swarm};
use swarmc_runtime::team::MergeState;
use swarmc_runtime::{Content, Event, Record, StepId, TeamFact};
use swarmc_view::Coordination;

use super::assertions::{indent_lines, quote_text};
use super::outcome::TestOutcome;

/// The messages that are listed at most.
const LISTED: usize = 20;

/// An expectation that does not hold.
pub(super) struct Broken {
    pub(super) message: String,
    pub(super) label: &'static str,
    pub(super) notes: String,
}

/// A swarm with a coordinator, at its end.
struct Ended<'a> {
    team: Coordination,
    /// The messages to each agent, in order.
    letters: BTreeMap<Arc<str>, Vec<&'a Content>>,
}

/// What of an expectation does not hold.
///
/// # Errors
/// It does not hold, or no swarm is meant.
pub(super) fn check_team(story: &TestOutcome<'_>, of: Option<&str>, expected: &TeamExpected) -> Result<(), Broken> {
    let teams = collect_teams(story);
    let broken = |message: String, label, notes| Err(Broken { message, label, notes });
    let meant: Vec<(&StepId, &Ended<'_>)> =
        teams.iter().filter(|(step, _)| of.is_none_or(|of| *step.name == *of)).collect();
    let (step, ended) = match meant[..] {
        [(step, ended)] => (step.label(), ended),
        [] => {
            let whose = of.map_or_else(String::new, |of| format!(" of `{of}`"));
            return broken(format!("no swarm with a coordinator{whose} ran"), "nothing to look at", String::new());
        }
        _ => {
            let steps: Vec<String> = meant.iter().map(|(step, _)| format!("`{}`", step.label())).collect();
            let notes = format!("name one by `of=`: {}\n", steps.join(", "));
            return broken("several swarms have a plan".to_owned(), "which one?", notes);
        }
    };
    let plan = &ended.team.plan;
    let lines = || indent_lines(&ended.team.plan_lines().join("\n"));
    match expected {
        TeamExpected::Plan { version } if plan.version == *version => Ok(()),
        TeamExpected::Plan { version } => {
            let message = format!("the plan of `{step}` is at version {}, not {version}", plan.version);
            broken(message, "another version", lines())
        }
        TeamExpected::Item { item, state, owner } => {
            let Some(found) = plan.item(item) else {
                return broken(format!("the plan of `{step}` has no item `{item}`"), "not in it", lines());
            };
            let (is, whose) = (plan.describe_state(found), found.owner.as_deref());
            if is != state {
                return broken(format!("item `{item}` is {is}, not {state}"), "another state", lines());
            }
            match owner.as_deref().filter(|owner| Some(*owner) != whose) {
                None => Ok(()),
                Some(owner) => {
                    let whose = whose.map_or_else(|| "has no owner".to_owned(), |whose| format!("belongs to {whose}"));
                    broken(format!("item `{item}` {whose}, not to {owner}"), "another owner", lines())
                }
            }
        }
        TeamExpected::Worktree { worktree, state } => {
            let Some(found) = ended.team.worktrees.get(worktree.as_str()) else {
                let known: Vec<String> = ended.team.worktrees.keys().map(|name| format!("`{name}`")).collect();
                let notes = if known.is_empty() { String::new() } else { format!("it has {}\n", known.join(", ")) };
                return broken(format!("the swarm of `{step}` has no worktree `{worktree}`"), "not there", notes);
            };
            let is = match found.merge {
                None | Some((MergeState::Aborted, ..)) => "unmerged",
                Some((MergeState::Open, ..)) => "merging",
                Some((MergeState::Committed | MergeState::Merged, ..)) => "merged",
            };
            if is == state {
                return Ok(());
            }
            broken(format!("worktree `{worktree}` is {is}, not {state}"), "another state", lines())
        }
        TeamExpected::Notice { to, contains } => {
            let texts: Vec<&str> = ended
                .letters
                .get(to.as_str())
                .into_iter()
                .flatten()
                .map(|letter| story.rehearsal.text(letter))
                .collect();
            if texts.iter().any(|text| read_message(text).contains(contains)) {
                return Ok(());
            }
            let notes: Vec<String> = texts.iter().take(LISTED).map(|text| read_message(text)).collect();
            let notes =
                if notes.is_empty() { "it received none\n".to_owned() } else { indent_lines(&notes.join("\n")) };
            broken(format!("no message to {to} contains {}", quote_text(contains)), "not received", notes)
        }
    }
}

/// What a message says: of an object with a `message`, that.
fn read_message(text: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(text).ok();
    value.and_then(|value| Some(value.get("message")?.as_str()?.to_owned())).unwrap_or_else(|| text.to_owned())
}

/// The swarms with a coordinator that ran, by their steps: each in its last attempt.
fn collect_teams<'a>(story: &TestOutcome<'a>) -> BTreeMap<StepId, Ended<'a>> {
    let mut teams: BTreeMap<StepId, Ended<'a>> = BTreeMap::new();
    // As the run folds them: they say who receives a message.
    let mut swarms: BTreeMap<StepId, Swarm> = BTreeMap::new();
    for Record { event, at, .. } in &story.rehearsal.records {
        let Some(id) = event.swarm() else { continue };
        if let Event::SwarmStarted { run, goal, .. } = event
            && let Some(declared) = Coordination::find_swarm(story.plan, &id.step.name)
            && let Some(team) = Coordination::new(declared)
        {
            let rules = Arc::new(Rules::new(story.plan, declared));
            swarms.insert(id.step.clone(), Swarm::new(id.clone(), rules, run, goal.clone()));
            teams.insert(id.step.clone(), Ended { team, letters: BTreeMap::new() });
        }
        let (Some(ended), Some(swarm)) = (teams.get_mut(&id.step), swarms.get_mut(&id.step)) else { continue };
        if let Event::MessageSent { message: MemberMessage { payload: text, .. }, .. }
        | Event::Team { fact: TeamFact::Posted { message: text, .. }, .. } = event
        {
            let receivers = swarm.find_receivers(event);
            receivers.into_iter().for_each(|to| ended.letters.entry(to).or_default().push(text));
        }
        swarm.apply(event, *at);
        ended.team.apply(event);
    }
    teams
}
