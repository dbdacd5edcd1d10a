//! What a run costs beyond its processes: times as multiples of the barest loops that do the same, in the same minute.
//!
//! `packaging/build --bench running [NAME]` measures what is shipped for this machine's kind, and `cargo bench --profile dist
//! --bench running [-- NAME]` what cargo builds. A round measures the loop, then the run; printed is the median ratio of all
//! rounds. Processor time includes that of the children.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use swarmc_plan::{Body, Effect, Exhausted, Iteration, Need, Origin, Output, Pipeline, Plan, RoundFailure, Step, When};
use swarmc_runtime::{Control, Ended, Home, Observer, Options, Record, StepId, Stream, start_run};

/// The allocator of swarmc itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const GIB: usize = 1 << 30;

/// The rounds of a case whose loop takes about a second. With seven, medians of eight runs of one program were 0.1 and more
/// apart.
const ROUNDS: usize = 15;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    match words.first().map(String::as_str) {
        Some("memory-child") => return memory_child(),
        Some("waiting-child") => return waiting_child(),
        _ => {}
    }
    let filter = words.first().cloned().unwrap_or_default();
    let cases: &[(&str, fn())] = &[
        ("independent-2", || independent(1000, 2, ROUNDS)),
        ("independent-8", || independent(1000, 8, ROUNDS)),
        ("layers", layers),
        ("chain", chain),
        ("sleeping", sleeping),
        ("ten-thousand", || independent(10_000, 8, 1)),
        ("gigabyte", gigabyte),
        ("ten-megabytes", ten_megabytes),
        ("one", one),
        ("memory", memory),
    ];
    for (name, case) in cases.iter().filter(|(name, _)| name.contains(&filter)) {
        print(format_args!("{name:<16}"));
        case();
    }
}

/// Tasks without dependencies against threads that spawn, read and wait.
fn independent(tasks: usize, at_once: u32, rounds: usize) {
    let plan = plan(at_once, (0..tasks).map(|number| step(format!("t{number}"), &["/usr/bin/true"], &[])).collect());
    compare(rounds, || spawn_loop(tasks, at_once), || run(&plan));
}

/// Twenty layers of fifty, each task after all of the layer before it, against a thousand tasks without order.
fn layers() {
    let mut steps: Vec<Step> = Vec::new();
    for layer in 0..20 {
        let before: Vec<String> =
            (0..50).filter(|_| layer > 0).map(|number| format!("t{}-{number}", layer - 1)).collect();
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        steps.extend((0..50).map(|number| step(format!("t{layer}-{number}"), &["/usr/bin/true"], &before)));
    }
    let plan = plan(8, steps);
    compare(ROUNDS, || spawn_loop(1000, 8), || run(&plan));
}

/// A chain of three hundred against a loop that makes a record durable after each process.
fn chain() {
    let steps = (0..300_usize).map(|number| {
        let before = number.checked_sub(1).map(|before| format!("t{before}"));
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        step(format!("t{number}"), &["/usr/bin/true"], &before)
    });
    let plan = plan(2, steps.collect());
    compare(
        ROUNDS,
        || {
            let file = folder().join("loop.journal");
            let journal = File::create(&file).expect("the journal of the loop can be created");
            journal.write_all_at(&vec![0; 300 * 256], 0).expect("the journal of the loop can be allocated");
            journal.sync_data().expect("the journal of the loop can be synced");
            for link in 0..300 {
                spawn_one();
                journal.write_all_at(&[b'x'; 256], link * 256).expect("the journal of the loop can be written");
                journal.sync_data().expect("the journal of the loop can be synced");
            }
        },
        || run(&plan),
    );
}

/// Five hundred that sleep a second, all at once.
fn sleeping() {
    let sleep = ["/usr/bin/sleep", "1"];
    let plan = plan(500, (0..500).map(|number| step(format!("t{number}"), &sleep, &[])).collect());
    compare(
        ROUNDS,
        || {
            let children: Vec<Child> = (0..500)
                .map(|_| bare(Command::new(sleep[0]).arg(sleep[1])).spawn().expect("sleep can be started"))
                .collect();
            children.into_iter().for_each(drain);
        },
        || run(&plan),
    );
}

