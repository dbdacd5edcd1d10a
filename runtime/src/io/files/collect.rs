//! Collects what an agent left in its folder when its turn is over.
//!
//! In: the folder, and how the turn ended. Out: how the attempt ended, its output, and what is recorded of the folder,
//! which is read-only from then on. Invariants: an agent that reports success has left what was asked for; nothing is
//! copied to the workspace before all of that holds.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use serde_json::Value;

use super::manifest::{AgentFiles, KeptFile};
use super::paths::{last_component, normalize_path};
use super::status::read_status;
use super::watch::MOST;
use super::workspace::{FileWorkspace, note_corrected};
use super::{FileWorkspaceSpec, MOST_OUTPUTS, READ, SUMMARY, Wanted, messages, replay, tree};
use crate::io::confine::Folder;
use crate::types::agent_status::AgentState;
use crate::types::event::Failure;
use crate::types::handoff::Operation;
use crate::types::user_request::StopLevel;

/// The problems that are told at most.
const TOLD: usize = 10;

/// What came of a turn by files.
#[derive(Debug)]
pub(crate) struct Collected {
    /// Why the attempt failed.
    pub failure: Option<Failure>,
    /// What it put out: the step's own output where that has a type, else the summary.
    pub output: Option<String>,
    /// None where the attempt was ended from outside: it starts again.
    pub left: Option<AgentFiles>,
    /// What its messages ask for.
    pub asked: Vec<Result<Operation, String>>,
    /// Files of its outbox, where they are to be kept.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Collected {
    /// Of an attempt that was ended from outside.
    fn for_cancelled() -> Collected {
        Collected {
            failure: Some(Failure::Cancelled),
            output: None,
            left: None,
            asked: Vec::new(),
            files: BTreeMap::new(),
        }
    }
}

impl FileWorkspace {
    /// Takes in what the agent left; `failure` is why its turn failed. `keeps` says whether files are to be kept.
    pub(crate) fn collect(
        self,
        file_workspace: &FileWorkspaceSpec,
        failure: Option<Failure>,
        keeps: bool,
    ) -> Collected {
        let root = self.root.try_clone().ok().filter(|_| keeps);
        let mut collected = self.inspect_folder(file_workspace, failure);
        let outbox = root.and_then(|root| tree::open_folder(root.as_fd(), "outbox").ok());
        if let (Some(outbox), Some(left)) = (outbox, &collected.left) {
            let read = |path: &str| Some((path.to_owned(), tree::read(outbox.as_fd(), path, READ).ok()?));
            collected.files = replay::select_recorded(file_workspace, left).filter_map(read).collect();
        }
        collected
    }

    /// What comes of a folder that was laid out as a recording has it: the output, or why there is none.
    pub(super) fn collect_again(
        root: &OwnedFd,
        file_workspace: &FileWorkspaceSpec,
        left: &mut AgentFiles,
    ) -> (Option<String>, Option<Failure>) {
        let output = match tree::open_folder(root.as_fd(), "outbox") {
            Ok(outbox) => accept_outputs(file_workspace, &outbox, None, left),
            Err(problem) => {
                left.problems.push(problem);
                None
            }
        };
        match left.problems.is_empty() {
            true => (output, None),
            false => (None, Some(make_failure(&left.problems))),
        }
    }

