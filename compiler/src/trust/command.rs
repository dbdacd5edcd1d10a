//! What commands do outside the run: which of them read text of strangers, send data away, read private data, print
//! secrets, or do what cannot be undone.
//!
//! In: a step's command. Out: the programs it starts, with their spans. This module has short lists of well-known
//! programs; it assumes that a command on none of them does nothing of the kind.

use std::ops::Range;

use super::shell::{self, Simple};
use crate::ast::{Line, Step};
use crate::model::{self, Body};
use crate::source::{FileId, Sources, Span};
use crate::syntax::Text;

/// A program that a step starts.
#[derive(Debug)]
pub(crate) struct Started<'a> {
    pub simple: Simple,
    origin: Origin<'a>,
}

/// Where a command was written.
#[derive(Clone, Copy, Debug)]
enum Origin<'a> {
    /// The words of an argument vector, one behind the other.
    Words(&'a [Text]),
    Text(&'a Text),
    File(FileId),
}

impl Started<'_> {
    /// The whole command.
    pub(crate) fn span(&self) -> Span {
        self.span_at(&self.simple.range())
    }

    /// A place in it.
    pub(crate) fn span_at(&self, range: &Range<usize>) -> Span {
        match self.origin {
            Origin::Text(text) => text.span(range.clone()),
            Origin::File(file) => {
                let byte = |at: usize| u32::try_from(at).expect("files are under 4 GiB");
                Span::new(file, byte(range.start), byte(range.end))
            }
            Origin::Words(words) => {
                let (mut offset, mut span) = (0, None::<Span>);
                for word in words {
                    let length = word.as_str().len();
                    // An empty word has a place, too.
                    if range.start < offset + length.max(1) && range.end > offset {
                        let inside = range.start.saturating_sub(offset)..(range.end - offset).min(length);
                        let place = word.span(inside);
                        span = Some(span.map_or(place, |span| span.to(place)));
                    }
                    // `parse_argv` counts one byte between two words as well.
                    offset += length + 1;
                }
                // `parse_argv` makes nothing of no words.
                span.unwrap_or_else(|| words[0].span(0..words[0].as_str().len()))
            }
        }
    }

    /// As a person would name it: the program and what it is told to do.
    pub(crate) fn name(&self) -> String {
        let simple = &self.simple;
        let word =
            |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
        let told = match simple.program() {
            // A group, and what to do with it.
            "gh" | "glab" | "kubectl" | "aws" | "op" | "vault" => 2,
            program if SPEAKING.contains(&program) => 1,
            _ => 0,
        };
        let words = simple.operands().take_while(word).take(told);
        std::iter::once(simple.program()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// Programs that are told what to do by their first operand.
const SPEAKING: &[&str] = &[
    "git",
    "gh",
    "glab",
    "npm",
    "pnpm",
    "yarn",
    "cargo",
    "kubectl",
    "helm",
    "terraform",
    "tofu",
    "docker",
    "vault",
    "op",
    "aws",
    "gcloud",
    "twine",
    "gem",
    "jira",
    "pulumi",
    "flyctl",
    "fly",
    "vercel",
    "netlify",
    "wrangler",
    "pass",
];

/// What the body of a step starts.
pub(crate) fn list_body_commands<'a>(step: &model::Step<'a>, sources: &Sources) -> Vec<Started<'a>> {
    match &step.body {
        Body::Run(line) => list_started(line),
        Body::Script(file) => list_script_commands(*file, sources),
        _ => Vec::new(),
    }
}

/// What the `check` lines of a step start.
pub(crate) fn list_check_commands(step: &Step) -> Vec<Started<'_>> {
    step.checks.iter().flat_map(list_started).collect()
}

/// What a command starts.
pub(crate) fn list_started(line: &Line) -> Vec<Started<'_>> {
    match line.words.as_slice() {
        [] => Vec::new(),
        [single] => shell_line(single),
        argv => {
            let Some(whole) = parse_argv(argv) else { return Vec::new() };
            let inner = shell::find_inner_line(&whole.simple).and_then(|inner| {
                whole
                    .simple
                    .words
                    .iter()
                    .position(|word| word.range == inner.range)
                    .map(|index| shell_line(&argv[index]))
            });
            inner.unwrap_or_else(|| vec![whole])
        }
    }
}

