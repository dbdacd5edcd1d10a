//! `run --replay`: a recording in the place of agents, programs and people, and where the run and it part.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use miette::{IntoDiagnostic, miette};
use swarmc_plan::{Pipeline, Plan};
use swarmc_runtime::{Difference, Divergence, Recording};
use swarmc_view::documents::{RunLine, RunLineKind, encode};
use swarmc_view::{did_you_mean, make_printable};

use crate::args::{Run, Show};
use crate::change;
use crate::exit::Exit;
use crate::load::select_pipeline;
use crate::terminal::{self, Stream};

/// A recording and what it was made with.
pub(crate) struct Replay {
    pub(crate) recording: Arc<Recording>,
    pub(crate) params: BTreeMap<String, String>,
    pub(crate) stdin: Option<Vec<u8>>,
}

/// Opens the recording that a run is to be answered from; none where none is named.
///
/// # Errors
/// It is damaged, or of another workflow, pipeline or task than what is asked for.
pub(crate) fn open_replay(
    args: &Run,
    plan: &Plan,
    workspace: &Path,
    environment: &BTreeMap<OsString, OsString>,
) -> miette::Result<Option<Replay>> {
    let Some(folder) = &args.replay else { return Ok(None) };
    let recording = Recording::open(folder).into_diagnostic()?;
    let shown = folder.display();
    if recording.workflow() != plan.workflow {
        return Err(miette!(
            help = "name the recording of this workflow, or record it again with `--record`",
            "`{shown}` is a recording of workflow `{}`, but this workflow is `{}`",
            make_printable(recording.workflow()),
            plan.workflow
        ));
    }
    let named = args.pipeline.as_deref().filter(|name| *name != recording.pipeline());
    let other = args.task.as_deref().filter(|task| Some(*task) != recording.task());
    if named.is_some() || other.is_some() {
        let what = match recording.task() {
            Some(task) => {
                format!("task `{}` of pipeline `{}`", make_printable(task), make_printable(recording.pipeline()))
            }
            None => format!("pipeline `{}`", make_printable(recording.pipeline())),
        };
        let help = "leave `--pipeline` and `--task` out: a replay runs what was recorded";
        return Err(miette!(help = help, "`{shown}` is a recording of {what}"));
    }
    let params = recording.params(workspace, environment).into_diagnostic()?;
    let stdin = recording.stdin().into_diagnostic()?;
    Ok(Some(Replay { recording: Arc::new(recording), params, stdin }))
}

/// The pipeline that was recorded.
pub(crate) fn recorded_pipeline<'a>(plan: &'a Plan, recording: &Recording) -> miette::Result<&'a Pipeline> {
    let name = recording.pipeline();
    let names = plan.pipelines.iter().map(|pipeline| pipeline.name.as_str());
    select_pipeline(plan, Some(name)).map_err(|_| {
        let help = format!("{}; record again with `--record`", did_you_mean(name, names));
        miette!(help = help, "the recording is of pipeline `{}`, which no longer exists", make_printable(name))
    })
}

/// Tells where a replay and its recording part.
pub(crate) fn report_divergence(divergence: &Divergence, show: Show) -> miette::Result<Exit> {
    if show.json {
        let line = RunLineKind::divergence(divergence, Exit::Failed as u8);
        terminal::print(encode(&RunLine::from(line)) + "\n")?;
        return Ok(Exit::Failed);
    }
    let paint = Stream::Err.paint();
    let (what, help) = describe_divergence(divergence);
    let mut text = format!("\n{} {}\n", paint.red("error:"), make_printable(&what));
    text.push_str(&format!("  {} {help}\n", paint.cyan("help:")));
    terminal::eprint(text);
    if let Difference::Text { recorded, now, .. } = &divergence.difference {
        let (before, after) = (recorded.as_deref().unwrap_or_default(), now.as_deref().unwrap_or_default());
        terminal::print(change::render_unified(("recorded", before), ("now", after), Stream::Out.paint()))?;
    }
    Ok(Exit::Failed)
}

fn describe_divergence(divergence: &Divergence) -> (String, &'static str) {
    let help = match &divergence.difference {
        Difference::Text { .. } | Difference::Unsent { .. } => {
            "undo the change, or record again with `swarmc run … --record DIR`"
        }
        Difference::Missing
        | Difference::Unanswered
        | Difference::GoesOn
        | Difference::Unended
        | Difference::Unfit(_) => "record again with `swarmc run … --record DIR`",
    };
    (divergence.to_string(), help)
}
