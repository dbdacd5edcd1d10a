//! What the result of an attempt depends on: the one place where that is decided, part by part.
//!
//! In: a job, ready to start, and the plan. Out: a [`ReuseKey`], or why there is none. The patterns below name every
//! field of the plan's types, so that a new field does not compile before it is decided here whether it counts; the table
//! for people is in `docs/reuse.md`. Invariant: what is in doubt counts, so that the worst mistake is to run again.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use swarmc_plan::{
    Agent, Body, Capability, Command, Connection, Format, Output, PackRule, Pipeline, Provider, Step, ToolServer, tools,
};

use super::super::driver::Driver;
use crate::core::graph::Key;
use crate::io::executor::{Candidate, Job, Transport, Work};
use crate::io::file_digests::FileDigest;
use crate::io::process::{argv, describe_command, find_program};
use crate::io::socket_peer::MARKS;
use crate::types::event::StepId;
use crate::types::reuse::{Key as ReuseKey, Parts};

/// The files that are a part each; more are one part together.
const NAMED_FILES: usize = 100;

/// The variable that tells a process the position of its item.
const POSITION: &str = "SWARM_WITHIN";

/// The variables of the caller that change nothing of a result, or differ from run to run.
const IGNORED: [&str; 5] = ["USER", "LOGNAME", "SHELL", "TERM", "TMPDIR"];

