//! A simulated swarm: a script gives every answer beforehand, and the swarm runs on a clock of its own.
//!
//! In: a roster (`takao mitaka nara?`, where `?` has no task and `*` no name) and a script with a line for each agent:
//! `*` for agents with a generated name, `split` and `merge` for the supervisor. Semicolons separate turns; bars
//! separate the answers of a repeated turn and the results of a repeated call:
//! `takao: 429 | tool search = 503 | found; done US`. An answer takes a second, or the milliseconds behind `@`. The
//! last turn is repeated.
//!
//! The tool `gated` needs an approval, and so does a helper if the rules say so. In even iterations a person allows it
//! after 400 seconds, in odd ones denies it after two, unless the world says otherwise.
//!
//! Out: the events, a line for each. Invariant: an answer and its time depend on the turn alone, so that an interrupted
//! swarm meets the same world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swarmc_plan::{Convergence, ProgressRule, SwarmLimits, TransientRetry, TurnLimit};

use super::lines::{line_of, read_text};
use super::merge::run_git;
use crate::core::swarm::action::{RawAction, TeamPart, parse_action};
use crate::core::swarm::rules::{Place, Rules};
use crate::core::swarm::state::{AgentStage, Swarm};
use crate::core::swarm::{Part, SwarmCommand, decide_swarm};
use crate::types::approval::{Choice, Request, RequestKind, Verdict};
use crate::types::event::{AnsweredBy, AttemptId, Content, Event, StepId};
use crate::types::swarm::{Action, Answer, End, Fault, MessageType, Purpose, TurnId};
use crate::types::team::TeamReading;
use crate::types::team_fact::TeamFact;

/// The rules of a swarm that says nothing but who takes part.
pub(crate) fn rules(roster: &str) -> Rules {
    let turn = |after_ms, retries| TurnLimit { after_ms, retries };
    let place = |(position, word): (usize, &str)| {
        let (word, plays) = word.split_once(':').unwrap_or((word, "coder"));
        let name = word.trim_end_matches('?');
        Place {
            member: position as u32,
            name: (name != "*").then(|| name.into()),
            plays: plays.into(),
            has_task: !word.ends_with('?'),
        }
    };
    let roster: Vec<Place> = roster.split_whitespace().enumerate().map(place).collect();
    Rules {
        limits: SwarmLimits {
            agents: 10,
            iterations: 25,
            timeout_ms: 600_000,
            messages: 20,
            proposals: 10,
            items: 200,
            summary_feed: 20,
            context_reads: 3,
        },
        convergence: Convergence { no_progress: 3, counts: ProgressRule::Tools, errors: 3 },
        retry: TransientRetry { backoff_ms: 5_000, max_backoff_ms: 30_000 },
        turn: turn(90_000, 2),
        decompose: turn(600_000, 3),
        synthesize: turn(600_000, 3),
        ttl_ms: 172_800_000,
        helpers: 1,
        gated: false,
        per_topic: 5,
        parts: None,
        declared: roster.iter().filter_map(|place| place.name.clone()).collect(),
        roster,
        merges: false,
        fallbacks: BTreeMap::new(),
        edges: None,
        lead: None,
        merger: None,
        coordinator: None,
        items: Vec::new(),
        channels: BTreeMap::new(),
        spawns: None,
        plan_update: swarmc_plan::Approval::Coordinator,
        on_timeout: None,
        worktrees: BTreeMap::new(),
        integrate: swarmc_plan::Approval::Human,
        conflicts: swarmc_plan::Conflicts::default(),
        asks_transcripts: false,
    }
}

/// A swarm with a lead that splits its goal and merges its results.
pub(super) fn led(roster: &str) -> Rules {
    let lead: Option<Arc<str>> = Some("chief".into());
    Rules { merges: true, parts: Some(10), merger: lead.clone(), lead, ..rules(roster) }
}

/// The swarm.
pub(super) fn id() -> AttemptId {
    AttemptId::new(&StepId::new("team", 1, 1), 1)
}

/// Runs a swarm to its end.
pub(super) fn run(rules: Rules, script: &str) -> World {
    World::new(rules, script).go()
}

