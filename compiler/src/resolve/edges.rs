//! Edges: both ends are there, and no way is written twice.
//!
//! In go the edges of a pipeline or a swarm with the names of who takes part; out come reports, and later the types of
//! what is carried.

use std::collections::BTreeMap;

use super::Resolver;
use crate::ast::{Edges, Name};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::symbols::names::Names;
use crate::types::{Lookup, Type, Types};

impl Resolver<'_, '_, '_, '_> {
    /// Looks the ends up; `unknown` says what is wrong with one that is not there.
    pub(super) fn resolve_edges(&mut self, edges: &Edges, names: &Names, unknown: &dyn Fn(&Name) -> Diagnostic) {
        let mut ways: BTreeMap<(&str, &str, u8), Span> = BTreeMap::new();
        for edge in &edges.list {
            for end in [&edge.from, &edge.to] {
                if names.find_exact(&end.value).is_none() {
                    self.diagnostics.push(unknown(end));
                }
            }
            if self.diagnostics.has_report_at(edge.span) {
                continue;
            }
            let kind = edge.kind as u8;
            let there = (edge.from.value.as_str(), edge.to.value.as_str(), kind);
            let back = edge.both.then_some((there.1, there.0, kind));
            let taken = std::iter::once(there).chain(back).find_map(|way| Some((way, *ways.get(&way)?)));
            if let Some(((from, to, _), first)) = taken {
                self.diagnostics.push(
                    Diagnostic::new(Code::Duplicate, format!("`{from}` leads to `{to}` twice"))
                        .label(edge.span, "again here")
                        .label(first, "first here")
                        .help("remove one of them; `<->` leads both ways"),
                );
            }
            for way in std::iter::once(there).chain(back) {
                ways.entry(way).or_insert(edge.span);
            }
        }
    }
}

/// The types of what edges carry, in their order.
pub(super) fn carried_types(edges: Option<&Edges>, types: &Types, lookup: &mut Lookup<'_>) -> Vec<Option<Type>> {
    let edges = edges.into_iter().flat_map(|edges| &edges.list);
    edges.map(|edge| Some(types.resolve(edge.carries.as_ref()?, lookup))).collect()
}
