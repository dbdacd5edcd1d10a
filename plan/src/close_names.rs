//! Which of several names was meant by one that none of them is.
//!
//! In: names, of any length. Out: the one that is close enough to be meant, if any. All code that reads names from people
//! uses this, so that every message offers the same name.

/// The candidate closest to `name`, if any is close enough to be a slip of the finger.
pub fn find_closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let allowed = match length {
        0 => return None,
        1..=4 => 1,
        5..=7 => 2,
        _ => 3,
    };
    let (plain, signs) = (normalize_name(name), character_mask(name));
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let slip = candidates
        .iter()
        // The distance is at least the difference in length; a megabyte is never compared with anything.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        // A bound from the sets of letters alone is cheap, and spares most candidates the full edit distance.
        .filter(|candidate| least_distance(signs, character_mask(candidate)) <= allowed)
        .map(|candidate| (measure_distance(strsim::osa_distance, &plain, &normalize_name(candidate)), *candidate))
        .filter(|&(distance, candidate)| distance <= allowed && distance < candidate.chars().count())
        .min();
    match slip {
        Some((_, candidate)) => Some(candidate),
        None => longer_or_shorter(&plain, &candidates),
    }
}

/// Whether `name` can only be a slip for `close`: one letter is too many, missing, another one or in the place of its
/// neighbour, in names of four letters or more; or two are, in names of eight or more that begin alike; and no other
/// candidate is nearly as close. Case, `-` and `_` count for nothing, and what differs in a digit is no slip: `test1` is
/// not `test2`.
pub fn is_slip(name: &str, close: &str, candidates: &[&str]) -> bool {
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let (written, meant) = (normalize_name(name), normalize_name(close));
    let between = |other: &str| measure_distance(strsim::damerau_levenshtein, &written, other);
    let apart = between(&meant);
    let shorter = written.chars().count().min(meant.chars().count());
    let small = match apart {
        0 => true,
        1 => shorter >= 4,
        2 => shorter >= 8 && written.chars().next() == meant.chars().next(),
        _ => false,
    };
    let signs = character_mask(name);
    let is_far = |other: &str| least_distance(signs, character_mask(other)) > apart + 1;
    let rival = |other: &&str| **other != *close && !is_far(other) && between(&normalize_name(other)) <= apart + 1;
    small && digits(name) == digits(close) && !candidates.iter().any(rival)
}

/// The only candidate that goes on where `name` ends, or the other way round: `desc`, `integer`.
fn longer_or_shorter<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    const SHORTEST: usize = 3;
    let mut found = candidates.iter().filter(|candidate| {
        name.len().min(candidate.len()) >= SHORTEST && (candidate.starts_with(name) || name.starts_with(**candidate))
    });
    match (found.next(), found.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// A name without its case and with one of the two separators: these are the commonest slips.
pub fn normalize_name(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

/// The signs of a name, of [`normalize_name`], as a set: letters, digits and `-` have a bit each, all others share the rest.
fn character_mask(name: &str) -> u64 {
    let bit = |sign: char| match sign {
        'a'..='z' => u32::from(sign) - u32::from('a'),
        '0'..='9' => u32::from(sign) - u32::from('0') + 26,
        '-' | '_' => 36,
        _ => 37 + u32::from(sign) % (u64::BITS - 37),
    };
    let set = |set, sign| set | 1 << bit(sign);
    match name.is_ascii() {
        true => name.bytes().map(|byte| char::from(byte.to_ascii_lowercase())).fold(0, set),
        false => name.chars().flat_map(char::to_lowercase).fold(0, set),
    }
}

/// What the distance of two names is at least: an edit brings or takes one sign, and a change does both.
fn least_distance(one: u64, other: u64) -> usize {
    (one & !other).count_ones().max((other & !one).count_ones()) as usize
}

/// The distance of two names by `measure`, which takes the product of their lengths: what both begin and end with counts for
/// nothing, and is most of names like `step-17` and `step-18`.
fn measure_distance(measure: fn(&str, &str) -> usize, one: &str, other: &str) -> usize {
    let alike = |(one, other): &(char, char)| one == other;
    let begin: usize = one.chars().zip(other.chars()).take_while(alike).map(|(sign, _)| sign.len_utf8()).sum();
    let (one, other) = (&one[begin..], &other[begin..]);
    let end: usize =
        one.chars().rev().zip(other.chars().rev()).take_while(alike).map(|(sign, _)| sign.len_utf8()).sum();
    measure(&one[..one.len() - end], &other[..other.len() - end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_close_and_other_words_are_not() {
        let names = ["planner", "coder", "unit-tests", "qa"];
        assert_eq!(find_closest("planer", names), Some("planner"));
        assert_eq!(find_closest("unit_tests", names), Some("unit-tests"));
        assert_eq!(find_closest("Coder", names), Some("coder"));
        assert_eq!(find_closest("deploy", names), None);
        assert_eq!(find_closest("zz", names), None);
        assert_eq!(find_closest("loop", ["stop"]), None);
        assert_eq!(find_closest("integer", ["int", "string"]), Some("int"));
        assert_eq!(find_closest("desc", ["description", "depends-on"]), Some("description"));
    }

    #[test]
    fn what_two_names_share_at_their_ends_changes_no_distance() {
        let names = [
            "", "a", "ab", "ba", "aba", "aab", "abab", "step-17", "step-71", "xstep-17", "schön", "schon", "aXbY",
            "abXY",
        ];
        for (one, other) in names.iter().flat_map(|one| names.iter().map(move |other| (one, other))) {
            for measure in [strsim::osa_distance, strsim::damerau_levenshtein] {
                let measured = measure(&normalize_name(one), &normalize_name(other));
                assert_eq!(
                    measure_distance(measure, &normalize_name(one), &normalize_name(other)),
                    measured,
                    "{one} {other}"
                );
                assert!(least_distance(character_mask(one), character_mask(other)) <= measured, "{one} {other}");
            }
        }
    }
}