    fn inspect_folder(mut self, file_workspace: &FileWorkspaceSpec, failure: Option<Failure>) -> Collected {
        let mut left =
            AgentFiles { folder: file_workspace.name.clone(), inbox: self.inbox.clone(), ..AgentFiles::default() };
        // From here on nothing watches the folder: what it holds is taken as final.
        let mut seen = std::mem::take(&mut self.watch).end();
        if seen.overflow.is_none() {
            // The folder may have grown since it was weighed last.
            seen.check_size(&self.root, MOST);
        }
        if let Some(overflow) = seen.overflow {
            left.problems.push(overflow);
            return self.close(file_workspace, Some(make_failure(&left.problems)), None, left);
        }
        if failure == Some(Failure::Cancelled) {
            return Collected::for_cancelled();
        }
        if file_workspace.mends {
            let failure =
                failure.or_else(|| self.note_corrected(file_workspace).err().map(|problem| make_failure(&[problem])));
            return self.close(file_workspace, failure, None, left);
        }
        // Before anything is believed that the folder says.
        let tampered = self.find_tampering();
        if self.is_stopped() {
            return Collected::for_cancelled();
        }
        left.problems.clone_from(&tampered);
        match read_status(self.root.as_fd()) {
            Ok(mut status) => {
                seen.note_state(status.state);
                seen.set_times(&mut status);
                left.status = Some(status);
            }
            Err(problem) => left.problems.push(format!("`status.json` cannot be read at the end: {problem}")),
        }
        left.problems.extend(seen.wrong);
        self.list_outbox(&mut left);
        if self.is_stopped() {
            return Collected::for_cancelled();
        }
        let state = left.status.as_ref().map(|status| status.state);
        let failure = match (failure, state) {
            _ if !tampered.is_empty() => Some(make_failure(&left.problems)),
            // What the agent says of its failure tells more than how its program ended.
            (Some(Failure::Exit | Failure::Agent { .. }) | None, Some(AgentState::Failed)) => {
                Some(self.agent_failure(file_workspace, &left))
            }
            (Some(failure), _) => Some(failure),
            (None, _) => None,
        };
        if failure.is_some() {
            return self.close(file_workspace, failure, None, left);
        }
        let outbox = tree::open_folder(self.root.as_fd(), "outbox").ok();
        let output =
            outbox.and_then(|outbox| accept_outputs(file_workspace, &outbox, Some(&self.workspace), &mut left));
        match left.problems.is_empty() {
            true => self.close(file_workspace, None, output, left),
            false => self.close(file_workspace, Some(make_failure(&left.problems)), None, left),
        }
    }

    /// Whether the attempt is to end: the runner then does not read a long file to its end.
    fn is_stopped(&self) -> bool {
        matches!(self.cancel.requested_level(), Some(StopLevel::Stop | StopLevel::Kill))
    }

    /// The digest of a file, of `most` bytes, and its length, one more where it has more.
    fn digest_file(&self, root: BorrowedFd<'_>, path: &str, most: u64) -> Result<(String, u64), String> {
        let (file, _) = tree::open_file(root, path)?;
        let goes_on = |_: &[u8]| match self.is_stopped() {
            true => Err(std::io::Error::other("the run was stopped meanwhile")),
            false => Ok(()),
        };
        // One byte more, by which a file that has grown meanwhile is found out.
        tree::digest_of(file.take(most + 1), goes_on).map_err(|error| format!("`{path}` cannot be read: {error}"))
    }

    /// Says what a turn that was to mend has corrected, for the attempt after it.
    fn note_corrected(&self, file_workspace: &FileWorkspaceSpec) -> Result<(), String> {
        let inbox = tree::open_folder(self.root.as_fd(), "inbox")?;
        let mut changed = Vec::new();
        for kept in &self.inbox {
            let (digest, _) = self.digest_file(inbox.as_fd(), &kept.path, kept.bytes.max(file_workspace.copied))?;
            if digest != kept.digest {
                changed.push(kept.path.clone());
            }
        }
        note_corrected(&file_workspace.folder, &changed)
    }

    /// No process changes the folder any more.
    fn close(
        self,
        file_workspace: &FileWorkspaceSpec,
        failure: Option<Failure>,
        output: Option<String>,
        left: AgentFiles,
    ) -> Collected {
        let asked = match &file_workspace.messages {
            Some(post) if failure.is_none() && !file_workspace.mends => {
                messages::read_operations(self.root.as_fd(), &file_workspace.brief.task, post)
            }
            _ => Vec::new(),
        };
        tree::set_writable(self.root.as_fd(), false);
        Collected { failure, output, left: Some(left), asked, files: BTreeMap::new() }
    }

