//! SW501: private data, text of strangers and a way out, in one agent or in a flow that joins them.
//!
//! A stranger's text that reaches an agent steers it; if that agent also sees private data, and what it writes can leave,
//! the stranger has it. Any of the three alone is fine, and so is any two; a typed value without free text, or a person
//! who reads what passes and decides, breaks the flow.

use std::collections::BTreeSet;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;
use crate::trust::graph::{Edge, Gate, Graph, Mark, Reach};

pub(super) fn check(graph: &Graph, diagnostics: &mut Diagnostics) {
    let has = |mark: fn(usize, &Graph) -> bool| (0..graph.nodes.len()).any(|node| mark(node, graph));
    let untrusted = |node: usize, graph: &Graph| graph.nodes[node].marks.untrusted.is_some();
    let private = |node: usize, graph: &Graph| graph.nodes[node].marks.private.is_some();
    let exit = |node: usize, graph: &Graph| graph.nodes[node].marks.exit.is_some();
    if !has(untrusted) || !has(private) || !has(exit) {
        return;
    }
    let ways = graph.ways();
    let all = |mark: fn(usize, &Graph) -> bool| (0..graph.nodes.len()).filter(move |&node| mark(node, graph));
    let open = |edge: &Edge| edge.gate != Gate::Shown;
    let strange = graph.walk(&ways, all(untrusted), open);
    let secret = graph.walk(&ways, all(private), open);
    // Where both meet in somebody who thinks, the one can ask for the other.
    let meets = |node: usize| graph.nodes[node].thinks() && strange.has(node) && secret.has(node);
    let taken = graph.walk(&ways, (0..graph.nodes.len()).filter(|&node| meets(node)), open);
    let mut told: BTreeSet<Span> = BTreeSet::new();
    for sink in all(exit).filter(|&node| taken.has(node)) {
        let (meeting, out) = taken.path(graph, sink);
        let flow = Flow { graph, meeting, sink, out };
        // An agent with all three is told once, whatever tasks it has.
        let place = flow.alone().unwrap_or(graph.nodes[sink].span);
        if told.insert(place) {
            diagnostics.push(flow.report(&strange, &secret));
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
    /// The place that says that one agent alone has all three.
    fn alone(&self) -> Option<Span> {
        let marks = &self.graph.nodes[self.sink].marks;
        let all = self.meeting == self.sink && marks.untrusted.is_some() && marks.private.is_some();
        marks.exit.as_ref().filter(|_| all).map(|mark| mark.span)
    }

    fn report(&self, strange: &Reach, secret: &Reach) -> Diagnostic {
        let graph = self.graph;
        let (source, to_meeting) = strange.path(graph, self.meeting);
        let (vault, from_vault) = secret.path(graph, self.meeting);
        let mut trace = Vec::new();
        let mut push = |mark: &Mark| trace.push((mark.span, mark.text.clone()));
        let mark = |mark: &Option<Mark>| mark.clone().expect("a flow begins and ends where there is a mark");
        push(&mark(&graph.nodes[source].marks.untrusted));
        to_meeting.iter().for_each(|&edge| push(&hop(graph, edge)));
        push(&mark(&graph.nodes[vault].marks.private));
        from_vault.iter().for_each(|&edge| push(&hop(graph, edge)));
        self.out.iter().for_each(|&edge| push(&hop(graph, edge)));
        push(&mark(&graph.nodes[self.sink].marks.exit));
        let name = |node: usize| graph.named(node);
        let (message, label) = match self.alone() {
            Some(_) => (
                format!("{} reads what strangers wrote, sees private data and can send it away", name(self.sink)),
                "has all three".to_owned(),
            ),
            None => (
                format!(
                    "what strangers wrote, from {}, can make {} give private data away through {}",
                    name(source),
                    name(self.meeting),
                    name(self.sink)
                ),
                match self.meeting == self.sink {
                    true => "here the text of strangers meets private data and a way out".to_owned(),
                    false => "here the text of strangers meets private data".to_owned(),
                },
            ),
        };
        Diagnostic::new(Code::LethalTrifecta, message)
            .label(graph.nodes[self.meeting].span, label)
            .trace(trace)
            .help(self.help(source, vault, &to_meeting))
    }

    fn help(&self, source: usize, vault: usize, to_meeting: &[usize]) -> String {
        let graph = self.graph;
        match to_meeting.first() {
            None if self.alone().is_some() => format!(
                "split {} in two agents with a typed output between them, `output {{ kind enum … }}`, or take one of the \
                 three away",
                graph.named(self.sink)
            ),
            None => format!(
                "give {} a typed output without free text, `output {{ kind enum … }}`, or take away what one of them can do",
                graph.named(if self.meeting == source { vault } else { source })
            ),
            Some(_) => format!(
                "give {} a typed output without free text, `output {{ kind enum … }}`, so that nothing else of it passes",
                graph.named(source)
            ),
        }
    }
}

fn hop(graph: &Graph, edge: usize) -> Mark {
    let edge = &graph.edges[edge];
    Mark { span: edge.span, text: graph.say(edge) }
}
