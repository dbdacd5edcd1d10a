//! What can be done about what stands somewhere: fixes of problems, suppressions, and moving prompts in and out of files.

use std::collections::BTreeMap;
use std::ops::Range;

use swarmc_compiler::Code;
use swarmc_compiler::index::SymbolKind;
use swarmc_compiler::schema::Kind;
use swarmc_compiler::syntax::{Entry, Form, Node, ValueKind};

use super::diagnostics::{Problem, collect_diagnostics};
use super::document::{Document, Kind as FileKind};
use super::{Edit, Snapshot};

/// Something that can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What it does, as an order.
    pub title: String,
    /// What kind of change it is.
    pub kind: ActionKind,
    /// The edits, by file.
    pub edits: BTreeMap<String, Vec<Edit>>,
    /// Files that are made first, with their text.
    pub files: Vec<(String, String)>,
    /// The problem that it mends, by its place and code.
    pub mends: Option<(Range<usize>, Code)>,
    /// Whether it is what nearly everybody wants here.
    pub preferred: bool,
}

/// What kind of change an [`Action`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// It mends a problem.
    Fix,
    /// It mends all that certainly can be.
    FixAll,
    /// It moves text.
    Extract,
    /// It moves text back.
    Inline,
}

/// What can be done in a range of a file.
pub fn list_actions(snapshot: &Snapshot, path: &str, range: Range<usize>) -> Vec<Action> {
    let Some(document) = snapshot.document(path) else { return Vec::new() };
    let kind = document.kind();
    if kind == FileKind::Foreign {
        return Vec::new();
    }
    let problems = collect_diagnostics(snapshot).remove(path).unwrap_or_default();
    let touched = |problem: &&Problem| problem.range.start <= range.end && range.start <= problem.range.end;
    let mut found: Vec<Action> = Vec::new();
    for problem in problems.iter().filter(touched) {
        found.extend(make_fix(problem));
        if kind == FileKind::Settings {
            continue;
        }
        found.extend(create_file(snapshot, path, &document, problem));
        found.extend(default(&document, path, problem));
        found.extend(suppress_problem(&document, path, problem));
    }
    found.extend(extract_text(snapshot, path, &document, &range));
    found.extend(inline_text(snapshot, path, &document, &range));
    found.extend(fix_all(snapshot, path));
    found
}

fn make_action(title: impl Into<String>, kind: ActionKind, edits: BTreeMap<String, Vec<Edit>>) -> Action {
    Action { title: title.into(), kind, edits, files: Vec::new(), mends: None, preferred: false }
}

fn make_edit(path: &str, range: Range<usize>, text: impl Into<String>) -> BTreeMap<String, Vec<Edit>> {
    BTreeMap::from([(path.to_owned(), vec![Edit { range, text: text.into() }])])
}

fn make_fix(problem: &Problem) -> Option<Action> {
    let fix = problem.fix.as_ref()?;
    // What the compiler brings along is in no file.
    if fix.edits.keys().any(|path| path.starts_with("std:")) {
        return None;
    }
    Some(Action {
        mends: Some((problem.range.clone(), problem.code)),
        preferred: fix.certain,
        ..make_action(fix.title.clone(), ActionKind::Fix, fix.edits.clone())
    })
}

/// Makes the file that is not there.
fn create_file(snapshot: &Snapshot, path: &str, document: &Document, problem: &Problem) -> Option<Action> {
    if problem.code != Code::MissingFile {
        return None;
    }
    let written = document.text().get(problem.range.clone())?.trim_matches(['"', '#']);
    let include = document.kind() == FileKind::Text && !written.rsplit('/').next().unwrap_or(written).contains('.');
    let written = if include { format!("{written}.md") } else { written.to_owned() };
    let target = swarmc_compiler::path_from(path, &written)?;
    if snapshot.files().find(&target).is_ok() || !(target.ends_with(".md") || target.ends_with(".txt")) {
        return None;
    }
    Some(Action {
        files: vec![(target.clone(), String::new())],
        mends: Some((problem.range.clone(), problem.code)),
        ..make_action(format!("create `{target}`"), ActionKind::Fix, BTreeMap::new())
    })
}

/// Gives a directive whose value may be missing a default.
fn default(document: &Document, path: &str, problem: &Problem) -> Option<Action> {
    if !matches!(problem.code, Code::OutputMayBeSkipped | Code::OptionalFieldUnguarded) {
        return None;
    }
    let text = document.text();
    let start = text[..problem.range.start].rfind("<<")?;
    let end = problem.range.end + text[problem.range.end..].find(">>")?;
    if text[start..end].contains(['\n', '|']) {
        return None;
    }
    // Inside a quoted string of a spec, quotes are escaped.
    let quotes = if document.kind() == FileKind::Text { "\"\"" } else { "\\\"\\\"" };
    Some(Action {
        mends: Some((problem.range.clone(), problem.code)),
        ..make_action("add a default", ActionKind::Fix, make_edit(path, end..end, format!(" | default:{quotes}")))
    })
}

