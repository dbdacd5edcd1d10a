//! What steps, loops and pipelines use at most: sums over steps, products over rounds, retries and items.
//!
//! In: a plan. Out: [`Totals`] of each pipeline and swarm. Linear in the plan: a called pipeline is counted once, before
//! those that call it; loops and items multiply.

use std::collections::{HashMap, HashSet};

use swarmc_plan::{Agent, Body, Budget, Likely, Member, OnFailure, Pipeline, Plan, PromptBody, Step, Swarm};

use super::amount::{Amount, Cause, Times};
use super::exclusive;
use super::meter::Meter;
use super::path;
use super::prompt::{Reader, fallback_chain, may_use_tools};
use super::schema::Types;
use super::value::{Estimate, Letters, Scope};
use crate::tokens::Tokenizer;

/// What something uses at most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals<'p> {
    pub(crate) launches: Amount<'p>,
    pub(crate) turns: Amount<'p>,
    pub(crate) input: Amount<'p>,
    pub(crate) output: Amount<'p>,
    /// In millionths of a dollar.
    pub(crate) cost: Amount<'p>,
    /// In milliseconds, one after the other.
    pub(crate) time: Amount<'p>,
    /// Why turns go on without an end that the list or a budget of any kind would set.
    pub(crate) endless: Option<Cause<'p>>,
}

impl<'p> Totals<'p> {
    pub(super) fn plus(self, other: Totals<'p>) -> Totals<'p> {
        self.combine_with(other, Amount::plus)
    }

    pub(super) fn maximum(self, other: Totals<'p>) -> Totals<'p> {
        self.combine_with(other, Amount::maximum)
    }

    fn combine_with(self, other: Totals<'p>, join: impl Fn(Amount<'p>, Amount<'p>) -> Amount<'p>) -> Totals<'p> {
        Totals {
            launches: join(self.launches, other.launches),
            turns: join(self.turns, other.turns),
            input: join(self.input, other.input),
            output: join(self.output, other.output),
            cost: join(self.cost, other.cost),
            time: join(self.time, other.time),
            endless: self.endless.or(other.endless),
        }
    }

    fn times(self, times: impl Into<Times<'p>>) -> Totals<'p> {
        let times = times.into();
        Totals {
            launches: self.launches.times(times),
            turns: self.turns.times(times),
            input: self.input.times(times),
            output: self.output.times(times),
            cost: self.cost.times(times),
            time: self.time.times(times),
            endless: match times {
                // Without a turn, nothing goes on, however often.
                Times::Open(cause) if !self.turns.is_zero() => self.endless.or(Some(cause)),
                Times::Most(0) => None,
                _ => self.endless,
            },
        }
    }

    /// What a budget leaves of it. What a run is likely to use stays unknown with a budget.
    pub(crate) fn limit_to(self, budget: Option<&Budget>, estimate: Estimate) -> Totals<'p> {
        let Some(budget) = budget else { return self };
        if budget.at_most && estimate != Estimate::Likely {
            // What runs when it is used up goes on to its end: it ends what has no end, and bounds nothing else.
            return Totals { endless: self.endless.filter(|_| !has_limits(budget)), ..self };
        }
        let limit = match estimate {
            Estimate::Highest | Estimate::Usual => Amount::limit_to,
            Estimate::Likely => Amount::lower_to,
        };
        Totals {
            turns: limit(self.turns, budget.calls),
            input: limit(self.input, budget.tokens),
            output: limit(self.output, budget.tokens),
            cost: limit(self.cost, budget.cost),
            time: limit(self.time, budget.time_ms),
            endless: self.endless.filter(|_| !has_limits(budget)),
            ..self
        }
    }
}

/// Whether a budget limits anything at all.
pub(crate) fn has_limits(budget: &Budget) -> bool {
    [budget.tokens, budget.cost, budget.time_ms, budget.calls].iter().any(Option::is_some)
}

/// The totals of a plan.
pub(crate) struct Sums<'p> {
    /// Of one run of each pipeline, as if it had no budget of its own.
    pub(crate) pipelines: HashMap<&'p str, Totals<'p>>,
    /// Of one run of each swarm.
    pub(crate) swarms: HashMap<&'p str, Totals<'p>>,
    /// Of one run, or of one item, of each step with a budget, as if it had none.
    pub(crate) steps: Vec<(&'p Step, Totals<'p>)>,
}

