//! What the compiler of Rust does not hold: the picture of the crates, the pages, the reasons, the length of files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Which of our crates each may depend on, outside tests: the picture of docs/ARCHITECTURE.md.
const PICTURE: &[(&str, &[&str])] = &[
    ("swarmc", &["swarmc-compiler", "swarmc-lsp", "swarmc-plan", "swarmc-runtime", "swarmc-serve", "swarmc-view"]),
    ("swarmc-compiler", &["swarmc-plan"]),
    ("swarmc-endpoint", &[]),
    ("swarmc-engine", &["swarmc-runtime"]),
    ("swarmc-lsp", &["swarmc-compiler"]),
    ("swarmc-plan", &[]),
    ("swarmc-runtime", &["swarmc-plan", "swarmc-store"]),
    ("swarmc-serve", &["swarmc-plan", "swarmc-runtime", "swarmc-view"]),
    ("swarmc-store", &[]),
    ("swarmc-view", &["swarmc-plan", "swarmc-runtime"]),
];

/// Licences that a dependency may have one of.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The lines of a file at most.
const LONGEST_FILE: usize = 600;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file of the checkout.
pub(crate) fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("failed to read {path}: {error}"))
}

/// The files that belong to the project, relative to its root: no hidden ones, nothing that a build made.
pub(crate) fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![root().to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the checkout can be read") {
            let path = entry.expect("an entry can be read").path();
            let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
            match path.is_dir() {
                _ if name.starts_with('.') => {}
                true if name == "target" || name == "node_modules" => {}
                true => open.push(path),
                false => files.push(path.strip_prefix(root()).expect("it lies in the root").to_path_buf()),
            }
        }
    }
    files.sort();
    files
}

fn metadata() -> Value {
    // For this platform alone: packages of others were never downloaded.
    let version = String::from_utf8(cargo(&["-vV"])).expect("cargo writes UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host");
    let output = cargo(&["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host]);
    serde_json::from_slice(&output).expect("cargo writes JSON")
}

fn cargo(arguments: &[&str]) -> Vec<u8> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[test]
fn crates_depend_on_each_other_as_in_the_picture() {
    let metadata = metadata();
    let ours: Vec<&Value> = array(&metadata, "packages").iter().filter(|package| package["source"].is_null()).collect();
    let found: BTreeMap<&str, Vec<&str>> = ours
        .iter()
        .map(|package| {
            let mut names: Vec<&str> = array(package, "dependencies")
                .iter()
                .filter(|dependency| dependency["kind"].is_null() && !dependency["path"].is_null())
                .map(|dependency| word(dependency, "name"))
                .collect();
            names.sort();
            (word(package, "name"), names)
        })
        .collect();
    let expected: BTreeMap<&str, Vec<&str>> = PICTURE.iter().map(|(name, needs)| (*name, needs.to_vec())).collect();
    assert_eq!(found, expected);
}

#[test]
fn only_the_binary_draws_on_the_terminal() {
    let metadata = metadata();
    for package in array(&metadata, "packages").iter().filter(|package| package["source"].is_null()) {
        for dependency in array(package, "dependencies") {
            let fancy = array(dependency, "features")
                .iter()
                .any(|feature| feature.as_str().is_some_and(|f| f.starts_with("fancy")));
            let name = word(package, "name");
            assert!(
                !fancy || name == "swarmc",
                "{name} asks for the terminal's renderer of {}",
                word(dependency, "name")
            );
        }
    }
}

#[test]
fn dependencies_come_from_the_registry_under_licences_we_accept() {
    let metadata = metadata();
    for package in array(&metadata, "packages").iter().filter(|package| !package["source"].is_null()) {
        let name = word(package, "name");
        assert!(word(package, "source").starts_with("registry+"), "{name} comes from {}", package["source"]);
        let licence = word(package, "license");
        let accepted = licence.replace('/', " OR ").split(" OR ").any(|choice| {
            choice.split(" AND ").all(|part| {
                let part = part.trim_matches(['(', ')', ' ']);
                LICENCES.contains(&part.split(" WITH ").next().unwrap_or(part))
            })
        });
        assert!(accepted, "{name} has the licence `{licence}`, which is not on the list");
    }
}

/// A section of a manifest: the lines between its header and the next.
fn section<'a>(manifest: &'a str, header: &str) -> Vec<&'a str> {
    let after = manifest.lines().skip_while(|line| *line != header).skip(1);
    after.take_while(|line| !line.starts_with('[')).filter(|line| !line.trim().is_empty()).collect()
}

