//! Who reads where something is completed, and how other steps stand to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swarmc_compiler::index::{Index, Step, Symbol, SymbolId, SymbolKind};
use swarmc_compiler::{FileId, Span};

use super::super::cursor::{CursorContext, CursorKind, Entry};
use super::super::{Analysis, Snapshot};

/// How many who say one text are told apart.
const MOST: usize = 16;

/// A spec that a text is part of, and who says it there.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) analysis: Arc<Analysis>,
    /// The file whose names it can use: of a prompt, the spec.
    pub(crate) home: FileId,
    pub(crate) readers: Vec<Reader>,
}

/// Who says a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// The step, agent, member or other thing; none where that is not known yet.
    pub(crate) owner: Option<SymbolId>,
    /// The pipeline whose steps it can read.
    pub(crate) pipeline: Option<SymbolId>,
    /// The step, by its position in the index; none where the pipeline itself or one of its loops asks after a round.
    pub(crate) step: Option<usize>,
    /// Whether the item of a `for-each` is there: not where its list is said.
    pub(crate) body: bool,
    /// The loop whose rounds an `until` ends; its steps are meant first.
    pub(crate) rounds: Option<SymbolId>,
}

/// How a step stands to one that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relation {
    /// It runs in the rounds that are asked about.
    Inside,
    /// It has ended before; so many steps lie between, from 1.
    Before(usize),
    /// The reader is no step: nothing waits.
    Beside,
    /// Neither waits for the other.
    Free,
    /// It waits for the reader, or is the reader.
    After,
}

/// The specs that a file is part of, as far as they are known, its own first.
pub(crate) fn recent_specs(snapshot: &Snapshot, path: &str) -> Vec<(Arc<Analysis>, FileId)> {
    let (own, others): (Vec<&str>, Vec<&str>) = snapshot.specs().partition(|spec| *spec == path);
    let known = own.into_iter().chain(others).filter_map(|spec| snapshot.recent_analysis(spec));
    known.filter_map(|analysis| analysis.file(path).map(|file| (analysis, file))).collect()
}

/// The readers of a prompt file.
pub(crate) fn of_prompt(snapshot: &Snapshot, path: &str) -> Vec<Scope> {
    let scope = |(analysis, file): (Arc<Analysis>, FileId)| {
        let index = &analysis.index;
        let users = index.text_uses_in(file).take(MOST).map(|text| make_reader(index, text.owner, text.pipeline, true));
        let readers: Vec<Reader> = users.collect();
        let home = analysis.compilation.sources.files().next()?;
        (!readers.is_empty()).then_some(Scope { home, readers, analysis })
    };
    recent_specs(snapshot, path).into_iter().filter_map(scope).collect()
}

/// The readers of a text in a spec.
pub(crate) fn of_spot(snapshot: &Snapshot, path: &str, spot: &CursorContext<'_>) -> Vec<Scope> {
    let scope = |(analysis, file): (Arc<Analysis>, FileId)| {
        let readers = list_readers(&analysis.index, file, spot);
        Scope { home: file, readers, analysis }
    };
    recent_specs(snapshot, path).into_iter().map(scope).collect()
}

fn make_reader(index: &Index, owner: SymbolId, pipeline: Option<SymbolId>, body: bool) -> Reader {
    let step = pipeline.and_then(|pipeline| {
        index.steps_of(pipeline).find(|(_, step)| step.symbol == owner).map(|(position, _)| position)
    });
    Reader { owner: Some(owner), pipeline, step, body, rounds: None }
}

