//! The JSON form of a plan: written with a version, read with every check that the types cannot express.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::Schema;
use serde::Deserialize;

use crate::{Body, GateDefault, OnFailure, PackRule, Pipeline, Plan, Step, Swarm};

/// The version of the format that this build writes, and the newest it reads.
pub const VERSION: u32 = 2;

/// The longest name of a step or pipeline, in bytes: files are named after them, and events hold two.
pub const LONGEST_NAME: usize = 100;

/// The plan as JSON: two-space indentation, one final newline, the same bytes for the same plan.
pub fn write(plan: &Plan) -> String {
    let mut text = serde_json::to_string_pretty(plan).expect("a plan has string keys only");
    text.push('\n');
    text
}

/// Reads a plan.
///
/// # Errors
/// Says what is wrong and where: not JSON, a newer version, a field that does not fit, a name that nothing declares.
pub fn read(text: &str) -> Result<Plan, ReadError> {
    #[derive(Deserialize)]
    struct Head {
        version: u32,
    }
    let head: Head = serde_json::from_str(text).map_err(ReadError::Malformed)?;
    if head.version > VERSION {
        return Err(ReadError::Newer { found: head.version });
    }
    let plan: Plan = serde_json::from_str(text).map_err(ReadError::Malformed)?;
    validate(&plan)?;
    Ok(plan)
}

/// The JSON Schema (draft 2020-12) that every written plan satisfies.
pub fn schema() -> Schema {
    schemars::schema_for!(Plan)
}

/// Why a text is not a plan that this build can run.
#[derive(Debug)]
pub enum ReadError {
    /// Not JSON, or not of a plan's shape.
    Malformed(serde_json::Error),
    /// Written by a newer swarmc.
    Newer {
        /// The version found.
        found: u32,
    },
    /// A name that nothing in the plan declares, or one declared twice.
    Inconsistent(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Malformed(error) => write!(f, "the plan is malformed: {error}"),
            ReadError::Newer { found } => {
                write!(f, "the plan has version {found}, and this swarmc reads up to {VERSION}: update swarmc")
            }
            ReadError::Inconsistent(problem) => write!(f, "the plan is inconsistent: {problem}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Malformed(error) => Some(error),
            ReadError::Newer { .. } | ReadError::Inconsistent(_) => None,
        }
    }
}

fn validate(plan: &Plan) -> Result<(), ReadError> {
    unique("pipeline", plan.pipelines.iter().map(|pipeline| &pipeline.name))?;
    short("pipeline", plan.pipelines.iter().map(|pipeline| &pipeline.name))?;
    // A swarm that runs by itself is a pipeline too ([`Plan::with_swarms`]).
    let alone = |pipeline: &Pipeline| plan.swarm(&pipeline.name).map(crate::swarm::alone).as_ref() == Some(pipeline);
    let pipelines = plan.pipelines.iter().filter(|pipeline| !alone(pipeline)).map(|pipeline| &pipeline.name);
    unique("pipeline or swarm", pipelines.chain(plan.swarms.iter().map(|swarm| &swarm.name)))?;
    short("swarm", plan.swarms.iter().map(|swarm| &swarm.name))?;
    unique("context pack", plan.packs.iter().map(|pack| &pack.name))?;
    unique("agent", plan.agents.iter().map(|agent| &agent.name))?;
    unique("provider", plan.providers.iter().map(|provider| &provider.name))?;
    if plan.pipeline(&plan.default).is_none() && plan.swarm(&plan.default).is_none() {
        return inconsistent(format!("the default pipeline `{}` is not in it", plan.default));
    }
    for agent in &plan.agents {
        if plan.provider(&agent.provider).is_none() {
            return inconsistent(format!(
                "agent `{}` uses provider `{}`, which is not in it",
                agent.name, agent.provider
            ));
        }
        if let Some(fallback) = agent.fallback.as_ref().filter(|name| plan.agent(name).is_none()) {
            return inconsistent(format!(
                "agent `{}` falls back on agent `{fallback}`, which is not in it",
                agent.name
            ));
        }
    }
    plan.pipelines.iter().try_for_each(|pipeline| validate_pipeline(plan, pipeline))?;
    plan.swarms.iter().try_for_each(|swarm| validate_swarm(plan, swarm))?;
    calls_end(plan)?;
    merges_end(plan)
}

