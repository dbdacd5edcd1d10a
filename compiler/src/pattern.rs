//! The patterns of texts, read as the run reads them: the same engine with the same settings.
//!
//! In: a pattern, and a text. Out: whether it is one, and whether the text matches. The engine never goes back over a
//! text, so that patterns of any shape take time in proportion to it. Patterns that are large, or stand for large ones,
//! take long to make ready: only a check of its own does so, for a few of them.

use serde_json::json;
use swarmc_plan::build_validator;

/// The longest pattern that is looked at, in bytes, and how often its repetitions may repeat together.
const LONGEST: usize = 500;
const MOST: u64 = 1000;

/// What is wrong with a pattern, in words; none where it is one.
pub(crate) fn find_fault(pattern: &str) -> Option<&'static str> {
    if is_large(pattern) || build_validator(&json!({ "pattern": pattern })).is_ok() {
        return None;
    }
    let looks = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|sign| pattern.contains(sign));
    let refers = pattern.contains("\\k<") || (1..10).any(|number| pattern.contains(&format!("\\{number}")));
    Some(match (looks, refers) {
        (true, _) => "it looks ahead or behind, which patterns here do not",
        (_, true) => "it refers back to a group, which patterns here do not",
        _ => "it is no regular expression",
    })
}

/// Whether the run can use a pattern, however large it is.
pub(crate) fn can_be_used(pattern: &str) -> bool {
    // What is longer than any that a person writes takes too long.
    pattern.len() > 20 * LONGEST || build_validator(&json!({ "pattern": pattern })).is_ok()
}

/// Whether a text matches somewhere; true where the pattern is none.
pub fn is_match(pattern: &str, text: &str) -> bool {
    let validator = || build_validator(&json!({ "pattern": pattern }));
    is_large(pattern) || validator().map_or(true, |validator| validator.is_valid(&json!(text)))
}

/// Whether a pattern is long, or repeats its parts very often: `((a{1000}){1000})`.
pub(crate) fn is_large(pattern: &str) -> bool {
    let counts = pattern.split('{').skip(1).filter_map(|rest| rest.split_once('}')).flat_map(|(counts, _)| {
        let count = |count: &str| count.trim().parse::<u64>().ok();
        counts.split(',').filter_map(count).max()
    });
    pattern.len() > LONGEST || counts.fold(1_u64, |product, count| product.saturating_mul(count.max(1))) > MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_those_of_the_run() {
        let fine = ["", "^[a-z]+$", "\\d{3}", "a|b", "(?i)abc", "^\\p{L}+$", "(?:ab)+", "\\[\\]"];
        fine.into_iter().for_each(|pattern| assert_eq!(find_fault(pattern), None, "{pattern}"));
        let check = |pattern: &str, said: &str| assert!(find_fault(pattern).is_some_and(|fault| fault.contains(said)));
        let large = ["((a{1000}){1000})".to_owned(), "(".repeat(10_000)];
        large.into_iter().for_each(|pattern| assert_eq!(find_fault(&pattern), None));
        check("([a-z", "no regular expression");
        check("*", "no regular expression");
        check("(?=a)b", "looks ahead");
        check("(a)\\1", "refers back");
    }

    #[test]
    fn a_text_matches_somewhere() {
        assert!(is_match("b", "abc"));
        assert!(!is_match("^b", "abc"));
        assert!(is_match("([a-z", "anything"));
    }
}
