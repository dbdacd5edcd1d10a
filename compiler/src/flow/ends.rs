//! How steps end, as formulas: whether a step runs, succeeds, fails, and which values it leaves behind.
//!
//! Only what a question needs is built, steps before those that wait for them. A step that can fail has a variable of
//! its own that says whether it does, if it runs; everything else follows from that and from the conditions.

use swarmc_plan::{Join, OnFailure, When};

use super::Flow;
use super::diagram::{ALWAYS, Formula, NEVER, Sized, TooLarge, Variable};
use super::values::{Key, Of};
use crate::model::{Body, Need, Step};
use crate::template::Root;

/// How a step ends: in neither way when it was skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) succeeded: Formula,
    pub(crate) failed: Formula,
}

/// What is to be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Run(usize),
    Ends(usize),
}

impl Flow<'_, '_> {
    /// Holds where the step runs.
    pub(super) fn runs(&mut self, step: usize) -> Sized {
        self.build(Task::Run(step));
        self.runs[step].ok_or(TooLarge)
    }

    /// How the step ends.
    pub(super) fn ends(&mut self, step: usize) -> Result<Ends, TooLarge> {
        self.build(Task::Ends(step));
        self.ends[step].ok_or(TooLarge)
    }

    fn is_built(&self, task: Task) -> bool {
        match task {
            Task::Run(step) => self.runs[step].is_some(),
            Task::Ends(step) => self.ends[step].is_some(),
        }
    }

    /// Builds what something needs, then itself, without recursion however long the pipeline is.
    fn build(&mut self, task: Task) {
        let mut open = vec![(task, false)];
        let mut seen = std::collections::BTreeSet::new();
        while let Some((task, ready)) = open.pop() {
            if self.is_built(task) {
                continue;
            }
            if ready {
                self.make(task);
            } else if seen.insert(task) {
                open.push((task, true));
                open.extend(self.before(task).into_iter().map(|before| (before, false)));
            }
        }
    }

    fn before(&self, task: Task) -> Vec<Task> {
        match task {
            Task::Run(step) => {
                let container = self.container(step).map(Task::Run);
                let needs = self.pipeline.steps[step].needs.iter().map(|need| Task::Ends(need.step));
                container.into_iter().chain(needs).collect()
            }
            Task::Ends(step) => {
                let inside = self.children(step).iter().map(|&child| Task::Ends(child));
                std::iter::once(Task::Run(step)).chain(inside).collect()
            }
        }
    }

    fn make(&mut self, task: Task) {
        // Where there is no room, it is anything: more can happen then than really does.
        match task {
            Task::Run(step) => {
                let runs = self.make_runs(step).or_else(|TooLarge| self.anything(step));
                self.runs[step] = runs.ok();
            }
            Task::Ends(step) => {
                let ends = self.make_ends(step).or_else(|TooLarge| {
                    let (succeeded, other) = (self.anything(step)?, self.anything(step)?);
                    Ok::<Ends, TooLarge>(Ends { succeeded, failed: self.diagram.without(other, succeeded)? })
                });
                self.ends[step] = ends.ok();
            }
        }
    }

    fn anything(&mut self, step: usize) -> Sized {
        let variable = self.fresh(self.position[step] + 1, 2);
        self.diagram.literal(variable, |value| value == 0)
    }

    fn make_runs(&mut self, step: usize) -> Sized {
        let needs = self.needs_hold(step)?;
        let when = self.when_holds(step)?;
        self.diagram.and(needs, when)
    }

    /// Holds where everything that the step waits for allows it to start, and what holds it runs.
    pub(super) fn needs_hold(&mut self, step: usize) -> Sized {
        let pipeline = self.pipeline;
        let resolved = &pipeline.steps[step];
        let mut all = match self.container(step) {
            Some(container) => self.runs(container)?,
            None => ALWAYS,
        };
        let join = resolved.ast.join.value;
        let (mut any, mut declared) = (NEVER, false);
        for need in &resolved.needs {
            let holds = self.satisfied(need, join)?;
            match need.declared && join != Join::All {
                true => {
                    declared = true;
                    any = self.diagram.or(any, holds)?;
                    if join == Join::NoneFailed {
                        let failed = self.ends(need.step)?.failed;
                        all = self.diagram.without(all, failed)?;
                    }
                }
                false => all = self.diagram.and(all, holds)?,
            }
        }
        if declared { self.diagram.and(all, any) } else { Ok(all) }
    }

