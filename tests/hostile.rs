//! Texts that make parsers slow, recurse or die: ours reads each in time that grows with its length and no faster.

use std::time::{Duration, Instant};

use swarmc_compiler::FileId;
use swarmc_compiler::syntax;

/// What is repeated: everything that opens and does not close, nests, looks ahead or is complained about.
const PATTERNS: &[&str] = &[
    "a /-{ ",
    "}",
    "/*\n",
    "a{",
    "\"",
    "\"\n",
    "\"\"\"\n",
    "#\"\"\"\n",
    "\"\\\n",
    "a \"x\n",
    "r\"\n",
    "#\"\n",
    "##\"",
    "[;",
    "a [",
    "'a ",
    "«a ",
    "a/**/",
    "\\ ",
    "/-",
    "/- ",
    "(",
    "(a",
    "a(",
    "a=",
    "=",
    "\\",
    "a\\",
    "\u{0}",
    "/",
    "//",
    "*/",
    "{\n",
    "a\n{\n",
    "{;",
    "\u{B}\"",
    "#",
    "\"\"\"a",
    "\\\"\"\"\n",
    ", ",
    "a,",
    "-\n",
    "a:\n",
    "é",
    "\u{85}",
    "\"\u{200E}",
    "a \"\"\"\n  \\\n",
    "/* */ ",
    "x /* ",
    "\r",
    "\t\"",
    "a {\n",
    "a 1 2 3\n",
    "{}",
];

/// How long a pattern takes, repeated to a length in bytes.
fn time(pattern: &str, length: usize) -> Duration {
    let text = pattern.repeat(length / pattern.len());
    let start = Instant::now();
    let tree = syntax::parse(&text, FileId::new(0));
    let time = start.elapsed();
    assert_eq!(tree.tokens.last().map(|token| token.end as usize), Some(text.len()), "{pattern:?} is not covered");
    time
}

#[test]
fn hostile_texts_take_time_in_proportion_to_their_length() {
    for pattern in PATTERNS {
        // Sixteen times the text would take 256 times as long if it were read again and again. On a busy machine a single
        // measurement says little, so the best of some counts.
        let proportional =
            (0..5).any(|_| time(pattern, 1 << 18) < time(pattern, 1 << 14) * 64 + Duration::from_millis(5));
        assert!(
            proportional,
            "{pattern:?}: {:?}, and {:?} for 16 times as much",
            time(pattern, 1 << 14),
            time(pattern, 1 << 18)
        );
    }
}

#[test]
fn raw_strings_without_end_do_not_make_each_other_slow() {
    // Each has another number of `#`, so that none can learn from the one before.
    let open =
        |count: usize| (1..count).rev().map(|marks| format!("a {}\"\"\"\n", "#".repeat(marks))).collect::<String>();
    let text = open(500) + &"b\n\"#\n".repeat(50_000);
    let start = Instant::now();
    let tree = syntax::parse(&text, FileId::new(0));
    assert_eq!(tree.problems.len(), 100, "as many as are reported");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?} for {} bytes", start.elapsed(), text.len());
}
