//! The annotated fixtures under `tests/cases`: what the compiler says about a spec, written beneath the places it means.
//!
//! An annotation is a comment line under the line that it points at, and is taken out before the text is compiled:
//!
//! ```text
//!     task review { depends-on drafd; run echo review }
//!     //                       ^^^^^ error[SW101]: unknown step `drafd`
//!     //                       help: did you mean `draft`?
//! ```
//!
//! Carets mark the place exactly, `^…` one that goes on in further lines, `|` an empty one, `@1-4` one whose columns lie
//! under the slashes. A `note` is another label of the diagnostic with that code, or a numbered place of its trace. A message that ends in `…` stands for
//! all that begin so, with any notes and help. Every diagnostic has an annotation and every annotation its diagnostic.
//! Several files stand in one fixture, each after a line `//- its/path`. A first line `// profile: strict` asks for
//! what that profile shows. With `BLESS=1` the annotations are written anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use std::sync::Arc;

use swarmc_compiler::{Compilation, Diagnostic, Profile, Settings, Sources, Span, compile_with};
use swarmc_lsp::ide::{Document, Kind, Workspace, list_actions};

/// The name that the first file of a fixture is compiled under.
const SPEC: &str = "spec.kdl";

#[test]
fn fixtures_say_what_the_compiler_says() {
    let bless = std::env::var_os("BLESS").is_some();
    let paths = fixtures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"));
    assert!(!paths.is_empty(), "there are fixtures");
    let mut wrong = String::new();
    for path in paths {
        let written = std::fs::read_to_string(&path).expect("a fixture is UTF-8 text");
        let fixture = Fixture::read(&written);
        let found = fixture.compile();
        if bless {
            let blessed = fixture.annotate(&found);
            if blessed != written {
                std::fs::write(&path, blessed).expect("a fixture can be written");
            }
            continue;
        }
        let differences = compare(&fixture.expected, &found);
        if !differences.is_empty() {
            let _ = writeln!(wrong, "\n{}\n{differences}", path.display());
        }
    }
    assert!(wrong.is_empty(), "{wrong}\nread them, then accept what is right with `tests/run bless`");
}

/// Every `.kdl` under a folder, by name.
pub(crate) fn fixtures(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder of the fixtures can be read");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.sort();
    paths
        .into_iter()
        .flat_map(|path| match path.is_dir() {
            true => fixtures(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "kdl"))
        .collect()
}

/// Files without their annotations, and what the annotations say.
pub(crate) struct Fixture {
    files: Vec<File>,
    expected: Vec<Annotation>,
}

struct File {
    name: String,
    lines: Vec<String>,
}

/// A message at a place; lines from 1, columns in characters from 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Annotation {
    file: String,
    line: usize,
    place: Place,
    /// `error[SW101]: message` or `note[SW101]: label`.
    text: String,
    help: Option<String>,
    /// Which diagnostic it belongs to; 0 for what is expected.
    owner: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    start: usize,
    end: usize,
    /// Whether it goes on in the next line.
    open: bool,
}

impl Fixture {
    pub(crate) fn read(text: &str) -> Fixture {
        let mut fixture =
            Fixture { files: vec![File { name: SPEC.to_owned(), lines: Vec::new() }], expected: Vec::new() };
        for line in text.lines() {
            let file = fixture.files.last_mut().expect("there is a first file");
            if let Some(name) = line.strip_prefix("//- ") {
                fixture.files.push(File { name: name.trim().to_owned(), lines: Vec::new() });
            } else if let Some((place, text)) = annotation(line) {
                let (file, line) = (file.name.clone(), file.lines.len());
                fixture.expected.push(Annotation { file, line, place, text, help: None, owner: 0 });
            } else if let (Some(help), Some(last)) = (help(line), fixture.expected.last_mut())
                && last.help.is_none()
            {
                last.help = Some(help);
            } else {
                file.lines.push(line.to_owned());
            }
        }
        fixture
    }

    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let text = |file: &File| file.lines.iter().flat_map(|line| [line, "\n"]).collect::<String>();
        self.files.iter().map(|file| (file.name.clone(), text(file))).collect()
    }

    /// Compiles these texts in the profile that the fixture asks for.
    pub(crate) fn check(&self, texts: &BTreeMap<String, String>) -> Compilation {
        let first = self.files[0].lines.first().map_or("", String::as_str);
        let profile = first.strip_prefix("// profile: ").map_or(Profile::Default, |word| {
            let known = Profile::ALL.iter().find(|profile| profile.as_str() == word.trim());
            *known.unwrap_or_else(|| panic!("there is no profile `{word}`"))
        });
        compile_with(SPEC, texts, &Settings::new(profile))
    }

    fn compile(&self) -> Vec<Annotation> {
        let compilation = self.check(&self.texts());
        let sources = &compilation.sources;
        let all = compilation.diagnostics.iter().enumerate();
        let found = all.flat_map(|(owner, diagnostic)| annotations(diagnostic, sources, owner));
        // The library is not part of a fixture, so what points into it has no line to stand on.
        found.filter(|note| !note.file.starts_with("std:")).collect()
    }

    /// The fixture with these annotations.
    fn annotate(&self, found: &[Annotation]) -> String {
        let mut text = String::new();
        for (index, file) in self.files.iter().enumerate() {
            if index > 0 {
                let _ = writeln!(text, "//- {}", file.name);
            }
            for (index, line) in file.lines.iter().enumerate() {
                let _ = writeln!(text, "{line}");
                let mut here: Vec<&Annotation> =
                    found.iter().filter(|note| note.file == file.name && note.line == index + 1).collect();
                here.sort();
                let indent = line.len() - line.trim_start().len();
                here.iter().for_each(|annotation| text.push_str(&annotation.render(indent)));
            }
        }
        text
    }
}

