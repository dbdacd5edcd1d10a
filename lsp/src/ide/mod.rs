//! Answers to what an editor asks, over one immutable [`Snapshot`]: a path and an offset in, plain data out.
//!
//! Pure but for the [`Files`](swarmc_compiler::Files) of a snapshot. Everything that is said about a text is about the
//! text of the snapshot, never an older one. A file that is neither a spec nor a text that a spec reads gets no answer.

mod actions;
mod complete;
mod cursor;
mod diagnostics;
mod document;
mod element;
#[cfg(test)]
mod fixture;
mod flow;
mod format;
#[cfg(test)]
mod fuzz;
mod hints;
mod hole;
mod hover;
mod lenses;
mod links;
mod moves;
mod names;
mod outline;
mod ranges;
mod read_files;
mod rules;
mod signature;
mod snapshot;
mod texts;
mod tokens;
mod words;

use std::cmp::Ordering;
use std::ops::Range;

pub use actions::{Action, ActionKind, list_actions};
pub use complete::{Completion, Item, ItemKind, list_completions};
pub use diagnostics::{Fix, Problem, Problems, Related, collect_diagnostics, tell_diagnostics};
pub use document::{Document, Kind};
pub use flow::{Feed, Member, find_speaker, list_incoming, list_members, list_outgoing};
pub use format::{format_document, format_typed};
pub use hints::{Hint, Hints, list_hints};
pub use hover::{Hover, find_hover};
pub use lenses::{Lens, LensKind, find_linked_ranges, list_lenses};
pub use links::{Link, Value, list_links, list_values};
pub use moves::move_files;
pub use names::{
    Rename, Target, find_definition, find_references, highlight_name, prepare_rename, rename_symbol, type_definition,
};
pub use outline::{Entry, EntryKind, Found, build_outline, search_symbols};
pub use ranges::{Fold, FoldKind, list_folds, list_selections};
pub use signature::{Signature, SignaturePart, find_signature};
pub use snapshot::{Analysis, Snapshot, Workspace};
pub use tokens::{Token, TokenType, list_tokens};

/// A place in a file of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file, relative to the workspace, with `/`.
    pub path: String,
    /// Its bytes.
    pub range: Range<usize>,
}

/// The replacement of some bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edit {
    /// What is replaced; empty to insert.
    pub range: Range<usize>,
    /// By what.
    pub text: String,
}

/// By file, then by place.
impl Ord for Place {
    fn cmp(&self, other: &Place) -> Ordering {
        let key = |place: &Place| (place.range.start, place.range.end);
        self.path.cmp(&other.path).then(key(self).cmp(&key(other)))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By place.
impl Ord for Edit {
    fn cmp(&self, other: &Edit) -> Ordering {
        let key = |edit: &Edit| (edit.range.start, edit.range.end);
        key(self).cmp(&key(other)).then_with(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for Edit {
    fn partial_cmp(&self, other: &Edit) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
