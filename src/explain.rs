//! `swarmc explain`: the page of a code.

use std::fmt::Write;

use swarmc_compiler::{Code, Profile};

use crate::args::Explain;
use crate::check::find_code;
use crate::exit::Exit;
use crate::terminal::{self, Paint, Stream};

pub(crate) fn exec(args: &Explain) -> miette::Result<Exit> {
    let paint = Stream::Out.paint();
    let text = match &args.code {
        Some(name) => render_page(find_code(name)?.page(), paint),
        None => list_codes(paint),
    };
    terminal::print(text)?;
    Ok(Exit::Done)
}

fn list_codes(paint: Paint) -> String {
    let mut out = String::new();
    let width = Code::ALL.iter().map(|code| code.name().len()).max().unwrap_or_default() + 2;
    for code in Code::ALL {
        let profile = match code.profile() {
            Profile::Default => String::new(),
            profile => format!(" (--profile {})", profile.as_str()),
        };
        let severity = code.severity().as_str();
        let _ = writeln!(out, "{}  {:<width$}{severity}{profile}", paint.bold(code.id()), code.name());
    }
    out.push_str("\n`swarmc explain CODE` explains one\n");
    out
}

/// A page as it stands; on a terminal headings are bold and examples coloured.
fn render_page(page: &str, paint: Paint) -> String {
    if !paint.colour {
        return page.to_owned();
    }
    let mut out = String::new();
    let mut example = false;
    for line in page.lines() {
        let shown = if line.starts_with("```") {
            example = !example;
            paint.dim(line)
        } else if example {
            paint.cyan(line)
        } else if line.starts_with('#') {
            paint.bold(line.trim_start_matches('#').trim_start())
        } else {
            line.to_owned()
        };
        out.push_str(&shown);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_and_name_is_a_word_of_its_own_in_the_list() {
        let list = list_codes(Paint::NONE);
        for code in Code::ALL {
            let line = list.lines().find(|line| line.starts_with(code.id())).expect("it is listed");
            let words: Vec<&str> = line.split_whitespace().take(3).collect();
            assert_eq!(words, [code.id(), code.name(), code.severity().as_str()]);
        }
    }
}