#[test]
fn dependencies_carry_a_reason() {
    let manifest = text("Cargo.toml");
    let lines = section(&manifest, "[workspace.dependencies]");
    let mut reasons = 0;
    for (index, line) in lines.iter().enumerate() {
        let given = line.contains(" # ");
        let named = GIVEN.iter().any(|name| line.starts_with(&format!("{name} =")));
        let ours = line.contains("path = ");
        let above = index > 0 && lines[index - 1].starts_with('#');
        assert!(line.starts_with('#') || given || named || ours || above, "say why it is there: {line}");
        reasons += usize::from(given);
    }
    assert!(reasons > 5, "the section was found");
}

/// What the design itself names: the reason stands there.
const GIVEN: &[&str] = &[
    "clap",
    "clap_complete",
    "clap_mangen",
    "divan",
    "insta",
    "proptest",
    "serde",
    "serde_json",
    "tempfile",
    "thiserror",
    "tokio",
];

#[test]
fn members_take_versions_and_lints_from_the_workspace() {
    // What an editor builds for itself is no member.
    let files = files();
    let own = files.iter().filter(|path| !path.starts_with("editors"));
    for manifest in own.filter(|path| path.file_name().is_some_and(|name| name == "Cargo.toml")) {
        let path = manifest.to_string_lossy();
        let text = text(&path);
        assert_eq!(section(&text, "[lints]"), ["workspace = true"], "lints of {path}");
        for header in ["[dependencies]", "[dev-dependencies]"] {
            for line in section(&text, header).iter().filter(|line| !line.starts_with('#')) {
                assert!(line.contains("workspace = true"), "{path}: the version belongs into the workspace: {line}");
            }
        }
    }
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let pages = fs::read_dir(root().join("compiler/src/codes")).expect("the folder of pages can be read");
    let mut pages: Vec<String> =
        pages.map(|page| page.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    pages.sort();
    let codes: Vec<String> = swarmc_compiler::Code::ALL.iter().map(|code| format!("{}.md", code.id())).collect();
    assert_eq!(pages, codes);
}

#[test]
fn files_are_short_enough_to_read() {
    for path in files().iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let path = path.to_string_lossy();
        let lines = text(&path).lines().count();
        assert!(lines <= LONGEST_FILE, "{path} has {lines} lines: look for the second module");
    }
}

#[test]
fn modules_open_with_their_story() {
    for path in files().iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let path = path.to_string_lossy();
        assert!(text(&path).starts_with("//!"), "{path} does not say what it is for");
    }
}

#[test]
fn nothing_is_left_for_later() {
    // Spelt in pieces, so that this file does not hold them.
    let banned =
        [["to", "do!("], ["unimple", "mented!("], ["FIX", "ME"], ["XX", "X:"], ["#[ig", "nore"], ["TO", "DO:"]];
    let sources = files().into_iter().filter(|path| {
        path.extension()
            .is_some_and(|extension| matches!(&*extension.to_string_lossy(), "rs" | "kdl" | "md" | "toml" | "sh"))
    });
    for path in sources {
        let path = path.to_string_lossy();
        let text = text(&path);
        for word in banned.map(|word| word.concat()) {
            assert!(!text.contains(&word), "{path} holds `{word}`");
        }
    }
}
