//! Starting a program: found in `PATH`, its environment exactly what it is given, in a process group of its own, and where
//! this process has a controlling terminal in a session of its own, which has none.
//!
//! The program's path is resolved here, which keeps `std` on its `posix_spawn` path: a `fork` costs up to 1.6 times as
//! much, and more in a large process. `std` knows no session but by a `fork`: only where there is a terminal to leave is
//! that paid for.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::{env, io};

use process_wrap::std::{CommandWrap, CommandWrapper, ProcessSession};
use rustix::io::Errno;
use rustix::process::getpid;

use crate::io::children;
use crate::io::proc_status::read_stat;

/// Whether this process has a controlling terminal: what shares it could type there, and answer in the place of a person.
static HAS_TERMINAL: OnceLock<bool> = OnceLock::new();

/// This process has begun a session, which has no terminal: that need not be looked up.
pub(crate) fn note_new_session() {
    let _ = HAS_TERMINAL.set(false);
}

fn has_terminal() -> bool {
    let look = || match File::open("/dev/tty").map_err(|error| Errno::from_io_error(&error)) {
        Ok(_) => true,
        Err(Some(Errno::NXIO)) => false,
        // Where the system does not say so either, there is one.
        Err(_) => read_stat(getpid().as_raw_nonzero().get(), |fields| fields.get(4)?.parse::<i32>().ok()) != Some(0),
    };
    *HAS_TERMINAL.get_or_init(look)
}

/// Where programs are looked for by processes that have no `PATH`.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What every process gets of the environment of who starts it; `LC_*` besides. With `SWARM_HOME` a `swarmc` that a process
/// starts finds the run.
const ALLOWED: [&str; 10] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "TMPDIR", "SWARM_HOME"];

/// Whether every process gets this variable.
pub(crate) fn is_allowed(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| ALLOWED.contains(&name) || name.starts_with("LC_"))
}

/// What to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    pub argv: &'a [OsString],
    pub environment: &'a [(OsString, OsString)],
    pub directory: &'a Path,
    pub stdin: Option<&'a [u8]>,
    /// How to install the program, for the message when it is missing.
    pub install: Option<&'a str>,
}

impl Launch<'_> {
    /// Where its program is looked for.
    fn path(&self) -> &OsStr {
        let path = self.environment.iter().rev().find(|(name, _)| name == "PATH");
        path.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value.as_os_str())
    }

    /// Looks whether its program is there.
    ///
    /// # Errors
    /// Says what is missing, and what to type.
    pub(crate) fn check_program(&self) -> Result<(), String> {
        let program = self.argv.first().ok_or("the command is empty")?;
        let found = find_program(program, self.path(), self.directory);
        found.map(drop).map_err(|denied| describe_missing(self, denied))
    }
}

/// Why a program was not started.
#[derive(Debug)]
pub(crate) struct Refused {
    /// What is wrong, and what to type.
    pub message: String,
    /// Whether the system has no room for one more process now, and may have later.
    pub is_full: bool,
}

impl Refused {
    fn new(message: String) -> Refused {
        Refused { message, is_full: false }
    }

    /// That `program` cannot be started.
    pub(crate) fn from_error(program: &Path, error: &io::Error) -> Refused {
        Refused { message: format!("`{}` cannot be started: {error}", program.display()), is_full: is_full(error) }
    }
}

/// Finds programs, and remembers where.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    /// The files, by `PATH` and then by the name of the program.
    found: HashMap<OsString, HashMap<OsString, PathBuf>>,
    /// What a process reads that has nothing to read, once one did.
    null: Option<File>,
}

impl Finder {
    /// Starts a program with pipes on its outputs, and on its input when it has something to read.
    ///
    /// # Errors
    /// Says what is missing, and what to type.
    pub(crate) fn start(&mut self, launch: &Launch<'_>) -> Result<Child, Refused> {
        let Some(program) = launch.argv.first() else {
            return Err(Refused::new("the command is empty".to_owned()));
        };
        let path = launch.path();
        if let Some(file) = self.found.get(path).and_then(|found| found.get(program)) {
            match spawn_program(launch, file, &mut self.null) {
                // It may have moved since.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                outcome => return outcome.map_err(|error| build_refusal(launch, &error)),
            }
        }
        let file = find_program(program, path, launch.directory)
            .map_err(|denied| Refused::new(describe_missing(launch, denied)))?;
        let child = spawn_program(launch, &file, &mut self.null).map_err(|error| build_refusal(launch, &error))?;
        self.found.entry(path.to_owned()).or_default().insert(program.clone(), file);
        Ok(child)
    }
}

