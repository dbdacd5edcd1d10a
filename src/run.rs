//! `swarmc run` and `swarmc resume`: they check everything that they can check before they start any step.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::fd::IntoRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use miette::{IntoDiagnostic, WrapErr, miette};
use swarmc_compiler::Settings;
use swarmc_plan::{Agent, Body, DirectiveKind, EnvValue, Expression, Pipeline, Plan, Segment, Step, ToolServer, tools};
use swarmc_runtime::{
    Control, Home, Options, RetryRun, RunError, RunFolder, RunOutcome, RunStatus, adopt_orphans, hold_processes_with,
};
use swarmc_view::{Past, RunReport, did_you_mean};

use crate::args::{Resume, Run, Show};
use crate::display::Display;
use crate::exit::Exit;
use crate::find;
use crate::home::{find_home, find_run, read_past, read_report};
use crate::load::{load_with, select_pipeline};
use crate::plan::{list_environment, list_templates};
use crate::{approve, engine, params, replay, reuse, signals, summary, terminal, top};

/// The most that is read from standard input, in bytes.
const MAX_STDIN: u64 = 16 * 1024 * 1024;

pub(crate) fn run_pipeline(args: &Run) -> miette::Result<Exit> {
    if args.tui {
        if top::has_screen() {
            return start_on_screen(args.show.quiet);
        }
        terminal::eprint("note: without a terminal the run prints lines\n");
    }
    if args.id_file.is_some() {
        leave_session()?;
    }
    let settings = Settings { providers: args.provider.clone(), ..Settings::default() };
    let spec = args.spec.clone().map_or_else(find::find_only_spec, Ok)?;
    let Some(loaded) = load_with(&spec, &settings)? else { return Ok(Exit::Spec) };
    let home = find_home()?;
    let environment = current_environment(&home);
    let workspace = resolve_workspace(args, &loaded.workspace)?;
    // The scripts of a plan lie beside its spec, where a run in another workspace would not look.
    let plan = match workspace == loaded.workspace {
        true => loaded.plan.with_swarms(),
        false => loaded.plan.with_swarms().with_scripts_in(&loaded.workspace.to_string_lossy()),
    };
    reuse::refuse_recording(args)?;
    let plan = &reuse::cut_plan(plan, args.pipeline.as_deref(), args.until.as_deref())?;
    let replay = replay::open_replay(args, plan, &workspace, &environment)?;
    let pipeline = match &replay {
        Some(replay) => replay::recorded_pipeline(plan, &replay.recording)?,
        None => select_pipeline(plan, args.pipeline.as_deref())?,
    };
    let task = replay.as_ref().map_or(args.task.clone(), |replay| replay.recording.task().map(str::to_owned));
    if let Some(task) = &task {
        known_task(plan, pipeline, task)?;
    }
    let recorded = replay.as_ref().map(|replay| replay.params.clone()).unwrap_or_default();
    let given = (args.param.as_slice(), args.params.as_deref());
    let params = build_params(given, plan, pipeline, &workspace, recorded)?;
    let scope = scope_pipeline(pipeline, task.as_deref());
    // A replay starts nothing, so it needs no secrets, and its standard input is the recorded one.
    let engine = engine::connect(&args.engine)?;
    let stdin = match &replay {
        Some(replay) => replay.stdin.clone(),
        None => {
            if engine.is_none() {
                check_secrets(plan, &scope)?;
            }
            read_stdin(plan, &scope)?
        }
    };
    let reuse = args.reuse.as_deref().map(|from| reuse::parse_reuse(&home, from)).transpose()?;
    let options = Options {
        headless: detect_headless(args.headless),
        pipeline: Some(pipeline.name.clone()),
        task: task.clone(),
        params,
        stdin,
        workspace,
        environment,
        record: args.record.as_ref().map(std::path::absolute).transpose().into_diagnostic()?,
        replay: replay.map(|replay| replay.recording),
        reuse: reuse::set_anew(reuse, pipeline, args.from.as_deref())?,
    };
    if let Some(from) = &args.from {
        reuse::check_rest(&home, (plan, pipeline), &options, from)?;
    }
    let ledger = RunReport::new(plan, pipeline, task.as_deref());
    let display = Display::new(pipeline, ledger, args.show)
        .with_headless(options.headless || options.replay.is_some())
        .with_reuse(options.reuse.is_some())
        .with_id_file(args.id_file.clone());
    let commit = engine.as_ref().and_then(|_| engine::find_commit(&options.workspace));
    run_with_display(&home, pipeline, display, args.show, |control, display| match &engine {
        Some(engine) => {
            let watching = (control, display.observer());
            swarmc_runtime::run_on_engine((engine, &home), plan, options, commit, watching)
        }
        None => swarmc_runtime::start_run(&home, plan, options, control, display.observer()),
    })
}

