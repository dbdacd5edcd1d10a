//! SW404: a budget that the worst case goes beyond, and agents that are asked without an end where no budget stands.
//!
//! A budget is there to bound lists that are made at run time, so those count as empty against it. Bytes stand for tokens
//! until they go beyond what is allowed.

use std::cell::OnceCell;
use std::collections::HashSet;

use swarmc_plan::{Body, Budget, OnFailure, Origin, Plan, Step, Swarm};

use super::amount::{Amount, Cause};
use super::meter::Meter;
use super::place;
use super::prompt::{Reader, prompt_body};
use super::schema::Types;
use super::totals::{Sums, Totals};
use super::value::{Estimate, Scope};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Sources;
use crate::tokens::{Bytes, O200k};

pub(crate) fn check_budgets(plan: &Plan, sources: &Sources, diagnostics: &mut Diagnostics) {
    if !may_matter(plan) {
        return;
    }
    // A text has never more tokens than bytes: exact counting, which loads a vocabulary, waits for a budget that bytes
    // exceed.
    let quick = Sums::from_plan(plan, Estimate::Usual, &Bytes);
    check_endless_turns(plan, &quick, sources, diagnostics);
    let mut reported = check_starved_turns(plan, sources, diagnostics);
    check_turn_tokens(plan, sources, &mut reported, diagnostics);
    check_agents(plan, sources, &reported, diagnostics);
    let exact = OnceCell::new();
    for (position, case) in budget_cases(plan, &quick).into_iter().enumerate() {
        let mut found = find_excess(&case);
        if found.iter().any(|excess| excess.counted) {
            let exact = exact.get_or_init(|| Sums::from_plan(plan, Estimate::Usual, &O200k));
            found = budget_cases(plan, exact).get(position).map(find_excess).unwrap_or_default();
        }
        for excess in found {
            diagnostics.extend(report_excess(&case, &excess, sources));
        }
    }
}

/// Whether there is a budget at all, or something that may go on without an end.
fn may_matter(plan: &Plan) -> bool {
    let mut steps = plan.pipelines.iter().flat_map(|pipeline| pipeline.all_steps());
    plan.budget.is_some()
        || plan.agents.iter().any(|agent| agent.budget.is_some())
        || plan.pipelines.iter().any(|pipeline| pipeline.budget.is_some())
        || plan.swarms.iter().any(|swarm| swarm.budget.is_some())
        // Without a budget, only a list or a circle of calls goes on without an end.
        || steps.any(|step| step.budget.is_some() || step.for_each.is_some() || matches!(step.body, Body::Call(_)))
}

/// Something that runs.
#[derive(Clone, Copy)]
struct Run<'p> {
    /// `pipeline`, `swarm` or `task`.
    kind: &'static str,
    name: &'p str,
    origin: &'p Origin,
    /// What its own budget is measured against.
    totals: Totals<'p>,
    budget: Option<&'p Budget>,
}

/// A run with a budget that holds for it.
struct Case<'p> {
    run: Run<'p>,
    budget: &'p Budget,
}

/// Every budget with what is measured against it, always in the same order.
fn budget_cases<'p>(plan: &'p Plan, sums: &Sums<'p>) -> Vec<Case<'p>> {
    let mut cases = Vec::new();
    let all: Vec<Run<'p>> = list_runs(plan, sums).collect();
    if let Some(budget) = &plan.budget {
        let is_root = is_root(plan);
        for run in all.iter().filter(|run| is_root(run.name)) {
            cases.push(Case { run: Run { totals: run.totals.limit_to(run.budget, Estimate::Usual), ..*run }, budget });
        }
    }
    let steps = sums.steps.iter().map(|(step, totals)| Run {
        kind: "task",
        name: &step.name,
        origin: &step.origin,
        totals: *totals,
        budget: step.budget.as_ref(),
    });
    cases.extend(all.into_iter().chain(steps).filter_map(|run| Some(Case { run, budget: run.budget? })));
    // A run stops at such a budget on purpose, so that going beyond it is no mistake.
    cases.retain(|case| !case.budget.at_most);
    cases
}

fn list_runs<'p>(plan: &'p Plan, sums: &Sums<'p>) -> impl Iterator<Item = Run<'p>> {
    let pipelines = plan.pipelines.iter().map(|pipeline| Run {
        kind: "pipeline",
        name: &pipeline.name,
        origin: &pipeline.origin,
        // `callees_first` leaves out no pipeline, not even one in a circle, so each has an entry.
        totals: sums.pipelines[pipeline.name.as_str()],
        budget: pipeline.budget.as_ref(),
    });
    let swarms = plan.swarms.iter().map(|swarm| Run {
        kind: "swarm",
        name: &swarm.name,
        origin: &swarm.origin,
        totals: sums.swarms[swarm.name.as_str()],
        budget: swarm.budget.as_ref(),
    });
    pipelines.chain(swarms)
}

