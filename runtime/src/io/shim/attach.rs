//! The runner's end: starts a shim or comes back to one, and reads its process as if it were the runner's own.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{SeekFrom, seek};
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, Signal};

use super::{EndCause, Exit, FromRunner, FromShim, Hold, Living, Order, PROGRAM, Words, socket_path};
use crate::io::children::{self, reap_child};
use crate::io::event_loop::{Interest, Registered};
use crate::io::home::create_private;
use crate::io::proc_status::{boot_id, end_group, identify_process};
use crate::io::process::{ANNOUNCE, Cause, End, Launch, Limits, Poller, Refused, Sink, Watchdog, start_process};
use crate::io::socket_peer::SHIM;
use crate::io::unix::through;
use crate::types::cancel::Cancel;

/// What is read of a file at once.
const PIECE: usize = 256 * 1024;

/// How long a shim may take to take a line.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a shim may take to tell the end of a process that was killed.
const STUCK: Duration = Duration::from_secs(5);

/// Why an attempt failed whose shim went away.
const LOST: &str = "`swarmc shim`, which held its process, was ended from outside: nothing says how the process ended";

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
    let (stream, child) = match former {
        Former::Ended(exit) => return read_ended(hold, &exit, sink).map_err(failed)?,
        Former::Lost => return Ok(End { cause: Cause::Lost(LOST), exit: -1, signal: None }),
        Former::Lives(stream) => (stream, None),
        Former::None => {
            cancel.set_waker(Some(poller.events.current_waker()));
            let started = start_shim(poller, launch, limits, hold, cancel, sink).await;
            cancel.set_waker(None);
            match started? {
                Some((stream, child)) => (stream, Some(child)),
                None => return Ok(End { cause: Cause::Cancelled, exit: -1, signal: None }),
            }
        }
    };
    cancel.set_waker(Some(poller.events.current_waker()));
    let outcome = match poller.events.register(stream, Interest::Stdout) {
        Ok(lines) => {
            let mut following = Following::new(lines);
            let outcome = following.follow(poller, limits, cancel, sink, hold).await;
            if !matches!(outcome, Ok(End { cause: Cause::Exit | Cause::Reported, .. })) {
                // Whatever it failed for: nothing of it goes on.
                following.end_all();
            }
            outcome
        }
        Err(error) => Err(failed(error)),
    };
    cancel.set_waker(None);
    if let Some(child) = child {
        // It ends with its process.
        reap_child(child);
    }
    poller.events.forget();
    outcome
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
fn read_ended(hold: &Hold, exit: &Exit, sink: &mut dyn Sink) -> io::Result<Result<End, String>> {
    if let Some(message) = &exit.refused {
        return Ok(Err(message.clone()));
    }
    let mut reader = Reader::open(&hold.folder)?;
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
    sink.hung_up();
    let cause = match exit.cause {
        // It only stayed after its result.
        EndCause::Orphaned | EndCause::Idle | EndCause::Timeout if has_reported => Cause::Reported,
        cause => cause.as_cause().unwrap_or(Cause::Cancelled),
    };
    Ok(Ok(End { cause, exit: exit.exit, signal: exit.signal }))
}

/// How the process ended that is held in a folder; none while it lives, and where it is not known.
pub(super) fn read_exit(folder: &Path) -> Option<Exit> {
    let exit: Exit = serde_json::from_str(&fs::read_to_string(folder.join("exit")).ok()?).ok()?;
    // What it put out may be lost where the machine went down since.
    (exit.boot == boot_id()).then_some(exit)
}

/// Comes back to the shim that holds the process, where one does.
fn connect(hold: &Hold) -> Option<UnixStream> {
    let stream = through(&socket_path(&hold.folder), UnixStream::connect).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    say(&stream, &FromRunner::Hello { epoch: hold.epoch }).ok()?;
    Some(stream)
}

