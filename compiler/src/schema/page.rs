//! The language as a page of Markdown, from the table.

use std::fmt::Write as _;

use super::{EDITION, Kind, Node, Older, SPEC, Target, Word};

/// Every node, in the order in which a reader meets it.
pub(crate) fn render_page() -> String {
    let mut page = String::from(
        "# The language\n\nEvery node of a spec, from the table that the compiler itself uses. Parts in `[…]` may be left \
         out; `…` after a name means any number of them. A name is `[a-z][a-z0-9_-]*`; \
         a duration has a unit of `ms`, `s`, `m`, `h` or `d` (`\"10m\"`), a size one of `B`, `KB`, `MB` or `GB` \
         (`\"100KB\"` is 102,400 bytes).\n",
    );
    let mut seen: Vec<*const Node> = Vec::new();
    for node in SPEC.children {
        render_section(node, node.name, 2, &mut seen, &mut page);
    }
    page
}

/// A node and what may stand in its block; nodes nest as deep as the table does.
fn render_section(node: &'static Node, path: &str, level: usize, seen: &mut Vec<*const Node>, page: &mut String) {
    let known = seen.contains(&std::ptr::from_ref(node));
    let _ = writeln!(
        page,
        "\n{} `{path}`\n\n{}{}{}",
        "#".repeat(level),
        node.doc,
        describe_since(node.since),
        describe_older(node.older)
    );
    if known && list_children(node).next().is_some() {
        return;
    }
    seen.push(std::ptr::from_ref(node));
    let _ = writeln!(
        page,
        "\n```text\n{}{}\n```",
        node.usage(),
        if list_children(node).next().is_none() { "" } else { " { … }" }
    );
    let mut rows: Vec<String> = describe_arguments(node).map(|argument| format!("- {argument}")).collect();
    for property in node.properties {
        let default = property.default.map_or(String::new(), |default| format!(" Default: `{default}`."));
        let (name, doc, since) = (property.name, property.doc, describe_since(property.since));
        let older = describe_older(property.older);
        rows.push(format!(
            "- `{name}=`: {doc} {}.{default}{since}{older}",
            capitalize_first(&describe_meaning(property.kind))
        ));
    }
    if !rows.is_empty() {
        let _ = writeln!(page, "\n{}", rows.join("\n"));
    }
    let (plain, full): (Vec<&'static Node>, Vec<&'static Node>) =
        list_children(node).partition(|child| child.properties.is_empty() && list_children(child).next().is_none());
    if !plain.is_empty() {
        let _ = writeln!(page, "\nIn its block:\n");
    }
    for child in plain {
        let words: Vec<String> = std::iter::once(child.doc.to_owned()).chain(describe_arguments(child)).collect();
        let _ = writeln!(page, "- `{}`: {}{}", child.usage(), words.join(" "), describe_older(child.older));
    }
    for child in full {
        render_section(child, &format!("{path} / {}", child.name), (level + 1).min(4), seen, page);
    }
}

/// What may stand in its block, what has a name of its own at the end.
fn list_children(node: &'static Node) -> impl Iterator<Item = &'static Node> {
    node.children.iter().copied().chain(node.open_children)
}

/// What its arguments mean, and open properties.
fn describe_arguments(node: &'static Node) -> impl Iterator<Item = String> {
    let rest = node.rest.iter().filter(|rest| node.arguments.last().is_none_or(|last| last.name != rest.name));
    let positional = node.arguments.iter().chain(rest).map(|argument| {
        let default = argument.default.map_or(String::new(), |default| format!(" Without the node: `{default}`."));
        format!("`{}`: {}.{default}", argument.name, describe_meaning(argument.kind))
    });
    positional.chain(node.open_properties.map(|(_, kind)| format!("`KEY=`: {}.", describe_meaning(kind))))
}

/// What came later than the first edition says so.
fn describe_since(edition: &str) -> String {
    if edition == EDITION { String::new() } else { format!(" Since edition {edition}.") }
}

/// What is written otherwise today says so.
fn describe_older(older: &[Older]) -> String {
    let one = |older: &Older| format!(" Older spelling: `{}`, deprecated since edition {}.", older.name, older.since);
    older.iter().map(one).collect()
}

fn describe_meaning(kind: Kind) -> String {
    match kind {
        Kind::Choice(words) => {
            let once = |older: &Older| format!("; once `{}`, deprecated since edition {}", older.name, older.since);
            let word = |word: &Word| {
                format!("`{}` ({}{})", word.word, word.doc, word.older.iter().map(once).collect::<String>())
            };
            words.iter().map(word).collect::<Vec<_>>().join(", ")
        }
        Kind::Template => "a text with directives".into(),
        Kind::Reference(target) => match target {
            Target::Option => target.describe().into(),
            target => format!("the name of {}", target.describe()),
        },
        // The largest number of 32 bits means that there is no practical limit.
        Kind::Count(min, max) if max == u64::from(u32::MAX) => Kind::Count(min, u64::MAX).describe(),
        kind => kind.describe(),
    }
}

fn capitalize_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_spellings_stand_with_the_newer_ones() {
        let page = render_page();
        let at = page.find("## `task / depends-on`").expect("the page has this node");
        let said = "Steps that must have settled first. Older spelling: `depends_on`, deprecated since edition 2026.";
        assert!(page[at..].lines().nth(2).is_some_and(|line| line == said), "{}", &page[at..at + 200]);
        static WORDS: &[Word] = &[Word { word: "any", doc: "one", older: &[Older { name: "or", since: "2026" }] }];
        assert_eq!(describe_meaning(Kind::Choice(WORDS)), "`any` (one; once `or`, deprecated since edition 2026)");
    }
}
