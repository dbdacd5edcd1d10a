//! Plans that somebody edited: read as `swarmc run plan.json` reads them, and rehearsed where they are taken.
//!
//! The plan of every spec is mutated as JSON: parts are dropped, doubled, exchanged, replaced by values of another kind or
//! by names from elsewhere in it. Each mutant is either refused with a message, or a rehearsal of each of its pipelines ends:
//! without a panic, in bounded time and memory. That happens in a process of its own, which has a limit of memory and says
//! where it is.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Map, Value, json};
use swarmc_compiler::compile;
use swarmc_plan::{Body, Param, ParamType, Plan, Step};
use swarmc_runtime::{Answer, Asks, Options, Turn, load_plan, rehearse};

use crate::cli::Place;
use crate::mutants::{Random, Spec, specs};

/// The mutants of each plan.
const EACH: usize = 150;
/// The memory of the process, in KiB: some plans of 10,000 instances fit, and no list that grows without end.
const MEMORY: u32 = 3_000_000;
/// The rounds, instances and attempts that are rehearsed at most.
const FEW: u32 = 20;
/// How long one mutant may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tells the process what it is for.
const CHILD: &str = "SWARMC_MUTATED_PLANS";

/// The plan of every spec, by path, with the swarms that run by themselves.
fn plans() -> Vec<(String, Value)> {
    let plan = |spec: Spec| {
        let plan = compile(&spec.path, &spec.files).plan.expect("an example is right").with_swarms();
        (spec.path, serde_json::to_value(plan).expect("a plan is JSON"))
    };
    specs().into_iter().map(plan).collect()
}

/// Every place of a document, as a JSON pointer, except in what no run reads.
fn places(value: &Value) -> Vec<String> {
    const UNREAD: [&str; 6] = ["origin", "description", "sources", "digest", "bounds", "install"];
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                let read = fields.iter().filter(|(name, _)| !UNREAD.contains(&name.as_str()));
                open.extend(read.map(|(name, value)| (format!("{path}/{}", escaped(name)), value)));
            }
            Value::Array(items) => open.extend((0..).zip(items).map(|(at, value)| (format!("{path}/{at}"), value))),
            _ => {}
        }
        if !path.is_empty() {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Changes a document in one place or two, and says what was done.
fn mutate(plan: &mut Value, random: &mut Random) -> String {
    let places = places(plan);
    let texts: Vec<String> =
        places.iter().filter_map(|place| plan.pointer(place)?.as_str().map(str::to_owned)).collect();
    let place = random.pick(&places).clone();
    let other = random.pick(&places).clone();
    let (parent, last) = place.rsplit_once('/').expect("a pointer begins with a slash");
    let elsewhere = plan.pointer(&other).cloned().unwrap_or_default();
    let word = random.pick(&texts).clone();
    let roll = random.below(10);
    let Some(value) = plan.pointer_mut(&place) else { return String::new() };
    let numbers = [0, 1, 2, 3, 5_000_000_000, u64::MAX - 1];
    match (roll, &*value) {
        (0 | 1, Value::String(_)) => *value = Value::String(word),
        (0..=2, Value::Number(_)) => *value = json!(*random.pick(&numbers)),
        (0 | 1, Value::Bool(on)) => *value = json!(!on),
        (0..3, Value::Array(items)) if !items.is_empty() => {
            let (from, to) = (random.below(items.len()), random.below(items.len() + 1));
            let mut items = items.clone();
            items.insert(to, items[from].clone());
            *value = Value::Array(items);
        }
        (3, Value::Array(items)) if items.len() > 1 => {
            let (from, to) = (random.below(items.len()), random.below(items.len()));
            let mut items = items.clone();
            items.swap(from, to);
            *value = Value::Array(items);
        }
        (3, Value::String(_)) => *value = json!(*random.pick(&["", "../../x", "\0", "{{", "é", "a.b", "x"])),
        (4 | 5, _) => *value = elsewhere,
        (6, _) => {
            *value = match random.below(6) {
                0 => Value::Null,
                1 => json!([]),
                2 => json!({}),
                3 => json!(""),
                4 => json!(0),
                _ => json!("x".repeat(300)),
            };
        }
        _ => match plan.pointer_mut(parent) {
            Some(Value::Object(fields)) => {
                fields.remove(&last.replace("~1", "/").replace("~0", "~"));
            }
            Some(Value::Array(items)) => {
                let at: usize = last.parse().expect("an index");
                items.remove(at);
            }
            _ => {}
        },
    }
    format!("{place} (from {other}, {roll})")
}

/// Says something, whatever is asked.
fn answer(turn: &Turn<'_>, random: &mut Random) -> Answer {
    if let Asks::Person { options, .. } = &turn.asks {
        return Answer::Choice { choice: random.pick(options).clone(), fields: Map::new() };
    }
    match (random.below(5), turn.schema) {
        (0, _) => Answer::Failure { exit: 1, output: String::new(), stderr: "no".to_owned() },
        (1, Some(_)) => Answer::Json(json!({ "approved": true, "items": ["a", "b"] })),
        (2, Some(_)) => Answer::Json(json!(["a", "b"])),
        (_, _) => Answer::Text(random.below(9).to_string()),
    }
}

/// What can be given for a parameter without a default.
fn param(param: &Param) -> Option<(String, String)> {
    let value = match &param.kind {
        _ if param.default.is_some() || param.optional => return None,
        ParamType::Bool => "true",
        ParamType::Json(_) => "[]",
        _ => "1",
    };
    Some((param.name.clone(), value.to_owned()))
}

/// Takes counts down that a spec may say and that only take time.
fn shorten(plan: &mut Plan) {
    fn of_steps(steps: &mut [Step]) {
        for step in steps {
            step.retry.times = step.retry.times.min(FEW);
            if let Body::Loop(body) = &mut step.body {
                body.iteration.max = body.iteration.max.min(FEW);
                of_steps(&mut body.steps);
            }
        }
    }
    for pipeline in &mut plan.pipelines {
        pipeline.iteration.max = pipeline.iteration.max.min(FEW);
        pipeline.parallelism = pipeline.parallelism.min(FEW);
        of_steps(&mut pipeline.steps);
    }
    for swarm in &mut plan.swarms {
        swarm.limits.iterations = swarm.limits.iterations.min(FEW);
    }
}

/// Rehearses every pipeline of a plan: what comes of it does not matter, only that something does.
fn rehearsed(plan: &Plan, seed: u64) {
    for pipeline in &plan.pipelines {
        let options = Options {
            pipeline: Some(pipeline.name.clone()),
            params: plan.params.iter().chain(&pipeline.params).filter_map(param).collect(),
            workspace: Path::new(env!("CARGO_MANIFEST_DIR")).to_owned(),
            ..Options::default()
        };
        let mut random = Random::about(seed, &pipeline.name);
        if let Err(error) = rehearse(plan, &options, &mut |turn| answer(turn, &mut random)) {
            let said = error.to_string();
            assert!(!said.contains("is stuck") && !said.contains("records"), "pipeline `{}`: {said}", pipeline.name);
        }
    }
}

/// In the child: reads and rehearses the mutants. Otherwise: nothing.
#[test]
fn reads_mutated_plans_for_its_parent() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (mut refused, mut taken) = (0, 0);
    for (path, original) in plans() {
        for seed in 0..EACH as u64 {
            let mut random = Random::about(seed, &path);
            let mut plan = original.clone();
            let done = mutate(&mut plan, &mut random);
            println!("\u{1}{path} {seed}: {done}");
            match load_plan(&plan.to_string()) {
                Ok(mut plan) => {
                    taken += 1;
                    shorten(&mut plan);
                    (0..2).for_each(|seed| rehearsed(&plan, seed));
                }
                Err(error) => {
                    refused += 1;
                    let said = error.to_string();
                    assert!(said.contains("line ") || said.contains("the plan is inconsistent"), "{said}");
                }
            }
        }
    }
    println!("\u{1}ended: {refused} refused, {taken} rehearsed");
}

