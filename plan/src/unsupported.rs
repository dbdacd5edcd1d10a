//! The parts of a plan that this version cannot run. The compiler and the runner both report them, before anything
//! starts.
//!
//! In: a plan. Out: every such problem with its place. A problem of a swarm belongs to the swarm: it is reported once,
//! for all the steps that start the swarm.

use std::collections::HashSet;

use crate::{
    Agent, Approval, Body, DirectiveKind, Edge, EdgeKind, OnFailure, Origin, Pipeline, Plan, Provider, Response, Step,
    Swarm, Template,
};

/// Something that this version cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unsupported {
    /// The place in the spec.
    pub origin: Origin,
    /// What cannot be run, and why: without a full stop, names in backticks.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl Unsupported {
    fn of_step(step: &Step, problem: impl Into<String>, help: impl Into<String>) -> Unsupported {
        Unsupported::new(&step.origin, &format!("`{}`", step.name), problem, help)
    }

    fn of_swarm(swarm: &Swarm, origin: &Origin, problem: impl Into<String>, help: impl Into<String>) -> Unsupported {
        Unsupported::new(origin, &format!("swarm `{}`", swarm.name), problem, help)
    }

    fn new(origin: &Origin, what: &str, problem: impl Into<String>, help: impl Into<String>) -> Unsupported {
        let message = format!("this version cannot run {what}: {}", problem.into());
        Unsupported { origin: origin.clone(), message, help: help.into() }
    }
}

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}; {}", self.origin, self.message, self.help)
    }
}

impl Plan {
    /// Everything that this version cannot run of the pipelines and swarms of this plan, each once, in their order.
    pub fn find_unsupported(&self) -> Vec<Unsupported> {
        let of_pipelines = self.pipelines.iter().flat_map(|pipeline| self.unsupported_in(pipeline, |_| true));
        let mut seen = HashSet::new();
        let of_swarms = self.swarms.iter().flat_map(|swarm| of_swarm(self, swarm));
        of_pipelines.chain(of_swarms).filter(|problem| seen.insert(problem.clone())).collect()
    }

    /// What this version cannot run of one pipeline, if it runs only the steps that `runs` selects.
    pub fn unsupported_in(&self, pipeline: &Pipeline, runs: impl Fn(&Step) -> bool) -> Vec<Unsupported> {
        let steps = pipeline.all_steps().filter(|step| runs(step));
        unsupported_edges(pipeline).into_iter().chain(steps.flat_map(|step| of_step(self, pipeline, step))).collect()
    }
}

/// Edges to steps that run once for each item.
fn unsupported_edges(pipeline: &Pipeline) -> Vec<Unsupported> {
    let repeated = pipeline.all_steps().filter(|step| step.for_each.is_some()).map(|step| step.name.as_str());
    let repeated: HashSet<&str> = repeated.collect();
    let mut found = Vec::new();
    for edge in &pipeline.edges {
        let what = format!("pipeline `{}`", pipeline.name);
        let receives = [Some(&edge.to), Some(&edge.from).filter(|_| edge.both)];
        for name in receives.into_iter().flatten().filter(|name| repeated.contains(name.as_str())) {
            let problem = format!("`{name}` uses `for-each`, so it cannot receive messages");
            found.push(Unsupported::new(&edge.origin, &what, problem, "take the edge out, or the `for-each`"));
        }
        if edge.response != Response::None && repeated.contains(edge.from.as_str()) {
            let problem = format!("`{}` uses `for-each`, so it cannot receive answers from `{}`", edge.from, edge.to);
            found.push(Unsupported::new(&edge.origin, &what, problem, "take `response=` out, or the `for-each`"));
        }
    }
    found
}

