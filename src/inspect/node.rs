//! What a step that takes part in handoffs, or whose turns were given something, has of it: the envelopes that came and
//! went, what its turns changed and were given, the tools that they used, every prompt with its blocks, and whom it
//! waits for (seed 002, "UI observability requirements").
//!
//! In: the records of a run, and the files beside them. Out: lines for people, or JSON fields.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use swarmc_plan::{Agent, Body, Connection, Format, Plan};
use swarmc_runtime::artifact::{ArtifactKind, Kept};
use swarmc_runtime::{
    Decoder, Event, Graph, Item, Layout, Letter, RunFolder, Standing, State, StepId, Stream as TaskStream, standings,
};

use crate::home::Past;
use crate::nodes::words;
use crate::team::told;
use crate::units::now;

/// The uses of tools that are shown at most, and the bytes of a log in which they are looked for.
const TOOLS: usize = 1_000;
const LOG: u64 = 256 << 20;

/// What is known of a step as a node.
pub(super) struct Node {
    incoming: Vec<Post>,
    outgoing: Vec<Post>,
    artifacts: Vec<(u32, Kept)>,
    prompts: Vec<Prompt>,
    tools: Vec<Tool>,
    standing: Option<Standing>,
    pending: Vec<(Arc<str>, &'static str)>,
}

/// An envelope.
struct Post {
    id: String,
    envelope: Value,
    at: u64,
    /// The attempt that read it, or that sent it.
    attempt: Option<u32>,
}

/// What a turn was told.
struct Prompt {
    attempt: u32,
    /// Who took the turn: 0 for the step's own agent, from 1 for its fallbacks in order.
    position: usize,
    /// Which of the turns that mended an answer it was; 0 for the one before them.
    repair: u32,
    paths: Vec<(&'static str, PathBuf)>,
    blocks: Value,
}

/// One use of a tool.
struct Tool {
    attempt: u32,
    text: String,
}

impl Node {
    /// What the records of a run say of a step.
    pub(super) fn read((folder, layout, past): (&RunFolder, &Layout, &Past), step: &StepId, attempts: u32) -> Node {
        let (standing, pending, call) = standing(folder, past, step);
        let mut node = Node {
            incoming: Vec::new(),
            outgoing: Vec::new(),
            artifacts: Vec::new(),
            prompts: Vec::new(),
            tools: Vec::new(),
            standing,
            pending,
        };
        node.gather(folder, past, step, call.as_ref());
        for attempt in 1..=attempts {
            let told = prompts(layout, step, attempt);
            let room = TOOLS.saturating_sub(node.tools.len());
            // Those before the last one could not be reached, and used nothing.
            let position = told.last().map_or(0, |prompt| prompt.position);
            let used = tools((&past.plan, layout), step, attempt, position).into_iter().take(room);
            node.tools.extend(used.map(|text| Tool { attempt, text }));
            node.prompts.extend(told);
        }
        node
    }

