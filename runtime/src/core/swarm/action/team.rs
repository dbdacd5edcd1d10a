//! The actions of a team with a coordinator: each is an operation ([`TeamOp`]) that the core carries out.
//!
//! What they hold is bounded here, so that one event holds a whole operation.

use std::sync::Arc;

use serde_json::{Value, json};
use swarmc_plan::PlanItem;

use super::merge::{find_name, name_or_null};
use super::read::{Step, check_length, check_size, quote_word};
use super::turn_options::{TurnOptions, closed_object, text_schema};
use super::{ActionSpec, Fields, Need, PAYLOAD_BYTES, RawAction};
use crate::core::swarm::plan::{OPS, OPS_BYTES};
use crate::types::event::Content;
use crate::types::team::{PlanOp, TeamOp};

const ITEM_CHARS: usize = PlanItem::TEXT_CHARS;
const ITEM_PARTS: usize = PlanItem::PARTS;
/// The characters of a reason or a summary at most.
pub(super) const WHY_CHARS: usize = 500;
/// The characters of the task of a spawned agent at most, and of a message to many.
const LONG_CHARS: usize = 4_000;
/// The characters of what an agent is about to do at most, and of a pattern of paths.
const INTENT_CHARS: usize = 120;
const PATH_CHARS: usize = 200;

pub(super) const PLAN_UPDATE: ActionSpec = ActionSpec {
    name: "plan_update",
    does: "Change the plan, or make the first one. Ops: add, edit, remove, link, unlink. Everybody sees the new version.",
    json: r#"{"action": "plan_update", "ops": [{"op": "add", "item": "api", "text": "...", "owner": "NAME", "depends_on": []}], "why": "..."}"#,
    needs: Need::Lead,
    forms: |_| vec![vec![ops_schema(), why_schema("Why the plan changes.")]],
    read: |step| {
        Ok(RawAction::Operate(TeamOp::PlanUpdate { ops: read_ops(step)?, why: step.text_field("why", WHY_CHARS)? }))
    },
};

pub(super) const PLAN_DECIDE: ActionSpec = ActionSpec {
    name: "plan_decide",
    does: "Accept or reject a proposal for the plan, by its number.",
    json: r#"{"action": "plan_decide", "proposal": 1, "approve": true, "because": "..."}"#,
    needs: Need::Lead,
    forms: |_| {
        vec![vec![
            ("proposal", json!({ "type": "integer", "description": "Its number." })),
            ("approve", json!({ "type": "boolean" })),
            ("because", text_schema("Why.", WHY_CHARS)),
        ]]
    },
    read: |step| {
        let proposal = step.number_field("proposal")?;
        let approve = step.bool_field("approve")?;
        Ok(RawAction::Operate(TeamOp::PlanDecide {
            proposal,
            approve,
            because: step.text_field("because", WHY_CHARS)?,
        }))
    },
};

pub(super) const ASSIGN: ActionSpec = ActionSpec {
    name: "assign",
    does: "Give an item to an agent; an item that was blocked or has failed begins anew.",
    json: r#"{"action": "assign", "item": "api", "to": "NAME"}"#,
    needs: Need::Lead,
    forms: |_| vec![vec![item_schema(), ("to", text_schema("The agent.", super::RECEIVER_CHARS))]],
    read: |step| {
        let (to, item) = (find_name(step, "to")?, step.ident_field("item")?.into());
        Ok(RawAction::Operate(TeamOp::Assign { item, to }))
    },
};

pub(super) const SPAWN_AGENT: ActionSpec = ActionSpec {
    name: "spawn_agent",
    does: "Add an agent to the team, with a task and items of the plan; `replaces` names an ended agent whose items it takes, `worktree` where it works.",
    json: r#"{"action": "spawn_agent", "plays": "AGENT", "name": "NAME", "task": "...", "items": ["api"], "replaces": null, "worktree": null}"#,
    needs: Need::Spawns,
    forms: |options| {
        vec![vec![
            ("plays", json!({ "type": "string", "description": "What it plays.", "enum": options.spawns })),
            ("name", name_or_null("Its name.")),
            ("task", text_schema("What it is to do.", LONG_CHARS)),
            ("items", names_schema("The items of the plan that it owns.")),
            ("replaces", name_or_null("The ended agent.")),
            ("worktree", name_or_null("Where it works.")),
        ]]
    },
    read: |step| {
        Ok(RawAction::Operate(TeamOp::SpawnAgent {
            plays: step.ident_field("plays")?.into(),
            name: find_name(step, "name")?,
            task: Content::Text(step.text_field("task", LONG_CHARS)?),
            items: step.idents_field("items", ITEM_PARTS)?.into_iter().map(Into::into).collect(),
            replaces: find_name(step, "replaces")?,
            worktree: find_name(step, "worktree")?,
        }))
    },
};

