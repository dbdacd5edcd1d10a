//! What waits for a person, and the answer while a person types it.
//!
//! In: the questions of a run; keys. Out: [`Ask`]s as the screen shows them, and the answer once all of its fields are
//! typed. Invariant: a field that the gate requires is never left empty.

use swarmc_runtime::GateAnswer;
use swarmc_view::documents::GateField;
use swarmc_view::{FollowedRun, Question, list_questions};

use super::keys::Key;

/// The lines of a gate's message that are read at most.
const QUESTION: usize = 500;

/// The characters of a field at most: the line of an answer holds no more than some KB.
const FIELD: usize = 2_000;

/// What waits for a person.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ask {
    /// What it is answered by: the number of a request, or the id of a gate.
    pub(super) key: String,
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    /// The words that answer it.
    pub(crate) choices: Vec<String>,
    /// What a gate asks for besides the word.
    pub(super) fields: Vec<Field>,
}

/// A field of a gate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    name: String,
    is_optional: bool,
    about: Option<String>,
}

/// The fields of an answer, while a person types them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Filling {
    answer: GateAnswer,
    fields: Vec<Field>,
    /// The text of the field that is typed now, the first one that the answer does not have.
    text: String,
    at: usize,
}

/// What becomes of a form after a key.
pub(super) enum Filled {
    /// It goes on.
    Open,
    /// The person leaves it.
    Dropped,
    /// It is whole.
    Done(GateAnswer),
}

impl Filling {
    /// The form for the fields of a question; the answer itself where it has none.
    pub(super) fn begin(ask: &Ask, choice: String) -> Result<Filling, GateAnswer> {
        let answer = GateAnswer { gate: ask.key.clone(), choice, ..GateAnswer::default() };
        match ask.fields.is_empty() {
            true => Err(answer),
            false => Ok(Filling { answer, fields: ask.fields.clone(), text: String::new(), at: 0 }),
        }
    }

    /// The question that it is for.
    pub(super) fn key(&self) -> &str {
        &self.answer.gate
    }

    /// The line that shows what is typed.
    pub(crate) fn prompt(&self) -> String {
        let Some(field) = self.fields.get(self.at) else { return String::new() };
        let optional = if field.is_optional { " (optional)" } else { "" };
        let about = field.about.as_deref().map(|about| format!(", {about}")).unwrap_or_default();
        format!("{}, with {}{optional}{about}: {}_", self.answer.choice, field.name, self.text)
    }

    pub(super) fn press(&mut self, key: Key) -> Filled {
        match key {
            Key::Back => return Filled::Dropped,
            Key::Char(sign) if !sign.is_control() && self.text.chars().count() < FIELD => self.text.push(sign),
            Key::Erase => _ = self.text.pop(),
            Key::Open => {
                let Some(field) = self.fields.get(self.at) else { return Filled::Done(self.answer.clone()) };
                let text = self.text.trim().to_owned();
                if text.is_empty() && !field.is_optional {
                    return Filled::Open;
                }
                if !text.is_empty() {
                    self.answer.fields.push((field.name.clone(), text));
                }
                (self.at, self.text) = (self.at + 1, String::new());
                if self.at == self.fields.len() {
                    return Filled::Done(self.answer.clone());
                }
            }
            _ => {}
        }
        Filled::Open
    }
}

/// What waits for a person: gates first, then requests of agents, each in the order in which it came.
pub(super) fn list_asks(run: &FollowedRun) -> Vec<Ask> {
    if run.report.finished.is_some() {
        return Vec::new();
    }
    list_questions(&run.report, &run.folder, run.report.changed_ms).into_iter().map(build_ask).collect()
}

fn build_ask(question: Question) -> Ask {
    let Question { key, step, request, mut lines, choices, fields, .. } = question;
    lines.truncate(QUESTION);
    let title = request.map_or(step.clone(), |wants| format!("{key} {step}: {wants}"));
    let fields = fields.into_iter().map(|GateField { name, optional, description }| Field {
        name,
        is_optional: optional,
        about: description,
    });
    Ask { key, title, lines, choices, fields: fields.collect() }
}
