//! The answers that only the server has; the others are documents of `swarmc-view`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use swarmc_plan::StepKind;
use swarmc_view::documents::{Run, StepDetails, StepRow, Version};

/// Whether the server is well.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    pub version: Version,
    /// Whether no request changes anything.
    pub read_only: bool,
    /// The runs of the home.
    pub runs: usize,
    /// The open event streams.
    pub streams: usize,
}

/// Runs, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunPage {
    pub version: Version,
    pub runs: Vec<Run>,
    /// What to give as `after` for the next page; null on the last one.
    pub next: Option<String>,
    /// What was submitted and has not begun.
    pub queued: Vec<QueuedRun>,
}

/// A run that was submitted and has not begun.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QueuedRun {
    /// Its place in the queue.
    pub id: u64,
    /// The spec.
    pub spec: String,
    /// The pipeline; null for the default one.
    pub pipeline: Option<String>,
    /// When it was submitted, in milliseconds since 1970.
    pub at: u64,
}

/// A run as it is now.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunSnapshot {
    #[serde(flatten)]
    pub run: Run,
    pub version: Version,
    /// The event behind which this stands: streams go on from it. Null before the first one.
    pub as_of: Option<String>,
    /// The folder of the run.
    pub folder: PathBuf,
    /// The folder of its outputs: `…/files/outputs/PATH` gives the file `PATH` of it.
    pub outputs: PathBuf,
    /// How many steps stand where, those of earlier rounds included.
    pub counts: BTreeMap<String, u64>,
    /// How many steps there are in `…/steps`.
    pub steps: u64,
    /// What its agents used.
    pub usage: UsageSum,
    /// The steps that run swarms.
    pub swarms: Vec<String>,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct UsageSum {
    /// Tokens that were read.
    pub input: u64,
    /// Tokens that were written.
    pub output: u64,
    /// Dollars; null where a price is unknown.
    pub cost: Option<f64>,
}

/// Steps, in the order in which they began; those that have not begun come last.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepPage {
    pub version: Version,
    /// The event behind which this stands.
    pub as_of: Option<String>,
    pub steps: Vec<StepLine>,
    /// How many steps the filter lets through.
    pub total: u64,
    /// What to give as `cursor` for the next page; null on the last one.
    pub next: Option<u64>,
}

/// A step in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepLine {
    /// How addresses name it.
    pub label: String,
    /// What it is.
    #[schemars(schema_with = "kind_schema")]
    pub kind: &'static str,
    #[serde(flatten)]
    pub row: StepRow,
    /// What it waits for, where it has not begun.
    pub waits: Option<String>,
}

/// A step with all that is known of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepDocument {
    /// How addresses name it.
    pub label: String,
    #[serde(flatten)]
    pub step: StepDetails,
}

/// A picture of the plan, in columns: the n-th box is the n-th entry of each column of `boxes`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GraphDocument {
    pub version: Version,
    pub size: GraphSize,
    pub frames: FrameColumns,
    pub boxes: BoxColumns,
    pub wires: WireColumns,
}

/// The size of a picture, in its own units.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GraphSize {
    pub width: f64,
    pub height: f64,
}

/// Frames, the outer ones first.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct FrameColumns {
    pub id: Vec<String>,
    pub title: Vec<String>,
    /// The lines below the title.
    pub notes: Vec<Vec<String>>,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub w: Vec<f64>,
    pub h: Vec<f64>,
}

/// Boxes.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct BoxColumns {
    pub id: Vec<String>,
    /// The name of the step; null where it is none.
    pub step: Vec<Option<String>>,
    pub lines: Vec<Vec<String>>,
    /// `agent`, `command`, `value`, `gate`, `stop` or `call`.
    pub shape: Vec<&'static str>,
    /// Whether it runs for each item of a list.
    pub many: Vec<bool>,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub w: Vec<f64>,
    pub h: Vec<f64>,
}

/// Lines between boxes or frames.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct WireColumns {
    pub from: Vec<String>,
    pub to: Vec<String>,
    /// `order`, `message`, or `again` for the line from a frame to itself.
    pub kind: Vec<&'static str>,
    pub label: Vec<String>,
    /// Where the label stands: x, y, width, height.
    pub label_at: Vec<Option<[f64; 4]>>,
    /// The parts of each line: x and y of its points, one after the other.
    pub path: Vec<Vec<Vec<f64>>>,
}

/// How the boxes of a picture stand.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GraphStates {
    pub version: Version,
    /// The event behind which this stands.
    pub as_of: Option<String>,
    /// By the id of the box.
    pub boxes: BTreeMap<String, BoxState>,
    /// The envelopes that agents have sent so far.
    pub sent: Vec<SentCount>,
}

/// How many envelopes went from one box to another.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SentCount {
    /// The id of the box that sent them.
    pub from: String,
    /// The id of the box that they are for.
    pub to: String,
    pub count: u64,
}

/// How a box stands.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct BoxState {
    /// The most urgent state of its steps; `pending` where none has begun.
    pub state: &'static str,
    /// The step that has it, as addresses name it; else one that has not begun.
    pub label: Option<String>,
    /// How many of its steps stand where.
    pub counts: BTreeMap<String, u64>,
    /// What its agent reported last.
    pub progress: Option<String>,
}

