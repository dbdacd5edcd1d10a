//! How steps end, as formulas: whether a step runs, succeeds, fails, and which values it leaves behind.
//!
//! This module builds only the formulas that a question needs, and builds a step before those that wait for it. A step
//! that can fail has its own variable for failure; all else follows from these variables and from the conditions.

use swarmc_plan::{Exhausted, Join, StepKind, When};

use super::diagram::{ALWAYS, Formula, NEVER, Sized, TooLarge, Variable};
use super::values::{Key, Of};
use super::{Answer, Flow};
use crate::ast::{ForEachJoin, OnFailure};
use crate::model::{Body, Need, Read, Step};
use crate::template::Root;

/// How a step ends: in neither way when it was skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) succeeded: Formula,
    pub(crate) failed: Formula,
}

/// What is to be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    Run(usize),
    Ends(usize),
}

impl Flow<'_, '_> {
    /// Holds where the step runs.
    pub(super) fn run_formula(&mut self, step: usize) -> Sized {
        self.build_task(Task::Run(step))?;
        self.runs[step].ok_or(TooLarge)
    }

    /// How the step ends.
    pub(super) fn step_ends(&mut self, step: usize) -> Result<Ends, TooLarge> {
        self.build_task(Task::Ends(step))?;
        self.ends[step].ok_or(TooLarge)
    }

    fn is_built(&self, task: Task) -> bool {
        match task {
            Task::Run(step) => self.runs[step].is_some(),
            Task::Ends(step) => self.ends[step].is_some(),
        }
    }

    /// Builds what something needs, then itself, without recursion however long the pipeline is. What asks about itself,
    /// as an `until` may about its own loop, finds nothing there yet. Each of them has a share of the work of its own: one
    /// that is too large for it spoils none of those that wait for it.
    fn build_task(&mut self, task: Task) -> Result<(), TooLarge> {
        if self.is_built(task) {
            return Ok(());
        }
        let mut open = vec![(task, false)];
        let mut seen = std::collections::BTreeSet::new();
        while let Some((task, ready)) = open.pop() {
            if self.is_built(task) || self.making.contains(&task) {
                continue;
            }
            if ready {
                self.making.push(task);
                self.diagram.begin_question();
                self.make_task(task);
                self.making.pop();
            // Each task opens its needs once, so the loop ends also where they form a circle.
            } else if seen.insert(task) {
                let before = self.task_prerequisites(task);
                // Below what it waits for on the stack, so that it is made after that.
                open.push((task, true));
                open.extend(before.into_iter().map(|before| (before, false)));
            }
        }
        // What was built here must not count for the question that led here.
        self.diagram.begin_question();
        Ok(())
    }

    fn task_prerequisites(&self, task: Task) -> Vec<Task> {
        match task {
            Task::Run(step) => {
                let container = self.pipeline.steps[step].within.map(Task::Run);
                let needs = self.pipeline.steps[step].needs.iter().map(|need| Task::Ends(need.step));
                container.into_iter().chain(needs).collect()
            }
            Task::Ends(step) => {
                let mut before = vec![Task::Run(step)];
                if let Body::Loop { until_reads, .. } = &self.pipeline.steps[step].body {
                    before.extend(until_reads.iter().filter_map(|read| read.step()).map(Task::Ends));
                }
                for &child in &self.children[step] {
                    before.push(Task::Ends(child));
                    // What fails is handled only where one of these runs: `handled_formula` asks for that.
                    before.extend(self.handlers[child].iter().map(|&handler| Task::Run(handler)));
                }
                before
            }
        }
    }

    fn make_task(&mut self, task: Task) {
        // Where there is no room, it is anything: more can happen then than really does.
        match task {
            Task::Run(step) => {
                let runs = self.make_runs(step);
                self.runs[step] = Some(runs.unwrap_or_else(|TooLarge| self.unknown_formula(step)));
            }
            Task::Ends(step) => {
                let ends = self.make_ends(step);
                self.ends[step] = Some(ends.unwrap_or_else(|TooLarge| self.any_end(step)));
            }
        }
    }

    /// Something of a step of which nothing is known, as it was too large.
    fn unknown_formula(&mut self, step: usize) -> Formula {
        let rank = self.rank_after(step);
        let variable = self.rough_variable(rank);
        self.diagram.literal(variable, |value| value == 0)
    }

    /// Any end of a step that runs, or none.
    fn any_end(&mut self, step: usize) -> Ends {
        let (succeeded, other) = (self.unknown_formula(step), self.unknown_formula(step));
        // Two tests of variables of their own: there is always room.
        Ends { succeeded, failed: self.diagram.and_not(other, succeeded).unwrap_or(other) }
    }

