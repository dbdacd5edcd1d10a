//! Everything that an agent may call: the tools that come with the runner, and those of MCP servers.
//!
//! In: who calls what with which arguments. Out: a text for the model, redacted and bounded, or a [`ToolFault`].
//! Invariants: an agent gets no tool that the grant does not name, files stay inside of the grant's folder, every call
//! ends within its time limit, and no process outlives [`Toolbox::close`].

use crate::io::confine::Folder;
use crate::types::chat::ToolFault;
use crate::types::{chat, visible_text};
mod acp_tool_servers;
mod arguments;
mod calls;
mod editor;
mod files;
mod guard;
mod list;
mod names;
mod offer;
mod process;
mod result;
mod search;
mod server;
mod shell;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use swarmc_plan::tools::{BUILT_IN, BuiltIn, covers_tool, split_tool_name};
use swarmc_plan::{Agent, Approval, Capability, EnvValue, Permissions, Plan, Policy, Template, ToolServer};
use tokio::task::JoinSet;

use crate::types::digest::digest_bytes;
use crate::types::secrets::{self, Secrets};
pub(crate) use acp_tool_servers::{Handed, ServerEndpoint};
use arguments::Arguments;
use calls::Calls;
pub(crate) use editor::{Lines, Unread, inside};
use names::{Allowed, Named};
use result::Given;
pub(crate) use server::Limits;
use server::Server;

/// The built-in tool that writes a file.
pub(crate) const FILE_WRITE: &str = "file_write";

/// How long a built-in tool that only reads or writes files may take.
const FILE_TIME: Duration = Duration::from_secs(30);

/// The tools that an agent is offered at most, which is what several providers take in one request.
const MOST_TOOLS: usize = 128;

/// The characters of a tool's name up to which people are told all of it.
const NAMED: usize = 120;

/// What one agent may use, and where.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grant {
    /// The agent's node, for logs and the names of files.
    pub agent: String,
    /// The tools, as its `tools` list them.
    pub allow: Vec<String>,
    /// What it is able to do.
    pub can: Vec<Capability>,
    /// Whether it asks where the policy wants it to.
    pub permissions: Permissions,
    /// The folder that built-in tools work in; files stay inside of it.
    pub folder: PathBuf,
    /// The whole environment of the commands that it runs.
    pub environment: Arc<Vec<(OsString, OsString)>>,
}

impl Grant {
    /// What an agent of the plan may use, called `node` in this run. Without `tools` it may use none.
    pub(crate) fn new(node: &str, agent: &Agent, folder: &Path, environment: &Arc<Vec<(OsString, OsString)>>) -> Grant {
        Grant {
            agent: node.to_owned(),
            allow: agent.tools.clone().unwrap_or_default(),
            can: agent.can.clone(),
            permissions: agent.permissions,
            folder: folder.to_owned(),
            environment: Arc::clone(environment),
        }
    }

    /// Leaves a helper the skills that were asked for it, and never more than the agent that asked has.
    pub(crate) fn narrow(&mut self, skills: &[String], plan: &Plan) {
        let allowed = std::mem::take(&mut self.allow);
        // Names of servers have points of their own: the tool of another one must not pass for one of this.
        let is_server = |name: &str| plan.tool_servers.iter().any(|server| server.name == name);
        let covered = |skill: &&String| {
            let server = split_tool_name(skill, is_server).map(|(server, _)| server);
            allowed.iter().any(|tool| match server {
                Some(server) => tool == server || covers_tool(tool, skill),
                None => covers_tool(tool, skill),
            })
        };
        self.allow = skills.iter().filter(covered).cloned().collect();
    }
}

/// The tools of a grant that are known without asking a server: those that come with the runner, and what the grant
/// names of servers.
pub(crate) fn known(plan: &Plan, grant: &Grant) -> Vec<chat::Tool> {
    let servers: Vec<&str> = plan.tool_servers.iter().map(|server| server.name.as_str()).collect();
    let allowed = Allowed::new(grant, &servers);
    let own = BUILT_IN.iter().filter(|tool| allowed.built_in(tool).is_ok()).map(offer::built_in);
    let named = grant.allow.iter().filter_map(|name| match names::find(name, &servers)? {
        Named::Server(index, tool) if !tool.contains('*') => Some(offer::named(servers[index], &tool)),
        _ => None,
    });
    own.chain(named).take(MOST_TOOLS).collect()
}

