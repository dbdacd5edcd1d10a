//! Conditions: the expression of a `when` or an `until`.
//!
//! Goes in: its text. Comes out: what it reads, what its holding proves, and whether it can hold at all.

use std::ops::Range;

use minijinja::machinery::ast::{BinOpKind, Expr, UnaryOpKind};
use minijinja::machinery::parse_expr;

use super::fact::{Outcomes, Reading, contradictory, outcomes};
use super::region::{self, template_error};
use super::{Expression, Problem, logic};

/// Reads a condition.
pub(crate) fn expression(text: &str) -> Expression {
    let mut expression = Expression::default();
    if let Some(problem) = wrapped(text) {
        expression.problems.push(problem);
        return expression;
    }
    if let Some(source) = region::standalone(text, &mut expression.problems)
        && let Ok(tree) = parse_expr(&source)
    {
        expression.reads = logic::condition(&tree, &mut expression.problems);
        expression.constant = fold(&tree);
        expression.proves = outcomes(&tree, Reading::Outcome).yes;
    }
    expression.problems.sort_by_key(|problem| (problem.range.start, problem.range.end));
    expression.reads.sort_by_key(|read| (read.whole.start, read.whole.end));
    expression
}

/// A condition that is written as a piece of text.
fn wrapped(text: &str) -> Option<Problem> {
    let trimmed = text.trim();
    let start = text.len() - text.trim_start().len();
    let range: Range<usize> = start..start + trimmed.len();
    let inner = trimmed.strip_prefix("{{")?.strip_suffix("}}")?.trim();
    if inner.contains("{{") {
        return None;
    }
    Some(
        template_error(range.clone(), "a condition is an expression, without `{{` and `}}`", "a piece of text")
            .help("leave `{{` and `}}` out")
            .fix("leave `{{` and `}}` out", range, inner, true),
    )
}

/// The truth that the expression has whatever it reads.
fn fold(expr: &Expr<'_>) -> Option<bool> {
    if let Some(truth) = literal(expr) {
        return Some(truth);
    }
    let Outcomes { yes, no } = outcomes(expr, Reading::Outcome);
    match (contradictory(&yes), contradictory(&no)) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        (false, false) => None,
    }
}

fn literal(expr: &Expr<'_>) -> Option<bool> {
    match expr {
        Expr::Const(constant) => Some(constant.value.is_true()),
        Expr::List(list) => Some(!list.items.is_empty()),
        Expr::Tuple(tuple) => Some(!tuple.items.is_empty()),
        Expr::Map(map) => Some(!map.keys.is_empty()),
        Expr::UnaryOp(not) if matches!(not.op, UnaryOpKind::Not) => literal(&not.expr).map(|truth| !truth),
        Expr::BinOp(op) => match op.op {
            BinOpKind::ScAnd => match (literal(&op.left), literal(&op.right)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), right) => right,
                (None, _) => None,
            },
            BinOpKind::ScOr => match (literal(&op.left), literal(&op.right)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), right) => right,
                (None, _) => None,
            },
            kind => compare(kind, &op.left, &op.right),
        },
        _ => None,
    }
}

/// Compares two literals; nothing else is computed, since arithmetic on literals can be made to take for ever.
fn compare(kind: BinOpKind, left: &Expr<'_>, right: &Expr<'_>) -> Option<bool> {
    let (Expr::Const(left), Expr::Const(right)) = (left, right) else { return None };
    let (left, right) = (&left.value, &right.value);
    match kind {
        BinOpKind::Eq => Some(left == right),
        BinOpKind::Ne => Some(left != right),
        BinOpKind::Lt => Some(left < right),
        BinOpKind::Lte => Some(left <= right),
        BinOpKind::Gt => Some(left > right),
        BinOpKind::Gte => Some(left >= right),
        _ => None,
    }
}
