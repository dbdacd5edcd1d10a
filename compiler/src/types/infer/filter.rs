//! The types that filters give.

use super::super::{Kind, Lack, Type};
use super::expr::Walk;
use super::{Checker, Need};
use crate::template::{Argument, Const, Expr, ExprKind, Spanned};

impl Checker<'_> {
    pub(super) fn filter(
        &mut self,
        whole: &Expr,
        of: Option<&Expr>,
        name: &Spanned<String>,
        arguments: &[Argument],
        need: Need,
    ) -> Type {
        let filter = name.value.as_str();
        let needed = match filter {
            "default" | "d" => Need::Nothing,
            // What shows a value as text shows `null` too.
            "string" | "upper" | "lower" | "title" | "capitalize" | "trim" | "pprint" | "list" | "bool" | "json"
            | "tojson" => Need::Present,
            _ => Need::Value,
        };
        // The filter of a block takes text.
        let kind = of.map_or(Type::STRING, |of| self.operand(of, needed));
        let given: Vec<Type> = arguments.iter().map(|argument| self.operand(&argument.value, Need::Present)).collect();
        let inner = self.env.whole.types.kind(&kind.kind).clone();
        self.check_operand(of, &inner, filter, arguments);
        let item = match &inner {
            Kind::List(item) => (**item).clone(),
            Kind::Map(_) | Kind::Record(_) => Type::STRING,
            kind if kind.is_text() => Type::STRING,
            _ => Type::ANY,
        };
        match filter {
            "default" | "d" => defaulted(kind, given.first(), arguments),
            "length" | "count" | "wordcount" | "int" => Type::INT,
            "float" => Type::FLOAT,
            "bool" => Type::BOOL,
            "join" | "string" | "lower" | "upper" | "title" | "capitalize" | "trim" | "replace" | "indent" | "e"
            | "escape" | "safe" | "pprint" | "format" | "json" | "tojson" => Type::STRING,
            "split" | "lines" => Type::list(Type::STRING),
            "list" => Type::list(item),
            "abs" if inner.is_number() => Type::new(inner),
            "round" => Type::FLOAT,
            "sort" | "unique" | "select" | "reject" => {
                self.attribute(of, &item, named(arguments, "attribute"));
                Type::list(item)
            }
            "reverse" if inner.is_text() => Type::STRING,
            "reverse" => Type::list(item),
            "selectattr" | "rejectattr" => {
                let field = arguments.first().map(|argument| &argument.value);
                let kind = self.attribute(of, &item, field);
                self.tested(kind, arguments);
                Type::list(item)
            }
            "map" => self.mapped(of, item, arguments),
            "first" | "last" => {
                let lack = if self.is_filled(of) || inner.is_text() { item.lack } else { Lack::Absent };
                self.found(whole, item.lacking(lack), need)
            }
            "min" | "max" => {
                self.attribute(of, &item, named(arguments, "attribute"));
                let lack = if self.is_filled(of) { item.lack } else { Lack::Absent };
                self.found(whole, item.lacking(lack), need)
            }
            "sum" => match self.attribute(of, &item, named(arguments, "attribute")) {
                Some(kind) if kind.kind.is_number() => kind.lacking(Lack::Never),
                None if item.kind.is_number() => item,
                _ => Type::ANY,
            },
            "attr" => match (of, arguments.first().map(|argument| &argument.value)) {
                (Some(of), Some(field)) => self.attribute(Some(of), &kind, Some(field)).unwrap_or(Type::ANY),
                _ => Type::ANY,
            },
            "groupby" => {
                self.attribute(of, &item, arguments.first().map(|argument| &argument.value));
                Type::list(Type::ANY)
            }
            "batch" | "slice" => Type::list(Type::list(item)),
            "items" | "dictsort" | "zip" | "chain" => Type::list(Type::ANY),
            _ => Type::ANY,
        }
    }

    /// What a filter finds in a list that may be empty: a default or a guard may stand around it.
    fn found(&mut self, whole: &Expr, kind: Type, need: Need) -> Type {
        if kind.lack != Lack::Absent || need == Need::Nothing {
            return kind;
        }
        self.may_be_empty(whole);
        kind.lacking(Lack::Never)
    }

    /// Whether there is certainly an item.
    fn is_filled(&self, of: Option<&Expr>) -> bool {
        let Some(of) = of else { return true };
        match &of.kind {
            ExprKind::List(items) => !items.is_empty(),
            ExprKind::Filter { name, .. } if name.value == "split" => true,
            // They leave as many as there were.
            ExprKind::Filter { of, name, .. }
                if matches!(name.value.as_str(), "sort" | "reverse" | "unique" | "map" | "list") =>
            {
                self.is_filled(of.as_deref())
            }
            _ => self.key(of).is_some_and(|key| self.presence.is_filled(&key)) || self.least(of) > 0,
        }
    }

    /// The least length that a field declares.
    fn least(&self, of: &Expr) -> u64 {
        let ExprKind::Path(path) = &of.kind else { return 0 };
        let mut kind = self.env.root(path.root, path.name());
        let mut least = 0;
        for segment in path.fields() {
            let next = match self.env.whole.types.kind(&kind.kind) {
                Kind::Record(record) => record.field(&segment.text, true),
                _ => None,
            };
            let Some(field) = next else { return 0 };
            least = field.limits.min.as_ref().and_then(serde_json::Number::as_u64).unwrap_or(0);
            kind = field.kind.clone();
        }
        least
    }

    /// The type of a field of an item that an argument names.
    fn attribute(&mut self, of: Option<&Expr>, item: &Type, field: Option<&Expr>) -> Option<Type> {
        let (of, field) = (of?, field?);
        let name = match &field.kind {
            ExprKind::Const(Const::Text(name)) => name.clone(),
            _ => return Some(Type::ANY),
        };
        let mut walk = Walk::item(item.clone(), of.range.clone());
        // The quote before it is not part of it.
        let mut at = field.range.start + 1;
        for part in name.split('.') {
            let range = at..(at + part.len()).min(field.range.end);
            let index = part.parse().ok();
            walk.kind.lack = Lack::Never;
            self.field(&mut walk, part, index, &range);
            at = range.end + 1;
        }
        Some(walk.kind)
    }

    /// `map(attribute="f")`, or `map("filter")`.
    fn mapped(&mut self, of: Option<&Expr>, item: Type, arguments: &[Argument]) -> Type {
        if let Some(attribute) = named(arguments, "attribute") {
            let kind = self.attribute(of, &item, Some(attribute)).unwrap_or(Type::ANY);
            let lack = if kind.lack == Lack::Absent { Lack::Null } else { kind.lack };
            return Type::list(match named(arguments, "default") {
                Some(_) => Type::ANY,
                None => kind.lacking(lack),
            });
        }
        let filter = arguments.first().and_then(|argument| argument.value.text());
        Type::list(match filter {
            Some("upper" | "lower" | "trim" | "title" | "capitalize" | "string" | "join" | "replace") => Type::STRING,
            Some("int" | "length" | "count") => Type::INT,
            Some("float") => Type::FLOAT,
            _ => Type::ANY,
        })
    }

    /// `selectattr("severity", "equalto", "high")`: the word must be one of the field's.
    fn tested(&mut self, kind: Option<Type>, arguments: &[Argument]) {
        let (Some(kind), [field, test, word, ..]) = (kind, arguments) else { return };
        let test = test.value.text();
        let inner = self.env.whole.types.kind(&kind.kind).clone();
        match test {
            Some("eq" | "equalto" | "==" | "sameas" | "ne" | "!=") => {
                let differs = matches!(test, Some("ne" | "!="));
                self.choice_met(&word.value, (&field.value, &inner), differs);
            }
            _ => self.choice_used(&word.value),
        }
        let (Kind::Enum(words), Some(text)) = (self.env.whole.types.kind(&kind.kind), word.value.text()) else {
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

    fn check_operand(&mut self, of: Option<&Expr>, kind: &Kind, filter: &str, arguments: &[Argument]) {
        let Some(of) = of else { return };
        let scalar = kind.is_number() || *kind == Kind::Bool;
        let wrong = match filter {
            "length" | "count" | "first" | "last" | "join" | "sort" | "unique" | "reverse" | "list" | "batch"
            | "slice" | "sum" | "min" | "max" | "select" | "reject" => scalar,
            "map" => scalar || (kind.is_text() && named(arguments, "attribute").is_some()),
            "selectattr" | "rejectattr" | "groupby" => scalar || kind.is_text(),
            "split" | "lines" => scalar || matches!(kind, Kind::List(_) | Kind::Map(_) | Kind::Record(_)),
            "items" | "dictsort" => scalar || kind.is_text() || matches!(kind, Kind::List(_)),
            "abs" | "round" => kind.is_text() || matches!(kind, Kind::List(_) | Kind::Map(_) | Kind::Record(_)),
            "int" | "float" => matches!(kind, Kind::List(_) | Kind::Map(_) | Kind::Record(_)),
            _ => false,
        };
        if wrong {
            self.wrong_operand(of, kind, filter);
        }
    }
}

/// What a value with a default is.
fn defaulted(kind: Type, default: Option<&Type>, arguments: &[Argument]) -> Type {
    // `default(x, true)` also replaces what does not hold.
    let also_empty = matches!(
        arguments.get(1).or(arguments.iter().find(|argument| argument.name.as_deref() == Some("boolean"))),
        Some(Argument { value: Expr { kind: ExprKind::Const(Const::Bool(true)), .. }, .. })
    );
    let replaced = kind.lack == Lack::Absent || also_empty;
    if !replaced {
        return kind;
    }
    kind.lacking(Lack::Never).or(default.cloned().unwrap_or(Type::STRING))
}

/// The argument of this name.
fn named<'a>(arguments: &'a [Argument], name: &str) -> Option<&'a Expr> {
    arguments.iter().find(|argument| argument.name.as_deref() == Some(name)).map(|argument| &argument.value)
}
