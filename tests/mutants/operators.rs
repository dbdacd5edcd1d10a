//! The mutations: each operator gives every mutant of a spec that it can make.

use std::collections::BTreeSet;

use super::places::{Kind, Name, Place, Places, Spec, nodes, walk};

/// A spec with something changed.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    pub operator: &'static str,
    /// What stands where instead, from the back of each file to its front; no two overlap.
    edits: Vec<(Place, String)>,
    /// Whether it contradicts itself wherever its plan is another one.
    pub wrong: bool,
}

impl Mutant {
    fn new(operator: &'static str, wrong: bool, mut edits: Vec<(Place, String)>) -> Mutant {
        edits.sort_by_key(|(place, _)| std::cmp::Reverse(place.range.start));
        Mutant { operator, edits, wrong }
    }

    fn one(operator: &'static str, wrong: bool, place: &Place, text: impl Into<String>) -> Mutant {
        Mutant::new(operator, wrong, vec![(place.clone(), text.into())])
    }

    /// The mutated spec.
    pub(super) fn apply(&self, spec: &Spec) -> Spec {
        let mut mutated = spec.clone();
        for (place, text) in &self.edits {
            let file = mutated.files.get_mut(&place.file).expect("an edit is of a file of the spec");
            file.replace_range(place.range.clone(), text);
        }
        mutated
    }

    /// The lines that are gone and those that came, a few of each.
    pub(super) fn difference(&self, spec: &Spec) -> String {
        let mutated = self.apply(spec);
        let mut told = String::new();
        for path in self.edits.iter().map(|(place, _)| &place.file).collect::<BTreeSet<_>>() {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (spec.files[path].lines().collect(), mutated.files[path].lines().collect());
            let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
            let rest = old.len().min(new.len()) - head;
            let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
            told += &format!("  {path}:{}\n", head + 1);
            for (sign, lines) in [('-', &old), ('+', &new)] {
                let changed = &lines[head..lines.len() - tail];
                told.extend(changed.iter().take(12).map(|line| format!("  {sign} {line}\n")));
            }
        }
        told
    }
}

/// Every mutant of a spec.
pub(super) fn mutants(spec: &Spec, places: &Places) -> Vec<Mutant> {
    let operators = [names, nodes_and_entries, types, order, guards, enums, edges, references, words, conditions];
    let all: Vec<Mutant> = operators.iter().flat_map(|operator| operator(spec, places)).collect();
    all.into_iter().filter(|mutant| mutant.apply(spec).files != spec.files).collect()
}

fn text<'s>(spec: &'s Spec, place: &Place) -> &'s str {
    &spec.files[&place.file][place.range.clone()]
}

/// Names that are written wrongly, where they are used or declared.
fn names(_: &Spec, places: &Places) -> Vec<Mutant> {
    let mut found = Vec::new();
    for name in &places.used {
        found.push(Mutant::one("misspell a reference", true, &name.place, format!("{}x", name.text)));
        let others = places.declared.iter().filter(|other| other.kind == name.kind && other.text != name.text);
        let others: BTreeSet<&str> = others.map(|other| other.text.as_str()).collect();
        let plain = |text: &str| if name.text.contains('_') { text.replace('-', "_") } else { text.to_owned() };
        found.extend(others.into_iter().map(|other| Mutant::one("refer to another", false, &name.place, plain(other))));
    }
    for name in &places.declared {
        let same = |other: &&Name| other.text.replace('_', "-") == name.text.replace('_', "-");
        let used = places.used.iter().filter(same).count() > 0;
        let twins = places.declared.iter().filter(same).count() > 1;
        let wrong = used && !twins;
        found.push(Mutant::one("rename a declaration", wrong, &name.place, format!("{}x", name.text)));
        let mut all = vec![(name.place.clone(), format!("{}x", name.text))];
        all.extend(places.used.iter().filter(same).map(|used| (used.place.clone(), format!("{}x", used.text))));
        if !twins {
            found.push(Mutant::new("rename everywhere", false, all));
        }
    }
    found
}

