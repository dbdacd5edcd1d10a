//! The language as a table: every node with its arguments, properties, children, types, defaults and docs.
//!
//! The one declaration of the language. Lowering, "did you mean", completion and the docs read it; a default stands here
//! and nowhere else.

mod agents;
mod config;
mod kind;
mod pack;
mod page;
mod pipeline;
mod swarm;
mod table;
mod task;
mod test;
mod words;

pub use config::CONFIG;
pub(crate) use config::KNOWN;
pub use kind::{Kind, Target};
pub(crate) use page::render_page;
pub use pipeline::{EDGE, SEQUENCE, SEQUENCE_STEP};
pub use table::{ALLOW, SPEC};
pub(crate) use task::RUN;
pub use task::TASK;
pub(crate) use test::{EXPECT, TEST_PARAM};
pub use words::{TYPES, Word};

/// The edition of the language that this table describes.
pub const EDITION: &str = "2026";

/// A node of the language.
#[derive(Debug)]
pub struct Node {
    /// Its name.
    pub name: &'static str,
    /// What it says, in one sentence or two.
    pub doc: &'static str,
    /// The arguments, in order.
    pub arguments: &'static [Argument],
    /// What any further arguments are.
    pub rest: Option<Argument>,
    /// The properties.
    pub properties: &'static [Property],
    /// What properties of any other name are, and what such a name is: a variable or a name.
    pub open_properties: Option<(Kind, Kind)>,
    /// The nodes that may stand in its block.
    pub children: &'static [&'static Node],
    /// What nodes of any other name in its block are.
    pub open_children: Option<&'static Node>,
    /// Whether it may stand more than once.
    pub many: bool,
    /// The edition that brought it.
    pub since: &'static str,
    /// Its older spellings.
    pub older: &'static [Older],
}

/// A spelling that works as the newer one does, and that an edition deprecated.
#[derive(Clone, Copy, Debug)]
pub struct Older {
    /// As it is written.
    pub name: &'static str,
    /// The edition since which it is deprecated.
    pub since: &'static str,
}

/// A positional value.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// What it is called in messages and docs: `NAME`, `TEXT`.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// Whether it must be there.
    pub required: bool,
    /// What holds when the whole node is left out, as it would be written.
    pub default: Option<&'static str>,
}

/// A named value.
#[derive(Debug)]
pub struct Property {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// The value when it is left out, as it would be written.
    pub default: Option<&'static str>,
    /// Whether it must be there.
    pub required: bool,
    /// What it says.
    pub doc: &'static str,
    /// The edition that brought it.
    pub since: &'static str,
    /// Its older spellings.
    pub older: &'static [Older],
}

impl Node {
    const fn new(name: &'static str, doc: &'static str) -> Node {
        Node {
            name,
            doc,
            arguments: &[],
            rest: None,
            properties: &[],
            open_properties: None,
            children: &[],
            open_children: None,
            many: false,
            since: EDITION,
            older: &[],
        }
    }

    const fn older(mut self, older: &'static [Older]) -> Node {
        self.older = older;
        self
    }

    const fn arguments(mut self, arguments: &'static [Argument]) -> Node {
        self.arguments = arguments;
        self
    }

    const fn rest(mut self, name: &'static str, kind: Kind) -> Node {
        self.rest = Some(Argument { name, kind, required: false, default: None });
        self
    }

    const fn properties(mut self, properties: &'static [Property]) -> Node {
        self.properties = properties;
        self
    }

    const fn open_properties(mut self, key: Kind, kind: Kind) -> Node {
        self.open_properties = Some((key, kind));
        self
    }

    const fn children(mut self, children: &'static [&'static Node]) -> Node {
        self.children = children;
        self
    }

    const fn open_children(mut self, node: &'static Node) -> Node {
        self.open_children = Some(node);
        self
    }

    const fn many(mut self) -> Node {
        self.many = true;
        self
    }

    /// The property called `name`, or once called so.
    pub fn find_property(&self, name: &str) -> Option<&'static Property> {
        let older = |property: &&Property| find_older(property.older, name).is_some();
        self.properties.iter().find(|property| property.name == name).or_else(|| self.properties.iter().find(older))
    }

    /// The node called `name` in its block, or once called so; [`ALLOW`] stands everywhere.
    pub fn find_child(&self, name: &str) -> Option<&'static Node> {
        let mut children = self.children.iter().copied();
        let older = |child: &&Node| find_older(child.older, name).is_some();
        let found = children.clone().find(|child| child.name == name).or((name == ALLOW.name).then_some(&ALLOW));
        found.or_else(|| children.find(older))
    }

    /// What one that is written so is called in messages: a field, an edge or a tier has a name of its own.
    pub fn display_name<'n>(&self, written: &'n str) -> &'n str {
        if self.name.starts_with(|first: char| first.is_ascii_uppercase()) { written } else { self.name }
    }

    /// How it is written: `task NAME agent=`.
    pub fn usage(&self) -> String {
        self.usage_as(self.name)
    }

    /// How one that is called `name` is written.
    pub fn usage_as(&self, name: &str) -> String {
        let mut usage = name.to_owned();
        for argument in self.arguments {
            usage += &if argument.required { format!(" {}", argument.name) } else { format!(" [{}]", argument.name) };
        }
        match (self.rest, self.arguments.last()) {
            (Some(rest), Some(last)) if rest.name == last.name => usage.push('…'),
            (Some(rest), _) => usage += &format!(" {}…", rest.name),
            (None, _) => {}
        }
        for property in self.properties {
            let name = property.name;
            usage += &if property.required { format!(" {name}=…") } else { format!(" [{name}=…]") };
        }
        if self.open_properties.is_some() {
            usage += " [KEY=…]";
        }
        // What says all in its block is nothing without it.
        if self.arguments.is_empty() && self.rest.is_none() && self.open_children.is_some() {
            usage += " { … }";
        }
        usage
    }
}

