//! Packages as people install them: the archive, the wheel and the npm packages are made, installed without a network, and
//! run a first workflow.
//!
//! The program in them is a script that starts the one under test, so that packing takes no time. `tests/install-ci` installs
//! what is needed; these tests call it, and fail without.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::tidy::{root, text};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The folder with the programs that tests start, installed the first time that a test asks.
pub(crate) fn programs() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let script = root().join("tests/install-ci");
        let output = Command::new(script).stderr(Stdio::inherit()).output().expect("tests/install-ci can be started");
        assert!(output.status.success(), "tests/install-ci failed: it says why above");
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end())
    });
    &FOLDER
}

/// Runs a command, which must succeed; what it prints.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let (code, printed) = run_to_end(command);
    assert_eq!(code, Some(0), "{command:?} failed:\n{printed}");
    printed
}

/// Runs a command; its exit code, and what it prints on both streams.
pub(crate) fn run_to_end(command: &mut Command) -> (Option<i32>, String) {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code(), printed)
}

/// What is packaged, by the names that [`write_scripts`] gives them.
const PROGRAMS: [(&str, &str); 2] =
    [("program", env!("CARGO_BIN_EXE_swarmc")), ("swarmc-shim", env!("CARGO_BIN_EXE_swarmc-shim"))];

/// Writes the programs that are packaged, `program`, `swarmc-shim` and `swarmc-engine`: scripts that start those under test.
/// No test of packages starts the engine: it says its version alone.
pub(crate) fn write_scripts(folder: &Path) {
    for (name, program) in PROGRAMS {
        write_script(&folder.join(name), &format!("exec '{program}' \"$@\""));
    }
    write_script(&folder.join("swarmc-engine"), &format!("echo swarmc-engine {VERSION}"));
}

fn write_script(path: &Path, line: &str) {
    fs::write(path, format!("#!/bin/sh\n{line}\n")).expect("a file can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
}

/// A folder in which everything happens.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        crate::patience::begin();
        programs();
        let folder = TempDir::new().expect("a temporary folder can be made");
        write_scripts(folder.path());
        Bench { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A script of the checkout, for a target.
    fn script(&self, name: &str, target: &str, out: &str) -> Command {
        let mut command = Command::new(root().join(name));
        command.args([target, "--out"]).arg(self.at(out)).env("SWARMC_BINARY", self.at("program"));
        command.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("SOURCE_DATE_EPOCH");
        command
    }

    /// The packages that a script writes.
    fn pack(&self, name: &str) -> Vec<PathBuf> {
        run(&mut self.script(name, target(), "dist")).lines().map(PathBuf::from).collect()
    }

    /// Does what a new user does, with the swarmc that a folder of programs has.
    fn run_first_workflow(&self, programs: &Path) {
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("there is a PATH"));
        let mut shell = Command::new("sh");
        shell.args(["-c", "swarmc init . && swarmc check && swarmc test && swarmc run"]);
        fs::create_dir(self.at("first")).expect("a folder can be made");
        shell.current_dir(self.at("first")).env("PATH", path).env("SWARM_HOME", self.at("home")).env_remove("CI");
        let printed = run(&mut shell);
        for part in ["no problems in 1 spec", "1 test passed", "✓ report: succeeded"] {
            assert!(printed.contains(part), "it lacks `{part}`: {printed}");
        }
        self.hold_agent(programs);
    }

    /// Has an agent held by the `swarmc-shim` that was installed beside the swarmc of a folder of programs.
    fn hold_agent(&self, programs: &Path) {
        // uv and npm link to it; behind the link of npm is the launcher.
        let mut program = fs::canonicalize(programs.join("swarmc")).expect("it was installed");
        if program.extension().is_some() {
            program = self.at(&format!("project/node_modules/swarmc-linux-{}/bin/swarmc", npm_arch()));
        }
        for (packed, tested) in PROGRAMS {
            let installed = if packed == "program" { program.clone() } else { program.with_file_name(packed) };
            let bytes = fs::read(&installed).expect("it was installed");
            assert!(bytes == fs::read(self.at(packed)).expect("it is there"), "{}", installed.display());
            let mode = fs::metadata(&installed).expect("it was installed").permissions().mode();
            assert_eq!(mode & 0o111, 0o111, "{}", installed.display());
            // The script would start a swarmc that lies elsewhere.
            fs::remove_file(&installed).expect("it can be removed");
            fs::copy(tested, &installed).expect("there is room for it");
        }
        let agent = "provider parent { exec \"sh\" \"-c\" \"cat /proc/$PPID/comm\" }\nagent a provider=parent\n\
                     pipeline main { task one agent=a { prompt \"Who?\" }; result one }\n";
        let folder = self.folder.path().join("held");
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::write(folder.join("held.kdl"), agent).expect("a file can be written");
        let mut run_agent = Command::new(&program);
        run_agent.args(["run", "held.kdl"]).current_dir(&folder).env("SWARM_HOME", self.at("home")).env_remove("CI");
        let printed = run(&mut run_agent);
        assert!(printed.lines().any(|line| line == "swarmc-shim"), "its parent is no shim: {printed}");
    }
}

