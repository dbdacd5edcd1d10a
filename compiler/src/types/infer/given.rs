//! What is given where a type is declared: arguments of calls, and computed values.
//!
//! In: the type and the text that is given. Out: what in it does not fit, or nothing where it fits or only the run can
//! know. What is written out is held against the type part by part, everything else by its type.

use std::ops::Range;

use serde_json::{Number, Value};

use super::super::fit::{describe_kind, describe_limit_misfit, describe_part, is_whole};
use super::super::{Kind, Lack, Limits, Type};
use super::{Checker, Need};
use crate::template::{Const, Directive, Expr, ExprKind, Part, Root, Statement, Template, constant_number};

/// What is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'w> {
    pub(crate) kind: &'w Type,
    pub(crate) limits: &'w Limits,
    /// Whether a text is made of whatever is given, as for a parameter.
    pub(crate) any_as_text: bool,
    /// Whether it may be `null`, as for a parameter that has a default.
    pub(crate) nullable: bool,
    /// Whether it is a part of what is written out: there `a if b` without `else` is `null`, and elsewhere an empty text.
    pub(crate) part: bool,
}

/// What does not fit.
pub(crate) struct Unfit {
    /// Its place in the text.
    pub(crate) range: Range<usize>,
    /// What is wrong: `it is not a whole number`.
    pub(crate) said: String,
    /// The step that puts it out, where what is wrong is that its text has no type.
    pub(crate) untyped: Option<String>,
    /// What it is, where what is wrong is that it is declared to be any text.
    pub(crate) declared: Option<Origin>,
}

/// Where a value that is given as it stands comes from.
pub(crate) struct Origin {
    pub(crate) root: Root,
    pub(crate) name: Option<String>,
    /// Whether it is all of it, and no field.
    pub(crate) whole: bool,
}

impl Unfit {
    fn new(range: &Range<usize>, said: String) -> Unfit {
        Unfit { range: range.clone(), said, untyped: None, declared: None }
    }
}

/// The texts and directives of a text without logic, as statements.
fn list_statements(parts: &[Part]) -> Vec<Statement> {
    let statement = |(index, part): (usize, &Part)| match part {
        Part::Text(range) => Some(Statement::Text(range.clone())),
        Part::Directive(_) => Some(Statement::Directive(index)),
        Part::Escape | Part::Logic(_) => None,
    };
    parts.iter().enumerate().filter_map(statement).collect()
}

