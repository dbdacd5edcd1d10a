//! Puts together the recording of a run that has ended, from what was asked and from its journal.
//!
//! Invariant: its lines are in the order of the journal, and lines of the same place in their own order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::chronicle::Chronicle;
use super::effect::{self, ReplayEffects};
use super::line::{Header, LINES, Line, Place};
use super::redact::Redactions;
use super::write::{Texts, draft, stem, told};
use crate::io::home::RunFolder;
use crate::types::approval::{RequestKind, Verdict};
use crate::types::digest::file_name;
use crate::types::error::RunError;
use crate::types::event::{Content, Event, Failure, RunStatus, StepId};
use crate::types::handoff::Envelope;

/// Puts the recording of a run that has ended where it belongs. Says how many answers it holds.
pub(crate) fn publish(
    run: &RunFolder,
    target: &Path,
    header: (&str, &str),
    redactions: &Redactions,
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
    let story = Story { run, draft: &draft, fresh: &fresh, redactions };
    let (lines, answers) = story.told(header, values)?;
    let mut text = String::new();
    for line in &lines {
        text.push_str(&serde_json::to_string(line).expect("lines have string keys only"));
        text.push('\n');
    }
    let path = fresh.join(LINES);
    fs::write(&path, text).map_err(io("write", &path))?;
    if target.exists() {
        // A runner that was killed here has left one.
        if old.exists() {
            fs::remove_dir_all(&old).map_err(io("clear", &old))?;
        }
        fs::rename(target, &old).map_err(io("replace", target))?;
    }
    fs::rename(&fresh, target).map_err(io("create", target))?;
    // Neither is needed any more.
    let _ = fs::remove_dir_all(&old);
    let _ = fs::remove_dir_all(&draft);
    Ok(answers)
}

/// A recording that is put together from what was asked, and from the journal.
struct Story<'a> {
    run: &'a RunFolder,
    draft: &'a Path,
    fresh: &'a Path,
    redactions: &'a Redactions,
}

