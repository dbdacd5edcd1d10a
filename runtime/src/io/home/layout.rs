//! Names the file of a run that holds each part of a step.
//!
//! Names of steps and pipelines come from a plan, which a person may have written by hand: whatever they are, the paths
//! stay inside the run's folders.

use std::path::PathBuf;

use swarmc_plan::Pipeline;

use crate::io::home::RunFolder;
use crate::types::digest::{digest_bytes, file_name, folder_name};
use crate::types::event::StepId;
use crate::types::observer::Stream;
use crate::types::swarm::{Purpose, TurnId};

/// The bytes of a name that is kept whole.
const LONGEST: usize = 160;

/// The folder of a run in which shims hold the processes of attempts.
pub(crate) const ATTEMPTS: &str = "attempts";

/// The paths of one run's files. Iterations and instances appear in them only where there can be several; the files of
/// steps inside of a loop, an item or a call lie in a folder named after it.
#[derive(Clone, Debug)]
pub struct Layout {
    run: PathBuf,
    outputs: PathBuf,
    iterates: bool,
    /// The pipeline's name, where several instances of it run.
    instances_of: Option<String>,
}

impl Layout {
    pub(super) fn new(folder: &RunFolder, pipeline: &Pipeline) -> Layout {
        Layout {
            run: folder.path.clone(),
            outputs: folder.outputs.clone(),
            iterates: pipeline.iteration.max > 1,
            instances_of: (pipeline.parallelism > 1).then(|| file_name(&pipeline.name)),
        }
    }

    /// `outputs/RUN/[NAME.k/][WITHIN/]TASK.txt`: the captured tail of the latest iteration.
    pub fn output_path(&self, step: &StepId) -> PathBuf {
        let mut path = self.in_instance(self.outputs.clone(), step);
        path.push(file_name(&step.name) + ".txt");
        path
    }

    /// `logs/[NAME.k/][WITHIN/]TASK.[ITERATION.]ATTEMPT.out` or `.err`: everything that the attempt's processes put out.
    pub fn log_path(&self, step: &StepId, attempt: u32, stream: Stream) -> PathBuf {
        let extension = match stream {
            Stream::Stdout => "out",
            Stream::Stderr => "err",
        };
        self.of_attempt("logs", step, attempt, extension)
    }

    /// Beside the logs, `TASK.[ITERATION.]ATTEMPT.tools.jsonl`: the tools that the attempt used, a [`crate::Signal`] a line.
    pub fn tool_log_path(&self, step: &StepId, attempt: u32) -> PathBuf {
        self.of_attempt("logs", step, attempt, "tools.jsonl")
    }

    /// Beside the logs, `TASK.[ITERATION.]ATTEMPT.refused`: what the agent of the attempt asked for and was refused, a line
    /// each.
    pub fn refusals_path(&self, step: &StepId, attempt: u32) -> PathBuf {
        self.of_attempt("logs", step, attempt, "refused")
    }

    /// `prompts/[NAME.k/][WITHIN/]TASK.[ITERATION.]ATTEMPT.txt`: the prompt as the agent got it.
    pub fn prompt_path(&self, step: &StepId, attempt: u32) -> PathBuf {
        self.of_attempt("prompts", step, attempt, "txt")
    }

    /// Beside the prompt, the system text where the agent gets it separately.
    pub fn system_path(&self, step: &StepId, attempt: u32) -> PathBuf {
        self.of_attempt("prompts", step, attempt, "system.txt")
    }

    /// Beside the prompt, what belongs to it: later turns (`repair-1.txt`), the schema of the answer (`schema.json`).
    pub(crate) fn beside_prompt(&self, step: &StepId, attempt: u32, extension: &str) -> PathBuf {
        self.of_attempt("prompts", step, attempt, extension)
    }

    /// Beside the prompt, those of a swarm's turns: `TASK.ATTEMPT.AGENT.ITERATION.TURN.txt`, and `.system.txt`.
    pub fn turn_path(&self, step: &StepId, attempt: u32, turn: &TurnId, extension: &str) -> PathBuf {
        self.beside_prompt(step, attempt, &format!("{}.{extension}", turn_name(turn)))
    }

    /// Beside the logs, those of a swarm's turn that a program takes: `TASK.ATTEMPT.AGENT.ITERATION.TURN.out`, `.err` and
    /// `.tools.jsonl`.
    pub fn turn_log_path(&self, step: &StepId, attempt: u32, turn: &TurnId, extension: &str) -> PathBuf {
        self.of_attempt("logs", step, attempt, &format!("{}.{extension}", turn_name(turn)))
    }

