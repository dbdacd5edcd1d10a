//! What divides: whether a divisor is certainly not zero.
//!
//! In: an expression, and what the conditions around it prove. Two parts of one text that are written alike have the same
//! value there, so a number is known by the way it is written.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use super::Root;
use super::constant::constant_number;
use super::fact::{Fact, Reading, infer_outcomes, merge_facts};
use super::path::Path;
use super::tree::{Argument, Comparison, Const, Expr, ExprKind, Operator, is_default};

/// The divisors of one text that are kept.
const MAX_DIVISORS: usize = 32;

/// The longest spelling that is kept; a real divisor is a name or two.
const LONGEST: usize = 200;

/// Where a text or a condition may have no value although what it reads is there.
#[derive(Debug, Default)]
pub(crate) struct Risks {
    /// Whether something in it may have none, whatever holds around it, as the number of a text that may hold none.
    pub(crate) certain: bool,
    /// What it divides by that may be zero.
    pub(crate) divisors: Vec<Divisor>,
}

impl Risks {
    /// Adds a divisor that may be zero.
    pub(super) fn add_divisor(&mut self, divisor: &Expr, always: bool) {
        match Divisor::new(divisor, always) {
            Some(known) if self.divisors.len() < MAX_DIVISORS => self.divisors.push(known),
            _ => self.certain = true,
        }
    }

    /// Whether it may have no value where these facts hold.
    pub(crate) fn remain(&self, facts: &[Fact]) -> bool {
        let is_zero = |divisor: &Divisor| !facts.contains(&Fact::NonZero(divisor.spelling.clone()));
        self.certain || self.divisors.iter().any(is_zero)
    }
}

/// A divisor that may be zero, as far as its own text tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Divisor {
    /// How it is spelt, as in [`Fact::NonZero`].
    pub(crate) spelling: Arc<str>,
    /// Its place.
    pub(crate) range: Range<usize>,
    /// The parameter that it is.
    pub(crate) param: Option<String>,
    /// Whether it is the place of the item, which is zero for the first one.
    pub(crate) is_index: bool,
    /// Whether the text always divides by it.
    pub(crate) always: bool,
}

impl Divisor {
    /// None for one that has no short spelling, or is bound by the text.
    fn new(expr: &Expr, always: bool) -> Option<Divisor> {
        let spelling = spell_number(expr).filter(|spelling| !is_bound(spelling))?;
        let param = expr.as_path().filter(|path| path.root == Root::Param && path.fields().is_empty());
        let param = param.and_then(Path::name).map(str::to_owned);
        let is_index = expr.as_path().is_some_and(|path| path.root == Root::Index);
        Some(Divisor { spelling, range: expr.range.clone(), param, is_index, always })
    }
}

/// Whether only the run knows the number: it may be zero, or a text. Rounds count from 1.
pub(super) fn is_computed(expr: &Expr) -> bool {
    let is_round = expr.as_path().is_some_and(|path| path.root == Root::Iteration);
    !is_round && constant_number(expr).is_none()
}

/// Whether a filter may fail for a value of a kind that it takes.
pub(super) fn may_filter_fail(of: Option<&Expr>, name: &str, arguments: &[Argument]) -> bool {
    match name {
        // A text may hold no number.
        "int" | "float" => arguments.is_empty() && of.is_none_or(is_computed),
        "map" => {
            matches!(arguments, [name] if matches!(name.value.as_text(), Some("int" | "float")))
        }
        // Nothing comes in parts of zero.
        "batch" | "slice" => arguments.iter().any(|argument| is_computed(&argument.value)),
        // The text says how many values it takes.
        "format" => of.is_none_or(|of| of.as_text().is_none()),
        // No line is indented by less than nothing.
        "indent" => {
            arguments.iter().any(|argument| is_computed(&argument.value) && argument.value.as_length().is_none())
        }
        _ => false,
    }
}

