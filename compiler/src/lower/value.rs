//! Values with units: durations, sizes, types. The same functions read what is written and the table's defaults.

use swarmc_plan::ParamType;

/// A duration in milliseconds.
///
/// # Errors
/// Says what to write.
pub(crate) fn duration(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    quantity(text, UNITS)
        .ok_or_else(|| "a duration is a number and a unit of `ms`, `s`, `m`, `h` or `d`: `\"90s\"`".into())
}

/// A number of bytes.
///
/// # Errors
/// Says what to write.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[("B", 1), ("KB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30)];
    quantity(text, UNITS).ok_or_else(|| "a size is a number and a unit of `B`, `KB`, `MB` or `GB`: `\"100KB\"`".into())
}

/// A decimal number times its unit, rounded down; none when it is not one or does not fit.
fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let (_, scale) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole = whole.parse::<u64>().ok()?.checked_mul(*scale)?;
    if fraction.is_empty() || fraction.len() > 6 {
        return None;
    }
    let fraction = fraction.parse::<u64>().ok()? * scale / 10u64.pow(u32::try_from(fraction.len()).ok()?);
    whole.checked_add(fraction)
}

/// A parameter's type, and whether it may be left out.
pub(crate) fn param_type(text: &str) -> Option<(ParamType, bool)> {
    let (name, optional) = match text.strip_suffix('?') {
        Some(name) => (name, true),
        None => (text, false),
    };
    let kind = match name {
        "string" => ParamType::String,
        "int" => ParamType::Int,
        "float" => ParamType::Float,
        "bool" => ParamType::Bool,
        "file" => ParamType::File,
        "dir" => ParamType::Dir,
        _ => return None,
    };
    Some((kind, optional))
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
        assert_eq!(duration("90s"), Ok(90_000));
        assert_eq!(duration("1.5h"), Ok(5_400_000));
        assert_eq!(duration("2 m"), Ok(120_000));
        assert_eq!(size("100KB"), Ok(102_400));
        for wrong in
            ["", "10", "m", "-1s", "1.s", "1..2s", "10 parsecs", "99999999999999999999h", "9999999999999999999h"]
        {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
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
