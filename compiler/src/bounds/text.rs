//! How much the `{{ … }}` and `{% … %}` of a text put there, in bytes, besides its fixed text and its directives.
//!
//! In: a text and the step that reads it. Out: an [`Amount`] that is never too small: of two branches the longer one
//! counts, and a loop as often as its list can have items. A loop over a list that declares no `max` has no limit.

use swarmc_plan::{Directive, Segment, Step, Template};

use super::amount::{Amount, Cause, Times, written};
use super::schema::Types;
use super::value::{ESCAPED, LOG, NUMBER, PATH, Scope};
use crate::template::{self, Const, Expr, ExprKind, Operator, Part, Root, Statement, Target};

/// What the logic of a text of `reader` puts there.
pub(super) fn logic<'p>(
    scope: &Scope<'p>,
    text: &'p Template,
    reader: Option<&'p Step>,
    types: &mut Types<'p>,
) -> Amount<'p> {
    let blocks = || {
        text.segments.iter().filter_map(|segment| match segment {
            Segment::Logic(expression) => Some(expression),
            _ => None,
        })
    };
    // A text without statements needs only its interpolations.
    if blocks().all(|block| block.source.starts_with("{{") || block.source.starts_with("{#")) {
        return blocks().filter(|block| block.source.starts_with("{{")).fold(Amount::ZERO, |sum, block| {
            let inner = block.source.trim_start_matches("{{").trim_end_matches("}}").trim_matches(['-', '+']);
            let open = Cause::Logic(block);
            let tree = template::expression(inner).tree;
            sum.plus(tree.map_or(Amount::open(open), |tree| Writer::new(scope, reader, open, types).expression(&tree)))
        });
    }
    // A loop is the likeliest reason for a text without end.
    let Some(open) = blocks().find(|block| is_loop(&block.source)).or(blocks().next()).map(Cause::Logic) else {
        return Amount::ZERO;
    };
    let mut writer = Writer::new(scope, reader, open, types);
    let mut source = String::new();
    for segment in &text.segments {
        match segment {
            Segment::Text(text) => source.push_str(text),
            Segment::Directive(directive) => {
                writer.directives.push(directive);
                source.push_str(&written(directive));
            }
            Segment::Logic(expression) => source.push_str(&expression.source),
        }
    }
    let scanned = template::scan(&source);
    if scanned.logic.is_empty() {
        return Amount::open(open);
    }
    let is_directive = |&index: &usize| matches!(scanned.parts[index], Part::Directive(_));
    writer.parts = (0..scanned.parts.len()).filter(is_directive).collect();
    writer.loops = loops(&scanned.parts, &source).into_iter();
    writer.statements(&scanned.logic)
}

/// Whether a block opens a loop.
fn is_loop(block: &str) -> bool {
    words(block).starts_with("for ")
}

/// What stands in a block behind its delimiter.
fn words(block: &str) -> &str {
    block.trim_start_matches(['{', '%', '-', '+']).trim_start()
}

/// The bytes of the fixed text in each loop, in the order in which they begin.
fn loops(parts: &[Part], source: &str) -> Vec<u64> {
    let (mut sums, mut open) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(range) => open.iter().for_each(|&index: &usize| sums[index] += range.len() as u64),
            Part::Logic(range) if is_loop(&source[range.clone()]) => {
                open.push(sums.len());
                sums.push(0);
            }
            Part::Logic(range) if words(&source[range.clone()]).starts_with("endfor") => _ = open.pop(),
            Part::Directive(_) | Part::Escape | Part::Logic(_) => {}
        }
    }
    sums
}

/// The schema of a value and the bytes of the output that it stands in, where they are known.
type Known<'p> = Option<(&'p serde_json::Value, Option<u64>)>;

/// Adds up a text.
pub(super) struct Writer<'s, 'p> {
    scope: &'s Scope<'p>,
    reader: Option<&'p Step>,
    /// Why there is no limit where there is none.
    open: Cause<'p>,
    types: &'s mut Types<'p>,
    directives: Vec<&'p Directive>,
    /// The places of the directives among the parts of the text.
    parts: Vec<usize>,
    /// The bytes of the fixed text in each loop that is still to come.
    loops: std::vec::IntoIter<u64>,
    /// How many loops are around.
    depth: usize,
    /// What all rounds of the innermost loop put there together: items of a list are never longer than the list.
    together: u64,
    /// The names that the text binds and the loops around them, the innermost last.
    names: Vec<(String, Known<'p>, usize)>,
}

impl<'s, 'p> Writer<'s, 'p> {
    pub(super) fn new(
        scope: &'s Scope<'p>,
        reader: Option<&'p Step>,
        open: Cause<'p>,
        types: &'s mut Types<'p>,
    ) -> Writer<'s, 'p> {
        let (directives, parts, names, loops) = (Vec::new(), Vec::new(), Vec::new(), Vec::new().into_iter());
        Writer { scope, reader, open, types, directives, parts, loops, depth: 0, together: 0, names }
    }

