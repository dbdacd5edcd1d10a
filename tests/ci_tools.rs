//! The files for CI with the real tools: the action by act, the hooks by pre-commit, the template by gitlab-ci-local.
//!
//! `tests/install-ci` installs the tools; these tests call it, and fail without. Nothing leaves this machine: GitHub, and the
//! place of releases, are a server on the loopback interface.

mod server;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::packaging::{programs, run, run_to_end};
use crate::tidy::root;
use server::Server;

const GOOD: &str = "workflow w\npipeline p {\n    task a { run echo }\n}\n";
const BAD: &str = "workflow w\npipeline p {\n    task a { run echo }\n    task b { depends-on c; run ls }\n}\n";
const MORE: &str = "workflow w\npipeline p {\n    task a { run \"echo; ls\" }\n}\n";

/// A repository with a good spec in its first commit, and the tools with the swarmc under test.
struct Repository {
    folder: TempDir,
    /// What `PATH` is.
    path: String,
}

impl Repository {
    fn new() -> Repository {
        crate::patience::begin();
        let folder = TempDir::new().expect("a temporary folder can be made");
        for name in ["repository", "bin", "home"] {
            fs::create_dir(folder.path().join(name)).expect("a folder can be made");
        }
        symlink(env!("CARGO_BIN_EXE_swarmc"), folder.path().join("bin/swarmc")).expect("a link can be made");
        let ours = folder.path().join("bin").display().to_string();
        let tools = programs().join("bin").display().to_string();
        let path = format!("{ours}:{tools}:{}", std::env::var("PATH").expect("there is a PATH"));
        let repository = Repository { folder, path };
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository.commit("flow.kdl", GOOD);
        repository
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.at("repository").join(name);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder can be made");
        fs::write(path, text).expect("a file can be written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at("repository").join(name)).expect("a file can be read")
    }

    /// A program that starts in the repository, with a home of its own.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.at("repository")).env("PATH", &self.path).env("HOME", self.at("home"));
        for variable in ["CI", "GIT_DIR", "XDG_CACHE_HOME", "GITHUB_ACTIONS", "CLICOLOR_FORCE"] {
            command.env_remove(variable);
        }
        for (name, value) in [("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b"), ("GIT_CONFIG_NOSYSTEM", "1")] {
            command.env(name, value).env(name.replace("AUTHOR", "COMMITTER"), value);
        }
        command
    }

    fn git(&self, arguments: &[&str]) -> String {
        run(self.command("git").args(arguments)).trim_end().to_owned()
    }

    fn commit(&self, name: &str, text: &str) {
        self.write(name, text);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--no-verify", "--message", "Change"]);
    }

    /// Runs the action on a pull request by act, with inputs; its exit code, and what it prints.
    fn run_action(&self, inputs: &[&str], server: &Server) -> (Option<i32>, String) {
        let base = self.git(&["rev-parse", "main"]);
        let event = json!({ "pull_request": { "number": 7, "base": { "sha": base, "ref": "main" } } });
        fs::write(self.at("event.json"), event.to_string()).expect("a file can be written");
        let inputs: String = inputs.iter().map(|input| format!("          {input}\n")).collect();
        self.write(
            ".github/workflows/check.yml",
            &format!(
                "on: pull_request\njobs:\n  check:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v5\n      \
                 - uses: owner/swarmc@v0\n        with:\n{inputs}"
            ),
        );
        // The files that users get, and in the place of the action that uploads one that keeps what it gets.
        let (action, upload) = (self.at("action"), self.at("upload/upload-sarif"));
        fs::create_dir_all(action.join("ci")).expect("a folder can be made");
        fs::create_dir_all(&upload).expect("a folder can be made");
        for file in ["action.yml", "ci/install", "ci/plan-diff", "ci/comment"] {
            fs::copy(root().join(file), action.join(file)).expect("a file can be copied");
        }
        let keep = "name: keep\ndescription: Keeps a file\ninputs:\n  sarif_file:\n    required: true\n  category:\n    \
                    required: true\nruns:\n  using: composite\n  steps:\n    - shell: bash\n      \
                    run: cp \"${{ inputs.sarif_file }}\" \"$UPLOADED\"\n";
        fs::write(upload.join("action.yml"), keep).expect("a file can be written");
        let mut act = self.command("act");
        act.args(["pull_request", "--platform", "ubuntu-latest=-self-hosted", "--secret", "GITHUB_TOKEN=the-token"]);
        act.arg("--eventpath").arg(self.at("event.json"));
        for (name, folder) in [("owner/swarmc@v0", "action"), ("github/codeql-action@v4", "upload")] {
            act.arg("--local-repository").arg(format!("{name}={}", self.at(folder).display()));
        }
        let variables = [
            ("GITHUB_API_URL", server.address()),
            ("GITHUB_REPOSITORY", "owner/project".to_owned()),
            ("UPLOADED", self.at("uploaded.sarif").display().to_string()),
        ];
        for (name, value) in variables {
            act.arg("--env").arg(format!("{name}={value}"));
        }
        run_to_end(&mut act)
    }
}