    /// What of that which is not the agent's was changed.
    fn find_tampering(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let inbox = match tree::open_folder(self.root.as_fd(), "inbox") {
            Ok(inbox) => inbox,
            Err(problem) => return vec![problem],
        };
        let mut check =
            |root: BorrowedFd<'_>, kept: &KeptFile, name: &str| match self.digest_file(root, &kept.path, kept.bytes) {
                Ok((digest, _)) if digest == kept.digest => {}
                Ok(_) => problems.push(format!("the agent changed `{name}{}`, which is read-only", kept.path)),
                Err(problem) => problems.push(format!("the agent changed its inputs: in `{name}`, {problem}")),
            };
        check(self.root.as_fd(), &self.skill, "");
        self.inbox.iter().for_each(|kept| check(inbox.as_fd(), kept, "inbox/"));
        // An input can lie in a folder of its own, which counts as well.
        match tree::list(inbox.as_fd(), "inbox", self.inbox.len() * 2 + MOST_OUTPUTS) {
            Err(problem) => problems.push(problem),
            Ok(listing) => {
                problems.extend(listing.wrong.iter().map(|wrong| format!("the agent changed its inbox: {wrong}")));
                let is_new = |path: &str| !self.inbox.iter().any(|kept| kept.path == path);
                let new = listing.found.iter().filter(|found| !found.is_folder && is_new(&found.path));
                problems
                    .extend(new.map(|found| format!("the agent wrote `inbox/{}`: its inbox is read-only", found.path)));
            }
        }
        problems
    }

    /// Lists the outbox.
    fn list_outbox(&self, left: &mut AgentFiles) {
        let listing = tree::open_folder(self.root.as_fd(), "outbox")
            .and_then(|outbox| Ok((tree::list(outbox.as_fd(), "outbox", MOST_OUTPUTS)?, outbox)));
        let (listing, outbox) = match listing {
            Ok(listed) => listed,
            Err(problem) => return left.problems.push(problem),
        };
        left.problems.extend(listing.wrong);
        if listing.is_cut {
            left.problems.push(format!("`outbox/` holds more than {MOST_OUTPUTS} files and folders"));
        }
        // Holes take no room on the disk, and as long to read as what does.
        let bytes = listing.found.iter().fold(0, |sum: u64, found| sum.saturating_add(found.bytes));
        if bytes > MOST.bytes {
            return left.problems.push(format!("`outbox/` holds more than {} MiB", MOST.bytes >> 20));
        }
        for found in listing.found.into_iter().filter(|found| !found.is_folder) {
            match self.digest_file(outbox.as_fd(), &found.path, found.bytes) {
                // A process that left the group may still write.
                Ok((_, bytes)) if bytes != found.bytes => {
                    left.problems.push(format!("`outbox/{}` was changed while it was collected", found.path));
                }
                Ok((digest, bytes)) => left.outbox.push(KeptFile { path: found.path, bytes, digest }),
                Err(problem) => left.problems.push(problem),
            }
        }
    }

    /// The agent says that it failed.
    fn agent_failure(&self, file_workspace: &FileWorkspaceSpec, left: &AgentFiles) -> Failure {
        let status = left.status.clone().unwrap_or_default();
        let report = "error_report.md";
        let mut message = status.describe_trouble();
        match left.outbox.iter().any(|kept| kept.path == report) {
            true => {
                let path = file_workspace.folder.join("outbox").join(report);
                message.push_str(&format!("; its report: {}", path.display()));
            }
            false => message.push_str("; it left no report in `outbox/error_report.md`"),
        }
        Failure::Files { message, lasting: status.is_lasting() }
    }
}

/// The agent says that it is done: what was asked for is there, goes to the workspace where there is one, and gives the
/// output.
fn accept_outputs(
    file_workspace: &FileWorkspaceSpec,
    outbox: &OwnedFd,
    workspace: Option<&Path>,
    left: &mut AgentFiles,
) -> Option<String> {
    match left.status.as_ref().map(|status| status.state) {
        Some(AgentState::Completed) | None => {}
        Some(state) => left.problems.push(format!(
            "the turn is over, but `status.json` says `{}`: it must say `completed` when the work is in `outbox/`",
            state.as_str()
        )),
    }
    let mut output = None;
    for (position, wanted) in file_workspace.outputs.iter().enumerate() {
        let Some(path) = find_output(wanted, left) else { continue };
        let primary = file_workspace.primary.as_ref().filter(|_| position == 0);
        for shape in wanted.shape.iter().chain(primary) {
            match read_json(outbox.as_fd(), &path)
                .and_then(|value| shape.parse_computed(value).map_err(|wrong| wrong.join("; ")))
            {
                Ok(value) if position == 0 && file_workspace.primary.is_some() => output = Some(value),
                Ok(_) => {}
                Err(problem) => left.problems.push(format!("`outbox/{path}` is not of its type: {problem}")),
            }
        }
    }
    let summary = read_summary(outbox, left);
    if left.outbox.iter().any(|kept| kept.path == "metadata.json")
        && let Err(problem) = read_json(outbox.as_fd(), "metadata.json")
    {
        left.problems.push(format!("`outbox/metadata.json`: {problem}"));
    }
    if !left.problems.is_empty() {
        return None;
    }
    if let Some(Err(problem)) = workspace.map(|workspace| hand_on(file_workspace, outbox, workspace, left)) {
        left.problems.push(problem);
    }
    output.or(summary)
}