impl Checker<'_> {
    /// What of a text does not fit.
    pub(crate) fn find_unfit(&mut self, wanted: Wanted<'_>, template: &Template) -> Option<Unfit> {
        let text = self.passage.text();
        match (template.parts.as_slice(), template.logic.as_slice()) {
            (parts, _) if parts.iter().all(|part| matches!(part, Part::Text(_))) => {
                let types = self.env.whole.types;
                let kind = types.underlying_kind(&wanted.kind.kind);
                // A number that is computed is a whole one where it has no fraction, and stored without it.
                let number = text.trim().parse::<Number>().ok().filter(|_| !wanted.any_as_text && *kind == Kind::Int);
                if let Some(number) = number.filter(is_whole) {
                    let said = describe_limit_misfit(wanted.limits, &number, &format!("it is {number}"))?;
                    return Some(Unfit::new(&(0..text.len()), said));
                }
                let said = types.describe_misfit(wanted.kind, wanted.limits, text, "it").or_else(|| {
                    let is_int = wanted.any_as_text && *types.underlying_kind(&wanted.kind.kind) == Kind::Int;
                    let is_too_large = is_int && text.trim().parse::<Number>().is_ok_and(|number| !number.is_i64());
                    is_too_large.then(|| "it is larger than the 64 bits of an `int`".to_owned())
                });
                Some(Unfit::new(&(0..text.len()), said?))
            }
            ([Part::Directive(directive)], _) => self.check_directive(wanted, directive),
            ([Part::Logic(_)], [Statement::Emit(expr)]) => self.check_expression(wanted, expr, "it"),
            // For any text it is no matter how it is put together.
            _ if is_plain(self.env.whole.types.underlying_kind(&wanted.kind.kind)) => None,
            // What is escaped is known when it is there.
            (parts, []) if parts.iter().any(|part| matches!(part, Part::Escape)) => None,
            (parts, []) => self.check_statements(wanted, &list_statements(parts), parts, None),
            (parts, statements) => self.check_statements(wanted, statements, parts, None),
        }
    }

    /// Holds a text that statements choose against a type: it is one of the texts of its branches. A text that is put
    /// together is known when it is there. `chosen` is the condition that chooses the statements.
    fn check_statements(
        &mut self,
        wanted: Wanted<'_>,
        statements: &[Statement],
        parts: &[Part],
        chosen: Option<&Expr>,
    ) -> Option<Unfit> {
        let text = self.passage.text();
        let is_blank = |range: &Range<usize>| text.get(range.clone()).is_some_and(|text| text.trim().is_empty());
        let says_nothing = |it: &&Statement| match it {
            Statement::Text(range) => is_blank(range),
            Statement::Set { .. } | Statement::Capture { .. } | Statement::Do(_) => true,
            _ => false,
        };
        let mut said = statements.iter().filter(|it| !says_nothing(it));
        match (said.next(), said.next()) {
            (None, _) => {
                let types = self.env.whole.types;
                types.describe_misfit(wanted.kind, wanted.limits, "", "it")?;
                Some(match chosen {
                    Some(chosen) => Unfit::new(&chosen.range, "where it does not hold, the text is empty".to_owned()),
                    None => Unfit::new(&(0..text.len()), "the text is empty".to_owned()),
                })
            }
            (Some(Statement::Text(range)), None) => {
                // What is escaped is known when it is there.
                let written = text.get(range.clone()).filter(|written| !written.contains("\\<<"))?;
                let said = self.env.whole.types.describe_misfit(wanted.kind, wanted.limits, written, "it")?;
                let start = range.start + (written.len() - written.trim_start().len());
                Some(Unfit::new(&(start..start + written.trim().len()), said))
            }
            (Some(Statement::Emit(expr)), None) => self.check_expression(wanted, expr, "it"),
            (Some(Statement::Directive(part)), None) => match parts.get(*part)? {
                Part::Directive(directive) => self.check_directive(wanted, directive),
                Part::Text(_) | Part::Escape | Part::Logic(_) => None,
            },
            (Some(Statement::If { condition, then, otherwise }), None) => self
                .check_side(condition, true, |checker| checker.check_statements(wanted, then, parts, Some(condition)))
                .or_else(|| {
                    let check =
                        |checker: &mut Self| checker.check_statements(wanted, otherwise, parts, Some(condition));
                    self.check_side(condition, false, check)
                }),
            _ => self.check_pieces(wanted, statements),
        }
    }

    /// Holds what is written out of a text that is put together against a type: what else is in it, the run knows.
    fn check_pieces(&self, wanted: Wanted<'_>, statements: &[Statement]) -> Option<Unfit> {
        let text = self.passage.text();
        let resolved = self.env.whole.types.underlying_kind(&wanted.kind.kind);
        let pieces: Vec<(&Range<usize>, &str)> = statements
            .iter()
            .filter_map(|statement| match statement {
                Statement::Text(range) => Some((range, text.get(range.clone())?)),
                _ => None,
            })
            .collect();
        // What is escaped is known when it is there, and of a text with a block of code that alone counts.
        if pieces.iter().any(|(_, piece)| piece.contains("\\<<") || piece.contains("```")) {
            return None;
        }
        let is_null = |piece: &str| wanted.kind.lack != Lack::NEVER && "null".contains(piece);
        let fits = |piece: &str| is_null(piece) || can_be_piece(resolved, piece);
        let (range, wrong) = pieces.into_iter().find(|(_, piece)| !fits(piece.trim()))?;
        let start = range.start + (wrong.len() - wrong.trim_start().len());
        let said = format!("with it, the text is not {}", describe_kind(resolved));
        Some(Unfit::new(&(start..start + wrong.trim().len()), said))
    }

    /// Holds what stands where `condition` is `truth` against a type.
    fn check_side(
        &mut self,
        condition: &Expr,
        truth: bool,
        check: impl FnOnce(&mut Self) -> Option<Unfit>,
    ) -> Option<Unfit> {
        let mark = self.presence.mark();
        let known = self.narrow_condition(condition, truth);
        self.presence.learn(known);
        // The condition may have asked what the text says.
        let found = check(self).filter(|unfit| unfit.declared.is_none());
        self.presence.forget(mark);
        found
    }

    fn check_directive(&mut self, wanted: Wanted<'_>, directive: &Directive) -> Option<Unfit> {
        // Ahead of the filters: it reports what is wrong with the fields.
        let given = self.infer_directive(directive);
        for filter in &directive.filters {
            if let swarmc_plan::Filter::Default(text) = &filter.value
                && let Some(said) =
                    self.env.whole.types.describe_misfit(wanted.kind, wanted.limits, text, "its default")
            {
                return Some(Unfit::new(&filter.range, said));
            }
        }
        if let Some(unfit) = self.check_cut(wanted, directive) {
            return Some(unfit);
        }
        // What another filter leaves of a text is known when it is there.
        if directive.filters.iter().any(|filter| !matches!(filter.value, swarmc_plan::Filter::Default(_))) {
            return None;
        }
        let origin = match directive.kind {
            crate::template::Kind::Read(root) => {
                let name = directive.name.as_ref().map(|name| name.value.clone());
                Some(Origin { root, name, whole: directive.fields.is_empty() })
            }
            crate::template::Kind::Include | crate::template::Kind::File => None,
        };
        self.check_type(wanted, &given, origin, &directive.range)
    }

    /// What is left of the JSON of a list or a record where a part is wanted of it: no JSON, if it is certainly cut and has
    /// none within it. The run looks for a piece of JSON in a text.
    fn check_cut(&self, wanted: Wanted<'_>, directive: &Directive) -> Option<Unfit> {
        let types = self.env.whole.types;
        let is_json = |kind: &Kind| matches!(kind, Kind::List(_) | Kind::Map(_) | Kind::Record(_));
        let crate::template::Kind::Read(root) = directive.kind else { return None };
        let name = directive.name.as_ref().map(|name| name.value.as_str());
        let given = self.env.root_type(root, name);
        let holds = directive.fields.is_empty() && is_json(types.underlying_kind(&given.kind));
        let wanted_kind = types.underlying_kind(&wanted.kind.kind);
        let filter = directive.filters.first().filter(|_| holds && is_json(wanted_kind))?;
        let least = types.least_json(&given);
        let said = match filter.value {
            swarmc_plan::Filter::Chars(count) if count < least && !types.may_hold(&given, wanted_kind) => {
                format!("it is cut after {count} characters, and any value of `{given}` has {least} or more")
            }
            // It is stored in one line.
            swarmc_plan::Filter::Lines(first, _) if first > 1 => "its JSON has one line".to_owned(),
            _ => return None,
        };
        Some(Unfit::new(&filter.range, said))
    }

    /// Holds an expression against a type; messages call it `place`. As deep as the expression is.
    fn check_expression(&mut self, wanted: Wanted<'_>, expr: &Expr, place: &str) -> Option<Unfit> {
        let types = self.env.whole.types;
        let resolved = types.underlying_kind(&wanted.kind.kind);
        match (&expr.kind, resolved) {
            (ExprKind::Choice { condition, then, otherwise }, _) => {
                // Its type is of no interest: this reports what is wrong in it.
                self.check_truth(condition);
                let mut side = |truth: bool, branch: &Expr| {
                    self.check_side(condition, truth, |checker| checker.check_expression(wanted, branch, place))
                };
                match otherwise {
                    Some(otherwise) => side(true, then).or_else(|| side(false, otherwise)),
                    None => side(true, then).or_else(|| check_lack(wanted, resolved, Lack::SILENT, &expr.range)),
                }
            }
            _ if wanted.nullable && matches!(&expr.kind, ExprKind::Const(Const::None)) => None,
            (ExprKind::List(_) | ExprKind::Map(_), Kind::Any | Kind::None) => None,
            (ExprKind::List(_) | ExprKind::Map(_), _) if wanted.any_as_text && is_plain(resolved) => None,
            _ if wanted.any_as_text && is_plain(resolved) || matches!(resolved, Kind::Any | Kind::None) => {
                let given = self.infer_operand(expr, Need::Present);
                check_lack(wanted, resolved, find_lack(&given), &expr.range)
            }
            (ExprKind::List(items), Kind::List(item)) => {
                let count = items.len();
                let said =
                    describe_limit_misfit(wanted.limits, &Number::from(count), &format!("{place} has {count} items"));
                said.map(|said| Unfit::new(&expr.range, said)).or_else(|| {
                    let each =
                        |(index, each)| self.check_part(item, each, &describe_part(place, &format!("[{index}]")));
                    items.iter().enumerate().find_map(each)
                })
            }
            (ExprKind::Map(entries), Kind::Map(item)) => entries.iter().find_map(|(key, value)| match key.as_text() {
                Some(name) => self.check_part(item, value, &describe_part(place, name)),
                None => self.check_part(item, value, "it"),
            }),
            (ExprKind::Map(entries), Kind::Record(_)) => self.check_fields(wanted, entries, expr, place),
            (ExprKind::List(_) | ExprKind::Map(_), _) => {
                Some(Unfit::new(&expr.range, format!("{place} is not {}", describe_kind(resolved))))
            }
            (ExprKind::Const(Const::Text(text)), _) => {
                let said = types.describe_misfit(wanted.kind, wanted.limits, text, place)?;
                Some(Unfit::new(&expr.range, said))
            }
            _ => match literal_value(expr) {
                Some(Value::Number(number)) if !wanted.any_as_text && *resolved == Kind::Int && is_whole(&number) => {
                    describe_limit_misfit(wanted.limits, &number, &format!("{place} is {number}"))
                        .map(|said| Unfit::new(&expr.range, said))
                }
                Some(value) => {
                    let said = types.describe_value_misfit(wanted.kind, wanted.limits, &value, place)?;
                    Some(Unfit::new(&expr.range, said))
                }
                None => {
                    let given = self.infer_operand(expr, Need::Present);
                    if let (Kind::Int, Some(number)) = (resolved, constant_number(expr).filter(has_fraction)) {
                        return Some(Unfit::new(&expr.range, format!("{place} is {number}, not a whole number")));
                    }
                    let origin = expr.as_path().map(|path| {
                        let name = path.name().map(str::to_owned);
                        Origin { root: path.root, name, whole: path.fields().is_empty() }
                    });
                    self.check_type(wanted, &given, origin, &expr.range)
                }
            },
        }
    }

    /// A part of what is written out.
    fn check_part(&mut self, kind: &Type, expr: &Expr, place: &str) -> Option<Unfit> {
        self.check_expression(Wanted::part_of(kind, &Limits::default()), expr, place)
    }

    /// A map that is written out, where a record is asked for.
    fn check_fields(
        &mut self,
        wanted: Wanted<'_>,
        entries: &[(Expr, Expr)],
        whole: &Expr,
        place: &str,
    ) -> Option<Unfit> {
        let types = self.env.whole.types;
        let Kind::Record(record) = types.underlying_kind(&wanted.kind.kind) else { return None };
        for (key, value) in entries {
            // What a computed key is called is known when it is there.
            let name = key.as_text()?;
            let Some(field) = record.fields.iter().find(|field| field.name == name) else {
                let said = format!("it has a field {}, which the type does not have", describe_part(place, name));
                return Some(Unfit::new(&key.range, said));
            };
            let wanted = Wanted::part_of(&field.kind, &field.limits);
            if let Some(unfit) = self.check_expression(wanted, value, &describe_part(place, name)) {
                return Some(unfit);
            }
        }
        let given = |name: &str| entries.iter().any(|(key, _)| key.as_text() == Some(name));
        let missing = record.fields.iter().find(|field| field.kind.lack == Lack::NEVER && !given(&field.name))?;
        Some(Unfit::new(&whole.range, format!("{} is missing", describe_part(place, &missing.name))))
    }

    /// Holds a type against a type.
    fn check_type(
        &self,
        wanted: Wanted<'_>,
        given: &Type,
        origin: Option<Origin>,
        range: &Range<usize>,
    ) -> Option<Unfit> {
        let types = self.env.whole.types;
        let resolved = types.underlying_kind(&wanted.kind.kind);
        if let Some(unfit) = check_lack(wanted, resolved, find_lack(given), range) {
            return Some(unfit);
        }
        if wanted.any_as_text && is_plain(resolved) {
            return None;
        }
        let inner = types.underlying_kind(&given.kind);
        let declares = origin.as_ref().is_some_and(Origin::is_declared);
        let is_typed = !is_plain(resolved) && !matches!(resolved, Kind::Any | Kind::None);
        if matches!(inner, Kind::Text) {
            let origin = origin.filter(|origin| origin.whole && is_typed && origin.is_output())?;
            let untyped = Some(origin.name?);
            return Some(Unfit { untyped, ..Unfit::new(range, "it is text without a type".to_owned()) });
        }
        // What is declared to be any text need not say what is wanted, and could be declared as what it is.
        if let Some(origin) = origin.filter(|origin| is_typed && is_plain(inner) && origin.is_declared()) {
            return Some(Unfit { declared: Some(origin), ..Unfit::new(range, format!("it is `{given}`")) });
        }
        // In a value a text counts as what it says, and a number without a fraction is a whole one.
        if !wanted.any_as_text
            && (inner.is_text() && !resolved.is_text() || (inner, resolved) == (&Kind::Float, &Kind::Int))
        {
            let misfits = |word: &String| types.describe_misfit(wanted.kind, wanted.limits, word, "it").is_some();
            let is_no_word =
                matches!(inner, Kind::Enum(words) if !words.words.is_empty() && words.words.iter().all(misfits));
            return is_no_word.then(|| Unfit::new(range, format!("it is `{given}`")));
        }
        let said = match types.is_assignable(wanted.kind, given) {
            true => types.describe_part_misfit(wanted.kind, given, declares)?,
            false => format!("it is `{given}`"),
        };
        Some(Unfit::new(range, said))
    }
}

