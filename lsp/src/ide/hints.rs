//! What an editor shows between the words: what steps wait for, where they stand, types, and the size of prompts.
//!
//! Hints say what is not written: a dependency that only a reference implies, the type of an output that declares none.

use std::collections::BTreeMap;
use std::ops::Range;

use swarmc_compiler::index::{Index, ShapeId, ShapeKind, Step, SymbolId};
use swarmc_compiler::interpolation::HoleKind;
use swarmc_compiler::schema;
use swarmc_compiler::syntax::Node;
use swarmc_compiler::{O200k, StepKind, Tokenizer, When};

use super::document::Kind;
use super::{Analysis, Document, Place, Snapshot, element, flow, hover, names, texts};

/// Which hints are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// What a step waits for because it reads it.
    pub order: bool,
    /// Where a step stands: `3/7`.
    pub steps: bool,
    /// Types that are not written.
    pub types: bool,
    /// The size of prompts in tokens.
    pub tokens: bool,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints { order: true, steps: true, types: true, tokens: true }
    }
}

/// A few words between the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Before which byte they stand.
    pub offset: usize,
    /// The words, and where they lead.
    pub label: Vec<(String, Option<Place>)>,
    /// Whether they are a type.
    pub is_type: bool,
    /// What they mean.
    pub tooltip: Option<String>,
}

/// The longest prompt whose tokens are counted, in bytes.
const LONGEST: usize = 256 * 1024;

/// The hints in a range of a file.
pub fn list_hints(snapshot: &Snapshot, path: &str, within: Range<usize>, wanted: Hints) -> Vec<Hint> {
    let Some(document) = snapshot.document(path) else { return Vec::new() };
    let about = match document.kind() {
        Kind::Foreign | Kind::Settings => return Vec::new(),
        _ => snapshot.find_analyses(path),
    };
    let mut found = Vec::new();
    if wanted.types {
        found.extend(of_directives(snapshot, &about, path, &document, &within));
    }
    match document.tree() {
        Some(_) => {
            let Some(analysis) = about.first() else { return found };
            let steps = index_steps(&analysis.index);
            element::visit_nodes(&document, &mut |node, known| {
                let range = node.span.range();
                if range.start < within.end && within.start < range.end {
                    let context = HintContext { snapshot, analysis, path, document: &document, steps: &steps, wanted };
                    context.visit_node(node, known, &mut found);
                }
            });
        }
        None if wanted.tokens && texts::is_prompt(snapshot, path) => {
            let end = document.text().find('\n').unwrap_or(document.text().len());
            found.extend(hint_tokens(document.text(), end));
        }
        None => {}
    }
    found.retain(|hint| within.start <= hint.offset && hint.offset <= within.end);
    found.sort_by_key(|hint| hint.offset);
    found
}

/// The steps of the index by symbol, and how many each pipeline has.
struct Steps {
    by_symbol: BTreeMap<SymbolId, Vec<usize>>,
    counts: BTreeMap<SymbolId, usize>,
}

fn index_steps(index: &Index) -> Steps {
    let mut steps = Steps { by_symbol: BTreeMap::new(), counts: BTreeMap::new() };
    for (position, step) in index.steps.iter().enumerate() {
        steps.by_symbol.entry(step.symbol).or_default().push(position);
        *steps.counts.entry(step.pipeline).or_default() += 1;
    }
    steps
}

struct HintContext<'a> {
    snapshot: &'a Snapshot,
    analysis: &'a Analysis,
    path: &'a str,
    document: &'a Document,
    steps: &'a Steps,
    wanted: Hints,
}

