//! What filters, tests and functions are given, held against the table of what they take (SW205, SW209).

use std::ops::Range;

use super::super::signature::{self, Given, Rest, Signature, Takes};
use super::super::{Classes, Kind, Lack, Type};
use super::{Checker, Need};
use crate::template::{Argument, Const, Expr, ExprKind, Operator, Spanned, is_default};

/// The most items of a `range`; minijinja's own limit.
pub(super) const MOST_RANGE: u64 = 100_000;

/// The tests that fail on what is missing; the others do not hold then.
const TESTS_OF_TEXT: [&str; 4] = ["startingwith", "endingwith", "filter", "test"];

/// A use of a filter, a test or a function.
pub(super) struct Applied<'a> {
    /// What it is: `filter`.
    pub(super) what: &'static str,
    pub(super) name: &'a str,
    /// Where its name stands.
    pub(super) place: Range<usize>,
    /// What it is used on, as it is written; nothing for the filter of a block.
    pub(super) of: Option<&'a Expr>,
    /// Whether it is used on each item of that.
    pub(super) each: bool,
    pub(super) operand: Type,
    pub(super) arguments: &'a [Argument],
    /// The types of the arguments.
    pub(super) given: &'a [Type],
}

impl<'a> Applied<'a> {
    /// The argument of this name, or at this place, with its type.
    pub(super) fn find_argument(&self, place: usize, name: &str) -> Option<(&'a Expr, &'a Type)> {
        let placed = || {
            let unnamed = self.arguments.iter().zip(self.given).filter(|(argument, _)| argument.name.is_none());
            unnamed.map(|(argument, kind)| (&argument.value, kind)).nth(place)
        };
        self.find_named(name).or_else(placed)
    }

    /// Whether it reads a field of each item, which texts do not have.
    pub(super) fn reads_fields(&self) -> bool {
        match self.name {
            "map" => self.find_named("attribute").is_some(),
            "selectattr" | "rejectattr" | "groupby" => true,
            _ => false,
        }
    }

    /// The argument of this name.
    pub(super) fn find_named(&self, name: &str) -> Option<(&'a Expr, &'a Type)> {
        let mut given = self.arguments.iter().zip(self.given);
        let (argument, kind) = given.find(|(argument, _)| argument.name.as_deref() == Some(name))?;
        Some((&argument.value, kind))
    }
}

/// A kind of a value that does not fit, and whether it is only one of several.
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) one_of: bool,
}

