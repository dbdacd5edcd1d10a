//! The types of expressions.

use std::ops::Range;

use super::super::{Env, Kind, Lack, Type};
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
    /// Where it is said that nobody may fill it in.
    pub(super) unanswered: Option<Span>,
    /// How many items there are at least.
    least: u64,
    /// Whether it starts from an item of what is written there.
    pub(super) of_item: bool,
    pub(super) notation: Notation,
}

impl Walk {
    /// From a root, in a directive.
    pub(super) fn root(env: &Env<'_>, root: Root, name: Option<&str>, place: Range<usize>) -> Walk {
        Walk {
            kind: env.root(root, name),
            key: Some(root_key(root, name)),
            start: place.start,
            place,
            root: Some((root, name.map(str::to_owned))),
            declared: None,
            unanswered: None,
            least: 0,
            of_item: false,
            notation: Notation::Directive,
        }
    }

    /// From an item of a list.
    pub(super) fn item(kind: Type, list: Range<usize>) -> Walk {
        Walk { of_item: true, ..Walk::value(kind, None, list) }
    }

    fn value(kind: Type, key: Option<String>, place: Range<usize>) -> Walk {
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
            notation: Notation::Expression,
        }
    }
}

/// The key of a root and its name.
pub(super) fn root_key(root: Root, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{}.{}", root.word(), super::super::env::plain(name)),
        None => root.word().to_owned(),
    }
}

