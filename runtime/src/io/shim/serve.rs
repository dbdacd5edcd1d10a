//! The shim itself: `main` of a process that starts one program, keeps what it puts out, and ends with it.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};
use rustix::process::{DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior, setsid};

use super::spools::{Keeper, Spools};
use super::{EndCause, Exit, FromRunner, FromShim, Order, socket_path};
use crate::io::ending::end_below;
use crate::io::event_loop::{Interest, Tasks};
use crate::io::home::holds_lock;
use crate::io::proc_status::boot_id;
use crate::io::process::{Cause, End, Launch, Limits, Poller, note_new_session, run_process};
use crate::io::socket_peer::{belongs_to_run, living_peer};
use crate::io::unix::{Timed, through};

/// How long a client may take for its first line.
const PATIENCE: Duration = Duration::from_millis(500);

/// Longer than any process lives.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The longest first line.
const LONGEST: u64 = 1024;

/// Starts the program that standard input names, holds it, and returns when it has ended. The whole of a process: it has
/// no other thread, and no terminal.
///
/// # Errors
/// Standard input is no order, or the folder that it names cannot be used: says so.
pub fn serve_shim() -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot hold a process: {error}");
    // It fails where it leads a session already, which may have a terminal.
    if setsid().is_ok() {
        note_new_session();
    }
    set_child_subreaper(Some(getpid())).map_err(|error| failed(error.into()))?;
    // Its memory has the values of secrets: no process of the same user may read it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| failed(error.into()))?;
    let mut runner = take_stdin().map_err(failed)?;
    let (order, rest) = read_order(&mut runner).map_err(failed)?;
    // Another runner starts an attempt again whose shim did not listen yet: this one must not start it as well.
    if is_closed(&runner) {
        return Err("its runner is gone".to_owned());
    }
    // Ahead of all files: where those are and nothing listens, it has ended.
    let listener = through(&socket_path(&order.folder), UnixListener::bind).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let spools = Spools::new(&order, runner, rest).map_err(failed)?;
    hold(order, spools, listener).map_err(failed)
}

/// Standard input as a connection; nothing else has it from now on.
fn take_stdin() -> io::Result<UnixStream> {
    let runner = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
    rustix::stdio::dup2_stdin(fs::File::open("/dev/null")?)?;
    Ok(UnixStream::from(runner))
}

/// Whether the other end is closed, and has said nothing more.
fn is_closed(runner: &UnixStream) -> bool {
    matches!(recv(runner, &mut [0; 1][..], RecvFlags::DONTWAIT | RecvFlags::PEEK), Ok((0, _)))
}

/// The order, and what came of the lines that follow it.
fn read_order(runner: &mut UnixStream) -> io::Result<(Order, Vec<u8>)> {
    let (mut line, mut reader) = (Vec::new(), BufReader::new(runner));
    reader.read_until(b'\n', &mut line)?;
    Ok((serde_json::from_slice(&line)?, reader.buffer().to_vec()))
}

