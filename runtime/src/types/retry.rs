//! Whether a retry may help: decided in one place, for models, tools and swarms alike.
//!
//! In: a message, a status or a header of the service that failed. Out: transient or permanent, and how long to wait.
//! All of it is pure, and linear in the length of the untrusted text.

use std::time::{Duration, SystemTime};

/// Words of failures that pass.
const WORDS: [&str; 8] = ["rate limit", "429", "timeout", "timed out", "temporary", "unavailable", "503", "502"];

/// What is waited at most because a provider says so.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// The further attempts that a failure which passes gets.
pub(crate) const RETRIES: u32 = 3;

/// What is waited before the first further attempt; the second waits twice as long, and so on.
const BACKOFF: Duration = Duration::from_secs(5);

/// What is waited at most before a further attempt.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// Whether a message tells of a failure that passes.
pub(crate) fn is_transient(message: &str) -> bool {
    let message = message.to_lowercase();
    WORDS.iter().any(|word| message.contains(word))
}

/// Whether an HTTP status tells of a failure that passes: too late, too many, or the server's own fault.
pub(crate) fn is_transient_status(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

/// How long to wait before the further attempt with this number, from 1.
pub(crate) fn backoff(attempt: u32) -> Duration {
    BACKOFF.saturating_mul(attempt.max(1)).min(LONGEST_BACKOFF)
}

/// What the header `Retry-After` asks for, in seconds or as a date, at most [`LONGEST_WAIT`].
pub(crate) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let wait = match value.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => {
            Duration::from_secs_f64(seconds.min(LONGEST_WAIT.as_secs_f64()))
        }
        Ok(_) => return None,
        Err(_) => date(value)?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(LONGEST_WAIT))
}

/// A date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.split_once(", ")?;
    let words: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = words.as_slice() else { return None };
    let number = |word: &str, most: u64| word.parse::<u64>().ok().filter(|&number| number <= most);
    let month = MONTHS.iter().position(|name| name == month)? as u64 + 1;
    let clock: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = clock.as_slice() else { return None };
    let seconds = number(hour, 23)? * 3600 + number(minute, 59)? * 60 + number(second, 60)?;
    let day = number(day, 31).filter(|&day| day > 0)?;
    let year = number(year, 9999).filter(|&year| year >= 1970)?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(days(year, month, day) * 86_400 + seconds))
}

/// The days from 1970-01-01 to a date not before it.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years that begin in March have their leap day at the end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    // 1970-01-01, counted so.
    days - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_seed_tell_what_passes() {
        for message in [
            "Rate limit reached",
            "status 429",
            "connection TIMEOUT",
            "the tool timed out",
            "a temporary failure",
            "Service Unavailable",
            "got 503",
            "502 Bad Gateway",
        ] {
            assert!(is_transient(message), "{message}");
        }
        for message in ["", "no such file", "status 401", "invalid arguments", "500 lines"] {
            assert!(!is_transient(message), "{message}");
        }
    }

    #[test]
    fn statuses_have_classes() {
        for status in [408, 429, 500, 502, 503, 504, 529] {
            assert!(is_transient_status(status), "{status}");
        }
        for status in [200, 307, 400, 401, 403, 404, 422] {
            assert!(!is_transient_status(status), "{status}");
        }
    }

    #[test]
    fn waiting_grows_by_five_seconds_up_to_thirty() {
        let seconds: Vec<u64> = (1..9).map(|attempt| backoff(attempt).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 15, 20, 25, 30, 30, 30]);
        assert_eq!(backoff(u32::MAX).as_secs(), 30);
    }

    #[test]
    fn a_wait_is_asked_for_in_seconds_or_as_a_date_and_has_a_cap() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let after = |value: &str| retry_after(value, now).map(|wait| wait.as_millis());
        assert_eq!(after("7"), Some(7_000));
        assert_eq!(after(" 0.5 "), Some(500));
        assert_eq!(after("99999999999999999999"), Some(LONGEST_WAIT.as_millis()));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:49 GMT"), Some(12_000));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:00 GMT"), Some(0));
        assert_eq!(after("Tue, 29 Feb 2000 00:00:00 GMT"), Some(LONGEST_WAIT.as_millis()));
        for value in ["", "-1", "inf", "NaN", "soon", "Sun, 06 Nov", "x, 99 Foo 1 1 GMT", "x, 06 Nov 0 08:49:37 GMT"] {
            assert_eq!(after(value), None, "{value}");
        }
    }
}
