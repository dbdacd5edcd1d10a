//! Renaming of the words of an enum.
//!
//! The compiler is asked where a word of a type is used: with another word in the declaration it reports every comparison,
//! fake, default and value that says the old one. What it does not take for a use of this type stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use swarmc_compiler::schema::Kind;
use swarmc_compiler::{Compilation, Diagnostic, Overlay, Settings};

use super::names::Rename;
use super::{Edit, Place, Snapshot, element, texts};

/// How many words that are called the same are tried for a use.
const MOST: usize = 8;

/// How often uses show themselves only once others are written anew.
const ROUNDS: usize = 8;

/// The word of an enum at an offset.
pub(super) fn find_word(snapshot: &Snapshot, path: &str, offset: usize) -> Option<Range<usize>> {
    let here = word_at(snapshot, path, offset)?;
    let document = snapshot.document(path)?;
    let other = format!("{}-2", &document.text()[here.clone()]);
    rename_word(snapshot, path, offset, &other).map(|_| here)
}

/// What changes when the word of an enum at an offset becomes another; none where no word of an enum stands.
pub(super) fn rename_word(snapshot: &Snapshot, path: &str, offset: usize, to: &str) -> Option<Rename> {
    let here = word_at(snapshot, path, offset)?;
    let word = snapshot.document(path)?.text()[here.clone()].to_owned();
    let declared = list_declared(snapshot, &word);
    let own = Place { path: path.to_owned(), range: here };
    let tried = match declared.contains(&own) {
        true => vec![own.clone()],
        false => declared.into_iter().take(MOST).collect(),
    };
    let holds = |edits: &Rename| edits.get(path).is_some_and(|edits| edits.iter().any(|edit| edit.range == own.range));
    tried.into_iter().map(|place| collect_uses(snapshot, &place, &word, to)).find(holds)
}

/// Whether an enum can have the word.
pub(super) fn check_word(word: &str) -> Result<(), String> {
    let fits = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_');
    match word.starts_with(|first: char| first.is_ascii_alphabetic()) && word.chars().all(fits) {
        true => Ok(()),
        false => Err(format!(
            "`{word}` cannot be a word of an enum here: one starts with a letter, and goes on with letters, digits, `-` and `_`"
        )),
    }
}

/// The characters of a word around an offset.
fn word_at(snapshot: &Snapshot, path: &str, offset: usize) -> Option<Range<usize>> {
    let document = snapshot.document(path)?;
    let text = document.text();
    let fits = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_');
    let before = text.get(..offset)?;
    let start = offset - (before.len() - before.trim_end_matches(fits).len());
    let rest = &text[offset..];
    let end = offset + rest.len() - rest.trim_start_matches(fits).len();
    (start < end).then_some(start..end)
}

/// The places where types declare the word.
fn list_declared(snapshot: &Snapshot, word: &str) -> BTreeSet<Place> {
    let mut found = BTreeSet::new();
    let mut files: BTreeSet<String> = BTreeSet::new();
    for analysis in snapshot.specs().filter_map(|spec| snapshot.analysis(spec)) {
        let names = analysis.compilation.sources.files().map(|file| analysis.compilation.sources.name(file).to_owned());
        files.extend(names.filter(|name| name.ends_with(".kdl") && !name.starts_with("std:")));
    }
    for path in files {
        let Some(document) = snapshot.document(&path) else { continue };
        element::visit_nodes(&document, &mut |node, known| {
            let mut words = false;
            for (entry, slot) in element::list_entries(node, known) {
                let (Some(slot), Some(text)) = (slot, element::entry_text(entry)) else { continue };
                let inside = texts::unquoted_range(document.text(), entry.value.span.range());
                if matches!(slot.kind(), Kind::Type) {
                    words |= entry.name.is_none() && text.as_str() == "enum";
                    let written = &document.text()[inside.clone()];
                    let places = find_whole(written, word).into_iter().filter(|_| written.contains("enum "));
                    found.extend(places.map(|at| {
                        let range = inside.start + at.start..inside.start + at.end;
                        Place { path: path.clone(), range }
                    }));
                } else if words && entry.name.is_none() && text.as_str() == word {
                    found.insert(Place { path: path.clone(), range: inside });
                }
            }
        });
    }
    found
}