/// Words as one command, as they stand; none without any.
pub(crate) fn parse_argv(argv: &[Text]) -> Option<Started<'_>> {
    let mut offset = 0;
    let words = argv.iter().map(|word| {
        let start = offset;
        offset += word.as_str().len() + 1;
        shell::Word { text: word.as_str().to_owned(), range: start..offset - 1, variables: Vec::new() }
    });
    let simple = Simple { words: words.collect(), hidden: false };
    (!argv.is_empty()).then_some(Started { simple, origin: Origin::Words(argv) })
}

fn shell_line(text: &Text) -> Vec<Started<'_>> {
    shell_text(Origin::Text(text), text.as_str())
}

fn shell_text<'a>(origin: Origin<'a>, text: &str) -> Vec<Started<'a>> {
    shell::parse_commands(text).into_iter().map(|simple| Started { simple, origin }).collect()
}

/// The programs of a script file, where it is one for a shell.
fn list_script_commands<'a>(file: FileId, sources: &Sources) -> Vec<Started<'a>> {
    let text = sources.text(file);
    let first = text.lines().next().and_then(|line| line.strip_prefix("#!"));
    let shell = first.is_none_or(|line| {
        line.split([' ', '/']).any(|word| matches!(word.trim(), "sh" | "bash" | "dash" | "zsh" | "ksh"))
    });
    if shell { shell_text(Origin::File(file), text) } else { Vec::new() }
}

/// Whether it prints text that comes from other people over a network.
pub(crate) fn can_fetch(simple: &Simple) -> bool {
    match simple.program() {
        "curl" | "wget" | "http" | "https" | "xh" | "lynx" | "w3m" => !is_local(simple),
        "gh" | "glab" => simple.operands().next().is_some_and(|group| {
            let acts = simple.operands().nth(1).unwrap_or_default();
            match group {
                "issue" | "pr" | "mr" | "release" | "gist" | "discussion" | "run" => {
                    matches!(acts, "view" | "list" | "diff" | "status" | "download" | "checkout" | "note")
                }
                "api" | "search" => true,
                _ => false,
            }
        }),
        "git" => simple.operands().next().is_some_and(|verb| matches!(verb, "fetch" | "pull" | "clone" | "ls-remote")),
        "jira" => simple.operands().any(|word| matches!(word, "view" | "list")),
        _ => false,
    }
}

/// Whether it sends what it is given to where others can read it.
pub(crate) fn can_send(simple: &Simple) -> bool {
    let has = |flags: &[&str]| {
        simple.arguments().any(|word| {
            // As in `--data=…`; curl takes the data directly behind `-d` as well.
            let name = word.split('=').next().unwrap_or(word);
            flags.contains(&name)
                || (flags.contains(&"-d") && word.len() > 2 && word.starts_with("-d") && !word.starts_with("--"))
        })
    };
    let second = simple.operands().nth(1).unwrap_or_default();
    match simple.program() {
        "curl" if is_local(simple) => false,
        // A variable in the address leaves with it.
        "curl" => {
            has(&[
                "-d",
                "--data",
                "--data-binary",
                "--data-raw",
                "--data-urlencode",
                "--json",
                "-F",
                "--form",
                "-T",
                "--upload-file",
            ]) || writes_method(simple)
                || simple.words.iter().any(|word| !word.variables.is_empty() && word.text.contains("://"))
        }
        "wget" => has(&["--post-data", "--post-file", "--body-data", "--body-file"]) && !is_local(simple),
        "http" | "https" | "xh" => {
            !is_local(simple) && simple.operands().any(|word| matches!(word, "POST" | "PUT" | "PATCH" | "DELETE"))
        }
        "gh" | "glab" => match simple.operands().next().unwrap_or_default() {
            "issue" | "pr" | "mr" | "release" | "gist" | "discussion" => {
                matches!(
                    second,
                    "create" | "comment" | "edit" | "review" | "close" | "merge" | "upload" | "note" | "update"
                )
            }
            "api" => has(&["-f", "-F", "--field", "--raw-field", "--input"]) || writes_method(simple),
            "workflow" => second == "run",
            _ => false,
        },
        "git" => simple.has_operands(&["push"]),
        "npm" | "pnpm" | "yarn" | "cargo" => simple.operands().any(|word| word == "publish"),
        "docker" | "podman" => simple.has_operands(&["push"]),
        "twine" => simple.has_operands(&["upload"]),
        "aws" => simple.has_operands(&["s3", "cp"]) || simple.has_operands(&["s3", "sync"]),
        "gsutil" => simple.operands().any(|word| matches!(word, "cp" | "rsync")),
        "scp" | "rsync" => simple.operands().any(|word| word.contains(':')),
        "mail" | "mailx" | "mutt" | "sendmail" | "msmtp" | "sftp" | "ftp" | "nc" | "ncat" | "telnet" => true,
        _ => false,
    }
}

