//! The command line: every subcommand and flag. The doc comments are `--help`, the manual pages and `docs/cli.md`.

mod agent;
mod resume;

use std::path::PathBuf;

pub(crate) use agent::{
    Agent, Broadcast, Mcp, MessageType, Operation as AgentOperation, Priority as AgentPriority, ReadContext, ReadInbox,
    ReportStatus, RequestHelp, Response as AgentResponse, Said, SendHandoff, SendMessage,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use resume::Resume;

/// Compiles and runs multi-agent workflows written in KDL.
///
/// Exit codes: 0 done; 1 the spec has errors; 2 wrong usage, or the environment failed; 3 the workflow failed; 4 stopped
/// by a person, and can be resumed; 5 over budget or out of time.
///
/// Runs live under `$SWARM_HOME` (default `~/.swarm`). Colours follow `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE`.
#[derive(Debug, Parser)]
#[command(name = "swarmc", version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Check),
    Fmt(Fmt),
    Plan(Plan),
    Graph(Graph),
    Test(Test),
    Run(Run),
    Resume(Resume),
    Stop(Stop),
    Approve(Approve),
    Send(Send),
    Ps(Ps),
    Logs(Logs),
    Inspect(Inspect),
    Agent(Agent),
    Mcp(Mcp),
    Prune(Prune),
    Explain(Explain),
    Schema(Schema),
    Import(Import),
    Init(Init),
    Lsp(Lsp),
    Doctor(Doctor),
    Completions(Completions),
    Man(Man),
}

/// Serves an editor: the language server, on standard input and output.
///
/// Editors start it themselves; `docs/editors.md` says how each is told to. Exit code 1 when the editor leaves without
/// saying so.
#[derive(Debug, Args)]
pub(crate) struct Lsp {
    /// Speaks on standard input and output, as it always does; many editors say so.
    #[arg(long, hide = true)]
    pub(crate) stdio: bool,
}

/// Finds mistakes in specs without running anything.
///
/// Exit code 1 when a spec has errors. On a terminal each problem is drawn in its lines; in a pipe it is plain text.
///
/// What a team has agreed on stands in `swarmc.kdl`, in the root of the workspace (the nearest folder with `.git`, else the
/// spec's own): `profile strict`, `deny CODE…`, `warn CODE…`, `allow CODE…`, `baseline "FILE"`. Flags win over it.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Specs, or folders of them: every `*.kdl` file beneath that declares a `workflow`, a `pipeline` or a `swarm`
    /// (hidden folders, `target`, `node_modules` and what ignore files name left out). Without any, the current folder.
    #[arg(value_name = "SPEC|FOLDER")]
    pub(crate) specs: Vec<PathBuf>,
    /// Makes the fixes that are certain, in the specs and their prompt files, and reports what is left.
    #[arg(long)]
    pub(crate) fix: bool,
    /// Makes the likely fixes too: look at what they did. For `--fix` and `--diff`.
    #[arg(long)]
    pub(crate) r#unsafe: bool,
    /// Shows as a diff what `--fix` would do, and changes nothing; exit code 1 when there is something to do.
    #[arg(long)]
    pub(crate) diff: bool,
    /// How problems are shown.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Says also what was looked at and proved, spec by spec and in all: names that lead somewhere, fields whose type is
    /// known, outputs that are there where they are read, routes that take every case, steps that can run, prompts against
    /// their windows, bounds of a run, flows of text, and what suppressions hide. As a table after the verdict, and as
    /// `stats` in `--format json`; of a spec with errors, as far as it could be read.
    #[arg(long, conflicts_with_all = ["fix", "diff"])]
    pub(crate) stats: bool,
    /// How much is shown; what `swarmc.kdl` says, or `default`, unless said.
    #[arg(long, value_enum)]
    pub(crate) profile: Option<Profile>,
    /// Treats a problem as an error: a code, a name, or `warnings` for all of them. May be repeated.
    #[arg(long, value_name = "CODE|NAME")]
    pub(crate) deny: Vec<String>,
    /// Treats a problem as a warning. May be repeated.
    #[arg(long, value_name = "CODE|NAME")]
    pub(crate) warn: Vec<String>,
    /// Leaves a problem out. May be repeated.
    #[arg(long, value_name = "CODE|NAME")]
    pub(crate) allow: Vec<String>,
    /// Does not show, and does not fail because of, what this file knows: problems by file, code and message, however their
    /// lines move. Instead of the one that `swarmc.kdl` names.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fix", "diff"])]
    pub(crate) baseline: Option<PathBuf>,
    /// Writes the problems that there are now into the baseline.
    #[arg(long, conflicts_with_all = ["fix", "diff"])]
    pub(crate) update_baseline: bool,
    /// Checks again whenever a file changes that was read or looked for, or a spec comes or goes beneath a folder, until
    /// Ctrl-C (exit code 130). What goes away is waited for. A terminal is cleared before each check; a pipe gets lines that begin with `---`: on standard
    /// output with `--format text`, else on standard error. `--format json` writes a document, on one line, for each check.
    #[arg(long, short, conflicts_with_all = ["fix", "diff", "update_baseline"])]
    pub(crate) watch: bool,
}

