//! SW502: free text of a stranger in the prompt of an agent that writes files or runs commands.
//!
//! What the agent then does is what the stranger wanted. A typed value without free text, or a person who decides in
//! between, breaks the flow.

use std::collections::BTreeSet;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::trust::graph::Graph;

pub(super) fn check(graph: &Graph, diagnostics: &mut Diagnostics) {
    let sources = || (0..graph.nodes.len()).filter(|&node| graph.nodes[node].marks.untrusted.is_some());
    if sources().next().is_none() || graph.nodes.iter().all(|node| node.marks.privileged.is_none()) {
        return;
    }
    let reach = graph.walk(&graph.index_edges(), sources(), |edge| edge.gate.is_open());
    let mut told = BTreeSet::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let Some(privileged) = &node.marks.privileged else { continue };
        if !reach.has_node(index) || !node.is_steerable() || !told.insert(node.span) {
            continue;
        }
        let (source, path) = reach.path(graph, index);
        let Some(untrusted) = &graph.nodes[source].marks.untrusted else { continue };
        let mut trace = vec![(untrusted.span, untrusted.text.clone())];
        trace.extend(super::injection::list_hops(graph, &path).into_iter().map(|hop| (hop.span, hop.text)));
        trace.push((privileged.span, privileged.text.clone()));
        // The mark says who it is as well, which the message has already.
        let does = privileged.text.rsplit_once("` ").map_or("", |(_, does)| does);
        let message = format!("text of strangers reaches the prompt of `{}`, which {does}", node.name);
        let help = match path.is_empty() {
            true => format!(
                "let another agent read it, and pass on a typed output to `{}`: `output {{ kind enum … }}`",
                node.name
            ),
            false => format!("{}, or put a `gate` before `{}`", graph.suggest_typing(source), node.name),
        };
        diagnostics.push(
            Diagnostic::new(Code::UntrustedToPrivileged, message)
                .label(node.span, "strangers can tell it what to do")
                .trace(trace)
                .help(help),
        );
    }
}