/// Where a word stands by itself in a text.
fn find_whole(text: &str, word: &str) -> Vec<Range<usize>> {
    let part = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_');
    let whole = |at: &usize| !text[..*at].ends_with(part) && !text[at + word.len()..].starts_with(part);
    text.match_indices(word).map(|(at, _)| at).filter(whole).map(|at| at..at + word.len()).collect()
}

/// The declaration and every use that the compiler reports without it.
fn collect_uses(snapshot: &Snapshot, declared: &Place, word: &str, to: &str) -> Rename {
    let mut edits: BTreeMap<String, BTreeSet<Edit>> = BTreeMap::new();
    let add = |edits: &mut BTreeMap<String, BTreeSet<Edit>>, path: &str, range: Range<usize>| {
        edits.entry(path.to_owned()).or_default().insert(Edit { range, text: to.to_owned() })
    };
    add(&mut edits, &declared.path, declared.range.clone());
    let specs: Vec<&str> = snapshot
        .specs()
        .filter(|spec| snapshot.analysis(spec).is_some_and(|known| known.file(&declared.path).is_some()))
        .collect();
    let before: Vec<Compilation> = specs
        .iter()
        .map(|spec| swarmc_compiler::compile_with(spec, &Overlay::new(snapshot.files()), &Settings::default()))
        .collect();
    for _ in 0..ROUNDS {
        let mut more = false;
        let (written, overlay) = (edits.clone(), write_edits(snapshot, &edits));
        for (spec, before) in specs.iter().zip(&before) {
            let after = swarmc_compiler::compile_with(spec, &overlay, &Settings::default());
            for problem in list_new(before, &after) {
                let Some(span) = problem.span() else { continue };
                let (path, text) = (after.sources.name(span.file), after.sources.text(span.file));
                let back = |at: usize| written.get(path).map_or(at, |edits| map_back(edits, at));
                let mut places = find_said(text, span.range(), word);
                places.iter_mut().for_each(|place| *place = back(place.start)..back(place.start) + word.len());
                // Of several places one may be enough: the others say something else.
                let mends = |place: &&Range<usize>| {
                    let mut tried = written.clone();
                    add(&mut tried, path, (*place).clone());
                    let files = write_edits(snapshot, &tried);
                    let tried = swarmc_compiler::compile_with(spec, &files, &Settings::default());
                    count(&tried.diagnostics, problem) < count(&after.diagnostics, problem)
                };
                if places.len() > 1
                    && let Some(place) = places.iter().find(mends).cloned()
                {
                    places = vec![place];
                }
                for place in places {
                    more |= !path.starts_with("std:") && add(&mut edits, path, place);
                }
            }
        }
        if !more {
            break;
        }
    }
    edits.into_iter().map(|(path, edits)| (path, edits.into_iter().collect())).collect()
}

/// The files with these edits.
fn write_edits<'s>(snapshot: &'s Snapshot, edits: &BTreeMap<String, BTreeSet<Edit>>) -> Overlay<'s> {
    let mut overlay = Overlay::new(snapshot.files());
    for (path, edits) in edits {
        let Some(document) = snapshot.document(path) else { continue };
        let mut text = document.text().to_owned();
        // From the end on, so that the places of the others stay true.
        edits.iter().rev().for_each(|edit| text.replace_range(edit.range.clone(), &edit.text));
        overlay.texts.insert(path.clone(), text.into());
    }
    overlay
}

fn count(all: &[Diagnostic], one: &Diagnostic) -> usize {
    all.iter().filter(|other| (other.code, &other.message) == (one.code, &one.message)).count()
}

/// The problems that were not there before.
fn list_new<'a>(before: &'a Compilation, after: &'a Compilation) -> impl Iterator<Item = &'a Diagnostic> {
    let is_new = move |one: &&Diagnostic| count(&after.diagnostics, one) > count(&before.diagnostics, one);
    after.diagnostics.iter().filter(is_new)
}

/// Where a value says the word: as all of it, or in quotes inside of it, where it is no key.
fn find_said(text: &str, span: Range<usize>, word: &str) -> Vec<Range<usize>> {
    let inside = texts::unquoted_range(text, span.clone());
    if text[inside.clone()].trim_matches(['\'', '"']) == word {
        let at = inside.start + text[inside].find(word).unwrap_or_default();
        return std::iter::once(at..at + word.len()).collect();
    }
    let quoted = |at: &Range<usize>| {
        let rest = text[at.end..].trim_start_matches('\\');
        text[..at.start].ends_with(['"', '\''])
            && rest.starts_with(['"', '\''])
            && !rest[1..].trim_start().starts_with(':')
    };
    let found = find_whole(&text[span.clone()], word).into_iter();
    found.map(|at| span.start + at.start..span.start + at.end).filter(quoted).collect()
}