fn of_step(plan: &Plan, pipeline: &Pipeline, step: &Step) -> Vec<Unsupported> {
    let mut found = Vec::new();
    let mut cannot = |problem: String, help: String| found.push(Unsupported::of_step(step, problem, help));
    if let Body::Call(call) = &step.body
        && plan.pipeline(&call.pipeline).is_some_and(|called| called.parallelism > 1)
    {
        cannot(
            format!("pipeline `{}` is called, and has `parallelism`: a call has one value", call.pipeline),
            "take `parallelism` out, and write `for-each` in the step".to_owned(),
        );
    }
    if let OnFailure::Fix(fixer) = &step.on_failure {
        if !step.body.kind().takes_turn() {
            cannot(
                "`on-failure fix` is for prompts and commands".to_owned(),
                "write `on-failure skip`, or write `on-failure fix` in the inner task that fails".to_owned(),
            );
        } else if step.for_each.is_some() {
            cannot(
                "`on-failure fix` cannot be used with `for-each`".to_owned(),
                "write `retry N`, or `call` a pipeline of one task that has `on-failure fix`".to_owned(),
            );
        } else if !is_reachable(plan, fixer) {
            cannot(format!("agent `{fixer}` cannot be reached"), "name an agent that has a provider".to_owned());
        }
    }
    check_files(plan, pipeline, step, &mut cannot);
    if let Body::Swarm(call) = &step.body {
        if !step.checks.is_empty() {
            cannot("a swarm cannot have a `check`".to_owned(), "put the check into a later step: `run …`".to_owned());
        }
        found.extend(plan.swarm(&call.swarm).into_iter().flat_map(|swarm| of_swarm(plan, swarm)));
        return found;
    }
    let Body::Prompt(body) = &step.body else { return found };
    let agent = plan.agent(&body.agent);
    let system = agent.and_then(|agent| agent.system.as_ref());
    for word in std::iter::once(&body.prompt).chain(system).filter_map(of_swarms_alone) {
        cannot(format!("it reads `{word}`"), format!("take `<<{word}>>` out: only members of a swarm can read it"));
    }
    if let Some(agent) = agent {
        model_problems(plan, agent, step.session.is_some())
            .into_iter()
            .for_each(|(problem, help)| cannot(problem, help));
    }
    found
}

/// Whether the agent has a provider.
fn is_reachable(plan: &Plan, agent: &str) -> bool {
    plan.agent(agent).is_some_and(|agent| plan.provider(&agent.provider).is_some())
}

/// What a step declares about files that no runner can do.
fn check_files(plan: &Plan, pipeline: &Pipeline, step: &Step, cannot: &mut dyn FnMut(String, String)) {
    let Some(files) = plan.files_of(step) else { return };
    if !step.body.kind().takes_turn() {
        let help = "take `files` out, or move it to a task with a `prompt` or a `run`";
        return cannot("`files` is for prompts and commands only".to_owned(), help.to_owned());
    }
    for name in files.inputs.iter().filter_map(|input| input.from.as_ref()) {
        match pipeline.all_steps().find(|step| step.name == *name) {
            None => cannot(
                format!("its files come from `{name}`, but there is no such step"),
                "name a task of the same pipeline".to_owned(),
            ),
            Some(maker) if maker.for_each.is_some() => cannot(
                format!("`{name}` uses `for-each`, so an input cannot take files from `{name}`"),
                "let a later task collect the files, and name that task".to_owned(),
            ),
            Some(maker) if plan.files_of(maker).is_none() => cannot(
                format!("its files come from `{name}`, which has no `files`"),
                format!("write `files` in `{name}`"),
            ),
            Some(_) => {}
        }
    }
}

/// Whether a model takes the turns of the agent, and none is named.
fn lacks_model(agent: &Agent, provider: &Provider) -> bool {
    let connection = &provider.connection;
    connection.kind().is_model() && agent.model.is_none() && connection.model().is_none()
}

