//! The generated pages of `docs/`: the command line and plans from their types, the language from its table, the checks
//! from their pages. Stale docs fail these tests; `BLESS=1` rewrites them.

mod schema;

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory, Parser};
use similar::TextDiff;
use swarmc_compiler::interpolation::{self, Term};
use swarmc_compiler::syntax::{self, Value, ValueKind};
use swarmc_compiler::{Code, FileId, Profile};
use swarmc_runtime::handoff::OPERATIONS;

use crate::args::CommandLine;

#[test]
fn the_manual_is_current() {
    check_page("docs/cli.md", &render_manual());
}

#[test]
fn the_language_reference_is_current() {
    let page = swarmc_compiler::language_reference();
    check_page(
        "docs/language.md",
        &page.replacen("\n\n", "\n\n<!-- Generated from compiler/src/schema by `tests/run bless`. -->\n\n", 1),
    );
}

#[test]
fn the_reference_of_directives_is_current() {
    check_page("docs/directives.md", &render_directives());
}

#[test]
fn the_reference_of_plans_is_current() {
    check_page("docs/plan.md", &schema::render_page(swarmc_plan::plan_schema().as_value()));
}

#[test]
fn the_library_reference_is_current() {
    check_page("docs/std.md", &render_library());
}

/// The table of operations within a page that people write.
#[test]
fn the_table_of_operations_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/handoffs.md");
    let page = std::fs::read_to_string(path).expect("the page can be read");
    let (above, rest) = page.split_once("<!-- Operations, ").expect("the page has a place for the table");
    let (mark, rest) = rest.split_once('\n').expect("the mark is a line");
    let (_, below) = rest.split_once("<!-- End of operations. -->").expect("the table has an end");
    check_page(
        "docs/handoffs.md",
        &format!("{above}<!-- Operations, {mark}\n{}<!-- End of operations. -->{below}", render_operations()),
    );
}

#[test]
fn the_pages_of_the_checks_are_current() {
    let mut page = String::from(
        "# The checks\n\n<!-- Generated from compiler/src/codes by `tests/run bless`. -->\n\n\
         Each check has a listing that is wrong with the lines that mend it. Where a check is wrong, `allow CODE reason=\"…\"` in the \
         node that it reports, or at the top level, silences it; so does `// swarmc: allow(CODE) reason` on the line before, and `<!-- swarmc: allow(CODE) reason -->` \
         in a prompt file.\n",
    );
    for code in Code::ALL {
        page.push_str(&render_check(*code));
    }
    check_page("docs/rules.md", &page);
}

