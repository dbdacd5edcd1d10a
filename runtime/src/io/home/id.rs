//! Run ids: short, sorted by time, unique: `20261122-014233-k3f9xz` (UTC, then which part of the second, in steps of 1.3
//! milliseconds, in two characters, and four random ones).
//!
//! Processes and branches carry the id alone, so it must differ between all homes of a machine: of the pairs of runs that
//! start in the same 1.3 milliseconds, one in 614,656 (28⁴) has the same id.

use std::fs::File;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::types::error::RunError;

/// No vowels, so that no id spells a word; nothing that looks like another.
const ALPHABET: &[u8; 28] = b"23456789bcdfghjkmnpqrstvwxyz";
const SOURCE: &str = "/dev/urandom";

/// An id for a run that starts now.
pub(super) fn make_id() -> Result<String, RunError> {
    let mut random = [0; 4];
    File::open(SOURCE).and_then(|mut file| file.read_exact(&mut random)).map_err(RunError::io("read", SOURCE))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(format_id(now.as_secs(), now.subsec_nanos(), random))
}

fn format_id(seconds: u64, nanoseconds: u32, random: [u8; 4]) -> String {
    let (year, month, day) = civil_date(seconds / 86_400);
    let time = seconds % 86_400;
    let mut id = format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}-", time / 3600, time / 60 % 60, time % 60);
    let letters = ALPHABET.len() as u64;
    let part = u64::from(nanoseconds) * letters * letters / 1_000_000_000;
    let numbers = [part / letters, part].into_iter().chain(random.map(u64::from));
    id.extend(numbers.map(|number| char::from(ALPHABET[(number % letters) as usize])));
    id
}

/// The civil date `days` after 1970-01-01, counted in eras of 400 years that begin on the first of March.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_begins_with_the_time_in_utc() {
        assert_eq!(format_id(1_795_311_753, 0, [2, 27, 0, 5]), "20261122-014233-224z27");
        assert_eq!(format_id(951_782_400, 999_999_999, [0; 4]), "20000229-000000-zz2222");
        assert_eq!(format_id(0, 500_000_000, [255; 4]), "19700101-000000-j25555");
    }

    #[test]
    fn ids_of_one_second_are_in_the_order_of_their_time() {
        assert!(ALPHABET.is_sorted());
        let ids: Vec<String> = (0..500).map(|step| format_id(0, step * 2_000_000, [7; 4])).collect();
        assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
