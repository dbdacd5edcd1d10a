//! Reused runs against full ones: random edits of random plans, each run once with all earlier results and once in a home
//! of its own, without any. Both must come to the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use swarmc_plan::{
    Agent, Body, Command, Connection, EnvValue, Format, McpConfig, Param, ParamType, Plan, PromptBody, PromptDelivery,
    Provider, Schema, Segment, Step,
};

use super::world::*;
use super::*;
use crate::types::event::{Event, Outcome as AttemptOutcome};
use crate::types::reuse::Reuse;

/// The plans, and the edits of each.
const PLANS: u64 = 100;
const EDITS: u64 = 20;

/// The files that steps read.
const FILES: usize = 3;

/// A source of numbers that are the same in every test.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }
}

/// What a step is made from.
#[derive(Clone, Debug)]
struct Draft {
    kind: usize,
    text: usize,
    file: usize,
    /// The steps before it whose outputs it reads.
    reads: Vec<usize>,
    model: usize,
    variable: usize,
    is_typed: bool,
    is_checked: bool,
    is_short: bool,
    reuse: bool,
}

#[derive(Clone, Debug)]
struct Drafts {
    steps: Vec<Draft>,
    param: usize,
    system: usize,
}

const KINDS: usize = 6;

impl Drafts {
    fn random(random: &mut Random) -> Drafts {
        let count = 3 + random.below(3);
        let steps = (0..count).map(|number| Draft {
            kind: random.below(KINDS),
            text: random.below(9),
            file: random.below(FILES),
            reads: (0..number).filter(|_| random.below(2) == 0).collect(),
            model: random.below(3),
            variable: random.below(3),
            is_typed: random.below(4) == 0,
            is_checked: random.below(4) == 0,
            is_short: random.below(5) == 0,
            reuse: random.below(8) > 0,
        });
        Drafts { steps: steps.collect(), param: 0, system: 0 }
    }

    /// Changes one thing.
    fn edit(&mut self, random: &mut Random, work: &Path) {
        let at = random.below(self.steps.len());
        let step = &mut self.steps[at];
        let fresh = random.below(9);
        match random.below(14) {
            0 => step.text = fresh,
            1 => step.model = fresh % 3,
            2 => step.variable = fresh % 3,
            3 => step.is_typed = !step.is_typed,
            4 => step.is_checked = !step.is_checked,
            5 => step.is_short = !step.is_short,
            6 => step.file = fresh % FILES,
            7 => match step.reads.pop() {
                Some(_) => {}
                None => step.reads = (0..at).take(1).collect(),
            },
            8 => self.param = fresh,
            9 => self.system = fresh,
            10 => fs::write(work.join(format!("files/f{}", fresh % FILES)), format!("content {fresh}\n")).unwrap(),
            // What a step has written is not as it left it.
            11 => _ = fs::write(work.join(format!("out/s{at}")), "tampered"),
            12 => _ = fs::remove_file(work.join(format!("out/s{at}"))),
            _ => step.kind = fresh % KINDS,
        }
    }

    fn plan(&self) -> Plan {
        let steps = self.steps.iter().enumerate().map(|(number, draft)| self.step(number, draft)).collect();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let provider = Provider {
            name: "program".to_owned(),
            connection: Connection::Exec {
                argv: words(&["sh", "-c", "cat; echo \"$@\"", "agent"]),
                prompt: PromptDelivery::Stdin,
                reads: Format::Text,
                model_flag: Some("--model".to_owned()),
                system_flag: Some("--system".to_owned()),
                resume: None,
                schema: None,
                mcp: McpConfig::default(),
            },
            ..Provider::default()
        };
        let agent = |model: usize| Agent {
            name: format!("agent{model}"),
            provider: provider.name.clone(),
            model: Some(format!("model{model}")),
            system: Some(template(vec![Segment::Text(format!("system {}", self.system))])),
            ..Agent::default()
        };
        Plan {
            agents: (0..3).map(agent).collect(),
            params: vec![Param {
                name: "p".to_owned(),
                kind: ParamType::String,
                optional: false,
                default: Some(format!("param {}", self.param)),
                env: None,
                description: None,
                origin: origin(),
            }],
            providers: vec![provider.clone()],
            ..plan(steps)
        }
    }