impl Annotation {
    fn render(&self, indent: usize) -> String {
        let Place { start, end, open } = self.place;
        let mut text = match start < 3 {
            true => format!("//@{}-{}{}", start + 1, end, if open { "…" } else { "" }),
            false => {
                let indent = indent.min(start - 3);
                let carets = if start == end { "|".to_owned() } else { "^".repeat(end - start) };
                let gap = start - indent - 2;
                format!("{:indent$}//{:gap$}{carets}{}", "", "", if open { "…" } else { "" })
            }
        };
        let _ = writeln!(text, " {}", self.text);
        if let Some(help) = &self.help {
            let column = if start < 3 { 3 } else { start };
            let indent = indent.min(column - 3);
            let gap = column - indent - 2;
            let _ = writeln!(text, "{:indent$}//{:gap$}help: {help}", "", "");
        }
        text
    }

    /// Whether `found` is what this one expects.
    fn fits(&self, found: &Annotation) -> bool {
        let place = (&self.file, self.line, self.place) == (&found.file, found.line, found.place);
        place
            && match self.text.strip_suffix('…') {
                Some(beginning) => found.text.starts_with(beginning),
                None => self.text == found.text && self.help == found.help,
            }
    }
}

/// What an annotation line says: carets, or columns after an `@`.
fn annotation(line: &str) -> Option<(Place, String)> {
    let slashes = line.find("//").filter(|&at| line[..at].trim().is_empty())?;
    let rest = &line[slashes + 2..];
    if let Some(rest) = rest.strip_prefix('@') {
        let (columns, text) = rest.split_once(' ')?;
        let (first, last) = columns.trim_end_matches('…').split_once('-')?;
        let start = first.parse::<usize>().ok()?.checked_sub(1)?;
        return Some((Place { start, end: last.parse().ok()?, open: columns.ends_with('…') }, text.to_owned()));
    }
    let start = slashes + 2 + rest.len() - rest.trim_start().len();
    let carets = line[start..].chars().take_while(|&sign| sign == '^').count();
    let rest = &line[start + carets..];
    let rest = if carets == 0 { rest.strip_prefix('|')? } else { rest };
    let (open, rest) = match rest.strip_prefix('…') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let text = rest.strip_prefix(' ')?;
    Some((Place { start, end: start + carets, open }, text.to_owned()))
}

fn help(line: &str) -> Option<String> {
    Some(line.trim_start().strip_prefix("//")?.trim_start().strip_prefix("help: ")?.to_owned())
}

/// What a diagnostic says, a line for each label.
fn annotations(diagnostic: &Diagnostic, sources: &Sources, owner: usize) -> Vec<Annotation> {
    let code = diagnostic.code.id();
    let one_line = |text: &str| text.replace('\n', " ⏎ ");
    let places = diagnostic.all_labels();
    let notes = places.iter().enumerate().map(|(index, label)| {
        let (text, help) = match index {
            0 => {
                let severity = diagnostic.severity().as_str();
                (format!("{severity}[{code}]: {}", diagnostic.message), diagnostic.help.as_deref().map(one_line))
            }
            _ => (format!("note[{code}]: {}", label.text), None),
        };
        let (line, place) = place(label.span, sources);
        Annotation { file: sources.name(label.span.file).to_owned(), line, place, text: one_line(&text), help, owner }
    });
    let notes: Vec<Annotation> = notes.collect();
    assert!(!notes.is_empty(), "`{}` of a spec that can be read points at a place", diagnostic.message);
    notes
}

