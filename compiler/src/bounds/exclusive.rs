//! The most that the steps of a round use together, where some of them exclude each other: of two that ask for different
//! values of one field, or for the success and the failure of one step, only one runs.
//!
//! In: the steps of a round, and what each of them uses. Out: a bound of their sum. A condition that says more than that a
//! value is one of a few constants is not looked at: the bound is then higher, and never too low.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::unionfind::UnionFind;
use swarmc_plan::{Join, Need, Step, When};

use super::path::{index_steps, order_steps};
use super::totals::Totals;
use crate::template::{self, Comparison, Const, Expr, ExprKind, Root};

/// The steps that are visited for one round at most: so many times its steps, and so many more. Beyond that, steps that
/// exclude each other are all counted.
const MOST_VISITS: usize = 4;
const SPARE_VISITS: usize = 1000;

/// What a value must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Choice {
    /// One of these constants.
    Only(BTreeSet<String>),
    /// None of these.
    Not(BTreeSet<String>),
}

/// What must hold for a step to run, by value.
type Demands = BTreeMap<String, Choice>;

/// A bound of what `steps` use in one round; `each` is what each of them uses.
pub(super) fn sum_round<'p>(steps: &[Step], each: &[Totals<'p>]) -> Totals<'p> {
    let all: Vec<usize> = (0..steps.len()).collect();
    let visits = steps.len() * MOST_VISITS + SPARE_VISITS;
    let demands = collect_demands(steps, visits);
    Rounds { demands, each, visits }.sum_most(&all)
}

impl Choice {
    fn admits(&self, constant: &str) -> bool {
        match self {
            Choice::Only(constants) => constants.contains(constant),
            Choice::Not(constants) => !constants.contains(constant),
        }
    }

    fn constants(&self) -> &BTreeSet<String> {
        let (Choice::Only(constants) | Choice::Not(constants)) = self;
        constants
    }

    /// What both admit.
    fn and(self, other: &Choice) -> Choice {
        match (self, other) {
            (Choice::Only(constants), other) => {
                Choice::Only(constants.into_iter().filter(|constant| other.admits(constant)).collect())
            }
            (Choice::Not(not), Choice::Only(constants)) => Choice::Only(constants - &not),
            (Choice::Not(one), Choice::Not(other)) => Choice::Not(&one | other),
        }
    }
}

fn add_demand(demands: &mut Demands, key: String, choice: &Choice) {
    let known = demands.remove(&key);
    let both = known.map_or_else(|| choice.clone(), |known| known.and(choice));
    demands.insert(key, both);
}

/// The demands of each step, those of the steps that it needs included, as far as these have no more constants than
/// `visits`.
fn collect_demands(steps: &[Step], mut visits: usize) -> Vec<Demands> {
    let mut own: Vec<Demands> = steps.iter().map(list_own_demands).collect();
    // A value that is asked for in one way only excludes nothing.
    let mut choices: BTreeMap<&String, BTreeSet<&Choice>> = BTreeMap::new();
    for (key, choice) in own.iter().flatten() {
        choices.entry(key).or_default().insert(choice);
    }
    let asked: BTreeSet<String> =
        choices.into_iter().filter(|(_, choices)| choices.len() > 1).map(|(key, _)| key.clone()).collect();
    own.iter_mut().for_each(|demands| demands.retain(|key, _| asked.contains(key)));
    if asked.is_empty() {
        return own;
    }
    let index = index_steps(steps);
    for position in order_steps(steps) {
        for need in steps[position].needs.iter().filter(|need| need.when != When::Always) {
            let Some(&needed) = index.get(need.step.as_str()).filter(|_| must_hold(&steps[position], need)) else {
                continue;
            };
            // What is not inherited only makes the bound higher.
            let constants: usize = own[needed].values().map(|choice| choice.constants().len()).sum();
            let Some(left) = visits.checked_sub(constants) else { return own };
            visits = left;
            let inherited = own[needed].clone();
            inherited.into_iter().for_each(|(key, choice)| add_demand(&mut own[position], key, &choice));
        }
    }
    own
}

