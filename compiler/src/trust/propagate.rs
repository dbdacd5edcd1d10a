//! Which of the values that a text reads become part of the rendered text, and how much of each.
//!
//! In: a text with interpolations. Out: the places whose value only decides something (a condition, a comparison, a
//! length), and the places of which only parts go on: of a list that a loop walks over, the fields that its body
//! writes. The rendered text contains no other part of these values.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use crate::model::TemplateText;
use crate::source::Span;
use crate::template::{Expr, ExprKind, Statement, Target};

/// Filters that make a number of whatever they are given.
const COUNTING: &[&str] = &["length", "count", "int", "float", "round", "abs", "sum"];
/// Filters that give one item of a list.
const PICKING: &[&str] = &["first", "last", "min", "max"];
/// Filters that give items of a list, and nothing else.
const SIFTING: &[&str] = &["sort", "reverse", "unique", "list", "select", "reject", "selectattr", "rejectattr"];
/// Stands for any item in the way to a part.
const ITEM: &str = "0";

/// The reads of a text of which not everything goes on.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// Those that only decide something.
    pub idle: HashSet<Span>,
    /// Those of which parts go on, with the fields that lead to each part.
    pub parts: HashMap<Span, Vec<Vec<String>>>,
}

impl Carried {
    /// Adds the reads of a text.
    pub(crate) fn add_prose(&mut self, prose: &TemplateText) {
        if prose.template.logic.is_empty() {
            return;
        }
        let mut walk = Walk::default();
        walk.visit_statements(&prose.template.logic);
        // In order, for the binary search of each read.
        walk.idle.sort_by_key(|range| range.start);
        for read in prose.template.reads.iter().filter(|read| !read.via_directive) {
            let span = prose.passage.span(read.whole.clone());
            // These ranges never nest, as the walk does not enter one: the last that begins before the read decides.
            let at = walk.idle.partition_point(|idle| idle.start <= read.whole.start);
            if at > 0 && read.whole.end <= walk.idle[at - 1].end {
                self.idle.insert(span);
            } else if let Some(parts) = walk.parts.remove(&read.whole.start) {
                self.parts.insert(span, parts);
            }
        }
    }
}

/// A read, by where it begins, and the fields that lead from it to a part.
type Part = (usize, Vec<String>);

#[derive(Default)]
struct Walk {
    idle: Vec<Range<usize>>,
    /// What goes on of the reads that are followed, by where they begin.
    parts: BTreeMap<usize, Vec<Vec<String>>>,
    /// What names stand for.
    names: HashMap<String, Vec<Part>>,
}

impl Walk {
    fn visit_statements(&mut self, list: &[Statement]) {
        for statement in list {
            self.visit_statement(statement);
        }
    }

