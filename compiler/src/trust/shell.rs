//! Parses a command line as a POSIX shell does, to find the programs that it starts, without running it.
//!
//! In: the words of a command, or the text of a script. Out: the simple commands in it, each with its words (without
//! quotes), the variables that they expand, and whether its output is visible. The parser takes linear time and bounded
//! depth, and its spans are exact. It does not guess what only a shell can know (`eval`, aliases).

use std::ops::Range;

/// Substitutions nested deeper than this are text.
const DEEPEST: usize = 32;

/// A program with its arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    /// The words, the program first; `K=V` before it left out.
    pub words: Vec<Word>,
    /// Whether its output goes to another command, a file or a variable instead of the output of the whole line.
    pub hidden: bool,
}

/// A word, without its quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    /// Where it stands in the text that was read.
    pub range: Range<usize>,
    /// The variables that it expands.
    pub variables: Vec<Variable>,
}

/// `$NAME` or `${NAME…}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub name: String,
    pub range: Range<usize>,
    /// Whether it stands between double quotes, where its value stays one word.
    pub quoted: bool,
}

impl Simple {
    /// The program, without its folders.
    pub(crate) fn program(&self) -> &str {
        self.words.first().map_or("", |word| word.text.rsplit('/').next().unwrap_or_default())
    }

    /// The arguments as text.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).map(|word| word.text.as_str())
    }

    /// The arguments that are neither options nor values of [`valued_options`], in order: sub-commands and operands.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &str> {
        let valued = valued_options(self.program());
        let mut is_value = false;
        self.arguments().filter(move |word| {
            let skipped = std::mem::replace(&mut is_value, valued.contains(word));
            !skipped && !word.starts_with('-')
        })
    }

    /// Whether its first operands are these.
    pub(crate) fn has_operands(&self, operands: &[&str]) -> bool {
        let mut own = self.operands();
        operands.iter().all(|wanted| own.next().is_some_and(|word| word == *wanted))
    }

    /// From its first word to its last.
    pub(crate) fn range(&self) -> Range<usize> {
        let start = self.words.first().map_or(0, |word| word.range.start);
        start..self.words.last().map_or(start, |word| word.range.end)
    }
}

/// The options that a program takes ahead of its sub-command and whose value is a word of its own, as its manual lists them.
fn valued_options(program: &str) -> &'static [&'static str] {
    match program {
        "git" => &["-C", "-c", "--git-dir", "--work-tree", "--namespace"],
        "kubectl" => &["-n", "--namespace", "--context", "--cluster", "--user", "--kubeconfig", "-s", "--server"],
        "helm" => &["-n", "--namespace", "--kube-context", "--kubeconfig"],
        "docker" | "podman" => &["-H", "--host", "-c", "--context", "--config", "--connection"],
        "gh" | "glab" => &["-R", "--repo"],
        "npm" => &["--prefix"],
        "pnpm" => &["-C", "--dir"],
        _ => &[],
    }
}

/// The simple commands of a shell text, in the order in which they begin.
pub(crate) fn parse_commands(text: &str) -> Vec<Simple> {
    let mut reader = Reader { text, at: 0, frames: vec![Frame::default()], found: Vec::new(), documents: Vec::new() };
    reader.read_commands();
    let mut found = reader.found;
    // A substitution ends, and so is found, before the command around it.
    found.sort_by_key(|simple: &Simple| simple.range().start);
    found
}

/// What a word of a command that is not a line itself (an argument vector) starts: only `sh -c LINE` and its kin.
pub(crate) fn find_inner_line(simple: &Simple) -> Option<&Word> {
    let shell = matches!(simple.program(), "sh" | "bash" | "dash" | "zsh" | "ksh");
    // Flags may stand together, as in `-euc`.
    let flag = simple.words.iter().position(|word| word.text.starts_with('-') && word.text.ends_with('c'))?;
    simple.words.get(flag + 1).filter(|_| shell)
}

