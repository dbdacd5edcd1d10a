//! What a step that takes part in handoffs, or whose turns were given something, has of it: the envelopes that came and
//! went, what its turns changed and were given, the tools that they used, every prompt with its blocks, and whom it
//! waits for (seed 002, "UI observability requirements").
//!
//! In: the records of a run, and the files beside them. Out: lines for people, or JSON fields.

use std::sync::Arc;

use serde_json::Value;
use swarmc_runtime::artifact::{ArtifactKind, ArtifactMeta};
use swarmc_runtime::{Layout, Pending, RunFolder, Standing, State, StepId};
use swarmc_view::documents::{
    NodeConnection, NodeDetails, PromptPaths, ReceivedEnvelope, Refusal, SentEnvelope, StepArtifact, TurnPrompt,
    WaitedFor,
};
use swarmc_view::{Envelope, Past, StepHistory, format_size, list_standings, make_printable, now_ms, sanitize_line};

use super::tools::{Used, list_tool_uses};
use crate::nodes::describe_node;

/// What is known of a step as a node.
pub(super) struct Node<'a> {
    incoming: Vec<EnvelopeRow>,
    outgoing: Vec<EnvelopeRow>,
    artifacts: &'a [(u32, &'a ArtifactMeta)],
    prompts: Vec<Prompt>,
    tools: Vec<Used>,
    /// What was refused, by attempt.
    refused: Vec<(u32, String)>,
    standing: Option<Standing>,
    pending: Vec<Pending>,
}

/// An envelope.
struct EnvelopeRow {
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
    paths: PromptPaths,
    blocks: Value,
}

impl<'a> Node<'a> {
    /// What the history of a step, and the files beside the journal, say of it.
    pub(super) fn read(
        (folder, layout, past): (&RunFolder, &Layout, &Past),
        history: &'a StepHistory<'a>,
        step: &StepId,
        attempts: u32,
    ) -> Node<'a> {
        let (standing, pending, call) = find_standing(folder, past, step);
        let read = |sent: &Envelope<'_>| {
            let text = folder.read_text(&sent.letter.content).map_err(|error| error.to_string());
            let envelope = text.and_then(|text| sent.letter.to_json(text));
            let envelope = envelope.unwrap_or_else(|error| Value::String(format!("({error})")));
            EnvelopeRow { id: sent.letter.id.to_string(), envelope, at: sent.at, attempt: sent.attempt }
        };
        // Where nothing of the step was ever under way, the call around it is not known.
        let incoming = history.received.iter().filter(|sent| call.as_ref() == Some(sent.within));
        let mut node = Node {
            incoming: incoming.map(read).collect(),
            outgoing: history.sent.iter().map(read).collect(),
            artifacts: &history.artifacts,
            prompts: Vec::new(),
            tools: Vec::new(),
            refused: Vec::new(),
            standing,
            pending,
        };
        for attempt in 1..=attempts {
            node.tools.extend(list_tool_uses(layout, step, attempt));
            let refused = std::fs::read_to_string(layout.refusals_path(step, attempt)).unwrap_or_default();
            node.refused.extend(refused.lines().map(|line| (attempt, line.to_owned())));
            node.prompts.extend(list_prompts(layout, step, attempt));
        }
        node
    }

    /// The lines for people.
    pub(super) fn format_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.standing.iter().map(|node| format!("node    {}", describe_node(node, now_ms()))).collect();
        let mut ways = |posts: &[EnvelopeRow], kind: &str, other: &str, unread: &str| {
            for post in posts {
                let name = post.envelope[other].as_str().unwrap_or("a person");
                let message =
                    post.envelope["payload"]["message"].as_str().or(post.envelope.as_str()).unwrap_or_default();
                let turn = post.attempt.map_or(unread.to_owned(), |attempt| format!("turn {attempt}"));
                lines.push(format!(
                    "{kind:<7} {} {} ({turn}): {}",
                    post.id,
                    sanitize_line(name),
                    sanitize_line(message)
                ));
            }
        };
        ways(&self.incoming, "from", "fromNodeId", "not read");
        ways(&self.outgoing, "to", "toNodeId", "");
        for (attempt, kept) in self.artifacts {
            let word = if kept.kind == ArtifactKind::ContextPack { "pack" } else { kept.kind.as_str() };
            let bytes = format_size(kept.content.bytes());
            lines.push(format!(
                "{word:<7} {} ({bytes}, turn {attempt}){}",
                kept.reference(),
                sanitize_line(&describe_artifact(kept))
            ));
        }
        for prompt in &self.prompts {
            let blocks = prompt.blocks["blocks"].as_array().into_iter().flatten();
            let blocks = blocks.map(|block| format!("{} {}", block["name"].as_str().unwrap_or("?"), block["bytes"]));
            let blocks: Vec<String> = blocks.collect();
            let delta = if prompt.blocks["delta"] == true { "; sent: what is new" } else { "" };
            lines.push(format!(
                "blocks  turn {}{}: {} bytes{delta}",
                prompt.attempt,
                prompt.describe_turn(),
                blocks.join(", ")
            ));
        }
        lines.extend(self.tools.iter().map(Used::format_line));
        let refused = self.refused.iter();
        lines.extend(refused.map(|(attempt, why)| format!("refused turn {attempt}: {}", make_printable(why))));
        for Pending { step, why } in &self.pending {
            lines.push(format!("waits   for {step}: {why}"));
        }
        lines
    }

    /// Its envelopes whole, as they were sent, in text that no terminal obeys.
    pub(super) fn format_raw(&self) -> String {
        let mut out = String::new();
        let mut all = |posts: &[EnvelopeRow], did: &str, not: &str| {
            for post in posts {
                let turn = post.attempt.map_or(not.to_owned(), |attempt| format!("{did} in turn {attempt}"));
                out.push_str(&format!("{} ({turn})\n", make_printable(&post.id)));
                // Pretty JSON of what was read as JSON: there is no other way for it to fail.
                let text = serde_json::to_string_pretty(&post.envelope).unwrap_or_default();
                text.lines().for_each(|line| out.push_str(&format!("{}\n", make_printable(line))));
            }
        };
        all(&self.incoming, "read", "not read");
        all(&self.outgoing, "sent", "sent");
        out
    }

    /// It for programs.
    pub(super) fn to_document(&self, folder: &RunFolder) -> NodeDetails {
        let incoming = self.incoming.iter().map(|post| ReceivedEnvelope {
            at: post.at,
            read_in: post.attempt,
            envelope: post.envelope.clone(),
        });
        let outgoing = self.outgoing.iter().map(|post| SentEnvelope {
            at: post.at,
            sent_in: post.attempt,
            envelope: post.envelope.clone(),
        });
        let artifacts = self.artifacts.iter().map(|(attempt, kept)| StepArtifact::new(folder, *attempt, kept));
        let artifacts: Vec<StepArtifact> = artifacts.collect();
        let refused = self.refused.iter().map(|(attempt, why)| Refusal { turn: *attempt, why: why.clone() });
        let prompts = self.prompts.iter().map(|prompt| TurnPrompt {
            turn: prompt.attempt,
            fallback: prompt.position,
            repair: prompt.repair,
            paths: prompt.paths.clone(),
            effective: prompt.blocks.clone(),
        });
        NodeDetails {
            connection: self.standing.as_ref().map(NodeConnection::from),
            incoming: incoming.collect(),
            outgoing: outgoing.collect(),
            diffs: artifacts.iter().filter(|kept| kept.kind == ArtifactKind::Diff).cloned().collect(),
            artifacts,
            tools: self.tools.iter().map(Used::to_document).collect(),
            refused: refused.collect(),
            prompts: prompts.collect(),
            pending: self.pending.iter().map(WaitedFor::from).collect(),
        }
    }
}

