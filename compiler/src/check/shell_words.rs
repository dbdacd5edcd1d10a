//! SW009: what only a shell understands, in the words of a command that no shell reads.
//!
//! A command of several words is started as it stands. Quotes around a word say that the word itself is meant; only what
//! can hardly be meant so, `"$HOME/x"`, is reported in quotes too, since a path has to be quoted.

use crate::ast::{Body, Line, Variable};
use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::emit::command::SHELL_WORDS;
use crate::model::Model;
use crate::source::Sources;
use crate::syntax::{Text, quote_text};
use crate::template;

use super::command::{quote_shell_word, quote_template_word, quote_with_variables};

pub(super) fn check(model: &Model<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    for hook in &model.spec.hooks {
        if let Some(Body::Run(line)) = &hook.body {
            check_line("run", line, sources, diagnostics);
        }
    }
    for step in model.pipelines.iter().flat_map(|pipeline| &pipeline.steps) {
        diagnostics.set_home(Some(step.ast.name.span));
        if let Some(Body::Run(line)) = &step.ast.body {
            check_line("run", line, sources, diagnostics);
        }
        step.ast.checks.iter().for_each(|line| check_line("check", line, sources, diagnostics));
        step.ast.env.iter().for_each(|variable| check_variable(variable, diagnostics));
    }
    for swarm in &model.swarms {
        diagnostics.set_home(Some(swarm.ast.name.span));
        swarm.ast.list_checks().for_each(|line| check_line("check", line, sources, diagnostics));
    }
    diagnostics.set_home(None);
}

/// Reports a path of a variable as the value of another: it may be meant for the program, which can replace it itself.
fn check_variable(variable: &Variable, diagnostics: &mut Diagnostics) {
    let Variable::Set(name, value) = variable else { return };
    if !is_path_of_variable(value.as_str()) {
        return;
    }
    let shown = template::clip_word(value.as_str());
    let mut diagnostic = Diagnostic::new(
        Code::UnquotedShell,
        format!("no shell reads the value of `{name}`, so `{shown}` stays as it is"),
    )
    .label(value.outer_span(), "nothing replaces it")
    .help(format!("write the path itself, or set it in the command: `run #\"{name}=\"{shown}\" PROGRAM\"#`"));
    diagnostic.severity = Some(Severity::Warning);
    diagnostics.push(diagnostic);
}

/// What of a shell a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shell {
    /// `>`, `2>&1`, `|`, `&&`.
    Operator,
    /// `$HOME`, `~/x`, or a command between backticks.
    Expansion,
    /// `*.txt`.
    Glob,
    /// `cd`, or `K=V` before a program.
    Word,
}

fn check_line(node: &str, line: &Line, sources: &Sources, diagnostics: &mut Diagnostics) {
    let ([first, .., last], words) = (line.words.as_slice(), &line.words) else { return };
    let found = classify_words(words);
    let Some(index) = found.iter().position(Option::is_some) else { return };
    // Where a word is more than it seems, it is said once.
    let (Some(shell), word) = (found[index], &words[index]) else { return };
    if diagnostics.has_report_at(word.outer_span()) {
        return;
    }
    let shown = template::clip_word(word.as_str());
    let (message, label) = match shell {
        Shell::Operator => {
            (format!("no shell reads this command, so `{shown}` is one of its words"), "an argument like any other")
        }
        Shell::Expansion => {
            (format!("no shell reads this command, so `{shown}` stays as it is"), "nothing replaces it")
        }
        Shell::Glob => {
            (format!("no shell reads this command, so `{shown}` names one file"), "no pattern of paths here")
        }
        Shell::Word => (format!("no shell reads this command, and `{shown}` is no program"), "a word of shells"),
    };
    let diagnostic = Diagnostic::new(Code::UnquotedShell, message).label(word.outer_span(), label);
    if index == 0 && shell == Shell::Word && COMPOUND.contains(&word.as_str()) {
        return diagnostics.push(diagnostic.help(format!(
            "it begins a script: write all of it as one text, `{node} {}`",
            quote_text(&write_script(words))
        )));
    }
    let lone = shell == Shell::Word && index == 0 && found.iter().flatten().count() == 1;
    if lone && !word.as_str().contains('=') {
        let all: Vec<&str> = words.iter().map(Text::as_str).collect();
        let all = all.join(" ");
        return diagnostics.push(diagnostic.help(format!(
            "its effect ends with the command: write the next command too, `{node} {}`",
            quote_text(&format!("{all} && COMMAND"))
        )));
    }
    if !is_whole(node, words, sources) {
        return diagnostics.push(diagnostic.help(format!("write a line for a shell: `{node} \"…\"`")));
    }
    let line = quote_text(&write_line(words));
    let as_it_stands = word.is_bare() && matches!(shell, Shell::Operator | Shell::Word);
    let help = match as_it_stands {
        true => format!("write a line for a shell, `{node} {line}`, or `\"{shown}\"` for the word itself"),
        false => format!("write a line for a shell, `{node} {line}`"),
    };
    let title = "write a line for a shell";
    diagnostics.push(diagnostic.help(help).fix(title, first.outer_span().to(last.outer_span()), line));
}

