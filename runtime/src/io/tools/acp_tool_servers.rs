//! The tool servers that an ACP agent connects to by itself, without this run in between.
//!
//! Out: how each is reached. Invariant: only servers that need no control by the run: the agent may use all their
//! tools, no tool needs an approval, and they need no secret, which agents do not receive.

use std::ffi::OsString;
use std::path::PathBuf;

use swarmc_plan::tools::split;
use swarmc_plan::{Approval, Permissions};

use super::Toolbox;

/// A tool server, for another client.
#[derive(Clone, Debug)]
pub(crate) struct Handed {
    pub name: String,
    pub way: Way,
}

/// How it is reached.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// It is started.
    Process { program: PathBuf, arguments: Vec<String>, environment: Vec<(OsString, OsString)> },
    /// It is at this address.
    Address(String),
}

impl Toolbox {
    /// The servers that an agent with these tools may be told of; beside them, which others it may use, and why it is not
    /// told of those.
    pub(crate) fn handed(&self, allow: &[String], permissions: Permissions) -> (Vec<Handed>, Vec<String>) {
        let (mut handed, mut withheld) = (Vec::new(), Vec::new());
        for server in &self.servers {
            let name = server.name.as_str();
            let parts = || allow.iter().filter_map(|listed| split(listed, |known| known == name));
            let is_whole = allow.iter().any(|listed| listed == "*") || parts().any(|(_, rest)| rest.is_none());
            if !is_whole && parts().next().is_none() {
                continue;
            }
            let way = match server.way() {
                _ if !is_whole => Err("it may use some of its tools only".to_owned()),
                _ if server.is_secret => Err("it needs a secret, and agents are told none".to_owned()),
                _ if permissions == Permissions::Gated && self.asks_about(name) => {
                    Err("the policy wants somebody to be asked about its tools".to_owned())
                }
                way => way,
            };
            match way {
                Ok(way) => handed.push(Handed { name: name.to_owned(), way }),
                Err(why) => withheld.push(format!("tool server `{name}` is not handed over: {why}")),
            }
        }
        (handed, withheld)
    }

    /// Whether the policy wants an approval for a tool of a server.
    fn asks_about(&self, server: &str) -> bool {
        let concerns = |name: &str| name == "*" || split(name, |known| known == server).is_some();
        self.policy.tools.iter().any(|(name, approval)| concerns(name) && *approval != Approval::Auto)
    }
}