/// Whether something is run by itself: it is the default, or nothing else starts it.
fn is_root(plan: &Plan) -> impl Fn(&str) -> bool {
    let mut started: HashSet<&str> = HashSet::new();
    for step in plan.pipelines.iter().flat_map(|pipeline| pipeline.all_steps()) {
        match &step.body {
            Body::Call(call) => _ = started.insert(&call.pipeline),
            Body::Swarm(call) => _ = started.insert(&call.swarm),
            _ => {}
        }
    }
    move |name| name == plan.default || !started.contains(name)
}

/// More than is allowed.
struct Excess {
    /// `9 agent turns`.
    most: String,
    /// `5`.
    allowed: String,
    /// `calls=9`.
    enough: String,
    /// Whether tokens are in it.
    counted: bool,
}

fn find_excess(case: &Case<'_>) -> Vec<Excess> {
    let (totals, budget) = (&case.run.totals, case.budget);
    let beyond = |known: u64, limit: Option<u64>| limit.filter(|&limit| known > limit);
    let tokens = totals.input.known.saturating_add(totals.output.known);
    let calls = beyond(totals.turns.known, budget.calls).map(|limit| Excess {
        most: format!("{} agent turn{}", totals.turns.known, if totals.turns.known == 1 { "" } else { "s" }),
        allowed: limit.to_string(),
        enough: format!("calls={}", totals.turns.known),
        counted: false,
    });
    let tokens = beyond(tokens, budget.tokens).map(|limit| Excess {
        most: format!("{tokens} tokens"),
        allowed: limit.to_string(),
        enough: format!("tokens={tokens}"),
        counted: true,
    });
    let cost = beyond(totals.cost.known, budget.cost).map(|limit| Excess {
        most: format_dollars(totals.cost.known),
        allowed: format_dollars(limit),
        enough: format!("cost=\"{}\"", format_dollars(totals.cost.known)),
        counted: true,
    });
    let time = beyond(totals.time.known, budget.time_ms).map(|limit| Excess {
        most: format_duration(totals.time.known),
        allowed: format_duration(limit),
        enough: format!("time=\"{}\"", format_duration(totals.time.known)),
        counted: false,
    });
    [calls, tokens, cost, time].into_iter().flatten().collect()
}

fn report_excess(case: &Case<'_>, excess: &Excess, sources: &Sources) -> Option<Diagnostic> {
    let Run { kind, name, origin, .. } = case.run;
    let message = format!("{kind} `{name}` can take {}, and its budget allows {}", excess.most, excess.allowed);
    let diagnostic = Diagnostic::new(Code::BudgetExceeded, message)
        .label(place::find_span(&case.budget.origin, sources)?, format!("allows {}", excess.allowed));
    let diagnostic = match place::find_span(origin, sources) {
        Some(span) => diagnostic.label(span, format!("{} at worst, with all rounds, retries and repairs", excess.most)),
        None => diagnostic,
    };
    Some(diagnostic.help(format!(
        "write `{}`, or allow fewer rounds, retries and repairs; `budget … at-most` stops the run there instead",
        excess.enough
    )))
}

/// Turns that a budget never lets begin: what is reserved for one is more than all that it allows. Only where no sum
/// tells it already, which is for items of a list, and for the budgets of agents.
fn check_starved_turns<'p>(plan: &'p Plan, sources: &Sources, diagnostics: &mut Diagnostics) -> HashSet<&'p Origin> {
    let mut seen = HashSet::new();
    for pipeline in &plan.pipelines {
        let wired: HashSet<&str> = pipeline.edges.iter().flat_map(|edge| [&*edge.from, &*edge.to]).collect();
        for step in pipeline.all_steps() {
            let Body::Prompt(body) = &step.body else { continue };
            let turns = u64::from(step.most_repairs(wired.contains(&*step.name))) + 1;
            let of_agent = plan.agent(&body.agent).and_then(|agent| agent.budget.as_ref());
            let of_items = [plan.budget.as_ref(), pipeline.budget.as_ref()];
            let of_items = of_items.into_iter().flatten().filter(|_| step.for_each.is_some());
            for budget in of_agent.into_iter().chain(of_items).filter(|budget| !budget.at_most) {
                let Some(allowed) = budget.calls.filter(|&calls| calls < turns) else { continue };
                // Once for a budget: the first of its steps stands for the others.
                let Some(span) = place::find_span(&budget.origin, sources).filter(|_| seen.insert(&budget.origin))
                else {
                    continue;
                };
                let message = format!("`{}` can never start: it takes {turns} agent turns at worst", step.name);
                let diagnostic =
                    Diagnostic::new(Code::BudgetExceeded, message).label(span, format!("allows {allowed}"));
                let diagnostic = match place::find_span(&step.origin, sources) {
                    Some(span) => diagnostic.label(span, "one turn, and the turns that repair its answer"),
                    None => diagnostic,
                };
                diagnostics.push(diagnostic.help(format!("write `calls={turns}` or more, or `repair=0`")));
            }
        }
    }
    seen
}

