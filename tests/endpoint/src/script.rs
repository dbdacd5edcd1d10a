//! The script: which answer each request gets.
//!
//! Rules are tried in order and the first that matches answers. A rule with several answers gives
//! them one after the other and stays at its last, which is how a tool call is followed by a text.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Answer, Request};

/// The rules of an endpoint.
///
/// ```
/// use swarmc_endpoint::{Answer, Script};
///
/// Script::new()
///     .on("write the plan", Answer::text("1. listen 2. answer"))
///     .on("flaky", [Answer::status(503, "busy"), Answer::text("there you are")])
///     .otherwise(Answer::text("nothing to add"));
/// ```
#[derive(Debug, Default)]
pub struct Script {
    rules: Vec<Rule>,
}

impl Script {
    /// A script without rules: every request is refused with status 400.
    pub fn new() -> Script {
        Script::default()
    }

    /// Answers requests in which a user's message contains `needle`.
    #[must_use]
    pub fn on(self, needle: impl Into<String>, answers: impl Into<Vec<Answer>>) -> Script {
        let needle = needle.into();
        let says = move |request: &Request| request.user.iter().any(|text| text.contains(&needle));
        self.when(says, answers)
    }

    /// Answers requests whose system text contains `needle`; agents ask for titles and summaries
    /// with one of their own, and repeat the user's text in them.
    #[must_use]
    pub fn on_system(self, needle: impl Into<String>, answers: impl Into<Vec<Answer>>) -> Script {
        let needle = needle.into();
        self.when(move |request| request.system.contains(&needle), answers)
    }

    /// Answers requests for which `matches` holds.
    #[must_use]
    pub fn when(
        self,
        matches: impl Fn(&Request) -> bool + Send + Sync + 'static,
        answers: impl Into<Vec<Answer>>,
    ) -> Script {
        let answers = answers.into();
        assert!(!answers.is_empty(), "a rule needs at least one answer");
        let served = AtomicUsize::new(0);
        self.decide(move |request| {
            matches(request).then(|| {
                let turn = served.fetch_add(1, Ordering::Relaxed);
                answers[turn.min(answers.len() - 1)].clone()
            })
        })
    }

    /// Answers whatever no rule before it answered.
    #[must_use]
    pub fn otherwise(self, answers: impl Into<Vec<Answer>>) -> Script {
        self.when(|_| true, answers)
    }

    /// Lets a function answer, or pass the request on to the next rule with `None`.
    #[must_use]
    pub fn decide(mut self, rule: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static) -> Script {
        self.rules.push(Rule(Box::new(rule)));
        self
    }

    pub(crate) fn answer(&self, request: &Request) -> Answer {
        let mut rules = self.rules.iter();
        rules.find_map(|rule| (rule.0)(request)).unwrap_or_else(|| {
            let asked = request.user.last().map_or("", String::as_str);
            Answer::status(400, format!("no rule of the script answers: {asked}"))
        })
    }
}

struct Rule(Box<Decide>);

type Decide = dyn Fn(&Request) -> Option<Answer> + Send + Sync;

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rule")
    }
}
