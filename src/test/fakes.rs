//! Answers for a test: from its fakes, recorded answers, and the defaults of gates. It keeps all questions of the run.

use std::collections::BTreeSet;

use serde_json::Map;
use swarmc_compiler::{Fake, Part, Test, TurnFilter};
use swarmc_plan::{Body, GateDefault, Plan, Recorded, Step};
use swarmc_runtime::{Answer, Asks, StepId, Turn};

use super::Finding;
use super::outcome::TestOutcome;

/// A question of the run to an agent, a command or a person.
#[derive(Debug)]
pub(super) struct FakeUse {
    pub(super) step: StepId,
    /// The name that fakes use: the step, or a member of its swarm.
    pub(super) name: String,
    pub(super) part: Part,
    /// The tool that the member calls.
    pub(super) tool: Option<String>,
    /// Whether it is a member of a swarm.
    pub(super) is_member: bool,
    pub(super) attempt: u32,
    /// The turn of the attempt, from 1; of a member its own.
    pub(super) turn: u32,
    /// The item of a for-each that it is for, also where it is called for it.
    pub(super) index: Option<u32>,
    /// The agent.
    pub(super) agent: Option<String>,
    /// The prompt, the standard input or the message.
    pub(super) text: Option<String>,
    /// The agent's system text.
    pub(super) system: Option<String>,
    /// What was said to it.
    pub(super) answer: String,
    /// The fake that answered.
    pub(super) by: Option<usize>,
}

/// The fakes of a test while it goes on.
pub(super) struct Fakes<'a> {
    plan: &'a Plan,
    test: &'a Test,
    /// How often each fake answered.
    used: Vec<usize>,
    pub(super) asked: Vec<FakeUse>,
    /// The questions without an answer, by their index in `asked`.
    unanswered: Vec<usize>,
}

