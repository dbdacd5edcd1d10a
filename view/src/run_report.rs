//! The report of a run, for people: how each step ended, folded from the run's records.
//!
//! The runtime's state covers only the current round; the report keeps a row for every round, with times, attempts and
//! reasons.

mod approvals;
mod row;
mod usage;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swarmc_plan::{Body, Gate, GateDefault, GateTimeout, OnFailure, Pipeline, Plan, RequestTimeout, StopStatus};
use swarmc_runtime::{Event, Failure, Outcome, Record, RunStatus, Status, StepId, pairs};

use self::words::{add_usage, describe_failure};

pub use self::row::{Counts, EnvelopeCounts, Row, RowState};
pub use self::words::describe_saving;
use crate::approvals::OpenRequest;
use crate::change::Change;
use crate::team::Team;

/// The rows of one run. What the plan says is in no snapshot of it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct RunReport {
    /// The steps, in the order in which they began.
    pub rows: Vec<Row>,
    /// The id of the run.
    pub run: String,
    /// How many steps a round has, over all instances.
    pub total: usize,
    /// The most rounds of the pipeline.
    pub rounds: u32,
    /// The instances of the pipeline.
    pub instances: u32,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When its last record was written, in milliseconds since 1970.
    pub changed_ms: u64,
    /// How it ended; none where it goes on.
    pub finished: Option<RunStatus>,
    #[serde(skip)]
    index: HashMap<StepId, usize>,
    /// For each step how often it is tried, and whether its failure counts as a skip.
    #[serde(skip)]
    rules: HashMap<String, (u32, bool)>,
    /// The attempts in which an agent mends what failed, by step.
    #[serde(skip)]
    mended: HashMap<String, u32>,
    /// The attempts after whose failure a person decides, by step.
    #[serde(skip)]
    escalated: HashMap<String, u32>,
    /// The `stop`s of the pipeline, with how they end it, and its loops.
    #[serde(skip)]
    stops: HashMap<String, StopStatus>,
    #[serde(skip)]
    loops: HashSet<String>,
    /// What is asked, by the name of the gate or of the step that failed.
    #[serde(skip)]
    pub gates: HashMap<String, Gate>,
    /// The declared swarm of a step, by the name of the step.
    #[serde(skip)]
    swarms: HashMap<String, swarmc_plan::Swarm>,
    /// The swarms of the run's steps, in their last attempt.
    #[serde(with = "pairs")]
    pub teams: HashMap<StepId, Team>,
    /// The open requests of agents, by number.
    pub approvals: BTreeMap<u32, OpenRequest>,
    /// What the run does with a request without an answer in time.
    #[serde(skip)]
    on_timeout: Option<RequestTimeout>,
    /// What agents may do for the rest of the run: the agent's swarm, the agent, and the action in words.
    pub always: BTreeSet<(Option<Arc<str>>, Arc<str>, String)>,
    /// The steps that edges lead to, so that they have further turns.
    #[serde(skip)]
    nodes: HashSet<String>,
    /// The round that each instance, and each loop, item and call, is in.
    #[serde(with = "pairs")]
    current: HashMap<(u32, Option<Arc<str>>), u32>,
    /// The steps that are about to run again, with the attempts that they go on with.
    reopening: Vec<(StepId, u32, bool)>,
    /// The unread messages of people, by id: the receiver, and its instance.
    unread: HashMap<Arc<str>, (Arc<str>, u32)>,
}

