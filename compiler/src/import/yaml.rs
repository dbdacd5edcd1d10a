//! Parses YAML to a tree with spans.
//!
//! In: a text. Out: its first document, or what is wrong with it. Aliases and merge keys share their value. The parser
//! limits the size that all of them have when written out, so that a small text cannot become a huge tree.

use std::collections::BTreeSet;
use std::rc::Rc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use crate::source::{FileId, Span};

/// Lists and maps within each other at most.
const MAX_DEPTH: usize = 128;

/// The bytes of a text with its aliases written out, at most.
const MAX_SIZE: usize = 64 * 1024 * 1024;

/// Values at most: what a person wrote has fewer, and each takes more memory than text.
const MAX_VALUES: usize = 1_000_000;

/// A value with its place.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) value: Value,
    /// About how many bytes it would be, aliases written out.
    size: usize,
    /// How many lists and maps are within each other here.
    height: usize,
}

#[derive(Debug)]
pub(super) enum Value {
    /// A text; `plain` when it stands without quotes, where `null` and `~` mean that there is none.
    Text {
        text: String,
        plain: bool,
    },
    List(Vec<Rc<Node>>),
    /// In order, with what merge keys bring at the end; a key may stand twice.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Rc<Node>,
    pub(super) value: Rc<Node>,
}

/// Why there is no tree.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) span: Span,
    pub(super) message: String,
}

