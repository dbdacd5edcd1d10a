//! What agents, commands and people answer in a rehearsal: values of the type that the step declares.
//!
//! Everything is a function of the seed and of the step, so that a spec and its mutant hear the same.

use serde_json::{Map, Value, json};
use swarmc_plan::{Param, ParamType, Pipeline, Plan, Schema};
use swarmc_runtime::{Answer, Asks, Turn};

use super::random::Random;

/// How people and machines behave, in cases of a hundred.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mood {
    /// Commands and agents fail.
    pub fail: u64,
    /// Answers that should be JSON are not.
    pub garble: u64,
    /// Nobody answers a gate.
    pub nobody: u64,
    /// One step or two fail, and every other one does not.
    pub few: bool,
}

/// The rehearsals of every spec, over and over with other seeds.
pub(super) const MOODS: &[Mood] = &[
    Mood { fail: 0, garble: 0, nobody: 0, few: false },
    Mood { fail: 25, garble: 0, nobody: 20, few: false },
    Mood { fail: 0, garble: 0, nobody: 50, few: false },
    Mood { fail: 10, garble: 25, nobody: 0, few: false },
    Mood { fail: 60, garble: 0, nobody: 0, few: false },
    Mood { fail: 0, garble: 0, nobody: 0, few: true },
    Mood { fail: 0, garble: 0, nobody: 0, few: false },
];

/// Who answers in one rehearsal.
pub(super) struct Script<'a> {
    pub plan: &'a Plan,
    pub seed: u64,
    pub mood: Mood,
    /// The words that the spec compares texts with, so that free text takes every route too.
    pub words: &'a [String],
}