/// Puts the white space of specs in order.
///
/// Comments, strings and the meaning stay as they are, to the byte. A file with syntax errors is left alone, with its
/// problems told and exit code 1.
#[derive(Debug, Args)]
pub(crate) struct Fmt {
    /// Specs, or folders of them, as for `check`; `-` formats standard input onto standard output.
    #[arg(value_name = "SPEC|FOLDER")]
    pub(crate) specs: Vec<PathBuf>,
    /// Lists the files that would change, and changes nothing; exit code 1 when there are any.
    #[arg(long, conflicts_with = "diff")]
    pub(crate) check: bool,
    /// Shows what would change as a diff, and changes nothing; exit code 1 when anything would.
    #[arg(long)]
    pub(crate) diff: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// What is wrong, or very probably so.
    Default,
    /// Also what a careful team avoids.
    Strict,
    /// Also what somebody who signs a workflow off should have seen.
    Audit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// With the lines, labels and help.
    Text,
    /// One line each: `FILE:LINE:COLUMN: error[SW201]: message`.
    Short,
    /// One JSON document, versioned.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations of GitHub Actions, the worst first.
    Github,
    /// JUnit XML: a suite for each spec, a failure for each error.
    Junit,
}

/// Shows what a run would do, or writes it as a plan.
///
/// Lists the steps in an order in which they can run, what each waits for and why, the sizes of prompts, and what a run
/// uses at most: launches, agent turns, tokens, money and time, or why one of them has no end.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// The spec, or a plan that was written before.
    pub(crate) spec: PathBuf,
    /// Writes the whole plan as JSON to this file instead; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Says whether this file is the plan that the spec gives, byte for byte: exit code 0 and nothing printed when it is,
    /// 1 and what differs when it is stale.
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["output", "pipeline"])]
    pub(crate) check: Option<PathBuf>,
    /// Shows what is different from an older plan, or from the plan of another spec: what may do more first, then cost,
    /// behaviour, types and structure.
    #[arg(long, value_name = "OLD", conflicts_with_all = ["output", "pipeline", "check"])]
    pub(crate) diff: Option<PathBuf>,
    /// With `--diff`: exit code 1 when anything is different.
    #[arg(long, requires = "diff")]
    pub(crate) exit_code: bool,
    /// Shows only this pipeline.
    #[arg(long, value_name = "NAME")]
    pub(crate) pipeline: Option<String>,
    /// Puts another provider in the place of one of the spec, as `run` does. May be repeated.
    #[arg(long = "provider", value_name = "NAME=OTHER", value_parser = assignment, conflicts_with_all = ["check", "diff"])]
    pub(crate) provider: Vec<(String, String)>,
}

