//! `swarmc plan`: what a run would do, for people; or the plan itself, for `swarmc run` and other programs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::path::Path;

use miette::miette;
use swarmc_compiler::{Settings, Turn};
use swarmc_plan::{Body, EnvValue, Need, Param, Pipeline, Plan, Step, Template, When};
use swarmc_view::{describe_step, format_command, format_count};

use crate::bounds;
use crate::compare;
use crate::exit::Exit;
use crate::load::{load_with, select_pipeline};
use crate::reuse;
use crate::stale;
use crate::swarm;
use crate::terminal::{self, Paint, Stream};

pub(crate) fn exec(args: &crate::args::Plan) -> miette::Result<Exit> {
    if let Some(plan) = &args.check {
        return stale::exec(&args.spec, plan);
    }
    if let Some(old) = &args.diff {
        return compare::exec(&args.spec, old, args.exit_code);
    }
    if let Some(from) = &args.reuse {
        return reuse::show_plan(args, from);
    }
    let settings = Settings { count_tokens: true, providers: args.provider.clone(), ..Settings::default() };
    let Some(loaded) = load_with(&args.spec, &settings)? else { return Ok(Exit::Spec) };
    // A swarm may be named as well as a pipeline.
    let swarm = args.pipeline.as_deref().and_then(|name| loaded.plan.swarm(name));
    let named = args.pipeline.as_deref().filter(|_| swarm.is_none());
    let chosen = named.map(|name| select_pipeline(&loaded.plan, Some(name))).transpose()?;
    match &args.output {
        Some(file) if file == Path::new("-") => terminal::print(swarmc_plan::write_plan(&loaded.plan))?,
        Some(file) => {
            write_file(file, &swarmc_plan::write_plan(&loaded.plan))?;
            terminal::eprint(format!("wrote `{}`\n", file.display()));
        }
        None => {
            let name = chosen.map(|pipeline| pipeline.name.as_str()).or(swarm.map(|swarm| swarm.name.as_str()));
            let out = render_overview(&loaded.plan, name, Stream::Out.paint());
            terminal::print(out)?;
        }
    }
    Ok(Exit::Done)
}

/// What a run would do, in words: all pipelines and swarms, or the one of this name.
pub(crate) fn render_overview(plan: &Plan, name: Option<&str>, paint: Paint) -> String {
    let mut out = String::new();
    write_head(&mut out, plan, paint);
    for pipeline in plan.pipelines.iter().filter(|pipeline| name.is_none_or(|name| name == pipeline.name)) {
        write_pipeline(&mut out, plan, pipeline, paint);
    }
    for swarm in plan.swarms.iter().filter(|swarm| name.is_none_or(|name| name == swarm.name)) {
        swarm::write_swarm(&mut out, plan, swarm, paint);
    }
    out.push_str(&bounds::render_tables(plan, name, paint));
    out
}

/// Writes a file as a whole, or leaves the old one: a reader never sees half a plan.
pub(crate) fn write_file(file: &Path, text: &str) -> miette::Result<()> {
    let failed = |error: std::io::Error| miette!("cannot write `{}`: {error}", file.display());
    if !file.is_file() && file.exists() {
        // A pipe or a device, such as `/dev/stdout`, has no other file to be replaced by.
        return std::fs::write(file, text).map_err(failed);
    }
    let mut name = file.file_name().ok_or_else(|| miette!("`{}` is not a file", file.display()))?.to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = file.with_file_name(name);
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, file)).map_err(|error| {
        let _ = std::fs::remove_file(&new);
        failed(error)
    })
}

fn write_head(out: &mut String, plan: &Plan, paint: Paint) {
    let _ = write!(out, "workflow {}", paint.bold(&plan.workflow));
    match &plan.description {
        Some(description) => _ = writeln!(out, ": {description}"),
        None => out.push('\n'),
    }
    write_params(out, &plan.params);
    for secret in &plan.secrets {
        let _ = writeln!(out, "  secret {} from the variable {}", secret.name, secret.env);
    }
}

fn write_params(out: &mut String, params: &[Param]) {
    for param in params {
        let kind = format!("{:?}", param.kind).to_lowercase();
        let given = match (&param.default, param.optional) {
            (Some(default), _) => format!("default `{default}`"),
            (None, true) => "optional".to_owned(),
            (None, false) => "required".to_owned(),
        };
        let variable = param.env.as_ref().map(|env| format!("from `{env}`, ")).unwrap_or_default();
        let _ = writeln!(out, "  param {} ({kind}, {variable}{given})", param.name);
    }
}

fn write_pipeline(out: &mut String, plan: &Plan, pipeline: &Pipeline, paint: Paint) {
    let default = if pipeline.name == plan.default { " (default)" } else { "" };
    let _ = writeln!(out, "\npipeline {}{default}: {}", paint.bold(&pipeline.name), describe_shape(pipeline));
    write_params(out, &pipeline.params);
    let listing = Listing { plan, turns: bounds::turn_bounds(plan, pipeline), paint };
    listing.write_steps(out, &pipeline.steps, 2);
    if !pipeline.result.is_empty() {
        let _ = writeln!(out, "  result: {}", pipeline.result.join(", else "));
    }
}

/// The steps of a pipeline, those of loops below their loop.
struct Listing<'p> {
    plan: &'p Plan,
    turns: HashMap<&'p str, Turn>,
    paint: Paint,
}

