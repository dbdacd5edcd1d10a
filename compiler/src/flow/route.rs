//! Routes through a pipeline on which a value is missing: how each step on the route ends, and why.

use swarmc_plan::{Join, When};

use super::diagram::{ALWAYS, Assignment, Formula, NEVER, Sized, TooLarge};
use super::{Answer, Flow};
use crate::ast::OnFailure;
use crate::model::Read;
use crate::source::Span;
use crate::template::{Root, Status};

/// The hops of a route that a diagnostic shows: a person does not follow more.
const SHOWN: usize = 3;

/// Whether a value can be missing where it is read.
#[derive(Debug)]
pub(crate) enum Missing {
    /// It is there on every route.
    No,
    /// It is missing where its step ended like this; for a skipped one, how that comes about.
    When { ends: Vec<Status>, hops: Vec<Hop> },
    /// The question is too large.
    Unknown,
}

/// A place that keeps a step from running on a route.
#[derive(Debug)]
pub(crate) struct Hop {
    pub(crate) span: Span,
    pub(crate) text: String,
}

impl Flow<'_, '_> {
    /// Whether the value that a step reads of another can be missing there.
    pub(crate) fn find_missing(&mut self, step: usize, target: usize, read: &Read) -> Missing {
        self.diagram.begin_question();
        self.find_routes(step, target, read).unwrap_or(Missing::Unknown)
    }

    fn find_routes(&mut self, step: usize, target: usize, read: &Read) -> Result<Missing, TooLarge> {
        // A `when` proves nothing for what it reads itself.
        let starts = if read.in_when { self.needs_hold(step)? } else { self.run_formula(step)? };
        let place = self.read_formula(step, read)?;
        let reached = self.diagram.and(starts, place)?;
        // The target of a port is the step behind it, and its value is that step's output.
        let root = if read.root == Root::Input { Root::Output } else { read.root };
        let present = self.value_formula(Some(step), target, root)?;
        let missing = self.diagram.and_not(reached, present)?;
        let mut ends = Vec::new();
        let mut hops = Vec::new();
        let mut open = false;
        for status in [Status::Succeeded, Status::Failed, Status::Skipped] {
            let ended = self.status_formula(Some(step), target, &[status])?;
            let route = self.diagram.and(missing, ended)?;
            if status != Status::Skipped {
                match self.prove_never(Ok(route)) {
                    Answer::Yes => {}
                    Answer::No => ends.push(status),
                    Answer::Unknown => open = true,
                }
                continue;
            }
            // For a skip an example is needed, from which the hops are read.
            match self.diagram.find_assignment(route) {
                Ok(None) => {}
                Ok(Some(example)) => {
                    ends.push(status);
                    hops = self.route_hops(target, &example);
                }
                Err(TooLarge) => open = true,
            }
        }
        Ok(match ends.is_empty() {
            true if open => Missing::Unknown,
            true => Missing::No,
            false => Missing::When { ends, hops },
        })
    }

    /// How all of `makers` can have been skipped where a step reads the file that is named at `span`; none where one of them
    /// runs on every route, or the question is too large.
    pub(crate) fn find_unmade(&mut self, step: usize, makers: &[usize], span: Span) -> Option<Vec<Hop>> {
        self.diagram.begin_question();
        let route = self.unmade_route(step, makers, span).ok()??;
        Some(self.route_hops(*makers.first()?, &route))
    }

    fn unmade_route(&mut self, step: usize, makers: &[usize], span: Span) -> Result<Option<Assignment>, TooLarge> {
        let starts = self.run_formula(step)?;
        let place = self.file_formula(step, span)?;
        let mut route = self.diagram.and(starts, place)?;
        for &maker in makers {
            let skipped = self.status_formula(Some(step), maker, &[Status::Skipped])?;
            route = self.diagram.and(route, skipped)?;
        }
        self.diagram.find_assignment(route)
    }

