//! Words for messages: "did you mean", and lists of what is allowed.

use std::fmt;

use swarmc_plan::close_names::normalize_name;
pub(crate) use swarmc_plan::close_names::{find_closest, is_slip};

/// A candidate that is close to what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Near<'a> {
    pub(crate) name: &'a str,
    /// Whether nothing else can have been meant: see [`is_slip`].
    pub(crate) certain: bool,
}

impl fmt::Display for Near<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The candidate closest to `name`, as [`find_closest`] has it, and whether nothing else can have been meant.
pub(crate) fn find_nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<Near<'a>> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let close = find_closest(name, candidates.iter().copied())?;
    Some(Near { name: close, certain: is_slip(name, close, &candidates) })
}

/// What other tools call a node, and what it is called here; each as [`normalize_name`] gives it.
const HABITS: &[(&str, &[&str])] = &[
    ("depends-on", &["needs", "after", "requires", "dependencies", "depends", "wait-for"]),
    ("run", &["command", "cmd", "exec", "shell", "script", "sh", "bash"]),
    ("exec", &["command", "cmd", "run", "argv"]),
    ("task", &["step", "steps", "tasks", "job", "jobs", "stage", "stages", "node"]),
    ("env", &["environment", "variables", "vars"]),
    ("for-each", &["foreach", "for", "map", "matrix", "fan-out", "each"]),
    ("loop", &["while", "repeat", "iterate", "until-done"]),
    ("gate", &["approval", "approve", "human", "human-approval", "manual", "confirm", "pause", "input-required"]),
    ("type", &["schema", "struct", "record", "model", "interface", "enum"]),
    ("tool-server", &["mcp", "mcp-server", "server"]),
    ("import", &["include", "require", "extends"]),
    ("call", &["workflow", "subworkflow", "sub-pipeline", "invoke"]),
    ("when", &["if", "condition", "only-if"]),
    ("retry", &["retries", "attempts", "max-retries", "max-attempts"]),
    ("timeout", &["time-limit", "timeout-minutes", "timeout-seconds", "max-time"]),
    ("auth", &["api-key", "apikey", "key", "token"]),
    ("message", &["prompt", "text", "question"]),
    ("output", &["outputs", "returns", "result", "output-schema", "response-format"]),
    ("prompt", &["instructions", "instruction", "message", "ask", "query"]),
    ("iterations", &["max-iterations", "rounds", "max-rounds", "max-turns"]),
    ("concurrency", &["max-concurrency", "max-parallel", "parallelism"]),
    ("member", &["agent", "participant", "teammate"]),
    ("can", &["capabilities", "allow-tools"]),
    ("system", &["system-prompt", "role", "persona", "backstory", "instructions"]),
    ("description", &["name", "title", "summary"]),
    ("claude-code", &["claude", "cc"]),
    ("openai-api", &["openai", "gpt", "chatgpt"]),
    ("anthropic-api", &["anthropic"]),
    ("llama-server", &["llama", "llamacpp", "llama.cpp", "ollama"]),
];

/// The candidate that another tool calls `name`.
pub(crate) fn find_habit(name: &str, candidates: &[&str]) -> Option<&'static str> {
    let plain = normalize_name(name);
    // The candidates last: they can be thousands of names.
    let meant = |(here, elsewhere): &&(&str, &[&str])| elsewhere.contains(&&*plain) && candidates.contains(here);
    HABITS.iter().find(meant).map(|(here, _)| *here)
}

/// "did you mean `x`?", or the list of what there is.
pub(crate) fn did_you_mean<'a>(
    name: &str,
    candidates: &[&'a str],
    otherwise: &str,
) -> (Option<Near<'a>>, Option<String>) {
    let habit = find_habit(name, candidates).map(|name| Near { name, certain: false });
    match habit.or_else(|| find_nearest(name, candidates.iter().copied())) {
        Some(close) => (Some(close), Some(format!("did you mean `{close}`?"))),
        None if candidates.is_empty() => (None, None),
        None if candidates.len() == 1 => (None, Some(format!("the only one is `{}`", candidates[0]))),
        None => (None, Some(format!("{otherwise}{}", format_list(candidates.iter().copied(), "and")))),
    }
}

/// "`a`, `b` and `c`"; long lists are cut, and say so.
pub(crate) fn format_list<'a>(items: impl Iterator<Item = &'a str>, and: &str) -> String {
    const SHOWN: usize = 32;
    let all: Vec<&str> = items.collect();
    let mut items: Vec<String> = all.iter().take(SHOWN).map(|item| format!("`{item}`")).collect();
    if all.len() > SHOWN {
        items.push(format!("{} more", all.len() - SHOWN));
    }
    match items.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {and} {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slip_is_certain() {
        let names = ["planner", "coder", "unit-tests", "test2", "log", "implement", "reviewer", "reviewed"];
        let certain = |name: &str| find_nearest(name, names).map(|near| (near.name, near.certain));
        for (name, close) in [
            ("planer", "planner"),
            ("plannre", "planner"),
            ("Coder", "coder"),
            ("unit_test", "unit-tests"),
            ("implmnt", "implement"),
            ("impelmetn", "implement"),
        ] {
            let far = name == "implmnt";
            assert_eq!(certain(name), Some((close, !far)), "{name}");
        }
        for name in ["test1", "lag", "review", "reviewe", "plan", "cod"] {
            assert!(certain(name).is_none_or(|(_, certain)| !certain), "{name}");
        }
    }

    #[test]
    fn words_of_other_tools_are_known() {
        let mut words = HABITS.iter().flat_map(|(_, words)| *words);
        assert!(words.all(|word| normalize_name(word) == *word));
        assert_eq!(find_habit("needs", &["reads", "depends-on"]), Some("depends-on"));
        assert_eq!(find_habit("needs", &["reads"]), None);
        assert_eq!(find_habit("Wait_For", &["depends-on"]), Some("depends-on"));
        assert_eq!(find_habit("prompt", &["prompt"]), None);
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(format_list([].into_iter(), "and"), "");
        assert_eq!(format_list(["a"].into_iter(), "and"), "`a`");
        assert_eq!(format_list(["a", "b", "c"].into_iter(), "or"), "`a`, `b` or `c`");
    }
}
