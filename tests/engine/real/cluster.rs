//! An engine with all that belongs to it, on free ports of this machine and below one folder: Restate, `swarmc-engine`,
//! workers, and people who run something. Everything ends with it, by the ids of its processes.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cli::Ended;

/// How long what must happen may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(20);

/// A program of a test. Its output goes to a file, which a failed test prints.
pub(super) struct Program {
    command: Vec<String>,
    variables: Vec<(String, String)>,
    folder: PathBuf,
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Program {
    fn new(folder: PathBuf, log: PathBuf, command: &[&str], variables: &[(&str, &str)]) -> Program {
        let text = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Program { command: text(command), variables, folder, log, child: Mutex::default() }
    }

    /// Starts it, with the same command as before.
    pub(super) fn start(&self) {
        crate::patience::begin();
        let log = || File::options().create(true).append(true).open(&self.log).expect("a log can be written");
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).current_dir(&self.folder).envs(self.variables.iter().cloned());
        for variable in ["CI", "SWARM_ENGINE", "SWARM_STORE", "TEST_TOKEN"] {
            if !self.variables.iter().any(|(name, _)| name == variable) {
                command.env_remove(variable);
            }
        }
        let child = command.stdin(Stdio::null()).stdout(log()).stderr(log()).spawn().expect("a program starts");
        let former = self.child.lock().expect("no test has failed with it").replace(child);
        assert!(former.is_none(), "`{}` goes on", self.command[0]);
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, name: &str) {
        let child = self.child.lock().expect("no test has failed with it");
        crate::cli::signal(child.as_ref().expect("it goes on"), name);
    }

    /// `kill -9`, and waits until it is gone.
    pub(super) fn kill(&self) {
        if let Some(mut child) = self.child.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// What it has said.
    pub(super) fn read_log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The end of its log, for a test that fails.
    fn print_log(&self) {
        let said = self.read_log();
        let lines: Vec<&str> = said.lines().collect();
        let name = self.log.file_name().unwrap_or_default().to_string_lossy();
        show(&format!("--- {name} ({} lines)", lines.len()));
        lines[lines.len().saturating_sub(40)..].iter().for_each(|line| show(line));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            self.print_log();
        }
    }
}

/// How an engine is set up.
#[derive(Default)]
pub(super) struct Setup<'a> {
    /// The seconds of a lease; none for the default.
    pub lease: Option<u64>,
    /// Where Restate listens for workers and clients; none for the loopback address. For namespaces alone.
    pub ingress: Option<&'a str>,
    /// The address of the object store; none for a folder.
    pub store: Option<&'a str>,
    /// Variables of every program: those of the object store.
    pub variables: &'a [(&'a str, &'a str)],
}

/// An engine.
pub(super) struct Cluster {
    pub restate: Program,
    pub endpoint: Program,
    /// What all programs have.
    variables: Vec<(String, String)>,
    ports: [u16; 4],
    /// The last, so that everything has ended that works in it.
    folder: TempDir,
}

