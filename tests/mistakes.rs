//! Mistakes of beginners, most of them habits from other tools: each is reported, with what is wrong, where, and what to
//! type. The fixtures of `tests/cases/mistakes` hold the messages; here they are graded.

use std::fmt::Write as _;
use std::path::Path;

use crate::cases::{Fixture, fixtures};

/// What a report of a mistake is worth at least, of 5.
const PASS: usize = 4;

#[test]
fn every_mistake_is_reported_with_what_to_type() {
    let paths = fixtures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/mistakes"));
    assert!(paths.len() >= 60, "{} mistakes", paths.len());
    let mut weak = String::new();
    for path in &paths {
        let fixture = Fixture::read(&std::fs::read_to_string(path).expect("a fixture is UTF-8 text"));
        let reports = fixture.check(&fixture.texts()).diagnostics;
        let Some(first) = reports.first() else {
            let _ = writeln!(weak, "{}: not reported", path.display());
            continue;
        };
        let help = first.help.as_deref().unwrap_or_default();
        // One for each: it is said, at a place that is not the whole text, once, with a help, and with what to type.
        let grades = [
            !first.message.is_empty(),
            first.labels.first().is_some_and(|label| label.span.start < label.span.end),
            reports.len() == 1,
            !help.is_empty(),
            help.contains('`'),
        ];
        let grade = grades.into_iter().filter(|&holds| holds).count();
        if grade < PASS {
            let _ = writeln!(weak, "{}: {grade} of 5 {grades:?}", path.display());
        }
    }
    assert!(weak.is_empty(), "{weak}");
}
