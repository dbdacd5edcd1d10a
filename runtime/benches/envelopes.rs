//! What a handoff costs, from 2 to 1,000 agents: the pure core alone, of which 100,000 a second or better are wanted however
//! many agents there are, and with all that is said.
//!
//! Every sample is a whole run, in memory. Of the core alone each handoff is recorded and its receiver woken, its turn begun
//! and ended. The others are rehearsals: what an agent asks for is read, admitted, recorded and applied, its receiver is
//! woken, and the prompt of the turn that reads it rendered. Items are handoffs.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use swarmc_plan::{
    Agent, Body, Directive, DirectiveKind, Edge, Exhausted, Iteration, Origin, Output, Pipeline, Plan, PromptBody,
    Provider, Response, RoundFailure, Segment, Step, Template,
};
use swarmc_runtime::handoff::EnvelopeKind;
use swarmc_runtime::{
    Answer, Command, Content, Event, Graph, InboxMessage, Options, Outcome, Record, RunStatus, State, StepId, Turn,
    decide_commands, rehearse,
};

const AGENTS: [usize; 4] = [2, 10, 100, 1_000];

/// The handoffs of a sample.
const HANDOFFS: usize = 10_000;

/// What one answer may hand over, and an inbox takes.
const MOST: usize = 1_000;

fn main() {
    divan::main();
}

/// The core alone: each turn takes one envelope and hands one on.
#[divan::bench(args = AGENTS, sample_count = 10)]
fn core(bencher: Bencher, agents: usize) {
    let edges = (0..agents).map(|from| edge(from, (from + 1) % agents, Response::None)).collect();
    let graph = Arc::new(Graph::new(&plan(agents, edges), "main", None, 8).expect("the plan is consistent"));
    bencher.counter(ItemsCount::new(HANDOFFS)).bench_local(|| {
        let mut relay =
            Relay { state: State::new(Arc::clone(&graph)), seq: 0, agents, left: HANDOFFS, inbox: HashMap::new() };
        relay.run();
        assert_eq!((relay.state.final_status(), relay.left), (Some(RunStatus::Succeeded), 0));
    });
}

/// What drives the core: every turn takes what waits for it, hands one on, and ends at once.
struct Relay {
    state: State,
    seq: u64,
    agents: usize,
    left: usize,
    inbox: HashMap<Arc<str>, Vec<Arc<str>>>,
}

impl Relay {
    fn run(&mut self) {
        self.record(Event::run_started("run", "main"));
        while self.state.final_status().is_none() {
            for command in decide_commands(&mut self.state, 0) {
                match command {
                    Command::Start { step, attempt } => self.turn(step, attempt),
                    Command::Close { step, owes } => self.record(Event::NodeClosed { step, owes }),
                    Command::Finish { status } => self.record(Event::RunFinished { status }),
                    other => unreachable!("{other:?} is not asked for here"),
                }
            }
        }
    }

    fn turn(&mut self, step: StepId, attempt: u32) {
        if let Some(inputs) = self.inbox.remove(&step.name) {
            self.record(Event::InputsTaken { step: step.clone(), inputs });
        }
        self.record(Event::AttemptStarted { step: step.clone(), attempt, reserved: None, summarizer: None });
        if self.left > 0 {
            self.left -= 1;
            let from = number_of(&step.name);
            let to: Arc<str> = name((from + 1) % self.agents).into();
            let letter = InboxMessage {
                id: format!("e{}", self.seq + 1).into(),
                kind: EnvelopeKind::Handoff,
                priority: Default::default(),
                response: Response::None,
                answers: None,
                answered_to: None,
                person: false,
                run: false,
                interrupts: false,
                said: None,
                content: Content::Text(String::new()),
            };
            self.inbox.entry(Arc::clone(&to)).or_default().push(Arc::clone(&letter.id));
            let (from_step, way) = (Some(step.clone()), Some(from));
            self.record(Event::Sent { from: from_step, to, instance: 1, within: None, way, letter });
        }
        let outcome = Outcome { output: Some(Content::Text("done".to_owned())), ..Outcome::default() };
        self.record(Event::AttemptEnded { step, attempt, outcome });
    }

    fn record(&mut self, event: Event) {
        self.seq += 1;
        self.state.apply(&Record { seq: self.seq, at: 0, event });
    }
}

/// Each turn reads one envelope and hands one on.
#[divan::bench(args = AGENTS, sample_count = 10)]
fn relay(bencher: Bencher, agents: usize) {
    let edges = (0..agents).map(|from| edge(from, (from + 1) % agents, Response::None)).collect();
    let plan = plan(agents, edges);
    bencher.counter(ItemsCount::new(HANDOFFS)).bench_local(|| {
        let mut left = HANDOFFS;
        run(&plan, HANDOFFS, |turn| match left {
            0 => "Done.".to_owned(),
            _ => {
                left -= 1;
                said((number(turn) + 1) % agents)
            }
        })
    });
}

