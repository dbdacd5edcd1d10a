//! `--reuse`, `--from` and `--until`: what a run takes from earlier ones, which of its steps run, and what `plan --reuse`
//! says of that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use miette::{IntoDiagnostic, miette};
use similar::{ChangeTag, TextDiff};
use swarmc_compiler::Settings;
use swarmc_plan::{Body, Pipeline, Plan};
use swarmc_runtime::{Fate, Home, Options, PlannedStep, Reuse, ReuseFrom, StepId, Usage, plan_reuse};
use swarmc_view::{describe_saving, did_you_mean, format_count, make_printable};

use crate::exit::Exit;
use crate::home::find_home;
use crate::load::{load_with, select_pipeline};
use crate::run;
use crate::terminal::{self, Paint, Stream};

/// The lines of a difference that are shown for one step.
const SHOWN: usize = 40;

/// Refuses reuse in a run that is recorded or a replay: both are made of answers, and a reused result has none.
pub(crate) fn refuse_recording(args: &crate::args::Run) -> miette::Result<()> {
    let flag = match (&args.reuse, &args.from) {
        (Some(_), _) => "--reuse",
        (None, Some(_)) => "--from",
        (None, None) => return Ok(()),
    };
    if args.record.is_some() {
        miette::bail!(
            help = format!("to record the whole run, leave out `{flag}`; to reuse results, leave out `--record`"),
            "`{flag}` cannot be used with `--record`: a recording needs every answer, and a result that is reused has none"
        );
    }
    if args.replay.is_some() {
        miette::bail!(
            help = format!("leave out `{flag}`"),
            "`{flag}` cannot be used with `--replay`: a replay takes every answer from its recording"
        );
    }
    Ok(())
}

/// Reads the value of `--reuse`: `any`, `last`, or a run of this home.
pub(crate) fn parse_reuse(home: &Home, from: &str) -> miette::Result<Reuse> {
    let from = match from {
        "any" => ReuseFrom::Any,
        "last" => ReuseFrom::Last,
        // `run --reuse SPEC`: the flag took the spec.
        spec if Path::new(spec).exists() && home.find(spec).is_err() => {
            return Err(miette!(
                help = format!("write it before the flag: `swarmc run {spec} --reuse`"),
                "`--reuse` takes a run, and `{spec}` is none"
            ));
        }
        run => ReuseFrom::Run(home.find(run).into_diagnostic()?.id),
    };
    Ok(Reuse { from, anew: Vec::new() })
}

/// The plan as far as `--until` lets it run.
pub(crate) fn cut_plan(plan: Plan, pipeline: Option<&str>, until: Option<&str>) -> miette::Result<Plan> {
    let Some(until) = until else { return Ok(plan) };
    let pipeline = select_pipeline(&plan, pipeline)?.name.clone();
    check_step(select_pipeline(&plan, Some(&pipeline))?, until, "until")?;
    Ok(plan.with_steps_until(&pipeline, until))
}

/// Sets the steps that `--from` lets run in any case.
pub(crate) fn set_anew(reuse: Option<Reuse>, pipeline: &Pipeline, from: Option<&str>) -> miette::Result<Option<Reuse>> {
    let Some(from) = from else { return Ok(reuse) };
    check_step(pipeline, from, "from")?;
    let anew = pipeline.dependents_of(from).into_iter().collect();
    // `--from` alone takes the other results from whichever run has them.
    Ok(Some(Reuse { anew, ..reuse.unwrap_or(Reuse::ANY) }))
}

fn check_step(pipeline: &Pipeline, name: &str, flag: &str) -> miette::Result<()> {
    if pipeline.all_steps().any(|step| step.name == name) {
        return Ok(());
    }
    let help = did_you_mean(name, pipeline.all_steps().map(|step| step.name.as_str()));
    Err(miette!(help = help, "pipeline `{}` has no step `{name}` for `--{flag}`", pipeline.name))
}

/// Refuses a run with `--from` in which another step would run.
pub(crate) fn check_rest(
    home: &Home,
    (plan, pipeline): (&Plan, &Pipeline),
    options: &Options,
    from: &str,
) -> miette::Result<()> {
    let anew: BTreeSet<&str> = options.reuse.iter().flat_map(|reuse| &reuse.anew).map(String::as_str).collect();
    let asks = |name: &str| pipeline.all_steps().any(|step| step.name == name && matches!(step.body, Body::Gate(_)));
    let steps = plan_reuse(home, plan, options.clone()).into_diagnostic()?;
    let refused = steps.iter().filter_map(|PlannedStep { step, fate }| match fate {
        // A person may be asked again.
        Fate::Runs { reason, .. } if !is_anew(step, &anew) && !asks(&step.name) => {
            Some(format!("`{}` would run: {reason}", step.label()))
        }
        _ => None,
    });
    let mut refused: Vec<String> = refused.collect();
    // Rounds say the same.
    refused.dedup();
    match refused.first() {
        None => Ok(()),
        Some(_) => Err(miette!(
            help = "run without `--from`, or from an earlier step",
            "`--from {from}` takes the results of all other steps from an earlier run, but\n  {}",
            refused.join("\n  ")
        )),
    }
}

