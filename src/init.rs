//! `swarmc init`: a small workflow that runs offline, to begin with.

use std::io::Write;
use std::path::Path;

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
    let taken: Vec<String> = FILES
        .iter()
        .map(|(name, _)| args.dir.join(name))
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| format!("`{}`", path.display()))
        .collect();
    if !taken.is_empty() {
        return Err(miette!(help = "name another folder: `swarmc init DIR`", "{} exists already", taken.join(" and ")));
    }
    for (name, text) in FILES {
        let path = args.dir.join(name);
        write(&path, text).map_err(|error| miette!("cannot write `{}`: {error}", path.display()))?;
        terminal::print(format!("wrote {}\n", path.display()))?;
    }
    let spec = args.dir.join(FILES[0].0);
    terminal::print(format!("run it with: swarmc run {}\n", spec.display()))?;
    Ok(Exit::Done)
}

/// Never overwrites, not even what appeared a moment ago.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::File::create_new(path)?.write_all(text.as_bytes())
}
