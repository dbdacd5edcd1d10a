//! Tells from a tool's result whether the agent's program refused the call, rather than that the tool failed.
//!
//! Claude Code lists its refusals with its result, and Codex CLI marks them. While they happen, and for the other
//! programs, only the words of the result tell. The system says that a file may not be read, which is no refusal of a
//! program.

/// What programs say when they refuse a tool, in lower case.
const WORDS: [&str; 11] = [
    // Claude Code.
    "requested permissions to",
    "permission to use",
    "this command requires approval",
    "haven't granted it yet",
    // Qwen Code and Gemini CLI.
    "requires user approval",
    "denied by policy",
    "execution was declined",
    // opencode.
    "rejected permission to use",
    "specified a rule which prevents you from using",
    // Codex CLI.
    "rejected by user",
    "approval policy is never",
];

/// The bytes of a result that are looked at: a refusal is short, and a file that an agent reads may hold such words.
const SHORT: usize = 400;

pub(crate) fn is_denial(text: &str) -> bool {
    let text = text.trim();
    text.len() <= SHORT && {
        let text = text.to_lowercase();
        WORDS.iter().any(|words| text.contains(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_programs_are_told_from_failures_of_tools() {
        for text in [
            "Claude requested permissions to use Bash, but you haven't granted it yet.",
            "Permission to use Write has been denied.",
            "The user rejected permission to use this specific tool call.",
            "exec command rejected by user",
        ] {
            assert!(is_denial(text), "{text}");
        }
        let long = format!("{} requires user approval", "x".repeat(SHORT));
        for text in ["bash: /root/x: Permission denied", "exit 1", "", &long] {
            assert!(!is_denial(text), "{text}");
        }
    }
}