pub(super) const STOP_AGENT: ActionSpec = ActionSpec {
    name: "stop_agent",
    does: "End an agent of the team; the items that it had begun are open again.",
    json: r#"{"action": "stop_agent", "agent": "NAME", "why": "..."}"#,
    needs: Need::Lead,
    forms: |_| vec![vec![("agent", text_schema("Its name.", super::RECEIVER_CHARS)), why_schema("Why.")]],
    read: |step| {
        let agent = step.ident_field("agent")?.into();
        Ok(RawAction::Operate(TeamOp::StopAgent { agent, why: step.text_field("why", WHY_CHARS)? }))
    },
};

pub(super) const TELL_USER: ActionSpec = ActionSpec {
    name: "tell_user",
    does: "Tell the person who runs this something, now.",
    json: r#"{"action": "tell_user", "message": "..."}"#,
    needs: Need::Lead,
    forms: |_| vec![vec![message_schema()]],
    read: |step| Ok(RawAction::Operate(TeamOp::TellUser { message: read_message(step)? })),
};

pub(super) const PLAN_PROPOSE: ActionSpec = ActionSpec {
    name: "plan_propose",
    does: "Propose a change of the plan to the coordinator, who decides. Ops: add, edit, remove, link, unlink.",
    json: r#"{"action": "plan_propose", "ops": [{"op": "add", "item": "docs", "text": "..."}], "why": "..."}"#,
    needs: Need::Follow,
    forms: |_| vec![vec![ops_schema(), why_schema("Why the plan should change.")]],
    read: |step| {
        Ok(RawAction::Operate(TeamOp::PlanPropose { ops: read_ops(step)?, why: step.text_field("why", WHY_CHARS)? }))
    },
};

pub(super) const ITEM_DONE: ActionSpec = ActionSpec {
    name: "item_done",
    does: "Say that your item is done: what came of it, which files, what you did not check.",
    json: r#"{"action": "item_done", "item": "api", "summary": "..."}"#,
    needs: Need::Team,
    forms: |_| vec![vec![item_schema(), ("summary", text_schema("What came of it.", WHY_CHARS))]],
    read: |step| {
        let (item, summary) = read_report(step, "summary")?;
        Ok(RawAction::Operate(TeamOp::ItemDone { item, summary }))
    },
};

pub(super) const ITEM_BLOCKED: ActionSpec = ActionSpec {
    name: "item_blocked",
    does: "Say that you cannot go on with your item, and what you wait for.",
    json: r#"{"action": "item_blocked", "item": "api", "why": "..."}"#,
    needs: Need::Team,
    forms: |_| vec![vec![item_schema(), why_schema("What you wait for.")]],
    read: |step| {
        let (item, why) = read_report(step, "why")?;
        Ok(RawAction::Operate(TeamOp::ItemBlocked { item, why }))
    },
};

pub(super) const ITEM_FAILED: ActionSpec = ActionSpec {
    name: "item_failed",
    does: "Give your item up; the coordinator decides what follows.",
    json: r#"{"action": "item_failed", "item": "api", "why": "..."}"#,
    needs: Need::Team,
    forms: |_| vec![vec![item_schema(), why_schema("Why it cannot be done.")]],
    read: |step| {
        let (item, why) = read_report(step, "why")?;
        Ok(RawAction::Operate(TeamOp::ItemFailed { item, why }))
    },
};

pub(super) const ITEM_CHECKPOINT: ActionSpec = ActionSpec {
    name: "item_checkpoint",
    does: "Say that the next checkpoint of your item is reached.",
    json: r#"{"action": "item_checkpoint", "item": "api"}"#,
    needs: Need::Team,
    forms: |_| vec![vec![item_schema()]],
    read: |step| Ok(RawAction::Operate(TeamOp::ItemCheckpoint { item: step.ident_field("item")?.into() })),
};

pub(super) const BROADCAST: ActionSpec = ActionSpec {
    name: "broadcast",
    does: "Write to everybody in the team; they read it in their next turns.",
    json: r#"{"action": "broadcast", "message": "..."}"#,
    needs: Need::Team,
    forms: |_| vec![vec![message_schema()]],
    read: |step| Ok(RawAction::Operate(TeamOp::Post { channel: None, message: read_message(step)? })),
};