    fn make_runs(&mut self, step: usize) -> Sized {
        let needs = self.needs_hold(step)?;
        let when = self.when_holds(step)?;
        let runs = self.diagram.and(needs, when)?;
        match self.pipeline.spawned[step] {
            // It runs if another step spawns it, which the compiler cannot know.
            Some(_) => {
                let asked = self.make_atom(Some(step), format!("spawned {step}"));
                self.diagram.and(runs, asked)
            }
            None => Ok(runs),
        }
    }

    /// Holds where everything that the step waits for allows it to start, and what holds it runs.
    pub(super) fn needs_hold(&mut self, step: usize) -> Sized {
        let pipeline = self.pipeline;
        let resolved = &pipeline.steps[step];
        let mut all = match resolved.within {
            Some(container) => self.run_formula(container)?,
            None => ALWAYS,
        };
        let join = resolved.ast.join.value;
        let (mut any, mut declared) = (NEVER, false);
        for need in &resolved.needs {
            let holds = self.need_formula(need, join)?;
            match need.declared && join != Join::All {
                true => {
                    declared = true;
                    any = self.diagram.or(any, holds)?;
                    if join == Join::NoneFailed {
                        let failed = self.step_ends(need.step)?.failed;
                        all = self.diagram.and_not(all, failed)?;
                    }
                }
                false => all = self.diagram.and(all, holds)?,
            }
        }
        // Without such a need, `any` has stayed at its start, and the step would never run.
        if declared { self.diagram.and(all, any) } else { Ok(all) }
    }

    /// Holds where a need does.
    pub(super) fn need_formula(&mut self, need: &Need, join: Join) -> Sized {
        // `none-failed` itself takes the failures out: here only a success counts.
        let when = if need.declared && join == Join::NoneFailed { When::Success } else { need.when };
        // Nothing starts after the end of the pipeline.
        if when != When::Always && matches!(self.pipeline.steps[need.step].body, Body::Stop { .. }) {
            return Ok(NEVER);
        }
        if when == When::Always {
            return Ok(ALWAYS);
        }
        let ends = self.step_ends(need.step)?;
        match when {
            When::Success => Ok(ends.succeeded),
            When::Failure => Ok(ends.failed),
            When::Any | When::Always => self.diagram.or(ends.succeeded, ends.failed),
        }
    }

    /// Holds where the `when` of the step does.
    pub(super) fn when_holds(&mut self, step: usize) -> Sized {
        let pipeline = self.pipeline;
        let Some(tree) = pipeline.steps[step].when.as_ref().and_then(|when| when.expression.tree.as_ref()) else {
            return Ok(ALWAYS);
        };
        if let Some(known) = self.whens[step] {
            return known;
        }
        let holds = self.condition_formula(Some(step), tree);
        // What is asked while it is being built may find nothing yet.
        if holds.is_ok() || self.making.is_empty() {
            self.whens[step] = Some(holds);
        }
        holds
    }

    fn make_ends(&mut self, step: usize) -> Result<Ends, TooLarge> {
        let resolved = &self.pipeline.steps[step];
        let runs = self.run_formula(step)?;
        if !can_fail(resolved) {
            return Ok(Ends { succeeded: runs, failed: NEVER });
        }
        let outcome = self.outcome_variable(step);
        let well = self.diagram.literal(outcome, |value| value == 0);
        let succeeded = self.diagram.and(runs, well)?;
        let succeeded = match &resolved.body {
            Body::Loop { .. } => {
                let calm = self.success_formula(Some(step))?;
                self.diagram.and(succeeded, calm)?
            }
            _ => succeeded,
        };
        let failed = match resolved.ast.on_failure {
            // It counts as skipped.
            OnFailure::Skip => NEVER,
            OnFailure::Escalate(_) => {
                let left_out = self.diagram.literal(outcome, |value| value == 2);
                let ran = self.diagram.and_not(runs, left_out)?;
                self.diagram.and_not(ran, succeeded)?
            }
            OnFailure::Fail | OnFailure::Fix(_) => self.diagram.and_not(runs, succeeded)?,
        };
        Ok(Ends { succeeded, failed })
    }

