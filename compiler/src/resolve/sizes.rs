//! How many items the lists have that a step reads: what a `for-each` puts out has as many as its list.
//!
//! In: a step, and those that it waits for. Out: least sizes, and pairs of lists that have the same size.

use swarmc_plan::{EachJoin, When};

use super::counted::{find_list, is_same_for_all};
use crate::ast::OnFailure;
use crate::model::{Body, Pipeline, Step};
use crate::template::{Expr, ExprKind};
use crate::types::{Filled, ListSizes, find_filled, path_key};

/// What is known of the lists that a step reads.
pub(super) fn list_sizes(pipeline: &Pipeline<'_>, index: usize) -> ListSizes {
    let step = &pipeline.steps[index];
    let mut sizes = ListSizes::default();
    match find_list(step).and_then(find_filled) {
        Some(Filled::Whole) => sizes.least.push(("item".to_owned(), 1)),
        Some(Filled::Second) => sizes.least.push(("item.1".to_owned(), 1)),
        None => {}
    }
    let needed = step.needs.iter().filter(|need| need.when == When::Success && step.is_binding(need));
    for other in needed.map(|need| &pipeline.steps[need.step]).filter(|other| has_all_results(other)) {
        let Some(list) = find_list(other).map(skip_filters) else { continue };
        let output = format!("output.{}", other.name().replace('-', "_"));
        match &list.kind {
            ExprKind::List(items) if !items.is_empty() => sizes.least.push((output, items.len() as u64)),
            ExprKind::Path(path) if is_same_for_all(pipeline, step, path) && is_same_for_all(pipeline, other, path) => {
                sizes.equal.push((path_key(path), output));
            }
            _ => {}
        }
    }
    sizes
}

/// Whether a step that succeeded has a result for each item of its list. What calls another pipeline, or is made of steps, may
/// have no value for an item, and its list leaves that item out.
pub(super) fn has_all_results(step: &Step<'_>) -> bool {
    step.ast.for_each.as_ref().is_some_and(|each| each.join == EachJoin::All)
        && step.ast.output.default.is_none()
        && step.ast.on_failure == OnFailure::Fail
        && !matches!(step.body, Body::Call { .. } | Body::Swarm { .. } | Body::Loop { .. })
}

/// The list of which filters leave as many items as there were.
pub(super) fn skip_filters(list: &Expr) -> &Expr {
    match &list.kind {
        ExprKind::Filter { of: Some(of), name, .. }
            if matches!(name.value.as_str(), "list" | "sort" | "reverse" | "map") =>
        {
            skip_filters(of)
        }
        _ => list,
    }
}
