//! `swarmc test`: runs the tests of specs with fakes. It starts no agent and no program, so it costs nothing.

mod assertions;
mod fakes;
mod outcome;
mod report;
mod snapshot;
mod teams;

use std::collections::BTreeMap;
use std::path::PathBuf;

use miette::miette;
use swarmc_compiler::{Levels, Span, Test};
use swarmc_plan::Plan;
use swarmc_runtime::{Options, rehearse};
use swarmc_view::did_you_mean;

use crate::args;
use crate::change;
use crate::exit::Exit;
use crate::files::Workspace;
use crate::load::plan_text;
use crate::render::{Problems, count_line, display_sources};
use crate::terminal::{self, Stream};
use crate::{find, params};
use fakes::Fakes;
use outcome::TestOutcome;
use report::{Counts, Reporter};
use snapshot::Snapshots;

/// What is wrong with a test.
#[derive(Debug)]
struct Finding {
    /// Where the expectation or the fake stands.
    span: Span,
    /// What is wrong.
    message: String,
    /// What this place is.
    label: String,
    /// What really happened, in lines.
    notes: String,
    /// What to type.
    help: Option<String>,
}

/// How a test went.
struct Verdict {
    name: String,
    findings: Vec<Finding>,
    launches: u64,
    turns: u64,
}

/// Where the tests of a spec take place.
struct SpecUnderTest<'a> {
    plan: &'a Plan,
    workspace: &'a Workspace,
}

pub(crate) fn exec(args: &args::Test) -> miette::Result<Exit> {
    let specs = find::find_specs(&args.specs)?;
    let mut reporter = Reporter::new(args.format);
    let mut counts = Counts::default();
    let mut names = Vec::new();
    for spec in &specs {
        if plan_text(spec)?.is_some() {
            return Err(miette!(
                help = "name the spec that it was made from",
                "a plan has no tests: `{}`",
                spec.display()
            ));
        }
        let (workspace, name) = Workspace::discover(spec)?;
        let compilation = swarmc_compiler::compile(&name, &workspace);
        counts.specs += 1;
        let Some(plan) = &compilation.plan else {
            let problems = Problems::new(&compilation, &workspace, &Levels::default());
            terminal::eprint(problems.render_text(Stream::Err));
            terminal::eprint(format!("{}\n", count_line(problems.count_problems(), Stream::Err.paint())));
            counts.broken += 1;
            continue;
        };
        let chosen = |test: &&Test| args.filter.as_ref().is_none_or(|filter| test.name.contains(filter));
        names.extend(compilation.tests.iter().map(|test| test.name.clone()));
        let plan = &plan.clone().with_swarms();
        let scene = SpecUnderTest { plan, workspace: &workspace };
        let mut snapshots = Snapshots::new(&workspace, &name, args.update)?;
        let verdicts: Vec<Verdict> =
            compilation.tests.iter().filter(chosen).map(|test| scene.play_test(test, &mut snapshots)).collect();
        counts.count_verdicts(&verdicts);
        let (written, removed) = (snapshots.changes.len(), snapshots.stale.len());
        change::write_changes(&snapshots.changes)?;
        snapshots.remove_stale()?;
        counts.written += written;
        counts.removed += removed;
        reporter.add(&workspace.display_path(&name), &display_sources(&compilation.sources, &workspace), &verdicts)?;
    }
    if counts.passed + counts.failed == 0 && counts.broken == 0 {
        return Err(no_test_error(args.filter.as_deref(), &names, counts.specs));
    }
    reporter.finish(&counts)?;
    Ok(match (counts.broken, counts.failed) {
        (0, 0) => Exit::Done,
        (0, _) => Exit::Failed,
        _ => Exit::Spec,
    })
}

/// There is no test, or none of that name.
fn no_test_error(filter: Option<&str>, names: &[String], specs: usize) -> miette::Report {
    let specs = if specs == 1 { "the spec".to_owned() } else { format!("the {specs} specs") };
    match filter.filter(|_| !names.is_empty()) {
        Some(filter) => {
            let help = did_you_mean(filter, names.iter().map(String::as_str));
            miette!(help = help, "no test of {specs} has `{filter}` in its name")
        }
        None => {
            let help = "write one: `test NAME { fake STEP \"…\"; expect { status success } }`";
            miette!(help = help, "there is no test in {specs}")
        }
    }
}

impl SpecUnderTest<'_> {
    /// Rehearses a test and looks at what came of it.
    fn play_test(&self, test: &Test, snapshots: &mut Snapshots) -> Verdict {
        let mut verdict = Verdict { name: test.name.clone(), findings: Vec::new(), launches: 0, turns: 0 };
        let options = match self.build_options(test) {
            Ok(options) => options,
            Err(message) => {
                verdict.findings.push(at_name(test, message));
                return verdict;
            }
        };
        let mut cast = Fakes::new(self.plan, test);
        let rehearsal = match rehearse(self.plan, &options, &mut |turn| cast.answer_turn(turn)) {
            Ok(rehearsal) => rehearsal,
            Err(error) => {
                verdict.findings.push(at_name(test, error.to_string()));
                return verdict;
            }
        };
        (verdict.launches, verdict.turns) = (rehearsal.launches, rehearsal.turns);
        verdict.findings = cast.missing_fakes();
        // A run with a missing answer proves nothing.
        if verdict.findings.is_empty() {
            let story = TestOutcome::new(self.plan, test, &rehearsal, &cast);
            verdict.findings = assertions::check_expectations(&story, snapshots);
            verdict.findings.extend(cast.unused_fakes(&story));
        }
        snapshots.finish_test(&verdict.name, verdict.findings.is_empty());
        verdict
    }

    fn build_options(&self, test: &Test) -> Result<Options, String> {
        let pipeline = self.plan.pipeline(&test.pipeline);
        let pipeline = pipeline.ok_or_else(|| format!("the plan has no pipeline `{}`", test.pipeline))?;
        let root = &self.workspace.root;
        let declared = self.plan.params.iter().chain(&pipeline.params);
        let params = params::resolve_params(declared, &test.params, &self.plan.types, (root, root), |_| None);
        let params: BTreeMap<String, String> = params.map_err(|error| error.to_string())?;
        let workspace: PathBuf = root.clone();
        let stdin = test.stdin.as_ref().map(|text| text.clone().into_bytes());
        Ok(Options { pipeline: Some(test.pipeline.clone()), params, stdin, workspace, ..Options::default() })
    }
}

/// A finding about the test as a whole.
fn at_name(test: &Test, message: String) -> Finding {
    let label = "this test".to_owned();
    Finding { span: test.span, message, label, notes: String::new(), help: None }
}
