//! What a plan may hold and this version cannot run yet: said before anything starts.

use swarmc_plan::{
    Approval, Body, Connection, DirectiveKind, OnFailure, Pipeline, Plan, Response, Segment, Step, Swarm,
};

use crate::error::RunError;
use crate::graph::Graph;

/// Refuses a run that would come to something that cannot be run.
pub(super) fn refuse(plan: &Plan, graph: &Graph) -> Result<(), RunError> {
    let called = graph.scopes.iter().skip(1).filter_map(|scope| plan.pipeline(&scope.pipeline));
    if let Some(pipeline) = called.into_iter().find(|pipeline| pipeline.parallelism > 1) {
        let name = &pipeline.name;
        return Err(RunError::Request(format!(
            "pipeline `{name}` is called, and has `parallelism`: a call has one value"
        )));
    }
    let pipelines = graph.scopes.iter().filter_map(|scope| Some((scope, plan.pipeline(&scope.pipeline)?)));
    for (scope, pipeline) in pipelines {
        if let Some(problem) = of_pipeline(pipeline) {
            return Err(RunError::Request(format!("this version cannot run pipeline `{}`: {problem}", pipeline.name)));
        }
        for step in pipeline.all_steps().filter(|step| scope.find(&step.name).is_some()) {
            if let Some(problem) = of_step(plan, pipeline, step) {
                let (origin, name) = (&step.origin, &step.name);
                return Err(RunError::Request(format!("{origin}: this version cannot run `{name}`: {problem}")));
            }
        }
    }
    Ok(())
}

fn of_pipeline(pipeline: &Pipeline) -> Option<String> {
    let repeated = |name: &&String| pipeline.all_steps().any(|step| step.name == **name && step.for_each.is_some());
    let ends = pipeline.edges.iter().flat_map(|edge| edge.both.then_some(&edge.from).into_iter().chain([&edge.to]));
    if let Some(name) = ends.into_iter().find(|name| repeated(name)) {
        return Some(format!(
            "an edge leads to `{name}`, which runs once for each item, so that nobody in particular receives"
        ));
    }
    let asks = pipeline.edges.iter().find(|edge| edge.response != Response::None && repeated(&&edge.from))?;
    Some(format!(
        "`{}` expects answers of `{}`, and runs once for each item, so that nobody in particular receives them",
        asks.from, asks.to
    ))
}

/// Whether this version can reach an agent.
fn runs(plan: &Plan, agent: &str) -> bool {
    plan.agent(agent).is_some_and(|agent| plan.provider(&agent.provider).is_some())
}

fn of_step(plan: &Plan, pipeline: &Pipeline, step: &Step) -> Option<String> {
    let agent = match (&step.body, &step.on_failure) {
        (Body::Swarm(call), _) => return of_swarm(plan, step, &call.swarm),
        (Body::Prompt(_) | Body::Run(_), OnFailure::Fix(_)) if step.for_each.is_some() => {
            return Some("it says `on-failure fix` for each of its items".to_owned());
        }
        (Body::Prompt(_) | Body::Run(_), OnFailure::Fix(fixer)) if !runs(plan, fixer) => {
            return Some(format!("agent `{fixer}` cannot be reached"));
        }
        (Body::Prompt(body), OnFailure::Fix(_)) => Some(body.agent.as_str()),
        (Body::Run(_), OnFailure::Fix(_)) => None,
        (_, OnFailure::Fix(_)) => return Some("`on-failure fix` is for prompts and commands".to_owned()),
        (Body::Prompt(body), _) => Some(body.agent.as_str()),
        _ => None,
    };
    if let Some(problem) = of_files(plan, pipeline, step) {
        return Some(problem);
    }
    if let Some(word) = of_texts(plan, step) {
        return Some(format!("it reads `{word}`"));
    }
    let agent = agent.and_then(|name| plan.agent(name))?;
    let provider = plan.provider(&agent.provider)?;
    match &provider.connection {
        Connection::Llm { model: None, .. } if agent.model.is_none() => {
            Some(format!("neither its agent `{}` nor provider `{}` names a model", agent.name, provider.name))
        }
        Connection::Llm { .. } if step.session.is_some() => {
            Some(format!("it goes on with a session, and its provider `{}` is an `llm`", provider.name))
        }
        Connection::Llm { tools: None, .. } if agent.tools.as_ref().is_some_and(|tools| !tools.is_empty()) => {
            Some(format!(
                "its agent `{}` uses tools, and its provider `{}` says neither `provides tools` nor `tools=schema`",
                agent.name, provider.name
            ))
        }
        Connection::Llm { .. } | Connection::Exec { .. } | Connection::Acp { .. } | Connection::Script { .. } => None,
    }
}

