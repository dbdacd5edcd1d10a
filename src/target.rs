//! Which run the words of `approve`, `logs`, `inspect` and `send` mean.
//!
//! In: the words, in the order of the command line. Out: the run, and the words behind it, which name its steps and agents.
//! Without a run they are about the last one. What the last run has by that name counts before the beginning of an id.

use miette::{IntoDiagnostic, miette};
use swarmc_runtime::{Home, RunError, RunFolder};
use swarmc_view::{Past, did_you_mean, has_step, list_steps, split_agent};

use crate::home::read_past;

/// The run that the words mean, and the words that are not the run.
pub(crate) struct Target {
    pub(crate) folder: RunFolder,
    pub(crate) rest: Vec<String>,
}

/// Takes the run from the front of the words: its id, the beginning of it, or `last`. Without one it is the last run;
/// `names` says whether a word names something of that run, beside its steps and agents.
///
/// # Errors
/// There is no run, or the first word is neither a run nor something of the last one.
pub(crate) fn find_target(
    home: &Home,
    words: &[&Option<String>],
    names: impl Fn(&Past, &str) -> bool,
) -> miette::Result<Target> {
    let mut rest: Vec<String> = words.iter().copied().flatten().cloned().collect();
    let newest = home.list_folders().into_diagnostic()?.into_iter().next();
    let Some(last) = newest else {
        return Err(miette!(help = "start one with `swarmc run SPEC`", "there are no runs"));
    };
    let Some(word) = rest.first() else { return Ok(Target { folder: last, rest }) };
    let found = home.find(word);
    let is_full = |folder: &RunFolder| word == "last" || folder.id == *word;
    let past = match &found {
        Ok(folder) if is_full(folder) => None,
        // A run that cannot be read has no names.
        _ => read_past(&last).ok(),
    };
    if past
        .as_ref()
        .is_some_and(|past| has_step(past, word) || split_agent(past, word).1.is_some() || names(past, word))
    {
        return Ok(Target { folder: last, rest });
    }
    match found {
        Ok(folder) => {
            rest.remove(0);
            Ok(Target { folder, rest })
        }
        Err(error @ RunError::UnknownRun { .. }) => {
            let steps = past.as_ref().map(list_steps).unwrap_or_default();
            let help = did_you_mean(word, steps.iter().map(String::as_str));
            Err(miette!(help = format!("the last run, `{}`, has no step of that name: {help}", last.id), "{error}"))
        }
        Err(error) => Err(error).into_diagnostic(),
    }
}

/// Refuses the words that a command has no use for.
pub(crate) fn refuse_more(rest: &[String], most: usize, usage: &str) -> miette::Result<()> {
    match rest.get(most) {
        Some(word) => Err(miette!(help = usage.to_owned(), "`{word}` is one argument too many")),
        None => Ok(()),
    }
}
