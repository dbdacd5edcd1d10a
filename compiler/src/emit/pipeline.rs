//! Writes pipelines: turns the flat step list of the model into the nested lists of the plan.

use std::collections::BTreeSet;

use swarmc_plan as plan;

use super::{Emitter, command, text};
use crate::ast;
use crate::model::{Body, Condition, Need, Pipeline, Read, Step, TemplateText};
use crate::template::Root;
use crate::types::{Field, Kind, Type};

/// The steps of a pipeline by where they stand.
struct Lists {
    /// Those of each list: that of the pipeline itself first, then that of step N at N + 1.
    of: Vec<Vec<usize>>,
    /// The names of those that something handed over may come to.
    woken: BTreeSet<String>,
    /// Those whose logs are read.
    logged: BTreeSet<usize>,
}

impl Emitter<'_, '_, '_> {
    /// A pipeline; `params` are the types of its own parameters.
    pub(super) fn emit_pipeline(&self, pipeline: &Pipeline<'_>, params: &[Type]) -> plan::Pipeline {
        let ast = pipeline.ast;
        let edges = self.emit_edges(ast.edges.as_ref(), &pipeline.carries);
        let woken = |edge| plan::Edge::receivers(edge).filter(|name| edge.wakes_step(name)).map(str::to_owned);
        let woken = edges.iter().flat_map(woken).collect();
        let of_loops = pipeline.steps.iter().flat_map(|step| step.body.until_reads());
        let reads = pipeline.steps.iter().flat_map(|step| &step.reads).chain(&pipeline.until_reads).chain(of_loops);
        let logged = reads.filter(|read| read.root == Root::Log).filter_map(|read| read.step()).collect();
        let mut lists = Lists { of: vec![Vec::new(); pipeline.steps.len() + 1], woken, logged };
        for (index, step) in pipeline.steps.iter().enumerate() {
            lists.of[step.within.map_or(0, |holder| holder + 1)].push(index);
        }
        plan::Pipeline {
            name: ast.name.value.clone(),
            description: ast.description.clone(),
            params: self.emit_params(&ast.params, params),
            iteration: plan::Iteration {
                max: ast.iterations,
                on_failure: ast.on_failure,
                exhausted: ast.exhausted,
                ..self.emit_iteration(pipeline, None, &pipeline.until, &pipeline.until_reads)
            },
            parallelism: ast.parallelism,
            concurrency: ast.concurrency,
            fail_fast: ast.fail_fast,
            working_dir: ast
                .working_dir
                .as_ref()
                .and_then(|path| self.workspace_path(path))
                .filter(|path| !path.is_empty()),
            env: self.emit_env(&pipeline.env),
            steps: self.emit_steps(pipeline, &lists, 0),
            result: pipeline.result.iter().map(|&step| pipeline.steps[step].name().to_owned()).collect(),
            edges,
            budget: ast.budget.as_ref().map(|budget| self.emit_budget(budget)),
            worktree: ast.worktree.is_some(),
            origin: self.to_origin(ast.name.span),
        }
    }

    /// The steps of one list. Loops nest at most sixteen deep.
    fn emit_steps(&self, pipeline: &Pipeline<'_>, lists: &Lists, list: usize) -> Vec<plan::Step> {
        lists.of[list].iter().map(|&index| self.emit_step(pipeline, lists, index)).collect()
    }

    fn emit_step(&self, pipeline: &Pipeline<'_>, lists: &Lists, index: usize) -> plan::Step {
        let step = &pipeline.steps[index];
        let ast = step.ast;
        // Reads of this step that mean the round before.
        // `order_steps` gathers them in the order of the steps.
        let first = pipeline.order.back.partition_point(|back| back.step < index);
        let back: Vec<&str> = pipeline.order.back[first..]
            .iter()
            .take_while(|back| back.step == index)
            .filter_map(|back| step.reads[back.read].step())
            .map(|target| pipeline.steps[target].name())
            .collect();
        let is_back = |name: &str| back.iter().any(|other| crate::template::same_name(other, name));
        let is_back: &dyn Fn(&str) -> bool = &is_back;
        let name = |step: usize| pipeline.steps[step].name().to_owned();
        // One that is left out (`use partial=#true`) keeps its name: the placeholder says it.
        let source = |input: &ast::Input| {
            let known = step.inputs.iter().find(|(port, _)| *port == input.name.value);
            known.map_or_else(|| input.from.value.clone(), |(_, target)| name(*target))
        };
        let agent = |agent: usize| self.model.agents[agent].ast.name.value.clone();
        let emitted = plan::Step {
            name: ast.name.value.clone(),
            description: ast.description.clone(),
            needs: step.needs.iter().map(|need| self.emit_need(pipeline, need)).collect(),
            join: ast.join.value,
            when: step.when.as_ref().map(|when| self.emit_condition(when, is_back)),
            on_failure: match (&ast.on_failure, step.fixer) {
                (ast::OnFailure::Skip, _) => plan::OnFailure::Skip,
                (ast::OnFailure::Escalate(_), _) => plan::OnFailure::Escalate,
                (ast::OnFailure::Fix(_), Some(fixer)) => plan::OnFailure::Fix(agent(fixer)),
                (ast::OnFailure::Fail | ast::OnFailure::Fix(_), _) => plan::OnFailure::Fail,
            },
            body: self.emit_body(pipeline, lists, index, is_back),
            for_each: ast.for_each.as_ref().zip(step.list.as_ref()).map(|(each, list)| plan::ForEach {
                list: self.emit_condition(list, is_back),
                parallel: each.parallel.as_ref().map(|parallel| parallel.value),
                join: match each.join {
                    ast::ForEachJoin::All => plan::EachJoin::All,
                    ast::ForEachJoin::Any => plan::EachJoin::Any,
                    ast::ForEachJoin::Settled => plan::EachJoin::Settled,
                },
                record: match &step.output.kind {
                    Kind::List(result) if each.with_item => Some(plan::Schema(self.model.typing.types.schema(result))),
                    _ => None,
                },
            }),
            session: ast.session.as_ref().map(|session| session.value.clone()),
            inputs: ast.inputs.iter().map(|input| (input.name.value.clone(), source(input))).collect(),
            output: plan::Output {
                max_bytes: ast.output.max,
                default: ast.output.default.as_ref().map(|default| match &step.declared {
                    Some(kind) => self.model.typing.types.format_literal(kind, &default.value),
                    None => default.value.clone(),
                }),
                schema: self.output_schema(pipeline, index),
                repair: ast.output.repair,
            },
            retry: ast.retry.clone(),
            timeout_ms: ast.timeout_ms,
            idle_ms: ast.idle_ms,
            grace_ms: ast.grace_ms,
            survives: ast.survives,
            pool: self.find_pool(pipeline, step),
            stall: ast.stall,
            keeps_log: lists.logged.contains(&index),
            checks: ast.checks.iter().map(command::emit_command).collect(),
            concurrency: ast.concurrency,
            reads: ast.reads.iter().map(|path| path.as_str().to_owned()).collect(),
            writes: ast.writes.iter().map(|path| path.as_str().to_owned()).collect(),
            reuse: ast.reuse,
            worktree: ast.worktree.as_ref().map(|worktree| {
                worktree.name.as_ref().map_or_else(|| ast.name.value.clone(), |name| name.value.clone())
            }),
            files: self.emit_files(ast.files.as_deref(), step.files.as_ref(), is_back),
            budget: ast.budget.as_ref().map(|budget| self.emit_budget(budget)),
            env: self.env_of(&step.env, is_back),
            stdin: step.stdin.as_ref().map(|stdin| self.emit_text(stdin, is_back)),
            origin: self.to_origin(ast.name.span),
        };
        // Without turns there is nothing to go in circles, and a command that does its work again may well do the same,
        // unless it says so.
        let is_agent = matches!(emitted.body, plan::Body::Prompt(_));
        let counts = ast.stalls || is_agent && lists.woken.contains(&emitted.name);
        plan::Step { stall: if counts { ast.stall } else { 0 }, ..emitted }
    }

    /// The pool of a step that starts processes: its own, its agent's, that of the pipeline.
    fn find_pool(&self, pipeline: &Pipeline<'_>, step: &Step<'_>) -> Option<String> {
        let has_process = step.ast.body.as_ref().is_some_and(|body| body.kind().takes_slot().is_some())
            || !step.ast.checks.is_empty();
        let of_agent = || step.agent.and_then(|agent| self.model.agents[agent].ast.pool.as_ref());
        let pool = step.ast.pool.as_ref().or_else(of_agent).or(pipeline.ast.pool.as_ref());
        pool.filter(|_| has_process).cloned()
    }

    /// What the output must be: what is declared, or any JSON where a computed value is known to be no text.
    fn output_schema(&self, pipeline: &Pipeline<'_>, index: usize) -> Option<plan::Schema> {
        let step = &pipeline.steps[index];
        let types = &self.model.typing.types;
        if let Some(kind) = &step.declared {
            return Some(plan::Schema(types.schema(kind)));
        }
        let one = match (&step.output.kind, &step.ast.for_each) {
            (Kind::List(result), Some(each)) if each.with_item => match &result.kind {
                // `infer_output` puts the item first and the output last.
                Kind::Record(record) => record.fields.last().map_or(&Kind::Any, |output| &output.kind.kind),
                _ => &Kind::Any,
            },
            (Kind::List(item), Some(_)) => &item.kind,
            (kind, _) => kind,
        };
        let kind = types.underlying_kind(one);
        let unknown = matches!(kind, Kind::Any | Kind::None | Kind::Union(_));
        // All steps of a result have one kind of value: beside a step that gives text, an unknown value is text too.
        let is_text = |&other: &usize| pipeline.steps[other].output.kind.is_text();
        let beside_text = || pipeline.result.contains(&index) && pipeline.result.iter().any(is_text);
        let computed = matches!(step.body, Body::Value(_)) && !kind.is_text() && !(unknown && beside_text());
        computed.then(|| plan::Schema(serde_json::json!({})))
    }

    /// What a gate asks for besides the choice, which its output begins with.
    fn emit_asks(&self, step: &Step<'_>, gate: &ast::Gate) -> Vec<plan::Ask> {
        let one = match &step.output.kind {
            Kind::List(item) => &item.kind,
            kind => kind,
        };
        let Kind::Record(record) = one else { return Vec::new() };
        let fields = record.fields.iter().skip(record.fields.len().saturating_sub(gate.asks.len()));
        let ask = |(field, written): (&Field, &ast::Field)| plan::Ask {
            name: field.name.clone(),
            schema: plan::Schema(self.model.typing.types.field_schema(field)),
            optional: written.kind.optional,
            description: field.description.clone(),
        };
        fields.zip(&gate.asks).map(ask).collect()
    }

    /// The conditions that end the rounds of a list, and the steps of it whose failures they handle.
    fn emit_iteration(
        &self,
        pipeline: &Pipeline<'_>,
        list: Option<usize>,
        until: &[Condition],
        reads: &[Read],
    ) -> plan::Iteration {
        let asks = |read: &&Read| read.root.handles_failure();
        let of_list = |step: usize| {
            std::iter::successors(Some(step), |&step| pipeline.steps[step].within)
                .find(|&step| pipeline.steps[step].within == list)
        };
        let mut handles: Vec<usize> =
            reads.iter().filter(asks).filter_map(|read| read.step()).filter_map(of_list).collect();
        handles.sort_unstable();
        handles.dedup();
        plan::Iteration {
            max: 1,
            until: until.iter().map(|until| self.emit_condition(until, &|_| false)).collect(),
            handles: handles.into_iter().map(|step| pipeline.steps[step].name().to_owned()).collect(),
            ..plan::Iteration::default()
        }
    }

    fn emit_loop(
        &self,
        pipeline: &Pipeline<'_>,
        lists: &Lists,
        index: usize,
        (body, until, reads): (&ast::Loop, &[Condition], &[Read]),
    ) -> plan::Body {
        let max = body.max.as_ref().expect("a model without errors has a limit for each loop");
        plan::Body::Loop(plan::Loop {
            iteration: plan::Iteration {
                max: max.value,
                exhausted: body.exhausted,
                ..self.emit_iteration(pipeline, Some(index), until, reads)
            },
            steps: self.emit_steps(pipeline, lists, index + 1),
        })
    }

    pub(super) fn emit_budget(&self, budget: &ast::Budget) -> plan::Budget {
        plan::Budget {
            tokens: budget.tokens.as_ref().map(|tokens| tokens.value),
            cost: budget.cost.as_ref().map(|cost| cost.value),
            time_ms: budget.time_ms.as_ref().map(|time| time.value),
            calls: budget.calls.as_ref().map(|calls| calls.value.into()),
            warn: u8::try_from(budget.warn).unwrap_or(100),
            at_most: budget.at_most,
            origin: self.to_origin(budget.span),
        }
    }

    fn emit_need(&self, pipeline: &Pipeline<'_>, need: &Need) -> plan::Need {
        plan::Need {
            step: pipeline.steps[need.step].name().to_owned(),
            when: need.when,
            declared: need.declared,
            effect: if need.handles { plan::Effect::Handles } else { plan::Effect::None },
            origin: self.to_origin(need.span),
        }
    }

    fn emit_body(
        &self,
        pipeline: &Pipeline<'_>,
        lists: &Lists,
        index: usize,
        back: &dyn Fn(&str) -> bool,
    ) -> plan::Body {
        let step = &pipeline.steps[index];
        let prose = |prose: &TemplateText| self.emit_text(prose, back);
        let optional =
            |text: &Option<TemplateText>| text.as_ref().map_or_else(|| text::build_template(Vec::new()), prose);
        let texts = |texts: &[(&ast::Name, TemplateText)]| {
            texts.iter().map(|(name, text)| (name.value.clone(), prose(text))).collect()
        };
        match &step.body {
            Body::Prompt(text) => {
                let agent = step.agent.expect("a model without errors has an agent for each prompt");
                let pack = |&pack: &usize| self.model.spec.packs[pack].name.value.clone();
                plan::Body::Prompt(plan::PromptBody {
                    agent: self.model.agents[agent].ast.name.value.clone(),
                    prompt: prose(text),
                    context: step.context.iter().map(pack).collect(),
                })
            }
            Body::Run(line) => plan::Body::Run(command::emit_command(line)),
            Body::Script(file) => {
                let folder =
                    pipeline.ast.working_dir.as_ref().and_then(|path| self.workspace_path(path)).unwrap_or_default();
                let sources = &self.loader.sources;
                plan::Body::Run(command::script_command(sources.name(*file), sources.text(*file), &folder))
            }
            Body::Value(text) => plan::Body::Value(prose(text)),
            Body::Fields(fields) => plan::Body::Fields(texts(fields)),
            Body::Stop { status, message } => plan::Body::Stop { status: *status, message: optional(message) },
            Body::Call { pipeline: Some(target), args, .. } => plan::Body::Call(plan::Call {
                pipeline: self.model.spec.pipelines[*target].name.value.clone(),
                params: texts(args),
            }),
            Body::Swarm { swarm: Some(target), goal, .. } => plan::Body::Swarm(plan::SwarmCall {
                swarm: self.model.spec.swarms[*target].name.value.clone(),
                goal: goal.as_ref().map(prose),
            }),
            Body::Gate { gate, message } => plan::Body::Gate(self.emit_gate(step, gate, optional(message))),
            Body::Loop { body, until, until_reads } => {
                self.emit_loop(pipeline, lists, index, (body, until, until_reads))
            }
            Body::Call { .. } | Body::Swarm { .. } | Body::Missing => {
                unreachable!("a model without errors has a body for each step")
            }
        }
    }

    fn emit_gate(&self, step: &Step<'_>, gate: &ast::Gate, message: plan::Template) -> plan::Gate {
        let choice = |name: &ast::Name| match name.value.as_str() {
            "fail" => plan::GateDefault::Fail,
            option => plan::GateDefault::Option(option.to_owned()),
        };
        plan::Gate {
            message,
            options: gate.options.iter().map(|option| option.value.clone()).collect(),
            ask: self.emit_asks(step, gate),
            on_timeout: gate
                .on_timeout
                .as_ref()
                .map(|timeout| plan::GateTimeout { then: choice(&timeout.choice), after_ms: timeout.after_ms.value }),
            headless: gate.headless.as_ref().map(choice),
        }
    }
}