/// What a step says of files that nobody can do.
fn of_files(plan: &Plan, pipeline: &Pipeline, step: &Step) -> Option<String> {
    let files = plan.files_of(step)?;
    if !matches!(step.body, Body::Prompt(_) | Body::Run(_)) {
        return Some("it says `files`, which are for prompts and commands".to_owned());
    }
    let makers = files.inputs.iter().filter_map(|input| input.from.as_ref());
    let maker = |name: &&String| pipeline.all_steps().find(|step| step.name == **name);
    makers.into_iter().find_map(|name| match maker(&name) {
        None => Some(format!("its files come from `{name}`, and there is no such step")),
        Some(maker) if maker.for_each.is_some() => {
            Some(format!("its files come from `{name}`, which runs once for each item, so that nobody's are meant"))
        }
        Some(maker) if plan.files_of(maker).is_none() => {
            Some(format!("its files come from `{name}`, which does not say `files`"))
        }
        Some(_) => None,
    })
}

/// What a swarm says that this version does not run.
fn of_swarm(plan: &Plan, step: &Step, name: &str) -> Option<String> {
    let swarm = plan.swarm(name)?;
    if !step.checks.is_empty() {
        return Some("it is a swarm, and says `check`: put the check into a step behind it".to_owned());
    }
    if let Some(part) = of_rules(swarm) {
        return Some(format!("swarm `{name}` has {part}"));
    }
    let leads = swarm.lead.iter().map(|lead| &lead.agent).chain(swarm.synthesize.iter().map(|merge| &merge.agent));
    let played = swarm.members.iter().map(|member| &member.agent).chain(leads);
    for agent in played.filter_map(|agent| plan.agent(agent)) {
        let Some(provider) = plan.provider(&agent.provider) else { continue };
        match &provider.connection {
            Connection::Exec { .. } | Connection::Acp { .. } => {
                return Some(format!(
                    "agent `{}` of swarm `{name}` is a program: members of swarms are models (`llm`) or recorded (`script`)",
                    agent.name
                ));
            }
            Connection::Llm { model: None, .. } if agent.model.is_none() => {
                return Some(format!("neither agent `{}` nor provider `{}` names a model", agent.name, provider.name));
            }
            Connection::Llm { .. } | Connection::Script { .. } => {}
        }
        if let Some(word) = agent.system.iter().find_map(|system| word_of(&system.segments)) {
            return Some(format!("the system text of agent `{}` reads `{word}`", agent.name));
        }
    }
    let tasks = swarm.members.iter().filter_map(|member| member.task.as_ref()).chain(&swarm.goal);
    tasks.into_iter().find_map(|task| word_of(&task.segments)).map(|word| format!("swarm `{name}` reads `{word}`"))
}

/// What the rules of a swarm say that this version does not know.
pub(crate) fn of_rules(swarm: &Swarm) -> Option<&'static str> {
    let parts = [
        (swarm.lead.as_ref().is_some_and(|lead| lead.coordinator), "a `coordinator`"),
        (!swarm.channels.is_empty(), "a `channel`"),
        (!swarm.items.is_empty(), "an `item`"),
        (!swarm.worktrees.is_empty(), "a `worktree`"),
        (
            swarm.spawn.approval == Approval::Coordinator && swarm.spawn.per_agent > 0,
            "`spawn` that a coordinator approves",
        ),
    ];
    parts.iter().find(|(there, _)| *there).map(|(_, part)| *part)
}

/// What a prompt or the system text of its agent reads that only swarms, edges and packs give.
fn of_texts(plan: &Plan, step: &Step) -> Option<&'static str> {
    let Body::Prompt(body) = &step.body else { return None };
    let system = plan.agent(&body.agent).and_then(|agent| agent.system.as_ref());
    std::iter::once(&body.prompt).chain(system).find_map(|text| word_of(&text.segments))
}

fn word_of(segments: &[Segment]) -> Option<&'static str> {
    segments.iter().find_map(|segment| match segment {
        Segment::Directive(directive) => match directive.kind {
            DirectiveKind::Shared => Some("shared"),
            DirectiveKind::Team => Some("team"),
            DirectiveKind::Plan => Some("plan"),
            _ => None,
        },
        Segment::Text(_) | Segment::Logic(_) => None,
    })
}
