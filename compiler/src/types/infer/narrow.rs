//! What the outcome of a condition says about what is there.

use super::super::env::normalize_name;
use super::super::{Classes, Field, Kind, Lack, Type, unite_kinds};
use super::Checker;
use super::presence::{Known, common_claims};
use crate::template::{Comparison, Const, Expr, ExprKind, Path};

/// The kinds that a value has for which a test holds, or does not; none where the test says nothing of kinds.
pub(super) fn tested_classes(test: &str, holds: bool) -> Option<Classes> {
    let objects = Classes::OBJECT;
    let numbers = Classes::NUMBER.union(Classes::BOOL);
    Some(match (test, holds) {
        ("string", true) => Classes::TEXT,
        ("number", true) => numbers,
        // A number that is declared to have a fraction may have none.
        ("integer" | "int", true) => Classes::NUMBER,
        ("float", true) => Classes::FLOAT,
        ("boolean" | "true" | "false", true) => Classes::BOOL,
        ("mapping", true) => objects,
        ("sequence", true) => Classes::LIST,
        ("iterable", true) => Classes::ITERABLE,
        ("none", true) => Classes::NONE,
        ("string", false) => Classes::TEXT.complement(),
        ("number", false) => numbers.complement(),
        ("integer" | "int", false) => Classes::INT.complement(),
        ("boolean", false) => Classes::BOOL.complement(),
        ("mapping", false) => objects.complement(),
        ("sequence", false) => Classes::LIST.complement(),
        ("iterable", false) => Classes::ITERABLE.complement(),
        ("none", false) => Classes::NONE.complement(),
        _ => return None,
    })
}