impl<'p> Sums<'p> {
    pub(crate) fn from_plan(plan: &'p Plan, estimate: Estimate, tokenizer: &dyn Tokenizer) -> Sums<'p> {
        Sums::from_meter(plan, estimate, &mut Meter::new(tokenizer))
    }

    /// The same with a meter that may know some of the texts.
    pub(crate) fn from_meter(plan: &'p Plan, estimate: Estimate, meter: &mut Meter<'_>) -> Sums<'p> {
        Sums::count(plan, estimate, meter, None)
    }

    /// What the turns of this agent use, and nothing else.
    pub(crate) fn from_agent(plan: &'p Plan, agent: &'p str, meter: &mut Meter<'_>) -> Sums<'p> {
        Sums::count(plan, Estimate::Usual, meter, Some(agent))
    }

    fn count(plan: &'p Plan, estimate: Estimate, meter: &mut Meter<'_>, only: Option<&'p str>) -> Sums<'p> {
        let sums = Sums { pipelines: HashMap::new(), swarms: HashMap::new(), steps: Vec::new() };
        let mut counter = Counter { plan, estimate, only, types: Types::new(&plan.types), meter, sums };
        // Ahead of the pipelines, whose steps look up what their swarms use.
        for swarm in &plan.swarms {
            let totals = counter.count_swarm(swarm);
            counter.sums.swarms.insert(&swarm.name, totals);
        }
        for pipeline in callees_first(plan) {
            let totals = counter.count_pipeline(pipeline);
            counter.sums.pipelines.insert(&pipeline.name, totals);
        }
        counter.sums
    }
}

/// Whether agents may take turns in a pipeline, or in what it calls.
fn asks_agents(plan: &Plan, pipeline: &str) -> bool {
    let mut seen = HashSet::from([pipeline]);
    let mut open = vec![pipeline];
    while let Some(pipeline) = open.pop().and_then(|name| plan.pipeline(name)) {
        for step in pipeline.all_steps() {
            match &step.body {
                Body::Prompt(_) | Body::Swarm(_) => return true,
                _ if matches!(step.on_failure, OnFailure::Fix(_)) => return true,
                Body::Call(call) if seen.insert(&call.pipeline) => open.push(&call.pipeline),
                _ => {}
            }
        }
    }
    false
}

/// Every pipeline, each after those that it calls.
fn callees_first(plan: &Plan) -> Vec<&Pipeline> {
    let index: HashMap<&str, usize> =
        plan.pipelines.iter().enumerate().map(|(position, pipeline)| (pipeline.name.as_str(), position)).collect();
    let calls: Vec<Vec<usize>> = plan
        .pipelines
        .iter()
        .map(|pipeline| {
            let called = pipeline.all_steps().filter_map(|step| match &step.body {
                Body::Call(call) => index.get(call.pipeline.as_str()).copied(),
                _ => None,
            });
            called.collect()
        })
        .collect();
    let mut order = Vec::new();
    let mut seen = vec![false; plan.pipelines.len()];
    for start in 0..plan.pipelines.len() {
        let mut open = vec![(start, 0)];
        while let Some((position, next)) = open.pop() {
            if next == 0 && std::mem::replace(&mut seen[position], true) {
                continue;
            }
            match calls[position].get(next) {
                Some(&called) => {
                    open.push((position, next + 1));
                    // A circle is cut here: what it leads to has no totals yet, and counts as unbounded.
                    if !seen[called] {
                        open.push((called, 0));
                    }
                }
                None => order.push(&plan.pipelines[position]),
            }
        }
    }
    order
}

struct Counter<'p, 'm, 't> {
    plan: &'p Plan,
    estimate: Estimate,
    /// The one agent whose turns count, where not all do.
    only: Option<&'p str>,
    types: Types<'p>,
    meter: &'m mut Meter<'t>,
    sums: Sums<'p>,
}

impl<'p> Counter<'p, '_, '_> {
    fn count_pipeline(&mut self, pipeline: &'p Pipeline) -> Totals<'p> {
        let scope = Scope::for_pipeline(self.plan, pipeline, self.estimate).with_letters(Letters::All);
        let round = self.count_steps(&scope, &pipeline.steps);
        // The instances of a pipeline run beside each other: they multiply what it spends, and not its time.
        let most = self.estimate.repeat(pipeline.iteration.max.into());
        let time = round.time.times(most);
        let rounds = round.times(most).times(pipeline.parallelism);
        Totals { time, ..rounds }
    }

    /// One walk over steps.
    fn count_steps(&mut self, scope: &Scope<'p>, steps: &'p [Step]) -> Totals<'p> {
        let each: Vec<Totals<'p>> = steps.iter().map(|step| self.count_step(scope, step)).collect();
        if !scope.pipeline.edges.is_empty() {
            // Steps that hand over to each other wait for each other, one of them at work at a time in the worst case. What
            // they put out changes with their turns, so that none of them excludes another.
            return each.into_iter().fold(Totals::default(), Totals::plus);
        }
        let times: Vec<Amount<'p>> = each.iter().map(|totals| totals.time).collect();
        Totals { time: path::critical_path_time(steps, &times), ..exclusive::sum_round(steps, &each) }
    }

