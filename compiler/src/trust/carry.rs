//! Which of the values that a text reads go into it.
//!
//! In: a text with holes. Out: the places whose value only decides something: a condition, a comparison, a length. What
//! they read is not in the text that comes out.

use std::collections::HashSet;
use std::ops::Range;

use crate::model::Prose;
use crate::source::Span;
use crate::template::{Expr, ExprKind, Statement};

/// Filters that make a number of whatever they are given.
const COUNTING: &[&str] = &["length", "count", "int", "float", "round", "abs", "sum"];

/// The places of the reads of a text that do not become a part of it.
pub(crate) fn idle(prose: &Prose) -> HashSet<Span> {
    if prose.template.logic.is_empty() {
        return HashSet::new();
    }
    let mut ranges = Vec::new();
    statements(&prose.template.logic, &mut ranges);
    ranges.sort_by_key(|range| range.start);
    let inside = |range: &Range<usize>| {
        let at = ranges.partition_point(|idle: &Range<usize>| idle.start <= range.start);
        at > 0 && range.end <= ranges[at - 1].end
    };
    let reads = prose.template.reads.iter().filter(|read| !read.via_directive && inside(&read.whole));
    reads.map(|read| prose.passage.span(read.whole.clone())).collect()
}

fn statements(list: &[Statement], idle: &mut Vec<Range<usize>>) {
    for statement in list {
        match statement {
            Statement::Emit(value) | Statement::Set { value, .. } => carried(value, idle),
            Statement::For { list, filter, body, otherwise, .. } => {
                carried(list, idle);
                idle.extend(filter.iter().map(|filter| filter.range.clone()));
                statements(body, idle);
                statements(otherwise, idle);
            }
            Statement::If { condition, then, otherwise } => {
                idle.push(condition.range.clone());
                statements(then, idle);
                statements(otherwise, idle);
            }
            Statement::With { assignments, body } => {
                assignments.iter().for_each(|(_, value)| carried(value, idle));
                statements(body, idle);
            }
            Statement::Capture { body, .. } | Statement::Filter { body, .. } | Statement::AutoEscape { body, .. } => {
                statements(body, idle);
            }
            Statement::Directive(_) | Statement::Do(_) => {}
        }
    }
}

/// An expression whose value goes on.
fn carried(value: &Expr, idle: &mut Vec<Range<usize>>) {
    match &value.kind {
        ExprKind::Compare { .. } | ExprKind::Chain { .. } | ExprKind::Test { .. } | ExprKind::Not(_) => {
            idle.push(value.range.clone());
        }
        ExprKind::Filter { name, .. } if COUNTING.contains(&name.value.as_str()) => idle.push(value.range.clone()),
        ExprKind::Filter { of: Some(of), .. } | ExprKind::Attribute { of, .. } => carried(of, idle),
        ExprKind::Choice { condition, then, otherwise } => {
            idle.push(condition.range.clone());
            carried(then, idle);
            otherwise.iter().for_each(|otherwise| carried(otherwise, idle));
        }
        ExprKind::Concat(left, right) => {
            carried(left, idle);
            carried(right, idle);
        }
        ExprKind::And(terms) | ExprKind::Or(terms) | ExprKind::List(terms) => {
            terms.iter().for_each(|term| carried(term, idle));
        }
        _ => {}
    }
}
