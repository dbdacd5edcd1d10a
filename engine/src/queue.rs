//! The queue of a pool: which processes wait for a worker, and which worker has which.
//!
//! Pure: offers, questions and losses go in, deliveries come out. Invariants: a start of a process is given to one worker
//! at a time; what a worker was given and does not name when it asks again is given to it again, so that no answer that
//! was lost on its way loses a process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use swarmc_runtime::engine::{Ask, Bytes, Delivery, QueuedStart, Say, Started};

/// How often a worker is looked at in the time that it may be silent.
pub(crate) const LOOKS: u32 = 4;

/// The processes of a pool, without their orders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    /// By process: only the last start of each.
    leases: BTreeMap<String, Lease>,
    workers: BTreeMap<String, Worker>,
}

/// A process without a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting {
    of: Started,
    /// The workers that cannot start it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    refused: BTreeSet<String>,
    /// What it was told so far.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    said: VecDeque<Bytes>,
}

/// A process that a worker has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lease {
    start: u64,
    worker: String,
    /// What it was told that its worker has not heard, and the number of the first of these lines.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    said: VecDeque<Bytes>,
    from: u64,
}

/// A worker that has asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Worker {
    free: u32,
    /// How often it has asked: whether it asks again is seen by this.
    asked: u64,
    /// Whether it will be looked at, by [`Queue::expire`].
    #[serde(default)]
    is_watched: bool,
    /// Where its answer goes, while it waits.
    answer: Option<String>,
}

/// An answer for a worker that waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Where it goes.
    pub(crate) to: String,
    /// What it says; orders of offers are filled in by the caller.
    pub(crate) deliveries: Vec<Gift>,
}

/// A delivery, without the order of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gift {
    /// To be started.
    Start(Started),
    /// For the shim.
    Say(Say),
    /// To be ended.
    End(Started),
}

impl Gift {
    /// The delivery, with the order that `order` finds; none where it is gone.
    pub(crate) async fn fill<E>(
        self,
        order: impl AsyncFnOnce(&Started) -> Result<Option<Bytes>, E>,
    ) -> Result<Option<Delivery>, E> {
        Ok(match self {
            Gift::Start(of) => order(&of).await?.map(|order| Delivery::Start(QueuedStart { of, order })),
            Gift::Say(say) => Some(Delivery::Say(say)),
            Gift::End(of) => Some(Delivery::End(of)),
        })
    }
}

/// What a question leads to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// What the worker is given at once; nothing where it waits.
    pub(crate) deliveries: Vec<Gift>,
    /// The number of its question, where it is to be looked at from now on; none where it is already.
    pub(crate) number: Option<u64>,
    /// The answer of its former question, which it does not wait for any more.
    pub(crate) former: Option<String>,
    /// The processes whose orders are needed no more.
    pub(crate) over: Vec<Started>,
    /// The processes that it cannot start, and why.
    pub(crate) refused: Vec<(Started, String)>,
    /// Answers for others: they are given what this one has refused.
    pub(crate) others: Vec<Answer>,
}

impl Queue {
    /// Takes offers. A former start of the same process goes: its worker hears so when it asks.
    pub(crate) fn offer(&mut self, offers: impl IntoIterator<Item = Started>) -> Vec<Answer> {
        for of in offers {
            self.forget(&of.process);
            self.waiting.push_back(Waiting { of, refused: BTreeSet::new(), said: VecDeque::new() });
        }
        self.hand_out()
    }

    /// Forgets a process, whatever start of it; its worker ends it when it asks.
    pub(crate) fn forget(&mut self, process: &str) {
        self.waiting.retain(|waiting| waiting.of.process != process);
        self.leases.remove(process);
    }

    /// Forgets processes: the starts that were known, and answers that tell the workers that wait.
    pub(crate) fn cancel(&mut self, processes: &[String]) -> (Vec<Started>, Vec<Answer>) {
        let (mut over, mut answers) = (Vec::new(), Vec::new());
        for process in processes {
            let waiting = self.waiting.iter().find(|waiting| waiting.of.process == *process);
            over.extend(waiting.map(|waiting| waiting.of.clone()));
            if let Some(lease) = self.leases.get(process) {
                let (worker, of) = (lease.worker.clone(), Started { process: process.clone(), start: lease.start });
                answers.extend(self.answer(&worker, vec![Gift::End(of.clone())]));
                over.push(of);
            }
            self.forget(process);
        }
        (over, answers)
    }