impl HintContext<'_> {
    fn visit_node(&self, node: &Node, known: &'static schema::Node, found: &mut Vec<Hint>) {
        if matches!(known.name, "prompt" | "system" | "prefix" | "suffix") && self.wanted.tokens {
            found.extend(self.hint_size(node));
        }
        if !StepKind::is_step_node(known.name) {
            return;
        }
        let Some(name) = node.arguments().next() else { return };
        let end = name.value.span.range().end;
        let Some(step) = self.find_step(name.value.span.range()) else { return };
        let index = &self.analysis.index;
        if self.wanted.types {
            found.extend(self.hint_output(node, step, end));
            found.extend(self.hint_ports(node, step));
        }
        let count = self.steps.counts.get(&step.pipeline).copied().unwrap_or(0);
        // Alone it stands nowhere.
        if self.wanted.steps && step.position > 0 && count > 1 {
            let pipeline = &index.symbol(step.pipeline).name;
            let tooltip = format!(
                "step {} of {count} of pipeline `{pipeline}`, in an order in which they can run",
                step.position
            );
            let label = vec![(format!("{}/{count}", step.position), None)];
            found.push(Hint { offset: end, label, is_type: false, tooltip: Some(tooltip) });
        }
        if self.wanted.order {
            found.extend(self.hint_order(node, step, end));
        }
    }

    /// The step whose name stands there, when it is one of one pipeline only.
    fn find_step(&self, name: Range<usize>) -> Option<&Step> {
        let index = &self.analysis.index;
        let found =
            index.occurrences_at(self.analysis.file(self.path)?, names::byte_offset(name.end.saturating_sub(1)));
        let mut positions = found.filter_map(|found| self.steps.by_symbol.get(&found.symbol));
        match positions.next()?.as_slice() {
            [one] => index.steps.get(*one),
            _ => None,
        }
    }

    /// What a step waits for though nothing says `depends-on`.
    fn hint_order(&self, node: &Node, step: &Step, name: usize) -> Option<Hint> {
        let index = &self.analysis.index;
        let mut label: Vec<(String, Option<Place>)> = Vec::new();
        for need in step.needs.iter().filter(|need| !need.declared) {
            let before = index.symbol(index.steps.get(need.step)?.symbol);
            let start = if label.is_empty() { "after " } else { ", " };
            label.push((start.to_owned(), None));
            let when = if need.when == When::Success {
                String::new()
            } else {
                format!(" ({})", flow::describe_when(need.when))
            };
            label.push((format!("{}{when}", before.name), Some(names::make_place(self.analysis, before.span))));
        }
        if label.is_empty() {
            return None;
        }
        let is_body = |name: &str| StepKind::in_task(name).is_some() || name == "message";
        let body = node.children().iter().find(|child| is_body(&child.name.text));
        let offset = body.map_or(name, |body| body.span.range().end);
        let tooltip = "it reads them, so it waits for them; a `depends-on` overrides this".to_owned();
        Some(Hint { offset, label, is_type: false, tooltip: Some(tooltip) })
    }

    /// The type of an output that the step does not declare.
    fn hint_output(&self, node: &Node, step: &Step, name: usize) -> Option<Hint> {
        let declares = node.children().iter().any(|child| matches!(&*child.name.text, "output" | "options"));
        let is_body = node.children().iter().any(|child| matches!(&*child.name.text, "value" | "call" | "for-each"));
        (!declares && is_body).then(|| type_hint(self.analysis, step.output, name)).flatten()
    }

    /// The types of what ports read.
    fn hint_ports(&self, node: &Node, step: &Step) -> Vec<Hint> {
        let index = &self.analysis.index;
        let ports = node.children().iter().filter(|child| &*child.name.text == "input");
        let hint = |port: &Node| {
            let entry = port.arguments().next()?;
            let name = element::entry_text(entry)?.as_str();
            let (_, behind) = step.ports.iter().find(|(known, _)| known == name)?;
            type_hint(self.analysis, index.steps.get(*behind)?.output, entry.value.span.range().end)
        };
        ports.filter_map(hint).collect()
    }

    /// The tokens of a text that stands here, or in the file that is named here.
    fn hint_size(&self, node: &Node) -> Option<Hint> {
        let end = node.entries.last()?.span.range().end;
        let file =
            node.properties().find(|(name, _)| &*name.text == "file").and_then(|(_, entry)| element::entry_text(entry));
        let Some(path) = file else {
            let text = node.arguments().next().and_then(element::entry_text)?;
            // What is read at a glance needs no number.
            return (text.as_str().len() > 200).then(|| hint_tokens(text.as_str(), end)).flatten();
        };
        let offset = names::byte_offset(path.span(0..0).range().start);
        let own = self.analysis.file(self.path)?;
        let used =
            self.analysis.index.paths.iter().find(|used| used.span.file == own && used.span.touches_offset(offset))?;
        let file = self.snapshot.document(self.analysis.compilation.sources.name(used.file))?;
        debug_assert!(self.document.tree().is_some());
        hint_tokens(file.text(), end)
    }
}

/// The size of a text.
fn hint_tokens(text: &str, offset: usize) -> Option<Hint> {
    if text.len() > LONGEST || text.trim().is_empty() {
        return None;
    }
    let count = O200k.count(text);
    let tooltip = "the tokens of the text as it stands, without what its holes are filled with".to_owned();
    let unit = if count == 1 { "token" } else { "tokens" };
    let label = vec![(format!("≈ {} {unit}", hover::format_number(count)), None)];
    Some(Hint { offset, label, is_type: false, tooltip: Some(tooltip) })
}

/// A type that says more than that a value is text.
fn type_hint(analysis: &Analysis, shape: ShapeId, offset: usize) -> Option<Hint> {
    let index = &analysis.index;
    let shape = index.shape(shape);
    if matches!(shape.kind, ShapeKind::Plain) && matches!(&*shape.text, "text" | "string" | "any" | "text?" | "any?") {
        return None;
    }
    let place = shape.declared.map(|declared| names::make_place(analysis, index.symbol(declared).span));
    let text: String = match shape.text.char_indices().nth(40) {
        Some((cut, _)) => format!("{}…", &shape.text[..cut]),
        None => shape.text.clone(),
    };
    let label = vec![(": ".to_owned(), None), (text, place)];
    Some(Hint { offset, label, is_type: true, tooltip: None })
}

