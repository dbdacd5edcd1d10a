//! What a condition's outcome says about the run: which values are there, how steps ended.
//!
//! Facts are conservative: one that is left out costs a guard that the author must write, a wrong one a failed run.

use std::sync::Arc;

use super::Root;
use super::constant::number_in_round;
use super::divisor::nonzero_facts;
use super::path::Path;
use super::tree::{Argument, Comparison, Expr, ExprKind};
use crate::suggest::find_closest;

/// The facts that are kept of one place; a real condition has a handful.
pub(super) const MAX_FACTS: usize = 32;

/// Something that holds at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// The value is there.
    Defined {
        /// What is read.
        root: Root,
        /// Of which step, port or parameter, as written.
        name: Option<Arc<str>>,
        /// Fields of the value, outermost first.
        fields: Arc<[String]>,
        /// Whether a test says so, rather than that it was read.
        tested: bool,
    },
    /// It is not the first round.
    Repeated,
    /// The number that is spelt so is not zero.
    NonZero(Arc<str>),
    /// The step ended in one of these ways; with `succeeded` and `failed` it ran.
    Ended {
        /// The step, as written.
        step: String,
        /// The ways, in order, each once; none when the conditions contradict each other.
        any_of: Vec<Status>,
    },
}

/// How a step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// It did what it should.
    Succeeded,
    /// It ran and did not.
    Failed,
    /// It did not run.
    Skipped,
}

impl Status {
    pub(crate) const ALL: [Status; 3] = [Status::Succeeded, Status::Failed, Status::Skipped];

    /// The word for it in expressions.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// The status that a word means.
pub(crate) fn suggest_status(word: &str) -> Option<&'static str> {
    let lower = word.to_ascii_lowercase();
    match lower.as_str() {
        "success" | "successful" | "ok" | "done" | "passed" | "pass" | "completed" => Some("succeeded"),
        "failure" | "fail" | "error" | "errored" => Some("failed"),
        "skip" | "cancelled" | "canceled" => Some("skipped"),
        _ if lower.len() > 40 => None,
        _ => find_closest(&lower, Status::ALL.map(Status::as_str)),
    }
}

/// Whether two spellings name one thing: in expressions `_` stands for `-`.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte };
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| plain(a) == plain(b))
}

/// How much a condition's evaluation is taken to say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Only what its outcome says.
    Outcome,
    /// Also that it could be evaluated: what it reads without a guard is there, or it failed before.
    Evaluated,
}

/// What follows from each outcome of a condition.
#[derive(Default)]
pub(super) struct Outcomes {
    /// From its holding.
    pub(super) yes: Vec<Fact>,
    /// From its not holding.
    pub(super) no: Vec<Fact>,
}

/// What follows from each outcome of `expr`.
pub(super) fn infer_outcomes(expr: &Expr, reading: Reading) -> Outcomes {
    let Outcomes { yes, no } = infer_presence(expr, reading);
    let with_numbers = |facts, truth| conjoin_facts(facts, nonzero_facts(expr, truth));
    Outcomes { yes: with_numbers(yes, true), no: with_numbers(no, false) }
}

/// What follows of values and steps from each outcome of `expr`.
fn infer_presence(expr: &Expr, reading: Reading) -> Outcomes {
    match &expr.kind {
        ExprKind::Not(operand) => {
            let Outcomes { yes, no } = infer_outcomes(operand, reading);
            Outcomes { yes: no, no: yes }
        }
        ExprKind::And(terms) => {
            terms.iter().map(|term| infer_outcomes(term, reading)).reduce(and_outcomes).unwrap_or_default()
        }
        ExprKind::Or(terms) => {
            terms.iter().map(|term| infer_outcomes(term, reading)).reduce(or_outcomes).unwrap_or_default()
        }
        ExprKind::Compare { left, op, right } => {
            let evaluated = evaluation_facts([&**left, &**right], reading);
            let outcome = |truth| comparison_facts(*op, [left, right], truth, &evaluated);
            Outcomes { yes: outcome(true), no: outcome(false) }
        }
        ExprKind::Arithmetic { left, right, .. } | ExprKind::Concat(left, right) => {
            let evaluated = evaluation_facts([&**left, &**right], reading);
            let read = number_in_round(expr, Some(1.0)).filter(|_| number_in_round(expr, None).is_none());
            let first = read.map(|number| number != 0.0);
            let outcome = |truth| match first {
                Some(first) if first != truth => conjoin_facts(evaluated.clone(), vec![Fact::Repeated]),
                _ => evaluated.clone(),
            };
            Outcomes { yes: outcome(true), no: outcome(false) }
        }
        ExprKind::Chain { first, rest } => {
            let evaluated = evaluation_facts([&**first], reading);
            let (mut yes, mut left) = (evaluated.clone(), &**first);
            for (op, right) in rest {
                merge_facts(&mut yes, comparison_facts(*op, [left, right], true, &[]));
                left = right;
            }
            Outcomes { yes, no: evaluated }
        }
        ExprKind::Test { of, name, arguments } => match (name.value.as_str(), base_path(of)) {
            ("defined", Some(path)) => Outcomes { yes: vec![defined_fact(path, true)], no: Vec::new() },
            ("undefined", Some(path)) => Outcomes { yes: Vec::new(), no: vec![defined_fact(path, true)] },
            (test, _) => {
                let evaluated = evaluation_facts([&**of], reading);
                let outcome = |truth| conjoin_facts(evaluated.clone(), tested_round(of, test, arguments, truth));
                Outcomes { yes: outcome(true), no: outcome(false) }
            }
        },
        ExprKind::Path(path) if !path.segments.is_empty() => unconditional_outcomes(evaluation_facts([expr], reading)),
        _ => Outcomes::default(),
    }
}

