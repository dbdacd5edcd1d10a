//! Operations in the lines of an answer: sent to the driver, which says what it refuses, and taken out of the answer.

use tokio::sync::oneshot;

use super::Job;
use super::pool::Services;
use crate::io::input::Input;
use crate::io::process::keep_last;
use crate::io::recording::Answer;
use crate::types::handoff::{OperationLine, read_operation_lines};

/// The bytes of a refused line, and of why, that its agent is shown; and how many of those lines: `swarmc plan` counts
/// no more than 4,096 bytes for what is wrong with an answer.
const SHOWN_LINE: usize = 200;
const SHOWN_WHY: usize = 300;
const SHOWN: usize = 7;

/// Sends what the lines of an answer ask for, and returns those that were refused, each with why. `notes` says whether
/// people hear of lines that are not taken as operations.
pub(super) async fn send_operations<'t>(
    job: &Job,
    answer: &Answer,
    told: impl IntoIterator<Item = &'t str>,
    notes: bool,
    services: &Services,
) -> Vec<String> {
    if answer.failure.is_some() {
        return Vec::new();
    }
    let said = answer.read_text();
    let lines = read_operation_lines(&said, told);
    let (step, attempt) = (&job.step, job.attempt);
    // All are sent before the first is waited for: the driver makes them durable together.
    let send = |OperationLine { line, operation }: OperationLine<'_>| {
        let (hearer, heard) = oneshot::channel();
        services.report(Input::Said { step: step.clone(), attempt, operation, hearer: Some(hearer) });
        (cut_text(line, SHOWN_LINE), heard)
    };
    let sent: Vec<_> = lines.operations.into_iter().map(send).collect();
    for note in lines.notes.into_iter().filter(|_| notes) {
        services.report(Input::Said { step: step.clone(), attempt, operation: Err(note), hearer: None });
    }
    let mut refused = Vec::new();
    for (line, heard) in sent {
        // Where no answer comes any more the attempt is about to be ended.
        if let Ok(Err(problem)) = heard.await {
            refused.push(format!("`{line}`: {}", cut_text(&problem, SHOWN_WHY)));
        }
    }
    refused.truncate(SHOWN);
    refused
}

fn cut_text(text: &str, most: usize) -> String {
    let cut = if text.len() > most { "…" } else { "" };
    format!("{}{cut}", &text[..text.floor_char_boundary(most)])
}

/// The answer without the lines that are operations; of its text, the last `max_output` bytes.
pub(super) fn without_operations<'t>(
    mut answer: Answer,
    told: impl IntoIterator<Item = &'t str>,
    max_output: usize,
) -> Answer {
    let said = answer.read_text();
    let lines = read_operation_lines(&said, told);
    if answer.failure.is_some() || lines.operations.is_empty() {
        return answer;
    }
    let mut rest = lines.rest;
    answer.whole = answer.whole.is_some().then(|| rest.clone());
    keep_last(&mut rest, max_output);
    answer.text = Some(rest.into_bytes());
    answer
}
