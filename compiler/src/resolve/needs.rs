//! What a step waits for: what it says, and what its reads imply.
//!
//! Needs are between steps of one list. A reference from outside to a step in a loop waits for the loop, and what a step
//! in a loop needs from outside is a need of the loop.

use std::collections::{BTreeMap, BTreeSet};

use swarmc_plan::{Join, When};

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Await, Need, Read, Step, find_siblings};
use crate::source::Span;
use crate::template::Root;

/// A `depends-on`, looked up.
pub(super) struct Declared {
    pub(super) step: usize,
    pub(super) target: usize,
    pub(super) when: When,
    pub(super) span: Span,
}

/// Writes down the needs that are written.
pub(super) fn add_declared_needs(steps: &mut [Step<'_>], declared: Vec<Declared>, diagnostics: &mut Diagnostics) {
    let mut seen: Vec<(usize, Span)> = Vec::new();
    let mut reader = usize::MAX;
    for Declared { step, target, when, span } in declared {
        // What one step says stands together, so a short list is enough to search.
        if reader != step {
            seen.clear();
            reader = step;
        }
        let twice = seen.iter().find(|(known, _)| *known == target).map(|(_, first)| *first);
        if let Some(first) = twice {
            diagnostics.push(depends_twice(steps, step, target, span, first));
            continue;
        }
        seen.push((target, span));
        let Some((holder, needed)) = find_siblings(steps, step, target) else {
            if step != target {
                diagnostics.push(nested_dependency(steps, step, target, span));
                continue;
            }
            // A need of itself stays, for the search for circles to report.
            steps[step].needs.push(Need { step: target, when, declared: true, handles: false, span });
            continue;
        };
        let handles = matches!(when, When::Failure | When::Any);
        if holder == step {
            // Two steps of one loop are one need from outside it: the weaker.
            match steps[step].needs.iter_mut().find(|need| need.step == needed && need.declared) {
                Some(known) => {
                    known.when = known.when.max(when);
                    known.handles |= handles;
                }
                None => steps[step].needs.push(Need { step: needed, when, declared: true, handles, span }),
            }
            continue;
        }
        if steps[step].ast.join.value != Join::All {
            diagnostics.push(join_across(steps, step, holder, target, span));
            continue;
        }
        // Other steps of the loop may need the same: the weaker is the loop's.
        merge_need(&mut steps[holder], Need { step: needed, when, declared: false, handles, span });
    }
    for step in steps {
        // What is written stands first.
        step.needs.sort_by_key(|need| !need.declared);
        step.written = step.needs.len();
    }
}

fn depends_twice(steps: &[Step<'_>], step: usize, target: usize, span: Span, first: Span) -> Diagnostic {
    let message = format!("`{}` depends on `{}` twice", steps[step].name(), steps[target].name());
    Diagnostic::new(Code::Duplicate, message)
        .label(span, "again here")
        .label(first, "first here")
        .help("remove one of them; `when=any` covers success and failure")
}

fn nested_dependency(steps: &[Step<'_>], step: usize, target: usize, span: Span) -> Diagnostic {
    let (one, other) = (steps[step].name(), steps[target].name());
    let holds = matches!(steps[step].body, crate::model::Body::Loop { .. }) && encloses_step(steps, step, target);
    let message = match holds {
        true => format!("loop `{one}` waits for `{other}`, which is part of it"),
        false => format!("`{one}` waits for loop `{other}`, of which it is a part"),
    };
    Diagnostic::new(Code::Cycle, message)
        .label(span, "ends only after this began")
        .label(steps[target].ast.name.span, "declared here")
        .help("take this `depends-on` out; the steps of a loop start when the loop does")
}

fn encloses_step(steps: &[Step<'_>], outer: usize, inner: usize) -> bool {
    std::iter::successors(Some(inner), |&step| steps[step].within).any(|step| step == outer)
}

fn join_across(steps: &[Step<'_>], step: usize, holder: usize, target: usize, span: Span) -> Diagnostic {
    let (name, holder) = (steps[step].name(), steps[holder].name());
    let message = format!("`{name}` cannot combine `{}`, which is outside loop `{holder}`", steps[target].name());
    Diagnostic::new(Code::WrongValue, message)
        .label(span, "has settled before the loop begins")
        .label(steps[step].ast.join.span, "combines steps of one round")
        .help(format!(
            "write this `depends-on` in `{holder}`, or ask in the `when`: `status.{}`",
            steps[target].name().replace('-', "_")
        ))
}

/// Adds the needs that steps' reads imply; `back` says which reads mean the round before.
pub(super) fn infer_needs(steps: &mut [Step<'_>], back: &dyn Fn(usize, usize) -> bool) {
    let defaults: Vec<bool> = steps.iter().map(|step| step.ast.output.default.is_some()).collect();
    // A second pass, with other back references, starts from what is written.
    for step in steps.iter_mut() {
        step.needs.truncate(step.written);
    }
    for index in 0..steps.len() {
        for position in 0..steps[index].awaits.len() {
            let Await { step: target, when, span, .. } = steps[index].awaits[position];
            let Some((holder, needed)) = find_siblings(steps, index, target) else { continue };
            merge_need(&mut steps[holder], Need { step: needed, when, declared: false, handles: false, span });
        }
        let asked: BTreeSet<usize> =
            steps[index].reads.iter().filter(|read| read.in_when).filter_map(unguarded_step).collect();
        let whole: BTreeSet<usize> = steps[index].reads.iter().filter_map(unguarded_step).collect();
        // Of the loops that it reads from: the steps in them that it needs.
        let mut of_loops: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &target in &whole {
            if let Some((_, needed)) = find_siblings(steps, index, target).filter(|(_, needed)| *needed != target) {
                of_loops.entry(needed).or_default().push(target);
            }
        }
        for position in 0..steps[index].reads.len() {
            let read = &steps[index].reads[position];
            let Some(target) = read.step() else { continue };
            let Some((when, handles)) = required_outcome(read, defaults[target]) else { continue };
            let span = read.span;
            let siblings = find_siblings(steps, index, target);
            // A default for one step of a loop says nothing of another one, without which there is no value.
            let needs_other = siblings
                .and_then(|(_, needed)| of_loops.get(&needed))
                .is_some_and(|targets| targets.iter().any(|&other| other != target));
            // Without what its `when` reads a step fails before any guard is asked; and a default for a field that may
            // be left out says nothing of the whole value, where another place needs that.
            let outdone = match read.fields.is_empty() {
                true => asked.contains(&target),
                false => whole.contains(&target),
            };
            let guard = when == When::Always && !handles && !defaults[target];
            if back(index, position) || guard && (outdone || needs_other) {
                continue;
            }
            let Some((holder, needed)) = siblings else { continue };
            merge_need(&mut steps[holder], Need { step: needed, when, declared: false, handles, span });
        }
    }
}

/// Adds a need that is not the step's own word: what is written overrides it, several become the weakest.
fn merge_need(holder: &mut Step<'_>, need: Need) {
    match holder.needs.iter().position(|known| known.step == need.step) {
        Some(known) if known < holder.written || holder.needs[known].declared => {}
        Some(known) => {
            let known = &mut holder.needs[known];
            known.when = known.when.max(need.when);
            known.handles |= need.handles;
        }
        None => holder.needs.push(need),
    }
}

/// How the step that is read must have ended, and whether that handles its failure.
fn required_outcome(read: &Read, has_default: bool) -> Option<(When, bool)> {
    match read.root {
        Root::Output | Root::Input if read.guards_step() || has_default => Some((When::Always, false)),
        Root::Output | Root::Input => Some((When::Success, false)),
        Root::Status => Some((When::Always, true)),
        Root::Exit | Root::Error | Root::Log => Some((When::Any, true)),
        _ => None,
    }
}

/// The step whose output is read where nothing says what holds without it.
fn unguarded_step(read: &Read) -> Option<usize> {
    let output = matches!(read.root, Root::Output | Root::Input);
    read.step().filter(|_| output && !read.guards_step())
}