/// A server on which the pull request has these comments.
fn github(comments: Value) -> Server {
    Server::start(move |request| match (request.method.as_str(), request.path.as_str()) {
        ("GET", path) if path.starts_with("/repos/owner/project/issues/7/comments?") => {
            (200, comments.to_string().into())
        }
        ("POST", "/repos/owner/project/issues/7/comments") => (201, b"{}".to_vec()),
        ("PATCH" | "DELETE", "/repos/owner/project/issues/comments/42") => (200, b"{}".to_vec()),
        _ => (404, b"{}".to_vec()),
    })
}

#[test]
fn the_action_annotates_uploads_and_comments() {
    let repository = Repository::new();
    let server = github(json!([{ "id": 1, "body": "Looks good." }]));
    repository.git(&["checkout", "--quiet", "-b", "work"]);
    repository.commit("flow.kdl", MORE);
    repository.commit("new.kdl", BAD);
    let (code, printed) = repository.run_action(&["sarif: \"true\"", "paths: new.kdl", "since: main"], &server);
    assert_eq!(code, Some(1), "{printed}");
    let annotation =
        "::error file=new.kdl,line=4,endLine=4,col=25,endColumn=26,title=SW101 unknown-reference::there is no step";
    assert!(printed.contains(annotation), "{printed}");
    assert!(printed.contains("Failure - Main Check workflows"), "{printed}");
    let sarif = fs::read_to_string(repository.at("uploaded.sarif")).expect("the problems were uploaded");
    let sarif: Value = serde_json::from_str(&sarif).expect("SARIF is JSON");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "SW101");
    let requests = server.requests();
    let written: Vec<_> = requests.iter().filter(|request| request.method != "GET").collect();
    assert_eq!(written.len(), 1, "{requests:#?}");
    assert!(written[0].head.contains("Authorization: Bearer the-token"), "{}", written[0].head);
    let body: Value = serde_json::from_str(&written[0].body).expect("a comment is JSON");
    let body = body["body"].as_str().expect("it has a body");
    assert!(
        body.starts_with("<!-- swarmc plan-diff -->\n## What the workflows do otherwise\n\n### `flow.kdl`\n"),
        "{body}"
    );
    assert!(body.contains("privilege") && body.contains("echo; ls"), "{body}");
    assert!(!body.contains("new.kdl"), "a spec with errors has no plan: {body}");
}

#[test]
fn the_action_passes_where_nothing_is_wrong() {
    let repository = Repository::new();
    let server = github(json!([{ "id": 42, "body": "<!-- swarmc plan-diff -->\nOld." }]));
    repository.commit("other/bad.kdl", BAD);
    repository.git(&["checkout", "--quiet", "-b", "work"]);
    repository.commit("notes.md", "Nothing.\n");
    let (code, printed) = repository.run_action(&["since: main", "arguments: --profile=strict"], &server);
    assert!(
        code == Some(0) && printed.contains("no problems in 0 specs (2 specs are unchanged since `main`)"),
        "{printed}"
    );
    assert!(!repository.at("uploaded.sarif").exists(), "uploads are for those who want them");
    // What was said of an older state of the pull request is gone.
    let methods: Vec<String> = server.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["GET", "DELETE"]);
    let (code, printed) = repository.run_action(&["plan-diff: \"false\""], &server);
    assert!(code == Some(1) && printed.contains("file=other/bad.kdl"), "{printed}");
    assert_eq!(server.requests().len(), 2, "no comment was wanted");
}

