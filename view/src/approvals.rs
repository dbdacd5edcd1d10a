//! Shows people the requests of agents that need approval.
//!
//! In: requests of the journal. Out: lines that name the agent and its request. Text of agents is hostile: this module
//! bounds it, and writes invisible and control characters as their codes.

use std::fmt::Write;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use swarmc_plan::{RequestTimeout, Unattended};
use swarmc_runtime::{AnsweredBy, Content, Request, RequestKind, StepId, Verdict, Waiting};

use crate::printable::escape_hidden;
use crate::units::{format_duration, format_size};

/// The lines of arguments that are shown, and the characters of all of them.
const LINES: usize = 60;
const SIGNS: usize = 4_000;

/// A request without an answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OpenRequest {
    /// The step whose agent asks.
    pub step: StepId,
    /// Who wants what.
    pub request: Request,
    /// When the agent asked, in milliseconds since 1970.
    pub since: u64,
    /// What the run does with it without an answer in time.
    pub on_timeout: Option<RequestTimeout>,
}

impl OpenRequest {
    /// Whether it needs no answer after a step has ended: the step no longer needs help, and cannot start again.
    pub fn is_over(&self, ended: &StepId) -> bool {
        let is_beside = self.step.instance == ended.instance && self.step.within == ended.within;
        match &self.request.wants {
            RequestKind::Node { to, .. } => *to == ended.name && is_beside,
            wants => wants.is_help() && self.step == *ended,
        }
    }
}

impl From<&Waiting> for OpenRequest {
    fn from(waiting: &Waiting) -> OpenRequest {
        let Waiting { step, request, since, on_timeout, .. } = waiting.clone();
        OpenRequest { step, request, since, on_timeout }
    }
}

impl OpenRequest {
    /// The agent and its request, in one line.
    pub fn describe(&self) -> String {
        format!("{} wants {}", escape_hidden(&self.request.agent), escape_hidden(&self.request.wants.describe()))
    }

    /// What the run does with it without an answer, and when; none where it waits for ever.
    pub fn describe_expiry(&self, now: u64) -> Option<String> {
        let RequestTimeout { then, after_ms } = self.on_timeout?;
        let wants = &self.request.wants;
        // A request that is not part of an attempt cannot fail one.
        let fails = !wants.outlasts_attempt() && !matches!(wants, RequestKind::GoOn { .. });
        let what = match then {
            Unattended::Approve => "allowed",
            Unattended::Fail if fails => "failed",
            Unattended::Deny | Unattended::Fail => "denied",
        };
        Some(format!("{what} {} by `policy on-timeout`", format_due(self.since.saturating_add(after_ms), now)))
    }

    /// What it is exactly, in lines; `read` has the texts that lie beside the journal.
    pub fn detail_lines(&self, read: impl Fn(&Content) -> Option<String>) -> Vec<String> {
        let text = |content: &Content| match (read(content), content) {
            (Some(text), _) => Ok(text),
            (None, Content::Text(text)) => Ok(text.clone()),
            (None, Content::Artifact { bytes, .. }) => Err(format!("({} of text)", format_size(*bytes))),
        };
        match &self.request.wants {
            RequestKind::Tool { arguments: shown, .. } | RequestKind::GoOn { evidence: shown, .. } => match text(shown)
            {
                Ok(shown) => limit_lines(&pretty_json(&shown)),
                Err(words) => vec![words],
            },
            RequestKind::Plan { change: message }
            | RequestKind::Merge { change: message }
            | RequestKind::Help { message } => {
                text(message).map_or_else(|words| vec![words], |text| limit_lines(&text))
            }
            RequestKind::Spawn { plays, task, tools } => {
                let task = text(task).unwrap_or_else(|words| words);
                let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
                let mut lines = vec![
                    format!("agent  {}", escape_hidden(plays)),
                    format!("tools  {}", escape_hidden(&tools)),
                    "task".to_owned(),
                ];
                lines.extend(limit_lines(&task).into_iter().map(|line| format!("  {line}")));
                lines
            }
            RequestKind::Node { plays, letter, .. } => {
                let payload =
                    text(&letter.content).map_or_else(|words| vec![words], |text| limit_lines(&pretty_json(&text)));
                let mut lines = vec![format!("agent  {}", escape_hidden(plays)), "payload".to_owned()];
                lines.extend(payload.into_iter().map(|line| format!("  {line}")));
                lines
            }
        }
    }

    /// Whether the journal alone does not hold what it is.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.request.wants.content(), Content::Artifact { .. })
    }
}

/// When something comes that is due.
pub fn format_due(due: u64, now: u64) -> String {
    match due.saturating_sub(now) {
        0 => "at once".to_owned(),
        rest => format!("in {}", format_duration(Duration::from_millis(rest))),
    }
}

