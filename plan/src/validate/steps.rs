//! Pipelines and their steps: names, needs, bodies, counts and times.

use std::collections::BTreeSet;

use super::place::{Place, check_budget, check_optional_count, find_cycle};
use super::swarm::check_edges;
use super::{Checked, MOST_REPAIRS, Piece, Reader, THOUSAND, Validator};
use crate::{Body, Gate, GateDefault, Iteration, OnFailure, Param, Pipeline, Step};

/// How deep loops nest at most.
const DEEPEST: usize = 16;
/// The instances of a pipeline at most.
const MOST_INSTANCES: u32 = 10_000;

impl<'p> Validator<'p> {
    pub(super) fn check_pipeline(&self, place: &Place<'_>, pipeline: &'p Pipeline) -> Checked {
        place.field("parallelism").check_count(pipeline.parallelism, 1, MOST_INSTANCES)?;
        check_optional_count(&place.field("concurrency"), pipeline.concurrency)?;
        self.check_params(&place.field("params"), &pipeline.params)?;
        if let Some(folder) = &pipeline.working_dir {
            place.field("working_dir").check_path(folder)?;
        }
        let reader = Reader { pipeline: Some(pipeline), step: None };
        self.check_variables(&place.field("env"), &pipeline.env, reader)?;
        check_budget(place, pipeline.budget.as_ref())?;
        // Whatever walks the steps may recurse on what is inside of them from here on.
        check_nesting(place, pipeline)?;
        let all: BTreeSet<&str> = pipeline.all_steps().map(|step| step.name.as_str()).collect();
        let mut seen = BTreeSet::new();
        self.check_steps(place, pipeline, (&pipeline.steps, &pipeline.iteration), &mut seen)?;
        place.field("result").check_references("step", pipeline.result.iter(), |name| all.contains(name))?;
        check_edges(&place.field("edges"), &pipeline.edges, |name| all.contains(name), "step")?;
        self.check_edge_schemas(&place.field("edges"), &pipeline.edges)
    }

