//! `docs/tutorial.md`, done as it says: every file is written, every change made, every command typed, and what each
//! prints is what the page shows. `BLESS=1` writes the page anew with what they print now.
//!
//! A block `kdl PATH` is a file, `diff PATH` a change of one, `console` commands behind `$ ` and what they print; `exit=1`
//! says how the last of them ends, `interrupt=TEXT` that Ctrl-C comes when it has printed the text. A line `…` stands for
//! any lines.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cli::{Place, signal};

/// A fenced block: what stands behind its fence, and its lines.
#[derive(Debug)]
struct Block {
    info: String,
    text: String,
    /// Where its text stands in the page.
    range: std::ops::Range<usize>,
}

#[test]
fn everything_in_the_tutorial_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial.md");
    let page = fs::read_to_string(&path).expect("the tutorial can be read");
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let place = Place::new("");
    fs::remove_file(place.work().join("flow.kdl")).expect("it was just written");
    let mut written = String::new();
    let mut copied = 0;
    let blocks = blocks(&page);
    assert!(blocks.len() > 15, "the page has listings");
    for block in blocks {
        let (kind, rest) = block.info.split_once(' ').unwrap_or((&block.info, ""));
        let printed = match kind {
            "console" => console(&place, rest, &block.text),
            "diff" => {
                change(&place, rest, &block.text);
                continue;
            }
            _ => {
                assert!(!rest.is_empty(), "a listing that nobody writes or runs: {block:?}");
                let file = place.work().join(rest);
                fs::create_dir_all(file.parent().expect("it has a folder")).expect("a folder can be made");
                fs::write(file, &block.text).expect("a file can be written");
                continue;
            }
        };
        if fits(&scrubbed(&block.text), &scrubbed(&printed)) {
            continue;
        }
        assert!(bless, "the tutorial says\n{}\nand this is printed:\n{printed}", block.text);
        written.push_str(&page[copied..block.range.start]);
        written.push_str(&printed);
        copied = block.range.end;
    }
    if bless && copied > 0 {
        fs::write(path, written + &page[copied..]).expect("the tutorial can be written");
    }
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, usize)> = None;
    let mut at = 0;
    for line in page.split_inclusive('\n') {
        let end = at + line.len();
        match (line.trim_end().strip_prefix("```"), &open) {
            (Some(info), None) => open = Some((info.to_owned(), end)),
            (Some(""), Some((info, start))) => {
                let text = page[*start..at].to_owned();
                blocks.push(Block { info: info.clone(), text, range: *start..at });
                open = None;
            }
            _ => {}
        }
        at = end;
    }
    assert!(open.is_none(), "every block is closed");
    blocks
}

/// Runs the commands of a block; gives the block as it should be.
fn console(place: &Place, options: &str, text: &str) -> String {
    let (code, interrupt) = match options.split_once('=') {
        Some(("exit", code)) => (code.parse().expect("an exit code"), None),
        Some(("interrupt", text)) => (4, Some(text)),
        _ => (0, None),
    };
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let mut out = String::new();
    for (index, command) in commands.iter().enumerate() {
        let last = index + 1 == commands.len();
        let (found, printed) = typed(place, command, interrupt.filter(|_| last));
        let expected = if last { code } else { 0 };
        assert_eq!(found, Some(expected), "`{command}` prints\n{printed}");
        out.push_str(&format!("$ {command}\n{printed}"));
    }
    out
}

