//! Mutants of every spec of the repository (`specs/`, the manual, the pages of codes): whatever `check` lets pass must not
//! die of something that stands in the spec.
//!
//! Each spec is mutated by the operators of `operators`, checked in the default profile and, where there is no error,
//! rehearsed. What becomes of a mutant is one of five:
//!
//! - *Reported*: `check` gives an error or a warning.
//! - *Equal*: the plan says the same, apart from places and words for people.
//! - *Escaped*: nothing is said, and a rehearsal fails for a reason that no answer is to blame for: a text that cannot be
//!   rendered, a value that is not there, a computed value of the wrong type, a run that does not end or goes beyond its
//!   bounds, a step that never runs. None may.
//! - *Slipped*: nothing is said, and the mutant is wrong by what its operator does: a misspelt reference or compared value, a
//!   renamed or deleted declaration that others use, a declaration or a recorded answer that stands twice, a directive
//!   without its end.
//! - *Changed*: nothing is said, every step runs in the rehearsals, and what is left agrees with itself: another right spec,
//!   which somebody may want. Only their own author knows better: a number, a word, an order, a condition, an edge, another
//!   text or field of the same type, a prompt that says less.
//!
//! The mutants that change the meaning and are no other right spec are those that are reported, slipped or escaped. At least
//! 95 of a hundred of them are reported, in `specs/` and in the manual each; those that are not are listed.

mod answers;
mod operators;
mod places;
mod random;
mod trial;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use swarmc_compiler::{Compilation, Diagnostic, Overlay, Profile, Settings, Severity, compile, compile_with, fix_spec};

use crate::specs::{meaning, texts};
use operators::{Mutant, mutants};
use places::Places;
pub(crate) use places::Spec;
pub(crate) use random::Random;
use trial::{PATIENCE, trial};

/// The mutants of each operator on each spec at most, and of those of the manual.
const EACH: usize = 30;
const EACH_OF_MANUAL: usize = 2;
/// So many of a hundred mutants that are no other right spec are reported.
const LEAST_REPORTED: usize = 95;
/// The rehearsals of a mutant at least.
const LEAST: u64 = 7;

/// A mutant, and what became of it.
struct Verdict {
    spec: usize,
    mutant: Mutant,
    fate: Fate,
}

/// What becomes of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// There is an error, or a warning.
    Reported,
    /// The plan says the same.
    Equal,
    /// It says something else, and runs.
    Changed,
    /// It says something that contradicts itself, as the operator knows, and runs.
    Slipped,
    /// It fails for a reason that stands in the spec.
    Escaped(String),
}

/// Every spec under `specs/`, alone with the files of its folder.
pub(crate) fn specs() -> Vec<Spec> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = texts(&root.join("specs")).into_iter().map(|(name, text)| (format!("specs/{name}"), text));
    let files: BTreeMap<String, String> = files.collect();
    let paths = files.keys().filter(|path| path.ends_with(".kdl")).cloned();
    let beside = |path: String| {
        let folder = &path[..path.rfind('/').map_or(0, |at| at + 1)];
        let own = files.iter().filter(|(other, _)| other.starts_with(folder));
        Spec { files: own.map(|(path, text)| (path.clone(), text.clone())).collect(), path }
    };
    paths.map(beside).collect()
}

/// Every spec that the manual and the pages of codes show as right, with nothing beside it, that runs from its beginning to
/// its end in a rehearsal.
fn shown() -> Vec<Spec> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = ["docs", "compiler/src/codes"].map(|folder| (folder, texts(&root.join(folder))));
    let pages =
        pages.into_iter().flat_map(|(folder, pages)| pages.into_iter().map(move |(name, text)| (folder, name, text)));
    let mut found = Vec::new();
    // The rules of the manual are those pages.
    for (folder, name, text) in pages.filter(|(_, name, _)| name.ends_with(".md") && name != "rules.md") {
        let blocks = text.split("```kdl").skip(1).filter_map(|rest| rest.split_once('\n'));
        for (number, (kind, rest)) in blocks.enumerate().filter(|(_, (kind, _))| kind.trim() != "error") {
            let Some((block, _)) = rest.split_once("```") else { continue };
            let path = format!("{folder}/{name}.{number}{}.kdl", kind.trim());
            let spec = Spec { files: BTreeMap::from([(path.clone(), block.to_owned())]), path };
            let Compilation { diagnostics, plan: Some(plan), .. } = compile(&spec.path, &spec.files) else { continue };
            let words = Places::of(&spec).vocabulary(&spec);
            let trial = || trial(&plan, &words, root, LEAST, PATIENCE);
            if diagnostics.is_empty() && matches!(trial(), trial if trial.failure.is_none() && trial.idle.is_empty()) {
                found.push(spec);
            }
        }
    }
    found
}