    fn visit_statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Emit(value) => self.carry_value(value),
            Statement::Set { target, value } => {
                // Of several that set one name, each may have.
                let parts = self.bound_parts(target, value);
                if let Target::Name(name) = target {
                    self.names.entry(name.value.clone()).or_default().extend(parts);
                }
            }
            Statement::For { target, list, filter, body, otherwise } => {
                let items = self.bound_parts(target, list).into_iter().map(|part| extend_part(part, [ITEM])).collect();
                self.idle.extend(filter.iter().map(|filter| filter.range.clone()));
                // The names of the loop end with it.
                let before = self.names.clone();
                self.bind_target(target, items);
                self.visit_statements(body);
                self.names = before;
                self.visit_statements(otherwise);
            }
            Statement::If { condition, then, otherwise } => {
                self.idle.push(condition.range.clone());
                self.visit_statements(then);
                self.visit_statements(otherwise);
            }
            Statement::With { assignments, body } => {
                let before = self.names.clone();
                for (target, value) in assignments {
                    let parts = self.bound_parts(target, value);
                    self.bind_target(target, parts);
                }
                self.visit_statements(body);
                self.names = before;
            }
            Statement::Capture { filter, body, .. } => {
                filter.iter().for_each(|filter| self.carry_value(filter));
                self.visit_statements(body);
            }
            Statement::Filter { filter, body } => {
                self.carry_value(filter);
                self.visit_statements(body);
            }
            Statement::AutoEscape { body, .. } => self.visit_statements(body),
            // `do` writes nothing, and `add_prose` leaves out the reads of directives.
            Statement::Directive(_) | Statement::Text(_) | Statement::Do(_) => {}
        }
    }

    /// What a target stands for; what is not followed counts as going on whole.
    fn bound_parts(&mut self, target: &Target, value: &Expr) -> Vec<Part> {
        match (target, self.follow_parts(value)) {
            (Target::Name(_), Some(parts)) => {
                // Noted without a part: where nothing of it is written, nothing goes on.
                parts.iter().for_each(|(read, _)| _ = self.parts.entry(*read).or_default());
                parts
            }
            _ => {
                self.carry_value(value);
                Vec::new()
            }
        }
    }

    fn bind_target(&mut self, target: &Target, parts: Vec<Part>) {
        match target {
            Target::Name(name) => _ = self.names.insert(name.value.clone(), parts),
            // What is taken apart is not followed: `bound_parts` has it go on whole.
            Target::Items(targets) => targets.iter().for_each(|target| self.bind_target(target, Vec::new())),
            Target::Field(_) => {}
        }
    }

    /// The parts of reads that an expression is, where it is nothing else.
    fn follow_parts(&self, value: &Expr) -> Option<Vec<Part>> {
        let of = |of: &Expr, fields: &[&str]| -> Option<Vec<Part>> {
            Some(self.follow_parts(of)?.into_iter().map(|part| extend_part(part, fields.iter().copied())).collect())
        };
        match &value.kind {
            ExprKind::Path(_) => Some(vec![(value.range.start, Vec::new())]),
            ExprKind::Variable(name) => self.names.get(name).cloned(),
            ExprKind::Attribute { of: whole, name } => of(whole, &[&name.value]),
            ExprKind::Item { of: whole, index } => of(whole, &[index.as_text().unwrap_or(ITEM)]),
            ExprKind::Slice { of: whole, .. } => of(whole, &[]),
            ExprKind::Filter { of: Some(whole), name, arguments } => match name.value.as_str() {
                name if PICKING.contains(&name) => of(whole, &[ITEM]),
                name if SIFTING.contains(&name) => of(whole, &[]),
                "map" => {
                    let by_name = |name: &Option<String>| name.as_deref() == Some("attribute");
                    let [argument] = arguments.as_slice() else { return None };
                    let fields = argument.value.as_text().filter(|_| by_name(&argument.name))?;
                    let way: Vec<&str> = std::iter::once(ITEM).chain(fields.split('.')).collect();
                    of(whole, &way)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// An expression whose value goes on.
    fn carry_value(&mut self, value: &Expr) {
        if let Some(parts) = self.follow_parts(value) {
            for (read, fields) in parts {
                self.parts.entry(read).or_default().push(fields);
            }
            return;
        }
        match &value.kind {
            ExprKind::Compare { .. } | ExprKind::Chain { .. } | ExprKind::Test { .. } | ExprKind::Not(_) => {
                self.idle.push(value.range.clone());
            }
            ExprKind::Filter { of: Some(of), name, arguments } if COUNTING.contains(&name.value.as_str()) => {
                self.idle.push(of.range.clone());
                // The default of `int` and `float` goes on where there is no number.
                arguments.iter().for_each(|argument| self.carry_value(&argument.value));
            }
            ExprKind::Choice { condition, then, otherwise } => {
                self.idle.push(condition.range.clone());
                self.carry_value(then);
                otherwise.iter().for_each(|otherwise| self.carry_value(otherwise));
            }
            ExprKind::Filter { of, arguments, .. } => {
                of.iter().for_each(|of| self.carry_value(of));
                arguments.iter().for_each(|argument| self.carry_value(&argument.value));
            }
            ExprKind::Attribute { of, .. } | ExprKind::Negative(of) | ExprKind::Slice { of, .. } => {
                self.carry_value(of)
            }
            ExprKind::Item { of, index } => {
                self.carry_value(of);
                self.carry_value(index);
            }
            ExprKind::Arithmetic { left, right, .. } => {
                self.carry_value(left);
                self.carry_value(right);
            }
            ExprKind::Concat(left, right) => {
                self.carry_value(left);
                self.carry_value(right);
            }
            ExprKind::Call { of, arguments } => {
                self.carry_value(of);
                arguments.iter().for_each(|argument| self.carry_value(&argument.value));
            }
            ExprKind::Map(entries) => entries.iter().for_each(|(key, value)| {
                self.carry_value(key);
                self.carry_value(value);
            }),
            // `and` and `or` are one of their terms, and not a truth.
            ExprKind::And(terms) | ExprKind::Or(terms) | ExprKind::List(terms) => {
                terms.iter().for_each(|term| self.carry_value(term));
            }
            ExprKind::Path(_) | ExprKind::Variable(_) | ExprKind::Const(_) => {}
        }
    }
}

/// A part of a part.
fn extend_part<'f>((read, mut way): Part, fields: impl IntoIterator<Item = &'f str>) -> Part {
    way.extend(fields.into_iter().map(str::to_owned));
    (read, way)
}