/// Whether it prints what must not leave: the contents of a vault, or of a file of keys.
pub(crate) fn reads_private(simple: &Simple) -> bool {
    match simple.program() {
        "vault" => {
            simple.operands().next().is_some_and(|verb| matches!(verb, "kv" | "read"))
                && !simple.operands().any(|word| word == "put")
        }
        "op" => simple.has_operands(&["read"]) || simple.has_operands(&["item", "get"]),
        "pass" => simple.operands().next().is_some_and(|verb| verb == "show"),
        "aws" => simple.operands().any(|word| matches!(word, "get-secret-value" | "get-parameter" | "get-parameters")),
        "gcloud" => simple.has_operands(&["secrets", "versions", "access"]),
        "kubectl" => simple.operands().nth(1).is_some_and(|word| matches!(word, "secret" | "secrets")),
        "security" => simple.operands().next().is_some_and(|verb| verb.starts_with("find-")),
        "cat" | "head" | "tail" | "less" | "base64" => simple.operands().any(is_key_file),
        _ => false,
    }
}

fn is_key_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == ".env"
        || (name.starts_with(".env.") && !matches!(name, ".env.example" | ".env.sample" | ".env.template"))
        || matches!(name, "id_rsa" | "id_ed25519" | "id_ecdsa" | ".netrc" | ".pgpass" | "credentials.json")
        || path.ends_with(".aws/credentials")
}

/// What it does that cannot be undone, as a verb with its object; none when it can.
pub(crate) fn irreversible_effect(simple: &Simple) -> Option<&'static str> {
    // To others `-n` is something else: to kubectl and helm it is the namespace.
    let short = matches!(simple.program(), "git" | "make");
    let is_dry = |word: &str| matches!(word, "--dry-run" | "--help") || (short && word == "-n");
    if simple.arguments().any(|word| is_dry(word) || is_dry_run_value(word)) {
        return None;
    }
    let first = simple.operands().next().unwrap_or_default();
    let second = simple.operands().nth(1).unwrap_or_default();
    let flag = |flag: &str| simple.arguments().any(|word| word == flag);
    match (simple.program(), first) {
        ("git", "push") => Some("pushes"),
        ("git", "merge") if !flag("--abort") && !flag("--no-commit") => Some("merges"),
        ("gh", "pr") | ("glab", "mr") if second == "merge" => Some("merges"),
        ("gh" | "glab", "release") if second == "create" => Some("publishes"),
        ("gh" | "glab", "repo" | "release" | "issue") if second == "delete" => Some("deletes"),
        ("npm" | "pnpm" | "cargo" | "poetry" | "uv" | "flit" | "hatch", "publish") => Some("publishes"),
        ("yarn", "publish") => Some("publishes"),
        ("yarn", "npm") if second == "publish" => Some("publishes"),
        ("twine", "upload") | ("gem", "push") | ("docker" | "podman", "push") => Some("publishes"),
        ("kubectl", "apply" | "rollout" | "create" | "replace" | "patch" | "scale") => Some("deploys"),
        ("kubectl", "delete") => Some("deletes"),
        ("helm", "install" | "upgrade" | "rollback") => Some("deploys"),
        ("helm", "uninstall" | "delete") => Some("deletes"),
        ("terraform" | "tofu", "apply") | ("pulumi", "up") => Some("deploys"),
        ("terraform" | "tofu" | "pulumi", "destroy") => Some("deletes"),
        ("flyctl" | "fly" | "wrangler" | "netlify" | "firebase" | "eb" | "serverless" | "sls", "deploy") => {
            Some("deploys")
        }
        ("vercel", _) if flag("--prod") => Some("deploys"),
        ("rm", _) if is_recursive_force(simple) => Some("deletes"),
        ("aws", "s3") if second == "rm" || second == "rb" => Some("deletes"),
        ("dropdb", _) => Some("deletes"),
        (program, _) if is_deploy_script(program) => Some("deploys"),
        (_, script) if matches!(simple.program(), "sh" | "bash" | "make" | "just") && is_deploy_script(script) => {
            Some("deploys")
        }
        ("npm" | "pnpm" | "yarn", "run") if is_deploy_script(second) => Some("deploys"),
        _ => None,
    }
}

