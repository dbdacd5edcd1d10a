//! The evaluator: reads the definitions of steps, the parameters and the outputs from the plan and the state of a run.
//!
//! In: the plan and the state. Out: the results of conditions, the values of lists and parameters, and outputs. It
//! starts, keeps and writes nothing, so that a rehearsal in memory shares it with a run: what it makes beside a result
//! is in [`Made`], whose owner stores it.

mod artifact_refs;
mod context_pack;
pub(crate) mod file_summaries;
pub(crate) mod handoff;
mod made;
pub(crate) mod operations;
mod parsed_texts;
mod turn_request;
mod turn_result;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use swarmc_plan::{
    Body, Call, Command, ForEach, GateDefault, Param, ParamType, Pipeline, Plan, PromptBody, Segment, Step, Template,
    prompt_text,
};

use super::values::View;
use super::worktree_names;
use crate::core::graph::{Graph, Key, Kind, StepRef};
use crate::core::state::State;
use crate::core::state::frame::{Each, Inner};
use crate::eval::render::{RenderError, Renderer};
use crate::io::home::Layout;
use crate::io::recording::Source;
use crate::io::worktree::Worktrees;
use crate::types::answer::{Shapes, compact_json};
use crate::types::event::{self, Content, Event, Failure, Outcome, Reserved, StepId};
use crate::types::secrets::Secrets;
use crate::types::usage::compute_price;

pub(crate) use context_pack::Packed;
use file_summaries::KnownSummaries;
pub(crate) use made::Made;
use parsed_texts::{ItemIds, ParsedTexts};
pub(crate) use turn_request::{At, MAX_OUTPUT, ModelRequest};
pub(crate) use turn_result::{Finished, PREFILL, truncate_to_event};

/// The bytes that the outputs of all items together may take.
const LONGEST_LIST: usize = 64 * 1024 * 1024;

/// How many calls, loops and lists may be inside of each other when a call begins: more is a call without an end.
const DEEPEST: usize = 1000;

/// Parameters in their textual form, by name.
pub(crate) type Texts = BTreeMap<String, String>;

/// Where texts that no event holds lie.
pub(crate) trait TextReader: Send {
    /// The text of `content`.
    fn load_text(&self, content: &Content) -> Result<String, String>;
}

/// A plan while it runs.
pub(crate) struct Evaluator<'a> {
    pub plan: &'a Plan,
    /// The steps, by region and number.
    definitions: Vec<Vec<&'a Step>>,
    /// The pipelines, by scope.
    pipelines: Vec<&'a Pipeline>,
    /// The parameters of the pipeline that runs, and of the workflow.
    params: Arc<Texts>,
    pub stdin: Option<Content>,
    /// Where the files of the run lie; none in a rehearsal.
    pub layout: Option<Layout>,
    pub renderer: Renderer,
    pub run: String,
    pub run_folder: PathBuf,
    pub workspace: PathBuf,
    /// The working trees, where the plan has some and they can be made.
    pub trees: Option<Arc<Worktrees>>,
    pub texts: Box<dyn TextReader>,
    /// Who reads files.
    pub source: Source,
    /// The secrets that no text in a context pack may show.
    pub secrets: Secrets,
    /// The types of the plan, ready to hold values against.
    pub shapes: Shapes,
    lists: ParsedTexts<Vec<Value>>,
    /// The ids of the items of those lists.
    item_ids: ParsedTexts<ItemIds>,
    given: ParsedTexts<Texts>,
    /// What agents wrote of files.
    summaries: KnownSummaries,
}

