//! What waits for people, in all runs that go on.

use swarmc_plan::{GateDefault, GateTimeout};
use swarmc_view::documents::{GateField, OpenGate, Version};
use swarmc_view::{FollowedRun, RowState, escape_hidden, format_due, list_choices, now_ms};

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
            waits.extend(list_run_waits(run));
            Ok(())
        });
    }
    reply(&Waits { version: Version, waits })
}

fn list_run_waits(run: &FollowedRun) -> Vec<Wait> {
    let read = |text: &swarmc_runtime::Content| run.folder.read_text(text).ok();
    let gates = run.report.rows.iter().filter(|row| row.state == RowState::Asking).map(|row| {
        let declared = run.report.gates.get(&*row.step.name);
        let message = row.question.as_deref().and_then(read).unwrap_or_default();
        let OpenGate { options, asks, .. } = OpenGate::new(String::new(), declared);
        // A failed step that waits for a decision has waited since its end.
        let since_ms = row.started_ms.max(row.ended_ms);
        Wait {
            run: run.folder.id.clone(),
            kind: WaitKind::Gate,
            key: row.step.to_string(),
            step: run.report.label(&row.step),
            title: format!("gate {}", run.report.label(&row.step)),
            lines: message.lines().map(escape_hidden).collect(),
            choices: options,
            fields: asks.into_iter().collect::<Vec<GateField>>(),
            arguments: false,
            since_ms,
            expiry: declared
                .and_then(|gate| gate.on_timeout.as_ref())
                .map(|timeout| describe_expiry(timeout, since_ms)),
        }
    });
    let requests = run.report.approvals.values().map(|open| Wait {
        run: run.folder.id.clone(),
        kind: WaitKind::Approval,
        key: open.request.id.to_string(),
        step: run.report.label(&open.step),
        title: open.describe(),
        lines: open.detail_lines(read),
        choices: list_choices(&open.request.wants),
        fields: Vec::new(),
        arguments: open.request.wants.takes_arguments(),
        since_ms: open.since,
        expiry: open.describe_expiry(now_ms()),
    });
    gates.chain(requests).collect()
}

fn describe_expiry(timeout: &GateTimeout, since: u64) -> String {
    let what = match &timeout.then {
        GateDefault::Option(option) => format!("`{option}`"),
        GateDefault::Fail => "fails".to_owned(),
    };
    format!("{what} {} by `on-timeout`", format_due(since.saturating_add(timeout.after_ms), now_ms()))
}