#[test]
fn mutated_plans_are_refused_or_run() {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -v {MEMORY}; exec \"$@\""), "sh"]);
    shell.arg(std::env::current_exe().expect("this program has a path"));
    shell.args(["plans::reads_mutated_plans_for_its_parent", "--exact", "--nocapture", "--test-threads=1"]);
    shell.env(CHILD, "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().expect("sh starts");
    let output = BufReader::new(child.stdout.take().expect("the output is piped"));
    let mut errors = child.stderr.take().expect("the errors are piped");
    let errors = std::thread::spawn(move || {
        let mut said = Vec::new();
        std::io::Read::read_to_end(&mut errors, &mut said).map(|_| String::from_utf8_lossy(&said).into_owned())
    });
    let (sender, lines) = channel();
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut last = String::new();
    // The harness of the child prints the name of the test without a line break.
    while let Ok(line) = lines.recv_timeout(PATIENCE) {
        if let Some((_, line)) = line.split_once('\u{1}') {
            last = line.to_owned();
        }
    }
    let ended = child.try_wait().expect("the child can be asked after").is_some() || last.starts_with("ended");
    child.kill().expect("the child can be ended");
    child.wait().expect("the child can be waited for");
    let said = errors.join().expect("nobody panics").unwrap_or_default();
    let kind = if ended { "ended" } else { "hangs" };
    assert!(last.starts_with("ended: "), "it {kind} at `{last}`\n{said}");
    println!("{last}");
}

/// A swarm of two members, the second of which has been edited.
fn swarm(edit: impl FnOnce(&mut Value)) -> String {
    let spec = "workflow w\nprovider p { script { answer \"done\" } }\nagent a provider=p\n\
                swarm s { goal \"g\"; supervisor lead; member x \"one\"; member y \"two\" }\n";
    let compilation = compile("w.kdl", &BTreeMap::from([("w.kdl".to_owned(), spec.to_owned())]));
    let plan = compilation.plan.unwrap_or_else(|| panic!("{:#?}", compilation.diagnostics));
    let mut plan = serde_json::to_value(plan).expect("a plan is JSON");
    edit(&mut plan["swarms"][0]);
    plan.to_string()
}

#[test]
fn a_plan_from_disk_is_refused_with_the_place() {
    let place = Place::new("");
    for (edit, said) in [
        (
            (|swarm| swarm["members"][1]["name"] = json!("x")) as fn(&mut Value),
            "`/swarms/0/members/1/name`: member `x`",
        ),
        (|swarm| swarm["members"][1]["count"] = json!(5), "`/swarms/0/members/1/count`: a count of 5"),
        (
            |swarm| swarm["limits"]["agents"] = json!(1),
            "`/swarms/0/members`: swarm `s` has 2 members, but allows 1 agents",
        ),
        (|swarm| swarm["members"][0]["agent"] = json!("b"), "`/swarms/0/members/0/agent`: swarm `s` uses agent `b`"),
    ] {
        place.write("plan.json", &swarm(edit));
        let ended = place.swarmc(&["run", "plan.json"]);
        let ended = ended.expect(2, &[], &["cannot use the plan `plan.json`", "the plan is inconsistent"]);
        let words = |text: &str| text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(words(&ended.err).contains(said), "{ended:#?}");
    }
    assert!(!place.home().exists(), "nothing is begun");
}
