//! The command line: every subcommand and flag. The doc comments are `--help`, the manual pages and `docs/cli.md`.

mod agent;
mod engine;
mod follow;
mod habits;
mod read;
mod resume;
mod run;
mod serve;
mod show;
mod worker;

use std::path::PathBuf;

pub(crate) use agent::{Agent, Invocation, Mcp};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use engine::Engine;
pub(crate) use follow::{Events, Top};
pub(crate) use resume::Resume;
pub(crate) use run::Run;
pub(crate) use serve::Serve;
pub(crate) use show::{LogLines, Show};
use swarmc_view::documents::{DOCUMENTS, Document, find_document};
pub(crate) use worker::Worker;

/// Compiles and runs multi-agent workflows written in KDL.
///
/// Exit codes: 0 done; 1 the spec has errors; 2 wrong usage, or the environment failed; 3 the workflow failed; 4
/// stopped by a person, and can be resumed; 5 over budget or out of time.
///
/// Runs live under `$SWARM_HOME` (default `~/.swarm`). Colours follow `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE`.
#[derive(Debug, Parser)]
#[command(name = "swarmc", version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
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
    Top(Top),
    Serve(Serve),
    Worker(Worker),
    Logs(Logs),
    Events(Events),
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

impl Command {
    /// The engine whose runs the command is to see.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        match self {
            Command::Stop(args) => Some(&args.engine),
            Command::Approve(args) => Some(&args.engine),
            Command::Send(args) => Some(&args.engine),
            Command::Ps(args) => Some(&args.engine),
            Command::Top(args) => Some(&args.engine),
            Command::Serve(args) => Some(&args.engine),
            Command::Logs(args) => Some(&args.engine),
            Command::Events(args) => Some(&args.engine),
            Command::Inspect(args) => Some(&args.engine),
            _ => None,
        }
    }
}

/// Serves an editor: the language server, on standard input and output.
///
/// Editors start it themselves; `docs/editors.md` says how to set up each editor. Exit code 1 when the editor
/// disconnects without the `exit` notification.
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
/// `swarmc.kdl` in the root of the workspace (the nearest folder with `.git`, else the spec's own) holds the settings
/// of a team: `profile strict`, `deny CODE…`, `warn CODE…`, `allow CODE…`, `baseline "FILE"`. Flags override it.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Specs, or folders of them: every `*.kdl` file beneath that declares a `workflow`, a `pipeline` or a `swarm`
    /// (hidden folders, `target`, `node_modules` and what ignore files name left out). Without arguments, the current
    /// folder.
    #[arg(value_name = "SPEC|FOLDER")]
    pub(crate) specs: Vec<PathBuf>,
    /// Makes the certain fixes in the specs and their prompt files, and reports the remaining problems.
    #[arg(long)]
    pub(crate) fix: bool,
    /// Also makes the likely fixes, which need a review. For `--fix` and `--diff`.
    #[arg(long)]
    pub(crate) r#unsafe: bool,
    /// Shows the changes that `--fix` would make as a diff, and changes nothing; exit code 1 when there are any.
    #[arg(long)]
    pub(crate) diff: bool,
    /// The format of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Also reports what was checked and proved, for each spec and in total: names that resolve, fields of known type,
    /// outputs that exist where they are read, branches that cover every case, steps that can run, prompts against
    /// their windows, bounds of a run, flows of text, and suppressed problems. Prints a table after the verdict, and
    /// `stats` in `--format json`; for a spec with errors, as far as it could be read.
    #[arg(long, conflicts_with_all = ["fix", "diff"])]
    pub(crate) stats: bool,
    /// How much is shown; by default the profile of `swarmc.kdl`, else `default`.
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
    /// Ignores the known problems that this file lists by file, code and message; their lines may move. Overrides the
    /// baseline of `swarmc.kdl`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fix", "diff"])]
    pub(crate) baseline: Option<PathBuf>,
    /// Writes the current problems into the baseline.
    #[arg(long, conflicts_with_all = ["fix", "diff"])]
    pub(crate) update_baseline: bool,
    /// Checks only the specs that changed since this Git ref, or that read a file which did: an import, a prompt, a
    /// script, `swarmc.kdl`, the baseline. Counts what the current branch changed since it left the ref, what is not
    /// committed included. In CI: `--since origin/main`.
    #[arg(long, value_name = "REF", conflicts_with = "update_baseline")]
    pub(crate) since: Option<String>,
    /// Checks again when a file changes that the check read or looked for, or when a spec appears or disappears beneath
    /// a folder, until Ctrl-C (exit code 130). Waits for deleted files to come back. Clears a terminal before each
    /// check; a pipe gets lines that begin with `---`: on standard output with `--format text`, else on standard error.
    /// `--format json` writes one document, on one line, for each check.
    #[arg(long, short, conflicts_with_all = ["fix", "diff", "update_baseline"])]
    pub(crate) watch: bool,
}