impl Checker<'_> {
    /// The type of an expression whose value is needed.
    pub(crate) fn type_of(&mut self, expr: &Expr) -> Type {
        self.operand(expr, Need::Value)
    }

    pub(super) fn operand(&mut self, expr: &Expr, need: Need) -> Type {
        match &expr.kind {
            ExprKind::Const(constant) => Type::new(match constant {
                Const::None => Kind::None,
                Const::Bool(_) => Kind::Bool,
                Const::Int(_) => Kind::Int,
                Const::Float(_) => Kind::Float,
                Const::Text(_) => Kind::String,
            }),
            ExprKind::Path(path) => self.path(path, expr, need),
            ExprKind::Variable(name) => {
                let kind = self.bound(name).map_or(Type::ANY, |(kind, _)| kind.clone());
                self.arrive(Walk::value(kind, self.key(expr), expr.range.clone()), need)
            }
            ExprKind::Attribute { of, name } => {
                if let Some(kind) = self.of_loop(of, &name.value) {
                    return kind;
                }
                let mut walk = self.inside(of);
                self.field(&mut walk, &name.value, None, &name.range);
                self.arrive(walk, need)
            }
            ExprKind::Item { of, index } => {
                let mut walk = self.inside(of);
                match &index.kind {
                    ExprKind::Const(Const::Text(name)) => self.field(&mut walk, name, None, &index.range),
                    ExprKind::Const(Const::Int(number)) => {
                        self.field(&mut walk, &number.to_string(), Some(*number), &index.range);
                        // Of what was split something is always left.
                        if matches!(&of.kind, ExprKind::Filter { name, .. } if name.value == "split") && *number == 0 {
                            walk.kind.lack = Lack::Never;
                        }
                    }
                    _ => return self.picked(walk, index),
                }
                self.arrive(walk, need)
            }
            ExprKind::Slice { of, bounds } => {
                let kind = self.type_of(of);
                for bound in bounds.iter().flatten() {
                    self.type_of(bound);
                }
                match self.env.whole.types.kind(&kind.kind) {
                    Kind::List(_) => kind,
                    kind if kind.is_text() => Type::STRING,
                    _ => Type::ANY,
                }
            }
            ExprKind::Not(of) => {
                self.type_of(of);
                Type::BOOL
            }
            ExprKind::Negative(of) => match self.type_of(of) {
                kind if kind.kind.is_number() => kind,
                _ => Type::ANY,
            },
            ExprKind::And(terms) => self.terms(terms, true),
            ExprKind::Or(terms) => self.terms(terms, false),
            ExprKind::Compare { left, op, right } => {
                self.compare(expr, left, *op, right);
                Type::BOOL
            }
            ExprKind::Chain { first, rest } => {
                self.operand(first, Need::Present);
                for (_, operand) in rest {
                    self.operand(operand, Need::Present);
                }
                Type::BOOL
            }
            ExprKind::Arithmetic { left, op, right } => self.arithmetic(expr, left, *op, right),
            ExprKind::Concat(left, right) => {
                self.operand(left, Need::Present);
                self.operand(right, Need::Present);
                Type::STRING
            }
            ExprKind::Choice { condition, then, otherwise } => {
                let asked = self.choices.ask(condition);
                self.type_of(condition);
                let mut kind = self.known(condition, true, |checker| checker.operand(then, need));
                if let Some(otherwise) = otherwise {
                    kind = kind.or(self.known(condition, false, |checker| checker.operand(otherwise, need)));
                }
                self.choices.asked(asked);
                kind
            }
            ExprKind::Filter { of, name, arguments } => self.filter(expr, of.as_deref(), name, arguments, need),
            ExprKind::Test { of, name, arguments } => {
                let need = match name.value.as_str() {
                    "defined" | "undefined" => Need::Nothing,
                    _ => Need::Present,
                };
                self.operand(of, need);
                for argument in arguments {
                    let kind = self.type_of(&argument.value).kind;
                    if matches!(name.value.as_str(), "eq" | "equalto" | "sameas" | "ne") {
                        self.choice_compared((of, &Kind::Any), (&argument.value, &kind), name.value == "ne");
                    }
                }
                Type::BOOL
            }
            ExprKind::Call { of, arguments } => {
                for argument in arguments {
                    self.type_of(&argument.value);
                }
                match &of.kind {
                    ExprKind::Variable(name) if name == "range" && self.bound(name).is_none() => Type::list(Type::INT),
                    _ => Type::ANY,
                }
            }
            ExprKind::List(items) => {
                let each = items.iter().map(|item| self.operand(item, Need::Present)).collect::<Vec<_>>();
                Type::list(each.into_iter().reduce(Type::or).unwrap_or(Type::ANY))
            }
            ExprKind::Map(items) => {
                for (key, value) in items {
                    self.type_of(key);
                    self.operand(value, Need::Present);
                }
                Type::ANY
            }
        }
    }

    /// A field or an item by a computed key: which one, the run knows.
    fn picked(&mut self, mut walk: Walk, index: &Expr) -> Type {
        let key = self.type_of(index);
        self.choice_used(index);
        let types = self.env.whole.types;
        let key = types.kind(&key.kind);
        match types.kind(&walk.kind.kind) {
            // A place in a list is a number.
            Kind::List(_) if key.is_text() => {}
            Kind::List(item) | Kind::Map(item) => return (**item).clone(),
            Kind::Any | Kind::None | Kind::Named(..) | Kind::Record(_) => return Type::ANY,
            Kind::Text
            | Kind::String
            | Kind::Int
            | Kind::Float
            | Kind::Bool
            | Kind::File
            | Kind::Dir
            | Kind::Enum(_) => {}
        }
        let shown = self.shown(index);
        match types.kind(&walk.kind.kind) {
            Kind::List(_) => self.field(&mut walk, &shown, None, &index.range),
            _ => self.field(&mut walk, &format!("`{shown}`"), Some(0), &index.range),
        }
        Type::ANY
    }

    /// Runs `then` where a condition came out like this.
    pub(super) fn known(&mut self, condition: &Expr, truth: bool, then: impl FnOnce(&mut Self) -> Type) -> Type {
        let mark = self.presence.mark();
        let known = self.narrow(condition, truth);
        self.presence.learn(known);
        let kind = then(self);
        self.presence.forget(mark);
        kind
    }

    /// Terms, each of which is reached when those before it came out like `truth`.
    fn terms(&mut self, terms: &[Expr], truth: bool) -> Type {
        let mark = self.presence.mark();
        let mut kind: Option<Type> = None;
        for term in terms {
            let own = self.operand(term, Need::Present);
            kind = Some(match kind {
                Some(kind) => kind.or(own),
                None => own,
            });
            let known = self.narrow(term, truth);
            self.presence.learn(known);
        }
        self.presence.forget(mark);
        kind.unwrap_or(Type::ANY)
    }

    fn path(&mut self, path: &Path, expr: &Expr, need: Need) -> Type {
        let named = path.segments.len() - path.fields().len();
        if path.root.of().is_some() && named == 0 {
            return Type::ANY;
        }
        let bare = expr.range.start..expr.range.start + path.root.word().len();
        let place = path.segments[..named].last().map_or(bare, |segment| segment.range.clone());
        let mut fields = path.fields();
        let qualified = self.env.qualified(path.root, path.name(), fields.first().map(|field| field.text.as_str()));
        if qualified.is_some() {
            fields = &fields[1..];
        }
        let mut walk = Walk::root(self.env, path.root, qualified.as_deref().or(path.name()), place);
        walk.start = expr.range.start;
        walk.notation = Notation::Expression;
        // A default at its end stands in for all of it.
        let inner = if need == Need::Nothing { Need::Nothing } else { Need::Value };
        for field in fields {
            self.there(&mut walk, inner);
            self.field(&mut walk, &field.text, field.index, &field.range);
        }
        self.arrive(walk, need)
    }

    /// A walk that starts from an expression's value.
    pub(super) fn inside(&mut self, of: &Expr) -> Walk {
        let kind = self.type_of(of);
        Walk::value(kind, self.key(of), of.range.clone())
    }

    fn arrive(&mut self, mut walk: Walk, need: Need) -> Type {
        self.there(&mut walk, need);
        walk.kind
    }

    /// Reports a value that may be missing where it is needed; afterwards it counts as there.
    pub(super) fn there(&mut self, walk: &mut Walk, need: Need) {
        let key = walk.key.as_deref();
        let proved = match walk.kind.lack {
            Lack::Never => return,
            Lack::Null => key.is_some_and(|key| self.presence.holds(key)),
            Lack::Absent => key.is_some_and(|key| self.presence.is_defined(key)),
        };
        let needed = match walk.kind.lack {
            Lack::Null => need == Need::Value,
            _ => need != Need::Nothing,
        };
        if needed && !proved {
            self.may_be_missing(walk);
        }
        if needed || proved {
            walk.kind.lack = Lack::Never;
        }
    }

    /// Goes on to a field or an item.
    pub(super) fn field(&mut self, walk: &mut Walk, name: &str, index: Option<i64>, range: &Range<usize>) {
        let types = self.env.whole.types;
        let at = walk.key.as_deref();
        walk.unanswered = None;
        let filled = walk.least.max(u64::from(at.is_some_and(|key| self.presence.is_filled(key))));
        let (kind, declared, least) = match types.kind(&walk.kind.kind) {
            Kind::Any | Kind::None => (Type::ANY, None, 0),
            Kind::Map(item) => ((**item).clone().lacking(Lack::Absent), None, 0),
            Kind::List(item) if index.is_some() => {
                let number = index.unwrap_or_default();
                let there = if number < 0 { number.unsigned_abs() <= filled } else { number.unsigned_abs() < filled };
                let lack = if there { item.lack } else { Lack::Absent };
                ((**item).clone().lacking(lack), None, 0)
            }
            Kind::Record(record) => match record.field(name, walk.notation == Notation::Expression) {
                Some(field) => {
                    let least = field.limits.min.as_ref().and_then(serde_json::Number::as_u64).unwrap_or(0);
                    walk.unanswered = field.unanswered;
                    (field.kind.clone(), Some(field.span), least)
                }
                None => {
                    let record = record.clone();
                    self.no_such_field(walk, &record, name, range);
                    (Type::ANY, None, 0)
                }
            },
            other => {
                let other = other.clone();
                self.has_no_fields(walk, &other, name, index, range);
                (Type::ANY, None, 0)
            }
        };
        walk.kind = kind;
        walk.least = least;
        walk.declared = declared;
        walk.of_item = false;
        walk.place = range.clone();
        walk.root = None;
        if let Some(key) = &mut walk.key {
            key.push('.');
            key.push_str(name);
        }
    }

    /// The type of a path or a variable, without a report.
    pub(super) fn silent(&self, expr: &Expr) -> Type {
        match &expr.kind {
            ExprKind::Path(path) => self.env.path(path),
            ExprKind::Variable(name) => self.bound(name).map_or(Type::ANY, |(kind, _)| kind.clone()),
            _ => Type::ANY,
        }
    }

    fn of_loop(&self, of: &Expr, name: &str) -> Option<Type> {
        if !matches!(&of.kind, ExprKind::Variable(variable) if variable == "loop") {
            return None;
        }
        Some(match name {
            "first" | "last" => Type::BOOL,
            "index" | "index0" | "revindex" | "revindex0" | "length" | "depth" | "depth0" => Type::INT,
            _ => Type::ANY,
        })
    }

    /// The item of what a `for` goes through.
    pub(super) fn iterated(&mut self, list: &Expr) -> Type {
        // `null` has no items.
        let kind = self.operand(list, Need::Present);
        match self.env.whole.types.kind(&kind.kind) {
            Kind::List(item) => (**item).clone(),
            Kind::Map(_) | Kind::Record(_) => Type::STRING,
            Kind::Any | Kind::None | Kind::Named(..) => Type::ANY,
            other => {
                let other = other.clone();
                self.not_a_list(list, &other);
                Type::ANY
            }
        }
    }
}

/// Whether a number is written there.
pub(super) fn is_number(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Const(Const::Int(_) | Const::Float(_)))
}
