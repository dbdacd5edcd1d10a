//! The turns of an agent within one attempt: the one it is asked for, taken by a fallback where its own agent cannot be
//! reached, and those in which an answer of the wrong type is mended.
//!
//! Invariant: every turn's prompt is in the run folder before the turn begins.

pub(super) mod repair;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use swarmc_plan::{Format, PromptDelivery, Recorded, SESSION, SchemaFlag};

use super::attempt::{
    Ended, Place, classify_end, report_restart, run_job_process, sleep_until, to_millis, without_newline,
};
use super::operation_lines::{send_operations, without_operations};
use super::replay_boundary::{ask_or_replay, stated_variables};
use super::unreachable::{is_unreachable, wants_login};
use super::{AgentTurn, Candidate, Job, Program, Session, Transport, acp, model};
use crate::io::home::create_private;
use crate::io::process::{End, Launch, Sink, decode_text, keep_last};
use crate::io::recording::{Answer, Part, Question};
use crate::io::shim::Hold;
use crate::io::stream::Decoder;
use crate::types::chat::{Fault, Message, Reply};
use crate::types::effective_prompt::{Block, Effective};
use crate::types::error::RunError;
use crate::types::event::{Failure, INLINE, Outcome, Usage};
use crate::types::retry::is_transient;
use crate::types::usage::sum;

/// The longest id of a session that is passed on.
const LONGEST_SESSION: usize = 200;

/// Takes the turn that `asked` asks for, and those that mend its answer.
///
/// # Errors
/// A prompt could not be written.
pub(super) async fn run_agent_turn(job: &Job, asked: &AgentTurn, place: &mut Place<'_, '_>) -> Result<Ended, RunError> {
    let mut taken = None;
    for (position, taker) in asked.takers.iter().enumerate() {
        job.cancel.begin_turn();
        // A fallback begins anew: what was said to the agent before it is of another conversation.
        let mut conversation = Conversation::new(job, taker, position);
        let mut ended = conversation.run_turn(1, &taker.prompt, None, place).await?;
        if let (Some(fresh), Some(failure)) = (&taker.fresh, &ended.ended.outcome.failure)
            && matches!(failure, Failure::Exit | Failure::Spawn { .. } | Failure::Agent { .. })
            && !place.capture.used_tool()
        {
            report_new_conversation(job, failure, place);
            conversation = Conversation::new(job, taker, position);
            conversation.is_fresh = true;
            ended = conversation.run_turn(1, fresh, None, place).await?;
        }
        let next = asked.takers.get(position + 1);
        let failure = ended.ended.outcome.failure.as_ref().filter(|failure| is_unreachable(failure));
        // What a tool did stays done: a fallback would do it once more.
        if let (Some(failure), Some(next), false) = (failure, next, place.capture.used_tool()) {
            place.services.observer_handle.send_notice(format!(
                "`{}`: agent `{}` cannot be reached ({failure}); `{}` takes its turn",
                job.step.name, taker.agent, next.agent
            ));
            continue;
        }
        taken = Some((conversation, ended));
        break;
    }
    let (mut conversation, turn) = taken.expect("the last taker's turn is always kept");
    let position = conversation.position;
    let turn = match &job.shape {
        Some(shape) => conversation.repair_answer(shape, asked.repair, turn, place).await?,
        None => turn,
    };
    let mut ended = conversation.repair_operations(asked.repair, turn, place).await?;
    ended.outcome.fallback = (position > 0).then(|| conversation.taker.agent.clone());
    Ok(ended)
}

fn report_new_conversation(job: &Job, failure: &Failure, place: &Place<'_, '_>) {
    let notice = format!("`{}`: its conversation does not go on ({failure}): a new one begins", job.step.name);
    place.services.observer_handle.send_notice(notice);
}

/// An exit code above this says which signal ended a process.
const SIGNALLED: i32 = 128;

