//! Lays out a recorded folder again in a replay, for people to see, and collects it again.
//!
//! In: what the agent was given and left then. Out: the outcome now. Invariants: no input is read and nothing is
//! copied to the workspace, for in a replay no agent works; what the runner itself writes is written as the spec has it
//! now.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::collect::Collected;
use super::instructions::{self, Input};
use super::manifest::{AgentFiles, KeptFile};
use super::paths::{lies_in, normalize_path};
use super::workspace::{FileWorkspace, OURS, SKILL, create_file, describe_io_error};
use super::{FileWorkspaceSpec, MOST_OUTPUTS, READ, SUMMARY, tree};
use crate::io::home::create_private;
use crate::types::agent_status;
use crate::types::event::Failure;

/// The bytes that are kept of files that no spec asks for.
const FURTHER: u64 = 16 * 1024 * 1024;

/// What became of an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Laying {
    /// Where it lies in the inbox; none where it was not copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Where it lies outside.
    pub source: String,
    pub bytes: u64,
    /// Whether it was not there, which it may be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
}

/// What was laid out before a turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Given {
    pub inputs: Vec<Laying>,
    /// The texts that the runner wrote, by their paths in the folder.
    pub told: BTreeMap<String, String>,
}

/// A folder as a recording has it.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    pub given: Given,
    /// What was collected; none where the attempt was ended from outside.
    pub left: Option<AgentFiles>,
    /// Files of the outbox, those that are kept.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Why the attempt failed when that was collected.
    pub failure: Option<Failure>,
}

impl Remains {
    /// What the runner would write into the folder now, the inputs being what they were; or what is wrong with those.
    pub(crate) fn rebuild_texts(&self, file_workspace: &FileWorkspaceSpec) -> Result<BTreeMap<String, String>, String> {
        let (known, now) = (self.given.inputs.len(), file_workspace.inputs.len());
        if known != now {
            return Err(format!("it had {known} inputs in the recording, but has {now} now"));
        }
        let laid = |(given, laying): (_, &Laying)| Input {
            given,
            place: laying.place.clone(),
            source: laying.source.clone(),
            bytes: laying.bytes,
            absent: laying.absent,
        };
        let laid: Vec<Input<'_>> = file_workspace.inputs.iter().zip(&self.given.inputs).map(laid).collect();
        Ok(render_texts(file_workspace, &laid))
    }

    /// Lays the folder out with what was left in it, and collects that. `failure` is why the turn failed.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn collect(
        self,
        file_workspace: &FileWorkspaceSpec,
        texts: &BTreeMap<String, String>,
        failure: Option<Failure>,
    ) -> Result<Collected, String> {
        let Some(mut left) = self.left else {
            return Ok(Collected { failure, output: None, left: None, asked: Vec::new(), files: BTreeMap::new() });
        };
        left.folder.clone_from(&file_workspace.name);
        let put = |path: &str, bytes: &[u8]| -> Result<KeptFile, String> {
            let target = file_workspace.folder.join(path);
            let above = target.parent().unwrap_or(Path::new("/"));
            create_private(above, true).map_err(|error| describe_io_error("made", above, &error))?;
            let (digest, bytes) = create_file(&target, 0o400, &mut &*bytes)?;
            Ok(KeptFile { path: path.to_owned(), bytes, digest })
        };
        for (path, text) in texts {
            let written = put(path, text.as_bytes())?;
            // `SKILL.md` lies beside the inbox, in which there may be another one.
            let inner = path.strip_prefix("inbox/");
            if let Some(kept) = left.inbox.iter_mut().find(|kept| Some(kept.path.as_str()) == inner) {
                *kept = KeptFile { path: kept.path.clone(), ..written };
            }
        }
        create_private(&file_workspace.folder.join("outbox"), true)
            .map_err(|error| describe_io_error("made", &file_workspace.folder, &error))?;
        for (path, bytes) in &self.files {
            let written = put(&format!("outbox/{path}"), bytes)?;
            if let Some(kept) = left.outbox.iter_mut().find(|kept| kept.path == *path) {
                *kept = KeptFile { path: kept.path.clone(), ..written };
            }
        }
        let said = left.status.as_ref().map_or_else(agent_status::render_pending, |status| {
            serde_json::to_string_pretty(status)
                .map_or_else(|_| agent_status::render_pending(), |text| format!("{text}\n"))
        });
        put("status.json", said.as_bytes())?;
        let root = tree::open_root(&file_workspace.folder)
            .map_err(|error| describe_io_error("opened", &file_workspace.folder, &error))?;
        let mut collected = Collected {
            failure: self.failure.or(failure),
            output: None,
            left: None,
            asked: Vec::new(),
            files: BTreeMap::new(),
        };
        if collected.failure.is_none() && !file_workspace.mends {
            (collected.output, collected.failure) = FileWorkspace::collect_again(&root, file_workspace, &mut left);
        }
        tree::set_writable(root.as_fd(), false);
        collected.left = Some(left);
        Ok(collected)
    }
}