/// Nodes, properties, arguments and directives that are missing or stand twice.
fn nodes_and_entries(spec: &Spec, places: &Places) -> Vec<Mutant> {
    let mut found = Vec::new();
    let source = &spec.files[&spec.path];
    let tree = nodes(source);
    for (node, _) in walk(&tree) {
        let place = Place::new(&spec.path, node.span.range());
        let inside = |name: &Name| {
            name.place.file == spec.path
                && place.range.start <= name.place.range.start
                && name.place.range.end <= place.range.end
        };
        let lost = places.declared.iter().filter(|name| inside(name) && name.kind != Kind::Word);
        let mut left = places.used.iter().filter(|used| !inside(used));
        let needed = lost.clone().any(|lost| {
            let twin = places.declared.iter().any(|other| other.text == lost.text && !inside(other));
            !twin && left.any(|used| used.kind == lost.kind && used.text == lost.text)
        });
        found.push(Mutant::one("delete a node", needed, &place, ""));
        let twice = format!("{0}\n{0}", text(spec, &place));
        let unique = lost.clone().any(|lost| lost.place.range.start >= place.range.start);
        found.push(Mutant::one("write a node twice", unique || &*node.name.text == "answer", &place, twice));
        for entry in &node.entries {
            let place = Place::new(&spec.path, entry.span.range());
            found.push(Mutant::one("delete a property or argument", false, &place, ""));
        }
    }
    let whole = |place: &&Place| text(spec, place).starts_with(['<', '{']);
    for region in places.regions.iter().filter(whole) {
        found.push(Mutant::one("delete a directive", false, region, ""));
        let open = text(spec, region).trim_end_matches(['>', '}', '%']).to_owned();
        let wrong = text(spec, region).starts_with("<<");
        found.push(Mutant::one("leave a directive open", wrong, region, open));
    }
    found
}

/// Types of fields, outputs and parameters that become others.
fn types(spec: &Spec, places: &Places) -> Vec<Mutant> {
    const SIMPLE: &[&str] = &["string", "int", "float", "bool", "string?", "\"list<string>\"", "\"map<string>\""];
    let mut found = Vec::new();
    let tree = nodes(&spec.files[&spec.path]);
    let declared: Vec<&str> =
        places.declared.iter().filter(|name| name.kind == Kind::Type).map(|name| name.text.as_str()).collect();
    for (node, parents) in walk(&tree) {
        let parent = parents.last().map_or("", |parent| &*parent.name.text);
        let typed = parent == "type" || parent == "output" || ["output", "ask", "param"].contains(&&*node.name.text);
        for entry in node.entries.iter().filter(|_| typed) {
            let is_type = entry.name.as_ref().is_none_or(|name| &*name.text == "type");
            let place = Place::new(&spec.path, entry.value.span.range());
            let written = text(spec, &place).trim_matches('"').to_owned();
            let known = SIMPLE.iter().any(|known| known.trim_matches('"') == written)
                || ["list<", "map<"].iter().any(|start| written.starts_with(start))
                || declared.contains(&written.trim_end_matches('?'));
            if !is_type || !known {
                continue;
            }
            let optional = match written.strip_suffix('?') {
                Some(sure) => sure.to_owned(),
                None => format!("\"{written}?\""),
            };
            let lists = [format!("\"list<{written}>\""), format!("\"map<{written}>\"")];
            let item = written.strip_prefix("list<").and_then(|rest| rest.strip_suffix('>')).map(str::to_owned);
            let others = SIMPLE.iter().chain(&declared).map(|&other| other.to_owned());
            for other in others.chain([optional]).chain(lists).chain(item) {
                found.push(Mutant::one("retype", false, &place, other));
            }
        }
    }
    found
}

/// Neighbours that change places.
fn order(spec: &Spec, _: &Places) -> Vec<Mutant> {
    let source = &spec.files[&spec.path];
    let tree = nodes(source);
    let mut lists = vec![tree.as_slice()];
    lists.extend(walk(&tree).into_iter().map(|(node, _)| node.children()));
    let mut found = Vec::new();
    for (index, one) in lists.iter().flat_map(|list| list.iter().enumerate()) {
        let list = lists.iter().find(|list| list.get(index).is_some_and(|node| node.span == one.span));
        for other in list.into_iter().flat_map(|list| &list[index + 1..]) {
            let place = |span: swarmc_compiler::Span| Place::new(&spec.path, span.range());
            let (first, second) = (place(one.span), place(other.span));
            let edits =
                vec![(first.clone(), text(spec, &second).to_owned()), (second.clone(), text(spec, &first).to_owned())];
            found.push(Mutant::new("reorder", false, edits));
        }
    }
    found
}

