//! Plans from a few words, one line a step: `NAME [OPTION…] [< NEED…]`.
//!
//! A need is `STEP`, `STEP:failure` (or `any`, `always`), with `~` before it when a reference implies it and `!` after
//! it when it handles. Options: `prompt`, `heeds` (a prompt that reads the inbox), `value`, `stop`, `stop=failure`, `when`, `join=any`, `join=none-failed`, `skip` (on
//! failure), `default=TEXT`, `retry=N`, `backoff=MS`, `limit=N` (its own concurrency).

use std::sync::Arc;

use swarmc_plan::{
    Body, Call, Command, Directive, DirectiveKind, EachJoin, EdgeKind, Effect, Exhausted, Expression, ForEach, Gate,
    GateDefault, GateTimeout, Iteration, Join, Loop, Need, OnFailure, Origin, Output, Pipeline, Plan, PromptBody,
    Response, Retry, RoundFailure, Segment, Step, StopStatus, Template, When,
};

use crate::Graph;

/// A pipeline of one round and instance that runs up to four steps at once.
pub(crate) fn pipeline(steps: &str) -> Pipeline {
    Pipeline {
        name: "main".to_owned(),
        iteration: Iteration {
            max: 1,
            on_failure: RoundFailure::Stop,
            exhausted: Exhausted::Fail,
            ..Iteration::default()
        },
        parallelism: 1,
        concurrency: Some(4),
        steps: steps.lines().map(str::trim).filter(|line| !line.is_empty()).map(line).collect(),
        ..Pipeline::default()
    }
}

/// The same with an `until` and so many rounds at most.
pub(crate) fn repeated(steps: &str, max: u32) -> Pipeline {
    let mut pipeline = pipeline(steps);
    pipeline.iteration.max = max;
    pipeline.iteration.until = vec![expression()];
    pipeline
}

pub(crate) fn graph(pipeline: Pipeline) -> Arc<Graph> {
    Arc::new(Graph::new(&plan(pipeline), "main", None, 4).unwrap())
}

/// The graph of a plan's first pipeline.
pub(crate) fn graph_of(plan: &Plan) -> Arc<Graph> {
    Arc::new(Graph::new(plan, &plan.pipelines[0].name, None, 4).unwrap())
}

pub(crate) fn plan(pipeline: Pipeline) -> Plan {
    Plan {
        version: swarmc_plan::VERSION,
        workflow: "test".to_owned(),
        default: "main".to_owned(),
        pipelines: vec![pipeline],
        ..Plan::default()
    }
}

/// A step that repeats others, so often at most, until an expression holds.
pub(crate) fn looped(head: &str, max: u32, until: &str, steps: &str) -> Step {
    let mut step = line(head);
    let until =
        (!until.is_empty()).then(|| Expression { source: until.to_owned(), reads: None, origin: Origin::default() });
    let iteration = Iteration { max, until: until.into_iter().collect(), ..Iteration::default() };
    step.body = Body::Loop(Loop { iteration, steps: pipeline(steps).steps });
    step
}

/// A step that runs once for each item of a list.
pub(crate) fn each(head: &str, list: &str, parallel: Option<u32>, join: EachJoin) -> Step {
    let mut step = line(head);
    let list = Expression { source: list.to_owned(), reads: None, origin: Origin::default() };
    step.for_each = Some(ForEach { list, parallel, join, record: None });
    step
}

/// A step that calls a pipeline, with parameters as plain texts.
pub(crate) fn call(head: &str, pipeline: &str, params: &[(&str, Template)]) -> Step {
    let mut step = line(head);
    let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    step.body = Body::Call(Call { pipeline: pipeline.to_owned(), params });
    step
}

/// A gate with these options.
pub(crate) fn gate(head: &str, options: &[&str], timeout: Option<(&str, u64)>) -> Step {
    let mut step = line(head);
    step.body = Body::Gate(Gate {
        message: Template::default(),
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        ask: Vec::new(),
        on_timeout: timeout
            .map(|(option, after_ms)| GateTimeout { then: GateDefault::Option(option.to_owned()), after_ms }),
        headless: None,
    });
    step
}

/// A text with `<<KIND:NAME>>` in it, or of it alone.
pub(crate) fn reading(kind: DirectiveKind, name: &str) -> Template {
    let directive = Directive {
        kind,
        name: (!name.is_empty()).then(|| name.to_owned()),
        fields: Vec::new(),
        filters: Vec::new(),
        wrap: false,
        origin: Origin::default(),
    };
    Template { segments: vec![Segment::Directive(directive)], digest: String::new() }
}