/// This machine, as npm names it.
fn npm_arch() -> &'static str {
    if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" }
}

/// The target that is released for this machine.
fn target() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "aarch64-unknown-linux-musl",
        _ => "x86_64-unknown-linux-musl",
    }
}

#[test]
fn the_functions_that_a_run_calls_are_linked_first() {
    programs();
    let folder = TempDir::new().expect("a folder can be made");
    let source = "int skipped(void) { return 1; }\nint called(void) { return 0; }\n\
                  int main(int count, char **words) { return count > 90 ? skipped() : called(); }\n";
    fs::write(folder.path().join("main.c"), source).expect("a file can be written");
    // A section for each function, as Rust makes them.
    run(Command::new("cc").args(["-O0", "-ffunction-sections", "-c", "main.c"]).current_dir(&folder));
    let functions = |program: &str| {
        let linker = root().join("packaging/linker");
        run(Command::new(linker).args(["main.o", "-o", program]).current_dir(&folder));
        let symbols = run(Command::new("nm").args(["-n", program]).current_dir(&folder));
        let names = symbols.lines().filter_map(|line| line.split(' ').next_back().map(str::to_owned));
        names.filter(|name| ["skipped", "called", "main"].contains(&name.as_str())).collect::<Vec<_>>()
    };
    assert_eq!(functions("other"), ["skipped", "called", "main"]);
    assert_eq!(functions("swarmc").last().map(String::as_str), Some("skipped"));
}

#[test]
fn an_archive_holds_the_program_completions_pages_and_licences() {
    let bench = Bench::new();
    let archive = bench.pack("packaging/archive").remove(0);
    let name = format!("swarmc-{VERSION}-{}", target());
    assert_eq!(archive, bench.at("dist").join(format!("{name}.tar.gz")));
    run(Command::new("sha256sum").arg("--check").arg(format!("{name}.tar.gz.sha256")).current_dir(bench.at("dist")));
    run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(bench.folder.path()));
    let folder = bench.at(&name);
    let mut commands: BTreeSet<String> = run(crate::patience::swarmc().arg("--help"))
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once(' ').map(|(name, _)| name.to_owned()))
        .filter(|name| !name.is_empty() && !name.starts_with('-') && name != "help")
        .collect();
    assert!(commands.len() > 15 && commands.contains("check"), "{commands:?}");
    commands.retain(|name| !folder.join(format!("man/swarmc-{name}.1")).is_file());
    assert_eq!(commands, BTreeSet::new(), "commands without a page");
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"] {
        assert_eq!(fs::read_to_string(folder.join(file)).expect("it is there"), text(file), "{file}");
    }
    for (file, part) in [("_swarmc", "#compdef swarmc"), ("swarmc.fish", "complete -c swarmc"), ("swarmc.elv", "edit:")]
    {
        let script = fs::read_to_string(folder.join("completions").join(file)).expect("it is there");
        assert!(script.contains(part), "{file}");
    }
    run(Command::new("bash").arg("-n").arg(folder.join("completions/swarmc.bash")));
    assert_eq!(run(Command::new(folder.join("swarmc-engine")).arg("--version")), format!("swarmc-engine {VERSION}\n"));
    bench.run_first_workflow(&folder);
    // The same files make the same archive.
    run(&mut bench.script("packaging/archive", target(), "again"));
    let again = bench.at("again").join(format!("{name}.tar.gz"));
    assert!(fs::read(archive).expect("it is there") == fs::read(again).expect("it is there"));
}

#[test]
fn a_wheel_is_installed_by_pip_and_by_uv() {
    let bench = Bench::new();
    let wheel = bench.pack("packaging/wheel").remove(0);
    let machine = std::env::consts::ARCH;
    let tags = format!("manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}");
    assert_eq!(wheel, bench.at("dist").join(format!("swarmc-{VERSION}-py3-none-{tags}.whl")));
    run(Command::new("python3").args(["-m", "venv"]).arg(bench.at("venv")));
    let python = bench.at("venv/bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"];
    run(Command::new(&python).args(pip).arg(&wheel));
    let question = "import importlib.metadata as m; about = m.metadata('swarmc'); files = m.files('swarmc'); \
                    print(about['Version'], about['Summary'], about['License-Expression'], all(f.hash for f in files \
                    if f.name not in ('RECORD', 'INSTALLER', 'REQUESTED', 'direct_url.json')), sep='|')";
    let told = run(Command::new(&python).args(["-c", question]));
    let description = env!("CARGO_PKG_DESCRIPTION");
    assert_eq!(told.trim_end(), format!("{VERSION}|{description}|{}|True", env!("CARGO_PKG_LICENSE")));
    bench.run_first_workflow(&bench.at("venv/bin"));
    let mut uv = Command::new(programs().join("bin/uv"));
    uv.args(["tool", "install", "--offline", "--no-config", "--python-preference", "only-system"]).arg(&wheel);
    for (variable, folder) in [("UV_TOOL_DIR", "tools"), ("UV_TOOL_BIN_DIR", "bin"), ("UV_CACHE_DIR", "cache")] {
        uv.env(variable, bench.at(folder));
    }
    run(&mut uv);
    assert_eq!(run(Command::new(bench.at("bin/swarmc")).arg("--version")), format!("swarmc {VERSION}\n"));
    bench.hold_agent(&bench.at("bin"));
    assert!(!bench.at("venv/bin/swarmc-engine").exists(), "the engine is for archives and images");
}

