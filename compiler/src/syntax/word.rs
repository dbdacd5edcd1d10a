//! Words: what a run of word characters is (a name, a number, a keyword of KDL 1) and what to say when it is none of them.

use super::problem::{Problem, ProblemKind};
use crate::source::Span;

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// A string.
    Name,
    /// A number.
    Number,
    /// `true`, `false` or `null`, which KDL 2 writes with `#`.
    Literal,
    /// `inf`, `-inf` or `nan`, which need `#` to be numbers and quotes to be strings.
    Float,
    /// It starts like a number and is none.
    NumberLike,
}

/// Tells what a word is.
pub(super) fn classify_word(word: &str) -> Word {
    match word {
        "true" | "false" | "null" => Word::Literal,
        "inf" | "-inf" | "nan" => Word::Float,
        _ if !starts_like_number(word.as_bytes()) => Word::Name,
        _ if is_number(word.as_bytes()) => Word::Number,
        _ => Word::NumberLike,
    }
}

fn starts_like_number(word: &[u8]) -> bool {
    let unsigned = word.strip_prefix(b"+").or_else(|| word.strip_prefix(b"-")).unwrap_or(word);
    let digits = unsigned.strip_prefix(b".").unwrap_or(unsigned);
    digits.first().is_some_and(u8::is_ascii_digit)
}

/// Whether a word is a number of the grammar.
fn is_number(word: &[u8]) -> bool {
    let unsigned = word.strip_prefix(b"+").or_else(|| word.strip_prefix(b"-")).unwrap_or(word);
    match unsigned {
        [b'0', b'x', digits @ ..] => is_digits(digits, u8::is_ascii_hexdigit),
        [b'0', b'o', digits @ ..] => is_digits(digits, |digit| (b'0'..=b'7').contains(digit)),
        [b'0', b'b', digits @ ..] => is_digits(digits, |digit| matches!(digit, b'0' | b'1')),
        _ => is_decimal(unsigned),
    }
}

fn is_decimal(word: &[u8]) -> bool {
    // `is_number` takes hexadecimal numbers before, in which `e` is a digit.
    let (mantissa, exponent) = match word.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&word[..at], Some(&word[at + 1..])),
        None => (word, None),
    };
    let (whole, fraction) = match mantissa.iter().position(|&byte| byte == b'.') {
        Some(at) => (&mantissa[..at], Some(&mantissa[at + 1..])),
        None => (mantissa, None),
    };
    let unsigned = |digits: &[u8]| is_digits(digits, u8::is_ascii_digit);
    let signed = |digits: &[u8]| unsigned(digits.strip_prefix(b"+").or(digits.strip_prefix(b"-")).unwrap_or(digits));
    unsigned(whole) && fraction.is_none_or(unsigned) && exponent.is_none_or(signed)
}

/// A digit, then digits and `_`.
fn is_digits(word: &[u8], is_digit: impl Fn(&u8) -> bool) -> bool {
    word.first().is_some_and(&is_digit) && word.iter().all(|byte| *byte == b'_' || is_digit(byte))
}

/// `true`, `false` or `null` where a value is expected.
pub(super) fn literal_problem(word: &str, span: Span) -> Problem {
    Problem::new(span, format!("`{word}` is written `#{word}`"), "KDL 1")
        .kind(ProblemKind::V1Literal)
        .help(format!("write `#{word}`, or `\"{word}\"` for the word"))
        .fix(format!("write `#{word}`"), span, format!("#{word}"))
}

/// `inf`, `-inf` or `nan`.
pub(super) fn float_problem(word: &str, span: Span) -> Problem {
    Problem::new(span, format!("`{word}` is neither a number nor a word"), "needs `#` or quotes")
        .help(format!("write `#{word}` for the number, or `\"{word}\"` for the word"))
        .unsafe_fix(format!("write `#{word}`"), span, format!("#{word}"))
}

/// A word that starts like a number.
pub(super) fn number_like(word: &str, span: Span) -> Problem {
    if word.contains(',') && word.chars().all(|character| character.is_ascii_digit() || ",.-+_".contains(character)) {
        return comma_problem(word, span);
    }
    let problem =
        Problem::new(span, format!("`{word}` is not a number, and as a text it needs quotes"), "starts like a number");
    if let Some(number) = meant_number(word) {
        return problem.help(format!("write `{number}` for the number, or `\"{word}\"` for the text")).unsafe_fix(
            format!("write `{number}`"),
            span,
            number,
        );
    }
    let quoted = quote_text(word);
    problem.help(format!("write `{quoted}`")).fix(format!("write `{quoted}`"), span, quoted.clone())
}

fn comma_problem(word: &str, span: Span) -> Problem {
    let spaced = word.split(',').filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    Problem::new(span, "values are separated by spaces, not by commas", "a comma")
        .help(format!("write `{spaced}`"))
        .unsafe_fix(format!("write `{spaced}`"), span, spaced.clone())
}