/// Whether a step is skipped where this need does not hold.
fn must_hold(step: &Step, need: &Need) -> bool {
    !need.declared || step.join == Join::All
}

fn list_own_demands(step: &Step) -> Demands {
    let mut demands = Demands::new();
    for need in step.needs.iter().filter(|need| must_hold(step, need)) {
        let end = match need.when {
            When::Success => "success",
            When::Failure => "failure",
            When::Any | When::Always => continue,
        };
        let only = Choice::Only(BTreeSet::from([end.to_owned()]));
        add_demand(&mut demands, format!("the end of {}", need.step), &only);
    }
    if let Some(tree) = step.when.as_ref().and_then(|when| template::parse_tree(&when.source)) {
        let terms = match &tree.kind {
            ExprKind::And(terms) => terms.as_slice(),
            _ => std::slice::from_ref(&tree),
        };
        for (key, choice) in terms.iter().filter_map(|term| find_demand(term, true)) {
            add_demand(&mut demands, key, &choice);
        }
    }
    demands
}

/// The value that a condition asks for where it is `truth`, if it asks for one.
fn find_demand(condition: &Expr, truth: bool) -> Option<(String, Choice)> {
    let choose = |constants| if truth { Choice::Only(constants) } else { Choice::Not(constants) };
    match &condition.kind {
        ExprKind::Not(inner) => find_demand(inner, !truth),
        ExprKind::Path(_) => {
            Some((format!("{} holds", name_value(condition)?), Choice::Only(BTreeSet::from([truth.to_string()]))))
        }
        ExprKind::Compare { left, op: Comparison::Ne, right } => find_equal(left, right, !truth),
        ExprKind::Compare { left, op: Comparison::Eq, right } => find_equal(left, right, truth),
        ExprKind::Compare { left, op: Comparison::In, right } => {
            let constants = right.as_items()?.iter().map(|item| item.as_text().map(|text| format!("{text:?}")));
            Some((name_value(left)?, choose(constants.collect::<Option<_>>()?)))
        }
        // Any of them may hold: together they ask for one of their constants.
        ExprKind::Or(terms) if truth => {
            let mut terms = terms.iter().map(|term| match find_demand(term, true)? {
                (key, Choice::Only(constants)) => Some((key, constants)),
                (_, Choice::Not(_)) => None,
            });
            let (key, mut constants) = terms.next()??;
            for term in terms {
                let (_, more) = term.filter(|(other, _)| *other == key)?;
                constants.extend(more);
            }
            Some((key, Choice::Only(constants)))
        }
        _ => None,
    }
}

fn find_equal(left: &Expr, right: &Expr, truth: bool) -> Option<(String, Choice)> {
    let (value, constant) = match (&left.kind, &right.kind) {
        (_, ExprKind::Const(constant)) => (left, constant),
        (ExprKind::Const(constant), _) => (right, constant),
        _ => return None,
    };
    // Constants of different types may count as equal, as 1 and 1.0 do, so each type is asked for by itself.
    let (key, constant) = match constant {
        Const::Text(text) => (name_value(value)?, format!("{text:?}")),
        Const::Bool(truth) => (format!("{} as bool", name_value(value)?), truth.to_string()),
        Const::Int(number) => (format!("{} as int", name_value(value)?), number.to_string()),
        Const::None | Const::Float(_) => return None,
    };
    let constants = BTreeSet::from([constant]);
    Some((key, if truth { Choice::Only(constants) } else { Choice::Not(constants) }))
}

/// A name of a value that stays the same for all steps of a round.
fn name_value(expr: &Expr) -> Option<String> {
    let path = expr.as_path()?;
    let is_fixed =
        matches!(path.root, Root::Output | Root::Previous | Root::Status | Root::Exit | Root::Param | Root::Iteration);
    let segments: Vec<&str> = path.segments.iter().map(|segment| segment.text.as_str()).collect();
    // In expressions `_` may stand for the `-` of a name.
    is_fixed.then(|| format!("{:?} {}", path.root, segments.join(".").replace('-', "_")))
}

