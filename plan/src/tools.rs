//! The tools that come with the runner, and how a list of tools names those of servers.
//!
//! One table for the compiler, which checks the lists of agents, and the runtime, which runs the tools. Names in a
//! list are data of the spec: nothing here is read as a pattern beyond a final `*`.

use crate::{Agent, Capability, Plan, ToolServer};

/// A tool that needs no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its name in specs and for agents.
    pub name: &'static str,
    /// The power that an agent must also have in its `can`.
    pub needs: Option<Capability>,
    /// What it does, for models and for people.
    pub does: &'static str,
}

/// Every tool that comes with the runner.
pub const BUILT_IN: [BuiltIn; 5] = [
    BuiltIn {
        name: "shell",
        needs: Some(Capability::RunCommands),
        does: "Runs a line of `sh` in the working folder, and gives back what it printed and its exit code.",
    },
    BuiltIn { name: "file_read", needs: None, does: "Reads a text file of the working folder, by lines." },
    BuiltIn {
        name: "file_write",
        needs: Some(Capability::WriteFiles),
        does: "Writes a text file in the working folder: replaces what is there, or appends to it. Missing folders are made.",
    },
    BuiltIn {
        name: "file_list",
        needs: None,
        does: "Lists files and folders of the working folder, with the sizes of files.",
    },
    BuiltIn {
        name: "file_search",
        needs: None,
        does: "Finds the lines of files in the working folder that hold a text. The text is taken as it is, not as a pattern.",
    },
];

/// The built-in tool of this name.
pub fn built_in(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|tool| tool.name == name)
}

/// The longest names of servers are tried first, so many parts of a name at most.
const PARTS: usize = 8;

/// The server that a name in a list of tools belongs to, and the rest of the name: none for the whole server.
///
/// `github`, `github.search`, `github:search`, `github/search` and `mcp__github__search` are understood; names of
/// imported servers have points of their own.
pub fn split_tool_name(tool: &str, is_server: impl Fn(&str) -> bool) -> Option<(&str, Option<&str>)> {
    if is_server(tool) {
        return Some((tool, None));
    }
    if let Some(rest) = tool.strip_prefix("mcp__") {
        if is_server(rest) {
            return Some((rest, None));
        }
        return rest
            .split_once("__")
            .filter(|(server, _)| is_server(server))
            .map(|(server, rest)| (server, Some(rest)));
    }
    let ends: Vec<usize> = tool.match_indices(['.', ':', '/']).map(|(at, _)| at).take(PARTS).collect();
    let end = ends.into_iter().rev().find(|&end| is_server(&tool[..end]))?;
    Some((&tool[..end], Some(&tool[end + 1..])))
}

/// The servers whose tools an agent may use, as far as its list says.
pub fn agent_servers<'p>(plan: &'p Plan, agent: &Agent) -> impl Iterator<Item = &'p ToolServer> {
    let is_server = |name: &str| plan.tool_servers.iter().any(|server| server.name == name);
    let listed = agent.tools.iter().flatten();
    let name = |name: &String| split_tool_name(name, is_server).map_or(name.as_str(), |(server, _)| server).to_owned();
    let names: Vec<String> = listed.map(name).collect();
    plan.tool_servers.iter().filter(move |server| names.iter().any(|name| name == "*" || *name == server.name))
}

/// Whether a name of a list, which may end in `*`, means `tool`.
pub fn covers_tool(listed: &str, tool: &str) -> bool {
    match listed.strip_suffix('*') {
        Some(beginning) => tool.starts_with(beginning),
        None => listed == tool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_server_or_of_a_tool_of_it() {
        let is_server = |name: &str| ["github", "lib.web"].contains(&name);
        for (name, found) in [
            ("github", Some(("github", None))),
            ("github.search", Some(("github", Some("search")))),
            ("github:search", Some(("github", Some("search")))),
            ("github/*", Some(("github", Some("*")))),
            ("mcp__github__search_all", Some(("github", Some("search_all")))),
            ("mcp__github", Some(("github", None))),
            ("lib.web", Some(("lib.web", None))),
            ("lib.web.fetch.all", Some(("lib.web", Some("fetch.all")))),
            ("lib.other", None),
            ("git", None),
            ("githubber", None),
            ("Bash(git:*)", None),
            ("", None),
        ] {
            assert_eq!(split_tool_name(name, is_server), found, "{name}");
        }
    }

    #[test]
    fn only_a_final_star_means_more() {
        assert!(covers_tool("*", "search") && covers_tool("sea*", "search") && covers_tool("search", "search"));
        assert!(!covers_tool("s*h", "search") && !covers_tool("sea", "search") && !covers_tool("search", "Search"));
    }
}