fn hold(order: Order, spools: Spools, listener: UnixListener) -> io::Result<()> {
    let argv: Vec<OsString> = order.argv.into_iter().map(OsString::from).collect();
    let environment: Vec<(OsString, OsString)> =
        order.environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let poller = Poller::new()?;
    let spools = RefCell::new(spools);
    let ended: RefCell<Option<Result<End, String>>> = RefCell::default();
    let mut tasks = Tasks::new(&poller.events);
    tasks.spawn(async {
        let cancel = {
            let mut spools = spools.borrow_mut();
            spools.waker = Some(poller.events.current_waker());
            std::sync::Arc::clone(&spools.cancel)
        };
        let launch = Launch {
            argv: &argv,
            environment: &environment,
            directory: &order.directory,
            stdin: match order.talks {
                true => Some(&[]),
                false => order.stdin.as_deref().map(str::as_bytes),
            },
            install: order.install.as_deref(),
        };
        // The runner enforces limits, and the sink does where none is there.
        let limits = Limits { deadline: None, idle: None, grace: FOREVER };
        let outcome = run_process(&poller, &launch, limits, &cancel, &mut Keeper::new(&spools)).await;
        *ended.borrow_mut() = Some(outcome);
    });
    tasks.spawn(serve_runners(&poller, &spools, listener));
    let outcome = loop {
        tasks.run_once(None);
        if let Some(outcome) = ended.borrow_mut().take() {
            break outcome;
        }
    };
    let mut spools = spools.borrow_mut();
    let cause = spools.cause.or(spools.parting).unwrap_or(EndCause::Exit);
    if cause != EndCause::Exit {
        // What left its group goes as well: nothing of it is to stay.
        end_below();
    }
    let (end, refused) = match outcome {
        Ok(end) => (end, None),
        Err(message) => (End { cause: Cause::Exit, exit: -1, signal: None }, Some(message)),
    };
    let exit = Exit { cause, exit: end.exit, signal: end.signal, refused, came: spools.came(), boot: boot_id() };
    // Where there is no room for it, the runner hears it all the same.
    let written = write_exit(&order.folder, &exit);
    spools.tell(&FromShim::Ended(exit));
    // From now on the file says everything.
    let _ = fs::remove_file(socket_path(&order.folder));
    written
}

/// Writes how it ended: the whole file, or none. It need not survive a crash of the machine, which ends what it was for.
fn write_exit(folder: &Path, exit: &Exit) -> io::Result<()> {
    let draft = folder.join("exit.draft");
    fs::File::create(&draft)?.write_all(serde_json::to_string(exit)?.as_bytes())?;
    fs::rename(draft, folder.join("exit"))
}

/// Listens to the runner, and takes another one.
async fn serve_runners(poller: &Poller, spools: &RefCell<Spools>, listener: UnixListener) {
    let events = &poller.events;
    let Ok(listener) = events.register(listener, Interest::Stdout) else { return };
    let watched = || {
        let stream = spools.borrow().stream()?;
        events.register(OwnedFd::from(stream), Interest::Stderr).ok()
    };
    let mut connection = watched();
    loop {
        let ready = events.next(None).await;
        if ready.has(Interest::Stderr) && connection.is_some() {
            spools.borrow_mut().hear();
            if spools.borrow().is_alone() {
                connection = None;
            }
        }
        if ready.has(Interest::Stdout)
            && let Ok((stream, _)) = listener.get().accept()
            && let Ok(true) = admit(stream, spools)
        {
            connection = watched();
        }
    }
}

/// Takes a client's first line; whether it is the runner from now on.
fn admit(stream: UnixStream, spools: &RefCell<Spools>) -> io::Result<bool> {
    // An agent could read what another one says, and the token of its attempt.
    let may_enter = |peer| !belongs_to_run(peer) && holds_lock(peer, &spools.borrow().run);
    if !living_peer(&stream).is_some_and(may_enter) {
        return Ok(false);
    }
    // All that a former runner has said comes before.
    spools.borrow_mut().hear();
    let timed = || Timed { stream: &stream, until: Instant::now() + PATIENCE };
    let mut line = String::new();
    BufReader::new(io::Read::take(timed(), LONGEST)).read_line(&mut line)?;
    match serde_json::from_str(&line)? {
        FromRunner::Ask => {
            if let Some(living) = spools.borrow().living() {
                timed().write_all((serde_json::to_string(&FromShim::Lives(living))? + "\n").as_bytes())?;
            }
        }
        FromRunner::Stop => spools.borrow_mut().end_for(EndCause::Stopped),
        FromRunner::Hello { epoch } if epoch >= spools.borrow().epoch => {
            stream.set_read_timeout(None)?;
            stream.set_write_timeout(None)?;
            spools.borrow_mut().hand_over(stream, epoch);
            return Ok(true);
        }
        _ => {}
    }
    Ok(false)
}
