//! Artifacts: what is too long for an envelope or a prompt, stored once under its digest and named by reference.
//!
//! In: texts that turns are given or leave behind. Out: [`ArtifactMeta`], which the journal holds in their stead. Invariant: an
//! `artifact://KIND/ID` means the same bytes for ever, and only what is journaled is listed.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::Content;
use super::digest::digest_bytes;

/// The artifacts of a run that packs can name at most; the oldest are forgotten first, and stay on disk.
pub(crate) const REMEMBERED: usize = 10_000;

/// The hexadecimal digits of an id.
const ID: usize = 16;

/// The words about an artifact that are kept, and their bytes.
const NOTES: usize = 8;
const NOTE: usize = 160;

/// What an artifact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactKind {
    /// What changed in a tree while a turn went on.
    Diff,
    /// What processes put out, each stream for itself.
    Log,
    /// What an agent was told.
    Prompt,
    /// What an agent was told and said in a turn, and which tools it called.
    Transcript,
    /// A context pack.
    ContextPack,
    /// What a step put out.
    Report,
}

impl ArtifactKind {
    /// All there are.
    pub(crate) const ALL: [ArtifactKind; 6] = [
        ArtifactKind::Diff,
        ArtifactKind::Log,
        ArtifactKind::Prompt,
        ArtifactKind::Transcript,
        ArtifactKind::ContextPack,
        ArtifactKind::Report,
    ];

    /// Its word, as references have it.
    pub fn as_str(self) -> &'static str {
        match self {
            ArtifactKind::Diff => "diff",
            ArtifactKind::Log => "log",
            ArtifactKind::Prompt => "prompt",
            ArtifactKind::Transcript => "transcript",
            ArtifactKind::ContextPack => "contextpack",
            ArtifactKind::Report => "report",
        }
    }

    /// Whether it is made while a turn goes on, and not again in a replay: a recording holds it.
    pub(crate) fn is_recorded(self) -> bool {
        matches!(self, ArtifactKind::Diff)
    }

    /// The kind of this word.
    pub(crate) fn from_word(word: &str) -> Option<ArtifactKind> {
        ArtifactKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A stored artifact, as the journal has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactMeta {
    /// What it is.
    pub kind: ArtifactKind,
    /// Its id: the beginning of the digest of its text.
    pub id: Arc<str>,
    /// Its text.
    pub content: Content,
    /// The context pack that it was built from, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<String>,
    /// Of a diff, the files that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u32>,
    /// Of a diff, the lines that were added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u32>,
    /// Of a diff, the lines that were removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u32>,
    /// Of a diff, the other steps whose turns went on in the same tree: who changed what is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// What was left out, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
}

impl ArtifactMeta {
    /// The artifact of this text, which lies at `content`.
    pub(crate) fn new(kind: ArtifactKind, text: &str, content: Content) -> ArtifactMeta {
        ArtifactMeta::with_id(kind, id_of(text).into(), content)
    }

    /// The artifact of this id, whose text lies at `content`.
    pub(crate) fn with_id(kind: ArtifactKind, id: Arc<str>, content: Content) -> ArtifactMeta {
        let (pack, files, added, removed) = (None, None, None, None);
        ArtifactMeta { kind, id, content, pack, files, added, removed, with: Vec::new(), omitted: Vec::new() }
    }

    /// How others refer to it: `artifact://diff/ID`, of a pack `contextpack://pack/ID`.
    pub fn reference(&self) -> String {
        match self.kind {
            ArtifactKind::ContextPack => format!("contextpack://pack/{}", self.id),
            kind => format!("artifact://{}/{}", kind.as_str(), self.id),
        }
    }

    /// The same, with words that are short enough for an event.
    pub(crate) fn truncate_texts(mut self) -> ArtifactMeta {
        for notes in [&mut self.with, &mut self.omitted] {
            let more = notes.len().saturating_sub(NOTES);
            notes.truncate(NOTES);
            notes.iter_mut().for_each(|note| *note = brief(note));
            if more > 0 {
                notes.push(format!("and {more} more"));
            }
        }
        self.pack = self.pack.as_deref().map(brief);
        self
    }
}

/// What a reference to an artifact says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored<'r> {
    pub kind: ArtifactKind,
    pub id: &'r str,
}

impl Stored<'_> {
    /// Reads `artifact://KIND/ID` or `contextpack://pack/ID`; none where it is neither.
    pub(crate) fn parse_reference(reference: &str) -> Option<Stored<'_>> {
        let (kind, id) = match reference.strip_prefix("contextpack://pack/") {
            Some(id) => (ArtifactKind::ContextPack, id),
            None => {
                let (kind, id) = reference.strip_prefix("artifact://")?.split_once('/')?;
                (ArtifactKind::from_word(kind)?, id)
            }
        };
        let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_id.then_some(Stored { kind, id })
    }
}

/// The id of a text.
pub(crate) fn id_of(text: &str) -> String {
    let mut id = digest_bytes(text.as_bytes());
    id.truncate(ID);
    id
}

/// A text of so many bytes at most, without control characters, which take several in JSON.
fn brief(text: &str) -> String {
    let mut brief = String::new();
    for found in text.chars().filter(|found| !found.is_control() && !matches!(found, '"' | '\\')) {
        if brief.len() + found.len_utf8() > NOTE {
            brief.push('…');
            break;
        }
        brief.push(found);
    }
    brief
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_is_named_by_what_it_holds() {
        let kept = |kind, text: &str| ArtifactMeta::new(kind, text, Content::Text(text.to_owned()));
        let diff = kept(ArtifactKind::Diff, "x");
        assert_eq!(diff.reference(), "artifact://diff/2d711642b726b044");
        assert_eq!(kept(ArtifactKind::Log, "x").id, diff.id);
        assert_ne!(kept(ArtifactKind::Diff, "y").id, diff.id);
        assert_eq!(kept(ArtifactKind::ContextPack, "x").reference(), "contextpack://pack/2d711642b726b044");
        assert_eq!(ArtifactKind::from_word("transcript"), Some(ArtifactKind::Transcript));
        assert_eq!(ArtifactKind::from_word("picture"), None);
    }

    #[test]
    fn words_about_an_artifact_are_few_and_short() {
        let mut kept = ArtifactMeta::new(ArtifactKind::Diff, "x", Content::Text("x".to_owned()));
        kept.with = vec!["\u{1}\"漢".repeat(500); 100];
        kept.omitted.clone_from(&kept.with);
        let text = serde_json::to_string(&kept.truncate_texts()).expect("it is JSON");
        assert!(text.len() < 4096, "{}", text.len());
    }
}