/// How many steps are visited to sum up the turns of agents, one agent after the other. Budgets of the agents behind are
/// compared with single turns only, which says less.
const MOST_VISITS: usize = 50_000;

/// Compares all turns of an agent in a run with the agent's own budget, unless one turn alone was too many. An agent that
/// only sums up files is left out: a summary without room is not made, and its task goes on.
fn check_agents(plan: &Plan, sources: &Sources, reported: &HashSet<&Origin>, diagnostics: &mut Diagnostics) {
    let (mut bytes, mut tokens) = (Meter::new(&Bytes), Meter::new(&O200k));
    let is_root = is_root(plan);
    let steps: Vec<_> = plan.pipelines.iter().flat_map(|pipeline| pipeline.all_steps()).collect();
    let members = plan.swarms.iter().flat_map(list_players);
    let asked: HashSet<&str> = steps.iter().flat_map(|step| list_agents(step)).chain(members).collect();
    let mut visits = 0;
    for agent in plan.agents.iter().filter(|agent| asked.contains(&*agent.name)) {
        let budget = agent.budget.as_ref().filter(|budget| !budget.at_most && !reported.contains(&budget.origin));
        let Some(budget) = budget else { continue };
        visits += steps.len();
        if visits > MOST_VISITS {
            return;
        }
        // Of several pipelines that are run by themselves, the one in which it takes the most turns.
        let most = |meter: &mut Meter<'_>| {
            let sums = Sums::from_agent(plan, &agent.name, meter);
            let roots = plan.pipelines.iter().filter(|it| is_root(&it.name));
            let all = roots.filter_map(|pipeline| {
                let totals = sums.pipelines[pipeline.name.as_str()];
                let totals = totals.limit_to(pipeline.budget.as_ref(), Estimate::Usual);
                // Turns may run at the same time, so their times are not summed up.
                let totals = Totals { time: Amount::ZERO, ..totals };
                let run = Run { kind: "agent", name: &agent.name, origin: &agent.origin, totals, budget: Some(budget) };
                let case = Case { run, budget };
                let found = find_excess(&case);
                (!found.is_empty()).then_some((case, found))
            });
            all.max_by_key(|(case, _)| case.run.totals.turns.known)
        };
        let mut found = most(&mut bytes);
        if found.as_ref().is_some_and(|(_, found)| found.iter().any(|excess| excess.counted)) {
            found = most(&mut tokens);
        }
        let Some((case, found)) = found else { continue };
        for excess in found {
            diagnostics.extend(report_excess(&case, &excess, sources));
        }
    }
}

/// The agents whose turn a step cannot go on without.
fn list_agents(step: &Step) -> impl Iterator<Item = &str> {
    let fixer = match &step.on_failure {
        OnFailure::Fix(agent) => Some(&**agent),
        _ => None,
    };
    prompt_body(step).map(|body| &*body.agent).into_iter().chain(fixer)
}

/// The agents that take turns in a swarm.
fn list_players(swarm: &Swarm) -> impl Iterator<Item = &str> {
    let lead = swarm.lead.iter().map(|lead| lead.agent.as_str());
    let last = swarm.synthesize.iter().map(|it| it.agent.as_str());
    let added = swarm.spawns.iter().flat_map(|spawns| &spawns.agents).map(String::as_str);
    swarm.members.iter().map(|member| member.agent.as_str()).chain(lead).chain(last).chain(added)
}