struct Rounds<'e, 'p> {
    demands: Vec<Demands>,
    each: &'e [Totals<'p>],
    /// How many steps may still be visited.
    visits: usize,
}

impl<'p> Rounds<'_, 'p> {
    /// A bound of what these steps use together.
    fn sum_most(&mut self, steps: &[usize]) -> Totals<'p> {
        self.visits = self.visits.saturating_sub(steps.len());
        let mut sum = Totals::default();
        for group in self.group_steps(steps) {
            let key = if self.visits == 0 { None } else { self.find_key(&group) };
            sum = sum.plus(match key {
                Some(key) => self.choose_most(&group, &key),
                None => self.sum_all(&group),
            });
        }
        sum
    }

    /// The most over all values that `key` names can have.
    fn choose_most(&mut self, steps: &[usize], key: &str) -> Totals<'p> {
        let choices: Vec<(usize, Option<Choice>)> =
            steps.iter().map(|&step| (step, self.demands[step].remove(key))).collect();
        // Each constant with the steps that ask for it, and those that run with most of them. The empty text stands for
        // any other value.
        let mut asked: BTreeMap<&str, Vec<usize>> = BTreeMap::from([("", Vec::new())]);
        let mut open: Vec<(usize, Option<&Choice>)> = Vec::new();
        for (step, choice) in &choices {
            let constants = choice.iter().flat_map(Choice::constants);
            let is_asked = matches!(choice, Some(Choice::Only(_)));
            for constant in constants {
                asked.entry(constant.as_str()).or_default().extend(is_asked.then_some(*step));
            }
            if !is_asked {
                open.push((*step, choice.as_ref()));
            }
        }
        let most = match asked.len() * open.len() > self.visits {
            true => self.sum_all(steps),
            false => asked.iter().fold(Totals::default(), |most, (constant, chosen)| {
                let admits = |choice: &Option<&Choice>| choice.is_none_or(|choice| choice.admits(constant));
                let open = open.iter().filter(|(_, choice)| admits(choice)).map(|(step, _)| *step);
                let left: Vec<usize> = chosen.iter().copied().chain(open).collect();
                most.maximum(self.sum_most(&left))
            }),
        };
        for (step, choice) in choices {
            self.demands[step].extend(choice.map(|choice| (key.to_owned(), choice)));
        }
        most
    }

    fn sum_all(&self, steps: &[usize]) -> Totals<'p> {
        steps.iter().fold(Totals::default(), |sum, &step| sum.plus(self.each[step]))
    }

    /// The value that most of these steps ask for.
    fn find_key(&self, steps: &[usize]) -> Option<String> {
        let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
        steps.iter().flat_map(|&step| self.demands[step].keys()).for_each(|key| *counts.entry(key).or_default() += 1);
        counts.into_iter().filter(|(_, count)| *count > 1).max_by_key(|(_, count)| *count).map(|(key, _)| key.clone())
    }

    /// The steps in groups, so that steps of two groups ask for different values.
    fn group_steps(&self, steps: &[usize]) -> Vec<Vec<usize>> {
        let mut sets = UnionFind::<usize>::new(steps.len());
        let mut first: BTreeMap<&String, usize> = BTreeMap::new();
        for (place, &step) in steps.iter().enumerate() {
            for key in self.demands[step].keys() {
                sets.union(*first.entry(key).or_insert(place), place);
            }
        }
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (place, set) in sets.into_labeling().into_iter().enumerate() {
            let number = *numbers.entry(set).or_insert(groups.len());
            if number == groups.len() {
                groups.push(Vec::new());
            }
            groups[number].push(steps[place]);
        }
        groups
    }
}