/// What a run is to its tools.
pub(crate) struct World<'a> {
    /// The caller's whole environment.
    pub caller: &'a BTreeMap<OsString, OsString>,
    /// What every process gets of it.
    pub allowed: &'a [(OsString, OsString)],
    /// By which a process of this run is known: a variable and its value.
    pub mark: (OsString, OsString),
    /// Where servers run.
    pub workspace: &'a Path,
    /// Renders a variable's value.
    pub text: &'a dyn Fn(&Template) -> Result<String, String>,
    /// How long servers may take.
    pub limits: Limits,
    /// Tells people something.
    pub notice: Box<dyn Fn(String) + Send + Sync>,
}

/// The tools of a run, shared by all its agents. Servers start when one is first needed.
pub(crate) struct Toolbox {
    servers: Vec<Arc<Server>>,
    policy: Policy,
    secrets: Arc<Secrets>,
    calls: Calls,
    /// Those that only read or write a file for a program, which no long call is to keep waiting.
    editing: Calls,
    notice: Box<dyn Fn(String) + Send + Sync>,
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toolbox").field("servers", &self.names()).finish_non_exhaustive()
    }
}

/// Whether a grant allows a call, as far as that is known without asking a server; else why not.
pub(crate) fn permitted(plan: &Plan, grant: &Grant, tool: &str) -> Result<(), String> {
    let servers: Vec<&str> = plan.tool_servers.iter().map(|server| server.name.as_str()).collect();
    find(grant, &servers, tool).map(|_| ())
}

/// The tool that a call means, where the grant allows it; else why not.
fn find(grant: &Grant, servers: &[&str], tool: &str) -> Result<Named, String> {
    let allowed = Allowed::new(grant, servers);
    match names::find(tool, servers) {
        Some(Named::BuiltIn(built_in)) => allowed.built_in(built_in).map(|()| Named::BuiltIn(built_in)),
        Some(Named::Server(index, name)) if allowed.tool(index, &name) => Ok(Named::Server(index, name)),
        Some(Named::Server(..)) => Err(format!("the tool `{}` is not yours to use", visible_text::short(tool))),
        None => {
            let own: Vec<&str> =
                BUILT_IN.iter().filter(|tool| allowed.built_in(tool).is_ok()).map(|tool| tool.name).collect();
            let known = if own.is_empty() { String::new() } else { format!("; there are {}", own.join(", ")) };
            Err(format!("there is no tool `{}`{known}", visible_text::short(tool)))
        }
    }
}

impl Toolbox {
    /// The tools of a run of `plan`; nothing is started.
    pub(crate) fn new(plan: &Plan, world: World<'_>) -> Toolbox {
        let secrets = Arc::new(Secrets::new(world.caller, &secrets::variables(plan)));
        let server = |server: &ToolServer| {
            // Without its secret a server fails once an agent needs it, and not the whole run.
            let given = environment(server, &world).and_then(|environment| Ok((environment, token(server, &world)?)));
            Arc::new(Server::new(server, given, world.workspace, world.limits))
        };
        let servers = plan.tool_servers.iter().map(server).collect();
        let (policy, calls, editing) = (plan.policy.clone(), Calls::default(), Calls::default());
        Toolbox { servers, policy, secrets, calls, editing, notice: world.notice }
    }

    /// The tools that an agent may call: built-in ones first, then those of servers in declaration order. Starts the
    /// servers that it may use.
    ///
    /// # Errors
    /// A server cannot be reached.
    pub(crate) async fn list(&self, grant: &Grant) -> Result<Vec<chat::Tool>, ToolFault> {
        let allowed = self.allowed(grant);
        let mut tools: Vec<chat::Tool> =
            BUILT_IN.iter().filter(|tool| allowed.built_in(tool).is_ok()).map(offer::built_in).collect();
        let mut asked = JoinSet::new();
        for (index, server) in self.servers.iter().enumerate().filter(|(index, _)| allowed.server(*index)) {
            let server = Arc::clone(server);
            asked.spawn(async move { (index, server.tools().await) });
        }
        // All of them are heard out: one that is not waited for would have begun in vain.
        let mut heard = BTreeMap::new();
        while let Some(told) = asked.join_next().await {
            let (index, offered) = told.map_err(|_| ToolFault::lasting("a tool server broke its client down"))?;
            heard.insert(index, offered);
        }
        let mut lists = BTreeMap::new();
        for (index, offered) in heard {
            let offered = offered.map_err(|fault| self.fault(fault))?;
            if let Some(notice) = offered.notice {
                (self.notice)(self.secrets.redact(&notice).into_owned());
            }
            lists.insert(index, offered.tools);
        }
        for (index, offered) in lists {
            let server = &self.servers[index].name;
            let offered = offered.iter().filter(|tool| allowed.tool(index, &tool.name));
            tools.extend(offered.map(|tool| offer::of_server(server, tool, &self.secrets)));
        }
        if tools.len() > MOST_TOOLS {
            (self.notice)(format!(
                "agent `{}` may use {} tools, and is offered the first {MOST_TOOLS}: name those that it needs in its `tools`",
                grant.agent,
                tools.len()
            ));
            tools.truncate(MOST_TOOLS);
        }
        Ok(tools)
    }

