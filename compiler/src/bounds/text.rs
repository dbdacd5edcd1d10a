//! How much the `{{ … }}` and `{% … %}` of a text put there, in bytes, besides its fixed text and its directives.
//!
//! In: a text and the step that reads it. Out: an [`Amount`] that is never too small: of two branches the longer one
//! counts, and a loop as often as its list can have items. A loop over a list that declares no `max` has no limit.

use swarmc_plan::{Directive, Segment, Step, Template};

use super::amount::{Amount, Cause, Times, directive_source};
use super::meter::Meter;
use super::schema::Types;
use super::value::{ESCAPED, LOG, NUMBER, PATH, Scope};
use crate::template::{self, Const, Expr, ExprKind, Operator, Part, Root, Statement, Target};

/// What the logic of a text of `reader` puts there.
pub(super) fn measure_logic<'p>(
    scope: &Scope<'p>,
    text: &'p Template,
    reader: Option<&'p Step>,
    types: &mut Types<'p>,
    meter: &mut Meter<'_>,
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
            sum.plus(meter.parse_tree(inner).map_or(Amount::unbounded(open), |tree| {
                Writer::new(scope, reader, open, types).measure_expression(&tree)
            }))
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
                source.push_str(&directive_source(directive));
            }
            Segment::Logic(expression) => source.push_str(&expression.source),
        }
    }
    let scanned = template::scan(&source);
    if scanned.logic.is_empty() {
        return Amount::unbounded(open);
    }
    let is_directive = |&index: &usize| matches!(scanned.parts[index], Part::Directive(_));
    writer.parts = (0..scanned.parts.len()).filter(is_directive).collect();
    writer.loops = measure_loops(&scanned.parts, &source).into_iter();
    writer.measure_statements(&scanned.logic)
}

/// Whether a block opens a loop.
fn is_loop(block: &str) -> bool {
    block_content(block).starts_with("for ")
}

/// What stands in a block behind its delimiter.
fn block_content(block: &str) -> &str {
    block.trim_start_matches(['{', '%', '-', '+']).trim_start()
}