/// A gibibyte through one task, with a reader behind the run, against a loop through a ring buffer with the same reader
/// behind it, and against `cat` into a file: the run does what both do.
fn gigabyte() {
    let size = GIB.to_string();
    let plan = plan(1, vec![step("t".to_owned(), &["/usr/bin/head", "-c", &size, "/dev/zero"], &[])]);
    let produce = || bare(Command::new("/usr/bin/head").args(["-c", &size, "/dev/zero"])).spawn();
    print(format_args!("against a ring buffer: "));
    compare(
        3,
        || {
            let mut child = produce().expect("head can be started");
            let mut pipe = child.stdout.take().expect("its output is a pipe");
            let mut buffer = vec![0; 64 * 1024];
            let mut ring = vec![0; 102_400];
            let mut at = 0;
            let (mut behind, finished) = reader();
            loop {
                let count = pipe.read(&mut buffer).expect("a pipe can be read");
                if count == 0 {
                    break;
                }
                let right = count.min(ring.len() - at);
                ring[at..at + right].copy_from_slice(&buffer[..right]);
                ring[..count - right].copy_from_slice(&buffer[right..count]);
                at = (at + count) % ring.len();
                behind.write_all(&buffer[..count]).expect("the reader behind the loop lives");
            }
            drop(behind);
            drain(child);
            finished.recv_timeout(Duration::from_secs(60)).expect("the reader ends with the loop");
        },
        || run(&plan),
    );
    print(format_args!("{:<16}against cat into a file: ", ""));
    compare(
        3,
        || {
            let file = File::create(folder().join("copy")).expect("the copy can be created");
            let mut head = produce().expect("head can be started");
            let pipe = head.stdout.take().expect("its output is a pipe");
            let cat = Command::new("/usr/bin/cat").stdin(pipe).stdout(file).spawn().expect("cat can be started");
            drain(cat);
            drain(head);
        },
        || run(&plan),
    );
}

/// Fifty tasks that put out ten megabytes each, two at a time, against `make -O`: the run keeps a log of each beside.
fn ten_megabytes() {
    let tasks: Vec<String> = (0..50).map(|number| format!("t{number}")).collect();
    let spec = tasks
        .iter()
        .map(|task| format!("    task {task} {{ run \"/usr/bin/head\" \"-c\" \"10000000\" \"/dev/zero\" }}\n"));
    let spec = format!("workflow w\npipeline main {{\n    concurrency 2\n{}}}\n", spec.collect::<String>());
    let rules = tasks.iter().map(|task| format!("{task}:\n\t@/usr/bin/head -c 10000000 /dev/zero\n"));
    let rules = format!("all: {}\n{}", tasks.join(" "), rules.collect::<String>());
    against_make(7, 1, &["-O", "-j2"], &rules, &spec);
}

/// One task that does nothing, ten times, against `make`.
fn one() {
    let spec = "workflow w\npipeline main {\n    task t { run \"/usr/bin/true\" }\n}\n";
    against_make(ROUNDS, 10, &[], "all:\n\t@/usr/bin/true\n", spec);
}

/// Runs a spec and a makefile so often, each as a person does.
fn against_make(rounds: usize, times: usize, options: &[&str], rules: &str, spec: &str) {
    // Copied, as by an installer: the system maps what a linker has written in smaller parts, which costs a start 2 ms.
    let installed = Path::new(env!("CARGO_TARGET_TMPDIR")).join("swarmc");
    std::fs::copy(env!("CARGO_BIN_EXE_swarmc"), &installed).expect("the program can be copied");
    let run = |program: &str, arguments: &[&str]| {
        for _ in 0..times {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(folder()).env("SWARM_HOME", folder().join("home"));
            // Cargo's own would make every process slow to link.
            command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            assert!(command.status().expect("the program can be started").success(), "{program} succeeds");
        }
    };
    compare(
        rounds,
        || {
            std::fs::write(folder().join("Makefile"), rules).expect("the folder can be written");
            run("make", options);
        },
        || {
            std::fs::write(folder().join("w.kdl"), spec).expect("the folder can be written");
            run(&installed.to_string_lossy(), &["run", "w.kdl"]);
        },
    );
}

/// The peak memory of a process that runs a thousand tasks, half of them with a hundred kilobytes of output; and what one
/// of two thousand takes that wait.
fn memory() {
    let me = std::env::current_exe().expect("this program has a path");
    for child in ["memory-child", "waiting-child"] {
        let output = Command::new(&me).arg(child).output().expect("this program can be started");
        print(format_args!("{}", String::from_utf8_lossy(&output.stdout)));
    }
}

fn waiting_child() {
    const TASKS: u64 = 2000;
    let sleep = |number: u64| step(format!("t{number}"), &["/usr/bin/sleep", "5"], &[]);
    clear();
    run(&plan(1, vec![step("t".to_owned(), &["/usr/bin/true"], &[])]));
    let before = peak();
    run(&plan(2000, (0..TASKS).map(sleep).collect()));
    let each = (peak() - before) / TASKS;
    print(format_args!("{:<16}2,000 waiting tasks: {each} kB each\n", ""));
}

/// The most memory that this process has had, in KB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    peak.split_whitespace().next().and_then(|peak| peak.parse().ok()).unwrap_or(0)
}

fn memory_child() {
    clear();
    let words = |number: usize| match number % 2 {
        0 => ["/usr/bin/head", "-c", "100000", "/dev/zero"].as_slice(),
        _ => ["/usr/bin/true"].as_slice(),
    };
    run(&plan(8, (0..1000).map(|number| step(format!("t{number}"), words(number), &[])).collect()));
    print(format_args!("1,000 finished tasks: {} kB\n", peak()));
}