/// Suppresses a problem in the line above it; the person says why.
fn suppress_problem(document: &Document, path: &str, problem: &Problem) -> Option<Action> {
    if !problem.code.is_suppressible() {
        return None;
    }
    let text = document.text();
    let start = text[..problem.range.start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..];
    let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    let id = problem.code.id();
    let comment = match document.kind() {
        FileKind::Text => format!("<!-- swarmc: allow({id}) why -->\n"),
        _ => format!("{indent}// swarmc: allow({id}) why\n"),
    };
    let title = format!("allow {id} here, with a reason");
    Some(Action {
        mends: Some((problem.range.clone(), problem.code)),
        ..make_action(title, ActionKind::Fix, make_edit(path, start..start, comment))
    })
}

/// Makes every certain fix of the spec.
fn fix_all(snapshot: &Snapshot, path: &str) -> Option<Action> {
    let analysis = snapshot.analysis(path)?;
    if !analysis.compilation.diagnostics.iter().any(|found| found.fix.as_ref().is_some_and(|fix| fix.certain)) {
        return None;
    }
    let mut overlay = swarmc_compiler::Overlay::new(snapshot.files());
    let mended = swarmc_compiler::fix_spec(path, &mut overlay, snapshot.settings(), false);
    if mended.applied.is_empty() {
        return None;
    }
    let edits = overlay.texts.iter().filter_map(|(path, text)| {
        let old = snapshot.document(path)?;
        Some((path.clone(), vec![Edit { range: 0..old.text().len(), text: text.to_string() }]))
    });
    Some(make_action("make every certain fix", ActionKind::FixAll, edits.collect()))
}

/// A text that may stand in a file of its own: the node that says it, and the entry.
fn find_text<'t>(document: &'t Document, range: &Range<usize>) -> Option<(&'t Node, &'t Entry)> {
    let (node, known) = *document.nodes_at(range.start).last()?;
    // Where the text of the node may come from a file, the table of the language says so.
    known.find_property("file").filter(|property| matches!(property.kind, Kind::Path))?;
    known.arguments.iter().find(|argument| matches!(argument.kind, Kind::Template))?;
    let touches = |entry: &&Entry| entry.span.range().start <= range.start && range.start <= entry.span.range().end;
    node.entries.iter().find(touches).map(|entry| (node, entry))
}

fn extract_text(snapshot: &Snapshot, path: &str, document: &Document, range: &Range<usize>) -> Option<Action> {
    let (node, entry) = find_text(document, range)?;
    let ValueKind::String(text) = &entry.value.kind else { return None };
    if entry.name.is_some() || text.form == Form::Bare {
        return None;
    }
    // The name of the step, agent or prompt that says it.
    let analysis = snapshot.analysis(path)?;
    let file = analysis.file(path)?;
    let around = analysis.index.symbols.iter().filter(|symbol| {
        symbol.whole.file == file
            && symbol.whole.range().start <= node.span.range().start
            && node.span.range().end <= symbol.whole.range().end
            && !matches!(symbol.kind, SymbolKind::Field | SymbolKind::Port)
    });
    let name = around.min_by_key(|symbol| symbol.whole.len()).map_or("prompt", |symbol| symbol.name.as_str());
    let free = |target: &String| {
        swarmc_compiler::path_from(path, target).is_some_and(|path| snapshot.files().find(&path).is_err())
    };
    let numbered = |number: usize| if number == 1 { String::new() } else { format!("-{number}") };
    let word = &*node.name.text;
    let stem = if matches!(word, "prompt" | "system" | "member") { name.to_owned() } else { format!("{name}-{word}") };
    let target = (1..100).map(|number| format!("prompts/{stem}{}.md", numbered(number))).find(free)?;
    let made = swarmc_compiler::path_from(path, &target)?;
    let mut contents = text.as_str().to_owned();
    if !contents.ends_with('\n') {
        contents.push('\n');
    }
    Some(Action {
        files: vec![(made, contents)],
        ..make_action(
            format!("move the text to `{target}`"),
            ActionKind::Extract,
            make_edit(path, entry.span.range(), format!("file=\"{target}\"")),
        )
    })
}

