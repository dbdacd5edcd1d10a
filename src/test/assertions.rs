//! Whether what a test expects holds of what happened.

use std::fmt::Write;

use serde_json::Value;
use swarmc_compiler::{
    Count, Ending, Expectation, Expected, Hold, O200k, Part, StepEnd, Tokenizer, TurnFilter, pattern_matches,
};
use swarmc_plan::Body;
use swarmc_runtime::{RunStatus, Status, StepId};

use super::Finding;
use super::fakes::{FakeUse, format_times};
use super::outcome::{Ended, TestOutcome, past_verb};
use super::snapshot::{Snapshots, Taken};
use super::teams::{Broken, check_team};
use crate::change::text_diff;

/// The steps that are listed of a failed run at most.
const LISTED: usize = 5;

/// The characters of a text that are shown.
const SHOWN: usize = 2000;

/// What does not hold.
pub(super) fn check_expectations(story: &TestOutcome<'_>, snapshots: &mut Snapshots) -> Vec<Finding> {
    let judge =
        |expectation: &Expectation| Assertions { story, expectation, snapshots: &mut *snapshots }.check_expected();
    story.test.expectations.iter().flat_map(judge).collect()
}

/// One expectation.
struct Assertions<'j, 'a> {
    story: &'j TestOutcome<'a>,
    expectation: &'j Expectation,
    snapshots: &'j mut Snapshots,
}

impl Assertions<'_, '_> {
    fn check_expected(mut self) -> Vec<Finding> {
        let expectation = self.expectation;
        match &expectation.expected {
            Expected::Status(ending) => self.check_status(*ending).into_iter().collect(),
            Expected::Step { step, moment, status } => self.check_step(step, moment, *status).into_iter().collect(),
            Expected::Order(steps) => self.check_order(steps).into_iter().collect(),
            Expected::Prompt { step, moment, holds } => self.check_prompts(step, moment, holds),
            Expected::Output { step, moment, holds } => self.check_output(step, moment, holds),
            Expected::Result(holds) => self.check_result(holds),
            Expected::Rounds(of, count) => self.check_rounds(of.as_deref(), *count).into_iter().collect(),
            Expected::Launches(count) => self.check_count("launches", *count, self.story.rehearsal.launches),
            Expected::Turns(count) => self.check_count("turns", *count, self.story.rehearsal.turns),
            Expected::Tokens(most) => {
                let (input, output) = self.total_tokens();
                self.check_count("tokens", Count::Most(*most), input + output)
            }
            Expected::Cost(most) => self.check_cost(*most).into_iter().collect(),
            Expected::Team { of, expected } => {
                let broken = check_team(self.story, of.as_deref(), expected).err();
                broken
                    .into_iter()
                    .map(|Broken { message, label, notes }| self.make_finding(message, label, notes))
                    .collect()
            }
        }
    }

    fn make_finding(&self, message: String, label: impl Into<String>, notes: String) -> Finding {
        Finding { span: self.expectation.span, message, label: label.into(), notes, help: None }
    }

    fn check_status(&self, wanted: Ending) -> Option<Finding> {
        let found = self.story.rehearsal.status;
        let wanted_status = match wanted {
            Ending::Success => RunStatus::Succeeded,
            Ending::Failure => RunStatus::Failed,
            Ending::OverBudget => RunStatus::OverBudget,
        };
        let expected = match wanted {
            Ending::Success => "expected success",
            Ending::Failure => "expected failure",
            Ending::OverBudget => "expected to be over budget",
        };
        let word = match found {
            RunStatus::Succeeded => "the run succeeded",
            RunStatus::Failed => "the run failed",
            RunStatus::OverBudget => "the run ended over budget",
        };
        (found != wanted_status).then(|| self.make_finding(word.to_owned(), expected, self.list_failures()))
    }

    /// What failed, in lines.
    fn list_failures(&self) -> String {
        let mut notes = String::new();
        let failed = self.story.steps.iter().filter(|ended| ended.status == Status::Failed);
        for ended in failed.take(LISTED) {
            let why = ended.why.as_deref().unwrap_or("it failed");
            let _ =
                writeln!(notes, "`{}` failed in {}: {}", ended.step.label(), ended.describe_place(), first_line(why));
        }
        let ran = self.story.steps.iter().filter(|ended| ended.status == Status::Succeeded && self.is_stop(ended.step));
        ran.for_each(|ended| _ = writeln!(notes, "`{}` stopped it", ended.step.label()));
        self.story.spent.iter().for_each(|message| _ = writeln!(notes, "{message}"));
        let of_plan = self.story.rehearsal.faults.iter().filter(|fault| fault.step.is_none());
        of_plan.take(LISTED).for_each(|fault| _ = writeln!(notes, "{}", fault.message));
        if notes.is_empty() && self.story.rehearsal.status == RunStatus::Failed {
            notes.push_str("no `until` of the pipeline held in any round\n");
        }
        notes
    }