/// A swarm while it runs, and afterwards.
#[derive(Debug)]
pub(crate) struct World {
    rules: Arc<Rules>,
    script: Arc<BTreeMap<String, Vec<Turn>>>,
    pub(crate) clock: u64,
    pub(crate) swarm: Swarm,
    pub(crate) events: Vec<(u64, Event)>,
    /// After how many events it is interrupted.
    pub(super) crashes: BTreeSet<usize>,
    /// When it was interrupted: after how many events, and the time.
    resumed: Vec<(usize, u64)>,
    /// Additional events that change nothing, by the number of events before them.
    pub(super) noise: BTreeMap<usize, Vec<Noise>>,
    /// The answers to come, in order.
    open: BTreeMap<(u64, TurnId, bool), Event>,
    dues: BTreeMap<(TurnId, bool), u64>,
    /// The turns and calls that were ended.
    pub(super) cancelled: Vec<TurnId>,
    /// What a person says to every request, and after how long; none: as above.
    pub(super) says: Option<(Choice, u64)>,
    /// The requests and their answers, each with the number of events before it, and its time.
    pub(super) approvals: Vec<(usize, u64, Approval)>,
    /// The answers to them that are still to come.
    verdicts: BTreeMap<(u64, u32), Approval>,
}

/// What happens to a request.
#[derive(Clone, Debug)]
pub(super) enum Approval {
    Asked(Request),
    Answered(Arc<str>, Verdict),
}

/// An event that does not fit.
#[derive(Clone, Debug)]
pub(super) enum Noise {
    /// One of those before, counted from the last, once more.
    Again(usize),
    /// This one.
    Foreign(Box<Event>),
}

/// A turn of a script.
#[derive(Debug, Default)]
struct Turn {
    answers: Vec<(String, u64)>,
    results: Vec<(String, u64)>,
}

impl World {
    pub(crate) fn new(rules: Rules, script: &str) -> World {
        let rules = Arc::new(rules);
        let swarm = Swarm::new(id(), Arc::clone(&rules), "r1", Content::Text("the goal".to_owned()));
        World {
            rules,
            script: Arc::new(script.lines().filter_map(line).collect()),
            clock: 0,
            swarm,
            events: Vec::new(),
            crashes: BTreeSet::new(),
            resumed: Vec::new(),
            noise: BTreeMap::new(),
            open: BTreeMap::new(),
            dues: BTreeMap::new(),
            cancelled: Vec::new(),
            says: None,
            approvals: Vec::new(),
            verdicts: BTreeMap::new(),
        }
    }

    /// Runs it to its end.
    pub(crate) fn go(mut self) -> World {
        self.drain();
        while !self.swarm.is_over {
            assert!(self.events.len() < 100_000, "it never ends");
            self.step();
        }
        assert_eq!(decide_swarm(&mut self.swarm, u64::MAX), None, "what is over orders nothing");
        self
    }

    /// Waits for one thing to happen, and carries out what follows.
    pub(crate) fn step(&mut self) {
        let answer = self.open.keys().next().map(|(due, ..)| *due);
        let verdict = self.verdicts.keys().next().map(|(due, _)| *due);
        let time = answer.into_iter().chain(self.swarm.due()).chain(verdict).min();
        self.clock = self.clock.max(time.expect("it waits for something"));
        if let Some(entry) = self.verdicts.first_entry().filter(|entry| entry.key().0 <= self.clock) {
            let answered = entry.remove();
            self.agree(answered);
            return self.drain();
        }
        if let Some(entry) = self.open.first_entry().filter(|entry| entry.key().0 <= self.clock) {
            let event = entry.remove();
            self.record(event);
        }
        self.drain();
    }

    /// Carries out what there is to do now.
    pub(crate) fn drain(&mut self) {
        while let Some(order) = decide_swarm(&mut self.swarm, self.clock) {
            self.carry_out(order);
        }
    }

