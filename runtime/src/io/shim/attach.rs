//! The runner's end: starts a shim or comes back to one.

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::follow::{Following, render_line};
use super::reader::Reader;
use super::{
    EndCause, Exit, FromRunner, HeldCommand, Hold, Order, PROGRAM, RemoteLaunch, Words, open_plain, socket_path,
};
use crate::io::children::{self, reap_child};
use crate::io::ending::kill_attempt;
use crate::io::event_loop::{EventLoop, Interest};
use crate::io::home::create_private;
use crate::io::proc_status::boot_id;
use crate::io::process::{Cause, End, Launch, Limits, Poller, Refused, Sink, start_process};
use crate::io::socket_peer::SHIM;
use crate::io::unix::through;
use crate::types::cancel::Cancel;

/// How long a shim may take to tell the end of a process that was killed, and to end after it.
pub(super) const STUCK: Duration = Duration::from_secs(5);

/// The bytes of the file `exit` at most: a path in its message is the longest part.
const LONGEST_EXIT: u64 = 64 * 1024;

/// Why an attempt failed whose shim went away.
pub(super) const LOST: &str =
    "`swarmc shim`, which held its process, was ended from outside: nothing says how the process ended";

/// Runs a process to its end as [`run_process`](crate::io::process::run_process) does, held by a shim. Where `hold` has
/// one already, of a runner that is gone, this goes on with it: from its first byte.
///
/// # Errors
/// It could not be started: says why.
pub(crate) async fn run_held_process(
    poller: &Poller,
    launch: &Launch<'_>,
    limits: Limits,
    cancel: &Cancel,
    sink: &mut dyn Sink,
    hold: &Hold,
) -> Result<End, String> {
    let failed = |error: io::Error| format!("`swarmc shim` cannot hold its process: {error}");
    let former = if hold.rejoins { find_former(hold) } else { Former::None };
    let (stream, first, child) = match former {
        Former::Ended(exit) => return read_ended(hold, exit, sink),
        Former::Lost => return Ok(End { cause: Cause::Lost(LOST), exit: -1, signal: None }),
        Former::Lives(stream) => (stream, render_line(&FromRunner::Hello { epoch: hold.epoch }), None),
        Former::None => {
            cancel.set_waker(Some(poller.events.current_waker()));
            let started = start_shim(poller, launch, limits, hold, cancel, sink).await;
            cancel.set_waker(None);
            match started? {
                Some(started) => started,
                None => return Ok(End { cause: Cause::Cancelled, exit: -1, signal: None }),
            }
        }
    };
    cancel.set_waker(Some(poller.events.current_waker()));
    let mut knows_process = true;
    let outcome = match poller.events.register(stream, Interest::Stdout) {
        Ok(lines) => {
            let mut following = Following::new(lines, first);
            let outcome = following.follow(poller, limits, cancel, sink, hold).await;
            if matches!(outcome, Ok(End { cause: Cause::Cut, .. })) {
                following.stop(poller).await;
            }
            if !matches!(outcome, Ok(End { cause: Cause::Exit | Cause::Reported, .. })) {
                // Whatever it failed for: nothing of it goes on.
                knows_process = following.end_all();
            }
            outcome
        }
        Err(error) => Err(failed(error)),
    };
    cancel.set_waker(None);
    if let Some(child) = child {
        reap_shim(child, &poller.events).await;
    }
    if !knows_process && hold.remote.is_none() {
        kill_attempt(launch.environment);
    }
    poller.events.forget();
    outcome
}

/// Waits for a shim, which ends with its process, and ends one that does not.
async fn reap_shim(mut child: Child, events: &EventLoop) {
    let pid = Pid::from_child(&child);
    if let Ok(None) = child.try_wait() {
        let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from);
        let ended = handle.and_then(|handle| events.register(handle, Interest::Exit));
        let until = Instant::now() + STUCK;
        // Other events of the task end a wait early.
        while ended.is_ok() && Instant::now() < until && !events.next(Some(until)).await.has(Interest::Exit) {}
        // Where it has ended, it is there all the same until it is reaped.
        let _ = kill_process(pid, Signal::KILL);
    }
    reap_child(child);
}

/// What a former runner has left of a process.
enum Former {
    None,
    Lives(UnixStream),
    Ended(Exit),
    /// It was started, and nothing says what became of it.
    Lost,
}

fn find_former(hold: &Hold) -> Former {
    if let Some(remote) = &hold.remote {
        return remote.holder.rejoin(&hold.folder).map_or(Former::None, Former::Lives);
    }
    if let Some(exit) = read_exit(&hold.folder) {
        return Former::Ended(exit);
    }
    if let Some(stream) = connect(hold) {
        return Former::Lives(stream);
    }
    // It may have ended between the two looks.
    match read_exit(&hold.folder) {
        Some(exit) => Former::Ended(exit),
        None if hold.folder.join("out").exists() => Former::Lost,
        None => Former::None,
    }
}