#[test]
fn npm_installs_the_program_of_the_machine_beside_the_launcher() {
    let bench = Bench::new();
    let packages = bench.pack("packaging/npm/pack");
    assert_eq!(packages.len(), 2, "{packages:?}");
    fs::create_dir(bench.at("project")).expect("a folder can be made");
    fs::write(bench.at("project/package.json"), "{}").expect("a file can be written");
    let npm = |arguments: &[&str]| {
        let mut npm = Command::new("npm");
        npm.args(arguments).args(["--offline", "--no-audit", "--no-fund", "--loglevel", "error"]);
        npm.current_dir(bench.at("project")).env("npm_config_cache", bench.at("cache"));
        npm
    };
    run(npm(&["install"]).args(&packages));
    bench.run_first_workflow(&bench.at("project/node_modules/.bin"));
    // What the program says, and how it ends, is what npx says.
    let npx = |arguments: &[&str]| {
        let mut npx = Command::new("npx");
        npx.args(["--offline", "--no-install", "swarmc"]).args(arguments).current_dir(bench.at("project"));
        npx.env("npm_config_cache", bench.at("cache"));
        run_to_end(&mut npx)
    };
    assert_eq!(npx(&["--version"]), (Some(0), format!("swarmc {VERSION}\n")));
    fs::write(bench.at("project/bad.kdl"), "pipeline p { task a { depends-on b; run ls } }\n")
        .expect("it can be written");
    let (code, printed) = npx(&["check", "bad.kdl"]);
    assert!(code == Some(1) && printed.contains("error[SW101]"), "{code:?} {printed}");
    // Where the package of the machine was left out, the launcher says so.
    let package = format!("swarmc-linux-{}", npm_arch());
    let programs = bench.at("project/node_modules").join(&package).join("bin");
    assert!(programs.join("swarmc-shim").is_file() && !programs.join("swarmc-engine").exists());
    fs::remove_dir_all(bench.at("project/node_modules").join(&package)).expect("it was installed");
    let (code, printed) = npx(&["--version"]);
    let missing = format!("the package `{package}` is not installed");
    assert!(code == Some(2) && printed.contains(&missing) && printed.contains("--omit=optional"), "{code:?} {printed}");
}

#[test]
fn the_launcher_of_npm_passes_signals_and_ends_as_the_program_does() {
    let bench = Bench::new();
    let launcher = root().join("packaging/npm/swarmc.js");
    let script = bench.at("script");
    fs::write(&script, "#!/bin/sh\ntrap 'echo ended; exit 4' TERM\necho ready\nwhile :; do sleep 0.05; done\n")
        .expect("a file can be written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
    let mut node = Command::new("node");
    node.arg(launcher).env("SWARMC_BINARY", &script).stdout(Stdio::piped()).stdin(Stdio::null());
    let mut child = node.spawn().expect("node starts");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("it is piped")));
    assert_eq!(lines.next().expect("a line").expect("it can be read"), "ready");
    crate::cli::signal(&child, "TERM");
    assert_eq!(lines.next().expect("a line").expect("it can be read"), "ended");
    assert_eq!(child.wait().expect("it ends").code(), Some(4));
}

