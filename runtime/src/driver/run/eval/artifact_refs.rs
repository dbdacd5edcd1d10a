//! Checks the references of an envelope: stored artifacts of the run, and files of the workspace.
//!
//! In: the references of a handoff. Out: nothing, or the reason for a refusal and what to do. The evaluator checks them
//! once, when it admits the handoff; journals and recordings hold admitted ones. Invariant: the check reads nothing
//! outside of the workspace, and never waits.

use swarmc_plan::Step;

use super::Evaluator;
use super::handoff::clean_excerpt;
use crate::core::graph::Key;
use crate::core::state::State;
use crate::driver::run::worktree_names;
use crate::io::confine::Folder;
use crate::types::artifact::{ArtifactKind, Stored};
use crate::types::handoff::{Artifact, Handoff};

/// The artifacts of one envelope at most.
const ARTIFACTS: usize = 32;

/// The bytes of the type of an artifact, and of a reference at most.
const WORD: usize = 64;
const REFERENCE: usize = 512;

impl Evaluator<'_> {
    /// Whether all that a handoff of a step refers to is there.
    ///
    /// # Errors
    /// Says of the first that is not what it is, and what to name instead.
    pub(super) fn check_references(&self, state: &State, key: Key, handoff: &Handoff) -> Result<(), String> {
        let Handoff { artifacts, context_ref, .. } = handoff;
        if artifacts.len() > ARTIFACTS {
            return Err(format!("there are {} artifacts, but at most {ARTIFACTS} are allowed", artifacts.len()));
        }
        let meant = artifacts.iter().map(parse_artifact).collect::<Result<Vec<Meant<'_>>, String>>()?;
        let pack = context_ref.as_deref().map(parse_pack_reference).transpose()?;
        // Tests have neither files nor artifacts, and a recording holds only admitted handoffs.
        if self.layout.is_none() || !self.source.is_real() {
            return Ok(());
        }
        let (scope, _) = state.address(key);
        let is_kept = |stored: Stored<'_>, reference: &str| match state.find_artifact(scope, stored) {
            Some(_) => Ok(()),
            None => Err(format!(
                "there is no reference `{}`: copy one from an envelope or a pack of this run, or name a file of the \
                 workspace",
                clean_excerpt(reference)
            )),
        };
        for (meant, artifact) in meant.into_iter().zip(artifacts) {
            match meant {
                Meant::Stored(stored) => is_kept(stored, &artifact.reference)?,
                Meant::File(path) => self.is_file(state, key, path)?,
            }
        }
        match (pack, context_ref) {
            (Some(pack), Some(reference)) => is_kept(pack, reference),
            _ => Ok(()),
        }
    }

    /// Whether a path leads to a file in the tree that a step works in.
    fn is_file(&self, state: &State, key: Key, path: &str) -> Result<(), String> {
        let step: &Step = self.step_definition(state, key);
        let name = || worktree_names::tree_name(self, state, key.frame, Some(step));
        let tree = self.trees.as_ref().and_then(|trees| trees.workspace_path(&name()?));
        let folder = Folder::open(tree.as_ref().unwrap_or(&self.workspace))?;
        let said = |problem| format!("an artifact is a file, by its path from the top of the workspace: {problem}");
        folder.file(path).map(drop).map_err(said)
    }
}

/// What a reference means.
#[derive(Debug, PartialEq)]
enum Meant<'r> {
    Stored(Stored<'r>),
    /// A file of the workspace.
    File(&'r str),
}

/// What an artifact refers to, by its words alone.
fn parse_artifact(artifact: &Artifact) -> Result<Meant<'_>, String> {
    let reference = artifact.reference.as_str();
    if artifact.kind.is_empty() || artifact.kind.len() > WORD || reference.len() > REFERENCE {
        return Err(format!(
            "`{}` is not an artifact: an artifact has a `type` of one word, and a `ref`",
            clean_excerpt(reference)
        ));
    }
    if let Some(stored) = Stored::parse_reference(reference) {
        return Ok(Meant::Stored(stored));
    }
    if let Some((kind, _)) = reference.strip_prefix("artifact://").and_then(|rest| rest.split_once('/'))
        && ArtifactKind::from_word(kind).is_none()
    {
        let kinds = ArtifactKind::ALL.map(|kind| format!("`{}`", kind.as_str())).join(", ");
        return Err(format!("there are no artifacts of kind `{}`: there are {kinds}", clean_excerpt(kind)));
    }
    let mut names = reference.split('/');
    let leaves = reference.starts_with('/') || reference.contains("://") || names.clone().any(|name| name == "..");
    if reference.is_empty() || leaves {
        return Err(format!(
            "`{}` lies outside the run: name `artifact://KIND/ID`, or a path relative to the workspace",
            clean_excerpt(reference)
        ));
    }
    if reference.chars().any(char::is_control) {
        return Err(format!(
            "`{}` contains control characters: name a file whose path has none",
            clean_excerpt(reference)
        ));
    }
    if names.any(|name| name.eq_ignore_ascii_case(".git")) {
        return Err(format!(
            "`{}` belongs to Git and cannot be sent: name a file of the working tree",
            clean_excerpt(reference)
        ));
    }
    Ok(Meant::File(reference))
}

/// The context pack of a reference.
fn parse_pack_reference(reference: &str) -> Result<Stored<'_>, String> {
    let stored = Stored::parse_reference(reference).filter(|stored| stored.kind == ArtifactKind::ContextPack);
    stored.ok_or_else(|| format!("`{}` is not a context pack: write `contextpack://pack/ID`", clean_excerpt(reference)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reference means, or the beginning of why it means nothing.
    fn check(reference: &str, expected: &str) {
        let artifact = Artifact { kind: "file".to_owned(), reference: reference.to_owned() };
        let told = match parse_artifact(&artifact) {
            Ok(Meant::Stored(stored)) => format!("{} {}", stored.kind.as_str(), stored.id),
            Ok(Meant::File(path)) => format!("file {path}"),
            Err(problem) => problem,
        };
        assert!(told.starts_with(expected), "{reference}: {told}");
    }

    #[test]
    fn a_reference_is_of_something_stored_or_a_path_that_stays_inside() {
        check("artifact://diff/4f1a", "diff 4f1a");
        check("artifact://contextpack/4f1a", "contextpack 4f1a");
        check("contextpack://pack/4f1a", "contextpack 4f1a");
        check("./src/parse.rs", "file ./src/parse.rs");
        check("artifact://nokind/aaaa", "there are no artifacts of kind `nokind`: there are `diff`, `log`, `prompt`,");
        for outside in ["", "/etc/passwd", "../x", "src/../../x", "file:///etc/passwd", "artifact://log/../../x"] {
            check(outside, &format!("`{outside}` lies outside the run"));
        }
        check("a\0b", "`ab` contains control characters");
        check("sub/.GIT/config", "`sub/.GIT/config` belongs to Git");
        check(".gitignore", "file .gitignore");
    }
}
