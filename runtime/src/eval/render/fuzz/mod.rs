//! Whether what `check` lets through evaluates: generated texts over declared types, judged by the compiler and rendered
//! over values that fit.
//!
//! A text *escapes* when it passes and fails for a reason that it could tell itself. `FUZZ=SEED:COUNT` searches longer.

mod generate;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use swarmc_compiler::{Compilation, Severity, compile};
use swarmc_plan::{Expression, Origin, Segment, Step, Template};

use self::generate::{Generator, Sample};
use self::world::{SPEC, World};
use super::Renderer;

/// How many texts one spec holds.
const BATCH: usize = 100;

/// What the values decide, as the evaluator says it: no text can tell.
const BY_VALUE: &[&str] = &[
    // A text that says no number, read as one.
    "invalid float literal",
    "cannot parse",
    // Overflow, and a divisor that happens to be zero.
    "unable to calculate",
    "rounded value is too large",
    "range has too many elements",
    "needs more than",
    "takes too many steps",
    "is too large",
    // A number that is no character, and a text of more than one.
    "not in range",
    "requires integer or char",
    "cannot create range with step of 0",
    // As many names as a list happens to have items.
    "sequence of wrong length",
];

/// What only some values decide: where it happens with all values, the text could tell.
const BY_SOME_VALUES: &[&str] = &[
    "can only be multiplied with integers",
    "cannot convert number to",
    "count cannot be 0",
    "cannot slice by step size of 0",
    // A slice backwards, whose step or bounds were computed.
    "this has no value",
];

/// What became of the texts.
#[derive(Default)]
struct Tally {
    passed: usize,
    refused: usize,
    /// Refused, and rendered over all values.
    refused_in_vain: usize,
    escapes: Vec<String>,
}

/// Numbers that look random and are the same for the same seed (xorshift).
pub(super) struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 17
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    /// True so many times of ten.
    fn chance(&mut self, of_ten: u64) -> bool {
        self.below(10) < of_ten
    }

    /// True once of so many times.
    fn chance_of(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn one<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

#[test]
fn what_passes_check_evaluates() {
    let asked = std::env::var("FUZZ").ok();
    let asked = asked.as_deref().and_then(|asked| {
        let (seed, count) = asked.split_once(':')?;
        Some((seed.parse().ok()?, count.parse().ok()?))
    });
    let searches: Vec<(u64, usize)> = match asked {
        Some(search) => vec![search],
        None => (1..=4).map(|seed| (seed, 5000)).collect(),
    };
    let mut tally = Tally::default();
    for (seed, count) in searches {
        search(seed, count, &mut tally);
    }
    let all = tally.passed + tally.refused;
    let figures = format!(
        "{all} texts: {} passed, {} refused, of which {} render; {} escaped",
        tally.passed,
        tally.refused,
        tally.refused_in_vain,
        tally.escapes.len()
    );
    show_figures(&figures);
    assert!(tally.escapes.is_empty(), "{figures}\n{}", tally.escapes[..tally.escapes.len().min(40)].join("\n"));
    // A checker that refuses everything lets nothing escape.
    assert!(tally.passed * 10 >= all * 3, "{figures}");
    assert!(tally.refused_in_vain * 10 <= tally.refused * 3, "{figures}");
}

/// Shows the figures of a long search, which has no other outcome.
fn show_figures(figures: &str) {
    if std::env::var_os("FUZZ").is_some() {
        eprintln!("{figures}");
    }
}

fn search(seed: u64, count: usize, tally: &mut Tally) {
    let mut random = Random::new(seed);
    let renderer = Renderer::new();
    for _ in 0..count.div_ceil(BATCH) {
        let samples: Vec<Sample> = (0..BATCH).map(|_| Generator::new(&mut random).sample()).collect();
        let refused = refused(&samples);
        let passed = compiled(&samples, &refused);
        let worlds = World::all(&mut random);
        for (index, sample) in samples.iter().enumerate() {
            let template = passed.get(&index).cloned().unwrap_or_else(|| as_written(sample));
            let failures: Vec<String> =
                worlds.iter().filter_map(|world| failure(&renderer, &template, world)).collect();
            match refused.contains(&index) {
                true => {
                    tally.refused += 1;
                    tally.refused_in_vain += usize::from(failures.is_empty());
                }
                false => {
                    tally.passed += 1;
                    let told = |failure: &&String| !by_value(failure, sample, &failures, worlds.len());
                    if let Some(failure) = failures.iter().find(told) {
                        tally.escapes.push(format!("{seed}: {}\n    {failure}", sample.source));
                    }
                }
            }
        }
    }
}

/// Whether a failure is one that only values decide, of those that a text has over so many worlds.
fn by_value(failure: &str, sample: &Sample, failures: &[String], worlds: usize) -> bool {
    let says = |failure: &str, reason: &str| failure.contains(reason);
    let by_some = BY_SOME_VALUES.iter().filter(|reason| says(failure, reason)).any(|reason| {
        // A sign may be turned round, so that what fails for some values fails for these.
        failures.iter().filter(|failure| says(failure, reason)).count() < worlds || sample.source.contains('-')
    });
    BY_VALUE.iter().any(|reason| says(failure, reason)) || by_some || names_by_value(failure, sample)
}

/// Whether a filter or a test is unknown whose name is computed.
fn names_by_value(failure: &str, sample: &Sample) -> bool {
    let written = ["map('", "select('", "reject('"].iter().flat_map(|start| sample.source.split(start).skip(1));
    let known = |name: &str| generate::FILTERS.contains(&name) || generate::TESTS.contains(&name);
    let mut written = written.filter_map(|rest| rest.split('\'').next());
    (failure.ends_with("unknown filter") || failure.ends_with("unknown test")) && written.all(known)
}

/// A spec in which each of these texts is a task on a line of its own.
fn spec<'s>(samples: impl Iterator<Item = (usize, &'s Sample)>) -> String {
    let mut spec = SPEC.to_owned();
    for (index, sample) in samples {
        spec.push_str(&format!("task e{index} {{ run cat; stdin ##\"{}\"## }}\n", sample.source));
    }
    spec.push_str("}\n");
    spec
}

