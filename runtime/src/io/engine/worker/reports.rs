//! Reports on their way to the engine: one push of each run at a time, of all that is there.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Worker;
use super::process::Process;
use super::record::Reported;
use crate::io::engine::CallError;
use crate::types::engine::{Report, ReportEvent, Started};

/// The reports of a push at most.
const MOST: usize = 256;

/// How long the first report waits for others: less than a push takes.
const GATHER: Duration = Duration::from_millis(4);

/// The runs that are being reported to.
#[derive(Debug, Default)]
pub(super) struct Pushing {
    runs: BTreeSet<String>,
}

impl Worker {
    /// Reports what there is of the run of a process.
    pub(super) fn report(self: &Rc<Worker>, of: &Started) {
        let run = of.run().to_owned();
        if self.pushing.borrow_mut().runs.insert(run.clone()) {
            tokio::task::spawn_local(Rc::clone(self).push_all(run));
        }
    }

    async fn push_all(self: Rc<Worker>, run: String) {
        // The process that is behind those that were reported last: each has its turn.
        let mut first = String::new();
        // Most commands end within this: one push says all of it.
        tokio::time::sleep(GATHER).await;
        loop {
            let batch = self.gather(&run, &mut first);
            if batch.is_empty() {
                self.pushing.borrow_mut().runs.remove(&run);
                return;
            }
            self.push(&run, batch).await;
        }
    }

    /// The reports that are sent next, by process.
    fn gather(&self, run: &str, first: &mut String) -> Vec<(Rc<Process>, Vec<Report>)> {
        let processes = self.processes.borrow();
        let from = Started { process: format!("{run}/"), start: 0 };
        let of_run = processes.range(from..).take_while(|(of, _)| of.run() == run).map(|(_, process)| process);
        let mut waiting: Vec<&Rc<Process>> = of_run
            .filter(|process| !process.is_dropped.get() && !process.reports.borrow().waiting.is_empty())
            .collect();
        let turn = waiting.iter().position(|process| process.of.process > *first).unwrap_or(0);
        waiting.rotate_left(turn);
        let mut room = MOST;
        let mut batch = Vec::new();
        for process in waiting {
            let reports: Vec<Report> =
                process.reports.borrow().waiting.iter().take(room).map(|(report, _)| report.clone()).collect();
            room -= reports.len();
            first.clone_from(&process.of.process);
            batch.push((Rc::clone(process), reports));
            if room == 0 {
                break;
            }
        }
        batch
    }

    /// Sends reports until the engine has them, or wants none of them.
    async fn push(self: &Rc<Worker>, run: &str, batch: Vec<(Rc<Process>, Vec<Report>)>) {
        for (process, reports) in &batch {
            if let Err(problem) = process.note_sent(reports) {
                // Without it a worker that starts again would report other things by the same numbers.
                self.options.notify(&format!("{problem}: {} is given up", process.of.process));
                self.drop_process(&process.of);
            }
        }
        let reports: Vec<Report> = batch
            .iter()
            .filter(|(process, _)| !process.is_dropped.get())
            .flat_map(|(_, reports)| reports.iter().cloned())
            .collect();
        if reports.is_empty() {
            return;
        }
        let over = loop {
            let began = Instant::now();
            match self.client.push(run, &reports).await {
                Ok(over) => {
                    self.reach.answered(&self.options, began);
                    break over;
                }
                Err(error @ CallError::Unreachable { .. }) => self.reach.failed(&self.options, &error).await,
                // The run is over, or takes none of them for another reason.
                Err(CallError::Refused { status, message, .. }) => {
                    if !matches!(status, 404 | 409) {
                        self.options.notify(&format!("the engine refuses what run {run} reports: {message}"));
                    }
                    let processes = self.processes.borrow();
                    break processes.keys().filter(|of| of.run() == run).cloned().collect();
                }
            }
        };
        for of in &over {
            self.drop_process(of);
        }
        for (process, reports) in batch {
            let last = reports.last().map_or(0, |report| report.number);
            process.reports.borrow_mut().waiting.retain(|(report, _)| report.number > last);
            process.wake.notify_one();
        }
    }
}

impl Process {
    /// Writes down what the engine is sent, ahead of that: whoever comes after a worker that is killed sends the same.
    fn note_sent(&self, sent: &[Report]) -> Result<(), String> {
        let mut reports = self.reports.borrow_mut();
        let number = sent.last().map_or(0, |report| report.number);
        if number <= reports.written.number {
            // All of them were sent before.
            return Ok(());
        }
        let read = reports.waiting.iter().find(|(report, _)| report.number == number).map(|(_, read)| *read);
        let written = Reported {
            number,
            read: read.unwrap_or(reports.written.read),
            lives: reports.written.lives || sent.iter().any(|report| matches!(report.fact, ReportEvent::Lives { .. })),
            pending: sent.to_vec(),
        };
        self.record.write_reported(&written)?;
        reports.written = written;
        Ok(())
    }
}