    /// `call` is the call around the step; none where nothing of the step was ever under way.
    fn gather(&mut self, folder: &RunFolder, past: &Past, step: &StepId, call: Option<&Option<Arc<str>>>) {
        let post = |letter: &Letter, at: u64, attempt: Option<u32>| {
            let text = folder.text(&letter.content).map_err(|error| error.to_string());
            let envelope = text.and_then(|text| letter.shown(text));
            let envelope = envelope.unwrap_or_else(|error| Value::String(format!("({error})")));
            Post { id: letter.id.to_string(), envelope, at, attempt }
        };
        let (mut attempt, mut read): (u32, Vec<Arc<str>>) = (0, Vec::new());
        let mut others: Vec<Arc<str>> = Vec::new();
        let mut is_open = false;
        for record in &past.records {
            match &record.event {
                Event::Sent { from: Some(from), letter, .. } if from == step => {
                    self.outgoing.push(post(letter, record.at, Some(attempt)));
                }
                Event::Sent { to, instance, within, letter, .. }
                    if *to == step.name && *instance == step.instance && call == Some(within) =>
                {
                    self.incoming.push(post(letter, record.at, None));
                }
                // A turn that goes on has read them.
                Event::InputsTaken { step: by, inputs } if by == step && is_open => {
                    let taken = self.incoming.iter_mut().filter(|post| inputs.iter().any(|id| **id == *post.id));
                    taken.for_each(|post| post.attempt = Some(attempt));
                }
                Event::InputsTaken { step: by, inputs } if by == step => read.extend(inputs.iter().cloned()),
                Event::InputsTaken { step: by, inputs } if by.name == step.name => {
                    others.extend(inputs.iter().cloned())
                }
                Event::AttemptStarted { step: by, attempt: number, .. } if by == step => {
                    (attempt, is_open) = (*number, true);
                    for id in read.drain(..) {
                        let letter = self.incoming.iter_mut().find(|post| *post.id == *id);
                        letter.into_iter().for_each(|post| post.attempt = Some(attempt));
                    }
                }
                Event::AttemptEnded { step: by, attempt, outcome } if by == step => {
                    is_open = false;
                    self.artifacts.extend(outcome.artifacts.iter().map(|kept| (*attempt, kept.clone())));
                }
                Event::RunResumed => is_open = false,
                Event::ArtifactStored { step: by, attempt, artifact } if by == step => {
                    self.artifacts.push((*attempt, Kept::clone(artifact)));
                }
                _ => {}
            }
        }
        // What another round of it has read.
        self.incoming.retain(|post| post.attempt.is_some() || !others.iter().any(|id| **id == *post.id));
    }

    /// The lines for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.standing.iter().map(|node| format!("node    {}", words(node, now()))).collect();
        let mut ways = |posts: &[Post], kind: &str, other: &str, unread: &str| {
            for post in posts {
                let name = post.envelope[other].as_str().unwrap_or("a person");
                let message =
                    post.envelope["payload"]["message"].as_str().or(post.envelope.as_str()).unwrap_or_default();
                let turn = post.attempt.map_or(unread.to_owned(), |attempt| format!("turn {attempt}"));
                lines.push(format!("{kind:<7} {} {} ({turn}): {}", post.id, told(name), told(message)));
            }
        };
        ways(&self.incoming, "from", "fromNodeId", "not read");
        ways(&self.outgoing, "to", "toNodeId", "");
        for (attempt, kept) in &self.artifacts {
            let word = if kept.kind == ArtifactKind::ContextPack { "pack" } else { kept.kind.word() };
            lines.push(format!("{word:<7} {} (turn {attempt}){}", kept.reference(), told(&about(kept))));
        }
        for prompt in &self.prompts {
            let blocks = prompt.blocks["blocks"].as_array().into_iter().flatten();
            let blocks = blocks.map(|block| format!("{} {}", block["name"].as_str().unwrap_or("?"), block["bytes"]));
            let blocks: Vec<String> = blocks.collect();
            let delta = if prompt.blocks["delta"] == true { "; sent: what is new" } else { "" };
            lines.push(format!("blocks  turn {}{}: {} bytes{delta}", prompt.attempt, prompt.by(), blocks.join(", ")));
        }
        for tool in &self.tools {
            lines.push(format!("tool    turn {}: {}", tool.attempt, told(&tool.text)));
        }
        for (name, why) in &self.pending {
            lines.push(format!("waits   for {name}: {why}"));
        }
        lines
    }