/// Starts a shim, which starts the program.
async fn start_shim(
    poller: &Poller,
    launch: &Launch<'_>,
    limits: Limits,
    hold: &Hold,
    cancel: &Cancel,
    sink: &mut dyn Sink,
) -> Result<Option<(UnixStream, Child)>, String> {
    let failed = |error: io::Error| format!("`swarmc shim` cannot be started: {error}");
    let program = PROGRAM.get().ok_or("no program holds processes")?;
    // What a shim left that could not go on.
    let _ = fs::remove_dir_all(&hold.folder);
    create_private(&hold.folder, true).map_err(failed)?;
    let (ours, other) = UnixStream::pair().map_err(failed)?;
    let other = OwnedFd::from(other);
    let start = || {
        let stdin = other.try_clone().map_err(|error| Refused::from_error(program, &error))?;
        let mut command = Command::new(program);
        // The folder is an argument for people who look at the list of processes.
        command.arg(SHIM).arg(&hold.folder).env_clear().current_dir("/");
        command.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null());
        children::start_child(|| command.spawn()).map_err(|error| Refused::from_error(program, &error))
    };
    let began = Instant::now();
    let Some(child) = start_process(poller, start, cancel, sink).await? else { return Ok(None) };
    drop(other);
    let now = Instant::now();
    // What it had to wait for is not its time.
    let deadline = limits.deadline.map(|deadline| deadline + began.elapsed());
    let to_ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let order = Order {
        folder: hold.folder.clone(),
        run: hold.run.clone(),
        argv: launch.argv.iter().cloned().map(Words::from).collect(),
        environment: launch.environment.iter().cloned().map(|(name, value)| (name.into(), value.into())).collect(),
        directory: absolute(launch.directory),
        stdin: launch.stdin.map(|stdin| String::from_utf8_lossy(stdin).into_owned()),
        talks: sink.has_dialogue(),
        timeout_ms: deadline.map(|deadline| to_ms(deadline.saturating_duration_since(now))),
        idle_ms: limits.idle.map(to_ms),
        orphan_ms: to_ms(hold.orphan_limit),
        install: launch.install.map(str::to_owned),
        epoch: hold.epoch,
    };
    ours.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    say(&ours, &order).map_err(failed)?;
    Ok(Some((ours, child)))
}

fn absolute(directory: &Path) -> std::path::PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

fn say(mut stream: &UnixStream, line: &impl serde::Serialize) -> io::Result<()> {
    stream.write_all((serde_json::to_string(line)? + "\n").as_bytes())
}

/// What is read of the streams.
struct Reader {
    files: [File; 2],
    read: [u64; 2],
    /// Of a stream whose beginning was given back to the disk: the rest of a line comes first.
    is_cut: [bool; 2],
    buffer: Vec<u8>,
}

impl Reader {
    fn open(folder: &Path) -> io::Result<Reader> {
        let open = |name: &str| File::open(folder.join(name));
        let files = [open("out")?, open("err")?];
        // What was given back reads as zeros.
        let first = |file: &File| seek(file, SeekFrom::Data(0)).unwrap_or(0);
        let read = [first(&files[0]), first(&files[1])];
        Ok(Reader { files, is_cut: read.map(|first| first > 0), read, buffer: Vec::new() })
    }

    /// Reads one piece of one of the streams, which have these lengths. None where all is read; else whether the process
    /// has reported its result, where it was standard output.
    fn read_piece(&mut self, came: [u64; 2], sink: &mut dyn Sink) -> io::Result<Option<Option<bool>>> {
        self.buffer.resize(PIECE, 0);
        let Some(number) = (0..2).find(|&number| self.read[number] < came[number]) else { return Ok(None) };
        let room = usize::try_from(came[number] - self.read[number]).map_or(PIECE, |left| left.min(PIECE));
        let count = self.files[number].read_at(&mut self.buffer[..room], self.read[number])?;
        if count == 0 {
            // Only a file that was cut from outside is shorter than it was said to be.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read[number] += count as u64;
        let mut bytes = &self.buffer[..count];
        if self.is_cut[number] {
            let end = bytes.iter().position(|&byte| byte == b'\n');
            self.is_cut[number] = end.is_none();
            bytes = end.map_or(&[][..], |end| &bytes[end + 1..]);
        }
        Ok(Some(match number {
            0 => Some(sink.stdout(bytes)),
            _ => {
                sink.stderr(bytes);
                None
            }
        }))
    }
}

/// A process that is read while it lives.
struct Following<'e> {
    lines: Registered<'e, UnixStream>,
    begun: Vec<u8>,
    reader: Option<Reader>,
    living: Option<Living>,
    watchdog: Option<Watchdog>,
    /// When the processes are worth recording.
    announce: Option<Instant>,
    /// The bytes of both streams that there are.
    came: [u64; 2],
    ended: Option<Exit>,
    is_closed: bool,
    /// Whether the shim knows why the process is being ended.
    is_told: bool,
    /// Whether a line could not be written: the shim is no use any more.
    is_broken: bool,
}

