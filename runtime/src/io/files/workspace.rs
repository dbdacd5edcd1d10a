//! Lays out the folder of an attempt before its turn.
//!
//! In: a [`FileWorkspaceSpec`]. Out: the folder with everything that the protocol names, opened, and the digests of
//! what must not change. Invariants: a folder of a killed runner is kept aside, and never written into; only regular
//! files are copied.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::instructions::Input;
use super::manifest::KeptFile;
use super::paths::{last_component, normalize_path};
use super::watch::Watch;
use super::{FileWorkspaceSpec, Given, MOST_OUTPUTS, Maker, READ, replay, tree};
use crate::io::confine::Folder;
use crate::io::home::create_private;
use crate::types::agent_status;
use crate::types::cancel::Cancel;
use crate::types::visible_text::shown;

/// What the inbox has of its own.
pub(super) const OURS: [&str; 3] = ["instructions.md", "dependencies.json", "references.json"];

/// What the agent is told to be able to do.
pub(super) const SKILL: &str = "SKILL.md";

/// Where a turn that mends says what it corrected, beside its folder.
const CORRECTED: &str = "corrected.json";

/// A folder that was laid out.
#[derive(Debug)]
pub(crate) struct FileWorkspace {
    pub(super) root: OwnedFd,
    /// What was put into `inbox/`, by path, and `SKILL.md`.
    pub(super) inbox: Vec<KeptFile>,
    pub(super) skill: KeptFile,
    pub(super) watch: Watch,
    pub(super) cancel: Arc<Cancel>,
    /// Where files of the workspace lie.
    pub(super) workspace: PathBuf,
    /// What the agent was given, for a recording.
    pub(crate) given: replay::Given,
}

/// What is known of a folder that was laid out, as a file has it.
#[derive(Serialize, Deserialize)]
struct SavedLayout {
    inbox: Vec<KeptFile>,
    skill: KeptFile,
    given: replay::Given,
}

impl FileWorkspace {
    /// Keeps in a file what was laid out, for a runner that comes back to the turn.
    ///
    /// # Errors
    /// It cannot be written: says why.
    pub(crate) fn keep(&self, file: &Path) -> Result<(), String> {
        let laid = SavedLayout { inbox: self.inbox.clone(), skill: self.skill.clone(), given: self.given.clone() };
        let text = serde_json::to_vec(&laid).map_err(|error| error.to_string())?;
        let folder = file.parent().expect("it lies in a folder");
        create_private(folder, true)
            .and_then(|()| std::fs::write(file, text))
            .map_err(|error| describe_io_error("written", file, &error))
    }

    /// The folder that a former runner laid out and the agent works in; `kept` is the file of [`FileWorkspace::keep`].
    ///
    /// # Errors
    /// It is not there any more: says so.
    pub(crate) fn come_back(
        file_workspace: &FileWorkspaceSpec,
        workspace: PathBuf,
        cancel: &Arc<Cancel>,
        kept: &Path,
    ) -> Result<FileWorkspace, String> {
        let text = std::fs::read(kept).map_err(|error| describe_io_error("read", kept, &error))?;
        let laid = serde_json::from_slice(&text).map_err(|error| format!("`{}`: {error}", kept.display()))?;
        let SavedLayout { inbox, skill, given } = laid;
        let root = tree::open_root(&file_workspace.folder)
            .map_err(|error| describe_io_error("opened", &file_workspace.folder, &error))?;
        let watch = Watch::start(&root, cancel)?;
        Ok(FileWorkspace { root, inbox, skill, watch, cancel: Arc::clone(cancel), workspace, given })
    }

    /// Lays the folder out; `workspace` is where the job's files lie.
    ///
    /// # Errors
    /// Something that it needs is not there, or it cannot be made: says what.
    pub(crate) fn lay_out(
        file_workspace: &FileWorkspaceSpec,
        workspace: PathBuf,
        cancel: &Arc<Cancel>,
    ) -> Result<FileWorkspace, String> {
        keep_aside(&file_workspace.folder)?;
        let made = |path: &Path| create_private(path, true).map_err(|error| describe_io_error("made", path, &error));
        for name in ["inbox", "outbox", "workspace"] {
            made(&file_workspace.folder.join(name))?;
        }
        let root = tree::open_root(&file_workspace.folder)
            .map_err(|error| describe_io_error("opened", &file_workspace.folder, &error))?;
        let mut inbox = Inbox { file_workspace, folder: file_workspace.folder.join("inbox"), kept: Vec::new() };
        let corrected = file_workspace.mended.as_deref().map(read_corrected).unwrap_or_default();
        let mut laid = Vec::new();
        for given in &file_workspace.inputs {
            laid.push(inbox.lay_input(given, &workspace, &corrected)?);
        }
        let told = replay::render_texts(file_workspace, &laid);
        for name in OURS {
            if let Some(text) = told.get(&format!("inbox/{name}")) {
                inbox.write_file(name, &mut text.as_bytes())?;
            }
        }
        let kept = inbox.kept;
        let skill = create_file(&file_workspace.folder.join(SKILL), 0o400, &mut told[SKILL].as_bytes())
            .map(|(digest, bytes)| KeptFile { path: SKILL.to_owned(), bytes, digest })?;
        let laying =
            |Input { place, source, bytes, absent, .. }: Input<'_>| replay::Laying { place, source, bytes, absent };
        let given = replay::Given { inputs: laid.into_iter().map(laying).collect(), told };
        create_file(&file_workspace.folder.join("status.json"), 0o600, &mut agent_status::render_pending().as_bytes())?;
        if let Some(messages) = &file_workspace.messages {
            let folder = file_workspace.folder.join("messages");
            made(&folder)?;
            for (name, text) in &messages.found {
                create_file(&folder.join(name), 0o600, &mut text.as_bytes())?;
            }
        }
        // A turn that mends may correct its inputs. For all others the inbox closes once it is full.
        if !file_workspace.mends {
            tree::set_writable(tree::open_folder(root.as_fd(), "inbox")?.as_fd(), false);
        }
        let watch = Watch::start(&root, cancel)?;
        Ok(FileWorkspace { root, inbox: kept, skill, watch, cancel: Arc::clone(cancel), workspace, given })
    }
}

