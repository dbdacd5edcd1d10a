//! Specs of many tasks whose conditions hang together: what a check of them costs, counted and not timed, and what it says
//! where they are too large to follow. `benches/large.rs` takes the time of the same.

mod shapes;

use swarmc_compiler::{Code, Compilation, Profile, Settings, Severity, Stats, compile_with_stats};

use shapes::{Workspace, shapes};

fn check(files: &Workspace) -> (Compilation, Stats) {
    compile_with_stats("flow.kdl", files, &Settings::new(Profile::Audit))
}

/// What a check may look at of conditions: so many nodes, and some for each step.
fn most(steps: usize) -> usize {
    150_000 + 300 * steps
}

#[test]
fn conditions_of_any_shape_cost_no_more_than_their_tasks_are_worth() {
    for (name, files) in shapes(600) {
        let (compilation, stats) = check(&files);
        let steps = stats.pipelines.iter().map(|pipeline| pipeline.steps.all).sum::<usize>().max(600);
        assert!(stats.conditions <= most(steps), "{name}: {} for {steps} steps", stats.conditions);
        let wrong = compilation.diagnostics.iter().filter(|found| found.code == Code::Syntax).count();
        assert_eq!(wrong, 0, "{name} is what it is meant to be: {:?}", compilation.diagnostics.first());
    }
}

#[test]
fn an_error_behind_thousands_of_warnings_is_kept_and_what_is_left_out_is_counted() {
    let never: String =
        (0..1100).map(|task| format!("    task n{task} {{ depends-on c when=failure; value x }}\n")).collect();
    let spec = format!(
        "provider p {{ exec cat }}\nagent w provider=p {{ budget calls=1 }}\npipeline main {{\n    task c {{ value x }}\n\
         {never}    task a agent=w {{ prompt go }}\n    task b agent=w {{ depends-on a; prompt go }}\n}}\n"
    );
    let (compilation, _) = check(&Workspace::from([("flow.kdl".to_owned(), spec)]));
    // That the budget does not suffice is found last, of the plan.
    let errors: Vec<Code> = compilation
        .diagnostics
        .iter()
        .filter(|found| found.severity() == Severity::Error)
        .map(|found| found.code)
        .collect();
    assert_eq!((errors, compilation.plan.is_none()), (vec![Code::BudgetExceeded], true));
    let warnings = compilation.diagnostics.iter().filter(|found| found.severity() == Severity::Warning).count();
    assert_eq!((warnings, compilation.left_out.get(&Code::NeverRuns)), (1000, Some(&100)));
}

/// What a check of the same and some more tasks says with a code.
fn said(files: &Workspace, tasks: &str, code: Code) -> Vec<(Severity, String)> {
    let mut files = files.clone();
    let spec = files.get_mut("flow.kdl").expect("the spec is there");
    let end = spec.rfind('}').expect("a pipeline ends");
    spec.insert_str(end, tasks);
    let (compilation, _) = check(&files);
    let found = compilation.diagnostics.iter().filter(|found| found.code == code);
    found.map(|found| (found.severity(), found.message.clone())).collect()
}

#[test]
fn long_chains_of_conditions_are_followed_to_their_end() {
    let tasks =
        "    task never { depends-on t99; when \"not output.t98.approved and not output.r99.approved\"; run make x }
    task runs { depends-on t99; when \"not output.t98.approved\"; run make x }\n";
    for files in [shapes::chains(200), shapes::chains_of_reviews(200)] {
        let never = said(&files, tasks, Code::NeverRuns);
        assert_eq!(never, [(Severity::Warning, "step `never` never runs".to_owned())]);
    }
    assert_eq!(
        check(&shapes::chains(200)).0.diagnostics.iter().filter(|found| found.severity() == Severity::Error).count(),
        0
    );
}

#[test]
fn what_is_too_large_to_follow_is_said_and_is_no_error() {
    let files = shapes::grid(900);
    let read = "    task last { depends-on t899 when=always; prompt \"<<output:t899>> <<output:t898>>\" }\n";
    let missing = said(&files, read, Code::OutputMayBeSkipped);
    let message = "too many conditions lead to `last` to tell whether the output of `t899` is there".to_owned();
    assert_eq!(missing, [(Severity::Warning, message)]);
    let write = "    task one { depends-on t899; run make x; writes \"x.md\" }
    task two { depends-on t898; run make x; writes \"x.md\" }\n";
    let message = "`one` and `two` may run at once, and write the same files".to_owned();
    assert_eq!(said(&files, write, Code::ParallelWriters), [(Severity::Warning, message)]);
}

#[test]
fn many_prompts_are_checked_with_their_tasks() {
    let (compilation, stats) = check(&shapes::prompts(300));
    assert_eq!(stats.files, 301);
    assert!(compilation.plan.is_some(), "{:?}", compilation.diagnostics.first());
}
