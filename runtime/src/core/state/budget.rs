//! Budgets: what is reserved before an attempt starts, and what it turns out to have used.
//!
//! Invariant: what was started never uses more than the budgets hold as far as that is known beforehand, however much
//! runs at once; what stays unknown keeps its reservation, and is never zero.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swarmc_plan::Budget;

use super::State;
use super::frame::{Ending, Step, Summing};
use crate::core::graph::Key;
use crate::types::event::{Failure, Outcome, Reserved};
use crate::types::usage::compute_cost;

/// What was used or is reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Spent {
    pub(crate) calls: u64,
    pub(crate) tokens: u64,
    /// In millionths of a dollar.
    pub(crate) cost: u64,
    /// The wall time of attempts, in milliseconds.
    pub(crate) time_ms: u64,
    /// What of it is only reserved.
    pub(super) open: Open,
}

/// What launches that are under way have reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Open {
    launches: u64,
    calls: u64,
    tokens: u64,
    cost: u64,
}

/// What a step has of the budgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Account {
    /// What its open attempt may use.
    reserved: Reserved,
    /// When that attempt began.
    began: u64,
    /// What the attempts of this round used.
    spent: Spent,
}

/// Who does not let an attempt start, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The workflow, or the pipeline that runs: the run ends.
    Run {
        /// Why.
        message: String,
        /// Whether what runs is let finish.
        graceful: bool,
    },
    /// The agent, the task, or a called pipeline: the attempt fails.
    Step(String),
}

impl State {
    /// Whether an attempt that may use this much may start.
    pub(crate) fn admit_attempt(&self, key: Key, wanted: &Reserved) -> Result<(), Refusal> {
        self.admit_of(key, self.acting_agent(key), wanted)
    }

    /// Whether an attempt of a step, in which this agent takes the turn, may start.
    pub(crate) fn admit_of(&self, key: Key, agent: Option<&Arc<str>>, wanted: &Reserved) -> Result<(), Refusal> {
        for (what, budget) in &self.graph.budgets {
            let refused = |message| Err(Refusal::Run { message, graceful: budget.at_most });
            describe_excess(what, budget, self.spent, wanted).map_or(Ok(()), refused)?;
        }
        let refused = |words: String| Err(Refusal::Step(words));
        let node = self.node(key);
        if let Some(agent) = agent
            && let Some(budget) = self.graph.agents.get(agent).and_then(|agent| agent.budget.as_ref())
        {
            let spent = self.agents.get(agent).copied().unwrap_or_default();
            describe_excess(&format!("agent `{agent}`"), budget, spent, wanted).map_or(Ok(()), refused)?;
        }
        if let Some(budget) = &node.budget {
            let spent = self.step(key).account.as_ref().map_or(Spent::default(), |account| account.spent);
            describe_excess(&format!("`{}`", node.name), budget, spent, wanted).map_or(Ok(()), refused)?;
        }
        for scope in self.calls_around(key.frame) {
            let called = self.graph.scope(self.region(scope).scope);
            if let Some(budget) = &called.budget {
                let what = format!("pipeline `{}`", called.pipeline);
                describe_excess(&what, budget, self.frame(scope).spent, wanted).map_or(Ok(()), refused)?;
            }
        }
        Ok(())
    }

    /// The wall time that an attempt of a step may take at most, in milliseconds; none where no budget says so.
    pub(crate) fn time_left(&self, key: Key) -> Option<u64> {
        let node = self.node(key);
        let left = |budget: &Budget, spent: Spent| Some(budget.time_ms?.saturating_sub(spent.time_ms));
        let of_step = node.budget.as_ref().and_then(|budget| {
            left(budget, self.step(key).account.as_ref().map_or(Spent::default(), |account| account.spent))
        });
        let of_agent = self.acting_agent(key).and_then(|agent| {
            let budget = self.graph.agents.get(agent)?.budget.as_ref()?;
            left(budget, self.agents.get(agent).copied().unwrap_or_default())
        });
        of_step.into_iter().chain(of_agent).min()
    }

    /// What the whole run used so far, with the budgets that bound it.
    pub(crate) fn usage(&self) -> (Spent, &[(String, Budget)]) {
        (self.spent, &self.graph.budgets)
    }

