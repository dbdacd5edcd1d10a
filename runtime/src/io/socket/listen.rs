//! Serves the control socket of a run: one thread accepts connections, and another one serves each of them.
//!
//! Invariant: connections are bounded, in number and in time, and the end of the run waits for no idle client.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{LONGEST, OK, PATIENCE};
use crate::io::control::Control;
use crate::io::home::RunFolder;
use crate::io::socket_peer::{PeerCredentials, Processes};
use crate::io::unix::{Timed, through};
use crate::types::activity::Activities;
use crate::types::error::RunError;

/// The connections at once. Where one more comes, the one makes way that has waited longest without an order.
const CLIENTS: usize = 64;

/// How long the socket accepts no connection where the system has no file or no thread for one more.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the end of a run waits for clients that gave an order to read their answers.
const FAREWELL: Duration = Duration::from_millis(200);

/// Listens until dropped.
pub(crate) struct Socket {
    path: PathBuf,
    listener: Arc<UnixListener>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Socket {
    /// Starts to take orders for `control`, but not of `processes`. The lock of the run must be held.
    pub(crate) fn listen(
        folder: &RunFolder,
        control: Control,
        activities: Activities,
        processes: Processes,
    ) -> Result<Socket, RunError> {
        let path = folder.socket_path();
        // A killed runner leaves its socket behind, and the lock shows that no other process listens.
        let _ = std::fs::remove_file(&path);
        let listener = through(&path, UnixListener::bind).map_err(RunError::io("listen on", &path))?;
        let (listener, closing) = (Arc::new(listener), Arc::new(AtomicBool::new(false)));
        let handler = Arc::new(OrderHandler { run: folder.id.clone(), control, activities, processes });
        let thread = {
            let (listener, closing) = (Arc::clone(&listener), Arc::clone(&closing));
            let accept = move || Clients::new(handler).accept(&listener, &closing);
            thread("control", accept).map_err(RunError::io("listen on", &path))?
        };
        Ok(Socket { path, listener, closing, thread: Some(thread) })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        // It wakes the thread. Where it cannot, the thread ends with the process.
        let woken = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        if woken.is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).stack_size(128 * 1024).spawn(work)
}

/// Those who are connected.
struct Clients {
    handler: Arc<OrderHandler>,
    /// In the order in which they came.
    open: Vec<Client>,
    /// What each of them holds while it is served; of use only in that it goes.
    serving: Sender<()>,
    served: Receiver<()>,
}

/// One of them.
struct Client {
    stream: Arc<UnixStream>,
    /// Whether it gave its order, or was told to go before.
    settled: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Clients {
    fn new(handler: Arc<OrderHandler>) -> Clients {
        let (serving, served) = mpsc::channel();
        Clients { handler, open: Vec::new(), serving, served }
    }

    /// Accepts connections, until the socket closes.
    fn accept(mut self, listener: &UnixListener, closing: &AtomicBool) {
        loop {
            let come = listener.accept();
            if closing.load(Ordering::Acquire) {
                break;
            }
            let taken = come.and_then(|(stream, _)| {
                while !self.has_room() && !closing.load(Ordering::Acquire) {
                    std::thread::sleep(PAUSE);
                }
                self.take(stream)
            });
            if taken.is_err() {
                // A client has to go before anything else succeeds.
                std::thread::sleep(PAUSE);
            }
        }
        self.close();
    }

    /// Whether there is room for one more client. Where there is none, the one that has waited longest without an order
    /// goes.
    fn has_room(&mut self) -> bool {
        self.open.retain(|client| !client.thread.is_finished());
        if self.open.len() < CLIENTS {
            return true;
        }
        let silent = self.open.iter().position(|client| !client.settled.swap(true, Ordering::AcqRel));
        let Some(client) = silent.map(|position| self.open.remove(position)) else { return false };
        let _ = client.stream.shutdown(Shutdown::Both);
        // It reads the end of what it waits for, and has nothing to do.
        let _ = client.thread.join();
        true
    }

    fn take(&mut self, stream: UnixStream) -> io::Result<()> {
        let (stream, settled) = (Arc::new(stream), Arc::new(AtomicBool::new(false)));
        let thread = {
            let (stream, settled) = (Arc::clone(&stream), Arc::clone(&settled));
            let (handler, serving) = (Arc::clone(&self.handler), self.serving.clone());
            let serve = move || {
                // A client that goes away early reads no error.
                let _ = handler.serve(&stream, &settled);
                let _ = stream.shutdown(Shutdown::Both);
                drop(serving);
            };
            thread("client", serve)?
        };
        self.open.push(Client { stream, settled, thread });
        Ok(())
    }

    /// Ends all of them: what they asked for was answered, or is not any more.
    fn close(self) {
        let Clients { open, serving, served, .. } = self;
        drop(serving);
        open.iter().for_each(|client| _ = client.stream.shutdown(Shutdown::Read));
        // Nothing is ever sent: it ends when no client is served.
        let _ = served.recv_timeout(FAREWELL);
        open.iter().for_each(|client| _ = client.stream.shutdown(Shutdown::Both));
        open.into_iter().for_each(|client| drop(client.thread.join()));
    }
}

/// Carries out the orders of clients.
struct OrderHandler {
    run: String,
    control: Control,
    activities: Activities,
    processes: Processes,
}

impl OrderHandler {
    fn serve(&self, stream: &UnixStream, settled: &AtomicBool) -> io::Result<()> {
        let timed = || Timed { stream, until: Instant::now() + PATIENCE };
        let mut order = String::new();
        BufReader::new(timed().take(LONGEST)).read_line(&mut order)?;
        if settled.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let told = match order.trim_end() {
            "pulses" => Ok(serde_json::to_string(&self.activities.list_open())?),
            order => self.trusted(stream).and_then(|()| self.obey(order)),
        };
        let told = told.unwrap_or_else(|problem| problem).replace('\n', " ");
        timed().write_all(format!("{}\n", told.trim_end()).as_bytes())
    }

