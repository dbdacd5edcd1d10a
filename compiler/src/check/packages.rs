//! Programs that fetch what they start: which package a command asks for, and whether it says a version.
//!
//! In: a command. Out: the packages and images that may be others tomorrow. One table says how each program is told; a
//! command of a program that is not in it is what it is.

use std::ops::Range;

use crate::trust::shell::{Simple, Word};

/// A package that a command fetches in whatever version is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Floating {
    /// Where it stands in the command.
    pub range: Range<usize>,
    /// It without its version.
    pub name: String,
    /// What it says in place of a version: `latest`, `^1.2`.
    pub says: Option<String>,
    /// How it would say one.
    pub pinned: String,
}

/// A program that fetches a package and starts it.
struct Runner {
    program: &'static str,
    /// The words that make it do so.
    told: &'static [&'static str],
    kind: Kind,
    /// Flags before a package; with one, what follows is the program in it.
    package: &'static [&'static str],
    /// Other flags that a value follows; for images, those that none does.
    flags: &'static [&'static str],
    /// Flags with which nothing is fetched, or nothing that is newer than a date.
    fixed: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Npm,
    Python,
    Image,
}

const NPM: &[&str] =
    &["-c", "--call", "-w", "--workspace", "--registry", "--prefix", "--cache", "--userconfig", "--node-options"];
const NPM_FIXED: &[&str] = &["--no", "--no-install", "--offline"];
const UV: &[&str] = &[
    "-p",
    "--python",
    "--index",
    "--index-url",
    "-i",
    "--default-index",
    "--extra-index-url",
    "-f",
    "--find-links",
    "--directory",
    "--project",
    "--with-editable",
    "--with-requirements",
    "-c",
    "--constraints",
    "--env-file",
    "--cache-dir",
    "--config-file",
    "--link-mode",
    "--refresh-package",
    "-P",
    "--upgrade-package",
    "--color",
];
const UV_FIXED: &[&str] = &["--offline", "--exclude-newer"];
const PIPX: &[&str] = &["--python", "--index-url", "-i", "--pip-args", "--backend"];
/// The flags of `docker run` that take no value; all others do.
const IMAGE: &[&str] = &[
    "-d",
    "--detach",
    "-i",
    "--interactive",
    "-t",
    "--tty",
    "-P",
    "--publish-all",
    "-q",
    "--quiet",
    "--rm",
    "--init",
    "--privileged",
    "--read-only",
    "--no-healthcheck",
    "--oom-kill-disable",
    "--disable-content-trust",
    "--replace",
    "--rmi",
    "--env-host",
    "--no-hosts",
    "--tls-verify",
];

const RUNNERS: &[Runner] = &[
    npm_runner("npx", &[]),
    npm_runner("npm", &["exec"]),
    npm_runner("npm", &["x"]),
    npm_runner("pnpx", &[]),
    npm_runner("pnpm", &["dlx"]),
    npm_runner("yarn", &["dlx"]),
    npm_runner("bunx", &[]),
    npm_runner("bun", &["x"]),
    uv_runner("uvx", &[]),
    uv_runner("uv", &["tool", "run"]),
    Runner { program: "pipx", told: &["run"], kind: Kind::Python, package: &["--spec"], flags: PIPX, fixed: &[] },
    image_runner("docker", &["run"]),
    image_runner("docker", &["container", "run"]),
    image_runner("podman", &["run"]),
    image_runner("podman", &["container", "run"]),
    image_runner("nerdctl", &["run"]),
];