impl Story<'_> {
    /// The lines, in the order in which attempts ended and gates were answered.
    fn told(&self, (workflow, digest): (&str, &str), values: &[String]) -> Result<(Vec<Line>, usize), RunError> {
        let (mut asked, mut swarms) = self.asked()?;
        let mut lines = Vec::new();
        let mut status = RunStatus::Failed;
        let mut gates: BTreeMap<StepId, (u32, Option<Line>)> = BTreeMap::new();
        let mut deeds = ReplayEffects::default();
        let records = self.run.read_records()?;
        for record in &records {
            if let Event::Sent { to, instance, .. } = &record.event {
                deeds.receives(to, *instance);
            }
        }
        for record in records {
            match record.event {
                Event::RunStarted { pipeline, task, params, stored_params, stdin, .. } => {
                    let params = match stored_params {
                        Some(stored) => serde_json::from_str(&self.run.read_text(&stored)?).unwrap_or_default(),
                        None => params,
                    };
                    let texts = self.texts("run.".into(), "");
                    let params = params.into_iter().map(|(name, value): (String, String)| {
                        let text = texts.text(&format!("param-{}", file_name(&name)), value.as_bytes())?;
                        Ok((name, text))
                    });
                    let params = params.collect::<Result<_, RunError>>()?;
                    let stdin =
                        stdin.map(|stdin| texts.text("stdin", self.run.read_text(&stdin)?.as_bytes())).transpose()?;
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
                Event::Swarm { step, attempt, fact } => lines.extend(swarms.happened(Place::of(&step, attempt), &fact)),
                Event::ApprovalAsked { step, attempt, request } => {
                    let place = Place::of(&step, attempt);
                    swarms.wants(place.clone(), &request);
                    let told = self.wanted(&place, &request.wants, &mut deeds)?;
                    deeds.wants(place, &request, told, &mut lines);
                }
                Event::ApprovalAnswered { step, attempt, verdict } => {
                    let line = swarms.agreed(&Place::of(&step, attempt), &verdict);
                    let line = line.map(|line| self.agreed(line, &verdict)).transpose()?;
                    let task = deeds.agreed(&verdict, |text| self.redactions.blank_text(text));
                    lines.extend(line.into_iter().chain(task));
                }
                Event::InputsTaken { step, inputs } => deeds.took(&step, &inputs, &mut lines),
                Event::RunResumed => deeds.resumed(),
                Event::Sent { from: None, way: None, to, instance, within, letter } if letter.answers.is_none() => {
                    let texts = self.texts("run.".into(), "");
                    let text = texts
                        .text(&format!("message-{}", letter.id), self.run.read_text(&letter.content)?.as_bytes())?;
                    let (id, interrupts) = (letter.id.to_string(), letter.interrupts);
                    lines.push(Line::Message { id, to, instance, within, interrupts, text });
                }
                Event::AttemptStarted { step, attempt, .. } => deeds.began(&step, attempt, &mut lines),
                Event::Sent { from: Some(step), letter, .. } => {
                    if let Some(envelope) = self.envelope(&letter.content)? {
                        deeds.sent(&step, envelope, &mut lines);
                    }
                }
                Event::Sent { from: None, letter, .. } => deeds.answered(&letter, &mut lines),
                Event::StatusReported { step, attempt, report } => {
                    let place = Place::of(&step, attempt);
                    let number = deeds.count(&place, false);
                    let part = format!("report-{number}.");
                    let text =
                        self.texts(stem(&place, true), &part).text("said", self.run.read_text(&report)?.as_bytes())?;
                    lines.push(Line::Reported { place, report: number, text });
                }
                Event::ArtifactStored { step, attempt, artifact } => {
                    let place = Place::of(&step, attempt);
                    if deeds.left(&place, &artifact) {
                        let part = format!("diff-{}.", artifact.id);
                        let texts = self.texts(stem(&place, true), &part);
                        let text = texts.text("left", self.run.read_text(&artifact.content)?.as_bytes())?;
                        lines.push(effect::left(place, &artifact, text));
                    }
                }
                Event::AttemptEnded { step, attempt, outcome } => {
                    deeds.ended(&step);
                    let place = Place::of(&step, attempt);
                    if let Some(rest) = swarms.ended(&place) {
                        lines.extend(asked.remove(&place).into_iter().flatten().chain(rest));
                        // What comes from within comes again by itself.
                        if let Some(failure @ (Failure::Cancelled | Failure::Timeout { .. } | Failure::Spawn { .. })) =
                            outcome.failure
                        {
                            lines.push(Line::Failed { place, failure: told(&failure, self.redactions) });
                        }
                        continue;
                    }
                    match (asked.remove(&place), outcome.failure) {
                        (Some(asked), _) if asked.iter().any(is_answer) => lines.extend(asked),
                        (
                            asked,
                            Some(
                                failure @ (Failure::Cancelled
                                | Failure::Spawn { .. }
                                | Failure::Agent { .. }
                                | Failure::Files { .. }),
                            ),
                        ) => {
                            lines.extend(asked.into_iter().flatten());
                            lines.push(Line::Failed { place, failure: told(&failure, self.redactions) });
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
                        *put_out = output
                            .map(|text| texts.text("answer", self.run.read_text(&text)?.as_bytes()))
                            .transpose()?;
                        (*answered, *chosen) = (Some(by), choice);
                    }
                    lines.push(line);
                }
                Event::RunFinished { status: ended } => status = ended,
                _ => {}
            }
        }
        lines.extend(deeds.rest());
        lines.retain(|line| *line != Line::Nothing);
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
        Texts { folder: self.fresh, redactions: self.redactions, stem, part: part.into() }
    }

    /// The line of a task's request for a decision, where no other line holds it.
    fn wanted(&self, place: &Place, wants: &RequestKind, deeds: &mut ReplayEffects) -> Result<Option<Line>, RunError> {
        Ok(match wants {
            RequestKind::Node { letter, .. } => self.envelope(&letter.content)?.map(|envelope| {
                let (place, envelope) = (place.clone(), Box::new(envelope));
                Line::Sent { place, envelope, asks: true, refusal: None }
            }),
            RequestKind::Help { message } => {
                let (place, plea) = (place.clone(), deeds.count(place, true));
                let part = format!("plea-{plea}.");
                let texts = self.texts(stem(&place, true), &part);
                let message = texts.text("message", self.run.read_text(message)?.as_bytes())?;
                Some(Line::Pleaded { place, plea, message, answer: None })
            }
            RequestKind::Tool { .. } | RequestKind::Spawn { .. } | RequestKind::GoOn { .. } => None,
        })
    }

    /// An envelope with its placeholders.
    fn envelope(&self, content: &Content) -> Result<Option<Envelope>, RunError> {
        Ok(effect::blanked(&self.run.read_text(content)?, |value| self.redactions.blank_json(value)))
    }

    fn gate(&self, step: &StepId, asked: u32, message: &Content) -> Result<Line, RunError> {
        let place = Place::of(step, 1);
        let part = format!("gate-{asked}.");
        let message =
            self.texts(stem(&place, false), &part).text("message", self.run.read_text(message)?.as_bytes())?;
        Ok(Line::Gate { place, asked, message, by: None, choice: None, output: None })
    }

    /// What a person said to a request, with its texts.
    fn agreed(&self, mut line: Line, verdict: &Verdict) -> Result<Line, RunError> {
        if let Line::Approval { place, member, asked, because, arguments, .. } = &mut line {
            let part = format!("{}.approval-{asked}.", file_name(member));
            let texts = self.texts(stem(place, true), &part);
            *because = verdict.because.as_deref().map(|because| self.redactions.blank_text(because));
            let given =
                verdict.arguments.as_ref().map(|given| texts.text("arguments", self.run.read_text(given)?.as_bytes()));
            *arguments = given.transpose()?;
        }
        Ok(line)
    }

    /// What was asked, by attempt: of one that was taken up again by a later runner, only what that asked. Swarms go
    /// on.
    fn asked(&self) -> Result<(BTreeMap<Place, Vec<Line>>, Chronicle), RunError> {
        let path = self.draft.join(LINES);
        let text = fs::read_to_string(&path).map_err(RunError::io("read", &path))?;
        let mut asked: BTreeMap<Place, Vec<Line>> = BTreeMap::new();
        let mut swarms = Chronicle::default();
        // A line that a killed runner did not finish is of an attempt that was taken up again.
        for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            if line.is_of_swarm() {
                swarms.draft(line);
                continue;
            }
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
        Ok((asked, swarms))
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
    match line {
        Line::Turn { .. } | Line::Command { .. } | Line::Check { .. } | Line::Gate { by: Some(_), .. } => true,
        Line::Member { answer, .. } => answer.is_some(),
        Line::Call { answer, .. } => answer.is_some(),
        Line::Approval { choice, .. } => choice.is_some(),
        _ => false,
    }
}
