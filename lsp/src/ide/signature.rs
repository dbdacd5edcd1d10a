//! How what stands at a cursor is written: a directive, a filter, a node, with the part that the cursor is in.

use std::ops::Range;

use swarmc_compiler::interpolation;
use swarmc_compiler::schema::{Kind as Values, Node};

use super::cursor::{self, CursorKind, Entry};
use super::document::Kind;
use super::hole::{self, Directive, Interpolation, Part};
use super::{Snapshot, complete};

/// How something is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// All of it: `<<output:STEP.field | filter>>`.
    pub label: String,
    /// What it is for, in Markdown.
    pub doc: Option<String>,
    /// Its parts, in order.
    pub parts: Vec<SignaturePart>,
    /// The part that the cursor is in.
    pub active: Option<usize>,
}

/// A part of a [`Signature`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignaturePart {
    /// Its bytes in the label.
    pub range: Range<usize>,
    /// What it is for, in Markdown.
    pub doc: Option<String>,
}

/// How what stands at an offset is written; none where nothing is to be filled in.
pub fn find_signature(snapshot: &Snapshot, path: &str, offset: usize) -> Option<Signature> {
    let document = snapshot.document(path)?;
    let offset = document.text().floor_char_boundary(offset);
    let text = document.text();
    match document.kind() {
        Kind::Foreign => None,
        Kind::Text => {
            let is_read = complete::scope::recent_specs(snapshot, path)
                .iter()
                .any(|(analysis, file)| analysis.index.text_uses_in(*file).next().is_some());
            is_read.then(|| in_text(text, 0..text.len(), offset)).flatten()
        }
        Kind::Spec | Kind::Part | Kind::Settings => {
            let spot = cursor::find_context(text, document.tree()?, document.language(), offset);
            let CursorKind::Entry(entry) = spot.what else { return None };
            match (entry.kind(), entry.quote) {
                (Some(Values::Template), Some(_)) => in_text(text, entry.range, offset),
                (Some(Values::Text | Values::Expression), Some(_)) => None,
                _ => of_node(&entry),
            }
        }
    }
}

fn in_text(text: &str, region: Range<usize>, offset: usize) -> Option<Signature> {
    match hole::find_hole(text, region, offset)? {
        Interpolation::Directive(hole) => of_directive(&hole),
        Interpolation::Logic(_) => None,
    }
}

/// A label that is put together part by part.
#[derive(Default)]
struct Label {
    text: String,
    parts: Vec<SignaturePart>,
}

impl Label {
    fn append_part(&mut self, text: &str, doc: Option<String>) {
        let start = self.text.len();
        self.text += text;
        self.parts.push(SignaturePart { range: start..self.text.len(), doc });
    }
}

fn of_directive(hole: &Directive<'_>) -> Option<Signature> {
    let filters = interpolation::directive_filters(hole.word);
    if hole.part == Part::Argument {
        let filter = filters.into_iter().find(|term| hole.fields.first() == Some(&term.word))?;
        let (word, argument) = filter.usage.split_once(':')?;
        let mut label = Label { text: format!("{word}:"), ..Label::default() };
        label.append_part(argument, None);
        return Some(Signature {
            label: label.text,
            doc: Some(filter.doc.to_owned()),
            parts: label.parts,
            active: Some(0),
        });
    }
    let term = interpolation::directive_terms().find(|term| term.word == hole.word)?;
    let mut label = Label { text: format!("<<{}", term.word), ..Label::default() };
    let mut places = [None; 3];
    if let Some((_, name)) = term.usage.trim_end_matches('>').split_once(':') {
        label.text.push(':');
        places[0] = Some(label.parts.len());
        label.append_part(name, None);
    }
    if matches!(term.word, "output" | "previous" | "input" | "param" | "item") {
        label.text.push('.');
        places[1] = Some(label.parts.len());
        label.append_part("field", Some("A field of the value, where it has some.".to_owned()));
    }
    if !filters.is_empty() {
        label.text += " | ";
        places[2] = Some(label.parts.len());
        let list: Vec<String> = filters.iter().map(|term| format!("- `{}` {}", term.usage, term.doc)).collect();
        label.append_part("filter", Some(list.join("\n")));
    }
    label.text += ">>";
    let active = match hole.part {
        Part::Word => return None,
        Part::Name => places[0],
        Part::Field => places[1],
        Part::Filter | Part::Argument => places[2],
    };
    Some(Signature { label: label.text, doc: Some(term.doc.to_owned()), parts: label.parts, active })
}