    fn step(&self, number: usize, draft: &Draft) -> Step {
        let param = swarmc_plan::Directive {
            kind: swarmc_plan::DirectiveKind::Param,
            name: Some("p".to_owned()),
            fields: Vec::new(),
            filters: Vec::new(),
            wrap: false,
            origin: origin(),
        };
        let mut segments = vec![Segment::Text(format!("text {} ", draft.text))];
        if draft.text.is_multiple_of(2) {
            segments.push(Segment::Directive(param));
        }
        let name = |number: &usize| format!("s{number}");
        segments.extend(draft.reads.iter().map(|read| output_of(&name(read), false)));
        let text = template(segments);
        let file = format!("files/f{}", draft.file);
        let own = name(&number);
        let (body, stdin, reads, writes) = match draft.kind {
            0 => (argv(&["cat", "-", &file]), Some(text), vec![file.clone()], vec![]),
            1 => (sh("cat files/*; cat"), Some(text), vec!["files/*".to_owned()], vec![]),
            2 => {
                let agent = format!("agent{}", draft.model);
                (
                    Body::Prompt(PromptBody { agent, prompt: text, context: Vec::new() }),
                    None,
                    vec![file.clone()],
                    vec![],
                )
            }
            3 => (Body::Value(text), None, vec![], vec![]),
            4 => (
                sh(&format!("mkdir -p out; cat > out/{own}; wc -c < out/{own}")),
                Some(text),
                vec![file.clone()],
                vec![format!("out/{own}")],
            ),
            _ => {
                // What the step before it may have written.
                let other = format!("out/{}", draft.reads.first().map_or_else(|| own.clone(), name));
                (sh(&format!("echo $VARIABLE; cat {other} 2>&1; cat")), Some(text), vec![other], vec![])
            }
        };
        let needs: Vec<String> = draft.reads.iter().map(name).collect();
        let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
        let value = template(vec![Segment::Text(format!("variable {}", draft.variable))]);
        let is_value = draft.kind == 3;
        let mut step = Step {
            stdin,
            reads: reads.into_iter().chain([file.clone()]).collect(),
            writes,
            env: vec![EnvValue::Set { name: "VARIABLE".to_owned(), value }],
            reuse: (!draft.reuse).then_some(false),
            checks: match draft.is_checked && !is_value {
                true => vec![Command::Shell(format!("! grep -q 'content 7' {file}"))],
                false => Vec::new(),
            },
            ..step(&own, body, &needs)
        };
        if draft.is_typed && !is_value && draft.kind != 2 {
            step.output.schema = Some(Schema(serde_json::json!({"type": "string"})));
        }
        if draft.is_short {
            step.output.max_bytes = 10;
        }
        step
    }
}

/// How a step ended: its failure, exit code and output.
type StepEnd = (Option<String>, Option<i32>, Option<String>);

/// What came of a run: how each step ended, its output, and the files that are there.
#[derive(Debug, PartialEq)]
struct Results {
    ended: Ended,
    values: Vec<String>,
    steps: BTreeMap<String, StepEnd>,
    files: BTreeMap<String, String>,
}

fn results(home: &Home, outcome: Outcome, work: &Path) -> (Results, usize) {
    let folder = home.find(&outcome.run).unwrap();
    let mut reused = 0;
    let mut steps = BTreeMap::new();
    for record in folder.read_records().unwrap() {
        if let Event::AttemptEnded {
            step, outcome: AttemptOutcome { failure, output, exit, reused: taken, .. }, ..
        } = record.event
        {
            reused += usize::from(taken.is_some());
            let output = output.map(|output| folder.read_text(&output).unwrap());
            steps.insert(step.name.to_string(), (failure.map(|failure| failure.to_string()), exit, output));
        }
    }
    let files = fs::read_dir(work.join("out")).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap())
    });
    let results = Results { ended: outcome.ended, values: outcome.values, steps, files: files.collect() };
    (results, reused)
}

#[test]
fn a_reused_run_comes_to_what_a_full_one_comes_to() {
    let (next, reused, all) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed) as u64;
                    if seed >= PLANS {
                        break;
                    }
                    compare_edits(seed, &reused, &all);
                }
            });
        }
    });
    let (reused, all) = (reused.into_inner(), all.into_inner());
    // The comparison says something only where much is reused, and much is not.
    assert!(reused * 3 > all && reused * 20 < all * 19, "{reused} of {all} steps were reused");
}

fn compare_edits(seed: u64, reused: &AtomicUsize, all: &AtomicUsize) {
    let world = World::new();
    let work = world.workspace();
    for folder in ["files", "out"] {
        fs::create_dir(work.join(folder)).unwrap();
    }
    for number in 0..FILES {
        fs::write(work.join(format!("files/f{number}")), format!("content {number}\n")).unwrap();
    }
    let mut random = Random(seed);
    let mut drafts = Drafts::random(&mut random);
    let mut history = Vec::new();
    for edit in 0..EDITS {
        let plan = drafts.plan();
        let options = Options { reuse: Some(Reuse::ANY), ..world.options() };
        let outcome = world.start_with(&plan, options, Control::new()).unwrap();
        let (with, taken) = results(&world.home(), outcome, &work);
        let full = Home::new(world.folder.path().join("full"));
        let observer = Box::new(Watcher(world.sender.clone()));
        let outcome = start_run(&full, &plan, world.options(), Control::new(), observer).unwrap();
        let (without, none) = results(&full, outcome, &work);
        assert_eq!(none, 0);
        assert_eq!(with, without, "seed {seed}, edit {edit}: {drafts:#?}");
        reused.fetch_add(taken, Ordering::Relaxed);
        all.fetch_add(with.steps.len(), Ordering::Relaxed);
        history.push(drafts.clone());
        // An edit, or an edit that is taken back.
        match random.below(6) {
            0 => drafts = history[random.below(history.len())].clone(),
            _ => drafts.edit(&mut random, &work),
        }
        world.notices();
    }
}
