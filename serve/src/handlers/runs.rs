//! Runs: a page of them, and one as it is now.

use swarmc_runtime::LeftProcesses;
use swarmc_view::documents::{Run, Version};
use swarmc_view::{FollowedRun, RunSummary};

use super::{count_states, last_event, reply};
use crate::Service;
use crate::documents::{RunPage, RunSnapshot, UsageSum};
use crate::problem::Problem;
use crate::routes::{Call, PAGE, Reply};

/// The runs of a page, where the client says no number.
const USUAL: i64 = 100;

pub(crate) fn list_runs(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let folders = service.home.list_folders().map_err(|error| Problem::internal(error.to_string()))?;
    let states: Option<Vec<&str>> = call.query("state").map(|states| states.split(',').collect());
    let (workflow, after) = (call.query("workflow"), call.query("after"));
    let limit = call.number("limit").unwrap_or(USUAL).clamp(1, PAGE) as usize;
    let left = LeftProcesses::default();
    let older = folders.into_iter().filter(|folder| after.is_none_or(|after| *folder.id < *after));
    let fits = |run: &RunSummary| {
        states.as_ref().is_none_or(|states| states.contains(&run.state.as_str()))
            && workflow.is_none_or(|workflow| run.workflow == workflow)
    };
    // One more says whether there is a further page.
    let found = older.map(|folder| service.store.summarize(&service.home, &folder, &left)).filter(fits).take(limit + 1);
    let mut runs: Vec<Run> = found.map(|run| Run::from(&run)).collect();
    let has_more = runs.len() > limit;
    runs.truncate(limit);
    let next = runs.last().filter(|_| has_more).map(|run| run.run.clone());
    reply(&RunPage { version: Version, runs, next, queued: service.queue.list() })
}

pub(crate) fn get_run(service: &Service, call: &Call) -> Result<Reply, Problem> {
    service.store.with_run(&service.home, call.part(0), |run| reply(&describe_run(run)))
}

fn describe_run(run: &FollowedRun) -> RunSnapshot {
    let summary = RunSummary::of_followed(run, &LeftProcesses::default());
    let counts = count_states(run);
    let mut swarms: Vec<String> = run.report.teams.keys().map(|step| run.report.label(step)).collect();
    swarms.sort();
    RunSnapshot {
        run: Run::from(&summary),
        version: Version,
        as_of: last_event(run),
        folder: run.folder.path.clone(),
        outputs: run.folder.outputs.clone(),
        steps: counts.values().sum(),
        counts,
        usage: sum_usage(run),
        swarms,
    }
}

fn sum_usage(run: &FollowedRun) -> UsageSum {
    let total = run.report.total_usage().0.unwrap_or_default();
    UsageSum { input: total.input, output: total.output, cost: total.cost }
}