/// Reads a process that ended while no runner was there.
///
/// # Errors
/// It could not be started: says why.
pub(super) fn read_ended(hold: &Hold, mut exit: Exit, sink: &mut dyn Sink) -> Result<End, String> {
    if let Some(message) = exit.refused.take() {
        return Err(message);
    }
    // Whatever is wrong with its files: it cannot be read to its end any more.
    Ok(read_streams(hold, &exit, sink).unwrap_or(End { cause: Cause::Cut, exit: -1, signal: None }))
}

fn read_streams(hold: &Hold, exit: &Exit, sink: &mut dyn Sink) -> io::Result<End> {
    let mut reader = Reader::open(&hold.folder, exit.came)?;
    let mut has_reported = false;
    loop {
        // What it says to the program was said before, or comes too late.
        if sink.has_dialogue() {
            let count = sink.next_input().words.len();
            sink.note_written(count);
        }
        match reader.read_piece(exit.came, sink)? {
            None => break,
            Some(reported) => has_reported = reported.unwrap_or(has_reported),
        }
    }
    sink.caught_up();
    sink.hung_up();
    let cause = match exit.cause {
        // It only stayed after its result.
        EndCause::Orphaned | EndCause::Idle | EndCause::Timeout if has_reported => Cause::Reported,
        cause => cause.as_cause().unwrap_or(Cause::Cancelled),
    };
    Ok(End { cause, exit: exit.exit, signal: exit.signal })
}

/// How the process ended that is held in a folder; none while it lives, and where it is not known.
pub(super) fn read_exit(folder: &Path) -> Option<Exit> {
    let file = open_plain(&folder.join("exit")).ok()?;
    let exit: Exit = serde_json::from_reader(file.take(LONGEST_EXIT)).ok()?;
    // What it put out may be lost where the machine went down since.
    (exit.boot == boot_id()).then_some(exit)
}

/// Comes back to the shim that holds the process, where one does.
fn connect(hold: &Hold) -> Option<UnixStream> {
    through(&socket_path(&hold.folder), UnixStream::connect).ok()
}

/// Starts a shim, which starts the program: the connection to it, what it is to be told first, and the shim where it is
/// on this machine.
async fn start_shim(
    poller: &Poller,
    launch: &Launch<'_>,
    limits: Limits,
    hold: &Hold,
    cancel: &Cancel,
    sink: &mut dyn Sink,
) -> Result<Option<(UnixStream, Vec<u8>, Option<Child>)>, String> {
    let failed = |error: io::Error| format!("`swarmc shim` cannot be started: {error}");
    let to_ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let left = |now: Instant| limits.deadline.map(|deadline| to_ms(deadline.saturating_duration_since(now)));
    if let Some(remote) = &hold.remote {
        let _ = fs::remove_dir_all(&hold.folder);
        create_private(&hold.folder, true).map_err(failed)?;
        let (ours, other) = UnixStream::pair().map_err(failed)?;
        let launch = RemoteLaunch {
            folder: hold.folder.clone(),
            pool: std::sync::Arc::clone(&remote.pool),
            command: HeldCommand {
                argv: launch.argv.to_vec(),
                environment: launch.environment.to_vec(),
                directory: launch.directory.to_owned(),
                stdin: launch.stdin.map(<[u8]>::to_vec),
                talks: sink.has_dialogue(),
                timeout_ms: left(Instant::now()),
                idle_ms: limits.idle.map(to_ms),
                orphan_ms: to_ms(hold.orphan_limit),
                install: launch.install.map(str::to_owned),
            },
        };
        remote.holder.start(launch, other);
        return Ok(Some((ours, Vec::new(), None)));
    }
    let program = PROGRAM.get().ok_or("no program holds processes")?;
    // What a shim left that could not go on.
    let _ = fs::remove_dir_all(&hold.folder);
    create_private(&hold.folder, true).map_err(failed)?;
    let (ours, other) = UnixStream::pair().map_err(failed)?;
    let other = OwnedFd::from(other);
    let start = || spawn_shim(program, &hold.folder, &other);
    let began = Instant::now();
    let Some(child) = start_process(poller, start, cancel, sink).await? else { return Ok(None) };
    drop(other);
    // What it had to wait for is not its time.
    let timeout_ms = left(Instant::now().checked_sub(began.elapsed()).unwrap_or(began));
    let order = Order {
        folder: hold.folder.clone(),
        run: hold.run.clone(),
        argv: launch.argv.iter().cloned().map(Words::from).collect(),
        environment: launch.environment.iter().cloned().map(|(name, value)| (name.into(), value.into())).collect(),
        directory: absolute(launch.directory),
        stdin: launch.stdin.map(|stdin| String::from_utf8_lossy(stdin).into_owned()),
        talks: sink.has_dialogue(),
        timeout_ms,
        idle_ms: limits.idle.map(to_ms),
        orphan_ms: to_ms(hold.orphan_limit),
        install: launch.install.map(str::to_owned),
        epoch: hold.epoch,
    };
    Ok(Some((ours, render_line(&order), Some(child))))
}