    /// What keeps a step from running on this route, back to where it began.
    fn route_hops(&mut self, step: usize, route: &Assignment) -> Vec<Hop> {
        let pipeline = self.pipeline;
        let mut hops = Vec::new();
        let mut at = step;
        while hops.len() < SHOWN {
            let resolved = &pipeline.steps[at];
            let name = resolved.name();
            let join = resolved.ast.join.value;
            // Of what was too large nothing can be shown.
            let is_exact =
                |flow: &mut Self, need| flow.need_formula(need, join).is_ok_and(|holds| flow.diagram.is_exact(holds));
            if !resolved.needs.iter().all(|need| is_exact(self, need)) {
                break;
            }
            let broken = resolved.needs.iter().find(|need| {
                let holds = self.need_formula(need, join);
                // Under `join any`, another need may hold in its stead.
                (join != Join::Any || resolved.is_binding(need)) && !self.is_so(holds, route)
            });
            let Some(need) = broken else {
                let runs = self.run_formula(at);
                if self.is_so(runs, route) {
                    hops.push(match resolved.within.filter(|_| resolved.ast.on_failure != OnFailure::Skip) {
                        Some(holder) => {
                            let holder = &pipeline.steps[holder].ast.name;
                            let text = format!("`{}` can fail in a round before `{name}` starts", holder.value);
                            Hop { span: holder.span, text }
                        }
                        None => Hop {
                            span: resolved.ast.name.span,
                            text: format!("`{name}` counts as skipped when it fails"),
                        },
                    });
                } else if let Some(span) = pipeline.spawned[at] {
                    hops.push(Hop { span, text: format!("`{name}` is skipped unless it is spawned") });
                } else if let Some(when) = &resolved.when {
                    let span = when.text.span(0..when.text.as_str().len());
                    hops.push(Hop { span, text: format!("`{name}` is skipped when this is false") });
                }
                break;
            };
            let needed = pipeline.steps[need.step].name();
            let text = match self.status_on_route(need.step, route) {
                Status::Skipped if need.when != When::Failure => {
                    format!("`{name}` is skipped together with `{needed}`")
                }
                Status::Succeeded => format!("`{name}` is skipped when `{needed}` succeeds"),
                Status::Failed => format!("`{name}` is skipped when `{needed}` fails"),
                Status::Skipped => format!("`{name}` is skipped when `{needed}` does not fail"),
            };
            hops.push(Hop { span: need.span, text });
            if self.status_on_route(need.step, route) != Status::Skipped {
                break;
            }
            at = need.step;
        }
        hops
    }

    fn is_so(&self, formula: Sized, route: &Assignment) -> bool {
        formula.is_ok_and(|formula| self.diagram.evaluate(formula, route))
    }

    /// How a step ends on a route.
    fn status_on_route(&mut self, step: usize, route: &Assignment) -> Status {
        let ends = self.step_ends(step);
        let (succeeded, failed) = (ends.map(|ends| ends.succeeded), ends.map(|ends| ends.failed));
        if self.is_so(succeeded, route) {
            Status::Succeeded
        } else if self.is_so(failed, route) {
            Status::Failed
        } else {
            Status::Skipped
        }
    }

    /// Whether the step runs on some route; where that is too large a question, it may.
    pub(crate) fn may_run(&mut self, step: usize) -> bool {
        self.diagram.begin_question();
        self.run_formula(step) != Ok(NEVER)
    }

    /// Whether `other` runs on every route on which the step does; where that is too large a question, it need not.
    pub(crate) fn runs_with(&mut self, step: usize, other: usize) -> bool {
        self.diagram.begin_question();
        let alone = self.run_formula(step).and_then(|step| {
            let other = self.run_formula(other)?;
            self.diagram.and_not(step, other)
        });
        alone == Ok(NEVER)
    }

    /// Whether the step is skipped on some route; where that is too large a question, it may be.
    pub(crate) fn may_be_skipped(&mut self, step: usize) -> bool {
        self.diagram.begin_question();
        let skipped = self.status_formula(None, step, &[Status::Skipped]);
        skipped != Ok(NEVER)
    }

    /// Whether, on some route on which the `when` of the step holds, those of some of `steps` hold and those of others do
    /// not, though all of them could start; where that is too large a question, it is not so.
    pub(crate) fn guards_differ(&mut self, step: usize, steps: &[usize]) -> bool {
        self.diagram.begin_question();
        self.differing_guards(step, steps).is_ok_and(|differ| differ != NEVER)
    }

    fn differing_guards(&mut self, step: usize, steps: &[usize]) -> Sized {
        let mut could = self.when_holds(step)?;
        let (mut every, mut some) = (ALWAYS, NEVER);
        for &guarded in steps {
            let needs = self.needs_hold(guarded)?;
            could = self.diagram.and(could, needs)?;
            let holds = self.when_holds(guarded)?;
            every = self.diagram.and(every, holds)?;
            some = self.diagram.or(some, holds)?;
        }
        let differ = self.diagram.and_not(some, every)?;
        self.diagram.and(could, differ)
    }

    /// Whether what the step waits for allows it to start on some route.
    pub(crate) fn may_start(&mut self, step: usize) -> bool {
        self.diagram.begin_question();
        self.needs_hold(step) != Ok(NEVER)
    }

    /// Whether two needs of a step hold on one route.
    pub(crate) fn may_hold(&mut self, step: usize, needs: &[usize]) -> bool {
        self.diagram.begin_question();
        let resolved = &self.pipeline.steps[step];
        let both = needs.iter().try_fold(super::diagram::ALWAYS, |all: Formula, &need| {
            let holds = self.need_formula(&resolved.needs[need], resolved.ast.join.value)?;
            self.diagram.and(all, holds)
        });
        both != Ok(NEVER)
    }

    /// Whether one need of a step and its `when` hold on one route.
    pub(crate) fn agrees_with_when(&mut self, step: usize, need: usize) -> bool {
        self.diagram.begin_question();
        let resolved = &self.pipeline.steps[step];
        let both = self.when_holds(step).and_then(|when| {
            let holds = self.need_formula(&resolved.needs[need], resolved.ast.join.value)?;
            self.diagram.and(when, holds)
        });
        both != Ok(NEVER)
    }
}