/// What follows from `left and right`.
fn and_outcomes(left: Outcomes, right: Outcomes) -> Outcomes {
    // It fails by the left side, or by the right side after the left one held.
    let no = disjoin_facts(left.no, conjoin_facts(left.yes.clone(), right.no));
    Outcomes { yes: conjoin_facts(left.yes, right.yes), no }
}

/// What follows from `left or right`.
fn or_outcomes(left: Outcomes, right: Outcomes) -> Outcomes {
    let yes = disjoin_facts(left.yes, conjoin_facts(left.no.clone(), right.yes));
    Outcomes { yes, no: conjoin_facts(left.no, right.no) }
}

fn unconditional_outcomes(facts: Vec<Fact>) -> Outcomes {
    Outcomes { yes: facts.clone(), no: facts }
}

/// The path that an item or a field is of, by any key.
fn base_path(expr: &Expr) -> Option<&Path> {
    match &expr.kind {
        ExprKind::Item { of, .. } | ExprKind::Attribute { of, .. } => base_path(of),
        _ => expr.as_path(),
    }
}

/// What the mere evaluation of these says.
fn evaluation_facts<'a>(operands: impl IntoIterator<Item = &'a Expr>, reading: Reading) -> Vec<Fact> {
    match reading {
        Reading::Outcome => Vec::new(),
        Reading::Evaluated => {
            // Every step has a status, so reading one proves nothing.
            let paths = operands.into_iter().filter_map(Expr::as_path).filter(|path| path.root != Root::Status);
            paths.map(|path| defined_fact(path, false)).collect()
        }
    }
}

fn conjoin_facts(mut facts: Vec<Fact>, more: Vec<Fact>) -> Vec<Fact> {
    merge_facts(&mut facts, more);
    facts
}

/// Adds facts that hold as well.
pub(super) fn merge_facts(facts: &mut Vec<Fact>, more: Vec<Fact>) {
    for fact in more {
        let known = facts.iter().position(|known| match (known, &fact) {
            (Fact::Ended { step, .. }, Fact::Ended { step: other, .. }) => same_name(step, other),
            (known, fact) => known == fact,
        });
        match known {
            Some(index) => {
                if let (Fact::Ended { any_of, .. }, Fact::Ended { any_of: more, .. }) = (&mut facts[index], &fact) {
                    any_of.retain(|status| more.contains(status));
                }
            }
            // Others come first.
            None if matches!(fact, Fact::NonZero(_)) && facts.len() >= MAX_FACTS / 2 => {}
            None if facts.len() < MAX_FACTS => facts.push(fact),
            None => {}
        }
    }
}

/// What holds when one or the other list holds.
fn disjoin_facts(a: Vec<Fact>, b: Vec<Fact>) -> Vec<Fact> {
    // A contradiction never comes about: the other way is the only one.
    if is_contradictory(&a) {
        return b;
    }
    if is_contradictory(&b) {
        return a;
    }
    a.into_iter().filter_map(|fact| common_fact(fact, &b)).collect()
}

fn common_fact(fact: Fact, others: &[Fact]) -> Option<Fact> {
    match &fact {
        Fact::Defined { .. } | Fact::Repeated | Fact::NonZero(_) => others.contains(&fact).then_some(fact),
        Fact::Ended { step, any_of } => others.iter().find_map(|other| match other {
            Fact::Ended { step: same, any_of: more } if same_name(step, same) => {
                let all = Status::ALL.into_iter().filter(|status| any_of.contains(status) || more.contains(status));
                let any_of: Vec<Status> = all.collect();
                // All three ways say nothing.
                (any_of.len() < Status::ALL.len()).then(|| Fact::Ended { step: step.clone(), any_of })
            }
            _ => None,
        }),
    }
}

/// Whether the facts cannot hold together.
pub(super) fn is_contradictory(facts: &[Fact]) -> bool {
    facts.iter().any(|fact| matches!(fact, Fact::Ended { any_of, .. } if any_of.is_empty()))
}

