//! Pipelines.

use std::sync::Arc;

use swarmc_plan as plan;

use super::control::parse_exhausted;
use super::element::Element;
use super::policy::lower_budget;
use super::{
    Section, argument_name, argument_names, child_argument, description_text, edges, lower_param, lower_variables,
    sequence, step,
};
use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};

pub(super) fn lower_pipeline(element: &Element, text: &str, diagnostics: &mut Diagnostics) -> Option<ast::Pipeline> {
    let name = argument_name(element, 0)?;
    let section = Section::of(element);
    let iterations = section.child("iterations");
    let steps = sequence::lower_steps(element, text, diagnostics);
    let uses: Vec<ast::Use> = element.children("use").map(lower_use).collect();
    // A step that could not be read has been reported.
    if !sequence::has_step(element) && uses.is_empty() && !diagnostics.has_report_at(element.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("pipeline `{}` has no task", name.value))
            .label(name.span, "nothing to run")
            .help("write `task NAME { … }` in its block, or remove it");
        diagnostics.push(diagnostic);
    }
    Some(ast::Pipeline {
        name,
        description: description_text(element),
        params: element.children("param").filter_map(|child| lower_param(child, diagnostics)).collect(),
        iterations: iterations.count(),
        rounds: element.child("iterations").map(|node| node.span),
        on_failure: match iterations.word_of("on-failure").as_str() {
            "continue" => plan::RoundFailure::Continue,
            _ => plan::RoundFailure::Stop,
        },
        exhausted: parse_exhausted(&iterations.word_of("exhausted")),
        until: element.children("until").filter_map(|until| Some(Arc::new(until.argument(0)?.text.clone()))).collect(),
        parallelism: section.child("parallelism").count(),
        instances: element.child("parallelism").map(|node| node.span),
        concurrency: step::lower_concurrency(element),
        pool: child_argument(element, "pool").map(|pool| pool.as_str().to_owned()),
        uses,
        result: element.child("result").map(argument_names).unwrap_or_default(),
        fail_fast: element.child("fail-fast").is_some_and(|node| node.argument(0).is_none_or(|on| on.number == 1)),
        worktree: step::lower_worktree(element),
        env: lower_variables(element, diagnostics),
        working_dir: child_argument(element, "working-dir"),
        budget: element.child("budget").map(|node| lower_budget(node, diagnostics)),
        edges: element.child("edges").map(|node| edges::lower_edges(node, diagnostics)),
        steps,
    })
}

fn lower_use(node: &Element) -> ast::Use {
    ast::Use { tasks: argument_names(node), partial: Section::of(node).is_set("partial"), span: node.span }
}