fn judge(spec: &Spec, mutant: &Mutant, original: &Value, words: &[String]) -> Fate {
    let mutated = mutant.apply(spec);
    let Compilation { diagnostics, plan, .. } = compile(&mutated.path, &mutated.files);
    if let Some(worse) = worsened(&mutated, &diagnostics) {
        return Fate::Escaped(worse);
    }
    let Some(plan) = plan else { return Fate::Reported };
    let warned = !diagnostics.is_empty();
    if !warned && meaning(&plan) == *original {
        return Fate::Equal;
    }
    let trial = trial(&plan, words, Path::new(env!("CARGO_MANIFEST_DIR")), LEAST, if warned { 0 } else { PATIENCE });
    match trial.failure {
        Some(failure) => Fate::Escaped(failure),
        None if warned => Fate::Reported,
        None if !trial.idle.is_empty() => Fate::Escaped(format!("never ran: {:?}", trial.idle)),
        None if mutant.wrong => Fate::Slipped,
        None => Fate::Changed,
    }
}

/// What fixes break, if they do: who applies all of them, guesses included, has no more errors than before.
fn worsened(spec: &Spec, diagnostics: &[Diagnostic]) -> Option<String> {
    if diagnostics.iter().all(|diagnostic| diagnostic.fix.is_none()) {
        return None;
    }
    let mut overlay = Overlay::new(&spec.files);
    let mended = fix_spec(&spec.path, &mut overlay, &Settings::default(), true);
    let errors = |list: &[Diagnostic]| list.iter().filter(|one| one.severity() == Severity::Error).count();
    let (before, after) = (errors(diagnostics), errors(&mended.compilation.diagnostics));
    (after > before).then(|| format!("{before} errors became {after} by {:?}", mended.applied))
}

/// Mutates every spec and judges what comes of it.
fn verdicts(specs: &[Spec], each: usize) -> Vec<Verdict> {
    let mut work = Vec::new();
    let mut about = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let places = Places::of(spec);
        let plan = compile(&spec.path, &spec.files).plan.expect("an example is right");
        about.push((meaning(&plan), places.vocabulary(spec)));
        let mut operators: BTreeMap<&str, Vec<Mutant>> = BTreeMap::new();
        mutants(spec, &places)
            .into_iter()
            .for_each(|mutant| operators.entry(mutant.operator).or_default().push(mutant));
        for (operator, all) in operators {
            let mut random = Random::about(1, &format!("{} {operator}", spec.path));
            work.extend(random.some(all, each).into_iter().map(|mutant| (index, mutant)));
        }
    }
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some((spec, mutant)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (original, words) = &about[*spec];
            let fate = judge(&specs[*spec], mutant, original, words);
            done.push(Verdict { spec: *spec, mutant: mutant.clone(), fate });
        }
        done
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(worker);
        let mut done = worker();
        done.extend(other.join().expect("a mutant is judged without a panic"));
        done
    })
}

/// The table: a line for each operator.
fn table(verdicts: &[Verdict]) -> String {
    let mut rows: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for verdict in verdicts {
        let column = match verdict.fate {
            Fate::Reported => 0,
            Fate::Equal => 1,
            Fate::Changed => 2,
            Fate::Slipped => 3,
            Fate::Escaped(_) => 4,
        };
        for row in [verdict.mutant.operator, "~ all"] {
            rows.entry(row).or_default()[column] += 1;
        }
    }
    let mut table = format!(
        "{:32}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
        "operator", "reported", "equal", "changed", "slipped", "escaped"
    );
    for (operator, counts) in rows {
        let counts: String = counts.iter().map(|count| format!("{count:>10}")).collect();
        let _ = writeln!(table, "{operator:32}{counts}");
    }
    table
}

#[test]
fn mutants_that_pass_run() {
    let (count, report) = report(&specs(), EACH);
    println!("{report}");
    assert!(count >= 2000);
}

#[test]
fn mutants_of_the_manual_that_pass_run() {
    let shown = shown();
    assert!(shown.len() >= 25, "{} specs", shown.len());
    let (count, report) = report(&shown, EACH_OF_MANUAL);
    println!("{report}");
    assert!(count >= 800);
}

