//! Real editors against the real server: Neovim, old and new, Emacs, Visual Studio Code, and pytest-lsp as one more.
//!
//! `tests/install-editors` puts what is needed into a cache outside the checkout; these tests call it, and fail without.

mod vscode;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

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

/// Runs a command, which must succeed; what it prints. It runs as on the machine of a person: where `CI` is set, gates
/// do not wait.
fn run(command: &mut Command) -> String {
    let output =
        command.env_remove("CI").stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
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
    // The plugin as a package, where `packadd` takes it.
    let site = home.path().join("site");
    copy(&root().join("editors/neovim"), &site.join("pack/trial/opt/swarmc"));
    let printed = run(Command::new(program)
        .args(["--headless", "-u", "NONE", "-i", "NONE", "-c"])
        .arg(format!("luafile {}", root().join("tests/editors/neovim.lua").display()))
        .env("HOME", home.path())
        .env("XDG_CACHE_HOME", home.path())
        .env("XDG_STATE_HOME", home.path())
        .env("SWARMC", env!("CARGO_BIN_EXE_swarmc"))
        .env("SITE", &site)
        .env("WORKSPACE", workspace.path())
        .current_dir(workspace.path()));
    assert!(printed.lines().count() >= 21 && printed.lines().all(|line| line.starts_with("ok - ")), "{printed}");
}

/// What `:help swarmc` says of lazy.nvim, and of `vim.lsp.enable`: the folder on the runtime path is enough.
#[test]
fn neovim_with_the_plugin_on_its_runtime_path() {
    let plugin = root().join("editors/neovim");
    let set_up = "require('swarmc').setup({ command = { vim.env.SWARMC, 'lsp' }, settings = { codeLens = false } }); \
                  assert(vim.fn.exists(':SwarmcPlan') == 2, 'commands'); \
                  assert(require('swarmc').config().init_options.codeLens == false, 'settings'); io.write('ok')";
    let enable = "vim.g.swarmc_command = { vim.env.SWARMC, 'lsp' }; vim.lsp.enable('swarmc'); \
                  assert(vim.lsp.config.swarmc.cmd[1] == vim.env.SWARMC, 'lsp/swarmc.lua'); io.write('ok')";
    let today = programs().join("python/bin/nvim");
    for (program, code) in [(Path::new("nvim"), set_up), (&today, set_up), (&today, enable)] {
        let home = TempDir::new().expect("a temporary folder can be made");
        let mut nvim = Command::new(program);
        nvim.args(["--headless", "-u", "NONE", "-i", "NONE"]).arg("--cmd");
        nvim.arg(format!("set runtimepath+={}", plugin.display()))
            .arg("-c")
            .arg(format!("lua {code}"))
            .args(["-c", "quitall!"]);
        let nvim = nvim.env("SWARMC", env!("CARGO_BIN_EXE_swarmc")).env("HOME", home.path());
        assert_eq!(run(nvim.env("XDG_STATE_HOME", home.path())), "ok", "{code}");
    }
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