    /// A list of steps, and how it repeats; those inside of its loops besides.
    fn check_steps(
        &self,
        place: &Place<'_>,
        pipeline: &'p Pipeline,
        (steps, iteration): (&'p [Step], &Iteration),
        seen: &mut BTreeSet<&'p str>,
    ) -> Checked {
        let list = place.field("steps");
        list.ensure_holds(!steps.is_empty(), || "there is no step".to_owned())?;
        for (index, step) in steps.iter().enumerate() {
            let place = list.index(index);
            place.field("name").check_name(&step.name)?;
            place
                .field("name")
                .ensure_holds(seen.insert(&step.name), || format!("step `{}` is declared twice", step.name))?;
        }
        let names: BTreeSet<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        for (index, step) in steps.iter().enumerate() {
            let place = list.index(index);
            let mut needed = BTreeSet::new();
            for (index, need) in step.needs.iter().enumerate() {
                let place = place.field("needs");
                let place = place.index(index);
                let place = place.field("step");
                place.ensure_holds(names.contains(need.step.as_str()), || {
                    format!(
                        "`{}` of pipeline `{}` names step `{}`, which the pipeline does not declare",
                        step.name, pipeline.name, need.step
                    )
                })?;
                place.ensure_holds(needed.insert(&need.step), || format!("names step `{}` twice", need.step))?;
            }
            self.check_step(&place, Reader { pipeline: Some(pipeline), step: Some(step) }, step)?;
            if let Body::Loop(body) = &step.body {
                let place = place.field("body");
                self.check_steps(&place.field("loop"), pipeline, (&body.steps, &body.iteration), seen)?;
            }
        }
        let needs = |step: &Step| step.needs.iter().map(|need| need.step.clone()).collect();
        if let Some(name) = find_cycle(steps.iter().map(|step| (step.name.as_str(), needs(step)))) {
            return list.fail_with(format!("step `{name}` of pipeline `{}` waits for itself", pipeline.name));
        }
        let place = place.field("iteration");
        place.field("max").check_count(iteration.max, 1, u32::MAX)?;
        place.field("handles").check_references("step", iteration.handles.iter(), |name| names.contains(name))?;
        for (index, until) in iteration.until.iter().enumerate() {
            self.check_piece(&place.field("until").index(index), Piece::Expression(until))?;
        }
        Ok(())
    }

    fn check_step(&self, place: &Place<'_>, reader: Reader<'p>, step: &'p Step) -> Checked {
        let plan = self.plan;
        self.check_body(&place.field("body"), reader, step)?;
        if let OnFailure::Fix(agent) = &step.on_failure {
            self.check_agent_name(&place.field("on_failure").field("fix"), step, agent)?;
        }
        if let Some(when) = &step.when {
            self.check_piece(&place.field("when"), Piece::Expression(when))?;
        }
        if let Some(each) = &step.for_each {
            let place = place.field("for_each");
            place.ensure_holds(step.body.kind().can_repeat(), || {
                format!("`{}` is a loop, a gate or a stop, which cannot use `for-each`", step.name)
            })?;
            check_optional_count(&place.field("parallel"), each.parallel)?;
            if let Some(record) = &each.record {
                self.check_schema(&place.field("record"), record)?;
            }
            self.check_piece(&place.field("list"), Piece::Expression(&each.list))?;
        }
        for name in step.session.iter() {
            place.field("session").ensure_holds(!name.is_empty(), || "an empty name".to_owned())?;
        }
        for (port, source) in &step.inputs {
            // An input may name a step that this pipeline leaves out: its text is the placeholder then.
            place.field("inputs").field(port).check_name(source)?;
        }
        place.field("output").field("max_bytes").check_amount(Some(step.output.max_bytes), 0)?;
        place.field("output").field("repair").check_count(step.output.repair, 0, MOST_REPAIRS)?;
        if let Some(schema) = &step.output.schema {
            self.check_schema(&place.field("output").field("schema"), schema)?;
            if let (Some(default), None) = (&step.output.default, &step.for_each) {
                self.check_piece(&place.field("output").field("default"), Piece::Literal(default, schema))?;
            }
        }
        place.field("retry").field("times").check_count(step.retry.times, 0, THOUSAND)?;
        place.field("retry").field("backoff_ms").check_amount(Some(step.retry.backoff_ms), 0)?;
        place.field("retry").field("max_backoff_ms").check_amount(Some(step.retry.max_backoff_ms), 0)?;
        place.field("timeout_ms").check_amount(step.timeout_ms, 1)?;
        place.field("idle_ms").check_amount(step.idle_ms, 1)?;
        place.field("grace_ms").check_amount(Some(step.grace_ms), 0)?;
        place.field("stall").check_count(step.stall, 0, THOUSAND)?;
        check_optional_count(&place.field("concurrency"), step.concurrency)?;
        for (index, check) in step.checks.iter().enumerate() {
            place.field("checks").index(index).check_command(check)?;
        }
        for (field, globs) in [("reads", &step.reads), ("writes", &step.writes)] {
            for (index, glob) in globs.iter().enumerate() {
                place.field(field).index(index).check_path(glob)?;
            }
        }
        if let Some(name) = &step.worktree {
            place.field("worktree").check_name(name)?;
        }
        place.check_pool(step.pool.as_ref())?;
        if let Some(files) = &step.files {
            self.check_files(&place.field("files"), files, reader)?;
        }
        if let Some(stdin) = &step.stdin {
            self.check_template(&place.field("stdin"), stdin, reader)?;
        }
        check_budget(place, step.budget.as_ref())?;
        self.check_variables(&place.field("env"), &step.env, reader)?;
        let packs = |name: &str| plan.packs.iter().any(|pack| pack.name == name);
        match &step.body {
            Body::Prompt(body) => place.field("body").field("prompt").field("context").check_references(
                "context pack",
                body.context.iter(),
                packs,
            ),
            _ => Ok(()),
        }
    }

    fn check_agent_name(&self, place: &Place<'_>, step: &Step, agent: &str) -> Checked {
        place.ensure_holds(self.plan.agent(agent).is_some(), || {
            format!("step `{}` uses agent `{agent}`, which the plan does not declare", step.name)
        })
    }

    fn check_body(&self, place: &Place<'_>, reader: Reader<'p>, step: &'p Step) -> Checked {
        let plan = self.plan;
        match &step.body {
            Body::Prompt(body) => {
                let place = place.field("prompt");
                self.check_agent_name(&place.field("agent"), step, &body.agent)?;
                self.check_template(&place.field("prompt"), &body.prompt, reader)
            }
            Body::Run(command) => place.field("run").check_command(command),
            Body::Value(template) => self.check_template(&place.field("value"), template, reader),
            Body::Fields(fields) => {
                let place = place.field("fields");
                fields.iter().try_for_each(|(name, value)| self.check_template(&place.field(name), value, reader))
            }
            Body::Stop { message, .. } => self.check_template(&place.field("stop").field("message"), message, reader),
            Body::Call(call) => {
                let place = place.field("call");
                let Some(called) = plan.pipeline(&call.pipeline) else {
                    let problem = format!(
                        "step `{}` calls pipeline `{}`, which the plan does not declare",
                        step.name, call.pipeline
                    );
                    return place.field("pipeline").fail_with(problem);
                };
                let place = place.field("params");
                for (name, value) in &call.params {
                    let known = called.params.iter().any(|param| param.name == *name);
                    place
                        .field(name)
                        .ensure_holds(known, || format!("pipeline `{}` has no parameter `{name}`", call.pipeline))?;
                    self.check_template(&place.field(name), value, reader)?;
                }
                let given = |param: &&Param| {
                    !param.optional && param.default.is_none() && !call.params.contains_key(&param.name)
                };
                called.params.iter().find(given).map_or(Ok(()), |param| {
                    place.fail_with(format!("parameter `{}` of pipeline `{}` has no value", param.name, call.pipeline))
                })
            }
            Body::Swarm(call) => {
                let place = place.field("swarm");
                place.field("swarm").ensure_holds(plan.swarm(&call.swarm).is_some(), || {
                    format!("step `{}` starts swarm `{}`, which the plan does not declare", step.name, call.swarm)
                })?;
                call.goal.as_ref().map_or(Ok(()), |goal| self.check_template(&place.field("goal"), goal, reader))
            }
            Body::Gate(gate) => {
                self.check_template(&place.field("gate").field("message"), &gate.message, reader)?;
                self.check_gate(&place.field("gate"), step, gate)
            }
            // Its steps are checked with those around it.
            Body::Loop(_) => Ok(()),
        }
    }

    fn check_gate(&self, place: &Place<'_>, step: &Step, gate: &Gate) -> Checked {
        let options = place.field("options");
        options.ensure_holds(!gate.options.is_empty(), || format!("gate `{}` has no options", step.name))?;
        let mut seen = BTreeSet::new();
        for (index, option) in gate.options.iter().enumerate() {
            let place = options.index(index);
            place.ensure_holds(!option.is_empty(), || "an option without a name".to_owned())?;
            place.ensure_holds(seen.insert(option), || format!("option `{option}` is declared twice"))?;
        }
        let timeout = gate.on_timeout.as_ref();
        place.field("on_timeout").field("after_ms").check_amount(timeout.map(|timeout| timeout.after_ms), 0)?;
        for default in timeout.map(|timeout| &timeout.then).into_iter().chain(&gate.headless) {
            if let GateDefault::Option(option) = default {
                place.ensure_holds(gate.options.contains(option), || {
                    format!("gate `{}` has no option `{option}`", step.name)
                })?;
            }
        }
        // The word of the answer stands beside the fields, under this name.
        let mut asked = BTreeSet::from(["choice"]);
        for (index, ask) in gate.ask.iter().enumerate() {
            let place = place.field("ask");
            let place = place.index(index);
            place
                .field("name")
                .ensure_holds(asked.insert(&ask.name), || format!("field `{}` is declared twice", ask.name))?;
            self.check_schema(&place.field("schema"), &ask.schema)?;
        }
        Ok(())
    }
}

/// Whether the loops of a pipeline nest no deeper than they may, without recursing on them.
fn check_nesting(place: &Place<'_>, pipeline: &Pipeline) -> Checked {
    let mut open: Vec<(&Step, usize)> = pipeline.steps.iter().map(|step| (step, 1)).collect();
    while let Some((step, depth)) = open.pop() {
        // Steps outside of all loops have depth 1.
        place.ensure_holds(depth <= DEEPEST + 1, || {
            format!("step `{}` is nested in more than {DEEPEST} loops", step.name)
        })?;
        open.extend(step.body.loop_steps().iter().map(|inner| (inner, depth + 1)));
    }
    Ok(())
}
