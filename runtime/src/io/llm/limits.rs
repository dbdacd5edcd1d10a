//! Limits how much a provider is asked in a minute, over all its agents.
//!
//! In: what a question is likely to cost, then what it did cost. Out: a wait. Invariants: the first to ask goes first,
//! in any minute no more requests begin than are allowed, and no more tokens than are allowed and one question has.

use std::sync::{Mutex as Lock, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// What a bucket may hold at most: this part of a minute's allowance.
const BURST: f64 = 0.1;

const MINUTE: f64 = 60.0;

/// The limits of one provider.
#[derive(Debug)]
pub(super) struct Limits {
    /// Who holds it is next.
    turn: Mutex<()>,
    buckets: Lock<Buckets>,
}

#[derive(Debug)]
struct Buckets {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
}

/// What may be taken now, and how fast it fills.
#[derive(Debug)]
struct Bucket {
    level: f64,
    most: f64,
    /// A second.
    rate: f64,
    at: Instant,
}

impl Limits {
    /// Limits for a minute; none is no limit.
    pub(super) fn new(requests: Option<u64>, tokens: Option<u64>) -> Limits {
        let buckets = Buckets {
            requests: requests.map(|requests| Bucket::new(requests, 1.0)),
            tokens: tokens.map(|tokens| Bucket::new(tokens, 0.0)),
        };
        Limits { turn: Mutex::new(()), buckets: Lock::new(buckets) }
    }

    /// Waits until a question of about `tokens` tokens may begin.
    pub(super) async fn enter(&self, tokens: u64) {
        let _turn = self.turn.lock().await;
        while let Some(wait) = self.try_enter(tokens) {
            tokio::time::sleep(wait).await;
        }
    }

    /// Sets right what [`Limits::enter`] took: the question cost `used` in place of `estimated` tokens.
    pub(super) fn correct(&self, estimated: u64, used: u64) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokens) = &mut buckets.tokens {
            tokens.fill();
            tokens.level = (tokens.level + estimated as f64 - used as f64).min(tokens.most);
        }
    }

    /// Takes what a question needs, or says how long that is not there.
    fn try_enter(&self, tokens: u64) -> Option<Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let Buckets { requests, tokens: of_tokens } = &mut *buckets;
        let mut needs = [(requests, 1.0), (of_tokens, tokens as f64)];
        let wait = needs.iter_mut().filter_map(|(bucket, need)| bucket.as_mut()?.lacks(*need)).max();
        if wait.is_none() {
            for (bucket, need) in &mut needs {
                bucket.iter_mut().for_each(|bucket| bucket.level -= *need);
            }
        }
        wait
    }
}

impl Bucket {
    /// A full bucket, for `allowed` in a minute in pieces of `piece`.
    fn new(allowed: u64, piece: f64) -> Bucket {
        let allowed = allowed.max(1) as f64;
        let most = (allowed * BURST).max(1.0).floor();
        // What a full bucket gives at once, and what fills it within the minute, are the allowance together.
        let rate = (allowed - most + piece).max(1.0) / MINUTE;
        Bucket { level: most, most, rate, at: Instant::now() }
    }

    fn fill(&mut self) {
        let now = Instant::now();
        self.level = (self.level + now.duration_since(self.at).as_secs_f64() * self.rate).min(self.most);
        self.at = now;
    }

    /// How long `need` is not there. More than it can hold is there when it is full: the debt is paid afterwards.
    fn lacks(&mut self, need: f64) -> Option<Duration> {
        self.fill();
        let missing = need.min(self.most) - self.level;
        // A rounded sum is no reason to wait.
        (missing > 1e-6).then(|| Duration::from_secs_f64((missing / self.rate).max(0.001)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// When `count` questions of `tokens` tokens begin, in milliseconds.
    async fn begun(limits: Limits, count: usize, tokens: u64) -> Vec<u128> {
        let start = Instant::now();
        let mut times = Vec::new();
        for _ in 0..count {
            limits.enter(tokens).await;
            times.push(start.elapsed().as_millis());
        }
        times
    }

    #[tokio::test(start_paused = true)]
    async fn no_minute_has_more_requests_than_are_allowed() {
        for allowed in [1, 2, 7, 60, 600] {
            let times = begun(Limits::new(Some(allowed), None), allowed as usize * 3, 0).await;
            for (index, start) in times.iter().enumerate() {
                let within = times[index..].iter().filter(|time| **time < start + 60_000).count();
                assert!(within <= allowed as usize, "{allowed} a minute: {within} from {start} on");
            }
            let last = times.last().expect("one began");
            assert!(*last < 4 * 60_000, "{allowed} a minute took {last} ms for three minutes' worth");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_taken_before_and_set_right_after() {
        // A bucket of 100, and 15 more a second.
        let limits = Limits::new(None, Some(1000));
        let start = Instant::now();
        limits.enter(100).await;
        limits.correct(100, 10);
        limits.enter(90).await;
        assert_eq!(start.elapsed().as_secs(), 0, "what was not used is there for the next");
        limits.enter(30).await;
        assert_eq!(start.elapsed().as_secs(), 2);
        limits.correct(30, 330);
        limits.enter(1).await;
        assert!(start.elapsed().as_secs() >= 22, "what was used beyond the estimate is paid for");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_beyond_the_bucket_begins_when_it_is_full() {
        let times = begun(Limits::new(None, Some(1000)), 2, 400).await;
        // 300 of debt and 100 for the next, at 15 a second.
        assert_eq!(times[0], 0);
        assert!((26_000..27_100).contains(&times[1]), "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_go_in_order_and_an_abandoned_one_delays_none() {
        let limits = Arc::new(Limits::new(Some(1), None));
        limits.enter(0).await;
        let order = Arc::new(Lock::new(Vec::new()));
        let ask = |name: u32| {
            let (limits, order) = (Arc::clone(&limits), Arc::clone(&order));
            tokio::spawn(async move {
                limits.enter(0).await;
                order.lock().expect("no task panics").push(name);
            })
        };
        let tasks: Vec<_> = (0..4).map(ask).collect();
        tokio::task::yield_now().await;
        tasks[1].abort();
        for (_, task) in tasks.into_iter().enumerate().filter(|(index, _)| *index != 1) {
            task.await.expect("it ends");
        }
        assert_eq!(*order.lock().expect("no task panics"), [0, 2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_limits_nothing_waits() {
        assert_eq!(begun(Limits::new(None, None), 1000, 1 << 40).await.last(), Some(&0));
    }
}
