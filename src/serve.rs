//! `swarmc serve`: the runs of this home over HTTP, and a page that shows and steers them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::available_parallelism;

use miette::{IntoDiagnostic, WrapErr, miette};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use swarmc_serve::{Options, ServeError, Server};

use crate::args::Serve;
use crate::exit::Exit;
use crate::home::find_home;
use crate::terminal;

/// The bytes of a token file at most.
const TOKEN: usize = 1024;

/// What opens a file in the browser of a person, by the kind of system.
const OPENERS: &[&str] = &["xdg-open", "open"];

pub(crate) fn exec(args: &Serve) -> miette::Result<Exit> {
    let current = std::env::current_dir().into_diagnostic()?;
    let specs = if args.specs.is_empty() { vec![find_workspace(&current)] } else { args.specs.clone() };
    let tasks = args.tasks.as_ref().map(|spec| spec.canonicalize()).transpose();
    let tasks = tasks.into_diagnostic().wrap_err("cannot use the spec of `--tasks`")?;
    let token = args.token_file.as_deref().map(read_token).transpose()?;
    let options = Options {
        home: find_home()?,
        listen: args.listen,
        unix: args.unix.clone(),
        behind_tls: args.behind_tls,
        hosts: args.allow_host.clone(),
        read_only: args.read_only,
        specs,
        tasks,
        allows_plans: args.allow_plans,
        page: args.page.clone(),
        token,
        program: std::env::current_exe().into_diagnostic()?,
        runs: args.runs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)),
        log: |line| terminal::eprint(format!("{line}\n")),
    };
    // Ahead of the server: a signal that comes meanwhile ends it all the same.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).into_diagnostic()?;
    let server = Server::bind(options).map_err(describe_failure)?;
    let url = server.url();
    terminal::print(format!("{url}\n"))?;
    terminal::eprint(
        "the address holds the token of this server: who has it can do what you can; Ctrl-C ends the server, and no run\n",
    );
    if args.open && !server.write_opener().is_ok_and(|path| open_browser(&path)) {
        terminal::eprint("note: no browser could be opened: open the address yourself\n");
    }
    server.run(|| _ = signals.forever().next()).into_diagnostic()?;
    Ok(Exit::Done)
}

fn describe_failure(error: ServeError) -> miette::Report {
    let help = match &error {
        ServeError::Exposed(_) => {
            "listen on 127.0.0.1, and put a proxy that speaks TLS in front of it; if there is one already, add `--behind-tls`"
        }
        ServeError::Listen { .. } => "another program may have the port: `--listen 127.0.0.1:0` takes a free one",
        ServeError::Socket { .. } => {
            "another server may listen there: name another path, of at most 107 bytes, in a folder that you may write to"
        }
        ServeError::Taken => "use its address, or add `--read-only` to this one",
        ServeError::Folder { .. } => "check that the folder is there, and that you may write to it",
    };
    miette!(help = help, "{error}")
}

/// The nearest folder with `.git`, else the current one.
fn find_workspace(current: &Path) -> PathBuf {
    let root = current.ancestors().find(|folder| folder.join(".git").exists());
    root.unwrap_or(current).to_owned()
}

fn read_token(path: &Path) -> miette::Result<String> {
    let text = std::fs::read_to_string(path).into_diagnostic();
    let text = text.wrap_err_with(|| format!("cannot read `{}`", path.display()))?;
    let token = text.trim();
    let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    match (16..=TOKEN).contains(&token.len()) && is_plain {
        true => Ok(token.to_owned()),
        false => Err(miette!(
            help = "write 16 to 1024 printable characters without spaces, as `openssl rand -hex 32` prints them",
            "`{}` holds no token",
            path.display()
        )),
    }
}

/// Opens a file in a browser; whether a program for that is there.
fn open_browser(path: &Path) -> bool {
    let chosen = std::env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
    let mut openers: VecDeque<&str> = OPENERS.iter().copied().collect();
    chosen.iter().for_each(|browser| openers.push_front(browser));
    openers.into_iter().any(|opener| {
        let mut command = Command::new(opener);
        command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = command.spawn().map(|mut child| std::thread::spawn(move || child.wait()));
        started.is_ok()
    })
}