fn place(span: Span, sources: &Sources) -> (usize, Place) {
    let first = sources.position(span.file, span.start);
    let last = sources.position(span.file, span.end);
    let open = last.line > first.line;
    let end = match open {
        true => sources.file(span.file).line(first.line).chars().count().max(first.column - 1),
        false => last.column - 1,
    };
    (first.line, Place { start: first.column - 1, end, open })
}

/// What is expected and missing, and what is there and unexpected.
fn compare(expected: &[Annotation], found: &[Annotation]) -> String {
    let mut open: Vec<&Annotation> = found.iter().collect();
    let mut differences = String::new();
    for annotation in expected {
        match open.iter().position(|found| annotation.fits(found)) {
            Some(position) => {
                let owner = open.remove(position).owner;
                if annotation.text.ends_with('…') {
                    open.retain(|other| other.owner != owner);
                }
            }
            None => differences.push_str(&describe("missing   ", annotation)),
        }
    }
    open.iter().for_each(|annotation| differences.push_str(&describe("unexpected", annotation)));
    differences
}

fn describe(what: &str, annotation: &Annotation) -> String {
    let Annotation { file, line, place, text, help, .. } = annotation;
    let help = help.as_deref().map(|help| format!("\n             help: {help}")).unwrap_or_default();
    format!("  {what} {file}:{line}:{}-{} {text}{help}\n", place.start + 1, place.end)
}

/// Applies each fix of each fixture alone: it takes its own diagnostic away, and a certain one brings no other.
#[test]
fn fixes_mend_what_they_belong_to() {
    let mut wrong = String::new();
    for path in fixtures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")) {
        let fixture = Fixture::read(&std::fs::read_to_string(&path).expect("a fixture is UTF-8 text"));
        let files = fixture.texts();
        let before = fixture.check(&files);
        for diagnostic in &before.diagnostics {
            let Some(fix) = &diagnostic.fix else { continue };
            let mut mended = files.clone();
            let mut edits: Vec<_> = fix.edits.iter().collect();
            edits.sort_by_key(|edit| std::cmp::Reverse(edit.span.start));
            for edit in edits {
                let text =
                    mended.get_mut(before.sources.name(edit.span.file)).expect("a fix edits a file of the fixture");
                text.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.text);
            }
            let after = fixture.check(&mended);
            let count = |all: &[Diagnostic], wanted: &Diagnostic| {
                all.iter().filter(|one| (one.code, &one.message) == (wanted.code, &wanted.message)).count()
            };
            let place = before.sources.position(diagnostic.labels[0].span.file, diagnostic.labels[0].span.start);
            let mut report = |what: String| {
                let _ = writeln!(
                    wrong,
                    "{}:{}: {} `{}` ({}): {what}",
                    path.display(),
                    place.line,
                    diagnostic.code.id(),
                    diagnostic.message,
                    fix.title
                );
            };
            if count(&after.diagnostics, diagnostic) >= count(&before.diagnostics, diagnostic) {
                report("is still there".to_owned());
            }
            let added =
                after.diagnostics.iter().filter(|new| count(&after.diagnostics, new) > count(&before.diagnostics, new));
            // What is mended needs no suppression any more.
            let added = added.filter(|new| fix.certain && new.code.id() != "SW008");
            // A name that leads somewhere shows what it hid; what harm that does `mend` takes back.
            let renamed = diagnostic.help.as_ref().is_some_and(|help| help.starts_with("did you mean"));
            let added = added.filter(|_| !renamed);
            for new in added {
                report(format!("brings {} `{}`", new.code.id(), new.message));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn ten_mistakes_give_ten_diagnostics_with_help() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/mistakes/ten.kdl");
    let fixture = Fixture::read(&std::fs::read_to_string(path).expect("the fixture is there"));
    let mut found = fixture.compile();
    found.retain(|annotation| !annotation.text.starts_with("note"));
    assert_eq!(found.len(), 10, "{found:#?}");
    assert!(found.iter().all(|annotation| annotation.help.is_some()), "{found:#?}");
    let codes: std::collections::BTreeSet<&str> = found.iter().filter_map(|found| found.text.get(..12)).collect();
    assert!(codes.len() >= 9, "different mistakes: {codes:?}");
}

#[test]
fn annotations_are_read_as_they_are_written() {
    let text = "\
pipeline p {
//@1-8 error[SW003]: at the start
    task a { depends-on b }
    //                  ^ error[SW101]: unknown step `b`
    //                  help: define it
    //                    | note[SW101]: here
    // ^…
    // ^^^^… error[SW001]: goes on
}
//- prompts/a.md
héllo wörld
//    ^^^^^ error[SW208]: …
";
    let fixture = Fixture::read(text);
    let places: Vec<_> =
        fixture.expected.iter().map(|found| (found.line, found.place.start, found.place.end)).collect();
    assert_eq!(places, [(1, 0, 8), (2, 24, 25), (2, 26, 26), (3, 7, 11), (1, 6, 11)]);
    assert_eq!(fixture.files[0].lines.len(), 4, "a comment that is no annotation stays");
    assert_eq!(fixture.expected[1].help.as_deref(), Some("define it"));
    assert_eq!(fixture.files[1].name, "prompts/a.md");
    assert_eq!(fixture.annotate(&fixture.expected), text);
}

