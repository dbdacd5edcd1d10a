//! Conditions as formulas.
//!
//! An expression and its reader go in, a formula comes out that holds where the expression does. What cannot be told of
//! a part is a variable of its own, the same wherever the part is spelt the same: `x` and `not x` exclude each other
//! whatever `x` is.

use std::fmt::Write as _;
use std::ops::Range;

use super::Flow;
use super::diagram::{ALWAYS, Formula, NEVER, Sized, Variable, negate_formula};
use super::values::{self, Class, Key, Kind, Of, as_constant, unwrap_default};
use crate::template::{Comparison, Const, Expr, ExprKind, Path, Root, Status, is_default, same_name};

/// The classes of a value, and the variable that says which it is of.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) variable: Variable,
    pub(super) classes: Vec<Class>,
}

impl Flow<'_, '_> {
    /// Holds where the expression does, as this step reads it; without a step, as the end of a round does.
    pub(super) fn condition_formula(&mut self, reader: Option<usize>, expr: &Expr) -> Sized {
        match &expr.kind {
            ExprKind::Const(constant) => Ok(if constant.is_true() { ALWAYS } else { NEVER }),
            ExprKind::Not(of) => Ok(negate_formula(self.condition_formula(reader, of)?)),
            ExprKind::And(terms) => {
                let mut all = ALWAYS;
                for term in terms {
                    let term = self.condition_formula(reader, term)?;
                    all = self.diagram.and(all, term)?;
                }
                Ok(all)
            }
            ExprKind::Or(terms) => {
                let mut any = NEVER;
                for term in terms {
                    let term = self.condition_formula(reader, term)?;
                    any = self.diagram.or(any, term)?;
                }
                Ok(any)
            }
            ExprKind::Choice { condition, then, otherwise: Some(otherwise) } => {
                let condition = self.condition_formula(reader, condition)?;
                let (then, otherwise) =
                    (self.condition_formula(reader, then)?, self.condition_formula(reader, otherwise)?);
                self.if_then_else(condition, then, otherwise)
            }
            ExprKind::Compare { left, op, right } => self.comparison_formula(reader, expr, left, *op, right),
            ExprKind::Test { of, name, .. } if matches!(name.value.as_str(), "defined" | "undefined") => {
                let Some(key) = self.expression_key(reader, of) else { return Ok(self.opaque_atom(reader, expr)) };
                let present = self.presence_formula(reader, &key)?;
                Ok(if name.value == "defined" { present } else { negate_formula(present) })
            }
            ExprKind::Path(_) => {
                let Some(key) = self.expression_key(reader, expr) else { return Ok(self.opaque_atom(reader, expr)) };
                let value = self.intern_value(reader, key);
                Ok(self.diagram.literal(value.variable, |class| values::is_true(&value.classes[class])))
            }
            ExprKind::Filter { .. } => match self.or_default(reader, expr) {
                Some((key, default)) => {
                    let present = self.presence_formula(reader, &key)?;
                    let value = self.intern_value(reader, key);
                    let own = self.diagram.literal(value.variable, |class| values::is_true(&value.classes[class]));
                    self.if_then_else(present, own, if default.is_true() { ALWAYS } else { NEVER })
                }
                None => Ok(self.opaque_atom(reader, expr)),
            },
            _ => Ok(self.opaque_atom(reader, expr)),
        }
    }