/// Whoever a swarm names is there.
fn validate_swarm(plan: &Plan, swarm: &Swarm) -> Result<(), ReadError> {
    let lead = swarm.lead.iter().map(|lead| &lead.agent);
    let members = swarm.members.iter().map(|member| &member.agent);
    let managers = swarm.worktrees.iter().filter_map(|tree| tree.agent.as_ref());
    let last = swarm.synthesize.iter().map(|synthesize| &synthesize.agent);
    if let Some(name) = lead.chain(members).chain(managers).chain(last).find(|name| plan.agent(name).is_none()) {
        return inconsistent(format!("swarm `{}` uses agent `{name}`, which is not in it", swarm.name));
    }
    let provider = swarm.synthesize.iter().filter_map(|synthesize| synthesize.provider.as_ref());
    if let Some(name) = provider.into_iter().find(|name| plan.provider(name).is_none()) {
        return inconsistent(format!("swarm `{}` uses provider `{name}`, which is not in it", swarm.name));
    }
    let named = swarm.members.iter().filter_map(|member| member.name.as_ref());
    let everyone: BTreeSet<&String> = named.chain(swarm.lead.iter().map(|lead| &lead.name)).collect();
    let of_edges = swarm.edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
    let of_groups = swarm.channels.iter().flat_map(|channel| &channel.members);
    let of_trees = swarm.worktrees.iter().flat_map(|tree| &tree.members);
    let owners = swarm.items.iter().filter_map(|item| item.owner.as_ref());
    if let Some(name) = of_edges.chain(of_groups).chain(of_trees).chain(owners).find(|name| !everyone.contains(name)) {
        return inconsistent(format!("swarm `{}` names member `{name}`, which is not in it", swarm.name));
    }
    let index: BTreeMap<&str, usize> =
        (0..).zip(&swarm.items).map(|(index, item)| (item.name.as_str(), index)).collect();
    let mut needs = Vec::with_capacity(swarm.items.len());
    for item in &swarm.items {
        let found: Option<Vec<usize>> = item.depends_on.iter().map(|name| index.get(name.as_str()).copied()).collect();
        match found {
            Some(found) => needs.push(found),
            None => return inconsistent(format!("item `{}` depends on one that is not in the plan", item.name)),
        }
    }
    match settles(&needs) {
        true => Ok(()),
        false => inconsistent(format!("items of swarm `{}` wait for each other", swarm.name)),
    }
}

/// Packs that take each other in could never be built, and what they name is there.
fn merges_end(plan: &Plan) -> Result<(), ReadError> {
    let index: BTreeMap<&str, usize> =
        (0..).zip(&plan.packs).map(|(index, pack)| (pack.name.as_str(), index)).collect();
    let mut needs = Vec::with_capacity(plan.packs.len());
    for pack in &plan.packs {
        let mut merged = Vec::new();
        for rule in &pack.rules {
            if let PackRule::Files { agent: Some(agent), .. } = rule
                && plan.agent(agent).is_none()
            {
                return inconsistent(format!("pack `{}` uses agent `{agent}`, which is not in it", pack.name));
            }
            let PackRule::Merge(name) = rule else { continue };
            match index.get(name.as_str()) {
                Some(&found) => merged.push(found),
                None => {
                    return inconsistent(format!("pack `{}` takes in pack `{name}`, which is not in it", pack.name));
                }
            }
        }
        needs.push(merged);
    }
    match settles(&needs) {
        true => Ok(()),
        false => inconsistent("context packs take each other in".to_owned()),
    }
}

fn validate_pipeline(plan: &Plan, pipeline: &Pipeline) -> Result<(), ReadError> {
    unique("step", pipeline.all_steps().map(|step| &step.name))?;
    short("step", pipeline.all_steps().map(|step| &step.name))?;
    let all: BTreeSet<&str> = pipeline.all_steps().map(|step| step.name.as_str()).collect();
    let known = |step: &str, from: &str| known(&all, step, from, pipeline);
    if pipeline.parallelism == 0 || pipeline.concurrency == Some(0) {
        return inconsistent(format!("pipeline `{}` has a count of 0", pipeline.name));
    }
    for step in pipeline.all_steps() {
        let zero = [step.concurrency, step.for_each.as_ref().and_then(|each| each.parallel)];
        if zero.contains(&Some(0)) {
            return inconsistent(format!("step `{}` has a count of 0", step.name));
        }
        // An input may name a step that this pipeline leaves out: its text is the placeholder then.
        validate_body(plan, step)?;
    }
    pipeline.result.iter().try_for_each(|step| known(step, "result"))?;
    // A loop is a list of steps of its own: what its steps need stands in it too.
    let mut lists = vec![(pipeline.name.as_str(), &pipeline.iteration, pipeline.steps.as_slice())];
    while let Some((name, iteration, steps)) = lists.pop() {
        if iteration.max == 0 {
            return inconsistent(format!("`{name}` has a count of 0"));
        }
        let names: BTreeSet<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        for (step, need) in steps.iter().flat_map(|step| step.needs.iter().map(move |need| (step, need))) {
            self::known(&names, &need.step, &step.name, pipeline)?;
        }
        iteration.handles.iter().try_for_each(|step| self::known(&names, step, "until", pipeline))?;
        acyclic(steps, pipeline)?;
        lists.extend(steps.iter().filter_map(|step| match &step.body {
            Body::Loop(body) => Some((step.name.as_str(), &body.iteration, body.steps.as_slice())),
            _ => None,
        }));
    }
    Ok(())
}