/// What the provider of an agent lacks: the problem, and what to write.
fn model_problems(plan: &Plan, agent: &Agent, goes_on: bool) -> Vec<(String, String)> {
    let Some(provider) = plan.provider(&agent.provider) else { return Vec::new() };
    let (name, other, kind) = (&agent.name, &provider.name, provider.connection.kind());
    let mut found = Vec::new();
    if lacks_model(agent, provider) {
        found.push((
            format!("neither its agent `{name}` nor provider `{other}` names a model"),
            "write `model \"NAME\"` in the agent".to_owned(),
        ));
    }
    if goes_on && !kind.can_resume() {
        found.push((
            format!("it continues a session, which its provider `{other}`, an `{}`, cannot do", kind.name()),
            "remove `session`, or use an agent of another provider".to_owned(),
        ));
    }
    let calls_tools = !kind.is_model() || provider.connection.tool_protocol().is_some();
    if !calls_tools && agent.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        found.push((
            format!("its agent `{name}` uses tools, but its provider `{other}` has neither `provides tools` nor `tools=schema`"),
            format!("write `provides tools` in provider `{other}`, or `tools=schema` behind the kind of its `llm`"),
        ));
    }
    found
}

fn of_swarm(plan: &Plan, swarm: &Swarm) -> Vec<Unsupported> {
    let mut found: Vec<Unsupported> = unknown_parts(swarm)
        .map(|(part, help)| Unsupported::of_swarm(swarm, &swarm.origin, format!("it has {part}"), help))
        .collect();
    for edge in &swarm.edges {
        let arrow = if edge.both { "<->" } else { "->" };
        for (word, help) in beyond_pairs(edge) {
            let problem = format!(
                "its edge `{} {arrow} {}` has `{word}=`, which edges of swarms do not support",
                edge.from, edge.to
            );
            found.push(Unsupported::of_swarm(swarm, &edge.origin, problem, help));
        }
    }
    let members = swarm.members.iter().map(|member| (&member.agent, &member.origin));
    let lead = swarm.lead.iter().map(|lead| (&lead.agent, &swarm.origin));
    let merger = swarm.synthesize.iter().map(|merge| (&merge.agent, &swarm.origin));
    let mut told = HashSet::new();
    for (name, origin) in members.chain(lead).chain(merger) {
        // Several members may play one agent, whose problems are the same for each of them.
        let Some(agent) = plan.agent(name).filter(|_| told.insert(name)) else { continue };
        found.extend(
            player_problems(plan, agent).into_iter().map(|(it, help)| Unsupported::of_swarm(swarm, origin, it, help)),
        );
    }
    let tasks = swarm.members.iter().filter_map(|member| Some((member.task.as_ref()?, &member.origin)));
    for (task, origin) in tasks.chain(swarm.goal.iter().map(|goal| (goal, &swarm.origin))) {
        if let Some(word) = of_swarms_alone(task) {
            let help = format!("take `<<{word}>>` out: every member receives its team and the findings anyway");
            found.push(Unsupported::of_swarm(swarm, origin, format!("it reads `{word}`"), help));
        }
    }
    found
}

/// What an edge says besides who may write to whom, with what to write instead.
fn beyond_pairs(edge: &Edge) -> impl Iterator<Item = (&'static str, &'static str)> {
    let tasks = "remove it, or make the members tasks of a pipeline, whose edges support it";
    let parts = [
        (edge.carries.is_some(), "carries", tasks),
        (edge.response != Response::None, "response", tasks),
        (edge.kind != EdgeKind::Handoff, "kind", "remove it: a message to a member waits for its next turn"),
        (edge.max.is_some(), "max", "write `limits { messages N }`: the messages that each member may send"),
    ];
    parts.into_iter().filter(|(there, ..)| *there).map(|(_, word, help)| (word, help))
}

