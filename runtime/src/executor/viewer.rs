//! The observer's own thread, and the bounded queue in front of it.
//!
//! Records always get through. Output is left out, and counted, when the observer is too far behind: a slow terminal
//! must not hold up the pipes of running processes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use crate::event::{Record, StepId};
use crate::observer::{Observer, Stream};

/// The output that may wait for the observer, in bytes.
const BACKLOG: usize = 8 * 1024 * 1024;

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

fn show(mut observer: Box<dyn Observer>, receiver: &Receiver<View>, backlog: &AtomicUsize) {
    let mut left_out: BTreeMap<StepId, usize> = BTreeMap::new();
    let tell = |observer: &mut dyn Observer, step: &StepId, bytes: usize| {
        observer.notice(&format!("{bytes} bytes of `{}` are not shown here; its log has them", step.name));
    };
    while let Ok(view) = receiver.recv() {
        match view {
            View::Records(records) => records.iter().for_each(|record| observer.recorded(record)),
            View::Notice(text) => observer.notice(&text),
            View::LeftOut { step, bytes } => *left_out.entry(step).or_default() += bytes,
            View::Output { step, attempt, stream, bytes } => {
                observer.output(&step, attempt, stream, &bytes);
                let caught_up = backlog.fetch_sub(bytes.len(), Ordering::Relaxed) == bytes.len();
                // Once for all gaps of a stretch: each by itself would be a flood of its own.
                if caught_up {
                    for (step, missing) in std::mem::take(&mut left_out) {
                        tell(&mut *observer, &step, missing);
                    }
                }
            }
        }
    }
    for (step, missing) in left_out {
        tell(&mut *observer, &step, missing);
    }
}
