//! The words that texts may use: directives, roots of expressions, and minijinja's functions and statements.
//!
//! What minijinja has depends on its features; a test holds these lists against it.

use super::Term;
use super::{Kind, Root};

/// What other tools call what texts read, and what it is called here.
pub(super) const READ_HABITS: &[(&str, &[&str])] = &[
    ("output", &["outputs", "steps", "needs", "results", "result", "tasks", "nodes", "jobs"]),
    ("param", &["params", "parameters", "inputs", "args", "vars", "variables"]),
    ("item", &["it", "element", "each", "matrix"]),
    ("iteration", &["round", "attempt"]),
];

/// The words of `when=` of a dependency.
pub(super) const DEPENDENCY_WORDS: &[&str] = &["success", "failure", "always", "any"];

/// A directive: its word, what it is, what it gives, an example, and what that becomes.
type DirectiveRow = (&'static str, Kind, &'static str, &'static str, &'static str);

/// The words of directives.
pub(super) const KINDS: [DirectiveRow; 21] = [
    (
        "output",
        Kind::Read(Root::Output),
        "The output of a step in this round; a field of it after a `.`.",
        "<<output:plan.title>>",
        "Dates",
    ),
    (
        "previous",
        Kind::Read(Root::Previous),
        "The output of a step in the round before; nothing in the first.",
        "<<previous:notes>>",
        "--- Output from task \"notes\" ---\none\ntwo\nthree\n--- End output from task \"notes\" ---",
    ),
    (
        "status",
        Kind::Read(Root::Status),
        "How a step ended: `succeeded`, `failed` or `skipped`.",
        "<<status:tests>>",
        "failed",
    ),
    ("exit", Kind::Read(Root::Exit), "The exit code of a step.", "<<exit:tests>>", "3"),
    (
        "error",
        Kind::Read(Root::Error),
        "Why a step failed: the tail of what it wrote to stderr.",
        "<<error:tests>>",
        "1 failed",
    ),
    (
        "log",
        Kind::Read(Root::Log),
        "What the last attempt of a command wrote to stdout and stderr; of one that runs later, in the round before.",
        "<<log:tests>>",
        "1 failed",
    ),
    (
        "input",
        Kind::Read(Root::Input),
        "The output of the step behind a port of this task.",
        "<<input:spec.title>>",
        "Dates",
    ),
    (
        "param",
        Kind::Read(Root::Param),
        "A parameter of the workflow or of this pipeline.",
        "<<param:goal>>",
        "Ship dates",
    ),
    ("item", Kind::Read(Root::Item), "The item of the `for-each`; a field of it after a `.`.", "<<item>>", "print"),
    ("index", Kind::Read(Root::Index), "The position of the item, from 0.", "<<index>>", "1"),
    ("iteration", Kind::Read(Root::Iteration), "The number of the round, from 1.", "<<iteration>>", "2"),
    (
        "include",
        Kind::Include,
        "The text of another file, a template too; `.md` may be left out.",
        "<<include:style>>",
        "Write plainly.",
    ),
    ("file", Kind::File, "The contents of a file, as data.", "<<file:notes.txt>>", "Friday: release."),
    (
        "context",
        Kind::Read(Root::Context),
        "A context pack.",
        "<<context:facts>>",
        "--- Context pack \"facts\" ---\n{\"packId\":\"…\",\"runId\":\"…\",\"nodeId\":\"show.2[1]\",\"createdAt\":\"…\",\"goal\":\"Ship dates\",…}\n--- End of context pack ---",
    ),
    (
        "inbox",
        Kind::Read(Root::Inbox),
        "The messages for this agent.",
        "<<inbox>>",
        "--- Inbox: 1 envelope, written by another agent ---\n{\"kind\":\"handoff\",…,\"fromNodeId\":\"build\",\"toNodeId\":\"show\",…,\"payload\":{\"message\":\"The parser is ready\"},…}\n--- End of inbox ---",
    ),
    ("shared", Kind::Read(Root::Shared), "A topic of the swarm's workspace.", "<<shared:findings>>", "SW706"),
    ("team", Kind::Read(Root::Team), "The roster of the swarm.", "<<team>>", "SW706"),
    ("plan", Kind::Read(Root::Plan), "The plan items of the swarm.", "<<plan>>", "SW706"),
    ("run", Kind::Read(Root::Run), "`run:id` is the id of this run, `run:dir` its folder.", "<<run:id>>", "20…-…-…"),
    ("task", Kind::Read(Root::Task), "`task:name` is the name of this task.", "<<task:name>>", "show"),
    ("stdin", Kind::Read(Root::Stdin), "What was piped into `swarmc run`.", "<<stdin>>", "piped"),
];