/// Turns that alone can take more tokens than the budget of their agent allows, and are then refused.
fn check_turn_tokens<'p>(
    plan: &'p Plan,
    sources: &Sources,
    reported: &mut HashSet<&'p Origin>,
    diagnostics: &mut Diagnostics,
) {
    let mut types = Types::new(&plan.types);
    let (mut bytes, mut tokens) = (Meter::new(&Bytes), Meter::new(&O200k));
    for pipeline in &plan.pipelines {
        let scope = OnceCell::new();
        for step in pipeline.all_steps() {
            let Some(body) = prompt_body(step) else { continue };
            let Some(agent) = plan.agent(&body.agent) else { continue };
            let Some(budget) = agent.budget.as_ref().filter(|budget| !budget.at_most) else { continue };
            let Some(allowed) = budget.tokens else { continue };
            let mut most = |meter| {
                let scope = scope.get_or_init(|| Scope::for_pipeline(plan, pipeline, Estimate::Usual));
                let turns = u64::from(step.most_repairs(scope.reach.has_edges(&step.name))) + 1;
                let read = Reader { scope, types: &mut types, meter }.count_turn(step, body, agent).known;
                read.saturating_add(agent.max_output.unwrap_or(0)).saturating_mul(turns)
            };
            // Bytes bound the tokens, so most agents never load the vocabulary.
            if most(&mut bytes) <= allowed {
                continue;
            }
            let most = most(&mut tokens);
            let Some(span) = place::find_span(&budget.origin, sources).filter(|_| most > allowed) else { continue };
            reported.insert(&budget.origin);
            let message = format!(
                "a turn of `{}` can take {most} tokens, and the budget of its agent `{}` allows {allowed}",
                step.name, agent.name
            );
            let diagnostic = Diagnostic::new(Code::BudgetExceeded, message).label(span, format!("allows {allowed}"));
            let diagnostic = match place::find_span(&step.origin, sources) {
                Some(span) => diagnostic.label(span, format!("{most} at worst: its input and its answer")),
                None => diagnostic,
            };
            diagnostics.push(diagnostic.help(format!(
                "write `tokens={most}` or more, or give it less to read: `max=` on edges to it, `output max=` where it \
                 reads an output"
            )));
        }
    }
}

/// Agents that are asked once for each item of a list of any length, with no budget around them.
fn check_endless_turns(plan: &Plan, sums: &Sums<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    // A budget of the workflow ends turns of any number.
    if plan.budget.as_ref().is_some_and(super::totals::has_limits) {
        return;
    }
    let mut seen = HashSet::new();
    let all: Vec<Run<'_>> = list_runs(plan, sums).collect();
    let is_root = is_root(plan);
    for run in all.iter().filter(|run| is_root(run.name)) {
        // Several runs may come to one list.
        if let Some(cause) = run.totals.limit_to(run.budget, Estimate::Usual).endless
            && seen.insert(cause.origin())
        {
            diagnostics.extend(report_unbounded(run, cause, sources));
        }
    }
}

fn report_unbounded(run: &Run<'_>, cause: Cause<'_>, sources: &Sources) -> Option<Diagnostic> {
    let message = format!("{} `{}` can take any number of agent turns: {}", run.kind, run.name, cause.describe());
    let diagnostic = Diagnostic::new(Code::BudgetExceeded, message)
        .label(place::find_span(cause.origin(), sources)?, "the number of turns has no limit");
    let diagnostic = match place::find_span(run.origin, sources) {
        Some(span) => diagnostic.label(span, "neither it nor the workflow has a budget"),
        None => diagnostic,
    };
    let help = "write `budget calls=100` in the workflow's file, or limit the list: `max=` on its field, or `[:20]`";
    Some(diagnostic.help(help))
}

/// `$1.25`, rounded up to a cent.
fn format_dollars(micro: u64) -> String {
    let cents = micro.div_ceil(10_000);
    match cents % 100 {
        0 => format!("${}", cents / 100),
        rest => format!("${}.{rest:02}", cents / 100),
    }
}

/// `90s`, `20m`, `2h`, as in a spec; rounded up where it is long.
fn format_duration(milliseconds: u64) -> String {
    match milliseconds {
        ms if ms >= 3_600_000 && ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        ms if ms >= 600_000 || (ms > 0 && ms.is_multiple_of(60_000)) => format!("{}m", ms.div_ceil(60_000)),
        ms if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_a_spec_takes_them() {
        assert_eq!([format_dollars(5_000_000), format_dollars(1_254_321), format_dollars(1)], ["$5", "$1.26", "$0.01"]);
        let written = [7_200_000, 7_383_000, 1_200_000, 90_000, 250].map(format_duration);
        assert_eq!(written, ["2h", "124m", "20m", "90s", "250ms"]);
    }
}
