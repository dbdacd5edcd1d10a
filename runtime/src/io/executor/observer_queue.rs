//! The observer's own thread, and the bounded queue in front of it.
//!
//! Records always get through. Output is left out, and counted, when the observer is too far behind: a slow terminal
//! must not hold up the pipes of running processes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::types::activity::{Flow, now_ms};
use crate::types::event::{Record, StepId};
use crate::types::observer::{Observer, Stream};
use crate::types::telemetry::{Link, Signal, TelemetryKind};

/// The output that may wait for the observer, in bytes.
const BACKLOG: usize = 8 * 1024 * 1024;

/// How often the observer learns of one attempt whether its agent reads or writes.
const FLOWS: u32 = 1_000;

/// How long the observer's thread lets records gather before it shows them; less where much output comes meanwhile, as a fast
/// command fills [`BACKLOG`] in 8 ms.
const GATHER: Duration = Duration::from_millis(8);

/// The output, in bytes, that ends the gathering.
const MUCH: usize = BACKLOG / 8;

/// Shows things to the observer. Cloning is cheap, calls never wait.
#[derive(Clone, Debug)]
pub(crate) struct ObserverHandle {
    sender: Sender<View>,
    backlog: Arc<AtomicUsize>,
    thread: Arc<OnceLock<Thread>>,
    wants_output: bool,
    wants_signals: bool,
}

#[derive(Debug)]
enum View {
    Records(Vec<Record>),
    Output {
        step: StepId,
        attempt: u32,
        stream: Stream,
        bytes: Vec<u8>,
    },
    Signal(Signal),
    /// The agent of an attempt reads or writes from now on, whether it is one of a node or not.
    Flow {
        at: u64,
        step: StepId,
        attempt: u32,
        flow: Flow,
    },
    LeftOut {
        step: StepId,
        bytes: usize,
    },
    Notice(String),
}

impl ObserverHandle {
    /// Starts the thread. It ends when every clone of the handle is gone and all was shown.
    pub(crate) fn start(observer: Box<dyn Observer>) -> (ObserverHandle, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        let (wants_output, wants_signals) = (observer.wants_output(), observer.wants_signals());
        let (backlogged, thread) = (Arc::clone(&backlog), Arc::default());
        let observer_handle = ObserverHandle { sender, backlog: backlogged, thread, wants_output, wants_signals };
        let thread = std::thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || run_observer(observer, &receiver, &backlog))
            .expect("the system has room for one more thread");
        // Set once, here.
        let _ = observer_handle.thread.set(thread.thread().clone());
        (observer_handle, thread)
    }

    /// A handle that no observer listens to.
    pub(crate) fn unobserved() -> ObserverHandle {
        let (sender, _) = mpsc::channel();
        ObserverHandle {
            sender,
            backlog: Arc::default(),
            thread: Arc::default(),
            wants_output: false,
            wants_signals: false,
        }
    }

    pub(crate) fn send_records(&self, records: Vec<Record>) {
        self.send(View::Records(records));
    }

    /// Whether signals are looked at.
    pub(crate) fn wants_signals(&self) -> bool {
        self.wants_signals
    }

    pub(crate) fn send_signal(&self, signal: Signal) {
        if self.wants_signals {
            self.send(View::Signal(signal));
        }
    }

    pub(crate) fn send_flow(&self, step: &StepId, attempt: u32, flow: Flow) {
        if self.wants_signals {
            self.send(View::Flow { at: now_ms(), step: step.clone(), attempt, flow });
        }
    }

    pub(crate) fn send_notice(&self, text: impl Into<String>) {
        self.send(View::Notice(text.into()));
    }

    pub(crate) fn send_output(&self, step: &StepId, attempt: u32, stream: Stream, bytes: &[u8]) {
        if !self.wants_output {
            return;
        }
        let waiting = self.backlog.fetch_add(bytes.len(), Ordering::Relaxed);
        if waiting > BACKLOG {
            self.backlog.fetch_sub(bytes.len(), Ordering::Relaxed);
            self.send(View::LeftOut { step: step.clone(), bytes: bytes.len() });
        } else {
            self.send(View::Output { step: step.clone(), attempt, stream, bytes: bytes.to_vec() });
            if waiting < MUCH && waiting + bytes.len() >= MUCH {
                self.thread.get().inspect(|thread| thread.unpark());
            }
        }
    }

    fn send(&self, view: View) {
        // An observer that panicked sees nothing more; the run goes on, and says so at its end.
        let _ = self.sender.send(view);
    }
}