impl<'a> Fakes<'a> {
    pub(super) fn new(plan: &'a Plan, test: &'a Test) -> Fakes<'a> {
        Fakes { plan, test, used: vec![0; test.fakes.len()], asked: Vec::new(), unanswered: Vec::new() }
    }

    /// The answer to a question.
    pub(super) fn answer_turn(&mut self, turn: &Turn<'_>) -> Answer {
        let (agent, text, system) = match &turn.asks {
            Asks::Agent { agent, system, prompt } => (Some(*agent), Some(*prompt), *system),
            Asks::Command { stdin, .. } => (None, *stdin, None),
            Asks::Check { .. } => (None, None, None),
            Asks::Tool { arguments, .. } => (None, Some(*arguments), None),
            Asks::Person { message, .. } => (None, Some(*message), None),
        };
        let part = match &turn.asks {
            Asks::Check { number, .. } => Part::Check(*number),
            Asks::Tool { .. } => Part::Tool,
            _ if turn.fixing => Part::Fix,
            _ => Part::Body,
        };
        let tool = match &turn.asks {
            Asks::Tool { tool, .. } => Some((*tool).to_owned()),
            _ => None,
        };
        let (name, attempt, number) = match turn.member {
            Some(member) => (member.name, member.attempt, member.turn),
            None => (&*turn.step.name, turn.attempt, turn.repair + 1),
        };
        let mut asked = FakeUse {
            step: turn.step.clone(),
            name: name.to_owned(),
            part,
            tool,
            is_member: turn.member.is_some(),
            attempt,
            turn: number,
            index: turn.step.item(),
            agent: agent.map(str::to_owned),
            text: text.map(str::to_owned),
            system: system.map(str::to_owned),
            answer: String::new(),
            by: None,
        };
        let is_choice = matches!(turn.asks, Asks::Person { .. });
        let fakes = &self.test.fakes;
        asked.by = fakes.iter().position(|fake| fake.choice.is_some() == is_choice && asked.fits_fake(fake));
        let answer = match asked.by {
            Some(fake) => {
                let times = self.used[fake];
                self.used[fake] += 1;
                fake_answer(&fakes[fake], times)
            }
            None => match self.default_answer(turn, &asked) {
                Some(answer) => answer,
                None => {
                    self.unanswered.push(self.asked.len());
                    failure_answer(1, "no fake answers")
                }
            },
        };
        asked.answer = answer_text(&answer);
        self.asked.push(asked);
        answer
    }

    /// The answer without a fake: a check passes, a gate takes its default, a script has its answers.
    fn default_answer(&self, turn: &Turn<'_>, asked: &FakeUse) -> Option<Answer> {
        match &turn.asks {
            Asks::Check { .. } => Some(Answer::Text(String::new())),
            Asks::Command { .. } => None,
            Asks::Tool { tool, .. } => Some(Answer::Text(format!("`{tool}` was not called: this is a test"))),
            Asks::Person { .. } => match self.gate_default(&turn.step.name) {
                Some((Some(GateDefault::Option(choice)), _)) => {
                    Some(Answer::Choice { choice: choice.clone(), fields: Map::new() })
                }
                Some((Some(GateDefault::Fail), _)) => Some(Answer::Text(String::new())),
                // It waits as long as it does.
                Some((None, true)) => Some(Answer::After(u64::MAX, Box::new(Answer::Unanswered))),
                Some((None, false)) => None,
                // Without a person, a failure stays a failure.
                None => Some(Answer::Text(String::new())),
            },
            Asks::Agent { agent, .. } => {
                let provider = self.plan.agent(agent).and_then(|agent| self.plan.provider(&agent.provider))?;
                provider.connection.answers()?.iter().find(|answer| asked.is_recorded(answer)).map(recorded_answer)
            }
        }
    }

    /// What a gate does without a person, and whether that comes with time.
    fn gate_default(&self, name: &str) -> Option<(Option<&'a GateDefault>, bool)> {
        let gate = find_steps(self.plan, name).find_map(|step| match &step.body {
            Body::Gate(gate) => Some(gate),
            _ => None,
        })?;
        Some((gate.headless.as_ref(), gate.on_timeout.is_some()))
    }

    /// The steps that were asked and have no fake.
    pub(super) fn missing_fakes(&self) -> Vec<Finding> {
        let mut told: BTreeSet<(&str, bool)> = BTreeSet::new();
        let mut findings = Vec::new();
        for asked in self.unanswered.iter().map(|&index| &self.asked[index]) {
            let name = &*asked.name;
            if !told.insert((name, asked.part == Part::Fix)) {
                continue;
            }
            let has_some = self.test.fakes.iter().any(|fake| fake.step == name && fake.part == asked.part);
            let notes = match has_some {
                true => format!("no `fake {name}` is for {}\n", asked.describe_moment()),
                false => String::new(),
            };
            findings.push(Finding {
                span: self.test.span,
                message: match asked.part {
                    Part::Fix => format!("the agent that mends `{name}` ran and has no fake"),
                    _ if asked.is_member => format!("member `{name}` ran and has no fake"),
                    _ => format!("`{name}` ran and has no fake"),
                },
                label: format!("asked in {}", asked.describe_moment()),
                notes,
                help: Some(format!("add `{}` to the test", self.format_fake(asked))),
            });
        }
        findings
    }

    /// The fake that would answer, as it is written.
    fn format_fake(&self, asked: &FakeUse) -> String {
        let name = &asked.name;
        if asked.is_member {
            return format!(r##"fake {name} turn={} #"{{"action": "done", "response": "…"}}"#"##, asked.turn);
        }
        let step = find_steps(self.plan, name).next();
        match step.map(|step| &step.body) {
            Some(Body::Gate(gate)) => {
                format!("fake {name} choice={}", gate.options.first().map_or("…", String::as_str))
            }
            _ if asked.part == Part::Fix => format!("fake {name} fix=#true \"…\""),
            _ if step.is_some_and(|step| step.output.schema.is_some()) => format!("fake {name} #\"{{…}}\"#"),
            _ => format!("fake {name} \"…\""),
        }
    }

    /// The fakes, and the texts of them, that nothing asked for.
    pub(super) fn unused_fakes(&self, story: &TestOutcome) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (index, (fake, &used)) in self.test.fakes.iter().zip(&self.used).enumerate() {
            let name = &fake.step;
            if used == 0 {
                let wider =
                    |earlier: usize| earlier < index && covers_moment(&self.test.fakes[earlier].moment, &fake.moment);
                let earlier = self.asked.iter().any(|asked| asked.by.is_some_and(wider) && asked.fits_fake(fake));
                findings.push(Finding {
                    span: fake.span,
                    message: format!("this fake of `{name}` never answered"),
                    label: if earlier { "an earlier fake answers first" } else { "no request fits it" }.to_owned(),
                    notes: self.describe_calls(fake, story),
                    help: Some(match earlier {
                        true => "the first `fake` that fits answers: put the more specific one first".to_owned(),
                        false => "correct when it answers, or remove it".to_owned(),
                    }),
                });
            } else if let Some((_, span)) = fake.texts.get(used) {
                findings.push(Finding {
                    span: *span,
                    message: format!("this answer of `{name}` was never given"),
                    label: format!("the fake answered {}", format_times(used)),
                    notes: self.describe_calls(fake, story),
                    help: Some("remove it".to_owned()),
                });
            }
        }
        findings
    }

    /// When a step was asked, in a line.
    fn describe_calls(&self, fake: &Fake, story: &TestOutcome) -> String {
        let of = self.asked.iter().filter(|asked| asked.is_of(fake));
        let moments: Vec<String> = of.map(FakeUse::describe_moment).collect();
        let name = &fake.step;
        match moments.len() {
            0 => story.describe_absence(name),
            1..=6 => format!("`{name}` was asked in {}\n", moments.join("; ")),
            count => format!("`{name}` was asked {count} times, first in {}\n", moments[..6].join("; ")),
        }
    }
}