/// Formats specs.
///
/// Changes white space only: comments, strings and the meaning stay as they are. A file with syntax errors is not
/// changed; its problems are reported, with exit code 1.
#[derive(Debug, Args)]
pub(crate) struct Fmt {
    /// Specs, or folders of them, as for `check`; `-` formats standard input onto standard output.
    #[arg(value_name = "SPEC|FOLDER")]
    pub(crate) specs: Vec<PathBuf>,
    /// Lists the files that would change, and changes nothing; exit code 1 when there are any.
    #[arg(long, conflicts_with = "diff")]
    pub(crate) check: bool,
    /// Shows the changes as a diff, and changes nothing; exit code 1 when there are any.
    #[arg(long)]
    pub(crate) diff: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// What is wrong, or very probably so.
    Default,
    /// Also what a careful team avoids.
    Strict,
    /// Also what a person who approves a workflow should have seen.
    Audit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// With source lines, labels and help.
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
/// Lists the steps in a possible order of execution, what each waits for and why, the sizes of prompts, and what a run
/// uses: likely and at most, in launches, agent turns, tokens and money, its time at most, and why one has no limit.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// The spec, or a plan from a file.
    pub(crate) spec: PathBuf,
    /// Writes the whole plan as JSON to this file; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Checks that this file is the current plan of the spec, byte for byte: exit code 0 and no output when it is, 1
    /// and the differences when it is stale.
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["output", "pipeline"])]
    pub(crate) check: Option<PathBuf>,
    /// Shows the differences from an older plan, or from the plan of another spec: first new powers, then cost,
    /// behaviour, types and structure.
    #[arg(long, value_name = "OLD", conflicts_with_all = ["output", "pipeline", "check"])]
    pub(crate) diff: Option<PathBuf>,
    /// With `--diff`: exit code 1 when there are differences.
    #[arg(long, requires = "diff")]
    pub(crate) exit_code: bool,
    /// Shows only this pipeline.
    #[arg(long, value_name = "NAME")]
    pub(crate) pipeline: Option<String>,
    /// Replaces a provider of the spec by another, as `run` does. May be repeated.
    #[arg(long = "provider", value_name = "NAME=OTHER", value_parser = parse_assignment, conflicts_with_all = ["check", "diff"])]
    pub(crate) provider: Vec<(String, String)>,
    /// Shows which steps `run --reuse` would take from an earlier run, which would run and why, with the difference of
    /// their prompts, and what is saved; see docs/reuse.md.
    #[arg(long, value_name = "RUN|last|any", num_args = 0..=1, default_missing_value = "any", conflicts_with_all = ["output", "check", "diff"])]
    pub(crate) reuse: Option<String>,
    /// With `--reuse`: sets a parameter. May be repeated; overrides `--params`.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_assignment, requires = "reuse")]
    pub(crate) param: Vec<(String, String)>,
    /// With `--reuse`: reads parameters from a JSON file, as `run` does.
    #[arg(long, value_name = "FILE", requires = "reuse")]
    pub(crate) params: Option<PathBuf>,
}

/// Draws pipelines and swarms: as a picture, as text, or in a notation that other tools draw.
///
/// Round boxes are turns of agents, square boxes commands, slanted boxes computed values, hexagons gates, and double
/// boxes calls; a second edge behind a box means that the step runs for each item of a list. Arrows show what waits for
/// what, with the condition if it is not success; dashed arrows show handoffs; an arrow from a frame to itself shows
/// repetition.
#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// The spec, or a plan.
    #[arg(value_name = "SPEC|PLAN")]
    pub(crate) spec: PathBuf,
    /// The format; by default the extension of the output file decides (`.svg`, `.dot`, `.gv`, `.mmd`, `.txt`), else
    /// Mermaid.
    #[arg(long, value_enum)]
    pub(crate) format: Option<GraphFormat>,
    /// Writes to this file instead of standard output; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draws only this pipeline or swarm.
    #[arg(long, value_name = "NAME")]
    pub(crate) pipeline: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Mermaid, which GitHub and many editors draw inside Markdown files.
    Mermaid,
    /// DOT of Graphviz: `swarmc graph SPEC --format dot | dot -Tsvg`.
    Dot,
    /// A picture for browsers and documents, in light and dark: `swarmc graph SPEC -o graph.svg`.
    Svg,
    /// A listing for terminals: a line for each step, after all the steps that it waits for. The lines at the left lead
    /// from a step to the steps that wait for it. `●` is a turn of an agent, `■` a command, `▪` a value, `◆` a gate,
    /// `▶` a call, `×` a stop, `↻` a loop, `▤` the plan of a team.
    Text,
}

