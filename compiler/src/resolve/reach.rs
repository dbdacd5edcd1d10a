//! Which pipelines a run can come to: those of the spec itself, its default, and what these call. The others of its
//! imports are checked, and stay out of the plan with everything that they alone use.

use crate::ast::{Body, Pipeline, Spec, Step};
use crate::symbols::{NameKind, Tables};

/// Says by index which pipelines are in the plan.
pub(super) fn find_reachable(spec: &Spec, tables: &Tables) -> Vec<bool> {
    // Without imports, all pipelines are those of the spec itself, and the walk finds no other.
    let mut wanted = vec![tables.modules.list.len() == 1; spec.pipelines.len()];
    let find = |what: NameKind, name: &crate::ast::Name| tables.find_name(what, &name.value, true, name.span.file);
    let default = spec.workflow.as_ref().and_then(|workflow| workflow.default.as_ref());
    let mut open: Vec<usize> = (0..tables.own_len(NameKind::Pipeline)).collect();
    open.extend(default.and_then(|name| find(NameKind::Pipeline, name)));
    while let Some(pipeline) = open.pop() {
        if std::mem::replace(&mut wanted[pipeline], true) {
            continue;
        }
        let Pipeline { steps, uses, .. } = &spec.pipelines[pipeline];
        let shared = uses.iter().flat_map(|used| &used.tasks).filter_map(|name| find(NameKind::Task, name));
        let mut list: Vec<&Step> = steps.iter().chain(shared.map(|task| &spec.tasks[task])).collect();
        while let Some(step) = list.pop() {
            match &step.body {
                Some(Body::Loop(body)) => list.extend(&body.steps),
                Some(Body::Call { pipeline, .. }) => open.extend(find(NameKind::Pipeline, pipeline)),
                _ => {}
            }
        }
    }
    wanted
}
