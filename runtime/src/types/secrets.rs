//! Finds secrets by value: keeps them out of tool results, diffs, context packs and recordings.
//!
//! In: the variables that hold secrets, and their values in the caller's environment. Out: texts with `⟦secret:NAME⟧`
//! in the place of each. Invariant: one pass from left to right, so that a placeholder is not looked at again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use memchr::memmem::Finder;
use swarmc_plan::{EnvValue, Pipeline, Plan};

/// Shorter secrets are in too many texts by chance.
const SHORTEST: usize = 6;

/// The secrets of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    /// The longest value first: one may be the beginning of another.
    values: Vec<(Finder<'static>, String)>,
}

/// The placeholder of the secret in this variable.
pub(crate) fn blank(variable: &str) -> String {
    format!("⟦secret:{variable}⟧")
}

/// The variables that hold a secret of this plan.
pub(crate) fn variables(plan: &Plan) -> BTreeSet<&str> {
    let steps = plan.pipelines.iter().flat_map(Pipeline::all_steps).map(|step| &step.env);
    let pipelines = plan.pipelines.iter().map(|pipeline| &pipeline.env);
    let servers = plan.tool_servers.iter().map(|server| &server.env);
    let environments = plan.providers.iter().map(|provider| &provider.env).chain(servers).chain(pipelines).chain(steps);
    let used = environments.flatten().filter_map(|value| match value {
        EnvValue::Secret(name) => Some(name.as_str()),
        EnvValue::Pass(_) | EnvValue::Set { .. } => None,
    });
    plan.secret_variables().chain(used).collect()
}

/// The values of these variables that are worth hiding, each with its variable.
pub(crate) fn values<'v>(
    environment: &BTreeMap<OsString, OsString>,
    variables: &BTreeSet<&'v str>,
) -> Vec<(Vec<u8>, &'v str)> {
    let value = |name: &&'v str| {
        let value = environment.get(OsStr::new(name))?.as_bytes();
        (value.len() >= SHORTEST && value != blank(name).as_bytes()).then(|| (value.to_vec(), *name))
    };
    variables.iter().filter_map(value).collect()
}

impl Secrets {
    /// The secrets in these variables of `environment`.
    pub(crate) fn new(environment: &BTreeMap<OsString, OsString>, variables: &BTreeSet<&str>) -> Secrets {
        let mut found = Vec::new();
        for (value, variable) in values(environment, variables) {
            // A value that is no text appears in a text as all such bytes do.
            let value = String::from_utf8_lossy(&value).into_owned();
            // As JSON has it, a value with quotes or newlines is another text.
            let escaped = serde_json::Value::from(value.as_str()).to_string();
            let escaped = Some(escaped[1..escaped.len() - 1].to_owned()).filter(|escaped| *escaped != value);
            found.extend([Some(value), escaped].into_iter().flatten().map(|value| (value, blank(variable))));
        }
        found.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Secrets {
            values: found
                .into_iter()
                .map(|(value, blank)| (Finder::new(value.as_bytes()).into_owned(), blank))
                .collect(),
        }
    }

    /// The text without them.
    pub(crate) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_part(text, 0..text.len())
    }

    /// A part of a text without them. Those that the part holds only an end of are seen too, where the text goes on by
    /// [`Secrets::longest`].
    pub(crate) fn redact_part<'t>(&self, text: &'t str, part: Range<usize>) -> Cow<'t, str> {
        // Where each value appears next, found again only once the reading is past it.
        let find = |finder: &Finder<'_>, from: usize| finder.find(&text.as_bytes()[from..]).map(|at| from + at);
        let mut next: Vec<Option<usize>> = self.values.iter().map(|(finder, _)| find(finder, 0)).collect();
        let mut out = String::new();
        let mut done = 0;
        while let Some((at, value)) = (0..next.len()).filter_map(|value| Some((next[value]?, value))).min()
            && at < part.end
        {
            let (finder, blank) = &self.values[value];
            let end = at + finder.needle().len();
            if end > part.start {
                out.push_str(&text[done.max(part.start)..at.max(part.start)]);
                out.push_str(blank);
            }
            done = end;
            for (next, (finder, _)) in next.iter_mut().zip(&self.values) {
                if next.is_some_and(|next| next < done) {
                    *next = find(finder, done);
                }
            }
        }
        if done <= part.start {
            return Cow::Borrowed(&text[part]);
        }
        if done < part.end {
            out.push_str(&text[done..part.end]);
        }
        Cow::Owned(out)
    }

    /// The bytes of the longest of them.
    pub(crate) fn longest(&self) -> usize {
        self.values.first().map_or(0, |(finder, _)| finder.needle().len())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn secrets(values: &[(&str, &str)]) -> Secrets {
        let environment = values.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Secrets::new(&environment, &values.iter().map(|(name, _)| *name).collect())
    }

    #[test]
    fn every_secret_is_blank_and_the_longer_one_wins() {
        let ours = secrets(&[("KEY", "s3cr3t"), ("LONG", "s3cr3t-and-more"), ("SHORT", "abc"), ("KIND", "secret")]);
        assert_eq!(ours.redact("nothing here: abc"), "nothing here: abc");
        assert_eq!(ours.redact("s3cr3ts3cr3t-and-mores3cr3"), "⟦secret:KEY⟧⟦secret:LONG⟧s3cr3");
        // A placeholder is not taken for another secret.
        assert_eq!(ours.redact("a secret s3cr3t"), "a ⟦secret:KIND⟧ ⟦secret:KEY⟧");
    }

    #[test]
    fn a_secret_that_is_no_text_is_blank_where_it_stands_in_one() {
        let value = OsString::from_vec(b"\xa3ecret99".to_vec());
        let ours = Secrets::new(&[("KEY".into(), value)].into(), &["KEY"].into());
        assert_eq!(ours.redact(&String::from_utf8_lossy(b"it is \xa3ecret99.")), "it is ⟦secret:KEY⟧.");
        // Its bytes within a character are another text.
        assert_eq!(ours.redact("it is ãecret99."), "it is ãecret99.");
    }

    #[test]
    fn of_a_secret_at_the_edge_of_a_part_nothing_is_told() {
        let ours = secrets(&[("KEY", "s3cr3t"), ("URL", "at:s3cr3t@")]);
        let text = "one at:s3cr3t@ two s3cr3t three";
        let check = |part: &str, expected: &str| {
            let from = text.find(part).expect("it is in the text");
            assert_eq!(ours.redact_part(text, from..from + part.len()), expected);
        };
        check("t@ two s3", "⟦secret:URL⟧ two ⟦secret:KEY⟧");
        check("cr3t", "⟦secret:URL⟧");
        check(" two ", " two ");
        check(" three", " three");
        check("@ two", "⟦secret:URL⟧ two");
        assert_eq!((ours.longest(), secrets(&[]).longest()), (10, 0));
    }

    #[test]
    fn a_secret_is_found_as_json_has_it() {
        let ours = secrets(&[("PEM", "line \"1\"\nline 2")]);
        assert_eq!(ours.redact(r#"{"k":"line \"1\"\nline 2"}"#), r#"{"k":"⟦secret:PEM⟧"}"#);
        assert_eq!(ours.redact("line \"1\"\nline 2"), "⟦secret:PEM⟧");
    }
}