    fn statements(&mut self, list: &[Statement]) -> Amount<'p> {
        list.iter().fold(Amount::ZERO, |sum, statement| sum.plus(self.statement(statement)))
    }

    fn statement(&mut self, statement: &Statement) -> Amount<'p> {
        match statement {
            Statement::Emit(expression) => self.emitted(expression),
            // Outside of loops, directives and fixed text have been counted.
            Statement::Directive(part) if self.depth > 0 => self.repeated(*part),
            Statement::Directive(_) | Statement::Do(_) => Amount::ZERO,
            Statement::Set { target, .. } => {
                self.bind(target, None);
                Amount::ZERO
            }
            Statement::If { then, otherwise, .. } => {
                let then = self.statements(then);
                then.or(self.statements(otherwise))
            }
            Statement::With { assignments, body } => {
                let outer = self.names.len();
                assignments.iter().for_each(|(target, _)| self.bind(target, None));
                let sum = self.statements(body);
                self.names.truncate(outer);
                sum
            }
            Statement::AutoEscape { body, .. } => self.statements(body),
            Statement::For { target, list, body, otherwise, .. } => {
                let fixed = self.loops.next().unwrap_or_default();
                let (outer, around) = (self.names.len(), std::mem::take(&mut self.together));
                let (item, length) = (self.scope.list(list, self.types).or(self.items(list)), self.length(list));
                self.depth += 1;
                self.bind(target, item);
                let once = self.statements(body).plus(Amount::most(fixed));
                self.depth -= 1;
                self.names.truncate(outer);
                let together = std::mem::replace(&mut self.together, around);
                let rounds = once.times(length.map_or(Times::Open(self.open), Times::Most));
                rounds.plus(Amount::most(together)).or(self.statements(otherwise))
            }
            // Their loops have to be passed.
            Statement::Capture { target, body, .. } => {
                self.statements(body);
                self.bind(target, None);
                Amount::open(self.open)
            }
            Statement::Filter { body, .. } => {
                self.statements(body);
                Amount::open(self.open)
            }
        }
    }

    /// A directive in a loop.
    fn repeated(&mut self, part: usize) -> Amount<'p> {
        let directive = self.parts.iter().position(|&place| place == part).and_then(|nth| self.directives.get(nth));
        match directive {
            Some(directive) => self.scope.directive(directive, self.reader, self.types),
            None => Amount::open(self.open),
        }
    }

    fn bind(&mut self, target: &Target, known: Known<'p>) {
        match target {
            Target::Name(name) => self.names.push((name.value.clone(), known, self.depth)),
            Target::Items(targets) => targets.iter().for_each(|target| self.bind(target, None)),
            Target::Field(_) => {}
        }
    }

    /// The items of a list that a name of the text leads to.
    fn items(&self, list: &Expr) -> Known<'p> {
        let (schema, limit) = self.known(list)?;
        Some((self.types.items(schema)?.0, limit))
    }

    /// How many items a list can have.
    fn length(&mut self, list: &Expr) -> Option<u64> {
        match self.known(list) {
            Some((schema, _)) => self.types.items(schema)?.1,
            None => self.scope.length(list, self.types),
        }
    }

    /// What is known of a value that a name of the text leads to.
    fn known(&self, expr: &Expr) -> Known<'p> {
        match &expr.kind {
            ExprKind::Variable(name) => self.names.iter().rev().find(|(bound, ..)| bound == name)?.1,
            ExprKind::Attribute { of, name } => {
                let (schema, limit) = self.known(of)?;
                Some((self.types.field(schema, &name.value)?, limit))
            }
            _ => None,
        }
    }

    /// What an interpolation adds: a field of this loop's item adds no more in all rounds than the whole list.
    fn emitted(&mut self, expr: &Expr) -> Amount<'p> {
        let of_this_loop = match name(expr) {
            Some(name) => {
                self.names.iter().rev().find(|(bound, ..)| bound == name).is_some_and(|it| it.2 == self.depth)
            }
            None => false,
        };
        match self.known(expr) {
            Some((schema, Some(limit))) if of_this_loop && self.types.longest(schema).is_none() => {
                self.together = self.together.saturating_add(limit);
                Amount::ZERO
            }
            _ => self.expression(expr),
        }
    }

    /// The text of a value that a name of the text leads to.
    fn bound(&mut self, expr: &Expr) -> Amount<'p> {
        match self.known(expr) {
            Some((schema, limit)) => match (self.types.longest(schema), limit) {
                (Some(bytes), limit) => Amount::most(bytes.min(limit.unwrap_or(u64::MAX))),
                (None, Some(limit)) => Amount::most(limit),
                (None, None) => Amount::open(self.open),
            },
            // The number of a round.
            None if self.depth > 0 && name(expr) == Some("loop") => Amount::most(NUMBER),
            None => Amount::open(self.open),
        }
    }

    /// The text of an expression's value.
    pub(super) fn expression(&mut self, expr: &Expr) -> Amount<'p> {
        match &expr.kind {
            ExprKind::Const(Const::Text(text)) => Amount::most(text.len() as u64),
            ExprKind::Const(_) => Amount::most(NUMBER),
            ExprKind::Path(path) => self.path(path),
            ExprKind::Variable(_) => self.bound(expr),
            ExprKind::Attribute { of, .. } => match name(of) {
                Some(_) => self.bound(expr),
                None => self.expression(of),
            },
            ExprKind::Item { of, .. } | ExprKind::Slice { of, .. } => self.expression(of),
            ExprKind::Not(_) | ExprKind::Compare { .. } | ExprKind::Chain { .. } | ExprKind::Test { .. } => {
                Amount::most(5)
            }
            ExprKind::Negative(of) => self.expression(of).plus(Amount::most(1)),
            ExprKind::And(terms) | ExprKind::Or(terms) => {
                terms.iter().map(|term| self.expression(term)).fold(Amount::most(5), Amount::or)
            }
            ExprKind::Arithmetic { left, op: Operator::Add, right } | ExprKind::Concat(left, right) => {
                self.expression(left).plus(self.expression(right)).plus(Amount::most(NUMBER))
            }
            ExprKind::Choice { then, otherwise, .. } => {
                let otherwise = otherwise.as_ref().map_or(Amount::ZERO, |other| self.expression(other));
                self.expression(then).or(otherwise)
            }
            ExprKind::Filter { of: Some(of), name, arguments } => {
                let of = self.expression(of);
                match name.value.as_str() {
                    "trim" | "string" | "first" | "last" | "min" | "max" | "sort" | "reverse" | "unique" | "list"
                    | "safe" => of,
                    // Other cases of a letter can be longer.
                    "upper" | "lower" | "title" | "capitalize" => of.times(3_u64),
                    "length" | "count" | "int" | "float" | "round" | "abs" | "bool" => Amount::most(NUMBER),
                    "tojson" | "escape" | "e" => of.times(ESCAPED).plus(Amount::most(2)),
                    "default" | "d" => {
                        arguments.iter().map(|argument| self.expression(&argument.value)).fold(of, Amount::or)
                    }
                    _ => Amount::open(self.open),
                }
            }
            ExprKind::List(items) => {
                items.iter().map(|item| self.expression(item).plus(Amount::most(4))).fold(Amount::most(2), Amount::plus)
            }
            ExprKind::Arithmetic { .. }
            | ExprKind::Filter { of: None, .. }
            | ExprKind::Call { .. }
            | ExprKind::Map(_) => Amount::open(self.open),
        }
    }

    fn path(&mut self, path: &template::Path) -> Amount<'p> {
        let name = path.name().unwrap_or_default();
        let fields: Vec<&str> = path.fields().iter().map(|field| field.text.as_str()).collect();
        match path.root {
            Root::Output | Root::Previous => self
                .scope
                .step(name)
                .map_or(Amount::open(self.open), |step| self.scope.output(step, &fields, self.types)),
            Root::Status => Amount::most(9),
            Root::Exit | Root::Iteration | Root::Index => Amount::most(NUMBER),
            Root::Error => self.scope.error(name, self.open),
            Root::Log => Amount::most(LOG),
            Root::Param => self.scope.param_value(name, &fields, self.open, self.types),
            Root::Item => self.scope.item(self.reader, &fields, self.open, self.types),
            Root::Run => Amount::most(PATH),
            Root::Task => Amount::most(swarmc_plan::LONGEST_NAME as u64),
            _ => Amount::open(self.open),
        }
    }
}

/// The name that a chain of fields begins with.
fn name(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Variable(name) => Some(name),
        ExprKind::Attribute { of, .. } => name(of),
        _ => None,
    }
}