/// Whether a number is not zero where these facts hold. As deep as the expression is.
pub(super) fn is_nonzero(expr: &Expr, facts: &[Fact]) -> bool {
    let proved = |expr: &Expr| {
        let spelling = spell_number(expr);
        spelling.is_some_and(|spelling| facts.iter().any(|fact| matches!(fact, Fact::NonZero(of) if *of == spelling)))
    };
    if least_number(expr).is_some_and(|least| least > 0.0) || constant_number(expr).is_some_and(|number| number != 0.0)
    {
        return true;
    }
    match &expr.kind {
        ExprKind::Negative(of) => is_nonzero(of, facts),
        ExprKind::Arithmetic { left, op: Operator::Mul, right } => {
            proved(expr) || is_nonzero(left, facts) && is_nonzero(right, facts)
        }
        ExprKind::Choice { condition, then, otherwise: Some(otherwise) } => {
            let outcomes = infer_outcomes(condition, Reading::Outcome);
            let narrowed = |more: Vec<Fact>| {
                let mut all = facts.to_vec();
                merge_facts(&mut all, more);
                all
            };
            is_nonzero(then, &narrowed(outcomes.yes)) && is_nonzero(otherwise, &narrowed(outcomes.no))
        }
        // Where none before it holds, it is the last one.
        ExprKind::Or(terms) => terms.last().is_some_and(|last| is_nonzero(last, facts)),
        ExprKind::Filter { of: Some(of), name, arguments } => match (name.value.as_str(), arguments.as_slice()) {
            ("abs" | "float", []) => proved(expr) || is_nonzero(of, facts),
            (name, [default]) if is_default(name) => is_nonzero(of, facts) && is_nonzero(&default.value, facts),
            (name, [default, also_empty]) if is_default(name) => {
                let also_empty = matches!(&also_empty.value.kind, ExprKind::Const(constant) if constant.is_true());
                is_nonzero(&default.value, facts) && (also_empty || is_nonzero(of, facts))
            }
            _ => proved(expr),
        },
        _ => proved(expr),
    }
}

/// The least that a number can be.
fn least_number(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        ExprKind::Path(path) if path.root == Root::Iteration => Some(1.0),
        ExprKind::Path(path) if path.root == Root::Index => Some(0.0),
        ExprKind::Attribute { of, name } if matches!(&of.kind, ExprKind::Variable(of) if of == "loop") => {
            match name.value.as_str() {
                "index" | "length" | "revindex" | "depth" => Some(1.0),
                "index0" | "revindex0" | "depth0" => Some(0.0),
                _ => None,
            }
        }
        ExprKind::Arithmetic { left, op: Operator::Add, right } => Some(least_number(left)? + least_number(right)?),
        ExprKind::Arithmetic { left, op: Operator::Mul, right } => {
            let (left, right) = (least_number(left)?, least_number(right)?);
            (left >= 0.0 && right >= 0.0).then_some(left * right)
        }
        ExprKind::Filter { of: Some(of), name, arguments } => match (name.value.as_str(), &of.kind) {
            ("length" | "count", _) => Some(0.0),
            ("max", ExprKind::List(items)) if arguments.is_empty() => {
                items.iter().filter_map(least_number).reduce(f64::max)
            }
            _ => None,
        },
        _ => constant_number(expr),
    }
}

/// What a condition says of numbers where it came out like this: those that are not zero.
pub(super) fn nonzero_facts(expr: &Expr, truth: bool) -> Vec<Fact> {
    match &expr.kind {
        ExprKind::Compare { left, op, right } => compared_facts(*op, [left, right], truth),
        ExprKind::Chain { first, rest } if truth => {
            let (mut facts, mut left) = (Vec::new(), &**first);
            for (op, right) in rest {
                merge_facts(&mut facts, compared_facts(*op, [left, right], true));
                left = right;
            }
            facts
        }
        ExprKind::Filter { of: Some(of), name, arguments } if is_default(&name.value) => {
            let default = arguments.first().map(|argument| &argument.value.kind);
            match default {
                None => nonzero_facts(of, truth),
                Some(ExprKind::Const(constant)) if !constant.is_true() => nonzero_facts(of, truth),
                Some(_) => Vec::new(),
            }
        }
        ExprKind::Path(_)
        | ExprKind::Variable(_)
        | ExprKind::Attribute { .. }
        | ExprKind::Item { .. }
        | ExprKind::Filter { .. }
        | ExprKind::Arithmetic { .. }
            if truth =>
        {
            // A number holds that is not zero, and a text or a list that has something.
            [Some(expr).and_then(spell_number), spell_length(expr)].into_iter().flatten().map(Fact::NonZero).collect()
        }
        _ => Vec::new(),
    }
}