impl Checker<'_> {
    /// What is left of a type where only these kinds are.
    pub(super) fn narrow_type(&self, kind: Type, classes: Classes) -> Type {
        let lack = if classes.has(Classes::NONE) { kind.lack } else { kind.lack.without(Lack::NULL) };
        let mut kinds = self.env.whole.types.possible_kinds(&kind.kind);
        let all = kinds.len();
        kinds.retain(|kind| kind.class().is_none_or(|class| classes.has(class)));
        // Of no kinds `unite_kinds` makes any, which says less than the type itself.
        match kinds.is_empty() || kinds.len() == all {
            true => Type { kind: kind.kind, lack },
            false => Type { kind: unite_kinds(kinds), lack },
        }
    }

    /// What is left of a type in a place of which something is known.
    pub(super) fn narrowed_at(&self, kind: Type, key: Option<&str>) -> Type {
        match key.and_then(|key| self.presence.known_classes(key)) {
            Some(classes) => self.narrow_type(kind, classes),
            None => kind,
        }
    }

    /// What is known where the condition holds, or where it does not.
    pub(super) fn narrow_condition(&self, expr: &Expr, truth: bool) -> Vec<Known> {
        match &expr.kind {
            ExprKind::Not(of) => self.narrow_condition(of, !truth),
            ExprKind::And(terms) | ExprKind::Or(terms) => {
                let each = terms.iter().map(|term| self.narrow_condition(term, truth));
                match matches!(expr.kind, ExprKind::And(_)) == truth {
                    // All terms came out like this.
                    true => each.flatten().collect(),
                    // One term alone may have decided, so only what all of them claim is sure.
                    false => each.reduce(|known, more| common_claims(known, &more)).unwrap_or_default(),
                }
            }
            ExprKind::Test { of, name, .. } => match (name.value.as_str(), truth, self.place_key(of)) {
                ("defined", true, Some(key)) | ("undefined", false, Some(key)) => vec![Known::claim_defined(&key)],
                ("none", false, Some(key)) => vec![Known::claim_value(&key)],
                (test, truth, Some(key)) => {
                    let classes = tested_classes(test, truth);
                    let mut known: Vec<Known> =
                        classes.iter().map(|classes| Known::claim_classes(&key, *classes)).collect();
                    // A value of a kind is there; `undefined` counts as a sequence.
                    if truth && test != "sequence" && classes.is_some_and(|classes| !classes.has(Classes::NONE)) {
                        known.push(Known::claim_value(&key));
                    }
                    known
                }
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
                match (name.value.as_str(), self.place_key(of)) {
                    // The default does not hold, so it is not what held.
                    ("default" | "d", Some(key)) if falsy => vec![Known::claim_value(&key), Known::claim_filled(&key)],
                    _ => self.counted_key(expr).map(|key| Known::claim_filled(&key)).into_iter().collect(),
                }
            }
            ExprKind::Compare { left, op, right } => self.narrow_comparison(left, *op, right, truth),
            ExprKind::Path(_) | ExprKind::Variable(_) | ExprKind::Attribute { .. } | ExprKind::Item { .. } if truth => {
                let known = |key: String| vec![Known::claim_value(&key), Known::claim_filled(&key)];
                let mut known = self.place_key(expr).map_or_else(Vec::new, known);
                known.extend(self.counted_key(expr).map(|key| Known::claim_filled(&key)));
                known
            }
            _ => Vec::new(),
        }
    }

    /// What a gate asks for besides, where its choice, which is this or is not this, is one that a person makes.
    fn answered_fields(&self, left: &Expr, right: &Expr, is_this: bool) -> Vec<Known> {
        let (of, chosen) = match (left.as_path(), right.as_path()) {
            (Some(path), _) => (path, right.as_text()),
            (None, Some(path)) => (path, left.as_text()),
            (None, None) => return Vec::new(),
        };
        let (Some(chosen), [place @ .., last]) = (chosen, of.segments.as_slice()) else { return Vec::new() };
        if last.text != "choice" {
            return Vec::new();
        }
        let gate = Path { root: of.root, segments: place.to_vec() };
        let kind = self.env.path_type(&gate);
        let Kind::Record(record) = self.env.whole.types.underlying_kind(&kind.kind) else { return Vec::new() };
        let answers = |field: &&Field| {
            let Some(choices) = &field.unanswered else { return false };
            match is_this {
                true => choices.words.iter().all(|choice| choice != chosen),
                false => choices.words.iter().all(|choice| choice == chosen),
            }
        };
        let gate = Expr { kind: ExprKind::Path(gate), range: left.range.clone() };
        let Some(key) = self.place_key(&gate) else { return Vec::new() };
        let fields = record.fields.iter().filter(answers);
        fields.map(|field| Known::claim_value(&format!("{key}.{}", normalize_name(&field.name)))).collect()
    }

    /// The key of the list whose items an expression counts: `output.j | length`, or a name that was given to that. Where
    /// the list has an empty default, it is there if anything is counted.
    pub(super) fn counted_key(&self, expr: &Expr) -> Option<String> {
        let of = match &expr.kind {
            ExprKind::Variable(name) => return self.lengths.get(&self.find_binding(name)?.1).cloned(),
            ExprKind::Filter { of: Some(of), name, .. } if matches!(name.value.as_str(), "length" | "count") => of,
            _ => return None,
        };
        match &of.kind {
            ExprKind::Filter { of: Some(inner), name, arguments } if matches!(name.value.as_str(), "default" | "d") => {
                let is_empty = match arguments.first().map(|argument| &argument.value.kind) {
                    None => true,
                    Some(ExprKind::Const(Const::Text(text))) => text.is_empty(),
                    Some(ExprKind::List(items)) => items.is_empty(),
                    Some(ExprKind::Map(entries)) => entries.is_empty(),
                    Some(_) => false,
                };
                self.place_key(inner).filter(|_| is_empty)
            }
            _ => self.place_key(of),
        }
    }

    fn narrow_comparison(&self, left: &Expr, op: Comparison, right: &Expr, truth: bool) -> Vec<Known> {
        if let (Comparison::In, true, Some(known)) = (op, truth, self.claim_key(right, left)) {
            return vec![known];
        }
        if let (Comparison::In, true, Some([word, words @ ..])) = (op, truth, right.as_items()) {
            let answered = |word| self.answered_fields(left, word, true);
            let known = words.iter().fold(answered(word), |known, word| common_claims(known, &answered(word)));
            if !known.is_empty() {
                return known;
            }
        }
        if let Comparison::Eq | Comparison::Ne = op {
            let known = self.answered_fields(left, right, (op == Comparison::Eq) == truth);
            if !known.is_empty() {
                return known;
            }
        }
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
        let (key, counted) = match self.counted_key(left) {
            Some(key) => (Some(key), true),
            None => (self.place_key(left), false),
        };
        let Some(key) = key else { return Vec::new() };
        let number = match right.kind {
            ExprKind::Const(Const::Int(number)) => Some(number),
            _ => None,
        };
        let least = number.and_then(|number| u64::try_from(number).ok()).and_then(|number| match (op, truth) {
            (Comparison::Gt, true) | (Comparison::Lte, false) => Some(number.saturating_add(1)),
            (Comparison::Gte | Comparison::Eq, true) | (Comparison::Lt | Comparison::Ne, false) => Some(number),
            (Comparison::Ne, true) | (Comparison::Eq, false) => (number == 0).then_some(1),
            _ => None,
        });
        match (counted, op) {
            (true, _) => {
                least.filter(|least| *least > 0).map(|least| Known::claim_items(&key, least)).into_iter().collect()
            }
            (false, Comparison::Ne) if empty && truth => vec![Known::claim_filled(&key)],
            (false, Comparison::Eq) if empty && !truth => vec![Known::claim_filled(&key)],
            (false, Comparison::Ne) if matches!(right.kind, ExprKind::Const(Const::None)) && truth => {
                vec![Known::claim_value(&key)]
            }
            (false, Comparison::Eq) if matches!(right.kind, ExprKind::Const(Const::None)) && !truth => {
                vec![Known::claim_value(&key)]
            }
            (false, Comparison::Eq)
                if truth && matches!(&right.kind, ExprKind::Const(constant) if *constant != Const::None) =>
            {
                vec![Known::claim_value(&key)]
            }
            (false, Comparison::In) if truth && right.as_items().is_some() => vec![Known::claim_value(&key)],
            _ => Vec::new(),
        }
    }
}