    /// One run of a step: turns, each with its attempts, and items.
    fn count_step(&mut self, scope: &Scope<'p>, step: &'p Step) -> Totals<'p> {
        let mut all = self.count_turn(scope, step);
        // Envelopes give it further turns, which its budget counts too. One turn alone reads each of them.
        let further = self.estimate.repeat(scope.pipeline.max_turns(step)) - 1;
        if further > 0 {
            all = all.plus(self.count_turn(&scope.with_letters(Letters::None), step).times(further));
        }
        if step.budget.is_some() {
            self.sums.steps.push((step, all));
        }
        // For one item: the budget of a step holds for each of them.
        all = all.limit_to(step.budget.as_ref(), self.estimate);
        if let Some(each) = &step.for_each {
            let items = scope.count_items(step, &each.list.source, &mut self.types);
            let time = match (each.parallel, items) {
                // Without a limit, all items run at the same time.
                (None, _) => all.time,
                (Some(slots), Times::Most(items)) => all.time.times(items.div_ceil(u64::from(slots.max(1)))),
                (Some(_), Times::Open(cause)) => all.time.times(Times::Open(cause)),
            };
            all = Totals { time, ..all.times(items) };
        }
        // Over all its turns in a run, the agent's own budget holds.
        match super::prompt::prompt_body(step).and_then(|body| self.plan.agent(&body.agent)) {
            Some(agent) if self.only.is_none() => {
                Totals { time: all.time, ..all.limit_to(agent.budget.as_ref(), self.estimate) }
            }
            _ => all,
        }
    }