/// Draws pipelines and swarms: as a picture, as text, or in a notation that other tools draw.
///
/// Round boxes are turns of agents, square ones commands, slanted ones computed values, hexagons gates, and doubled ones
/// calls; a second edge behind a box says that it runs for each item of a list. Arrows say what waits for what, and how
/// where it is not for success; dashed ones who may write to whom; and those from a frame to itself when it runs again.
#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// The spec, or a plan.
    #[arg(value_name = "SPEC|PLAN")]
    pub(crate) spec: PathBuf,
    /// What is written; by default what the ending of the output file says (`.svg`, `.dot`, `.gv`, `.mmd`, `.txt`), else
    /// Mermaid.
    #[arg(long, value_enum)]
    pub(crate) format: Option<GraphFormat>,
    /// Writes to this file instead of standard output; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Only this pipeline or swarm.
    #[arg(long, value_name = "NAME")]
    pub(crate) pipeline: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Mermaid, which GitHub and many editors draw where it stands in a Markdown file.
    Mermaid,
    /// DOT of Graphviz: `swarmc graph SPEC --format dot | dot -Tsvg`.
    Dot,
    /// A picture for browsers and documents, in light and dark: `swarmc graph SPEC -o graph.svg`.
    Svg,
    /// A listing for terminals: a line for each step, after all that it waits for. The lines at the left lead from a step
    /// to those that wait for it. `●` is a turn of an agent, `■` a command, `▪` a value, `◆` a gate, `▶` a call, `×` a
    /// stop, `↻` a loop.
    Text,
}

/// Rehearses the tests of specs: nothing is started, nothing costs anything, and nobody waits.
///
/// A `test` says what agents, commands and people answer, and what must hold then; docs/testing.md tells how. Exit code 3
/// when a test fails, 1 when a spec has errors, 2 when there is no test.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Specs, or folders of them, as for `check`.
    #[arg(value_name = "SPEC|FOLDER")]
    pub(crate) specs: Vec<PathBuf>,
    /// Only the tests with this in their names.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// How the outcome is shown.
    #[arg(long, value_enum, default_value_t = TestFormat::Text)]
    pub(crate) format: TestFormat,
    /// Writes the snapshots of the tests that hold otherwise, and removes those that they no longer look at.
    #[arg(long)]
    pub(crate) update: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestFormat {
    /// A line for each test, and what did not hold.
    Text,
    /// One JSON document, versioned.
    Json,
    /// JUnit XML: a suite for each spec, a case for each test.
    Junit,
}

/// Runs a workflow.
///
/// Lines that tasks print go to standard output as `task │ line`, progress and the summary to standard error; the
/// result comes last on standard output. The first Ctrl-C ends the run so that it can be resumed, the second kills it.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The spec, or a plan that `swarmc plan -o` wrote.
    #[arg(value_name = "SPEC|PLAN")]
    pub(crate) spec: PathBuf,
    /// Runs this pipeline instead of the default one.
    #[arg(long, value_name = "NAME")]
    pub(crate) pipeline: Option<String>,
    /// Sets a parameter. May be repeated; wins over `--params`.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) param: Vec<(String, String)>,
    /// Reads parameters from a JSON file: one object with a value for each name.
    #[arg(long, value_name = "FILE")]
    pub(crate) params: Option<PathBuf>,
    /// Puts another provider in the place of one of the spec, wherever agents and tiers use that: one that the spec declares, or
    /// a preset of `std:providers`, as in `--provider recorded=opencode-acp`. May be repeated.
    #[arg(long = "provider", value_name = "NAME=OTHER", value_parser = assignment)]
    pub(crate) provider: Vec<(String, String)>,
    /// Runs one task outside its pipeline: outputs of other tasks are not there.
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// The folder that tasks run in; by default the nearest one with `.git` above the spec or plan, else its own.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Says that nobody can answer gates: each takes at once what its `headless` says, or else its `on-timeout`. Implied where
    /// `CI` is set.
    #[arg(long)]
    pub(crate) headless: bool,
    /// Writes into this folder, when the run has ended, what every agent, command and gate was asked and answered, and in
    /// swarms every tool, for `--replay`. Folders, run ids and secrets are left blank in it. A recording that is there is replaced.
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Starts nothing, asks no model, and takes every answer from this recording: its parameters and standard input as
    /// well. Ends with exit code 3 at the first prompt, command or other thing asked that differs from the recording, and
    /// shows the difference. Hooks do not run, and such a run is not resumed.
    #[arg(long, value_name = "DIR")]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) show: Show,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Show {
    /// Prints what happens as JSON lines, versioned, on standard output.
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
    /// Prints the events of steps and of the agents of swarms as JSON lines, versioned, on standard output; and how nodes
    /// stand with their agents, and the tools that those use.
    #[arg(long, conflicts_with_all = ["quiet", "json"])]
    pub(crate) events: bool,
    /// Prints the result only, and on standard error what failed.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl Show {
    /// Whether a program reads standard output, and nobody is to be told anything in words.
    pub(crate) fn is_machine(self) -> bool {
        self.json || self.events
    }
}

