//! SW103 and SW005: answers, fakes and expectations for a round or an item that no run has.
//!
//! In: the model. Out: a report for each of them that says a later round than the last, or an item of what has none. Of
//! steps that share a name, and of those that are called for items, the one that goes furthest counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{ExpectKind, Name};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Pipeline, Step};
use crate::source::Span;
use crate::test::StepEnd;

pub(super) const CODES: &[Code] = &[Code::UnusedDefinition, Code::WrongValue];

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let mut known = Known { called: model.called_pipelines(), steps: BTreeMap::new(), members: BTreeSet::new() };
    for (at, pipeline) in model.pipelines.iter().enumerate() {
        for step in &pipeline.steps {
            known.steps.entry(step.name()).or_default().push((at, pipeline, step));
        }
    }
    known.members = model.spec.swarms.iter().flat_map(|swarm| swarm.party_names()).map(|name| &*name.value).collect();
    let own = model.providers.iter().filter(|provider| model.tables.modules.is_own(provider.ast.name.span));
    for answer in own.filter_map(|provider| provider.ast.script.as_ref()).flat_map(|script| &script.answers) {
        let Some(task) = &answer.task else { continue };
        if let Some(why) = known.find_excess(task, answer.iteration, answer.index) {
            diagnostics.push(report_unused("this answer is never given", answer.span, &why));
        }
    }
    for test in &model.tests {
        for fake in &test.fakes {
            let moment = &fake.ast.moment;
            if let Some(why) = known.find_excess(&fake.ast.step, moment.iteration, moment.index) {
                diagnostics.push(report_unused("this fake is never used", fake.ast.span, &why));
            }
        }
        for expect in &test.ast.expects {
            let (step, moment) = match &expect.kind {
                // It is no matter which round a step is skipped in that is not there.
                ExpectKind::Step(step, moment, StepEnd::Succeeded | StepEnd::Failed) => (step, moment),
                ExpectKind::Output(step, moment, _) | ExpectKind::Prompt(step, moment, _) => (step, moment),
                _ => continue,
            };
            if let Some(why) = known.find_excess(step, moment.iteration, moment.index) {
                let diagnostic = Diagnostic::new(Code::WrongValue, format!("this never holds: {why}"))
                    .label(expect.span, "expects what no run has")
                    .help("name a round and an item that there is");
                diagnostics.push(diagnostic);
            }
        }
    }
}

fn report_unused(message: &str, span: Span, why: &str) -> Diagnostic {
    Diagnostic::new(Code::UnusedDefinition, format!("{message}: {why}"))
        .label(span, "for a turn that no run has")
        .help("name a round and an item that there is, or remove it")
}

/// A step, with its pipeline.
type Placed<'m, 'a> = (usize, &'m Pipeline<'a>, &'m Step<'a>);

struct Known<'m, 'a> {
    /// The pipelines that steps call.
    called: BTreeSet<usize>,
    /// The steps by name.
    steps: BTreeMap<&'m str, Vec<Placed<'m, 'a>>>,
    /// The members of swarms.
    members: BTreeSet<&'m str>,
}

impl Known<'_, '_> {
    /// Why there is no such round or item of the step.
    fn find_excess(&self, name: &Name, iteration: Option<u32>, index: Option<u32>) -> Option<String> {
        let steps = self.steps.get(name.value.as_str()).filter(|_| !self.members.contains(name.value.as_str()))?;
        // Where a pipeline is called, the rounds of its callers are others than its own.
        let rounds = |(at, pipeline, step): &Placed<'_, '_>| {
            if self.called.contains(at) { None } else { count_rounds(pipeline, step) }
        };
        let rounds = steps.iter().map(rounds).collect::<Option<Vec<u32>>>();
        let last = rounds.and_then(|rounds| rounds.into_iter().max());
        if let (Some(wanted), Some(last)) = (iteration, last)
            && wanted > last
        {
            let many = if last == 1 { "one round".to_owned() } else { format!("{last} rounds") };
            return Some(format!("`{}` has {many}, and no round {wanted}", name.value));
        }
        let wanted = index?;
        let has_item = |(at, _, step): &Placed<'_, '_>| match count_items(step) {
            // A step of a pipeline that is called for items may be one of theirs.
            None => step.ast.for_each.is_some() || self.called.contains(at),
            Some(count) => usize::try_from(wanted).is_ok_and(|wanted| wanted < count),
        };
        if steps.iter().any(has_item) {
            return None;
        }
        Some(match steps.iter().filter_map(|(.., step)| count_items(step)).max() {
            Some(0) => format!("`{}` has no items", name.value),
            Some(1) => format!("`{}` has one item, 0, and no item {wanted}", name.value),
            Some(count) => format!("`{}` has {count} items, from 0, and no item {wanted}", name.value),
            None => format!("`{}` is no `for-each`, and has no items", name.value),
        })
    }
}

/// The rounds of the innermost loop around a step, or else of the pipeline; none without a limit. Each loop counts its
/// own rounds from 1.
fn count_rounds(pipeline: &Pipeline<'_>, step: &Step<'_>) -> Option<u32> {
    let Some(holder) = step.within else { return Some(pipeline.ast.iterations) };
    match &pipeline.steps[holder].body {
        Body::Loop { body, .. } => Some(body.max.as_ref()?.value),
        _ => None,
    }
}

/// The items of a list that is written out.
pub(super) fn count_items(step: &Step<'_>) -> Option<usize> {
    Some(step.list.as_ref()?.expression.tree.as_ref()?.as_items()?.len())
}