/// The bytes of the fixed text in each loop, in the order in which they begin.
fn measure_loops(parts: &[Part], source: &str) -> Vec<u64> {
    let (mut sums, mut open) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(range) => open.iter().for_each(|&index: &usize| sums[index] += range.len() as u64),
            Part::Logic(range) if is_loop(&source[range.clone()]) => {
                open.push(sums.len());
                sums.push(0);
            }
            Part::Logic(range) if block_content(&source[range.clone()]).starts_with("endfor") => _ = open.pop(),
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

    fn measure_statements(&mut self, list: &[Statement]) -> Amount<'p> {
        list.iter().fold(Amount::ZERO, |sum, statement| sum.plus(self.measure_statement(statement)))
    }

    fn measure_statement(&mut self, statement: &Statement) -> Amount<'p> {
        match statement {
            Statement::Emit(expression) => self.measure_emit(expression),
            // Outside of loops, directives and fixed text have been counted.
            Statement::Directive(part) if self.depth > 0 => self.measure_directive(*part),
            Statement::Directive(_) | Statement::Text(_) | Statement::Do(_) => Amount::ZERO,
            Statement::Set { target, .. } => {
                self.bind_target(target, None);
                Amount::ZERO
            }
            Statement::If { then, otherwise, .. } => {
                let then = self.measure_statements(then);
                then.maximum(self.measure_statements(otherwise))
            }
            Statement::With { assignments, body } => {
                let outer = self.names.len();
                assignments.iter().for_each(|(target, _)| self.bind_target(target, None));
                let sum = self.measure_statements(body);
                self.names.truncate(outer);
                sum
            }
            Statement::AutoEscape { body, .. } => self.measure_statements(body),
            Statement::For { target, list, body, otherwise, .. } => {
                let fixed = self.loops.next().unwrap_or_default();
                let (outer, around) = (self.names.len(), std::mem::take(&mut self.together));
                // Ahead of the target: the list does not see the names of its own loop.
                let (item, length) =
                    (self.scope.item_schema(list, self.types).or(self.find_items(list)), self.list_length(list));
                self.depth += 1;
                self.bind_target(target, item);
                let once = self.measure_statements(body).plus(Amount::at_most(fixed));
                self.depth -= 1;
                self.names.truncate(outer);
                let together = std::mem::replace(&mut self.together, around);
                let rounds = once.times(length.map_or(Times::Open(self.open), Times::Most));
                // The `else` of a loop stands there only where the list is empty.
                rounds.plus(Amount::at_most(together)).maximum(self.measure_statements(otherwise))
            }
            // Their loops have to be passed.
            Statement::Capture { target, body, .. } => {
                self.measure_statements(body);
                self.bind_target(target, None);
                Amount::unbounded(self.open)
            }
            Statement::Filter { body, .. } => {
                self.measure_statements(body);
                Amount::unbounded(self.open)
            }
        }
    }

    /// A directive in a loop.
    fn measure_directive(&mut self, part: usize) -> Amount<'p> {
        let directive = self.parts.iter().position(|&place| place == part).and_then(|nth| self.directives.get(nth));
        match directive {
            Some(directive) => self.scope.measure_directive(directive, self.reader, self.types),
            None => Amount::unbounded(self.open),
        }
    }

    fn bind_target(&mut self, target: &Target, known: Known<'p>) {
        match target {
            Target::Name(name) => self.names.push((name.value.clone(), known, self.depth)),
            Target::Items(targets) => targets.iter().for_each(|target| self.bind_target(target, None)),
            Target::Field(_) => {}
        }
    }

    /// The items of a list that a name of the text leads to.
    fn find_items(&self, list: &Expr) -> Known<'p> {
        let (schema, limit) = self.find_known(list)?;
        Some((self.types.item_schema(schema)?.0, limit))
    }

    /// How many items a list can have.
    fn list_length(&mut self, list: &Expr) -> Option<u64> {
        match self.find_known(list) {
            Some((schema, _)) => self.types.item_schema(schema)?.1,
            None => self.scope.list_length(list, self.types),
        }
    }

    /// What is known of a value that a name of the text leads to.
    fn find_known(&self, expr: &Expr) -> Known<'p> {
        match &expr.kind {
            ExprKind::Variable(name) => self.names.iter().rev().find(|(bound, ..)| bound == name)?.1,
            ExprKind::Attribute { of, name } => {
                let (schema, limit) = self.find_known(of)?;
                Some((self.types.field_schema(schema, &name.value)?, limit))
            }
            _ => None,
        }
    }

    /// What an interpolation adds: a field of this loop's item adds no more in all rounds than the whole list.
    fn measure_emit(&mut self, expr: &Expr) -> Amount<'p> {
        let of_this_loop = match root_name(expr) {
            Some(name) => {
                self.names.iter().rev().find(|(bound, ..)| bound == name).is_some_and(|it| it.2 == self.depth)
            }
            None => false,
        };
        match self.find_known(expr) {
            Some((schema, Some(limit))) if of_this_loop && self.types.longest_json(schema).is_none() => {
                self.together = self.together.saturating_add(limit);
                Amount::ZERO
            }
            _ => self.measure_expression(expr),
        }
    }

    /// The text of a value that a name of the text leads to.
    fn measure_variable(&mut self, expr: &Expr) -> Amount<'p> {
        match self.find_known(expr) {
            Some((schema, limit)) => match (self.types.longest_json(schema), limit) {
                (Some(bytes), limit) => Amount::at_most(bytes.min(limit.unwrap_or(u64::MAX))),
                (None, Some(limit)) => Amount::at_most(limit),
                (None, None) => Amount::unbounded(self.open),
            },
            // The number of a round.
            None if self.depth > 0 && root_name(expr) == Some("loop") => Amount::at_most(NUMBER),
            None => Amount::unbounded(self.open),
        }
    }

    /// The text of an expression's value.
    pub(super) fn measure_expression(&mut self, expr: &Expr) -> Amount<'p> {
        match &expr.kind {
            ExprKind::Const(Const::Text(text)) => Amount::at_most(text.len() as u64),
            ExprKind::Const(_) => Amount::at_most(NUMBER),
            ExprKind::Path(path) => self.measure_path(path),
            ExprKind::Variable(_) => self.measure_variable(expr),
            ExprKind::Attribute { of, .. } => match root_name(of) {
                Some(_) => self.measure_variable(expr),
                None => self.measure_expression(of),
            },
            ExprKind::Item { of, .. } | ExprKind::Slice { of, .. } => self.measure_expression(of),
            ExprKind::Not(_) | ExprKind::Compare { .. } | ExprKind::Chain { .. } | ExprKind::Test { .. } => {
                // The longest of their values is `false`.
                Amount::at_most(5)
            }
            ExprKind::Negative(of) => self.measure_expression(of).plus(Amount::at_most(1)),
            ExprKind::And(terms) | ExprKind::Or(terms) => {
                terms.iter().map(|term| self.measure_expression(term)).fold(Amount::at_most(5), Amount::maximum)
            }
            ExprKind::Arithmetic { left, op: Operator::Add, right } | ExprKind::Concat(left, right) => {
                // A sum of numbers may be longer than both of them: `0.1 + 0.2` gives 0.30000000000000004.
                self.measure_expression(left).plus(self.measure_expression(right)).plus(Amount::at_most(NUMBER))
            }
            ExprKind::Choice { then, otherwise, .. } => {
                let otherwise = otherwise.as_ref().map_or(Amount::ZERO, |other| self.measure_expression(other));
                self.measure_expression(then).maximum(otherwise)
            }
            ExprKind::Filter { of: Some(of), name, arguments } => {
                let of = self.measure_expression(of);
                match name.value.as_str() {
                    "trim" | "string" | "first" | "last" | "min" | "max" | "sort" | "reverse" | "unique" | "list"
                    | "safe" => of,
                    // Other cases of a letter can be longer.
                    "upper" | "lower" | "title" | "capitalize" => of.times(3_u64),
                    "length" | "count" | "int" | "float" | "round" | "abs" | "bool" => Amount::at_most(NUMBER),
                    "tojson" | "escape" | "e" => of.times(ESCAPED).plus(Amount::at_most(2)),
                    "default" | "d" => arguments
                        .iter()
                        .map(|argument| self.measure_expression(&argument.value))
                        .fold(of, Amount::maximum),
                    _ => Amount::unbounded(self.open),
                }
            }
            ExprKind::List(items) => items
                .iter()
                .map(|item| {
                    let amount = self.measure_expression(item);
                    // Texts within a list stand in quotes, and have escapes for what is not plain.
                    let is_plain = match &item.kind {
                        ExprKind::Const(constant) => !matches!(constant, Const::Text(_)),
                        other => matches!(other, ExprKind::List(_)),
                    };
                    if is_plain { amount } else { amount.times(ESCAPED) }.plus(Amount::at_most(4))
                })
                .fold(Amount::at_most(2), Amount::plus),
            ExprKind::Arithmetic { .. }
            | ExprKind::Filter { of: None, .. }
            | ExprKind::Call { .. }
            | ExprKind::Map(_) => Amount::unbounded(self.open),
        }
    }

    fn measure_path(&mut self, path: &template::Path) -> Amount<'p> {
        let name = path.name().unwrap_or_default();
        let fields: Vec<&str> = path.fields().iter().map(|field| field.text.as_str()).collect();
        match path.root {
            Root::Output | Root::Previous => self
                .scope
                .find_step(name)
                .map_or(Amount::unbounded(self.open), |step| self.scope.measure_output(step, &fields, self.types)),
            Root::Status => Amount::at_most(9),
            Root::Exit | Root::Iteration | Root::Index => Amount::at_most(NUMBER),
            Root::Error => self.scope.measure_error(name, self.open),
            Root::Log => Amount::at_most(LOG),
            Root::Param => self.scope.param_value(name, &fields, self.open, self.types),
            Root::Item => self.scope.measure_item(self.reader, &fields, self.open, self.types),
            Root::Run => Amount::at_most(PATH),
            Root::Task => Amount::at_most(swarmc_plan::LONGEST_NAME as u64),
            _ => Amount::unbounded(self.open),
        }
    }
}

/// The name that a chain of fields begins with.
fn root_name(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Variable(name) => Some(name),
        ExprKind::Attribute { of, .. } => root_name(of),
        _ => None,
    }
}