/// Answers a gate of a running run, or an agent that needs somebody's agreement; lists what waits.
///
/// The answer is on disk when the command ends. `swarmc ps` shows which runs wait for one.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The run: its id, the beginning of it, or `last`.
    pub(crate) run: String,
    /// The gate; where several have the name, with what it is inside of: `build/human`, `each[3]/human`. Or the number of
    /// what an agent asks for. Without it, what waits is listed.
    #[arg(value_name = "GATE|NUMBER")]
    pub(crate) gate: Option<String>,
    /// One of the gate's options; to an agent `allow`, `always` (the same tool for the same agent, for the rest of the
    /// run) or `deny`.
    #[arg(requires = "gate")]
    pub(crate) choice: Option<String>,
    /// Gives a field that the gate asks for. May be repeated.
    #[arg(long = "ask", value_name = "FIELD=VALUE", value_parser = assignment)]
    pub(crate) ask: Vec<(String, String)>,
    /// Says why, which an agent that is denied something reads; to one that asked for help, what it asked for.
    #[arg(long, value_name = "TEXT", requires = "choice")]
    pub(crate) because: Option<String>,
    /// Has an agent's tool called with these arguments in place of its own: a JSON object that fits what the tool takes.
    /// For `allow`.
    #[arg(long, value_name = "JSON", requires = "choice")]
    pub(crate) arguments: Option<String>,
}

/// Writes to an agent of a running run.
///
/// The message waits for the agent's next turn, which it causes where the agent is idle or has answered already; it is on
/// disk when the command ends, which says what becomes of it.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The run: its id, the beginning of it, or `last`.
    pub(crate) run: String,
    /// The task whose agent reads it; where several have the name, with what it is inside of: `polish/draft`. Of a swarm,
    /// one of its agents: `team/takao`.
    #[arg(value_name = "TASK")]
    pub(crate) to: String,
    /// The message; `-`, or nothing, reads it from standard input.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Ends the turn that is under way, and goes on with the message in the same conversation: at once with an agent whose
    /// conversation can be resumed, between two steps with a model, and else after the turn.
    #[arg(long, short)]
    pub(crate) interrupt: bool,
}

/// Asks a running run to end; it can be resumed later. Of a run whose runner was killed, ends what outlived that.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// The run; may be left out when only one is running.
    pub(crate) run: Option<String>,
}

