//! What stands above a declaration and can be clicked: run, plan, run test, the last run, references.

use std::ops::Range;

use swarmc_compiler::schema;

use super::document::Kind;
use super::{Document, Snapshot, element, hover, names, texts};
use crate::runs::Runs;

/// Something above a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lens {
    /// The name that it is about.
    pub range: Range<usize>,
    /// What it does.
    pub kind: LensKind,
}

/// What a [`Lens`] does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LensKind {
    /// Runs a pipeline or swarm.
    Run(String),
    /// Shows its plan.
    Plan(String),
    /// Runs a test.
    Test(String),
    /// Says how the last run went.
    Last {
        /// The run.
        run: String,
        /// In words.
        title: String,
    },
    /// Lists the references; how many there are is counted when the lens is seen.
    References,
}

/// What stands above the declarations of a file.
pub fn list_lenses(snapshot: &Snapshot, path: &str, runs: &dyn Runs) -> Vec<Lens> {
    let mut found = Vec::new();
    let Some(document) = snapshot.document(path) else { return found };
    let Some(tree) = document.tree().filter(|_| document.kind() != Kind::Foreign) else { return found };
    let runnable = document.kind() == Kind::Spec;
    let analysis = snapshot.analysis(path);
    for node in &tree.nodes {
        let Some(known) = element::find_schema(&schema::SPEC, node) else { continue };
        let Some(entry) = node.arguments().next() else { continue };
        let Some(text) = element::entry_text(entry).filter(|text| !text.as_str().is_empty()) else { continue };
        let (name, range) = (text.as_str().to_owned(), name_range(&document, entry.value.span.range()));
        let mut push = |kind: LensKind| found.push(Lens { range: range.clone(), kind });
        match known.name {
            "pipeline" | "swarm" if runnable => {
                push(LensKind::Run(name.clone()));
                push(LensKind::Plan(name.clone()));
                let workflow = analysis.as_ref().map(|analysis| analysis.index.workflow.as_str());
                if let Some(run) = workflow.and_then(|workflow| runs.last_run(workflow, &name)) {
                    let title = format!("last run: {} {}", run.state.as_str(), hover::format_age(run.age));
                    push(LensKind::Last { run: run.id.clone(), title });
                }
                push(LensKind::References);
            }
            "test" if runnable => push(LensKind::Test(name)),
            "pipeline" | "swarm" | "param" | "type" | "provider" | "agent" | "tool-server" | "prompt"
            | "context-pack" | "task" | "secret" => push(LensKind::References),
            _ => {}
        }
    }
    found
}

fn name_range(document: &Document, span: Range<usize>) -> Range<usize> {
    texts::unquoted_range(document.text(), span)
}

/// The name and all its references, where they stand in one node of one file and are written alike: they can be changed
/// together while one of them is typed.
pub fn find_linked_ranges(snapshot: &Snapshot, path: &str, offset: usize) -> Vec<Range<usize>> {
    let Some(document) = snapshot.document(path) else { return Vec::new() };
    let places = names::find_references(snapshot, path, offset, true);
    let home = snapshot.find_analyses(path).into_iter().find_map(|analysis| {
        let (_, id) = names::find_names(&analysis, path, offset).into_iter().next()?;
        let within = analysis.index.symbol(id).within?;
        Some(names::make_place(&analysis, analysis.index.symbol(within).whole))
    });
    let Some(home) = home.filter(|home| home.path == path && places.len() > 1) else { return Vec::new() };
    let written = |range: &Range<usize>| document.text().get(range.clone()).unwrap_or_default().to_owned();
    let first = written(&places[0].range);
    let fits = places.iter().all(|place| {
        let inside = home.range.start <= place.range.start && place.range.end <= home.range.end;
        place.path == path && inside && written(&place.range) == first
    });
    if fits { places.into_iter().map(|place| place.range).collect() } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::fixture::parse_fixture;
    use super::*;
    use crate::runs::{LastRun, NoRuns, RunState};

    struct Ran;

    impl Runs for Ran {
        fn last_run(&self, workflow: &str, pipeline: &str) -> Option<Arc<LastRun>> {
            let run = || LastRun {
                id: "r1".to_owned(),
                state: RunState::Failed,
                age: Duration::from_secs(7200),
                params: BTreeMap::new(),
                steps: BTreeMap::new(),
            };
            (workflow == "w" && pipeline == "main").then(|| Arc::new(run()))
        }
    }

    #[test]
    fn declarations_have_what_can_be_done_with_them() {
        let (snapshot, path, _) = parse_fixture(
            "//- a.kdl
workflow w
param \"goal\" type=string
pipeline main { task t { run echo } }
swarm s { goal \"x\" }
test one { fake t x }
",
        );
        let text = snapshot.document(&path).expect("the file is there").text().to_owned();
        let shown = |runs: &dyn Runs| {
            let lens = |lens: Lens| format!("{} {:?}", &text[lens.range], lens.kind);
            list_lenses(&snapshot, &path, runs).into_iter().map(lens).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(shown(&Ran), @r#"
        goal References
        main Run("main")
        main Plan("main")
        main Last { run: "r1", title: "last run: failed 2h ago" }
        main References
        s Run("s")
        s Plan("s")
        s References
        one Test("one")
        "#);
        assert!(!shown(&NoRuns).contains("Last"));
    }

    #[test]
    fn parts_cannot_be_run_and_foreign_files_have_nothing() {
        let (snapshot, path, _) = parse_fixture("//- lib.kdl\nagent a\n");
        assert_eq!(list_lenses(&snapshot, &path, &NoRuns).len(), 1);
        let (snapshot, path, _) = parse_fixture("//- a.kdl\nlayout { pane }\nagent x\n");
        assert_eq!(list_lenses(&snapshot, &path, &NoRuns), []);
    }

    #[test]
    fn names_of_one_node_are_edited_together() {
        let check = |text: &str, wanted: usize| {
            let (snapshot, path, offset) = parse_fixture(text);
            let document = snapshot.document(&path).expect("the file is there");
            let found = find_linked_ranges(&snapshot, &path, offset);
            assert_eq!(found.len(), wanted, "{text}");
            let words: Vec<&str> = found.iter().map(|range| &document.text()[range.clone()]).collect();
            assert!(words.windows(2).all(|pair| pair[0] == pair[1]), "{words:?}");
        };
        let port = "//- a.kdl\nworkflow w\nprovider p { exec cat }\nagent a provider=p\npipeline m {\n    task one { run echo }\n    task t { input wh$0at from=one; prompt \"<<input:what>> and <<input:what>>\" }\n}\n";
        check(port, 3);
        // A step that only its pipeline names.
        check(
            "//- a.kdl\nworkflow w\npipeline m {\n    task o$0ne { run echo }\n    task t { depends-on one; run x }\n}\n",
            2,
        );
        // Other nodes and other files name it too, or with other signs.
        check(
            "//- a.kdl\nworkflow w\npipeline m {\n    task o$0ne { run echo }\n    task t { depends-on one; run x }\n}\ntest t { fake one x }\n",
            0,
        );
        check(
            "//- a.kdl\nworkflow w\npipeline m {\n    task o$0-e { run echo }\n    task t { value \"{{ output.o_e }}\" }\n}\n",
            0,
        );
        check("//- a.kdl\nworkflow w$0\n", 0);
    }
}
