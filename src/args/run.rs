//! The command line of `swarmc run`.

use std::path::PathBuf;

use clap::Args;

use super::{Engine, Show, parse_assignment};

/// Runs a workflow.
///
/// Standard output has the result alone, at the end. Standard error has the lines that tasks print, as `task │ line`,
/// with progress and a summary. The first Ctrl-C ends the run so that it can be resumed, the second kills it.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The spec, or a plan that `swarmc plan -o` wrote; by default the only spec of the current folder.
    #[arg(value_name = "SPEC|PLAN")]
    pub(crate) spec: Option<PathBuf>,
    /// Runs this pipeline instead of the default one.
    #[arg(long, value_name = "NAME")]
    pub(crate) pipeline: Option<String>,
    /// Sets a parameter. May be repeated; overrides `--params`.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_assignment)]
    pub(crate) param: Vec<(String, String)>,
    /// Reads parameters from a JSON file: one object with a value for each name.
    #[arg(long, value_name = "FILE")]
    pub(crate) params: Option<PathBuf>,
    /// Replaces a provider of the spec by another, for all agents and tiers that use it: by a provider that the spec
    /// declares, or a preset of `std:providers`, as in `--provider recorded=opencode-acp`. May be repeated.
    #[arg(long = "provider", value_name = "NAME=OTHER", value_parser = parse_assignment)]
    pub(crate) provider: Vec<(String, String)>,
    /// Runs one task outside its pipeline, without the outputs of other tasks.
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// The folder that tasks run in; by default the nearest one with `.git` above the spec or plan, else its own.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Runs unattended: each gate takes its `headless` option at once, or else its `on-timeout`. Implied when `CI` is
    /// set.
    #[arg(long)]
    pub(crate) headless: bool,
    /// Writes a recording for `--replay` into this folder when the run ends: the requests to every agent, command and
    /// gate, and in swarms every tool, with their answers. It leaves folders, run ids and secrets blank, and replaces
    /// an existing recording.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["replay", "engine"])]
    pub(crate) record: Option<PathBuf>,
    /// Starts no program, asks no model, and takes every answer, the parameters and standard input from this recording.
    /// Ends with exit code 3 at the first prompt, command or other request that differs from the recording, and shows
    /// the difference. Hooks do not run, and a replay cannot be resumed.
    #[arg(long, value_name = "DIR", conflicts_with = "engine")]
    pub(crate) replay: Option<PathBuf>,
    /// Takes the result of a step from an earlier run where its inputs are the same: prompt or command, agent, model,
    /// tools, outputs that it reads, parameters, declared files, types, checks. From this run, from the `last` run of
    /// the workflow that left results, or from `any` run; see docs/reuse.md.
    #[arg(long, value_name = "RUN|last|any", num_args = 0..=1, default_missing_value = "any", conflicts_with = "engine")]
    pub(crate) reuse: Option<String>,
    /// Runs this step and all that depend on it in any case, and takes the results of all others from an earlier run:
    /// `--reuse` says of which one. Refuses to start where one of the others has no result that fits.
    #[arg(long, value_name = "STEP", conflicts_with_all = ["task", "engine"])]
    pub(crate) from: Option<String>,
    /// Runs only this step and those that it needs, in one round. The result is the output of the step.
    #[arg(long, value_name = "STEP", conflicts_with_all = ["replay", "task"])]
    pub(crate) until: Option<String>,
    /// Shows the run on the whole screen, as `swarmc top` does; leaving the screen ends no run. Without a terminal it prints
    /// lines as ever.
    #[arg(long, conflicts_with_all = ["json", "events", "logs", "replay"])]
    pub(crate) tui: bool,
    /// For a program that starts a run which outlives it: the run leaves its session, and writes its id to this file.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) id_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) engine: Engine,
    #[command(flatten)]
    pub(crate) show: Show,
}