    /// The steps whose value the pipeline would have had, and why they did not run.
    fn list_skipped_results(&self) -> String {
        let results = self.story.plan.pipeline(&self.story.test.pipeline).into_iter().flat_map(|found| &found.result);
        let skipped = results.flat_map(|name| self.story.step_ends(name)).filter(|end| end.status == Status::Skipped);
        let line = |end: &Ended| Some(format!("`{}` was skipped: {}\n", end.step.label(), end.why.as_ref()?));
        skipped.take(LISTED).filter_map(line).collect()
    }

    /// Whether a step is a `stop`.
    fn is_stop(&self, step: &StepId) -> bool {
        let mut steps = self.story.plan.pipelines.iter().flat_map(|pipeline| pipeline.all_steps());
        steps.any(|known| *known.name == *step.name && matches!(known.body, Body::Stop { .. }))
    }

    fn check_step(&self, name: &str, moment: &TurnFilter, wanted: StepEnd) -> Option<Finding> {
        let wanted = match wanted {
            StepEnd::Succeeded => Status::Succeeded,
            StepEnd::Failed => Status::Failed,
            StepEnd::Skipped => Status::Skipped,
        };
        let Some(ended) = self.story.find_step(name, moment) else {
            // What stands in a loop or a call that was skipped, or beneath an item that is not there, did not run.
            let never_ran = wanted == Status::Skipped && self.story.step_ends(name).next().is_none();
            return (!never_ran).then(|| self.report_absent(name, moment));
        };
        let why = ended.why.as_ref().map(|why| format!("{why}\n")).unwrap_or_default();
        let label = format!("in {}", ended.describe_place());
        (ended.status != wanted).then(|| self.make_finding(format!("`{name}` {}", past_verb(ended.status)), label, why))
    }

    /// There is no such step in such a round.
    fn report_absent(&self, name: &str, moment: &TurnFilter) -> Finding {
        let mut places: Vec<String> = self.story.step_ends(name).map(|ended| ended.describe_place()).collect();
        places.dedup();
        let notes = match places.len() {
            0 => format!("`{name}` was never reached\n"),
            _ => format!("`{name}` was reached in {}\n", places[..places.len().min(LISTED)].join("; ")),
        };
        self.make_finding(
            format!("`{name}` was not reached {}", describe_moment(moment)),
            "no such round or item",
            notes,
        )
    }

    fn check_order(&self, names: &[String]) -> Option<Finding> {
        let (mut since, mut now) = (0, 0);
        let mut before = None;
        for name in names {
            let times: Vec<(u64, u64)> = self.story.step_ends(name).filter_map(|ended| ended.time).collect();
            // The earliest end leaves the most room for the names that follow.
            let after = times.iter().filter(|(begun, _)| *begun > now);
            let Some(&(begun, ended)) = after.min_by_key(|(_, ended)| *ended) else {
                let mut notes = self.describe_order();
                let message = match before {
                    None => format!("`{name}` did not begin"),
                    Some(before) => {
                        if times.iter().any(|(begun, _)| (since..now).contains(begun)) {
                            let _ =
                                writeln!(notes, "`{name}` began while `{before}` was running: nothing makes it wait");
                        }
                        format!("`{name}` did not begin after `{before}` had ended")
                    }
                };
                return Some(self.make_finding(message, "expected in this order", notes));
            };
            (since, now, before) = (begun, ended, Some(name));
        }
        None
    }

    /// The steps in the order in which they began.
    fn describe_order(&self) -> String {
        let mut begun: Vec<(u64, &str)> =
            self.story.steps.iter().filter_map(|ended| Some((ended.time?.0, &*ended.step.name))).collect();
        begun.sort_unstable();
        let more = if begun.len() > 30 { " …" } else { "" };
        let names: Vec<&str> = begun.iter().take(30).map(|(_, name)| *name).collect();
        format!("they began in this order: {}{more}\n", names.join(" "))
    }