#[test]
fn a_comment_is_changed_and_its_permission_is_named() {
    let repository = Repository::new();
    let page = repository.at("page.md");
    fs::write(&page, "Text \"quoted\" and `ticked`, größer.\n").expect("a file can be written");
    let comment = |server: &Server| {
        let mut command = repository.command("sh");
        command.arg(root().join("ci/comment")).arg(&page).env("GITHUB_API_URL", server.address());
        command.env("GITHUB_REPOSITORY", "owner/project").env("GITHUB_TOKEN", "t").env("PULL_REQUEST", "7");
        run(&mut command)
    };
    let server = github(json!([{ "id": 41, "body": "Hm." }, { "id": 42, "body": "<!-- swarmc plan-diff -->\nOld." }]));
    assert_eq!(comment(&server), "");
    let changed = server.requests().pop().expect("there is a request");
    assert_eq!((changed.method.as_str(), changed.path.as_str()), ("PATCH", "/repos/owner/project/issues/comments/42"));
    let body: Value = serde_json::from_str(&changed.body).expect("a comment is JSON");
    assert_eq!(body["body"], "<!-- swarmc plan-diff -->\nText \"quoted\" and `ticked`, größer.\n");
    let refusing = Server::start(|_| (403, b"{}".to_vec()));
    let told = comment(&refusing);
    assert!(
        told.contains("::notice title=swarmc::The comments cannot be read") && told.contains("pull-requests: write"),
        "{told}"
    );
}

#[test]
fn plans_of_two_commits_are_compared() {
    let repository = Repository::new();
    let diff = |more: &[&str]| {
        let mut command = repository.command("sh");
        run_to_end(command.arg(root().join("ci/plan-diff")).args(more))
    };
    repository.commit("sub/gone.kdl", GOOD);
    repository.commit("sub/broken.kdl", BAD);
    assert_eq!(diff(&["main"]), (Some(0), String::new()));
    repository.git(&["checkout", "--quiet", "-b", "work"]);
    repository.write("new.kdl", GOOD);
    repository.write("sub/broken.kdl", GOOD);
    repository.write("flow.kdl", MORE);
    repository.write("notes.kdl", "notes \"of another program\"\n");
    fs::remove_file(repository.at("repository/sub/gone.kdl")).expect("it is there");
    let (code, page) = diff(&["main"]);
    assert_eq!(code, Some(0), "{page}");
    let heads: Vec<&str> = page.lines().filter(|line| line.starts_with('#')).collect();
    let expected = [
        "## What the workflows do otherwise",
        "### `flow.kdl`",
        "### `new.kdl` is new",
        "### `sub/broken.kdl` cannot be compared: it had errors before",
        "### `sub/gone.kdl` is gone",
    ];
    assert_eq!(heads, expected, "{page}");
    let (code, page) = diff(&["main", "sub"]);
    assert!(code == Some(0) && !page.contains("flow.kdl") && page.contains("sub/gone.kdl"), "{page}");
    let (code, told) = diff(&["origin/none"]);
    assert!(code == Some(2) && told.contains("there is no commit `origin/none` to compare with"), "{told}");
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1, "what it made is gone");
}

/// A release 9.9.9 for this machine, with the swarmc under test; its checksum is right or not.
fn serve_release(repository: &Repository, is_right: bool) -> Server {
    let name = format!("swarmc-9.9.9-{}-unknown-linux-musl", std::env::consts::ARCH);
    let folder = repository.at("release").join(&name);
    fs::create_dir_all(&folder).expect("a folder can be made");
    let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_swarmc"));
    fs::write(folder.join("swarmc"), script).expect("a file can be written");
    run(Command::new("chmod").arg("+x").arg(folder.join("swarmc")));
    let archive = repository.at("release.tar.gz");
    run(Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(repository.at("release")).arg(&name));
    let bytes = fs::read(&archive).expect("it is there");
    let sum = run(Command::new("sha256sum").arg(&archive));
    let digest = sum.split(' ').next().unwrap_or_default();
    let digest: String = if is_right { digest.to_owned() } else { digest.chars().rev().collect() };
    let address = format!("/releases/download/v9.9.9/{name}.tar.gz");
    Server::start(move |request| match request.path.as_str() {
        "/releases/latest" => (302, b"/releases/tag/v9.9.9".to_vec()),
        "/releases/tag/v9.9.9" => (200, Vec::new()),
        path if path == address => (200, bytes.clone()),
        path if path == format!("{address}.sha256") => (200, format!("{digest}  {name}.tar.gz\n").into()),
        _ => (404, Vec::new()),
    })
}

