//! The observer's own thread, and the bounded queue in front of it.
//!
//! Records always get through. Output is left out, and counted, when the observer is too far behind: a slow terminal
//! must not hold up the pipes of running processes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::event::{Record, StepId};
use crate::observer::{Observer, Stream};

/// The output that may wait for the observer, in bytes.
const BACKLOG: usize = 8 * 1024 * 1024;

/// How long the observer's thread lets records gather before it shows them.
const GATHER: Duration = Duration::from_millis(2);

/// Shows things to the observer. Cloning is cheap, calls never wait.
#[derive(Clone, Debug)]
pub(crate) struct Viewer {
    sender: Sender<View>,
    backlog: Arc<AtomicUsize>,
    wants_output: bool,
}

#[derive(Debug)]
enum View {
    Records(Vec<Record>),
    Output { step: StepId, attempt: u32, stream: Stream, bytes: Vec<u8> },
    LeftOut { step: StepId, bytes: usize },
    Notice(String),
}

impl Viewer {
    /// Starts the thread. It ends when every clone of the viewer is gone and all was shown.
    pub(crate) fn start(observer: Box<dyn Observer>) -> (Viewer, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        let viewer = Viewer { sender, backlog: Arc::clone(&backlog), wants_output: observer.wants_output() };
        let thread = std::thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || show(observer, &receiver, &backlog))
            .expect("the system has room for one more thread");
        (viewer, thread)
    }

    pub(crate) fn records(&self, records: Vec<Record>) {
        self.send(View::Records(records));
    }

    pub(crate) fn notice(&self, text: impl Into<String>) {
        self.send(View::Notice(text.into()));
    }

    pub(crate) fn output(&self, step: &StepId, attempt: u32, stream: Stream, bytes: &[u8]) {
        if !self.wants_output {
            return;
        }
        let waiting = self.backlog.fetch_add(bytes.len(), Ordering::Relaxed);
        if waiting > BACKLOG {
            self.backlog.fetch_sub(bytes.len(), Ordering::Relaxed);
            self.send(View::LeftOut { step: step.clone(), bytes: bytes.len() });
        } else {
            self.send(View::Output { step: step.clone(), attempt, stream, bytes: bytes.to_vec() });
        }
    }

    fn send(&self, view: View) {
        // An observer that panicked sees nothing more; the run goes on, and says so at its end.
        let _ = self.sender.send(view);
    }
}

fn show(observer: Box<dyn Observer>, receiver: &Receiver<View>, backlog: &AtomicUsize) {
    let mut show = Show { observer, backlog, left_out: BTreeMap::new() };
    while let Ok(first) = receiver.recv() {
        // Being woken for each record would cost a run of short steps more than showing them; output is shown at once,
        // while it is still in the processor's cache.
        if matches!(first, View::Records(_)) {
            std::thread::sleep(GATHER);
        }
        std::iter::once(first).chain(receiver.try_iter()).for_each(|view| show.view(view));
    }
    show.tell_gaps();
}

/// What the thread knows.
struct Show<'a> {
    observer: Box<dyn Observer>,
    backlog: &'a AtomicUsize,
    /// The bytes that were not shown, by step.
    left_out: BTreeMap<StepId, usize>,
}

impl Show<'_> {
    fn view(&mut self, view: View) {
        match view {
            View::Records(records) => records.iter().for_each(|record| self.observer.recorded(record)),
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

    fn tell_gaps(&mut self) {
        for (step, bytes) in std::mem::take(&mut self.left_out) {
            self.observer.notice(&format!("{bytes} bytes of `{}` are not shown here; its log has them", step.name));
        }
    }
}
