//! Tables of names.

use std::collections::HashMap;

use crate::ast::Name;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;

/// Names and their indices. Two names that differ in `-` and `_` only are one, since expressions cannot tell them apart.
#[derive(Debug, Default)]
pub(crate) struct Names {
    list: Vec<String>,
    spans: Vec<Span>,
    by_plain: HashMap<String, usize>,
}

impl Names {
    /// The table of a list of definitions; later ones with a name that is taken are reported (SW102).
    pub(crate) fn new<'a>(what: &str, names: impl Iterator<Item = &'a Name>, diagnostics: &mut Diagnostics) -> Names {
        let mut table = Names::default();
        for (index, name) in names.enumerate() {
            table.list.push(name.value.clone());
            table.spans.push(name.span);
            let first = *table.by_plain.entry(normalize_name(&name.value)).or_insert(index);
            if first != index {
                let diagnostic = if table.list[first] == name.value {
                    Diagnostic::new(Code::DuplicateDefinition, format!("{what} `{}` is defined twice", name.value))
                } else {
                    let message = format!(
                        "{what} `{}` and {what} `{}` have one name where `-` is written `_`",
                        table.list[first], name.value
                    );
                    Diagnostic::new(Code::DuplicateDefinition, message)
                };
                diagnostics.push(
                    diagnostic
                        .label(name.span, "again here")
                        .label(table.spans[first], "first here")
                        .help("rename one of them"),
                );
            }
        }
        table
    }

    /// The index of exactly this name.
    pub(crate) fn find_exact(&self, name: &str) -> Option<usize> {
        self.find_same(name).filter(|&index| self.list[index] == name)
    }

    /// The index of this name, `-` and `_` being one.
    pub(crate) fn find_same(&self, name: &str) -> Option<usize> {
        self.by_plain.get(&normalize_name(name)).copied()
    }

    /// The index of this name, spelt as it is declared or as expressions may spell it.
    pub(crate) fn find(&self, name: &str, exact: bool) -> Option<usize> {
        if exact { self.find_exact(name) } else { self.find_same(name) }
    }

    /// Where the name of this index is declared.
    pub(crate) fn span(&self, index: usize) -> Span {
        self.spans[index]
    }

    /// The first index of this table whose name another has too, with its index there.
    pub(crate) fn find_shared(&self, other: &Names) -> Option<(usize, usize)> {
        // The walk goes over the smaller table; each name of it is one lookup in the larger.
        if self.len() > other.len() {
            return other.find_shared(self).map(|(theirs, ours)| (ours, theirs));
        }
        self.list.iter().enumerate().find_map(|(index, name)| Some((index, other.find_same(name)?)))
    }

    /// The names, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(String::as_str)
    }

    /// How many different names there are.
    pub(crate) fn count_distinct(&self) -> usize {
        self.by_plain.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
}

/// A name as expressions write it.
pub(crate) fn normalize_name(name: &str) -> String {
    name.replace('-', "_")
}