/// The types of what directives give.
fn of_directives(
    snapshot: &Snapshot,
    about: &[std::sync::Arc<Analysis>],
    path: &str,
    document: &Document,
    within: &Range<usize>,
) -> Vec<Hint> {
    let mut found = Vec::new();
    for said in texts::list_texts(snapshot, path, document) {
        if said.range.end < within.start || within.end < said.range.start {
            continue;
        }
        for hole in texts::list_holes(document, &said) {
            let HoleKind::Directive { word, name, fields, .. } = &hole.kind else { continue };
            let read = matches!(&document.text()[word.clone()], "output" | "previous" | "input" | "param");
            let inside = within.start <= hole.range.start && hole.range.end <= within.end;
            if !read || !inside || name.is_none() {
                continue;
            }
            let end = fields.last().or(name.as_ref()).unwrap_or(word).end;
            let hint = about.iter().find_map(|analysis| {
                let shape = hover::resolve_shape(analysis, path, &document.text()[word.clone()], &hole)?;
                type_hint(analysis, shape, end)
            });
            found.extend(hint);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::fixture::parse_fixture;
    use super::*;

    fn shown(text: &str, wanted: Hints) -> String {
        let (snapshot, path, _) = parse_fixture(text);
        let mut text = snapshot.document(&path).expect("the file is there").text().to_owned();
        let found = list_hints(&snapshot, &path, 0..text.len(), wanted);
        for hint in found.iter().rev() {
            let label: String = hint.label.iter().map(|(text, _)| text.as_str()).collect();
            text.insert_str(hint.offset, &format!("⟦{label}⟧"));
        }
        text
    }

    const FLOW: &str = "workflow w
param goal type=int
provider p { exec cat }
agent a provider=p
type Verdict { ok bool; points list<string> }
pipeline main {
    task find-it agent=a { prompt \"look for <<param:goal>>\"; output Verdict }
    task judge agent=a {
        input what from=find-it
        prompt file=\"judge.md\"
    }
    task points { value \"<<output:find-it.points>>\" }
    task last { depends-on judge when=any; run echo done; when \"exit.judge == 0\" }
}
";
    const JUDGE: &str = "Judge <<input:what>> of <<output:find-it.ok | json>>.\nAnd <<output:find-it>>.\n";

    #[test]
    fn a_spec_says_what_is_not_written() {
        insta::assert_snapshot!(shown(&format!("//- a.kdl\n{FLOW}//- judge.md\n{JUDGE}"), Hints::default()), @r#"
        workflow w
        param goal type=int
        provider p { exec cat }
        agent a provider=p
        type Verdict { ok bool; points list<string> }
        pipeline main {
            task find-it⟦1/4⟧ agent=a { prompt "look for <<param:goal⟦: int⟧>>"; output Verdict }
            task judge⟦2/4⟧ agent=a {
                input what⟦: Verdict⟧ from=find-it
                prompt file="judge.md"⟦after find-it⟧⟦≈ 25 tokens⟧
            }
            task points⟦: list<string>⟧⟦3/4⟧ { value "<<output:find-it.points⟦: list<string>⟧>>"⟦after find-it⟧ }
            task last⟦4/4⟧ { depends-on judge when=any; run echo done; when "exit.judge == 0" }
        }
        "#);
        let none = Hints { order: false, steps: false, types: false, tokens: false };
        assert_eq!(shown(&format!("//- a.kdl\n{FLOW}//- judge.md\n{JUDGE}"), none), FLOW);
    }

    #[test]
    fn a_prompt_says_its_size_and_types() {
        insta::assert_snapshot!(shown(&format!("//- judge.md\n{JUDGE}//- a.kdl\n{FLOW}"), Hints::default()), @"
        Judge <<input:what⟦: Verdict⟧>> of <<output:find-it.ok⟦: bool⟧ | json>>.⟦≈ 25 tokens⟧
        And <<output:find-it⟦: Verdict⟧>>.
        ");
        assert_eq!(shown("//- README.md\nSee <<output:x>>.\n", Hints::default()), "See <<output:x>>.\n");
    }

    #[test]
    fn hints_are_those_of_the_range() {
        let (snapshot, path, _) = parse_fixture(&format!("//- a.kdl\n{FLOW}//- judge.md\n{JUDGE}"));
        let line = FLOW.find("    task points").expect("it stands there");
        let found = list_hints(&snapshot, &path, line..line + 20, Hints::default());
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|hint| (line..=line + 20).contains(&hint.offset)));
        // What is named leads to where it is declared.
        let order = list_hints(&snapshot, &path, line..line + 60, Hints::default());
        let place = order
            .iter()
            .flat_map(|hint| &hint.label)
            .find_map(|(text, place)| place.clone().filter(|_| text == "find-it"));
        assert_eq!(place.map(|place| &FLOW[place.range]), Some("find-it"));
    }

    #[test]
    fn broken_and_foreign_texts_get_what_is_certain() {
        assert_eq!(shown("//- a.kdl\nlayout { pane }\n", Hints::default()), "layout { pane }\n");
        let broken = shown(
            "//- a.kdl\nworkflow w\npipeline p {\n    task a { run echo }\n    task b { value \"<<output:a",
            Hints::default(),
        );
        assert!(broken.contains("task a⟦1/2⟧"), "{broken}");
    }
}