impl<'w> Wanted<'w> {
    /// A part of what is written out.
    fn part_of(kind: &'w Type, limits: &'w Limits) -> Wanted<'w> {
        Wanted { kind, limits, any_as_text: false, nullable: kind.lack != Lack::NEVER, part: true }
    }
}

fn find_lack(given: &Type) -> Lack {
    if given.kind == Kind::None { Lack::NULL } else { given.lack }
}

/// Holds what may be no value against a place that needs one of the kind `resolved`.
fn check_lack(wanted: Wanted<'_>, resolved: &Kind, lack: Lack, range: &Range<usize>) -> Option<Unfit> {
    let takes_empty = is_plain(resolved) || matches!(resolved, Kind::Any | Kind::None);
    let said = match wanted.part {
        _ if lack.has(Lack::NULL) && !wanted.nullable => "it may be `null`",
        true if lack.has(Lack::SILENT) && !wanted.nullable => "without `else`, it may be `null`",
        false if lack.has(Lack::SILENT) && !takes_empty => "without `else`, it may be an empty text",
        _ => return None,
    };
    Some(Unfit::new(range, said.to_owned()))
}

impl Origin {
    /// Whether a step puts it out.
    fn is_output(&self) -> bool {
        matches!(self.root, Root::Output | Root::Previous | Root::Input)
    }

