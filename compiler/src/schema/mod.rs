//! The language as a table: every node with its arguments, properties, children, types, defaults and docs.
//!
//! The one declaration of the language. Lowering, "did you mean", completion and the docs read it; a default stands here
//! and nowhere else.

mod page;
mod table;
mod words;

pub(crate) use page::page;
pub(crate) use table::{ALLOW, PIPELINE, SPEC, TASK};
pub(crate) use words::{PARAM_TYPES, Word};

/// A node of the language.
#[derive(Debug)]
pub(crate) struct Node {
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
    /// What properties of any other name are.
    pub open_properties: Option<Kind>,
    /// The nodes that may stand in its block.
    pub children: &'static [&'static Node],
    /// Whether nodes of any other name may stand in its block, each with one text.
    pub open_children: bool,
    /// Whether it may stand more than once.
    pub many: bool,
}

/// A positional value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument {
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
pub(crate) struct Property {
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
}

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A name that this node declares: `[a-z][a-z0-9_-]*`.
    Name,
    /// The name of something declared elsewhere.
    Reference,
    /// Text without directives.
    Text,
    /// Text with directives and expressions.
    Template,
    /// A minijinja expression.
    Expression,
    /// A whole number in this range.
    Count(u64, u64),
    /// `#true` or `#false`.
    Bool,
    /// A time with its unit: `"10m"`.
    Duration,
    /// A number of bytes with its unit: `"100KB"`.
    Size,
    /// One of these words.
    Choice(&'static [Word]),
    /// A string or a number, as it is written.
    Scalar,
    /// Any scalar, `#true` and `#false` as `true` and `false`.
    Literal,
    /// A path relative to this file.
    Path,
    /// A pattern of paths relative to the workspace.
    Glob,
    /// The name of an environment variable.
    Variable,
    /// A type: `string`, `int?`.
    Type,
}

impl Kind {
    /// What it is called in a message: "a name".
    pub(crate) fn noun(self) -> String {
        match self {
            Kind::Name | Kind::Reference => "a name".into(),
            Kind::Text | Kind::Template => "a text".into(),
            Kind::Expression => "an expression in quotes".into(),
            Kind::Count(min, u64::MAX) => format!("a whole number from {min}"),
            Kind::Count(min, max) => format!("a whole number from {min} to {max}"),
            Kind::Bool => "`#true` or `#false`".into(),
            Kind::Duration => "a duration such as `\"10m\"`".into(),
            Kind::Size => "a size such as `\"100KB\"`".into(),
            Kind::Choice(words) => crate::suggest::list(words.iter().map(|word| word.word), "or"),
            Kind::Scalar | Kind::Literal => "a value".into(),
            Kind::Path => "a path".into(),
            Kind::Glob => "a pattern of paths".into(),
            Kind::Variable => "the name of an environment variable".into(),
            Kind::Type => "a type such as `string` or `int?`".into(),
        }
    }
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
            open_children: false,
            many: false,
        }
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

    const fn open_properties(mut self, kind: Kind) -> Node {
        self.open_properties = Some(kind);
        self
    }

    const fn children(mut self, children: &'static [&'static Node]) -> Node {
        self.children = children;
        self
    }

    const fn open_children(mut self) -> Node {
        self.open_children = true;
        self
    }

    const fn many(mut self) -> Node {
        self.many = true;
        self
    }

    /// The property called `name`.
    pub(crate) fn property(&self, name: &str) -> Option<&'static Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// The node called `name` in its block; [`ALLOW`] stands everywhere.
    pub(crate) fn child(&self, name: &str) -> Option<&'static Node> {
        self.children.iter().copied().find(|child| child.name == name).or((name == ALLOW.name).then_some(&ALLOW))
    }

    /// How it is written: `task NAME agent=`.
    pub(crate) fn usage(&self) -> String {
        let mut usage = self.name.to_owned();
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
        usage
    }
}

impl Property {
    const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Property {
        Property { name, kind, default: None, required: false, doc }
    }

    const fn default(mut self, default: &'static str) -> Property {
        self.default = Some(default);
        self
    }

    const fn required(mut self) -> Property {
        self.required = true;
        self
    }
}

const fn required(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, required: true, default: None }
}

const fn defaulted(name: &'static str, kind: Kind, default: &'static str) -> Argument {
    Argument { name, kind, required: true, default: Some(default) }
}

const fn optional(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, required: false, default: None }
}

/// The names of the nodes in whose block a node of this name may stand; the empty name is the top level.
pub(crate) fn parents(name: &str) -> Vec<&'static str> {
    let mut parents = Vec::new();
    let mut open = vec![&SPEC];
    while let Some(node) = open.pop() {
        if node.children.iter().any(|child| child.name == name) && !parents.contains(&node.name) {
            parents.push(node.name);
        }
        open.extend(node.children.iter().copied());
    }
    parents
}
