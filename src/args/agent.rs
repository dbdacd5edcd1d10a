//! The command line of `swarmc agent`, made from the table of operations, and of `swarmc mcp`.
//!
//! In: `OPERATIONS` of the runtime, and arguments. Out: the operation meant, with the flags that were given. Invariant: this
//! module knows no operation by name.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand, value_parser};
use swarmc_runtime::NOTICES;
use swarmc_runtime::handoff::{Flag, FlagKind, OPERATIONS, OperationSpec};

/// Takes part in a run, as the task that started this process.
///
/// For scripts, and for agents without MCP: a task of a pipeline with `edges`, and an agent of a swarm with a coordinator,
/// has `SWARM_SOCKET` and `SWARM_TOKEN` in its environment, which identify it. Prints the receipt as one JSON document,
/// after the operation is on disk.
/// Exit code 2 when the run refuses, with the reason.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    #[command(subcommand)]
    pub(crate) invocation: Invocation,
}

/// An operation, as a command line asks for it.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// By a subcommand of its own.
    Operation {
        /// Its declaration.
        spec: &'static OperationSpec,
        /// The flags that were given, each with its values.
        given: Vec<(&'static Flag, Vec<String>)>,
    },
    /// By its name, with its arguments as JSON.
    Call {
        /// The name.
        name: String,
        /// The arguments, or `-` for standard input.
        arguments: String,
    },
    /// What others wrote meanwhile.
    Notices {
        /// Whether it is printed as the hook of an agent program prints it.
        hook: bool,
    },
}

/// The subcommand that calls an operation by its name.
const CALL: &str = "call";

/// The flag of the subcommand for notices that prints them for a hook.
const HOOK: &str = "hook";

impl Subcommand for Invocation {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(OPERATIONS.iter().map(build_command)).subcommand(build_call()).subcommand(build_notices())
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Invocation::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name == CALL || name == NOTICES || OPERATIONS.iter().any(|spec| spec.command == name)
    }
}

impl FromArgMatches for Invocation {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Invocation, clap::Error> {
        let meant = matches.subcommand();
        if let Some((CALL, inner)) = meant {
            let text = |id: &str| inner.get_one::<String>(id).cloned().unwrap_or_default();
            return Ok(Invocation::Call { name: text("name"), arguments: text("arguments") });
        }
        if let Some((NOTICES, inner)) = meant {
            return Ok(Invocation::Notices { hook: inner.get_flag(HOOK) });
        }
        let found = meant.and_then(|(name, inner)| Some((OPERATIONS.iter().find(|spec| spec.command == name)?, inner)));
        let (spec, inner) = found.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        let is_given = |flag: &&Flag| inner.value_source(flag.name) == Some(ValueSource::CommandLine);
        let values = |flag: &'static Flag| {
            let raw = inner.get_raw(flag.name).into_iter().flatten();
            (flag, raw.map(|value| value.to_string_lossy().into_owned()).collect())
        };
        Ok(Invocation::Operation { spec, given: spec.flags.iter().filter(is_given).map(values).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Invocation::from_arg_matches(matches)?;
        Ok(())
    }
}

fn build_call() -> Command {
    let about = "Takes an action of an agent of a swarm with a coordinator, while its turn goes on";
    let more = "The actions are those of the agent's prompt that end no turn, such as `item_done`. The receipt also holds \
                what others wrote to the agent meanwhile.";
    let name = Arg::new("name").value_name("ACTION").required(true).help("The name of the action");
    let arguments = Arg::new("arguments")
        .value_name("JSON")
        .default_value("{}")
        .help("Its fields, as one JSON object; `-` reads it from standard input");
    Command::new(CALL).about(about).long_about(format!("{about}.\n\n{more}")).args([name, arguments])
}

fn build_notices() -> Command {
    let about = "Prints what others wrote to an agent of a swarm with a coordinator, while its turn goes on";
    let more = "What it prints counts as read. It prints nothing where there is nothing new. The preset `claude-code` runs it \
                after each call of a tool.";
    let hook = Arg::new(HOOK).long(HOOK).action(ArgAction::SetTrue);
    let hook = hook.help("Prints JSON that a PostToolUse hook of Claude Code prints, for its model to read");
    Command::new(NOTICES).about(about).long_about(format!("{about}.\n\n{more}")).arg(hook)
}

fn build_command(spec: &'static OperationSpec) -> Command {
    let sentence = spec.about.split("\n\n").next().unwrap_or_default();
    let command = Command::new(spec.command).about(sentence.trim_end_matches('.'));
    let command = if sentence == spec.about { command } else { command.long_about(spec.about) };
    command.args(spec.flags.iter().map(|flag| build_argument(flag, spec.flags)))
}

fn build_argument(flag: &'static Flag, all: &'static [Flag]) -> Arg {
    let rivals = all.iter().filter(|other| other.field == flag.field && other.name != flag.name);
    let argument = Arg::new(flag.name)
        .help(flag.help)
        .required(flag.is_required)
        .conflicts_with_all(rivals.map(|other| other.name));
    let argument = match flag.kind {
        FlagKind::Positional => argument,
        _ => argument.long(flag.name),
    };
    let argument = match flag.kind {
        FlagKind::Switch(_) => return argument.action(ArgAction::SetTrue),
        _ => argument.value_name(flag.value_name),
    };
    match flag.kind {
        FlagKind::Count => argument.value_parser(value_parser!(u64)),
        FlagKind::Choice(words) => {
            let values = words.iter().map(|(word, meaning)| PossibleValue::new(*word).help(*meaning));
            argument.value_parser(PossibleValuesParser::new(values))
        }
        FlagKind::Verdict(_) => argument.num_args(0..=1).default_missing_value(""),
        FlagKind::Artifacts => argument.action(ArgAction::Append),
        FlagKind::Pairs => argument.action(ArgAction::Append).value_parser(check_pair),
        _ => argument,
    }
}

fn check_pair(text: &str) -> Result<String, String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|_| text.to_owned()).ok_or_else(|| "it is not NAME=VALUE".to_owned())
}

/// Serves MCP on standard input and output, for an agent that a run has started.
#[derive(Debug, Args)]
#[command(long_about = describe_server())]
pub(crate) struct Mcp {}

fn describe_server() -> String {
    let mut names: Vec<&str> = OPERATIONS.iter().map(|spec| spec.name).collect();
    let last = names.pop().unwrap_or_default();
    format!(
        "Serves MCP on standard input and output, for an agent that a run has started.\n\n\
         The server `swarm` has the tools `{}` and `{last}`, as far as the task's edges allow them, and acts for the task \
         whose `SWARM_SOCKET` and `SWARM_TOKEN` are in its environment. An agent that can use MCP over HTTP does not need \
         this process: `SWARM_MCP` is the address, and `SWARM_TOKEN` the bearer token. Ends at the end of its input.",
        names.join("`, `")
    )
}