    fn carry_out(&mut self, order: SwarmCommand) {
        let text = |words: String| Some(Content::Text(words));
        match order {
            SwarmCommand::Record(event) => self.record(*event),
            SwarmCommand::Spawn { place, name, plays, task } => {
                let own = self.rules.roster.get(place as usize).is_some_and(|place| place.has_task);
                let task = if own { text(format!("the task of {name}")) } else { task };
                self.record(Event::AgentSpawned {
                    swarm: id(),
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
                let (answer, takes) = self.answer(&turn);
                let tokens = Some(crate::Usage { input: 100, output: 10, ..crate::Usage::default() });
                let (cost, model) = (Some(7), Some("m1".to_owned()));
                let ended = Event::TurnEnded {
                    swarm: id(),
                    turn: turn.clone(),
                    answer,
                    usage: tokens,
                    cost,
                    model,
                    session: None,
                };
                let reserved = Some(crate::types::event::Reserved { calls: 1, tokens: Some(1_000), cost: None });
                self.begin(turn.clone(), false, takes, ended);
                self.record(Event::TurnStarted { swarm: id(), turn, reserved });
            }
            SwarmCommand::Call(turn) if let Some((tool, ended)) = run_git(&self.swarm, &turn) => {
                self.begin(turn.clone(), true, 1_000, ended);
                self.record(Event::ToolStarted { swarm: id(), turn, tool });
            }
            SwarmCommand::Call(turn) => {
                let agent = self.swarm.agent(&turn.agent).expect("the caller is there");
                let AgentStage::Calling(act, true) = &agent.stage else { panic!("{} does not call", turn.agent) };
                let Action::ToolCall { tool, .. } = &**act else { panic!("{} calls no tool", turn.agent) };
                let tool = Arc::clone(tool);
                if *tool == *"gated" && agent.agreed.is_none() {
                    let wants = RequestKind::Tool {
                        tool,
                        arguments: Content::Text("{}".to_owned()),
                        schema: None,
                        fixed: false,
                    };
                    return self.wanted(&turn.agent, wants);
                }
                let (result, takes) = self.result(&turn);
                let fault = fault(&result);
                let ended = Event::ToolEnded { swarm: id(), turn: turn.clone(), result: Content::Text(result), fault };
                self.begin(turn.clone(), true, takes, ended);
                self.record(Event::ToolStarted { swarm: id(), turn, tool });
            }
            SwarmCommand::Agree { agent, wants } => {
                let agent = Arc::clone(&self.swarm.agents[agent as usize].name);
                self.wanted(&agent, wants);
            }
            SwarmCommand::Read { agent, what } => {
                let team = self.swarm.team.as_ref().expect("it is a team");
                let of = match &what {
                    TeamReading::Summary { of } => of.as_deref(),
                    TeamReading::Transcript { of } => Some(&**of),
                    TeamReading::Plan => None,
                };
                let text = Content::Text(team.feed.list_lines(of, self.rules.limits.summary_feed as usize).join("\n"));
                let agent = Arc::clone(&self.swarm.agents[agent as usize].name);
                self.record(Event::Team { swarm: id(), fact: TeamFact::ContextRead { agent, what, text } });
            }
            SwarmCommand::Cancel(turn) => {
                self.open.retain(|(_, open, _), _| *open != turn);
                self.cancelled.push(turn);
            }
            SwarmCommand::Conclude { agent, how, error } => {
                let agent = &self.swarm.agents[agent as usize];
                let past = agent.history.iter().rev().take(3).rev().map(|past| past.iteration.to_string());
                let past: Vec<String> = past.collect();
                let response = (!past.is_empty() && !matches!(how, End::Unneeded | End::Released))
                    .then(|| format!("turns {}", past.join(" ")));
                let agent = Arc::clone(&agent.name);
                self.record(Event::AgentFinished {
                    swarm: id(),
                    agent,
                    how,
                    response: response.map(Content::Text),
                    error,
                });
            }
            SwarmCommand::Finish => {
                let results = self.swarm.results().filter_map(|agent| agent.end.as_ref()?.response.as_ref());
                let results: Vec<&str> = results.map(read_text).collect();
                let result = self.swarm.merged.clone().or(text(results.join(" + ")));
                self.record(Event::SwarmFinished { swarm: id(), result, error: None });
            }
            SwarmCommand::Fail(why) => {
                self.record(Event::SwarmFinished { swarm: id(), result: None, error: Some(why) })
            }
        }
    }

    fn wanted(&mut self, agent: &Arc<str>, wants: RequestKind) {
        let iteration = self.swarm.agent(agent).expect("the requester is there").iteration;
        let (choice, takes) = self.says.unwrap_or(match iteration % 2 {
            1 => (Choice::Allow, 400_000),
            _ => (Choice::Deny, 2_000),
        });
        let id = self.approvals.len() as u32 + 1;
        let verdict = Verdict { id, choice, by: AnsweredBy::Person, because: None, arguments: None };
        self.verdicts.insert((self.clock + takes, id), Approval::Answered(Arc::clone(agent), verdict));
        self.agree(Approval::Asked(Request { id, agent: Arc::clone(agent), wants }));
    }

    /// Something happened to a request.
    pub(super) fn agree(&mut self, approval: Approval) {
        approval.apply(&mut self.swarm, self.clock);
        self.approvals.push((self.events.len(), self.clock, approval));
    }

    fn begin(&mut self, turn: TurnId, is_call: bool, takes: u64, ended: Event) {
        let asked = self.clock + takes;
        let due = *self.dues.entry((turn.clone(), is_call)).or_insert(asked);
        self.open.insert((due.max(self.clock), turn, is_call), ended);
    }

    /// Something happened.
    pub(crate) fn record(&mut self, event: Event) {
        self.swarm.apply(&event, self.clock);
        self.events.push((self.clock, event));
        let count = self.events.len();
        for noise in self.noise.remove(&count).unwrap_or_default() {
            let event = match noise {
                Noise::Again(back) => self.events[(count - 1).saturating_sub(back)].1.clone(),
                Noise::Foreign(event) => *event,
            };
            if !self.is_plain(&event) {
                self.swarm.apply(&event, self.clock);
            }
        }
        if self.crashes.contains(&count) {
            self.open.clear();
            self.resumed.push((count, self.clock));
            self.swarm = self.replayed();
        }
    }

    /// Events that name no turn come from the driver alone, which records each at once: they cannot be late.
    fn is_plain(&self, event: &Event) -> bool {
        let plain =
            matches!(event, Event::ActionRefused { .. } | Event::AgentIdled { .. } | Event::HelpRequested { .. });
        let acts = |agent: &crate::core::swarm::state::Agent| {
            matches!(agent.stage, AgentStage::Acting(_) | AgentStage::Helping(..) | AgentStage::Denied(..))
        };
        plain && event.agent().and_then(|agent| self.swarm.agent(agent)).is_some_and(acts)
    }

    /// The state that another process folds from the events.
    pub(super) fn replayed(&self) -> Swarm {
        let mut swarm = Swarm::new(id(), Arc::clone(&self.rules), "r1", Content::Text("the goal".to_owned()));
        let mut resumed = self.resumed.iter().peekable();
        let mut approvals = self.approvals.iter().peekable();
        for (index, (at, event)) in self.events.iter().enumerate() {
            swarm.apply(event, *at);
            while let Some((_, at)) = resumed.next_if(|(count, _)| *count == index + 1) {
                swarm.resume_swarm(0, *at);
            }
            while let Some((_, at, approval)) = approvals.next_if(|(count, ..)| *count == index + 1) {
                approval.apply(&mut swarm, *at);
            }
        }
        swarm
    }

    fn turn(&self, turn: &TurnId) -> Option<&Turn> {
        let line = match turn.purpose {
            Purpose::Act => self.script.get(&*turn.agent).or_else(|| self.script.get("*")),
            Purpose::Decompose => self.script.get("split"),
            Purpose::Synthesize => self.script.get("merge"),
        };
        line.and_then(|turns| turns.get(turn.iteration as usize - 1).or(turns.last()))
    }

    fn answer(&self, turn: &TurnId) -> (Answer, u64) {
        let spoken = self.turn(turn).and_then(|it| it.answers.get(turn.attempt as usize - 1).or(it.answers.last()));
        let (words, takes) = spoken.unwrap_or_else(|| panic!("nothing answers {turn:?}"));
        // Who asks waits no longer than the rules say.
        let limit = match turn.purpose {
            Purpose::Act => self.rules.turn,
            Purpose::Decompose => self.rules.decompose,
            Purpose::Synthesize => self.rules.synthesize,
        };
        match *takes > limit.after_ms {
            true => (failed("timed out", Fault::Transient { after_ms: 0 }), limit.after_ms),
            false => (answer(words), *takes),
        }
    }

    fn result(&self, turn: &TurnId) -> (String, u64) {
        let results = self.turn(turn).map(|turn| turn.results.as_slice()).unwrap_or_default();
        let result = results.get(turn.attempt as usize - 1).or(results.last()).cloned();
        result.unwrap_or_else(|| ("found".to_owned(), 1_000))
    }

    /// The events that contain one of the words, with their times.
    pub(super) fn told(&self, wanted: &[&str]) -> String {
        let lines = self.events.iter().map(|(at, event)| format!("{at} {}", line_of(event)));
        let has = |line: &String| wanted.iter().any(|word| line.contains(word));
        lines.filter(has).collect::<Vec<_>>().join("\n")
    }

    /// How many events contain a word.
    pub(super) fn count(&self, word: &str) -> usize {
        self.events.iter().filter(|(_, event)| line_of(event).contains(word)).count()
    }

    pub(super) fn agent(&self, name: &str) -> &crate::core::swarm::state::Agent {
        self.swarm.agent(name).unwrap_or_else(|| panic!("{name} is there"))
    }
}

impl Approval {
    fn apply(&self, swarm: &mut Swarm, at: u64) {
        match self {
            Approval::Asked(request) => swarm.pause_for_approval(request, at),
            Approval::Answered(agent, verdict) => _ = swarm.apply_verdict(agent, verdict, at),
        }
    }
}

fn line(line: &str) -> Option<(String, Vec<Turn>)> {
    let (name, turns) = line.trim().split_once(':')?;
    let timed = |text: &str| {
        let timed =
            text.rsplit_once('@').and_then(|(text, ms)| Some((text.trim().to_owned(), ms.trim().parse().ok()?)));
        timed.unwrap_or_else(|| (text.trim().to_owned(), 1_000))
    };
    let turn = |turn: &str| {
        let (answers, results) = turn.split_once('=').unwrap_or((turn, ""));
        let results = results.split('|').filter(|result| !result.trim().is_empty());
        Turn { answers: answers.split('|').map(timed).collect(), results: results.map(timed).collect() }
    };
    Some((name.trim().to_owned(), turns.split(';').map(turn).collect()))
}

fn failed(message: &str, fault: Fault) -> Answer {
    Answer::Failed { message: message.to_owned(), fault }
}

/// How the result of a tool is a failure: `503` may pass, `broken` stays.
fn fault(result: &str) -> Option<Fault> {
    match result {
        "broken" => Some(Fault::Permanent),
        result if result.parse::<u32>().is_ok() => Some(Fault::Transient { after_ms: 0 }),
        _ => None,
    }
}

fn answer(text: &str) -> Answer {
    let text_of = |words: &str| Content::Text(words.to_owned());
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    let (second, last) = rest.split_once(' ').unwrap_or((rest, ""));
    let act = match first {
        "tool" => Action::ToolCall { tool: second.into(), params: text_of("{}") },
        "publish" => Action::PublishData { topic: second.into(), data: text_of(last) },
        "send" => {
            let (kind, payload) = last.split_once(' ').unwrap_or((last, ""));
            let kind = MessageType::ALL.into_iter().find(|known| known.as_str() == kind).expect("a type of message");
            Action::SendMessage { to: second.into(), message_type: kind, payload: text_of(payload) }
        }
        "help" => {
            let (what, skills) = rest.split_once(" with ").unwrap_or((rest, ""));
            let skills = skills.split_whitespace().map(str::to_owned).collect();
            Action::RequestHelp { description: text_of(what), skills }
        }
        "done" => Action::Done { response: text_of(rest) },
        "idle" => Action::Idle,
        json if json.starts_with('{') => match parse_action(text, None, TeamPart::None).expect("an action") {
            RawAction::Operate(op) => Action::Operate(op),
            other => panic!("`{text}` is no operation: {other:?}"),
        },
        "invalid" => return Answer::Invalid("it is no action".to_owned()),
        "crash" => return failed("it went away", Fault::Crashed),
        "refuse" => return failed("401", Fault::Permanent),
        "budget" => return failed("the budget is spent", Fault::Budget),
        "later" => return failed("429", Fault::Transient { after_ms: rest.parse().expect("milliseconds") }),
        "split" => {
            let part = |part: &str| {
                let (task, name) = part.split_once(" for ").map_or((part, None), |(task, name)| (task, Some(name)));
                Part { task: text_of(task), name: name.map(Arc::from) }
            };
            return Answer::Split(rest.split(',').map(|part_of| part(part_of.trim())).collect());
        }
        "merged" => return Answer::Merged(text_of(rest)),
        transient => {
            assert!(transient.parse::<u32>().is_ok(), "`{text}` is an answer");
            return failed(transient, Fault::Transient { after_ms: 0 });
        }
    };
    Answer::Acts(act.into())
}
