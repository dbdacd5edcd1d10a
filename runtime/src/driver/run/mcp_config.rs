//! Configures the MCP server of the run in a command-line agent, in the way that its provider declares.
//!
//! In: the environment of an attempt that has a session. Out: further arguments and variables. Invariant: the token is
//! only in variables, which no other user can read, never in an argument of a command or in a file.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde_json::Value;
use swarmc_plan::{MCP_NOTICES, MCP_TOKEN, MCP_URL, McpConfig, McpVariable, Provider};

use crate::io::agent_api::{AgentServer, MCP, SOCKET, TOKEN};
use crate::io::executor::Tools;
use crate::types::digest::digest_bytes;

/// The arguments to add to a provider's command; none if the attempt has no session.
pub(super) fn build_arguments(provider: &Provider, environment: &[(OsString, OsString)]) -> Vec<OsString> {
    match (provider.connection.mcp_config(), find_variable(environment, MCP)) {
        (Some(mcp), Some(url)) => mcp.args.iter().map(|word| OsString::from(word.replace(MCP_URL, url))).collect(),
        _ => Vec::new(),
    }
}

/// The arguments by which a program reads, after each call of a tool, what others wrote to the agent of its turn; none if
/// the attempt has no session.
pub(super) fn build_notice_arguments(provider: &Provider, environment: &[(OsString, OsString)]) -> Vec<OsString> {
    let (Some(mcp), Some(_)) = (provider.connection.mcp_config(), find_variable(environment, SOCKET)) else {
        return Vec::new();
    };
    // The agent may find another swarmc, or none, by its own PATH.
    let program = std::env::current_exe().ok().and_then(|path| Some(path.to_str()?.replace('\'', r"'\''")));
    let command = format!("'{}' agent notices", program.as_deref().unwrap_or("swarmc"));
    let quoted = Value::from(command).to_string();
    mcp.notices.iter().map(|word| OsString::from(word.replace(MCP_NOTICES, quoted.trim_matches('"')))).collect()
}

/// Adds the server's configuration to the environment of an attempt that has a session. Files go into `folder`.
///
/// # Errors
/// A file cannot be written.
pub(super) fn configure_environment(
    provider: &Provider,
    environment: &mut Vec<(OsString, OsString)>,
    folder: &Path,
) -> Result<(), String> {
    let (Some(mcp), Some(url), Some(token)) =
        (provider.connection.mcp_config(), find_variable(environment, MCP), find_variable(environment, TOKEN))
    else {
        return Ok(());
    };
    let (url, token) = (url.to_owned(), token.to_owned());
    for McpVariable { name, text, file } in &mcp.env {
        let text = text.replace(MCP_URL, &url);
        let value = match file {
            true => {
                // Named by its text: agents that start at once must not overwrite what others read.
                let path = folder.join(format!("mcp-{}.json", digest_bytes(text.as_bytes())));
                write_private(&path, &text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
                path.into_os_string()
            }
            // The plan may configure the agent with the same variable: both are to count.
            false => merge_text(find_variable(environment, name), &text.replace(MCP_TOKEN, &token)),
        };
        environment.push((OsString::from(name), value));
    }
    Ok(())
}

/// The MCP server of the run, for an ACP agent; none if the attempt has no session.
pub(super) fn find_run_server(
    provider: &Provider,
    environment: &[(OsString, OsString)],
    agent_server: &AgentServer,
) -> Option<Tools> {
    let [url, token, socket] = [MCP, TOKEN, SOCKET].map(|name| find_variable(environment, name).map(str::to_owned));
    let (url, token, socket) = (url?, token?, socket?);
    let (offers, listed) = agent_server.find_tools(&token)?;
    let is_configured = provider.connection.mcp_config().is_some_and(McpConfig::names_server);
    Some(Tools { url, token, socket, offers, listed, is_configured })
}

/// What a variable holds: the last one of a name is the one that a process sees.
fn find_variable<'e>(environment: &'e [(OsString, OsString)], name: &str) -> Option<&'e str> {
    let mut found = environment.iter().rev().filter(|(known, _)| known == OsStr::new(name));
    found.next()?.1.to_str()
}

