//! Values with units, and names. The same functions read what is written and the table's defaults.

use crate::schema::TYPES;

/// The units of a duration, in milliseconds.
const DURATIONS: &[(&str, u64)] = &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A duration in milliseconds.
///
/// # Errors
/// Says what to write.
pub(crate) fn parse_duration(text: &str) -> Result<u64, String> {
    parse_quantity(text, DURATIONS).ok_or_else(|| {
        let rule = "a duration is a number and a unit of `ms`, `s`, `m`, `h` or `d`";
        match translate_duration(text) {
            Some(duration) => format!("write `\"{duration}\"`: {rule}"),
            None => format!("{rule}: `\"90s\"`"),
        }
    })
}

/// `5 min`, `30 seconds` or `1 hour` with the unit as it is here; none where the unit is not known.
pub(crate) fn translate_duration(text: &str) -> Option<String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim().to_lowercase().trim_end_matches('s') {
        "milli" | "millisecond" | "msec" => "ms",
        "sec" | "second" => "s",
        "min" | "minute" => "m",
        "h" | "hr" | "hour" => "h",
        "d" | "day" => "d",
        _ => return None,
    };
    let duration = format!("{number}{unit}");
    parse_quantity(&duration, DURATIONS).map(|_| duration)
}

/// A number of bytes.
///
/// # Errors
/// Says what to write.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[("B", 1), ("KB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30)];
    parse_quantity(text, UNITS)
        .ok_or_else(|| "a size is a number and a unit of `B`, `KB`, `MB` or `GB`: `\"100KB\"`".into())
}

/// A decimal number times its unit, rounded down; none when it is not one or does not fit.
fn parse_quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let (_, scale) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let Some((whole, fraction)) = number.split_once('.') else {
        return number.parse::<u64>().ok()?.checked_mul(*scale);
    };
    let whole = whole.parse::<u64>().ok()?.checked_mul(*scale)?;
    // With six digits, the product below fits 64 bits for every unit.
    if fraction.is_empty() || fraction.len() > 6 {
        return None;
    }
    // In whole numbers: a float lies just below many decimal fractions, and the division would then drop one unit more.
    let fraction = fraction.parse::<u64>().ok()? * scale / 10u64.pow(u32::try_from(fraction.len()).ok()?);
    whole.checked_add(fraction)
}

/// An amount of money in micro-dollars.
///
/// # Errors
/// Says what to write.
pub(crate) fn parse_money(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[("", 1_000_000)];
    let help = || "an amount is `$` and a number, to a millionth of a dollar: `\"$5\"` or `\"$0.25\"`".to_owned();
    let number = text.strip_prefix('$').ok_or_else(help)?;
    // Without a unit behind it a quantity has no end.
    parse_quantity(&format!("{number} "), UNITS).ok_or_else(help)
}

/// `100k` or `2M` as a plain number.
pub(crate) fn expand_thousands(text: &str) -> Option<String> {
    let zeros = match text.chars().last()? {
        'k' | 'K' => "000",
        'm' | 'M' => "000000",
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    // With its zeros, such a number still fits 64 bits.
    let plain = !digits.is_empty() && digits.len() < 12 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.to_owned() + zeros)
}

/// The first and the last line of `1-40`, or of `7`.
pub(crate) fn parse_line_range(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(first) || !digits(last) {
        return None;
    }
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first >= 1 && first <= last).then_some((first, last))
}

/// Whether a type may be declared with this name: `[A-Z][A-Za-z0-9]*`, and not a built-in type with a capital.
///
/// # Errors
/// Gives the name that was probably meant, where there is one.
pub(crate) fn type_name(text: &str) -> Result<(), Option<String>> {
    let built_in = |name: &str| TYPES.iter().take(BUILT_IN).any(|word| word.word.eq_ignore_ascii_case(name));
    let fits = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && name.len() <= swarmc_plan::LONGEST_NAME
            && !built_in(name)
    };
    match fits(text) {
        true => Ok(()),
        false => Err(Some(capitalize_name(text)).filter(|other| fits(other))),
    }
}

/// How many of the built-in types a declared type must not be taken for: all but `file` and `dir`.
const BUILT_IN: usize = 7;

/// The parts of a name, each with a capital: `review-result` is `ReviewResult`.
fn capitalize_name(text: &str) -> String {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric());
    let capital = |part: &str| {
        let mut chars = part.chars();
        chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str())
    };
    parts.filter_map(capital).collect()
}

/// Whether a field may have this name: `[A-Za-z_][A-Za-z0-9_-]*`.
pub(crate) fn is_field(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Whether a name may be declared: `[a-z][a-z0-9_-]*`.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

/// Whether a name may be that of an environment variable.
pub(crate) fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_a_unit() {
        assert_eq!(parse_duration("90s"), Ok(90_000));
        assert_eq!(parse_duration("1.5h"), Ok(5_400_000));
        assert_eq!(parse_duration("2 m"), Ok(120_000));
        assert_eq!(parse_size("100KB"), Ok(102_400));
        for wrong in
            ["", "10", "m", "-1s", "1.s", "1..2s", "10 parsecs", "99999999999999999999h", "9999999999999999999h"]
        {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn money_has_a_sign_and_millionths() {
        assert_eq!(parse_money("$5"), Ok(5_000_000));
        assert_eq!(parse_money("$0.25"), Ok(250_000));
        assert_eq!(parse_money("$1.000001"), Ok(1_000_001));
        for wrong in ["", "5", "$", "$-1", "5 USD", "$5.", "$1.0000001", "$99999999999999999999", "$ ", "$5m"] {
            assert!(parse_money(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines_go_upwards_from_one() {
        assert_eq!(parse_line_range("1-40"), Some((1, 40)));
        assert_eq!(parse_line_range("7"), Some((7, 7)));
        for wrong in ["", "-", "0-3", "4-3", "a-b", "1-", "1-2-3", "+1-2"] {
            assert_eq!(parse_line_range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn types_have_capitals() {
        assert_eq!(type_name("Verdict2"), Ok(()));
        assert_eq!(type_name("review-result"), Err(Some("ReviewResult".into())));
        assert_eq!(type_name("verdict"), Err(Some("Verdict".into())));
        for wrong in ["", "2x", "String", "list", "é"] {
            assert_eq!(type_name(wrong), Err(None), "{wrong}");
        }
        assert_eq!(type_name("File"), Ok(()));
    }

    #[test]
    fn names_are_lower_case() {
        assert!(is_name("unit-tests_2"));
        for wrong in ["", "2x", "-a", "Aa", "a b", "é"] {
            assert!(!is_name(wrong), "{wrong}");
        }
        assert!(is_variable("_A1"));
        assert!(!is_variable("1A") && !is_variable("A-B") && !is_variable(""));
    }
}
