//! SW301: steps that wait for each other, drawn.

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Need, Pipeline};

/// The labels that one diagnostic can bear and still be read.
const DRAWN: usize = 6;

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    for cycle in &pipeline.order.cycles {
        diagnostics.push(report_cycle(pipeline, cycle));
    }
}

fn report_cycle(pipeline: &Pipeline<'_>, cycle: &[usize]) -> Diagnostic {
    let name = |step: usize| pipeline.steps[step].name();
    let needs: Vec<(usize, &Need)> = cycle
        .iter()
        .enumerate()
        .map(|(position, &step)| {
            let next = cycle[(position + 1) % cycle.len()];
            let need = pipeline.steps[step].needs.iter().find(|need| need.step == next);
            (step, need.expect("each step of a cycle needs the next one"))
        })
        .collect();
    let mut path: Vec<String> = cycle.iter().take(DRAWN).map(|&step| format!("`{}`", name(step))).collect();
    if cycle.len() > DRAWN {
        path.push(format!("{} more", cycle.len() - DRAWN));
    }
    path.push(format!("`{}`", name(cycle[0])));
    let message = match cycle {
        [one] => format!("`{}` waits for itself", name(*one)),
        _ => format!("these steps wait for each other: {}", path.join(" → ")),
    };
    let diagnostic = Diagnostic::new(Code::Cycle, message);
    let diagnostic = needs.iter().take(DRAWN).fold(diagnostic, |diagnostic, (step, need)| {
        let how = if need.declared { "depends on" } else { "reads" };
        diagnostic.label(need.span, format!("`{}` {how} `{}`", name(*step), name(need.step)))
    });
    match needs.iter().find(|(_, need)| !need.declared) {
        Some((_, need)) => {
            let read = name(need.step);
            diagnostic.help(format!(
                "to read the round before, write `<<previous:{read}>>`: it waits for nothing; otherwise take one `depends-on` out"
            ))
        }
        None => diagnostic.help("take one of these `depends-on` out"),
    }
}
