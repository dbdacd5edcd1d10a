//! How tests went: lines for people, one JSON document, or JUnit XML.

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use swarmc_compiler::Sources;
use swarmc_view::documents::{self, Failure, TestStatus, Tests, Version, encode};

use super::{Finding, Verdict};
use crate::args::TestFormat;
use crate::render::{Place, document_span, junit_report, render_finding};
use crate::terminal::{self, Paint, Stream};

/// How many tests did what.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) specs: usize,
    /// Specs with errors.
    pub(super) broken: usize,
    pub(super) passed: usize,
    pub(super) failed: usize,
    /// Snapshots.
    pub(super) written: usize,
    pub(super) removed: usize,
}

impl Counts {
    pub(super) fn count_verdicts(&mut self, verdicts: &[Verdict]) {
        let failed = verdicts.iter().filter(|verdict| !verdict.findings.is_empty()).count();
        self.failed += failed;
        self.passed += verdicts.len() - failed;
    }

    /// `12 tests passed in 3 specs`.
    fn summary_line(&self, paint: Paint) -> String {
        let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let total = self.passed + self.failed;
        let mut line = match self.failed {
            _ if total == 0 => "no test took place".to_owned(),
            0 => paint.green(&format!("{} passed", plural(total, "test"))),
            failed => paint.red(&format!("{failed} of {} failed", plural(total, "test"))),
        };
        line += &format!(" in {}", plural(self.specs, "spec"));
        if self.broken > 0 {
            line += &format!(", {}", paint.red(&format!("{} with errors", plural(self.broken, "spec"))));
        }
        for (count, what) in [(self.written, "written"), (self.removed, "removed")] {
            if count > 0 {
                line += &format!(", {} {what}", plural(count, "snapshot"));
            }
        }
        line + "\n"
    }
}

/// Verdicts on their way to standard output.
pub(super) enum Reporter {
    Text(Paint),
    Json(Vec<documents::TestCase>),
    Junit(Vec<TestSuite>),
}

impl Reporter {
    pub(super) fn new(format: TestFormat) -> Reporter {
        match format {
            TestFormat::Text => Reporter::Text(Stream::Out.paint()),
            TestFormat::Json => Reporter::Json(Vec::new()),
            TestFormat::Junit => Reporter::Junit(Vec::new()),
        }
    }

    /// Takes the verdicts of a spec.
    pub(super) fn add(&mut self, spec: &str, sources: &Sources, verdicts: &[Verdict]) -> miette::Result<()> {
        match self {
            Reporter::Text(paint) => {
                for verdict in verdicts {
                    let word = match verdict.findings.is_empty() {
                        true => paint.green("passed"),
                        false => paint.red("FAILED"),
                    };
                    let mut text = format!("{word}  {} {}\n", paint.dim(spec), verdict.name);
                    for finding in &verdict.findings {
                        text.push('\n');
                        text.push_str(&format_finding(sources, finding, *paint));
                    }
                    if !verdict.findings.is_empty() {
                        text.push('\n');
                    }
                    terminal::print(text)?;
                }
            }
            Reporter::Json(tests) => tests.extend(verdicts.iter().map(|verdict| document_case(spec, sources, verdict))),
            Reporter::Junit(suites) if !verdicts.is_empty() => {
                let mut suite = TestSuite::new(spec);
                suite.add_test_cases(verdicts.iter().map(|verdict| build_case(spec, sources, verdict)));
                suites.push(suite);
            }
            Reporter::Junit(_) => {}
        }
        Ok(())
    }

    /// Prints what has to stand as one document, and how many passed.
    pub(super) fn finish(self, counts: &Counts) -> miette::Result<()> {
        let document = match self {
            Reporter::Text(paint) => return terminal::print(counts.summary_line(paint)),
            Reporter::Json(tests) => {
                let (passed, failed, specs_with_errors) = (counts.passed, counts.failed, counts.broken);
                encode(&Tests { version: Version, passed, failed, specs_with_errors, tests }) + "\n"
            }
            Reporter::Junit(suites) => junit_report("swarmc test", suites)?,
        };
        terminal::print(document)?;
        terminal::eprint(counts.summary_line(Stream::Err.paint()));
        Ok(())
    }
}

fn format_finding(sources: &Sources, finding: &Finding, paint: Paint) -> String {
    let Finding { span, message, label, notes, help } = finding;
    self::render_finding(sources, Place { span: *span, message, label, notes, help: help.as_deref() }, paint)
}

fn document_case(spec: &str, sources: &Sources, verdict: &Verdict) -> documents::TestCase {
    let failure = |finding: &Finding| Failure {
        message: finding.message.clone(),
        at: document_span(sources, finding.span),
        label: finding.label.clone(),
        details: finding.notes.clone(),
        help: finding.help.clone(),
    };
    documents::TestCase {
        spec: spec.to_owned(),
        test: verdict.name.clone(),
        status: if verdict.findings.is_empty() { TestStatus::Passed } else { TestStatus::Failed },
        launches: verdict.launches,
        turns: verdict.turns,
        failures: verdict.findings.iter().map(failure).collect(),
    }
}

fn build_case(spec: &str, sources: &Sources, verdict: &Verdict) -> TestCase {
    let status = match verdict.findings.first() {
        None => TestCaseStatus::success(),
        Some(first) => {
            let text: Vec<String> =
                verdict.findings.iter().map(|finding| format_finding(sources, finding, Paint::NONE)).collect();
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type("expectation").set_message(first.message.clone()).set_description(text.join("\n"));
            status
        }
    };
    let mut case = TestCase::new(verdict.name.clone(), status);
    case.set_classname(spec);
    case
}
