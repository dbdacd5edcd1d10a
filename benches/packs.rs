//! Context packs and diffs in a repository of 10,000 files: whole runs of one scripted task, with and without. A pack
//! may add 300 ms, and a diff a `git status` and half of one for its two looks at the tree, one before the turn and one
//! after it.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use divan::Bencher;

fn main() {
    divan::main();
}

const SPEC: &str = r#"
workflow large { default plain }
provider local { script { answer "ok" } }
provider shell { exec "sh" "-c" "cat >/dev/null; echo x >>src/d0/f0.rs; echo ok" }
agent one provider=local
agent two provider=shell
context-pack all { budget tokens=4000; goal "It"; files "src/**/*.rs" summary=#true max=20 }
pipeline plain { task work agent=one { prompt "Work" } }
pipeline packed { task work agent=one { prompt "Work" context=all } }
pipeline unwatched { task work { run "echo x >>src/d0/f0.rs; echo ok" }; task next agent=one { depends-on work; prompt "Go on" } }
pipeline watched { task work agent=two { prompt "Work" }; task next agent=one { depends-on work; prompt "Go on" } }
"#;

fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("repository");
    for directory in 0..100 {
        let place = root.join(format!("src/d{directory}"));
        std::fs::create_dir_all(&place).expect("a folder");
        for file in 0..100 {
            let mut text = format!("//! Reads things of kind {directory}.{file}. Well.\n");
            (0..60).for_each(|number| _ = writeln!(text, "pub fn f{number}() {{ let x = {number}; }}"));
            std::fs::write(place.join(format!("f{file}.rs")), text).expect("a file");
        }
    }
    std::fs::write(root.join("spec.kdl"), SPEC).expect("a spec");
    git(&root, &["init", "--quiet"]);
    git(&root, &["add", "-A"]);
    git(&root, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "One"]);
    folder
}

fn git(root: &Path, arguments: &[&str]) {
    let status = Command::new("git").args(arguments).current_dir(root).stdout(Stdio::null()).status();
    assert!(status.expect("git starts").success(), "{arguments:?}");
}

#[divan::bench(args = ["plain", "packed", "unwatched", "watched"], sample_count = 20)]
fn run(bencher: Bencher<'_, '_>, pipeline: &str) {
    let folder = repository();
    bencher.bench(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_swarmc"));
        command.args(["run", "spec.kdl", "--pipeline", pipeline]).current_dir(folder.path().join("repository"));
        command.env("SWARM_HOME", folder.path().join("home")).stdin(Stdio::null());
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("swarmc starts");
        assert!(status.success(), "{pipeline}");
    });
}

#[divan::bench(sample_count = 20)]
fn git_status(bencher: Bencher<'_, '_>) {
    let folder = repository();
    bencher.bench(|| git(&folder.path().join("repository"), &["status", "--porcelain", "-uall"]));
}
