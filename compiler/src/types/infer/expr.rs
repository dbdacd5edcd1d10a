//! Infers the types of expressions.

use std::ops::Range;
use std::sync::Arc;

use super::super::{Classes, Env, Field, Form, Kind, Lack, Record, Type};
use super::{Checker, Need, Notation};
use crate::source::Span;
use crate::template::{Const, Expr, ExprKind, Path, Root};

/// The way from a value to its fields.
pub(super) struct Walk {
    /// The type of where it has got to.
    pub(super) kind: Type,
    /// The key of that place, if it has one.
    pub(super) key: Option<String>,
    /// Where the way starts in the text.
    pub(super) start: usize,
    /// The last name on the way.
    pub(super) place: Range<usize>,
    /// The root and name, as long as no field was taken.
    pub(super) root: Option<(Root, Option<String>)>,
    /// Where the last field is declared.
    pub(super) declared: Option<Span>,
    /// Where a gate declares the default that leaves the field empty.
    pub(super) unanswered: Option<Span>,
    /// How many items there are at least.
    least: u64,
    /// Whether it starts from an item of the written value.
    pub(super) of_item: bool,
    /// A kind that the value before may have, which has no such field.
    pub(super) without: Option<Kind>,
    pub(super) notation: Notation,
}

impl Walk {
    /// From a root, in a directive.
    pub(super) fn from_root(env: &Env<'_>, root: Root, name: Option<&str>, place: Range<usize>) -> Walk {
        Walk {
            kind: env.root_type(root, name),
            key: Some(root_key(root, name)),
            start: place.start,
            place,
            root: Some((root, name.map(str::to_owned))),
            declared: None,
            unanswered: None,
            least: 0,
            of_item: false,
            without: None,
            notation: Notation::Directive,
        }
    }

    /// From an item of a list.
    pub(super) fn from_item(kind: Type, list: Range<usize>) -> Walk {
        Walk { of_item: true, ..Walk::from_value(kind, None, list) }
    }

    fn from_value(kind: Type, key: Option<String>, place: Range<usize>) -> Walk {
        let start = place.start;
        Walk {
            kind,
            key,
            start,
            place,
            root: None,
            declared: None,
            unanswered: None,
            least: 0,
            of_item: false,
            without: None,
            notation: Notation::Expression,
        }
    }
}

/// The key of a root and its name.
pub(super) fn root_key(root: Root, name: Option<&str>) -> String {
    let mut key = root.as_str().to_owned();
    if let Some(name) = name {
        key.push('.');
        key.push_str(&super::super::env::normalize_name(name));
    }
    key
}

