//! The steps of a block, and `sequence`, which puts them in an order.
//!
//! In: a pipeline or a loop. Out: its steps as one list; a step of a sequence depends on the one before it, as if it said
//! so with `depends-on`. No later stage knows of sequences.

use std::collections::HashMap;

use swarmc_plan as plan;

use super::element::Element;
use super::step;
use crate::ast::{Dependency, Name, Step};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::schema;
use crate::suggest;

/// The steps of a block, those of its sequences included.
pub(super) fn lower_steps(element: &Element, text: &str, diagnostics: &mut Diagnostics) -> Vec<Step> {
    // A step is large, so a list that grows by doubling would need twice the memory.
    let mut steps = Vec::with_capacity(element.children.len());
    let mut orders = Vec::new();
    for child in &element.children {
        if !is_sequence(child) {
            steps.extend(step::lower_step(child, text, diagnostics));
            continue;
        }
        if child.children.is_empty() && !diagnostics.has_report_at(child.span) {
            diagnostics.push(
                Diagnostic::new(Code::WrongValue, "this `sequence` has no steps")
                    .label(child.name.span, "nothing to put in order")
                    .help("write them in its block: `sequence { task NAME { … }; task NAME { … } }`"),
            );
        }
        let mut order = Vec::with_capacity(child.children.len());
        for member in &child.children {
            if std::ptr::eq(member.schema, &raw const schema::SEQUENCE_STEP) {
                order.push(Name { value: member.name.text.to_string(), span: member.name.span });
            } else if let Some(step) = step::lower_step(member, text, diagnostics) {
                order.push(step.name.clone());
                steps.push(step);
            }
        }
        orders.push(order);
    }
    // A sequence may name steps that stand behind it.
    if !orders.is_empty() {
        let places = steps.iter().enumerate().map(|(index, step)| (step.name.value.clone(), index)).collect();
        orders.into_iter().for_each(|order| order_steps(order, &places, &mut steps, diagnostics));
    }
    steps
}

/// Whether a block has a step, in a sequence or directly.
pub(super) fn has_step(element: &Element) -> bool {
    element
        .children
        .iter()
        .any(|child| step::is_step(child) || is_sequence(child) && child.children.iter().any(step::is_step))
}

fn is_sequence(element: &Element) -> bool {
    std::ptr::eq(element.schema, &raw const schema::SEQUENCE)
}

/// Has each step of a sequence wait for the one before it.
fn order_steps(order: Vec<Name>, places: &HashMap<String, usize>, steps: &mut [Step], diagnostics: &mut Diagnostics) {
    let mut before: Option<Name> = None;
    for name in order {
        let Some(&place) = places.get(&name.value) else {
            diagnostics.push(report_stranger(&name, steps));
            continue;
        };
        let step = &mut steps[place];
        if let Some(before) = before.replace(name)
            && step.needs.iter().all(|need| need.step.value != before.value)
        {
            step.needs.push(Dependency { step: before, when: plan::When::Success });
        }
    }
}

fn report_stranger(name: &Name, steps: &[Step]) -> Diagnostic {
    if matches!(name.value.as_str(), "parallel" | "sequence") {
        let message = format!("a `sequence` holds steps, and no `{}`", name.value);
        return Diagnostic::new(Code::MisplacedNode, message)
            .label(name.span, "no step")
            .help("write tasks that run at once beside the sequence: `depends-on` says what each waits for");
    }
    let known: Vec<&str> = steps.iter().map(|step| step.name.value.as_str()).collect();
    let (close, help) = suggest::did_you_mean(&name.value, &known, "the steps of this block are ");
    let diagnostic = Diagnostic::new(Code::UnknownReference, format!("no step `{}` stands in this block", name.value))
        .label(name.span, "nothing to put in order")
        .help_maybe(help);
    match close {
        Some(close) => diagnostic.write_near(name.span, close),
        None => diagnostic,
    }
}
