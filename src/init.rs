//! `swarmc init`: a small workflow that runs offline, to begin with.

use std::io::Write;
use std::path::{Path, PathBuf};

use miette::miette;

use crate::args::Init;
use crate::exit::Exit;
use crate::terminal;

/// What is written, by path.
const FILES: [(&str, &str); 2] = [
    ("workflow.kdl", include_str!("init/workflow.kdl")),
    ("prompts/report.md", include_str!("init/prompts/report.md")),
];

pub(crate) fn exec(args: &Init) -> miette::Result<Exit> {
    if args.dir.exists() && !args.dir.is_dir() {
        return Err(miette!("`{}` is a file, not a folder", args.dir.display()));
    }
    let taken: Vec<String> = FILES
        .iter()
        .map(|(name, _)| target_path(name, &args.dir))
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| format!("`{}`", path.display()))
        .collect();
    if !taken.is_empty() {
        return Err(miette!(
            help = "name another folder: `swarmc init DIR`",
            "not overwriting {}",
            taken.join(" and ")
        ));
    }
    for (name, text) in FILES {
        let path = target_path(name, &args.dir);
        write_new(&path, text).map_err(|error| miette!("cannot write `{}`: {error}", path.display()))?;
        terminal::print(format!("wrote {}\n", path.display()))?;
    }
    let spec = target_path(FILES[0].0, &args.dir);
    terminal::print(format!("run it with: swarmc run {0}\nand test it: swarmc test {0}\n", spec.display()))?;
    Ok(Exit::Done)
}

/// As one would type it.
fn target_path(name: &str, folder: &Path) -> PathBuf {
    if folder == Path::new(".") { PathBuf::from(name) } else { folder.join(name) }
}

/// Never overwrites, not even a file that has just appeared.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::File::create_new(path)?.write_all(text.as_bytes())
}
