//! Places in the JSON of a plan, and what the values at them may be.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Checked, LONGEST_NAME, LONGEST_POOL, MOST, is_pool_name};
use crate::json::ReadError;
use crate::{Budget, Command};

/// A place in the JSON of a plan, as the way to it.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    part: Part<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    Field(&'a str),
    Index(usize),
}

/// The whole plan.
pub(super) static ROOT: Place<'static> = Place { parent: None, part: Part::Field("") };

impl Place<'_> {
    pub(super) fn field<'b>(&'b self, name: &'b str) -> Place<'b> {
        Place { parent: Some(self), part: Part::Field(name) }
    }

    pub(super) fn index(&self, index: usize) -> Place<'_> {
        Place { parent: Some(self), part: Part::Index(index) }
    }

    pub(super) fn fail_with<T>(&self, problem: impl Into<String>) -> Result<T, ReadError> {
        Err(ReadError::Inconsistent { place: self.to_string(), problem: problem.into() })
    }

    pub(super) fn ensure_holds(&self, holds: bool, problem: impl FnOnce() -> String) -> Checked {
        if holds { Ok(()) } else { self.fail_with(problem()) }
    }

    /// A count in a range.
    pub(super) fn check_count(&self, count: impl Into<u64>, least: u64, most: impl Into<u64>) -> Checked {
        let (count, most) = (count.into(), most.into());
        self.ensure_holds((least..=most).contains(&count), || match most {
            MOST | u64::MAX => format!("a count of {count}, but at least {least} is needed"),
            _ => format!("a count of {count}, which must be from {least} to {most}"),
        })
    }

    /// A time in milliseconds, or an amount.
    pub(super) fn check_amount(&self, amount: Option<u64>, least: u64) -> Checked {
        let Some(amount) = amount else { return Ok(()) };
        self.ensure_holds(amount >= least, || format!("an amount of {amount}, but at least {least} is needed"))?;
        self.ensure_holds(amount <= MOST, || format!("an amount of {amount}, but at most {MOST} is allowed"))
    }

    /// A name that a spec may declare: parts as `[a-z][a-z0-9_-]*`, with points between those of imports.
    pub(super) fn check_name(&self, name: &str) -> Checked {
        self.ensure_holds(name.len() <= LONGEST_NAME, || {
            let beginning: String = name.chars().take(20).collect();
            format!("the name `{beginning}…` is longer than {LONGEST_NAME} bytes")
        })?;
        self.ensure_holds(name.split('.').all(is_name), || {
            format!("`{name}` is not a name: a lowercase letter, then lowercase letters, digits, `-` and `_`")
        })
    }

    /// The name of a pool, where there is one.
    pub(super) fn check_pool(&self, pool: Option<&String>) -> Checked {
        let place = self.field("pool");
        place.ensure_holds(pool.is_none_or(|name| is_pool_name(name)), || {
            format!("not the name of a pool: 1 to {LONGEST_POOL} letters, digits, `-` and `_`")
        })
    }

    pub(super) fn check_variable(&self, name: &str) -> Checked {
        self.ensure_holds(is_variable(name), || format!("`{name}` is not the name of an environment variable"))
    }

    /// A path that counts from the workspace, or from another folder, and stays in it.
    pub(super) fn check_path(&self, path: &str) -> Checked {
        self.ensure_holds(!path.is_empty(), || "names no file".to_owned())?;
        let out = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..") || path.contains('\0');
        self.ensure_holds(!out, || format!("`{path}` leads out of its folder"))
    }

    /// The words of a process, program first.
    pub(super) fn check_argv(&self, words: &[String]) -> Checked {
        self.ensure_holds(words.first().is_some_and(|program| !program.is_empty()), || "names no program".to_owned())?;
        let wrong = words.iter().position(|word| word.contains('\0'));
        wrong.map_or(Ok(()), |at| self.index(at).fail_with("contains a NUL, which arguments cannot"))
    }

    pub(super) fn check_command(&self, command: &Command) -> Checked {
        match command {
            Command::Argv(words) => self.field("argv").check_argv(words),
            Command::Shell(line) => {
                let place = self.field("shell");
                place.ensure_holds(!line.trim().is_empty(), || "an empty command".to_owned())?;
                place.ensure_holds(!line.contains('\0'), || "contains a NUL, which arguments cannot".to_owned())
            }
            Command::Script { argv, file } => {
                let place = self.field("script");
                place.field("argv").check_argv(argv)?;
                place.field("file").check_path(file)
            }
        }
    }

    /// Names, each once and each one that a spec may declare.
    pub(super) fn check_names<'n>(&self, what: &str, names: impl Iterator<Item = &'n String>) -> Checked {
        let mut seen = BTreeSet::new();
        for (index, name) in names.enumerate() {
            let place = self.index(index);
            place.field("name").check_name(name)?;
            place.field("name").ensure_holds(seen.insert(name), || format!("{what} `{name}` is declared twice"))?;
        }
        Ok(())
    }

    /// References, each once and each to one of `known`.
    pub(super) fn check_references<'n>(
        &self,
        what: &str,
        names: impl Iterator<Item = &'n String>,
        known: impl Fn(&str) -> bool,
    ) -> Checked {
        let mut seen = BTreeSet::new();
        for (index, name) in names.enumerate() {
            let place = self.index(index);
            place.ensure_holds(known(name), || format!("names {what} `{name}`, which is not declared"))?;
            place.ensure_holds(seen.insert(name), || format!("names {what} `{name}` twice"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut next = Some(self);
        while let Some(place) = next {
            // The root has no part: the JSON pointer to the whole is empty.
            parts.extend(place.parent.map(|_| place.part));
            next = place.parent;
        }
        for part in parts.iter().rev() {
            match part {
                // In this order, by RFC 6901: else the `~` of a `~1` would be written anew.
                Part::Field(name) => write!(f, "/{}", name.replace('~', "~0").replace('/', "~1"))?,
                Part::Index(index) => write!(f, "/{index}")?,
            }
        }
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

pub(super) fn check_optional_count(place: &Place<'_>, count: Option<u32>) -> Checked {
    count.map_or(Ok(()), |count| place.check_count(count, 1, u32::MAX))
}

pub(super) fn check_budget(place: &Place<'_>, budget: Option<&Budget>) -> Checked {
    let Some(budget) = budget else { return Ok(()) };
    let place = place.field("budget");
    place.field("tokens").check_amount(budget.tokens, 1)?;
    place.field("cost").check_amount(budget.cost, 0)?;
    place.field("time_ms").check_amount(budget.time_ms, 0)?;
    place.field("calls").check_amount(budget.calls, 1)?;
    place.field("warn").check_count(budget.warn, 1, 100u64)
}

/// One of `nodes` that needs itself in the end, where there is one: Kahn's algorithm. What names nothing counts as
/// settled.
pub(super) fn find_cycle<'n>(nodes: impl Iterator<Item = (&'n str, Vec<String>)>) -> Option<&'n str> {
    let nodes: Vec<(&str, Vec<String>)> = nodes.collect();
    let index: BTreeMap<&str, usize> = (0..).zip(&nodes).map(|(index, (name, _))| (*name, index)).collect();
    let mut dependants = vec![Vec::new(); nodes.len()];
    let mut open = vec![0usize; nodes.len()];
    for (position, (_, needs)) in nodes.iter().enumerate() {
        for need in needs.iter().filter_map(|name| index.get(name.as_str())) {
            dependants[*need].push(position);
            open[position] += 1;
        }
    }
    let mut ready: Vec<usize> = (0..open.len()).filter(|&position| open[position] == 0).collect();
    while let Some(position) = ready.pop() {
        for &dependant in &dependants[position] {
            open[dependant] -= 1;
            if open[dependant] == 0 {
                ready.push(dependant);
            }
        }
    }
    open.iter().position(|&open| open > 0).map(|position| nodes[position].0)
}
