//! Comparisons, conditions and arithmetic (SW205).

use super::super::{Classes, Form, Kind, Type};
use super::call::Found;
use super::{Checker, Need};
use crate::template::{Comparison, Const, Expr, ExprKind, Operator, Part, Statement, Template};

/// What can equal what.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Text,
    Number,
    List,
    Object,
}

fn comparison_class(kind: &Kind) -> Option<Class> {
    match kind {
        Kind::Any | Kind::None | Kind::Named(..) | Kind::Union(_) => None,
        // minijinja counts `true` as 1.
        Kind::Int | Kind::Float | Kind::Bool => Some(Class::Number),
        Kind::List(_) | Kind::Tuple(_) | Kind::Iter { .. } => Some(Class::List),
        Kind::Map(_) | Kind::Record(_) => Some(Class::Object),
        Kind::Text | Kind::String | Kind::File | Kind::Dir | Kind::Enum(_) => Some(Class::Text),
    }
}

impl Checker<'_> {
    /// Types a condition, which must be true or false.
    pub(crate) fn check_condition(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Not(of) => self.check_condition(of),
            ExprKind::And(terms) | ExprKind::Or(terms) => {
                let truth = matches!(expr.kind, ExprKind::And(_));
                let mark = self.presence.mark();
                for term in terms {
                    self.check_condition(term);
                    let known = self.narrow_condition(term, truth);
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
                let kind = self.env.whole.types.underlying_kind(&kind.kind).clone();
                if !matches!(kind, Kind::Any | Kind::None | Kind::Bool | Kind::Union(_)) {
                    self.not_a_condition(expr, &kind);
                }
            }
        }
    }

    pub(super) fn check_comparison(&mut self, whole: &Expr, left: &Expr, op: Comparison, right: &Expr) {
        let types = self.env.whole.types;
        let of_left = self.infer_operand(left, Need::Present);
        // Nothing is in `null`.
        let inside = matches!(op, Comparison::In | Comparison::NotIn);
        let of_right = self.infer_operand(right, if inside { Need::Value } else { Need::Present });
        let (of_left, of_right) = (types.underlying_kind(&of_left.kind), types.underlying_kind(&of_right.kind));
        match op {
            Comparison::In | Comparison::NotIn => self.check_membership(whole, (left, of_left), (right, of_right)),
            Comparison::Eq | Comparison::Ne => {
                self.check_equality(whole, (left, of_left), (right, of_right), op == Comparison::Ne);
            }
            Comparison::Lt | Comparison::Lte | Comparison::Gt | Comparison::Gte => {
                if let (Some(one), Some(other)) = (comparison_class(of_left), comparison_class(of_right))
                    && one != other
                {
                    self.never_equal(whole, (left, of_left), (right, of_right), "is compared with");
                }
            }
        }
    }

    fn check_equality(&mut self, whole: &Expr, left: (&Expr, &Kind), right: (&Expr, &Kind), differs: bool) {
        self.choice_compared(left, right, differs);
        self.check_free_text(left.0, right.0, differs);
        self.check_free_text(right.0, left.0, differs);
        for ((side, kind), (word, _)) in [(left, right), (right, left)] {
            if let (Kind::Enum(words), Some(text)) = (kind, word.as_text()) {
                if !words.words.iter().any(|word| word == text) {
                    let words = words.clone();
                    self.not_a_word(side, word, text, &words, differs);
                }
                // The words decide here: the kinds would say nothing more.
                return;
            }
        }
        let says = if differs { "always differs from" } else { "never equals" };
        match (left.1, right.1) {
            (Kind::Enum(one), Kind::Enum(other)) if !one.words.iter().any(|word| other.words.contains(word)) => {
                self.never_equal(whole, left, right, says);
            }
            (one, other)
                if comparison_class(one).zip(comparison_class(other)).is_some_and(|(one, other)| one != other) =>
            {
                self.never_equal(whole, left, right, says);
            }
            _ => {}
        }
    }

    /// What an agent says is seldom one word and nothing else.
    fn check_free_text(&mut self, side: &Expr, word: &Expr, differs: bool) {
        let Some(text) = word.as_text().filter(|text| !text.is_empty()) else { return };
        let mut read = side;
        while let ExprKind::Filter { of: Some(of), name, .. } = &read.kind
            && ["trim", "lower", "upper"].contains(&name.value.as_str())
        {
            read = of;
        }
        if let Some((step, span)) = read.as_path().and_then(|path| self.env.find_free(path)) {
            let step = step.to_owned();
            self.seldom_equal(side, word, (&step, span, text), differs);
        }
    }

    fn check_membership(&mut self, whole: &Expr, left: (&Expr, &Kind), right: (&Expr, &Kind)) {
        let types = self.env.whole.types;
        match right.1 {
            Kind::List(_) | Kind::Tuple(_) | Kind::Iter { .. } => match right.0.as_items() {
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
                        self.check_equality(item, left, (item, &kind), false);
                    }
                }
                None => {
                    let item = right.1.item_type().unwrap_or(Type::ANY);
                    let item = types.underlying_kind(&item.kind).clone();
                    self.check_equality(whole, left, (right.0, &item), false);
                }
            },
            Kind::Union(_) => {
                let container = Classes::SEQUENCE.union(Classes::TEXT).union(Classes::OBJECT);
                if let Some(found) = self.find_misfit(&Type::new(right.1.clone()), container) {
                    self.holds_nothing(right.0, &found);
                }
            }
            Kind::None => self.holds_nothing(right.0, &Found { kind: Kind::None, one_of: false }),
            Kind::Map(_) | Kind::Any | Kind::Named(..) => {}
            Kind::Record(record) => {
                if let Some(name) = left.0.as_text()
                    && !record.fields.iter().any(|field| field.name == name)
                {
                    let record = record.clone();
                    self.no_such_key(right.0, left.0, name, &record);
                }
            }
            kind if kind.is_text() => {
                if comparison_class(left.1).is_some_and(|class| class != Class::Text) {
                    self.never_equal(whole, left, right, "is never part of");
                }
            }
            kind => {
                self.holds_nothing(right.0, &Found { kind: kind.clone(), one_of: false });
            }
        }
    }

    /// Reports whole numbers that a value cannot hold, where they are all of it, or a part that is written out.
    pub(crate) fn check_stored(&mut self, template: &Template) {
        let ([Part::Logic(_)], [Statement::Emit(expr)]) = (template.parts.as_slice(), template.logic.as_slice()) else {
            return;
        };
        let mut open = vec![expr];
        while let Some(expr) = open.pop() {
            match &expr.kind {
                ExprKind::List(items) => open.extend(items),
                ExprKind::Map(entries) => open.extend(entries.iter().map(|(_, value)| value)),
                _ => {
                    let fits = |number: i128| i64::try_from(number).is_ok() || u64::try_from(number).is_ok();
                    if constant_whole(expr).is_some_and(|number| !fits(number)) {
                        self.beyond_64_bits(expr);
                    }
                }
            }
        }
    }

    pub(super) fn infer_arithmetic(&mut self, whole: &Expr, left: &Expr, op: Operator, right: &Expr) -> Type {
        let types = self.env.whole.types;
        let (one, other) = (self.type_of(left), self.type_of(right));
        if op == Operator::Pow && has_no_power(left, right) {
            self.no_power(whole);
        }
        let (ones, others) = (types.possible_kinds(&one.kind), types.possible_kinds(&other.kind));
        let mut result: Option<Type> = None;
        for one in &ones {
            for other in &others {
                let Some(kind) = arithmetic_type((left, one), op, (right, other)) else {
                    let found = |kind: &Kind, all: &[Kind]| Found { kind: kind.clone(), one_of: all.len() > 1 };
                    self.not_numbers(whole, (left, &found(one, &ones)), (right, &found(other, &others)), op);
                    return Type::ANY;
                };
                result = Some(match result {
                    Some(known) => known.or(kind),
                    None => kind,
                });
            }
        }
        result.unwrap_or(Type::ANY)
    }
}