fn compile_text(spec: &str) -> Compilation {
    compile("spec.kdl", &BTreeMap::from([("spec.kdl".to_owned(), spec.to_owned())]))
}

/// The texts that the compiler refuses, by index.
fn refused(samples: &[Sample]) -> BTreeSet<usize> {
    let spec = spec(samples.iter().enumerate());
    let first = SPEC.lines().count();
    let compilation = compile_text(&spec);
    assert!(compilation.diagnostics.len() < 1000, "all problems are listed");
    let errors = compilation.diagnostics.iter().filter(|diagnostic| diagnostic.severity() == Severity::Error);
    let line = |at: usize| spec[..at].bytes().filter(|byte| *byte == b'\n').count();
    errors
        .map(|error| {
            let place = error.labels.first().expect("an error has a place").span;
            let line = line(place.start as usize);
            assert!(line >= first, "the declarations are right: {} {}", error.code.id(), error.message);
            line - first
        })
        .collect()
}

/// The texts that pass, by index, as the plan has them: the compiler writes a default out for each part of a path.
fn compiled(samples: &[Sample], refused: &BTreeSet<usize>) -> BTreeMap<usize, Template> {
    let passed = samples.iter().enumerate().filter(|(index, _)| !refused.contains(index));
    let plan = compile_text(&spec(passed)).plan.expect("what is right on its own is right beside others");
    let text = |step: Step| Some((step.name.strip_prefix('e')?.parse().ok()?, step.stdin?));
    plan.pipelines.into_iter().flat_map(|pipeline| pipeline.steps).filter_map(text).collect()
}

/// A text as it is written.
fn as_written(sample: &Sample) -> Template {
    let origin = Origin { file: "spec.kdl".to_owned(), line: 1, column: 1 };
    let logic = Expression { source: sample.source.clone(), reads: None, origin };
    Template { segments: vec![Segment::Logic(logic)], digest: String::new() }
}

/// Why a text does not render over these values.
fn failure(renderer: &Renderer, template: &Template, world: &World) -> Option<String> {
    renderer.text(template, world).err().map(|error| error.message)
}
