//! What a step that takes part in handoffs, or whose turns were given something, has of it: the envelopes that came and
//! went, what its turns changed and were given, the tools that they used, every prompt with its blocks, and whom it
//! waits for (seed 002, "UI observability requirements").
//!
//! In: the records of a run, and the files beside them. Out: a [`NodeView`], and the fields of the document. A file that
//! cannot be read counts as one that is not there; of an envelope, why it cannot be read stands in its place.

use std::sync::Arc;

use serde_json::Value;
use swarmc_runtime::artifact::{ArtifactKind, ArtifactMeta};
use swarmc_runtime::{Layout, Pending, RunFolder, Standing, State, StepId};

use crate::documents::{
    AttemptNotice, NodeConnection, NodeDetails, PromptPaths, ReceivedEnvelope, Refusal, SentEnvelope, StepArtifact,
    TurnPrompt, WaitedFor,
};
use crate::past::Past;
use crate::run_summary::list_standings;
use crate::step_history::{Envelope, StepHistory};
use crate::tool_uses::{UsedTool, read_tool_log};

/// What is known of a step as a node.
#[derive(Debug)]
pub struct NodeView<'h> {
    /// The envelopes that came.
    pub incoming: Vec<ReadEnvelope>,
    /// The envelopes that it sent.
    pub outgoing: Vec<ReadEnvelope>,
    /// Its artifacts, with the attempts that they are of.
    pub artifacts: &'h [(u32, &'h ArtifactMeta)],
    /// What its turns were told.
    pub prompts: Vec<TurnPrompt>,
    /// The tools that its turns used.
    pub tools: Vec<UsedTool>,
    /// What people should know of its turns.
    pub notices: Vec<AttemptNotice>,
    /// What was refused.
    pub refused: Vec<Refusal>,
    /// How it stands with its agent.
    pub standing: Option<Standing>,
    /// The steps that it waits for.
    pub pending: Vec<Pending>,
}

/// An envelope, with its text.
#[derive(Debug)]
pub struct ReadEnvelope {
    /// Its id.
    pub id: String,
    /// It as it was sent, or why it cannot be read.
    pub envelope: Value,
    /// When it was sent, in milliseconds since 1970.
    pub at: u64,
    /// The attempt that read it, or that sent it.
    pub attempt: Option<u32>,
}

impl<'h> NodeView<'h> {
    /// What the history of a step, and the files beside the journal, say of it; of so many attempts.
    pub(crate) fn read(
        (folder, layout, past): (&RunFolder, &Layout, &Past),
        history: &'h StepHistory<'_>,
        step: &StepId,
        attempts: u32,
    ) -> NodeView<'h> {
        let (standing, pending, call) = find_standing(folder, past, step);
        let read = |sent: &Envelope<'_>| {
            let text = folder.read_text(&sent.letter.content).map_err(|error| error.to_string());
            let envelope = text.and_then(|text| sent.letter.to_json(text));
            let envelope = envelope.unwrap_or_else(|error| Value::String(format!("({error})")));
            ReadEnvelope { id: sent.letter.id.to_string(), envelope, at: sent.at, attempt: sent.attempt }
        };
        // Where nothing of the step was ever under way, the call around it is not known.
        let incoming = history.received.iter().filter(|sent| call.as_ref() == Some(sent.within));
        let mut node = NodeView {
            incoming: incoming.map(read).collect(),
            outgoing: history.sent.iter().map(read).collect(),
            artifacts: &history.artifacts,
            prompts: Vec::new(),
            tools: Vec::new(),
            notices: Vec::new(),
            refused: Vec::new(),
            standing,
            pending,
        };
        for attempt in 1..=attempts {
            let (tools, notices) = read_tool_log(layout, step, attempt);
            node.tools.extend(tools);
            node.notices.extend(notices);
            let refused = std::fs::read_to_string(layout.refusals_path(step, attempt)).unwrap_or_default();
            node.refused.extend(refused.lines().map(|line| Refusal { turn: attempt, why: line.to_owned() }));
            node.prompts.extend(list_prompts(layout, step, attempt));
        }
        node
    }

    /// It for programs; `folder` is that of its run.
    pub fn into_document(self, folder: &RunFolder) -> NodeDetails {
        let incoming = self.incoming.into_iter().map(|post| ReceivedEnvelope {
            at: post.at,
            read_in: post.attempt,
            envelope: post.envelope,
        });
        let outgoing = self.outgoing.into_iter().map(|post| SentEnvelope {
            at: post.at,
            sent_in: post.attempt,
            envelope: post.envelope,
        });
        let artifacts = self.artifacts.iter().map(|(attempt, kept)| StepArtifact::new(folder, *attempt, kept));
        let artifacts: Vec<StepArtifact> = artifacts.collect();
        NodeDetails {
            connection: self.standing.as_ref().map(NodeConnection::from),
            incoming: incoming.collect(),
            outgoing: outgoing.collect(),
            diffs: artifacts.iter().filter(|kept| kept.kind == ArtifactKind::Diff).cloned().collect(),
            artifacts,
            tools: self.tools.into_iter().map(|tool| tool.used).collect(),
            notices: self.notices,
            refused: self.refused,
            prompts: self.prompts,
            pending: self.pending.iter().map(WaitedFor::from).collect(),
        }
    }
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

/// What the turns of an attempt were told: that of its agent, those of fallbacks, and those that mended an answer.
fn list_prompts(layout: &Layout, step: &StepId, attempt: u32) -> Vec<TurnPrompt> {
    let of_taker = |fallback: usize| -> Vec<TurnPrompt> {
        (0..).map_while(|repair| find_prompt(layout, (step, attempt), fallback, repair)).collect()
    };
    // The numbers of takers and of their repairs have no gaps: the first without a file ends the search.
    (0..).map(of_taker).take_while(|prompts| !prompts.is_empty()).flatten().collect()
}

fn find_prompt(layout: &Layout, (step, attempt): (&StepId, u32), fallback: usize, repair: u32) -> Option<TurnPrompt> {
    let mut stem = if fallback > 0 { format!("fallback-{fallback}.") } else { String::new() };
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
    let effective = blocks.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or(Value::Null);
    let is_there = paths.list().next().is_some();
    is_there.then_some(TurnPrompt { turn: attempt, fallback, repair, paths, effective })
}
