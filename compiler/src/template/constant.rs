//! What an expression computes from nothing but constants: whether it is zero, how large it gets, which number it is.

use super::Root;
use super::tree::{Const, Expr, ExprKind, Operator};

/// Whether zero is written there.
pub(super) fn is_zero(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(Const::Int(number)) => *number == 0,
        ExprKind::Const(Const::Float(number)) => *number == 0.0,
        ExprKind::Const(Const::Bool(truth)) => !truth,
        ExprKind::Negative(of) => is_zero(of),
        _ => false,
    }
}

/// The largest constant that an expression may compute, in characters or items.
pub(super) const MAX_CONSTANT: f64 = 1_000_000.0;

/// How large a text or list is that an expression computes from nothing but constants, where it computes one.
pub(super) fn constant_size(expr: &Expr) -> Option<f64> {
    let all = |items: &[Expr]| {
        items.iter().map(|item| constant_size(item).or_else(|| constant_number(item).map(|_| 1.0))).sum()
    };
    match &expr.kind {
        // What is written out is there already.
        ExprKind::Const(Const::Text(text)) => Some((text.len() as f64).min(MAX_CONSTANT)),
        ExprKind::List(items) => all(items),
        ExprKind::Concat(left, right) | ExprKind::Arithmetic { left, op: Operator::Add, right } => {
            match (constant_size(left), constant_size(right)) {
                (None, None) => None,
                (left, right) => Some(left.unwrap_or(1.0) + right.unwrap_or(1.0)),
            }
        }
        ExprKind::Arithmetic { left, op: Operator::Mul, right } => match (constant_size(left), constant_size(right)) {
            (Some(of), None) => Some(of * constant_number(right)?.max(0.0)),
            (None, Some(of)) => Some(of * constant_number(left)?.max(0.0)),
            _ => None,
        },
        _ => None,
    }
}

/// The number that an expression computes from nothing but constants, nearly.
pub(crate) fn constant_number(expr: &Expr) -> Option<f64> {
    number_in_round(expr, None)
}

/// The number that an expression computes from constants and the number of the round, nearly.
pub(super) fn number_in_round(expr: &Expr, round: Option<f64>) -> Option<f64> {
    match &expr.kind {
        ExprKind::Path(path) if path.root == Root::Iteration => round,
        ExprKind::Const(Const::Int(number)) => Some(*number as f64),
        ExprKind::Const(Const::Float(number)) => Some(*number),
        ExprKind::Const(Const::Bool(truth)) => Some(f64::from(u8::from(*truth))),
        ExprKind::Negative(of) => number_in_round(of, round).map(|number| -number),
        ExprKind::Arithmetic { left, op, right } => {
            let (left, right) = (number_in_round(left, round)?, number_in_round(right, round)?);
            Some(match op {
                Operator::Add => left + right,
                Operator::Sub => left - right,
                Operator::Mul => left * right,
                Operator::Div => left / right,
                Operator::FloorDiv => (left / right).floor(),
                Operator::Rem => left % right,
                Operator::Pow => left.powf(right),
            })
        }
        _ => None,
    }
}
