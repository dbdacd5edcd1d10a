//! Stands in for the shim of a process that a worker holds.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Holder, Outgoing};
use crate::io::shim::{EndCause, Exit, FromRunner, FromShim, Living, Spool, create_spools};
use crate::types::engine::{Patch, ReportEvent, Say, Started};

/// One process, to its runner.
#[derive(Debug)]
pub(super) struct StandIn {
    folder: PathBuf,
    stream: UnixStream,
    /// How many changes of files it has found.
    seen: usize,
    /// Whether its runner comes back to it.
    rejoins: bool,
}

impl StandIn {
    pub(super) fn new(folder: PathBuf, stream: UnixStream, seen: usize, rejoins: bool) -> StandIn {
        StandIn { folder, stream, seen, rejoins }
    }

    /// Says that it cannot be started, and why.
    pub(super) async fn refuse(self, problem: String) {
        let exit = Exit { refused: Some(problem), ..ended(EndCause::Exit, [0; 2]) };
        if let Ok((_, mut writer)) = split(self.stream) {
            let _ = tell(&mut writer, &FromShim::Ended(exit)).await;
        }
    }

    /// Passes lines on between runner and worker, until the process or the runner ends.
    pub(super) async fn run(self, holder: Arc<Holder>, of: Started, mut facts: UnboundedReceiver<ReportEvent>) {
        let StandIn { folder, stream, seen, rejoins } = self;
        let Ok((reader, writer)) = split(stream) else { return };
        let spools = match create_spools(&folder) {
            Ok(spools) => spools,
            Err(error) => return holder.notices.give_up(format!("{} cannot be written: {error}", folder.display())),
        };
        let mut told = Told { holder, of, spools, writer, seen, living: None, has_begun: false, lines: 0 };
        if rejoins {
            // What was put out before this runner came is there before it hears of the process.
            while let Ok(fact) = facts.try_recv() {
                if told.catch_up(fact).await.is_none() {
                    return;
                }
            }
            let is_begun = told.living.is_some() || told.came() != [0, 0];
            if is_begun && told.begin().await.is_none() {
                return;
            }
        }
        let mut lines = BufReader::new(reader).lines();
        let mut is_open = true;
        loop {
            tokio::select! {
                fact = facts.recv() => match fact {
                    Some(fact) => if told.pass(fact).await.is_none() { return },
                    // Another start has its place.
                    None => return,
                },
                line = lines.next_line(), if is_open => match line {
                    Ok(Some(line)) => told.say(line).await,
                    // Its runner is gone: it hears nothing more.
                    _ => is_open = false,
                },
            }
            if !is_open {
                return;
            }
        }
    }
}

/// What was passed on of a process.
struct Told {
    holder: Arc<Holder>,
    of: Started,
    spools: [Spool; 2],
    writer: OwnedWriteHalf,
    seen: usize,
    /// What its shim has said of it.
    living: Option<Living>,
    /// Whether the runner has heard that it lives: it reads nothing of a process before.
    has_begun: bool,
    /// The lines for its shim so far.
    lines: u64,
}

impl Told {
    fn came(&self) -> [u64; 2] {
        [self.spools[0].came, self.spools[1].came]
    }

    /// Takes what was reported before the runner came; none where there is nothing more to pass on.
    async fn catch_up(&mut self, fact: ReportEvent) -> Option<()> {
        match fact {
            ReportEvent::Lives { host, line } => {
                self.living = read_living(&host, &line);
                Some(())
            }
            ReportEvent::Output { stream, bytes } => self.write(stream, bytes).await,
            fact => self.pass(fact).await,
        }
    }