    /// Calls a tool, by the name that [`Toolbox::list`] gives it or as `SERVER.TOOL`.
    ///
    /// # Errors
    /// Why there is no result, for the model to read.
    pub(crate) async fn call(&self, grant: &Grant, tool: &str, arguments: &Value) -> Result<String, ToolFault> {
        let given = self.dispatch(grant, tool, arguments).await.map_err(|fault| self.fault(fault))?;
        let (folder, agent, reads) = (grant.folder.clone(), grant.agent.clone(), self.reads(grant));
        let (secrets, name) = (Arc::clone(&self.secrets), tool.to_owned());
        // A long text takes time to redact, which must not hold up the thread of all agents.
        self.calls
            .blocking(FILE_TIME, move |_| {
                let text = visible_text::visible(&secrets.redact(&given.text));
                match given.saved {
                    true => result::told(text, &result::Place { folder: &folder, agent: &agent, tool: &name, reads }),
                    false => text,
                }
            })
            .await
            .map_err(ToolFault::lasting)
    }

    /// Who must approve a call. Agents with `permissions skip` need no approval.
    pub(crate) fn approval(&self, grant: &Grant, tool: &str) -> Approval {
        if grant.permissions == Permissions::Skip {
            return Approval::Auto;
        }
        let said = |name: &str| self.policy.tools.get(name).copied();
        match names::find(tool, &self.names()) {
            Some(Named::BuiltIn(built_in)) => said(built_in.name),
            Some(Named::Server(index, name)) => names::said(&self.servers[index].name, &name, &self.policy.tools),
            None => None,
        }
        .or_else(|| said(tool))
        .or_else(|| said("*"))
        .unwrap_or_default()
    }

    /// What the policy says of a tool that is none of ours, or of all.
    pub(crate) fn said(&self, tool: &str) -> Option<Approval> {
        self.policy.tools.get(tool).or_else(|| self.policy.tools.get("*")).copied()
    }

    /// The approval that an allowed call needs. A call that the grant does not allow fails without a question.
    pub(crate) fn gate(&self, grant: &Grant, tool: &str) -> Approval {
        match find(grant, &self.names(), tool) {
            Ok(_) => self.approval(grant, tool),
            Err(_) => Approval::Auto,
        }
    }

    /// The name of a tool as [`Toolbox::list`] gives it, however a model wrote it: no two tools have the same.
    pub(crate) fn name(&self, tool: &str) -> String {
        let name = match names::find(tool, &self.names()) {
            Some(Named::BuiltIn(built_in)) => return built_in.name.to_owned(),
            Some(Named::Server(index, name)) => format!("{}.{name}", self.servers[index].name),
            None => tool.to_owned(),
        };
        match name.chars().count() <= NAMED && visible_text::visible(&name) == name && !name.contains('\n') {
            true => name,
            false => format!("{}…{}", visible_text::short(&name), digest_bytes(name.as_bytes())),
        }
    }

    /// What a model calls a tool, as people may be shown it.
    pub(crate) fn shown(&self, tool: &str) -> String {
        visible_text::short(tool)
    }

    /// Ends what still runs: calls, then servers, each as a group.
    pub(crate) async fn close(&self) {
        self.calls.close().await;
        self.editing.close().await;
        let mut ending = JoinSet::new();
        for server in &self.servers {
            let server = Arc::clone(server);
            ending.spawn(async move { server.close().await });
        }
        while ending.join_next().await.is_some() {}
    }