impl<'e> Following<'e> {
    fn new(lines: Registered<'e, UnixStream>) -> Following<'e> {
        Following {
            lines,
            begun: Vec::new(),
            reader: None,
            living: None,
            watchdog: None,
            announce: None,
            came: [0; 2],
            ended: None,
            is_closed: false,
            is_told: false,
            is_broken: false,
        }
    }

    /// Reads the process to its end.
    async fn follow(
        &mut self,
        poller: &Poller,
        limits: Limits,
        cancel: &Cancel,
        sink: &mut dyn Sink,
        hold: &Hold,
    ) -> Result<End, String> {
        let failed = |error: io::Error| format!("`swarmc shim` cannot be read: {error}");
        loop {
            let now = Instant::now();
            self.send_input(now, sink);
            if sink.due().is_some_and(|due| due <= now) {
                sink.tick(now);
            }
            self.enforce(now, cancel, sink);
            self.announce_living(now, sink);
            let (is_over, has_heard) = self.hear(sink, (limits, now), hold).map_err(failed)?;
            if self.read(sink).map_err(failed)? {
                // Others have their turn in between.
                poller.events.next(Some(Instant::now())).await;
                continue;
            }
            if let Some(exit) = self.ended.take() {
                return self.conclude(exit, sink);
            }
            if is_over {
                // It may have ended between its file and its word.
                match read_exit(&hold.folder) {
                    Some(exit) => {
                        self.came = exit.came;
                        self.ended = Some(exit);
                        continue;
                    }
                    None => {
                        sink.hung_up();
                        return Ok(self.end_with(Cause::Lost(LOST)));
                    }
                }
            }
            // A program that lives may be told something.
            if has_heard {
                continue;
            }
            let stuck = self.watchdog.as_ref().and_then(Watchdog::killed).map(|killed| killed + STUCK);
            if stuck.is_some_and(|stuck| stuck <= now) {
                return Ok(self.end_with(Cause::Lost(LOST)));
            }
            let next = self.watchdog.as_ref().and_then(|watchdog| watchdog.next_moment(true));
            poller.events.next([sink.due(), next, stuck, self.announce].into_iter().flatten().min()).await;
        }
    }

    /// Has the processes recorded once they have lived for a while: both, so that both are ended where no runner can.
    fn announce_living(&mut self, now: Instant, sink: &mut dyn Sink) {
        let Some(living) = self.living.as_ref().filter(|_| self.announce.is_some_and(|moment| moment <= now)) else {
            return;
        };
        for pid in [living.shim, living.group] {
            sink.report_alive(identify_process(pid));
        }
        self.announce = None;
    }

    fn stream(&self) -> &UnixStream {
        self.lines.get()
    }

    fn say(&mut self, line: &FromRunner) {
        // A line that is written in part would be read as another one.
        self.is_broken |= !self.is_broken && say(self.stream(), line).is_err();
    }

    /// Passes on what the program is to read.
    fn send_input(&mut self, now: Instant, sink: &mut dyn Sink) {
        let Some(watchdog) = self.watchdog.as_mut().filter(|_| sink.has_dialogue()) else { return };
        let talk = sink.next_input();
        watchdog.note_dialogue(talk, now);
        let (count, over) = (talk.words.len(), talk.over);
        let words = (count > 0).then(|| String::from_utf8_lossy(talk.words).into_owned());
        // What an ended process is told is lost, as in a pipe.
        if self.ended.is_none() {
            words.into_iter().for_each(|words| self.say(&FromRunner::Write(words)));
            if over && !std::mem::replace(&mut self.is_closed, true) {
                self.say(&FromRunner::Close);
            }
        }
        sink.note_written(count);
    }

    /// Ends the program where the time or a person asks for that.
    fn enforce(&mut self, now: Instant, cancel: &Cancel, sink: &mut dyn Sink) {
        let Some(watchdog) = &mut self.watchdog else {
            // Before its start nothing is known of the program: the shim ends it as soon as it is there.
            if cancel.requested_level().is_some() && !std::mem::replace(&mut self.is_told, true) {
                self.say(&FromRunner::Stop);
            }
            return;
        };
        watchdog.enforce(now, true, cancel, sink);
        let cause = match watchdog.cause() {
            Cause::Cancelled => EndCause::Stopped,
            Cause::Timeout => EndCause::Timeout,
            Cause::Idle => EndCause::Idle,
            _ => return,
        };
        // A later runner must not take it for an end of its own.
        if !std::mem::replace(&mut self.is_told, true) {
            self.say(&FromRunner::Ending(cause));
        }
    }

    /// Takes what the shim has told; whether it tells nothing more, and whether it has told anything.
    fn hear(&mut self, sink: &mut dyn Sink, (limits, now): (Limits, Instant), hold: &Hold) -> io::Result<(bool, bool)> {
        let mut buffer = [0; 16 * 1024];
        let mut is_over = self.is_broken;
        loop {
            match recv(self.lines.as_fd(), &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => is_over = true,
                Ok((count, _)) => {
                    self.begun.extend_from_slice(&buffer[..count]);
                    continue;
                }
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => {}
                Err(_) => is_over = true,
            }
            break;
        }
        let whole = self.begun.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.begun.drain(..whole).collect();
        for line in lines.split(|&byte| byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(FromShim::Lives(living)) => self.begin(living, sink, (limits, now), hold)?,
                Ok(FromShim::Came(came)) => self.came = came,
                Ok(FromShim::Ended(exit)) => {
                    self.came = exit.came;
                    self.ended = Some(exit);
                }
                // A line that the shim had no room for is told again.
                Err(_) => {}
            }
        }
        Ok((is_over, whole > 0))
    }