/// Takes the turn of a swarm's member: what its program answers, or why there is no answer.
///
/// # Errors
/// A prompt could not be written.
pub(super) async fn take_member_turn(
    job: &Job,
    taker: &Candidate,
    place: &mut Place<'_, '_>,
) -> Result<Result<Reply, Fault>, RunError> {
    let conversation = Conversation::new(job, taker, 0);
    let path = conversation.prompt_path(1, place);
    // As in `run_turn`.
    if !place.rejoins_next(job) {
        write_prompt(&path, &taker.prompt)?;
        if let Some(system) = &taker.system {
            write_prompt(&conversation.companion_path("system.txt", place), system)?;
        }
    }
    let answer = match &taker.door {
        Transport::Program(_) | Transport::Acp(_) => {
            Box::pin(conversation.ask_program(1, &taker.prompt, &path, taker.door.session(), place)).await?
        }
        Transport::Closed(failure) => Answer::failed(failure.clone()),
        _ => {
            let message = format!("agent `{}` is no program", taker.agent);
            Answer::failed(Failure::Spawn { message })
        }
    };
    // `from_answer` takes it away, and the failure below may need it.
    let (stderr, exit) = (answer.stderr.clone(), answer.exit);
    let Turn { ended, said, is_cut, .. } = Turn::from_answer(job, conversation.let_in(answer));
    let outcome = ended.outcome;
    Ok(match outcome.failure {
        None => {
            Ok(Reply { text: said, usage: outcome.usage, session: outcome.session, cut: is_cut, ..Reply::default() })
        }
        Some(failure) => {
            // A program that only exits says why on its standard error.
            let why = stderr.trim_end().lines().next_back().filter(|_| failure == Failure::Exit);
            let message = why.map_or_else(|| failure.to_string(), |why| format!("{failure}: {why}"));
            // A start waits for room in the system by itself: what keeps a program from it does not pass.
            let transient = !matches!(failure, Failure::Spawn { .. }) && is_transient(&message);
            Err(Fault { crashed: crashed(&failure, exit), message, transient, retry_after: None })
        }
    })
}

/// Whether a program went away on its own: a signal that is not ours ended it, or it closed an open line to us.
fn crashed(failure: &Failure, exit: Option<i32>) -> bool {
    match failure {
        Failure::Spawn { message } | Failure::Agent { message } => acp::went_away(message),
        Failure::Exit => exit.is_some_and(|exit| exit > SIGNALLED),
        _ => false,
    }
}

/// What one turn came to.
struct Turn {
    ended: Ended,
    /// The whole answer, for a typed output.
    said: String,
    /// Whether the beginning of the answer was dropped.
    is_cut: bool,
    /// The operations in its lines that were refused, each with why.
    refused: Vec<String>,
}

/// The turns with one agent.
struct Conversation<'a> {
    job: &'a Job,
    taker: &'a Candidate,
    /// 0 for the step's own agent, from 1 for fallbacks.
    position: usize,
    /// What the provider's own conversation has used so far.
    used: Usage,
    /// What was said in the turns so far, for a model, which remembers nothing itself.
    messages: Vec<Message>,
    /// The answer of the turn before, as it came.
    answered: String,
    /// Whether it begins anew, whatever conversation the job names.
    is_fresh: bool,
}

