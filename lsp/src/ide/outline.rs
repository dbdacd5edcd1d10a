//! The symbols of a file as a tree, and those of the workspace by name.

use std::ops::Range;

use swarmc_compiler::StepKind;
use swarmc_compiler::index::SymbolKind;
use swarmc_compiler::schema::{self, Kind as Value};
use swarmc_compiler::syntax::Node;

use super::document::Kind;
use super::{Document, Place, Snapshot, element, names, texts};

/// A symbol of a file with those in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name; of a node that declares none, what the node says first.
    pub name: String,
    /// The node: `task`, with the body of a task: `task · run`.
    pub detail: String,
    /// What it is.
    pub kind: EntryKind,
    /// The whole node.
    pub range: Range<usize>,
    /// Its name.
    pub selection: Range<usize>,
    /// What stands in it.
    pub children: Vec<Entry>,
}

/// What an [`Entry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A symbol of the language.
    Symbol(SymbolKind),
    /// The workflow.
    Workflow,
    /// A test.
    Test,
    /// Edges.
    Edges,
}

/// A symbol of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// What it stands in.
    pub within: Option<String>,
    /// Its name where it is declared.
    pub place: Place,
}

/// The symbols of a spec; broken parts are left out, what stands in them is not.
pub fn build_outline(document: &Document) -> Vec<Entry> {
    match (document.tree(), document.kind()) {
        (Some(tree), Kind::Spec | Kind::Part) => list_entries(document, &tree.nodes, &schema::SPEC),
        _ => Vec::new(),
    }
}

/// Recursion is bounded by how deep a document nests.
fn list_entries(document: &Document, nodes: &[Node], parent: &'static schema::Node) -> Vec<Entry> {
    let mut found = Vec::new();
    for node in nodes {
        let Some(known) = element::find_schema(parent, node) else { continue };
        let inner = list_entries(document, node.children(), known);
        match entry_kind(known, parent) {
            Some(kind) => found.push(make_entry(document, node, known, kind, inner)),
            // What it holds belongs to what it stands in.
            None => found.extend(inner),
        }
    }
    found
}

fn make_entry(
    document: &Document,
    node: &Node,
    known: &'static schema::Node,
    kind: EntryKind,
    children: Vec<Entry>,
) -> Entry {
    let named_itself = known.name.starts_with(|sign: char| sign.is_ascii_uppercase());
    let argument = node.arguments().next().filter(|_| !named_itself);
    let (name, selection) = match argument.and_then(|entry| Some((element::entry_text(entry)?, entry.value.span))) {
        Some((text, span)) => (text.as_str().to_owned(), texts::unquoted_range(document.text(), span.range())),
        None => (node.name.text.to_string(), node.name.span.range()),
    };
    let body = known.name == "task";
    let is_body = |child: &&Node| StepKind::in_task(&child.name.text).is_some();
    let body = body.then(|| node.children().iter().find(is_body)).flatten();
    let detail = match body {
        Some(body) => format!("{} · {}", known.name, body.name.text),
        None if named_itself => node
            .arguments()
            .filter_map(element::entry_text)
            .map(swarmc_compiler::syntax::Text::as_str)
            .collect::<Vec<_>>()
            .join(" "),
        None => known.display_name(&node.name.text).to_owned(),
    };
    // A client refuses an empty name.
    let name = if name.is_empty() { known.name.to_owned() } else { name };
    Entry { name, detail, kind, range: node.span.range(), selection, children }
}

/// What a node declares.
fn entry_kind(known: &'static schema::Node, parent: &'static schema::Node) -> Option<EntryKind> {
    let symbol = match known.name {
        "workflow" => return Some(EntryKind::Workflow),
        "test" => return Some(EntryKind::Test),
        "edges" => return Some(EntryKind::Edges),
        "import" => SymbolKind::Alias,
        "param" if parent.name != "test" => SymbolKind::Param,
        "secret" => SymbolKind::Secret,
        "type" => SymbolKind::Type,
        "provider" => SymbolKind::Provider,
        "agent" if parent.name.is_empty() => SymbolKind::Agent,
        "tool-server" => SymbolKind::ToolServer,
        "prompt" if parent.name.is_empty() => SymbolKind::Prompt,
        "context-pack" => SymbolKind::Pack,
        "task" => SymbolKind::Task,
        "gate" => SymbolKind::Gate,
        "loop" => SymbolKind::Loop,
        "stop" => SymbolKind::Stop,
        "pipeline" if parent.name.is_empty() => SymbolKind::Pipeline,
        "swarm" if parent.name.is_empty() => SymbolKind::Swarm,
        "supervisor" | "coordinator" | "member" => SymbolKind::Member,
        "item" if parent.name == "swarm" => SymbolKind::Item,
        "channel" => SymbolKind::Channel,
        "worktree" if parent.name == "swarm" => SymbolKind::Worktree,
        "input" if matches!(known.arguments.first().map(|argument| argument.kind), Some(Value::Name)) => {
            SymbolKind::Port
        }
        "FIELD" if matches!(parent.name, "type" | "output") => SymbolKind::Field,
        _ if parent.name == "tiers" => SymbolKind::Tier,
        _ => return None,
    };
    Some(EntryKind::Symbol(symbol))
}

