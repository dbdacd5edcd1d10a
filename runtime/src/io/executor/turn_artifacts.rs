//! What a turn of an agent leaves beside its answer, as artifacts of its step: what it was told, what it put out, what
//! was said in it, and its answer once more under a reference.
//!
//! In: texts, and logs that may lie in files of the run. Out: [`ArtifactMeta`], which the end of the attempt holds.
//! Invariants: a long log is not written a second time, no artifact is longer than [`LARGEST`], and people hear of what
//! is left out.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use super::attempt::Ended;
use super::pool::Services;
use super::{Job, Role, Work};
use crate::io::home::create_private;
use crate::types::artifact::{ArtifactKind, ArtifactMeta, id_of};
use crate::types::digest::digest_bytes;
use crate::types::error::RunError;
use crate::types::event::Content;

/// The bytes of one artifact at most.
const LARGEST: usize = 16 << 20;

/// The bytes of a transcript at most.
const TRANSCRIPT: usize = 4 << 20;

/// What was said in an attempt, and which tools were called, as people see it.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Transcript {
    /// An agent is told something, and what follows is its answer.
    pub(super) fn record_prompt(&mut self, prompt: &str) {
        let gap = if self.bytes.is_empty() { "" } else { "\n\n" };
        self.push(format!("{gap}--- Prompt ---\n{prompt}\n--- Answer ---\n").as_bytes());
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(TRANSCRIPT - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..fits]);
        self.is_cut |= fits < bytes.len();
    }
}

/// The log of a stream.
pub(super) enum Logged<'l> {
    /// It waits to be written.
    Waits(&'l [u8]),
    /// It lies here.
    Lies(&'l Path),
}

/// Stores what the turn of an agent leaves, for the end of its attempt.
///
/// # Errors
/// A log cannot be read.
pub(super) fn store_artifacts(
    job: &Job,
    ended: &mut Ended,
    (transcript, logs): (Option<Transcript>, Vec<Logged<'_>>),
    services: &Services,
) -> Result<(), RunError> {
    let (Work::Agent(asked), Role::Turn) = (&job.work, job.role) else { return Ok(()) };
    let by = ended.outcome.fallback.as_deref();
    let taker = asked.takers.iter().find(|taker| by.is_none_or(|name| name == taker.agent));
    let texts = [
        (ArtifactKind::Prompt, taker.map(|taker| Cow::from(&taker.prompt))),
        (ArtifactKind::Transcript, transcript.as_ref().map(|it| String::from_utf8_lossy(&it.bytes))),
        (ArtifactKind::Report, ended.output.as_deref().map(Cow::from)),
    ];
    let mut kept = Vec::new();
    for (kind, text) in texts {
        kept.extend(text.and_then(|text| store_text(job, kind, &text, services)));
    }
    if let (Some(cut), true) = (
        kept.iter_mut().find(|kept| kept.kind == ArtifactKind::Transcript),
        transcript.is_some_and(|transcript| transcript.is_cut),
    ) {
        cut.omitted.push(format!("what came after the first {} MiB", TRANSCRIPT >> 20));
    }
    for log in logs {
        kept.extend(match log {
            Logged::Waits(bytes) => store_text(job, ArtifactKind::Log, &String::from_utf8_lossy(bytes), services),
            Logged::Lies(path) => link_log(job, path, services)?,
        });
    }
    ended.outcome.artifacts = kept;
    Ok(())
}

/// An artifact of a text, which is on its way to the disk; none of an empty one, and none of one that is too long.
fn store_text(job: &Job, kind: ArtifactKind, text: &str, services: &Services) -> Option<ArtifactMeta> {
    if text.is_empty() || !check_size(job, kind, text.len() as u64, services) {
        return None;
    }
    let (kept, digest) = build_artifact(kind, text, services);
    if !services.folder.has_content(&kept.content) {
        services.file_writer.store(services.folder.artifact_path(&digest), text.as_bytes().to_vec());
    }
    Some(kept)
}

/// An artifact of a log that lies in a file: a second name of that where it is text.
fn link_log(job: &Job, path: &Path, services: &Services) -> Result<Option<ArtifactMeta>, RunError> {
    let bytes = fs::metadata(path).map_err(RunError::io("read", path))?.len();
    if !check_size(job, ArtifactKind::Log, bytes, services) {
        return Ok(None);
    }
    let text = match String::from_utf8(fs::read(path).map_err(RunError::io("read", path))?) {
        Ok(text) => text,
        Err(error) => {
            return Ok(store_text(job, ArtifactKind::Log, &String::from_utf8_lossy(error.as_bytes()), services));
        }
    };
    let (kept, digest) = build_artifact(ArtifactKind::Log, &text, services);
    if !services.folder.has_content(&kept.content) {
        let artifact = services.folder.artifact_path(&digest);
        let folder = artifact.parent().expect("an artifact lies in a folder");
        let linked = create_private(folder, true).and_then(|()| fs::hard_link(path, &artifact));
        if linked.is_err() {
            // Some file systems know no second names.
            services.file_writer.store(artifact, text.into_bytes());
        }
    }
    Ok(Some(kept))
}

/// The artifact of a text, and the digest under which that is to lie. Its id is the same in a replay.
fn build_artifact(kind: ArtifactKind, text: &str, services: &Services) -> (ArtifactMeta, String) {
    let digest = digest_bytes(text.as_bytes());
    let content = Content::Artifact { digest: digest.clone(), bytes: text.len() as u64 };
    let id = id_of(&services.source.blank(text));
    (ArtifactMeta::with_id(kind, id.into(), content), digest)
}

/// Whether something is short enough to be an artifact; else people hear of it.
fn check_size(job: &Job, kind: ArtifactKind, bytes: u64, services: &Services) -> bool {
    let fits = bytes <= LARGEST as u64;
    if !fits {
        services.observer_handle.send_notice(format!(
            "`{}`: its {} has {} MiB and is not stored as an artifact: at most {} MiB are allowed",
            job.step.label(),
            kind.as_str(),
            bytes >> 20,
            LARGEST >> 20
        ));
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_has_both_sides_and_an_end() {
        let mut transcript = Transcript::default();
        transcript.record_prompt("Which?");
        transcript.push(b"This\n");
        transcript.record_prompt("Again");
        transcript.push(b"That");
        let text = String::from_utf8_lossy(&transcript.bytes);
        assert_eq!(
            text,
            "--- Prompt ---\nWhich?\n--- Answer ---\nThis\n\n\n--- Prompt ---\nAgain\n--- Answer ---\nThat"
        );
        assert!(!transcript.is_cut);
        transcript.push(&vec![b'x'; TRANSCRIPT]);
        assert_eq!((transcript.bytes.len(), transcript.is_cut), (TRANSCRIPT, true));
    }
}
