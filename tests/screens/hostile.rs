//! A log that attacks the terminal, as a program of a task wrote it: nothing outside its pane changes.

use std::fs;
use std::process::Command;

use super::programs;
use crate::cli::Place;

/// What tests of terminals and attackers send: sequences that move, clear, scroll, ask, name the window, write the clipboard,
/// change the set of signs, or reorder text; and signs whose width terminals disagree about.
fn hostile_log() -> Vec<u8> {
    let mut log = Vec::new();
    // The line that a screen keeps the least of.
    log.extend_from_slice(&b"x".repeat(1024 * 1024));
    log.push(b'\n');
    let sequences: [&[u8]; 33] = [
        b"\x1b[2J",
        b"\x1b[H",
        b"\x1b[1;1H",
        b"\x1b[?1049l",
        b"\x1b[?1049h",
        b"\x1b[3;5r",
        b"\x1b[10A",
        b"\x1b[99B",
        b"\x1b[99L",
        b"\x1b[99M",
        b"\x1b[99S",
        b"\x1b[99T",
        b"\x1b#8",
        b"\x1bc",
        b"\x1b[!p",
        b"\x1b[?3h",
        b"\x1b[?5h",
        b"\x1b[?6h",
        b"\x1b[?7l",
        b"\x1b[?25h",
        b"\x1b[4h",
        b"\x1b[20h",
        b"\x1b[5n",
        b"\x1b[6n",
        b"\x1b[c",
        b"\x1b[0;31;7m",
        b"\x1b(0",
        b"\x0e",
        b"\x1bM\x1bD\x1bE",
        b"\x1b]0;owned\x07",
        b"\x1b]52;c;cm0gLXJm\x07",
        b"\x1bP1$r0m\x1b\\",
        b"\x9b2J\x9d52;c;eA==\x9c",
    ];
    for sequence in sequences {
        log.extend_from_slice(b"before ");
        log.extend_from_slice(sequence);
        log.extend_from_slice(b" attacked\n");
    }
    let texts = [
        "\u{202e}txet desrever\u{202c} \u{2066}isolated\u{2069} \u{200f}right to left\u{200e}",
        "a\r\rb\x08\x08\x08\x7f\x0b\x0c\x00c\td",
        "👩\u{200d}👩\u{200d}👧\u{200d}👦 👍🏽 🇩🇪🇫🇷 ❤\u{fe0f} 界界界 \u{1100}\u{1161}\u{11a8}",
        &"👩\u{200d}👩\u{200d}👧\u{200d}👦".repeat(60),
        &"👍🏽".repeat(120),
        &"🇩🇪".repeat(120),
        &"界".repeat(200),
        &"❤\u{fe0f}".repeat(200),
        &format!("e{}", "\u{301}".repeat(500)),
        "\u{85}\u{9b}31m\u{feff}\u{ad}\u{2028}\u{2029}",
        "\x1b[",
        "\x1b]52;c;",
        "attacked",
    ];
    for text in texts {
        log.extend_from_slice(text.as_bytes());
        log.push(b'\n');
    }
    log.extend_from_slice(b"\xff\xfe\xc3(\xf0\x9f\n");
    log.extend_from_slice(b"attacked\nthe last line\n");
    log
}

#[test]
fn a_log_that_attacks_the_terminal_changes_nothing_outside_its_pane() {
    let place = Place::new("workflow hostile\npipeline p { task show { run cat hostile.txt } }\n");
    fs::write(place.work().join("hostile.txt"), hostile_log()).expect("it can be written");
    place.swarmc(&["run", "flow.kdl", "--quiet"]).code.expect("it ends");
    let step = place.swarmc(&["inspect", "last", "show", "--json"]).expect(0, &[], &[]).out;
    let step: serde_json::Value = serde_json::from_str(&step).expect("it is JSON");
    let log = step["tries"][0]["paths"]["stdout"].as_str().expect("it has a log").to_owned();
    assert_eq!(fs::read(&log).expect("it can be read"), hostile_log(), "the log is what the task printed");
    let mut command = Command::new(programs().join("bin/python"));
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/screens/hostile.py")).env("LOG", log);
    command.env("SWARMC", env!("CARGO_BIN_EXE_swarmc")).env("SWARM_HOME", place.home()).current_dir(place.work());
    let output = command.output().expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