impl Cluster {
    pub(super) fn start(setup: &Setup) -> Cluster {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let ports = free_ports();
        let [ingress, admin, node, listen] = ports.map(|port| format!("127.0.0.1:{port}"));
        let bound = setup.ingress.map_or(ingress.clone(), |host| format!("{host}:{}", ports[0]));
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        for name in ["origin", "logs", "store"] {
            fs::create_dir(folder.path().join(name)).expect("a folder can be made");
        }
        make_repository(&folder.path().join("origin"));
        clone(folder.path(), "engine-clone");
        let log = |name: &str| folder.path().join("logs").join(name);
        let mut variables = vec![
            ("RESTATE_INGRESS__BIND_ADDRESS", &*bound),
            ("RESTATE_ADMIN__BIND_ADDRESS", &admin),
            ("RESTATE_BIND_ADDRESS", &node),
            ("RESTATE_LISTEN_MODE", "tcp"),
            ("RESTATE_DEFAULT_NUM_PARTITIONS", "2"),
            ("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "128MB"),
            ("RESTATE_DISABLE_TELEMETRY", "true"),
            ("DO_NOT_TRACK", "1"),
            ("RESTATE_LOG_DISABLE_ANSI_CODES", "true"),
        ];
        let server = installed().join("bin/restate-server").to_string_lossy().into_owned();
        let server = [&*server, "--no-logo", "--node-name", "one", "--base-dir", &at("restate")];
        let restate = Program::new(folder.path().to_owned(), log("restate"), &server, &variables);
        restate.start();
        let (store, ingress) = (format!("file://{}", at("store")), format!("http://{ingress}"));
        let (admin, lease) = (format!("http://{admin}"), setup.lease.map(|lease| lease.to_string()));
        let program = engine_program();
        let (clone, home) = (at("engine-clone"), at("engine-home"));
        let mut command = vec![&*program, "serve", "--listen", &listen, "--ingress", &ingress, "--admin", &admin];
        command.extend(["--store", setup.store.unwrap_or(&store), "--workspace", &clone, "--home", &home]);
        command.extend(lease.iter().flat_map(|lease| ["--lease", &**lease]));
        variables.clear();
        variables.extend(setup.variables);
        let endpoint = Program::new(folder.path().to_owned(), log("engine"), &command, &variables);
        endpoint.start();
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let cluster = Cluster { restate, endpoint, variables, ports, folder };
        cluster.await_answer();
        cluster
    }

    /// One that several tests of this process have at once, each with pools of its own; it ends with the last of them.
    pub(super) fn shared() -> Arc<Cluster> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let cluster = Arc::new(Cluster::start(&Setup::default()));
            *shared = Arc::downgrade(&cluster);
            cluster
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[0])
    }

    /// The port of the ingress.
    pub(super) fn port(&self) -> u16 {
        self.ports[0]
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until the engine answers.
    pub(super) fn await_answer(&self) {
        let answers =
            || post(self.ports[0], "/swarmc.Pull/store", "null").is_some_and(|answer| answer.contains(" 200 "));
        self.wait("the engine answers", || answers().then_some(()));
    }

    /// Waits until something holds.
    #[track_caller]
    pub(super) fn wait<T>(&self, what: &str, holds: impl FnMut() -> Option<T>) -> T {
        wait(what, holds)
    }

    /// A worker with a home and a clone of its own, started; `name` is that of both.
    pub(super) fn worker(&self, name: &str, pool: &str, more: &[&str], variables: &[(&str, &str)]) -> Program {
        self.worker_by(&[], &self.url(), name, pool, more, variables)
    }

    /// The same behind the words of another command, and with another way to Restate.
    pub(super) fn worker_by(
        &self,
        prefix: &[&str],
        url: &str,
        name: &str,
        pool: &str,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Program {
        clone(self.folder.path(), &format!("{name}-clone"));
        let at = |part: &str| self.path(&format!("{name}-{part}")).to_string_lossy().into_owned();
        let (clone, home) = (at("clone"), at("home"));
        let program = env!("CARGO_BIN_EXE_swarmc");
        let mut command = prefix.to_vec();
        command.extend([program, "worker", "--engine", url, "--pool", pool, "--workspace", &clone]);
        command.extend(more);
        let mut all = vec![("SWARM_HOME", &*home)];
        all.extend(self.variables.iter().map(|(name, value)| (&**name, &**value)));
        all.extend(variables);
        let log = self.path("logs").join(name);
        let worker = Program::new(self.folder.path().to_owned(), log, &command, &all);
        worker.start();
        worker
    }

    /// A person with a home and a clone of the repository; `name` is that of both.
    pub(super) fn person(&self, name: &str, spec: &str) -> Person {
        clone(self.folder.path(), &format!("{name}-clone"));
        let person = Person {
            work: self.path(&format!("{name}-clone")),
            home: self.path(&format!("{name}-home")),
            url: self.url(),
            variables: self.variables.clone(),
        };
        person.write("flow.kdl", spec);
        person
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.endpoint.kill();
        self.restate.kill();
        end_processes_below(self.folder.path());
    }
}

/// Someone who runs something.
pub(super) struct Person {
    pub work: PathBuf,
    pub home: PathBuf,
    url: String,
    variables: Vec<(String, String)>,
}

impl Person {
    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.work.join(name), text).expect("a file can be written");
    }

    /// swarmc without the engine.
    pub(super) fn local(&self, arguments: &[&str]) -> Command {
        let mut command = crate::patience::swarmc();
        command.args(arguments).current_dir(&self.work).env("SWARM_HOME", &self.home).stdin(Stdio::null());
        for variable in ["CI", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "SWARM_ENGINE", "SWARM_STORE", "TEST_TOKEN"] {
            command.env_remove(variable);
        }
        command.envs(self.variables.iter().cloned());
        command
    }

    /// swarmc with the engine.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.local(arguments);
        command.args(["--engine", &self.url]);
        command
    }

    pub(super) fn swarmc(&self, arguments: &[&str]) -> Ended {
        Ended::from(self.command(arguments).output().expect("swarmc starts"))
    }

    /// Starts a run, whose output goes to files of that name.
    pub(super) fn start(&self, arguments: &[&str]) -> Running {
        let file = |end: &str| self.home.with_extension(end);
        let create = |end: &str| File::create(file(end)).expect("a file can be made");
        let mut command = self.command(arguments);
        let child = command.stdout(create("out")).stderr(create("err")).spawn().expect("swarmc starts");
        Running { child, out: file("out"), err: file("err") }
    }

    /// The records of its only run.
    pub(super) fn records(&self) -> Vec<serde_json::Value> {
        let runs: Vec<_> = fs::read_dir(self.home.join("runs")).expect("there are runs").flatten().collect();
        assert_eq!(runs.len(), 1, "it has one run");
        let text = fs::read_to_string(runs[0].path().join("journal.jsonl")).expect("there is a journal");
        text.lines().map(|line| serde_json::from_str(line).expect("a record is JSON")).collect()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            crate::snapshots::check_home(&self.home);
        }
    }
}

