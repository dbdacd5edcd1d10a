//! Takes exchanges for the journal of a run that is recorded, with placeholders for what differs between runs.
//!
//! Long texts are written at once, into the run's folder. Invariant: the driver writes an exchange into the journal before
//! the event that follows from it, so that a run which is stopped and resumed has one recording.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::exchange::{Answered, Exchange, RecordedQuestion, TEXTS, Text};
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

/// Takes down what a run asks.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(super) folder: PathBuf,
    pub(super) redactions: Redactions,
    /// What is not in the journal yet.
    pending: Mutex<Vec<Exchanged>>,
    /// What was asked last, and of swarms, by who was asked.
    pub(super) asked: Mutex<super::swarm_turns::OpenTurns>,
}

/// An exchange for the journal.
#[derive(Debug)]
pub(crate) struct Exchanged {
    pub step: StepId,
    /// 0 where it is no attempt's.
    pub attempt: u32,
    /// The exchange, as JSON.
    pub exchange: String,
}

impl Recorder {
    /// Records the run in this folder, or goes on with that.
    ///
    /// # Errors
    /// The folder for texts cannot be created.
    pub(crate) fn new(run: &RunFolder, redactions: Redactions) -> Result<Recorder, RunError> {
        let folder = draft(run);
        create_private(&folder, true).map_err(RunError::io("create", &folder))?;
        Ok(Recorder { folder, redactions, pending: Mutex::default(), asked: Mutex::default() })
    }

    /// What is to be written into the journal before the next event.
    pub(crate) fn take_pending(&self) -> Vec<Exchanged> {
        std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Something was asked and answered.
    pub(crate) fn record(
        &self,
        (step, attempt, part): (&StepId, u32, Part),
        question: &Question,
        answer: &Answer,
    ) -> Result<(), RunError> {
        let name = match part {
            Part::Turn(0, 1) => String::new(),
            Part::Turn(0, turn) => format!("turn-{turn}."),
            Part::Turn(fallback, 1) => format!("fallback-{fallback}."),
            Part::Turn(fallback, turn) => format!("fallback-{fallback}.turn-{turn}."),
            Part::Command => String::new(),
            Part::Check(check) => format!("check-{check}."),
        };
        let texts = self.texts((step, attempt), name.into());
        let (asked, answer) = (texts.record_question(question)?, texts.answered(answer)?);
        let exchange = match part {
            Part::Turn(fallback, turn) => Exchange::Turn { turn, fallback, asked, answer },
            Part::Command => Exchange::Command { asked, answer },
            Part::Check(check) => Exchange::Check { check, asked, answer },
        };
        self.put((step, attempt), &exchange);
        Ok(())
    }

    /// A file was read into a text of an attempt; 0 is no attempt's.
    pub(crate) fn file(&self, of: (&StepId, u32), path: &str, read: &Result<String, String>) -> Result<(), RunError> {
        let texts = self.texts(of, format!("file-{}.", file_name(path)).into());
        let (text, problem) = match read {
            Ok(text) => (Some(texts.text("text", text.as_bytes())?), None),
            Err(problem) => (None, Some(self.redactions.blank_text(problem))),
        };
        self.put(of, &Exchange::File { path: path.to_owned(), text, problem });
        Ok(())
    }

    pub(super) fn put(&self, (step, attempt): (&StepId, u32), exchange: &Exchange) {
        let exchange = serde_json::to_string(exchange).expect("exchanges have string keys only");
        let exchanged = Exchanged { step: step.clone(), attempt, exchange };
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push(exchanged);
    }

    /// Where the texts of an attempt go.
    pub(super) fn texts<'t>(&'t self, of: (&StepId, u32), part: Cow<'t, str>) -> Texts<'t> {
        Texts { folder: &self.folder, redactions: &self.redactions, stem: text_stem(of), part }
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
    pub(super) fn record_question(&self, question: &Question) -> Result<RecordedQuestion, RunError> {
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
        Ok(RecordedQuestion {
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
        let Answer { failure, exit, stderr, log, usage, session, text, whole, is_cut, used_tool, refused } = answer;
        let stderr = (!stderr.is_empty()).then(|| self.text("stderr", stderr.as_bytes())).transpose()?;
        Ok(Answered {
            text: text.as_ref().map(|text| self.text("answer", text)).transpose()?,
            whole: whole.as_ref().map(|whole| self.text("whole-answer", whole.as_bytes())).transpose()?,
            cut: *is_cut,
            exit: *exit,
            failure: failure.as_ref().map(|failure| blank_failure(failure, self.redactions)),
            stderr,
            log: log.as_ref().map(|log| self.text("log", log.as_bytes())).transpose()?,
            usage: *usage,
            session: session.as_ref().map(|session| self.redactions.blank_text(session)),
            tools: *used_tool,
            refused: (1..)
                .zip(refused)
                .map(|(n, why)| self.text(&format!("refused-{n}"), why.as_bytes()))
                .collect::<Result<_, _>>()?,
        })
    }

    /// A text as a line holds it, its file written where it is one.
    pub(super) fn text(&self, name: &str, bytes: &[u8]) -> Result<Text, RunError> {
        self.blanked(name, self.redactions.blank(bytes))
    }

    /// The same of a text that has its placeholders.
    pub(super) fn blanked(&self, name: &str, blanked: Vec<u8>) -> Result<Text, RunError> {
        match String::from_utf8(blanked) {
            // What has several lines is easier to read, and to compare, in a file of its own.
            Ok(text) if text.len() <= INLINE && !text.trim_end_matches('\n').contains(['\n', '\r']) => {
                Ok(Text::Here(text))
            }
            Ok(text) => self.file(name, text.as_bytes()),
            // A line is JSON, which holds text alone.
            Err(error) => self.file(name, error.as_bytes()),
        }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> Result<Text, RunError> {
        let mut relative = Path::new(TEXTS).join(&self.stem);
        let stem = relative.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut file = format!("{stem}{}{name}", self.part);
        // The names of a step, a part and a text together can exceed the 255 bytes that file systems allow.
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
pub(super) fn blank_failure(failure: &Failure, redactions: &Redactions) -> Failure {
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

/// Where the texts of an attempt lie, from the folder of texts: `[instance-2/][WITHIN/]STEP.ROUND.ATTEMPT.`.
pub(super) fn text_stem((step, attempt): (&StepId, u32)) -> PathBuf {
    let mut path = PathBuf::new();
    if step.instance > 1 {
        path.push(format!("instance-{}", step.instance));
    }
    path.extend(step.within.iter().flat_map(|within| within.split('/')).map(|part| shortened(folder_name(part))));
    path.push(format!("{}.{}.{attempt}.", shortened(file_name(&step.name)), step.iteration));
    path
}

fn shortened(name: String) -> String {
    if name.len() > LONGEST_NAME { crate::types::digest::digest_bytes(name.as_bytes()) } else { name }
}

/// Where the texts of a recording lie while the run goes on.
pub(super) fn draft(run: &RunFolder) -> PathBuf {
    run.path.join("recording")
}

/// Whether a run is recorded, and its recording is not yet where it belongs.
pub(crate) fn is_kept(run: &RunFolder) -> bool {
    draft(run).is_dir()
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
    // A link is refused: the rename at the end would replace the link, and not the folder behind it.
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
    // A recording is replaced whole: anything else in the folder would be lost.
    if entries.next().is_none() || super::read::is_recording(path) {
        return Ok(());
    }
    refuse("something else is in it")
}