    /// Under which conditions the part of an expression at a place is reached; none where it holds no such part.
    pub(super) fn reach_in_expression(
        &mut self,
        reader: Option<usize>,
        expr: &Expr,
        wanted: &Range<usize>,
    ) -> Option<Sized> {
        if expr.range == *wanted {
            return Some(Ok(ALWAYS));
        }
        if let Some((of, default)) = split_default(expr)
            && is_handed_on(default, wanted)
        {
            let inside = self.reach_in_expression(reader, default, wanted)?;
            return Some(inside.and_then(|inside| {
                let there = self.defined_formula(reader, of)?;
                self.diagram.and_not(inside, there)
            }));
        }
        let steps: Vec<(&Expr, Vec<(&Expr, bool)>)> = match &expr.kind {
            ExprKind::And(terms) => terms_before(terms, true),
            ExprKind::Or(terms) => terms_before(terms, false),
            ExprKind::Choice { condition, then, otherwise } => {
                let otherwise = otherwise.iter().map(|otherwise| (&**otherwise, vec![(&**condition, false)]));
                [(&**condition, Vec::new()), (&**then, vec![(&**condition, true)])]
                    .into_iter()
                    .chain(otherwise)
                    .collect()
            }
            _ => expr.child_expressions().into_iter().map(|part| (part, Vec::new())).collect(),
        };
        for (part, conditions) in steps {
            if let Some(inside) = self.reach_in_expression(reader, part, wanted) {
                return Some(inside.and_then(|inside| {
                    let mut all = inside;
                    for (condition, truth) in conditions {
                        let condition = self.condition_formula(reader, condition)?;
                        all = if truth {
                            self.diagram.and(all, condition)
                        } else {
                            self.diagram.and_not(all, condition)
                        }?;
                    }
                    Ok(all)
                }));
            }
        }
        None
    }

    /// Holds where something is certainly there of which a default stands behind.
    fn defined_formula(&mut self, reader: Option<usize>, expr: &Expr) -> Sized {
        if let Some((of, default)) = split_default(expr) {
            let (of, default) = (self.defined_formula(reader, of)?, self.defined_formula(reader, default)?);
            return self.diagram.or(of, default);
        }
        match self.expression_key(reader, expr) {
            Some(key) => self.presence_formula(reader, &key),
            None => Ok(NEVER),
        }
    }

    /// `then` where the condition holds, `otherwise` where it does not.
    pub(super) fn if_then_else(&mut self, condition: Formula, then: Formula, otherwise: Formula) -> Sized {
        let then = self.diagram.and(condition, then)?;
        let otherwise = self.diagram.and_not(otherwise, condition)?;
        self.diagram.or(then, otherwise)
    }

    fn comparison_formula(
        &mut self,
        reader: Option<usize>,
        whole: &Expr,
        left: &Expr,
        op: Comparison,
        right: &Expr,
    ) -> Sized {
        if op == Comparison::In {
            let Some(items) = right.as_items() else { return Ok(self.opaque_atom(reader, whole)) };
            let mut any = NEVER;
            for item in items {
                let equal = self.comparison_formula(reader, whole, left, Comparison::Eq, item)?;
                any = self.diagram.or(any, equal)?;
            }
            return Ok(any);
        }
        match (as_constant(left), as_constant(right)) {
            (None, Some(right)) => self.compare_constant(reader, left, op, right),
            (Some(left), None) => self.compare_constant(reader, right, op.swap_sides(), left),
            _ => {
                // Equality is spelt one way.
                let (name, opposite) = if op == Comparison::Ne { (Comparison::Eq, true) } else { (op, false) };
                let (mut a, mut b) = (self.spell_expression(reader, left), self.spell_expression(reader, right));
                if name == Comparison::Eq && a > b {
                    std::mem::swap(&mut a, &mut b);
                }
                let atom = self.make_atom(reader, format!("{name:?} {a} {b}"));
                Ok(if opposite { negate_formula(atom) } else { atom })
            }
        }
    }

    fn compare_constant(&mut self, reader: Option<usize>, of: &Expr, op: Comparison, with: &Const) -> Sized {
        if let Some(path) = path_of(of, Root::Status)
            && let Some(step) = path.name().and_then(|name| self.find_step(name))
        {
            return self.status_compared(reader, step, op, with);
        }
        if let Some((key, default)) = self.or_default(reader, of) {
            let present = self.presence_formula(reader, &key)?;
            let own = self.value_compared(reader, key, op, with)?;
            let other = match values::compare_class(&constant_class(&default), op, with) {
                Some(true) => ALWAYS,
                Some(false) => NEVER,
                None => self.make_atom(reader, format!("{op:?} {default:?} {with:?}")),
            };
            return self.if_then_else(present, own, other);
        }
        match self.expression_key(reader, of) {
            Some(key) => self.value_compared(reader, key, op, with),
            None => {
                let of = self.spell_expression(reader, of);
                let (name, opposite) = normalize_comparison(op);
                let atom = self.make_atom(reader, format!("{name:?} {of} {with:?}"));
                Ok(if opposite { negate_formula(atom) } else { atom })
            }
        }
    }

