//! Reports the tools that an attempt uses, and notices about it: to the observer, and to a file beside its logs.
//!
//! In: uses and their results, however often they are reported; notices. Out: a [`Signal`] for each use in both places;
//! for each notice a line for the observer and a [`Signal`] in the file. Invariant: no more than [`TOOL_USES`] uses of an
//! attempt, and of each a text of bounded length without secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::Job;
use super::log::Log;
use super::pool::Services;
use crate::io::stream::{Item, ToolResult, ToolUse, is_denial};
use crate::types::activity::now_ms;
use crate::types::error::RunError;
use crate::types::event::StepId;
use crate::types::telemetry::{Signal, TOLD, TOOL_USES, TelemetryKind};

/// The bytes of an id that are told, and of the name of a tool.
const NAME: usize = 200;

/// The refusals of an attempt that are reported to people.
const DENIALS: usize = 20;

/// The uses of an attempt so far.
pub(super) struct ToolLog<'a> {
    services: &'a Services,
    step: &'a StepId,
    attempt: u32,
    log: Log,
    count: usize,
    /// The turns so far. What one says of a use is not about that of another with the same id.
    turns: u32,
    /// The uses whose result has not been told, with their arguments.
    open: BTreeMap<String, String>,
    broken: Option<RunError>,
    /// The tools of this turn, by the id of their use.
    names: BTreeMap<String, String>,
    /// The uses of this turn that the agent's program refused, and how many were in all.
    denied: BTreeSet<String>,
    denials: usize,
}

impl<'a> ToolLog<'a> {
    pub(super) fn new(services: &'a Services, job: &'a Job) -> ToolLog<'a> {
        let (step, attempt) = (&job.step, job.attempt);
        let log = Log::new(match job.member_turn() {
            Some(turn) => services.layout.turn_log_path(step, attempt, turn, "tools.jsonl"),
            None => services.layout.tool_log_path(step, attempt),
        });
        let (open, names, denied) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        ToolLog { services, step, attempt, log, count: 0, turns: 0, open, broken: None, names, denied, denials: 0 }
    }

    /// What follows comes from another turn of the attempt.
    pub(super) fn begin_turn(&mut self) {
        self.turns += 1;
        self.open.clear();
        self.names.clear();
        self.denied.clear();
    }

    /// Takes what an agent tells; whether it is a use of which nothing was told before.
    pub(super) fn record_item(&mut self, item: &Item<'_>) -> bool {
        match item {
            Item::Tool(used) => self.record_start(used),
            Item::Came(came) => {
                if came.failed && is_denial(came.text) {
                    let tool = self.names.get(came.id).cloned().unwrap_or_default();
                    self.report_denial(came.id, &tool, came.text);
                }
                self.record_result(came);
                false
            }
            Item::Denied(id, tool) => {
                self.report_denial(id, tool, "");
                false
            }
            _ => false,
        }
    }

    /// A use that gets an id of its own, which is given back.
    pub(super) fn record_call(&mut self, name: &str, arguments: &str) -> String {
        let id = format!("swarmc-{}", self.count + 1);
        self.record_start(&ToolUse { id: &id, name, arguments });
        id
    }

    pub(super) fn record_result(&mut self, came: &ToolResult<'_>) {
        let id = self.id(came.id);
        if self.open.remove(&id).is_some() {
            self.record_signal(TelemetryKind::ToolEnded {
                id,
                ok: !came.failed,
                text: self.shorten_text(came.text, TOLD),
            });
        }
    }

    /// Each refusal is reported to people once, when it happens: the agent goes on without the tool.
    fn report_denial(&mut self, id: &str, tool: &str, why: &str) {
        let is_new = id.is_empty() || self.denied.insert(id.to_owned());
        if !is_new || self.denials == DENIALS {
            return;
        }
        self.denials += 1;
        let why = self.shorten_text(why.trim().lines().next().unwrap_or_default(), NAME);
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let what = match tool {
            "" => "a tool".to_owned(),
            tool => format!("the tool `{}`", self.shorten_text(tool, NAME)),
        };
        let more = if self.denials == DENIALS { " (further refusals are not reported)" } else { "" };
        self.report_notice(&format!("its agent was refused {what}{why}{more}"));
    }

    /// Reports something that a person should know of the attempt.
    pub(super) fn report_notice(&mut self, text: &str) {
        let text = self.shorten_text(text, TOLD);
        self.services.observer_handle.send_notice(format!("`{}`: {text}", self.step.label()));
        self.write_signal(&self.build_signal(TelemetryKind::Notice { text }));
    }

    fn record_start(&mut self, used: &ToolUse<'_>) -> bool {
        if !used.id.is_empty() && self.names.len() < TOOL_USES {
            self.names.entry(used.id.to_owned()).or_insert_with(|| used.name.to_owned());
        }
        let (id, arguments) = (self.id(used.id), self.shorten_text(used.arguments, TOLD));
        let known = self.open.get(&id).cloned();
        let is_new = known.is_none();
        // Of one that is known, what was not known of it before.
        if known.is_some_and(|known| known == arguments || arguments.is_empty()) || is_new && self.count == TOOL_USES {
            return is_new;
        }
        self.count += usize::from(is_new);
        if !id.is_empty() {
            self.open.insert(id.clone(), arguments.clone());
        }
        self.record_signal(TelemetryKind::ToolStarted { id, tool: self.shorten_text(used.name, NAME), arguments });
        is_new
    }

    /// The id of a use within the attempt.
    fn id(&self, told: &str) -> String {
        let id = self.shorten_text(told, NAME);
        if self.turns > 1 && !id.is_empty() { format!("{}.{id}", self.turns) } else { id }
    }

    fn shorten_text(&self, text: &str, most: usize) -> String {
        self.services.tools.beginning(text, most)
    }

    fn record_signal(&mut self, sign: TelemetryKind) {
        let signal = self.build_signal(sign);
        self.write_signal(&signal);
        self.services.observer_handle.send_signal(signal);
    }

    fn build_signal(&self, sign: TelemetryKind) -> Signal {
        Signal { at: now_ms(), step: self.step.clone(), attempt: self.attempt, sign }
    }

    fn write_signal(&mut self, signal: &Signal) {
        if self.broken.is_none() {
            let line = serde_json::to_string(signal).expect("a signal has string keys only");
            self.broken = self.log.push(format!("{line}\n").as_bytes()).err();
        }
    }

    /// When [`ToolLog::tick`] wants to be called.
    pub(super) fn due(&self) -> Option<Instant> {
        self.log.due()
    }

    /// Writes what has waited long enough.
    pub(super) fn tick(&mut self, now: Instant) {
        let written = self.log.tick(now);
        self.broken = self.broken.take().or(written.err());
    }

    /// Nothing more comes; true when the file writer has some to write, an error when something could not be written.
    pub(super) fn finish(self) -> Result<bool, RunError> {
        let waits = self.log.finish(&self.services.file_writer);
        self.broken.map_or(Ok(waits), Err)
    }
}