/// The whole number that an expression computes from whole numbers alone.
fn constant_whole(expr: &Expr) -> Option<i128> {
    match &expr.kind {
        ExprKind::Const(Const::Int(number)) => Some(i128::from(*number)),
        ExprKind::Negative(of) => constant_whole(of)?.checked_neg(),
        ExprKind::Arithmetic { left, op, right } => {
            let (left, right) = (constant_whole(left)?, constant_whole(right)?);
            match op {
                Operator::Add => left.checked_add(right),
                Operator::Sub => left.checked_sub(right),
                Operator::Mul => left.checked_mul(right),
                Operator::Pow => left.checked_pow(u32::try_from(right).ok()?),
                Operator::Div | Operator::FloorDiv | Operator::Rem => None,
            }
        }
        _ => None,
    }
}

/// Whether a power of whole numbers that are written out is beyond 128 bits, or divides by zero.
fn has_no_power(left: &Expr, right: &Expr) -> bool {
    let whole = |expr| super::call::parse_whole(expr).filter(|_| !has_fraction(expr));
    let (Some(base), Some(power)) = (whole(left), whole(right)) else { return false };
    let fits = |power| i128::from(base).checked_pow(power).is_some();
    if power < 0 { base == 0 } else { !u32::try_from(power).is_ok_and(fits) }
}

