//! Conditions: the expression of a `when` or an `until`.
//!
//! Goes in: its text. Comes out: what it reads, what its holding proves, and whether it can hold at all.

use std::ops::Range;

use super::fact::{Outcomes, Reading, infer_outcomes, is_contradictory};
use super::region::{self, template_error};
use super::tree::{Comparison, Const, Expr, ExprKind};
use super::{Expression, Problem, logic};

/// Reads a condition.
pub(crate) fn parse_expression(text: &str) -> Expression {
    let mut expression = Expression::default();
    if let Some(problem) = check_wrapping(text) {
        expression.problems.push(problem);
        return expression;
    }
    if let Some(tree) = region::parse_alone(text, &mut expression.problems) {
        (expression.reads, expression.risks) = logic::visit_condition(&tree, &mut expression.problems);
        let outcomes = infer_outcomes(&tree, Reading::Outcome);
        expression.constant = fold_literal(&tree).or_else(|| fold_outcomes(&outcomes));
        expression.proves = outcomes.yes;
        expression.tree = Some(tree);
    }
    expression.problems.sort_by_key(|problem| (problem.range.start, problem.range.end));
    expression.reads.sort_by_key(|read| (read.whole.start, read.whole.end));
    // Large conditions have very many of them, and the model keeps them to its end.
    expression.reads.shrink_to_fit();
    expression
}

/// The tree of an expression alone; none where the text is no expression.
pub(crate) fn parse_tree(text: &str) -> Option<Expr> {
    region::parse_alone(text, &mut Vec::new())
}

/// A condition that is written as a piece of text.
fn check_wrapping(text: &str) -> Option<Problem> {
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

/// The truth that an expression with these outcomes has whatever it reads.
fn fold_outcomes(outcomes: &Outcomes) -> Option<bool> {
    match (is_contradictory(&outcomes.yes), is_contradictory(&outcomes.no)) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        (false, false) => None,
    }
}

fn fold_literal(expr: &Expr) -> Option<bool> {
    match &expr.kind {
        ExprKind::Const(constant) => Some(constant.is_true()),
        ExprKind::List(items) => Some(!items.is_empty()),
        ExprKind::Map(items) => Some(!items.is_empty()),
        ExprKind::Not(operand) => fold_literal(operand).map(|truth| !truth),
        ExprKind::And(terms) => fold_terms(terms, false),
        ExprKind::Or(terms) => fold_terms(terms, true),
        ExprKind::Compare { left, op, right } => compare_literals(*op, left, right),
        _ => None,
    }
}

/// The truth of terms of which one that is `decides` decides.
fn fold_terms(terms: &[Expr], decides: bool) -> Option<bool> {
    let mut terms = terms.iter().map(fold_literal);
    let mut all = true;
    let decided = terms.any(|truth| {
        all &= truth.is_some();
        truth == Some(decides)
    });
    match (decided, all) {
        (true, _) => Some(decides),
        (false, true) => Some(!decides),
        (false, false) => None,
    }
}

/// Compares two literals; nothing else is computed, since arithmetic on literals can be made to take for ever.
fn compare_literals(op: Comparison, left: &Expr, right: &Expr) -> Option<bool> {
    let (ExprKind::Const(left), ExprKind::Const(right)) = (&left.kind, &right.kind) else { return None };
    let order = match (left, right) {
        (Const::Text(left), Const::Text(right)) => Some(left.cmp(right)),
        (Const::Int(left), Const::Int(right)) => Some(left.cmp(right)),
        (Const::Bool(left), Const::Bool(right)) => Some(left.cmp(right)),
        (Const::None, Const::None) => Some(std::cmp::Ordering::Equal),
        // Numbers of two kinds, and what is rarely compared on purpose.
        (Const::Text(_), _) | (_, Const::Text(_)) | (Const::None, _) | (_, Const::None) => None,
        _ => return None,
    };
    match (op, order) {
        (Comparison::Eq, order) => Some(order.is_some_and(std::cmp::Ordering::is_eq)),
        (Comparison::Ne, order) => Some(!order.is_some_and(std::cmp::Ordering::is_eq)),
        (Comparison::Lt, Some(order)) => Some(order.is_lt()),
        (Comparison::Lte, Some(order)) => Some(order.is_le()),
        (Comparison::Gt, Some(order)) => Some(order.is_gt()),
        (Comparison::Gte, Some(order)) => Some(order.is_ge()),
        _ => None,
    }
}