/// Lists runs that are running or can be resumed, with how their agents stand: connected, idle, disconnected.
#[derive(Debug, Args)]
pub(crate) struct Ps {
    /// Only this run, whatever became of it, with all of its agents: its id, the beginning of it, or `last`.
    #[arg(conflicts_with = "all")]
    pub(crate) run: Option<String>,
    /// Lists finished runs too.
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Prints one JSON document, versioned.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints what the tasks of a run printed.
///
/// One task's log comes as it is, several with a prefix on each line.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The run: its id, the beginning of it, or `last`; a task's name alone means the last run.
    pub(crate) run: Option<String>,
    /// Only this task.
    pub(crate) task: Option<String>,
    /// Goes on printing until the run ends.
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// Shows a run, a step of it, or an agent of a step that is a swarm.
///
/// Of a run: its steps, why they were skipped, attempts, usage and paths. Of a step: all of its attempts, with their
/// prompts and logs, the tools that it used and the artifacts that it left; of a swarm its agents, how each ended, and what it used. Of an agent: its turns, each with what it
/// did, what came of it and the prompt that it was asked with, and its mailbox.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The run: its id, the beginning of it, or `last` (the default).
    pub(crate) run: Option<String>,
    /// The step, by its name, with what it is inside of where there are several; or an artifact by its reference,
    /// `artifact://diff/ID` or `contextpack://pack/ID`, which is printed as it was stored.
    #[arg(value_name = "STEP|REFERENCE")]
    pub(crate) step: Option<String>,
    /// The agent of a swarm, or `swarm-supervisor`.
    pub(crate) agent: Option<String>,
    /// Prints the envelopes that came to a step and left it, whole, as JSON for people.
    #[arg(long, requires = "step", conflicts_with_all = ["json", "agent"])]
    pub(crate) raw: bool,
    /// Prints one JSON document, versioned.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Deletes old runs and captured outputs.
///
/// A run that is running is never deleted; one that can be resumed only when it is named.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// Deletes these runs, whatever their age.
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Deletes captured outputs only, and keeps the records of runs.
    #[arg(long)]
    pub(crate) outputs: bool,
    /// Deletes what has not changed for this long: `90s`, `30m`, `12h`, `7d`, `2w`.
    #[arg(long, value_name = "AGE", default_value = "7d", value_parser = age)]
    pub(crate) older_than: std::time::Duration,
    /// Says what would be deleted, and deletes nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Explains a problem that `swarmc check` reports.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A code such as `SW201`, or a name such as `output-not-upstream`; without it, all are listed.
    #[arg(value_name = "CODE|NAME")]
    pub(crate) code: Option<String>,
}

/// Prints a JSON Schema (draft 2020-12).
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Of what.
    #[arg(value_enum)]
    pub(crate) of: SchemaOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// Of plans, as `swarmc plan -o` writes them.
    Plan,
    /// Of what `swarmc check --format json` prints.
    Check,
    /// Of the envelopes that agents receive.
    Envelope,
    /// Of what an agent says to hand something over.
    Handoff,
}

/// Turns a compose file of tasks and pipelines, in YAML, into a spec.
///
/// Prompt files stay where they are. What could not be carried over is listed at its place in the YAML, and stands as a
/// comment in the spec; the spec is then checked. Exit code 0 when everything was carried over and the spec has no
/// errors, else 1.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The compose file.
    pub(crate) compose: PathBuf,
    /// Where the spec goes, `-` being standard output; beside the compose file, unless said.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrites a spec that is there.
    #[arg(long)]
    pub(crate) force: bool,
    /// The program that runs agents whose model does not tell which one: a preset of `std:providers`.
    #[arg(long, value_name = "NAME", default_value = "claude-code")]
    pub(crate) preset: String,
}

/// Writes a small workflow that runs offline, to begin with.
///
/// Existing files are never overwritten.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The folder; it is made where it does not exist.
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
}

/// Shows whether this machine has what workflows need.
///
/// Looks for the programs of the provider presets, and checks that `$SWARM_HOME` can be written. Of a spec it says which
/// programs and variables its steps need, and which of them are not there: exit code 2 where a run would be refused, or fail,
/// for want of one.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Looks at what this spec needs, in the place of the presets.
    #[arg(value_name = "SPEC")]
    pub(crate) spec: Option<PathBuf>,
    /// Prints one JSON document, versioned.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints a completion script for a shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Prints the manual page, or writes one for each command.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Writes `swarmc.1`, `swarmc-run.1` and so on into this folder.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

fn age(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || "write a number and a unit: `90s`, `30m`, `12h`, `7d` or `2w`".to_owned();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        "w" => 7 * 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(std::time::Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn ages_have_a_number_and_a_unit() {
        assert_eq!(age("7d"), Ok(std::time::Duration::from_secs(604_800)));
        assert_eq!(age("0s"), Ok(std::time::Duration::ZERO));
        for wrong in ["", "7", "d", "-1d", "7 d", "1.5h", "99999999999999999999d", "18446744073709551615w"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_may_hold_equals_signs() {
        assert_eq!(assignment("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(assignment("a="), Ok(("a".to_owned(), String::new())));
        assert!(assignment("=b").is_err());
        assert!(assignment("a").is_err());
    }
}
