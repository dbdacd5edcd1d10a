//! Reading KDL: our front end and the `kdl` crate on the same documents, in bytes a second; and a whole check, which has a
//! fifth of the time that the crate takes to read.
//!
//! The crate reads the smaller documents only, as it takes a second for each 1.5 MB.

use std::collections::BTreeMap;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use swarmc_compiler::syntax::{self, parse};
use swarmc_compiler::{FileId, O200k, Profile, Settings, Tokenizer, compile, compile_with};

fn main() {
    divan::main();
}

/// Short tasks one after another.
fn tasks(count: usize) -> String {
    let task = |index: usize| {
        format!(
            "    task check-{index} {{\n        depends-on check-{} when=any // in order\n        run cargo test \"--package\" p{index}\n        \
             timeout \"20m\"\n        retry 2 backoff=\"5s\"\n    }}\n",
            index.saturating_sub(1)
        )
    };
    format!("pipeline build {{\n{}}}\n", (0..count).map(task).collect::<String>())
}

/// Top-level nodes of one line.
fn flat(count: usize) -> String {
    (0..count).map(|index| format!("param input-{index} type=string default=\"value {index}\" // {index}\n")).collect()
}

/// Tasks with a long prompt each.
fn prompts(count: usize) -> String {
    let line = "        Read <<output:plan>> with care, and say in a few words what \\\"done\\\" means for it.\n";
    let task = |index: usize| format!("task t{index} {{\n    prompt \"\"\"\n{}        \"\"\"\n}}\n", line.repeat(13));
    (0..count).map(task).collect()
}

fn ours(bencher: Bencher<'_, '_>, text: &str) {
    assert!(parse(text, FileId::new(0)).problems.is_empty(), "the documents are valid");
    bencher.counter(BytesCount::of_str(text)).bench(|| parse(black_box(text), FileId::new(0)));
}

fn crates(bencher: Bencher<'_, '_>, text: &str) {
    bencher
        .counter(BytesCount::of_str(text))
        .bench(|| kdl::KdlDocument::parse_v2(black_box(text)).expect("it is valid"));
}

#[divan::bench(args = [100, 1_000, 10_000, 50_000])]
fn flat_ours(bencher: Bencher<'_, '_>, count: usize) {
    ours(bencher, &flat(count));
}

#[divan::bench(args = [100, 1_000], sample_count = 10)]
fn flat_crate(bencher: Bencher<'_, '_>, count: usize) {
    crates(bencher, &flat(count));
}

#[divan::bench(args = [100, 1_000, 10_000])]
fn tasks_ours(bencher: Bencher<'_, '_>, count: usize) {
    ours(bencher, &tasks(count));
}

#[divan::bench(args = [100, 1_000], sample_count = 10)]
fn tasks_crate(bencher: Bencher<'_, '_>, count: usize) {
    crates(bencher, &tasks(count));
}

#[divan::bench(args = [100, 1_000, 8_000])]
fn prompts_ours(bencher: Bencher<'_, '_>, count: usize) {
    ours(bencher, &prompts(count));
}

#[divan::bench(args = [100, 500], sample_count = 5)]
fn prompts_crate(bencher: Bencher<'_, '_>, count: usize) {
    crates(bencher, &prompts(count));
}

/// A right spec of many tasks, each with a prompt that reads the one before.
fn spec(count: usize) -> String {
    let task = |index: usize| match index {
        0 => "    task t0 { run echo start }\n".to_owned(),
        _ => format!(
            "    task t{index} {{\n        prompt \"Go on from here: <<output:t{} | tail:50>>\\n{{{{ param.goal }}}}\"\n        \
             timeout \"20m\"\n        retry 2 backoff=\"5s\"\n    }}\n",
            index - 1
        ),
    };
    let tasks: String = (0..count).map(task).collect();
    format!("param goal\nprovider local {{ exec cat }}\nagent writer provider=local\npipeline build {{\n{tasks}}}\n")
}

