//! What the outcome of a condition says about what is there.

use super::Checker;
use super::presence::{Known, common};
use crate::template::{Comparison, Const, Expr, ExprKind};

impl Checker<'_> {
    /// What is known where the condition holds, or where it does not.
    pub(super) fn narrow(&self, expr: &Expr, truth: bool) -> Vec<Known> {
        match &expr.kind {
            ExprKind::Not(of) => self.narrow(of, !truth),
            ExprKind::And(terms) | ExprKind::Or(terms) => {
                let each = terms.iter().map(|term| self.narrow(term, truth));
                match matches!(expr.kind, ExprKind::And(_)) == truth {
                    // All terms came out like this.
                    true => each.flatten().collect(),
                    false => each.reduce(|known, more| common(known, &more)).unwrap_or_default(),
                }
            }
            ExprKind::Test { of, name, .. } => match (name.value.as_str(), truth, self.key(of)) {
                ("defined", true, Some(key)) | ("undefined", false, Some(key)) => vec![Known::defined(&key)],
                ("none", false, Some(key)) => vec![Known::holds(&key)],
                _ => Vec::new(),
            },
            ExprKind::Filter { of: Some(of), name, arguments } if truth => {
                let falsy = match arguments.first().map(|argument| &argument.value.kind) {
                    None => true,
                    Some(ExprKind::Const(constant)) => !constant.is_true(),
                    Some(ExprKind::List(items)) => items.is_empty(),
                    Some(ExprKind::Map(items)) => items.is_empty(),
                    Some(_) => false,
                };
                match (name.value.as_str(), self.key(of)) {
                    // The default does not hold, so it is not what held.
                    ("default" | "d", Some(key)) if falsy => vec![Known::holds(&key), Known::filled(&key)],
                    ("length" | "count", Some(key)) => vec![Known::filled(&key)],
                    _ => Vec::new(),
                }
            }
            ExprKind::Compare { left, op, right } => self.compared(left, *op, right, truth),
            ExprKind::Path(_) | ExprKind::Variable(_) | ExprKind::Attribute { .. } | ExprKind::Item { .. } if truth => {
                let known = |key: String| vec![Known::holds(&key), Known::filled(&key)];
                self.key(expr).map_or_else(Vec::new, known)
            }
            _ => Vec::new(),
        }
    }

    fn compared(&self, left: &Expr, op: Comparison, right: &Expr, truth: bool) -> Vec<Known> {
        let (left, op, right) = match (&left.kind, op) {
            // `0 < x | length`.
            (ExprKind::Const(_), Comparison::Lt) => (right, Comparison::Gt, left),
            (ExprKind::Const(_), Comparison::Lte) => (right, Comparison::Gte, left),
            (ExprKind::Const(_), Comparison::Eq | Comparison::Ne) => (right, op, left),
            _ => (left, op, right),
        };
        let empty = match &right.kind {
            ExprKind::List(items) => items.is_empty(),
            ExprKind::Const(Const::Text(text)) => text.is_empty(),
            _ => false,
        };
        let (key, counted) = match &left.kind {
            ExprKind::Filter { of: Some(of), name, .. } if matches!(name.value.as_str(), "length" | "count") => {
                (self.key(of), true)
            }
            _ => (self.key(left), false),
        };
        let Some(key) = key else { return Vec::new() };
        let number = match right.kind {
            ExprKind::Const(Const::Int(number)) => Some(number),
            _ => None,
        };
        let some = match (op, number) {
            (Comparison::Gt, Some(0..)) | (Comparison::Gte, Some(1..)) | (Comparison::Eq, Some(1..)) => truth,
            (Comparison::Ne, Some(0)) => truth,
            (Comparison::Eq, Some(0)) | (Comparison::Lt, Some(1)) | (Comparison::Lte, Some(0)) => !truth,
            _ => false,
        };
        match (counted, op) {
            (true, _) if some => vec![Known::filled(&key)],
            (false, Comparison::Ne) if empty && truth => vec![Known::filled(&key)],
            (false, Comparison::Eq) if empty && !truth => vec![Known::filled(&key)],
            (false, Comparison::Ne) if matches!(right.kind, ExprKind::Const(Const::None)) && truth => {
                vec![Known::holds(&key)]
            }
            (false, Comparison::Eq)
                if truth && matches!(&right.kind, ExprKind::Const(constant) if *constant != Const::None) =>
            {
                vec![Known::holds(&key)]
            }
            (false, Comparison::In) if truth && right.items().is_some() => vec![Known::holds(&key)],
            _ => Vec::new(),
        }
    }
}