/// Whether the facts say that the value of `root` and `name` is there.
pub(super) fn can_prove(facts: &[Fact], root: Root, name: Option<&str>) -> bool {
    facts.iter().any(|fact| is_proof(fact, root, name))
}

/// Whether it is a test that says so. Otherwise something else read the value without a guard, and would have failed.
pub(super) fn is_tested(facts: &[Fact], root: Root, name: Option<&str>) -> bool {
    let by_test = |fact: &Fact| matches!(fact, Fact::Defined { tested: true, .. });
    facts.iter().any(|fact| by_test(fact) && is_proof(fact, root, name))
}

fn is_proof(fact: &Fact, root: Root, name: Option<&str>) -> bool {
    match fact {
        Fact::Defined { root: known, name: Some(step), .. } => {
            *known == root && name.is_some_and(|name| same_name(step, name))
        }
        Fact::Defined { root: known, name: None, .. } => *known == root,
        Fact::Ended { .. } | Fact::Repeated | Fact::NonZero(_) => false,
    }
}

fn comparison_facts(op: Comparison, [left, right]: [&Expr; 2], truth: bool, evaluated: &[Fact]) -> Vec<Fact> {
    let mut facts = evaluated.to_vec();
    if is_later_round(op, [left, right], truth) {
        merge_facts(&mut facts, vec![Fact::Repeated]);
    }
    for (side, other) in [(left, right), (right, left)] {
        let Some(path) = side.as_path() else { continue };
        let Some(step) = path.name().map(str::to_owned) else { continue };
        match path.root {
            Root::Status => {
                let ended = remaining_statuses(op, other, truth).map(|any_of| Fact::Ended { step, any_of });
                merge_facts(&mut facts, ended.into_iter().collect());
            }
            // Only a step that ran has an exit code.
            Root::Exit => {
                let any_of = vec![Status::Succeeded, Status::Failed];
                merge_facts(&mut facts, vec![Fact::Ended { step, any_of }, defined_fact(path, false)]);
            }
            _ => {}
        }
    }
    facts
}

/// Whether what a comparison came to says that it is not the first round: there it comes out otherwise.
fn is_later_round(op: Comparison, [left, right]: [&Expr; 2], truth: bool) -> bool {
    // Rounds count from 1. What reads no round says nothing of it.
    let number = |expr: &Expr| number_in_round(expr, Some(1.0));
    let is_constant = |expr: &Expr| number_in_round(expr, None).is_some();
    let are_constant = right.as_items().is_some_and(|items| items.iter().all(is_constant));
    if is_constant(left) && (is_constant(right) || are_constant) {
        return false;
    }
    let Some(left) = number(left) else { return false };
    let first = match (op, right.as_items().map(|items| items.iter().map(number).collect::<Option<Vec<f64>>>())) {
        (Comparison::In, Some(Some(items))) => items.contains(&left),
        (Comparison::NotIn, Some(Some(items))) => !items.contains(&left),
        (Comparison::In | Comparison::NotIn, _) => return false,
        _ => {
            let Some(right) = number(right) else { return false };
            let Some(holds) = op.compare(&left, &right) else { return false };
            holds
        }
    };
    first != truth
}

/// What a test of a number says of the round.
fn tested_round(of: &Expr, name: &str, arguments: &[Argument], truth: bool) -> Vec<Fact> {
    let read = number_in_round(of, Some(1.0)).filter(|_| number_in_round(of, None).is_none());
    let Some(number) = read else { return Vec::new() };
    let by = arguments.first().and_then(|argument| number_in_round(&argument.value, None));
    let first = match (name, by) {
        ("even", None) => number % 2.0 == 0.0,
        ("odd", None) => number % 2.0 != 0.0,
        ("divisibleby", Some(by)) => number % by == 0.0,
        _ => return Vec::new(),
    };
    if first == truth { Vec::new() } else { vec![Fact::Repeated] }
}

/// The ways to end that a comparison with `other` leaves.
fn remaining_statuses(op: Comparison, other: &Expr, truth: bool) -> Option<Vec<Status>> {
    let (listed, positive) = match op {
        Comparison::Eq => (vec![parse_status(other)?], truth),
        Comparison::Ne => (vec![parse_status(other)?], !truth),
        Comparison::In => (other.as_items()?.iter().map(parse_status).collect::<Option<_>>()?, truth),
        _ => return None,
    };
    Some(Status::ALL.into_iter().filter(|status| listed.contains(status) == positive).collect())
}

fn parse_status(expr: &Expr) -> Option<Status> {
    expr.as_text().and_then(Status::from_word)
}

fn defined_fact(path: &Path, tested: bool) -> Fact {
    Fact::Defined { root: path.root, name: path.name().map(Arc::from), fields: path.field_names().into(), tested }
}