fn of_node(entry: &Entry<'_>) -> Option<Signature> {
    let known: &'static Node = entry.node.known?;
    let mut label = Label { text: entry.node.name.to_owned(), ..Label::default() };
    let mut active = None;
    for (index, argument) in known.arguments.iter().enumerate() {
        label.text.push(' ');
        if entry.key.is_none() && entry.position == index {
            active = Some(label.parts.len());
        }
        let shown = if argument.required { argument.name.to_owned() } else { format!("[{}]", argument.name) };
        let default = argument.default.map_or(String::new(), |default| format!("; `{default}` when left out"));
        label.append_part(&shown, Some(format!("{}{default}", argument.kind.describe())));
    }
    if let Some(rest) = known.rest {
        label.text.push(' ');
        if entry.key.is_none() && entry.position >= known.arguments.len() {
            active = Some(label.parts.len());
        }
        label.append_part(&format!("{}…", rest.name), Some(rest.kind.describe()));
    }
    for property in known.properties {
        label.text.push(' ');
        if entry.key == Some(property.name) {
            active = Some(label.parts.len());
        }
        let shown =
            if property.required { format!("{}=…", property.name) } else { format!("[{}=…]", property.name) };
        let default = property.default.map_or(String::new(), |default| format!(" `{default}` when left out."));
        label.append_part(&shown, Some(format!("{} {}.{default}", property.doc, property.kind.describe())));
    }
    let parts = label.parts;
    (!parts.is_empty()).then(|| Signature { label: label.text, doc: Some(known.doc.to_owned()), parts, active })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::parse_fixture;
    use super::*;

    /// The label with the active part in brackets.
    fn shown(line: &str) -> String {
        let (snapshot, path, offset) = parse_fixture(&format!(
            "//- flow.kdl\nprovider p {{ exec cat }}\nagent a provider=p\npipeline main {{\n task t {{\n{line}\n}}\n}}\n"
        ));
        let Some(found) = find_signature(&snapshot, &path, offset) else { return String::new() };
        let mut label = found.label;
        if let Some(active) = found.active {
            let range = found.parts[active].range.clone();
            label.replace_range(range.clone(), &format!("[{}]", &label[range]));
        }
        label
    }

    #[test]
    fn directives_say_what_comes_next() {
        assert_eq!(shown("prompt \"<<output:$0\""), "<<output:[STEP].field | filter>>");
        assert_eq!(shown("prompt \"<<output:x.$0>>\""), "<<output:STEP.[field] | filter>>");
        assert_eq!(shown("prompt \"<<output:x | ta$0"), "<<output:STEP.field | [filter]>>");
        assert_eq!(shown("prompt \"<<output:x | tail:$0>>\""), "tail:[N]");
        assert_eq!(shown("prompt \"<<include:$0\""), "<<include:[PATH]>>");
        assert_eq!(shown("prompt \"Some $0 text\""), "");
        assert_eq!(shown("prompt \"<<outp$0"), "");
    }

    #[test]
    fn nodes_say_their_arguments() {
        assert_eq!(shown("retry $0"), "retry [N] [backoff=…] [max=…] [fresh=…]");
        assert_eq!(shown("retry 2 backoff=$0"), "retry N [[backoff=…]] [max=…] [fresh=…]");
        assert_eq!(shown("depends-on x $0"), "depends-on STEP [STEP…] [when=…]");
        assert_eq!(shown("// retry $0"), "");
    }

    #[test]
    fn prompts_have_them_where_a_spec_reads_them() {
        let files = "//- flow.kdl\nprovider p { exec cat }\nagent a provider=p\npipeline main { task t { prompt file=\"t.md\" } }\n";
        let at = |rest: &str| {
            let (snapshot, path, offset) = parse_fixture(&format!("{files}{rest}"));
            find_signature(&snapshot, &path, offset).map(|found| found.label)
        };
        assert_eq!(at("//- t.md\nSay <<param:$0").as_deref(), Some("<<param:NAME.field | filter>>"));
        assert_eq!(at("//- t.md\n\n//- README.md\nSay <<param:$0"), None);
    }
}