const fn npm_runner(program: &'static str, told: &'static [&'static str]) -> Runner {
    Runner { program, told, kind: Kind::Npm, package: &["-p", "--package"], flags: NPM, fixed: NPM_FIXED }
}

const fn uv_runner(program: &'static str, told: &'static [&'static str]) -> Runner {
    Runner { program, told, kind: Kind::Python, package: &["--from", "--with", "-w"], flags: UV, fixed: UV_FIXED }
}

const fn image_runner(program: &'static str, told: &'static [&'static str]) -> Runner {
    Runner { program, told, kind: Kind::Image, package: &[], flags: IMAGE, fixed: &[] }
}

/// The packages of a command that no version holds.
pub(super) fn find_floating(simple: &Simple) -> Vec<Floating> {
    let words = behind_env(&simple.words);
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let program = program.text.rsplit('/').next().unwrap_or_default();
    let told = |runner: &&Runner| {
        runner.program == program
            && rest.len() >= runner.told.len()
            && runner.told.iter().zip(rest).all(|(told, word)| word.text == *told)
    };
    let Some(runner) = RUNNERS.iter().find(told) else { return Vec::new() };
    let found = find_package_words(runner, &rest[runner.told.len()..]);
    found
        .into_iter()
        // A variable may hold a version.
        .filter(|word| word.variables.is_empty())
        .filter_map(|word| check_package(runner.kind, &word))
        .collect()
}

/// What `env K=V` starts.
fn behind_env(words: &[Word]) -> &[Word] {
    match words.split_first() {
        Some((first, rest)) if first.text.rsplit('/').next() == Some("env") => {
            let set = |word: &&Word| word.text.contains('=') || matches!(word.text.as_str(), "-i" | "-" | "-S");
            &rest[rest.iter().take_while(set).count()..]
        }
        _ => words,
    }
}

/// The words that name packages.
fn find_package_words(runner: &Runner, words: &[Word]) -> Vec<Word> {
    let mut found = Vec::new();
    // `--with` brings further packages, and what is started is named behind it all the same.
    let mut named = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if text == "--" {
            break;
        }
        if !text.starts_with('-') || text == "-" {
            if !named {
                found.push(word.clone());
            }
            return found;
        }
        let (flag, value) = text.split_once('=').map_or((text, None), |(flag, value)| (flag, Some(value)));
        if runner.fixed.contains(&flag) {
            return Vec::new();
        }
        if runner.package.contains(&flag) {
            let start = word.range.end - value.map_or(0, str::len);
            let part = |value: &str| Word { text: value.to_owned(), range: start..word.range.end, ..word.clone() };
            found.extend(value.map(part).or_else(|| words.next().cloned()));
            named |= !matches!(flag, "--with" | "-w");
        } else if value.is_none() && takes_value(runner, flag) {
            // A command in words of a shell starts what is there already.
            named |= matches!(flag, "-c" | "--call") && runner.kind == Kind::Npm;
            words.next();
        }
    }
    // Behind `--`, the next word is the package whatever it looks like.
    if !named {
        found.extend(words.next().cloned());
    }
    found
}

fn takes_value(runner: &Runner, flag: &str) -> bool {
    match runner.kind {
        Kind::Npm | Kind::Python => runner.flags.contains(&flag),
        // `-it`, and `-eKEY`.
        Kind::Image if flag.len() > 2 && !flag.starts_with("--") => false,
        Kind::Image => !runner.flags.contains(&flag),
    }
}

/// What a package has instead of a version; none where it has one.
fn check_package(kind: Kind, word: &Word) -> Option<Floating> {
    let text = word.text.trim();
    let (name, version, pinned) = match kind {
        Kind::Npm => of_npm(text)?,
        Kind::Python => of_python(text)?,
        Kind::Image => of_image(text)?,
    };
    if version.is_some_and(|version| !is_floating(version)) {
        return None;
    }
    Some(Floating {
        range: word.range.clone(),
        name: name.to_owned(),
        says: version.filter(|version| !version.is_empty()).map(str::to_owned),
        pinned,
    })
}

type Said<'t> = (&'t str, Option<&'t str>, String);

fn of_npm(text: &str) -> Option<Said<'_>> {
    let text = text.strip_prefix("npm:").or_else(|| text.strip_prefix("jsr:")).unwrap_or(text);
    if is_path(text) {
        return None;
    }
    // A repository, unless the part before the slash is a scope.
    if text.contains(':') || (text.contains('/') && !text.starts_with('@')) {
        let (name, version) = text.split_once('#').map_or((text, None), |(name, version)| (name, Some(version)));
        return Some((name, version, format!("{name}#COMMIT")));
    }
    // The first `@` may be that of a scope.
    let at = text.char_indices().skip(1).find(|&(_, c)| c == '@').map(|(at, _)| at);
    let (name, version) = at.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])));
    Some((name, version, format!("{name}@VERSION")))
}

fn of_python(text: &str) -> Option<Said<'_>> {
    if is_path(text) {
        return None;
    }
    if let Some((_, address)) = text.split_once("://") {
        if !text.starts_with("git+") {
            return None;
        }
        // `git+ssh://git@host/…` has one before its path too.
        let path = text.len() - address.len() + address.find('/').unwrap_or(address.len());
        let path = &text[path..];
        let end = path.split('#').next().map_or(0, str::len);
        let version = path[..end].rsplit_once('@').map(|(_, version)| version);
        let name = version.map_or(text, |version| text.split(&format!("@{version}")).next().unwrap_or(text));
        return Some((name, version, format!("{name}@COMMIT")));
    }
    let end = text.find(['=', '<', '>', '~', '!', '@', ';', ' ']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let rest = rest.trim();
    let version = rest.strip_prefix("===").or_else(|| rest.strip_prefix("==")).or_else(|| rest.strip_prefix('@'));
    let version = version.map(str::trim).or((!rest.is_empty()).then_some(rest));
    Some((name, version, format!("{name}==VERSION")))
}