/// The place before the edits of what stands at an offset after them.
fn map_back(edits: &BTreeSet<Edit>, at: usize) -> usize {
    let (mut grown, mut shrunk) = (0, 0);
    for edit in edits {
        if edit.range.start + grown >= at + shrunk {
            break;
        }
        grown += edit.text.len();
        shrunk += edit.range.len();
    }
    at + shrunk - grown
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{apply_edits, parse_fixture};
    use super::super::{prepare_rename, rename_symbol};

    const FLOW: &str = "//- flow.kdl
workflow w { default main }
provider p { exec cat }
agent a provider=p
type Kind enum bug feature
type Report { kind Kind; title string }
type Pest enum bug mouse
pipeline main {
    task read agent=a { prompt \"Read\"; output Report }
    task pest agent=a { prompt \"Look\"; output Pest }
    task fix agent=a { when \"output.read.kind == 'bug'\"; prompt file=\"fix.md\" }
    task trap agent=a { when \"output.pest == 'bug'\"; prompt \"a bug\" }
    task show { value \"{{ 'bug' }}\"; output Kind }
}
test one {
    fake read #\"{\"kind\": \"bug\", \"title\": \"bug\"}\"#
    fake pest bug
    fake fix \"x\"
    fake trap \"x\"
    expect { step fix succeeded }
}
//- fix.md
Mend the bug. {% if output.read.kind != \"bug\" %}Or not.{% endif %}
";

    /// The lines that change when the `n`th `what` becomes another.
    fn renamed(what: &str, n: usize, to: &str) -> Result<String, String> {
        let at = FLOW.match_indices(what).nth(n).expect("it stands there").0 + what.len() - 1;
        let (snapshot, path, offset) = parse_fixture(&format!("{}$0{}", &FLOW[..at], &FLOW[at..]));
        let edits = rename_symbol(&snapshot, &path, offset, to)?;
        let text = apply_edits(&snapshot, &edits);
        let new = |line: &&str| !FLOW.lines().any(|known| known == *line);
        Ok(text.lines().filter(new).map(str::trim).collect::<Vec<_>>().join("\n"))
    }

    const PESTS: &str = "type Pest enum insect mouse
task trap agent=a { when \"output.pest == 'insect'\"; prompt \"a bug\" }
fake pest insect";

    #[test]
    fn a_word_is_another_wherever_its_type_is_meant() {
        assert_eq!(renamed("Pest enum bug", 0, "insect").as_deref(), Ok(PESTS));
        // The same from where it is used.
        assert_eq!(renamed("output.pest == 'bug", 0, "insect").as_deref(), Ok(PESTS));
        assert_eq!(renamed("fake pest bug", 0, "insect").as_deref(), Ok(PESTS));
        let kinds = renamed("Kind enum bug", 0, "defect").expect("it can be called so");
        for line in [
            "type Kind enum defect feature",
            "task fix agent=a { when \"output.read.kind == 'defect'\"; prompt file=\"fix.md\" }",
            "task show { value \"{{ 'defect' }}\"; output Kind }",
            "Mend the bug. {% if output.read.kind != \"defect\" %}Or not.{% endif %}",
        ] {
            assert!(kinds.contains(line), "{line}: {kinds}");
        }
        let fake = "fake read #\"{\"kind\": \"defect\", \"title\": \"bug\"}\"#";
        assert!(!kinds.contains("pest") && kinds.contains(fake), "{kinds}");
    }

    #[test]
    fn what_cannot_be_a_word_is_refused() {
        let refused = |to: &str| renamed("Kind enum bug", 0, to).expect_err("it cannot be called so");
        assert!(refused("a b").contains("starts with a letter"), "{}", refused("a b"));
        assert!(refused("feature").contains("would have errors"), "{}", refused("feature"));
        // A word of a text is none of an enum.
        assert_eq!(renamed("Mend the bug", 0, "x"), Err("there is no name here".to_owned()));
        let (snapshot, path, offset) = parse_fixture(&FLOW.replace("Pest enum bug", "Pest enum b$0ug"));
        let range = prepare_rename(&snapshot, &path, offset).expect("it is a word");
        assert_eq!(&snapshot.document(&path).expect("the file").text()[range], "bug");
    }
}
