//! Real editors against the real server: Neovim, old and new, Emacs, pytest-lsp as Visual Studio Code, and the extension for
//! the latter.
//!
//! `tests/install-editors` puts what is needed into a cache outside the checkout; these tests call it, and fail without.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::Value;
use swarmc_compiler::interpolation;
use tempfile::TempDir;

/// The folder with the programs, installed the first time that anyone asks.
fn programs() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let script = root().join("tests/install-editors");
        let output =
            Command::new(script).stderr(Stdio::inherit()).output().expect("tests/install-editors can be started");
        assert!(output.status.success(), "tests/install-editors failed: it says why above");
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end())
    });
    &FOLDER
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A copy of a folder of the checkout, without what a build has made there.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder of the checkout can be read") {
        let path = entry.expect("an entry can be read").path();
        let name = path.file_name().expect("an entry has a name");
        match path.is_dir() {
            true if name == "node_modules" || name == "dist" => {}
            true => copy(&path, &to.join(name)),
            false => drop(fs::copy(&path, to.join(name)).expect("a file can be copied")),
        }
    }
}

/// A workspace of its own with an example in it.
fn workspace() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder can be made");
    copy(&root().join("specs/feature"), folder.path());
    fs::create_dir(folder.path().join(".git")).expect("a folder can be made");
    folder
}

/// Runs a command, which must succeed; what it prints.
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed ({}):\n{printed}\n{told}", output.status);
    printed
}

#[test]
fn neovim_of_debian() {
    programs();
    neovim(Path::new("nvim"));
}

#[test]
fn neovim_of_today() {
    neovim(&programs().join("python/bin/nvim"));
}

fn neovim(program: &Path) {
    let (workspace, home) = (workspace(), TempDir::new().expect("a temporary folder can be made"));
    let printed = run(Command::new(program)
        .args(["--headless", "-u", "NONE", "-i", "NONE", "-c"])
        .arg(format!("luafile {}", root().join("tests/editors/neovim.lua").display()))
        .env("HOME", home.path())
        .env("XDG_CACHE_HOME", home.path())
        .env("XDG_STATE_HOME", home.path())
        .env("SWARMC", env!("CARGO_BIN_EXE_swarmc"))
        .env("CONFIG", root().join("editors/neovim/swarmc.lua"))
        .env("WORKSPACE", workspace.path())
        .current_dir(workspace.path()));
    assert!(printed.lines().count() >= 15 && printed.lines().all(|line| line.starts_with("ok - ")), "{printed}");
}

#[test]
fn emacs() {
    programs();
    let (workspace, home) = (workspace(), TempDir::new().expect("a temporary folder can be made"));
    let printed = run(Command::new("emacs")
        .args(["--batch", "-l"])
        .arg(root().join("tests/editors/emacs.el"))
        .env("HOME", home.path())
        .env("SWARMC", env!("CARGO_BIN_EXE_swarmc"))
        .env("SWARM_HOME", workspace.path().join(".swarm"))
        .env("CONFIG", root().join("editors/emacs/swarmc.el"))
        .env("WORKSPACE", workspace.path())
        .current_dir(workspace.path()));
    assert!(printed.lines().count() >= 12 && printed.lines().all(|line| line.starts_with("ok - ")), "{printed}");
}

#[test]
fn pytest_lsp_as_visual_studio_code() {
    let workspace = workspace();
    let printed = run(Command::new(programs().join("python/bin/python"))
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error::pytest_lsp.LspSpecificationWarning"])
        .arg(root().join("tests/editors/test_client.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SWARMC", env!("CARGO_BIN_EXE_swarmc"))
        .env("SWARM_HOME", workspace.path().join(".swarm"))
        .env("WORKSPACE", workspace.path())
        .current_dir(workspace.path()));
    assert!(printed.contains(" passed") && !printed.contains("skipped"), "{printed}");
}

/// Node's program of this name, in a copy of the extension.
fn node(extension: &Path, program: &str) -> Command {
    let mut command = Command::new(programs().join("node_modules/.bin").join(program));
    command.current_dir(extension);
    command
}

fn extension() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder can be made");
    copy(&root().join("editors/vscode"), folder.path());
    std::os::unix::fs::symlink(programs().join("node_modules"), folder.path().join("node_modules"))
        .expect("a link can be made");
    folder
}

#[test]
fn the_extension_is_packaged() {
    let extension = extension();
    run(node(extension.path(), "tsc").arg("--noEmit"));
    run(Command::new("npm")
        .args(["run", "--silent", "package", "--", "--out", "swarmc.vsix"])
        .current_dir(extension.path()));
    let listed =
        run(Command::new("python3").args(["-m", "zipfile", "-l", "swarmc.vsix"]).current_dir(extension.path()));
    let files: BTreeSet<&str> = listed.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    let expected = [
        "[Content_Types].xml",
        "extension.vsixmanifest",
        "extension/dist/extension.js",
        "extension/language-configuration.json",
        "extension/package.json",
        "extension/readme.md",
        "extension/snippets/kdl.json",
        "extension/snippets/prompt.json",
        "extension/syntaxes/kdl.tmLanguage.json",
        "extension/syntaxes/template.tmLanguage.json",
    ];
    assert_eq!(files, BTreeSet::from(expected));
    // The bundle is run, with a stand-in for the editor: what it registers, and what it says without the program.
    run(Command::new("node").args(["--test", "test/extension.test.mjs"]).current_dir(extension.path()));
}

#[test]
fn the_grammars_see_what_they_should() {
    let extension = extension();
    run(Command::new("node")
        .args(["--test", "test/grammar.test.mjs"])
        .env("SWARMC_SPECS", root().join("specs"))
        .current_dir(extension.path()));
}

#[test]
fn the_grammar_has_the_words_of_the_language() {
    let text = fs::read_to_string(root().join("editors/vscode/syntaxes/template.tmLanguage.json"))
        .expect("the grammar can be read");
    let grammar: Value = serde_json::from_str(&text).expect("the grammar is JSON");
    let words = |pattern: &Value, skip: usize| -> BTreeSet<String> {
        let pattern = pattern.as_str().expect("a pattern");
        let list = pattern.split(['(', ')']).filter(|part| part.contains('|') && !part.contains('\\')).nth(skip);
        list.unwrap_or_else(|| panic!("no list of words in {pattern}")).split('|').map(str::to_owned).collect()
    };
    let directives: BTreeSet<String> = interpolation::directive_terms().map(|term| term.word.to_owned()).collect();
    assert_eq!(words(&grammar["repository"]["directive"]["begin"], 0), directives);
    let filters: BTreeSet<String> = interpolation::directive_terms()
        .flat_map(|term| interpolation::directive_filters(term.word))
        .map(|term| term.word.to_owned())
        .collect();
    assert_eq!(words(&grammar["repository"]["filter"]["match"], 0), filters);
}

#[test]
fn the_manifest_offers_the_commands_that_there_are() {
    let read = |path: &str| fs::read_to_string(root().join("editors/vscode").join(path)).expect("it can be read");
    let manifest: Value = serde_json::from_str(&read("package.json")).expect("the manifest is JSON");
    let code = read("src/commands.ts") + &read("src/extension.ts");
    let commands = manifest["contributes"]["commands"].as_array().expect("commands");
    for command in commands {
        let name = command["command"].as_str().expect("a name");
        assert!(code.contains(&format!("\"{name}\"")), "{name} is registered nowhere");
    }
    assert!(commands.len() >= 8, "{commands:?}");
    let version = manifest["version"].as_str();
    assert_eq!(version, Some(env!("CARGO_PKG_VERSION")), "the extension and the program have one version");
}