    /// Tells the runner that it lives, with all that it has put out so far. One that ended while no worker was there has
    /// never said so.
    async fn begin(&mut self) -> Option<()> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Some(());
        }
        let living = self.living.take().unwrap_or_else(|| Living {
            group: 0,
            shim: 0,
            age_ms: 0,
            silent_ms: 0,
            came: [0; 2],
            told: 0,
            token: None,
            tools: None,
            host: Some("".into()),
        });
        let came = self.came();
        tell(&mut self.writer, &FromShim::Lives(Living { came, ..living })).await.ok()
    }

    /// Passes a fact on; none where nothing follows it.
    async fn pass(&mut self, fact: ReportEvent) -> Option<()> {
        match fact {
            ReportEvent::Lives { host, line } => {
                self.living = read_living(&host, &line);
                self.begin().await?;
            }
            ReportEvent::Output { stream, bytes } => {
                self.begin().await?;
                self.write(stream, bytes).await?;
                let came = self.came();
                tell(&mut self.writer, &FromShim::Came(came)).await.ok()?;
            }
            ReportEvent::Line(line) => {
                if let Ok(line @ FromShim::Heard { .. }) = serde_json::from_str(&line) {
                    tell(&mut self.writer, &line).await.ok()?;
                }
            }
            ReportEvent::Ended { line, patch } => {
                let exit: Exit = match serde_json::from_str(&line) {
                    Ok(FromShim::Ended(exit)) => Exit { came: self.came(), boot: None, ..exit },
                    _ => ended(EndCause::Lost, self.came()),
                };
                let exit = match patch {
                    Some(patch) => self.apply(patch, exit).await,
                    None => exit,
                };
                if exit.refused.is_none() {
                    self.begin().await?;
                }
                let _ = tell(&mut self.writer, &FromShim::Ended(exit)).await;
                return None;
            }
            ReportEvent::Lost => {
                let came = self.came();
                let _ = tell(&mut self.writer, &FromShim::Ended(ended(EndCause::Lost, came))).await;
                return None;
            }
            ReportEvent::Refused { .. } => {}
        }
        Some(())
    }

    async fn write(&mut self, stream: u8, bytes: crate::types::engine::Bytes) -> Option<()> {
        let bytes = match self.holder.place.objects.unpack(bytes).await {
            Ok(bytes) => bytes,
            Err(problem) => {
                self.holder.notices.give_up(problem);
                return None;
            }
        };
        let spool = &mut self.spools[usize::from(stream != 0)];
        let mut rest = &bytes[..];
        // What the disk does not take is kept by the spool, and tried again.
        loop {
            let (_, is_all) = spool.write(rest);
            rest = &[];
            if is_all {
                return Some(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }

    /// Adds what it has changed to the files of the run.
    async fn apply(&self, patch: Patch, exit: Exit) -> Exit {
        let (holder, of, seen) = (Arc::clone(&self.holder), self.of.clone(), self.seen);
        let applied = async {
            let bytes = holder.place.objects.get(&patch.digest).await?;
            let tree = Arc::clone(&holder.tree);
            let apply = tokio::task::spawn_blocking(move || tree.apply(&of, seen, &patch, &bytes));
            apply.await.unwrap_or_else(|error| Err(error.to_string()))
        };
        match applied.await {
            Ok(()) => exit,
            Err(problem) => Exit { refused: Some(problem), ..exit },
        }
    }

    /// Passes a line of the runner on.
    async fn say(&mut self, line: String) {
        // How much is read, and who reads, is between the two of us.
        match serde_json::from_str(&line) {
            Ok(FromRunner::Read(_) | FromRunner::Hello { .. } | FromRunner::Ask) | Err(_) => return,
            Ok(_) => {}
        }
        let packed = match self.holder.place.objects.pack(line.as_bytes()).await {
            Ok(packed) => packed,
            Err(problem) => return self.holder.notices.give_up(problem),
        };
        let say = Say { of: self.of.clone(), from: self.lines, lines: vec![packed] };
        self.lines += 1;
        let _ = self.holder.outbox.send(Outgoing::Say(say));
    }
}

/// What a worker says of a process that lives.
pub(super) fn read_living(host: &str, line: &str) -> Option<Living> {
    match serde_json::from_str(line) {
        Ok(FromShim::Lives(living)) => {
            Some(Living { host: Some(host.into()), came: [0; 2], told: 0, tools: None, ..living })
        }
        _ => None,
    }
}

fn ended(cause: EndCause, came: [u64; 2]) -> Exit {
    Exit { cause, exit: -1, signal: None, refused: None, came, boot: None }
}

fn split(stream: UnixStream) -> io::Result<(OwnedReadHalf, OwnedWriteHalf)> {
    stream.set_nonblocking(true)?;
    Ok(tokio::net::UnixStream::from_std(stream)?.into_split())
}

async fn tell(writer: &mut OwnedWriteHalf, line: &FromShim) -> io::Result<()> {
    let text = serde_json::to_string(line)? + "\n";
    writer.write_all(text.as_bytes()).await
}