impl<'a> Conversation<'a> {
    fn new(job: &'a Job, taker: &'a Candidate, position: usize) -> Conversation<'a> {
        let (used, messages, answered) = (Usage::default(), Vec::new(), String::new());
        Conversation { job, taker, position, used, messages, answered, is_fresh: false }
    }

    /// The session in which the next turn goes on, where the provider can.
    fn resumable_session(&self, id: Option<&str>) -> Option<Session> {
        let id = id.filter(|id| self.taker.door.can_resume() && may_pass(id))?;
        Some(Session { id: id.to_owned(), used: self.used })
    }

    /// Takes one turn: the first, or a later one with a prompt of its own.
    async fn run_turn(
        &mut self,
        number: u32,
        prompt: &str,
        session: Option<Session>,
        place: &mut Place<'_, '_>,
    ) -> Result<Turn, RunError> {
        let path = self.prompt_path(number, place);
        // Its process was told what lies there, which may have been rendered from other files.
        if !place.rejoins_next(self.job) {
            write_prompt(&path, prompt)?;
            self.write_audit(number, prompt, place)?;
            if let (1, Some(system)) = (number, &self.taker.system) {
                write_prompt(&self.companion_path("system.txt", place), system)?;
            }
        }
        let session = session.as_ref().or_else(|| self.taker.door.session().filter(|_| !self.is_fresh));
        place.capture.record_prompt(prompt);
        let mut messages = std::mem::take(&mut self.messages);
        messages.push(Message::User(prompt.to_owned()));
        let part = Part::Turn(u32::try_from(self.position).unwrap_or(u32::MAX), number);
        let question = || self.build_question(number, prompt, session);
        // What the agent was told, and what it said before: a line that only repeats one of either asks for nothing.
        let told = || {
            let blocks = self.taker.effective.0.iter().map(|block| block.text.as_str());
            blocks.chain([prompt, self.answered.as_str()])
        };
        let live = async |place: &mut Place<'_, '_>| {
            let mut answer = match &self.taker.door {
                Transport::Closed(failure) => Answer::failed(failure.clone()),
                Transport::Recorded(answers) => play_recorded_answer(self.job, answers, number, place).await,
                Transport::Program(_) | Transport::Acp(_) => {
                    self.let_in(Box::pin(self.ask_program(number, prompt, &path, session, place)).await?)
                }
                Transport::Llm(model) => {
                    // What a reply calls is answered in there, before it counts as the answer of the turn.
                    let (answer, said) = model::ask_model(self.job, &self.taker.provider, model, &messages, place);
                    messages.extend(said);
                    answer
                }
            };
            if self.job.speaks {
                answer.refused = send_operations(self.job, &answer, told(), number == 1, place.services).await;
            }
            Ok(answer)
        };
        let answer = ask_or_replay(self.job, part, question, place, live).await?;
        let said = answer.read_text();
        let answer = if self.job.speaks { without_operations(answer, told(), self.job.max_output) } else { answer };
        (self.messages, self.answered) = (messages, said);
        let earlier = session.map_or_else(Usage::default, |session| session.used);
        // Some programs count on from what the conversation had used: the next turn takes off what is known of that.
        self.used = answer.usage.map_or(earlier, |usage| sum(earlier, usage));
        Ok(Turn::from_answer(self.job, answer))
    }

    /// Adds to the answer of a program without a login what a person can do about that.
    fn let_in(&self, mut answer: Answer) -> Answer {
        let login = match (&self.taker.login, &self.taker.door) {
            (Some(login), _) => login,
            (None, Transport::Acp(_)) => "log in with its own program first",
            (None, _) => return answer,
        };
        if let Some(Failure::Agent { message } | Failure::Spawn { message }) = &mut answer.failure
            && wants_login(message)
        {
            message.push_str(&format!("; {login}"));
        }
        answer
    }

    /// Writes down what a turn is told in full, block by block, beside what it is sent.
    fn write_audit(&self, number: u32, prompt: &str, place: &Place<'_, '_>) -> Result<(), RunError> {
        let repair = Effective(vec![Block::new("repair", prompt.to_owned())]);
        let (effective, stem) = match number {
            1 => (&self.taker.effective, String::new()),
            number => (&repair, format!("repair-{}.", number - 1)),
        };
        let full = effective.text();
        if full != prompt {
            write_prompt(&self.companion_path("full.txt", place), &full)?;
        }
        write_prompt(
            &self.companion_path(&format!("{stem}blocks.json"), place),
            &format!("{}\n", effective.to_json(prompt)),
        )
    }

    /// What is asked in a turn, as far as the workflow says it.
    fn build_question(&self, number: u32, prompt: &str, session: Option<&Session>) -> Question {
        let mut question = Question {
            agent: Some(self.taker.agent.clone()),
            system: self.taker.system.clone().filter(|_| number == 1),
            prompt: Some(prompt.to_owned()),
            env: stated_variables(self.job, &self.taker.environment),
            session: session.map(|session| session.id.clone()),
            ..Question::default()
        };
        if let Transport::Program(program) = &self.taker.door {
            question.stdin.clone_from(&program.stdin);
            let native = self.job.shape.as_ref().and_then(|shape| shape.native());
            question.schema = native.filter(|_| program.schema.is_some()).map(str::to_owned);
        }
        if let Transport::Llm(model) = &self.taker.door {
            question.schema = model.question.schema.as_ref().map(Value::to_string);
        }
        question
    }

    /// Has an agent that is a program take a turn. Where its process of a former runner cannot go on, it starts again: in the
    /// conversation that this cuts off, where that is known and goes on.
    async fn ask_program(
        &self,
        number: u32,
        prompt: &str,
        path: &Path,
        session: Option<&Session>,
        place: &mut Place<'_, '_>,
    ) -> Result<Answer, RunError> {
        let hold = place.next_hold(self.job);
        let why = match self.start_program((prompt, path), session, hold.as_ref(), place).await? {
            Ok(answer) => return Ok(answer),
            Err(why) => why,
        };
        report_restart(self.job, why, place);
        let hold = hold.map(Hold::anew);
        if let Some((session, words)) = self.taker.cut.as_ref().filter(|_| number == 1 && !self.is_fresh) {
            self.mark_resumed(true)?;
            write_prompt(path, words)?;
            place.capture.record_prompt(words);
            let answer = self.start_program((words, path), Some(session), hold.as_ref(), place).await?;
            let failure = match answer {
                Ok(Answer { failure: Some(failure @ Failure::Spawn { .. }), .. }) => failure,
                Ok(answer) => return Ok(answer),
                Err(why) => Failure::Agent { message: why.to_owned() },
            };
            report_new_conversation(self.job, &failure, place);
            self.mark_resumed(false)?;
            write_prompt(path, prompt)?;
            place.capture.record_prompt(prompt);
        }
        let mut answer = self.start_program((prompt, path), session, hold.as_ref(), place).await?;
        // Workers may be lost again and again.
        while let (Err(why), Some(_)) = (&answer, hold.as_ref().and_then(|hold| hold.remote.as_ref())) {
            report_restart(self.job, why, place);
            answer = self.start_program((prompt, path), session, hold.as_ref(), place).await?;
        }
        Ok(answer.unwrap_or_else(|why| Answer::failed(Failure::Agent { message: why.to_owned() })))
    }

    /// Starts the program for a turn, or comes back to it; its answer, or why the process of a former runner cannot go on.
    async fn start_program(
        &self,
        (prompt, path): (&str, &Path),
        session: Option<&Session>,
        hold: Option<&Hold>,
        place: &mut Place<'_, '_>,
    ) -> Result<Result<Answer, &'static str>, RunError> {
        match &self.taker.door {
            Transport::Program(program) => self.run_program(program, (prompt, path), session, hold, place).await,
            Transport::Acp(acp) => Ok(acp::ask_agent(self.job, (self.taker, acp), prompt, session, hold, place).await),
            _ => {
                let message = format!("agent `{}` is no program", self.taker.agent);
                Ok(Ok(Answer::failed(Failure::Spawn { message })))
            }
        }
    }

    async fn run_program(
        &self,
        program: &Program,
        (prompt, path): (&str, &Path),
        session: Option<&Session>,
        hold: Option<&Hold>,
        place: &mut Place<'_, '_>,
    ) -> Result<Result<Answer, &'static str>, RunError> {
        let mut argv = match session {
            None => program.argv.clone(),
            Some(session) => match resume_argv(program, session) {
                Ok(argv) => argv,
                Err(message) => {
                    let message = format!("provider `{}` {message}", self.taker.provider);
                    // A turn in another conversation would know nothing of the one that it is to go on with.
                    return Ok(Ok(Answer::failed(Failure::Spawn { message })));
                }
            },
        };
        argv.extend(program.options.iter().cloned());
        if let (Some(flag), Some(schema)) = (&program.schema, self.job.shape.as_ref().and_then(|shape| shape.native()))
        {
            match flag {
                SchemaFlag::Inline(flag) => argv.extend([OsString::from(flag), OsString::from(schema)]),
                SchemaFlag::File(flag) => {
                    let file = self.companion_path("schema.json", place);
                    write_prompt(&file, schema)?;
                    argv.extend([OsString::from(flag), file.into_os_string()]);
                }
            }
        }
        let stdin = match program.delivery {
            PromptDelivery::Stdin => Some(prompt),
            PromptDelivery::Argument => {
                argv.push(to_argument(prompt));
                program.stdin.as_deref()
            }
            PromptDelivery::File => {
                argv.push(path.into());
                program.stdin.as_deref()
            }
        };
        let earlier = session.map_or_else(Usage::default, |session| session.used);
        place.capture.begin_turn(Some(Decoder::new(program.reads).resuming(earlier)));
        // Ending a program that cannot go on with its conversation would lose the turn.
        if program.resume.is_some() {
            place.capture.yield_with_session(&self.job.cancel);
        }
        let stdin = stdin.map(str::as_bytes);
        let directory = self.job.working_folder();
        // A program of the project is named as it counts from there, wherever its agent works.
        if let Some(program) = argv.first_mut()
            && program.to_string_lossy().contains('/')
        {
            *program = self.job.directory.join(&*program).into_os_string();
        }
        let (environment, install) = (&self.taker.environment, program.install.as_deref());
        let launch = Launch { argv: &argv, environment, directory, stdin, install };
        let end = run_job_process(self.job, &launch, hold, place).await;
        match end.as_ref().map(End::starts_again) {
            Ok(Some(why)) if self.job.cancel.requested_level().is_none() => Ok(Err(why)),
            _ => Ok(Ok(build_answer(self.job, program.reads, end, place))),
        }
    }

    /// Where the prompt of turn `number` lies.
    fn prompt_path(&self, number: u32, place: &Place<'_, '_>) -> PathBuf {
        if self.job.member_turn().is_some() {
            return self.companion_path("txt", place);
        }
        match number {
            1 if self.position == 0 => place.services.layout.prompt_path(&self.job.step, self.job.attempt),
            1 => self.companion_path("txt", place),
            number => self.companion_path(&format!("repair-{}.txt", number - 1), place),
        }
    }

    /// Beside the attempt's prompt, a file of this agent's.
    fn companion_path(&self, extension: &str, place: &Place<'_, '_>) -> PathBuf {
        let extension = match self.position {
            0 => extension.to_owned(),
            position => format!("fallback-{position}.{extension}"),
        };
        let layout = &place.services.layout;
        match self.job.member_turn() {
            Some(turn) => layout.turn_path(&self.job.step, self.job.attempt, turn, &extension),
            None => layout.beside_prompt(&self.job.step, self.job.attempt, &extension),
        }
    }
}

