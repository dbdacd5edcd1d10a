//! The language as a page of Markdown, from the table and from one workflow in which every node stands.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{EDITION, Kind, Node, Older, Property, SPEC, Target, Word};
use crate::source::FileId;
use crate::syntax;

/// The workflow whose parts are the examples of the page: each node of the top level shows those with its name.
const EXAMPLES: &str = include_str!("examples.kdl");

/// What stands first on the page, and first in the block of a node: what people use.
const FIRST: &[&str] =
    &["workflow", "task", "agent", "provider", "pipeline", "param", "type", "prompt", "run", "value"];

const HEAD: &str = "# The language\n\nEvery node of a spec, from the table that the compiler itself uses. Begin with \
`workflow`, `task`, `agent`, `provider` and `pipeline`; most specs need no more. The examples are the parts of one \
workflow, and each node stands in one of them.\n\n\
Parts in `[…]` may be left out; `…` after a name means any number of them. What a word in capitals means:\n\n\
- `NAME`: `[a-z][a-z0-9_-]*`; a declared type begins with a capital. `VARIABLE`: the name of an environment variable.\n\
- `TEXT`: a text; in `TEXT*` [directives](directives.md) may stand. `EXPRESSION`: an \
[expression](directives.md#expressions-and-statements) in quotes.\n\
- `N`: a whole number from 1. `TIME`: `\"10m\"`, with `ms`, `s`, `m`, `h` or `d`. `SIZE`: `\"100KB\"` (102,400 bytes), with \
`B`, `KB`, `MB` or `GB`. `MONEY`: `\"$5\"`.\n\
- `PATH`: a file, relative to the spec. `GLOB`: a pattern of paths, relative to the workspace.\n\
- `TYPE`: `string`, `int`, `float`, `bool`, `file`, `dir`, `list<T>`, `map<T>`, a declared type; `?` behind it: may be \
left out.\n\
- `STEP`, `AGENT`, `PACK` and the like: the name of one that is declared. `#true`: or `#false`.\n";

/// Where a node was described, and the properties that its section has described.
#[derive(Default)]
struct Described {
    nodes: HashMap<*const Node, &'static str>,
    properties: Vec<(&'static str, &'static str)>,
}

/// Every node: what people use first, then the others in the order of the table.
pub(crate) fn render_page() -> String {
    let mut page = String::from(HEAD);
    let mut described = Described::default();
    for node in list_by_use(SPEC.children.iter().copied()) {
        described.properties.clear();
        render_section(node, node.name, node.name, &mut described, &mut page);
    }
    page
}

/// The parts of the example workflow that are nodes of this name.
fn list_examples(name: &str) -> String {
    let file = syntax::parse(EXAMPLES, FileId::new(0));
    let parts = file.nodes.iter().filter(|node| &*node.name.text == name);
    parts.map(|node| EXAMPLES[node.span.range()].trim_end().to_owned() + "\n").collect()
}