/// Whether a step, or what it is inside of, runs in any case.
fn is_anew(step: &StepId, anew: &BTreeSet<&str>) -> bool {
    let outermost = step.within.as_deref().and_then(|within| within.split(['/', '[', '.', '~']).next());
    anew.contains(&*step.name) || outermost.is_some_and(|name| anew.contains(name))
}

/// `swarmc plan --reuse`.
pub(crate) fn show_plan(args: &crate::args::Plan, from: &str) -> miette::Result<Exit> {
    let settings = Settings { providers: args.provider.clone(), ..Settings::default() };
    let Some(loaded) = load_with(&args.spec, &settings)? else { return Ok(Exit::Spec) };
    let home = find_home()?;
    let plan = loaded.plan.with_swarms();
    let pipeline = select_pipeline(&plan, args.pipeline.as_deref())?;
    let given = (args.param.as_slice(), args.params.as_deref());
    let options = Options {
        pipeline: Some(pipeline.name.clone()),
        params: run::build_params(given, &plan, pipeline, &loaded.workspace, BTreeMap::new())?,
        stdin: run::read_stdin(&plan, pipeline)?,
        workspace: loaded.workspace.clone(),
        environment: run::current_environment(&home),
        reuse: Some(parse_reuse(&home, from)?),
        ..Options::default()
    };
    let steps = plan_reuse(&home, &plan, options).into_diagnostic()?;
    let repeats = pipeline.iteration.max > 1;
    terminal::print(render_steps(&steps, repeats, Stream::Out.paint()))?;
    Ok(Exit::Done)
}

/// What would become of each step, and what that saves.
fn render_steps(steps: &[PlannedStep], repeats: bool, paint: Paint) -> String {
    let mut out = String::new();
    let name = |step: &StepId| match repeats || step.iteration > 1 {
        true => format!("{} #{}", step.label(), step.iteration),
        false => step.label(),
    };
    let width = steps.iter().map(|planned| name(&planned.step).chars().count()).max().unwrap_or(0);
    let (mut reused, mut saved) = (0_u64, Vec::<Usage>::new());
    for PlannedStep { step, fate } in steps {
        let (word, more) = match fate {
            Fate::Reused { run, usage } => {
                reused += 1;
                saved.extend(usage);
                (paint.green("reused"), format!("from {run}"))
            }
            Fate::Runs { reason, .. } => (paint.yellow("runs"), format!("because {}", make_printable(reason))),
            Fate::Depends { on } => (paint.dim("depends"), format!("on `{on}`, whose result may change")),
        };
        let _ = writeln!(out, "{:<width$}  {word} {more}", name(step));
        if let Fate::Runs { prompts: Some((before, now)), .. } = fate {
            write_difference(&mut out, before, now, paint);
        }
    }
    let of_all = format_count(steps.len() as u64, "step");
    let saving = describe_saving(&saved);
    let saving = if saving.is_empty() { String::new() } else { format!(", which saves {saving}") };
    let _ = writeln!(out, "\n{reused} of {of_all} reused{saving}");
    out
}

/// The lines of a prompt that changed, with one around them.
fn write_difference(out: &mut String, before: &str, now: &str, paint: Paint) {
    let diff = TextDiff::from_lines(before, now);
    let groups = diff.grouped_ops(1);
    let changes = groups.iter().flatten().flat_map(|op| diff.iter_changes(op));
    let lines: Vec<String> = changes
        .map(|change| {
            let line = make_printable(change.value().trim_end_matches('\n')).into_owned();
            match change.tag() {
                ChangeTag::Delete => paint.red(&format!("- {line}")),
                ChangeTag::Insert => paint.green(&format!("+ {line}")),
                ChangeTag::Equal => paint.dim(&format!("  {line}")),
            }
        })
        .collect();
    for line in lines.iter().take(SHOWN) {
        let _ = writeln!(out, "    {line}");
    }
    if lines.len() > SHOWN {
        let _ = writeln!(out, "    … and {} more", format_count((lines.len() - SHOWN) as u64, "line"));
    }
}
