//! What an event costs the core of swarms, from 10 to 10,000 agents: the figures should not grow.
//!
//! Every sample is a whole swarm: each agent takes 25 turns, in twenty of which it writes to the next one, and every
//! answer comes at once; each event is decided, applied, and written as a line of the journal. Items are events.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use swarmc_plan::{
    Approval, Convergence, History, Member, Origin, Plan, ProgressRule, Spawn, SwarmLimits, SwarmTimeouts,
};
use swarmc_plan::{TransientRetry, TurnLimit, WorkspaceView};
use swarmc_runtime::swarm::{Action, Answer, MessageType, Rules, Swarm, SwarmCommand, TurnId, decide_swarm};
use swarmc_runtime::{AttemptId, Content, Event, Record, StepId, Usage};

const AGENTS: [u32; 4] = [10, 100, 1_000, 10_000];
const ITERATIONS: u32 = 25;
const MESSAGES: u32 = 20;

fn main() {
    divan::main();
}

/// Decided, applied and written.
#[divan::bench(args = AGENTS, sample_count = 5)]
fn whole(bencher: Bencher, agents: u32) {
    measure(bencher, agents, true);
}

/// Decided and applied alone.
#[divan::bench(args = AGENTS, sample_count = 5)]
fn core(bencher: Bencher, agents: u32) {
    measure(bencher, agents, false);
}

fn measure(bencher: Bencher, agents: u32, writes: bool) {
    let rules = Arc::new(rules(agents));
    let events = Run::new(&rules, false).go();
    bencher.counter(ItemsCount::new(events)).with_inputs(|| Run::new(&rules, writes)).bench_values(Run::go);
}

struct Run {
    swarm: Swarm,
    /// The names of the agents, in the order of the roster.
    names: Vec<Arc<str>>,
    answers: VecDeque<Event>,
    seq: u64,
    id: AttemptId,
    /// The lines that are still to be written, where any are.
    lines: Option<Vec<u8>>,
}

impl Run {
    fn new(rules: &Arc<Rules>, writes: bool) -> Run {
        let id = AttemptId::new(&StepId::new("team", 1, 1), 1);
        Run {
            swarm: Swarm::new(
                id.clone(),
                Arc::clone(rules),
                "20261122-014233-k3f9",
                Content::Text("the goal".to_owned()),
            ),
            names: Vec::new(),
            answers: VecDeque::new(),
            seq: 0,
            id,
            lines: writes.then(Vec::new),
        }
    }

    /// Runs to the end, and says how many events there were.
    fn go(mut self) -> u64 {
        loop {
            loop {
                let now = self.now();
                let Some(order) = decide_swarm(&mut self.swarm, now) else { break };
                if self.carry_out(order) {
                    return self.seq;
                }
            }
            let answer = self.answers.pop_front().expect("somebody is asked");
            self.record(answer);
        }
    }

    /// A hundred events happen in a millisecond.
    fn now(&self) -> u64 {
        self.seq / 100
    }

    /// Whether the swarm is over.
    fn carry_out(&mut self, order: SwarmCommand) -> bool {
        match order {
            SwarmCommand::Record(event) => self.record(*event),
            SwarmCommand::Spawn { name, plays, .. } => {
                self.names.push(Arc::clone(&name));
                let task = Some(Content::Text("Research US AI chip market".to_owned()));
                self.record(Event::AgentSpawned {
                    swarm: self.id.clone(),
                    agent: name,
                    plays,
                    task,
                    brief: None,
                    by: None,
                    tools: None,
                    items: Vec::new(),
                    replaces: None,
                    worktree: None,
                });
            }
            SwarmCommand::Ask(turn) => {
                let answer = Answer::Acts(self.act(&turn));
                let usage = Some(Usage { input: 1_200, output: 80, ..Usage::default() });
                self.answers.push_back(Event::TurnEnded {
                    swarm: self.id.clone(),
                    turn: turn.clone(),
                    answer,
                    usage,
                    cost: None,
                    model: None,
                    session: None,
                });
                self.record(Event::TurnStarted { swarm: self.id.clone(), turn, reserved: None });
            }
            SwarmCommand::Call(turn) => {
                let result = Content::Text("NVIDIA holds 80% of the market.".repeat(10));
                self.answers.push_back(Event::ToolEnded {
                    swarm: self.id.clone(),
                    turn: turn.clone(),
                    result,
                    fault: None,
                });
                self.record(Event::ToolStarted { swarm: self.id.clone(), turn, tool: "web_search".into() });
            }
            SwarmCommand::Finish => {
                self.record(Event::SwarmFinished {
                    swarm: self.id.clone(),
                    result: Some(Content::Text("done".to_owned())),
                    error: None,
                });
                return true;
            }
            other => unreachable!("{other:?} is not asked for here"),
        }
        false
    }