#[divan::bench(args = [100, 1_000, 10_000])]
fn check_ours(bencher: Bencher<'_, '_>, count: usize) {
    let text = spec(count);
    let size = BytesCount::of_str(&text);
    let files = BTreeMap::from([("flow.kdl".to_owned(), text)]);
    let checked = compile("flow.kdl", &files);
    assert!(checked.diagnostics.is_empty() && checked.plan.is_some(), "the spec is right");
    bencher.counter(size).bench(|| compile(black_box("flow.kdl"), &files));
}

#[divan::bench(args = [100, 1_000], sample_count = 10)]
fn check_crate_parse(bencher: Bencher<'_, '_>, count: usize) {
    crates(bencher, &spec(count));
}

/// The same with every rule on.
#[divan::bench(args = [100, 1_000, 10_000])]
fn audit_ours(bencher: Bencher<'_, '_>, count: usize) {
    let text = spec(count);
    let size = BytesCount::of_str(&text);
    let files = BTreeMap::from([("flow.kdl".to_owned(), text)]);
    let settings = Settings::new(Profile::Audit);
    bencher.counter(size).bench(|| compile_with(black_box("flow.kdl"), &files, &settings));
}

/// Prompts of 10 KB each, of prose, and a spec that asks an agent with each of them.
fn long_prompts(count: usize) -> (BTreeMap<String, String>, usize) {
    let prose = include_str!("../docs/language.md").replace(['<', '{'], "(");
    let prompt = |index: usize| {
        let start = prose.ceil_char_boundary(index * 997 % (prose.len() - 10_300));
        format!("{index}. {}", &prose[start..prose.ceil_char_boundary(start + 10_240)])
    };
    let mut files: BTreeMap<String, String> =
        (0..count).map(|index| (format!("prompts/{index}.md"), prompt(index))).collect();
    let size = files.values().map(String::len).sum();
    let task = |index: usize| format!("    task t{index} {{ prompt file=\"prompts/{index}.md\" }}\n");
    let tasks: String = (0..count).map(task).collect();
    let head = "provider local { exec my-model; context-window 8000 }\nagent reader provider=local model=gpt-5\n";
    files.insert("flow.kdl".to_owned(), format!("{head}pipeline read {{\n{tasks}}}\n"));
    (files, size)
}

/// Their bytes go beyond the window and their tokens do not, so each of them is counted.
#[divan::bench(args = [1_000], sample_count = 10)]
fn long_prompts_checked(bencher: Bencher<'_, '_>, count: usize) {
    let (files, size) = long_prompts(count);
    let checked = compile("flow.kdl", &files);
    assert!(checked.diagnostics.is_empty() && checked.plan.is_some(), "the spec is right");
    bencher.counter(BytesCount::new(size)).bench(|| compile(black_box("flow.kdl"), &files));
}

/// What that has for a measure: the counting alone.
#[divan::bench(args = [1_000], sample_count = 10)]
fn long_prompts_tokenized(bencher: Bencher<'_, '_>, count: usize) {
    let (files, size) = long_prompts(count);
    O200k.count("The vocabulary is loaded.");
    let prompts: Vec<&String> = files.iter().filter(|(name, _)| name.ends_with(".md")).map(|(_, text)| text).collect();
    bencher
        .counter(BytesCount::new(size))
        .bench(|| prompts.iter().map(|prompt| O200k.count(black_box(prompt))).sum::<u64>());
}

/// A letter is typed into one of many top-level nodes.
#[divan::bench(args = [1_000, 10_000])]
fn letter_typed(bencher: Bencher<'_, '_>, count: usize) {
    let text = flat(count);
    let at = text.len() / 2;
    let at = at + text[at..].find("value").expect("every node has a value");
    let edited = format!("{}x{}", &text[..at], &text[at..]);
    bencher
        .with_inputs(|| std::sync::Arc::new(parse(&text, FileId::new(0))))
        .bench_values(|tree| syntax::reparse(tree, black_box(&edited), FileId::new(0), at..at, 1));
}