impl FakeUse {
    fn fits_fake(&self, fake: &Fake) -> bool {
        self.is_of(fake) && self.is_at(&fake.moment)
    }

    /// Whether it is of whom the fake is, whenever that was.
    fn is_of(&self, fake: &Fake) -> bool {
        let tool = fake.tool.is_none() || fake.tool == self.tool;
        self.name == fake.step && self.part == fake.part && tool
    }

    /// Whether it was asked then.
    pub(super) fn is_at(&self, moment: &TurnFilter) -> bool {
        moment.iteration.is_none_or(|iteration| iteration == self.step.iteration)
            && moment.attempt.is_none_or(|attempt| attempt == self.attempt)
            && moment.turn.is_none_or(|turn| turn == self.turn)
            && moment.index.is_none_or(|index| Some(index) == self.index)
    }

    fn is_recorded(&self, answer: &Recorded) -> bool {
        let Recorded { iteration, attempt, turn, index, .. } = *answer;
        answer.task.as_deref().is_none_or(|task| task == self.name)
            && self.is_at(&TurnFilter { iteration, attempt, turn, index })
    }

    /// When, in words.
    pub(super) fn describe_moment(&self) -> String {
        let mut moment = format!("round {}", self.step.iteration);
        if let Some(index) = self.index {
            moment += &format!(", item {index}");
        }
        if self.attempt > 1 {
            moment += &format!(", attempt {}", self.attempt);
        }
        if self.turn > 1 || self.is_member {
            moment += &format!(", turn {}", self.turn);
        }
        moment
    }
}

/// Whether every moment that the other means is one that this means.
fn covers_moment(one: &TurnFilter, other: &TurnFilter) -> bool {
    let wider = |one: Option<u32>, other: Option<u32>| one.is_none() || one == other;
    wider(one.iteration, other.iteration)
        && wider(one.attempt, other.attempt)
        && wider(one.turn, other.turn)
        && wider(one.index, other.index)
}

/// `once`, `3 times`.
pub(super) fn format_times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// The steps of this name in all pipelines.
fn find_steps<'p>(plan: &'p Plan, name: &str) -> impl Iterator<Item = &'p Step> {
    plan.pipelines.iter().flat_map(|pipeline| pipeline.all_steps()).filter(move |step| step.name == name)
}

fn fake_answer(fake: &Fake, times: usize) -> Answer {
    let text = fake.texts.get(times).or(fake.texts.last()).map(|(text, _)| text.clone()).unwrap_or_default();
    let answer = match &fake.choice {
        Some(choice) if choice == "fail" => Answer::Text(text),
        Some(choice) => Answer::Choice { choice: choice.clone(), fields: fake.fields.clone() },
        None if fake.exit != 0 => failure_answer(fake.exit, &text),
        None => Answer::Text(text),
    };
    delay_answer(fake.delay_ms, answer)
}

fn recorded_answer(answer: &Recorded) -> Answer {
    // The line break that a file ends with is no part of the answer.
    let text = answer.text.strip_suffix('\n').unwrap_or(&answer.text);
    let said = if answer.exit != 0 { failure_answer(answer.exit, text) } else { Answer::Text(text.to_owned()) };
    delay_answer(answer.delay_ms, said)
}

fn failure_answer(exit: i32, text: &str) -> Answer {
    Answer::Failure { exit, output: String::new(), stderr: text.to_owned() }
}

fn delay_answer(delay: u64, answer: Answer) -> Answer {
    if delay == 0 { answer } else { Answer::After(delay, Box::new(answer)) }
}

/// The text of an answer.
fn answer_text(answer: &Answer) -> String {
    match answer {
        Answer::Text(text) | Answer::Failure { stderr: text, .. } => text.clone(),
        Answer::After(_, answer) => answer_text(answer),
        Answer::Json(_) | Answer::Choice { .. } | Answer::Unanswered => String::new(),
    }
}