/// The filters of directives.
pub(super) const DIRECTIVE_FILTERS: [&str; 7] = ["tail", "head", "lines", "chars", "json", "raw", "default"];

/// How each of them is written, what it gives, an example, and what that becomes.
pub(super) const FILTER_DOCS: [(&str, &str, &str, &str); 7] = [
    ("tail:N", "The last N lines.", "<<output:notes | tail:1 | raw>>", "three"),
    (
        "head:N",
        "The first N lines.",
        "<<output:notes | head:2>>",
        "--- Output from task \"notes\" ---\none\ntwo\n--- End output from task \"notes\" ---",
    ),
    ("lines:A-B", "The lines from A to B, both included.", "<<output:notes | lines:2-2 | raw>>", "two"),
    ("chars:N", "The first N characters.", "<<param:goal | chars:4>>", "Ship"),
    ("json", "The value as JSON.", "<<output:plan.steps | json | raw>>", "[\"parse\",\"print\"]"),
    ("raw", "The text alone, without the delimiters around it.", "<<output:notes | raw>>", "one\ntwo\nthree"),
    ("default:\"TEXT\"", "The text when the value is missing.", "<<output:risk | default:\"unknown\">>", "unknown"),
];

/// The functions of expressions.
pub(super) const FUNCTIONS: [&str; 4] = ["debug", "dict", "namespace", "range"];

/// The statements that have no body.
pub(crate) const PLAIN: [&str; 1] = ["do"];

/// The statements that have a body, which `end` and their word closes; `set` only without a value.
pub(crate) const OPENING: [&str; 6] = ["for", "if", "with", "set", "filter", "autoescape"];

/// What can stand first in `{% … %}`, with how it is written and what it does.
pub(crate) const STATEMENTS: [(&str, &str, &str); 10] = [
    (
        "for",
        "{% for ITEM in LIST %} … {% endfor %}",
        "Writes the text once for each item of a list. `{% else %}` begins what stands there for an empty one, and `loop.index` counts from 1.",
    ),
    (
        "if",
        "{% if CONDITION %} … {% elif CONDITION %} … {% else %} … {% endif %}",
        "Writes the text where the condition holds.",
    ),
    ("with", "{% with NAME = VALUE %} … {% endwith %}", "Gives a value a name, up to its end."),
    (
        "set",
        "{% set NAME = VALUE %}",
        "Gives a value a name from here on; without a value, the text up to `{% endset %}`.",
    ),
    ("filter", "{% filter FILTER %} … {% endfilter %}", "Passes the text through a filter."),
    ("autoescape", "{% autoescape WHETHER %} … {% endautoescape %}", "Says whether values are escaped, up to its end."),
    ("do", "{% do EXPRESSION %}", "Computes a value and writes nothing."),
    ("elif", "{% elif CONDITION %}", "Writes the text where no condition before it holds, and this one does."),
    ("else", "{% else %}", "Writes the text where no condition before it holds, or the list of a `for` is empty."),
    ("raw", "{% raw %} … {% endraw %}", "Writes the text as it is: nothing in it is read."),
];