impl Checker<'_> {
    /// The types of arguments.
    pub(super) fn infer_arguments(&mut self, arguments: &[Argument]) -> Vec<Type> {
        arguments.iter().map(|argument| self.infer_operand(&argument.value, Need::Present)).collect()
    }

    /// The first kind of a value that is none of these.
    pub(super) fn find_misfit(&self, kind: &Type, takes: Classes) -> Option<Found> {
        let mut kinds = self.env.whole.types.possible_kinds(&kind.kind);
        if kind.lack != Lack::NEVER {
            kinds.push(Kind::None);
        }
        let wrong = |kind: &Kind| kind.class().is_some_and(|class| !takes.has(class));
        let found = kinds.iter().find(|kind| wrong(kind))?.clone();
        Some(Found { kind: found, one_of: kinds.len() > 1 })
    }

    /// Holds a use against what its filter, test or function takes; says whether it is right.
    pub(super) fn check_signature(&mut self, applied: &Applied<'_>, signature: &'static Signature) -> bool {
        if let Some(of) = applied.of {
            // What may be missing was reported where it was read, unless it is an item.
            let operand =
                if applied.each { applied.operand.clone() } else { applied.operand.clone().with_lack(Lack::NEVER) };
            let takes = match applied.reads_fields() {
                true => signature.operand.intersection(Classes::TEXT.complement()),
                false => signature.operand,
            };
            if let Some(found) = self.find_misfit(&operand, takes) {
                self.wrong_operand(of, applied, signature, &found);
                return false;
            }
            let guards = applied.what == "test" || is_default(applied.name);
            if operand.lack.has(Lack::ABSENT) && !guards {
                self.missing_item(of, applied);
                return false;
            }
        }
        let spread = applied.arguments.iter().any(|argument| argument.spread);
        if spread || matches!(signature.rest, Rest::Anything | Rest::Named) {
            // Arguments with a name are those of the test, which comes first.
            let placed = applied.arguments.iter().filter(|argument| argument.name.is_none()).count();
            let early = signature.rest == Rest::Anything && placed < signature.arguments.len();
            let named = applied.arguments.iter().find(|argument| early && argument.name.is_some());
            if let Some((argument, name)) = named.and_then(|argument| Some((argument, argument.name.as_deref()?))) {
                self.unknown_argument(applied, signature, argument, name);
                return false;
            }
            // A namespace is given a map or fields.
            if applied.name == "namespace" && applied.what == "function" && placed > 0 && applied.arguments.len() > 1 {
                self.surplus_argument(applied, signature, &applied.arguments[1]);
                return false;
            }
            return self.hold_placed(applied, signature);
        }
        self.hold_names(applied, signature) && self.hold_placed(applied, signature)
    }

    /// Whether the arguments by name are known, and those that must be given are.
    fn hold_names(&mut self, applied: &Applied<'_>, signature: &'static Signature) -> bool {
        let placed = applied.arguments.iter().filter(|argument| argument.name.is_none()).count();
        for argument in applied.arguments {
            let Some(name) = argument.name.as_deref() else { continue };
            let known =
                signature.arguments.iter().position(|known| known.name == name && known.given != Given::ByPlace);
            match known {
                None => {
                    self.unknown_argument(applied, signature, argument, name);
                    return false;
                }
                Some(index) if index < placed && signature.arguments[index].given == Given::Either => {
                    self.repeated_argument(applied, argument, name);
                    return false;
                }
                Some(_) => {}
            }
        }
        let missing = signature.arguments.iter().enumerate().find(|(index, argument)| {
            argument.required && *index >= placed && applied.find_named(argument.name).is_none()
        });
        let Some((_, argument)) = missing else { return true };
        // Too few arguments were reported where the text was read, unless a text names the filter or test.
        let needs = signature.arguments.iter().filter(|argument| argument.required).count();
        if applied.each || applied.what == "function" || applied.arguments.len() >= needs {
            self.missing_argument(applied, argument.name);
        }
        false
    }

    /// Whether each argument is of a kind that fits.
    fn hold_placed(&mut self, applied: &Applied<'_>, signature: &'static Signature) -> bool {
        let mut place = 0;
        for (argument, kind) in applied.arguments.iter().zip(applied.given) {
            if argument.spread {
                return true;
            }
            let known = match argument.name.as_deref() {
                Some(name) => signature.arguments.iter().find(|known| known.name == name),
                None => {
                    let known = signature.arguments.get(place).filter(|known| known.given != Given::ByName);
                    place += 1;
                    known
                }
            };
            let (takes, required) = match (known, signature.rest) {
                (Some(known), _) => (known.takes, known.required),
                (None, Rest::Named) if argument.name.is_some() => continue,
                (None, Rest::Anything) => continue,
                (None, Rest::Values(classes)) => {
                    if let Some(found) = self.find_misfit(kind, classes) {
                        self.wrong_value(applied, &argument.value, &found, "a list or a map");
                        return false;
                    }
                    continue;
                }
                (None, Rest::Nothing | Rest::Named) => {
                    self.surplus_argument(applied, signature, argument);
                    return false;
                }
            };
            if !self.hold_argument(applied, &argument.value, kind, takes, required) {
                return false;
            }
        }
        true
    }

    fn hold_argument(
        &mut self,
        applied: &Applied<'_>,
        value: &Expr,
        kind: &Type,
        takes: Takes,
        required: bool,
    ) -> bool {
        let classes = takes.classes();
        let classes = if required { classes } else { classes.union(Classes::NONE) };
        let wants = match takes {
            Takes::Any => "a value",
            Takes::Text | Takes::Word(_) | Takes::Field => "a text",
            Takes::Whole | Takes::AtLeast(_) => "a whole number",
            Takes::Flag => "`true` or `false`",
            Takes::Object => "a map",
            Takes::Start => "a number",
        };
        // A number that is written out without a fraction is a whole one.
        let is_whole =
            matches!(takes, Takes::Whole | Takes::AtLeast(_)) && (parse_whole(value).is_some() || is_rounded(value));
        if !is_whole && let Some(found) = self.find_misfit(kind, classes) {
            self.wrong_value(applied, value, &found, wants);
            return false;
        }
        match (takes, parse_whole(value), value.as_text()) {
            (Takes::AtLeast(least), Some(number), _) if number < least => {
                self.too_small(applied, value, least);
                false
            }
            (Takes::Word(words), _, Some(word)) if !words.contains(&word) => {
                self.unknown_word(applied, value, words);
                false
            }
            _ => true,
        }
    }

    /// Types a call.
    pub(super) fn infer_call(&mut self, whole_call: &Expr, of: &Expr, arguments: &[Argument]) -> Type {
        let given = self.infer_arguments(arguments);
        let applied = |name, place: &Range<usize>| Applied {
            what: "function",
            name,
            place: place.clone(),
            of: None,
            each: false,
            operand: Type::ANY,
            arguments,
            given: &given,
        };
        match &of.kind {
            ExprKind::Variable(name) if self.find_binding(name).is_some() => {
                let kind = self.infer_operand(of, Need::Nothing);
                if kind.kind != Kind::Any {
                    self.not_a_function(whole_call, of);
                }
                Type::ANY
            }
            ExprKind::Variable(name) => {
                let applied = applied(name, &of.range);
                let right = match signature::find_signature(signature::FUNCTIONS, name) {
                    Some(signature) => self.check_signature(&applied, signature),
                    None => true,
                };
                self.called_function(&applied, right)
            }
            // The other method of `loop` says whether its arguments are others than before.
            ExprKind::Attribute { name, .. } if name.value == "cycle" => {
                if arguments.is_empty() {
                    self.missing_argument(&Applied { what: "method", ..applied(&name.value, &name.range) }, "value");
                }
                given.iter().cloned().reduce(Type::or).unwrap_or(Type::ANY)
            }
            ExprKind::Attribute { name, .. } if name.value == "changed" => Type::BOOL,
            _ => Type::ANY,
        }
    }

    fn called_function(&mut self, applied: &Applied<'_>, right: bool) -> Type {
        match applied.name {
            "range" => {
                if let Some((step, _)) =
                    applied.find_argument(2, "step").filter(|(step, _)| right && parse_whole(step) == Some(0))
                {
                    self.zero_step(step);
                }
                let bounds: Option<Vec<i64>> =
                    applied.arguments.iter().map(|argument| parse_whole(&argument.value)).collect();
                if let Some(items) = bounds.as_deref().map(count_range).filter(|items| *items > MOST_RANGE) {
                    self.too_long_range(applied, items);
                }
                Type::iter(Type::INT, true)
            }
            "debug" => Type::STRING,
            "dict" | "namespace" if right => self.written_out(applied),
            _ => Type::ANY,
        }
    }

    /// What `dict` and `namespace` give: the map that they are given, and what has a name.
    fn written_out(&mut self, applied: &Applied<'_>) -> Type {
        let mut fields: Vec<(String, Type)> = Vec::new();
        let base = applied.arguments.first().filter(|argument| argument.name.is_none()).zip(applied.given.first());
        match base.map(|(_, kind)| self.env.whole.types.underlying_kind(&kind.kind)) {
            None | Some(Kind::None) => {}
            Some(Kind::Record(record)) => {
                fields.extend(record.fields.iter().map(|field| (field.name.clone(), field.kind.clone())));
            }
            Some(Kind::Map(item)) => {
                let named = applied.arguments.iter().zip(applied.given).filter(|(argument, _)| argument.name.is_some());
                return Type::map(named.fold((**item).clone(), |kind, (_, given)| kind.or(given.clone())));
            }
            Some(_) => return Type::ANY,
        }
        for (argument, kind) in applied.arguments.iter().zip(applied.given) {
            if argument.spread {
                return Type::ANY;
            }
            if let Some(name) = argument.name.as_deref() {
                fields.retain(|(known, _)| known != name);
                fields.push((name.to_owned(), kind.clone()));
            }
        }
        self.written_record(fields, &applied.place)
    }

    /// Types a test.
    pub(super) fn infer_test(&mut self, of: &Expr, name: &Spanned<String>, arguments: &[Argument]) -> Type {
        let need = match name.value.as_str() {
            "defined" | "undefined" => Need::Nothing,
            _ => Need::Present,
        };
        let operand = self.infer_operand(of, need);
        let given = self.infer_arguments(arguments);
        for (argument, kind) in arguments.iter().zip(&given) {
            if matches!(name.value.as_str(), "eq" | "equalto" | "sameas" | "ne") {
                self.choice_compared((of, &Kind::Any), (&argument.value, &kind.kind), name.value == "ne");
            }
        }
        self.hold_test(&Applied {
            what: "test",
            name: &name.value,
            place: name.range.clone(),
            of: Some(of),
            each: false,
            operand,
            arguments,
            given: &given,
        });
        Type::BOOL
    }

    /// Holds a test that a filter names by a text, for each item of a list.
    pub(super) fn item_test(&mut self, of: Option<&Expr>, item: Type, at: usize, outer: &Applied<'_>) {
        let Some(named) = outer.arguments.get(at).filter(|argument| argument.name.is_none()) else { return };
        let Some(name) = named.value.as_text() else {
            // Any other value is made a text, which names no test.
            if !matches!(outer.given[at].kind, Kind::Any | Kind::None) && !outer.given[at].kind.is_text() {
                let found = Found { kind: outer.given[at].kind.clone(), one_of: false };
                self.wrong_value(outer, &named.value, &found, "the name of a test");
            }
            return;
        };
        if TESTS_OF_TEXT.contains(&name) && item.lack.has(Lack::ABSENT.union(Lack::SILENT)) {
            let field = outer.arguments.first().filter(|_| at > 0).and_then(|argument| argument.value.as_text());
            of.iter().for_each(|of| self.missing_for_test(of, name, &named.value, field));
            return;
        }
        self.hold_test(&Applied {
            what: "test",
            name,
            place: named.value.range.clone(),
            of,
            each: true,
            operand: item,
            arguments: &outer.arguments[at + 1..],
            given: &outer.given[at + 1..],
        });
    }

    fn hold_test(&mut self, applied: &Applied<'_>) {
        match signature::find_signature(signature::TESTS, applied.name) {
            Some(signature) => _ = self.check_signature(applied, signature),
            // A name that is no text of a filter was reported where it was read.
            None if applied.each => self.unknown_applied(applied, signature::TESTS),
            None => {}
        }
    }
}