impl Driver<'_> {
    /// Why no result of this job can be reused, whatever it depends on; none where it can.
    pub(super) fn find_obstacle(&self, key: Key, job: &Job) -> Option<String> {
        let step = self.evaluator.step_definition(&self.state, key);
        if self.is_never_reused(key) {
            return Some("it says `reuse #false`".to_owned());
        }
        if self.evaluator.is_node(&self.state, key) {
            return Some("edges lead to it or from it, so that its messages count".to_owned());
        }
        if self.state.inputs(key).next().is_some() {
            return Some("it reads messages".to_owned());
        }
        if let Some(session) = &step.session {
            return Some(format!("it is part of the session `{session}`"));
        }
        if job.file_workspace.is_some() {
            return Some("it works by `files`".to_owned());
        }
        if job.tree.is_some() {
            return Some("it works in a worktree".to_owned());
        }
        let named = |rule: &PackRule| matches!(rule, PackRule::Artifacts { from, .. } if *from == step.name);
        if let Some(pack) = self.evaluator.plan.packs.iter().find(|pack| pack.rules.iter().any(named)) {
            return Some(format!("the context pack `{}` reads its artifacts", pack.name));
        }
        let candidates = job.work.candidates();
        if candidates.iter().any(|candidate| matches!(candidate.door, Transport::Closed(_))) {
            return Some("an agent that may take its turn cannot be reached".to_owned());
        }
        // With `reuse #true` its author says that nothing else counts.
        if step.reuse == Some(true) {
            return None;
        }
        if step.reads.is_empty()
            && let Some(reader) = find_reader(job)
        {
            return Some(format!("{reader} may read any file: name its files with `reads`, or write `reuse #true`"));
        }
        let acts = |candidate: &Candidate| match &candidate.door {
            Transport::Llm(model) => {
                model.lending.as_ref().is_some_and(|lent| lent.grant.allow.iter().any(|it| acts(it)))
            }
            _ => false,
        };
        if candidates.iter().any(acts) {
            return Some(
                "its tools may do more than read and write files: write `reuse #true` if that may be left out".into(),
            );
        }
        let is_watched = |candidate: &Candidate| job.watched || !candidate.door.is_program();
        if !candidates.iter().all(is_watched) {
            return Some("what its agent changes is not known".to_owned());
        }
        None
    }

    /// Whether the step, or a call, a for-each or a loop around it, says that it is never reused.
    fn is_never_reused(&self, mut key: Key) -> bool {
        loop {
            if self.evaluator.step_definition(&self.state, key).reuse == Some(false) {
                return true;
            }
            match self.state.frame(key.frame).parent {
                Some(parent) => key = parent,
                None => return false,
            }
        }
    }

    /// The key of a job.
    ///
    /// # Errors
    /// Something that it depends on cannot be read: what.
    pub(super) fn build_key(
        &self,
        key: Key,
        job: &Job,
        files: &BTreeMap<String, FileDigest>,
    ) -> Result<ReuseKey, String> {
        let step = self.evaluator.step_definition(&self.state, key);
        let mut parts = Parts::default();
        // With its round, instance and item: where they are equal otherwise, each has a result of its own.
        parts.add_json("place in the run", &without_positions(&job.step));
        let items = self.evaluator.item_ids(&self.state, key.frame)?;
        if !items.is_empty() {
            parts.add_json("item", &items);
            if may_read_position(job) {
                parts.add_json("position", &job.step);
            }
        }
        let Step {
            name: _, // The place has it.
            body,
            output: Output { max_bytes, schema: _, repair: _, default: _ },
            keeps_log,
            checks,
            reads,
            writes,
            // What is rendered: a part of its own is what comes of it.
            stdin: _,
            env: _,
            inputs: _,
            // Those of which no result is reused.
            session: _,
            worktree: _,
            files: _,
            reuse: _,
            // What decides whether and when it runs, and not what comes of it.
            needs: _,
            join: _,
            when: _,
            on_failure: _,
            for_each: _,
            concurrency: _,
            // Limits: what has succeeded within others is still a success.
            retry: _,
            timeout_ms: _,
            idle_ms: _,
            grace_ms: _,
            stall: _,
            budget: _,
            // For people.
            description: _,
            survives: _, // Where its process goes on changes no result.
            pool: _,     // Nor does which worker starts it.
            origin: _,
        } = step;
        match &job.work {
            Work::Command { command, stdin } => {
                parts.add("command", describe_command(command));
                parts.add("kind of command", command_kind(command));
                parts.add("standard input", stdin.as_deref().unwrap_or_default());
                self.add_program(&mut parts, "program", &argv(command), &job.environment, job);
                self.add_environment(&mut parts, &job.environment);
            }
            Work::Agent(asked) => {
                for (number, candidate) in asked.takers.iter().enumerate() {
                    match number {
                        0 => self.add_agent(&mut parts, candidate, job)?,
                        _ => {
                            let mut others = Parts::default();
                            self.add_agent(&mut others, candidate, job)?;
                            parts.add_digest(&format!("fallback {number}"), others.into_key().digest);
                        }
                    }
                }
            }
            Work::Text(text) => {
                parts.add("value", text);
                self.add_environment(&mut parts, &job.environment);
            }
            Work::Member(_) => return Err("it is a member of a swarm".to_owned()),
        }
        parts.add("type", job.shape.as_ref().map_or("", |shape| shape.schema_text()));
        if matches!(body, Body::Prompt(_) | Body::Run(_)) {
            parts.add("output limit", format!("{max_bytes} {keeps_log}"));
        }
        for (number, check) in (1..).zip(checks) {
            parts.add(&format!("check {number}"), format!("{} {}", command_kind(check), describe_command(check)));
            self.add_program(&mut parts, &format!("program of check {number}"), &argv(check), &job.environment, job);
        }
        parts.add("folder", job.directory.as_os_str().as_bytes());
        parts.add("list of files that it writes", writes.join("\n"));
        parts.add("list of files that it reads", reads.join("\n"));
        let describe = |digest: &FileDigest| format!("{} {}", digest.digest, digest.executable);
        match files.len() <= NAMED_FILES {
            true => files.iter().for_each(|(path, digest)| parts.add(&format!("file {path}"), describe(digest))),
            false => {
                let list: Vec<String> = files.iter().map(|(path, it)| format!("{path}\0{}\n", describe(it))).collect();
                parts.add("files that it reads", list.concat());
            }
        }
        Ok(parts.into_key())
    }

    /// The agent that is asked, with its prompt and all that it may use.
    fn add_agent(&self, parts: &mut Parts, candidate: &Candidate, job: &Job) -> Result<(), String> {
        let plan = self.evaluator.plan;
        let agent = plan.agent(&candidate.agent);
        let provider = agent.and_then(|agent| plan.provider(&agent.provider));
        let (Some(agent), Some(provider)) = (agent, provider) else {
            return Err(format!("the plan has no provider for agent `{}`", candidate.agent));
        };
        parts.add("prompt", &candidate.prompt);
        parts.add("system text", candidate.system.as_deref().unwrap_or_default());
        let Agent {
            model,
            mode,
            temperature,
            max_output,
            tools,
            can,
            permissions,
            // The prompt and the system text have it.
            system: _,
            // A part each.
            provider: _,
            fallback: _,
            files: _,
            // Names and limits.
            name: _,
            description: _,
            tier: _,
            budget: _,
            pool: _,
            origin: _,
        } = agent;
        parts.add("model", model.as_deref().unwrap_or_default());
        parts.add_json("agent", &(mode.or(plan.mode), temperature, max_output, can, permissions));
        if tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
            let servers: Vec<_> = plan
                .tool_servers
                .iter()
                .map(|ToolServer { name, transport, auth, env: _, origin: _ }| (name, transport, auth))
                .collect();
            parts.add_json("tools", &(tools, servers, &plan.policy));
        }
        let Provider {
            name: _,
            connection,
            provides,
            env: _,
            install: _,
            login: _,
            // The prompt shows what it cut.
            context_window: _,
            price: _,
            rate: _,
            concurrency: _,
            origin: _,
        } = provider;
        match connection {
            // Of the answers, those that fit this attempt.
            Connection::Script { .. } => {
                if let Transport::Recorded(answers) = &candidate.door {
                    parts.add_json("recorded answers", answers);
                }
            }
            connection => parts.add_json("provider", &(connection, provides)),
        }
        match &candidate.door {
            Transport::Program(program) => {
                parts.add("standard input", program.stdin.as_deref().unwrap_or_default());
                self.add_program(parts, "program", &program.argv, &candidate.environment, job);
            }
            Transport::Acp(acp) => self.add_program(parts, "program", &acp.argv, &candidate.environment, job),
            Transport::Llm(_) | Transport::Recorded(_) | Transport::Closed(_) => {}
        }
        if candidate.door.is_program() || find_reader(job).is_some() {
            self.add_environment(parts, &candidate.environment);
        }
        Ok(())
    }

    /// What a process sees of the variables: secrets by their names, the marks of the run not at all.
    fn add_environment(&self, parts: &mut Parts, environment: &[(OsString, OsString)]) {
        let secret: BTreeSet<&str> = self.evaluator.plan.secret_variables().collect();
        let mut variables = BTreeMap::new();
        for (name, value) in environment {
            let Some(text) = name.to_str().filter(|name| !name.starts_with(MARKS) && !IGNORED.contains(name)) else {
                continue;
            };
            let value = if secret.contains(text) { &[][..] } else { value.as_bytes() };
            // Of two variables with one name, a process sees the last.
            variables.insert(text, value);
        }
        let mut bytes = Vec::new();
        for (name, value) in variables {
            bytes.extend_from_slice(format!("{}={} ", name, value.len()).as_bytes());
            bytes.extend_from_slice(value);
        }
        parts.add("environment", bytes);
    }

    /// The program that is started: by its content where a path names it, else by where it is found and when it was
    /// changed. A script behind it counts by its content, too.
    fn add_program(
        &self,
        parts: &mut Parts,
        name: &str,
        argv: &[OsString],
        environment: &[(OsString, OsString)],
        job: &Job,
    ) {
        let Some(program) = argv.first() else { return };
        let path = environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        parts.add(name, self.identify_program(program, path.unwrap_or_default(), &job.directory));
        let script = argv[1..].iter().find(|word| !word.as_bytes().starts_with(b"-"));
        let script = script.map(|word| job.directory.join(word)).filter(|script| script.is_file());
        if let Some(digest) = script.and_then(|script| self.attempts.reuse.digests.digest_path(&script).ok()) {
            parts.add(&format!("script behind the {name}"), digest.digest);
        }
    }

    fn identify_program(&self, program: &OsStr, path: &OsStr, directory: &Path) -> String {
        let place = (program.to_owned(), path.to_owned(), directory.to_owned());
        if let Some(known) = self.attempts.reuse.programs.borrow().get(&place) {
            return known.clone();
        }
        let Ok(file) = find_program(program, path, directory) else { return "missing".to_owned() };
        if program.as_bytes().contains(&b'/') && !program.as_bytes().starts_with(b"/") {
            // It may change while the run goes on: a step may build it.
            return self
                .attempts
                .reuse
                .digests
                .digest_path(&file)
                .map_or_else(|_| "missing".to_owned(), |found| found.digest);
        }
        let identity = match file.metadata() {
            Ok(meta) => format!("{} {} {}.{}", file.display(), meta.len(), meta.mtime(), meta.mtime_nsec()),
            Err(_) => "missing".to_owned(),
        };
        self.attempts.reuse.programs.borrow_mut().insert(place, identity.clone());
        identity
    }
}