/// What `Opened` says of a step.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    pub items: Option<u32>,
    pub list: Option<String>,
    pub params: Option<String>,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        graph: &Graph,
        params: Texts,
        stdin: Option<Content>,
        (run, run_folder, workspace): (String, PathBuf, PathBuf),
        texts: Box<dyn TextReader>,
    ) -> Evaluator<'a> {
        Evaluator {
            plan,
            definitions: collect_definitions(plan, graph),
            pipelines: graph.scopes.iter().filter_map(|scope| plan.pipeline(&scope.pipeline)).collect(),
            params: Arc::new(params),
            stdin,
            layout: None,
            renderer: Renderer::new(),
            run,
            run_folder,
            workspace,
            trees: None,
            texts,
            source: Source::Live,
            secrets: Secrets::default(),
            shapes: Shapes::default(),
            lists: ParsedTexts::default(),
            item_ids: ParsedTexts::default(),
            given: ParsedTexts::default(),
            summaries: KnownSummaries::default(),
        }
    }

    /// The step as the plan declares it.
    pub(crate) fn step_definition(&self, state: &State, key: Key) -> &'a Step {
        self.definitions[state.frame(key.frame).region as usize][key.step as usize]
    }

    /// The pipeline that a frame is part of.
    pub(crate) fn pipeline(&self, state: &State, frame: u32) -> &'a Pipeline {
        self.pipelines[state.region(frame).scope as usize]
    }

    /// A parameter of the workflow, in its textual form.
    pub(crate) fn param(&self, name: &str) -> Option<&String> {
        // The map holds the parameters of the pipeline, too.
        self.params.get(name).filter(|_| self.plan.params.iter().any(|param| param.name == name))
    }

    /// Whether the output of a step is JSON rather than text.
    pub(crate) fn is_json(&self, graph: &Graph, mut spot: StepRef) -> bool {
        loop {
            let step = self.definitions[spot.region as usize][spot.step as usize];
            let is_item = graph.region(spot.region).is_item;
            if step.output.schema.is_some() || step.for_each.is_some() && !is_item {
                return true;
            }
            spot = match (&step.body, graph.region(spot.region).nodes[spot.step as usize].kind) {
                (Body::Fields(_) | Body::Gate(_), _) => return true,
                // All steps of a result have one type.
                (_, Kind::Call(scope)) => match graph.scope(scope).result.first() {
                    Some(result) => *result,
                    None => return false,
                },
                _ => return false,
            };
        }
    }

    /// What a step, or with none the conditions of its frame, read.
    pub(crate) fn build_view<'v>(
        &'v self,
        state: &'v State,
        frame: u32,
        step: Option<&'v Step>,
        made: &'v Made,
    ) -> Result<View<'v>, String> {
        let scope = state.frame(state.frame(frame).scope);
        let params = match &scope.params {
            // Kept parsed: every step of a called pipeline reads the same parameters.
            Some(content) => self.given.parse(&*self.texts, content)?,
            None => Arc::clone(&self.params),
        };
        let tree = self
            .trees
            .as_ref()
            .and_then(|trees| trees.workspace_path(&worktree_names::tree_name(self, state, frame, step)?));
        Ok(View { evaluator: self, state, frame, step, params, tree, attempt: 1, made })
    }

    /// Judges the `when` of a step.
    pub(crate) fn judge_condition(&self, state: &State, key: Key, made: &Made) -> Event {
        let definition = self.step_definition(state, key);
        let judged = match &definition.when {
            Some(when) => self
                .build_view(state, key.frame, Some(definition), made)
                .and_then(|view| self.renderer.holds(when, &view).map_err(|error| error.message)),
            None => Ok(true),
        };
        let (holds, error) = match judged {
            Ok(holds) => (holds, None),
            Err(mut message) => {
                event::truncate_message(&mut message);
                (false, Some(message))
            }
        };
        Event::ConditionJudged { step: state.id(key), holds, error }
    }

    /// Whether an `until` of a frame holds, and what is wrong with those that cannot be evaluated.
    pub(crate) fn judge_round(&self, state: &State, frame: u32, made: &Made) -> (bool, Vec<String>) {
        let around = state.frame(frame).parent.map(|parent| &self.step_definition(state, parent).body);
        let untils = match around {
            Some(Body::Loop(body)) => &body.iteration.until,
            _ => &self.pipeline(state, frame).iteration.until,
        };
        let view = match self.build_view(state, frame, None, made) {
            Ok(view) => view,
            Err(message) => return (false, vec![message]),
        };
        let (mut holds, mut problems) = (false, Vec::new());
        for until in untils {
            match self.renderer.holds(until, &view) {
                Ok(true) => holds = true,
                Ok(false) => {}
                // One that reads what is not there does not hold, by definition.
                Err(error) if error.missing => {}
                Err(error) => problems.push(error.message),
            }
        }
        (holds, problems)
    }

    /// What a loop, a for-each or a call begins with.
    pub(crate) fn open_step(&self, state: &State, key: Key, made: &Made) -> Result<Opening, Failure> {
        let definition = self.step_definition(state, key);
        let view = self.build_view(state, key.frame, Some(definition), made).map_err(render_failure)?;
        match (state.node(key).kind, &definition.for_each, &definition.body) {
            (Kind::Each { .. }, Some(each), _) => self.evaluate_items(each, &view),
            (Kind::Call(_), _, Body::Call(call)) if state.frame(key.frame).rank.len() > DEEPEST => {
                let (origin, name) = (&definition.origin, &call.pipeline);
                Err(render_failure(format!(
                    "{origin}: `{name}` is called more than {DEEPEST} levels deep: end its calls by a `when` in this step"
                )))
            }
            (Kind::Call(_), _, Body::Call(call)) => self.evaluate_arguments(call, &view),
            _ => Ok(Opening::default()),
        }
    }

    fn evaluate_items(&self, each: &ForEach, view: &View<'_>) -> Result<Opening, Failure> {
        let list = self.renderer.evaluate(&each.list, view).map_err(from_render_error)?;
        let Value::Array(items) = &list else {
            let kind = match &list {
                Value::Null => "nothing",
                Value::Bool(_) => "a boolean",
                Value::Number(_) => "a number",
                Value::String(_) => "a text",
                Value::Array(_) | Value::Object(_) => "a record",
            };
            return Err(render_failure(format!("{}: `for-each` needs a list, but this is {kind}", each.list.origin)));
        };
        // Each item is a step in the state, whose memory this limit bounds.
        let count = u32::try_from(items.len()).ok().filter(|&count| u64::from(count) <= crate::core::graph::MAX_STEPS);
        let count =
            count.ok_or_else(|| render_failure(format!("{}: the list has too many items", each.list.origin)))?;
        let list = (count > 0).then(|| list.to_string());
        Ok(Opening { items: Some(count), list, params: None })
    }

    fn evaluate_arguments(&self, call: &Call, view: &View<'_>) -> Result<Opening, Failure> {
        let callee = self.plan.pipeline(&call.pipeline);
        let callee = callee.ok_or_else(|| render_failure(format!("the plan has no pipeline `{}`", call.pipeline)))?;
        let mut params = Texts::new();
        for param in &callee.params {
            let given = match call.params.get(&param.name) {
                Some(template) => Some(self.renderer.value(template, view).map_err(from_render_error)?),
                None => None,
            };
            let text = match (given, &param.default) {
                // Null stands for a value that is not there.
                (Some(value), _) if !value.is_null() => Some(self.format_argument(param, value, call)?),
                (_, Some(default)) => Some(default.clone()),
                (_, None) if param.optional => None,
                (_, None) => {
                    return Err(render_failure(format!(
                        "{}: parameter `{}` of `{}` has no value",
                        param.origin, param.name, call.pipeline
                    )));
                }
            };
            params.extend(text.map(|text| (param.name.clone(), text)));
        }
        let params = serde_json::to_string(&params).expect("a map of texts is JSON");
        Ok(Opening { params: Some(params), ..Opening::default() })
    }

    /// The turn in which an agent mends what made a step fail, where this attempt is that.
    pub(crate) fn build_fix_prompt(
        &self,
        state: &State,
        key: Key,
        attempt: u32,
        made: &Made,
    ) -> Option<Result<PromptBody, Failure>> {
        let node = state.node(key);
        // Attempts are counted through all turns of a step.
        let tries = attempt.saturating_sub(state.step(key).earlier);
        let agent = node.fix.as_ref().filter(|_| node.fix_attempt() == Some(tries))?;
        let definition = self.step_definition(state, key);
        let detail = state.step(key).detail.as_deref();
        let error = detail.and_then(|detail| detail.error.as_deref()).unwrap_or("it failed");
        let asked = match &definition.body {
            Body::Run(Command::Shell(line)) => Ok(prompt_text::describe_command(line)),
            Body::Run(Command::Argv(argv) | Command::Script { argv, .. }) => {
                Ok(prompt_text::describe_command(&argv.join(" ")))
            }
            Body::Prompt(body) => self
                .build_view(state, key.frame, Some(definition), made)
                .map_err(render_failure)
                .and_then(|view| self.renderer.text(&body.prompt, &View { attempt, ..view }).map_err(from_render_error))
                .map(|prompt| prompt_text::describe_prompt(&prompt)),
            _ => Ok(String::new()),
        };
        let body = asked.map(|asked| {
            let text = prompt_text::repair_request(&node.name, error, &asked);
            let prompt = Template { segments: vec![Segment::Text(text)], digest: String::new() };
            PromptBody { agent: agent.to_string(), prompt, context: Vec::new() }
        });
        Some(body)
    }

    /// The textual form of a value for a parameter of a called pipeline: a text is read as the type asks for.
    fn format_argument(&self, param: &Param, value: Value, call: &Call) -> Result<String, Failure> {
        let plain = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let wrong = |what: String| {
            render_failure(format!("{}: parameter `{}` of `{}` {what}", param.origin, param.name, call.pipeline))
        };
        let (fits, kind, text) = match &param.kind {
            ParamType::String | ParamType::File | ParamType::Dir => return Ok(plain(value)),
            ParamType::Json(schema) => {
                let shape = self.shapes.validator_for(schema, self.plan).map_err(render_failure)?;
                return shape
                    .parse_computed(value)
                    .map_err(|violations| wrong(format!("is not of its type: {}", violations.join("; "))));
            }
            ParamType::Int => {
                let text = plain(value);
                (text.trim().parse::<i64>().is_ok(), "a whole number", text)
            }
            ParamType::Float => {
                let text = plain(value);
                // JSON has neither infinity nor `NaN`.
                (text.trim().parse::<f64>().is_ok_and(f64::is_finite), "a number", text)
            }
            ParamType::Bool => {
                let text = plain(value);
                (text.trim().parse::<bool>().is_ok(), "`true` or `false`", text)
            }
        };
        match fits {
            true => Ok(text.trim().to_owned()),
            false => Err(wrong(format!("must be {kind}, but is `{text}`"))),
        }
    }

    /// What the person behind a gate reads.
    pub(crate) fn render_gate_message(&self, state: &State, key: Key, made: &Made) -> Result<String, Failure> {
        let definition = self.step_definition(state, key);
        let Body::Gate(gate) = &definition.body else { return Err(unknown_step(&state.id(key))) };
        let view = self.build_view(state, key.frame, Some(definition), made).map_err(render_failure)?;
        self.renderer.text(&gate.message, &view).map_err(from_render_error)
    }

    /// What a turn may use at most, `turns` with its repairs: tokens never exceed bytes. None for what no budget
    /// counts.
    pub(crate) fn estimate_reservation(
        &self,
        state: &State,
        turns: u64,
        agent: &str,
        bytes: usize,
    ) -> Option<Reserved> {
        if !state.graph.has_budgets {
            return None;
        }
        let agent = self.plan.agent(agent)?;
        let written = agent.max_output;
        // A repair receives the prompt and the answer before it.
        let read = (bytes as u64).saturating_add(written.unwrap_or(0).min(1 << 40)).saturating_mul(turns);
        let read = if turns == 1 { bytes as u64 } else { read };
        let written = written.map(|tokens| tokens.saturating_mul(turns));
        let price = self.plan.provider(&agent.provider).and_then(|provider| provider.price);
        let cost = price.map(|price| {
            compute_price(read, price.input).saturating_add(compute_price(written.unwrap_or(0), price.output))
        });
        Some(Reserved { calls: turns, tokens: Some(read.saturating_add(written.unwrap_or(0))), cost })
    }

    /// What the inside of a step came to, given why it failed.
    pub(crate) fn conclude_step(&self, state: &State, key: Key, failure: Option<Failure>) -> Outcome {
        let put_together = match (state.node(key).kind, state.step(key).inner.as_deref()) {
            // Also where it failed: what handles that reads which of its items did.
            (Kind::Each { region, .. }, Some(Inner::Each(each))) => {
                let is_json = self.is_json(&state.graph, StepRef { region, step: 0 });
                let with_item =
                    self.step_definition(state, key).for_each.as_ref().is_some_and(|each| each.record.is_some());
                self.collect_outputs(each, is_json, with_item)
            }
            (Kind::Call(_), Some(Inner::Frame(frame))) if failure.is_none() => {
                Ok(Outcome { output: state.value_of(*frame).cloned(), ..Outcome::default() })
            }
            _ => Ok(Outcome::default()),
        };
        match put_together {
            Ok(outcome) => Outcome { failure, ..outcome },
            Err(message) => Outcome { failure: Some(Failure::Render { message }), ..Outcome::default() },
        }
    }

    /// The outputs of the items that succeeded, each in a record with its item where `with_item` is set, and what failed.
    fn collect_outputs(&self, each: &Each, is_json: bool, with_item: bool) -> Result<Outcome, String> {
        let items = match &each.list {
            Some(list) => self.lists.parse(&*self.texts, list)?,
            None => Arc::default(),
        };
        let mut outputs = String::from("[");
        for (index, content) in each.outputs() {
            let text = self.texts.load_text(content)?;
            if outputs.len() > 1 {
                outputs.push(',');
            }
            let output = match serde_json::from_str::<Value>(&text) {
                // Where items give texts, one that happens to be JSON stays a text.
                Ok(value) if is_json => value,
                _ => Value::String(text),
            };
            let result = if with_item { json!({ "item": items.get(index), "output": output }) } else { output };
            outputs.push_str(&result.to_string());
            // At each item: all of them together could fill the memory before the end.
            if outputs.len() > LONGEST_LIST {
                return Err(format!("the outputs of its items are longer than {} MiB", LONGEST_LIST / (1024 * 1024)));
            }
        }
        outputs.push(']');
        let errors: Vec<Value> = each
            .failures()
            .map(|(index, message)| json!({ "index": index, "item": items.get(index), "message": message }))
            .collect();
        let text = |text: String| Some(Content::Text(text));
        let errors = Value::Array(errors).to_string();
        Ok(Outcome { output: text(outputs), errors: text(errors), ..Outcome::default() })
    }

    /// The item that a frame is for, and its position.
    pub(crate) fn item(&self, state: &State, frame: u32) -> Result<Option<(Value, u32)>, String> {
        let Some((_, each, item)) = state.enclosing_item(frame) else { return Ok(None) };
        let Some(list) = &each.list else { return Ok(None) };
        let list = self.lists.parse(&*self.texts, list)?;
        Ok(list.get(item as usize).map(|value| (value.clone(), item)))
    }
}

