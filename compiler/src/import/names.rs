//! Names of another tool as names of ours: `[a-z][a-z0-9_-]*`, each once, `-` and `_` being the same.

use std::collections::{BTreeMap, BTreeSet};

use super::Notes;
use super::compose::Said;

/// The characters of a name at most.
const LONGEST: usize = 64;

/// Names of one kind, by what they were.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
    /// The number that comes next where a name is taken.
    next: BTreeMap<String, usize>,
    by_old: BTreeMap<String, String>,
}

impl Names {
    /// What `old` is called from now on; one that had to change is told.
    pub(super) fn add(&mut self, what: &str, old: &Said, notes: &mut Notes) -> String {
        let name = self.unique_name(spell_name(&old.text, what));
        if name != old.text {
            let message = format!("{what} `{}` is called `{name}` from now on", old.text);
            notes.report_change(old.span, message, "a name is lower-case letters, digits, `_` and `-`, each once");
        }
        self.by_old.insert(old.text.clone(), name.clone());
        name
    }

    /// A name for something that had none.
    pub(super) fn fresh_name(&mut self, wanted: &str) -> String {
        self.unique_name(spell_name(wanted, "agent"))
    }

    /// The name itself, or with the next number behind it.
    fn unique_name(&mut self, wanted: String) -> String {
        let next = self.next.entry(wanted.replace('-', "_")).or_insert(2);
        let mut name = wanted.clone();
        // The number goes on from the last one taken: many things of one name stay linear.
        while !self.taken.insert(name.replace('-', "_")) {
            name = format!("{wanted}-{next}");
            *next += 1;
        }
        name
    }

    /// Every old name.
    pub(super) fn old_names(&self) -> Vec<&str> {
        self.by_old.keys().map(String::as_str).collect()
    }
}

/// A text as a name.
pub(super) fn spell_name(text: &str, otherwise: &str) -> String {
    let mut name = String::new();
    for c in text.trim().chars().take(LONGEST).flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' | '_' | '-' => name.push(c),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let name = name.trim_end_matches('-');
    match name.chars().next() {
        Some('a'..='z') => name.to_owned(),
        Some(_) if name.chars().any(|c| c.is_ascii_alphanumeric()) => {
            format!("{otherwise}-{}", name.trim_start_matches(['-', '_']))
        }
        _ => otherwise.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken_get_numbers() {
        let mut names = Names::default();
        let fresh = ["a b", "a-b", "a_b", "a-b-2", "A B"].map(|wanted| names.fresh_name(wanted));
        assert_eq!(fresh, ["a-b", "a-b-2", "a_b-3", "a-b-2-2", "a-b-4"]);
        for number in 2..5_000 {
            assert_eq!(
                names.fresh_name("計画"),
                if number == 2 { "agent".to_owned() } else { format!("agent-{}", number - 1) }
            );
        }
    }

    #[test]
    fn whatever_was_written_becomes_a_name() {
        let check = |text: &str, name: &str| assert_eq!(spell_name(text, "task"), name, "{text}");
        check("planner", "planner");
        check("Unit Tests", "unit-tests");
        check("2nd", "task-2nd");
        check("_x", "task-x");
        check("größe", "gr-e");
        check("計画", "task");
        check("", "task");
        check("a  --  b!", "a---b");
        check(&"x".repeat(10_000), &"x".repeat(64));
    }
}
