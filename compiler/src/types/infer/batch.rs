//! Names for the items of a batch: `{% for a, b in l | batch(2) %}`, where the last batch may have fewer items (SW204).

use super::super::Kind;
use super::Checker;
use super::call::parse_whole;
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::template::{Expr, ExprKind, Target};

impl Checker<'_> {
    /// Reports names for items that the last batch may not have. Nothing is said where the text asks how many there are.
    pub(super) fn check_batches(&mut self, target: &Target, list: &Expr) {
        let Target::Items(names) = target else { return };
        let mut batches = list;
        while let ExprKind::Filter { of: Some(of), name, .. } = &batches.kind
            && name.value == "list"
        {
            batches = of;
        }
        let ExprKind::Filter { of: Some(of), name, arguments } = &batches.kind else { return };
        let given = |place: usize| arguments.get(place).map(|argument| &argument.value);
        let count = given(0).and_then(parse_whole).and_then(|count| usize::try_from(count).ok());
        let Some(count) = count.filter(|count| *count > 1 && name.value == "batch") else { return };
        let is_filled = given(1).is_some();
        if count != names.len() {
            // Where the batches have more, one that is shorter may fit.
            return if is_filled || count < names.len() {
                self.unpacked_wrongly(list, count, names.len())
            };
        }
        let items = match (of.as_items(), self.peek_type(of).kind) {
            (Some(items), _) => Some(items.len()),
            (None, Kind::Tuple(tuple)) => Some(tuple.items.len()),
            (None, _) => None,
        };
        let is_even = items.is_some_and(|items| items % count == 0);
        if is_filled || is_even || self.counted > 0 {
            return;
        }
        let shown = self.clip_source(of);
        let message = format!("the last batch of `{shown}` may have fewer than {count} items");
        let diagnostic = Diagnostic::new(Code::OptionalFieldUnguarded, message)
            .label(self.span(&batches.range), format!("{count} names for its items"))
            .help(format!(
                "fill it up: `{shown} | batch({count}, \"\")`; or give it one name, and read its items with a default"
            ));
        self.push(diagnostic);
    }
}

/// Whether a condition asks how many items there are.
pub(super) fn asks_length(condition: &Expr) -> bool {
    let mut open = vec![condition];
    while let Some(expr) = open.pop() {
        if matches!(&expr.kind, ExprKind::Filter { name, .. } if matches!(name.value.as_str(), "length" | "count")) {
            return true;
        }
        open.extend(expr.child_expressions());
    }
    false
}
