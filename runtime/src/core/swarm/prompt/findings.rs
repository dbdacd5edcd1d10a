//! Which entries of the workspace an agent sees.

use std::collections::BTreeMap;

use swarmc_plan::WorkspaceView;

use super::{Finding, truncate_text};

/// An entry of the workspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// Who published it.
    pub author: &'a str,
    /// Where it belongs.
    pub topic: &'a str,
    /// What it says.
    pub text: &'a str,
}

/// What of `entries`, which are in the order in which they were published, an agent sees: the last of each topic, of
/// these the newest, in that order, each cut. No more of `entries` are looked at than it takes.
pub(crate) fn select_findings<'a, I>(entries: I, view: WorkspaceView) -> Vec<Finding<'a>>
where
    I: IntoIterator<Item = Entry<'a>>,
    I::IntoIter: DoubleEndedIterator,
{
    let total = view.entries as usize;
    let snippet = usize::try_from(view.snippet).unwrap_or(usize::MAX);
    let mut topics: BTreeMap<&str, u32> = BTreeMap::new();
    let newest = entries.into_iter().rev().filter(|entry| {
        let seen = topics.entry(entry.topic).or_default();
        *seen += 1;
        *seen <= view.per_topic
    });
    let shown = |entry: Entry<'a>| Finding {
        author: entry.author,
        topic: entry.topic,
        text: truncate_text(entry.text, snippet),
    };
    let mut findings: Vec<Finding<'a>> = newest.take(total).map(shown).collect();
    findings.reverse();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entries: &str, per_topic: u32, total: u32, expected: &str) {
        let entries = entries.split_whitespace().map(|text| Entry { author: "takao", topic: &text[..1], text });
        let shown =
            select_findings(entries.collect::<Vec<_>>(), WorkspaceView { per_topic, entries: total, snippet: 4 });
        let texts: Vec<&str> = shown.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(texts.join(" "), expected);
    }

    #[test]
    fn the_last_of_each_topic_then_the_newest_in_global_order() {
        check("a1 a2 a3 b1 a4 b2", 2, 5, "a3 b1 a4 b2");
        check("a1 a2 a3 b1 a4 b2", 2, 3, "b1 a4 b2");
        check("a1 a2 b1 b2 b3 b4", 1, 5, "a2 b4");
        check("a1", 0, 5, "");
        check("a1", 5, 0, "");
        check("", 5, 5, "");
    }

    #[test]
    fn entries_are_cut() {
        check("a12345", 5, 5, "a123… (2 more characters)");
    }
}