impl Turn {
    /// What an answer comes to: an agent's output is its final text; one that failed has none.
    fn from_answer(job: &Job, answer: Answer) -> Turn {
        let Answer { failure, exit, stderr, usage, session, text: captured, whole, is_cut, refused, .. } = answer;
        let said = without_newline(decode_text(captured.clone().unwrap_or_default(), job.max_output));
        let output = failure.is_none().then(|| said.clone());
        let outcome = Outcome { failure, exit, stderr, usage, session, ..Outcome::default() };
        Turn { ended: Ended { output, captured, outcome, logs: false }, said: whole.unwrap_or(said), is_cut, refused }
    }
}

/// The argument vector that goes on with `session`; else what the provider cannot do.
fn resume_argv(program: &Program, session: &Session) -> Result<Vec<OsString>, String> {
    let Some(words) = &program.resume else {
        return Err("cannot go on with a session: give it `resume-args`".to_owned());
    };
    // The id is plain, so that it changes nothing else of the word that holds it.
    let word = |word: &String| OsString::from(word.replace(SESSION, &session.id));
    Ok(words.iter().map(word).collect())
}

/// Whether the id of a session, which a program printed, may be an argument of that program: nothing in it can be taken
/// for an option or a path.
pub(crate) fn may_pass(id: &str) -> bool {
    (1..=LONGEST_SESSION).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !id.starts_with(['-', '.'])
}

