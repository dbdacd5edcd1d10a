//! `swarmc doctor`: whether this machine has what workflows need.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use miette::IntoDiagnostic;
use swarmc_compiler::Settings;
use swarmc_view::documents::{self, DoctorSpec, HomeState, ModelState, ProgramState, SpecProgram, Version, encode};
use swarmc_view::make_printable;

use crate::args::Doctor;
use crate::exit::Exit;
use crate::home::find_home;
use crate::load::load_with;
use crate::run::{is_variable_set, missing_secrets};
use crate::terminal::{self, Stream};

/// How long a program may take to say its version: some need seconds for it, more where all are asked at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program that workflows may need.
struct Program {
    name: String,
    /// The preset that uses it.
    preset: Option<String>,
    install: Option<String>,
    path: Option<PathBuf>,
    version: Option<String>,
}

/// A model behind HTTP that workflows may ask.
struct Model {
    preset: String,
    /// The variable that holds its key, and whether it is set.
    key: Option<(String, bool)>,
    /// Where it listens, unless at its maker's.
    url: Option<String>,
}

pub(crate) fn exec(args: &Doctor) -> miette::Result<Exit> {
    let home = find_home()?;
    let writable = check_writable(home.root());
    if let Some(spec) = &args.spec {
        return of_spec(spec, args.json, home.root(), &writable);
    }
    let (mut programs, models) = list_requirements();
    // Some of these take a second to start: they are asked at once.
    std::thread::scope(|scope| {
        for program in &mut programs {
            scope.spawn(|| {
                program.path = find_program(&program.name);
                program.version = program.path.as_deref().and_then(query_version);
            });
        }
    });
    let shell = programs.iter().any(|program| program.name == "sh" && program.path.is_some());
    let text = match args.json {
        true => encode(&build_document(home.root(), &writable, programs, models)) + "\n",
        false => render_report(home.root(), &writable, &programs, &models),
    };
    terminal::print(text)?;
    // A missing preset is no failure here: only a spec tells which ones are needed.
    Ok(if writable.is_ok() && shell { Exit::Done } else { Exit::Usage })
}

/// What one spec needs, on this machine.
fn of_spec(spec: &Path, is_json: bool, home: &Path, writable: &Result<(), String>) -> miette::Result<Exit> {
    let Some(loaded) = load_with(spec, &Settings::default())? else { return Ok(Exit::Spec) };
    let plan = loaded.plan.with_swarms();
    let environment = std::env::vars_os().collect();
    let programs = swarmc_runtime::find_programs(&plan, &loaded.workspace, environment).into_diagnostic()?;
    let mut variables: Vec<String> =
        plan.pipelines.iter().flat_map(|pipeline| missing_secrets(&plan, pipeline)).collect();
    variables.sort();
    variables.dedup();
    let is_missing = programs.iter().any(|program| program.path.is_none() && program.is_needed);
    let text = match is_json {
        true => {
            let programs = programs.iter().map(|program| SpecProgram {
                name: program.name.clone(),
                path: program.path.clone(),
                steps: program.steps.clone(),
                agent: program.agent.clone(),
                install: program.install.clone(),
                needed: program.is_needed,
            });
            encode(&DoctorSpec {
                version: Version,
                swarmc: env!("CARGO_PKG_VERSION").to_owned(),
                home: HomeState { path: home.to_owned(), problem: writable.as_ref().err().cloned() },
                programs: programs.collect(),
                variables: variables.clone(),
            }) + "\n"
        }
        false => {
            let paint = Stream::Out.paint();
            let (good, bad, none) = (paint.green("✓"), paint.red("✗"), paint.dim("-"));
            let mut out = String::new();
            if let Err(error) = writable {
                let _ = writeln!(out, "{bad} runs cannot be kept in {}: {error}; set SWARM_HOME", home.display());
            }
            for program in &programs {
                let _ = match (&program.path, program.is_needed) {
                    (Some(path), _) => writeln!(out, "{good} {}: {}", make_printable(&program.name), path.display()),
                    (None, true) => writeln!(out, "{bad} {}", make_printable(&program.describe_missing())),
                    (None, false) => {
                        writeln!(
                            out,
                            "{none} {} (a step may install it, or the run may not need it)",
                            make_printable(&program.describe_missing())
                        )
                    }
                };
            }
            for problem in &variables {
                let _ = writeln!(out, "{bad} {}", make_printable(problem));
            }
            if programs.is_empty() && variables.is_empty() {
                let _ = writeln!(out, "{good} it starts no program");
            }
            out
        }
    };
    terminal::print(text)?;
    Ok(if writable.is_ok() && !is_missing && variables.is_empty() { Exit::Done } else { Exit::Usage })
}