/// The words of a command as a line for a shell.
pub(super) fn write_line(words: &[Text]) -> String {
    let written = words.iter().zip(classify_words(words)).map(|(word, found)| write_shell_word(word, found));
    written.collect::<Vec<_>>().join(" ")
}

/// Whether a word of a command is meant for a shell.
pub(super) fn has_shell_words(words: &[Text]) -> bool {
    classify_words(words).iter().any(Option::is_some)
}

fn classify_words(words: &[Text]) -> Vec<Option<Shell>> {
    // An operator begins another command.
    let chains = |word: &Text| word.is_bare() && matches!(word.as_str(), "|" | "||" | "|&" | "&&" | "&");
    let mut start = 0;
    let classify = |(index, word): (usize, &Text)| {
        let found = classify_word(word, &words[start], index == 0);
        if chains(word) {
            start = (index + 1).min(words.len() - 1);
        }
        found
    };
    words.iter().enumerate().map(classify).collect()
}

/// How the script goes on that begins with these words.
fn write_script(words: &[Text]) -> String {
    let is_there = |keyword: &str| words.iter().any(|word| word.as_str() == keyword);
    let rest = match words[0].as_str() {
        "for" | "while" | "until" if !is_there("do") => "; do COMMAND; done",
        "if" if !is_there("then") => "; then COMMAND; fi",
        _ => " …",
    };
    // Between quotes, a list in a variable would be one word.
    let write = |word: &Text| match word.is_bare() {
        true => word.as_str().to_owned(),
        false => quote_shell_word(word.as_str()),
    };
    words.iter().map(write).collect::<Vec<_>>().join(" ") + rest
}

/// Whether nothing but these words stands in the node: others have been reported, and are not here.
fn is_whole(node: &str, words: &[Text], sources: &Sources) -> bool {
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return false };
    let text = sources.text(first.outer_span().file);
    let apart =
        |pair: &[Text]| text[pair[0].outer_span().end as usize..pair[1].outer_span().start as usize].trim().is_empty();
    let after = text[last.outer_span().end as usize..].trim_start_matches([' ', '\t']);
    words.windows(2).all(apart)
        && text[..first.outer_span().start as usize].trim_end().ends_with(node)
        && (after.is_empty() || after.starts_with([';', '}', '\n', '\r', '/']))
}

/// What of a shell a word of a command is, if no program can have been meant to get it.
fn classify_word(word: &Text, program: &Text, is_first: bool) -> Option<Shell> {
    let text = word.as_str();
    let program = program.as_str().rsplit('/').next().unwrap_or_default();
    if is_first {
        let assigns = text.split_once('=').is_some_and(|(name, _)| {
            let sign = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(sign)
        });
        return (assigns || word.is_bare() && SHELL_WORDS.contains(&text)).then_some(Shell::Word);
    }
    if is_redirection(text) || word.is_bare() && is_operator(text) {
        return Some(Shell::Operator);
    }
    let home = text == "~" && word.is_bare() || text.starts_with("~/");
    let command = word.is_bare() && text.len() > 2 && text.starts_with('`') && text.ends_with('`');
    let variable = match word.is_bare() {
        true => names_variable(text),
        // A program that is given text to fill in is given it in quotes.
        false if TAKES_PATHS.contains(&program) => begins_with_variable(text) || is_substitution(text),
        false => !TAKES_TEXT.contains(&program) && is_path_of_variable(text),
    };
    if home || command || variable {
        return Some(Shell::Expansion);
    }
    // In quotes, `?` may be a part of a name.
    let has_sign = text.contains('*') || word.is_bare() && text.contains('?');
    let glob = !text.starts_with('-') && has_sign && !text.contains(char::is_whitespace);
    (glob && TAKES_PATHS.contains(&program)).then_some(Shell::Glob)
}

/// Whether a word is an operator of shells, alone or with the file that follows it.
fn is_operator(text: &str) -> bool {
    if matches!(text, "|" | "||" | "|&" | "&&" | "&" | "<" | ">" | ">>" | "<<" | "<<<" | "&>" | "&>>") {
        return true;
    }
    // `>=1.0` is a version, `<name>` a word to be filled in.
    let file = text.strip_prefix(">>").or_else(|| text.strip_prefix('>')).or_else(|| text.strip_prefix('<'));
    file.is_some_and(|file| !file.starts_with(['=', '<', '>']) && !file.ends_with('>'))
}

/// Whether a word says which stream goes where: `2>&1`, `2>/dev/null`.
fn is_redirection(text: &str) -> bool {
    let rest = text.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let numbered = rest.len() + 1 == text.len();
    let target = |target: &str| matches!(target, "/dev/null" | "&1" | "&2");
    let both = |rest: &str| rest.strip_prefix(">>").or_else(|| rest.strip_prefix('>')).is_some_and(target);
    (numbered || rest.len() == text.len()) && both(rest) || text.strip_prefix('&').is_some_and(both)
}

