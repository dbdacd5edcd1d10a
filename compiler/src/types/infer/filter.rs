//! The types that filters give.

use std::sync::Arc;

use super::super::signature;
use super::super::{Classes, Form, Kind, Lack, Limits, Type};
use super::call::Applied;
use super::expr::Walk;
use super::filled::{Filled, find_filled};
use super::narrow::tested_classes;
use super::{Checker, Need};
use crate::template::{Argument, Const, Expr, ExprKind, Operator, Spanned};

impl Checker<'_> {
    pub(super) fn infer_filter(
        &mut self,
        whole: &Expr,
        of: Option<&Expr>,
        name: &Spanned<String>,
        arguments: &[Argument],
        need: Need,
    ) -> Type {
        let needed = match name.value.as_str() {
            "default" | "d" => Need::Nothing,
            // What shows a value as text shows `null` too.
            "string" | "upper" | "lower" | "title" | "capitalize" | "trim" | "pprint" | "list" | "bool" | "json"
            | "tojson" => Need::Present,
            _ => Need::Value,
        };
        // The filter of a block takes text.
        let operand = of.map_or(Type::STRING, |of| self.infer_operand(of, needed));
        let given = self.infer_arguments(arguments);
        let applied = Applied {
            what: "filter",
            name: &name.value,
            place: name.range.clone(),
            of,
            each: false,
            operand,
            arguments,
            given: &given,
        };
        let kind = self.infer_applied(&applied);
        let kind = match applied.name {
            "first" | "last" | "min" | "max" => self.infer_element(whole, kind, need),
            _ => kind,
        };
        self.infer_result(kind, whole, need)
    }

    /// What a filter gives.
    fn infer_applied(&mut self, applied: &Applied<'_>) -> Type {
        let Some(signature) = signature::find_signature(signature::FILTERS, applied.name) else {
            // A name that is no text of a filter was reported where it was read.
            if applied.each {
                self.unknown_applied(applied, signature::FILTERS);
            }
            return Type::ANY;
        };
        let right = self.check_signature(applied, signature);
        match applied.name {
            "default" | "d" => infer_default(applied),
            "length" | "count" => Type::INT,
            "int" => self.read_number(applied, right, Type::INT),
            "float" => self.read_number(applied, right, Type::FLOAT),
            "bool" => Type::BOOL,
            "format" => {
                self.check_format(applied, right);
                Type::STRING
            }
            "join" | "string" | "lower" | "upper" | "title" | "capitalize" | "trim" | "replace" | "indent" | "e"
            | "escape" | "safe" | "pprint" | "json" | "tojson" => Type::STRING,
            "split" | "lines" => Type::list(Type::STRING),
            "abs" if right => Type::new(applied.operand.kind.clone()),
            "round" if right => Type::new(applied.operand.kind.clone()),
            "attr" => match (applied.of, applied.arguments.first()) {
                (Some(of), Some(field)) => {
                    self.infer_attribute(Some(of), &applied.operand, Some(&field.value), false).unwrap_or(Type::ANY)
                }
                _ => Type::ANY,
            },
            _ if !right => Type::ANY,
            _ => self.of_items(applied),
        }
    }

    /// What a filter gives that works on items.
    fn of_items(&mut self, applied: &Applied<'_>) -> Type {
        let of = applied.of;
        let item = self.item_of(&applied.operand);
        let attribute = applied.find_named("attribute").map(|(value, _)| value);
        match applied.name {
            "list" => Type::list(item),
            "sort" | "unique" => {
                self.infer_attribute(of, &item, attribute, false);
                Type::list(item)
            }
            "select" | "reject" => {
                self.item_test(of, item.clone(), 0, applied);
                Type::list(self.infer_select(applied, item))
            }
            "selectattr" | "rejectattr" => {
                let field = applied.arguments.first().map(|argument| &argument.value);
                let kind = self.infer_attribute(of, &item, field, true);
                self.check_select_test(kind.clone(), applied.arguments);
                self.item_test(of, kind.unwrap_or(Type::ANY), 1, applied);
                Type::list(self.select_by_field(item, applied.arguments, applied.name == "selectattr"))
            }
            "reverse" => self.infer_reverse(applied, item),
            "map" => self.infer_map(applied, item),
            "first" | "last" => {
                let is_text = match self.env.whole.types.underlying_kind(&applied.operand.kind) {
                    Kind::Enum(words) => words.words.iter().all(|word| !word.is_empty()),
                    kind => kind.is_text() && of.is_none_or(has_character),
                };
                let is_each_filled = applied.each && of.and_then(find_filled) == Some(Filled::Whole);
                let is_filled = if applied.each { is_each_filled } else { self.is_filled(of) };
                let lack = if is_filled || is_text || has_items(&applied.operand) {
                    item.lack
                } else {
                    item.lack.union(Lack::ABSENT)
                };
                item.with_lack(lack)
            }
            "min" | "max" => {
                self.infer_attribute(of, &item, attribute, false);
                let filled = self.is_filled(of) || has_items(&applied.operand);
                let lack = if filled { item.lack } else { item.lack.union(Lack::ABSENT) };
                item.with_lack(lack)
            }
            "sum" => self.infer_sum(applied, item),
            "groupby" => {
                let field = applied.find_argument(0, "attribute").map(|(value, _)| value);
                let grouper = self.infer_attribute(of, &item, field, false).unwrap_or(Type::ANY);
                let grouper = match applied.find_named("default") {
                    Some((_, default)) => grouper.with_lack(Lack::NEVER).or(default.clone()),
                    None => grouper,
                };
                Type::list(Type::tuple(vec![grouper, Type::iter(item, true)], Form::Group))
            }
            "batch" | "slice" => {
                let item = match applied.find_argument(1, "fill") {
                    Some((_, fill)) => item.or(fill.clone()),
                    None => item,
                };
                Type::list(Type::list(item))
            }
            "items" => Type::iter(self.pair_type(&applied.operand), true),
            "dictsort" => Type::list(self.pair_type(&applied.operand)),
            "zip" => {
                let others: Vec<Type> = applied.given.iter().map(|kind| self.item_of(kind)).collect();
                Type::iter(Type::tuple(std::iter::once(item).chain(others).collect(), Form::Tuple), true)
            }
            "chain" => self.infer_chain(applied, item),
            _ => Type::ANY,
        }
    }

    /// The type of an item of whatever `for` can go through.
    pub(super) fn item_of(&self, kind: &Type) -> Type {
        let kinds = self.env.whole.types.possible_kinds(&kind.kind);
        let item = |kind: &Kind| match kind {
            // What goes through a map goes through its names.
            Kind::Map(_) | Kind::Record(_) => Some(Type::STRING),
            kind if kind.is_text() => Some(Type::STRING),
            Kind::None => None,
            // Nothing is in it, so that nothing is known to be wrong with an item.
            Kind::Tuple(tuple) if tuple.items.is_empty() && kinds.len() > 1 => None,
            kind => Some(kind.item_type().unwrap_or(Type::ANY)),
        };
        kinds.iter().filter_map(item).reduce(Type::or).unwrap_or(Type::ANY)
    }

    /// A name and a value of a map.
    fn pair_type(&self, kind: &Type) -> Type {
        Type::tuple(vec![Type::STRING, self.value_of(kind).unwrap_or(Type::ANY)], Form::Tuple)
    }

    /// The type of a value of a map; none where it has none.
    fn value_of(&self, kind: &Type) -> Option<Type> {
        let value = |kind: &Kind| match kind {
            Kind::Map(item) => Some((**item).clone()),
            Kind::Record(record) => {
                // What is absent is not among them.
                record.fields.iter().map(|field| field.kind.clone().into_present()).reduce(Type::or)
            }
            _ => Some(Type::ANY),
        };
        self.env.whole.types.possible_kinds(&kind.kind).iter().filter_map(value).reduce(Type::or)
    }

    fn infer_reverse(&self, applied: &Applied<'_>, item: Type) -> Type {
        let kinds = self.env.whole.types.possible_kinds(&applied.operand.kind);
        let reversed = |kind: &Kind| match kind {
            kind if kind.is_text() => Type::STRING,
            Kind::None => Type::new(Kind::None),
            Kind::Any => Type::ANY,
            kind => Type::iter(item.clone(), !matches!(kind, Kind::Iter { sized: false, .. })),
        };
        kinds.iter().map(reversed).reduce(Type::or).unwrap_or(Type::ANY)
    }

    fn infer_sum(&mut self, applied: &Applied<'_>, item: Type) -> Type {
        let field = applied.find_argument(0, "attribute").map(|(value, _)| value);
        let field = field.filter(|field| !matches!(field.kind, ExprKind::Const(Const::None)));
        let summed = match field {
            Some(_) => {
                self.infer_attribute(applied.of, &item, field, false).map(Type::into_present).unwrap_or(Type::ANY)
            }
            None => item,
        };
        let start = applied.find_argument(1, "start").map_or(Type::INT, |(_, kind)| kind.clone());
        let numbers = Classes::NUMBER.union(Classes::BOOL);
        let addable = match start.kind.class() {
            Some(class) if numbers.union(Classes::NONE).has(class) => numbers,
            Some(class) if Classes::SEQUENCE.has(class) => Classes::SEQUENCE,
            Some(class) => class,
            None => return Type::ANY,
        };
        if let Some(of) = applied.of
            && let Some(found) = self.find_misfit(&summed, addable)
        {
            self.not_summable(of, field, &found);
            return Type::ANY;
        }
        match addable == numbers {
            true if start.kind != Kind::Float && matches!(summed.kind, Kind::Int | Kind::Bool) => Type::INT,
            true => Type::FLOAT,
            false if addable == Classes::TEXT => Type::STRING,
            false => Type::iter(Type::ANY, true),
        }
    }

    fn infer_chain(&self, applied: &Applied<'_>, item: Type) -> Type {
        let all = || std::iter::once(&applied.operand).chain(applied.given);
        let only = |wanted: Classes| {
            let is = |kind: &Kind| kind.class() == Some(wanted);
            all().all(|kind| kind.lack == Lack::NEVER && self.env.whole.types.possible_kinds(&kind.kind).iter().all(is))
        };
        if only(Classes::OBJECT) {
            let values = all().filter_map(|kind| self.value_of(kind)).reduce(Type::or);
            return match values {
                Some(value) => Type::map(value),
                None => self.written_record(Vec::new(), &applied.place),
            };
        }
        let item = applied.given.iter().map(|kind| self.item_of(kind)).fold(item, Type::or);
        match only(Classes::LIST) {
            true => Type::list(item),
            false => Type::iter(item, false),
        }
    }

    /// What is left of the items by a test of their kind.
    fn infer_select(&self, applied: &Applied<'_>, item: Type) -> Type {
        let holds = applied.name == "select";
        let Some(argument) = applied.arguments.first() else {
            // What counts as false is left out, `null` among it.
            return if holds { item.with_lack(Lack::NEVER) } else { item };
        };
        match argument.value.as_text() {
            Some("defined") if holds => item.into_present(),
            Some("undefined") if !holds => item.into_present(),
            test => match test.and_then(|test| tested_classes(test, holds)) {
                Some(classes) => self.narrow_type(item, classes),
                None => item,
            },
        }
    }

    /// `int` and `float`: a text that is written out says whether it is a number.
    fn read_number(&mut self, applied: &Applied<'_>, right: bool, kind: Type) -> Type {
        let default = applied.find_argument(0, "default");
        if right && default.is_none() {
            let is_number = |text: &str| text.parse::<f64>().is_ok() || text.parse::<i128>().is_ok();
            let based = applied.find_argument(1, "base").is_some();
            let written = applied.of.and_then(Expr::as_text).filter(|text| !is_number(text) && !based);
            let word =
                self.env.whole.types.possible_kinds(&applied.operand.kind).into_iter().find_map(|kind| match kind {
                    Kind::Enum(words) => words.words.iter().find(|word| !is_number(word)).cloned(),
                    _ => None,
                });
            if let (Some(of), Some(text)) = (applied.of, written.map(str::to_owned).or(word)) {
                self.not_a_number(of, applied, &text);
            }
        }
        match default {
            Some((_, default)) => kind.or(default.clone()),
            None => kind,
        }
    }

    /// What a filter finds in a list that may be empty: a default or a guard may stand around it.
    fn infer_element(&mut self, whole: &Expr, kind: Type, need: Need) -> Type {
        if !kind.lack.has(Lack::ABSENT) || need.may_lack() {
            return kind;
        }
        self.may_be_empty(whole, &kind);
        kind.into_present()
    }

    /// Whether there is certainly an item.
    pub(super) fn is_filled(&self, of: Option<&Expr>) -> bool {
        let Some(of) = of else { return true };
        match &of.kind {
            ExprKind::List(items) => !items.is_empty(),
            ExprKind::Arithmetic { left, op: Operator::Add, right } => {
                self.is_filled(Some(left)) || self.is_filled(Some(right))
            }
            ExprKind::Choice { then, otherwise: Some(otherwise), .. } => {
                self.is_filled(Some(then)) && self.is_filled(Some(otherwise))
            }
            ExprKind::Filter { of, name, arguments } if name.value == "split" => {
                let separator = arguments.first().map(|argument| &argument.value);
                let is_text = |expr: &Expr| {
                    let kind = self.peek_type(expr);
                    kind.lack == Lack::NEVER && self.env.whole.types.underlying_kind(&kind.kind).is_text()
                };
                // At blanks, a text without any word has no pieces.
                separator.is_some_and(|expr| expr.as_text().is_some() || is_text(expr))
                    || of.as_deref().and_then(Expr::as_text).is_some_and(|text| !text.trim().is_empty())
            }
            // They leave as many as there were.
            ExprKind::Filter { of, name, .. }
                if matches!(name.value.as_str(), "sort" | "reverse" | "unique" | "map" | "list") =>
            {
                self.is_filled(of.as_deref())
            }
            _ => {
                let least = || self.find_limits(of)?.min?.as_u64();
                self.place_key(of).is_some_and(|key| self.presence.is_filled(&key)) || least() > Some(0)
            }
        }
    }

    /// The limits that the field at this place declares.
    pub(super) fn find_limits(&self, of: &Expr) -> Option<Limits> {
        let path = of.as_path()?;
        let mut kind = self.env.root_type(path.root, path.name());
        let mut limits = None;
        for segment in path.fields() {
            let next = match self.env.whole.types.underlying_kind(&kind.kind) {
                Kind::Record(record) => record.find_field(&segment.text, true),
                _ => None,
            };
            let field = next?;
            limits = Some(field.limits.clone());
            kind = field.kind.clone();
        }
        limits
    }

    /// The type of a field of an item that an argument names; `strict` says that nothing on the way to it may be missing.
    fn infer_attribute(&mut self, of: Option<&Expr>, item: &Type, field: Option<&Expr>, strict: bool) -> Option<Type> {
        let (of, field) = (of?, field?);
        let name = match &field.kind {
            ExprKind::Const(Const::Text(name)) => name.clone(),
            ExprKind::Const(Const::Int(number)) => number.to_string(),
            _ => return Some(Type::ANY),
        };
        let mut walk = Walk::from_item(item.clone(), of.range.clone());
        // The quote before it is not part of it.
        let mut at = field.range.start + usize::from(field.as_text().is_some());
        for (index, part) in name.split('.').enumerate() {
            let range = at..(at + part.len()).min(field.range.end);
            let lack = walk.kind.lack;
            // The way ends with an error at what is missing, and `null` has no fields.
            if strict && lack.has(Lack::ABSENT.union(Lack::SILENT)) {
                self.missing_on_the_way(of, field, &name, (index > 0).then_some(&walk));
                return Some(Type::ANY);
            }
            walk.kind.lack = Lack::NEVER;
            self.walk_field(&mut walk, part, part.parse().ok(), &range);
            if lack != Lack::NEVER {
                walk.kind.lack = walk.kind.lack.union(Lack::ABSENT);
            }
            at = range.end + 1;
        }
        Some(walk.kind)
    }

    /// What is left of the items of which a field passes a test, or does not.
    fn select_by_field(&self, item: Type, arguments: &[Argument], holds: bool) -> Type {
        let Some(field) = arguments.first().and_then(|argument| argument.value.as_text()) else { return item };
        let word = |at: usize| arguments.get(at).map(|argument| &argument.value);
        let has_value = match word(1).and_then(Expr::as_text) {
            None => holds && arguments.len() == 1,
            Some("eq" | "equalto" | "==" | "sameas") => {
                let given = word(2).map(|word| &word.kind);
                holds && matches!(given, Some(ExprKind::Const(word)) if *word != Const::None)
            }
            // What is missing counts as one.
            Some("sequence" | "iterable") => false,
            Some(test) => holds && tested_classes(test, true).is_some_and(|kinds| !kinds.has(Classes::NONE)),
        };
        let lost = match (word(1).and_then(Expr::as_text), holds) {
            _ if has_value => Lack::ALL,
            (Some("defined"), true) | (Some("undefined"), false) => Lack::ABSENT.union(Lack::SILENT),
            // A field of `null` is missing, and not `null`.
            (Some("none"), false) if !field.contains('.') => Lack::NULL,
            _ => return item,
        };
        let way: Vec<&str> = field.split('.').collect();
        self.with_field(item, &way, lost)
    }

    /// A record whose field, at the end of this way, is there.
    fn with_field(&self, item: Type, way: &[&str], lost: Lack) -> Type {
        let (Some((name, rest)), Kind::Record(record)) =
            (way.split_first(), self.env.whole.types.underlying_kind(&item.kind))
        else {
            return item;
        };
        let lost = if rest.is_empty() { lost } else { Lack::ALL };
        let fields = record.fields.iter().map(|field| {
            let mut field = field.clone();
            if field.name == *name {
                field.kind = self.with_field(field.kind.clone(), rest, lost);
                field.kind.lack = field.kind.lack.without(lost);
            }
            field
        });
        Type::new(Kind::Record(Arc::new(record.with_fields(fields.collect())))).with_lack(item.lack)
    }

    /// `map(attribute="f")`, or `map("filter")`.
    fn infer_map(&mut self, applied: &Applied<'_>, item: Type) -> Type {
        if let Some((attribute, _)) = applied.find_named("attribute") {
            if applied.arguments.iter().any(|argument| argument.name.is_none() && !argument.spread) {
                self.map_of_both(applied);
            }
            if let Some(surplus) = applied
                .arguments
                .iter()
                .find(|argument| argument.name.as_deref().is_some_and(|name| !matches!(name, "attribute" | "default")))
            {
                self.unknown_map_argument(applied, surplus);
            }
            let default = applied.find_named("default");
            let kind = self.infer_attribute(applied.of, &item, Some(attribute), default.is_none());
            let kind = kind.unwrap_or(Type::ANY);
            return Type::list(match default {
                Some((_, default)) => kind.into_present().or(default.clone()),
                None => kind,
            });
        }
        let Some(filter) = applied.arguments.first().filter(|argument| argument.name.is_none()) else {
            // What is spread into the call may hold it.
            if !applied.arguments.iter().any(|argument| argument.spread) {
                self.missing_argument(applied, "attribute");
            }
            return Type::list(Type::ANY);
        };
        let Some(name) = filter.value.as_text() else {
            if let Some(kind) = applied.given.first()
                && let Some(found) = self.find_misfit(kind, Classes::TEXT)
            {
                self.wrong_value(applied, &filter.value, &found, "the name of a filter");
            }
            return Type::list(Type::ANY);
        };
        // The first argument is the name of this filter, and none of its own.
        let kind = self.infer_applied(&Applied {
            what: "filter",
            name,
            place: filter.value.range.clone(),
            of: applied.of,
            each: true,
            operand: item,
            arguments: &applied.arguments[1..],
            given: &applied.given[1..],
        });
        Type::list(kind)
    }

    /// `selectattr("severity", "equalto", "high")`: the word must be one of the field's.
    fn check_select_test(&mut self, kind: Option<Type>, arguments: &[Argument]) {
        let (Some(kind), [field, test, word, ..]) = (kind, arguments) else { return };
        let test = test.value.as_text();
        let inner = self.env.whole.types.underlying_kind(&kind.kind).clone();
        match test {
            Some("eq" | "equalto" | "==" | "sameas" | "ne" | "!=") => {
                let differs = matches!(test, Some("ne" | "!="));
                self.choice_met(&word.value, (&field.value, &inner), differs);
            }
            _ => self.choice_used(&word.value),
        }
        let (Kind::Enum(words), Some(text)) = (self.env.whole.types.underlying_kind(&kind.kind), word.value.as_text())
        else {
            return;
        };
        let words = words.clone();
        let differs = matches!(test, Some("ne" | "!="));
        if (differs || matches!(test, Some("eq" | "equalto" | "==" | "sameas")))
            && !words.words.iter().any(|word| word == text)
        {
            self.not_a_word(&field.value, &word.value, text, &words, differs);
        }
    }
}

