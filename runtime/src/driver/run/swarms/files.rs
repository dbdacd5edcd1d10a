//! Mailboxes and the workspace of a swarm as files: a line of JSON for each message and entry, as seed 001 has them.
//!
//! In: events, when they are recorded, or those of a journal. Out: lines at the end of files in the run's folder. They
//! are for people; the journal is what counts, and a resumed run makes them anew from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::driver::Driver;
use super::super::eval::TextReader;
use crate::io::home::{Layout, RunFolder, create_private};
use crate::types::error::RunError;
use crate::types::event::{Event, Record};
use crate::types::team_fact::TeamFact;

/// Nanoseconds in a millisecond: seed 001 counts the former.
const NANOSECONDS: u64 = 1_000_000;

impl Driver<'_> {
    /// Something happened in a swarm.
    pub(in crate::driver::run) fn record_swarm_event(&mut self, event: Event) {
        let shown = (self.outputs.writes_files() && is_shown(&event)).then(|| event.clone());
        self.record(event);
        let Some(event) = shown else { return };
        if let Event::SwarmStarted { swarm, .. } = &event
            && swarm.attempt > 1
        {
            self.outputs.remove_folder(self.outputs.layout.swarm_folder(&swarm.step));
        }
        match format_line(&*self.outputs.texts, &self.outputs.layout, &event, self.records.clock) {
            Ok(Some((path, line))) => self.outputs.append(path, line),
            Ok(None) => {}
            Err(problem) => self.give_up(problem),
        }
    }
}

/// How long the files of swarms are, by their paths in the folder of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::driver::run) struct FileLengths(BTreeMap<PathBuf, u64>);

impl FileLengths {
    /// Adds what the lines of these records, which all count, take.
    ///
    /// # Errors
    /// A text that one of them names cannot be read.
    pub(in crate::driver::run) fn add(
        &mut self,
        folder: &RunFolder,
        layout: &Layout,
        records: &[Record],
    ) -> Result<(), RunError> {
        fold_lines(&mut self.0, (folder, layout), records, |length, line| *length += line.len() as u64)
    }

    /// The files as they were then; none where one of them is shorter now.
    pub(in crate::driver::run) fn read(&self, folder: &RunFolder) -> Option<SwarmFiles> {
        let read = |(path, length): (&PathBuf, &u64)| {
            let mut bytes = std::fs::read(folder.path.join(path)).ok()?;
            let length = usize::try_from(*length).ok().filter(|length| *length <= bytes.len())?;
            bytes.truncate(length);
            Some((path.clone(), bytes))
        };
        self.0.iter().map(read).collect()
    }
}

/// The files of swarms, by their paths in the folder of the run.
pub(in crate::driver::run) type SwarmFiles = BTreeMap<PathBuf, Vec<u8>>;

/// Makes the files of all swarms anew: those that there were before these records, and what the records add.
pub(in crate::driver::run) fn restore_files(
    folder: &RunFolder,
    layout: &Layout,
    mut files: SwarmFiles,
    records: &[Record],
) -> Result<(), RunError> {
    let root = layout.swarms_folder();
    match std::fs::remove_dir_all(&root) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(RunError::io("remove", root)(error)),
        _ => {}
    }
    fold_lines(&mut files, (folder, layout), records, |lines: &mut Vec<u8>, line| lines.extend(line))?;
    for (path, lines) in files {
        let path = folder.path.join(path);
        if let Some(folder) = path.parent() {
            create_private(folder, true).map_err(RunError::io("create", folder))?;
        }
        std::fs::write(&path, lines).map_err(RunError::io("write", path))?;
    }
    Ok(())
}

/// Adds the lines of these records, which all count, to the files that they belong to.
fn fold_lines<T: Default>(
    files: &mut BTreeMap<PathBuf, T>,
    (folder, layout): (&RunFolder, &Layout),
    records: &[Record],
    add: impl Fn(&mut T, &[u8]),
) -> Result<(), RunError> {
    let inside = |path: PathBuf| path.strip_prefix(&folder.path).map(Path::to_owned).unwrap_or(path);
    for record in records {
        if let Event::SwarmStarted { swarm, .. } = &record.event {
            // Those of an earlier attempt.
            let own = inside(layout.swarm_folder(&swarm.step));
            files.retain(|path, _| !path.starts_with(&own));
        }
        if let Some((path, line)) = format_line(folder, layout, &record.event, record.at).map_err(RunError::Request)? {
            add(files.entry(inside(path)).or_default(), &line);
        }
    }
    Ok(())
}

fn is_shown(event: &Event) -> bool {
    let is_post = matches!(event, Event::Team { fact: TeamFact::Posted { .. }, .. });
    is_post || matches!(event, Event::SwarmStarted { .. } | Event::MessageSent { .. } | Event::DataPublished { .. })
}

/// The line that an event adds, and to which file.
fn format_line(
    texts: &dyn TextReader,
    layout: &Layout,
    event: &Event,
    at: u64,
) -> Result<Option<(PathBuf, Vec<u8>)>, String> {
    let ts = at.saturating_mul(NANOSECONDS);
    let (path, line) = match event {
        Event::MessageSent { swarm, message: sent } => {
            let payload = texts.load_text(&sent.payload)?;
            let payload: Value = serde_json::from_str(&payload).unwrap_or(Value::String(payload));
            let line = json!({
                "seq": sent.number, "from": &*sent.from, "to": &*sent.to, "type": sent.kind, "payload": payload, "ts": ts,
            });
            (layout.mailbox_path(&swarm.step, &sent.to), line)
        }
        Event::Team { swarm, fact: TeamFact::Posted { agent, channel, message } } => {
            let payload = texts.load_text(message)?;
            let payload: Value = serde_json::from_str(&payload).unwrap_or(Value::String(payload));
            let line = json!({ "from": &**agent, "channel": channel.as_deref(), "payload": payload, "ts": ts });
            (layout.posts_path(&swarm.step), line)
        }
        Event::DataPublished { swarm, number, topic, author, data } => {
            let entry = json!({ "author": &**author, "data": texts.load_text(data)? });
            (
                layout.topic_path(&swarm.step, topic),
                json!({ "seq": number, "topic": &**topic, "entry": entry, "ts": ts }),
            )
        }
        _ => return Ok(None),
    };
    Ok(Some((path, format!("{line}\n").into_bytes())))
}
