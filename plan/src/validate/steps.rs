//! Pipelines and their steps: names, needs, bodies, counts and times.

use std::collections::BTreeSet;

use super::place::{Place, budget, circle, count};
use super::swarm::edges;
use super::{Checked, MOST_REPAIRS, Piece, Reader, THOUSAND, Validator};
use crate::{Body, Gate, GateDefault, Iteration, OnFailure, Param, Pipeline, Step};

/// How deep loops nest at most.
const DEEPEST: usize = 16;
/// The instances of a pipeline at most.
const MOST_INSTANCES: u32 = 10_000;

impl<'p> Validator<'p> {
    pub(super) fn pipeline(&self, place: &Place<'_>, pipeline: &'p Pipeline) -> Checked {
        place.field("parallelism").count(pipeline.parallelism, 1, MOST_INSTANCES)?;
        count(&place.field("concurrency"), pipeline.concurrency)?;
        self.params(&place.field("params"), &pipeline.params)?;
        if let Some(folder) = &pipeline.working_dir {
            place.field("working_dir").path(folder)?;
        }
        let reader = Reader { pipeline: Some(pipeline), step: None };
        self.variables(&place.field("env"), &pipeline.env, reader)?;
        budget(place, pipeline.budget.as_ref())?;
        // Whatever walks the steps may recurse on what is inside of them from here on.
        nests(place, pipeline)?;
        let all: BTreeSet<&str> = pipeline.all_steps().map(|step| step.name.as_str()).collect();
        let mut seen = BTreeSet::new();
        self.steps(place, pipeline, (&pipeline.steps, &pipeline.iteration), &mut seen)?;
        place.field("result").references("step", pipeline.result.iter(), |name| all.contains(name))?;
        edges(&place.field("edges"), &pipeline.edges, |name| all.contains(name), "step")?;
        self.carried(&place.field("edges"), &pipeline.edges)
    }

