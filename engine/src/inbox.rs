//! The inbox of a run: what its driver still has to take, and which starts of its processes count.
//!
//! Pure. Invariants: a report counts once, in order, and only of the last start of its process; of two drivers the later
//! one counts; what a driver has not forgotten is there for the next one, from the first byte.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use swarmc_runtime::engine::{Forget, Report, ReportEvent, Started};

/// What is known of the processes of a run, without the items themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inbox {
    /// The number of the driver.
    driver: u64,
    /// The number of the last item.
    last: u64,
    /// How many starts there were.
    starts: u64,
    processes: BTreeMap<String, Process>,
    /// The items that are of no process.
    loose: Vec<u64>,
    /// Where the driver waits.
    answer: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Process {
    start: u64,
    pool: String,
    /// The number of the last report.
    #[serde(default, skip_serializing_if = "is_default")]
    reports: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    items: Vec<u64>,
    /// Whether its end was reported: no queue has it any more.
    #[serde(default, skip_serializing_if = "is_default")]
    is_over: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    talks: bool,
}

/// Restate writes all of an inbox with each call: what is as it begins is left out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Another driver has the run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fenced;

impl Inbox {
    /// Lets a driver in.
    ///
    /// # Errors
    /// A later one is there.
    pub(crate) fn admit(&mut self, driver: u64) -> Result<(), Fenced> {
        match driver >= self.driver {
            true => {
                if driver > self.driver {
                    self.answer = None;
                }
                self.driver = driver;
                Ok(())
            }
            false => Err(Fenced),
        }
    }

    /// Begins a start of a process. What it was before, and the items of that, which are needed no more.
    pub(crate) fn start(&mut self, process: &str, pool: &str, talks: bool) -> (Started, Vec<u64>) {
        self.starts += 1;
        let new =
            Process { start: self.starts, pool: pool.to_owned(), reports: 0, items: Vec::new(), is_over: false, talks };
        let former = self.processes.insert(process.to_owned(), new);
        let of = Started { process: process.to_owned(), start: self.starts };
        (of, former.map(|former| former.items).unwrap_or_default())
    }

    /// All processes, and whether each is talked with: also those of which nothing was reported so far.
    pub(crate) fn list(&self) -> Vec<(Started, bool)> {
        let started =
            |(process, it): (&String, &Process)| (Started { process: process.clone(), start: it.start }, it.talks);
        self.processes.iter().map(started).collect()
    }

    /// The pool of a process.
    pub(crate) fn pool(&self, of: &Started) -> Option<&str> {
        self.processes.get(&of.process).filter(|process| process.start == of.start).map(|process| process.pool.as_str())
    }

    /// Takes a report of a worker: the number of its item; none where it is known.
    ///
    /// # Errors
    /// Its start counts no more.
    pub(crate) fn report(&mut self, report: &Report) -> Result<Option<u64>, Fenced> {
        let process = self.processes.get_mut(&report.of.process);
        let process = process.filter(|process| process.start == report.of.start).ok_or(Fenced)?;
        // The engine's own have none.
        if report.number > 0 {
            if report.number != process.reports + 1 {
                return Ok(None);
            }
            process.reports += 1;
        }
        process.is_over |= matches!(report.fact, ReportEvent::Ended { .. } | ReportEvent::Lost);
        self.last += 1;
        process.items.push(self.last);
        Ok(Some(self.last))
    }

    /// Takes what is of no process: the number of its item.
    pub(crate) fn add(&mut self) -> u64 {
        self.last += 1;
        self.loose.push(self.last);
        self.last
    }

    /// The items behind `after`, in order; where there are none, the answer will go `to` that.
    pub(crate) fn take(&mut self, after: u64, to: String) -> Vec<u64> {
        let all = self.processes.values().flat_map(|process| &process.items).chain(&self.loose);
        let mut items: Vec<u64> = all.copied().filter(|item| *item > after).collect();
        items.sort_unstable();
        self.answer = items.is_empty().then_some(to);
        items
    }

    /// Where the answer of the driver goes that waits: it gets one.
    pub(crate) fn take_answer(&mut self) -> Option<String> {
        self.answer.take()
    }

    /// What a driver needs no more: the items, and by pool the processes that its queue has to end.
    pub(crate) fn forget(&mut self, forget: &Forget) -> (Vec<u64>, BTreeMap<String, Vec<String>>) {
        let (mut items, mut pools) = (forget.items.clone(), BTreeMap::<String, Vec<String>>::new());
        self.loose.retain(|item| !forget.items.contains(item));
        for prefix in &forget.processes {
            let names: Vec<String> =
                self.processes.keys().filter(|process| process.starts_with(prefix.as_str())).cloned().collect();
            for name in names {
                if let Some(process) = self.processes.remove(&name) {
                    items.extend(process.items);
                    if !process.is_over {
                        pools.entry(process.pool).or_default().push(name);
                    }
                }
            }
        }
        (items, pools)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(process: &str, start: u64, number: u64) -> Report {
        Report { of: Started { process: process.to_owned(), start }, number, fact: ReportEvent::Lost }
    }

    #[test]
    fn a_report_counts_once_and_only_of_the_last_start() {
        let mut inbox = Inbox::default();
        let (first, _) = inbox.start("r/a/0", "p", false);
        assert_eq!(inbox.report(&report("r/a/0", first.start, 1)), Ok(Some(1)));
        assert_eq!(inbox.report(&report("r/a/0", first.start, 1)), Ok(None));
        assert_eq!(inbox.report(&report("r/a/0", first.start, 3)), Ok(None));
        let (second, items) = inbox.start("r/a/0", "p", false);
        assert_eq!(items, [1]);
        assert_eq!(inbox.report(&report("r/a/0", first.start, 2)), Err(Fenced));
        assert_eq!(inbox.report(&report("r/a/0", second.start, 1)), Ok(Some(2)));
        assert_eq!((inbox.pool(&second), inbox.pool(&first)), (Some("p"), None));
    }

    #[test]
    fn a_later_driver_reads_from_the_beginning_and_fences_the_former_one() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.admit(1), Ok(()));
        let (of, _) = inbox.start("r/a/0", "p", false);
        inbox.report(&report("r/a/0", of.start, 1)).unwrap();
        assert_eq!(inbox.take(0, "x".to_owned()), [1]);
        assert!(inbox.take(1, "y".to_owned()).is_empty());
        assert_eq!(inbox.admit(2), Ok(()));
        assert_eq!(inbox.take_answer(), None);
        assert_eq!(inbox.take(0, "z".to_owned()), [1]);
        assert_eq!(inbox.admit(1), Err(Fenced));
    }

    #[test]
    fn what_is_forgotten_is_gone_from_the_queue_too() {
        let mut inbox = Inbox::default();
        for name in ["r/a.1/0", "r/a.1/1", "r/a.10/0"] {
            let (of, _) = inbox.start(name, "p", false);
            let fact = if name == "r/a.1/0" { ReportEvent::Lost } else { ReportEvent::Line(String::new()) };
            inbox.report(&Report { fact, ..report(name, of.start, 1) }).unwrap();
        }
        let loose = inbox.add();
        let forget = Forget { processes: vec!["r/a.1/".to_owned()], items: vec![loose] };
        let (items, pools) = inbox.forget(&forget);
        // The first has ended by itself.
        assert_eq!((items, pools), (vec![4, 1, 2], BTreeMap::from([("p".to_owned(), vec!["r/a.1/1".to_owned()])])));
        assert_eq!(inbox.take(0, "x".to_owned()), [3]);
    }
}
