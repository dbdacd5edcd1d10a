//! Writing a recording: kept in the run's folder while the run goes on, and put where it belongs when it has ended.
//!
//! Invariant: the folder that was asked for holds a whole recording or what it held before. What an attempt asked is on
//! disk before its end is recorded in the journal, so that a run which is stopped and resumed has one recording.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::blank::Blanks;
use super::line::{Answered, Asked, Header, LINES, Line, Place, TEXTS, Text};
use super::{Answer, Part, Question};
use crate::error::RunError;
use crate::event::{Content, Event, Failure, RunStatus, StepId};
use crate::home::{RunFolder, create_private, file_name, folder_name};

/// Texts up to this many bytes stand in their line, unless they have several lines themselves.
const INLINE: usize = 160;

/// A name of a file is cut to a digest beyond this many bytes.
const LONGEST_NAME: usize = 150;

/// Writes down what a run asks.
#[derive(Debug)]
pub(crate) struct Recorder {
    folder: PathBuf,
    blanks: Blanks,
    lines: Mutex<File>,
}

impl Recorder {
    /// Goes on with the recording in the folder of a run.
    pub(crate) fn new(run: &RunFolder, blanks: Blanks) -> Result<Recorder, RunError> {
        let folder = draft(run);
        create_private(&folder, true).map_err(RunError::io("create", &folder))?;
        let path = folder.join(LINES);
        let opened = File::options().append(true).create(true).open(&path).and_then(|mut file| {
            // What a killed runner had begun to write is no line.
            file.write_all(b"\n")?;
            Ok(file)
        });
        Ok(Recorder { lines: Mutex::new(opened.map_err(RunError::io("write", &path))?), folder, blanks })
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
        let texts = Texts { folder: &self.folder, blanks: &self.blanks, stem: stem(&place, true), part: &name };
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
        let texts = Texts { folder: &self.folder, blanks: &self.blanks, stem: stem(&place, true), part: &part };
        let (text, problem) = match read {
            Ok(text) => (Some(texts.text("text", text.as_bytes())?), None),
            Err(problem) => (None, Some(self.blanks.blank_text(problem))),
        };
        self.put(&Line::File { place, path: path.to_owned(), text, problem })
    }

    fn put(&self, line: &Line) -> Result<(), RunError> {
        let mut text = serde_json::to_string(line).expect("lines have string keys only");
        text.push('\n');
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.write_all(text.as_bytes()).map_err(RunError::io("write", self.folder.join(LINES)))
    }
}

/// The texts of one question and its answer.
struct Texts<'a> {
    folder: &'a Path,
    blanks: &'a Blanks,
    stem: PathBuf,
    part: &'a str,
}

impl Texts<'_> {
    fn asked(&self, question: &Question) -> Result<Asked, RunError> {
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
            session: session.as_ref().map(|session| self.blanks.blank_text(session)),
            schema: text("schema", schema)?,
        })
    }

    fn answered(&self, answer: &Answer) -> Result<Answered, RunError> {
        let Answer { failure, exit, stderr, usage, session, text, whole, is_cut, used_tool } = answer;
        let stderr = (!stderr.is_empty()).then(|| self.text("stderr", stderr.as_bytes())).transpose()?;
        Ok(Answered {
            text: text.as_ref().map(|text| self.text("answer", text)).transpose()?,
            whole: whole.as_ref().map(|whole| self.text("whole-answer", whole.as_bytes())).transpose()?,
            cut: *is_cut,
            exit: *exit,
            failure: failure.as_ref().map(|failure| told(failure, self.blanks)),
            stderr,
            usage: *usage,
            session: session.as_ref().map(|session| self.blanks.blank_text(session)),
            tools: *used_tool,
        })
    }

    /// A text as a line holds it, its file written where it is one.
    fn text(&self, name: &str, bytes: &[u8]) -> Result<Text, RunError> {
        let blanked = self.blanks.blank(bytes);
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
            file = format!("{}.{name}", crate::home::digest(file.as_bytes()));
        }
        relative.set_file_name(format!("{file}.txt"));
        let path = self.folder.join(&relative);
        let folder = path.parent().expect("a text lies in a folder");
        create_private(folder, true).map_err(RunError::io("create", folder))?;
        fs::write(&path, bytes).map_err(RunError::io("write", &path))?;
        Ok(Text::File { file: relative.to_string_lossy().into_owned() })
    }
}