impl Listing<'_> {
    fn write_steps(&self, out: &mut String, steps: &[Step], indent: usize) {
        let order = order_steps(steps);
        let width = steps.iter().map(|step| step.name.len()).max().unwrap_or(0);
        let digits = order.len().to_string().len();
        for (index, step) in order.iter().enumerate() {
            let name = self.paint.bold(&format!("{:<width$}", step.name));
            let _ = writeln!(out, "{:indent$}{:>digits$}  {name}  {}", "", index + 1, describe_step(self.plan, step));
            let further = indent + digits + 4;
            let turn = self.turns.get(step.name.as_str()).map(bounds::describe_turn);
            for line in step_details(step).into_iter().chain(turn) {
                let _ = writeln!(out, "{:further$}{}", "", self.paint.dim(&line));
            }
            self.write_steps(out, step.body.loop_steps(), further);
        }
    }
}

/// Rounds, instances and how much runs at once.
fn describe_shape(pipeline: &Pipeline) -> String {
    let mut parts = vec![format_count(pipeline.all_steps().count() as u64, "step")];
    if pipeline.iteration.max > 1 {
        let mut rounds = format!("at most {} rounds", pipeline.iteration.max);
        for (index, until) in pipeline.iteration.until.iter().enumerate() {
            let _ = write!(rounds, "{} `{}`", if index == 0 { " until" } else { " or" }, until.source.trim());
        }
        parts.push(rounds);
    }
    if pipeline.parallelism > 1 {
        parts.push(format!("{} instances", pipeline.parallelism));
    }
    if let Some(concurrency) = pipeline.concurrency {
        parts.push(format!("{concurrency} at once"));
    }
    if pipeline.fail_fast {
        parts.push("stops at the first failure".to_owned());
    }
    parts.join(", ")
}

/// The steps in an order in which they can run: each after its needs, else as declared.
fn order_steps(steps: &[Step]) -> Vec<&Step> {
    let index: BTreeMap<&str, usize> =
        steps.iter().enumerate().map(|(index, step)| (step.name.as_str(), index)).collect();
    let mut dependants = vec![Vec::new(); steps.len()];
    let mut open = vec![0_usize; steps.len()];
    for (position, step) in steps.iter().enumerate() {
        for need in step.needs.iter().filter_map(|need| index.get(need.step.as_str())) {
            dependants[*need].push(position);
            open[position] += 1;
        }
    }
    let mut ready: BTreeSet<usize> = (0..open.len()).filter(|&position| open[position] == 0).collect();
    let mut order = Vec::new();
    // Reaches all steps: a plan whose steps wait for each other in a circle is not valid.
    while let Some(position) = ready.pop_first() {
        order.push(&steps[position]);
        for &dependant in &dependants[position] {
            open[dependant] -= 1;
            if open[dependant] == 0 {
                ready.insert(dependant);
            }
        }
    }
    order
}

/// What a step waits for and why, its condition, its checks.
fn step_details(step: &Step) -> Vec<String> {
    let alike = |a: &Need, b: &Need| {
        let place = |need: &Need| (need.when, need.declared, need.origin.line);
        place(a) == place(b) && a.origin.file == b.origin.file
    };
    let mut lines: Vec<String> = step.needs.chunk_by(alike).map(describe_needs).collect();
    match step.join {
        swarmc_plan::Join::All => {}
        swarmc_plan::Join::Any => lines.push("any of these is enough".to_owned()),
        swarmc_plan::Join::NoneFailed => lines.push("none of these may fail".to_owned()),
    }
    if let Some(when) = &step.when {
        lines.push(format!("only when `{}`", swarmc_view::make_printable(when.source.trim())));
    }
    if let Some(pool) = &step.pool {
        lines.push(format!("by workers of pool {pool}"));
    }
    for check in &step.checks {
        lines.push(format!("then check {}", format_command(check)));
    }
    if step.on_failure == swarmc_plan::OnFailure::Skip {
        lines.push("counts as skipped when it fails".to_owned());
    }
    lines
}

/// Needs of one kind that stand on one line.
fn describe_needs(needs: &[Need]) -> String {
    let need = &needs[0];
    let ended = match need.when {
        When::Success => "succeeded",
        When::Failure => "failed",
        When::Any => "succeeded or failed",
        When::Always => "ended in any way",
    };
    let why = if need.declared { "depends-on" } else { "read" };
    let steps = match needs.split_last() {
        Some((last, rest @ [_, ..])) => {
            let rest: Vec<&str> = rest.iter().map(|need| need.step.as_str()).collect();
            format!("{} and {}", rest.join(", "), last.step)
        }
        _ => need.step.clone(),
    };
    format!("after {steps} {ended} ({why} at {})", need.origin)
}

/// Every text of a pipeline that is rendered when it runs, those of its agents and providers included.
pub(crate) fn list_templates<'a>(plan: &'a Plan, pipeline: &'a Pipeline) -> Vec<&'a Template> {
    let mut found: Vec<&Template> = Vec::new();
    for step in pipeline.all_steps() {
        found.extend(step.stdin.as_ref());
        found.extend(step.body.templates());
        if let Body::Prompt(body) = &step.body {
            found.extend(plan.agent(&body.agent).and_then(|agent| agent.system.as_ref()));
        }
    }
    found.extend(list_environment(plan, pipeline).into_iter().filter_map(|value| match value {
        EnvValue::Set { value, .. } => Some(value),
        EnvValue::Pass(_) | EnvValue::Secret(_) => None,
    }));
    found
}

/// Every environment variable that processes of a pipeline are given.
pub(crate) fn list_environment<'a>(plan: &'a Plan, pipeline: &'a Pipeline) -> Vec<&'a EnvValue> {
    let mut found: Vec<&EnvValue> = pipeline.env.iter().collect();
    for step in pipeline.all_steps() {
        found.extend(&step.env);
        if let Body::Prompt(body) = &step.body {
            let provider = plan.agent(&body.agent).and_then(|agent| plan.provider(&agent.provider));
            found.extend(provider.iter().flat_map(|provider| &provider.env));
        }
    }
    found
}
