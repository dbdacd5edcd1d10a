//! Writes a row of the run report in words, and sums up its usage.

use swarmc_runtime::{Failure, SkipReason, Status, Usage};

use crate::units::format_number;

/// The sum of two usages; what is unknown in one of them stays unknown only where nothing is known.
pub(super) fn add_usage(a: Option<Usage>, b: Option<Usage>) -> Option<Usage> {
    let (Some(a), Some(b)) = (a, b) else { return a.or(b) };
    Some(Usage {
        input: a.input.saturating_add(b.input),
        output: a.output.saturating_add(b.output),
        cache_read: a.cache_read.saturating_add(b.cache_read),
        cache_write: a.cache_write.saturating_add(b.cache_write),
        cost: a.cost.zip(b.cost).map(|(a, b)| a + b),
        at_least: a.at_least || b.at_least,
    })
}

/// Tokens and cost in a few words; of some of the turns the cost may not be known.
pub(super) fn format_usage(usage: &Usage, is_part: bool) -> String {
    let all = usage.input.saturating_add(usage.output);
    let at_least = if usage.at_least { "at least " } else { "" };
    let tokens = if all > 0 { format!("{at_least}{} tokens", format_number(all)) } else { String::new() };
    let cost = usage.cost.filter(|cost| *cost > 0.0).map(|cost| match is_part || usage.at_least {
        true => format!("${cost:.4} or more"),
        false => format!("${cost:.4}"),
    });
    [Some(tokens).filter(|tokens| !tokens.is_empty()), cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What turns used that were not taken again: tokens and money; empty where that is not known.
pub fn describe_saving(saved: &[Usage]) -> String {
    let is_part = saved.iter().any(|usage| usage.cost.is_none());
    let total = saved.iter().copied().reduce(|one, other| {
        let cost = one.cost.into_iter().chain(other.cost).reduce(|a, b| a + b);
        Usage { cost, ..add_usage(Some(one), Some(other)).unwrap_or_default() }
    });
    total.map(|total| format_usage(&total, is_part)).unwrap_or_default()
}

/// Why an attempt failed, in a few words.
pub(super) fn describe_failure(failure: &Failure, exit: Option<i32>) -> String {
    match (failure, exit) {
        (Failure::Exit, Some(code)) if code > 128 => format!("exit {code} (signal {})", code - 128),
        (Failure::Exit, Some(code)) => format!("exit {code}"),
        (failure, _) => failure.to_string(),
    }
}

/// Why a step was skipped.
pub(super) fn describe_skip(reason: &SkipReason) -> String {
    match reason {
        SkipReason::Need { step, status } => match status {
            Status::Skipped => format!("`{step}` was skipped"),
            status => format!("`{step}` {}", status.as_str()),
        },
        SkipReason::Join => "none of its dependencies holds".to_owned(),
        SkipReason::When => "its `when` is false".to_owned(),
        SkipReason::Unspawned => "no task spawned it".to_owned(),
        SkipReason::OnFailure => "it failed, with `on-failure skip`".to_owned(),
        SkipReason::Stopped { by } => format!("`{by}` ended the pipeline"),
        SkipReason::FailFast => "another step failed (`fail-fast`)".to_owned(),
        SkipReason::OverBudget => "the budget was spent".to_owned(),
        SkipReason::Ended { by } => format!("`{by}` failed, which nothing handles"),
    }
}
