//! What a command makes of a value in one of its words: an argument, the program itself, or the text of a program.
//!
//! In: a line of a shell, and the places of its directives. Out: for one of them, who reads it, and whether the shell
//! would put a variable there. Quotes keep a value one argument; they do not help where that argument is run.

use std::ops::Range;

use crate::trust::shell::{self, Simple};

/// What becomes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    /// The program gets it as it is.
    Argument,
    /// It names the program, or the file of a script.
    Program,
    /// This shell, or what runs one, runs it.
    Script(String),
    /// This program runs it.
    Code(String),
}

/// One place of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) usage: Usage,
    /// Whether it stands between double quotes; none where a shell replaces no variable.
    pub(super) quoted: Option<bool>,
}

/// The commands of a line of a shell with directives.
pub(super) fn parse_line(line: &str, directives: &[Range<usize>]) -> Vec<Simple> {
    shell::parse_commands(&mark_directives(line, directives))
}

/// How the commands of a line use one of the places of its directives.
pub(super) fn find_place(commands: &[Simple], place: &Range<usize>) -> Place {
    let mut found = Place { usage: Usage::Argument, quoted: None };
    for simple in commands {
        let has_place = |word: &shell::Word| word.range.contains(&place.start) && word.range.contains(&(place.end - 1));
        for (index, word) in simple.words.iter().enumerate().filter(|(_, word)| has_place(word)) {
            // What a substitution prints is a part of the word around it, and both count.
            if found.usage == Usage::Argument {
                found.usage = find_usage(simple, index);
            }
            let variable = word.variables.iter().find(|variable| variable.range == *place);
            found.quoted = found.quoted.or(variable.map(|variable| variable.quoted));
            // What is behind `-c` of a program that is not known may be run as well.
            if index > 0 && RUN_FLAGS.contains(&simple.words[index - 1].text.as_str()) {
                return Place { quoted: None, ..found };
            }
        }
    }
    // A shell without a script runs what comes through its standard input.
    let reader = commands.iter().find_map(|simple| {
        let (program, arguments) = simple.words.split_first()?;
        let (name, kind) = find_interpreter(&program.text)?;
        let reads = matches!(kind, Interpreter::Shell) && arguments.iter().all(|word| word.text.starts_with('-'));
        reads.then_some(name)
    });
    match reader {
        Some(name) if found.usage == Usage::Argument => Place { usage: Usage::Script(name), ..found },
        _ => found,
    }
}

/// The line with a variable in the place of each directive, in which a shell would read `<<` otherwise.
fn mark_directives(line: &str, directives: &[Range<usize>]) -> String {
    let mut marked = line.to_owned();
    for range in directives {
        // As long as the directive, so that all places stay.
        let name = "V".repeat(range.len().saturating_sub("${}".len()));
        marked.replace_range(range.clone(), &format!("${{{name}}}"));
    }
    marked
}

