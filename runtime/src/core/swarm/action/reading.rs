//! The actions by which an agent of a team reads what others did.

use super::merge::{find_name, name_or_null};
use super::turn_options::text_schema;
use super::{ActionSpec, Need, RECEIVER_CHARS, RawAction};
use crate::types::team::{TeamOp, TeamReading};

pub(super) const PLAN_READ: ActionSpec = ActionSpec {
    name: "plan_read",
    does: "Read the plan as it is now.",
    json: r#"{"action": "plan_read"}"#,
    needs: Need::Team,
    forms: |_| vec![Vec::new()],
    read: |_| Ok(RawAction::Operate(TeamOp::Read { what: TeamReading::Plan })),
};

pub(super) const READ_SUMMARY: ActionSpec = ActionSpec {
    name: "read_summary",
    does: "Read in short what happened last, in the whole team or with one agent.",
    json: r#"{"action": "read_summary", "agent": null}"#,
    needs: Need::Team,
    forms: |_| vec![vec![("agent", name_or_null("The agent."))]],
    read: |step| Ok(RawAction::Operate(TeamOp::Read { what: TeamReading::Summary { of: find_name(step, "agent")? } })),
};

pub(super) const READ_TRANSCRIPT: ActionSpec = ActionSpec {
    name: TeamReading::TRANSCRIPT,
    does: "Read all that another agent did, turn by turn. It is long, and you may do so a few times only.",
    json: r#"{"action": "read_transcript", "agent": "NAME"}"#,
    needs: Need::Team,
    forms: |_| vec![vec![("agent", text_schema("The agent.", RECEIVER_CHARS))]],
    read: |step| {
        let of = step.ident_field("agent")?.into();
        Ok(RawAction::Operate(TeamOp::Read { what: TeamReading::Transcript { of } }))
    },
};
