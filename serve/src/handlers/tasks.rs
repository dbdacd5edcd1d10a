//! Tasks, as seed 001 posts them: a query for the workflow of `--tasks`.

use serde_json::{Map, Value};
use swarmc_plan::{Body, Pipeline, Plan};
use swarmc_view::RunSummary;
use swarmc_view::documents::encode;

use super::reply;
use crate::Service;
use crate::documents::{PostTask, StopRun, SubmitRun, TaskDocument};
use crate::problem::Problem;
use crate::queue::{CANCELLED, Place};
use crate::routes::{Call, Reply};
use crate::store::find_folder;

/// The parameters that can be the goal of a workflow, the likeliest first.
const GOALS: &[&str] = &["goal", "query", "task", "prompt"];

/// How the id of a task begins; the number of its submission follows.
const PREFIX: &str = "task-";

pub(crate) fn post_task(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let task: PostTask = call.read_body()?;
    let Some(spec) = service.queue.task_spec() else {
        return Err(Problem::not_found("no spec runs tasks: start the server with `--tasks SPEC`"));
    };
    let plan: Plan = serde_json::from_str(&service.queue.plan_spec(&spec)?)
        .map_err(|error| Problem::internal(format!("the plan of `{spec}` cannot be read: {error}")))?;
    let wants = build_run(spec, &plan, task)?;
    let number = service.queue.submit(wants, None)?;
    let document = describe_task(service, number)?;
    let location = Some(task_address(number));
    Ok(Reply::Accepted { json: encode(&document), location })
}

/// The run of a task: its query is the goal, its context the parameters of the workflow that have these names.
fn build_run(spec: String, plan: &Plan, task: PostTask) -> Result<SubmitRun, Problem> {
    let force_swarm = task.context.get("force_swarm") == Some(&Value::Bool(true));
    let runs_swarm = |pipeline: &&Pipeline| pipeline.all_steps().any(|step| matches!(step.body, Body::Swarm(_)));
    let pipeline = match force_swarm {
        true => Some(plan.pipelines.iter().find(runs_swarm).ok_or_else(|| {
            Problem::bad_request("`force_swarm` is set, and no pipeline of the workflow runs a swarm")
        })?),
        false => None,
    };
    let of_pipeline = pipeline.map(|pipeline| &pipeline.params);
    let declared = plan.params.iter().chain(of_pipeline.into_iter().flatten());
    let declared: Vec<String> = declared.map(|param| param.name.clone()).collect();
    let pipeline = pipeline.map(|pipeline| pipeline.name.clone());
    let goal = GOALS.iter().map(|name| (*name).to_owned()).find(|name| declared.contains(name));
    let goal = goal.or_else(|| (declared.len() == 1).then(|| declared[0].clone())).ok_or_else(|| {
        Problem::bad_request(format!(
            "the workflow has no parameter for the query: declare one of {}",
            GOALS.join(", ")
        ))
    })?;
    let mut params: Map<String, Value> = task.context.into_iter().filter(|(name, _)| declared.contains(name)).collect();
    if let Some(session) = task.session_id.filter(|_| declared.iter().any(|name| name == "session_id")) {
        params.insert("session_id".to_owned(), Value::String(session));
    }
    params.insert(goal, Value::String(task.query));
    Ok(SubmitRun { spec, pipeline, params, ..SubmitRun::default() })
}

pub(crate) fn get_task(service: &Service, call: &Call) -> Result<Reply, Problem> {
    reply(&describe_task(service, read_number(call.part(0))?)?)
}

pub(crate) fn cancel_task(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let StopRun {} = call.read_body()?;
    let number = read_number(call.part(0))?;
    if let Some(Place::Run(run)) = service.queue.cancel(number) {
        swarmc_runtime::request_stop(&find_folder(&service.home, &run)?)?;
    }
    reply(&describe_task(service, number)?)
}

/// Where the task of a submission is.
pub(super) fn task_address(number: u64) -> String {
    format!("/api/v1/tasks/{PREFIX}{number}")
}

fn read_number(task: &str) -> Result<u64, Problem> {
    let number = task.strip_prefix(PREFIX).and_then(|number| number.parse().ok());
    number.ok_or_else(|| Problem::not_found(format!("there is no task `{task}`")))
}

fn describe_task(service: &Service, number: u64) -> Result<TaskDocument, Problem> {
    let task_id = format!("{PREFIX}{number}");
    let document = |workflow_id: Option<String>, status: String| {
        let stream_url = workflow_id.as_ref().map(|run| format!("/api/v1/runs/{run}/events?from=0"));
        TaskDocument { task_id: task_id.clone(), workflow_id, status, stream_url }
    };
    match service.queue.find(number) {
        Some(Place::Waiting) => Ok(document(None, "queued".to_owned())),
        Some(Place::Failed(why)) if why == CANCELLED => Ok(document(None, "cancelled".to_owned())),
        Some(Place::Failed(_)) => Ok(document(None, "failed".to_owned())),
        Some(Place::Run(run)) => {
            let folder = find_folder(&service.home, &run)?;
            let state = RunSummary::read(&folder, &swarmc_runtime::LeftProcesses::default()).state;
            Ok(document(Some(run), state.as_str().to_owned()))
        }
        None => Err(Problem::not_found(format!("there is no task `{task_id}`"))),
    }
}
