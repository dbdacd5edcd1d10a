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
    pub(crate) fn add(&mut self, prose: &TemplateText) {
        if prose.template.logic.is_empty() {
            return;
        }
        let mut walk = Walk::default();
        walk.statements(&prose.template.logic);
        walk.idle.sort_by_key(|range| range.start);
        for read in prose.template.reads.iter().filter(|read| !read.via_directive) {
            let span = prose.passage.span(read.whole.clone());
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
    fn statements(&mut self, list: &[Statement]) {
        for statement in list {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Emit(value) => self.carried(value),
            Statement::Set { target, value } => {
                // Of several that set one name, each may have.
                let parts = self.bound(target, value);
                if let Target::Name(name) = target {
                    self.names.entry(name.value.clone()).or_default().extend(parts);
                }
            }
            Statement::For { target, list, filter, body, otherwise } => {
                let items = self.bound(target, list).into_iter().map(|part| within(part, [ITEM])).collect();
                self.idle.extend(filter.iter().map(|filter| filter.range.clone()));
                let before = self.names.clone();
                self.name(target, items);
                self.statements(body);
                self.names = before;
                self.statements(otherwise);
            }
            Statement::If { condition, then, otherwise } => {
                self.idle.push(condition.range.clone());
                self.statements(then);
                self.statements(otherwise);
            }
            Statement::With { assignments, body } => {
                let before = self.names.clone();
                for (target, value) in assignments {
                    let parts = self.bound(target, value);
                    self.name(target, parts);
                }
                self.statements(body);
                self.names = before;
            }
            Statement::Capture { filter, body, .. } => {
                filter.iter().for_each(|filter| self.carried(filter));
                self.statements(body);
            }
            Statement::Filter { filter, body } => {
                self.carried(filter);
                self.statements(body);
            }
            Statement::AutoEscape { body, .. } => self.statements(body),
            Statement::Directive(_) | Statement::Do(_) => {}
        }
    }

    /// What a target stands for; what is not followed counts as going on whole.
    fn bound(&mut self, target: &Target, value: &Expr) -> Vec<Part> {
        match (target, self.followed(value)) {
            (Target::Name(_), Some(parts)) => {
                parts.iter().for_each(|(read, _)| _ = self.parts.entry(*read).or_default());
                parts
            }
            _ => {
                self.carried(value);
                Vec::new()
            }
        }
    }

    fn name(&mut self, target: &Target, parts: Vec<Part>) {
        match target {
            Target::Name(name) => _ = self.names.insert(name.value.clone(), parts),
            Target::Items(targets) => targets.iter().for_each(|target| self.name(target, Vec::new())),
            Target::Field(_) => {}
        }
    }

    /// The parts of reads that an expression is, where it is nothing else.
    fn followed(&self, value: &Expr) -> Option<Vec<Part>> {
        let of = |of: &Expr, fields: &[&str]| -> Option<Vec<Part>> {
            Some(self.followed(of)?.into_iter().map(|part| within(part, fields.iter().copied())).collect())
        };
        match &value.kind {
            ExprKind::Path(_) => Some(vec![(value.range.start, Vec::new())]),
            ExprKind::Variable(name) => self.names.get(name).cloned(),
            ExprKind::Attribute { of: whole, name } => of(whole, &[&name.value]),
            ExprKind::Item { of: whole, index } => of(whole, &[index.text().unwrap_or(ITEM)]),
            ExprKind::Slice { of: whole, .. } => of(whole, &[]),
            ExprKind::Filter { of: Some(whole), name, arguments } => match name.value.as_str() {
                name if PICKING.contains(&name) => of(whole, &[ITEM]),
                name if SIFTING.contains(&name) => of(whole, &[]),
                "map" => {
                    let by_name = |name: &Option<String>| name.as_deref() == Some("attribute");
                    let [argument] = arguments.as_slice() else { return None };
                    let fields = argument.value.text().filter(|_| by_name(&argument.name))?;
                    let way: Vec<&str> = std::iter::once(ITEM).chain(fields.split('.')).collect();
                    of(whole, &way)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// An expression whose value goes on.
    fn carried(&mut self, value: &Expr) {
        if let Some(parts) = self.followed(value) {
            for (read, fields) in parts {
                self.parts.entry(read).or_default().push(fields);
            }
            return;
        }
        match &value.kind {
            ExprKind::Compare { .. } | ExprKind::Chain { .. } | ExprKind::Test { .. } | ExprKind::Not(_) => {
                self.idle.push(value.range.clone());
            }
            ExprKind::Filter { name, .. } if COUNTING.contains(&name.value.as_str()) => {
                self.idle.push(value.range.clone());
            }
            ExprKind::Choice { condition, then, otherwise } => {
                self.idle.push(condition.range.clone());
                self.carried(then);
                otherwise.iter().for_each(|otherwise| self.carried(otherwise));
            }
            ExprKind::Filter { of, arguments, .. } => {
                of.iter().for_each(|of| self.carried(of));
                arguments.iter().for_each(|argument| self.carried(&argument.value));
            }
            ExprKind::Attribute { of, .. } | ExprKind::Negative(of) | ExprKind::Slice { of, .. } => self.carried(of),
            ExprKind::Item { of, index } => {
                self.carried(of);
                self.carried(index);
            }
            ExprKind::Arithmetic { left, right, .. } => {
                self.carried(left);
                self.carried(right);
            }
            ExprKind::Concat(left, right) => {
                self.carried(left);
                self.carried(right);
            }
            ExprKind::Call { of, arguments } => {
                self.carried(of);
                arguments.iter().for_each(|argument| self.carried(&argument.value));
            }
            ExprKind::Map(entries) => entries.iter().for_each(|(key, value)| {
                self.carried(key);
                self.carried(value);
            }),
            ExprKind::And(terms) | ExprKind::Or(terms) | ExprKind::List(terms) => {
                terms.iter().for_each(|term| self.carried(term));
            }
            ExprKind::Path(_) | ExprKind::Variable(_) | ExprKind::Const(_) => {}
        }
    }
}

/// A part of a part.
fn within<'f>((read, mut way): Part, fields: impl IntoIterator<Item = &'f str>) -> Part {
    way.extend(fields.into_iter().map(str::to_owned));
    (read, way)
}
