//! Commands: what is started directly, and what needs a shell.

use swarmc_plan::Command;

use crate::ast::Line;

/// A command as it is started. A single word is a shell line, and started without a shell when nothing in it needs one.
pub(super) fn emit_command(line: &Line) -> Command {
    match line.words.as_slice() {
        [single] => match split_words(single.as_str()) {
            Some(argv) => Command::Argv(argv),
            None => Command::Shell(single.as_str().to_owned()),
        },
        words => Command::Argv(words.iter().map(|word| word.as_str().to_owned()).collect()),
    }
}

/// A script file, by its `#!` line or by `sh`; `path` is relative to the workspace, the command to `folder` in it.
pub(super) fn script_command(path: &str, text: &str, folder: &str) -> Command {
    let interpreter = text.lines().next().and_then(|line| line.strip_prefix("#!")).map(str::trim);
    let mut argv: Vec<String> = match interpreter.filter(|line| !line.is_empty()) {
        // The system passes everything after the program as one argument.
        Some(line) => line.splitn(2, [' ', '\t']).map(|word| word.trim().to_owned()).collect(),
        None => vec!["sh".to_owned()],
    };
    let up = folder.split('/').filter(|part| !part.is_empty()).count();
    argv.push(format!("{}{path}", "../".repeat(up)));
    Command::Script { argv, file: path.to_owned() }
}

/// The words of a line that means the same without a shell; none where it does not, or might not.
fn split_words(line: &str) -> Option<Vec<String>> {
    // Neither `~`, which a shell replaces, nor `#`, which begins a comment.
    const PLAIN: &[u8] = b"-_./:,@%+=^";
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) || matches!(byte, b' ' | b'\t') || byte >= 0x80
    };
    if !line.bytes().all(plain) {
        return None;
    }
    let words: Vec<String> = line.split([' ', '\t']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let program = words.first()?;
    // `K=V program` sets a variable, and these words belong to the shell.
    (!program.contains('=') && !SHELL_WORDS.contains(&program.as_str())).then_some(words)
}

/// Reserved words and built-in commands of POSIX shells that no program of the same name stands for.
pub(crate) const SHELL_WORDS: &[&str] = &[
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "elif", "else", "esac",
    "eval", "exec", "exit", "export", "fc", "fg", "fi", "for", "getopts", "hash", "if", "in", "jobs", "local", "read",
    "readonly", "return", "set", "shift", "source", "then", "times", "trap", "type", "ulimit", "umask", "unalias",
    "unset", "until", "wait", "while",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_need_no_shell() {
        let argv = |line: &str| split_words(line).map(|words| words.join("|"));
        assert_eq!(argv("cargo test --quiet").as_deref(), Some("cargo|test|--quiet"));
        assert_eq!(argv("  ls   -l ./a,b ").as_deref(), Some("ls|-l|./a,b"));
        for shell in
            ["a | b", "a > b", "echo $X", "K=1 a", "cd x", "a 'b c'", "a\nb", "a*", "exit 3", "a # b", "~/x", "a {b,c}"]
        {
            assert_eq!(argv(shell), None, "{shell}");
        }
    }

    #[test]
    fn scripts_are_started_by_their_interpreter() {
        let argv = |path: &str, text: &str, folder: &str| match script_command(path, text, folder) {
            Command::Argv(argv) | Command::Script { argv, .. } => argv.join("|"),
            Command::Shell(line) => line,
        };
        assert_eq!(argv("a/x.sh", "echo hi\n", ""), "sh|a/x.sh");
        assert_eq!(argv("x.py", "#!/usr/bin/env python3\n", "sub/deep"), "/usr/bin/env|python3|../../x.py");
    }
}
