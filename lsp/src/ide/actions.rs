//! What can be done about what stands somewhere: fixes of problems, suppressions, and moving prompts in and out of files.

use std::collections::BTreeMap;
use std::ops::Range;

use swarmc_compiler::Code;
use swarmc_compiler::index::SymbolKind;
use swarmc_compiler::schema::{self, Kind, Target};
use swarmc_compiler::syntax::{Entry, Form, Node, TokenKind, ValueKind};

use super::diagnostics::{Problem, collect_diagnostics};
use super::document::{Document, Kind as FileKind};
use super::element::{self, Part, Slot};
use super::names::check_name;
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
        found.extend(declare_agent(path, &document, problem));
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
    let prompt = element::find_element(document, problem.range.start).is_some_and(|found| takes_prompt(found.known));
    let is_text = prompt || target.ends_with(".md") || target.ends_with(".txt");
    if snapshot.files().find(&target).is_ok() || !is_text || target.ends_with('/') {
        return None;
    }
    Some(Action {
        files: vec![(target.clone(), String::new())],
        mends: Some((problem.range.clone(), problem.code)),
        ..make_action(format!("create `{target}`"), ActionKind::Fix, BTreeMap::new())
    })
}

/// Declares the agent that is not there, below the other agents and with the provider that they have.
fn declare_agent(path: &str, document: &Document, problem: &Problem) -> Option<Action> {
    let found = element::find_element(document, problem.range.start)?;
    let Part::Value(entry, slot) = found.part else { return None };
    if problem.code != Code::UnknownReference || !matches!(slot.kind(), Kind::Reference(Target::Agent)) {
        return None;
    }
    let name = element::entry_text(entry)?.as_str();
    check_name(SymbolKind::Agent, name).ok()?;
    let nodes = &document.tree()?.nodes;
    let last = |word: &str| nodes.iter().rfind(|node| &*node.name.text == word);
    let said = |node: &Node, key: Option<&str>| {
        let fits = |entry: &&Entry| entry.name.as_ref().map(|name| &*name.text) == key;
        Some(element::entry_text(node.entries.iter().find(fits)?)?.as_str().to_owned())
    };
    let provider = last("agent")
        .and_then(|agent| said(agent, Some("provider")))
        .or_else(|| said(last("provider")?, None))
        .unwrap_or_else(|| swarmc_compiler::preset_names()[0].to_owned());
    let above = last("agent").or_else(|| last("provider")).or_else(|| last("workflow"));
    let at = above.map_or(0, |node| node.span.range().end);
    let declaration = format!("agent {name} provider={provider}");
    let text = if above.is_some() { format!("\n{declaration}") } else { format!("{declaration}\n") };
    Some(Action {
        mends: Some((problem.range.clone(), problem.code)),
        ..make_action(format!("declare `{declaration}`"), ActionKind::Fix, make_edit(path, at..at, text))
    })
}

/// Gives a directive whose value may be missing a default; of expressions the compiler knows the edit.
fn default(document: &Document, path: &str, problem: &Problem) -> Option<Action> {
    const CODES: [Code; 4] =
        [Code::OutputMayBeSkipped, Code::OptionalFieldUnguarded, Code::GuardedJoin, Code::Deadlock];
    if problem.fix.is_some() || !CODES.contains(&problem.code) {
        return None;
    }
    let related = problem.related.iter().filter(|related| related.place.path == path);
    let places = std::iter::once(&problem.range).chain(related.map(|related| &related.place.range));
    let (start, end) = places.into_iter().find_map(|place| find_plain_directive(document.text(), place))?;
    // Inside a quoted string of a spec, quotes are escaped.
    let token = document.tree().and_then(|tree| {
        let at = tree.tokens.partition_point(|token| token.end as usize <= start);
        tree.tokens.get(at).map(|token| token.kind)
    });
    let quotes = if token == Some(TokenKind::Quoted) { "\\\"\\\"" } else { "\"\"" };
    Some(Action {
        mends: Some((problem.range.clone(), problem.code)),
        ..make_action("add a default", ActionKind::Fix, make_edit(path, end..end, format!(" | default:{quotes}")))
    })
}

/// Where the directive around a place starts, and where its end stands; none for one that has filters.
fn find_plain_directive(text: &str, place: &Range<usize>) -> Option<(usize, usize)> {
    let start = text[..place.start].rfind("<<")?;
    let end = place.end + text[place.end..].find(">>")?;
    let apart = text[start..end].contains(['\n', '|']) || text[start..place.start].contains(">>");
    (!apart).then_some((start, end))
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

/// Whether the text of a node may come from a file: the table of the language says so.
fn takes_prompt(known: &schema::Node) -> bool {
    known.find_property("file").is_some_and(|property| matches!(property.kind, Kind::Path))
        && known.arguments.iter().any(|argument| matches!(argument.kind, Kind::Template))
}

/// A text that may stand in a file of its own: the node that says it, and the entry. A cursor elsewhere in the head of the
/// node means its text.
fn find_text<'t>(document: &'t Document, range: &Range<usize>) -> Option<(&'t Node, &'t Entry)> {
    let (node, known) = *document.nodes_at(range.start).last()?;
    if !takes_prompt(known) {
        return None;
    }
    let touches = |entry: &&Entry| entry.span.range().start <= range.start && range.start <= entry.span.range().end;
    if let Some(entry) = node.entries.iter().find(touches) {
        return Some((node, entry));
    }
    let says = |(entry, slot): (&'t Entry, Option<Slot>)| {
        let file = entry.name.as_ref().is_some_and(|name| &*name.text == "file");
        (file || slot.is_some_and(|slot| matches!(slot.kind(), Kind::Template))).then_some(entry)
    };
    let entry = element::list_entries(node, known).find_map(says)?;
    let head = node.name.span.range().start..node.entries.last()?.span.range().end;
    head.contains(&range.start).then_some((node, entry))
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
    // No run of hashes in a text is longer than the text, so one is found.
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
mod tests;
