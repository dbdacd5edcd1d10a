//! Data flow as a hierarchy of calls: who feeds a step, and whom it feeds, with the places where they read.

use std::collections::BTreeMap;

use swarmc_compiler::When;
use swarmc_compiler::index::{Index, Need, Role, Step, SymbolId, SymbolKind, TextUse};

use super::{Analysis, Place, Snapshot, names};

/// A step as a member of the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// The type of its output, and its pipeline.
    pub detail: String,
    /// Its name where it is declared.
    pub place: Place,
    /// The node that declares it.
    pub whole: Place,
}

/// One who feeds a step, or whom it feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// The other one.
    pub member: Member,
    /// Where the one that waits reads the other or says that it waits.
    pub reads: Vec<Place>,
}

/// The steps at an offset.
pub fn list_members(snapshot: &Snapshot, path: &str, offset: usize) -> Vec<Member> {
    let mut found: Vec<Member> = Vec::new();
    for (analysis, step) in find_steps(snapshot, path, offset) {
        let member = make_member(&analysis, &analysis.index.steps[step]);
        if !found.iter().any(|known| known.place == member.place) {
            found.push(member);
        }
    }
    found
}

/// Who feeds the step at an offset: what it waits for.
pub fn list_incoming(snapshot: &Snapshot, path: &str, offset: usize) -> Vec<Feed> {
    list_feeds(snapshot, path, offset, |index, step| {
        index.steps[step].needs.iter().map(|need| (need.step, step, need.clone())).collect()
    })
}

/// Whom the step at an offset feeds.
pub fn list_outgoing(snapshot: &Snapshot, path: &str, offset: usize) -> Vec<Feed> {
    list_feeds(snapshot, path, offset, |index, step| {
        let needs = |other: usize| index.steps[other].needs.iter().filter(move |need| need.step == step);
        list_dependents(index, step)
            .flat_map(|other| needs(other).map(move |need| (other, other, need.clone())))
            .collect()
    })
}

/// The task at an offset and its pipeline: one that is declared around it, or that says the text there.
pub fn find_speaker(analysis: &Analysis, path: &str, offset: usize) -> Option<(String, Option<String>)> {
    let index = &analysis.index;
    let (file, at) = (analysis.file(path)?, names::byte_offset(offset));
    let around = |step: &&Step| {
        let whole = index.symbol(step.symbol).whole;
        whole.file == file && whole.touches_offset(at)
    };
    let said = index.text_uses_at(file, at);
    let says = |step: &&Step| said.iter().any(|text| text.owner == step.symbol);
    let tasks = || index.steps.iter().filter(|step| index.symbol(step.symbol).kind == SymbolKind::Task);
    // The innermost: loops hold tasks.
    let inner = tasks().filter(around).min_by_key(|step| index.symbol(step.symbol).whole.len());
    let step = inner.or_else(|| tasks().find(says))?;
    let name = |id: SymbolId| index.symbol(id).name.clone();
    Some((name(step.symbol), Some(name(step.pipeline))))
}

/// Links of a step: the other one, the one of both that reads, and the need.
fn list_feeds(
    snapshot: &Snapshot,
    path: &str,
    offset: usize,
    of: impl Fn(&Index, usize) -> Vec<(usize, usize, Need)>,
) -> Vec<Feed> {
    let mut found: BTreeMap<Place, Feed> = BTreeMap::new();
    for (analysis, step) in find_steps(snapshot, path, offset) {
        let index = &analysis.index;
        for (other, reader, need) in of(index, step) {
            let member = make_member(&analysis, &index.steps[other]);
            let read = index.steps[need.step].symbol;
            let link = found.entry(member.place.clone()).or_insert(Feed { member, reads: Vec::new() });
            link.reads.extend(list_reads(&analysis, &index.steps[reader], read));
            // A step may wait without reading anything: then the place that says so stands in for a read.
            if link.reads.is_empty() {
                link.reads.push(names::make_place(&analysis, need.span));
            }
            link.reads.sort();
            link.reads.dedup();
        }
    }
    found.into_values().collect()
}

/// The places where a step names another one: in its node, and in the texts that it says.
fn list_reads(analysis: &Analysis, reader: &Step, read: SymbolId) -> Vec<Place> {
    let index = &analysis.index;
    let whole = index.symbol(reader.symbol).whole;
    let texts: Vec<&TextUse> = index.texts.iter().filter(|text| text.owner == reader.symbol).collect();
    let within = |outer: swarmc_compiler::Span, inner: swarmc_compiler::Span| {
        outer.file == inner.file && outer.start <= inner.start && inner.end <= outer.end
    };
    let here = |span| within(whole, span) || texts.iter().any(|text| within(text.span, span));
    let places = index.occurrences_of(read).filter(|found| found.role != Role::Definition && here(found.span));
    places.map(|found| names::make_place(analysis, found.span)).collect()
}

