//! The generated pages of `docs/`: the command line and plans from their types, the language from its table, the checks
//! from their pages. Stale docs fail these tests; `BLESS=1` rewrites them.

mod schema;

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};
use swarmc_compiler::interpolation::{self, Term};
use swarmc_compiler::syntax::{self, Value, ValueKind};
use swarmc_compiler::{Code, FileId, Profile, Span};
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
fn the_reference_of_texts_is_current() {
    check_page("docs/texts.md", &render_texts());
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
    let mut page = String::from("# The checks\n\n<!-- Generated from compiler/src/codes by `tests/run bless`. -->\n\n");
    for code in Code::ALL {
        let _ = writeln!(
            page,
            "- [{0} {1}](#{2}-{1}): {3}{4}",
            code.id(),
            code.name(),
            code.id().to_lowercase(),
            code.severity().as_str(),
            match code.profile() {
                Profile::Default => String::new(),
                profile => format!(", from the profile `{}`", profile.as_str()),
            }
        );
    }
    for code in Code::ALL {
        let _ = write!(page, "\n#{}", code.page());
    }
    check_page("docs/rules.md", &page);
}

#[test]
fn the_picture_is_current() {
    let spec = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/review/review.kdl");
    let loaded = crate::load::load_workflow(&spec).unwrap().unwrap();
    check_page("docs/review.svg", &crate::graph::render_picture(&loaded.plan, None).expect("it is drawn"));
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

/// What stands in prompts and in other texts, from the lists that the compiler itself uses.
fn render_texts() -> String {
    let mut out = String::from(
        "# Texts\n\n<!-- Generated from compiler/src/template by `tests/run bless`. -->\n\n\
         Prompts, `stdin`, `value`, `env` and other texts of a spec may hold directives (`<<output:plan>>`), expressions \
         (`{{ output.plan.title }}`) and statements (`{% if iteration > 1 %}`). Conditions (`when`, `until`, `for-each`) are \
         expressions alone. Expressions write `_` for the `-` of a name. `\\<<` is a plain `<<`.\n\n\
         ## Directives\n\n",
    );
    let mut list = |title: &str, terms: &mut dyn Iterator<Item = Term>| {
        if !title.is_empty() {
            let _ = writeln!(out, "\n## {title}\n");
        }
        for Term { word, usage, doc } in terms {
            let filters: Vec<String> = match usage.starts_with("<<") {
                true => {
                    interpolation::directive_filters(word).iter().map(|filter| format!("`{}`", filter.word)).collect()
                }
                false => Vec::new(),
            };
            let filters = if filters.is_empty() { String::new() } else { format!(" Filters: {}.", filters.join(", ")) };
            let _ = writeln!(out, "- `{usage}`: {doc}{filters}");
        }
    };
    list("", &mut interpolation::directive_terms());
    let of_directives = interpolation::directive_filters("output");
    list("Filters of directives", &mut of_directives.into_iter());
    list("Filters of expressions", &mut interpolation::expression_filters());
    list("Tests of expressions", &mut interpolation::expression_tests());
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
         Written in the language itself and part of `swarmc`. A spec imports what it needs, `import \"std:types\"` for the \
         plain names or `import \"std:types\" as=std` for `std.Verdict`; nothing of it is read otherwise.\n",
    );
    for (part, text) in swarmc_compiler::library_parts() {
        // The comment at the top, then what it says of itself.
        let (about, declarations) = text.split_once("\n\n").expect("a part opens with what it is for");
        let about: Vec<&str> = about.lines().map(|line| line.trim_start_matches("//").trim()).collect();
        let _ = writeln!(out, "\n## {part}\n\n{}\n", about.join(" ").replace("  ", "\n\n"));
        for node in syntax::parse(text, FileId::new(0)).nodes {
            let name = node.arguments().find_map(|entry| string_value(&entry.value)).unwrap_or_default();
            let child = node.children().iter().find(|child| &*child.name.text == "description");
            let said = child.and_then(|child| string_value(&child.arguments().next()?.value)).map(str::to_owned);
            let comment =
                |span: &Span| text[span.range()].trim_start_matches('/').trim().trim_end_matches('.').to_owned();
            let about = said.or_else(|| node.comments.last().map(comment)).unwrap_or_default();
            assert!(!about.is_empty(), "`{name}` of {part} says what it is");
            let _ = writeln!(out, "- {} `{name}`: {about}", node.name.text);
        }
        let _ = writeln!(out, "\n```kdl\n{}\n```", declarations.trim_end());
    }
    out
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
    write_paragraphs(&mut out, &command);
    let subcommands: Vec<&Command> =
        command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help").collect();
    for subcommand in &subcommands {
        let name = subcommand.get_name();
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(out, "- [`{name}`](#swarmc-{name}): {about}");
    }
    for subcommand in subcommands {
        write_section(&mut out, "##", "swarmc", subcommand);
    }
    out
}

/// A subcommand with its arguments, and those in it a level below.
fn write_section(out: &mut String, marks: &str, above: &str, command: &Command) {
    let name = format!("{above} {}", command.get_name());
    let _ = writeln!(out, "\n{marks} {name}\n");
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(out, "```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    write_paragraphs(out, command);
    for argument in command.get_arguments().filter(|argument| argument.get_id() != "help") {
        write_argument(out, argument);
    }
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        write_section(out, &format!("{marks}#"), &name, inner);
    }
}

fn write_paragraphs(out: &mut String, command: &Command) {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(out, "{about}\n");
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
