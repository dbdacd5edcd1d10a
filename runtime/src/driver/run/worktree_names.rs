//! The names of worktrees: the one that a step works in, its own or that of its pipeline, and those of a swarm.
//!
//! In: the plan's `worktree` and the place of a step. Out: a name that is the same in every process that runs the run,
//! and that fits a folder and a branch, whatever the names of the plan are.

use swarmc_plan::{Body, Pipeline, Plan, Step};

use super::eval::Evaluator;
use super::process_env::ProcessEnv;
use crate::core::graph::Graph;
use crate::core::state::State;
use crate::io::worktree::Repository;
use crate::types::digest::digest_bytes;
use crate::types::error::RunError;

/// The bytes of a name at most: the branch's file is called so, and something longer while it is written.
const LONGEST_NAME: usize = 200;

/// The workspace's repository, where something that runs works in a tree of it. A team may come to work in trees that its
/// coordinator opens: without a repository it has none.
pub(super) fn find_repository(
    plan: &Plan,
    graph: &Graph,
    process_env: &ProcessEnv,
) -> Result<Option<Repository>, RunError> {
    let wanted = graph.scopes.iter().any(|scope| {
        let wants = |pipeline: &Pipeline| {
            let runs = |step: &&Step| scope.find(&step.name).is_some();
            let has_trees = |step: &Step| match &step.body {
                Body::Swarm(call) => plan.swarm(&call.swarm).is_some_and(|swarm| !swarm.worktrees.is_empty()),
                _ => false,
            };
            let needs = |step: &Step| step.worktree.is_some() || has_trees(step);
            pipeline.worktree || pipeline.all_steps().filter(runs).any(needs)
        };
        plan.pipeline(&scope.pipeline).is_some_and(wants)
    });
    let coordinates = |step: &Step| match &step.body {
        Body::Swarm(call) => {
            plan.swarm(&call.swarm).and_then(|swarm| swarm.lead.as_ref()).is_some_and(|lead| lead.coordinator)
        }
        _ => false,
    };
    let may_open = || {
        graph.scopes.iter().filter_map(|scope| plan.pipeline(&scope.pipeline)).any(|it| it.all_steps().any(coordinates))
    };
    match wanted {
        false if may_open() => {
            let found = Repository::find(&process_env.workspace, process_env.allowed_variables());
            Ok(found.ok().filter(|repository| repository.commit().is_ok()))
        }
        false => Ok(None),
        true => Repository::find(&process_env.workspace, process_env.allowed_variables())
            .map(Some)
            .map_err(RunError::Request),
    }
}

/// The name of the tree that a step of `frame` works in; none where that is the workspace itself.
///
/// A pipeline's is `PIPELINE` or `PIPELINE.INSTANCE`, and of a call `PIPELINE+CALL=CALLED`. A task's is one for each
/// instance, call, or item of its own: `PIPELINE+TASK`, `PIPELINE+TASK@3`.
pub(super) fn tree_name(evaluator: &Evaluator<'_>, state: &State, number: u32, step: Option<&Step>) -> Option<String> {
    let frame = state.frame(number);
    let scope = state.frame(frame.scope);
    let own = step.and_then(|step| Some((step, step.worktree.as_deref()?)));
    let (path, last) = match own {
        Some((step, tree)) if frame.item.is_some() && tree == step.name => (&frame.path, None),
        Some((_, tree)) => (&scope.path, Some(('+', tree))),
        None if !evaluator.pipeline(state, number).worktree => return None,
        None if scope.path.is_none() => (&None, None),
        None => (&scope.path, Some(('=', evaluator.pipeline(state, number).name.as_str()))),
    };
    let mut name = begin_name(state, frame.instance);
    if let Some(path) = path {
        name.push('+');
        append_path(&mut name, path);
    }
    if let Some((sign, last)) = last {
        name.push(sign);
        append_path(&mut name, last);
    }
    Some(fit_name(name))
}

/// The name of the tree that the members of a worktree of a swarm share: `PIPELINE+STEP+WORKTREE`.
pub(super) fn member_tree_name(state: &State, number: u32, step: &Step, tree: &str) -> String {
    swarm_tree_name(state, number, step, "+", tree)
}

/// The name of the tree in which the worktrees of a swarm are merged: `PIPELINE+STEP=merged`, or `PIPELINE+STEP=BRANCH`
/// where the merge goes on into a branch.
pub(super) fn merge_tree_name(state: &State, number: u32, step: &Step, into: Option<&str>) -> String {
    match into {
        None => swarm_tree_name(state, number, step, "=", "merged"),
        Some(branch) => swarm_tree_name(state, number, step, "=into=", branch),
    }
}

fn swarm_tree_name(state: &State, number: u32, step: &Step, sign: &str, last: &str) -> String {
    let frame = state.frame(number);
    let mut name = begin_name(state, frame.instance);
    let path = if frame.item.is_some() { &frame.path } else { &state.frame(frame.scope).path };
    for part in path.as_deref().into_iter().chain(frame.item.is_none().then_some(step.name.as_str())) {
        name.push('+');
        append_path(&mut name, part);
    }
    name.push_str(sign);
    append_path(&mut name, last);
    fit_name(name)
}

/// The pipeline that runs, and its instance.
fn begin_name(state: &State, instance: u32) -> String {
    let mut name = String::new();
    append_path(&mut name, &state.graph.scopes[0].pipeline);
    if state.graph.instances > 1 {
        name.push_str(&format!(".{instance}"));
    }
    name
}

/// What Git takes for a branch, and a file system for a folder.
fn fit_name(name: String) -> String {
    let fits = name.len() <= LONGEST_NAME && !name.contains("..") && !name.ends_with('.') && !name.contains(".lock");
    if fits { name } else { digest_bytes(name.as_bytes()) }
}

/// Appends the path of a step in characters that neither a branch nor a shell takes amiss.
fn append_path(name: &mut String, path: &str) {
    for byte in path.bytes() {
        match byte {
            // No name of a branch begins with a point.
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' if !(name.is_empty() && byte == b'.') => {
                name.push(char::from(byte));
            }
            b'/' => name.push('+'),
            b'~' => name.push(','),
            b'[' => name.push('@'),
            b']' => {}
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
}