fn find_usage(simple: &Simple, index: usize) -> Usage {
    let words: Vec<&str> = simple.words.iter().map(|word| word.text.as_str()).collect();
    let Some((own, before)) = words[..=index].split_last() else { return Usage::Argument };
    if before.len() <= count_wrapper(before) || matches!(before, ["." | "source"]) {
        return Usage::Program;
    }
    // It may stand behind another program, as in `timeout 9 sh -c LINE`; in `sh -c LINE sh`, the second is a name. Behind a
    // program that is not known, only a shell with `-c` is taken for one.
    let wrapped = count_wrapper(before);
    let last_flag = before.iter().rposition(|word| is_code_flag(word));
    let interpreter = before.iter().enumerate().find_map(|(at, word)| {
        let found = find_interpreter(word)?;
        let starts = at <= wrapped;
        let has_script = matches!(found.1, Interpreter::Shell) && last_flag.is_some_and(|flag| flag > at);
        (starts || has_script).then_some((at, found))
    });
    let Some((at, (program, interpreter))) = interpreter else { return Usage::Argument };
    let arguments = &before[at + 1..];
    let is_flag = |word: &&&str| word.starts_with(['-', '+']);
    let is_first = |arguments: &[&str]| arguments.iter().all(|word| is_flag(&word));
    let flag = arguments.iter().position(|word| is_code_flag(word));
    let follows_flag = own.starts_with('-') || arguments.last().is_some_and(|word| is_code_flag(word));
    match interpreter {
        Interpreter::Runner => Usage::Script(program),
        Interpreter::Shell if own.starts_with('-') => Usage::Script(program),
        Interpreter::Shell => match flag {
            Some(flag) if is_first(&arguments[flag + 1..]) => Usage::Script(program),
            None if is_first(arguments) => Usage::Program,
            _ => Usage::Argument,
        },
        Interpreter::Filter if program.ends_with("awk") => {
            let is_code = !own.starts_with("-v") && (follows_flag || is_awk_code(arguments));
            if is_code { Usage::Code(program) } else { Usage::Argument }
        }
        Interpreter::Filter if is_first(arguments) || follows_flag => Usage::Code(program),
        Interpreter::Language | Interpreter::Client if follows_flag => Usage::Code(program),
        Interpreter::Language if is_first(arguments) => Usage::Program,
        Interpreter::Language | Interpreter::Client | Interpreter::Filter => Usage::Argument,
    }
}

/// The flags of programs behind which a command stands.
const RUN_FLAGS: [&str; 8] = ["-c", "-e", "-exec", "-execdir", "--run", "--command", "--eval", "--to-command"];

/// How many of these words start the program that follows them, at most.
fn count_wrapper(words: &[&str]) -> usize {
    let Some((program, rest)) = words.split_first() else { return 0 };
    let is_known = matches!(
        *program,
        "env"
            | "timeout"
            | "nice"
            | "nohup"
            | "sudo"
            | "doas"
            | "xargs"
            | "exec"
            | "time"
            | "command"
            | "stdbuf"
            | "setsid"
            | "ionice"
            | "npx"
            | "bunx"
            | "uvx"
            | "strace"
    );
    let is_option =
        |word: &&str| word.starts_with('-') || word.contains('=') || word.starts_with(|c: char| c.is_ascii_digit());
    if is_known { 1 + rest.iter().take_while(|word| is_option(word)).count() } else { 0 }
}

/// A program that runs what it is given as text.
#[derive(Clone, Copy)]
enum Interpreter {
    /// `sh -c SCRIPT`.
    Shell,
    /// All its words may be for a shell: `eval`, `ssh`.
    Runner,
    /// `python3 -c CODE`, or a file of code.
    Language,
    /// `psql -c CODE`, whose other words are no files of code.
    Client,
    /// A word is code without a flag before it: `awk`, `sed`.
    Filter,
}

fn find_interpreter(word: &str) -> Option<(String, Interpreter)> {
    let program = word.rsplit('/').next().unwrap_or(word);
    // `python3.12` is `python`.
    let kind = match program.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.') {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "fish" => Interpreter::Shell,
        "eval" | "ssh" | "su" | "watch" | "parallel" | "trap" => Interpreter::Runner,
        "python" | "pypy" | "perl" | "ruby" | "node" | "nodejs" | "deno" | "bun" | "php" | "lua" | "Rscript"
        | "osascript" | "pwsh" | "powershell" => Interpreter::Language,
        "psql" | "mysql" | "mariadb" | "duckdb" => Interpreter::Client,
        "awk" | "gawk" | "mawk" | "nawk" | "sed" | "gsed" | "jq" | "yq" | "sqlite" => Interpreter::Filter,
        _ => return None,
    };
    Some((program.to_owned(), kind))
}

/// Whether the program of `awk` stands behind these words: `-v NAME=VALUE` and `-F SIGN` come before it, `-f` names its file.
fn is_awk_code(arguments: &[&str]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let is_read = match *word {
            "-v" | "-F" => words.next().is_some(),
            word => word.starts_with('-') && !word.starts_with("-f"),
        };
        if !is_read {
            return false;
        }
    }
    true
}