/// What a program answered.
fn build_answer(job: &Job, reads: Format, end: Result<End, String>, place: &mut Place<'_, '_>) -> Answer {
    let end = match end {
        Ok(end) => end,
        Err(message) => return Answer::failed(Failure::Spawn { message }),
    };
    let report = place.capture.end_stream().unwrap_or_default();
    let (output, stderr) = place.capture.begin_check();
    let is_plain = matches!(reads, Format::Text | Format::Json);
    let is_cut = is_plain && output.is_cut();
    let typed = job.shape.is_some();
    let mut whole = None;
    let captured = match report.text {
        Some(mut answer) => {
            // Only the value has to fit, and it may stand in what the limit would cut off.
            if typed && answer.len() > job.max_output {
                whole = Some(answer.clone());
            }
            keep_last(&mut answer, job.max_output);
            Some(answer.into_bytes())
        }
        None => (is_plain && !output.is_empty()).then(|| output.into_bytes()),
    };
    // The stream's own word counts for more than the exit code, which several programs get wrong; but an end that we
    // brought about says more than a stream that was cut short by it.
    let failure = match (classify_end(job, end), report.failure) {
        // A program that wraps its JSON into words is not wrong where the JSON is looked for.
        (None, Some(_)) if typed && reads == Format::Json => None,
        (None | Some(Failure::Exit), Some(message)) => Some(Failure::Agent { message }),
        (failure, _) => failure,
    };
    Answer {
        failure,
        exit: Some(end.exit),
        stderr: decode_text(stderr.into_bytes(), INLINE),
        usage: report.usage,
        session: report.session,
        log: None,
        text: captured,
        whole,
        is_cut,
        used_tool: place.capture.used_tool(),
        ..Answer::default()
    }
}

