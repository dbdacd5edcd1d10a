//! `messages/`: files that agents write to each other, `{from}_to_{to}_NNN.json`, and which of them are envelopes.
//!
//! In: the envelopes of a turn, or the files that an agent left. Out: files for it to find, or handoffs, which go the
//! way of all others. Invariant: the sender of a message is the agent that left it, whatever the message says.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use serde::Deserialize;
use serde_json::{Value, json};

use super::tree;
use crate::types::handoff::{self, Envelope, MessageKind, Operation, Receivers};
use crate::types::visible_text::shown;

/// The bytes of a message.
const LONGEST: u64 = 64 * 1024;

/// The messages of one turn at most.
const MOST: usize = 1000;

/// The names among which they are found.
const LISTED: usize = 100_000;

/// The characters of a name that becomes part of a file's.
const NAME: usize = 100;

/// A message as agents write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    #[serde(default)]
    from: Option<String>,
    to: String,
    #[serde(default, rename = "timestamp")]
    _timestamp: Option<String>,
    #[serde(rename = "type")]
    kind: MessageKind,
    #[serde(default)]
    content: Value,
    /// Which message it answers.
    #[serde(default)]
    id: Option<String>,
}

/// The messages of one turn.
#[derive(Debug, Default)]
pub(crate) struct TurnMessages {
    /// What it finds, by the names of files.
    pub found: Vec<(String, String)>,
    /// Whom it can write to.
    pub receivers: Receivers,
}

/// The files that a turn finds of what it reads, by name: envelopes as JSON, and the texts of authors that are no
/// agents.
pub(crate) fn message_files<'t>(
    me: &str,
    letters: impl IntoIterator<Item = (Option<&'t str>, &'t str)>,
) -> Vec<(String, String)> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut files = Vec::new();
    for (author, text) in letters {
        let told = |from: &str| json!({ "from": from, "to": me, "type": "update", "content": { "message": text } });
        let message = match (author, serde_json::from_str::<Envelope>(text)) {
            (None, Ok(envelope)) => {
                let said = &envelope.payload.message;
                let content = envelope.payload.structured.clone().unwrap_or_else(|| json!({ "message": said }));
                json!({
                    "from": envelope.from_node_id, "to": envelope.to_node_id, "timestamp": envelope.created_at,
                    "type": MessageKind::from_envelope(&envelope).as_str(), "content": content, "id": envelope.id,
                })
            }
            (author, _) => told(author.unwrap_or_default()),
        };
        let from = message["from"].as_str().unwrap_or_default().to_owned();
        let count = counts.entry(from.clone()).or_insert(0);
        *count += 1;
        files.push((message_name(&from, me, *count), format!("{message:#}\n")));
    }
    files
}

fn message_name(from: &str, to: &str, number: u32) -> String {
    let safe = |name: &str| -> String { crate::types::digest::file_name(name).chars().take(NAME).collect() };
    format!("{}_to_{}_{number:03}.json", safe(from), safe(to))
}

/// What the messages that an agent left ask for, in the order of their numbers.
pub(super) fn read_operations(root: BorrowedFd<'_>, me: &str, post: &TurnMessages) -> Vec<Result<Operation, String>> {
    let Ok(folder) = tree::open_folder(root, "messages") else { return Vec::new() };
    let listing = match tree::list(folder.as_fd(), "messages", LISTED) {
        Ok(listing) => listing,
        Err(problem) => return vec![Err(problem)],
    };
    let mut asked: Vec<Result<Operation, String>> = listing.wrong.into_iter().map(Err).collect();
    let new = |path: &str| !post.found.iter().any(|(name, _)| name == path);
    let mut names: Vec<String> = listing
        .found
        .into_iter()
        .filter(|found| !found.is_folder && new(&found.path))
        .map(|found| found.path)
        .collect();
    names.sort_by_key(|name| (message_number(name), name.clone()));
    if listing.is_cut || names.len() > MOST {
        asked.push(Err(format!("there are more than {MOST} messages: those with the highest numbers are ignored")));
        names.truncate(MOST);
    }
    asked.extend(names.iter().map(|name| {
        read_message(folder.as_fd(), me, name, post)
            .map_err(|problem| format!("the message `{}`: {problem}", shown(name)))
    }));
    asked
}

/// The number in the name of a message.
fn message_number(name: &str) -> u64 {
    let number = name.strip_suffix(".json").and_then(|name| name.rsplit('_').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
}

fn read_message(folder: BorrowedFd<'_>, me: &str, name: &str, post: &TurnMessages) -> Result<Operation, String> {
    let bytes = tree::read(folder, name, LONGEST)?;
    let message: Message = serde_json::from_slice(&bytes).map_err(|error| shown(&error.to_string()))?;
    if message.from.as_deref().is_some_and(|from| from != me) {
        return Err(format!(
            "it names the sender `{}`, but this folder belongs to `{me}`",
            shown(&message.from.unwrap_or_default())
        ));
    }
    let expected = format!("{me}_to_{}_", message.to);
    if message_number(name) == u64::MAX || !name.starts_with(&expected) {
        return Err(format!("a message to `{}` must be called `{expected}NNN.json`", shown(&message.to)));
    }
    let Message { to, kind, content, id: reply_to, .. } = message;
    let message = handoff::Message { to, kind, content, reply_to };
    Ok(Operation::SendHandoff(Box::new(message.into_handoff(&post.receivers)?)))
}
