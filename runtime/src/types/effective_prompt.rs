//! The effective prompt of a turn, block by block: its full text, even if the agent receives only a part of it.
//!
//! Invariant: the prompt is its blocks with an empty line between them, and nothing else.

use serde_json::{Value, json};
use swarmc_plan::prompt_text;

use super::digest::digest_bytes;

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// `system` (how to take part), `role` (the agent's system text), `mode`, `pack`, `inputs`, or `task`.
    pub name: &'static str,
    pub text: String,
    /// Whether the agent receives it apart from the prompt.
    pub apart: bool,
}

/// Everything that the agent of a turn receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effective(pub Vec<Block>);

impl Block {
    pub(crate) fn new(name: &'static str, text: String) -> Block {
        Block { name, text, apart: false }
    }
}

impl Effective {
    /// The prompt.
    pub(crate) fn text(&self) -> String {
        let texts: Vec<&str> = self.0.iter().filter(|block| !block.apart).map(|block| block.text.as_str()).collect();
        texts.join(prompt_text::BETWEEN)
    }

    /// What lies beside the prompt: each block's size and digest, and those of the whole; `sent` is what the agent got.
    pub(crate) fn to_json(&self, sent: &str) -> Value {
        let of = |text: &str| json!({ "bytes": text.len(), "digest": digest_bytes(text.as_bytes()) });
        let blocks = self.0.iter().map(|block| {
            let mut value = of(&block.text);
            value["name"] = json!(block.name);
            if block.apart {
                value["apart"] = json!(true);
            }
            value
        });
        let blocks: Vec<Value> = blocks.collect();
        let whole = self.text();
        let delta = whole != sent;
        json!({ "version": 1, "blocks": blocks, "prompt": of(&whole), "sent": of(sent), "delta": delta })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_full_effective_prompt_is_its_blocks_with_their_digests() {
        let mut effective = Effective(vec![
            Block { apart: true, ..Block::new("role", "You write.".to_owned()) },
            Block::new("mode", "Mode".to_owned()),
            Block::new("task", "Do it".to_owned()),
        ]);
        assert_eq!(effective.text(), "Mode\n\nDo it");
        let json = effective.to_json("Mode\n\nDo it");
        assert_eq!(
            json["blocks"][0],
            json!({
                "name": "role", "bytes": 10, "apart": true, "digest": digest_bytes(b"You write."),
            })
        );
        assert_eq!((&json["prompt"], &json["delta"]), (&json["sent"], &json!(false)));
        effective.0.push(Block::new("inputs", "More".to_owned()));
        assert_eq!(effective.to_json("More")["delta"], json!(true));
    }
}
