//! What the generated expressions read: a spec that declares it, and values of the declared types.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use swarmc_plan::ParamType;

use super::super::Values;
use super::Random;
use crate::types::event::Status;

/// The types and steps that every generated expression may read.
pub(super) const SPEC: &str = r#"
type Issue { id int; title string; severity enum low high; score float?; tags "list<string>"; owner string?; where Place? }
type Place { line int; file string?; by Inner? }
type Inner { x int; y string? }
type Rec {
    name string; count int; ratio float; done bool; level enum low mid high; note string?
    tags "list<string>"; filled "list<int>" min=1; issues "list<Issue>"; counts "map<int>"; maybe "list<int?>"
    inner Inner
}
pipeline main {
    task rec { run cat a.json; output Rec }
    task text { run cat a.txt }
    task str { run cat a.json; output string }
    task num { run cat a.json; output int }
    task frac { run cat a.json; output float }
    task flag { run cat a.json; output bool }
    task level { run cat a.json; output { word enum low mid high } }
    task texts { run cat a.json; output "list<string>" }
    task nums { run cat a.json; output "list<int>" }
    task nulls { run cat a.json; output "list<int?>" }
    task recs { run cat a.json; output "list<Issue>" }
    task rows { run cat a.json; output "list<list<int>>" }
    task map { run cat a.json; output "map<int>" }
    task maps { run cat a.json; output "map<list<string>>" }
"#;

/// Values for everything that [`SPEC`] declares.
pub(super) struct World {
    outputs: BTreeMap<&'static str, String>,
}

/// How the values of a world are drawn.
#[derive(Clone, Copy)]
struct Draw {
    /// How many of ten lists and maps are empty, and optional fields missing.
    empty: u64,
    /// Whether numbers are positive.
    positive: bool,
}

impl World {
    /// The worlds that each expression is evaluated in: a filled one, an empty one, and others between them.
    pub(super) fn all(random: &mut Random) -> Vec<World> {
        let draws = [
            Draw { empty: 0, positive: true },
            Draw { empty: 10, positive: true },
            Draw { empty: 3, positive: false },
            Draw { empty: 7, positive: false },
        ];
        draws.iter().map(|draw| World::draw(*draw, random)).collect()
    }

    fn draw(draw: Draw, random: &mut Random) -> World {
        let record = draw.record(random);
        let texts = draw.list(random, Draw::text);
        let nums = draw.list(random, Draw::number);
        let nulls = draw.list(random, Draw::maybe);
        let recs = draw.list(random, Draw::issue);
        let rows = draw.list(random, |draw, random| draw.list(random, Draw::number));
        let outputs = [
            ("rec", record),
            ("text", draw.text(random)),
            ("str", draw.text(random)),
            ("num", draw.number(random)),
            ("frac", draw.fraction(random)),
            ("flag", Value::Bool(draw.empty == 0 || draw.empty == 7)),
            ("level", json!({ "word": random.one(&["low", "mid", "high"]) })),
            ("texts", texts),
            ("nums", nums),
            ("nulls", nulls),
            ("recs", recs),
            ("rows", rows),
            ("map", draw.map(random, Draw::number)),
            ("maps", draw.map(random, |draw, random| draw.list(random, Draw::text))),
        ];
        let written = |(step, value): (&'static str, Value)| match (step, value) {
            ("text", Value::String(text)) => (step, text),
            (step, value) => (step, value.to_string()),
        };
        World { outputs: outputs.into_iter().map(written).collect() }
    }
}

impl Draw {
    fn is_empty(self, random: &mut Random) -> bool {
        random.chance(self.empty)
    }

    fn text(self, random: &mut Random) -> Value {
        // A text is trusted to have a character.
        json!(random.one(&["a", "b", "word", "two words", "a,b", "low", "7", "-3", "1.5", "line\nline"]))
    }

    fn number(self, random: &mut Random) -> Value {
        match self.positive {
            true => json!(random.below(5) + 1),
            false => json!(random.below(9) as i64 - 4),
        }
    }

    fn fraction(self, random: &mut Random) -> Value {
        match self.positive {
            true => json!(random.below(5) as f64 + 1.5),
            false => json!(random.below(9) as f64 / 2.0 - 2.0),
        }
    }

    fn maybe(self, random: &mut Random) -> Value {
        if random.chance(3) { Value::Null } else { self.number(random) }
    }

    fn list(self, random: &mut Random, item: impl Fn(Draw, &mut Random) -> Value) -> Value {
        let count = if self.is_empty(random) { 0 } else { random.below(3) + 1 };
        (0..count).map(|_| item(self, random)).collect()
    }

    fn map(self, random: &mut Random, item: impl Fn(Draw, &mut Random) -> Value) -> Value {
        let count = if self.is_empty(random) { 0 } else { random.below(3) as usize + 1 };
        let entries = ["a", "b", "c"][..count].iter().map(|key| ((*key).to_owned(), item(self, random)));
        Value::Object(entries.collect::<Map<String, Value>>())
    }

    fn issue(self, random: &mut Random) -> Value {
        let mut issue = json!({
            "id": self.number(random),
            "title": self.text(random),
            "severity": random.one(&["low", "high"]),
            "tags": self.list(random, Draw::text),
        });
        if !self.is_empty(random) {
            issue["score"] = self.fraction(random);
        }
        if !self.is_empty(random) {
            issue["owner"] = self.text(random);
        }
        if !self.is_empty(random) {
            let mut place = json!({ "line": self.number(random) });
            if !self.is_empty(random) {
                place["file"] = self.text(random);
            }
            if !self.is_empty(random) {
                place["by"] = self.inner(random);
            }
            issue["where"] = place;
        }
        issue
    }

    fn inner(self, random: &mut Random) -> Value {
        let mut inner = json!({ "x": self.number(random) });
        if !self.is_empty(random) {
            inner["y"] = self.text(random);
        }
        inner
    }

    fn record(self, random: &mut Random) -> Value {
        let mut record = json!({
            "name": self.text(random),
            "count": self.number(random),
            "ratio": self.fraction(random),
            "done": self.empty == 0 || self.empty == 3,
            "level": random.one(&["low", "mid", "high"]),
            "tags": self.list(random, Draw::text),
            "filled": [self.number(random)],
            "issues": self.list(random, Draw::issue),
            "counts": self.map(random, Draw::number),
            "maybe": self.list(random, Draw::maybe),
            "inner": self.inner(random),
        });
        if !self.is_empty(random) {
            record["note"] = self.text(random);
        }
        record
    }
}

impl Values for World {
    fn output(&self, step: &str) -> Result<Option<String>, String> {
        Ok(self.outputs.get(step).cloned())
    }
    fn previous(&self, _: &str) -> Result<Option<String>, String> {
        Ok(None)
    }
    fn status(&self, _: &str) -> Option<Status> {
        Some(Status::Succeeded)
    }
    fn exit(&self, _: &str) -> Option<i32> {
        Some(0)
    }
    fn error(&self, _: &str) -> Result<Option<Value>, String> {
        Ok(None)
    }
    fn log(&self, _: &str) -> Result<Option<String>, String> {
        Ok(None)
    }
    fn is_record(&self, step: &str) -> bool {
        step != "text"
    }
    fn steps(&self) -> Vec<&str> {
        self.outputs.keys().copied().collect()
    }
    fn inputs(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }
    fn param(&self, _: &str) -> Option<(&str, &ParamType)> {
        None
    }
    fn params(&self) -> Vec<&str> {
        Vec::new()
    }
    fn item(&self) -> Result<Option<(Value, u32)>, String> {
        Ok(None)
    }
    fn iteration(&self) -> u32 {
        1
    }
    fn run(&self) -> &str {
        "run"
    }
    fn run_folder(&self) -> &Path {
        Path::new("/run")
    }
    fn task(&self) -> &str {
        "task"
    }
    fn stdin(&self) -> Result<Option<String>, String> {
        Ok(None)
    }
    fn workspace(&self) -> &Path {
        Path::new("/")
    }
}