fn spawn_program(launch: &Launch<'_>, file: &Path, null: &mut Option<File>) -> io::Result<Child> {
    let stdin = match launch.stdin {
        Some(_) => Stdio::piped(),
        None => share_null(null)?.into(),
    };
    let mut command = Command::new(file);
    command
        .arg0(&launch.argv[0])
        .args(&launch.argv[1..])
        .env_clear()
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(launch.directory)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    match has_terminal() {
        true => lead_session(&mut command)?,
        false => _ = command.process_group(0),
    }
    children::start_child(|| command.spawn())
}

/// The null device, which is opened once: to look it up for each process takes longer than to share it.
fn share_null(null: &mut Option<File>) -> io::Result<File> {
    match null {
        Some(file) => file.try_clone(),
        None => null.insert(File::open("/dev/null")?).try_clone(),
    }
}

/// Has the process lead a session, and so a group, of its own.
fn lead_session(command: &mut Command) -> io::Result<()> {
    // It asks for the whole of what is wrapped, and looks at nothing of it.
    ProcessSession.pre_spawn(command, &CommandWrap::from(Command::new("")))
}

/// The file of `program`, or whether there is one that may not be started.
pub(crate) fn find_program(program: &OsStr, path: &OsStr, directory: &Path) -> Result<PathBuf, bool> {
    if program.as_encoded_bytes().contains(&b'/') {
        let file = directory.join(program);
        return match file.metadata() {
            Ok(meta) if meta.is_file() && is_executable(&meta) => Ok(file),
            Ok(meta) => Err(meta.is_file()),
            Err(_) => Err(false),
        };
    }
    let mut denied = false;
    for folder in env::split_paths(path) {
        // An empty entry of PATH is the current folder.
        let file = directory.join(folder).join(program);
        if let Ok(meta) = file.metadata()
            && meta.is_file()
        {
            if is_executable(&meta) {
                return Ok(file);
            }
            denied = true;
        }
    }
    Err(denied)
}

fn is_executable(meta: &Metadata) -> bool {
    meta.permissions().mode() & 0o111 != 0
}

fn describe_missing(launch: &Launch<'_>, denied: bool) -> String {
    let program = launch.argv[0].to_string_lossy();
    match (denied, launch.install) {
        (true, _) => format!("`{program}`: found, but not executable; type `chmod +x` on it"),
        (false, Some(install)) => format!("`{program}`: not found; install it with `{install}`"),
        (false, None) => format!("`{program}`: not found"),
    }
}

fn build_refusal(launch: &Launch<'_>, error: &io::Error) -> Refused {
    let program = launch.argv[0].to_string_lossy();
    let message = match error.kind() {
        io::ErrorKind::NotFound => {
            format!("`{program}`: cannot be started: {error} (the file, its interpreter or the working folder)")
        }
        io::ErrorKind::ArgumentListTooLong => {
            format!("`{program}`: its arguments are too long; give the text by `stdin` or a file")
        }
        _ => format!("`{program}`: cannot be started: {error}"),
    };
    Refused { message, is_full: is_full(error) }
}

/// Whether an error says that the system, or what this user may have of it, is exhausted.
fn is_full(error: &io::Error) -> bool {
    let full = [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    error.raw_os_error().is_some_and(|raw| full.iter().any(|errno| errno.raw_os_error() == raw))
}

pub(crate) fn argv(command: &swarmc_plan::Command) -> Vec<OsString> {
    match command {
        swarmc_plan::Command::Argv(words) | swarmc_plan::Command::Script { argv: words, .. } => {
            words.iter().map(OsString::from).collect()
        }
        swarmc_plan::Command::Shell(line) => ["/bin/sh", "-c", line].map(OsString::from).to_vec(),
    }
}

/// A command as a person would type it.
pub(crate) fn describe_command(command: &swarmc_plan::Command) -> String {
    match command {
        swarmc_plan::Command::Argv(words) | swarmc_plan::Command::Script { argv: words, .. } => {
            words.iter().map(|word| quote_word(word)).collect::<Vec<_>>().join(" ")
        }
        swarmc_plan::Command::Shell(line) => line.clone(),
    }
}

fn quote_word(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,=@%+".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', "'\\''"))),
    }
}