#[test]
fn a_release_is_installed_only_as_its_checksum_says() {
    let repository = Repository::new();
    let folder = repository.at("installed");
    let install = |server: &Server, version: &str| {
        let mut command = repository.command("sh");
        command.arg(root().join("ci/install")).arg(format!("{}/releases", server.address())).arg(version);
        run_to_end(command.arg(&folder))
    };
    let server = serve_release(&repository, true);
    let place = folder.join(format!("swarmc-9.9.9-{}-unknown-linux-musl", std::env::consts::ARCH));
    for version in ["latest", "9.9.9", "v9.9.9"] {
        let (code, printed) = install(&server, version);
        assert!(code == Some(0) && printed.starts_with(&format!("{}\n", place.display())), "{version}: {printed}");
        assert!(run(Command::new(place.join("swarmc")).arg("--version")).starts_with("swarmc "));
        fs::remove_dir_all(&folder).expect("a folder can be removed");
    }
    let (code, printed) = install(&serve_release(&repository, false), "latest");
    assert!(code == Some(2) && printed.contains("is not what its checksum says"), "{printed}");
    assert!(!place.exists(), "what was not verified is not unpacked");
    let (code, printed) = install(&server, "1.0.0");
    assert!(code == Some(2) && printed.contains("cannot download"), "{printed}");
    // The action installs it where there is none, and a release that is named in any case.
    let releases = format!("releases: {}/releases", server.address());
    for version in ["version: 9.9.9", "version: \"\""] {
        let before = server.requests().len();
        let (code, printed) = repository.run_action(&[&releases, version, "plan-diff: \"false\""], &server);
        assert!(code == Some(0) && printed.contains("no problems in 1 spec"), "{printed}");
        assert!(server.requests().len() > before, "{version}: nothing was downloaded");
        let _ = fs::remove_file(repository.at("bin/swarmc"));
    }
}

#[test]
fn hooks_of_pre_commit_check_and_format() {
    let repository = Repository::new();
    // A hook repository is a Git repository with a commit.
    let hooks = repository.at("hooks");
    fs::create_dir(&hooks).expect("a folder can be made");
    fs::copy(root().join(".pre-commit-hooks.yaml"), hooks.join(".pre-commit-hooks.yaml")).expect("it can be copied");
    for arguments in [&["init", "--quiet"][..], &["add", "--all"], &["commit", "--quiet", "--message", "Hooks"]] {
        run(repository.command("git").args(arguments).current_dir(&hooks));
    }
    let revision = run(repository.command("git").args(["rev-parse", "HEAD"]).current_dir(&hooks));
    let config = format!(
        "repos:\n  - repo: {}\n    rev: {revision}    hooks:\n      - id: swarmc-check\n      - id: swarmc-fmt\n",
        hooks.display()
    );
    repository.commit(".pre-commit-config.yaml", &config);
    run(repository.command("pre-commit").arg("install"));
    let commit = |name: &str, text: &str| {
        repository.write(name, text);
        repository.git(&["add", "--all"]);
        run_to_end(repository.command("git").args(["commit", "--message", "Change"]))
    };
    let (code, printed) = commit("flow.kdl", BAD);
    assert!(code == Some(1) && printed.contains("flow.kdl:4:25: error[SW101]"), "{printed}");
    let (code, printed) = commit("flow.kdl", &GOOD.replace("    task", " task"));
    assert!(code == Some(1) && printed.contains("files were modified by this hook"), "{printed}");
    assert_eq!(repository.read("flow.kdl"), GOOD);
    let (code, printed) = commit("flow.kdl", MORE);
    assert!(code == Some(0) && printed.matches("Passed").count() == 2, "{printed}");
    let all = run(repository.command("pre-commit").args(["run", "--all-files"]));
    assert_eq!(all.matches("Passed").count(), 2, "{all}");
}