    /// When the run's time is over, in milliseconds since 1970.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let time = self.graph.budgets.iter().filter_map(|(_, budget)| budget.time_ms).min()?;
        Some(self.began?.saturating_add(time))
    }

    /// When the next pause of a step is over, in milliseconds since 1970.
    pub(crate) fn next_pause(&self) -> Option<u64> {
        self.agenda.timers.first().map(|&(due, _)| due)
    }

    /// An attempt began.
    pub(super) fn reserve_attempt(&mut self, key: Key, reserved: Option<Reserved>, at: u64) {
        if !self.graph.has_budgets {
            return;
        }
        let reserved = reserved.unwrap_or_default();
        let account = self.step_mut(key).account.get_or_insert_default();
        // An attempt that starts again after a crash may have used what the first one reserved: that counts as used.
        let lost = std::mem::replace(&mut account.reserved, reserved);
        account.began = at;
        self.each_account(key, |spent| {
            spent.open.close(&lost);
            spent.add(&reserved);
        });
    }

    /// An attempt ended: what it used takes the place of what it reserved, as far as that is known.
    pub(super) fn account_for(&mut self, key: Key, outcome: &Outcome, at: u64) {
        let Some(account) = self.step(key).account.as_deref().copied() else { return };
        let price = self.acting_agent(key).and_then(|agent| self.graph.agents.get(agent)?.price);
        let Account { reserved, began, .. } = account;
        // Repairs were reserved as well, as far as they might be needed: only those that were taken count.
        let turns = if reserved.calls > 0 { 1 + u64::from(outcome.repairs) } else { 0 };
        // A swarm's turns were counted one by one.
        let counts = outcome.failure != Some(Failure::Cancelled) && self.node(key).swarm.is_none();
        let used = counts.then_some(outcome.usage).flatten();
        // A provider that reports only a price used tokens all the same.
        let tokens = used.map(|usage| usage.input.saturating_add(usage.output)).filter(|tokens| *tokens > 0);
        let cost = used.and_then(|usage| compute_cost(&usage, price));
        // What is more than it says is at least what was reserved for it.
        let floor = |known: Option<u64>, reserved: Option<u64>| match used.is_some_and(|usage| usage.at_least) {
            true => known.max(reserved),
            false => known,
        };
        let (tokens, cost) = (floor(tokens, reserved.tokens), floor(cost, reserved.cost));
        self.each_account(key, |spent| {
            spent.calls = spent.calls.saturating_sub(reserved.calls).saturating_add(turns);
            spent.replace(&reserved, [tokens, cost]);
            spent.time_ms = spent.time_ms.saturating_add(at.saturating_sub(began));
        });
        // Nothing is reserved any more: an end that comes twice must not give it back twice.
        if let Some(account) = &mut self.step_mut(key).account {
            account.reserved = Reserved::default();
        }
    }

    /// Whether a turn of a swarm that may use this much may start.
    pub(crate) fn admit_turn(&self, key: Key, agent: &Arc<str>, wanted: &Reserved) -> Result<(), Refusal> {
        self.admit_attempt(key, wanted)?;
        if let Some(budget) = self.graph.agents.get(agent).and_then(|agent| agent.budget.as_ref()) {
            let spent = self.agents.get(agent).copied().unwrap_or_default();
            if let Some(words) = describe_excess(&format!("agent `{agent}`"), budget, spent, wanted) {
                return Err(Refusal::Step(words));
            }
        }
        Ok(())
    }

    /// A turn of a swarm began.
    pub(super) fn turn_reserved(&mut self, key: Key, agent: &Arc<str>, reserved: &Reserved) {
        self.each_account(key, |spent| spent.add(reserved));
        self.agents.entry(Arc::clone(agent)).or_default().add(reserved);
    }

    /// A turn of a swarm ended: what it used takes the place of what it reserved, as far as that is known.
    pub(super) fn turn_used(&mut self, key: Key, agent: &Arc<str>, reserved: &Reserved, used: [Option<u64>; 2]) {
        let replace = |spent: &mut Spent| spent.replace(reserved, used);
        self.each_account(key, replace);
        replace(self.agents.entry(Arc::clone(agent)).or_default());
    }

    /// The budget of the run is spent: nothing starts any more, and what runs is ended, or let finish.
    pub(super) fn budget_spent(&mut self, graceful: bool) {
        self.over_budget = true;
        if graceful {
            return self.halt_run();
        }
        for instance in 0..self.graph.instances {
            let ending = Ending { by: "budget".into(), stop: Some(swarmc_plan::StopStatus::Failure) };
            self.end_early(instance, &ending);
        }
    }

    fn each_account(&mut self, key: Key, change: impl Fn(&mut Spent)) {
        change(&mut self.spent);
        if let Some(agent) = self.acting_agent(key).cloned() {
            change(self.agents.entry(agent).or_default());
        }
        for scope in self.calls_around(key.frame) {
            change(&mut self.frame_mut(scope).spent);
        }
        if let Step { account: Some(account), .. } = self.step_mut(key) {
            change(&mut account.spent);
        }
    }

    /// The agent whose turn the attempt of a step is.
    pub(crate) fn acting_agent(&self, key: Key) -> Option<&Arc<str>> {
        let node = self.node(key);
        match self.step(key).summing.as_deref() {
            Some(Summing { by: Some(summarizer), .. }) => Some(summarizer),
            _ if self.is_being_mended(key) => node.fix.as_ref(),
            _ => node.agent.as_ref(),
        }
    }

    /// Whether the attempt of a step that is open, or comes next, is the turn of the agent that mends what failed.
    pub(crate) fn is_being_mended(&self, key: Key) -> bool {
        self.node(key).fix_attempt() == Some(self.step(key).turn_attempt())
    }

    /// The frames of the called pipelines that a frame is in.
    fn calls_around(&self, frame: u32) -> Vec<u32> {
        let mut calls = Vec::new();
        let mut scope = self.frame(frame).scope;
        while let Some(parent) = self.frame(scope).parent {
            calls.push(scope);
            scope = self.frame(parent.frame).scope;
        }
        calls
    }
}

