//! What holds where a value is read: the logic of the text around the place, and what was asked before it.
//!
//! A read goes in; a formula comes out that holds where the read is reached, given that its step runs.

use std::ops::Range;

use super::Flow;
use super::diagram::{ALWAYS, NEVER, Sized, negate_formula};
use crate::model::{Read, Step, TemplateText, Variable};
use crate::source::Span;
use crate::template::{Fact, Part, Statement, Status, Template};

impl Flow<'_, '_> {
    /// Holds where this read of the step is reached.
    pub(super) fn read_formula(&mut self, step: usize, read: &Read) -> Sized {
        let facts = self.facts_formula(step, &read.assumes)?;
        let around = match read.in_when {
            true => self.asked_before(step, read)?,
            false => self.context_formula(step, read)?,
        };
        self.diagram.and(facts, around)
    }

    fn facts_formula(&mut self, step: usize, facts: &[Fact]) -> Sized {
        let mut all = ALWAYS;
        for fact in facts {
            let holds = match fact {
                Fact::Repeated | Fact::NonZero(_) => continue,
                Fact::Defined { root, name, fields, .. } => {
                    match self.key_of(Some(step), *root, name.as_deref(), fields.to_vec()) {
                        Some(key) => self.presence_formula(Some(step), &key)?,
                        None => continue,
                    }
                }
                Fact::Ended { step: name, any_of } => match self.find_step(name) {
                    Some(target) => self.status_formula(Some(step), target, any_of)?,
                    None => continue,
                },
            };
            all = self.diagram.and(all, holds)?;
        }
        Ok(all)
    }

    /// Holds where the step ended in one of these ways, as the reader sees it.
    pub(super) fn status_formula(&mut self, reader: Option<usize>, step: usize, any_of: &[Status]) -> Sized {
        let ends = self.ends_for_reader(reader, step)?;
        let mut any = NEVER;
        for status in any_of {
            let is = match status {
                Status::Succeeded => ends.succeeded,
                Status::Failed => ends.failed,
                Status::Skipped => negate_formula(self.diagram.or(ends.succeeded, ends.failed)?),
            };
            any = self.diagram.or(any, is)?;
        }
        Ok(any)
    }

    fn asked_before(&mut self, step: usize, read: &Read) -> Sized {
        let pipeline = self.pipeline;
        let Some(when) = &pipeline.steps[step].when else { return Ok(ALWAYS) };
        let found = when.expression.reads.iter().find(|found| when.text.span(found.whole.clone()) == read.whole);
        match (found, &when.expression.tree) {
            (Some(found), Some(tree)) => self.reach_in_expression(Some(step), tree, &found.whole).unwrap_or(Ok(ALWAYS)),
            _ => Ok(ALWAYS),
        }
    }

    fn context_formula(&mut self, step: usize, read: &Read) -> Sized {
        let (model, pipeline) = (self.model, self.pipeline);
        let resolved = &pipeline.steps[step];
        let system = resolved.agent.and_then(|agent| model.agents[agent].system.as_ref());
        let list = resolved.list.as_deref().and_then(|list| {
            let found = list.expression.reads.iter().find(|found| list.text.span(found.whole.clone()) == read.whole)?;
            self.reach_in_expression(Some(step), list.expression.tree.as_ref()?, &found.whole)
        });
        if let Some(around) = list {
            return around;
        }
        // A text without logic reaches each of its reads.
        for prose in step_texts(resolved).into_iter().chain(system).filter(|prose| !prose.template.logic.is_empty()) {
            let found = prose.template.reads.iter().find(|found| {
                found.via_directive == read.directive && prose.passage.span(found.whole.clone()) == read.whole
            });
            if let Some(found) = found
                && let Some(around) =
                    self.reach_in_statements(step, &prose.template, &prose.template.logic, &found.whole)
            {
                return around;
            }
        }
        Ok(ALWAYS)
    }