/// Runs the tests of specs with fake answers: it starts no program, costs nothing, and waits for no one.
///
/// A `test` declares the answers of agents, commands and people, and what must hold after the run; see docs/testing.md.
/// Exit code 3 when a test fails, 1 when a spec has errors, 2 when there is no test.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Specs, or folders of them, as for `check`.
    #[arg(value_name = "SPEC|FOLDER")]
    pub(crate) specs: Vec<PathBuf>,
    /// Runs only the tests whose names contain this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// The format of the report.
    #[arg(long, value_enum, default_value_t = TestFormat::Text)]
    pub(crate) format: TestFormat,
    /// Writes the snapshots of the tests that pass otherwise, and removes snapshots that they no longer use.
    #[arg(long)]
    pub(crate) update: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestFormat {
    /// A line for each test, and each expectation that failed.
    Text,
    /// One JSON document, versioned.
    Json,
    /// JUnit XML: a suite for each spec, a case for each test.
    Junit,
}

/// Answers a gate of a running run or a request of an agent; lists what waits.
///
/// The answer is on disk when the command ends. `swarmc ps` shows the runs that wait for an answer.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The run: its id, the beginning of it, or `last`. May be left out: the last run.
    pub(crate) run: Option<String>,
    /// The gate; if several have this name, with its parent: `build/human`, `each[3]/human`. Or an agent's request: its
    /// number, or the agent that waits with it, as `STEP` or `STEP/AGENT`. Without it, lists what waits.
    #[arg(value_name = "GATE|REQUEST")]
    pub(crate) gate: Option<String>,
    /// One of the gate's options; for an agent `allow`, `always` (the same tool for the same agent, for the rest of the
    /// run) or `deny`.
    pub(crate) choice: Option<String>,
    /// Sets a field that the gate asks for. May be repeated.
    #[arg(long = "ask", value_name = "FIELD=VALUE", value_parser = parse_assignment)]
    pub(crate) ask: Vec<(String, String)>,
    /// The reason, which an agent reads after a `deny`; for a request for help, the answer.
    #[arg(long, value_name = "TEXT")]
    pub(crate) because: Option<String>,
    /// Replaces the arguments of the agent's tool call: a JSON object that fits the tool's parameters. For `allow`.
    #[arg(long, value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// Writes to an agent of a running run.
