//! The name of the worktree that a step works in: its own, or that of its pipeline.
//!
//! In: the plan's `worktree` and the place of a step. Out: a name that is the same in every process that runs the run,
//! and that fits a folder and a branch, whatever the names of the plan are.

use swarmc_plan::{Pipeline, Plan, Step};

use super::eval::Evaluator;
use super::process_env::ProcessEnv;
use crate::core::graph::Graph;
use crate::core::state::State;
use crate::io::worktree::Repository;
use crate::types::digest::digest_bytes;
use crate::types::error::RunError;

/// The bytes of a name at most: the branch's file is called so, and something longer while it is written.
const LONGEST_NAME: usize = 200;

/// The workspace's repository, where something that runs works in a tree of it.
pub(super) fn find_repository(
    plan: &Plan,
    graph: &Graph,
    process_env: &ProcessEnv,
) -> Result<Option<Repository>, RunError> {
    let wanted = graph.scopes.iter().any(|scope| {
        let wants = |pipeline: &Pipeline| {
            let runs = |step: &&Step| scope.find(&step.name).is_some();
            pipeline.worktree || pipeline.all_steps().filter(runs).any(|step| step.worktree.is_some())
        };
        plan.pipeline(&scope.pipeline).is_some_and(wants)
    });
    match wanted {
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
    let mut name = String::new();
    append_path(&mut name, &state.graph.scopes[0].pipeline);
    if state.graph.instances > 1 {
        name.push_str(&format!(".{}", frame.instance));
    }
    if let Some(path) = path {
        name.push('+');
        append_path(&mut name, path);
    }
    if let Some((sign, last)) = last {
        name.push(sign);
        append_path(&mut name, last);
    }
    // What Git takes for a branch, and a file system for a folder.
    let fits = name.len() <= LONGEST_NAME && !name.contains("..") && !name.ends_with('.') && !name.contains(".lock");
    Some(if fits { name } else { digest_bytes(name.as_bytes()) })
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