pub(super) const DECLARE_INTENT: ActionSpec = ActionSpec {
    name: "declare_intent",
    does: "Say in a few words what you are about to change, with patterns of the paths, so that others can tell you of theirs.",
    json: r#"{"action": "declare_intent", "text": "...", "paths": ["src/parse/**"]}"#,
    needs: Need::Team,
    forms: |_| {
        let path = json!({ "type": "string", "maxLength": PATH_CHARS });
        let paths =
            json!({ "type": "array", "description": "Patterns of the paths.", "items": path, "maxItems": ITEM_PARTS });
        vec![vec![("text", text_schema("What you are about to do.", INTENT_CHARS)), ("paths", paths)]]
    },
    read: |step| {
        let paths = step.texts_field("paths", ITEM_PARTS, PATH_CHARS)?;
        Ok(RawAction::Operate(TeamOp::DeclareIntent { text: step.text_field("text", INTENT_CHARS)?, paths }))
    },
};

pub(super) const CHANNEL_SEND: ActionSpec = ActionSpec {
    name: "channel_send",
    does: "Write to everybody in a channel of yours.",
    json: r#"{"action": "channel_send", "channel": "NAME", "message": "..."}"#,
    needs: Need::Channels,
    forms: |options| vec![vec![channel_schema(options), message_schema()]],
    read: |step| {
        let channel = Some(step.ident_field("channel")?.into());
        Ok(RawAction::Operate(TeamOp::Post { channel, message: read_message(step)? }))
    },
};

pub(super) const CHANNEL_JOIN: ActionSpec = ActionSpec {
    name: "channel_join",
    does: "Take part in an open channel.",
    json: r#"{"action": "channel_join", "channel": "NAME"}"#,
    needs: Need::Channels,
    forms: |options| vec![vec![channel_schema(options)]],
    read: |step| Ok(RawAction::Operate(TeamOp::JoinChannel { channel: step.ident_field("channel")?.into() })),
};

pub(super) const CHANNEL_LEAVE: ActionSpec = ActionSpec {
    name: "channel_leave",
    does: "Take part in a channel no longer.",
    json: r#"{"action": "channel_leave", "channel": "NAME"}"#,
    needs: Need::Channels,
    forms: |options| vec![vec![channel_schema(options)]],
    read: |step| Ok(RawAction::Operate(TeamOp::LeaveChannel { channel: step.ident_field("channel")?.into() })),
};

fn item_schema() -> (&'static str, Value) {
    ("item", text_schema("The item.", super::RECEIVER_CHARS))
}

fn why_schema(what: &str) -> (&'static str, Value) {
    ("why", text_schema(what, WHY_CHARS))
}

fn message_schema() -> (&'static str, Value) {
    ("message", text_schema("What you say.", super::MESSAGE_CHARS))
}

fn channel_schema(options: &TurnOptions<'_>) -> (&'static str, Value) {
    ("channel", json!({ "type": "string", "description": "The channel.", "enum": options.channels }))
}

pub(super) fn names_schema(what: &str) -> Value {
    let name = json!({ "type": "string", "maxLength": super::RECEIVER_CHARS });
    json!({ "type": "array", "description": what, "items": name, "maxItems": ITEM_PARTS })
}

/// The changes of a plan, each as an object that a strict mode takes: every field is required, null is left out.
fn ops_schema() -> (&'static str, Value) {
    let or_null = |schema: Value| json!({ "anyOf": [schema, { "type": "null" }] });
    let op = |name: &str, mut fields: Fields| {
        let item = ("item", text_schema("The item: a short name in small letters.", super::RECEIVER_CHARS));
        fields.splice(0..0, [("op", json!({ "type": "string", "enum": [name] })), item]);
        closed_object(fields)
    };
    let text = || text_schema("What is to be done.", ITEM_CHARS);
    let priority = || or_null(json!({ "type": "string", "enum": ["low", "normal", "high"] }));
    let texts = |what: &str| {
        let text = json!({ "type": "string", "maxLength": ITEM_CHARS });
        or_null(json!({ "type": "array", "description": what, "items": text, "maxItems": ITEM_PARTS }))
    };
    let on = || ("on", text_schema("The item that must be done first.", super::RECEIVER_CHARS));
    let parts = || {
        vec![
            ("priority", priority()),
            ("checkpoints", texts("What is to be reached on the way.")),
            ("scope", texts("Patterns of the paths that it touches.")),
        ]
    };
    let mut add: Fields = vec![
        ("text", text()),
        ("owner", or_null(text_schema("The agent that does it.", super::RECEIVER_CHARS))),
        ("depends_on", names_schema("The items that must be done first.")),
    ];
    add.extend(parts());
    let mut edit: Fields = vec![("text", or_null(text()))];
    edit.extend(parts());
    let ops =
        [op("add", add), op("edit", edit), op("remove", Vec::new()), op("link", vec![on()]), op("unlink", vec![on()])];
    let list =
        json!({ "type": "array", "description": "The changes, in order.", "items": { "anyOf": ops }, "maxItems": OPS });
    ("ops", list)
}