/// The steps that are meant at an offset, by their positions in the index of each spec.
fn find_steps(snapshot: &Snapshot, path: &str, offset: usize) -> Vec<(std::sync::Arc<Analysis>, usize)> {
    let mut found = Vec::new();
    for analysis in snapshot.find_analyses(path) {
        let meant: Vec<SymbolId> = names::find_names(&analysis, path, offset).into_iter().map(|(_, id)| id).collect();
        let steps = analysis.index.steps.iter().enumerate().filter(|(_, step)| meant.contains(&step.symbol));
        let steps: Vec<usize> = steps.map(|(position, _)| position).collect();
        found.extend(steps.into_iter().map(|step| (std::sync::Arc::clone(&analysis), step)));
    }
    found
}

fn make_member(analysis: &Analysis, step: &Step) -> Member {
    let index = &analysis.index;
    let symbol = index.symbol(step.symbol);
    Member {
        name: symbol.name.clone(),
        kind: symbol.kind,
        detail: format!("{} · {}", index.shape(step.output).text, index.symbol(step.pipeline).name),
        place: names::make_place(analysis, symbol.span),
        whole: names::make_place(analysis, symbol.whole),
    }
}

/// The steps that wait for one, by position.
pub(super) fn list_dependents(index: &Index, step: usize) -> impl Iterator<Item = usize> {
    let waits = move |other: &Step| other.needs.iter().any(|need| need.step == step);
    index.steps.iter().enumerate().filter(move |(_, other)| waits(other)).map(|(position, _)| position)
}

/// The steps that say a text.
pub(super) fn list_speaking_steps<'i>(index: &'i Index, texts: &[TextUse]) -> impl Iterator<Item = &'i Step> {
    let is = |text: &TextUse, step: &Step| {
        step.symbol == text.owner && text.pipeline.is_none_or(|pipeline| pipeline == step.pipeline)
    };
    let texts = texts.to_vec();
    index.steps.iter().filter(move |step| texts.iter().any(|text| is(text, step)))
}

/// How another one must have ended, in a word.
pub(super) fn describe_when(when: When) -> &'static str {
    match when {
        When::Success => "success",
        When::Failure => "failure",
        When::Any => "any",
        When::Always => "always",
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::parse_fixture;
    use super::*;

    const FLOW: &str = "//- a.kdl
workflow w
provider p { exec cat }
agent a provider=p
pipeline main {
    task one agent=a { prompt \"begin\" }
    task two { run echo; depends-on one when=any }
    task three agent=a { input x from=two; prompt file=\"three.md\"; when \"output.two == 'x'\" }
    task four { value \"<<output:three>> <<output:one>>\" }
}
//- three.md
<<output:one>> and {{ output.one }} and <<input:x>>
";

    fn shown(snapshot: &Snapshot, links: Vec<Feed>) -> Vec<String> {
        let read = |place: &Place| {
            let document = snapshot.document(&place.path).expect("the file is there");
            let at = document.source().position(place.range.start);
            format!("{}:{}:{}", place.path, at.line, at.column)
        };
        let link = |link: Feed| {
            let reads: Vec<String> = link.reads.iter().map(read).collect();
            format!("{} ({}) {}", link.member.name, link.member.detail, reads.join(" "))
        };
        links.into_iter().map(link).collect()
    }

    #[test]
    fn a_step_is_called_by_who_feeds_it() {
        let (snapshot, path, offset) = parse_fixture(&FLOW.replace("task three", "task th$0ree"));
        assert_eq!(list_members(&snapshot, &path, offset).len(), 1);
        insta::assert_snapshot!(shown(&snapshot, list_incoming(&snapshot, &path, offset)).join("\n"), @"
        one (text · main) three.md:1:10 three.md:1:30
        two (text · main) a.kdl:7:39 a.kdl:7:81
        ");
        insta::assert_snapshot!(shown(&snapshot, list_outgoing(&snapshot, &path, offset)).join("\n"), @"four (text · main) a.kdl:8:33");
    }

    #[test]
    fn the_flow_is_followed_from_prompts_too() {
        let (snapshot, path, offset) = parse_fixture(&FLOW.replace("{{ output.one", "{{ output.on$0e"));
        assert_eq!(path, "three.md");
        insta::assert_snapshot!(shown(&snapshot, list_outgoing(&snapshot, &path, offset)).join("\n"), @"
        two (text · main) a.kdl:6:37
        three (text · main) three.md:1:10 three.md:1:30
        four (text · main) a.kdl:8:50
        ");
        assert!(list_incoming(&snapshot, &path, offset).is_empty());
        let (snapshot, path, offset) = parse_fixture(&FLOW.replace("<<input:x", "<<inp$0ut:x"));
        assert!(list_members(&snapshot, &path, offset).is_empty());
    }
}