    /// Holds where a step reads the file that is named at `span`.
    pub(super) fn file_formula(&mut self, step: usize, span: Span) -> Sized {
        let (model, pipeline) = (self.model, self.pipeline);
        let resolved = &pipeline.steps[step];
        let system = resolved.agent.and_then(|agent| model.agents[agent].system.as_ref());
        let texts = step_texts(resolved).into_iter().chain(system);
        // A text without logic reaches each of its directives.
        for prose in texts.filter(|prose| !prose.template.logic.is_empty()) {
            let place = prose.template.parts.iter().find_map(|part| match part {
                Part::Directive(directive) => {
                    let name = directive.name.as_ref()?;
                    (prose.passage.span(name.range.clone()) == span).then(|| directive.range.clone())
                }
                Part::Text(_) | Part::Escape | Part::Logic(_) => None,
            });
            if let Some(place) = place
                && let Some(around) = self.reach_in_statements(step, &prose.template, &prose.template.logic, &place)
            {
                return around;
            }
        }
        Ok(ALWAYS)
    }

    /// Holds where the place is reached; none where it is not in these statements.
    fn reach_in_statements(
        &mut self,
        step: usize,
        text: &Template,
        list: &[Statement],
        wanted: &Range<usize>,
    ) -> Option<Sized> {
        list.iter().find_map(|statement| self.reach_in_statement(step, text, statement, wanted))
    }

    fn reach_in_statement(
        &mut self,
        step: usize,
        text: &Template,
        statement: &Statement,
        wanted: &Range<usize>,
    ) -> Option<Sized> {
        let reader = Some(step);
        match statement {
            Statement::Directive(part) => {
                let Part::Directive(directive) = &text.parts[*part] else { return None };
                let inside = directive.range.start <= wanted.start && wanted.end <= directive.range.end;
                inside.then_some(Ok(ALWAYS))
            }
            Statement::Text(_) => None,
            Statement::Emit(expr) | Statement::Do(expr) | Statement::Set { value: expr, .. } => {
                self.reach_in_expression(reader, expr, wanted)
            }
            Statement::If { condition, then, otherwise } => {
                if let Some(found) = self.reach_in_expression(reader, condition, wanted) {
                    return Some(found);
                }
                let (inside, truth) = match self.reach_in_statements(step, text, then, wanted) {
                    Some(inside) => (inside, true),
                    None => (self.reach_in_statements(step, text, otherwise, wanted)?, false),
                };
                Some(inside.and_then(|inside| {
                    let condition = self.condition_formula(reader, condition)?;
                    if truth { self.diagram.and(inside, condition) } else { self.diagram.and_not(inside, condition) }
                }))
            }
            // Whether the list has items is not known, so either part may be reached.
            Statement::For { list, filter, body, otherwise, .. } => self
                .reach_in_expression(reader, list, wanted)
                .or_else(|| self.reach_in_expression(reader, filter.as_ref()?, wanted))
                .or_else(|| self.reach_in_statements(step, text, body, wanted))
                .or_else(|| self.reach_in_statements(step, text, otherwise, wanted)),
            Statement::With { assignments, body } => assignments
                .iter()
                .find_map(|(_, value)| self.reach_in_expression(reader, value, wanted))
                .or_else(|| self.reach_in_statements(step, text, body, wanted)),
            Statement::Capture { filter, body, .. } => filter
                .as_ref()
                .and_then(|filter| self.reach_in_expression(reader, filter, wanted))
                .or_else(|| self.reach_in_statements(step, text, body, wanted)),
            Statement::Filter { filter, body } => self
                .reach_in_expression(reader, filter, wanted)
                .or_else(|| self.reach_in_statements(step, text, body, wanted)),
            Statement::AutoEscape { enabled, body } => self
                .reach_in_expression(reader, enabled, wanted)
                .or_else(|| self.reach_in_statements(step, text, body, wanted)),
        }
    }
}

/// The texts of a step.
fn step_texts<'s>(step: &'s Step<'_>) -> Vec<&'s TemplateText> {
    let mut proses = step.body.template_texts();
    proses.extend(&step.stdin);
    proses.extend(step.env.iter().filter_map(|variable| match variable {
        Variable::Set(_, prose) => Some(prose),
        Variable::Pass(_) | Variable::Secret(_) => None,
    }));
    proses
}