    fn status_compared(&mut self, reader: Option<usize>, step: usize, op: Comparison, with: &Const) -> Sized {
        // A status is a text, and equals nothing else.
        let Const::Text(word) = with else { return Ok(if op == Comparison::Ne { ALWAYS } else { NEVER }) };
        let ends = self.ends_for_reader(reader, step)?;
        let is = match Status::ALL.into_iter().find(|status| status.as_str() == word) {
            Some(Status::Succeeded) => ends.succeeded,
            Some(Status::Failed) => ends.failed,
            Some(Status::Skipped) => negate_formula(self.diagram.or(ends.succeeded, ends.failed)?),
            None => NEVER,
        };
        Ok(match op {
            Comparison::Eq => is,
            Comparison::Ne => negate_formula(is),
            _ => self.make_atom(reader, format!("{op:?} status {step} {word:?}")),
        })
    }

    fn value_compared(&mut self, reader: Option<usize>, key: Key, op: Comparison, with: &Const) -> Sized {
        // Only a step that succeeded is sure to have the code 0.
        if key.root == Root::Exit
            && let Of::Step(step) = key.of
            && let (Comparison::Eq | Comparison::Ne, Const::Int(0)) = (op, with)
        {
            let succeeded = self.ends_for_reader(reader, step)?.succeeded;
            let other = self.make_atom(reader, format!("exit {step} 0"));
            let zero = self.diagram.or(succeeded, other)?;
            return Ok(if op == Comparison::Eq { zero } else { negate_formula(zero) });
        }
        let spelt = format!("{key:?}");
        let value = self.intern_value(reader, key);
        let listed = value.classes.iter().any(|class| values::compare_class(class, Comparison::Eq, with) == Some(true));
        let truths: Vec<Option<bool>> = value
            .classes
            .iter()
            .map(|class| {
                values::compare_class(class, op, with).or(match op {
                    // A listed value has a class of its own, so that no other class equals it.
                    Comparison::Eq if listed => Some(false),
                    Comparison::Ne if listed => Some(true),
                    _ => None,
                })
            })
            .collect();
        // A word that is none of an enum's is for the types to report.
        let foreign =
            !listed && truths.iter().all(|truth| truth.is_some()) && matches!(op, Comparison::Eq | Comparison::Ne);
        let certain = self.diagram.literal(value.variable, |class| !foreign && truths[class] == Some(true));
        if !foreign && truths.iter().all(Option::is_some) {
            return Ok(certain);
        }
        let open = self.diagram.literal(value.variable, |class| foreign || truths[class].is_none());
        let (name, opposite) = normalize_comparison(op);
        let atom = self.make_atom(reader, format!("{name:?} {spelt} {with:?}"));
        let atom = if opposite { negate_formula(atom) } else { atom };
        let open = self.diagram.and(open, atom)?;
        self.diagram.or(certain, open)
    }

    /// `path | default(constant)`.
    fn or_default(&self, reader: Option<usize>, expr: &Expr) -> Option<(Key, Const)> {
        let ExprKind::Filter { arguments, .. } = &expr.kind else { return None };
        let of = unwrap_default(expr);
        let default = match arguments.as_slice() {
            [] => Const::Text(String::new()),
            [argument] if !argument.spread && argument.name.is_none() => as_constant(&argument.value)?.clone(),
            // With a second argument, the default stands for an empty value as well.
            _ => return None,
        };
        // `unwrap_default` gives back what is no `default` filter.
        (!std::ptr::eq(of, expr)).then(|| self.expression_key(reader, of)).flatten().map(|key| (key, default))
    }