/// Writes down what the turn whose folder this is has corrected.
pub(super) fn note_corrected(folder: &Path, changed: &[String]) -> Result<(), String> {
    let text = serde_json::to_string(changed).expect("paths are JSON");
    create_file(&folder.join(CORRECTED), 0o600, &mut text.as_bytes()).map(|_| ())
}

/// What the turn whose folder this is corrected.
fn read_corrected(folder: &Path) -> Vec<(String, PathBuf)> {
    let read = || -> Option<Vec<String>> {
        let root = tree::open_root(folder).ok()?;
        serde_json::from_slice(&tree::read(root.as_fd(), CORRECTED, READ).ok()?).ok()
    };
    // The agent can write to this folder, so a path that leads out of the inbox counts for nothing.
    let paths = read().unwrap_or_default().into_iter().filter(|path| normalize_path(path).as_deref() == Ok(path));
    paths.map(|path| (path, folder.to_owned())).collect()
}

/// The folder of a killed runner's attempt goes aside: a person may want to see it.
fn keep_aside(folder: &Path) -> Result<(), String> {
    if !folder.exists() {
        return Ok(());
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 1..=10_000 {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let aside = folder.with_file_name(format!("{name}.before{number}"));
        if !aside.exists() {
            return std::fs::rename(folder, &aside).map_err(|error| describe_io_error("kept aside", folder, &error));
        }
    }
    Err(format!("`{}` cannot be kept aside: there are too many of them", folder.display()))
}

/// The inbox while it is filled.
struct Inbox<'d> {
    file_workspace: &'d FileWorkspaceSpec,
    folder: PathBuf,
    kept: Vec<KeptFile>,
}

