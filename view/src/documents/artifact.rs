//! Artifacts of runs, as `swarmc inspect` prints them.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use swarmc_runtime::artifact::{ArtifactKind, ArtifactMeta};
use swarmc_runtime::{Content, RunFolder};

use super::Version;

/// What `swarmc inspect RUN REFERENCE --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ArtifactText {
    /// The version of this form.
    pub version: Version,
    /// The run.
    pub run: String,
    /// How others refer to it.
    #[serde(rename = "ref")]
    pub reference: String,
    /// What it is.
    pub kind: ArtifactKind,
    /// Its id.
    pub id: String,
    /// How long its text is.
    pub bytes: usize,
    /// Under which digest its text is stored; null where the journal holds it.
    pub digest: Option<String>,
    /// The turns that it is of.
    pub of: Vec<ArtifactTurn>,
    /// Its text.
    pub text: String,
}

/// A turn that an artifact is of.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ArtifactTurn {
    /// The step.
    pub step: String,
    /// The attempt.
    pub turn: u32,
}

/// An artifact of a step.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StepArtifact {
    /// How others refer to it.
    #[serde(rename = "ref")]
    pub reference: String,
    /// What it is.
    pub kind: ArtifactKind,
    /// Its id.
    pub id: String,
    /// The attempt that it is of.
    pub turn: u32,
    /// How long its text is.
    pub bytes: u64,
    /// Under which digest its text is stored; null where the journal holds it.
    pub digest: Option<String>,
    /// The file of its text.
    pub path: Option<PathBuf>,
    /// Of a pack, its name.
    pub pack: Option<String>,
    /// Of a diff, the files that changed.
    pub files: Option<u32>,
    /// Of a diff, the lines that were added.
    pub added: Option<u32>,
    /// Of a diff, the lines that were removed.
    pub removed: Option<u32>,
    /// Of a diff, the other steps whose turns went on in the same tree.
    pub with: Vec<String>,
    /// What was left out, in words.
    pub omitted: Vec<String>,
}

impl StepArtifact {
    /// An artifact of an attempt.
    pub fn new(folder: &RunFolder, turn: u32, kept: &ArtifactMeta) -> StepArtifact {
        let digest = content_digest(&kept.content).map(str::to_owned);
        StepArtifact {
            reference: kept.reference(),
            kind: kept.kind,
            id: kept.id.to_string(),
            turn,
            bytes: kept.content.bytes(),
            path: digest.as_deref().map(|digest| folder.artifact_path(digest)),
            digest,
            pack: kept.pack.clone(),
            files: kept.files,
            added: kept.added,
            removed: kept.removed,
            with: kept.with.clone(),
            omitted: kept.omitted.clone(),
        }
    }
}

/// Under which digest a text is stored; none where it stands in the journal itself.
pub fn content_digest(content: &Content) -> Option<&str> {
    match content {
        Content::Artifact { digest, .. } => Some(digest),
        Content::Text(_) => None,
    }
}