/// Why an agent cannot be in a swarm: the problem, and what to write.
fn player_problems(plan: &Plan, agent: &Agent) -> Vec<(String, String)> {
    let Some(provider) = plan.provider(&agent.provider) else { return Vec::new() };
    let name = &agent.name;
    let mut found = Vec::new();
    if lacks_model(agent, provider) {
        found.push((
            format!("neither its agent `{name}` nor provider `{}` names a model", provider.name),
            "write `model \"NAME\"` in the agent".to_owned(),
        ));
    }
    if agent.files.is_some() {
        found.push((
            format!("its agent `{name}` has `files`, but members of swarms have no folder"),
            format!("take `files` out of agent `{name}`, or move it to its tasks in pipelines"),
        ));
    }
    if let Some(word) = agent.system.as_ref().and_then(of_swarms_alone) {
        found.push((
            format!("the system text of its agent `{name}` reads `{word}`"),
            format!("take `<<{word}>>` out: every member receives its team and the findings anyway"),
        ));
    }
    found
}

/// The rules of a swarm that this version does not support, with what to write instead.
fn unknown_parts(swarm: &Swarm) -> impl Iterator<Item = (&'static str, &'static str)> {
    let leads = swarm.lead.as_ref().is_some_and(|lead| lead.coordinator);
    let asks = !leads && swarm.spawn.approval == Approval::Coordinator && swarm.spawn.per_agent > 0;
    let parts = [(asks, "`spawn` that a coordinator approves", "write `spawn approval=human`, or `approval=auto`")];
    parts.into_iter().filter(|(there, ..)| *there).map(|(_, part, help)| (part, help))
}

/// A value that a text reads, but that only members of swarms have.
fn of_swarms_alone(text: &Template) -> Option<&'static str> {
    let words = [(DirectiveKind::Shared, "shared"), (DirectiveKind::Team, "team"), (DirectiveKind::Plan, "plan")];
    words.into_iter().find(|(kind, _)| text.reads_kind(*kind)).map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileProtocol;
    use crate::{EachJoin, Expression, ForEach};

    fn edge(from: &str, to: &str) -> Edge {
        Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            both: false,
            kind: EdgeKind::Handoff,
            carries: None,
            response: Response::None,
            max: None,
            origin: Origin::default(),
        }
    }

    fn pipeline(steps: Vec<Step>) -> Pipeline {
        Pipeline { name: "main".to_owned(), steps, ..Pipeline::default() }
    }

    fn step(name: &str) -> Step {
        Step { name: name.to_owned(), ..Step::default() }
    }

    fn messages(found: &[Unsupported]) -> Vec<&str> {
        found.iter().map(|found| found.message.as_str()).collect()
    }

    #[test]
    fn steps_that_do_not_run_are_no_problem() {
        let with_files = Step { files: Some(FileProtocol::default()), ..step("a") };
        let plan = Plan { pipelines: vec![pipeline(vec![with_files, step("b")])], ..Plan::default() };
        let all = plan.find_unsupported();
        assert_eq!(messages(&all), ["this version cannot run `a`: `files` is for prompts and commands only"]);
        assert_eq!(plan.unsupported_in(&plan.pipelines[0], |step| step.name == "b"), []);
    }

    #[test]
    fn items_of_a_for_each_receive_nothing() {
        let list = Expression { source: "[1]".to_owned(), reads: None, origin: Origin::default() };
        let each = Step {
            for_each: Some(ForEach { list, parallel: None, join: EachJoin::All, record: None }),
            ..step("each")
        };
        let mut plan = pipeline(vec![each, step("one")]);
        plan.edges = vec![
            edge("each", "one"),
            edge("one", "each"),
            Edge { both: true, ..edge("each", "one") },
            Edge { response: Response::Optional, ..edge("each", "one") },
        ];
        let found = unsupported_edges(&plan);
        assert_eq!(
            messages(&found)
                .iter()
                .filter(|it| it.contains("`each` uses `for-each`, so it cannot receive messages"))
                .count(),
            2
        );
        assert_eq!(messages(&found).iter().filter(|it| it.contains("cannot receive answers from `one`")).count(), 1);
        assert_eq!(found.len(), 3);
    }
}
