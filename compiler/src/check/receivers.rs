//! SW307: an edge of a pipeline leads to a task that takes no turn after the sender, or a required answer has no
//! receiver.
//!
//! A message waits in its receiver's inbox until the receiver's next turn. A task has no next turn if it ends before
//! the sender starts, or if it never runs when the sender does, unless a loop or another round holds both. The run
//! refuses a message to such a task. If the message is a required answer, the task that owes it fails, so this is an
//! error. In a swarm every message wakes its receiver, so the check skips swarms.

use std::collections::BTreeMap;

use swarmc_plan::{EdgeKind, Response};

use crate::ast::{Edge, Name};
use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flow::Lazy;
use crate::model::{Pipeline, Step};
use crate::source::Span;

pub(super) fn check(pipeline: &Pipeline<'_>, flow: &mut Lazy<'_, '_>, diagnostics: &mut Diagnostics) {
    let Some(edges) = &pipeline.ast.edges else { return };
    let steps: BTreeMap<&str, usize> =
        pipeline.steps.iter().enumerate().map(|(index, step)| (step.name(), index)).collect();
    for edge in &edges.list {
        let ends = [&edge.from, &edge.to].map(|end| steps.get(end.value.as_str()).copied());
        let [Some(from), Some(to)] = ends else { continue };
        if from == to || pipeline.has_previous_round(from, to) || diagnostics.has_report_at(edge.span) {
            continue;
        }
        let way = CheckedEdge { pipeline, edge };
        let found = match flow.get().find_wait(from, to) {
            Some(need) => Some(way.report_ended((from, &edge.from), (to, &edge.to), need)),
            None if flow.get().is_exclusive(from, to) => {
                Some(way.report_exclusive(&pipeline.steps[from], &pipeline.steps[to]))
            }
            None => None,
        };
        // What comes back along the edge, if anything does.
        let back = || {
            let need = flow.get().find_wait(to, from)?;
            let ended = || edge.both.then(|| way.report_ended((to, &edge.to), (from, &edge.from), need));
            way.report_unanswered(from, to, need).or_else(ended)
        };
        if let Some(diagnostic) = found.or_else(back) {
            diagnostics.push(diagnostic);
        }
    }
}

/// An edge that the check looks at, with its pipeline.
struct CheckedEdge<'p, 'a> {
    pipeline: &'p Pipeline<'a>,
    edge: &'p Edge,
}

impl CheckedEdge<'_, '_> {
    /// The receiver has ended before the sender starts; `need` is what the sender waits for.
    fn report_ended(&self, from: (usize, &Name), to: (usize, &Name), need: Span) -> Diagnostic {
        let (sender, receiver) = (&from.1.value, &to.1.value);
        let diagnostic =
            report_unread(sender, receiver, to.1.span, format!("`{receiver}` has ended when `{sender}` starts"))
                .label(need, explain_order(sender, receiver));
        if !self.edge.both {
            return diagnostic.help(format!(
                "take the edge out, turn it round, `{receiver} -> {sender}`, or put both tasks in a `loop`, so that \
                 `{receiver}` takes another turn"
            ));
        }
        let one_way = format!("{receiver} -> {sender}");
        let written = Span::new(self.edge.span.file, self.edge.from.span.start, self.edge.to.span.end);
        diagnostic
            .help(format!("write `{one_way}`, or put both tasks in a `loop`, so that `{receiver}` takes another turn"))
            .unsafe_fix(format!("write `{one_way}`"), written, one_way)
    }

    /// No run has both.
    fn report_exclusive(&self, from: &Step<'_>, to: &Step<'_>) -> Diagnostic {
        let (sender, receiver) = (from.name(), to.name());
        let diagnostic = report_unread(
            sender,
            receiver,
            self.edge.to.span,
            format!("`{receiver}` never runs where `{sender}` does"),
        );
        [from, to]
            .into_iter()
            .filter_map(|step| Some((step, step.when.as_ref()?)))
            .fold(diagnostic, |diagnostic, (step, when)| {
                diagnostic.label(when.text.span(0..when.text.as_str().len()), format!("`{}` runs then", step.name()))
            })
            .help("take the edge out, or lead it to a task that runs in either case")
    }

    /// A task requires an answer, but it has ended when the other task starts.
    fn report_unanswered(&self, from: usize, to: usize, need: Span) -> Option<Diagnostic> {
        if self.edge.response.value != Response::Required || self.edge.kind != EdgeKind::Handoff {
            return None;
        }
        let (asker, other) = (self.pipeline.steps[from].name(), self.pipeline.steps[to].name());
        let message = format!("`{other}` has to answer `{asker}`, which takes no turn after it");
        let diagnostic = Diagnostic::new(Code::UnreachableReceiver, message)
            .label(self.edge.response.span, format!("`{asker}` has ended when `{other}` starts"))
            .label(need, explain_order(other, asker))
            .help(format!(
                "write `response=none`, or put both tasks in a `loop`, so that `{asker}` takes another turn"
            ));
        Some(Diagnostic { severity: Some(Severity::Error), ..diagnostic })
    }
}

fn report_unread(sender: &str, receiver: &str, place: Span, label: String) -> Diagnostic {
    let message = format!("`{sender}` can write to `{receiver}`, which takes no turn after it");
    Diagnostic::new(Code::UnreachableReceiver, message).label(place, label)
}

fn explain_order(later: &str, earlier: &str) -> String {
    format!("because of this `{later}` starts after `{earlier}`")
}
