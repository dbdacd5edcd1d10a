//! Paths that lead to files, and the values of the last run beside what reads them.

use std::ops::Range;

use swarmc_compiler::index::Role;

use super::document::Kind;
use super::{Snapshot, hover, names, texts};
use crate::runs::{Remembered, Runs};

/// A path that can be followed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Where it stands, without quotes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The file, relative to the workspace.
    pub file: String,
}

/// A value of the last run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// What reads it.
    pub range: Range<usize>,
    /// The value in a line.
    pub text: String,
}

/// The paths of a file that lead to files which a spec reads.
pub fn list_links(snapshot: &Snapshot, path: &str) -> Vec<Link> {
    let mut found: Vec<Link> = Vec::new();
    for analysis in snapshot.find_analyses(path) {
        let Some(file) = analysis.file(path) else { continue };
        for used in analysis.index.paths.iter().filter(|used| used.span.file == file) {
            let target = analysis.compilation.sources.name(used.file);
            if !target.starts_with("std:") {
                let range = include_range(analysis.compilation.sources.slice(used.span), used.span.range());
                found.push(Link { start: range.start, end: range.end, file: target.to_owned() });
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The path in a directive that includes it.
fn include_range(written: &str, range: Range<usize>) -> Range<usize> {
    let Some(inside) = written.strip_suffix(">>").or(written.strip_suffix("}}")) else { return range };
    let Some((word, path)) = inside.split_once(':') else { return range };
    let path = path.split('|').next().unwrap_or(path);
    let start = range.start + word.len() + 1 + (path.len() - path.trim_start().len());
    start..start + path.trim().len()
}

/// What directives gave in the last run, and what steps put out then, in a range of a file.
pub fn list_values(snapshot: &Snapshot, path: &str, within: Range<usize>, runs: &dyn Runs) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    let Some(document) = snapshot.document(path) else { return found };
    if document.kind() == Kind::Foreign {
        return found;
    }
    let runs = &Remembered::new(runs);
    let about = snapshot.find_analyses(path);
    let meets = |range: &Range<usize>| within.start <= range.start && range.end <= within.end;
    for said in texts::list_texts(snapshot, path, &document) {
        if said.range.end < within.start || within.end < said.range.start {
            continue;
        }
        for hole in texts::list_holes(&document, &said).into_iter().filter(|hole| meets(&hole.range)) {
            let value =
                about.iter().find_map(|analysis| hover::find_last_value(analysis, path, &document, &hole, runs));
            found.extend(value.map(|(_, text)| Value { range: hole.range, text: preview_line(&text) }));
        }
    }
    // Each spec that shares the file would say the same again.
    for analysis in about.iter().take(1) {
        let (Some(file), index) = (analysis.file(path), &analysis.index) else { continue };
        let places = index.occurrences_in(file, names::byte_offset(within.start)..names::byte_offset(within.end));
        for place in places.iter().filter(|place| place.role == Role::Definition) {
            let Some(step) = index.steps.iter().find(|step| step.symbol == place.symbol) else { continue };
            let run = runs.last_run(&index.workflow, &index.symbol(step.pipeline).name);
            let Some(known) = run.and_then(|run| run.steps.get(&index.symbol(step.symbol).name).cloned()) else {
                continue;
            };
            let output = known.output.map_or(String::new(), |output| format!(": {}", preview_line(&output)));
            found.push(Value { range: place.span.range(), text: format!("{}{output}", known.status) });
        }
    }
    found.sort_by_key(|value| value.range.start);
    found
}

/// The beginning of a text in one line, without what a terminal would obey.
fn preview_line(text: &str) -> String {
    /// As much as fits beside a line.
    const CHARACTERS: usize = 80;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut kept: String = words.chars().filter(|sign| !sign.is_control()).take(CHARACTERS).collect();
    if kept.len() < words.len() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::fixture::parse_fixture;
    use super::*;
    use crate::runs::{LastRun, LastStep, NoRuns, RunState};

    struct Ran;

    impl Runs for Ran {
        fn last_run(&self, _: &str, _: &str) -> Option<Arc<LastRun>> {
            let output = Some(format!("two\n  lines\u{7} {}", "x".repeat(100)));
            let one = LastStep { status: "succeeded", output, took: None };
            let two = LastStep { status: "failed", output: None, took: None };
            let steps = BTreeMap::from([("one".to_owned(), one), ("two".to_owned(), two)]);
            let params = BTreeMap::from([("goal".to_owned(), "fun".to_owned())]);
            let (id, age) = ("r".to_owned(), Duration::ZERO);
            Some(Arc::new(LastRun { id, state: RunState::Failed, age, params, steps }))
        }
    }

    const FLOW: &str = "workflow w
import \"lib.kdl\"
import \"std:providers\"
param goal type=string
pipeline m {
    task one { run echo }
    task two agent=a { prompt file=\"p/two.md\" }
    task lost agent=a { prompt file=\"p/nowhere.md\" }
    task say { value \"<<param:goal>> <<status:two>>\" }
}
//- lib.kdl
provider p { exec cat }
agent a provider=p
";
    const TWO: &str = "<<include:part>> and <<output:one>>\n//- p/part.md\npart\n";

    #[test]
    fn paths_lead_to_files() {
        let shown = |text: &str| {
            let (snapshot, path, _) = parse_fixture(text);
            let document = snapshot.document(&path).expect("the file is there");
            let found = list_links(&snapshot, &path).into_iter();
            found.map(|link| format!("{} → {}", &document.text()[link.start..link.end], link.file)).collect::<Vec<_>>()
        };
        let spec = shown(&format!("//- a.kdl\n{FLOW}//- p/two.md\n{TWO}"));
        assert_eq!(spec, ["lib.kdl → lib.kdl", "p/two.md → p/two.md"]);
        assert_eq!(shown(&format!("//- p/two.md\n{TWO}//- a.kdl\n{FLOW}")), ["part → p/part.md"]);
        assert!(shown("//- a.kdl\nlayout { pane file=\"b.kdl\" }\n//- b.kdl\nworkflow b\n").is_empty());
    }

    #[test]
    fn values_of_the_last_run_stand_beside_what_reads_them() {
        let shown = |text: &str, runs: &dyn Runs| {
            let (snapshot, path, _) = parse_fixture(text);
            let document = snapshot.document(&path).expect("the file is there");
            let found = list_values(&snapshot, &path, 0..document.text().len(), runs).into_iter();
            found
                .map(|value| format!("{} = {}", &document.text()[value.range], value.text))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let spec = format!("//- a.kdl\n{FLOW}//- p/two.md\n{TWO}");
        insta::assert_snapshot!(shown(&spec, &Ran), @"
        one = succeeded: two lines xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
        two = failed
        <<param:goal>> = fun
        <<status:two>> = failed
        ");
        insta::assert_snapshot!(shown(&format!("//- p/two.md\n{TWO}//- a.kdl\n{FLOW}"), &Ran), @"<<output:one>> = two lines xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…");
        assert_eq!(shown(&spec, &NoRuns), "");
    }
}