/// Mutates the specs, says how many mutants there were and what became of them, and fails where too many of the wrong ones
/// pass.
fn report(specs: &[Spec], each: usize) -> (usize, String) {
    let mut verdicts = verdicts(specs, each);
    let table = table(&verdicts);
    let mut report = format!("{table}\n");
    verdicts.sort_by_key(|verdict| verdict.mutant.difference(&specs[verdict.spec]).len());
    let mut told = String::new();
    for verdict in &verdicts {
        let difference = verdict.mutant.difference(&specs[verdict.spec]);
        match &verdict.fate {
            Fate::Escaped(reason) => {
                let _ = writeln!(told, "{}\n{difference}  {reason}\n", verdict.mutant.operator);
            }
            Fate::Slipped => _ = writeln!(report, "slipped: {}\n{difference}", verdict.mutant.operator),
            Fate::Changed if std::env::var_os("MUTANTS").is_some() => {
                _ = writeln!(report, "changed: {}\n{difference}", verdict.mutant.operator);
            }
            _ => {}
        }
    }
    assert!(told.is_empty(), "{table}\n{told}");
    let count = |wanted: Fate| verdicts.iter().filter(|verdict| verdict.fate == wanted).count();
    let (reported, slipped) = (count(Fate::Reported), count(Fate::Slipped));
    let wrong = reported + slipped;
    let _ = writeln!(report, "of {wrong} mutants that are no other right spec {reported} are reported");
    assert!(reported * 100 >= wrong * LEAST_REPORTED, "{report}");
    (verdicts.len(), report)
}

#[test]
fn examples_are_silent_and_run() {
    for spec in specs() {
        let words = Places::of(&spec).vocabulary(&spec);
        for profile in [Profile::Default, Profile::Strict] {
            let found = compile_with(&spec.path, &spec.files, &Settings::new(profile));
            assert!(found.diagnostics.is_empty(), "{}: {:#?}", spec.path, found.diagnostics);
            let plan = found.plan.expect("it is right");
            let trial = trial(&plan, &words, Path::new(env!("CARGO_MANIFEST_DIR")), 60, PATIENCE);
            assert_eq!(trial.failure, None, "{}", spec.path);
            assert!(trial.idle.is_empty(), "{}: {:?}", spec.path, trial.idle);
        }
    }
}

/// The fixtures of what must stay silent, by name.
fn traps() -> Vec<Spec> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of fixtures can be read") {
            let path = entry.expect("an entry can be read").path();
            let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
            match path.is_dir() {
                true => open.push(path),
                false if name.starts_with("trap") && name.ends_with(".kdl") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    let trap = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).expect("a fixture is text");
        let path =
            path.strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("it lies in the root").to_string_lossy().into_owned();
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        let mut name = path.clone();
        for line in text.lines() {
            match line.strip_prefix("//- ") {
                Some(other) => name = other.trim().to_owned(),
                None => *files.entry(name.clone()).or_default() += &format!("{line}\n"),
            }
        }
        // The files of a fixture lie beside its spec, which is called so there.
        let spec = files.remove(&path).unwrap_or_default();
        files.insert("spec.kdl".to_owned(), spec);
        (path, Spec { path: "spec.kdl".to_owned(), files })
    };
    found.iter().map(trap).map(|(path, spec)| Spec { path, ..spec }).collect()
}

#[test]
fn traps_are_silent_and_run() {
    let mut wrong = String::new();
    let traps = traps();
    assert!(traps.len() > 20, "{} traps", traps.len());
    for Spec { path, files } in traps {
        let strict = compile_with("spec.kdl", &files, &Settings::new(Profile::Strict));
        let found = compile("spec.kdl", &files);
        for diagnostic in found.diagnostics.iter().chain(&strict.diagnostics).take(1) {
            let _ = writeln!(wrong, "{path}: {} {}", diagnostic.code.id(), diagnostic.message);
        }
        // Swarms are not rehearsed.
        let Some(plan) = found.plan.filter(|plan| plan.swarms.is_empty()) else { continue };
        let folder = tempfile::TempDir::new().expect("a temporary folder can be made");
        for (name, text) in &files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().expect("it lies in a folder")).expect("a folder can be made");
            fs::write(file, text).expect("a file can be written");
        }
        if let Some(failure) = trial(&plan, &[], folder.path(), 12, 0).failure {
            let _ = writeln!(wrong, "{path}: {failure}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
