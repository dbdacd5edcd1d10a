//! SW311: items of a plan that can run at once, and touch the same files in the same tree.
//!
//! In: a swarm whose names are resolved. Out: for each item the first other one that overlaps. Patterns overlap only where
//! that is certain, as those of steps do (SW211).

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

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
    let (mut needs, mut needed) = (HashMap::<&str, Vec<&str>>::new(), HashMap::<&str, Vec<&str>>::new());
    for item in &swarm.items {
        for need in &item.needs {
            needs.entry(&item.name.value).or_default().push(&need.value);
            needed.entry(&need.value).or_default().push(&item.name.value);
        }
    }
    let mut left = COMPARED;
    for (index, item) in scoped.iter().enumerate() {
        // What each waits for is found once, and only where something overlaps.
        let waited = OnceCell::new();
        let meets = |other: &&&Item| {
            left = left.saturating_sub(item.scope.len() * other.scope.len());
            left > 0 && find_overlap(item, other).is_some()
        };
        let others = scoped[index + 1..].iter().filter(|other| are_apart(swarm, item, other));
        let found = others.filter(meets).find(|other| {
            let (before, after) =
                waited.get_or_init(|| (reach_items(&needs, &item.name.value), reach_items(&needed, &item.name.value)));
            !before.contains(&*other.name.value) && !after.contains(&*other.name.value)
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

/// The items that lead from one, by whatever way.
fn reach_items<'s>(leads: &HashMap<&'s str, Vec<&'s str>>, item: &'s str) -> HashSet<&'s str> {
    let (mut open, mut seen) = (vec![item], HashSet::new());
    while let Some(next) = open.pop() {
        open.extend(leads.get(next).into_iter().flatten().filter(|&&need| seen.insert(need)));
    }
    seen
}