impl Property {
    const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Property {
        Property { name, kind, default: None, required: false, doc, since: EDITION, older: &[] }
    }

    const fn default(mut self, default: &'static str) -> Property {
        self.default = Some(default);
        self
    }

    const fn make_required(mut self) -> Property {
        self.required = true;
        self
    }
}

/// The older spelling that is written so.
pub(crate) fn find_older(older: &'static [Older], name: &str) -> Option<&'static Older> {
    older.iter().find(|older| older.name == name)
}

/// A node as a test declares it.
#[cfg(test)]
pub(crate) const fn bare_node(name: &'static str) -> Node {
    Node::new(name, "A node.")
}

const fn required_argument(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, required: true, default: None }
}

const fn default_argument(name: &'static str, kind: Kind, default: &'static str) -> Argument {
    Argument { name, kind, required: true, default: Some(default) }
}

const fn optional_argument(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, required: false, default: None }
}

/// The names of the nodes in whose block a node of this name may stand; the empty name is the top level.
pub(crate) fn list_parents(name: &str) -> Vec<&'static str> {
    let mut parents = Vec::new();
    for node in list_nodes() {
        let known = |child: &&Node| child.name == name || find_older(child.older, name).is_some();
        if node.children.iter().any(known) && !parents.contains(&node.name) {
            parents.push(node.name);
        }
    }
    parents
}

/// The names of the nodes that have a property of this name.
pub(crate) fn list_owners(property: &str) -> Vec<&'static str> {
    let mut owners = Vec::new();
    for node in list_nodes() {
        if node.properties.iter().any(|known| known.name == property) && !owners.contains(&node.name) {
            owners.push(node.name);
        }
    }
    owners
}

/// Every node of the table once, the top level first.
fn list_nodes() -> Vec<&'static Node> {
    let mut nodes: Vec<&'static Node> = vec![&SPEC];
    let mut next = 0;
    while let Some(node) = nodes.get(next).copied() {
        next += 1;
        for child in node.children.iter().copied().chain(node.open_children) {
            // Loops hold loops.
            if !nodes.iter().any(|known| std::ptr::eq(*known, child)) {
                nodes.push(child);
            }
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_of_the_table_is_a_value_of_its_kind() {
        for node in list_nodes() {
            assert_eq!(node.since, EDITION, "{}", node.name);
            for (kind, default) in node.properties.iter().map(|property| (property.kind, property.default)) {
                default.into_iter().for_each(|default| fits(kind, default, node.name));
            }
            for argument in node.arguments {
                argument.default.into_iter().for_each(|default| fits(argument.kind, default, node.name));
            }
        }
    }

    #[test]
    fn older_spellings_are_of_an_edition_and_mean_one_thing() {
        let check = |names: &[&str], older: &[&Older], place: &str| {
            for (index, spelling) in older.iter().enumerate() {
                let known = |word: &&Word| word.word == spelling.since;
                assert!(words::EDITIONS.iter().any(|word| known(&word)), "`{}` in `{place}`", spelling.name);
                assert!(!names.contains(&spelling.name), "`{}` in `{place}` is a newer one too", spelling.name);
                assert!(older[..index].iter().all(|other| other.name != spelling.name), "`{}` twice", spelling.name);
            }
        };
        for node in list_nodes() {
            let children: Vec<&str> = node.children.iter().map(|child| child.name).collect();
            check(&children, &node.children.iter().flat_map(|child| child.older).collect::<Vec<_>>(), node.name);
            let properties: Vec<&str> = node.properties.iter().map(|property| property.name).collect();
            check(&properties, &node.properties.iter().flat_map(|it| it.older).collect::<Vec<_>>(), node.name);
            let kinds = node.properties.iter().map(|property| property.kind);
            for kind in kinds.chain(node.arguments.iter().chain(&node.rest).map(|argument| argument.kind)) {
                let Kind::Choice(choice) = kind else { continue };
                let names: Vec<&str> = choice.iter().map(|word| word.word).collect();
                check(&names, &choice.iter().flat_map(|word| word.older).collect::<Vec<_>>(), node.name);
            }
        }
    }

    fn fits(kind: Kind, default: &str, node: &str) {
        use crate::lower::value;
        let fits = match kind {
            Kind::Count(min, max) => default.parse().is_ok_and(|count: u64| (min..=max).contains(&count)),
            Kind::Duration => value::parse_duration(default).is_ok(),
            Kind::Size => value::parse_size(default).is_ok(),
            Kind::Money => value::parse_money(default).is_ok(),
            Kind::Choice(words) => words.iter().any(|word| word.word == default),
            Kind::Bool => matches!(default, "#true" | "#false"),
            _ => true,
        };
        assert!(fits, "the default `{default}` in `{node}`");
    }

    #[test]
    fn every_node_and_property_says_what_it_is() {
        for node in list_nodes() {
            assert!(node.doc.ends_with('.'), "{}", node.name);
            assert!(node.properties.iter().all(|property| property.doc.ends_with('.')), "{}", node.name);
        }
    }
}