    /// Passes lines on. Those for another start are dropped.
    pub(crate) fn say(&mut self, says: Vec<Say>) -> Vec<Answer> {
        let mut answers = Vec::new();
        for say in says {
            if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.of == say.of) {
                append(&mut waiting.said, 0, say);
                continue;
            }
            let Some(lease) = self.leases.get_mut(&say.of.process).filter(|lease| lease.start == say.of.start) else {
                continue;
            };
            append(&mut lease.said, lease.from, say.clone());
            let worker = lease.worker.clone();
            let rest =
                Gift::Say(Say { of: say.of.clone(), from: lease.from, lines: lease.said.iter().cloned().collect() });
            answers.extend(self.answer(&worker, vec![rest]));
        }
        answers
    }

    /// A worker asks; where there is nothing for it, its answer will go `to` that.
    pub(crate) fn ask(&mut self, ask: &Ask, to: String) -> Asked {
        let mut asked = Asked::default();
        for (of, refusal) in &ask.done {
            let has_lease = self.leases.get(&of.process).is_some_and(|lease| lease.start == of.start);
            if !has_lease {
                continue;
            }
            let lease = self.leases.remove(&of.process);
            match (refusal, lease) {
                (Some(why), Some(lease)) => {
                    let refused = BTreeSet::from([ask.worker.clone()]);
                    asked.refused.push((of.clone(), why.clone()));
                    self.waiting.push_front(Waiting { of: of.clone(), refused, said: lease.said });
                }
                _ => asked.over.push(of.clone()),
            }
        }
        let worker = self.workers.entry(ask.worker.clone()).or_default();
        worker.asked += 1;
        worker.free = ask.free;
        asked.number = (!std::mem::replace(&mut worker.is_watched, true)).then_some(worker.asked);
        asked.former = worker.answer.take();
        let has: BTreeMap<&Started, u64> = ask.has.iter().map(|(of, heard)| (of, *heard)).collect();
        for of in has.keys() {
            let lease = self.leases.get(&of.process);
            if !lease.is_some_and(|lease| lease.start == of.start && lease.worker == ask.worker) {
                asked.deliveries.push(Gift::End((*of).clone()));
            }
        }
        for (process, lease) in self.leases.iter_mut().filter(|(_, lease)| lease.worker == ask.worker) {
            let of = Started { process: process.clone(), start: lease.start };
            let heard = has.get(&of).copied();
            if heard.is_none() {
                asked.deliveries.push(Gift::Start(of.clone()));
            }
            while lease.from < heard.unwrap_or(0) && lease.said.pop_front().is_some() {
                lease.from += 1;
            }
            if !lease.said.is_empty() {
                let lines = lease.said.iter().cloned().collect();
                asked.deliveries.push(Gift::Say(Say { of, from: lease.from, lines }));
            }
        }
        asked.deliveries.extend(self.grant(&ask.worker));
        if asked.deliveries.is_empty()
            && let Some(worker) = self.workers.get_mut(&ask.worker)
        {
            worker.answer = Some(to);
        }
        asked.others = self.hand_out();
        asked
    }

    /// Looks at a worker that had asked question `number` when it was looked at before, and none since `silent` looks.
    /// After [`LOOKS`] of them it is lost, with all that it has: these, or what to look at it with the next time.
    pub(crate) fn expire(&mut self, worker: &str, number: u64, silent: u32) -> Result<Vec<Started>, (u64, u32)> {
        match self.workers.get(worker) {
            None => return Ok(Vec::new()),
            Some(found) if found.asked != number => {
                let next = (found.asked, 0);
                // What it could not start before it may now.
                self.waiting.iter_mut().for_each(|waiting| _ = waiting.refused.remove(worker));
                return Err(next);
            }
            Some(_) if silent + 1 < LOOKS => return Err((number, silent + 1)),
            Some(_) => _ = self.workers.remove(worker),
        }
        let lost = self.leases.iter().filter(|(_, lease)| lease.worker == worker);
        let lost: Vec<Started> =
            lost.map(|(process, lease)| Started { process: process.clone(), start: lease.start }).collect();
        self.leases.retain(|_, lease| lease.worker != worker);
        for waiting in &mut self.waiting {
            waiting.refused.remove(worker);
        }
        Ok(lost)
    }

    /// Gives what waits to the workers that wait.
    fn hand_out(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        // The one with the most room first: that spreads processes.
        let mut ready: Vec<(u32, String)> = self
            .workers
            .iter()
            .filter(|(_, worker)| worker.answer.is_some() && worker.free > 0)
            .map(|(name, worker)| (worker.free, name.clone()))
            .collect();
        ready.sort_by(|(a, _), (b, _)| b.cmp(a));
        let share = self.waiting.len().div_ceil(ready.len().max(1));
        for (_, name) in ready {
            let gifts = self.grant_some(&name, share);
            answers.extend(self.answer(&name, gifts));
        }
        answers
    }

    fn grant(&mut self, worker: &str) -> Vec<Gift> {
        // Others may ask soon: one that asks takes no more than its share of those that are known.
        let share = self.waiting.len().div_ceil(self.workers.len().max(1));
        self.grant_some(worker, share)
    }

    fn grant_some(&mut self, name: &str, share: usize) -> Vec<Gift> {
        let Some(worker) = self.workers.get_mut(name) else { return Vec::new() };
        let (mut gifts, mut rest) = (Vec::new(), VecDeque::new());
        while let Some(waiting) = self.waiting.pop_front() {
            if worker.free == 0 || gifts.len() >= share || waiting.refused.contains(name) {
                rest.push_back(waiting);
                continue;
            }
            worker.free -= 1;
            let of = waiting.of.clone();
            if !waiting.said.is_empty() {
                rest_say(&waiting, &mut gifts);
            } else {
                gifts.push(Gift::Start(of.clone()));
            }
            let lease = Lease { start: of.start, worker: name.to_owned(), said: waiting.said, from: 0 };
            self.leases.insert(of.process, lease);
        }
        self.waiting = rest;
        gifts
    }

    /// The answer for a worker, where it waits and there is something to say.
    fn answer(&mut self, worker: &str, deliveries: Vec<Gift>) -> Option<Answer> {
        if deliveries.is_empty() {
            return None;
        }
        // One that does not wait hears it when it asks.
        let to = self.workers.get_mut(worker)?.answer.take()?;
        Some(Answer { to, deliveries })
    }
}