    /// Whether a spec says of which type it is.
    fn is_declared(&self) -> bool {
        self.is_output() || matches!(self.root, Root::Param | Root::Item)
    }
}

/// Whether any text is of this kind.
fn is_plain(kind: &Kind) -> bool {
    matches!(kind, Kind::Text | Kind::String | Kind::File | Kind::Dir)
}

/// Whether a text of this kind can have this piece. A text around a list or a record is left out when it is read.
fn can_be_piece(kind: &Kind, piece: &str) -> bool {
    match kind {
        Kind::Int | Kind::Float => piece.bytes().all(|byte| b"0123456789+-.eE".contains(&byte)),
        Kind::Bool => "true".contains(piece) || "false".contains(piece),
        // JSON of a word has quotes, and may have escapes.
        Kind::Enum(words) => piece.contains(['"', '\\']) || words.words.iter().any(|word| word.contains(piece)),
        _ => true,
    }
}

/// Whether a number that is nearly this has a fraction.
fn has_fraction(number: &f64) -> bool {
    (number - number.round()).abs() > 1e-6 && number.abs() < 1e9
}

/// A value that is written out, and holds no others.
fn literal_value(expr: &Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Const(constant) => Some(match constant {
            Const::None => Value::Null,
            Const::Bool(truth) => Value::Bool(*truth),
            Const::Int(number) => Value::from(*number),
            Const::Float(number) => Value::Number(Number::from_f64(*number)?),
            Const::Text(text) => Value::String(text.clone()),
        }),
        ExprKind::Negative(of) => match of.kind {
            ExprKind::Const(Const::Int(number)) => Some(Value::from(number.checked_neg()?)),
            ExprKind::Const(Const::Float(number)) => Some(Value::Number(Number::from_f64(-number)?)),
            _ => None,
        },
        _ => None,
    }
}