    fn act(&self, turn: &TurnId) -> Action {
        let payload = || Content::Text(r#"{"message":"Can you check Japan domestic chip vendors?"}"#.to_owned());
        match turn.iteration {
            0..MESSAGES => {
                let place = (turn.agent.len() + turn.iteration as usize * 7_919) % self.names.len();
                let to = [place, place + 1].map(|place| &self.names[place % self.names.len()]);
                let to = if *to[0] == turn.agent { to[1] } else { to[0] };
                Action::SendMessage { to: Arc::clone(to), message_type: MessageType::Info, payload: payload() }
            }
            iteration if iteration + 1 < ITERATIONS => Action::ToolCall {
                tool: "web_search".into(),
                params: Content::Text(r#"{"query":"NVIDIA H100"}"#.to_owned()),
            },
            _ => Action::Done { response: Content::Text("US leads with NVIDIA dominance".to_owned()) },
        }
    }

    fn record(&mut self, event: Event) {
        self.seq += 1;
        let at = self.now();
        self.swarm.apply(&event, at);
        let Some(lines) = &mut self.lines else { return };
        let from = lines.len();
        serde_json::to_writer(&mut *lines, &Record { seq: self.seq, at, event }).expect("a record can be written");
        black_box(crc32fast::hash(&lines[from..]));
        if lines.len() > 1 << 16 {
            black_box(&*lines);
            lines.clear();
        }
    }
}

fn rules(agents: u32) -> Rules {
    let turn = TurnLimit { after_ms: 90_000, retries: 2 };
    let member = Member {
        name: None,
        names: Some("stations".to_owned()),
        count: agents,
        agent: "coder".to_owned(),
        task: None,
        origin: Origin::default(),
    };
    let swarm = swarmc_plan::Swarm {
        name: "team".to_owned(),
        description: None,
        goal: None,
        lead: None,
        members: vec![member],
        decompose: None,
        limits: SwarmLimits {
            agents,
            iterations: ITERATIONS,
            timeout_ms: 600_000,
            messages: MESSAGES,
            proposals: 10,
            items: 200,
            summary_feed: 20,
            context_reads: 3,
        },
        timeouts: SwarmTimeouts { turn, decompose: turn, synthesize: turn },
        history: History { recent: 3, recent_chars: 4_000, older_chars: 500, prompt_chars: 400_000, keep: 3 },
        workspace: WorkspaceView { per_topic: 5, entries: 5, snippet: 800 },
        ttl_ms: 172_800_000,
        convergence: Convergence { no_progress: 3, counts: ProgressRule::Messages, errors: 3 },
        retry: TransientRetry { backoff_ms: 5_000, max_backoff_ms: 30_000 },
        spawn: Spawn { approval: Approval::Auto, per_agent: 1 },
        spawns: None,
        channels: Vec::new(),
        items: Vec::new(),
        worktrees: Vec::new(),
        conflicts: swarmc_plan::Conflicts::default(),
        edges: Vec::new(),
        synthesize: None,
        budget: None,
        origin: Origin::default(),
    };
    Rules::new(&Plan::default(), &swarm)
}