fn compared_facts(op: Comparison, [left, right]: [&Expr; 2], truth: bool) -> Vec<Fact> {
    let (op, of, number) = match (constant_number(left), constant_number(right)) {
        (None, Some(number)) => (op, left, number),
        (Some(number), None) => (op.swap_sides(), right, number),
        _ => {
            let is_empty = match &right.kind {
                ExprKind::List(items) => items.is_empty(),
                ExprKind::Const(Const::Text(text)) => text.is_empty(),
                _ => false,
            };
            let nonzero = match op {
                Comparison::Eq if !truth && is_empty => spell_length(left),
                Comparison::Ne if truth && is_empty => spell_length(left),
                Comparison::In => right.as_items().and_then(|items| {
                    let is_zero = |item: &Expr| constant_number(item).map(|number| number == 0.0);
                    let zeros: Vec<_> = items.iter().map(is_zero).collect();
                    let excluded = match truth {
                        true => zeros.iter().all(|zero| *zero == Some(false)),
                        false => zeros.contains(&Some(true)),
                    };
                    spell_number(left).filter(|_| excluded)
                }),
                _ => None,
            };
            return nonzero.map(Fact::NonZero).into_iter().collect();
        }
    };
    let excluded = match (op, truth) {
        (Comparison::Eq, true) | (Comparison::Ne, false) => number != 0.0,
        (Comparison::Ne, true) | (Comparison::Eq, false) => number == 0.0,
        (Comparison::Gt, true) | (Comparison::Lte, false) => number >= 0.0,
        (Comparison::Gte, true) | (Comparison::Lt, false) => number > 0.0,
        (Comparison::Lt, true) | (Comparison::Gte, false) => number <= 0.0,
        (Comparison::Lte, true) | (Comparison::Gt, false) => number < 0.0,
        (Comparison::In | Comparison::NotIn, _) => false,
    };
    spell_number(of).filter(|_| excluded).map(Fact::NonZero).into_iter().collect()
}

/// Whether a fact is about what the text binds, which may be bound anew.
pub(super) fn is_about_bound(fact: &Fact) -> bool {
    matches!(fact, Fact::NonZero(spelling) if is_bound(spelling))
}

fn is_bound(spelling: &str) -> bool {
    spelling.contains('$')
}

/// A number in one spelling; none where that is long, or depends on more than names and numbers.
fn spell_number(expr: &Expr) -> Option<Arc<str>> {
    let mut spelt = String::new();
    write_spelling(expr, &mut spelt)?;
    Some(spelt.into())
}

/// The number of the items of something, in one spelling.
fn spell_length(of: &Expr) -> Option<Arc<str>> {
    Some(format!("{}|length", spell_number(of)?).into())
}

fn write_spelling(expr: &Expr, spelt: &mut String) -> Option<()> {
    match &expr.kind {
        ExprKind::Const(Const::Int(number)) => write!(spelt, "{number}").ok()?,
        ExprKind::Const(Const::Float(number)) => write!(spelt, "{number}").ok()?,
        ExprKind::Const(Const::Text(text)) if text.len() < LONGEST => write!(spelt, "{text:?}").ok()?,
        ExprKind::Path(path) => {
            spelt.push_str(path.root.as_str());
            for segment in &path.segments {
                spelt.push('.');
                spelt.push_str(&segment.text.replace('-', "_"));
            }
        }
        ExprKind::Variable(name) => write!(spelt, "${name}").ok()?,
        ExprKind::Attribute { of, name } => {
            write_spelling(of, spelt)?;
            write!(spelt, ".{}", name.value).ok()?;
        }
        ExprKind::Item { of, index } => {
            write_spelling(of, spelt)?;
            spelt.push('[');
            write_spelling(index, spelt)?;
            spelt.push(']');
        }
        ExprKind::Arithmetic { left, op, right } => {
            spelt.push('(');
            write_spelling(left, spelt)?;
            write!(spelt, " {op:?} ").ok()?;
            write_spelling(right, spelt)?;
            spelt.push(')');
        }
        ExprKind::Filter { of: Some(of), name, arguments } => {
            write_spelling(of, spelt)?;
            spelt.push('|');
            spelt.push_str(if name.value == "count" { "length" } else { &name.value });
            for argument in arguments {
                write!(spelt, "({}", argument.name.as_deref().unwrap_or_default()).ok()?;
                write_spelling(&argument.value, spelt)?;
                spelt.push(')');
            }
        }
        _ => return None,
    }
    (spelt.len() <= LONGEST).then_some(())
}