    /// Holds where the last round of a loop, or of the pipeline, ends well: nothing failed that nothing handles, and an
    /// `until` held where one must.
    pub(super) fn success_formula(&mut self, holder: Option<usize>) -> Sized {
        let pipeline = self.pipeline;
        let (until, reads, exhausted) = match holder.map(|holder| &pipeline.steps[holder]) {
            Some(Step { body: Body::Loop { body, until, until_reads }, .. }) => (until, until_reads, body.exhausted),
            _ => (&pipeline.until, &pipeline.until_reads, pipeline.ast.exhausted),
        };
        let all = self.handled_formula(holder, reads)?;
        if exhausted == Exhausted::Success || until.is_empty() {
            return Ok(all);
        }
        let mut ended = NEVER;
        for condition in until {
            let holds = match &condition.expression.tree {
                Some(tree) => self.condition_formula(None, tree)?,
                None => ALWAYS,
            };
            // One that reads a missing value does not hold.
            let mut there = ALWAYS;
            for read in condition.expression.reads.iter().filter(|read| !read.guarded) {
                let fields = read.fields.to_vec();
                if let Some(key) = self.key_of(None, read.root, read.name.as_deref(), fields) {
                    let present = self.presence_formula(None, &key)?;
                    there = self.diagram.and(there, present)?;
                }
            }
            let holds = self.diagram.and(holds, there)?;
            ended = self.diagram.or(ended, holds)?;
        }
        self.diagram.and(all, ended)
    }

    /// Holds where nothing failed in a round that nothing handles; `reads` are those of its `until`.
    pub(super) fn handled_formula(&mut self, holder: Option<usize>, reads: &[Read]) -> Sized {
        let pipeline = self.pipeline;
        let mut all = ALWAYS;
        for child in self.child_steps(holder) {
            let step = &pipeline.steps[child];
            let asked = |read: &Read| read.step() == Some(child) && read.root.handles_failure();
            if !can_fail(step) || step.ast.output.default.is_some() || reads.iter().any(asked) {
                continue;
            }
            // There are many of them, and each is a question of its own.
            self.diagram.begin_question();
            let mut unhandled = self.step_ends(child)?.failed;
            for handler in self.handlers[child].clone() {
                let runs = self.run_formula(handler)?;
                unhandled = self.diagram.and_not(unhandled, runs)?;
            }
            all = self.diagram.and_not(all, unhandled)?;
        }
        Ok(all)
    }

    /// The steps of a loop, or those of the pipeline that stand in none.
    fn child_steps(&self, holder: Option<usize>) -> Vec<usize> {
        match holder {
            Some(holder) => self.children[holder].clone(),
            None => (0..self.pipeline.steps.len()).filter(|&step| self.pipeline.steps[step].within.is_none()).collect(),
        }
    }

    /// The variable that says how the step ends if it runs: well, badly, or left out by a person.
    fn outcome_variable(&mut self, step: usize) -> Variable {
        if let Some(known) = self.outcomes[step] {
            return known;
        }
        let escalates = matches!(self.pipeline.steps[step].ast.on_failure, OnFailure::Escalate(_));
        let size = if escalates { 3 } else { 2 };
        let rank = self.rank_after(step);
        let variable = self.fresh_variable(rank, size);
        self.outcomes[step] = Some(variable);
        variable
    }

    /// Holds where the value is there, as the reader sees it.
    pub(super) fn presence_formula(&mut self, reader: Option<usize>, key: &Key) -> Sized {
        let whole = match (key.root, &key.of) {
            (Root::Output | Root::Exit | Root::Error | Root::Log, Of::Step(step)) => {
                self.value_formula(reader, *step, key.root)?
            }
            (Root::Param, Of::Name(name)) => match self.find_param(name) {
                Some(param) if param.kind.optional && param.default.is_none() => {
                    self.make_atom(reader, format!("given {name}"))
                }
                _ => ALWAYS,
            },
            (Root::Stdin | Root::Previous | Root::Log, _) => {
                self.make_atom(reader, format!("there {:?} {:?}", key.root, key.of))
            }
            _ => ALWAYS,
        };
        // A field that may be left out is there or not, whatever else is.
        let mut all = whole;
        for depth in self.optional_fields(key) {
            let field =
                self.make_atom(reader, format!("field {:?} {:?} {:?}", key.root, key.of, &key.fields[..=depth]));
            all = self.diagram.and(all, field)?;
        }
        Ok(all)
    }

    /// How the step ends, as the reader sees it; without a reader, as the end of its round does.
    pub(super) fn ends_for_reader(&mut self, reader: Option<usize>, step: usize) -> Result<Ends, TooLarge> {
        let ends = self.step_ends(step)?;
        let Some(reader) = reader else { return Ok(ends) };
        let reached = self.reached_in_rounds(self.pipeline.steps[reader].within, step)?;
        let succeeded = self.diagram.and(ends.succeeded, reached)?;
        Ok(Ends { succeeded, failed: self.diagram.and(ends.failed, reached)? })
    }

