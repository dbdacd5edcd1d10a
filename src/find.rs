//! Which specs a command is about: files as they were named, and those beneath the folders that were.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use miette::miette;
use swarmc_compiler::CONFIG_NAME;

/// How many specs a message names.
const SHOWN: usize = 5;

/// The specs that were named; beneath a folder, or the current one where nothing was named, every `*.kdl` file that
/// declares a workflow, a pipeline or a swarm and that no ignore file leaves out, in order of their paths.
///
/// # Errors
/// Says where there is none.
pub(crate) fn find_specs(named: &[PathBuf]) -> miette::Result<Vec<PathBuf>> {
    let here = [PathBuf::from(".")];
    let mut found = Vec::new();
    for path in if named.is_empty() { &here } else { named } {
        if !path.is_dir() {
            refuse_yaml(path)?;
            found.push(path.clone());
            continue;
        }
        let beneath = list_specs(path);
        if beneath.is_empty() {
            let folder = match path.as_os_str() == "." {
                true => "the current folder".to_owned(),
                false => format!("`{}`", path.display()),
            };
            return Err(miette!(
                help = "name a spec or another folder; `swarmc init` writes a first spec",
                "there is no spec beneath {folder}"
            ));
        }
        found.extend(beneath);
    }
    // Who names a folder and a file in it means the file once.
    let mut seen = std::collections::HashSet::new();
    found.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    Ok(found)
}

/// A file of another tool is no spec with twenty mistakes.
///
/// # Errors
/// Says what to type.
pub(crate) fn refuse_yaml(path: &Path) -> miette::Result<()> {
    let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
    if !ending.is_some_and(|ending| ending == "yaml" || ending == "yml") {
        return Ok(());
    }
    let file = path.display();
    Err(miette!(
        help = format!(
            "`swarmc import {file}` converts a compose file; for other tools see \"Coming from\" in docs/cookbook.md"
        ),
        "`{file}` is YAML, and specs are KDL"
    ))
}

/// The spec of the current folder, where there is one and no other.
///
/// # Errors
/// Says which there are.
pub(crate) fn find_only_spec() -> miette::Result<PathBuf> {
    let mut found = find_specs(&[])?;
    if found.len() > 1 {
        let shown = found.iter().take(SHOWN).map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
        let more = if found.len() > SHOWN { " and more" } else { "" };
        return Err(miette!(
            help = format!("name one: there are {shown}{more}"),
            "the current folder has {} specs",
            found.len()
        ));
    }
    found.pop().ok_or_else(|| miette!("there is no spec beneath the current folder"))
}

/// The specs beneath a folder, in order of their paths.
pub(crate) fn list_specs(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = walk_folder(folder, std::fs::FileType::is_file)
        .filter(|path| path.file_name().is_some_and(|name| name != CONFIG_NAME))
        .filter(|path| path.extension().is_some_and(|extension| extension == "kdl") && is_spec(path))
        .map(|path| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path))
        .collect();
    found.sort();
    found
}

/// The folders that are searched for specs: this one, and those beneath it.
pub(crate) fn list_folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    walk_folder(folder, std::fs::FileType::is_dir)
}

/// What lies beneath a folder, itself included.
fn walk_folder(folder: &Path, kind: fn(&std::fs::FileType) -> bool) -> impl Iterator<Item = PathBuf> {
    // Hidden folders are left out as well. Ignore files count also where there is no repository.
    let walk = WalkBuilder::new(folder)
        .require_git(false)
        .filter_entry(|entry| {
            !(entry.depth() > 0 && (entry.file_name() == "target" || entry.file_name() == "node_modules"))
        })
        .build();
    let entries = walk.filter_map(Result::ok);
    entries.filter(move |entry| entry.file_type().is_some_and(|it| kind(&it))).map(ignore::DirEntry::into_path)
}

/// Whether a file declares a workflow, a pipeline or a swarm: KDL is used for much else.
fn is_spec(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    // Lines are enough to tell, where a parse of all KDL beneath a folder would take long. An indented line counts where no
    // brace is open: texts can have braces of their own, so one that is not indented always does.
    let mut open = 0;
    bytes.split(|&byte| byte == b'\n').any(|line| {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        let node = if open == 0 { line.trim_ascii_start() } else { line };
        let count = |brace: u8| line.iter().filter(|&&byte| byte == brace).count();
        open = (open + count(b'{')).saturating_sub(count(b'}'));
        [&b"workflow"[..], b"pipeline", b"swarm"].iter().any(|word| {
            node.strip_prefix(*word).is_some_and(|rest| rest.first().is_none_or(|&byte| b" \t\r{".contains(&byte)))
        })
    })
}
