//! The extension for Visual Studio Code: its package, its modules, its grammars, and all of it inside of the editor.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use swarmc_compiler::interpolation;
use tempfile::TempDir;

use super::{copy, programs, root, run, workspace};
use crate::packaging::write_scripts;
use crate::tidy::text;

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

/// Runs tests of Node, in a copy of the extension.
fn run_node(extension: &Path, files: &[&str]) {
    let mut node = Command::new("node");
    node.arg("--test").args(files).current_dir(extension).env("SWARMC", env!("CARGO_BIN_EXE_swarmc"));
    run(node.env("SWARMC_SPECS", root().join("specs")));
}

/// What is in a package, each file with its mode.
fn list_package(path: &Path) -> Vec<(String, u32)> {
    let script = "import sys, zipfile\nfor entry in zipfile.ZipFile(sys.argv[1]).infolist(): print(entry.filename, \
                  entry.external_attr >> 16 & 0o777)";
    let listed = run(Command::new("python3").args(["-c", script]).arg(path));
    let entries = listed.lines().filter_map(|line| line.rsplit_once(' '));
    entries.map(|(name, mode)| (name.to_owned(), mode.parse().expect("a mode"))).collect()
}

/// A file of a package.
fn read_package(path: &Path, name: &str) -> String {
    let script = "import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]).decode())";
    run(Command::new("python3").args(["-c", script]).arg(path).arg(name))
}

/// What every package has.
const FILES: [&str; 19] = [
    "[Content_Types].xml",
    "extension.vsixmanifest",
    "extension/LICENSE.txt",
    "extension/changelog.md",
    "extension/dist/extension.js",
    "extension/images/icon.png",
    "extension/images/runs.svg",
    "extension/language-configuration.json",
    "extension/package.json",
    "extension/readme.md",
    "extension/snippets/kdl.json",
    "extension/snippets/prompt.json",
    "extension/syntaxes/kdl.tmLanguage.json",
    "extension/syntaxes/template.tmLanguage.json",
    "extension/walkthrough/check.md",
    "extension/walkthrough/init.md",
    "extension/walkthrough/program.md",
    "extension/walkthrough/run.md",
    "extension/walkthrough/test.md",
];

#[test]
fn the_extension_is_packaged_without_a_warning() {
    let extension = extension();
    run(node(extension.path(), "tsc").arg("--noEmit"));
    let mut npm = Command::new("npm");
    npm.args(["run", "package", "--", "--out", "swarmc.vsix"]).current_dir(extension.path());
    // There vsce writes its warnings, and that it is done, in the words of that place.
    npm.env_remove("GITHUB_ACTIONS");
    let (code, printed) = crate::packaging::run_to_end(&mut npm);
    assert!(code == Some(0) && printed.contains(" DONE ") && !printed.contains(" WARNING "), "{printed}");
    let files = list_package(&extension.path().join("swarmc.vsix"));
    let files: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(files, BTreeSet::from(FILES));
    // The bundle is run, with a stand-in for the editor: what it registers, and what it says without the program.
    run_node(extension.path(), &["test/extension.test.mjs"]);
}

#[test]
fn modules_find_the_program_and_read_what_it_prints() {
    let extension = extension();
    run_node(extension.path(), &["test/search.test.mjs", "test/testResults.test.mjs", "test/runTree.test.mjs"]);
}

#[test]
fn types_of_documents_are_those_of_the_schemas() {
    let extension = extension();
    let mut node = Command::new("node");
    run(node.arg("documents.mjs").arg(root().join("view/schemas")).current_dir(extension.path()));
    let written = fs::read_to_string(extension.path().join("src/documents.ts")).expect("it was written");
    assert!(written == text("editors/vscode/src/documents.ts"), "run `node editors/vscode/documents.mjs`");
}

#[test]
fn the_license_of_the_extension_holds_both() {
    let license = text("editors/vscode/LICENSE");
    assert!(license.contains(&text("LICENSE-MIT")) && license.contains(&text("LICENSE-APACHE")));
    assert!(text("editors/vscode/CHANGELOG.md").contains(&format!("## {}\n", env!("CARGO_PKG_VERSION"))));
}

/// The packages that a release has for this machine: the program in them is a script that starts the one under test.
struct Packages {
    folder: TempDir,
    files: Vec<PathBuf>,
}

