//! The tool servers that an ACP agent connects to by itself, without this run in between.
//!
//! Out: how each is reached. Invariant: only servers that need no control by the run: the agent may use all their
//! tools, no tool needs an approval, and they need no secret, which agents do not receive.

use std::ffi::OsString;
use std::path::PathBuf;

use swarmc_plan::tools::split_tool_name;
use swarmc_plan::{Approval, Permissions};

use super::Toolbox;

/// A tool server, for another client.
#[derive(Clone, Debug)]
pub(crate) struct Handed {
    pub name: String,
    pub way: ServerEndpoint,
}

/// How it is reached.
#[derive(Clone, Debug)]
pub(crate) enum ServerEndpoint {
    /// It is started.
    Process { program: PathBuf, arguments: Vec<String>, environment: Vec<(OsString, OsString)> },
    /// It is at this address.
    Address(String),
}

impl Toolbox {
    /// The servers that an agent with these tools receives; and the others that it may use, with the reason why it does
    /// not receive them.
    pub(crate) fn handed(&self, allow: &[String], permissions: Permissions) -> (Vec<Handed>, Vec<String>) {
        let (mut handed, mut withheld) = (Vec::new(), Vec::new());
        for server in &self.servers {
            let name = server.name.as_str();
            let parts = || allow.iter().filter_map(|listed| split_tool_name(listed, |known| known == name));
            let is_whole = allow.iter().any(|listed| listed == "*") || parts().any(|(_, rest)| rest.is_none());
            if !is_whole && parts().next().is_none() {
                continue;
            }
            let way = match server.way() {
                _ if !is_whole => Err("the agent may use only some of its tools".to_owned()),
                _ if server.is_secret => Err("it needs a secret, which agents do not receive".to_owned()),
                _ if permissions == Permissions::Gated && self.asks_about(name) => {
                    Err("the policy requires approval for its tools".to_owned())
                }
                way => way,
            };
            match way {
                Ok(way) => handed.push(Handed { name: name.to_owned(), way }),
                Err(why) => withheld.push(format!("tool server `{name}` is not passed to the agent: {why}")),
            }
        }
        (handed, withheld)
    }

    /// Whether the policy wants an approval for a tool of a server.
    fn asks_about(&self, server: &str) -> bool {
        let concerns = |name: &str| name == "*" || split_tool_name(name, |known| known == server).is_some();
        self.policy.tools.iter().any(|(name, approval)| concerns(name) && *approval != Approval::Auto)
    }
}