/// A failure with blanks for what is another in every run.
fn told(failure: &Failure, blanks: &Blanks) -> Failure {
    let mut failure = failure.clone();
    if let Failure::Spawn { message } | Failure::Agent { message } | Failure::Render { message } = &mut failure {
        *message = blanks.blank_text(message);
    }
    failure
}

/// Where the texts of an attempt lie, from the folder of texts: `[instance-2/][WITHIN/]STEP.[ROUND.ATTEMPT.]`.
fn stem(place: &Place, attempts: bool) -> PathBuf {
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
    if name.len() > LONGEST_NAME { crate::home::digest(name.as_bytes()) } else { name }
}

/// Where the recording of a run lies while the run goes on.
fn draft(run: &RunFolder) -> PathBuf {
    run.path.join("recording")
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

/// Puts the recording of a run that has ended where it belongs. Says how many answers it holds.
pub(crate) fn publish(
    run: &RunFolder,
    target: &Path,
    header: (&str, &str),
    blanks: &Blanks,
    values: &[String],
) -> Result<usize, RunError> {
    let draft = draft(run);
    let beside = |what: &str| {
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        target.with_file_name(format!(".{name}.{what}-{}", run.id))
    };
    let (fresh, old) = (beside("new"), beside("old"));
    let io = |action: &'static str, path: &Path| RunError::io(action, path.to_owned());
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(io("clear", &fresh))?;
    }
    fs::create_dir_all(&fresh).map_err(io("create", &fresh))?;
    let story = Story { run, draft: &draft, fresh: &fresh, blanks };
    let (lines, answers) = story.told(header, values)?;
    let mut text = String::new();
    for line in &lines {
        text.push_str(&serde_json::to_string(line).expect("lines have string keys only"));
        text.push('\n');
    }
    let path = fresh.join(LINES);
    fs::write(&path, text).map_err(io("write", &path))?;
    let replaces = target.exists();
    if replaces {
        fs::rename(target, &old).map_err(io("replace", target))?;
    }
    fs::rename(&fresh, target).map_err(io("create", target))?;
    // Both are of no use to anybody any more.
    if replaces {
        let _ = fs::remove_dir_all(&old);
    }
    let _ = fs::remove_dir_all(&draft);
    Ok(answers)
}

/// A recording that is put together from what was asked, and from the journal.
struct Story<'a> {
    run: &'a RunFolder,
    draft: &'a Path,
    fresh: &'a Path,
    blanks: &'a Blanks,
}