impl Evaluator<'_> {
    /// The items around a frame, told apart by their values: an item that is moved in its list remains the same.
    ///
    /// # Errors
    /// A list cannot be read.
    pub(crate) fn item_ids(&self, state: &State, frame: u32) -> Result<Vec<(String, u32)>, String> {
        let identify = |(each, item): (&Each, u32)| match &each.list {
            Some(list) => {
                let ids = self.item_ids.parse(&*self.texts, list)?;
                ids.0.get(item as usize).cloned().ok_or_else(|| "its item is not in its list".to_owned())
            }
            None => Ok((String::new(), item)),
        };
        state.items_around(frame).into_iter().map(identify).collect()
    }
}

/// The steps of each region.
fn collect_definitions<'a>(plan: &'a Plan, graph: &Graph) -> Vec<Vec<&'a Step>> {
    let mut definitions: Vec<Vec<&'a Step>> = Vec::with_capacity(graph.regions.len());
    for region in &graph.regions {
        let steps = match region.parent {
            None => {
                let pipeline = plan.pipeline(&graph.scope(region.scope).pipeline);
                // By name: a search for each step would be quadratic in a long pipeline.
                let all: HashMap<&str, &Step> =
                    pipeline.iter().flat_map(|it| it.all_steps()).map(|step| (step.name.as_str(), step)).collect();
                region.nodes.iter().filter_map(|node| all.get(&*node.name).copied()).collect()
            }
            // What is around comes before what is inside.
            Some(parent) => {
                let around = definitions[parent.region as usize][parent.step as usize];
                if region.is_item { vec![around] } else { around.body.loop_steps().iter().collect() }
            }
        };
        definitions.push(steps);
    }
    definitions
}

/// What a gate puts out: the choice, and the fields that were asked.
pub(crate) fn format_gate_answer(choice: &str, mut fields: Map<String, Value>) -> String {
    fields.insert("choice".to_owned(), Value::from(choice));
    compact_json(Value::Object(fields))
}

/// The option that a gate takes by itself; none where it fails.
pub(crate) fn default_choice(default: Option<&GateDefault>) -> Option<String> {
    match default? {
        GateDefault::Option(option) => Some(option.clone()),
        GateDefault::Fail => None,
    }
}

pub(crate) fn from_render_error(error: RenderError) -> Failure {
    render_failure(error.message)
}

pub(crate) fn render_failure(message: String) -> Failure {
    Failure::Render { message }
}

/// A step that is not in the plan: a record of another one.
pub(crate) fn unknown_step(id: &StepId) -> Failure {
    render_failure(format!("no step `{id}`"))
}
