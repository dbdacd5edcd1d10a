//! SW403: a prompt reads an output without a limit of its own. The output has only the default limit, or there is one
//! output for each item of a list that the run computes.

use std::collections::HashSet;

use swarmc_plan::{Directive, DirectiveKind, Filter, Plan, Segment, Step};

use super::amount::{Cause, directive_source};
use super::place;
use super::prompt::prompt_body;
use super::schema::Types;
use super::value::{Estimate, Scope};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Model;
use crate::source::{Sources, Span};

/// The check ignores outputs of up to this many bytes.
const SMALL: u64 = 8192;

/// Reports prompts that read outputs without a limit of their own.
pub(crate) fn check_inputs(plan: &Plan, model: &Model<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    let unlimited: HashSet<Span> = model
        .pipelines
        .iter()
        .flat_map(|pipeline| &pipeline.steps)
        .filter(|step| !step.ast.output.limited)
        .map(|step| step.ast.name.span)
        .collect();
    let mut types = Types::new(&plan.types);
    for pipeline in &plan.pipelines {
        let scope = Scope::for_pipeline(plan, pipeline, Estimate::Usual);
        for step in pipeline.all_steps() {
            let Some(body) = prompt_body(step) else { continue };
            diagnostics.set_home(place::find_span(&step.origin, sources));
            for segment in &body.prompt.segments {
                let Segment::Directive(directive) = segment else { continue };
                let Some(source) = scope.source_step(directive, Some(step)) else { continue };
                if directive.filters.iter().any(is_size_limit) {
                    continue;
                }
                let size = scope.measure_directive(directive, Some(step), &mut types);
                let each = match size.open {
                    Some(Cause::Logic(_)) if source.for_each.is_some() => Some(Each::Items),
                    Some(_) if source.for_each.is_some() => Some(Each::List),
                    _ => None,
                };
                let usual = || place::find_span(&source.origin, sources).is_some_and(|span| unlimited.contains(&span));
                if each.is_some() || (size.known > SMALL && usual()) {
                    diagnostics.extend(report_input(directive, source, each, sources));
                }
            }
        }
    }
    diagnostics.set_home(None);
}

/// Whether a filter limits the size of its value.
fn is_size_limit(filter: &Filter) -> bool {
    matches!(filter, Filter::Chars(_) | Filter::Tail(_) | Filter::Head(_) | Filter::Lines(..))
}

/// What has no limit in the results of a for-each.
#[derive(Clone, Copy)]
enum Each {
    /// How many they are.
    List,
    /// The items that they hold.
    Items,
}

fn report_input(directive: &Directive, source: &Step, each: Option<Each>, sources: &Sources) -> Option<Diagnostic> {
    let span = place::find_span(&directive.origin, sources)?;
    let name = &source.name;
    let (message, label) = match each {
        Some(Each::Items) => (
            format!("this text includes the items of `{name}`, which can have any length"),
            "each of its results holds its item",
        ),
        Some(Each::List) => (
            format!("this text includes all outputs of `{name}`, one for each item of a list of any length"),
            "it runs once for each item",
        ),
        None => (
            format!("this text includes the whole output of `{name}`, which declares no maximum length"),
            "its output has no `max` and no type that limits it",
        ),
    };
    let mut diagnostic = Diagnostic::new(Code::UnboundedInput, message).label(span, "up to 100 KB, or more");
    if let Some(place) = place::find_span(&source.origin, sources) {
        diagnostic = diagnostic.label(place, label);
    }
    let diagnostic = match each {
        Some(Each::Items) => diagnostic
            .help("read a part of it, such as `| chars:8000`, limit the texts of the items, such as `string max=200`, or leave out `with-item`"),
        Some(Each::List) => diagnostic
            .help("read a part of it, such as `| chars:8000`, or let an earlier task pick one field of each item"),
        None => diagnostic.help(format!("write `output max=\"20KB\"` in `{name}`, or read a part: `| tail:100`")),
    };
    // The fix needs the complete text of the directive in the source.
    let whole = directive.kind != DirectiveKind::Input && sources.slice(span) == directive_source(directive);
    Some(match whole {
        true => {
            let text = directive_source(directive);
            let text = text.trim_end_matches(">>");
            diagnostic.unsafe_fix("read its last hundred lines", span, format!("{text} | tail:100>>"))
        }
        false => diagnostic,
    })
}
