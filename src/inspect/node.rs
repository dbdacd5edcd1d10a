//! What a step has as a node of handoffs, for people: its envelopes, what its turns changed and were given, the tools that
//! they used, the blocks of its prompts, and whom it waits for.
//!
//! In: what is known of the node. Out: lines, which no terminal obeys.

use swarmc_runtime::Pending;
use swarmc_runtime::artifact::{ArtifactKind, ArtifactMeta};
use swarmc_view::documents::TurnPrompt;
use swarmc_view::{NodeView, ReadEnvelope, format_size, make_printable, now_ms, sanitize_line};

use super::tools::format_tool;
use crate::nodes::describe_node;

/// A line for each thing.
pub(super) fn format_lines(node: &NodeView<'_>) -> Vec<String> {
    let mut lines: Vec<String> =
        node.standing.iter().map(|standing| format!("node    {}", describe_node(standing, now_ms()))).collect();
    let mut ways = |posts: &[ReadEnvelope], kind: &str, other: &str, unread: &str| {
        for post in posts {
            let name = post.envelope[other].as_str().unwrap_or("a person");
            let message = post.envelope["payload"]["message"].as_str().or(post.envelope.as_str()).unwrap_or_default();
            let turn = post.attempt.map_or(unread.to_owned(), |attempt| format!("turn {attempt}"));
            lines.push(format!("{kind:<7} {} {} ({turn}): {}", post.id, sanitize_line(name), sanitize_line(message)));
        }
    };
    ways(&node.incoming, "from", "fromNodeId", "not read");
    ways(&node.outgoing, "to", "toNodeId", "");
    for (attempt, kept) in node.artifacts {
        let word = if kept.kind == ArtifactKind::ContextPack { "pack" } else { kept.kind.as_str() };
        let bytes = format_size(kept.content.bytes());
        lines.push(format!(
            "{word:<7} {} ({bytes}, turn {attempt}){}",
            kept.reference(),
            sanitize_line(&describe_artifact(kept))
        ));
    }
    for prompt in &node.prompts {
        let blocks = prompt.effective["blocks"].as_array().into_iter().flatten();
        let blocks = blocks.map(|block| format!("{} {}", block["name"].as_str().unwrap_or("?"), block["bytes"]));
        let blocks: Vec<String> = blocks.collect();
        let delta = if prompt.effective["delta"] == true { "; sent: what is new" } else { "" };
        let which = describe_turn(prompt);
        lines.push(format!("blocks  turn {}{which}: {} bytes{delta}", prompt.turn, blocks.join(", ")));
    }
    lines.extend(node.tools.iter().map(format_tool));
    let notices = node.notices.iter();
    lines.extend(notices.map(|notice| format!("notice  turn {}: {}", notice.turn, make_printable(&notice.text))));
    let refused = node.refused.iter();
    lines.extend(refused.map(|refused| format!("refused turn {}: {}", refused.turn, make_printable(&refused.why))));
    for Pending { step, why } in &node.pending {
        lines.push(format!("waits   for {step}: {why}"));
    }
    lines
}

/// Its envelopes whole, as they were sent.
pub(super) fn format_raw(node: &NodeView<'_>) -> String {
    let mut out = String::new();
    let mut all = |posts: &[ReadEnvelope], did: &str, not: &str| {
        for post in posts {
            let turn = post.attempt.map_or(not.to_owned(), |attempt| format!("{did} in turn {attempt}"));
            out.push_str(&format!("{} ({turn})\n", make_printable(&post.id)));
            // Pretty JSON of what was read as JSON: there is no other way for it to fail.
            let text = serde_json::to_string_pretty(&post.envelope).unwrap_or_default();
            text.lines().for_each(|line| out.push_str(&format!("{}\n", make_printable(line))));
        }
    };
    all(&node.incoming, "read", "not read");
    all(&node.outgoing, "sent", "sent");
    out
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

/// Which of the turns of an attempt was told so, where that is not its first one.
fn describe_turn(prompt: &TurnPrompt) -> String {
    let part = |word: &str, number: usize| if number > 0 { format!(", {word} {number}") } else { String::new() };
    part("fallback", prompt.fallback) + &part("repair", prompt.repair as usize)
}