/// A list of commands: the text itself, or a substitution in it.
#[derive(Default)]
struct Frame {
    simple: Simple,
    word: Option<Word>,
    /// Whether double quotes are open.
    quoted: bool,
    /// What ends it; none at the bottom.
    close: Option<u8>,
    /// Whether the next word is a redirection's target.
    target: bool,
    /// The parentheses that are open in it.
    brackets: usize,
    /// An `env` that no program has followed yet.
    lead: Option<Word>,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    frames: Vec<Frame>,
    found: Vec<Simple>,
    /// The ends of here-documents that begin after this line.
    documents: Vec<String>,
}

impl Reader<'_> {
    fn read_commands(&mut self) {
        while let Some(sign) = self.peek(0) {
            let quoted = self.top_frame().quoted;
            match sign {
                b'\\' => self.read_escape(quoted),
                b'\'' if !quoted => self.read_single_quoted(),
                b'"' => {
                    // Empty quotes are a word as well.
                    self.current_word();
                    let top = self.top_frame();
                    top.quoted = !top.quoted;
                    self.at += 1;
                    self.extend();
                }
                b'$' => self.read_dollar(),
                b'`' if self.top_frame().close == Some(b'`') && !quoted => self.close_substitution(),
                b'`' => self.open_substitution(b'`', 1),
                b')' if self.top_frame().close == Some(b')') && !quoted && self.top_frame().brackets == 0 => {
                    self.close_substitution()
                }
                _ if quoted => self.take_char(),
                // Within a word `#` is a character like others.
                b'#' if self.top_frame().word.is_none() => self.skip_comment(),
                b' ' | b'\t' | b'\r' => {
                    self.end_word();
                    self.at += 1;
                }
                b'\n' => {
                    self.end_simple(false);
                    self.at += 1;
                    self.skip_documents();
                }
                b'|' if self.peek(1) != Some(b'|') => {
                    self.end_simple(true);
                    self.at += 1;
                }
                b'>' | b'<' => self.read_redirect(sign),
                // The `>` behind it is read as a redirection.
                b'&' if self.peek(1) == Some(b'>') => {
                    self.end_word();
                    self.at += 1;
                }
                b';' | b'&' | b'|' => {
                    self.end_simple(false);
                    self.at += 1;
                }
                b'(' => {
                    self.end_simple(false);
                    self.top_frame().brackets += 1;
                    self.at += 1;
                }
                b')' => {
                    self.end_simple(false);
                    let top = self.top_frame();
                    top.brackets = top.brackets.saturating_sub(1);
                    self.at += 1;
                }
                _ => self.take_char(),
            }
        }
        // Also of a substitution without an end, the commands count.
        while self.frames.len() > 1 {
            self.close_substitution();
        }
        self.end_simple(false);
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn top_frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the text itself is the last frame")
    }

    /// The word at hand, begun here if there is none.
    fn current_word(&mut self) -> &mut Word {
        let at = self.at;
        self.top_frame().word.get_or_insert_with(|| Word { range: at..at, ..Word::default() })
    }

    /// The word at hand reaches up to here.
    fn extend(&mut self) {
        let at = self.at;
        self.current_word().range.end = at;
    }

    fn push(&mut self, range: Range<usize>) {
        let text = &self.text[range];
        self.current_word().text.push_str(text);
    }

    /// Takes a character as it stands.
    fn take_char(&mut self) {
        let length = self.text[self.at..].chars().next().map_or(1, char::len_utf8);
        self.push(self.at..self.at + length);
        self.at += length;
        self.extend();
    }

    fn read_escape(&mut self, quoted: bool) {
        // A shell takes both away, and the word goes on.
        if self.peek(1) == Some(b'\n') {
            self.at += 2;
            return;
        }
        // Within double quotes a backslash escapes these alone.
        let special = self.peek(1).is_some_and(|next| matches!(next, b'"' | b'\\' | b'$' | b'`'));
        self.current_word();
        if !quoted || special {
            self.at += 1;
        }
        if self.at < self.text.len() {
            self.take_char();
        }
    }

    fn read_single_quoted(&mut self) {
        self.current_word();
        let start = self.at + 1;
        let end = self.text[start..].find('\'').map_or(self.text.len(), |end| start + end);
        self.push(start..end);
        self.at = (end + 1).min(self.text.len());
        self.extend();
    }

    fn skip_comment(&mut self) {
        self.at = self.text[self.at..].find('\n').map_or(self.text.len(), |end| self.at + end);
    }

    /// `$NAME`, `${NAME…}`, `$(…)`, or a dollar.
    fn read_dollar(&mut self) {
        // Ahead of `$(`, with which this begins, too.
        if self.peek(1) == Some(b'(') && self.peek(2) == Some(b'(') {
            return self.read_arithmetic();
        }
        if self.peek(1) == Some(b'(') {
            return self.open_substitution(b')', 2);
        }
        let braces = usize::from(self.peek(1) == Some(b'{'));
        let start = self.at + 1 + braces;
        let name = self.text[start..].bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        if name == 0 {
            return self.take_char();
        }
        let after = start + name;
        let end = match braces {
            0 => after,
            _ => self.text[after..]
                // A brace that nothing closes ends with its line, so that the commands below are seen all the same.
                .find(['}', '\n'])
                .map_or(self.text.len(), |end| (after + end + 1).min(self.text.len())),
        };
        let quoted = self.top_frame().quoted;
        let variable = Variable { name: self.text[start..after].to_owned(), range: self.at..end, quoted };
        self.push(self.at..end);
        self.current_word().variables.push(variable);
        self.at = end;
        self.extend();
    }

    /// `$((…))` is a number.
    fn read_arithmetic(&mut self) {
        let end = self.text[self.at..].find("))").map_or(self.text.len(), |end| self.at + end + 2);
        self.push(self.at..end);
        self.at = end;
        self.extend();
    }

    /// Begins a substitution.
    fn open_substitution(&mut self, close: u8, length: usize) {
        self.current_word();
        if self.frames.len() > DEEPEST {
            return self.take_char();
        }
        self.at += length;
        self.frames.push(Frame { close: Some(close), ..Frame::default() });
    }

    /// Ends a substitution: what it prints becomes a part of a word.
    fn close_substitution(&mut self) {
        self.end_simple(true);
        self.frames.pop();
        self.at = (self.at + 1).min(self.text.len());
        self.extend();
    }

    fn read_redirect(&mut self, sign: u8) {
        // `2>` is no word of the command.
        let number = self.top_frame().word.take_if(|word| matches!(word.text.as_str(), "1" | "2"));
        self.end_word();
        let errors = number.is_some_and(|word| word.text == "2");
        let run = self.text[self.at..].bytes().take_while(|byte| *byte == sign).count();
        self.at += run;
        if sign == b'<' && run == 2 {
            return self.read_here_document();
        }
        if self.peek(0) == Some(b'(') {
            // A process substitution: what stands in it runs, and is a list of its own.
            return;
        }
        // `>&2` and its like name a stream that is seen, and hide nothing.
        if self.peek(0) == Some(b'&') {
            self.at += 1;
            self.top_frame().target = true;
            return;
        }
        let top = self.top_frame();
        top.target = true;
        if sign == b'>' && !errors {
            top.simple.hidden = true;
        }
    }

    /// `<<WORD`: the text up to a line that is WORD belongs to the command.
    fn read_here_document(&mut self) {
        // The quotes around the mark are no part of it.
        let rest = self.text[self.at..].trim_start_matches(['-', ' ', '\'', '"', '\\']);
        let end = rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(rest.len());
        if end > 0 {
            self.documents.push(rest[..end].to_owned());
        }
        self.top_frame().target = true;
    }

    fn skip_documents(&mut self) {
        for mark in std::mem::take(&mut self.documents) {
            while self.at < self.text.len() {
                let line = self.text[self.at..].split('\n').next().unwrap_or_default();
                self.at = (self.at + line.len() + 1).min(self.text.len());
                // With `<<-` the end may be indented.
                if line.trim() == mark {
                    break;
                }
            }
        }
    }

    fn end_word(&mut self) {
        let top = self.top_frame();
        let Some(word) = top.word.take() else { return };
        if std::mem::take(&mut top.target) {
            // What goes there is seen like the output itself.
            if word.text == "/dev/stderr" || word.text == "/dev/stdout" {
                top.simple.hidden = false;
            }
            return;
        }
        let simple = &mut top.simple;
        // What stands before the program: variables, and words that start another one.
        if simple.words.is_empty() && (is_assignment(&word.text) || LEADERS.contains(&word.text.as_str())) {
            if word.text == "env" {
                top.lead = Some(word);
            }
            return;
        }
        top.lead = None;
        simple.words.push(word);
    }

    /// Ends a command; `hidden` tells that its output is not visible.
    fn end_simple(&mut self, hidden: bool) {
        self.end_word();
        let substituted = self.frames.len() > 1;
        let top = self.top_frame();
        top.target = false;
        let mut simple = std::mem::take(&mut top.simple);
        // An `env` without a program prints the environment.
        simple.words.extend(top.lead.take());
        simple.hidden |= hidden || substituted;
        if !simple.words.is_empty() {
            self.found.push(simple);
        }
    }
}