    /// The program lives.
    fn begin(
        &mut self,
        living: Living,
        sink: &mut dyn Sink,
        (limits, now): (Limits, Instant),
        hold: &Hold,
    ) -> io::Result<()> {
        let group = Pid::from_raw(living.group).ok_or(io::ErrorKind::InvalidData)?;
        self.reader = Some(Reader::open(&hold.folder)?);
        let ago = |ms: u64| Duration::from_millis(ms);
        // What it took under former runners counts.
        let deadline = limits.deadline.map(|deadline| deadline.checked_sub(ago(living.age_ms)).unwrap_or(now));
        let last_output = now.checked_sub(ago(living.silent_ms)).unwrap_or(now);
        self.watchdog = Some(Watchdog::new(group, Limits { deadline, ..limits }, last_output));
        sink.report_start(group);
        self.announce = Some(now + ANNOUNCE);
        self.living = Some(living);
        Ok(())
    }

    /// Reads a piece; whether there was one.
    fn read(&mut self, sink: &mut dyn Sink) -> io::Result<bool> {
        let Some(reader) = &mut self.reader else { return Ok(false) };
        let Some(reported) = reader.read_piece(self.came, sink)? else { return Ok(false) };
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.note_output(reported, Instant::now());
        }
        let read = reader.read;
        if self.ended.is_none() {
            self.say(&FromRunner::Read(read));
        }
        Ok(true)
    }

    /// The process has ended, and everything is read.
    fn conclude(&mut self, exit: Exit, sink: &mut dyn Sink) -> Result<End, String> {
        if let Some(message) = exit.refused {
            return Err(message);
        }
        // The last bytes may have been an answer.
        if sink.has_dialogue() {
            let count = sink.next_input().words.len();
            sink.note_written(count);
        }
        sink.hung_up();
        // What the runner brought about counts first.
        let own = self.watchdog.as_ref().map(Watchdog::cause).filter(|cause| *cause != Cause::Exit);
        let cause = own.or(exit.cause.as_cause()).unwrap_or(Cause::Cancelled);
        Ok(End { cause, exit: exit.exit, signal: exit.signal })
    }

    fn end_with(&self, cause: Cause) -> End {
        let own = self.watchdog.as_ref().map(Watchdog::cause).filter(|cause| *cause != Cause::Exit);
        End { cause: own.unwrap_or(cause), exit: -1, signal: None }
    }

    /// Ends what is left of the process and its shim.
    fn end_all(&self) {
        for process in self.living.iter().flat_map(|living| [living.group, living.shim]).filter_map(Pid::from_raw) {
            // The shim leads a session, and so a group. Where it has ended there is none.
            end_group(process, Signal::KILL);
        }
    }
}
