//! Where in a text a JSON value may be: the whole, the last fenced block, the last of its balanced brackets.
//!
//! One pass each over the text, no recursion. What is found may still be no JSON; who reads it finds out.

use std::ops::Range;

/// The balanced pieces that are tried, from the last.
const TRIED: usize = 16;

/// The pieces of `text` that may be the answer, the likeliest first.
pub(crate) fn find_candidates(text: &str) -> Vec<&str> {
    let whole = text.trim_start_matches('\u{feff}').trim();
    if whole.is_empty() {
        return Vec::new();
    }
    let mut pieces = vec![whole];
    pieces.extend(last_fence(text).map(str::trim).filter(|piece| !piece.is_empty()));
    let balanced = find_balanced(text);
    pieces.extend(balanced.into_iter().rev().take(TRIED).map(|piece| &text[piece]));
    pieces.dedup();
    pieces
}

/// The content of the last block between lines of three backticks or more that is called JSON, or nothing at all.
fn last_fence(text: &str) -> Option<&str> {
    let mut last = None;
    // The backticks of the block that is open, whether it may be the answer, and where it begins.
    let mut open: Option<(usize, bool, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let trimmed = line.trim();
        let ticks = trimmed.bytes().take_while(|&byte| byte == b'`').count();
        let info = &trimmed[ticks..];
        match open {
            None if ticks >= 3 && !info.contains('`') => {
                let wanted = info.is_empty() || info.trim().eq_ignore_ascii_case("json");
                open = Some((ticks, wanted, end));
            }
            Some((opened, wanted, from)) if ticks >= opened && info.is_empty() => {
                if wanted {
                    last = Some(&text[from..start]);
                }
                open = None;
            }
            _ => {}
        }
        start = end;
    }
    last
}

/// The outermost pieces of `text` that begin with an opening bracket and end with its closing one, in order. What
/// cannot be part of JSON ends all that is open, so that brackets of prose take nothing with them.
fn find_balanced(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => open.push(at),
            byte @ (b'}' | b']') => match open.pop() {
                Some(start) if bytes[start] == byte - 2 => {
                    let inner = found.partition_point(|piece| piece.start < start);
                    found.truncate(inner);
                    found.push(start..at + 1);
                }
                _ => open.clear(),
            },
            b'"' if !open.is_empty() => match find_string_end(bytes, at) {
                Some(end) => at = end,
                None => open.clear(),
            },
            byte if !may_stand(byte) => open.clear(),
            _ => {}
        }
        at += 1;
    }
    found
}

/// The closing quote of the string that begins at `start`; none where it holds what no string may, or is followed by
/// what nothing may follow.
fn find_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let next = bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace())?;
                return b",:]}".contains(next).then_some(at);
            }
            b'\\' => at += 1,
            0..b' ' => return None,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether `byte` can be part of JSON between its strings and brackets.
fn may_stand(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'+' | b'-' | b'.' | b'0'..=b'9' | b'E')
        || b"truefalsn".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_fence_that_is_json_or_bare_counts() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(last_fence(text), expected, "{text}");
        check("no fence", None);
        check("a\n```json\n{}\n```\nb", Some("{}\n"));
        check("```\n1\n```\n```json\n2\n```\n```python\n3\n```", Some("2\n"));
        check("  ```JSON\r\n{}\r\n  ```", Some("{}\r\n"));
        check("````json\n```\n{}\n```\n````", Some("```\n{}\n```\n"));
        check("inline ```json``` is none\n```json\n{", None);
        check("```json `x`\n1\n```", None);
    }

    #[test]
    fn the_outermost_brackets_are_found_whatever_prose_does() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<&str> = find_balanced(text).into_iter().map(|piece| &text[piece]).collect();
            assert_eq!(found, expected, "{text}");
        };
        check(r#"So: {"a":[1,{"b":"}"}]} and [1]."#, &[r#"{"a":[1,{"b":"}"}]}"#, "[1]"]);
        check(r#"[see {"a":1} here] {"b":2}"#, &[r#"{"a":1}"#, r#"{"b":2}"#]);
        check("{\"cut\nhere\": 1} {\"a\":\"x\\\"]\"}", &["{\"a\":\"x\\\"]\"}"]);
        check("[[[ {}", &["{}"]);
        check("{]} [}] {}", &["{}"]);
        check("he said \"[\" and {\"a\": true}", &["{\"a\": true}"]);
        check("he said \"[\", and {\"a\": true}", &["{\"a\": true}"]);
        check("[\"x\" {\"a\": true}", &["{\"a\": true}"]);
        check("\"\\", &[]);
        check("[\"\\", &[]);
    }

    #[test]
    fn long_and_hostile_texts_take_one_pass() {
        for piece in [
            "[",
            "{\"",
            "[\"\\\"",
            "[]",
            "]",
            "{}[",
            "```\n",
            "`",
            "{\"a\":[",
            "\"",
            "[{\"a\":1},",
            "[\"",
            "[\"\\\"[",
            "[\"x\"y",
        ] {
            let text = piece.repeat((1 << 20) / piece.len());
            let started = std::time::Instant::now();
            find_candidates(&text);
            // Anything that is not one pass takes hours.
            assert!(started.elapsed() < std::time::Duration::from_secs(20), "{piece}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_at_its_characters(text in "[ -~\u{e9}\u{6f22}\n]{0,200}", json in r#"[\[\]{}":,0-9a\\`\n ]{0,200}"#) {
            for text in [text, json] {
                for piece in find_candidates(&text) {
                    prop_assert!(text.contains(piece));
                }
            }
        }

        #[test]
        fn a_value_behind_prose_is_found(before in "[a-zA-Z .,'(){}\n]{0,60}", after in "[a-zA-Z .,']{0,60}", n in 0..1000) {
            let value = format!("{{\"n\":{n},\"list\":[\"]\",{{}}]}}");
            let text = format!("{before}\n.{value}.{after}");
            prop_assert!(find_candidates(&text).contains(&value.as_str()), "{}", text);
        }
    }
}
