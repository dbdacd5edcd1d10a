//! `swarmc agent`: a script takes part in the run that started it.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::Path;

use miette::{IntoDiagnostic, miette};
use serde_json::{Map, Value, json};
use swarmc_runtime::handoff::{ENVELOPE_LIMIT, Flag, FlagKind, Operation};
use swarmc_runtime::{NOTICES, SOCKET, TOKEN, send_operation};

use crate::args;
use crate::exit::Exit;
use crate::terminal;

/// The characters of the fields of an action that are read at most.
const LONGEST: usize = ENVELOPE_LIMIT;

pub(crate) fn exec(args: &args::Agent) -> miette::Result<Exit> {
    let (name, arguments) = match &args.invocation {
        args::Invocation::Operation { spec, given } => {
            let mut arguments = Map::new();
            for (flag, values) in given {
                set_field(&mut arguments, flag.field, read_flag(flag, values)?);
            }
            // What cannot be an operation is not sent.
            Operation::from_call(spec.name, arguments.clone()).map_err(|problem| miette!("{problem}"))?;
            (spec.name, arguments)
        }
        args::Invocation::Call { name, arguments } => {
            let text = read_argument(arguments, LONGEST)?;
            let arguments = serde_json::from_str(&text)
                .map_err(|error| miette!("the fields of `{name}` are no JSON object: {error}"))?;
            (name.as_str(), arguments)
        }
        args::Invocation::Notices { .. } => (NOTICES, Map::new()),
    };
    let (socket, token) = (require_variable(SOCKET)?, require_variable(TOKEN)?);
    let receipt = send_operation(Path::new(&socket), &token.to_string_lossy(), name, arguments)
        .map_err(|problem| miette!("{problem}"))?;
    match &args.invocation {
        args::Invocation::Notices { hook } => terminal::print(render_notices(&receipt, *hook))?,
        _ => terminal::print(format!("{receipt}\n"))?,
    }
    Ok(Exit::Done)
}

/// What a receipt holds that others wrote; nothing where they wrote nothing.
fn render_notices(receipt: &Value, hook: bool) -> String {
    match (receipt["notices"].as_str(), hook) {
        (None, _) => String::new(),
        (Some(notices), false) => format!("{notices}\n"),
        (Some(notices), true) => {
            let output = json!({ "hookEventName": "PostToolUse", "additionalContext": notices });
            format!("{}\n", json!({ "hookSpecificOutput": output }))
        }
    }
}

/// What the run that started this process has told it.
pub(crate) fn require_variable(name: &str) -> miette::Result<OsString> {
    std::env::var_os(name).ok_or_else(|| {
        miette!(
            help = "it works in the processes of a task whose pipeline has `edges` from it or to it, and of an agent of a \
                    swarm with a coordinator",
            "{name} is not set: no run has started this process"
        )
    })
}

/// Sets a field of the arguments, or of an object in them: `FIELD.FIELD`.
fn set_field(arguments: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        Some((outer, inner)) => arguments.entry(outer).or_insert_with(|| json!({}))[inner] = value,
        None => _ = arguments.insert(path.to_owned(), value),
    }
}

/// What the values of a flag mean.
fn read_flag(flag: &Flag, values: &[String]) -> miette::Result<Value> {
    let value = values.first().map(String::as_str).unwrap_or_default();
    Ok(match flag.kind {
        FlagKind::Text | FlagKind::Positional | FlagKind::Choice(_) => value.into(),
        FlagKind::Switch(text) => text.into(),
        FlagKind::Input(most) => read_argument(value, most)?.into(),
        FlagKind::ObjectInput(most) => {
            let text = read_argument(value, most)?;
            let object = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
            object.unwrap_or(Value::String(text))
        }
        FlagKind::Count => value.parse::<u64>().into_diagnostic()?.into(),
        FlagKind::Json => {
            serde_json::from_str(value).map_err(|error| miette!("`--{}` is no JSON: {error}", flag.name))?
        }
        FlagKind::Verdict(ok) if value.is_empty() => json!({ "ok": ok }),
        FlagKind::Verdict(ok) => json!({ "ok": ok, "reason": value }),
        FlagKind::Artifacts => values.iter().map(|text| parse_artifact(text)).collect(),
        FlagKind::Pairs => values.iter().filter_map(|text| text.split_once('=')).map(read_pair).collect(),
    })
}

/// A pair, whose value is a number where it can be one.
fn read_pair((name, text): (&str, &str)) -> (String, Value) {
    let number = serde_json::from_str::<Value>(text).ok().filter(Value::is_number);
    (name.to_owned(), number.unwrap_or_else(|| text.into()))
}

/// An argument, or for `-` what stands on standard input: so many characters, and one more, as the run says what is too
/// long.
fn read_argument(argument: &str, most: usize) -> miette::Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    // One character may take four bytes.
    std::io::stdin().lock().take(most as u64 * 4 + 1).read_to_string(&mut text).into_diagnostic()?;
    Ok(text.trim_end().to_owned())
}

/// `REF`, or `TYPE=REF`.
fn parse_artifact(text: &str) -> Value {
    let is_kind = |kind: &str| !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase());
    match text.split_once('=').filter(|(kind, _)| is_kind(kind)) {
        Some((kind, reference)) => json!({ "type": kind, "ref": reference }),
        None => {
            let stored = text.strip_prefix("artifact://").and_then(|rest| rest.split_once('/'));
            let kind = stored.map_or("file", |(kind, _)| kind);
            json!({ "type": kind, "ref": text })
        }
    }
}