/// Runs both in turn and prints the median ratios of wall and processor time.
fn compare(rounds: usize, bare: impl Fn(), ours: impl Fn()) {
    let mut walls = Vec::new();
    let mut cpus = Vec::new();
    let mut times = Vec::new();
    for _ in 0..rounds {
        clear();
        let (bare_wall, bare_cpu) = measure(&bare);
        clear();
        let (our_wall, our_cpu) = measure(&ours);
        walls.push(our_wall / bare_wall);
        cpus.push(our_cpu / bare_cpu);
        times.push(our_wall);
    }
    print(format_args!(
        "wall {:.2} cpu {:.2} (median of {rounds}; {:.3} s)\n",
        median(walls),
        median(cpus),
        median(times)
    ));
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(what: &impl Fn()) -> (f64, f64) {
    let (before, began) = (cpu_ticks(), Instant::now());
    what();
    let wall = began.elapsed().as_secs_f64();
    // A tick is ten milliseconds: too coarse for less than a few dozen of them, which no case is below.
    (wall, (cpu_ticks() - before).max(1.0))
}

/// User and system time of this process and its reaped children, in clock ticks.
fn cpu_ticks() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().skip(11).take(4).filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
}

fn spawn_loop(tasks: usize, at_once: u32) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < tasks {
                    spawn_one();
                }
            });
        }
    });
}

fn spawn_one() {
    drain(bare(&mut Command::new("/usr/bin/true")).spawn().expect("true can be started"));
}

/// As a run starts its processes; above all, without the variables that make cargo's children slow to link.
fn bare(command: &mut Command) -> &mut Command {
    command.env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0)
}

fn drain(mut child: Child) {
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut Vec::new()).expect("a pipe can be read");
    }
    child.wait().expect("a child can be waited for");
}

/// Counts what it is shown, and hands the bytes to a thread that reads them from a pipe.
struct Reader {
    pipe: std::io::PipeWriter,
}

impl Observer for Reader {
    fn recorded(&mut self, _: &Record) {}
    fn output(&mut self, _: &StepId, _: u32, _: Stream, bytes: &[u8]) {
        self.pipe.write_all(bytes).expect("the reader behind the run lives");
    }
    fn notice(&mut self, _: &str) {}
}

fn run(plan: &Plan) {
    let folder = folder();
    let options = Options {
        workspace: folder.clone(),
        environment: BTreeMap::from([(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))]),
        ..Options::default()
    };
    let (pipe, finished) = reader();
    let home = Home::new(folder.join("home"));
    let outcome =
        start_run(&home, plan, options, Control::new(), Box::new(Reader { pipe })).expect("the run goes through");
    assert_eq!(outcome.ended, Ended::Succeeded);
    finished.recv_timeout(Duration::from_secs(60)).expect("the reader ends with the run");
}

/// A pipe with a reader, and what tells that it is closed and all was read.
fn reader() -> (std::io::PipeWriter, Receiver<()>) {
    let (mut reader, pipe) = std::io::pipe().expect("there is room for a pipe");
    let (done, finished) = channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 256 * 1024];
        while reader.read(&mut buffer).is_ok_and(|count| count > 0) {}
        let _ = done.send(());
    });
    (pipe, finished)
}

/// A folder beside the build's other files, on a real disk.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("running")
}

/// Empties that folder, and waits until the disk has nothing left to do for what came before.
fn clear() {
    let _ = std::fs::remove_dir_all(folder());
    std::fs::create_dir_all(folder()).expect("the target folder can be written");
    let synced = Command::new("/usr/bin/sync").status().expect("sync can be started");
    assert!(synced.success(), "the disk can be synced");
}

fn plan(concurrency: u32, steps: Vec<Step>) -> Plan {
    Plan {
        version: swarmc_plan::VERSION,
        workflow: "bench".to_owned(),
        default: "main".to_owned(),
        pipelines: vec![Pipeline {
            name: "main".to_owned(),
            iteration: Iteration {
                max: 1,
                on_failure: RoundFailure::Stop,
                exhausted: Exhausted::Success,
                ..Iteration::default()
            },
            parallelism: 1,
            concurrency: Some(concurrency),
            steps,
            ..Pipeline::default()
        }],
        ..Plan::default()
    }
}

fn step(name: String, words: &[&str], needs: &[&str]) -> Step {
    let need = |step: &&str| Need {
        step: (*step).to_owned(),
        when: When::Success,
        declared: true,
        effect: Effect::None,
        origin: Origin::default(),
    };
    Step {
        name,
        needs: needs.iter().map(need).collect(),
        body: Body::Run(swarmc_plan::Command::Argv(words.iter().map(|word| (*word).to_owned()).collect())),
        output: Output { max_bytes: 102_400, ..Output::default() },
        grace_ms: 30_000,
        ..Step::default()
    }
}

fn print(text: std::fmt::Arguments<'_>) {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.to_string().as_bytes()).and_then(|()| stdout.flush()).expect("stdout can be written");
}
