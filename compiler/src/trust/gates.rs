//! Where a person decides before text goes on.
//!
//! In: a pipeline. Out: for two steps, whether a gate comes after the one and before the other, and whether it shows what
//! passes. A gate that an option of its own can answer counts as shown only where that option does not lead on.

use super::graph::Gate;
use crate::model::{Body, Pipeline, Step};
use crate::source::Span;
use crate::template::{Comparison, Expr, ExprKind, Path, Root};

/// The gates of a pipeline, by bit; the first so many.
const MOST: usize = 128;

pub(super) struct Gates {
    /// The steps that are gates, at most [`MOST`].
    list: Vec<usize>,
    /// By step: the gates that it comes after.
    after: Vec<u128>,
    /// By step: the gates that come after it.
    before: Vec<u128>,
}

impl Gates {
    pub(super) fn new(pipeline: &Pipeline<'_>) -> Gates {
        let steps = &pipeline.steps;
        let gates = (0..steps.len()).filter(|&step| matches!(steps[step].body, Body::Gate { .. }));
        let list: Vec<usize> = gates.take(MOST).collect();
        let mut gates = Gates { list, after: Vec::new(), before: Vec::new() };
        if !gates.list.is_empty() && pipeline.order.cycles.is_empty() {
            gates.index_gates(pipeline);
        }
        gates
    }

    fn index_gates(&mut self, pipeline: &Pipeline<'_>) {
        let steps = &pipeline.steps;
        // A loop holds the gates in it.
        let mut own = vec![0u128; steps.len()];
        for (bit, &gate) in self.list.iter().enumerate() {
            let holders = std::iter::successors(Some(gate), |&step: &usize| steps[step].within);
            holders.for_each(|step| own[step] |= 1 << bit);
        }
        let (mut after, mut before) = (vec![0u128; steps.len()], vec![0u128; steps.len()]);
        for &step in &pipeline.order.sorted {
            for need in &steps[step].needs {
                after[step] |= after[need.step] | own[need.step];
            }
        }
        for &step in pipeline.order.sorted.iter().rev() {
            for need in &steps[step].needs {
                before[need.step] |= before[step] | own[step];
            }
        }
        // What holds for a loop holds for what stands in it; a loop comes before what stands in it.
        for step in 0..steps.len() {
            if let Some(holder) = steps[step].within {
                after[step] |= after[holder];
                before[step] |= before[holder];
            }
        }
        (self.after, self.before) = (after, before);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.after.is_empty()
    }

    /// The gate that stands between two steps, at its strictest.
    pub(super) fn find_gate(&self, pipeline: &Pipeline<'_>, from: usize, to: usize) -> Gate {
        let between = self.before[from] & self.after[to];
        if between == 0 {
            return Gate::Open;
        }
        let shown = self.list.iter().enumerate().filter(|(bit, _)| between & (1 << bit) != 0).any(|(_, &gate)| {
            pipeline.steps[gate].reads.iter().any(|read| read.step() == Some(from))
                && asks_a_person(&pipeline.steps[gate], &pipeline.steps[to], gate)
        });
        if shown { Gate::Shown } else { Gate::Between }
    }
}

/// Whether nothing but a person's answer leads from a gate to a step.
fn asks_a_person(gate: &Step<'_>, to: &Step<'_>, index: usize) -> bool {
    let Some(written) = gate.body.gate() else { return false };
    let answers = written.headless.iter().chain(written.on_timeout.iter().map(|timeout| &timeout.choice));
    let mut answers = answers.filter(|choice| choice.value != "fail").peekable();
    if answers.peek().is_none() {
        return true;
    }
    // The places where the condition reads the gate.
    let places: Vec<Span> =
        to.reads.iter().filter(|read| read.in_when && read.step() == Some(index)).map(|read| read.whole).collect();
    let Some(when) = &to.when else { return false };
    let Some(tree) = &when.expression.tree else { return false };
    let is_gate = |expr: &Expr| {
        let fields = expr.as_path().filter(|path| path.root == Root::Output).map(Path::fields);
        fields.is_some_and(|fields| fields.len() == 1 && fields[0].text == "choice")
            && places.contains(&when.text.span(expr.range.clone()))
    };
    answers.all(|choice| excludes(tree, &is_gate, &choice.value))
}

/// Whether a condition surely fails where the value that `is_gate` recognizes is this choice.
fn excludes(condition: &Expr, is_gate: &dyn Fn(&Expr) -> bool, choice: &str) -> bool {
    match &condition.kind {
        ExprKind::And(terms) => terms.iter().any(|term| excludes(term, is_gate, choice)),
        ExprKind::Or(terms) => terms.iter().all(|term| excludes(term, is_gate, choice)),
        ExprKind::Compare { left, op, right } => match op {
            Comparison::Eq | Comparison::Ne => {
                let other = if is_gate(left) { right.as_text() } else { left.as_text().filter(|_| is_gate(right)) };
                other.is_some_and(|other| (other == choice) == (*op == Comparison::Ne))
            }
            Comparison::In => {
                let items = right.as_items().filter(|_| is_gate(left));
                items.is_some_and(|items| items.iter().all(|item| item.as_text().is_some_and(|text| text != choice)))
            }
            _ => false,
        },
        ExprKind::Not(of) => match &of.kind {
            ExprKind::Compare { left, op: Comparison::In, right } => {
                let items = right.as_items().filter(|_| is_gate(left));
                items.is_some_and(|items| items.iter().any(|item| item.as_text() == Some(choice)))
            }
            _ => false,
        },
        _ => false,
    }
}