#[test]
fn differences_are_found() {
    let read = |text: &str| Fixture::read(text).expected;
    let exact = read("a b c d\n//    ^ error[SW101]: unknown\n//    help: x\n");
    assert_eq!(compare(&exact, &exact), "");
    assert_ne!(compare(&exact, &[]), "");
    assert_ne!(compare(&[], &exact), "");
    assert_ne!(compare(&exact, &read("a b c d\n//    ^ error[SW101]: unknown\n")), "", "the help counts");
    assert_ne!(compare(&exact, &read("a b c d\n//  ^ error[SW101]: unknown\n//  help: x\n")), "", "the column counts");
    assert_eq!(compare(&read("a b c d\n//    ^ error[SW101]: …\n"), &exact), "", "`…` takes any message and help");
    assert_ne!(compare(&read("a b c d\n//    ^ error[SW102]: …\n"), &exact), "", "but one code only");
}

/// Whatever a help says to write instead, an editor can write: "did you mean" and defaults. What is written mends it.
#[test]
fn what_a_help_says_to_write_an_editor_writes() {
    let mut wrong = String::new();
    let mut seen = 0;
    for path in fixtures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")) {
        let fixture = Fixture::read(&std::fs::read_to_string(&path).expect("a fixture is UTF-8 text"));
        let files = fixture.texts();
        let before = fixture.check(&files);
        for diagnostic in &before.diagnostics {
            let help = diagnostic.help.as_deref().unwrap_or_default();
            if !["did you mean", "| default(", "| default:"].iter().any(|words| help.contains(words)) {
                continue;
            }
            seen += 1;
            // An editor shows the problems of specs; of a part or of another file `check --fix` has the edit.
            if Document::new(SPEC, &files[SPEC]).kind() != Kind::Spec && diagnostic.fix.is_some() {
                continue;
            }
            let (span, source) = (diagnostic.labels[0].span, before.sources.name(diagnostic.labels[0].span.file));
            let mut files = files.clone();
            // An editor shows what the settings of the workspace ask for.
            if let Some(profile) = fixture.files[0].lines[0].strip_prefix("// profile: ") {
                files.insert("swarmc.kdl".to_owned(), format!("profile {profile}\n"));
            }
            let mut workspace = Workspace::new(Arc::new(files.clone()));
            workspace.open(SPEC, &files[SPEC]);
            let range = span.start as usize..span.end as usize;
            let actions = list_actions(&workspace.snapshot(), source, range.clone());
            let mends = (range, diagnostic.code);
            let written = actions
                .iter()
                .filter(|action| action.mends.as_ref() == Some(&mends) && !action.title.starts_with("allow "));
            let count = |all: &[Diagnostic]| {
                all.iter().filter(|one| (one.code, &one.message) == (diagnostic.code, &diagnostic.message)).count()
            };
            let mended = written.filter(|action| {
                let mut files = files.clone();
                for (path, edits) in &action.edits {
                    let text = files.get_mut(path).expect("an action edits a file of the fixture");
                    for edit in edits.iter().rev() {
                        text.replace_range(edit.range.clone(), &edit.text);
                    }
                }
                count(&fixture.check(&files).diagnostics) < count(&before.diagnostics)
            });
            if mended.count() == 0 {
                let line = before.sources.position(span.file, span.start).line;
                let titles: Vec<&str> = actions.iter().map(|action| action.title.as_str()).collect();
                let _ = writeln!(
                    wrong,
                    "{}:{source}:{line}: {} `{}` ({help}): {titles:?}",
                    path.display(),
                    diagnostic.code.id(),
                    diagnostic.message
                );
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(seen > 200, "{seen} of the fixtures' helps say what to write");
}
