//! Resolves the names of tools: one that comes with the runner, or `SERVER.TOOL`; and which tools a grant allows.
//!
//! Providers that take plainer names get them from `llm`, which also reads them back.

use std::collections::BTreeMap;

use swarmc_plan::tools::{BuiltIn, built_in, covers_tool, split_tool_name};
use swarmc_plan::{Approval, Capability};

use super::Grant;

/// What a name refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A tool that comes with the runner.
    BuiltIn(&'static BuiltIn),
    /// A tool of the server at this position, by its name there.
    Server(usize, String),
}

/// What a name in a call refers to.
pub(super) fn find(tool: &str, servers: &[&str]) -> Option<Named> {
    if let Some((server, Some(rest))) = split_tool_name(tool, |name| servers.contains(&name)) {
        let position = servers.iter().position(|name| *name == server)?;
        return Some(Named::Server(position, rest.to_owned()));
    }
    built_in(tool).map(Named::BuiltIn)
}

/// What the policy says of a tool of a server: the more of its name it says, the more it counts.
pub(super) fn said(server: &str, tool: &str, policy: &BTreeMap<String, Approval>) -> Option<Approval> {
    let said = policy.iter().filter_map(|(name, approval)| match split_tool_name(name, |name| name == server)? {
        (_, None) => Some((0, approval)),
        (_, Some(rest)) => covers_tool(rest, tool).then_some((rest.len(), approval)),
    });
    said.max_by_key(|(length, _)| *length).map(|(_, approval)| *approval)
}

/// What a grant allows.
pub(super) struct Allowed<'g> {
    grant: &'g Grant,
    /// Whether everything is.
    everything: bool,
    /// By server: the names of its tools, `*` for all.
    servers: Vec<Vec<&'g str>>,
}

impl<'g> Allowed<'g> {
    pub(super) fn new(grant: &'g Grant, servers: &[&str]) -> Allowed<'g> {
        let everything = grant.allow.iter().any(|listed| listed == "*");
        let mut by_server: Vec<Vec<&str>> = vec![if everything { vec!["*"] } else { Vec::new() }; servers.len()];
        for listed in &grant.allow {
            let Some((server, rest)) = split_tool_name(listed, |name| servers.contains(&name)) else { continue };
            let Some(position) = servers.iter().position(|name| *name == server) else { continue };
            by_server[position].push(rest.unwrap_or("*"));
        }
        Allowed { grant, everything, servers: by_server }
    }

    /// Whether any tool of the server is.
    pub(super) fn server(&self, index: usize) -> bool {
        !self.servers[index].is_empty()
    }

    /// Whether this tool of the server is.
    pub(super) fn tool(&self, index: usize, tool: &str) -> bool {
        self.servers[index].iter().any(|listed| covers_tool(listed, tool))
    }

    /// Whether this built-in tool is; else why not.
    pub(super) fn built_in(&self, tool: &BuiltIn) -> Result<(), String> {
        let name = tool.name;
        if !self.everything && !self.grant.allow.iter().any(|listed| covers_tool(listed, name)) {
            return Err(format!("the tool `{name}` is not yours to use"));
        }
        match tool.needs {
            Some(needed) if !self.grant.can.contains(&needed) => Err(format!(
                "the tool `{name}` is not yours to use: agent `{}` cannot {}",
                self.grant.agent,
                word(needed)
            )),
            _ => Ok(()),
        }
    }
}

fn word(capability: Capability) -> &'static str {
    match capability {
        Capability::WriteFiles => "write files",
        Capability::RunCommands => "run commands",
        Capability::Network => "use the network",
        Capability::PrivateData => "read private data",
        Capability::UntrustedInput => "read text of strangers",
        Capability::Spawn => "start agents",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_found_by_its_name() {
        let servers = ["files", "lib.web", "shell"];
        let of = |index, name: &str| Some(Named::Server(index, name.to_owned()));
        assert_eq!(find("files.read_text", &servers), of(0, "read_text"));
        assert_eq!(find("mcp__files__read_text", &servers), of(0, "read_text"));
        assert_eq!(find("lib.web.fetch", &servers), of(1, "fetch"));
        assert_eq!(find("shell.run", &servers), of(2, "run"));
        assert!(matches!(find("shell", &servers), Some(Named::BuiltIn(tool)) if tool.name == "shell"));
        for unknown in ["files", "", "other.tool", "shel", "files_read"] {
            assert_eq!(find(unknown, &servers), None, "{unknown}");
        }
    }

    #[test]
    fn a_list_of_tools_allows_what_it_names() {
        let grant = |allow: &[&str], can: &[Capability]| Grant {
            allow: allow.iter().map(|name| (*name).to_owned()).collect(),
            can: can.to_vec(),
            ..Grant::default()
        };
        let servers = ["files", "web"];
        let shell = built_in("shell").unwrap();
        let read = built_in("file_read").unwrap();
        let some = grant(&["files.read_*", "web", "file_*", "shell"], &[]);
        let allowed = Allowed::new(&some, &servers);
        assert!(allowed.tool(0, "read_text") && !allowed.tool(0, "write") && allowed.tool(1, "anything"));
        assert!(allowed.built_in(read).is_ok());
        assert!(allowed.built_in(shell).unwrap_err().ends_with("cannot run commands"));
        let none = grant(&[], &[Capability::RunCommands]);
        let allowed = Allowed::new(&none, &servers);
        assert!(!allowed.server(0) && allowed.built_in(shell).is_err() && allowed.built_in(read).is_err());
        let all = grant(&["*"], &[Capability::RunCommands]);
        let allowed = Allowed::new(&all, &servers);
        assert!(allowed.tool(0, "write") && allowed.built_in(shell).is_ok());
    }

    #[test]
    fn the_policy_that_says_most_of_a_name_counts() {
        let policy = |said: &[(&str, Approval)]| said.iter().map(|(name, said)| ((*name).to_owned(), *said)).collect();
        let policy =
            policy(&[("web", Approval::Human), ("web.get", Approval::Auto), ("web.p*", Approval::Coordinator)]);
        assert_eq!(said("web", "post", &policy), Some(Approval::Coordinator));
        assert_eq!(said("web", "get", &policy), Some(Approval::Auto));
        assert_eq!(said("web", "delete", &policy), Some(Approval::Human));
        assert_eq!(said("files", "get", &policy), None);
    }
}
