//! Approvals of a run: an agent requests one, and a person, the policy or an earlier `always` answers it.
//!
//! The driver takes answers as it takes those of gates. Invariant: the requester receives an answer only when it is
//! durable. If a former process recorded the answer, the requester receives that one, and no person is asked again.

use std::sync::Arc;

use serde_json::Value;
use swarmc_plan::{Approval, Unattended};

use super::driver::Driver;
use super::eval::truncate_to_event;
use super::requests::WaitingTask;
use crate::core::graph::Key;
use crate::core::state::Waiting;
use crate::io::input::Asker;
use crate::types::answer;
use crate::types::approval::{Choice, Decision, Request, RequestKind, ToolCallRequest, Verdict};
use crate::types::event::{AnsweredBy, Event, Failure, StepId};
use crate::types::user_request::GateAnswer;

/// The bytes of the arguments at most that a person gives in place of others.
const LONGEST: usize = 128 * 1024;

/// The room of a schema as JSON in an event; a longer one is stored beside it.
const SCHEMA_ROOM: usize = 1_000;

impl Driver<'_> {
    /// Requests an approval for a tool call, for which a task waits.
    pub(super) fn task_wants(&mut self, step: StepId, attempt: u32, call: ToolCallRequest, reply: Asker) {
        let place = (step.clone(), attempt);
        // A request may arrive after the end of its attempt. The reply is dropped then, which ends the wait for it.
        let is_open = self.attempts.is_open(&place) || self.teams.is_running(&place);
        let Some(key) = self.state.find_step(&step).filter(|_| is_open) else { return };
        let wants = match self.build_tool_request(call.tool, call.arguments.to_string(), call.schema, call.fixed) {
            Ok(wants) => wants,
            Err(failure) => return self.give_up(failure.to_string()),
        };
        let is_meant = |request: &Request| request.agent == call.agent && request.wants.is_like(&wants);
        // An attempt that starts again after a crash asks again: each request of before answers one of now.
        let before = self.state.asked_before((&step, attempt), &self.requests.used, is_meant);
        let before = before.map(|(waiting, verdict)| (waiting.request.id, verdict.cloned()));
        let id = match before {
            Some((id, verdict)) => {
                self.requests.used.insert(id);
                if let Some(verdict) = verdict {
                    let decision = self.make_decision((&call.agent, &wants), &verdict, call.fixed);
                    return self.requests.replies.decide(reply, decision);
                }
                id
            }
            None => self.request_approval(&step, attempt, &call.agent, wants),
        };
        self.requests.wait_for(id, (step, attempt), call.fixed, reply);
        self.decide_at_once(key, id, call.of);
    }

    /// Requests an approval for an agent of a swarm. An error if the swarm fails because of it.
    pub(super) fn agent_wants(
        &mut self,
        (step, attempt): (&StepId, u32),
        key: Key,
        agent: &Arc<str>,
        wants: RequestKind,
        of: Approval,
    ) -> Result<(), Failure> {
        let id = self.request_approval(step, attempt, agent, wants);
        self.decide_at_once(key, id, of).map_or(Ok(()), |message| Err(Failure::Agent { message }))
    }

    /// Answers the open requests that a swarm's agents made in a former process, if no person is needed for that.
    pub(super) fn decide_open(&mut self, step: &StepId, attempt: u32, key: Key) -> Result<(), Failure> {
        let open = self.state.open_requests().filter(|waiting| (&waiting.step, waiting.attempt) == (step, attempt));
        let open: Vec<u32> = open.map(|waiting| waiting.request.id).collect();
        for id in open {
            if let Some(message) = self.decide_at_once(key, id, Approval::Human) {
                return Err(Failure::Agent { message });
            }
        }
        Ok(())
    }

    /// In a headless run, answers the open requests of a former process for which no turn waits.
    pub(super) fn decide_outlasting(&mut self) {
        let open = self
            .state
            .open_requests()
            .filter(|waiting| self.requests.headless && waiting.request.wants.outlasts_attempt());
        let open: Vec<(u32, StepId)> = open.map(|waiting| (waiting.request.id, waiting.step.clone())).collect();
        for (id, step) in open {
            if let Some(key) = self.state.find_step(&step) {
                // The requester receives a refusal as an inbox message, or not at all.
                let _ = self.decide_at_once(key, id, Approval::Human);
            }
        }
    }

    /// Requests an approval for a step that repeats itself to go on.
    pub(super) fn ask_to_go_on(&mut self, step: &StepId, attempt: u32) {
        let Some(key) = self.state.find_step(step) else { return };
        let asks =
            |waiting: &&Waiting| waiting.step == *step && matches!(waiting.request.wants, RequestKind::GoOn { .. });
        // A former process may have asked already.
        let known = self.state.open_requests().find(asks).map(|waiting| waiting.request.id);
        let id = match (known, self.state.go_on_wish(key)) {
            (Some(id), _) => id,
            (None, Some(RequestKind::GoOn { same, times, evidence })) => {
                let evidence = match self.outputs.store_content(evidence) {
                    Ok(evidence) => evidence,
                    Err(error) => return self.give_up(error.to_string()),
                };
                let agent = self.state.node(key).agent.clone().unwrap_or_else(|| Arc::clone(&step.name));
                self.request_approval(step, attempt, &agent, RequestKind::GoOn { same, times, evidence })
            }
            (None, _) => return,
        };
        // Where it may not go on that is what becomes of the step, whatever the policy calls it.
        let _ = self.decide_at_once(key, id, Approval::Human);
    }

    /// The request for an approval of a tool call.
    pub(super) fn build_tool_request(
        &self,
        tool: String,
        arguments: String,
        schema: Option<Value>,
        fixed: bool,
    ) -> Result<RequestKind, Failure> {
        let schema = schema.map(|schema| self.outputs.keep_within(schema.to_string(), SCHEMA_ROOM)).transpose()?;
        let arguments = self.outputs.keep_text(arguments)?;
        Ok(RequestKind::Tool { tool: Arc::from(tool), arguments, schema, fixed })
    }

    pub(super) fn request_approval(
        &mut self,
        step: &StepId,
        attempt: u32,
        agent: &Arc<str>,
        wants: RequestKind,
    ) -> u32 {
        let id = self.state.next_request();
        let request = Request { id, agent: Arc::clone(agent), wants };
        self.record(Event::ApprovalAsked { step: step.clone(), attempt, request });
        id
    }

    /// The time of a request is over, and no person has answered it.
    pub(super) fn expire_request(&mut self, id: u32) {
        let Some(waiting) = self.state.find_request(id) else { return };
        let (step, attempt, due) = (waiting.step.clone(), waiting.attempt, waiting.due());
        // Also where the clock on the wall was put back meanwhile.
        self.records.advance_clock(due.unwrap_or(0));
        let Some(key) = self.state.find_step(&step) else { return };
        let is_swarm = self.state.runs_swarm(key);
        if is_swarm && !self.teams.is_running(&(step.clone(), attempt)) {
            // The swarm has not resumed yet. When it does, the driver answers its open requests.
            return;
        }
        if let Some(message) = self.decide_at_once(key, id, Approval::Human).filter(|_| is_swarm) {
            self.fail_swarm(&step, attempt, Failure::Agent { message });
        }
    }

    /// Answers a request at once if no person needs to, no person can, or none has in time. Returns the reason if the
    /// requester fails because of the answer.
    pub(super) fn decide_at_once(&mut self, key: Key, id: u32, of: Approval) -> Option<String> {
        let waiting = self.state.find_request(id)?.clone();
        let Request { agent, wants, .. } = &waiting.request;
        if self.answer_from_recording(&waiting) {
            return None;
        }
        let verdict = |choice, by| Verdict { id, choice, by, because: None, arguments: None };
        if self.state.is_always(key, agent, wants) {
            self.answer_request(&waiting, verdict(Choice::Allow, AnsweredBy::Earlier));
            return None;
        }
        let expiry = self.state.expiry_policy(id, self.records.now());
        // This version cannot ask a coordinator, and not every world has people.
        if expiry.is_none() && !self.requests.headless && of == Approval::Human && self.world.is_real() {
            return None;
        }
        let by = if expiry.is_some() { AnsweredBy::Timeout } else { AnsweredBy::Policy };
        // A test that has an agent start a task, or a step repeat itself, means that.
        let is_meant = matches!(wants, RequestKind::Node { .. } | RequestKind::GoOn { .. });
        let choice = match expiry.unwrap_or(self.evaluator.plan.policy.unattended) {
            _ if is_meant && self.world.is_rehearsed() => Choice::Allow,
            Unattended::Approve => Choice::Allow,
            Unattended::Deny | Unattended::Fail => Choice::Deny,
        };
        let verdict = verdict(choice, by);
        let fails = self.policy_failure((agent, wants), &verdict);
        self.answer_request(&waiting, verdict);
        fails
    }

    /// Why the requester fails because of the policy's answer; none if it does not fail.
    pub(super) fn policy_failure(&self, (agent, wants): (&str, &RequestKind), verdict: &Verdict) -> Option<String> {
        let policy = &self.evaluator.plan.policy;
        let (said, why) = match verdict.by {
            AnsweredBy::Policy => (Some(policy.unattended), "no person can answer"),
            AnsweredBy::Timeout => (policy.on_timeout.map(|timeout| timeout.then), "no person answered in time"),
            AnsweredBy::Person | AnsweredBy::Earlier | AnsweredBy::Headless => (None, ""),
        };
        let fails = said == Some(Unattended::Fail) && !verdict.is_allowed();
        fails.then(|| format!("`{agent}` wants {}, which needs approval, but {why}", wants.describe()))
    }

    pub(super) fn answer_request(&mut self, waiting: &Waiting, verdict: Verdict) {
        let (step, attempt) = (waiting.step.clone(), waiting.attempt);
        if let Some(WaitingTask { fixed, reply, .. }) = self.requests.take_task(verdict.id) {
            let Request { agent, wants, .. } = &waiting.request;
            let decision = self.make_decision((agent, wants), &verdict, fixed);
            // HeldAttempt back there until the record below is durable.
            self.requests.replies.decide(reply, decision);
        }
        self.record(Event::ApprovalAnswered { step, attempt, verdict });
        self.deliver_decided();
    }

    /// The decision that the requester of a tool call receives for a verdict.
    fn make_decision(&self, (agent, wants): (&str, &RequestKind), verdict: &Verdict, fixed: bool) -> Decision {
        if let Some(message) = self.policy_failure((agent, wants), verdict) {
            return Decision::Failed(message);
        }
        if !verdict.is_allowed() {
            return Decision::Refused(format!("not called: {}", verdict.refusal()));
        }
        if fixed && verdict.choice == Choice::Always {
            return Decision::Always;
        }
        let text = verdict.arguments.as_ref().map(|arguments| self.evaluator.load_text(arguments));
        match text.map(|text| text.map(|text| serde_json::from_str(&text))) {
            None => Decision::Granted(None),
            Some(Ok(Ok(arguments))) => Decision::Granted(Some(arguments)),
            // Never with arguments other than the approved ones.
            Some(_) => Decision::Failed(format!("the arguments given for {} cannot be read", wants.describe())),
        }
    }

    /// The request that a person means; none where a gate is meant.
    pub(super) fn find_request(&self, word: &str) -> Option<Waiting> {
        let id: u32 = word.parse().ok()?;
        self.state.find_request(id).cloned()
    }

    /// Takes a person's answer to a request, where it fits.
    pub(super) fn take_verdict(&mut self, waiting: &Waiting, answer: GateAnswer) -> Result<(), String> {
        let Request { id, wants, .. } = &waiting.request;
        let choices = wants.choices();
        let Some(choice) = Choice::from_word(&answer.choice).filter(|choice| choices.contains(choice)) else {
            let words = choices.iter().map(|choice| choice.as_str()).collect::<Vec<_>>().join(", ");
            return Err(format!("approval {id} has no option `{}`: it has {words}", answer.choice));
        };
        if let Some((name, _)) = answer.fields.first() {
            return Err(format!("approval {id} does not ask for `{name}`"));
        }
        let arguments = match (&answer.arguments, wants) {
            (None, _) => None,
            (Some(_), RequestKind::Spawn { .. }) => {
                return Err(format!("approval {id} is for a helper, which takes no arguments"));
            }
            (Some(_), RequestKind::Plan { .. }) => {
                return Err(format!("approval {id} is for a change of the plan, which takes no arguments"));
            }
            (Some(_), RequestKind::Merge { .. }) => {
                return Err(format!("approval {id} is for a merge, which takes no arguments"));
            }
            (Some(_), RequestKind::GoOn { .. }) => {
                return Err(format!("approval {id} is for a further turn, which takes no arguments"));
            }
            (Some(_), RequestKind::Help { .. }) => {
                return Err(format!("approval {id} is for help, which takes no arguments"));
            }
            (Some(_), RequestKind::Tool { fixed: true, .. }) => {
                return Err(format!(
                    "approval {id} takes no other arguments: its agent makes the call itself, so you can only allow or deny it"
                ));
            }
            (Some(_), RequestKind::Node { .. }) => {
                return Err(format!("approval {id} is for a task, which takes no arguments"));
            }
            (Some(_), _) if choice != Choice::Allow => {
                return Err("other arguments are for a single call: use `allow`".to_owned());
            }
            (Some(text), RequestKind::Tool { tool, schema, .. }) => {
                let schema = schema.as_ref().map(|schema| self.evaluator.load_text(schema)).transpose();
                let schema = schema.map_err(|failure| failure.to_string())?;
                let text = parse_arguments(text, schema.as_deref())
                    .map_err(|why| format!("`{tool}` cannot take them: {why}"))?;
                Some(self.outputs.keep_text(text).map_err(|failure| failure.to_string())?)
            }
        };
        let because =
            answer.because.as_deref().map(str::trim).filter(|because| !because.is_empty()).map(truncate_to_event);
        let verdict = Verdict { id: *id, choice, by: AnsweredBy::Person, because, arguments };
        self.answer_request(waiting, verdict);
        Ok(())
    }
}