    async fn dispatch(&self, grant: &Grant, tool: &str, arguments: &Value) -> Result<Given, ToolFault> {
        let arguments = arguments::object(arguments).map_err(ToolFault::lasting)?;
        match find(grant, &self.names(), tool).map_err(ToolFault::lasting)? {
            Named::BuiltIn(built_in) => self.built_in(built_in, grant, arguments).await,
            Named::Server(index, name) => {
                let server = &self.servers[index];
                let offered = server.tools().await?;
                if !offered.tools.iter().any(|known| known.name == name) {
                    return Err(ToolFault::lasting(format!(
                        "tool server `{}` has no tool `{}`",
                        server.name,
                        visible_text::short(&name)
                    )));
                }
                let text = server.call(&name, arguments).await?;
                Ok(Given { text, saved: true })
            }
        }
    }

    async fn built_in(
        &self,
        tool: &BuiltIn,
        grant: &Grant,
        arguments: serde_json::Map<String, Value>,
    ) -> Result<Given, ToolFault> {
        let (name, secrets) = (tool.name, Arc::clone(&self.secrets));
        let path = grant.folder.clone();
        let arguments = Arguments::new(name, arguments);
        if name == "shell" {
            let asked = shell::read_call(arguments).map_err(ToolFault::lasting)?;
            let environment = Arc::clone(&grant.environment);
            let most = asked.most + shell::ENDING;
            return self
                .calls
                .blocking(most, move |cancel| shell::run(&asked, &environment, &path, (&secrets, cancel)))
                .await
                .and_then(|text| text)
                .map(|text| Given { text, saved: true })
                .map_err(ToolFault::lasting);
        }
        self.calls
            .blocking(FILE_TIME, move |_| {
                let folder = Folder::open(&path)?;
                match name {
                    "file_read" => files::read(&folder, arguments, &secrets).map(|text| Given { text, saved: false }),
                    "file_write" => files::write(&folder, arguments).map(|text| Given { text, saved: false }),
                    "file_list" => list::list(&folder, arguments).map(|text| Given { text, saved: true }),
                    _ => search::search(&folder, arguments, &secrets).map(|text| Given { text, saved: true }),
                }
            })
            .await
            .and_then(|given| given)
            .map_err(ToolFault::lasting)
    }

    fn names(&self) -> Vec<&str> {
        self.servers.iter().map(|server| server.name.as_str()).collect()
    }

    fn allowed<'g>(&self, grant: &'g Grant) -> Allowed<'g> {
        Allowed::new(grant, &self.names())
    }

    /// Whether the agent can read a file that a result was saved to.
    fn reads(&self, grant: &Grant) -> bool {
        swarmc_plan::tools::built_in("file_read").is_some_and(|tool| self.allowed(grant).built_in(tool).is_ok())
    }

    /// A fault as it may be told.
    fn fault(&self, fault: ToolFault) -> ToolFault {
        let message = visible_text::visible(&self.secrets.redact(&fault.message));
        ToolFault { message: visible_text::beginning(&message, result::TOLD).into_owned(), ..fault }
    }
}

/// The environment of a server's process.
fn environment(server: &ToolServer, world: &World<'_>) -> Result<Vec<(OsString, OsString)>, String> {
    let mut environment = world.allowed.to_vec();
    for entry in &server.env {
        let (name, value) = match entry {
            EnvValue::Pass(name) => match world.caller.get(OsStr::new(name)) {
                Some(value) => (name, value.clone()),
                None => continue,
            },
            EnvValue::Secret(name) => match world.caller.get(OsStr::new(name)) {
                Some(value) => (name, value.clone()),
                None => return Err(format!("the secret variable `{name}` is not set")),
            },
            // No variable of a process can hold a NUL.
            EnvValue::Set { name, value } => (name, OsString::from((world.text)(value)?.replace('\0', "\u{fffd}"))),
        };
        environment.push((OsString::from(name), value));
    }
    environment.push(world.mark.clone());
    Ok(environment)
}

/// The token that a server is sent.
fn token(server: &ToolServer, world: &World<'_>) -> Result<Option<String>, String> {
    let Some(variable) = &server.auth else { return Ok(None) };
    let value = world.caller.get(OsStr::new(variable)).filter(|value| !value.is_empty());
    let value = value.ok_or_else(|| format!("the secret variable `{variable}` is not set"))?;
    let value = value.to_str().map(str::trim).filter(|value| value.bytes().all(|byte| byte.is_ascii_graphic()));
    let plain = value.ok_or_else(|| format!("the variable `{variable}` has characters that no header may have"))?;
    Ok(Some(plain.to_owned()))
}