    /// The variable of a part about which nothing is known.
    fn opaque_atom(&mut self, reader: Option<usize>, expr: &Expr) -> Formula {
        let spelt = self.spell_expression(reader, expr);
        self.make_atom(reader, spelt)
    }

    pub(super) fn make_atom(&mut self, reader: Option<usize>, spelt: String) -> Formula {
        let known = self.atoms.get(&spelt).copied();
        let variable = known.unwrap_or_else(|| {
            let rank = self.rank_before(reader);
            let variable = self.fresh_variable(rank, 2);
            self.atoms.insert(spelt, variable);
            variable
        });
        self.diagram.literal(variable, |value| value == 0)
    }

    /// What a value can be, as far as conditions tell it apart.
    pub(super) fn intern_value(&mut self, reader: Option<usize>, key: Key) -> Value {
        if let Some(known) = self.values.get(&key) {
            return known.clone();
        }
        let kind = self.value_kind(&key);
        let classes = self.vocabulary.classes(&key, &kind);
        let rank = match key.of {
            Of::Step(step) => self.rank_after(step),
            _ => self.rank_before(reader),
        };
        let value = Value { variable: self.fresh_variable(rank, classes.len()), classes };
        // A parameter may turn out either way in another run, so that none of its cases counts as left out.
        if matches!(key.of, Of::Step(_)) && matches!(kind, Kind::Bool | Kind::Enum(_)) {
            self.branching.insert(value.variable);
        }
        self.values.insert(key, value.clone());
        value
    }

    /// An expression in one spelling, each name resolved.
    fn spell_expression(&self, reader: Option<usize>, expr: &Expr) -> String {
        let mut spelt = String::new();
        self.write_spelling(reader, expr, &mut spelt);
        spelt
    }

    fn write_spelling(&self, reader: Option<usize>, expr: &Expr, spelt: &mut String) {
        if let Some(key) = self.expression_key(reader, expr) {
            let _ = write!(spelt, "{key:?}");
            return;
        }
        let _ = match &expr.kind {
            ExprKind::Const(constant) => write!(spelt, "{constant:?}"),
            ExprKind::Path(path) => {
                let segments: Vec<&str> = path.segments.iter().map(|segment| segment.text.as_str()).collect();
                // What such a name means depends on who reads it.
                write!(spelt, "{:?} {segments:?} {reader:?}", path.root)
            }
            // Two loops may give one name to different values: the place tells them apart.
            ExprKind::Variable(name) => write!(spelt, "{name} {reader:?} {:?}", expr.range),
            ExprKind::Attribute { name, .. } | ExprKind::Filter { name, .. } | ExprKind::Test { name, .. } => {
                write!(spelt, "{}", name.value)
            }
            ExprKind::Compare { op, .. } => write!(spelt, "{op:?}"),
            ExprKind::Chain { rest, .. } => write!(spelt, "{:?}", rest.iter().map(|(op, _)| *op).collect::<Vec<_>>()),
            ExprKind::Arithmetic { op, .. } => write!(spelt, "{op:?}"),
            ExprKind::Slice { bounds, .. } => write!(spelt, "{:?}", bounds.each_ref().map(Option::is_some)),
            ExprKind::Item { .. } => write!(spelt, "item"),
            ExprKind::Not(_) => write!(spelt, "not"),
            ExprKind::Negative(_) => write!(spelt, "-"),
            ExprKind::And(_) => write!(spelt, "and"),
            ExprKind::Or(_) => write!(spelt, "or"),
            ExprKind::Concat(..) => write!(spelt, "~"),
            ExprKind::Choice { .. } => write!(spelt, "if"),
            ExprKind::Call { .. } => write!(spelt, "call"),
            ExprKind::List(_) => write!(spelt, "list"),
            ExprKind::Map(_) => write!(spelt, "map"),
        };
        spelt.push('(');
        for part in expr.child_expressions() {
            self.write_spelling(reader, part, spelt);
            spelt.push(',');
        }
        spelt.push(')');
    }