    /// Holds where the last round of the loops around the step came as far as the step: a loop that fails ends its
    /// round at once. `holder` is the loop in which the question is asked.
    pub(super) fn reached_in_rounds(&mut self, holder: Option<usize>, step: usize) -> Sized {
        let pipeline = self.pipeline;
        let around = |step: Option<usize>| std::iter::successors(step, |&step: &usize| pipeline.steps[step].within);
        // In a loop that holds the reader as well, both are in one round.
        let shared: Vec<usize> = around(holder).collect();
        let mut all = ALWAYS;
        for outer in around(pipeline.steps[step].within).take_while(|outer| !shared.contains(outer)) {
            let succeeded = self.step_ends(outer)?.succeeded;
            let came = self.make_atom(Some(step), format!("round of {outer} came to {step}"));
            let reached = self.diagram.or(succeeded, came)?;
            all = self.diagram.and(all, reached)?;
        }
        Ok(all)
    }

    /// Holds where the step leaves such a value behind, as the reader sees it.
    pub(super) fn value_formula(&mut self, reader: Option<usize>, step: usize, root: Root) -> Sized {
        let resolved = &self.pipeline.steps[step];
        let ends = self.ends_for_reader(reader, step)?;
        match root {
            Root::Output | Root::Input if resolved.ast.output.default.is_some() => Ok(ALWAYS),
            Root::Output | Root::Input => match &resolved.body {
                _ if resolved.keeps_output() => self.diagram.or(ends.succeeded, ends.failed),
                Body::Call { pipeline: Some(called), .. } => match self.sure.get(*called) {
                    Some(Answer::No) => {
                        let given = self.make_atom(Some(step), format!("value {step}"));
                        self.diagram.and(ends.succeeded, given)
                    }
                    Some(Answer::Unknown) => {
                        let given = self.unknown_formula(step);
                        self.diagram.and(ends.succeeded, given)
                    }
                    Some(Answer::Yes) | None => Ok(ends.succeeded),
                },
                _ => Ok(ends.succeeded),
            },
            Root::Exit if resolved.has_exit() => self.diagram.or(ends.succeeded, ends.failed),
            Root::Log if resolved.has_log() => self.diagram.or(ends.succeeded, ends.failed),
            Root::Exit | Root::Log => Ok(NEVER),
            // The list of the items that failed, which may be empty.
            Root::Error if resolved.list.is_some() => self.diagram.or(ends.succeeded, ends.failed),
            Root::Error => Ok(ends.failed),
            _ => Ok(ALWAYS),
        }
    }

    /// Whether the pipeline has a value whenever it succeeds.
    pub(super) fn has_value(&mut self) -> Answer {
        self.diagram.begin_question();
        let pipeline = self.pipeline;
        let stops = pipeline
            .steps
            .iter()
            .enumerate()
            .filter(|(_, step)| matches!(step.body, Body::Stop { status: swarmc_plan::StopStatus::Success, .. }));
        // A `stop` that succeeds ends the pipeline without its value.
        if stops.into_iter().any(|(stop, _)| !pipeline.result.contains(&stop)) {
            return Answer::No;
        }
        let without = self.success_formula(None).and_then(|calm| {
            pipeline.result.iter().try_fold(calm, |without, &step| {
                let succeeded = self.step_ends(step)?.succeeded;
                let there = self.value_formula(None, step, Root::Output)?;
                let reached = self.reached_in_rounds(None, step)?;
                let value = self.diagram.and(succeeded, there)?;
                let value = self.diagram.and(value, reached)?;
                self.diagram.and_not(without, value)
            })
        });
        self.prove_never(without)
    }
}

/// Whether the step can end badly once it runs: a computed text only fails its `check`, its type, or in what it computes, a
/// gate only by a time-out.
pub(crate) fn can_fail(step: &Step<'_>) -> bool {
    let lenient = step.ast.for_each.as_ref().is_some_and(|each| each.join == ForEachJoin::Settled);
    match &step.body {
        _ if lenient => false,
        Body::Gate { gate, .. } => {
            let choices = gate.on_timeout.iter().map(|timeout| &timeout.choice).chain(&gate.headless);
            choices.into_iter().any(|choice| choice.value == "fail")
        }
        _ if step.kind().is_some_and(StepKind::is_computed) => {
            !step.ast.checks.is_empty() || step.ast.output.kind.is_some() || step.may_compute_nothing()
        }
        _ => true,
    }
}