/// Ten turns hand over to all others, as much as a turn may and as inboxes take.
#[divan::bench(args = [10, 100, 1_000], sample_count = 10)]
fn flood(bencher: Bencher, agents: usize) {
    const FROM: usize = HANDOFFS / MOST;
    let edges = (0..FROM).flat_map(|from| (0..agents).map(move |to| edge(from, FROM + to, Response::None))).collect();
    let plan = plan(FROM + agents, edges);
    let all: String = (0..MOST).map(|place| said(FROM + place % agents) + "\n").collect();
    bencher.counter(ItemsCount::new(HANDOFFS)).bench_local(|| {
        run(&plan, HANDOFFS, |turn| if number(turn) < FROM { all.clone() } else { "Done.".to_owned() })
    });
}

/// One asks everybody, as much as a turn may, and everybody answers.
#[divan::bench(args = [10, 100, 1_000], sample_count = 10)]
fn answers(bencher: Bencher, agents: usize) {
    let edges = (1..=agents).map(|to| edge(0, to, Response::Required)).collect();
    let plan = plan(agents + 1, edges);
    let questions: String = (0..MOST).map(|place| said(1 + place % agents) + "\n").collect();
    let replies = (said(0) + "\n").repeat(MOST / agents);
    bencher.counter(ItemsCount::new(2 * MOST)).bench_local(|| {
        run(&plan, 2 * MOST, |turn| match (number(turn), turn.attempt) {
            (0, 1) => questions.clone(),
            (0, _) => "Done.".to_owned(),
            _ => replies.clone(),
        })
    });
}

/// Rehearses it, and makes sure that all was handed over.
fn run(plan: &Plan, handoffs: usize, mut answer: impl FnMut(&Turn<'_>) -> String + Send) {
    let options = Options { workspace: PathBuf::from("/"), ..Options::default() };
    let story = rehearse(plan, &options, &mut |turn| Answer::Text(answer(turn))).expect("it can be rehearsed");
    let sent = story.records.iter().filter(|record| matches!(record.event, Event::Sent { .. })).count();
    assert_eq!((story.status, sent), (RunStatus::Succeeded, handoffs), "{:?}", story.faults.first());
}

/// Whose turn it is.
fn number(turn: &Turn<'_>) -> usize {
    number_of(&turn.step.name)
}

fn number_of(name: &str) -> usize {
    name.strip_prefix("agent-").and_then(|number| number.parse().ok()).expect("agents have numbers")
}

fn name(number: usize) -> String {
    format!("agent-{number}")
}

fn said(to: usize) -> String {
    format!(
        r#"{{"swarm": "send_handoff", "to": "agent-{to}", "message": "The parser is ready", "status": {{"ok": true}}, "artifacts": [{{"type": "file", "ref": "src/parse.rs"}}]}}"#
    )
}

fn edge(from: usize, to: usize, response: Response) -> Edge {
    Edge {
        from: name(from),
        to: name(to),
        both: false,
        kind: Default::default(),
        carries: None,
        response,
        max: Some(u32::MAX),
        origin: Origin::default(),
    }
}

fn plan(agents: usize, edges: Vec<Edge>) -> Plan {
    let reached: BTreeSet<&str> = edges.iter().map(|edge| edge.to.as_str()).collect();
    let steps = (0..agents).map(|number| step(number, number > 0 && reached.contains(name(number).as_str()))).collect();
    let pipeline = Pipeline {
        name: "main".to_owned(),
        iteration: Iteration {
            max: 1,
            on_failure: RoundFailure::Stop,
            exhausted: Exhausted::Fail,
            ..Iteration::default()
        },
        parallelism: 1,
        concurrency: Some(8),
        steps,
        edges,
        ..Pipeline::default()
    };
    Plan {
        version: swarmc_plan::VERSION,
        workflow: "bench".to_owned(),
        default: "main".to_owned(),
        providers: vec![Provider { name: "any".to_owned(), ..Provider::default() }],
        agents: vec![Agent { name: "any".to_owned(), provider: "any".to_owned(), ..Agent::default() }],
        pipelines: vec![pipeline],
        ..Plan::default()
    }
}

/// An agent that waits for its first envelope, where it heeds its inbox.
fn step(number: usize, heeds: bool) -> Step {
    let inbox = Directive {
        kind: DirectiveKind::Inbox,
        name: None,
        fields: Vec::new(),
        filters: Vec::new(),
        wrap: false,
        origin: Origin::default(),
    };
    let mut segments = vec![Segment::Text("Do what your inbox asks for:\n".to_owned())];
    segments.extend(heeds.then_some(Segment::Directive(inbox)));
    let prompt = Template { segments, digest: String::new() };
    Step {
        name: name(number),
        body: Body::Prompt(PromptBody { agent: "any".to_owned(), prompt, context: Vec::new() }),
        output: Output { max_bytes: 102_400, ..Output::default() },
        ..Step::default()
    }
}