    /// The fields of it for programs.
    pub(super) fn fields(&self, folder: &RunFolder) -> Vec<(&'static str, Value)> {
        let posts = |posts: &[Post], turn: &str| -> Value {
            let post = |post: &Post| json!({ "at": post.at, turn: post.attempt, "envelope": post.envelope });
            posts.iter().map(post).collect()
        };
        let artifact = |(attempt, kept): &(u32, Kept)| {
            let (digest, bytes) = match &kept.content {
                swarmc_runtime::Content::Artifact { digest, bytes } => (json!(digest), json!(bytes)),
                swarmc_runtime::Content::Text(text) => (Value::Null, json!(text.len())),
            };
            json!({
                "ref": kept.reference(), "kind": kept.kind.word(), "id": &*kept.id, "turn": attempt, "bytes": bytes,
                "digest": digest, "path": digest.as_str().map(|digest| folder.artifact(digest)), "pack": kept.pack,
                "files": kept.files, "added": kept.added, "removed": kept.removed, "with": kept.with,
                "omitted": kept.omitted,
            })
        };
        let artifacts: Vec<Value> = self.artifacts.iter().map(artifact).collect();
        let diffs = artifacts.iter().filter(|artifact| artifact["kind"] == "diff").cloned().collect();
        let prompts = self.prompts.iter().map(|prompt| {
            let paths = prompt.paths.iter().map(|(kind, path)| ((*kind).to_owned(), json!(path)));
            json!({
                "turn": prompt.attempt, "fallback": prompt.position, "repair": prompt.repair,
                "paths": paths.collect::<serde_json::Map<_, _>>(), "effective": prompt.blocks,
            })
        });
        let tools = self.tools.iter().map(|tool| json!({ "turn": tool.attempt, "tool": tool.text }));
        let pending = self.pending.iter().map(|(name, why)| json!({ "step": &**name, "why": why }));
        vec![
            ("connection", json!(self.standing)),
            ("incoming", posts(&self.incoming, "read_in")),
            ("outgoing", posts(&self.outgoing, "sent_in")),
            ("diffs", diffs),
            ("artifacts", Value::Array(artifacts)),
            ("tools", tools.collect()),
            ("prompts", prompts.collect()),
            ("pending", pending.collect()),
        ]
    }
}

/// What a diff or a pack is, in a few words.
fn about(kept: &Kept) -> String {
    let mut words = String::new();
    if let (Some(files), Some(added), Some(removed)) = (kept.files, kept.added, kept.removed) {
        let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        words.push_str(&format!(": {files}, +{added} -{removed}"));
    }
    if let Some(pack) = &kept.pack {
        words.push_str(&format!(": {pack}"));
    }
    if !kept.with.is_empty() {
        words.push_str(&format!(", while turns of {} went on in the same tree", kept.with.join(", ")));
    }
    if !kept.omitted.is_empty() {
        words.push_str(&format!("; without {}", kept.omitted.join("; ")));
    }
    words
}

/// How a step stands with its agent, whom it waits for, and the call around it.
type Stands = (Option<Standing>, Vec<(Arc<str>, &'static str)>, Option<Option<Arc<str>>>);

fn standing(folder: &RunFolder, past: &Past, step: &StepId) -> Stands {
    let Ok(graph) = Graph::new(&past.plan, &past.pipeline().name, past.task.as_deref(), 1) else {
        return (None, Vec::new(), None);
    };
    let mut state = State::new(Arc::new(graph));
    let mut call = state.call_around(step);
    for record in &past.records {
        state.apply(record);
        // What is inside of a step is forgotten with it.
        call = call.or_else(|| state.call_around(step));
    }
    let pending = if state.finished().is_some() { Vec::new() } else { state.pending(step) };
    let found = standings(folder, &state, &past.records).into_iter().find(|node| node.step == *step);
    (found, pending, call)
}

impl Prompt {
    /// Which of the turns of an attempt it is, where that is not its first one.
    fn by(&self) -> String {
        let part = |word: &str, number: usize| if number > 0 { format!(", {word} {number}") } else { String::new() };
        part("fallback", self.position) + &part("repair", self.repair as usize)
    }
}

/// What the turns of an attempt were told: that of its agent, those of fallbacks, and those that mended an answer.
fn prompts(layout: &Layout, step: &StepId, attempt: u32) -> Vec<Prompt> {
    let of_taker = |position: usize| -> Vec<Prompt> {
        (0..).map_while(|repair| prompt(layout, (step, attempt), position, repair)).collect()
    };
    (0..).map(of_taker).take_while(|prompts| !prompts.is_empty()).flatten().collect()
}

fn prompt(layout: &Layout, (step, attempt): (&StepId, u32), position: usize, repair: u32) -> Option<Prompt> {
    let mut stem = if position > 0 { format!("fallback-{position}.") } else { String::new() };
    if repair > 0 {
        stem.push_str(&format!("repair-{repair}."));
    }
    let path = |name: &str| layout.prompt(step, attempt).with_extension(format!("{stem}{name}"));
    let paths = [
        ("prompt", path("txt")),
        ("full", path("full.txt")),
        ("system", path("system.txt")),
        ("blocks", path("blocks.json")),
    ];
    let paths: Vec<(&'static str, PathBuf)> = paths.into_iter().filter(|(_, path)| path.exists()).collect();
    let blocks = paths.iter().find(|(kind, _)| *kind == "blocks").and_then(|(_, path)| std::fs::read(path).ok());
    let blocks = blocks.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or(Value::Null);
    (!paths.is_empty()).then_some(Prompt { attempt, position, repair, paths, blocks })
}

/// The tools that a turn used: its program's stream says so, and of a model the log of its calls. `position` says how far
/// down the fallbacks of the step's agent it was taken.
fn tools((plan, layout): (&Plan, &Layout), step: &StepId, attempt: u32, position: usize) -> Vec<String> {
    let steps = plan.pipelines.iter().flat_map(|pipeline| pipeline.all_steps());
    let prompts = steps.filter(|found| *found.name == *step.name).filter_map(|found| match &found.body {
        Body::Prompt(body) => plan.agent(&body.agent),
        _ => None,
    });
    let fallback = |agent: &&Agent| plan.agent(agent.fallback.as_deref()?);
    let Some(agent) = prompts.last().and_then(|own| std::iter::successors(Some(own), fallback).nth(position)) else {
        return Vec::new();
    };
    match plan.provider(&agent.provider).map(|provider| &provider.connection) {
        Some(Connection::Exec { reads, .. }) if !matches!(reads, Format::Text | Format::Json) => {
            told_tools(*reads, &layout.log(step, attempt, TaskStream::Stdout))
        }
        Some(Connection::Acp { .. }) => messages(&layout.log(step, attempt, TaskStream::Stdout)),
        Some(Connection::Llm { .. }) if lends(agent) || speaks(plan, &step.name) => {
            called(&layout.log(step, attempt, TaskStream::Stderr))
        }
        _ => Vec::new(),
    }
}

/// The tools that an agent told of by the protocol, and what it had its client do.
fn messages(path: &Path) -> Vec<String> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let lines = BufReader::new(file.take(LOG)).lines().map_while(Result::ok);
    let used = lines.filter_map(|line| {
        let message: Value = serde_json::from_str(&line).ok()?;
        let params = &message["params"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match message["method"].as_str()? {
            "session/update" if params["update"]["sessionUpdate"] == "tool_call" => text(&params["update"]["title"]),
            "fs/read_text_file" => Some(format!("file_read {}", text(&params["path"])?)),
            "fs/write_text_file" => {
                let bytes = params["content"].as_str()?.len();
                Some(format!("file_write {} ({bytes} bytes)", text(&params["path"])?))
            }
            "terminal/create" => {
                let words = params["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let words: Vec<&str> = params["command"].as_str().into_iter().chain(words).collect();
                Some(format!("shell {}", words.join(" ")))
            }
            _ => None,
        }
    });
    used.take(TOOLS).collect()
}

fn lends(agent: &Agent) -> bool {
    agent.tools.as_ref().is_some_and(|tools| !tools.is_empty())
}

/// Whether a task of this name has edges, so that its model is lent the tools of the run.
fn speaks(plan: &Plan, name: &str) -> bool {
    plan.pipelines.iter().flat_map(|pipeline| &pipeline.edges).any(|edge| edge.from == name || edge.to == name)
}

fn told_tools(format: Format, path: &Path) -> Vec<String> {
    let mut tools = Vec::new();
    let Ok(file) = File::open(path) else { return tools };
    let mut decoder = Decoder::new(format);
    let mut emit = |item: Item<'_>| {
        if let (Item::Tool(name), true) = (item, tools.len() < TOOLS) {
            tools.push(name.to_owned());
        }
    };
    let mut reader = BufReader::with_capacity(1 << 16, file.take(LOG));
    while let Ok(bytes) = reader.fill_buf() {
        let count = bytes.len();
        if count == 0 {
            break;
        }
        decoder.feed(bytes, &mut emit);
        reader.consume(count);
    }
    decoder.finish(&mut emit);
    tools
}

/// The calls of a model in the log, and what came of them: lines that are neither are words of the same result.
fn called(path: &Path) -> Vec<String> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let lines = BufReader::new(file.take(LOG)).lines().map_while(Result::ok);
    lines.filter(|line| !line.is_empty()).take(TOOLS).collect()
}