/// What a text holds.
#[derive(Debug)]
pub(super) struct Document {
    /// None when there is nothing in it.
    pub(super) root: Option<Rc<Node>>,
    /// Where a second document starts, which is not read, and tags, which mean nothing here.
    pub(super) unread: Vec<(Span, &'static str)>,
}

impl Node {
    /// Whether there is nothing: `key:`, `null` or `~`.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Text { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }
}

/// Reads the first document of a text.
pub(super) fn parse(text: &str, file: FileId) -> Result<Document, Broken> {
    Builder::new(text, file).build_document(text)
}

/// A list or map that is still open, with its anchor; a map knows the key that waits for its value.
struct Open {
    start: Span,
    anchor: usize,
    value: Value,
    key: Option<Rc<Node>>,
    size: usize,
    height: usize,
}

struct Builder<'t> {
    places: Places<'t>,
    open: Vec<Open>,
    anchors: Vec<Option<Rc<Node>>>,
    /// The values that were written so far.
    values: usize,
    /// What aliases and merge keys have brought so far.
    shared: usize,
    root: Option<Rc<Node>>,
    unread: Vec<(Span, &'static str)>,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str, file: FileId) -> Builder<'t> {
        Builder {
            places: Places { text, file, index: 0, offset: 0 },
            open: Vec::new(),
            anchors: Vec::new(),
            values: 0,
            shared: 0,
            root: None,
            unread: Vec::new(),
        }
    }

    fn build_document(mut self, text: &str) -> Result<Document, Broken> {
        let mut parser = Parser::new_from_str(text);
        let mut documents = 0;
        while let Some(event) = parser.next_event() {
            let (event, at) = match event {
                Ok(event) => event,
                Err(error) => {
                    let span = self.places.span_between(*error.marker(), *error.marker());
                    // The scanner, which looks ahead, may be the first to see how deep it goes.
                    return Err(match error.info() {
                        "recursion limit exceeded" => too_deep(span),
                        info => Broken { span, message: info.to_owned() },
                    });
                }
            };
            let span = self.places.span_between(at.start, at.end);
            match event {
                Event::DocumentStart(_) => {
                    documents += 1;
                    if documents == 2 {
                        self.unread.push((span, "a second document: only the first one is read"));
                        break;
                    }
                }
                Event::Scalar(text, style, anchor, tag) => {
                    self.report_tag(tag.is_some(), span);
                    let plain = style == ScalarStyle::Plain;
                    let size = text.len() + 1;
                    let value = Value::Text { text: text.into_owned(), plain };
                    self.finish_value(Node { span, value, size, height: 0 }, anchor)?;
                }
                Event::SequenceStart(anchor, tag) => {
                    self.report_tag(tag.is_some(), span);
                    self.open_value(span, anchor, Value::List(Vec::new()))?;
                }
                Event::MappingStart(anchor, tag) => {
                    self.report_tag(tag.is_some(), span);
                    self.open_value(span, anchor, Value::Map(Vec::new()))?;
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let Some(mut open) = self.open.pop() else { continue };
                    if let Value::Map(entries) = &mut open.value {
                        self.merge_entries(entries, &mut open.size, open.start)?;
                    }
                    let Open { start, anchor, value, size, height, .. } = open;
                    self.finish_value(Node { span: start, value, size, height: height + 1 }, anchor)?;
                }
                Event::Alias(anchor) => {
                    // An anchor is filled in once its value is complete: an empty one is still open around this alias.
                    let Some(node) = self.anchors.get(anchor).cloned().flatten() else {
                        return Err(Broken {
                            span,
                            message: "this alias refers to a value that contains it".to_owned(),
                        });
                    };
                    self.add_shared_size(node.size, span)?;
                    self.check_depth(node.height, span)?;
                    // The place is where it is used; the value is the one that is shared.
                    self.insert_node(node)?;
                }
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            }
        }
        Ok(Document { root: self.root, unread: self.unread })
    }

    fn report_tag(&mut self, tagged: bool, span: Span) {
        if tagged && self.unread.len() < 100 {
            self.unread.push((span, "a tag: the value is read without it"));
        }
    }

    fn open_value(&mut self, start: Span, anchor: usize, value: Value) -> Result<(), Broken> {
        self.check_depth(1, start)?;
        self.open.push(Open { start, anchor, value, key: None, size: 1, height: 0 });
        Ok(())
    }

    /// Whether so many more lists and maps may stand within those that are open.
    fn check_depth(&self, height: usize, span: Span) -> Result<(), Broken> {
        match self.open.len() + height > MAX_DEPTH {
            true => Err(too_deep(span)),
            false => Ok(()),
        }
    }

    /// Takes a value that is complete.
    fn finish_value(&mut self, node: Node, anchor: usize) -> Result<(), Broken> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(Broken { span: node.span, message: format!("this file has more than {MAX_VALUES} values") });
        }
        let node = Rc::new(node);
        if anchor > 0 {
            if self.anchors.len() <= anchor {
                self.anchors.resize(anchor + 1, None);
            }
            self.anchors[anchor] = Some(Rc::clone(&node));
        }
        self.insert_node(node)
    }

    fn insert_node(&mut self, node: Rc<Node>) -> Result<(), Broken> {
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return Ok(());
        };
        open.size = open.size.saturating_add(node.size);
        open.height = open.height.max(node.height);
        match &mut open.value {
            Value::List(items) => items.push(node),
            Value::Map(entries) => match open.key.take() {
                Some(key) => entries.push(Entry { key, value: node }),
                None => open.key = Some(node),
            },
            Value::Text { .. } => {}
        }
        Ok(())
    }

    fn add_shared_size(&mut self, size: usize, span: Span) -> Result<(), Broken> {
        self.shared = self.shared.saturating_add(size);
        match self.shared > MAX_SIZE {
            true => Err(Broken { span, message: "with its aliases written out this would be too large".to_owned() }),
            false => Ok(()),
        }
    }

    /// Puts what `<<` names in place of it, where the map does not say otherwise itself.
    fn merge_entries(&mut self, entries: &mut Vec<Entry>, size: &mut usize, span: Span) -> Result<(), Broken> {
        let is_merge = |entry: &Entry| matches!(&entry.key.value, Value::Text { text, plain: true } if text == "<<");
        if !entries.iter().any(is_merge) {
            return Ok(());
        }
        let (merges, mut own): (Vec<Entry>, Vec<Entry>) = std::mem::take(entries).into_iter().partition(is_merge);
        let text = |node: &Node| match &node.value {
            Value::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        let mut known: BTreeSet<String> = own.iter().filter_map(|entry| text(&entry.key)).collect();
        for merge in merges {
            let sources = match &merge.value.value {
                Value::List(items) => items.iter().collect(),
                _ => vec![&merge.value],
            };
            if !sources.iter().all(|source| matches!(source.value, Value::Map(_))) {
                // No map: it stays, as an unknown key.
                own.push(merge);
                continue;
            }
            for source in sources {
                let Value::Map(brought) = &source.value else { continue };
                for entry in brought {
                    self.add_shared_size(entry.key.size.saturating_add(1), span)?;
                    if text(&entry.key).is_some_and(|key| known.insert(key)) {
                        *size = size.saturating_add(entry.value.size);
                        own.push(entry.clone());
                    }
                }
            }
        }
        *entries = own;
        Ok(())
    }
}

fn too_deep(span: Span) -> Broken {
    Broken { span, message: format!("lists and maps are nested more than {MAX_DEPTH} deep") }
}

/// Places of characters as places of bytes: they come nearly in order, so that each is a step from the one before.
struct Places<'t> {
    text: &'t str,
    file: FileId,
    index: usize,
    offset: usize,
}

impl Places<'_> {
    /// The part on the first line: labels show no more.
    fn span_between(&mut self, start: Marker, end: Marker) -> Span {
        let start = self.byte_offset(start.index());
        let end = self.byte_offset(end.index()).max(start);
        let part = self.text[start..end].lines().next().unwrap_or_default().trim_end();
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span::new(self.file, offset(start), offset(start + part.len()))
    }

    fn byte_offset(&mut self, index: usize) -> usize {
        while self.index < index && self.offset < self.text.len() {
            self.offset = self.text.ceil_char_boundary(self.offset + 1);
            self.index += 1;
        }
        while self.index > index && self.offset > 0 {
            self.offset = self.text.floor_char_boundary(self.offset - 1);
            self.index -= 1;
        }
        self.offset
    }
}