/// What a command prints on both streams, as a terminal shows it; runs are where they are by default, and
/// the folder is called `notes`.
fn typed(place: &Place, command: &str, interrupt: Option<&str>) -> (Option<i32>, String) {
    let binary = Path::new(env!("CARGO_BIN_EXE_swarmc"));
    let folder = binary.parent().expect("it lies in a folder").display();
    let mut shell = Command::new("sh");
    // `exec`, so that a signal is for the command itself.
    let exec = if interrupt.is_some() { "exec " } else { "" };
    shell.args(["-c", &format!("PATH=\"{folder}:$PATH\"; exec 2>&1; {exec}{command}")]);
    shell.current_dir(place.work()).env("SWARM_HOME", place.home()).stdin(Stdio::null()).stdout(Stdio::piped());
    for variable in ["CI", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        shell.env_remove(variable);
    }
    let mut child = shell.spawn().expect("a shell starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut printed = String::new();
    if let Some(text) = interrupt {
        while !printed.contains(text) {
            let read = lines.read_line(&mut printed).expect("it can be read");
            assert_ne!(read, 0, "it never printed `{text}`: {printed}");
        }
        signal(&child, "INT");
        printed.push_str("^C\n");
    }
    lines.read_to_string(&mut printed).expect("it can be read");
    let [home, work] = [place.home(), place.work()].map(|path| path.display().to_string());
    (child.wait().expect("it ends").code(), printed.replace(&home, "~/.swarm").replace(&work, "~/notes"))
}

/// Makes the change that a diff shows.
fn change(place: &Place, file: &str, diff: &str) {
    let file = place.work().join(file);
    let text = fs::read_to_string(&file).expect("what is changed is there");
    let side = |other: char| -> String {
        let lines = diff.lines().filter(|line| !line.starts_with(other));
        lines.map(|line| format!("{}\n", line.get(1..).unwrap_or_default())).collect()
    };
    let (before, after) = (side('+'), side('-'));
    assert_eq!(text.matches(&before).count(), 1, "`{before}` stands once in\n{text}");
    fs::write(file, text.replace(&before, &after)).expect("it can be written");
}

/// Whether a text is as shown, where a line `…` is any lines.
fn fits(shown: &str, found: &str) -> bool {
    let mut rest = found;
    let mut open = false;
    let parts: Vec<&str> = shown.split("…\n").collect();
    for (index, part) in parts.iter().enumerate() {
        let last = index + 1 == parts.len();
        rest = match (open, last) {
            (false, false) => match rest.strip_prefix(part) {
                Some(rest) => rest,
                None => return false,
            },
            (false, true) => return rest == *part,
            (true, true) => return rest.ends_with(part),
            (true, false) => match rest.split_once(part) {
                Some((_, rest)) => rest,
                None => return false,
            },
        };
        open = true;
    }
    true
}

/// Without what differs from run to run: the ids of runs, and how long things took.
fn scrubbed(text: &str) -> String {
    let word = |word: &str| {
        let is_id = |word: &str| {
            let parts: Vec<&str> = word.split('-').collect();
            let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
            matches!(parts[..], [day, time, mark] if digits(day, 8) && digits(time, 6) && mark.len() == 6)
        };
        let core = word.trim_end_matches([':', ',', ';']);
        let seconds =
            core.strip_suffix('s').is_some_and(|number| number.contains('.') && number.parse::<f64>().is_ok());
        match (is_id(core), seconds) {
            (true, _) => word.replace(core, "RUN"),
            (_, true) => word.replace(core, "TIME"),
            _ => word.to_owned(),
        }
    };
    // Columns are as wide as what stands in them.
    let line = |line: &str| {
        let words: Vec<String> =
            line.split(' ').map(|path| path.split('/').map(word).collect::<Vec<_>>().join("/")).collect();
        let line = words.join(" ");
        match line.contains("TIME") {
            true => line.split_whitespace().collect::<Vec<_>>().join(" "),
            false => line,
        }
    };
    text.lines().map(|it| line(it) + "\n").collect()
}

#[test]
fn runs_and_times_are_scrubbed_and_the_rest_is_not() {
    assert_eq!(scrubbed("run 20261122-090000-ab1x4t: ok in 1.25s\n a  b\n"), "run RUN: ok in TIME\n a  b\n");
    assert_eq!(scrubbed("log: ~/runs/20261122-090000-ab1x4t/a.out"), "log: ~/runs/RUN/a.out\n");
    assert!(fits("a\n…\nc\n", "a\nb\nb\nc\n") && fits("a\n", "a\n") && fits("…\nb\n…\n", "x\nb\ny\n"));
    assert!(!fits("a\n…\nc\n", "a\nb\n") && !fits("a\n", "a\nb\n") && !fits("b\n…\n", "a\nb\n"));
}