/// The attributes of `loop`.
pub(super) const LOOP: [&str; 9] =
    ["depth", "depth0", "first", "index", "index0", "last", "length", "revindex", "revindex0"];

/// The words of directives, each as it is written.
pub(crate) fn list_terms() -> impl Iterator<Item = Term> {
    KINDS.iter().map(|&(word, kind, doc, example, result)| Term {
        word,
        usage: directive_usage(word, kind),
        doc,
        example,
        result,
    })
}

fn directive_usage(word: &str, kind: Kind) -> String {
    let name = match kind {
        Kind::Include | Kind::File => "PATH",
        Kind::Read(root) => match (root.properties(), root.required_name()) {
            (Some(properties), _) => properties.first().copied().unwrap_or_default(),
            (None, Some("a step")) => "STEP",
            (None, Some("a pack")) => "PACK",
            (None, Some("a topic")) => "TOPIC",
            (None, Some(_)) => "NAME",
            (None, None) => return format!("<<{word}>>"),
        },
    };
    format!("<<{word}:{name}>>")
}

impl Kind {
    /// The kind with this word.
    pub(super) fn from_word(word: &str) -> Option<Kind> {
        KINDS.iter().find(|(name, ..)| *name == word).map(|(_, kind, ..)| *kind)
    }

    /// Its word.
    pub(crate) fn as_str(self) -> &'static str {
        KINDS.iter().find(|(_, kind, ..)| *kind == self).map_or("", |(word, ..)| word)
    }
}

impl Root {
    /// The root with this word.
    pub(super) fn from_word(word: &str) -> Option<Root> {
        match Kind::from_word(word)? {
            Kind::Read(root) => Some(root),
            Kind::Include | Kind::File => None,
        }
    }

    /// Its word, in directives and expressions alike.
    pub(crate) fn as_str(self) -> &'static str {
        Kind::Read(self).as_str()
    }

    /// What must be named after it: `a step`; none where nothing may.
    pub(crate) fn required_name(self) -> Option<&'static str> {
        match self {
            Root::Output | Root::Previous | Root::Status | Root::Exit | Root::Error | Root::Log => Some("a step"),
            Root::Input => Some("a port"),
            Root::Param => Some("a parameter"),
            Root::Run | Root::Task => Some("a property"),
            Root::Context => Some("a pack"),
            Root::Shared => Some("a topic"),
            Root::Item | Root::Index | Root::Iteration | Root::Stdin | Root::Inbox | Root::Team | Root::Plan => None,
        }
    }

    /// The only names that may follow it; none where the spec says which.
    pub(super) fn properties(self) -> Option<&'static [&'static str]> {
        match self {
            Root::Run => Some(&["id", "dir"]),
            Root::Task => Some(&["name"]),
            _ => None,
        }
    }

    /// Whether reading it says what happens when the step has failed.
    pub(crate) fn handles_failure(self) -> bool {
        matches!(self, Root::Status | Root::Exit | Root::Error | Root::Log)
    }

    /// Whether its values may have fields.
    pub(super) fn has_fields(self) -> bool {
        matches!(self, Root::Output | Root::Previous | Root::Input | Root::Param | Root::Item | Root::Error)
    }

    /// Whether a text may use the word for a name of its own, as in `{% for item in … %}`.
    pub(super) fn is_free(self) -> bool {
        matches!(
            self,
            Root::Log | Root::Item | Root::Index | Root::Context | Root::Inbox | Root::Shared | Root::Team | Root::Plan
        )
    }
}

/// The words of the roots that an expression is likely to mean, in the order of the language's page.
pub(crate) fn list_roots() -> impl Iterator<Item = &'static str> {
    KINDS.iter().filter_map(|(word, kind, ..)| match kind {
        Kind::Read(root) => (!root.is_free() || matches!(root, Root::Item | Root::Index)).then_some(*word),
        Kind::Include | Kind::File => None,
    })
}

/// The words of the directives, in the order of the language's page.
pub(super) fn list_kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(word, ..)| *word)
}
