//! What an event costs the core of swarms, from 10 to 10,000 agents: the figures should not grow.
//!
//! Every sample is a whole swarm: each agent takes 25 turns, in twenty of which it writes to the next one, and every
//! answer comes at once; each event is decided, applied, and written as a line of the journal. Items are events.
//!
//! `team` is a swarm with a coordinator. Each member changes a file that three others change too, and does its item; the
//! coordinator gets a message about each item. Each tenth member broadcasts first; in `broadcasts` every member does.

use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use swarmc_plan::{
    Approval, Convergence, History, Lead, Member, Origin, Plan, PlanItem, Priority, ProgressRule, Spawn, SwarmLimits,
    SwarmTimeouts,
};
use swarmc_plan::{TransientRetry, TurnLimit, WorkspaceView};
use swarmc_runtime::swarm::{Action, Answer, MessageType, Rules, Swarm, SwarmCommand, TurnId, decide_swarm};
use swarmc_runtime::team::{TeamOp, Touch};
use swarmc_runtime::{AttemptId, Content, Event, Record, StepId, TeamFact, Usage};

const AGENTS: [u32; 4] = [10, 100, 1_000, 10_000];
const ITERATIONS: u32 = 25;
const MESSAGES: u32 = 20;

fn main() {
    divan::main();
}

/// Decided, applied and written.
#[divan::bench(args = AGENTS, sample_count = 5)]
fn whole(bencher: Bencher, agents: u32) {
    measure(bencher, agents, Kind::Written);
}

/// Decided and applied alone.
#[divan::bench(args = AGENTS, sample_count = 5)]
fn core(bencher: Bencher, agents: u32) {
    measure(bencher, agents, Kind::Core);
}

fn measure(bencher: Bencher, agents: u32, kind: Kind) {
    let rules = Arc::new(rules(agents));
    let events = Run::new(&rules, Kind::Core).go();
    bencher.counter(ItemsCount::new(events)).with_inputs(|| Run::new(&rules, kind)).bench_values(Run::go);
}

/// A team, decided and applied alone.
#[divan::bench(args = [10, 100, 1_000], sample_count = 5)]
fn team(bencher: Bencher, agents: u32) {
    measure_team(bencher, agents, 10);
}

#[divan::bench(args = [10, 100, 1_000], sample_count = 5)]
fn broadcasts(bencher: Bencher, agents: u32) {
    measure_team(bencher, agents, 1);
}

fn measure_team(bencher: Bencher, members: u32, posting: u32) {
    let rules = Arc::new(team_rules(members));
    let kind = Kind::Team { members, posting };
    let events = Run::new(&rules, kind).go();
    bencher.counter(ItemsCount::new(events)).with_inputs(|| Run::new(&rules, kind)).bench_values(Run::go);
}

/// What a sample is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Decided and applied.
    Core,
    /// Written as well.
    Written,
    /// Decided and applied, of a team in which each `posting`th member writes to all others.
    Team { members: u32, posting: u32 },
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
    kind: Kind,
    /// The items that are done.
    done: u32,
    /// The turns of each member of a team.
    turns: HashMap<Arc<str>, u32>,
}

impl Run {
    fn new(rules: &Arc<Rules>, kind: Kind) -> Run {
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
            lines: (kind == Kind::Written).then(Vec::new),
            kind,
            done: 0,
            turns: HashMap::new(),
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
                let answer = Answer::Acts(self.act(&turn).into());
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
            // Its answer comes to nothing.
            SwarmCommand::Cancel(_) => {}
            SwarmCommand::Conclude { agent, how, error } => {
                // The coordinator is the first, and the members follow in their order.
                let agent = agent.checked_sub(1).map_or_else(|| "lead".into(), |member| format!("m{member}").into());
                self.record(Event::AgentFinished { swarm: self.id.clone(), agent, how, response: None, error });
            }
            other => unreachable!("{other:?} is not asked for here"),
        }
        false
    }

    /// What a member of a team does: its name ends with the number of its item.
    fn act_in_team(&mut self, turn: &TurnId, (members, posting): (u32, u32)) -> Action {
        let Some(number) = turn.agent.strip_prefix('m') else {
            return match self.done == members {
                true => Action::Done { response: Content::Text("all of it".to_owned()) },
                false => Action::Idle,
            };
        };
        let position: u32 = number.parse().expect("a number");
        let turns = self.turns.entry(Arc::clone(&turn.agent)).or_default();
        *turns += 1;
        let before = u32::from(position.is_multiple_of(posting));
        match *turns - before {
            0 => {
                let message = Content::Text(r#"{"message":"parse() takes bytes now"}"#.to_owned());
                Action::Operate(TeamOp::Post { channel: None, message })
            }
            1 => {
                let path: Arc<str> = format!("src/{}.rs", position / 4).into();
                let touch = Touch { path, lines: Some((1, 9)), added: 1, removed: 1, diff: "- old\n+ new".to_owned() };
                let fact = TeamFact::Touched { agent: Arc::clone(&turn.agent), touch };
                self.record(Event::Team { swarm: self.id.clone(), fact });
                self.done += 1;
                Action::Operate(TeamOp::ItemDone { item: format!("i{number}").into(), summary: "done".to_owned() })
            }
            _ => Action::Idle,
        }
    }

    fn act(&mut self, turn: &TurnId) -> Action {
        if let Kind::Team { members, posting } = self.kind {
            return self.act_in_team(turn, (members, posting));
        }
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

/// A coordinator, and as many members with an item each.
fn team_rules(agents: u32) -> Rules {
    let mut swarm = swarm(agents + 1);
    swarm.lead = Some(Lead { name: "lead".to_owned(), agent: "coder".to_owned(), coordinator: true });
    let member =
        |number: u32| Member { name: Some(format!("m{number}")), names: None, count: 1, ..swarm.members[0].clone() };
    let members = (0..agents).map(member).collect();
    let item = |number: u32| PlanItem {
        name: format!("i{number}"),
        text: "Move the parser".to_owned(),
        owner: Some(format!("m{number}")),
        priority: Priority::Normal,
        depends_on: Vec::new(),
        checkpoints: Vec::new(),
        scope: Vec::new(),
    };
    swarm.items = (0..agents).map(item).collect();
    swarm.members = members;
    // Each completion wakes the coordinator.
    swarm.limits.iterations = agents * 4 + 100;
    swarm.limits.items = 1_024;
    Rules::new(&Plan::default(), &swarm)
}

fn rules(agents: u32) -> Rules {
    Rules::new(&Plan::default(), &swarm(agents))
}

fn swarm(agents: u32) -> swarmc_plan::Swarm {
    let turn = TurnLimit { after_ms: 90_000, retries: 2 };
    let member = Member {
        name: None,
        names: Some("stations".to_owned()),
        count: agents,
        agent: "coder".to_owned(),
        task: None,
        origin: Origin::default(),
    };
    swarmc_plan::Swarm {
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
    }
}
