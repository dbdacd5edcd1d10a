//! Why something that a person asked for cannot be had, and what to do about it.
//!
//! In: words. Out: a [`Problem`], which a terminal, a page or a program shows in its own way. Both of its texts stand for
//! themselves: neither repeats the other, and neither ends with a line break.

use swarmc_plan::close_names::find_closest;

/// Why something that a person asked for cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// What to do about it, where that is known.
    pub help: Option<String>,
}

impl Problem {
    /// A problem without help.
    pub fn new(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), help: None }
    }

    /// A problem with help.
    pub fn with_help(message: impl Into<String>, help: impl Into<String>) -> Problem {
        Problem { message: message.into(), help: Some(help.into()) }
    }
}

/// Did you mean one of these, or else what there is.
pub fn did_you_mean<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match (find_closest(wrong, names.iter().copied()), names.as_slice()) {
        (Some(name), _) => format!("did you mean `{name}`?"),
        (None, []) => "there are none".to_owned(),
        (None, [only]) => format!("the only one is `{only}`"),
        (None, names) => {
            let quoted: Vec<String> = names.iter().take(20).map(|name| format!("`{name}`")).collect();
            format!("there are {}{}", quoted.join(", "), if names.len() > 20 { " and more" } else { "" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_names_are_offered_and_else_all() {
        let names = || ["draft", "review"].into_iter();
        assert_eq!(did_you_mean("drafd", names()), "did you mean `draft`?");
        assert_eq!(did_you_mean("x", ["t"].into_iter()), "the only one is `t`");
        assert_eq!(did_you_mean("Review", names()), "did you mean `review`?");
        assert_eq!(did_you_mean("zzz", names()), "there are `draft`, `review`");
        assert_eq!(did_you_mean("zzz", std::iter::empty()), "there are none");
    }
}