    /// One turn of a step, with its attempts and what mends them.
    fn count_turn(&mut self, scope: &Scope<'p>, step: &'p Step) -> Totals<'p> {
        let mut attempt = self.count_attempt(scope, step);
        attempt.launches = attempt.launches.plus(Amount::at_most(step.checks.len() as u64));
        attempt.time = match (step.timeout_ms, step.body.kind().takes_turn()) {
            (Some(limit), true) => Amount::at_most(limit),
            (None, true) => Amount::unbounded(Cause::Time(step)),
            (Some(limit), _) if step.checks.is_empty() => attempt.time.limit_to(Some(limit)),
            (Some(limit), _) => Amount::at_most(limit),
            (None, _) if !step.checks.is_empty() => attempt.time.plus(Amount::unbounded(Cause::Time(step))),
            (None, _) => attempt.time,
        };
        attempt = attempt.plus(self.count_summaries(scope, step));
        if self.estimate == Estimate::Likely {
            return attempt;
        }
        let mut all = attempt.times(u64::from(step.retry.times) + 1);
        all.time = all.time.plus(Amount::at_most(sum_waits(step)));
        match &step.on_failure {
            OnFailure::Fix(agent) => {
                all = all.times(2_u64);
                if self.counts_agent(agent) {
                    all = all.plus(self.count_fix_turn(scope, step, agent));
                }
            }
            OnFailure::Escalate => {
                all = all.times(2_u64);
                let decides = self.plan.policy.on_timeout.map(|timeout| Amount::at_most(timeout.after_ms));
                all.time = all.time.plus(decides.unwrap_or(Amount::unbounded(Cause::Person(step))));
            }
            OnFailure::Fail | OnFailure::Skip => {}
        }
        all
    }

    /// Whether the turns of this agent count.
    fn counts_agent(&self, agent: &str) -> bool {
        self.only.is_none_or(|only| only == agent)
    }

    /// One attempt, without its checks.
    fn count_attempt(&mut self, scope: &Scope<'p>, step: &'p Step) -> Totals<'p> {
        match &step.body {
            Body::Prompt(body) if !self.counts_agent(&body.agent) => Totals::default(),
            Body::Prompt(body) => self.count_prompt(scope, step, body),
            Body::Run(_) => Totals { launches: Amount::at_most(1), ..Totals::default() },
            Body::Value(_) | Body::Fields(_) | Body::Stop { .. } => Totals::default(),
            Body::Call(call) => match self.sums.pipelines.get(call.pipeline.as_str()) {
                Some(totals) => {
                    let budget = self.plan.pipeline(&call.pipeline).and_then(|pipeline| pipeline.budget.as_ref());
                    totals.limit_to(budget, self.estimate)
                }
                // A callee without totals is one in whose middle this call stands.
                None if !asks_agents(self.plan, &call.pipeline) => {
                    let open = Amount::unbounded(Cause::Circle(step));
                    Totals { launches: open, time: open, ..Totals::default() }
                }
                None => {
                    let open = Amount::unbounded(Cause::Circle(step));
                    let endless = Some(Cause::Circle(step));
                    Totals { launches: open, turns: open, input: open, output: open, cost: open, time: open, endless }
                }
            },
            Body::Swarm(call) => {
                let budget = self.plan.swarm(&call.swarm).and_then(|swarm| swarm.budget.as_ref());
                self.sums.swarms.get(call.swarm.as_str()).copied().unwrap_or_default().limit_to(budget, self.estimate)
            }
            Body::Gate(gate) => Totals {
                time: match &gate.on_timeout {
                    Some(timeout) => Amount::at_most(timeout.after_ms),
                    None => Amount::unbounded(Cause::Person(step)),
                },
                ..Totals::default()
            },
            Body::Loop(body) => {
                let rounds = self.estimate.repeat(body.iteration.max.into());
                self.count_steps(scope, &body.steps).times(rounds)
            }
        }
    }

    fn count_prompt(&mut self, scope: &Scope<'p>, step: &'p Step, body: &'p PromptBody) -> Totals<'p> {
        let Some(agent) = self.plan.agent(&body.agent) else { return Totals::default() };
        let repairs = u64::from(step.most_repairs(scope.reach.has_edges(&step.name)));
        let repairs = self.estimate.repeat(repairs + 1) - 1;
        let chain = self.list_candidates(agent);
        // Each agent of the chain may be started before one of them takes the turn.
        let launches = Amount::at_most(chain.len() as u64).times(repairs + 1);
        let turns = Amount::at_most(repairs + 1);
        let mut most = Totals { launches, turns, ..Totals::default() };
        for agent in chain {
            let mut reader = Reader { scope, types: &mut self.types, meter: self.meter };
            let mut input = reader.count_turn(step, body, agent).times(repairs + 1);
            if repairs > 0 {
                input = input.plus(reader.count_repair(step).times(repairs));
            }
            let output = self.count_answer(agent).times(repairs + 1);
            let cost = self.compute_cost(agent, input, output);
            // One of them takes the turn: the dearest counts.
            most = most.maximum(Totals { input, output, cost, ..Totals::default() });
        }
        most
    }

    /// The agents that may take a turn; the one asked where all goes well.
    fn list_candidates(&self, agent: &'p Agent) -> Vec<&'p Agent> {
        let mut chain = fallback_chain(self.plan, agent);
        chain.truncate(usize::try_from(self.estimate.repeat(chain.len() as u64)).unwrap_or(usize::MAX));
        chain
    }

    /// The turns before an attempt, in which agents sum up the files of its packs.
    fn count_summaries(&mut self, scope: &Scope<'p>, step: &'p Step) -> Totals<'p> {
        let turns = self.plan.summary_turns(step).into_iter();
        turns.fold(Totals::default(), |sum, (agent, turns)| match self.counts_agent(agent) {
            true => sum.plus(self.count_summary_turn(scope, step, agent).times(turns)),
            false => sum,
        })
    }

    /// One turn of an agent that sums up files.
    fn count_summary_turn(&mut self, scope: &Scope<'p>, step: &'p Step, agent: &str) -> Totals<'p> {
        let Some(agent) = self.plan.agent(agent) else { return Totals::default() };
        let chain = self.list_candidates(agent);
        let time = step.timeout_ms.map_or(Amount::unbounded(Cause::Time(step)), Amount::at_most);
        let launches = Amount::at_most(chain.len() as u64);
        let mut most = Totals { launches, turns: Amount::at_most(1), time, ..Totals::default() };
        for agent in chain {
            let mut reader = Reader { scope, types: &mut self.types, meter: self.meter };
            let input = reader.count_summary_turn(agent);
            let output = self.count_answer(agent);
            let cost = self.compute_cost(agent, input, output);
            most = most.maximum(Totals { input, output, cost, ..Totals::default() });
        }
        most
    }

    /// The turn that mends what failed.
    fn count_fix_turn(&mut self, scope: &Scope<'p>, step: &'p Step, agent: &str) -> Totals<'p> {
        let Some(agent) = self.plan.agent(agent) else { return Totals::default() };
        let input = Reader { scope, types: &mut self.types, meter: self.meter }.count_fix_turn(step, agent);
        let output = self.count_answer(agent);
        let time = step.timeout_ms.map_or(Amount::unbounded(Cause::Time(step)), Amount::at_most);
        let one = Amount::at_most(1);
        let cost = self.compute_cost(agent, input, output);
        Totals { launches: one, turns: one, input, output, cost, time, endless: None }
    }

    /// The tokens of one answer.
    fn count_answer(&self, agent: &'p Agent) -> Amount<'p> {
        let recorded = self.plan.provider(&agent.provider).and_then(|provider| provider.connection.answers());
        self.estimate.limit_text(match (agent.max_output, recorded) {
            (Some(most), _) => Amount::at_most(most),
            (None, Some(answers)) => {
                Amount::at_most(answers.iter().map(|answer| answer.text.len() as u64).max().unwrap_or(0))
            }
            (None, None) => Amount::unbounded(Cause::Answer(agent)),
        })
    }

    fn compute_cost(&self, agent: &'p Agent, input: Amount<'p>, output: Amount<'p>) -> Amount<'p> {
        let Some(provider) = self.plan.provider(&agent.provider) else { return Amount::ZERO };
        if provider.connection.answers().is_some() {
            return Amount::ZERO;
        }
        let Some(price) = &provider.price else { return Amount::unbounded(Cause::Price(provider)) };
        // A provider may bill input as a cache write instead, so the higher of both prices bounds it.
        let read = price.input.max(price.cache_write.unwrap_or(0));
        let sum = price_tokens(input, read).plus(price_tokens(output, price.output));
        match may_use_tools(agent, provider) {
            true => sum.plus(Amount::unbounded(Cause::Tools(agent))),
            false => sum,
        }
    }

    /// Every agent that is counted takes all its turns, each repeated as often as it may be.
    fn count_swarm(&mut self, swarm: &'p Swarm) -> Totals<'p> {
        let limits = &swarm.limits;
        let lead_agent = swarm.lead.as_ref().map(|lead| lead.agent.as_str());
        let counts = |agent: Option<&str>| agent.is_some_and(|agent| self.counts_agent(agent));
        let (own, others): (Vec<&Member>, Vec<&Member>) =
            swarm.members.iter().partition(|member| counts(Some(&member.agent)));
        let count = |members: &[&Member]| members.iter().map(|member| u64::from(member.count)).sum::<u64>();
        let members = count(&own);
        let lead = u64::from(counts(lead_agent));
        // Those that take up places which no other member can have.
        let others = count(&others) + u64::from(lead_agent.is_some()) - lead;
        let is_coordinated = swarm.lead.as_ref().is_some_and(|lead| lead.coordinator);
        let spawns = swarm
            .spawns
            .as_ref()
            .filter(|spawns| is_coordinated && spawns.agents.iter().any(|agent| self.counts_agent(agent)));
        let (agents, iterations) = match self.estimate {
            Estimate::Likely => (members.saturating_add(lead), limits.iterations.min(Likely::TURNS)),
            // Only the coordinator adds agents, and only so many.
            _ if is_coordinated => {
                let spawned = spawns.map_or(0, |spawns| u64::from(spawns.max));
                (members.saturating_add(lead).saturating_add(spawned), limits.iterations)
            }
            // A member adds others of its own agent.
            _ if members + lead == 0 => (0, limits.iterations),
            _ if swarm.spawn.per_agent == 0 && swarm.decompose.is_none() => {
                (members.saturating_add(lead), limits.iterations)
            }
            _ => {
                let places = u64::from(limits.agents).saturating_sub(others);
                (places.max(members.saturating_add(lead)), limits.iterations)
            }
        };
        let estimate = self.estimate;
        let tries = |limit: &swarmc_plan::TurnLimit| estimate.repeat(u64::from(limit.retries) + 1);
        let timed = |limit: &swarmc_plan::TurnLimit| limit.after_ms.saturating_mul(tries(limit));
        let mut turns = Amount::at_most(agents).times(iterations).times(tries(&swarm.timeouts.turn));
        // Those that are asked for come after those that ask. With its coordinator, a swarm ends.
        let waves = if swarm.spawn.per_agent > 0 && !is_coordinated { agents } else { 1 };
        let mut time = Amount::at_most(limits.timeout_ms).times(waves);
        if swarm.decompose.is_some() && counts(lead_agent) {
            turns = turns.plus(Amount::at_most(tries(&swarm.timeouts.decompose)));
            time = time.plus(Amount::at_most(timed(&swarm.timeouts.decompose)));
        }
        if swarm.synthesize.as_ref().is_some_and(|it| self.counts_agent(&it.agent)) {
            turns = turns.plus(Amount::at_most(tries(&swarm.timeouts.synthesize)));
            time = time.plus(Amount::at_most(timed(&swarm.timeouts.synthesize)));
        }
        // What a turn is shown is cut at so many characters, four bytes each at most.
        let prompt = Amount::at_most(swarm.history.prompt_chars.saturating_mul(4));
        let prompt = match self.estimate {
            Estimate::Likely => prompt.limit_to(Some(Likely::TURN_TOKENS)),
            _ => prompt,
        };
        let names = swarm.members.iter().map(|member| member.agent.as_str());
        let others = swarm
            .lead
            .iter()
            .map(|lead| lead.agent.as_str())
            .chain(swarm.synthesize.as_ref().map(|it| it.agent.as_str()))
            .chain(spawns.iter().flat_map(|spawns| &spawns.agents).map(String::as_str));
        let mut turn = Totals::default();
        let counted = names.chain(others).filter(|name| self.counts_agent(name));
        for agent in counted.filter_map(|name| self.plan.agent(name)) {
            let own = self.plan.provider(&agent.provider).map_or(Amount::ZERO, |provider| {
                crate::tokens::prompt_overhead(provider)
                    .map_or(Amount::unbounded(Cause::Program(provider)), Amount::at_most)
            });
            let input = prompt.plus(own);
            let output = self.count_answer(agent);
            turn = turn.maximum(Totals {
                input,
                output,
                cost: self.compute_cost(agent, input, output),
                ..Totals::default()
            });
        }
        // Nothing that goes into `turns` is unbounded here, so `known` is all of it.
        let count = Times::Most(turns.known);
        Totals {
            launches: turns,
            turns,
            input: turn.input.times(count),
            output: turn.output.times(count),
            cost: turn.cost.times(count),
            time,
            endless: None,
        }
    }
}

/// So many tokens at this price for a million, in millionths of a dollar.
fn price_tokens<'p>(tokens: Amount<'p>, price: u64) -> Amount<'p> {
    let cost = (u128::from(tokens.known) * u128::from(price)).div_ceil(1_000_000);
    // A price of zero bounds the cost even of tokens without a bound.
    let open = if price == 0 { None } else { tokens.open };
    Amount { known: u64::try_from(cost).unwrap_or(u64::MAX), open }
}

/// The waits between the attempts of a step, in milliseconds.
fn sum_waits(step: &Step) -> u64 {
    let retry = &step.retry;
    let (mut sum, mut wait) = (0_u64, retry.backoff_ms.min(retry.max_backoff_ms));
    for attempt in 0..retry.times {
        // From here all waits are the same, and one product replaces a walk over a retry count that may be huge.
        if wait >= retry.max_backoff_ms || wait == 0 {
            return sum.saturating_add(wait.saturating_mul(u64::from(retry.times - attempt)));
        }
        sum = sum.saturating_add(wait);
        wait = wait.saturating_mul(2).min(retry.max_backoff_ms);
    }
    sum
}