    fn check_prompts(&mut self, name: &str, moment: &TurnFilter, holds: &[Hold]) -> Vec<Finding> {
        let story = self.story;
        let of = |asked: &&FakeUse| asked.name == *name && asked.part == Part::Body && asked.text.is_some();
        // A snapshot is named by its place among all that the step is asked.
        let all: Vec<(usize, &FakeUse)> = story.cast.asked.iter().filter(of).enumerate().collect();
        let fitting: Vec<&(usize, &FakeUse)> = all.iter().filter(|(_, asked)| asked.is_at(moment)).collect();
        if fitting.is_empty() {
            let notes = match all.len() {
                0 => story.describe_absence(name),
                count => format!("`{name}` was asked {}\n", format_times(count)),
            };
            return vec![self.make_finding(
                format!("`{name}` was not asked {}", describe_moment(moment)),
                "nothing to look at",
                notes,
            )];
        }
        let mut findings = Vec::new();
        for &&(number, asked) in &fitting {
            let text = asked.text.as_deref().unwrap_or_default();
            let what = format!("what `{name}` is asked in {}", asked.describe_moment());
            let file = match number {
                0 => name.to_owned(),
                _ => format!("{name}.{}", number + 1),
            };
            for hold in holds {
                findings.extend(self.check_hold(&what, text, hold, &file));
            }
        }
        findings
    }

    fn check_output(&mut self, name: &str, moment: &TurnFilter, holds: &[Hold]) -> Vec<Finding> {
        let Some(ended) = self.story.find_step(name, moment) else { return vec![self.report_absent(name, moment)] };
        let place = ended.describe_place();
        let Some(text) = ended.value else {
            let why = ended.why.as_ref().map(|why| format!("{why}\n")).unwrap_or_default();
            let message = format!("`{name}` has no value: it {}", past_verb(ended.status));
            return vec![self.make_finding(message, format!("in {place}"), why)];
        };
        let what = format!("the value of `{name}`");
        let mut file = format!("{name}.output");
        let numbers = [moment.iteration, moment.index].into_iter().flatten();
        numbers.for_each(|number| _ = write!(file, ".{number}"));
        holds.iter().filter_map(|hold| self.check_hold(&what, text, hold, &file)).collect()
    }

    fn check_result(&mut self, holds: &[Hold]) -> Vec<Finding> {
        let story = self.story;
        if story.rehearsal.values.is_empty() {
            return vec![self.make_finding(
                "the pipeline has no value".to_owned(),
                "nothing to look at",
                self.list_failures() + &self.list_skipped_results(),
            )];
        }
        let mut findings = Vec::new();
        for (number, value) in story.rehearsal.values.iter().enumerate() {
            let file = if number == 0 { String::new() } else { (number + 1).to_string() };
            for hold in holds {
                findings.extend(self.check_hold("the value of the pipeline", value, hold, &file));
            }
        }
        findings
    }

    /// Whether something holds of a text; `file` is what a snapshot of it is called.
    fn check_hold(&mut self, what: &str, text: &str, hold: &Hold, file: &str) -> Option<Finding> {
        let (message, label) = match hold {
            Hold::Contains(part) if !text.contains(part) => {
                (format!("{what} does not contain {}", quote_text(part)), "not in it")
            }
            Hold::Lacks(part) if text.contains(part) => {
                (format!("{what} contains {}", quote_text(part)), "found in it")
            }
            Hold::Matches(pattern) if !pattern_matches(pattern, text) => {
                (format!("{what} does not match `{pattern}`"), "matches nothing in it")
            }
            Hold::Equals(whole) if !is_equal(whole, text) => {
                let notes = match whole.contains('\n') || text.contains('\n') {
                    true => text_diff("expected", "found", whole, text),
                    false => format!("expected: {}\n   found: {}\n", truncate_text(whole), truncate_text(text)),
                };
                return Some(self.make_finding(format!("{what} is different"), "not equal", notes));
            }
            Hold::Snapshot => return self.check_snapshot(what, text, file),
            Hold::Contains(_) | Hold::Lacks(_) | Hold::Matches(_) | Hold::Equals(_) => return None,
        };
        Some(self.make_finding(message, label, indent_lines(&truncate_text(text))))
    }

    fn check_snapshot(&mut self, what: &str, text: &str, file: &str) -> Option<Finding> {
        match self.snapshots.compare_text(&self.story.test.name, file, text) {
            Taken::Same => None,
            Taken::New(shown) => {
                let finding = self.make_finding(
                    format!("there is no snapshot of {what}"),
                    format!("no `{shown}`"),
                    String::new(),
                );
                Some(Finding {
                    help: Some("`swarmc test --update` writes it: check its content".to_owned()),
                    ..finding
                })
            }
            Taken::Other(shown, before) => {
                let notes = text_diff(&shown, "found", &before, text);
                let finding = self.make_finding(format!("{what} differs from its snapshot"), "changed", notes);
                Some(Finding {
                    help: Some("if this is correct, `swarmc test --update` writes it".to_owned()),
                    ..finding
                })
            }
        }
    }