fn run_observer(observer: Box<dyn Observer>, receiver: &Receiver<View>, backlog: &AtomicUsize) {
    let mut ticks = Ticks::new(&*observer);
    let mut show = Show { observer, backlog, left_out: BTreeMap::new(), links: BTreeMap::new() };
    loop {
        let first = match ticks.advance(&mut *show.observer) {
            None => receiver.recv().map_err(RecvTimeoutError::from),
            Some(pause) => receiver.recv_timeout(pause),
        };
        let first = match first {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        // Being woken for each record would cost a run of short steps more than showing them; output is shown at once,
        // while it is still in the processor's cache.
        if matches!(first, View::Records(_)) && backlog.load(Ordering::Relaxed) < MUCH {
            // The end of the run wakes it early.
            std::thread::park_timeout(GATHER);
        }
        std::iter::once(first).chain(receiver.try_iter()).for_each(|view| show.show_view(view));
    }
    show.tell_gaps();
    show.show_disconnected();
}

/// The ticks of an observer.
pub(crate) struct Ticks {
    interval: Option<Duration>,
    due: Instant,
}

impl Ticks {
    /// The first one is due after an interval.
    pub(crate) fn new(observer: &dyn Observer) -> Ticks {
        let interval = observer.tick_interval();
        Ticks { interval, due: Instant::now() + interval.unwrap_or_default() }
    }

    /// Calls [`Observer::tick`] where it is due; how long it is until the next one.
    pub(crate) fn advance(&mut self, observer: &mut dyn Observer) -> Option<Duration> {
        let interval = self.interval?;
        if self.due <= Instant::now() {
            observer.tick();
            self.due = Instant::now() + interval;
        }
        Some(self.due.saturating_duration_since(Instant::now()))
    }
}

/// What the thread knows.
struct Show<'a> {
    observer: Box<dyn Observer>,
    backlog: &'a AtomicUsize,
    /// The bytes that were not shown, by step.
    left_out: BTreeMap<StepId, usize>,
    /// What was told last of the nodes that are not disconnected, and how often it was told what their agents do.
    links: BTreeMap<StepId, (Signal, u32)>,
}

