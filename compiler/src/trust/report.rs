//! Reports which taint may have reached each step and member, for people who look at one of them.
//!
//! In: the graph. Out: the spans of the steps and members that text of strangers or private data can reach, by the same
//! rules as in the checks.

use super::graph::{Edge, Gate, Graph, Marks};
use crate::source::Span;

/// The taint that may have reached a step or a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Text that strangers wrote, which can steer an agent.
    pub strangers: bool,
    /// Private data.
    pub private: bool,
}

/// The taint of each node of the graph, by the span that declares the node; leaves out nodes without taint.
pub(crate) fn collect_taints(graph: &Graph) -> Vec<(Span, Trust)> {
    let marked = |mark: fn(&Marks) -> bool| (0..graph.nodes.len()).filter(move |&node| mark(&graph.nodes[node].marks));
    let strangers: Vec<usize> = marked(|marks| marks.untrusted.is_some()).collect();
    let private: Vec<usize> = marked(|marks| marks.private.is_some()).collect();
    if strangers.is_empty() && private.is_empty() {
        return Vec::new();
    }
    let ways = graph.index_edges();
    let open = |edge: &Edge| edge.gate != Gate::Shown;
    let (strangers, private) = (graph.walk(&ways, strangers, open), graph.walk(&ways, private, open));
    let trust = |node: usize| Trust { strangers: strangers.has_node(node), private: private.has_node(node) };
    let all = graph.nodes.iter().enumerate().map(|(index, node)| (node.span, trust(index)));
    all.filter(|(_, trust)| *trust != Trust::default()).collect()
}
