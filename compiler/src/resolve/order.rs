//! The order of steps: implied needs, cycles, and the references in them that can only mean the round before.

use std::collections::BTreeSet;

use petgraph::algo::{has_path_connecting, kosaraju_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};

use super::needs;
use crate::model::{Back, Order, Step, find_siblings};
use crate::template::Root;

/// Spells the implied needs out and orders the steps.
///
/// Where references alone close a cycle, those to a later-declared step are taken out: they are back references.
pub(super) fn order_steps(steps: &mut [Step<'_>]) -> Order {
    let later = later_logs(steps);
    needs::infer_needs(steps, &|step, read| later.contains(&(step, read)));
    // A circle that a declared need closes is a mistake to report, so it turns no reference into one to the round
    // before.
    let implied = build_graph(steps, |declared| !declared);
    let mut component = vec![usize::MAX; steps.len()];
    for (index, scc) in kosaraju_scc(&implied).into_iter().enumerate().filter(|(_, scc)| scc.len() > 1) {
        scc.into_iter().for_each(|node| component[node.index()] = index);
    }
    let mut back = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        for (position, read) in step.reads.iter().enumerate() {
            let Some(target) = read.step() else { continue };
            let is_back = match find_siblings(steps, index, target) {
                Some((holder, needed)) => {
                    let same_cycle = component[holder] != usize::MAX && component[holder] == component[needed];
                    let closes = same_cycle && needed > holder && is_blocking_read(&steps[holder], read.root, needed);
                    closes || later.contains(&(index, position))
                }
                // The step itself, or one of which one holds the other: neither has ended where it is read.
                None => is_back_reference(step, read.root, target == index),
            };
            if is_back {
                back.push(Back { step: index, read: position });
            }
        }
    }
    let dropped = drop_soft(steps, &component);
    if !back.is_empty() || dropped {
        // In the order of their reads, so a search finds them.
        let is_back =
            |step: usize, read: usize| back.binary_search_by_key(&(step, read), |back| (back.step, back.read)).is_ok();
        // The needs of these references would keep their circles closed.
        needs::infer_needs(steps, &is_back);
    }
    let graph = build_graph(steps, |_| true);
    match toposort(&graph, None) {
        Ok(sorted) => Order { sorted: group_loop_steps(steps, sorted), back, cycles: Vec::new() },
        Err(_) => {
            let sccs = kosaraju_scc(&graph);
            // The components come from last to first.
            // One that is not cyclic has a single member.
            let sorted = sccs.iter().rev().filter(|scc| !is_cyclic(&graph, scc)).map(|scc| scc[0]).collect();
            Order { sorted: group_loop_steps(steps, sorted), back, cycles: circles_in(&graph, &sccs) }
        }
    }
}

/// The reads of logs of steps that run after their readers: they mean the round before, whatever closes the circle.
fn later_logs(steps: &mut [Step<'_>]) -> BTreeSet<(usize, usize)> {
    let mut logs = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        for (position, read) in step.reads.iter().enumerate().filter(|(_, read)| read.root == Root::Log) {
            if let Some((holder, needed)) = read.step().and_then(|target| find_siblings(steps, index, target)) {
                logs.push(((index, position), holder, needed));
            }
        }
    }
    let mut later: BTreeSet<(usize, usize)> = logs.iter().map(|(read, ..)| *read).collect();
    if later.is_empty() {
        return later;
    }
    needs::infer_needs(steps, &|step, read| later.contains(&(step, read)));
    let mut graph = build_graph(steps, |_| true);
    // Where logs alone close a circle, those of later-declared steps are of the round before.
    logs.sort_by_key(|(_, holder, needed)| needed > holder);
    for (read, holder, needed) in logs {
        let (holder, needed) = (NodeIndex::new(holder), NodeIndex::new(needed));
        if !has_path_connecting(&graph, holder, needed, None) {
            // The logged step can run first without a circle, so its log is of this round.
            graph.add_edge(needed, holder, ());
            later.remove(&read);
        }
    }
    later
}

/// One circle, the shortest from its first member, of each component of a graph: `needs` says what each needs.
pub(crate) fn find_cycles(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut graph = DiGraph::with_capacity(needs.len(), needs.len());
    for _ in needs {
        graph.add_node(());
    }
    for (index, needs) in needs.iter().enumerate() {
        for &need in needs {
            graph.add_edge(NodeIndex::new(need), NodeIndex::new(index), ());
        }
    }
    circles_in(&graph, &kosaraju_scc(&graph))
}