/// Whether the word behind it is code: `-c`, `-e`, `-lne`, `--eval`.
fn is_code_flag(word: &str) -> bool {
    if matches!(word, "eval" | "--eval" | "--print" | "--command" | "--execute" | "--run" | "-Command") {
        return true;
    }
    let short = |flags: &str| flags.bytes().all(|sign| sign.is_ascii_alphanumeric()) && flags.len() <= 6;
    word.strip_prefix('-').is_some_and(|flags| short(flags) && flags.ends_with(['c', 'e', 'E', 'r', 'p']))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The usage of `<<x>>`, which stands once in the line.
    fn read(line: &str) -> Place {
        let start = line.find("<<x>>").expect("it is there");
        let range = start..start + "<<x>>".len();
        find_place(&parse_line(line, std::slice::from_ref(&range)), &range)
    }

    fn usage(line: &str) -> String {
        match read(line).usage {
            Usage::Argument => "argument".to_owned(),
            Usage::Program => "program".to_owned(),
            Usage::Script(program) => format!("script of {program}"),
            Usage::Code(program) => format!("code of {program}"),
        }
    }

    #[test]
    fn what_is_run_is_told_apart_from_arguments() {
        for (line, expected) in [
            ("echo <<x>>", "argument"),
            ("a | grep -e '<<x>>' | sh -c b", "argument"),
            ("sh -c 'echo \"$1\"' sh \"<<x>>\"", "argument"),
            ("sh -c \"echo <<x>>\"", "script of sh"),
            ("timeout 9 /bin/bash -euo pipefail -c 'echo <<x>>'", "script of bash"),
            ("find . -exec sh -c 'echo <<x>>' \\;", "script of sh"),
            ("true; eval echo <<x>>", "script of eval"),
            ("ssh host \"ls '<<x>>'\"", "script of ssh"),
            ("sh -c \"$(echo <<x>>)\"", "script of sh"),
            ("python3 -c 'print(\"<<x>>\")'", "code of python3"),
            ("perl -lne 'print \"<<x>>\"' f", "code of perl"),
            ("node --eval=\"<<x>>\"", "code of node"),
            ("psql -c 'select <<x>>'", "code of psql"),
            ("sed s/a/<<x>>/ f", "code of sed"),
            ("awk -v n=<<x>> '{ print n }' f", "argument"),
            ("gawk -vn=<<x>> '{ print n }' f", "argument"),
            ("awk -v n=1 -F , '{ print <<x>> }' f", "code of awk"),
            ("awk -f prog.awk <<x>>", "argument"),
            ("python3 tool.py <<x>>", "argument"),
            ("echo <<x>> | sh", "script of sh"),
            ("timeout 9 <<x>>", "program"),
            ("source <<x>>", "program"),
            ("docker exec web sh -c 'echo <<x>>'", "script of sh"),
            ("make watch <<x>>", "argument"),
            ("jq -r .a <<x>>", "argument"),
            ("git commit --author node -m <<x>>", "argument"),
            ("psql <<x>>", "argument"),
            ("<<x>> --help", "program"),
            ("cd d && <<x>>", "program"),
            ("bash -eu <<x>>", "program"),
            ("python3 <<x>>", "program"),
        ] {
            assert_eq!(usage(line), expected, "{line}");
        }
    }

    #[test]
    fn a_value_behind_many_words_is_an_argument() {
        let line = format!("env {} <<x>>", "A=b sh ".repeat(20_000));
        assert_eq!(usage(&line), "argument");
    }

    #[test]
    fn a_variable_is_read_where_the_shell_replaces_it() {
        for (line, quoted) in [
            ("echo <<x>>", Some(false)),
            ("echo \"a <<x>>\"", Some(true)),
            ("echo \"$(cat <<x>>)\"", Some(false)),
            ("echo '<<x>>'", None),
            ("echo \\<<x>>", None),
            ("echo $((<<x>> + 1))", None),
            ("cat <<E\n<<x>>\nE", None),
            ("echo a # <<x>>", None),
            ("echo a > <<x>>", None),
            ("flock x -c <<x>>", None),
        ] {
            assert_eq!(read(line).quoted, quoted, "{line}");
        }
    }
}