impl RunReport {
    /// No records yet, of a run of `pipeline` or of one `task` of it.
    pub fn new(plan: &Plan, pipeline: &Pipeline, task: Option<&str>) -> RunReport {
        let rule = |step: &swarmc_plan::Step| {
            let more = match step.on_failure {
                // The turn that mends, and the attempt after it.
                OnFailure::Fix(_) => 2,
                OnFailure::Escalate => 1,
                OnFailure::Fail | OnFailure::Skip => 0,
            };
            (step.retry.times + 1 + more, step.on_failure == OnFailure::Skip)
        };
        let mended = |step: &swarmc_plan::Step| {
            matches!(step.on_failure, OnFailure::Fix(_)).then(|| (step.name.clone(), step.retry.times + 2))
        };
        // Those of the pipeline itself count where a called one has a step of the same name.
        let others = plan.pipelines.iter().filter(|other| other.name != pipeline.name);
        let steps = || others.clone().chain([pipeline]).flat_map(Pipeline::all_steps);
        let failed = |RequestTimeout { after_ms, .. }| GateTimeout { then: GateDefault::Fail, after_ms };
        let gate = |step: &swarmc_plan::Step| {
            let mut gate = step.effective_gate()?.into_owned();
            if step.on_failure == OnFailure::Escalate {
                gate.on_timeout = plan.policy.on_timeout.map(failed);
            }
            Some((step.name.clone(), gate))
        };
        let escalated = |step: &swarmc_plan::Step| {
            (step.on_failure == OnFailure::Escalate).then(|| (step.name.clone(), step.retry.times + 1))
        };
        let stop = |step: &swarmc_plan::Step| match &step.body {
            Body::Stop { status, .. } => Some((step.name.clone(), *status)),
            _ => None,
        };
        let swarm = |step: &swarmc_plan::Step| match &step.body {
            Body::Swarm(call) => Some((step.name.clone(), plan.swarm(&call.swarm)?.clone())),
            _ => None,
        };
        let edges = || others.clone().chain([pipeline]).flat_map(|pipeline| &pipeline.edges);
        let nodes = edges().flat_map(swarmc_plan::Edge::receivers).map(str::to_owned);
        // A task that runs alone has no task to hand over to.
        let nodes: HashSet<String> = if task.is_some() { HashSet::new() } else { nodes.collect() };
        let loops = pipeline.all_steps().filter(|step| matches!(step.body, Body::Loop(_)));
        let alone = task.is_some();
        RunReport {
            rows: Vec::new(),
            run: String::new(),
            total: if alone { 1 } else { pipeline.steps.len() * pipeline.parallelism as usize },
            rounds: if alone { 1 } else { pipeline.iteration.max },
            instances: if alone { 1 } else { pipeline.parallelism },
            started_ms: 0,
            changed_ms: 0,
            finished: None,
            index: HashMap::new(),
            rules: steps().map(|step| (step.name.clone(), rule(step))).collect(),
            stops: pipeline.all_steps().filter_map(stop).collect(),
            loops: loops.map(|step| step.name.clone()).collect(),
            gates: steps().filter_map(gate).collect(),
            mended: steps().filter_map(mended).collect(),
            escalated: steps().filter_map(escalated).collect(),
            swarms: steps().filter_map(swarm).collect(),
            teams: HashMap::new(),
            approvals: BTreeMap::new(),
            on_timeout: plan.policy.on_timeout,
            always: BTreeSet::new(),
            nodes,
            current: HashMap::new(),
            reopening: Vec::new(),
            unread: HashMap::new(),
        }
    }

    /// This report of no records, with what a snapshot has of the same plan's run; none where that is damaged.
    pub(crate) fn restore(self, snapshot: &[u8]) -> Option<RunReport> {
        let told: RunReport = serde_json::from_slice(snapshot).ok()?;
        let index = told.rows.iter().enumerate().map(|(index, row)| (row.step.clone(), index)).collect();
        let RunReport { rules, stops, loops, gates, mended, escalated, swarms, on_timeout, nodes, .. } = self;
        Some(RunReport { index, rules, stops, loops, gates, mended, escalated, swarms, on_timeout, nodes, ..told })
    }

