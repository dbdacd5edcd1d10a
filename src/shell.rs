//! `swarmc schema`, `completions` and `man`: what other programs read about us.

use std::path::Path;

use clap::CommandFactory;
use miette::{IntoDiagnostic, WrapErr};

use crate::args::{CommandLine, Completions, Man, Schema};
use crate::exit::Exit;
use crate::terminal;

pub(crate) fn print_schema(args: &Schema) -> miette::Result<Exit> {
    terminal::print(args.of.schema)?;
    Ok(Exit::Done)
}

pub(crate) fn print_completions(args: &Completions) -> miette::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), "swarmc", &mut script);
    terminal::print(script)?;
    Ok(Exit::Done)
}

pub(crate) fn print_manual(args: &Man) -> miette::Result<Exit> {
    let mut command = CommandLine::command();
    command.build();
    match &args.output {
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .into_diagnostic()
                .wrap_err_with(|| format!("cannot make `{}`", folder.display()))?;
            write_page(folder, command.clone())?;
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                write_page(folder, sub.clone())?;
            }
        }
        None => terminal::print(render_roff(command)?)?,
    }
    Ok(Exit::Done)
}

fn write_page(folder: &Path, command: clap::Command) -> miette::Result<()> {
    let file = folder.join(format!("{}.1", command.get_display_name().unwrap_or(command.get_name())));
    let page = render_roff(command)?;
    std::fs::write(&file, page).into_diagnostic().wrap_err_with(|| format!("cannot write `{}`", file.display()))
}

fn render_roff(command: clap::Command) -> miette::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).into_diagnostic()?;
    Ok(page)
}
