//! Names for the items of a batch: `{% for a, b in l | batch(2) %}`, where the last batch may have fewer items (SW204).

use super::super::Kind;
use super::call::parse_whole;
use super::{Checker, Statement};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::template::{Argument, Const, Expr, ExprKind, Target};

impl Checker<'_> {
    /// Reports names for items that the last batch may not have: of a list that is written out, or of one of which nothing
    /// tells how long it is. Nothing is said where the text asks for a length.
    pub(super) fn check_batches(&mut self, target: &Target, list: &Expr) {
        let Target::Items(names) = target else { return };
        let Some((batches, of, arguments)) = find_batches(list) else { return };
        let given = |place: usize| arguments.get(place).map(|argument| &argument.value);
        let count = given(0).and_then(parse_whole).and_then(|count| usize::try_from(count).ok());
        let Some(count) = count.filter(|count| *count > 1) else { return };
        let fill = given(1).map(|fill| &fill.kind);
        // What is only known in a run may be `none`, which fills nothing.
        let is_filled = matches!(fill, Some(ExprKind::Const(constant)) if *constant != Const::None);
        let may_fill = !matches!(fill, None | Some(ExprKind::Const(Const::None)));
        if count != names.len() {
            // Where the batches have more, one that is shorter may fit.
            return if is_filled || count < names.len() {
                self.unpacked_wrongly(list, count, names.len())
            };
        }
        let may_be_short = match (of.as_items(), of.as_path()) {
            (Some(items), _) => items.len() % count != 0,
            (None, Some(path)) => match self.env.whole.types.underlying_kind(&self.env.path_type(path).kind) {
                Kind::Tuple(tuple) => tuple.items.len() % count != 0,
                // The list of a `for-each` is as long as the one that it goes through.
                Kind::List(_) => {
                    let is_each = path.fields().is_empty() && self.env.is_each(path.root, path.name());
                    let limits = self.find_limits(of).filter(|limits| limits.min.is_some() && limits.min == limits.max);
                    !is_each && limits.is_none()
                }
                _ => false,
            },
            (None, None) => false,
        };
        if may_fill || !may_be_short || self.counted {
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

/// The `batch` that a list is, what it is of, and its arguments.
fn find_batches(list: &Expr) -> Option<(&Expr, &Expr, &[Argument])> {
    match &list.kind {
        ExprKind::Filter { of: Some(of), name, .. } if name.value == "list" => find_batches(of),
        ExprKind::Filter { of: Some(of), name, arguments } if name.value == "batch" => Some((list, of, arguments)),
        _ => None,
    }
}

/// Whether a statement says in a condition, or binds, how many items there are, or asks for one of them.
pub(super) fn asks_length(statement: &Statement) -> bool {
    match statement {
        Statement::If { condition, .. } => has_length(condition),
        Statement::For { list, filter, .. } => has_length(list) || filter.as_ref().is_some_and(has_length),
        Statement::Set { value, .. } => has_length(value),
        Statement::With { assignments, .. } => assignments.iter().any(|(_, value)| has_length(value)),
        // What its text says is not looked at.
        Statement::Capture { .. } => true,
        _ => false,
    }
}

/// Whether a condition asks how many items there are, or for one of them.
pub(super) fn has_length(condition: &Expr) -> bool {
    let mut open = vec![condition];
    while let Some(expr) = open.pop() {
        let is_item = match &expr.kind {
            ExprKind::Item { .. } => true,
            ExprKind::Path(path) => path.segments.iter().any(|segment| segment.index.is_some()),
            _ => false,
        };
        if is_item || expr.as_length().is_some() {
            return true;
        }
        open.extend(expr.child_expressions());
    }
    false
}