/// A node and what may stand in its block; `top` is the node of the top level that it stands in.
fn render_section(node: &'static Node, top: &'static str, path: &str, described: &mut Described, page: &mut String) {
    described.nodes.insert(std::ptr::from_ref(node), top);
    let block = if list_children(node).next().is_none() { "" } else { " { … }" };
    let level = path.matches(" / ").count() + 2;
    let _ = write!(
        page,
        "\n{} `{path}`\n\n`{}{block}`: {}{}{}",
        "#".repeat(level.min(4)),
        usage(node),
        node.doc,
        describe_arguments(node),
        describe_origin(node.since, node.older)
    );
    page.push('\n');
    if path == top {
        let _ = writeln!(page, "\n```kdl\n{}```", list_examples(top));
    }
    page.push('\n');
    for property in node.properties {
        let _ = writeln!(page, "- {}", describe_property(property, described));
    }
    let mut known: Vec<(&'static str, Vec<String>)> = Vec::new();
    let mut inner = Vec::new();
    for child in list_by_use(list_children(node)) {
        match described.nodes.get(&std::ptr::from_ref(child)) {
            Some(section) => {
                let written = format!("`{}`", child.name);
                match known.iter_mut().find(|(name, _)| name == section) {
                    Some((_, names)) => names.push(written),
                    None => known.push((section, vec![written])),
                }
            }
            None if list_children(child).next().is_some() => inner.push(child),
            None => {
                described.nodes.insert(std::ptr::from_ref(child), top);
                let mut words = vec![format!("{}{}", child.doc, describe_arguments(child))];
                words.extend(child.properties.iter().map(|property| describe_property(property, described)));
                let origin = describe_origin(child.since, child.older);
                let _ = writeln!(page, "- `{}`: {}{origin}", usage(child), words.join(" "));
            }
        }
    }
    for (section, names) in known {
        let _ = writeln!(page, "- As in [`{section}`](#{section}): {}", names.join(", "));
    }
    for child in inner {
        render_section(child, top, &format!("{path} / {}", child.name), described, page);
    }
}

/// What people use first, all else in the order of the table.
fn list_by_use(nodes: impl Iterator<Item = &'static Node>) -> Vec<&'static Node> {
    let mut nodes: Vec<&'static Node> = nodes.collect();
    nodes.sort_by_key(|node| FIRST.iter().position(|name| *name == node.name).unwrap_or(FIRST.len()));
    nodes
}

/// What may stand in its block, what has a name of its own at the end.
fn list_children(node: &'static Node) -> impl Iterator<Item = &'static Node> {
    node.children.iter().copied().chain(node.open_children)
}

/// How it is written, without its properties.
fn usage(node: &Node) -> String {
    let mut written = node.usage();
    if let Some(at) = written.find(" [").filter(|_| node.arguments.is_empty()).or_else(|| first_property(&written)) {
        written.truncate(at);
    }
    for argument in node.arguments.iter().filter(|argument| matches!(argument.kind, Kind::Template)) {
        written = written.replace(argument.name, placeholder(argument.kind));
    }
    match node.open_properties {
        Some((_, kind)) => format!("{written} KEY={}", placeholder(kind)),
        None => written,
    }
}

/// Where the first property of a usage begins.
fn first_property(usage: &str) -> Option<usize> {
    let equals = usage.find("=…")?;
    usage[..equals].rfind(' ')
}

/// What its arguments mean, where their names do not say it.
fn describe_arguments(node: &'static Node) -> String {
    let rest = node.rest.iter().filter(|rest| node.arguments.last().is_none_or(|last| last.name != rest.name));
    let one = |argument: &super::Argument| {
        let meaning = describe_meaning(argument.kind).map(|meaning| format!(" `{}`: {meaning}.", argument.name));
        let default = argument.default.map(|default| format!(" Default: `{default}`."));
        meaning.unwrap_or_default() + &default.unwrap_or_default()
    };
    node.arguments.iter().chain(rest).map(one).collect()
}

/// A property; its name alone where its section has said what it means.
fn describe_property(property: &Property, described: &mut Described) -> String {
    let written = format!("`{}={}`", property.name, placeholder(property.kind));
    let said = (property.name, property.doc);
    if described.properties.contains(&said) {
        return format!("{written}: as above.");
    }
    described.properties.push(said);
    let meaning = describe_meaning(property.kind).map(|meaning| format!(" {}.", capitalize_first(&meaning)));
    let default = property.default.map(|default| format!(" Default: `{default}`."));
    let (meaning, default) = (meaning.unwrap_or_default(), default.unwrap_or_default());
    format!("{written}: {}{meaning}{default}{}", property.doc, describe_origin(property.since, property.older))
}

/// What came later than the first edition says so, and what was written otherwise.
fn describe_origin(edition: &str, older: &[Older]) -> String {
    let since = if edition == EDITION { String::new() } else { format!(" Since edition {edition}.") };
    let one = |older: &Older| format!(" Older spelling: `{}`, deprecated since edition {}.", older.name, older.since);
    since + &older.iter().map(one).collect::<String>()
}

/// The word in capitals for a value, which the top of the page explains.
fn placeholder(kind: Kind) -> &'static str {
    match kind {
        Kind::Name => "NAME",
        Kind::Text => "TEXT",
        Kind::Template => "TEXT*",
        Kind::Expression => "EXPRESSION",
        Kind::Count(..) | Kind::Number | Kind::Ratio(..) => "N",
        Kind::Bool => "#true",
        Kind::Duration => "TIME",
        Kind::Size => "SIZE",
        Kind::Choice(_) => "WORD",
        Kind::Scalar | Kind::Literal => "VALUE",
        Kind::Path => "PATH",
        Kind::Glob => "GLOB",
        Kind::Variable => "VARIABLE",
        Kind::Pool => "POOL",
        Kind::Type | Kind::TypeName => "TYPE",
        Kind::Money => "MONEY",
        Kind::Lines => "A-B",
        Kind::Reference(target) => match target {
            Target::Agent => "AGENT",
            Target::Provider => "PROVIDER",
            Target::Preset => "PRESET",
            Target::Tier => "TIER",
            Target::Prompt => "PROMPT",
            Target::Pack => "PACK",
            Target::Pipeline | Target::Runnable => "PIPELINE",
            Target::Swarm => "SWARM",
            Target::Shared => "TASK",
            Target::Step | Target::AnyStep | Target::Maker | Target::Party => "STEP",
            Target::Member => "MEMBER",
            Target::Item => "ITEM",
            Target::Option => "OPTION",
        },
    }
}

/// What a value may be, where its word in capitals does not say it.
fn describe_meaning(kind: Kind) -> Option<String> {
    match kind {
        Kind::Choice(words) => {
            let once = |older: &Older| format!("; once `{}`, deprecated since edition {}", older.name, older.since);
            let word = |word: &Word| {
                format!("`{}` ({}{})", word.word, word.doc, word.older.iter().map(once).collect::<String>())
            };
            Some(words.iter().map(word).collect::<Vec<_>>().join(", "))
        }
        Kind::Reference(Target::Maker | Target::Party) => Some("a step or a member".into()),
        Kind::Reference(target @ (Target::Runnable | Target::Shared | Target::Option)) => {
            Some(target.describe().into())
        }
        // The largest number of 32 bits means that there is no practical limit.
        Kind::Count(1, max) if max >= u64::from(u32::MAX) => None,
        Kind::Count(min, max) if max >= u64::from(u32::MAX) => Some(format!("from {min}")),
        Kind::Count(min, max) => Some(format!("{min} to {max}")),
        Kind::Ratio(min, max) => Some(format!("{min} to {max}")),
        _ => None,
    }
}

fn capitalize_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Code;

    #[test]
    fn older_spellings_stand_with_the_newer_ones() {
        let page = render_page();
        let line = page.lines().find(|line| line.starts_with("- `depends-on STEP…`")).expect("the page has this node");
        assert!(line.ends_with("Older spelling: `depends_on`, deprecated since edition 2026."), "{line}");
        static WORDS: &[Word] = &[Word { word: "any", doc: "one", older: &[Older { name: "or", since: "2026" }] }];
        let meaning = describe_meaning(Kind::Choice(WORDS)).expect("it has words");
        assert_eq!(meaning, "`any` (one; once `or`, deprecated since edition 2026)");
    }

    #[test]
    fn the_page_begins_with_what_people_use() {
        let page = render_page();
        let places: Vec<usize> = ["## `workflow`", "## `task`", "- `prompt [TEXT*]`", "- `run WORD…`", "## `agent`"]
            .map(|part| page.find(&format!("\n{part}")).unwrap_or_else(|| panic!("{part} is on the page")))
            .into();
        assert!(places.is_sorted(), "{places:?}");
        assert!(places[4] < page.find("## `secret`").expect("it is on the page"));
    }

    /// The examples as the page shows them, put together again.
    fn join_examples() -> String {
        let page = render_page();
        page.split("```kdl\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
    }

    #[test]
    fn examples_are_one_workflow_without_a_problem() {
        let spec = join_examples();
        let names = ["answer.txt", "data.csv", "docs/style.md", "review.md", "skill.md", "style.md"];
        let mut files: BTreeMap<String, String> =
            names.map(|name| (name.to_owned(), "# Style\n\nBe brief.\n".to_owned())).into();
        files.insert("shop.kdl".to_owned(), spec.clone());
        let found = crate::compile("shop.kdl", &files).diagnostics;
        assert!(found.is_empty(), "{found:#?}");
        files.insert("shop.kdl".to_owned(), spec.replace("depends-on draft", "depends-on drafd"));
        let found = crate::compile("shop.kdl", &files).diagnostics;
        assert!(found.iter().any(|problem| problem.code == Code::UnknownReference), "{found:#?}");
    }

    /// The nodes of swarms with a coordinator: `docs/teams.md` and `docs/testing.md` show them, and the one workflow of the
    /// examples has a swarm with a supervisor.
    const OF_TEAMS: &[&str] = &[
        "coordinator",
        "spawns",
        "channel",
        "item",
        "worktree",
        "conflicts",
        "integrate",
        "proposals",
        "items",
        "summary-feed",
        "context-reads",
        "members",
        "open",
        "depends-on",
        "checkpoint",
        "scope",
        "check",
        // What a test expects of one.
        "plan",
        "item",
        "worktree",
        "notice",
    ];

    #[test]
    fn every_node_stands_in_an_example() {
        let spec = join_examples();
        let file = syntax::parse(&spec, FileId::new(0));
        let mut found = Vec::new();
        let mut open: Vec<(&'static Node, &syntax::Node)> = Vec::new();
        let inside = |node: &'static Node, written: &&syntax::Node| match node.find_child(&written.name.text) {
            Some(child) => child,
            None => node.open_children.unwrap_or_else(|| panic!("`{}` holds `{}`", node.name, written.name.text)),
        };
        open.extend(file.nodes.iter().map(|written| (inside(&SPEC, &written), written)));
        while let Some((node, written)) = open.pop() {
            found.push(std::ptr::from_ref(node));
            open.extend(written.children().iter().map(|child| (inside(node, &child), child)));
        }
        let nodes = crate::schema::list_nodes().into_iter().filter(|node| !node.name.is_empty());
        let lacking: Vec<&str> =
            nodes.filter(|node| !found.contains(&std::ptr::from_ref(*node))).map(|node| node.name).collect();
        assert_eq!(lacking, OF_TEAMS);
    }
}
