//! SW311: items of a plan that can run at once, and touch the same files in the same tree.
//!
//! In: a swarm whose names are resolved. Out: for each item the first other one that overlaps. Patterns overlap only where
//! that is certain, as those of steps do (SW211).

use std::collections::HashMap;

use super::writers::is_overlapping;
use crate::ast::{Item, Swarm};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;

/// The patterns that are compared with each other at most; a plan with more is not looked at to its end.
const COMPARED: usize = 200_000;

pub(super) fn check(swarm: &Swarm, diagnostics: &mut Diagnostics) {
    if swarm.coordinator().is_none() {
        return;
    }
    let scoped: Vec<&Item> = swarm.items.iter().filter(|item| item.owner.is_some() && !item.scope.is_empty()).collect();
    let needs: HashMap<&str, Vec<&str>> = swarm
        .items
        .iter()
        .map(|item| (&*item.name.value, item.needs.iter().map(|need| &*need.value).collect()))
        .collect();
    let mut left = COMPARED;
    for (index, item) in scoped.iter().enumerate() {
        let meets = |other: &&&Item| {
            left = left.saturating_sub(item.scope.len() * other.scope.len());
            left > 0 && find_overlap(item, other).is_some()
        };
        let others = scoped[index + 1..].iter().filter(|other| are_apart(swarm, item, other));
        let found = others.filter(meets).find(|other| {
            !waits_for(&needs, &item.name.value, &other.name.value)
                && !waits_for(&needs, &other.name.value, &item.name.value)
        });
        let Some((other, (here, there))) = found.and_then(|other| Some((other, find_overlap(item, other)?))) else {
            continue;
        };
        let (name, other) = (&item.name.value, &other.name.value);
        diagnostics.push(
            Diagnostic::new(
                Code::SharedScope,
                format!("items `{name}` and `{other}` can be worked on at once, and touch the same files"),
            )
            .label(there, format!("`{other}` touches them"))
            .label(here, format!("`{name}` touches them too"))
            .help(format!(
                "let one wait, `depends-on {name}` in `{other}`: their owners hear of each other's changes, and are not kept apart"
            )),
        );
    }
}

/// Whether two agents do the items, in one tree.
fn are_apart(swarm: &Swarm, item: &Item, other: &Item) -> bool {
    let tree = |item: &Item| {
        let owner = item.owner.as_ref()?;
        let in_tree = |names: &[crate::ast::Name]| names.iter().any(|name| name.value == owner.value);
        swarm.worktrees.iter().position(|tree| in_tree(&tree.members))
    };
    let owner = |item: &Item| item.owner.as_ref().map(|owner| owner.value.clone());
    owner(item) != owner(other) && tree(item) == tree(other)
}

/// The patterns of two items that overlap.
fn find_overlap(item: &Item, other: &Item) -> Option<(Span, Span)> {
    item.scope.iter().find_map(|one| {
        let meets = other.scope.iter().find(|two| {
            one.value == two.value || is_overlapping(&one.value, &two.value) || is_overlapping(&two.value, &one.value)
        });
        Some((one.span, meets?.span))
    })
}

/// Whether an item waits for another one, by whatever way.
fn waits_for(needs: &HashMap<&str, Vec<&str>>, item: &str, other: &str) -> bool {
    let (mut open, mut seen) = (vec![item], std::collections::HashSet::new());
    while let Some(next) = open.pop() {
        for &need in needs.get(next).into_iter().flatten() {
            if need == other {
                return true;
            }
            if seen.insert(need) {
                open.push(need);
            }
        }
    }
    false
}
