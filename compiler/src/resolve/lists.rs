//! What is known of the lists that a step reads: how long they are, and which have an item at each `index` of its own list.
//! What a `for-each` puts out has as many items as its list.
//!
//! In: a step, and those that it waits for. Out: least sizes, pairs of lists that have the same size, and lists that are as
//! long as that of the step, or longer; each list by its place, as expressions name it. Only what is certain is said.

use swarmc_plan::{EachJoin, When};

use crate::ast::OnFailure;
use crate::model::{Body, Pipeline, Step};
use crate::template::{Expr, ExprKind, Path, Root, same_name};
use crate::types::{Filled, ListSizes, find_filled, path_key};

/// The lists that are kept of one step, of those that are as long as its own.
const MOST: usize = 32;

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

/// The lists that have an item at each `index` of this step.
pub(super) fn list_counted(pipeline: &Pipeline<'_>, index: usize) -> Vec<String> {
    let step = &pipeline.steps[index];
    let Some(tree) = find_list(step) else { return Vec::new() };
    let (mut all, mut known) = (Vec::new(), Vec::new());
    let mut open: Vec<(&Path, &Step<'_>)> = longer_lists(tree).into_iter().map(|path| (path, step)).collect();
    while let Some((path, reader)) = open.pop().filter(|_| all.len() < MOST) {
        let key = path_key(path);
        let is_same = is_same_for_all(pipeline, reader, path);
        // Of what another step reads, this one may see the value of another round.
        if !std::ptr::eq(reader, step) && !is_same || all.contains(&key) {
            continue;
        }
        if is_same {
            known.push(key.clone());
        }
        all.push(key);
        let producer = find_needed(pipeline, reader, path).filter(|producer| producer.ast.output.default.is_none());
        if let (Some(producer), true) = (producer, path.fields().is_empty()) {
            // It has put out an item for each of those of its list, or fewer where some failed.
            let before = find_list(producer).map(longer_lists).unwrap_or_default();
            open.extend(before.into_iter().map(|path| (path, producer)));
        }
    }
    let needed = step.needs.iter().filter(|need| need.when == When::Success && step.is_binding(need));
    for other in needed.map(|need| &pipeline.steps[need.step]) {
        let of = find_list(other).and_then(equal_list).filter(|path| is_same_for_all(pipeline, other, path));
        if has_all_results(other) && all.len() < MOST && of.is_some_and(|path| known.contains(&path_key(path))) {
            all.push(format!("output.{}", other.name().replace('-', "_")));
        }
    }
    all
}

/// Whether a step that succeeded has a result for each item of its list. What calls another pipeline, or is made of steps, may
/// have no value for an item, and its list leaves that item out.
fn has_all_results(step: &Step<'_>) -> bool {
    step.ast.for_each.as_ref().is_some_and(|each| each.join == EachJoin::All)
        && step.ast.output.default.is_none()
        && step.ast.on_failure == OnFailure::Fail
        && !matches!(step.body, Body::Call { .. } | Body::Swarm { .. } | Body::Loop { .. })
}

fn find_list<'s>(step: &'s Step<'_>) -> Option<&'s Expr> {
    step.list.as_ref()?.expression.tree.as_ref()
}

/// Whether a list is the same for each step that waits for this one: what it reads does not change in a round.
fn is_same_for_all(pipeline: &Pipeline<'_>, reader: &Step<'_>, path: &Path) -> bool {
    path.root == Root::Param || find_needed(pipeline, reader, path).is_some()
}

/// The step whose output a path names, if the reader waits for it.
fn find_needed<'p, 'a>(pipeline: &'p Pipeline<'a>, reader: &Step<'_>, path: &Path) -> Option<&'p Step<'a>> {
    let name = path.name().filter(|_| path.root == Root::Output)?;
    reader.needs.iter().map(|need| &pipeline.steps[need.step]).find(|step| same_name(step.name(), name))
}

/// The lists that have as many items as this one, or more.
fn longer_lists(list: &Expr) -> Vec<&Path> {
    match &list.kind {
        ExprKind::Path(path) => vec![path],
        ExprKind::Slice { of, .. } => longer_lists(of),
        ExprKind::Filter { of: Some(of), name, arguments } => match name.value.as_str() {
            "list" | "sort" | "reverse" | "map" | "unique" | "select" | "reject" | "selectattr" | "rejectattr" => {
                longer_lists(of)
            }
            // It ends with the shortest of them.
            "zip" => {
                let others = arguments.iter().filter(|argument| !argument.spread).map(|argument| &argument.value);
                std::iter::once(&**of).chain(others).flat_map(longer_lists).collect()
            }
            _ => Vec::new(),
        },
        // `range(LIST | length)`.
        ExprKind::Call { of, arguments } => match (&of.kind, arguments.as_slice()) {
            (ExprKind::Variable(range), [count]) if range == "range" => {
                count.value.as_length().map(longer_lists).unwrap_or_default()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The list that has just as many items.
fn equal_list(list: &Expr) -> Option<&Path> {
    match &skip_filters(list).kind {
        ExprKind::Path(path) => Some(path),
        _ => None,
    }
}

/// The list of which filters leave as many items as there were.
fn skip_filters(list: &Expr) -> &Expr {
    match &list.kind {
        ExprKind::Filter { of: Some(of), name, .. }
            if matches!(name.value.as_str(), "list" | "sort" | "reverse" | "map") =>
        {
            skip_filters(of)
        }
        _ => list,
    }
}