fn circles_in(graph: &DiGraph<(), ()>, sccs: &[Vec<NodeIndex>]) -> Vec<Vec<usize>> {
    let mut circles: Vec<Vec<usize>> =
        sccs.iter().filter(|scc| is_cyclic(graph, scc)).map(|scc| find_shortest_cycle(graph, scc)).collect();
    circles.sort();
    circles
}

fn is_cyclic(graph: &DiGraph<(), ()>, scc: &[NodeIndex]) -> bool {
    scc.len() > 1 || graph.contains_edge(scc[0], scc[0])
}

/// Takes out what a step would wait for and what waits for it in turn: the round before is meant.
fn drop_soft(steps: &mut [Step<'_>], component: &[usize]) -> bool {
    let mut dropped = false;
    for index in 0..steps.len() {
        if steps[index].awaits.is_empty() {
            continue;
        }
        let mut awaits = std::mem::take(&mut steps[index].awaits);
        awaits.retain(|wait| match find_siblings(steps, index, wait.step) {
            Some((holder, needed)) => {
                let circular = component[holder] != usize::MAX && component[holder] == component[needed];
                let keep = !(wait.soft && circular && needed > holder);
                dropped |= !keep;
                keep
            }
            // A step that holds the other has not ended before it, so waiting would last forever.
            None => false,
        });
        steps[index].awaits = awaits;
    }
    dropped
}

/// Whether reading this root of a step makes the reader wait for it.
fn is_blocking_read(reader: &Step<'_>, root: Root, target: usize) -> bool {
    let reads = matches!(root, Root::Output | Root::Input | Root::Status | Root::Exit | Root::Error);
    reads && reader.needs.iter().any(|need| need.step == target && !need.declared)
}

/// The order with the steps of a loop behind it, and before what waits for the loop.
fn group_loop_steps(steps: &[Step<'_>], sorted: Vec<NodeIndex>) -> Vec<usize> {
    if steps.iter().all(|step| step.within.is_none()) {
        return sorted.into_iter().map(NodeIndex::index).collect();
    }
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    let mut open = Vec::new();
    // `open` is a stack, so the last step goes in first.
    for node in sorted.into_iter().rev() {
        match steps[node.index()].within {
            Some(holder) => inside[holder].push(node.index()),
            None => open.push(node.index()),
        }
    }
    let mut order = Vec::with_capacity(steps.len());
    while let Some(step) = open.pop() {
        order.push(step);
        open.append(&mut inside[step]);
    }
    order
}

/// Whether a step that reads this of itself, or of what holds it, reads something that is not there.
fn is_back_reference(step: &Step<'_>, root: Root, itself: bool) -> bool {
    match root {
        Root::Output | Root::Input | Root::Status => true,
        // A repeated attempt may read how the one before it failed.
        Root::Exit | Root::Error | Root::Log => !itself || step.ast.retry.times == 0,
        _ => false,
    }
}

/// The graph from each step to those that wait for it.
fn build_graph(steps: &[Step<'_>], keep: impl Fn(bool) -> bool) -> DiGraph<(), ()> {
    let mut graph = DiGraph::with_capacity(steps.len(), steps.len());
    // Nodes are numbered as they come, so each has the number of its step.
    for _ in steps {
        graph.add_node(());
    }
    for (index, step) in steps.iter().enumerate() {
        for need in step.needs.iter().filter(|need| keep(need.declared)) {
            graph.add_edge(NodeIndex::new(need.step), NodeIndex::new(index), ());
        }
    }
    graph
}

/// The shortest cycle through the first-declared step of a component: each needs the next one.
fn find_shortest_cycle(graph: &DiGraph<(), ()>, component: &[NodeIndex]) -> Vec<usize> {
    let start = component.iter().copied().min().expect("a component has a member");
    let inside: std::collections::BTreeSet<NodeIndex> = component.iter().copied().collect();
    let mut came = std::collections::BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        let needed = graph.neighbors_directed(node, petgraph::Direction::Incoming).filter(|next| inside.contains(next));
        for next in needed {
            if next == start {
                let mut cycle = vec![node.index()];
                let mut at = node;
                while at != start {
                    // All but the start have an entry from when they were put into the queue.
                    at = came[&at];
                    cycle.push(at.index());
                }
                cycle.reverse();
                return cycle;
            }
            if let std::collections::btree_map::Entry::Vacant(entry) = came.entry(next) {
                entry.insert(node);
                queue.push_back(next);
            }
        }
    }
    // Not reached: a component with a cycle leads back to its first member.
    vec![start.index()]
}
