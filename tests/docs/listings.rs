//! Every listing of the pages is held by a test: a spec compiles, JSON is read, a command is typed as the command line takes
//! it (`docs::commands_of_pages_can_be_typed` in `src/docs.rs`), and what programs print, or a picture, is held by the test
//! that the table below names. A listing of another kind, or one that the table does not know, fails here.

use std::collections::BTreeMap;

use serde_json::Value;
use swarmc_compiler::{Code, Diagnostic, compile};

use crate::tidy::{root, text};

/// A fenced block of a page.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) page: String,
    /// What stands behind its fence.
    info: String,
    pub(super) text: String,
}

impl Listing {
    /// The language, or what else it is.
    pub(super) fn kind(&self) -> &str {
        self.info.split(' ').next().unwrap_or_default()
    }

    /// What stands behind that: a path.
    pub(super) fn rest(&self) -> &str {
        self.info.split_once(' ').map_or("", |(_, rest)| rest)
    }
}

/// The listings of a page, those within lists too.
pub(super) fn list_listings(page: &str, text: &str) -> Vec<Listing> {
    let mut listings = Vec::new();
    let mut open: Option<(Listing, usize)> = None;
    for line in text.lines() {
        let margin = line.len() - line.trim_start().len();
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(info)) => {
                let listing = Listing { page: page.to_owned(), info: info.to_owned(), text: String::new() };
                open = Some((listing, margin));
            }
            (Some(_), Some("")) => listings.extend(open.take().map(|(listing, _)| listing)),
            (Some((listing, indent)), _) => {
                listing.text.push_str(line.get((*indent).min(margin)..).unwrap_or_default());
                listing.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: every listing is closed");
    listings
}

/// The pages, README.md and CONTRIBUTING.md.
fn list_texts() -> Vec<(String, String)> {
    let pages = super::summary::list_pages().into_iter().map(|page| format!("docs/{page}"));
    let pages = pages.chain(["README.md".to_owned(), "CONTRIBUTING.md".to_owned()]);
    pages.map(|page| (page.clone(), text(&page))).collect()
}

fn all_listings() -> Vec<Listing> {
    list_texts().iter().flat_map(|(page, text)| list_listings(page, text)).collect()
}

/// A test, as the file that holds it and its name.
type Test = (&'static str, &'static str);

/// Pages whose listings of these kinds a test of the page holds: it writes, runs or compiles each of them.
const PAGES: &[(&str, &[&str], Test)] = &[
    (
        "docs/tutorial.md",
        &["kdl", "markdown", "diff", "console"],
        ("tests/tutorial.rs", "everything_in_the_tutorial_is_true"),
    ),
    ("docs/install.md", &["yaml"], ("tests/ci_tools.rs", "the_listings_of_the_install_page_name_what_is_there")),
    ("docs/cookbook.md", &["kdl"], ("tests/docs/cookbook.rs", "recipes_are_checked_formatted_and_tested")),
    ("docs/testing.md", &["kdl"], ("tests/testing.rs", "the_listings_of_the_chapter_hold")),
    (
        "docs/directives.md",
        &["kdl", "text"],
        ("tests/docs/directives.rs", "examples_of_directives_have_their_values_in_a_run"),
    ),
    ("docs/language.md", &["kdl"], ("compiler/src/schema/page.rs", "examples_are_one_workflow_without_a_problem")),
    ("docs/rules.md", &["diff", "md", "rs", "yaml", "sh"], ("compiler/src/pages.rs", "mended_examples_raise_nothing")),
    ("docs/std.md", &["kdl"], ("src/docs.rs", "the_library_reference_is_current")),
    ("docs/json.md", &["json"], ("tests/schema.rs", "the_examples_of_the_manual_are_as_their_schemas_say")),
    ("README.md", &["kdl"], ("tests/specs.rs", "the_readme_shows_specs_that_compile")),
];

/// What programs print, and pictures: a page, words of the listing, and the test that holds it. Where the words are what a
/// program prints, that test says them too.
const SHOWN: &[(&str, &str, Test)] = &[
    ("docs/ARCHITECTURE.md", "src (binary", ("tests/tidy.rs", "crates_depend_on_each_other_as_in_the_picture")),
    ("docs/ARCHITECTURE.md", "driver/run/driver.rs", ("tests/docs/listings.rs", "pictures_name_files_that_are_there")),
    (
        "docs/ARCHITECTURE.md",
        "types    ids, events",
        ("tests/layers.rs", "the_runtime_imports_from_its_own_layer_and_from_lower_ones"),
    ),
    (
        "docs/ARCHITECTURE.md",
        "queue of a pool",
        ("tests/worker.rs", "a_process_is_started_read_in_order_and_reported_to_its_end"),
    ),
    (
        "docs/agents.md",
        "Answer with one JSON value",
        ("runtime/src/types/answer/words.rs", "the_docs_show_what_agents_are_told"),
    ),
    (
        "docs/agents.md",
        "Your last answer does not fit",
        ("runtime/src/types/answer/words.rs", "the_docs_show_what_agents_are_told"),
    ),
    (
        "docs/agents.md",
        "the agent wants authentication before a session: Authentication required (by API Key, ChatGPT)",
        ("runtime/src/io/executor/unreachable.rs", "a_missing_login_is_told_apart_from_an_unreachable_service"),
    ),
    ("docs/editors.md", "swarmc.el", ("tests/editors.rs", "emacs")),
    ("docs/files.md", "dependencies.json", ("tests/files.rs", "manifest_file")),
    (
        "docs/handoffs.md",
        "wants to go on after 3 turns with the same result",
        ("tests/stalls.rs", "somebody_is_asked_with_the_evidence_and_a_no_fails_the_step"),
    ),
    (
        "docs/handoffs.md",
        "waits for its first envelope (",
        ("tests/connections.rs", "required_signals_say_who_is_connected_idle_and_disconnected"),
    ),
    (
        "docs/handoffs.md",
        "and 2 more wait: swarmc inspect ",
        ("tests/connections.rs", "a_step_that_waits_for_its_dependencies_is_listed_with_what_they_are_doing"),
    ),
    ("docs/handoffs.md", "pack    contextpack://pack/", ("tests/packs.rs", "ui_observability_requirements")),
    (
        "docs/swarms.md",
        "## Previous Actions",
        ("runtime/src/core/swarm/prompt/tests.rs", "the_prompt_of_the_seed_section_by_section"),
    ),
    (
        "docs/tools.md",
        "characters, of which the first 4000 follow; saved to tool-results/",
        ("runtime/src/io/tools/tests.rs", "a_long_result_goes_to_a_file_and_its_beginning_goes_on"),
    ),
    (
        "docs/tools.md",
        "takao wants tool shell",
        ("tests/approvals.rs", "agents_of_a_swarm_are_answered_from_another_terminal"),
    ),
    ("README.md", "swarmc check build.kdl", ("tests/docs/listings.rs", "the_readme_shows_what_check_finds")),
    ("README.md", "These files have", ("tests/specs.rs", "the_quickstart_measures_describes_and_reports")),
    ("CONTRIBUTING.md", "error[SW101]: …", ("tests/docs/listings.rs", "the_fixture_of_contributing_is_one")),
];

/// The words that the test does not say: paths, titles, commands, and what a test reads off the page itself.
const NO_OUTPUT: &[&str] = &[
    "src (binary",
    "types    ids, events",
    "queue of a pool",
    "driver/run/driver.rs",
    "swarmc check build.kdl",
    "error[SW101]: …",
    "Answer with one JSON value",
];

/// How a listing is held.
enum Held {
    /// By what its kind says.
    Kind,
    /// By a test of its page.
    Page,
    /// By the entry of [`SHOWN`] with this index.
    Shown(usize),
}

fn find_holder(listing: &Listing) -> Option<Held> {
    let kind = listing.kind();
    if PAGES.iter().any(|(page, kinds, _)| *page == listing.page && kinds.contains(&kind)) {
        return Some(Held::Page);
    }
    let shown = SHOWN.iter().position(|(page, words, _)| *page == listing.page && listing.text.contains(words));
    match (shown, kind) {
        (Some(index), _) => Some(Held::Shown(index)),
        (None, "kdl" | "json" | "sh") => Some(Held::Kind),
        (None, _) => None,
    }
}

#[test]
fn every_listing_is_held_by_a_test() {
    let listings = all_listings();
    assert!(listings.len() > 150, "{}", listings.len());
    let mut used = vec![false; SHOWN.len()];
    let mut free = Vec::new();
    for listing in &listings {
        match find_holder(listing) {
            Some(Held::Shown(index)) => used[index] = true,
            Some(Held::Kind | Held::Page) => {}
            None => free.push(format!("{}: `{}`\n{}", listing.page, listing.info, listing.text)),
        }
    }
    assert!(free.is_empty(), "no test holds these: say which one does in SHOWN, or write one\n{}", free.join("\n"));
    let unused: Vec<&str> =
        SHOWN.iter().zip(&used).filter(|(_, used)| !**used).map(|((_, words, _), _)| *words).collect();
    assert!(unused.is_empty(), "no listing has {unused:?}");
    let alien = Listing { page: "docs/tools.md".to_owned(), info: "toml".to_owned(), text: "a = 1\n".to_owned() };
    assert!(find_holder(&alien).is_none(), "a listing of a kind that no test covers is found");
}

#[test]
fn the_tests_that_hold_listings_are_there_and_say_the_same() {
    for (file, name) in PAGES.iter().map(|(.., test)| test) {
        assert!(text(file).contains(&format!("fn {name}()")), "{file} has no test `{name}`");
    }
    for (page, words, (file, name)) in SHOWN {
        let source = text(file);
        assert!(
            source.contains(&format!("fn {name}()")),
            "{file} has no test `{name}`, which holds a listing of {page}"
        );
        assert!(NO_OUTPUT.contains(words) || source.contains(words), "{file} says no more `{words}`, as {page} does");
    }
}

/// What may be wrong with a part of a spec that stands alone: names and files that another part would bring.
fn is_of_fragment(problem: &Diagnostic) -> bool {
    let lacks = [
        Code::UnknownReference,
        Code::UnusedDefinition,
        Code::MissingFile,
        Code::GlobMatchesNothing,
        Code::MissingProgram,
    ];
    lacks.contains(&problem.code) || problem.message.starts_with("the spec has no pipeline")
}

#[test]
fn specs_of_pages_compile() {
    let specs = all_listings().into_iter().filter(|listing| listing.kind() == "kdl");
    let specs: Vec<Listing> = specs.filter(|listing| matches!(find_holder(listing), Some(Held::Kind))).collect();
    assert!(specs.len() > 8, "{}", specs.len());
    for Listing { page, text, .. } in specs {
        let files = BTreeMap::from([("spec.kdl".to_owned(), text.clone())]);
        let found = compile("spec.kdl", &files).diagnostics;
        let wrong: Vec<&Diagnostic> = found.iter().filter(|problem| !is_of_fragment(problem)).collect();
        assert!(wrong.is_empty(), "{page}:\n{text}\n{wrong:#?}");
    }
}

#[test]
fn json_of_pages_is_json() {
    let listings = all_listings().into_iter().filter(|listing| listing.kind() == "json");
    let mut count = 0;
    for Listing { page, text, .. } in listings {
        let documents: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&text).into_iter::<Value>().collect();
        let documents = documents.unwrap_or_else(|error| panic!("{page}: {error}\n{text}"));
        assert!(!documents.is_empty() && documents.iter().all(Value::is_object), "{page}: {text}");
        count += documents.len();
    }
    assert!(count > 15, "{count}");
}

