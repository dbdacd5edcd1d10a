//! An engine with all that belongs to it, on free ports of this machine and below one folder: Restate, `swarmc-engine`,
//! workers, and people who run something. Everything ends with it, by the ids of its processes.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
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
    pub(super) fn new(folder: PathBuf, log: PathBuf, command: &[&str], variables: &[(&str, &str)]) -> Program {
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
    /// The nodes of Restate, which keep everything on two of them where there are several; none for one.
    pub nodes: Option<usize>,
    /// The seconds of a lease; none for the default.
    pub lease: Option<u64>,
    /// Where Restate listens for workers and clients; none for the loopback address. For namespaces alone.
    pub ingress: Option<&'a str>,
    /// The address of the object store; none for a folder.
    pub store: Option<&'a str>,
    /// Variables of every program: those of the object store.
    pub variables: &'a [(&'a str, &'a str)],
}

/// A node of Restate.
pub(super) struct Node {
    pub program: Program,
    ingress: u16,
    admin: u16,
    /// For other nodes, and its metrics.
    own: u16,
}

impl Node {
    /// The node of this number, from one on, of those that have these ports: for the ingress, the admin address, and each
    /// other. It listens for workers and clients at `host`; none for the loopback address.
    fn new(folder: &Path, number: usize, ports: &[[u16; 3]], host: Option<&str>) -> Node {
        let [ingress, admin, own] = ports[number - 1];
        let address = |port: u16| format!("127.0.0.1:{port}");
        let all: Vec<String> = ports.iter().map(|[.., port]| format!("\"http://{}\"", address(*port))).collect();
        let (all, name) = (format!("[{}]", all.join(",")), format!("node-{number}"));
        let [at_admin, at_own] = [admin, own].map(address);
        let at_ingress = host.map_or_else(|| address(ingress), |host| format!("{host}:{ingress}"));
        let variables = [
            ("RESTATE_CLUSTER_NAME", "swarmc"),
            ("RESTATE_INGRESS__BIND_ADDRESS", &*at_ingress),
            ("RESTATE_ADMIN__BIND_ADDRESS", &at_admin),
            ("RESTATE_BIND_ADDRESS", &at_own),
            ("RESTATE_METADATA_CLIENT__ADDRESSES", &all),
            // One of them makes the cluster, the others join it.
            ("RESTATE_AUTO_PROVISION", if number == 1 { "true" } else { "false" }),
            ("RESTATE_DEFAULT_REPLICATION", if ports.len() == 1 { "1" } else { "2" }),
            ("RESTATE_DEFAULT_NUM_PARTITIONS", "2"),
            ("RESTATE_LISTEN_MODE", "tcp"),
            // So that a search in its files finds what is there.
            ("RESTATE_LOG_SERVER__ROCKSDB_DISABLE_WAL_COMPRESSION", "true"),
            ("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "128MB"),
            ("RESTATE_DISABLE_TELEMETRY", "true"),
            ("DO_NOT_TRACK", "1"),
            ("RESTATE_LOG_DISABLE_ANSI_CODES", "true"),
            // It leaves folders there when it is killed.
            ("TMPDIR", &folder.to_string_lossy()),
        ];
        let server = installed().join("bin/restate-server").to_string_lossy().into_owned();
        let base = folder.join("restate").join(&name).to_string_lossy().into_owned();
        let command = [&*server, "--no-logo", "--node-name", &name, "--base-dir", &base];
        let log = folder.join("logs").join(format!("restate-{name}"));
        Node { program: Program::new(folder.to_owned(), log, &command, &variables), ingress, admin, own }
    }

    /// Whether the engine answers those who use this node.
    pub(super) fn answers(&self) -> bool {
        post(self.ingress, "/swarmc.Pull/store", "null").is_some_and(|(status, _)| status == 200)
    }

    /// Waits until the engine answers those who use this node, which knows that so many keep what nodes share.
    pub(super) fn await_all(&self, nodes: usize) {
        wait("a node knows the others", || {
            let (_, answer) = request(self.admin, "GET", "/cluster-health", "")?;
            let answer: serde_json::Value = serde_json::from_str(&answer).ok()?;
            (answer["metadata_cluster_health"]["members"].as_array()?.len() == nodes).then_some(())
        });
        wait("the engine answers", || self.answers().then_some(()));
    }

    /// How many partitions it leads; none where it does not say.
    pub(super) fn count_led(&self) -> Option<u32> {
        let (_, metrics) = request(self.own, "GET", "/metrics", "")?;
        let line = metrics.lines().find(|line| line.starts_with("restate_num_active_partition_leaders{"))?;
        line.split(' ').next_back()?.parse().ok()
    }

    /// The rows that Restate has for a query in SQL.
    #[track_caller]
    pub(super) fn query(&self, sql: &str) -> Vec<serde_json::Value> {
        let body = serde_json::json!({ "query": sql }).to_string();
        let (status, answer) = post(self.admin, "/query", &body).expect("the admin address answers");
        let mut answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
        assert_eq!(status, 200, "{sql}: {answer}");
        serde_json::from_value(answer["rows"].take()).expect("rows are a list")
    }
}

/// An engine.
pub(super) struct Cluster {
    /// The nodes of Restate. Engine, workers and people use the first.
    pub nodes: Vec<Node>,
    pub endpoint: Program,
    /// What all programs have.
    variables: Vec<(String, String)>,
    /// The last, so that everything has ended that works in it.
    folder: TempDir,
}

impl Cluster {
    pub(super) fn start(setup: &Setup) -> Cluster {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let ports = free_ports(3 * setup.nodes.unwrap_or(1) + 1);
        let (listen, ports) = ports.split_last().expect("it has been asked for");
        let ports: Vec<[u16; 3]> = ports.as_chunks().0.to_vec();
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        for name in ["origin", "logs", "store"] {
            fs::create_dir(folder.path().join(name)).expect("a folder can be made");
        }
        make_repository(&folder.path().join("origin"));
        clone(folder.path(), "engine-clone");
        let nodes: Vec<Node> =
            (1..).zip(&ports).map(|(number, _)| Node::new(folder.path(), number, &ports, setup.ingress)).collect();
        nodes.iter().for_each(|node| node.program.start());
        let [ingress, admin] = [nodes[0].ingress, nodes[0].admin].map(|port| format!("http://127.0.0.1:{port}"));
        let listen = format!("127.0.0.1:{listen}");
        let (store, lease) = (format!("file://{}", at("store")), setup.lease.map(|lease| lease.to_string()));
        let program = engine_program();
        let (clone, home) = (at("engine-clone"), at("engine-home"));
        let mut command = vec![&*program, "serve", "--listen", &listen, "--ingress", &ingress, "--admin", &admin];
        command.extend(["--store", setup.store.unwrap_or(&store), "--workspace", &clone, "--home", &home]);
        command.extend(lease.iter().flat_map(|lease| ["--lease", &**lease]));
        let log = folder.path().join("logs/engine");
        let endpoint = Program::new(folder.path().to_owned(), log, &command, setup.variables);
        endpoint.start();
        let variables = setup.variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let cluster = Cluster { nodes, endpoint, variables, folder };
        cluster.nodes.iter().for_each(|node| node.await_all(cluster.nodes.len()));
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
        format!("http://127.0.0.1:{}", self.nodes[0].ingress)
    }