fn read_summary(outbox: &OwnedFd, left: &mut AgentFiles) -> Option<String> {
    if !left.outbox.iter().any(|kept| kept.path == SUMMARY) {
        left.problems.push(format!("there is no `outbox/{SUMMARY}`, which is required"));
        return None;
    }
    match tree::read(outbox.as_fd(), SUMMARY, READ) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(problem) => {
            left.problems.push(problem);
            None
        }
    }
}

/// The path of an output that is there; of one that is missing, and required, a problem.
fn find_output(wanted: &Wanted, left: &mut AgentFiles) -> Option<String> {
    let path = normalize_path(&wanted.path).ok()?;
    let is_folder = wanted.path.ends_with('/');
    let is_there = match is_folder {
        true => left.files_under(&path).any(|kept| kept.path != path),
        false => left.outbox.iter().any(|kept| kept.path == path),
    };
    if !is_there && wanted.required {
        let what = if is_folder { format!("no file in `outbox/{path}/`") } else { format!("no `outbox/{path}`") };
        left.problems.push(format!("there is {what}, which is required"));
    }
    (is_there && !(is_folder && wanted.shape.is_some())).then_some(path)
}

/// The JSON of a file.
fn read_json(outbox: BorrowedFd<'_>, path: &str) -> Result<Value, String> {
    let bytes = tree::read(outbox, path, READ)?;
    serde_json::from_slice(&bytes).map_err(|error| format!("it is no JSON ({error})"))
}

/// Copies outputs to the workspace, each file whole or not at all.
fn hand_on(
    file_workspace: &FileWorkspaceSpec,
    outbox: &OwnedFd,
    workspace: &Path,
    left: &mut AgentFiles,
) -> Result<(), String> {
    if file_workspace.outputs.iter().all(|output| output.copy_to.is_none()) {
        return Ok(());
    }
    let folder = Folder::open(workspace)?;
    let mut copied = Vec::new();
    for output in &file_workspace.outputs {
        let Some(target) = &output.copy_to else { continue };
        let path = normalize_path(&output.path)?;
        let is_folder = output.path.ends_with('/');
        let into = target.ends_with('/') || !is_folder && folder.folder(target).is_ok();
        let target = target.trim_end_matches('/');
        for kept in left.files_under(&path) {
            let place = match (is_folder, into) {
                (true, _) => format!("{target}{}", &kept.path[path.len()..]),
                (false, true) => format!("{target}/{}", last_component(&path)),
                (false, false) => target.to_owned(),
            };
            copy_output(outbox, kept, &folder, &place)?;
            copied.push(place);
        }
    }
    left.copied = copied;
    Ok(())
}

fn copy_output(outbox: &OwnedFd, kept: &KeptFile, folder: &Folder, place: &str) -> Result<(), String> {
    let (from, _) = tree::open_file(outbox.as_fd(), &kept.path)?;
    let mut digest = String::new();
    // Copied and digested in one pass: what is compared with the listing are the bytes that were written.
    let put = folder.put(place, |mut file| {
        (digest, _) = tree::digest_of((&from).take(kept.bytes + 1), |piece| file.write_all(piece))?;
        match digest == kept.digest {
            true => Ok(()),
            false => Err(std::io::Error::other("it was changed while it was collected")),
        }
    });
    put.map(|_| ()).map_err(|problem| format!("`outbox/{}` is not copied: {problem}", kept.path))
}

fn make_failure(problems: &[String]) -> Failure {
    let mut told: Vec<&str> = problems.iter().take(TOLD).map(String::as_str).collect();
    let more = format!("and {} more", problems.len().saturating_sub(TOLD));
    if problems.len() > TOLD {
        told.push(&more);
    }
    Failure::Files { message: told.join("; "), lasting: false }
}