impl Show<'_> {
    fn show_view(&mut self, view: View) {
        match view {
            View::Records(records) => records.iter().for_each(|record| self.observer.recorded(record)),
            View::Signal(signal) => self.show_signal(signal),
            View::Flow { at, step, attempt, flow } => self.show_flow(at, &step, attempt, flow),
            View::Notice(text) => self.observer.notice(&text),
            View::LeftOut { step, bytes } => *self.left_out.entry(step).or_default() += bytes,
            View::Output { step, attempt, stream, bytes } => {
                self.observer.output(&step, attempt, stream, &bytes);
                let caught_up = self.backlog.fetch_sub(bytes.len(), Ordering::Relaxed) == bytes.len();
                // Once for all gaps of a stretch: each by itself would be a flood of its own.
                if caught_up {
                    self.tell_gaps();
                }
            }
        }
    }

    /// Passes on a signal; of a node's connection only what differs from before.
    fn show_signal(&mut self, mut signal: Signal) {
        let known = self.links.get(&signal.step);
        let mut told = 0;
        if let TelemetryKind::Connection { state, stream, session, .. } = &mut signal.sign {
            match known {
                None if *state == Link::Disconnected => return,
                // It was forgotten with what is around it.
                Some((before, _)) if signal.attempt == 0 => {
                    signal.attempt = before.attempt;
                    if let TelemetryKind::Connection { session: last, .. } = &before.sign {
                        session.clone_from(last);
                    }
                }
                Some((before, flows)) if before.attempt == signal.attempt => {
                    // What the agent does is told by itself.
                    if let (TelemetryKind::Connection { stream: now, .. }, true) =
                        (&before.sign, *state == Link::Connected)
                    {
                        *stream = now.or(*stream);
                    }
                    if before.sign == signal.sign {
                        return;
                    }
                    told = *flows;
                }
                _ => {}
            }
            if matches!(signal.sign, TelemetryKind::Connection { state: Link::Disconnected, .. }) {
                self.links.remove(&signal.step);
            } else {
                self.links.insert(signal.step.clone(), (signal.clone(), told));
            }
        }
        self.observer.signal(&signal);
    }

    fn show_flow(&mut self, at: u64, step: &StepId, attempt: u32, flow: Flow) {
        let Some((signal, told)) = self.links.get_mut(step) else { return };
        if signal.attempt != attempt || *told == FLOWS {
            return;
        }
        if let TelemetryKind::Connection { state: Link::Connected, stream, .. } = &mut signal.sign
            && stream.replace(flow) != Some(flow)
        {
            (signal.at, *told) = (at, *told + 1);
            self.observer.signal(signal);
        }
    }

    /// The run has ended, and no process runs it any more.
    fn show_disconnected(&mut self) {
        for (_, (mut signal, _)) in std::mem::take(&mut self.links) {
            if let TelemetryKind::Connection { state, stream, waits, .. } = &mut signal.sign {
                (*state, *stream, *waits) = (Link::Disconnected, None, None);
            }
            signal.at = now_ms();
            self.observer.signal(&signal);
        }
    }

    fn tell_gaps(&mut self) {
        for (step, bytes) in std::mem::take(&mut self.left_out) {
            self.observer.notice(&format!("{bytes} bytes of `{}` are not shown here; its log has them", step.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// Writes signals down, each as a few words.
    struct Seen(Arc<Mutex<Vec<String>>>);

    impl Observer for Seen {
        fn recorded(&mut self, _record: &Record) {}

        fn output(&mut self, _step: &StepId, _attempt: u32, _stream: Stream, _bytes: &[u8]) {}

        fn signal(&mut self, signal: &Signal) {
            let TelemetryKind::Connection { state, stream, session, .. } = &signal.sign else { return };
            let words = format!(
                "{}#{} {} {} {}",
                signal.step.name,
                signal.attempt,
                state.as_str(),
                stream.map_or("-", Flow::as_str),
                session.as_deref().unwrap_or("-")
            );
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(words);
        }

        fn wants_signals(&self) -> bool {
            true
        }

        fn notice(&mut self, _text: &str) {}
    }

    /// The reports of these: `STEP ATTEMPT STATE [SESSION]`, or `STEP ATTEMPT reading` and `writing`.
    fn check(views: &str, expected: &[&str]) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (observer_handle, watching) = ObserverHandle::start(Box::new(Seen(Arc::clone(&seen))));
        for view in views.split(", ") {
            let words: Vec<&str> = view.split(' ').collect();
            let (step, attempt) = (StepId::new(words[0], 1, 1), words[1].parse().unwrap());
            let (state, stream) = match words[2] {
                "reading" => {
                    observer_handle.send_flow(&step, attempt, Flow::Reading);
                    continue;
                }
                "writing" => {
                    observer_handle.send_flow(&step, attempt, Flow::Writing);
                    continue;
                }
                "connected" => (Link::Connected, Some(Flow::Reading)),
                "idle" => (Link::Idle, None),
                _ => (Link::Disconnected, None),
            };
            let session = words.get(3).map(|&session| session.to_owned());
            observer_handle.send_signal(Signal {
                at: 1,
                step,
                attempt,
                sign: TelemetryKind::Connection { state, stream, session, waits: None },
            });
        }
        drop(observer_handle);
        watching.join().unwrap();
        assert_eq!(*seen.lock().unwrap(), expected, "of {views}");
    }

    #[test]
    fn of_how_a_node_stands_only_changes_are_told_and_its_end() {
        check(
            "a 1 connected, a 1 writing, a 1 writing, a 1 connected ses, a 1 connected ses, a 1 reading, a 1 idle ses",
            &[
                "a#1 connected reading -",
                "a#1 connected writing -",
                "a#1 connected writing ses",
                "a#1 connected reading ses",
                "a#1 idle - ses",
                // No process runs it any more.
                "a#1 disconnected - ses",
            ],
        );
    }

    #[test]
    fn what_is_no_node_and_what_another_attempt_does_is_not_told() {
        check("a 1 writing, b 1 disconnected", &[]);
        let told = ["a#2 connected reading -", "a#2 disconnected - -"];
        check("a 2 connected, a 1 writing, a 0 disconnected, a 2 writing", &told);
    }
}