/// Whether a number is written with a fraction.
fn has_fraction(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Negative(of) => has_fraction(of),
        kind => matches!(kind, ExprKind::Const(Const::Float(_))),
    }
}

/// What an operator makes of two values; none where it makes nothing.
fn arithmetic_type((left, one): (&Expr, &Kind), op: Operator, (right, other): (&Expr, &Kind)) -> Option<Type> {
    let (of_one, of_other) = match (one.class(), other.class()) {
        (Some(one), Some(other)) => (one, other),
        // What is known of one side alone must still be of some use.
        (Some(class), None) | (None, Some(class)) => return is_usable(class, op).then_some(Type::ANY),
        (None, None) => return Some(Type::ANY),
    };
    let numbers = Classes::NUMBER.union(Classes::BOOL);
    let are = |classes: Classes| classes.has(of_one) && classes.has(of_other);
    let form = |kind: &Kind| matches!(kind, Kind::Tuple(tuple) if tuple.form == Form::Tuple);
    match op {
        Operator::Div if are(numbers) => Some(Type::FLOAT),
        // A negative power gives a fraction, and one that is not known may be negative.
        Operator::Pow if are(numbers) && super::call::parse_whole(right).is_none_or(|power| power < 0) => {
            Some(Type::FLOAT)
        }
        _ if are(numbers) => {
            Some(if of_one == Classes::FLOAT || of_other == Classes::FLOAT { Type::FLOAT } else { Type::INT })
        }
        Operator::Add if are(Classes::TEXT) => Some(Type::STRING),
        Operator::Add if are(Classes::SEQUENCE) && form(one) == form(other) => {
            let item = one.item_type().unwrap_or(Type::ANY).or(other.item_type().unwrap_or(Type::ANY));
            let item = if is_empty(one) {
                other.item_type()
            } else if is_empty(other) {
                one.item_type()
            } else {
                Some(item)
            };
            Some(Type::iter(item.unwrap_or(Type::ANY), !are(Classes::STREAM) && is_sized(one) && is_sized(other)))
        }
        Operator::Mul => {
            repetition_type((left, one), (right, other)).or_else(|| repetition_type((right, other), (left, one)))
        }
        _ => None,
    }
}

/// A text or a list so many times.
fn repetition_type((_, of): (&Expr, &Kind), (count, times): (&Expr, &Kind)) -> Option<Type> {
    let whole = super::call::parse_whole(count);
    let is_count = whole.map_or(Classes::INT.union(Classes::BOOL).has(times.class()?), |count| count >= 0);
    match of {
        _ if !is_count => None,
        of if of.is_text() => Some(Type::STRING),
        of if is_sized(of) => Some(Type::iter(of.item_type()?, true)),
        _ => None,
    }
}

/// Whether a value of these classes can stand on one side of an operator.
fn is_usable(class: Classes, op: Operator) -> bool {
    let numbers = Classes::NUMBER.union(Classes::BOOL);
    match op {
        Operator::Add | Operator::Mul => numbers.union(Classes::TEXT).union(Classes::SEQUENCE).has(class),
        _ => numbers.has(class),
    }
}

fn is_sized(kind: &Kind) -> bool {
    !matches!(kind, Kind::Iter { sized: false, .. })
}

fn is_empty(kind: &Kind) -> bool {
    matches!(kind, Kind::Tuple(tuple) if tuple.items.is_empty())
}
