//! Comparisons, conditions and arithmetic (SW205).

use super::super::{Kind, Type};
use super::{Checker, Need};
use crate::template::{Comparison, Const, Expr, ExprKind, Operator};

/// What can equal what.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Text,
    Number,
    List,
    Object,
}

fn class(kind: &Kind) -> Option<Class> {
    match kind {
        Kind::Any | Kind::None | Kind::Named(..) => None,
        // minijinja counts `true` as 1.
        Kind::Int | Kind::Float | Kind::Bool => Some(Class::Number),
        Kind::List(_) => Some(Class::List),
        Kind::Map(_) | Kind::Record(_) => Some(Class::Object),
        Kind::Text | Kind::String | Kind::File | Kind::Dir | Kind::Enum(_) => Some(Class::Text),
    }
}

impl Checker<'_> {
    /// Types a condition, which must be true or false.
    pub(crate) fn condition(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Not(of) => self.condition(of),
            ExprKind::And(terms) | ExprKind::Or(terms) => {
                let truth = matches!(expr.kind, ExprKind::And(_));
                let mark = self.presence.mark();
                for term in terms {
                    self.condition(term);
                    let known = self.narrow(term, truth);
                    self.presence.learn(known);
                }
                self.presence.forget(mark);
            }
            // Whether a literal holds is known without its type.
            ExprKind::Const(_) | ExprKind::List(_) | ExprKind::Map(_) => {
                self.type_of(expr);
            }
            _ => {
                let kind = self.type_of(expr);
                let kind = self.env.whole.types.kind(&kind.kind).clone();
                if !matches!(kind, Kind::Any | Kind::None | Kind::Bool) {
                    self.not_a_condition(expr, &kind);
                }
            }
        }
    }

    pub(super) fn compare(&mut self, whole: &Expr, left: &Expr, op: Comparison, right: &Expr) {
        let types = self.env.whole.types;
        let of_left = self.operand(left, Need::Present);
        let of_right = self.operand(right, Need::Present);
        let (of_left, of_right) = (types.kind(&of_left.kind), types.kind(&of_right.kind));
        match op {
            Comparison::In | Comparison::NotIn => self.contained(whole, (left, of_left), (right, of_right)),
            Comparison::Eq | Comparison::Ne => {
                self.equal(whole, (left, of_left), (right, of_right), op == Comparison::Ne);
            }
            Comparison::Lt | Comparison::Lte | Comparison::Gt | Comparison::Gte => {
                if let (Some(one), Some(other)) = (class(of_left), class(of_right))
                    && one != other
                {
                    self.never_equal(whole, (left, of_left), (right, of_right), "is compared with");
                }
            }
        }
    }

    fn equal(&mut self, whole: &Expr, left: (&Expr, &Kind), right: (&Expr, &Kind), differs: bool) {
        self.choice_compared(left, right, differs);
        for ((side, kind), (word, _)) in [(left, right), (right, left)] {
            if let (Kind::Enum(words), Some(text)) = (kind, word.text()) {
                if !words.words.iter().any(|word| word == text) {
                    let words = words.clone();
                    self.not_a_word(side, word, text, &words, differs);
                }
                return;
            }
        }
        let says = if differs { "always differs from" } else { "never equals" };
        match (left.1, right.1) {
            (Kind::Enum(one), Kind::Enum(other)) if !one.words.iter().any(|word| other.words.contains(word)) => {
                self.never_equal(whole, left, right, says);
            }
            (one, other) if class(one).zip(class(other)).is_some_and(|(one, other)| one != other) => {
                self.never_equal(whole, left, right, says);
            }
            _ => {}
        }
    }

    fn contained(&mut self, whole: &Expr, left: (&Expr, &Kind), right: (&Expr, &Kind)) {
        let types = self.env.whole.types;
        match right.1 {
            Kind::List(item) => match right.0.items() {
                // Each item that is written out is compared by itself, so that the wrong one is pointed at.
                Some(items) => {
                    for item in items {
                        let kind = match &item.kind {
                            ExprKind::Const(Const::Text(_)) => Kind::String,
                            ExprKind::Const(Const::Int(_)) => Kind::Int,
                            ExprKind::Const(Const::Float(_)) => Kind::Float,
                            ExprKind::Const(Const::Bool(_)) => Kind::Bool,
                            _ => Kind::Any,
                        };
                        self.equal(item, left, (item, &kind), false);
                    }
                }
                None => {
                    let item = types.kind(&item.kind).clone();
                    self.equal(whole, left, (right.0, &item), false);
                }
            },
            Kind::Map(_) | Kind::Any | Kind::None | Kind::Named(..) => {}
            Kind::Record(record) => {
                if let Some(name) = left.0.text()
                    && !record.fields.iter().any(|field| field.name == name)
                {
                    let record = record.clone();
                    self.no_such_key(right.0, left.0, name, &record);
                }
            }
            kind if kind.is_text() => {
                if class(left.1).is_some_and(|class| class != Class::Text) {
                    self.never_equal(whole, left, right, "is never part of");
                }
            }
            kind => {
                let kind = kind.clone();
                self.holds_nothing(right.0, &kind);
            }
        }
    }

    pub(super) fn arithmetic(&mut self, whole: &Expr, left: &Expr, op: Operator, right: &Expr) -> Type {
        let types = self.env.whole.types;
        let (one, other) = (self.type_of(left), self.type_of(right));
        let (one, other) = (types.kind(&one.kind), types.kind(&other.kind));
        let (Some(of_one), Some(of_other)) = (class(one), class(other)) else { return Type::ANY };
        match (op, of_one, of_other) {
            (Operator::Div, Class::Number, Class::Number) => Type::FLOAT,
            (_, Class::Number, Class::Number) => match (one, other) {
                (Kind::Int, Kind::Int) => Type::INT,
                _ => Type::FLOAT,
            },
            (Operator::Add, Class::Text, Class::Text) => Type::STRING,
            (Operator::Add, Class::List, Class::List) | (Operator::Mul, _, _) => Type::ANY,
            _ => {
                let (one, other) = (one.clone(), other.clone());
                self.not_numbers(whole, (left, &one), (right, &other), op);
                Type::ANY
            }
        }
    }
}