/// A run that someone has started.
pub(super) struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    /// Whether it has ended.
    pub(super) fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end.
    pub(super) fn end(mut self) -> Ended {
        let code = self.child.wait().expect("it can be waited for").code();
        Ended { code, out: self.out(), err: self.err() }
    }

    fn out(&self) -> String {
        fs::read_to_string(&self.out).expect("the output is text")
    }

    /// What it has said so far.
    pub(super) fn err(&self) -> String {
        fs::read_to_string(&self.err).expect("the output is text")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            show(&format!("--- the run\n{}", fs::read_to_string(&self.err).unwrap_or_default()));
        }
    }
}

/// Waits until something holds.
#[track_caller]
pub(super) fn wait<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = holds() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(LOOK);
    }
}

pub(super) fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(arguments).current_dir(folder);
    let ended = command.output().expect("git starts");
    assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).expect("it is text")
}

/// A repository with one commit.
fn make_repository(folder: &Path) {
    git(folder, &["init", "--quiet"]);
    for (name, text) in [("shared.txt", "one\ntwo\nthree\n"), ("other.txt", "other\n")] {
        fs::write(folder.join(name), text).expect("a file can be written");
    }
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "--quiet", "-m", "first"]);
}

fn clone(folder: &Path, name: &str) {
    git(folder, &["clone", "--quiet", "origin", name]);
}

/// Ports that are free, and differ.
fn free_ports() -> [u16; 4] {
    let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port is free"));
    listeners.map(|listener| listener.local_addr().expect("it has an address").port())
}

/// What `tests/install-engine` has installed.
pub(super) fn installed() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/install-engine");
        let output =
            Command::new(script).stderr(Stdio::inherit()).output().expect("tests/install-engine can be started");
        assert!(output.status.success(), "tests/install-engine failed: it says why above");
        PathBuf::from(String::from_utf8(output.stdout).expect("a path is UTF-8").trim())
    })
}

/// The program of another package, which lies beside that of this one.
fn engine_program() -> String {
    let path = Path::new(env!("CARGO_BIN_EXE_swarmc")).with_file_name("swarmc-engine");
    assert!(path.is_file(), "{} is missing: `cargo build --workspace` builds it", path.display());
    path.to_string_lossy().into_owned()
}

/// What a server of this machine answers, with the head; none where nothing answers.
pub(super) fn post(port: u16, path: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json");
    stream.write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

/// Ends what workers have left: each works in this folder, or is named by it.
fn end_processes_below(folder: &Path) {
    let is_below = |path: &Path| path.starts_with(folder);
    let needle = folder.to_string_lossy().into_owned();
    loop {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            let works_there = fs::read_link(entry.path().join("cwd")).is_ok_and(|path| is_below(&path));
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let is_dead = fs::read_to_string(entry.path().join("stat")).is_ok_and(|stat| stat.contains(") Z "));
            if !is_dead && (works_there || String::from_utf8_lossy(&line).contains(&needle)) {
                found.push(id.to_string());
            }
        }
        if found.is_empty() {
            return;
        }
        let _ = Command::new("kill").args(["-s", "KILL"]).args(&found).stderr(Stdio::null()).status();
        std::thread::sleep(LOOK);
    }
}

/// Shows a line to those who look at why a test failed.
fn show(line: &str) {
    // A pipe that is closed has no readers.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
}