    /// Takes a record into account; what people are told of it.
    pub fn apply<'r>(&mut self, record: &'r Record) -> Option<Change<'r>> {
        self.changed_ms = record.at;
        if let Some(change) = self.apply_approval(record) {
            return Some(change);
        }
        let (row, change) = match &record.event {
            Event::RunStarted { run, pipeline, task, .. } => {
                self.run.clone_from(run);
                self.started_ms = record.at;
                return Some(Change::RunStarted { pipeline, task: task.as_deref() });
            }
            Event::RunResumed => {
                self.finished = None;
                self.reopening.clear();
                return Some(Change::RunResumed);
            }
            Event::RunFinished { status } => {
                self.finished = Some(*status);
                return None;
            }
            Event::RunReopened { .. } => {
                self.finished = None;
                for mark in std::mem::take(&mut self.reopening) {
                    self.reopen(mark);
                }
                return Some(Change::RunReopened);
            }
            Event::StepReopened { step, attempt, inside } => {
                self.reopening.push((step.clone(), *attempt, *inside));
                return None;
            }
            Event::AttemptStarted { step, attempt, .. }
            | Event::AttemptRejoined { step, attempt }
            | Event::Opened { step, attempt, .. } => {
                let index = self.ensure_row(step, record.at);
                let row = &mut self.rows[index];
                if row.state == RowState::Blocked {
                    // It runs again: the time before counts no more.
                    row.started_ms = record.at;
                }
                (row.attempt, row.state, row.summarizer) = (*attempt, RowState::Running, None);
                let change = match &record.event {
                    Event::AttemptStarted { summarizer: Some(agent), .. } => {
                        row.summarizer = Some(Box::from(&**agent));
                        Some(Change::SummaryStarted { row: index, agent })
                    }
                    Event::AttemptStarted { .. } | Event::AttemptRejoined { .. } => Some(Change::Step { row: index }),
                    // The steps inside of it say that it began.
                    _ => None,
                };
                (index, change)
            }
            Event::ReuseMissed { step, reason, .. } => {
                let row = self.ensure_row(step, record.at);
                self.rows[row].missed = Some(reason.as_str().into());
                return None;
            }
            Event::AttemptEnded { step, attempt, outcome } => {
                let row = self.ensure_row(step, record.at);
                self.apply_end(row, *attempt, outcome, record.at);
                (row, self.describe_end(row, outcome))
            }
            Event::NodeClosed { step, owes } => {
                let index = self.ensure_row(step, record.at);
                let lenient = self.rules.get(&*step.name).is_some_and(|rule| rule.1);
                let row = &mut self.rows[index];
                row.failure = (!owes.is_empty()).then(|| owes.join("; "));
                row.state = RowState::Ended(match owes.is_empty() {
                    true => Status::Succeeded,
                    false if lenient => Status::Skipped,
                    false => Status::Failed,
                });
                (index, Some(Change::Step { row: index }))
            }
            Event::Sent { from: Some(step), .. } => {
                let row = self.ensure_row(step, record.at);
                self.rows[row].post.get_or_insert_default().sent += 1;
                return None;
            }
            Event::Sent { from: None, to, instance, letter, .. } => {
                self.unread.insert(Arc::clone(&letter.id), (Arc::clone(to), *instance));
                return Some(Change::StepMessaged { to, letter });
            }
            Event::PackAppended { pack, text } => return Some(Change::PackAppended { pack, text }),
            Event::InputsTaken { step, inputs } => {
                inputs.iter().for_each(|id| _ = self.unread.remove(id));
                let row = self.ensure_row(step, record.at);
                self.rows[row].post.get_or_insert_default().read += inputs.len() as u32;
                return None;
            }
            Event::GateOpened { step, message } => {
                let row = self.ensure_row(step, record.at);
                self.rows[row].state = RowState::Asking;
                self.rows[row].question = Some(Box::new(message.clone()));
                (row, Some(Change::QuestionAsked { step, message }))
            }
            Event::GateAnswered { step, choice, .. } => {
                let row = self.ensure_row(step, record.at);
                self.apply_answer(row, choice.as_deref(), record.at);
                let change = match (self.rows[row].state, choice) {
                    (RowState::Waiting, Some(choice)) => Change::QuestionAnswered { row, choice },
                    _ => Change::Step { row },
                };
                (row, Some(change))
            }
            Event::StepSkipped { step, reason } => {
                let index = self.ensure_row(step, record.at);
                let row = &mut self.rows[index];
                row.state = RowState::Ended(Status::Skipped);
                row.skip = Some(Box::new(reason.clone()));
                row.ended_ms = record.at;
                (index, Some(Change::Step { row: index }))
            }
            Event::ConditionJudged { step, error: Some(error), .. } => {
                let index = self.ensure_row(step, record.at);
                let row = &mut self.rows[index];
                row.state = RowState::Ended(Status::Failed);
                row.failure = Some(format!("its `when` cannot be evaluated: {error}"));
                row.ended_ms = record.at;
                (index, Some(Change::Step { row: index }))
            }
            event => return self.apply_swarm(event),
        };
        let row = &self.rows[row];
        if let RowState::Ended(_) = row.state {
            self.approvals.retain(|_, pending| !pending.is_over(&row.step));
        }
        change
    }

    fn apply_swarm<'r>(&mut self, event: &'r Event) -> Option<Change<'r>> {
        let step = &event.swarm()?.step;
        // Each attempt has a swarm of its own.
        if matches!(event, Event::SwarmStarted { .. }) {
            self.teams.remove(step);
        }
        let swarm = self.swarms.get(&*step.name);
        let team = self.teams.entry(step.clone()).or_insert_with(|| Team::new(swarm));
        let change = team.apply(event, self.changed_ms).map(|change| Change::Swarm { step, change });
        match event {
            Event::MessageSent { message, .. } if message.person => {
                Some(Change::AgentMessaged { step, agent: &message.to })
            }
            _ => change,
        }
    }

    /// What people are told of the end of an attempt that has been applied.
    fn describe_end(&self, row: usize, outcome: &Outcome) -> Option<Change<'static>> {
        let Row { state, summarizer, .. } = &self.rows[row];
        match (&outcome.failure, state) {
            (Some(Failure::Interrupted), _) => Some(Change::Interrupted { row }),
            // Why a summary failed has been said.
            (failure, _) if summarizer.is_some() => failure.is_none().then_some(Change::SummaryEnded { row }),
            // `on-failure skip`: the record that the step was skipped follows, and says it.
            (_, RowState::Ended(Status::Skipped)) => None,
            (_, RowState::Asking) => Some(Change::Escalated { row }),
            _ => Some(Change::Step { row }),
        }
    }

    /// Takes note of a step that has not begun.
    pub fn mark_blocked(&mut self, step: &StepId) {
        let row = self.ensure_row(step, self.changed_ms);
        self.rows[row].state = RowState::Blocked;
    }

    fn ensure_row(&mut self, step: &StepId, at: u64) -> usize {
        if let Some(index) = self.index.get(step) {
            return *index;
        }
        let round = self.current.entry((step.instance, step.within.clone())).or_default();
        *round = step.iteration.max(*round);
        let round = self.round_of(step.instance);
        let attempts = self.rules.get(&*step.name).map_or(1, |rule| rule.0);
        self.index.insert(step.clone(), self.rows.len());
        self.rows.push(Row {
            state: RowState::Running,
            attempts,
            started_ms: at,
            ended_ms: at,
            round,
            ..Row::blocked(step.clone())
        });
        self.rows.len() - 1
    }

    fn apply_answer(&mut self, index: usize, choice: Option<&str>, at: u64) {
        if self.escalated.contains_key(&*self.rows[index].step.name) {
            self.rows[index].state = match choice {
                Some("retry") => RowState::Waiting,
                Some("skip") => RowState::Ended(Status::Skipped),
                _ => RowState::Ended(Status::Failed),
            };
            return;
        }
        let lenient = self.rules.get(&*self.rows[index].step.name).is_some_and(|rule| rule.1);
        let row = &mut self.rows[index];
        row.ended_ms = at;
        // 0 would say that the gate has not begun.
        row.attempt = 1;
        row.failure = choice.is_none().then(|| Failure::Refused.to_string());
        row.state = RowState::Ended(match choice {
            Some(_) => Status::Succeeded,
            None if lenient => Status::Skipped,
            None => Status::Failed,
        });
    }

    fn apply_end(&mut self, index: usize, attempt: u32, outcome: &Outcome, at: u64) {
        let row = &mut self.rows[index];
        // The attempt that needs the summary comes behind this one, so the row goes on.
        if row.summarizer.is_some() && outcome.failure != Some(Failure::Cancelled) {
            row.earlier += 1;
            row.ended_ms = at;
            row.usage = add_usage(row.usage.as_deref().copied(), outcome.usage).map(Box::new);
            return;
        }
        let (attempts, lenient) = self.rules.get(&*self.rows[index].step.name).copied().unwrap_or((1, false));
        self.rows[index].attempt = attempt;
        let tries = self.rows[index].turn_attempts();
        let mended = self.mended.get(&*self.rows[index].step.name) == Some(&tries);
        let lasts = matches!(outcome.failure, Some(Failure::Files { lasting: true, .. }));
        let escalates = self.escalated.get(&*self.rows[index].step.name);
        let escalated = escalates.is_some_and(|&after| after == tries || lasts && tries < after);
        // What would fail again is mended at once, or not repeated.
        let mends = self.mended.get(&*self.rows[index].step.name).is_some_and(|&mended| tries < mended);
        let is_node = self.nodes.contains(&*self.rows[index].step.name);
        let ends = self.stop_status(&self.rows[index].step).is_some();
        let step = &self.rows[index].step;
        let is_written_to = self.unread.values().any(|(to, instance)| *to == step.name && *instance == step.instance);
        let helped = self.approvals.values().any(|pending| pending.step == *step && pending.request.wants.is_help());
        let row = &mut self.rows[index];
        row.ended_ms = at;
        row.attempt = attempt;
        row.exit = outcome.exit;
        row.reused.clone_from(&outcome.reused);
        row.stderr = outcome.stderr.as_str().into();
        row.session = outcome.session.as_deref().map(Into::into);
        row.fallback = outcome.fallback.as_deref().map(Into::into);
        row.repairs = row.repairs.saturating_add(outcome.repairs);
        row.usage = add_usage(row.usage.as_deref().copied(), outcome.usage).map(Box::new);
        row.message = outcome.output.as_ref().filter(|_| ends && outcome.failure.is_none()).cloned().map(Box::new);
        row.failure = outcome.failure.as_ref().map(|failure| describe_failure(failure, outcome.exit));
        row.state = match &outcome.failure {
            None if mended => RowState::Waiting,
            // It has another turn at least, which reads what a person wrote or will write.
            None if is_node || is_written_to || helped => {
                let post = row.post.get_or_insert_default();
                post.turns += 1;
                row.earlier = attempt;
                RowState::Idle
            }
            None => {
                row.post.iter_mut().for_each(|post| post.turns += 1);
                RowState::Ended(Status::Succeeded)
            }
            Some(Failure::Interrupted) => {
                row.earlier = attempt;
                RowState::Waiting
            }
            Some(Failure::Cancelled) => RowState::Cancelled,
            // Here the agent that was to mend has failed: nothing comes behind it.
            Some(_) if mended => RowState::Ended(Status::Failed),
            Some(_) if escalated => RowState::Asking,
            Some(_) if tries < attempts && (!lasts || mends) => RowState::Waiting,
            Some(_) if lenient => RowState::Ended(Status::Skipped),
            Some(_) => RowState::Ended(Status::Failed),
        };
    }

    /// The steps that are at work or between two attempts, the longest first.
    pub fn open_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| {
            matches!(
                row.state,
                RowState::Running | RowState::Waiting | RowState::Idle | RowState::Stalled | RowState::Asking
            )
        })
    }

    /// How many steps of the current rounds stand where.
    pub fn count_rows(&self) -> Counts {
        let mut counts = Counts::default();
        for row in &self.rows {
            // `total` counts the steps of the pipeline alone, and not those inside of them.
            if row.step.within.is_some() || !self.is_current(row) {
                continue;
            }
            match row.state {
                RowState::Running | RowState::Waiting | RowState::Idle | RowState::Stalled | RowState::Asking => {
                    counts.running += 1
                }
                RowState::Blocked => {}
                RowState::Ended(Status::Succeeded) => counts.succeeded += 1,
                RowState::Ended(Status::Failed) => counts.failed += 1,
                RowState::Ended(Status::Skipped) => counts.skipped += 1,
                RowState::Cancelled => counts.cancelled += 1,
            }
        }
        counts
    }

    /// How a step ends the whole pipeline, where it is a `stop` of it: not that of a called one.
    pub fn stop_status(&self, step: &StepId) -> Option<StopStatus> {
        let is_loop = |part: &str| self.loops.contains(part.split(['.', '~', '[']).next().unwrap_or_default());
        let inside = step.within.iter().flat_map(|path| path.split('/')).all(is_loop);
        self.stops.get(&*step.name).copied().filter(|_| inside)
    }

    /// The `stop` that ended an instance of the pipeline.
    pub fn stop_of(&self, instance: u32) -> Option<&Row> {
        let ended = |row: &&Row| row.step.instance == instance && row.message.is_some() && self.is_current(row);
        self.rows.iter().find(ended)
    }

    /// The furthest round of any instance, from 1.
    pub fn current_round(&self) -> u32 {
        let instances = self.current.iter().filter(|((_, within), _)| within.is_none());
        instances.map(|(_, &round)| round).max().unwrap_or(1)
    }

    fn round_of(&self, instance: u32) -> u32 {
        self.current.get(&(instance, None)).copied().unwrap_or(1)
    }

    /// Whether a row is of the last round that its instance reached.
    pub fn is_current(&self, row: &Row) -> bool {
        let frame = (row.step.instance, row.step.within.clone());
        self.current.get(&frame) == Some(&row.step.iteration) && row.round == self.round_of(row.step.instance)
    }

    /// The name of a step, with the number of its instance where there are several.
    pub fn label(&self, step: &StepId) -> String {
        let name = step.label();
        match self.instances {
            0 | 1 => name,
            _ => format!("{name}.{}", step.instance),
        }
    }
}