/// Words before which, or after which, a program stands.
const LEADERS: &[&str] = &[
    "sudo", "nohup", "exec", "command", "time", "builtin", "if", "then", "elif", "else", "while", "until", "do", "!",
    "{", "env", "xargs",
];

fn is_assignment(word: &str) -> bool {
    let name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|sign: char| sign.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    word.split_once('=').is_some_and(|(before, _)| name(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows `a b; (c)` as `a|b c`, with parentheses around commands whose output is hidden.
    fn read(text: &str) -> String {
        let show = |simple: &Simple| {
            let words: Vec<&str> = simple.words.iter().map(|word| word.text.as_str()).collect();
            match simple.hidden {
                true => format!("({})", words.join("|")),
                false => words.join("|"),
            }
        };
        parse_commands(text).iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lines_are_split_as_a_shell_splits_them() {
        assert_eq!(read("a b && c 'd e'; f \"g $H\" # i"), "a|b c|d e f|g $H");
        assert_eq!(read("K=1 a | sudo b > c"), "(a) (b)");
        assert_eq!(read("a 2>&1 | b"), "(a) b");
        assert_eq!(read("a >&2"), "a");
        assert_eq!(read("a > /dev/stderr"), "a");
        assert_eq!(read("a 2>/dev/null"), "a");
        assert_eq!(read("if a; then b; fi"), "a b fi");
        assert_eq!(read("(a; b)"), "a b");
        assert_eq!(read("a \\\n b\nc"), "a|b c");
    }

    #[test]
    fn substitutions_are_commands_without_visible_output() {
        assert_eq!(read("a \"x $(b c) y\" d"), "a|x  y|d (b|c)");
        assert_eq!(read("x=`a b`; c"), "(a|b) c");
        assert_eq!(read("a $((1 + 2)) b"), "a|$((1 + 2))|b");
        assert_eq!(read("env"), "env");
        assert_eq!(read("env K=1 a b"), "a|b");
    }

    #[test]
    fn here_documents_are_data() {
        assert_eq!(read("cat <<EOF > out\ncurl x\nEOF\nb"), "(cat) b");
        assert_eq!(read("cat <<'E'\n$X\nE\n"), "cat");
    }

    #[test]
    fn variables_are_found_where_they_are_expanded() {
        let names = |text: &str| -> Vec<String> {
            parse_commands(text)
                .iter()
                .flat_map(|simple| &simple.words)
                .flat_map(|word| &word.variables)
                .map(|variable| format!("{}@{}", variable.name, &text[variable.range.clone()]))
                .collect()
        };
        assert_eq!(names("a $B \"${C:-x}\" '$D' \\$E"), ["B@$B", "C@${C:-x}"]);
    }

    #[test]
    fn anything_is_read_in_bounded_depth() {
        for text in
            ["$(".repeat(10_000), "`".repeat(9999), "((((".repeat(5000), "\"$(\"".repeat(5000), "<<".repeat(999)]
        {
            parse_commands(&text);
        }
        for text in ["a\\", "a 'b", "a \"b", "a ${B", "a <<", "é $é \"é", "a <<É\né"] {
            parse_commands(text);
        }
    }

    #[test]
    fn words_know_their_places() {
        let text = "cat 'a b' | curl -d @- \"$X\"";
        let places: Vec<&str> = parse_commands(text)
            .iter()
            .flat_map(|simple| &simple.words)
            .map(|word| &text[word.range.clone()])
            .collect();
        assert_eq!(places, ["cat", "'a b'", "curl", "-d", "@-", "\"$X\""]);
    }
}
