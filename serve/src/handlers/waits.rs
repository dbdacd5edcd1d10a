//! What waits for people, in all runs that go on.

use swarmc_view::documents::Version;
use swarmc_view::{Question, list_questions, now_ms};

use super::reply;
use crate::Service;
use crate::documents::{Wait, WaitKind, Waits};
use crate::problem::Problem;
use crate::routes::{Call, Reply};

pub(crate) fn list_waits(service: &Service, _: &Call) -> Result<Reply, Problem> {
    let folders = service.home.list_folders().map_err(|error| Problem::internal(error.to_string()))?;
    let mut waits = Vec::new();
    for folder in folders.into_iter().filter(|folder| folder.is_running()) {
        // One that cannot be read shows why in the list of runs.
        let _ = service.store.with_run(&service.home, &folder.id, |run| {
            let questions = list_questions(&run.report, &run.folder, now_ms()).into_iter();
            waits.extend(questions.map(|question| build_wait(&folder.id, question)));
            Ok(())
        });
    }
    reply(&Waits { version: Version, waits })
}

fn build_wait(run: &str, question: Question) -> Wait {
    let Question { key, step, request, lines, choices, fields, takes_arguments, since_ms, expiry } = question;
    Wait {
        run: run.to_owned(),
        kind: if request.is_some() { WaitKind::Approval } else { WaitKind::Gate },
        key,
        title: request.unwrap_or_else(|| format!("gate {step}")),
        step,
        lines,
        choices,
        fields,
        arguments: takes_arguments,
        since_ms,
        expiry,
    }
}
