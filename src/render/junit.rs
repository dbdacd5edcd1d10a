//! Problems as JUnit XML, which every CI server reads: a suite for each spec, a failed case for each problem.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use swarmc_compiler::Severity;

use super::{Problems, format_short, render_plain};
use crate::terminal::Paint;

/// A report of the suites of all specs.
pub(crate) fn build_report(name: &str, suites: Vec<TestSuite>) -> miette::Result<String> {
    let mut report = Report::new(name);
    report.add_test_suites(suites);
    report.to_string().map_err(|error| miette::miette!("cannot write the report: {error}"))
}

impl Problems {
    /// What is wrong in one spec; a spec without problems has one case that passes.
    pub(crate) fn render_junit(&self, spec: &str) -> TestSuite {
        let mut suite = TestSuite::new(spec);
        for (severity, diagnostic) in &self.list {
            // A warning is no failure: it stands in the output of a case that passes.
            let mut case = match severity {
                Severity::Error => {
                    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    status
                        .set_type(diagnostic.code.name())
                        .set_message(diagnostic.message.clone())
                        .set_description(render_plain(&self.sources, *severity, diagnostic, Paint::NONE));
                    TestCase::new(diagnostic.code.id(), status)
                }
                Severity::Warning | Severity::Hint => {
                    let mut case = TestCase::new(diagnostic.code.id(), TestCaseStatus::success());
                    case.set_system_out(format_short(&self.sources, *severity, diagnostic));
                    case
                }
            };
            case.set_classname(spec);
            suite.add_test_case(case);
        }
        if self.list.is_empty() {
            let mut case = TestCase::new("check", TestCaseStatus::success());
            case.set_classname(spec);
            suite.add_test_case(case);
        }
        suite
    }
}
