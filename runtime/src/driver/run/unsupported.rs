//! Refuses plans that this version cannot run yet, before anything starts.

use swarmc_plan::Plan;

use crate::core::graph::Graph;
use crate::types::error::RunError;

/// Refuses a run that may reach a feature that cannot be run.
pub(super) fn check_supported(plan: &Plan, graph: &Graph) -> Result<(), RunError> {
    let running = graph.scopes.iter().filter_map(|scope| Some((scope, plan.pipeline(&scope.pipeline)?)));
    let mut problems =
        running.flat_map(|(scope, pipeline)| plan.unsupported_in(pipeline, |step| scope.find(&step.name).is_some()));
    problems.next().map_or(Ok(()), |problem| Err(RunError::Request(problem.to_string())))
}