///
/// The message waits for the agent's next turn, and starts one if the agent is idle or has already answered. It is on
/// disk when the command ends, which prints who reads it and when.
///
/// To `context:PACK` it appends to a context pack: every turn that begins from then on and reads the pack reads it.
#[derive(Debug, Args)]
#[command(override_usage = "swarmc send [OPTIONS] [RUN] <STEP> [TEXT]...")]
pub(crate) struct Send {
    /// The run: its id, the beginning of it, or `last`. May be left out: the last run.
    pub(crate) run: Option<String>,
    /// The step whose agent reads it; if several have this name, with its parent: `polish/draft`. In a swarm
    /// `STEP/AGENT`, one of its agents. Or `context:PACK`.
    #[arg(value_name = "STEP")]
    pub(crate) to: Option<String>,
    /// The message; with `-` or without it, read from standard input.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Ends the current turn, and continues with the message in the same conversation: at once for an agent whose
    /// conversation can be resumed, between two steps for a model, otherwise after the turn.
    #[arg(long, short)]
    pub(crate) interrupt: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// Asks a running run to end; it can be resumed later. If the runner of the run was killed, ends its remaining
/// processes.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// The run; may be left out when only one is running.
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// Lists runs that are running or can be resumed, with the states of their agents: connected, idle, disconnected, over.
#[derive(Debug, Args)]
pub(crate) struct Ps {
    /// Shows only this run, in any state, with all of its agents: its id, the beginning of it, or `last`.
    #[arg(conflicts_with = "all")]
    pub(crate) run: Option<String>,
    /// Lists finished runs too.
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Prints one JSON document, versioned.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// Prints the logs of the steps of a run.
///
/// The log of a command is unchanged; that of an agent has what it said and the tools that it used. The logs of several
/// steps or agents have a prefix on each line.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The run: its id, the beginning of it, or `last`. May be left out: the last run.
    pub(crate) run: Option<String>,
    /// Prints only this step; if several have this name, with its parent: `polish/draft`. In a swarm `STEP/AGENT`, one
    /// of its agents.
    #[arg(value_name = "STEP")]
    pub(crate) task: Option<String>,
    /// Prints new lines until the run ends.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Prints what the program of an agent wrote, unchanged.
    #[arg(long)]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// Shows a run, a step of it, or an agent of a step that is a swarm.
///
/// For a run: its steps, why they were skipped, attempts, usage and paths. For a step: all of its attempts, with
/// prompts and logs, tools used and artifacts; for a swarm its agents, how each ended, and its usage. For an agent: its
/// mailbox and its turns, each with prompt, action and result.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The run: its id, the beginning of it, or `last`. May be left out: the last run.
    pub(crate) run: Option<String>,
    /// The step, by its name, with its parent if several have this name; in a swarm also `STEP/AGENT`, one of its agents,
    /// or its leader. Or an artifact by its reference, `artifact://diff/ID` or `contextpack://pack/ID`,
    /// which is printed as stored.
    #[arg(value_name = "STEP|REFERENCE")]
    pub(crate) step: Option<String>,
    /// The agent of a swarm; the same as `STEP/AGENT`.
    pub(crate) agent: Option<String>,
    /// Prints the plan of a swarm with a coordinator: its items, their owners, and what waits for what.
    #[arg(long, conflicts_with_all = ["json", "raw", "swarm"])]
    pub(crate) plan: bool,
    /// Prints the agents of a swarm with a coordinator: their states, their items, and the channels.
    #[arg(long, conflicts_with_all = ["json", "raw"])]
    pub(crate) swarm: bool,
    /// Prints the complete envelopes that a step received and sent, as indented JSON.
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Prints one JSON document, versioned.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// Deletes old runs, captured outputs, and results for `--reuse`.
///
/// Never deletes a running run. Deletes a run that can be resumed only when it is named.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// Deletes these runs, whatever their age.
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Deletes only captured outputs, and keeps the records of runs.
    #[arg(long)]
    pub(crate) outputs: bool,
    /// Deletes runs and results that have not changed for this long: `90s`, `30m`, `12h`, `7d`, `2w`.
    #[arg(long, value_name = "AGE", default_value = "7d", value_parser = parse_age)]
    pub(crate) older_than: std::time::Duration,
    /// Lists what would be deleted, and deletes nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Explains a problem that `swarmc check` reports.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A code such as `SW201`, or a name such as `output-not-upstream`; without it, lists all.
    #[arg(value_name = "CODE|NAME")]
    pub(crate) code: Option<String>,
}

/// Prints a JSON Schema (draft 2020-12).
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The format that the schema describes.
    #[arg(value_name = "FORMAT", value_parser = parse_document())]
    pub(crate) of: &'static Document,
}

/// Reads the name of a document.
fn parse_document() -> impl TypedValueParser<Value = &'static Document> {
    let names = DOCUMENTS.iter().map(|document| PossibleValue::new(document.name).help(document.about));
    PossibleValuesParser::new(names).map(|name| find_document(&name).expect("no other name is possible"))
}

/// Converts a compose file of tasks and pipelines, in YAML, to a spec.
///
/// Prompt files stay where they are. The command lists everything that it could not convert with its place in the YAML,
/// writes it as a comment into the spec, and then checks the spec. Exit code 0 when everything was converted and the
/// spec has no errors, else 1.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The compose file.
    pub(crate) compose: PathBuf,
    /// The file of the spec; `-` is standard output. By default it is beside the compose file.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrites an existing spec.
    #[arg(long)]
    pub(crate) force: bool,
    /// The program for agents whose model does not determine one: a preset of `std:providers`.
    #[arg(long, value_name = "NAME", default_value = "claude-code")]
    pub(crate) preset: String,
}

/// Writes a small workflow that runs offline, as a starting point.
///
/// Never overwrites existing files.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The folder; created if it does not exist.
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
}

/// Shows whether this machine has what workflows need.
///
/// Looks for the programs of the provider presets, and checks that `$SWARM_HOME` can be written. For a spec, lists the
/// programs and variables that its steps need, and which are missing: exit code 2 if a run would be refused or fail
/// without one.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Checks the needs of this spec instead of the presets.
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

fn parse_assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

fn parse_age(text: &str) -> Result<std::time::Duration, String> {
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
        assert_eq!(parse_age("7d"), Ok(std::time::Duration::from_secs(604_800)));
        assert_eq!(parse_age("0s"), Ok(std::time::Duration::ZERO));
        for wrong in ["", "7", "d", "-1d", "7 d", "1.5h", "99999999999999999999d", "18446744073709551615w"] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_may_hold_equals_signs() {
        assert_eq!(parse_assignment("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_assignment("a="), Ok(("a".to_owned(), String::new())));
        assert!(parse_assignment("=b").is_err());
        assert!(parse_assignment("a").is_err());
    }
}