/// A text, or where it and what was there are JSON objects, both in one.
fn merge_text(before: Option<&str>, text: &str) -> OsString {
    let object = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    match (before.and_then(object), object(text)) {
        (Some(mut all), Some(more)) => {
            merge_values(&mut all, more);
            OsString::from(all.to_string())
        }
        _ => OsString::from(text),
    }
}

/// Adds the fields of one object to another. It goes no deeper than the JSON that was read.
fn merge_values(all: &mut Value, more: Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (key, value) in more {
                merge_values(all.entry(key).or_insert(Value::Null), value);
            }
        }
        (all, more) => *all = more,
    }
}

/// Writes a file that no other user may read. Its name contains the digest of its text.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use swarmc_plan::Connection;

    use super::*;

    fn provider(mcp: McpConfig) -> Provider {
        let connection = Connection::Exec {
            argv: vec!["agent".to_owned()],
            prompt: swarmc_plan::PromptDelivery::Stdin,
            reads: swarmc_plan::Format::Text,
            model_flag: None,
            system_flag: None,
            resume: None,
            schema: None,
            mcp,
        };
        Provider { name: "p".to_owned(), connection, ..Provider::default() }
    }

    fn invited() -> Vec<(OsString, OsString)> {
        let pairs =
            [("CONFIG", r#"{"model":"m","mcp":{"own":{"n":1}}}"#), (MCP, "http://h/agents/n/mcp"), (TOKEN, "t0")];
        pairs.map(|(name, value)| (OsString::from(name), OsString::from(value))).to_vec()
    }

    fn variable(name: &str, text: &str, file: bool) -> McpVariable {
        McpVariable { name: name.to_owned(), text: text.to_owned(), file }
    }

    #[test]
    fn words_hold_the_address_and_never_the_token() {
        let args = ["-c", "url={url} token={token}"].map(str::to_owned).to_vec();
        let provider = provider(McpConfig { args, ..McpConfig::default() });
        assert_eq!(build_arguments(&provider, &invited()), ["-c", "url=http://h/agents/n/mcp token={token}"]);
        assert_eq!(build_arguments(&provider, &[]), Vec::<OsString>::new());
    }

    #[test]
    fn a_variable_keeps_what_it_holds_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"mcp":{"swarm":{"url":"{url}","token":"{token}"}}}"#;
        let env = vec![variable("CONFIG", text, false), variable("NEW", "{url}", false)];
        let provider = provider(McpConfig { env, ..McpConfig::default() });
        let mut environment = invited();
        configure_environment(&provider, &mut environment, folder.path()).unwrap();
        let config: Value = serde_json::from_str(find_variable(&environment, "CONFIG").unwrap()).unwrap();
        assert_eq!(config["model"], "m");
        assert_eq!(config["mcp"]["own"]["n"], 1);
        assert_eq!(config["mcp"]["swarm"]["url"], "http://h/agents/n/mcp");
        assert_eq!(config["mcp"]["swarm"]["token"], "t0");
        assert_eq!(find_variable(&environment, "NEW"), Some("http://h/agents/n/mcp"));
        // An attempt without a session gets no configuration.
        let mut others = vec![(OsString::from("CONFIG"), OsString::from("{}"))];
        configure_environment(&provider, &mut others, folder.path()).unwrap();
        assert_eq!(others.len(), 1);
    }

    #[test]
    fn a_file_is_ours_alone_and_holds_no_token() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let env = vec![variable("SETTINGS", r#"{"url":"{url}","token":"{token}"}"#, true)];
        let provider = provider(McpConfig { env, ..McpConfig::default() });
        let mut environment = invited();
        configure_environment(&provider, &mut environment, folder.path()).unwrap();
        let path = Path::new(find_variable(&environment, "SETTINGS").unwrap());
        assert_eq!(fs::read_to_string(path).unwrap(), r#"{"url":"http://h/agents/n/mcp","token":"{token}"}"#);
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
