//! Values with a default: `output.j | default("none")`.
//!
//! The default counts where the value may be missing at the place where it is read, and nowhere else. Where that is not
//! known, and the two are of different kinds, nothing is said of the kind.

use super::super::{Classes, Kind, Lack, Type};
use super::call::Applied;
use super::{Checker, Need};
use crate::template::{Argument, Expr, ExprKind, Root};

impl Checker<'_> {
    /// What a value with a default is.
    pub(super) fn infer_default(&self, applied: &Applied<'_>, need: Need) -> Type {
        let kind = applied.operand.clone();
        let default = applied.given.first().cloned().unwrap_or(Type::STRING);
        match replaces_false(applied.arguments) {
            Some(true) => return kind.with_lack(Lack::NEVER).or(default),
            // Whether it does, the run knows.
            None => return kind.into_present().or(default),
            Some(false) => {}
        }
        let written = applied.arguments.first().and_then(|argument| argument.value.as_text());
        let differs = self.differs_from(&kind, &default, written);
        let is_lacking = kind.lack.has(Lack::ABSENT.union(Lack::SILENT));
        let kind = if is_lacking { kind.into_present() } else { kind };
        let Some(of) = applied.of.filter(|_| !applied.each) else {
            return if is_lacking { kind.or(default) } else { kind };
        };
        let scalar = Classes::SEQUENCE.union(Classes::OBJECT).complement();
        let is_scalar = |kind: &Kind| kind.class().is_some_and(|class| scalar.has(class));
        let says_nothing = is_empty_list(&default.kind) || is_scalar(self.env.whole.types.underlying_kind(&kind.kind));
        // The flow of the pipeline, which is costly to follow, would change nothing.
        if !differs && (kind.kind == default.kind || says_nothing) {
            return kind;
        }
        let may_lack = if is_lacking { Some(true) } else { self.may_lack(of) };
        match may_lack {
            Some(false) => kind,
            // Nothing is in an empty text, as in an empty list.
            _ if written == Some("") && self.is_sequence(&kind) => kind,
            // What is bound to a name, or put into a list, may be compared with the default before it is used.
            Some(true) if need != Need::Bound || !differs => kind.or(default),
            _ if default.kind == Kind::None && of.as_path().is_some_and(|path| path.fields().is_empty()) => {
                kind.or(default)
            }
            _ if differs => Type::ANY,
            _ => kind,
        }
    }

    /// A part of a list or of a map, or a term of `or`: what follows may leave out a default.
    pub(super) fn infer_kept(&mut self, expr: &Expr) -> Type {
        let is_default =
            matches!(&expr.kind, ExprKind::Filter { name, .. } if matches!(name.value.as_str(), "default" | "d"));
        self.infer_operand(expr, if is_default { Need::Bound } else { Need::Present })
    }

    /// Whether the default of a value counts; none where that is not known.
    pub(super) fn takes_default(&self, of: &Expr, kind: &Type, arguments: &[Argument]) -> Option<bool> {
        match replaces_false(arguments)? {
            true => Some(true),
            false if kind.lack.has(Lack::ABSENT.union(Lack::SILENT)) => Some(true),
            false => self.may_lack(of),
        }
    }

    /// Whether a value that is read as a whole, or one that it is a field of, may be missing; none where it is not known.
    fn may_lack(&self, of: &Expr) -> Option<bool> {
        let path = of.as_path()?;
        let mut way = self.place_key(of)?;
        for _ in 0..=path.fields().len() {
            if self.presence.is_defined(&way) {
                return Some(false);
            }
            way.truncate(way.rfind('.').unwrap_or(0));
        }
        if path.root != Root::Param {
            return (self.env.may_lack)(self.span(&of.range));
        }
        let field = path.fields().first().map(|field| field.text.as_str());
        let qualified = self.env.qualified_name(path.root, path.name(), field);
        Some(self.env.may_leave_out(qualified.as_deref().or(path.name())))
    }

    fn is_sequence(&self, kind: &Type) -> bool {
        let kinds = self.env.whole.types.possible_kinds(&kind.kind);
        kinds.iter().all(|kind| kind.class().is_some_and(|class| Classes::SEQUENCE.has(class)))
    }

    /// Whether a default is of another kind than its value, or is another word.
    fn differs_from(&self, kind: &Type, default: &Type, written: Option<&str>) -> bool {
        let types = self.env.whole.types;
        if let (Kind::Enum(words), Some(written)) = (types.underlying_kind(&kind.kind), written) {
            return !words.words.iter().any(|word| word == written);
        }
        let classes = |kind: &Type| {
            let kinds = types.possible_kinds(&kind.kind);
            kinds.iter().map(Kind::class).reduce(|one, other| Some(one?.union(other?))).flatten()
        };
        match (classes(kind), classes(default)) {
            (Some(one), Some(other)) => other.has(one.complement()),
            _ => false,
        }
    }
}

/// Whether a default replaces what counts as false as well, as that of `default(x, true)` does; none where the run knows.
fn replaces_false(arguments: &[Argument]) -> Option<bool> {
    match arguments.get(1).map(|argument| &argument.value.kind) {
        None => Some(false),
        Some(ExprKind::Const(constant)) => Some(constant.is_true()),
        Some(_) => None,
    }
}

fn is_empty_list(kind: &Kind) -> bool {
    matches!(kind, Kind::Tuple(tuple) if tuple.items.is_empty())
}