/// Defaults and guards that are dropped or turned round.
fn guards(spec: &Spec, places: &Places) -> Vec<Mutant> {
    let mut found = Vec::new();
    for region in &places.regions {
        let source = text(spec, region);
        if let Some(at) = source.find("| default") {
            let end = source[at..].find([')', '>']).map_or(source.len(), |length| at + length);
            let place = Place::new(&region.file, region.range.start + at..region.range.start + end);
            let rest = if source[end..].starts_with(')') { "|string(" } else { "" };
            found.push(Mutant::one("drop a default", false, &place, rest));
        }
        for (guard, other) in
            [(" is defined", ""), (" is defined", " is not defined"), (" is not defined", " is defined")]
        {
            if let Some(at) = source.find(guard) {
                let place = Place::new(&region.file, region.range.start + at..region.range.start + at + guard.len());
                found.push(Mutant::one(
                    if other.is_empty() { "drop a guard" } else { "turn a guard round" },
                    false,
                    &place,
                    other,
                ));
            }
        }
    }
    // `{% if … %}` and its `{% endif %}` go, and what stands between them stays.
    let statements = |word: &str| -> Vec<Place> {
        let is = |place: &&Place| text(spec, place).trim_start_matches(['{', '%', '-', ' ']).starts_with(word);
        places.regions.iter().filter(is).cloned().collect()
    };
    let (opened, closed) = (statements("if "), statements("endif"));
    for open in &opened {
        let mut depth = 0;
        let mut after: Vec<(&Place, i32)> = opened.iter().map(|place| (place, 1)).collect();
        after.extend(closed.iter().map(|place| (place, -1)));
        after.retain(|(place, _)| place.file == open.file && place.range.start >= open.range.start);
        after.sort_by_key(|(place, _)| place.range.start);
        let close = after.into_iter().find(|(_, step)| {
            depth += step;
            depth == 0
        });
        if let Some((close, _)) = close {
            let edits = vec![(open.clone(), String::new()), (close.clone(), String::new())];
            found.push(Mutant::new("drop a guard", false, edits));
            found.push(Mutant::one(
                "turn a guard round",
                false,
                &Place::new(&open.file, open.range.clone()),
                negated(text(spec, open)),
            ));
        }
    }
    let tree = nodes(&spec.files[&spec.path]);
    for (node, _) in walk(&tree) {
        let name = &*node.name.text;
        let defaults = node.properties().filter(|(name, _)| &*name.text == "default");
        found.extend(
            defaults.map(|(_, entry)| {
                Mutant::one("drop a default", false, &Place::new(&spec.path, entry.span.range()), "")
            }),
        );
        if ["when", "until", "on-timeout", "headless", "join", "default"].contains(&name) {
            found.push(Mutant::one("drop a guard", false, &Place::new(&spec.path, node.span.range()), ""));
        }
    }
    found
}

/// `{% if x %}` as `{% if not (x) %}`.
fn negated(statement: &str) -> String {
    match (statement.find("if "), statement.rfind("%}")) {
        (Some(at), Some(end)) => {
            let end = if statement[..end].ends_with('-') { end - 1 } else { end };
            let (head, condition) = (&statement[..at + 3], statement[at + 3..end].trim());
            format!("{head}not ({condition}) {}", &statement[end..])
        }
        _ => statement.to_owned(),
    }
}

/// The values of enums and the options of gates, declared and compared with.
fn enums(spec: &Spec, places: &Places) -> Vec<Mutant> {
    let mut found = Vec::new();
    let words: BTreeSet<&str> =
        places.declared.iter().filter(|name| name.kind == Kind::Word).map(|name| name.text.as_str()).collect();
    for name in places.declared.iter().filter(|name| name.kind == Kind::Word) {
        found.push(Mutant::one("change an enum", false, &name.place, ""));
        found.push(Mutant::one("change an enum", false, &name.place, format!("{} other", name.text)));
        found.push(Mutant::one("change an enum", false, &name.place, format!("{0} {0}", name.text)));
        found.push(Mutant::one("change an enum", false, &name.place, name.text.to_uppercase()));
    }
    for literal in &places.literals {
        let own = text(spec, literal);
        let known = words.contains(own);
        found.push(Mutant::one("change a compared value", known, literal, format!("{own}x")));
        found.push(Mutant::one("change a compared value", known, literal, own.to_uppercase()));
        for other in words.iter().filter(|&&word| known && word != own) {
            found.push(Mutant::one("compare with another value", false, literal, *other));
        }
    }
    found
}