fn known(names: &BTreeSet<&str>, step: &str, from: &str, pipeline: &Pipeline) -> Result<(), ReadError> {
    match names.contains(step) {
        true => Ok(()),
        false => {
            inconsistent(format!("`{from}` of pipeline `{}` names step `{step}`, which is not in it", pipeline.name))
        }
    }
}

fn validate_body(plan: &Plan, step: &Step) -> Result<(), ReadError> {
    let agent = |name: &str| match plan.agent(name) {
        Some(_) => Ok(()),
        None => inconsistent(format!("step `{}` uses agent `{name}`, which is not in it", step.name)),
    };
    if let OnFailure::Fix(name) = &step.on_failure {
        agent(name)?;
    }
    match &step.body {
        Body::Prompt(body) => {
            agent(&body.agent)?;
            let lacking = body.context.iter().find(|pack| plan.packs.iter().all(|known| known.name != **pack));
            match lacking {
                Some(pack) => {
                    inconsistent(format!("step `{}` reads context pack `{pack}`, which is not in it", step.name))
                }
                None => Ok(()),
            }
        }
        Body::Call(call) if plan.pipeline(&call.pipeline).is_none() => {
            inconsistent(format!("step `{}` calls pipeline `{}`, which is not in it", step.name, call.pipeline))
        }
        Body::Swarm(call) if plan.swarm(&call.swarm).is_none() => {
            inconsistent(format!("step `{}` starts swarm `{}`, which is not in it", step.name, call.swarm))
        }
        Body::Gate(gate) => {
            let defaults = [gate.on_timeout.as_ref().map(|timeout| &timeout.then), gate.headless.as_ref()];
            let stranger = defaults.into_iter().flatten().find_map(|default| match default {
                GateDefault::Option(option) => Some(option).filter(|option| !gate.options.contains(option)),
                GateDefault::Fail => None,
            });
            match stranger {
                _ if gate.options.is_empty() => inconsistent(format!("gate `{}` has no options", step.name)),
                Some(option) => inconsistent(format!("gate `{}` has no option `{option}`", step.name)),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// A pipeline that calls itself, directly or through others, could never end.
fn calls_end(plan: &Plan) -> Result<(), ReadError> {
    let index: BTreeMap<&str, usize> =
        (0..).zip(&plan.pipelines).map(|(index, it)| (it.name.as_str(), index)).collect();
    let called = |pipeline: &Pipeline| {
        let calls = pipeline.all_steps().filter_map(|step| match &step.body {
            Body::Call(call) => index.get(call.pipeline.as_str()).copied(),
            _ => None,
        });
        calls.collect()
    };
    let needs: Vec<Vec<usize>> = plan.pipelines.iter().map(called).collect();
    match settles(&needs) {
        true => Ok(()),
        false => inconsistent("pipelines call each other in a circle".to_owned()),
    }
}

fn acyclic(steps: &[Step], pipeline: &Pipeline) -> Result<(), ReadError> {
    let index: BTreeMap<&str, usize> = (0..).zip(steps).map(|(index, step)| (step.name.as_str(), index)).collect();
    let needs = |step: &Step| step.needs.iter().map(|need| index[need.step.as_str()]).collect();
    let needs: Vec<Vec<usize>> = steps.iter().map(needs).collect();
    match settles(&needs) {
        true => Ok(()),
        false => inconsistent(format!("steps of pipeline `{}` wait for each other", pipeline.name)),
    }
}

/// Kahn's algorithm: whether everything is reached when each waits for those it needs.
fn settles(needs: &[Vec<usize>]) -> bool {
    let mut dependants = vec![Vec::new(); needs.len()];
    let mut open: Vec<usize> = needs.iter().map(Vec::len).collect();
    for (position, needs) in needs.iter().enumerate() {
        needs.iter().for_each(|&need| dependants[need].push(position));
    }
    let mut ready: Vec<usize> = (0..open.len()).filter(|&position| open[position] == 0).collect();
    let mut settled = 0;
    while let Some(position) = ready.pop() {
        settled += 1;
        for &dependant in &dependants[position] {
            open[dependant] -= 1;
            if open[dependant] == 0 {
                ready.push(dependant);
            }
        }
    }
    settled == needs.len()
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), ReadError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return inconsistent(format!("{what} `{name}` stands twice"));
        }
    }
    Ok(())
}

fn short<'a>(what: &str, mut names: impl Iterator<Item = &'a String>) -> Result<(), ReadError> {
    match names.find(|name| name.len() > LONGEST_NAME) {
        Some(name) => {
            let beginning: String = name.chars().take(20).collect();
            inconsistent(format!("the name of {what} `{beginning}…` is longer than {LONGEST_NAME} bytes"))
        }
        None => Ok(()),
    }
}