    /// `agents/[NAME.k/][WITHIN/]TASK[.ITERATION]/attempt-N`: the folder of an agent that works by files.
    pub fn agent_folder(&self, step: &StepId, attempt: u32) -> PathBuf {
        let mut path = self.in_instance(self.run.join("agents"), step);
        let name = file_name(&step.name);
        path.push(match self.iterates || step.within.is_some() {
            true => format!("{name}.{}", step.iteration),
            false => name,
        });
        path.push(format!("attempt-{attempt}"));
        path
    }

    /// `swarms`: what swarms leave for people.
    pub(crate) fn swarms_folder(&self) -> PathBuf {
        self.run.join("swarms")
    }

    /// `swarms/[NAME.k/][WITHIN/]TASK[.ITERATION]`: the mailboxes and the workspace of a swarm's last attempt.
    pub fn swarm_folder(&self, step: &StepId) -> PathBuf {
        let mut path = self.in_instance(self.swarms_folder(), step);
        let name = file_name(&step.name);
        path.push(match self.iterates || step.within.is_some() {
            true => format!("{name}.{}", step.iteration),
            false => name,
        });
        path
    }

    /// There, `mailboxes/AGENT.jsonl`: the messages that were sent to an agent.
    pub fn mailbox_path(&self, step: &StepId, agent: &str) -> PathBuf {
        self.swarm_folder(step).join("mailboxes").join(short_name(agent) + ".jsonl")
    }

    /// There, `posts.jsonl`: what was written to channels, and to everybody.
    pub fn posts_path(&self, step: &StepId) -> PathBuf {
        self.swarm_folder(step).join("posts.jsonl")
    }

    /// There, `workspace/TOPIC.jsonl`: what was published under a topic.
    pub fn topic_path(&self, step: &StepId, topic: &str) -> PathBuf {
        self.swarm_folder(step).join("workspace").join(short_name(topic) + ".jsonl")
    }

    /// `attempts/[NAME.k/][WITHIN/]TASK.[ITERATION.]ATTEMPT`: the processes of an attempt that outlive the runner.
    pub(crate) fn processes_folder(&self, step: &StepId, attempt: u32) -> PathBuf {
        self.of_attempt(ATTEMPTS, step, attempt, "d").with_extension("")
    }

    /// There, `AGENT.ITERATION.TURN`: the processes of a swarm's turn that a program takes.
    pub(crate) fn turn_processes_folder(&self, step: &StepId, attempt: u32, turn: &TurnId) -> PathBuf {
        self.processes_folder(step, attempt).join(turn_name(turn))
    }

    fn of_attempt(&self, kind: &str, step: &StepId, attempt: u32, extension: &str) -> PathBuf {
        let mut path = self.in_instance(self.run.join(kind), step);
        let name = file_name(&step.name);
        path.push(match self.iterates || step.within.is_some() {
            true => format!("{name}.{}.{attempt}.{extension}", step.iteration),
            false => format!("{name}.{attempt}.{extension}"),
        });
        path
    }

    fn in_instance(&self, mut path: PathBuf, step: &StepId) -> PathBuf {
        path.extend(self.instances_of.as_ref().map(|name| format!("{name}.{}", step.instance)));
        path.extend(step.within.iter().flat_map(|within| within.split('/')).map(folder_name));
        path
    }
}

/// The turn of a swarm, as a part of the name of a file.
fn turn_name(turn: &TurnId) -> String {
    let name = file_name(&turn.agent);
    match turn.purpose {
        Purpose::Act => format!("{name}.{}.{}", turn.iteration, turn.attempt),
        Purpose::Decompose => format!("{name}.decompose.{}", turn.attempt),
        Purpose::Synthesize => format!("{name}.synthesize.{}", turn.attempt),
    }
}

/// A name of any length, as the name of a file: a digest tells apart names that file systems refuse.
fn short_name(name: &str) -> String {
    let mut safe = file_name(name);
    if safe.len() > LONGEST {
        safe.truncate(LONGEST / 2);
        safe = format!("{safe}-{}", &digest_bytes(name.as_bytes())[..16]);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_out_of_its_folder() {
        assert_eq!(file_name("unit-tests_2"), "unit-tests_2");
        assert_eq!(file_name("../../etc/passwd"), "%2e.%2f..%2fetc%2fpasswd");
        assert_eq!(file_name("a.b"), "a.b");
        assert_eq!(file_name("\0"), "%00");
        let (one, other) = (short_name(&"/漢".repeat(64)), short_name(&"/漢".repeat(63)));
        assert!(one.len() < 200 && one != other && !one.contains('/'), "{one}");
        assert_eq!(short_name("../x"), "%2e.%2fx");
        assert_eq!(folder_name("triage.2~3[7]"), "triage.2~3[7]");
        assert_eq!(folder_name(".."), "%2e.");
        assert_eq!(folder_name(""), "%");
    }
}