/// What a diff or a pack is, in a few words.
fn describe_artifact(kept: &ArtifactMeta) -> String {
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
type Stands = (Option<Standing>, Vec<Pending>, Option<Option<Arc<str>>>);

fn find_standing(folder: &RunFolder, past: &Past, step: &StepId) -> Stands {
    let Ok(graph) = past.build_graph(folder) else { return (None, Vec::new(), None) };
    let mut call = None;
    let state = State::replay_with(graph, &past.records, |state, _| {
        // What is inside of a step is forgotten with it.
        call = call.take().or_else(|| state.call_around(step));
    });
    call = call.or_else(|| state.call_around(step));
    let pending =
        if state.final_status().is_some() { Vec::new() } else { state.list_pending(step, folder.is_running()) };
    let found = list_standings(folder, &state, &past.records).into_iter().find(|node| node.step == *step);
    (found, pending, call)
}

impl Prompt {
    /// Which of the turns of an attempt it is, where that is not its first one.
    fn describe_turn(&self) -> String {
        let part = |word: &str, number: usize| if number > 0 { format!(", {word} {number}") } else { String::new() };
        part("fallback", self.position) + &part("repair", self.repair as usize)
    }
}

/// What the turns of an attempt were told: that of its agent, those of fallbacks, and those that mended an answer.
fn list_prompts(layout: &Layout, step: &StepId, attempt: u32) -> Vec<Prompt> {
    let of_taker = |position: usize| -> Vec<Prompt> {
        (0..).map_while(|repair| find_prompt(layout, (step, attempt), position, repair)).collect()
    };
    (0..).map(of_taker).take_while(|prompts| !prompts.is_empty()).flatten().collect()
}

fn find_prompt(layout: &Layout, (step, attempt): (&StepId, u32), position: usize, repair: u32) -> Option<Prompt> {
    let mut stem = if position > 0 { format!("fallback-{position}.") } else { String::new() };
    if repair > 0 {
        stem.push_str(&format!("repair-{repair}."));
    }
    let path = |name: &str| {
        let path = layout.prompt_path(step, attempt).with_extension(format!("{stem}{name}"));
        Some(path).filter(|path| path.exists())
    };
    let paths = PromptPaths {
        prompt: path("txt"),
        full: path("full.txt"),
        system: path("system.txt"),
        blocks: path("blocks.json"),
    };
    let blocks = paths.blocks.as_ref().and_then(|path| std::fs::read(path).ok());
    let blocks = blocks.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or(Value::Null);
    let is_there = paths.list().next().is_some();
    is_there.then_some(Prompt { attempt, position, repair, paths, blocks })
}