    /// The value that an expression names.
    pub(super) fn expression_key(&self, reader: Option<usize>, expr: &Expr) -> Option<Key> {
        let path = expr.as_path()?;
        let fields = path.fields().iter().map(|field| field.text.clone()).collect();
        let name = path.name();
        self.key_of(reader, path.root, name, fields)
    }

    pub(super) fn key_of(
        &self,
        reader: Option<usize>,
        root: Root,
        name: Option<&str>,
        fields: Vec<String>,
    ) -> Option<Key> {
        let round = || reader.and_then(|reader| self.pipeline.steps[reader].within);
        let (root, of) = match root {
            Root::Output | Root::Status | Root::Exit | Root::Error => {
                let step = self.find_step(name?)?;
                // What runs later can only be read of the round before.
                match reader.filter(|&reader| self.position[reader] < self.position[step]) {
                    Some(_) => (Root::Previous, Of::Round(round(), Some(step))),
                    None => (root, Of::Step(step)),
                }
            }
            Root::Log => {
                let step = self.find_step(name?)?;
                // Its own log, too, is of an attempt or a round before.
                let is_later = reader.is_some_and(|reader| self.position[reader] <= self.position[step]);
                (root, if is_later { Of::Round(round(), Some(step)) } else { Of::Step(step) })
            }
            Root::Input => {
                // A port is another name for the output behind it, so both share one variable.
                let step = &self.pipeline.steps[reader?];
                let port = step.inputs.iter().find(|(port, _)| name.is_some_and(|name| same_name(port, name)));
                (Root::Output, Of::Step(port?.1))
            }
            Root::Previous => (root, Of::Round(round(), Some(self.find_step(name?)?))),
            Root::Iteration => (root, Of::Round(round(), None)),
            Root::Param => (root, Of::Name(name?.replace('-', "_"))),
            Root::Stdin => (root, Of::Run),
            _ => (root, Of::Reader(reader, name.unwrap_or_default().to_owned())),
        };
        Some(Key { root, of, fields })
    }
}

/// The two sides of `of | default(default)`, where the default stands for nothing but what is missing.
fn split_default(expr: &Expr) -> Option<(&Expr, &Expr)> {
    match &expr.kind {
        ExprKind::Filter { of: Some(of), name, arguments } if is_default(&name.value) => match arguments.as_slice() {
            [default] if !default.spread => Some((of, &default.value)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a default does nothing with the value at this place but to give it: where the default is not used, it is no
/// matter that the value is missing.
fn is_handed_on(default: &Expr, wanted: &Range<usize>) -> bool {
    match split_default(default) {
        Some((_, default)) => is_handed_on(default, wanted),
        None => default.range == *wanted && default.is_bare_path(),
    }
}

/// The terms of a chain, each with those before it: they held, or they did not.
fn terms_before(terms: &[Expr], held: bool) -> Vec<(&Expr, Vec<(&Expr, bool)>)> {
    terms
        .iter()
        .enumerate()
        .map(|(index, term)| (term, terms[..index].iter().map(|before| (before, held)).collect()))
        .collect()
}

fn path_of(expr: &Expr, root: Root) -> Option<&Path> {
    expr.as_path().filter(|path| path.root == root && path.fields().is_empty())
}

fn constant_class(constant: &Const) -> Class {
    match constant {
        Const::None => Class::None,
        Const::Bool(truth) => Class::Bool(*truth),
        Const::Int(number) => Class::Number(*number as f64),
        Const::Float(number) => Class::Number(*number),
        Const::Text(text) => Class::Text(text.clone()),
    }
}

/// The comparison of which this is the same or, as the second says, the opposite.
fn normalize_comparison(op: Comparison) -> (Comparison, bool) {
    match op {
        Comparison::Ne => (Comparison::Eq, true),
        Comparison::Gte => (Comparison::Lt, true),
        Comparison::Gt => (Comparison::Lte, true),
        Comparison::NotIn => (Comparison::In, true),
        other => (other, false),
    }
}
