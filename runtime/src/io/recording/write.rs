//! Writes a recording: keeps it in the run's folder while the run goes on, and moves it to its place at the end.
//!
//! Invariant: the folder that was asked for holds a whole recording or what it held before. What an attempt asked is on
//! disk before its end is recorded in the journal, so that a run which is stopped and resumed has one recording.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::line::{Answered, Asked, LINES, Line, Place, TEXTS, Text};
use super::redact::Redactions;
use super::{Answer, Part, Question};
use crate::io::home::{RunFolder, create_private};
use crate::types::digest::{file_name, folder_name};
use crate::types::error::RunError;
use crate::types::event::{Failure, StepId};

/// A line itself holds texts up to this many bytes, unless they have several lines.
const INLINE: usize = 160;

/// A name of a file is cut to a digest beyond this many bytes.
const LONGEST_NAME: usize = 150;

/// Writes down what a run asks.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(super) folder: PathBuf,
    pub(super) redactions: Redactions,
    lines: Mutex<File>,
    /// What was asked last, and of swarms, by who was asked.
    pub(super) asked: Mutex<super::member::Open>,
}

impl Recorder {
    /// Goes on with the recording in the folder of a run.
    pub(crate) fn new(run: &RunFolder, redactions: Redactions) -> Result<Recorder, RunError> {
        let folder = draft(run);
        create_private(&folder, true).map_err(RunError::io("create", &folder))?;
        let path = folder.join(LINES);
        let opened = File::options().append(true).create(true).open(&path).and_then(|mut file| {
            // What a killed runner had begun to write is no line.
            file.write_all(b"\n")?;
            Ok(file)
        });
        let lines = Mutex::new(opened.map_err(RunError::io("write", &path))?);
        Ok(Recorder { folder, redactions, lines, asked: Mutex::default() })
    }

    /// An attempt begins.
    pub(crate) fn begin(&self, step: &StepId, attempt: u32) -> Result<(), RunError> {
        self.put(&Line::Began { place: Place::of(step, attempt) })
    }

    /// Something was asked and answered.
    pub(crate) fn record(
        &self,
        (step, attempt, part): (&StepId, u32, Part),
        question: &Question,
        answer: &Answer,
    ) -> Result<(), RunError> {
        let place = Place::of(step, attempt);
        let name = match part {
            Part::Turn(0, 1) => String::new(),
            Part::Turn(0, turn) => format!("turn-{turn}."),
            Part::Turn(fallback, 1) => format!("fallback-{fallback}."),
            Part::Turn(fallback, turn) => format!("fallback-{fallback}.turn-{turn}."),
            Part::Command => String::new(),
            Part::Check(check) => format!("check-{check}."),
        };
        let texts =
            Texts { folder: &self.folder, redactions: &self.redactions, stem: stem(&place, true), part: name.into() };
        let (asked, answer) = (texts.asked(question)?, texts.answered(answer)?);
        self.put(&match part {
            Part::Turn(fallback, turn) => Line::Turn { place, turn, fallback, asked, answer },
            Part::Command => Line::Command { place, asked, answer },
            Part::Check(check) => Line::Check { place, check, asked, answer },
        })
    }

    /// A file was read into a text of an attempt; 0 is no attempt's.
    pub(crate) fn file(
        &self,
        (step, attempt): (&StepId, u32),
        path: &str,
        read: &Result<String, String>,
    ) -> Result<(), RunError> {
        let place = Place::of(step, attempt);
        let part = format!("file-{}.", file_name(path));
        let texts =
            Texts { folder: &self.folder, redactions: &self.redactions, stem: stem(&place, true), part: part.into() };
        let (text, problem) = match read {
            Ok(text) => (Some(texts.text("text", text.as_bytes())?), None),
            Err(problem) => (None, Some(self.redactions.blank_text(problem))),
        };
        self.put(&Line::File { place, path: path.to_owned(), text, problem })
    }

    pub(super) fn put(&self, line: &Line) -> Result<(), RunError> {
        let mut text = serde_json::to_string(line).expect("lines have string keys only");
        text.push('\n');
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.write_all(text.as_bytes()).map_err(RunError::io("write", self.folder.join(LINES)))
    }
}

/// The texts of one question and its answer.
pub(super) struct Texts<'a> {
    pub folder: &'a Path,
    pub redactions: &'a Redactions,
    pub stem: PathBuf,
    pub part: Cow<'a, str>,
}