/// `--dry-run=client`; kubectl also takes `none`, which runs.
fn is_dry_run_value(word: &str) -> bool {
    word.strip_prefix("--dry-run=").is_some_and(|value| !matches!(value, "none" | "false"))
}

/// `deploy`, `deploy.sh`, `deploy-prod`.
fn is_deploy_script(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split(['.', '-', '_', ':']).next().unwrap_or(name);
    stem == "deploy" && !name.contains("test") && !name.contains("check")
}

/// `rm -rf`, except of build folders and temporary files.
fn is_recursive_force(simple: &Simple) -> bool {
    let is_set = |long: &str, short: &[char]| {
        let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains(short);
        simple.arguments().any(|word| word == long || is_short(word))
    };
    let made = |path: &str| {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let first = path.split('/').next().unwrap_or_default();
        path.starts_with("/tmp/")
            || path.starts_with("$TMP")
            || matches!(
                first,
                "target" | "dist" | "build" | "out" | "tmp" | "node_modules" | ".cache" | "coverage" | "__pycache__"
            )
    };
    is_set("--recursive", &['r', 'R']) && is_set("--force", &['f']) && !simple.operands().all(made)
}

/// Whether it prints every variable, or the one of this name.
pub(crate) fn prints_variable<'s>(simple: &'s Simple, name: &str) -> Option<&'s shell::Word> {
    let program = simple.words.first()?;
    let bare = simple.words.len() == 1;
    match simple.program() {
        "printenv" if bare => Some(program),
        "printenv" => simple.words.iter().skip(1).find(|word| word.text == name),
        "env" | "set" if bare => Some(program),
        "export" | "declare" if simple.arguments().any(|word| word == "-p") => Some(program),
        "echo" | "printf" => {
            simple.words.iter().skip(1).find(|word| word.variables.iter().any(|variable| variable.name == name))
        }
        _ => None,
    }
}

/// Whether every address in it is of this machine.
fn is_local(simple: &Simple) -> bool {
    let address = |word: &&str| word.contains("://") || word.starts_with("localhost") || word.starts_with("127.");
    let local = |word: &str| {
        let host = word.split_once("://").map_or(word, |(_, rest)| rest);
        ["localhost", "127.", "[::1]", "0.0.0.0"].iter().any(|start| host.starts_with(start))
    };
    let mut addresses = simple.operands().filter(address).peekable();
    // Without an address nothing is known: a variable may hold it.
    addresses.peek().is_some() && addresses.all(local)
}