    /// The port of the ingress.
    pub(super) fn port(&self) -> u16 {
        self.nodes[0].ingress
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until the engine answers.
    pub(super) fn await_answer(&self) {
        wait("the engine answers", || self.nodes[0].answers().then_some(()));
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
        self.nodes.iter().for_each(|node| node.program.kill());
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

    /// The folder of its only run, whose name is the id.
    pub(super) fn run_folder(&self) -> PathBuf {
        let runs: Vec<_> = fs::read_dir(self.home.join("runs")).expect("there are runs").flatten().collect();
        assert_eq!(runs.len(), 1, "it has one run");
        runs[0].path()
    }

    /// The records of its only run.
    pub(super) fn records(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.run_folder().join("journal.jsonl")).expect("there is a journal");
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

/// Ports that nothing listens on, each given out once. They are below those that systems give to connections (from 32768 on
/// Linux): one of those could be taken before the program of a test listens on it.
pub(super) fn free_ports(count: usize) -> Vec<u16> {
    const FIRST: u32 = 12_000;
    const PORTS: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Two processes of tests begin at different ports.
    let begin = std::process::id().wrapping_mul(101);
    let candidates =
        std::iter::repeat_with(|| begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS + FIRST);
    let ports = candidates.filter_map(|port| u16::try_from(port).ok());
    ports.filter(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()).take(count).collect()
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

/// What a server of this machine answers: its status and its body; none where nothing answers.
pub(super) fn post(port: u16, path: &str, body: &str) -> Option<(u16, String)> {
    request(port, "POST", path, body)
}

/// The older version of the protocol has bodies in one piece.
pub(super) fn request(port: u16, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let head = format!("{method} {path} HTTP/1.0\r\nhost: 127.0.0.1\r\naccept: application/json");
    let head = format!("{head}\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
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
