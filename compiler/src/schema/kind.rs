//! What a value of the language may be.

use super::Word;

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A name that this node declares: `[a-z][a-z0-9_-]*`.
    Name,
    /// The name of something declared elsewhere.
    Reference(Target),
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
    /// The name of a pool of workers: `[A-Za-z0-9_-]{1,64}`. Workers declare pools, no spec does.
    Pool,
    /// A type: `string`, `list<Issue>?`.
    Type,
    /// A name that a type declares: `[A-Z][A-Za-z0-9]*`.
    TypeName,
    /// A finite number.
    Number,
    /// A finite number in this range.
    Ratio(f64, f64),
    /// An amount of money with its unit: `"$5"`.
    Money,
    /// Lines of a file, both included: `"1-40"`.
    Lines,
}

/// What the name of a [`Kind::Reference`] leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// An agent.
    Agent,
    /// A provider.
    Provider,
    /// A provider of the library.
    Preset,
    /// A tier.
    Tier,
    /// A shared prompt.
    Prompt,
    /// A context pack.
    Pack,
    /// A pipeline.
    Pipeline,
    /// A swarm.
    Swarm,
    /// A pipeline or a swarm.
    Runnable,
    /// A task of the top level.
    Shared,
    /// A step of the same pipeline.
    Step,
    /// A step of any pipeline.
    AnyStep,
    /// A step of any pipeline, or a member of any swarm.
    Maker,
    /// A step of the pipeline, or a member of the swarm, that it stands in.
    Party,
    /// A member of the same swarm.
    Member,
    /// A plan item of the same swarm.
    Item,
    /// An option of the same gate, or `fail`.
    Option,
}

impl Target {
    /// What it is called: "an agent".
    pub fn describe(self) -> &'static str {
        match self {
            Target::Agent => "an agent",
            Target::Provider => "a provider",
            Target::Preset => "a provider of `std:providers`",
            Target::Tier => "a tier",
            Target::Prompt => "a shared prompt",
            Target::Pack => "a context pack",
            Target::Pipeline => "a pipeline",
            Target::Swarm => "a swarm",
            Target::Runnable => "a pipeline or a swarm",
            Target::Shared => "a task of the top level",
            Target::Step | Target::AnyStep => "a step",
            Target::Maker | Target::Party => "a step or a member",
            Target::Member => "a member",
            Target::Item => "a plan item",
            Target::Option => "an option of the gate, or `fail`",
        }
    }
}

impl Kind {
    /// What it is called in a message: "a name".
    pub fn describe(self) -> String {
        match self {
            Kind::Name | Kind::Reference(_) => "a name".into(),
            Kind::Text | Kind::Template => "a text".into(),
            Kind::Expression => "an expression in quotes".into(),
            Kind::Count(min, u64::MAX) => format!("a whole number from {min}"),
            Kind::Count(min, max) => format!("a whole number from {min} to {max}"),
            Kind::Bool => "`#true` or `#false`".into(),
            Kind::Duration => "a duration such as `\"10m\"`".into(),
            Kind::Size => "a size such as `\"100KB\"`".into(),
            Kind::Choice(words) => crate::suggest::format_list(words.iter().map(|word| word.word), "or"),
            Kind::Scalar | Kind::Literal => "a value".into(),
            Kind::Path => "a path".into(),
            Kind::Glob => "a pattern of paths".into(),
            Kind::Variable => "the name of an environment variable".into(),
            Kind::Pool => "the name of a pool".into(),
            Kind::Type => "a type such as `string` or `list<string>?`".into(),
            Kind::TypeName => "the name of a type, such as `Verdict`".into(),
            Kind::Number => "a number".into(),
            Kind::Ratio(min, max) => format!("a number from {min} to {max}"),
            Kind::Money => "an amount such as `\"$5\"`".into(),
            Kind::Lines => "lines such as `\"1-40\"`".into(),
        }
    }
}