/// The recorded answer of turn `number`.
async fn play_recorded_answer(job: &Job, answers: &[Recorded], number: u32, place: &mut Place<'_, '_>) -> Answer {
    let Some(answer) = answers.iter().find(|answer| answer.turn.is_none_or(|turn| turn == number)) else {
        let message = format!(
            "no recorded answer fits task `{}`, iteration {}, attempt {}, turn {number}: add one to the provider",
            job.step.name, job.step.iteration, job.counted
        );
        return Answer::failed(Failure::Agent { message });
    };
    let end = Instant::now() + Duration::from_millis(answer.delay_ms);
    let deadline = place.limits.deadline.filter(|&deadline| deadline < end);
    if !sleep_until(job, deadline.unwrap_or(end), place.poller).await {
        return Answer::failed(Failure::Cancelled);
    }
    if deadline.is_some() {
        return Answer::failed(Failure::Timeout { after_ms: to_millis(job.timeout) });
    }
    place.capture.begin_turn(None);
    place.capture.stdout(answer.text.as_bytes());
    let (output, _) = place.capture.begin_check();
    Answer {
        failure: (answer.exit != 0).then_some(Failure::Exit),
        exit: Some(answer.exit),
        is_cut: output.is_cut(),
        text: (!output.is_empty()).then(|| output.into_bytes()),
        ..Answer::default()
    }
}

/// A text as one argument: no NUL, which none can hold, and no dash in front, which would make it an option.
pub(crate) fn to_argument(text: &str) -> OsString {
    let text = text.replace('\0', "\u{fffd}");
    OsString::from(if text.starts_with('-') { format!("\n{text}") } else { text })
}

fn write_prompt(path: &std::path::Path, text: &str) -> Result<(), RunError> {
    let folder = path.parent().expect("a prompt lies in a folder");
    create_private(folder, true).map_err(RunError::io("create", folder))?;
    std::fs::write(path, text).map_err(RunError::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_ids_of_sessions_become_arguments() {
        for id in ["0199f0c2-7d7e-7000-8000-000000000000", "ses_6a7b", "a.b"] {
            assert!(may_pass(id), "{id}");
        }
        for id in ["", "-o", "--last", "../x", "a/b", "a b", "é", "x;y", ".hidden", &"x".repeat(201)] {
            assert!(!may_pass(id), "{id}");
        }
    }

    #[test]
    fn a_text_never_becomes_an_option() {
        assert_eq!(to_argument("--help"), "\n--help");
        assert_eq!(to_argument("a\0b"), "a\u{fffd}b");
    }
}