pub(crate) fn resume_run(args: &Resume) -> miette::Result<Exit> {
    if args.detach {
        leave_session()?;
    }
    let retries = args.retry_failed || !args.retry.is_empty() || args.with.is_some();
    let home = find_home()?;
    let is_open = |report: &RunReport| report.finished.is_none_or(|status| retries && status != RunStatus::Succeeded);
    // One that was killed before it had begun cannot be read, and has nothing to go on with.
    let read = OnceCell::new();
    let fits = |folder: &RunFolder| {
        let found = (!folder.is_running()).then(|| Past::read_report(folder).ok()).flatten();
        found.is_some_and(|found| is_open(&found.1) && read.set(found).is_ok())
    };
    let what = if retries { "has failed, or can be resumed" } else { "can be resumed" };
    let folder = find_run(&home, args.run.as_deref(), what, fits)?;
    let mended = match &args.with {
        None => None,
        Some(spec) => match load_with(spec, &Settings::default())? {
            Some(loaded) => Some(loaded.plan.with_swarms()),
            None => return Ok(Exit::Spec),
        },
    };
    let (past, report, folded) = match &mended {
        None => read.into_inner().map_or_else(|| read_report(&folder), Ok)?,
        Some(plan) => {
            let mut past = read_past(&folder)?.with_plan(plan.clone()).into_diagnostic()?;
            let report = past.build_report();
            // The runner reads them again, once it alone may write behind them.
            past.records = Vec::new();
            (past, report, 0)
        }
    };
    check_secrets(&past.plan, &scope_pipeline(past.pipeline(), past.task.as_deref()))?;
    let is_headless = detect_headless(args.headless);
    let display = Display::new(past.pipeline(), report, args.show).with_headless(is_headless).with_snapshot(folded);
    let retry = RetryRun { failed: args.retry_failed || args.with.is_some(), steps: args.retry.clone(), plan: mended };
    run_with_display(&home, past.pipeline(), display, args.show, |control, display| match retries {
        true => {
            let around = (current_environment(&home), is_headless);
            swarmc_runtime::retry_run(&home, &folder.id, &retry, around, control, display.observer())
        }
        false => swarmc_runtime::resume_run(
            &home,
            &folder.id,
            current_environment(&home),
            is_headless,
            control,
            display.observer(),
        ),
    })
}

