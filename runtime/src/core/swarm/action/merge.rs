//! The actions of worktrees, which Git carries out: the coordinator opens them, and their managers merge them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::read::{Step, check_length, check_size};
use super::team::{WHY_CHARS, names_schema};
use super::turn_options::{closed_object, text_schema};
use super::{ActionSpec, Need, RECEIVER_CHARS, RawAction};
use crate::types::team::{Dropped, TeamOp};

/// The parts that a merge may leave out at most, and the characters of the name of one.
const PARTS: usize = 20;
const PART_CHARS: usize = 300;
/// The characters of the reason for each.
const DROPPED_CHARS: usize = 200;
/// The bytes of all of them at most, as JSON: an event holds them.
const DROPPED_BYTES: usize = 5_000;

pub(super) const WORKTREE_OPEN: ActionSpec = ActionSpec {
    name: "worktree_open",
    does: "Open a Git worktree in which members work apart from the others; its manager merges it, and works on no item. Only where that isolation helps.",
    json: r#"{"action": "worktree_open", "worktree": "parser", "manager": "NAME", "members": ["NAME"], "why": "..."}"#,
    needs: Need::Lead,
    forms: |_| {
        vec![vec![
            ("worktree", text_schema("Its name: a short one in small letters.", RECEIVER_CHARS)),
            ("manager", text_schema("Who merges it.", RECEIVER_CHARS)),
            ("members", names_schema("Who works in it.")),
            ("why", text_schema("Why it is worth it.", WHY_CHARS)),
        ]]
    },
    read: |step| {
        let members = step.idents_field("members", PARTS)?.into_iter().map(Into::into).collect();
        let (worktree, manager) = (step.ident_field("worktree")?.into(), step.ident_field("manager")?.into());
        let why = step.text_field("why", WHY_CHARS)?;
        Ok(RawAction::Operate(TeamOp::WorktreeOpen { worktree, manager, members, why }))
    },
};

pub(super) const WORKTREE_MOVE: ActionSpec = ActionSpec {
    name: "worktree_move",
    does: "Have a member that waits work in another worktree, or with `to` null in the workspace.",
    json: r#"{"action": "worktree_move", "agent": "NAME", "to": "parser"}"#,
    needs: Need::Lead,
    forms: |_| vec![vec![("agent", text_schema("The member.", RECEIVER_CHARS)), ("to", name_or_null("The worktree."))]],
    read: |step| {
        let (agent, to) = (step.ident_field("agent")?.into(), find_name(step, "to")?);
        Ok(RawAction::Operate(TeamOp::WorktreeMove { agent, to }))
    },
};

pub(super) const INTEGRATE: ActionSpec = ActionSpec {
    name: "integrate",
    does: "Merge your worktree. `commit_rest` commits what its members left, with this message; `although_open` says why you merge before their items are done.",
    json: r#"{"action": "integrate", "summary": "...", "commit_rest": null, "although_open": null}"#,
    needs: Need::Manager,
    forms: |_| {
        vec![vec![
            ("summary", text_schema("What is merged.", WHY_CHARS)),
            ("commit_rest", text_or_null("The message of a commit of what is left.")),
            ("although_open", text_or_null("Why it cannot wait.")),
        ]]
    },
    read: |step| {
        let summary = step.text_field("summary", WHY_CHARS)?;
        let (commit_rest, although_open) = (read_text(step, "commit_rest")?, read_text(step, "although_open")?);
        Ok(RawAction::Operate(TeamOp::Integrate { summary, commit_rest, although_open }))
    },
};

pub(super) const INTEGRATE_CONTINUE: ActionSpec = ActionSpec {
    name: "integrate_continue",
    does: "Commit your open merge, once you have resolved it in your working folder. `dropped` names each part of either side that is not in the result.",
    json: r#"{"action": "integrate_continue", "dropped": [{"part": "src/api.rs#2", "why": "..."}]}"#,
    needs: Need::Manager,
    forms: |_| {
        let part = closed_object(vec![
            ("part", text_schema("Its name, as the refusal says it.", PART_CHARS)),
            ("why", text_schema("Why.", DROPPED_CHARS)),
        ]);
        let list = json!({ "type": "array", "description": "What is left out.", "items": part, "maxItems": PARTS });
        vec![vec![("dropped", list)]]
    },
    read: |step| {
        let mut dropped = Vec::new();
        if step.has_value("dropped") {
            for value in step.list_field("dropped")? {
                dropped.push(read_dropped(value)?);
            }
        }
        if dropped.len() > PARTS {
            return Err(format!(
                "`dropped` has {} entries and may have {PARTS}: drop the merge, or keep more",
                dropped.len()
            ));
        }
        check_size("dropped", &json!(dropped), DROPPED_BYTES)?;
        Ok(RawAction::Operate(TeamOp::IntegrateContinue { dropped }))
    },
};

pub(super) const INTEGRATE_ABORT: ActionSpec = ActionSpec {
    name: "integrate_abort",
    does: "Drop your open merge: nothing is merged.",
    json: r#"{"action": "integrate_abort", "why": "..."}"#,
    needs: Need::Manager,
    forms: |_| vec![vec![("why", text_schema("Why.", WHY_CHARS))]],
    read: |step| Ok(RawAction::Operate(TeamOp::IntegrateAbort { why: step.text_field("why", WHY_CHARS)? })),
};

/// A name, or none.
pub(super) fn name_or_null(what: &str) -> Value {
    json!({ "anyOf": [text_schema(what, RECEIVER_CHARS), { "type": "null" }] })
}

/// A name that may be left out.
pub(super) fn find_name(step: &Step, key: &str) -> Result<Option<Arc<str>>, String> {
    Ok(step.has_value(key).then(|| step.ident_field(key)).transpose()?.map(Into::into))
}

fn text_or_null(what: &str) -> Value {
    json!({ "anyOf": [text_schema(what, WHY_CHARS), { "type": "null" }] })
}

fn read_text(step: &Step, key: &str) -> Result<Option<String>, String> {
    step.has_value(key).then(|| step.text_field(key, WHY_CHARS)).transpose()
}

fn read_dropped(value: &Value) -> Result<Dropped, String> {
    let dropped: Dropped = serde_json::from_value(value.clone())
        .map_err(|_| r#"write each entry of `dropped` as {"part": "src/api.rs#2", "why": "..."}"#.to_owned())?;
    check_length("part", &dropped.part, PART_CHARS)?;
    check_length("why", &dropped.why, DROPPED_CHARS)?;
    match dropped.why.trim().is_empty() {
        true => Err(format!("`why` of `{}` is empty: say why it is left out", dropped.part)),
        false => Ok(dropped),
    }
}
