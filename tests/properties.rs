//! Properties of compiling: it never panics, ends soon, points into the text, and gives the same for the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use swarmc_compiler::{Compilation, Severity, compile};

use crate::specs::texts;

/// How many beginnings, and how many deletions, of every example.
const SAMPLES: usize = 1000;

/// An example: the path of its spec, and the files around it.
struct Example {
    spec: String,
    files: BTreeMap<String, String>,
}

/// Every spec under `specs/` with the files beside it.
fn examples() -> Vec<Example> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = texts(&root.join("specs")).into_iter().map(|(name, text)| (format!("specs/{name}"), text));
    let files: BTreeMap<String, String> = files.collect();
    let specs = files.keys().filter(|path| path.ends_with(".kdl"));
    specs.map(|spec| Example { spec: spec.clone(), files: files.clone() }).collect()
}

/// Compiles, and holds the result to what every result keeps to.
fn checked(spec: &str, files: &BTreeMap<String, String>) -> Compilation {
    let start = Instant::now();
    let compilation = compile(spec, files);
    let took = start.elapsed();
    let text = &files[spec];
    assert!(took < Duration::from_secs(1 + text.len() as u64 / 1_000_000), "{took:?} for {} bytes", text.len());
    let errors = compilation.diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error);
    assert_eq!(compilation.plan.is_none(), errors, "a plan if, and only if, there is no error:\n{text}");
    for diagnostic in &compilation.diagnostics {
        assert!(!diagnostic.labels.is_empty() || text.is_empty(), "`{}` points at no place", diagnostic.message);
        let edits = diagnostic.fix.iter().flat_map(|fix| &fix.edits).map(|edit| edit.span);
        for span in diagnostic.labels.iter().map(|label| label.span).chain(edits) {
            let place = compilation.sources.text(span.file).get(span.range());
            assert!(place.is_some(), "`{}` points outside the text or into a character", diagnostic.message);
        }
    }
    compilation
}

/// What came of it, as text.
fn told(compilation: &Compilation) -> String {
    let mut told = String::new();
    for diagnostic in &compilation.diagnostics {
        let _ = writeln!(told, "{diagnostic:?}");
    }
    told + &compilation.plan.as_ref().map(swarmc_plan::write_plan).unwrap_or_default()
}

/// As many numbers below `end` as asked for, evenly spread, the first and the last included.
fn spread(end: usize, count: usize) -> impl Iterator<Item = usize> {
    let count = count.min(end);
    (0..count).map(move |index| if count == 1 { 0 } else { index * (end - 1) / (count - 1) })
}

#[test]
fn beginnings_of_the_examples_compile_to_diagnostics() {
    for example in examples() {
        let whole = example.files[&example.spec].clone();
        let mut files = example.files.clone();
        for end in spread(whole.len() + 1, SAMPLES).filter(|&end| whole.is_char_boundary(end)) {
            files.insert(example.spec.clone(), whole[..end].to_owned());
            checked(&example.spec, &files);
        }
    }
}

#[test]
fn examples_without_one_character_compile_to_diagnostics() {
    for example in examples() {
        let whole = example.files[&example.spec].clone();
        let mut files = example.files.clone();
        let places: Vec<(usize, char)> = whole.char_indices().collect();
        for (at, gone) in spread(places.len(), SAMPLES).map(|index| places[index]) {
            let text = [&whole[..at], &whole[at + gone.len_utf8()..]].concat();
            files.insert(example.spec.clone(), text);
            checked(&example.spec, &files);
        }
    }
}

#[test]
fn prompts_without_one_character_compile_to_diagnostics() {
    for example in examples() {
        let folder = example.spec.rsplit_once('/').map_or("", |(folder, _)| folder);
        let prompts = example.files.keys().filter(|path| path.starts_with(folder) && path.ends_with(".md"));
        for prompt in prompts {
            let whole = &example.files[prompt];
            let mut files = example.files.clone();
            for (at, gone) in whole.char_indices() {
                files.insert(prompt.clone(), [&whole[..at], &whole[at + gone.len_utf8()..]].concat());
                checked(&example.spec, &files);
            }
        }
    }
}

#[test]
fn the_same_example_gives_the_same() {
    for example in examples() {
        let first = told(&checked(&example.spec, &example.files));
        for _ in 0..20 {
            assert_eq!(told(&checked(&example.spec, &example.files)), first);
        }
    }
}

/// Pieces that specs are made of, and some that they should not be.
const PIECES: &[&str] = &[
    "workflow w",
    "param p",
    " type=int",
    " default=",
    "secret s env=S",
    "provider x",
    "{ exec cat }",
    "agent a provider=x",
    "pipeline p",
    " {",
    "}",
    "\n",
    ";",
    "task a",
    "task b",
    "task a-b",
    "run cat",
    "prompt",
    " \"",
    "\"",
    " \"\"\"\n",
    "\n\"\"\"",
    "#\"",
    "\"#",
    "depends-on a",
    " when=always",
    "when \"",
    "until \"",
    "status.a == 'failed'",
    "output.b",
    "<<output:a>>",
    "<<previous:b",
    "<<include:x>>",
    "<<",
    ">>",
    "{{ output.a }}",
    "{{",
    "}}",
    "{% if output.a %}",
    "{% endif %}",
    "{#",
    "{{output:a}}",
    " | tail:3",
    "| default:\"x\"",
    "value { f \"<<output:a>>\" }",
    "iterations 2",
    "stdin \"<<output:a.f>>\"",
    "allow SW103 reason=\"x\"",
    "// swarmc: allow(SW202) why\n",
    "/-",
    "/*",
    "*/",
    "\\",
    "\u{0}",
    "é",
    "\u{202e}",
    "🦀",
    "true",
    "20m",
    "=",
    "(t)",
    "input i from=a",
    "stop s { when \"iteration > 1\" }",
    "on-failure skip",
    "join any",
    "retry 2",
];

proptest! {
    #[test]
    fn heaps_of_pieces_compile_to_diagnostics(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        let text = pieces.join(" ");
        let files = BTreeMap::from([("spec.kdl".to_owned(), text.clone()), ("x.md".to_owned(), text)]);
        let first = told(&checked("spec.kdl", &files));
        prop_assert_eq!(told(&checked("spec.kdl", &files)), first);
    }

    #[test]
    fn any_text_compiles_to_diagnostics(text in any::<String>()) {
        let files = BTreeMap::from([("spec.kdl".to_owned(), text)]);
        checked("spec.kdl", &files);
    }
}