impl Checker<'_> {
    /// The type of an expression whose value is needed.
    pub(crate) fn type_of(&mut self, expr: &Expr) -> Type {
        self.infer_operand(expr, Need::Value)
    }

    /// Types a condition. Its value may be `null`, which counts as false.
    pub(crate) fn check_truth(&mut self, condition: &Expr) {
        self.infer_operand(condition, Need::Present);
    }

    pub(super) fn infer_operand(&mut self, expr: &Expr, need: Need) -> Type {
        match &expr.kind {
            ExprKind::Const(constant) => Type::new(match constant {
                Const::None => Kind::None,
                Const::Bool(_) => Kind::Bool,
                Const::Int(_) => Kind::Int,
                Const::Float(_) => Kind::Float,
                Const::Text(_) => Kind::String,
            }),
            ExprKind::Path(path) => self.infer_path(path, expr, need),
            ExprKind::Variable(name) => {
                let kind = self.find_binding(name).map_or(Type::ANY, |(kind, _)| kind.clone());
                self.finish_walk(Walk::from_value(kind, self.place_key(expr), expr.range.clone()), need)
            }
            ExprKind::Attribute { of, name } => {
                if let Some(kind) = self.of_loop(of, &name.value) {
                    return self.infer_result(kind, expr, need);
                }
                let mut walk = self.start_walk(of);
                self.walk_field(&mut walk, &name.value, None, &name.range);
                self.finish_walk(walk, need)
            }
            ExprKind::Item { of, index } => {
                // A default stands in for all of a path that is written out.
                let mut walk = match need {
                    Need::Nothing if of.as_path().is_some() => self.start_walk_with(of, Need::Nothing),
                    _ => self.start_walk(of),
                };
                walk.least = u64::from(self.is_filled(Some(of)));
                match &index.kind {
                    ExprKind::Const(Const::Text(name)) => self.walk_field(&mut walk, name, None, &index.range),
                    ExprKind::Const(Const::Int(number)) => {
                        self.walk_field(&mut walk, &number.to_string(), Some(*number), &index.range);
                    }
                    _ => self.walk_index(&mut walk, index),
                }
                self.finish_walk(walk, need)
            }
            ExprKind::Slice { of, bounds } => self.infer_slice(expr, of, bounds),
            ExprKind::Not(of) => {
                self.check_truth(of);
                Type::BOOL
            }
            ExprKind::Negative(of) => {
                let kind = self.type_of(of);
                match self.find_misfit(&kind, Classes::NUMBER) {
                    Some(found) => {
                        self.not_a_number_to_negate(of, &found);
                        Type::ANY
                    }
                    None => kind,
                }
            }
            ExprKind::And(terms) | ExprKind::Or(terms) => {
                let kind = self.infer_terms(terms, matches!(expr.kind, ExprKind::And(_)));
                self.infer_result(kind, expr, need)
            }
            ExprKind::Compare { left, op, right } => {
                self.check_comparison(expr, left, *op, right);
                Type::BOOL
            }
            ExprKind::Chain { first, rest } => {
                self.infer_operand(first, Need::Present);
                for (_, operand) in rest {
                    self.infer_operand(operand, Need::Present);
                }
                Type::BOOL
            }
            ExprKind::Arithmetic { left, op, right } => self.infer_arithmetic(expr, left, *op, right),
            ExprKind::Concat(left, right) => {
                self.infer_operand(left, Need::Present);
                self.infer_operand(right, Need::Present);
                Type::STRING
            }
            ExprKind::Choice { condition, then, otherwise } => {
                let asked = self.choices.enter_condition(condition);
                self.check_truth(condition);
                let mut kind = self.with_assumption(condition, true, |checker| checker.infer_operand(then, need));
                kind = match otherwise {
                    Some(otherwise) => kind
                        .or(self.with_assumption(condition, false, |checker| checker.infer_operand(otherwise, need))),
                    None => {
                        let lack = kind.lack.union(Lack::SILENT);
                        kind.with_lack(lack)
                    }
                };
                self.choices.leave_condition(asked);
                self.infer_result(kind, expr, need)
            }
            ExprKind::Filter { of, name, arguments } => self.infer_filter(expr, of.as_deref(), name, arguments, need),
            ExprKind::Test { of, name, arguments } => self.infer_test(of, name, arguments),
            ExprKind::Call { of, arguments } => self.infer_call(expr, of, arguments),
            ExprKind::List(items) => {
                let items = items.iter().map(|item| self.infer_operand(item, Need::Present)).collect();
                Type::tuple(items, Form::List)
            }
            ExprKind::Map(items) => self.written_map(items, expr),
        }
    }

    /// A map that is written out: a record where each of its keys is.
    fn written_map(&mut self, entries: &[(Expr, Expr)], whole: &Expr) -> Type {
        let mut fields: Vec<(String, Type)> = Vec::new();
        let mut computed = false;
        for (key, value) in entries {
            let of_key = self.type_of(key);
            if let Some(found) = self.find_misfit(&of_key, Classes::TEXT.union(Classes::INT).union(Classes::BOOL)) {
                self.wrong_key(key, &found);
            }
            let kind = self.infer_operand(value, Need::Present);
            computed |= key.as_text().is_none();
            let name = key.as_text().unwrap_or_default();
            // The last one of a name counts.
            fields.retain(|(known, _)| computed || known != name);
            fields.push((name.to_owned(), kind));
        }
        if computed {
            return Type::map(fields.into_iter().map(|(_, kind)| kind).reduce(Type::or).unwrap_or(Type::ANY));
        }
        self.written_record(fields, &whole.range)
    }

    /// A record that an expression writes out.
    pub(super) fn written_record(&self, fields: Vec<(String, Type)>, place: &Range<usize>) -> Type {
        let span = self.span(place);
        let kinds = fields.iter().map(|(_, kind)| kind.clone());
        let map = Type::map(kinds.reduce(Type::or).unwrap_or(Type::ANY));
        let fields = fields.into_iter().map(|(name, kind)| Field::new(&name, kind, span)).collect();
        let record = Record::from_fields(fields, span);
        if record.is_small() { Type::new(Kind::Record(Arc::new(record))) } else { map }
    }

    /// `of[start:stop:step]`.
    fn infer_slice(&mut self, whole: &Expr, of: &Expr, bounds: &[Option<Box<Expr>>; 3]) -> Type {
        let kind = self.type_of(of);
        for bound in bounds.iter().flatten() {
            let given = self.infer_operand(bound, Need::Present);
            let takes = Classes::INT.union(Classes::BOOL).union(Classes::NONE);
            if super::call::parse_whole(bound).is_none()
                && let Some(found) = self.find_misfit(&given, takes)
            {
                self.wrong_bound(bound, &found);
            }
        }
        if let Some(found) = self.find_misfit(&kind, Classes::SEQUENCE.union(Classes::TEXT)) {
            self.not_sliceable(of, &found);
            return Type::ANY;
        }
        match bounds[2].as_deref().and_then(|step| Some((step, super::call::parse_whole(step)?))) {
            Some((step, 0)) => self.zero_step(step),
            Some((_, step)) if step < 0 && (bounds[1].is_some() || !self.is_filled(Some(of))) => {
                self.sliced_backwards(whole, of);
            }
            _ => {}
        }
        let kinds = self.env.whole.types.possible_kinds(&kind.kind);
        let sliced = |kind: &Kind| match kind {
            kind if kind.is_text() => Type::STRING,
            Kind::Tuple(tuple) if tuple.form == Form::Tuple => Type::list(tuple.item()),
            kind => match kind.item_type() {
                Some(item) => Type::iter(item, !matches!(kind, Kind::Iter { sized: false, .. })),
                None => Type::ANY,
            },
        };
        kinds.iter().map(sliced).reduce(Type::or).unwrap_or(Type::ANY)
    }

    /// Runs `then` where a condition came out like this.
    pub(super) fn with_assumption(
        &mut self,
        condition: &Expr,
        truth: bool,
        then: impl FnOnce(&mut Self) -> Type,
    ) -> Type {
        let mark = self.presence.mark();
        let known = self.narrow_condition(condition, truth);
        self.presence.learn(known);
        let kind = then(self);
        self.presence.forget(mark);
        kind
    }

    /// Terms, each of which is reached when those before it came out like `truth`.
    fn infer_terms(&mut self, terms: &[Expr], truth: bool) -> Type {
        let mark = self.presence.mark();
        let mut kind: Option<Type> = None;
        for (index, term) in terms.iter().enumerate() {
            let mut own = self.infer_operand(term, Need::Present);
            // `a or b` is `a` only where that holds.
            if !truth && index + 1 < terms.len() {
                own = own.with_lack(Lack::NEVER);
            }
            kind = Some(match kind {
                Some(kind) => kind.or(own),
                None => own,
            });
            let known = self.narrow_condition(term, truth);
            self.presence.learn(known);
        }
        self.presence.forget(mark);
        kind.unwrap_or(Type::ANY)
    }

    fn infer_path(&mut self, path: &Path, expr: &Expr, need: Need) -> Type {
        let named = path.segments.len() - path.fields().len();
        if path.root.required_name().is_some() && named == 0 {
            return Type::ANY;
        }
        let bare = expr.range.start..expr.range.start + path.root.as_str().len();
        let place = path.segments[..named].last().map_or(bare, |segment| segment.range.clone());
        let mut fields = path.fields();
        let qualified =
            self.env.qualified_name(path.root, path.name(), fields.first().map(|field| field.text.as_str()));
        if qualified.is_some() {
            fields = &fields[1..];
        }
        let mut walk = Walk::from_root(self.env, path.root, qualified.as_deref().or(path.name()), place);
        walk.start = expr.range.start;
        walk.notation = Notation::Expression;
        // A default at its end stands in for all of it.
        let inner = if need == Need::Nothing { Need::Nothing } else { Need::Value };
        for field in fields {
            self.require_present(&mut walk, inner);
            self.walk_field(&mut walk, &field.text, field.index, &field.range);
        }
        self.finish_walk(walk, need)
    }

    /// A walk that starts from an expression's value.
    pub(super) fn start_walk(&mut self, of: &Expr) -> Walk {
        self.start_walk_with(of, Need::Value)
    }

    fn start_walk_with(&mut self, of: &Expr, need: Need) -> Walk {
        let kind = self.infer_operand(of, need);
        Walk::from_value(kind, self.place_key(of), of.range.clone())
    }

    /// What is computed, where so much of it must be there.
    pub(super) fn infer_result(&mut self, kind: Type, expr: &Expr, need: Need) -> Type {
        self.finish_walk(Walk::from_value(kind, None, expr.range.clone()), need)
    }

    fn finish_walk(&mut self, mut walk: Walk, need: Need) -> Type {
        self.require_present(&mut walk, need);
        walk.kind
    }

    /// Reports a value that may be missing where it is needed; afterwards it counts as there.
    pub(super) fn require_present(&mut self, walk: &mut Walk, need: Need) {
        let key = walk.key.clone();
        walk.kind = self.narrowed_at(walk.kind.clone(), key.as_deref());
        let (defined, holds) = match key.as_deref() {
            Some(key) => (self.presence.is_defined(key), self.presence.has_value(key)),
            None => (false, false),
        };
        // One report for a place is enough, though it may lack in several ways.
        let mut reported = false;
        for (lack, proved, needed) in [
            (Lack::ABSENT, defined, !need.may_lack()),
            (Lack::SILENT, defined, need == Need::Value),
            (Lack::NULL, holds, need == Need::Value),
        ] {
            if !walk.kind.lack.has(lack) {
                continue;
            }
            if needed && !proved && !reported {
                // The message is about this lack alone.
                let all = std::mem::replace(&mut walk.kind.lack, lack);
                self.may_be_missing(walk);
                walk.kind.lack = all;
                reported = true;
            }
            if needed || proved {
                walk.kind.lack = walk.kind.lack.without(lack);
            }
        }
    }

    /// Goes on to a field or an item.
    pub(super) fn walk_field(&mut self, walk: &mut Walk, name: &str, index: Option<i64>, range: &Range<usize>) {
        let at = walk.key.as_deref();
        let filled = walk.least.max(at.map_or(0, |key| self.presence.least_items(key)));
        let mut found: Option<Type> = None;
        let mut last = Part::default();
        let mut without = None;
        for kind in self.env.whole.types.possible_kinds(&walk.kind.kind) {
            let by_alias = walk.notation == Notation::Expression;
            match find_part(&kind, name, index, filled, by_alias) {
                Some(part) => {
                    found = Some(match found {
                        Some(kind) => kind.or(part.kind.clone()),
                        None => part.kind.clone(),
                    });
                    last = part;
                }
                None => without = without.or(Some(kind)),
            }
        }
        let kind = match (found, &without) {
            (Some(kind), None) => kind,
            // Of one kind it has none, and of another one it has.
            (Some(kind), Some(_)) => make_absent(&kind),
            (None, Some(kind)) => {
                self.no_part(walk, kind, name, index, range);
                Type::ANY
            }
            (None, None) => Type::ANY,
        };
        walk.without = without.filter(|_| kind.lack.has(Lack::ABSENT));
        walk.kind = kind;
        walk.least = last.least;
        walk.unanswered = last.unanswered;
        walk.declared = last.declared.filter(|_| walk.without.is_none());
        walk.of_item = false;
        walk.place = range.clone();
        walk.root = None;
        if let Some(key) = &mut walk.key {
            key.push('.');
            key.push_str(&super::super::env::normalize_name(name));
        }
    }

    fn no_part(&mut self, walk: &Walk, kind: &Kind, name: &str, index: Option<i64>, range: &Range<usize>) {
        match kind {
            Kind::Record(record) => self.no_such_field(walk, record, name, range),
            kind => self.has_no_fields(walk, kind, name, index, range),
        }
    }

    /// The type of a path or a variable, without a report.
    pub(super) fn peek_type(&self, expr: &Expr) -> Type {
        match &expr.kind {
            ExprKind::Path(path) => self.env.path_type(path),
            ExprKind::Variable(name) => self.find_binding(name).map_or(Type::ANY, |(kind, _)| kind.clone()),
            _ => Type::ANY,
        }
    }

    fn of_loop(&self, of: &Expr, name: &str) -> Option<Type> {
        if !matches!(&of.kind, ExprKind::Variable(variable) if variable == "loop") {
            return None;
        }
        let sized =
            self.find_binding("loop").is_none_or(|(kind, _)| !matches!(kind.kind, Kind::Iter { sized: false, .. }));
        Some(match name {
            "first" | "last" => Type::BOOL,
            "length" | "revindex" | "revindex0" if !sized => Type::INT.with_lack(Lack::ABSENT),
            "index" | "index0" | "revindex" | "revindex0" | "length" | "depth" | "depth0" => Type::INT,
            _ => Type::ANY,
        })
    }

    /// The item of what a `for` goes through, and whether it is known how many there are.
    pub(super) fn infer_iteration(&mut self, list: &Expr) -> (Type, bool) {
        // `null` has no items.
        let kind = self.infer_operand(list, Need::Present);
        let iterable = Classes::SEQUENCE.union(Classes::OBJECT).union(Classes::NONE);
        if let Some(found) = self.find_misfit(&kind, iterable) {
            self.not_a_list(list, &found);
            return (Type::ANY, true);
        }
        let kinds = self.env.whole.types.possible_kinds(&kind.kind);
        (self.item_of(&kind), !kinds.iter().any(|kind| matches!(kind, Kind::Iter { sized: false, .. })))
    }
}