impl Script<'_> {
    pub(super) fn answer(&self, turn: &Turn<'_>) -> Answer {
        // Some say the same in every round, so that what only holds after many of them comes about too.
        let said = match self.seed / MOODS.len() as u64 % 3 {
            0 => turn.step.name.to_string(),
            _ => format!("{} {} {}", turn.step, turn.attempt, turn.repair),
        };
        let mut random = Random::about(self.seed, &said);
        if let Asks::Person { options, ask, .. } = &turn.asks {
            if random.percent(self.mood.nobody) {
                return Answer::Unanswered;
            }
            let choice = random.pick(options).clone();
            let asked = ask.iter().filter(|ask| !ask.optional || random.percent(50)).collect::<Vec<_>>();
            let fields = asked.into_iter().map(|ask| (ask.name.clone(), self.value(&ask.schema, &mut random)));
            return Answer::Choice { choice, fields: fields.collect() };
        }
        if random.percent(self.mood.fail) || self.mood.few && self.is_bad(&turn.step.name) {
            return Answer::Failure {
                exit: 1 + i32::from(random.percent(50)),
                output: String::new(),
                stderr: "it did not work".to_owned(),
            };
        }
        match turn.schema {
            Some(_) if random.percent(self.mood.garble) => Answer::Text("This is no JSON.".to_owned()),
            Some(schema) => Answer::Json(self.value(schema, &mut random)),
            None => Answer::Text(self.text(&mut random)),
        }
    }

    /// Whether a step is one of the few that fail.
    fn is_bad(&self, step: &str) -> bool {
        let names: Vec<&str> =
            self.plan.pipelines.iter().flat_map(Pipeline::all_steps).map(|step| step.name.as_str()).collect();
        let mut random = Random::about(self.seed, "the few that fail");
        (0..1 + random.below(2)).any(|_| *random.pick(&names) == step)
    }

    /// The textual form of a parameter, where one is given.
    pub(super) fn param(&self, param: &Param) -> Option<String> {
        let mut random = Random::about(self.seed, &format!("param {}", param.name));
        let needed = param.default.is_none() && !param.optional;
        if !needed && random.percent(50) {
            return None;
        }
        Some(match &param.kind {
            ParamType::String => self.text(&mut random),
            ParamType::Int => random.below(4).to_string(),
            ParamType::Float => "0.5".to_owned(),
            ParamType::Bool => random.percent(50).to_string(),
            ParamType::File => "Cargo.toml".to_owned(),
            ParamType::Dir => "specs".to_owned(),
            ParamType::Json(schema) => self.value(schema, &mut random).to_string(),
        })
    }

    /// A text: one that the spec knows, or a number, which filters can read too.
    fn text(&self, random: &mut Random) -> String {
        match self.words.is_empty() || random.percent(40) {
            true => random.below(50).to_string(),
            false => random.pick(self.words).clone(),
        }
    }

    fn value(&self, schema: &Schema, random: &mut Random) -> Value {
        self.of(&schema.0, 0, random)
    }

    fn of(&self, schema: &Value, depth: u32, random: &mut Random) -> Value {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            return self.of(&self.plan.types[name].0, depth, random);
        }
        if let Some(cases) = schema["anyOf"].as_array() {
            let case = if depth > 4 { cases.len() - 1 } else { random.below(cases.len()) };
            return self.of(&cases[case], depth, random);
        }
        if let Some(words) = schema["enum"].as_array() {
            return random.pick(words).clone();
        }
        let least = |key: &str| schema[key].as_i64();
        match schema["type"].as_str() {
            Some("boolean") => Value::Bool(random.percent(50)),
            Some("null") => Value::Null,
            Some("integer") => {
                let first = least("minimum").unwrap_or_else(|| least("maximum").unwrap_or(3).min(0));
                let last = least("maximum").unwrap_or(first + 3).max(first);
                json!(first + i64::try_from(random.next() % 4).expect("a small number").min(last - first))
            }
            Some("number") => {
                let first = schema["minimum"].as_f64().or_else(|| schema["maximum"].as_f64());
                json!(first.unwrap_or(0.5))
            }
            Some("array") => {
                let count = if depth > 4 { 0 } else { *random.pick(&[0, 1, 3]) };
                let count = count.max(schema["minItems"].as_u64().unwrap_or(0));
                let count = count.min(schema["maxItems"].as_u64().unwrap_or(count));
                (0..count).map(|_| self.of(&schema["items"], depth + 1, random)).collect()
            }
            Some("object") => Value::Object(self.record(schema, depth, random)),
            _ => Value::String(self.fitting(schema, random)),
        }
    }

    fn record(&self, schema: &Value, depth: u32, random: &mut Random) -> Map<String, Value> {
        let mut record = Map::new();
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            if required.iter().any(|required| required == name) || depth < 5 && random.percent(50) {
                record.insert(name.clone(), self.of(field, depth + 1, random));
            }
        }
        let more = &schema["additionalProperties"];
        if more.is_object() && depth < 5 {
            let least = usize::try_from(schema["minProperties"].as_u64().unwrap_or(0)).unwrap_or(0).min(100);
            while record.len() < least {
                record.insert(random.next().to_string(), self.of(more, depth + 1, random));
            }
            for _ in 0..random.below(3).min(if schema["maxProperties"].is_null() { 3 } else { 0 }) {
                record.insert(self.text(random), self.of(more, depth + 1, random));
            }
        }
        record
    }

    /// A text within the limits of its type.
    fn fitting(&self, schema: &Value, random: &mut Random) -> String {
        let cut = |text: String| match schema["maxLength"].as_u64() {
            Some(most) => text.chars().take(usize::try_from(most).unwrap_or(usize::MAX)).collect(),
            None => text,
        };
        let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX).min(10_000);
        let text = format!("{:x<least$}", cut(self.text(random)));
        if schema["pattern"].is_null() {
            return text;
        }
        let Ok(validator) = jsonschema::validator_for(schema) else { return text };
        let tries = ["abc", "ABC-1", "1.2.3", "v1.2.3", "a@b.c", "2000-01-01", "a/b.c", "#1"].map(str::to_owned);
        let found = [text.clone()].into_iter().chain(tries).find(|text| validator.is_valid(&json!(text)));
        found.unwrap_or(text)
    }
}