fn pack() -> Packages {
    let folder = TempDir::new().expect("a temporary folder can be made");
    write_scripts(folder.path());
    let program = folder.path().join("program");
    let mut vsix = Command::new(root().join("packaging/vsix"));
    vsix.arg("--out").arg(folder.path()).env("SWARMC_BINARY", program).env("GITHUB_REPOSITORY", "someone/swarmc");
    vsix.env("SWARMC_NODE_MODULES", programs().join("node_modules")).env("PYTHONDONTWRITEBYTECODE", "1");
    let files = run(&mut vsix).lines().map(PathBuf::from).collect();
    Packages { folder, files }
}

/// The machine, as Visual Studio Code names it.
fn machine() -> String {
    let processor = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
    format!("linux-{processor}")
}

#[test]
fn packages_bring_the_program_and_one_does_not() {
    let packages = pack();
    let path = |name: &str| packages.folder.path().join(format!("swarmc-{name}.vsix"));
    let alpine = machine().replace("linux", "alpine");
    assert_eq!(packages.files, [path("universal"), path(&machine()), path(&alpine)]);
    let program = |name: &str| {
        let files = list_package(&path(name)).into_iter();
        files.filter(|(file, _)| !FILES.contains(&file.as_str())).collect::<BTreeSet<_>>()
    };
    assert_eq!(program("universal"), BTreeSet::new());
    for machine in [machine(), alpine] {
        let brought = ["swarmc", "swarmc-shim"].map(|name| (format!("extension/bin/{name}"), 0o755));
        assert_eq!(program(&machine), BTreeSet::from(brought));
        let manifest = read_package(&path(&machine), "extension.vsixmanifest");
        assert!(manifest.contains(&format!("TargetPlatform=\"{machine}\"")), "{manifest}");
    }
    for page in ["extension/package.json", "extension/readme.md", "extension/changelog.md"] {
        let text = read_package(&path("universal"), page);
        assert!(text.contains("github.com/someone/swarmc") && !text.contains("OWNER"), "{page}");
    }
}

const TESTED: &str = r#"pipeline p {
    task a { run "echo hi" }
    result a
}
test good { fake a "hi"; expect { status success } }
test bad { fake a "hi"; expect { result equals="ho" } }
"#;

const GATE: &str = r#"workflow ship
pipeline ship {
    task build { run "echo built" }
    gate go { message "Ship <<output:build>>?"; options yes no; on-timeout no after="24h" }
    task send { when "output.go.choice == 'yes'"; run "echo sent" }
}
"#;

/// The package is installed, and the editor runs with it: `tests/editors/vscode/trial.js` does what a person does.
#[test]
fn visual_studio_code() {
    crate::patience::begin();
    let (packages, workspace) = (pack(), workspace());
    fs::create_dir(workspace.path().join("tests")).expect("a folder can be made");
    for (name, spec) in [("tested.kdl", TESTED), ("gate.kdl", GATE)] {
        fs::write(workspace.path().join("tests").join(name), spec).expect("a spec can be written");
    }
    let home = TempDir::new().expect("a temporary folder can be made");
    let server = programs().join("code/node_modules/code-server/lib/vscode/out/server-main.js");
    let printed = run(Command::new("node")
        .arg(root().join("tests/editors/vscode/drive.mjs"))
        .env("SERVER", server)
        .env("VSIX", &packages.files[1])
        .env("WORKSPACE", workspace.path())
        .env("SWARM_HOME", home.path().join("swarm"))
        .env("HOME", home.path()));
    assert!(printed.lines().count() >= 15 && printed.lines().all(|line| line.starts_with("ok - ")), "{printed}");
}

#[test]
fn the_grammars_see_what_they_should() {
    run_node(extension().path(), &["test/grammar.test.mjs"]);
}

#[test]
fn the_grammar_has_the_words_of_the_language() {
    let grammar: Value =
        serde_json::from_str(&text("editors/vscode/syntaxes/template.tmLanguage.json")).expect("the grammar is JSON");
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
    let code = ["commands", "extension", "runView"].map(|name| read(&format!("src/{name}.ts"))).concat();
    let commands = manifest["contributes"]["commands"].as_array().expect("commands");
    for command in commands {
        let name = command["command"].as_str().expect("a name");
        assert!(code.contains(&format!("\"{name}\"")), "{name} is registered nowhere");
    }
    assert!(commands.len() >= 8, "{commands:?}");
    let version = manifest["version"].as_str();
    assert_eq!(version, Some(env!("CARGO_PKG_VERSION")), "the extension and the program have one version");
}