/// The texts that the runner writes into a folder.
pub(super) fn render_texts(file_workspace: &FileWorkspaceSpec, laid: &[Input<'_>]) -> BTreeMap<String, String> {
    let inbox = [
        (OURS[0], Some(instructions::render_instructions(file_workspace, laid))),
        (OURS[1], instructions::render_dependencies(file_workspace, laid)),
        (OURS[2], instructions::render_references(laid)),
    ];
    let inbox = inbox.into_iter().filter_map(|(name, text)| Some((format!("inbox/{name}"), text?)));
    let skill = file_workspace.skill.clone().unwrap_or_else(|| instructions::render_skill(file_workspace));
    inbox.chain([(SKILL.to_owned(), skill)]).collect()
}

/// The files of an outbox that are kept with what is recorded: those that a spec asks for, and of others what is small.
pub(super) fn select_recorded<'l>(
    file_workspace: &FileWorkspaceSpec,
    left: &'l AgentFiles,
) -> impl Iterator<Item = &'l str> {
    let wanted: Vec<String> =
        file_workspace.outputs.iter().filter_map(|output| normalize_path(&output.path).ok()).collect();
    let mut room = FURTHER;
    left.outbox.iter().filter_map(move |kept| {
        let is_wanted = kept.path == SUMMARY || wanted.iter().any(|path| lies_in(&kept.path, path));
        if kept.bytes > READ || !is_wanted && kept.bytes > room {
            return None;
        }
        room -= if is_wanted { 0 } else { kept.bytes };
        Some(kept.path.as_str())
    })
}

/// What is wrong with the paths that a recording says lay in a folder.
pub(crate) fn find_path_problem<'p>(
    given: impl IntoIterator<Item = &'p String>,
    left: Option<&AgentFiles>,
    files: impl IntoIterator<Item = &'p String>,
) -> Option<String> {
    let ours = |path: &str| path == SKILL || OURS.iter().any(|name| path.strip_prefix("inbox/") == Some(name));
    if let Some(path) = given.into_iter().find(|path| !ours(path)) {
        return Some(format!("the runner does not write `{}`", crate::types::visible_text::shown(path)));
    }
    let none = AgentFiles::default();
    let left = left.unwrap_or(&none);
    let [outbox, inbox] = [&left.outbox, &left.inbox].map(|kept| kept.iter().map(|kept| kept.path.as_str()));
    for path in outbox.clone().chain(inbox.clone()).chain(left.copied.iter().map(String::as_str)) {
        match normalize_path(path) {
            Ok(plain) if plain == *path => {}
            Ok(_) => return Some(format!("`{}` is no plain path", crate::types::visible_text::shown(path))),
            Err(problem) => return Some(problem),
        }
    }
    if let Some(kept) = left
        .outbox
        .iter()
        .chain(&left.inbox)
        .find(|kept| kept.digest.len() != 64 || !kept.digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
    {
        return Some(format!("`{}` has no digest", crate::types::visible_text::shown(&kept.path)));
    }
    if left.outbox.len() > MOST_OUTPUTS {
        return Some(format!("`outbox/` holds more than {MOST_OUTPUTS} files and folders"));
    }
    for paths in [outbox.collect::<Vec<&str>>(), inbox.collect()] {
        if let Some(path) = find_duplicate(paths) {
            return Some(format!(
                "`{}` is there twice, or a file and a folder",
                crate::types::visible_text::shown(path)
            ));
        }
    }
    let mut known: Vec<&str> = left.outbox.iter().map(|kept| kept.path.as_str()).collect();
    known.sort_unstable();
    let strange = files.into_iter().find(|path| known.binary_search(&path.as_str()).is_err());
    strange.map(|path| format!("`{}` was not collected", crate::types::visible_text::shown(path)))
}

/// A path that is there twice, or lies in another one.
fn find_duplicate(mut paths: Vec<&str>) -> Option<&str> {
    // With `/` before all others, what lies in a path comes right behind it.
    let parts = |path: &&str| path.split('/').map(str::to_owned).collect::<Vec<String>>();
    paths.sort_by_cached_key(parts);
    paths.windows(2).find(|pair| lies_in(pair[1], pair[0])).map(|pair| pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(paths: &[&str]) -> AgentFiles {
        let kept = |path: &&str| KeptFile { path: (*path).to_owned(), bytes: 1, digest: "a".repeat(64) };
        AgentFiles { outbox: paths.iter().map(kept).collect(), ..AgentFiles::default() }
    }

    #[test]
    fn what_a_recording_says_of_a_folder_leads_nowhere_else() {
        let of = |paths: &[&str], files: &[&str]| {
            let files: Vec<String> = files.iter().map(|path| (*path).to_owned()).collect();
            find_path_problem([], Some(&left(paths)), &files)
        };
        assert_eq!(of(&["a", "a-b", "b/c", "b/d/e"], &["b/c"]), None);
        for wrong in ["../a", "/a", "a/../b", "a//b", "a/", "", "a\nb", "a\\b"] {
            assert!(of(&[wrong], &[]).is_some(), "{wrong}");
        }
        for wrong in [["a", "a"], ["a", "a/b"], ["a/b/c", "a"]] {
            assert!(of(&wrong, &[]).unwrap().contains("twice"), "{wrong:?}");
        }
        assert!(of(&["a"], &["b"]).unwrap().contains("was not collected"));
        assert!(
            find_path_problem([&"inbox/../x".to_owned()], None, []).unwrap().contains("the runner does not write `")
        );
        let many: Vec<String> = (0..=MOST_OUTPUTS).map(|number| format!("f{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(of(&many, &[]).unwrap().contains("holds more than"));
    }
}
