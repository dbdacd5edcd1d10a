//! The structure of `{% … %}`: what opens, continues and closes.
//!
//! Goes in: the statements of a text in order. Comes out: whether they nest as minijinja wants and no deeper than it
//! can recurse, with what is wrong otherwise.

use std::ops::Range;

use super::names::{OPENING, PLAIN};
use super::region::{Region, as_text, template_error};
use super::{Problem, Spanned};
use crate::suggest::{find_nearest, format_list};

/// How deep blocks may nest; an `{% elif %}` nests in its `{% if %}`.
const MAX_BLOCKS: usize = 48;

/// The blocks that are open.
#[derive(Default)]
pub(super) struct Blocks<'a> {
    open: Vec<Open<'a>>,
    depth: usize,
    /// Whether something was wrong, so that minijinja must not see the text.
    pub(super) broken: bool,
}

struct Open<'a> {
    word: &'a str,
    range: Range<usize>,
    /// How deep minijinja recurses for it: itself and each `{% elif %}`.
    depth: usize,
    /// Whether `{% else %}` was seen.
    last: bool,
}

impl<'a> Blocks<'a> {
    /// Takes the next statement, which starts at `start`.
    pub(super) fn next(&mut self, start: usize, region: &Region<'a>, problems: &mut Vec<Problem>) {
        let Some(Spanned { value: word, range }) = region.word.clone() else { return };
        let whole = start..region.end;
        let problem = match word {
            "set" if region.assigns => None,
            word if PLAIN.contains(&word) => None,
            word if OPENING.contains(&word) => self.open_block(word, whole, 1),
            "elif" | "else" => self.continue_block(word, whole),
            word => match word.strip_prefix("end").filter(|opening| OPENING.contains(opening)) {
                Some(opening) => self.close_block(opening, whole),
                None => Some(unknown_statement(word, range)),
            },
        };
        self.broken |= problem.is_some();
        problems.extend(problem);
    }

    /// Reports what is still open at the end of the text.
    pub(super) fn report_unclosed(&mut self, problems: &mut Vec<Problem>) {
        for open in &self.open {
            self.broken = true;
            let word = open.word;
            problems.push(
                template_error(open.range.clone(), format!("`{{% {word} %}}` is not closed"), "opened here")
                    .help(format!("write `{{% end{word} %}}` where it ends")),
            );
        }
    }

    fn open_block(&mut self, word: &'a str, range: Range<usize>, depth: usize) -> Option<Problem> {
        self.open.push(Open { word, range: range.clone(), depth, last: false });
        self.increase_depth(depth, range)
    }

    fn increase_depth(&mut self, by: usize, range: Range<usize>) -> Option<Problem> {
        self.depth += by;
        // At the first step too deep only: one problem stands for all that lies deeper.
        (self.depth == MAX_BLOCKS + 1).then(|| {
            template_error(range, format!("blocks nest more than {MAX_BLOCKS} deep"), "too deep").help(
                "each `{% elif %}` nests in its `{% if %}`; split the text into files, or list the cases in a map",
            )
        })
    }

    fn continue_block(&mut self, word: &str, range: Range<usize>) -> Option<Problem> {
        let fits = |open: &&mut Open<'_>| match word {
            "elif" => open.word == "if" && !open.last,
            _ => matches!(open.word, "if" | "for") && !open.last,
        };
        let Some(open) = self.open.last_mut().filter(fits) else {
            return Some(
                template_error(range, format!("`{{% {word} %}}` has no `{{% if %}}`"), "nothing to continue here")
                    .help("open it with `{% if CONDITION %}`"),
            );
        };
        open.last = word == "else";
        if word == "else" {
            return None;
        }
        open.depth += 1;
        self.increase_depth(1, range)
    }

    fn close_block(&mut self, opening: &str, range: Range<usize>) -> Option<Problem> {
        let message = format!("`{{% end{opening} %}}` closes nothing");
        // The innermost block of that kind is meant; what it leaves open in between is reported there.
        // One that lies deeper than blocks may nest is not looked for, which bounds the search of each end.
        let deepest = self.open.len().saturating_sub(MAX_BLOCKS);
        let found = self.open[deepest..].iter().rposition(|open| open.word == opening);
        let Some(index) = found.map(|index| deepest + index) else {
            return Some(
                template_error(range, message, "nothing is open here")
                    .help(format!("open it with `{{% {opening} … %}}`, or leave this out")),
            );
        };
        // The first that is taken out is the block itself.
        self.depth -= self.open[index..].iter().map(|open| open.depth).sum::<usize>();
        let unclosed = self.open.drain(index..).nth(1);
        unclosed.map(|open| {
            let word = open.word;
            template_error(open.range, format!("`{{% {word} %}}` is not closed"), "opened here")
                .help(format!("write `{{% end{word} %}}` before `{{% end{opening} %}}`"))
        })
    }
}

fn unknown_statement(word: &str, range: Range<usize>) -> Problem {
    let shown = super::directive::clip_word(word);
    match word {
        "include" | "extends" | "import" | "from" | "block" | "endblock" => {
            template_error(range, format!("`{word}` is not available: there are no other templates"), "not here")
                .help("write `<<include:PATH>>` where another file's text should stand")
        }
        "macro" | "endmacro" | "call" | "endcall" => {
            template_error(range, format!("`{word}` is not available"), "not here")
                .help("write the text once in a file, and `<<include:PATH>>` where it should stand")
        }
        "break" | "continue" => template_error(range, format!("`{word}` is not available"), "not here")
            .help("choose the items in the `{% for %}`: `{% for item in list if CONDITION %}`"),
        _ => {
            let known: Vec<&str> = OPENING.into_iter().chain(PLAIN).chain(["elif", "else", "raw"]).collect();
            let ends: Vec<String> = OPENING.iter().map(|word| format!("end{word}")).collect();
            let candidates = known.iter().copied().chain(ends.iter().map(String::as_str));
            let problem = template_error(range.clone(), format!("unknown statement `{shown}`"), "not a statement");
            match (word.len() <= 40).then(|| find_nearest(word, candidates)).flatten() {
                Some(near) => problem.help(format!("did you mean `{near}`?")).fix(
                    format!("write `{near}`"),
                    range,
                    near.name,
                    near.certain,
                ),
                None => problem.help(format!(
                    "the statements are {}; for the text itself, {}",
                    format_list(known.into_iter(), "and"),
                    as_text("{%")
                )),
            }
        }
    }
}