fn render_report(home: &Path, writable: &Result<(), String>, programs: &[Program], models: &[Model]) -> String {
    let paint = Stream::Out.paint();
    let (good, bad, none) = (paint.green("✓"), paint.red("✗"), paint.dim("-"));
    let mut out = format!("{good} swarmc {}\n", env!("CARGO_PKG_VERSION"));
    let _ = match writable {
        Ok(()) => writeln!(out, "{good} runs are kept in {}", home.display()),
        Err(error) => writeln!(out, "{bad} runs cannot be kept in {}: {error}; set SWARM_HOME", home.display()),
    };
    for program in programs.iter().filter(|program| program.preset.is_none()) {
        let _ = match &program.path {
            Some(path) => writeln!(out, "{good} {}: {}", program.name, path.display()),
            None => writeln!(out, "{bad} {}: not found; shell lines in `run` need it", program.name),
        };
    }
    out.push_str("\nprovider presets (each is needed only where a spec uses it):\n");
    for program in programs {
        let Some(preset) = &program.preset else { continue };
        let _ = match (&program.path, &program.install) {
            (Some(path), _) => {
                let version = program.version.as_deref().unwrap_or("version unknown");
                writeln!(out, "{good} {preset:<13} {} ({version})", path.display())
            }
            (None, Some(install)) => writeln!(out, "{none} {preset:<13} not found; install it with: {install}"),
            (None, None) => writeln!(out, "{none} {preset:<13} `{}` not found", program.name),
        };
    }
    for Model { preset, key, url } in models {
        let _ = match (key, url) {
            (Some((variable, true)), _) => writeln!(out, "{good} {preset:<13} {variable} is set"),
            (Some((variable, false)), _) => writeln!(out, "{none} {preset:<13} {variable} is not set"),
            (None, Some(url)) => writeln!(out, "{none} {preset:<13} asks the server at {url}"),
            (None, None) => writeln!(out, "{good} {preset:<13} needs no key"),
        };
    }
    out
}

fn build_document(
    home: &Path,
    writable: &Result<(), String>,
    programs: Vec<Program>,
    models: Vec<Model>,
) -> documents::Doctor {
    let program =
        |Program { name, preset, install, path, version }| ProgramState { name, preset, path, version, install };
    let model = |Model { preset, key, url }| {
        let (variable, set) = key.unzip();
        ModelState { preset, variable, set, url }
    };
    documents::Doctor {
        version: Version,
        swarmc: env!("CARGO_PKG_VERSION").to_owned(),
        home: HomeState { path: home.to_owned(), problem: writable.as_ref().err().cloned() },
        programs: programs.into_iter().map(program).collect(),
        models: models.into_iter().map(model).collect(),
    }
}

/// The shell, and the program or the model of every preset.
fn list_requirements() -> (Vec<Program>, Vec<Model>) {
    let program =
        |name: &str| Program { name: name.to_owned(), preset: None, install: None, path: None, version: None };
    let (mut programs, mut models) = (vec![program("sh")], Vec::new());
    for preset in swarmc_compiler::preset_names() {
        let sources = BTreeMap::from([("doctor.kdl".to_owned(), preset_spec(preset))]);
        let plan = swarmc_compiler::compile("doctor.kdl", &sources).plan;
        let Some(provider) = plan.and_then(|plan| plan.providers.into_iter().next()) else { continue };
        let (preset, connection) = ((*preset).to_owned(), &provider.connection);
        // A script answers by itself, and needs nothing of the machine.
        if connection.kind().is_model() {
            let key = connection.key_variable().map(|variable| (variable.to_owned(), is_variable_set(variable)));
            models.push(Model { preset, key, url: connection.address().map(str::to_owned) });
        } else if let Some(name) = connection.program().and_then(<[String]>::first) {
            programs.push(Program { preset: Some(preset), install: provider.install, ..program(name) });
        }
    }
    (programs, models)
}

/// A spec that uses a preset, with a model, which some need: its plan says what the preset starts.
fn preset_spec(preset: &str) -> String {
    format!(
        "workflow doctor\nprovider p preset={preset}\nagent a provider=p model=any\npipeline x {{\n    task t {{ prompt \"t\" }}\n}}\n"
    )
}

/// Whether a run could be kept here: tried where the folder exists, else in the nearest one that does.
fn check_writable(home: &Path) -> Result<(), String> {
    let folder = home.ancestors().find(|folder| folder.exists()).unwrap_or(home);
    let probe = folder.join(format!(".swarmc-doctor-{}", std::process::id()));
    let made = std::fs::File::create_new(&probe).map_err(|error| error.to_string()).map(drop);
    if made.is_ok() {
        // It is ours and empty; should it stay, it does no harm.
        let _ = std::fs::remove_file(&probe);
    }
    made
}

fn find_program(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let executable = |path: &PathBuf| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(executable)
}

/// The first line that the program prints for `--version`.
fn query_version(path: &Path) -> Option<String> {
    let mut child = Command::new(path)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let started = Instant::now();
    // The standard library has no wait with a limit.
    while child.try_wait().ok()?.is_none() {
        if started.elapsed() > PATIENCE {
            // It is asked no more; whether it can be killed makes no difference.
            let _ = child.kill().and_then(|()| child.wait());
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut text = Vec::new();
    let mut stdout = child.stdout.take()?;
    // A grandchild may hold the pipe open: what lies in it is enough.
    rustix::io::ioctl_fionbio(&stdout, true).ok()?;
    let _ = std::io::Read::read_to_end(&mut stdout, &mut text);
    let text = String::from_utf8_lossy(&text);
    Some(make_printable(text.lines().next()?.trim()).chars().take(60).collect())
        .filter(|line: &String| !line.is_empty())
}