fn inline_text(snapshot: &Snapshot, path: &str, document: &Document, range: &Range<usize>) -> Option<Action> {
    let (node, entry) = find_text(document, range)?;
    let ValueKind::String(written) = &entry.value.kind else { return None };
    if entry.name.as_ref().is_none_or(|name| &*name.text != "file") {
        return None;
    }
    let target = swarmc_compiler::path_from(path, written.as_str())?;
    let text = snapshot.files().read(&target).ok()?;
    // Includes of the file count from where it lies.
    if text.contains("<<include:") || text.contains("<<file:") {
        return None;
    }
    let start = document.text()[..node.span.range().start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &document.text()[start..];
    let indent = &line[..line.len() - line.trim_start_matches(' ').len()];
    Some(make_action(
        format!("put the text of `{}` here", written.as_str()),
        ActionKind::Inline,
        make_edit(path, entry.span.range(), quote_raw(text.trim_end_matches('\n'), indent)),
    ))
}

/// A text as a raw string, which needs no escapes: over several lines where it has them.
fn quote_raw(text: &str, indent: &str) -> String {
    let hashes = (1..).map(|count| "#".repeat(count)).find(|hashes| !text.contains(&format!("\"{hashes}")));
    let hashes = hashes.unwrap_or_default();
    if !text.contains('\n') {
        return format!("{hashes}\"{text}\"{hashes}");
    }
    let mut lines = format!("{hashes}\"\"\"\n");
    for line in text.split('\n') {
        // An empty line of such a string needs no indent, which editors would cut off again.
        if !line.is_empty() {
            lines.push_str(indent);
            lines.push_str("    ");
            lines.push_str(line);
        }
        lines.push('\n');
    }
    format!("{lines}{indent}    \"\"\"{hashes}")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{apply_edits, parse_fixture};
    use super::*;

    /// The action with this title at the cursor, and what the files are after it.
    fn done(text: &str, title: &str) -> (Action, String) {
        let (snapshot, path, offset) = parse_fixture(text);
        let all = list_actions(&snapshot, &path, offset..offset);
        let titles: Vec<&str> = all.iter().map(|action| action.title.as_str()).collect();
        let action = all.iter().find(|action| action.title == title).unwrap_or_else(|| panic!("{titles:?}"));
        (action.clone(), apply_edits(&snapshot, &action.edits))
    }

    const HEAD: &str = "workflow w\nprovider p { exec cat }\nagent a provider=p\n";

    #[test]
    fn a_fix_of_the_compiler_is_an_action() {
        let text = format!(
            "//- a.kdl\n{HEAD}pipeline m {{ task extract {{ run ls }}; task y {{ depends-on $0extrct; run ls }} }}\n"
        );
        let (action, text) = done(&text, "write `extract`");
        assert!(text.contains("depends-on extract;"), "{text}");
        assert_eq!((action.kind, action.preferred), (ActionKind::Fix, true));
    }

    #[test]
    fn a_prompt_file_that_is_not_there_is_made() {
        let text = format!("//- a.kdl\n{HEAD}pipeline m {{ task x {{ prompt file=\"prompts/$0new.md\" }} }}\n");
        let (action, _) = done(&text, "create `prompts/new.md`");
        assert_eq!(action.files, [("prompts/new.md".to_owned(), String::new())]);
    }

    #[test]
    fn a_text_goes_into_a_file_and_comes_back() {
        let text = format!("//- a.kdl\n{HEAD}pipeline m {{\n    task x {{ prompt \"Do $0it:\\nnow\" }}\n}}\n");
        let (action, spec) = done(&text, "move the text to `prompts/x.md`");
        assert_eq!(action.files, [("prompts/x.md".to_owned(), "Do it:\nnow\n".to_owned())]);
        assert!(spec.contains("task x { prompt file=\"prompts/x.md\" }"), "{spec}");
        let text = format!(
            "//- a.kdl\n{HEAD}pipeline m {{\n    task x {{\n        prompt file=\"$0x.md\"\n    }}\n}}\n//- x.md\nDo \"it\"#:\n\n<<param:a>> now\n"
        );
        let (_, spec) = done(&text, "put the text of `x.md` here");
        let written = "prompt ##\"\"\"\n            Do \"it\"#:\n\n            <<param:a>> now\n            \"\"\"##\n";
        assert!(spec.contains(written), "{spec}");
        assert!(
            swarmc_compiler::syntax::parse(&spec.replace("//- a.kdl\n", ""), swarmc_compiler::FileId::new(0))
                .problems
                .is_empty()
        );
    }

    #[test]
    fn what_may_be_missing_gets_a_default() {
        let spec = format!(
            "//- a.kdl\n{HEAD}pipeline m {{\n    task x {{ run ls; when \"param.a\" }}\n    task y {{ depends-on x when=always; prompt file=\"y.md\" }}\n}}\nparam a type=bool\n//- y.md\n"
        );
        let (_, prompt) = done(&format!("{spec}See <<output:$0x>>.\n"), "add a default");
        assert_eq!(prompt, "//- y.md\nSee <<output:x | default:\"\">>.\n");
    }

    #[test]
    fn a_suppression_stands_above_the_line() {
        let text =
            format!("//- a.kdl\n{HEAD}agent $0b provider=p\npipeline m {{ task x agent=a {{ prompt \"a\" }} }}\n");
        let (_, spec) = done(&text, "allow SW103 here, with a reason");
        assert!(spec.contains("// swarmc: allow(SW103) why\nagent b"), "{spec}");
    }

    #[test]
    fn every_certain_fix_is_made_at_once() {
        let text = format!(
            "//- a.kdl\n$0{HEAD}pipeline m {{ fail-fast true; task x {{ run ls }}; task y {{ depends_on x; run ls }} }}\n"
        );
        let (action, spec) = done(&text, "make every certain fix");
        assert!(spec.contains("fail-fast #true") && spec.contains("depends-on x"), "{spec}");
        assert_eq!(action.kind, ActionKind::FixAll);
    }

    #[test]
    fn another_programs_file_gets_nothing() {
        let (snapshot, path, offset) = parse_fixture("//- config.kdl\nlayout { pane $0size=true }\n");
        assert_eq!(list_actions(&snapshot, &path, offset..offset), []);
    }
}