/// Starts the same run in a process of its own, and shows it: the end of the screen is none of the run.
fn start_on_screen(is_quiet: bool) -> miette::Result<Exit> {
    let folder = tempfile::tempdir().into_diagnostic()?;
    let (id_file, log_path) = (folder.path().join("run.id"), folder.path().join("run.log"));
    let log = File::create(&log_path).into_diagnostic()?;
    let program = std::env::current_exe().into_diagnostic()?;
    // Directly behind `run`: what follows `--` is no option.
    let words = std::env::args_os().skip(2).filter(|word| word != "--tui");
    let mut command = Command::new(program);
    command.arg("run").arg("--id-file").arg(&id_file).args((!is_quiet).then_some("--quiet")).args(words);
    // A terminal is the screen's; what is piped in is the run's.
    let stdin = if std::io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() };
    command.stdin(stdin).stdout(log.try_clone().into_diagnostic()?).stderr(log);
    let mut child = command.spawn().into_diagnostic()?;
    loop {
        if let Ok(id) = std::fs::read_to_string(&id_file) {
            return top::show_run(find_home()?.find(&id).into_diagnostic()?);
        }
        // It may have written its id just before it ended.
        if let Some(status) = child.try_wait().into_diagnostic()?
            && !id_file.exists()
        {
            terminal::eprint(std::fs::read_to_string(&log_path).into_diagnostic()?);
            return Ok(Exit::from_code(status.code()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Goes on in a session of its own: the end of the program that started the run, and of its terminal, ends no run.
fn leave_session() -> miette::Result<()> {
    rustix::process::setsid().map(drop).into_diagnostic().wrap_err("cannot leave the session of this terminal")
}

/// Runs with a display and signals, and tells how it ended.
fn run_with_display(
    home: &Home,
    pipeline: &Pipeline,
    display: Display,
    show: Show,
    go: impl FnOnce(Control, &Display) -> Result<RunOutcome, RunError>,
) -> miette::Result<Exit> {
    // Before the first process starts: an orphan that went elsewhere could not be ended with the run.
    hold_processes_with(open_shim());
    adopt_orphans().into_diagnostic().wrap_err("cannot track the processes of a run")?;
    let control = Control::new();
    signals::watch_signals(control.clone(), display.clone())?;
    approve::listen_for_answers(control.clone(), display.clone());
    let outcome = go(control, &display);
    let ledger = display.finish();
    match outcome {
        Err(RunError::Diverged(divergence)) => replay::report_divergence(&divergence, show),
        outcome => summary::show_summary(home, pipeline, &ledger, outcome.into_diagnostic()?, show),
    }
}

/// The parameters that were given, those of the recording, and the defaults.
pub(crate) fn build_params(
    (flags, file): (&[(String, String)], Option<&Path>),
    plan: &Plan,
    pipeline: &Pipeline,
    workspace: &Path,
    mut recorded: BTreeMap<String, String>,
) -> miette::Result<BTreeMap<String, String>> {
    let current = std::env::current_dir().into_diagnostic()?;
    let given = params::collect_params(flags, file)?;
    let declared = || plan.params.iter().chain(&pipeline.params);
    // What was recorded passed all checks then, and the files that it may name need not be there now.
    recorded.retain(|name, _| !given.contains_key(name) && declared().any(|param| param.name == *name));
    let others = declared().filter(|param| !recorded.contains_key(&param.name));
    let mut params = params::resolve_params(others, &given, &plan.types, (&current, workspace), params::read_variable)?;
    params.append(&mut recorded);
    Ok(params)
}

fn known_task(plan: &Plan, pipeline: &Pipeline, task: &str) -> miette::Result<()> {
    if pipeline.all_steps().any(|step| step.name == task) {
        return Ok(());
    }
    let elsewhere = plan.pipelines.iter().find(|other| other.all_steps().any(|step| step.name == task));
    let help = match elsewhere {
        Some(other) => format!("it is in another one: add `--pipeline {}`", other.name),
        None => did_you_mean(task, pipeline.all_steps().map(|step| step.name.as_str())),
    };
    Err(miette!(help = help, "pipeline `{}` has no task `{task}`", pipeline.name))
}

/// The pipeline as far as it runs: with one task alone, nothing else needs to be there.
fn scope_pipeline(pipeline: &Pipeline, task: Option<&str>) -> Pipeline {
    let mut scope = pipeline.clone();
    if let Some(task) = task {
        scope.steps = pipeline.all_steps().filter(|step| step.name == task).cloned().collect();
        // A task alone runs once: no `until` is judged, so what one reads need not be there.
        scope.iteration.until.clear();
    }
    scope
}

/// Refuses a run whose processes would miss a secret.
fn check_secrets(plan: &Plan, pipeline: &Pipeline) -> miette::Result<()> {
    let missing = missing_secrets(plan, pipeline);
    match missing.first() {
        None => Ok(()),
        Some(_) => Err(miette!(help = "set it where you call swarmc", "{}", missing.join("\n  "))),
    }
}

/// The secrets that a pipeline reads and that are not there, in words.
pub(crate) fn missing_secrets(plan: &Plan, pipeline: &Pipeline) -> Vec<String> {
    let wanted: BTreeSet<&str> = reachable_pipelines(plan, pipeline)
        .into_iter()
        .flat_map(|pipeline| list_environment(plan, pipeline))
        .filter_map(|value| match value {
            EnvValue::Secret(variable) => Some(variable.as_str()),
            EnvValue::Pass(_) | EnvValue::Set { .. } => None,
        })
        .chain(reachable_pipelines(plan, pipeline).into_iter().flat_map(|pipeline| key_variables(plan, pipeline)))
        .collect();
    wanted
        .into_iter()
        .filter(|variable| !is_variable_set(variable))
        .map(|variable| match plan.secrets.iter().find(|secret| secret.env == variable) {
            Some(secret) => {
                format!("the variable {variable}, which holds secret `{}`, is empty or not set", secret.name)
            }
            None => format!("the variable {variable}, which holds a secret, is empty or not set"),
        })
        .collect()
}

/// Whether a variable of the environment holds something. CI systems set those of unknown secrets to nothing.
pub(crate) fn is_variable_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// The variables that hold the keys of the models that a pipeline asks, and the secrets of the servers of their tools.
fn key_variables<'a>(plan: &'a Plan, pipeline: &'a Pipeline) -> impl Iterator<Item = &'a str> {
    let of_agent = |agent: &'a Agent| {
        let connection = &plan.provider(&agent.provider)?.connection;
        if !connection.kind().is_model() {
            return None;
        }
        let of_server = |server: &'a ToolServer| {
            let given = server.env.iter().filter_map(|value| match value {
                EnvValue::Secret(variable) => Some(variable.as_str()),
                EnvValue::Pass(_) | EnvValue::Set { .. } => None,
            });
            given.chain(server.auth.as_deref())
        };
        Some(connection.key_variable().into_iter().chain(tools::agent_servers(plan, agent).flat_map(of_server)))
    };
    pipeline.all_steps().flat_map(|step| list_players(plan, step)).filter_map(of_agent).flatten()
}

/// The agents that take the turns of a step.
fn list_players<'a>(plan: &'a Plan, step: &'a Step) -> Vec<&'a Agent> {
    let names: Vec<&str> = match &step.body {
        Body::Prompt(body) => vec![&body.agent],
        Body::Swarm(call) => plan.swarm(&call.swarm).map_or_else(Vec::new, |swarm| {
            let members = swarm.members.iter().map(|member| &*member.agent);
            let lead = swarm.lead.iter().map(|lead| &*lead.agent);
            members.chain(lead).chain(swarm.synthesize.iter().map(|merge| &*merge.agent)).collect()
        }),
        _ => Vec::new(),
    };
    names.into_iter().filter_map(|name| plan.agent(name)).collect()
}

/// What is piped in, when the workflow reads it.
pub(crate) fn read_stdin(plan: &Plan, pipeline: &Pipeline) -> miette::Result<Option<Vec<u8>>> {
    if !reads_stdin(plan, pipeline) {
        return Ok(None);
    }
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        terminal::eprint("note: the workflow reads standard input, but nothing is piped in\n");
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // One byte more tells a text that is too long from one that just fits.
    stdin.lock().take(MAX_STDIN + 1).read_to_end(&mut bytes).map_err(|error| miette!("cannot read stdin: {error}"))?;
    match bytes.len() as u64 > MAX_STDIN {
        true => Err(miette!(help = "write it to a file, and read the file", "standard input is larger than 16 MiB")),
        false => Ok(Some(bytes)),
    }
}

/// The pipeline, and those that it calls, directly or through others.
fn reachable_pipelines<'a>(plan: &'a Plan, pipeline: &'a Pipeline) -> Vec<&'a Pipeline> {
    let mut reached = vec![pipeline];
    let mut known = BTreeSet::from([pipeline.name.as_str()]);
    let mut next = 0;
    while let Some(&pipeline) = reached.get(next) {
        let calls = pipeline.all_steps().filter_map(|step| match &step.body {
            Body::Call(call) => plan.pipeline(&call.pipeline),
            _ => None,
        });
        reached.extend(calls.filter(|called| known.insert(&called.name)));
        next += 1;
    }
    reached
}

fn reads_stdin(plan: &Plan, pipeline: &Pipeline) -> bool {
    reachable_pipelines(plan, pipeline).into_iter().any(|pipeline| says_stdin(plan, pipeline))
}

fn says_stdin(plan: &Plan, pipeline: &Pipeline) -> bool {
    let reads = |logic: &Expression| match &logic.reads {
        Some(reads) => reads.contains_key(&DirectiveKind::Stdin),
        // An expression without a list of what it reads may read everything: only its text can tell.
        None => logic.source.contains("stdin"),
    };
    let conditions = pipeline.all_steps().flat_map(|step| {
        let untils = match &step.body {
            Body::Loop(body) => body.iteration.until.as_slice(),
            _ => &[],
        };
        step.when.iter().chain(untils).chain(step.for_each.iter().map(|each| &each.list))
    });
    let conditions = conditions.chain(&pipeline.iteration.until);
    conditions.into_iter().any(reads)
        || list_templates(plan, pipeline).iter().flat_map(|template| &template.segments).any(|segment| match segment {
            Segment::Text(_) => false,
            Segment::Directive(directive) => directive.kind == DirectiveKind::Stdin,
            Segment::Logic(logic) => reads(logic),
        })
}

/// The program that holds processes: `swarmc-shim` beside this one, which takes a tenth of the memory; else this one.
pub(crate) fn open_shim() -> PathBuf {
    let beside =
        std::env::current_exe().ok().and_then(|program| File::open(program.with_file_name("swarmc-shim")).ok());
    match beside {
        // Open as long as this process lives: another version may take its place meanwhile.
        Some(file) => PathBuf::from(format!("/proc/self/fd/{}", file.into_raw_fd())),
        None => PathBuf::from("/proc/self/exe"),
    }
}

fn resolve_workspace(args: &Run, found: &Path) -> miette::Result<PathBuf> {
    match &args.workspace {
        None => Ok(found.to_owned()),
        Some(folder) => match folder.canonicalize() {
            Ok(folder) if folder.is_dir() => Ok(folder),
            Ok(_) => Err(miette!("the workspace `{}` is not a folder", folder.display())),
            Err(error) => Err(miette!("cannot use the workspace `{}`: {error}", folder.display())),
        },
    }
}

/// Whether no person can answer gates and agents.
fn detect_headless(asked: bool) -> bool {
    asked || std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}

/// The environment, with the folder of runs in its place: processes of the run find it from any folder.
pub(crate) fn current_environment(home: &Home) -> BTreeMap<OsString, OsString> {
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    environment.insert("SWARM_HOME".into(), home.root().into());
    environment
}