#[test]
fn the_template_of_gitlab_checks_a_merge_request() {
    let repository = Repository::new();
    fs::copy(root().join("ci/gitlab.yml"), repository.at("repository/.gitlab-ci.yml")).expect("it can be copied");
    repository.git(&["remote", "add", "origin", "https://gitlab.invalid/owner/project.git"]);
    repository.commit("prompts/unused.md", "Text.\n");
    repository.commit("old.kdl", BAD);
    let base = repository.git(&["rev-parse", "HEAD"]);
    let job = |variables: &[String]| {
        let mut command = repository.command("gitlab-ci-local");
        command.args(["--force-shell-executor", "--no-color", "swarmc"]);
        run_to_end(command.args(variables.iter().flat_map(|variable| ["--variable", variable])))
    };
    let (code, printed) = job(&[]);
    assert!(code == Some(1) && printed.contains("old.kdl:4:25: error[SW101]"), "{printed}");
    let (code, printed) = job(&[format!("CI_MERGE_REQUEST_DIFF_BASE_SHA={base}")]);
    assert!(code == Some(0) && printed.contains("(2 specs are unchanged since"), "{printed}");
    let (code, printed) = job(&["SWARMC_PATHS=flow.kdl".to_owned(), "SWARMC_ARGUMENTS=--profile strict".to_owned()]);
    assert!(code == Some(0) && printed.contains("no problems in 1 spec"), "{printed}");
    // Without a swarmc, the release is taken that is named.
    fs::remove_file(repository.at("bin/swarmc")).expect("it is there");
    let (code, printed) = job(&[]);
    assert!(code == Some(1) && printed.contains("set SWARMC_RELEASES and SWARMC_VERSION"), "{printed}");
    let server = serve_release(&repository, true);
    let releases = format!("SWARMC_RELEASES={}/releases", server.address());
    let (code, printed) = job(&[releases, "SWARMC_VERSION=9.9.9".to_owned(), "SWARMC_PATHS=flow.kdl".to_owned()]);
    assert!(
        code == Some(0) && printed.contains("tar.gz: OK") && printed.contains("no problems in 1 spec"),
        "{printed}"
    );
    // The report is an artifact.
    assert!(repository.read("swarmc.xml").contains("<testsuites name=\"swarmc check\""));
}

#[test]
fn the_files_are_as_their_schemas_say() {
    let check = |schema: &str, file: &str| {
        let mut command = Command::new(programs().join("bin/check-jsonschema"));
        run(command.args(["--builtin-schema", schema]).arg(root().join(file)))
    };
    check("vendor.github-actions", "action.yml");
    check("vendor.github-workflows", ".github/workflows/release.yml");
    check("vendor.gitlab-ci", "ci/gitlab.yml");
    check("vendor.compose-spec", "packaging/cluster/compose.yaml");
    let mut hooks = Command::new(programs().join("bin/pre-commit"));
    run(hooks.arg("validate-manifest").arg(root().join(".pre-commit-hooks.yaml")));
}

#[test]
fn the_listings_of_the_install_page_name_what_is_there() {
    let page = crate::tidy::text("docs/install.md");
    let listings: Vec<&str> = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [action, hooks, wheel, gitlab] = listings.as_slice() else { panic!("{listings:#?}") };
    let declared = crate::tidy::text("action.yml");
    let (_, inputs) = action.rsplit_once("with:\n").expect("the action has inputs");
    for input in inputs.lines().filter_map(|line| line.trim().split_once(": ")).map(|(input, _)| input) {
        assert!(declared.contains(&format!("\n  {input}:\n")), "action.yml has no input `{input}`");
    }
    let declared = crate::tidy::text(".pre-commit-hooks.yaml");
    for hook in hooks.lines().map(str::trim).filter(|line| line.starts_with("- id: ")) {
        assert!(declared.lines().any(|line| line == hook), "there is no hook `{hook}`");
    }
    let version = format!("swarmc=={}", env!("CARGO_PKG_VERSION"));
    assert!(wheel.contains("entry: swarmc check\n") && wheel.contains(&version), "{wheel}");
    let declared = crate::tidy::text("ci/gitlab.yml");
    for name in gitlab.lines().filter_map(|line| line.trim().split_once(": ")).map(|(name, _)| name) {
        let is_known = !name.starts_with("SWARMC_") || declared.contains(&format!("\n    {name}: "));
        assert!(is_known, "ci/gitlab.yml has no variable `{name}`");
    }
}