    /// A list of steps, and how it repeats; those inside of its loops besides.
    fn steps(
        &self,
        place: &Place<'_>,
        pipeline: &'p Pipeline,
        (steps, iteration): (&'p [Step], &Iteration),
        seen: &mut BTreeSet<&'p str>,
    ) -> Checked {
        let list = place.field("steps");
        list.hold(!steps.is_empty(), || "there is no step".to_owned())?;
        for (index, step) in steps.iter().enumerate() {
            let place = list.index(index);
            place.field("name").name(&step.name)?;
            place.field("name").hold(seen.insert(&step.name), || format!("step `{}` stands twice", step.name))?;
        }
        let names: BTreeSet<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        for (index, step) in steps.iter().enumerate() {
            let place = list.index(index);
            let mut needed = BTreeSet::new();
            for (index, need) in step.needs.iter().enumerate() {
                let place = place.field("needs");
                let place = place.index(index);
                let place = place.field("step");
                place.hold(names.contains(need.step.as_str()), || {
                    format!(
                        "`{}` of pipeline `{}` names step `{}`, which is not in it",
                        step.name, pipeline.name, need.step
                    )
                })?;
                place.hold(needed.insert(&need.step), || format!("names step `{}` twice", need.step))?;
            }
            self.step(&place, Reader { pipeline: Some(pipeline), step: Some(step) }, step)?;
            if let Body::Loop(body) = &step.body {
                let place = place.field("body");
                self.steps(&place.field("loop"), pipeline, (&body.steps, &body.iteration), seen)?;
            }
        }
        let needs = |step: &Step| step.needs.iter().map(|need| need.step.clone()).collect();
        if let Some(name) = circle(steps.iter().map(|step| (step.name.as_str(), needs(step)))) {
            return list.wrong(format!("step `{name}` of pipeline `{}` waits for itself in the end", pipeline.name));
        }
        let place = place.field("iteration");
        place.field("max").count(iteration.max, 1, u32::MAX)?;
        place.field("handles").references("step", iteration.handles.iter(), |name| names.contains(name))?;
        for (index, until) in iteration.until.iter().enumerate() {
            self.piece(&place.field("until").index(index), Piece::Expression(until))?;
        }
        Ok(())
    }

    fn step(&self, place: &Place<'_>, reader: Reader<'p>, step: &'p Step) -> Checked {
        let plan = self.plan;
        self.body(&place.field("body"), reader, step)?;
        if let OnFailure::Fix(agent) = &step.on_failure {
            self.named(&place.field("on_failure").field("fix"), step, agent)?;
        }
        if let Some(when) = &step.when {
            self.piece(&place.field("when"), Piece::Expression(when))?;
        }
        if let Some(each) = &step.for_each {
            let place = place.field("for_each");
            let repeats = !matches!(step.body, Body::Loop(_) | Body::Gate(_) | Body::Stop { .. });
            place.hold(repeats, || format!("`{}` is a loop, a gate or a stop, which have no items", step.name))?;
            count(&place.field("parallel"), each.parallel)?;
            self.piece(&place.field("list"), Piece::Expression(&each.list))?;
        }
        for name in step.session.iter() {
            place.field("session").hold(!name.is_empty(), || "an empty name".to_owned())?;
        }
        for (port, source) in &step.inputs {
            // An input may name a step that this pipeline leaves out: its text is the placeholder then.
            place.field("inputs").field(port).name(source)?;
        }
        place.field("output").field("max_bytes").amount(Some(step.output.max_bytes), 0)?;
        place.field("output").field("repair").count(step.output.repair, 0, MOST_REPAIRS)?;
        if let Some(schema) = &step.output.schema {
            self.schema(&place.field("output").field("schema"), schema)?;
            if let (Some(default), None) = (&step.output.default, &step.for_each) {
                self.piece(&place.field("output").field("default"), Piece::Literal(default, schema))?;
            }
        }
        place.field("retry").field("times").count(step.retry.times, 0, THOUSAND)?;
        place.field("retry").field("backoff_ms").amount(Some(step.retry.backoff_ms), 0)?;
        place.field("retry").field("max_backoff_ms").amount(Some(step.retry.max_backoff_ms), 0)?;
        place.field("timeout_ms").amount(step.timeout_ms, 1)?;
        place.field("idle_ms").amount(step.idle_ms, 1)?;
        place.field("grace_ms").amount(Some(step.grace_ms), 0)?;
        place.field("stall").count(step.stall, 0, THOUSAND)?;
        count(&place.field("concurrency"), step.concurrency)?;
        for (index, check) in step.checks.iter().enumerate() {
            place.field("checks").index(index).command(check)?;
        }
        for (field, globs) in [("reads", &step.reads), ("writes", &step.writes)] {
            for (index, glob) in globs.iter().enumerate() {
                place.field(field).index(index).path(glob)?;
            }
        }
        if let Some(name) = &step.worktree {
            place.field("worktree").name(name)?;
        }
        if let Some(files) = &step.files {
            self.files(&place.field("files"), files, reader)?;
        }
        if let Some(stdin) = &step.stdin {
            self.template(&place.field("stdin"), stdin, reader)?;
        }
        budget(place, step.budget.as_ref())?;
        self.variables(&place.field("env"), &step.env, reader)?;
        let packs = |name: &str| plan.packs.iter().any(|pack| pack.name == name);
        match &step.body {
            Body::Prompt(body) => place.field("body").field("prompt").field("context").references(
                "context pack",
                body.context.iter(),
                packs,
            ),
            _ => Ok(()),
        }
    }

    fn named(&self, place: &Place<'_>, step: &Step, agent: &str) -> Checked {
        place.hold(self.plan.agent(agent).is_some(), || {
            format!("step `{}` uses agent `{agent}`, which is not in it", step.name)
        })
    }

    fn body(&self, place: &Place<'_>, reader: Reader<'p>, step: &'p Step) -> Checked {
        let plan = self.plan;
        match &step.body {
            Body::Prompt(body) => {
                let place = place.field("prompt");
                self.named(&place.field("agent"), step, &body.agent)?;
                self.template(&place.field("prompt"), &body.prompt, reader)
            }
            Body::Run(command) => place.field("run").command(command),
            Body::Value(template) => self.template(&place.field("value"), template, reader),
            Body::Fields(fields) => {
                let place = place.field("fields");
                fields.iter().try_for_each(|(name, value)| self.template(&place.field(name), value, reader))
            }
            Body::Stop { message, .. } => self.template(&place.field("stop").field("message"), message, reader),
            Body::Call(call) => {
                let place = place.field("call");
                let Some(called) = plan.pipeline(&call.pipeline) else {
                    let problem =
                        format!("step `{}` calls pipeline `{}`, which is not in it", step.name, call.pipeline);
                    return place.field("pipeline").wrong(problem);
                };
                let place = place.field("params");
                for (name, value) in &call.params {
                    let known = called.params.iter().any(|param| param.name == *name);
                    place
                        .field(name)
                        .hold(known, || format!("pipeline `{}` has no parameter `{name}`", call.pipeline))?;
                    self.template(&place.field(name), value, reader)?;
                }
                let given = |param: &&Param| {
                    !param.optional && param.default.is_none() && !call.params.contains_key(&param.name)
                };
                called.params.iter().find(given).map_or(Ok(()), |param| {
                    place.wrong(format!("parameter `{}` of pipeline `{}` has no value", param.name, call.pipeline))
                })
            }
            Body::Swarm(call) => {
                let place = place.field("swarm");
                place.field("swarm").hold(plan.swarm(&call.swarm).is_some(), || {
                    format!("step `{}` starts swarm `{}`, which is not in it", step.name, call.swarm)
                })?;
                call.goal.as_ref().map_or(Ok(()), |goal| self.template(&place.field("goal"), goal, reader))
            }
            Body::Gate(gate) => {
                self.template(&place.field("gate").field("message"), &gate.message, reader)?;
                self.gate(&place.field("gate"), step, gate)
            }
            Body::Loop(_) => Ok(()),
        }
    }

    fn gate(&self, place: &Place<'_>, step: &Step, gate: &Gate) -> Checked {
        let options = place.field("options");
        options.hold(!gate.options.is_empty(), || format!("gate `{}` has no options", step.name))?;
        let mut seen = BTreeSet::new();
        for (index, option) in gate.options.iter().enumerate() {
            let place = options.index(index);
            place.hold(!option.is_empty(), || "an option without a name".to_owned())?;
            place.hold(seen.insert(option), || format!("option `{option}` stands twice"))?;
        }
        let timeout = gate.on_timeout.as_ref();
        place.field("on_timeout").field("after_ms").amount(timeout.map(|timeout| timeout.after_ms), 0)?;
        for default in timeout.map(|timeout| &timeout.then).into_iter().chain(&gate.headless) {
            if let GateDefault::Option(option) = default {
                place
                    .hold(gate.options.contains(option), || format!("gate `{}` has no option `{option}`", step.name))?;
            }
        }
        let mut asked = BTreeSet::from(["choice"]);
        for (index, ask) in gate.ask.iter().enumerate() {
            let place = place.field("ask");
            let place = place.index(index);
            place.field("name").hold(asked.insert(&ask.name), || format!("field `{}` stands twice", ask.name))?;
            self.schema(&place.field("schema"), &ask.schema)?;
        }
        Ok(())
    }
}

/// Whether the loops of a pipeline nest no deeper than they may, without recursing on them.
fn nests(place: &Place<'_>, pipeline: &Pipeline) -> Checked {
    let mut open: Vec<(&Step, usize)> = pipeline.steps.iter().map(|step| (step, 1)).collect();
    while let Some((step, depth)) = open.pop() {
        place.hold(depth <= DEEPEST + 1, || format!("step `{}` stands in more than {DEEPEST} loops", step.name))?;
        open.extend(step.body.steps().iter().map(|inner| (inner, depth + 1)));
    }
    Ok(())
}