    fn check_rounds(&self, of: Option<&str>, wanted: u64) -> Option<Finding> {
        let rounds = match of {
            None => self
                .story
                .steps
                .iter()
                .filter(|ended| ended.step.within.is_none())
                .map(|ended| ended.step.iteration)
                .max(),
            Some(name) => self.rounds_of(name),
        };
        let found = u64::from(rounds.unwrap_or(0));
        (found != wanted).then(|| {
            let whose = of.map_or("the pipeline".to_owned(), |name| format!("`{name}`"));
            let plural = if found == 1 { "" } else { "s" };
            self.make_finding(
                format!("{whose} had {found} round{plural}, not {wanted}"),
                "another number",
                String::new(),
            )
        })
    }

    /// The rounds of a loop: those of the steps that stand in it.
    fn rounds_of(&self, name: &str) -> Option<u32> {
        let loops = self.story.plan.pipelines.iter().flat_map(|pipeline| pipeline.all_steps());
        let inside: Vec<&str> = loops
            .filter(|step| step.name == name)
            .filter_map(|step| match &step.body {
                Body::Loop(body) => Some(body.steps.iter().map(|step| step.name.as_str())),
                _ => None,
            })
            .flatten()
            .collect();
        let own = self.story.steps.iter().filter(|ended| inside.contains(&&*ended.step.name));
        own.map(|ended| ended.step.iteration).max()
    }

    fn check_count(&self, what: &str, wanted: Count, found: u64) -> Vec<Finding> {
        let (fits, expected) = match wanted {
            Count::Exactly(count) => (found == count, count.to_string()),
            Count::Most(count) => (found <= count, format!("at most {count}")),
        };
        let message = format!("there are {found} {what}, but {expected} expected");
        (!fits).then(|| self.make_finding(message, format!("{found} of them"), String::new())).into_iter().collect()
    }

    /// The tokens that agents read and write.
    fn total_tokens(&self) -> (u64, u64) {
        self.agent_turns().fold((0, 0), |(input, output), asked| {
            let (read, written) = count_tokens(asked);
            (input + read, output + written)
        })
    }

    fn agent_turns(&self) -> impl Iterator<Item = &FakeUse> {
        self.story.cast.asked.iter().filter(|asked| asked.agent.is_some())
    }

    fn check_cost(&self, most: u64) -> Option<Finding> {
        // Millionths of a millionth of a dollar.
        let mut total: u128 = 0;
        for asked in self.agent_turns() {
            let agent = asked.agent.as_deref().and_then(|agent| self.story.plan.agent(agent))?;
            let provider = self.story.plan.provider(&agent.provider)?;
            let Some(price) = provider.price else {
                let message = format!("the cost is unknown: provider `{}` declares no price", provider.name);
                let finding = self.make_finding(message, "cannot be told", String::new());
                let help = "declare what its tokens cost: `price input=\"$3\" output=\"$15\"`";
                return Some(Finding { help: Some(help.to_owned()), ..finding });
            };
            let (input, output) = count_tokens(asked);
            total += u128::from(input) * u128::from(price.input) + u128::from(output) * u128::from(price.output);
        }
        // The sum is rounded once: rounded each by itself, many small turns would cost too much.
        let found = u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let dollars = |micro: u64| format!("${}.{:06}", micro / 1_000_000, micro % 1_000_000);
        let message = format!("the turns cost {}, but at most {} is expected", dollars(found), dollars(most));
        (found > most).then(|| self.make_finding(message, "more than this", String::new()))
    }
}

/// The tokens of a turn, read and written.
fn count_tokens(asked: &FakeUse) -> (u64, u64) {
    let read = asked.text.iter().chain(&asked.system).map(|text| O200k.count(text)).sum();
    (read, O200k.count(&asked.answer))
}

/// Whether two texts are the same, or the same value.
fn is_equal(wanted: &str, found: &str) -> bool {
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    wanted == found || json(wanted).is_some_and(|wanted| json(found) == Some(wanted))
}

/// The round and item that are meant, in words.
fn describe_moment(moment: &TurnFilter) -> String {
    let numbers =
        [("round", moment.iteration), ("item", moment.index), ("attempt", moment.attempt), ("turn", moment.turn)];
    let named = numbers.iter().filter_map(|(what, number)| number.map(|number| format!("{what} {number}")));
    let named: Vec<String> = named.collect();
    if named.is_empty() { "at all".to_owned() } else { format!("in {}", named.join(", ")) }
}

pub(super) fn quote_text(text: &str) -> String {
    format!("`{}`", truncate_text(text).replace('\n', "\\n"))
}

fn truncate_text(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A text in lines that are told from ours.
pub(super) fn indent_lines(text: &str) -> String {
    if text.is_empty() {
        return "it is empty\n".to_owned();
    }
    text.lines().map(|line| format!("| {line}\n")).collect()
}
