//! The pages of the codes, held to what they say.
//!
//! In: each page. Its `kdl error` block must raise the page's code and nothing else, its `kdl ok` block nothing at all.
//! Other files of a block stand in further blocks whose info string names their path: `md prompts/plan.md`.

use std::collections::BTreeMap;

use crate::{Code, Compilation, Overlay, Settings, compile_with, fix_spec};

/// A fenced block of Markdown.
struct Fence<'a> {
    info: &'a str,
    text: String,
}

#[test]
fn pages_open_with_their_code_and_name() {
    for code in Code::ALL {
        let title = format!("# {} {}\n\n", code.id(), code.name());
        assert!(code.page().starts_with(&title), "the page of {} must open with `{}`", code.id(), title.trim());
    }
}

#[test]
fn pages_hold_one_failing_and_one_mended_example() {
    for code in Code::ALL {
        let fences = list_fences(code.page());
        let count = |info: &str| fences.iter().filter(|fence| fence.info == info).count();
        assert_eq!((count("kdl error"), count("kdl ok")), (1, 1), "blocks of {}", code.id());
        for fence in &fences {
            let known = matches!(fence.info, "kdl error" | "kdl ok") || block_path(fence.info).is_some();
            assert!(known, "{}: nothing reads a block `{}`", code.id(), fence.info);
        }
    }
}

#[test]
fn pages_say_how_to_suppress_what_can_be_suppressed() {
    for code in Code::ALL {
        let says = code.page().contains(&format!("allow {} reason", code.id()));
        assert_eq!(says, code.is_suppressible(), "the page of {}", code.id());
    }
}

#[test]
fn failing_examples_raise_their_code_and_nothing_else() {
    check_pages("kdl error", |code| vec![code.id()]);
}

#[test]
fn mended_examples_raise_nothing() {
    check_pages("kdl ok", |_| Vec::new());
}

/// Compiles the block `info` of every page and compares the codes it raises.
fn check_pages(info: &str, expected: impl Fn(Code) -> Vec<&'static str>) {
    let mut wrong = Vec::new();
    for &code in Code::ALL {
        let settings = code_settings(code);
        let compilation = compile_with("spec.kdl", &page_files(code, info), &settings);
        let mut found = compilation.diagnostics.clone();
        if code == Code::StalePlan {
            found.extend(stale_diagnostic(&compilation, &plan_of_mended(&settings)));
        }
        if code == Code::NotImported && info == "kdl error" {
            found.extend(import_diagnostics());
        }
        if found.iter().map(|diagnostic| diagnostic.code.id()).collect::<Vec<_>>() != expected(code) {
            let found: Vec<String> =
                found.iter().map(|found| format!("\n    {}: {}", found.code.id(), found.message)).collect();
            wrong.push(format!(
                "{}: `{info}` raises{}",
                code.id(),
                if found.is_empty() { " nothing".to_owned() } else { found.concat() }
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The codes whose problems are mended by a fix: certainly, or probably.
const CERTAIN: &[Code] = &[
    Code::V1Literal,
    Code::UnusedSuppression,
    Code::UnquotedShell,
    Code::PreviousIteration,
    Code::LegacyDirective,
    Code::UnboundedLoop,
    Code::Deprecated,
];
const LIKELY: &[Code] = &[
    Code::UnknownNode,
    Code::UnknownReference,
    Code::UnusedDefinition,
    Code::UnknownField,
    Code::BadDirective,
    Code::UnattendedGate,
    Code::UnboundedInput,
    Code::DuplicatedContext,
    Code::UntrustedToCommand,
];

#[test]
fn fixes_mend_the_failing_examples() {
    let mut wrong = Vec::new();
    for (codes, guesses) in [(CERTAIN, false), (LIKELY, true)] {
        for &code in codes {
            let files = page_files(code, "kdl error");
            let mut overlay = Overlay::new(&files);
            let mended = fix_spec("spec.kdl", &mut overlay, &code_settings(code), guesses);
            for left in &mended.compilation.diagnostics {
                wrong.push(format!("{}: {} {}\n{:?}", code.id(), left.code.id(), left.message, overlay.texts));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A page's example with the files beside it.
fn page_files(code: Code, info: &str) -> BTreeMap<String, String> {
    let fences = list_fences(code.page());
    let mut files: BTreeMap<String, String> =
        fences.iter().filter_map(|fence| Some((block_path(fence.info)?.to_owned(), fence.text.clone()))).collect();
    let spec = fences.iter().find(|fence| fence.info == info).map(|fence| fence.text.clone()).unwrap_or_default();
    files.insert("spec.kdl".to_owned(), spec);
    files
}

/// With the rule on, and no other one of its profile: they would have more to say.
fn code_settings(code: Code) -> Settings {
    let mut settings = Settings::default();
    settings.levels.set(Some(code), Some(code.severity()));
    settings
}

/// What is said of a plan that was written when the spec was the mended example.
fn stale_diagnostic(compilation: &Compilation, written: &str) -> Option<crate::Diagnostic> {
    crate::check_stale(compilation, written, "plan.json", "swarmc plan spec.kdl -o plan.json").expect("it is a plan")
}

fn plan_of_mended(settings: &Settings) -> String {
    let files = page_files(Code::StalePlan, "kdl ok");
    let settings = Settings { count_tokens: true, ..settings.clone() };
    let plan = compile_with("spec.kdl", &files, &settings).plan;
    swarmc_plan::write_plan(&plan.expect("the mended example is right"))
}

/// What is lost of the compose file of its page.
fn import_diagnostics() -> Vec<crate::Diagnostic> {
    let files = page_files(Code::NotImported, "kdl error");
    let route = crate::Route { from: "compose.yaml", to: "spec.kdl", preset: "claude-code" };
    crate::import_compose(&files["compose.yaml"], route, &files).diagnostics
}

/// The path of a block that is a file of its own.
fn block_path(info: &str) -> Option<&str> {
    info.split_once(' ').map(|(_, path)| path).filter(|path| path.contains('.'))
}

fn list_fences(page: &str) -> Vec<Fence<'_>> {
    let mut fences = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let text: String = lines.by_ref().take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect();
        fences.push(Fence { info, text });
    }
    fences
}
