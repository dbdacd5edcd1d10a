//! Counts the names and values that a spec and its texts read.

use std::collections::BTreeSet;

use super::{Role, SymbolKind, build_index};
use crate::load::Loader;
use crate::model::{self, Model};
use crate::source::Span;
use crate::stats::{Fields, Names};

/// Counts the names and values that a spec and its texts read.
pub(crate) fn count_names(model: &Model<'_>, loader: &Loader<'_>) -> Names {
    let index = build_index(model, loader, &[]);
    let references: BTreeSet<Span> =
        index.occurrences.iter().filter(|found| found.role == Role::Reference).map(|found| found.span).collect();
    let known: BTreeSet<Span> = index
        .occurrences
        .iter()
        .filter(|found| found.role != Role::Definition && index.symbol(found.symbol).kind == SymbolKind::Field)
        .map(|found| found.span)
        .collect();
    let (mut directives, mut expressions, mut fields) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for read in list_reads(model) {
        if read.directive { &mut directives } else { &mut expressions }.insert(read.whole);
        fields.extend(read.fields.iter().map(|field| field.span));
    }
    let typed = fields.iter().filter(|field| known.contains(field)).count();
    Names {
        references: references.len(),
        directives: directives.len(),
        expressions: expressions.len(),
        fields: Fields { read: fields.len(), typed },
    }
}

/// Everything that texts and conditions read.
fn list_reads<'m>(model: &'m Model<'_>) -> impl Iterator<Item = &'m model::Read> {
    let of_steps = model
        .pipelines
        .iter()
        .flat_map(|pipeline| &pipeline.steps)
        .flat_map(|step| step.reads.iter().chain(step.body.until_reads()));
    let of_pipelines =
        model.pipelines.iter().flat_map(|pipeline| pipeline.until_reads.iter().chain(&pipeline.env_reads));
    let of_providers = model.providers.iter().flat_map(|provider| &provider.env_reads);
    let of_servers = model.servers.iter().flat_map(|server| &server.env_reads);
    let of_swarms = model.swarms.iter().flat_map(|swarm| &swarm.reads);
    of_steps.chain(of_pipelines).chain(of_providers).chain(of_servers).chain(of_swarms)
}