fn list_readers(index: &Index, file: FileId, spot: &CursorContext<'_>) -> Vec<Reader> {
    let entry = match &spot.what {
        CursorKind::Entry(entry) => Some(entry),
        _ => None,
    };
    let asks = entry.is_some_and(|entry| entry.node.is_named("until"));
    let body = !entry.is_some_and(|entry| entry.node.is_named("when") || entry.node.is_named("for-each"));
    let pipeline = spot.around.iter().find(|node| node.is_named("pipeline")).and_then(|node| node.declared_name());
    let pipeline = pipeline.and_then(|name| find_top_level(index, SymbolKind::Pipeline, name, file));
    let nodes = spot.around.iter().chain(entry.map(|entry: &Entry<'_>| &entry.node)).rev();
    let owner = nodes.into_iter().find_map(|node| Some((node.known?.name, node.declared_name()?, node.is_step())));
    match (owner, pipeline) {
        (_, Some(pipeline)) if asks => {
            let name =
                spot.around.iter().rev().find(|node| node.is_named("loop")).and_then(|node| node.declared_name());
            let mut steps = index.steps_of(pipeline).map(|(_, step)| step.symbol);
            let rounds = steps.find(|step| Some(index.symbol(*step).name.as_str()) == name);
            vec![Reader { owner: Some(pipeline), pipeline: Some(pipeline), body, rounds, ..NO_OWNER }]
        }
        (_, Some(pipeline)) => {
            let name = spot.around.iter().rev().find(|node| node.is_step()).and_then(|node| node.declared_name());
            let step = index.steps_of(pipeline).find(|(_, step)| {
                let symbol = index.symbol(step.symbol);
                Some(symbol.name.as_str()) == name
            });
            vec![Reader {
                owner: step.map_or(Some(pipeline), |(_, step)| Some(step.symbol)),
                pipeline: Some(pipeline),
                step: step.map(|(position, _)| position),
                body,
                rounds: None,
            }]
        }
        (Some(_), None) => {
            let outer = spot.around.iter().chain(entry.map(|entry| &entry.node)).find_map(|node| {
                let kind = kind_of(node.known?.name)?;
                find_top_level(index, kind, node.declared_name()?, file)
            });
            let Some(owner) = outer else { return vec![NO_OWNER] };
            let member =
                entry.filter(|entry| entry.node.is_named("member")).and_then(|entry| entry.node.declared_name());
            let found = list_outer_readers(index, owner, member, body);
            if found.is_empty() { vec![Reader { owner: Some(owner), ..NO_OWNER }] } else { found }
        }
        (None, None) => vec![NO_OWNER],
    }
}

/// Who says a text that stands outside of the pipelines.
fn list_outer_readers(index: &Index, owner: SymbolId, member: Option<&str>, body: bool) -> Vec<Reader> {
    let step = |(position, step): (usize, &Step)| Reader {
        owner: Some(step.symbol),
        pipeline: Some(step.pipeline),
        step: Some(position),
        body,
        rounds: None,
    };
    let steps = || index.steps.iter().enumerate();
    match index.symbol(owner).kind {
        // A shared task is a step of every pipeline that uses it.
        SymbolKind::Task => steps().filter(|(_, step)| step.symbol == owner).take(MOST).map(step).collect(),
        // A shared prompt is said by every step that names it.
        SymbolKind::Prompt => {
            let places: Vec<Span> = index.occurrences_of(owner).map(|place| place.span).collect();
            let names = |whole: Span| {
                let inside =
                    |place: &Span| place.file == whole.file && whole.start <= place.start && place.end <= whole.end;
                places.iter().any(inside)
            };
            steps().filter(|(_, step)| names(index.symbol(step.symbol).whole)).take(MOST).map(step).collect()
        }
        // The system text of an agent is the same in every step that it takes.
        SymbolKind::Agent => {
            let taken = steps().filter(|(_, step)| step.agent == Some(owner)).map(|(_, step)| step.pipeline);
            let pipelines: BTreeSet<SymbolId> = taken.collect();
            let reader = |pipeline| Reader { owner: Some(owner), pipeline: Some(pipeline), body, ..NO_OWNER };
            pipelines.into_iter().take(MOST).map(reader).collect()
        }
        SymbolKind::Swarm => {
            let named = |symbol: &Symbol| {
                symbol.kind == SymbolKind::Member
                    && symbol.within == Some(owner)
                    && Some(symbol.name.as_str()) == member
            };
            let found = index.list_symbols().find(|(_, symbol)| named(symbol));
            found.map(|(member, _)| Reader { owner: Some(member), ..NO_OWNER }).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

const NO_OWNER: Reader = Reader { owner: None, pipeline: None, step: None, body: true, rounds: None };

fn kind_of(node: &str) -> Option<SymbolKind> {
    Some(match node {
        "task" => SymbolKind::Task,
        "agent" => SymbolKind::Agent,
        "swarm" => SymbolKind::Swarm,
        "context-pack" => SymbolKind::Pack,
        "provider" => SymbolKind::Provider,
        "tool-server" => SymbolKind::ToolServer,
        "prompt" => SymbolKind::Prompt,
        _ => return None,
    })
}

/// What is declared at the top level of a file.
pub(crate) fn find_top_level(index: &Index, kind: SymbolKind, name: &str, file: FileId) -> Option<SymbolId> {
    let found = |(id, symbol): (SymbolId, &Symbol)| {
        (symbol.kind == kind && symbol.within.is_none() && symbol.span.file == file && symbol.name == name)
            .then_some(id)
    };
    index.list_symbols().find_map(found)
}

/// A step of a reader's pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Other {
    /// Its position in the index.
    pub(crate) step: usize,
    /// How it stands to the reader.
    pub(crate) relation: Relation,
    /// Whether there is ever a round before that of the reader in which it ran.
    pub(crate) repeats: bool,
}

/// The steps of a reader's pipeline in declaration order, and how they stand to it.
pub(crate) fn list_other_steps(index: &Index, reader: &Reader) -> Vec<Other> {
    let Some(pipeline) = reader.pipeline else { return Vec::new() };
    let steps: Vec<usize> = index.steps_of(pipeline).map(|(position, _)| position).collect();
    let Some(me) = reader.step else {
        let inside = |step: usize| reader.rounds.is_some() && index.steps[step].within == reader.rounds;
        let relation = |step| if inside(step) { Relation::Inside } else { Relation::Beside };
        return steps.into_iter().map(|step| Other { step, relation: relation(step), repeats: false }).collect();
    };
    let graph = Graph::new(index, &steps);
    let mut found: BTreeMap<usize, Relation> = steps.iter().map(|&step| (step, Relation::Free)).collect();
    for (step, _) in graph.find_reachable(me, |step| graph.followers.get(&step).map_or(&[], Vec::as_slice)) {
        found.insert(step, Relation::After);
    }
    // In a circle a step is both, and what the reader waits for counts.
    for (step, distance) in graph.find_reachable(me, |step| graph.needs.get(&step).map_or(&[], Vec::as_slice)) {
        found.insert(step, Relation::Before(distance));
    }
    // A loop around the reader has not ended while the reader runs.
    for holder in graph.list_holders(me) {
        found.remove(&holder);
    }
    found.insert(me, Relation::After);
    let mine: Vec<usize> = graph.list_holders(me).collect();
    let repeats = |step| index.steps[me].rounds || graph.list_holders(step).any(|holder| mine.contains(&holder));
    found.into_iter().map(|(step, relation)| Other { step, relation, repeats: repeats(step) }).collect()
}

/// The needs of the steps of one pipeline, both ways.
struct Graph {
    needs: BTreeMap<usize, Vec<usize>>,
    followers: BTreeMap<usize, Vec<usize>>,
    /// The loop that a step stands in.
    holder: BTreeMap<usize, usize>,
    /// The steps of a loop.
    held: BTreeMap<usize, Vec<usize>>,
}

impl Graph {
    fn new(index: &Index, steps: &[usize]) -> Graph {
        let by_symbol: BTreeMap<SymbolId, usize> = steps.iter().map(|&step| (index.steps[step].symbol, step)).collect();
        let mut graph = Graph {
            needs: BTreeMap::new(),
            followers: BTreeMap::new(),
            holder: BTreeMap::new(),
            held: BTreeMap::new(),
        };
        for &step in steps {
            for need in &index.steps[step].needs {
                graph.needs.entry(step).or_default().push(need.step);
                graph.followers.entry(need.step).or_default().push(step);
            }
            let holder = index.steps[step].within.and_then(|holder| by_symbol.get(&holder).copied());
            if let Some(holder) = holder {
                graph.holder.insert(step, holder);
                graph.held.entry(holder).or_default().push(step);
            }
        }
        graph
    }

    fn list_holders(&self, step: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.holder.get(&step).copied(), |holder| self.holder.get(holder).copied())
    }

    /// The steps that can be reached from one, with the fewest edges to each; what holds for a loop holds for its steps.
    fn find_reachable<'g>(&'g self, from: usize, next: impl Fn(usize) -> &'g [usize]) -> Vec<(usize, usize)> {
        let mut distances: BTreeMap<usize, usize> = BTreeMap::from([(from, 0)]);
        let mut queue = vec![(from, 0)];
        let mut at = 0;
        while let Some(&(step, distance)) = queue.get(at) {
            at += 1;
            for source in std::iter::once(step).chain(self.list_holders(step)) {
                for &reached in next(source) {
                    let mut inner = vec![reached];
                    while let Some(one) = inner.pop() {
                        if distances.contains_key(&one) {
                            continue;
                        }
                        distances.insert(one, distance + 1);
                        queue.push((one, distance + 1));
                        inner.extend(self.held.get(&one).into_iter().flatten());
                    }
                }
            }
        }
        queue.split_off(1)
    }
}
