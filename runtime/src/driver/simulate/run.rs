//! Runs the core in a simulated world: carries its commands out, and checks every record against the rules that no
//! order of events may break.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use swarmc_plan::{Body, Plan};

use super::model;
use super::world::World;
use crate::core::reopen::{Retry, Running, reopen};
use crate::core::reopened_records::effective;
use crate::core::samples;
use crate::core::state::frame::{Frame, Step};
use crate::types::event::{AnsweredBy, Content, Event, Failure, Outcome, Record, RunStatus, StepId};
use crate::{Command, State, decide_commands};

/// A run.
pub(crate) struct Run<'a> {
    plan: &'a Plan,
    world: World,
    pub(crate) state: State,
    /// A state that only folds: what `decide` has in hand must not change what happened.
    shadow: State,
    pub(crate) records: Vec<Record>,
    now: u64,
    /// What will happen, by time and then in the order in which it was brought about; nothing is a wake-up.
    coming: BTreeMap<(u64, u64), Option<Event>>,
    brought: u64,
    /// Attempts that ended for good.
    ended: BTreeSet<(StepId, u32)>,
    open: BTreeSet<StepId>,
    /// Record a stop once so many records are there.
    stop_at: Option<usize>,
}

impl<'a> Run<'a> {
    pub(crate) fn start(plan: &'a Plan, world: World) -> Run<'a> {
        let mut run = Run::fold(plan, world, &[]);
        run.record(Event::run_started("run", &plan.pipelines[0].name));
        run
    }

    /// Goes on after a crash that left these records.
    pub(crate) fn resume(plan: &'a Plan, world: World, records: &[Record]) -> Run<'a> {
        let mut run = Run::fold(plan, world, records);
        run.open.clear();
        run.record(Event::RunResumed);
        let asking: Vec<StepId> = run.state.open_steps().filter(|open| open.asking).map(|open| open.step).collect();
        asking.into_iter().for_each(|gate| run.answer(gate));
        run
    }

    /// Goes on after the end that these records tell of.
    pub(crate) fn reopen(plan: &'a Plan, world: World, records: &[Record], retry: &Retry) -> Result<Run<'a>, String> {
        let graph = samples::graph_of(plan);
        let running = Running { plan, pipeline: &plan.pipelines[0], graph: &graph };
        let reopened = || reopen("run", records, (running, running), retry);
        let mut run = Run::fold(plan, world, records);
        (run.state, run.shadow) = (reopened()?.state, reopened()?.state);
        run.open.clear();
        reopened()?.events.into_iter().for_each(|event| run.record(event));
        let asking: Vec<StepId> = run.state.open_steps().filter(|open| open.asking).map(|open| open.step).collect();
        asking.into_iter().for_each(|gate| run.answer(gate));
        Ok(run)
    }

    pub(crate) fn stop_at(mut self, records: usize) -> Run<'a> {
        self.stop_at = Some(records);
        self
    }

    /// Runs until nothing is left to happen.
    pub(crate) fn go(mut self) -> Run<'a> {
        for _ in 0..20_000 {
            let commands = decide_commands(&mut self.state, self.now);
            let idle = commands.is_empty();
            commands.into_iter().for_each(|command| self.carry_out(command));
            if let Some(((time, _), event)) = self.coming.pop_first() {
                self.now = self.now.max(time);
                event.into_iter().for_each(|event| self.record(event));
            } else if idle {
                self.check_end();
                return self;
            }
        }
        panic!("the run does not end:\n{}", self.story());
    }

    pub(crate) fn finished(&self) -> Option<RunStatus> {
        self.state.final_status()
    }

    fn fold(plan: &'a Plan, world: World, records: &[Record]) -> Run<'a> {
        let graph = samples::graph_of(plan);
        let mut run = Run {
            plan,
            world,
            state: State::replay(Arc::clone(&graph), records),
            shadow: State::replay(graph, records),
            records: Vec::new(),
            now: records.last().map_or(1_000, |record| record.at),
            coming: BTreeMap::new(),
            brought: 0,
            ended: BTreeSet::new(),
            open: BTreeSet::new(),
            stop_at: None,
        };
        for record in records {
            run.note(&record.event);
            run.records.push(record.clone());
        }
        run
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            // The simulated world has none.
            Command::Swarm { .. } => {}
            Command::Start { step, attempt } => {
                let begins = self.world.delay("start", &step);
                let (takes, succeeds) = self.world.attempt(&step, attempt);
                let takes = if self.is_task(&step) { takes } else { 0 };
                let failure = (!succeeds).then_some(Failure::Exit);
                let outcome = Outcome { failure, exit: Some(i32::from(!succeeds)), ..Outcome::default() };
                self.bring(
                    begins,
                    Event::AttemptStarted { step: step.clone(), attempt, reserved: None, summarizer: None },
                );
                self.bring(begins + takes, Event::AttemptEnded { step, attempt, outcome });
            }
            Command::Judge { step } => {
                let (holds, error) = match self.world.condition(&step) {
                    Ok(holds) => (holds, None),
                    Err(error) => (false, Some(error)),
                };
                self.bring(self.world.delay("judge", &step), Event::ConditionJudged { step, holds, error });
            }
            Command::JudgeRound { instance, iteration, within } => {
                let holds = self.world.until(instance, iteration, within.as_deref());
                self.bring(0, Event::RoundJudged { instance, iteration, holds, within });
            }
            Command::Skip { step, reason } => {
                self.bring(self.world.delay("skip", &step), Event::StepSkipped { step, reason });
            }
            Command::Cancel { step, attempt } => {
                self.coming.retain(|_, event| match event {
                    Some(Event::AttemptStarted { step: other, .. } | Event::AttemptEnded { step: other, .. }) => {
                        *other != step
                    }
                    _ => true,
                });
                let outcome = Outcome { failure: Some(Failure::Cancelled), ..Outcome::default() };
                self.bring(self.world.delay("cancel", &step), Event::AttemptEnded { step, attempt, outcome });
            }
            Command::WakeAt(time) => {
                self.brought += 1;
                self.coming.insert((time, self.brought), None);
            }
            Command::Open { step, attempt } => {
                let begins = self.world.delay("open", &step);
                let items = model::find(self.plan, &step.name).for_each.as_ref().map(|_| self.world.items(&step));
                let is_each = self.state.find_step(&step).is_some_and(|key| self.state.frame(key.frame).item.is_none());
                let event = match items.filter(|_| is_each) {
                    Some(None) => {
                        let outcome = Outcome { failure: Some(Failure::Exit), ..Outcome::default() };
                        self.bring(
                            begins,
                            Event::AttemptStarted { step: step.clone(), attempt, reserved: None, summarizer: None },
                        );
                        Event::AttemptEnded { step, attempt, outcome }
                    }
                    items => Event::Opened { step, attempt, items: items.flatten(), list: None, params: None },
                };
                self.bring(begins, event);
            }
            Command::Conclude { step, attempt, failure } => {
                let outcome = Outcome { failure, ..Outcome::default() };
                let delay = self.world.delay("conclude", &step);
                self.bring(delay, Event::AttemptEnded { step, attempt, outcome });
            }
            Command::Ask { step } => {
                let delay = self.world.delay("ask", &step);
                self.bring(delay, Event::GateOpened { step, message: Content::Text(String::new()) });
            }
            Command::TimeOut { step } => {
                let choice = Some("yes".to_owned());
                self.bring(0, Event::GateAnswered { step, choice, output: None, by: AnsweredBy::Timeout });
            }
            // The simulated world ignores repeated results and expired requests.
            Command::AskToGoOn { .. } | Command::Expire { .. } => {}
            Command::Overdue => self.bring(0, Event::BudgetSpent { message: String::new(), graceful: false }),
            Command::Close { step, owes } => self.bring(0, Event::NodeClosed { step, owes }),
            Command::Finish { status } => self.bring(0, Event::RunFinished { status }),
        }
    }

    /// Lets something happen after so many milliseconds; at once when that is now and the driver is not lazy.
    fn bring(&mut self, after: u64, event: Event) {
        self.brought += 1;
        match after == 0 && !self.world.lazy && !matches!(event, Event::AttemptEnded { .. }) {
            true => self.record(event),
            false => drop(self.coming.insert((self.now + after, self.brought), Some(event))),
        }
    }

    /// A person answers a gate, or does not.
    fn answer(&mut self, step: StepId) {
        if let Some((delay, yes)) = self.world.answer(&step) {
            let choice = yes.then(|| "yes".to_owned());
            self.brought += 1;
            let event = Event::GateAnswered { step, choice, output: None, by: AnsweredBy::Person };
            self.coming.insert((self.now + delay, self.brought), Some(event));
        }
    }

    fn record(&mut self, event: Event) {
        self.check(&event);
        self.note(&event);
        if let Event::GateOpened { step, .. } = &event {
            self.answer(step.clone());
        }
        let record = Record { seq: self.records.len() as u64 + 1, at: self.now, event };
        self.state.apply(&record);
        self.shadow.apply(&record);
        self.records.push(record);
        assert!(same(&self.state, &self.shadow), "orders changed the facts:\n{}", self.story());
        if self.stop_at == Some(self.records.len()) {
            self.record(Event::StopRequested);
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::AttemptStarted { step, .. } => drop(self.open.insert(step.clone())),
            Event::AttemptEnded { step, attempt, outcome } => {
                self.open.remove(step);
                if outcome.failure != Some(Failure::Cancelled) {
                    self.ended.insert((step.clone(), *attempt));
                }
            }
            _ => {}
        }
    }

    /// What no order of events may break.
    fn check(&self, event: &Event) {
        let Event::AttemptStarted { step, attempt, .. } = event else { return };
        let story = || format!("{step} attempt {attempt}\n{}", self.story());
        assert!(!self.ended.contains(&(step.clone(), *attempt)), "an attempt that ended runs again: {}", story());
        assert!(!self.open.contains(step), "a step runs twice at once: {}", story());
        let declared = model::find(self.plan, &step.name);
        let frame = self.state.find_step(step).unwrap().frame;
        if self.state.frame(frame).item.is_none() {
            let status = |name: &str| self.state.read_from_frame(frame, name).and_then(|read| read.status);
            assert!(model::allowed(declared, &status) == Some(true), "needs do not allow: {}", story());
        }
        if self.is_task(step) {
            let tasks = self.open.iter().filter(|other| self.is_task(other)).count() as u32;
            assert!(
                self.plan.pipelines[0].concurrency.is_none_or(|limit| tasks < limit),
                "too many at once: {}",
                story()
            );
            let same = self.open.iter().filter(|other| other.name == step.name && self.is_task(other)).count() as u32;
            assert!(declared.concurrency.is_none_or(|limit| same < limit), "too many of a name: {}", story());
        }
    }

    /// Nothing happens any more: the run has ended, or a person stopped it.
    fn check_end(&self) {
        let running = self.state.open_steps().filter(|open| open.running).count();
        assert_eq!(running, 0, "an attempt stays open:\n{}", self.story());
        assert!(self.state.final_status().is_some() || self.state.is_stopping(), "the run is stuck:\n{}", self.story());
        if self.state.final_status().is_some() {
            let finishes = effective(&self.records);
            let finishes = finishes.iter().filter(|record| matches!(record.event, Event::RunFinished { .. }));
            assert_eq!(finishes.count(), 1, "the run ended twice:\n{}", self.story());
        }
    }

    fn is_task(&self, step: &StepId) -> bool {
        let declared = model::find(self.plan, &step.name);
        let is_each = declared.for_each.is_some()
            && self.state.find_step(step).is_none_or(|key| self.state.frame(key.frame).item.is_none());
        matches!(declared.body, Body::Prompt(_) | Body::Run(_)) && !is_each
    }

    /// The records, one a line, and where every step stands.
    fn story(&self) -> String {
        let mut text = String::new();
        for record in &self.records {
            writeln!(text, "{:>4} {:?}", record.at, record.event).unwrap();
        }
        text + &facts(&self.state)
    }
}

/// Whether two states agree in all that records alone decide.
pub(crate) fn same(one: &State, other: &State) -> bool {
    let rest = |state: &State| (state.is_stopping(), state.counts(), state.final_status());
    let instances = |state: &State| state.frames.iter().map(frame_facts).collect::<Vec<_>>();
    rest(one) == rest(other) && one.open_steps().eq(other.open_steps()) && instances(one) == instances(other)
}

/// What records alone decide about a state, to be read.
fn facts(state: &State) -> String {
    let mut text = format!("stopping {} open {:?}\n", state.is_stopping(), state.open_steps().collect::<Vec<_>>());
    for (number, instance) in (1..).zip(&state.frames) {
        writeln!(text, "{number} {:?}", frame_facts(instance)).unwrap();
    }
    text
}

fn frame_facts(instance: &Frame) -> impl PartialEq + std::fmt::Debug + use<> {
    let step = |step: &Step| {
        (step.phase, step.attempt, step.waiting, step.held, step.started, step.fault, step.detail.clone())
    };
    let place = (instance.path.clone(), instance.parent, instance.item);
    let end = (place, instance.ending.clone(), instance.cut, instance.dropped, instance.judging, instance.end);
    let round = (instance.iteration, instance.unsettled, instance.stops.clone(), instance.unhandled.clone());
    (round, end, instance.steps.iter().map(step).collect::<Vec<_>>())
}