/// The page of a check without the sentences on how to silence it, which the top of all pages says once.
fn leave_out_silencing(code: Code) -> String {
    let allow = format!("allow {}", code.id());
    let speaks = |text: &str| text.contains(&allow) || text.starts_with("It cannot be suppressed");
    let paragraph = |text: &str| {
        let flowing = text.replace('\n', " ");
        let kept: Vec<&str> = flowing.trim_end_matches('.').split(". ").filter(|sentence| !speaks(sentence)).collect();
        if kept.is_empty() { String::new() } else { format!("{}.", kept.join(". ")) }
    };
    let paragraphs = code.page().trim_end().split("\n\n");
    let kept = paragraphs.map(|text| match speaks(text) && !text.starts_with("```") {
        true => paragraph(text),
        false => text.to_owned(),
    });
    kept.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// The page of a check, with its severity, and of the mended listing only what differs.
fn render_check(code: Code) -> String {
    let profile = match code.profile() {
        Profile::Default => String::new(),
        profile => format!(", from the profile `{}`", profile.as_str()),
    };
    let page = leave_out_silencing(code);
    let (title, rest) = page.split_once("\n\n").expect("a page opens with its title");
    let (above, rest) = rest.split_once("```kdl error\n").expect("a page shows what is wrong");
    let (wrong, rest) = rest.split_once("```\n").expect("a listing ends");
    let (between, rest) = rest.split_once("```kdl ok\n").expect("a page shows what is right");
    let (mended, below) = rest.split_once("```\n").expect("a listing ends");
    let silenced = match code.is_suppressible() {
        true => "",
        false => " Nothing silences it.",
    };
    let difference: String = TextDiff::from_lines(wrong, mended)
        .iter_all_changes()
        .map(|change| format!("{}{change}", change.tag()))
        .collect();
    let severity = code.severity().as_str();
    let parts = [
        format!("#{title}"),
        format!("*{severity}{profile}.*{silenced} {}", above.trim_end()),
        format!("```diff\n{difference}```"),
        between.trim().to_owned(),
        below.trim().to_owned(),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("\n{}\n", parts.join("\n\n"))
}

#[test]
fn the_picture_is_current() {
    let spec = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/review/review.kdl");
    let loaded = crate::load::load_workflow(&spec).unwrap().unwrap();
    check_page("docs/review.svg", &crate::graph::render_picture(&loaded.plan, None).expect("it is drawn"));
}

/// What follows a prompt or stands at the margin of a listing, up to a pipe, a redirection, a comment or a further command.
fn split_command(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut open, mut begun) = (String::new(), None, false);
    for char in line.chars() {
        match (open, char) {
            (Some(quote), _) if quote == char => open = None,
            (None, '"' | '\'') => (open, begun) = (Some(char), true),
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, '#') if word.is_empty() => break,
            (None, ' ') => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => {
                word.push(char);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// Every command line of a listing is one that `swarmc` takes, in all pages.
#[test]
fn commands_of_pages_can_be_typed() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_dir(root.join("docs")).expect("the folder can be read");
    let docs = docs.map(|entry| entry.expect("an entry").path());
    let pages = docs.chain([root.join("README.md"), root.join("CONTRIBUTING.md")]);
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        let text = std::fs::read_to_string(&page).expect("a page can be read");
        let mut listing = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                listing = !listing;
            }
            let inside = listing || line.starts_with("    ");
            // Behind a pipe, or in a line of another program, too.
            let at = line.find("swarmc ").filter(|at| {
                let before = line[..*at].trim();
                inside && (matches!(before, "" | "$") || before.ends_with(['|', '&']))
            });
            let Some(at) = at else { continue };
            let words = split_command(&line[at..]);
            count += 1;
            if let Err(error) = CommandLine::try_parse_from(&words) {
                use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
                if !matches!(error.kind(), DisplayHelp | DisplayVersion) {
                    wrong.push(format!("{}: {line}\n{error}", page.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "{count}");
    assert!(CommandLine::try_parse_from(split_command("swarmc check --fixx")).is_err());
    assert_eq!(
        split_command("swarmc run a.kdl --param g='a b' > x # c"),
        ["swarmc", "run", "a.kdl", "--param", "g=a b"]
    );
}

/// Compares a page with what it should be, or writes it.
fn check_page(page: &str, expected: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{page} is stale: run `tests/run bless`");
}

/// What stands in prompts and in other texts, from the tables that the compiler and completion use.
fn render_directives() -> String {
    let mut out = String::from(
        "# Directives\n\n<!-- Generated from compiler/src/template by `tests/run bless`. -->\n\n\
         Prompts, `stdin`, `value`, `env` and other texts of a spec may hold directives (`<<output:plan>>`), expressions \
         (`{{ output.plan.title }}`) and statements (`{% if iteration > 1 %}`). Conditions (`when`, `until`, `for-each`) are \
         expressions alone. Expressions write `_` for the `-` of a name. `\\<<` is a plain `<<`.\n\n\
         Behind each example stands what it becomes, in the second round of this workflow, for the second item of `show`:\n\n",
    );
    let _ = writeln!(out, "```kdl\n{}\n```", interpolation::EXAMPLE_SPEC.trim_end());
    let _ = writeln!(
        out,
        "\nBeside it lie `style.md` and `notes.txt`; standard input is `piped`.\n\n## Directives\n\n\
         In brackets: the filters that a directive takes; *all* are those of the next section.\n"
    );
    let all = interpolation::directive_filters("output");
    for term in interpolation::directive_terms() {
        let filters = interpolation::directive_filters(term.word);
        let names: Vec<String> = filters.iter().map(|filter| format!("`{}`", filter.word)).collect();
        let lacking: Vec<String> = all
            .iter()
            .filter(|filter| filters.iter().all(|known| known.word != filter.word))
            .map(|filter| format!("`{}`", filter.word))
            .collect();
        let filters = match (names.len(), lacking.len()) {
            (0, _) => String::new(),
            (_, 0) => " [*all*]".to_owned(),
            (named, lacking_count) if lacking_count < named => format!(" [*all* but {}]", lacking.join(", ")),
            _ => format!(" [{}]", names.join(", ")),
        };
        write_term(&mut out, &term, &filters, term.example);
    }
    out.push_str("\n## Filters of directives\n\n");
    all.iter().for_each(|term| write_term(&mut out, term, "", term.example));
    out.push_str("\n## Filters of expressions\n\n");
    interpolation::expression_filters().for_each(|term| write_term(&mut out, &term, "", term.example));
    out.push_str("\n## Tests of expressions\n\n");
    interpolation::expression_tests().for_each(|term| write_term(&mut out, &term, "", term.example));
    let words = |words: &mut dyn Iterator<Item = &'static str>| {
        words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(
        out,
        "\n## Expressions and statements\n\nAn expression begins with one of {}. The statements are {}.",
        words(&mut interpolation::root_words()),
        words(&mut interpolation::statement_words()),
    );
    out
}

/// A word with its example: on one line where the result is, below it otherwise.
fn write_term(out: &mut String, term: &Term, filters: &str, example: &str) {
    let Term { usage, doc, result, .. } = term;
    let _ = write!(out, "- `{usage}`: {doc}{filters}");
    let example = if usage == example { "Here".to_owned() } else { format!("`{example}`") };
    let _ = match () {
        () if result.starts_with("SW") => writeln!(out, " This version cannot run it ([{result}](rules.md))."),
        () if result.contains('\n') => {
            writeln!(out, " {example}:\n\n  ```text\n  {}\n  ```", result.replace('\n', "\n  "))
        }
        () => writeln!(out, " {example}: `{result}`"),
    };
}

fn render_operations() -> String {
    let mut out = String::from("| operation | what it does | offered when |\n|---|---|---|\n");
    for spec in OPERATIONS {
        let sentence = spec.about.split("\n\n").next().unwrap_or_default().trim_end_matches('.');
        let _ = writeln!(out, "| `{}` | {sentence} | {} |", spec.name, spec.access.condition());
    }
    out
}

/// The parts of the library: what each is for, what it declares, and how.
fn render_library() -> String {
    let mut out = String::from(
        "# The library\n\n<!-- Generated from compiler/src/std by `tests/run bless`. -->\n\n\
         Written in the language itself. A spec imports what it needs, `import \"std:types\"` for the plain names or \
         `import \"std:types\" as=std` for `std.Verdict`. Left out here are the system texts of agents, the agents with \
         the names of providers, the variables that these pass on, and how they are installed (`swarmc doctor` says \
         it).\n",
    );
    for (part, text) in swarmc_compiler::library_parts() {
        // The comment at the top, then what it says of itself.
        let (about, declarations) = text.split_once("\n\n").expect("a part opens with what it is for");
        let about: Vec<&str> = about.lines().map(|line| line.trim_start_matches("//").trim()).collect();
        let _ = writeln!(out, "\n## {part}\n\n{}", about.join(" ").replace("  ", "\n\n"));
        for node in syntax::parse(text, FileId::new(0)).nodes {
            let name = node.arguments().find_map(|entry| string_value(&entry.value)).unwrap_or_default();
            let described = node.children().iter().any(|child| &*child.name.text == "description");
            // An agent of the name of its provider is what that says.
            let is_same = &*node.name.text == "agent" && swarmc_compiler::preset_names().contains(&name);
            assert!(described || is_same || !node.comments.is_empty(), "`{name}` of {part} says what it is");
        }
        let _ = writeln!(out, "\n```kdl\n{}\n```", leave_out_details(part, declarations).trim_end());
    }
    out
}

/// The declarations without the system texts of agents, `description` says what each is there for; and without what the
/// library notes for those who change it: comments in the blocks of providers, variables that they pass on, what `doctor`
/// says of them, and the agents of their names.
fn leave_out_details(part: &str, declarations: &str) -> String {
    let is_provider = part == "std:providers";
    let mut inside = false;
    let mut kept = String::new();
    for line in declarations.lines() {
        let begins = line.trim_start().starts_with("system \"\"\"");
        let passes = line.starts_with("    env ") && !line.contains('=');
        let is_setup = line.starts_with("    install ") || line.starts_with("    login ");
        let is_note = is_provider && (passes || is_setup || line.starts_with("    //") || line.starts_with("agent "));
        if !begins && !inside && !is_note {
            let _ = writeln!(kept, "{line}");
        }
        inside = begins || (inside && line.trim() != "\"\"\"");
    }
    kept
}

fn string_value(value: &Value) -> Option<&str> {
    match &value.kind {
        ValueKind::String(text) => Some(text.as_str()),
        _ => None,
    }
}

fn render_manual() -> String {
    let mut command = CommandLine::command();
    command.build();
    let mut out = String::from("# The command line\n\n<!-- Generated from src/args.rs by `tests/run bless`. -->\n\n");
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(out, "{about}\n");
    let subcommands: Vec<&Command> =
        command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help").collect();
    for subcommand in &subcommands {
        let name = subcommand.get_name();
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(out, "- [`{name}`](#swarmc-{name}): {about}");
    }
    let mut described = Vec::new();
    for subcommand in subcommands {
        write_section(&mut out, "##", "swarmc", subcommand, &mut described);
    }
    out
}

/// A subcommand with its arguments, and those in it a level below; what another one has described is named only.
fn write_section(out: &mut String, marks: &str, above: &str, command: &Command, described: &mut Vec<(String, String)>) {
    let name = format!("{above} {}", command.get_name());
    let usage = command.clone().render_usage().to_string();
    let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    // The list above has said what the command does.
    let more = long.split_once("\n\n").map_or("", |(_, more)| more);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let about = if marks == "##" { more.to_owned() } else { format!("{about}\n\n{more}") };
    let _ = write!(out, "\n{marks} {name}\n\n`{}`\n\n", usage.trim_start_matches("Usage: "));
    if !about.is_empty() {
        let _ = writeln!(out, "{}\n", about.trim_end());
    }
    let mut known: Vec<(String, Vec<String>)> = Vec::new();
    for argument in command.get_arguments().filter(|argument| argument.get_id() != "help") {
        let mut written = String::new();
        write_argument(&mut written, argument);
        let Some((_, section)) = described.iter().find(|(text, _)| *text == written) else {
            out.push_str(&written);
            described.push((written, name.clone()));
            continue;
        };
        let shown = written.trim_start_matches("- ").split(": ").next().unwrap_or_default().to_owned();
        match known.iter_mut().find(|(other, _)| other == section) {
            Some((_, names)) => names.push(shown),
            None => known.push((section.clone(), vec![shown])),
        }
    }
    for (section, names) in known {
        let _ = writeln!(out, "- As for [`{section}`](#{}): {}", section.replace(' ', "-"), names.join(", "));
    }
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        write_section(out, &format!("{marks}#"), &name, inner, described);
    }
}

fn write_argument(out: &mut String, argument: &Arg) {
    let names: Vec<String> = argument
        .get_short()
        .map(|short| format!("-{short}"))
        .into_iter()
        .chain(argument.get_long().map(|long| format!("--{long}")))
        .collect();
    let takes = argument.get_action().takes_values();
    let values: Vec<&str> = argument.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
    let shown = match (names.is_empty(), takes) {
        (true, _) => values.join(" "),
        (false, true) => format!("{} {}", names.join(", "), values.join(" ")),
        (false, false) => names.join(", "),
    };
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let _ = write!(out, "- `{shown}`: {}", help.replace('\n', " "));
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if takes && !defaults.is_empty() {
        let _ = write!(out, "; default `{}`", defaults.join(" "));
    }
    out.push('\n');
    for value in argument.get_possible_values().iter().filter(|_| takes) {
        match value.get_help() {
            Some(help) => _ = writeln!(out, "  - `{}`: {help}", value.get_name()),
            None => _ = writeln!(out, "  - `{}`", value.get_name()),
        }
    }
}