/// `-X POST` and its kin.
fn writes_method(simple: &Simple) -> bool {
    let mut after = false;
    simple.arguments().any(|word| {
        let method = match word {
            _ if after => word,
            _ => word
                .strip_prefix("--request=")
                .or(word.strip_prefix("--method="))
                .or(word.strip_prefix("-X"))
                .unwrap_or(""),
        };
        after = matches!(word, "-X" | "--request" | "--method");
        matches!(method, "POST" | "PUT" | "PATCH" | "DELETE")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(text: &str, test: impl Fn(&Simple) -> bool) -> bool {
        shell::parse_commands(text).iter().any(test)
    }

    #[test]
    fn what_strangers_wrote_comes_over_a_network() {
        for text in [
            "curl -s https://x.dev/feed",
            "gh issue list --json body",
            "gh api repos/a/b",
            "git pull -q",
            "a | curl \"$URL\"",
        ] {
            assert!(any(text, can_fetch), "{text}");
        }
        for text in [
            "curl http://localhost:80/health",
            "gh issue create",
            "git log",
            "git status",
            "echo curl",
            "gh auth status",
        ] {
            assert!(!any(text, can_fetch), "{text}");
        }
    }

    #[test]
    fn what_leaves_is_known() {
        for text in [
            "curl -d @- https://x.dev",
            "curl -X POST https://x",
            "curl -XPOST https://x",
            "curl \"https://x/?q=$A\"",
            "gh pr comment 1 -F -",
            "git push origin main",
            "gh api x -f body=1",
            "rsync a host:b",
            "curl -d@f https://x",
        ] {
            assert!(any(text, can_send), "{text}");
        }
        for text in
            ["curl https://x", "curl -d @- http://127.0.0.1:9/x", "gh pr view 1", "git commit -m push", "rsync a b"]
        {
            assert!(!any(text, can_send), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_undone_is_known() {
        let what = |text: &str| shell::parse_commands(text).iter().find_map(irreversible_effect);
        for (text, verb) in [
            ("git push", "pushes"),
            ("gh pr merge 3 --squash", "merges"),
            ("cargo publish", "publishes"),
            ("kubectl apply -f x", "deploys"),
            ("terraform destroy", "deletes"),
            ("rm -rf data", "deletes"),
            ("./scripts/deploy.sh prod", "deploys"),
            ("npm run deploy", "deploys"),
            ("rm -r -f /srv", "deletes"),
            ("rm --recursive --force /srv", "deletes"),
            ("kubectl apply -n prod -f x", "deploys"),
            ("kubectl -n prod delete pod x", "deletes"),
            ("kubectl apply --dry-run=none -f x", "deploys"),
            ("helm upgrade -n prod app chart", "deploys"),
            ("git -C sub push", "pushes"),
        ] {
            assert_eq!(what(text), Some(verb), "{text}");
        }
        for text in [
            "cargo publish --dry-run",
            "git push -n",
            "rm -rf target dist/",
            "rm -rf /tmp/x",
            "rm file",
            "rm --force data",
            "rm -f --verbose data",
            "kubectl apply --dry-run=client -f x",
            "kubectl get pods",
            "git merge --abort",
            "terraform plan",
            "echo deploy",
            "./deploy-test.sh",
        ] {
            assert_eq!(what(text), None, "{text}");
        }
    }

    #[test]
    fn vaults_are_known() {
        for text in ["vault kv get secret/x", "op read op://a/b", "cat .env", "kubectl get secret x -o yaml"] {
            assert!(any(text, reads_private), "{text}");
        }
        for text in ["vault status", "cat .env.example", "cat README.md", "kubectl get pods", "vault kv put a b=c"] {
            assert!(!any(text, reads_private), "{text}");
        }
    }

    #[test]
    fn printed_variables_are_known() {
        let prints = |text: &str| any(text, |simple| !simple.hidden && prints_variable(simple, "TOKEN").is_some());
        for text in ["echo $TOKEN", "printenv", "env", "printenv TOKEN", "printf '%s' \"${TOKEN}\"", "set"] {
            assert!(prints(text), "{text}");
        }
        for text in [
            "echo $TOKEN | docker login --password-stdin",
            "echo '$TOKEN'",
            "env A=1 make",
            "set -eu",
            "echo $TOKENS",
            "echo $TOKEN > key",
        ] {
            assert!(!prints(text), "{text}");
        }
    }
}