/// A command without needs.
pub(crate) fn step(name: &str) -> Step {
    Step {
        name: name.to_owned(),
        body: Body::Run(Command::Argv(vec!["true".to_owned()])),
        output: Output { max_bytes: 102_400, ..Output::default() },
        retry: Retry { times: 0, backoff_ms: 0, max_backoff_ms: 60_000, fresh: false },
        grace_ms: 30_000,
        ..Step::default()
    }
}

pub(crate) fn need(step: &str, when: When, declared: bool, effect: Effect) -> Need {
    Need { step: step.to_owned(), when, declared, effect, origin: Origin::default() }
}

pub(crate) fn expression() -> Expression {
    Expression { source: "true".to_owned(), reads: None, origin: Origin::default() }
}

pub(crate) fn stop(status: StopStatus) -> Body {
    Body::Stop { status, message: Template::default() }
}

pub(crate) fn line(line: &str) -> Step {
    let (head, needs) = line.split_once('<').unwrap_or((line, ""));
    let mut words = head.split_whitespace();
    let mut step = step(words.next().unwrap());
    words.for_each(|word| option(&mut step, word));
    step.needs = needs.split_whitespace().map(need_of).collect();
    step
}

fn option(step: &mut Step, word: &str) {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    match (name, value) {
        ("prompt", _) => step.body = prompted(Template::default()),
        ("heeds", _) => step.body = prompted(reading(DirectiveKind::Inbox, "")),
        ("value", _) => step.body = Body::Value(Template::default()),
        ("stop", "failure") => step.body = stop(StopStatus::Failure),
        ("stop", _) => step.body = stop(StopStatus::Success),
        ("when", _) => step.when = Some(expression()),
        ("join", "any") => step.join = Join::Any,
        ("join", "none-failed") => step.join = Join::NoneFailed,
        ("skip", _) => step.on_failure = OnFailure::Skip,
        ("escalate", _) => step.on_failure = OnFailure::Escalate,
        ("default", text) => step.output.default = Some(text.to_owned()),
        ("stall", times) => step.stall = times.parse().unwrap(),
        ("retry", times) => step.retry.times = times.parse().unwrap(),
        ("backoff", wait) => step.retry.backoff_ms = wait.parse().unwrap(),
        ("limit", limit) => step.concurrency = Some(limit.parse().unwrap()),
        _ => panic!("unknown option `{word}`"),
    }
}

fn prompted(prompt: Template) -> Body {
    Body::Prompt(PromptBody { agent: "anyone".to_owned(), prompt, context: Vec::new() })
}

/// An edge: `FROM -> TO` or `FROM <-> TO`, and `signal`, `required`, `optional`, `max=N`.
pub(crate) fn edge(line: &str) -> swarmc_plan::Edge {
    let words: Vec<&str> = line.split_whitespace().collect();
    let max = words.iter().find_map(|word| word.strip_prefix("max=")).map(|max| max.parse().unwrap());
    swarmc_plan::Edge {
        from: words[0].to_owned(),
        to: words[2].to_owned(),
        both: words[1] == "<->",
        kind: match () {
            () if words.contains(&"signal") => EdgeKind::Signal,
            () if words.contains(&"spawn") => EdgeKind::Spawn,
            () => EdgeKind::Handoff,
        },
        carries: None,
        response: match (words.contains(&"required"), words.contains(&"optional")) {
            (true, _) => Response::Required,
            (_, true) => Response::Optional,
            _ => Response::None,
        },
        max,
        origin: Origin::default(),
    }
}

fn need_of(word: &str) -> Need {
    let implied = word.starts_with('~');
    let (word, marked) = match word.trim_start_matches('~').strip_suffix('!') {
        Some(word) => (word, true),
        None => (word.trim_start_matches('~'), false),
    };
    let (step, when) = word.split_once(':').unwrap_or((word, "success"));
    let when = match when {
        "success" => When::Success,
        "failure" => When::Failure,
        "any" => When::Any,
        "always" => When::Always,
        _ => panic!("unknown condition `{when}`"),
    };
    let handles = marked || !implied && matches!(when, When::Failure | When::Any);
    need(step, when, !implied, if handles { Effect::Handles } else { Effect::None })
}