/// Who may read files that only `reads` would name; none where everything that is read is known.
fn find_reader(job: &Job) -> Option<&'static str> {
    if matches!(job.work, Work::Command { .. }) {
        return Some("its command");
    }
    let reads = |candidate: &Candidate| match &candidate.door {
        Transport::Program(_) | Transport::Acp(_) => true,
        Transport::Llm(model) => model.lending.is_some(),
        Transport::Recorded(_) | Transport::Closed(_) => false,
    };
    if job.work.candidates().iter().any(reads) {
        return Some("its agent");
    }
    (!job.checks.is_empty()).then_some("its `check`")
}

/// Whether a tool may do more than read and write files.
fn acts(tool: &str) -> bool {
    match tools::built_in(tool) {
        Some(built_in) => !matches!(built_in.needs, None | Some(Capability::WriteFiles)),
        // One of a server, or a pattern.
        None => tool != "file_*",
    }
}

/// Tells apart commands that read alike.
fn command_kind(command: &Command) -> &'static str {
    match command {
        Command::Argv(_) => "words",
        Command::Shell(_) => "line",
        Command::Script { .. } => "script",
    }
}

/// Nothing of a pipeline counts but what its steps are given: the folder and the variables.
const _: fn(Pipeline) = |pipeline| {
    let Pipeline {
        working_dir: _,
        env: _,
        edges: _,
        worktree: _,
        name: _,
        description: _,
        params: _,
        iteration: _,
        parallelism: _,
        concurrency: _,
        fail_fast: _,
        steps: _,
        result: _,
        budget: _,
        origin: _,
    } = pipeline;
};

/// A step without the positions of its items, whose values count in their place.
fn without_positions(step: &StepId) -> StepId {
    let blank = |part: &str| match part.split_once('[') {
        Some((each, _)) if part.ends_with(']') => format!("{each}[]"),
        _ => part.to_owned(),
    };
    let within = step.within.as_ref().map(|within| within.split('/').map(blank).collect::<Vec<_>>().join("/").into());
    StepId { within, ..step.clone() }
}

/// Whether a process of a job may read the position of its item from its variables. Commands and checks may, and so may an
/// agent that is a program which prints text or JSON. A known agent, with a stream or a protocol, reads no such variable,
/// unless its arguments name one or it is a file of the workspace.
fn may_read_position(job: &Job) -> bool {
    let may_read = |word: &OsString| word.to_string_lossy().contains(POSITION) || job.directory.join(word).is_file();
    let reads = |candidate: &Candidate| match &candidate.door {
        Transport::Program(program) => {
            matches!(program.reads, Format::Text | Format::Json) || program.argv.iter().any(may_read)
        }
        Transport::Acp(acp) => acp.argv.iter().any(may_read),
        _ => false,
    };
    matches!(job.work, Work::Command { .. }) || !job.checks.is_empty() || job.work.candidates().iter().any(reads)
}