/// The attempts of a run over time.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Timeline {
    pub version: Version,
    /// The event behind which this stands.
    pub as_of: Option<String>,
    /// The first and the last moment, in milliseconds since 1970.
    pub from: u64,
    pub to: u64,
    /// The moment of the answer, where the run goes on; else `to`.
    pub now: u64,
    /// The steps, in the order in which they began.
    pub rows: Vec<String>,
    /// Row, start, end (null while it goes on), state, attempt.
    #[schemars(schema_with = "bar_schema")]
    pub bars: Vec<(u32, u64, Option<u64>, &'static str, u32)>,
    /// What went on within the bars: row, start, end (null while it goes on), `turn` or `tool`, the name of the agent or of
    /// the tool, state.
    #[schemars(schema_with = "part_schema")]
    pub parts: Vec<TimelinePart>,
    /// The attempts for which there was no room.
    pub left_out: u64,
}

/// A turn or a use of a tool: row, start, end, kind, name, state.
pub(crate) type TimelinePart = (u32, u64, Option<u64>, &'static str, String, &'static str);

fn kind_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": StepKind::all().map(StepKind::label).collect::<Vec<_>>() })
}

fn bar_schema(_: &mut SchemaGenerator) -> Schema {
    tuples_schema(5)
}

fn part_schema(_: &mut SchemaGenerator) -> Schema {
    tuples_schema(6)
}

/// A list of tuples of this length: programs that are made from tuples of a schema are rare.
fn tuples_schema(length: usize) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "array", "minItems": length, "maxItems": length, "items": { "type": ["integer", "string", "null"] }
        }
    })
}

/// What waits for people.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Waits {
    pub version: Version,
    pub waits: Vec<Wait>,
}

/// A question to a person.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Wait {
    pub run: String,
    pub kind: WaitKind,
    /// What answers name it by: the number of a request, or the id of a gate.
    pub key: String,
    /// The step, as addresses name it.
    pub step: String,
    pub title: String,
    /// The text of the question, for people: invisible characters are written as their codes.
    pub lines: Vec<String>,
    /// The words that answer it.
    pub choices: Vec<String>,
    /// What a gate asks for besides.
    pub fields: Vec<swarmc_view::documents::GateField>,
    /// Whether an answer may give other arguments.
    pub arguments: bool,
    /// Since when it waits, in milliseconds since 1970.
    pub since_ms: u64,
    /// What becomes of it without an answer, and when; null where it waits for ever.
    pub expiry: Option<String>,
}

/// What asks.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitKind {
    Gate,
    Approval,
}

/// The specs that may be run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Specs {
    pub version: Version,
    pub specs: Vec<String>,
}

/// What was done.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Done {
    pub version: Version,
    /// In words.
    pub said: String,
}

/// A run that was submitted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Submitted {
    pub version: Version,
    /// The run; null while it waits for others to end.
    pub run: Option<String>,
    /// Its place in the queue, while it waits.
    pub queued: Option<u64>,
    /// Where it is described, once it has begun.
    pub url: Option<String>,
    /// Where its events are.
    pub events: Option<String>,
}

/// A run to be started.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitRun {
    /// The spec, relative to one of the folders of `--specs`; empty where there is a plan.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spec: String,
    /// A plan in place of a spec, as `swarmc plan -o` writes it. Only a server with `--allow-plans` takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Map<String, Value>>,
    /// The pipeline; the default one where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// One task that runs outside its pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Parameters, by name; what is no text is given as JSON.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// Whether no person can be asked.
    #[serde(default)]
    pub headless: bool,
    /// Providers that take the place of others, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, String>,
}

impl SubmitRun {
    /// The spec, or the name of the workflow of the plan.
    pub(crate) fn describe_source(&self) -> String {
        let workflow = self.plan.as_ref().and_then(|plan| plan.get("workflow")?.as_str());
        workflow.map_or_else(|| self.spec.clone(), |workflow| format!("the plan of {workflow}"))
    }
}

/// A run to be stopped: there is nothing to say about it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopRun {}

/// A run to go on.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeRun {
    /// Whether failed steps run once more.
    #[serde(default)]
    pub retry_failed: bool,
}

/// An answer to a request of an agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerRequest {
    /// `allow`, `always` or `deny`.
    pub choice: String,
    /// The reason, which the agent reads.
    #[serde(default)]
    pub because: Option<String>,
    /// Arguments in place of those of the agent: a JSON object, as text.
    #[serde(default)]
    pub arguments: Option<String>,
}

/// An answer to a gate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerGate {
    /// One of its options.
    pub choice: String,
    /// What it asks for, by name.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
}

/// A message to an agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendMessage {
    /// `STEP`, `STEP/AGENT` or `context:PACK`.
    pub to: String,
    /// The message.
    pub text: String,
    /// Whether it ends the turn that goes on.
    #[serde(default)]
    pub interrupt: bool,
}

/// A task, as seed 001 posts it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PostTask {
    /// What is to be done: the parameter `goal` of the workflow, or its only one.
    pub query: String,
    /// The conversation that it belongs to: the parameter `session_id`, where the workflow has it.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Parameters of the workflow, by name; `force_swarm` chooses the pipeline of that name.
    #[serde(default)]
    pub context: Map<String, Value>,
}

/// A task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskDocument {
    /// Its id.
    pub task_id: String,
    /// The run that does it; null while it waits for others to end.
    pub workflow_id: Option<String>,
    /// `queued`, or how its run stands.
    pub status: String,
    /// Where its events are; null while it waits.
    pub stream_url: Option<String>,
}