/// A field or an item of a value.
struct Part {
    kind: Type,
    /// Where it is declared.
    declared: Option<Span>,
    /// Where a gate declares the default that leaves the field empty.
    unanswered: Option<Span>,
    /// How many items it has at least.
    least: u64,
}

impl Default for Part {
    fn default() -> Part {
        Part { kind: Type::ANY, declared: None, unanswered: None, least: 0 }
    }
}

/// The field or item of a value of this kind, which has so many items at least; none where values of the kind have none.
fn find_part(kind: &Kind, name: &str, index: Option<i64>, filled: u64, by_alias: bool) -> Option<Part> {
    let part = |kind: Type| Some(Part { kind, ..Part::default() });
    match kind {
        Kind::Any => part(Type::ANY),
        // What is set in a namespace is not known.
        Kind::Map(item) if **item == Type::ANY => part(Type::ANY),
        Kind::Map(item) => part(make_absent(item)),
        Kind::Tuple(tuple) if tuple.form == Form::Group && group_item(name, index).is_some() => {
            part(tuple.items.get(group_item(name, index)?)?.clone())
        }
        Kind::Tuple(tuple) => {
            part(item_at(&tuple.items, index?).cloned().unwrap_or_else(|| make_absent(&tuple.item())))
        }
        Kind::List(item) | Kind::Iter { item, .. } => {
            let number = index?;
            // From its end, an item is found only in a list whose length is known.
            let sized = number >= 0 || !matches!(kind, Kind::Iter { sized: false, .. });
            // Places count from 0 at the beginning, and from 1 at the end.
            let there = if number < 0 { number.unsigned_abs() <= filled } else { number.unsigned_abs() < filled };
            part(if there && sized { (**item).clone() } else { make_absent(item) })
        }
        Kind::Record(record) => {
            let field = record.find_field(name, by_alias)?;
            Some(Part {
                kind: field.kind.clone(),
                declared: Some(field.span).filter(|_| !record.written),
                unanswered: field.unanswered.as_ref().map(|choices| choices.span),
                least: field.limits.min.as_ref().and_then(serde_json::Number::as_u64).unwrap_or(0),
            })
        }
        _ => None,
    }
}

/// A part that may not be there.
pub(super) fn make_absent(item: &Type) -> Type {
    item.clone().with_lack(item.lack.union(Lack::ABSENT))
}

/// The place of a part of a group of `groupby`.
fn group_item(name: &str, index: Option<i64>) -> Option<usize> {
    match (index, name) {
        (Some(0), _) | (None, "grouper") => Some(0),
        (Some(1), _) | (None, "list") => Some(1),
        _ => None,
    }
}

/// The item at a place, from the end where that is negative.
fn item_at(items: &[Type], place: i64) -> Option<&Type> {
    let place = if place < 0 { place + i64::try_from(items.len()).ok()? } else { place };
    items.get(usize::try_from(place).ok()?)
}

/// Whether a number is written there.
pub(super) fn is_number(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Const(Const::Int(_) | Const::Float(_)))
}