/// Whether a number has no fraction, of whatever kind it is.
fn is_rounded(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Filter { of: Some(_), name, arguments } => name.value == "round" && arguments.is_empty(),
        ExprKind::Arithmetic { op: Operator::FloorDiv, .. } => true,
        _ => false,
    }
}

/// How many numbers there are from the first of these bounds to the second, in steps of the third.
fn count_range(bounds: &[i64]) -> u64 {
    let (from, to, step) = match *bounds {
        [to] => (0, to, 1),
        [from, to] => (from, to, 1),
        [from, to, step] => (from, to, step),
        _ => return 0,
    };
    let way = if (from < to) == (step > 0) { from.abs_diff(to) } else { 0 };
    way.div_ceil(step.unsigned_abs().max(1))
}

/// The whole number that is written there.
pub(super) fn parse_whole(expr: &Expr) -> Option<i64> {
    match &expr.kind {
        ExprKind::Const(Const::Int(number)) => Some(*number),
        ExprKind::Const(Const::Bool(truth)) => Some(i64::from(*truth)),
        // Up to there a float holds every whole number exactly, so the cast loses nothing.
        ExprKind::Const(Const::Float(number)) if number.fract() == 0.0 && number.abs() < 1e15 => Some(*number as i64),
        ExprKind::Negative(of) if !matches!(of.kind, ExprKind::Const(Const::Bool(_))) => parse_whole(of)?.checked_neg(),
        _ => None,
    }
}