/// An item, and what its owner says of it.
fn read_report(step: &Step, key: &str) -> Result<(Arc<str>, String), String> {
    Ok((step.ident_field("item")?.into(), step.text_field(key, WHY_CHARS)?))
}

/// A message to many, as JSON: `{"message": "…"}`.
fn read_message(step: &Step) -> Result<Content, String> {
    let message = step.text_field("message", LONG_CHARS)?;
    let payload = json!({ "message": message });
    check_size("message", &payload, PAYLOAD_BYTES)?;
    Ok(Content::Text(payload.to_string()))
}

/// The changes of a plan.
fn read_ops(step: &Step) -> Result<Vec<PlanOp>, String> {
    let key = "ops";
    let value = step.list_field(key)?;
    if value.len() > OPS {
        return Err(format!("`{key}` has {} changes and may have {OPS}: make several updates", value.len()));
    }
    let mut ops = Vec::new();
    for (position, value) in value.iter().enumerate() {
        let op = read_op(value).map_err(|why| format!("change {} of `{key}`: {why}", position + 1))?;
        ops.push(op);
    }
    check_size(key, &json!(ops), OPS_BYTES)?;
    Ok(ops)
}

fn read_op(value: &Value) -> Result<PlanOp, String> {
    let Value::Object(fields) = value else { return Err("it is no JSON object".to_owned()) };
    // A field that is null counts as left out, as strict modes write all of them.
    let written: serde_json::Map<String, Value> =
        fields.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), value.clone())).collect();
    let op: PlanOp = serde_json::from_value(Value::Object(written)).map_err(|error| {
        let words = error.to_string();
        format!("{}; write {}", quote_word(&words), r#"{"op": "add", "item": "NAME", "text": "..."}"#)
    })?;
    let mut names = vec![op.item()];
    match &op {
        PlanOp::Add { text, owner, depends_on, checkpoints, scope, .. } => {
            names.extend(owner);
            names.extend(depends_on);
            check_count("depends_on", depends_on.len())?;
            check_texts(Some(text), Some(checkpoints), Some(scope))?;
        }
        PlanOp::Edit { text, checkpoints, scope, .. } => {
            check_texts(text.as_ref(), checkpoints.as_ref(), scope.as_ref())?;
        }
        PlanOp::Link { on, .. } | PlanOp::Unlink { on, .. } => names.push(on),
        PlanOp::Remove { .. } => {}
    }
    names.into_iter().try_for_each(|name| check_ident(name))?;
    Ok(op)
}

fn check_texts(
    text: Option<&String>,
    checkpoints: Option<&Vec<String>>,
    scope: Option<&Vec<String>>,
) -> Result<(), String> {
    text.map_or(Ok(()), |text| match text.trim().is_empty() {
        true => Err("`text` is empty".to_owned()),
        false => check_length("text", text, ITEM_CHARS),
    })?;
    for (key, list) in [("checkpoints", checkpoints), ("scope", scope)] {
        let Some(list) = list else { continue };
        check_count(key, list.len())?;
        list.iter().try_for_each(|text| check_length(key, text, ITEM_CHARS))?;
    }
    Ok(())
}

fn check_count(key: &str, count: usize) -> Result<(), String> {
    match count > ITEM_PARTS {
        true => Err(format!("`{key}` has {count} entries and may have {ITEM_PARTS}")),
        false => Ok(()),
    }
}

/// Whether a name can be that of an item, an agent or a channel.
pub(super) fn check_ident(name: &str) -> Result<(), String> {
    let fits = |character: char| character.is_alphanumeric() || matches!(character, '-' | '_' | '.');
    match !name.is_empty() && name.chars().count() <= super::RECEIVER_CHARS && name.chars().all(fits) {
        true => Ok(()),
        false => Err(format!("`{}` is no name: use letters, digits, `-`, `_` and `.`", quote_word(name))),
    }
}
