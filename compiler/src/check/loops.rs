//! SW304: a loop without a limit, an `until` of a pipeline that has one round, and one that waits for a later round than
//! there is.

use swarmc_plan as plan;

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Condition, Pipeline};
use crate::source::Span;
use crate::template::{Const, Expr, ExprKind, Root};

/// The rounds that the fix offers.
const OFFERED: u32 = 5;

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    check_until(pipeline, diagnostics);
    if pipeline.ast.rounds.is_some() {
        check_rounds(&pipeline.until, pipeline.ast.iterations, pipeline.ast.exhausted, diagnostics);
    }
    for step in &pipeline.steps {
        if let Body::Loop { body: ast::Loop { max: Some(max), exhausted, .. }, until, .. } = &step.body {
            check_rounds(until, max.value, *exhausted, diagnostics);
        }
        let Some(ast::Body::Loop(ast::Loop { max: None, steps, .. })) = &step.ast.body else { continue };
        let name = &step.ast.name;
        // One that could not be read has been reported.
        let block = steps.first().map_or(name.span.end, |first| first.name.span.start);
        if diagnostics.has_report_at(Span { start: name.span.end, end: block.max(name.span.end), ..name.span }) {
            continue;
        }
        diagnostics.push(
            Diagnostic::new(Code::UnboundedLoop, format!("loop `{}` has no limit", name.value))
                .label(name.span, "repeats until it succeeds, at any cost")
                .help(format!("limit the rounds: `loop {} max={OFFERED}`", name.value))
                .fix(
                    format!("add `max={OFFERED}`"),
                    Span { start: name.span.end, ..name.span },
                    format!(" max={OFFERED}"),
                ),
        );
    }
}

/// An `until` is asked after a round, and another round only follows where `iterations` allows one.
fn check_until(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    let (name, Some(until)) = (&pipeline.ast.name, pipeline.ast.until.first()) else { return };
    // A misspelt `iterations` is said once.
    if pipeline.ast.rounds.is_some() || diagnostics.has_unknown_node(name.span, None) {
        return;
    }
    let place = until.outer_span();
    let message = format!("pipeline `{}` has an `until` but no `iterations`, so it runs one round", name.value);
    diagnostics.push(
        Diagnostic::new(Code::UnboundedLoop, message)
            .label(place, "checked after the only round; if it does not hold, the pipeline fails")
            .help(format!("limit the rounds: `iterations {OFFERED}`, or `iterations 1` for one round"))
            .unsafe_fix(
                format!("write `iterations {OFFERED}`"),
                Span { start: place.end, ..place },
                format!("; iterations {OFFERED}"),
            ),
    );
}

/// Where none of the conditions holds in any of so many rounds, the loop fails after the last one.
fn check_rounds(until: &[Condition], rounds: u32, exhausted: plan::Exhausted, diagnostics: &mut Diagnostics) {
    let never = |condition: &Condition| {
        condition.expression.tree.as_ref().is_some_and(|tree| {
            // Between these rounds, no comparison with a number comes out otherwise.
            let mut turning = vec![1, i64::from(rounds)];
            list_numbers(tree, &mut turning);
            let mut tried = turning.iter().flat_map(|at| at.saturating_sub(1)..=at.saturating_add(1));
            tried.all(|round| !(1..=i64::from(rounds)).contains(&round) || !may_hold(tree, round))
        })
    };
    let Some(first) = until.first().filter(|_| exhausted == plan::Exhausted::Fail && until.iter().all(never)) else {
        return;
    };
    let message = match rounds {
        1 => "no `until` holds in the only round".to_owned(),
        _ => format!("no `until` holds in {rounds} rounds"),
    };
    diagnostics.push(
        Diagnostic::new(Code::UnboundedLoop, message)
            .label(first.text.outer_span(), "`iteration` counts the rounds from 1")
            .help("compare with a round that there is, allow more rounds, or write `exhausted=success`"),
    );
}

/// The numbers that stand in comparisons of a condition.
fn list_numbers(condition: &Expr, found: &mut Vec<i64>) {
    match &condition.kind {
        ExprKind::And(terms) | ExprKind::Or(terms) => terms.iter().for_each(|term| list_numbers(term, found)),
        ExprKind::Compare { left, right, .. } => {
            for side in [left, right] {
                if let ExprKind::Const(Const::Int(number)) = side.kind {
                    found.push(number);
                }
            }
        }
        _ => {}
    }
}

/// Whether a condition may hold in this round, by what it says of `iteration`.
fn may_hold(condition: &Expr, round: i64) -> bool {
    match &condition.kind {
        ExprKind::And(terms) => terms.iter().all(|term| may_hold(term, round)),
        ExprKind::Or(terms) => terms.iter().any(|term| may_hold(term, round)),
        ExprKind::Compare { left, op, right } => {
            let number = |expr: &Expr| match &expr.kind {
                ExprKind::Const(Const::Int(number)) => Some(*number),
                ExprKind::Path(path) if path.root == Root::Iteration => Some(round),
                _ => None,
            };
            let (Some(left), Some(right)) = (number(left), number(right)) else { return true };
            op.compare(&left, &right).unwrap_or(true)
        }
        _ => true,
    }
}
