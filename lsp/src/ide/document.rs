//! A text of the workspace that an editor has open: its lines, and the tree of a spec, kept current edit by edit.

use std::ops::Range;
use std::sync::Arc;

use swarmc_compiler::schema::{self, CONFIG, SPEC};
use swarmc_compiler::syntax::{self, Node, Tree};
use swarmc_compiler::{CONFIG_NAME, FileId, SourceFile};

/// The file of the tree of a document, which stands alone.
const FILE: FileId = FileId::new(0);

/// A text, cheap to clone.
#[derive(Clone, Debug)]
pub struct Document {
    source: SourceFile,
    tree: Option<Arc<Tree>>,
}

impl Document {
    /// A text under the path of its file; one that ends in `.kdl` gets a tree.
    pub fn new(path: &str, text: &str) -> Document {
        Document::with_tree(path, text.into(), None)
    }

    /// The same for a text that others hold as well; `known` is its tree, where one of them has parsed it.
    pub(super) fn with_tree(path: &str, text: Arc<str>, known: Option<Arc<Tree>>) -> Document {
        let parse = || path.ends_with(".kdl").then(|| Arc::new(syntax::parse(&text, FILE)));
        let tree = known.or_else(parse);
        Document { source: SourceFile::new(path.to_owned(), text), tree }
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// The text with its lines.
    pub fn source(&self) -> &SourceFile {
        &self.source
    }

    /// The tree of a spec.
    pub fn tree(&self) -> Option<&Arc<Tree>> {
        self.tree.as_ref()
    }

    /// The text after an edit; of the tree, only the top-level nodes that it touches are read again.
    pub fn apply_edit(self, range: Range<usize>, inserted: &str) -> Document {
        let old = self.source.text();
        let mut text = String::with_capacity(old.len() - range.len() + inserted.len());
        text.push_str(&old[..range.start]);
        text.push_str(inserted);
        text.push_str(&old[range.end..]);
        let tree = self.tree.map(|tree| Arc::new(syntax::reparse(tree, &text, FILE, range, inserted.len())));
        Document { source: SourceFile::new(self.source.name().to_owned(), text.into()), tree }
    }

    /// The nodes around an offset, the outermost first, with what the table of the language says of each; as far as it
    /// knows them.
    pub fn nodes_at(&self, offset: usize) -> Vec<(&Node, &'static schema::Node)> {
        let (mut nodes, mut parent) = (self.tree.as_ref().map_or(&[] as &[Node], |tree| &tree.nodes), self.language());
        let mut found = Vec::new();
        while let Some(node) =
            nodes.iter().find(|node| node.span.range().start <= offset && offset <= node.span.range().end)
            && let Some(known) = parent.find_child(&node.name.text).or(parent.open_children)
        {
            found.push((node, known));
            (nodes, parent) = (node.children(), known);
        }
        found
    }

    /// What may stand at its top level.
    pub fn language(&self) -> &'static schema::Node {
        if self.source.name() == CONFIG_NAME { &CONFIG } else { &SPEC }
    }

    /// What kind of file it is.
    pub fn kind(&self) -> Kind {
        let Some(tree) = &self.tree else { return Kind::Text };
        if self.source.name() == CONFIG_NAME {
            return Kind::Settings;
        }
        let names = || tree.nodes.iter().map(|node| &*node.name.text);
        if names().any(|name| matches!(name, "workflow" | "pipeline" | "swarm")) {
            return Kind::Spec;
        }
        match names().all(|name| SPEC.find_child(name).is_some()) {
            true => Kind::Part,
            false => Kind::Foreign,
        }
    }
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A workflow that can be checked by itself.
    Spec,
    /// Declarations that specs import, or the empty beginning of a spec.
    Part,
    /// What the workspace asks of a check.
    Settings,
    /// KDL of another program.
    Foreign,
    /// No KDL: a prompt, or anything else.
    Text,
}
