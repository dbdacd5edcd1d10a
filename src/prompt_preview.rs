//! Shows the prompt of a task as its agent would receive it: known interpolations filled in, the others as written.
//!
//! In: a plan, a step, and the last run where there is one. Out: the system text, the context packs and the prompt,
//! each under its heading. It runs and reads nothing: an interpolation that only a run can fill in stays as written.

use std::fmt::Write;
use std::sync::Arc;

use swarmc_lsp::LastRun;
use swarmc_plan::{Body, Directive, DirectiveKind, Filter, Pipeline, Plan, Segment, Step, Template};
use swarmc_view::did_you_mean;

/// The effective prompt of a step of a pipeline; of the default one, or else the first that has it, where none is
/// named.
pub(crate) fn preview_prompt(
    plan: &Plan,
    pipeline: Option<&str>,
    name: &str,
    last: &dyn Fn(&str) -> Option<Arc<LastRun>>,
) -> Result<String, String> {
    let default = plan.pipelines.iter().filter(|pipeline| pipeline.name == plan.default);
    let mut candidates: Vec<&Pipeline> = default.chain(&plan.pipelines).collect();
    candidates.retain(|candidate| pipeline.is_none_or(|wanted| wanted == candidate.name));
    let step = |pipeline: &&Pipeline| pipeline.all_steps().any(|step| step.name == name);
    let Some(pipeline) = candidates.iter().copied().find(step) else {
        let names = candidates.iter().flat_map(|pipeline| pipeline.all_steps()).map(|step| step.name.as_str());
        return Err(format!("there is no task `{name}`; {}", did_you_mean(name, names)));
    };
    let found = pipeline.all_steps().find(|step| step.name == name);
    let Some((step, Body::Prompt(body))) = found.map(|step| (step, &step.body)) else {
        return Err(format!("`{name}` has no prompt: it is not a turn of an agent"));
    };
    let last = last(&pipeline.name);
    let known = Known { plan, pipeline, step, last: last.as_deref() };
    let mut out = format!("# {name}, as agent {} receives it\n", body.agent);
    if let Some(last) = &last {
        let _ = writeln!(out, "\nValues are those of run {}.", last.id);
    }
    if let Some(system) = plan.agent(&body.agent).and_then(|agent| agent.system.as_ref()) {
        known.write_section(&mut out, "System", system);
    }
    for pack in &body.context {
        let _ = writeln!(out, "\n## Context\n\n<<context:{pack}>>");
    }
    known.write_section(&mut out, "Prompt", &body.prompt);
    Ok(out)
}

/// What can be said before a run.
struct Known<'p> {
    plan: &'p Plan,
    pipeline: &'p Pipeline,
    step: &'p Step,
    last: Option<&'p LastRun>,
}

impl Known<'_> {
    fn write_section(&self, out: &mut String, title: &str, template: &Template) {
        let _ = writeln!(out, "\n## {title}\n");
        for segment in &template.segments {
            match segment {
                Segment::Text(text) => out.push_str(text),
                Segment::Directive(directive) => match self.directive_value(directive) {
                    Some(value) => out.push_str(&value),
                    None => out.push_str(&format_directive(directive)),
                },
                Segment::Logic(logic) => out.push_str(&logic.source),
            }
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }

    /// The whole value that a directive reads; what passes through filters or fields is for a run.
    fn directive_value(&self, directive: &Directive) -> Option<String> {
        let plain = directive.fields.is_empty() && directive.filters.iter().all(|filter| matches!(filter, Filter::Raw));
        let name = directive.name.as_deref();
        let output = |step: &str| self.last?.steps.get(step)?.output.clone();
        let value = match directive.kind {
            _ if !plain => return None,
            DirectiveKind::Output => output(name?)?,
            DirectiveKind::Status => self.last?.steps.get(name?)?.status.to_owned(),
            DirectiveKind::Param => self.param_value(name?)?,
            DirectiveKind::Task => self.step.name.clone(),
            _ => return None,
        };
        Some(match (directive.wrap, name) {
            (true, Some(name)) => {
                format!("--- Output from task \"{name}\" ---\n{value}\n--- End output from task \"{name}\" ---")
            }
            _ => value,
        })
    }

    /// A parameter as it was, or as it is by default.
    fn param_value(&self, name: &str) -> Option<String> {
        let was = self.last.and_then(|last| last.params.get(name).cloned());
        let mut declared = self.pipeline.params.iter().chain(&self.plan.params);
        was.or_else(|| declared.find(|param| param.name == name)?.default.clone())
    }
}

/// A directive in the notation of the language.
fn format_directive(directive: &Directive) -> String {
    let kind = serde_json::to_value(directive.kind).unwrap_or_default();
    let mut text = format!("<<{}", kind.as_str().unwrap_or_default());
    let named = directive.name.iter().chain(&directive.fields).map(String::as_str).collect::<Vec<_>>().join(".");
    if !named.is_empty() {
        let _ = write!(text, ":{named}");
    }
    for filter in &directive.filters {
        let _ = match filter {
            Filter::Tail(lines) => write!(text, " | tail:{lines}"),
            Filter::Head(lines) => write!(text, " | head:{lines}"),
            Filter::Lines(from, to) => write!(text, " | lines:{from}-{to}"),
            Filter::Chars(count) => write!(text, " | chars:{count}"),
            Filter::Json => write!(text, " | json"),
            Filter::Raw => write!(text, " | raw"),
            Filter::Default(value) => write!(text, " | default:{value}"),
        };
    }
    text + ">>"
}