/// The symbols of the workspace whose names hold the signs of a query in this order, the closest first.
pub fn search_symbols(snapshot: &Snapshot, query: &str) -> Vec<Found> {
    /// More than a person reads.
    const MOST: usize = 200;
    let query = query.to_lowercase();
    let mut found: Vec<(usize, Found)> = Vec::new();
    for spec in snapshot.specs() {
        let Some(analysis) = snapshot.analysis(spec) else { continue };
        let index = &analysis.index;
        for symbol in &index.symbols {
            let Some(distance) = match_distance(&symbol.name.to_lowercase(), &query) else { continue };
            let place = names::make_place(&analysis, symbol.span);
            if place.path.starts_with("std:") || matches!(symbol.kind, SymbolKind::Option | SymbolKind::Alias) {
                continue;
            }
            let within = symbol.within.map(|within| index.symbol(within).name.clone());
            found.push((distance, Found { name: symbol.name.clone(), kind: symbol.kind, within, place }));
        }
    }
    let key = |found: &(usize, Found)| (found.0, found.1.name.len(), found.1.name.clone(), found.1.place.clone());
    // A key holds copies of texts, which a plain sort would make for each comparison.
    found.sort_by_cached_key(key);
    found.dedup();
    found.truncate(MOST);
    found.into_iter().map(|(_, found)| found).collect()
}

/// How far a name is from a query: 0 the same, then where it begins so, where it holds it, and where it holds its signs.
fn match_distance(name: &str, query: &str) -> Option<usize> {
    if name == query {
        return Some(0);
    }
    if name.starts_with(query) {
        return Some(1);
    }
    if name.contains(query) {
        return Some(2);
    }
    let mut signs = name.chars();
    query.chars().all(|wanted| signs.any(|sign| sign == wanted)).then_some(3)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::super::fixture::parse_fixture;
    use super::*;

    fn shown(document: &Document, entries: &[Entry], depth: usize, text: &mut String) {
        for entry in entries {
            let selected = &document.text()[entry.selection.clone()];
            assert!(entry.range.start <= entry.selection.start && entry.selection.end <= entry.range.end);
            let _ = writeln!(text, "{}{} ({}) [{selected}]", "  ".repeat(depth), entry.name, entry.detail);
            shown(document, &entry.children, depth + 1, text);
        }
    }

    fn outlined(text: &str) -> String {
        let (snapshot, path, _) = parse_fixture(text);
        let document = snapshot.document(&path).expect("the file is there");
        let mut text = String::new();
        shown(&document, &build_outline(&document), 0, &mut text);
        text
    }

    #[test]
    fn a_spec_is_a_tree_of_symbols() {
        insta::assert_snapshot!(outlined("//- a.kdl
workflow w
import \"lib.kdl\" as=lib
param goal type=string
tiers { small p }
agent a
type Verdict { ok bool }
pipeline main {
    task \"one\" { input x from=two; prompt \"<<input:x>>\"; output { text string } }
    loop again max=2 {
        task two { run echo }
        until \"output.two == 'x'\"
    }
    gate g { options yes no }
    edges { one -> two }
}
swarm s { coordinator lead agent=a; member m agent=a \"x\"; item i \"do\" }
test t { fake one x }
"), @"
        w (workflow) [w]
        lib.kdl (import) [lib.kdl]
        goal (param) [goal]
        small (p) [small]
        a (agent) [a]
        Verdict (type) [Verdict]
          ok (bool) [ok]
        main (pipeline) [main]
          one (task · prompt) [one]
            x (input) [x]
            text (string) [text]
          again (loop) [again]
            two (task · run) [two]
          g (gate) [g]
          edges (edges) [edges]
        s (swarm) [s]
          lead (coordinator) [lead]
          m (member) [m]
          i (item) [i]
        t (test) [t]
        ");
    }

    #[test]
    fn broken_and_foreign_files_have_what_can_be_read() {
        insta::assert_snapshot!(outlined("//- a.kdl\nworkflow\npipeline p {\n    task \"\" { run\n    task two { prompt \"x"), @"
        workflow (workflow) [workflow]
        p (pipeline) [p]
          task (task · run) []
          two (task · prompt) [two]
        ");
        assert_eq!(outlined("//- a.kdl\nlayout { pane }\n"), "");
        assert_eq!(outlined("//- a.md\n# Title\n"), "");
    }

    #[test]
    fn symbols_of_the_workspace_are_found_by_their_signs() {
        let (snapshot, _, _) = parse_fixture(
            "//- a.kdl
workflow w
pipeline main { task find-it { run echo }; task it { run echo } }
//- b.kdl
workflow v
pipeline other { task fit { run echo } }
",
        );
        let names = |query: &str| -> Vec<String> {
            search_symbols(&snapshot, query)
                .into_iter()
                .map(|found| format!("{}:{}", found.place.path, found.name))
                .collect()
        };
        assert_eq!(names("IT"), ["a.kdl:it", "b.kdl:fit", "a.kdl:find-it"]);
        assert_eq!(names("fdt"), ["a.kdl:find-it"]);
        assert!(names("zz").is_empty());
        assert!(names("").len() >= 5);
    }
}