    /// Holds where a need does.
    pub(super) fn satisfied(&mut self, need: &Need, join: Join) -> Sized {
        let when = if need.declared && join == Join::NoneFailed { When::Success } else { need.when };
        // Nothing starts after the end of the pipeline.
        if when != When::Always && matches!(self.pipeline.steps[need.step].body, Body::Stop(_)) {
            return Ok(NEVER);
        }
        if when == When::Always {
            return Ok(ALWAYS);
        }
        let ends = self.ends(need.step)?;
        match when {
            When::Success => Ok(ends.succeeded),
            When::Failure => Ok(ends.failed),
            When::Any | When::Always => self.diagram.or(ends.succeeded, ends.failed),
        }
    }

    /// Holds where the `when` of the step does.
    pub(super) fn when_holds(&mut self, step: usize) -> Sized {
        let pipeline = self.pipeline;
        match pipeline.steps[step].when.as_ref().and_then(|when| when.expression.tree.as_ref()) {
            Some(tree) => self.holds(Some(step), tree),
            None => Ok(ALWAYS),
        }
    }

    fn make_ends(&mut self, step: usize) -> Result<Ends, TooLarge> {
        let resolved = &self.pipeline.steps[step];
        let runs = self.runs(step)?;
        if !can_fail(resolved) {
            return Ok(Ends { succeeded: runs, failed: NEVER });
        }
        let outcome = self.outcome(step);
        let well = self.diagram.literal(outcome, |value| value == 0)?;
        let succeeded = self.diagram.and(runs, well)?;
        let failed = match resolved.ast.on_failure {
            // It counts as skipped.
            OnFailure::Skip => NEVER,
            _ => {
                let badly = self.diagram.literal(outcome, |value| value == 1)?;
                self.diagram.and(runs, badly)?
            }
        };
        Ok(Ends { succeeded, failed })
    }

    /// The variable that says how the step ends if it runs: well, badly, or left out by a person.
    fn outcome(&mut self, step: usize) -> Variable {
        if let Some(known) = self.outcomes[step] {
            return known;
        }
        let size = if self.pipeline.steps[step].ast.on_failure == OnFailure::Escalate { 3 } else { 2 };
        let variable = self.fresh(self.position[step] + 1, size);
        self.outcomes[step] = Some(variable);
        variable
    }

    /// Holds where the value is there.
    pub(super) fn present(&mut self, key: &Key) -> Sized {
        match (key.root, &key.of) {
            (Root::Output | Root::Exit | Root::Error, Of::Step(step)) => self.leaves(*step, key.root),
            (Root::Param, Of::Name(name)) => match self.param(name) {
                Some(param) if param.optional && param.default.is_none() => self.atom(format!("given {name}")),
                _ => Ok(ALWAYS),
            },
            (Root::Stdin | Root::Previous, _) => self.atom(format!("there {:?} {:?}", key.root, key.of)),
            _ => Ok(ALWAYS),
        }
    }

    /// Holds where the step leaves such a value behind.
    pub(super) fn leaves(&mut self, step: usize, root: Root) -> Sized {
        let resolved = &self.pipeline.steps[step];
        let ends = self.ends(step)?;
        match root {
            Root::Output | Root::Input if resolved.ast.output_default.is_some() => Ok(ALWAYS),
            Root::Output | Root::Input if resolved.keeps_output() => self.diagram.or(ends.succeeded, ends.failed),
            Root::Output | Root::Input => Ok(ends.succeeded),
            Root::Exit if resolved.has_exit() => self.diagram.or(ends.succeeded, ends.failed),
            Root::Exit => Ok(NEVER),
            Root::Error => Ok(ends.failed),
            _ => Ok(ALWAYS),
        }
    }
}

/// Whether the step can end badly once it runs: a computed text can only fail its `check`.
pub(crate) fn can_fail(step: &Step<'_>) -> bool {
    match step.body {
        Body::Value(_) | Body::Fields(_) | Body::Stop(_) => !step.ast.checks.is_empty(),
        Body::Prompt(_) | Body::Run | Body::Script(_) | Body::Missing => true,
    }
}