impl Open {
    fn add(&mut self, reserved: &Reserved) {
        self.change(reserved, u64::saturating_add);
    }

    /// What was reserved is used, or given back.
    fn close(&mut self, reserved: &Reserved) {
        self.change(reserved, u64::saturating_sub);
    }

    fn change(&mut self, reserved: &Reserved, by: fn(u64, u64) -> u64) {
        self.launches = by(self.launches, reserved.calls.min(1));
        self.calls = by(self.calls, reserved.calls);
        self.tokens = by(self.tokens, reserved.tokens.unwrap_or(0));
        self.cost = by(self.cost, reserved.cost.unwrap_or(0));
    }
}

impl Spent {
    fn add(&mut self, reserved: &Reserved) {
        self.calls = self.calls.saturating_add(reserved.calls);
        self.tokens = self.tokens.saturating_add(reserved.tokens.unwrap_or(0));
        self.cost = self.cost.saturating_add(reserved.cost.unwrap_or(0));
        self.open.add(reserved);
    }

    /// Tokens and cost that are known now take the place of those that were reserved.
    fn replace(&mut self, reserved: &Reserved, known: [Option<u64>; 2]) {
        let replaced = |sum: u64, reserved: Option<u64>, known: Option<u64>| match known {
            Some(known) => sum.saturating_sub(reserved.unwrap_or(0)).saturating_add(known),
            None => sum,
        };
        let [tokens, cost] = known;
        self.tokens = replaced(self.tokens, reserved.tokens, tokens);
        self.cost = replaced(self.cost, reserved.cost, cost);
        self.open.close(reserved);
    }

    /// What was used for certain: launches that are under way count as one turn, and nothing else of them is known.
    fn settled(&self) -> Spent {
        let Open { launches, calls, tokens, cost } = self.open;
        Spent {
            calls: self.calls.saturating_sub(calls).saturating_add(launches),
            tokens: self.tokens.saturating_sub(tokens),
            cost: self.cost.saturating_sub(cost),
            ..*self
        }
    }