/// Whether a list is known item by item, and has some.
fn has_items(kind: &Type) -> bool {
    matches!(&kind.kind, Kind::Tuple(tuple) if !tuple.items.is_empty())
}

/// Whether an expression says that its text has a character: what is read may have none.
fn has_character(of: &Expr) -> bool {
    match &of.kind {
        ExprKind::Const(Const::Text(text)) => !text.is_empty(),
        ExprKind::Const(_) => true,
        ExprKind::Filter { name, of, .. } => {
            !matches!(name.value.as_str(), "join" | "trim" | "replace" | "format")
                && of.as_deref().is_none_or(has_character)
        }
        ExprKind::Choice { then, otherwise, .. } => {
            has_character(then) && otherwise.as_deref().is_some_and(has_character)
        }
        ExprKind::Concat(left, right) => has_character(left) || has_character(right),
        _ => false,
    }
}

/// What a value with a default is.
fn infer_default(applied: &Applied<'_>) -> Type {
    let kind = applied.operand.clone();
    let default = applied.given.first().cloned().unwrap_or(Type::STRING);
    // `default(x, true)` also replaces what does not hold.
    let also_empty = applied.arguments.get(1).map(|argument| match &argument.value.kind {
        ExprKind::Const(constant) => Some(constant.is_true()),
        _ => None,
    });
    match also_empty {
        Some(Some(true)) => kind.with_lack(Lack::NEVER).or(default),
        // Whether it does, the run knows.
        Some(None) => kind.into_present().or(default),
        _ if kind.lack.has(Lack::ABSENT.union(Lack::SILENT)) => kind.into_present().or(default),
        // What is read of the run has no lack in its type, and may be missing all the same.
        _ if default.kind == Kind::None
            && applied.of.and_then(Expr::as_path).is_some_and(|path| path.fields().is_empty()) =>
        {
            kind.or(default)
        }
        _ => kind,
    }
}