/// Starts a shim whose standard input is `connection`, and which is to hold a process in `folder`.
pub(super) fn spawn_shim(program: &Path, folder: &Path, connection: &OwnedFd) -> Result<Child, Refused> {
    let refuse = |error: io::Error| Refused::from_error(program, &error);
    let stdin = connection.try_clone().map_err(refuse)?;
    let mut command = Command::new(program);
    // The folder is an argument for people who look at the list of processes.
    command.arg0("swarmc").arg(SHIM).arg(folder).env_clear().current_dir("/");
    command.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null());
    children::start_child(|| command.spawn()).map_err(refuse)
}

fn absolute(directory: &Path) -> std::path::PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::net::UnixListener;
    use std::os::unix::process::ExitStatusExt as _;
    use std::thread;

    use super::super::reader::tests::Seen;
    use super::*;

    /// That a later runner comes back to the process of `folder`.
    fn hold_again(run: &Path, folder: &Path) -> Hold {
        Hold {
            run: run.to_owned(),
            folder: folder.to_owned(),
            orphan_limit: Duration::from_secs(60),
            epoch: 1,
            rejoins: true,
            remote: None,
        }
    }

    #[test]
    fn a_process_that_ends_as_its_runner_comes_back_is_read_whole() {
        let run = tempfile::tempdir().expect("a folder");
        let folder = run.path().join("0");
        fs::create_dir(&folder).expect("a folder can be made");
        let hold = hold_again(run.path(), &folder);
        let listener = UnixListener::bind(socket_path(&folder)).expect("it can listen");
        // A shim whose program has ended: it takes a connection no more, and its file says how.
        let shim = thread::spawn(move || {
            let (stream, _) = listener.accept().expect("the runner comes");
            fs::write(folder.join("out"), "all of it").expect("it can be written");
            fs::write(folder.join("err"), "").expect("it can be written");
            let exit =
                Exit { cause: EndCause::Exit, exit: 3, signal: None, refused: None, came: [9, 0], boot: boot_id() };
            fs::write(folder.join("exit"), serde_json::to_string(&exit).expect("it is JSON"))
                .expect("it can be written");
            drop(stream);
        });
        let poller = Poller::new().expect("the system has room");
        let launch = Launch { argv: &[], environment: &[], directory: run.path(), stdin: None, install: None };
        let limits = Limits { deadline: None, idle: None, grace: Duration::ZERO };
        let mut seen = Seen::default();
        let cancel = Cancel::default();
        let end = poller.block_on(run_held_process(&poller, &launch, limits, &cancel, &mut seen, &hold));
        shim.join().expect("it has not failed");
        let end = end.expect("it was started");
        assert_eq!((end.cause, end.exit, &*seen.text, seen.has_caught_up), (Cause::Exit, 3, "all of it", true));
    }

    #[test]
    fn what_a_shim_started_and_did_not_tell_is_killed_when_the_shim_is() {
        let run = tempfile::tempdir().expect("a folder");
        let folder = run.path().join("0");
        fs::create_dir(&folder).expect("a folder can be made");
        let hold = hold_again(run.path(), &folder);
        let listener = UnixListener::bind(socket_path(&folder)).expect("it can listen");
        let shim = thread::spawn(move || drop(listener.accept().expect("the runner comes")));
        let name = run.path().to_string_lossy().into_owned();
        let marks = |more: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            let all = [("SWARM_RUN", &*name), ("SWARM_TASK", "one")];
            all.iter().chain(more).map(|(name, value)| (name.into(), value.into())).collect()
        };
        let start =
            |more: &[(&str, &str)]| Command::new("sleep").arg("60").envs(marks(more)).spawn().expect("it starts");
        let environment = marks(&[("SWARM_ATTEMPT", "1")]);
        let mut left = start(&[("SWARM_ATTEMPT", "1")]);
        // Another attempt, and a step with the same name of a called pipeline.
        let others = [start(&[("SWARM_ATTEMPT", "2")]), start(&[("SWARM_ATTEMPT", "1"), ("SWARM_WITHIN", "two")])];
        let poller = Poller::new().expect("the system has room");
        let launch = Launch { argv: &[], environment: &environment, directory: run.path(), stdin: None, install: None };
        let (mut seen, cancel) = (Seen::default(), Cancel::default());
        let limits = Limits { deadline: None, idle: None, grace: Duration::ZERO };
        let end = poller.block_on(run_held_process(&poller, &launch, limits, &cancel, &mut seen, &hold));
        shim.join().expect("it has not failed");
        assert_eq!(end.expect("it was started").cause, Cause::Lost(LOST));
        assert_eq!(left.wait().expect("it ends").signal(), Some(9));
        for mut other in others {
            assert_eq!(other.try_wait().expect("it can be asked"), None);
            other.kill().expect("it lives");
            other.wait().expect("it ends");
        }
    }
}
