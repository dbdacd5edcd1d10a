//! SW303: tasks require responses of each other in a circle. Each task waits for the next one, so no task ever answers.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use swarmc_plan::{EdgeKind, Response};

use crate::ast::{Edge, Edges};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Model;

/// The labels that one diagnostic can bear and still be read.
const DRAWN: usize = 6;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let of_pipelines = model.pipelines.iter().filter_map(|pipeline| pipeline.ast.edges.as_ref());
    let of_swarms = model.spec.swarms.iter().filter_map(|swarm| swarm.edges.as_ref());
    for edges in of_pipelines.chain(of_swarms) {
        check_edges(edges, diagnostics);
    }
}

/// Who waits for whose answer, and where that is said.
fn check_edges(edges: &Edges, diagnostics: &mut Diagnostics) {
    let mut nodes: BTreeMap<&str, NodeIndex> = BTreeMap::new();
    let mut graph: DiGraph<&str, &Edge> = DiGraph::new();
    let waiting = |edge: &&Edge| edge.response.value == Response::Required && edge.kind == EdgeKind::Handoff;
    for edge in edges.list.iter().filter(waiting) {
        let (from, to) = (edge.from.value.as_str(), edge.to.value.as_str());
        let [from, to] = [from, to].map(|name| *nodes.entry(name).or_insert_with(|| graph.add_node(name)));
        // Two opposite edges are no circle: a task answers a request along the edge on which the request came.
        graph.add_edge(from, to, edge);
    }
    let mut circles: Vec<Vec<NodeIndex>> = kosaraju_scc(&graph).into_iter().filter(|circle| circle.len() > 1).collect();
    // The search has an order of its own, and reports follow that of the spec.
    circles.sort_by_key(|circle| circle.iter().min().copied());
    for members in circles {
        diagnostics.push(report_circle(&graph, &find_shortest_circle(&graph, &members)));
    }
}

/// The shortest circle through the first of these.
fn find_shortest_circle<'e>(graph: &DiGraph<&str, &'e Edge>, members: &[NodeIndex]) -> Vec<(NodeIndex, &'e Edge)> {
    let start = members.iter().copied().min().expect("a circle has members");
    let members: BTreeSet<NodeIndex> = members.iter().copied().collect();
    let mut came: BTreeMap<NodeIndex, (NodeIndex, &Edge)> = BTreeMap::new();
    let mut open = std::collections::VecDeque::from([start]);
    while let Some(node) = open.pop_front() {
        let mut next: Vec<_> =
            graph.edges(node).map(|edge| (petgraph::visit::EdgeRef::target(&edge), *edge.weight())).collect();
        // Of two circles of one length, always the same one is shown.
        next.sort_by_key(|(target, _)| *target);
        for (target, edge) in next.into_iter().filter(|(target, _)| members.contains(target)) {
            if target == start {
                let mut circle = vec![(node, edge)];
                let mut at = node;
                while at != start {
                    // Besides the first, only nodes with an entry are opened.
                    let (before, edge) = came[&at];
                    circle.push((before, edge));
                    at = before;
                }
                circle.reverse();
                return circle;
            }
            came.entry(target).or_insert_with(|| {
                open.push_back(target);
                (node, edge)
            });
        }
    }
    // Not reached: what is strongly connected leads back to its first member.
    Vec::new()
}

fn report_circle(graph: &DiGraph<&str, &Edge>, circle: &[(NodeIndex, &Edge)]) -> Diagnostic {
    let mut path: Vec<String> = circle.iter().take(DRAWN).map(|(node, _)| format!("`{}`", graph[*node])).collect();
    if circle.len() > DRAWN {
        path.push(format!("{} more", circle.len() - DRAWN));
    }
    path.extend(path.first().cloned());
    let diagnostic = Diagnostic::new(
        Code::Deadlock,
        format!("these can wait for each other's answers for ever: {}", path.join(" → ")),
    );
    let mut labelled = Vec::new();
    let diagnostic = circle.iter().take(DRAWN).enumerate().fold(diagnostic, |diagnostic, (index, (node, edge))| {
        if labelled.contains(&edge.span) {
            return diagnostic;
        }
        labelled.push(edge.span);
        let other = graph[circle[(index + 1) % circle.len()].0];
        diagnostic.label(edge.span, format!("`{}` waits until `{other}` answers", graph[*node]))
    });
    diagnostic.help("let one of them go on without an answer: `response=optional`")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::{Code, compile};

    /// The messages about circles in a pipeline with these edges.
    fn circles(edges: &str) -> Vec<String> {
        let tasks: String = ["a", "b", "c"].map(|name| format!("task {name} {{ prompt x }}\n")).concat();
        let spec = format!("provider p {{ exec cat }}\nagent g\npipeline main {{\n{tasks}edges {{\n{edges}\n}}\n}}\n");
        let files = BTreeMap::from([("spec.kdl".to_owned(), spec)]);
        let found = compile("spec.kdl", &files).diagnostics.into_iter();
        found.filter(|found| found.code == Code::Deadlock).map(|found| found.message).collect()
    }

    #[test]
    fn a_circle_in_which_everybody_waits_is_drawn() {
        let three = "a -> b response=required\nb -> c response=required\nc -> a response=required";
        assert_eq!(circles(three), ["these can wait for each other's answers for ever: `a` → `b` → `c` → `a`"]);
        let two = "a -> b response=required\nb -> a response=required";
        assert_eq!(circles(two), ["these can wait for each other's answers for ever: `a` → `b` → `a`"]);
    }

    #[test]
    fn a_circle_in_which_one_task_goes_on_is_none() {
        assert_eq!(circles("a -> b response=required\nb -> c response=required\nc -> a response=optional"), [""; 0]);
        assert_eq!(circles("a -> b response=required\na -> c response=required\nb -> c response=required"), [""; 0]);
        assert_eq!(circles("a <-> b response=required"), [""; 0]);
    }
}
