//! What conditions can tell apart in a value: the texts, numbers and truths that they compare it with, and the rest.
//!
//! The conditions of a pipeline go in; a few classes for each value that they read come out, so that comparisons with
//! one value exclude each other exactly, and a comparison with a word that never comes stays possible on a free text.

use std::collections::BTreeMap;

use super::diagram::MOST_VALUES;
use crate::template::{Comparison, Const, Expr, ExprKind, Root, is_default};

/// A value that is the same wherever this is read in one round.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) root: Root,
    pub(crate) of: Of,
    /// Fields, outermost first.
    pub(crate) fields: Vec<String>,
}

/// What a root is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    /// Nothing in particular.
    Run,
    /// A step.
    Step(usize),
    /// A step in the round before, or the number of the round: as the steps in this loop see it.
    Round(Option<usize>, Option<usize>),
    /// A parameter or a property, `_` for `-`.
    Name(String),
    /// Whatever it is for this reader alone.
    Reader(Option<usize>, String),
}

/// What is known of a value before any condition reads it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Bool,
    /// One of these words.
    Enum(Vec<String>),
    /// A whole number.
    Int,
    /// Anything.
    Free,
}

/// Values that no condition tells apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Class {
    Bool(bool),
    None,
    Text(String),
    Number(f64),
    /// Between two numbers, or beyond one.
    Between(Option<f64>, Option<f64>),
    /// Whatever else counts as true, or does not.
    Other(bool),
}

/// The classes of each value.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    compared: BTreeMap<Key, Vec<Const>>,
}

impl Vocabulary {
    /// Takes the comparisons of an expression in; `key` gives the value that a path names.
    pub(crate) fn learn_comparisons(&mut self, expr: &Expr, key: &dyn Fn(&Expr) -> Option<Key>) {
        let mut open = vec![expr];
        while let Some(expr) = open.pop() {
            let mut compared = |path: &Expr, consts: &[&Expr]| {
                if let Some(key) = key(unwrap_default(path)) {
                    let known = self.compared.entry(key).or_default();
                    for constant in consts.iter().filter_map(|expr| as_constant(expr)) {
                        // A number makes two classes, and a few more stand beside all of them.
                        if !known.contains(constant) && known.len() < MOST_VALUES / 3 {
                            known.push(constant.clone());
                        }
                    }
                }
            };
            match &expr.kind {
                ExprKind::Compare { left, op: Comparison::In, right } => {
                    compared(left, &right.as_items().unwrap_or_default().iter().collect::<Vec<_>>());
                }
                ExprKind::Compare { left, right, .. } => {
                    compared(left, &[right]);
                    compared(right, &[left]);
                }
                _ => {}
            }
            open.extend(expr.child_expressions());
        }
    }

    /// Whether a value is compared only with what it can be.
    pub(crate) fn fits(&self, key: &Key, kind: &Kind) -> bool {
        let fits = |constant: &Const| match (kind, constant) {
            (Kind::Enum(members), Const::Text(text)) => members.contains(text),
            (Kind::Bool, Const::Bool(_)) => true,
            _ => false,
        };
        self.compared.get(key).is_none_or(|compared| compared.iter().all(fits))
    }

    /// The classes of a value, each of its own.
    pub(crate) fn classes(&self, key: &Key, kind: &Kind) -> Vec<Class> {
        match kind {
            Kind::Bool => vec![Class::Bool(true), Class::Bool(false)],
            Kind::Enum(members) if members.len() <= MOST_VALUES => members.iter().cloned().map(Class::Text).collect(),
            Kind::Int => {
                let mut classes = free_classes(self.compared.get(key).map_or(&[], Vec::as_slice));
                // Between 1 and 2 lies no whole number.
                classes.retain(|class| match class {
                    Class::Between(Some(below), Some(above)) => above - below > 1.0,
                    Class::Number(_) | Class::Between(..) => true,
                    _ => false,
                });
                // Without a comparison, only its truth is asked for.
                if classes.is_empty() { vec![Class::Other(true), Class::Other(false)] } else { classes }
            }
            Kind::Enum(_) | Kind::Free => free_classes(self.compared.get(key).map_or(&[], Vec::as_slice)),
        }
    }
}

fn free_classes(compared: &[Const]) -> Vec<Class> {
    let mut classes = vec![Class::Other(true)];
    let mut numbers: Vec<f64> = Vec::new();
    for constant in compared {
        match constant {
            Const::None => classes.push(Class::None),
            Const::Bool(truth) => classes.push(Class::Bool(*truth)),
            Const::Text(text) => classes.push(Class::Text(text.clone())),
            Const::Int(number) => numbers.push(*number as f64),
            Const::Float(number) => numbers.push(*number),
        }
    }
    classes.push(Class::Other(false));
    if !numbers.is_empty() {
        // Zero does not count as true.
        numbers.push(0.0);
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        let mut below = None;
        for number in numbers {
            classes.push(Class::Between(below, Some(number)));
            classes.push(Class::Number(number));
            below = Some(number);
        }
        classes.push(Class::Between(below, None));
    }
    classes
}

/// How a class compares with a constant: none where its values differ in that.
pub(crate) fn compare_class(class: &Class, op: Comparison, with: &Const) -> Option<bool> {
    let number = match with {
        Const::Int(number) => Some(*number as f64),
        Const::Float(number) => Some(*number),
        _ => None,
    };
    let order = match (class, number) {
        (Class::Number(own), Some(number)) => own.partial_cmp(&number)?,
        (Class::Text(own), None) if let Const::Text(text) = with => own.as_str().cmp(text),
        (Class::Between(_, Some(above)), Some(number)) if *above <= number => std::cmp::Ordering::Less,
        (Class::Between(Some(below), _), Some(number)) if *below >= number => std::cmp::Ordering::Greater,
        _ => {
            let equal = match (class, with) {
                (Class::Text(own), Const::Text(text)) => own == text,
                (Class::Bool(own), Const::Bool(truth)) => own == truth,
                (Class::None, Const::None) => true,
                // A number without a class of its own may lie between these two.
                (Class::Between(..), _) if number.is_some() => return None,
                (Class::Other(_), _) => return None,
                _ => false,
            };
            return match op {
                Comparison::Eq => Some(equal),
                Comparison::Ne => Some(!equal),
                _ => None,
            };
        }
    };
    Some(match op {
        Comparison::Eq => order.is_eq(),
        Comparison::Ne => order.is_ne(),
        Comparison::Lt => order.is_lt(),
        Comparison::Lte => order.is_le(),
        Comparison::Gt => order.is_gt(),
        Comparison::Gte => order.is_ge(),
        Comparison::In | Comparison::NotIn => return None,
    })
}

/// Whether the values of a class count as true.
pub(crate) fn is_true(class: &Class) -> bool {
    match class {
        Class::Bool(truth) | Class::Other(truth) => *truth,
        Class::None => false,
        Class::Text(text) => !text.is_empty(),
        Class::Number(number) => *number != 0.0,
        // Zero has a class of its own wherever there are these.
        Class::Between(..) => true,
    }
}

/// A constant that is written out.
pub(crate) fn as_constant(expr: &Expr) -> Option<&Const> {
    match &expr.kind {
        ExprKind::Const(constant) => Some(constant),
        _ => None,
    }
}

/// The expression behind a `| default(…)`, or itself.
pub(crate) fn unwrap_default(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Filter { of: Some(of), name, .. } if is_default(&name.value) => of,
        _ => expr,
    }
}