impl Texts<'_> {
    pub(super) fn asked(&self, question: &Question) -> Result<Asked, RunError> {
        let Question { agent, system, prompt, command, stdin, env, session, schema } = question;
        let text =
            |name: &str, text: &Option<String>| text.as_ref().map(|text| self.text(name, text.as_bytes())).transpose();
        let env = env
            .iter()
            .map(|(name, value)| {
                let file = format!("env-{}", file_name(name));
                Ok((name.clone(), self.text(&file, value.as_bytes())?))
            })
            .collect::<Result<_, RunError>>()?;
        Ok(Asked {
            agent: agent.clone(),
            system: text("system", system)?,
            prompt: text("prompt", prompt)?,
            command: text("command", command)?,
            stdin: text("stdin", stdin)?,
            env,
            session: session.as_ref().map(|session| self.redactions.blank_text(session)),
            schema: text("schema", schema)?,
        })
    }

    fn answered(&self, answer: &Answer) -> Result<Answered, RunError> {
        let Answer { failure, exit, stderr, log, usage, session, text, whole, is_cut, used_tool } = answer;
        let stderr = (!stderr.is_empty()).then(|| self.text("stderr", stderr.as_bytes())).transpose()?;
        Ok(Answered {
            text: text.as_ref().map(|text| self.text("answer", text)).transpose()?,
            whole: whole.as_ref().map(|whole| self.text("whole-answer", whole.as_bytes())).transpose()?,
            cut: *is_cut,
            exit: *exit,
            failure: failure.as_ref().map(|failure| told(failure, self.redactions)),
            stderr,
            log: log.as_ref().map(|log| self.text("log", log.as_bytes())).transpose()?,
            usage: *usage,
            session: session.as_ref().map(|session| self.redactions.blank_text(session)),
            tools: *used_tool,
        })
    }

    /// A text as a line holds it, its file written where it is one.
    pub(super) fn text(&self, name: &str, bytes: &[u8]) -> Result<Text, RunError> {
        self.blanked(name, self.redactions.blank(bytes))
    }

    /// The same of a text that has its placeholders.
    pub(super) fn blanked(&self, name: &str, blanked: Vec<u8>) -> Result<Text, RunError> {
        match String::from_utf8(blanked) {
            Ok(text) if text.len() <= INLINE && !text.trim_end_matches('\n').contains(['\n', '\r']) => {
                Ok(Text::Here(text))
            }
            Ok(text) => self.file(name, text.as_bytes()),
            Err(error) => self.file(name, error.as_bytes()),
        }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> Result<Text, RunError> {
        let mut relative = Path::new(TEXTS).join(&self.stem);
        let stem = relative.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut file = format!("{stem}{}{name}", self.part);
        if file.len() > LONGEST_NAME {
            file = format!("{}.{name}", crate::types::digest::digest_bytes(file.as_bytes()));
        }
        relative.set_file_name(format!("{file}.txt"));
        let path = self.folder.join(&relative);
        let folder = path.parent().expect("a text lies in a folder");
        create_private(folder, true).map_err(RunError::io("create", folder))?;
        fs::write(&path, bytes).map_err(RunError::io("write", &path))?;
        Ok(Text::File { file: relative.to_string_lossy().into_owned() })
    }
}

/// A failure with placeholders for what differs between runs.
pub(super) fn told(failure: &Failure, redactions: &Redactions) -> Failure {
    let mut failure = failure.clone();
    if let Failure::Spawn { message }
    | Failure::Agent { message }
    | Failure::Render { message }
    | Failure::Files { message, .. } = &mut failure
    {
        *message = redactions.blank_text(message);
    }
    failure
}

/// Where the texts of an attempt lie, from the folder of texts: `[instance-2/][WITHIN/]STEP.[ROUND.ATTEMPT.]`.
pub(super) fn stem(place: &Place, attempts: bool) -> PathBuf {
    let mut path = PathBuf::new();
    if place.instance > 1 {
        path.push(format!("instance-{}", place.instance));
    }
    path.extend(place.within.iter().flat_map(|within| within.split('/')).map(|part| shortened(folder_name(part))));
    let name = shortened(file_name(&place.step));
    path.push(match attempts {
        true => format!("{name}.{}.{}.", place.iteration, place.attempt),
        false => format!("{name}.{}.", place.iteration),
    });
    path
}

fn shortened(name: String) -> String {
    if name.len() > LONGEST_NAME { crate::types::digest::digest_bytes(name.as_bytes()) } else { name }
}

/// Where the recording of a run lies while the run goes on.
pub(super) fn draft(run: &RunFolder) -> PathBuf {
    run.path.join("recording")
}

/// Whether a run is recorded, and its recording is not yet where it belongs.
pub(crate) fn is_kept(run: &RunFolder) -> bool {
    draft(run).join(LINES).is_file()
}

/// Whether a recording may take the place of what is at `path`: nothing, an empty folder, or a recording.
///
/// # Errors
/// Says what is there.
pub(crate) fn may_replace(path: &Path) -> Result<(), RunError> {
    let refuse = |what: &str| {
        let path = path.display();
        Err(RunError::Request(format!("cannot record into `{path}`: {what}; name a new or an empty folder")))
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().unwrap_or(Path::new("/"));
            return fs::create_dir_all(parent).map_err(RunError::io("create", parent));
        }
        Err(error) => return Err(RunError::io("read", path)(error)),
        Ok(meta) if !meta.is_dir() => return refuse("it is no folder"),
        Ok(_) => {}
    }
    let mut entries = fs::read_dir(path).map_err(RunError::io("read", path))?;
    if entries.next().is_none() || super::read::is_recording(path) {
        return Ok(());
    }
    refuse("something else is in it")
}