impl Inbox<'_> {
    /// Puts an input where it belongs.
    fn lay_input<'g>(
        &mut self,
        given: &'g Given,
        workspace: &Path,
        corrected: &[(String, PathBuf)],
    ) -> Result<Input<'g>, String> {
        let path = normalize_path(&given.path).map_err(|problem| format!("an input has no path: {problem}"))?;
        let place = match given.folder.as_str() {
            "" => last_component(&path).to_owned(),
            folder => format!("{folder}/{}", last_component(&path)),
        };
        let is_folder = given.path.ends_with('/');
        if given.optional && self.is_absent(given, workspace, &path) {
            return Ok(Input { given, place: None, source: String::new(), bytes: 0, absent: true });
        }
        let found = match &given.from {
            Some(maker) => self.find_collected(maker, &path, is_folder)?,
            None => in_workspace(workspace, &path, is_folder)?,
        };
        let bytes = found.files.iter().map(|(_, bytes, _)| bytes).sum();
        let slash = if is_folder { "/" } else { "" };
        let source = format!("{}{slash}", found.source.display());
        let most = self.file_workspace.copied;
        if given.reference || !found.can_copy || bytes > most {
            return Ok(Input { given, place: None, source, bytes, absent: false });
        }
        if OURS.iter().any(|ours| super::paths::lies_in(&place, ours)) {
            return Err(format!("`inbox/{place}` is the runner's: give the input a `copy-to` of its own"));
        }
        if is_folder {
            let path = self.folder.join(&place);
            create_private(&path, true).map_err(|error| describe_io_error("made", &path, &error))?;
        }
        for (inner, _, digest) in found.files {
            let target = if inner.is_empty() { place.clone() } else { format!("{place}/{inner}") };
            if let Some((_, folder)) = corrected.iter().find(|(path, _)| *path == target) {
                let root = tree::open_root(folder).map_err(|error| describe_io_error("opened", folder, &error))?;
                let inbox = tree::open_folder(root.as_fd(), "inbox")?;
                let bytes = tree::read(inbox.as_fd(), &target, most)?;
                self.write_file(&target, &mut bytes.as_slice())?;
                continue;
            }
            // Whatever it has become meanwhile.
            let mut file = found.origin.open(&inner)?.take(most + 1);
            let written = self.write_file(&target, &mut file)?;
            if self.kept.last().is_some_and(|kept| kept.bytes > most) {
                return Err(format!("`{}` grew while it was copied", given.path));
            }
            if digest.is_some_and(|digest| digest != written) {
                let maker = given.from.as_ref().map_or("", |maker| &maker.agent);
                return Err(format!("`{}` of `{maker}` has changed since it was collected", given.path));
            }
        }
        Ok(Input { given, place: Some(format!("{place}{slash}")), source, bytes, absent: false })
    }

    /// Whether nothing lies where an input should. What is there and cannot be given is another matter.
    fn is_absent(&self, given: &Given, workspace: &Path, path: &str) -> bool {
        match &given.from {
            Some(maker) => maker.left.files_under(path).next().is_none(),
            None => {
                workspace.join(path).symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
            }
        }
    }

    /// What another step left.
    fn find_collected(&self, maker: &Maker, path: &str, is_folder: bool) -> Result<Source, String> {
        let kept: Vec<&KeptFile> = maker.left.files_under(path).collect();
        let exact = kept.iter().any(|kept| kept.path == path);
        if kept.is_empty() || !is_folder && !exact {
            return Err(format!("`{}` left no `outbox/{}`", maker.agent, shown(path)));
        }
        let inner = |kept: &KeptFile| kept.path[path.len()..].trim_start_matches('/').to_owned();
        let files = kept.iter().map(|kept| (inner(kept), kept.bytes, Some(kept.digest.clone()))).collect();
        let folder = self.file_workspace.run.join(&maker.left.folder);
        let root = tree::open_root(&folder).map_err(|error| describe_io_error("opened", &folder, &error))?;
        let outbox = tree::open_folder(root.as_fd(), "outbox")?;
        let source = folder.join("outbox").join(path);
        Ok(Source { files, source, origin: Origin::Kept(outbox, path.to_owned()), can_copy: true })
    }

    /// Writes a file of the inbox, and says its digest.
    fn write_file(&mut self, path: &str, from: &mut dyn Read) -> Result<String, String> {
        let target = self.folder.join(path);
        if let Some(above) = target.parent() {
            create_private(above, true).map_err(|error| describe_io_error("made", above, &error))?;
        }
        let (digest, bytes) = create_file(&target, 0o600, from)?;
        self.kept.push(KeptFile { path: path.to_owned(), bytes, digest: digest.clone() });
        Ok(digest)
    }
}

/// Where an input comes from.
struct Source {
    /// Its files: their paths in it (empty: itself), their lengths, and their digests where they are known.
    files: Vec<(String, u64, Option<String>)>,
    source: PathBuf,
    origin: Origin,
    /// There are no more files than are copied, and nothing else than files.
    can_copy: bool,
}

enum Origin {
    /// An outbox, and a path in it.
    Kept(OwnedFd, String),
    /// The workspace, and a path in it.
    Workspace(Folder, String),
}

impl Origin {
    fn open(&self, inner: &str) -> Result<File, String> {
        let full = |path: &str| if inner.is_empty() { path.to_owned() } else { format!("{path}/{inner}") };
        match self {
            Origin::Kept(outbox, path) => tree::open_file(outbox.as_fd(), &full(path)).map(|(file, _)| file),
            Origin::Workspace(folder, path) => folder.file(&full(path)).map(|(file, _)| file),
        }
    }
}

/// A file or folder of the workspace.
fn in_workspace(workspace: &Path, path: &str, is_folder: bool) -> Result<Source, String> {
    let folder = Folder::open(workspace)?;
    let source = workspace.join(path);
    let missing = |problem: String| format!("the input `{path}` cannot be given: {problem}");
    let (files, can_copy) = if is_folder {
        let opened = folder.folder(path).map_err(missing)?;
        let listing = tree::list(opened.as_fd(), path, MOST_OUTPUTS)?;
        let can_copy = !listing.is_cut && listing.wrong.is_empty();
        let files = listing.found.into_iter().filter(|found| !found.is_folder);
        (files.map(|found| (found.path, found.bytes, None)).collect(), can_copy)
    } else {
        let (_, stat) = folder.file(path).map_err(missing)?;
        (vec![(String::new(), u64::try_from(stat.st_size).unwrap_or(0), None)], true)
    };
    Ok(Source { files, source, origin: Origin::Workspace(folder, path.to_owned()), can_copy })
}

/// Writes a file that is not there yet; says its digest and length.
pub(super) fn create_file(path: &Path, mode: u32, from: &mut dyn Read) -> Result<(String, u64), String> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .map_err(|error| describe_io_error("written", path, &error))?;
    tree::digest_of(from, |piece| file.write_all(piece)).map_err(|error| describe_io_error("written", path, &error))
}

pub(super) fn describe_io_error(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("`{}` cannot be {what}: {error}", path.display())
}