/// The start of a process, and what it was told meanwhile.
fn rest_say(waiting: &Waiting, gifts: &mut Vec<Gift>) {
    gifts.push(Gift::Start(waiting.of.clone()));
    let lines = waiting.said.iter().cloned().collect();
    gifts.push(Gift::Say(Say { of: waiting.of.clone(), from: 0, lines }));
}

/// Adds lines to those that begin with number `from`, without those that are there.
fn append(said: &mut VecDeque<Bytes>, from: u64, say: Say) {
    let next = from + said.len() as u64;
    let known = usize::try_from(next.saturating_sub(say.from)).unwrap_or(usize::MAX);
    said.extend(say.lines.into_iter().skip(known));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(process: &str, start: u64) -> Started {
        Started { process: process.to_owned(), start }
    }

    fn ask(worker: &str, free: u32) -> Ask {
        Ask { pool: "p".to_owned(), worker: worker.to_owned(), free, has: Vec::new(), done: Vec::new() }
    }

    #[test]
    fn a_process_goes_to_a_worker_that_waits_or_asks() {
        let mut queue = Queue::default();
        assert!(queue.offer([started("r/a", 1)]).is_empty());
        let asked = queue.ask(&ask("w", 2), "x".to_owned());
        assert_eq!(asked.deliveries, [Gift::Start(started("r/a", 1))]);
        let again = Ask { has: vec![(started("r/a", 1), 0)], ..ask("w", 1) };
        assert!(queue.ask(&again, "y".to_owned()).deliveries.is_empty());
        let answers = queue.offer([started("r/b", 2), started("r/c", 3)]);
        assert_eq!(answers, [Answer { to: "y".to_owned(), deliveries: vec![Gift::Start(started("r/b", 2))] }]);
    }

    #[test]
    fn what_was_lost_on_its_way_is_given_again_and_what_is_fenced_is_ended() {
        let mut queue = Queue::default();
        queue.offer([started("r/a", 1)]);
        assert_eq!(queue.ask(&ask("w", 1), "x".to_owned()).deliveries, [Gift::Start(started("r/a", 1))]);
        // It does not name it: the answer never came.
        assert_eq!(queue.ask(&ask("w", 1), "x".to_owned()).deliveries, [Gift::Start(started("r/a", 1))]);
        queue.offer([started("r/a", 2)]);
        let has = Ask { has: vec![(started("r/a", 1), 0)], ..ask("w", 0) };
        assert_eq!(queue.ask(&has, "x".to_owned()).deliveries, [Gift::End(started("r/a", 1))]);
        let done = Ask { done: vec![(started("r/a", 1), None)], ..ask("w", 1) };
        let asked = queue.ask(&done, "x".to_owned());
        assert_eq!(asked.deliveries, [Gift::Start(started("r/a", 2))]);
        assert!(asked.over.is_empty());
    }

    #[test]
    fn who_does_not_ask_is_lost_and_who_does_is_not() {
        let mut queue = Queue::default();
        queue.offer([started("r/a", 1)]);
        let first = queue.ask(&ask("w", 1), "x".to_owned());
        let has = Ask { has: vec![(started("r/a", 1), 0)], ..ask("w", 0) };
        let second = queue.ask(&has, "x".to_owned());
        assert_eq!((first.number, second.number), (Some(1), None));
        assert_eq!(queue.expire("w", 1, 3), Err((2, 0)));
        assert_eq!(queue.expire("w", 2, 2), Err((2, 3)));
        assert_eq!(queue.expire("w", 2, 3), Ok(vec![started("r/a", 1)]));
        // It comes back, and ends what is not its any more.
        assert_eq!(queue.ask(&has, "x".to_owned()).deliveries, [Gift::End(started("r/a", 1))]);
    }

    #[test]
    fn a_worker_that_cannot_leaves_it_to_others() {
        let mut queue = Queue::default();
        queue.ask(&ask("b", 1), "b1".to_owned());
        queue.offer([started("r/a", 1)]);
        let refuses = Ask { done: vec![(started("r/a", 1), Some("no cargo".to_owned()))], ..ask("b", 1) };
        let asked = queue.ask(&refuses, "b2".to_owned());
        assert!(asked.deliveries.is_empty() && asked.refused.len() == 1, "{asked:?}");
        assert_eq!(queue.ask(&ask("c", 1), "c".to_owned()).deliveries, [Gift::Start(started("r/a", 1))]);
    }

    #[test]
    fn lines_come_once_each_and_in_order() {
        let mut queue = Queue::default();
        let text = |text: &str| Bytes::Text(text.to_owned());
        let say = |from, words: &[&str]| Say {
            of: started("r/a", 1),
            from,
            lines: words.iter().map(|word| text(word)).collect(),
        };
        queue.offer([started("r/a", 1)]);
        queue.say(vec![say(0, &["a"])]);
        let asked = queue.ask(&ask("w", 1), "x".to_owned());
        assert_eq!(asked.deliveries, [Gift::Start(started("r/a", 1)), Gift::Say(say(0, &["a"]))]);
        let has = |heard| Ask { has: vec![(started("r/a", 1), heard)], ..ask("w", 0) };
        assert!(queue.ask(&has(1), "y".to_owned()).deliveries.is_empty());
        // The same again, with one more.
        assert_eq!(
            queue.say(vec![say(0, &["a", "b"])]),
            [Answer { to: "y".to_owned(), deliveries: vec![Gift::Say(say(1, &["b"]))] }]
        );
        assert_eq!(queue.ask(&has(1), "z".to_owned()).deliveries, [Gift::Say(say(1, &["b"]))]);
        assert!(queue.ask(&has(2), "z".to_owned()).deliveries.is_empty());
    }
}