/// The arguments that a person gives, as compact JSON.
fn parse_arguments(text: &str, schema: Option<&str>) -> Result<String, String> {
    if text.len() > LONGEST {
        return Err(format!("they are longer than {} KiB", LONGEST / 1024));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| format!("they are not JSON: {error}"))?;
    if !value.is_object() {
        return Err("they must be one JSON object".to_owned());
    }
    // An invalid schema checks nothing; the tool itself does.
    let schema = schema.and_then(|schema| serde_json::from_str(schema).ok());
    schema.map_or(Ok(()), |schema| answer::check_value(&schema, &value)).map_err(|violations| violations.join("; "))?;
    Ok(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_person_fit_what_the_tool_takes() {
        let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
        assert_eq!(parse_arguments("{ \"n\": 1 }", Some(schema)), Ok("{\"n\":1}".to_owned()));
        assert_eq!(parse_arguments("{\"n\": 1}", Some("7")), Ok("{\"n\":1}".to_owned()));
        assert_eq!(parse_arguments("{}", None), Ok("{}".to_owned()));
        assert_eq!(parse_arguments("[1]", None).unwrap_err(), "they must be one JSON object");
        assert!(parse_arguments("{", None).unwrap_err().starts_with("they are not JSON: "));
        let wrong = parse_arguments("{\"n\": \"one\"}", Some(schema)).unwrap_err();
        assert_eq!(wrong, "at /n: \"one\" is not a whole number");
        assert!(parse_arguments("{}", Some(schema)).is_err());
        let long = format!("{{\"n\": \"{}\"}}", "x".repeat(LONGEST));
        assert_eq!(parse_arguments(&long, None).unwrap_err(), "they are longer than 128 KiB");
    }
}