fn of_image(text: &str) -> Option<Said<'_>> {
    if text.contains("@sha256:") || text.contains("@sha512:") {
        return None;
    }
    // A port stands before the last slash, a tag behind it.
    let folder = text.rfind('/').map_or(0, |at| at + 1);
    let colon = text[folder..].find(':').map(|at| folder + at);
    let (name, version) = colon.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])));
    Some((name, version, format!("{name}@sha256:DIGEST` or `{name}:VERSION")))
}

/// Something that lies on this machine.
pub(super) fn is_path(text: &str) -> bool {
    text.starts_with(['.', '/', '~'])
        || text.starts_with("file:")
        || [".whl", ".tgz", ".tar.gz"].iter().any(|end| text.ends_with(end))
}

/// Whether what stands where a version does holds none: a tag that moves, or a range.
pub(super) fn is_floating(version: &str) -> bool {
    let range = version.starts_with(['^', '~', '>', '<', '!']) || version.contains(['*', '|', ' ', ',']);
    // A word without a digit names a channel, such as `stable` or `next`.
    range || version.ends_with("latest") || !version.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::shell::parse_commands;

    /// The packages that float, as `name` or `name says`.
    fn check(line: &str) -> Vec<String> {
        let found = parse_commands(line).into_iter().flat_map(|simple| find_floating(&simple));
        found.map(|found| found.says.map_or(found.name.clone(), |says| format!("{} {says}", found.name))).collect()
    }

    #[test]
    fn what_floats_is_found() {
        for (line, expected) in [
            ("npx -y pkg", "pkg"),
            ("npx --yes @scope/pkg", "@scope/pkg"),
            ("npx pkg@latest --port 1", "pkg latest"),
            ("npx @scope/pkg@^1.2", "@scope/pkg ^1.2"),
            ("npx -p pkg tool", "pkg"),
            ("npx --package=pkg -- tool", "pkg"),
            ("npx --registry https://x.dev pkg", "pkg"),
            ("npx user/repo", "user/repo"),
            ("npm exec -- pkg", "pkg"),
            ("/usr/bin/npx pkg@next", "pkg next"),
            ("env A=1 npx pkg", "pkg"),
            ("pnpm dlx pkg", "pkg"),
            ("yarn dlx pkg", "pkg"),
            ("bunx pkg", "pkg"),
            ("bun x pkg", "pkg"),
            ("uvx mcp-server-git", "mcp-server-git"),
            ("uvx 'mcp[cli]>=1.2'", "mcp[cli] >=1.2"),
            ("uvx ruff@latest", "ruff latest"),
            ("uvx --from mcp mcp-server --x", "mcp"),
            ("uvx --with extra==1 tool", "tool"),
            ("uvx --python 3.12 tool", "tool"),
            ("uvx --from git+https://h.dev/r@main tool", "git+https://h.dev/r main"),
            ("uvx --from git+ssh://git@h.dev/r tool", "git+ssh://git@h.dev/r"),
            ("uv tool run tool", "tool"),
            ("pipx run tool", "tool"),
            ("pipx run --spec 'tool~=1.0' tool", "tool ~=1.0"),
            ("docker run -i --rm mcp/git", "mcp/git"),
            ("docker run -it -e KEY --name x mcp/git:latest arg", "mcp/git latest"),
            ("docker run -v /a:/b -eKEY=1 localhost:5000/img", "localhost:5000/img"),
            ("podman run --rm img:stable", "img stable"),
            ("docker container run img", "img"),
        ] {
            assert_eq!(check(line), [expected], "{line}");
        }
    }

    #[test]
    fn what_is_held_or_is_no_package_is_let_be() {
        for line in [
            "npx -y pkg@1.2.3",
            "npx @scope/pkg@1.2.3 --flag",
            "npx --no-install eslint",
            "npx -c 'eslint .'",
            "npx ./tool",
            "npx user/repo#4f2a91c",
            "npx npm:pkg@1.2.3",
            "npm run pkg",
            "npm exec --package=pkg@1.2.3 -- tool",
            "uvx ruff@0.6.3 check",
            "uvx 'ruff==0.6.3'",
            "uvx --from mcp==1.2 mcp-server",
            "uvx --exclude-newer 2026-01-01 tool",
            "uvx --from git+https://h.dev/r@4f2a91c tool",
            "uvx ./dist/tool-1.0.whl",
            "uv run tool",
            "pipx run tool==1.2",
            "pipx list",
            "docker run -i --rm mcp/git:1.4",
            "docker run img@sha256:9b2c",
            "docker run --rm -p 80:80 localhost:5000/img:2.0",
            "docker run \"$IMAGE\"",
            "docker build .",
            "docker",
            "npx",
            "claude -p",
            "env",
        ] {
            assert_eq!(check(line), [""; 0], "{line}");
        }
    }
}