/// Whether `$NAME` stands in it.
fn names_variable(text: &str) -> bool {
    text.match_indices('$')
        .any(|(at, _)| text[at + 1..].starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_'))
}

/// Whether it is `$NAME`, or a path that begins with it.
fn is_path_of_variable(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('$') else { return false };
    let name = rest.split('/').next().unwrap_or_default();
    let sign = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let named = name.as_bytes().first().is_some_and(|first| !first.is_ascii_digit()) && name.bytes().all(sign);
    named && !rest.contains(char::is_whitespace)
}

/// Whether it is `$NAME` with what stands behind it, spaces included.
fn begins_with_variable(text: &str) -> bool {
    let end = text.find(|sign: char| sign.is_whitespace() || sign == '/').unwrap_or(text.len());
    is_path_of_variable(&text[..end])
}

/// Whether it is `$(COMMAND)`, which begins with a word in small letters.
fn is_substitution(text: &str) -> bool {
    let inner = text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
    let word = inner.and_then(|inner| inner.split_whitespace().next());
    let is_plain = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || matches!(sign, '-' | '_' | '.');
    word.is_some_and(|word| word.starts_with(|sign: char| sign.is_ascii_lowercase()) && word.chars().all(is_plain))
}

/// A word as the line for a shell has it.
fn write_shell_word(word: &Text, found: Option<Shell>) -> String {
    let text = word.as_str();
    match found {
        Some(Shell::Word) => match text.split_once('=') {
            Some((name, value)) => format!("{name}={}", quote_shell_word(value)),
            None => text.to_owned(),
        },
        Some(Shell::Expansion) if !word.is_bare() && is_substitution(text) => format!("\"{text}\""),
        // It was one word, whatever signs it has.
        Some(Shell::Expansion) if !word.is_bare() && text.starts_with("~/") => {
            format!("~/{}", quote_shell_word(&text[2..]))
        }
        Some(Shell::Expansion) if !word.is_bare() && text.starts_with('$') => quote_with_variables(text),
        Some(Shell::Expansion) if text.contains(['&', ';', '|', '<', '>', '(', ')', '"']) => text.to_owned(),
        Some(Shell::Expansion) if text.starts_with('$') => format!("\"{text}\""),
        Some(Shell::Operator | Shell::Expansion | Shell::Glob) => text.to_owned(),
        // Between single quotes no variable could replace the directive.
        None if !template::list_placeholders(text).is_empty() => quote_template_word(text),
        None => quote_shell_word(text),
    }
}

/// Words that begin a script of more than one command.
const COMPOUND: &[&str] = &["for", "while", "until", "if", "case"];

/// Programs whose arguments are paths.
const TAKES_PATHS: &[&str] = &[
    "ls",
    "cat",
    "rm",
    "cp",
    "mv",
    "wc",
    "head",
    "tail",
    "sort",
    "touch",
    "chmod",
    "chown",
    "du",
    "stat",
    "md5sum",
    "sha256sum",
    "gzip",
    "gunzip",
    "less",
    "more",
    "diff",
    "ln",
    "rmdir",
];

/// Programs that are given text in which `$NAME` means something to them.
const TAKES_TEXT: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "envsubst", "awk", "gawk", "mawk", "perl", "jq", "sed", "env", "php",
    "ssh", "su", "make",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_told_apart_from_other_words() {
        for text in [">", ">>", "|", "&&", "&", ">out.txt", ">>log", "<in.txt"] {
            assert!(is_operator(text), "{text}");
        }
        for text in [">=1.0", "<name>", "->", "=>", "a>b", "<=3", "<<EOF>>", "--", "<<<<"] {
            assert!(!is_operator(text), "{text}");
        }
        for text in ["2>&1", "2>/dev/null", ">/dev/null", "&>/dev/null", "1>&2"] {
            assert!(is_redirection(text), "{text}");
        }
        for text in ["22>&1x", "a2>&1", "2>", "x", "2", ">&3"] {
            assert!(!is_redirection(text), "{text}");
        }
    }

    #[test]
    fn variables_are_told_apart_from_other_words() {
        for text in ["$HOME", "x$HOME", "$home_1"] {
            assert!(names_variable(text), "{text}");
        }
        for text in ["$", "$1", "a$", "^x$", "$$"] {
            assert!(!names_variable(text), "{text}");
        }
        assert!(["$HOME", "$HOME/x", "$A_1/b.txt"].into_iter().all(is_path_of_variable));
        assert!(["$HOME", "$HOME dir/x", "$HOME/my dir/x"].into_iter().all(begins_with_variable));
        assert!(!["$home x", "a $HOME", "costs $5"].into_iter().any(begins_with_variable));
        assert!(["$(pwd)", "$(git rev-parse HEAD)"].into_iter().all(is_substitution));
        assert!(!["$(CC)", "(pwd)", "$(pwd", "a $(pwd)"].into_iter().any(is_substitution));
        assert!(!["$home", "a $HOME", "$HOME or so", "$1", "$"].into_iter().any(is_path_of_variable));
    }
}
