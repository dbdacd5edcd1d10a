//! The steps whose values a text can read, and how each step relates to the owner of the text.

use std::collections::BTreeMap;

use swarmc_compiler::index::{Index, ShapeId, SymbolKind};

use super::scope::{self, Other, Reader, Relation, Scope};
use super::{Item, ItemKind};

/// A step that could be read.
pub(super) struct Candidate<'s> {
    pub(super) index: &'s Index,
    /// Its position in the index.
    pub(super) step: usize,
    pub(super) relation: Relation,
    /// Who reads.
    reader: Reader,
    /// Whether the text has other owners, too.
    shared: bool,
    /// Whether the text could read only the value of the round before.
    pub(super) earlier: bool,
}

/// The steps that a directive or an expression of this word could name, the most likely first; each name once.
pub(super) fn list_candidates<'s>(scopes: &'s [Scope], word: &str) -> Vec<Candidate<'s>> {
    let mut found: BTreeMap<&str, Candidate<'s>> = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    let shared = scopes.iter().map(|scope| scope.readers.len()).sum::<usize>() > 1;
    for (number, scope) in scopes.iter().enumerate() {
        let index = &scope.analysis.index;
        for reader in &scope.readers {
            // One graph is walked once for each step that reads.
            if !seen.insert((number, reader.pipeline, reader.step)) {
                continue;
            }
            for Other { step, relation, repeats } in scope::list_other_steps(index, reader) {
                let symbol = index.symbol(index.steps[step].symbol);
                let readable = match word {
                    "output" | "previous" => matches!(symbol.kind, SymbolKind::Task | SymbolKind::Gate),
                    "exit" => symbol.kind == SymbolKind::Task,
                    _ => true,
                };
                let rounds = word == "previous" || word == "output" && relation == Relation::After;
                let earlier = rounds && repeats;
                if !readable || rounds && !earlier || relation == Relation::After && !earlier {
                    continue;
                }
                let candidate = Candidate { index, step, relation, reader: *reader, shared, earlier };
                match found.get(symbol.name.as_str()) {
                    Some(known) if known.relation <= candidate.relation => {}
                    _ => {
                        found.insert(&symbol.name, candidate);
                    }
                }
            }
        }
    }
    let mut found: Vec<Candidate<'s>> = found.into_values().collect();
    found.sort_by_key(|candidate| (candidate.relation, candidate.step));
    found
}

impl Candidate<'_> {
    pub(super) fn shape(&self) -> ShapeId {
        self.index.steps[self.step].output
    }

    /// The step as it is completed after a word.
    pub(super) fn item(&self, word: &str) -> Item {
        let symbol = self.index.symbol(self.index.steps[self.step].symbol);
        let value = match word {
            "status" => "succeeded, failed or skipped",
            "exit" => "int",
            "error" => "string",
            _ => self.index.shape(self.shape()).text.as_str(),
        };
        let reader = self.reader.step.map(|step| self.index.symbol(self.index.steps[step].symbol).name.as_str());
        let detail = match (self.relation, reader) {
            _ if self.earlier && word == "previous" => format!("{value} · of the round before"),
            _ if self.earlier => format!("{value} · `previous:`, of the round before"),
            (Relation::Before(1), _) => format!("{value} · 1 step before"),
            (Relation::Before(distance), _) => format!("{value} · {distance} steps before"),
            (Relation::Free, Some(reader)) if self.shared => {
                format!("{value} · `{reader}`, and every step that uses this text, will wait for it")
            }
            (Relation::Free, Some(reader)) => format!("{value} · `{reader}` will wait for it"),
            _ => value.to_owned(),
        };
        Item::new(&symbol.name, ItemKind::Name(symbol.kind)).detail(detail).doc_maybe(symbol.doc.as_ref())
    }
}
