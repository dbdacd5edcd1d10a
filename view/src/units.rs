//! Durations, sizes and times as a person reads them.

use std::time::Duration;

/// `0.3s`, `12s`, `1m 05s`, `2h 03m`, `3d 4h`.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{}.{}s", seconds, duration.subsec_millis() / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A duration as it stands in a spec: `90s`, `20m`, `250ms`.
pub fn format_limit(milliseconds: u64) -> String {
    match milliseconds {
        ms if ms % 3_600_000 == 0 && ms > 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 && ms > 0 => format!("{}m", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

/// `17 bytes`, `1.2 KB`, `16 MB`; 1 KB is 1,024 bytes, as in a spec.
pub fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1024 {
        return format_count(bytes, "byte");
    }
    // Ten times a large number of 64 bits does not fit into 64 bits.
    let mut tenths = u128::from(bytes) * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    match tenths >= 100 {
        true => format!("{} {}", tenths / 10, UNITS[unit]),
        false => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
    }
}

/// `1 step`, `12 steps`, `12,000 steps`.
pub fn format_count(number: u64, word: &str) -> String {
    format!("{} {word}{}", format_number(number), if number == 1 { "" } else { "s" })
}

/// With commas between thousands.
pub fn format_number(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A moment in the local time zone: `2026-11-22 01:42:33`.
pub fn format_moment(milliseconds: u64) -> String {
    let timestamp = i64::try_from(milliseconds).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    match timestamp {
        Some(timestamp) => timestamp.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => "unknown".to_owned(),
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well_at_every_length() {
        let check = |ms: u64| format_duration(Duration::from_millis(ms));
        assert_eq!(check(340), "0.3s");
        assert_eq!(check(12_900), "12s");
        assert_eq!(check(65_000), "1m 05s");
        assert_eq!(check(7_380_000), "2h 03m");
        assert_eq!(check(273_600_000), "3d 4h");
        assert_eq!(
            [
                format_limit(1_200_000),
                format_limit(90_000),
                format_limit(250),
                format_limit(0),
                format_limit(7_200_000)
            ],
            ["20m", "90s", "250ms", "0s", "2h"]
        );
    }

    #[test]
    fn sizes_and_counts_read_well() {
        assert_eq!(
            [format_size(1), format_size(17), format_size(1024), format_size(1280), format_size(102_400)],
            ["1 byte", "17 bytes", "1.0 KB", "1.2 KB", "100 KB"]
        );
        assert_eq!(format_size(16 << 20), "16 MB");
        assert_eq!(format_size(u64::MAX), "16777215 TB");
        assert_eq!(format_count(1, "step"), "1 step");
        assert_eq!(format_number(1_234_567), "1,234,567");
        assert_eq!(format_number(123), "123");
    }
}