/// What can be said to a request.
pub fn format_choices(wants: &RequestKind) -> String {
    list_choices(wants).join("|")
}

/// The words that answer a request.
pub fn list_choices(wants: &RequestKind) -> Vec<String> {
    wants.choices().iter().map(|choice| choice.as_str().to_owned()).collect()
}

/// Who answered, in a few words.
pub(crate) fn describe_answerer(by: AnsweredBy) -> &'static str {
    match by {
        AnsweredBy::Person => "a person",
        AnsweredBy::Timeout => "the policy, as no person answered in time",
        AnsweredBy::Policy | AnsweredBy::Headless => "the policy, as no person can answer",
        AnsweredBy::Earlier => "an earlier `always`",
    }
}

/// A verdict in a few words.
pub fn describe_verdict(verdict: &Verdict) -> String {
    let mut words = format!("{}, by {}", verdict.choice.as_str(), describe_answerer(verdict.by));
    if verdict.arguments.is_some() {
        words.push_str(", with other arguments");
    }
    if let Some(because) = &verdict.because {
        let _ = write!(words, ": {}", escape_hidden(because));
    }
    words
}

/// JSON laid out; anything else as it is.
fn pretty_json(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| format!("{value:#}"))
}

/// The lines of a text, as many as a person can be expected to read; the last one says how much is left out.
fn limit_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut room = SIGNS;
    let mut shown = 0;
    for line in text.split('\n').take(LINES) {
        let kept: String = line.chars().take(room).collect();
        room -= kept.chars().count();
        shown += kept.len() + 1;
        lines.push(escape_hidden(&kept));
        if kept.len() < line.len() {
            shown -= 1;
            break;
        }
    }
    let left = text.len().saturating_sub(shown);
    if left > 0 {
        lines.push(format!("… {} more of it are not shown", format_size(left as u64)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(arguments: &str) -> OpenRequest {
        let (tool, arguments) = ("shell".into(), Content::Text(arguments.to_owned()));
        let wants = RequestKind::Tool { tool, arguments, schema: None, fixed: false };
        let request = Request { id: 3, agent: "takao".into(), wants };
        OpenRequest { step: StepId::new("team", 1, 1), request, since: 0, on_timeout: None }
    }

    #[test]
    fn what_an_agent_wrote_is_shown_whole_or_said_to_be_cut() {
        let short = pending(r#"{"command": "echo 1\necho \u001b[2J \u202e"}"#);
        assert_eq!(short.describe(), "takao wants tool shell");
        let expected = ["{", "  \"command\": \"echo 1\\necho \\u001b[2J \\u{202e}\"", "}"];
        assert_eq!(short.detail_lines(|_| None), expected);
        let long = pending(&format!(r#"{{"command": "{}"}}"#, "x".repeat(1 << 20))).detail_lines(|_| None);
        assert!(long.iter().map(|line| line.chars().count()).sum::<usize>() < SIGNS + 60, "{long:?}");
        assert!(long.last().is_some_and(|last| last.starts_with("… 1020 KB more")), "{:?}", long.last());
        let many = pending(&format!("[{}1]", "1,".repeat(10_000))).detail_lines(|_| None);
        assert!(many.len() == LINES + 1 && many[LINES].contains("not shown"), "{:?}", many.last());
    }

    #[test]
    fn a_request_says_what_becomes_of_it_without_an_answer() {
        let expiry = |then, wants, now| {
            let request = Request { id: 1, agent: "takao".into(), wants };
            let on_timeout = Some(RequestTimeout { then, after_ms: 600_000 });
            OpenRequest { on_timeout, since: 1_000, request, ..pending("") }.describe_expiry(now)
        };
        let tool = || pending("").request.wants;
        let help = || RequestKind::Help { message: Content::Text(String::new()) };
        for (then, wants, now, expected) in [
            (Unattended::Deny, tool(), 351_000, "denied in 4m 10s by `policy on-timeout`"),
            (Unattended::Approve, tool(), 1_000, "allowed in 10m 00s by `policy on-timeout`"),
            (Unattended::Fail, tool(), 600_000, "failed in 1.0s by `policy on-timeout`"),
            // An agent that waits for help has no call that could fail.
            (Unattended::Fail, help(), 600_000, "denied in 1.0s by `policy on-timeout`"),
            // A run that was stopped meanwhile.
            (Unattended::Deny, tool(), 900_000, "denied at once by `policy on-timeout`"),
        ] {
            assert_eq!(expiry(then, wants, now).as_deref(), Some(expected));
        }
        assert_eq!(pending("").describe_expiry(0), None);
    }
}
