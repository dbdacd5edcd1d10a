//! SW501: one agent, or one flow of text, joins private data, text of strangers and a way out.
//!
//! A stranger's text that reaches an agent steers it; if that agent also sees private data, and what it writes can leave,
//! the stranger has it. Any of the three alone is fine, and so is any two; a typed value without free text, or a person
//! who reads what passes and decides, breaks the flow.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::Name;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;
use crate::trust::graph::{Edge, Gate, Graph, Kind, Mark, Reach};

/// Ways out of one meeting that are told: it is mended in one place, whatever their number.
const MOST: usize = 4;

/// Hops of one way that are shown at either end; those between are counted.
const SHOWN: usize = 8;

pub(super) fn check(graph: &Graph, diagnostics: &mut Diagnostics) {
    let has = |mark: fn(usize, &Graph) -> bool| (0..graph.nodes.len()).any(|node| mark(node, graph));
    let untrusted = |node: usize, graph: &Graph| graph.nodes[node].marks.untrusted.is_some();
    let private = |node: usize, graph: &Graph| graph.nodes[node].marks.private.is_some();
    let exit = |node: usize, graph: &Graph| graph.nodes[node].marks.exit.is_some();
    // Most specs lack one of the three, and need no walks.
    if !has(untrusted) || !has(private) || !has(exit) {
        return;
    }
    let ways = graph.index_edges();
    let all = |mark: fn(usize, &Graph) -> bool| (0..graph.nodes.len()).filter(move |&node| mark(node, graph));
    let open = |edge: &Edge| edge.gate != Gate::Shown;
    let strange = graph.walk(&ways, all(untrusted), open);
    let secret = graph.walk(&ways, all(private), open);
    // In an agent that reads both, the text of strangers can ask for the private data.
    let meets = |node: usize| graph.nodes[node].is_steerable() && strange.has_node(node) && secret.has_node(node);
    let firsts = graph.find_origins(&ways, (0..graph.nodes.len()).filter(|&node| meets(node)), open);
    let taken = graph.walk(&ways, firsts, open);
    let mut told: BTreeMap<Span, BTreeSet<Option<Span>>> = BTreeMap::new();
    for sink in all(exit).filter(|&node| taken.has_node(node)) {
        let (meeting, out) = taken.path(graph, sink);
        let flow = Flow { graph, meeting, sink, out };
        // The check reports an agent once, however many tasks it has.
        let exit = graph.nodes[sink].marks.exit.as_ref().map(|mark| mark.span);
        let place = flow.sole_agent().map_or(graph.nodes[meeting].span, |agent| agent.span);
        let exits = told.entry(place).or_default();
        if exits.len() < MOST && exits.insert(exit) {
            diagnostics.push(flow.report_injection(&strange, &secret));
        }
    }
}

/// One flow: both meet in `meeting`, and it leaves by `sink`.
struct Flow<'g> {
    graph: &'g Graph,
    meeting: usize,
    sink: usize,
    out: Vec<usize>,
}

impl Flow<'_> {
    /// The agent that has all three by itself.
    fn sole_agent(&self) -> Option<&Name> {
        let marks = &self.graph.nodes[self.sink].marks;
        let agent = |mark: &'_ Option<Mark>| mark.as_ref().and_then(|mark| mark.agent.as_ref().map(|agent| agent.span));
        let exit = marks.exit.as_ref()?.agent.as_ref()?;
        let same = [&marks.untrusted, &marks.private].iter().all(|mark| agent(mark) == Some(exit.span));
        (same && self.meeting == self.sink).then_some(exit)
    }

    fn report_injection(&self, strange: &Reach, secret: &Reach) -> Diagnostic {
        let graph = self.graph;
        let (source, to_meeting) = strange.path(graph, self.meeting);
        let (vault, from_vault) = secret.path(graph, self.meeting);
        let mut trace = Vec::new();
        let mut push = |mark: &Mark| trace.push((mark.span, mark.text.clone()));
        let hops = |path: &[usize]| list_hops(graph, path);
        let mark = |mark: &Option<Mark>| mark.clone().expect("a flow begins and ends where there is a mark");
        push(&mark(&graph.nodes[source].marks.untrusted));
        hops(&to_meeting).iter().for_each(&mut push);
        push(&mark(&graph.nodes[vault].marks.private));
        hops(&from_vault).iter().for_each(&mut push);
        hops(&self.out).iter().for_each(&mut push);
        push(&mark(&graph.nodes[self.sink].marks.exit));
        let (source, meeting, sink) =
            (graph.describe_node(source), graph.describe_node(self.meeting), graph.describe_node(self.sink));
        let diagnostic = match self.sole_agent() {
            Some(agent) => {
                let message =
                    format!("agent `{}` reads text of strangers, sees private data and can send it away", agent.value);
                Diagnostic::new(Code::LethalTrifecta, message).label(agent.span, "has all three").help(
                    "split it in two with a typed output between them, `output { kind enum … }`, or take one of the three away",
                )
            }
            None => {
                let through = if self.meeting == self.sink { String::new() } else { format!(" through {sink}") };
                let message =
                    format!("text of strangers, from {source}, can make {meeting} give private data away{through}");
                Diagnostic::new(Code::LethalTrifecta, message)
                    .label(graph.nodes[self.meeting].span, "text of strangers meets private data here")
                    .help(self.suggest_type(&to_meeting))
            }
        };
        diagnostic.trace(trace)
    }

    /// Where a type would end the flow.
    fn suggest_type(&self, to_meeting: &[usize]) -> String {
        let graph = self.graph;
        let typed = |node: usize| matches!(graph.nodes[node].kind, Kind::Turn | Kind::Step | Kind::Gate);
        // The step nearest to the meeting that can have a typed output, before it or else after it.
        let before = to_meeting.iter().rev().map(|&edge| graph.edges[edge].from).find(|&node| typed(node));
        let after = self.out.iter().map(|&edge| graph.edges[edge].from).find(|&node| typed(node));
        match before.or(after) {
            Some(node) => format!("{}, so that no free text passes", graph.suggest_typing(node)),
            None => "remove a power from one of them; or let tasks of a pipeline hand over a type without free text, \
                 `carries=TYPE` on an edge"
                .to_owned(),
        }
    }
}

/// A way, hop by hop; the middle of a long one in a word.
pub(super) fn list_hops(graph: &Graph, path: &[usize]) -> Vec<Mark> {
    let hop = |edge: &usize| {
        let edge = &graph.edges[*edge];
        Mark { span: edge.span, text: graph.describe_edge(edge), agent: None }
    };
    if path.len() <= 2 * SHOWN + 1 {
        return path.iter().map(hop).collect();
    }
    let (first, rest) = path.split_at(SHOWN);
    let (middle, last) = rest.split_at(rest.len() - SHOWN);
    let between = Mark { text: format!("and so on, {} more times", middle.len()), ..hop(&middle[0]) };
    first.iter().map(hop).chain([between]).chain(last.iter().map(hop)).collect()
}