/// Edges that are cut: what is waited for, and directives that implied it.
fn edges(spec: &Spec, places: &Places) -> Vec<Mutant> {
    let mut found = Vec::new();
    let tree = nodes(&spec.files[&spec.path]);
    for (node, _) in walk(&tree).into_iter().filter(|(node, _)| &*node.name.text == "depends-on") {
        let mut cut = vec![node.span];
        cut.extend(node.entries.iter().map(|entry| entry.span));
        for span in cut {
            found.push(Mutant::one("cut an edge", false, &Place::new(&spec.path, span.range()), ""));
        }
        let place = Place::new(&spec.path, node.span.range());
        for when in ["success", "failure", "any", "always"] {
            let written = format!(
                "depends-on {} when={when}",
                node.arguments().map(|entry| &spec.files[&spec.path][entry.span.range()]).collect::<Vec<_>>().join(" ")
            );
            found.push(Mutant::one("change an edge", false, &place, written));
        }
    }
    let steps: Vec<&str> =
        places.declared.iter().filter(|name| name.kind == Kind::Step).map(|name| name.text.as_str()).collect();
    for (node, _) in walk(&tree).into_iter().filter(|(node, _)| &*node.name.text == "task") {
        let Some(block) = &node.children else { continue };
        let place = Place::new(&spec.path, block.open.range());
        for step in &steps {
            for more in ["", " when=failure"] {
                found.push(Mutant::one("add an edge", false, &place, format!("{{\n        depends-on {step}{more}\n")));
            }
        }
    }
    for region in &places.regions {
        if text(spec, region).starts_with("<<output:") {
            found.push(Mutant::one("cut an edge", false, region, "what came before"));
            for kind in ["previous", "status", "exit", "error"] {
                let other = text(spec, region).replacen("output", kind, 1);
                found.push(Mutant::one("read something else", false, region, other));
            }
        }
    }
    found
}

/// Pairs of references in one file that change places.
fn references(_: &Spec, places: &Places) -> Vec<Mutant> {
    let mut found = Vec::new();
    for (index, one) in places.used.iter().enumerate() {
        for other in places.used[index + 1..].iter().filter(|other| other.place.file == one.place.file) {
            if one.kind == other.kind && one.text != other.text {
                let edits = vec![(one.place.clone(), other.text.clone()), (other.place.clone(), one.text.clone())];
                found.push(Mutant::new("swap two references", false, edits));
            }
        }
    }
    found
}

/// Words and numbers of the language that become others of their kind.
fn words(spec: &Spec, _: &Places) -> Vec<Mutant> {
    const SETS: &[&[&str]] = &[
        &["success", "failure", "any", "always"],
        &["all", "any", "none-failed", "settled"],
        &["fail", "success", "skip", "stop", "continue"],
    ];
    let mut found = Vec::new();
    let tree = nodes(&spec.files[&spec.path]);
    for (node, _) in walk(&tree) {
        for entry in &node.entries {
            let place = Place::new(&spec.path, entry.value.span.range());
            let own = text(spec, &place);
            for set in SETS.iter().filter(|set| set.contains(&own)) {
                let others = set.iter().filter(|&&other| other != own);
                found.extend(others.map(|&other| Mutant::one("change a word", false, &place, other)));
            }
            if own.starts_with(|sign: char| sign.is_ascii_digit()) {
                found.extend(["0", "1", "1000"].map(|other| Mutant::one("change a number", false, &place, other)));
            }
        }
    }
    found
}

/// Conditions that say something else.
fn conditions(spec: &Spec, places: &Places) -> Vec<Mutant> {
    const OTHERS: &[(&str, &str)] = &[
        (" == ", " != "),
        (" != ", " == "),
        (" and ", " or "),
        (" or ", " and "),
        ("not ", ""),
        (" in ", " not in "),
        (" > ", " < "),
        ("output.", "previous."),
        ("previous.", "output."),
    ];
    let mut found = Vec::new();
    for region in &places.regions {
        for (own, other) in OTHERS {
            for (at, _) in text(spec, region).match_indices(own) {
                let start = region.range.start + at;
                let place = Place::new(&region.file, start..start + own.len());
                found.push(Mutant::one("change a condition", false, &place, *other));
            }
        }
    }
    found
}