impl Story<'_> {
    /// The lines, in the order in which attempts ended and gates were answered.
    fn told(&self, (workflow, digest): (&str, &str), values: &[String]) -> Result<(Vec<Line>, usize), RunError> {
        let mut asked = self.asked()?;
        let mut lines = Vec::new();
        let mut status = RunStatus::Failed;
        let mut gates: BTreeMap<StepId, (u32, Option<Line>)> = BTreeMap::new();
        for record in self.run.records()? {
            match record.event {
                Event::RunStarted { pipeline, task, params, stored_params, stdin, .. } => {
                    let params = match stored_params {
                        Some(stored) => serde_json::from_str(&self.run.text(&stored)?).unwrap_or_default(),
                        None => params,
                    };
                    let texts = self.texts("run.".into(), "");
                    let params = params.into_iter().map(|(name, value): (String, String)| {
                        let text = texts.text(&format!("param-{}", file_name(&name)), value.as_bytes())?;
                        Ok((name, text))
                    });
                    let params = params.collect::<Result<_, RunError>>()?;
                    let stdin =
                        stdin.map(|stdin| texts.text("stdin", self.run.text(&stdin)?.as_bytes())).transpose()?;
                    lines.push(Line::Recording(Header {
                        version: super::RECORDING_VERSION,
                        workflow: workflow.to_owned(),
                        plan: digest.to_owned(),
                        pipeline,
                        task,
                        params,
                        stdin,
                    }));
                }
                Event::AttemptEnded { step, attempt, outcome } => {
                    let place = Place::of(&step, attempt);
                    match (asked.remove(&place), outcome.failure) {
                        (Some(asked), _) if asked.iter().any(is_answer) => lines.extend(asked),
                        (
                            asked,
                            Some(failure @ (Failure::Cancelled | Failure::Spawn { .. } | Failure::Agent { .. })),
                        ) => {
                            lines.extend(asked.into_iter().flatten());
                            lines.push(Line::Failed { place, failure: told(&failure, self.blanks) });
                        }
                        (asked, _) => lines.extend(asked.into_iter().flatten()),
                    }
                }
                Event::GateOpened { step, message } => {
                    let (asked, open) = gates.entry(step.clone()).or_default();
                    *asked += 1;
                    let number = *asked;
                    *open = Some(self.gate(&step, number, &message)?);
                }
                Event::GateAnswered { step, choice, output, by } => {
                    let open = gates.get_mut(&step).and_then(|(asked, line)| Some((*asked, line.take()?)));
                    let Some((number, mut line)) = open else { continue };
                    if let Line::Gate { by: answered, choice: chosen, output: put_out, place, .. } = &mut line {
                        let part = format!("gate-{number}.");
                        let texts = self.texts(stem(place, false), &part);
                        *put_out =
                            output.map(|text| texts.text("answer", self.run.text(&text)?.as_bytes())).transpose()?;
                        (*answered, *chosen) = (Some(by), choice);
                    }
                    lines.push(line);
                }
                Event::RunFinished { status: ended } => status = ended,
                _ => {}
            }
        }
        lines.extend(gates.into_values().filter_map(|(_, line)| line));
        // What no attempt took in: the files of gates and conditions.
        lines.extend(asked.into_values().flatten().filter(|line| matches!(line, Line::File { .. })));
        let texts = self.texts("run.".into(), "");
        let values =
            (1_u32..).zip(values).map(|(number, value)| texts.text(&format!("value-{number}"), value.as_bytes()));
        lines.push(Line::End { status, values: values.collect::<Result<_, _>>()? });
        self.copy(&lines)?;
        let answers = lines.iter().filter(|line| is_answer(line)).count();
        Ok((lines, answers))
    }

    fn texts<'t>(&'t self, stem: PathBuf, part: &'t str) -> Texts<'t> {
        Texts { folder: self.fresh, blanks: self.blanks, stem, part }
    }

    fn gate(&self, step: &StepId, asked: u32, message: &Content) -> Result<Line, RunError> {
        let place = Place::of(step, 1);
        let part = format!("gate-{asked}.");
        let message = self.texts(stem(&place, false), &part).text("message", self.run.text(message)?.as_bytes())?;
        Ok(Line::Gate { place, asked, message, by: None, choice: None, output: None })
    }

    /// What was asked, by attempt: of one that was taken up again by a later runner, only what that asked.
    fn asked(&self) -> Result<BTreeMap<Place, Vec<Line>>, RunError> {
        let path = self.draft.join(LINES);
        let text = fs::read_to_string(&path).map_err(RunError::io("read", &path))?;
        let mut asked: BTreeMap<Place, Vec<Line>> = BTreeMap::new();
        // A line that a killed runner did not finish is of an attempt that was taken up again.
        for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            let Some(place) = line.place().cloned() else { continue };
            let lines = asked.entry(place).or_default();
            match line {
                // Its texts were rendered, with the files in them, before it began.
                Line::Began { .. } => lines.retain(|line| matches!(line, Line::File { .. })),
                Line::File { path: ref read, .. } => {
                    lines.retain(|line| !matches!(line, Line::File { path, .. } if path == read));
                    lines.push(line);
                }
                line => lines.push(line),
            }
        }
        Ok(asked)
    }

    /// Copies the texts that the lines name.
    fn copy(&self, lines: &[Line]) -> Result<(), RunError> {
        let names: BTreeSet<&str> = lines.iter().flat_map(Line::files).collect();
        for name in names {
            let (from, to) = (self.draft.join(name), self.fresh.join(name));
            if to.exists() {
                continue;
            }
            let folder = to.parent().expect("a text lies in a folder");
            fs::create_dir_all(folder).map_err(RunError::io("create", folder))?;
            fs::copy(&from, &to).map_err(RunError::io("copy", &from))?;
        }
        Ok(())
    }
}

fn is_answer(line: &Line) -> bool {
    matches!(line, Line::Turn { .. } | Line::Command { .. } | Line::Check { .. } | Line::Gate { by: Some(_), .. })
}