    /// Refuses the processes of the run: an agent could allow itself what a person is to decide.
    fn trusted(&self, stream: &UnixStream) -> Result<(), String> {
        match self.processes.peer(stream) {
            PeerCredentials::Outside => Ok(()),
            PeerCredentials::Within(_) => Err(format!(
                "this is a process of run `{}`, and its agents cannot approve or write as a person, nor stop it: \
                 `swarmc agent request-help` asks a person, `swarmc agent send-handoff` writes to another agent",
                self.run
            )),
            PeerCredentials::Untraced => {
                Err("the process that asks has ended, or cannot be traced: ask from a terminal".to_owned())
            }
        }
    }

    /// Takes an order that is a person's to give.
    fn obey(&self, order: &str) -> Result<String, String> {
        let unknown = |_| "unknown order".to_owned();
        let taken = |words: String| format!("{OK} {words}");
        match order.split_once(' ') {
            None if order == "stop" => {
                self.control.stop();
                Ok(OK.to_owned())
            }
            Some(("answer", json)) => {
                let answer = serde_json::from_str(json).map_err(unknown)?;
                self.control.answer(answer).map(|()| OK.to_owned())
            }
            Some(("send", json)) => self.control.send(serde_json::from_str(json).map_err(unknown)?).map(taken),
            _ => Err("unknown order".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{THROUGH, order};
    use super::*;
    use crate::io::home::Home;

    fn listening() -> (tempfile::TempDir, RunFolder, Socket) {
        let place = tempfile::tempdir().unwrap();
        let home = Home::new(place.path().join("home"));
        let folder = home.publish(home.create().unwrap()).unwrap();
        let processes = Processes::new(&folder.id);
        let socket = Socket::listen(&folder, Control::new(), Activities::default(), processes).unwrap();
        (place, folder, socket)
    }

    fn connected(folder: &RunFolder) -> UnixStream {
        through(&folder.socket_path(), UnixStream::connect).unwrap()
    }

    #[test]
    fn slow_clients_do_not_delay_others() {
        let (_place, folder, _socket) = listening();
        let slow = |number: usize| {
            let mut stream = connected(&folder);
            // Some send nothing, and some half an order. A client that had to make way gets no answer to the rest.
            let _ = stream.write_all(&b"pulses"[..number % 6]);
            stream
        };
        // One after the other they would take longer than a caller waits.
        let slow: Vec<UnixStream> = (0..10 * CLIENTS).map(slow).collect();
        assert_eq!(order(&folder, "pulses", THROUGH).unwrap(), "[]");
        assert_eq!(order(&folder, "stop", THROUGH).unwrap(), "ok");
        drop(slow);
    }

    #[test]
    fn of_too_many_clients_the_one_goes_that_has_waited_longest_without_an_order() {
        let handler = OrderHandler {
            run: "run-1".to_owned(),
            control: Control::new(),
            activities: Activities::default(),
            processes: Processes::new("run-1"),
        };
        let mut clients = Clients::new(Arc::new(handler));
        let mut others = Vec::new();
        for _ in 0..CLIENTS {
            assert!(clients.has_room());
            assert_eq!(clients.open.len(), others.len(), "no client goes while there is room");
            let (ours, other) = UnixStream::pair().unwrap();
            clients.take(ours).unwrap();
            others.push(other);
        }
        // The first has given its order, and is answered.
        clients.open[0].settled.store(true, Ordering::Release);
        assert!(clients.has_room());
        assert_eq!(clients.open.len(), CLIENTS - 1);
        assert_eq!(others[1].read(&mut [0]).unwrap(), 0, "the second has made way");
        clients.open.iter().for_each(|client| client.settled.store(true, Ordering::Release));
        let (ours, _other) = UnixStream::pair().unwrap();
        clients.take(ours).unwrap();
        clients.open[CLIENTS - 1].settled.store(true, Ordering::Release);
        assert!(!clients.has_room(), "a client that is answered makes no way");
        clients.close();
    }

    #[test]
    fn a_client_that_sends_a_byte_now_and_then_is_dropped_and_delays_no_end() {
        let (_place, folder, socket) = listening();
        let trickle = connected(&folder);
        let began = Instant::now();
        let drip = |mut stream: &UnixStream| stream.write_all(b"x").is_ok();
        assert!(drip(&trickle));
        drop(socket);
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
        assert!(!drip(&trickle), "no socket listens");

        let (_place, folder, _socket) = listening();
        let trickle = connected(&folder);
        let began = Instant::now();
        trickle.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        // Each pause between two bytes is shorter than the patience; all of them are not.
        while drip(&trickle) && began.elapsed() < PATIENCE * 3 {
            let _ = (&trickle).read(&mut [0]);
        }
        assert!(began.elapsed() < PATIENCE * 2, "{:?}", began.elapsed());
    }
}
