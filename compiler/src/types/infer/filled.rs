//! Lists whose items are lists that are never empty: those of `batch`, the groups of `groupby`, the pieces of `split`.

use super::presence::Known;
use super::{Checker, call};
use crate::template::{Expr, ExprKind, Target};

/// What of each item is a list that has an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// The item itself.
    Whole,
    /// The second part of a group.
    Second,
}

/// What of each item of a list certainly has an item.
pub(crate) fn find_filled(list: &Expr) -> Option<Filled> {
    let (of, name, arguments) = match &list.kind {
        ExprKind::Slice { of, .. } => return find_filled(of),
        ExprKind::Filter { of: Some(of), name, arguments } => (of, name.value.as_str(), arguments),
        _ => return None,
    };
    let given = |place: usize| arguments.get(place).map(|argument| &argument.value);
    match name {
        "batch" => Some(Filled::Whole),
        "groupby" => Some(Filled::Second),
        "list" | "sort" | "reverse" | "unique" | "select" | "reject" => find_filled(of),
        "map" => match (given(0).and_then(Expr::as_text), find_filled(of)) {
            // At blanks, a text without any word has no pieces.
            (Some("split"), _) => given(1).and_then(Expr::as_text).map(|_| Filled::Whole),
            (Some("list" | "sort" | "reverse" | "unique"), Some(Filled::Whole)) => Some(Filled::Whole),
            (Some("last" | "list" | "1"), Some(Filled::Second)) => Some(Filled::Whole),
            (None, Some(Filled::Second)) if given(0).and_then(call::parse_whole) == Some(1) => Some(Filled::Whole),
            _ => None,
        },
        _ => None,
    }
}

impl Checker<'_> {
    /// What is known of the names that a loop gives to such an item.
    pub(super) fn claim_filled_items(&self, target: &Target, list: &Expr) -> Vec<Known> {
        let key = |target: &Target| match target {
            Target::Name(name) => {
                self.place_key(&Expr { kind: ExprKind::Variable(name.value.clone()), range: name.range.clone() })
            }
            Target::Items(_) | Target::Field(_) => None,
        };
        let keys = match (find_filled(list), target) {
            (Some(Filled::Whole), target) => key(target).into_iter().collect(),
            (Some(Filled::Second), Target::Items(parts)) => parts.get(1).and_then(key).into_iter().collect(),
            (Some(Filled::Second), target) => {
                let parts = |key: String| vec![format!("{key}.list"), format!("{key}.1")];
                key(target).map_or_else(Vec::new, parts)
            }
            (None, _) => Vec::new(),
        };
        keys.iter().map(|key: &String| Known::claim_filled(key)).collect()
    }

    /// What is known of a place of the lists that are as long as `list`.
    pub(super) fn claim_equal_places(&self, list: &Expr, place: &Expr) -> Vec<Known> {
        let Some(list) = self.place_key(list) else { return Vec::new() };
        let equal = self.env.sizes.equal.iter().filter(|(one, _)| *one == list);
        equal.filter_map(|(_, other)| Some(Known::claim_defined(&self.index_key(Some(other), place)?))).collect()
    }
}