    /// How much of a budget is used, in percent of the part that is used most.
    pub(crate) fn percent(&self, budget: &Budget) -> u64 {
        let part = |used: u64, limit: Option<u64>| limit.map(|limit| used.saturating_mul(100) / limit.max(1));
        let parts = [part(self.calls, budget.calls), part(self.tokens, budget.tokens), part(self.cost, budget.cost)];
        parts.into_iter().flatten().max().unwrap_or(0)
    }
}

/// In words, by how much an attempt would exceed a budget; where it is one that proves nothing, that it is used up.
fn describe_excess(what: &str, budget: &Budget, spent: Spent, wanted: &Reserved) -> Option<String> {
    if budget.at_most {
        let used_up = if wanted.calls > 0 { describe_used_up(what, budget, spent.settled()) } else { None };
        return used_up.or_else(|| describe_time(what, budget, spent));
    }
    let exceeds = |limit: Option<u64>, spent: u64, wanted: u64| {
        limit.filter(|&limit| wanted > 0 && spent.saturating_add(wanted) > limit)
    };
    let words = |spent: String, wanted: String, limit: String| {
        Some(format!("the budget of {what} is {limit}: {spent} are used or reserved, and this may use {wanted} more"))
    };
    let plain = |number: u64| number.to_string();
    if let Some(limit) = exceeds(budget.calls, spent.calls, wanted.calls) {
        return words(plain(spent.calls), plain(wanted.calls), format!("{limit} turns of agents"));
    }
    // Where the size is not known, the turn may start as long as something is left.
    let tokens = wanted.tokens.unwrap_or(0).max(wanted.calls.min(1));
    if let Some(limit) = exceeds(budget.tokens, spent.tokens, tokens) {
        return words(plain(spent.tokens), plain(tokens), format!("{limit} tokens"));
    }
    // Where the price is not known, the turn may start as long as something is left.
    let cost = wanted.cost.unwrap_or(0).max(wanted.calls.min(1));
    if let Some(limit) = exceeds(budget.cost, spent.cost, cost) {
        return words(format_dollars(spent.cost), format_dollars(cost), format_dollars(limit));
    }
    describe_time(what, budget, spent)
}

/// In words, which limit of a budget that proves nothing is used up.
fn describe_used_up(what: &str, budget: &Budget, used: Spent) -> Option<String> {
    let words = |used: String, limit: String| Some(format!("the budget of {what} is used up: {used} of {limit}"));
    if let Some(limit) = budget.calls.filter(|&limit| used.calls >= limit) {
        return words(used.calls.to_string(), format!("{limit} turns of agents"));
    }
    if let Some(limit) = budget.tokens.filter(|&limit| used.tokens >= limit) {
        return words(used.tokens.to_string(), format!("{limit} tokens"));
    }
    let limit = budget.cost.filter(|&limit| used.cost >= limit)?;
    words(format_dollars(used.cost), format_dollars(limit))
}

/// The time of the whole run is a deadline, which ends attempts that are under way too.
fn describe_time(what: &str, budget: &Budget, spent: Spent) -> Option<String> {
    let over = budget.time_ms.is_some_and(|limit| spent.time_ms >= limit) && !what.starts_with("the ");
    over.then(|| format!("the time budget of {what} is spent"))
}

fn format_dollars(millionths: u64) -> String {
    format!("${}.{:04}", millionths / 1_000_000, millionths % 1_000_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_not_used_up_until_it_may_have_been() {
        let reserved = Reserved { calls: 3, tokens: Some(100), cost: Some(7) };
        let used = |spent: &Spent| {
            let Spent { calls, tokens, cost, .. } = spent.settled();
            (calls, tokens, cost)
        };
        let mut spent = Spent::default();
        spent.add(&reserved);
        assert_eq!(used(&spent), (1, 0, 0), "a launch is one turn at least");
        // Its runner was killed: it may have used all that.
        let mut lost = spent;
        lost.open.close(&reserved);
        lost.add(&reserved);
        assert_eq!(used(&lost), (4, 100, 7));
        // It ended, and what it used is known in part.
        spent.replace(&reserved, [Some(40), None]);
        assert_eq!(used(&spent), (3, 40, 7));
    }
}