#[test]
fn a_package_is_refused_that_would_not_run() {
    let bench = Bench::new();
    let scripts = ["packaging/archive", "packaging/wheel", "packaging/npm/pack", "packaging/vsix"];
    for script in scripts {
        let mut packed = bench.script(script, target(), "dist");
        let (code, told) = run_to_end(packed.env("SWARMC_BINARY", env!("CARGO_BIN_EXE_swarmc")));
        assert!(code == Some(1) && told.contains("needs glibc, and is to be packaged for"), "{script}: {told}");
    }
    write_script(&bench.at("swarmc-engine"), "echo swarmc-engine 0.0.9");
    let (code, told) = run_to_end(&mut bench.script("packaging/archive", target(), "dist"));
    assert!(code == Some(1) && told.contains("is swarmc-engine 0.0.9, and Cargo.toml says"), "{told}");
    fs::remove_file(bench.at("swarmc-engine")).expect("it is there");
    let (code, told) = run_to_end(&mut bench.script("packaging/archive", target(), "dist"));
    assert!(code == Some(1) && told.contains("swarmc-engine` is no program"), "{told}");
    fs::remove_file(bench.at("swarmc-shim")).expect("it is there");
    for script in scripts {
        let (code, told) = run_to_end(&mut bench.script(script, target(), "dist"));
        assert!(code == Some(1) && told.contains("swarmc-shim` is no program"), "{script}: {told}");
    }
    write_scripts(bench.folder.path());
    write_script(&bench.at("program"), "echo swarmc 0.0.9");
    for script in scripts {
        let (code, told) = run_to_end(&mut bench.script(script, target(), "dist"));
        assert!(code == Some(1) && told.contains("is swarmc 0.0.9, and Cargo.toml says"), "{script}: {told}");
    }
    let mut none = bench.script("packaging/archive", target(), "dist");
    let (code, told) = run_to_end(none.env("SWARMC_BINARY", bench.at("nothing")));
    assert!(code == Some(1) && told.contains("which is no program"), "{told}");
    let (code, told) = run_to_end(&mut bench.script("packaging/archive", "sparc", "dist"));
    assert!(code == Some(2) && told.contains("invalid choice: 'sparc'"), "{told}");
}

#[test]
fn a_release_builds_every_target_that_packages_know() {
    let targets = text("packaging/targets.py");
    let known: BTreeSet<&str> = targets
        .lines()
        .filter_map(|line| line.strip_prefix("    \"")?.split_once("\": {").map(|(name, _)| name))
        .filter(|name| !name.ends_with("-gnu"))
        .collect();
    let workflow = text(".github/workflows/release.yml");
    let built: BTreeSet<&str> =
        workflow.lines().filter_map(|line| line.split_once("{ target: ")?.1.split(',').next()).collect();
    assert_eq!(built, known);
    assert!(known.len() >= 4);
    let install = text("ci/install");
    assert!(known.iter().all(|target| install.contains(&format!("target={target} "))), "ci/install lacks a target");
}

/// The options in a text, as in `--pool`.
fn options(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| letter.is_whitespace() || letter == '"');
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

#[test]
fn the_compose_file_gives_options_that_programs_have() {
    let compose = text("packaging/cluster/compose.yaml");
    let (worker, services) = compose.split_once("\nservices:\n").expect("it has services");
    let (_, worker) = worker.split_once("x-worker:").expect("it says what workers are");
    let engine = services.split("\n  engine:\n").nth(1).and_then(|rest| rest.split("\n  worker-1:\n").next());
    let engine = engine.expect("it has an engine");
    let help = run(crate::patience::swarmc().args(["worker", "--help"]));
    let serves = text("engine/src/main.rs");
    let (_, serves) = serves.split_once("struct ServeArgs {").expect("it has options");
    // The fields are the options.
    let (serves, _) = serves.split_once("\n}").expect("they end");
    for (place, known) in [(worker, options(&help)), (engine, fields(serves))] {
        let mut given = options(place);
        // Of Git.
        given.remove("--quiet");
        assert!(given.len() >= 3, "{given:?}");
        given.retain(|option| !known.contains(option));
        assert_eq!(given, BTreeSet::new(), "options that are not known");
    }
}

/// The options that a struct of clap declares.
fn fields(text: &str) -> BTreeSet<String> {
    let names = text.lines().filter_map(|line| line.trim().split_once(": ")).map(|(name, _)| name);
    names.filter(|name| !name.contains(['/', '#', ' '])).map(|name| format!("--{}", name.replace('_', "-"))).collect()
}

#[test]
fn the_stages_of_the_image_are_those_that_others_build() {
    let image = text("Dockerfile");
    let stages: BTreeSet<&str> =
        image.lines().filter_map(|line| line.strip_prefix("FROM ")?.split_once(" AS ").map(|(_, name)| name)).collect();
    for (user, marker) in
        [("packaging/cluster/compose.yaml", "target: "), (".github/workflows/release.yml", "--target ")]
    {
        let file = text(user);
        let targets = file.lines().filter_map(|line| line.split_once(marker)?.1.split_whitespace().next());
        let targets: Vec<&str> =
            targets.filter(|target| target.chars().all(|letter| letter.is_ascii_lowercase())).collect();
        assert!(targets == ["engine"] && stages.contains("engine"), "{user}: {targets:?}, {stages:?}");
    }
    // What a release builds has a stage for each program.
    for source in ["build", "built", "build-engine", "built-engine"] {
        assert!(stages.contains(source), "{source} is no stage: {stages:?}");
    }
}