#[test]
fn commands_of_the_tests_are_there() {
    let script = text("tests/run");
    let lines: Vec<String> =
        all_listings().iter().flat_map(|it| it.text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let words: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("tests/run ")?.split(' ').next()).collect();
    assert!(words.contains(&"bless"), "{words:?}");
    for word in words.into_iter().filter(|word| !word.is_empty()) {
        assert!(script.contains(&format!("\n    {word})\n")), "tests/run knows no `{word}`");
    }
}

#[test]
fn pictures_name_files_that_are_there() {
    assert!(
        root().join("runtime/src/driver/run/driver.rs").is_file() && root().join("runtime/src/io/executor").is_dir()
    );
}

/// The spec of README.md with the mistakes of the listing below it.
#[test]
fn the_readme_shows_what_check_finds() {
    let readme = list_listings("README.md", &text("README.md"));
    let report = readme.iter().find(|listing| listing.text.contains("swarmc check build.kdl")).expect("it is shown");
    let task = report.text.lines().find(|line| line.starts_with(" 10 │ ")).expect("it shows the line");
    let task = task.trim_start_matches(" 10 │ ");
    let spec = readme[0].text.trim_end().trim_end_matches('}').to_owned() + task + "\n}\n";
    let files = [("build.kdl", spec.as_str()), ("prompts/implement.md", "Do this.\n\n<<output:planer>>\n")];
    let files: BTreeMap<String, String> = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    let found = compile("build.kdl", &files).diagnostics;
    let shown: Vec<&Diagnostic> = found.iter().filter(|problem| report.text.contains(&problem.message)).collect();
    assert_eq!((shown.len(), found.len()), (2, 2), "{found:#?}");
    for problem in shown {
        assert!(report.text.contains(&format!("error[{}]", problem.code.id())), "{problem:#?}");
    }
}

#[test]
fn the_fixture_of_contributing_is_one() {
    let listings = list_listings("CONTRIBUTING.md", &text("CONTRIBUTING.md"));
    let fixture = listings.iter().find(|listing| listing.kind() == "kdl").expect("it shows a fixture");
    let files = BTreeMap::from([("spec.kdl".to_owned(), fixture.text.clone())]);
    let codes: Vec<Code> = compile("spec.kdl", &files).diagnostics.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, [Code::UnknownReference]);
}