/// The number that was surely meant: `.5`, `5.`, `0X1F`.
fn meant_number(word: &str) -> Option<String> {
    let (sign, unsigned) = word.split_at(usize::from(word.starts_with(['+', '-'])));
    let candidates = [format!("{sign}0{unsigned}"), format!("{word}0"), word.to_ascii_lowercase()];
    let sensible = [unsigned.starts_with('.'), unsigned.ends_with('.'), unsigned.len() > 1 && &unsigned[..1] == "0"];
    let meant =
        candidates.into_iter().zip(sensible).find(|(number, sensible)| *sensible && is_number(number.as_bytes()));
    meant.map(|(number, _)| number)
}

/// Several tokens side by side that were meant as one text, as in `src/main.rs`.
pub(super) fn unquoted_problem(written: &str, span: Span) -> Problem {
    // A comma at the end was meant to separate values.
    let wanted = written.strip_suffix(',').filter(|rest| !rest.is_empty()).unwrap_or(written);
    let quoted = quote_text(wanted);
    let character = wanted.chars().find(|character| "/\\#[]()".contains(*character)).unwrap_or('/');
    let message = if character == '/' {
        format!("`{wanted}` has a `/`, and so it needs quotes")
    } else {
        format!("`{character}` may not stand in a bare word: `{wanted}` needs quotes")
    };
    Problem::new(span, message, "needs quotes").help(format!("write `{quoted}`")).fix(
        format!("write `{quoted}`"),
        span,
        quoted.clone(),
    )
}

/// What follows one `#` and is no keyword.
pub(super) fn keyword_problem(word: &str, span: Span) -> Problem {
    let help =
        "write `#true`, `#false`, `#null`, `#inf`, `#-inf` or `#nan`, or put a text that starts with `#` in quotes";
    let problem = Problem::new(span, format!("`{word}` is no value"), "not a keyword");
    match word.to_ascii_lowercase().trim_start_matches('#') {
        known @ ("true" | "false" | "null") => {
            let written = format!("#{known}");
            problem.help(format!("write `{written}`")).fix(format!("write `{written}`"), span, written.clone())
        }
        "yes" | "on" => problem.help("write `#true`").unsafe_fix("write `#true`", span, "#true"),
        "no" | "off" => problem.help("write `#false`").unsafe_fix("write `#false`", span, "#false"),
        "none" | "nil" => problem.help("write `#null`").unsafe_fix("write `#null`", span, "#null"),
        _ => problem.help(help),
    }
}

/// A text as a string of one line: quoted, or raw when it has backslashes or quotes.
pub(crate) fn quote_text(text: &str) -> String {
    // A raw string of one line can hold no line break.
    if text.contains('\n') {
        return format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
    }
    if !text.contains(['\\', '"']) {
        return format!("\"{text}\"");
    }
    let mut marks = String::from("#");
    // With no more `#` than behind a quote in the text, the string would end there.
    while text.contains(&format!("\"{marks}")) {
        marks.push('#');
    }
    format!("{marks}\"{text}\"{marks}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart() {
        for word in
            ["a", "-", "--x", "+", "-a", ".", ".a", "-.", "+.a", "a1", "_1", "?15", "é", "trueish", "+inf", "a,b"]
        {
            assert_eq!(classify_word(word), Word::Name, "{word}");
        }
        for word in ["0", "-1", "+1_000", "1.5", "1e3", "1.5E-3_0", "0x1F", "-0o17", "+0b1_0_", "1_", "00"] {
            assert_eq!(classify_word(word), Word::Number, "{word}");
        }
        for word in
            ["20m", "1-40", ".5", "-.5", "1.", "1._7", "0x", "0xx1", "0b2", "0X1F", "1e", "1.0.0", "1e3e4", "0x_1"]
        {
            assert_eq!(classify_word(word), Word::NumberLike, "{word}");
        }
        assert_eq!(classify_word("null"), Word::Literal);
        assert_eq!(classify_word("-inf"), Word::Float);
    }

    #[test]
    fn numbers_that_were_meant_are_offered() {
        assert_eq!(meant_number("-.5").as_deref(), Some("-0.5"));
        assert_eq!(meant_number("5.").as_deref(), Some("5.0"));
        assert_eq!(meant_number("0X1f").as_deref(), Some("0x1f"));
        assert_eq!(meant_number("20m"), None);
    }

    #[test]
    fn quotes_fit_the_text() {
        assert_eq!(quote_text("a/b"), "\"a/b\"");
        assert_eq!(quote_text("a\\b"), "#\"a\\b\"#");
        assert_eq!(quote_text("a\"#b"), "##\"a\"#b\"##");
        assert_eq!(quote_text("a\n\"b\""), "\"a\\n\\\"b\\\"\"");
    }
}
