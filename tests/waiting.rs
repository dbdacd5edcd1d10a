//! What a run takes while its tasks wait.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::specs::Project;

#[test]
fn what_waits_for_a_process_takes_no_thread_and_little_memory() {
    const MANY: usize = 301;
    let (few_threads, few_kb) = while_waiting(1);
    let (threads, kb) = while_waiting(MANY);
    assert!(threads <= few_threads + 4, "{threads} threads for {MANY} tasks, {few_threads} for one");
    let each = (kb - few_kb) / (MANY as u64 - 1);
    // Nothing is optimized in tests: what is built for people takes a third of it.
    assert!(each <= 100, "{each} KB for each task: {kb} for {MANY}, {few_kb} for one");
}

/// The threads of a run while so many of its tasks wait, and its memory in KB.
fn while_waiting(tasks: usize) -> (u64, u64) {
    let project = Project::new();
    let (fifo, spec) = (project.root().join("fifo"), project.root().join("spec.kdl"));
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo starts").success());
    let text = format!(
        "workflow wide {{ default main }}\npipeline main {{\n    concurrency {tasks}\n    \
         task reads {{ for-each \"range({tasks})\"; run \"/usr/bin/cat\" \"fifo\" }}\n}}\n"
    );
    fs::write(spec, text).expect("a file can be written");
    let mut command = project.command(&["run", "spec.kdl"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("swarmc starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    let process = PathBuf::from(format!("/proc/{}", run.id()));
    while children(&process) < tasks {
        assert!(Instant::now() < deadline, "{} of {tasks} tasks have started", children(&process));
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = fs::read_to_string(process.join("status")).expect("the run goes on");
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the system says so");
        line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let weight = (number("Threads:"), number("RssAnon:"));
    // Who opens the pipe only now is let go in another round.
    while run.try_wait().expect("the run can be waited for").is_none() {
        assert!(Instant::now() < deadline, "the tasks do not end");
        drop(fs::File::options().write(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(&fifo));
        std::thread::sleep(Duration::from_millis(10));
    }
    weight
}

/// The processes that a process has started and not yet seen end.
fn children(process: &Path) -> usize {
    let threads = fs::read_dir(process.join("task")).expect("the run goes on");
    let lists = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.map(|list| list.split_whitespace().count()).sum()
}
