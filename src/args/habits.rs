//! What commands of other tools are called here, for the tip under a command that does not exist.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The command that does what these do elsewhere.
const HABITS: [(&str, &[&str]); 12] = [
    ("check", &["lint", "validate", "verify"]),
    ("init", &["create", "new"]),
    ("inspect", &["describe", "output", "outputs", "result", "show", "view"]),
    ("logs", &["log", "tail"]),
    ("plan", &["build", "compile", "dry-run"]),
    ("prune", &["clean", "gc", "rm"]),
    ("ps", &["history", "list", "ls", "runs", "status"]),
    ("resume", &["continue", "restart", "retry", "rerun"]),
    ("run", &["exec", "start", "up"]),
    ("serve", &["dashboard", "server", "ui", "web"]),
    ("stop", &["abort", "cancel", "down", "kill"]),
    ("top", &["tui", "watch"]),
];

/// The same error, with the command of this tool in its tip where another tool calls it so.
pub(crate) fn propose_command(mut error: Error) -> Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some((command, _)) = HABITS.iter().find(|(_, words)| words.contains(&word.as_str()))
    {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![(*command).to_owned()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::CommandLine;

    #[test]
    fn words_of_other_tools_lead_to_commands_of_this_one() {
        let command = CommandLine::command();
        let known: Vec<&str> = command.get_subcommands().map(|command| command.get_name()).collect();
        for (meant, words) in HABITS {
            assert!(known.contains(&meant), "{meant}");
            for word in words {
                assert!(!known.contains(word), "{word} is a command");
                let error = CommandLine::try_parse_from(["swarmc", word, "last"]).expect_err("it does not exist");
                let said = propose_command(error).to_string();
                assert!(said.contains(&format!("'{word}'")) && said.contains(&format!("'{meant}'")), "{said}");
            }
        }
        let error = CommandLine::try_parse_from(["swarmc", "chekc"]).expect_err("it does not exist");
        assert!(propose_command(error).to_string().contains("'check'"));
    }
}