fn inconsistent<T>(problem: String) -> Result<T, ReadError> {
    Err(ReadError::Inconsistent(problem))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A plan of two steps, the second needing the first.
    fn plan() -> Value {
        let origin = json!({ "file": "flow.kdl", "line": 1, "column": 1 });
        let step = |name: &str, needs: Value| {
            json!({
                "name": name, "needs": needs, "body": { "run": { "argv": ["echo", name] } },
                "output": { "max_bytes": 102_400 }, "grace_ms": 30_000, "origin": origin,
                "concurrency": 1, "retry": { "times": 0, "backoff_ms": 1000, "max_backoff_ms": 300_000 },
            })
        };
        let need = json!([{ "step": "draft", "when": "success", "origin": origin }]);
        json!({
            "version": VERSION, "workflow": "flow", "default": "main", "sources": [],
            "pipelines": [{
                "name": "main", "parallelism": 1, "result": ["review"], "origin": origin,
                "iteration": { "max": 1, "on_failure": "stop", "exhausted": "fail" },
                "steps": [step("draft", json!([])), step("review", need)],
            }],
        })
    }

    /// What reading says of the plan with `value` at `place`.
    fn refused(place: &str, value: Value) -> String {
        let mut plan = plan();
        *plan.pointer_mut(place).expect("the plan has this place") = value;
        read(&plan.to_string()).expect_err("the plan is wrong").to_string()
    }

    #[test]
    fn what_is_written_is_read_and_written_alike() {
        let first = write(&read(&plan().to_string()).unwrap());
        assert_eq!(write(&read(&first).unwrap()), first);
    }

    #[test]
    fn a_newer_plan_is_refused_whatever_else_is_in_it() {
        let error = read(r#"{ "version": 3, "shape": "unknown" }"#).unwrap_err().to_string();
        assert_eq!(error, "the plan has version 3, and this swarmc reads up to 2: update swarmc");
    }

    #[test]
    fn the_steps_of_a_loop_are_a_list_of_their_own() {
        let body = |needed: &str| {
            let mut inner = plan().pointer("/pipelines/0/steps/1").cloned().unwrap();
            inner["name"] = json!("inner");
            inner["needs"][0]["step"] = json!(needed);
            let iteration = json!({ "max": 3, "on_failure": "stop", "exhausted": "fail" });
            json!({ "loop": { "iteration": iteration, "steps": [inner] } })
        };
        assert!(refused("/pipelines/0/steps/1/body", body("draft")).contains("names step `draft`"));
        assert!(refused("/pipelines/0/steps/1/body", body("inner")).contains("wait for each other"));
        let mut twice = body("inner");
        twice["loop"]["steps"][0]["name"] = json!("draft");
        assert!(refused("/pipelines/0/steps/1/body", twice).contains("step `draft` stands twice"));
    }

    #[test]
    fn names_must_hold_and_waiting_must_end() {
        let need = |step: &str| {
            let origin = json!({ "file": "flow.kdl", "line": 1, "column": 1 });
            json!([{ "step": step, "when": "success", "origin": origin }])
        };
        assert!(refused("/default", json!("other")).contains("the default pipeline `other` is not in it"));
        assert!(refused("/pipelines/0/result/0", json!("gone")).contains("names step `gone`"));
        assert!(refused("/pipelines/0/steps/1/needs", need("gone")).contains("names step `gone`"));
        assert!(refused("/pipelines/0/steps/0/name", json!("review")).contains("step `review` stands twice"));
        assert!(refused("/pipelines/0/steps/0/needs", need("review")).contains("wait for each other"));
        assert!(refused("/pipelines/0/parallelism", json!(0)).contains("a count of 0"));
        assert!(refused("/pipelines/0/steps/0/concurrency", json!(0)).contains("a count of 0"));
        let call = |name: &str| json!({ "call": { "pipeline": name } });
        assert!(refused("/pipelines/0/steps/0/body", call("gone")).contains("calls pipeline `gone`"));
        assert!(refused("/pipelines/0/steps/0/body", call("main")).contains("call each other in a circle"));
        let gate = |options: Value| {
            json!({ "gate": {
                "message": { "segments": [], "digest": "" }, "options": options,
                "headless": { "option": "yes" },
            } })
        };
        assert!(refused("/pipelines/0/steps/0/body", gate(json!([]))).contains("gate `draft` has no options"));
        assert!(refused("/pipelines/0/steps/0/body", gate(json!(["no"]))).contains("has no option `yes`"));
        assert!(refused("/workflow", json!(1)).contains("the plan is malformed"));
        assert!(read("{").unwrap_err().to_string().contains("the plan is malformed"));
    }
}
