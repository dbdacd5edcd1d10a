//! The dialogue of a former runner with an agent whose process goes on.
//!
//! The new dialogue begins as the former one did. In: what the former runner wrote (the file `in` of a shim). Out: what
//! the new dialogue says is dropped as long as it was said before, and the answers to that get the new ids of its requests.
//! What the agent asked for and was answered is dropped: it was done. What has no answer yet is asked anew.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// The request that begins a turn.
const PROMPT: &str = "session/prompt";

/// What a former runner has said.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// Its requests, by id and method, those that the new dialogue has not made yet.
    requests: VecDeque<(String, String)>,
    /// The new ids of the others.
    ids: HashMap<String, Value>,
    /// The requests of the agent that it has answered.
    answered: BTreeMap<String, u32>,
    was_prompted: bool,
    /// Whether the first line that waits answers a request that the new dialogue has yet to make.
    pub is_early: bool,
    /// Lines of the agent that wait for a request of the new dialogue.
    pub waiting: VecDeque<Vec<u8>>,
}

/// What a message is about.
#[derive(Deserialize)]
struct Head {
    id: Option<Value>,
    method: Option<String>,
}

/// What becomes of something that the new dialogue says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    /// The agent has been told.
    Known,
    /// It is new.
    New,
    /// The former dialogue went on in another way.
    Differs,
}

/// What becomes of a line of the agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// It is taken as it is.
    Plain,
    /// It is taken with another id.
    Renamed(Vec<u8>),
    /// It was answered: the id of the request.
    Done(String),
    /// It answers a request that the new dialogue has yet to make.
    Early,
}

impl Former {
    /// What lies in the file of what was said.
    pub(super) fn read(path: &Path) -> Former {
        let said = std::fs::read(path).unwrap_or_default();
        let mut former = Former::default();
        for line in said.split(|&byte| byte == b'\n') {
            let Ok(Head { id: Some(id), method }) = serde_json::from_slice(line) else { continue };
            match method {
                Some(method) => {
                    former.was_prompted |= method == PROMPT;
                    former.requests.push_back((id.to_string(), method));
                }
                // An agent may use a name again once it has its answer.
                None => *former.answered.entry(id.to_string()).or_default() += 1,
            }
        }
        former
    }

    /// Whether the turn had begun.
    pub(super) fn was_prompted(&self) -> bool {
        self.was_prompted
    }

    /// Whether the former dialogue has made requests that the new one has not.
    pub(super) fn has_unrepeated(&self) -> bool {
        !self.requests.is_empty()
    }

    /// What becomes of a line of the new dialogue.
    pub(super) fn take_outgoing(&mut self, line: &str) -> Outgoing {
        let Ok(Head { id: Some(id), method: Some(method) }) = serde_json::from_str(line) else { return Outgoing::New };
        match self.requests.pop_front() {
            None => Outgoing::New,
            Some((former, same)) if same == method => {
                self.is_early = false;
                self.ids.insert(former, id);
                Outgoing::Known
            }
            Some(_) => Outgoing::Differs,
        }
    }

    /// What becomes of a line of the agent.
    pub(super) fn take_incoming(&mut self, line: &[u8]) -> Incoming {
        let Ok(Head { id: Some(id), method }) = serde_json::from_slice(line) else { return Incoming::Plain };
        let id = id.to_string();
        if method.is_some() {
            let left = self.answered.get_mut(&id).filter(|left| **left > 0);
            let Some(left) = left else { return Incoming::Plain };
            *left -= 1;
            return Incoming::Done(id);
        }
        if self.requests.iter().any(|(former, _)| *former == id) {
            self.is_early = true;
            return Incoming::Early;
        }
        let renamed = self.ids.remove(&id).and_then(|new| {
            let mut message: Value = serde_json::from_slice(line).ok()?;
            message["id"] = new;
            serde_json::to_vec(&message).ok()
        });
        renamed.map_or(Incoming::Plain, Incoming::Renamed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn former(lines: &[&str]) -> Former {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.join("\n")).unwrap();
        Former::read(file.path())
    }

    #[test]
    fn what_was_said_is_not_said_again_and_its_answer_finds_the_new_request() {
        let mut former = former(&[r#"{"id":"a","method":"initialize"}"#, r#"{"id":"b","method":"session/prompt"}"#]);
        assert!(former.was_prompted());
        let answer = br#"{"id":"a","result":{}}"#;
        assert_eq!(former.take_incoming(answer), Incoming::Early);
        assert_eq!(former.take_outgoing(r#"{"id":"x","method":"initialize"}"#), Outgoing::Known);
        assert_eq!(former.take_incoming(answer), Incoming::Renamed(br#"{"id":"x","result":{}}"#.to_vec()));
        assert_eq!(former.take_incoming(answer), Incoming::Plain, "it was answered");
        assert_eq!(former.take_outgoing(r#"{"id":"y","method":"session/prompt"}"#), Outgoing::Known);
        assert_eq!(former.take_outgoing(r#"{"id":"z","method":"session/set_mode"}"#), Outgoing::New);
    }

    #[test]
    fn what_was_answered_is_not_asked_again() {
        let mut former = former(&[r#"{"id":1,"result":{}}"#, "no message", r#"{"id":"#]);
        let asked = br#"{"id":1,"method":"fs/write_text_file"}"#;
        assert_eq!(former.take_incoming(asked), Incoming::Done("1".to_owned()));
        assert_eq!(former.take_incoming(asked), Incoming::Plain, "the same id stands for another request");
        assert_eq!(former.take_incoming(br#"{"id":2,"method":"fs/write_text_file"}"#), Incoming::Plain);
        assert_eq!(former.take_incoming(br#"{"method":"session/update"}"#), Incoming::Plain);
        assert!(!former.was_prompted());
    }

    #[test]
    fn a_dialogue_that_goes_another_way_differs() {
        let mut former = former(&[r#"{"id":"a","method":"initialize"}"#]);
        assert_eq!(former.take_outgoing(r#"{"id":"x","method":"session/new"}"#), Outgoing::Differs);
    }
}
